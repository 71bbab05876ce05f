// Q8_0: 32 weights as signed bytes q with one scale: w = d q.
// Block: f16 d, 32 bytes q.
// Packed, for each two blocks of 16 rows: 2 x 16 f16 d, then 8 lines of bytes a block.
//@ section decode
enum { q8_0_block = 32, q8_0_bytes = 34 };

static inline void q8_0_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b));
    for (int i = 0; i < 32; i++) y[i] = d * (float) (int8_t) b[2 + i];
}

static inline void q8_0_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q8_0_block, w += q8_0_bytes, y += q8_0_block) q8_0_decode(w, y);
}
//@ end

//@ section layout
static inline size_t q8_0_panel_bytes(int64_t k) {
    return (size_t) ((k + 63) / 64 * 64 + k / 32 * 512);
}
//@ end

//@ section packed
//@ needs q8_0.layout q8_0.decode panel.h
static inline void q8_0_packed_block(const uint8_t *restrict panel, int64_t b, int lane, float *restrict y) {
    const uint8_t *unit = panel + b / 2 * 1088;
    const float d = f16_to_f32(read_u16(unit + b % 2 * 32 + 2 * lane));
    uint8_t q[32];
    line_bytes(unit + 64 + b % 2 * 512, lane, q);
    for (int i = 0; i < 32; i++) y[i] = d * (float) (int8_t) q[i];
}

// One row of packed weights as f32.
static inline void q8_0_packed_row(const uint8_t *restrict w, int64_t k, int64_t row, float *restrict y) {
    w += (size_t) (row / 16) * q8_0_panel_bytes(k);
    for (int64_t b = 0; b < k / 32; b++) q8_0_packed_block(w, b, (int) (row % 16), y + 32 * b);
}
//@ end

//@ section pack
static void q8_0_pack(const uint8_t *const row[16], int64_t k, uint8_t *panel) {
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t *unit = panel + b / 2 * 1088;
        for (int lane = 0; lane < 16; lane++) {
            if (!row[lane]) continue;
            const uint8_t *p = row[lane] + b * q8_0_bytes;
            memcpy(unit + b % 2 * 32 + 2 * lane, p, 2);
            pack_bytes(p + 2, lane, unit + 64 + b % 2 * 512);
        }
    }
}
//@ end

#ifdef TUNED_AVX2
//@ section avx2
//@ needs tile.h q8_0.layout
enum { q8_0_terms = 1, q8_0_offset = 0, q8_0_minima = 0, q8_0_grouped = 0, q8_0_stream = 544 };

static inline const uint8_t *q8_0_lines(const uint8_t *panel, int b) {
    return panel + b / 2 * 1088 + 64 + b % 2 * 512;
}

static inline __m256i q8_0_line(const uint8_t *lines, int j, int half) {
    return load_line(lines + 64 * j + 32 * half);
}

static inline void q8_0_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b / 2 * 1088 + b % 2 * 32;
    d[0] = half_scales(unit);
    d[1] = half_scales(unit + 16);
    (void) m;
}

static inline __m256i q8_0_groups(const uint8_t *panel, int b, int half) {
    (void) panel, (void) b, (void) half;
    return _mm256_set1_epi16(1);
}
//@ end
#endif

#ifdef TUNED_AVX512
//@ section avx512
//@ needs tile.h q8_0.layout
enum { q8_0_offset = 128, q8_0_minima = 0, q8_0_grouped = 0, q8_0_stream = 544 };

static inline const uint8_t *q8_0_lines(const uint8_t *panel, int b) {
    return panel + b / 2 * 1088 + 64 + b % 2 * 512;
}

static inline __m512i q8_0_line(const uint8_t *lines, int j) {
    return _mm512_xor_si512(load_line(lines + 64 * j), _mm512_set1_epi8(-128));
}

static inline void q8_0_scales(const uint8_t *panel, int b, __m512 *restrict d, __m512 *restrict m) {
    d[0] = half_scales(panel + b / 2 * 1088 + b % 2 * 32);
    (void) m;
}
//@ end
#endif
