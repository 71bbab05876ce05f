// The tokenizer's entry points: special tokens are cut out of the text, the rest goes to the model's kind of tokenizer.
// In: a blob of tables, a text. Out: ids. The one idea: special tokens win by length (the longest is found
// everywhere first, then the next), marked on the text itself, one pass for each length that occurs.
#include "tok_internal.h"

#define WORD_SCRATCH 32 // bytes a byte of text: the eight arrays of a chain of symbols
#define STEP_SCRATCH 16 // one step of a best way through the text

bool tokenizer_open(Tokenizer *t, const void *blob, size_t size) {
    const TokHeader *h = blob;
    if (size < sizeof *h || memcmp(h->magic, TOK_MAGIC, 8) || h->size > size) return false;
    t->base = blob;
    t->head = h;
    return true;
}

// ---- what the tables say ----

int tok_n_vocab(const Tokenizer *t) {
    return (int) t->head->n_vocab;
}

TokType tok_type(const Tokenizer *t, int32_t id) {
    return (TokType) t->base[t->head->type + (uint32_t) id];
}

const char *tok_bytes(const Tokenizer *t, int32_t id, size_t *n) {
    const uint32_t *span = TOK_AT(t, uint32_t, t->head->span) + id;
    *n = span[1] - span[0];
    return (const char *) t->base + t->head->pool + span[0];
}

static unsigned attributes(const Tokenizer *t, int32_t id) {
    return t->base[t->head->attr + (uint32_t) id];
}

bool tok_is_eog(const Tokenizer *t, int32_t id) {
    return id >= 0 && id < (int32_t) t->head->n_vocab && (attributes(t, id) & TOK_A_EOG);
}

bool tok_is_suppressed(const Tokenizer *t, int32_t id) {
    return attributes(t, id) & TOK_A_SUPPRESSED;
}

int32_t tok_role(const Tokenizer *t, TokRole role) {
    return t->head->role[role];
}

bool tok_adds_bos(const Tokenizer *t) {
    return t->head->flags & TOK_F_ADD_BOS;
}

bool tok_adds_eos(const Tokenizer *t) {
    return t->head->flags & TOK_F_ADD_EOS;
}

int tok_n_stop(const Tokenizer *t) {
    return (int) t->head->n_stop;
}

const char *tok_stop(const Tokenizer *t, int i, size_t *n) {
    const uint32_t *stop = TOK_AT(t, uint32_t, t->head->stop) + i;
    *n = stop[1] - stop[0];
    return (const char *) t->base + stop[0];
}

// ---- special tokens ----

enum { FREE, BEGIN, INSIDE, EATEN }; // marks on the bytes of the text

typedef struct {
    const Tokenizer *t;
    const uint8_t *text;
    size_t n;
    uint8_t *mark;
    bool all; // control and unknown tokens too,
    const TokSpan *plain; // but for those that reach into one of these
    size_t n_plain;
} Specials;

static bool is_space(uint8_t b) {
    return b == ' ' || (b >= '\t' && b <= '\r');
}

static const TokNode *child_of(const TokNode *nodes, const TokNode *node, uint8_t b) {
    uint32_t low = node->child, high = low + node->n_child;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (nodes[middle].byte == b) return nodes + middle;
        if (nodes[middle].byte < b) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

static bool in_plain(const Specials *s, size_t from, size_t to) {
    size_t low = 0, high = s->n_plain; // the first that ends behind `from`
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->plain[middle].to <= from) low = middle + 1;
        else high = middle;
    }
    return low < s->n_plain && s->plain[low].from < to;
}

static bool counts(const Specials *s, const TokNode *node, size_t from, size_t to) {
    if (node->id < 0) return false;
    return tok_type(s->t, node->id) == TOK_USER_DEFINED || (s->all && !in_plain(s, from, to));
}

// The longest token that stands at text[at..]: its length, 0 for none. All lengths that occur are noted in `seen`.
static size_t longest_at(const Specials *s, size_t at, uint64_t *seen) {
    const TokNode *nodes = TOK_AT(s->t, TokNode, s->t->head->node), *node = nodes;
    const uint32_t *first = s->t->head->first[s->all];
    size_t best = 0;
    if (!(first[s->text[at] >> 5] >> (s->text[at] & 31) & 1)) return 0;
    for (size_t i = at; i < s->n && (node = child_of(nodes, node, s->text[i])); i++) {
        if (!counts(s, node, at, i + 1)) continue;
        seen[node->length >> 6] |= 1ull << (node->length & 63);
        best = i + 1 - at;
    }
    return best;
}

