// The results that are stored in a program when it is built: what its own compiler's interpreter computed.
#ifndef SELFTEST_H
#define SELFTEST_H

#include <stdint.h>

enum { SELFTEST_PROBES = 8 };

typedef struct {
    int32_t pos, top;               // the likeliest token after this position
    int32_t probe[SELFTEST_PROBES]; // ids whose logits are compared; top is not among them by rule
    float value[SELFTEST_PROBES];
} SelfCheck;

typedef struct {
    int n_ids; // 0: nothing stored
    const int32_t *ids;
    int n_check; // in order of position
    const SelfCheck *check;
    float tolerance; // greatest difference of a logit; the stored top must come within twice that of the greatest
} SelfTest;
extern const SelfTest selftest; // generated

#endif
