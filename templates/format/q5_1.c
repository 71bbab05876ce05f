// Q5_1: 32 weights as 5-bit integers q with a scale and a minimum: w = d q + m.
// Block: f16 d, f16 m, u32 of fifth bits (bit i is weight i's), 16 bytes of halves as in Q4_1.
// Packed, for each block of 16 rows: 16 f16 d, 16 f16 m, a line of fifth bits, 4 lines of halves.
//@ section decode
enum { q5_1_block = 32, q5_1_bytes = 24 };

static inline void q5_1_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b)), m = f16_to_f32(read_u16(b + 2));
    uint32_t high;
    memcpy(&high, b + 4, 4);
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float) ((b[8 + i] & 15) + (int) (high >> i & 1) * 16) + m;
        y[i + 16] = d * (float) ((b[8 + i] >> 4) + (int) (high >> (i + 16) & 1) * 16) + m;
    }
}

static inline void q5_1_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q5_1_block, w += q5_1_bytes, y += q5_1_block) q5_1_decode(w, y);
}
//@ end

//@ section layout
static inline size_t q5_1_panel_bytes(int64_t k) {
    return (size_t) (k / 32 * 384);
}
//@ end

//@ section packed
//@ needs q5_1.layout q5_1.decode panel.h
static inline void q5_1_packed_block(const uint8_t *restrict panel, int64_t b, int lane, float *restrict y) {
    const uint8_t *unit = panel + b * 384;
    const float d = f16_to_f32(read_u16(unit + 2 * lane)), m = f16_to_f32(read_u16(unit + 32 + 2 * lane));
    uint8_t q[32];
    line_halves(unit + 128, lane, q);
    line_fifth(unit + 64, lane, q);
    for (int i = 0; i < 32; i++) y[i] = d * (float) q[i] + m;
}

// One row of packed weights as f32.
static inline void q5_1_packed_row(const uint8_t *restrict w, int64_t k, int64_t row, float *restrict y) {
    w += (size_t) (row / 16) * q5_1_panel_bytes(k);
    for (int64_t b = 0; b < k / 32; b++) q5_1_packed_block(w, b, (int) (row % 16), y + 32 * b);
}
//@ end

//@ section pack
static void q5_1_pack(const uint8_t *const row[16], int64_t k, uint8_t *panel) {
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t *unit = panel + b * 384;
        for (int lane = 0; lane < 16; lane++) {
            if (!row[lane]) continue;
            const uint8_t *p = row[lane] + b * q5_1_bytes;
            uint8_t q[32];
            nibbles(p + 8, 16, q);
            fifth_bits(p + 4, q);
            memcpy(unit + 2 * lane, p, 2);
            memcpy(unit + 32 + 2 * lane, p + 2, 2);
            pack_fifth(q, lane, unit + 64);
            pack_halves(q, lane, unit + 128);
        }
    }
}
//@ end

#ifdef TUNED_AVX2
//@ section avx2
//@ needs tile.h q5_1.layout
enum { q5_1_terms = 4, q5_1_offset = 0, q5_1_minima = 1, q5_1_grouped = 0, q5_1_stream = 384 };

static inline const uint8_t *q5_1_lines(const uint8_t *panel, int b) {
    return panel + b * 384 + 64;
}

static inline __m256i q5_1_line(const uint8_t *lines, int j, int half) {
    return _mm256_or_si256(halves_at(lines + 64, j, half), fifth_at(lines, j, half));
}

static inline void q5_1_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b * 384;
    d[0] = half_scales(unit);
    d[1] = half_scales(unit + 16);
    m[0] = half_scales(unit + 32);
    m[1] = half_scales(unit + 48);
}

static inline __m256i q5_1_groups(const uint8_t *panel, int b, int half) {
    (void) panel, (void) b, (void) half;
    return _mm256_set1_epi16(1);
}
//@ end
#endif

#ifdef TUNED_AVX512
//@ section avx512
//@ needs tile.h q5_1.layout
enum { q5_1_offset = 0, q5_1_minima = 1, q5_1_grouped = 0, q5_1_stream = 384 };

static inline const uint8_t *q5_1_lines(const uint8_t *panel, int b) {
    return panel + b * 384 + 64;
}

static inline __m512i q5_1_line(const uint8_t *lines, int j) {
    return _mm512_or_si512(halves_at(lines + 64, j), fifth_at(lines, j));
}

static inline void q5_1_scales(const uint8_t *panel, int b, __m512 *restrict d, __m512 *restrict m) {
    d[0] = half_scales(panel + b * 384);
    m[0] = half_scales(panel + b * 384 + 32);
}
//@ end
#endif
