// Pre-tokenizing: a text is cut into words by the model's splitters. In: a text. Out: its pieces, one by one.
// The one idea: each splitter is an automaton that remembers the last place where a match ended, so that one
// walk finds what the regular expression would have matched; text between matches is a piece of its own.
#include "tok_internal.h"

// The class of the character at p, its length in *len. A byte that is no UTF-8 counts as U+FFFD.
static inline uint32_t class_at(
    const uint16_t *page, const uint8_t *classes, const uint8_t *p, const uint8_t *end, int *len) {
    uint32_t b = *p;
    *len = 1;
    if (b < 0x80) return classes[b];
    uint32_t code = 0xFFFD;
    int n = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : 2;
    if (b >= 0xC2 && b <= 0xF4 && end - p >= n && (p[1] & 0xC0) == 0x80) {
        uint32_t c = b & (0x7Fu >> n);
        int i = 1;
        for (; i < n && (p[i] & 0xC0) == 0x80; i++) c = c << 6 | (p[i] & 0x3Fu);
        uint32_t least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
        if (i == n && c >= least && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF)) code = c, *len = n;
    }
    return classes[(uint32_t) page[code >> 7] << 7 | (code & 127)];
}

// The end of the match that begins at p, NULL for none; *uncut when its text is not to be cut out.
static const uint8_t *match_at(
    const Tokenizer *t, const TokSplit *s, const uint8_t *p, const uint8_t *end, bool *uncut) {
    const uint32_t *next = TOK_AT(t, uint32_t, s->next);
    const uint16_t *page = TOK_AT(t, uint16_t, s->page);
    const uint8_t *classes = t->base + s->classes, *best = NULL;
    uint32_t state = s->n_class, kind = 0;
    while (state) {
        int len = 1;
        uint32_t class = p < end ? class_at(page, classes, p, end, &len) : s->n_class - 1;
        uint32_t entry = next[state + class];
        if (entry & 3) best = p, kind = entry & 3;
        state = entry >> 2;
        p += len;
    }
    *uncut = kind == 2;
    return best;
}

static const uint8_t *skip_character(const uint8_t *p, const uint8_t *end) {
    for (p++; p < end && (*p & 0xC0) == 0x80; p++) {}
    return p;
}

// Finds the next match of the level at or after `pos`.
static void find_match(const Tokenizer *t, const TokSplit *s, SplitLevel *l) {
    const uint8_t *p = l->pos;
    while (p < l->end) {
        bool uncut;
        const uint8_t *e = match_at(t, s, p, l->end, &uncut);
        if (e && e > p && !uncut) {
            l->match = p;
            l->match_end = e;
            return;
        }
        p = e && e > p ? e : skip_character(p, l->end);
    }
    l->match = l->match_end = l->end;
}

// Groups of three characters, counted from the right end of a match: the first has what is left over.
static const uint8_t *next_group(SplitLevel *l) {
    size_t n = 0, take = 3;
    if (!l->grouped)
        for (const uint8_t *p = l->pos; p < l->match_end; p = skip_character(p, l->match_end)) n++;
    l->grouped = true;
    if (n % 3) take = n % 3;
    const uint8_t *p = l->pos;
    for (; take && p < l->match_end; take--) p = skip_character(p, l->match_end);
    return p;
}

static void next_piece(const Tokenizer *t, const TokSplit *s, SplitLevel *l, const uint8_t **from, const uint8_t **to) {
    if (!l->match) find_match(t, s, l);
    *from = l->pos;
    if (l->pos < l->match) {
        *to = l->match;
    } else if (s->groups) {
        *to = l->match = next_group(l); // the rest of the match comes next
    } else {
        *to = l->match_end;
    }
    l->pos = *to;
    if (l->pos == l->match_end) l->match = NULL, l->grouped = false;
}

void split_begin(Splitter *s, const Tokenizer *t, const uint8_t *text, size_t n) {
    s->t = t;
    s->n = (int) t->head->n_split;
    s->top = 0;
    s->level[0] = (SplitLevel){text, text + n, NULL, NULL, false};
}

bool split_next(Splitter *s, const uint8_t **piece, size_t *n) {
    const uint8_t *from, *to;
    while (s->top >= 0 && s->level[s->top].pos == s->level[s->top].end) s->top--;
    if (s->top < 0) return false;
    if (!s->n) {
        from = s->level[0].pos;
        to = s->level[0].pos = s->level[0].end;
    }
    while (s->n) {
        next_piece(s->t, TOK_AT(s->t, TokSplit, s->t->head->split[s->top]), &s->level[s->top], &from, &to);
        if (s->top == s->n - 1) break;
        s->level[++s->top] = (SplitLevel){from, to, NULL, NULL, false};
    }
    *piece = from;
    *n = (size_t) (to - from);
    return true;
}
