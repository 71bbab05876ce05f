// Opens a model and evaluates text with it. In: the compiled numbers, the user's settings, tokens. Out: logits.
//
// A text is evaluated in batches: rows of (token, position). How it is cut changes no bit of any row, so the batch
// size is only a matter of speed, and of how many rows of logits fit.
#include "program.h"
#include "cpu.h"
#include "error.h"
#include <math.h>
#include <string.h>

int program_open_file(Program *p, const ModelInfo *info, const char *weights) {
    memset(p, 0, sizeof *p);
    p->info = info;
    if (weights_open(&p->file, weights, info->hash, info->weight_bytes)) return -1;
    if (!p->file.tokenizer) return 0;
    if (!tokenizer_open(&p->tokenizer, p->file.tokenizer, (size_t) p->file.tokenizer_size))
        return complain(
            "the program's tokenizer is damaged: its %llu bytes are no tables of this version; build it again",
            (unsigned long long) p->file.tokenizer_size);
    p->has_tokenizer = true;
    return 0;
}

int settings_check(const Settings *s, const ModelInfo *info) {
    if (s->threads < 0 || s->threads > MAX_THREADS)
        return complain("--threads %d is out of range: it must be from 1 to %d", s->threads, MAX_THREADS);
    if (s->n_ctx < 0 || s->n_ctx > info->n_ctx)
        return complain("--ctx %d is more than the program was built for: %d; build it with --ctx %d", s->n_ctx,
            info->n_ctx, s->n_ctx);
    if (s->batch < 0 || s->batch > info->max_batch)
        return complain("--batch %d is out of range: the program was built for 1 to %d", s->batch, info->max_batch);
    return 0;
}

// Tokens that the model's file forbids to sample, and the user's biases, in one list for the sampler.
static void collect_bias(Program *p, const Settings *s) {
    Sampler *sampler = &p->sampler;
    int n = 0;
    for (int i = 0; p->has_tokenizer && i < p->info->n_vocab && i < tok_n_vocab(&p->tokenizer); i++)
        if (tok_is_suppressed(&p->tokenizer, i)) p->bias[n++] = (LogitBias){i, -INFINITY};
    if (s->n_bias) memcpy(p->bias + n, s->bias, (size_t) s->n_bias * sizeof *s->bias);
    sampler->bias = p->bias;
    sampler->n_bias = n + s->n_bias;
}

static int count_suppressed(const Program *p) {
    int n = 0;
    for (int i = 0; p->has_tokenizer && i < p->info->n_vocab && i < tok_n_vocab(&p->tokenizer); i++)
        n += tok_is_suppressed(&p->tokenizer, i);
    return n;
}

static size_t longest_stop(const Program *p) {
    size_t longest = 0, n;
    for (int i = 0; p->has_tokenizer && i < tok_n_stop(&p->tokenizer); i++) {
        tok_stop(&p->tokenizer, i, &n);
        longest = n > longest ? n : longest;
    }
    return longest;
}

static void bind(Program *p) {
    const Memory *m = &p->memory;
    Model *model = &p->model;
    uint8_t *base = m->base;
    *model = (Model){
        .weights = p->file.weights,
        .scratch = base + m->offset[MEM_SCRATCH],
        .thread_scratch = base + m->offset[MEM_THREADS],
        .n_table = m->n_table,
        .logits = (float *) (void *) (base + m->offset[MEM_LOGITS]),
    };
    model->fixed = p->state.fixed;
    for (int g = 0; g < p->info->n_group; g++) {
        model->pool[g] = p->state.pool[g].pool;
        model->table[g] = p->state.pool[g].table;
    }
    int32_t *rows = (int32_t *) (void *) (base + m->offset[MEM_BATCH]);
    int max = p->info->max_batch, outs = p->info->max_out;
    p->token = rows, p->pos = rows + max, p->seq = rows + 2 * max;
    p->out = rows + 3 * max, p->out_pos = p->out + outs, p->out_seq = p->out_pos + outs;
    model->token = p->token, model->pos = p->pos, model->seq = p->seq;
    model->out = p->out, model->out_pos = p->out_pos, model->out_seq = p->out_seq;
}