// The token of this length there, -1 for none.
static int32_t special_at(const Specials *s, size_t at, size_t length) {
    const TokNode *nodes = TOK_AT(s->t, TokNode, s->t->head->node), *node = nodes;
    for (size_t i = at; i < at + length && node; i++) node = child_of(nodes, node, s->text[i]);
    return node && counts(s, node, at, at + length) ? node->id : -1;
}

size_t tok_special_at(const Tokenizer *t, const char *text, size_t n) {
    const TokNode *nodes = TOK_AT(t, TokNode, t->head->node), *node = nodes;
    size_t best = 0;
    for (size_t i = 0; i < n && (node = child_of(nodes, node, (uint8_t) text[i])); i++)
        if (node->id >= 0 && tok_type(t, node->id) != TOK_USER_DEFINED) best = i + 1;
    return best;
}

// Marks the tokens of one length in what is still free of the text from `at` to `to`.
static void mark_length(const Specials *s, size_t at, size_t to, size_t length) {
    size_t free_from = at, free_to = at; // the free run that `at` is in
    while (at + length <= to) {
        if (s->mark[at] != FREE) {
            free_from = ++at;
            continue;
        }
        if (free_to <= at)
            for (free_to = at; free_to < to && s->mark[free_to] == FREE; free_to++) {}
        if (free_to - at < length) {
            at = free_to;
            continue;
        }
        int32_t id = special_at(s, at, length);
        if (id < 0) {
            at++;
            continue;
        }
        size_t end = at + length;
        s->mark[at] = BEGIN;
        memset(s->mark + at + 1, INSIDE, length - 1);
        if (attributes(s->t, id) & TOK_A_LSTRIP)
            for (size_t i = at; i > free_from && is_space(s->text[i - 1]); i--) s->mark[i - 1] = EATEN;
        if (attributes(s->t, id) & TOK_A_RSTRIP)
            for (; end < free_to && is_space(s->text[end]); end++) s->mark[end] = EATEN;
        at = free_from = end;
    }
}

// Tokens that do not overlap do not compete, so each run of overlapping ones is settled for itself; where tokens
// swallow white space around them, the whole text is one such run. false: there are none, and no marks were made.
static bool mark_specials(const Specials *s) {
    const TokHeader *h = s->t->head;
    const uint32_t *length = TOK_AT(s->t, uint32_t, h->length);
    bool any = false;
    if (!h->n_length) return false;
    for (size_t from = 0, at = 0; at < s->n; from = at) {
        uint64_t seen[TOK_LENGTHS / 64] = {0};
        size_t to = h->flags & TOK_F_STRIPS ? s->n : 0, found = 0;
        for (; at < s->n; at++) {
            size_t n = longest_at(s, at, seen);
            if (n && !found++ && !to) from = at, to = at + n;
            if (at + n > to && to) to = at + n;
            if (to && at + 1 >= to) break;
        }
        at++;
        if (!found) break;
        if (!any) memset(s->mark, FREE, s->n);
        any = true;
        for (uint32_t word = 0; word < TOK_LENGTHS / 64; word++)
            for (uint64_t bits = seen[word]; bits; bits &= bits - 1)
                mark_length(s, from, to, length[word * 64 + (uint32_t) __builtin_ctzll(bits)]);
    }
    return any;
}

// ---- text between special tokens ----

static void encode_text(Encoder *e, const uint8_t *text, size_t n, bool after_special, uint8_t *copy) {
    switch ((TokKind) e->t->head->kind) {
    case TOK_KIND_MERGES:
    case TOK_KIND_SCORES: tok_merge_text(e, text, n, after_special, copy); break;
    case TOK_KIND_UNIGRAM: tok_unigram(e, text, n); break;
    case TOK_KIND_TABLE: tok_table(e, text, n); break;
    case TOK_KIND_WORDS: tok_words(e, text, n); break;
    case TOK_KIND_LONGEST: tok_longest(e, text, n); break;
    }
}

