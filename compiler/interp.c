// The interpreter. In: a Graph (as built, or lowered), its GGUF's weights, rows of one sequence. Out: all values
// of all nodes. The one idea: values are f32, everything between two values is double. Rows go through a stage
// together, so that a row of weights is unpacked once for all of them; each row's values are those it would have
// alone.
#define _GNU_SOURCE
#include "interp_in.h"
#include "format.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *interp_grow(void *p, size_t n, size_t size) {
    if (n && size > SIZE_MAX / n)
        fail("the interpreter needs more memory than there can be: %zu times %zu bytes", n, size);
    p = realloc(p, n * size + 1);
    if (!p) fail("out of memory: the interpreter needed %zu bytes; give it fewer tokens at once", n * size);
    return p;
}

float *interp_room(Cells *c, size_t n) {
    if (n > c->cap) {
        free(c->p);
        c->p = interp_grow(NULL, n, sizeof *c->p);
        c->cap = n;
    }
    return c->p;
}

// ---- threads ----

// Calls work(arg, i) for i in 0 .. n-1, on up to `threads` threads. Which one does which is of no consequence.
typedef struct {
    void (*work)(void *arg, int64_t i);
    void *arg;
    int64_t n;
    atomic_llong next;
} Job;

static void *job_run(void *p) {
    Job *j = p;
    for (int64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->n;) j->work(j->arg, i);
    return NULL;
}

void interp_parallel(int threads, int64_t n, void (*work)(void *, int64_t), void *arg) {
    Job j = {.work = work, .arg = arg, .n = n};
    pthread_t id[64];
    int started = 0;
    while (started < threads - 1 && started < COUNT(id) && started < n - 1 &&
        !pthread_create(&id[started], NULL, job_run, &j))
        started++;
    job_run(&j);
    for (int i = 0; i < started; i++) pthread_join(id[i], NULL);
}

// ---- weights ----

// Where output `row` of a weight lies in the file; a stack's outputs are counted through all its products.
static const uint8_t *weight_bytes(const Graph *g, const Weight *w, int layer, int64_t row) {
    int part = 0;
    int64_t product = row / w->out, each = w->apart ? weight_stack(w) : 1;
    for (row %= w->out; row >= w->part_out[part];) row -= w->part_out[part++];
    const GgufTensor *t =
        &g->gguf->tensor[w->tensor[layer * weight_tensors(w) + part * each + (w->apart ? product : 0)]];
    if (!w->apart) row += product * w->part_out[part];
    const TypeInfo *ti = type_info(w->type);
    return t->data + (size_t) row * (size_t) (w->in / ti->block) * (size_t) ti->bytes;
}

void weight_row(const Graph *g, const Weight *w, int layer, int64_t row, float *out) {
    const Format *f = format_of(w->type);
    if (!f) format_refuse(weight_file_name(g, w), type_info(w->type)->name);
    f->dequant(weight_bytes(g, w, layer, row), out, w->in);
}

// ---- elementwise ----

#define MAP(name, n_in, expr, doc)                                                                                     \
    static double map_##name(double a, double b, double c, double p, double q) {                                       \
        (void) a, (void) b, (void) c, (void) p, (void) q;                                                              \
        return expr;                                                                                                   \
    }
#include "ops.def"

static double (*const map_function[N_OP])(double, double, double, double, double) = {
#define MAP(name, n_in, expr, doc) [OP_##name] = map_##name,
#include "ops.def"
};

double interp_map(const Node *n, const double *e) {
    return map_function[n->op](e[0], e[1], e[2], n->real[0], n->real[1]);
}

