// A team of threads that runs a forward together, one step after another, by claiming pieces.
//
// The whole protocol is one 64-bit ticket, (step << 32 | next piece), and a count of finished pieces. A claim is a
// compare-and-swap of the ticket, so it fails when the step is over: a thread that was taken away by the system and
// comes back late finds every step it missed closed, walks past them and joins where the others are. Nobody waits
// for threads, only for claimed pieces. The thread that finishes the last piece opens the next step.
//
// Waiting spins for a moment and then sleeps in the kernel (a futex on the step, the upper half of the ticket).
// A team of one thread touches no atomic at all.
#define _GNU_SOURCE
#include "team.h"
#include "error.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#endif

_Static_assert(
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the step is the second half of the ticket; weights are little-endian");

enum {
    LINE = 64,                // bytes of a cache line
    SPIN_STEP_NS = 50 * 1000, // how long a thread spins for the next step,
    SPIN_RUN_NS = 200 * 1000, // and for the next run: sampling and printing a token usually take less
    STACK_BYTES = 1 << 20
};

typedef struct {
    _Alignas(LINE) Worker worker;
    pthread_t thread;
    uint64_t arg[TEAM_ARG / 8];
} Member;

struct Team {
    int threads, started;
    bool crowded; // more threads than cores: spinning would only keep the others from running
    int solo;     // next piece when there is one thread
    _Alignas(LINE) _Atomic uint64_t ticket;
    _Alignas(LINE) _Atomic int done;
    _Alignas(LINE) _Atomic int step_sleepers;
    _Atomic int run_sleepers;
    // What to run next, guarded by `run`: odd while it is being written, and a reader that saw it change starts over.
    _Alignas(LINE) _Atomic uint32_t run;
    _Atomic uint32_t first_step;
    _Atomic uint32_t words;
    _Atomic uintptr_t fn; // 0: the team is closing
    _Atomic uint64_t arg[TEAM_ARG / 8];
    Member member[];
};

// ---- processor and system ----

static inline void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Results too small for a normal float become zero, as inputs too: they cost hundreds of cycles and carry nothing.
// Returns the mode before.
static uint64_t flush_denormals(void) {
#if defined(__SSE__)
    unsigned mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | 0x8040);
    return mode;
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | (uint64_t) 1 << 24));
    return mode;
#else
    return 0;
#endif
}

