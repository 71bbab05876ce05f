// synthetic llama (llama), compiled by ggcc 0.1.0 from llama.gguf.
//
// Build it with
//     cc -std=gnu11 -O2 -ffp-contract=off -fno-delete-null-pointer-checks -fvect-cost-model=dynamic -fno-ivopts -Iruntime -march=x86-64-v3 model.c chat_*.c runtime/*.c -o program -pthread -lm
//
// In: rows of (token, position, sequence). Out: the logits of the rows that are wanted. Every step is cut into pieces
// that threads claim; a kernel computes one piece. Values lie in m->scratch at planned places, weights packed in
// m->weights, keys and values in pages.
// Begin at `the model`, far below; its kernels stand before it, and before them the arithmetic that they stand on.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// Parts of immintrin.h, all of which takes half a second to read.
#define _IMMINTRIN_H_INCLUDED
#define __IMMINTRIN_H
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>

#include "model.h"
#include "selftest.h"

// ---- arithmetic, formats and activations: what every model has that needs it ----
// This part was laid out in the templates, where names are shorter.
// clang-format off

// Sixteen-bit floats to f32 and back, with the F16C instructions; same results as c/half.h.
// In: bit patterns. Out: the nearest value, ties to even; infinities and NaN are kept.
static inline uint16_t read_u16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

static inline float float_at(const uint8_t *p) {
    float v;
    memcpy(&v, p, 4);
    return v;
}

static inline float float_of_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t bits_of_float(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float f16_to_f32(uint16_t h) {
    return _cvtsh_ss(h);
}

static inline uint16_t f32_to_f16(float f) {
    return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT);
}

static inline void f32_to_f16_n(const float *restrict x, uint8_t *restrict h, int64_t n) {
    const int64_t whole = n / 8 * 8;
    for (int64_t i = 0; i < whole; i += 8)
        _mm_storeu_si128((__m128i *) (h + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (int64_t i = whole; i < n; i++) {
        uint16_t v = f32_to_f16(x[i]);
        memcpy(h + 2 * i, &v, 2);
    }
}

// Elementary functions for loops along a row: no branches, no tables, no libm, so that compilers vectorise the loop.
// In, out: f32. exp, log: at most 2 units in the last place; tanh, erf: 1e-6. Infinities and NaN go through.

// a b + c with one rounding where the machine has it, with two elsewhere; never the slow library function.
static inline float fma_f32(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

// `yes ? a : b` by masks: both are computed, so there is no branch that a compiler might make.
static inline float select_f32(int yes, float a, float b) {
    const uint32_t mask = -(uint32_t) yes;
    return float_of_bits((bits_of_float(a) & mask) | (bits_of_float(b) & ~mask));
}

static inline float max_f32(float a, float b) {
    return select_f32(a > b, a, b);
}

// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by a polynomial. Adding 1.5 * 2^23 rounds to an integer in the low bits.
// The factor 2^n goes on in two halves, each of which is a normal number.
static inline float exp_f32(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float big = 0x1.8p23f, t = fma_f32(x, 0x1.715476p0f, big), n = t - big;
    const float r = fma_f32(n, -0x1.7f7d1cp-20f, fma_f32(n, -0x1.62e400p-1f, x));
    float p = fma_f32(1.39506261e-3f, r, 8.36897032e-3f);
    p = fma_f32(p, r, 4.16662038e-2f);
    p = fma_f32(p, r, 1.66665182e-1f);
    p = fma_f32(p, r, 0.5f);
    p = fma_f32(p, r * r, r) + 1.0f;
    const int32_t i = (int32_t) (bits_of_float(t) - 0x4b400000), half = i >> 1;
    const float s0 = float_of_bits((uint32_t) (half + 127) << 23),
                s1 = float_of_bits((uint32_t) (i - half + 127) << 23);
    return p * s0 * s1;
}

// A few floats at a time, the same few operations for every instruction set; here with AVX2, FMA and F16C.
// In, out: vf, LANES floats. Sums along lanes have one fixed order.
typedef __m256 vf;
enum { LANES = 8 };

static inline vf vf_set(float x) {
    return _mm256_set1_ps(x);
}

static inline vf vf_load(const float *p) {
    return _mm256_loadu_ps(p);
}

static inline void vf_store(float *p, vf v) {
    _mm256_storeu_ps(p, v);
}

// Values of the cache: f16 or f32 in memory.
static inline vf vf_load_f32(const uint8_t *p) {
    return _mm256_loadu_ps((const float *) p);
}

static inline vf vf_load_f16(const uint8_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p));
}

static inline vf vf_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b) {
    return _mm256_max_ps(a, b);
}

