// What the runtime and the code generated for a model know of each other. The runtime supplies weights,
// state, threads, text and sampling; the generated file supplies the numbers below and model_forward().
// Nothing here depends on the model; nothing in the runtime does.
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PAGE = 64,        // positions in a page of state
    MAX_GROUP = 8,    // state groups a model may have
    WEIGHT_ALIGN = 64 // every packed tensor begins at a multiple of this, the weights at a page of memory
};

// ---- what was compiled (constants in the generated file) ----

// A group of states that see the same positions, of all layers that have it. One page of a group holds
// PAGE consecutive positions of every such layer; the layout inside belongs to the generated code.
typedef struct {
    const char *name;
    uint64_t page_bytes;
    int window; // keys a row sees, itself included; 0: all before it. Pages that left the window are freed
    int every;  // positions that one of its records stands for: a page holds PAGE records. 0: one
} StateGroup;

// How many records a group has of n positions.
static inline int group_records(const StateGroup *g, int n) {
    return g->every > 1 ? n / g->every : n;
}

// A result besides the main one: where it lies after a forward.
typedef struct {
    const char *name;
    int width;       // floats of a row
    bool wanted;     // a row for each wanted row, else for each row of the batch
    uint64_t offset; // in the scratch, row after row
} ModelOutput;

typedef struct {
    const char *name, *arch, *source; // the file's general.name, its architecture, the file's base name
    uint64_t hash;                    // of file, description and compiler: programs with one hash are one program
    int n_vocab, n_ctx, n_layer, n_embd;
    const char *result;               // what a forward gives for each wanted row: "logits", or what an encoder calls it
    int n_result;                     // floats of it; logits: n_vocab
    int n_output;
    ModelOutput output[4];
    int max_batch;                    // rows that one forward may have
    int max_out;                      // rows of logits that one forward may give
    bool whole;                       // rows see later ones: a text is one batch, and nothing is kept from it
    uint64_t fixed_bytes;             // of each sequence, for state that does not grow with it
    uint64_t weight_bytes;            // packed weights
    uint64_t scratch_bytes;           // working memory of one forward, all threads
    uint64_t thread_bytes;            // working memory of each thread
    int n_group;
    StateGroup group[MAX_GROUP];
    const char *cpu;                  // instruction sets the code needs, space-separated, as /proc/cpuinfo spells them
    // what `info` prints: sizes, kernels, ignored names, memory plan; ends with a newline
    const char *info;
    const char *kv_type;              // "f16" or "f32"
    uint64_t param_count;
    const char *rerank;               // what a pair is written into, with {query} and {document}; NULL: as encoders do
} ModelInfo;
extern const ModelInfo model_info;

// ---- what the program has (made by the runtime at start, in one allocation) ----
typedef struct {
    const uint8_t *weights;            // mapped, packed
    uint8_t *scratch;                  // scratch_bytes, 64-byte aligned
    uint8_t *thread_scratch;           // thread_bytes for each thread
    uint8_t *pool[MAX_GROUP];          // pages of each state group
    uint8_t *fixed;                    // [n_seq][fixed_bytes]; zero at the start of a sequence
    uint32_t *table[MAX_GROUP];        // [n_seq][n_table]: the page that holds positions PAGE*i .. of a sequence
    int n_table;                       // entries of one sequence's table
    // The batch: rows of (token, position, sequence). Rows of one sequence stand together, in order of position.
    int rows;
    const int32_t *token, *pos, *seq;  // [rows]
    int outs;                          // rows whose logits are wanted, <= max_out
    const int32_t *out;                // [outs] increasing row numbers
    const int32_t *out_pos, *out_seq;  // [outs] pos and seq of those rows
    float *logits;                     // [outs][n_result], written
} Model;

// Where the state of one position (or record) lies: add the layer's offset inside the page.
static inline uint8_t *state_page(const Model *m, int group, uint64_t page_bytes, int seq, int pos) {
    return m->pool[group] + m->table[group][(size_t) seq * (size_t) m->n_table + (size_t) (pos / PAGE)] * page_bytes;
}

// ---- threads ----
// All threads of a team run model_forward together. A step is cut into pieces; threads claim pieces until none
// is left; the step ends when all its pieces are done, not when all threads arrive, so a thread that the system
// took away between pieces holds nobody up (it finds the steps it missed already closed and walks past them).
typedef struct Team Team; // one for all threads
typedef struct {
    Team *team;
    int index;     // 0 .. threads - 1
    uint32_t step; // this thread's own count of steps
} Worker;
int piece_claim(Worker *w, int n);   // the next piece of this step, or -1: no more for this thread
void piece_done(Worker *w, int n);   // a claimed piece is finished; the last one opens the next step
void step_wait(Worker *w);           // until the step is over; then the next
// PIECES(w, n, p) { the work of piece p of n }    p counts from 0; includes the wait at the end
#define PIECES(w, n, p)                                                                                            \
    for (int n_##p = (n), once_##p = 1; once_##p; once_##p = 0, step_wait(w))                                      \
        for (int p; (p = piece_claim((w), n_##p)) >= 0; piece_done((w), n_##p))

// ---- generated ----
void model_forward(const Model *m, Worker *w);

// STEP(w, id, layer, n, p) { ... }: PIECES, numbered. `id` counts the steps of the plan, layer is 0 outside layers.
// Compiled with -DTRACE (ggcc verify: one thread), it calls back before and after.
#ifdef TRACE
extern void (*trace_before)(int id, int layer, const Model *m);
extern void (*trace_after)(int id, int layer, const Model *m);
#define STEP(w, id, layer, n, p)                                                                                   \
    for (int t_##p = (trace_before((id), (layer), m), 1); t_##p; t_##p = 0, trace_after((id), (layer), m))          \
        PIECES(w, n, p)
#else
#define STEP(w, id, layer, n, p) PIECES(w, n, p)
#endif

// ROWS(w, id, layer, n, r) { the work of row r of n }    a step whose pieces are a few rows
#define ROWS(w, id, layer, n, r)                                                                                   \
    STEP(w, id, layer, ((n) + 3) / 4, p_##r)                                                                       \
        for (int r = 4 * p_##r; r < (n) && r < 4 * p_##r + 4; r++)

#endif
