// Arithmetic on constants in an instance of a template: what `(K + 15) / 16` is once K is 576. In: C text. Out: C
// text with the same meaning and fewer numbers. It works on tokens, knows nothing of C beyond the rules below, and
// leaves the rest alone.
#include "emit.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Str text;    // the token
    Str space;   // what stands before it
    int64_t num; // >= 0: a plain decimal integer
} Token;

typedef struct {
    Arena *arena;
    Token *t;
    int n, cap;
} Tokens;

static size_t token_length(const char *p, const char *end) {
    const char *q = p + 1;
    if (is_c_word(*p)) {
        bool number = *p >= '0' && *p <= '9';
        while (q < end &&
            (is_c_word(*q) || (number && *q == '.') ||
                (number && (*q == '+' || *q == '-') && (q[-1] == 'e' || q[-1] == 'p'))))
            q++;
    } else if (*p == '"' || *p == '\'') {
        while (q < end && *q != *p) q += *q == '\\' && q + 1 < end ? 2 : 1;
        if (q < end) q++;
    } else if (end - p > 1) {
        bool twice = p[1] == *p && strchr("/+-&|=<>", *p), arrow = *p == '-' && p[1] == '>';
        if (twice || arrow || (p[1] == '=' && strchr("!<>+-*/%", *p))) q++;
        if (twice && *p == '/')
            while (q < end && *q != '\n') q++; // a comment is one token
    }
    return (size_t) (q - p);
}

static Tokens tokens_of(Arena *a, Str text) {
    Tokens k = {.arena = a};
    const char *p = text.p, *end = text.p + text.n;
    while (p < end) {
        const char *space = p;
        while (p < end && (*p == ' ' || *p == '\n')) p++;
        size_t n = p < end ? token_length(p, end) : 0;
        Token t = {{p, n}, {space, (size_t) (p - space)}, -1};
        if (n && n < 12 && strspn(p, "0123456789") >= n && (n == 1 || *p != '0'))
            t.num = strtoll(str_z(a, t.text), NULL, 10);
        *PUSH(a, k.t, k.n, k.cap) = t;
        p += n;
    }
    return k;
}

static bool is(const Tokens *k, int i, const char *text) {
    return i >= 0 && i < k->n && str_is(k->t[i].text, text);
}
static bool any(const Tokens *k, int i, const char *set) { // one-character tokens of a set
    return i >= 0 && i < k->n && k->t[i].text.n == 1 && strchr(set, k->t[i].text.p[0]);
}
static int64_t num(const Tokens *k, int i) {
    return i >= 0 && i < k->n ? k->t[i].num : -1;
}
static bool is_name(const Tokens *k, int i) {
    return i >= 0 && i < k->n && k->t[i].text.n && is_c_word(k->t[i].text.p[0]) && k->t[i].num < 0;
}

static void replace(Tokens *k, int from, int count, int64_t value) {
    k->t[from].num = value;
    k->t[from].text = str_fmt(k->arena, "%lld", (long long) value);
    memmove(&k->t[from + 1], &k->t[from + count], sizeof *k->t * (size_t) (k->n - from - count));
    k->n -= count - 1;
}

static void drop(Tokens *k, int from, int count) {
    memmove(&k->t[from], &k->t[from + count], sizeof *k->t * (size_t) (k->n - from - count));
    k->n -= count;
}

// Nothing to the left binds the number at i.
static bool starts(const Tokens *k, int i) {
    return any(k, i - 1, "(,=;[?:<>{") || is(k, i - 1, "&&") || is(k, i - 1, "||") || is(k, i - 1, "==") ||
        is(k, i - 1, "<=") || is(k, i - 1, ">=") || is(k, i - 1, "return");
}

static bool fold_binary(Tokens *k, int i) { // NUM op NUM
    int64_t a = num(k, i), b = num(k, i + 2);
    if (a < 0 || b < 0 || a > (1 << 30) || b > (1 << 30)) return false;
    bool product = any(k, i + 1, "*/%"), sum = any(k, i + 1, "+-");
    if (product && !(starts(k, i) || any(k, i - 1, "+-"))) return false;
    if (sum && (!starts(k, i) || any(k, i + 3, "*/%"))) return false;
    char op = k->t[i + 1].text.p[0];
    if ((!product && !sum) || (b == 0 && (op == '/' || op == '%')) || (op == '-' && b > a)) return false;
    replace(k, i, 3, op == '*' ? a * b : op == '/' ? a / b : op == '%' ? a % b : op == '+' ? a + b : a - b);
    return true;
}

static bool fold_one(Tokens *k, int i) { // X * 1, X / 1, + X % 1, (NUM)
    bool value = is_name(k, i - 1) || num(k, i - 1) >= 0 || any(k, i - 1, ")]");
    if (value && any(k, i, "*/") && num(k, i + 1) == 1 && !is(k, i - 1, "return")) {
        drop(k, i, 2);
        return true;
    }
    if (is(k, i, "+") && is_name(k, i + 1) && is(k, i + 2, "%") && num(k, i + 3) == 1 && !any(k, i + 4, "*/%")) {
        drop(k, i, 4);
        return true;
    }
    if (is(k, i, "(") && num(k, i + 1) >= 0 && is(k, i + 2, ")") && !is_name(k, i - 1) && !any(k, i - 1, ")]*")) {
        k->t[i + 1].space = k->t[i].space;
        drop(k, i + 2, 1);
        drop(k, i, 1);
        return true;
    }
    return false;
}

static bool fold_choice(Tokens *k, int i) { // = NUM < NUM ? NUM : NUM   and   = 0 && .. ? .. : rest
    if (!any(k, i - 1, "=,(")) return false;
    if (num(k, i) >= 0 && is(k, i + 1, "<") && num(k, i + 2) >= 0 && is(k, i + 3, "?") && num(k, i + 4) >= 0 &&
        is(k, i + 5, ":") && num(k, i + 6) >= 0 && any(k, i + 7, ",;)")) {
        replace(k, i, 7, num(k, i) < num(k, i + 2) ? num(k, i + 4) : num(k, i + 6));
        return true;
    }
    if (num(k, i) != 0 || !is(k, i + 1, "&&")) return false;
    int j = i + 2;
    while (j < k->n && !any(k, j, "?;(){}")) j++;
    if (!is(k, j, "?")) return false;
    while (j < k->n && !any(k, j, ":;(){}")) j++;
    if (!is(k, j, ":") || j + 1 >= k->n) return false;
    k->t[j + 1].space = k->t[i].space;
    drop(k, i, j + 1 - i);
    return true;
}

Str fold_constants(Arena *a, Str text) {
    Tokens k = tokens_of(a, text);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < k.n; i++) // where a number or one of these is
            while (i < k.n && (k.t[i].num >= 0 || any(&k, i, "*/+(")) &&
                (fold_binary(&k, i) || fold_one(&k, i) || fold_choice(&k, i)))
                changed = true;
    }
    Out o = out_new(a);
    for (int i = 0; i < k.n; i++) out_str(&o, k.t[i].space), out_str(&o, k.t[i].text);
    return out_text(&o);
}
