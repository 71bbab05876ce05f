// The reader of GGUF files. In: a path, and whatever bytes are there. Out: a Gguf whose every span lies inside the map
// and whose every number has been checked, or one message. The idea: a cursor that can only move forward through
// bytes that exist, and that knows which key or tensor it stands in, so that every message can name it.
//
//   "GGUF"  u32 version  u64 tensors  u64 keys          all numbers little-endian
//   keys:     string name  u32 kind  value            a string: u64 length, bytes; an array: u32 kind, u64 n, elements
//   tensors:  string name  u32 n_dims  u64 ne[n_dims]  u32 type  u64 offset
//   data:     from the next multiple of general.alignment on; offsets count from there
#include "gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are taken from the file as they stand");

#define DAMAGED "the file is damaged or incomplete: get it again"
#define MAX_DEPTH 4

// Open addressing; a slot holds 1 + the position of an item that begins with its name.
typedef struct {
    const char *items;
    size_t stride;
    uint32_t *slot, mask;
    uint64_t seed;
} Index;

typedef struct {
    Gguf g; // first, so that a Gguf can be taken for its File
    Index keys, tensors;
    Str *raw; // the bytes of each key's value, to compare parts
    int cap_tensor;
    Str *map; // one for each part
    int n_map;
} File;

typedef struct {
    const char *path;
    const uint8_t *p;
    uint64_t size, pos;
    Arena *arena;
    const char *what; // "key" or "tensor", NULL in the header
    uint64_t number;  // counted from 1, until the name is known
    Str name;
    bool named;
} Reader;

static const TypeInfo types[] = {
#define TYPE(name, id, block, bytes) {#name, id, block, bytes},
#include "types.def"
#undef TYPE
};

static const struct {
    const char *name;
    int size; // in a packed array; 0: not a number
} kinds[] = {
    [GGUF_U8] = {"u8", 1},
    [GGUF_I8] = {"i8", 1},
    [GGUF_U16] = {"u16", 2},
    [GGUF_I16] = {"i16", 2},
    [GGUF_U32] = {"u32", 4},
    [GGUF_I32] = {"i32", 4},
    [GGUF_F32] = {"f32", 4},
    [GGUF_BOOL] = {"bool", 1},
    [GGUF_STR] = {"string", 0},
    [GGUF_ARR] = {"array", 0},
    [GGUF_U64] = {"u64", 8},
    [GGUF_I64] = {"i64", 8},
    [GGUF_F64] = {"f64", 8},
};

const TypeInfo *type_info(int id) {
    for (int i = 0; i < COUNT(types); i++)
        if (types[i].id == id) return &types[i];
    return NULL;
}

const TypeInfo *type_named(Str name) {
    for (int i = 0; i < COUNT(types); i++)
        if (str_is(name, types[i].name)) return &types[i];
    return NULL;
}

const char *gguf_kind_name(GgufKind k) {
    return (unsigned) k < (unsigned) COUNT(kinds) ? kinds[k].name : "?";
}

// ---- names ----

static int index_find(const Index *ix, Str name) {
    if (!ix->slot) return -1;
    for (uint32_t h = (uint32_t) hash64(name.p, name.n, ix->seed) & ix->mask; ix->slot[h]; h = (h + 1) & ix->mask) {
        int i = (int) ix->slot[h] - 1;
        Str have;
        memcpy(&have, ix->items + (size_t) i * ix->stride, sizeof have);
        if (str_eq(have, name)) return i;
    }
    return -1;
}

// Returns the first item whose name stood before it already, or -1. The seed keeps a file from choosing its collisions.
static int index_build(Index *ix, Arena *a, const void *items, int n, size_t stride) {
    uint32_t size = 16;
    while (size < (uint64_t) n * 2) size *= 2;
    *ix =
        (Index){items, stride, NEWN(a, uint32_t, size), size - 1, (uint64_t) (now_seconds() * 1e9) ^ (uintptr_t) items};
    for (int i = 0; i < n; i++) {
        Str name;
        memcpy(&name, ix->items + (size_t) i * stride, sizeof name);
        if (index_find(ix, name) >= 0) return i;
        uint32_t h = (uint32_t) hash64(name.p, name.n, ix->seed) & ix->mask;
        while (ix->slot[h]) h = (h + 1) & ix->mask;
        ix->slot[h] = (uint32_t) i + 1;
    }
    return -1;
}

