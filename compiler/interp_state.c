// The interpreter's states: caches and attention, tails, cells, picks. In: values of the rows of one sequence, in order
// of position.
// Out: values, and states that go on with the sequence. Sums are double.
#include "interp_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Cache *state_of(const Interp *in, int stage, int state, int at) {
    const Graph *g = in->g;
    const State *st = &g->stage[stage].state[state];
    if (!st->source) return &in->cache[stage][at * g->stage[stage].n_state + state];
    int layer = st->source[at];
    for (int i = 0; i < g->n_run; i++) {
        const Stage *s = &g->stage[g->run[i].stage];
        if (!s->layered || layer < g->run[i].first || layer >= g->run[i].first + g->run[i].count) continue;
        for (int j = 0; j < s->n_state; j++)
            if (str_eq(s->state[j].name, st->name) && !s->state[j].source)
                return &in->cache[g->run[i].stage][layer * s->n_state + j];
    }
    fail("internal: layer %d has no state %.*s to share", layer, FMT(st->name));
}

Cache *interp_state_at(const Interp *in, int state) {
    return state_of(in, (int) (in->stage - in->g->stage), state, in->layer);
}

// x rounded to the nearest f16, ties to even.
static float round_f16(float x) {
    if (!isfinite(x) || x == 0) return x;
    int e;
    frexp(x, &e);
    double step = ldexp(1, e < -13 ? -24 : e - 11), r = rint(x / step) * step;
    return fabs(r) > 65504 ? copysignf(INFINITY, x) : (float) r;
}

// ---- caches ----

static void cache_grow(Cache *c, const State *s, int64_t positions) {
    if (positions <= c->cap) return;
    c->cap = positions > 2 * c->cap ? positions : 2 * c->cap;
    c->k = interp_grow(c->k, (size_t) (c->cap * shape_size(s->k)), sizeof *c->k);
    if (s->v.n) c->v = interp_grow(c->v, (size_t) (c->cap * shape_size(s->v)), sizeof *c->v);
}

static void do_put(Interp *in, const Node *n, const Value *x) {
    Cache *c = interp_state_at(in, n->state);
    int64_t every = state_every(&in->stage->state[n->state]);
    cache_grow(c, &in->stage->state[n->state], (in->past + in->n) / every);
    float *to[2] = {c->k, c->v};
    for (int i = 0; i < n->n_in; i++)
        for (int r = 0; r < in->n; r++)
            for (int64_t j = 0; j < x[i].size && (in->pos[r] + 1) % every == 0; j++) {
                float e = value_row(&x[i], r)[j];
                to[i][in->pos[r] / every * x[i].size + j] = in->kv_f16 ? round_f16(e) : e;
            }
}

static int64_t row_position(const Interp *in, const Node *n, int64_t r) {
    return in->pos[(n->rate == RATE_OUT && !in->dropped) ? in->want[r] : r];
}

// The positions, or records, from .. to that a row at `pos` sees.
static void seen(const Interp *in, const State *s, int64_t pos, int64_t *from, int64_t *to) {
    int64_t end = in->past + in->n - 1, every = state_every(s);
    *from = 0, *to = (pos + 1) / every - 1;
    if (s->sees == SEES_WINDOW && pos - s->n + 1 > 0) *from = pos - s->n + 1;
    if (s->sees == SEES_CHUNK) *from = pos / s->n * s->n;
    if (s->sees == SEES_ALL) *to = end;
    if (s->sees == SEES_AROUND) {
        *from = pos - s->n / 2 > 0 ? pos - s->n / 2 : 0;
        *to = pos + s->n / 2 < end ? pos + s->n / 2 : end;
    }
}

// ---- attention ----

// One of the caches that attention reads: what a row sees of it, and where its scores stand among all.
typedef struct {
    const State *state;
    const Cache *cache;
    const Value *picks; // or NULL
    int64_t from, to, at;
} Source;

typedef struct {
    const Interp *in;
    const Node *n;
    const Value *x;
    Source source[2];
    int n_source;
    float *y;
    const Value *sinks, *biases; // or NULL
    Buckets buckets;             // of the biases
} Attention;

