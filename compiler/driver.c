// The compiler's stages in order, and the commands that run them to the end. In: names and options. Out: files.
#define _GNU_SOURCE
#include "driver.h"
#include "emit.h"
#include "selftest_values.h"
#include "template_commands.h"
#include "../runtime/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

// ---- stages ----

// Seconds of the processor so far: what other programs do does not count.
static double processor(void) {
    return (double) clock() / CLOCKS_PER_SEC;
}

static bool dumps(const CompileOptions *opt, const char *stage) {
    return opt->dump && !strcmp(opt->dump, stage);
}

static _Noreturn void dump_and_stop(const Out *o) {
    fwrite(o->p, 1, o->n, stdout);
    if (fflush(stdout) || ferror(stdout)) fail("cannot write to standard output: %s", strerror(errno));
    exit(0);
}

Compilation compile_graph(Arena *a, const char *model, const CompileOptions *opt) {
    double t0 = processor();
    Compilation c = {.arena = a, .gguf = gguf_open(model)};
    c.graph = graph_build(a, c.gguf, &opt->build);
    graph_check(c.graph, false);
    c.code_seconds = processor() - t0;
    if (dumps(opt, "graph")) {
        Out o = out_new(a);
        graph_print(c.graph, &o);
        dump_and_stop(&o);
    }
    return c;
}

// Programs with one hash are one program: every byte of the file, the description, the options and this compiler.
static uint64_t hash_of(const Compilation *c, const CompileOptions *opt) {
    Out o = out_new(c->arena);
    graph_print(c->graph, &o);
    out(&o, "%s %d %d %d", GGCC_VERSION, c->plan->kv_f32, c->plan->max_batch, opt->plan.no_fuse);
    uint64_t h = hash64(o.p, o.n, 1);
    for (int i = 0; i < c->gguf->n_tensor; i++) h = hash64(c->gguf->tensor[i].data, c->gguf->tensor[i].n_bytes, h);
    for (int i = 0; i < c->chat.n; i++) h = hash64(c->chat.file[i].text.p, c->chat.file[i].text.n, h);
    return hash64(c->tokenizer.p, c->tokenizer.n, h);
}

// What a program needs beside its graph. Before what takes long: here it shows whether there is a compiler at all.
static void find_tools_and_text(Compilation *c, const CompileOptions *opt) {
    c->tools = toolchain_find(opt->cc, opt->march);
    c->tokenizer = tokenizer_build(c->arena, c->gguf, &opt->tokenizer);
    c->chat = chat_code(c->arena, c->gguf, &opt->chat, c->tokenizer, opt->tokenizer.n_stop > 0);
}

// From the graph to the plan; the passes change the graph.
static void plan_from_graph(Compilation *c, const CompileOptions *opt) {
    Arena *a = c->arena;
    const Target *target = target_for(a, c->tools.cc, c->tools.march);
    double t0 = processor();
    c->plan = plan_make(c->graph, target, &opt->plan);
    c->code_seconds += processor() - t0;
    Out o = out_new(a);
    if (dumps(opt, "fused")) graph_print(c->graph, &o), dump_and_stop(&o);
    if (dumps(opt, "plan")) plan_print(c->plan, &o), dump_and_stop(&o);
    c->plan->hash = hash_of(c, opt);
}

