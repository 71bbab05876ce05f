// The blob of a tokenizer is laid out. In: symbols, merges, splitters, special tokens. Out: the bytes that
// runtime/tokenizer.h describes. The one idea: tables are appended to one growing buffer and their offsets noted in
// its header; last, the runtime itself is run on every key to mark the words that need no merging.
#include <string.h>

#include "tok_build.h"

typedef struct {
    Arena *arena;
    uint8_t *p;
    size_t n, cap;
} Buffer;

static uint32_t put(Buffer *o, const void *p, size_t n) { // the offset; tables begin at multiples of 16
    size_t at = (o->n + 15) & ~(size_t) 15;
    if (at + n > UINT32_MAX) fail("the tokenizer's tables pass 4 GiB");
    if (at + n > o->cap) {
        o->cap = 2 * (at + n);
        uint8_t *grown = arena_alloc(o->arena, o->cap);
        if (o->n) memcpy(grown, o->p, o->n);
        o->p = grown;
    }
    if (n) memcpy(o->p + at, p, n);
    o->n = at + n;
    return (uint32_t) at;
}

// ---- symbols ----

static Str bytes_of(const TokBuild *b, int symbol) {
    return symbol < b->n_vocab ? b->piece[symbol] : b->symbol[symbol].key;
}

static void put_symbols(TokBuild *b, Buffer *o) {
    uint32_t *span = NEWN(b->arena, uint32_t, b->n_symbol + 1);
    int32_t *spell = NEWN(b->arena, int32_t, b->n_symbol - b->n_vocab + 1);
    size_t total = 0;
    for (int i = 0; i < b->n_symbol; i++) {
        Str s = bytes_of(b, i);
        span[i] = (uint32_t) total;
        total += s.n;
        if (total > UINT32_MAX) fail("the texts of the tokens pass 4 GiB");
        if (i < b->n_vocab && s.n > b->head.max_piece) b->head.max_piece = (uint32_t) s.n;
        if (b->symbol[i].key.n > b->head.max_key) b->head.max_key = (uint32_t) b->symbol[i].key.n;
        if (i >= b->n_vocab) spell[i - b->n_vocab] = b->symbol[i].spell;
    }
    span[b->n_symbol] = (uint32_t) total;
    uint8_t *pool = arena_alloc(b->arena, total + 1);
    for (int i = 0; i < b->n_symbol; i++)
        if (bytes_of(b, i).n) memcpy(pool + span[i], bytes_of(b, i).p, bytes_of(b, i).n);
    b->head.n_vocab = (uint32_t) b->n_vocab;
    b->head.n_symbol = (uint32_t) b->n_symbol;
    b->head.pool = put(o, pool, total);
    b->head.span = put(o, span, ((size_t) b->n_symbol + 1) * sizeof *span);
    b->head.spell = put(o, spell, (size_t) (b->n_symbol - b->n_vocab) * sizeof *spell);
    b->head.type = put(o, b->type, (size_t) b->n_vocab);
    b->head.attr = put(o, b->attr, (size_t) b->n_vocab);
    if (b->rank) b->head.rank = put(o, b->rank, (size_t) b->n_symbol * sizeof *b->rank);
    b->head.byte_symbol = put(o, b->byte_symbol, sizeof b->byte_symbol);
    b->head.byte_token = put(o, b->byte_token, sizeof b->byte_token);
}

// ---- hash tables: at most two thirds full ----

static uint32_t *slots_for(Arena *a, int n, uint32_t *mask) {
    uint32_t size = 16;
    while (size < (uint64_t) n * 3 / 2) size *= 2;
    *mask = size - 1;
    return NEWN(a, uint32_t, size);
}

static void fill(uint32_t *slot, uint32_t mask, uint64_t hash, int value) {
    uint32_t i = tok_slot_place(hash) & mask;
    while (slot[i]) i = (i + 1) & mask;
    slot[i] = tok_slot_tag(hash) | ((uint32_t) value + 1);
}

