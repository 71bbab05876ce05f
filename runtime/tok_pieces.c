// Text on its way to merging. In: the text between special tokens. Out: ids.
// The one idea: what a vocabulary wants done with a text before its words are merged (spaces that stand for another
// character, letters in lower case, sequences of bases) is done here piece by piece, into a copy of the piece.
#include "tok_internal.h"

// Copies the text with U+2581 as spaces, and with one in front if asked to. Returns the length.
static size_t with_spaces(uint8_t *to, const uint8_t *text, size_t n, bool prefix) {
    size_t k = 0, i = 0;
    if (prefix) to[k++] = ' ';
    while (i < n) {
        const uint8_t *found = memchr(text + i, 0xE2, n - i);
        size_t end = found ? (size_t) (found - text) : n;
        memcpy(to + k, text + i, end - i);
        k += end - i;
        i = end;
        if (i == n) break;
        bool space = n - i >= 3 && text[i + 1] == 0x96 && text[i + 2] == 0x81;
        to[k++] = space ? ' ' : 0xE2;
        i += space ? 3 : 1;
    }
    return k;
}

// A piece is one word, or several where the vocabulary allows to cut before a space.
static void encode_piece(Encoder *e, const uint8_t *p, size_t n) {
    const TokHeader *h = e->t->head;
    const uint32_t *cut = TOK_AT(e->t, uint32_t, h->cut);
    size_t from = 0;
    if (h->flags & TOK_F_WORDS)
        for (size_t i = 1; i < n; i++) {
            if (p[i] != ' ' || !(cut[p[i - 1] >> 5] >> (p[i - 1] & 31) & 1)) continue;
            tok_word(e, p + from, i - from);
            from = i;
        }
    if (from < n) tok_word(e, p + from, n - from);
}

// Splitters first, then merging.
static void split_and_merge(Encoder *e, const uint8_t *text, size_t n) {
    Splitter s;
    const uint8_t *piece;
    size_t length;
    split_begin(&s, e->t, text, n);
    while (split_next(&s, &piece, &length)) encode_piece(e, piece, length);
}

// White space separates texts and is no part of them; characters become what the table says (lower case).
static void fold_and_merge(Encoder *e, const uint8_t *text, size_t n, uint8_t *copy) {
    const TokFold *fold = TOK_AT(e->t, TokFold, e->t->head->fold);
    size_t used = 0;
    int length;
    for (size_t at = 0; at < n; at += (size_t) length) {
        uint32_t code = tok_character(text + at, n - at, &length);
        uint32_t row = tok_fold_row(e->t, fold, code), put = row >> 2 & 63;
        if ((row & 3) == TOK_FOLD_SPACE) {
            split_and_merge(e, copy, used);
            used = 0;
        } else if (put) {
            memcpy(copy + used, e->t->base + fold->pool + (row >> 8), put);
            used += put;
        } else {
            memcpy(copy + used, text + at, (size_t) length);
            used += (size_t) length;
        }
    }
    split_and_merge(e, copy, used);
}

// ---- sequences of bases: between two tags, six letters a token, whatever their case ----

static bool stands_at(const uint8_t *text, size_t n, size_t at, const char *tag, size_t length) {
    return n - at >= length && !memcmp(text + at, tag, length);
}

static size_t find_tag(const uint8_t *text, size_t n, size_t at, const char *tag, size_t length) { // n: nowhere
    while (at < n && !stands_at(text, n, at, tag, length)) {
        const uint8_t *next = memchr(text + at + 1, tag[0], n - at - 1);
        at = next ? (size_t) (next - text) : n;
    }
    return at;
}

static void encode_bases(Encoder *e, const uint8_t *text, size_t n) {
    const TokCell *cells = TOK_AT(e->t, TokCell, e->t->head->trie);
    for (size_t at = 0; at < n; at += TOK_BASES) {
        const TokCell *cell = cells;
        for (size_t i = at; i < at + TOK_BASES && cell; i++) {
            uint8_t b = i < n ? text[i] : 'A'; // the last one is filled up
            cell = tok_child(cells, cell, b >= 'a' && b <= 'z' ? (uint8_t) (b - 32) : b);
        }
        tok_emit(e, cell ? cell->value : e->t->head->bases[TOK_BASES_OTHER]);
    }
}

static void tagged_bases(Encoder *e, const uint8_t *text, size_t n) {
    const int32_t *ids = e->t->head->bases;
    for (size_t at = 0, tag, end; at < n; at = end + strlen(TOK_BASES_CLOSE)) {
        tag = find_tag(text, n, at, TOK_BASES_OPEN, strlen(TOK_BASES_OPEN));
        split_and_merge(e, text + at, tag - at);
        if (tag == n) return;
        tok_emit(e, ids[TOK_BASES_BEGIN]);
        tag += strlen(TOK_BASES_OPEN);
        end = find_tag(text, n, tag, TOK_BASES_CLOSE, strlen(TOK_BASES_CLOSE));
        encode_bases(e, text + tag, end - tag);
        if (end == n) return;
        tok_emit(e, ids[TOK_BASES_END]);
    }
}

void tok_merge_text(Encoder *e, const uint8_t *text, size_t n, bool after_special, uint8_t *copy) {
    const TokHeader *h = e->t->head;
    if (h->flags & TOK_F_SPACES) {
        n = with_spaces(copy, text, n, after_special && (h->flags & TOK_F_SPACE_PREFIX));
        text = copy;
    }
    if (h->flags & TOK_F_FOLD) fold_and_merge(e, text, n, copy);
    else if (h->flags & TOK_F_BASES) tagged_bases(e, text, n);
    else split_and_merge(e, text, n);
}
