// Tokens to a tree: the statements of a template, around the expressions of jinja_expr.c. In: tokens. Out: nodes. Each
// function says which fields of Node it fills. See jinja.h.
#include "jinja_parse.h"

#include <string.h>

static void expect_block_end(Parser *p) {
    if (p->tok->kind != T_BLOCK_END)
        FAIL(p, p->tok, "expected the end of the tag, '%%}', found %s", token_shown(p, p->tok));
    p->tok++;
}

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
    Node *n = parse_tuple(p, true, false, end_name, false, with_namespace);
    set_store(p, n, ctx);
    return n;
}

static Node *for_statement(Parser *p) { // FOR: a target, b iterable, c condition, body, other
    const Token *at = p->tok++;
    Node *n = new_node(p, J_FOR, at);
    n->a = target(p, "in", false, CTX_STORE);
    if (!skip_name(p, "in")) FAIL(p, p->tok, "expected 'in', found %s", token_shown(p, p->tok));
    n->b = parse_tuple(p, false, false, "recursive", false, false);
    if (skip_name(p, "if")) n->c = parse_expression(p);
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
        n = new_node(p, J_IF, at);
        n->a = parse_tuple(p, false, false, NULL, false, false);
        n->body = body(p, ENDS("endif", "elif", "else"), opened);
        if (first) append_node(p, &first->elifs, n);
        else first = n;
        at = p->tok++;
        if (token_is_name(at, "elif")) continue;
        if (token_is_name(at, "else")) {
            first->other = body(p, ENDS("endif"), opened);
            p->tok++;
        }
        return first;
    }
}

static Node *set_statement(Parser *p) { // SET: a target, b value; SET_BLOCK: a target, b filters or NULL, body
    const Token *at = p->tok++;
    Node *n = new_node(p, J_SET, at);
    n->a = target(p, NULL, true, CTX_STORE);
    if (skip_op(p, "=")) {
        n->b = parse_tuple(p, false, true, NULL, false, false);
        return n;
    }
    n->kind = J_SET_BLOCK;
    n->b = parse_filters(p, NULL, false);
    bool before = p->in_loop_capture;
    p->in_loop_capture = true;
    n->body = body(p, ENDS("endset"), at);
    p->in_loop_capture = before;
    p->tok++;
    return n;
}

