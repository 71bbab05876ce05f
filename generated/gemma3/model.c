// synthetic gemma3 (gemma3), compiled by ggcc 0.1.0 from gemma3.gguf.
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

static inline float abs_f32(float x) {
    return float_of_bits(bits_of_float(x) & 0x7fffffff);
}

// The magnitude of x with the sign of s.
static inline float sign_f32(float x, float s) {
    return float_of_bits((bits_of_float(x) & 0x7fffffff) | (bits_of_float(s) & 0x80000000));
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

static inline float tanh_f32(float x) {
    const float a = abs_f32(x), s = x * x;
    float p = fma_f32(-5.71702588e-3f, s, 2.06505685e-2f);
    p = fma_f32(p, s, -5.37434917e-2f);
    p = fma_f32(p, s, 1.33314912e-1f);
    p = fma_f32(p, s, -3.33332839e-1f);
    const float small = fma_f32(p * s, x, x), large = 1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f);
    return select_f32(a < 0.625f, small, sign_f32(large, x));
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

// Rotary position embedding of one head. In: n floats, the cos and sin of dims / 2 pairs. Out: n floats, the first
// `dims` turned by pairs, the rest as they are. x and y may be the same.

// Pair i is (x[i], x[i + dims / 2]).
static inline void rope_halves(const float *x, const float *cos_sin, float *y, int dims, int n) {
    const int half = dims / 2;
    for (int i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half], c = cos_sin[2 * i], s = cos_sin[2 * i + 1];
        y[i] = a * c - b * s;
        y[i + half] = a * s + b * c;
    }
    for (int i = dims; i < n; i++) y[i] = x[i];
}

static inline void kv_put_k_f32(uint8_t *page, int64_t g, int64_t dk, int slot, const float *restrict k) {
    for (int64_t i = 0; i < g * dk; i++)
        memcpy(page + 4 * ((i / dk * PAGE + slot / 16 * 16) * dk + i % dk * 16 + slot % 16), k + i, 4);
}

static inline void kv_put_v_f32(uint8_t *page, int64_t g, int64_t dv, int slot, const float *restrict v) {
    for (int64_t h = 0; h < g; h++) memcpy(page + 4 * (h * PAGE + slot) * dv, v + h * dv, (size_t) dv * 4);
}

enum { f32_block = 1, f32_bytes = 4 };

static inline void f32_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    memcpy(y, w, (size_t) n * 4);
}

// Products of rows of floats, several at once so that each value loaded is used several times.
// In: `outs` rows w and `rows` rows x of k floats. Out: v[r][o], the product of x row r and w row o.
// Every product is the same sequence of operations however many are made at once: one vector of partial sums along k,
// the sum of its lanes, then what is left of the row.
static inline __attribute__((always_inline)) void dot_some(const float *restrict w, const float *restrict x, int64_t k,
    const int outs, const int rows, float (*restrict v)[16]) {
    vf sum[4][3], xs[3];
    const float *ws[4], *from[3];
#pragma GCC unroll 3
    for (int r = 0; r < rows; r++) from[r] = x + r * k;
#pragma GCC unroll 4
    for (int o = 0; o < outs; o++) {
        ws[o] = w + o * k;
#pragma GCC unroll 3
        for (int r = 0; r < rows; r++) sum[o][r] = vf_set(0);
    }
    const int64_t whole = k / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
#pragma GCC unroll 3
        for (int r = 0; r < rows; r++) xs[r] = vf_load(from[r] + i);
#pragma GCC unroll 4
        for (int o = 0; o < outs; o++) {
            const vf some = vf_load(ws[o] + i);
#pragma GCC unroll 3
            for (int r = 0; r < rows; r++) sum[o][r] = vf_fma(some, xs[r], sum[o][r]);
        }
    }
#pragma GCC unroll 3
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int o = 0; o < outs; o++) {
            float s = vf_sum(sum[o][r]);
            for (int64_t j = whole; j < k; j++) s += ws[o][j] * from[r][j];
            v[r][o] = s;
        }
}

