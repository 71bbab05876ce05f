// Values as text: str() and repr(), `format % args` and str.format. See value.h.
#include "chat_template.h"
#include "value_unicode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- repr ----
static void put_repr_str(Render *r, Buffer *b, Value v) {
    const char *p = v.s->p, *end = p + v.s->n;
    char quote = memchr(p, '\'', v.s->n) && !memchr(p, '"', v.s->n) ? '"' : '\'';
    if (v.markup) buffer_z(r, b, "Markup(");
    buffer_add(r, b, &quote, 1);
    while (p < end) {
        uint32_t c;
        size_t n = utf8_get(p, end, &c);
        if (c == (uint32_t) quote || c == '\\') buffer_format(r, b, "\\%c", (char) c);
        else if (c == '\n') buffer_z(r, b, "\\n");
        else if (c == '\r') buffer_z(r, b, "\\r");
        else if (c == '\t') buffer_z(r, b, "\\t");
        else if (uc_flags_of(c) & UC_PRINTABLE) buffer_add(r, b, p, n);
        else buffer_format(r, b, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        p += n;
    }
    buffer_add(r, b, &quote, 1);
    if (v.markup) buffer_z(r, b, ")");
}

static void put_items(Render *r, Buffer *b, const List *list, const char *open, const char *close) {
    buffer_z(r, b, open);
    for (size_t i = 0; i < list->n; i++) {
        if (i) buffer_z(r, b, ", ");
        put_repr(r, b, list->v[i]);
    }
    buffer_z(r, b, close);
}

static void put_dict(Render *r, Buffer *b, const Dict *d) {
    buffer_z(r, b, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i) buffer_z(r, b, ", ");
        put_repr(r, b, d->entry[i].key);
        buffer_z(r, b, ": ");
        put_repr(r, b, d->entry[i].value);
    }
    buffer_z(r, b, "}");
}

static void put_loop(Render *r, Buffer *b, Value v) {
    static const String index = STRING("index", 5), size = STRING("length", 6);
    buffer_format(r, b, "<LoopContext %lld/%lld>", (long long) attr(r, v, &index).i, (long long) attr(r, v, &size).i);
}

static void put_repr_inside(Render *r, Buffer *b, Value v) {
    switch (v.kind) {
    case V_UNDEFINED: buffer_z(r, b, "Undefined"); break;
    case V_NONE: buffer_z(r, b, "None"); break;
    case V_BOOL:
    case V_INT:
    case V_BIG:
    case V_REAL: put_number(r, b, v); break;
    case V_STR: put_repr_str(r, b, v); break;
    case V_LIST: put_items(r, b, v.list, "[", "]"); break;
    case V_TUPLE: put_items(r, b, v.list, "(", v.list->n == 1 ? ",)" : ")"); break;
    case V_DICT: put_dict(r, b, v.dict); break;
    case V_NAMESPACE:
        buffer_z(r, b, "<Namespace ");
        put_dict(r, b, v.dict);
        buffer_z(r, b, ">");
        break;
    case V_VIEW:
        buffer_z(r, b, type_name(v));
        buffer_z(r, b, "(");
        put_repr(r, b, list_from(r, v));
        buffer_z(r, b, ")");
        break;
    case V_RANGE:
        buffer_format(r, b, "range(%lld, %lld", (long long) v.range->start, (long long) v.range->stop);
        if (v.range->step != 1) buffer_format(r, b, ", %lld", (long long) v.range->step);
        buffer_z(r, b, ")");
        break;
    case V_MACRO:
        buffer_z(r, b, "<Macro ");
        if (v.macro->info->name) put_repr(r, b, text_z(r, v.macro->info->name));
        else buffer_z(r, b, "anonymous");
        buffer_z(r, b, ">");
        break;
    case V_LOOP: put_loop(r, b, v); break;
    case V_METHOD:
        buffer_format(r, b, "<built-in method %s of %s object>", v.method->name, type_name(v.method->self));
        break;
    default: buffer_format(r, b, "<%s object>", type_name(v)); // Python prints an address here, and for a method
    }
}

void put_repr(Render *r, Buffer *b, Value v) {
    if (++r->nesting > limit_nesting)
        raise_error(r, "RecursionError", "values lie more than %d levels within each other", limit_nesting);
    put_repr_inside(r, b, v);
    r->nesting--;
}

