// Samplers that look back at the text: penalties for tokens that occurred, and DRY, which lowers the token that would
// continue a repetition, more the longer it is; and mirostat, which steers the surprise of the tokens it chose before.
// In: candidates (or all logits) and the text. Out: lower logits; mirostat's choice.
#include "error.h"
#include "sample.h"
#include <math.h>
#include <string.h>

// ---- penalties ----

static float penalised(const SampleOptions *o, float x, int count) {
    x = x <= 0 ? x * o->repeat_penalty : x / o->repeat_penalty;
    return x - ((float) count * o->frequency_penalty + o->presence_penalty);
}

static int look_back(int last_n, int n) { // the first token to look at
    return last_n < 0 || last_n > n ? 0 : n - last_n;
}

void sample_penalties(Sampler *s) {
    const SampleOptions *o = &s->options;
    if (o->repeat_penalty == 1 && o->presence_penalty == 0 && o->frequency_penalty == 0) return;
    int first = look_back(o->repeat_last_n, s->n_text);
    for (int i = first; i < s->n_text; i++) s->count[s->text[i]]++;
    for (int i = 0; i < s->n; i++) // nothing when there is no list yet
        if (s->count[s->list[i].id]) s->list[i].logit = penalised(o, s->list[i].logit, s->count[s->list[i].id]);
    for (int i = first; i < s->n_text; i++) {
        int32_t id = s->text[i];
        if (s->n < 0 && s->count[id]) s->logits[id] = penalised(o, s->logits[id], s->count[id]);
        s->count[id] = 0;
    }
}

// ---- DRY ----

// match[i] for 1 <= i < n: how many tokens before the one i places from the end equal those at the end (the
// Z-algorithm on the text read backwards), at most `limit`.
static void match_lengths(const int32_t *end, int n, int limit, int32_t *match) {
    int left = 0, right = 0; // end[-left .. -right) is known to repeat the end
    for (int i = 1; i < n; i++) {
        int k = i < right ? (match[i - left] < right - i ? match[i - left] : right - i) : 0;
        while (i + k < n && k < limit && end[-1 - k] == end[-1 - i - k]) k++;
        match[i] = k;
        if (i + k > right) left = i, right = i + k;
    }
}

void sample_dry(Sampler *s) {
    const SampleOptions *o = &s->options;
    int n = s->n_text - look_back(o->dry_last_n, s->n_text), limit = 0;
    if (o->dry_multiplier <= 0 || n <= o->dry_allowed_length) return;
    const int32_t *end = s->text + s->n_text;
    while (limit < n && !s->breaks[end[-1 - limit]]) // a repetition does not reach over a break
        limit++;
    if (limit < o->dry_allowed_length) return;
    match_lengths(end, n, limit, s->match);
    for (int i = 1; i < n; i++) // end[-i] followed those match[i] tokens
        if (s->match[i] >= o->dry_allowed_length && s->match[i] > s->count[end[-i]]) s->count[end[-i]] = s->match[i];
    double most = o->dry_base > 1 ? 88 / log(o->dry_base) : 1e9; // the factor stays a float
    for (int i = 0; i < s->n; i++) {
        int length = s->count[s->list[i].id];
        if (length)
            s->list[i].logit -=
                (float) (o->dry_multiplier * pow(o->dry_base, fmin(length - o->dry_allowed_length, most)));
    }
    for (int i = 1; i < n; i++) {
        int length = s->count[end[-i]];
        if (length && s->n < 0)
            s->logits[end[-i]] -=
                (float) (o->dry_multiplier * pow(o->dry_base, fmin(length - o->dry_allowed_length, most)));
        s->count[end[-i]] = 0;
    }
}

// ---- mirostat ----

// How many of the likeliest tokens keep the surprise near mu, if probabilities fall like a power of the rank; the power
// is estimated from the first hundred, which c holds.
static int mirostat_count(const Sampler *s, const Candidate *c, int n) {
    double tb = 0, tt = 0;
    for (int i = 0; i + 1 < n && c[i + 1].p > 0; i++) {
        double t = log((i + 2.0) / (i + 1.0)), b = log((double) c[i].p / c[i + 1].p);
        tb += t * b, tt += t * t;
    }
    double exponent = tt > 0 ? tb / tt : 1, e = exponent - 1;
    double k = pow(e * pow(2, s->mu) / (1 - pow(s->n_vocab, -e)), 1 / exponent);
    return k < 1 || k != k ? 1 : k > s->n_vocab ? s->n_vocab : (int) k;
}

// Version 1: as many of the likeliest as the estimate says. Version 2: those whose surprise is at most mu.
static void mirostat_choose(Sampler *s) {
    if (s->options.mirostat == 1) {
        enum { FIRST = 100 };
        Candidate first[FIRST];
        int all = s->n, n;
        candidates_top(s, FIRST); // moves the others, and keeps them behind
        n = s->n;
        memcpy(first, s->list, (size_t) n * sizeof *first);
        s->n = all;
        candidates_top(s, mirostat_count(s, first, n));
        return;
    }
    float least = exp2f(-s->mu), max = 0;
    int n = 0;
    for (int i = 0; i < s->n; i++) max = s->list[i].p > max ? s->list[i].p : max;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].p >= least || s->list[i].p == max) s->list[n++] = s->list[i];
    s->n = n;
}

int32_t sample_mirostat(Sampler *s) {
    const SampleOptions *o = &s->options;
    candidates_softmax(s);
    mirostat_choose(s);
    if (!s->n) return complain("no token is left to choose at position %d", s->n_text);
    candidates_softmax(s);
    double u = sampler_draw(s), sum = 0;
    int i = 0;
    while (i + 1 < s->n && (sum += s->list[i].p) <= u) i++;
    s->mu -= o->mirostat_lr * (float) (-log2(s->list[i].p) - o->mirostat_ent);
    return s->list[i].id;
}