// How much a head's scores fall with distance.
static double alibi_slope(double max, int64_t heads, int64_t h) {
    if (max == 0) return 0;
    int64_t n = 1;
    while (n * 2 <= heads) n *= 2;
    return h < n ? pow(2, -max * (double) (h + 1) / (double) n)
                 : pow(2, -max / 2 * (double) (2 * (h - n) + 1) / (double) n);
}

static bool picked(const Attention *a, const Source *c, int64_t r, int64_t group, int64_t position) {
    if (!c->picks) return true;
    const Node *p = &a->in->stage->node[a->n->in[a->n->n_in - 1]];
    int64_t top = p->shape.d[1], block = a->n->num[2] > 1 ? a->n->num[2] : 1;
    const int32_t *list = value_ids(c->picks, (int) r) + (p->shape.d[0] == 1 ? 0 : group) * top;
    for (int64_t i = 0; i < top; i++)
        if (list[i] == position / block) return true;
    return false;
}

// Scores of one cache; returns the largest of them and `most`.
static double attention_scores(const Attention *a, const Source *c, int64_t r, int64_t h, double most, double *score) {
    const Node *n = a->n;
    const State *s = c->state;
    int64_t pos = row_position(a->in, n, r), heads = n->shape.d[0], dk = s->k.d[1], g = h / (heads / s->k.d[0]);
    const float *q = value_row(&a->x[0], (int) r) + h * dk;
    double slope = alibi_slope(n->real[2], heads, h);
    for (int64_t p = c->from; p <= c->to; p++) {
        const float *k = c->cache->k + p * shape_size(s->k) + g * dk;
        double d = 0;
        for (int64_t i = 0; i < dk; i++) d += (double) q[i] * k[i];
        d *= n->real[0];
        if (n->real[1] != 0) d = n->real[1] * tanh(d / n->real[1]);
        d -= slope * (double) llabs(pos - p);
        if (a->biases) d += value_at(a->biases, (int) r, bucket_at(&a->buckets, pos, p) * heads + h);
        score[p - c->from] = picked(a, c, r, g, p) ? d : -INFINITY;
        most = fmax(most, score[p - c->from]);
    }
    return most;
}

static void attention_head(const Attention *a, const Source *source, int64_t r, int64_t h, double *score, double *o) {
    const Node *n = a->n;
    int64_t heads = n->shape.d[0], dv = n->shape.d[1];
    double top = a->sinks ? value_at(a->sinks, (int) r, h) : -INFINITY;
    for (int i = 0; i < a->n_source; i++) top = attention_scores(a, &source[i], r, h, top, score + source[i].at);
    memset(o, 0, (size_t) dv * sizeof *o);
    double sum = a->sinks ? exp(value_at(a->sinks, (int) r, h) - top) : 0;
    for (int c = 0; c < a->n_source; c++) {
        const State *s = source[c].state;
        int64_t g = h / (heads / s->k.d[0]), step = shape_size(s->v.n ? s->v : s->k);
        const float *values = s->v.n ? source[c].cache->v : source[c].cache->k + n->num[0];
        for (int64_t p = source[c].from; p <= source[c].to; p++) {
            const float *v = values + p * step + g * (s->v.n ? dv : s->k.d[1]);
            double e = exp(score[source[c].at + p - source[c].from] - top);
            sum += e;
            for (int64_t i = 0; i < dv; i++) o[i] += e * v[i];
        }
    }
    for (int64_t i = 0; i < dv; i++) a->y[(r * heads + h) * dv + i] = (float) (o[i] / sum);
}

// One row's queries over the positions it sees.
static void attention_row(void *arg, int64_t r) {
    const Attention *a = arg;
    Source source[2];
    int64_t all = 0;
    for (int i = 0; i < a->n_source; i++) {
        source[i] = a->source[i];
        seen(a->in, source[i].state, row_position(a->in, a->n, r), &source[i].from, &source[i].to);
        source[i].at = all;
        all += source[i].to + 1 - source[i].from;
    }
    double *score = interp_grow(NULL, (size_t) all, sizeof *score);
    double *o = interp_grow(NULL, (size_t) a->n->shape.d[1], sizeof *o);
    for (int64_t h = 0; h < a->n->shape.d[0]; h++) attention_head(a, source, r, h, score, o);
    free(score);
    free(o);
}