Value repr(Render *r, Value v) {
    Buffer b = {0};
    put_repr(r, &b, v);
    return buffer_value(r, &b);
}

static Value ascii_repr(Render *r, Value v) { // Python's ascii(): what lies beyond is escaped
    Value s = repr(r, v);
    Buffer b = {0};
    const char *p = s.s->p, *end = p + s.s->n;
    for (uint32_t c; p < end;) {
        size_t n = utf8_get(p, end, &c);
        if (c < 0x80) buffer_add(r, &b, p, 1);
        else buffer_format(r, &b, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned) c);
        p += n;
    }
    return buffer_value(r, &b);
}

Value to_str(Render *r, Value v) {
    static const String empty = STRING("", 0);
    if (v.kind == V_STR) return marked(v, false);
    if (v.kind == V_UNDEFINED) return str_value(&empty);
    return repr(r, v);
}

Value soft_str(Render *r, Value v) {
    return v.kind == V_STR ? v : to_str(r, v);
}

bool is_markup(Value v) {
    return v.kind == V_STR && v.markup;
}

Value escape(Render *r, Value v) {
    if (is_markup(v)) return v;
    Value s = to_str(r, v);
    Buffer b = {0};
    for (size_t i = 0; i < s.s->n; i++) {
        char c = s.s->p[i];
        const char *to = c == '&' ? "&amp;"
            : c == '<'            ? "&lt;"
            : c == '>'            ? "&gt;"
            : c == '\''           ? "&#39;"
            : c == '"'            ? "&#34;"
                                  : NULL;
        if (to) buffer_z(r, &b, to);
        else buffer_add(r, &b, &c, 1);
    }
    return marked(buffer_value(r, &b), true);
}

// ---- one value under a format ----
typedef struct {
    uint32_t fill; // 0: none given
    char align;    // < > ^ =, 0: none given
    char sign;     // + - or space
    bool alternate, zero;
    int64_t width, precision; // -1: none given
    char group;               // , or _
    char type;                // 0: none given
} Spec;

static void put_padded(Render *r, Buffer *b, const char *sign, Value body, const Spec *spec, char align) {
    int64_t pad = spec->width - (int64_t) (strlen(sign) + body.s->chars);
    if (pad < 0) pad = 0;
    if ((uint64_t) pad > r->size)
        raise_error(r, "MemoryError", "a width of %lld is more than a rendering may take", (long long) spec->width);
    int64_t left = align == '<' || align == '=' ? 0 : align == '>' ? pad : pad / 2;
    char fill[4];
    size_t n = utf8_write(fill, spec->fill ? spec->fill : ' ');
    for (int64_t i = 0; i < left; i++) buffer_add(r, b, fill, n);
    buffer_z(r, b, sign);
    for (int64_t i = 0; align == '=' && i < pad; i++) buffer_add(r, b, fill, n);
    buffer_str(r, b, body);
    for (int64_t i = left; align != '=' && i < pad; i++) buffer_add(r, b, fill, n);
}

// Digits with a separator every `every` places of the part before the point.
static Value grouped(Render *r, Value digits, char group, int every, int64_t width) {
    size_t whole = 0;
    while (whole < digits.s->n && digits.s->p[whole] != '.' && digits.s->p[whole] != 'e' && digits.s->p[whole] != 'E' &&
        digits.s->p[whole] != '%')
        whole++;
    Buffer b = {0};
    size_t rest = digits.s->n - whole, zeros = 0;
    while ((int64_t) (zeros + whole + (zeros + whole - 1) / (size_t) every + rest) < width) zeros++;
    for (size_t i = 0; i < zeros + whole; i++) {
        if (i && (zeros + whole - i) % (size_t) every == 0) buffer_add(r, &b, &group, 1);
        buffer_add(r, &b, i < zeros ? "0" : digits.s->p + i - zeros, 1);
    }
    buffer_add(r, &b, digits.s->p + whole, rest);
    return buffer_value(r, &b);
}

