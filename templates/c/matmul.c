// Matrix product on the file's own rows, for every format and any machine: the reference.
// In: rows of weights as the model file has them, [rows][K] floats. Out: sixteen outputs of a row at a time to `store`.
// Four rows of weights become floats at a time, or are floats and lie there (IN_PLACE), and meet all rows of the piece.
//
// Weights of strands lie panel by panel: sixteen rows of strand 0, sixteen of strand 1, then the next panel. The last
// panel has only its real rows, so with one strand the weights are the file's rows, one after the other.
//
//@ template matmul
//@ param K 576
//@ param N 200
//@ param S 1
//@ param PANELS 4
//@ param ROWS 64
//@ param FMT f32
//@ param IN_PLACE 1
//@ slot store
//@ args args
//@ needs half.h dot.h FMT.decode
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "half.h"

#include "simd.h"

#include "dot.h"

#include "../format/f32.c"

enum { K = 576, N = 200, S = 1, PANELS = 4, ROWS = 64 };
#define FMT_row f32_row
#define FMT_block f32_block
#define FMT_bytes f32_bytes
static float y[ROWS * N];
//@ begin
static void matmul(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece /*@ args */) {
    const int panel_count = (N + 15) / 16, groups = (panel_count + PANELS - 1) / PANELS;
    const int p0 = piece % groups * PANELS, p1 = p0 + PANELS < panel_count ? p0 + PANELS : panel_count;
    const int r0 = piece / groups * ROWS, r1 = r0 + ROWS < rows ? r0 + ROWS : rows;
    const size_t row_bytes = (size_t) K / FMT_block * FMT_bytes;
    const float *xs = (const float *) x + (size_t) r0 * K;
    _Alignas(64) float v[S][ROWS][16];
    _Alignas(64) float four[4 * K]; //@ when !IN_PLACE
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = N % 16 && p == panel_count - 1 ? N % 16 : 16;
        for (int s = 0; s < S; s++)
            for (int i = 0; i < m; i += 4) {
                const int outs = m - i < 4 ? m - i : 4;
                const uint8_t *from = w + (size_t) (n * S + s * m + i) * row_bytes;
                for (int o = 0; o < outs; o++) FMT_row(from + o * row_bytes, four + o * K, K); //@ when !IN_PLACE
                dot_rows(four, xs, K, outs, r1 - r0, (float(*)[16]) & v[s][0][i]); //@ when !IN_PLACE
                dot_rows((const float *) from, xs, K, outs, r1 - r0, (float(*)[16]) & v[s][0][i]); //@ when IN_PLACE
            }
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];                                  //@ strand
            for (int i = 0; i < m; i++) y[(size_t) r * N + (size_t) (n + i)] = v0[i]; //@ store
        }
    }
}
//@ end
