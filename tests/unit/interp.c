// The interpreter on graphs made by hand: every operator on numbers that can be checked by eye, and a small layer with
// attention against the same arithmetic written out once more; cuts, threads and dropped rows change no bit.
#include "../../compiler/interp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int failures;
static void check_close(const char *what, const float *got, const double *want, int n) {
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-6 * (1 + fabs(want[i])))) {
            printf("%s: element %d is %.9g, expected %.9g\n", what, i, got[i], want[i]);
            failures++;
            return;
        }
}

static Shape shape(int n, int64_t a, int64_t b, int64_t c) {
    return (Shape){.n = n, .d = {a, b, c}};
}

// A graph over tensors in memory; tensor i of the list becomes weight i of every stage that wants it.
typedef struct {
    Arena *a;
    Graph *g;
    Gguf gguf;
    GgufTensor tensor[16];
} Model;

static void model_begin(Model *m) {
    memset(m, 0, sizeof *m);
    m->a = arena_new();
    m->g = graph_new(m->a);
    m->gguf.tensor = m->tensor;
    m->g->gguf = &m->gguf;
    m->g->n_ctx = 64;
}

static int tensor_f32(Model *m, const float *data, int64_t in, int64_t out) {
    GgufTensor *t = &m->tensor[m->gguf.n_tensor];
    *t = (GgufTensor){
        .n_dims = 2, .ne = {in, out, 1, 1}, .n_elems = (uint64_t) (in * out), .n_bytes = (uint64_t) (in * out) * 4};
    t->data = (const uint8_t *) data;
    return m->gguf.n_tensor++;
}

// A weight of a stage: its tensor of layer l is number first + l * step.
static int weight_of(Model *m, int stage, Shape as_data, int first, int step) {
    Stage *s = &m->g->stage[stage];
    int layers = s->layered ? (int) m->g->n_layer : 1;
    Weight w = {.name = S("w"), .shape = as_data, .in = shape_last(as_data), .n_part = 1};
    w.out = shape_size(as_data) / w.in;
    w.part_out = NEW(m->a, int64_t);
    w.part_out[0] = w.out;
    w.tensor = NEWN(m->a, int, layers);
    for (int l = 0; l < layers; l++) w.tensor[l] = first + l * step;
    *PUSH(m->a, s->weight, s->n_weight, s->cap_weight) = w;
    return s->n_weight - 1;
}

static void stage_run(Model *m, int stage, int first, int count) {
    *PUSH(m->a, m->g->run, m->g->n_run, m->g->cap_run) = (Run){stage, first, count};
}

static int map1(Graph *g, Op op, int a, double p, double q) {
    int i = node_new(g, 0, NODE(.op = op, .n_in = 1, .in = {a}));
    g->stage[0].node[i].real[0] = p, g->stage[0].node[i].real[1] = q;
    return i;
}

static int op2(Graph *g, int stage, Op op, int a, int b) {
    return node_new(g, stage, NODE(.op = op, .n_in = 2, .in = {a, b}));
}

// ---- operators one by one ----

