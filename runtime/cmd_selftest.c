// The command selftest. In: the results stored at build time. Out: exit 0, or 3 and the name of the check that failed.
// First the values, within the tolerance; then that threads, batch sizes and cutting the text change
// no bit: each way of evaluating the same text must give the same hash of all its rows.
#define _GNU_SOURCE
#include "selftest.h"
#include "chat.h"
#include "error.h"
#include "io.h"
#include "options.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t hash; // of all rows so far
    bool compare;  // with the stored values, too
    int next;      // in selftest.check
    int failed;
} Check;

static uint64_t hash_row(uint64_t hash, const float *x, int n) {
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001B3u;
        hash ^= hash >> 31;
    }
    return hash;
}

static int compare(const SelfCheck *c, const float *x, int n_vocab) {
    int32_t top = argmax(x, n_vocab);
    if (top < 0) return complain("selftest: the logits at position %d are not numbers", c->pos);
    for (int i = 0; i < SELFTEST_PROBES; i++)
        if (!(fabsf(x[c->probe[i]] - c->value[i]) <= selftest.tolerance))
            return complain("selftest: logit %d at position %d is %.6g, stored is %.6g, the tolerance %.3g",
                c->probe[i], c->pos, (double) x[c->probe[i]], (double) c->value[i], (double) selftest.tolerance);
    if (!(x[c->top] >= x[top] - 2 * selftest.tolerance))
        return complain("selftest: the likeliest token at position %d is %d (%.6g), stored is %d (%.6g here)", c->pos,
            top, (double) x[top], c->top, (double) x[c->top]);
    return 0;
}

static int take_rows(void *context, Program *p) {
    Check *check = context;
    for (int i = 0; i < p->model.outs; i++) {
        const float *x = p->model.logits + (size_t) i * (size_t) p->info->n_result;
        check->hash = hash_row(check->hash, x, p->info->n_result);
        for (; check->compare && check->next < selftest.n_check && selftest.check[check->next].pos == p->out_pos[i];
             check->next++)
            if (compare(&selftest.check[check->next], x, p->info->n_result)) {
                check->failed = 1;
                return -1;
            }
    }
    return 0;
}

// Evaluates the stored text; `pieces` > 0: that many tokens first, then the rest.
static int evaluate(int threads, int batch, int pieces, Check *check) {
    Program p;
    Settings s = {.threads = threads, .batch = model_info.whole ? 0 : batch}; // a whole text is one batch
    uint8_t *want = malloc((size_t) selftest.n_ids);
    int result = want ? 0 : complain("no memory for %d positions", selftest.n_ids);
    if (!result)
        result = program_open_file(&p, &model_info, weights_file) || program_open(&p, &s) ||
            program_append(&p, selftest.ids, selftest.n_ids);
    if (!result) {
        memset(want, 1, (size_t) selftest.n_ids);
        p.interrupted = &interrupted;
        if (pieces > 0 && !model_info.whole) result = program_eval_rows(&p, pieces, want, take_rows, check);
        if (!result) result = program_eval_rows(&p, selftest.n_ids, want, take_rows, check);
        program_close(&p);
    }
    free(want);
    return result ? -1 : 0;
}

int cmd_selftest(const Options *o) {
    static const struct {
        const char *name;
        int threads, batch, pieces; // threads 0: as asked for
    } ways[] = {
        {"1 thread", 1, 0, 0},
        {"2 threads", 2, 0, 0},
        {"3 threads", 3, 0, 0},
        {"one token at a time", 0, 1, 0},
        {"batches of 3", 0, 3, 0},
        {"the text in two pieces", 0, 0, 1},
    };
    if (selftest.n_ids < 1) return complain("no results were stored in this program when it was built");
    Check first = {.compare = true};
    if (evaluate(o->threads, 0, 0, &first)) return first.failed ? 3 : -1;
    if (first.next != selftest.n_check) {
        complain(
            "selftest: %d of %d stored positions were not reached", selftest.n_check - first.next, selftest.n_check);
        return 3;
    }
    int n_ways = (int) (sizeof ways / sizeof *ways);
    for (int i = 0; i < n_ways; i++) {
        Check again = {0};
        if (evaluate(ways[i].threads ? ways[i].threads : o->threads,
                ways[i].batch < model_info.max_batch ? ways[i].batch : 0,
                ways[i].pieces < selftest.n_ids ? ways[i].pieces : 0, &again))
            return -1;
        if (again.hash != first.hash) {
            complain("selftest: with %s the logits have other bits", ways[i].name);
            return 3;
        }
    }
    int checks = selftest.n_check + n_ways;
    if (chat) {
        Program p;
        if (program_open_file(&p, &model_info, weights_file)) return -1;
        int rendered = chat->check(&p);
        program_close(&p);
        if (rendered < 0) return 3;
        checks += rendered;
    }
    return o->json ? out_print("{\"checks\": %d, \"failed\": 0}\n", checks) : out_print("%d checks passed\n", checks);
}
