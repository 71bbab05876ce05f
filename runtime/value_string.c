// The methods of str, code point by code point as Python's. In: a str and arguments. Out: new strs. See value.h.
#define _GNU_SOURCE
#include "chat_template.h"
#include "value_unicode.h"

#include <string.h>

// ---- pieces ----
static Value part(Render *r, Value s, const char *from, const char *to) {
    return marked(text_of(r, from, (size_t) (to - from)), s.markup);
}

static const char *end_of(Value s) {
    return s.s->p + s.s->n;
}

static Value need_str(Render *r, const char *method, Value v) {
    if (is_str(v)) return v;
    raise_error(r, "TypeError", "%s() argument must be str, not %s", method, type_name(v));
}

Value str_add(Render *r, Value a, Value b) {
    if (a.markup || b.markup) {
        a = escape(r, a);
        b = escape(r, b);
    }
    Buffer out = {0};
    if (a.s->p + a.s->n == r->base + r->used && a.s->n) { // a ends where the free memory begins: only b is written
        out = (Buffer){(char *) a.s->p, a.s->n, a.s->n};
    } else {
        buffer_add(r, &out, a.s->p, a.s->n);
    }
    buffer_add(r, &out, b.s->p, b.s->n);
    return marked(buffer_value(r, &out), a.markup);
}

Value concat(Render *r, const Value *v, int n) {
    Buffer out = {0};
    for (int i = 0; i < n; i++) {
        Value s = to_str(r, v[i]);
        if (i == 0 && s.s->n && s.s->p + s.s->n == r->base + r->used) out = (Buffer){(char *) s.s->p, s.s->n, s.s->n};
        else buffer_str(r, &out, s);
    }
    return buffer_value(r, &out);
}

Value str_repeat(Render *r, Value s, int64_t n) {
    if (n <= 0 || s.s->n == 0) return marked(text_of(r, "", 0), s.markup);
    if ((uint64_t) n > r->size / s.s->n)
        raise_error(r, "MemoryError", "a text of %lld times %zu bytes is more than a rendering may take", (long long) n,
            s.s->n);
    Buffer out = {0};
    for (int64_t i = 0; i < n; i++) buffer_str(r, &out, s);
    return marked(buffer_value(r, &out), s.markup);
}

Value str_slice(Render *r, Value s, int64_t start, int64_t stop, int64_t by, int64_t n) {
    (void) stop;
    if (by == 1) return part(r, s, utf8_at(s.s, (size_t) start), utf8_at(s.s, (size_t) (start + n)));
    Buffer out = {0};
    for (int64_t i = 0; i < n; i++, step(r)) {
        uint32_t c;
        const char *p = utf8_at(s.s, (size_t) (start + i * by));
        buffer_add(r, &out, p, utf8_get(p, end_of(s), &c));
    }
    return marked(buffer_value(r, &out), s.markup);
}

// ---- searching ----
static const char *find_bytes(const char *p, const char *end, const String *sub, bool last) {
    if ((size_t) (end - p) < sub->n) return NULL;
    if (last) {
        for (const char *at = end - sub->n; at >= p; at--) {
            if (!memcmp(at, sub->p, sub->n)) return at;
        }
        return NULL;
    }
    return sub->n ? memmem(p, (size_t) (end - p), sub->p, sub->n) : p;
}

// Indices as Python clips them: negative from the end.
static void clip(Value s, Value from, Value to, Render *r, int64_t *low, int64_t *high) {
    int64_t n = (int64_t) s.s->chars;
    *low = is_missing(from) || from.kind == V_NONE ? 0 : index_clamped(r, from);
    *high = is_missing(to) || to.kind == V_NONE ? n : index_clamped(r, to);
    if (*high > n) *high = n;
    if (*high < 0) *high = *high + n < 0 ? 0 : *high + n;
    if (*low < 0) *low = *low + n < 0 ? 0 : *low + n;
}

int64_t str_find(Value s, Value sub, int64_t from, int64_t to, bool last) {
    if (from > to || from > (int64_t) s.s->chars) return -1;
    const char *p = utf8_at(s.s, (size_t) from), *end = utf8_at(s.s, (size_t) to);
    const char *at = find_bytes(p, end, sub.s, last);
    return at ? from + (int64_t) utf8_count(p, (size_t) (at - p)) : -1;
}

