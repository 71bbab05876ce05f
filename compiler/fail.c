// How the compiler ends when something is wrong, and what it says on the way. In: a message, or a message and a place
// in a text. Out: `error: ..` on stderr and an exit status, or a jump to the guard of a test or fuzzer.
#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// ---- failing ----

static FailGuard guard;
static bool guarded;

static void progress_clear(void);

static _Noreturn void fail_with(int status, const char *message) {
    if (guarded) {
        guarded = false;
        guard.status = status;
        snprintf(guard.message, sizeof guard.message, "%s", message);
        longjmp(guard.jmp, 1);
    }
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "error: %s\n", message);
    exit(status);
}

#define FAIL_WITH(status)                                                                                              \
    char message[sizeof guard.message];                                                                                \
    va_list ap;                                                                                                        \
    va_start(ap, fmt);                                                                                                 \
    vsnprintf(message, sizeof message, fmt, ap);                                                                       \
    va_end(ap);                                                                                                        \
    fail_with(status, message)

_Noreturn void fail(const char *fmt, ...) {
    FAIL_WITH(1);
}

_Noreturn void fail_usage(const char *fmt, ...) {
    FAIL_WITH(2);
}

_Noreturn void fail_check(const char *fmt, ...) {
    FAIL_WITH(3);
}

enum { WINDOW = 100, MAX_CALLER = 64, SHOWN_CALLERS = 3 };

// The line of a place, as a window of at most WINDOW bytes around it, control and non-ASCII bytes as '?'.
typedef struct {
    int line;
    size_t col, at; // of the place: in the line, in the window; from 0
    char shown[WINDOW + 1];
} Window;

static Window window_of(Loc loc) {
    Window w = {.line = 1};
    size_t pos = loc.pos < loc.text.n ? loc.pos : loc.text.n, start = pos, end = pos, n = 0;
    for (size_t i = 0; i < pos; i++) w.line += loc.text.p[i] == '\n';
    while (start > 0 && loc.text.p[start - 1] != '\n') start--;
    while (end < loc.text.n && loc.text.p[end] != '\n') end++;
    w.col = pos - start;
    if (w.col > 90) start = pos - 60;
    w.at = pos - start;
    if (end - start > WINDOW) end = start + WINDOW;
    for (size_t i = start; i < end; i++) {
        unsigned char c = (unsigned char) loc.text.p[i];
        w.shown[n++] = c == '\t' ? ' ' : c < 0x20 || c >= 0x7F ? '?' : (char) c;
    }
    return w;
}

// The calls of defs that are being evaluated: an error inside is often a mistake of the caller.
static Loc caller[MAX_CALLER];
static int n_caller;

void fail_called_at(Loc loc) {
    if (n_caller < MAX_CALLER) caller[n_caller] = loc;
    n_caller++;
}

void fail_returned(void) {
    n_caller--;
}

void fail_no_callers(void) {
    n_caller = 0;
}

// What follows the first line of the message stands behind the place.
_Noreturn void fail_at(Loc loc, const char *fmt, ...) {
    char message[2048], whole[sizeof guard.message];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    char *more = strchr(message, '\n');
    if (more) *more++ = 0;
    Window w = window_of(loc);
    int n = snprintf(whole, sizeof whole, "%.1000s:%d:%zu: %s\n  %s\n  %*s^%s%s", loc.file, w.line, w.col + 1, message,
        w.shown, (int) w.at, "", more ? "\n" : "", more ? more : "");
    for (int i = n_caller, shown = 0; i-- > 0 && shown < SHOWN_CALLERS && n < (int) sizeof whole; shown++) {
        if (i >= MAX_CALLER) continue;
        w = window_of(caller[i]);
        const char *text = w.shown + strspn(w.shown, " ");
        n += snprintf(whole + n, sizeof whole - (size_t) n, "\n  called at %.200s:%d: %s", caller[i].file, w.line,
            text);
    }
    fail_with(1, whole);
}

FailGuard *fail_guard(void) {
    guarded = true;
    n_caller = 0;
    return &guard;
}

void fail_unguard(void) {
    guarded = false;
}

// ---- progress ----

bool quiet;
static bool bar_drawn;

static void progress_clear(void) {
    if (bar_drawn) fputs("\r\033[K", stderr);
    bar_drawn = false;
}

void note(const char *fmt, ...) {
    if (quiet) return;
    progress_clear();
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

// A terminal is redrawn ten times a second; elsewhere only the finished step is a line.
void progress(const char *what, uint64_t done, uint64_t total) {
    static double last;
    if (quiet) return;
    bool finished = done >= total;
    if (!isatty(STDERR_FILENO)) {
        if (finished) fprintf(stderr, "%s: %.1f MB\n", what, (double) total / 1e6);
        return;
    }
    double now = now_seconds();
    if (!finished && now - last < 0.1) return;
    last = now;
    int percent = total ? (int) (100.0 * (double) done / (double) total) : 100;
    fprintf(stderr, "\r\033[K%s: %3d%% of %.1f MB", what, percent, (double) total / 1e6);
    bar_drawn = !finished;
    if (finished) fputc('\n', stderr);
}

double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}
