// Q6_K: 256 weights as 6-bit integers q, in groups of 16 with a signed byte as scale s: w = d s (q - 32).
// Block: 128 bytes of low halves, 64 bytes of upper two bits, 16 bytes s, f16 d. Each half of the block: byte l of 64
// holds weight l low and l + 64 high; byte l of 32 the upper bits of l, l + 32, l + 64, l + 96, from the low bits up.
// Packed, for each two blocks of 16 rows: 2 x 16 f16 d, then for each 64 weights a line of 4 scales a lane and, for
// each 32, four lines of halves and two of upper bits.
//@ section decode
enum { q6_k_block = 256, q6_k_bytes = 210 };

// Weight i of the block as an integer 0..63.
static inline int q6_k_at(const uint8_t *b, int i) {
    const int half = i / 128, l = i % 128;
    const int low = b[64 * half + l % 64] >> (l / 64 * 4) & 15;
    return low | (b[128 + 32 * half + l % 32] >> (l / 32 * 2) & 3) << 4;
}

static inline void q6_k_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b + 208));
    for (int g = 0; g < 16; g++) {
        const float s = d * (float) (int8_t) b[192 + g];
        for (int i = 0; i < 16; i++) y[16 * g + i] = s * (float) (q6_k_at(b, 16 * g + i) - 32);
    }
}

static inline void q6_k_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q6_k_block, w += q6_k_bytes, y += q6_k_block) q6_k_decode(w, y);
}
//@ end

//@ section layout
static inline size_t q6_k_panel_bytes(int64_t k) {
    return (size_t) ((k / 256 + 1) / 2 * 64 + k / 256 * 3328);
}
//@ end

//@ section packed
//@ needs q6_k.layout q6_k.decode panel.h
// Where block b of 32 weights has its d, its scales and its lines.
static inline const uint8_t *q6_k_unit(const uint8_t *panel, int64_t b) {
    return panel + b / 16 * 6720;
}

static inline void q6_k_packed_block(const uint8_t *restrict panel, int64_t b, int lane, float *restrict y) {
    const uint8_t *unit = q6_k_unit(panel, b), *scale = unit + 64 + b % 16 / 2 * 832;
    const uint8_t *lines = scale + 64 + b % 2 * 384;
    const float d = f16_to_f32(read_u16(unit + b % 16 / 8 * 32 + 2 * lane));
    uint8_t q[32];
    line_halves(lines, lane, q);
    line_upper(lines + 256, lane, q);
    for (int g = 0; g < 2; g++) {
        const float s = d * (float) (int8_t) scale[4 * lane + b % 2 * 2 + g];
        for (int i = 0; i < 16; i++) y[16 * g + i] = s * (float) (q[16 * g + i] - 32);
    }
}

// One row of packed weights as f32.
static inline void q6_k_packed_row(const uint8_t *restrict w, int64_t k, int64_t row, float *restrict y) {
    w += (size_t) (row / 16) * q6_k_panel_bytes(k);
    for (int64_t b = 0; b < k / 32; b++) q6_k_packed_block(w, b, (int) (row % 16), y + 32 * b);
}
//@ end

//@ section pack
static void q6_k_pack(const uint8_t *const row[16], int64_t k, uint8_t *panel) {
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t *unit = panel + b / 16 * 6720, *scale = unit + 64 + b % 16 / 2 * 832;
        uint8_t *lines = scale + 64 + b % 2 * 384;
        for (int lane = 0; lane < 16; lane++) {
            if (!row[lane]) continue;
            const uint8_t *p = row[lane] + b / 8 * q6_k_bytes;
            uint8_t q[32];
            for (int i = 0; i < 32; i++) q[i] = (uint8_t) q6_k_at(p, (int) (b % 8) * 32 + i);
            memcpy(unit + b % 16 / 8 * 32 + 2 * lane, p + 208, 2);
            memcpy(scale + 4 * lane + b % 2 * 2, p + 192 + b % 8 * 2, 2);
            pack_halves(q, lane, lines);
            pack_upper(q, lane, lines + 256);
        }
    }
}
//@ end

#ifdef TUNED_AVX2
//@ section avx2
//@ needs tile.h q6_k.layout
enum { q6_k_terms = 2, q6_k_offset = 32, q6_k_minima = 0, q6_k_grouped = 1, q6_k_stream = 420 };

static inline const uint8_t *q6_k_lines(const uint8_t *panel, int b) {
    return panel + b / 16 * 6720 + 128 + b % 16 / 2 * 832 + b % 2 * 384;
}

static inline __m256i q6_k_line(const uint8_t *lines, int j, int half) {
    return _mm256_or_si256(halves_at(lines, j, half), upper_at(lines + 256, j, half));
}

static inline void q6_k_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b / 16 * 6720 + b % 16 / 8 * 32;
    d[0] = half_scales(unit);
    d[1] = half_scales(unit + 16);
    (void) m;
}

// The two scales of each of eight lanes as int16, side by side: of weights 0..15 and 16..31.
static inline __m256i q6_k_groups(const uint8_t *panel, int b, int half) {
    const __m256i v = load_line(panel + b / 16 * 6720 + 64 + b % 16 / 2 * 832 + half * 32);
    const __m256i pair = _mm256_srl_epi32(v, _mm_cvtsi32_si128(b % 2 * 16)); // in the low 16 bits
    const __m256i first = _mm256_srai_epi32(_mm256_slli_epi32(pair, 24), 24);
    return _mm256_blend_epi16(first, _mm256_slli_epi32(_mm256_srai_epi32(_mm256_slli_epi32(pair, 16), 24), 16), 0xaa);
}
//@ end
#endif

#ifdef TUNED_AVX512
//@ section avx512
//@ needs tile.h q6_k.layout
enum { q6_k_offset = 32, q6_k_minima = 0, q6_k_grouped = 1, q6_k_stream = 420 };

static inline const uint8_t *q6_k_lines(const uint8_t *panel, int b) {
    return panel + b / 16 * 6720 + 128 + b % 16 / 2 * 832 + b % 2 * 384;
}

static inline __m512i q6_k_line(const uint8_t *lines, int j) {
    return _mm512_or_si512(halves_at(lines, j), upper_at(lines + 256, j));
}

static inline void q6_k_scales(const uint8_t *panel, int b, __m512 *restrict d, __m512 *restrict m) {
    // The scales of weights 0..15 and 16..31 are signed bytes side by side.
    const __m512 both = half_scales(panel + b / 16 * 6720 + b % 16 / 8 * 32);
    const __m512i v = load_line(panel + b / 16 * 6720 + 64 + b % 16 / 2 * 832);
    const __m512i pair = _mm512_srl_epi32(v, _mm_cvtsi32_si128(b % 2 * 16));
    d[0] = _mm512_mul_ps(both, _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(pair, 24), 24)));
    d[1] = _mm512_mul_ps(both, _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(pair, 16), 24)));
    (void) m;
}
//@ end
#endif