// Four rows of weights (outs of them real) and any number of rows x.
static inline void dot_rows(
    const float *restrict w, const float *restrict x, int64_t k, int outs, int rows, float (*restrict v)[16]) {
    int r = 0;
    if (outs == 4) {
        for (; r + 3 <= rows; r += 3) dot_some(w, x + r * k, k, 4, 3, v + r);
        for (; r < rows; r++) dot_some(w, x + r * k, k, 4, 1, v + r);
    }
    for (; r < rows; r++)
        for (int o = 0; o < outs; o++) dot_some(w + o * k, x + r * k, k, 1, 1, (float(*)[16]) & v[r][o]);
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

// Rotation local: pairs of halves, 24 dims, base 10000. Angles are f32; each pair's is the one before it times a constant.
static void angles_local(int32_t pos, float *cos_sin) {
    float turn = (float) pos;
    for (int i = 0; i < 12; i++, turn *= 0.464158863f) {
        const float angle = turn;
        cos_sin[2 * i] = (float) cos(angle);
        cos_sin[2 * i + 1] = (float) sin(angle);
    }
}

// Rotation far: pairs of halves, 24 dims, base 50000. Angles are f32; each pair's is the one before it times a constant.
static void angles_far(int32_t pos, float *cos_sin) {
    float turn = (float) pos;
    for (int i = 0; i < 12; i++, turn *= 0.405900091f) {
        const float angle = turn;
        cos_sin[2 * i] = (float) cos(angle);
        cos_sin[2 * i + 1] = (float) sin(angle);
    }
}

// x = token_embd[token] * 8; local = angles(position); far = angles(position)
static void embed_rows_far(const uint8_t *token_embd, const Model *m, float *x, float *local, float *far, int r) {
    x += (size_t) r * 64;
    local += (size_t) r * 24;
    far += (size_t) r * 24;
    float embedded[64];
    f32_row(token_embd + (size_t) m->token[r] * 256, embedded, 64);
    for (int i = 0; i < 64; i++)
        x[i] = embedded[i] * 8.0f;
    angles_local(m->pos[r], local);
    angles_far(m->pos[r], far);
}

// normed = rms_norm(x, attn_norm)
static void block_norm(const float *x, const float *attn_norm, float *normed, int r) {
    x += (size_t) r * 64;
    normed += (size_t) r * 64;
    const float scale = 1.0f / sqrtf(row_sum_sq(x, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++)
        normed[i] = x[i] * scale * attn_norm[i];
}

// qkv = attn_q+attn_k+attn_v(normed): [64] -> [192], F32
static void block_attn_q_attn_k_attn_v(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece,
    float *qkv) {
    const int panel_count = 12, groups = (panel_count + 6 - 1) / 6;
    const int p0 = piece % groups * 6, p1 = p0 + 6 < panel_count ? p0 + 6 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t row_bytes = (size_t) 64 / f32_block * f32_bytes;
    const float *xs = (const float *) x + (size_t) r0 * 64;
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            for (int i = 0; i < m; i += 4) {
                const int outs = m - i < 4 ? m - i : 4;
                const uint8_t *from = w + (size_t) (n + s * m + i) * row_bytes;
                dot_rows((const float *) from, xs, 64, outs, r1 - r0, (float(*)[16]) & v[s][0][i]);
            }
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                qkv[(size_t) r * 192 + n + j] = v0[j];
        }
    }
}

// q = rope(rms_norm(q, attn_q_norm), local); put(rope(rms_norm(k, attn_k_norm), local), v)
static void block_store_kv(const float *qkv, const float *attn_q_norm, float *q2, const float *local,
    const float *attn_k_norm, const Model *m, uint64_t k_at, uint64_t v_at, int r) {
    qkv += (size_t) r * 192;
    const float *q = qkv;
    const float *k2 = qkv + 96;
    const float *v = qkv + 144;
    q2 += (size_t) r * 96;
    local += (size_t) r * 24;
    float k3[48];
    for (int h = 0; h < 4; h++) {
        float normed[24];
        const float scale = 1.0f / sqrtf(row_sum_sq(q + h * 24, 24) / 24 + 0.00999999978f);
        for (int i = 0; i < 24; i++)
            normed[i] = q[h * 24 + i] * scale * attn_q_norm[i];
        rope_halves(normed, local, q2 + h * 24, 24, 24);
    }
    for (int h = 0; h < 2; h++) {
        float normed2[24];
        const float scale2 = 1.0f / sqrtf(row_sum_sq(k2 + h * 24, 24) / 24 + 0.00999999978f);
        for (int i = 0; i < 24; i++)
            normed2[i] = k2[h * 24 + i] * scale2 * attn_k_norm[i];
        rope_halves(normed2, local, k3 + h * 24, 24, 24);
    }
    uint8_t *page = state_page(m, 0, 147456, m->seq[r], m->pos[r]);
    kv_put_k_f32(page + k_at, 2, 24, m->pos[r] % PAGE, k3);
    kv_put_v_f32(page + v_at, 2, 24, m->pos[r] % PAGE, v);
}

// attention: 4 heads over 2 of keys and values, a window
enum { block_attention_rows = 2 < 12 ? 6 : 1 };
enum { block_attention_queries = block_attention_rows * 2 };

// The positions that a row at p sees, of a sequence that ends at `end`. Later rows see no earlier ones.
static inline void block_attention_sees(int p, int end, int *from, int *to) {
    *from = 0, *to = p;
    if (p >= 24) *from = p - 24 + 1;
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
        const uint8_t *at = state_page(m, 0, 147456, seq, page);
        const uint8_t *k = at + k_at + (size_t) kv_head * PAGE * 24 * bytes_f32;
        const uint8_t *v = at + v_at + (size_t) kv_head * PAGE * 24 * bytes_f32;
        const int from = first > page ? first - page : 0, to = last - page < PAGE ? last - page : PAGE - 1;
        attend_scores(k, bytes_f32 == 4, query[0], 24, n * 2, from, to, s);
        for (int t = 0; t < n * 2; t++) {
            block_attention_sees(pos[t / 2], end, &seen_from, &seen_to);
            int t_from = seen_from > page ? seen_from - page : 0,
                t_to = seen_to - page < PAGE ? seen_to - page : PAGE - 1;
            const float factor = attend_softmax(s[t], t_from, t_to, &seen[t]);
            if (factor != 1)
                for (int d = 0; d < 24; d++) sum[t][d] *= factor;
        }
        attend_values(v, bytes_f32 == 4, s, 24, 24, n * 2, from, to, sum[0]);
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

// o = attn_output(attended): [96] -> [64], F32
static void block_attn_output(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece, float *o2) {
    const int panel_count = 4, groups = (panel_count + 4 - 1) / 4;
    const int p0 = piece % groups * 4, p1 = p0 + 4 < panel_count ? p0 + 4 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t row_bytes = (size_t) 96 / f32_block * f32_bytes;
    const float *xs = (const float *) x + (size_t) r0 * 96;
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            for (int i = 0; i < m; i += 4) {
                const int outs = m - i < 4 ? m - i : 4;
                const uint8_t *from = w + (size_t) (n + s * m + i) * row_bytes;
                dot_rows((const float *) from, xs, 96, outs, r1 - r0, (float(*)[16]) & v[s][0][i]);
            }
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                o2[(size_t) r * 64 + n + j] = v0[j];
        }
    }
}