static void put_hashes(TokBuild *b, Buffer *o) {
    int n_key = 0;
    for (int i = 0; i < b->n_symbol; i++) n_key += b->symbol[i].key.n > 0;
    uint32_t *slot = slots_for(b->arena, n_key, &b->head.key_mask);
    for (int i = 0; i < b->n_symbol; i++)
        if (b->symbol[i].key.n) fill(slot, b->head.key_mask, tok_hash(b->symbol[i].key.p, b->symbol[i].key.n), i);
    b->head.key = put(o, slot, ((size_t) b->head.key_mask + 1) * sizeof *slot);
    slot = slots_for(b->arena, b->n_merge, &b->head.pair_mask);
    for (int i = 0; i < b->n_merge; i++)
        fill(slot, b->head.pair_mask, tok_pair_hash(b->merge[i].left, b->merge[i].right), i);
    b->head.pair = put(o, slot, ((size_t) b->head.pair_mask + 1) * sizeof *slot);
    b->head.n_merge = (uint32_t) b->n_merge;
    b->head.merge = put(o, b->merge, (size_t) b->n_merge * sizeof *b->merge);
}

// A text can be cut before a space wherever no key has that byte with a space after it.
static void put_cuts(TokBuild *b, Buffer *o) {
    uint32_t cut[8];
    memset(cut, 0xFF, sizeof cut);
    for (int i = 0; i < b->n_symbol; i++) {
        Str key = b->symbol[i].key;
        for (size_t k = 1; k < key.n; k++) {
            uint8_t before = (uint8_t) key.p[k - 1];
            if (key.p[k] == ' ') cut[before >> 5] &= ~(1u << (before & 31));
        }
    }
    if (b->head.flags & TOK_F_SPACES) b->head.flags |= TOK_F_WORDS;
    b->head.cut = put(o, cut, sizeof cut);
}

static void put_splitters(TokBuild *b, Buffer *o) {
    for (uint32_t i = 0; i < b->head.n_split; i++) {
        const Regex *r = b->split[i];
        TokSplit s = {.n_class = (uint32_t) r->n_class, .groups = b->groups[i]};
        s.next = put(o, r->next, (size_t) r->n_state * (size_t) r->n_class * sizeof *r->next);
        s.page = put(o, r->page, REGEX_PAGES * sizeof *r->page);
        s.classes = put(o, r->classes, (size_t) r->n_page * 128);
        b->head.split[i] = put(o, &s, sizeof s);
    }
}

// ---- kinds that do not merge ----

static void put_map(TokBuild *b, Buffer *o) {
    uint32_t *span = NEWN(b->arena, uint32_t, b->n_replacement + 1);
    size_t total = 0;
    for (int i = 0; i < b->n_replacement; i++) span[i + 1] = (uint32_t) (total += b->replacement[i].n);
    if (total > UINT32_MAX) fail("the replacements of the tokenizer's character map pass 4 GiB");
    char *to = arena_alloc(b->arena, total + 1);
    for (int i = 0; i < b->n_replacement; i++)
        if (b->replacement[i].n) memcpy(to + span[i], b->replacement[i].p, b->replacement[i].n);
    uint32_t at = put(o, to, total);
    for (int i = 0; i <= b->n_replacement; i++) span[i] += at;
    b->head.map = put(o, b->map, (size_t) b->n_map * sizeof *b->map);
    b->head.map_span = put(o, span, ((size_t) b->n_replacement + 1) * sizeof *span);
}

static void put_fold(TokBuild *b, Buffer *o) {
    TokFold fold;
    fold.page = put(o, b->fold_page, REGEX_PAGES * sizeof *b->fold_page);
    fold.rows = put(o, b->fold_rows, (size_t) b->n_fold_row * sizeof *b->fold_rows);
    fold.pool = put(o, b->fold_pool.p, b->fold_pool.n);
    b->head.fold = put(o, &fold, sizeof fold);
}

