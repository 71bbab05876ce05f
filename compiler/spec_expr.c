// Expressions of a description, shapes included. In: tokens. Out: Expr trees. Precedence, from the loosest:
// or, ?:, |, &, comparison and `in`, as, + -, * / %, unary - and !, then calls, indices and parts.
#include "spec_parse.h"

#include <string.h>

// Trees are walked by recursion. Brackets are counted by `enter`; long chains, a + b + .. or x[0][0].., here.
enum { MAX_TREE = 200 };

static Expr *expr_new(Parser *p, ExprKind kind, uint32_t pos) {
    Expr *e = NEW(p->a, Expr);
    *e = (Expr){.kind = kind, .src = p->s, .pos = pos};
    return e;
}

static void add(Parser *p, Expr *e, Str label, Expr *arg) {
    int cap = e->cap;
    *PUSH(p->a, e->arg, e->n, e->cap) = arg;
    if (cap != e->cap) { // labels grow with arguments
        Str *label_list = NEWN(p->a, Str, e->cap);
        for (int i = 0; i < e->n - 1; i++) label_list[i] = e->label[i];
        e->label = label_list;
    }
    e->label[e->n - 1] = label;
    if (arg->deep >= e->deep) e->deep = arg->deep + 1;
    if (e->deep > MAX_TREE)
        fail_at(loc_at(p->s, p->t->pos), "an expression of more than %d operations one after the other", MAX_TREE);
}

static Expr *done(Parser *p, Expr *e) {
    e->end = end_of_last(p);
    return e;
}

static Expr *binary(Parser *p, int op, Expr *a, Expr *b) {
    Expr *e = expr_new(p, E_BINARY, a->pos);
    e->op = op;
    add(p, e, S(""), a);
    add(p, e, S(""), b);
    return done(p, e);
}

// {a: x, b: y} with labels, {x, y} without.
static Expr *braces(Parser *p) {
    uint32_t pos = p->t->pos;
    need(p, '{', "'{'");
    skip_lines(p);
    bool labels = is(p, T_NAME) && p->t[1].kind == ':';
    Expr *e = expr_new(p, labels ? E_RECORD : E_LIST, pos);
    do {
        skip_lines(p);
        Str label = S("");
        if (labels) {
            label = need_name(p, "the name of a part");
            for (int i = 0; i < e->n; i++)
                if (str_eq(e->label[i], label)) fail_at(loc_at(p->s, pos), "two parts are called '%.*s'", FMT(label));
            need(p, ':', "':' after the part's name");
        }
        add(p, e, label, parse_expr(p));
        skip_lines(p);
    } while (take(p, ','));
    need(p, '}', "',' or '}'");
    return done(p, e);
}

static Expr *brackets(Parser *p) {
    Expr *e = expr_new(p, E_LIST, p->t->pos);
    need(p, '[', "'['");
    do add(p, e, S(""), parse_expr(p));
    while (take(p, ','));
    need(p, ']', "',' or ']'");
    return done(p, e);
}

// match value {1: a, 2: b}
static Expr *match(Parser *p, uint32_t pos) {
    Expr *e = expr_new(p, E_MATCH, pos);
    add(p, e, S(""), parse_value(p));
    need(p, '{', "'{' and the cases");
    do {
        skip_lines(p);
        add(p, e, S(""), parse_value(p));
        need(p, ':', "':' after the case");
        add(p, e, S(""), parse_value(p));
        skip_lines(p);
    } while (take(p, ','));
    need(p, '}', "',' or '}'");
    return done(p, e);
}

static bool reserved(Str w) {
    static const char *const words[] = {
        "or", "as", "in", "if", "else", "for", "return", "run", "exact", "optional", "def", "layer", "model"};
    for (int i = 0; i < COUNT(words); i++)
        if (str_is(w, words[i])) return true;
    return false;
}

