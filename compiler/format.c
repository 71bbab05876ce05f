// The table of formats, made of the files templates/format/NAME.c by inclusion.
// In: blocks as a model file has them. Out: f32, or panels of 16 rows. The arithmetic is all in those files.
#include "format.h"
#include "template.h"

#include <string.h>

#include "../templates/c/half.h"
#include "../templates/c/panel.h"
#include "../templates/format/pack.h"

#include "../templates/format/bf16.c"
#include "../templates/format/f16.c"
#include "../templates/format/f32.c"
#include "../templates/format/i32.c"
#include "../templates/format/iq4_nl.c"
#include "../templates/format/iq4_xs.c"
#include "../templates/format/mxfp4.c"
#include "../templates/format/q2_k.c"
#include "../templates/format/q3_k.c"
#include "../templates/format/q4_0.c"
#include "../templates/format/q4_1.c"
#include "../templates/format/q4_k.c"
#include "../templates/format/q5_0.c"
#include "../templates/format/q5_1.c"
#include "../templates/format/q5_k.c"
#include "../templates/format/q6_k.c"
#include "../templates/format/q8_0.c"

enum {
#define TYPE(name, id, block, bytes) TYPE_##name = id,
#include "types.def"
#undef TYPE
};

// Lanes that a matrix does not have stay zero: a block of zero bytes is 32 or 256 zeros in every format.
#define PLAIN(name, NAME)
#define PACKED(name, NAME)                                                                                             \
    static void name##_pack_panel(const uint8_t *const row[16], int64_t k, uint8_t *panel) {                           \
        memset(panel, 0, name##_panel_bytes(k));                                                                       \
        name##_pack(row, k, panel);                                                                                    \
    }                                                                                                                  \
    static void name##_unpack(const uint8_t *panel, int64_t k, int lane, float *y) {                                   \
        name##_packed_row(panel, k, lane, y);                                                                          \
    }
#include "../templates/format/list.def"
#undef PLAIN
#undef PACKED

const Format formats[] = {
#define PLAIN(name, NAME) {#name, TYPE_##NAME, name##_block, name##_bytes, name##_row, NULL, NULL, NULL},
#define PACKED(name, NAME)                                                                                             \
    {#name, TYPE_##NAME, name##_block, name##_bytes, name##_row, name##_panel_bytes, name##_pack_panel, name##_unpack},
#include "../templates/format/list.def"
#undef PLAIN
#undef PACKED
};
const int n_formats = COUNT(formats);

const Format *format_of(int type) {
    for (int i = 0; i < n_formats; i++)
        if (formats[i].type == type) return &formats[i];
    return NULL;
}

void format_refuse(Str tensor, const char *type) {
    static const char names[] =
#define PLAIN(name, NAME) " " #NAME
#define PACKED(name, NAME) " " #NAME
#include "../templates/format/list.def"
#undef PLAIN
#undef PACKED
        ;
    fail("tensor '%.*s' has type %s, which is not computed with; quantise the model again, to one of:%s", FMT(tensor),
        type, names);
}

Str format_source(const Format *f) {
    static const char *const folder[] = {"format", NULL};
    char file[32];
    snprintf(file, sizeof file, "%s.c", f->name);
    return template_find(folder, file);
}

Str format_section(const Format *f, const char *name) {
    return template_section(format_source(f), name);
}
