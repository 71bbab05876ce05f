// ggcc verify. In: a plan, its compiled code, the file's weights. Out: errors of every kernel. The idea: the
// generated code calls back before and after each step; before, its inputs are overwritten with the interpreter's
// (and its outputs with rubbish), after, its outputs are compared. What is compared and how closely is in one
// table, `tolerance`.
#define _GNU_SOURCE
#include "verify.h"
#include "interp.h"

#include "../runtime/model.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../templates/c/half.h"
#include "../templates/c/q8.h"

// Allowed error as a part of the root mean square of the row, or of the size of the terms of a sum where that is known
// and larger (interp_measure), plus the value itself. All kernels sum in f32 and the interpreter in double; kernels
// with 8-bit inputs are given the very bytes that the interpreter reckons with.
static const double tolerance[] = {
    [K_ROWS] = 1e-5, [K_MATMUL] = 2e-5, [K_ATTENTION] = 2e-5, [K_EXPERTS] = 2e-5, [K_STATE] = 2e-5};

typedef struct {
    int checks;   // rows compared
    double worst; // error, as a part of what `tolerance` speaks of
    bool failed;
} KernelCheck;

typedef struct {
    const Plan *p;
    const Graph *g;
    Interp *in;
    KernelCheck *kernel;
    int run, layer; // whose values the interpreter holds; run -1: none yet
    int past, rows; // positions before this batch; its rows
    Out *first;
    bool failed;
} Verify;

// ---- what the generated code calls ----

static Verify *at_work;
static void before_step(int id, int layer, const Model *m);
static void after_step(int id, int layer, const Model *m);
void (*trace_before)(int id, int layer, const Model *m) = before_step;
void (*trace_after)(int id, int layer, const Model *m) = after_step;

// A team of one.
static int next_piece;
int piece_claim(Worker *w, int n) {
    (void) w;
    return next_piece < n ? next_piece++ : -1;
}
void piece_done(Worker *w, int n) {
    (void) w, (void) n;
}
void step_wait(Worker *w) {
    next_piece = 0;
    w->step++;
}

// ---- the interpreter keeps pace ----

// Goes on to the run that has this layer of this stage, through everything before it.
static void advance(Verify *v, int stage, int layer) {
    const Graph *g = v->g;
    for (;;) {
        if (v->run >= 0 && g->run[v->run].stage == stage && v->layer == layer) return;
        if (v->run >= 0 && v->layer + 1 < g->run[v->run].first + g->run[v->run].count) v->layer++;
        else if (++v->run < g->n_run) v->layer = g->run[v->run].first;
        else
            fail("internal: the program runs a step of stage %.*s, layer %d, out of the plan's order",
                FMT(g->stage[stage].name), layer);
        interp_step(v->in, v->run, v->layer);
    }
}

// ---- places ----

static uint8_t *place_row(const Verify *v, const Model *m, Place at, int row) {
    const Buffer *b = &v->p->buffer[at.buffer];
    if (b->logits) return (uint8_t *) (m->logits + (size_t) row * (size_t) b->width + at.from);
    return m->scratch + b->offset + (size_t) row * b->row_bytes + (size_t) at.from * 4;
}

// pos: of a position, or the number of a record. Keys lie in a page as [kv head][block of 16 positions][width][16],
// values, and keys that come without values, as [kv head] [position][width] (templates/README.md).
static void *state_cell(const Verify *v, const Model *m, int stage, int state, bool values, int pos, int64_t element) {
    const StatePlan *sp = &v->p->state[v->p->state_of[stage][state]];
    const State *st = &v->g->stage[stage].state[state];
    uint8_t *page = state_page(m, sp->group, v->p->group[sp->group].page_bytes, 0, pos);
    int64_t width = values ? st->v.d[1] : st->k.d[1], head = element / width, i = element % width, slot = pos % PAGE,
            cell;
    if (values || st->v.n == 0) cell = (head * PAGE + slot) * width + i;
    else cell = ((head * (PAGE / 16) + slot / 16) * width + i) * 16 + slot % 16;
    return page + (values ? sp->v_at : sp->k_at)[v->layer] + cell * (v->p->kv_f32 ? 4 : 2);
}