static void put_formatted_number(
    Render *r, Buffer *b, bool negative, const char *prefix, Value digits, const Spec *spec) {
    char sign[8];
    snprintf(sign, sizeof sign, "%s%s",
        negative                ? "-"
            : spec->sign == '+' ? "+"
            : spec->sign == ' ' ? " "
                                : "",
        prefix);
    bool zeros = (spec->zero && !spec->align) || (spec->align == '=' && spec->fill == '0');
    if (spec->group) {
        int every = spec->type == 'x' || spec->type == 'X' || spec->type == 'o' || spec->type == 'b' ? 4 : 3;
        digits = grouped(r, digits, spec->group, every, zeros ? spec->width - (int64_t) strlen(sign) : 0);
    }
    Spec padded = *spec;
    if (spec->zero && !spec->fill) padded.fill = '0';
    put_padded(r, b, sign, digits, &padded, spec->align ? spec->align : spec->zero ? '=' : '>');
}

static Value digits_of_int(Render *r, Value v, char type) {
    unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    Buffer digits = {0};
    put_int_base(r, &digits, v, base);
    for (size_t i = 0; type == 'X' && i < digits.n; i++) {
        if (digits.p[i] >= 'a') digits.p[i] = (char) (digits.p[i] - 32);
    }
    size_t minus = digits.n && digits.p[0] == '-';
    return text_of(r, digits.p + minus, digits.n - minus);
}

static bool is_negative(Value v) {
    return v.kind == V_REAL ? signbit(v.x) && !isnan(v.x) : compare_numbers(v, integer(0)) < 0;
}

static Value digits_of_real(Render *r, double x, char type, int64_t precision, bool alternate) {
    char line[512];
    x = fabs(x);
    if (isnan(x) || isinf(x)) {
        bool upper = type == 'F' || type == 'E' || type == 'G';
        return text_format(r, "%s%s",
            isnan(x)    ? (upper ? "NAN" : "nan")
                : upper ? "INF"
                        : "inf",
            type == '%' ? "%" : "");
    }
    if (precision > 300)
        raise_error(r, "ValueError", "a precision of %lld is more than a template may ask for", (long long) precision);
    int digits = (int) precision;
    if (type == 0) { // as repr, or as g with a digit after the point
        if (precision < 0) {
            put_real(line, x);
            return text_z(r, line);
        }
        int exponent;
        snprintf(line, sizeof line, "%.*e", digits > 0 ? digits - 1 : 0, x);
        sscanf(strchr(line, 'e') + 1, "%d", &exponent);
        bool scientific = exponent < -4 || exponent >= (digits > 0 ? digits : 1) - 1;
        snprintf(line, sizeof line, "%.*g", digits > 0 ? digits : 1, x);
        if (scientific && !strchr(line, 'e') && exponent >= 0) {
            snprintf(line, sizeof line, "%.*e", digits > 1 ? digits - 1 : 0, x);
            char *e = strchr(line, 'e'), *end = e;
            char tail[16];
            snprintf(tail, sizeof tail, "%s", e);
            if (memchr(line, '.', (size_t) (e - line))) {
                while (end[-1] == '0') end--;
                if (end[-1] == '.') end--;
            }
            strcpy(end, tail);
        } else if (!scientific && !strchr(line, '.')) {
            strcat(line, ".0");
        }
        return text_z(r, line);
    }
    if (digits < 0) digits = 6;
    if (type == '%') {
        snprintf(line, sizeof line, "%.*f%%", digits, x * 100);
        return text_z(r, line);
    }
    char form[8];
    snprintf(form, sizeof form, "%%%s.*%c", alternate ? "#" : "", type == 'n' ? 'g' : type);
    if (type == 'f' || type == 'F') {
        char *big = render_take_text(r, 700);
        int n = snprintf(big, 700, form, digits, x);
        return text(r, big, (size_t) n);
    }
    snprintf(line, sizeof line, form, digits == 0 && (type == 'g' || type == 'G' || type == 'n') ? 1 : digits, x);
    return text_z(r, line);
}

