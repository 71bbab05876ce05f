// The team of threads under load: every piece runs exactly once and in its step, whatever the number of threads, of
// pieces (0 too) and of delays; a late thread neither disturbs nor holds up the others, also over the end of a run
// when the next one has other steps. Argument: how many runs.
#define _GNU_SOURCE
#include "../../runtime/error.h"
#include "../../runtime/team.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECES_MAX = 50, STEPS = 40 };

typedef struct {
    uint64_t seed;
    int64_t steps;
    int32_t *ran;   // [STEPS][PIECES_MAX]: how often each piece ran
    int64_t *total; // written by pieces of odd steps from those of the step before
} Work;

static uint32_t hash(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    return (uint32_t) ((x ^ x >> 27) * 0x94D049BB133111EBu >> 33);
}

static int pieces_of(uint64_t seed, int step) {
    uint32_t h = hash(seed * 1000 + (uint64_t) step);
    return h % 5 == 0 ? 0 : h % 5 == 1 ? 1 : (int) (h / 5 % PIECES_MAX);
}

static void work(const void *arg, Worker *w) {
    const Work *k = arg;
    for (int s = 0; s < k->steps; s++) {
        int n = pieces_of(k->seed, s);
        PIECES(w, n, p) {
            if (hash(k->seed + (uint64_t) (s * 64 + p)) % 97 == 0) { // a piece that takes longer
                struct timespec t = {0, 30000};
                nanosleep(&t, NULL);
            }
            if (s && pieces_of(k->seed, s - 1) > 0) // all of the step before must be visible
                k->total[s * PIECES_MAX + p] =
                    k->total[(s - 1) * PIECES_MAX] + k->total[(s - 1) * PIECES_MAX + pieces_of(k->seed, s - 1) - 1];
            else k->total[s * PIECES_MAX + p] = s + 1;
            k->ran[s * PIECES_MAX + p]++;
        }
        if (w->index && hash(k->seed + (uint64_t) (s * 7 + w->index)) % 211 == 0) { // a thread that is taken away
            struct timespec t = {0, 300000};
            nanosleep(&t, NULL);
        }
    }
}

static void check(const Work *k, int threads) {
    static int64_t expected[STEPS * PIECES_MAX];
    for (int s = 0; s < k->steps; s++)
        for (int p = 0; p < PIECES_MAX; p++) {
            int n = pieces_of(k->seed, s), before = s ? pieces_of(k->seed, s - 1) : 0;
            int64_t *row = expected + (s - 1) * PIECES_MAX;
            expected[s * PIECES_MAX + p] = before > 0 ? row[0] + row[before - 1] : s + 1;
            if (k->ran[s * PIECES_MAX + p] != (p < n) ||
                (p < n && k->total[s * PIECES_MAX + p] != expected[s * PIECES_MAX + p])) {
                printf("%d threads, seed %llu, step %d, piece %d of %d: ran %d times\n", threads,
                    (unsigned long long) k->seed, s, p, n, k->ran[s * PIECES_MAX + p]);
                exit(1);
            }
        }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void step_cost(const void *arg, Worker *w) {
    (void) arg;
    for (int s = 0; s < 20000; s++) {
        PIECES(w, 4, p) {
            __asm__ volatile("" : : "r"(p));
        }
    }
}

int main(int argc, char **argv) {
    static const int threads[] = {1, 2, 3, 5, 8};
    int runs = argc > 1 ? atoi(argv[1]) : 100;
    static int32_t ran[STEPS * PIECES_MAX];
    static int64_t total[STEPS * PIECES_MAX];
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        Team *t = aligned_alloc(64, (size_t) (team_bytes(threads[i]) + 63) / 64 * 64);
        if (!t || team_open(t, threads[i])) {
            printf("%s\n", complaint());
            return 1;
        }
        for (int r = 0; r < runs; r++) {
            Work k = {(uint64_t) r, STEPS - r % 7 * 5, ran, total};
            memset(ran, 0, sizeof ran);
            memset(total, 0, sizeof total);
            team_run(t, work, &k, sizeof k);
            check(&k, threads[i]);
            if (r % 10 == 9) { // long enough for the others to fall asleep
                struct timespec pause = {0, 1000000};
                nanosleep(&pause, NULL);
            }
        }
        if (argc > 2) {
            double start = now();
            uint64_t nothing = 0;
            team_run(t, step_cost, &nothing, sizeof nothing);
            printf("%d threads: %.0f ns a step of 4 pieces\n", threads[i], (now() - start) * 1e9 / 20000);
        }
        team_close(t);
        free(t);
    }
    return 0;
}
