// Many templates and cases at once, for the tests here. In: a text of records on stdin, each a line `TEMPLATE-BYTES CASE-BYTES`
// and then so many bytes of each; the first argument is the time. Out: for each record a line `ok N` or `error N` or
// `refused N` (the compiler's message) and N bytes. With `--emit NAME` instead: one template on stdin, its C on stdout.
#include "jinja.h"

#include <stdlib.h>
#include <string.h>

static void answer(const char *what, const char *p, size_t n) {
    printf("%s %zu\n", what, n);
    fwrite(p, 1, n, stdout);
    printf("\n");
}

static void one(Str source, Str input, TemplateTime now, char *memory, size_t size) {
    Arena *a = arena_new();
    if (!setjmp(fail_guard()->jmp)) {
        Jinja *t = jinja_compile(a, "template", source);
        static Render r;
        render_open(&r, memory, size, now);
        if (render_vars(&r, input.p, input.n) < 0 || jinja_render(t, &r) < 0) answer(r.raised ? "raised" : "error", r.error, strlen(r.error));
        else answer("ok", r.text, r.n_text);
    } else {
        const char *m = fail_guard()->message;
        answer("refused", m, strlen(m));
    }
    fail_unguard();
    arena_free(a);
}

int main(int argc, char **argv) {
    enum { size = 256 << 20 };
    if (argc == 3 && !strcmp(argv[1], "--emit")) {
        Arena *a = arena_new();
        Out o = out_new(a);
        jinja_emit(&o, jinja_compile(a, "template", file_read(a, "-")), argv[2]);
        Str c = out_text(&o);
        fwrite(c.p, 1, c.n, stdout);
        arena_free(a);
        return 0;
    }
    TemplateTime now;
    if (argc != 2 || template_time(argv[1], &now) < 0) fail_usage("jinja_tool TIME < records");
    char *memory = malloc(size);
    size_t n[2];
    while (scanf("%zu %zu", &n[0], &n[1]) == 2 && getchar() == '\n') {
        char *p = malloc(n[0] + n[1] + 1);
        if (fread(p, 1, n[0] + n[1], stdin) != n[0] + n[1]) return 1;
        one((Str){p, n[0]}, (Str){p + n[0], n[1]}, now, memory, size);
        free(p);
    }
    free(memory);
    return 0;
}
