// Vocabularies of which the longest token is taken at each place. In: a text. Out: ids.
#include "tok_internal.h"

void tok_longest(Encoder *e, const uint8_t *text, size_t n) {
    const TokCell *cells = TOK_AT(e->t, TokCell, e->t->head->trie);
    for (size_t at = 0; at < n;) {
        const TokCell *cell = cells;
        size_t length = 1;
        int32_t id = TOK_AT(e->t, int32_t, e->t->head->byte_token)[text[at]];
        for (size_t i = at; i < n && (cell = tok_child(cells, cell, text[i])); i++)
            if (cell->value >= 0) id = cell->value, length = i + 1 - at;
        if (id >= 0) tok_emit(e, id);
        at += length;
    }
}
