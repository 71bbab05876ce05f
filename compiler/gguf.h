// A GGUF file, mapped and checked: the key/value table and the tensor table, all spans inside the map.
// gguf_open refuses every file in which anything that this header exposes would be wrong, so that
// nobody after it checks a length, an offset or an encoding again. Split files are opened as one.
#ifndef GGUF_H
#define GGUF_H

#include "util.h"

// The numbers are the file format's own.
typedef enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STR,
    GGUF_ARR,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
} GgufKind;

typedef struct GgufValue GgufValue;
struct GgufValue {
    GgufKind kind;
    union {
        uint64_t u; // U8..U64, BOOL
        int64_t i;  // I8..I64
        double f;   // F32, F64
        Str s;      // STR, valid UTF-8 (a NUL may stand inside)
    };
    // ARR: n elements of kind `elem`; numbers and bools packed little-endian at `data` (not aligned),
    // strings as `str[n]` spans, arrays as `arr[n]`.
    GgufKind elem;
    uint64_t n;
    const uint8_t *data;
    Str *str;
    GgufValue *arr;
};

typedef struct {
    Str key;
    GgufValue v;
} GgufKey;

typedef struct {
    Str name;
    int type;      // number of a row in types.def
    int n_dims;    // 1..4
    int64_t ne[4]; // as in the file: ne[0] is contiguous; unused ones are 1
    uint64_t n_elems, n_bytes;
    const uint8_t *data; // in the map
} GgufTensor;

typedef struct GgufMade GgufMade;
typedef struct {
    const char *path;
    uint32_t version, alignment;
    GgufKey *key;
    int n_key;
    GgufTensor *tensor;
    int n_tensor;
    int n_file; // parts of a split file
    GgufMade *made; // made.c: tensor[first_made ..] are made of the file's
    int first_made, n_made, cap_made;
    Arena *arena;
} Gguf;

Gguf *gguf_open(const char *path);
void gguf_close(Gguf *g);
const GgufKey *gguf_key(const Gguf *g, Str key);        // NULL when absent; hashed
const GgufTensor *gguf_tensor(const Gguf *g, Str name); // NULL when absent; hashed
// Element i of an array, or the value itself, as a number. false when it is not one (or out of int64's range).
bool gguf_int(const GgufValue *v, uint64_t i, int64_t *out);
bool gguf_real(const GgufValue *v, uint64_t i, double *out);
GgufValue gguf_part(const GgufValue *array, uint64_t from, uint64_t n); // some of its elements, which it has
const char *gguf_kind_name(GgufKind k);

// The rows first .. first + rows of each of `groups` equal groups, as a tensor [groups][rows][in], or, turned over,
// [groups][in][rows]; its index in `tensor`. Turned blocks become F32. fill: before bytes of such tensors are read.
int gguf_make(Gguf *g, int from, int64_t groups, int64_t first, int64_t rows, bool turned);
void gguf_fill(const Gguf *g);
void gguf_unmake(Gguf *g);

// Writing (synth, tests): keys and tensors in order, then the data of each tensor, streamed.
typedef struct GgufWriter GgufWriter;
GgufWriter *gguf_create(const char *path);
void gguf_put_u32(GgufWriter *w, Str key, uint32_t v);
void gguf_put_f32(GgufWriter *w, Str key, float v);
void gguf_put_bool(GgufWriter *w, Str key, bool v);
void gguf_put_str(GgufWriter *w, Str key, Str v);
void gguf_put_array(GgufWriter *w, Str key, GgufKind elem, const void *data, uint64_t n); // STR: data is Str[n]
void gguf_put_tensor(GgufWriter *w, Str name, int type, int n_dims, const int64_t *ne);
void gguf_begin_data(GgufWriter *w);
void gguf_write_data(GgufWriter *w, const void *p, size_t n); // tensors one after the other; padding is put in
void gguf_finish(GgufWriter *w);

// Tensor types: one row each in types.def; a row without a format file is known by name and refused by name.
typedef struct {
    const char *name; // "Q4_K"
    int id;           // the file's number
    int block;        // elements in a block
    int bytes;        // bytes of a block
} TypeInfo;
const TypeInfo *type_info(int id); // NULL: no such type
const TypeInfo *type_named(Str name);

#endif
