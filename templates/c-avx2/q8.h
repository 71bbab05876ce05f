//@ needs half.h
// Activations as bytes: what a row of floats is turned into before it meets packed weights.
// In: k floats, k a multiple of 32. Out, one after the other: k int8 q; k / 32 float d, x ~ d q; k / 32 float, d
// times the sum of the 32 q; k / 16 int16, the sums of 16 q. Rows take q8_bytes(k), a multiple of 64.
static inline size_t q8_bytes(int64_t k) {
    return (size_t) (k + k / 8 * 3 + 63) / 64 * 64;
}

// The largest magnitude of four vectors.
static inline float q8_top(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    a = _mm256_max_ps(_mm256_andnot_ps(sign, a), _mm256_andnot_ps(sign, b));
    c = _mm256_max_ps(_mm256_andnot_ps(sign, c), _mm256_andnot_ps(sign, d));
    a = _mm256_max_ps(a, c);
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

static inline __m256i q8_round(__m256 x, __m256 scale) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(x, scale));
}

// d is the largest magnitude over 127, q is rounded to nearest even.
static inline void quantize_q8(const float *restrict x, uint8_t *restrict q, int64_t k) {
    float *restrict d = (float *) (q + k), *restrict ds = d + k / 32;
    int16_t *restrict s = (int16_t *) (ds + k / 32);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), one = _mm256_set1_epi8(1);
    for (int64_t b = 0; b < k / 32; b++, x += 32, q += 32) {
        const __m256 x0 = _mm256_loadu_ps(x), x1 = _mm256_loadu_ps(x + 8);
        const __m256 x2 = _mm256_loadu_ps(x + 16), x3 = _mm256_loadu_ps(x + 24);
        const float top = q8_top(x0, x1, x2, x3);
        const __m256 scale = _mm256_set1_ps(top > 0 ? 127.0f / top : 0);
        const __m256i low = _mm256_packs_epi32(q8_round(x0, scale), q8_round(x1, scale));
        const __m256i high = _mm256_packs_epi32(q8_round(x2, scale), q8_round(x3, scale));
        const __m256i v = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
        _mm256_storeu_si256((__m256i *) q, v);
        __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(one, v), _mm256_set1_epi16(1));
        sum = _mm256_hadd_epi32(sum, sum);
        sum = _mm256_hadd_epi32(sum, sum);
        const int s0 = _mm256_extract_epi32(sum, 0), s1 = _mm256_extract_epi32(sum, 4);
        d[b] = top / 127.0f;
        ds[b] = d[b] * (float) (s0 + s1);
        s[2 * b] = (int16_t) s0;
        s[2 * b + 1] = (int16_t) s1;
    }
    // gcc 12 takes a caller whose input is a local array for a function without effects, and drops the call; not with
    // this.
    __asm__ volatile("" : : : "memory");
}
