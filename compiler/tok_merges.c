// Vocabularies that merge by rank (byte-level BPE). In: tokens, merges, the pre-tokenizer's name. Out: keys,
// merges and splitters. The one idea: a merge may name parts that are no tokens; they become symbols too, and
// a symbol without a token turns back into bytes at the end.
#include <string.h>

#include "tok_build.h"
#include "unicode.h"

enum { // flags of pretok.def
    IGNORE_MERGES = 1,
    ADD_BOS = 2,
    NO_BOS = 4,
    ALWAYS_BOS = 8,
    KEEP_SPACES = 16,
    RAW = 32,
    SPACES = 64,
    NEWLINES = 128,
    CASED = 256
};

typedef struct {
    const char *name, *pattern[TOK_SPLITS];
} SplitRow;

#define SPLITTER(name, ...) static const SplitRow split_##name = {#name, {__VA_ARGS__}};
#include "pretok.def"

static const struct {
    const char *name;
    const SplitRow *split;
    unsigned flags;
} pres[] = {
#define PRE(name, splitter, flags) {name, &split_##splitter, flags},
#include "pretok.def"
};

static int find_pre(TokBuild *b) {
    if (!b->pre.n) {
        note("tokenizer: the file names no pre-tokenizer (" TOK_KEY "pre); 'default' is taken, which may be wrong; "
             "--pre=NAME says better");
        b->pre = S("default");
    }
    int best = 0, least = 1000;
    for (int i = 0; i < COUNT(pres); i++) {
        if (str_is(b->pre, pres[i].name)) return i;
        int d = edit_distance(b->pre, str(pres[i].name));
        if (d < least) least = d, best = i;
    }
    fail("pre-tokenizer '%s' is not known (the nearest name is '%s'); --pre=NAME takes another one in its place, "
         "--no-tokenizer builds without a tokenizer",
        str_show(b->arena, b->pre), pres[best].name);
}

static void make_splitters(TokBuild *b, const SplitRow *row) {
    for (int i = 0; i < TOK_SPLITS && row->pattern[i]; i++) {
        Str pattern = str(row->pattern[i]), threes = S("(*THREES)");
        b->groups[i] = str_starts(pattern, threes.p);
        if (b->groups[i]) pattern = (Str){pattern.p + threes.n, pattern.n - threes.n};
        b->split[i] = regex_compile(b->arena, pattern);
        b->head.n_split++;
    }
}

// Byte-level vocabularies spell each byte as a printable character: itself where it is one, else 256 and up.
static int byte_of(uint32_t code) {
    static int16_t of[512];
    static bool made;
    if (!made) {
        for (int i = 0; i < 512; i++) of[i] = -1;
        for (int i = 0, next = 256; i < 256; i++) {
            bool printable = (i >= 0x21 && i <= 0x7E) || (i >= 0xA1 && i <= 0xAC) || i >= 0xAE;
            of[printable ? i : next++] = (int16_t) i;
        }
        made = true;
    }
    return code < 512 ? of[code] : -1;
}

// The bytes that a spelling stands for; empty when it is none.
static Str spelled(const TokBuild *b, Str text) {
    char *to = arena_alloc(b->arena, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n;) {
        int len, byte = -1;
        int32_t code = utf8_next(text.p + i, text.n - i, &len);
        if (code >= 0) byte = byte_of((uint32_t) code);
        if (byte < 0) return (Str){0};
        to[n++] = (char) byte;
        i += (size_t) len;
    }
    return (Str){to, n};
}

// The bytes of a text that lead to the spelling; empty when none do.
static Str key_of(const TokBuild *b, Str text) {
    if (b->head.flags & TOK_F_BYTES) return spelled(b, text);
    if (!(b->head.flags & TOK_F_SPACES)) return text;
    return memchr(text.p, ' ', text.n) ? (Str){0} : tok_spaced(b, text);
}

static void set_keys(TokBuild *b) {
    for (int i = 0; i < b->n_vocab; i++) {
        Str key = key_of(b, b->text[i]);
        bool plain = b->type[i] == TOK_NORMAL || b->type[i] == TOK_UNUSED;
        if (b->type[i] == TOK_BYTE) b->piece[i] = tok_byte_piece(b, i);
        else if (plain && key.n) b->piece[i] = key;
        tok_set_key(b, i, key);
    }
}

static void set_bytes(TokBuild *b) {
    bool bytes = b->head.flags & TOK_F_BYTES;
    int missing = 0;
    for (int i = 0; i < 256; i++) {
        char c = (char) i;
        Str key = str_dup(b->arena, (Str){&c, 1});
        b->byte_symbol[i] = bytes || i < 128 ? tok_intern(b, key) : -1;
        if (bytes) b->byte_token[i] = b->symbol[b->byte_symbol[i]].spell;
        if (bytes && b->byte_token[i] < 0) missing += tok_in_utf8(i);
    }
    if (!bytes) tok_bytes_from_names(b);
    if (missing) note("tokenizer: %d of the bytes of UTF-8 have no token and become nothing", missing);
}

