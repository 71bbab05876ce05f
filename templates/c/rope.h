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

// Pair i is (x[2 i], x[2 i + 1]).
static inline void rope_adjacent(const float *x, const float *cos_sin, float *y, int dims, int n) {
    for (int i = 0; i < dims; i += 2) {
        const float a = x[i], b = x[i + 1], c = cos_sin[i], s = cos_sin[i + 1];
        y[i] = a * c - b * s;
        y[i + 1] = a * s + b * c;
    }
    for (int i = dims; i < n; i++) y[i] = x[i];
}
