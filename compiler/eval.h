// Evaluating a description: values of both worlds, scopes, and what the files below share.
// The one idea: there is one evaluator. A number known when building stays a number; as soon as a run-time value is an
// operand, the same expression makes nodes.
//
//   eval.c    names, scopes, compile-time arithmetic, statements, calls of defs
//   keys.c    the file's keys: reading, expecting, ignoring, and that none is left over
//   hints.c   what an error adds: near names, where a number comes from
//   bind.c    the file's tensors: sources, shapes, biases, and that none is left over
//   ropes.c   rotation profiles
//   ops.c     run-time values: products, parts, views
//   builtins.c  the functions that every description may call
//   choose.c  choice: top, reading by ids, experts; and what rearranges values
//   states.c  what outlives a row: caches and attention, tails, cells
//   build.c   stages, layers and their kinds, the graph
#ifndef EVAL_H
#define EVAL_H

#include "build.h"
#include "spec.h"

// ---- shapes with named parts ----
typedef struct Axis Axis;
typedef struct {
    int n;
    Axis *axis; // outer to inner
} Layout;
typedef struct {
    Str name;
    Layout layout;
} Part;
struct Axis {
    int64_t size; // 0: a fresh name that nothing has bound yet
    Str fresh;
    int n_part; // 0: plain
    Part *part; // in order, behind each other
};
int64_t layout_size(Layout l, Loc loc);
Shape layout_shape(Layout l, Loc loc);

// ---- values ----
typedef struct Value Value;
typedef struct Tensor Tensor;
typedef struct StateDecl StateDecl;
typedef struct RopeValue RopeValue;
typedef struct Function Function;

typedef enum {
    V_ABSENT, // a key that the file does not have, or a word that nothing declares
    V_NUM,
    V_FLAG,
    V_TEXT,
    V_ARRAY, // a key with an array: one for each layer, or constant
    V_NONE,  // nothing (no rotation, no value yet)
    V_FN,    // a def or a built-in
    V_ROPE,
    V_LAYOUT,
    V_SEES,
    V_TENSOR,
    V_STATE,
    V_INPUT,  // an input that this program does not have
    V_NODE,   // a run-time value
    V_COLUMN, // a column of a cache, or a range of it
    V_RECORD, // run-time values by name, not behind each other in memory
} ValueKind;

struct Value {
    ValueKind kind;
    bool varies; // NUM: differs by layer, so at run time it is a parameter of the stage
    double num;  // NUM, FLAG; SEES: its n
    Str text;    // TEXT, ABSENT (the name), FN (of a built-in)
    Str key;     // the key it was read from, whole, for messages; ABSENT: that was looked for
    Loc loc;     // ABSENT, ARRAY: where it was read
    union {
        const GgufValue *array;
        const Expr *tried;  // ABSENT: the `or` none of whose alternatives is there, or NULL
        const Function *fn; // FN: a def; NULL: the built-in `text`
        RopeValue *rope;
        Layout layout;
        Sees sees;
        Tensor *tensor;
        StateDecl *state;
        struct {
            int node, stage;
            const Axis *record;     // the parts of its last axis, or NULL
            const StateDecl *state; // of a handle
            int column;             // COLUMN: which, and its range; node: the handle
            int64_t from, width;
        } at; // NODE, COLUMN
        struct {
            int n;
            const Str *name;
            Value *value;
            bool flat;
        } list; // RECORD; flat: each part is all its axes in a row
    };
};
#define NUM(x) ((Value){.kind = V_NUM, .num = (x)})
#define FLAG(x) ((Value){.kind = V_FLAG, .num = (x)})

// ---- scopes ----
typedef struct Scope Scope;
typedef struct {
    Str name;
    const Stmt *decl; // declared: evaluated when first asked for; NULL: assigned
    int which;        // decl->name[which]; -1: a fresh size in its shape
    enum { NOT_YET, IN_PROGRESS, DONE } progress;
    Value value;
    Value *layer_value; // NAME[l]: [n_layer], ABSENT until asked for
    bool output;        // a declared output that has been given its value
} Binding;
struct Scope {
    Scope *parent;
    Binding **bind;
    int n, cap;
    Str prefix;      // of tensors declared here: "blk.3."
    int64_t layer;   // -1: not in a layer
    int64_t index_l; // the l of the NAME[l] that is being evaluated, or -1
};
struct Function {
    const Stmt *stmt;
    Scope *scope; // where it was defined: what its body sees
};

