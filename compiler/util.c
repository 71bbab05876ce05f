// Memory, strings, text output, files: what every other file of the compiler stands on (failing and progress: fail.c).
// In: nothing but the system. Out: services that either work or end the run with one message, so that no caller
// ever tests for "out of memory" or "disk full". The run's state (guard, things to clean up) is the only global state.
#define _GNU_SOURCE
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// ---- memory ----

typedef struct Block Block;
struct Block {
    Block *next;
    size_t used, size; // of what follows the header
    size_t pad;        // keeps the payload aligned to 16 bytes
};

struct Arena {
    Block *block;
    size_t next_size;
};

Arena *arena_new(void) {
    Arena *a = calloc(1, sizeof *a);
    if (!a) fail("out of memory; the compiler needs a few hundred bytes more");
    a->next_size = 16 << 10;
    return a;
}

void arena_free(Arena *a) {
    if (!a) return;
    for (Block *b = a->block, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

// Blocks double up to 4 MiB; something larger than the next block gets one of its own, behind the current one.
static Block *arena_block(Arena *a, size_t size) {
    size_t room = size > a->next_size ? size : a->next_size;
    Block *b = calloc(1, sizeof *b + room);
    if (!b) fail("out of memory: %zu bytes more were needed; free some memory or raise the limit", room);
    b->size = room;
    if (size > a->next_size && a->block) {
        b->next = a->block->next;
        a->block->next = b;
    } else {
        b->next = a->block;
        a->block = b;
        if (a->next_size < (4 << 20)) a->next_size *= 2;
    }
    return b;
}

void *arena_alloc(Arena *a, size_t size) {
    if (size > SIZE_MAX / 4) fail("out of memory: a single block of %zu bytes was asked for", size);
    size = size ? (size + 15) & ~(size_t) 15 : 16;
    Block *b = a->block;
    if (!b || b->size - b->used < size) b = arena_block(a, size);
    void *p = (char *) (b + 1) + b->used;
    b->used += size;
    return p;
}

void *arena_alloc_n(Arena *a, size_t n, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        fail("out of memory: %zu elements of %zu bytes were asked for", n, size);
    return arena_alloc(a, total);
}

void *arena_grow(Arena *a, void *old, size_t n, size_t size) {
    void *p = arena_alloc_n(a, n ? n * 2 : 8, size);
    if (n) memcpy(p, old, n * size);
    return p;
}

// ---- strings ----

Str str(const char *z) {
    return z ? (Str){z, strlen(z)} : (Str){"", 0};
}

Str str_line(Str *text) {
    const char *end = memchr(text->p, '\n', text->n);
    Str line = {text->p, end ? (size_t) (end - text->p) + 1 : text->n};
    text->p += line.n, text->n -= line.n;
    return line;
}

bool is_c_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool str_starts(Str a, const char *z) {
    size_t n = strlen(z);
    return a.n >= n && (n == 0 || memcmp(a.p, z, n) == 0);
}

bool str_ends(Str a, const char *z) {
    size_t n = strlen(z);
    return a.n >= n && (n == 0 || memcmp(a.p + a.n - n, z, n) == 0);
}

int str_cmp(Str a, Str b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

Str str_dup(Arena *a, Str s) {
    char *p = arena_alloc(a, s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return (Str){p, s.n};
}

const char *str_z(Arena *a, Str s) {
    return str_dup(a, s).p;
}

Str str_fmt(Arena *a, const char *fmt, ...) {
    char small[256];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    char *p = arena_alloc(a, (size_t) n + 1);
    if ((size_t) n < sizeof small) memcpy(p, small, (size_t) n);
    else vsnprintf(p, (size_t) n + 1, fmt, again);
    va_end(again);
    return (Str){p, (size_t) n};
}

// The bytes of the well-formed character at p (no surrogates, nothing overlong, at most U+10FFFF); 0: it is none.
static size_t utf8_len(const unsigned char *p, size_t n) {
    unsigned c = p[0];
    if (c < 0x80) return 1;
    size_t len = c >= 0xC2 && c <= 0xDF ? 2 : c >= 0xE0 && c <= 0xEF ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
    if (len == 0 || len > n) return 0;
    unsigned least = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80; // overlong below
    unsigned most = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;  // surrogates, or past U+10FFFF, above
    if (p[1] < least || p[1] > most) return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return len;
}

bool utf8_valid(const char *p, size_t n) {
    const unsigned char *u = (const unsigned char *) p;
    size_t i = 0;
    while (i < n) {
        uint64_t word;
        if (n - i >= 8) { // plain ASCII, eight bytes at a time
            memcpy(&word, u + i, 8);
            if (!(word & 0x8080808080808080u)) {
                i += 8;
                continue;
            }
        }
        size_t len = utf8_len(u + i, n - i);
        if (len == 0) return false;
        i += len;
    }
    return true;
}

// Edits that turn a into b, for names: both are cut to 63 bytes.
int edit_distance(Str a, Str b) {
    size_t an = a.n < 63 ? a.n : 63, bn = b.n < 63 ? b.n : 63;
    int row[64];
    for (size_t j = 0; j <= bn; j++) row[j] = (int) j;
    for (size_t i = 1; i <= an; i++) {
        int diagonal = row[0];
        row[0] = (int) i;
        for (size_t j = 1; j <= bn; j++) {
            int best = diagonal + (a.p[i - 1] != b.p[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[bn];
}

const char *str_show(Arena *a, Str s) {
    enum { most = 80 };
    char *p = arena_alloc(a, most + 8);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char) s.p[i];
        char piece[8];
        if (c == '\n') strcpy(piece, "\\n");
        else if (c == '\t') strcpy(piece, "\\t");
        else if (c == '\\' || c == '"' || c == '\'') snprintf(piece, sizeof piece, "\\%c", c);
        else if (c < 0x20 || c >= 0x7F) snprintf(piece, sizeof piece, "\\x%02x", c);
        else snprintf(piece, sizeof piece, "%c", c);
        size_t len = strlen(piece);
        if (n + len > most - 3 && (i + 1 < s.n || n + len > most)) { // something is left out
            strcpy(p + n, "...");
            return p;
        }
        memcpy(p + n, piece, len);
        n += len;
    }
    return p;
}

// Bytes of the character at p, 0 if it may not be printed as it is: controls (U+0000 .. 1F, 7F .. 9F), what has no
// width or turns the direction of writing (U+061C, 200B .. 200F, 2028 .. 202E, 2060 .. 206F, FEFF), and what is no
// UTF-8.
static size_t printable(const char *p, size_t n) {
    const unsigned char *c = (const unsigned char *) p;
    size_t len = c[0] < 0x80 ? 1 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : 4;
    if (len > n || !utf8_valid(p, len)) return 0;
    uint32_t u = len == 1 ? c[0] : c[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) u = u << 6 | (c[i] & 0x3F);
    bool control = u < 0x20 || (u >= 0x7F && u < 0xA0) || u == 0xFEFF;
    bool turns =
        u == 0x61C || (u >= 0x200B && u <= 0x200F) || (u >= 0x2028 && u <= 0x202E) || (u >= 0x2060 && u <= 0x206F);
    return control || turns ? 0 : len;
}

Str str_plain(Arena *a, Str s) {
    enum { most = 200 };
    char *p = arena_alloc(a, most + 8);
    size_t n = 0;
    for (size_t i = 0, len; i < s.n; i += len ? len : 1) {
        len = printable(s.p + i, s.n - i);
        if (n + 4 > most) {
            memcpy(p + n, "...", 3);
            return (Str){p, n + 3};
        }
        if (len) memcpy(p + n, s.p + i, len);
        else p[n] = '?';
        n += len ? len : 1;
    }
    return (Str){p, n};
}

Str str_c(Arena *a, Str s) {
    size_t size;
    if (__builtin_mul_overflow(s.n, 4, &size)) fail("out of memory: a text of %zu bytes", s.n);
    char *p = arena_alloc(a, size + 3), *q = p;
    *q++ = '"';
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char) s.p[i];
        char before = i ? s.p[i - 1] : ' ', after = i + 1 < s.n ? s.p[i + 1] : ' ';
        bool trigraph = c == '?' && (before == '?' || after == '?');
        bool comment = c == '*' || (c == '/' && (before == '/' || after == '/' || before == '*' || after == '*'));
        bool plain = c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && !trigraph && !comment;
        if (plain) *q++ = (char) c;
        else if (c == '\n') *q++ = '\\', *q++ = 'n';
        else q += sprintf(q, "\\%03o", c);
    }
    *q++ = '"';
    return (Str){p, (size_t) (q - p)};
}

uint64_t hash64(const void *p, size_t n, uint64_t seed) {
    const unsigned char *u = p;
    uint64_t h = seed ^ (n * 0x9E3779B97F4A7C15u);
    while (n > 0) {
        uint64_t word = 0;
        size_t k = n < 8 ? n : 8;
        if (k == 8) memcpy(&word, u, 8);
        else
            for (size_t i = 0; i < k; i++) word |= (uint64_t) u[i] << (8 * i);
        h = (h ^ word) * 0xBF58476D1CE4E5B9u;
        h ^= h >> 29;
        u += k;
        n -= k;
    }
    h = (h ^ h >> 32) * 0x94D049BB133111EBu;
    return h ^ h >> 29;
}

// ---- output ----

Out out_new(Arena *a) {
    return (Out){.arena = a, .bol = true};
}

static void out_room(Out *o, size_t n) {
    if (o->cap - o->n >= n) return;
    size_t cap = o->cap ? o->cap * 2 : 1024;
    while (cap - o->n < n) cap *= 2;
    char *p = arena_alloc(o->arena, cap);
    if (o->n) memcpy(p, o->p, o->n);
    o->p = p;
    o->cap = cap;
}

void out_str(Out *o, Str s) {
    for (size_t i = 0; i < s.n;) {
        if (o->bol && s.p[i] != '\n' && o->indent > 0) { // no white space on empty lines
            size_t pad = (size_t) o->indent * 4;
            out_room(o, pad);
            memset(o->p + o->n, ' ', pad);
            o->n += pad;
        }
        const char *end = memchr(s.p + i, '\n', s.n - i);
        size_t len = end ? (size_t) (end - s.p) - i + 1 : s.n - i;
        out_room(o, len);
        memcpy(o->p + o->n, s.p + i, len);
        o->n += len;
        o->bol = end != NULL;
        i += len;
    }
}

void out(Out *o, const char *fmt, ...) {
    char small[512];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if ((size_t) n < sizeof small) out_str(o, (Str){small, (size_t) n});
    else {
        char *p = arena_alloc(o->arena, (size_t) n + 1);
        vsnprintf(p, (size_t) n + 1, fmt, again);
        out_str(o, (Str){p, (size_t) n});
    }
    va_end(again);
}

Str out_text(const Out *o) {
    return o->n ? (Str){o->p, o->n} : S("");
}

// ---- cleaning up ----
// What must not outlive the run: temporary files and the run's folder. Removed at exit, after a failure and on a
// signal, so the table is plain memory that a signal handler can walk.

typedef struct {
    char path[1024];
    volatile sig_atomic_t used;
} Cleanup;
static Cleanup cleanups[64];
static char temp_path[1024];
static volatile sig_atomic_t have_temp;
static pid_t owner; // a forked child that exits must not clean up after its parent

enum { MAX_COMMANDS = 8 };
static volatile pid_t command[MAX_COMMANDS]; // groups that run; 0: free

static void kill_commands(void) {
    for (int i = 0; i < MAX_COMMANDS; i++)
        if (command[i]) {
            kill(-command[i], SIGKILL);
            while (waitpid(command[i], NULL, 0) < 0 && errno == EINTR) {}
            command[i] = 0;
        }
}

// By a child, because a signal handler may fork and exec but may not walk a folder.
static void remove_tree(const char *path) {
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", "--", path, (char *) NULL);
        _exit(127);
    }
    if (pid > 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
    }
}

void cleanup_all(void) {
    if (getpid() != owner) return;
    kill_commands();
    for (int i = 0; i < COUNT(cleanups); i++)
        if (cleanups[i].used) {
            if (unlink(cleanups[i].path) && errno == EISDIR) remove_tree(cleanups[i].path);
            cleanups[i].used = 0;
        }
    if (have_temp) {
        have_temp = 0;
        remove_tree(temp_path);
    }
}

static void on_signal(int sig) {
    static const char message[] = "error: interrupted; nothing was left half written\n";
    ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);
    (void) ignored;
    cleanup_all();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void cleanup_start(void) {
    if (owner == getpid()) return;
    if (owner) { // a child: what its parent has made is not its own
        for (int i = 0; i < COUNT(cleanups); i++) cleanups[i].used = 0;
        for (int i = 0; i < MAX_COMMANDS; i++) command[i] = 0;
        have_temp = 0;
    } else {
        atexit(cleanup_all);
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
        for (int i = 0; i < COUNT(signals); i++)
            if (signal(signals[i], on_signal) == SIG_IGN) signal(signals[i], SIG_IGN); // as nohup wants it
    }
    owner = getpid();
}

void cleanup_path(const char *path) {
    cleanup_start();
    if (strlen(path) >= sizeof cleanups[0].path)
        fail("the path '%.60s...' is longer than 1023 bytes; use a shorter one", path);
    for (int i = 0; i < COUNT(cleanups); i++)
        if (!cleanups[i].used) {
            strcpy(cleanups[i].path, path);
            cleanups[i].used = 1;
            return;
        }
    fail("more than %d temporary files at once", COUNT(cleanups));
}

void cleanup_forget(const char *path) {
    for (int i = 0; i < COUNT(cleanups); i++)
        if (cleanups[i].used && strcmp(cleanups[i].path, path) == 0) cleanups[i].used = 0;
}

const char *temp_dir(void) {
    cleanup_start();
    if (have_temp) return temp_path;
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = "/tmp";
    if (snprintf(temp_path, sizeof temp_path, "%s/ggcc-XXXXXX", base) >= (int) sizeof temp_path)
        fail("TMPDIR is longer than 1000 bytes; set a shorter one");
    sigset_t all, before;
    sigfillset(&all), sigprocmask(SIG_BLOCK, &all, &before); // until it is noted that the folder is there
    have_temp = mkdtemp(temp_path) != NULL;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!have_temp)
        fail("no folder for temporary files could be made in '%s': %s; set TMPDIR", base, strerror(errno));
    return temp_path;
}

// ---- programs run beside this one ----

// The environment, with another place for temporary files.
static char **environment(Arena *a, const char *dir) {
    int n = 0, to = 0;
    while (environ[n]) n++;
    char **env = NEWN(a, char *, n + 2);
    for (int i = 0; i < n; i++)
        if (strncmp(environ[i], "TMPDIR=", 7)) env[to++] = environ[i];
    env[to] = (char *) str_z(a, str_fmt(a, "TMPDIR=%s", dir));
    return env;
}

int command_start(const char *const *argv, const char *dir, const char *log, int *pid) {
    int free_one = 0;
    cleanup_start();
    while (free_one < MAX_COMMANDS && command[free_one]) free_one++;
    if (free_one == MAX_COMMANDS) fail("internal: more than %d commands at once", MAX_COMMANDS);
    Arena *a = arena_new();
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    sigset_t all, before;
    sigfillset(&all), sigprocmask(SIG_BLOCK, &all, &before); // until it is noted that it runs
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &before);
    pid_t child;
    int e = posix_spawnp(&child, argv[0], &files, &how, (char *const *) argv, environment(a, dir));
    if (!e) *pid = command[free_one] = child;
    sigprocmask(SIG_SETMASK, &before, NULL);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    arena_free(a);
    return e;
}

int command_wait(int pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) fail("lost a command that was running: %s", strerror(errno));
    for (int i = 0; i < MAX_COMMANDS; i++)
        if (command[i] == pid) command[i] = 0;
    return status;
}

