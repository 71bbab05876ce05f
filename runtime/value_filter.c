// Jinja's filters (`x | NAME`) on text, numbers and single values, and the table of all; those on sequences are in
// value_sequence.c. In: a value and arguments. Out: a value. Messages and edge cases are Jinja2's. See value.h.
#include "chat_template.h"
#include "json.h"
#include "value_unicode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool given(Value v) {
    return !is_missing(v);
}

static bool flag(Render *r, Value v) {
    return given(v) && truth(r, v);
}

// ---- text ----
FILTER(upper) {
    bind_args(r, "do_upper", "", args, NULL);
    return str_upper(r, soft_str(r, v));
}
FILTER(lower) {
    bind_args(r, "do_lower", "", args, NULL);
    return str_lower(r, soft_str(r, v));
}
FILTER(capitalize) {
    bind_args(r, "do_capitalize", "", args, NULL);
    return str_capitalize(r, soft_str(r, v));
}
FILTER(string) {
    bind_args(r, "soft_str", "/", args, NULL);
    return soft_str(r, v);
}
FILTER(escape) {
    bind_args(r, "escape", "/", args, NULL);
    return escape(r, v);
}
FILTER(forceescape) {
    bind_args(r, "do_forceescape", "", args, NULL);
    return escape(r, to_str(r, v));
}
FILTER(safe) {
    bind_args(r, "do_mark_safe", "", args, NULL);
    return marked(to_str(r, v), true);
}

FILTER(trim) {
    Value chars;
    bind_args(r, "do_trim", "chars=", args, &chars);
    return str_strip(r, soft_str(r, v), chars, true, true);
}

FILTER(replace) {
    Value a[3];
    bind_args(r, "do_replace", "old, new, count=", args, a);
    int64_t count = !given(a[2]) || a[2].kind == V_NONE ? -1 : index_of(r, a[2]);
    return str_replace(r, to_str(r, v), to_str(r, a[0]), to_str(r, a[1]), count);
}

FILTER(title) {
    bind_args(r, "do_title", "", args, NULL);
    Value s = soft_str(r, v);
    Buffer out = {0};
    const char *p = s.s->p, *end = p + s.s->n, *word = p;
    while (p <= end) {
        uint32_t c = 0;
        size_t n = p < end ? utf8_get(p, end, &c) : 1;
        bool gap = p == end || (uc_flags_of(c) & UC_SPACE) || (c && c < 0x80 && strchr("-({[<", (int) c));
        if (gap) {
            if (p > word) buffer_str(r, &out, str_title_word(r, text_of(r, word, (size_t) (p - word))));
            if (p < end) buffer_add(r, &out, p, n);
            word = p + n;
        }
        p += n;
    }
    return buffer_value(r, &out);
}

FILTER(center) {
    Value width;
    bind_args(r, "do_center", "width=", args, &width);
    return str_center(r, soft_str(r, v), given(width) ? index_of(r, width) : 80, MISSING, 0);
}

FILTER(indent) {
    Value a[3];
    bind_args(r, "do_indent", "width=, first=, blank=", args, a);
    if (v.kind == V_LIST)
        raise_error(r, "AttributeError", "'list' object has no attribute 'splitlines'"); // a list takes += of a text
    if (is_undefined(v)) raise_undefined(r, v);
    if (!is_str(v) && v.kind != V_TUPLE)
        raise_error(r, "TypeError", "unsupported operand type(s) for +=: '%s' and 'str'", type_name(v));
    bool markup = is_markup(v);
    Value newline = marked(text_z(r, "\n"), markup);
    Value by = given(a[0]) && is_str(a[0]) ? a[0] : str_repeat(r, text_z(r, " "), given(a[0]) ? index_of(r, a[0]) : 4);
    if (markup) by.markup = true;
    Value lines = str_split_lines(r, add(r, v, newline), false);
    Value out;
    if (flag(r, a[2])) {
        out = str_join(r, add(r, newline, by), lines);
    } else {
        out = lines.list->v[0];
        Buffer rest = {0};
        for (size_t i = 1; i < lines.list->n; i++) {
            Value line = lines.list->v[i];
            buffer_str(r, &rest, newline);
            if (line.s->n) buffer_str(r, &rest, by);
            buffer_str(r, &rest, line);
        }
        if (lines.list->n > 1) out = add(r, out, marked(buffer_value(r, &rest), markup));
    }
    return flag(r, a[1]) ? add(r, by, out) : out;
}

