// The interpreter's row operators that move, choose and sum. In: values of some rows. Out: [rows][size]. One plain
// function each, sums in double and in index order.
#include "interp_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Shape shape_in(const Interp *in, const Node *n, int k) {
    return in->stage->node[n->in[k]].shape;
}

// ---- moving ----

static void do_spread(const Interp *in, const Node *n, const Value *x, char *y, int rows) {
    int64_t m = shape_in(in, n, 0).d[0], to = n->num[0], bytes = shape_size(n->shape) / to * 4;
    for (int r = 0; r < rows; r++)
        for (int64_t h = 0; h < to; h++, y += bytes)
            memcpy(
                y, (const char *) interp_cells(&x[0], r) + (n->num[1] ? h % m : h / (to / m)) * bytes, (size_t) bytes);
}

static void do_copy(const Node *n, const Value *x, char *y, int rows) {
    size_t bytes = (size_t) shape_size(n->shape) * 4;
    for (int r = 0; r < rows; r++) memcpy(y + (size_t) r * bytes, interp_cells(&x[0], r), bytes);
}

static void do_at(const Interp *in, const Node *n, const Value *x, char *y, int rows) {
    size_t bytes = (size_t) shape_size(n->shape) * 4, at = (size_t) in->g->param[n->num[0]].value[in->layer];
    if ((int64_t) at >= shape_in(in, n, 0).d[0])
        fail("layer %d asks for part %zu of %s", in->layer, at, shape_show(in->g->arena, shape_in(in, n, 0)));
    for (int r = 0; r < rows; r++)
        memcpy(y + (size_t) r * bytes, (const char *) interp_cells(&x[0], r) + at * bytes, bytes);
}

// ---- ids ----

// Of a computed number, rounded down; numbers that no int32_t can be become its ends, and no number (NaN) 0.
static int32_t id_of(double x) {
    return x >= 2147483648.0 ? INT32_MAX : x < -2147483648.0 ? INT32_MIN : x == x ? (int32_t) floor(x) : 0;
}

static void do_top(const Interp *in, const Node *n, const Value *x, int32_t *y, int rows) {
    int64_t width = shape_last(shape_in(in, n, 0)), k = n->num[0], lists = x->size / width;
    bool *taken = interp_grow(NULL, (size_t) width, sizeof *taken);
    for (int r = 0; r < rows; r++)
        for (int64_t l = 0; l < lists; l++) {
            const float *a = value_row(&x[0], r) + l * width;
            memset(taken, 0, (size_t) width * sizeof *taken);
            for (int64_t j = 0; j < k; j++) {
                int64_t best = -1;
                for (int64_t i = 0; i < width; i++)
                    if (!taken[i] && (best < 0 || a[i] > a[best])) best = i;
                taken[best] = true;
                *y++ = (int32_t) best;
            }
        }
    free(taken);
}

static void do_gather(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t width = shape_last(shape_in(in, n, 0)), k = shape_last(n->shape), lists = shape_size(n->shape) / k;
    for (int r = 0; r < rows; r++)
        for (int64_t l = 0; l < lists; l++)
            for (int64_t j = 0; j < k; j++)
                *y++ = value_row(&x[0], r)[l * width + interp_id(value_ids(&x[1], r)[l * k + j], width)];
}

static void do_only(const Node *n, const Value *x, float *y, int rows) {
    int64_t size = shape_size(n->shape), part = size / n->shape.d[0];
    for (int r = 0; r < rows; r++, y += size) {
        for (int64_t i = 0; i < size; i++) y[i] = -INFINITY;
        for (int64_t j = 0; j < x[1].size; j++) {
            int64_t id = interp_id(value_ids(&x[1], r)[j], n->shape.d[0]);
            memcpy(y + id * part, value_row(&x[0], r) + id * part, (size_t) part * sizeof *y);
        }
    }
}

static void do_hash(const Interp *in, const Node *n, const Value *x, int32_t *y, int rows) {
    const Numbers *all = in->g->numbers, *by = &all[n->num[0]], *mod = &all[n->num[1]], *plus = &all[n->num[2]];
    for (int r = 0; r < rows; r++) {
        uint64_t h = 0;
        for (int64_t j = 0; j < x->size; j++) h ^= (uint64_t) value_ids(x, r)[j] * (uint64_t) by->value[j];
        for (int i = 0; i < mod->n; i++) *y++ = (int32_t) (h % (uint64_t) mod->value[i] + (uint64_t) plus->value[i]);
    }
}

// ---- sums ----

static void do_sum_first(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t size = shape_size(n->shape), count = shape_in(in, n, 0).d[0];
    for (int r = 0; r < rows; r++)
        for (int64_t i = 0; i < size; i++) {
            double sum = 0;
            for (int64_t j = 0; j < count; j++) sum += value_row(&x[0], r)[j * size + i];
            *y++ = (float) sum;
        }
}

static void do_mix(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t count = shape_in(in, n, 1).d[0], inner = x[1].size / count, outer = shape_size(n->shape) / inner;
    for (int r = 0; r < rows; r++)
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++) {
                double sum = 0;
                for (int64_t j = 0; j < count; j++)
                    sum += value_at(&x[0], r, o * count + j) * value_at(&x[1], r, j * inner + i);
                *y++ = (float) sum;
            }
}

static void do_conv(const Interp *in, const Node *n, const Value *x, float *y, int rows) {
    int64_t taps = shape_last(shape_in(in, n, 1)), size = shape_size(n->shape), every = n->num[0] > 1 ? n->num[0] : 1;
    for (int r = 0; r < rows; r++)
        for (int64_t c = 0; c < size; c++) {
            double sum = 0;
            for (int64_t t = 0; t < taps; t++)
                sum += value_at(&x[0], r, t * every * size + c) * value_at(&x[1], r, c * taps + t);
            *y++ = (float) sum;
        }
}

bool interp_row_op(const Interp *in, const Node *n, const Value *x, void *y, int rows) {
    switch (n->op) {
    case OP_copy: do_copy(n, x, y, rows); return true;
    case OP_at: do_at(in, n, x, y, rows); return true;
    case OP_index:
        for (int r = 0; r < rows; r++)
            for (int64_t i = 0; i < n->num[0]; i++) ((float *) y)[r * n->num[0] + i] = (float) i;
        return true;
    case OP_spread: do_spread(in, n, x, y, rows); return true;
    case OP_top: do_top(in, n, x, y, rows); return true;
    case OP_gather: do_gather(in, n, x, y, rows); return true;
    case OP_only: do_only(n, x, y, rows); return true;
    case OP_id:
        for (int r = 0; r < rows; r++)
            for (int64_t i = 0; i < x->size; i++)
                ((int32_t *) y)[r * x->size + i] = id_of(value_at(&x[0], r, i));
        return true;
    case OP_hash: do_hash(in, n, x, y, rows); return true;
    case OP_sum_first: do_sum_first(in, n, x, y, rows); return true;
    case OP_mix: do_mix(in, n, x, y, rows); return true;
    case OP_conv: do_conv(in, n, x, y, rows); return true;
    default: return false;
    }
}
