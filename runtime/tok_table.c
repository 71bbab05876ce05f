// Vocabularies with scores in whole numbers, cut from the right. In: a text. Out: ids.
// The one idea: from the end of the text to its begin, each character keeps the best way to the end; on equal scores
// the longest token wins. A character that no token begins with is spelled in bytes, at a price that none would pay.
#include "tok_internal.h"

typedef struct {
    int64_t cost; // of the best way from here to the end
    int32_t id;   // its first token, -1: the bytes of one character
    uint32_t length;
} Step;

static void find_best(const Tokenizer *t, const uint8_t *text, size_t n, Step *step) {
    const TokCell *cells = TOK_AT(t, TokCell, t->head->trie);
    const int32_t *score = TOK_AT(t, int32_t, t->head->score);
    int64_t unknown = score[t->head->n_vocab];
    for (size_t at = 0; at < n; at += step[at].length) {
        int length;
        tok_character(text + at, n - at, &length);
        for (int i = 0; i < length; i++) step[at + (size_t) i].length = 0; // no character begins there
        step[at].length = (uint32_t) length;
    }
    step[n].cost = 0;
    for (size_t at = n; at-- > 0;) {
        if (!step[at].length) continue;
        const TokCell *cell = cells;
        Step best = {step[at + step[at].length].cost - unknown, -1, step[at].length};
        for (size_t i = at; i < n && (cell = tok_child(cells, cell, text[i])); i++) {
            if (cell->value < 0) continue;
            int64_t cost = step[i + 1].cost - score[cell->value];
            if (cost <= best.cost) best = (Step){cost, cell->value, (uint32_t) (i + 1 - at)};
        }
        step[at] = best;
    }
}

void tok_table(Encoder *e, const uint8_t *text, size_t n) {
    const int32_t *byte = TOK_AT(e->t, int32_t, e->t->head->byte_token);
    Step *step = (Step *) (void *) e->scratch;
    if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) text += 3, n -= 3; // a byte order mark is no text
    find_best(e->t, text, n, step);
    for (size_t at = 0; at < n; at += step[at].length) {
        if (step[at].id >= 0) {
            tok_emit(e, step[at].id);
            continue;
        }
        for (uint32_t i = 0; i < step[at].length; i++) tok_emit(e, byte[text[at + i]]);
    }
}