FILTER(truncate) {
    Value a[4];
    bind_args(r, "do_truncate", "length=, killwords=, end=, leeway=", args, a);
    int64_t size = given(a[0]) ? index_of(r, a[0]) : 255,
            leeway = given(a[3]) && a[3].kind != V_NONE ? index_of(r, a[3]) : 5;
    Value end = given(a[2]) ? a[2] : text_z(r, "...");
    int64_t n_end = length(r, end);
    if (size < n_end)
        raise_error(r, "AssertionError", "expected length >= %lld, got %lld", (long long) n_end, (long long) size);
    if (leeway < 0) raise_error(r, "AssertionError", "expected leeway >= 0, got %lld", (long long) leeway);
    if (length(r, v) <= size + leeway) return v;
    Value cut = slice(r, v, MISSING, integer(size - n_end), MISSING);
    if (!flag(r, a[1])) {
        if (!is_str(cut)) raise_error(r, "AttributeError", "'%s' object has no attribute 'rsplit'", type_name(cut));
        cut = str_split(r, cut, text_z(r, " "), 1, true).list->v[0];
    }
    return add(r, cut, end);
}

FILTER(wordcount) {
    bind_args(r, "do_wordcount", "", args, NULL);
    Value s = soft_str(r, v);
    int64_t n = 0;
    bool inside = false;
    for (const char *p = s.s->p, *end = p + s.s->n; p < end;) {
        uint32_t c;
        p += utf8_get(p, end, &c);
        bool letter = c == '_' || (uc_flags_of(c) & (UC_ALPHA | UC_DECIMAL | UC_DIGIT | UC_NUMERIC));
        n += letter && !inside;
        inside = letter;
    }
    return integer(n);
}

FILTER(format) {
    if (args->n && args->n_named)
        raise_error(r, "FilterArgumentError", "can't handle positional and keyword arguments at the same time");
    if (!args->n_named) return str_percent(r, soft_str(r, v), tuple_of(r, args->v, args->n));
    Dict *d = dict_new(r, args->n_named);
    for (size_t i = 0; i < args->n_named; i++) dict_set(r, d, str_value(args->names[i]), args->named[i]);
    return str_percent(r, soft_str(r, v), dict_value(d));
}

static void put_quoted(Render *r, Buffer *b, Value v, bool query) {
    Value s = to_str(r, v);
    for (size_t i = 0; i < s.s->n; i++) {
        unsigned char c = (unsigned char) s.s->p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            (c && strchr("_.-~", c)) || (c == '/' && !query);
        if (plain) buffer_add(r, b, s.s->p + i, 1);
        else if (c == ' ' && query) buffer_z(r, b, "+");
        else buffer_format(r, b, "%%%02X", c);
    }
}

FILTER(urlencode) {
    bind_args(r, "do_urlencode", "", args, NULL);
    Buffer b = {0};
    if (is_str(v) || !iterable(v)) {
        put_quoted(r, &b, v, false);
        return buffer_value(r, &b);
    }
    View items = {VIEW_ITEMS, v.dict};
    Iter *it = iterate(r, v.kind == V_DICT ? (Value){.kind = V_VIEW, .view = &items} : v);
    Value pair;
    for (bool first = true; next(r, it, &pair); first = false) {
        Value two[2];
        unpack(r, pair, 2, two);
        if (!first) buffer_z(r, &b, "&");
        put_quoted(r, &b, two[0], true);
        buffer_z(r, &b, "=");
        put_quoted(r, &b, two[1], true);
    }
    return buffer_value(r, &b);
}

