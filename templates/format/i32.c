// I32: whole numbers, of tables that hold ids; as numbers they are exact below 2^24.
// In: rows of little-endian i32. Out: f32.
//@ section decode
enum { i32_block = 1, i32_bytes = 4 };

static inline void i32_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int32_t v;
        memcpy(&v, w + 4 * i, 4);
        y[i] = (float) v;
    }
}
//@ end
