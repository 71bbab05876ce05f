// The tokenizer of a file becomes tables. In: the GGUF's tokenizer.* keys. Out: one blob that
// runtime/tokenizer.h reads. The one idea: a kind comes down to symbols (byte strings with a number) and a
// preference among merges of them, or to a trie of its tokens; the program needs but the tables that were filled here.
#include "tokenizer.h"

#include <string.h>

#include "tok_build.h"

// ---- metadata ----

static const GgufValue *value_of(const TokBuild *b, const char *key) {
    const GgufKey *k = gguf_key(b->gguf, str(key));
    return k ? &k->v : NULL;
}

const GgufValue *tok_array(const TokBuild *b, const char *key, GgufKind elem, uint64_t n) {
    const GgufValue *v = value_of(b, key);
    if (!v) return NULL;
    if (v->kind != GGUF_ARR) fail("%s is %s, expected an array", key, gguf_kind_name(v->kind));
    bool number = v->elem != GGUF_STR && v->elem != GGUF_ARR && v->elem != GGUF_BOOL;
    if (elem == GGUF_STR ? v->elem != GGUF_STR : !number)
        fail("%s is an array of %s, expected %s", key, gguf_kind_name(v->elem),
            elem == GGUF_STR ? "strings" : "numbers");
    if (n && v->n != n)
        fail("%s has %llu elements, expected %llu, as many as " TOK_KEY "tokens", key, (unsigned long long) v->n,
            (unsigned long long) n);
    return v;
}

static Str string_of(const TokBuild *b, const char *key) { // empty when absent
    const GgufValue *v = value_of(b, key);
    if (!v) return (Str){0};
    if (v->kind != GGUF_STR) fail("%s is %s, expected a string", key, gguf_kind_name(v->kind));
    return v->s;
}

bool tok_flag(const TokBuild *b, const char *key, bool otherwise) {
    const GgufValue *v = value_of(b, key);
    if (!v) return otherwise;
    if (v->kind != GGUF_BOOL) fail("%s is %s, expected a bool", key, gguf_kind_name(v->kind));
    return v->u;
}

static void set_flag(TokBuild *b, const char *key, uint32_t flag) {
    if (tok_flag(b, key, b->head.flags & flag)) b->head.flags |= flag;
    else b->head.flags &= ~flag;
}

// ---- symbols ----

static uint32_t *table_for(Arena *a, uint64_t n, uint32_t *mask) { // of slots, at most half full
    uint64_t size = 16;
    while (size < 2 * n) size *= 2;
    *mask = (uint32_t) (size - 1);
    return NEWN(a, uint32_t, size);
}

static uint32_t *text_place(const TokBuild *b, Str text) {
    uint32_t i = (uint32_t) hash64(text.p, text.n, 1) & b->text_mask;
    while (b->text_slot[i] && !str_eq(b->text[b->text_slot[i] - 1], text)) i = (i + 1) & b->text_mask;
    return &b->text_slot[i];
}

int32_t tok_text_id(const TokBuild *b, Str text) {
    return (int32_t) *text_place(b, text) - 1;
}

static uint32_t *key_place(const TokBuild *b, Str key) {
    uint32_t i = (uint32_t) hash64(key.p, key.n, 2) & b->slot_mask;
    while (b->slot[i] && !str_eq(b->symbol[b->slot[i] - 1].key, key)) i = (i + 1) & b->slot_mask;
    return &b->slot[i];
}

int32_t tok_symbol(const TokBuild *b, Str key) {
    return key.n ? (int32_t) *key_place(b, key) - 1 : -1;
}

static int32_t new_symbol(TokBuild *b, Str key, int32_t spell) {
    if ((uint32_t) b->n_symbol >= TOK_SYMBOLS)
        fail("the tokenizer has more than %u tokens and parts of tokens", TOK_SYMBOLS);
    uint32_t *place = key_place(b, key);
    *PUSH(b->arena, b->symbol, b->n_symbol, b->cap_symbol) = (Symbol){key, spell};
    *place = (uint32_t) b->n_symbol;
    return b->n_symbol - 1;
}

int32_t tok_intern(TokBuild *b, Str key) {
    int32_t symbol = tok_symbol(b, key);
    return symbol >= 0 ? symbol : new_symbol(b, key, -1);
}

void tok_set_key(TokBuild *b, int32_t id, Str key) {
    uint32_t *place = key_place(b, key);
    if (!key.n || *place) return;
    if (!str_eq(key, b->piece[id])) {
        new_symbol(b, key, id);
        return;
    }
    b->symbol[id].key = key;
    *place = (uint32_t) id + 1;
}