// A declared tensor, bound to the file. A `.scale` of one number for each product belongs to it, wherever the file has
// one.
enum { MAX_SOURCE = 16 };
struct Tensor {
    const Stmt *decl;
    Loc loc;
    Str name; // as in the file, without prefix
    bool present, used;
    int64_t stack;  // products of a stack T[n]; 0: one product, or data
    int64_t ids;    // data: whole numbers below this; 0: numbers
    Layout in, out; // of one product; data: `out` alone
    int n_source;   // 1, or one for each part of the record `out`
    struct {
        Str name;
        int tensor, bias, scale; // indices into the file's tensors; bias, scale: or -1
        int *each;               // where the file has one tensor for each product of the stack: [stack]; else NULL
    } source[MAX_SOURCE];
};
struct StateDecl {
    const Stmt *decl;
    Str name;
    StateKind kind;
    int n_column; // of a cache: 1, or k and v
    struct {
        Str name;
        Layout layout;
    } column[2]; // tail: one, what it holds; cell: one, [heads, K, V]
    Sees sees;
    int64_t n;      // of the window, chunk, surroundings; values of a tail; positions of a blend's block
    int64_t every;  // positions of one record of a cache; 0: one
    int64_t source; // the layer whose state it is; -1: this one's own
    Loc loc;
    int index; // in the stage, -1 until written (or, of another layer, read)
};
struct RopeValue {
    Rope rope;
    Tensor *factors; // or NULL
    Str note;        // for people
    double covers;   // positions that its scaling was made for, 0: no scaling
    int index; // in graph.rope; -1 until used
    struct {
        int node; // its angles, in the first stage
        int64_t back;
    } angles[4];
    int n_angles;
};

// ---- the evaluation of one description for one file ----
typedef struct Synth Synth;
typedef struct {
    Arena *a;
    Graph *g;
    Gguf *gguf;
    const Spec *spec;
    const BuildOptions *opt;
    Str arch;
    Synth *synth;                    // it answers when the file (which it is making) has no key or tensor; else NULL
    uint8_t *key_used, *tensor_used; // [n_key], [n_tensor]
    Scope *file, *library;
    int64_t n_layer;                 // 0 until known
    int64_t context, trained, vocab; // 0 until asked for
    int stage;                       // that nodes are added to; -1: none
    RopeValue **rope;
    int n_rope, cap_rope;
    Tensor **tensor; // every declaration reached
    int n_tensor, cap_tensor;
    StateDecl **state;
    int n_state, cap_state;
    struct {
        int stage, node, global;
    } exported[64]; // values of the model block that later stages read
    int n_exported;
    struct {
        int global;
        int64_t unit;
    } picked[8]; // carried picks whose ids stand for several positions
    int n_picked;
    struct {
        const Stmt *layer;
        int first_stage, *global; // of what it carries; -1: still none
    } ran[16];
    int n_ran;
    int depth, in_or; // calls in calls; alternatives that may be absent
    int deep;         // evaluations in each other
    long steps;
    const Stmt *deciding; // the size, real or flag being evaluated
    Str *absent; // keys that were asked for and are not there
    int n_absent, cap_absent;
    Str chosen, reason;   // the alternative taken last, and its comment if it is a default
} Build;

// eval.c
Value eval(Build *b, Scope *s, const Expr *e);
double eval_num(Build *b, Scope *s, const Expr *e, const char *what);
int64_t eval_size(Build *b, Scope *s, const Expr *e, const char *what);
bool eval_flag(Build *b, Scope *s, const Expr *e);
Layout eval_layout(Build *b, Scope *s, const Expr *e);
Value scalar(Build *b, Scope *s, Value v); // an array becomes its element or its constant
double need_num(Build *b, Scope *s, Value v, Loc loc, const char *what);
_Noreturn void no_value(Build *b, Scope *s, Value absent);
const char *from_key(Build *b, Value v); // " (key '..')", or nothing
const char *value_show(Build *b, Value v);
const char *kind_show(Value v);
bool is_text(Value v, const char *text);
_Noreturn void not_yet(Loc loc, const char *what);
// scope.c
Scope *scope_new(Build *b, Scope *parent);
Binding *scope_find(Scope *s, Str name, Scope **owner);
void scope_bind(Build *b, Scope *s, Str name, Value v);
void scope_declare(Build *b, Scope *s, const Block *block);
Value binding_value(Build *b, Scope *owner, Binding *bind, Loc loc);
Value binding_at(Build *b, Scope *owner, Binding *bind, int64_t l, Loc loc);
void reach(Build *b, Scope *s, const Stmt *decl);                    // what a declaration demands of the file
bool execute(Build *b, Scope *s, const Block *block, Value *result); // true: it returned
Value call_def(Build *b, Scope *s, const Expr *e, const Function *f);
Str paste(Build *b, Scope *s, Str name, Loc loc); // $tag replaced

// keys.c
Value key_value(Build *b, Str name, Loc loc); // without the architecture's prefix
Value key_absolute(Build *b, Str key, Loc loc);
int key_find(const Build *b, Str key);
Str key_full(const Build *b, Str name);
void key_expect(Build *b, Scope *s, const Stmt *stmt);
void keys_check(Build *b);
Value builtin_value(Build *b, Str name, Loc loc, bool *found);
void fact(Build *b, Str name, Str note);
void ignored(Build *b, Str name, Str why);

// bind.c
Tensor *tensor_bind(Build *b, Scope *s, const Stmt *decl, int which);
void ignore(Build *b, Scope *s, const Stmt *stmt);
void tensors_check(Build *b);
void used_check(Build *b);
int weight_of(Build *b, const Tensor *t, int source, bool product);
int bias_of(Build *b, const Tensor *t, int source);
int scale_of(Build *b, const Tensor *t, int source);

