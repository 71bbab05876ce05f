// Vocabularies that merge by score (SentencePiece BPE). In: tokens and scores. Out: keys and ranks.
// The one idea: two neighbours merge when together they spell a token, the one with the highest score first;
// so scores become dense ranks, and equal scores equal ranks.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tok_build.h"

static void set_keys(TokBuild *b) {
    for (int i = 0; i < b->n_vocab; i++) {
        Str text = b->text[i], spaced = tok_spaced(b, text);
        bool plain = b->type[i] == TOK_NORMAL || b->type[i] == TOK_UNUSED, space = false;
        for (size_t k = 0; k < text.n; k++) space |= text.p[k] == ' ';
        if (b->type[i] == TOK_BYTE) b->piece[i] = tok_byte_piece(b, i);
        else if (plain) b->piece[i] = spaced;
        if (!space) tok_set_key(b, i, spaced); // a text's spaces are U+2581, so a token with a space is never met
    }
}

static int descending(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return (x < y) - (x > y);
}

static uint32_t rank_of(const double *sorted, uint32_t n, double score) {
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (sorted[middle] > score) low = middle + 1;
        else high = middle;
    }
    return low;
}

double *tok_scores(const TokBuild *b) {
    const GgufValue *v = tok_array(b, TOK_KEY "scores", GGUF_F32, (uint64_t) b->n_vocab);
    if (!v) fail(TOK_KEY "scores is missing, which this kind of tokenizer needs; --no-tokenizer builds without one");
    double *score = NEWN(b->arena, double, b->n_vocab);
    for (int i = 0; i < b->n_vocab; i++)
        if (!gguf_real(v, (uint64_t) i, &score[i]) || isnan(score[i])) fail(TOK_KEY "scores[%d] is not a number", i);
    return score;
}

static void set_ranks(TokBuild *b) {
    double *score = tok_scores(b), *sorted = NEWN(b->arena, double, b->n_vocab);
    memcpy(sorted, score, (size_t) b->n_vocab * sizeof *sorted);
    qsort(sorted, (size_t) b->n_vocab, sizeof *sorted, descending);
    b->rank = NEWN(b->arena, uint32_t, b->n_symbol);
    for (int i = 0; i < b->n_symbol; i++)
        if (b->symbol[i].spell >= 0) b->rank[i] = rank_of(sorted, (uint32_t) b->n_vocab, score[b->symbol[i].spell]);
}

void tok_build_scores(TokBuild *b) {
    b->head.kind = TOK_KIND_SCORES;
    set_keys(b);
    for (int i = 0; i < 256; i++) {
        char c = (char) i;
        b->byte_symbol[i] = i < 128 ? tok_symbol(b, (Str){&c, 1}) : -1;
    }
    tok_bytes_from_names(b);
    set_ranks(b);
}
