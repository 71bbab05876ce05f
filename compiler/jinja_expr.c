// Expressions of a template: Jinja2's precedences and odd corners (a test's argument without brackets, filters that
// bind tighter than a minus). In: tokens. Out: nodes. Each function says which fields of Node it fills. See
// jinja_parse.h.
#include "jinja_parse.h"

#include <string.h>

enum { max_depth = 150 };

const String *jinja_string(Arena *a, Str s) {
    String *p = NEW(a, String);
    *p = (String){str_dup(a, s).p, s.n, utf8_count(s.p, s.n)};
    return p;
}

bool token_is_op(const Token *t, const char *op) {
    return t->kind == T_OP && str_is(t->text, op);
}

bool token_is_name(const Token *t, const char *name) {
    return t->kind == T_NAME && str_is(t->text, name);
}

bool skip_op(Parser *p, const char *op) {
    if (!token_is_op(p->tok, op)) return false;
    p->tok++;
    return true;
}

bool skip_name(Parser *p, const char *name) {
    if (!token_is_name(p->tok, name)) return false;
    p->tok++;
    return true;
}

const char *token_shown(Parser *p, const Token *t) {
    switch (t->kind) {
    case T_EOF: return "the end of the template";
    case T_DATA: return "text";
    case T_VAR_BEGIN: return "'{{'";
    case T_VAR_END: return "the end of the expression";
    case T_BLOCK_BEGIN: return "'{%'";
    case T_BLOCK_END: return "the end of the tag";
    case T_STRING: return "a string";
    default: return str_show(p->t->arena, t->text);
    }
}

void expect_op(Parser *p, const char *op) {
    if (!skip_op(p, op)) FAIL(p, p->tok, "expected '%s', found %s", op, token_shown(p, p->tok));
}

Token *expect_name(Parser *p, const char *what) {
    if (p->tok->kind != T_NAME) FAIL(p, p->tok, "expected %s, found %s", what, token_shown(p, p->tok));
    return p->tok++;
}

Node *new_node(Parser *p, NodeKind kind, const Token *at) {
    Node *n = NEW(p->t->arena, Node);
    n->kind = kind;
    n->pos = at->pos;
    n->line = at->line;
    return n;
}

void append_node(Parser *p, NodeList *list, Node *n) {
    *PUSH(p->t->arena, list->v, list->n, list->cap) = n;
}

const String *name_of(Parser *p, const Token *t) {
    return jinja_string(p->t->arena, t->text);
}

void parse_deeper(Parser *p) {
    if (++p->depth > max_depth)
        FAIL(p, p->tok, "this lies more than %d levels deep, which is more than ggcc reads", max_depth);
}

static Node *constant(Parser *p, const Token *at, Value v) {
    Node *n = new_node(p, J_CONST, at);
    n->value = v;
    return n;
}

// ---- primaries ----
static Node *list_display(Parser *p) { // LIST: list
    Node *n = new_node(p, J_LIST, p->tok++);
    while (!token_is_op(p->tok, "]")) {
        if (n->list.n) expect_op(p, ",");
        if (token_is_op(p->tok, "]")) break;
        append_node(p, &n->list, parse_expression(p));
    }
    expect_op(p, "]");
    return n;
}

static Node *dict_display(Parser *p) { // DICT: list keys, other values
    Node *n = new_node(p, J_DICT, p->tok++);
    while (!token_is_op(p->tok, "}")) {
        if (n->list.n) expect_op(p, ",");
        if (token_is_op(p->tok, "}")) break;
        append_node(p, &n->list, parse_expression(p));
        expect_op(p, ":");
        append_node(p, &n->other, parse_expression(p));
    }
    expect_op(p, "}");
    return n;
}

static Node *name_or_constant(Parser *p, bool with_namespace) { // NAME: name; NSREF: name, attr
    const Token *at = p->tok++;
    if (token_is_name(at, "true") || token_is_name(at, "True")) return constant(p, at, TRUE_VALUE);
    if (token_is_name(at, "false") || token_is_name(at, "False")) return constant(p, at, FALSE_VALUE);
    if (token_is_name(at, "none") || token_is_name(at, "None")) return constant(p, at, NONE);
    Node *n = new_node(p, J_NAME, at);
    n->name = name_of(p, at);
    if (with_namespace && token_is_op(p->tok, ".")) {
        p->tok++;
        n->kind = J_NSREF;
        n->attr = name_of(p, expect_name(p, "the name of an attribute"));
    }
    return n;
}

