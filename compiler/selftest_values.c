// What a program's own `selftest` compares. In: a plan. Out: a short text, a few of its logits, and how far a right
// program may be from them.
//
// The interpreter evaluates the lowered graph, so inputs of products and the cache are rounded as the program rounds
// them. It sums in double, the program in f32: a last bit may round an input to the next of its 255 steps, a few of
// those change all that is rounded after them, and one may choose another expert. How much becomes of a last bit is the
// model's own matter. So it is measured: the text is evaluated again with products that are wrong by far more than a
// right program's. Of a small model, where single roundings tell and time does not, the calmest of some texts is taken.
#include "selftest_values.h"
#include "emit.h"
#include "interp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// JITTER: what the products are off by; half of what `verify` allows, and about a hundred times what programs are.
// SPREADS: a right program's logits stay within that many standard deviations of what the jitter does to all logits.
#define JITTER 1e-5
#define SPREADS 5
enum { TEXTS = 4, RUNS = 4, SMALL = 16 << 20 };

// No tolerance is below this part of the logits' deviation: operators other than products err, too, and where something
// is rounded, a rare flip need not be among the measured ones.
static double least(const Plan *p) {
    bool rounds = !p->kv_f32;
    for (int i = 0; i < p->graph->n_stage; i++)
        for (int j = 0; j < p->graph->stage[i].n_node; j++) rounds |= p->graph->stage[i].node[j].op == OP_q8;
    return rounds ? 0.5 : 2e-3;
}

static SelfTestValues text_of(const Graph *g, int number) {
    SelfTestValues s = {.width = shape_size(g->global[g->logits].shape)};
    int most = graph_whole(g) ? SELFTEST_CHECKED : SELFTEST_TOKENS; // there, a row's values depend on all
    s.n_ids = g->n_ctx < most ? (int) g->n_ctx : most;
    s.n = s.n_ids < SELFTEST_CHECKED ? s.n_ids : SELFTEST_CHECKED;
    for (int i = 0; i < s.n_ids; i++) s.ids[i] = (int32_t) ((1 + 31 * number + 7919 * (int64_t) i) % g->n_vocab);
    return s;
}

static const float *evaluate(Interp *in, const SelfTestValues *s, uint64_t seed) {
    bool want[SELFTEST_CHECKED];
    for (int i = 0; i < s->n; i++) want[i] = true;
    interp_forget(in);
    interp_jitter(in, seed ? JITTER : 0, seed);
    return interp_eval(in, s->ids, s->n, want);
}

// Takes the best tokens and the probes; gives the standard deviation of all logits.
static double take(SelfTestValues *s, const float *logits) {
    double sum = 0, square = 0, count = (double) s->n * (double) s->width;
    for (int i = 0; i < s->n; i++) {
        const float *row = logits + i * s->width;
        for (int64_t v = 0; v < s->width; v++) {
            if (row[v] > row[s->top[i]]) s->top[i] = (int32_t) v;
            sum += row[v], square += (double) row[v] * row[v];
        }
        for (int k = 0; k < SELFTEST_PROBES; k++) s->probe[i][k] = row[k * s->width / SELFTEST_PROBES];
    }
    return sqrt(fmax(square / count - sum / count * (sum / count), 0));
}

// How far the logits of the position that moved most are apart.
static double spread(const SelfTestValues *s, const float *x, const float *y) {
    double most = 0;
    for (int i = 0; i < s->n; i++, x += s->width, y += s->width) {
        double square = 0;
        for (int64_t v = 0; v < s->width; v++) square += ((double) x[v] - y[v]) * ((double) x[v] - y[v]);
        most = fmax(most, sqrt(square / (double) s->width));
    }
    return most;
}

SelfTestValues selftest_values(const Plan *p) {
    const Graph *g = p->graph;
    SelfTestValues best = {0};
    double floor = least(p), calmest = INFINITY; // as parts of the logits' deviation
    bool small = p->weight_bytes < SMALL;
    Interp *in = interp_new(g, 0);
    interp_kv_f16(in, !p->kv_f32);
    int64_t width = shape_size(g->global[g->logits].shape);
    float *logits = NEWN(g->arena, float, SELFTEST_CHECKED *width);
    for (int text = 0; text < (small ? TEXTS : 1) && calmest > floor; text++) {
        SelfTestValues s = text_of(g, text);
        memcpy(logits, evaluate(in, &s, 0), (size_t) (s.n * width) * sizeof *logits);
        double deviation = take(&s, logits), moved = 0;
        for (int run = 1; run <= (small ? RUNS : 1); run++)
            moved = fmax(moved, spread(&s, logits, evaluate(in, &s, (uint64_t) run)));
        s.tolerance = fmax(floor * deviation, SPREADS * moved);
        if (text && !(s.tolerance < calmest * deviation)) continue;
        best = s, calmest = s.tolerance / deviation;
    }
    interp_free(in);
    return best;
}

Str selftest_text(Arena *a, const SelfTestValues *s) {
    Out o = out_new(a);
    out(&o,
        "\n// What the interpreter gives for a few tokens; `selftest` compares.\n// clang-format off\nstatic const "
        "int32_t selftest_ids[] = {");
    for (int i = 0; i < s->n_ids; i++) out(&o, "%s%d", i ? ", " : "", s->ids[i]);
    out(&o, "};\nstatic const SelfCheck selftest_check[] = {\n");
    for (int i = 0; i < s->n; i++) {
        out(&o, "    {%d, %d, {", i, s->top[i]);
        for (int k = 0; k < SELFTEST_PROBES; k++)
            out(&o, "%s%lld", k ? ", " : "", (long long) (k * s->width / SELFTEST_PROBES));
        out(&o, "}, {");
        for (int k = 0; k < SELFTEST_PROBES; k++)
            out(&o, "%s%.*s", k ? ", " : "", FMT(c_float(a, s->probe[i][k])));
        out(&o, "}},\n");
    }
    out(&o, "};\n// clang-format on\nconst SelfTest selftest = {%d, selftest_ids, %d, selftest_check, %.*s};\n",
        s->n_ids, s->n, FMT(c_float(a, s->tolerance)));
    return out_text(&o);
}
