// Tensors made of others: of each group of a tensor's rows some in a row, as they are or turned over (what were rows
// are columns), so that a product that files have in one piece can be used in parts. In: the file's tensor. Out: one
// behind the file's own, for whoever reads weights the same as those; its bytes are made when they are first asked for.
#include "format.h"
#include "gguf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct GgufMade {
    int from;
    int64_t groups, stride, first, rows; // of each group's `stride` rows those from `first` on
    bool turned, filled;
    uint8_t *to;
};

static bool plain(int type) { // one number each
    return type_info(type)->block == 1;
}

static int made_before(const Gguf *g, Str name) {
    for (int i = 0; i < g->n_made; i++)
        if (str_eq(g->tensor[g->first_made + i].name, name)) return g->first_made + i;
    return -1;
}

// Room behind the file's tensors for one more.
static void grow(Gguf *g) {
    if (!g->first_made) g->first_made = g->n_tensor;
    if (g->n_made < g->cap_made) return;
    g->cap_made = g->cap_made ? 2 * g->cap_made : 64;
    GgufTensor *tensor = NEWN(g->arena, GgufTensor, g->first_made + g->cap_made);
    GgufMade *made = NEWN(g->arena, GgufMade, g->cap_made);
    memcpy(tensor, g->tensor, sizeof *tensor * (size_t) (g->first_made + g->n_made));
    if (g->n_made) memcpy(made, g->made, sizeof *made * (size_t) g->n_made);
    g->tensor = tensor, g->made = made;
}

int gguf_make(Gguf *g, int from, int64_t groups, int64_t first, int64_t rows, bool turned) {
    const GgufTensor source = g->tensor[from];
    Str name = str_fmt(g->arena, "%.*s (%s%lld .. %lld of each)", FMT(source.name), turned ? "turned, " : "",
        (long long) first, (long long) (first + rows));
    int old = made_before(g, name);
    if (old >= 0) return old;
    grow(g);
    int64_t in = source.ne[0], stride = (int64_t) source.n_elems / in / groups;
    GgufTensor t = {.name = name, .type = source.type, .n_dims = 3, .ne = {in, rows, groups, 1}};
    if (turned) t.ne[0] = rows, t.ne[1] = in;
    if (turned && !plain(t.type)) t.type = type_named(S("F32"))->id; // blocks lie along what is no row any more
    const TypeInfo *info = type_info(t.type);
    t.n_elems = (uint64_t) (in * rows * groups);
    t.n_bytes = t.n_elems / (uint64_t) info->block * (uint64_t) info->bytes;
    GgufMade made = {from, groups, stride, first, rows, turned, false, NULL};
    if (source.data) {
        made.to = mmap(NULL, t.n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made.to == MAP_FAILED) fail("out of memory: %llu bytes", (unsigned long long) t.n_bytes);
        t.data = made.to;
    }
    g->made[g->n_made] = made;
    g->tensor[g->first_made + g->n_made] = t;
    return g->first_made + g->n_made++;
}

// One row of the source becomes a column of [in][rows].
static void turn(const uint8_t *row, int type, int64_t in, uint8_t *to, int64_t rows) {
    size_t size = (size_t) type_info(type)->bytes;
    for (int64_t i = 0; i < in; i++) memcpy(to + (size_t) (i * rows) * size, row + (size_t) i * size, size);
}

static void fill(const Gguf *g, GgufMade *m, const GgufTensor *t) {
    const GgufTensor *source = &g->tensor[m->from];
    const TypeInfo *info = type_info(source->type), *own = type_info(t->type);
    int64_t in = source->ne[0];
    size_t row_bytes = (size_t) (in / info->block * info->bytes);
    size_t group_bytes = (size_t) t->n_bytes / (size_t) m->groups;
    float *wide = m->turned ? malloc(sizeof(float) * (size_t) in) : NULL;
    if (m->turned && !wide) fail("out of memory");
    if (m->turned && !plain(source->type) && !format_of(source->type)) format_refuse(source->name, info->name);
    for (int64_t h = 0; h < m->groups; h++) {
        const uint8_t *row = source->data + (size_t) (h * m->stride + m->first) * row_bytes;
        uint8_t *to = m->to + (size_t) h * group_bytes;
        if (!m->turned) memcpy(to, row, group_bytes);
        for (int64_t r = 0; m->turned && r < m->rows; r++, row += row_bytes) {
            if (!plain(source->type)) format_of(source->type)->dequant(row, wide, in);
            turn(plain(source->type) ? row : (const uint8_t *) wide, t->type, in, to + r * own->bytes, m->rows);
        }
    }
    free(wide);
    m->filled = true;
}

void gguf_fill(const Gguf *g) {
    for (int i = 0; g && i < g->n_made; i++)
        if (g->made[i].to && !g->made[i].filled) fill(g, &g->made[i], &g->tensor[g->first_made + i]);
}

void gguf_unmake(Gguf *g) {
    for (int i = 0; i < g->n_made; i++)
        if (g->made[i].to) munmap(g->made[i].to, (size_t) g->tensor[g->first_made + i].n_bytes);
    g->n_made = 0;
}
