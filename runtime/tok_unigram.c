// Unigram vocabularies: the cut of a text into tokens with the highest sum of scores. In: a text. Out: ids.
// The one idea: the text is normalised by a trie of replacements, then one pass keeps for each place the best way to
// get there, which one walk down the trie of tokens from each place before it finds.
#include <float.h>

#include "tok_internal.h"

// ---- normalising ----

typedef struct {
    const uint8_t *p; // what stands for the text's next bytes
    size_t n, used;
} Chunk;

static Chunk next_chunk(const Tokenizer *t, const uint8_t *p, size_t n) {
    const TokCell *cells = TOK_AT(t, TokCell, t->head->map), *cell = cells;
    int len;
    if (t->head->map) {
        size_t best = 0;
        int32_t value = -1;
        for (size_t i = 0; i < n && (cell = tok_child(cells, cell, p[i])); i++)
            if (cell->value >= 0) best = i + 1, value = cell->value;
        if (best) {
            const uint32_t *span = TOK_AT(t, uint32_t, t->head->map_span) + value;
            return (Chunk){t->base + span[0], span[1] - span[0], best};
        }
    }
    if (tok_character(p, n, &len) == 0xFFFD && len == 1) return (Chunk){(const uint8_t *) "\xEF\xBF\xBD", 3, 1};
    return (Chunk){p, (size_t) len, (size_t) len};
}

// In the normalised text a space is a space, where the vocabulary writes U+2581.
static size_t put_spaced(uint8_t *to, const uint8_t *p, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; k++) {
        bool space = n - i >= 3 && p[i] == 0xE2 && p[i + 1] == 0x96 && p[i + 2] == 0x81;
        to[k] = space ? ' ' : p[i];
        i += space ? 3 : 1;
    }
    return k;
}

static size_t normalise(const Tokenizer *t, const uint8_t *text, size_t n, uint8_t *to) {
    bool trim = t->head->flags & TOK_F_TRIM_SPACES, after_space = trim;
    size_t at = 0, k = 0;
    while (trim && at < n) {
        Chunk c = next_chunk(t, text + at, n - at);
        if (c.n != 1 || *c.p != ' ') break;
        at += c.used;
    }
    if (at == n) return 0;
    if (t->head->flags & TOK_F_SPACE_PREFIX) to[k++] = ' ';
    while (at < n) {
        Chunk c = next_chunk(t, text + at, n - at);
        at += c.used;
        while (after_space && c.n && *c.p == ' ') c.p++, c.n--;
        k += put_spaced(to + k, c.p, c.n);
        if (c.n) after_space = trim && c.p[c.n - 1] == ' ';
    }
    while (trim && k && to[k - 1] == ' ') k--;
    return k;
}

// ---- the best cut ----

typedef struct {
    union {
        double score; // of the best way here
        uint64_t to;  // afterwards: where the way goes on
    };
    int32_t id;    // the token that ends here; -1: an unknown character
    uint32_t from; // where it begins
} Step;

static void better(Step *step, double score, int32_t id, size_t from) {
    if (score > step->score) *step = (Step){{score}, id, (uint32_t) from};
}

static void find_best(const Tokenizer *t, const uint8_t *text, size_t n, Step *step) {
    const TokCell *cells = TOK_AT(t, TokCell, t->head->trie);
    const float *score = TOK_AT(t, float, t->head->score);
    double unknown = (double) score[t->head->n_vocab];
    for (size_t i = 0; i <= n; i++) step[i].score = i ? -DBL_MAX : 0;
    for (size_t at = 0, length; at < n; at += length) {
        const TokCell *cell = cells;
        double here = step[at].score;
        bool covered = false;
        length = (size_t) tok_lead_length(text[at]);
        for (size_t i = at; i < n && (cell = tok_child(cells, cell, text[i])); i++) {
            if (cell->value < 0) continue;
            covered |= i + 1 - at == length;
            better(&step[i + 1], here + (double) score[cell->value], cell->value, at);
        }
        if (!covered) better(&step[at + length], here + unknown, -1, at);
    }
}

static void emit_unknown(Encoder *e, const uint8_t *p, size_t n, bool again) {
    const TokHeader *h = e->t->head;
    const int32_t *byte = TOK_AT(e->t, int32_t, h->byte_token);
    if (!(h->flags & TOK_F_FALLBACK)) {
        if (!again) tok_emit(e, h->role[TOK_UNK]); // a run of unknown characters is one token
        return;
    }
    if (*p == ' ') tok_emit(e, byte[0xE2]), tok_emit(e, byte[0x96]), tok_emit(e, byte[0x81]);
    else
        for (size_t i = 0; i < n; i++) tok_emit(e, byte[p[i]]);
}

void tok_unigram(Encoder *e, const uint8_t *text, size_t n) {
    uint8_t *copy = e->scratch;
    Step *step = (Step *) (void *) (e->scratch + e->room);
    size_t length = normalise(e->t, text, n, copy);
    if (!length) return;
    find_best(e->t, copy, length, step);
    for (size_t at = length; at; at = step[at].from) step[step[at].from].to = at;
    bool again = false;
    for (size_t at = 0, to; at < length; at = to) {
        to = step[at].to;
        bool unknown = step[to].id < 0 || step[to].id == e->t->head->role[TOK_UNK];
        if (unknown) emit_unknown(e, copy + at, to - at, again);
        else tok_emit(e, step[to].id);
        again = unknown;
    }
}
