// MXFP4: 32 weights as 4-bit floats (a sign, two bits of exponent, one of mantissa) with a power of two as scale:
// w = 2^(e - 128) value[q], the values doubled so that they are integers.
// Block: e, 16 bytes of halves as in Q4_0.
// Packed, for each four blocks of 16 rows: 4 x 16 e, then 4 lines of halves a block.
//@ section decode
enum { mxfp4_block = 32, mxfp4_bytes = 17 };

static const int8_t mxfp4_value[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128): below 2 a number without the leading one, whose bits are those of the mantissa.
static inline float mxfp4_scale(uint8_t e) {
    return float_of_bits(e < 2 ? (uint32_t) 0x200000 << e : (uint32_t) (e - 1) << 23);
}

static inline void mxfp4_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = mxfp4_scale(b[0]);
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float) mxfp4_value[b[1 + i] & 15];
        y[i + 16] = d * (float) mxfp4_value[b[1 + i] >> 4];
    }
}

static inline void mxfp4_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= mxfp4_block, w += mxfp4_bytes, y += mxfp4_block) mxfp4_decode(w, y);
}
//@ end

//@ section layout
static inline size_t mxfp4_panel_bytes(int64_t k) {
    return (size_t) ((k + 127) / 128 * 64 + k / 32 * 256);
}
//@ end

//@ section packed
//@ needs mxfp4.layout mxfp4.decode panel.h
static inline void mxfp4_packed_block(const uint8_t *restrict panel, int64_t b, int lane, float *restrict y) {
    const uint8_t *unit = panel + b / 4 * 1088;
    const float d = mxfp4_scale(unit[b % 4 * 16 + lane]);
    uint8_t q[32];
    line_halves(unit + 64 + b % 4 * 256, lane, q);
    for (int i = 0; i < 32; i++) y[i] = d * (float) mxfp4_value[q[i]];
}

// One row of packed weights as f32.
static inline void mxfp4_packed_row(const uint8_t *restrict w, int64_t k, int64_t row, float *restrict y) {
    w += (size_t) (row / 16) * mxfp4_panel_bytes(k);
    for (int64_t b = 0; b < k / 32; b++) mxfp4_packed_block(w, b, (int) (row % 16), y + 32 * b);
}
//@ end

//@ section pack
static void mxfp4_pack(const uint8_t *const row[16], int64_t k, uint8_t *panel) {
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t *unit = panel + b / 4 * 1088;
        for (int lane = 0; lane < 16; lane++) {
            if (!row[lane]) continue;
            const uint8_t *p = row[lane] + b * mxfp4_bytes;
            uint8_t q[32];
            nibbles(p + 1, 16, q);
            unit[b % 4 * 16 + lane] = p[0];
            pack_halves(q, lane, unit + 64 + b % 4 * 256);
        }
    }
}
//@ end

#ifdef TUNED_AVX2
//@ section avx2
//@ needs tile.h mxfp4.layout
// Values and 12, so that they are unsigned: at most 24, and four sums of two products fit (4 * 2 * 24 * 127 = 24384).
enum { mxfp4_terms = 4, mxfp4_offset = 12, mxfp4_minima = 0, mxfp4_grouped = 0, mxfp4_stream = 272 };

static inline const uint8_t *mxfp4_lines(const uint8_t *panel, int b) {
    return panel + b / 4 * 1088 + 64 + b % 4 * 256;
}

static inline __m256i mxfp4_line(const uint8_t *lines, int j, int half) {
    const __m128i value = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(value), halves_at(lines, j, half));
}

static inline __m256 mxfp4_powers(const uint8_t *p) {
    const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *) p));
    const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    const __m256i usual = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(usual, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

static inline void mxfp4_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b / 4 * 1088 + b % 4 * 16;
    d[0] = mxfp4_powers(unit);
    d[1] = mxfp4_powers(unit + 8);
    (void) m;
}

static inline __m256i mxfp4_groups(const uint8_t *panel, int b, int half) {
    (void) panel, (void) b, (void) half;
    return _mm256_set1_epi16(1);
}
//@ end
#endif

#ifdef TUNED_AVX512
//@ section avx512
//@ needs tile.h mxfp4.layout
// Values and 12, so that they are unsigned.
enum { mxfp4_offset = 12, mxfp4_minima = 0, mxfp4_grouped = 0, mxfp4_stream = 272 };

static inline const uint8_t *mxfp4_lines(const uint8_t *panel, int b) {
    return panel + b / 4 * 1088 + 64 + b % 4 * 256;
}

static inline __m512i mxfp4_line(const uint8_t *lines, int j) {
    const __m128i value = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(value), halves_at(lines, j));
}

static inline void mxfp4_scales(const uint8_t *panel, int b, __m512 *restrict d, __m512 *restrict m) {
    const uint8_t *unit = panel + b / 4 * 1088 + b % 4 * 16;
    const __m512i e = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *) unit));
    const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
    const __m512i usual = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __mmask16 small = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(2), e);
    d[0] = _mm512_castsi512_ps(_mm512_mask_blend_epi32(small, usual, tiny));
    (void) m;
}
//@ end
#endif
