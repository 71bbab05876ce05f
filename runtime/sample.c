// Sampling. In: a row of logits, the text so far, options. Out: one token. No allocation, no state between tokens: the
// random numbers are a hash of (seed, position, count), so a text that was saved and loaded goes on as it would have.
//
// Samplers are rows of one table; each narrows the candidates or changes their logits. The vocabulary is only listed
// when a sampler needs all of it: top-k and the like take their few candidates straight from the logits.
#include "sample.h"
#include "error.h"
#include <math.h>
#include <string.h>

// ---- candidates ----

static bool before(const Candidate *a, const Candidate *b) { // likelier, then lower id
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

// Restores the heap below i; its top is the least likely candidate.
static void sift(Candidate *c, int n, int i) {
    Candidate x = c[i];
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(&c[child], &c[child + 1])) child++;
        if (before(&c[child], &x)) break;
        c[i] = c[child];
    }
    c[i] = x;
}

static void heapify(Candidate *c, int n) {
    for (int i = n / 2 - 1; i >= 0; i--) sift(c, n, i);
}

static void sort_heap(Candidate *c, int n) { // likeliest first
    while (n > 1) {
        Candidate least = c[0];
        c[0] = c[--n];
        sift(c, n, 0);
        c[n] = least;
    }
}

typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourInts __attribute__((vector_size(16)));

// The first i >= begin for which x[i] <= bound does not hold (a NaN counts), or n. Most of a vocabulary is passed over
// here: four at a time, which baseline vector instructions do in one step.
static int next_above(const float *x, int begin, int n, float bound) {
    const Four bounds = {bound, bound, bound, bound};
    int i = begin;
    for (; i + 16 <= n; i += 16) {
        Four v[4];
        memcpy(v, x + i, sizeof v);
        const FourInts fits = (v[0] <= bounds) & (v[1] <= bounds) & (v[2] <= bounds) & (v[3] <= bounds);
        uint64_t half[2];
        memcpy(half, &fits, sizeof half);
        if ((half[0] & half[1]) != UINT64_MAX) break;
    }
    while (i < n && x[i] <= bound) i++;
    return i;
}

void candidates_list(Sampler *s) {
    if (s->n >= 0) return;
    s->n = 0;
    for (int i = 0; i < s->n_vocab; i++)
        if (s->logits[i] > -INFINITY) s->list[s->n++] = (Candidate){i, s->logits[i], 0};
}

void candidates_top(Sampler *s, int k) {
    int n = 0, i = 0;
    if (s->n >= 0) {
        n = k < s->n ? k : s->n;
        heapify(s->list, n);
        for (i = n; i < s->n; i++)
            if (before(&s->list[i], &s->list[0])) { // the others stay behind
                Candidate out = s->list[0];
                s->list[0] = s->list[i];
                s->list[i] = out;
                sift(s->list, n, 0);
            }
    } else {
        for (; i < s->n_vocab && n < k; i++)
            if (s->logits[i] > -INFINITY) s->list[n++] = (Candidate){i, s->logits[i], 0};
        heapify(s->list, n); // the least of the k on top: what does not beat it is out
        while (n && (i = next_above(s->logits, i, s->n_vocab, s->list[0].logit)) < s->n_vocab) {
            s->list[0] = (Candidate){i, s->logits[i], 0};
            sift(s->list, n, 0);
            i++;
        }
    }
    sort_heap(s->list, n);
    s->n = n;
}

static float greatest(const Sampler *s) {
    float max = -INFINITY;
    if (s->n < 0) {
        int32_t best = argmax(s->logits, s->n_vocab);
        return best < 0 ? max : s->logits[best];
    }
    for (int i = 0; i < s->n; i++) max = s->list[i].logit > max ? s->list[i].logit : max;
    return max;
}

// Keeps candidates with logits of at least `least`.
static void keep_from(Sampler *s, float least) {
    int n = 0;
    if (s->n < 0) {
        float below = nextafterf(least, -INFINITY);
        for (int i = 0; (i = next_above(s->logits, i, s->n_vocab, below)) < s->n_vocab; i++)
            s->list[n++] = (Candidate){i, s->logits[i], 0};
    } else {
        for (int i = 0; i < s->n; i++)
            if (s->list[i].logit >= least) s->list[n++] = s->list[i];
    }
    s->n = n;
}

