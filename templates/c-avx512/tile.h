//@ needs half.h
// Lines of packed panels (c/panel.h says how integers lie in them) as vectors of bytes: 16 lanes of 4 weights.
// In: the lines of a block of 32 weights, j the line 0..7 wanted. Out: integers from 0.

// Fetches what a stream will read 2 KB further on: memory answers late, and the machine's own guesses are not always
// enough.
static inline __attribute__((always_inline)) void fetch_ahead(const uint8_t *p, const int bytes) {
#pragma GCC unroll 9
    for (int i = 0; i < bytes; i += 64) _mm_prefetch((const char *) p + 2048 + i, _MM_HINT_T0);
}

static inline __m512i load_line(const uint8_t *p) {
    return _mm512_load_si512((const void *) p);
}

// Lines of halves: weights 0..15 are the low ones.
static inline __m512i halves_at(const uint8_t *lines, int j) {
    const __m512i v = load_line(lines + j % 4 * 64);
    return _mm512_and_si512(j < 4 ? v : _mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}

// Fifth bits, at their place.
static inline __m512i fifth_at(const uint8_t *line, int j) {
    const __m512i v = load_line(line);
    const __m512i at = j < 4 ? _mm512_slli_epi16(v, (unsigned) (4 - j)) : _mm512_srli_epi16(v, (unsigned) (j - 4));
    return _mm512_and_si512(at, _mm512_set1_epi8(16));
}

// Bits 4 and 5, at their place.
static inline __m512i upper_at(const uint8_t *lines, int j) {
    const __m512i v = load_line(lines + j / 4 * 64);
    const int n = j % 4 * 2;
    const __m512i at = n < 4 ? _mm512_slli_epi16(v, (unsigned) (4 - n)) : _mm512_srli_epi16(v, (unsigned) (n - 4));
    return _mm512_and_si512(at, _mm512_set1_epi8(48));
}

// Sixteen f16 as floats.
static inline __m512 half_scales(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *) p));
}

// Scale or minimum number g (0..7) of Q4_K and Q5_K: its low half from a line of such, its upper two bits from the
// line of upper bits, at bit `top` of each byte.
static inline __m512 six_bits(const uint8_t *low, const uint8_t *upper, int g, int top) {
    const __m512i l = _mm512_srl_epi32(load_line(low), _mm_cvtsi32_si128(g % 4 * 8 + g / 4 * 4));
    const __m512i u = _mm512_srl_epi32(load_line(upper), _mm_cvtsi32_si128(g % 4 * 8 + g / 4 * 2 + top));
    return _mm512_cvtepi32_ps(_mm512_or_si512(
        _mm512_and_si512(l, _mm512_set1_epi32(15)), _mm512_slli_epi32(_mm512_and_si512(u, _mm512_set1_epi32(3)), 4)));
}

// Four bytes of a row of activations, in every lane.
static inline __m512i four_bytes(const uint8_t *p) {
    int32_t v;
    memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}

static inline __m512 one_float(const uint8_t *p) {
    return _mm512_set1_ps(float_at(p));
}
