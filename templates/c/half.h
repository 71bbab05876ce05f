// Sixteen-bit floats to f32 and back, exactly, with integer arithmetic that vectorises: for any machine.
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

// A subnormal becomes a difference of two normal numbers, so that flush-to-zero modes do no harm.
static inline float f16_to_f32(uint16_t h) {
    uint32_t m = (uint32_t) (h & 0x7fff) << 13, e = m & 0x0f800000;
    uint32_t sub = bits_of_float(float_of_bits(m + 0x38800000) - 0x1p-14f);
    uint32_t u = e == 0 ? sub : m + (e == 0x0f800000 ? 0x70000000 : 0x38000000);
    return float_of_bits(u | (uint32_t) (h & 0x8000) << 16);
}

static inline uint16_t f32_to_f16(float f) {
    uint32_t u = bits_of_float(f), a = u & 0x7fffffff, sign = u >> 16 & 0x8000;
    // Below 2^-14 the last bit weighs 2^-24, the unit of floats in [0.5, 1): adding 0.5 rounds there.
    uint32_t sub = bits_of_float(float_of_bits(a) + 0.5f) - 0x3f000000;
    uint32_t normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    uint32_t h = a < 0x38800000 ? sub : a < 0x477ff000 ? normal : 0x7c00;
    h = a > 0x7f800000 ? 0x7e00 : h;
    return (uint16_t) (sign | h);
}

static inline float bf16_to_f32(uint16_t h) {
    return float_of_bits((uint32_t) h << 16);
}

static inline void f16_to_f32_n(const uint8_t *restrict h, float *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = f16_to_f32(read_u16(h + 2 * i));
}

static inline void f32_to_f16_n(const float *restrict x, uint8_t *restrict h, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t v = f32_to_f16(x[i]);
        memcpy(h + 2 * i, &v, 2);
    }
}