FILTER(xmlattr) {
    Value autospace;
    bind_args(r, "do_xmlattr", "autospace=", args, &autospace);
    if (v.kind != V_DICT) {
        if (is_undefined(v)) raise_undefined(r, v);
        raise_error(r, "AttributeError", "'%s' object has no attribute 'items'", type_name(v));
    }
    Buffer b = {0};
    for (size_t i = 0; i < v.dict->n; i++) {
        Value key = v.dict->entry[i].key, value = v.dict->entry[i].value;
        if (value.kind == V_NONE || is_undefined(value)) continue;
        if (!is_str(key)) raise_error(r, "TypeError", "expected string or bytes-like object, got '%s'", type_name(key));
        for (size_t k = 0; k < key.s->n; k++) {
            if (key.s->p[k] && strchr(" \t\n\r\f\v/>=", key.s->p[k])) {
                Value shown = repr(r, key);
                raise_error(r, "ValueError", "Invalid character in attribute name: %.*s", (int) shown.s->n, shown.s->p);
            }
        }
        if (b.n || !given(autospace) || truth(r, autospace)) buffer_z(r, &b, " ");
        buffer_str(r, &b, escape(r, key));
        buffer_z(r, &b, "=\"");
        buffer_str(r, &b, escape(r, value));
        buffer_z(r, &b, "\"");
    }
    return buffer_value(r, &b);
}

FILTER(tojson) {
    Value a[5];
    bind_args(r, "tojson", "ensure_ascii=, indent=, separators=, sort_keys=", args, a);
    bool lines = given(a[1]) && a[1].kind != V_NONE;
    JsonStyle style = {.ensure_ascii = flag(r, a[0]),
        .sort_keys = flag(r, a[3]),
        .indent = a[1],
        .item_sep = text_z(r, lines ? "," : ", "),
        .key_sep = text_z(r, ": ")};
    if (given(a[2]) && a[2].kind != V_NONE) {
        Value two[2];
        unpack(r, a[2], 2, two);
        for (int i = 0; i < 2; i++) {
            if (!is_str(two[i])) raise_error(r, "TypeError", "separators must be str, not %s", type_name(two[i]));
        }
        style.item_sep = two[0];
        style.key_sep = two[1];
    }
    return json_write(r, v, &style);
}

// ---- numbers ----
FILTER(abs) {
    bind_args(r, "abs", "/", args, NULL);
    return number_abs(r, v);
}

// Without white space around, and with the digits of any script as ASCII's. Unicode's digits lie in rows from 0 to 9.
static Value ascii_number(Render *r, Value s) {
    s = str_strip(r, marked(s, false), MISSING, true, true);
    if (s.s->n == s.s->chars) return s;
    Buffer b = {0};
    const char *p = s.s->p, *end = p + s.s->n;
    for (uint32_t c; p < end;) {
        const char *from = p;
        p += utf8_get(p, end, &c);
        uint32_t zero = c;
        while (uc_flags_of(c) & UC_DECIMAL && zero && uc_flags_of(zero - 1) & UC_DECIMAL) zero--;
        char digit = (char) ('0' + (c - zero) % 10);
        if (uc_flags_of(c) & UC_DECIMAL) buffer_add(r, &b, &digit, 1);
        else buffer_add(r, &b, from, (size_t) (p - from));
    }
    return buffer_value(r, &b);
}

FILTER(int) {
    Value a[2];
    bind_args(r, "do_int", "default=, base=", args, a);
    Value otherwise = given(a[0]) ? a[0] : integer(0);
    if (is_undefined(v)) raise_undefined(r, v);
    if (is_number(v)) {
        if (v.kind != V_REAL) return positive(r, v);
        return isnan(v.x) ? otherwise : int_from_real(r, v.x);
    }
    if (!is_str(v)) return otherwise;
    Value s = ascii_number(r, v);
    bool ok;
    Value whole = int_parse(r, s.s->p, s.s->n, given(a[1]) ? (int) index_of(r, a[1]) : 10, &ok);
    if (ok) return whole;
    double x;
    return real_parse(s.s->p, s.s->n, &x) && isfinite(x) ? int_from_real(r, x) : otherwise;
}

FILTER(float) {
    Value otherwise;
    bind_args(r, "do_float", "default=", args, &otherwise);
    if (is_undefined(v)) raise_undefined(r, v);
    if (is_number(v)) return real(to_real(r, v));
    double x;
    if (is_str(v)) {
        Value s = ascii_number(r, v);
        if (real_parse(s.s->p, s.s->n, &x)) return real(x);
    }
    return given(otherwise) ? otherwise : real(0);
}

static Value ceil_or_floor(Render *r, Value v, bool up) {
    if (v.kind != V_REAL) return positive(r, v);
    return int_from_real(r, up ? ceil(v.x) : floor(v.x));
}