static Expr *primary(Parser *p) {
    const Token *t = p->t;
    if (is(p, '{')) return braces(p);
    if (is(p, '[')) return brackets(p);
    if (take(p, '(')) {
        bool in_type = p->in_type;
        p->in_type = false;
        Expr *e = parse_expr(p);
        p->in_type = in_type;
        need(p, ')', "')'");
        return e;
    }
    if (take(p, '?')) {
        Expr *e = expr_new(p, E_FRESH, t->pos);
        e->name = need_name(p, "the name of a size after '?'");
        *PUSH(p->a, p->declared, p->n_declared, p->cap_declared) = e->name;
        return done(p, e);
    }
    if (take_word(p, "match")) return match(p, t->pos);
    Expr *e = expr_new(p, E_NUM, t->pos);
    if (take(p, T_NUM)) e->num = t->num;
    else if (take(p, T_STR)) {
        e->kind = E_STR;
        e->name = (Str){p->s->text.p + t->pos + 1, t->len - 2};
    } else if (is(p, T_NAME) && !reserved(token_text(p, t))) {
        p->t++;
        e->kind = E_NAME;
        e->name = token_text(p, t);
    } else expected(p, "a value");
    return done(p, e);
}

static Expr *call(Parser *p, Expr *callee) {
    Expr *e = expr_new(p, E_CALL, callee->pos);
    add(p, e, S(""), callee);
    bool in_type = p->in_type, labelled = false;
    p->in_type = false;
    need(p, '(', "'('");
    while (!is(p, ')')) {
        Str label = S("");
        if (is(p, T_NAME) && p->t[1].kind == ':') {
            label = need_name(p, "a name");
            p->t++;
            labelled = true;
        } else if (labelled) expected(p, "'NAME:', as all arguments after a named one have");
        add(p, e, label, parse_expr(p));
        if (!take(p, ',')) break;
    }
    p->in_type = in_type;
    need(p, ')', "',' or ')'");
    return done(p, e);
}

static Expr *postfix(Parser *p) {
    Expr *e = primary(p);
    for (;;) {
        uint32_t pos = p->t->pos;
        if (is(p, '(') && (e->kind == E_NAME || e->kind == E_INDEX || e->kind == E_PART || e->kind == E_CALL))
            e = call(p, e);
        else if (is(p, '[') && e->kind != E_NUM && pos == e->end) { // T[i]; "a [b]" is no index
            p->t++;
            Expr *first = parse_expr(p), *i = expr_new(p, E_INDEX, e->pos);
            add(p, i, S(""), e);
            add(p, i, S(""), first);
            if (take(p, T_DOTS)) {
                i->kind = E_SLICE;
                add(p, i, S(""), parse_expr(p));
            }
            need(p, ']', "']'");
            e = done(p, i);
        } else if (take(p, '.')) {
            Str path = need_name(p, "the name of a part after '.'");
            while (path.n) { // r.q.n is two parts
                const char *dot = memchr(path.p, '.', path.n);
                size_t n = dot ? (size_t) (dot - path.p) : path.n;
                Expr *part = expr_new(p, E_PART, e->pos);
                part->name = (Str){path.p, n};
                add(p, part, S(""), e);
                e = done(p, part);
                path = dot ? (Str){dot + 1, path.n - n - 1} : S("");
            }
        } else return e;
        if (e->n > 250) fail_at(loc_at(p->s, pos), "more than 250 arguments");
    }
}

static Expr *unary(Parser *p) {
    uint32_t pos = p->t->pos;
    int op = p->t->kind;
    if (op != '-' && op != '!') return postfix(p);
    p->t++;
    enter(p);
    Expr *e = expr_new(p, E_UNARY, pos);
    e->op = op;
    add(p, e, S(""), unary(p));
    leave(p);
    return done(p, e);
}

static Expr *product(Parser *p) {
    Expr *e = unary(p);
    while (is(p, '*') || is(p, '/') || is(p, '%')) {
        int op = (p->t++)->kind;
        e = binary(p, op, e, unary(p));
    }
    return e;
}