static inline float vf_sum(vf v) {
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

static inline float vf_top(vf v) {
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

// Sums and the maximum along a row of floats, in one fixed order: four vectors of partial results, then their sum, then
// the rest of the row one by one.
// In: n floats. Out: one.
static inline float row_sum(const float *restrict x, int64_t n) {
    vf a = vf_set(0), b = a, c = a, d = a;
    const int64_t fours = n / (4 * LANES) * (4 * LANES), whole = n / LANES * LANES;
    for (int64_t i = 0; i < fours; i += 4 * LANES) {
        a += vf_load(x + i);
        b += vf_load(x + i + LANES);
        c += vf_load(x + i + 2 * LANES);
        d += vf_load(x + i + 3 * LANES);
    }
    for (int64_t i = fours; i < whole; i += LANES) a += vf_load(x + i);
    float sum = vf_sum((a + b) + (c + d));
    for (int64_t i = whole; i < n; i++) sum += x[i];
    return sum;
}

static inline float row_dot(const float *x, const float *y, int64_t n) {
    vf a = vf_set(0), b = a, c = a, d = a;
    const int64_t fours = n / (4 * LANES) * (4 * LANES), whole = n / LANES * LANES;
    for (int64_t i = 0; i < fours; i += 4 * LANES) {
        a = vf_fma(vf_load(x + i), vf_load(y + i), a);
        b = vf_fma(vf_load(x + i + LANES), vf_load(y + i + LANES), b);
        c = vf_fma(vf_load(x + i + 2 * LANES), vf_load(y + i + 2 * LANES), c);
        d = vf_fma(vf_load(x + i + 3 * LANES), vf_load(y + i + 3 * LANES), d);
    }
    for (int64_t i = fours; i < whole; i += LANES) a = vf_fma(vf_load(x + i), vf_load(y + i), a);
    float sum = vf_sum((a + b) + (c + d));
    for (int64_t i = whole; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static inline float row_sum_sq(const float *x, int64_t n) {
    return row_dot(x, x, n);
}

// n is at least 1.
static inline float row_max(const float *restrict x, int64_t n) {
    const int64_t whole = n / LANES * LANES;
    vf m = vf_set(x[0]);
    for (int64_t i = 0; i < whole; i += LANES) m = vf_max(m, vf_load(x + i));
    float top = vf_top(m);
    for (int64_t i = whole; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

// Activations as bytes: what a row of floats is turned into before it meets packed weights.
// In: k floats, k a multiple of 32. Out, one after the other: k int8 q; k / 32 float d, x ~ d q; k / 32 float, d
// times the sum of the 32 q; k / 16 int16, the sums of 16 q. Rows take q8_bytes(k), a multiple of 64.
static inline size_t q8_bytes(int64_t k) {
    return (size_t) (k + k / 8 * 3 + 63) / 64 * 64;
}

// The largest magnitude of four vectors.
static inline float q8_top(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    a = _mm256_max_ps(_mm256_andnot_ps(sign, a), _mm256_andnot_ps(sign, b));
    c = _mm256_max_ps(_mm256_andnot_ps(sign, c), _mm256_andnot_ps(sign, d));
    a = _mm256_max_ps(a, c);
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

static inline __m256i q8_round(__m256 x, __m256 scale) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(x, scale));
}

// d is the largest magnitude over 127, q is rounded to nearest even.
static inline void quantize_q8(const float *restrict x, uint8_t *restrict q, int64_t k) {
    float *restrict d = (float *) (q + k), *restrict ds = d + k / 32;
    int16_t *restrict s = (int16_t *) (ds + k / 32);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), one = _mm256_set1_epi8(1);
    for (int64_t b = 0; b < k / 32; b++, x += 32, q += 32) {
        const __m256 x0 = _mm256_loadu_ps(x), x1 = _mm256_loadu_ps(x + 8);
        const __m256 x2 = _mm256_loadu_ps(x + 16), x3 = _mm256_loadu_ps(x + 24);
        const float top = q8_top(x0, x1, x2, x3);
        const __m256 scale = _mm256_set1_ps(top > 0 ? 127.0f / top : 0);
        const __m256i low = _mm256_packs_epi32(q8_round(x0, scale), q8_round(x1, scale));
        const __m256i high = _mm256_packs_epi32(q8_round(x2, scale), q8_round(x3, scale));
        const __m256i v = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
        _mm256_storeu_si256((__m256i *) q, v);
        __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(one, v), _mm256_set1_epi16(1));
        sum = _mm256_hadd_epi32(sum, sum);
        sum = _mm256_hadd_epi32(sum, sum);
        const int s0 = _mm256_extract_epi32(sum, 0), s1 = _mm256_extract_epi32(sum, 4);
        d[b] = top / 127.0f;
        ds[b] = d[b] * (float) (s0 + s1);
        s[2 * b] = (int16_t) s0;
        s[2 * b + 1] = (int16_t) s1;
    }
    // gcc 12 takes a caller whose input is a local array for a function without effects, and drops the call; not with
    // this.
    __asm__ volatile("" : : : "memory");
}

// Rotary position embedding of one head. In: n floats, the cos and sin of dims / 2 pairs. Out: n floats, the first
// `dims` turned by pairs, the rest as they are. x and y may be the same.

// Pair i is (x[2 i], x[2 i + 1]).
static inline void rope_adjacent(const float *x, const float *cos_sin, float *y, int dims, int n) {
    for (int i = 0; i < dims; i += 2) {
        const float a = x[i], b = x[i + 1], c = cos_sin[i], s = cos_sin[i + 1];
        y[i] = a * c - b * s;
        y[i + 1] = a * s + b * c;
    }
    for (int i = dims; i < n; i++) y[i] = x[i];
}

// How keys and values of one layer lie in a page of PAGE positions, as f16 or f32: keys as [kv head][block of 16
// positions] [dk][16], so that sixteen scores are made side by side; values as [kv head][position][dv].
// In: the layer's part of a page, g kv heads, the position's place in the page, its keys or values [g][width].
static inline void kv_put_k_f16(uint8_t *page, int64_t g, int64_t dk, int slot, const float *restrict k) {
    for (int64_t i = 0; i < g * dk; i++) {
        const uint16_t v = f32_to_f16(k[i]);
        memcpy(page + 2 * ((i / dk * PAGE + slot / 16 * 16) * dk + i % dk * 16 + slot % 16), &v, 2);
    }
}

static inline void kv_put_v_f16(uint8_t *page, int64_t g, int64_t dv, int slot, const float *restrict v) {
    for (int64_t h = 0; h < g; h++) f32_to_f16_n(v + h * dv, page + 2 * (h * PAGE + slot) * dv, dv);
}

enum { q8_0_block = 32, q8_0_bytes = 34 };

static inline void q8_0_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b));
    for (int i = 0; i < 32; i++) y[i] = d * (float) (int8_t) b[2 + i];
}

static inline void q8_0_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q8_0_block, w += q8_0_bytes, y += q8_0_block) q8_0_decode(w, y);
}

static inline size_t q8_0_panel_bytes(int64_t k) {
    return (size_t) ((k + 63) / 64 * 64 + k / 32 * 512);
}

// Lines of packed panels (c/panel.h says how integers lie in them) as vectors of bytes: 8 lanes of 4 weights.
// In: the lines of a block of 32 weights, j the line 0..7 wanted, half: lanes 0..7 or 8..15. Out: integers from 0.
// Makes the compiler have this value in a register here. Without it gcc moves all products of a loop before all sums,
// and spills what does not fit.
static inline __m256i here(__m256i v) {
    __asm__ volatile("" : "+x"(v));
    return v;
}

// Fetches what a stream will read 2 KB further on: the memory here answers late, and its own guesses are not enough.
static inline __attribute__((always_inline)) void fetch_ahead(const uint8_t *p, const int bytes) {
#pragma GCC unroll 9
    for (int i = 0; i < bytes; i += 64) _mm_prefetch((const char *) p + 2048 + i, _MM_HINT_T0);
}

static inline __m256i load_line(const uint8_t *p) {
    return _mm256_load_si256((const __m256i *) p);
}

// Eight f16 as floats.
static inline __m256 half_scales(const uint8_t *p) {
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *) p));
}

// Four bytes of a row of activations, in every lane.
static inline __m256i four_bytes(const uint8_t *p) {
    int32_t v;
    memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
}

// int16 pairs: the first or the second of each pair, twice.
static inline __m256i first_of_pair(__m256i v) {
    return _mm256_blend_epi16(v, _mm256_slli_epi32(v, 16), 0xaa);
}

static inline __m256i second_of_pair(__m256i v) {
    return _mm256_blend_epi16(_mm256_srli_epi32(v, 16), v, 0xaa);
}

enum { q8_0_terms = 1, q8_0_offset = 0, q8_0_minima = 0, q8_0_grouped = 0, q8_0_stream = 544 };

static inline const uint8_t *q8_0_lines(const uint8_t *panel, int b) {
    return panel + b / 2 * 1088 + 64 + b % 2 * 512;
}

static inline __m256i q8_0_line(const uint8_t *lines, int j, int half) {
    return load_line(lines + 64 * j + 32 * half);
}

static inline void q8_0_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b / 2 * 1088 + b % 2 * 32;
    d[0] = half_scales(unit);
    d[1] = half_scales(unit + 16);
    (void) m;
}

