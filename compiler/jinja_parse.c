// Tokens to a tree: Jinja2's grammar, its precedences and its odd corners (a test's argument without brackets, filters
// that
// bind tighter than a minus). In: tokens. Out: nodes. Each parse_ function says which fields of Node it fills. See
// jinja.h.
#include "jinja.h"

#include <string.h>

typedef struct {
    Jinja *t;
    Token *tok; // the next one
    int depth;
    int loops; // around here, within the same function
    bool in_loop_capture;
} Parser;

enum { max_depth = 150 };

const String *jinja_string(Arena *a, Str s) {
    String *p = NEW(a, String);
    *p = (String){str_dup(a, s).p, s.n, utf8_count(s.p, s.n)};
    return p;
}

#define FAIL(p, token_, ...)                                                                                           \
    do {                                                                                                               \
        Loc loc_ = (p)->t->loc;                                                                                        \
        loc_.pos = (token_)->pos;                                                                                      \
        fail_at(loc_, __VA_ARGS__);                                                                                    \
    } while (0)

static bool is_op(const Token *t, const char *op) {
    return t->kind == T_OP && str_is(t->text, op);
}

static bool is_name(const Token *t, const char *name) {
    return t->kind == T_NAME && str_is(t->text, name);
}

static bool skip_op(Parser *p, const char *op) {
    if (!is_op(p->tok, op)) return false;
    p->tok++;
    return true;
}

static bool skip_name(Parser *p, const char *name) {
    if (!is_name(p->tok, name)) return false;
    p->tok++;
    return true;
}

