// F32: the floats themselves.
// In: rows of little-endian f32. Out: the same.
//@ section decode
enum { f32_block = 1, f32_bytes = 4 };

static inline void f32_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    memcpy(y, w, (size_t) n * 4);
}
//@ end