// The elements of a row of `out` in terms of a row of `in`: element i of out is computed from element index[i] of in.
void interp_broadcast(Shape out, Shape in, int64_t *index) {
    int64_t n = shape_size(out), stride[MAX_DIM] = {0}, s = 1;
    for (int i = 1; i <= in.n; i++) {
        int64_t d = in.d[in.n - i];
        stride[out.n - i] = d == 1 ? 0 : s;
        s *= d;
    }
    int64_t at[MAX_DIM] = {0}, k = 0;
    for (int64_t i = 0; i < n; i++) {
        index[i] = k;
        for (int a = out.n - 1; a >= 0; a--) {
            k += stride[a];
            if (++at[a] < out.d[a]) break;
            k -= stride[a] * out.d[a];
            at[a] = 0;
        }
    }
}

static void do_map(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t size = shape_size(n->shape), *index = interp_grow(NULL, (size_t) (size * n->n_in), sizeof *index);
    for (int j = 0; j < n->n_in; j++) interp_broadcast(n->shape, in->stage->node[n->in[j]].shape, index + j * size);
    for (int r = 0; r < rows; r++)
        for (int64_t i = 0; i < size; i++) {
            double e[3] = {0};
            for (int j = 0; j < n->n_in; j++) e[j] = value_at(&x[j], r, index[j * size + i]);
            y[r * size + i] = (float) interp_map(n, e);
        }
    free(index);
}

// ---- along the last axis ----

static void do_norm(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t size = shape_size(n->shape), len = shape_last(n->shape),
            *index = interp_grow(NULL, (size_t) size * 2, sizeof *index);
    for (int j = 1; j < n->n_in; j++)
        interp_broadcast(n->shape, in->stage->node[n->in[j]].shape, index + (j - 1) * size);
    double eps = n->real[0];
    for (int r = 0; r < rows; r++)
        for (int64_t at = 0; at < size; at += len) {
            const float *a = value_row(&x[0], r) + at;
            double mean = 0, square = 0;
            if (n->op == OP_layer_norm) {
                for (int64_t i = 0; i < len; i++) mean += a[i];
                mean /= (double) len;
            }
            for (int64_t i = 0; i < len; i++) square += (a[i] - mean) * (a[i] - mean);
            double scale = n->op == OP_l2_norm ? 1 / fmax(sqrt(square), eps) : 1 / sqrt(square / (double) len + eps);
            for (int64_t i = 0; i < len; i++) {
                double v = (a[i] - mean) * scale;
                if (n->n_in > 1) v *= value_at(&x[1], r, index[at + i]);
                if (n->n_in > 2) v += value_at(&x[2], r, index[size + at + i]);
                y[r * size + at + i] = (float) v;
            }
        }
    free(index);
}

static void do_softmax(const Node *n, const Value *x, float *y, int rows) {
    int64_t len = shape_last(n->shape), size = shape_size(n->shape);
    for (int64_t at = 0; at < rows * size; at += len) {
        const float *a = value_row(x, (int) (at / size)) + at % size;
        double top = -INFINITY, sum = 0;
        for (int64_t i = 0; i < len; i++) top = fmax(top, a[i]);
        for (int64_t i = 0; i < len; i++) sum += exp(a[i] - top);
        for (int64_t i = 0; i < len; i++) y[at + i] = (float) (exp(a[i] - top) / sum);
    }
}

// sum, mean, rmax: one value for each stretch of the operand's last axis.
static void do_reduce(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t len = shape_last(in->stage->node[n->in[0]].shape), size = shape_size(n->shape);
    for (int64_t k = 0; k < rows * size; k++) {
        const float *a = value_row(x, (int) (k / size)) + k % size * len;
        double r = n->op == OP_rmax ? -INFINITY : 0;
        for (int64_t i = 0; i < len; i++) r = n->op == OP_rmax ? fmax(r, a[i]) : r + a[i];
        y[k] = (float) (n->op == OP_mean ? r / (double) len : r);
    }
}

// As activations are rounded for products of packed weights (templates/README.md): blocks of 32, d = max|x| / 127 in
// f32.
static void do_q8(const Node *n, const Value *x, float *y, int rows) {
    int64_t all = rows * shape_size(n->shape);
    for (int64_t at = 0; at < all; at += 32) {
        const float *a = x->real + at;
        float top = 0;
        for (int i = 0; i < 32; i++) top = fmaxf(top, fabsf(a[i]));
        float d = top / 127, inverse = top > 0 ? 127 / top : 0;
        for (int i = 0; i < 32; i++) y[at + i] = d * rintf(a[i] * inverse);
    }
}

