// Prints a C program that holds instances of the attention template for one instruction set, and a table of them for
// attention_check.h. Usage: attention_tool c [c-avx2 [c-avx512]] > instances.c
#include "template.h"

typedef struct {
    int h, g, dk, dv, window, heads, rows;
    const char *softcap, *kv;
} Shape;

static const Shape shapes[] = {
    {9, 3, 64, 64, 0, 3, 16, "0", "f16"},
    {9, 3, 64, 64, 0, 1, 7, "0", "f16"},
    {4, 1, 256, 256, 100, 1, 16, "0", "f16"},
    {4, 1, 128, 128, 64, 2, 5, "0", "f16"},
    {4, 2, 80, 72, 70, 2, 5, "30.0f", "f32"},
    {8, 8, 32, 48, 0, 1, 4, "50.0f", "f16"},
    {16, 1, 16, 20, 33, 16, 3, "0", "f32"},
    {1, 1, 20, 7, 1, 1, 1, "0", "f32"},
    {5, 1, 24, 40, 0, 5, 64, "0", "f16"},
    {14, 2, 64, 64, 0, 7, 32, "0", "f16"},
};

static Str param(Arena *a, int v) {
    return str_fmt(a, "%d", v);
}

int main(int argc, char **argv) {
    if (argc < 2) fail_usage("usage: attention_tool FOLDER...");
    Arena *a = arena_new();
    Out o = out_new(a), table = out_new(a);
    Support su = {.folders = (const char *const *) argv + 1};
    out(&o, "#include \"isa.h\"\n\n#include \"model.h\"\n\n");
    template_require(&o, &su, "kv.h");
    Str text = template_find(su.folders, "attention.c");
    template_support(&o, &su, text, "attend");
    for (int i = 0; i < COUNT(shapes); i++) {
        const Shape *s = &shapes[i];
        const int bytes = 64 * s->g * (s->dk + s->dv) * (str_is(str(s->kv), "f16") ? 2 : 4) + 128;
        const Binding b[] = {
            {"H", param(a, s->h), BIND_PARAM},
            {"G", param(a, s->g), BIND_PARAM},
            {"DK", param(a, s->dk), BIND_PARAM},
            {"DV", param(a, s->dv), BIND_PARAM},
            {"FMT", S("attend"), BIND_PARAM},
            {"V_ROW", param(a, s->dv), BIND_PARAM},
            {"V_FROM", S("0"), BIND_PARAM},
            {"SCALE", S("0.25f"), BIND_PARAM},
            {"SOFTCAP", str(s->softcap), BIND_PARAM},
            {"WINDOW", param(a, s->window), BIND_PARAM},
            {"CHUNK", S("0"), BIND_PARAM},
            {"ALL", S("0"), BIND_PARAM},
            {"AROUND", S("0"), BIND_PARAM},
            {"AHEAD", S("0"), BIND_PARAM},
            {"ALIBI", S("0"), BIND_PARAM},
            {"SINKS", S("0"), BIND_PARAM},
            {"BIASES", S("0"), BIND_PARAM},
            {"EXACT", S("0"), BIND_PARAM},
            {"LATER", S("0"), BIND_PARAM},
            {"BOUNDS", S("0"), BIND_PARAM},
            {"PICKS", S("0"), BIND_PARAM},
            {"SETS", S("1"), BIND_PARAM},
            {"BLOCK", S("1"), BIND_PARAM},
            {"args", S(""), BIND_ARGS},
            {"pass", S(""), BIND_ARGS},
            {"GROUP", S("1"), BIND_PARAM},
            {"PAGE_BYTES", param(a, bytes), BIND_PARAM},
            {"KV", str(s->kv), BIND_PARAM},
            {"HEADS", param(a, s->heads), BIND_PARAM},
            {"ROWS", param(a, s->rows), BIND_PARAM},
        };
        Str name = str_fmt(a, "attention_%d", i);
        out_str(&o, template_instance(a, text, name.p, b, COUNT(b)));
        out(&o, "\n");
        out(&table, "    {%d, %d, %d, %d, %d, %d, %d, %s, \"%s\", %d, %s, kv_put_k_%s, kv_put_v_%s},\n", s->h, s->g,
            s->dk, s->dv, s->window, s->heads, s->rows, s->softcap, s->kv, bytes, name.p, s->kv, s->kv);
    }
    out(&o, "#include \"attention_check.h\"\n\nconst Instance instances[] = {\n%.*s};\n", FMT(out_text(&table)));
    out(&o, "const int n_instances = sizeof instances / sizeof *instances;\n");
    fwrite(o.p, 1, o.n, stdout);
    return 0;
}
