// Between the two files that print a template as C: jinja_emit_expr.c the expressions, jinja_emit.c the statements and
// the functions around them. In: nodes. Out: C; what must be done before an expression goes to the statements at hand.
#ifndef JINJA_EMIT_H
#define JINJA_EMIT_H

#include "jinja.h"

typedef struct {
    const Jinja *t;
    Arena *a;
    Out *o; // the statements of the function at hand
    const Function *fn;
    Out protos, infos, bodies;
    const String **strings; // constants, each `static const String s_...`
    Str *string_names;
    int n_strings, cap_strings, cap_names;
    int n_temp;    // t1, t2, ...
    int loop;      // the number of the loop around, whose output a jump restores
    const char *v; // what the C calls the variables of `fn`
} Emitter;

#define F(...) (str_fmt(e->a, __VA_ARGS__).p)

const char *emit_string(Emitter *e, const String *s); // the name of a constant: s_role
const char *emit_field(Emitter *e, const Function *fn, int slot); // a variable's, in its struct: message_1
const char *emit_variable(Emitter *e, Place p);
const char *emit_temp(Emitter *e, const char *value); // a new variable of C, which has the value
const char *emit_values(Emitter *e, const char **text, int n); // (Value[]){a, b}
// The operand `first` (or NULL) and the arguments of a call, as `&(Args){...}`; *of gets the operand.
const char *emit_args(Emitter *e, const Node *n, const Node *first, const char **of, const char *caller);
// Runs `print` with the statements going aside; gives them, the expression in *text.
Str emit_aside(Emitter *e, const char *(*print)(Emitter *e, const Node *n), const Node *n, const char **text);
const char *emit_condition(Emitter *e, const Node *n); // an expression's truth, as a condition of C
const char *emit_expression(Emitter *e, const Node *n);
const char *emit_filter(Emitter *e, const Node *n, const char *block); // block: a block's text, the innermost operand

#endif
