// How integers lie in a packed panel. A panel is 16 rows of weights (lanes); a line is 64 bytes, four consecutive
// weights of each lane; a block is 32 weights of each lane. These read a block of one lane back.
// In: the block's lines. Out: q[32], integers without their offset.

// Four lines; byte i of line j: weight 4 j + i in the low half, 16 + 4 j + i in the high half.
static inline void line_halves(const uint8_t *line, int lane, uint8_t *q) {
    for (int i = 0; i < 16; i++) {
        const uint8_t v = line[64 * (i / 4) + 4 * lane + i % 4];
        q[i] = v & 15;
        q[i + 16] = v >> 4;
    }
}

// One line; bit j of byte i: the fifth bit of weight 4 j + i.
static inline void line_fifth(const uint8_t *line, int lane, uint8_t *q) {
    for (int i = 0; i < 32; i++) q[i] = (uint8_t) (q[i] | (line[4 * lane + i % 4] >> (i / 4) & 1) << 4);
}

// Two lines; bits 2 j of byte i of line h: bits 4 and 5 of weight 16 h + 4 j + i.
static inline void line_upper(const uint8_t *line, int lane, uint8_t *q) {
    for (int i = 0; i < 32; i++)
        q[i] = (uint8_t) (q[i] | (line[i / 16 * 64 + 4 * lane + i % 4] >> (i % 16 / 4 * 2) & 3) << 4);
}

// Eight lines; byte i of line j: weight 4 j + i.
static inline void line_bytes(const uint8_t *line, int lane, uint8_t *q) {
    for (int i = 0; i < 32; i++) q[i] = line[64 * (i / 4) + 4 * lane + i % 4];
}
