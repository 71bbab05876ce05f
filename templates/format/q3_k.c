// Q3_K: 256 weights as 3-bit integers q, in groups of 16 with a 6-bit scale s: w = d (s - 32) (q - 4).
// Block: 32 bytes of third bits, 64 bytes of low bits (order as Q2_K), 12 bytes of scales, f16 d. Scale g has its low
// half in byte g % 8 (high half of the byte for g >= 8) and its upper two bits in byte 8 + g % 4.
//@ section decode
enum { q3_k_block = 256, q3_k_bytes = 110 };

static inline void q3_k_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b + 108));
    const uint8_t *scale = b + 96;
    for (int g = 0; g < 16; g++) {
        const uint8_t *high = b + g % 2 * 16, *q = b + 32 + g / 8 * 32 + g % 2 * 16;
        const int low = scale[g % 8] >> (g / 8 * 4) & 15, top = scale[8 + g % 4] >> (g / 4 * 2) & 3;
        const float s = d * (float) (low + top * 16 - 32);
        for (int i = 0; i < 16; i++)
            y[16 * g + i] = s * (float) ((q[i] >> (g % 8 / 2 * 2) & 3) + (high[i] >> (g / 2) & 1) * 4 - 4);
    }
}

static inline void q3_k_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q3_k_block, w += q3_k_bytes, y += q3_k_block) q3_k_decode(w, y);
}
//@ end
