// A model's chat template, compiled: Jinja2 as Transformers sets it up (trim_blocks, lstrip_blocks, loop controls,
// `generation`, the immutable sandbox). In: the template's text. Out: a tree with every variable resolved to a slot, by
// the rules of Jinja2's own compiler; from it either C for the program (jinja_emit) or a rendering here and now
// (jinja_render). Both call the same value runtime (runtime/value.h), so only control flow exists twice. What Jinja2
// would refuse, and what is outside the implemented set, stops at its line.
#ifndef JINJA_H
#define JINJA_H

#include "chat_template.h"
#include "util.h"

typedef enum {
    // expressions
    J_CONST,
    J_NAME,
    J_TUPLE,
    J_LIST,
    J_DICT,
    J_COND,
    J_OR,
    J_AND,
    J_NOT,
    J_COMPARE,
    J_CONCAT,
    J_BINARY,
    J_UNARY,
    J_GETATTR,
    J_GETITEM,
    J_SLICE,
    J_CALL,
    J_FILTER,
    J_TEST,
    J_NSREF,
    // statements
    J_TEXT,
    J_OUTPUT,
    J_FOR,
    J_IF,
    J_MACRO,
    J_CALL_BLOCK,
    J_FILTER_BLOCK,
    J_SET,
    J_SET_BLOCK,
    J_WITH,
    J_BREAK,
    J_CONTINUE
} NodeKind;

typedef struct Node Node;
typedef struct Function Function;

typedef struct {
    Node **v;
    int n, cap;
} NodeList;

// Where a variable lives: a slot of the function `up` functions outward.
typedef struct {
    int up, slot;
} Place;

// What happens to a frame's variables on entry, as Jinja2's symbol tables say; all become missing on the way out.
typedef enum { LOAD_PARAM, LOAD_RESOLVE, LOAD_ALIAS, LOAD_UNDEFINED } LoadKind;
typedef struct {
    LoadKind kind;
    int slot;
    Place from;         // LOAD_ALIAS
    const String *name; // LOAD_RESOLVE
} Load;
typedef struct {
    Load *load;
    int n_load;
} Scope;

// One function of the compiled template: the template itself, each macro, call block, recursive loop and loop
// condition.
struct Function {
    Function *parent;
    int id;
    const char *name;     // for the C: "root", "macro_tool", ...
    const String **slots; // the variables' names
    int *levels;          // how deep the frame of each lies
    int n_slots, cap_slots, cap_levels;
};

typedef enum { CTX_LOAD, CTX_STORE, CTX_PARAM } NameContext;
typedef enum { OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW, OP_NEG, OP_POS } Operator;

struct Node {
    NodeKind kind;
    uint32_t pos; // in the template's text
    int line;
    const String *name; // NAME, GETATTR, FILTER, TEST, MACRO; the namespace of NSREF
    const String *attr; // NSREF
    NameContext ctx;
    Place place;          // NAME, NSREF; the macro's own name of MACRO
    Value value;          // CONST; TEXT
    int op;               // Operator, BINARY and UNARY
    Node *a, *b, *c;      // operands: see jinja_expr.c and jinja_parse.c, which make them
    NodeList list;        // items, operands, arguments, statements
    NodeList other;       // dict values, named arguments' values, default values, the else part
    const String **names; // of named arguments
    int *ops;             // Comparison of each further operand
    NodeList elifs;       // IF
    // FOR, MACRO, CALL_BLOCK, WITH, SET_BLOCK, FILTER_BLOCK
    NodeList body;
    Scope scope, else_scope, test_scope;
    Function *fn, *test_fn; // its own function, where it has one
    bool recursive, extended;
    Place loop;        // FOR: the variable `loop`
    Node *test_target; // FOR: the target again, in the condition's function
    MacroInfo macro;   // MACRO, CALL_BLOCK
    int n_fixed;       // slots of parameters, then caller, kwargs, varargs
    int *param_slot;
    const FilterInfo *filter; // NULL: unknown to Jinja2 too, fails when reached
    const TestInfo *test;
    bool folded;     // GETITEM of a SLICE: of constants alone
    bool in_capture; // BREAK, CONTINUE: leaves a capture
};

typedef struct {
    Arena *arena;
    Loc loc; // file and text for messages
    NodeList body;
    Scope scope;
    Function **functions; // the root first
    int n_functions, cap_functions;
    const String **reads; // variables of the case that it reads, in order
    int n_reads, cap_reads;
} Jinja;

Jinja *jinja_compile(Arena *a, const char *file, Str source); // or fails at the place
int jinja_render(const Jinja *t, Render *r);                  // 0, or -1: r->error
void jinja_emit(Out *o, const Jinja *t, const char *name); // C: `int template_NAME(Render *r)`; needs chat_template.h
// What the template writes after an assistant's turn, found by rendering conversations: the text that ends a turn,
// without white space at its ends. Several when they differ; none when no conversation renders.
int jinja_turn_ends(Arena *a, const Jinja *t, const char *bos, const char *eos, Str ends[4]);

// ---- between the files of this module ----
typedef enum {
    T_EOF,
    T_DATA,
    T_VAR_BEGIN,
    T_VAR_END,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_NAME,
    T_STRING,
    T_INT,
    T_REAL,
    T_OP
} TokenKind;
typedef struct {
    TokenKind kind;
    uint32_t pos;
    int line;
    Str text;    // a name, an operator; of a string and of data: what it stands for
    Value value; // numbers
} Token;
typedef struct {
    Token *v;
    int n, cap;
} Tokens;
Str jinja_source(Arena *a, Str source); // newlines as Jinja2 normalises them
Tokens jinja_lex(Arena *a, Loc *loc);
void jinja_parse(Jinja *t, Tokens tokens);
void jinja_resolve(Jinja *t);
const String *jinja_string(Arena *a, Str s);

#endif
