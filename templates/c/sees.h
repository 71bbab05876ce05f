//@ needs half.h math.h
// What rows of attention see besides what lies before them.

// The last position of a sequence whose rows are all in the batch.
static inline int sees_end(const Model *m, int seq) {
    int r = m->rows - 1;
    while (r > 0 && m->seq[r] != seq) r--;
    return m->pos[r];
}

// How much less head h of `heads` sees with each position further off (ALiBi), `most` of it over all heads.
static inline float sees_slope(int h, int heads, float most) {
    int n = 1;
    while (n * 2 <= heads) n *= 2;
    const float steps = h < n ? (float) (h + 1) : 0.5f * (float) (2 * (h - n) + 1);
    return __builtin_exp2f(-most * steps / (float) n);
}

// Scores of a page less what distance from position `row` (counted from the page) takes.
static inline void sees_distance(float *restrict s, float slope, int row) {
    for (int j = 0; j < PAGE; j++) s[j] -= slope * abs_f32((float) (row - j));
}

// Scores of a page plus what a table, `stride` from bucket to bucket, has for their distance from position `row`: a
// bucket for each distance below `exact`, then one from each of n bounds on; later positions begin at `later`.
static inline void sees_near(float *restrict s, const float *restrict bias, int stride, const int *restrict bound,
    int n, int exact, int later, int row) {
    for (int j = 0; j < PAGE; j++) {
        const int far = row > j ? row - j : j - row;
        int bucket = (far < exact ? far : exact) + (j > row ? later : 0);
        for (int i = 0; i < n; i++) bucket += far >= bound[i];
        s[j] += bias[(size_t) bucket * (size_t) stride];
    }
}

// Only positions in the n blocks that a list picks (-1: none) stay, of from .. to. Where none is left, from becomes
// more than to.
static inline void sees_picked(
    const int32_t *restrict list, int n, int block, int page, int *from, int *to, float *restrict s) {
    uint64_t picked = 0;
    for (int i = 0; i < n; i++) {
        const int first = list[i] * block - page;
        for (int j = first < 0 ? 0 : first; list[i] >= 0 && j < first + block && j < PAGE; j++)
            picked |= (uint64_t) (j >= *from && j <= *to) << j;
    }
    for (int j = 0; j < PAGE; j++) s[j] = select_f32(picked >> j & 1, s[j], -__builtin_inff());
    if (!picked) *from = 1, *to = 0;
}
