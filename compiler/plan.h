// The plan: flat and final. Which kernels there are, where every value lies, in which order steps run, how each is
// cut into pieces, where every weight stands in the packed file. The emitter prints it and decides nothing.
#ifndef PLAN_H
#define PLAN_H

#include "passes.h"
#include "target/target.h"

typedef enum { LAYOUT_F32, LAYOUT_RAW, LAYOUT_PANELS } Layout; // vectors; the file's rows; panels of 16 rows

// One weight of one stage, packed: where it stands for each layer.
typedef struct {
    int stage, weight;
    Layout layout;
    uint64_t bytes;   // of one layer
    uint64_t *offset; // [n_layer or 1], from the start of the packed weights
} PackedWeight;

// Values that outlive a kernel. Offsets are within the scratch of one forward; row r of the value is at offset + r *
// row_bytes.
typedef struct {
    Str name;
    int stage; // -1: a global
    int node;  // of the stage; or the global's number
    DType type;
    Rate rate;
    int64_t width, parts; // values of a row; 8-bit ones: vectors of it, each rounded by itself
    uint64_t row_bytes, bytes, offset;
    int first, last; // steps of its stage between which it lives (globals: all)
    bool logits;     // is the caller's logits array, not scratch
} Buffer;

// A value as a kernel reads or writes it: elements [from, from + width) of each row of a buffer.
typedef struct {
    int buffer; // -1: not in a buffer (constants, weights, values inside a kernel)
    int64_t from;
} Place;

typedef enum { K_ROWS, K_MATMUL, K_ATTENTION, K_EXPERTS, K_STATE } KernelKind; // K_STATE: other heavy operators

typedef struct {
    int stage, group; // group: stage.kernel
    KernelKind kind;
    Str name;
    Rate rate;
    int level; // the moment it can start
    // matmul, attention
    const char *template;      // "matmul.c"
    const char *keys;          // of attention: how keys lie, as templates/c/attention.c says; else NULL
    const char *packed;        // "panels.c": the one for packed weights, or NULL
    int64_t in, out;           // matmul: K, and N of a strand
    int strands, panels, rows; // work of a piece
    int heads;                 // attention: query heads a piece covers
    // cost of one row, for `explain`
    double flops, weight_bytes, value_bytes;
} Kernel;

typedef struct {
    int kernel;
    int stage;
} Step;

// Where a state lies in the pages of its group, or (group -1) in the block that each sequence has.
typedef struct {
    int stage, state, group;
    uint64_t k_bytes, v_bytes; // of one layer in a page, or in the block
    uint64_t *k_at, *v_at;     // [n_layer]
} StatePlan;

typedef struct {
    Str name;
    int64_t window; // 0: past
    int64_t every;  // positions that one record stands for
    uint64_t page_bytes;
} GroupPlan;

typedef struct {
    const Graph *graph;
    const Gguf *gguf;
    const Target *target;
    Report *report;
    int max_batch, max_out, page;
    bool kv_f32;
    PackedWeight *weight;
    int n_weight, cap_weight;
    int **packed; // [stage][weight] -> index into weight
    Buffer *buffer;
    int n_buffer, cap_buffer;
    Place **place; // [stage][node]
    Kernel *kernel;
    int n_kernel, cap_kernel;
    int **kernel_of; // [stage][group] -> index into kernel
    Step *step;      // stage after stage
    int n_step, cap_step;
    StatePlan *state;
    int n_state, cap_state;
    int **state_of; // [stage][state]
    GroupPlan group[8];
    int n_group;
    uint64_t fixed_bytes; // of the block that each sequence has for tails and cells
    uint64_t weight_bytes, scratch_bytes, thread_bytes;
    uint64_t hash;
} Plan;

typedef struct {
    bool kv_f32, kv_given;
    int max_batch, max_out;
    bool no_fuse;
} PlanOptions;

// Runs the passes on the graph and makes the plan.
Plan *plan_make(Graph *g, const Target *t, const PlanOptions *opt);

uint64_t plan_q8_bytes(int64_t k); // of a row of k values rounded to 8 bits

// Whether a node's value leaves its kernel, and where it lies.
bool node_is_stored(const Plan *p, int stage, int node);

void plan_print(const Plan *p, Out *o);
void explain(const Plan *p, Out *o);

// Writes the packed weights: exactly p->weight_bytes, in order of offset. `say`: show progress.
void pack_weights(const Plan *p, FileOut *f);

#endif