// e to the x, x at most 0, four at a time: 2^n times a polynomial on the rest, which is at most half of log 2.
static Four exp_four(Four x) {
    const Four least = {-87, -87, -87, -87}, zero = {0, 0, 0, 0}, magic = zero + 12582912; // 1.5 * 2^23: rounds
    FourInts big = x > least;
    Four clamped = (Four) (((FourInts) x & big) | ((FourInts) least & ~big));
    Four shifted = clamped * 1.44269504f + magic, n = shifted - magic, f = clamped - n * 0.693359375f;
    f = f + n * 2.12194440e-4f;
    Four e = ((((f * 1.3981999507e-3f + 8.3334519073e-3f) * f + 4.1665795894e-2f) * f + 1.6666665459e-1f) * f + 0.5f);
    e = e * f * f + f + 1;
    FourInts power = ((FourInts) shifted + (127 - 0x4B400000)) << 23; // the low bits of `shifted` count n
    return (Four) ((FourInts) (e * (Four) power) & big);
}

// Four exponentials, and their sum. All candidates go through the same code: equal logits have equal probabilities.
static double exps(Candidate *c, float max) {
    const Four e = exp_four((Four){c[0].logit - max, c[1].logit - max, c[2].logit - max, c[3].logit - max});
    c[0].p = e[0], c[1].p = e[1], c[2].p = e[2], c[3].p = e[3];
    return (double) ((e[0] + e[1]) + (e[2] + e[3]));
}

void candidates_softmax(Sampler *s) {
    candidates_list(s);
    Candidate last[4] = {{0, -INFINITY, 0}, {0, -INFINITY, 0}, {0, -INFINITY, 0}, {0, -INFINITY, 0}};
    float max = greatest(s);
    double sum = 0;
    int whole = s->n & ~3, rest = s->n - whole;
    for (int i = 0; i < whole; i += 4) sum += exps(s->list + i, max);
    memcpy(last, s->list + whole, (size_t) rest * sizeof *last);
    sum += exps(last, max);
    memcpy(s->list + whole, last, (size_t) rest * sizeof *last);
    float scale = (float) (1 / sum);
    for (int i = 0; i < s->n; i++) s->list[i].p *= scale;
}

// Keeps the fewest candidates, those of the least distance first, whose probabilities add up to p (with `more`, to more
// than p). Their distance from a likelihood q is the factor between the two; q 1: the likeliest first. Quickselect by
// weight: of each cut only the side where the sum is reached is looked at again.
static void keep_mass(Sampler *s, double p, float q, bool more) {
    Candidate *c = s->list;
    int low = 0, high = s->n; // c[0 .. low) stays; the border lies in c[low .. high)
    double sum = 0;           // of c[0 .. low)
#define DISTANCE(x) ((x).p > q ? (x).p / q : q / (x).p)
#define NEARER(a, b) (DISTANCE(a) < DISTANCE(b) || (DISTANCE(a) == DISTANCE(b) && (a).id < (b).id))
    while (high - low > 1) {
        Candidate pivot = c[low + (high - low) / 2], t;
        double left = sum;
        int i = low;
        c[low + (high - low) / 2] = c[high - 1];
        for (int k = low; k < high - 1; k++) {
            if (!NEARER(c[k], pivot)) continue;
            left += c[k].p;
            t = c[k], c[k] = c[i], c[i++] = t;
        }
        c[high - 1] = c[i], c[i] = pivot;
        if (i > low && (left > p || (left == p && !more))) { // reached before the pivot
            high = i;
        } else {
            low = i, sum = left;
            if (sum + pivot.p > p || (sum + pivot.p == p && !more)) // by the pivot
                break;
            if (i + 1 == high) // never: rounding
                break;
            low = i + 1, sum += pivot.p;
        }
    }
#undef NEARER
#undef DISTANCE
    s->n = low + 1 < s->n ? low + 1 : s->n;
}

// ---- random numbers ----

