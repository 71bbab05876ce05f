// The compiler's small change: memory by lifetime, counted strings, an indenting writer, and the one
// way to fail. Everything here is for a batch program: allocation never returns NULL, nothing is freed
// one by one, and the first error ends the run (or jumps to the guard that a test or fuzzer has set).
#ifndef UTIL_H
#define UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) ((int) (sizeof(a) / sizeof *(a)))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))

// ---- memory ----
// An arena hands out zeroed memory, aligned to 16 bytes, and gives everything back at once.
typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *a);
void *arena_alloc(Arena *a, size_t size);
#define NEW(a, T) ((T *) arena_alloc((a), sizeof(T)))
#define NEWN(a, T, n) ((T *) arena_alloc_n((a), (size_t) (n), sizeof(T)))
void *arena_alloc_n(Arena *a, size_t n, size_t size); // fails cleanly on overflow

// PUSH(arena, ptr, n, cap) makes room for one more element of a growable array and counts it:
//   *PUSH(a, list, n_list, cap_list) = value;
#define PUSH(a, p, n, cap)                                                                                             \
    ((n) == (cap) ? (void) ((p) = arena_grow((a), (p), (size_t) (n), sizeof *(p)), (cap) = (cap) ? (cap) *2 : 8)       \
                  : (void) 0,                                                                                          \
        &(p)[(n)++])
void *arena_grow(Arena *a, void *old, size_t n, size_t size); // room for max(8, 2 n) elements, the first n copied

// ---- strings ----
// Counted bytes, not owned, not always NUL-terminated: may hold anything a file holds.
typedef struct {
    const char *p;
    size_t n;
} Str;
#define S(lit) ((Str){"" lit, sizeof(lit) - 1})
#define FMT(s) (int) (s).n, (s).p // for "%.*s"
Str str(const char *z);           // NUL-terminated; NULL gives the empty string
static inline bool str_eq(Str a, Str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool str_is(Str a, const char *z) {
    return str_eq(a, (Str){z, z ? strlen(z) : 0});
}
bool str_starts(Str a, const char *z);
bool str_ends(Str a, const char *z);
int str_cmp(Str a, Str b);
Str str_line(Str *text);   // the first line, its end included, taken off the text
bool is_c_word(char c);    // letters, digits and _
Str str_dup(Arena *a, Str s); // the copy is NUL-terminated
Str str_fmt(Arena *a, const char *fmt, ...) PRINTF(2, 3);
const char *str_z(Arena *a, Str s);
bool utf8_valid(const char *p, size_t n);
int edit_distance(Str a, Str b); // for "did you mean"
// Text from a file as it may stand in a message: quotes, control and non-ASCII bytes escaped, at most 80 characters.
const char *str_show(Arena *a, Str s);
// Text from a file as a name to be printed: as it is, but for what is no text (controls, marks that turn the
// direction of writing, bytes that are not UTF-8: a '?' each) and beyond 200 bytes.
Str str_plain(Arena *a, Str s);
// Text as a C string literal, quotes included: newlines as \n; every byte outside printable ASCII, and every character
// that could end a string or belong to a trigraph or a comment, as a three-digit octal escape.
Str str_c(Arena *a, Str s);
uint64_t hash64(const void *p, size_t n, uint64_t seed);

// ---- numbers of texts ----
// A table that begins as {.arena = a}. Keys are not copied.
typedef struct {
    Str key;
    int value;
} LookupSlot;
typedef struct {
    Arena *arena;
    LookupSlot *slot;
    int n, cap;
} Lookup;
int lookup(const Lookup *m, Str key); // 0: it has none
int *lookup_at(Lookup *m, Str key);   // there until the next call; 0 when the key is new

// ---- output ----
// Text grows in memory; nothing is written to a file before it is whole.
typedef struct {
    Arena *arena;
    char *p;
    size_t n, cap;
    int indent; // in steps of four spaces, put before the first character of each line
    bool bol;
} Out;
Out out_new(Arena *a);
void out(Out *o, const char *fmt, ...) PRINTF(2, 3);
void out_str(Out *o, Str s); // bytes as they are, with indentation after newlines
Str out_text(const Out *o);

// ---- files ----
// A read-only mapping of a whole file; fails with the system's reason. An empty file gives n == 0.
Str file_map(const char *path);
void file_unmap(Str s);
Str file_read(Arena *a, const char *path); // "-" is stdin
// A file is written under a temporary name beside its target and renamed when whole (0, or fails).
typedef struct FileOut FileOut;
FileOut *file_create(const char *path);
void file_write(FileOut *f, const void *p, size_t n);
uint64_t file_pos(const FileOut *f);
const char *file_temp_path(const FileOut *f);
void file_commit(FileOut *f, bool executable);
void cleanup_path(const char *path); // removed when the run ends, however it ends
void cleanup_forget(const char *path);
void cleanup_all(void);     // now: before an exec
const char *temp_dir(void); // a fresh folder of this run, removed at its end
// A program run beside this one, in a process group of its own, its temporary files in `dir`; an interrupt ends the
// whole group before temp_dir is removed. command_start: 0 or an errno. command_wait: its wait status.
int command_start(const char *const *argv, const char *dir, const char *log, int *pid);
int command_wait(int pid);

// ---- failing ----
// `error: ` and one message on stderr, exit status 1. What was found, what was expected, what to do.
_Noreturn void fail(const char *fmt, ...) PRINTF(1, 2);
_Noreturn void fail_usage(const char *fmt, ...) PRINTF(1, 2); // exit status 2
_Noreturn void fail_check(const char *fmt, ...) PRINTF(1, 2); // exit status 3
// Where in a text an error is; prints `error: FILE:LINE:COL: message`, the line, a caret under the place, what stands
// behind the message's first line, and the calls that led there.
typedef struct {
    const char *file; // as the user named it
    Str text;         // the whole text
    uint32_t pos;     // byte offset
} Loc;
_Noreturn void fail_at(Loc loc, const char *fmt, ...) PRINTF(2, 3);
void fail_called_at(Loc loc); // what is evaluated from here to fail_returned() is called there
void fail_returned(void);
void fail_no_callers(void);
// Tests and fuzzers: while a guard is set, a failure stores its message and jumps there instead of exiting.
//   if (!setjmp(fail_guard()->jmp)) { ...may fail... } else puts(fail_guard()->message); fail_unguard();
typedef struct {
    jmp_buf jmp;
    int status;
    char message[4096];
} FailGuard;
FailGuard *fail_guard(void);
void fail_unguard(void);

// ---- progress ----
// Notes on stderr; `quiet` drops them. On a terminal a progress bar is redrawn in place, else a line a step.
extern bool quiet;
void note(const char *fmt, ...) PRINTF(1, 2);
void progress(const char *what, uint64_t done, uint64_t total); // bytes
double now_seconds(void);

#endif
