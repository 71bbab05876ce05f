// JSON to values and back. See json.h.
#include "json.h"
#include "chat_template.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- reading ----
typedef struct {
    Render *r;
    const char *begin, *p, *end;
} Reader;

_Noreturn static void bad(Reader *j, const char *what, const char *at) {
    size_t line = 1;
    const char *start = j->begin;
    for (const char *p = j->begin; p < at; p++) {
        if (*p == '\n') {
            line++;
            start = p + 1;
        }
    }
    raise_error(
        j->r, NULL, "no JSON: %s: line %zu column %zu", what, line, utf8_count(start, (size_t) (at - start)) + 1);
}

static void skip_space(Reader *j) {
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r')) j->p++;
}

static bool word(Reader *j, const char *z) {
    size_t n = strlen(z);
    if ((size_t) (j->end - j->p) < n || memcmp(j->p, z, n)) return false;
    j->p += n;
    return true;
}

static uint32_t hex4(Reader *j) {
    uint32_t c = 0;
    if (j->end - j->p < 4) bad(j, "Invalid \\uXXXX escape", j->p);
    for (int i = 0; i < 4; i++, j->p++) {
        char d = *j->p;
        int x = d >= '0' && d <= '9' ? d - '0' : (d | 32) >= 'a' && (d | 32) <= 'f' ? (d | 32) - 'a' + 10 : -1;
        if (x < 0) bad(j, "Invalid \\uXXXX escape", j->p);
        c = c << 4 | (uint32_t) x;
    }
    return c;
}

static void read_escape(Reader *j, Buffer *b) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char bytes[4];
    if (j->p == j->end) bad(j, "Unterminated string", j->p);
    char c = *j->p++;
    const char *at = c ? strchr(from, c) : NULL;
    if (at) {
        buffer_add(j->r, b, &to[at - from], 1);
        return;
    }
    if (c != 'u') bad(j, "Invalid \\escape", j->p - 2);
    uint32_t code = hex4(j);
    if (code >= 0xD800 && code < 0xDC00 && j->end - j->p >= 6 && j->p[0] == '\\' && j->p[1] == 'u') {
        const char *before = j->p;
        j->p += 2;
        uint32_t low = hex4(j);
        if (low >= 0xDC00 && low < 0xE000) code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00));
        else j->p = before;
    }
    buffer_add(j->r, b, bytes, utf8_write(bytes, code));
}

static bool valid_utf8(const char *p, const char *end, size_t *n) {
    const unsigned char *s = (const unsigned char *) p;
    *n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (!*n || (size_t) (end - p) < *n) return false;
    for (size_t i = 1; i < *n; i++) {
        if ((s[i] & 0xC0) != 0x80) return false;
    }
    return !(s[0] == 0xE0 && s[1] < 0xA0) && !(s[0] == 0xED && s[1] >= 0xA0) && !(s[0] == 0xF0 && s[1] < 0x90) &&
        !(s[0] == 0xF4 && s[1] >= 0x90);
}

static Value read_string(Reader *j) { // after the quote
    Buffer b = {0};
    const char *from = j->p - 1;
    for (;;) {
        const char *at = j->p;
        size_t n;
        while (j->p < j->end && *j->p != '"' && *j->p != '\\' && (unsigned char) *j->p >= 0x20) {
            if (!valid_utf8(j->p, j->end, &n)) bad(j, "these bytes are not UTF-8", j->p);
            j->p += n;
        }
        buffer_add(j->r, &b, at, (size_t) (j->p - at));
        if (j->p == j->end) bad(j, "Unterminated string starting at", from);
        if ((unsigned char) *j->p < 0x20) bad(j, "Invalid control character at", j->p);
        if (*j->p++ == '"') return buffer_value(j->r, &b);
        read_escape(j, &b);
    }
}