static void parse_spec(Render *r, Value text_spec, Spec *spec, Value v) {
    const char *p = text_spec.s->p, *end = p + text_spec.s->n;
    *spec = (Spec){.width = -1, .precision = -1};
    uint32_t c;
    size_t n = p < end ? utf8_get(p, end, &c) : 0;
    if (p + n < end && n && strchr("<>=^", p[n])) {
        spec->fill = c;
        spec->align = p[n];
        p += n + 1;
    } else if (p < end && strchr("<>=^", *p)) {
        spec->align = *p++;
    }
    if (p < end && (*p == '+' || *p == '-' || *p == ' ')) spec->sign = *p++;
    if (p < end && *p == '#') spec->alternate = *p++;
    if (p < end && *p == '0') {
        spec->zero = true;
        p++;
    }
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        spec->width = (spec->width < 0 ? 0 : spec->width) * 10 + *p - '0';
        if (spec->width > 1 << 30) raise_error(r, "ValueError", "Too many decimal digits in format string");
    }
    if (p < end && (*p == ',' || *p == '_')) spec->group = *p++;
    if (p < end && *p == '.') {
        p++;
        if (p == end || *p < '0' || *p > '9') raise_error(r, "ValueError", "Format specifier missing precision");
        for (spec->precision = 0; p < end && *p >= '0' && *p <= '9'; p++) {
            spec->precision = spec->precision * 10 + *p - '0';
            if (spec->precision > 1 << 30) raise_error(r, "ValueError", "Too many decimal digits in format string");
        }
    }
    if (p < end) spec->type = *p++;
    if (p < end)
        raise_error(r, "ValueError", "Invalid format specifier '%.*s' for object of type '%s'", (int) text_spec.s->n,
            text_spec.s->p, type_name(v));
}

_Noreturn static void bad_code(Render *r, const Spec *spec, Value v) {
    raise_error(r, "ValueError", "Unknown format code '%c' for object of type '%s'", spec->type, type_name(v));
}

static void format_text(Render *r, Buffer *b, Value v, Spec *spec) {
    if (spec->type && spec->type != 's') bad_code(r, spec, v);
    if (spec->sign)
        raise_error(r, "ValueError",
            spec->sign == ' ' ? "Space not allowed in string format specifier"
                              : "Sign not allowed in string format specifier");
    if (spec->alternate) raise_error(r, "ValueError", "Alternate form (#) not allowed in string format specifier");
    if (spec->align == '=') raise_error(r, "ValueError", "'=' alignment not allowed in string format specifier");
    if (spec->group) raise_error(r, "ValueError", "Cannot specify '%c' with 's'.", spec->group);
    if (spec->zero && !spec->fill) spec->fill = '0';
    if (spec->precision >= 0 && (size_t) spec->precision < v.s->chars)
        v = str_slice(r, v, 0, spec->precision, 1, spec->precision);
    put_padded(r, b, "", v, spec, spec->align ? spec->align : '<');
}

Value format_field(Render *r, Value v, Value spec_text) {
    if (!spec_text.s->n) return to_str(r, v);
    if (v.kind != V_STR && !is_number(v)) {
        raise_error(r, "TypeError", "unsupported format string passed to %s.__format__", type_name(v));
    }
    Spec spec;
    parse_spec(r, spec_text, &spec, v);
    Buffer b = {0};
    if (v.kind == V_STR) {
        format_text(r, &b, v, &spec);
    } else if (v.kind == V_REAL || (spec.type && strchr("eEfFgG%", spec.type))) {
        if (spec.type && !strchr("eEfFgGn%", spec.type)) bad_code(r, &spec, v);
        double x = to_real(r, v);
        put_formatted_number(
            r, &b, is_negative(real(x)), "", digits_of_real(r, x, spec.type, spec.precision, spec.alternate), &spec);
    } else {
        if (spec.type && !strchr("bcdoxXn", spec.type)) bad_code(r, &spec, v);
        if (spec.precision >= 0) raise_error(r, "ValueError", "Precision not allowed in integer format specifier");
        if (spec.type == 'c') {
            char c[4];
            int64_t code = index_of(r, v);
            if (code < 0 || code > 0x10FFFF) raise_error(r, "OverflowError", "%%c arg not in range(0x110000)");
            if (!spec.align) spec.align = '<';
            put_padded(r, &b, "", text(r, c, utf8_write(c, (uint32_t) code)), &spec, spec.align);
        } else {
            const char *prefix = !spec.alternate ? ""
                : spec.type == 'x'               ? "0x"
                : spec.type == 'X'               ? "0X"
                : spec.type == 'o'               ? "0o"
                : spec.type == 'b'               ? "0b"
                                                 : "";
            put_formatted_number(r, &b, is_negative(v), prefix, digits_of_int(r, v, spec.type), &spec);
        }
    }
    return buffer_value(r, &b);
}