int program_open(Program *p, const Settings *s) {
    const ModelInfo *info = p->info;
    int threads = s->threads ? s->threads : cores_available();
    if (cpu_check(info->cpu) || settings_check(s, info)) return -1;
    int n_bias = count_suppressed(p) + s->n_bias, n_ctx = s->n_ctx ? s->n_ctx : info->n_ctx;
    uint64_t sampler = sampler_bytes(info->n_vocab, n_ctx), bias = (sampler + 7) / 8 * 8;
    p->text_room = p->has_tokenizer ? detok_room(&p->tokenizer) + longest_stop(p) : 0;
    memory_layout(&p->memory, info, threads, n_ctx, s->n_seq ? s->n_seq : 1,
        bias + (uint64_t) n_bias * sizeof(LogitBias), p->text_room, team_bytes(threads));
    if (memory_open(&p->memory)) return -1;
    const Memory *m = &p->memory;
    state_init(&p->state, info, m);
    bind(p);
    p->batch = s->batch ? s->batch : info->max_batch;
    p->text = (char *) m->base + m->offset[MEM_TOKENIZER];
    sampler_init(&p->sampler, info->n_vocab, n_ctx, m->base + m->offset[MEM_SAMPLER]);
    p->bias = (LogitBias *) (void *) (m->base + m->offset[MEM_SAMPLER] + bias);
    collect_bias(p, s);
    p->team = (Team *) (void *) (m->base + m->team);
    if (team_open(p->team, threads)) {
        p->team = NULL;
        return -1;
    }
    return 0;
}

void program_close(Program *p) {
    if (p->team) team_close(p->team);
    memory_close(&p->memory);
    weights_close(&p->file);
    memset(p, 0, sizeof *p);
}

// ---- evaluation ----

int program_append(Program *p, const int32_t *ids, int n) {
    Sequence *q = &p->state.seq[0];
    if (n > p->state.n_ctx - q->n_ids)
        return complain("%d tokens are more than the context of %d%s; %s", q->n_ids + n, p->state.n_ctx,
            q->n_ids ? " (the loaded ones included)" : "",
            p->state.n_ctx < p->info->n_ctx ? "raise --ctx" : "build the program with a greater --ctx");
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= p->info->n_vocab)
            return complain("token %d (number %d) is out of range: the vocabulary has %d", ids[i], i, p->info->n_vocab);
    if (n) memcpy(state_ids(&p->state, 0) + q->n_ids, ids, (size_t) n * sizeof *ids);
    q->n_ids += n;
    return 0;
}

static void run_model(const void *model, Worker *w) {
    model_forward(model, w);
}

// One forward of the next `rows` tokens of the text, logits wanted for the `outs` rows in p->out.
static int forward(Program *p, int rows, int outs) {
    const Sequence *q = &p->state.seq[0];
    if (p->interrupted && *p->interrupted) return complain("interrupted after %d of %d tokens", q->n_past, q->n_ids);
    if (state_reserve(&p->state, 0, rows)) return -1;
    const int32_t *ids = state_ids(&p->state, 0) + q->n_past;
    for (int i = 0; i < rows; i++) p->token[i] = ids[i], p->pos[i] = q->n_past + i, p->seq[i] = 0;
    for (int i = 0; i < outs; i++) p->out_pos[i] = p->pos[p->out[i]], p->out_seq[i] = 0;
    p->model.rows = rows, p->model.outs = outs;
    _Static_assert(sizeof(Model) % 8 == 0 && sizeof(Model) <= TEAM_ARG, "each thread gets a copy");
    team_run(p->team, run_model, &p->model, sizeof p->model);
    state_advance(&p->state, 0, rows);
    return 0;
}

int program_eval(Program *p, int n, bool logits) {
    const Sequence *q = &p->state.seq[0];
    while (q->n_past < n) {
        int rows = n - q->n_past < p->batch ? n - q->n_past : p->batch;
        int outs = logits && q->n_past + rows == n;
        p->out[0] = rows - 1;
        if (forward(p, rows, outs)) return -1;
    }
    return 0;
}

int program_eval_rows(Program *p, int n, const uint8_t *want, int (*rows)(void *context, Program *p), void *context) {
    const Sequence *q = &p->state.seq[0];
    while (q->n_past < n) {
        int begin = q->n_past, count = 0, outs = 0;
        for (; begin + count < n && count < p->batch; count++) {
            if (!want[begin + count]) continue;
            if (outs == p->info->max_out) // no room for this row's logits: it begins the next batch
                break;
            p->out[outs++] = count;
        }
        if (forward(p, count, outs) || (outs && rows(context, p))) return -1;
    }
    return 0;
}
