// The tokenizer, from metadata to ids and back: made vocabularies, broken ones, and merging against a naive copy of it.
#include "tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/tokenizer.h"
#include "check.h"

// ---- vocabularies made here ----

typedef struct {
    const char *model, *pre;
    Str tokens[64], merges[64];
    float scores[64];
    int32_t types[64];
    int n_token, n_merge, n_score, n_type; // -1: the key is absent
    int bos, eos, unk;                     // -1: absent
    int add_bos, add_space;                // -1: absent
    const char *odd;                       // this key has a number that is no integer in place of its value
} Vocab;

static Arena *arena;

static bool normal(const Vocab *v, GgufWriter *w, const char *name, bool present) {
    if (v->odd && !strcmp(v->odd, name)) {
        gguf_put_f32(w, str_fmt(arena, "tokenizer.ggml.%s", name), 0.5f);
        return false;
    }
    return present;
}

static const Gguf *written(const Vocab *v) {
    static const Gguf *all[200]; // open to the end
    static int count;
    const char *path = str_fmt(arena, "%s/vocab-%d.gguf", temp_dir(), count).p;
    GgufWriter *w = gguf_create(path);
    gguf_put_str(w, S("general.architecture"), S("none"));
    if (normal(v, w, "model", v->model)) gguf_put_str(w, S("tokenizer.ggml.model"), str(v->model));
    if (normal(v, w, "pre", v->pre)) gguf_put_str(w, S("tokenizer.ggml.pre"), str(v->pre));
    if (normal(v, w, "tokens", v->n_token >= 0))
        gguf_put_array(w, S("tokenizer.ggml.tokens"), GGUF_STR, v->tokens, (uint64_t) v->n_token);
    if (normal(v, w, "merges", v->n_merge >= 0))
        gguf_put_array(w, S("tokenizer.ggml.merges"), GGUF_STR, v->merges, (uint64_t) v->n_merge);
    if (normal(v, w, "scores", v->n_score >= 0))
        gguf_put_array(w, S("tokenizer.ggml.scores"), GGUF_F32, v->scores, (uint64_t) v->n_score);
    if (normal(v, w, "token_type", v->n_type >= 0))
        gguf_put_array(w, S("tokenizer.ggml.token_type"), GGUF_I32, v->types, (uint64_t) v->n_type);
    if (normal(v, w, "bos_token_id", v->bos >= 0)) gguf_put_u32(w, S("tokenizer.ggml.bos_token_id"), (uint32_t) v->bos);
    if (normal(v, w, "eos_token_id", v->eos >= 0)) gguf_put_u32(w, S("tokenizer.ggml.eos_token_id"), (uint32_t) v->eos);
    if (normal(v, w, "unknown_token_id", v->unk >= 0))
        gguf_put_u32(w, S("tokenizer.ggml.unknown_token_id"), (uint32_t) v->unk);
    if (normal(v, w, "add_bos_token", v->add_bos >= 0)) gguf_put_bool(w, S("tokenizer.ggml.add_bos_token"), v->add_bos);
    if (normal(v, w, "add_space_prefix", v->add_space >= 0))
        gguf_put_bool(w, S("tokenizer.ggml.add_space_prefix"), v->add_space);
    normal(v, w, "suppress_tokens", false);
    gguf_begin_data(w);
    gguf_finish(w);
    if (count == COUNT(all)) fail("more vocabularies than this test has room for");
    return all[count++] = gguf_open(path);
}

static void add(Vocab *v, const char *token, int type, float score) {
    v->types[v->n_token] = type;
    v->scores[v->n_token] = score;
    v->tokens[v->n_token++] = str(token);
    v->n_type = v->n_token;
    if (v->n_score >= 0) v->n_score = v->n_token;
}