static bool seen_before(TokBuild *b, uint32_t *slot, uint32_t mask, uint32_t left, uint32_t right) {
    uint32_t i = tok_slot_place(tok_pair_hash(left, right)) & mask;
    for (; slot[i]; i = (i + 1) & mask) {
        const TokMerge *m = &b->merge[slot[i] - 1];
        if (m->left == left && m->right == right) return true;
    }
    slot[i] = (uint32_t) b->n_merge + 1;
    return false;
}

static void read_merges(TokBuild *b) {
    const GgufValue *v = tok_array(b, TOK_KEY "merges", GGUF_STR, 0);
    if (!v) fail(TOK_KEY "merges is missing, which this kind of tokenizer needs; --no-tokenizer builds without one");
    if (v->n > TOK_SYMBOLS) fail(TOK_KEY "merges has more than %u elements", TOK_SYMBOLS);
    b->merge = NEWN(b->arena, TokMerge, v->n + 1);
    uint64_t size = 16;
    while (size < 2 * v->n) size *= 2;
    uint32_t *slot = NEWN(b->arena, uint32_t, size);
    for (uint64_t i = 0; i < v->n; i++) {
        Str s = v->str[i];
        const char *space = s.n > 1 ? memchr(s.p + 1, ' ', s.n - 1) : NULL;
        if (!space || space == s.p + s.n - 1)
            fail(TOK_KEY "merges[%llu] is '%s', expected two parts with a space between", (unsigned long long) i,
                str_show(b->arena, s));
        Str left = key_of(b, (Str){s.p, (size_t) (space - s.p)});
        Str right = key_of(b, (Str){space + 1, (size_t) (s.p + s.n - space - 1)});
        if (!left.n || !right.n) continue; // no text spells it
        TokMerge m = {(uint32_t) tok_intern(b, left), (uint32_t) tok_intern(b, right), 0};
        if (seen_before(b, slot, (uint32_t) size - 1, m.left, m.right)) continue; // the first one counts
        m.result = (uint32_t) tok_intern(b, tok_join(b->arena, left, right));
        b->merge[b->n_merge++] = m;
    }
}

// Tokens of six bases are spelled with a mark behind, as other tokens have the same letters; they follow <oov>.
static void set_bases(TokBuild *b) {
    static const char *const names[] = {TOK_BASES_OPEN, TOK_BASES_CLOSE, "<oov>"};
    const Str mark = S("\xEE\x80\x80");
    Str *key = NEWN(b->arena, Str, b->n_vocab);
    int32_t after = tok_text_id(b, str(names[TOK_BASES_OTHER]));
    for (int i = after < 0 ? b->n_vocab : 0; i < b->n_vocab; i++) {
        Str text = b->text[i];
        if (text.n <= mark.n || memcmp(text.p + text.n - mark.n, mark.p, mark.n) != 0) continue;
        Str bases = {text.p, text.n - mark.n};
        if (bases.n == TOK_BASES) key[i] = bases;
        if (i > after) b->piece[i] = bases;
    }
    for (int i = 0; i < COUNT(names); i++) {
        b->head.bases[i] = tok_text_id(b, str(names[i]));
        if (b->head.bases[i] >= 0) continue;
        note("tokenizer: no token is spelled %s, so what is between such tags is text like any other", names[i]);
        b->head.flags &= ~(uint32_t) TOK_F_BASES;
        return;
    }
    tok_trie_of_keys(b, key);
}

void tok_build_merges(TokBuild *b) {
    int pre = find_pre(b);
    unsigned flags = pres[pre].flags;
    b->head.kind = TOK_KIND_MERGES;
    b->ignore_merges = flags & IGNORE_MERGES;
    if (flags & ADD_BOS) b->head.flags |= TOK_F_ADD_BOS;
    if (flags & KEEP_SPACES) b->head.flags &= ~(uint32_t) TOK_F_CLEAN;
    if (!(flags & RAW)) b->head.flags |= TOK_F_BYTES;
    if (flags & SPACES) b->head.flags |= TOK_F_SPACES;
    if ((flags & NO_BOS) && !gguf_key(b->gguf, S(TOK_KEY "bos_token_id"))) b->head.role[TOK_BOS] = -1;
    b->always_bos = flags & ALWAYS_BOS;
    b->whole_newlines = flags & NEWLINES;
    make_splitters(b, pres[pre].split);
    set_keys(b);
    set_bytes(b);
    read_merges(b);
    if (b->head.flags & TOK_F_BASES) set_bases(b);
    if (b->head.flags & TOK_F_FOLD) tok_fold_text(b, tok_flag(b, TOK_KEY "normalizer.lowercase", !(flags & CASED)));
}
