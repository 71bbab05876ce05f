#define _GNU_SOURCE // memmem
// The template engine: what is renamed, what is filled, what is refused; and every embedded template has its support.
#include "format.h"
#include "template.h"

#include <string.h>

static int failures;
static Arena *arena;

static void expect(const char *what, Str got, const char *wanted) {
    if (str_is(got, wanted)) return;
    failures++;
    printf("%s: got\n%.*s\nexpected\n%s\n", what, FMT(got), wanted);
}

static const char text[] = "// Comment.\n"
                           "//@ template scale\n"
                           "//@ param K 4\n"
                           "//@ param S 1\n"
                           "//@ param FMT q4_1\n"
                           "//@ param CAP 0\n"
                           "//@ slot store\n"
                           "//@ args args\n"
                           "enum { K = 4 };\n"
                           "//@ begin\n"
                           "static void scale(int n /*@ args */) {\n"
                           "    scale_more(K, K_rest, FMT_row, not_FMT, xK, vf_FMT_x); // K of scale\n"
                           "    float v0 = v[0][0] + v1[0]; //@ strand\n"
                           "    cap(CAP); //@ when CAP\n"
                           "    no_cap(); //@ when !CAP\n"
                           "    y[0] = 0; //@ store\n"
                           "}\n"
                           "//@ end\n"
                           "after();\n";

static Str instance(const char *s, const char *cap, const char *args, const char *slot) {
    const Binding b[] = {
        {"K", S("576"), BIND_PARAM},
        {"S", str(s), BIND_PARAM},
        {"FMT", S("q8_0"), BIND_PARAM},
        {"CAP", str(cap), BIND_PARAM},
        {"store", str(slot), BIND_SLOT},
        {"args", str(args), BIND_ARGS},
    };
    return template_instance(arena, str(text), "gate", b, COUNT(b));
}

static void refuse(const Binding *b, int n, const char *wanted) {
    FailGuard *g = fail_guard();
    if (!setjmp(g->jmp)) {
        template_instance(arena, str(text), "gate", b, n);
        failures++, printf("not refused: %s\n", wanted);
    } else if (!strstr(g->message, wanted)) failures++, printf("refused with %s, expected %s\n", g->message, wanted);
    fail_unguard();
}

static void check_support(void) {
    static const char *const folders[] = {"c", "c-avx2", "c-avx512", NULL};
    Support s = {.folders = folders};
    Out o = out_new(arena);
    for (int i = 0; i < n_formats; i++) {
        template_support(&o, &s, template_find(folders, "matmul.c"), formats[i].name);
        if (formats[i].pack) template_support(&o, &s, template_find(folders, "panels.c"), formats[i].name);
        if (formats[i].pack) template_require(&o, &s, str_z(arena, str_fmt(arena, "%s.packed", formats[i].name)));
    }
    template_support(&o, &s, template_find(folders, "attention.c"), "attend");
    Str all = out_text(&o);
    if (memmem(all.p, all.n, "//@", 3)) failures++, printf("marks are left in support text\n");
    size_t n = o.n;
    template_require(&o, &s, "half.h");
    template_support(&o, &s, template_find(folders, "attention.c"), "attend");
    if (o.n != n) failures++, printf("support was printed twice\n");
}

int main(void) {
    arena = arena_new();
    expect("plain", instance("1", "0", "", "x = 1;\n"),
        "static void gate(int n) {\n"
        "    gate_more(576, K_rest, q8_0_row, not_q8_0, xK, vf_q8_0_x); // 576 of gate\n"
        "    float v0 = v[0][0] + v1[0];\n"
        "    no_cap();\n"
        "    x = 1;\n"
        "}\n");
    expect("strands", instance("2", "30.0f", ", float *y", "if (r) {\n    x;\n}"),
        "static void gate(int n, float *y) {\n"
        "    gate_more(576, K_rest, q8_0_row, not_q8_0, xK, vf_q8_0_x); // 576 of gate\n"
        "    float v0 = v[0][0] + v1[0];\n"
        "    float v1 = v[1][1] + v1[1];\n"
        "    cap(30.0f);\n"
        "    if (r) {\n"
        "        x;\n"
        "    }\n"
        "}\n");
    const Binding few[] = {{"K", S("1"), BIND_PARAM}};
    refuse(few, 1, "template scale: no value for its param S");
    expect("section", template_section(S("a\n//@ section x\nb\n//@ end\n//@ section y\nc\n//@ end\n"), "y"), "c\n");
    expect("no section", template_section(S("a\n//@ section x\nb\n//@ end\n"), "z"), "");
    check_support();
    printf("template: %d failures\n", failures);
    arena_free(arena);
    return failures != 0;
}