static void do_attention(Interp *in, const Node *n, const Value *x, float *y, int rows) {
    Attention a = {.in = in, .n = n, .x = x, .y = y};
    for (int i = 1; i < n->n_in; i++) {
        int state = in->stage->node[n->in[i]].state;
        switch (attention_role(in->stage, n->in, n->n_in, n->num[3] != 0, i)) {
        case READS_CACHE:
            a.source[a.n_source++] = (Source){.state = &in->stage->state[state], .cache = interp_state_at(in, state)};
            break;
        case READS_SINKS: a.sinks = &x[i]; break;
        case READS_BIASES: a.biases = &x[i]; break;
        case READS_PICKS: a.source[a.n_source - 1].picks = &x[i]; break;
        }
    }
    if (a.biases)
        a.buckets = buckets_of(a.biases->size / n->shape.d[0], n->num[3], sees_ahead(a.source[0].state->sees));
    interp_parallel(rows < 8 ? 1 : in->threads, rows, attention_row, &a);
}

// ---- picks ----

// The score of every candidate: a position, weighed over all heads, or a block of positions, its best for the set's
// head.
static int64_t pick_scores(
    const Interp *in, const Node *n, const Value *x, int r, int64_t set, int64_t from, int64_t to, double *score) {
    const State *s = &in->stage->state[n->state];
    const Cache *c = interp_state_at(in, n->state);
    const Node *q = &in->stage->node[n->in[0]];
    int64_t heads = q->shape.d[0], d = s->k.d[1], groups = s->k.d[0], block = n->num[1],
            count = to < 0 ? 0 : to / block + 1;
    bool weighted = n->n_in > 2;
    for (int64_t i = 0; i < count; i++) score[i] = -INFINITY;
    for (int64_t p = from; p <= to; p++) {
        double total = 0, best = -INFINITY;
        for (int64_t h = 0; h < heads; h++) {
            int64_t g = h / (heads / groups);
            if (!weighted && h != set) continue;
            double dot = 0;
            for (int64_t i = 0; i < d; i++)
                dot += (double) value_row(&x[0], r)[h * d + i] * c->k[p * groups * d + g * d + i];
            total += weighted ? value_at(&x[2], r, h) * fmax(dot, 0) : 0;
            best = fmax(best, dot);
        }
        score[p / block] = weighted ? (float) total : fmax(score[p / block], (float) best);
    }
    int64_t local = n->num[2] < count ? n->num[2] : count;
    for (int64_t i = count - local; i < count; i++) score[i] = INFINITY;
    return count;
}

static void do_pick(Interp *in, const Node *n, const Value *x, int32_t *y, int rows) {
    int64_t sets = n->shape.d[0], top = n->num[0], every = state_every(&in->stage->state[n->state]), from, to;
    double *score = interp_grow(NULL, (size_t) (in->past + in->n), sizeof *score);
    for (int r = 0; r < rows; r++) {
        seen(in, &in->stage->state[n->state], row_position(in, n, r), &from, &to);
        for (int64_t set = 0; set < sets; set++) {
            int64_t count = pick_scores(in, n, x, r, set, from, to, score);
            for (int64_t j = 0; j < top; j++) {
                int64_t best = -1;
                for (int64_t i = 0; i < count; i++)
                    if (score[i] > -INFINITY && (best < 0 || score[i] > score[best])) best = i;
                if (best >= 0) score[best] = -INFINITY;
                *y++ = (int32_t) best;
            }
            // behind the last record: a block that is not full, or empty
            if (n->num[3]) *y++ = (row_position(in, n, r) + 1) % every ? (int32_t) (to + 1) : -1;
        }
    }
    free(score);
}

// ---- tails and cells ----

static float *state_memory(Interp *in, const Node *n, int64_t size) {
    Cache *c = interp_state_at(in, n->state);
    if (!c->k) {
        c->k = interp_grow(NULL, (size_t) size, sizeof *c->k);
        memset(c->k, 0, (size_t) size * sizeof *c->k);
    }
    return c->k;
}

