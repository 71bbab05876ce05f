// Unigram vocabularies. In: tokens, scores, the compiled map of characters that SentencePiece writes. Out: a trie of
// the tokens, their scores, and a trie of replacements.
// The one idea: the map comes as a double array that a hostile file may fill with anything; it is walked once here,
// entry by entry, and written anew, so that the program walks only what was built.
#include <math.h>
#include <string.h>

#include "tok_build.h"

#define MAP_KEY TOK_KEY "precompiled_charsmap"
#define MAP_MOST (16u << 20) // bytes
#define KEY_MOST 64          // of a sequence that is replaced
#define VISITS_MOST 1000000  // common ends of sequences are shared, so there are more ways than entries

// ---- the map ----

// Entries are 32 bits: the byte that leads here (bits 0 to 7), whether a key ends here (8), the distance to the
// children (10 to 30, times 256 if bit 9 is set). Where a key ends, the entry at that distance is an offset into the
// replacements, each ended by a NUL.
typedef struct {
    const uint8_t *entry;
    uint32_t n_entry;
    Str text; // the replacements
    TrieKey *key;
    int n_key, cap_key, cap_replacement;
} Map;

typedef struct {
    uint32_t at; // where the children are, before XOR with their byte
    Str key;
} MapPart;

static uint32_t entry_at(const Map *m, uint32_t i) {
    const uint8_t *p = m->entry + 4 * (size_t) i;
    return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

static uint32_t distance(uint32_t entry) {
    return entry >> 10 << ((entry & 1u << 9) >> 6);
}

static void add_replacement(TokBuild *b, Map *m, Str key, uint32_t at) {
    uint32_t offset = at < m->n_entry ? entry_at(m, at) & 0x7FFFFFFF : UINT32_MAX;
    const char *end = offset < m->text.n ? memchr(m->text.p + offset, 0, m->text.n - offset) : NULL;
    if (!end) fail(MAP_KEY " has no replacement for '%s' where it says", str_show(b->arena, key));
    Str to = {m->text.p + offset, (size_t) (end - m->text.p) - offset};
    if (!utf8_valid(to.p, to.n)) fail(MAP_KEY " replaces '%s' by what is not UTF-8", str_show(b->arena, key));
    size_t grow = (to.n + key.n - 1) / key.n;
    if (grow > b->head.grow) b->head.grow = (uint32_t) grow;
    *PUSH(b->arena, m->key, m->n_key, m->cap_key) = (TrieKey){key, b->n_replacement};
    *PUSH(b->arena, b->replacement, b->n_replacement, m->cap_replacement) = to;
}

static void walk_map(TokBuild *b, Map *m) {
    MapPart *stack = NULL;
    int n = 0, cap = 0, visits = 0;
    *PUSH(b->arena, stack, n, cap) = (MapPart){distance(entry_at(m, 0)), {"", 0}};
    while (n) {
        MapPart p = stack[--n];
        for (uint32_t c = 1; c < 256; c++) {
            uint32_t i = p.at ^ c;
            if (i >= m->n_entry || (entry_at(m, i) & 0x800000FF) != c) continue;
            char byte = (char) c;
            MapPart child = {i ^ distance(entry_at(m, i)), tok_join(b->arena, p.key, (Str){&byte, 1})};
            if (++visits > VISITS_MOST || child.key.n > KEY_MOST)
                fail(MAP_KEY " has a sequence of more than %d bytes, or too many sequences", KEY_MOST);
            if (entry_at(m, i) >> 8 & 1) add_replacement(b, m, child.key, child.at);
            *PUSH(b->arena, stack, n, cap) = child;
        }
    }
}

static void read_map(TokBuild *b) {
    const GgufKey *k = gguf_key(b->gguf, S(MAP_KEY));
    b->head.grow = 3; // a byte that is no UTF-8 becomes U+FFFD
    if (!k) return;
    bool array = k->v.kind == GGUF_ARR;
    if (!array || (k->v.elem != GGUF_U8 && k->v.elem != GGUF_I8))
        fail(MAP_KEY " is %s%s, expected an array of bytes", array ? "an array of " : "",
            gguf_kind_name(array ? k->v.elem : k->v.kind));
    if (!k->v.n) return;
    Map m = {.entry = k->v.data + 4};
    if (k->v.n < 8 || k->v.n > MAP_MOST)
        fail(MAP_KEY " has %llu bytes, expected 8 to %u", (unsigned long long) k->v.n, MAP_MOST);
    Map size = {.entry = k->v.data};
    uint32_t bytes = entry_at(&size, 0);
    if (bytes > k->v.n - 4 || bytes % 4 || !bytes)
        fail(MAP_KEY " says that %u of its bytes are entries, expected a multiple of 4 up to %llu", bytes,
            (unsigned long long) k->v.n - 4);
    m.n_entry = bytes / 4;
    m.text = (Str){(const char *) m.entry + bytes, (size_t) k->v.n - 4 - bytes};
    walk_map(b, &m);
    b->map = tok_trie(b->arena, m.key, m.n_key, &b->n_map);
}

// ---- the vocabulary ----

static void set_bytes(TokBuild *b) {
    int n = 0;
    for (int i = 0; i < 256; i++) {
        b->byte_symbol[i] = -1;
        b->byte_token[i] = tok_text_id(b, str_fmt(b->arena, "<0x%02X>", (unsigned) i));
        n += b->byte_token[i] >= 0 && b->type[b->byte_token[i]] == TOK_BYTE;
    }
    if (n == 256) b->head.flags |= TOK_F_FALLBACK;
    else if (b->head.role[TOK_UNK] < 0)
        fail("the tokenizer has no token for a character that no token covers: " TOK_KEY
             "unknown_token_id names none, and not all bytes have one");
}

void tok_build_unigram(TokBuild *b) {
    float *score = NEWN(b->arena, float, b->n_vocab + 1), least = INFINITY;
    double *given = tok_scores(b);
    Str *key = NEWN(b->arena, Str, b->n_vocab);
    b->head.kind = TOK_KIND_UNIGRAM;
    for (int i = 0; i < b->n_vocab; i++) {
        Str text = b->text[i], spaced = tok_spaced(b, text);
        bool plain = b->given_type[i] == TOK_NORMAL || b->given_type[i] == TOK_UNUSED;
        if (b->given_type[i] == TOK_BYTE) b->piece[i] = tok_byte_piece(b, i);
        else if (plain) b->piece[i] = spaced;
        if (!plain && b->given_type[i] != TOK_USER_DEFINED) continue;
        score[i] = plain ? (float) given[i] : 0; // what the user defined is taken where it can be
        if (!isfinite(score[i])) fail(TOK_KEY "scores[%d] is not a number", i);
        if (b->given_type[i] == TOK_NORMAL && score[i] < least) least = score[i];
        if (!memchr(text.p, ' ', text.n)) key[i] = spaced; // a text's spaces are U+2581
    }
    score[b->n_vocab] = (isfinite(least) ? least : 0) - 10;
    b->score = (Str){(const char *) score, ((size_t) b->n_vocab + 1) * sizeof *score};
    if (tok_flag(b, TOK_KEY "remove_extra_whitespaces", false)) b->head.flags |= TOK_F_TRIM_SPACES;
    set_bytes(b);
    read_map(b);
    tok_trie_of_keys(b, key);
}
