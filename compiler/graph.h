// The graph: what a model computes for one row (one token), as nodes in static single assignment. One stage for
// each kind of layer, one before and one after; layers of equal facts share a stage. No file keys, no target
// words, no unrolled layers.
//
//   spec + file --build.c--> Graph --passes.c--> Graph (same nouns, nodes partitioned into kernels) --plan.c--> Plan
//
// The text form (graph_print, graph_read) is complete: reading what was printed gives the same graph.
#ifndef GRAPH_H
#define GRAPH_H

#include "gguf.h"

typedef enum {
#define MAP(name, n_in, expr, doc) OP_##name,
#define OP(name, class, min_in, max_in, attrs, doc) OP_##name,
#include "ops.def"
    N_OP
} Op;

typedef enum { CLASS_MAP, CLASS_SOURCE, CLASS_VIEW, CLASS_ROW, CLASS_HEAVY, CLASS_STATE } OpClass;

typedef struct {
    const char *name;
    OpClass class;
    int min_in, max_in;
    const char *attrs; // "scale softcap|": names of real[], then of num[]
    const char *expr;  // MAP: the C expression, else NULL
    const char *doc;
} OpInfo;
extern const OpInfo op_info[N_OP];

enum { MAX_DIM = 4, MAX_IN = 8, MAX_ATTR = 4 };

// Axes outer to inner; the row axis is implied. n == 0 is a scalar.
typedef struct {
    int n;
    int64_t d[MAX_DIM];
} Shape;
static inline int64_t shape_size(Shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.n; i++) n *= s.d[i];
    return n;
}
static inline int64_t shape_last(Shape s) {
    return s.n ? s.d[s.n - 1] : 1;
}

// Buckets that distances fall into (buckets.c): `exact` of one position each, then those that begin at `bound`; later
// positions are counted from `later` on.
enum { MAX_BUCKETS = 128 };
typedef struct {
    int64_t exact, later, bound[MAX_BUCKETS];
    int n;
} Buckets;
Buckets buckets_of(int64_t count, int64_t most, bool both);
int64_t bucket_at(const Buckets *b, int64_t row, int64_t position);

typedef enum { F32, I32, Q8, HANDLE } DType; // HANDLE: a state just written
// CONST: the same for every row (weights, numbers). ROW: one for each row. OUT: one for each row whose logits are
// wanted.
typedef enum { RATE_CONST, RATE_ROW, RATE_OUT } Rate;

typedef struct {
    Op op;
    DType type;
    Rate rate;
    Shape shape;
    int n_in, in[MAX_IN];  // nodes of the same stage, all before this one
    double real[MAX_ATTR]; // attributes, named in ops.def
    int64_t num[MAX_ATTR];
    int weight; // stage.weight, or -1
    int state;  // stage.state, or -1
    int kernel; // the kernel it belongs to (stage.kernel), or -1: not yet, or needs none (views, sources)
    Str name;   // what the description calls it; "" when it has no name there
    Loc loc;    // where the description says it
} Node;

// A weight of a stage. As a product it has `out` rows of `in` elements, as data out == product of the outer axes.
// Parts are tensors of the file, stacked along the outputs, all of one type. A stack is n such products of one
// shape; a part then is one tensor that holds its outputs of all of them, one after the other, or, `apart`, one
// tensor for each.
typedef struct {
    Str name;        // "attn_q"; merged: "attn_q+attn_k+attn_v"
    Shape shape;     // as data: axes outer to inner; as product: [out.., in] flat: {out, in}
    int64_t in, out; // of one product of the stack
    int64_t stack;   // products; 0: not a stack
    bool apart;      // the file has a tensor for each product of the stack
    int type;        // row of types.def
    bool product;    // used by matmul (may also be a table: tied)
    bool exact;      // input never quantised
    int n_part;
    int64_t *part_out; // [n_part] outputs of each part
    // [layers][n_part][apart ? stack : 1] index into gguf.tensor; layers: graph.n_layer, or 1 outside layers
    int *tensor;
    int interleave; // 1, or: as many equal sections of the outputs alternate in panels of 16 when packed
} Weight;
// Sections of the outputs that alternate when packed (gate and up), or 1.
static inline int64_t weight_strands(const Weight *w) {
    return w->interleave > 1 ? w->interleave : 1;
}

// How many products a weight has, and tensors for one layer.
static inline int64_t weight_stack(const Weight *w) {
    return w->stack ? w->stack : 1;
}
static inline int64_t weight_tensors(const Weight *w) {
    return w->n_part * (w->apart ? weight_stack(w) : 1);
}

// What a layer remembers of a sequence. CACHE: a record for each position, or for each `every` of them. TAIL: the last
// n values. CELL: matrices. BLEND: values and scores of the last m blocks of n positions.
typedef enum { STATE_CACHE, STATE_TAIL, STATE_CELL, STATE_BLEND } StateKind;
typedef enum { SEES_PAST, SEES_WINDOW, SEES_CHUNK, SEES_ALL, SEES_AROUND } Sees;
typedef struct {
    Str name;
    // cache: [kv heads, width], v.n == 0: no values of its own. tail: k of one value. cell: k = [heads, K, V].
    // blend: k = [m, channels]
    Shape k, v;
    Sees sees;
    int64_t n; // of the window, chunk or surroundings; values of a tail; positions of a block
    int64_t every; // positions that one record of a cache stands for: it is there from the last of them on. 0: one
    StateKind kind;
    int *source; // [n_layer] the layer whose state of this name it is, which is only read here; NULL: its own
} State;
static inline int64_t state_every(const State *s) {
    return s->every > 1 ? s->every : 1;
}