// ---- moving data ----

// The operand as [outer][its length of the axis][inner]; the result has another length.
static void do_slice(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    Shape s = in->stage->node[n->in[0]].shape;
    int64_t outer = rows, inner = 1, axis = n->num[0], len = n->shape.d[axis];
    for (int i = 0; i < axis; i++) outer *= s.d[i];
    for (int i = (int) axis + 1; i < s.n; i++) inner *= s.d[i];
    const float *from = interp_cells(x, 0);
    for (int64_t o = 0; o < outer; o++)
        memcpy(y + o * len * inner, from + (o * s.d[axis] + n->num[1]) * inner, (size_t) (len * inner) * sizeof *y);
}

static void do_concat(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t size = shape_size(n->shape), width = shape_last(n->shape), from = 0;
    for (int j = 0; j < n->n_in; j++) {
        int64_t len = shape_last(in->stage->node[n->in[j]].shape);
        for (int r = 0; r < rows; r++)
            for (int64_t o = 0; o < size / width; o++)
                memcpy(y + r * size + o * width + from, (const float *) interp_cells(&x[j], r) + o * len,
                    (size_t) len * sizeof *y);
        from += len;
    }
}

static void do_take(const Interp *in, const Node *n, const Value *x, float *y) {
    int64_t size = shape_size(n->shape);
    for (int r = 0; r < in->n_want; r++) memcpy(y + r * size, interp_cells(x, in->want[r]), (size_t) size * sizeof *y);
}

// ---- positions ----

static void do_angles(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t size = shape_size(n->shape);
    for (int r = 0; r < rows; r++)
        angles_row(&in->g->rope[n->num[0]], n->n_in > 1 ? value_row(&x[1], r) : NULL, x[0].id[r] - (int32_t) n->num[1],
            y + r * size);
}

static void do_rope(const Node *n, const Value *x, float *y, int rows) {
    int64_t size = shape_size(n->shape), width = shape_last(n->shape), pairs = n->num[0] / 2;
    bool halves = n->num[1];
    for (int r = 0; r < rows; r++)
        for (int64_t at = 0; at < size; at += width) {
            const float *a = value_row(&x[0], r) + at, *turn = value_row(&x[1], r);
            float *o = y + r * size + at;
            memcpy(o, a, (size_t) width * sizeof *o);
            for (int64_t i = 0; i < pairs; i++) {
                int64_t first = halves ? i : 2 * i, second = halves ? i + pairs : 2 * i + 1;
                double c = turn[2 * i], s = n->num[2] ? -turn[2 * i + 1] : turn[2 * i + 1];
                o[first] = (float) (a[first] * c - a[second] * s);
                o[second] = (float) (a[first] * s + a[second] * c);
            }
        }
}

// ---- weights times rows ----

static void do_weight(const Interp *in, const Node *n, float *y) {
    const Weight *w = &in->stage->weight[n->weight];
    for (int64_t i = 0; i < w->out * weight_stack(w); i++) weight_row(in->g, w, in->layer, i, y + i * w->in);
}

static void do_embed(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    const Weight *w = &in->stage->weight[n->weight];
    for (int r = 0; r < rows; r++)
        for (int64_t i = 0; i < x->size; i++, y += w->in)
            weight_row(in->g, w, in->layer, interp_id(value_ids(x, r)[i], w->out), y);
}

