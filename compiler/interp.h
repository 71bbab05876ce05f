// The interpreter: what a graph means. In: a graph and the weights of its file as they stand. Out: every value of
// every node, as f32, each computed in double and rounded once. It is slow and obvious on purpose: whatever else
// is made from a graph is held against it.
//
// One sequence, some rows at a time; states (keys and values) stay between calls. A row's values depend on neither
// the cut of the sequence into calls nor the number of threads.
#ifndef INTERP_H
#define INTERP_H

#include "graph.h"

typedef struct Interp Interp;
Interp *interp_new(const Graph *g, int threads); // threads < 1: as many as there are cores
void interp_free(Interp *in);
void interp_forget(Interp *in);    // back to an empty sequence
int interp_past(const Interp *in); // rows evaluated so far
// Keys and values are rounded to f16 as they are stored, as in programs with a cache of f16.
void interp_kv_f16(Interp *in, bool on);
// q8 changes nothing: a lowered graph then means the same, to the bit, as the graph it was made from.
void interp_skip_q8(Interp *in, bool on);
// Each element of a product comes out wrong by up to `size` times the root mean square of its vector, this way or that
// as `seed` has it: how much does the result depend on how sums are rounded? 0: not at all.
void interp_jitter(Interp *in, double size, uint64_t seed);

// The next n rows. want[r]: logits of row r are wanted (NULL: of none). Gives their logits, [wanted][n_vocab], until
// the next call.
const float *interp_eval(Interp *in, const int32_t *ids, int n, const bool *want);

// The same in single steps, to look at the values between them: begin, then for every run in order, for every layer
// of the run in order, interp_step; then interp_end. Layers count from 0 in the model; 0 outside layers.
void interp_begin(Interp *in, const int32_t *ids, int n, const bool *want);
void interp_step(Interp *in, int run, int layer);
const float *interp_end(Interp *in);

// Values say how large their terms are, for verify: a sum of f32 is wrong by a part of its terms, and where these
// cancel that is a large part of the sum.
void interp_measure(Interp *in, bool on);

// A node's value after the step of its stage: [rows][size]; rows is 1 for what is the same in every row.
typedef struct {
    const float *real;
    const int32_t *id; // instead of real: nodes of type I32
    int rows;
    int64_t size;
    // [rows][size] of what is measured (recur, sum, and what follows them in their kernels), else NULL: the root of the
    // sum of the squares of the terms, which is about as large as the sum itself where its terms do not cancel
    const float *terms;
} Value;
Value interp_value(const Interp *in, int node);
Value interp_global(const Interp *in, int global);

// Keys or values that a state of a layer holds, [position][kv heads x width].
const float *interp_cache(const Interp *in, int stage, int state, int layer, bool values);
// Makes believe that the sequence is `n` rows long by repeating the keys and values that are there: for tests of long
// contexts.
void interp_stretch(Interp *in, int n);

// One row of a weight (product: the weights of one output; table: one entry), as the file's format defines it.
void weight_row(const Graph *g, const Weight *w, int layer, int64_t row, float *out);

// `ggcc logits`: the rows at positions at[0 .. n_at-1] in that order, repeats too (all when n_at < 0), raw float32.
void interp_logits(
    Arena *a, const Graph *g, const int32_t *ids, int n, const int *at, int n_at, const char *path, int threads);

#endif