static Value read_number(Reader *j) {
    const char *from = j->p;
    if (word(j, "-Infinity")) return real(-INFINITY);
    if (j->p < j->end && *j->p == '-') j->p++;
    if (j->p == j->end || *j->p < '0' || *j->p > '9') bad(j, "Expecting value", from);
    if (*j->p == '0') j->p++;
    else
        while (j->p < j->end && *j->p >= '0' && *j->p <= '9') j->p++;
    const char *whole = j->p;
    const char *p = j->p;
    if (p + 1 < j->end && *p == '.' && p[1] >= '0' && p[1] <= '9') {
        for (p++; p < j->end && *p >= '0' && *p <= '9';) p++;
        j->p = p;
    }
    if (p < j->end && (*p | 32) == 'e') {
        p++;
        if (p < j->end && (*p == '+' || *p == '-')) p++;
        if (p < j->end && *p >= '0' && *p <= '9') {
            while (p < j->end && *p >= '0' && *p <= '9') p++;
            j->p = p;
        }
    }
    if (j->p == whole) {
        bool ok;
        return int_parse(j->r, from, (size_t) (whole - from), 10, &ok);
    }
    char *z = render_take_text(j->r, (size_t) (j->p - from) + 1);
    memcpy(z, from, (size_t) (j->p - from));
    z[j->p - from] = 0;
    return real(strtod(z, NULL));
}

static Value read_value(Reader *j);

static Value read_list(Reader *j) {
    Values list = {0};
    skip_space(j);
    if (word(j, "]")) return values_list(j->r, &list);
    for (;;) {
        push(j->r, &list, read_value(j));
        skip_space(j);
        if (word(j, "]")) return values_list(j->r, &list);
        if (!word(j, ",")) bad(j, "Expecting ',' delimiter", j->p);
    }
}

static Value read_object(Reader *j) {
    Dict *d = dict_new(j->r, 0);
    skip_space(j);
    if (word(j, "}")) return dict_value(d);
    for (;;) {
        skip_space(j);
        if (!word(j, "\"")) bad(j, "Expecting property name enclosed in double quotes", j->p);
        Value key = read_string(j);
        skip_space(j);
        if (!word(j, ":")) bad(j, "Expecting ':' delimiter", j->p);
        dict_set(j->r, d, key, read_value(j));
        skip_space(j);
        if (word(j, "}")) return dict_value(d);
        if (!word(j, ",")) bad(j, "Expecting ',' delimiter", j->p);
    }
}

static Value read_value(Reader *j) {
    skip_space(j);
    if (word(j, "\"")) return read_string(j);
    if (word(j, "null")) return NONE;
    if (word(j, "true")) return TRUE_VALUE;
    if (word(j, "false")) return FALSE_VALUE;
    if (word(j, "NaN")) return real(NAN);
    if (word(j, "Infinity")) return real(INFINITY);
    bool list = word(j, "[");
    if (!list && !word(j, "{")) return read_number(j);
    if (++j->r->nesting > limit_nesting) bad(j, "lists and objects lie too deep within each other", j->p);
    Value v = list ? read_list(j) : read_object(j);
    j->r->nesting--;
    return v;
}

Value json_read(Render *r, const char *p, size_t n) {
    Reader j = {r, p, p, p + n};
    r->nesting = 0;
    Value v = read_value(&j);
    skip_space(&j);
    if (j.p != j.end) bad(&j, "Extra data", j.p);
    return v;
}

// ---- writing ----
typedef struct {
    Render *r;
    Buffer b;
    const JsonStyle *style;
    Value indent; // a text, or MISSING
    int level;
} Writer;

