// Packing: the weights as the kernels read them, in order of the plan's offsets. In: tensors of the mapped file. Out:
// bytes.
// Panels of one tensor are packed by all threads, a window at a time, so that any model packs in little memory.
#include "plan.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    uint64_t offset;
    int packed, layer;
} Item;

static int by_offset(const void *a, const void *b) {
    const Item *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset ? 1 : x->packed - y->packed;
}

// Where row `row` of the stacked parts lies in the file.
typedef struct {
    const Plan *p;
    const Weight *w;
    int layer;
} Source;

static const uint8_t *source_row(const Source *s, int64_t row) {
    const Weight *w = s->w;
    const TypeInfo *t = type_info(w->type);
    int64_t product = row / w->out, each = w->apart ? weight_stack(w) : 1;
    int part = 0;
    for (row %= w->out; row >= w->part_out[part];) row -= w->part_out[part++];
    int tensor = w->tensor[(int64_t) s->layer * weight_tensors(w) + part * each + (w->apart ? product : 0)];
    if (!w->apart) row += product * w->part_out[part];
    return s->p->gguf->tensor[tensor].data + row * (w->in / t->block * t->bytes);
}

typedef struct {
    Source src;
    const Format *f;
    int64_t first, count, strands, width; // panels of this window; outputs of a strand
    uint8_t *to;
    uint64_t panel_bytes;
    int index, threads;
} Job;

static void *pack_some(void *arg) {
    Job *j = arg;
    for (int64_t i = j->index; i < j->count; i += j->threads) {
        int64_t each = (j->width + 15) / 16 * j->strands, product = (j->first + i) / each; // panels of a product
        int64_t panel = (j->first + i) % each, strand = panel % j->strands, n = panel / j->strands * 16;
        int64_t first = product * j->src.w->out + strand * j->width;
        const uint8_t *row[16];
        for (int k = 0; k < 16; k++) row[k] = n + k < j->width ? source_row(&j->src, first + n + k) : NULL;
        memset(j->to + (uint64_t) i * j->panel_bytes, 0, j->panel_bytes);
        j->f->pack(row, j->src.w->in, j->to + (uint64_t) i * j->panel_bytes);
    }
    return NULL;
}

enum { MAX_THREADS = 16, WINDOW = 8 << 20 };

static int pack_threads(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int) n;
}

static void write_panels(const Plan *p, const PackedWeight *pw, int layer, FileOut *f) {
    const Weight *w = &p->graph->stage[pw->stage].weight[pw->weight];
    const Format *fmt = format_of(w->type);
    int64_t strands = weight_strands(w), width = w->out / strands,
            panels = (width + 15) / 16 * strands * weight_stack(w);
    uint64_t bytes = fmt->panel_bytes(w->in);
    int64_t window = (int64_t) (WINDOW / bytes) + 1;
    uint8_t *buf = malloc((size_t) window * bytes);
    if (!buf) fail("out of memory: packing needs %llu bytes", (unsigned long long) ((uint64_t) window * bytes));
    for (int64_t at = 0; at < panels; at += window) {
        int n = pack_threads();
        pthread_t thread[MAX_THREADS];
        Job job[MAX_THREADS];
        int64_t count = panels - at < window ? panels - at : window;
        for (int i = 0; i < n; i++) job[i] = (Job){{p, w, layer}, fmt, at, count, strands, width, buf, bytes, i, n};
        int started = 1;
        while (started < n && !pthread_create(&thread[started], NULL, pack_some, &job[started])) started++;
        pack_some(&job[0]);
        for (int i = 1; i < started; i++) pthread_join(thread[i], NULL);
        for (int i = started; i < n; i++) pack_some(&job[i]); // no thread to be had
        file_write(f, buf, (size_t) count * bytes);
    }
    free(buf);
}

// The file's own rows, one after the other; with strands, sixteen of each in turn.
static void write_raw(const Plan *p, const PackedWeight *pw, int layer, FileOut *f) {
    const Weight *w = &p->graph->stage[pw->stage].weight[pw->weight];
    Source src = {p, w, layer};
    const TypeInfo *t = type_info(w->type);
    size_t row_bytes = (size_t) (w->in / t->block * t->bytes);
    int64_t strands = weight_strands(w), width = w->out / strands;
    for (int64_t first = 0; first < w->out * weight_stack(w); first += w->out) {
        for (int64_t i = 0, row = first; strands == 1 && i < w->n_part; row += w->part_out[i++])
            file_write(f, source_row(&src, row), row_bytes * (size_t) w->part_out[i]);
        for (int64_t n = 0; strands > 1 && n < width; n += 16)
            for (int64_t s = 0; s < strands; s++)
                for (int64_t i = n; i < width && i < n + 16; i++)
                    file_write(f, source_row(&src, first + s * width + i), row_bytes);
    }
}

static void write_floats(const Plan *p, const PackedWeight *pw, int layer, FileOut *f) {
    const Weight *w = &p->graph->stage[pw->stage].weight[pw->weight];
    Source src = {p, w, layer};
    float *y = malloc(sizeof(float) * (size_t) w->in);
    if (!y) fail("out of memory");
    for (int64_t r = 0; r < w->out * weight_stack(w); r++) {
        format_of(w->type)->dequant(source_row(&src, r), y, w->in);
        file_write(f, y, sizeof(float) * (size_t) w->in);
    }
    free(y);
}

void pack_weights(const Plan *p, FileOut *f) {
    gguf_fill(p->gguf);
    Arena *a = arena_new();
    Item *item = NULL;
    int n = 0, cap = 0;
    for (int i = 0; i < p->n_weight; i++) {
        const Stage *s = &p->graph->stage[p->weight[i].stage];
        for (int l = 0; l < (s->layered ? p->graph->n_layer : 1); l++)
            if (p->weight[i].offset[l] != UINT64_MAX) *PUSH(a, item, n, cap) = (Item){p->weight[i].offset[l], i, l};
    }
    qsort(item, (size_t) n, sizeof *item, by_offset);
    static const uint8_t zero[64];
    uint64_t start = file_pos(f), at = 0;
    for (int i = 0; i < n; i++) {
        const PackedWeight *pw = &p->weight[item[i].packed];
        if (i && item[i].offset == item[i - 1].offset) continue; // shared: tied tables
        if (item[i].offset < at || item[i].offset - at >= sizeof zero)
            fail("internal: packed weights overlap at %llu", (unsigned long long) at);
        file_write(f, zero, item[i].offset - at);
        if (pw->layout == LAYOUT_PANELS) write_panels(p, pw, item[i].layer, f);
        else if (pw->layout == LAYOUT_RAW) write_raw(p, pw, item[i].layer, f);
        else write_floats(p, pw, item[i].layer, f);
        at = item[i].offset + pw->bytes;
        if (file_pos(f) - start != at)
            fail("internal: packed weight of %llu bytes instead of %llu", (unsigned long long) (file_pos(f) - start),
                (unsigned long long) at);
        progress("weights", at, p->weight_bytes);
    }
    for (; at < p->weight_bytes; at++) file_write(f, zero, 1);
    arena_free(a);
}