static void signature(Parser *p, Node *n) { // list parameters, other default values of the last ones
    expect_op(p, "(");
    while (!token_is_op(p->tok, ")")) {
        if (n->list.n) expect_op(p, ",");
        const Token *at = expect_name(p, "the name of a parameter");
        Node *param = new_node(p, J_NAME, at);
        param->name = name_of(p, at);
        param->ctx = CTX_PARAM;
        for (int i = 0; i < n->list.n; i++) {
            const String *other = n->list.v[i]->name;
            if (other->n == param->name->n && !memcmp(other->p, param->name->p, other->n))
                FAIL(p, at, "the parameter '%s' is declared twice", other->p);
        }
        if (skip_op(p, "=")) append_node(p, &n->other, parse_expression(p));
        else if (n->other.n) FAIL(p, at, "non-default argument follows default argument");
        append_node(p, &n->list, param);
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
    Node *n = new_node(p, J_MACRO, at);
    n->name = name_of(p, expect_name(p, "the macro's name"));
    signature(p, n);
    n->body = function_body(p, "endmacro", at);
    return n;
}

static Node *call_block(Parser *p) { // CALL_BLOCK: a the CALL, list parameters, other defaults, body
    const Token *at = p->tok++;
    Node *n = new_node(p, J_CALL_BLOCK, at);
    if (token_is_op(p->tok, "(")) signature(p, n);
    n->a = parse_expression(p);
    if (n->a->kind != J_CALL) FAIL(p, at, "a call block wants a call: '{%% call name(...) %%}'");
    n->body = function_body(p, "endcall", at);
    return n;
}

static Node *generation(Parser *p) { // as a call block whose callee returns what the body writes
    const Token *at = p->tok++;
    Node *n = new_node(p, J_CALL_BLOCK, at);
    n->body = function_body(p, "endgeneration", at);
    return n;
}

static Node *filter_block(Parser *p) { // FILTER_BLOCK: b filters, body
    const Token *at = p->tok++;
    Node *n = new_node(p, J_FILTER_BLOCK, at);
    n->b = parse_filters(p, NULL, true);
    bool before = p->in_loop_capture;
    p->in_loop_capture = true;
    n->body = body(p, ENDS("endfilter"), at);
    p->in_loop_capture = before;
    p->tok++;
    return n;
}

static Node *with_statement(Parser *p) { // WITH: list targets, other values, body
    const Token *at = p->tok++;
    Node *n = new_node(p, J_WITH, at);
    while (p->tok->kind != T_BLOCK_END) {
        if (n->list.n) expect_op(p, ",");
        append_node(p, &n->list, target(p, NULL, false, CTX_PARAM));
        expect_op(p, "=");
        append_node(p, &n->other, parse_expression(p));
    }
    n->body = body(p, ENDS("endwith"), at);
    p->tok++;
    return n;
}

static Node *print_statement(Parser *p) { // OUTPUT: list
    Node *n = new_node(p, J_OUTPUT, p->tok++);
    while (p->tok->kind != T_BLOCK_END) {
        if (n->list.n) expect_op(p, ",");
        append_node(p, &n->list, parse_expression(p));
    }
    return n;
}

static Node *jump(Parser *p, NodeKind kind) { // BREAK, CONTINUE
    const Token *at = p->tok++;
    if (!p->loops) FAIL(p, at, "'%.*s' outside of a loop", FMT(at->text));
    Node *n = new_node(p, kind, at);
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
    if (at->kind != T_NAME) FAIL(p, at, "expected the name of a tag, found %s", token_shown(p, at));
    for (int i = 0; i < COUNT(tags); i++) {
        if (token_is_name(at, tags[i].name)) return tags[i].parse(p);
    }
    if (token_is_name(at, "break")) return jump(p, J_BREAK);
    if (token_is_name(at, "continue")) return jump(p, J_CONTINUE);
    for (int i = 0; i < COUNT(outside); i++) {
        if (token_is_name(at, outside[i]))
            FAIL(p, at, "the tag '%s' is outside what ggcc implements; chat templates are one file without escaping",
                outside[i]);
    }
    if (str_starts(at->text, "end") || token_is_name(at, "else") || token_is_name(at, "elif")) {
        FAIL(p, at, "unexpected '%.*s': the tag that is open here ends otherwise", FMT(at->text));
    }
    FAIL(p, at, "unknown tag %s", str_show(p->t->arena, at->text));
}

static bool ends_here(const Token *t, const char *const *ends) {
    for (; ends && *ends; ends++) {
        if (token_is_name(t, *ends)) return true;
    }
    return false;
}

static NodeList statements(Parser *p, const char *const *ends) { // TEXT: value; OUTPUT: list
    NodeList list = {0};
    parse_deeper(p);
    while (p->tok->kind != T_EOF) {
        const Token *at = p->tok++;
        if (at->kind == T_DATA) {
            Node *n = new_node(p, J_TEXT, at);
            n->value = str_value(jinja_string(p->t->arena, at->text));
            append_node(p, &list, n);
        } else if (at->kind == T_VAR_BEGIN) {
            Node *n = new_node(p, J_OUTPUT, at);
            append_node(p, &n->list, parse_tuple(p, false, true, NULL, false, false));
            if (p->tok->kind != T_VAR_END)
                FAIL(p, p->tok, "expected the end of the expression, '}}', found %s", token_shown(p, p->tok));
            p->tok++;
            append_node(p, &list, n);
        } else {
            if (ends_here(p->tok, ends)) break;
            Node *n = statement(p);
            expect_block_end(p);
            append_node(p, &list, n);
        }
    }
    p->depth--;
    return list;
}

void jinja_parse(Jinja *t, Tokens tokens) {
    Parser p = {.t = t, .tok = tokens.v};
    t->body = statements(&p, NULL);
    if (p.tok->kind != T_EOF) FAIL(&p, p.tok, "unexpected %s", token_shown(&p, p.tok));
}
