// The command bench. In: how many tokens of prompt (pp), of single steps (tg), and of context before them (depth).
// Out: medians and deviations over repetitions, and what starting up and memory cost. Ids are fixed, so two programs
// or two engines are measured on the same work.
#define _GNU_SOURCE
#include "error.h"
#include "generate.h"
#include "io.h"
#include "options.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

// Seconds of this process before main(): starting it is processor work, with the clock that has the resolution.
static double seconds_before_main;

typedef struct {
    double *pp, *tg; // tokens a second of each repetition
    double load_s, first_token_s;
} Times;

static int32_t fixed_id(const Program *p, int i) {
    return (int32_t) (((int64_t) i * 7919 + 101) % p->info->n_vocab);
}

// Appends n fixed tokens and evaluates them, in batches or one by one.
static int work(Program *p, int n, bool single) {
    Sequence *q = &p->state.seq[0];
    for (int left = n; left > 0;) {
        int begin = q->n_ids, count = single ? 1 : left;
        int32_t id;
        for (int i = 0; i < count; i++) {
            id = fixed_id(p, begin + i);
            if (program_append(p, &id, 1)) return -1;
        }
        if (program_eval(p, begin + count, true)) return -1;
        left -= count;
    }
    return 0;
}

static int timed(Program *p, int depth, int n, bool single, double *rate) {
    state_reset(&p->state, 0);
    if (work(p, depth, false)) return -1;
    double start = seconds_now();
    if (work(p, n, single)) return -1;
    double took = seconds_now() - start;
    *rate = n && took > 0 ? n / took : 0;
    return 0;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static double median(double *x, int n) {
    qsort(x, (size_t) n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static double deviation(const double *x, int n) { // of a sample
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    for (int i = 0; i < n; i++) squares += (x[i] - sum / n) * (x[i] - sum / n);
    return n > 1 ? sqrt(squares / (n - 1)) : 0;
}

static int print_figure(const char *name, double x) {
    return out_print(", \"%s\": ", name) || out_number(x) ? -1 : 0;
}

static int report(const Program *p, const Options *o, int pp, int tg, Times *t) {
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    double pp_dev = deviation(t->pp, o->reps), tg_dev = deviation(t->tg, o->reps);
    double pp_rate = median(t->pp, o->reps), tg_rate = median(t->tg, o->reps);
    double kv = (double) p->memory.bytes[MEM_STATE], weights = (double) p->info->weight_bytes;
    double rss = (double) usage.ru_maxrss * 1024;
    int threads = team_threads(p->team);
    if (!o->json)
        return out_print("%s (%s), %d thread%s, depth %d, %d repetitions\n", p->info->name, p->info->arch, threads,
                   threads == 1 ? "" : "s", o->depth, o->reps) ||
                out_print("pp%-6d %10.2f tokens/s  +- %.2f\n", pp, pp_rate, pp_dev) ||
                out_print("tg%-6d %10.2f tokens/s  +- %.2f\n", tg, tg_rate, tg_dev) ||
                out_print("loaded in %.1f ms, first token after %.1f ms; weights %.1f MB, state %.1f MB, at most %.1f "
                          "MB resident\n",
                    1e3 * t->load_s, 1e3 * t->first_token_s, weights / 1e6, kv / 1e6, rss / 1e6)
            ? -1
            : 0;
    return out_print("{\"model\": ") || out_string(p->info->name) || out_print(", \"arch\": ") ||
            out_string(p->info->arch) ||
            out_print(", \"threads\": %d, \"pp\": %d, \"tg\": %d, \"depth\": %d, \"reps\": %d", threads, pp, tg,
                o->depth, o->reps) ||
            print_figure("pp_tokens_per_s", pp_rate) || print_figure("tg_tokens_per_s", tg_rate) ||
            print_figure("pp_stddev", pp_dev) || print_figure("tg_stddev", tg_dev) ||
            print_figure("load_ms", 1e3 * t->load_s) || print_figure("first_token_ms", 1e3 * t->first_token_s) ||
            out_print(
                ", \"kv_bytes\": %.0f, \"weight_bytes\": %.0f, \"peak_rss_bytes\": %.0f, \"batch\": %d, \"ctx\": %d}\n",
                kv, weights, rss, p->batch, p->state.n_ctx)
        ? -1
        : 0;
}

static int measure(Program *p, const Options *o, int pp, int tg, Times *t) {
    t->load_s = seconds_before_main + seconds_now() - main_started;
    int five = p->state.n_ctx < 5 ? p->state.n_ctx : 5;
    if (work(p, five, false)) return -1;
    if (argmax(p->model.logits, p->info->n_result) < 0) return complain("the logits are not numbers (NaN or infinity)");
    t->first_token_s = seconds_before_main + seconds_now() - main_started;
    double unused; // once without the clock: pages of weights and state are touched
    if (timed(p, 0, pp < p->batch ? pp : p->batch, false, &unused) || timed(p, 0, tg ? 1 : 0, true, &unused)) return -1;
    for (int i = 0; i < o->reps; i++)
        if (timed(p, o->depth, pp, false, &t->pp[i]) || timed(p, o->depth, tg, true, &t->tg[i])) return -1;
    return report(p, o, pp, tg, t);
}

// A count that was asked for must fit the context; the usual one is lowered to it.
static int fit(const char *name, int asked, int usual, int room, int depth, int *n) {
    *n = asked >= 0 ? asked : usual;
    if (*n <= room) return 0;
    if (asked >= 0)
        return complain("--%s %d and --depth %d are more than the context of %d", name, asked, depth, room + depth);
    *n = room;
    fprintf(stderr, "note: --%s is %d here, the context holds no more\n", name, room);
    return 0;
}

int cmd_bench(const Options *o) {
    Program p;
    Times t = {0};
    struct timespec before;
    int pp, tg;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    seconds_before_main = (double) before.tv_sec + 1e-9 * (double) before.tv_nsec;
    int result = open_model(&p, o);
    if (result) return result;
    int room = p.state.n_ctx - o->depth;
    if (room < 1) return complain("--depth %d leaves no room in the context of %d", o->depth, p.state.n_ctx);
    if (fit("pp", o->pp, 512, room, o->depth, &pp) || fit("tg", o->tg, 128, room, o->depth, &tg)) return -1;
    t.pp = calloc((size_t) o->reps, sizeof *t.pp);
    t.tg = calloc((size_t) o->reps, sizeof *t.tg);
    result = t.pp && t.tg ? measure(&p, o, pp, tg, &t) : complain("no memory for %d repetitions", o->reps);
    free(t.pp);
    free(t.tg);
    program_close(&p);
    return result;
}