static const char *shown(Parser *p, const Token *t) {
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

static void expect_op(Parser *p, const char *op) {
    if (!skip_op(p, op)) FAIL(p, p->tok, "expected '%s', found %s", op, shown(p, p->tok));
}

static Token *expect_name(Parser *p, const char *what) {
    if (p->tok->kind != T_NAME) FAIL(p, p->tok, "expected %s, found %s", what, shown(p, p->tok));
    return p->tok++;
}

static void expect_block_end(Parser *p) {
    if (p->tok->kind != T_BLOCK_END) FAIL(p, p->tok, "expected the end of the tag, '%%}', found %s", shown(p, p->tok));
    p->tok++;
}

static Node *node(Parser *p, NodeKind kind, const Token *at) {
    Node *n = NEW(p->t->arena, Node);
    n->kind = kind;
    n->pos = at->pos;
    n->line = at->line;
    return n;
}

static void append(Parser *p, NodeList *list, Node *n) {
    *PUSH(p->t->arena, list->v, list->n, list->cap) = n;
}

static const String *name_of(Parser *p, const Token *t) {
    return jinja_string(p->t->arena, t->text);
}

static void deeper(Parser *p) {
    if (++p->depth > max_depth)
        FAIL(p, p->tok, "this lies more than %d levels deep, which is more than ggcc reads", max_depth);
}

static Node *expression(Parser *p);
static Node *or_expression(Parser *p);
static Node *unary(Parser *p, bool with_filter);
static Node *tuple(Parser *p, bool simple, bool conditional, const char *end_name, bool brackets, bool with_namespace);

static Node *constant(Parser *p, const Token *at, Value v) {
    Node *n = node(p, J_CONST, at);
    n->value = v;
    return n;
}

// ---- primaries ----
static Node *list_display(Parser *p) { // LIST: list
    Node *n = node(p, J_LIST, p->tok++);
    while (!is_op(p->tok, "]")) {
        if (n->list.n) expect_op(p, ",");
        if (is_op(p->tok, "]")) break;
        append(p, &n->list, expression(p));
    }
    expect_op(p, "]");
    return n;
}

static Node *dict_display(Parser *p) { // DICT: list keys, other values
    Node *n = node(p, J_DICT, p->tok++);
    while (!is_op(p->tok, "}")) {
        if (n->list.n) expect_op(p, ",");
        if (is_op(p->tok, "}")) break;
        append(p, &n->list, expression(p));
        expect_op(p, ":");
        append(p, &n->other, expression(p));
    }
    expect_op(p, "}");
    return n;
}

static Node *name_or_constant(Parser *p, bool with_namespace) { // NAME: name; NSREF: name, attr
    const Token *at = p->tok++;
    if (is_name(at, "true") || is_name(at, "True")) return constant(p, at, TRUE_VALUE);
    if (is_name(at, "false") || is_name(at, "False")) return constant(p, at, FALSE_VALUE);
    if (is_name(at, "none") || is_name(at, "None")) return constant(p, at, NONE);
    Node *n = node(p, J_NAME, at);
    n->name = name_of(p, at);
    if (with_namespace && is_op(p->tok, ".")) {
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
    if (is_op(at, "[")) return list_display(p);
    if (is_op(at, "{")) return dict_display(p);
    if (!skip_op(p, "(")) FAIL(p, at, "expected an expression, found %s", shown(p, at));
    Node *n = tuple(p, false, true, NULL, true, false);
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
    while (!is_op(p->tok, ")")) {
        if (comma) {
            expect_op(p, ",");
            if (is_op(p->tok, ")")) break;
        }
        comma = true;
        bool named = p->tok->kind == T_NAME && is_op(p->tok + 1, "=");
        bool bad = is_op(p->tok, "*") ? n->b || n->c
            : is_op(p->tok, "**")     ? n->c != NULL
            : named                   ? n->c != NULL
                                      : n->b || n->c || n->other.n;
        if (bad)
            FAIL(p, open,
                "invalid syntax for function call expression: *args and **kwargs come once and last, positions before "
                "names");
        if (skip_op(p, "*")) n->b = expression(p);
        else if (skip_op(p, "**")) n->c = expression(p);
        else if (named) {
            const String *name = name_of(p, p->tok);
            for (int i = 0; i < n_names; i++) {
                if (n->names[i]->n == name->n && !memcmp(n->names[i]->p, name->p, name->n))
                    FAIL(p, p->tok, "the argument '%s' is given twice", name->p);
            }
            *PUSH(a, n->names, n_names, cap) = name;
            p->tok += 2;
            append(p, &n->other, expression(p));
        } else {
            append(p, &n->list, expression(p));
        }
    }
    expect_op(p, ")");
}

static Node *call_of(Parser *p, Node *f) { // CALL: a, arguments
    Node *n = node(p, J_CALL, p->tok);
    n->a = f;
    arguments(p, n);
    return n;
}

static Node *subscribed(Parser *p) { // an expression, or SLICE: a, b, c, each NULL where absent
    const Token *at = p->tok;
    Node *first = NULL;
    if (!is_op(at, ":")) {
        first = expression(p);
        if (!is_op(p->tok, ":")) return first;
    }
    Node *n = node(p, J_SLICE, at);
    n->a = first;
    expect_op(p, ":");
    if (!is_op(p->tok, ":") && !is_op(p->tok, "]") && !is_op(p->tok, ",")) n->b = expression(p);
    if (skip_op(p, ":") && !is_op(p->tok, "]") && !is_op(p->tok, ",")) n->c = expression(p);
    return n;
}

static Node *subscript(Parser *p, Node *of) { // GETATTR: a, name; GETITEM: a, b
    const Token *at = p->tok++;
    Node *n = node(p, J_GETITEM, at);
    n->a = of;
    if (is_op(at, ".")) {
        const Token *what = p->tok++;
        if (what->kind == T_NAME) {
            n->kind = J_GETATTR;
            n->name = name_of(p, what);
        } else if (what->kind == T_INT) {
            n->b = constant(p, what, what->value);
        } else {
            FAIL(p, what, "expected a name or a number after '.', found %s", shown(p, what));
        }
        return n;
    }
    Node *all = node(p, J_TUPLE, at);
    while (!is_op(p->tok, "]")) {
        if (all->list.n) expect_op(p, ",");
        append(p, &all->list, subscribed(p));
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
        if (is_op(p->tok, ".") || is_op(p->tok, "[")) n = subscript(p, n);
        else if (is_op(p->tok, "(")) n = call_of(p, n);
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

static Node *filter_chain(Parser *p, Node *n, bool begun) { // FILTER: a (NULL: a block's text), name, arguments
    while (begun || skip_op(p, "|")) {
        Node *f = node(p, J_FILTER, p->tok);
        f->a = n;
        f->name = dotted(p, "the name of a filter");
        if (is_op(p->tok, "(")) arguments(p, f);
        n = f;
        begun = false;
    }
    return n;
}

static Node *test_of(Parser *p, Node *of) { // TEST: a, name, arguments; under a NOT for `is not`
    const Token *at = p->tok++;
    bool negated = skip_name(p, "not");
    Node *n = node(p, J_TEST, at);
    n->a = of;
    n->pos = p->tok->pos;
    n->name = dotted(p, "the name of a test");
    const Token *t = p->tok;
    bool operand = t->kind == T_NAME || t->kind == T_STRING || t->kind == T_INT || t->kind == T_REAL || is_op(t, "[") ||
        is_op(t, "{");
    if (is_op(t, "(")) arguments(p, n);
    else if (operand && !is_name(t, "else") && !is_name(t, "or") && !is_name(t, "and")) {
        if (is_name(t, "is")) FAIL(p, t, "tests cannot be chained with 'is'");
        append(p, &n->list, postfix(p, primary(p, false)));
    }
    if (!negated) return n;
    Node *not = node(p, J_NOT, at);
    not ->a = n;
    return not ;
}

// ---- operators, loosest last ----
static Node *binary(Parser *p, NodeKind kind, int op, const Token *at, Node *a, Node *b) { // a, b, op
    Node *n = node(p, kind, at);
    n->op = op;
    n->a = a;
    n->b = b;
    return n;
}

static Node *unary(Parser *p, bool with_filter) {
    const Token *at = p->tok;
    Node *n;
    deeper(p);
    if (skip_op(p, "-")) n = binary(p, J_UNARY, OP_NEG, at, unary(p, false), NULL);
    else if (skip_op(p, "+")) n = binary(p, J_UNARY, OP_POS, at, unary(p, false), NULL);
    else n = primary(p, false);
    n = postfix(p, n);
    while (with_filter) {
        if (is_op(p->tok, "|")) n = filter_chain(p, n, false);
        else if (is_name(p->tok, "is")) n = test_of(p, n);
        else if (is_op(p->tok, "(")) n = call_of(p, n);
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
    if (!is_op(p->tok, "~")) return n;
    Node *all = node(p, J_CONCAT, at);
    append(p, &all->list, n);
    while (skip_op(p, "~")) append(p, &all->list, mul_expression(p));
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
    if (is_name(p->tok, "not") && is_name(p->tok + 1, "in")) {
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
            n = node(p, J_COMPARE, at);
            n->a = first;
        }
        *PUSH(p->t->arena, n->ops, n_ops, cap) = op;
        append(p, &n->list, add_expression(p));
    }
    return n ? n : first;
}

static Node *not_expression(Parser *p) {
    const Token *at = p->tok;
    if (!skip_name(p, "not")) return compare_expression(p);
    deeper(p);
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

static Node *expression(Parser *p) { // COND: a if b else c
    const Token *at = p->tok;
    deeper(p);
    Node *n = or_expression(p);
    while (skip_name(p, "if")) {
        n = binary(p, J_COND, 0, at, n, or_expression(p));
        n->c = skip_name(p, "else") ? expression(p) : NULL;
    }
    p->depth--;
    return n;
}

static bool tuple_end(Parser *p, const char *end_name) {
    return p->tok->kind == T_VAR_END || p->tok->kind == T_BLOCK_END || is_op(p->tok, ")") ||
        (end_name && is_name(p->tok, end_name));
}

// `a, b`: TUPLE: list; one expression without a comma is itself.
static Node *tuple(Parser *p, bool simple, bool conditional, const char *end_name, bool brackets, bool with_namespace) {
    Node *all = node(p, J_TUPLE, p->tok);
    bool comma = false;
    for (;;) {
        if (all->list.n) expect_op(p, ",");
        if (tuple_end(p, end_name)) break;
        append(p, &all->list, simple ? primary(p, with_namespace) : conditional ? expression(p) : or_expression(p));
        if (!is_op(p->tok, ",")) break;
        comma = true;
    }
    if (comma) return all;
    if (all->list.n) return all->list.v[0];
    if (!brackets) FAIL(p, p->tok, "expected an expression, found %s", shown(p, p->tok));
    return all;
}

// ---- statements ----
static NodeList statements(Parser *p, const char *const *ends);

// The statements up to one of the tags named; that tag's name is the next token then.
static NodeList body(Parser *p, const char *const *ends, const Token *begin) {
    skip_op(p, ":");
    expect_block_end(p);
    NodeList list = statements(p, ends);
    if (p->tok->kind == T_EOF)
        FAIL(p, begin, "this '%.*s' does not end: '{%% %s %%}' expected", FMT(begin->text), ends[0]);
    return list;
}

#define ENDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void set_store(Parser *p, Node *n, NameContext ctx) {
    if (n->kind == J_NSREF) return;
    if (n->kind == J_NAME) {
        n->ctx = ctx;
        if (str_is((Str){n->name->p, n->name->n}, "None") && ctx == CTX_LOAD) return;
        return;
    }
    if (n->kind != J_TUPLE) {
        Loc loc = p->t->loc;
        loc.pos = n->pos;
        fail_at(
            loc, "this cannot be assigned to: a name, names in a tuple, or an attribute of a namespace is expected");
    }
    for (int i = 0; i < n->list.n; i++) set_store(p, n->list.v[i], ctx);
}

static Node *target(Parser *p, const char *end_name, bool with_namespace, NameContext ctx) {
    Node *n = tuple(p, true, false, end_name, false, with_namespace);
    set_store(p, n, ctx);
    return n;
}

static Node *for_statement(Parser *p) { // FOR: a target, b iterable, c condition, body, other
    const Token *at = p->tok++;
    Node *n = node(p, J_FOR, at);
    n->a = target(p, "in", false, CTX_STORE);
    if (!skip_name(p, "in")) FAIL(p, p->tok, "expected 'in', found %s", shown(p, p->tok));
    n->b = tuple(p, false, false, "recursive", false, false);
    if (skip_name(p, "if")) n->c = expression(p);
    n->recursive = skip_name(p, "recursive");
    bool captured_before = p->in_loop_capture;
    p->in_loop_capture = false;
    p->loops++;
    n->body = body(p, ENDS("endfor", "else"), at);
    p->loops--;
    p->in_loop_capture = captured_before;
    if (!skip_name(p, "else")) {
        p->tok++;
        return n;
    }
    int loops = p->loops;
    if (n->recursive) p->loops = 0; // its else part is in a function of its own
    n->other = body(p, ENDS("endfor"), at);
    p->loops = loops;
    p->tok++;
    return n;
}

static Node *if_statement(Parser *p) { // IF: a condition, body, elifs (IFs too), other
    Node *first = NULL, *n;
    const Token *at = p->tok++, *opened = at;
    for (;;) {
        n = node(p, J_IF, at);
        n->a = tuple(p, false, false, NULL, false, false);
        n->body = body(p, ENDS("endif", "elif", "else"), opened);
        if (first) append(p, &first->elifs, n);
        else first = n;
        at = p->tok++;
        if (is_name(at, "elif")) continue;
        if (is_name(at, "else")) {
            first->other = body(p, ENDS("endif"), opened);
            p->tok++;
        }
        return first;
    }
}

static Node *set_statement(Parser *p) { // SET: a target, b value; SET_BLOCK: a target, b filters or NULL, body
    const Token *at = p->tok++;
    Node *n = node(p, J_SET, at);
    n->a = target(p, NULL, true, CTX_STORE);
    if (skip_op(p, "=")) {
        n->b = tuple(p, false, true, NULL, false, false);
        return n;
    }
    n->kind = J_SET_BLOCK;
    n->b = filter_chain(p, NULL, false);
    bool before = p->in_loop_capture;
    p->in_loop_capture = true;
    n->body = body(p, ENDS("endset"), at);
    p->in_loop_capture = before;
    p->tok++;
    return n;
}

static void signature(Parser *p, Node *n) { // list parameters, other default values of the last ones
    expect_op(p, "(");
    while (!is_op(p->tok, ")")) {
        if (n->list.n) expect_op(p, ",");
        const Token *at = expect_name(p, "the name of a parameter");
        Node *param = node(p, J_NAME, at);
        param->name = name_of(p, at);
        param->ctx = CTX_PARAM;
        for (int i = 0; i < n->list.n; i++) {
            const String *other = n->list.v[i]->name;
            if (other->n == param->name->n && !memcmp(other->p, param->name->p, other->n))
                FAIL(p, at, "the parameter '%s' is declared twice", other->p);
        }
        if (skip_op(p, "=")) append(p, &n->other, expression(p));
        else if (n->other.n) FAIL(p, at, "non-default argument follows default argument");
        append(p, &n->list, param);
    }
    expect_op(p, ")");
}

static NodeList function_body(Parser *p, const char *end, const Token *at) {
    int loops = p->loops;
    bool before = p->in_loop_capture;
    p->loops = 0;
    p->in_loop_capture = false;
    NodeList list = body(p, (const char *const[]){end, NULL}, at);
    p->tok++;
    p->loops = loops;
    p->in_loop_capture = before;
    return list;
}

static Node *macro_statement(Parser *p) { // MACRO: name, list parameters, other defaults, body
    const Token *at = p->tok++;
    Node *n = node(p, J_MACRO, at);
    n->name = name_of(p, expect_name(p, "the macro's name"));
    signature(p, n);
    n->body = function_body(p, "endmacro", at);
    return n;
}

static Node *call_block(Parser *p) { // CALL_BLOCK: a the CALL, list parameters, other defaults, body
    const Token *at = p->tok++;
    Node *n = node(p, J_CALL_BLOCK, at);
    if (is_op(p->tok, "(")) signature(p, n);
    n->a = expression(p);
    if (n->a->kind != J_CALL) FAIL(p, at, "a call block wants a call: '{%% call name(...) %%}'");
    n->body = function_body(p, "endcall", at);
    return n;
}

static Node *generation(Parser *p) { // as a call block whose callee returns what the body writes
    const Token *at = p->tok++;
    Node *n = node(p, J_CALL_BLOCK, at);
    n->body = function_body(p, "endgeneration", at);
    return n;
}

static Node *filter_block(Parser *p) { // FILTER_BLOCK: b filters, body
    const Token *at = p->tok++;
    Node *n = node(p, J_FILTER_BLOCK, at);
    n->b = filter_chain(p, NULL, true);
    bool before = p->in_loop_capture;
    p->in_loop_capture = true;
    n->body = body(p, ENDS("endfilter"), at);
    p->in_loop_capture = before;
    p->tok++;
    return n;
}

static Node *with_statement(Parser *p) { // WITH: list targets, other values, body
    const Token *at = p->tok++;
    Node *n = node(p, J_WITH, at);
    while (p->tok->kind != T_BLOCK_END) {
        if (n->list.n) expect_op(p, ",");
        append(p, &n->list, target(p, NULL, false, CTX_PARAM));
        expect_op(p, "=");
        append(p, &n->other, expression(p));
    }
    n->body = body(p, ENDS("endwith"), at);
    p->tok++;
    return n;
}

static Node *print_statement(Parser *p) { // OUTPUT: list
    Node *n = node(p, J_OUTPUT, p->tok++);
    while (p->tok->kind != T_BLOCK_END) {
        if (n->list.n) expect_op(p, ",");
        append(p, &n->list, expression(p));
    }
    return n;
}

static Node *jump(Parser *p, NodeKind kind) { // BREAK, CONTINUE
    const Token *at = p->tok++;
    if (!p->loops) FAIL(p, at, "'%.*s' outside of a loop", FMT(at->text));
    Node *n = node(p, kind, at);
    n->in_capture = p->in_loop_capture;
    return n;
}

static Node *statement(Parser *p) {
    static const struct {
        const char *name;
        Node *(*parse)(Parser *p);
    } tags[] = {{"for", for_statement}, {"if", if_statement}, {"set", set_statement}, {"macro", macro_statement},
        {"call", call_block}, {"filter", filter_block}, {"with", with_statement}, {"print", print_statement},
        {"generation", generation}};
    static const char *const outside[] = {"block", "extends", "include", "import", "from", "autoescape"};
    const Token *at = p->tok;
    if (at->kind != T_NAME) FAIL(p, at, "expected the name of a tag, found %s", shown(p, at));
    for (int i = 0; i < COUNT(tags); i++) {
        if (is_name(at, tags[i].name)) return tags[i].parse(p);
    }
    if (is_name(at, "break")) return jump(p, J_BREAK);
    if (is_name(at, "continue")) return jump(p, J_CONTINUE);
    for (int i = 0; i < COUNT(outside); i++) {
        if (is_name(at, outside[i]))
            FAIL(p, at, "the tag '%s' is outside what ggcc implements; chat templates are one file without escaping",
                outside[i]);
    }
    if (str_starts(at->text, "end") || is_name(at, "else") || is_name(at, "elif")) {
        FAIL(p, at, "unexpected '%.*s': the tag that is open here ends otherwise", FMT(at->text));
    }
    FAIL(p, at, "unknown tag %s", str_show(p->t->arena, at->text));
}

static bool ends_here(const Token *t, const char *const *ends) {
    for (; ends && *ends; ends++) {
        if (is_name(t, *ends)) return true;
    }
    return false;
}

static NodeList statements(Parser *p, const char *const *ends) { // TEXT: value; OUTPUT: list
    NodeList list = {0};
    deeper(p);
    while (p->tok->kind != T_EOF) {
        const Token *at = p->tok++;
        if (at->kind == T_DATA) {
            Node *n = node(p, J_TEXT, at);
            n->value = str_value(jinja_string(p->t->arena, at->text));
            append(p, &list, n);
        } else if (at->kind == T_VAR_BEGIN) {
            Node *n = node(p, J_OUTPUT, at);
            append(p, &n->list, tuple(p, false, true, NULL, false, false));
            if (p->tok->kind != T_VAR_END)
                FAIL(p, p->tok, "expected the end of the expression, '}}', found %s", shown(p, p->tok));
            p->tok++;
            append(p, &list, n);
        } else {
            if (ends_here(p->tok, ends)) break;
            Node *n = statement(p);
            expect_block_end(p);
            append(p, &list, n);
        }
    }
    p->depth--;
    return list;
}

void jinja_parse(Jinja *t, Tokens tokens) {
    Parser p = {.t = t, .tok = tokens.v};
    t->body = statements(&p, NULL);
    if (p.tok->kind != T_EOF) FAIL(&p, p.tok, "unexpected %s", shown(&p, p.tok));
}
