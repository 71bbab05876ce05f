// Byte-pair merging: a word becomes tokens. In: one word. Out: ids.
// The one idea: neighbours are merged best pair first (ties: leftmost), where best is the merge's rank or the
// score of the token that the two spell. A word that is a token, and that merging would lead to, was marked at
// build time and needs no merging; short words are merged by scanning, long ones with a heap, both exactly.
#include "tok_internal.h"

#define NONE UINT32_MAX
#define SHORT 48 // symbols; up to here the scan is faster

int32_t tok_find(const Tokenizer *t, const void *key, size_t n) {
    const TokHeader *h = t->head;
    if (n > h->max_key) return -1;
    const uint32_t *slot = TOK_AT(t, uint32_t, h->key), *span = TOK_AT(t, uint32_t, h->span);
    uint64_t hash = tok_hash(key, n);
    uint32_t tag = tok_slot_tag(hash);
    for (uint32_t i = tok_slot_place(hash) & h->key_mask; slot[i]; i = (i + 1) & h->key_mask) {
        uint32_t symbol = (slot[i] & 0xFFFFFF) - 1;
        if ((slot[i] & 0xFF000000) != tag || span[symbol + 1] - span[symbol] != n) continue;
        if (!memcmp(t->base + h->pool + span[symbol], key, n)) return (int32_t) symbol;
    }
    return -1;
}

static const TokMerge *find_merge(const Tokenizer *t, int32_t left, int32_t right, uint32_t *rank) {
    const TokHeader *h = t->head;
    const uint32_t *slot = TOK_AT(t, uint32_t, h->pair);
    uint64_t hash = tok_pair_hash((uint32_t) left, (uint32_t) right);
    uint32_t tag = tok_slot_tag(hash);
    for (uint32_t i = tok_slot_place(hash) & h->pair_mask; slot[i]; i = (i + 1) & h->pair_mask) {
        if ((slot[i] & 0xFF000000) != tag) continue;
        *rank = (slot[i] & 0xFFFFFF) - 1;
        const TokMerge *m = TOK_AT(t, TokMerge, h->merge) + *rank;
        if (m->left == (uint32_t) left && m->right == (uint32_t) right) return m;
    }
    return NULL;
}

// The rank of joining two neighbours, NONE when they do not join; *result the symbol that they become.
static inline uint32_t join(
    const Tokenizer *t, const uint8_t *word, int32_t left, int32_t right, uint32_t from, uint32_t to, int32_t *result) {
    uint32_t rank;
    if (t->head->kind == TOK_KIND_MERGES) {
        if (left < 0 || right < 0) return NONE;
        const TokMerge *m = find_merge(t, left, right, &rank);
        if (!m) return NONE;
        *result = (int32_t) m->result;
        return rank;
    }
    int32_t symbol = tok_find(t, word + from, to - from);
    if (symbol < 0) return NONE;
    *result = symbol;
    return TOK_AT(t, uint32_t, t->head->rank)[symbol];
}

// The symbol that merging starts with at p; its bytes in *len.
static inline int32_t first_symbol(const Tokenizer *t, const uint8_t *p, size_t n, uint32_t *len) {
    *len = 1;
    if (*p >= 0x80 && !(t->head->flags & TOK_F_BYTES)) {
        int length; // a byte that begins no character stands by itself, so that its bytes come back as they were
        tok_character(p, n, &length);
        *len = (uint32_t) length;
        if (length > 1) return tok_find(t, p, *len);
    }
    return TOK_AT(t, int32_t, t->head->byte_symbol)[*p];
}

static void emit_byte(Encoder *e, uint8_t b) {
    int32_t id = TOK_AT(e->t, int32_t, e->t->head->byte_token)[b];
    if (id >= 0) tok_emit(e, id);
}

static void emit_symbol(Encoder *e, int32_t symbol, const uint8_t *p, size_t n) {
    const TokHeader *h = e->t->head;
    if (symbol >= (int32_t) h->n_vocab) symbol = TOK_AT(e->t, int32_t, h->spell)[(uint32_t) symbol - h->n_vocab];
    if (symbol >= 0) {
        tok_emit(e, symbol);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (p[i] == ' ' && (h->flags & TOK_F_SPACES)) {
            emit_byte(e, 0xE2), emit_byte(e, 0x96), emit_byte(e, 0x81); // the space was this character
        } else {
            emit_byte(e, p[i]);
        }
    }
}