static Vocab merges_vocab(void) { // <s> </s> a b c Ġ ab abc Ġa, <x>
    Vocab v = {.model = "gpt2", .pre = "gpt-2", .n_score = -1, .eos = 1, .unk = -1, .add_bos = 1, .add_space = -1};
    add(&v, "<s>", TOK_CONTROL, 0), add(&v, "</s>", TOK_CONTROL, 0);
    add(&v, "a", TOK_NORMAL, 0), add(&v, "b", TOK_NORMAL, 0), add(&v, "c", TOK_NORMAL, 0);
    add(&v, "\u0120", TOK_NORMAL, 0);
    add(&v, "ab", TOK_NORMAL, 0), add(&v, "abc", TOK_NORMAL, 0), add(&v, "\u0120a", TOK_NORMAL, 0);
    add(&v, "<x>", TOK_USER_DEFINED, 0);
    v.merges[0] = S("a b"), v.merges[1] = S("ab c"), v.merges[2] = S("\u0120 a");
    v.n_merge = 3;
    return v;
}

static Vocab scores_vocab(void) { // <unk> <s> </s> ▁ a b ab ▁a bytes of é; <x>
    Vocab v = {.model = "llama", .n_merge = -1, .bos = 1, .eos = 2, .unk = 0, .add_bos = -1, .add_space = -1};
    add(&v, "<unk>", TOK_UNKNOWN, 0), add(&v, "<s>", TOK_CONTROL, 0), add(&v, "</s>", TOK_CONTROL, 0);
    add(&v, "\u2581", TOK_NORMAL, -9), add(&v, "a", TOK_NORMAL, -8), add(&v, "b", TOK_NORMAL, -8);
    add(&v, "ab", TOK_NORMAL, -2), add(&v, "\u2581a", TOK_NORMAL, -3), add(&v, "<0xC3>", TOK_BYTE, 0);
    add(&v, "<0xA9>", TOK_BYTE, 0), add(&v, "<x>", TOK_USER_DEFINED, 0);
    return v;
}

static Tokenizer opened(const Vocab *v, const TokenizerOptions *o) {
    Tokenizer t = {0};
    Str blob = tokenizer_build(arena, written(v), o);
    CHECK((uintptr_t) blob.p % 64 == 0 && tokenizer_open(&t, blob.p, blob.n));
    CHECK(!tokenizer_open(&(Tokenizer){0}, blob.p, blob.n - 1));
    return t;
}

// ---- texts to ids and back, as text: "0 2 3" ----

static Str ids_of(const Tokenizer *t, Str text, int flags) {
    size_t room = tokenize_scratch(t, text.n), cap = tokenize_max_ids(t, text.n);
    int32_t *ids = NEWN(arena, int32_t, cap);
    int64_t n = tokenize(t, text.p, text.n, flags, ids, cap, arena_alloc(arena, room), room);
    CHECK(n >= 0);
    void *scratch = arena_alloc(arena, room);
    if (n > 0) CHECK(tokenize(t, text.p, text.n, flags, ids, (size_t) n - 1, scratch, room) == TOK_FULL);
    if (n > 0) CHECK(tokenize(t, text.p, text.n, flags, ids, (size_t) n, scratch, room) == n);
    Out o = out_new(arena);
    for (int64_t i = 0; i < n; i++) out(&o, "%s%d", i ? " " : "", ids[i]);
    return out_text(&o);
}

// No control token is read in text[from .. to).
static Str ids_but(const Tokenizer *t, Str text, size_t from, size_t to) {
    size_t room = tokenize_scratch(t, text.n), cap = tokenize_max_ids(t, text.n);
    int32_t *ids = NEWN(arena, int32_t, cap);
    TokSpan but[3] = {{0, 0}, {from, to}, {text.n, text.n}};
    void *scratch = arena_alloc(arena, room);
    int64_t n = tokenize_but(t, text.p, text.n, TOK_PARSE_SPECIAL, but, 3, ids, cap, scratch, room);
    Out o = out_new(arena);
    for (int64_t i = 0; i < n; i++) out(&o, "%s%d", i ? " " : "", ids[i]);
    return out_text(&o);
}

static Str text_of(const Tokenizer *t, const char *ids, int flags) {
    Detok d;
    char *piece = arena_alloc(arena, detok_room(t)), *end;
    Out o = out_new(arena);
    detok_begin(&d, t, flags);
    for (long id = strtol(ids, &end, 10); end != ids; ids = end, id = strtol(ids, &end, 10)) {
        size_t n = detok_put(&d, (int32_t) id, piece);
        out(&o, "%.*s|", (int) n, piece);
    }
    out(&o, "%.*s", (int) detok_end(&d, piece), piece);
    return out_text(&o);
}

