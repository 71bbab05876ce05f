//@ needs simd.h
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