static void restore_denormals(uint64_t mode) {
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr((unsigned) mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
    (void) mode;
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_while(void *word, uint32_t value) {
#ifdef __linux__
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
#else
    (void) word, (void) value;
    usleep(50);
#endif
}

static void wake_all(void *word) {
#ifdef __linux__
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#else
    (void) word;
#endif
}

// ---- steps ----

static inline uint32_t ticket_step(uint64_t ticket) {
    return (uint32_t) (ticket >> 32);
}

static void *step_word(Team *t) {
    return (char *) &t->ticket + 4;
}

// Opens the step after `step`. All its pieces are done, so only this thread gets here.
static void open_next(Team *t, uint32_t step) {
    atomic_store_explicit(&t->done, 0, memory_order_relaxed);
    atomic_store(&t->ticket, (uint64_t) (step + 1) << 32);
    if (atomic_load(&t->step_sleepers)) wake_all(step_word(t));
}

int piece_claim(Worker *w, int n) {
    Team *t = w->team;
    if (t->threads == 1) return t->solo < n ? t->solo++ : -1;
    uint64_t ticket = atomic_load_explicit(&t->ticket, memory_order_acquire);
    while (ticket_step(ticket) == w->step) {
        uint32_t next = (uint32_t) ticket;
        if (n <= 0) { // nothing to do and nobody to finish it: the first who sees that opens the next step
            if (atomic_compare_exchange_strong(&t->ticket, &ticket, (uint64_t) (w->step + 1) << 32) &&
                atomic_load(&t->step_sleepers))
                wake_all(step_word(t));
            return -1;
        }
        if (next >= (uint32_t) n) return -1;
        if (atomic_compare_exchange_weak_explicit(
                &t->ticket, &ticket, ticket + 1, memory_order_acq_rel, memory_order_acquire))
            return (int) next;
    }
    return -1;
}

void piece_done(Worker *w, int n) {
    Team *t = w->team;
    if (t->threads > 1 && atomic_fetch_add_explicit(&t->done, 1, memory_order_acq_rel) + 1 == n) open_next(t, w->step);
}

void step_wait(Worker *w) {
    Team *t = w->team;
    if (t->threads == 1) {
        t->solo = 0;
        return;
    }
    int64_t until = 0;
    for (int i = 0; ticket_step(atomic_load_explicit(&t->ticket, memory_order_acquire)) == w->step; i++) {
        if (i % 64 < 63 && !t->crowded) {
            cpu_relax();
            continue;
        }
        int64_t now = t->crowded ? 1 : now_ns();
        if (!until) until = t->crowded ? 1 : now + SPIN_STEP_NS;
        if (now < until) continue;
        atomic_fetch_add(
            &t->step_sleepers, 1); // before the kernel compares the word: whoever opens the step sees one of the two
        sleep_while(step_word(t), w->step);
        atomic_fetch_sub(&t->step_sleepers, 1);
    }
    w->step++;
}

// ---- runs ----

// Until the run after `last` is there; its number.
static uint32_t run_wait(Team *t, uint32_t last) {
    int64_t until = 0;
    for (int i = 0;; i++) {
        uint32_t run = atomic_load_explicit(&t->run, memory_order_acquire);
        if (run != last && run % 2 == 0) return run;
        if (run != last || (i % 64 < 63 && !t->crowded)) {
            cpu_relax();
            continue;
        }
        int64_t now = t->crowded ? 1 : now_ns();
        if (!until) until = t->crowded ? 1 : now + SPIN_RUN_NS;
        if (now < until) continue;
        atomic_fetch_add(&t->run_sleepers, 1);
        sleep_while(&t->run, last);
        atomic_fetch_sub(&t->run_sleepers, 1);
    }
}

static void *member_main(void *p) {
    Member *me = p;
    Team *t = me->worker.team;
    flush_denormals();
    for (uint32_t run = 0;;) {
        void (*fn)(const void *, Worker *);
        run = run_wait(t, run);
        for (;;) {
            uint32_t words = atomic_load_explicit(&t->words, memory_order_relaxed);
            for (uint32_t i = 0; i < words && i < TEAM_ARG / 8; i++)
                me->arg[i] = atomic_load_explicit(&t->arg[i], memory_order_acquire);
            me->worker.step = atomic_load_explicit(&t->first_step, memory_order_acquire);
            fn = (void (*)(const void *, Worker *)) atomic_load_explicit(&t->fn, memory_order_acquire);
            uint32_t after = atomic_load_explicit(&t->run, memory_order_acquire);
            if (after == run) break;
            run = run_wait(t, run);
        }
        if (!fn) return NULL;
        fn(me->arg, &me->worker);
    }
}

static void publish(Team *t, void (*fn)(const void *, Worker *), const void *arg, size_t size) {
    uint32_t run = atomic_load_explicit(&t->run, memory_order_relaxed);
    atomic_store(&t->run, run + 1);
    for (size_t i = 0; i < size / 8; i++) {
        uint64_t word;
        memcpy(&word, (const char *) arg + 8 * i, 8);
        atomic_store_explicit(&t->arg[i], word, memory_order_release);
    }
    atomic_store_explicit(&t->words, (uint32_t) (size / 8), memory_order_release);
    atomic_store_explicit(&t->first_step, ticket_step(atomic_load(&t->ticket)), memory_order_release);
    atomic_store_explicit(&t->fn, (uintptr_t) fn, memory_order_release);
    atomic_store(&t->run, run + 2);
    if (atomic_load(&t->run_sleepers)) wake_all(&t->run);
}

void team_run(Team *t, void (*fn)(const void *arg, Worker *w), const void *arg, size_t size) {
    uint64_t mode = flush_denormals();
    if (t->threads > 1) {
        t->member[0].worker.step = ticket_step(atomic_load(&t->ticket)); // before the others can open more steps
        publish(t, fn, arg, size);
    }
    fn(arg, &t->member[0].worker);
    restore_denormals(mode);
}

uint64_t team_bytes(int threads) {
    return sizeof(Team) + (uint64_t) threads * sizeof(Member);
}

int team_threads(const Team *t) {
    return t->threads;
}

int team_open(Team *t, int threads) {
    memset(t, 0, team_bytes(threads));
    t->threads = threads;
    t->crowded = threads > cores_available();
    for (int i = 0; i < threads; i++) t->member[i].worker = (Worker){t, i, 0};
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    t->started = 1;
    for (int i = 1; i < threads; i++, t->started++) {
        int error = pthread_create(&t->member[i].thread, &attr, member_main, &t->member[i]);
        if (error) {
            pthread_attr_destroy(&attr);
            int had = t->started;
            team_close(t);
            return complain(
                "cannot start thread %d of %d (%s); use --threads %d", i + 1, threads, strerror(error), had);
        }
    }
    pthread_attr_destroy(&attr);
    return 0;
}

void team_close(Team *t) {
    if (t->threads > 1) publish(t, NULL, NULL, 0);
    for (int i = 1; i < t->started; i++) pthread_join(t->member[i].thread, NULL);
    t->started = 0;
}

// ---- how many threads ----

#ifdef __linux__
// The quota of one cgroup folder in whole cores, 0: none.
static int quota_of(const char *folder) {
    char path[4200], text[64];
    long long quota = -1, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder); // version 2: "max 100000" or "150000 100000"
    FILE *f = fopen(path, "r");
    if (f) {
        if (fgets(text, sizeof text, f) && sscanf(text, "%lld %lld", &quota, &period) != 2) quota = -1;
        fclose(f);
    } else { // version 1
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if ((f = fopen(path, "r"))) {
            if (fscanf(f, "%lld", &quota) != 1) quota = -1;
            fclose(f);
        }
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if ((f = fopen(path, "r"))) {
            if (fscanf(f, "%lld", &period) != 1) period = 0;
            fclose(f);
        }
    }
    if (quota <= 0 || period <= 0) return 0;
    return quota < period ? 1 : (int) (quota / period);
}

// The smallest quota of the folder `path` under `root` and of those above it; 0: none.
static int quota_upwards(const char *root, const char *path) {
    char folder[4096];
    int least = 0;
    if (snprintf(folder, sizeof folder, "%s%s", root, path) >= (int) sizeof folder) return 0;
    for (;;) {
        int q = quota_of(folder);
        if (q && (!least || q < least)) least = q;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t) (slash - folder) < strlen(root)) return least;
        *slash = '\0';
    }
}

