//@ needs simd.h
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