static void give_state(Verify *v, const Model *m, int stage, int state) {
    const State *st = &v->g->stage[stage].state[state];
    for (int values = 0; values < (st->v.n ? 2 : 1); values++) {
        int64_t size = shape_size(values ? st->v : st->k);
        const float *from = interp_cache(v->in, stage, state, v->layer, values);
        for (int pos = 0; pos < (v->past + v->rows) / state_every(st); pos++)
            for (int64_t i = 0; i < size; i++) {
                void *cell = state_cell(v, m, stage, state, values, pos, i);
                float e = from[pos * size + i];
                uint16_t half = f32_to_f16(e);
                if (v->p->kv_f32) memcpy(cell, &e, 4);
                else memcpy(cell, &half, 2);
            }
    }
}

// ---- before a step ----

static void give_node(Verify *v, const Model *m, int stage, int node) {
    const Node *n = &v->g->stage[stage].node[node];
    Place at = v->p->place[stage][node];
    if (n->type == HANDLE) give_state(v, m, stage, n->state);
    if (at.buffer < 0 || n->type == HANDLE) return;
    Value x = interp_value(v->in, n->type == Q8 ? n->in[0] : node);
    for (int r = 0; r < x.rows; r++) {
        uint8_t *to = place_row(v, m, at, r);
        int64_t wide = shape_last(n->shape);
        for (int64_t i = 0; n->type == Q8 && i < x.size; i += wide)
            quantize_q8(x.real + r * x.size + i, to + (size_t) (i / wide) * plan_q8_bytes(wide), wide);
        if (n->type == Q8) continue;
        memcpy(to, x.id ? (const void *) (x.id + r * x.size) : x.real + r * x.size, (size_t) x.size * 4);
    }
}

static void before_step(int id, int layer, const Model *m) {
    Verify *v = at_work;
    const Kernel *k = &v->p->kernel[v->p->step[id].kernel];
    const Stage *s = &v->g->stage[k->stage];
    advance(v, k->stage, layer);
    for (int i = 0; i < s->n_node; i++) { // rubbish where results will be
        if (s->node[i].kernel != k->group || !node_is_stored(v->p, k->stage, i)) continue;
        Place at = v->p->place[k->stage][i];
        const Buffer *b = &v->p->buffer[at.buffer];
        for (int r = 0; r < interp_value(v->in, i).rows; r++)
            memset(
                place_row(v, m, at, r), 0xff, b->type == Q8 ? b->row_bytes : (size_t) shape_size(s->node[i].shape) * 4);
    }
    for (int i = 0; i < s->n_node; i++) {
        if (s->node[i].kernel != k->group) continue;
        for (int j = 0; j < s->node[i].n_in; j++) {
            int base = view_base(s, s->node[i].in[j]);
            if (s->node[base].kernel != k->group) give_node(v, m, k->stage, base);
        }
    }
}

// ---- after it ----

static int line_of(Loc loc) {
    int line = 1;
    for (uint32_t i = 0; i < loc.pos && i < loc.text.n; i++) line += loc.text.p[i] == '\n';
    return line;
}

// Element `i` of row `row` of what `node` stores should be `want`: notes the error, and the first that is too large.
static void judge(Verify *v, const Kernel *k, int node, const char *part, int row, int64_t i, double got, double want,
    double scale, double slack) {
    KernelCheck *c = &v->kernel[k - v->p->kernel];
    const Node *n = &v->g->stage[k->stage].node[node];
    if (got == want) return;
    double error = fabs(got - want) <= slack ? 0 : (fabs(got - want) - slack) / (scale + fabs(want));
    if (!(error <= c->worst)) c->worst = isnan(error) ? INFINITY : error;
    if (error <= tolerance[k->kind]) return;
    c->failed = true;
    if (v->failed) return;
    v->failed = true;
    out(v->first, "kernel %.*s differs from the interpreter: %s%s%.*s", FMT(k->name), op_info[n->op].name,
        n->name.n ? " " : "", FMT(n->name));
    if (n->loc.text.n) out(v->first, " (%s:%d)", n->loc.file, line_of(n->loc));
    if (v->g->stage[k->stage].layered) out(v->first, ", layer %d", v->layer);
    out(v->first,
        ", row %d (batch of %d from position %d), %s%lld: the program has %.9g, the interpreter %.9g; that is off by "
        "%.2g, and %.0e is allowed",
        row, v->rows, v->past, part, (long long) i, got, want, error, tolerance[k->kind]);
}