// ---- files ----

static int open_input(const char *path, struct stat *st) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail("%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(fd, st) < 0) fail("%s: cannot be examined: %s", path, strerror(errno));
    if (S_ISDIR(st->st_mode)) {
        close(fd);
        fail("%s: is a folder; a file was expected", path);
    }
    return fd;
}

// A mapped file that shrinks under us raises SIGBUS where it is read.
static void on_bus(int sig) {
    static const char message[] =
        "error: an input file was cut short while it was read; leave it alone during the run\n";
    ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);
    (void) ignored;
    (void) sig;
    cleanup_all();
    _exit(1);
}

Str file_map(const char *path) {
    struct stat st;
    int fd = open_input(path, &st);
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        fail("%s: is not a regular file; it is mapped, so a pipe or device will not do", path);
    }
    if (st.st_size == 0) {
        close(fd);
        return S("");
    }
    void *p = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int reason = errno;
    close(fd);
    if (p == MAP_FAILED) fail("%s: cannot be mapped (%lld bytes): %s", path, (long long) st.st_size, strerror(reason));
    signal(SIGBUS, on_bus);
    return (Str){p, (size_t) st.st_size};
}

void file_unmap(Str s) {
    if (s.n) munmap((void *) (uintptr_t) s.p, s.n);
}

