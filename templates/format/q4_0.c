// Q4_0: 32 weights as 4-bit integers q with one scale: w = d (q - 8).
// Block: f16 d, 16 bytes whose low halves are weights 0..15 and high halves 16..31.
// Packed, for each two blocks of 16 rows: 2 x 16 f16 d, then 4 lines of halves a block.
//@ section decode
enum { q4_0_block = 32, q4_0_bytes = 18 };

static inline void q4_0_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b));
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float) ((b[2 + i] & 15) - 8);
        y[i + 16] = d * (float) ((b[2 + i] >> 4) - 8);
    }
}

static inline void q4_0_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q4_0_block, w += q4_0_bytes, y += q4_0_block) q4_0_decode(w, y);
}
//@ end

//@ section layout
static inline size_t q4_0_panel_bytes(int64_t k) {
    return (size_t) ((k + 63) / 64 * 64 + k / 32 * 256);
}
//@ end

//@ section packed
//@ needs q4_0.layout q4_0.decode panel.h
static inline void q4_0_packed_block(const uint8_t *restrict panel, int64_t b, int lane, float *restrict y) {
    const uint8_t *unit = panel + b / 2 * 576;
    const float d = f16_to_f32(read_u16(unit + b % 2 * 32 + 2 * lane));
    uint8_t q[32];
    line_halves(unit + 64 + b % 2 * 256, lane, q);
    for (int i = 0; i < 32; i++) y[i] = d * (float) (q[i] - 8);
}

// One row of packed weights as f32.
static inline void q4_0_packed_row(const uint8_t *restrict w, int64_t k, int64_t row, float *restrict y) {
    w += (size_t) (row / 16) * q4_0_panel_bytes(k);
    for (int64_t b = 0; b < k / 32; b++) q4_0_packed_block(w, b, (int) (row % 16), y + 32 * b);
}
//@ end

//@ section pack
static void q4_0_pack(const uint8_t *const row[16], int64_t k, uint8_t *panel) {
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t *unit = panel + b / 2 * 576;
        for (int lane = 0; lane < 16; lane++) {
            if (!row[lane]) continue;
            const uint8_t *p = row[lane] + b * q4_0_bytes;
            uint8_t q[32];
            nibbles(p + 2, 16, q);
            memcpy(unit + b % 2 * 32 + 2 * lane, p, 2);
            pack_halves(q, lane, unit + 64 + b % 2 * 256);
        }
    }
}
//@ end

#ifdef TUNED_AVX2
//@ section avx2
//@ needs tile.h q4_0.layout
enum { q4_0_terms = 8, q4_0_offset = 8, q4_0_minima = 0, q4_0_grouped = 0, q4_0_stream = 288 };

static inline const uint8_t *q4_0_lines(const uint8_t *panel, int b) {
    return panel + b / 2 * 576 + 64 + b % 2 * 256;
}

static inline __m256i q4_0_line(const uint8_t *lines, int j, int half) {
    return halves_at(lines, j, half);
}

static inline void q4_0_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b / 2 * 576 + b % 2 * 32;
    d[0] = half_scales(unit);
    d[1] = half_scales(unit + 16);
    (void) m;
}

static inline __m256i q4_0_groups(const uint8_t *panel, int b, int half) {
    (void) panel, (void) b, (void) half;
    return _mm256_set1_epi16(1);
}
//@ end
#endif

#ifdef TUNED_AVX512
//@ section avx512
//@ needs tile.h q4_0.layout
enum { q4_0_offset = 8, q4_0_minima = 0, q4_0_grouped = 0, q4_0_stream = 288 };

static inline const uint8_t *q4_0_lines(const uint8_t *panel, int b) {
    return panel + b / 2 * 576 + 64 + b % 2 * 256;
}

static inline __m512i q4_0_line(const uint8_t *lines, int j) {
    return halves_at(lines, j);
}

static inline void q4_0_scales(const uint8_t *panel, int b, __m512 *restrict d, __m512 *restrict m) {
    d[0] = half_scales(panel + b / 2 * 576 + b % 2 * 32);
    (void) m;
}
//@ end
#endif
