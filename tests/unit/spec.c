// The description language: what broken descriptions and files say (tests/spec/broken.txt), the graphs that good ones
// give (good.txt), and synth: every description inside the program makes a model that it accepts, the same from the
// same seed. GGCC_BLESS=1 rewrites what is expected; look at the difference afterwards.
#include "build.h"
#include "check.h"
#include "embed.h"

#include <stdlib.h>
#include <string.h>

static Arena *arena;
static const char *source, *temp;

static const char *in_source(const char *name) {
    return str_z(arena, str_fmt(arena, "%s/tests/spec/%s", source, name));
}

static void write_text(const char *path, Str text) {
    FileOut *f = file_create(path);
    file_write(f, text.p, text.n);
    file_commit(f, false);
}

// Paths of this run's folder do not stand in expected texts.
static Str without_temp(Str text) {
    Out o = out_new(arena);
    size_t n = strlen(temp);
    for (size_t i = 0; i < text.n;) {
        bool here = text.n - i > n && memcmp(text.p + i, temp, n) == 0 && text.p[i + n] == '/';
        if (!here) out_str(&o, (Str){text.p + i, 1});
        i += here ? n + 1 : 1;
    }
    return out_text(&o);
}

static Str replaced(Str text, Str old, Str new) {
    for (size_t i = 0; i + old.n <= text.n; i++)
        if (memcmp(text.p + i, old.p, old.n) == 0)
            return str_fmt(
                arena, "%.*s%.*s%.*s", (int) i, text.p, FMT(new), (int) (text.n - i - old.n), text.p + i + old.n);
    printf("the text to replace is not there: '%.*s'\n", FMT(old));
    check_failed++;
    return text;
}

static Str unescaped(Str s) {
    char *p = arena_alloc(arena, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        bool line = s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == 'n';
        p[n++] = line ? '\n' : s.p[i];
        i += line;
    }
    return (Str){p, n};
}

// ---- a case ----

enum { MOST = 32 };
typedef struct {
    Str name, text; // of the description
    Str key[MOST], tensor[MOST];
    int n_key, n_tensor;
    const char *ignore_key[MOST], *ignore_tensor[MOST];
    int n_ignore_key, n_ignore_tensor;
    int64_t ctx, layers;
    bool find_arch; // by general.architecture, not --arch
} Case;

static bool names(Str patch, Str name, Str *value) {
    bool same =
        patch.n >= name.n && memcmp(patch.p, name.p, name.n) == 0 && (patch.n == name.n || patch.p[name.n] == '=');
    if (same) *value = patch.n == name.n ? (Str){0} : (Str){patch.p + name.n + 1, patch.n - name.n - 1};
    return same;
}

