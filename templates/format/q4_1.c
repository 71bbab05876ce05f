// Q4_1: 32 weights as 4-bit integers q with a scale and a minimum: w = d q + m.
// Block: f16 d, f16 m, 16 bytes whose low halves are weights 0..15 and high halves 16..31.
// Packed, for each block of 16 rows: 16 f16 d, 16 f16 m, 4 lines of halves.
//@ section decode
enum { q4_1_block = 32, q4_1_bytes = 20 };

static inline void q4_1_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b)), m = f16_to_f32(read_u16(b + 2));
    for (int i = 0; i < 16; i++) {
        y[i] = d * (float) (b[4 + i] & 15) + m;
        y[i + 16] = d * (float) (b[4 + i] >> 4) + m;
    }
}

static inline void q4_1_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q4_1_block, w += q4_1_bytes, y += q4_1_block) q4_1_decode(w, y);
}
//@ end

//@ section layout
static inline size_t q4_1_panel_bytes(int64_t k) {
    return (size_t) (k / 32 * 320);
}
//@ end

//@ section packed
//@ needs q4_1.layout q4_1.decode panel.h
static inline void q4_1_packed_block(const uint8_t *restrict panel, int64_t b, int lane, float *restrict y) {
    const uint8_t *unit = panel + b * 320;
    const float d = f16_to_f32(read_u16(unit + 2 * lane)), m = f16_to_f32(read_u16(unit + 32 + 2 * lane));
    uint8_t q[32];
    line_halves(unit + 64, lane, q);
    for (int i = 0; i < 32; i++) y[i] = d * (float) q[i] + m;
}

// One row of packed weights as f32.
static inline void q4_1_packed_row(const uint8_t *restrict w, int64_t k, int64_t row, float *restrict y) {
    w += (size_t) (row / 16) * q4_1_panel_bytes(k);
    for (int64_t b = 0; b < k / 32; b++) q4_1_packed_block(w, b, (int) (row % 16), y + 32 * b);
}
//@ end

//@ section pack
static void q4_1_pack(const uint8_t *const row[16], int64_t k, uint8_t *panel) {
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t *unit = panel + b * 320;
        for (int lane = 0; lane < 16; lane++) {
            if (!row[lane]) continue;
            const uint8_t *p = row[lane] + b * q4_1_bytes;
            uint8_t q[32];
            nibbles(p + 4, 16, q);
            memcpy(unit + 2 * lane, p, 2);
            memcpy(unit + 32 + 2 * lane, p + 2, 2);
            pack_halves(q, lane, unit + 64);
        }
    }
}
//@ end

#ifdef TUNED_AVX2
//@ section avx2
//@ needs tile.h q4_1.layout
enum { q4_1_terms = 8, q4_1_offset = 0, q4_1_minima = 1, q4_1_grouped = 0, q4_1_stream = 320 };

static inline const uint8_t *q4_1_lines(const uint8_t *panel, int b) {
    return panel + b * 320 + 64;
}

static inline __m256i q4_1_line(const uint8_t *lines, int j, int half) {
    return halves_at(lines, j, half);
}

static inline void q4_1_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b * 320;
    d[0] = half_scales(unit);
    d[1] = half_scales(unit + 16);
    m[0] = half_scales(unit + 32);
    m[1] = half_scales(unit + 48);
}

static inline __m256i q4_1_groups(const uint8_t *panel, int b, int half) {
    (void) panel, (void) b, (void) half;
    return _mm256_set1_epi16(1);
}
//@ end
#endif

#ifdef TUNED_AVX512
//@ section avx512
//@ needs tile.h q4_1.layout
enum { q4_1_offset = 0, q4_1_minima = 1, q4_1_grouped = 0, q4_1_stream = 320 };

static inline const uint8_t *q4_1_lines(const uint8_t *panel, int b) {
    return panel + b * 320 + 64;
}

static inline __m512i q4_1_line(const uint8_t *lines, int j) {
    return halves_at(lines, j);
}

static inline void q4_1_scales(const uint8_t *panel, int b, __m512 *restrict d, __m512 *restrict m) {
    d[0] = half_scales(panel + b * 320);
    m[0] = half_scales(panel + b * 320 + 32);
}
//@ end
#endif
