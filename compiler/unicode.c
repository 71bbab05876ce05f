// Unicode properties for pre-tokenizers and normalisation. In: a code point or a property's
// name. Out: categories, and for normalisation lower case and unaccented forms. The one idea: sorted tables that
// tools/unicode.py writes (unicode.def, unicode_maps.def) answer everything.
#include "unicode.h"

static const struct {
    uint32_t first;
    uint8_t category;
} ranges[] = {
#define R(first, category) {first, category},
#include "unicode.def"
#undef R
};

static const char names[UNICODE_CATEGORIES][3] = {"Cc", "Cf", "Cn", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc",
    "Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};

// White_Space of the standard's PropList.
static const uint32_t spaces[][2] = {
    {0x09, 0x0D},
    {0x20, 0x20},
    {0x85, 0x85},
    {0xA0, 0xA0},
    {0x1680, 0x1680},
    {0x2000, 0x200A},
    {0x2028, 0x2029},
    {0x202F, 0x202F},
    {0x205F, 0x205F},
    {0x3000, 0x3000},
};

int unicode_range(int i, uint32_t *first, uint32_t *last) {
    if (i >= COUNT(ranges)) return -1;
    *first = ranges[i].first;
    *last = i + 1 < COUNT(ranges) ? ranges[i + 1].first - 1 : UNICODE_LAST;
    return ranges[i].category;
}

UnicodeCategory unicode_category(uint32_t code) {
    int low = 0, high = COUNT(ranges); // the row is in [low, high)
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (ranges[middle].first <= code) low = middle;
        else high = middle;
    }
    return (UnicodeCategory) ranges[low].category;
}

uint32_t unicode_mask(Str name) {
    uint32_t mask = 0;
    for (int i = 0; i < UNICODE_CATEGORIES; i++)
        if ((name.n == 1 && name.p[0] == names[i][0]) || str_is(name, names[i])) mask |= 1u << i;
    return mask;
}

bool unicode_space_range(int i, uint32_t *first, uint32_t *last) {
    if (i >= COUNT(spaces)) return false;
    *first = spaces[i][0];
    *last = spaces[i][1];
    return true;
}

static const struct {
    uint32_t first, last;
    int step, add;
} lower[] = {
#define LOWER(first, last, step, add) {first, last, step, add},
#define BASE(code, a, b, c)
#include "unicode_maps.def"
#undef LOWER
#undef BASE
};

static const uint32_t base[][4] = {
#define LOWER(first, last, step, add)
#define BASE(code, a, b, c) {code, a, b, c},
#include "unicode_maps.def"
};

uint32_t unicode_lower(uint32_t code) {
    int low = 0, high = COUNT(lower); // rows before `low` end before the code
    while (low < high) {
        int middle = (low + high) / 2;
        if (lower[middle].last < code) low = middle + 1;
        else high = middle;
    }
    if (low == COUNT(lower) || code < lower[low].first || (code - lower[low].first) % (uint32_t) lower[low].step)
        return code;
    return code + (uint32_t) lower[low].add;
}

int unicode_unaccented(uint32_t code, uint32_t to[3]) {
    if (code >= 0xAC00 && code < 0xD7A4) { // a syllable of Hangul is two or three letters, by the standard's rule
        uint32_t index = code - 0xAC00, last = index % 28;
        to[0] = 0x1100 + index / 588;
        to[1] = 0x1161 + index % 588 / 28;
        to[2] = 0x11A7 + last;
        return last ? 3 : 2;
    }
    int low = 0, high = COUNT(base), n = 0;
    while (low < high) {
        int middle = (low + high) / 2;
        if (base[middle][0] < code) low = middle + 1;
        else high = middle;
    }
    if (low == COUNT(base) || base[low][0] != code) {
        to[0] = code;
        return unicode_category(code) == Mn ? 0 : 1;
    }
    while (n < 3 && base[low][n + 1]) to[n] = base[low][n + 1], n++;
    return n;
}

int32_t utf8_next(const char *p, size_t n, int *len) {
    const uint8_t *b = (const uint8_t *) p;
    *len = 1;
    if (!n) return -1;
    if (b[0] < 0x80) return b[0];
    int want = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (b[0] < 0xC2 || b[0] > 0xF4 || n < (size_t) want) return -1;
    uint32_t code = b[0] & (0x7Fu >> want);
    for (int i = 1; i < want; i++) {
        if ((b[i] & 0xC0) != 0x80) return -1;
        code = code << 6 | (b[i] & 0x3Fu);
    }
    if (code < least[want] || code > UNICODE_LAST || (code >= 0xD800 && code < 0xE000)) return -1;
    *len = want;
    return (int32_t) code;
}

int utf8_put(char out[4], uint32_t code) {
    if (code < 0x80) return out[0] = (char) code, 1;
    int n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, code >>= 6) out[i] = (char) (0x80 | (code & 0x3F));
    out[0] = (char) ((0xF0 << (4 - n)) | code);
    return n;
}
