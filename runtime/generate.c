// The generation loop. In: a program whose text has at least one token that was not evaluated. Out: more tokens, and
// their text as it comes, whole characters only.
//
// The last token made is left for the next call to evaluate, so that a text that was saved goes on exactly as if it
// had not been. Stop texts may be spread over tokens: what could be the beginning of one is held back.
#define _GNU_SOURCE
#include "generate.h"
#include "error.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

typedef struct {
    Program *p;
    const GenerateOptions *o;
    Detok detok;
    size_t held; // bytes at the start of p->text that are not written yet
} Stream;

static int put_id(Stream *s, int32_t id) {
    char line[16];
    int n = snprintf(line, sizeof line, "%d\n", id);
    return s->o->write(s->o->context, line, (size_t) n);
}

// Where a stop text begins in the held bytes, or where the longest beginning of one does; `whole` says which.
static size_t find_stop(const Stream *s, bool *whole) {
    const Tokenizer *t = &s->p->tokenizer;
    size_t at = s->held;
    *whole = false;
    for (int i = 0; i < tok_n_stop(t); i++) {
        size_t n;
        const char *stop = tok_stop(t, i, &n);
        for (size_t k = 0; n && k < s->held; k++) {
            size_t rest = s->held - k, common = rest < n ? rest : n;
            if (memcmp(s->p->text + k, stop, common)) continue;
            bool all = rest >= n;
            if ((all && !*whole) || (all == *whole && k < at)) at = k, *whole = all;
            break;
        }
    }
    return at;
}

// Writes what is certain of the held bytes. 1: a stop text ended it.
static int put_text(Stream *s, bool last) {
    bool whole;
    size_t sure = find_stop(s, &whole);
    if (last && !whole) sure = s->held;
    if (sure && s->o->write(s->o->context, s->p->text, sure)) return -1;
    memmove(s->p->text, s->p->text + sure, s->held - sure);
    s->held -= sure;
    return whole;
}

static int put_token(Stream *s, int32_t id) {
    if (s->o->ids || !s->p->has_tokenizer) return put_id(s, id);
    s->held += detok_put(&s->detok, id, s->p->text + s->held);
    return put_text(s, false);
}

static int finish(Stream *s, EndReason end) {
    if (s->o->ids || !s->p->has_tokenizer || end == END_TEXT) return 0;
    s->held += detok_end(&s->detok, s->p->text + s->held);
    return put_text(s, true) < 0 ? -1 : 0;
}

static bool ends_text(const Program *p, int32_t id) {
    return p->has_tokenizer && id < tok_n_vocab(&p->tokenizer) && tok_is_eog(&p->tokenizer, id);
}

// Samples the next token, and tells what the model itself thought of it, before bias and samplers.
static int32_t next_token(Program *p, const GenerateOptions *o) {
    Candidate best[MAX_LOGPROBS];
    float *logits = p->model.logits;
    int n = o->logprobs >= 0 ? log_probabilities(&p->sampler, logits, o->logprobs, best) : 0;
    int32_t id = sample(&p->sampler, logits, state_ids(&p->state, 0), p->state.seq[0].n_ids);
    if (id >= 0 && o->logprobs >= 0 && o->tell(o->context, id, log_probability(&p->sampler, id), best, n)) return -1;
    return id;
}

int generate(Program *p, const GenerateOptions *o, Generated *g) {
    Sequence *q = &p->state.seq[0];
    Stream s = {.p = p, .o = o};
    *g = (Generated){.end = END_LIMIT, .evaluated = q->n_ids - q->n_past};
    if (q->n_ids == 0) return complain("the text is empty: there is nothing to go on from");
    if (g->evaluated == 0) { // its last token's logits are gone: evaluate it again
        if (state_truncate(&p->state, 0, q->n_ids - 1)) return -1;
        q->n_ids++;
        g->evaluated = 1;
    }
    if (p->has_tokenizer) detok_begin(&s.detok, &p->tokenizer, 0);
    double start = seconds_now(), first = start;
    if (o->limit == 0 && program_eval(p, q->n_ids - 1, false)) // for a state to be saved
        return -1;
    while (g->made != o->limit) {
        if (q->n_ids >= p->state.n_ctx) {
            g->end = END_CONTEXT;
            break;
        }
        if (p->interrupted && *p->interrupted) {
            g->end = END_INTERRUPTED;
            break;
        }
        if (program_eval(p, q->n_ids, true)) return -1;
        int32_t id = next_token(p, o);
        if (id < 0) return -1;
        if (!g->made) first = seconds_now();
        if (!o->ignore_eog && ends_text(p, id)) {
            g->end = END_TOKEN;
            break;
        }
        state_ids(&p->state, 0)[q->n_ids++] = id;
        g->made++;
        int put = put_token(&s, id);
        if (put < 0) return -1;
        if (put > 0) {
            g->end = END_TEXT;
            break;
        }
    }
    g->prompt_s = first - start;
    g->generate_s = seconds_now() - first;
    return finish(&s, g->end);
}
