// Q4_K: 256 weights as 4-bit integers q, in groups of 32 with 6-bit scale s and minimum t: w = d s q - e t.
// Block: f16 d, f16 e, 12 bytes of scales and minima, 128 bytes: each 32 hold a group in the low halves, the next in
// the high.
// Packed, for each block of 16 rows: 4 lines of metadata, then 4 lines of halves a group.
//@ section decode
enum { q4_k_block = 256, q4_k_bytes = 144 };

// Scale and minimum j of the eight that share 12 bytes: the first four in six bits of their own, the others in
// halves of the last four bytes and the spare bits of the first eight.
static inline int q4_k_scale(const uint8_t *s, int j) {
    return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
}

static inline int q4_k_min(const uint8_t *s, int j) {
    return j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
}

static inline void q4_k_decode(const uint8_t *restrict b, float *restrict y) {
    const float d = f16_to_f32(read_u16(b)), e = f16_to_f32(read_u16(b + 2));
    for (int g = 0; g < 8; g++) {
        const uint8_t *q = b + 16 + g / 2 * 32;
        const float s = d * (float) q4_k_scale(b + 4, g), t = e * (float) q4_k_min(b + 4, g);
        for (int i = 0; i < 32; i++) y[32 * g + i] = s * (float) (q[i] >> (g % 2 * 4) & 15) - t;
    }
}

static inline void q4_k_row(const uint8_t *restrict w, float *restrict y, int64_t n) {
    for (; n > 0; n -= q4_k_block, w += q4_k_bytes, y += q4_k_block) q4_k_decode(w, y);
}
//@ end

//@ section layout
static inline size_t q4_k_panel_bytes(int64_t k) {
    return (size_t) (k / 256 * 2304);
}
//@ end

//@ section packed
//@ needs q4_k.layout q4_k.decode panel.h
// The superblock's metadata are four lines: d and e; low halves of scale j and j + 4 in byte j of a lane; the same of
// the minima; their upper bits, scale j, j + 4, minimum j, j + 4 from the low bits up.
static inline void q4_k_packed_block(const uint8_t *restrict panel, int64_t b, int lane, float *restrict y) {
    const uint8_t *unit = panel + b / 8 * 2304, *lines = unit + 256 + b % 8 * 256;
    const int j = (int) (b % 4), up = (int) (b / 4 % 2), at = 4 * lane + j;
    const int s = (unit[64 + at] >> (4 * up) & 15) | (unit[192 + at] >> (2 * up) & 3) << 4;
    const int t = (unit[128 + at] >> (4 * up) & 15) | (unit[192 + at] >> (2 * up + 4) & 3) << 4;
    const float d = f16_to_f32(read_u16(unit + 2 * lane)) * (float) s;
    const float m = f16_to_f32(read_u16(unit + 32 + 2 * lane)) * (float) t;
    uint8_t q[32];
    line_halves(lines, lane, q);
    for (int i = 0; i < 32; i++) y[i] = d * (float) q[i] - m;
}

// One row of packed weights as f32.
static inline void q4_k_packed_row(const uint8_t *restrict w, int64_t k, int64_t row, float *restrict y) {
    w += (size_t) (row / 16) * q4_k_panel_bytes(k);
    for (int64_t b = 0; b < k / 32; b++) q4_k_packed_block(w, b, (int) (row % 16), y + 32 * b);
}
//@ end

//@ section pack
static void q4_k_pack_scales(const uint8_t *p, int lane, uint8_t *unit) {
    memcpy(unit + 2 * lane, p, 2);
    memcpy(unit + 32 + 2 * lane, p + 2, 2);
    for (int j = 0; j < 4; j++) {
        const int s0 = q4_k_scale(p + 4, j), s1 = q4_k_scale(p + 4, j + 4);
        const int t0 = q4_k_min(p + 4, j), t1 = q4_k_min(p + 4, j + 4);
        unit[64 + 4 * lane + j] = (uint8_t) ((s0 & 15) | (s1 & 15) << 4);
        unit[128 + 4 * lane + j] = (uint8_t) ((t0 & 15) | (t1 & 15) << 4);
        unit[192 + 4 * lane + j] = (uint8_t) (s0 >> 4 | s1 >> 4 << 2 | t0 >> 4 << 4 | t1 >> 4 << 6);
    }
}

static void q4_k_pack(const uint8_t *const row[16], int64_t k, uint8_t *panel) {
    for (int64_t u = 0; u < k / 256; u++)
        for (int lane = 0; lane < 16; lane++) {
            if (!row[lane]) continue;
            const uint8_t *p = row[lane] + u * q4_k_bytes;
            uint8_t *unit = panel + u * 2304;
            q4_k_pack_scales(p, lane, unit);
            for (int b = 0; b < 8; b++) {
                uint8_t q[32];
                for (int i = 0; i < 32; i++) q[i] = p[16 + b / 2 * 32 + i] >> (b % 2 * 4) & 15;
                pack_halves(q, lane, unit + 256 + b * 256);
            }
        }
}
//@ end

#ifdef TUNED_AVX2
//@ section avx2
//@ needs tile.h q4_k.layout
enum { q4_k_terms = 8, q4_k_offset = 0, q4_k_minima = 1, q4_k_grouped = 0, q4_k_stream = 288 };

static inline const uint8_t *q4_k_lines(const uint8_t *panel, int b) {
    return panel + b / 8 * 2304 + 256 + b % 8 * 256;
}

static inline __m256i q4_k_line(const uint8_t *lines, int j, int half) {
    return halves_at(lines, j, half);
}

static inline void q4_k_scales(const uint8_t *panel, int b, __m256 *restrict d, __m256 *restrict m) {
    const uint8_t *unit = panel + b / 8 * 2304;
    for (int h = 0; h < 2; h++) {
        const uint8_t *at = unit + 32 * h;
        d[h] = _mm256_mul_ps(half_scales(unit + 16 * h), six_bits(at + 64, at + 192, b % 8, 0));
        m[h] = _mm256_mul_ps(half_scales(unit + 32 + 16 * h), six_bits(at + 128, at + 192, b % 8, 4));
        m[h] = _mm256_xor_ps(m[h], _mm256_set1_ps(-0.0f));
    }
}

static inline __m256i q4_k_groups(const uint8_t *panel, int b, int half) {
    (void) panel, (void) b, (void) half;
    return _mm256_set1_epi16(1);
}
//@ end
#endif

#ifdef TUNED_AVX512
//@ section avx512
//@ needs tile.h q4_k.layout
enum { q4_k_offset = 0, q4_k_minima = 1, q4_k_grouped = 0, q4_k_stream = 288 };

static inline const uint8_t *q4_k_lines(const uint8_t *panel, int b) {
    return panel + b / 8 * 2304 + 256 + b % 8 * 256;
}

static inline __m512i q4_k_line(const uint8_t *lines, int j) {
    return halves_at(lines, j);
}

static inline void q4_k_scales(const uint8_t *panel, int b, __m512 *restrict d, __m512 *restrict m) {
    const uint8_t *unit = panel + b / 8 * 2304;
    d[0] = _mm512_mul_ps(half_scales(unit), six_bits(unit + 64, unit + 192, b % 8, 0));
    m[0] = _mm512_mul_ps(half_scales(unit + 32), six_bits(unit + 128, unit + 192, b % 8, 4));
    m[0] = _mm512_sub_ps(_mm512_setzero_ps(), m[0]);
}
//@ end
#endif