static inline __m256i q8_0_groups(const uint8_t *panel, int b, int half) {
    (void) panel, (void) b, (void) half;
    return _mm256_set1_epi16(1);
}

// A chunk of blocks of a q8_0_panel, unpacked: 8 lines of bytes, the scales, the minima, the pairs of group scales.
enum { q8_0_panel_chunk = 16 };
typedef struct {
    _Alignas(64) uint8_t line[q8_0_panel_chunk * 512];
    __m256 d[q8_0_panel_chunk][2], m[q8_0_panel_chunk][2];
    __m256i pair[q8_0_panel_chunk][2];
} q8_0_panel_unpacked;

static inline void q8_0_panel_unpack(const uint8_t *restrict w, int first, int n, q8_0_panel_unpacked *restrict u) {
    for (int b = 0; b < n; b++) {
        const uint8_t *lines = q8_0_lines(w, first + b);
        fetch_ahead(lines, q8_0_stream);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            for (int h = 0; h < 2; h++)
                _mm256_store_si256((__m256i *) (u->line + 512 * b + 64 * j + 32 * h), q8_0_line(lines, j, h));
        q8_0_scales(w, first + b, u->d[b], u->m[b]);
        for (int h = 0; h < 2; h++) u->pair[b][h] = q8_0_groups(w, first + b, h);
    }
}

// Sixteen sums of two products, w unsigned or, where only one such sum fits, signed.
static inline __m256i q8_0_panel_products(__m256i w, __m256i x) {
    return q8_0_terms == 1 ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
                          : _mm256_maddubs_epi16(w, x);
}

// The f32 step of one row and block: acc + d dx sum, + m dx (sum of x). xd: the row's d for this block.
static inline __m256 q8_0_panel_step(__m256 acc, __m256i sum, __m256i pair, __m256 d, __m256 m, const uint8_t *xd, int k) {
    if (q8_0_offset) {
        const __m256i off = _mm256_mullo_epi16(pair, _mm256_set1_epi16(-q8_0_offset));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(off, four_bytes(xd + k / 4)));
    }
    const __m256 dx = _mm256_broadcast_ss((const float *) xd);
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(d, dx), acc);
    return q8_0_minima ? _mm256_fmadd_ps(m, _mm256_broadcast_ss((const float *) (xd + k / 8)), acc) : acc;
}

// n unpacked blocks from block `first` on, for a few rows: v[r] goes on from what it holds. The loops along a block
// stay loops: small code, and twelve sums, two vectors of weights and one of activations fill the sixteen registers.
static inline __attribute__((always_inline)) void q8_0_panel_tile(const q8_0_panel_unpacked *restrict u, int first, int n,
    const uint8_t *restrict x, size_t x_bytes, int k, const int rows, float (*restrict v)[16]) {
    for (int b = 0; b < n; b++) {
        const uint8_t *line = u->line + 512 * b, *xb = x + 32 * (first + b);
        __m256i sum[6][2];
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 1
        for (int t = 0; t < 8 / q8_0_terms; t++) {
            __m256i part[6][2];
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++) part[r][0] = part[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 1
            for (int j = 0; j < q8_0_terms; j++, line += 64, xb += 4) {
                const __m256i w0 = load_line(line), w1 = load_line(line + 32);
#pragma GCC unroll 6
                for (int r = 0; r < rows; r++) {
                    const __m256i xs = four_bytes(xb + r * x_bytes);
                    part[r][0] = here(_mm256_add_epi16(part[r][0], q8_0_panel_products(w0, xs)));
                    part[r][1] = here(_mm256_add_epi16(part[r][1], q8_0_panel_products(w1, xs)));
                }
            }
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++) {
                const __m256i pair = u->pair[b][h];
                const __m256i factor = !q8_0_grouped ? pair
                    : t < 4 / q8_0_terms             ? first_of_pair(pair)
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
                _mm256_store_ps(v[r] + 8 * h, q8_0_panel_step(acc, sum[r][h], u->pair[b][h], u->d[b][h], u->m[b][h], xd, k));
            }
        }
    }
}

// One row, or a few: the q8_0_panel is read once, as a stream, and unpacked in registers.
static inline __attribute__((always_inline)) void q8_0_panel_few(const uint8_t *restrict w, int k, const uint8_t *restrict x,
    size_t x_bytes, const int rows, float (*restrict v)[16]) {
    __m256 acc[4][2];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    for (int b = 0; b < k / 32; b++) {
        const uint8_t *lines = q8_0_lines(w, b), *xb = x + 32 * b;
        __m256 d[2], m[2];
        __m256i pair[2], sum[4][2];
        fetch_ahead(lines, q8_0_stream);
        q8_0_scales(w, b, d, m);
        for (int h = 0; h < 2; h++) pair[h] = q8_0_groups(w, b, h);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int t = 0; t < 8; t += q8_0_terms) {
            __m256i part[4][2];
#pragma GCC unroll 8
            for (int j = t; j < t + q8_0_terms; j++) {
                const __m256i w0 = q8_0_line(lines, j, 0), w1 = q8_0_line(lines, j, 1);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++) {
                    const __m256i xs = four_bytes(xb + r * x_bytes + 4 * j);
                    const __m256i p0 = q8_0_panel_products(w0, xs), p1 = q8_0_panel_products(w1, xs);
                    part[r][0] = here(j == t ? p0 : _mm256_add_epi16(part[r][0], p0));
                    part[r][1] = here(j == t ? p1 : _mm256_add_epi16(part[r][1], p1));
                }
            }
#pragma GCC unroll 2
            for (int h = 0; h < 2; h++) {
                const __m256i factor = !q8_0_grouped ? pair[h]
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
                acc[r][h] = q8_0_panel_step(acc[r][h], sum[r][h], pair[h], d[h], m[h], x + r * x_bytes + k + 4 * b, k);
    }
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < 2; h++) _mm256_store_ps(v[r] + 8 * h, acc[r][h]);
}

static void q8_0_panel(
    const uint8_t *restrict w, int k, const uint8_t *restrict x, size_t x_bytes, int rows, float (*restrict v)[16]) {
    switch (rows) {
    case 1: q8_0_panel_few(w, k, x, x_bytes, 1, v); return;
    case 2: q8_0_panel_few(w, k, x, x_bytes, 2, v); return;
    case 3: q8_0_panel_few(w, k, x, x_bytes, 3, v); return;
    case 4: q8_0_panel_few(w, k, x, x_bytes, 4, v); return;
    }
    q8_0_panel_unpacked u;
    memset(v, 0, (size_t) rows * sizeof *v);
    for (int b = 0; b < k / 32; b += q8_0_panel_chunk) {
        const int n = k / 32 - b < q8_0_panel_chunk ? k / 32 - b : q8_0_panel_chunk;
        q8_0_panel_unpack(w, b, n, &u);
        int r = 0;
        for (; r + 6 <= rows; r += 6) q8_0_panel_tile(&u, b, n, x + r * x_bytes, x_bytes, k, 6, v + r);
        const uint8_t *rest = x + r * x_bytes;
        switch (rows - r) {
        case 5: q8_0_panel_tile(&u, b, n, rest, x_bytes, k, 5, v + r); break;
        case 4: q8_0_panel_tile(&u, b, n, rest, x_bytes, k, 4, v + r); break;
        case 3: q8_0_panel_tile(&u, b, n, rest, x_bytes, k, 3, v + r); break;
        case 2: q8_0_panel_tile(&u, b, n, rest, x_bytes, k, 2, v + r); break;
        case 1: q8_0_panel_tile(&u, b, n, rest, x_bytes, k, 1, v + r); break;
        }
    }
}

