// The sampler against a slow one written from the definitions: full sort, double precision, no shortcuts. Both must
// leave the same candidates with the same probabilities, over random logits (flat, peaked, with ties and forbidden
// tokens) and options; draws must follow those probabilities; the edges of each option do what they say.
#include "../../runtime/error.h"
#include "../../runtime/sample.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 300 };
static uint64_t seed = 7;
static Sampler sampler;
static float logits[VOCAB], copy[VOCAB];
static double expected[VOCAB]; // probability of each token

#define CHECK(c, ...)                                                                                                  \
    do {                                                                                                               \
        if (!(c)) {                                                                                                    \
            printf("line %d: ", __LINE__);                                                                             \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static double uniform(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double) (seed >> 11) * 0x1p-53;
}

typedef struct {
    int id;
    double x, p;
} Slow;

static int by_logit(const void *a, const void *b) {
    const Slow *x = a, *y = b;
    return x->x != y->x ? (x->x < y->x ? 1 : -1) : x->id - y->id;
}

static void slow_softmax(Slow *c, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += c[i].p = exp(c[i].x - c[0].x);
    for (int i = 0; i < n; i++) c[i].p /= sum;
}

// The candidates that are left, likeliest first. `edge`: two ways to round would leave others, so nothing is compared.
static Slow c[VOCAB];
static int n_left;
static bool edge;

static bool near(double a, double b) {
    if (a != b && fabs(a - b) < 1e-5 * (1 + fabs(b))) edge = true;
    return a >= b;
}

static void resort(void) {
    qsort(c, (size_t) n_left, sizeof *c, by_logit);
    slow_softmax(c, n_left);
}

static void slow_penalties(const SampleOptions *o, const int32_t *text, int n_text) {
    for (int k = 0; k < n_left; k++) {
        float v = (float) c[k].x;
        int count = 0;
        for (int i = 0; i < n_text; i++)
            if (o->repeat_last_n < 0 || i >= n_text - o->repeat_last_n) count += text[i] == c[k].id;
        if (count)
            v = (v > 0 ? v / o->repeat_penalty : v * o->repeat_penalty) -
                ((float) count * o->frequency_penalty + o->presence_penalty);
        c[k].x = v;
    }
}

static void slow_nsigma(const SampleOptions *o) {
    double mean = 0, var = 0;
    if (o->top_nsigma <= 0) return;
    for (int i = 0; i < n_left; i++) mean += c[i].x / n_left;
    for (int i = 0; i < n_left; i++) var += (c[i].x - mean) * (c[i].x - mean) / n_left;
    int k = 0;
    while (k < n_left && near(c[k].x, c[0].x - o->top_nsigma * sqrt(var))) k++;
    n_left = k;
}

static void slow_top_p(const SampleOptions *o) {
    double sum = 0;
    int k = 0;
    if (o->top_p >= 1) return;
    while (k < n_left && (k == 0 || !near(sum, o->top_p))) sum += c[k++].p;
    n_left = k;
}

static double slow_entropy(void) {
    double h = 0;
    for (int i = 0; i < n_left; i++)
        if (c[i].p > 0) h -= c[i].p * log(c[i].p);
    return h;
}

static double expected_surprise;
static int by_surprise(const void *a, const void *b) {
    const Slow *x = a, *y = b;
    double d = fabs(-log(x->p) - expected_surprise), e = fabs(-log(y->p) - expected_surprise);
    return d != e ? (d > e ? 1 : -1) : x->id - y->id;
}

static void slow_typical(const SampleOptions *o) {
    double sum = 0;
    int k = 0;
    if (o->typical >= 1) return;
    expected_surprise = slow_entropy();
    qsort(c, (size_t) n_left, sizeof *c, by_surprise);
    while (k < n_left && !(sum > o->typical)) sum += c[k++].p;
    near(sum, o->typical), near(sum - c[k - 1].p, o->typical);
    if (k < n_left && c[k].x != c[k - 1].x) // the next one lies as far off on the other side
        near(fabs(-log(c[k].p) - expected_surprise), fabs(-log(c[k - 1].p) - expected_surprise));
    n_left = k;
}

static void slow_xtc(const SampleOptions *o) { // its probability is 0 or 1 here
    int above = 0;
    if (o->xtc_probability < 1 || o->xtc_threshold > 0.5f) return;
    while (above < n_left && near(c[above].p, o->xtc_threshold)) above++;
    if (above < 2) return;
    memmove(c, c + above - 1, (size_t) (n_left - above + 1) * sizeof *c);
    n_left -= above - 1;
}

static void slow_temperature(const SampleOptions *o) {
    double t = o->temp;
    if (o->dynatemp_range > 0 && n_left > 1) {
        double low = fmax(0, t - o->dynatemp_range), high = t + o->dynatemp_range;
        t = low + (high - low) * pow(slow_entropy() / log(n_left), o->dynatemp_exponent);
    }
    if (t < 1e-3) edge = true;
    for (int i = 0; i < n_left; i++) c[i].x /= t;
}

static const char *const usual[] = {
    "penalties", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"};
enum { USUAL = sizeof usual / sizeof *usual };

static void slow_apply(const char *name, const SampleOptions *o, const int32_t *text, int n_text) {
    resort();
    if (!strcmp(name, "penalties")) slow_penalties(o, text, n_text);
    if (!strcmp(name, "top_n_sigma")) slow_nsigma(o);
    if (!strcmp(name, "top_k") && o->top_k && o->top_k < n_left) n_left = o->top_k;
    if (!strcmp(name, "typ_p")) slow_typical(o);
    if (!strcmp(name, "top_p")) slow_top_p(o);
    if (!strcmp(name, "xtc")) slow_xtc(o);
    if (!strcmp(name, "temperature")) slow_temperature(o);
    int k = 0;
    if (!strcmp(name, "min_p") && o->min_p > 0) {
        while (k < n_left && near(exp(c[k].x - c[0].x), o->min_p)) k++;
        n_left = k;
    }
}

static void slow(const SampleOptions *o, const float *x, const int32_t *text, int n_text) {
    n_left = 0, edge = false;
    for (int id = 0; id < VOCAB; id++)
        if (x[id] > -INFINITY) c[n_left++] = (Slow){id, x[id], 0};
    for (int i = 0; i < (o->n_order < 0 ? USUAL : o->n_order); i++)
        slow_apply(o->n_order < 0 ? usual[i] : sampler_name(o->order[i]), o, text, n_text);
    resort();
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < n_left; i++) expected[c[i].id] = c[i].p;
}

static SampleOptions some_options(void) {
    SampleOptions o;
    sample_defaults(&o);
    o.greedy = false;
    o.temp = (float) (0.2 + 2 * uniform());
    o.top_k = uniform() < 0.5 ? 0 : 1 + (int) (uniform() * 60);
    o.top_p = uniform() < 0.4 ? 1 : (float) uniform();
    o.min_p = uniform() < 0.5 ? 0 : (float) (uniform() * 0.3);
    o.top_nsigma = uniform() < 0.7 ? 0 : (float) (0.5 + 2 * uniform());
    o.typical = uniform() < 0.6 ? 1 : (float) uniform();
    if (uniform() < 0.3) o.dynatemp_range = (float) uniform(), o.dynatemp_exponent = (float) (0.3 + 2 * uniform());
    if (uniform() < 0.3) o.xtc_probability = 1, o.xtc_threshold = (float) (uniform() * 0.6);
    if (uniform() < 0.5) {
        o.repeat_penalty = (float) (0.8 + uniform());
        o.presence_penalty = (float) (uniform() - 0.3);
        o.frequency_penalty = (float) (uniform() * 0.4);
        o.repeat_last_n = uniform() < 0.2 ? -1 : (int) (uniform() * 50);
    }
    if (uniform() < 0.5) { // some of them, in any order
        for (int i = 0; i < USUAL; i++) {
            int k = (int) (uniform() * (i + 1));
            o.order[i] = o.order[k];
            o.order[k] = (uint8_t) sampler_named(usual[i], strlen(usual[i]));
        }
        o.n_order = (int) (uniform() * (USUAL + 1));
    }
    return o;
}

static void some_logits(void) {
    double scale = uniform() < 0.3 ? 0.1 : 10 * uniform(), coarse = uniform() < 0.3 ? 2 : 4096;
    for (int i = 0; i < VOCAB; i++) {
        logits[i] = (float) (floor((uniform() + uniform() + uniform() - 1.5) * scale * coarse) / coarse);
        if (uniform() < 0.02) logits[i] = -INFINITY;
    }
}

static int edges_met;

static void compare(int round) {
    int32_t text[100];
    int n = (int) (uniform() * 100);
    for (int i = 0; i < n; i++) text[i] = (int32_t) (uniform() * uniform() * VOCAB);
    sampler.options = some_options();
    some_logits();
    slow(&sampler.options, logits, text, n);
    memcpy(copy, logits, sizeof copy);
    int32_t id = sample(&sampler, copy, text, n);
    if (edge) {
        edges_met++;
        return;
    }
    CHECK(id >= 0 && expected[id] > 0, "round %d: token %d (%s)", round, id, complaint());
    double listed = 0;
    for (int i = 0; i < sampler.n; i++) {
        const Candidate *k = &sampler.list[i];
        double e = expected[k->id];
        CHECK(fabs(e - k->p) < 2e-5 * (1 + 50 * e), "round %d: token %d has probability %g, expected %g", round, k->id,
            (double) k->p, e);
        listed += e;
    }
    CHECK(fabs(listed - 1) < 1e-3, "round %d: candidates are missing, %g of 1 is left", round, listed);
    for (int i = 0; i < VOCAB; i++) CHECK(sampler.count[i] == 0, "round %d: count of %d left over", round, i);
}

static void draws(void) {
    int seen[VOCAB] = {0}, n = 40000;
    sample_defaults(&sampler.options);
    sampler.options.greedy = false;
    sampler.options.seed = 5;
    some_logits();
    slow(&sampler.options, logits, NULL, 0);
    for (int i = 0; i < n; i++) { // the position is the only thing that changes
        static int32_t text[50000];
        sampler.options.repeat_penalty = 1;
        memcpy(copy, logits, sizeof copy);
        int32_t id = sample(&sampler, copy, text, i), again;
        memcpy(copy, logits, sizeof copy);
        again = sample(&sampler, copy, text, i);
        CHECK(id == again, "the same seed and position gave %d and %d", id, again);
        seen[id]++;
    }
    double chi = 0;
    int kinds = 0;
    for (int i = 0; i < VOCAB; i++) {
        if (expected[i] > 0) {
            double e = expected[i] * n;
            chi += (seen[i] - e) * (seen[i] - e) / e;
            kinds++;
        } else {
            CHECK(!seen[i], "token %d was not to be chosen", i);
        }
    }
    CHECK(kinds > 3 && chi < kinds + 5 * sqrt(2.0 * kinds), "chi square %g of %d kinds", chi, kinds);
}

static int32_t one(float temp) {
    sampler.options.greedy = false;
    sampler.options.temp = temp;
    memcpy(copy, logits, sizeof copy);
    return sample(&sampler, copy, NULL, 0);
}

static void edges(void) {
    sample_defaults(&sampler.options);
    for (int i = 0; i < VOCAB; i++) logits[i] = (float) (i % 7);
    memcpy(copy, logits, sizeof copy);
    CHECK(sample(&sampler, copy, NULL, 0) == 6, "greedy takes the lowest of equal ids");
    CHECK(one(0) == 6, "temperature 0");
    sampler.options.top_p = 0;
    CHECK(one(1) == 6, "top-p 0");
    sampler.options.top_p = 1, sampler.options.top_k = 1;
    CHECK(one(1) == 6, "top-k 1");
    sampler.options.top_k = 0, sampler.options.min_p = 1;
    CHECK(logits[one(1)] == 6, "min-p 1");
    sampler.options.min_p = 0, sampler.options.typical = 0.5f;
    CHECK(one(1) >= 0, "typical");
    for (int i = 0; i < VOCAB; i++) logits[i] = i == 123 ? 0 : -INFINITY;
    CHECK(one(1) == 123, "all but one forbidden");
    logits[123] = -INFINITY;
    CHECK(one(1) == -1, "all forbidden");
    logits[5] = 1, logits[200] = NAN;
    CHECK(one(1) == -1, "NaN");
    logits[200] = INFINITY;
    CHECK(one(1) == -1, "infinity");
    logits[200] = 2;
    LogitBias bias[] = {{200, -INFINITY}};
    sampler.bias = bias, sampler.n_bias = 1;
    CHECK(one(1) == 5, "bias");
    sampler.n_bias = 0;
    // Excluding top choices: with probability 1 only the least of those above the threshold stays on top.
    for (int i = 0; i < VOCAB; i++) logits[i] = i < 3 ? (float) -i : -100;
    sample_defaults(&sampler.options);
    sampler.options.xtc_probability = 1, sampler.options.top_k = 0;
    CHECK(one(0) == 1, "xtc leaves the last one above 0.1: %d", one(0));
    // Log-probabilities are the model's own, whatever is added afterwards.
    Candidate best[2];
    memcpy(copy, logits, sizeof copy);
    CHECK(log_probabilities(&sampler, copy, 2, best) == 2 && best[0].id == 0 && best[1].id == 1, "the two likeliest");
    double all = log(1 + exp(-1) + exp(-2));
    CHECK(fabs(best[1].p + 1 + all) < 1e-5 && fabs(log_probability(&sampler, 2) + 2 + all) < 1e-5, "log-probabilities");
    static const char *const names[] = {
        "penalties", "dry", "top_k", "typ_p", "top_p", "min_p", "temperature", "xtc", "top_n_sigma"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(sampler_named(names[i], strlen(names[i])) >= 0, "%s", names[i]);
    CHECK(sampler_named("top", 3) < 0, "top");
}

// DRY against its definition, with every match counted anew.
static void dry(void) {
    for (int round = 0; round < 3000; round++) {
        int32_t text[100];
        int n = (int) (uniform() * 100), kinds = 1 + (int) (uniform() * 6),
            last_n = uniform() < 0.5 ? -1 : (int) (uniform() * 120);
        for (int i = 0; i < n; i++) text[i] = (int32_t) (uniform() * kinds);
        sample_defaults(&sampler.options);
        SampleOptions *o = &sampler.options;
        o->dry_multiplier = 0.8f, o->dry_allowed_length = 1 + (int) (uniform() * 4), o->dry_last_n = last_n;
        sampler.breaks[5] = uniform() < 0.5;
        memset(logits, 0, sizeof logits);
        memcpy(copy, logits, sizeof copy);
        CHECK(sample(&sampler, copy, text, n) >= 0, "%s", complaint());
        int first = last_n < 0 || last_n > n ? 0 : n - last_n;
        for (int id = 0; id < kinds; id++) {
            int longest = 0;
            for (int i = first; i < n; i++) { // the text before i ends as the whole text does
                int k = 0;
                while (i - 1 - k >= first && text[i - 1 - k] == text[n - 1 - k] && !sampler.breaks[text[n - 1 - k]])
                    k++;
                longest = text[i] == id && k > longest ? k : longest;
            }
            double e = longest >= o->dry_allowed_length
                ? 0.8 * pow(1.75, fmin(longest - o->dry_allowed_length, 88 / log(1.75)))
                : 0;
            CHECK(fabs(copy[id] + e) <= 1e-5 * (1 + e), "round %d: token %d, a repetition of %d: %g", round, id,
                longest, (double) copy[id]);
        }
    }
    sampler.breaks[5] = 0;
}

// One step of mirostat by its paper: what is left, and where mu goes.
static void mirostat_steps(void) {
    for (int round = 0; round < 4000; round++) {
        SampleOptions o;
        sample_defaults(&o);
        o.greedy = false, o.temp = (float) (0.3 + uniform()), o.mirostat = 1 + round % 2;
        o.mirostat_ent = (float) (0.5 + 5 * uniform()), o.mirostat_lr = (float) (0.3 * uniform());
        o.seed = (uint64_t) round;
        sampler_use(&sampler, &o);
        some_logits();
        memcpy(copy, logits, sizeof copy);
        int32_t id = sample(&sampler, copy, NULL, 0);
        CHECK(id >= 0, "%s", complaint());
        double mu = 2 * o.mirostat_ent, tb = 0, tt = 0;
        n_left = 0, edge = false;
        for (int i = 0; i < VOCAB; i++)
            if (logits[i] > -INFINITY) c[n_left++] = (Slow){i, logits[i] / o.temp, 0};
        resort();
        int k = 0;
        if (o.mirostat == 1) {
            for (int i = 0; i < 99 && i + 1 < n_left; i++) {
                double step = log((i + 2.0) / (i + 1.0));
                tb += step * log(c[i].p / c[i + 1].p), tt += step * step;
            }
            double s = tb / tt, fits = pow((s - 1) * pow(2, mu) / (1 - pow(VOCAB, 1 - s)), 1 / s);
            edge |= fabs(fits - rint(fits)) < 1e-2 || fabs(s - 1) < 1e-2 || !(fits < 1e6);
            k = fits < 1 ? 1 : fits > n_left ? n_left : (int) fits;
        } else {
            while (k < n_left && (c[k].x == c[0].x || near(mu, -log2(c[k].p)))) k++;
        }
        if (edge) continue;
        n_left = k;
        slow_softmax(c, n_left);
        CHECK(sampler.n == n_left, "mirostat %d, round %d: %d left, expected %d", o.mirostat, round, sampler.n, n_left);
        memset(expected, 0, sizeof expected);
        for (int i = 0; i < n_left; i++) expected[c[i].id] = c[i].p;
        double want = mu - o.mirostat_lr * (-log2(expected[id]) - o.mirostat_ent);
        CHECK(expected[id] > 0 && fabs(sampler.mu - want) < 1e-3, "mirostat %d: mu %g, expected %g", o.mirostat,
            (double) sampler.mu, want);
    }
}

// What a choice is drawn for, it is drawn for as often as was asked for.
static void xtc_draws(void) {
    int excluded = 0, n = 20000;
    for (int i = 0; i < VOCAB; i++) logits[i] = i < 2 ? 0 : -100;
    sample_defaults(&sampler.options);
    sampler.options.greedy = false, sampler.options.xtc_probability = 0.3f;
    for (int i = 0; i < n; i++) {
        static int32_t text[20001];
        memcpy(copy, logits, sizeof copy);
        sample(&sampler, copy, text, i);
        excluded += sampler.n == 1;
    }
    CHECK(abs(excluded - n * 3 / 10) < 5 * (int) sqrt(n * 0.21), "xtc of 0.3: %d of %d", excluded, n);
}

// Mirostat keeps the mean surprise at what was asked for.
static void mirostat(void) {
    for (int version = 1; version <= 2; version++) {
        SampleOptions o;
        double surprise = 0;
        static int32_t text[4000];
        sample_defaults(&o);
        o.greedy = false, o.temp = 1, o.mirostat = version, o.mirostat_ent = 3;
        sampler_use(&sampler, &o);
        for (int i = 0; i < 4000; i++) {
            for (int k = 0; k < VOCAB; k++) logits[k] = (float) (-1.2 * log(k + 1.0));
            int32_t id = sample(&sampler, logits, text, i);
            CHECK(id >= 0, "%s", complaint());
            for (int k = 0; k < sampler.n; k++)
                if (sampler.list[k].id == id) surprise -= log2(sampler.list[k].p) / 4000;
        }
        CHECK(fabs(surprise - 3) < 0.15, "mirostat %d: mean surprise %g bits", version, surprise);
    }
}

int main(void) {
    void *memory = malloc((size_t) sampler_bytes(VOCAB, 100));
    if (!memory) return 1;
    sampler_init(&sampler, VOCAB, 100, memory);
    for (int i = 0; i < 20000; i++) compare(i);
    CHECK(edges_met < 2000, "%d rounds were at an edge of rounding", edges_met);
    draws();
    edges();
    dry();
    mirostat_steps();
    mirostat();
    xtc_draws();
    free(memory);
    return 0;
}
