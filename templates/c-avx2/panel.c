// Rows of activations against one packed panel: the core of every matrix product on packed weights, with AVX2.
// In: a panel of 16 rows of weights, k long; rows of q8 activations, x_bytes apart. Out: v[r][lane], the sixteen
// products of each row.
// Integers of a block of 32 are summed exactly: vpmaddubsw gives int16 sums of two products, FMT_terms of which fit in
// an int16 (q <= 15: 8 * 2 * 15 * 127 = 30480; q <= 31: 4 * 2 * 31 * 127 = 31496; q <= 63: 2 * 2 * 63 * 127 = 32004;
// |q| <= 128, with the sign moved to the activation: 2 * 128 * 127 = 32512; all below 32767, so nothing saturates).
// Then one f32 step for each block, in the order of blocks: so a product has the same bits with one row and with many.
// One row reads the panel as a stream; several rows unpack some blocks into a scratch that stays in the first cache.
//
//@ template panel
//@ param FMT q4_1
//@ needs tile.h FMT.avx2
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "half.h"

#include "tile.h"

#include "../c/panel.h"

#include "../format/pack.h"

#define TUNED_AVX2
#include "../format/q4_1.c"

#define FMT_terms q4_1_terms
#define FMT_offset q4_1_offset
#define FMT_minima q4_1_minima
#define FMT_grouped q4_1_grouped
#define FMT_groups q4_1_groups
#define FMT_stream q4_1_stream
#define FMT_lines q4_1_lines
#define FMT_line q4_1_line
#define FMT_scales q4_1_scales
//@ begin
// A chunk of blocks of a panel, unpacked: 8 lines of bytes, the scales, the minima, the pairs of group scales.
enum { panel_chunk = 16 };
typedef struct {
    _Alignas(64) uint8_t line[panel_chunk * 512];
    __m256 d[panel_chunk][2], m[panel_chunk][2];
    __m256i pair[panel_chunk][2];
} panel_unpacked;

static inline void panel_unpack(const uint8_t *restrict w, int first, int n, panel_unpacked *restrict u) {
    for (int b = 0; b < n; b++) {
        const uint8_t *lines = FMT_lines(w, first + b);
        fetch_ahead(lines, FMT_stream);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            for (int h = 0; h < 2; h++)
                _mm256_store_si256((__m256i *) (u->line + 512 * b + 64 * j + 32 * h), FMT_line(lines, j, h));
        FMT_scales(w, first + b, u->d[b], u->m[b]);
        for (int h = 0; h < 2; h++) u->pair[b][h] = FMT_groups(w, first + b, h);
    }
}

// Sixteen sums of two products, w unsigned or, where only one such sum fits, signed.
static inline __m256i panel_products(__m256i w, __m256i x) {
    return FMT_terms == 1 ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
                          : _mm256_maddubs_epi16(w, x);
}

// The f32 step of one row and block: acc + d dx sum, + m dx (sum of x). xd: the row's d for this block.
static inline __m256 panel_step(__m256 acc, __m256i sum, __m256i pair, __m256 d, __m256 m, const uint8_t *xd, int k) {
    if (FMT_offset) {
        const __m256i off = _mm256_mullo_epi16(pair, _mm256_set1_epi16(-FMT_offset));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(off, four_bytes(xd + k / 4)));
    }
    const __m256 dx = _mm256_broadcast_ss((const float *) xd);
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(d, dx), acc);
    return FMT_minima ? _mm256_fmadd_ps(m, _mm256_broadcast_ss((const float *) (xd + k / 8)), acc) : acc;
}