static Node *primary(Parser *p, bool with_namespace) {
    const Token *at = p->tok;
    switch (at->kind) {
    case T_NAME: return name_or_constant(p, with_namespace);
    case T_STRING: {
        Out all = out_new(p->t->arena);
        for (; p->tok->kind == T_STRING; p->tok++) out_str(&all, p->tok->text);
        return constant(p, at, str_value(jinja_string(p->t->arena, out_text(&all))));
    }
    case T_INT:
    case T_REAL: p->tok++; return constant(p, at, at->value);
    default: break;
    }
    if (token_is_op(at, "[")) return list_display(p);
    if (token_is_op(at, "{")) return dict_display(p);
    if (!skip_op(p, "(")) FAIL(p, at, "expected an expression, found %s", token_shown(p, at));
    Node *n = parse_tuple(p, false, true, NULL, true, false);
    expect_op(p, ")");
    return n;
}

// ---- calls, subscripts, filters, tests ----
// Arguments by position to n->list, by name to n->names and n->other, *args to n->b, **kwargs to n->c.
static void arguments(Parser *p, Node *n) {
    const Token *open = p->tok;
    Arena *a = p->t->arena;
    int cap = 0, n_names = 0;
    bool comma = false;
    expect_op(p, "(");
    while (!token_is_op(p->tok, ")")) {
        if (comma) {
            expect_op(p, ",");
            if (token_is_op(p->tok, ")")) break;
        }
        comma = true;
        bool named = p->tok->kind == T_NAME && token_is_op(p->tok + 1, "=");
        bool bad = token_is_op(p->tok, "*") ? n->b || n->c
            : token_is_op(p->tok, "**")     ? n->c != NULL
            : named                   ? n->c != NULL
                                      : n->b || n->c || n->other.n;
        if (bad)
            FAIL(p, open,
                "invalid syntax for function call expression: *args and **kwargs come once and last, positions before "
                "names");
        if (skip_op(p, "*")) n->b = parse_expression(p);
        else if (skip_op(p, "**")) n->c = parse_expression(p);
        else if (named) {
            const String *name = name_of(p, p->tok);
            for (int i = 0; i < n_names; i++) {
                if (n->names[i]->n == name->n && !memcmp(n->names[i]->p, name->p, name->n))
                    FAIL(p, p->tok, "the argument '%s' is given twice", name->p);
            }
            *PUSH(a, n->names, n_names, cap) = name;
            p->tok += 2;
            append_node(p, &n->other, parse_expression(p));
        } else {
            append_node(p, &n->list, parse_expression(p));
        }
    }
    expect_op(p, ")");
}

static Node *call_of(Parser *p, Node *f) { // CALL: a, arguments
    Node *n = new_node(p, J_CALL, p->tok);
    n->a = f;
    arguments(p, n);
    return n;
}

static Node *subscribed(Parser *p) { // an expression, or SLICE: a, b, c, each NULL where absent
    const Token *at = p->tok;
    Node *first = NULL;
    if (!token_is_op(at, ":")) {
        first = parse_expression(p);
        if (!token_is_op(p->tok, ":")) return first;
    }
    Node *n = new_node(p, J_SLICE, at);
    n->a = first;
    expect_op(p, ":");
    if (!token_is_op(p->tok, ":") && !token_is_op(p->tok, "]") && !token_is_op(p->tok, ",")) n->b = parse_expression(p);
    if (skip_op(p, ":") && !token_is_op(p->tok, "]") && !token_is_op(p->tok, ",")) n->c = parse_expression(p);
    return n;
}

