//@ needs half.h
// A few floats at a time, the same few operations for every instruction set; here with AVX-512.
// In, out: vf, LANES floats. Sums along lanes have one fixed order.
typedef __m512 vf;
enum { LANES = 16 };

static inline vf vf_set(float x) {
    return _mm512_set1_ps(x);
}

static inline vf vf_load(const float *p) {
    return _mm512_loadu_ps(p);
}

static inline void vf_store(float *p, vf v) {
    _mm512_storeu_ps(p, v);
}

// Values of the cache: f16 or f32 in memory.
static inline vf vf_load_f32(const uint8_t *p) {
    return _mm512_loadu_ps((const float *) p);
}

static inline vf vf_load_f16(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p));
}

static inline vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b) {
    return _mm512_max_ps(a, b);
}

static inline __m256 vf_half(vf v) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
}

static inline float vf_sum(vf v) {
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), vf_half(v));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

static inline float vf_top(vf v) {
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(v), vf_half(v));
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