static uint64_t mix(uint64_t x) { // SplitMix64's finaliser
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

double sampler_draw(Sampler *s) {
    const uint64_t golden = 0x9E3779B97F4A7C15u;
    uint64_t x = mix(s->options.seed + golden);
    x = mix(x + golden * (s->position + 1));
    x = mix(x + golden * ++s->draws);
    return (double) (x >> 11) * 0x1p-53;
}

// ---- the samplers ----

static void top_k(Sampler *s) {
    int k = s->options.top_k;
    if (k && k < (s->n < 0 ? s->n_vocab : s->n)) candidates_top(s, k);
}

// The fewest candidates, likeliest first, whose probabilities add up to p.
static void top_p(Sampler *s) {
    double p = s->options.top_p;
    if (p >= 1) return;
    candidates_softmax(s);
    // All candidates below (1 - p) / n together hold less than 1 - p, so none of them is needed.
    float least = (float) (0.5 * (1 - p) / s->n);
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].p >= least) s->list[n++] = s->list[i];
    s->n = n;
    keep_mass(s, p, 1, false);
}

static void min_p(Sampler *s) {
    if (s->options.min_p > 0) keep_from(s, greatest(s) + logf(s->options.min_p));
}

// Keeps what lies within so many standard deviations of the greatest logit.
static void top_nsigma(Sampler *s) {
    if (s->options.top_nsigma <= 0) return;
    candidates_list(s);
    double sum = 0, squares = 0;
    for (int i = 0; i < s->n; i++) sum += s->list[i].logit;
    double mean = sum / s->n;
    for (int i = 0; i < s->n; i++) squares += (s->list[i].logit - mean) * (s->list[i].logit - mean);
    keep_from(s, (float) (greatest(s) - s->options.top_nsigma * sqrt(squares / s->n)));
}

static double entropy(const Sampler *s) { // of the softmax: the surprise of x is that of the greatest and max - x
    double h = 0, sum = 0;
    float max = greatest(s), top = 0;
    for (int i = 0; i < s->n; i++) {
        float p = s->list[i].p;
        top = p > top ? p : top;
        h += (double) p * (max - s->list[i].logit);
        sum += p;
    }
    return h - log(top) * sum;
}

// Keeps the candidates whose surprise is closest to the expected one, up to a probability of `typical` together.
static void typical(Sampler *s) {
    if (s->options.typical >= 1) return;
    candidates_softmax(s);
    keep_mass(s, s->options.typical, (float) exp(-entropy(s)), true);
}

// Excludes top choices: with some probability, of all candidates above the threshold only the least likely stays.
static void xtc(Sampler *s) {
    const SampleOptions *o = &s->options;
    if (o->xtc_probability <= 0 || o->xtc_threshold > 0.5f || sampler_draw(s) >= o->xtc_probability) return;
    candidates_softmax(s);
    int n = 0, stays = -1;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].p >= o->xtc_threshold && (stays < 0 || before(&s->list[stays], &s->list[i]))) stays = i;
    for (int i = 0; i < s->n; i++)
        if (i == stays || s->list[i].p < o->xtc_threshold) s->list[n++] = s->list[i];
    s->n = n;
}

// Divides by the temperature; by a temperature that grows with the entropy when there is a range.
static void temperature(Sampler *s) {
    const SampleOptions *o = &s->options;
    double t = o->temp;
    candidates_list(s);
    if (o->dynatemp_range > 0 && s->n > 1) {
        double low = t > o->dynatemp_range ? t - o->dynatemp_range : 0, high = t + o->dynatemp_range;
        candidates_softmax(s);
        t = low + (high - low) * pow(entropy(s) / log(s->n), o->dynatemp_exponent);
    }
    if (t <= 0) {
        candidates_top(s, 1);
        return;
    }
    float by = (float) t;
    for (int i = 0; i < s->n; i++) s->list[i].logit /= by;
}

