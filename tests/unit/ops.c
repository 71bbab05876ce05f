// Every operator, from a graph's text down to machine code. In: bodies of a layer, as graph text. For each: random weights, the
// interpreter's logits of the graph as read; the plan, its C, compiled; its logits for one batch, single rows, odd cuts, and two
// sequences in a batch. Checked: the program's logits are the interpreter's, and the same bits however rows were cut.
#include "check.h"
#include "driver.h"
#include "emit.h"
#include "interp.h"
#include "model.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 96, WIDTH = 64, ROWS = 40, PAGES = 8 };

// ---- the model ----

static const char head[] =
    "graph tiny \"tiny\" layers=2 vocab=96 ctx=256 embd=64\nglobal x : [64]\nglobal logits : [96]\nresult logits\n"
    "rope rot halves dims=16 base=100 scale=1\nparam half values=[0.5, 0.25]\nparam which values=[2, 1]\n"
    "numbers fac values=[35184372088833, 7, 9007199254740991]\nnumbers rem values=[13, 31, 17, 35]\n"
    "numbers base values=[0, 13, 44, 61]\n"
    "stage embed {\nweight token_embd type=F32 shape=[96, 64]\nid = token\ne = embed(id) weight=token_embd\nok = "
    "set(e) global=x\n}\n"
    "stage block layered {\n%s\nx = get global=x\n%s\nz = add(x, y)\nok = set(z) global=x\n}\n"
    "stage head {\nweight output type=F32 shape=[96, 64] product\nx = get global=x\n%s\nl = matmul(w) "
    "weight=output\nok = set(l) global=logits\n}\n"
    "run embed\nrun block first=0 count=2\nrun head\n";

typedef struct {
    const char *name, *data, *body; // weights and states; operators from x [64] to y [64]
    const char *end;                // in the head, from x to w; NULL: w is x
} Case;

static const Case cases[] = {
#include "ops_cases.h"
};

static uint32_t seed = 1;
static float random_float(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float) (int) (seed >> 8) / (float) (1 << 23) - 1;
}

// Random numbers as the type has them: F32, or Q8_0 blocks.
static void write_random(GgufWriter *w, int type, int64_t n, float size) {
    bool q8 = str_is(str(type_info(type)->name), "Q8_0");
    for (int64_t i = 0; i < n; i += 32) {
        float f[32];
        uint8_t block[34] = {(uint8_t) (seed >> 20 & 63), 0x18}; // d: about 2^-9
        for (int j = 0; j < 32; j++) f[j] = random_float() * size;
        for (int j = 0; j < 32; j++) block[2 + j] = (uint8_t) (int8_t) (random_float() * 100);
        int count = n - i < 32 ? (int) (n - i) : 32;
        gguf_write_data(
            w, q8 ? (const void *) block : (const void *) f, q8 ? sizeof block : sizeof *f * (size_t) count);
    }
}

static Graph *read_case(Arena *a, const Case *c) {
    Str text = str_fmt(a, head, c->data, c->body, c->end ? c->end : "w = reshape(x) : [64]");
    return graph_read(a, c->name, text);
}

// Gives each weight tensors of its own, and writes them.
static Gguf *give_weights(Arena *a, Graph **g, int n) {
    const char *path = str_z(a, str_fmt(a, "%s/ops.gguf", temp_dir()));
    GgufWriter *w = gguf_create(path);
    int tensors = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < g[0]->n_stage; i++)
            for (int j = 0; j < g[0]->stage[i].n_weight; j++) {
                Weight *m = &g[0]->stage[i].weight[j];
                int64_t layers = g[0]->stage[i].layered ? g[0]->n_layer : 1, count = layers * weight_tensors(m);
                int *list = NEWN(a, int, count);
                for (int64_t t = 0; t < count; t++) {
                    int64_t out = m->part_out[t % weight_tensors(m) / (m->apart ? m->stack : 1)] *
                        (m->apart ? 1 : weight_stack(m)),
                            ne[2] = {m->in, out};
                    if (pass) write_random(w, m->type, m->in * out, m->product ? 1.5f / sqrtf((float) m->in) : 0.7f);
                    else gguf_put_tensor(w, str_fmt(a, "t%d", tensors), m->type, 2, ne), list[t] = tensors++;
                }
                for (int k = 0; k < n && !pass; k++) g[k]->stage[i].weight[j].tensor = list;
            }
        if (!pass) gguf_begin_data(w);
    }
    gguf_finish(w);
    Gguf *file = gguf_open(path);
    for (int k = 0; k < n; k++) g[k]->gguf = file;
    return file;
}

// ---- the program ----

