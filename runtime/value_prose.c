// Jinja's filters that lay text out: wordwrap, as Python's textwrap does it, and pprint, as its pprint does. In: a
// value and arguments. Out: a text. See value.h.
#include "chat_template.h"
#include "value_unicode.h"

#include <string.h>

// ---- wordwrap ----

typedef struct { // a paragraph as code points, and where each begins
    const char *p;
    uint32_t *c;
    size_t *at;
    size_t n;
} Points;

static Points points_of(Render *r, const String *s) {
    Points t = {s->p, render_take_n(r, s->chars + 1, sizeof *t.c), render_take_n(r, s->chars + 1, sizeof *t.at), 0};
    for (const char *p = s->p, *end = p + s->n; p < end; t.n++) {
        t.at[t.n] = (size_t) (p - s->p);
        p += utf8_get(p, end, &t.c[t.n]);
    }
    t.at[t.n] = s->n;
    return t;
}

static bool is_gap(uint32_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(uint32_t c) {
    return c == '_' || (uc_flags_of(c) & (UC_ALPHA | UC_DECIMAL | UC_DIGIT | UC_NUMERIC));
}

static bool is_letter(uint32_t c) {
    return is_word(c) && !(uc_flags_of(c) & UC_DECIMAL);
}

static bool ends_word(uint32_t c) {
    return is_word(c) || (c && c < 128 && strchr("!\"'&.,?", (int) c));
}

// Two dashes or more at i, with a word behind them: how many; else 0.
static size_t long_dash(const Points *t, size_t i) {
    size_t n = 0;
    while (i + n < t->n && t->c[i + n] == '-') n++;
    return n >= 2 && i + n < t->n && is_word(t->c[i + n]) ? n : 0;
}

// Whether a line may end behind the hyphen at i.
static bool hyphen_parts(const Points *t, size_t i) {
    const uint32_t *c = t->c;
    bool behind = i >= 2 && is_letter(c[i - 1]) &&
        (is_letter(c[i - 2]) || (i >= 3 && c[i - 2] == '-' && is_letter(c[i - 3])));
    if (!behind || i + 2 >= t->n || !is_letter(c[i + 1])) return false;
    return is_letter(c[i + 2]) || (c[i + 2] == '-' && i + 3 < t->n && is_letter(c[i + 3]));
}

// The end of the chunk that begins at i: white space, a long dash, or a word up to where a line may end.
static size_t chunk_end(const Points *t, size_t i, bool hyphens) {
    const uint32_t *c = t->c;
    size_t j = i + 1, dash = hyphens && i && ends_word(c[i - 1]) ? long_dash(t, i) : 0;
    if (is_gap(c[i])) {
        while (j < t->n && is_gap(c[j])) j++;
        return j;
    }
    if (dash) return i + dash;
    for (; j < t->n && !is_gap(c[j]); j++) {
        if (!hyphens) continue;
        if (c[j] == '-' && hyphen_parts(t, j)) return j + 1;
        if (c[j] == '-' && ends_word(c[j - 1]) && long_dash(t, j)) return j;
    }
    return j;
}

static bool blank(const Points *t, size_t from, size_t to) {
    while (from < to && (uc_flags_of(t->c[from]) & UC_SPACE)) from++;
    return from == to;
}

typedef struct {
    int64_t width;
    bool split_hyphens, break_words, break_hyphens;
    Value separator;
} Wrap;

// How much of a chunk that is longer than a line goes on the line of which `room` is left.
static size_t long_word(const Points *t, const Wrap *w, size_t from, size_t to, size_t room) {
    if (!w->break_hyphens || to - from <= room) return room;
    for (size_t i = from + room; i-- > from + 1;) {
        if (t->c[i] != '-') continue;
        for (size_t k = from; k < i; k++)
            if (t->c[k] != '-') return i + 1 - from;
        break;
    }
    return room;
}

static void wrap_paragraph(Render *r, Buffer *b, const Points *t, const Wrap *w) {
    bool any = false;
    size_t width = (size_t) w->width, at = 0, end = t->n ? chunk_end(t, 0, w->split_hyphens) : 0;
#define NEXT_CHUNK (at = end, end = at < t->n ? chunk_end(t, at, w->split_hyphens) : at)
    while (at < t->n) { // the chunk that comes next, or what is left of it, is [at, end)
        step(r);
        if (any && blank(t, at, end)) NEXT_CHUNK;
        size_t from = at, last = at; // of the line, of its last chunk
        while (at < t->n && end - from <= width) last = at, NEXT_CHUNK;
        if (at < t->n && end - at > width) {
            if (w->break_words) last = at, at += long_word(t, w, at, end, width - (at - from));
            else if (at == from) last = at, NEXT_CHUNK;
        }
        size_t to = at > from && blank(t, last, at) ? last : at;
        if (to == from) continue;
        if (any) buffer_str(r, b, w->separator);
        buffer_add(r, b, t->p + t->at[from], t->at[to] - t->at[from]);
        any = true;
    }
#undef NEXT_CHUNK
}

FILTER(wordwrap) {
    Value a[4];
    bind_args(r, "do_wordwrap", "width=, break_long_words=, wrapstring=, break_on_hyphens=", args, a);
    if (is_undefined(v)) raise_undefined(r, v);
    if (!is_str(v)) raise_error(r, "AttributeError", "'%s' object has no attribute 'splitlines'", type_name(v));
    Value lines = str_split_lines(r, marked(v, false), false);
    Wrap w = {.width = is_missing(a[0]) ? 79 : index_of(r, a[0])};
    w.break_words = is_missing(a[1]) || truth(r, a[1]);
    w.separator = is_missing(a[2]) || a[2].kind == V_NONE ? text_z(r, "\n") : a[2];
    w.break_hyphens = is_missing(a[3]) || truth(r, a[3]);
    w.split_hyphens = is_missing(a[3]) || (a[3].kind == V_BOOL && a[3].b);
    if (!is_str(w.separator))
        raise_error(r, "AttributeError", "'%s' object has no attribute 'join'", type_name(w.separator));
    Buffer b = {0};
    for (size_t i = 0; i < lines.list->n; i++) {
        if (w.width <= 0) raise_error(r, "ValueError", "invalid width %lld (must be > 0)", (long long) w.width);
        Points t = points_of(r, lines.list->v[i].s);
        if (i) buffer_str(r, &b, w.separator);
        wrap_paragraph(r, &b, &t, &w);
    }
    return buffer_value(r, &b);
}

// ---- pprint ----

enum { PAGE = 80 };

static bool key_before(Render *r, Value a, Value b) {
    if ((is_number(a) && is_number(b)) || (is_str(a) && is_str(b)) || (a.kind == V_TUPLE && b.kind == V_TUPLE))
        return compare(r, CMP_LT, a, b);
    return strcmp(type_name(a), type_name(b)) < 0;
}

static Entry *sorted(Render *r, const Dict *d) {
    Entry *e = render_take_n(r, d->n, sizeof *e);
    for (size_t i = 0; i < d->n; i++) {
        size_t k = i;
        for (; k && key_before(r, d->entry[i].key, e[k - 1].key); k--) e[k] = e[k - 1], step(r);
        e[k] = d->entry[i];
    }
    return e;
}

static bool is_group(Value v) { // of values, shown one by one
    return v.kind == V_LIST || (v.kind == V_TUPLE && !v.markup) || v.kind == V_DICT; // not the groups of groupby
}

static const char *open_close(Value v, bool close) {
    if (v.kind == V_DICT) return close ? "}" : "{";
    if (v.kind == V_LIST) return close ? "]" : "[";
    return close ? v.list->n == 1 ? ",)" : ")" : "(";
}

// On one line, but with keys in order.
static void put_flat(Render *r, Buffer *b, Value v) {
    if (!is_group(v)) {
        put_repr(r, b, v);
        return;
    }
    enter_call(r);
    Entry *e = v.kind == V_DICT ? sorted(r, v.dict) : NULL;
    size_t n = e ? v.dict->n : v.list->n;
    buffer_z(r, b, open_close(v, false));
    for (size_t i = 0; i < n; i++) {
        if (i) buffer_z(r, b, ", ");
        if (e) put_flat(r, b, e[i].key), buffer_z(r, b, ": ");
        put_flat(r, b, e ? e[i].value : v.list->v[i]);
    }
    buffer_z(r, b, open_close(v, true));
    leave_call(r);
}

static Value flat(Render *r, Value v) {
    Buffer b = {0};
    put_flat(r, &b, v);
    return buffer_value(r, &b);
}

static void new_line(Render *r, Buffer *b, int64_t indent) {
    buffer_z(r, b, "\n");
    for (int64_t i = 0; i < indent; i++) buffer_z(r, b, " ");
}

// A line of a text as several, cut behind white space where they would be too wide.
static void cut_line(Render *r, Values *chunks, const String *line, int64_t width, int64_t last_width) {
    const char *p = line->p, *end = p + line->n, *from = p;
    while (p < end) {
        const char *to = p;
        uint32_t c;
        for (size_t n; to < end && (n = utf8_get(to, end, &c), !(uc_flags_of(c) & UC_SPACE)); to += n) {}
        for (size_t n; to < end && (n = utf8_get(to, end, &c), uc_flags_of(c) & UC_SPACE); to += n) {}
        Value shown = repr(r, text_of(r, from, (size_t) (to - from)));
        if (to == end) width = last_width;
        if ((int64_t) shown.s->chars > width && p > from) {
            push(r, chunks, repr(r, text_of(r, from, (size_t) (p - from))));
            from = p;
        }
        p = to;
    }
    if (from < end) push(r, chunks, repr(r, text_of(r, from, (size_t) (end - from))));
}

static void put_long_text(Render *r, Buffer *b, Value v, int64_t indent, int64_t allowance, int level) {
    if (level == 1) indent++, allowance++;
    Value lines = str_split_lines(r, v, true);
    Values chunks = {0};
    int64_t width = PAGE - indent;
    for (size_t i = 0; i < lines.list->n; i++) {
        bool last = i + 1 == lines.list->n;
        Value shown = repr(r, lines.list->v[i]);
        if ((int64_t) shown.s->chars <= width - (last ? allowance : 0)) push(r, &chunks, shown);
        else cut_line(r, &chunks, lines.list->v[i].s, width, width - (last ? allowance : 0));
    }
    bool brackets = level == 1 && chunks.n != 1;
    if (brackets) buffer_z(r, b, "(");
    for (size_t i = 0; i < chunks.n; i++) {
        if (i) new_line(r, b, indent);
        buffer_str(r, b, chunks.v[i]);
    }
    if (brackets) buffer_z(r, b, ")");
}

// `allowance`: columns that closing brackets will take behind it.
static void put_pretty(Render *r, Buffer *b, Value v, int64_t indent, int64_t allowance, int level) {
    Value shown = flat(r, v);
    bool text = is_str(v) && !v.markup && v.s->n;
    if ((int64_t) shown.s->chars <= PAGE - indent - allowance || !(text || is_group(v))) {
        buffer_str(r, b, shown);
        return;
    }
    enter_call(r);
    if (text) {
        put_long_text(r, b, v, indent, allowance, level + 1);
        leave_call(r);
        return;
    }
    Entry *e = v.kind == V_DICT ? sorted(r, v.dict) : NULL;
    size_t n = e ? v.dict->n : v.list->n;
    buffer_z(r, b, open_close(v, false));
    for (size_t i = 0; i < n; i++) {
        int64_t at = indent + 1, behind = i + 1 == n ? allowance + (int64_t) strlen(open_close(v, true)) : 1;
        if (i) buffer_z(r, b, ","), new_line(r, b, at);
        if (e) {
            Value key = flat(r, e[i].key);
            buffer_str(r, b, key), buffer_z(r, b, ": ");
            at += (int64_t) key.s->chars + 2;
        }
        put_pretty(r, b, e ? e[i].value : v.list->v[i], at, behind, level + 1);
    }
    buffer_z(r, b, open_close(v, true));
    leave_call(r);
}

FILTER(pprint) {
    bind_args(r, "do_pprint", "", args, NULL);
    Buffer b = {0};
    put_pretty(r, &b, v, 0, 0, 0);
    return buffer_value(r, &b);
}
