// What the files of the tokenizer share: table access, the encoder's state, the splitter.
#ifndef TOK_INTERNAL_H
#define TOK_INTERNAL_H

#include "tokenizer.h"

#define TOK_AT(t, T, offset) ((const T *) (const void *) ((t)->base + (offset)))

// Ids go to the caller's array while there is room and are counted in any case.
typedef struct {
    const Tokenizer *t;
    int32_t *ids;
    size_t n, cap;
    uint8_t *scratch; // of the kind: for each of `room` bytes 32 where symbols merge, else 17
    size_t room;
} Encoder;

static inline void tok_emit(Encoder *e, int32_t id) {
    if (e->n < e->cap) e->ids[e->n] = id;
    e->n++;
}

// Walks over the pieces of a text, splitter by splitter: level k cuts the pieces of level k - 1.
typedef struct {
    const uint8_t *pos, *end;
    const uint8_t *match, *match_end; // found, not yet given out; NULL: none
    bool grouped;                     // the first of its groups was given out
} SplitLevel;
typedef struct {
    const Tokenizer *t;
    int n, top;
    SplitLevel level[TOK_SPLITS];
} Splitter;

void split_begin(Splitter *s, const Tokenizer *t, const uint8_t *text, size_t n);
bool split_next(Splitter *s, const uint8_t **piece, size_t *n);

void tok_word(Encoder *e, const uint8_t *word, size_t n); // one word, merged
// The text between special tokens, by kinds that merge; copy: room for it, as long as normalising makes it.
void tok_merge_text(Encoder *e, const uint8_t *text, size_t n, bool after_special, uint8_t *copy);

// Kinds that do not merge: the text between special tokens to ids.
void tok_unigram(Encoder *e, const uint8_t *text, size_t n);
void tok_table(Encoder *e, const uint8_t *text, size_t n);
void tok_words(Encoder *e, const uint8_t *text, size_t n);
void tok_longest(Encoder *e, const uint8_t *text, size_t n);

static inline const TokCell *tok_child(const TokCell *cells, const TokCell *from, uint8_t b) {
    const TokCell *to = cells + (from->child ^ b);
    return to->parent == (uint32_t) (from - cells) ? to : NULL;
}

static inline uint32_t tok_fold_row(const Tokenizer *t, const TokFold *fold, uint32_t code) {
    const uint16_t *page = TOK_AT(t, uint16_t, fold->page);
    return TOK_AT(t, uint32_t, fold->rows)[(uint32_t) page[code >> 7] << 7 | (code & 127)];
}

// The length of the well-formed character at p[0..n) and its code point; 1 and U+FFFD for a byte that begins none.
static inline uint32_t tok_character(const uint8_t *p, size_t n, int *len) {
    uint32_t b = *p;
    *len = 1;
    if (b < 0x80) return b;
    int want = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : 2;
    if (b < 0xC2 || b > 0xF4 || n < (size_t) want) return 0xFFFD;
    uint32_t code = b & (0x7Fu >> want), least = want == 2 ? 0x80 : want == 3 ? 0x800 : 0x10000;
    for (int i = 1; i < want; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0xFFFD;
        code = code << 6 | (p[i] & 0x3Fu);
    }
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0xFFFD;
    *len = want;
    return code;
}

static inline int tok_lead_length(uint8_t b) { // of a character, by its first byte alone
    return b < 0xC0 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

#endif