static int64_t count_of(Value s, Value sub, int64_t from, int64_t to) {
    if (from > to || from > (int64_t) s.s->chars) return 0;
    if (!sub.s->n) return to - from + 1;
    const char *p = utf8_at(s.s, (size_t) from), *end = utf8_at(s.s, (size_t) to);
    int64_t n = 0;
    for (; (p = find_bytes(p, end, sub.s, false)); p += sub.s->n) n++;
    return n;
}

Value str_replace(Render *r, Value s, Value from, Value to, int64_t count) {
    Buffer out = {0};
    const char *p = s.s->p, *end = end_of(s);
    if (!from.s->n) {
        for (; count != 0; count--) {
            buffer_str(r, &out, to);
            if (p == end) break;
            uint32_t c;
            size_t n = utf8_get(p, end, &c);
            buffer_add(r, &out, p, n);
            p += n;
        }
    } else {
        for (const char *at; count != 0 && (at = find_bytes(p, end, from.s, false)); count--) {
            buffer_add(r, &out, p, (size_t) (at - p));
            buffer_str(r, &out, to);
            p = at + from.s->n;
        }
    }
    buffer_add(r, &out, p, (size_t) (end - p));
    return buffer_value(r, &out);
}

// ---- case ----
static int32_t run_delta(const CaseRun *run, size_t n, uint32_t c) {
    size_t low = 0, high = n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (run[middle].first <= c) low = middle;
        else high = middle;
    }
    if (c < run[low].first || c > run[low].last || (c - run[low].first) % (uint32_t) run[low].stride) return 0;
    return run[low].delta;
}

typedef enum { TO_LOWER, TO_UPPER, TO_TITLE, TO_FOLD } CaseKind;
#define TABLE(name)                                                                                                    \
    {                                                                                                                  \
        uc_##name, sizeof uc_##name / sizeof *uc_##name, uc_##name##_special,                                          \
            sizeof uc_##name##_special / sizeof *uc_##name##_special                                                   \
    }

static void put_case(Render *r, Buffer *out, uint32_t c, CaseKind kind) {
    static const struct {
        const CaseRun *run;
        size_t n_run;
        const CaseSpecial *special;
        size_t n_special;
    } tables[] = {TABLE(lower), TABLE(upper), TABLE(title), TABLE(fold)};
    char bytes[4];
    if (c < 0x80) {
        bool letter = kind == TO_LOWER || kind == TO_FOLD ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
        bytes[0] = (char) (letter ? c ^ 32 : c);
        buffer_add(r, out, bytes, 1);
        return;
    }
    for (size_t i = 0; i < tables[kind].n_special; i++) {
        const CaseSpecial *special = &tables[kind].special[i];
        if (special->c != c) continue;
        for (int k = 0; k < 3 && special->to[k]; k++) buffer_add(r, out, bytes, utf8_write(bytes, special->to[k]));
        return;
    }
    c = (uint32_t) ((int32_t) c + run_delta(tables[kind].run, tables[kind].n_run, c));
    buffer_add(r, out, bytes, utf8_write(bytes, c));
}

static bool cased(uint32_t c) {
    return uc_flags_of(c) & (UC_UPPER | UC_LOWER | UC_TITLE);
}

static const char *back(const char *p, const char *begin) {
    do p--;
    while (p > begin && ((unsigned char) *p & 0xC0) == 0x80);
    return p;
}

// A capital sigma at `at` ends a word: a cased letter before it and none after, marks between not counting.
static bool final_sigma(Value s, const char *at) {
    uint32_t c = 0;
    const char *p = at;
    while (p > s.s->p) {
        p = back(p, s.s->p);
        utf8_get(p, end_of(s), &c);
        if (!(uc_flags_of(c) & UC_IGNORABLE)) break;
    }
    if (p == at || (uc_flags_of(c) & UC_IGNORABLE) || !cased(c)) return false;
    for (p = at + 2; p < end_of(s);) {
        p += utf8_get(p, end_of(s), &c);
        if (!(uc_flags_of(c) & UC_IGNORABLE)) return !cased(c);
    }
    return true;
}

