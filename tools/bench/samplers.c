// Microseconds of each sampler on one row of logits; samplers.py builds and runs it. In: the size of the vocabulary.
// Out: a line a sampler: name, microseconds (median of repetitions, the copy of the row taken off).
#define _GNU_SOURCE
#include "../../runtime/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT = 2048, REPETITIONS = 41 };

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static float *row, *work;
static int32_t text[TEXT];
static Sampler sampler;

static double measured(const SampleOptions *o, bool logprobs) {
    double took[REPETITIONS];
    sampler_use(&sampler, o);
    for (int i = 0; i < REPETITIONS; i++) {
        Candidate best[10];
        memcpy(work, row, (size_t) sampler.n_vocab * sizeof *row);
        double from = seconds();
        if (logprobs) log_probabilities(&sampler, work, 10, best);
        else if (sample(&sampler, work, text, TEXT - i) < 0) exit(1);
        took[i] = 1e6 * (seconds() - from);
    }
    qsort(took, REPETITIONS, sizeof *took, by_value);
    return took[REPETITIONS / 2];
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 262144;
    row = malloc((size_t) n * sizeof *row), work = malloc((size_t) n * sizeof *row);
    void *memory = malloc(sampler_bytes(n, TEXT));
    if (n < 1000 || !row || !work || !memory) return 1;
    srand(1);
    for (int i = 0; i < n; i++) { // as a language model's: a bell, and a few that stand out
        double u = (rand() + 1.0) / (RAND_MAX + 2.0), v = rand() / (double) RAND_MAX;
        row[i] = (float) (2.5 * sqrt(-2 * log(u)) * cos(6.2831853 * v) + (i % 9001 == 17 ? 12 * v : 0));
    }
    for (int i = 0; i < TEXT; i++) text[i] = rand() % (i % 3 ? 500 : n);
    sampler_init(&sampler, n, TEXT, memory);
    SampleOptions greedy, none, o;
    sample_defaults(&greedy);
    none = greedy;
    none.greedy = false, none.top_k = 0, none.top_p = 1, none.min_p = 0;
#define SHOW(name, from, ...)                                                                                          \
    do {                                                                                                               \
        o = from;                                                                                                      \
        __VA_ARGS__;                                                                                                   \
        printf("%s %.1f\n", name, measured(&o, false));                                                                \
    } while (0)
    SHOW("greedy", greedy, o.greedy = true);
    SHOW("temperature", none, o.temp = 0.8f);
    SHOW("top-k", none, o.top_k = 40);
    SHOW("top-p", none, o.top_p = 0.95f);
    SHOW("min-p", none, o.min_p = 0.05f);
    SHOW("top-k,top-p,min-p,temperature", none, o.top_k = 40, o.top_p = 0.95f, o.min_p = 0.05f);
    SHOW("typical", none, o.typical = 0.9f);
    SHOW("top-nsigma", none, o.top_nsigma = 1);
    SHOW("xtc", none, o.xtc_probability = 1);
    SHOW("dynatemp", none, o.dynatemp_range = 0.5f);
    SHOW("mirostat-1", none, o.mirostat = 1);
    SHOW("mirostat-2", none, o.mirostat = 2);
    SHOW("penalties", greedy, o.repeat_penalty = 1.1f, o.frequency_penalty = 0.1f, o.repeat_last_n = -1);
    SHOW("dry", greedy, o.dry_multiplier = 0.8f);
    printf("logprobs-10 %.1f\n", measured(&greedy, true));
    return 0;
}
