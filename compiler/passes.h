// The passes on a graph, in the order in which compile() runs them (passes.c: run_passes). Each is a free function
// on the one structure, with what it needs, keeps and breaks. What was done and what was refused, with the reason,
// goes into the report.
#ifndef PASSES_H
#define PASSES_H

#include "graph.h"

typedef struct {
    Str stage, what, reason; // reason "": done
} ReportLine;

typedef struct {
    Arena *arena;
    ReportLine *line;
    int n, cap;
} Report;
void report(Report *r, const Stage *s, Str what, const char *reason);

// What the passes ask of a target: whether the product of this weight takes its input rounded to 8 bits, and how many
// equal sections of its outputs one kernel can combine.
typedef struct {
    bool (*wants_q8)(const void *target, const Weight *w);
    const void *target;
    bool no_fuse; // --no-fuse: every operator a kernel of its own, for tests
} PassOptions;

void simplify(Graph *g, Report *r);
void tail_rows(Graph *g, Report *r);
void merge_products(Graph *g, Report *r);
void quantise_inputs(Graph *g, Report *r, const PassOptions *opt);
void inline_decay(Graph *g, Report *r);
void copy_pieces(Graph *g, Report *r);
void fuse(Graph *g, Report *r, const PassOptions *opt);
void name_values(Graph *g);
void run_passes(Graph *g, Report *r, const PassOptions *opt);

// Rebuilding a stage: nodes are made anew in order, `map` tells what became of the old ones.
typedef struct {
    Graph *g;
    int stage;
    Node *old;
    int n_old;
    int *map; // old index -> new index
} Rebuild;
Rebuild rebuild_begin(Graph *g, int stage);
int rebuild_copy(Rebuild *b, int old); // the old node with its operands mapped; sets and returns map[old]

// What a node is of the value behind its views: element (i0, i1, ..) is the base's element from + sum of i_a stride[a].
typedef struct {
    int base;
    int64_t from;
    Shape shape;
    int64_t stride[MAX_DIM];
    bool ok; // false: no such walk
} View;
View view_of(const Stage *s, int node);
int view_base(const Stage *s, int node); // its base alone
bool over_input(const Stage *s, int heavy, int node); // node's value would be written over what heavy reads
bool view_is_range(const View *v);                 // its elements lie one after the other
bool view_is_whole(const Stage *s, const View *v); // and are all there are

// The value behind views; *from gets the offset of the first element when they are one contiguous range of it, -1 when
// they are not.
int behind_views(const Stage *s, int node, int64_t *from);
// The same with both values taken as `parts` equal parts: is it the same range of each part.
bool behind_views_by(const Stage *s, int node, int64_t parts, int *base, int64_t *from);

#endif
