//@ needs half.h
// Lines of packed panels (c/panel.h says how integers lie in them) as vectors of bytes: 8 lanes of 4 weights.
// In: the lines of a block of 32 weights, j the line 0..7 wanted, half: lanes 0..7 or 8..15. Out: integers from 0.
// Makes the compiler have this value in a register here. Without it gcc moves all products of a loop before all sums,
// and spills what does not fit.
static inline __m256i here(__m256i v) {
    __asm__ volatile("" : "+x"(v));
    return v;
}

// Fetches what a stream will read 2 KB further on: the memory here answers late, and its own guesses are not enough.
static inline __attribute__((always_inline)) void fetch_ahead(const uint8_t *p, const int bytes) {
#pragma GCC unroll 9
    for (int i = 0; i < bytes; i += 64) _mm_prefetch((const char *) p + 2048 + i, _MM_HINT_T0);
}

static inline __m256i load_line(const uint8_t *p) {
    return _mm256_load_si256((const __m256i *) p);
}

// Lines of halves: weights 0..15 are the low ones.
static inline __m256i halves_at(const uint8_t *lines, int j, int half) {
    const __m256i v = load_line(lines + j % 4 * 64 + half * 32);
    return _mm256_and_si256(j < 4 ? v : _mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
}

// Fifth bits, at their place.
static inline __m256i fifth_at(const uint8_t *line, int j, int half) {
    const __m256i v = load_line(line + half * 32);
    return _mm256_and_si256(j < 4 ? _mm256_slli_epi16(v, 4 - j) : _mm256_srli_epi16(v, j - 4), _mm256_set1_epi8(16));
}

// Bits 4 and 5, at their place.
static inline __m256i upper_at(const uint8_t *lines, int j, int half) {
    const __m256i v = load_line(lines + j / 4 * 64 + half * 32);
    const int at = j % 4 * 2;
    return _mm256_and_si256(at < 4 ? _mm256_slli_epi16(v, 4 - at) : _mm256_srli_epi16(v, at - 4), _mm256_set1_epi8(48));
}

// Eight f16 as floats.
static inline __m256 half_scales(const uint8_t *p) {
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *) p));
}

// Scale or minimum number g (0..7) of Q4_K and Q5_K for eight lanes: its low half from a line of such, its upper two
// bits from the line of upper bits, at bit `top` of each byte.
static inline __m256 six_bits(const uint8_t *low, const uint8_t *upper, int g, int top) {
    const __m256i l = _mm256_srl_epi32(load_line(low), _mm_cvtsi32_si128(g % 4 * 8 + g / 4 * 4));
    const __m256i u = _mm256_srl_epi32(load_line(upper), _mm_cvtsi32_si128(g % 4 * 8 + g / 4 * 2 + top));
    const __m256i v = _mm256_or_si256(
        _mm256_and_si256(l, _mm256_set1_epi32(15)), _mm256_slli_epi32(_mm256_and_si256(u, _mm256_set1_epi32(3)), 4));
    return _mm256_cvtepi32_ps(v);
}

// Four bytes of a row of activations, in every lane.
static inline __m256i four_bytes(const uint8_t *p) {
    int32_t v;
    memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
}

// int16 pairs: the first or the second of each pair, twice.
static inline __m256i first_of_pair(__m256i v) {
    return _mm256_blend_epi16(v, _mm256_slli_epi32(v, 16), 0xaa);
}

static inline __m256i second_of_pair(__m256i v) {
    return _mm256_blend_epi16(_mm256_srli_epi32(v, 16), v, 0xaa);
}