// x = x + rms_norm(o, post_attention_norm); normed = rms_norm(x, ffn_norm)
static void block_norm_x(const float *o, const float *post_attention_norm, const float *x, float *x2,
    const float *ffn_norm, float *normed2, int r) {
    o += (size_t) r * 64;
    x += (size_t) r * 64;
    x2 += (size_t) r * 64;
    normed2 += (size_t) r * 64;
    const float scale = 1.0f / sqrtf(row_sum_sq(o, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++) {
        const float normed = o[i] * scale * post_attention_norm[i];
        x2[i] = x[i] + normed;
    }
    const float scale2 = 1.0f / sqrtf(row_sum_sq(x2, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++)
        normed2[i] = x2[i] * scale2 * ffn_norm[i];
}

// gated = gelu(gate) * up: [64] -> [320], F32
static void block_ffn_gate_ffn_up(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece,
    float *gated2) {
    const int panel_count = 10, groups = (panel_count + 3 - 1) / 3;
    const int p0 = piece % groups * 3, p1 = p0 + 3 < panel_count ? p0 + 3 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t row_bytes = (size_t) 64 / f32_block * f32_bytes;
    const float *xs = (const float *) x + (size_t) r0 * 64;
    _Alignas(64) float v[2][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 2; s++)
            for (int i = 0; i < m; i += 4) {
                const int outs = m - i < 4 ? m - i : 4;
                const uint8_t *from = w + (size_t) (n * 2 + s * m + i) * row_bytes;
                dot_rows((const float *) from, xs, 64, outs, r1 - r0, (float(*)[16]) & v[s][0][i]);
            }
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            const float *restrict v1 = v[1][r - r0];
            for (int j = 0; j < m; j++) {
                const float gated = 0.5f * v0[j] * (1 + tanh_f32(0.7978845608f * v0[j] * (1 + 0.044715f * v0[j] * v0[j])));
                gated2[(size_t) r * 160 + n + j] = gated * v1[j];
            }
        }
    }
}

// f = ffn_down(gated): [160] -> [64], F32
static void block_ffn_down(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece, float *f) {
    const int panel_count = 4, groups = (panel_count + 3 - 1) / 3;
    const int p0 = piece % groups * 3, p1 = p0 + 3 < panel_count ? p0 + 3 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t row_bytes = (size_t) 160 / f32_block * f32_bytes;
    const float *xs = (const float *) x + (size_t) r0 * 160;
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            for (int i = 0; i < m; i += 4) {
                const int outs = m - i < 4 ? m - i : 4;
                const uint8_t *from = w + (size_t) (n + s * m + i) * row_bytes;
                dot_rows((const float *) from, xs, 160, outs, r1 - r0, (float(*)[16]) & v[s][0][i]);
            }
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                f[(size_t) r * 64 + n + j] = v0[j];
        }
    }
}