static void test_rows(void) {
    static const float data[6] = {1, -2, 3, 0.5f, 0, -1}, scale[3] = {2, 1, 10};
    Model m;
    model_begin(&m);
    Graph *g = m.g;
    graph_stage(g, S("only"), false);
    int w = weight_of(&m, 0, shape(2, 2, 3, 0), tensor_f32(&m, data, 3, 2), 0);
    int s = weight_of(&m, 0, shape(1, 3, 0, 0), tensor_f32(&m, scale, 3, 1), 0);
    int x = node_new(g, 0, (NodeSpec){.op = OP_weight, .weight = w, .state = -1});
    int b = node_new(g, 0, (NodeSpec){.op = OP_weight, .weight = s, .state = -1});
    int mul = op2(g, 0, OP_mul, x, b);
    int sum = node_new(g, 0, NODE(.op = OP_sum, .n_in = 1, .in = {x})),
        top = node_new(g, 0, NODE(.op = OP_rmax, .n_in = 1, .in = {x}));
    int less = op2(g, 0, OP_sub, x, sum);
    int soft = node_new(g, 0, NODE(.op = OP_softmax, .n_in = 1, .in = {x}));
    int rms = op2(g, 0, OP_rms_norm, x, b);
    g->stage[0].node[rms].real[0] = 0.25;
    int layer = node_new(g, 0, NODE(.op = OP_layer_norm, .n_in = 1, .in = {x})),
        l2 = node_new(g, 0, NODE(.op = OP_l2_norm, .n_in = 1, .in = {x}));
    int part = node_new(g, 0, NODE(.op = OP_slice, .n_in = 1, .in = {x}, .num = {1, 1}, .shape = shape(2, 2, 2, 0)));
    int cat = op2(g, 0, OP_concat, part, x);
    int flat = node_new(g, 0, NODE(.op = OP_reshape, .n_in = 1, .in = {x}, .shape = shape(1, 6, 0, 0)));
    int clamp = map1(g, OP_clamp, flat, -1, 1), cap = map1(g, OP_softcap, flat, 2, 0),
        silu = map1(g, OP_silu, flat, 0, 0);
    int gelu = map1(g, OP_gelu, flat, 0, 0), sign = map1(g, OP_sign, flat, 0, 0);
    g->logits = graph_global(g, S("y"), shape(1, 6, 0, 0), F32, RATE_CONST);
    node_new(g, 0, NODE(.op = OP_set, .n_in = 1, .in = {flat}, .num = {g->logits}));
    stage_run(&m, 0, 0, 1);
    Interp *in = interp_new(g, 1);
    interp_begin(in, (int32_t[]){0}, 1, NULL);
    interp_step(in, 0, 0);
    check_close("mul broadcasts", interp_value(in, mul).real, (double[]){2, -2, 30, 1, 0, -10}, 6);
    check_close("sum", interp_value(in, sum).real, (double[]){2, -0.5}, 2);
    check_close("rmax", interp_value(in, top).real, (double[]){3, 0.5}, 2);
    check_close("sub broadcasts", interp_value(in, less).real, (double[]){-1, -4, 1, 1, 0.5, -0.5}, 6);
    double e0 = exp(1) + exp(-2) + exp(3), r0 = sqrt(14 / 3. + 0.25), d0 = sqrt((1 / 9. + 64 / 9. + 49 / 9.) / 3);
    check_close("softmax", interp_value(in, soft).real, (double[]){exp(1) / e0, exp(-2) / e0, exp(3) / e0}, 3);
    check_close("rms_norm", interp_value(in, rms).real, (double[]){2 / r0, -2 / r0, 30 / r0}, 3);
    check_close("layer_norm", interp_value(in, layer).real, (double[]){1 / 3. / d0, -8 / 3. / d0, 7 / 3. / d0}, 3);
    check_close("l2_norm", interp_value(in, l2).real, (double[]){1 / sqrt(14), -2 / sqrt(14), 3 / sqrt(14)}, 3);
    check_close("slice", interp_value(in, part).real, (double[]){-2, 3, 0, -1}, 4);
    check_close("concat", interp_value(in, cat).real, (double[]){-2, 3, 1, -2, 3, 0, -1, 0.5, 0, -1}, 10);
    check_close("clamp", interp_value(in, clamp).real, (double[]){1, -1, 1, 0.5, 0, -1}, 6);
    check_close("softcap", interp_value(in, cap).real, (double[]){2 * tanh(0.5), 2 * tanh(-1.)}, 2);
    check_close("silu", interp_value(in, silu).real, (double[]){1 / (1 + exp(-1)), -2 / (1 + exp(2))}, 2);
    check_close("gelu", interp_value(in, gelu).real, (double[]){0.8411919906, -0.0454023059}, 2);
    check_close("sign", interp_value(in, sign).real, (double[]){1, -1, 1, 1, 0, -1}, 6);
    interp_free(in);
    arena_free(m.a);
}

