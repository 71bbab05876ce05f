// Runs templates that were printed as C, for compiled.py. In: the time and a template's number; then on stdin records as
// jinja_tool.c has them, without the template's text. Out: answers as jinja_tool.c's.
#include "chat_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int (*const templates[])(Render *r); // printed by compiled.py
extern const int n_templates;

static void answer(const char *what, const char *p, size_t n) {
    printf("%s %zu\n", what, n);
    fwrite(p, 1, n, stdout);
    printf("\n");
}

int main(int argc, char **argv) {
    enum { size = 256 << 20 };
    TemplateTime now;
    if (argc < 2 || template_time(argv[1], &now) < 0) return 2;
    int which = argc > 2 ? atoi(argv[2]) : 0; // else record i is for template i
    char *memory = malloc(size);
    size_t n[2];
    for (; scanf("%zu %zu", &n[0], &n[1]) == 2 && getchar() == '\n'; which += argc == 2) {
        char *p = malloc(n[0] + n[1] + 1);
        static Render r;
        if (which >= n_templates || fread(p, 1, n[0] + n[1], stdin) != n[0] + n[1]) return 1;
        render_open(&r, memory, size, now);
        if (render_vars(&r, p + n[0], n[1]) < 0 || templates[which](&r) < 0) answer(r.raised ? "raised" : "error", r.error, strlen(r.error));
        else answer("ok", r.text, r.n_text);
        free(p);
    }
    free(memory);
    return 0;
}
