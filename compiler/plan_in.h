// The inside of the planner, shared by its files: plan.c (kernels, steps, places of values), plan_store.c (states,
// weights).
#ifndef PLAN_IN_H
#define PLAN_IN_H

#include "plan.h"

enum { PLAN_ALIGN = 64 };
static inline uint64_t align_up(uint64_t x, uint64_t a) {
    return (x + a - 1) / a * a;
}

void plan_states(Plan *p);
void plan_weights(Plan *p);

#endif
