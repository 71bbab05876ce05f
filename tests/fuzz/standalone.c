// The main program of a fuzzer where there is no libFuzzer: fuzz_NAME SECONDS SEED-FILE... runs every seed file, then
// mutants of them until the time is up. In: LLVMFuzzerTestOneInput from fuzz_NAME.c. Out: exit status 0, or the
// sanitizer's report, with the input that did it left in NAME.crash. The same seeds give the same sequence of inputs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { max_size = 1 << 20, max_seeds = 1000, hang_seconds = 20 };

typedef struct {
    uint8_t *p;
    size_t n;
} Bytes;

static Bytes seeds[max_seeds];
static int n_seeds;
static uint8_t input[max_size];
static size_t n_input;
static char crash_path[4096];
static uint64_t state = 0x9E3779B97F4A7C15u;

// The sanitizers end with SIGABRT, so that one handler sees every kind of failure.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "abort_on_error=1:allocator_may_return_null=1:detect_leaks=1";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) {
    return "abort_on_error=1:halt_on_error=1:print_stacktrace=1";
}

static void on_crash(int sig) {
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t put = fd < 0 ? -1 : write(fd, input, n_input);
    const char *text = put < 0 ? "\nno crash file could be written\n" : "\nthe input is in the crash file: ";
    put = write(2, text, strlen(text));
    put = write(2, crash_path, strlen(crash_path));
    text = sig == SIGALRM ? " (it took too long)\n" : "\n";
    put = write(2, text, strlen(text));
    (void) put;
    signal(sig, SIG_DFL);
    raise(sig);
}

static uint64_t rnd(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? (state >> 11) % below : 0;
}

static void read_seed(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "error: %s: cannot be opened\n", path);
        exit(1);
    }
    Bytes *s = &seeds[n_seeds];
    s->p = malloc(max_size);
    if (!s->p) exit(1);
    s->n = fread(s->p, 1, max_size, f);
    s->p = realloc(s->p, s->n + 1);
    fclose(f);
    n_seeds++;
}

static void insert(size_t at, const uint8_t *p, size_t n) {
    if (n > max_size - n_input) n = max_size - n_input;
    memmove(input + at + n, input + at, n_input - at);
    memmove(input + at, p, n);
    n_input += n;
}

// A number of 1, 2, 4 or 8 bytes becomes one that counts and offsets trip over.
static void put_number(size_t at) {
    static const uint64_t odd[] = {0, 1, 2, 3, 4, 5, 8, 9, 10, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0xFFFF,
        0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 0x1FFFFFFFFFFFFFFF, 0x2000000000000000, 0x7FFFFFFFFFFFFFFF,
        0x8000000000000000, 0xFFFFFFFFFFFFFFE0, 0xFFFFFFFFFFFFFFFF};
    uint64_t v = odd[rnd(sizeof odd / sizeof *odd)];
    size_t width = (size_t) 1 << rnd(4);
    if (width > n_input - at) width = n_input - at;
    if (rnd(3) == 0) { // or the one that is there, moved a little
        v = 0;
        memcpy(&v, input + at, width);
        v += rnd(33) - 16;
    }
    memcpy(input + at, &v, width);
}

static void mutate_once(void) {
    static uint8_t piece[256];
    size_t at = rnd(n_input), n = 1 + rnd(rnd(4) ? 8 : sizeof piece);
    if (n > n_input - at) n = n_input - at;
    const Bytes *other = &seeds[rnd((uint64_t) n_seeds)];
    switch (n_input ? rnd(9) : 8) {
    case 0: input[at] ^= (uint8_t) (1 << rnd(8)); break;
    case 1: input[at] = (uint8_t) rnd(256); break;
    case 2:
    case 3: put_number(at); break;
    case 4: // takes bytes out
        memmove(input + at, input + at + n, n_input - at - n);
        n_input -= n;
        break;
    case 5: // doubles bytes
        memcpy(piece, input + at, n);
        insert(rnd(n_input + 1), piece, n);
        break;
    case 6: // copies bytes over others of this file
        memmove(input + rnd(n_input - n + 1), input + at, n);
        break;
    case 7:
        if (rnd(8) == 0) n_input = at; // cuts the file
        break;
    case 8: // takes bytes from another file
        if (other->n == 0) break;
        size_t from = rnd(other->n), take = 1 + rnd(64);
        if (take > other->n - from) take = other->n - from;
        insert(rnd(n_input + 1), other->p + from, take);
        break;
    }
}

static void run_once(void) {
    // A copy of exactly the right size, so that a read past the end is seen.
    uint8_t *copy = malloc(n_input ? n_input : 1);
    if (!copy) exit(1);
    memcpy(copy, input, n_input);
    alarm(hang_seconds);
    LLVMFuzzerTestOneInput(copy, n_input);
    alarm(0);
    free(copy);
}

static void take_seed(const Bytes *s) {
    n_input = s->n;
    memcpy(input, s->p, s->n);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s SECONDS SEED-FILE...\n", argv[0]);
        return 2;
    }
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    snprintf(crash_path, sizeof crash_path, "%s.crash", name);
    signal(SIGABRT, on_crash);
    signal(SIGALRM, on_crash);
#if !defined(__SANITIZE_ADDRESS__)
    signal(SIGSEGV, on_crash);
    signal(SIGFPE, on_crash);
#endif
    for (int i = 2; i < argc && n_seeds < max_seeds; i++) read_seed(argv[i]);
    double end = now() + atof(argv[1]);
    uint64_t runs = 0;
    for (; runs < (uint64_t) n_seeds; runs++) {
        take_seed(&seeds[runs]);
        run_once();
    }
    for (; now() < end; runs++) {
        take_seed(&seeds[rnd((uint64_t) n_seeds)]);
        for (uint64_t i = 1 + rnd(rnd(2) ? 3 : 12); i > 0; i--) mutate_once();
        run_once();
    }
    printf("%s: %llu inputs from %d seeds\n", name, (unsigned long long) runs, n_seeds);
    for (int i = 0; i < n_seeds; i++) free(seeds[i].p);
    return 0;
}