Compilation compile_plan(Arena *a, const char *model, const CompileOptions *opt) {
    Compilation c = compile_graph(a, model, opt);
    find_tools_and_text(&c, opt);
    plan_from_graph(&c, opt);
    return c;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// What `info` prints.
static Str facts_text(const Compilation *c) {
    Arena *a = c->arena;
    Out o = out_new(a);
    const Graph *g = c->graph;
    out(&o, "target %s, inputs of products rounded to 8 bits: %s\n", c->plan->target->name,
        c->plan->target->packs ? "where packed" : "no");
    for (int i = 0; i < g->n_fact; i++)
        out(&o, "%.*s: %.*s\n", FMT(str_plain(a, g->fact[i].name)), FMT(str_plain(a, g->fact[i].note)));
    if (c->chat.templates) out(&o, "chat templates: %.*s\n", FMT(c->chat.names));
    for (int i = 0; i < g->n_ignored; i++)
        out(&o, "ignored %.*s: %.*s\n", FMT(str_plain(a, g->ignored[i].name)), FMT(str_plain(a, g->ignored[i].note)));
    return out_text(&o);
}

Compilation compile_source(Arena *a, const char *model, const CompileOptions *opt) {
    Compilation c = compile_graph(a, model, opt);
    find_tools_and_text(&c, opt);
    plan_from_graph(&c, opt);
    SelfTestValues values = selftest_values(c.plan);
    EmitOptions e = {.source_name = base_name(model), .weights_path = opt->weights, .facts = facts_text(&c)};
    e.rerank = template_rerank(c.gguf);
    e.selftest = selftest_text(a, &values);
    const char *program = c.graph->name.n &&
            strspn(str_z(a, c.graph->name), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
                c.graph->name.n &&
            c.graph->name.p[0] != '-'
        ? str_z(a, c.graph->name)
        : "program";
    double t0 = processor();
    c.source = emit_model(c.plan, &e, str_z(a, build_command(a, &c.tools, c.plan->target, program)));
    c.code_seconds += processor() - t0;
    if (dumps(opt, "source")) dump_and_stop(&(Out){.p = (char *) c.source.p, .n = c.source.n});
    return c;
}

// ---- files ----

static void write_file(const char *path, Str text) {
    FileOut *f = file_create(path);
    file_write(f, text.p, text.n);
    file_commit(f, false);
}

// model.c, the templates and the runtime.
static void write_sources(const Compilation *c, const char *dir) {
    Arena *a = c->arena;
    write_file(str_z(a, str_fmt(a, "%s/model.c", dir)), c->source);
    for (int i = 0; i < c->chat.n; i++)
        write_file(str_z(a, str_fmt(a, "%s/%s", dir, c->chat.file[i].name)), c->chat.file[i].text);
    write_runtime(dir, c->chat.templates);
}

static void pad(FileOut *f, uint64_t align) {
    static const char zero[4096];
    while (file_pos(f) % align) {
        uint64_t n = align - file_pos(f) % align;
        file_write(f, zero, n < sizeof zero ? n : sizeof zero);
    }
}

static void write_data(const Compilation *c, FileOut *f) {
    Trailer t = {.magic = TRAILER_MAGIC, .version = TRAILER_VERSION, .model = c->plan->hash};
    memcpy(t.magic, TRAILER_MAGIC, sizeof t.magic);
    pad(f, 4096);
    t.tokenizer = file_pos(f), t.tokenizer_size = c->tokenizer.n;
    file_write(f, c->tokenizer.p, c->tokenizer.n);
    pad(f, WEIGHTS_ALIGN_IN_FILE);
    t.weights = file_pos(f), t.weights_size = c->plan->weight_bytes;
    pack_weights(c->plan, f);
    pad(f, 64);
    file_write(f, &t, sizeof t);
}

static void check_space(const char *path, uint64_t need) {
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = 0;
    else strcpy(dir, ".");
    struct statvfs v;
    if (statvfs(dir, &v)) fail("cannot write %s: %s", path, strerror(errno));
    uint64_t have = (uint64_t) v.f_bavail * v.f_frsize;
    if (have < need)
        fail("%s: %llu MB are needed, but the disk has %llu MB free; free some space or choose another folder", path,
            (unsigned long long) (need >> 20), (unsigned long long) (have >> 20));
}

// Compiles into a folder of this run, then puts the program together beside its target.
static void build_at(Compilation *c, const char *path, const CompileOptions *opt) {
    Arena *a = c->arena;
    const char *dir = temp_dir();
    check_space(path, c->plan->weight_bytes + c->tokenizer.n + (4 << 20));
    write_sources(c, dir);
    double t0 = now_seconds();
    compile_program(a, &c->tools, c->plan->target, dir, &c->chat);
    Str program = file_map(str_z(a, str_fmt(a, "%s/program", dir)));
    int lines = 0;
    for (size_t i = 0; i < c->source.n; i++) lines += c->source.p[i] == '\n';
    note("compiled %d lines with %s -march=%s: %.0f KB, %.1f s", lines, c->tools.cc, c->tools.march,
        (double) program.n / 1e3, now_seconds() - t0);
    FileOut *f = file_create(path), *beside = opt->weights ? file_create(opt->weights) : NULL;
    file_write(f, program.p, program.n);
    write_data(c, beside ? beside : f);
    if (beside) file_commit(beside, false);
    file_commit(f, true);
    file_unmap(program);
}

Traced compile_for_verify(Arena *a, const char *model, const CompileOptions *opt) {
    Traced t = {.c = compile_source(a, model, opt)};
    t.spec = graph_build(a, t.c.gguf, &opt->build);
    const char *dir = temp_dir();
    write_sources(&t.c, dir);
    compile_traced(a, &t.c.tools, t.c.plan->target, dir);
    t.object = str_z(a, str_fmt(a, "%s/model.so", dir)), t.weights = str_z(a, str_fmt(a, "%s/weights", dir));
    FileOut *f = file_create(t.weights);
    pack_weights(t.c.plan, f);
    file_commit(f, false);
    return t;
}

void refuse_same_file(const char *output, const char *other, const char *what) {
    struct stat x, y;
    if (!output || !other) return;
    bool same = !strcmp(output, other) ||
        (!stat(output, &x) && !stat(other, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
    if (same) fail("%s is %s, too; give the output a path of its own", output, what);
}

static void check_outputs(const char *model, const char *path, const CompileOptions *opt) {
    const char *outputs[] = {path, opt->weights};
    for (int i = 0; i < COUNT(outputs); i++) {
        struct stat st;
        if (!outputs[i]) continue;
        if (!*outputs[i]) fail_usage("an output has an empty name");
        if (i == 0 && !stat(path, &st) && S_ISDIR(st.st_mode))
            fail("%s is a folder; a file to write is expected", path);
        refuse_same_file(outputs[i], model, "the model");
        refuse_same_file(outputs[i], opt->build.arch_file, "the description");
    }
    refuse_same_file(path, opt->weights, "the file for the weights");
}

static void note_plan(const Compilation *c, double began) {
    note("%.*s: %.*s, %lld layers, context %lld, weights %.1f MB, kernels %d, planned %.2f s (code %.0f ms)",
        FMT(c->graph->arch), FMT(str_plain(c->arena, c->graph->name)), (long long) c->graph->n_layer,
        (long long) c->graph->n_ctx, (double) c->plan->weight_bytes / 1e6, c->plan->n_kernel, now_seconds() - began,
        1e3 * c->code_seconds);
}

void cmd_build(const char *model, const char *path, const CompileOptions *opt) {
    double t0 = now_seconds();
    Arena *a = arena_new();
    check_outputs(model, path, opt);
    Compilation c = compile_source(a, model, opt);
    note_plan(&c, t0);
    build_at(&c, path, opt);
    note("%s: %.1f s", path, now_seconds() - t0);
}

void cmd_emit(const char *model, const char *dir, const CompileOptions *opt) {
    double t0 = now_seconds();
    Arena *a = arena_new();
    CompileOptions beside = *opt;
    if (!beside.weights) beside.weights = "weights.bin";
    Compilation c = compile_source(a, model, &beside);
    note_plan(&c, t0);
    bool made = mkdir(dir, 0777) == 0;
    if (!made && errno != EEXIST) fail("cannot make the folder %s: %s", dir, strerror(errno));
    if (made) cleanup_path(dir); // a folder of the user's stays
    write_sources(&c, dir);
    const char *weights =
        beside.weights[0] == '/' ? beside.weights : str_z(a, str_fmt(a, "%s/%s", dir, beside.weights));
    check_space(weights, c.plan->weight_bytes + c.tokenizer.n + (1 << 20));
    FileOut *f = file_create(weights);
    write_data(&c, f);
    file_commit(f, false);
    if (made) cleanup_forget(dir);
    note("%s: model.c, chat_*.c, runtime/ and the weights; build in that folder with\n    %.*s", dir,
        FMT(build_command(a, &c.tools, c.plan->target, "program")));
}

void cmd_explain(const char *model, const CompileOptions *opt) {
    Arena *a = arena_new();
    Compilation c = dumps(opt, "source") ? compile_source(a, model, opt) : compile_plan(a, model, opt);
    Out o = out_new(a);
    explain(c.plan, &o);
    dump_and_stop(&o);
}

// Programs are run from the cache only when nobody else can have put them there.
static void check_own(const char *path, bool folder) {
    struct stat st;
    if (lstat(path, &st)) fail("%s: %s; set XDG_CACHE_HOME to a folder of your own", path, strerror(errno));
    bool kind = folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode);
    if (!kind || st.st_uid != geteuid() || (st.st_mode & 022))
        fail("%s: others could have written it, so nothing is run from there; remove it, or set XDG_CACHE_HOME to a "
             "folder of your own",
            path);
}

const char *cached_program(Arena *a, const char *model, const CompileOptions *opt) {
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    Str dir = base && *base == '/' ? str_fmt(a, "%s/ggcc", base)
        : home && *home            ? str_fmt(a, "%s/.cache/ggcc", home)
                                   : str_fmt(a, "/tmp/ggcc-%d", (int) getuid());
    for (size_t i = 1; i <= dir.n; i++)
        if (i == dir.n || dir.p[i] == '/') mkdir(str_z(a, (Str){dir.p, i}), 0700);
    check_own(str_z(a, dir), true);
    Compilation c = compile_plan(a, model, opt);
    uint64_t key = hash64(c.tools.march, strlen(c.tools.march), hash64(c.tools.cc, strlen(c.tools.cc), c.plan->hash));
    key = hash64(c.plan->target->cpu, strlen(c.plan->target->cpu), key);
    const char *path = str_z(a, str_fmt(a, "%.*s/%016llx", FMT(dir), (unsigned long long) key));
    if (access(path, X_OK)) cmd_build(model, path, opt);
    check_own(path, false);
    return path;
}