// The two products of attention with one page of keys and values of one kv head (laid out as kv.h says), for a few
// queries at a time, so that each key and value is loaded, and made f32, once for all of them. wide: the cache is
// f32, not f16. Every sum is one sequence of steps, along dk or along positions, however many queries go together.

enum { bytes_f16 = 2, bytes_f32 = 4 };

static inline __attribute__((always_inline)) vf attend_load(const uint8_t *p, int64_t i, const int wide) {
    return wide ? vf_load_f32(p + 4 * i) : vf_load_f16(p + 2 * i);
}

// s[q][position]: n queries of dk floats with the keys of `blocks` blocks of 16 positions.
static inline __attribute__((always_inline)) void attend_some_scores(const uint8_t *restrict k, const int wide,
    const float *restrict q, int64_t dk, const int n, const int blocks, float (*restrict s)[PAGE]) {
    enum { PARTS = 16 / LANES };
    vf sum[6][4 * PARTS];
#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
#pragma GCC unroll 16
        for (int c = 0; c < blocks * PARTS; c++) sum[i][c] = vf_set(0);
    for (int64_t d = 0; d < dk; d++) {
        vf key[4 * PARTS];
#pragma GCC unroll 16
        for (int c = 0; c < blocks * PARTS; c++)
            key[c] = attend_load(k, (c / PARTS * dk + d) * 16 + c % PARTS * LANES, wide);
#pragma GCC unroll 6
        for (int i = 0; i < n; i++) {
            const vf x = vf_set(q[i * dk + d]);
#pragma GCC unroll 16
            for (int c = 0; c < blocks * PARTS; c++) sum[i][c] = vf_fma(x, key[c], sum[i][c]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
#pragma GCC unroll 16
        for (int c = 0; c < blocks * PARTS; c++) vf_store(s[i] + c * LANES, sum[i][c]);
}

// How many blocks, or vectors of values, to take at once: twelve sums in registers, a power of two.
static inline __attribute__((always_inline)) int attend_step(const int n, const int parts, const int most) {
    return 12 / (n * parts) >= 8 && most >= 8 ? 8 : 12 / (n * parts) >= 4 ? 4 : 12 / (n * parts) >= 2 ? 2 : 1;
}

// Scores of positions from .. to of the page, and of what shares a step with them.
static inline __attribute__((always_inline)) void attend_n_scores(const uint8_t *restrict k, const int wide,
    const float *restrict q, int64_t dk, const int n, int from, int to, float (*restrict s)[PAGE]) {
    const int blocks = attend_step(n, 16 / LANES, 4);
    for (int b = from / (16 * blocks) * blocks; b * 16 <= to; b += blocks)
        attend_some_scores(k + b * 16 * dk * (wide ? 4 : 2), wide, q, dk, n, blocks, (float(*)[PAGE])(s[0] + b * 16));
}

static inline void attend_scores(const uint8_t *restrict k, const int wide, const float *restrict q, int64_t dk, int n,
    int from, int to, float (*restrict s)[PAGE]) {
    for (; n >= 6; n -= 6, q += 6 * dk, s += 6) attend_n_scores(k, wide, q, dk, 6, from, to, s);
    switch (n) {
    case 1: attend_n_scores(k, wide, q, dk, 1, from, to, s); break;
    case 2: attend_n_scores(k, wide, q, dk, 2, from, to, s); break;
    case 3: attend_n_scores(k, wide, q, dk, 3, from, to, s); break;
    case 4: attend_n_scores(k, wide, q, dk, 4, from, to, s); break;
    case 5: attend_n_scores(k, wide, q, dk, 5, from, to, s); break;
    }
}

// o[q] += sum of p[q][j] v[j] over positions from .. to, columns at .. at + parts * LANES of dv.
// A row of v has `width` numbers.
static inline __attribute__((always_inline)) void attend_some_values(const uint8_t *restrict v, const int wide,
    float (*restrict p)[PAGE], int64_t width, int64_t dv, int64_t at, const int n, const int parts, int from, int to,
    float *restrict o) {
    vf sum[6][8];
#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
#pragma GCC unroll 8
        for (int c = 0; c < parts; c++) sum[i][c] = vf_load(o + i * dv + at + c * LANES);
    for (int64_t j = from; j <= to; j++) {
        vf value[8];
#pragma GCC unroll 8
        for (int c = 0; c < parts; c++) value[c] = attend_load(v, j * width + at + c * LANES, wide);
#pragma GCC unroll 6
        for (int i = 0; i < n; i++) {
            const vf x = vf_set(p[i][j]);
#pragma GCC unroll 8
            for (int c = 0; c < parts; c++) sum[i][c] = vf_fma(x, value[c], sum[i][c]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
#pragma GCC unroll 8
        for (int c = 0; c < parts; c++) vf_store(o + i * dv + at + c * LANES, sum[i][c]);
}

static inline __attribute__((always_inline)) void attend_n_values(const uint8_t *restrict v, const int wide,
    float (*restrict p)[PAGE], int64_t width, int64_t dv, const int n, int from, int to, float *restrict o) {
    const int parts = attend_step(n, 1, 8);
    int64_t at = 0;
    for (; at + parts * LANES <= dv; at += parts * LANES)
        attend_some_values(v, wide, p, width, dv, at, n, parts, from, to, o);
    for (; at + LANES <= dv; at += LANES) attend_some_values(v, wide, p, width, dv, at, n, 1, from, to, o);
    for (at = dv / LANES * LANES; at < dv; at++)
        for (int i = 0; i < n; i++)
            for (int64_t j = from; j <= to; j++) {
                const float value =
                    wide ? float_at(v + 4 * (j * width + at)) : f16_to_f32(read_u16(v + 2 * (j * width + at)));
                o[i * dv + at] = fma_f32(p[i][j], value, o[i * dv + at]);
            }
}

static inline void attend_values(const uint8_t *restrict v, const int wide, float (*restrict p)[PAGE], int64_t width,
    int64_t dv, int n, int from, int to, float *restrict o) {
    for (; n >= 6; n -= 6, p += 6, o += 6 * dv) attend_n_values(v, wide, p, width, dv, 6, from, to, o);
    switch (n) {
    case 1: attend_n_values(v, wide, p, width, dv, 1, from, to, o); break;
    case 2: attend_n_values(v, wide, p, width, dv, 2, from, to, o); break;
    case 3: attend_n_values(v, wide, p, width, dv, 3, from, to, o); break;
    case 4: attend_n_values(v, wide, p, width, dv, 4, from, to, o); break;
    case 5: attend_n_values(v, wide, p, width, dv, 5, from, to, o); break;
    }
}

// What a query knows of the positions before a page: their largest score, and the sum of exp(score - largest).
typedef struct {
    float top, sum;
} Seen;

// Turns the scores of positions from .. to of a page into probabilities, up to a common factor; the others become 0.
// Returns the factor for what was summed before the page. No position: nothing changes.
static inline float attend_softmax(float *restrict s, int from, int to, Seen *seen) {
    for (int j = 0; j < PAGE; j++) s[j] = select_f32(j >= from && j <= to, s[j], -__builtin_inff());
    const float top = max_f32(row_max(s, PAGE), seen->top);
    if (from > to) {
        for (int j = 0; j < PAGE; j++) s[j] = 0;
        return 1;
    }
    const float factor = exp_f32(seen->top - top);
    for (int j = 0; j < PAGE; j++) s[j] = exp_f32(s[j] - top);
    seen->sum = seen->sum * factor + row_sum(s, PAGE);
    seen->top = top;
    return factor;
}

// clang-format on

// ---- kernels ----

// Rotation rot: adjacent pairs, 24 dims, base 50000. Angles are f32; each pair's is the one before it times a constant.
static void angles_rot(int32_t pos, float *cos_sin) {
    float turn = (float) pos;
    for (int i = 0; i < 12; i++, turn *= 0.405900091f) {
        const float angle = turn;
        cos_sin[2 * i] = (float) cos(angle);
        cos_sin[2 * i + 1] = (float) sin(angle);
    }
}

// x = token_embd[token]; rot = angles(position)
static void embed_rows_rot(float *x, const uint8_t *token_embd, const Model *m, float *rot, int r) {
    x += (size_t) r * 64;
    rot += (size_t) r * 24;
    q8_0_row(token_embd + (size_t) m->token[r] * 68, x, 64);
    angles_rot(m->pos[r], rot);
}

// normed = q8(rms_norm(x, attn_norm))
static void block_norm(const float *x, const float *attn_norm, uint8_t *normed_q8, int r) {
    x += (size_t) r * 64;
    normed_q8 += (size_t) r * 128;
    float normed[64];
    const float scale = 1.0f / sqrtf(row_sum_sq(x, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++)
        normed[i] = x[i] * scale * attn_norm[i];
    quantize_q8(normed, normed_q8, 64);
}

// qkv = attn_q+attn_k+attn_v(normed): [64] -> [192], Q8_0
static void block_attn_q_attn_k_attn_v(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece,
    float *qkv) {
    const int panel_count = 12, groups = (panel_count + 12 - 1) / 12;
    const int p0 = piece % groups * 12, p1 = p0 + 12 < panel_count ? p0 + 12 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t panel_bytes = q8_0_panel_bytes(64), x_bytes = q8_bytes(64);
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            q8_0_panel(w + (size_t) (p + s) * panel_bytes, 64, x + (size_t) r0 * x_bytes, x_bytes, r1 - r0, v[s]);
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                qkv[(size_t) r * 192 + n + j] = v0[j];
        }
    }
}

// turned = rope(q, rot); put(rope(k, rot), v)
static void block_store_kv(const float *qkv, float *turned, const float *rot, const Model *m, uint64_t k_at,
    uint64_t v_at, int r) {
    qkv += (size_t) r * 192;
    const float *q = qkv;
    const float *k2 = qkv + 96;
    const float *v = qkv + 144;
    turned += (size_t) r * 96;
    rot += (size_t) r * 24;
    float turned2[48];
    for (int h = 0; h < 4; h++) {
        rope_adjacent(q + h * 24, rot, turned + h * 24, 24, 24);
    }
    for (int h = 0; h < 2; h++) {
        rope_adjacent(k2 + h * 24, rot, turned2 + h * 24, 24, 24);
    }
    uint8_t *page = state_page(m, 0, 36864, m->seq[r], m->pos[r]);
    kv_put_k_f16(page + k_at, 2, 24, m->pos[r] % PAGE, turned2);
    kv_put_v_f16(page + v_at, 2, 24, m->pos[r] % PAGE, v);
}

// attention: 4 heads over 2 of keys and values, all positions
enum { block_attention_rows = 2 < 12 ? 6 : 1 };
enum { block_attention_queries = block_attention_rows * 2 };

// The positions that a row at p sees, of a sequence that ends at `end`. Later rows see no earlier ones.
static inline void block_attention_sees(int p, int end, int *from, int *to) {
    *from = 0, *to = p;
    (void) end;
}

// n rows of one sequence, in order of position, and 2 heads from h on.
static void block_attention_some(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q,
    float *restrict o, const int32_t *pos, int seq, int n, int h) {
    _Alignas(64) float query[block_attention_queries][24], s[block_attention_queries][PAGE] = {{0}};
    _Alignas(64) float sum[block_attention_queries][24] = {{0}};
    Seen seen[block_attention_queries];
    for (int t = 0; t < n * 2; t++) {
        const float *x = q + (size_t) (t / 2 * 4 + h + t % 2) * 24;
        for (int d = 0; d < 24; d++) query[t][d] = x[d] * 0.204124153f;
        seen[t] = (Seen){-__builtin_inff(), 0};
    }
    const int kv_head = h / 2;
    int first, last, end = 0;
    block_attention_sees(pos[n - 1], end, &first, &last);
    int seen_from, seen_to;
    block_attention_sees(pos[0], end, &first, &seen_to);
    for (int page = first / PAGE * PAGE; page <= last; page += PAGE) {
        const uint8_t *at = state_page(m, 0, 36864, seq, page);
        const uint8_t *k = at + k_at + (size_t) kv_head * PAGE * 24 * bytes_f16;
        const uint8_t *v = at + v_at + (size_t) kv_head * PAGE * 24 * bytes_f16;
        const int from = first > page ? first - page : 0, to = last - page < PAGE ? last - page : PAGE - 1;
        attend_scores(k, bytes_f16 == 4, query[0], 24, n * 2, from, to, s);
        for (int t = 0; t < n * 2; t++) {
            block_attention_sees(pos[t / 2], end, &seen_from, &seen_to);
            int t_from = seen_from > page ? seen_from - page : 0,
                t_to = seen_to - page < PAGE ? seen_to - page : PAGE - 1;
            const float factor = attend_softmax(s[t], t_from, t_to, &seen[t]);
            if (factor != 1)
                for (int d = 0; d < 24; d++) sum[t][d] *= factor;
        }
        attend_values(v, bytes_f16 == 4, s, 24, 24, n * 2, from, to, sum[0]);
    }
    for (int t = 0; t < n * 2; t++) {
        float *y = o + (size_t) (t / 2 * 4 + h + t % 2) * 24;
        for (int d = 0; d < 24; d++) y[d] = sum[t][d] / seen[t].sum;
    }
}

static void block_attention(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q, float *restrict o,
    const int32_t *pos, const int32_t *seq, int rows, int piece) {
    const int groups = 2, h = piece % groups * 2;
    const int r0 = piece / groups * 16, r1 = r0 + 16 < rows ? r0 + 16 : rows;
    for (int r = r0, n; r < r1; r += n) {
        for (n = 1; n < block_attention_rows && r + n < r1 && seq[r + n] == seq[r];) n++;
        block_attention_some(
            m, k_at, v_at, q + (size_t) r * 4 * 24, o + (size_t) r * 4 * 24, pos + r, seq[r], n, h);
    }
}

// attended = q8(attended)
static void block_round(const float *attended, uint8_t *attended_q8, int r) {
    attended += (size_t) r * 96;
    attended_q8 += (size_t) r * 192;
    quantize_q8(attended, attended_q8, 96);
}

// x = x + attn_output(attended): [96] -> [64], Q8_0
static void block_attn_output(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece,
    const float *x2, float *x3) {
    const int panel_count = 4, groups = (panel_count + 4 - 1) / 4;
    const int p0 = piece % groups * 4, p1 = p0 + 4 < panel_count ? p0 + 4 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t panel_bytes = q8_0_panel_bytes(96), x_bytes = q8_bytes(96);
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            q8_0_panel(w + (size_t) (p + s) * panel_bytes, 96, x + (size_t) r0 * x_bytes, x_bytes, r1 - r0, v[s]);
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                x3[(size_t) r * 64 + n + j] = x2[(size_t) r * 64 + n + j] + v0[j];
        }
    }
}

// h = q8(rms_norm(x, ffn_norm))
static void block_norm_h(const float *x, const float *ffn_norm, uint8_t *h_q8, int r) {
    x += (size_t) r * 64;
    h_q8 += (size_t) r * 128;
    float h2[64];
    const float scale = 1.0f / sqrtf(row_sum_sq(x, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++)
        h2[i] = x[i] * scale * ffn_norm[i];
    quantize_q8(h2, h_q8, 64);
}

// gated = silu(gate) * up: [64] -> [320], Q8_0
static void block_ffn_gate_ffn_up(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece,
    float *gated2) {
    const int panel_count = 10, groups = (panel_count + 10 - 1) / 10;
    const int p0 = piece % groups * 10, p1 = p0 + 10 < panel_count ? p0 + 10 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t panel_bytes = q8_0_panel_bytes(64), x_bytes = q8_bytes(64);
    _Alignas(64) float v[2][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 2; s++)
            q8_0_panel(w + (size_t) (p * 2 + s) * panel_bytes, 64, x + (size_t) r0 * x_bytes, x_bytes, r1 - r0, v[s]);
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            const float *restrict v1 = v[1][r - r0];
            for (int j = 0; j < m; j++) {
                const float gated = v0[j] / (1 + exp_f32(-v0[j]));
                gated2[(size_t) r * 160 + n + j] = gated * v1[j];
            }
        }
    }
}

// gated = q8(gated)
static void block_round_2(const float *gated, uint8_t *gated_q8, int r) {
    gated += (size_t) r * 160;
    gated_q8 += (size_t) r * 256;
    quantize_q8(gated, gated_q8, 160);
}

// x = x + ffn_down(gated): [160] -> [64], Q8_0
static void block_ffn_down(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece, const float *x2,
    float *x3) {
    const int panel_count = 4, groups = (panel_count + 4 - 1) / 4;
    const int p0 = piece % groups * 4, p1 = p0 + 4 < panel_count ? p0 + 4 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t panel_bytes = q8_0_panel_bytes(160), x_bytes = q8_bytes(160);
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            q8_0_panel(w + (size_t) (p + s) * panel_bytes, 160, x + (size_t) r0 * x_bytes, x_bytes, r1 - r0, v[s]);
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                x3[(size_t) r * 64 + n + j] = x2[(size_t) r * 64 + n + j] + v0[j];
        }
    }
}