// Pipes are read too, so the size is not trusted; the copy ends with a NUL that is not counted.
Str file_read(Arena *a, const char *path) {
    bool from_stdin = strcmp(path, "-") == 0;
    struct stat st;
    int fd = from_stdin ? STDIN_FILENO : open_input(path, &st);
    size_t cap = !from_stdin && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t) st.st_size + 2 : 64 << 10, n = 0;
    char *p = arena_alloc(a, cap);
    for (;;) {
        ssize_t got = read(fd, p + n, cap - 1 - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("%s: cannot be read: %s", from_stdin ? "stdin" : path, strerror(errno));
        if (got == 0) break;
        n += (size_t) got;
        if (n == cap - 1) {
            p = arena_grow(a, p, cap, 1);
            cap *= 2;
        }
    }
    if (!from_stdin) close(fd);
    p[n] = 0;
    return (Str){p, n};
}

struct FileOut {
    int fd;
    uint64_t pos; // bytes written so far, those in buf included
    size_t n;
    char path[1024], temp[1064];
    char buf[256 << 10];
};

FileOut *file_create(const char *path) {
    struct stat st;
    char temp[sizeof((FileOut *) 0)->temp];
    if (strlen(path) >= sizeof((FileOut *) 0)->path)
        fail("the path '%.60s...' is longer than 1023 bytes; use a shorter one", path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) fail("%s: is a folder; name a file to write", path);
    bool direct = stat(path, &st) == 0 && !S_ISREG(st.st_mode); // a device or pipe is written to, never replaced
    snprintf(temp, sizeof temp, direct ? "%s" : "%s.%ld.tmp", path, (long) getpid());
    if (!direct) unlink(temp);
    int fd = open(temp, direct ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) fail("%s: cannot be written: %s", path, strerror(errno));
    if (!direct) cleanup_path(temp);
    FileOut *f = calloc(1, sizeof *f);
    if (!f) fail("out of memory: %zu bytes for an output buffer", sizeof *f);
    f->fd = fd;
    strcpy(f->path, path);
    strcpy(f->temp, temp);
    return f;
}

