// What blocks of N positions are as one: channel by channel, the values of a block's rows weighed by the softmax of
// their scores. M > 1: the blocks before it count too, part i of M of a row's values and scores when its block is M
// - 1 - i behind. In: values and scores [rows][M][C]; the state [M * N slots][value or score][M][C] of each
// sequence, in which a position has the slot of its number, so that a block has the same bits however the batch was
// cut. Out: [rows][C], on the last row of a block; else 0. A piece is WIDE channels of all rows.
//
//@ template blend
//@ param M 2
//@ param N 4
//@ param C 64
//@ param WIDE 16
//@ param FIXED_BYTES 1024
//@ needs math.h
#include "../../runtime/model.h"
#include <string.h>

#include "half.h"

#include "simd.h"

#include "math.h"

enum { M = 2, N = 4, C = 64, WIDE = 16, FIXED_BYTES = 1024 };
//@ begin
enum { blend_slots = M * N };

// The block that ends at position end - 1.
static void blend_end(const float *restrict state, int end, int wide, float *restrict y) {
    const int begin = end < blend_slots ? 0 : end - blend_slots;
    float top[WIDE], sum[WIDE];
    for (int c = 0; c < wide; c++) top[c] = -__builtin_inff(), sum[c] = 0, y[c] = 0;
    for (int p = begin; p < end; p++) {
        const float *score = state + (size_t) (p % blend_slots * 2 + 1) * (M * C) + (M - 1 - (end - 1 - p) / N) * C;
        for (int c = 0; c < wide; c++) top[c] = max_f32(top[c], score[c]);
    }
    for (int p = begin; p < end; p++) {
        const float *value = state + (size_t) (p % blend_slots * 2) * (M * C) + (M - 1 - (end - 1 - p) / N) * C;
        const float *score = value + M * C;
        for (int c = 0; c < wide; c++) {
            const float e = exp_f32(score[c] - top[c]);
            sum[c] += e;
            y[c] += e * value[c];
        }
    }
    for (int c = 0; c < wide; c++) y[c] /= sum[c];
}

static void blend(const Model *m, uint64_t at, const float *restrict values, const float *restrict scores,
    float *restrict y, int piece) {
    const int from = piece * WIDE, wide = C - from < WIDE ? C - from : WIDE;
    for (int r = 0; r < m->rows; r++) {
        float *restrict state = (float *) (m->fixed + (size_t) m->seq[r] * FIXED_BYTES + at) + from;
        float *restrict slot = state + (size_t) (m->pos[r] % blend_slots * 2) * (M * C);
        for (int i = 0; i < M; i++) {
            memcpy(slot + i * C, values + ((size_t) r * M + i) * C + from, (size_t) wide * 4);
            memcpy(slot + (M + i) * C, scores + ((size_t) r * M + i) * C + from, (size_t) wide * 4);
        }
        float *out = y + (size_t) r * C + from;
        if ((m->pos[r] + 1) % N == 0) blend_end(state, m->pos[r] + 1, wide, out);
        else
            for (int c = 0; c < wide; c++) out[c] = 0;
    }
}
//@ end