// normed = q8(rms_norm(x_out, output_norm))
static void head_norm(const float *x, const float *output_norm, uint8_t *normed_q8, int r) {
    x += (size_t) r * 64;
    normed_q8 += (size_t) r * 128;
    float normed[64];
    const float scale = 1.0f / sqrtf(row_sum_sq(x, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++)
        normed[i] = x[i] * scale * output_norm[i];
    quantize_q8(normed, normed_q8, 64);
}

// logits = output(normed): [64] -> [288], Q8_0
static void head_output(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece, float *logits) {
    const int panel_count = 18, groups = (panel_count + 18 - 1) / 18;
    const int p0 = piece % groups * 18, p1 = p0 + 18 < panel_count ? p0 + 18 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t panel_bytes = q8_0_panel_bytes(64), x_bytes = q8_bytes(64);
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            q8_0_panel(w + (size_t) (p + s) * panel_bytes, 64, x + (size_t) r0 * x_bytes, x_bytes, r1 - r0, v[s]);
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                logits[(size_t) r * 288 + n + j] = v0[j];
        }
    }
}

// normed = rms_norm(x, attn_norm); normed = q8(normed)
static void block_last_norm(const float *x, const float *attn_norm, float *normed, uint8_t *normed_q8, int r) {
    x += (size_t) r * 64;
    normed += (size_t) r * 64;
    normed_q8 += (size_t) r * 128;
    const float scale = 1.0f / sqrtf(row_sum_sq(x, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++)
        normed[i] = x[i] * scale * attn_norm[i];
    quantize_q8(normed, normed_q8, 64);
}

// x = wanted(x); rot = wanted(rot); normed = q8(wanted(normed))
static void block_last_round_rot(const Model *m, const float *x, float *x2, const float *rot, float *rot2,
    const float *normed2, uint8_t *normed_q8, int r) {
    x += (size_t) m->out[r] * 64;
    x2 += (size_t) r * 64;
    rot += (size_t) m->out[r] * 24;
    rot2 += (size_t) r * 24;
    normed2 += (size_t) m->out[r] * 64;
    normed_q8 += (size_t) r * 128;
    float normed[64];
    for (int i = 0; i < 64; i++)
        x2[i] = x[i];
    for (int i = 0; i < 24; i++)
        rot2[i] = rot[i];
    for (int i = 0; i < 64; i++)
        normed[i] = normed2[i];
    quantize_q8(normed, normed_q8, 64);
}

// q = attn_q(normed): [64] -> [96], Q8_0
static void block_last_attn_q(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece, float *q) {
    const int panel_count = 6, groups = (panel_count + 6 - 1) / 6;
    const int p0 = piece % groups * 6, p1 = p0 + 6 < panel_count ? p0 + 6 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t panel_bytes = q8_0_panel_bytes(64), x_bytes = q8_bytes(64);
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            q8_0_panel(w + (size_t) (p + s) * panel_bytes, 64, x + (size_t) r0 * x_bytes, x_bytes, r1 - r0, v[s]);
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                q[(size_t) r * 96 + n + j] = v0[j];
        }
    }
}

