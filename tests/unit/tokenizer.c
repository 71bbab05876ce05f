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
} Vocab;

static Arena *arena;

static const Gguf *written(const Vocab *v) {
    static int count;
    const char *path = str_fmt(arena, "%s/vocab-%d.gguf", temp_dir(), count++).p;
    GgufWriter *w = gguf_create(path);
    gguf_put_str(w, S("general.architecture"), S("none"));
    if (v->model) gguf_put_str(w, S("tokenizer.ggml.model"), str(v->model));
    if (v->pre) gguf_put_str(w, S("tokenizer.ggml.pre"), str(v->pre));
    if (v->n_token >= 0) gguf_put_array(w, S("tokenizer.ggml.tokens"), GGUF_STR, v->tokens, (uint64_t) v->n_token);
    if (v->n_merge >= 0) gguf_put_array(w, S("tokenizer.ggml.merges"), GGUF_STR, v->merges, (uint64_t) v->n_merge);
    if (v->n_score >= 0) gguf_put_array(w, S("tokenizer.ggml.scores"), GGUF_F32, v->scores, (uint64_t) v->n_score);
    if (v->n_type >= 0) gguf_put_array(w, S("tokenizer.ggml.token_type"), GGUF_I32, v->types, (uint64_t) v->n_type);
    if (v->bos >= 0) gguf_put_u32(w, S("tokenizer.ggml.bos_token_id"), (uint32_t) v->bos);
    if (v->eos >= 0) gguf_put_u32(w, S("tokenizer.ggml.eos_token_id"), (uint32_t) v->eos);
    if (v->unk >= 0) gguf_put_u32(w, S("tokenizer.ggml.unknown_token_id"), (uint32_t) v->unk);
    if (v->add_bos >= 0) gguf_put_bool(w, S("tokenizer.ggml.add_bos_token"), v->add_bos);
    if (v->add_space >= 0) gguf_put_bool(w, S("tokenizer.ggml.add_space_prefix"), v->add_space);
    gguf_begin_data(w);
    gguf_finish(w);
    return gguf_open(path);
}

static void add(Vocab *v, const char *token, int type, float score) {
    v->types[v->n_token] = type;
    v->scores[v->n_token] = score;
    v->tokens[v->n_token++] = str(token);
    v->n_type = v->n_token;
    if (v->n_score >= 0) v->n_score = v->n_token;
}

static Vocab merges_vocab(void) { // <s> </s> a b c Ġ ab abc Ġa, <x>
    Vocab v = {.model = "gpt2", .pre = "gpt-2", .n_score = -1, .bos = 0, .eos = 1, .unk = -1, .add_bos = 1, .add_space = -1};
    add(&v, "<s>", TOK_CONTROL, 0), add(&v, "</s>", TOK_CONTROL, 0);
    add(&v, "a", TOK_NORMAL, 0), add(&v, "b", TOK_NORMAL, 0), add(&v, "c", TOK_NORMAL, 0), add(&v, "\u0120", TOK_NORMAL, 0);
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
    if (n > 0) CHECK(tokenize(t, text.p, text.n, flags, ids, (size_t) n - 1, arena_alloc(arena, room), room) == TOK_FULL);
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
        CHECK(utf8_valid(piece, n)); // as long as the tokens are text
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
    CHECK_STR(ids_of(&t, S("abc ab"), 0), "7 8 3"); // 'Ġ a' is ranked below 'a b', but Ġab has no merge: 5 6?
}

static void check_scores(void) {
    Vocab v = scores_vocab();
    Tokenizer t = opened(&v, &plain);
    CHECK_STR(ids_of(&t, S("ab"), 0), "3 6");
    CHECK_STR(ids_of(&t, S("a"), 0), "7");
    CHECK_STR(ids_of(&t, S(""), TOK_ADD_SPECIAL), "1");
    CHECK_STR(ids_of(&t, S("a a"), TOK_ADD_SPECIAL), "1 7 7");
    CHECK_STR(ids_of(&t, S("\u2581a"), 0), "3 7");       // the character is a space
    CHECK_STR(ids_of(&t, S("\xC3\xA9\xFF"), 0), "3 8 9 0"); // bytes, and the unknown token where a byte has none
    CHECK_STR(ids_of(&t, S("a<x>a<s>a"), 0), "7 10 7 0 0 0 4");
    CHECK_STR(ids_of(&t, S("a<x>a<s>a"), TOK_PARSE_SPECIAL), "7 10 7 1 7");
    CHECK_STR(text_of(&t, "1 7 6 8 9 2", DETOK_WHOLE), "|a|ab||\xC3\xA9||");
    CHECK_STR(text_of(&t, "7 7", 0), " a| a|");
    CHECK_STR(text_of(&t, "7 10 7 1 7", DETOK_WHOLE | DETOK_SPECIAL), "a|<x>|a|<s>|a|");
    v.add_space = 0, v.add_bos = 0;
    t = opened(&v, &plain);
    CHECK_STR(ids_of(&t, S("a"), TOK_ADD_SPECIAL), "4");
    CHECK_STR(text_of(&t, "7", DETOK_WHOLE), " a|");
}

int main(void) {
    quiet = true;
    arena = arena_new();
    check_merges();
    check_scores();
    return check_done();
}
