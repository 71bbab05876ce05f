// The row printer's two files: print_rows.c decides where things are computed and prints loops; print_ops.c prints
// operators that are calls.
#ifndef PRINT_ROWS_H
#define PRINT_ROWS_H

#include "emit.h"

// Where a value lives: nowhere yet, in a variable of its loop, an array of the head, an array of the row, its
// place in the plan, a variable outside of loops.
typedef enum { V_NONE, V_LOOP, V_INNER, V_ROW, V_STORED, V_SCALAR } Home;

typedef struct {
    int segment, loop; // where it is computed; loop -1: it is a statement of its own
    Home home;
} NodeInfo;

// Nodes of one outer loop: `outer` heads, each of `inner` numbers.
typedef struct {
    int64_t outer, inner;
} Segment;

typedef struct {
    Printer q;
    NodeInfo *info;
    Segment *segment;
    int n_segment, n_loop;
    bool *in; // is a member
    Out decl, body;
} Rows;

static inline const Node *node_at(const Rows *r, int i) {
    return &r->q.stage->node[i];
}
static inline const Segment *segment_at(const Rows *r, int node) {
    return &r->segment[r->info[node].segment];
}

// print_rows.c
void declare_array(Rows *r, int node);
Str pointer(Rows *r, int node, bool written); // the first element, in this row, of a value in a buffer
Str weight_name(Rows *r, int weight);
// the first element of an operand, of this head where heads are looped over
Str vector(Rows *r, int node, int operand);
Str target_vector(Rows *r, int node); // of a node's own value
Str fresh_value(Rows *r, int node, const char *fallback);
const char *c_type(const Node *n);

// print_ops.c
void print_statement(Rows *r, int node);

#endif