FILTER(round) {
    static const String names[] = {STRING("common", 6), STRING("ceil", 4), STRING("floor", 5)};
    Value a[2];
    bind_args(r, "do_round", "precision=, method=", args, a);
    int how = given(a[1]) ? -1 : 0;
    for (int i = 0; i < 3 && how < 0; i++) {
        if (equal(r, a[1], str_value(&names[i]))) how = i;
    }
    if (how < 0) raise_error(r, "FilterArgumentError", "method must be common, ceil or floor");
    Value digits = given(a[0]) ? a[0] : integer(0);
    if (how == 0) {
        if (is_undefined(v)) raise_error(r, "TypeError", "type Undefined doesn't define __round__ method");
        if (!is_number(v)) raise_error(r, "TypeError", "type %s doesn't define __round__ method", type_name(v));
        if (digits.kind == V_NONE) {
            if (v.kind != V_REAL) return positive(r, v);
            if (!isfinite(v.x)) return int_from_real(r, v.x);
            return int_from_real(r, number_round(r, v, 0).x);
        }
        return number_round(r, v, index_of(r, digits));
    }
    Value unit = power(r, integer(10), digits), scaled = mul(r, v, unit);
    if (!is_number(scaled)) raise_error(r, "TypeError", "must be real number, not %s", type_name(scaled));
    return divide(r, ceil_or_floor(r, scaled, how == 1), unit);
}

FILTER(filesizeformat) {
    static const char *const prefixes[] = {
        "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
    Value binary;
    bind_args(r, "do_filesizeformat", "binary=", args, &binary);
    double bytes;
    if (is_undefined(v)) raise_undefined(r, v);
    if (is_str(v)) {
        Value s = ascii_number(r, v);
        if (!real_parse(s.s->p, s.s->n, &bytes)) {
            Value shown = repr(r, v);
            raise_error(r, "ValueError", "could not convert string to float: %.*s", (int) shown.s->n, shown.s->p);
        }
    } else if (is_number(v)) {
        bytes = to_real(r, v);
    } else {
        raise_error(r, "TypeError", "float() argument must be a string or a real number, not '%s'", type_name(v));
    }
    bool two = flag(r, binary);
    double base = two ? 1024 : 1000, unit = base;
    if (bytes == 1) return text_z(r, "1 Byte");
    Buffer b = {0};
    if (bytes < base) {
        put_number(r, &b, int_from_real(r, bytes));
        buffer_z(r, &b, " Bytes");
        return buffer_value(r, &b);
    }
    for (int i = 0;; i++) {
        unit *= base;
        if (bytes < unit || i == 7) {
            char line[400];
            snprintf(line, sizeof line, "%.1f %s", base * bytes / unit, prefixes[i + 8 * two]);
            return text_z(r, line);
        }
    }
}

// ---- anything ----
FILTER(default) {
    Value a[2];
    bind_args(r, "do_default", "default_value=, boolean=", args, a);
    if (!is_undefined(v) && !(flag(r, a[1]) && !truth(r, v))) return v;
    return given(a[0]) ? a[0] : text_of(r, "", 0);
}

FILTER(attr) {
    Value name;
    bind_args(r, "do_attr", "name", args, &name);
    return attr_value(r, v, name);
}

FILTER(length) {
    bind_args(r, "len", "/", args, NULL);
    return integer(length(r, v));
}

// ---- the table ----
#define ROW(name) {#name, "filter_" #name, filter_##name},
const FilterInfo filters[] = {FILTERS(ROW){"count", "filter_length", filter_length},
    {"d", "filter_default", filter_default}, {"e", "filter_escape", filter_escape}, {NULL, NULL, NULL}};

static bool is_named(const char *z, const char *p, size_t n) {
    return strlen(z) == n && !memcmp(z, p, n);
}

const FilterInfo *filter_named(const char *p, size_t n) {
    for (const FilterInfo *f = filters; f->name; f++) {
        if (is_named(f->name, p, n)) return f;
    }
    return NULL;
}

bool filter_of_jinja(const char *p, size_t n) {
    static const char *const others[] = {"random", "striptags", "urlize"};
    for (int i = 0; i < 3; i++) {
        if (is_named(others[i], p, n)) return true;
    }
    return false;
}

_Noreturn void no_such(Render *r, const char *what, const String *name) {
    Value shown = repr(r, str_value(name));
    raise_error(r, "TemplateRuntimeError", "No %s named %.*s found.", what, (int) shown.s->n, shown.s->p);
}
