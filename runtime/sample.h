// The next token from a row of logits.
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_SAMPLERS = 16 };

// What a user may ask for, by its usual name. sample_defaults() gives the neutral or usual value of each.
typedef struct {
    uint64_t seed;
    bool greedy; // the likeliest token after bias and penalties; the rest is not looked at
    float temp;  // 0: the likeliest
    float dynatemp_range, dynatemp_exponent;
    int top_k;                   // 0: off
    float top_p, min_p, typical; // 1, 0, 1: off
    float top_nsigma;            // 0: off
    float xtc_probability, xtc_threshold;
    int repeat_last_n;                                         // 0: off, -1: the whole text
    float repeat_penalty, presence_penalty, frequency_penalty; // 1, 0, 0: off
    float dry_multiplier, dry_base;                            // 0: off
    int dry_allowed_length, dry_last_n;                        // -1: the whole text
    int mirostat; // 1 or 2: instead of all but bias and temperature; 0: off
    float mirostat_ent, mirostat_lr;
    uint8_t order[MAX_SAMPLERS]; // the samplers to apply, numbers of sampler_named()
    int n_order;                 // -1: all, in the usual order
} SampleOptions;

typedef struct { // added to the logit of a token; -INFINITY forbids it
    int32_t id;
    float bias;
} LogitBias;

typedef struct {
    int32_t id;
    float logit, p;
} Candidate;

typedef struct {
    int n_vocab;
    SampleOptions options;
    const LogitBias *bias;
    int n_bias;
    // The work of one token: what is left of the vocabulary.
    float *logits;
    const int32_t *text; // [n_text] so far
    int n_text;
    Candidate *list;   // [n_vocab]
    int n;             // in the list; -1: all of the vocabulary, not listed yet
    int32_t *count;    // [n_vocab], zero between tokens
    int32_t *match;    // [n_ctx + 1], for DRY
    uint8_t *breaks;   // [n_vocab]: not 0 for a token at which DRY stops looking for a repetition
    float *raw;        // [n_vocab]: log_probabilities' copy of the row
    double log_sum;    // of its exponentials
    float mu;          // mirostat's surprise to aim at; it starts anew with each run
    uint64_t position; // of the token to come, and the number of random numbers drawn for it
    unsigned draws;
} Sampler;

void sample_defaults(SampleOptions *o);
int sample_check(const SampleOptions *o); // 0, or -1: complaint() names the option, its value and its range
uint64_t sampler_bytes(int n_vocab, int n_ctx);
void sampler_init(Sampler *s, int n_vocab, int n_ctx, void *memory);
void sampler_use(Sampler *s, const SampleOptions *o);
int sampler_named(const char *name, size_t n); // number of a sampler for SampleOptions.order, -1: unknown
const char *sampler_name(int i);               // NULL beyond the last

// The token that follows text[0 .. n). Changes the logits. A NaN or an empty choice is an error: -1.
int32_t sample(Sampler *s, float *logits, const int32_t *text, int n);

// Before sample() changes the row: its n likeliest tokens with the logarithms of their probabilities in p; how many.
// After it, log_probability() gives that of any token, as the model gave it.
int log_probabilities(Sampler *s, const float *logits, int n, Candidate *best);
float log_probability(const Sampler *s, int32_t id);

int32_t argmax(const float *x, int n); // lowest index of the greatest; -1: a NaN, +infinity, or nothing above -infinity

// For samplers in other files.
void candidates_list(Sampler *s);       // all of the vocabulary that is not forbidden, unless there is a list
void candidates_top(Sampler *s, int k); // the k likeliest, likeliest first
void candidates_softmax(Sampler *s);    // probabilities, of a list
double sampler_draw(Sampler *s);        // in [0, 1)
// Those files' samplers.
void sample_penalties(Sampler *s);
void sample_dry(Sampler *s);
int32_t sample_mirostat(Sampler *s);

#endif