// ---- format % args ----
typedef struct {
    Value args; // a tuple, a mapping, or one value
    size_t at;  // of the tuple
    bool markup;
} PercentArgs;

static Value next_arg(Render *r, PercentArgs *a) {
    if (a->args.kind == V_TUPLE) {
        if (a->at >= a->args.list->n) raise_error(r, "TypeError", "not enough arguments for format string");
        return a->args.list->v[a->at++];
    }
    if (a->at++) raise_error(r, "TypeError", "not enough arguments for format string");
    return a->args;
}

static int64_t star_or_number(Render *r, PercentArgs *a, const char **p, const char *end) {
    int64_t n = 0;
    if (*p < end && **p == '*') {
        (*p)++;
        Value v = next_arg(r, a);
        if (v.kind != V_INT && v.kind != V_BOOL) raise_error(r, "TypeError", "* wants int");
        return index_of(r, v);
    }
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
        n = n * 10 + **p - '0';
        if (n > 1 << 30) raise_error(r, "ValueError", "width too big");
    }
    return n;
}

static void percent_number(Render *r, Buffer *b, Value v, Spec *spec, char type) {
    bool reals = strchr("eEfFgG", type) != NULL;
    if (!is_number(v)) {
        if (is_undefined(v) && !strchr("xXo", type)) raise_undefined(r, v);
        if (reals) {
            raise_error(r, "TypeError", "must be real number, not %s", type_name(v));
        }
        raise_error(r, "TypeError", "%%%c format: %s is required, not %s", type,
            strchr("xXo", type) ? "an integer" : "a real number", type_name(v));
    }
    spec->type = type == 'i' || type == 'u' ? 'd' : type;
    if (reals) {
        double x = to_real(r, v);
        put_formatted_number(
            r, b, is_negative(real(x)), "", digits_of_real(r, x, type, spec->precision, spec->alternate), spec);
        return;
    }
    if (v.kind == V_REAL) {
        if (strchr("xXo", type)) raise_error(r, "TypeError", "%%%c format: an integer is required, not float", type);
        v = int_from_real(r, v.x);
    }
    Value digits = digits_of_int(r, v, spec->type);
    if (spec->precision > (int64_t) digits.s->n) {
        Buffer wide = {0};
        for (int64_t i = (int64_t) digits.s->n; i < spec->precision; i++) buffer_add(r, &wide, "0", 1);
        buffer_str(r, &wide, digits);
        digits = buffer_value(r, &wide);
    }
    const char *prefix = !spec->alternate ? "" : type == 'x' ? "0x" : type == 'X' ? "0X" : type == 'o' ? "0o" : "";
    put_formatted_number(r, b, is_negative(v), prefix, digits, spec);
}

static void percent_one(Render *r, Buffer *b, PercentArgs *a, Value v, Spec *spec, char type) {
    if (strchr("sra", type)) {
        Value s = type == 's' ? soft_str(r, v) : type == 'a' ? ascii_repr(r, v) : repr(r, v);
        if (a->markup) s = escape(r, s);
        if (spec->precision >= 0 && (size_t) spec->precision < s.s->chars)
            s = str_slice(r, s, 0, spec->precision, 1, spec->precision);
        put_padded(r, b, "", s, spec, spec->align ? spec->align : '>');
    } else if (type == 'c') {
        char c[4];
        if (is_str(v) && v.s->chars == 1) {
            put_padded(r, b, "", v, spec, spec->align ? spec->align : '>');
            return;
        }
        if (v.kind != V_INT && v.kind != V_BOOL && v.kind != V_BIG)
            raise_error(r, "TypeError", "%%c requires int or char");
        int64_t code = v.kind == V_BIG ? -1 : index_of(r, v);
        if (code < 0 || code > 0x10FFFF) raise_error(r, "OverflowError", "%%c arg not in range(0x110000)");
        put_padded(r, b, "", text(r, c, utf8_write(c, (uint32_t) code)), spec, spec->align ? spec->align : '>');
    } else {
        if (spec->align == '<') spec->zero = false;
        percent_number(r, b, v, spec, type);
    }
}

