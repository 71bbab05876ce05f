//@ needs simd.h
// Sums and the maximum along a row of floats, in one fixed order: four vectors of partial results, then their sum, then
// the rest of the row one by one.
// In: n floats. Out: one.
static inline float row_sum(const float *restrict x, int64_t n) {
    vf a = vf_set(0), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a += vf_load(x + i);
        b += vf_load(x + i + LANES);
        c += vf_load(x + i + 2 * LANES);
        d += vf_load(x + i + 3 * LANES);
    }
    for (; i + LANES <= n; i += LANES) a += vf_load(x + i);
    float sum = vf_sum((a + b) + (c + d));
    for (; i < n; i++) sum += x[i];
    return sum;
}

static inline float row_dot(const float *restrict x, const float *restrict y, int64_t n) {
    vf a = vf_set(0), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a = vf_fma(vf_load(x + i), vf_load(y + i), a);
        b = vf_fma(vf_load(x + i + LANES), vf_load(y + i + LANES), b);
        c = vf_fma(vf_load(x + i + 2 * LANES), vf_load(y + i + 2 * LANES), c);
        d = vf_fma(vf_load(x + i + 3 * LANES), vf_load(y + i + 3 * LANES), d);
    }
    for (; i + LANES <= n; i += LANES) a = vf_fma(vf_load(x + i), vf_load(y + i), a);
    float sum = vf_sum((a + b) + (c + d));
    for (; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static inline float row_sum_sq(const float *x, int64_t n) {
    return row_dot(x, x, n);
}

static inline float row_max(const float *restrict x, int64_t n) {
    float top = x[0];
    int64_t i = 0;
    if (n >= LANES) {
        vf m = vf_load(x);
        for (i = LANES; i + LANES <= n; i += LANES) m = vf_max(m, vf_load(x + i));
        top = vf_top(m);
    }
    for (; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}