// Sizes of terms: of sums, and of what follows them in their kernel, not of what another kernel makes of them.
static void test_terms(void) {
    static const float data[6] = {1, -2, 3, 0.5f, 0, -0.5f};
    Model m;
    model_begin(&m);
    Graph *g = m.g;
    graph_stage(g, S("only"), false);
    int w = weight_of(&m, 0, shape(2, 2, 3, 0), tensor_f32(&m, data, 3, 2), 0);
    int x = node_new(g, 0, (NodeSpec){.op = OP_weight, .weight = w, .state = -1});
    int sum = node_new(g, 0, NODE(.op = OP_sum, .n_in = 1, .in = {x}));
    int less = op2(g, 0, OP_sub, x, sum), again = node_new(g, 0, NODE(.op = OP_sum, .n_in = 1, .in = {less}));
    int apart = op2(g, 0, OP_add, x, sum), plain = op2(g, 0, OP_add, x, x);
    g->stage[0].node[sum].kernel = g->stage[0].node[less].kernel = g->stage[0].node[again].kernel = 0;
    g->stage[0].node[plain].kernel = 0, g->stage[0].node[apart].kernel = 1;
    g->logits = graph_global(g, S("y"), shape(1, 6, 0, 0), F32, RATE_CONST);
    stage_run(&m, 0, 0, 1);
    Interp *in = interp_new(g, 1);
    interp_measure(in, true);
    interp_begin(in, (int32_t[]){0}, 1, NULL);
    interp_step(in, 0, 0);
    double e[6], all[2] = {0};
    for (int i = 0; i < 6; i++) {
        double y = i < 3 ? data[i] - 2 : data[i];
        e[i] = sqrt(y * y + (i < 3 ? 14 : 0.5)), all[i / 3] += e[i] * e[i];
    }
    check_close("the terms of sums", interp_value(in, sum).terms, (double[]){sqrt(14), sqrt(0.5)}, 2);
    check_close("what becomes of them", interp_value(in, less).terms, e, 6);
    check_close("summed again", interp_value(in, again).terms, (double[]){sqrt(all[0]), sqrt(all[1])}, 2);
    if (interp_value(in, apart).terms || interp_value(in, plain).terms)
        printf("terms of what is not summed in this kernel\n"), failures++;
    interp_free(in);
    arena_free(m.a);
}

static void test_q8(void) {
    float data[64];
    for (int i = 0; i < 64; i++) data[i] = (float) ((i * 37 % 64) - 31) * (i < 32 ? 0.01f : 3);
    Model m;
    model_begin(&m);
    graph_stage(m.g, S("only"), false);
    int w = weight_of(&m, 0, shape(1, 64, 0, 0), tensor_f32(&m, data, 64, 1), 0);
    int x = node_new(m.g, 0, (NodeSpec){.op = OP_weight, .weight = w, .state = -1});
    int q = node_new(m.g, 0, NODE(.op = OP_q8, .n_in = 1, .in = {x}));
    m.g->logits = graph_global(m.g, S("y"), shape(1, 64, 0, 0), F32, RATE_CONST);
    stage_run(&m, 0, 0, 1);
    Interp *in = interp_new(m.g, 1);
    interp_begin(in, (int32_t[]){0}, 1, NULL);
    interp_step(in, 0, 0);
    for (int b = 0; b < 64; b += 32) {
        float top = 0;
        for (int i = b; i < b + 32; i++) top = fmaxf(top, fabsf(data[i]));
        for (int i = b; i < b + 32; i++) {
            float d = top / 127, y = interp_value(in, q).real[i];
            if (fabsf(y - data[i]) > 0.5001f * d || fabsf(y / d - rintf(y / d)) > 1e-4f)
                printf("q8: element %d\n", i), failures++;
        }
    }
    interp_free(in);
    arena_free(m.a);
}

// ---- a layer with attention ----