static void write_all(FileOut *f, const char *p, size_t n) {
    while (n > 0) {
        ssize_t put = write(f->fd, p, n < (1u << 30) ? n : 1u << 30);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            int reason = put < 0 ? errno : ENOSPC;
            fail("%s: cannot be written (%llu bytes so far): %s", f->path, (unsigned long long) f->pos,
                strerror(reason));
        }
        p += put;
        n -= (size_t) put;
    }
}

void file_write(FileOut *f, const void *p, size_t n) {
    f->pos += n;
    if (n < sizeof f->buf - f->n) {
        if (n) memcpy(f->buf + f->n, p, n);
        f->n += n;
        return;
    }
    write_all(f, f->buf, f->n);
    f->n = 0;
    if (n < sizeof f->buf) {
        memcpy(f->buf, p, n);
        f->n = n;
    } else write_all(f, p, n);
}

uint64_t file_pos(const FileOut *f) {
    return f->pos;
}

const char *file_temp_path(const FileOut *f) {
    return f->temp;
}

void file_commit(FileOut *f, bool executable) {
    write_all(f, f->buf, f->n);
    if (executable && strcmp(f->temp, f->path) != 0) {
        mode_t mask = umask(0);
        umask(mask);
        if (fchmod(f->fd, 0777 & ~mask) < 0) fail("%s: cannot be made executable: %s", f->path, strerror(errno));
    }
    if (close(f->fd) < 0) fail("%s: cannot be written: %s", f->path, strerror(errno));
    if (strcmp(f->temp, f->path) != 0 && rename(f->temp, f->path) < 0)
        fail("%s: cannot be put in place: %s", f->path, strerror(errno));
    cleanup_forget(f->temp);
    free(f);
}