// kv = attn_k+attn_v(normed): [64] -> [96], Q8_0
static void block_last_attn_k_attn_v(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece,
    float *kv) {
    const int panel_count = 6, groups = (panel_count + 6 - 1) / 6;
    const int p0 = piece % groups * 6, p1 = p0 + 6 < panel_count ? p0 + 6 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t panel_bytes = q8_0_panel_bytes(64), x_bytes = q8_bytes(64);
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            q8_0_panel(w + (size_t) (p + s) * panel_bytes, 64, x + (size_t) r0 * x_bytes, x_bytes, r1 - r0, v[s]);
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                kv[(size_t) r * 96 + n + j] = v0[j];
        }
    }
}

// put(rope(k, rot), v)
static void block_last_store_kv(const float *kv, const float *rot, const Model *m, uint64_t k_at, uint64_t v_at,
    int r) {
    kv += (size_t) r * 96;
    const float *k2 = kv;
    const float *v = kv + 48;
    rot += (size_t) r * 24;
    float turned[48];
    for (int h = 0; h < 2; h++) {
        rope_adjacent(k2 + h * 24, rot, turned + h * 24, 24, 24);
    }
    uint8_t *page = state_page(m, 0, 36864, m->seq[r], m->pos[r]);
    kv_put_k_f16(page + k_at, 2, 24, m->pos[r] % PAGE, turned);
    kv_put_v_f16(page + v_at, 2, 24, m->pos[r] % PAGE, v);
}