enum { D = 8, HEADS = 4, KV = 2, HD = 4, VOCAB = 11, LAYERS = 3, WINDOW = 5, T = 23 };
static float table[VOCAB * D], wq[LAYERS][HEADS * HD * D], wk[LAYERS][KV * HD * D], wv[LAYERS][KV * HD * D],
    wo[LAYERS][D * HEADS * HD];

static void random_fill(float *p, int n, float size) {
    static uint64_t seed = 1;
    for (int i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        p[i] = ((float) (seed >> 40) / (float) (1 << 23) - 1) * size;
    }
}

static Graph *layer_model(Model *m) {
    model_begin(m);
    Graph *g = m->g;
    g->n_layer = LAYERS, g->n_vocab = VOCAB;
    int t = tensor_f32(m, table, D, VOCAB), first = m->gguf.n_tensor;
    for (int l = 0; l < LAYERS; l++) {
        tensor_f32(m, wq[l], D, HEADS * HD), tensor_f32(m, wk[l], D, KV * HD);
        tensor_f32(m, wv[l], D, KV * HD), tensor_f32(m, wo[l], HEADS * HD, D);
    }
    *PUSH(m->a, g->rope, g->n_rope, g->cap_rope) =
        (Rope){.name = S("rot"), .halves = true, .dims = HD, .base = 100, .scale = 1, .attn = 1};
    int x = graph_global(g, S("x"), shape(1, D, 0, 0), F32, RATE_ROW),
        ang = graph_global(g, S("angles"), shape(2, HD / 2, 2, 0), F32, RATE_ROW);
    g->logits = graph_global(g, S("logits"), shape(1, VOCAB, 0, 0), F32, RATE_ROW);
    int e = graph_stage(g, S("embed"), false), b = graph_stage(g, S("block"), true),
        h = graph_stage(g, S("head"), false);
    // embed
    int we = weight_of(m, e, shape(2, VOCAB, D, 0), t, 0), id = node_new(g, e, NODE(.op = OP_token)),
        at = node_new(g, e, NODE(.op = OP_position));
    int row = node_new(g, e, (NodeSpec){.op = OP_embed, .n_in = 1, .in = {id}, .weight = we, .state = -1});
    node_new(g, e, NODE(.op = OP_set, .n_in = 1, .in = {row}, .num = {x}));
    int turn = node_new(g, e, NODE(.op = OP_angles, .n_in = 1, .in = {at}));
    node_new(g, e, NODE(.op = OP_set, .n_in = 1, .in = {turn}, .num = {ang}));
    // block
    Stage *s = &g->stage[b];
    *PUSH(m->a, s->state, s->n_state, s->cap_state) =
        (State){.name = S("kv"), .k = shape(2, KV, HD, 0), .v = shape(2, KV, HD, 0), .sees = SEES_WINDOW, .n = WINDOW};
    int w[4];
    for (int i = 0; i < 4; i++)
        w[i] = weight_of(
            m, b, i == 3 ? shape(2, D, HEADS * HD, 0) : shape(2, i == 0 ? HEADS * HD : KV * HD, D, 0), first + i, 4);
    int gx = node_new(g, b, NODE(.op = OP_get, .num = {x})), ga = node_new(g, b, NODE(.op = OP_get, .num = {ang}));
    int q = node_new(g, b,
        (NodeSpec){
            .op = OP_matmul, .n_in = 1, .in = {gx}, .weight = w[0], .state = -1, .shape = shape(2, HEADS, HD, 0)});
    int k = node_new(g, b,
        (NodeSpec){.op = OP_matmul, .n_in = 1, .in = {gx}, .weight = w[1], .state = -1, .shape = shape(2, KV, HD, 0)});
    int v = node_new(g, b,
        (NodeSpec){.op = OP_matmul, .n_in = 1, .in = {gx}, .weight = w[2], .state = -1, .shape = shape(2, KV, HD, 0)});
    int rq = node_new(g, b, NODE(.op = OP_rope, .n_in = 2, .in = {q, ga}, .num = {HD, 1}));
    int rk = node_new(g, b, NODE(.op = OP_rope, .n_in = 2, .in = {k, ga}, .num = {HD, 1}));
    int put = node_new(g, b, (NodeSpec){.op = OP_put, .n_in = 2, .in = {rk, v}, .weight = -1, .state = 0});
    int att = node_new(g, b, NODE(.op = OP_attention, .n_in = 2, .in = {rq, put}));
    g->stage[b].node[att].real[0] = 0.5;
    int o = node_new(g, b, (NodeSpec){.op = OP_matmul, .n_in = 1, .in = {att}, .weight = w[3], .state = -1});
    int sum = op2(g, b, OP_add, gx, o);
    node_new(g, b, NODE(.op = OP_set, .n_in = 1, .in = {sum}, .num = {x}));
    // head
    int wh = weight_of(m, h, shape(2, VOCAB, D, 0), t, 0), hx = node_new(g, h, NODE(.op = OP_get, .num = {x}));
    int y = node_new(g, h, (NodeSpec){.op = OP_matmul, .n_in = 1, .in = {hx}, .weight = wh, .state = -1});
    node_new(g, h, NODE(.op = OP_set, .n_in = 1, .in = {y}, .num = {g->logits}));
    stage_run(m, e, 0, 1), stage_run(m, b, 0, LAYERS), stage_run(m, h, 0, 1);
    graph_check(g, false);
    return g;
}