// ---- the cursor ----

static _Noreturn void bad(const Reader *r, const char *fmt, ...) PRINTF(2, 3);
static _Noreturn void bad(const Reader *r, const char *fmt, ...) {
    char message[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    if (!r->what) fail("%s: %s", r->path, message);
    if (r->named) fail("%s: %s '%s' %s", r->path, r->what, str_show(r->arena, r->name), message);
    fail("%s: %s number %" PRIu64 " %s", r->path, r->what, r->number, message);
}

static const uint8_t *take(Reader *r, uint64_t n, const char *part) {
    if (n > r->size - r->pos)
        bad(r,
            "needs %" PRIu64 " bytes for its %s at byte %" PRIu64 ", but the file ends at byte %" PRIu64 "; " DAMAGED,
            n, part, r->pos, r->size);
    const uint8_t *p = r->p + r->pos;
    r->pos += n;
    return p;
}

static uint32_t take_u32(Reader *r, const char *part) {
    uint32_t v;
    memcpy(&v, take(r, 4, part), 4);
    return v;
}

static uint64_t take_u64(Reader *r, const char *part) {
    uint64_t v;
    memcpy(&v, take(r, 8, part), 8);
    return v;
}

static Str take_bytes(Reader *r, const char *part) {
    uint64_t n = take_u64(r, "length");
    if (n > r->size - r->pos)
        bad(r, "has a %s of %" PRIu64 " bytes, but only %" PRIu64 " are left in the file; " DAMAGED, part, n,
            r->size - r->pos);
    return (Str){(const char *) take(r, n, part), n};
}

static void take_name(Reader *r) {
    Str s = take_bytes(r, "name");
    if (s.n == 0) bad(r, "has an empty name; every key and tensor has one; " DAMAGED);
    if (s.n > 65535) bad(r, "has a name of %zu bytes; at most 65535 are allowed; " DAMAGED, s.n);
    r->name = s;
    r->named = true;
    if (!utf8_valid(s.p, s.n)) bad(r, "has a name that is not UTF-8; convert the model again with UTF-8 names");
    if (memchr(s.p, 0, s.n)) bad(r, "has a NUL byte in its name; names are plain text; " DAMAGED);
}

// ---- values ----

// One number or bool; the caller has made sure that its bytes are there.
static void decode(GgufKind kind, const uint8_t *p, GgufValue *v) {
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        float f32;
        uint64_t u64;
        int64_t i64;
        double f64;
    } x = {0};
    memcpy(&x, p, (size_t) kinds[kind].size);
    v->kind = kind;
    switch (kind) {
    case GGUF_U8:
    case GGUF_BOOL: v->u = x.u8; break;
    case GGUF_U16: v->u = x.u16; break;
    case GGUF_U32: v->u = x.u32; break;
    case GGUF_U64: v->u = x.u64; break;
    case GGUF_I8: v->i = x.i8; break;
    case GGUF_I16: v->i = x.i16; break;
    case GGUF_I32: v->i = x.i32; break;
    case GGUF_I64: v->i = x.i64; break;
    case GGUF_F32: v->f = (double) x.f32; break;
    case GGUF_F64: v->f = x.f64; break;
    case GGUF_STR:
    case GGUF_ARR: break;
    }
}

static GgufKind take_kind(Reader *r, const char *part) {
    uint32_t kind = take_u32(r, part);
    if (kind >= (uint32_t) COUNT(kinds))
        bad(r, "has %s %" PRIu32 "; the kinds are 0 (u8) to %d (f64); " DAMAGED ", or use a newer ggcc", part, kind,
            COUNT(kinds) - 1);
    return (GgufKind) kind;
}

static void take_strings(Reader *r, GgufValue *v) {
    v->str = NEWN(r->arena, Str, v->n);
    for (uint64_t i = 0; i < v->n; i++) {
        uint64_t n;
        if (r->size - r->pos < 8 || (memcpy(&n, r->p + r->pos, 8), n > r->size - r->pos - 8))
            bad(r,
                "reaches past the end of the file (byte %" PRIu64 ") in element %" PRIu64 " of %" PRIu64 "; " DAMAGED,
                r->size, i, v->n);
        v->str[i] = (Str){(const char *) r->p + r->pos + 8, n};
        r->pos += 8 + n;
        if (!utf8_valid(v->str[i].p, n))
            bad(r,
                "has an element (%" PRIu64
                ") that is not UTF-8: '%s'; text in a GGUF file is UTF-8; convert the model again",
                i, str_show(r->arena, v->str[i]));
    }
}

