// Between the two files of Jinja2's grammar: jinja_expr.c reads expressions, jinja_parse.c the statements around them.
// In: tokens, which both eat from the front. Out: nodes.
#ifndef JINJA_PARSE_H
#define JINJA_PARSE_H

#include "jinja.h"

typedef struct {
    Jinja *t;
    Token *tok; // the next one
    int depth;
    int loops; // around here, within the same function
    bool in_loop_capture;
} Parser;

#define FAIL(p, token_, ...)                                                                                           \
    do {                                                                                                               \
        Loc loc_ = (p)->t->loc;                                                                                        \
        loc_.pos = (token_)->pos;                                                                                      \
        fail_at(loc_, __VA_ARGS__);                                                                                    \
    } while (0)

// ---- tokens ----
bool token_is_op(const Token *t, const char *op);
bool token_is_name(const Token *t, const char *name);
bool skip_op(Parser *p, const char *op);
bool skip_name(Parser *p, const char *name);
const char *token_shown(Parser *p, const Token *t);
void expect_op(Parser *p, const char *op);
Token *expect_name(Parser *p, const char *what);

// ---- nodes ----
Node *new_node(Parser *p, NodeKind kind, const Token *at);
void append_node(Parser *p, NodeList *list, Node *n);
const String *name_of(Parser *p, const Token *t);
void parse_deeper(Parser *p); // one level more, which p->depth counts

// ---- expressions ----
Node *parse_expression(Parser *p);
// `a, b`: a TUPLE with list; one expression without a comma is itself. simple: names alone, as a target is;
// conditional: `x if y` too; end_name ends it; brackets: may be empty; with_namespace: `ns.x` may be a target.
Node *parse_tuple(Parser *p, bool simple, bool conditional, const char *end_name, bool brackets,
    bool with_namespace);
Node *parse_filters(Parser *p, Node *n, bool begun); // begun: the first name comes without its `|`

#endif