// In the usual order. Those that shape logits rather than choose apply to greedy sampling too.
static const struct {
    const char *name;
    void (*apply)(Sampler *s);
    bool shapes;
} samplers[] = {
    {"penalties", sample_penalties, true},
    {"dry", sample_dry, true},
    {"top_n_sigma", top_nsigma, false},
    {"top_k", top_k, false},
    {"typ_p", typical, false},
    {"top_p", top_p, false},
    {"min_p", min_p, false},
    {"xtc", xtc, false},
    {"temperature", temperature, false},
};
enum { N_SAMPLERS = sizeof samplers / sizeof *samplers };
_Static_assert((int) N_SAMPLERS <= (int) MAX_SAMPLERS, "SampleOptions.order holds them all");

const char *sampler_name(int i) {
    return i >= 0 && i < (int) N_SAMPLERS ? samplers[i].name : NULL;
}

int sampler_named(const char *name, size_t n) {
    for (int i = 0; i < (int) N_SAMPLERS; i++)
        if (strlen(samplers[i].name) == n && !memcmp(samplers[i].name, name, n)) return i;
    return -1;
}

// ---- one token ----

int32_t argmax(const float *x, int n) {
    int32_t best = -1;
    float max = -INFINITY;
    for (int i = 0; (i = next_above(x, i, n, max)) < n; i++) {
        if (x[i] != x[i]) return -1;
        max = x[i], best = i;
    }
    return max == INFINITY ? -1 : best;
}

static void apply(Sampler *s, bool shaping) {
    const SampleOptions *o = &s->options;
    for (int i = 0; i < (o->n_order < 0 ? (int) N_SAMPLERS : o->n_order); i++) {
        int k = o->n_order < 0 ? i : o->order[i];
        if (!shaping || samplers[k].shapes) samplers[k].apply(s);
    }
}

static int32_t choose(Sampler *s) {
    candidates_softmax(s);
    double u = sampler_draw(s), sum = 0;
    for (int i = 0; i < s->n; i++)
        if ((sum += s->list[i].p) > u) return s->list[i].id;
    return s->n > 0 ? s->list[s->n - 1].id : -1; // u lies above a sum that was rounded down
}

int32_t sample(Sampler *s, float *logits, const int32_t *text, int n) {
    const SampleOptions *o = &s->options;
    s->logits = logits, s->text = text, s->n_text = n;
    s->n = -1;
    s->position = (uint64_t) n;
    s->draws = 0;
    for (int i = 0; i < s->n_bias; i++) logits[s->bias[i].id] += s->bias[i].bias;
    if (o->greedy) apply(s, true);
    int32_t id = argmax(logits, s->n_vocab);
    if (id < 0)
        return complain(
            "the logits at position %d are not numbers (NaN or infinity), or all tokens are forbidden: the model's "
            "file is damaged, its description wrong, or too much was asked of --logit-bias",
            n - 1);
    if (o->greedy) return id;
    if (o->mirostat) {
        temperature(s);
        return sample_mirostat(s);
    }
    apply(s, false);
    id = choose(s);
    return id >= 0 ? id : complain("no token is left to choose at position %d", n);
}

int log_probabilities(Sampler *s, const float *logits, int n, Candidate *best) {
    float max = -INFINITY;
    double sum = 0;
    int found = 0;
    memcpy(s->raw, logits, (size_t) s->n_vocab * sizeof *logits);
    for (int i = 0; i < s->n_vocab; i++) {
        Candidate c = {i, logits[i], 0};
        max = c.logit > max ? c.logit : max;
        if (found < n) {
            best[found++] = c;
            if (found == n) heapify(best, n);
        } else if (n && before(&c, &best[0])) {
            best[0] = c;
            sift(best, n, 0);
        }
    }
    const Four none = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    Four x, e;
    for (int i = 0; i < s->n_vocab; i += 4) {
        x = none;
        if (i + 4 <= s->n_vocab) memcpy(&x, logits + i, sizeof x);
        else memcpy(&x, logits + i, sizeof *logits * (size_t) (s->n_vocab - i));
        e = exp_four(x - max);
        sum += (double) ((e[0] + e[1]) + (e[2] + e[3]));
    }
    s->log_sum = log(sum) + max;
    heapify(best, found);
    sort_heap(best, found);
    for (int i = 0; i < found; i++) best[i].p = log_probability(s, best[i].id);
    return found;
}

float log_probability(const Sampler *s, int32_t id) {
    return (float) (s->raw[id] - s->log_sum);
}