static void take_array(Reader *r, GgufValue *v, int depth) {
    static const uint64_t least[] = {[GGUF_STR] = 8, [GGUF_ARR] = 12}; // bytes that an element has at least
    if (depth > MAX_DEPTH)
        bad(r, "holds arrays more than %d deep; at most %d are read; leave the key out", MAX_DEPTH, MAX_DEPTH);
    v->kind = GGUF_ARR;
    v->elem = take_kind(r, "an array of kind");
    v->n = take_u64(r, "array's length");
    uint64_t size = kinds[v->elem].size ? (uint64_t) kinds[v->elem].size : least[v->elem];
    if (v->n > (r->size - r->pos) / size)
        bad(r,
            "is an array of %" PRIu64 " elements of kind %s, but only %" PRIu64 " bytes are left in the file; " DAMAGED,
            v->n, kinds[v->elem].name, r->size - r->pos);
    if (v->elem == GGUF_STR) take_strings(r, v);
    else if (v->elem == GGUF_ARR) {
        v->arr = NEWN(r->arena, GgufValue, v->n);
        for (uint64_t i = 0; i < v->n; i++) take_array(r, &v->arr[i], depth + 1);
    } else {
        v->data = take(r, v->n * size, "elements");
        for (uint64_t i = 0; v->elem == GGUF_BOOL && i < v->n; i++)
            if (v->data[i] > 1) bad(r, "has %u as element %" PRIu64 "; a bool is 0 or 1; " DAMAGED, v->data[i], i);
    }
}

static void take_value(Reader *r, GgufKind kind, GgufValue *v) {
    v->kind = kind;
    if (kind == GGUF_ARR) take_array(r, v, 1);
    else if (kind == GGUF_STR) {
        v->s = take_bytes(r, "string");
        if (!utf8_valid(v->s.p, v->s.n))
            bad(r, "is not UTF-8: '%s'; text in a GGUF file is UTF-8; convert the model again",
                str_show(r->arena, v->s));
    } else {
        decode(kind, take(r, (uint64_t) kinds[kind].size, "value"), v);
        if (kind == GGUF_BOOL && v->u > 1) bad(r, "is %" PRIu64 "; a bool is 0 or 1; " DAMAGED, v->u);
    }
}

// ---- header and keys ----

static void read_header(Reader *r, uint32_t *version, uint64_t *n_tensor, uint64_t *n_key) {
    static const char lfs[] = "version https://git-lfs";
    if (r->size == 0) bad(r, "the file is empty; a GGUF model was expected; get it again");
    if (r->size >= sizeof lfs && memcmp(r->p, lfs, sizeof lfs - 1) == 0)
        bad(r, "is a Git LFS pointer, not the model itself; fetch the model with 'git lfs pull'");
    if (r->size < 4 || memcmp(r->p, "GGUF", 4) != 0)
        bad(r, "begins with '%s'; a GGUF file begins with 'GGUF'; name a GGUF model, or convert this one",
            str_show(r->arena, (Str){(const char *) r->p, r->size < 4 ? r->size : 4}));
    if (r->size < 24) bad(r, "the file has %" PRIu64 " bytes; a GGUF header alone has 24; " DAMAGED, r->size);
    r->pos = 4;
    *version = take_u32(r, "version");
    if (*version != 0 && (*version & 0xFFFF) == 0)
        bad(r,
            "is a big-endian GGUF file (version %" PRIu32
            " with its bytes swapped); little-endian ones are read; convert the model again"
            " without the big-endian option",
            __builtin_bswap32(*version));
    if (*version == 1)
        bad(r,
            "is GGUF version 1, from 2023; versions 2 and 3 are read; convert the model again with a current "
            "converter");
    if (*version != 2 && *version != 3)
        bad(r, "is GGUF version %" PRIu32 "; versions 2 and 3 are read; convert the model again, or use a newer ggcc",
            *version);
    *n_tensor = take_u64(r, "number of tensors");
    *n_key = take_u64(r, "number of keys");
    // A key has at least 8 + 1 + 4 + 1 bytes, a tensor 8 + 1 + 4 + 8 + 4 + 8.
    uint64_t room = r->size - r->pos;
    if (*n_key > room / 14 || *n_key > INT32_MAX / 2)
        bad(r, "says that it holds %" PRIu64 " keys; %" PRIu64 " bytes have room for %" PRIu64 "; " DAMAGED, *n_key,
            r->size, room / 14);
    if (*n_tensor > (room - *n_key * 14) / 33 || *n_tensor > INT32_MAX / 2)
        bad(r, "says that it holds %" PRIu64 " tensors; %" PRIu64 " bytes have room for %" PRIu64 "; " DAMAGED,
            *n_tensor, r->size, (room - *n_key * 14) / 33);
}