bool tok_byte_name(Str text, int *byte) {
    if (text.n != 6 || !str_starts(text, "<0x") || text.p[5] != '>') return false;
    *byte = 0;
    for (int i = 3; i < 5; i++) {
        const char *digit = memchr("0123456789ABCDEF0123456789abcdef", text.p[i], 32);
        if (!digit) return false;
        *byte = *byte * 16 + (int) ((digit - "0123456789ABCDEF0123456789abcdef") & 15);
    }
    return true;
}

bool tok_in_utf8(int byte) {
    return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5);
}

void tok_bytes_from_names(TokBuild *b) {
    int missing = 0;
    for (int i = 0; i < 256; i++) {
        char byte = (char) i;
        int32_t symbol = tok_symbol(b, (Str){&byte, 1});
        b->byte_token[i] = tok_text_id(b, str_fmt(b->arena, "<0x%02X>", (unsigned) i));
        if (b->byte_token[i] < 0 && symbol >= 0) b->byte_token[i] = b->symbol[symbol].spell;
        if (b->byte_token[i] >= 0) continue;
        b->byte_token[i] = b->head.role[TOK_UNK];
        missing += tok_in_utf8(i);
    }
    if (missing)
        note("tokenizer: %d of the bytes of UTF-8 have no token; where no other token covers them they become %s",
            missing, b->head.role[TOK_UNK] >= 0 ? "the unknown token" : "nothing");
}

Str tok_byte_piece(const TokBuild *b, int id) {
    int byte;
    if (!tok_byte_name(b->text[id], &byte))
        fail("token %d, '%s', is of type byte but not spelled like <0x0A>", id, str_show(b->arena, b->text[id]));
    char c = (char) byte;
    return str_dup(b->arena, (Str){&c, 1});
}

Str tok_join(Arena *a, Str left, Str right) {
    char *to = arena_alloc(a, left.n + right.n + 1);
    if (left.n) memcpy(to, left.p, left.n);
    if (right.n) memcpy(to + left.n, right.p, right.n);
    return (Str){to, left.n + right.n};
}

Str tok_spaced(const TokBuild *b, Str text) {
    char *to = arena_alloc(b->arena, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; n++) {
        bool space = text.n - i >= 3 && !memcmp(text.p + i, "\xE2\x96\x81", 3);
        to[n] = space ? ' ' : text.p[i];
        i += space ? 3 : 1;
    }
    return (Str){to, n};
}

// ---- kinds ----

typedef struct {
    const char *name;
    void (*build)(TokBuild *b);
    uint32_t flags;
    int32_t bos, eos, unk, sep, pad, mask;
} Kind;

static const Kind kinds[] = {
#define KIND(...) {__VA_ARGS__},
#include "tok_names.def"
};

static const char *const forced_pre[][2] = {
#define FORCED_PRE(kind, name) {kind, name},
#include "tok_names.def"
};

static const Kind *find_kind(const TokBuild *b) {
    Str all = {"", 0};
    for (int i = 0; i < COUNT(kinds); i++) {
        if (str_is(b->kind, kinds[i].name)) return &kinds[i];
        all = str_fmt(b->arena, "%.*s%s%s", FMT(all), i ? ", " : "", kinds[i].name);
    }
    fail("tokenizer kind '%s' (" TOK_KEY "model) is not one of those known: %.*s; --no-tokenizer builds without it",
        str_show(b->arena, b->kind), FMT(all));
}

static void set_roles(TokBuild *b, const Kind *k) {
    for (int i = 0; i < TOK_ROLES; i++) b->head.role[i] = -1;
    b->head.role[TOK_BOS] = k->bos;
    b->head.role[TOK_EOS] = k->eos;
    b->head.role[TOK_UNK] = k->unk;
    b->head.role[TOK_SEP] = k->sep;
    b->head.role[TOK_PAD] = k->pad;
    b->head.role[TOK_MASK] = k->mask;
    b->head.flags = k->flags;
    b->head.grow = 1;
}

static void set_pre(TokBuild *b) {
    b->pre = string_of(b, TOK_KEY "pre");
    for (int i = 0; i < COUNT(forced_pre); i++)
        if (str_is(b->kind, forced_pre[i][0])) b->pre = str(forced_pre[i][1]);
    if (b->options->pre.n) b->pre = b->options->pre;
}