// x = x + rms_norm(f, post_ffw_norm)
static void block_norm_x_2(const float *f, const float *post_ffw_norm, const float *x, float *x2, int r) {
    f += (size_t) r * 64;
    x += (size_t) r * 64;
    x2 += (size_t) r * 64;
    const float scale = 1.0f / sqrtf(row_sum_sq(f, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++) {
        const float normed = f[i] * scale * post_ffw_norm[i];
        x2[i] = x[i] + normed;
    }
}

// q = rope(rms_norm(q, attn_q_norm), far); put(rope(rms_norm(k, attn_k_norm), far), v)
static void block_far_store_kv(const float *qkv, const float *attn_q_norm, float *q2, const float *far,
    const float *attn_k_norm, const Model *m, uint64_t k_at, uint64_t v_at, int r) {
    qkv += (size_t) r * 192;
    const float *q = qkv;
    const float *k2 = qkv + 96;
    const float *v = qkv + 144;
    q2 += (size_t) r * 96;
    far += (size_t) r * 24;
    float k3[48];
    for (int h = 0; h < 4; h++) {
        float normed[24];
        const float scale = 1.0f / sqrtf(row_sum_sq(q + h * 24, 24) / 24 + 0.00999999978f);
        for (int i = 0; i < 24; i++)
            normed[i] = q[h * 24 + i] * scale * attn_q_norm[i];
        rope_halves(normed, far, q2 + h * 24, 24, 24);
    }
    for (int h = 0; h < 2; h++) {
        float normed2[24];
        const float scale2 = 1.0f / sqrtf(row_sum_sq(k2 + h * 24, 24) / 24 + 0.00999999978f);
        for (int i = 0; i < 24; i++)
            normed2[i] = k2[h * 24 + i] * scale2 * attn_k_norm[i];
        rope_halves(normed2, far, k3 + h * 24, 24, 24);
    }
    uint8_t *page = state_page(m, 1, 24576, m->seq[r], m->pos[r]);
    kv_put_k_f32(page + k_at, 2, 24, m->pos[r] % PAGE, k3);
    kv_put_v_f32(page + v_at, 2, 24, m->pos[r] % PAGE, v);
}

// attention: 4 heads over 2 of keys and values, all positions
enum { block_far_attention_rows = 2 < 12 ? 6 : 1 };
enum { block_far_attention_queries = block_far_attention_rows * 2 };

// The positions that a row at p sees, of a sequence that ends at `end`. Later rows see no earlier ones.
static inline void block_far_attention_sees(int p, int end, int *from, int *to) {
    *from = 0, *to = p;
    (void) end;
}

// n rows of one sequence, in order of position, and 2 heads from h on.
static void block_far_attention_some(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q,
    float *restrict o, const int32_t *pos, int seq, int n, int h) {
    _Alignas(64) float query[block_far_attention_queries][24], s[block_far_attention_queries][PAGE] = {{0}};
    _Alignas(64) float sum[block_far_attention_queries][24] = {{0}};
    Seen seen[block_far_attention_queries];
    for (int t = 0; t < n * 2; t++) {
        const float *x = q + (size_t) (t / 2 * 4 + h + t % 2) * 24;
        for (int d = 0; d < 24; d++) query[t][d] = x[d] * 0.204124153f;
        seen[t] = (Seen){-__builtin_inff(), 0};
    }
    const int kv_head = h / 2;
    int first, last, end = 0;
    block_far_attention_sees(pos[n - 1], end, &first, &last);
    int seen_from, seen_to;
    block_far_attention_sees(pos[0], end, &first, &seen_to);
    for (int page = first / PAGE * PAGE; page <= last; page += PAGE) {
        const uint8_t *at = state_page(m, 1, 24576, seq, page);
        const uint8_t *k = at + k_at + (size_t) kv_head * PAGE * 24 * bytes_f32;
        const uint8_t *v = at + v_at + (size_t) kv_head * PAGE * 24 * bytes_f32;
        const int from = first > page ? first - page : 0, to = last - page < PAGE ? last - page : PAGE - 1;
        attend_scores(k, bytes_f32 == 4, query[0], 24, n * 2, from, to, s);
        for (int t = 0; t < n * 2; t++) {
            block_far_attention_sees(pos[t / 2], end, &seen_from, &seen_to);
            int t_from = seen_from > page ? seen_from - page : 0,
                t_to = seen_to - page < PAGE ? seen_to - page : PAGE - 1;
            const float factor = attend_softmax(s[t], t_from, t_to, &seen[t]);
            if (factor != 1)
                for (int d = 0; d < 24; d++) sum[t][d] *= factor;
        }
        attend_values(v, bytes_f32 == 4, s, 24, 24, n * 2, from, to, sum[0]);
    }
    for (int t = 0; t < n * 2; t++) {
        float *y = o + (size_t) (t / 2 * 4 + h + t % 2) * 24;
        for (int d = 0; d < 24; d++) y[d] = sum[t][d] / seen[t].sum;
    }
}

static void block_far_attention(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q,
    float *restrict o, const int32_t *pos, const int32_t *seq, int rows, int piece) {
    const int groups = 2, h = piece % groups * 2;
    const int r0 = piece / groups * 16, r1 = r0 + 16 < rows ? r0 + 16 : rows;
    for (int r = r0, n; r < r1; r += n) {
        for (n = 1; n < block_far_attention_rows && r + n < r1 && seq[r + n] == seq[r];) n++;
        block_far_attention_some(
            m, k_at, v_at, q + (size_t) r * 4 * 24, o + (size_t) r * 4 * 24, pos + r, seq[r], n, h);
    }
}

// normed = rms_norm(x_out, output_norm)
static void head_norm(const float *x, const float *output_norm, float *normed, int r) {
    x += (size_t) r * 64;
    normed += (size_t) r * 64;
    const float scale = 1.0f / sqrtf(row_sum_sq(x, 64) / 64 + 0.00999999978f);
    for (int i = 0; i < 64; i++)
        normed[i] = x[i] * scale * output_norm[i];
}

// z = output(normed): [64] -> [288], F32
static void head_output(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece, float *z) {
    const int panel_count = 18, groups = (panel_count + 6 - 1) / 6;
    const int p0 = piece % groups * 6, p1 = p0 + 6 < panel_count ? p0 + 6 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t row_bytes = (size_t) 64 / f32_block * f32_bytes;
    const float *xs = (const float *) x + (size_t) r0 * 64;
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            for (int i = 0; i < m; i += 4) {
                const int outs = m - i < 4 ? m - i : 4;
                const uint8_t *from = w + (size_t) (n + s * m + i) * row_bytes;
                dot_rows((const float *) from, xs, 64, outs, r1 - r0, (float(*)[16]) & v[s][0][i]);
            }
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                z[(size_t) r * 288 + n + j] = v0[j];
        }
    }
}

