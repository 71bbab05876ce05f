// Rotary position angles. In: a rotation profile, optional factors of the pairs, a position. Out: cos and sin of every
// pair.
// The formulas are those that GGUF's rope.scaling keys stand for: plain, linear, YaRN; tables of factors
// come as `factors`.
//
// This is the one place where how a number is rounded is part of its meaning. Angles are f32, and each pair's is
// the one before it times a constant, rounded, as in the engine whose logits files of this format are held
// against. An angle of 500 is off by 2e-5 in f32 whatever one does, and that alone moves logits: with exact angles
// the two real models of the tests differ from the reference by 2.1e-5 and 1.02e-4 of the logits' standard
// deviation, with these by 5e-6 and 7e-6.
#include "graph.h"

#include <math.h>

static const double TAU = 6.283185307179586476925286766559;

// The pair (not whole) that turns `turns` times over the original context.
static double yarn_pair(const Rope *r, double turns) {
    return (double) r->dims * log((double) r->orig / (turns * TAU)) / (2 * log(r->base));
}

// How far pair i is left to extrapolate: 1 for the fastest, 0 for the slowest, a ramp between.
float angles_mix(const Rope *r, int64_t i) {
    double lo = fmax(0, floor(yarn_pair(r, r->beta_fast)));
    double hi = fmin((double) (r->dims - 1), ceil(yarn_pair(r, r->beta_slow)));
    double along = ((double) i - lo) / fmax(0.001, hi - lo);
    return (float) (r->ext * (1 - fmin(1, fmax(0, along))));
}

bool angles_rests(const Rope *r, int64_t i) {
    int64_t three = r->section[0] + r->section[1] + r->section[2], all = three + r->section[3];
    if (all == 0) return false;
    i %= all;
    return r->interleaved ? i >= 3 * r->section[i % 3] : i >= three;
}

bool angles_mixed(const Rope *r) {
    return r->yarn && r->ext != 0;
}

double angles_size(const Rope *r) {
    return angles_mixed(r) ? r->attn * (1 + 0.1 * log(1 / r->scale)) : r->attn;
}

float angles_step(const Rope *r) {
    return (float) pow((float) r->base, -2.0f / (float) r->dims);
}

void angles_row(const Rope *r, const float *factors, int32_t pos, float *cos_sin) {
    double size = angles_size(r);
    float turn = (float) pos, step = angles_step(r);
    for (int64_t i = 0; i < r->dims / 2; i++) {
        float whole = factors ? turn / factors[i] : turn, angle = (float) r->scale * whole;
        if (angles_mixed(r)) {
            float mix = angles_mix(r, i);
            angle = angle * (1 - mix) + whole * mix;
        }
        if (angles_rests(r, i)) angle = 0;
        cos_sin[2 * i] = (float) (cos(angle) * size);
        cos_sin[2 * i + 1] = (float) (sin(angle) * size);
        turn *= step;
    }
}