static double rms(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double) x[i] * x[i];
    return sqrt(sum / (double) n) + 1e-30;
}

static void judge_row(Verify *v, const Kernel *k, int node, int row, const float *got, const Value *want) {
    const float *x = want->real + row * want->size, *terms = want->terms ? want->terms + row * want->size : NULL;
    double scale = rms(x, want->size);
    for (int64_t i = 0; i < want->size; i++)
        judge(v, k, node, "element ", row, i, got[i], x[i], terms ? fmax(scale, terms[i]) : scale, 0);
}

// A row of bytes may round the other way where a value stands in the middle, so it is held against the value before
// rounding.
static void judge_q8(Verify *v, const Kernel *k, int node, int row, const uint8_t *q, const float *x, int64_t n) {
    const float *d = (const float *) (const void *) (q + n), *ds = d + n / 32;
    const int16_t *s = (const int16_t *) (const void *) (ds + n / 32);
    double scale = rms(x, n);
    for (int64_t b = 0; b < n / 32; b++) {
        double top = 0, sum[2] = {0};
        for (int i = 0; i < 32; i++) {
            double e = x[b * 32 + i], y = (double) d[b] * (int8_t) q[b * 32 + i];
            judge(v, k, node, "element ", row, b * 32 + i, y, e, scale, 0.5005 * fabs(d[b]));
            top = fmax(top, fabs(e));
            sum[i / 16] += (int8_t) q[b * 32 + i];
        }
        judge(v, k, node, "scale of block ", row, b, d[b], top / 127, scale / 127, 0);
        for (int h = 0; h < 2; h++) judge(v, k, node, "sum of half block ", row, 2 * b + h, s[2 * b + h], sum[h], 1, 0);
        judge(v, k, node, "scaled sum of block ", row, b, ds[b], d[b] * (sum[0] + sum[1]), d[b], 0);
    }
}

static void judge_put(Verify *v, const Kernel *k, int node, const Model *m) {
    const Node *n = &v->g->stage[k->stage].node[node];
    const State *st = &v->g->stage[k->stage].state[n->state];
    for (int values = 0; values < (st->v.n ? 2 : 1); values++) {
        int64_t size = shape_size(values ? st->v : st->k);
        for (int r = 0; r < v->rows; r++) {
            v->kernel[k - v->p->kernel].checks++;
            int every = (int) state_every(st), at = (v->past + r) / every;
            if ((v->past + r + 1) % every) continue; // it completes no record
            const float *want = interp_cache(v->in, k->stage, n->state, v->layer, values) + at * size;
            double scale = rms(want, size);
            for (int64_t i = 0; i < size; i++) {
                const void *cell = state_cell(v, m, k->stage, n->state, values, at, i);
                float got;
                uint16_t half;
                memcpy(&half, cell, 2);
                memcpy(&got, cell, v->p->kv_f32 ? 4 : 2);
                if (!v->p->kv_f32) got = f16_to_f32(half);
                double slack = v->p->kv_f32
                    ? 0
                    : 0x1p-10 * fabs(want[i]) + 0x1p-24; // a value in the middle may round the other way
                judge(v, k, node, values ? "element of the value " : "element of the key ", r, i, got, want[i], scale,
                    slack);
            }
        }
    }
}

// Ids are right or wrong.
static void judge_ids(
    Verify *v, const Kernel *k, int node, int row, const int32_t *got, const int32_t *want, int64_t n) {
    for (int64_t i = 0; i < n; i++) judge(v, k, node, "id ", row, i, got[i], want[i], 1, 0);
}

static void after_step(int id, int layer, const Model *m) {
    Verify *v = at_work;
    const Kernel *k = &v->p->kernel[v->p->step[id].kernel];
    const Stage *s = &v->g->stage[k->stage];
    (void) layer;
    for (int i = 0; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        if (n->kernel != k->group) continue;
        if (n->op == OP_put) judge_put(v, k, i, m);
        if (n->op == OP_put || !node_is_stored(v->p, k->stage, i)) continue;
        Value want = interp_value(v->in, n->type == Q8 ? n->in[0] : i);
        for (int r = 0; r < want.rows; r++) {
            const uint8_t *got = place_row(v, m, v->p->place[k->stage][i], r);
            v->kernel[k - v->p->kernel].checks++;
            int64_t wide = shape_last(n->shape);
            for (int64_t part = 0; n->type == Q8 && part < want.size; part += wide)
                judge_q8(v, k, i, r, got + (size_t) (part / wide) * plan_q8_bytes(wide),
                    want.real + r * want.size + part, wide);
            if (n->type == I32)
                judge_ids(v, k, i, r, (const int32_t *) (const void *) got, want.id + r * want.size, want.size);
            else if (n->type != Q8)
                judge_row(v, k, i, r, (const float *) (const void *) got, &want);
        }
    }
}