static void product(const float *w, const double *x, int n, int k, double *y) {
    for (int o = 0; o < n; o++) {
        y[o] = 0;
        for (int i = 0; i < k; i++) y[o] += w[o * k + i] * x[i];
    }
}

static void turn_heads(double *x, int heads, int pos) {
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < HD / 2; i++) {
            double t = pos * pow(100, -2. * i / HD), *a = x + h * HD + i, *b = a + HD / 2,
                   u = *a * cos(t) - *b * sin(t);
            *b = *a * sin(t) + *b * cos(t);
            *a = u;
        }
}

// The same model once more, in double throughout.
static void layer_by_hand(const int32_t *ids, double logits[T][VOCAB]) {
    static double k[LAYERS][T][KV * HD], v[LAYERS][T][KV * HD];
    for (int t = 0; t < T; t++) {
        double x[D], q[HEADS * HD], o[HEADS * HD], y[D];
        for (int i = 0; i < D; i++) x[i] = table[ids[t] * D + i];
        for (int l = 0; l < LAYERS; l++) {
            product(wq[l], x, HEADS * HD, D, q), product(wk[l], x, KV * HD, D, k[l][t]),
                product(wv[l], x, KV * HD, D, v[l][t]);
            turn_heads(q, HEADS, t), turn_heads(k[l][t], KV, t);
            for (int h = 0; h < HEADS; h++) {
                double sum = 0, acc[HD] = {0};
                for (int p = t - WINDOW < -1 ? 0 : t - WINDOW + 1; p <= t; p++) {
                    double s = 0;
                    for (int i = 0; i < HD; i++) s += q[h * HD + i] * k[l][p][h / 2 * HD + i];
                    s = exp(s / 2), sum += s;
                    for (int i = 0; i < HD; i++) acc[i] += s * v[l][p][h / 2 * HD + i];
                }
                for (int i = 0; i < HD; i++) o[h * HD + i] = acc[i] / sum;
            }
            product(wo[l], o, D, HEADS * HD, y);
            for (int i = 0; i < D; i++) x[i] += y[i];
        }
        product(table, x, VOCAB, D, logits[t]);
    }
}