static void do_shift(Interp *in, const Node *n, const Value *x, float *y) {
    int64_t size = x->size, kept = in->stage->state[n->state].n;
    float *tail = state_memory(in, n, kept * size);
    for (int r = 0; r < in->n; r++, y += (kept + 1) * size) {
        memcpy(y, tail, (size_t) (kept * size) * sizeof *y);
        memcpy(y + kept * size, value_row(x, r), (size_t) size * sizeof *y);
        memcpy(tail, y + size, (size_t) (kept * size) * sizeof *y);
    }
}

// Values and scores of the last m blocks, [m * n slots][value or score][m][channels], a position's slot by its number;
// what a block gives is made on its last row, of its positions and those of the m - 1 blocks before it, oldest first.
static void do_blend(Interp *in, const Node *n, const Value *x, float *y) {
    const State *s = &in->stage->state[n->state];
    int64_t m = s->k.d[0], channels = s->k.d[1], size = m * channels, slots = m * s->n;
    float *ring = state_memory(in, n, slots * 2 * size);
    for (int r = 0; r < in->n; r++, y += channels) {
        int64_t end = in->pos[r] + 1, first = end - slots < 0 ? 0 : end - slots;
        for (int i = 0; i < 2; i++)
            memcpy(ring + (in->pos[r] % slots * 2 + i) * size, value_row(&x[i], r), (size_t) size * sizeof *y);
        for (int64_t c = 0; c < channels; c++) {
            double top = -INFINITY, sum = 0, all = 0;
            for (int pass = 0; pass < 2 && end % s->n == 0; pass++)
                for (int64_t p = first; p < end; p++) {
                    const float *at = ring + p % slots * 2 * size + (m - 1 - (end - 1 - p) / s->n) * channels + c;
                    double e = pass ? exp(at[size] - top) : 0;
                    top = fmax(top, at[size]);
                    sum += e, all += e * at[0];
                }
            y[c] = end % s->n == 0 ? (float) (all / sum) : 0;
        }
    }
}

// One head of one row: M' = diag(decay) M + write (erase^T M) + key value^T, and what is read of M' or M. terms: see
// Value, or NULL; those that make M' count as those of the result.
static void recur_head(const Node *n, const double *w, const double *k, const double *v, const double *q,
    const double *a, const double *b, int64_t keys, int64_t values, float *m, float *y, float *terms) {
    for (int64_t j = 0; j < values; j++) {
        double erased = 0, before = 0, after = 0, erased_terms = 0, all_terms = 0;
        for (int64_t i = 0; a && i < keys; i++) {
            erased += a[i] * m[i * values + j];
            erased_terms += squared(a[i] * m[i * values + j]);
        }
        for (int64_t i = 0; i < keys; i++) {
            double old = m[i * values + j], made = w[i] * old + (a ? b[i] * erased : 0) + k[i] * v[j];
            double made_terms = squared(w[i] * old) + (a ? squared(b[i]) * erased_terms : 0) + squared(k[i] * v[j]);
            before += q[i] * old;
            m[i * values + j] = (float) made;
            after += q[i] * m[i * values + j];
            all_terms += squared(q[i]) * (n->num[0] ? squared(old) : made_terms);
        }
        y[j] = (float) (n->num[0] ? before : after);
        if (terms) terms[j] = (float) sqrt(all_terms);
    }
}

static void do_recur(Interp *in, const Node *n, const Value *x, float *y) {
    Shape cell = in->stage->state[n->state].k, keys = {.n = 2, .d = {cell.d[0], cell.d[1]}};
    int64_t h = cell.d[0], k = cell.d[1], v = cell.d[2];
    float *m = state_memory(in, n, h * k * v), *terms = in->measure ? in->terms[n - in->stage->node].p : NULL;
    int n_in = n->n_in - (n->num[1] != 0); // the last may be rates
    int64_t *index = interp_grow(NULL, (size_t) (6 * h * k), sizeof *index);
    double *e = interp_grow(NULL, (size_t) (5 * k + v), sizeof *e), *part[6];
    for (int i = 0; i < 6; i++) part[i] = i < n_in ? e + (i < 2 ? i * k : i == 2 ? 5 * k : (i - 1) * k) : NULL;
    for (int i = 0; i < n_in; i++)
        if (i != 2) interp_broadcast(keys, in->stage->node[n->in[i]].shape, index + i * h * k);
    for (int r = 0; r < in->n; r++)
        for (int64_t head = 0; head < h; head++, y += v) {
            for (int i = 0; i < n_in; i++)
                for (int64_t j = 0; j < (i == 2 ? v : k); j++)
                    part[i][j] = value_at(&x[i], r, i == 2 ? head * v + j : index[i * h * k + head * k + j]);
            for (int64_t j = 0; n_in < n->n_in && j < k; j++) // rounded as where it is a value of its own
                part[0][j] = (float) exp((float) (part[0][j] * value_at(&x[n_in], r, head * k + j)));
            recur_head(n, part[0], part[1], part[2], part[3], part[4], part[5], k, v, m + head * k * v, y,
                terms ? terms + (r * h + head) * v : NULL);
        }
    free(index);
    free(e);
}