static const TokenizerOptions plain;

static void check_merges(void) {
    Vocab v = merges_vocab();
    Tokenizer t = opened(&v, &plain);
    CHECK(tok_n_vocab(&t) == 10 && tok_adds_bos(&t) && !tok_adds_eos(&t));
    CHECK_STR(ids_of(&t, S("abc ab a"), TOK_ADD_SPECIAL), "0 7 5 6 8"); // 'a b' is ranked before 'Ġ a'
    CHECK_STR(ids_of(&t, S("a<x><s>b"), 0), "2 9 3");                   // < s > have no tokens and become nothing
    CHECK_STR(ids_of(&t, S("a<x><s>b"), TOK_PARSE_SPECIAL), "2 9 0 3");
    CHECK_STR(ids_of(&t, S(""), 0), "");
    CHECK_STR(text_of(&t, "0 7 5 6 8 1", DETOK_WHOLE), "|abc| |ab| a||");
    CHECK_STR(text_of(&t, "0 7 1", DETOK_SPECIAL), "<s>|abc|</s>|");
    CHECK_STR(text_of(&t, "7 -1 99 7", 0), "abc|||abc|");
    CHECK(tok_is_eog(&t, 1) && !tok_is_eog(&t, 0) && !tok_is_eog(&t, -1) && !tok_is_eog(&t, 10));
    int32_t ids[4];
    char scratch[64];
    CHECK(tokenize(&t, "abc", 3, 0, ids, 4, scratch, 64) == TOK_SCRATCH);
    CHECK(tokenize(&t, "abc", (2u << 30) + 1, 0, ids, 4, scratch, 64) == TOK_TOO_LONG);
    v.add_bos = 0;
    t = opened(&v, &plain);
    CHECK_STR(ids_of(&t, S("a"), TOK_ADD_SPECIAL), "2");
    v.pre = "llama-bpe", v.add_bos = -1; // this name adds BOS, and takes a word that is a token as it is
    v.n_merge = 1;
    t = opened(&v, &plain);
    CHECK_STR(ids_of(&t, S("abc abca"), TOK_ADD_SPECIAL), "0 7 5 6 4 2");
}

// Merges that name no tokens, a token that is empty, bytes of value 0, a character whose bytes are two tokens.
static void check_odd_merges(void) {
    Vocab v = merges_vocab();
    add(&v, "", TOK_NORMAL, 0);
    add(&v, "\u0100", TOK_NORMAL, 0), add(&v, "\u0100\u0100", TOK_NORMAL, 0); // how byte 0 is spelled
    add(&v, "\u00C3", TOK_NORMAL, 0), add(&v, "\u00A9", TOK_NORMAL, 0);
    add(&v, "cab", TOK_NORMAL, 0);
    v.merges[3] = S("\u0100 \u0100");
    v.merges[4] = S("c a"), v.merges[5] = S("ca b");    // ca is no token
    v.merges[6] = S("b b"), v.merges[7] = S("no such"); // nor is bb
    v.n_merge = 8;
    Tokenizer t = opened(&v, &plain);
    CHECK_STR(ids_of(&t, (Str){"\0\0\0", 3}, 0), "12 11");
    CHECK_STR(ids_of(&t, S("ca"), 0), "4 2"); // back to bytes
    CHECK_STR(ids_of(&t, S("bbb"), 0), "3 3 3");
    CHECK_STR(ids_of(&t, S("\xC3\xA9\xC3"), 0), "13 14 13");
    CHECK_STR(text_of(&t, "13 14 13 2 13", 0),
        "|\xC3\xA9||\xC3"
        "a||\xC3");
    size_t n;
    CHECK_STR(((Str){tok_bytes(&t, 10, &n), 10}), "[EMPTY_10]");
    v.bos = 1000, v.eos = 1000, v.add_bos = 0; // out of range: ignored, and the default of this kind (11) is in range
    t = opened(&v, &plain);
    CHECK(tok_role(&t, TOK_BOS) == 11 && tok_role(&t, TOK_EOS) == 11 && tok_role(&t, TOK_UNK) == -1);
}

