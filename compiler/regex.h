// Regular expressions of pre-tokenizers, compiled to automata that run in linear time.
#ifndef REGEX_H
#define REGEX_H

#include "util.h"

#define REGEX_PAGES 8704 // code points / 128

// next[state * n_class + class]: the state after, premultiplied by n_class, times four; plus 1 when a match ends before
// this character, plus 2 when it does and leaves its text uncut. State 0 is dead, 1 is the start; the last class is
// the end of the text. A code point's class is classes[page[code >> 7] * 128 + (code & 127)].
typedef struct {
    int n_state, n_class, n_page;
    uint32_t *next;
    uint16_t *page;
    uint8_t *classes;
} Regex;

Regex *regex_compile(Arena *a, Str pattern);
// The end of the match that begins at text[at], -1 for none; *uncut as above. For tests: a slow way through the tables.
int64_t regex_match(const Regex *r, Str text, size_t at, bool *uncut);

#endif
