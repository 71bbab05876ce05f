// Q5_0: 32 weights as 5-bit integers q with one scale: w = d (q - 16).
// Block: f16 d, u32 of fifth bits (bit i is weight i's), 16 bytes of halves as in Q4_0.
// Packed, for each two blocks of 16 rows: 2 x 16 f16 d, then a line of fifth bits and 4 lines of halves a block.
//@ section decode
enum { q5_0_block = 32, q5_0_bytes = 22 };

static inline void q5_0_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b));
    uint32_t high;
    memcpy(&high, b + 2, 4);
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float) ((b[6 + i] & 15) + (int) (high >> i & 1) * 16 - 16);
        y[i + 16] = d * (float) ((b[6 + i] >> 4) + (int) (high >> (i + 16) & 1) * 16 - 16);
    }
}

static inline void q5_0_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q5_0_block, w += q5_0_bytes, y += q5_0_block) q5_0_decode(w, y);
}
//@ end

//@ section layout
static inline size_t q5_0_panel_bytes(int64_t k) {
    return (size_t) ((k + 63) / 64 * 64 + k / 32 * 320);
}
//@ end

//@ section packed
//@ needs q5_0.layout q5_0.decode panel.h
static inline void q5_0_packed_block(const uint8_t *restrict panel, int64_t b, int lane, float *restrict y) {
    const uint8_t *unit = panel + b / 2 * 704;
    const float d = f16_to_f32(read_u16(unit + b % 2 * 32 + 2 * lane));
    uint8_t q[32];
    line_halves(unit + 128 + b % 2 * 320, lane, q);
    line_fifth(unit + 64 + b % 2 * 320, lane, q);
    for (int i = 0; i < 32; i++) y[i] = d * (float) (q[i] - 16);
}

// One row of packed weights as f32.
static inline void q5_0_packed_row(const uint8_t *restrict w, int64_t k, int64_t row, float *restrict y) {
    w += (size_t) (row / 16) * q5_0_panel_bytes(k);
    for (int64_t b = 0; b < k / 32; b++) q5_0_packed_block(w, b, (int) (row % 16), y + 32 * b);
}
//@ end

//@ section pack
static void q5_0_pack(const uint8_t *const row[16], int64_t k, uint8_t *panel) {
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t *unit = panel + b / 2 * 704, *lines = unit + 64 + b % 2 * 320;
        for (int lane = 0; lane < 16; lane++) {
            if (!row[lane]) continue;
            const uint8_t *p = row[lane] + b * q5_0_bytes;
            uint8_t q[32];
            nibbles(p + 6, 16, q);
            fifth_bits(p + 2, q);
            memcpy(unit + b % 2 * 32 + 2 * lane, p, 2);
            pack_fifth(q, lane, lines);
            pack_halves(q, lane, lines + 64);
        }
    }
}
//@ end

#ifdef TUNED_AVX2
//@ section avx2
//@ needs tile.h q5_0.layout
enum { q5_0_terms = 4, q5_0_offset = 16, q5_0_minima = 0, q5_0_grouped = 0, q5_0_stream = 352 };

static inline const uint8_t *q5_0_lines(const uint8_t *panel, int b) {
    return panel + b / 2 * 704 + 64 + b % 2 * 320;
}

static inline __m256i q5_0_line(const uint8_t *lines, int j, int half) {
    return _mm256_or_si256(halves_at(lines + 64, j, half), fifth_at(lines, j, half));
}

static inline void q5_0_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b / 2 * 704 + b % 2 * 32;
    d[0] = half_scales(unit);
    d[1] = half_scales(unit + 16);
    (void) m;
}

static inline __m256i q5_0_groups(const uint8_t *panel, int b, int half) {
    (void) panel, (void) b, (void) half;
    return _mm256_set1_epi16(1);
}
//@ end
#endif

#ifdef TUNED_AVX512
//@ section avx512
//@ needs tile.h q5_0.layout
enum { q5_0_offset = 16, q5_0_minima = 0, q5_0_grouped = 0, q5_0_stream = 352 };

static inline const uint8_t *q5_0_lines(const uint8_t *panel, int b) {
    return panel + b / 2 * 704 + 64 + b % 2 * 320;
}

static inline __m512i q5_0_line(const uint8_t *lines, int j) {
    return _mm512_or_si512(halves_at(lines + 64, j), fifth_at(lines, j));
}

static inline void q5_0_scales(const uint8_t *panel, int b, __m512 *restrict d, __m512 *restrict m) {
    d[0] = half_scales(panel + b / 2 * 704 + b % 2 * 32);
    (void) m;
}
//@ end
#endif
