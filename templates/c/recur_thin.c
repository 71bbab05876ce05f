// recur.c for values of one number: M is a vector of K for each of H channels, and sums along keys are vectors of
// partial sums.
// In, out: as recur.c says, with V = 1 and nothing erased. RATES: the decay is exp(decay * rates), rates [H][K], decay
// one number a channel. A piece is HEADS channels of all rows.
//
//@ template recur
//@ param H 4
//@ param K 8
//@ param HEADS 1
//@ param BEFORE 0
//@ param RATES 1
//@ param FIXED_BYTES 1024
//@ param DECAY_ROW 4
//@ param DECAY_STEP 1
//@ param DECAY_ONE 1
//@ param KEY_ROW 32
//@ param KEY_STEP 8
//@ param READ_ROW 32
//@ param READ_STEP 8
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
    HEADS = 1,
    DECAY_ROW = 4,
    DECAY_STEP = 1,
    DECAY_ONE = 1,
    KEY_ROW = 32,
    KEY_STEP = 8,
    READ_ROW = 32,
    READ_STEP = 8
};
enum { FIXED_BYTES = 1024 };
//@ begin
static void recur(const Model *m, uint64_t at, const float *restrict decay, const float *restrict key,
    const float *restrict value, const float *restrict read, const float *restrict rates, float *restrict o,
    int piece) {
    const int h0 = piece * HEADS, h1 = h0 + HEADS < H ? h0 + HEADS : H;
    (void) rates;
    for (int r = 0; r < m->rows; r++) {
        float *all = (float *) (m->fixed + (size_t) m->seq[r] * FIXED_BYTES + at);
        for (int h = h0; h < h1; h++) {
            float *restrict M = all + (size_t) h * K;
            const float *w = decay + (size_t) r * DECAY_ROW + h * DECAY_STEP,
                        *k = key + (size_t) r * KEY_ROW + h * KEY_STEP;
            const float *q = read + (size_t) r * READ_ROW + h * READ_STEP, v = value[(size_t) r * H + (size_t) h];
            o[(size_t) r * H + (size_t) h] = row_dot(q, M, K); //@ when BEFORE
            for (int i = 0; i < K; i++)                                                             //@ when RATES
                M[i] = fma_f32(k[i], v, exp_f32(w[0] * rates[(size_t) h * K + (size_t) i]) * M[i]); //@ when RATES
            for (int i = 0; i < K; i++)                                                             //@ when !RATES
                M[i] = fma_f32(k[i], v, w[DECAY_ONE ? 0 : i] * M[i]);                               //@ when !RATES
            o[(size_t) r * H + (size_t) h] = row_dot(q, M, K); //@ when !BEFORE
        }
    }
}
//@ end