static void put_lower(Render *r, Buffer *out, Value s, const char *p, uint32_t c) {
    if (c == 0x3A3) buffer_z(r, out, final_sigma(s, p) ? "\xCF\x82" : "\xCF\x83");
    else put_case(r, out, c, TO_LOWER);
}

typedef enum { CASE_LOWER, CASE_UPPER, CASE_FOLD, CASE_CAPITAL, CASE_TITLE, CASE_SWAP, CASE_WORD } CaseHow;

static Value change_case(Render *r, Value s, CaseHow how) {
    Buffer out = {0};
    bool after_cased = false;
    for (const char *p = s.s->p; p < end_of(s);) {
        uint32_t c;
        size_t n = utf8_get(p, end_of(s), &c);
        bool first = p == s.s->p;
        switch (how) {
        case CASE_LOWER: put_lower(r, &out, s, p, c); break;
        case CASE_UPPER: put_case(r, &out, c, TO_UPPER); break;
        case CASE_FOLD: put_case(r, &out, c, TO_FOLD); break;
        case CASE_CAPITAL:
            if (first) put_case(r, &out, c, TO_TITLE);
            else put_lower(r, &out, s, p, c);
            break;
        case CASE_WORD: // item[0].upper() + item[1:].lower()
            if (first) {
                put_case(r, &out, c, TO_UPPER);
                Value rest = change_case(r, part(r, s, p + n, end_of(s)), CASE_LOWER);
                buffer_str(r, &out, rest);
                return buffer_value(r, &out);
            }
            break;
        case CASE_TITLE:
            if (after_cased) put_lower(r, &out, s, p, c);
            else put_case(r, &out, c, TO_TITLE);
            after_cased = cased(c);
            break;
        case CASE_SWAP:
            if (uc_flags_of(c) & UC_UPPER) put_lower(r, &out, s, p, c);
            else {
                if (uc_flags_of(c) & UC_LOWER) put_case(r, &out, c, TO_UPPER);
                else buffer_add(r, &out, p, n);
            }
            break;
        }
        p += n;
    }
    return marked(buffer_value(r, &out), s.markup);
}

Value str_lower(Render *r, Value s) {
    return change_case(r, s, CASE_LOWER);
}
Value str_upper(Render *r, Value s) {
    return change_case(r, s, CASE_UPPER);
}
Value str_capitalize(Render *r, Value s) {
    return change_case(r, s, CASE_CAPITAL);
}
Value str_title_word(Render *r, Value s) {
    return change_case(r, marked(s, false), CASE_WORD);
}

bool str_all(Value s, unsigned flags) {
    for (const char *p = s.s->p; p < end_of(s);) {
        uint32_t c;
        p += utf8_get(p, end_of(s), &c);
        if (!(uc_flags_of(c) & flags)) return false;
    }
    return s.s->n > 0;
}

static bool all_cased(Value s, unsigned want) {
    bool any = false;
    for (const char *p = s.s->p; p < end_of(s);) {
        uint32_t c;
        p += utf8_get(p, end_of(s), &c);
        unsigned flags = uc_flags_of(c) & (UC_UPPER | UC_LOWER | UC_TITLE);
        if (flags & ~want) return false;
        any |= flags != 0;
    }
    return any;
}

bool str_is_lower(Value s) {
    return all_cased(s, UC_LOWER);
}
bool str_is_upper(Value s) {
    return all_cased(s, UC_UPPER);
}

static bool is_title(Value s) {
    bool any = false, after_cased = false;
    for (const char *p = s.s->p; p < end_of(s);) {
        uint32_t c;
        p += utf8_get(p, end_of(s), &c);
        unsigned flags = uc_flags_of(c);
        if (flags & (UC_UPPER | UC_TITLE)) {
            if (after_cased) return false;
            any = after_cased = true;
        } else if (flags & UC_LOWER) {
            if (!after_cased) return false;
            any = true;
        } else {
            after_cased = false;
        }
    }
    return any;
}

static bool is_identifier(Value s) {
    uint32_t c;
    if (!s.s->n) return false;
    const char *p = s.s->p + utf8_get(s.s->p, end_of(s), &c);
    if (!(uc_flags_of(c) & UC_ID_START)) return false;
    return p == end_of(s) ||
        str_all((Value){.kind = V_STR, .s = &(String){p, (size_t) (end_of(s) - p), 0}}, UC_ID_PART);
}

