// show_tool FILE...: opens each file and prints everything that gguf.h exposes of it, or the error message.
#include "gguf.h"

#include <inttypes.h>

static void show_value(Arena *a, const GgufValue *v);

static void show_element(Arena *a, const GgufValue *v, uint64_t i) {
    int64_t whole;
    double real;
    if (v->elem == GGUF_STR) printf("'%s'", str_show(a, v->str[i]));
    else if (v->elem == GGUF_ARR) show_value(a, &v->arr[i]);
    else if (gguf_int(v, i, &whole)) printf("%" PRId64, whole);
    else if (gguf_real(v, i, &real)) printf("%.17g", real);
    else printf("?");
}

static void show_value(Arena *a, const GgufValue *v) {
    if (v->kind == GGUF_ARR) {
        printf("%s[%" PRIu64 "] {", gguf_kind_name(v->elem), v->n);
        for (uint64_t i = 0; i < v->n; i++) {
            if (i) printf(", ");
            show_element(a, v, i);
        }
        printf("}");
        return;
    }
    int64_t whole;
    double real;
    printf("%s ", gguf_kind_name(v->kind));
    if (v->kind == GGUF_STR) printf("'%s'", str_show(a, v->s));
    else if (gguf_int(v, 0, &whole)) printf("%" PRId64, whole);
    else if (v->kind == GGUF_U64) printf("%" PRIu64, v->u);
    else if (gguf_real(v, 0, &real)) printf("%.17g", real);
}

static void show(Arena *a, const char *path) {
    Gguf *g = gguf_open(path);
    printf("    version %" PRIu32 ", alignment %" PRIu32 ", files %d\n", g->version, g->alignment, g->n_file);
    for (int i = 0; i < g->n_key; i++) {
        printf("    key %s = ", str_show(a, g->key[i].key));
        show_value(a, &g->key[i].v);
        printf("%s\n", gguf_key(g, g->key[i].key) == &g->key[i] ? "" : " NOT FOUND BY NAME");
    }
    for (int i = 0; i < g->n_tensor; i++) {
        const GgufTensor *t = &g->tensor[i];
        printf("    tensor %s %s [", str_show(a, t->name), type_info(t->type)->name);
        for (int d = 0; d < t->n_dims; d++) printf("%s%" PRId64, d ? ", " : "", t->ne[d]);
        uint64_t sum = 0; // names the data well enough: the recipes number their bytes
        for (uint64_t b = 0; b < t->n_bytes; b++) sum = sum * 31 + t->data[b];
        printf("] %" PRIu64 " elements, %" PRIu64 " bytes, sum %016" PRIx64 "%s\n", t->n_elems, t->n_bytes, sum,
            gguf_tensor(g, t->name) == t ? "" : " NOT FOUND BY NAME");
    }
    if (gguf_key(g, S("no such key")) || gguf_tensor(g, S("no such tensor"))) printf("    FOUND WHAT IS NOT THERE\n");
    gguf_close(g);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        Arena *volatile a = arena_new();
        printf("%s\n", argv[i]);
        if (!setjmp(fail_guard()->jmp)) show(a, argv[i]);
        else printf("    error: %s\n", fail_guard()->message);
        fail_unguard();
        arena_free(a);
    }
    return 0;
}