static void check_specials(void) {
    Vocab v = merges_vocab();
    add(&v, "abca", TOK_USER_DEFINED, 0), add(&v, "bc", TOK_USER_DEFINED, 0), add(&v, "aa", TOK_USER_DEFINED, 0);
    add(&v, "ccbc", TOK_CONTROL, 0), add(&v, "<|im_end|>", TOK_NORMAL, 0), add(&v, "<|end|>", TOK_CONTROL, 0);
    add(&v, "<|return|>", TOK_CONTROL, 0);
    Tokenizer t = opened(&v, &plain);
    CHECK_STR(ids_of(&t, S("bcabcaa"), 0), "11 10 2"); // the longest first, wherever it is; then the shorter ones
    CHECK_STR(ids_of(&t, S("aabca"), 0), "2 10");
    CHECK_STR(ids_of(&t, S("aaaaa"), 0), "12 12 2");
    CHECK_STR(ids_of(&t, S("ccbca"), 0), "4 4 11 2");
    CHECK_STR(ids_of(&t, S("ccbca"), TOK_PARSE_SPECIAL), "13 2");
    CHECK(tok_is_eog(&t, 14) && tok_type(&t, 14) == TOK_CONTROL && tok_role(&t, TOK_EOT) == 14);
    CHECK(tok_is_eog(&t, 15) && tok_is_eog(&t, 16));
    add(&v, "<|call|>", TOK_CONTROL, 0); // with it, <|end|> ends no answer
    t = opened(&v, &plain);
    CHECK(!tok_is_eog(&t, 15) && tok_is_eog(&t, 16) && tok_is_eog(&t, 17));
    Str stops[] = {S("STOP"), S("</s>"), S("abc")};
    TokenizerOptions o = {.stop = stops, .n_stop = 3};
    t = opened(&v, &o);
    size_t n;
    CHECK(tok_n_stop(&t) == 2 && tok_is_eog(&t, 7));
    const char *stop = tok_stop(&t, 0, &n);
    CHECK(n == 4 && !memcmp(stop, "STOP", 4));
    stop = tok_stop(&t, 1, &n);
    CHECK(n == 3 && !memcmp(stop, "abc", 3));
}

static void check_clean(void) {
    Vocab v = merges_vocab();
    const char *const texts[] = {"\u0120.", "\u0120'", "s", "m", "re", "ve", "t", "?", "\u0120\u0120", "'"};
    for (int i = 0; i < COUNT(texts); i++) add(&v, texts[i], TOK_NORMAL, 0); // ids 10 on
    Tokenizer t = opened(&v, &plain);
    CHECK_STR(text_of(&t, "2 10 2", 0), "a| .|a|");
    CHECK_STR(text_of(&t, "2 10 2", DETOK_CLEAN), "a|.|a|");
    CHECK_STR(text_of(&t, "2 11 12 2 11 13 11 14 11 15", DETOK_CLEAN), "a||'s|a||'m||'re||'ve|");
    CHECK_STR(text_of(&t, "2 11 16 11 2", DETOK_CLEAN), "a|| 't|| 'a|");
    CHECK_STR(text_of(&t, "2 11 5 2 5", DETOK_CLEAN), "a||'|a|| "); // both spaces of " ' "
    CHECK_STR(text_of(&t, "2 18 17 5", DETOK_CLEAN), "a| |?|| ");
}