static Node *subscript(Parser *p, Node *of) { // GETATTR: a, name; GETITEM: a, b
    const Token *at = p->tok++;
    Node *n = new_node(p, J_GETITEM, at);
    n->a = of;
    if (token_is_op(at, ".")) {
        const Token *what = p->tok++;
        if (what->kind == T_NAME) {
            n->kind = J_GETATTR;
            n->name = name_of(p, what);
        } else if (what->kind == T_INT) {
            n->b = constant(p, what, what->value);
        } else {
            FAIL(p, what, "expected a name or a number after '.', found %s", token_shown(p, what));
        }
        return n;
    }
    Node *all = new_node(p, J_TUPLE, at);
    while (!token_is_op(p->tok, "]")) {
        if (all->list.n) expect_op(p, ",");
        append_node(p, &all->list, subscribed(p));
    }
    expect_op(p, "]");
    n->b = all->list.n == 1 ? all->list.v[0] : all;
    for (int i = 0; all->list.n > 1 && i < all->list.n; i++) {
        if (all->list.v[i]->kind == J_SLICE)
            FAIL(p, at, "several slices in one subscript are outside what ggcc implements");
    }
    return n;
}

static Node *postfix(Parser *p, Node *n) {
    for (;;) {
        if (token_is_op(p->tok, ".") || token_is_op(p->tok, "[")) n = subscript(p, n);
        else if (token_is_op(p->tok, "(")) n = call_of(p, n);
        else return n;
    }
}

static const String *dotted(Parser *p, const char *what) {
    Str name = expect_name(p, what)->text;
    while (skip_op(p, ".")) {
        Str more = expect_name(p, what)->text;
        name = str_fmt(p->t->arena, "%.*s.%.*s", FMT(name), FMT(more));
    }
    return jinja_string(p->t->arena, name);
}

Node *parse_filters(Parser *p, Node *n, bool begun) { // FILTER: a (NULL: a block's text), name, arguments
    while (begun || skip_op(p, "|")) {
        Node *f = new_node(p, J_FILTER, p->tok);
        f->a = n;
        f->name = dotted(p, "the name of a filter");
        if (token_is_op(p->tok, "(")) arguments(p, f);
        n = f;
        begun = false;
    }
    return n;
}

static Node *test_of(Parser *p, Node *of) { // TEST: a, name, arguments; under a NOT for `is not`
    const Token *at = p->tok++;
    bool negated = skip_name(p, "not");
    Node *n = new_node(p, J_TEST, at);
    n->a = of;
    n->pos = p->tok->pos;
    n->name = dotted(p, "the name of a test");
    const Token *t = p->tok;
    bool operand = t->kind == T_NAME || t->kind == T_STRING || t->kind == T_INT || t->kind == T_REAL ||
        token_is_op(t, "[") || token_is_op(t, "{");
    if (token_is_op(t, "(")) arguments(p, n);
    else if (operand && !token_is_name(t, "else") && !token_is_name(t, "or") && !token_is_name(t, "and")) {
        if (token_is_name(t, "is")) FAIL(p, t, "tests cannot be chained with 'is'");
        append_node(p, &n->list, postfix(p, primary(p, false)));
    }
    if (!negated) return n;
    Node *negation = new_node(p, J_NOT, at);
    negation->a = n;
    return negation;
}

// ---- operators, loosest last ----
static Node *binary(Parser *p, NodeKind kind, int op, const Token *at, Node *a, Node *b) { // a, b, op
    Node *n = new_node(p, kind, at);
    n->op = op;
    n->a = a;
    n->b = b;
    return n;
}

static Node *unary(Parser *p, bool with_filter) {
    const Token *at = p->tok;
    Node *n;
    parse_deeper(p);
    if (skip_op(p, "-")) n = binary(p, J_UNARY, OP_NEG, at, unary(p, false), NULL);
    else if (skip_op(p, "+")) n = binary(p, J_UNARY, OP_POS, at, unary(p, false), NULL);
    else n = primary(p, false);
    n = postfix(p, n);
    while (with_filter) {
        if (token_is_op(p->tok, "|")) n = parse_filters(p, n, false);
        else if (token_is_name(p->tok, "is")) n = test_of(p, n);
        else if (token_is_op(p->tok, "(")) n = call_of(p, n);
        else break;
    }
    p->depth--;
    return n;
}

static Node *pow_expression(Parser *p) {
    const Token *at = p->tok;
    Node *n = unary(p, true);
    while (skip_op(p, "**")) n = binary(p, J_BINARY, OP_POW, at, n, unary(p, true));
    return n;
}