// ---- batches ----

// Memory for a program of one sequence and one thread; pages are given out from the last to the first.
typedef struct {
    Model m;
    int32_t *token, *pos, *seq, *out, *out_pos, *out_seq;
    bool *want;
    void (*forward)(const Model *m, Worker *w);
} Program;

static void *aligned(Arena *a, uint64_t bytes) {
    uintptr_t p = (uintptr_t) arena_alloc(a, (size_t) bytes + 64);
    return (void *) ((p + 63) / 64 * 64);
}

static void program_open(Program *pr, const Traced *t, Arena *a, int positions) {
    const Plan *p = t->c.plan;
    void *so = dlopen(t->object, RTLD_NOW | RTLD_LOCAL);
    if (!so) fail("cannot load the generated code: %s", dlerror());
    const ModelInfo *info = dlsym(so, "model_info");
    *(void **) &pr->forward = dlsym(so, "model_forward");
    if (!info || !pr->forward) fail("internal: %s does not define model_info and model_forward", t->object);
    if (info->scratch_bytes != p->scratch_bytes || info->weight_bytes != p->weight_bytes)
        fail("internal: the code was generated from another plan");
    Model *m = &pr->m;
    m->weights = (const uint8_t *) file_map(t->weights).p;
    m->scratch = aligned(a, p->scratch_bytes);
    m->thread_scratch = aligned(a, p->thread_bytes);
    m->fixed = aligned(a, p->fixed_bytes);
    memset(m->fixed, 0, p->fixed_bytes);
    m->n_table = (positions + PAGE - 1) / PAGE;
    for (int g = 0; g < p->n_group; g++) {
        m->pool[g] = aligned(a, (uint64_t) m->n_table * p->group[g].page_bytes);
        m->table[g] = NEWN(a, uint32_t, m->n_table);
        for (int i = 0; i < m->n_table; i++) m->table[g][i] = (uint32_t) (m->n_table - 1 - i);
    }
    m->token = pr->token = NEWN(a, int32_t, p->max_batch), m->pos = pr->pos = NEWN(a, int32_t, p->max_batch);
    m->seq = pr->seq = NEWN(a, int32_t, p->max_batch), m->out = pr->out = NEWN(a, int32_t, p->max_out);
    m->out_pos = pr->out_pos = NEWN(a, int32_t, p->max_out), m->out_seq = pr->out_seq = NEWN(a, int32_t, p->max_out);
    m->logits = NEWN(a, float, (int64_t) p->max_out *shape_size(p->graph->global[p->graph->logits].shape));
    pr->want = NEWN(a, bool, p->max_batch);
}

// The next `n` rows through both. Wanted: the first row, the last, and one between.
static void batch(Verify *v, Program *pr, int n) {
    static uint32_t state = 1;
    Model *m = &pr->m;
    if (graph_whole(v->g)) interp_forget(v->in); // each batch is a text
    v->past = interp_past(v->in), v->rows = m->rows = n, v->run = -1, m->outs = 0;
    for (int r = 0; r < n; r++) {
        state = state * 1664525 + 1013904223;
        pr->token[r] = (int32_t) ((uint64_t) state * (uint64_t) v->g->n_vocab >> 32);
        pr->pos[r] = v->past + r;
        pr->want[r] =
            m->outs < v->p->max_out && (r == n - 1 || (m->outs + 1 < v->p->max_out && (r == 0 || r == n / 3)));
        if (!pr->want[r]) continue;
        pr->out[m->outs] = r, pr->out_pos[m->outs] = pr->pos[r], pr->out_seq[m->outs++] = 0;
    }
    interp_begin(v->in, pr->token, n, pr->want);
    Worker w = {0};
    pr->forward(m, &w);
    const Run *last = &v->g->run[v->g->n_run - 1];
    advance(v, last->stage, last->first + last->count - 1);
    interp_end(v->in);
}