// ---- whole sequences ----

static void do_pool(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t size = shape_size(n->shape);
    for (int r = 0; r < rows; r++)
        for (int64_t i = 0; i < size; i++) {
            double sum = 0;
            for (int p = 0; p < in->n && n->num[0] == 0; p++) sum += value_row(x, p)[i];
            *y++ = n->num[0] == 0 ? (float) (sum / in->n) : value_row(x, n->num[0] == 1 ? 0 : in->n - 1)[i];
        }
}

bool interp_state_op(Interp *in, const Node *n, const Value *x, void *y, int rows) {
    switch (n->op) {
    case OP_put: do_put(in, n, x); return true;
    case OP_cache: return true;
    case OP_attention: do_attention(in, n, x, y, rows); return true;
    case OP_pick: do_pick(in, n, x, y, rows); return true;
    case OP_shift: do_shift(in, n, x, y); return true;
    case OP_blend: do_blend(in, n, x, y); return true;
    case OP_recur: do_recur(in, n, x, y); return true;
    case OP_pool: do_pool(in, n, x, y, rows); return true;
    default: return false;
    }
}

static void each_state(const Interp *in, void (*f)(Cache *c, const State *st)) {
    const Graph *g = in->g;
    for (int i = 0; i < g->n_stage; i++) {
        const Stage *s = &g->stage[i];
        for (int64_t j = 0; j < (s->layered ? g->n_layer : 1) * s->n_state; j++)
            f(&in->cache[i][j], &s->state[j % s->n_state]);
    }
}

static void free_state(Cache *c, const State *st) {
    (void) st;
    free(c->k);
    free(c->v);
    *c = (Cache){0};
}

static void forget_state(Cache *c, const State *st) {
    if (st->kind != STATE_CACHE) free_state(c, st);
}

void interp_state_free(const Interp *in) {
    each_state(in, free_state);
}
void interp_state_forget(const Interp *in) {
    each_state(in, forget_state);
}

const float *interp_cache(const Interp *in, int stage, int state, int layer, bool values) {
    const Cache *c = state_of(in, stage, state, layer);
    return values ? c->v : c->k;
}

// past, n: records there are, and are wanted.
static void stretch(Cache *c, const State *st, int past, int n) {
    size_t wide_k = (size_t) shape_size(st->k), wide_v = st->v.n ? (size_t) shape_size(st->v) : 0;
    cache_grow(c, st, n);
    if (!past && n) memset(c->k, 0, (size_t) n * wide_k * sizeof *c->k);
    if (!past && n && wide_v) memset(c->v, 0, (size_t) n * wide_v * sizeof *c->v);
    for (int p = past; past && p < n; p++) {
        memcpy(c->k + (size_t) p * wide_k, c->k + (size_t) (p % past) * wide_k, wide_k * sizeof *c->k);
        if (wide_v) memcpy(c->v + (size_t) p * wide_v, c->v + (size_t) (p % past) * wide_v, wide_v * sizeof *c->v);
    }
}

void interp_stretch(Interp *in, int n) {
    for (int i = 0; i < in->g->n_run; i++) {
        const Run *r = &in->g->run[i];
        const Stage *s = &in->g->stage[r->stage];
        for (int k = r->first * s->n_state; k < (r->first + r->count) * s->n_state; k++) {
            const State *st = &s->state[k % s->n_state];
            int every = (int) state_every(st);
            if (st->kind == STATE_CACHE && !st->source)
                stretch(&in->cache[r->stage][k], st, in->past / every, n / every);
        }
    }
    if (n > in->past) in->past = n;
}
