// IQ4_XS: 256 weights as 4-bit indices into IQ4_NL's table, in groups of 32 with a 6-bit scale s: w = d (s - 32)
// value[q].
// Block: f16 d, u16 of the scales' upper two bits, 4 bytes of their low halves, 128 bytes: 16 a group, halves as in
// Q4_0.
//@ section decode
enum { iq4_xs_block = 256, iq4_xs_bytes = 136 };

static const int8_t iq4_xs_value[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static inline void iq4_xs_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b));
    for (int g = 0; g < 8; g++) {
        const uint8_t *q = b + 8 + 16 * g;
        const int low = b[4 + g / 2] >> (g % 2 * 4) & 15, top = read_u16(b + 2) >> (2 * g) & 3;
        const float s = d * (float) (low + top * 16 - 32);
        for (int i = 0; i < 16; i++) {
            y[32 * g + i] = s * (float) iq4_xs_value[q[i] & 15];
            y[32 * g + i + 16] = s * (float) iq4_xs_value[q[i] >> 4];
        }
    }
}

static inline void iq4_xs_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= iq4_xs_block, w += iq4_xs_bytes, y += iq4_xs_block) iq4_xs_decode(w, y);
}
//@ end
