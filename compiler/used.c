// Support code that a program uses. In: support text as the templates have it, one function or table after the other,
// and the kernels that stand on it. Out: the support text without the functions and tables that nothing names. The one
// idea: a name that is called is a word of the text that calls it, so words are all that has to be looked at.
#include "emit.h"

#include <string.h>

// A definition with the comment above it, or lines up to a blank one.
typedef struct {
    Str text, name; // name: of a static function or table, else empty, and the block stays
    int next;       // another of this name, from 1; 0: none
    bool kept, first; // first: of its file; a second blank line stands behind the one before
} Block;

typedef struct {
    Arena *a;
    Block *block;
    int n, cap;
    Lookup named; // the block of a name, from 1
} Blocks;

// The next word outside of comments.
static Str take_word(Str *text) {
    while (text->n && !is_c_word(*text->p))
        if (str_starts(*text, "//")) str_line(text);
        else text->p++, text->n--;
    Str word = {text->p, 0};
    while (text->n && is_c_word(*text->p)) word.n++, text->p++, text->n--;
    return word;
}

// The word before the first bracket of a definition that begins with `static`, attributes aside.
static Str defined_name(Str line) {
    static const char attribute[] = "static inline __attribute__((always_inline)) ";
    if (!str_starts(line, "static ")) return S("");
    size_t end = str_starts(line, attribute) ? strlen(attribute) : 0;
    while (end < line.n && line.p[end] != '(' && line.p[end] != '[') end++;
    size_t begin = end;
    while (begin > 0 && is_c_word(line.p[begin - 1])) begin--;
    return end < line.n ? (Str){line.p + begin, end - begin} : S("");
}

static void cut(Blocks *b, Str text) {
    while (text.n) {
        bool first = *text.p == '\n';
        if (first) str_line(&text);
        if (!text.n) break;
        Block *block = PUSH(b->a, b->block, b->n, b->cap);
        *block = (Block){.text = {text.p, 0}, .first = first};
        for (bool inside = false, more = true; more && text.n;) {
            Str line = str_line(&text);
            block->text.n += line.n;
            if (!block->name.n) block->name = defined_name(line);
            bool closes = inside && line.p[0] == '}', blank = !inside && line.n == 1;
            inside = !closes && (inside || (line.n > 1 && line.p[line.n - 2] == '{'));
            more = !blank && (!closes || (text.n && *text.p == '\n')); // with the blank line behind it
        }
        int *named = lookup_at(&b->named, block->name);
        block->next = *named, *named = b->n;
    }
}

static void keep_words_of(Blocks *b, Str text);

static void keep(Blocks *b, Block *block) {
    block->kept = true;
    keep_words_of(b, block->text);
}

static void keep_words_of(Blocks *b, Str text) {
    for (Str word; (word = take_word(&text)).n;)
        for (int i = lookup(&b->named, word); i; i = b->block[i - 1].next)
            if (!b->block[i - 1].kept) keep(b, &b->block[i - 1]);
}

// Comments alone: what opens a file. They go if nothing else of it stays.
static bool only_comments(Str text) {
    while (text.n) {
        Str line = str_line(&text);
        if (line.n > 1 && !str_starts(line, "//")) return false;
    }
    return true;
}

static void drop_headings(Blocks *b) {
    for (int i = b->n, live = 0; i-- > 0;) {
        Block *block = &b->block[i];
        if (only_comments(block->text)) block->kept &= live > 0;
        live = block->first ? 0 : live + block->kept;
    }
}

Str used_support(Arena *a, Str support, Str code) {
    Blocks b = {.a = a, .named = {.arena = a}};
    cut(&b, support);
    for (int i = 0; i < b.n; i++)
        if (!b.block[i].name.n) keep(&b, &b.block[i]);
    keep_words_of(&b, code);
    drop_headings(&b);
    Out o = out_new(a);
    for (int i = 0; i < b.n; i++)
        if (b.block[i].kept) out_str(&o, b.block[i].text);
    return out_text(&o);
}