// Products of f32 are exact in double, so only the sums round, and these are the same on every machine: four
// partial sums for elements 0, 4, ..; 1, 5, ..; and so on. Four rows of weights at once reuse x.
typedef double Pair __attribute__((vector_size(16), aligned(8)));
static void dot4(const double *w, int64_t stride, const double *x, int64_t n, double *out) {
    const double *w1 = w + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    Pair a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
    for (int64_t i = 0; i < n; i += 4) {
        Pair v = *(const Pair *) (x + i), u = *(const Pair *) (x + i + 2);
        a0 += *(const Pair *) (w + i) * v, b0 += *(const Pair *) (w + i + 2) * u;
        a1 += *(const Pair *) (w1 + i) * v, b1 += *(const Pair *) (w1 + i + 2) * u;
        a2 += *(const Pair *) (w2 + i) * v, b2 += *(const Pair *) (w2 + i + 2) * u;
        a3 += *(const Pair *) (w3 + i) * v, b3 += *(const Pair *) (w3 + i + 2) * u;
    }
    out[0] = (a0[0] + a0[1]) + (b0[0] + b0[1]), out[1] = (a1[0] + a1[1]) + (b1[0] + b1[1]);
    out[2] = (a2[0] + a2[1]) + (b2[0] + b2[1]), out[3] = (a3[0] + a3[1]) + (b3[0] + b3[1]);
}

enum { OUTPUTS = 16 }; // of a piece of work

typedef struct {
    const Interp *in;
    const Weight *w;
    const double *x;                // [vectors][padded]
    int64_t vectors, padded, first; // first: the output of the stack's product at hand
    float **y;                      // where each vector's product goes
} Product;

static void product_piece(void *arg, int64_t piece) {
    const Product *p = arg;
    const Weight *w = p->w;
    int64_t from = piece * OUTPUTS, count = w->out - from < OUTPUTS ? w->out - from : OUTPUTS;
    float *row = interp_grow(NULL, (size_t) w->in, sizeof *row);
    double *wide = interp_grow(NULL, (size_t) (OUTPUTS * p->padded), sizeof *wide), sum[OUTPUTS];
    memset(wide, 0, (size_t) (OUTPUTS * p->padded) * sizeof *wide);
    for (int64_t i = 0; i < count; i++) {
        weight_row(p->in->g, w, p->in->layer, p->first + from + i, row);
        for (int64_t k = 0; k < w->in; k++) wide[i * p->padded + k] = row[k];
    }
    for (int64_t v = 0; v < p->vectors; v++) {
        for (int64_t i = 0; i < count; i += 4)
            dot4(wide + i * p->padded, p->padded, p->x + v * p->padded, p->padded, sum + i);
        for (int64_t i = 0; i < count; i++) p->y[v][from + i] = (float) sum[i];
    }
    free(row);
    free(wide);
}

// Some vectors of inputs times product number `which` of a weight.
static void multiply(Interp *in, const Weight *w, int64_t which, const float **x, float **y, int64_t vectors) {
    Product p = {in, w, NULL, vectors, (w->in + 3) / 4 * 4, which * w->out, y};
    size_t need = (size_t) (p.vectors * p.padded);
    if (need > in->wide_cap) in->wide = interp_grow(in->wide, need, sizeof *in->wide), in->wide_cap = need;
    memset(in->wide, 0, need * sizeof *in->wide);
    for (int64_t v = 0; v < p.vectors; v++)
        for (int64_t k = 0; k < w->in; k++) in->wide[v * p.padded + k] = x[v][k];
    p.x = in->wide;
    bool small = p.vectors * w->in * w->out < 1 << 18; // not worth a thread
    interp_parallel(small ? 1 : in->threads, (w->out + OUTPUTS - 1) / OUTPUTS, product_piece, &p);
}

static void jitter(Interp *in, float *y, int64_t n) {
    double square = 0;
    for (int64_t i = 0; i < n; i++) square += (double) y[i] * y[i];
    double size = in->jitter * sqrt(square / (double) n);
    for (int64_t i = 0; i < n; i++) {
        in->random = in->random * 6364136223846793005u + 1442695040888963407u;
        y[i] += (float) (size * ((double) (in->random >> 32) / 0x1p31 - 1));
    }
}