// x = wanted(x); local = wanted(local); normed = wanted(normed)
static void block_last_rows_local(const Model *m, const float *x, float *x2, const float *local, float *local2,
    const float *normed, float *normed2, int r) {
    x += (size_t) m->out[r] * 64;
    x2 += (size_t) r * 64;
    local += (size_t) m->out[r] * 24;
    local2 += (size_t) r * 24;
    normed += (size_t) m->out[r] * 64;
    normed2 += (size_t) r * 64;
    for (int i = 0; i < 64; i++)
        x2[i] = x[i];
    for (int i = 0; i < 24; i++)
        local2[i] = local[i];
    for (int i = 0; i < 64; i++)
        normed2[i] = normed[i];
}

// q = attn_q(normed): [64] -> [96], F32
static void block_last_attn_q(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece, float *q) {
    const int panel_count = 6, groups = (panel_count + 6 - 1) / 6;
    const int p0 = piece % groups * 6, p1 = p0 + 6 < panel_count ? p0 + 6 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t row_bytes = (size_t) 64 / f32_block * f32_bytes;
    const float *xs = (const float *) x + (size_t) r0 * 64;
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            for (int i = 0; i < m; i += 4) {
                const int outs = m - i < 4 ? m - i : 4;
                const uint8_t *from = w + (size_t) (n + s * m + i) * row_bytes;
                dot_rows((const float *) from, xs, 64, outs, r1 - r0, (float(*)[16]) & v[s][0][i]);
            }
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                q[(size_t) r * 96 + n + j] = v0[j];
        }
    }
}

// kv = attn_k+attn_v(normed): [64] -> [96], F32
static void block_last_attn_k_attn_v(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece,
    float *kv) {
    const int panel_count = 6, groups = (panel_count + 6 - 1) / 6;
    const int p0 = piece % groups * 6, p1 = p0 + 6 < panel_count ? p0 + 6 : panel_count;
    const int r0 = piece / groups * 120, r1 = r0 + 120 < rows ? r0 + 120 : rows;
    const size_t row_bytes = (size_t) 64 / f32_block * f32_bytes;
    const float *xs = (const float *) x + (size_t) r0 * 64;
    _Alignas(64) float v[1][120][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = 16;
        for (int s = 0; s < 1; s++)
            for (int i = 0; i < m; i += 4) {
                const int outs = m - i < 4 ? m - i : 4;
                const uint8_t *from = w + (size_t) (n + s * m + i) * row_bytes;
                dot_rows((const float *) from, xs, 64, outs, r1 - r0, (float(*)[16]) & v[s][0][i]);
            }
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];
            for (int j = 0; j < m; j++)
                kv[(size_t) r * 96 + n + j] = v0[j];
        }
    }
}

// put(rope(rms_norm(k, attn_k_norm), local), v)
static void block_last_store_kv(const float *kv, const float *attn_k_norm, const float *local, const Model *m,
    uint64_t k_at, uint64_t v_at, int r) {
    kv += (size_t) r * 96;
    const float *k2 = kv;
    const float *v = kv + 48;
    local += (size_t) r * 24;
    float k3[48];
    for (int h = 0; h < 2; h++) {
        float normed[24];
        const float scale = 1.0f / sqrtf(row_sum_sq(k2 + h * 24, 24) / 24 + 0.00999999978f);
        for (int i = 0; i < 24; i++)
            normed[i] = k2[h * 24 + i] * scale * attn_k_norm[i];
        rope_halves(normed, local, k3 + h * 24, 24, 24);
    }
    uint8_t *page = state_page(m, 0, 147456, m->seq[r], m->pos[r]);
    kv_put_k_f32(page + k_at, 2, 24, m->pos[r] % PAGE, k3);
    kv_put_v_f32(page + v_at, 2, 24, m->pos[r] % PAGE, v);
}