static GgufKey *read_keys(Reader *r, uint64_t n, Str *raw) {
    GgufKey *key = NEWN(r->arena, GgufKey, n);
    r->what = "key";
    for (uint64_t i = 0; i < n; i++) {
        r->number = i + 1;
        r->named = false;
        take_name(r);
        key[i].key = r->name;
        uint64_t start = r->pos;
        take_value(r, take_kind(r, "kind"), &key[i].v);
        raw[i] = (Str){(const char *) r->p + start, r->pos - start};
    }
    r->what = NULL;
    return key;
}

static uint32_t read_alignment(Reader *r, const Index *keys, const GgufKey *key) {
    int i = index_find(keys, S("general.alignment"));
    if (i < 0) return 32;
    const GgufValue *v = &key[i].v;
    if (v->kind != GGUF_U32)
        bad(r, "key 'general.alignment' is of kind %s; u32 was expected; convert the model again", kinds[v->kind].name);
    if (v->u == 0 || (v->u & (v->u - 1)) != 0 || v->u > 65536)
        bad(r,
            "key 'general.alignment' is %" PRIu64 "; a power of two up to 65536 was expected; convert the model again",
            v->u);
    return (uint32_t) v->u;
}

// ---- tensors ----

static const char *removed_type(uint32_t id) {
    static const struct {
        uint32_t id;
        const char *name;
    } gone[] = {{4, "Q4_2"}, {5, "Q4_3"}, {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"},
        {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};
    for (int i = 0; i < COUNT(gone); i++)
        if (gone[i].id == id) return gone[i].name;
    return NULL;
}

static void read_tensor_type(Reader *r, GgufTensor *t) {
    uint32_t id = take_u32(r, "type");
    const TypeInfo *type = id <= INT32_MAX ? type_info((int) id) : NULL;
    const char *gone = removed_type(id);
    if (gone)
        bad(r,
            "is of type %" PRIu32
            " (%s), which was taken out of the format; quantise the model again with a current tool",
            id, gone);
    if (!type)
        bad(r, "is of type %" PRIu32 ", which is unknown; types up to %d are read; " DAMAGED ", or use a newer ggcc",
            id, types[COUNT(types) - 1].id);
    if (t->ne[0] % type->block != 0)
        bad(r, "has rows of %" PRId64 " elements; type %s comes in blocks of %d; quantise the model again", t->ne[0],
            type->name, type->block);
    t->type = type->id;
    if (__builtin_mul_overflow(t->n_elems / (uint64_t) type->block, (uint64_t) type->bytes, &t->n_bytes) ||
        t->n_bytes > INT64_MAX)
        bad(r, "has %" PRIu64 " elements of type %s, more bytes than 64 bits can count; " DAMAGED, t->n_elems,
            type->name);
}

static void read_tensor(Reader *r, GgufTensor *t, uint64_t *offset) {
    take_name(r);
    t->name = r->name;
    uint32_t n_dims = take_u32(r, "number of dimensions");
    if (n_dims < 1 || n_dims > 4) bad(r, "has %" PRIu32 " dimensions; 1 to 4 were expected; " DAMAGED, n_dims);
    t->n_dims = (int) n_dims;
    t->n_elems = 1;
    for (uint32_t d = 0; d < 4; d++) t->ne[d] = 1;
    for (uint32_t d = 0; d < n_dims; d++) {
        uint64_t ne = take_u64(r, "dimensions");
        if (ne == 0 || ne > INT64_MAX)
            bad(r, "has size %" PRId64 " in dimension %" PRIu32 "; at least 1 was expected; " DAMAGED, (int64_t) ne, d);
        t->ne[d] = (int64_t) ne;
        if (__builtin_mul_overflow(t->n_elems, ne, &t->n_elems) || t->n_elems > INT64_MAX)
            bad(r, "has more elements than 63 bits can count; " DAMAGED);
    }
    read_tensor_type(r, t);
    *offset = take_u64(r, "offset");
}

typedef struct {
    uint64_t offset;
    const GgufTensor *tensor;
} Place;

static int by_offset(const void *a, const void *b) {
    const Place *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void check_overlap(Reader *r, Place *place, int n) {
    bool sorted = true;
    for (int i = 1; i < n; i++) sorted &= place[i - 1].offset <= place[i].offset;
    if (!sorted) qsort(place, (size_t) n, sizeof *place, by_offset);
    for (int i = 1; i < n; i++)
        if (place[i - 1].offset + place[i - 1].tensor->n_bytes > place[i].offset)
            fail("%s: tensors '%s' and '%s' overlap at offset %" PRIu64
                 " of the data; each has bytes of its own; " DAMAGED,
                r->path, str_show(r->arena, place[i - 1].tensor->name), str_show(r->arena, place[i].tensor->name),
                place[i].offset);
}

// The tensors of one part: their table, then where their data lies.
static void read_tensors(File *f, Reader *r, uint64_t n, uint32_t alignment) {
    Gguf *g = &f->g;
    int first = g->n_tensor;
    Place *place = NEWN(r->arena, Place, n);
    r->what = "tensor";
    for (uint64_t i = 0; i < n; i++) {
        r->number = i + 1;
        r->named = false;
        if (g->n_tensor == INT32_MAX / 2)
            bad(r, "is one more than the %d that all parts may hold; " DAMAGED, INT32_MAX / 2);
        GgufTensor t;
        read_tensor(r, &t, &place[i].offset);
        *PUSH(r->arena, g->tensor, g->n_tensor, f->cap_tensor) = t;
    }
    uint64_t start = (r->pos + alignment - 1) & ~(uint64_t) (alignment - 1);
    for (uint64_t i = 0; i < n; i++) {
        GgufTensor *t = &g->tensor[first + (int) i];
        uint64_t at = place[i].offset;
        place[i].tensor = t;
        r->name = t->name;
        if (at % alignment != 0)
            bad(r, "begins at offset %" PRIu64 ", which is not a multiple of general.alignment, %" PRIu32 "; " DAMAGED,
                at, alignment);
        if (start > r->size || at > r->size - start || t->n_bytes > r->size - start - at)
            bad(r,
                "has %" PRIu64 " bytes at offset %" PRIu64 " of the data, which begins at byte %" PRIu64
                ", but the file ends at byte %" PRIu64 "; " DAMAGED,
                t->n_bytes, at, start, r->size);
        t->data = r->p + start + at;
    }
    r->what = NULL;
    check_overlap(r, place, (int) n);
}

// ---- split files ----

typedef struct {
    bool present;
    int64_t no, count, tensors;
} Split;

static const char *split_keys[] = {"split.no", "split.count", "split.tensors.count"};

static Split read_split(Reader *r, const Index *keys, const GgufKey *key) {
    int64_t value[3] = {0, 1, 0};
    int have = 0;
    for (int i = 0; i < 3; i++) {
        int at = index_find(keys, str(split_keys[i]));
        if (at < 0) continue;
        have++;
        if (key[at].v.kind == GGUF_ARR || !gguf_int(&key[at].v, 0, &value[i]) || value[i] < 0)
            bad(r, "key '%s' is no count; a whole number from 0 on was expected; split the model again", split_keys[i]);
    }
    if (have != 0 && index_find(keys, S("split.count")) < 0)
        bad(r, "has split.* keys but no split.count; a part of a split model has all three; split the model again");
    if (have != 0 && have != 3 && value[1] > 1)
        bad(r, "is a part of a split model but lacks split.no or split.tensors.count; split the model again");
    if (value[1] < 1 || value[1] > 99999)
        bad(r, "key 'split.count' is %" PRId64 "; 1 to 99999 parts were expected; split the model again", value[1]);
    if (value[0] >= value[1])
        bad(r, "key 'split.no' is %" PRId64 " of %" PRId64 "; parts count from 0; split the model again", value[0],
            value[1]);
    return (Split){have == 3, value[0], value[1], value[2]};
}

// BASE-00002-of-00003.gguf with another number; NULL when the path does not look like that.
static const char *split_path(Arena *a, const char *path, int64_t no, int64_t count) {
    Str tail = str_fmt(a, "-of-%05" PRId64 ".gguf", count);
    size_t n = strlen(path);
    if (n < tail.n + 6 || !str_ends(str(path), tail.p)) return NULL;
    const char *digits = path + n - tail.n - 5;
    if (digits[-1] != '-') return NULL;
    for (int i = 0; i < 5; i++)
        if (digits[i] < '0' || digits[i] > '9') return NULL;
    return str_fmt(a, "%.*s%05" PRId64 "%s", (int) (digits - path), path, no + 1, tail.p).p;
}

static void check_first(Reader *r, const Split *split) {
    if (split->count == 1) return;
    const char *first = split_path(r->arena, r->path, 0, split->count);
    if (split->no != 0 && first)
        bad(r, "is part %" PRId64 " of %" PRId64 "; the first part was expected; open %s", split->no + 1, split->count,
            first);
    if (split->no != 0)
        bad(r,
            "is part %" PRId64 " of %" PRId64
            "; the first part was expected; open the file that ends in -00001-of-%05" PRId64 ".gguf",
            split->no + 1, split->count, split->count);
    if (!first || strcmp(first, r->path) != 0)
        bad(r,
            "is part 1 of %" PRId64 ", but its name does not end in -00001-of-%05" PRId64
            ".gguf, so the others cannot be found; rename it",
            split->count, split->count);
}

// A later part holds its own split.* keys; any other key must say what the first part says.
static void check_later(
    File *f, Reader *r, const GgufKey *key, const Str *raw, int n, const Split *first, const Split *mine, int64_t no) {
    if (!mine->present)
        bad(r, "has no split.* keys; part %" PRId64 " of %" PRId64 " of %s was expected; put the right file there",
            no + 1, first->count, f->g.path);
    if (mine->no != no || mine->count != first->count)
        bad(r,
            "is part %" PRId64 " of %" PRId64 "; part %" PRId64 " of %" PRId64
            " was expected; put the right file there",
            mine->no + 1, mine->count, no + 1, first->count);
    if (mine->tensors != first->tensors)
        bad(r,
            "counts %" PRId64 " tensors in all parts, the first part %" PRId64
            "; they belong to different models; put the right file there",
            mine->tensors, first->tensors);
    for (int i = 0; i < n; i++) {
        if (str_starts(key[i].key, "split.") || str_is(key[i].key, "general.alignment")) continue;
        int at = index_find(&f->keys, key[i].key);
        if (at < 0 || !str_eq(f->raw[at], raw[i]))
            bad(r, "key '%s' %s in the first part; the parts belong to different models; put the right file there",
                str_show(r->arena, key[i].key), at < 0 ? "is not" : "has another value");
    }
}

// ---- opening ----

// Opens part `no` (0: the file that was named) and adds what it holds.
static void open_part(File *f, const char *path, int64_t no, Split *first) {
    Gguf *g = &f->g;
    f->map[f->n_map] = file_map(path);
    Str map = f->map[f->n_map++];
    Reader r = {.path = path, .p = (const uint8_t *) map.p, .size = map.n, .arena = g->arena};
    uint32_t version;
    uint64_t n_tensor, n_key;
    read_header(&r, &version, &n_tensor, &n_key);
    Str *raw = NEWN(g->arena, Str, n_key);
    GgufKey *key = read_keys(&r, n_key, raw);
    Index keys;
    int twice = index_build(&keys, g->arena, key, (int) n_key, sizeof *key);
    if (twice >= 0) bad(&r, "key '%s' stands twice; a key has one value; " DAMAGED, str_show(g->arena, key[twice].key));
    uint32_t alignment = read_alignment(&r, &keys, key);
    Split split = read_split(&r, &keys, key);
    if (no == 0) {
        check_first(&r, &split);
        *first = split;
        g->version = version;
        g->alignment = alignment;
        g->key = key;
        g->n_key = (int) n_key;
        f->keys = keys;
        f->raw = raw;
    } else check_later(f, &r, key, raw, (int) n_key, first, &split, no);
    read_tensors(f, &r, n_tensor, alignment);
}

// A failure that a guard has caught leaves its memory here, and the next file to be opened gives it back.
static File *opening;

Gguf *gguf_open(const char *path) {
    if (opening) gguf_close(&opening->g);
    Arena *a = arena_new();
    File *f = opening = NEW(a, File);
    Gguf *g = &f->g;
    g->arena = a;
    g->path = str_z(a, str(path));
    f->map = NEWN(a, Str, 1);
    Split split;
    open_part(f, g->path, 0, &split);
    if (split.count > 1) {
        Str *map = NEWN(a, Str, split.count);
        map[0] = f->map[0];
        f->map = map;
    }
    for (int64_t no = 1; no < split.count; no++) {
        const char *part = split_path(a, g->path, no, split.count);
        if (access(part, F_OK) != 0)
            fail("%s: part %" PRId64 " of %" PRId64 " is missing; all parts were expected beside %s; get it too", part,
                no + 1, split.count, g->path);
        open_part(f, part, no, &split);
    }
    g->n_file = (int) split.count;
    if (split.present && split.tensors != g->n_tensor)
        fail("%s: key 'split.tensors.count' is %" PRId64 ", but %s hold%s %d tensors; " DAMAGED, g->path, split.tensors,
            split.count > 1 ? "the parts" : "the file", split.count > 1 ? "" : "s", g->n_tensor);
    int twice = index_build(&f->tensors, a, g->tensor, g->n_tensor, sizeof *g->tensor);
    if (twice >= 0)
        fail("%s: tensor '%s' stands twice; names are unique; " DAMAGED, g->path, str_show(a, g->tensor[twice].name));
    opening = NULL;
    return g;
}

void gguf_close(Gguf *g) {
    if (!g) return;
    File *f = (File *) g;
    if (opening == f) opening = NULL;
    gguf_unmake(g);
    for (int i = 0; i < f->n_map; i++) file_unmap(f->map[i]);
    arena_free(g->arena);
}

const GgufKey *gguf_key(const Gguf *g, Str key) {
    int i = index_find(&((const File *) g)->keys, key);
    return i < 0 ? NULL : &g->key[i];
}

const GgufTensor *gguf_tensor(const Gguf *g, Str name) {
    int i = index_find(&((const File *) g)->tensors, name);
    return i < 0 ? NULL : &g->tensor[i];
}

// Element i of an array of numbers, or a single number, which answers to every i.
static bool number_at(const GgufValue *v, uint64_t i, GgufValue *x) {
    if (v->kind != GGUF_ARR) *x = *v;
    else if (kinds[v->elem].size && i < v->n) decode(v->elem, v->data + i * (uint64_t) kinds[v->elem].size, x);
    else return false;
    return kinds[x->kind].size != 0;
}

bool gguf_int(const GgufValue *v, uint64_t i, int64_t *out) {
    GgufValue x;
    if (!number_at(v, i, &x)) return false;
    switch (x.kind) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
    case GGUF_BOOL: *out = (int64_t) x.u; return x.u <= INT64_MAX;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64: *out = x.i; return true;
    default: return false;
    }
}

bool gguf_real(const GgufValue *v, uint64_t i, double *out) {
    GgufValue x;
    if (!number_at(v, i, &x)) return false;
    switch (x.kind) {
    case GGUF_F32:
    case GGUF_F64: *out = x.f; return true;
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64: *out = (double) x.u; return true;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64: *out = (double) x.i; return true;
    default: return false;
    }
}

GgufValue gguf_part(const GgufValue *array, uint64_t from, uint64_t n) {
    GgufValue part = *array;
    part.n = n;
    if (array->elem == GGUF_STR) part.str += from;
    else if (array->elem == GGUF_ARR) part.arr += from;
    else part.data += from * (uint64_t) kinds[array->elem].size;
    return part;
}
