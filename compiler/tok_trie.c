// A trie of keys becomes two arrays. In: keys with a value each. Out: the cells that runtime/tokenizer.h describes.
// The one idea: the children of a cell lie at `child` XOR their byte, all in one block of 256 cells; `child` is chosen
// so that these cells are free, and only the last blocks are searched, so that building takes time linear in the keys.
#include <stdlib.h>
#include <string.h>

#include "tok_build.h"

#define BLOCK 256
#define OPEN 16 // blocks in which a place is looked for

typedef struct {
    uint32_t cell;
    int from, to; // the keys below it
    size_t depth;
} Part;

typedef struct {
    Arena *arena;
    TokCell *cell;
    uint64_t *used; // a bit a cell
    uint32_t n_block, cap_block;
    uint32_t open; // the first block searched
} Builder;

static int by_key(const void *a, const void *b) {
    const TrieKey *x = a, *y = b;
    int order = str_cmp(x->key, y->key);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

static void add_block(Builder *t) {
    if (t->n_block == t->cap_block) {
        uint32_t cap = 2 * t->cap_block + 64;
        if (cap > UINT32_MAX / BLOCK / (uint32_t) sizeof(TokCell)) fail("the tokenizer's keys pass 4 GiB");
        TokCell *cell = NEWN(t->arena, TokCell, (size_t) cap * BLOCK);
        uint64_t *used = NEWN(t->arena, uint64_t, (size_t) cap * BLOCK / 64);
        if (t->n_block) {
            memcpy(cell, t->cell, (size_t) t->n_block * BLOCK * sizeof *cell);
            memcpy(used, t->used, (size_t) t->n_block * BLOCK / 8);
        }
        t->cell = cell, t->used = used, t->cap_block = cap;
    }
    for (uint32_t i = t->n_block * BLOCK; i < (t->n_block + 1) * BLOCK; i++) t->cell[i] = (TokCell){0, TOK_NO_CELL, -1};
    t->n_block++;
    if (t->n_block - t->open > OPEN) t->open = t->n_block - OPEN;
}

static bool is_used(const Builder *t, uint32_t cell) {
    return t->used[cell >> 6] >> (cell & 63) & 1;
}

// A value of `child` at which the cells of all these bytes are free.
static uint32_t place_for(Builder *t, const uint8_t *byte, int n) {
    for (uint32_t word = t->open * (BLOCK / 64); word < t->n_block * (BLOCK / 64); word++)
        for (uint64_t bits = ~t->used[word]; bits; bits &= bits - 1) {
            uint32_t child = (word * 64 + (uint32_t) __builtin_ctzll(bits)) ^ byte[0];
            int i = 1;
            while (i < n && !is_used(t, child ^ byte[i])) i++;
            if (i == n) return child;
        }
    add_block(t);
    return (t->n_block - 1) * BLOCK;
}

TokCell *tok_trie(Arena *a, TrieKey *keys, int n, uint32_t *n_cell) {
    Builder t = {.arena = a};
    Part *stack = NULL;
    int n_stack = 0, cap_stack = 0;
    qsort(keys, (size_t) n, sizeof *keys, by_key);
    add_block(&t);
    t.used[0] = 1;
    *PUSH(a, stack, n_stack, cap_stack) = (Part){0, 0, n, 0};
    while (n_stack) {
        Part p = stack[--n_stack];
        uint8_t byte[BLOCK];
        int start[BLOCK + 1], n_child = 0;
        while (p.from < p.to && keys[p.from].key.n == p.depth) t.cell[p.cell].value = keys[p.from++].value; // last wins
        for (int i = p.from; i < p.to; i++) {
            uint8_t c = (uint8_t) keys[i].key.p[p.depth];
            if (!n_child || byte[n_child - 1] != c) start[n_child] = i, byte[n_child++] = c;
        }
        start[n_child] = p.to;
        if (!n_child) continue;
        uint32_t child = place_for(&t, byte, n_child);
        t.cell[p.cell].child = child; // the cells may have moved
        for (int i = n_child - 1; i >= 0; i--) {
            uint32_t at = child ^ byte[i];
            t.used[at >> 6] |= 1ull << (at & 63);
            t.cell[at].parent = p.cell;
            *PUSH(a, stack, n_stack, cap_stack) = (Part){at, start[i], start[i + 1], p.depth + 1};
        }
    }
    *n_cell = t.n_block * BLOCK;
    return t.cell;
}

void tok_trie_of_keys(TokBuild *b, const Str *keys) {
    TrieKey *all = NEWN(b->arena, TrieKey, b->n_vocab);
    int n = 0;
    for (int i = 0; i < b->n_vocab; i++)
        if (keys[i].n) all[n++] = (TrieKey){keys[i], i};
    b->trie = tok_trie(b->arena, all, n, &b->n_trie);
}
