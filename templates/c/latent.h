//@ needs attend.h
// Attention on a cache of one column for each position, of which the values are a part: rows of `width` numbers, [kv
// head][position]
// [width], so that a column is a vector for scores and values alike. A few queries go together; every sum is the same
// sequence of steps
// however many they are.

// s[q][j] for positions j from .. to: one vector of partial sums along the column, then its lanes, then the rest.
static inline __attribute__((always_inline)) void latent_some_scores(const uint8_t *restrict k, const int wide,
    const float *restrict q, int64_t width, const int n, int from, int to, float (*restrict s)[PAGE]) {
    const int64_t whole = width / LANES * LANES;
    for (int j = from; j <= to; j++) {
        vf sum[4];
#pragma GCC unroll 4
        for (int t = 0; t < n; t++) sum[t] = vf_set(0);
        for (int64_t i = 0; i < whole; i += LANES) {
            const vf key = attend_load(k, j * width + i, wide);
#pragma GCC unroll 4
            for (int t = 0; t < n; t++) sum[t] = vf_fma(vf_load(q + t * width + i), key, sum[t]);
        }
        for (int t = 0; t < n; t++) {
            float dot = vf_sum(sum[t]);
            for (int64_t i = whole; i < width; i++) {
                const float key =
                    wide ? float_at(k + 4 * (j * width + i)) : f16_to_f32(read_u16(k + 2 * (j * width + i)));
                dot = fma_f32(q[t * width + i], key, dot);
            }
            s[t][j] = dot;
        }
    }
}

static inline void latent_scores(const uint8_t *restrict k, const int wide, const float *restrict q, int64_t width,
    int n, int from, int to, float (*restrict s)[PAGE]) {
    for (; n >= 4; n -= 4, q += 4 * width, s += 4) latent_some_scores(k, wide, q, width, 4, from, to, s);
    for (; n > 0; n--, q += width, s++) latent_some_scores(k, wide, q, width, 1, from, to, s);
}

// o[q] += sum of p[q][j] times dv numbers of column j, positions from .. to in order.
static inline __attribute__((always_inline)) void latent_some_values(const uint8_t *restrict v, const int wide,
    float (*restrict p)[PAGE], int64_t width, int64_t dv, const int n, int from, int to, float *restrict o) {
    const int64_t whole = dv / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        vf sum[4];
#pragma GCC unroll 4
        for (int t = 0; t < n; t++) sum[t] = vf_load(o + t * dv + i);
        for (int j = from; j <= to; j++) {
            const vf value = attend_load(v, j * width + i, wide);
#pragma GCC unroll 4
            for (int t = 0; t < n; t++) sum[t] = vf_fma(vf_set(p[t][j]), value, sum[t]);
        }
#pragma GCC unroll 4
        for (int t = 0; t < n; t++) vf_store(o + t * dv + i, sum[t]);
    }
    for (int64_t i = whole; i < dv; i++)
        for (int t = 0; t < n; t++)
            for (int j = from; j <= to; j++) {
                const float value =
                    wide ? float_at(v + 4 * (j * width + i)) : f16_to_f32(read_u16(v + 2 * (j * width + i)));
                o[t * dv + i] = fma_f32(p[t][j], value, o[t * dv + i]);
            }
}

static inline void latent_values(const uint8_t *restrict v, const int wide, float (*restrict p)[PAGE], int64_t width,
    int64_t dv, int n, int from, int to, float *restrict o) {
    for (; n >= 4; n -= 4, p += 4, o += 4 * dv) latent_some_values(v, wide, p, width, dv, 4, from, to, o);
    for (; n > 0; n--, p++, o += dv) latent_some_values(v, wide, p, width, dv, 1, from, to, o);
}