// q = rope(rms_norm(q, attn_q_norm), local)
static void block_last_norm_q(const float *q, const float *attn_q_norm, float *q2, const float *local, int r) {
    q += (size_t) r * 96;
    q2 += (size_t) r * 96;
    local += (size_t) r * 24;
    for (int h = 0; h < 4; h++) {
        float normed[24];
        const float scale = 1.0f / sqrtf(row_sum_sq(q + h * 24, 24) / 24 + 0.00999999978f);
        for (int i = 0; i < 24; i++)
            normed[i] = q[h * 24 + i] * scale * attn_q_norm[i];
        rope_halves(normed, local, q2 + h * 24, 24, 24);
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
    uint64_t attn_norm, attn_q_norm, attn_k_norm, attn_output, post_attention_norm, ffn_norm, ffn_down, post_ffw_norm,
        attn_q_attn_k_attn_v, ffn_gate_ffn_up, kv_k, kv_v;
} block_at[7] = {
    [0] = {73728, 73984, 74112, 74240, 98816, 99072, 99328, 140288, 140544, 189696, 0, 12288},
    [1] = {271616, 271872, 272000, 272128, 296704, 296960, 297216, 338176, 338432, 387584, 24576, 36864},
    [2] = {469504, 469760, 469888, 470016, 494592, 494848, 495104, 536064, 536320, 585472, 49152, 61440},
    [3] = {667392, 667648, 667776, 667904, 692480, 692736, 692992, 733952, 734208, 783360, 73728, 86016},
    [4] = {865280, 865536, 865664, 865792, 890368, 890624, 890880, 931840, 932096, 981248, 98304, 110592},
};

// block_far: bytes from the start of the weights; keys and values: bytes from the start of a page.
static const struct block_far_at {
    uint64_t attn_norm, attn_q_norm, attn_k_norm, attn_output, post_attention_norm, ffn_norm, ffn_down, post_ffw_norm,
        attn_q_attn_k_attn_v, ffn_gate_ffn_up, kv_k, kv_v;
} block_far_at[7] = {
    [5] = {1063168, 1063424, 1063552, 1063680, 1088256, 1088512, 1088768, 1129728, 1129984, 1179136, 0, 12288},
};

// block_last: bytes from the start of the weights; keys and values: bytes from the start of a page.
static const struct block_last_at {
    uint64_t attn_norm, attn_q, attn_q_norm, attn_k_norm, attn_output, post_attention_norm, ffn_norm, ffn_down,
        post_ffw_norm, attn_k_attn_v, ffn_gate_ffn_up, kv_k, kv_v;
} block_last_at[7] = {
    [6] = {1261056, 1261312, 1285888, 1286016, 1286144, 1310720, 1310976, 1311232, 1352192, 1352448, 1377024, 122880,
        135168},
};

// head: bytes from the start of the weights.
static const struct head_at {
    uint64_t output_norm, output;
} head_at[1] = {
    [0] = {1458944, 1459200},
};

// ---- the model ----

static void embed(const Model *m, Worker *w) {
    const struct embed_at *at = embed_at;
    const uint8_t *const weights = m->weights;
    float *const x = (float *) (m->scratch + 0);         // [rows][64]
    float *const local = (float *) (m->scratch + 65536); // [rows][24]
    float *const far = (float *) (m->scratch + 90112);   // [rows][24]
    ROWS(w, 0, 0, m->rows, r)
        embed_rows_far(weights + at->token_embd, m, x, local, far, r);
}

static void block(const Model *m, Worker *w, int l) {
    const struct block_at *at = &block_at[l];
    const uint8_t *const weights = m->weights;
    float *const x = (float *) (m->scratch + 0);             // [rows][64]
    float *const normed = (float *) (m->scratch + 122880);   // [rows][64]
    float *const qkv = (float *) (m->scratch + 188416);      // [rows][192]
    float *const q = (float *) (m->scratch + 385024);        // [rows][96]
    float *const local = (float *) (m->scratch + 65536);     // [rows][24]
    float *const attended = (float *) (m->scratch + 122880); // [rows][96]
    float *const o = (float *) (m->scratch + 221184);        // [rows][64]
    float *const x2 = (float *) (m->scratch + 122880);       // [rows][64]
    float *const normed2 = (float *) (m->scratch + 286720);  // [rows][64]
    float *const gated = (float *) (m->scratch + 352256);    // [rows][160]
    float *const f = (float *) (m->scratch + 188416);        // [rows][64]
    ROWS(w, 1, l, m->rows, r)
        block_norm(x, (const float *) (weights + at->attn_norm), normed, r);
    STEP(w, 2, l, 2 * ((m->rows + 119) / 120), p)
        block_attn_q_attn_k_attn_v(weights + at->attn_q_attn_k_attn_v, (const uint8_t *) normed, m->rows, p, qkv);
    ROWS(w, 3, l, m->rows, r)
        block_store_kv(qkv, (const float *) (weights + at->attn_q_norm), q, local,
            (const float *) (weights + at->attn_k_norm), m, at->kv_k, at->kv_v, r);
    STEP(w, 4, l, 2 * ((m->rows + 15) / 16), p)
        block_attention(m, at->kv_k, at->kv_v, q, attended, m->pos, m->seq, m->rows, p);
    STEP(w, 5, l, 1 * ((m->rows + 119) / 120), p)
        block_attn_output(weights + at->attn_output, (const uint8_t *) attended, m->rows, p, o);
    ROWS(w, 6, l, m->rows, r)
        block_norm_x(o, (const float *) (weights + at->post_attention_norm), x, x2,
            (const float *) (weights + at->ffn_norm), normed2, r);
    STEP(w, 7, l, 4 * ((m->rows + 119) / 120), p)
        block_ffn_gate_ffn_up(weights + at->ffn_gate_ffn_up, (const uint8_t *) normed2, m->rows, p, gated);
    STEP(w, 8, l, 2 * ((m->rows + 119) / 120), p)
        block_ffn_down(weights + at->ffn_down, (const uint8_t *) gated, m->rows, p, f);
    ROWS(w, 9, l, m->rows, r)
        block_norm_x_2(f, (const float *) (weights + at->post_ffw_norm), x2, x, r);
}

static void block_far(const Model *m, Worker *w, int l) {
    const struct block_far_at *at = &block_far_at[l];
    const uint8_t *const weights = m->weights;
    float *const x = (float *) (m->scratch + 0);             // [rows][64]
    float *const normed = (float *) (m->scratch + 122880);   // [rows][64]
    float *const qkv = (float *) (m->scratch + 188416);      // [rows][192]
    float *const q = (float *) (m->scratch + 385024);        // [rows][96]
    float *const far = (float *) (m->scratch + 90112);       // [rows][24]
    float *const attended = (float *) (m->scratch + 122880); // [rows][96]
    float *const o = (float *) (m->scratch + 221184);        // [rows][64]
    float *const x2 = (float *) (m->scratch + 122880);       // [rows][64]
    float *const normed2 = (float *) (m->scratch + 286720);  // [rows][64]
    float *const gated = (float *) (m->scratch + 352256);    // [rows][160]
    float *const f = (float *) (m->scratch + 188416);        // [rows][64]
    ROWS(w, 10, l, m->rows, r)
        block_norm(x, (const float *) (weights + at->attn_norm), normed, r);
    STEP(w, 11, l, 2 * ((m->rows + 119) / 120), p)
        block_attn_q_attn_k_attn_v(weights + at->attn_q_attn_k_attn_v, (const uint8_t *) normed, m->rows, p, qkv);
    ROWS(w, 12, l, m->rows, r)
        block_far_store_kv(qkv, (const float *) (weights + at->attn_q_norm), q, far,
            (const float *) (weights + at->attn_k_norm), m, at->kv_k, at->kv_v, r);
    STEP(w, 13, l, 2 * ((m->rows + 15) / 16), p)
        block_far_attention(m, at->kv_k, at->kv_v, q, attended, m->pos, m->seq, m->rows, p);
    STEP(w, 14, l, 1 * ((m->rows + 119) / 120), p)
        block_attn_output(weights + at->attn_output, (const uint8_t *) attended, m->rows, p, o);
    ROWS(w, 15, l, m->rows, r)
        block_norm_x(o, (const float *) (weights + at->post_attention_norm), x, x2,
            (const float *) (weights + at->ffn_norm), normed2, r);
    STEP(w, 16, l, 4 * ((m->rows + 119) / 120), p)
        block_ffn_gate_ffn_up(weights + at->ffn_gate_ffn_up, (const uint8_t *) normed2, m->rows, p, gated);
    STEP(w, 17, l, 2 * ((m->rows + 119) / 120), p)
        block_ffn_down(weights + at->ffn_down, (const uint8_t *) gated, m->rows, p, f);
    ROWS(w, 18, l, m->rows, r)
        block_norm_x_2(f, (const float *) (weights + at->post_ffw_norm), x2, x, r);
}

static void block_last(const Model *m, Worker *w, int l) {
    const struct block_last_at *at = &block_last_at[l];
    const uint8_t *const weights = m->weights;
    float *const x = (float *) (m->scratch + 0);             // [rows][64]
    float *const normed = (float *) (m->scratch + 134144);   // [rows][64]
    float *const x2 = (float *) (m->scratch + 122880);       // [outs][64]
    float *const local = (float *) (m->scratch + 65536);     // [rows][24]
    float *const local2 = (float *) (m->scratch + 131072);   // [outs][24]
    float *const normed2 = (float *) (m->scratch + 199680);  // [outs][64]
    float *const q = (float *) (m->scratch + 207872);        // [outs][96]
    float *const kv = (float *) (m->scratch + 220160);       // [rows][96]
    float *const q2 = (float *) (m->scratch + 134144);       // [outs][96]
    float *const attended = (float *) (m->scratch + 146432); // [outs][96]
    float *const o = (float *) (m->scratch + 131072);        // [outs][64]
    float *const x3 = (float *) (m->scratch + 139264);       // [outs][64]
    float *const normed3 = (float *) (m->scratch + 147456);  // [outs][64]
    float *const gated = (float *) (m->scratch + 155648);    // [outs][160]
    float *const f = (float *) (m->scratch + 122880);        // [outs][64]
    float *const x_out = (float *) (m->scratch + 114688);    // [outs][64]
    ROWS(w, 21, l, m->rows, r)
        block_norm(x, (const float *) (weights + at->attn_norm), normed, r);
    ROWS(w, 22, l, m->outs, r)
        block_last_rows_local(m, x, x2, local, local2, normed, normed2, r);
    STEP(w, 23, l, 1 * ((m->outs + 119) / 120), p)
        block_last_attn_q(weights + at->attn_q, (const uint8_t *) normed2, m->outs, p, q);
    STEP(w, 24, l, 1 * ((m->rows + 119) / 120), p)
        block_last_attn_k_attn_v(weights + at->attn_k_attn_v, (const uint8_t *) normed, m->rows, p, kv);
    ROWS(w, 25, l, m->rows, r)
        block_last_store_kv(kv, (const float *) (weights + at->attn_k_norm), local, m, at->kv_k, at->kv_v, r);
    ROWS(w, 26, l, m->outs, r)
        block_last_norm_q(q, (const float *) (weights + at->attn_q_norm), q2, local2, r);
    STEP(w, 27, l, 2 * ((m->outs + 15) / 16), p)
        block_attention(m, at->kv_k, at->kv_v, q2, attended, m->out_pos, m->out_seq, m->outs, p);
    STEP(w, 28, l, 1 * ((m->outs + 119) / 120), p)
        block_attn_output(weights + at->attn_output, (const uint8_t *) attended, m->outs, p, o);
    ROWS(w, 29, l, m->outs, r)
        block_norm_x(o, (const float *) (weights + at->post_attention_norm), x2, x3,
            (const float *) (weights + at->ffn_norm), normed3, r);
    STEP(w, 30, l, 4 * ((m->outs + 119) / 120), p)
        block_ffn_gate_ffn_up(weights + at->ffn_gate_ffn_up, (const uint8_t *) normed3, m->outs, p, gated);
    STEP(w, 31, l, 2 * ((m->outs + 119) / 120), p)
        block_ffn_down(weights + at->ffn_down, (const uint8_t *) gated, m->outs, p, f);
    ROWS(w, 32, l, m->outs, r)
        block_norm_x_2(f, (const float *) (weights + at->post_ffw_norm), x3, x_out, r);
}

static void head(const Model *m, Worker *w) {
    const struct head_at *at = head_at;
    const uint8_t *const weights = m->weights;
    float *const x_out = (float *) (m->scratch + 114688);  // [outs][64]
    float *const normed = (float *) (m->scratch + 122880); // [outs][64]
    ROWS(w, 19, 0, m->outs, r)
        head_norm(x_out, (const float *) (weights + at->output_norm), normed, r);
    STEP(w, 20, 0, 3 * ((m->outs + 119) / 120), p)
        head_output(weights + at->output, (const uint8_t *) normed, m->outs, p, m->logits);
}

void model_forward(const Model *m, Worker *w) {
    embed(m, w);
    for (int l = 0; l < 5; l++) block(m, w, l);
    block_far(m, w, 5);
    block_last(m, w, 6);
    head(m, w);
}

// ---- what was compiled ----

static const char info[] =
    "target c-avx2, inputs of products rounded to 8 bits: where packed\n"
    "L: 7 = block_count\n"
    "d: 64 = embedding_length\n"
    "ff: 160 = feed_forward_length\n"
    "heads: 4 = attention.head_count\n"
    "kvh: 2 = attention.head_count_kv\n"
    "hd: 24 = attention.key_length\n"
    "win: 24 = attention.sliding_window\n"
    "eps: 0.01 = attention.layer_norm_rms_epsilon\n"
    "scale: 0.2041241 = L == 62 ? 1/sqrt(d / heads) : 1/sqrt(hd)\n"
    "cap: 0 = 0 (no key: no cap)\n"
    "local: pairs halves, dims 24, base 10000\n"
    "far: pairs halves, dims 24, base 50000\n";

const ModelInfo model_info = {
    .name = "synthetic gemma3",
    .arch = "gemma3",
    .source = "gemma3.gguf",
    .hash = 0x8679725631b55e68u,
    .n_vocab = 288,
    .n_ctx = 256,
    .n_layer = 7,
    .n_embd = 64,
    .max_batch = 256,
    .max_out = 32,
    .result = "logits",
    .n_result = 288,
    .weight_bytes = 1532928,
    .scratch_bytes = 516096,
    .thread_bytes = 0,
    .n_group = 2,
    .group = {
        {"window of 24", 147456, 24, 1},
        {"all positions", 24576, 0, 1},
    },
    .cpu = "pni ssse3 sse4_1 sse4_2 popcnt avx avx2 fma f16c bmi1 bmi2",
    .kv_type = "f32",
    .param_count = 383120,
    .info = info,
};
const char *const compiler_version = "ggcc 0.1.0";
const char *const weights_file = "weights.bin";

// What the interpreter gives for a few tokens; `selftest` compares.
// clang-format off
static const int32_t selftest_ids[] = {1, 144, 287, 142, 285, 140, 283, 138, 281, 136, 279, 134, 277, 132, 275, 130};
static const SelfCheck selftest_check[] = {
    {0, 191, {0, 36, 72, 108, 144, 180, 216, 252}, {0.634286165f, -0.773407996f, 2.43195391f, -0.690748751f,
        -0.569721997f, -0.545087993f, 2.09837174f, 0.0232952368f}},
    {1, 209, {0, 36, 72, 108, 144, 180, 216, 252}, {-0.406174809f, 0.917386234f, 2.20570421f, 1.15632236f, -2.3602736f,
        -1.13346791f, 1.64821982f, 1.05260348f}},
    {2, 9, {0, 36, 72, 108, 144, 180, 216, 252}, {-3.16604352f, -1.55869877f, 0.435171694f, -1.79795778f, -3.19083643f,
        -0.368169695f, -0.312237501f, 1.18049788f}},
    {3, 29, {0, 36, 72, 108, 144, 180, 216, 252}, {-1.99034357f, -1.78508604f, -0.612070262f, 0.354137599f,
        0.107684277f, -0.381236374f, 0.274335414f, 1.77579486f}},
};
// clang-format on
const SelfTest selftest = {16, selftest_ids, 4, selftest_check, 0.00395001238f};