// matmul: one product. each: product i of the stack gives part i of the result. experts: ids say which gives part i.
// Vectors that meet the same product go together.
static void do_product(Interp *in, const Node *n, const Value *x, float *y, int rows) {
    const Weight *w = &in->stage->weight[n->weight];
    if (!format_of(w->type)) weight_row(in->g, w, in->layer, 0, y); // says why not, here and not in a thread
    int64_t parts = n->op == OP_matmul ? 1 : n->shape.d[0], count = 0;
    bool own_part = x->size == parts * w->in; // else all parts have the same input
    const float **from = interp_grow(NULL, (size_t) (rows * parts), sizeof *from);
    float **to = interp_grow(NULL, (size_t) (rows * parts), sizeof *to);
    for (int64_t which = 0; which < weight_stack(w); which++) {
        count = 0;
        for (int r = 0; r < rows; r++)
            for (int64_t i = 0; i < parts; i++) {
                int64_t id = n->op == OP_experts ? interp_id(value_ids(&x[1], r)[i], weight_stack(w)) : i;
                if (n->op != OP_matmul && id != which) continue;
                from[count] = value_row(&x[0], r) + (own_part ? i * w->in : 0);
                to[count++] = y + (r * parts + i) * w->out;
            }
        if (count) multiply(in, w, which, from, to, count);
    }
    for (int64_t i = 0; i < rows * parts && in->jitter > 0; i++) jitter(in, y + i * w->out, w->out);
    free(from);
    free(to);
}

// ---- a node, a stage, a model ----

static int rows_at(const Interp *in, Rate rate) {
    return rate == RATE_CONST ? 1 : rate == RATE_OUT || in->dropped ? in->n_want : in->n;
}

static void do_source(Interp *in, const Node *n, void *y, int rows) {
    int64_t size = shape_size(n->shape);
    switch (n->op) {
    case OP_get: memcpy(y, in->global[n->num[0]].p, (size_t) (rows * size) * sizeof(float)); break;
    case OP_token: memcpy(y, in->id, (size_t) rows * sizeof(int32_t)); break;
    case OP_position: memcpy(y, in->pos, (size_t) rows * sizeof(int32_t)); break;
    case OP_const: *(float *) y = (float) n->real[0]; break;
    case OP_param: *(float *) y = (float) in->g->param[n->num[0]].value[in->layer]; break;
    case OP_weight: do_weight(in, n, y); break;
    default: fail_at(n->loc, "the interpreter does not know the operator %s", op_info[n->op].name);
    }
}

static void do_node(Interp *in, int i) {
    const Node *n = &in->stage->node[i];
    Value x[MAX_IN], *v = &in->value[i];
    int rows = rows_at(in, n->rate);
    int64_t size = shape_size(n->shape);
    for (int j = 0; j < n->n_in; j++) x[j] = in->value[n->in[j]];
    float *y = interp_room(&in->cell[i], (size_t) (rows * size));
    *v = (Value){.real = y, .rows = rows, .size = size};
    if (n->type == I32) *v = (Value){.id = (const int32_t *) (const void *) y, .rows = rows, .size = size};
    if (in->measure && n->op == OP_recur) v->terms = interp_room(&in->terms[i], (size_t) (rows * size));
    if (op_info[n->op].class == CLASS_MAP) {
        do_map(in, n, x, y, rows);
        return;
    }
    if (interp_row_op(in, n, x, y, rows) || interp_state_op(in, n, x, y, rows)) return;
    switch (n->op) {
    case OP_reshape: *v = x[0]; break; // the same memory
    case OP_slice: do_slice(in, n, x, y, rows); break;
    case OP_concat: do_concat(in, n, x, y, rows); break;
    case OP_rms_norm:
    case OP_layer_norm:
    case OP_l2_norm: do_norm(in, n, x, y, rows); break;
    case OP_softmax: do_softmax(n, x, y, rows); break;
    case OP_sum:
    case OP_mean:
    case OP_rmax: do_reduce(in, n, x, y, rows); break;
    case OP_angles: do_angles(in, n, x, y, rows); break;
    case OP_rope: do_rope(n, x, y, rows); break;
    case OP_embed: do_embed(in, n, x, y, rows); break;
    case OP_take: do_take(in, n, x, y); break;
    case OP_q8:
        if (in->skip_q8) *v = x[0];
        else do_q8(n, x, y, rows);
        break;
    case OP_matmul:
    case OP_experts:
    case OP_each: do_product(in, n, x, y, rows); break;
    case OP_set:
        y = interp_room(&in->global[n->num[0]], (size_t) (rows * size));
        for (int r = 0; r < rows; r++) memcpy(y + r * size, interp_cells(&x[0], r), (size_t) size * sizeof(float));
        *v = x[0];
        break;
    default: do_source(in, n, y, rows); break;
    }
}

