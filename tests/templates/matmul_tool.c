// Prints a C program that holds instances of the matrix product templates for one instruction set, and a table of
// them for matmul_check.h. Usage: matmul_tool c [c-avx2 [c-avx512]] > instances.c
#include "format.h"
#include "template.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int k, n, s, panels, rows;
} Shape;

static const Shape shapes[] = {
    {256, 16, 1, 1, 1},
    {256, 33, 1, 2, 8},
    {512, 48, 2, 1, 33},
    {768, 20, 2, 3, 64},
    {1536, 7, 1, 1, 16},
    {2048, 64, 1, 4, 40},
    {32, 17, 1, 1, 16},
    {96, 50, 3, 2, 7},
};

// Output n of row r and strand s of the product goes to y[(r * S + s) * N + n], padded to whole panels by the caller.
static Str store(Arena *a, const Shape *s) {
    Out o = out_new(a);
    for (int i = 0; i < s->s; i++)
        out(&o, "for (int i = 0; i < m; i++) y[(size_t) (r * %d + %d) * %d + (size_t) (n + i)] = v%d[i];\n", s->s, i,
            s->n, i);
    return out_text(&o);
}

static void print_instance(Out *o, Support *su, const Format *f, const Shape *s, bool packed) {
    Arena *a = o->arena;
    Str text = template_find(su->folders, packed ? "panels.c" : "matmul.c");
    template_support(o, su, text, f->name);
    const Binding b[] = {
        {"K", str_fmt(a, "%d", s->k), BIND_PARAM},
        {"N", str_fmt(a, "%d", s->n), BIND_PARAM},
        {"S", str_fmt(a, "%d", s->s), BIND_PARAM},
        {"PANELS", str_fmt(a, "%d", s->panels), BIND_PARAM},
        {"ROWS", str_fmt(a, "%d", s->rows), BIND_PARAM},
        {"FMT", str(f->name), BIND_PARAM},
        {"store", store(a, s), BIND_SLOT},
        {"args", S(", float *restrict y"), BIND_ARGS},
        {"IN_PLACE", str(strcmp(f->name, "f32") ? "0" : "1"), BIND_PARAM},
    };
    Str name = str_fmt(a, "%s_%s_%d_%d_%d", f->name, packed ? "panels" : "rows", s->k, s->n, s->s);
    out_str(o, template_instance(a, text, name.p, b, packed ? COUNT(b) - 1 : COUNT(b)));
    out(o, "\n");
}

int main(int argc, char **argv) {
    if (argc < 2) fail_usage("usage: matmul_tool FOLDER...");
    Arena *a = arena_new();
    Out o = out_new(a), table = out_new(a);
    Support su = {.folders = (const char *const *) argv + 1};
    out(&o, "#include \"isa.h\"\n\n");
    template_require(&o, &su, "q8.h");
    for (int i = 0; i < n_formats; i++)
        for (int j = 0; j < COUNT(shapes); j++)
            for (int packed = 0; packed <= 1; packed++) {
                const Format *f = &formats[i];
                const Shape *s = &shapes[j];
                if (s->k % f->block) continue;
                if (packed && (!f->pack || !template_exists(su.folders, "panels.c"))) continue;
                print_instance(&o, &su, f, s, packed);
                out(&table, "    {\"%s\", %d, %d, %d, %d, %d, %d, %s_%s_%d_%d_%d},\n", f->name, packed, s->k, s->n,
                    s->s, s->panels, s->rows, f->name, packed ? "panels" : "rows", s->k, s->n, s->s);
            }
    out(&o,
        "#include \"matmul_check.h\"\n\nconst Instance instances[] = {\n%.*s};\nconst int n_instances = "
        "COUNT(instances);\n",
        FMT(out_text(&table)));
    fwrite(o.p, 1, o.n, stdout);
    return 0;
}
