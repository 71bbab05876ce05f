// A template's text to tokens: Jinja2's lexer, its white space control included (trim_blocks, lstrip_blocks, the
// signs - and + at tags). In: the text. Out: tokens, each with its place. See jinja.h.
#include "jinja.h"

#include <stdlib.h>
#include <string.h>

// \r\n and \r become \n; one newline at the very end is dropped.
Str jinja_source(Arena *a, Str s) {
    char *p = arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '\r') {
            if (i + 1 < s.n && s.p[i + 1] == '\n') i++;
            c = '\n';
        }
        p[n++] = c;
    }
    if (n && p[n - 1] == '\n') n--;
    return (Str){p, n};
}

typedef struct {
    Arena *a;
    Loc *loc;
    const char *s;
    size_t n, at;
    int line;
    size_t line_at; // lines are counted up to here
    Tokens out;
    char open[200]; // brackets of the tag
    int n_open;
    bool line_start; // the text before ended a line
} Lexer;

_Noreturn static void bad(Lexer *x, size_t at, const char *what) {
    x->loc->pos = (uint32_t) at;
    fail_at(*x->loc, "%s", what);
}

static unsigned flags_at(Lexer *x, size_t at, size_t *n) {
    uint32_t c;
    *n = utf8_get(x->s + at, x->s + x->n, &c);
    return uc_flags_of(c);
}

enum { SPACE = 0x10, WORD = 0x1 | 0x2 | 0x4 | 0x8 }; // UC_SPACE; letters and numbers of value_unicode.h

static size_t skip_space(Lexer *x, size_t at) {
    for (size_t n; at < x->n && (flags_at(x, at, &n) & SPACE);) at += n;
    return at;
}

static Token *token(Lexer *x, TokenKind kind, size_t pos, Str text_of_it) {
    for (; x->line_at < pos; x->line_at++) x->line += x->s[x->line_at] == '\n';
    Token *t = PUSH(x->a, x->out.v, x->out.n, x->out.cap);
    *t = (Token){.kind = kind, .pos = (uint32_t) pos, .line = x->line, .text = text_of_it};
    return t;
}

static bool at_text(Lexer *x, size_t at, const char *z) {
    size_t n = strlen(z);
    return at <= x->n && x->n - at >= n && !memcmp(x->s + at, z, n);
}

// The text before a tag: without its trailing white space at a '-', without the tag's own indentation by lstrip_blocks.
static void data(Lexer *x, size_t from, size_t to, char sign, bool is_variable) {
    size_t end = to;
    if (sign == '-') {
        while (end > from) {
            size_t back = end - 1, n;
            while (back > from && ((unsigned char) x->s[back] & 0xC0) == 0x80) back--;
            if (!(flags_at(x, back, &n) & SPACE)) break;
            end = back;
        }
    } else if (sign != '+' && !is_variable) {
        size_t line = to;
        while (line > from && x->s[line - 1] != '\n') line--;
        if ((line > from || x->line_start) && line < to && skip_space(x, line) >= to) end = line;
    }
    if (end > from) token(x, T_DATA, from, (Str){x->s + from, end - from});
}

// Whether a tag's end begins here; then *next is what follows it, white space as the signs say.
static bool tag_end(Lexer *x, size_t at, const char *end, bool block, size_t *next_at) {
    size_t n = strlen(end);
    if (x->s[at] == '-' && at_text(x, at + 1, end)) {
        *next_at = skip_space(x, at + 1 + n);
        return true;
    }
    if (block && x->s[at] == '+' && at_text(x, at + 1, end)) {
        *next_at = at + 1 + n;
        return true;
    }
    if (!at_text(x, at, end)) return false;
    *next_at = at + n;
    if (block && *next_at < x->n && x->s[*next_at] == '\n') (*next_at)++;
    return true;
}

// ---- inside a tag ----
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t digits(Lexer *x, size_t at) { // (\d+_)*\d+
    while (at < x->n &&
        (is_digit(x->s[at]) || (x->s[at] == '_' && at + 1 < x->n && is_digit(x->s[at + 1]) && is_digit(x->s[at - 1]))))
        at++;
    return at;
}

static size_t real_end(Lexer *x, size_t at) { // 0: not a real
    if (at && x->s[at - 1] == '.') return 0;
    size_t p = digits(x, at), q = p;
    bool fraction = p + 1 < x->n && x->s[p] == '.' && is_digit(x->s[p + 1]);
    if (fraction) q = digits(x, p + 1);
    if (q < x->n && (x->s[q] | 32) == 'e') {
        size_t e = q + 1;
        if (e < x->n && (x->s[e] == '+' || x->s[e] == '-')) e++;
        if (e < x->n && is_digit(x->s[e])) return digits(x, e);
    }
    return fraction ? q : 0;
}

static Str without_underscores(Lexer *x, size_t from, size_t to) {
    char *p = arena_alloc(x->a, to - from + 1);
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        if (x->s[i] != '_') p[n++] = x->s[i];
    }
    return (Str){p, n};
}