void sample_defaults(SampleOptions *o) {
    *o = (SampleOptions){.greedy = true,
        .temp = 0.8f,
        .dynatemp_exponent = 1,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .typical = 1,
        .xtc_threshold = 0.1f,
        .repeat_last_n = 64,
        .repeat_penalty = 1,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .dry_last_n = -1,
        .mirostat_ent = 5,
        .mirostat_lr = 0.1f,
        .n_order = -1};
}

static int check_range(const char *name, double value, double low, double high, const char *range) {
    if (value >= low && value <= high) return 0;
    return complain("--%s %g is out of range: it must be %s", name, value, range);
}

int sample_check(const SampleOptions *o) {
    const double big = 1e6;
    return check_range("temp", o->temp, 0, big, "from 0 (the likeliest token) to 1000000") ||
            check_range("top-k", o->top_k, 0, 0x7fffffff, "0 (off) or more") ||
            check_range("top-p", o->top_p, 0, 1, "from 0 to 1 (off)") ||
            check_range("min-p", o->min_p, 0, 1, "from 0 (off) to 1") ||
            check_range("typical", o->typical, 0, 1, "from 0 to 1 (off)") ||
            check_range("top-nsigma", o->top_nsigma, 0, big, "from 0 (off) to 1000000") ||
            check_range("xtc-probability", o->xtc_probability, 0, 1, "from 0 (off) to 1") ||
            check_range("xtc-threshold", o->xtc_threshold, 0, 1, "from 0 to 1") ||
            check_range("dynatemp-range", o->dynatemp_range, 0, big, "from 0 (off) to 1000000") ||
            check_range("dynatemp-exp", o->dynatemp_exponent, 0, big, "from 0 to 1000000") ||
            check_range("repeat-last-n", o->repeat_last_n, -1, 0x7fffffff, "-1 (the whole text), 0 (off) or more") ||
            check_range("repeat-penalty", o->repeat_penalty, 1e-6, big, "from 0.000001 to 1000000") ||
            check_range("dry-multiplier", o->dry_multiplier, 0, big, "from 0 (off) to 1000000") ||
            check_range("dry-base", o->dry_base, 1, big, "from 1 to 1000000") ||
            check_range("dry-allowed-length", o->dry_allowed_length, 1, 0x7fffffff, "1 or more") ||
            check_range("dry-penalty-last-n", o->dry_last_n, -1, 0x7fffffff, "-1 (the whole text), 0 (off) or more") ||
            check_range("mirostat", o->mirostat, 0, 2, "0 (off), 1 or 2") ||
            check_range("mirostat-ent", o->mirostat_ent, 0, big, "from 0 to 1000000") ||
            check_range("mirostat-lr", o->mirostat_lr, 0, 1, "from 0 to 1") ||
            check_range("presence-penalty", o->presence_penalty, -big, big, "from -1000000 to 1000000") ||
            check_range("frequency-penalty", o->frequency_penalty, -big, big, "from -1000000 to 1000000")
        ? -1
        : 0;
}

uint64_t sampler_bytes(int n_vocab, int n_ctx) {
    return (uint64_t) n_vocab * (sizeof(Candidate) + sizeof(float) + sizeof(int32_t) + 1) +
        ((uint64_t) n_ctx + 1) * sizeof(int32_t);
}

void sampler_init(Sampler *s, int n_vocab, int n_ctx, void *memory) {
    SampleOptions o;
    memset(s, 0, sizeof *s);
    s->n_vocab = n_vocab;
    s->list = memory;
    s->count = (int32_t *) (void *) (s->list + n_vocab);
    s->raw = (float *) (void *) (s->count + n_vocab);
    s->match = (int32_t *) (void *) (s->raw + n_vocab);
    s->breaks = (uint8_t *) (void *) (s->match + n_ctx + 1);
    memset(s->count, 0, (size_t) n_vocab * sizeof *s->count);
    memset(s->breaks, 0, (size_t) n_vocab);
    sample_defaults(&o);
    sampler_use(s, &o);
}

void sampler_use(Sampler *s, const SampleOptions *o) {
    s->options = *o;
    s->mu = 2 * o->mirostat_ent;
}