static const char *mapping_key(Render *r, PercentArgs *a, const char *p, const char *end, Value *v) {
    if (is_undefined(a->args)) raise_undefined(r, a->args); // a mapping to Python, which asks it for the key
    if (a->args.kind != V_DICT) raise_error(r, "TypeError", "format requires a mapping");
    const char *from = ++p;
    for (int depth = 1; p < end; p++) {
        if (*p == '(') depth++;
        if (*p == ')' && --depth == 0) break;
    }
    if (p == end) raise_error(r, "ValueError", "incomplete format key");
    Value key = text_of(r, from, (size_t) (p - from));
    const Value *found = dict_get(r, a->args.dict, key);
    if (!found) {
        Value shown = repr(r, key);
        raise_error(r, "KeyError", "%.*s", (int) shown.s->n, shown.s->p);
    }
    *v = *found;
    a->at = 1;
    return p + 1;
}

Value str_percent(Render *r, Value format, Value args) {
    PercentArgs a = {args, 0, format.markup};
    Buffer b = {0};
    const char *p = format.s->p, *end = p + format.s->n;
    bool keyed = args.kind == V_DICT || args.kind == V_LIST || is_undefined(args);
    while (p < end) {
        const char *at = memchr(p, '%', (size_t) (end - p));
        buffer_add(r, &b, p, (size_t) ((at ? at : end) - p));
        if (!at) break;
        p = at + 1;
        Spec spec = {.precision = -1};
        Value v = MISSING;
        if (p < end && *p == '(') p = mapping_key(r, &a, p, end, &v);
        for (; p < end && strchr("-+ #0", *p) && *p; p++) {
            if (*p == '-') spec.align = '<';
            else if (*p == '#') spec.alternate = true;
            else if (*p == '0') spec.zero = true;
            else if (spec.sign != '+') spec.sign = *p;
        }
        spec.width = star_or_number(r, &a, &p, end);
        if (spec.width < 0) {
            spec.align = '<';
            spec.width = -spec.width;
        }
        if (p < end && *p == '.') {
            p++;
            spec.precision = star_or_number(r, &a, &p, end);
            if (spec.precision < 0) spec.precision = 0;
        }
        if (p < end && strchr("hlL", *p) && *p) p++;
        if (p == end) raise_error(r, "ValueError", "incomplete format");
        if (*p == '%' && p == at + 1) {
            buffer_z(r, &b, "%");
            p++;
            continue;
        }
        if (is_missing(v)) v = next_arg(r, &a);
        if (!*p || !strchr("diouxXeEfFgGcrsa", *p)) {
            uint32_t c;
            size_t n = utf8_get(p, end, &c);
            raise_error(r, "ValueError", "unsupported format character '%.*s' (0x%x) at index %zu", (int) n, p, c,
                utf8_count(format.s->p, (size_t) (p - format.s->p)));
        }
        percent_one(r, &b, &a, v, &spec, *p++);
    }
    bool left = args.kind == V_TUPLE ? a.at < args.list->n : !a.at && !keyed;
    if (left) raise_error(r, "TypeError", "not all arguments converted during string formatting");
    return marked(buffer_value(r, &b), format.markup);
}

// ---- str.format ----
typedef struct {
    const Args *args;
    int64_t at; // next automatic field; -1: numbered by hand
    bool automatic;
    Value self;
} FormatArgs;

static Value field_first(Render *r, FormatArgs *f, const char *p, size_t n, bool whole) {
    bool digits = n > 0;
    int64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        digits &= p[i] >= '0' && p[i] <= '9';
        if (digits && at < 1 << 28) at = at * 10 + p[i] - '0';
    }
    if (n == 0 && whole) {
        if (f->at < 0)
            raise_error(r, "ValueError", "cannot switch from manual field specification to automatic field numbering");
        at = f->at++;
        f->automatic = true;
        digits = true;
    } else if (digits && whole) {
        if (f->automatic)
            raise_error(r, "ValueError", "cannot switch from manual field specification to automatic field numbering");
        f->at = -1;
    }
    if (digits) {
        if ((size_t) at >= f->args->n) raise_error(r, "IndexError", "tuple index out of range");
        return f->args->v[at];
    }
    for (size_t i = 0; i < f->args->n_named; i++) {
        if (f->args->names[i]->n == n && !memcmp(f->args->names[i]->p, p, n)) return f->args->named[i];
    }
    Value shown = repr(r, text_of(r, p, n));
    raise_error(r, "KeyError", "%.*s", (int) shown.s->n, shown.s->p);
}

