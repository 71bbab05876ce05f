// Rows of activations against one packed panel: the core of every matrix product on packed weights, with AVX-512 VNNI.
// In: a panel of 16 rows of weights, k long; rows of q8 activations, x_bytes apart. Out: v[r][lane], the sixteen
// products of each row.
// vpdpbusd adds four products of an unsigned and a signed byte to an int32: exact. Weights are made unsigned by their
// offset, and the sum begins at minus the offset times the sum of the activations. Then one f32 step for each group
// of weights that has a scale, in order: so a product has the same bits with one row and with many.
// A few rows read the panel as a stream; more rows unpack some blocks into a scratch that stays in the first cache.
//
//@ template panel
//@ param FMT q4_1
//@ needs tile.h FMT.avx512
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../c-avx2/half.h"

#include "tile.h"

#include "../c/panel.h"

#include "../format/pack.h"

#define TUNED_AVX512
#include "../format/q4_1.c"

#define FMT_offset q4_1_offset
#define FMT_minima q4_1_minima
#define FMT_grouped q4_1_grouped
#define FMT_stream q4_1_stream
#define FMT_lines q4_1_lines
#define FMT_line q4_1_line
#define FMT_scales q4_1_scales
//@ begin
// A chunk of blocks of a panel, unpacked: 8 lines of bytes, the scales of one group or two, the minima.
enum { panel_chunk = 16, panel_lines = FMT_grouped ? 4 : 8 };
typedef struct {
    _Alignas(64) uint8_t line[panel_chunk * 512];
    __m512 d[panel_chunk][2], m[panel_chunk][1];
} panel_unpacked;

static inline void panel_unpack(const uint8_t *restrict w, int first, int n, panel_unpacked *restrict u) {
    for (int b = 0; b < n; b++) {
        const uint8_t *lines = FMT_lines(w, first + b);
        fetch_ahead(lines, FMT_stream);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) _mm512_store_si512((void *) (u->line + 512 * b + 64 * j), FMT_line(lines, j));
        FMT_scales(w, first + b, u->d[b], u->m[b]);
    }
}

// Where the sum of a group begins. xs: the row's sums of sixteen activations for this block.
static inline __m512i panel_start(const uint8_t *xs, int line) {
    if (!FMT_offset) return _mm512_setzero_si512();
    int16_t s[2];
    memcpy(s, xs, 4);
    return _mm512_set1_epi32(-FMT_offset * (!FMT_grouped ? s[0] + s[1] : line < 4 ? s[0] : s[1]));
}

// n unpacked blocks from block `first` on, for a few rows: v[r] goes on from what it holds.
static inline __attribute__((always_inline)) void panel_tile(const panel_unpacked *restrict u, int first, int n,
    const uint8_t *restrict x, size_t x_bytes, int k, const int rows, float (*restrict v)[16]) {
    __m512 acc[12];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) acc[r] = _mm512_load_ps(v[r]);
    for (int b = 0; b < n; b++) {
        const uint8_t *line = u->line + 512 * b, *xb = x + 32 * (first + b), *xd = x + k + 4 * (first + b);
        for (int l = 0; l < 8; l += panel_lines) {
            __m512i sum[12];
#pragma GCC unroll 12
            for (int r = 0; r < rows; r++) sum[r] = panel_start(xd + r * x_bytes + k / 4, l);
#pragma GCC unroll 1
            for (int j = 0; j < panel_lines; j++, line += 64, xb += 4) {
                const __m512i w = load_line(line);
#pragma GCC unroll 12
                for (int r = 0; r < rows; r++) sum[r] = _mm512_dpbusd_epi32(sum[r], w, four_bytes(xb + r * x_bytes));
            }
            const __m512 d = u->d[b][l / 4 % 2];
#pragma GCC unroll 12
            for (int r = 0; r < rows; r++)
                acc[r] =
                    _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), _mm512_mul_ps(d, one_float(xd + r * x_bytes)), acc[r]);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++)
            if (FMT_minima) acc[r] = _mm512_fmadd_ps(u->m[b][0], one_float(xd + r * x_bytes + k / 8), acc[r]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) _mm512_store_ps(v[r], acc[r]);
}

// One row, or a few: the panel is read once, as a stream, and unpacked in registers.
static inline __attribute__((always_inline)) void panel_few(const uint8_t *restrict w, int k, const uint8_t *restrict x,
    size_t x_bytes, const int rows, float (*restrict v)[16]) {
    __m512 acc[4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) acc[r] = _mm512_setzero_ps();
    for (int b = 0; b < k / 32; b++) {
        const uint8_t *lines = FMT_lines(w, b), *xb = x + 32 * b, *xd = x + k + 4 * b;
        __m512 d[2], m[1];
        fetch_ahead(lines, FMT_stream);
        FMT_scales(w, b, d, m);
#pragma GCC unroll 2
        for (int l = 0; l < 8; l += panel_lines) {
            __m512i sum[4];
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) sum[r] = panel_start(xd + r * x_bytes + k / 4, l);
#pragma GCC unroll 8
            for (int j = l; j < l + panel_lines; j++) {
                const __m512i line = FMT_line(lines, j);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    sum[r] = _mm512_dpbusd_epi32(sum[r], line, four_bytes(xb + r * x_bytes + 4 * j));
            }
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                acc[r] = _mm512_fmadd_ps(
                    _mm512_cvtepi32_ps(sum[r]), _mm512_mul_ps(d[l / 4 % 2], one_float(xd + r * x_bytes)), acc[r]);
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            if (FMT_minima) acc[r] = _mm512_fmadd_ps(m[0], one_float(xd + r * x_bytes + k / 8), acc[r]);
    }
    for (int r = 0; r < rows; r++) _mm512_store_ps(v[r], acc[r]);
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
        for (; r + 12 <= rows; r += 12) panel_tile(&u, b, n, x + r * x_bytes, x_bytes, k, 12, v + r);
        for (; r + 4 <= rows; r += 4) panel_tile(&u, b, n, x + r * x_bytes, x_bytes, k, 4, v + r);
        const uint8_t *rest = x + r * x_bytes;
        switch (rows - r) {
        case 3: panel_tile(&u, b, n, rest, x_bytes, k, 3, v + r); break;
        case 2: panel_tile(&u, b, n, rest, x_bytes, k, 2, v + r); break;
        case 1: panel_tile(&u, b, n, rest, x_bytes, k, 1, v + r); break;
        }
    }
}
//@ end
