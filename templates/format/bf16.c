// BF16: the upper half of an f32.
// In: rows of little-endian bf16. Out: f32, exactly.
//@ section decode
enum { bf16_block = 1, bf16_bytes = 2 };

static inline void bf16_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = bf16_to_f32(read_u16(w + 2 * i));
}
//@ end
