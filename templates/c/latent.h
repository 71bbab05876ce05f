//@ needs attend.h
// Scores on a cache of one column for each position, of which the values are a part (attend_values takes those): rows
// of `width` numbers, [kv head][position][width]. A few queries and a few positions go together, twelve sums in
// registers, so that what is loaded serves several sums; every sum is the same sequence of steps however many they are.

// How many positions go with n queries.
static inline __attribute__((always_inline)) int latent_step(const int n) {
    return n == 1 ? 8 : 12 / n;
}

// s[t][j] for some positions from j on: one vector of partial sums along the column, then its lanes, then the rest.
static inline __attribute__((always_inline)) void latent_some_scores(const uint8_t *restrict k, const int wide,
    const float *restrict q, int64_t width, const int n, const int some, int j, float (*restrict s)[PAGE]) {
    const int64_t whole = width / LANES * LANES;
    vf sum[4][8];
#pragma GCC unroll 4
    for (int t = 0; t < n; t++)
#pragma GCC unroll 8
        for (int c = 0; c < some; c++) sum[t][c] = vf_set(0);
    for (int64_t i = 0; i < whole; i += LANES) {
        vf key[8];
#pragma GCC unroll 8
        for (int c = 0; c < some; c++) key[c] = attend_load(k, (j + c) * width + i, wide);
#pragma GCC unroll 4
        for (int t = 0; t < n; t++) {
            const vf x = vf_load(q + t * width + i);
#pragma GCC unroll 8
            for (int c = 0; c < some; c++) sum[t][c] = vf_fma(x, key[c], sum[t][c]);
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < n; t++)
#pragma GCC unroll 8
        for (int c = 0; c < some; c++) {
            float dot = vf_sum(sum[t][c]);
            for (int64_t i = whole; i < width; i++) {
                const int64_t at = (j + c) * width + i;
                const float key = wide ? float_at(k + 4 * at) : f16_to_f32(read_u16(k + 2 * at));
                dot = fma_f32(q[t * width + i], key, dot);
            }
            s[t][j + c] = dot;
        }
}

// s[t][j] for positions j from .. to.
static inline __attribute__((always_inline)) void latent_n_scores(const uint8_t *restrict k, const int wide,
    const float *restrict q, int64_t width, const int n, int from, int to, float (*restrict s)[PAGE]) {
    int j = from;
    for (; j + latent_step(n) <= to + 1; j += latent_step(n))
        latent_some_scores(k, wide, q, width, n, latent_step(n), j, s);
    for (; j <= to; j++) latent_some_scores(k, wide, q, width, n, 1, j, s);
}

static inline void latent_scores(const uint8_t *restrict k, const int wide, const float *restrict q, int64_t width,
    int n, int from, int to, float (*restrict s)[PAGE]) {
    for (; n >= 4; n -= 4, q += 4 * width, s += 4) latent_n_scores(k, wide, q, width, 4, from, to, s);
    for (; n > 0; n--, q += width, s++) latent_n_scores(k, wide, q, width, 1, from, to, s);
}