// A team of one, inside of the shared object itself.
static const char team[] =
    "\nstatic int next_piece;\nint piece_claim(Worker *w, int n) { (void) w; return next_piece < n ? next_piece++ : "
    "-1; }\n"
    "void piece_done(Worker *w, int n) { (void) w, (void) n; }\nvoid step_wait(Worker *w) { (void) w; next_piece = 0; "
    "}\n"
    "static void nothing(int id, int layer, const Model *m) { (void) id, (void) layer, (void) m; }\n"
    "void (*trace_before)(int id, int layer, const Model *m) = nothing;\nvoid (*trace_after)(int id, int layer, const "
    "Model *m) = nothing;\n";

typedef struct {
    Model m;
    const ModelInfo *info;
    void (*forward)(const Model *m, Worker *w);
    int32_t token[ROWS], pos[ROWS], seq[ROWS], out[ROWS], out_pos[ROWS], out_seq[ROWS];
} Program;

static void *aligned(Arena *a, uint64_t bytes) {
    uintptr_t p = (uintptr_t) arena_alloc(a, (size_t) bytes + 64);
    return (void *) ((p + 63) / 64 * 64);
}

static void write_text(const char *path, Str text) {
    FileOut *f = file_create(path);
    file_write(f, text.p, text.n);
    file_commit(f, false);
}

static void open_program(Arena *a, Program *pr, const Plan *p, const Toolchain *tools, int number) {
    const char *dir = str_z(a, str_fmt(a, "%s/%d", temp_dir(), number));
    CHECK(system(str_z(a, str_fmt(a, "mkdir -p '%s'", dir))) == 0);
    Str source = emit_model(p, &(EmitOptions){.source_name = "tiny", .selftest = S("")}, "cc");
    write_text(str_z(a, str_fmt(a, "%s/model.c", dir)), str_fmt(a, "%.*s%s", FMT(source), team));
    write_runtime(dir, false);
    compile_traced(a, tools, p->target, dir);
    const char *weights = str_z(a, str_fmt(a, "%s/weights", dir));
    FileOut *f = file_create(weights);
    pack_weights(p, f);
    file_commit(f, false);
    void *so = dlopen(str_z(a, str_fmt(a, "%s/model.so", dir)), RTLD_NOW | RTLD_LOCAL);
    if (!so) fail("%s", dlerror());
    *(void **) &pr->forward = dlsym(so, "model_forward");
    pr->info = dlsym(so, "model_info");
    Str packed = file_read(a, weights);
    uint8_t *copy = aligned(a, packed.n);
    memcpy(copy, packed.p, packed.n);
    Model *m = &pr->m;
    *m = (Model){.weights = copy,
        .n_table = PAGES,
        .token = pr->token,
        .pos = pr->pos,
        .seq = pr->seq,
        .out = pr->out,
        .out_pos = pr->out_pos,
        .out_seq = pr->out_seq};
    m->scratch = aligned(a, p->scratch_bytes), m->thread_scratch = aligned(a, p->thread_bytes + 64);
    m->logits = aligned(a, sizeof(float) * VOCAB * ROWS);
    m->fixed = aligned(a, 2 * p->fixed_bytes + 64);
    for (int g = 0; g < p->n_group; g++) {
        m->pool[g] = aligned(a, 2 * PAGES * p->group[g].page_bytes);
        m->table[g] = NEWN(a, uint32_t, 2 * PAGES);
        for (int i = 0; i < 2 * PAGES; i++) m->table[g][i] = (uint32_t) (2 * PAGES - 1 - i);
    }
}

// The two sequences are the same text, so both have the logits of one. Rows from0 .. to0-1 of the first, from1 .. to1-1 of the second.
static void run_batch(
    Program *pr, const int32_t *ids, int from0, int to0, int from1, int to1, float *logits0, float *logits1) {
    int n = 0;
    for (int s = 0; s < 2; s++)
        for (int p = s ? from1 : from0; p < (s ? to1 : to0); p++, n++) {
            pr->token[n] = ids[p], pr->pos[n] = pr->out_pos[n] = p;
            pr->seq[n] = pr->out_seq[n] = s, pr->out[n] = n;
        }
    pr->m.rows = pr->m.outs = n;
    Worker w = {0};
    memset(pr->m.scratch, 0xff, 64);
    pr->forward(&pr->m, &w);
    memcpy(logits0 + (size_t) from0 * VOCAB, pr->m.logits, sizeof(float) * VOCAB * (size_t) (to0 - from0));
    memcpy(logits1 + (size_t) from1 * VOCAB, pr->m.logits + (size_t) (to0 - from0) * VOCAB,
        sizeof(float) * VOCAB * (size_t) (to1 - from1));
}