static void check_scores(void) {
    Vocab v = scores_vocab();
    Tokenizer t = opened(&v, &plain);
    CHECK_STR(ids_of(&t, S("ab"), 0), "3 6");
    CHECK_STR(ids_of(&t, S("a"), 0), "7");
    CHECK_STR(ids_of(&t, S(""), TOK_ADD_SPECIAL), "1");
    CHECK_STR(ids_of(&t, S("a a"), TOK_ADD_SPECIAL), "1 7 7");
    CHECK_STR(ids_of(&t, S("\u2581a"), 0), "3 7");          // the character is a space
    CHECK_STR(ids_of(&t, S("\xC3\xA9\xFF"), 0), "3 8 9 0"); // bytes, and the unknown token where a byte has none
    CHECK_STR(ids_of(&t, S("a<x>a<s>a"), 0), "7 10 7 0 0 0 4");
    CHECK_STR(ids_of(&t, S("a<x>a<s>a"), TOK_PARSE_SPECIAL), "7 10 7 1 7");
    CHECK_STR(ids_but(&t, S("a<x>a<s>a"), 5, 8), "7 10 7 0 0 0 4"); // text, without a space of its own
    CHECK_STR(ids_but(&t, S("a<x>a<s>a"), 7, 8), "7 10 7 0 0 0 4"); // a part of it is enough
    CHECK_STR(ids_but(&t, S("a<x>a<s>a"), 8, 9), "7 10 7 1 7");     // beside it
    CHECK_STR(ids_but(&t, S("a<s>a<s>a"), 1, 4), "7 0 0 0 4 1 7");  // that one alone
    CHECK_STR(ids_but(&t, S("<x>"), 0, 3), "10");                   // user-defined ones are read anywhere
    CHECK_STR(text_of(&t, "1 7 6 8 9 2", DETOK_WHOLE), "|a|ab||\xC3\xA9||");
    CHECK_STR(text_of(&t, "7 7", 0), " a| a|");
    CHECK_STR(text_of(&t, "7 10 7 1 7", DETOK_WHOLE | DETOK_SPECIAL), "a|<x>|a|<s>|a|");
    v.add_space = 0, v.add_bos = 0;
    t = opened(&v, &plain);
    CHECK_STR(ids_of(&t, S("a"), TOK_ADD_SPECIAL), "4");
    CHECK_STR(text_of(&t, "7", DETOK_WHOLE), " a|");
}

// ---- errors ----

static void fails(const Vocab *v, const TokenizerOptions *o, const char *message) {
    const Gguf *g = written(v);
    CHECK_FAILS(tokenizer_build(arena, g, o), message);
}

static void check_errors(void) {
    Vocab m = merges_vocab(), s = scores_vocab(), v = m;
    v.model = "nonesuch";
    fails(&v, &plain,
        "tokenizer kind 'nonesuch' (tokenizer.ggml.model) is not one of those known: llama, gpt2, hybriddna, "
        "whitespace, gemma4, t5, bert, rwkv, plamo2; --no-tokenizer builds without it");
    CHECK(tokenizer_build(arena, written(&v), &(TokenizerOptions){.none = true}).n == 0);
    v.model = "none";
    CHECK(tokenizer_build(arena, written(&v), &plain).n == 0);
    v.model = NULL;
    CHECK(tokenizer_build(arena, written(&v), &plain).n == 0);
    v = m, v.pre = "qwen-2";
    fails(&v, &plain,
        "pre-tokenizer 'qwen-2' is not known (the nearest name is 'qwen2'); --pre=NAME takes another one "
        "in its place, --no-tokenizer builds without a tokenizer");
    CHECK(tokenizer_build(arena, written(&v), &(TokenizerOptions){.pre = S("qwen2")}).n > 0);
    v = m, v.n_token = -1;
    fails(&v, &plain, "tokenizer.ggml.tokens is missing; --no-tokenizer builds without a tokenizer");
    v = m, v.n_token = 0;
    fails(&v, &plain, "tokenizer.ggml.tokens has 0 elements, expected 1 to 8388607");
    v = m, v.tokens[4] = S("ab");
    fails(&v, &plain, "tokenizer.ggml.tokens has 'ab' twice, at 4 and 6");
    v = m, v.n_type = 3;
    fails(&v, &plain, "tokenizer.ggml.token_type has 3 elements, expected 10, as many as tokenizer.ggml.tokens");
    v = m, v.types[3] = 7;
    fails(&v, &plain, "tokenizer.ggml.token_type of token 3 is not 0 to 6");
    v = m, v.types[3] = TOK_BYTE;
    fails(&v, &plain, "token 3, 'b', is of type byte but not spelled like <0x0A>");
    v = m, v.n_merge = -1;
    fails(&v, &plain,
        "tokenizer.ggml.merges is missing, which this kind of tokenizer needs; --no-tokenizer "
        "builds without one");
    v = m, v.merges[1] = S("abc");
    fails(&v, &plain, "tokenizer.ggml.merges[1] is 'abc', expected two parts with a space between");
    v = m, v.merges[1] = S("abc ");
    fails(&v, &plain, "tokenizer.ggml.merges[1] is 'abc ', expected two parts with a space between");
    v = m, v.merges[1] = S("");
    fails(&v, &plain, "tokenizer.ggml.merges[1] is '', expected two parts with a space between");
    v = m, v.bos = v.eos = -1; // the default, 11, is no token here
    fails(&v, &plain, "the tokenizer begins a text with BOS, but tokenizer.ggml.bos_token_id names no token");
    v = s, v.n_score = -1;
    fails(&v, &plain,
        "tokenizer.ggml.scores is missing, which this kind of tokenizer needs; --no-tokenizer "
        "builds without one");
    v = s, v.n_score = 2;
    fails(&v, &plain, "tokenizer.ggml.scores has 2 elements, expected 11, as many as tokenizer.ggml.tokens");
    v = s, v.scores[4] = NAN;
    fails(&v, &plain, "tokenizer.ggml.scores[4] is not a number");
    static const char *const odd[][2] = {
        {"model", "a string"},
        {"pre", "a string"},
        {"tokens", "an array"},
        {"merges", "an array"},
        {"token_type", "an array"},
        {"bos_token_id", "the number of a token"},
        {"unknown_token_id", "the number of a token"},
        {"add_bos_token", "a bool"},
        {"add_space_prefix", "a bool"},
        {"suppress_tokens", "an array"},
    };
    for (int i = 0; i < COUNT(odd); i++) {
        v = m, v.odd = odd[i][0];
        fails(&v, &plain, str_fmt(arena, "tokenizer.ggml.%s is f32, expected %s", odd[i][0], odd[i][1]).p);
    }
    v = s, v.odd = "scores";
    fails(&v, &plain, "tokenizer.ggml.scores is f32, expected an array");
    v = m;
    fails(&v, &(TokenizerOptions){.stop = &(Str){"", 0}, .n_stop = 1}, "--stop needs a text");
}

