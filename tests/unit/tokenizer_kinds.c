// The kinds of tokenizers that do not merge: Unigram, WordPiece, the longest token, the table. Made vocabularies, and
// metadata that is broken.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/tokenizer.h"
#include "check.h"
#include "tokenizer.h"

typedef struct {
    const char *model;
    Str tokens[300];
    float scores[300];
    int32_t types[300];
    int n_token;
    bool no_scores;
    int bos, eos, unk, sep, cls;            // -1: absent
    int space, trim, lower, strip, add_bos; // -1: absent
    Str map;                                // empty: absent
    GgufKind map_elem;
} Vocab;

static Arena *arena;
static const TokenizerOptions plain;

static Vocab empty(const char *model) {
    return (Vocab){.model = model,
        .bos = -1,
        .eos = -1,
        .unk = -1,
        .sep = -1,
        .cls = -1,
        .space = -1,
        .trim = -1,
        .lower = -1,
        .strip = -1,
        .add_bos = -1,
        .map_elem = GGUF_U8};
}

static void add(Vocab *v, const char *token, int type, float score) {
    v->types[v->n_token] = type;
    v->scores[v->n_token] = score;
    v->tokens[v->n_token++] = str(token);
}

static void put_id(GgufWriter *w, const char *key, int id) {
    if (id >= 0) gguf_put_u32(w, str_fmt(arena, "tokenizer.ggml.%s_token_id", key), (uint32_t) id);
}

static void put_flag(GgufWriter *w, const char *key, int flag) {
    if (flag >= 0) gguf_put_bool(w, str_fmt(arena, "tokenizer.ggml.%s", key), flag);
}

static const Gguf *written(const Vocab *v) {
    static const Gguf *all[200]; // open to the end
    static int count;
    const char *path = str_fmt(arena, "%s/kind-%d.gguf", temp_dir(), count).p;
    GgufWriter *w = gguf_create(path);
    gguf_put_str(w, S("general.architecture"), S("none"));
    gguf_put_str(w, S("tokenizer.ggml.model"), str(v->model));
    gguf_put_array(w, S("tokenizer.ggml.tokens"), GGUF_STR, v->tokens, (uint64_t) v->n_token);
    gguf_put_array(w, S("tokenizer.ggml.token_type"), GGUF_I32, v->types, (uint64_t) v->n_token);
    if (!v->no_scores) gguf_put_array(w, S("tokenizer.ggml.scores"), GGUF_F32, v->scores, (uint64_t) v->n_token);
    put_id(w, "bos", v->bos), put_id(w, "eos", v->eos), put_id(w, "unknown", v->unk);
    put_id(w, "seperator", v->sep), put_id(w, "cls", v->cls);
    put_flag(w, "add_space_prefix", v->space), put_flag(w, "remove_extra_whitespaces", v->trim);
    put_flag(w, "normalizer.lowercase", v->lower), put_flag(w, "normalizer.strip_accents", v->strip);
    put_flag(w, "add_bos_token", v->add_bos);
    size_t size = v->map_elem == GGUF_U8 || v->map_elem == GGUF_I8 ? 1 : 4;
    if (v->map.n) gguf_put_array(w, S("tokenizer.ggml.precompiled_charsmap"), v->map_elem, v->map.p, v->map.n / size);
    gguf_begin_data(w);
    gguf_finish(w);
    if (count == COUNT(all)) fail("more vocabularies than this test has room for");
    return all[count++] = gguf_open(path);
}

static Tokenizer opened(const Vocab *v) {
    Tokenizer t = {0};
    Str blob = tokenizer_build(arena, written(v), &plain);
    CHECK(tokenizer_open(&t, blob.p, blob.n));
    return t;
}