// Are later rows seen as well?
static inline bool sees_ahead(Sees sees) {
    return sees == SEES_ALL || sees == SEES_AROUND;
}

// A set of nodes that becomes one kernel; made by fuse.
typedef struct {
    Str name;
    int heavy; // its heavy node, or -1: a row kernel
} KernelGroup;

typedef struct {
    Str name;     // "embed", "block", "block_2", "head"
    bool layered; // weights and states are per layer
    Node *node;
    int n_node, cap_node;
    Weight *weight;
    int n_weight, cap_weight;
    State *state;
    int n_state, cap_state;
    KernelGroup *kernel;
    int n_kernel, cap_kernel;
} Stage;

// A value that lives between stages: carried ones (x), ones the prologue makes (angles), and the result (logits).
typedef struct {
    Str name;
    Shape shape;
    DType type;
    Rate rate;
} Global;

// A rotation profile: what cos and sin of a pair are. Formula and names: GGUF's rope.scaling keys.
// theta_i = pos * base^(-2i/dims) / factor_i, then scaled; see angles_row() in angles.c.
typedef struct {
    Str name;
    bool halves; // pairs (i, i + dims/2); else (2i, 2i + 1)
    int64_t dims;
    double base;
    double scale; // 1 / rope.scaling.factor for linear and yarn, else 1
    bool yarn;
    double ext, attn, beta_fast, beta_slow; // yarn: extrapolation, magnitude, corrections
    int64_t orig;                           // original context length
    int64_t section[4]; // pairs of each stream of positions; all 0: one stream. In a row of text the fourth stream is 0
    bool interleaved;   // the sections take turns; else they follow each other
} Rope;

typedef struct {
    Str name;
    double *value; // [n_layer]
} Param;

// Whole numbers below 2^53, in a list.
typedef struct {
    Str name;
    int n;
    int64_t *value; // [n]
} Numbers;

typedef struct {
    int stage, first, count; // layers first .. first + count - 1 (outside layers: 0, 1)
} Run;

typedef struct {
    Str name, note; // a line for `info`: a size and what it came from, or a name ignored and why
} Fact;

typedef struct {
    Arena *arena;
    const Gguf *gguf; // where weights lie; NULL for a graph read from text
    Str arch, name;
    int64_t n_layer, n_vocab, n_ctx, n_embd;
    Stage *stage;
    int n_stage, cap_stage;
    Run *run;
    int n_run, cap_run;
    Global *global;
    int n_global, cap_global;
    int logits;  // the global that is the main result: logits, or what an encoder gives; its name says which
    int *output; // globals that are results besides, all in the scratch after a forward
    int n_output, cap_output;
    Rope *rope;
    int n_rope, cap_rope;
    Param *param;
    int n_param, cap_param;
    Numbers *numbers;
    int n_numbers, cap_numbers;
    Fact *fact, *ignored;
    int n_fact, cap_fact, n_ignored, cap_ignored;
} Graph;

Str weight_file_name(const Graph *g, const Weight *w); // of the first of its tensors in the file

Graph *graph_new(Arena *a);
int graph_stage(Graph *g, Str name, bool layered);
int graph_global(Graph *g, Str name, Shape shape, DType type, Rate rate);

// Makes a node; shape, type and rate follow from the operator and its operands (shape.c). Where they do not fit it
// fails at `loc` with both shapes. Attributes are set by the caller right after, except those that the shape
// depends on, which `like` gives (reshape, slice: the resulting shape; get: global; matmul, embed, weight: the
// weight; put, attention: the state).
typedef struct {
    Op op;
    int n_in, in[MAX_IN];
    double real[MAX_ATTR];
    int64_t num[MAX_ATTR];
    int weight, state;
    Shape shape; // reshape, slice; matmul: the layout of the result (its size must be the weight's `out`), n == 0: flat
    Str name;
    Loc loc;
} NodeSpec;
int node_new(Graph *g, int stage, NodeSpec spec);
bool op_has_weight(Op op);        // its node names a weight
bool op_has_state(Op op);         // its node names a state
bool op_keeps(Op op);             // changes a state: it is computed for every row, whether or not its value is used
bool graph_whole(const Graph *g); // rows see later ones: a sequence must be evaluated in one batch
#define NODE(...) ((NodeSpec){.weight = -1, .state = -1, __VA_ARGS__})

// Operands of attention, q first: one cache or two, then, each where it is, sinks, biases by distance, picks.
typedef enum { READS_CACHE, READS_SINKS, READS_BIASES, READS_PICKS } AttentionRole;
int attention_caches(const Stage *s, const int *in, int n_in);
AttentionRole attention_role(const Stage *s, const int *in, int n_in, bool biased, int i); // biased: its num[3] is set

// Every law of the header above, for the whole graph; die with the node's name when one is broken. `fused`: kernels are
// assigned.
void graph_check(const Graph *g, bool fused);

void graph_print(const Graph *g, Out *o);
Graph *graph_read(Arena *a, const char *file, Str text);
const char *shape_show(Arena *a, Shape s);

// Cosine and sine of the dims/2 pairs of one position, interleaved;
void angles_row(const Rope *r, const float *factors, int32_t pos, float *cos_sin);

// Its parts, for printers: angles are f32 and each pair's is the one before it times the step (angles.c says why).
float angles_step(const Rope *r);
double angles_size(const Rope *r); // what cos and sin are multiplied by
bool angles_mixed(const Rope *r);  // yarn: angle = scaled (1 - mix) + unscaled mix
float angles_mix(const Rope *r, int64_t i);
bool angles_rests(const Rope *r, int64_t i); // pair i belongs to the fourth stream, so text does not turn it

#endif
