// WordPiece vocabularies. In: tokens, and how to normalise. Out: a trie, and for each character what becomes
// of it: dropped, a space, a word by itself, lower case, without accents.
// The one idea: a key begins with a space where the token begins a word, so one trie serves both and the text's
// own characters cannot be mistaken for that.
#include <string.h>

#include "tok_build.h"
#include "unicode.h"

#define ROW 128 // code points a page

// ---- characters ----

// Those that are words by themselves: ideographs, in the ranges of the original.
static bool is_ideograph(uint32_t c) {
    static const uint32_t ranges[][2] = {{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
        {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF}, {0x2F800, 0x2FA1F}};
    for (int i = 0; i < COUNT(ranges); i++)
        if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
    return false;
}

static bool is_punctuation(uint32_t c) {
    if (c < 128) return c > 32 && c < 127 && !(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z');
    UnicodeCategory k = unicode_category(c);
    return k >= Pc && k <= Ps;
}

typedef struct {
    TokBuild *b;
    bool lower, strip;
    char *pool;
    int n_pool, cap_pool;
} Folding;

// The row for what a character becomes: `how`, and its bytes in the pool unless it stays as it is.
static uint32_t row_for(Folding *f, uint32_t how, uint32_t code, const uint32_t *to, int n) {
    if (n == 1 && *to == code) return how;
    uint32_t at = (uint32_t) f->n_pool, length = 0;
    for (int i = 0; i < n; i++) {
        char bytes[4];
        int size = utf8_put(bytes, to[i]);
        for (int k = 0; k < size; k++, length++) *PUSH(f->b->arena, f->pool, f->n_pool, f->cap_pool) = bytes[k];
    }
    return (how == TOK_FOLD_KEEP ? TOK_FOLD_PUT : how) | length << 2 | at << 8;
}

// Lower case of a character that keeps its accents; the one capital that becomes two characters is among them.
static int lowered(uint32_t code, uint32_t *to) {
    to[0] = code == 0x130 ? 'i' : unicode_lower(code);
    to[1] = 0x307;
    return code == 0x130 ? 2 : 1;
}

static uint32_t fold_text(Folding *f, uint32_t code) {
    uint32_t to[2] = {code}, first, last;
    for (int i = 0; unicode_space_range(i, &first, &last); i++)
        if (code >= first && code <= last) return TOK_FOLD_SPACE;
    if (code == 0xFFFD) return TOK_FOLD_KEEP; // bytes that are no characters too
    return row_for(f, TOK_FOLD_KEEP, code, to, f->lower ? lowered(code, to) : 1);
}

static uint32_t fold_word(Folding *f, uint32_t code) {
    UnicodeCategory k = unicode_category(code);
    uint32_t to[4] = {code};
    int n = 1;
    if (code == ' ' || code == '\t' || code == '\n' || code == '\r' || k >= Zl) return TOK_FOLD_SPACE;
    if (code == 0xFFFD || k == Cc || k == Cf || k == Co || k == Cs) return TOK_FOLD_PUT;
    if (f->strip) n = unicode_unaccented(code, to);
    else if (f->lower) n = lowered(code, to);
    for (int i = 0; f->lower && i < n; i++) to[i] = unicode_lower(to[i]);
    if (!n) return TOK_FOLD_PUT;
    return row_for(f, is_ideograph(code) || is_punctuation(to[0]) ? TOK_FOLD_ALONE : TOK_FOLD_KEEP, code, to, n);
}

static void fold_all(Folding *f, uint32_t (*fold)(Folding *, uint32_t)) {
    TokBuild *b = f->b;
    b->fold_page = NEWN(b->arena, uint16_t, REGEX_PAGES);
    int cap = 0, n = 0;
    for (uint32_t page = 0; page < REGEX_PAGES; page++) {
        uint32_t row[ROW];
        int same = 0;
        for (uint32_t i = 0; i < ROW; i++) row[i] = fold(f, page * ROW + i);
        while (same < n && memcmp(b->fold_rows + same, row, sizeof row) != 0) same += ROW;
        b->fold_page[page] = (uint16_t) (same / ROW);
        for (int i = 0; same == n - i && i < ROW; i++) *PUSH(b->arena, b->fold_rows, n, cap) = row[i];
    }
    b->n_fold_row = (uint32_t) n;
    b->fold_pool = (Str){f->pool, (size_t) f->n_pool};
}

void tok_fold_text(TokBuild *b, bool lower) {
    Folding f = {.b = b, .lower = lower};
    b->head.grow = 2; // lower case takes one byte more than two at most
    fold_all(&f, fold_text);
}

// ---- the vocabulary ----

static void set_keys(TokBuild *b, Str *key) {
    for (int i = 0; i < b->n_vocab; i++) {
        Str text = b->text[i];
        bool begins = text.n > 3 && !memcmp(text.p, "\xE2\x96\x81", 3);
        if (b->given_type[i] == TOK_CONTROL || b->given_type[i] == TOK_UNKNOWN) continue;
        if (b->given_type[i] != TOK_USER_DEFINED) b->piece[i] = tok_spaced(b, text);
        if (memchr(text.p, ' ', text.n)) continue; // no word has a space in it
        key[i] = begins ? tok_join(b->arena, S(" "), (Str){text.p + 3, text.n - 3}) : text;
    }
}

void tok_build_words(TokBuild *b) {
    const GgufKey *cls = gguf_key(b->gguf, S(TOK_KEY "cls_token_id"));
    Str *key = NEWN(b->arena, Str, b->n_vocab);
    int64_t id;
    b->head.kind = TOK_KIND_WORDS;
    if (cls && !gguf_key(b->gguf, S(TOK_KEY "bos_token_id")) && gguf_int(&cls->v, 0, &id) && id >= 0 && id < b->n_vocab)
        b->head.role[TOK_BOS] = (int32_t) id;
    if (b->head.role[TOK_UNK] < 0)
        fail("the tokenizer has no token for a word that no tokens spell: " TOK_KEY "unknown_token_id names none");
    for (int i = 0; i < 256; i++) b->byte_symbol[i] = b->byte_token[i] = -1;
    set_keys(b, key);
    tok_trie_of_keys(b, key);
    Folding f = {.b = b, .lower = tok_flag(b, TOK_KEY "normalizer.lowercase", true)};
    f.strip = tok_flag(b, TOK_KEY "normalizer.strip_accents", f.lower);
    fold_all(&f, fold_word);
}
