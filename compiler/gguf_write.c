// The writer of GGUF files, version 3. In: keys, then tensor shapes, then the tensors' bytes in the same order.
// Out: a file that gguf.c accepts, put in place when whole. The idea: the two tables grow in memory, where the
// offset of every tensor is known at once; the data, which may be large, is only streamed.
#include "gguf.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    Str name;
    uint64_t offset, n_bytes;
} Slot;

struct GgufWriter {
    Arena *arena;
    FileOut *file;
    const char *path;
    Out keys, infos;
    uint64_t n_key, alignment;
    uint64_t end; // of the last tensor, counted from the start of the data
    Slot *tensor;
    int n_tensor, cap_tensor;
    int now;          // the tensor that is being written
    uint64_t written; // bytes of it
};

static void put(Out *o, const void *p, size_t n) {
    out_str(o, (Str){p, n});
}

static void put_u32(Out *o, uint32_t v) {
    put(o, &v, sizeof v);
}

static void put_u64(Out *o, uint64_t v) {
    put(o, &v, sizeof v);
}

static void put_str(Out *o, Str s) {
    put_u64(o, s.n);
    put(o, s.p, s.n);
}

GgufWriter *gguf_create(const char *path) {
    Arena *a = arena_new();
    GgufWriter *w = NEW(a, GgufWriter);
    w->arena = a;
    w->path = str_z(a, str(path));
    w->file = file_create(path);
    w->keys = out_new(a);
    w->infos = out_new(a);
    w->alignment = 32;
    return w;
}

static void put_key(GgufWriter *w, Str key, GgufKind kind) {
    w->n_key++;
    put_str(&w->keys, key);
    put_u32(&w->keys, kind);
}

void gguf_put_u32(GgufWriter *w, Str key, uint32_t v) {
    if (str_is(key, "general.alignment")) {
        if (v == 0 || (v & (v - 1)) != 0 || v > 65536)
            fail("%s: general.alignment is %" PRIu32 "; a power of two up to 65536 was expected", w->path, v);
        w->alignment = v;
    }
    put_key(w, key, GGUF_U32);
    put_u32(&w->keys, v);
}

void gguf_put_f32(GgufWriter *w, Str key, float v) {
    put_key(w, key, GGUF_F32);
    put(&w->keys, &v, sizeof v);
}

void gguf_put_bool(GgufWriter *w, Str key, bool v) {
    uint8_t byte = v;
    put_key(w, key, GGUF_BOOL);
    put(&w->keys, &byte, 1);
}

void gguf_put_str(GgufWriter *w, Str key, Str v) {
    put_key(w, key, GGUF_STR);
    put_str(&w->keys, v);
}

static size_t kind_size(GgufKind k) {
    switch (k) {
    case GGUF_U8:
    case GGUF_I8:
    case GGUF_BOOL: return 1;
    case GGUF_U16:
    case GGUF_I16: return 2;
    case GGUF_U32:
    case GGUF_I32:
    case GGUF_F32: return 4;
    case GGUF_U64:
    case GGUF_I64:
    case GGUF_F64: return 8;
    case GGUF_STR:
    case GGUF_ARR: break;
    }
    return 0;
}

void gguf_put_array(GgufWriter *w, Str key, GgufKind elem, const void *data, uint64_t n) {
    if (elem == GGUF_ARR) fail("%s: key '%s': nested arrays are read, not written", w->path, str_show(w->arena, key));
    put_key(w, key, GGUF_ARR);
    put_u32(&w->keys, elem);
    put_u64(&w->keys, n);
    if (elem == GGUF_STR)
        for (uint64_t i = 0; i < n; i++) put_str(&w->keys, ((const Str *) data)[i]);
    else put(&w->keys, data, n * kind_size(elem));
}

void gguf_put_tensor(GgufWriter *w, Str name, int type, int n_dims, const int64_t *ne) {
    const TypeInfo *info = type_info(type);
    const char *shown = str_show(w->arena, name);
    if (!info) fail("%s: tensor '%s' is of type %d, which does not exist", w->path, shown, type);
    if (n_dims < 1 || n_dims > 4)
        fail("%s: tensor '%s' has %d dimensions; 1 to 4 were expected", w->path, shown, n_dims);
    uint64_t n = 1;
    for (int d = 0; d < n_dims; d++)
        if (ne[d] < 1 || __builtin_mul_overflow(n, (uint64_t) ne[d], &n) || n > INT64_MAX / 512)
            fail("%s: tensor '%s' has size %" PRId64 " in dimension %d; sizes are at least 1 and fit a file", w->path,
                shown, ne[d], d);
    if (ne[0] % info->block != 0)
        fail("%s: tensor '%s' has rows of %" PRId64 " elements; type %s comes in blocks of %d", w->path, shown, ne[0],
            info->name, info->block);
    uint64_t n_bytes = n / (uint64_t) info->block * (uint64_t) info->bytes;
    uint64_t offset = (w->end + w->alignment - 1) / w->alignment * w->alignment;
    put_str(&w->infos, name);
    put_u32(&w->infos, (uint32_t) n_dims);
    for (int d = 0; d < n_dims; d++) put_u64(&w->infos, (uint64_t) ne[d]);
    put_u32(&w->infos, (uint32_t) type);
    put_u64(&w->infos, offset);
    *PUSH(w->arena, w->tensor, w->n_tensor, w->cap_tensor) = (Slot){str_dup(w->arena, name), offset, n_bytes};
    w->end = offset + n_bytes;
}

static void pad(GgufWriter *w) {
    static const char zero[64];
    while (file_pos(w->file) % w->alignment != 0) {
        uint64_t n = w->alignment - file_pos(w->file) % w->alignment;
        file_write(w->file, zero, n < sizeof zero ? n : sizeof zero);
    }
}

void gguf_begin_data(GgufWriter *w) {
    Out head = out_new(w->arena);
    put(&head, "GGUF", 4);
    put_u32(&head, 3);
    put_u64(&head, (uint64_t) w->n_tensor);
    put_u64(&head, w->n_key);
    file_write(w->file, head.p, head.n);
    file_write(w->file, w->keys.p, w->keys.n);
    file_write(w->file, w->infos.p, w->infos.n);
    pad(w); // every offset is a multiple of the alignment too, so padding the file pads each tensor
}

// One call may end a tensor and begin the next.
void gguf_write_data(GgufWriter *w, const void *p, size_t n) {
    const char *from = p;
    while (n > 0) {
        if (w->now == w->n_tensor) fail("%s: %zu bytes follow the last tensor's data", w->path, n);
        uint64_t left = w->tensor[w->now].n_bytes - w->written;
        size_t part = n < left ? n : (size_t) left;
        file_write(w->file, from, part);
        w->written += part;
        from += part;
        n -= part;
        if (part == left) {
            w->now++;
            w->written = 0;
            pad(w);
        }
    }
}

void gguf_finish(GgufWriter *w) {
    if (w->now < w->n_tensor)
        fail("%s: tensor '%s' got %" PRIu64 " of its %" PRIu64 " bytes", w->path,
            str_show(w->arena, w->tensor[w->now].name), w->written, w->tensor[w->now].n_bytes);
    file_commit(w->file, false);
    arena_free(w->arena);
}