// ---- strip, pad ----
static bool in_set(const Value *chars, uint32_t c) {
    if (!chars) return uc_flags_of(c) & UC_SPACE;
    for (const char *p = chars->s->p; p < end_of(*chars);) {
        uint32_t other;
        p += utf8_get(p, end_of(*chars), &other);
        if (other == c) return true;
    }
    return false;
}

Value str_strip(Render *r, Value s, Value chars, bool left, bool right) {
    bool white = is_missing(chars) || chars.kind == V_NONE;
    if (!white && !is_str(chars))
        raise_error(r, "TypeError", "%s arg must be None or str", left && right ? "strip" : left ? "lstrip" : "rstrip");
    const char *p = s.s->p, *end = end_of(s);
    const Value *set = white ? NULL : &chars;
    uint32_t c;
    for (size_t n; left && p < end; p += n) {
        n = utf8_get(p, end, &c);
        if (!in_set(set, c)) break;
    }
    for (const char *before; right && end > p; end = before) {
        before = back(end, p);
        utf8_get(before, end, &c);
        if (!in_set(set, c)) break;
    }
    return part(r, s, p, end);
}

static void put_fill(Render *r, Buffer *out, Value fill, int64_t n) {
    if (n > 0 && (uint64_t) n > r->size / fill.s->n)
        raise_error(r, "MemoryError", "a text of %lld characters is more than a rendering may take", (long long) n);
    for (; n > 0; n--) buffer_str(r, out, fill);
}

Value str_center(Render *r, Value s, int64_t width, Value fill, int how) {
    static const String space = STRING(" ", 1);
    if (is_missing(fill)) fill = str_value(&space);
    if (!is_str(fill))
        raise_error(r, "TypeError", "The fill character must be a unicode character, not %s", type_name(fill));
    if (fill.s->chars != 1) raise_error(r, "TypeError", "The fill character must be exactly one character long");
    int64_t pad = width > (int64_t) s.s->chars ? width - (int64_t) s.s->chars : 0;
    int64_t left = how < 0 ? 0 : how > 0 ? pad : pad / 2 + (pad & width & 1);
    Buffer out = {0};
    put_fill(r, &out, fill, left);
    buffer_str(r, &out, s);
    put_fill(r, &out, fill, pad - left);
    return marked(buffer_value(r, &out), s.markup);
}

static Value zfill(Render *r, Value s, int64_t width) {
    static const String zero = STRING("0", 1);
    if (width <= (int64_t) s.s->chars) return s;
    size_t sign = s.s->n && (*s.s->p == '-' || *s.s->p == '+');
    Buffer out = {0};
    buffer_add(r, &out, s.s->p, sign);
    put_fill(r, &out, str_value(&zero), width - (int64_t) s.s->chars);
    buffer_add(r, &out, s.s->p + sign, s.s->n - sign);
    return buffer_value(r, &out);
}

static Value expand_tabs(Render *r, Value s, int64_t size) {
    static const String space = STRING(" ", 1);
    Buffer out = {0};
    int64_t column = 0;
    for (const char *p = s.s->p; p < end_of(s);) {
        uint32_t c;
        size_t n = utf8_get(p, end_of(s), &c);
        if (c == '\t') {
            int64_t wide = size > 0 ? size - column % size : 0;
            put_fill(r, &out, str_value(&space), wide);
            column += wide;
        } else {
            buffer_add(r, &out, p, n);
            column = c == '\n' || c == '\r' ? 0 : column + 1;
        }
        p += n;
    }
    return buffer_value(r, &out);
}

// ---- split, join ----
static void reverse(Values *list) {
    for (size_t i = 0; i < list->n / 2; i++) {
        Value v = list->v[i];
        list->v[i] = list->v[list->n - 1 - i];
        list->v[list->n - 1 - i] = v;
    }
}

static bool space_at(const char *p, const char *end, size_t *n) {
    uint32_t c;
    *n = utf8_get(p, end, &c);
    return uc_flags_of(c) & UC_SPACE;
}