static void forget(Arena *a, Program *pr, const Plan *p) {
    (void) a;
    memset(pr->m.fixed, 0, 2 * p->fixed_bytes);
    for (int g = 0; g < p->n_group; g++)
        memset(pr->m.pool[g], 0xff, 2 * PAGES * p->group[g].page_bytes); // NaN: nothing is read before it is written
}

static double difference(const float *got, const float *want) {
    double square = 0, worst = 0;
    for (int i = 0; i < VOCAB * ROWS; i++) square += (double) want[i] * want[i];
    for (int i = 0; i < VOCAB * ROWS; i++) worst = fmax(worst, isfinite(got[i]) ? fabs(got[i] - want[i]) : INFINITY);
    return worst / sqrt(square / (VOCAB * ROWS));
}

static void check_case(const Case *c, const Toolchain *tools, const Target *target, int number, bool no_fuse) {
    Arena *a = arena_new();
    Graph *g[2] = {read_case(a, c), read_case(a, c)};
    Gguf *file = give_weights(a, g, 2);
    int32_t ids[ROWS];
    bool want[ROWS], whole = graph_whole(g[0]);
    for (int i = 0; i < ROWS; i++) ids[i] = (i * 37 + 11) % VOCAB, want[i] = true;
    Plan *p = plan_make(g[1], target,
        &(PlanOptions){
            .max_batch = ROWS, .max_out = ROWS, .no_fuse = no_fuse, .kv_given = true, .kv_f32 = number % 3 != 0});
    Interp *in = interp_new(g[0], 1), *low = interp_new(g[1], 1);
    interp_kv_f16(in, !p->kv_f32), interp_kv_f16(low, !p->kv_f32);
    float *logits = NEWN(a, float, VOCAB *ROWS), *first = NEWN(a, float, VOCAB *ROWS),
          *other = NEWN(a, float, VOCAB *ROWS), *lowered = NEWN(a, float, VOCAB *ROWS);
    memcpy(logits, interp_eval(in, ids, ROWS, want), sizeof(float) * VOCAB * ROWS);
    memcpy(lowered, interp_eval(low, ids, ROWS, want), sizeof(float) * VOCAB * ROWS);
    Program pr = {0};
    open_program(a, &pr, p, tools, number);
    forget(a, &pr, p);
    run_batch(&pr, ids, 0, ROWS, 0, 0, first, other);
    double error = difference(first, lowered), spec = difference(lowered, logits);
    printf(
        "%-28s program to lowered %.1e, lowered to read %.1e%s\n", c->name, error, spec, no_fuse ? " (unfused)" : "");
    CHECK(error < (p->kv_f32 ? 1e-5 : 5e-4)); // f16: keys in the middle round either way
    CHECK(spec < 0.1);
    static const int cuts[][8] = {{1, 2, 3, 4, 5, 6, 7, ROWS}, {7, 8, 21, ROWS}, {17, 36, ROWS}};
    for (int k = 0; k < COUNT(cuts) && !whole; k++) {
        forget(a, &pr, p);
        for (int i = 0, from = 0; from < ROWS; from = cuts[k][i++])
            run_batch(&pr, ids, from, cuts[k][i], 0, 0, other, other);
        CHECK(!memcmp(first, other, sizeof(float) * VOCAB * ROWS));
    }
    float *second = NEWN(a, float, VOCAB *ROWS);
    if (!whole) { // two sequences, each in two batches
        forget(a, &pr, p);
        run_batch(&pr, ids, 0, 25, 0, 5, other, second);
        run_batch(&pr, ids, 25, ROWS, 5, 20, other, second);
        run_batch(&pr, ids, ROWS, ROWS, 20, ROWS, other, second);
        CHECK(!memcmp(first, other, sizeof(float) * VOCAB * ROWS) &&
            !memcmp(first, second, sizeof(float) * VOCAB * ROWS));
    }
    interp_free(in), interp_free(low);
    gguf_close(file);
    arena_free(a);
}

int main(int argc, char **argv) {
    Arena *a = arena_new();
    Toolchain tools = toolchain_find(NULL, "native");
    const Target *target = target_for(a, tools.cc, tools.march);
    int number = 0;
    for (int i = 0; i < COUNT(cases); i++) {
        if (argc > 1 && !strstr(cases[i].name, argv[1])) continue;
        for (int no_fuse = 0; no_fuse < (argc > 1 ? 2 : 1 + (i % 4 == 0)); no_fuse++)
            check_case(&cases[i], &tools, target, number++, no_fuse);
    }
    return check_done();
}
