// The inside of the interpreter, shared by its files: interp.c (values, stages, the model), interp_ops.c
// (operators of one row that move, choose and sum), interp_state.c (what outlives a row), interp_terms.c (how large
// what was summed is).
#ifndef INTERP_IN_H
#define INTERP_IN_H

#include "interp.h"

// A state of one layer. cache: keys and values of all positions, [position][kv heads][width]. tail: k = the last n
// values, oldest first. cell: k = [heads][K][V].
typedef struct {
    float *k, *v;
    int64_t cap; // positions
} Cache;

// A growable piece of memory that values live in. Cells are float, or int32_t where the type is I32.
typedef struct {
    float *p;
    size_t cap;
} Cells;

struct Interp {
    const Graph *g;
    int threads;
    bool kv_f16, skip_q8, measure;
    double jitter;
    uint64_t random; // what the next jitter comes from
    Cache **cache;      // [stage][layer * n_state + state]
    Cells *global;      // [n_global]
    int past;           // positions before this call's rows
    int n, n_want;      // rows of this call; of these, wanted
    int32_t *pos, *id;  // [rows]
    int *want;          // [n_want] row numbers
    bool dropped;       // only wanted rows are left (see drop_rows)
    int n_run_kept;     // runs before this one need every row
    const Stage *stage; // of the step at hand, its layer
    int layer;
    Cells *cell;  // [most nodes of a stage]
    Cells *terms; // likewise
    Value *value; // of this stage's nodes
    double *wide; // scratch: the input of a product in double
    size_t wide_cap;
};

void *interp_grow(void *p, size_t n, size_t size); // realloc that does not come back empty-handed
float *interp_room(Cells *c, size_t n);                 // for n cells; what was there is lost
double interp_map(const Node *n, const double *e);      // an elementwise operator of its operands e[3]
void interp_terms(Interp *in, int node);                // interp_terms.c
void interp_parallel(int threads, int64_t n, void (*work)(void *arg, int64_t i), void *arg);
Cache *interp_state_at(const Interp *in, int state); // of the layer at hand, or of the layer whose state it shares

static inline double squared(double x) {
    return x * x;
}
static inline double value_at(const Value *v, int row, int64_t i) {
    if (v->rows == 1) row = 0;
    return v->id ? v->id[row * v->size + i] : v->real[row * v->size + i];
}
static inline const float *value_row(const Value *v, int row) {
    return v->real + (v->rows == 1 ? 0 : row * v->size);
}
static inline const int32_t *value_ids(const Value *v, int row) {
    return v->id + (v->rows == 1 ? 0 : row * v->size);
}
// An id that was computed, of n there are: the nearest that exists, as in a program.
static inline int64_t interp_id(int32_t id, int64_t n) {
    return id < 0 ? 0 : id < n ? id : n - 1;
}
// A row's cells, whatever they hold: four bytes each.
static inline const void *interp_cells(const Value *v, int row) {
    int64_t at = v->rows == 1 ? 0 : row * v->size;
    return v->id ? (const void *) (v->id + at) : (const void *) (v->real + at);
}

// The elements of a row of `out` in terms of a row of `in`: element i of out is computed from element index[i] of in.
void interp_broadcast(Shape out, Shape in, int64_t *index);

// interp_ops.c: true when it knows the operator. y: [rows][size], of int32_t for I32.
bool interp_row_op(const Interp *in, const Node *n, const Value *x, void *y, int rows);
// interp_state.c: likewise.
bool interp_state_op(Interp *in, const Node *n, const Value *x, void *y, int rows);
void interp_state_free(const Interp *in);
void interp_state_forget(const Interp *in);

#endif
