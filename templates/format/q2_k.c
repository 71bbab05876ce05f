// Q2_K: 256 weights as 2-bit integers q, in groups of 16 with 4-bit scale s and minimum t: w = d s q - e t.
// Block: 16 bytes (s low, t high half), 64 bytes q, f16 d, f16 e. Of each half of the block, byte l of its 32 holds
// weights l, l + 32, l + 64, l + 96, from the low bits up.
//@ section decode
enum { q2_k_block = 256, q2_k_bytes = 84 };

static inline void q2_k_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b + 80)), e = f16_to_f32(read_u16(b + 82));
    for (int g = 0; g < 16; g++) {
        const uint8_t *q = b + 16 + g / 8 * 32 + g % 2 * 16;
        const float s = d * (float) (b[g] & 15), t = e * (float) (b[g] >> 4);
        for (int i = 0; i < 16; i++) y[16 * g + i] = s * (float) (q[i] >> (g % 8 / 2 * 2) & 3) - t;
    }
}

static inline void q2_k_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q2_k_block, w += q2_k_bytes, y += q2_k_block) q2_k_decode(w, y);
}
//@ end