static void put_trie(TokBuild *b, Buffer *o) {
    if (b->trie) b->head.trie = put(o, b->trie, (size_t) b->n_trie * sizeof *b->trie);
    if (b->score.n) b->head.score = put(o, b->score.p, b->score.n);
    if (b->map) put_map(b, o);
    if (b->fold_page) put_fold(b, o);
}

// ---- special tokens ----

typedef struct {
    const TokBuild *b;
    int *id; // in the order of their texts
    int n;
} Specials;

static Str text_of(const Specials *s, int i) {
    return s->b->text[s->id[i]];
}

static void sort_by_text(const Specials *s, int *spare, int from, int to) { // merge sort; the ids are distinct texts
    if (to - from < 2) return;
    int middle = (from + to) / 2, i = from, k = middle, n = from;
    sort_by_text(s, spare, from, middle);
    sort_by_text(s, spare, middle, to);
    while (i < middle || k < to) {
        bool left = k == to || (i < middle && str_cmp(text_of(s, i), text_of(s, k)) < 0);
        spare[n++] = s->id[left ? i++ : k++];
    }
    memcpy(s->id + from, spare + from, (size_t) (to - from) * sizeof *spare);
}

static Specials find_specials(TokBuild *b) {
    Specials s = {b, NEWN(b->arena, int, b->n_vocab), 0};
    for (int i = 0; i < b->n_vocab; i++) {
        bool user = b->type[i] == TOK_USER_DEFINED;
        if (b->attr[i] & (TOK_A_LSTRIP | TOK_A_RSTRIP)) b->head.flags |= TOK_F_STRIPS;
        if (!user && b->type[i] != TOK_CONTROL && b->type[i] != TOK_UNKNOWN) continue;
        s.id[s.n++] = i;
        uint8_t c = (uint8_t) b->text[i].p[0];
        for (int all = user ? 0 : 1; all < 2; all++) b->head.first[all][c >> 5] |= 1u << (c & 31);
    }
    sort_by_text(&s, NEWN(b->arena, int, s.n + 1), 0, s.n);
    return s;
}

static void put_lengths(TokBuild *b, Buffer *o, const Specials *s, uint32_t *length) { // longest first
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        uint32_t l = (uint32_t) text_of(s, i).n;
        int at = 0;
        while (at < n && length[at] > l) at++;
        if (at < n && length[at] == l) continue;
        if (n == TOK_LENGTHS) fail("the special tokens have more than %d different lengths", TOK_LENGTHS);
        memmove(length + at + 1, length + at, (size_t) (n++ - at) * sizeof *length);
        length[at] = l;
    }
    b->head.n_length = (uint32_t) n;
    b->head.length = put(o, length, (size_t) n * sizeof *length);
}

// The tree is made level by level, so that the children of a node lie together.
static void put_tree(TokBuild *b, Buffer *o, const Specials *s, const uint32_t *length) {
    typedef struct {
        int from, to;
        size_t depth;
    } Part; // the texts below a node
    TokNode *node = NULL;
    Part *part = NULL;
    int n = 0, cap = 0, n_part = 0, cap_part = 0;
    *PUSH(b->arena, node, n, cap) = (TokNode){.id = -1};
    *PUSH(b->arena, part, n_part, cap_part) = (Part){0, s->n, 0};
    for (int at = 0; at < n; at++) {
        Part p = part[at];
        node[at].child = (uint32_t) n;
        if (p.from < p.to && at && text_of(s, p.from).n == p.depth) { // sorted: the shortest comes first
            node[at].id = s->id[p.from++];
            for (uint32_t i = 0; length[i] >= p.depth; i++) {
                node[at].length = (uint16_t) i;
                if (length[i] == p.depth) break;
            }
        }
        for (int i = p.from, end; i < p.to; i = end) {
            uint8_t c = (uint8_t) text_of(s, i).p[p.depth];
            for (end = i; end < p.to && (uint8_t) text_of(s, end).p[p.depth] == c; end++) {}
            *PUSH(b->arena, node, n, cap) = (TokNode){.id = -1, .byte = c};
            *PUSH(b->arena, part, n_part, cap_part) = (Part){i, end, p.depth + 1};
            node[at].n_child++;
        }
    }
    b->head.node = put(o, node, (size_t) n * sizeof *node);
}