// hints.c
const char *hint_key(Build *b, Str key);                              // what else the file has, or ""
const char *hint_asked(Build *b, Str key);
const char *hint_tensor(Build *b, Scope *s, Str full);
const char *hint_binding(Build *b, const GgufTensor *t);
Str hint_numbers(Build *b, Scope *s, const Expr *in, const Expr *out); // a line for each name in them
const char *file_shape(Build *b, const GgufTensor *t);

// ropes.c
Value rope_value(Build *b, Scope *s, const Expr *call);
Value rope_part(const RopeValue *r, Str part, Loc loc);
int rope_angles(Build *b, RopeValue *r, int64_t back, Loc loc); // a node of the present stage
void context_check(Build *b);

// ops.c
bool is_run_time(Value v);
Value make(Build *b, NodeSpec spec);
int node_of(Build *b, Value v, Loc loc); // in the present stage
Value arithmetic(Build *b, int op, Value x, Value y, Loc loc);
Value call_value(Build *b, Scope *s, const Expr *e, Value callee);
Value call_tensor(Build *b, Tensor *t, Value x, Loc loc);
Value take_part(Build *b, Value v, Str part, Loc loc);
Value index_value(Build *b, Scope *s, const Expr *e, Value base);
Value view_as(Build *b, Value v, Layout l, Loc loc);
Value record_value(Build *b, const Expr *e, Value *part);
void name_value(Build *b, Value v, Str name);
Value to_node(Build *b, Value v, Loc loc); // as node_of, with what is known of its parts
const Node *node_at(const Build *b, Value v);
Value reshaped(Build *b, Value v, Shape shape, Loc loc);
const Axis *last_record(Layout l);
Value weight_data(Build *b, int weight, Loc loc); // of this stage, as data
// choose.c
Value call_stack(Build *b, Tensor *t, const Value *ids, Value x, Loc loc); // T(x), or T[ids](x)
Value gather(Build *b, Value x, Value ids, Loc loc);
Value ids_of(Build *b, Value v, Loc loc);
Value call_top(Build *b, Scope *s, const Expr *e, Op op);
Value call_only(Build *b, Scope *s, const Expr *e, Op op);
Value call_hash(Build *b, Scope *s, const Expr *e, Op op);
Value call_mix(Build *b, Scope *s, const Expr *e, Op op);
Value call_spread(Build *b, Scope *s, const Expr *e, Op op);
Value call_join(Build *b, Scope *s, const Expr *e, Op op);
// states.c
StateDecl *state_bind(Build *b, Scope *s, const Stmt *decl, int which);
Value state_put(Build *b, Scope *s, const Expr *e, StateDecl *st);
Value state_handle(Build *b, StateDecl *st, Loc loc); // of a cache that another layer writes
Value state_column(Build *b, Value handle, Str column, Loc loc);
Value column_part(Build *b, Value column, Str part, Loc loc);
Value call_attention(Build *b, Scope *s, const Expr *e, Op op);
Value call_recur(Build *b, Scope *s, const Expr *e, Op op);
Value call_conv(Build *b, Scope *s, const Expr *e, Op op);
int64_t pick_unit(const Build *b, const Node *n); // positions that an id of a pick stands for
Value call_pick(Build *b, Scope *s, const Expr *e, Op op);
// builtins.c
bool is_builtin(Str name);
Value call_builtin(Build *b, Scope *s, const Expr *e, Str name);
const Expr *named(const Expr *e, const char *label); // the argument of that name, or NULL
int positional(const Expr *e);                       // arguments without a name: they stand first
Value value_arg(Build *b, Scope *s, const Expr *e, int i);

// build.c
int import_node(Build *b, int stage, int node, Loc loc);
void run_layers(Build *b, Scope *model, const Stmt *stmt);

void evaluate(Build *b); // all of the description, but the closure of the file's names

// synth.c
void synth_layers(Build *b, int64_t at_least);   // fewer would not show every kind
int synth_key(Build *b, Str key, bool optional); // index of the key, or -1: it is absent
void synth_unread(Build *b, Str key);            // in the file if the user wants it there
bool synth_chosen(Build *b, Str tensor);         // of several sources
void synth_ids(Build *b, Str name, int64_t below); // it is a table of ids
bool synth_bare(Build *b, Str tensor);           // its name has no .weight behind it
void synth_expect(Build *b, Str key, Value v);
void synth_demand(Build *b, Str key, double value);    // does not return if it can be met
void synth_require(Build *b, Scope *s, const Expr *e); // likewise
void synth_wide(Build *b, Str key); // an array of whole numbers becomes one of 64 bits
Value synth_sections(Build *b, Value v, int64_t dims);
int64_t synth_fresh(
    Build *b, Str name, bool alone); // a size that a tensor brings; not alone: other sizes stand beside it
void synth_tensor(Build *b, Str name, int n, const int64_t *ne, bool demanded);
void synth_ignored(Build *b, Str name); // a tensor in the file if the user wants it there

#endif