static bool at_bias(const Parser *p) {
    return p->in_type && is(p, '+') && p->t[1].kind == T_NAME && str_is(token_text(p, p->t + 1), "bias");
}

static Expr *sum(Parser *p) {
    Expr *e = product(p);
    while ((is(p, '+') || is(p, '-')) && !at_bias(p)) {
        int op = (p->t++)->kind;
        e = binary(p, op, e, product(p));
    }
    return e;
}

static Expr *as(Parser *p) {
    Expr *e = sum(p);
    while (take_word(p, "as")) {
        Expr *as = expr_new(p, E_AS, e->pos);
        add(p, as, S(""), e);
        add(p, as, S(""), is(p, '[') ? brackets(p) : postfix(p));
        e = done(p, as);
    }
    return e;
}

static Expr *comparison(Parser *p) {
    Expr *e = as(p);
    int op = p->t->kind;
    if (op == '<' || op == '>' || (op >= T_EQ && op <= T_GE)) {
        p->t++;
        return binary(p, op, e, as(p));
    }
    if (take_word(p, "in")) {
        if (!is(p, '{')) expected(p, "'{' and the values after 'in'");
        return binary(p, T_NAME, e, braces(p));
    }
    return e;
}

static Expr * and (Parser * p) {
    Expr *e = comparison(p);
    while (take(p, '&')) e = binary(p, '&', e, comparison(p));
    return e;
}

static Expr *either(Parser *p) {
    Expr *e = and(p);
    while (take(p, '|')) e = binary(p, '|', e, and(p));
    return e;
}

Expr *parse_value(Parser *p) {
    enter(p);
    Expr *e = either(p);
    if (is(p, '?') && !p->in_type) {
        p->t++;
        Expr *cond = expr_new(p, E_COND, e->pos);
        add(p, cond, S(""), e);
        add(p, cond, S(""), parse_value(p));
        need(p, ':', "':' and the other value");
        add(p, cond, S(""), parse_value(p));
        e = done(p, cond);
    }
    leave(p);
    return e;
}

Expr *parse_expr(Parser *p) {
    enter(p);
    Expr *e = parse_value(p);
    if (is_word(p, "or")) {
        Expr *first = e;
        e = expr_new(p, E_OR, first->pos);
        add(p, e, S(""), first);
        uint32_t line = p->t->line;
        while (take_word(p, "or")) add(p, e, S(""), parse_value(p));
        e->comment = comment_on(p, line, p->t[-1].line);
        *PUSH(p->a, p->or_list, p->n_or, p->cap_or) = e;
        done(p, e);
    }
    leave(p);
    return e;
}

Expr *parse_axes(Parser *p) {
    Expr *e = expr_new(p, E_LIST, p->t->pos);
    p->in_type = true;
    do add(p, e, S(""), parse_value(p));
    while (take(p, ','));
    p->in_type = false;
    return done(p, e);
}

// name | {source, ..} | stack name
static Expr *one_source(Parser *p) {
    enter(p);
    Expr *e = expr_new(p, E_NAME, p->t->pos);
    if (take(p, '{')) {
        e->kind = E_LIST;
        do {
            skip_lines(p);
            add(p, e, S(""), one_source(p));
            skip_lines(p);
        } while (take(p, ','));
        need(p, '}', "',' or '}'");
    } else {
        if (take_word(p, "stack")) e->op = '#';
        bool turned = is_word(p, "turned") && p->t[1].kind == T_NAME;
        if (turned) p->t++;
        if (is(p, T_STR)) e->name = token_text(p, p->t++); // in quotes: the whole name
        else e->name = need_name(p, "the name of a tensor in the file");
        if (turned) e->name = str_fmt(p->a, "turned %.*s", FMT(e->name));
    }
    leave(p);
    return done(p, e);
}

Expr *parse_source(Parser *p) {
    Expr *e = expr_new(p, E_OR, p->t->pos);
    do add(p, e, S(""), one_source(p));
    while (take_word(p, "or"));
    return done(p, e);
}
