// Buckets of distances: near positions have one each, farther ones share one with more and more others. In: how many
// buckets there are, from which distance on all share the last, whether later positions have a half of their own. Out:
// where each bucket begins, in whole positions: what interpreter and generated code count with, so no logarithm is
// taken while running.
#include "graph.h"

#include <math.h>

Buckets buckets_of(int64_t count, int64_t most, bool both) {
    Buckets b = {.later = both ? count / 2 : 0};
    int64_t n = both ? count / 2 : count;
    b.exact = n / 2;
    for (int64_t i = b.exact + 1; i < n && b.n < MAX_BUCKETS; i++) {
        double from = (double) b.exact *
            pow((double) most / (double) b.exact, (double) (i - b.exact) / (double) (n - b.exact));
        b.bound[b.n++] = (int64_t) ceil(from * (1 - 1e-9)); // what is whole stays so
    }
    return b;
}

int64_t bucket_at(const Buckets *b, int64_t row, int64_t position) {
    int64_t far = row > position ? row - position : position - row, at = far < b->exact ? far : b->exact;
    for (int i = 0; i < b->n; i++) at += far >= b->bound[i];
    return at + (position > row ? b->later : 0);
}