static void put_key(GgufWriter *w, Str key, Str value) {
    const char *z = str_z(arena, value), *comma = strchr(z, ',');
    Str text[2] = {S("a"), S("b")};
    if (comma && z[0] == '"') gguf_put_array(w, key, GGUF_STR, text, 2);
    else if (comma) {
        uint32_t list[16], n = 0;
        for (const char *p = z; p && n < 16; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
            list[n++] = (uint32_t) strtoul(p, NULL, 10);
        gguf_put_array(w, key, GGUF_U32, list, n);
    } else if (z[0] == '"') gguf_put_str(w, key, (Str){z + 1, value.n - 2});
    else if (str_is(value, "true") || str_is(value, "false")) gguf_put_bool(w, key, str_is(value, "true"));
    else if (strchr(z, '.')) gguf_put_f32(w, key, strtof(z, NULL));
    else gguf_put_u32(w, key, (uint32_t) strtoul(z, NULL, 10));
}

static void copy_key(GgufWriter *w, const GgufKey *k) {
    switch (k->v.kind) {
    case GGUF_F32: gguf_put_f32(w, k->key, (float) k->v.f); break;
    case GGUF_STR: gguf_put_str(w, k->key, k->v.s); break;
    case GGUF_BOOL: gguf_put_bool(w, k->key, k->v.u); break;
    default: gguf_put_u32(w, k->key, (uint32_t) k->v.u); break;
    }
}

static int parse_ne(Str value, int64_t *ne) {
    int n = 0;
    for (const char *p = str_z(arena, value); p && n < 4; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        ne[n++] = strtoll(p, NULL, 10);
    return n;
}

// The base file with the case's changes; all tensors are zeros, since nothing here looks at them.
static void write_model(const Case *c, const char *base, const char *path) {
    Gguf *g = gguf_open(base);
    GgufWriter *w = gguf_create(path);
    bool used_key[MOST] = {0}, used_tensor[MOST] = {0};
    uint64_t floats[4096];
    int n_floats = 0;
    Str value;
    for (int i = 0; i < g->n_key; i++) {
        int p = 0;
        while (p < c->n_key && !names(c->key[p], g->key[i].key, &value)) p++;
        if (p == c->n_key) copy_key(w, &g->key[i]);
        else if (used_key[p] = true, value.p) put_key(w, g->key[i].key, value);
    }
    for (int p = 0; p < c->n_key; p++) {
        const char *eq = memchr(c->key[p].p, '=', c->key[p].n);
        Str key = {c->key[p].p, eq ? (size_t) (eq - c->key[p].p) : 0};
        if (!used_key[p] && eq) put_key(w, key, (Str){eq + 1, c->key[p].n - key.n - 1});
    }
    for (int i = 0; i < g->n_tensor; i++) {
        const GgufTensor *t = &g->tensor[i];
        int64_t ne[4], n = t->n_dims;
        memcpy(ne, t->ne, sizeof ne);
        int p = 0;
        if (str_starts(t->name, "blk.") && c->layers && strtoll(t->name.p + 4, NULL, 10) >= c->layers) continue;
        while (p < c->n_tensor && !names(c->tensor[p], t->name, &value)) p++;
        if (p < c->n_tensor && (used_tensor[p] = true, !value.p)) continue;
        if (p < c->n_tensor) n = parse_ne(value, ne);
        gguf_put_tensor(w, t->name, 0, (int) n, ne);
        floats[n_floats] = 1;
        for (int j = 0; j < n; j++) floats[n_floats] *= (uint64_t) ne[j];
        n_floats++;
    }
    for (int p = 0; p < c->n_tensor; p++) {
        const char *eq = memchr(c->tensor[p].p, '=', c->tensor[p].n);
        if (used_tensor[p] || !eq) continue;
        int64_t ne[4];
        Str name = {c->tensor[p].p, (size_t) (eq - c->tensor[p].p)};
        int n = parse_ne((Str){eq + 1, c->tensor[p].n - name.n - 1}, ne);
        gguf_put_tensor(w, name, 0, n, ne);
        floats[n_floats] = 1;
        for (int j = 0; j < n; j++) floats[n_floats] *= (uint64_t) ne[j];
        n_floats++;
    }
    gguf_begin_data(w);
    for (int i = 0; i < n_floats; i++) gguf_write_data(w, NEWN(arena, float, floats[i]), floats[i] * 4);
    gguf_finish(w);
    gguf_close(g);
}

// What building the case says, or the graph it gives.
static Str outcome(const Case *c, const char *base) {
    const char *arch = str_z(arena, str_fmt(arena, "%s/case.arch", temp)),
               *model = str_z(arena, str_fmt(arena, "%s/case.gguf", temp));
    write_text(arch, c->text);
    write_model(c, base, model);
    BuildOptions opt = {.ctx = c->ctx, .arch_file = c->find_arch ? NULL : arch};
    if (c->n_ignore_key) opt.ignore_key = c->ignore_key;
    if (c->n_ignore_tensor) opt.ignore_tensor = c->ignore_tensor;
    Out o = out_new(arena);
    Gguf *volatile gguf = gguf_open(model);
    if (!setjmp(fail_guard()->jmp)) {
        Graph *g = graph_build(arena, gguf, &opt);
        graph_print(g, &o);
    } else {
        o = out_new(arena);
        out(&o, "error: %s\n", fail_guard()->message);
    }
    fail_unguard();
    gguf_close(gguf);
    return without_temp(out_text(&o));
}

// ---- a file of cases ----

static bool directive(Str line, const char *word, Str *rest) {
    size_t n = strlen(word);
    bool is = str_starts(line, word) && (line.n == n || line.p[n] == ' ');
    if (is) *rest = line.n > n ? (Str){line.p + n + 1, line.n - n - 1} : S("");
    return is;
}

static void add_line(Case *c, Str line, Str *old) {
    Str rest;
    if (directive(line, "-", &rest)) *old = unescaped(rest);
    else if (directive(line, "+", &rest)) c->text = replaced(c->text, *old, unescaped(rest));
    else if (directive(line, "key", &rest)) c->key[c->n_key++] = rest;
    else if (directive(line, "tensor", &rest)) c->tensor[c->n_tensor++] = rest;
    else if (directive(line, "ctx", &rest)) c->ctx = strtoll(rest.p, NULL, 10);
    else if (directive(line, "layers", &rest)) c->layers = strtoll(rest.p, NULL, 10);
    else if (directive(line, "ignore-key", &rest)) c->ignore_key[c->n_ignore_key++] = str_z(arena, rest);
    else if (directive(line, "ignore-tensor", &rest)) c->ignore_tensor[c->n_ignore_tensor++] = str_z(arena, rest);
    else if (directive(line, "arch", &rest)) c->find_arch = true;
    else {
        printf("not understood: %.*s\n", FMT(line));
        check_failed++;
    }
}

static void compare(const char *name, Str got) {
    const char *path = in_source(name);
    if (getenv("GGCC_BLESS")) write_text(path, got);
    Str want = file_read(arena, path);
    size_t at = 0, line = 0;
    while (at < got.n && at < want.n && got.p[at] == want.p[at]) at++;
    check_count++;
    if (str_eq(got, want)) return;
    check_failed++;
    for (size_t i = line = at; i-- > 0 && got.p[i] != '\n';) line = i;
    printf("%s: differs here; GGCC_BLESS=1 rewrites it. Expected:\n%.*s\nFound:\n%.*s\n", path,
        (int) (want.n - line > 400 ? 400 : want.n - line), want.p + line,
        (int) (got.n - line > 400 ? 400 : got.n - line), got.p + line);
}

static int run_cases(const char *cases, const char *expected, const char *base, Str arch) {
    Str text = file_read(arena, in_source(cases)), old = S("");
    Out o = out_new(arena);
    Case c = {0};
    int n = 0;
    for (size_t i = 0; i <= text.n;) {
        const char *end = i < text.n ? memchr(text.p + i, '\n', text.n - i) : NULL;
        Str line = {text.p + i, end ? (size_t) (end - text.p) - i : text.n - i}, rest;
        bool next = directive(line, "==", &rest), last = i >= text.n;
        if ((next || last) && c.name.n) {
            Str said = outcome(&c, base);
            out(&o, "== %.*s\n", FMT(c.name));
            out_str(&o, said);
            n++;
        }
        if (next) c = (Case){.name = rest, .text = arch};
        else if (line.n && line.p[0] != '#') add_line(&c, line, &old);
        i += line.n + 1;
    }
    compare(expected, out_text(&o));
    return n;
}

// ---- synth ----

static Gguf *opened; // by `accepted`, until the next call

static Graph *accepted(const char *path, const BuildOptions *opt) {
    if (opened) gguf_close(opened);
    Gguf *volatile g = opened = gguf_open(path);
    Graph *volatile graph = NULL;
    if (!setjmp(fail_guard()->jmp)) graph = graph_build(arena, g, opt);
    else printf("%s\n", fail_guard()->message);
    fail_unguard();
    CHECK(graph != NULL);
    return graph;
}

// false: the description has nothing of one of these names, or covers one value of it only.
static bool synth_with(const char *arch, const char *path, const char *const *set, int n, const BuildOptions *opt) {
    volatile bool made = false;
    if (!setjmp(fail_guard()->jmp)) {
        synth(arena, arch, path, set, n, 1, opt);
        made = true;
    } else {
        const char *why = fail_guard()->message;
        bool refused = strstr(why, "asks for nothing of that name") || strstr(why, "this description covers only");
        if (!refused) printf("%s: %s\n", arch, why);
        CHECK(refused);
    }
    fail_unguard();
    return made;
}

static void synth_all(void) {
    static const char *const sets[][3] = {
        {"type=f16", "block_count=3", NULL}, {"type=q8_0", "attention.head_count_kv=1", "tensor.output=0"}};
    int n_with = 0;
    const char *path = str_z(arena, str_fmt(arena, "%s/synth.gguf", temp)),
               *again = str_z(arena, str_fmt(arena, "%s/again.gguf", temp));
    BuildOptions opt = {0};
    int n = 0;
    for (int i = 0; i < n_embedded; i++) {
        Str name = str(embedded[i].path);
        if (!str_starts(name, "arch-specs/") || memchr(name.p + 11, '/', name.n - 11)) continue;
        const char *arch = str_z(arena, (Str){name.p + 11, name.n - 16});
        synth(arena, arch, path, NULL, 0, 1, &opt);
        synth(arena, arch, again, NULL, 0, 1, &opt);
        CHECK(str_eq(file_read(arena, path), file_read(arena, again)));
        synth(arena, arch, again, NULL, 0, 2, &opt);
        CHECK(!str_eq(file_read(arena, path), file_read(arena, again)));
        accepted(path, &opt);
        for (int j = 0; j < COUNT(sets); j++)
            if (synth_with(arch, path, sets[j], sets[j][2] ? 3 : 2, &opt)) {
                accepted(path, &opt);
                n_with++;
            }
        n++;
    }
    CHECK(n >= 4 && n_with > n);
    // An array for each layer, an optional tensor, a text.
    static const char *const more[] = {"attention.head_count_kv=2,4,2,4", "general.name=a name"};
    CHECK_FAILS(synth(arena, "llama", path, more, 2, 1, &opt),
        "arch-specs/llama.arch:9:15: key 'llama.attention.head_count_kv' is an array with different entries (2, .. 4, "
        "..), but is read as one "
        "number; NAME[l] reads one for each layer\n"
        "  size  kvh   = attention.head_count_kv or heads         # no key: one kv head for each head\n"
        "                ^");
    static const char *const yarn[] = {
        "tensor.rope_freqs=1", "rope.scaling.type=yarn", "rope.scaling.factor=4", "general.name=a name"};
    synth(arena, "llama", path, yarn, 4, 1, &opt);
    Graph *g = accepted(path, &opt);
    CHECK(g && g->n_rope == 1 && g->rope[0].yarn && g->rope[0].scale == 0.25);
    if (g) CHECK_STR(g->name, "a name");
    static const char *const unknown[] = {"embeding_length=64"};
    gguf_close(opened);
    CHECK_FAILS(synth(arena, "llama", path, unknown, 1, 1, &opt),
        "--set embeding_length=64: the description of 'llama' asks for nothing of that name");
}

int main(void) {
    arena = arena_new();
    quiet = true;
    source = getenv("GGCC_SOURCE") ? getenv("GGCC_SOURCE") : ".";
    temp = temp_dir();
    const char *base = str_z(arena, str_fmt(arena, "%s/base.gguf", temp));
    BuildOptions opt = {.arch_file = in_source("base.arch")};
    synth(arena, "tiny", base, NULL, 0, 1, &opt);
    Str arch = file_read(arena, opt.arch_file);
    CHECK(run_cases("broken.txt", "broken.expected", base, arch) >= 30);
    CHECK(run_cases("good.txt", "good.expected", base, arch) >= 5);
    synth_all();
    arena_free(arena);
    return check_done();
}
