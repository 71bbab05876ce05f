// The vocabulary of a graph's text form, shared by its printer (graph_text.c) and its reader (graph_read.c), so that
// they cannot drift apart: words of enumerations, fields of structs (word, kind, place), attributes, names of rows.
#ifndef GRAPH_TEXT_H
#define GRAPH_TEXT_H

#include "graph.h"

#include <string.h>

static const char *const type_word[] = {[F32] = "f32", [I32] = "i32", [Q8] = "q8", [HANDLE] = "handle"};
static const char *const rate_word[] = {[RATE_CONST] = "const", [RATE_ROW] = "row", [RATE_OUT] = "out"};
static const char *const sees_word[] = {[SEES_PAST] = "past",
    [SEES_WINDOW] = "window",
    [SEES_CHUNK] = "chunk",
    [SEES_ALL] = "all",
    [SEES_AROUND] = "around"};
static const char *const kind_word[] = {[STATE_CACHE] = "cache",
    [STATE_TAIL] = "tail",
    [STATE_CELL] = "cell",
    [STATE_BLEND] = "blend"};

typedef enum { FLAG, INT, SMALL, REAL, SHAPE, SEES, KIND, TENSOR_TYPE } FieldKind; // bool, int64_t, int, double, ...
typedef struct {
    const char *word;
    FieldKind kind;
    size_t at;
    int64_t usual; // a number that is left out
} Field;

static const Field graph_fields[] = {
    {"layers", INT, offsetof(Graph, n_layer), 0},
    {"vocab", INT, offsetof(Graph, n_vocab), 0},
    {"ctx", INT, offsetof(Graph, n_ctx), 0},
    {"embd", INT, offsetof(Graph, n_embd), 0},
};
static const Field rope_fields[] = {
    {"halves", FLAG, offsetof(Rope, halves), 0},
    {"dims", INT, offsetof(Rope, dims), 0},
    {"base", REAL, offsetof(Rope, base), 0},
    {"scale", REAL, offsetof(Rope, scale), 0},
    {"yarn", FLAG, offsetof(Rope, yarn), 0},
    {"ext", REAL, offsetof(Rope, ext), 0},
    {"attn", REAL, offsetof(Rope, attn), 0},
    {"beta_fast", REAL, offsetof(Rope, beta_fast), 0},
    {"beta_slow", REAL, offsetof(Rope, beta_slow), 0},
    {"orig", INT, offsetof(Rope, orig), 0},
    {"s0", INT, offsetof(Rope, section), 0},
    {"s1", INT, offsetof(Rope, section) + sizeof(int64_t), 0},
    {"s2", INT, offsetof(Rope, section) + 2 * sizeof(int64_t), 0},
    {"s3", INT, offsetof(Rope, section) + 3 * sizeof(int64_t), 0},
    {"interleaved", FLAG, offsetof(Rope, interleaved), 0},
};
static const Field weight_fields[] = {
    {"type", TENSOR_TYPE, offsetof(Weight, type), 0},
    {"shape", SHAPE, offsetof(Weight, shape), 0},
    {"out", INT, offsetof(Weight, out), 0},
    {"in", INT, offsetof(Weight, in), 0},
    {"stack", INT, offsetof(Weight, stack), 0},
    {"apart", FLAG, offsetof(Weight, apart), 0},
    {"product", FLAG, offsetof(Weight, product), 0},
    {"exact", FLAG, offsetof(Weight, exact), 0},
    {"interleave", SMALL, offsetof(Weight, interleave), 1},
};
static const Field state_fields[] = {
    {"kind", KIND, offsetof(State, kind), STATE_CACHE},
    {"k", SHAPE, offsetof(State, k), 0},
    {"v", SHAPE, offsetof(State, v), 0},
    {"sees", SEES, offsetof(State, sees), 0},
    {"n", INT, offsetof(State, n), 0},
    {"every", INT, offsetof(State, every), 0},
};
static const Field stage_fields[] = {{"layered", FLAG, offsetof(Stage, layered), 0}};
static const Field run_fields[] = {
    {"first", SMALL, offsetof(Run, first), -1},
    {"count", SMALL, offsetof(Run, count), -1},
};

// Attributes of an operator, in order: for (AttrWalk w = attrs_of(op); attr_next(&w);) ...
typedef struct {
    const char *p;
    bool num; // in node.num[], else in node.real[]
    int index;
    Str name;
} AttrWalk;
static inline AttrWalk attrs_of(Op op) {
    return (AttrWalk){.p = op_info[op].attrs, .index = -1};
}
// Attributes that most nodes of their operator do without: left out when 0.
static inline bool attr_rare(Op op, Str name) {
    OpClass class = op_info[op].class;
    return class == CLASS_MAP || class == CLASS_HEAVY || str_is(name, "back") || str_is(name, "inverse");
}
static inline bool attr_next(AttrWalk *w) {
    for (; *w->p == ' ' || *w->p == '|'; w->p++)
        if (*w->p == '|') w->num = true, w->index = -1;
    w->name = (Str){w->p, strcspn(w->p, " |")};
    w->p += w->name.n;
    w->index++;
    return w->name.n > 0;
}

// A table is any array whose rows begin with their name; a row is called by its name, or by .index where an earlier row
// has that name too.
typedef struct {
    const char *what;
    const void *row;
    size_t size;
    int n;
} Table;
#define NAME_FIRST(T) _Static_assert(offsetof(T, name) == 0, "a row begins with its name")
NAME_FIRST(Global);
NAME_FIRST(Rope);
NAME_FIRST(Param);
NAME_FIRST(Numbers);
NAME_FIRST(Stage);
NAME_FIRST(Weight);
NAME_FIRST(State);
NAME_FIRST(KernelGroup);
#undef NAME_FIRST
#define TABLE(word, list, count) ((Table){word, list, sizeof *(list), count})

static inline Str row_name(Table t, int i) {
    return *(const Str *) (const void *) ((const char *) t.row + (size_t) i * t.size);
}
static inline int row_named(Table t, Str name) {
    for (int i = 0; i < t.n; i++)
        if (str_eq(row_name(t, i), name)) return i;
    return -1;
}
// The table that an attribute of this name points into.
static inline bool attr_table(const Graph *g, Str name, Table *t) {
    if (str_is(name, "global")) *t = TABLE("global", g->global, g->n_global);
    else if (str_is(name, "param")) *t = TABLE("param", g->param, g->n_param);
    else if (str_is(name, "rope")) *t = TABLE("rope", g->rope, g->n_rope);
    else if (str_is(name, "by") || str_is(name, "mod") || str_is(name, "plus"))
        *t = TABLE("numbers", g->numbers, g->n_numbers);
    else return false;
    return true;
}

static inline bool is_digit(int c) {
    return c >= '0' && c <= '9';
}
static inline bool is_letter(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool is_plain(Str s) { // needs no quotes
    for (size_t i = 0; i < s.n; i++)
        if (!is_letter(s.p[i]) && !(i > 0 && (is_digit(s.p[i]) || s.p[i] == '+'))) return false;
    return s.n > 0;
}

#endif