static Value split_space(Render *r, Value s, int64_t max) {
    Values out = {0};
    const char *p = s.s->p, *end = end_of(s);
    for (size_t n;;) {
        while (p < end && space_at(p, end, &n)) p += n;
        if (p == end) break;
        if (max >= 0 && (int64_t) out.n == max) {
            push(r, &out, part(r, s, p, end));
            break;
        }
        const char *from = p;
        while (p < end && !space_at(p, end, &n)) p += n;
        push(r, &out, part(r, s, from, p));
    }
    return values_list(r, &out);
}

static Value rsplit_space(Render *r, Value s, int64_t max) {
    Values out = {0};
    const char *p = s.s->p, *end = end_of(s);
    size_t n;
    for (;;) {
        while (end > p && space_at(back(end, p), end, &n)) end = back(end, p);
        if (p == end) break;
        if (max >= 0 && (int64_t) out.n == max) {
            push(r, &out, part(r, s, p, end));
            break;
        }
        const char *to = end;
        while (end > p && !space_at(back(end, p), end, &n)) end = back(end, p);
        push(r, &out, part(r, s, end, to));
    }
    reverse(&out);
    return values_list(r, &out);
}

Value str_split(Render *r, Value s, Value sep, int64_t max, bool from_right) {
    if (is_missing(sep) || sep.kind == V_NONE) return from_right ? rsplit_space(r, s, max) : split_space(r, s, max);
    if (!is_str(sep)) raise_error(r, "TypeError", "must be str or None, not %s", type_name(sep));
    if (!sep.s->n) raise_error(r, "ValueError", "empty separator");
    Values out = {0};
    const char *p = s.s->p, *end = end_of(s);
    for (const char *at; max < 0 || (int64_t) out.n < max;) {
        if (!(at = find_bytes(p, end, sep.s, from_right))) break;
        if (from_right) {
            push(r, &out, part(r, s, at + sep.s->n, end));
            end = at;
        } else {
            push(r, &out, part(r, s, p, at));
            p = at + sep.s->n;
        }
    }
    push(r, &out, part(r, s, p, end));
    if (from_right) reverse(&out);
    return values_list(r, &out);
}