// From the run after the last that stores state on, rows that nobody wants are of no use to anybody: a graph as
// built says nothing of it (lowered ones have `take`), so they are dropped here, or a large vocabulary would take
// all the time.
static void drop_rows(Interp *in) {
    const Graph *g = in->g;
    for (int i = 0; i < g->n_global; i++) {
        const Global *gl = &g->global[i];
        size_t size = (size_t) shape_size(gl->shape);
        if (gl->rate != RATE_ROW || in->global[i].cap < (size_t) in->n * size) continue;
        for (int r = 0; r < in->n_want; r++)
            memmove(in->global[i].p + (size_t) r * size, in->global[i].p + (size_t) in->want[r] * size,
                size * sizeof(float));
    }
    for (int r = 0; r < in->n_want; r++) in->id[r] = in->id[in->want[r]], in->pos[r] = in->pos[in->want[r]];
    in->dropped = true;
}

static bool stores(const Stage *s) {
    for (int i = 0; i < s->n_node; i++)
        if (op_keeps(s->node[i].op) || s->node[i].op == OP_pool) return true;
    return false;
}

Interp *interp_new(const Graph *g, int threads) {
    Interp *in = NEW(g->arena, Interp);
    gguf_fill(g->gguf);
    int most = 0;
    in->g = g;
    in->threads = threads < 1 ? (int) sysconf(_SC_NPROCESSORS_ONLN) : threads;
    in->cache = NEWN(g->arena, Cache *, g->n_stage);
    for (int i = 0; i < g->n_stage; i++) {
        const Stage *s = &g->stage[i];
        in->cache[i] = NEWN(g->arena, Cache, (s->layered ? g->n_layer : 1) * s->n_state + 1);
        if (s->n_node > most) most = s->n_node;
    }
    in->global = NEWN(g->arena, Cells, g->n_global);
    in->cell = NEWN(g->arena, Cells, most);
    in->terms = NEWN(g->arena, Cells, most);
    in->value = NEWN(g->arena, Value, most);
    for (int i = 0; i < g->n_run; i++)
        if (stores(&g->stage[g->run[i].stage])) in->n_run_kept = i + 1;
    return in;
}

void interp_free(Interp *in) {
    const Graph *g = in->g;
    int most = 0;
    for (int i = 0; i < g->n_stage; i++) {
        const Stage *s = &g->stage[i];
        if (s->n_node > most) most = s->n_node;
    }
    for (int i = 0; i < most; i++) free(in->cell[i].p), free(in->terms[i].p);
    for (int i = 0; i < g->n_global; i++) free(in->global[i].p);
    interp_state_free(in);
    free(in->wide);
    free(in->pos);
    free(in->id);
    free(in->want);
}

void interp_forget(Interp *in) {
    in->past = 0;
    interp_state_forget(in);
}

int interp_past(const Interp *in) {
    return in->past;
}

void interp_kv_f16(Interp *in, bool on) {
    in->kv_f16 = on;
}

void interp_skip_q8(Interp *in, bool on) {
    in->skip_q8 = on;
}

void interp_jitter(Interp *in, double size, uint64_t seed) {
    in->jitter = size;
    in->random = seed;
}

void interp_measure(Interp *in, bool on) {
    in->measure = on;
}