static Str ids_of(const Tokenizer *t, Str text, int flags) {
    size_t room = tokenize_scratch(t, text.n), cap = tokenize_max_ids(t, text.n);
    char *scratch = malloc(room); // of just this size, for the sanitizer
    int32_t *ids = malloc(cap * sizeof *ids);
    int64_t n = tokenize(t, text.p, text.n, flags, ids, cap, scratch, room);
    CHECK(n >= 0 && n <= (int64_t) cap);
    if (n > 0) CHECK(tokenize(t, text.p, text.n, flags, ids, (size_t) n - 1, scratch, room) == TOK_FULL);
    if (n > 0) CHECK(tokenize(t, text.p, text.n, flags, ids, (size_t) n, scratch, room) == n);
    Out o = out_new(arena);
    for (int64_t i = 0; i < n; i++) out(&o, "%s%d", i ? " " : "", ids[i]);
    free(scratch), free(ids);
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

static void fails(const Vocab *v, const char *message) {
    const Gguf *g = written(v);
    CHECK_FAILS(tokenizer_build(arena, g, &plain), message);
}

static Str repeated(const char *what, size_t n) {
    size_t length = strlen(what);
    char *p = arena_alloc(arena, n * length + 1);
    for (size_t i = 0; i < n; i++) memcpy(p + i * length, what, length);
    return (Str){p, n * length};
}

static void is_fast(const Tokenizer *t, const char *what) { // a quadratic time would be minutes
    Str text = repeated(what, 200000);
    size_t room = tokenize_scratch(t, text.n), cap = tokenize_max_ids(t, text.n);
    char *scratch = malloc(room);
    int32_t *ids = malloc(cap * sizeof *ids);
    double from = now_seconds();
    CHECK(tokenize(t, text.p, text.n, 0, ids, cap, scratch, room) >= 0);
    CHECK(now_seconds() - from < 5);
    free(scratch), free(ids);
}

// ---- Unigram ----

static Vocab unigram(void) { // <pad> </s> <unk> ▁ a b ab ▁a aba <x> é, unused c
    Vocab v = empty("t5");
    add(&v, "<pad>", TOK_CONTROL, 0), add(&v, "</s>", TOK_CONTROL, 0), add(&v, "<unk>", TOK_UNKNOWN, 0);
    add(&v, "\u2581", TOK_NORMAL, -4), add(&v, "a", TOK_NORMAL, -3), add(&v, "b", TOK_NORMAL, -3);
    add(&v, "ab", TOK_NORMAL, -4), add(&v, "\u2581a", TOK_NORMAL, -5), add(&v, "aba", TOK_NORMAL, -6.5f);
    add(&v, "<x>", TOK_USER_DEFINED, 0), add(&v, "\u00E9", TOK_NORMAL, -5), add(&v, "c", TOK_UNUSED, -6);
    v.space = 1, v.trim = 1;
    return v;
}

static void check_unigram(void) {
    Vocab v = unigram();
    Tokenizer t = opened(&v);
    CHECK_STR(ids_of(&t, S("a"), TOK_ADD_SPECIAL), "7 1");
    CHECK_STR(ids_of(&t, S("aba"), 0), "3 8"); // -4 -6.5 is better than -5 -3 -3
    CHECK_STR(
        ids_of(&t, S("  ab   c "), 0), "3 6 3 11"); // spaces trimmed; -4 -4 equals -5 -3, and the last token is longer
    CHECK_STR(ids_of(&t, S("   "), TOK_ADD_SPECIAL), "1");
    CHECK_STR(ids_of(&t, S(""), 0), "");
    CHECK_STR(ids_of(&t, S("a\u2581b"), 0), "7 3 5");
    CHECK_STR(ids_of(&t, S("xyz\xFF\xC3 a"), 0), "3 2 7"); // a run of unknown ones is one
    CHECK_STR(ids_of(&t, S("a<x>a</s>"), 0), "7 9 7 2");
    CHECK_STR(ids_of(&t, S("a<x>a</s>"), TOK_PARSE_SPECIAL), "7 9 7 1");
    CHECK_STR(text_of(&t, "7 5 3 11 1", DETOK_WHOLE), "a|b| |c||");
    v.trim = 0, v.space = 0;
    t = opened(&v);
    CHECK_STR(ids_of(&t, S(" a  "), 0), "7 3 3");
    v.space = 1;
    t = opened(&v);
    CHECK_STR(ids_of(&t, S(" "), 0), "3 3");
    is_fast(&t, "a"), is_fast(&t, "ab"), is_fast(&t, " "), is_fast(&t, "\xFF"), is_fast(&t, "z"), is_fast(&t, "<x");
    for (int i = 0; i < 256; i++) add(&v, str_fmt(arena, "<0x%02X>", (unsigned) i).p, TOK_BYTE, 0); // 12 on
    t = opened(&v);
    CHECK_STR(ids_of(&t, S("a\u00FCa"), 0), "7 207 200 4"); // C3 BC
}

// A map: "x" to "ab", "xy" to "" and "\xFF" to "c". Entries as SentencePiece lays them out.
static Str made_map(void) {
    static uint8_t bytes[4 + 4 * 512 + 6];
    uint32_t entry[512] = {0}, n = sizeof entry;
    entry[0] = 1 << 10;                                      // the root's children at 1 ^ byte
    entry[1 ^ 'x'] = 'x' | 1 << 8 | ((1 ^ 'x') ^ 256) << 10; // its children, and its end, at 256 ^ byte
    entry[256] = 1u << 31 | 0;
    entry[256 ^ 'y'] = 'y' | 1 << 8 | ((256 ^ 'y') ^ 511) << 10;
    entry[511] = 1u << 31 | 3;
    entry[1 ^ 0xFF] = 0xFF | 1 << 8 | ((1 ^ 0xFF) ^ 510) << 10;
    entry[510] = 1u << 31 | 4;
    memcpy(bytes, &n, 4);
    memcpy(bytes + 4, entry, sizeof entry);
    memcpy(bytes + 4 + sizeof entry, "ab\0\0c", 6);
    return (Str){(const char *) bytes, sizeof bytes};
}

static void check_map(void) {
    Vocab v = unigram();
    v.map = made_map();
    Tokenizer t = opened(&v);
    CHECK_STR(ids_of(&t, S("x"), 0), "3 6");
    CHECK_STR(ids_of(&t, S("xyx"), 0), "3 6");
    CHECK_STR(ids_of(&t, S("xy"), 0), "");
    CHECK_STR(ids_of(&t, S("a\xFF"), 0), "7 11");
    is_fast(&t, "x"), is_fast(&t, "xy");

    uint8_t *b = (uint8_t *) v.map.p;
    uint32_t *entry = (uint32_t *) (void *) (b + 4), keep;
    keep = entry[256], entry[256] = 1u << 31 | 100;
    fails(&v, "tokenizer.ggml.precompiled_charsmap has no replacement for 'x' where it says");
    entry[256] = keep;
    b[sizeof(uint32_t) + 2048] = 0xFF;
    fails(&v, "tokenizer.ggml.precompiled_charsmap replaces 'x' by what is not UTF-8");
    b[sizeof(uint32_t) + 2048] = 'a';
    b[4 + 2048 + 5] = 'c'; // no NUL at the end
    fails(&v, "tokenizer.ggml.precompiled_charsmap has no replacement for '\\xff' where it says");
    b[4 + 2048 + 5] = 0;
    keep = entry[1 ^ 'x'], entry[1 ^ 'x'] = 'x' | ((1 ^ 'x') ^ 1) << 10; // back to the root's children
    fails(&v, "tokenizer.ggml.precompiled_charsmap has a sequence of more than 64 bytes, or too many sequences");
    entry[1 ^ 'x'] = keep;
    b[0] = 1;
    fails(&v,
        "tokenizer.ggml.precompiled_charsmap says that 2049 of its bytes are entries, expected a multiple of 4 up to "
        "2054");
    b[0] = 0, b[1] = 255;
    fails(&v,
        "tokenizer.ggml.precompiled_charsmap says that 65280 of its bytes are entries, expected a multiple of 4 up "
        "to 2054");
    b[1] = 8;
    v.map_elem = GGUF_F32, v.map.n = 8;
    fails(&v, "tokenizer.ggml.precompiled_charsmap is an array of f32, expected an array of bytes");
    v.map_elem = GGUF_U8, v.map.n = 5;
    fails(&v, "tokenizer.ggml.precompiled_charsmap has 5 bytes, expected 8 to 16777216");
}

static void check_unigram_errors(void) {
    Vocab v = unigram();
    v.no_scores = true;
    fails(
        &v, "tokenizer.ggml.scores is missing, which this kind of tokenizer needs; --no-tokenizer builds without one");
    v = unigram(), v.scores[4] = NAN;
    fails(&v, "tokenizer.ggml.scores[4] is not a number");
    v = unigram(), v.scores[4] = -INFINITY;
    fails(&v, "tokenizer.ggml.scores[4] is not a number");
    v = empty("t5");
    add(&v, "a", TOK_NORMAL, 0);
    fails(&v,
        "the tokenizer has no token for a character that no token covers: tokenizer.ggml.unknown_token_id names "
        "none, and not all bytes have one");
}

// ---- WordPiece ----

static Vocab wordpiece(void) { // [PAD] [UNK] [CLS] [SEP] [MASK], hello ##o he ##l ! é 世 ##s
    Vocab v = empty("bert");
    static const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    static const char *const words[] = {"\u2581hello", "o", "\u2581he", "l", "\u2581!", "\u2581\u00E9", "\u2581\u4E16",
        "s", "\u2581e", "\u2581[", "\u1100", "\u1161", "\u11A8", "\u2581\u1100"};
    for (int i = 0; i < COUNT(special); i++) add(&v, special[i], TOK_CONTROL, 0);
    for (int i = 0; i < COUNT(words); i++) add(&v, words[i], TOK_NORMAL, 0); // 5 on
    v.unk = 1, v.cls = 2, v.sep = 3;
    return v;
}

static void check_words(void) {
    Vocab v = wordpiece();
    Tokenizer t = opened(&v);
    CHECK_STR(ids_of(&t, S("Hello"), TOK_ADD_SPECIAL), "2 5 3");
    CHECK_STR(ids_of(&t, S("hellos HELLOO\they"), 0), "5 12 5 6 1");
    CHECK_STR(ids_of(&t, S("hello!hello"), 0), "5 9 5");
    CHECK_STR(ids_of(&t, S("\u4E16\u4E16l"), 0), "11 11 1"); // a word by itself each; and l begins no word
    CHECK_STR(ids_of(&t, S("\u00C9 e\u0301"), 0), "13 13");
    CHECK_STR(ids_of(&t, S("\uAC01"), 0), "18 16 17");       // a syllable is its letters
    CHECK_STR(ids_of(&t, (Str){"he\0llo \xFF", 8}, 0), "5"); // what is dropped parts no word
    CHECK_STR(ids_of(&t, S("[MASK]"), 0), "14 1 1");
    CHECK_STR(ids_of(&t, S("hello[MASK]"), TOK_PARSE_SPECIAL | TOK_ADD_SPECIAL), "2 5 4 3");
    CHECK_STR(ids_of(&t, str_fmt(arena, "he%.*s o", 98, repeated("l", 98).p), 0),
        str_fmt(arena, "7 %.*s1", 98 * 2, repeated("8 ", 98).p).p); // 100 characters are a word, 101 are not
    CHECK_STR(ids_of(&t, str_fmt(arena, "he%.*s", 99, repeated("l", 99).p), 0), "1");
    CHECK_STR(text_of(&t, "2 5 12 9 5 3", DETOK_WHOLE), "|hello|s| !| hello||");
    CHECK_STR(text_of(&t, "2 5 12 9 5 3", DETOK_WHOLE | DETOK_CLEAN), "|hello|s|!| hello||");
    is_fast(&t, "l"), is_fast(&t, "hel"), is_fast(&t, " "), is_fast(&t, "!"), is_fast(&t, "\xFF");
    v.lower = 0;
    t = opened(&v);
    CHECK_STR(ids_of(&t, S("hello Hello \u00E9"), 0), "5 1 10");
    v.lower = 1, v.strip = 0;
    t = opened(&v);
    CHECK_STR(ids_of(&t, S("HELLO \u00C9"), 0), "5 10");
    v.sep = -1;
    fails(&v, "the tokenizer ends a text with SEP, but tokenizer.ggml.seperator_token_id names no token");
    v.sep = 3, v.cls = -1;
    fails(&v, "the tokenizer begins a text with BOS, but tokenizer.ggml.bos_token_id names no token");
    v.cls = 2, v.unk = -1;
    fails(&v, "the tokenizer has no token for a word that no tokens spell: tokenizer.ggml.unknown_token_id names none");
}

// ---- the longest token ----

static void check_longest(void) {
    Vocab v = empty("rwkv");
    static const char *const tokens[] = {
        "a", "ab", "abcd", "\\n", "\\x00", "\\xc3", "\\xc3\\xa9", "\\\\", "\\'", "</s>"};
    add(&v, "<s>", TOK_CONTROL, 0);
    for (int i = 0; i < COUNT(tokens); i++) add(&v, tokens[i], TOK_NORMAL, 0);
    v.add_bos = 1; // this kind has none
    Tokenizer t = opened(&v);
    CHECK_STR(ids_of(&t, S("abcabcdab"), TOK_ADD_SPECIAL), "2 3 2"); // b and c have no token: nothing
    CHECK_STR(ids_of(&t, (Str){"\n\0\xC3\xA9\xC3\\'", 7}, 0), "4 5 7 6 8 9");
    CHECK_STR(ids_of(&t, S("a<s>a</s>"), 0), "1 1 10"); // <s> only if it is read as that; </s> is a token as any
    CHECK_STR(ids_of(&t, S("a<s>a"), TOK_PARSE_SPECIAL), "1 0 1");
    CHECK_STR(text_of(&t, "4 6 1 7 8 9", 0),
        "\n||\xC3"
        "a|\u00E9|\\|'|");
    is_fast(&t, "abc"), is_fast(&t, "z");
    v.unk = 0;
    t = opened(&v);
    CHECK_STR(ids_of(&t, S("abz"), 0), "2 0");
    add(&v, "\\x4", TOK_NORMAL, 0);
    fails(&v, "token 11, '\\\\x4', has \\x without two hexadecimal digits");
    v.tokens[11] = S("b\\");
    fails(&v, "token 11, 'b\\\\', ends in a backslash");
}

// ---- the table ----

static void check_table(void) {
    Vocab v = empty("plamo2");
    static const char *const special[] = {"<|plamo:unk|>", "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>"};
    for (int i = 0; i < COUNT(special); i++) add(&v, special[i], i ? TOK_CONTROL : TOK_UNKNOWN, 0);
    for (int i = 0; i < 256; i++) add(&v, str_fmt(arena, "<0x%02X>", (unsigned) i).p, TOK_BYTE, 0);
    add(&v, "a", TOK_NORMAL, -3), add(&v, "b", TOK_NORMAL, -3), add(&v, "ab", TOK_NORMAL, -6); // 260 261 262
    add(&v, "ba", TOK_NORMAL, -2), add(&v, "\u00E9", TOK_NORMAL, -1), add(&v, "q", TOK_NORMAL, -INFINITY);
    Tokenizer t = opened(&v);
    CHECK_STR(ids_of(&t, S("ab"), TOK_ADD_SPECIAL), "262"); // as good as a b, and longer
    CHECK_STR(ids_of(&t, S("aba"), 0), "260 263");
    CHECK_STR(ids_of(&t, S("\uFEFFa\u00E9"), 0), "260 264");
    CHECK_STR(ids_of(&t, S("q\u00E8\xC3"), 0), "117 199 172 199"); // bytes: 4 on
    CHECK_STR(ids_of(&t, S("<|plamo:eos|>"), TOK_PARSE_SPECIAL), "2");
    CHECK_STR(text_of(&t, "260 199 173 2", DETOK_WHOLE), "a||\u00E9||");
    is_fast(&t, "a"), is_fast(&t, "ab"), is_fast(&t, "\xC3"), is_fast(&t, "\u4E16");
    v.add_bos = 1;
    t = opened(&v);
    CHECK_STR(ids_of(&t, S("a"), TOK_ADD_SPECIAL), "1 260");
    v.scores[260] = 1e9f;
    fails(&v, "tokenizer.ggml.scores[260] is 1e+09, expected at most 214748");
    v.scores[260] = -3, v.types[9] = TOK_NORMAL;
    fails(&v, "the tokenizer has tokens for 255 bytes (<0x00> to <0xFF>, of type byte), expected 256");
}

int main(void) {
    quiet = true;
    arena = arena_new();
    check_unigram();
    check_map();
    check_unigram_errors();
    check_words();
    check_longest();
    check_table();
    return check_done();
}
