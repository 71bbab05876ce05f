// `ggcc template`. See template_commands.h.
#include "template_commands.h"
#include "jinja.h"

#include <stdlib.h>
#include <string.h>

static const char rerank_key[] = "tokenizer.chat_template.rerank";

Str template_rerank(const Gguf *g) {
    const GgufKey *k = gguf_key(g, str(rerank_key));
    return k && k->v.kind == GGUF_STR ? k->v.s : (Str){0};
}

int template_sources(Arena *a, const Gguf *g, TemplateSource **out) {
    static const char key[] = "tokenizer.chat_template";
    TemplateSource *list = NULL;
    int n = 0, cap = 0;
    for (int i = 0; i < g->n_key; i++) {
        Str name = g->key[i].key;
        if (!str_starts(name, key) || (name.n > sizeof key - 1 && name.p[sizeof key - 1] != '.')) continue;
        if (str_is(name, rerank_key)) continue; // no chat
        Str rest = name.n == sizeof key - 1 ? S("default") : (Str){name.p + sizeof key, name.n - sizeof key};
        if (g->key[i].v.kind != GGUF_STR)
            fail("%s: the key %s is a %s; a string was expected", g->path, str_show(a, name),
                gguf_kind_name(g->key[i].v.kind));
        *PUSH(a, list, n, cap) = (TemplateSource){rest, g->key[i].v.s, str_fmt(a, "%s:%.*s", g->path, FMT(name)).p};
    }
    *out = list;
    return n;
}

const char *template_token(Arena *a, const Gguf *g, const char *key) {
    int64_t id;
    const GgufKey *number = gguf_key(g, str_fmt(a, "tokenizer.ggml.%s_token_id", key)),
                  *tokens = gguf_key(g, S("tokenizer.ggml.tokens"));
    if (!number || !tokens || tokens->v.kind != GGUF_ARR || tokens->v.elem != GGUF_STR || !gguf_int(&number->v, 0, &id))
        return NULL;
    if (id < 0 || (uint64_t) id >= tokens->v.n) return NULL;
    return str_z(a, tokens->v.str[id]);
}

static bool is_gguf(const char *path) {
    Str head = file_map(path);
    bool is = head.n >= 4 && !memcmp(head.p, "GGUF", 4);
    file_unmap(head);
    return is;
}

static TemplateSource choose(Arena *a, const char *path, const TemplateSource *list, int n, const char *name) {
    Str names = S("");
    if (!n) fail("%s: the file has no tokenizer.chat_template; a template can be given as a file, '.jinja'", path);
    for (int i = 0; i < n; i++) {
        if (str_is(list[i].name, name ? name : "default")) return list[i];
        names = str_fmt(a, "%.*s%s%.*s", FMT(names), i ? ", " : "", FMT(list[i].name));
    }
    if (!name && n == 1) return list[0];
    fail("%s: there is no template '%s'; there are: %s", path, name ? name : "default", str_show(a, names));
}

static int by_name(const void *a, const void *b) {
    const String *x = *(const String *const *) a, *y = *(const String *const *) b;
    return str_cmp((Str){x->p, x->n}, (Str){y->p, y->n});
}

static void look(Arena *a, const Jinja *t, const char *bos, const char *eos) {
    Str ends[4];
    printf("compiles: yes\nreads:");
    qsort(t->reads, (size_t) t->n_reads, sizeof *t->reads, by_name);
    for (int i = 0; i < t->n_reads; i++) printf("%s %s", i ? "," : "", t->reads[i]->p);
    printf("\n");
    int n = jinja_turn_ends(a, t, bos ? bos : "<s>", eos ? eos : "</s>", ends);
    for (int i = 0; i < n; i++) printf("turn ends with: %s\n", str_show(a, ends[i]));
    if (!n) printf("turn ends with: nothing of its own\n");
}

static int render_case(
    Arena *a, const Jinja *t, const TemplateArgs *args, const char *bos, const char *eos, TemplateTime now) {
    enum { memory_size = 1 << 30 }; // of addresses: only what is used becomes memory
    Str text = file_read(a, args->case_path);
    char *memory = malloc(memory_size);
    if (!memory) fail("out of memory: %d MiB of addresses for the rendering", memory_size >> 20);
    Render *r = NEW(a, Render);
    render_open(r, memory, memory_size, now);
    int status = (bos ? render_set(r, "bos_token", bos) : 0) | (eos ? render_set(r, "eos_token", eos) : 0) |
        render_vars(r, text.p, text.n);
    if (status == 0 && args->bos) status = render_set(r, "bos_token", args->bos);
    if (status == 0 && args->eos) status = render_set(r, "eos_token", args->eos);
    if (status < 0) fail("%s: %s", args->case_path, r->error);
    if (jinja_render(t, r) < 0) fail("%s", r->error);
    fwrite(r->text, 1, r->n_text, stdout);
    free(memory);
    return 0;
}

int template_command(const TemplateArgs *args) {
    Arena *a = arena_new();
    TemplateTime now = template_now();
    if (args->now && template_time(args->now, &now) < 0)
        fail_usage("--now %s: not a time; expected one like 2026-07-26T09:05:03", args->now);
    const char *bos = NULL, *eos = NULL;
    TemplateSource source;
    if (is_gguf(args->file)) {
        TemplateSource *list;
        Gguf *g = gguf_open(args->file);
        int n = template_sources(a, g, &list);
        source = choose(a, args->file, list, n, args->name);
        source.source = str_dup(a, source.source);
        bos = template_token(a, g, "bos");
        eos = template_token(a, g, "eos");
        gguf_close(g);
    } else {
        if (args->name) fail_usage("--name %s: only a GGUF file holds templates with names", args->name);
        source = (TemplateSource){S("default"), file_read(a, args->file), args->file};
    }
    Jinja *t = jinja_compile(a, source.where, source.source);
    if (args->emit) {
        Out o = out_new(a);
        jinja_emit(&o, t, "default");
        Str c = out_text(&o);
        fwrite(c.p, 1, c.n, stdout);
    } else if (args->case_path) {
        render_case(a, t, args, bos, eos, now);
    } else {
        look(a, t, args->bos ? args->bos : bos, args->eos ? args->eos : eos);
    }
    arena_free(a);
    return 0;
}
