// The words of a description. In: the text. Out: tokens and, by line, comments, since a default must be explained on
// its line. The one idea: whether a line goes on is settled here, so the parser sees an end of line only where a
// statement may end.
#include "spec.h"

#include <string.h>

enum { MAX_TEXT = 1 << 20, MAX_PARENS = 64 };

typedef struct {
    Arena *a;
    Source *s;
    uint32_t pos, line;
    int depth; // of ( and [: inside them a line never ends
} Lexer;

static bool is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char at(const Lexer *x, uint32_t pos) {
    return pos < x->s->text.n ? x->s->text.p[pos] : 0;
}

// A token after which the line must go on, or before which it still does. `!` and brackets open something new.
static bool joins(const Source *s, const Token *t, bool before) {
    static const char both[] = "+*/%&|?:=,<>.";
    if (t->kind == T_NAME) return t->len == 2 && memcmp(s->text.p + t->pos, "or", 2) == 0;
    if (t->kind == '-' || (t->kind >= T_ARROW && t->kind <= T_DOTS)) return true;
    if (t->kind == '?') return before; // "+ bias?" may end a line
    return t->kind > 32 && strchr(both, t->kind);
}

static Token *push(Lexer *x, int kind, uint32_t len) {
    Source *s = x->s;
    Token *t = PUSH(x->a, s->token, s->n_token, s->cap_token);
    *t = (Token){.kind = kind, .pos = x->pos, .len = len, .line = x->line};
    if (s->n_token > 1 && t[-1].kind == T_LINE && joins(s, t, true)) { // it goes on: forget the end of line
        t[-1] = *t;
        s->n_token--;
    }
    x->pos += len;
    return &s->token[s->n_token - 1];
}

static void comment(Lexer *x) {
    Source *s = x->s;
    uint32_t end = x->pos;
    while (end < s->text.n && s->text.p[end] != '\n') end++;
    uint32_t first = x->pos + 1, last = end;
    while (first < last && (s->text.p[first] == ' ' || s->text.p[first] == '#')) first++;
    while (last > first && (s->text.p[last - 1] == ' ' || s->text.p[last - 1] == '\r')) last--;
    *PUSH(x->a, s->comment, s->n_comment, s->cap_comment) = (Comment){x->line, {s->text.p + first, last - first}};
    x->pos = end;
}

// Digits, a fraction (but `0..1` is a range), an exponent.
static void number(Lexer *x) {
    uint32_t end = x->pos;
    while (is_digit(at(x, end))) end++;
    if (at(x, end) == '.' && is_digit(at(x, end + 1)))
        for (end++; is_digit(at(x, end));) end++;
    uint32_t e = end + 1;
    if (at(x, end) == 'e') {
        if (at(x, e) == '-' || at(x, e) == '+') e++;
        if (is_digit(at(x, e)))
            for (end = e; is_digit(at(x, end));) end++;
    }
    Loc here = loc_at(x->s, x->pos);
    char buf[40] = {0};
    if (end - x->pos >= sizeof buf)
        fail_at(here, "a number of %u digits; at most %zu are read", end - x->pos, sizeof buf - 1);
    if (is_alpha(at(x, end))) fail_at(loc_at(x->s, end), "a letter right after a number");
    memcpy(buf, x->s->text.p + x->pos, end - x->pos);
    double value = 0;
    if (sscanf(buf, "%lf", &value) != 1) fail_at(here, "'%s' is not a number", buf);
    push(x, T_NUM, end - x->pos)->num = value;
}

// Letters, digits and _, with dots inside; $name pastes a parameter, .# counts.
static void name(Lexer *x) {
    uint32_t end = x->pos;
    for (;;) {
        char c = at(x, end), next = at(x, end + 1);
        if (is_alpha(c) || is_digit(c)) end++;
        else if (c == '.' && (is_alpha(next) || next == '#')) end += next == '#' ? 2 : 1;
        else if (c == '$' && is_alpha(next)) end++;
        else break;
    }
    if (end - x->pos > 120)
        fail_at(loc_at(x->s, x->pos), "a name of %u characters; at most 120 are allowed", end - x->pos);
    push(x, T_NAME, end - x->pos);
}

static void string(Lexer *x) {
    uint32_t end = x->pos + 1;
    while (at(x, end) && at(x, end) != '"' && at(x, end) != '\n') end++;
    if (at(x, end) != '"') fail_at(loc_at(x->s, x->pos), "this text has no closing quote on its line");
    push(x, T_STR, end + 1 - x->pos);
}

static void punctuation(Lexer *x) {
    // clang-format off
    static const struct { char text[3]; int kind; } pairs[] = {
        {"->", T_ARROW}, {"==", T_EQ}, {"!=", T_NE}, {"<=", T_LE}, {">=", T_GE}, {"..", T_DOTS},
    };
    // clang-format on
    char c = at(x, x->pos), next = at(x, x->pos + 1);
    for (int i = 0; i < COUNT(pairs); i++)
        if (c == pairs[i].text[0] && next == pairs[i].text[1]) {
            push(x, pairs[i].kind, 2);
            return;
        }
    if (c < 33 || c > 126 || !strchr("+-*/%&|!?:;,=<>()[]{}.", c)) {
        if (c > 32 && c < 127) fail_at(loc_at(x->s, x->pos), "'%c' means nothing here", c);
        fail_at(loc_at(x->s, x->pos), "byte 0x%02x outside a comment; descriptions are plain ASCII there",
            (unsigned char) c);
    }
    if (c == '(' || c == '[') x->depth++;
    if ((c == ')' || c == ']') && x->depth > 0) x->depth--;
    if (x->depth > MAX_PARENS) fail_at(loc_at(x->s, x->pos), "brackets are nested deeper than %d", MAX_PARENS);
    push(x, c, 1);
}

static void end_of_line(Lexer *x) {
    Source *s = x->s;
    const Token *last = s->n_token ? &s->token[s->n_token - 1] : NULL;
    bool ends = last && last->kind != T_LINE && x->depth == 0 && !joins(s, last, false);
    if (ends) push(x, T_LINE, 1);
    else x->pos++;
    x->line++;
}

Source *spec_lex(Arena *a, const char *file, Str text) {
    Source *s = NEW(a, Source);
    *s = (Source){.file = file, .text = text};
    if (text.n > MAX_TEXT)
        fail("%s: %zu bytes are too many for a description; at most %d are read", file, text.n, MAX_TEXT);
    Lexer x = {.a = a, .s = s, .line = 1};
    while (x.pos < text.n) {
        char c = text.p[x.pos];
        if (c == '\n') end_of_line(&x);
        else if (c == ' ' || c == '\t' || c == '\r') x.pos++;
        else if (c == '#') comment(&x);
        else if (is_digit(c)) number(&x);
        else if (is_alpha(c) || (c == '$' && is_alpha(at(&x, x.pos + 1)))) name(&x);
        else if (c == '"') string(&x);
        else punctuation(&x);
    }
    push(&x, T_LINE, 0);
    push(&x, T_END, 0);
    return s;
}
