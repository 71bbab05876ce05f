//@ needs simd.h math.h row.h
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
