// Quantisation formats, as the compiler uses them: one row for each file templates/format/NAME.c. That file is plain C
// and is used twice: included here for unpacking and packing, and pasted, section by section, into generated code.
#ifndef FORMAT_H
#define FORMAT_H

#include "util.h"

typedef struct {
    const char *name; // lower case, as in the file's name and in kernel names: "q4_k"
    int type;         // number of a row in types.def
    int block, bytes; // elements and bytes of a block, as in types.def
    // A row of n elements as f32, exactly as the format defines it.
    void (*dequant)(const uint8_t *row, float *y, int64_t n);
    // The packed layout: panels of 16 rows (outputs), bytes in the order kernels read them. NULL: none, kernels read
    // the file's own rows. k is a multiple of the block.
    size_t (*panel_bytes)(int64_t k);                                      // bytes of a panel of rows k elements long
    void (*pack)(const uint8_t *const row[16], int64_t k, uint8_t *panel); // row[i] == NULL: a row of zeros
    void (*unpack)(const uint8_t *panel, int64_t k, int lane, float *y);   // row `lane` of a panel: equals dequant
} Format;

extern const Format formats[];
extern const int n_formats;
const Format *format_of(int type); // NULL: known to the file format, not computed with
_Noreturn void format_refuse(Str tensor, const char *type); // stops, and says which types would do

// The text of the format's file, and a section of it: from the line after `//@ section NAME` to the line before
// `//@ end`. `decode` is what generated code needs for the file's own rows, `packed` to read packed rows one by one.
Str format_source(const Format *f);
Str format_section(const Format *f, const char *name);

#endif
