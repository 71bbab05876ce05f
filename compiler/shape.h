// The shape, type and rate of a node, from its operator and operands: node_new's rules.
#ifndef SHAPE_H
#define SHAPE_H

#include "graph.h"

Shape node_shape(Graph *g, const Stage *s, NodeSpec spec);
// Both aligned at the inner end; a missing axis or one of 1 stretches. false: they do not fit.
bool shape_broadcast(Shape a, Shape b, Shape *out);
static inline bool shape_eq(Shape a, Shape b) {
    if (a.n != b.n) return false;
    for (int i = 0; i < a.n; i++)
        if (a.d[i] != b.d[i]) return false;
    return true;
}

#endif