static int cgroup_cores(void) {
    char line[4096];
    int least = 0;
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f)) { // "0::/path" or "4:cpu,cpuacct:/path"
        line[strcspn(line, "\n")] = '\0';
        char *kind = strchr(line, ':'), *path = kind ? strchr(kind + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        kind++;
        int q = 0;
        if (!*kind) q = quota_upwards("/sys/fs/cgroup", path);
        else if (!strncmp(kind, "cpu", 3) && (kind[3] == '\0' || kind[3] == ','))
            q = quota_upwards("/sys/fs/cgroup/cpu", path);
        if (q && (!least || q < least)) least = q;
    }
    if (f) fclose(f);
    // Inside a container the path may be the host's while the mount shows only our own folder: look there as well.
    int q = quota_of("/sys/fs/cgroup"), r = quota_of("/sys/fs/cgroup/cpu");
    if (q && (!least || q < least)) least = q;
    return r && (!least || r < least) ? r : least;
}
#endif

int cores_available(void) {
    int cores = 0;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
    int quota = cgroup_cores();
#else
    int quota = 0;
#endif
    if (cores <= 0) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        cores = n > 0 && n < MAX_THREADS ? (int) n : 1;
    }
    if (quota > 0 && quota < cores) cores = quota;
    return cores < MAX_THREADS ? cores : MAX_THREADS;
}