static void encode_marked(Encoder *e, const Specials *s, uint8_t *copy) {
    bool after_special = true; // the begin of the text counts as one
    for (size_t at = 0, end; at < s->n; at = end) {
        end = at + 1;
        if (s->mark[at] == FREE) {
            while (end < s->n && s->mark[end] == FREE) end++;
            encode_text(e, s->text + at, end - at, after_special, copy);
            after_special = false;
        } else if (s->mark[at] == BEGIN) {
            while (end < s->n && s->mark[end] == INSIDE) end++;
            tok_emit(e, special_at(s, at, end - at));
            after_special = true;
        }
    }
}

// ---- the whole ----

static size_t rounded(size_t n) {
    return (n + 15) & ~(size_t) 15;
}

// Bytes that a text of n bytes has when merging, or the search for the best cut, begins: a space may come in front.
static size_t most_bytes(const Tokenizer *t, size_t n) {
    return rounded(n * t->head->grow + 1);
}

size_t tokenize_scratch(const Tokenizer *t, size_t n) {
    bool merges = t->head->kind == TOK_KIND_MERGES || t->head->kind == TOK_KIND_SCORES;
    return rounded(n) + most_bytes(t, n) * (1 + (merges ? WORD_SCRATCH : STEP_SCRATCH)) + STEP_SCRATCH;
}

size_t tokenize_max_ids(const Tokenizer *t, size_t n) {
    // Spaces in front of texts at most double the bytes; a space that no token spells becomes three. So do those of
    // UNIGRAM, of which a space in front of each of at most n texts is made.
    size_t each = !(t->head->flags & TOK_F_SPACES) ? 1 : TOK_AT(t, int32_t, t->head->byte_symbol)[' '] >= 0 ? 2 : 6;
    if (t->head->kind == TOK_KIND_UNIGRAM) each = 3 * ((size_t) t->head->grow + 1);
    else each *= t->head->grow;
    return n * each + 8;
}

int64_t tokenize(const Tokenizer *t, const char *text, size_t n, int flags, int32_t *ids, size_t cap, void *scratch,
    size_t scratch_size) {
    return tokenize_but(t, text, n, flags, NULL, 0, ids, cap, scratch, scratch_size);
}

int64_t tokenize_but(const Tokenizer *t, const char *text, size_t n, int flags, const TokSpan *plain, size_t n_plain,
    int32_t *ids, size_t cap, void *scratch, size_t scratch_size) {
    const TokHeader *h = t->head;
    if (n > 1u << 30 || n * h->grow > UINT32_MAX - 64) return TOK_TOO_LONG;
    if (scratch_size < tokenize_scratch(t, n)) return TOK_SCRATCH;
    uint8_t *mark = scratch, *copy = mark + rounded(n);
    bool merges = h->kind == TOK_KIND_MERGES || h->kind == TOK_KIND_SCORES;
    Encoder e = {t, ids, 0, cap, merges ? copy + most_bytes(t, n) : copy, most_bytes(t, n)};
    Specials s = {t, (const uint8_t *) text, n, mark, flags & TOK_PARSE_SPECIAL, plain, n_plain};
    if ((flags & TOK_ADD_SPECIAL) && (h->flags & TOK_F_ADD_BOS)) tok_emit(&e, h->role[TOK_BOS]);
    if (n && mark_specials(&s)) encode_marked(&e, &s, copy);
    else if (n) encode_text(&e, s.text, n, true, copy);
    if ((flags & TOK_ADD_SPECIAL) && (h->flags & TOK_F_ADD_EOS)) tok_emit(&e, h->role[TOK_EOS]);
    if ((flags & TOK_ADD_SPECIAL) && (h->flags & TOK_F_ADD_SEP)) tok_emit(&e, h->role[TOK_SEP]);
    return e.n > cap ? TOK_FULL : (int64_t) e.n;
}

int64_t tok_encode_word(const Tokenizer *t, const char *word, size_t n, int32_t *ids, size_t cap, void *scratch) {
    Encoder e = {t, ids, 0, cap, scratch, rounded(n + 1)};
    tok_word(&e, (const uint8_t *) word, n);
    return e.n > cap ? TOK_FULL : (int64_t) e.n;
}
