// IQ4_NL: 32 weights as 4-bit indices into a table of sixteen values, with one scale: w = d value[q].
// Block: f16 d, 16 bytes of halves as in Q4_0.
//@ section decode
enum { iq4_nl_block = 32, iq4_nl_bytes = 18 };

static const int8_t iq4_nl_value[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static inline void iq4_nl_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b));
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float) iq4_nl_value[b[2 + i] & 15];
        y[i + 16] = d * (float) iq4_nl_value[b[2 + i] >> 4];
    }
}

static inline void iq4_nl_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= iq4_nl_block, w += iq4_nl_bytes, y += iq4_nl_block) iq4_nl_decode(w, y);
}
//@ end
