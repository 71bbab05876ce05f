// Vocabularies with scores in whole numbers. In: tokens and scores. Out: a trie and the scores times 10000.
#include <math.h>
#include <string.h>

#include "tok_build.h"

#define SCALE 1e4
#define UNKNOWN (-10000000) // the score of a character that is spelled in bytes
#define LEAST (-20000000)   // tokens at or below are never taken

void tok_build_table(TokBuild *b) {
    int32_t *whole = NEWN(b->arena, int32_t, b->n_vocab + 1);
    double *score = tok_scores(b);
    Str *key = NEWN(b->arena, Str, b->n_vocab);
    int n_byte = 0;
    b->head.kind = TOK_KIND_TABLE;
    for (int i = 0; i < 256; i++) b->byte_symbol[i] = b->byte_token[i] = -1;
    for (int i = 0; i < b->n_vocab; i++) {
        double scaled = round(score[i] * SCALE);
        if (b->given_type[i] == TOK_BYTE) {
            b->piece[i] = tok_byte_piece(b, i);
            n_byte += b->byte_token[(uint8_t) b->piece[i].p[0]] < 0;
            b->byte_token[(uint8_t) b->piece[i].p[0]] = i;
            continue;
        }
        if (!isfinite(scaled) || scaled <= LEAST || b->given_type[i] == TOK_CONTROL || b->given_type[i] == TOK_UNKNOWN)
            continue;
        if (scaled > INT32_MAX) fail(TOK_KEY "scores[%d] is %g, expected at most %d", i, score[i], INT32_MAX / 10000);
        whole[i] = (int32_t) scaled;
        key[i] = b->text[i];
    }
    if (n_byte < 256)
        fail("the tokenizer has tokens for %d bytes (<0x00> to <0xFF>, of type byte), expected 256", n_byte);
    whole[b->n_vocab] = UNKNOWN;
    b->score = (Str){(const char *) whole, ((size_t) b->n_vocab + 1) * sizeof *whole};
    tok_trie_of_keys(b, key);
}