static bool is_line_end(uint32_t c) {
    return (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

Value str_split_lines(Render *r, Value s, bool keep_ends) {
    Values out = {0};
    const char *p = s.s->p, *end = end_of(s), *from = p;
    while (p < end) {
        uint32_t c;
        const char *at = p;
        p += utf8_get(p, end, &c);
        if (!is_line_end(c)) continue;
        if (c == '\r' && p < end && *p == '\n') p++;
        push(r, &out, part(r, s, from, keep_ends ? p : at));
        from = p;
    }
    if (from < end) push(r, &out, part(r, s, from, end));
    return values_list(r, &out);
}

Value str_join(Render *r, Value sep, Value items) {
    if (!iterable(items)) raise_error(r, "TypeError", "can only join an iterable");
    Value list = list_from(r, items);
    Buffer out = {0};
    for (size_t i = 0; i < list.list->n; i++) {
        Value v = list.list->v[i];
        if (sep.markup) v = escape(r, v);
        if (!is_str(v))
            raise_error(r, "TypeError", "sequence item %zu: expected str instance, %s found", i, type_name(v));
        if (i) buffer_str(r, &out, sep);
        buffer_str(r, &out, v);
    }
    return marked(buffer_value(r, &out), sep.markup);
}

static Value partition(Render *r, Value s, Value sep, bool last) {
    if (!is_str(sep)) raise_error(r, "TypeError", "must be str, not %s", type_name(sep));
    if (!sep.s->n) raise_error(r, "ValueError", "empty separator");
    const char *at = find_bytes(s.s->p, end_of(s), sep.s, last);
    Value three[3] = {text_of(r, "", 0), text_of(r, "", 0), text_of(r, "", 0)};
    if (at) {
        three[0] = part(r, s, s.s->p, at);
        three[1] = marked(sep, s.markup);
        three[2] = part(r, s, at + sep.s->n, end_of(s));
    } else {
        three[last ? 2 : 0] = s;
    }
    for (int i = 0; i < 3; i++) three[i].markup = s.markup;
    return tuple_of(r, three, 3);
}

static bool has_affix(Render *r, Value s, Value affix, Value from, Value to, bool at_end) {
    int64_t low, high;
    clip(s, from, to, r, &low, &high);
    if (affix.kind == V_TUPLE) {
        for (size_t i = 0; i < affix.list->n; i++) {
            if (!is_str(affix.list->v[i])) {
                raise_error(r, "TypeError", "tuple for %s must only contain str, not %s",
                    at_end ? "endswith" : "startswith", type_name(affix.list->v[i]));
            }
            if (has_affix(r, s, affix.list->v[i], from, to, at_end)) return true;
        }
        return false;
    }
    if (!is_str(affix)) {
        raise_error(r, "TypeError", "%s first arg must be str or a tuple of str, not %s",
            at_end ? "endswith" : "startswith", type_name(affix));
    }
    if (low > high || low > (int64_t) s.s->chars) return false;
    const char *p = utf8_at(s.s, (size_t) low), *end = utf8_at(s.s, (size_t) high);
    if ((size_t) (end - p) < affix.s->n) return false;
    return !memcmp(at_end ? end - affix.s->n : p, affix.s->p, affix.s->n);
}

static Value remove_affix(Render *r, Value s, Value affix, bool at_end) {
    need_str(r, at_end ? "removesuffix" : "removeprefix", affix);
    if (!affix.s->n || !has_affix(r, s, affix, MISSING, MISSING, at_end)) return s;
    return at_end ? part(r, s, s.s->p, end_of(s) - affix.s->n) : part(r, s, s.s->p + affix.s->n, end_of(s));
}

// ---- the methods by number ----
#define METHODS(X)                                                                                                     \
    X(capitalize, "/")                                                                                                 \
    X(casefold, "/") X(center, "/ width, fill=") X(count, "/ sub, start=, end=") X(endswith, "/ suffix, start=, end=") \
        X(expandtabs, "tabsize=") X(find, "/ sub, start=, end=") X(format, NULL) X(index, "/ sub, start=, end=")       \
            X(isalnum, "/") X(isalpha, "/") X(isascii, "/") X(isdecimal, "/") X(isdigit, "/") X(isidentifier, "/")     \
                X(islower, "/") X(isnumeric, "/") X(isprintable, "/") X(isspace, "/") X(istitle, "/") X(isupper, "/")  \
                    X(join, "/ iterable") X(ljust, "/ width, fill=") X(lower, "/") X(lstrip, "/ chars=")               \
                        X(partition, "/ sep") X(removeprefix, "/ prefix") X(removesuffix, "/ suffix")                  \
                            X(replace, "/ old, new, count=") X(rfind, "/ sub, start=, end=")                           \
                                X(rindex, "/ sub, start=, end=") X(rjust, "/ width, fill=") X(rpartition, "/ sep")     \
                                    X(rsplit, "sep=, maxsplit=") X(rstrip, "/ chars=") X(split, "sep=, maxsplit=")     \
                                        X(splitlines, "keepends=") X(startswith, "/ prefix, start=, end=")             \
                                            X(strip, "/ chars=") X(swapcase, "/") X(title, "/") X(upper, "/")          \
                                                X(zfill, "/ width")

#define X(name, signature) STR_##name,
enum { METHODS(X) STR_METHODS };
#undef X
#define X(name, signature) {#name, signature},
static const struct { const char *name, *signature; } methods[] = {METHODS(X)};
#undef X

int str_method_named(const char *p, size_t n);
int str_method_named(const char *p, size_t n) {
    for (int i = 0; i < STR_METHODS; i++) {
        if (strlen(methods[i].name) == n && !memcmp(methods[i].name, p, n)) return i;
    }
    return -1;
}

const char *str_method_name(int id);
const char *str_method_name(int id) {
    return methods[id].name;
}

static Value find_method(Render *r, int id, Value s, const Value *a) {
    int64_t low, high;
    if (!is_str(a[0])) raise_error(r, "TypeError", "must be str, not %s", type_name(a[0]));
    clip(s, a[1], a[2], r, &low, &high);
    if (id == STR_count) return integer(count_of(s, a[0], low, high));
    int64_t at = str_find(s, a[0], low, high, id == STR_rfind || id == STR_rindex);
    if (at < 0 && (id == STR_index || id == STR_rindex)) raise_error(r, "ValueError", "substring not found");
    return integer(at);
}

static Value is_method(int id, Value s) {
    switch (id) {
    case STR_isalnum: return boolean(str_all(s, UC_ALPHA | UC_DECIMAL | UC_DIGIT | UC_NUMERIC));
    case STR_isalpha: return boolean(str_all(s, UC_ALPHA));
    case STR_isascii: {
        bool ascii = s.s->n == s.s->chars;
        return boolean(ascii);
    }
    case STR_isdecimal: return boolean(str_all(s, UC_DECIMAL));
    case STR_isdigit: return boolean(str_all(s, UC_DIGIT));
    case STR_isidentifier: return boolean(is_identifier(s));
    case STR_islower: return boolean(str_is_lower(s));
    case STR_isnumeric: return boolean(str_all(s, UC_NUMERIC));
    case STR_isprintable: return boolean(!s.s->n || str_all(s, UC_PRINTABLE));
    case STR_isspace: return boolean(str_all(s, UC_SPACE));
    case STR_istitle: return boolean(is_title(s));
    default: return boolean(str_is_upper(s));
    }
}

static Value replace_method(Render *r, Value s, const Value *a) {
    for (int i = 0; i < (s.markup ? 1 : 2); i++) { // a Markup escapes whatever the second is
        if (!is_str(a[i]))
            raise_error(r, "TypeError", "replace() argument %d must be str, not %s", i + 1, type_name(a[i]));
    }
    return str_replace(r, s, a[0], s.markup ? escape(r, a[1]) : a[1], is_missing(a[2]) ? -1 : index_of(r, a[2]));
}

static Value str_method(Render *r, int id, Value s, const Value *a) {
    Value fill = id == STR_center || id == STR_ljust || id == STR_rjust ? a[1] : MISSING;
    if (s.markup && !is_missing(fill)) fill = escape(r, fill);
    switch (id) {
    case STR_capitalize: return change_case(r, s, CASE_CAPITAL);
    case STR_casefold: return change_case(r, s, CASE_FOLD);
    case STR_center: return str_center(r, s, index_of(r, a[0]), fill, 0);
    case STR_ljust: return str_center(r, s, index_of(r, a[0]), fill, -1);
    case STR_rjust: return str_center(r, s, index_of(r, a[0]), fill, 1);
    case STR_count:
    case STR_find:
    case STR_rfind:
    case STR_index:
    case STR_rindex: return find_method(r, id, s, a);
    case STR_startswith:
    case STR_endswith: return boolean(has_affix(r, s, a[0], a[1], a[2], id == STR_endswith));
    case STR_expandtabs: return expand_tabs(r, s, is_missing(a[0]) ? 8 : index_of(r, a[0]));
    case STR_join: return str_join(r, s, a[0]);
    case STR_lower: return change_case(r, s, CASE_LOWER);
    case STR_upper: return change_case(r, s, CASE_UPPER);
    case STR_title: return change_case(r, s, CASE_TITLE);
    case STR_swapcase: return change_case(r, s, CASE_SWAP);
    case STR_strip: return str_strip(r, s, a[0], true, true);
    case STR_lstrip: return str_strip(r, s, a[0], true, false);
    case STR_rstrip: return str_strip(r, s, a[0], false, true);
    case STR_partition: return partition(r, s, a[0], false);
    case STR_rpartition: return partition(r, s, a[0], true);
    case STR_removeprefix: return remove_affix(r, s, a[0], false);
    case STR_removesuffix: return remove_affix(r, s, a[0], true);
    case STR_replace: return replace_method(r, s, a);
    case STR_split:
    case STR_rsplit: return str_split(r, s, a[0], is_missing(a[1]) ? -1 : index_of(r, a[1]), id == STR_rsplit);
    case STR_splitlines: return str_split_lines(r, s, !is_missing(a[0]) && truth(r, a[0]));
    case STR_zfill: return zfill(r, s, index_of(r, a[0]));
    default: return is_method(id, s);
    }
}

Value call_str_method(Render *r, int id, Value self, const Args *args) {
    if (id == STR_format) return str_format_call(r, self, args);
    Value a[3] = {MISSING, MISSING, MISSING};
    char name[32] = "str.";
    strcat(name, methods[id].name);
    bind_args(r, name, methods[id].signature, args, a);
    Value out = str_method(r, id, self, a);
    if (is_str(out)) out.markup = self.markup;
    return out;
}