static void merge_short(Encoder *e, const uint8_t *word, size_t n) {
    int32_t symbol[SHORT], result[SHORT];
    uint32_t start[SHORT + 1], rank[SHORT], count = 0;
    for (uint32_t at = 0, len; at < n; at += len) {
        symbol[count] = first_symbol(e->t, word + at, n - at, &len);
        start[count++] = at;
    }
    start[count] = (uint32_t) n;
    for (uint32_t i = 0; i + 1 < count; i++)
        rank[i] = join(e->t, word, symbol[i], symbol[i + 1], start[i], start[i + 2], &result[i]);
    for (;;) {
        uint32_t best = NONE, at = 0;
        for (uint32_t i = 0; i + 1 < count; i++)
            if (rank[i] < best) best = rank[i], at = i;
        if (best == NONE) break;
        symbol[at] = result[at];
        count--;
        for (uint32_t i = at + 1; i < count; i++) {
            symbol[i] = symbol[i + 1];
            start[i] = start[i + 1];
            rank[i] = rank[i + 1];
            result[i] = result[i + 1];
        }
        start[count] = (uint32_t) n;
        for (uint32_t i = at ? at - 1 : 0; i <= at && i + 1 < count; i++) // both neighbours anew
            rank[i] = join(e->t, word, symbol[i], symbol[i + 1], start[i], start[i + 2], &result[i]);
    }
    for (uint32_t i = 0; i < count; i++) emit_symbol(e, symbol[i], word + start[i], start[i + 1] - start[i]);
}

// ---- long words: a heap with one entry a symbol that joins its right neighbour ----

typedef struct {
    uint32_t *start, *next, *prev, *rank, *heap, *place; // place: of a symbol in the heap, NONE when not in it
    int32_t *symbol, *result;
    uint32_t n_heap;
} Chain;

static bool before(const Chain *c, uint32_t a, uint32_t b) {
    return c->rank[a] < c->rank[b] || (c->rank[a] == c->rank[b] && a < b);
}

static void heap_set(Chain *c, uint32_t place, uint32_t i) {
    c->heap[place] = i;
    c->place[i] = place;
}

static void heap_fix(Chain *c, uint32_t place) { // moves the entry up or down to where it belongs
    uint32_t i = c->heap[place];
    while (place && before(c, i, c->heap[(place - 1) / 2])) {
        heap_set(c, place, c->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= c->n_heap) break;
        if (child + 1 < c->n_heap && before(c, c->heap[child + 1], c->heap[child])) child++;
        if (!before(c, c->heap[child], i)) break;
        heap_set(c, place, c->heap[child]);
        place = child;
    }
    heap_set(c, place, i);
}

static void heap_remove(Chain *c, uint32_t i) {
    uint32_t place = c->place[i];
    if (place == NONE) return;
    c->place[i] = NONE;
    uint32_t last = c->heap[--c->n_heap];
    if (last == i) return;
    heap_set(c, place, last);
    heap_fix(c, place);
}

// Looks anew at symbol i and its right neighbour.
static void rejoin(Chain *c, const Tokenizer *t, const uint8_t *word, size_t n, uint32_t i) {
    uint32_t right = c->next[i], rank = NONE;
    if (right != NONE) {
        uint32_t to = c->next[right] == NONE ? (uint32_t) n : c->start[c->next[right]];
        rank = join(t, word, c->symbol[i], c->symbol[right], c->start[i], to, &c->result[i]);
    }
    c->rank[i] = rank;
    if (rank == NONE) {
        heap_remove(c, i);
        return;
    }
    if (c->place[i] == NONE) heap_set(c, c->n_heap++, i);
    heap_fix(c, c->place[i]);
}

static void merge_long(Encoder *e, const uint8_t *word, size_t n) {
    uint32_t *room = (uint32_t *) (void *) e->scratch, count = 0;
    Chain c = {.start = room,
        .next = room + e->room,
        .prev = room + 2 * e->room,
        .rank = room + 3 * e->room,
        .heap = room + 4 * e->room,
        .place = room + 5 * e->room,
        .symbol = (int32_t *) room + 6 * e->room,
        .result = (int32_t *) room + 7 * e->room,
        .n_heap = 0};
    for (uint32_t at = 0, len; at < n; at += len, count++) {
        c.symbol[count] = first_symbol(e->t, word + at, n - at, &len);
        c.start[count] = at;
        c.next[count] = at + len < n ? count + 1 : NONE;
        c.prev[count] = count - 1; // NONE for the first
        c.place[count] = NONE;
    }
    for (uint32_t i = 0; i < count; i++) rejoin(&c, e->t, word, n, i);
    while (c.n_heap) {
        uint32_t left = c.heap[0], right = c.next[left];
        heap_remove(&c, right);
        c.symbol[left] = c.result[left];
        c.next[left] = c.next[right];
        if (c.next[left] != NONE) c.prev[c.next[left]] = left;
        rejoin(&c, e->t, word, n, left);
        if (c.prev[left] != NONE) rejoin(&c, e->t, word, n, c.prev[left]);
    }
    for (uint32_t i = 0; i != NONE; i = c.next[i]) {
        uint32_t to = c.next[i] == NONE ? (uint32_t) n : c.start[c.next[i]];
        emit_symbol(e, c.symbol[i], word + c.start[i], to - c.start[i]);
    }
}

void tok_word(Encoder *e, const uint8_t *word, size_t n) {
    const TokHeader *h = e->t->head;
    int32_t symbol = n ? tok_find(e->t, word, n) : -1;
    if (symbol >= 0 && TOK_AT(e->t, uint32_t, h->whole)[symbol >> 5] >> (symbol & 31) & 1) {
        emit_symbol(e, symbol, word, n);
    } else if (n <= SHORT) {
        merge_short(e, word, n);
    } else {
        merge_long(e, word, n);
    }
}