// ---- merging against a naive copy: the best-ranked neighbours in the whole word, one pair at a time ----

typedef struct {
    const GgufValue *merges, *tokens;
} Naive;

static int rank_of(const Naive *v, Str left, Str right) {
    for (uint64_t i = 0; i < v->merges->n; i++) {
        Str m = v->merges->str[i];
        if (m.n == left.n + right.n + 1 && !memcmp(m.p, left.p, left.n) && m.p[left.n] == ' ' &&
            !memcmp(m.p + left.n + 1, right.p, right.n))
            return (int) i;
    }
    return -1;
}

static Str naive_ids(const Naive *v, Str word) { // lower-case letters only, which spell themselves
    Str part[400];
    int n = 0;
    for (size_t i = 0; i < word.n; i++) part[n++] = (Str){word.p + i, 1};
    for (;;) {
        int best = -1, at = 0;
        for (int i = 0; i + 1 < n; i++) {
            int rank = rank_of(v, part[i], part[i + 1]);
            if (rank >= 0 && (best < 0 || rank < best)) best = rank, at = i;
        }
        if (best < 0) break;
        part[at].n += part[at + 1].n;
        memmove(part + at + 1, part + at + 2, (size_t) (--n - at - 1) * sizeof *part);
    }
    Out o = out_new(arena);
    for (int i = 0; i < n; i++)
        for (uint64_t id = 0; id < v->tokens->n; id++)
            if (str_eq(v->tokens->str[id], part[i])) out(&o, "%s%d", i ? " " : "", (int) id);
    return out_text(&o);
}

static uint32_t random_below(uint32_t n) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (state >> 33) % n;
}

static void check_naive(const Gguf *g) {
    Naive naive = {&gguf_key(g, S("tokenizer.ggml.merges"))->v, &gguf_key(g, S("tokenizer.ggml.tokens"))->v};
    Tokenizer t;
    Str blob = tokenizer_build(arena, g, &plain);
    CHECK(tokenizer_open(&t, blob.p, blob.n));
    for (int i = 0; i < 120; i++) { // around the length at which the method changes, and far beyond
        char word[300];
        size_t n = i < 100 ? 1 + random_below(60) : 200 + random_below(100);
        const char *letters = i % 3 ? "etaoinshrdlu" : "the";
        for (size_t k = 0; k < n; k++) word[k] = letters[random_below((uint32_t) strlen(letters))];
        Str want = naive_ids(&naive, (Str){word, n});
        CHECK_STR(ids_of(&t, (Str){word, n}, 0), str_z(arena, want));
    }
}