static Node *mul_expression(Parser *p) {
    static const char *const signs[] = {"*", "/", "//", "%"};
    static const Operator ops[] = {OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD};
    const Token *at = p->tok;
    Node *n = pow_expression(p);
    for (int i = 0; i < 4; i++) {
        if (!skip_op(p, signs[i])) continue;
        n = binary(p, J_BINARY, ops[i], at, n, pow_expression(p));
        i = -1;
    }
    return n;
}

static Node *concat_expression(Parser *p) { // CONCAT: list
    const Token *at = p->tok;
    Node *n = mul_expression(p);
    if (!token_is_op(p->tok, "~")) return n;
    Node *all = new_node(p, J_CONCAT, at);
    append_node(p, &all->list, n);
    while (skip_op(p, "~")) append_node(p, &all->list, mul_expression(p));
    return all;
}

static Node *add_expression(Parser *p) {
    const Token *at = p->tok;
    Node *n = concat_expression(p);
    for (;;) {
        if (skip_op(p, "+")) n = binary(p, J_BINARY, OP_ADD, at, n, concat_expression(p));
        else if (skip_op(p, "-")) n = binary(p, J_BINARY, OP_SUB, at, n, concat_expression(p));
        else return n;
    }
}

static int comparison(Parser *p) {
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    static const Comparison ops[] = {CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE};
    for (int i = 0; i < 6; i++) {
        if (skip_op(p, signs[i])) return (int) ops[i];
    }
    if (skip_name(p, "in")) return CMP_IN;
    if (token_is_name(p->tok, "not") && token_is_name(p->tok + 1, "in")) {
        p->tok += 2;
        return CMP_NOT_IN;
    }
    return -1;
}

static Node *compare_expression(Parser *p) { // COMPARE: a, list and ops
    const Token *at = p->tok;
    Node *first = add_expression(p), *n = NULL;
    int n_ops = 0, cap = 0;
    for (int op; (op = comparison(p)) >= 0;) {
        if (!n) {
            n = new_node(p, J_COMPARE, at);
            n->a = first;
        }
        *PUSH(p->t->arena, n->ops, n_ops, cap) = op;
        append_node(p, &n->list, add_expression(p));
    }
    return n ? n : first;
}

static Node *not_expression(Parser *p) {
    const Token *at = p->tok;
    if (!skip_name(p, "not")) return compare_expression(p);
    parse_deeper(p);
    Node *n = binary(p, J_NOT, 0, at, not_expression(p), NULL);
    p->depth--;
    return n;
}

static Node *and_expression(Parser *p) {
    const Token *at = p->tok;
    Node *n = not_expression(p);
    while (skip_name(p, "and")) n = binary(p, J_AND, 0, at, n, not_expression(p));
    return n;
}

static Node *or_expression(Parser *p) {
    const Token *at = p->tok;
    Node *n = and_expression(p);
    while (skip_name(p, "or")) n = binary(p, J_OR, 0, at, n, and_expression(p));
    return n;
}

Node *parse_expression(Parser *p) { // COND: a if b else c
    const Token *at = p->tok;
    parse_deeper(p);
    Node *n = or_expression(p);
    while (skip_name(p, "if")) {
        n = binary(p, J_COND, 0, at, n, or_expression(p));
        n->c = skip_name(p, "else") ? parse_expression(p) : NULL;
    }
    p->depth--;
    return n;
}

static bool tuple_end(Parser *p, const char *end_name) {
    return p->tok->kind == T_VAR_END || p->tok->kind == T_BLOCK_END || token_is_op(p->tok, ")") ||
        (end_name && token_is_name(p->tok, end_name));
}

// `a, b`: TUPLE: list; one expression without a comma is itself.
Node *parse_tuple(Parser *p, bool simple, bool conditional, const char *end_name, bool brackets, bool with_namespace) {
    Node *all = new_node(p, J_TUPLE, p->tok);
    bool comma = false;
    for (;;) {
        if (all->list.n) expect_op(p, ",");
        if (tuple_end(p, end_name)) break;
        append_node(p, &all->list,
            simple            ? primary(p, with_namespace)
                : conditional ? parse_expression(p)
                              : or_expression(p));
        if (!token_is_op(p->tok, ",")) break;
        comma = true;
    }
    if (comma) return all;
    if (all->list.n) return all->list.v[0];
    if (!brackets) FAIL(p, p->tok, "expected an expression, found %s", token_shown(p, p->tok));
    return all;
}