static bool in_base(char c, int base) {
    int d = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
    return d < base;
}

static void number(Lexer *x) {
    size_t from = x->at, to = real_end(x, from);
    if (to) {
        Token *t = token(x, T_REAL, from, without_underscores(x, from, to));
        t->value = real(strtod(str_z(x->a, t->text), NULL));
        x->at = to;
        return;
    }
    int base = 10;
    char mark = from + 1 < x->n && x->s[from] == '0' ? (char) (x->s[from + 1] | 32) : 0;
    if (mark == 'b' || mark == 'o' || mark == 'x') base = mark == 'b' ? 2 : mark == 'o' ? 8 : 16;
    size_t p = from + (base == 10 ? 0 : 2);
    if (base != 10 && p < x->n && x->s[p] == '_') p++;
    if (base != 10 && (p >= x->n || !in_base(x->s[p], base))) {
        base = 10;
        p = from;
    }
    to = p;
    bool zero = base == 10 && x->s[from] == '0'; // 0, 00, 0_0: and not 01
    while (to < x->n &&
        (in_base(x->s[to], zero ? 1 : base) ||
            (x->s[to] == '_' && to > p && x->s[to - 1] != '_' && to + 1 < x->n &&
                in_base(x->s[to + 1], zero ? 1 : base))))
        to++;
    Str text_of_it = without_underscores(x, p, to);
    Token *t = token(x, T_INT, from, text_of_it);
    uint64_t v = 0;
    for (size_t i = 0; i < text_of_it.n; i++) {
        char c = text_of_it.p[i];
        uint64_t d = is_digit(c) ? (uint64_t) (c - '0') : (uint64_t) ((c | 32) - 'a' + 10);
        if (v > (INT64_MAX - d) / (uint64_t) base)
            bad(x, from, "this integer is beyond 64 bits, which a template's text may not hold");
        v = v * (uint64_t) base + d;
    }
    t->value = integer((int64_t) v);
    x->at = to;
}

static size_t put_hex(Lexer *x, char *out, size_t at, int n_digits) {
    uint32_t c = 0;
    for (int i = 0; i < n_digits; i++) {
        if (at + (size_t) i >= x->n || !in_base(x->s[at + (size_t) i], 16))
            bad(x, at, "truncated \\x, \\u or \\U escape");
        char d = x->s[at + (size_t) i];
        c = c << 4 | (uint32_t) (is_digit(d) ? d - '0' : (d | 32) - 'a' + 10);
    }
    if (c > 0x10FFFF) bad(x, at, "illegal Unicode character");
    return utf8_write(out, c);
}

static void string(Lexer *x) {
    static const char from_c[] = "\\'\"abfnrtv", to_c[] = "\\'\"\a\b\f\n\r\t\v";
    char quote = x->s[x->at];
    size_t from = x->at, p = from + 1, n = 0;
    while (p < x->n && x->s[p] != quote) p += x->s[p] == '\\' ? 2 : 1;
    if (p >= x->n) bad(x, from, "unexpected quote: this string does not end");
    char *out = arena_alloc(x->a, p - from + 1);
    for (size_t i = from + 1; i < p; i++) {
        char c = x->s[i];
        if (c != '\\') {
            out[n++] = c;
            continue;
        }
        c = x->s[++i];
        const char *at = c ? strchr(from_c, c) : NULL;
        if (at) out[n++] = to_c[at - from_c];
        else if (c == '\n') continue;
        else if (c == 'x' || c == 'u' || c == 'U') {
            int wide = c == 'x' ? 2 : c == 'u' ? 4 : 8;
            n += put_hex(x, out + n, i + 1, wide);
            i += (size_t) wide;
        } else if (c >= '0' && c <= '7') {
            uint32_t v = 0;
            size_t k = i;
            while (k < i + 3 && k < p && x->s[k] >= '0' && x->s[k] <= '7') v = v * 8 + (uint32_t) (x->s[k++] - '0');
            n += utf8_write(out + n, v);
            i = k - 1;
        } else if (c == 'N') {
            bad(x, i - 1, "\\N{...} escapes are outside what ggcc implements; write the character itself, or \\uXXXX");
        } else {
            out[n++] = '\\';
            out[n++] = c;
        }
    }
    token(x, T_STRING, from, (Str){out, n});
    x->at = p + 1;
}