// Whatever the bytes, ids print as those bytes; and a text of any run is no trouble.
static void check_round_trips(const Gguf *g) {
    Tokenizer t;
    Str blob = tokenizer_build(arena, g, &plain);
    CHECK(tokenizer_open(&t, blob.p, blob.n));
    static const char *const bits[] = {
        "the ", "And God said", "\n\n", "  ", "'s", "42", "\xC3\xA9", "\xE2\x82", "\xF0\x9F\x98\x80", "\xFF"};
    for (int i = 0; i < 400; i++) {
        char text[512];
        size_t n = 0;
        for (uint32_t k = random_below(12); k; k--) {
            const char *bit = bits[random_below(COUNT(bits))];
            if (random_below(9) == 0) text[n++] = (char) random_below(256);
            memcpy(text + n, bit, strlen(bit));
            n += strlen(bit);
        }
        int32_t ids[600];
        char scratch[40000], back[600], piece[600];
        CHECK(tokenize_scratch(&t, n) <= sizeof scratch && tokenize_max_ids(&t, n) <= 600);
        CHECK(detok_room(&t) <= sizeof piece);
        int64_t count = tokenize(&t, text, n, TOK_ADD_SPECIAL, ids, 600, scratch, sizeof scratch);
        CHECK(count >= 1 && ids[0] == 0);
        Detok d;
        size_t at = 0;
        detok_begin(&d, &t, DETOK_WHOLE);
        for (int64_t k = 0; k <= count && at < sizeof back; k++) {
            size_t got = k < count ? detok_put(&d, ids[k], piece) : detok_end(&d, piece);
            CHECK(at + got <= sizeof back);
            memcpy(back + at, piece, got);
            at += got;
        }
        CHECK(at == n && !memcmp(back, text, n));
    }
}

// Long runs must not cost more than their length: 200 KB in a moment, where the square of it would take minutes.
static void check_long(const Gguf *g, const char *pre) {
    Tokenizer t;
    Str blob = tokenizer_build(arena, g, &(TokenizerOptions){.pre = str(pre)});
    CHECK(tokenizer_open(&t, blob.p, blob.n));
    size_t n = 200000, room = tokenize_scratch(&t, n), cap = tokenize_max_ids(&t, n);
    char *text = malloc(n);
    int32_t *ids = malloc(cap * sizeof *ids);
    void *scratch = malloc(room);
    static const char *const runs[] = {
        "a", " ", "\n", "1", "'", "\t", " \n", "aA", "\n ", "<", "\xE4\xB8\x80", "a1", "\xCC\x81", "\xFF", "IMG"};
    for (int i = 0; i < COUNT(runs); i++) {
        size_t length = strlen(runs[i]);
        for (size_t k = 0; k < n; k++) text[k] = runs[i][k % length];
        text[n - 1] = 'x';
        double from = now_seconds();
        CHECK(tokenize(&t, text, n, 0, ids, cap, scratch, room) > 0);
        double took = now_seconds() - from;
        if (took > 5) printf("pre-tokenizer %s on a run of '%s': %.1f s\n", pre, runs[i], took);
        CHECK(took < 5);
    }
    free(text), free(ids), free(scratch);
}

int main(void) {
    quiet = true;
    arena = arena_new();
    check_merges();
    check_odd_merges();
    check_specials();
    check_clean();
    check_scores();
    check_errors();
    static const Gguf *tales;
    tales = gguf_open("tests/data/tales.gguf");
    check_naive(tales);
    check_round_trips(tales);
    static const char *const pres[][2] = {
#define PRE(name, splitter, flags) {name, #splitter},
#include "pretok.def"
    };
    for (int i = 0; i < COUNT(pres); i++) // one name a splitter
        if (!i || strcmp(pres[i][1], pres[i - 1][1]) != 0) check_long(tales, pres[i][0]);
    return check_done();
}
