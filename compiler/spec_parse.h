// Between spec_parse.c (declarations, statements) and spec_expr.c (expressions): the parser's state and small steps.
#ifndef SPEC_PARSE_H
#define SPEC_PARSE_H

#include "spec.h"

typedef struct {
    Arena *a;
    Source *s;
    Token *t;      // the next token
    int depth;     // of nested expressions and blocks
    bool in_type;  // between : and = of a tensor: `+ bias` is not a sum there
    Str *declared; // every name this file declares, anywhere: what is not here is a key
    int n_declared, cap_declared;
    Expr **or_list; // every `or`, to check its comment when all names are known
    int n_or, cap_or;
} Parser;

_Noreturn void expected(Parser *p, const char *what);
bool is(const Parser *p, int kind);
bool is_word(const Parser *p, const char *word);
bool take(Parser *p, int kind);
bool take_word(Parser *p, const char *word);
void need(Parser *p, int kind, const char *what);
Str need_name(Parser *p, const char *what);
Str token_text(const Parser *p, const Token *t);
void skip_lines(Parser *p);
void enter(Parser *p); // one level deeper, within reason
void leave(Parser *p);
uint32_t end_of_last(const Parser *p);
Str comment_on(const Parser *p, uint32_t first_line, uint32_t last_line);

Expr *parse_expr(Parser *p);   // with `or`
Expr *parse_value(Parser *p);  // without
Expr *parse_axes(Parser *p);   // axis, axis, .. as a LIST, up to -> + = or the end
Expr *parse_source(Parser *p); // of a tensor, as an OR
bool is_builtin_word(Str name);

#endif
