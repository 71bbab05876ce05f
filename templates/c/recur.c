// A linear recurrence over the rows of each sequence, in order: for each of H heads a matrix M [K][V] of f32 that
// lasts,
//     M' = diag(decay) M + write (erase^T M) + key value^T, and read^T M' (or, BEFORE, read^T M) is the row's result.
// In: the operands, rows of the batch; *_STEP: how far the operand of head h lies from that of head h - 1 (0: all heads
// have the same), DECAY_ONE: one decay for all keys. Out: [rows][H][V]. A piece is HEADS heads of all rows, so a state
// is read once for a batch, and a row's bits do not depend on the batch.
//
//@ template recur
//@ param H 4
//@ param K 8
//@ param V 8
//@ param HEADS 1
//@ param ERASE 1
//@ param BEFORE 0
//@ param FIXED_BYTES 1024
//@ param DECAY_ROW 32
//@ param DECAY_STEP 8
//@ param DECAY_ONE 0
//@ param KEY_ROW 32
//@ param KEY_STEP 8
//@ param READ_ROW 32
//@ param READ_STEP 8
//@ param ERASE_ROW 32
//@ param ERASE_STEP 8
//@ param WRITE_ROW 32
//@ param WRITE_STEP 8
//@ needs math.h row.h
#include "../../runtime/model.h"
#include <string.h>

#include "half.h"

#include "simd.h"

#include "math.h"

#include "row.h"

enum {
    H = 4,
    K = 8,
    V = 8,
    HEADS = 1,
    DECAY_ROW = 32,
    DECAY_STEP = 8,
    DECAY_ONE = 0,
    KEY_ROW = 32,
    KEY_STEP = 8,
    READ_ROW = 32,
    READ_STEP = 8
};
enum { ERASE_ROW = 32, ERASE_STEP = 8, WRITE_ROW = 32, WRITE_STEP = 8, FIXED_BYTES = 1024 };
//@ begin
// n vectors of columns of M, for one head of one row: they stay in registers while M goes by, a row of it for each key.
static inline __attribute__((always_inline)) void recur_columns(const int n, float *restrict M,
    const float *restrict decay, const float *restrict key, const float *restrict value, const float *restrict read,
    const float *restrict erase, const float *restrict write, float *restrict o) {
    vf vs[4], sum[4], erased[4];
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) vs[c] = vf_load(value + c * LANES), sum[c] = erased[c] = vf_set(0);
    for (int i = 0; i < K; i++) {                                                                     //@ when ERASE
        const vf e = vf_set(erase[i]);                                                                //@ when ERASE
#pragma GCC unroll 4                                                                                  //@ when ERASE
        for (int c = 0; c < n; c++) erased[c] = vf_fma(e, vf_load(M + i * V + c * LANES), erased[c]); //@ when ERASE
    }                                                                                                 //@ when ERASE
    for (int i = 0; i < K; i++) {
        const vf w = vf_set(decay[DECAY_ONE ? 0 : i]), k = vf_set(key[i]), q = vf_set(read[i]);
#pragma GCC unroll 4
        for (int c = 0; c < n; c++) {
            float *at = M + i * V + c * LANES;
            vf x = vf_load(at);
            sum[c] = vf_fma(q, x, sum[c]); //@ when BEFORE
            x = vf_fma(k, vs[c], w * x);
            x = vf_fma(vf_set(write[i]), erased[c], x); //@ when ERASE
            sum[c] = vf_fma(q, x, sum[c]);              //@ when !BEFORE
            vf_store(at, x);
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) vf_store(o + c * LANES, sum[c]);
    (void) erased, (void) erase, (void) write;
}

// A column that fills no vector: the same steps.
static inline void recur_column(float *restrict M, const float *restrict decay, const float *restrict key,
    const float *restrict value, const float *restrict read, const float *restrict erase, const float *restrict write,
    float *restrict o) {
    float sum = 0, erased = 0;
    for (int i = 0; i < K; i++) erased = fma_f32(erase[i], M[i * V], erased); //@ when ERASE
    for (int i = 0; i < K; i++) {
        float x = M[i * V];
        sum = fma_f32(read[i], x, sum); //@ when BEFORE
        x = fma_f32(key[i], value[0], decay[DECAY_ONE ? 0 : i] * x);
        x = fma_f32(write[i], erased, x); //@ when ERASE
        sum = fma_f32(read[i], x, sum);   //@ when !BEFORE
        M[i * V] = x;
    }
    o[0] = sum;
    (void) erased, (void) erase, (void) write;
}

// One head of one row. Columns of M do not touch each other; sums along keys are one step for each key.
static inline void recur_step(float *restrict M, const float *restrict decay, const float *restrict key,
    const float *restrict value, const float *restrict read, const float *restrict erase, const float *restrict write,
    float *restrict o) {
    int j = 0;
    for (; j + 4 * LANES <= V; j += 4 * LANES)
        recur_columns(4, M + j, decay, key, value + j, read, erase, write, o + j);
    for (; j + LANES <= V; j += LANES) recur_columns(1, M + j, decay, key, value + j, read, erase, write, o + j);
    for (; j < V; j++) recur_column(M + j, decay, key, value + j, read, erase, write, o + j);
}

static void recur(const Model *m, uint64_t at, const float *restrict decay, const float *restrict key,
    const float *restrict value, const float *restrict read, const float *restrict erase, const float *restrict write,
    float *restrict o, int piece) {
    const int h0 = piece * HEADS, h1 = h0 + HEADS < H ? h0 + HEADS : H;
    for (int r = 0; r < m->rows; r++) {
        float *M = (float *) (m->fixed + (size_t) m->seq[r] * FIXED_BYTES + at);
        for (int h = h0; h < h1; h++)
            recur_step(M + (size_t) h * (K * V), decay + (size_t) r * DECAY_ROW + h * DECAY_STEP,
                key + (size_t) r * KEY_ROW + h * KEY_STEP, value + ((size_t) r * H + (size_t) h) * V,
                read + (size_t) r * READ_ROW + h * READ_STEP, erase + (size_t) r * ERASE_ROW + h * ERASE_STEP,
                write + (size_t) r * WRITE_ROW + h * WRITE_STEP, o + ((size_t) r * H + (size_t) h) * V);
    }
}
//@ end
