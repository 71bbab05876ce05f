// Rotary position embedding undone: as rope.h, turned the other way.
static inline void rope_halves_back(const float *x, const float *cos_sin, float *y, int dims, int n) {
    const int half = dims / 2;
    for (int i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half], c = cos_sin[2 * i], s = cos_sin[2 * i + 1];
        y[i] = a * c + b * s;
        y[i + half] = b * c - a * s;
    }
    for (int i = dims; i < n; i++) y[i] = x[i];
}

static inline void rope_adjacent_back(const float *x, const float *cos_sin, float *y, int dims, int n) {
    for (int i = 0; i < dims; i += 2) {
        const float a = x[i], b = x[i + 1], c = cos_sin[i], s = cos_sin[i + 1];
        y[i] = a * c + b * s;
        y[i + 1] = b * c - a * s;
    }
    for (int i = dims; i < n; i++) y[i] = x[i];
}
