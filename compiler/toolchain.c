// Runs the system's C compiler. In: a folder with model.c. Out: a program or a shared object beside it.
#define _GNU_SOURCE
#include "toolchain.h"
#include "embed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    const char *arg[64];
    int n;
} Command;

static void add(Command *c, const char *s) {
    if (c->n + 1 >= COUNT(c->arg)) fail("internal: command line too long");
    c->arg[c->n++] = s;
}

static void add_all(Command *c, const char *const *list) {
    for (; *list; list++) add(c, *list);
}

static int start(const Command *c, const char *log) {
    const char *slash = strrchr(log, '/');
    char dir[4096];
    int pid, e;
    snprintf(dir, sizeof dir, "%.*s", slash ? (int) (slash - log) : 1, slash ? log : ".");
    if ((e = command_start(c->arg, dir, log, &pid)))
        fail("cannot run %s: %s; install the package gcc (or clang), or name a compiler with --cc PATH", c->arg[0],
            strerror(e));
    return pid;
}

static void finish(int pid, const Command *c, const char *log) {
    int status = command_wait(pid);
    if (status == 0) return;
    Arena *a = arena_new();
    Str text = file_read(a, log);
    fprintf(stderr, "%.*s", FMT(text));
    fail("%s failed (%s %d); its messages stand above", c->arg[0], WIFSIGNALED(status) ? "signal" : "exit status",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static bool runs(const char *cc) {
    if (strchr(cc, '/')) return access(cc, X_OK) == 0;
    const char *path = getenv("PATH");
    for (const char *p = path ? path : ""; *p;) {
        size_t n = strcspn(p, ":");
        char file[4096];
        if (snprintf(file, sizeof file, "%.*s/%s", (int) n, p, cc) < (int) sizeof file && access(file, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

Toolchain toolchain_find(const char *cc, const char *march) {
    Toolchain t = {.cc = cc, .march = march ? march : "native"};
    if (cc) {
        if (!runs(cc))
            fail("no C compiler: --cc %s cannot be run; install the package gcc (or clang), or give another path", cc);
        return t;
    }
    const char *env = getenv("CC"), *tries[] = {env, "cc", "gcc", "clang"};
    if (env && *env && !runs(env))
        fail("no C compiler: CC=%s cannot be run (it must be one program, without options); unset it, or use --cc PATH",
            env);
    for (int i = 0; i < COUNT(tries); i++)
        if (tries[i] && *tries[i] && runs(tries[i])) {
            t.cc = tries[i];
            return t;
        }
    fail("no C compiler was found (cc, gcc, clang); install the package gcc (apt-get install gcc), or name one with "
         "--cc PATH");
}

// Sources that only programs with a chat template need; CMakeLists.txt names them, too.
static bool for_chat(const char *path) {
    static const char *const names[] = {"runtime/value", "runtime/json", "runtime/chat_"};
    for (int i = 0; i < COUNT(names); i++)
        if (!strncmp(path, names[i], strlen(names[i])) && str_ends(str(path), ".c")) return true;
    return false;
}

void write_runtime(const char *dir, bool chat) {
    Arena *a = arena_new();
    const char *runtime = str_z(a, str_fmt(a, "%s/runtime", dir));
    if (mkdir(runtime, 0777) && errno != EEXIST) fail("cannot make the folder %s: %s", runtime, strerror(errno));
    for (int i = 0; i < n_embedded; i++) {
        if (strncmp(embedded[i].path, "runtime/", 8) || (!chat && for_chat(embedded[i].path))) continue;
        FileOut *f = file_create(str_z(a, str_fmt(a, "%s/%s", dir, embedded[i].path)));
        file_write(f, embedded[i].data, embedded[i].size);
        file_commit(f, false);
    }
    arena_free(a);
}

// What must be unrolled in a kernel says so itself: -O3 would unroll every other loop over a small constant, too, which
// takes twice the time and makes nothing faster. Contraction is off so that a sum has the same bits in every kernel
// that makes it. Null pointer checks: gcc 12 rewrites some stores as offsets from address 0, and then takes the
// function that holds them for one without effects and drops calls of it.
static const char *const model_flags[] = {
    "-std=gnu11", "-O2", "-ffp-contract=off", "-fno-delete-null-pointer-checks", NULL};
static const char *const runtime_flags[] = {"-std=gnu11", "-O2", "-ffp-contract=off", NULL};
static const char *const template_flags[] = {"-std=gnu11", "-O1", NULL}; // a rendering takes no time, compiling does

static const char *in(Arena *a, const char *dir, const char *name) {
    return str_z(a, str_fmt(a, "%s/%s", dir, name));
}

static Command begin(Arena *a, const Toolchain *t, const char *dir, const char *const *flags) {
    Command c = {.n = 0};
    add(&c, t->cc);
    add_all(&c, flags);
    add(&c, str_z(a, str_fmt(a, "-I%s/runtime", dir)));
    return c;
}

// The sources of one part of the runtime: that of the chat, or all others.
static void add_runtime(Arena *a, Command *c, const char *dir, bool chat) {
    for (int i = 0; i < n_embedded; i++) {
        const char *path = embedded[i].path;
        if (!strncmp(path, "runtime/", 8) && str_ends(str(path), ".c") && for_chat(path) == chat)
            add(c, in(a, dir, path));
    }
}

static Command begin_model(Arena *a, const Toolchain *t, const Target *target, const char *dir) {
    Command c = begin(a, t, dir, model_flags);
    add_all(&c, target->flags);
    add(&c, str_z(a, str_fmt(a, "-march=%s", t->march)));
    return c;
}

// What `cc -dumpmachine` prints: prebuilt parts of the runtime are for one such machine.
static Str machine_of(Arena *a, const Toolchain *t, const char *dir) {
    Command ask = {.n = 0};
    const char *log = in(a, dir, "machine.log");
    add(&ask, t->cc), add(&ask, "-dumpmachine");
    finish(start(&ask, log), &ask, log);
    Str machine = file_read(a, log);
    while (machine.n && machine.p[machine.n - 1] == '\n') machine.n--;
    return machine;
}

static const Embedded *prebuilt(Arena *a, Str machine, bool chat) {
    Str name = str_fmt(a, "prebuilt/%.*s%s.o", FMT(machine), chat ? ".chat" : "");
    for (int i = 0; i < n_embedded; i++)
        if (str_is(name, embedded[i].path)) return &embedded[i];
    return NULL;
}

// Compilations side by side, each of one object.
typedef struct {
    Command command[4];
    const char *log[4], *object[4];
    int pid[4];
    int n;
} Jobs;

static Command *new_job(Arena *a, Jobs *jobs, const char *dir, Command c, const char *object) {
    Command *job = &jobs->command[jobs->n];
    *job = c;
    jobs->object[jobs->n] = in(a, dir, object);
    jobs->log[jobs->n++] = str_z(a, str_fmt(a, "%s/%s.log", dir, object));
    add(job, "-o"), add(job, jobs->object[jobs->n - 1]);
    return job;
}

static void start_job(Jobs *jobs) {
    int i = jobs->n - 1;
    jobs->pid[i] = start(&jobs->command[i], jobs->log[i]);
}

// One part of the runtime: the object that ggcc carries, or compiled. Its place.
static void runtime_job(Arena *a, Jobs *jobs, const Toolchain *t, Str machine, const char *dir, bool chat) {
    const Embedded *made = prebuilt(a, machine, chat);
    const char *object = chat ? "chat.o" : "runtime.o";
    if (made) {
        FileOut *f = file_create(in(a, dir, object));
        file_write(f, made->data, made->size);
        file_commit(f, false);
        return;
    }
    Command c = begin(a, t, dir, runtime_flags);
    add(&c, "-r"), add(&c, "-nostdlib");
    add_runtime(a, new_job(a, jobs, dir, c, object), dir, chat);
    start_job(jobs);
}

void compile_program(Arena *a, const Toolchain *t, const Target *target, const char *dir, const ChatCode *chat) {
    Jobs jobs = {.n = 0};
    Command c = begin_model(a, t, target, dir), link = {.n = 0};
    add(&c, "-c"), add(&c, in(a, dir, "model.c"));
    new_job(a, &jobs, dir, c, "model.o");
    start_job(&jobs);
    c = begin(a, t, dir, template_flags);
    add(&c, "-r"), add(&c, "-nostdlib");
    Command *templates = new_job(a, &jobs, dir, c, "templates.o");
    for (int i = 0; i < chat->n; i++) add(templates, in(a, dir, chat->file[i].name));
    start_job(&jobs);
    Str machine = machine_of(a, t, dir);
    runtime_job(a, &jobs, t, machine, dir, false);
    if (chat->templates) runtime_job(a, &jobs, t, machine, dir, true);
    for (int i = 0; i < jobs.n; i++) finish(jobs.pid[i], &jobs.command[i], jobs.log[i]);
    add(&link, t->cc), add(&link, in(a, dir, "model.o")), add(&link, in(a, dir, "templates.o")),
        add(&link, in(a, dir, "runtime.o"));
    if (chat->templates) add(&link, in(a, dir, "chat.o"));
    add(&link, "-o"), add(&link, in(a, dir, "program")), add(&link, "-s"), add(&link, "-pthread"), add(&link, "-lm");
    finish(start(&link, in(a, dir, "link.log")), &link, in(a, dir, "link.log"));
}

void compile_traced(Arena *a, const Toolchain *t, const Target *target, const char *dir) {
    Command c = begin_model(a, t, target, dir);
    add(&c, "-DTRACE"), add(&c, "-fPIC"), add(&c, "-shared"), add(&c, "-w"), add(&c, "-o"),
        add(&c, in(a, dir, "model.so"));
    add(&c, in(a, dir, "model.c"));
    add(&c, "-pthread"), add(&c, "-lm");
    finish(start(&c, in(a, dir, "traced.log")), &c, in(a, dir, "traced.log"));
}

Str build_command(Arena *a, const Toolchain *t, const Target *target, const char *program) {
    Out o = out_new(a);
    out(&o, "%s", t->cc);
    for (const char *const *f = model_flags; *f; f++) out(&o, " %s", *f);
    for (const char *const *f = target->flags; *f; f++) out(&o, " %s", *f);
    out(&o, " -Iruntime -march=%s model.c chat_*.c runtime/*.c -o %s -pthread -lm", t->march, program);
    return out_text(&o);
}