// turned = rope(q, rot)
static void block_last_rows(const float *q, float *turned, const float *rot, int r) {
    q += (size_t) r * 96;
    turned += (size_t) r * 96;
    rot += (size_t) r * 24;
    for (int h = 0; h < 4; h++) {
        rope_adjacent(q + h * 24, rot, turned + h * 24, 24, 24);
    }
}

// ---- where things stand ----

// embed: bytes from the start of the weights.
static const struct embed_at {
    uint64_t token_embd;
} embed_at[1] = {
    [0] = {0},
};

// block: bytes from the start of the weights; keys and values: bytes from the start of a page.
static const struct block_at {
    uint64_t attn_norm, attn_output, ffn_norm, ffn_down, attn_q_attn_k_attn_v, ffn_gate_ffn_up, kv_k, kv_v;
} block_at[3] = {
    [0] = {19584, 19840, 26496, 26752, 37760, 50816, 0, 6144},
    [1] = {72576, 72832, 79488, 79744, 90752, 103808, 12288, 18432},
};

// block_last: bytes from the start of the weights; keys and values: bytes from the start of a page.
static const struct block_last_at {
    uint64_t attn_norm, attn_q, attn_output, ffn_norm, ffn_down, attn_k_attn_v, ffn_gate_ffn_up, kv_k, kv_v;
} block_last_at[3] = {
    [2] = {125568, 125824, 132352, 139008, 139264, 150272, 156800, 24576, 30720},
};

// head: bytes from the start of the weights.
static const struct head_at {
    uint64_t output_norm, output;
} head_at[1] = {
    [0] = {178560, 178816},
};

// ---- the model ----

static void embed(const Model *m, Worker *w) {
    const struct embed_at *at = embed_at;
    const uint8_t *const weights = m->weights;
    float *const x = (float *) (m->scratch + 0);       // [rows][64]
    float *const rot = (float *) (m->scratch + 65536); // [rows][24]
    ROWS(w, 0, 0, m->rows, r)
        embed_rows_rot(x, weights + at->token_embd, m, rot, r);
}

static void block(const Model *m, Worker *w, int l) {
    const struct block_at *at = &block_at[l];
    const uint8_t *const weights = m->weights;
    float *const x = (float *) (m->scratch + 0);            // [rows][64]
    uint8_t *const normed_q8 = m->scratch + 98304;          // [rows][64], 8 bits
    float *const qkv = (float *) (m->scratch + 131072);     // [rows][192]
    float *const turned = (float *) (m->scratch + 327680);  // [rows][96]
    float *const rot = (float *) (m->scratch + 65536);      // [rows][24]
    float *const attended = (float *) (m->scratch + 98304); // [rows][96]
    uint8_t *const attended_q8 = m->scratch + 196608;       // [rows][96], 8 bits
    float *const x2 = (float *) (m->scratch + 98304);       // [rows][64]
    uint8_t *const h_q8 = m->scratch + 163840;              // [rows][64], 8 bits
    float *const gated = (float *) (m->scratch + 196608);   // [rows][160]
    uint8_t *const gated_q8 = m->scratch + 360448;          // [rows][160], 8 bits
    ROWS(w, 1, l, m->rows, r)
        block_norm(x, (const float *) (weights + at->attn_norm), normed_q8, r);
    STEP(w, 2, l, 1 * ((m->rows + 119) / 120), p)
        block_attn_q_attn_k_attn_v(weights + at->attn_q_attn_k_attn_v, normed_q8, m->rows, p, qkv);
    ROWS(w, 3, l, m->rows, r)
        block_store_kv(qkv, turned, rot, m, at->kv_k, at->kv_v, r);
    STEP(w, 4, l, 2 * ((m->rows + 15) / 16), p)
        block_attention(m, at->kv_k, at->kv_v, turned, attended, m->pos, m->seq, m->rows, p);
    ROWS(w, 5, l, m->rows, r)
        block_round(attended, attended_q8, r);
    STEP(w, 6, l, 1 * ((m->rows + 119) / 120), p)
        block_attn_output(weights + at->attn_output, attended_q8, m->rows, p, x, x2);
    ROWS(w, 7, l, m->rows, r)
        block_norm_h(x2, (const float *) (weights + at->ffn_norm), h_q8, r);
    STEP(w, 8, l, 1 * ((m->rows + 119) / 120), p)
        block_ffn_gate_ffn_up(weights + at->ffn_gate_ffn_up, h_q8, m->rows, p, gated);
    ROWS(w, 9, l, m->rows, r)
        block_round_2(gated, gated_q8, r);
    STEP(w, 10, l, 1 * ((m->rows + 119) / 120), p)
        block_ffn_down(weights + at->ffn_down, gated_q8, m->rows, p, x2, x);
}