static Value field_value(Render *r, FormatArgs *f, const char *p, const char *end) {
    const char *at = p;
    while (at < end && *at != '.' && *at != '[') at++;
    Value v = field_first(r, f, p, (size_t) (at - p), at == end);
    while (at < end) {
        const char *from = at + 1;
        if (*at == '.') {
            for (at = from; at < end && *at != '.' && *at != '[';) at++;
            if (at == from) raise_error(r, "ValueError", "Empty attribute in format string");
            v = attr(r, v, text(r, from, (size_t) (at - from)).s);
            continue;
        }
        if (*at != '[') raise_error(r, "ValueError", "Only '.' or '[' may follow ']' in format field specifier");
        for (at = from; at < end && *at != ']';) at++;
        if (at == end) raise_error(r, "ValueError", "Missing ']' in format string");
        if (at == from) raise_error(r, "ValueError", "Empty attribute in format string");
        bool ok;
        Value key = text(r, from, (size_t) (at - from)), whole = int_parse(r, from, (size_t) (at - from), 10, &ok);
        v = item(r, v, ok && *from != '-' && *from != '+' ? whole : key);
        at++;
    }
    return v;
}

static Value format_text_with(Render *r, FormatArgs *f, const char *p, const char *end, int depth);

static const char *format_one(Render *r, FormatArgs *f, Buffer *b, const char *p, const char *end, int depth) {
    const char *from = p;
    int open = 1;
    for (; p < end && open; p++) open += *p == '{' ? 1 : *p == '}' ? -1 : 0;
    if (open)
        raise_error(r, "ValueError",
            from == end ? "Single '{' encountered in format string" : "expected '}' before end of string");
    const char *close = p - 1, *name_end = from;
    for (int bracket = 0; name_end < close && (bracket || (*name_end != '!' && *name_end != ':')); name_end++) {
        if (*name_end == '[') bracket = 1;
        if (*name_end == ']') bracket = 0;
    }
    Value v = field_value(r, f, from, name_end);
    const char *spec = name_end;
    if (spec < close && *spec == '!') {
        if (close - spec < 2) raise_error(r, "ValueError", "end of string while looking for conversion specifier");
        char how = spec[1];
        spec += 2;
        if (spec < close && *spec != ':') raise_error(r, "ValueError", "expected ':' after conversion specifier");
        if (how == 's') v = to_str(r, v);
        else if (how == 'r') v = repr(r, v);
        else if (how == 'a') v = ascii_repr(r, v);
        else raise_error(r, "ValueError", "Unknown conversion specifier %c", how);
    }
    Value spec_text = spec < close ? format_text_with(r, f, spec + 1, close, depth + 1) : text_of(r, "", 0);
    Value out = f->self.markup && is_markup(v) ? v : format_field(r, v, spec_text);
    buffer_str(r, b, f->self.markup ? escape(r, out) : out);
    return p;
}

static Value format_text_with(Render *r, FormatArgs *f, const char *p, const char *end, int depth) {
    Buffer b = {0};
    if (depth > 2) raise_error(r, "ValueError", "Max string recursion exceeded");
    while (p < end) {
        const char *from = p;
        while (p < end && *p != '{' && *p != '}') p++;
        buffer_add(r, &b, from, (size_t) (p - from));
        if (p == end) break;
        if (p + 1 < end && p[1] == *p) {
            buffer_add(r, &b, p, 1);
            p += 2;
        } else if (*p == '}') {
            raise_error(r, "ValueError", "Single '}' encountered in format string");
        } else {
            p = format_one(r, f, &b, p + 1, end, depth);
        }
    }
    return buffer_value(r, &b);
}

Value str_format_call(Render *r, Value self, const Args *args) {
    FormatArgs f = {args, 0, false, self};
    return marked(format_text_with(r, &f, self.s->p, self.s->p + self.s->n, 1), self.markup);
}