// Batches at the start (some rows, one row, rows over a page's end), then around each position where something changes:
// the edge of every window, the end of the first record, and far from the start.
static void all_batches(Verify *v, Program *pr, int positions) {
    const int first[] = {37, 1, 30, 2, 1};
    for (int i = 0; i < COUNT(first); i++) {
        int n = first[i] < v->p->max_batch ? first[i] : v->p->max_batch;
        if (interp_past(v->in) + n <= positions) batch(v, pr, n);
    }
    for (int done = interp_past(v->in);;) {
        int next = positions - 7;
        for (int g = 0; g < v->p->n_group; g++) {
            int64_t edge = v->p->group[g].every > 1 ? v->p->group[g].every - 2 : v->p->group[g].window - 2;
            if (edge >= done && edge < next) next = (int) edge;
        }
        if (next < done || graph_whole(v->g)) break;
        interp_stretch(v->in, next);
        batch(v, pr, v->p->max_batch < 5 ? v->p->max_batch : 5);
        batch(v, pr, 1);
        done = interp_past(v->in);
    }
}

static void print_table(const Verify *v) {
    printf("%-44s %8s %14s %8s\n", "kernel", "rows", "largest error", "allowed");
    for (int i = 0; i < v->p->n_kernel; i++) {
        const Kernel *k = &v->p->kernel[i];
        printf("%-44.*s %8d %14.1e %8.0e%s\n", FMT(k->name), v->kernel[i].checks, v->kernel[i].worst,
            tolerance[k->kind], v->kernel[i].failed ? "  WRONG" : "");
    }
}

// The passes may move and merge, but change no value: same bits from both graphs.
static void check_passes(const Graph *spec, const Graph *lowered, int threads) {
    enum { N = 24 };
    int32_t ids[N];
    bool want[N];
    int n = spec->n_ctx < N ? (int) spec->n_ctx : N;
    for (int i = 0; i < n; i++) ids[i] = (int32_t) ((5 + 7919 * (int64_t) i) % spec->n_vocab), want[i] = i % 5 == 0;
    Interp *a = interp_new(spec, threads), *b = interp_new(lowered, threads);
    interp_skip_q8(b, true);
    const float *x = interp_eval(a, ids, n, want), *y = interp_eval(b, ids, n, want);
    int64_t width = shape_size(spec->global[spec->logits].shape);
    for (int64_t i = 0; i < (n + 4) / 5 * width; i++)
        if (memcmp(&x[i], &y[i], sizeof *x))
            fail_check("the passes changed a value: logit %lld of position %lld is %.9g in the graph as built and %.9g "
                       "in the lowered one",
                (long long) (i % width), (long long) (i / width * 5), x[i], y[i]);
    interp_free(a);
    interp_free(b);
}

int verify(const char *model, const CompileOptions *opt, int threads) {
    Arena *a = arena_new();
    Traced t = compile_for_verify(a, model, opt);
    const Plan *p = t.c.plan;
    check_passes(t.spec, p->graph, threads);
    int64_t positions = 600; // several blocks of keys; more where a window ends later
    for (int g = 0; g < p->n_group; g++)
        if (p->group[g].window + 32 > positions) positions = p->group[g].window + 32;
    if (positions > p->graph->n_ctx) positions = p->graph->n_ctx;
    Out first = out_new(a);
    Verify v = {.p = p,
        .g = p->graph,
        .first = &first,
        .in = interp_new(p->graph, threads),
        .kernel = NEWN(a, KernelCheck, p->n_kernel)};
    interp_kv_f16(v.in, !p->kv_f32);
    interp_measure(v.in, true);
    Program pr = {0};
    program_open(&pr, &t, a, (int) positions);
    at_work = &v;
    all_batches(&v, &pr, (int) positions);
    for (int i = 0; i < p->n_kernel; i++) {
        if (v.kernel[i].checks) continue;
        if (!v.failed) out(&first, "kernel %.*s never ran, or stores nothing", FMT(p->kernel[i].name));
        v.kernel[i].failed = v.failed = true;
    }
    print_table(&v);
    fflush(stdout);
    if (v.failed) fail_check("%.*s", FMT(out_text(&first)));
    printf("%d kernels agree with the interpreter\n", p->n_kernel);
    interp_free(v.in);
    return 0;
}
