//@ needs half.h
// Choices and sums along a row that no vector instruction helps with. In: a row of floats, ids. Out: a row.

// The k largest of n, largest first; of equal ones the one that stands first.
static inline void row_top(const float *restrict x, int n, int k, int32_t *restrict ids) {
    for (int j = 0; j < k; j++) {
        int best = -1;
        for (int i = 0; i < n; i++) {
            // what was chosen stands before the last choice in the order
            const int left = j == 0 || x[i] < x[ids[j - 1]] || (x[i] == x[ids[j - 1]] && i > ids[j - 1]);
            if (left && (best < 0 || x[i] > x[best])) best = i;
        }
        ids[j] = best < 0 ? 0 : best; // no number (NaN): any id, but one that exists
    }
}

// The id that a computed number is, rounded down. What no int32_t can be becomes its nearest; no number (NaN) is 0.
static inline int32_t id_of(float x) {
    return x >= 2147483648.0f ? INT32_MAX : x < -2147483648.0f ? INT32_MIN : x == x ? (int32_t) floorf(x) : 0;
}

// An id that a table of n rows has, whatever was computed: the nearest.
static inline int32_t row_id(int32_t id, int32_t n) {
    return id < 0 ? 0 : id < n ? id : n - 1;
}

// n ids, each times its factor, in 64 bits, the products xor'ed; of that m remainders, each plus its base.
static inline void row_hash(const int32_t *restrict x, const uint64_t *restrict by, int n,
    const uint64_t *restrict mod, const uint64_t *restrict plus, int m, int32_t *restrict y) {
    uint64_t h = 0;
    for (int j = 0; j < n; j++) h ^= (uint64_t) x[j] * by[j];
    for (int i = 0; i < m; i++) y[i] = (int32_t) (h % mod[i] + plus[i]);
}

static inline void row_gather(const float *restrict x, int n, const int32_t *restrict ids, int k, float *restrict y) {
    for (int j = 0; j < k; j++) y[j] = x[row_id(ids[j], n)];
}

// x [n][part]; parts without an id become -inf.
static inline void row_only(
    const float *restrict x, int n, int part, const int32_t *restrict ids, int k, float *restrict y) {
    for (int i = 0; i < n * part; i++) y[i] = -__builtin_inff();
    for (int j = 0; j < k; j++) {
        const int32_t id = row_id(ids[j], n);
        for (int i = 0; i < part; i++) y[id * part + i] = x[id * part + i];
    }
}

// y [outer][inner] = w [outer][n] times x [n][inner], in order of n.
static inline void row_mix(
    const float *restrict w, const float *restrict x, float *restrict y, int outer, int n, int inner) {
    for (int o = 0; o < outer; o++)
        for (int i = 0; i < inner; i++) y[o * inner + i] = w[o * n] * x[i];
    for (int o = 0; o < outer; o++)
        for (int j = 1; j < n; j++)
            for (int i = 0; i < inner; i++) y[o * inner + i] += w[o * n + j] * x[j * inner + i];
}

static inline void row_sum_first(const float *restrict x, float *restrict y, int n, int inner) {
    for (int i = 0; i < inner; i++) y[i] = x[i];
    for (int j = 1; j < n; j++)
        for (int i = 0; i < inner; i++) y[i] += x[j * inner + i];
}

// Taps t, n of them, `step` apart, each of `size`; weights w [size][n].
static inline void row_conv(
    const float *restrict t, const float *restrict w, float *restrict y, int n, int step, int size) {
    for (int i = 0; i < size; i++) y[i] = w[i * n] * t[i];
    for (int j = 1; j < n; j++)
        for (int i = 0; i < size; i++) y[i] += w[i * n + j] * t[(size_t) j * step + i];
}

// y [to][part] of x [n][part]: row h is row h / (to / n), or h mod n.
static inline void row_spread(const float *restrict x, float *restrict y, int n, int to, int part, const int tiled) {
    for (int h = 0; h < to; h++) memcpy(y + h * part, x + (tiled ? h % n : h / (to / n)) * part, (size_t) part * 4);
}
