// The compiler's side of c/panel.h: writes the lines of a block, one lane at a time. The panel begins as zeros.
// In: q[32], the integers of one lane. Out: its bytes in the block's lines.

static inline void pack_halves(const uint8_t *q, int lane, uint8_t *line) {
    for (int i = 0; i < 16; i++)
        line[64 * (i / 4) + 4 * lane + i % 4] = (uint8_t) ((q[i] & 15) | (q[i + 16] & 15) << 4);
}

static inline void pack_fifth(const uint8_t *q, int lane, uint8_t *line) {
    for (int i = 0; i < 32; i++) line[4 * lane + i % 4] |= (uint8_t) ((q[i] >> 4 & 1) << (i / 4));
}

static inline void pack_upper(const uint8_t *q, int lane, uint8_t *line) {
    for (int i = 0; i < 32; i++)
        line[i / 16 * 64 + 4 * lane + i % 4] |= (uint8_t) ((q[i] >> 4 & 3) << (i % 16 / 4 * 2));
}

static inline void pack_bytes(const uint8_t *q, int lane, uint8_t *line) {
    for (int i = 0; i < 32; i++) line[64 * (i / 4) + 4 * lane + i % 4] = q[i];
}

// The halves of n bytes: low ones first, then the high ones.
static inline void nibbles(const uint8_t *p, int n, uint8_t *q) {
    for (int i = 0; i < n; i++) {
        q[i] = p[i] & 15;
        q[i + n] = p[i] >> 4;
    }
}

static inline void fifth_bits(const uint8_t *p, uint8_t *q) {
    for (int i = 0; i < 32; i++) q[i] = (uint8_t) (q[i] | (p[i / 8] >> (i % 8) & 1) << 4);
}