static void read_tokens(TokBuild *b) {
    const GgufValue *v = tok_array(b, TOK_KEY "tokens", GGUF_STR, 0);
    if (!v) fail(TOK_KEY "tokens is missing; --no-tokenizer builds without a tokenizer");
    if (!v->n || v->n > TOK_SYMBOLS / 2)
        fail(TOK_KEY "tokens has %llu elements, expected 1 to %u", (unsigned long long) v->n, TOK_SYMBOLS / 2);
    int n = b->n_vocab = (int) v->n;
    b->text = NEWN(b->arena, Str, n);
    b->piece = NEWN(b->arena, Str, n);
    b->type = arena_alloc(b->arena, (size_t) n);
    b->given_type = arena_alloc(b->arena, (size_t) n);
    b->attr = arena_alloc(b->arena, (size_t) n);
    b->text_slot = table_for(b->arena, v->n, &b->text_mask);
    for (int i = 0; i < n; i++) {
        Str text = v->str[i].n ? v->str[i] : str_fmt(b->arena, "[EMPTY_%d]", i);
        uint32_t *place = text_place(b, text);
        if (*place) fail(TOK_KEY "tokens has '%s' twice, at %u and %d", str_show(b->arena, text), *place - 1, i);
        b->text[i] = b->piece[i] = text;
        *place = (uint32_t) i + 1;
    }
    const GgufValue *types = tok_array(b, TOK_KEY "token_type", GGUF_I32, v->n);
    for (int i = 0; i < n; i++) {
        int64_t type = TOK_NORMAL;
        if (types && (!gguf_int(types, (uint64_t) i, &type) || type < 0 || type > TOK_BYTE))
            fail(TOK_KEY "token_type of token %d is not 0 to %d", i, TOK_BYTE);
        b->type[i] = (uint8_t) (type ? type : TOK_UNUSED); // 0: undefined; it is matched and printed as text
        b->given_type[i] = b->type[i];
    }
}

static void make_room_for_symbols(TokBuild *b) {
    const GgufValue *merges = value_of(b, TOK_KEY "merges");
    uint64_t most = 2 * (uint64_t) b->n_vocab + 256 + (merges && merges->kind == GGUF_ARR ? 3 * merges->n : 0);
    if (most > TOK_SYMBOLS) most = TOK_SYMBOLS;
    b->slot = table_for(b->arena, most, &b->slot_mask);
    for (int i = 0; i < b->n_vocab; i++)
        *PUSH(b->arena, b->symbol, b->n_symbol, b->cap_symbol) = (Symbol){{NULL, 0}, i};
}

// What begins and ends a text. Those of words are part of the kind; LONGEST has none.
static void set_ends(TokBuild *b) {
    if (b->head.kind == TOK_KIND_LONGEST) return;
    set_flag(b, TOK_KEY "add_space_prefix", TOK_F_SPACE_PREFIX);
    if (b->head.kind != TOK_KIND_WORDS) {
        set_flag(b, TOK_KEY "add_bos_token", TOK_F_ADD_BOS);
        set_flag(b, TOK_KEY "add_eos_token", TOK_F_ADD_EOS);
    }
    if (b->always_bos) b->head.flags |= TOK_F_ADD_BOS;
    if ((b->head.flags & TOK_F_ADD_BOS) && b->head.role[TOK_BOS] < 0)
        fail("the tokenizer begins a text with BOS, but " TOK_KEY "bos_token_id names no token");
    if ((b->head.flags & TOK_F_ADD_EOS) && b->head.role[TOK_EOS] < 0)
        fail("the tokenizer ends a text with EOS, but " TOK_KEY "eos_token_id names no token");
    if ((b->head.flags & TOK_F_ADD_SEP) && b->head.role[TOK_SEP] < 0)
        fail("the tokenizer ends a text with SEP, but " TOK_KEY "seperator_token_id names no token");
}

Str tokenizer_build(Arena *a, const Gguf *g, const TokenizerOptions *o) {
    TokBuild b = {.arena = a, .gguf = g, .options = o};
    b.kind = string_of(&b, TOK_KEY "model");
    if (o->none || !b.kind.n || str_is(b.kind, "none") || str_is(b.kind, "no_vocab")) return (Str){0};
    const Kind *kind = find_kind(&b);
    if (o->pre.n && kind->build != tok_build_merges)
        fail("--pre=%s: a tokenizer of kind '%s' has no pre-tokenizer", str_show(a, o->pre), kind->name);
    set_roles(&b, kind);
    set_pre(&b);
    read_tokens(&b);
    tok_roles(&b);
    make_room_for_symbols(&b);
    kind->build(&b);
    set_ends(&b);
    return tok_blob(&b);
}