static void write_string(Writer *w, Value s) {
    const char *p = s.s->p, *end = p + s.s->n;
    buffer_z(w->r, &w->b, "\"");
    while (p < end) {
        uint32_t c;
        size_t n = utf8_get(p, end, &c);
        static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
        const char *at = c && c < 0x80 ? strchr(from, (int) c) : NULL;
        if (at) buffer_format(w->r, &w->b, "\\%c", to[at - from]);
        else if (c < 0x20) buffer_format(w->r, &w->b, "\\u%04x", c);
        else if (c < 0x7F || !w->style->ensure_ascii) buffer_add(w->r, &w->b, p, n);
        else if (c < 0x10000) buffer_format(w->r, &w->b, "\\u%04x", c);
        else
            buffer_format(
                w->r, &w->b, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
        p += n;
    }
    buffer_z(w->r, &w->b, "\"");
}

static void write_number(Writer *w, Value v) {
    if (v.kind == V_BOOL) buffer_z(w->r, &w->b, v.b ? "true" : "false");
    else if (v.kind == V_REAL && isnan(v.x)) buffer_z(w->r, &w->b, "NaN");
    else if (v.kind == V_REAL && isinf(v.x)) buffer_z(w->r, &w->b, v.x > 0 ? "Infinity" : "-Infinity");
    else put_number(w->r, &w->b, v);
}

static void new_line(Writer *w) {
    if (is_missing(w->indent)) return;
    buffer_z(w->r, &w->b, "\n");
    for (int i = 0; i < w->level; i++) buffer_str(w->r, &w->b, w->indent);
}

static void write_value(Writer *w, Value v);

static void write_list(Writer *w, const List *list) {
    if (!list->n) {
        buffer_z(w->r, &w->b, "[]");
        return;
    }
    buffer_z(w->r, &w->b, "[");
    w->level++;
    for (size_t i = 0; i < list->n; i++) {
        if (i) buffer_str(w->r, &w->b, w->style->item_sep);
        new_line(w);
        write_value(w, list->v[i]);
    }
    w->level--;
    new_line(w);
    buffer_z(w->r, &w->b, "]");
}

static void write_key(Writer *w, Value key) {
    if (is_str(key)) {
        write_string(w, key);
        return;
    }
    if (!is_number(key) && key.kind != V_NONE)
        raise_error(w->r, "TypeError", "keys must be str, int, float, bool or None, not %s", type_name(key));
    buffer_z(w->r, &w->b, "\"");
    if (key.kind == V_NONE) buffer_z(w->r, &w->b, "null");
    else write_number(w, key);
    buffer_z(w->r, &w->b, "\"");
}

// The entries by key, in place of insertion: few, so by insertion.
static Entry *sorted(Render *r, const Dict *d) {
    Entry *e = render_take_n(r, d->n, sizeof *e);
    for (size_t i = 0; i < d->n; i++) {
        size_t at = i;
        step(r);
        while (at && compare(r, CMP_LT, d->entry[i].key, e[at - 1].key)) {
            e[at] = e[at - 1];
            at--;
            step(r);
        }
        e[at] = d->entry[i];
    }
    return e;
}

static void write_dict(Writer *w, const Dict *d) {
    if (!d->n) {
        buffer_z(w->r, &w->b, "{}");
        return;
    }
    const Entry *e = w->style->sort_keys ? sorted(w->r, d) : d->entry;
    buffer_z(w->r, &w->b, "{");
    w->level++;
    for (size_t i = 0; i < d->n; i++) {
        if (i) buffer_str(w->r, &w->b, w->style->item_sep);
        new_line(w);
        write_key(w, e[i].key);
        buffer_str(w->r, &w->b, w->style->key_sep);
        write_value(w, e[i].value);
    }
    w->level--;
    new_line(w);
    buffer_z(w->r, &w->b, "}");
}

static void write_value(Writer *w, Value v) {
    if (++w->r->nesting > limit_nesting)
        raise_error(w->r, "RecursionError", "values lie more than %d levels within each other", limit_nesting);
    switch (v.kind) {
    case V_NONE: buffer_z(w->r, &w->b, "null"); break;
    case V_STR: write_string(w, v); break;
    case V_BOOL:
    case V_INT:
    case V_BIG:
    case V_REAL: write_number(w, v); break;
    case V_LIST:
    case V_TUPLE: write_list(w, v.list); break;
    case V_DICT: write_dict(w, v.dict); break;
    default: raise_error(w->r, "TypeError", "Object of type %s is not JSON serializable", type_name(v));
    }
    w->r->nesting--;
}

Value json_write(Render *r, Value v, const JsonStyle *style) {
    Writer w = {.r = r, .style = style, .indent = MISSING};
    if (is_str(style->indent)) {
        w.indent = style->indent;
    } else if (!is_missing(style->indent) && style->indent.kind != V_NONE) {
        int64_t n = index_of(r, style->indent);
        w.indent = str_repeat(r, text_z(r, " "), n);
    }
    write_value(&w, v);
    return buffer_value(r, &w.b);
}
