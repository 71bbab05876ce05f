// The numbers that a program's own `selftest` must find again, and how far a right program may be from them.
#ifndef SELFTEST_VALUES_H
#define SELFTEST_VALUES_H

#include "plan.h"

#include "../runtime/selftest.h"

// The tokens behind those that are checked cost no interpreter: they make batches of a prompt's size, whose kernels
// must give the same.
enum { SELFTEST_TOKENS = 16, SELFTEST_CHECKED = 4 };
typedef struct {
    int n_ids, n; // tokens; of these, the first ones, with values
    int32_t ids[SELFTEST_TOKENS], top[SELFTEST_CHECKED]; // the tokens, the best one after each
    int64_t width; // of the logits, of which the probes are some
    float probe[SELFTEST_CHECKED][SELFTEST_PROBES];
    double tolerance; // of a logit
} SelfTestValues;

SelfTestValues selftest_values(const Plan *p);
Str selftest_text(Arena *a, const SelfTestValues *s); // as C

#endif