static void test_layer(void) {
    random_fill(table, VOCAB * D, 1);
    for (int l = 0; l < LAYERS; l++)
        random_fill(wq[l], HEADS * HD * D, 0.7f), random_fill(wk[l], KV * HD * D, 0.7f),
            random_fill(wv[l], KV * HD * D, 0.7f), random_fill(wo[l], D * HEADS * HD, 0.4f);
    Model m;
    Graph *g = layer_model(&m);
    int32_t ids[T];
    bool all[T], some[T];
    for (int i = 0; i < T; i++) ids[i] = (i * i + 3) % VOCAB, all[i] = true, some[i] = i % 7 == 2;
    static double want[T][VOCAB];
    layer_by_hand(ids, want);
    static float whole[T * VOCAB];
    Interp *in = interp_new(g, 1);
    memcpy(whole, interp_eval(in, ids, T, all), sizeof whole);
    check_close("attention layers", whole, want[0], T * VOCAB);
    // dropped rows, cuts, threads: same bits
    interp_forget(in);
    const float *few = interp_eval(in, ids, T, some);
    for (int i = 2, k = 0; i < T; i += 7, k++)
        if (memcmp(few + k * VOCAB, whole + i * VOCAB, VOCAB * sizeof(float)))
            printf("wanted row %d differs\n", i), failures++;
    Interp *cut = interp_new(g, 3);
    for (int at = 0, n = 1; at<T; at += n, n = at + n * 2> T ? T - at : n * 2)
        if (memcmp(interp_eval(cut, ids + at, n, all), whole + at * VOCAB, (size_t) n * VOCAB * sizeof(float)))
            printf("cut at %d differs\n", at), failures++;
    if (interp_past(cut) != T) printf("past\n"), failures++;
    // wrong products: the same wrong ones for a seed, others for another, none without
    static float moved[3][T * VOCAB];
    for (int i = 0; i < 4; i++) {
        interp_forget(i % 2 ? cut : in);
        interp_jitter(i % 2 ? cut : in, i < 3 ? 1e-3 : 0, i < 2 ? 1 : 2);
        const float *y = interp_eval(i % 2 ? cut : in, ids, T, all);
        if (i < 3) memcpy(moved[i], y, sizeof *moved);
        else if (memcmp(y, whole, sizeof whole)) printf("jitter 0 changes a value\n"), failures++;
    }
    double most = 0;
    for (int i = 0; i < T * VOCAB; i++) most = fmax(most, fabs(moved[0][i] - whole[i]));
    if (!(most > 1e-6 && most < 0.1)) printf("jitter 1e-3 moves a logit by %g\n", most), failures++;
    if (memcmp(moved[0], moved[1], sizeof *moved)) printf("one seed, two jitters\n"), failures++;
    if (!memcmp(moved[0], moved[2], sizeof *moved)) printf("two seeds, one jitter\n"), failures++;
    interp_free(in);
    interp_free(cut);
    arena_free(m.a);
}

static void test_angles(void) {
    Rope plain = {.dims = 8, .base = 10000, .scale = 0.5, .attn = 1};
    float y[8], factor[4] = {1, 2, 4, 8};
    angles_row(&plain, factor, 7, y);
    check_close("linear, factors", y,
        (double[]){cos(3.5), sin(3.5), cos(0.175), sin(0.175), cos(0.035 / 4), sin(0.035 / 4), cos(0.0035 / 8),
            sin(0.0035 / 8)},
        8);
    // Original context 64: the pairs' wavelengths are 6.3, 62.8, 628 and 6283, so c(32) = -0.5.. and c(1) = 1.008: lo 0, hi 2.
    Rope yarn = {.dims = 8,
        .base = 10000,
        .scale = 0.25,
        .attn = 1,
        .yarn = true,
        .ext = 1,
        .beta_fast = 32,
        .beta_slow = 1,
        .orig = 64};
    angles_row(&yarn, NULL, 3, y);
    double m = 1 + 0.1 * log(4), t1 = 0.3 * (0.5 * 0.25 + 0.5), t2 = 0.03 * 0.25;
    check_close("yarn", y, (double[]){m * cos(3), m * sin(3), m * cos(t1), m * sin(t1), m * cos(t2), m * sin(t2)}, 6);
}

int main(void) {
    test_rows();
    test_terms();
    test_q8();
    test_layer();
    test_angles();
    if (failures) printf("%d failed\n", failures);
    return failures != 0;
}
