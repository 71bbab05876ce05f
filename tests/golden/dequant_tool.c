// dequant_tool IN.gguf OUT.gguf: the same model with every tensor as F32. For tests: a program built from OUT must give
// the logits that the interpreter gives for IN.
#include "../../compiler/format.h"
#include "../../compiler/gguf.h"

#include <stdlib.h>

static void put_key(GgufWriter *w, const GgufKey *k) {
    const GgufValue *v = &k->v;
    int64_t i;
    double f;
    if (v->kind == GGUF_STR) gguf_put_str(w, k->key, v->s);
    else if (v->kind == GGUF_BOOL) gguf_put_bool(w, k->key, v->u);
    else if (v->kind == GGUF_ARR)
        gguf_put_array(w, k->key, v->elem, v->elem == GGUF_STR ? (const void *) v->str : v->data, v->n);
    else if (gguf_int(v, 0, &i)) gguf_put_u32(w, k->key, (uint32_t) i);
    else if (gguf_real(v, 0, &f)) gguf_put_f32(w, k->key, (float) f);
    else fail("key %.*s: a %s cannot be copied", FMT(k->key), gguf_kind_name(v->kind));
}

int main(int argc, char **argv) {
    if (argc != 3) fail_usage("dequant_tool IN.gguf OUT.gguf");
    Gguf *g = gguf_open(argv[1]);
    GgufWriter *w = gguf_create(argv[2]);
    for (int i = 0; i < g->n_key; i++)
        if (!str_is(g->key[i].key, "general.alignment") && !str_is(g->key[i].key, "general.file_type"))
            put_key(w, &g->key[i]);
    for (int i = 0; i < g->n_tensor; i++)
        gguf_put_tensor(w, g->tensor[i].name, type_named(S("F32"))->id, g->tensor[i].n_dims, g->tensor[i].ne);
    gguf_begin_data(w);
    for (int i = 0; i < g->n_tensor; i++) {
        const GgufTensor *t = &g->tensor[i];
        float *row = malloc((size_t) t->ne[0] * sizeof *row);
        if (!row) fail("out of memory");
        uint64_t rows = t->n_elems / (uint64_t) t->ne[0], bytes = t->n_bytes / rows;
        for (uint64_t r = 0; r < rows; r++) {
            format_of(t->type)->dequant(t->data + r * bytes, row, t->ne[0]);
            gguf_write_data(w, row, (size_t) t->ne[0] * sizeof *row);
        }
        free(row);
    }
    gguf_finish(w);
    gguf_close(g);
    return 0;
}