static void block_last(const Model *m, Worker *w, int l) {
    const struct block_last_at *at = &block_last_at[l];
    const uint8_t *const weights = m->weights;
    float *const x = (float *) (m->scratch + 0);             // [rows][64]
    float *const normed = (float *) (m->scratch + 109568);   // [rows][64]
    uint8_t *const normed_q8 = m->scratch + 179200;          // [rows][64], 8 bits
    float *const x2 = (float *) (m->scratch + 98304);        // [outs][64]
    float *const rot = (float *) (m->scratch + 65536);       // [rows][24]
    float *const rot2 = (float *) (m->scratch + 106496);     // [outs][24]
    uint8_t *const normed_q82 = m->scratch + 175104;         // [outs][64], 8 bits
    float *const q = (float *) (m->scratch + 109568);        // [outs][96]
    float *const kv = (float *) (m->scratch + 211968);       // [rows][96]
    float *const turned = (float *) (m->scratch + 121856);   // [outs][96]
    float *const attended = (float *) (m->scratch + 106496); // [outs][96]
    uint8_t *const attended_q8 = m->scratch + 118784;        // [outs][96], 8 bits
    float *const x3 = (float *) (m->scratch + 106496);       // [outs][64]
    uint8_t *const h_q8 = m->scratch + 98304;                // [outs][64], 8 bits
    float *const gated = (float *) (m->scratch + 114688);    // [outs][160]
    uint8_t *const gated_q8 = m->scratch + 98304;            // [outs][160], 8 bits
    float *const x_out = (float *) (m->scratch + 90112);     // [outs][64]
    ROWS(w, 13, l, m->rows, r)
        block_last_norm(x, (const float *) (weights + at->attn_norm), normed, normed_q8, r);
    ROWS(w, 14, l, m->outs, r)
        block_last_round_rot(m, x, x2, rot, rot2, normed, normed_q82, r);
    STEP(w, 15, l, 1 * ((m->outs + 119) / 120), p)
        block_last_attn_q(weights + at->attn_q, normed_q82, m->outs, p, q);
    STEP(w, 16, l, 1 * ((m->rows + 119) / 120), p)
        block_last_attn_k_attn_v(weights + at->attn_k_attn_v, normed_q8, m->rows, p, kv);
    ROWS(w, 17, l, m->rows, r)
        block_last_store_kv(kv, rot, m, at->kv_k, at->kv_v, r);
    ROWS(w, 18, l, m->outs, r)
        block_last_rows(q, turned, rot2, r);
    STEP(w, 19, l, 2 * ((m->outs + 15) / 16), p)
        block_attention(m, at->kv_k, at->kv_v, turned, attended, m->out_pos, m->out_seq, m->outs, p);
    ROWS(w, 20, l, m->outs, r)
        block_round(attended, attended_q8, r);
    STEP(w, 21, l, 1 * ((m->outs + 119) / 120), p)
        block_attn_output(weights + at->attn_output, attended_q8, m->outs, p, x2, x3);
    ROWS(w, 22, l, m->outs, r)
        block_norm_h(x3, (const float *) (weights + at->ffn_norm), h_q8, r);
    STEP(w, 23, l, 1 * ((m->outs + 119) / 120), p)
        block_ffn_gate_ffn_up(weights + at->ffn_gate_ffn_up, h_q8, m->outs, p, gated);
    ROWS(w, 24, l, m->outs, r)
        block_round_2(gated, gated_q8, r);
    STEP(w, 25, l, 1 * ((m->outs + 119) / 120), p)
        block_ffn_down(weights + at->ffn_down, gated_q8, m->outs, p, x3, x_out);
}

static void head(const Model *m, Worker *w) {
    const struct head_at *at = head_at;
    const uint8_t *const weights = m->weights;
    float *const x_out = (float *) (m->scratch + 90112); // [outs][64]
    uint8_t *const normed_q8 = m->scratch + 98304;       // [outs][64], 8 bits
    ROWS(w, 11, 0, m->outs, r)
        head_norm(x_out, (const float *) (weights + at->output_norm), normed_q8, r);
    STEP(w, 12, 0, 1 * ((m->outs + 119) / 120), p)
        head_output(weights + at->output, normed_q8, m->outs, p, m->logits);
}

void model_forward(const Model *m, Worker *w) {
    embed(m, w);
    for (int l = 0; l < 2; l++) block(m, w, l);
    block_last(m, w, 2);
    head(m, w);
}

// ---- what was compiled ----

static const char info[] =
    "target c-avx2, inputs of products rounded to 8 bits: where packed\n"
    "L: 3 = block_count\n"
    "d: 64 = embedding_length\n"
    "ff: 160 = feed_forward_length\n"
    "heads: 4 = attention.head_count\n"
    "kvh: 2 = attention.head_count_kv\n"
    "hd: 24 = attention.key_length\n"
    "win: 0 = 0 (no key: every layer sees all of the past)\n"
    "eps: 0.01 = attention.layer_norm_rms_epsilon\n"
    "scale: 0.2041241 = 1/sqrt(hd) (no key: the usual one)\n"
    "E: 0 = 0 (no key: dense)\n"
    "K: 0 = 0 (likewise)\n"
    "rot: pairs adjacent, dims 24, base 50000\n";

const ModelInfo model_info = {
    .name = "synthetic llama",
    .arch = "llama",
    .source = "llama.gguf",
    .hash = 0x9e4d4fe2608b92a7u,
    .n_vocab = 288,
    .n_ctx = 256,
    .n_layer = 3,
    .n_embd = 64,
    .max_batch = 256,
    .max_out = 32,
    .result = "logits",
    .n_result = 288,
    .weight_bytes = 198400,
    .scratch_bytes = 425984,
    .thread_bytes = 0,
    .n_group = 1,
    .group = {
        {"all positions", 36864, 0, 1},
    },
    .cpu = "pni ssse3 sse4_1 sse4_2 popcnt avx avx2 fma f16c bmi1 bmi2",
    .kv_type = "f16",
    .param_count = 184768,
    .info = info,
};
const char *const compiler_version = "ggcc 0.1.0";
const char *const weights_file = "weights.bin";

// What the interpreter gives for a few tokens; `selftest` compares.
// clang-format off
static const int32_t selftest_ids[] = {1, 144, 287, 142, 285, 140, 283, 138, 281, 136, 279, 134, 277, 132, 275, 130};
static const SelfCheck selftest_check[] = {
    {0, 179, {0, 36, 72, 108, 144, 180, 216, 252}, {2.771106f, -0.993616283f, -1.50966334f, -0.786491632f,
        -3.65601492f, -3.83292437f, -0.939932227f, 3.55649304f}},
    {1, 179, {0, 36, 72, 108, 144, 180, 216, 252}, {2.55077672f, -1.888991f, 0.823701084f, 1.84189355f, -4.0168047f,
        -0.509071469f, -1.06723213f, 3.05396128f}},
    {2, 187, {0, 36, 72, 108, 144, 180, 216, 252}, {-0.116032302f, -0.279011339f, -5.49074221f, 0.187797695f,
        -1.31661177f, -0.810271561f, 1.30195224f, 0.391559392f}},
    {3, 4, {0, 36, 72, 108, 144, 180, 216, 252}, {-1.43975353f, 3.01097322f, 0.245240092f, -0.814220846f,
        -0.103097111f, -1.58209443f, 1.64617491f, -0.602475941f}},
};
// clang-format on
const SelfTest selftest = {16, selftest_ids, 4, selftest_check, 1.00277436f};
