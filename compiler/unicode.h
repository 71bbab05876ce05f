// What Unicode says of a code point: its general category, whether it is white space, its lower case and its base.
#ifndef UNICODE_H
#define UNICODE_H

#include "util.h"

// The standard's own two-letter names; a category's group is its first letter.
typedef enum {
    Cc,
    Cf,
    Cn,
    Co,
    Cs,
    Ll,
    Lm,
    Lo,
    Lt,
    Lu,
    Mc,
    Me,
    Mn,
    Nd,
    Nl,
    No,
    Pc,
    Pd,
    Pe,
    Pf,
    Pi,
    Po,
    Ps,
    Sc,
    Sk,
    Sm,
    So,
    Zl,
    Zp,
    Zs,
    UNICODE_CATEGORIES
} UnicodeCategory;

#define UNICODE_LAST 0x10FFFFu

// Row i of the table of ranges: code points *first to *last are of the category returned; -1 after the last row.
int unicode_range(int i, uint32_t *first, uint32_t *last);
UnicodeCategory unicode_category(uint32_t code);
// The categories that a name as in \p{L}, \p{Lu} selects, as a mask; 0 for an unknown name.
uint32_t unicode_mask(Str name);
// \s: code points first..last of run i, false after the last run.
bool unicode_space_range(int i, uint32_t *first, uint32_t *last);
uint32_t unicode_lower(uint32_t code); // where lower case is one code point; else the code itself
// Its canonical decomposition without nonspacing marks (accents): how many code points, 0 to 3.
int unicode_unaccented(uint32_t code, uint32_t to[3]);
// One code point of well-formed UTF-8 at p[0..n), its length in *len; -1 and length 1 for a byte that is none.
int32_t utf8_next(const char *p, size_t n, int *len);
int utf8_put(char out[4], uint32_t code); // the length

#endif
