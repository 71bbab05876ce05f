// WordPiece: a text is cut into words, a word into the longest tokens. In: a text. Out: ids.
// The one idea: what normalising makes of each character was worked out at build time, so that one walk over the text
// normalises, splits, and gathers a word; a word that cannot be cut into tokens to its end is one unknown token.
#include "tok_internal.h"

typedef struct {
    Encoder *e;
    uint8_t text[1 + 4 * TOK_WORD_MOST + TOK_FOLD_MOST]; // begins with a space: so do the keys that begin words
    size_t n;
    int n_character;
} Word;

static void end_word(Word *w) {
    Encoder *e = w->e;
    const TokCell *cells = TOK_AT(e->t, TokCell, e->t->head->trie);
    size_t before = e->n, at = w->n_character > TOK_WORD_MOST ? w->n : 0;
    bool known = at == 0;
    if (!w->n_character) return;
    while (at < w->n) {
        const TokCell *cell = cells;
        size_t length = 0;
        int32_t id = -1;
        for (size_t i = at; i < w->n && (cell = tok_child(cells, cell, w->text[i])); i++)
            if (cell->value >= 0) id = cell->value, length = i + 1 - at;
        known = id >= 0;
        if (!known) break;
        tok_emit(e, id);
        at += length;
    }
    if (!known) {
        e->n = before;
        tok_emit(e, e->t->head->role[TOK_UNK]);
    }
    w->n = 1;
    w->n_character = 0;
}

static void add(Word *w, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) w->n_character += (p[i] & 0xC0) != 0x80;
    if (w->n_character > TOK_WORD_MOST) {
        w->n_character = TOK_WORD_MOST + 1; // too long already: it need not be kept
        return;
    }
    memcpy(w->text + w->n, p, n);
    w->n += n;
}

void tok_words(Encoder *e, const uint8_t *text, size_t n) {
    const TokFold *fold = TOK_AT(e->t, TokFold, e->t->head->fold);
    Word w = {.e = e, .text = " ", .n = 1};
    int length;
    for (size_t at = 0; at < n; at += (size_t) length) {
        uint32_t code = tok_character(text + at, n - at, &length);
        uint32_t row = tok_fold_row(e->t, fold, code), how = row & 3, put = row >> 2 & 63;
        const uint8_t *p = put ? e->t->base + fold->pool + (row >> 8) : text + at;
        if (!put) put = how == TOK_FOLD_PUT ? 0 : (uint32_t) length;
        if (how == TOK_FOLD_SPACE || how == TOK_FOLD_ALONE) end_word(&w);
        if (how != TOK_FOLD_SPACE && put) add(&w, p, put);
        if (how == TOK_FOLD_ALONE) end_word(&w);
    }
    end_word(&w);
}
