//@ needs math.h row.h
// Along a row, in one fixed order: what layer_norm and softmax need besides row.h.

static inline float row_sum_sq_from(const float *x, float mean, int n) {
    float part[8] = {0};
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) part[j] += (x[i + j] - mean) * (x[i + j] - mean);
    for (; i < n; i++) part[0] += (x[i] - mean) * (x[i] - mean);
    return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

static inline void row_softmax(const float *x, float *y, int n) {
    const float top = row_max(x, n);
    for (int i = 0; i < n; i++) y[i] = exp_f32(x[i] - top);
    const float scale = 1.0f / row_sum(y, n);
    for (int i = 0; i < n; i++) y[i] *= scale;
}