static void put_specials(TokBuild *b, Buffer *o) {
    static uint32_t length[TOK_LENGTHS];
    Specials s = find_specials(b);
    put_lengths(b, o, &s, length);
    put_tree(b, o, &s, length);
}

// Stop texts that a control token spells end generation by that token, never as text.
static void put_stops(TokBuild *b, Buffer *o) {
    uint32_t *stop = NEWN(b->arena, uint32_t, b->options->n_stop + 1), n = 0;
    Str all = {"", 0};
    for (int i = 0; i < b->options->n_stop; i++) {
        Str text = b->options->stop[i];
        if (!text.n) fail_usage("--stop needs a text");
        int32_t id = tok_text_id(b, text);
        if (id >= 0 && b->type[id] == TOK_CONTROL) continue;
        all = tok_join(b->arena, all, text);
        stop[++n] = (uint32_t) all.n;
    }
    uint32_t at = put(o, all.p, all.n);
    for (uint32_t i = 0; i <= n; i++) stop[i] += at;
    b->head.n_stop = n;
    b->head.stop = put(o, stop, (n + 1) * sizeof *stop);
}

// ---- words that need no merging ----

static bool only_newlines(Str s) {
    size_t i = 0;
    while (i < s.n && s.p[i] == '\n') i++;
    return i == s.n;
}

// Merging depends on the word alone: what it makes of a token's own key holds wherever the key is a word.
static void mark_whole(TokBuild *b, uint8_t *blob) {
    Tokenizer t;
    uint32_t *whole = (uint32_t *) (void *) (blob + b->head.whole);
    if (!tokenizer_open(&t, blob, b->head.size)) fail("internal: the tokenizer's tables do not open");
    void *scratch = arena_alloc(b->arena, tokenize_scratch(&t, b->head.max_key));
    for (int i = 0; i < b->n_symbol; i++) {
        const Symbol *s = &b->symbol[i];
        if (!s->key.n || s->spell < 0) continue;
        int32_t id[2];
        bool is = b->ignore_merges || (b->whole_newlines && only_newlines(s->key)) ||
            (tok_encode_word(&t, s->key.p, s->key.n, id, 2, scratch) == 1 && id[0] == s->spell);
        if (is) whole[i >> 5] |= 1u << (i & 31);
    }
}

Str tok_blob(TokBuild *b) {
    Buffer o = {.arena = b->arena};
    memcpy(b->head.magic, TOK_MAGIC, 8);
    put(&o, &b->head, sizeof b->head);
    put_symbols(b, &o);
    put_hashes(b, &o);
    put_cuts(b, &o);
    put_splitters(b, &o);
    put_trie(b, &o);
    put_specials(b, &o);
    put_stops(b, &o);
    size_t words = ((size_t) b->n_symbol + 31) / 32;
    b->head.whole = put(&o, NEWN(b->arena, uint32_t, words), words * sizeof(uint32_t));
    b->head.size = o.n;
    memcpy(o.p, &b->head, sizeof b->head);
    uint8_t *room = arena_alloc(b->arena, o.n + 64), *blob = room + (64 - (uintptr_t) room % 64) % 64;
    memcpy(blob, o.p, o.n);
    if (b->head.kind == TOK_KIND_MERGES || b->head.kind == TOK_KIND_SCORES) mark_whole(b, blob);
    return (Str){(const char *) blob, o.n};
}
