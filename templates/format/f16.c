// F16: IEEE half precision.
// In: rows of little-endian f16. Out: f32, exactly.
//@ section decode
enum { f16_block = 1, f16_bytes = 2 };

static inline void f16_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    f16_to_f32_n(w, y, n);
}
//@ end
