// Sixteen-bit floats to f32 and back, with the F16C instructions; same results as c/half.h.
// In: bit patterns. Out: the nearest value, ties to even; infinities and NaN are kept.
static inline uint16_t read_u16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

static inline float float_at(const uint8_t *p) {
    float v;
    memcpy(&v, p, 4);
    return v;
}

static inline float float_of_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t bits_of_float(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float f16_to_f32(uint16_t h) {
    return _cvtsh_ss(h);
}

static inline uint16_t f32_to_f16(float f) {
    return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT);
}

static inline float bf16_to_f32(uint16_t h) {
    return float_of_bits((uint32_t) h << 16);
}

static inline void f16_to_f32_n(const uint8_t *restrict h, float *restrict y, int64_t n) {
    const int64_t whole = n / 8 * 8;
    for (int64_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) (h + 2 * i))));
    for (int64_t i = whole; i < n; i++) y[i] = f16_to_f32(read_u16(h + 2 * i));
}

static inline void f32_to_f16_n(const float *restrict x, uint8_t *restrict h, int64_t n) {
    const int64_t whole = n / 8 * 8;
    for (int64_t i = 0; i < whole; i += 8)
        _mm_storeu_si128((__m128i *) (h + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (int64_t i = whole; i < n; i++) {
        uint16_t v = f32_to_f16(x[i]);
        memcpy(h + 2 * i, &v, 2);
    }
}
