// How large the terms of a value are, for verify. In: a node and its operands, just computed. Out: value.terms, for
// each element the root of the sum of the squares of what it was summed of. A kernel's error is a part of that: of the
// sum itself only where the terms do not cancel. What stands in a kernel behind such a sum is off by as much as it
// makes of the sum's error.
#include "interp_in.h"
#include "passes.h"

#include <math.h>
#include <stdlib.h>

// Of an operand that is computed in the same kernel: what another kernel made comes in without an error.
static const float *terms_within(const Interp *in, const Node *n, int j) {
    const Node *from = &in->stage->node[view_base(in->stage, n->in[j])];
    return from->kernel >= 0 && from->kernel == n->kernel ? in->value[n->in[j]].terms : NULL;
}

static void sum_terms(const Interp *in, const Node *n, const Value *v, float *to) {
    const Value *x = &in->value[n->in[0]];
    const float *inner = terms_within(in, n, 0);
    int64_t len = shape_last(in->stage->node[n->in[0]].shape);
    for (int r = 0; r < v->rows; r++)
        for (int64_t k = 0; k < v->size; k++) {
            double all = 0;
            for (int64_t i = k * len; i < (k + 1) * len; i++) {
                double e = fabs(value_at(x, r, i));
                all += squared(inner ? fmax(e, inner[(x->rows == 1 ? 0 : r * x->size) + i]) : e);
            }
            *to++ = (float) (n->op == OP_mean ? sqrt(all) / (double) len : sqrt(all));
        }
}

// An operand's error is a small part of its terms; what it makes of the result is found by trying.
static void map_terms(const Interp *in, const Node *n, const Value *v, float *to) {
    const double part = 0x1p-12;
    const float *inner[3] = {0};
    int64_t *index = interp_grow(NULL, (size_t) (v->size * n->n_in), sizeof *index);
    for (int j = 0; j < n->n_in; j++) {
        inner[j] = terms_within(in, n, j);
        interp_broadcast(n->shape, in->stage->node[n->in[j]].shape, index + j * v->size);
    }
    for (int r = 0; r < v->rows; r++)
        for (int64_t i = 0; i < v->size; i++) {
            double e[3] = {0}, y = v->real[r * v->size + i], all = squared(y);
            for (int j = 0; j < n->n_in; j++) e[j] = value_at(&in->value[n->in[j]], r, index[j * v->size + i]);
            y = interp_map(n, e);
            for (int j = 0; j < n->n_in; j++) {
                const Value *x = &in->value[n->in[j]];
                double was = e[j];
                if (!inner[j]) continue;
                e[j] += part * inner[j][(x->rows == 1 ? 0 : r * x->size) + index[j * v->size + i]];
                all += squared((interp_map(n, e) - y) / part);
                e[j] = was;
            }
            to[r * v->size + i] = (float) sqrt(all);
        }
    free(index);
}

// recur's are made with it: they need the state as it was.
void interp_terms(Interp *in, int node) {
    const Node *n = &in->stage->node[node];
    Value *v = &in->value[node];
    bool sums = n->op == OP_sum || n->op == OP_mean, depends = false;
    for (int j = 0; op_info[n->op].class == CLASS_MAP && j < n->n_in; j++) depends |= terms_within(in, n, j) != NULL;
    if (!sums && !depends) return;
    float *to = interp_room(&in->terms[node], (size_t) (v->rows * v->size));
    if (sums) sum_terms(in, n, v, to);
    else map_terms(in, n, v, to);
    v->terms = to;
}
