// Vocabularies of which the longest token is taken at each place. In: tokens, spelled as Python spells bytes.
// Out: their bytes in a trie.
#include "tok_build.h"

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0'
        : c >= 'a' && c <= 'f'  ? c - 'a' + 10
        : c >= 'A' && c <= 'F'  ? c - 'A' + 10
                                : -1;
}

// \t \n \r \xHH; any other character behind a backslash is itself.
static Str unescaped(const TokBuild *b, int id) {
    Str text = b->text[id];
    char *to = arena_alloc(b->arena, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\\') {
            if (++i == text.n) fail("token %d, '%s', ends in a backslash", id, str_show(b->arena, text));
            c = text.p[i];
            c = (char) (c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c);
            if (c == 'x') {
                int high = text.n - i > 2 ? hex(text.p[i + 1]) : -1, low = text.n - i > 2 ? hex(text.p[i + 2]) : -1;
                if (high < 0 || low < 0)
                    fail("token %d, '%s', has \\x without two hexadecimal digits", id, str_show(b->arena, text));
                c = (char) (high * 16 + low);
                i += 2;
            }
        }
        to[n++] = c;
    }
    return (Str){to, n};
}

void tok_build_longest(TokBuild *b) {
    Str *key = NEWN(b->arena, Str, b->n_vocab);
    bool has[256] = {false};
    int missing = 0;
    b->head.kind = TOK_KIND_LONGEST;
    for (int i = 0; i < b->n_vocab; i++) {
        b->piece[i] = unescaped(b, i);
        if (b->given_type[i] == TOK_CONTROL || b->given_type[i] == TOK_UNKNOWN)
            continue; // in a text their spelling is text
        key[i] = b->piece[i];
        if (key[i].n == 1) has[(uint8_t) key[i].p[0]] = true;
    }
    for (int i = 0; i < 256; i++) {
        b->byte_symbol[i] = -1;
        b->byte_token[i] = b->head.role[TOK_UNK];
        missing += !has[i];
    }
    if (missing)
        note("tokenizer: %d bytes have no token; where no other token covers them they become %s", missing,
            b->head.role[TOK_UNK] >= 0 ? "the unknown token" : "nothing");
    tok_trie_of_keys(b, key);
}