// n unpacked blocks from block `first` on, for a few rows: v[r] goes on from what it holds. The loops along a block
// stay loops: small code, and twelve sums, two vectors of weights and one of activations fill the sixteen registers.
static inline __attribute__((always_inline)) void panel_tile(const panel_unpacked *restrict u, int first, int n,
    const uint8_t *restrict x, size_t x_bytes, int k, const int rows, float (*restrict v)[16]) {
    for (int b = 0; b < n; b++) {
        const uint8_t *line = u->line + 512 * b, *xb = x + 32 * (first + b);
        __m256i sum[6][2];
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 1
        for (int t = 0; t < 8 / FMT_terms; t++) {
            __m256i part[6][2];
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++) part[r][0] = part[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 1
            for (int j = 0; j < FMT_terms; j++, line += 64, xb += 4) {
                const __m256i w0 = load_line(line), w1 = load_line(line + 32);
#pragma GCC unroll 6
                for (int r = 0; r < rows; r++) {
                    const __m256i xs = four_bytes(xb + r * x_bytes);
                    part[r][0] = here(_mm256_add_epi16(part[r][0], panel_products(w0, xs)));
                    part[r][1] = here(_mm256_add_epi16(part[r][1], panel_products(w1, xs)));
                }
            }
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++) {
                const __m256i pair = u->pair[b][h];
                const __m256i factor = !FMT_grouped ? pair
                    : t < 4 / FMT_terms             ? first_of_pair(pair)
                                                    : second_of_pair(pair);
#pragma GCC unroll 6
                for (int r = 0; r < rows; r++)
                    sum[r][h] = _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(part[r][h], factor));
            }
        }
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            const uint8_t *xd = x + r * x_bytes + k + 4 * (first + b);
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++) {
                const __m256 acc = _mm256_load_ps(v[r] + 8 * h);
                _mm256_store_ps(v[r] + 8 * h, panel_step(acc, sum[r][h], u->pair[b][h], u->d[b][h], u->m[b][h], xd, k));
            }
        }
    }
}

// One row, or a few: the panel is read once, as a stream, and unpacked in registers.
static inline __attribute__((always_inline)) void panel_few(const uint8_t *restrict w, int k, const uint8_t *restrict x,
    size_t x_bytes, const int rows, float (*restrict v)[16]) {
    __m256 acc[4][2];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    for (int b = 0; b < k / 32; b++) {
        const uint8_t *lines = FMT_lines(w, b), *xb = x + 32 * b;
        __m256 d[2], m[2];
        __m256i pair[2], sum[4][2];
        fetch_ahead(lines, FMT_stream);
        FMT_scales(w, b, d, m);
        for (int h = 0; h < 2; h++) pair[h] = FMT_groups(w, b, h);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int t = 0; t < 8; t += FMT_terms) {
            __m256i part[4][2];
#pragma GCC unroll 8
            for (int j = t; j < t + FMT_terms; j++) {
                const __m256i w0 = FMT_line(lines, j, 0), w1 = FMT_line(lines, j, 1);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++) {
                    const __m256i xs = four_bytes(xb + r * x_bytes + 4 * j);
                    const __m256i p0 = panel_products(w0, xs), p1 = panel_products(w1, xs);
                    part[r][0] = here(j == t ? p0 : _mm256_add_epi16(part[r][0], p0));
                    part[r][1] = here(j == t ? p1 : _mm256_add_epi16(part[r][1], p1));
                }
            }
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++) {
                const __m256i factor = !FMT_grouped ? pair[h]
                    : t < 4                         ? first_of_pair(pair[h])
                                                    : second_of_pair(pair[h]);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    sum[r][h] = _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(part[r][h], factor));
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++)
                acc[r][h] = panel_step(acc[r][h], sum[r][h], pair[h], d[h], m[h], x + r * x_bytes + k + 4 * b, k);
    }
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < 2; h++) _mm256_store_ps(v[r] + 8 * h, acc[r][h]);
}

static void panel(
    const uint8_t *restrict w, int k, const uint8_t *restrict x, size_t x_bytes, int rows, float (*restrict v)[16]) {
    switch (rows) {
    case 1: panel_few(w, k, x, x_bytes, 1, v); return;
    case 2: panel_few(w, k, x, x_bytes, 2, v); return;
    case 3: panel_few(w, k, x, x_bytes, 3, v); return;
    case 4: panel_few(w, k, x, x_bytes, 4, v); return;
    }
    panel_unpacked u;
    memset(v, 0, (size_t) rows * sizeof *v);
    for (int b = 0; b < k / 32; b += panel_chunk) {
        const int n = k / 32 - b < panel_chunk ? k / 32 - b : panel_chunk;
        panel_unpack(w, b, n, &u);
        int r = 0;
        for (; r + 6 <= rows; r += 6) panel_tile(&u, b, n, x + r * x_bytes, x_bytes, k, 6, v + r);
        const uint8_t *rest = x + r * x_bytes;
        switch (rows - r) {
        case 5: panel_tile(&u, b, n, rest, x_bytes, k, 5, v + r); break;
        case 4: panel_tile(&u, b, n, rest, x_bytes, k, 4, v + r); break;
        case 3: panel_tile(&u, b, n, rest, x_bytes, k, 3, v + r); break;
        case 2: panel_tile(&u, b, n, rest, x_bytes, k, 2, v + r); break;
        case 1: panel_tile(&u, b, n, rest, x_bytes, k, 1, v + r); break;
        }
    }
}
//@ end