void interp_begin(Interp *in, const int32_t *ids, int n, const bool *want) {
    in->n = n;
    in->n_want = 0;
    in->dropped = false;
    in->pos = interp_grow(in->pos, (size_t) n, sizeof *in->pos);
    in->id = interp_grow(in->id, (size_t) n, sizeof *in->id);
    in->want = interp_grow(in->want, (size_t) n, sizeof *in->want);
    for (int r = 0; r < n; r++) {
        in->pos[r] = in->past + r;
        in->id[r] = ids[r];
        if (want && want[r]) in->want[in->n_want++] = r;
    }
}

void interp_step(Interp *in, int run, int layer) {
    in->stage = &in->g->stage[in->g->run[run].stage];
    in->layer = layer;
    if (run >= in->n_run_kept && !in->dropped && in->g->global[in->g->logits].rate == RATE_ROW) drop_rows(in);
    for (int i = 0; i < in->stage->n_node; i++) {
        do_node(in, i);
        if (in->measure) interp_terms(in, i);
    }
}

const float *interp_end(Interp *in) {
    in->past += in->n;
    return in->global[in->g->logits].p;
}

const float *interp_eval(Interp *in, const int32_t *ids, int n, const bool *want) {
    interp_begin(in, ids, n, want);
    for (int i = 0; i < in->g->n_run; i++) {
        const Run *r = &in->g->run[i];
        for (int j = 0; j < r->count; j++) interp_step(in, i, r->first + j);
    }
    return interp_end(in);
}

Value interp_value(const Interp *in, int node) {
    return in->value[node];
}

Value interp_global(const Interp *in, int global) {
    const Global *gl = &in->g->global[global];
    return (Value){.real = in->global[global].p, .rows = rows_at(in, gl->rate), .size = shape_size(gl->shape)};
}

// ---- ggcc logits ----

void interp_logits(
    Arena *a, const Graph *g, const int32_t *ids, int n, const int *at, int n_at, const char *path, int threads) {
    if (n < 1) fail("no tokens: at least one is needed");
    if (n > g->n_ctx) fail("%d tokens are more than the context of %lld", n, (long long) g->n_ctx);
    int *slot = NEWN(a, int, n), rows = 0; // which of the kept rows a position's logits are, from 1; 0: not wanted
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= g->n_vocab)
            fail("token id %d at position %d is out of range: the model has %lld", ids[i], i, (long long) g->n_vocab);
    for (int i = 0; i < n_at; i++)
        if (at[i] < 0 || at[i] >= n) fail("position %d is out of range: there are %d tokens, counted from 0", at[i], n);
    for (int i = 0; i < (n_at < 0 ? n : n_at); i++) slot[n_at < 0 ? i : at[i]] = 1;
    for (int i = 0; i < n; i++) rows += slot[i], slot[i] = slot[i] ? rows : 0;
    size_t width = (size_t) shape_size(g->global[g->logits].shape);
    float *kept = n_at < 0 ? NULL : interp_grow(NULL, (size_t) rows * width, sizeof *kept);
    FileOut *f = file_create(path);
    Interp *in = interp_new(g, threads);
    int most = graph_whole(g) ? n : 128; // rows that see each other are evaluated together
    bool *want = NEWN(a, bool, n);
    for (int from = 0; from < n; from += most) {
        int count = n - from < most ? n - from : most, first = 0, some = 0;
        for (int i = 0; i < count; i++) {
            want[i] = slot[from + i] > 0;
            if (want[i] && !some++) first = slot[from + i] - 1;
        }
        const float *y = interp_eval(in, ids + from, count, want);
        if (n_at < 0) file_write(f, y, (size_t) some * width * sizeof *y);
        else memcpy(kept + (size_t) first * width, y, (size_t) some * width * sizeof *y);
    }
    for (int i = 0; i < n_at; i++) file_write(f, kept + (size_t) (slot[at[i]] - 1) * width, width * sizeof *kept);
    file_commit(f, false);
    interp_free(in);
    free(kept);
}
