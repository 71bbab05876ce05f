//@ needs half.h
// Activations as bytes: what a row of floats is turned into before it meets packed weights.
// In: k floats, k a multiple of 32. Out, one after the other: k int8 q; k / 32 float d, x ~ d q; k / 32 float, d
// times the sum of the 32 q; k / 16 int16, the sums of 16 q. Rows take q8_bytes(k), a multiple of 64.
static inline size_t q8_bytes(int64_t k) {
    return (size_t) (k + k / 8 * 3 + 63) / 64 * 64;
}

// d is the largest magnitude over 127, q is rounded to nearest even: adding 1.5 * 2^23 leaves the integer in the low
// bits.
static inline void quantize_q8(const float *restrict x, uint8_t *restrict q, int64_t k) {
    float *restrict d = (float *) (q + k), *restrict ds = d + k / 32;
    int16_t *restrict s = (int16_t *) (ds + k / 32);
    for (int64_t b = 0; b < k / 32; b++, x += 32, q += 32) {
        float top = 0;
        for (int i = 0; i < 32; i++) {
            const float a = float_of_bits(bits_of_float(x[i]) & 0x7fffffff);
            top = a > top ? a : top;
        }
        const float scale = top > 0 ? 127.0f / top : 0;
        int sum[2] = {0, 0};
        for (int i = 0; i < 32; i++) {
            const int v = (int) (bits_of_float(x[i] * scale + 0x1.8p23f) - 0x4b400000);
            q[i] = (uint8_t) v;
            sum[i / 16] += (int8_t) q[i];
        }
        d[b] = top / 127.0f;
        ds[b] = d[b] * (float) (sum[0] + sum[1]);
        s[2 * b] = (int16_t) sum[0];
        s[2 * b + 1] = (int16_t) sum[1];
    }
    // gcc 12 takes a caller whose input is a local array for a function without effects, and drops the call; not with
    // this.
    __asm__ volatile("" : : : "memory");
}