static void operator_at(Lexer *x) {
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<="};
    char c = x->s[x->at];
    size_t n = c && strchr("+-/*%~[](){}=><.:|,;", c) ? 1 : 0;
    for (int i = 0; i < 6; i++) {
        if (at_text(x, x->at, two[i])) n = 2;
    }
    if (!n) {
        uint32_t code;
        size_t wide = utf8_get(x->s + x->at, x->s + x->n, &code);
        x->loc->pos = (uint32_t) x->at;
        fail_at(*x->loc, "unexpected character %s in a tag", str_show(x->a, (Str){x->s + x->at, wide}));
    }
    if (c == '(' || c == '[' || c == '{') {
        if (x->n_open == COUNT(x->open)) bad(x, x->at, "brackets lie too deep within each other");
        x->open[x->n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (n == 1 && (c == ')' || c == ']' || c == '}')) {
        if (!x->n_open || x->open[x->n_open - 1] != c) {
            x->loc->pos = (uint32_t) x->at;
            if (!x->n_open) fail_at(*x->loc, "unexpected '%c'", c);
            fail_at(*x->loc, "unexpected '%c', expected '%c'", c, x->open[x->n_open - 1]);
        }
        x->n_open--;
    }
    token(x, T_OP, x->at, (Str){x->s + x->at, n});
    x->at += n;
}

static void name(Lexer *x) {
    size_t from = x->at, n;
    for (; x->at < x->n && (x->s[x->at] == '_' || (flags_at(x, x->at, &n) & (WORD | 0x400))); x->at += n) {
        if (x->s[x->at] == '_') n = 1;
    }
    token(x, T_NAME, from, (Str){x->s + from, x->at - from});
}

static void tag(Lexer *x, bool block) {
    size_t begin = x->at, n, next_at;
    x->n_open = 0;
    for (;;) {
        if (x->at >= x->n)
            bad(x, begin,
                block ? "this tag does not end: '%}' expected" : "this expression does not end: '}}' expected");
        if (!x->n_open && tag_end(x, x->at, block ? "%}" : "}}", block, &next_at)) {
            token(x, block ? T_BLOCK_END : T_VAR_END, x->at, S(""));
            x->line_start = x->s[next_at - 1] == '\n';
            x->at = next_at;
            return;
        }
        unsigned f = flags_at(x, x->at, &n);
        char c = x->s[x->at];
        if (f & SPACE) x->at = skip_space(x, x->at);
        else if (is_digit(c)) number(x);
        else if (c == '_' || (f & WORD)) name(x);
        else if (c == '\'' || c == '"') string(x);
        else operator_at(x);
    }
}

// ---- between tags ----
static size_t raw_begin(Lexer *x, size_t at, char *sign) { // {% raw %}: what follows it, or 0
    size_t p = at + 2;
    *sign = p < x->n && (x->s[p] == '-' || x->s[p] == '+') ? x->s[p++] : 0;
    p = skip_space(x, p);
    if (!at_text(x, p, "raw")) return 0;
    p = skip_space(x, p + 3);
    if (at_text(x, p, "-%}")) return skip_space(x, p + 3);
    return at_text(x, p, "%}") ? p + 2 : 0;
}

static void raw(Lexer *x, size_t from) {
    for (size_t at = from; at < x->n; at++) {
        if (!at_text(x, at, "{%")) continue;
        size_t p = at + 2, next_at;
        char sign = p < x->n && (x->s[p] == '-' || x->s[p] == '+') ? x->s[p++] : 0;
        p = skip_space(x, p);
        if (!at_text(x, p, "endraw")) continue;
        p = skip_space(x, p + 6);
        if (p >= x->n || !tag_end(x, p, "%}", true, &next_at)) continue;
        data(x, from, at, sign, false);
        x->line_start = x->s[next_at - 1] == '\n';
        x->at = next_at;
        return;
    }
    bad(x, from, "missing end of raw: '{% endraw %}' expected");
}

static void comment(Lexer *x, size_t begin, size_t at) {
    for (; at < x->n; at++) {
        size_t next_at;
        if (!tag_end(x, at, "#}", true, &next_at)) continue;
        x->line_start = x->s[next_at - 1] == '\n';
        x->at = next_at;
        return;
    }
    bad(x, begin, "missing end of comment: '#}' expected");
}

Tokens jinja_lex(Arena *a, Loc *loc) {
    Lexer x = {.a = a, .loc = loc, .s = loc->text.p, .n = loc->text.n, .line = 1, .line_start = true};
    size_t from = 0;
    while (x.at < x.n) {
        char kind = x.s[x.at] == '{' && x.at + 1 < x.n ? x.s[x.at + 1] : 0;
        if (kind != '{' && kind != '%' && kind != '#') {
            x.at++;
            continue;
        }
        size_t begin = x.at, after = begin + 2;
        char sign = after < x.n && (x.s[after] == '-' || x.s[after] == '+') ? x.s[after] : 0, raw_sign;
        size_t raw_at = kind == '%' ? raw_begin(&x, begin, &raw_sign) : 0;
        data(&x, from, begin, sign, kind == '{');
        x.line_start = false;
        if (raw_at) {
            x.line_start = x.s[raw_at - 1] == '\n';
            raw(&x, raw_at);
        } else if (kind == '#') {
            comment(&x, begin, after + (sign != 0));
        } else {
            token(&x, kind == '%' ? T_BLOCK_BEGIN : T_VAR_BEGIN, begin, S(""));
            x.at = after + (sign != 0);
            tag(&x, kind == '%');
        }
        from = x.at;
    }
    if (x.n > from) token(&x, T_DATA, from, (Str){x.s + from, x.n - from});
    token(&x, T_EOF, x.n, S(""));
    return x.out;
}
