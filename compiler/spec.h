// A parsed description: what an .arch file says, as a tree, before any file or number is known.
// The grammar is that of docs/language.md. Shapes are expressions too: `d`, `[heads, hd]`,
// `{q: hd, gate: hd}`; where names stand for keys and where for declarations is settled by eval.c.
#ifndef SPEC_H
#define SPEC_H

#include "util.h"

typedef enum {
    T_END,
    T_LINE,
    T_NAME,
    T_NUM,
    T_STR,
    T_ARROW,
    T_EQ,
    T_NE,
    T_LE,
    T_GE,
    T_DOTS, // -> == != <= >= ..
    // every other token is its character: + - * / % & | ! ? : ; , = < > ( ) [ ] { } . #
} TokenKind;

typedef struct {
    int kind; // TokenKind, or a character
    uint32_t pos, len, line;
    double num;
} Token;

typedef struct {
    uint32_t line;
    Str text; // without the # and the blanks around it
} Comment;

typedef struct {
    const char *file; // as the user knows it
    Str text;
    Token *token;
    int n_token, cap_token;
    Comment *comment; // in order of lines, one a line at most
    int n_comment, cap_comment;
} Source;

typedef enum {
    E_NUM,
    E_STR,
    E_NAME,
    E_FRESH,  // ?name: a size that the first tensor binds
    E_LIST,   // [a, b]; also the axes of a declaration, a set {a, b} and several sources
    E_RECORD, // {label: arg, ..}
    E_CALL,   // arg[0](arg[1], label: arg[2], ..)
    E_INDEX,  // arg[0][arg[1]]
    E_SLICE,  // arg[0][arg[1]..arg[2]]
    E_PART,   // arg[0].name
    E_UNARY,
    E_BINARY,
    E_COND,  // arg[0] ? arg[1] : arg[2]
    E_OR,    // the first of arg that is there
    E_MATCH, // match arg[0] {arg[1]: arg[2], ..}
    E_AS,    // arg[0] as arg[1]
} ExprKind;

typedef struct Expr Expr;
struct Expr {
    ExprKind kind;
    int op; // UNARY, BINARY: the token; in: T_NAME
    const Source *src;
    uint32_t pos, end;
    Str name; // NAME, FRESH, PART, STR
    double num;
    Expr **arg;
    Str *label; // CALL, RECORD: "" where there is none
    int n, cap;
    int deep;    // expressions in each other, this one included
    Str comment; // OR: what the line says about its default
};

typedef struct Stmt Stmt;
typedef struct {
    Stmt **stmt;
    int n, cap;
} Block;

typedef enum {
    S_SIZE,
    S_REAL,
    S_FLAG,
    S_FN,
    S_ROPE,
    S_LAYOUT, // name [l] = expr
    S_TENSOR,
    S_STATE,
    S_INPUT,
    S_OUTPUT,
    S_EXPECT,
    S_IGNORE,
    S_REQUIRE,
    S_DEF,
    S_LAYER,
    S_MODEL,
    S_ASSIGN,
    S_IF,
    S_FOR,
    S_RUN,
    S_RETURN,
} StmtKind;

typedef enum { BIAS_NONE, BIAS_ALWAYS, BIAS_MAYBE } BiasRule;

struct Stmt {
    StmtKind kind;
    const Source *src;
    uint32_t pos, end;
    Str *name;    // what it declares, assigns, ignores; DEF, LAYER, RUN: name[0], then parameters or carried values
    uint32_t *at; // where each name stands
    int n_name, cap_name;
    Str comment;   // on its line
    Expr *expr;    // value, condition, bound, kind of state
    bool by_layer; // name[l]
    bool unpack;   // {a, b} = r: by name
    // tensors
    Expr *index;    // T[n], state kv[src[l]]
    Expr *in, *out; // shape: out -> in is a product; no `in`: data
    BiasRule bias;
    bool exact, optional;
    Expr *ids;       // a table of whole numbers from 0 on, below this; or NULL
    Expr *source;    // OR of sources, or NULL: its own name
    Expr **preset;   // DEF: defaults of parameters; [n_name], NULL where there is none
    Expr *from, *to; // LAYER: range of l; IGNORE layers: likewise
    Str prefix;      // LAYER: "blk"
    Block body, other;
};

typedef struct Spec Spec;
struct Spec {
    Source *src;
    Str *arch; // names in the header; none: a library file
    int n_arch, cap_arch;
    Str *use;
    int n_use, cap_use;
    Str about; // the comment that opens the file, first line
    Block body;
    Spec **lib; // what it uses, and they use, each once
    int n_lib, cap_lib;
};

Source *spec_lex(Arena *a, const char *file, Str text);
Spec *spec_parse(Arena *a, const char *file, Str text);

// The text of an expression or statement as it was written.
static inline Str span(const Source *s, uint32_t pos, uint32_t end) {
    return (Str){s->text.p + pos, end - pos};
}
static inline Loc loc_at(const Source *s, uint32_t pos) {
    return (Loc){s->file, s->text, pos};
}
#define LOC(e) loc_at((e)->src, (e)->pos)

// build.c: what a model may give, the main one first that there is.
enum { N_RESULT = 4 };
extern const char *const model_results[N_RESULT];

// unread.c: fails at the first name that is declared or computed and that nothing reads.
void spec_check_read(Arena *a, const Spec *spec);

// archs.c: descriptions by the architecture they describe, libraries loaded. Fails with the nearest names.
struct BuildOptions;
Spec *spec_find(Arena *a, Str arch, const char *arch_file, const char *const *arch_dir);
// Does this library part say what a key must be, or that it does not matter?
bool library_tells(Arena *a, const char *use, Str key);
bool is_option_word(Str name); // first, halves, ..: which of several ways

#endif
