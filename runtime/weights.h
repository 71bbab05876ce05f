// The data of a program: packed weights and tokenizer, behind the code in one file or in a file beside it.
// The last 64 bytes of that file, the trailer, say where. The compiler writes it, the program checks it.
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

enum { TRAILER_VERSION = 1, WEIGHTS_ALIGN_IN_FILE = 4096 };

typedef struct {                        // little-endian; the file ends with it
    char magic[8];                      // TRAILER_MAGIC, no NUL
    uint32_t version, flags;            // flags 0
    uint64_t tokenizer, tokenizer_size; // offset from the beginning of the file; size 0: none
    uint64_t weights, weights_size;     // offset is a multiple of WEIGHTS_ALIGN_IN_FILE
    uint64_t model;                     // ModelInfo.hash
    uint64_t zero;
} Trailer;
_Static_assert(sizeof(Trailer) == 64, "the trailer is a format");
#define TRAILER_MAGIC "ggccprog"

typedef struct {
    const uint8_t *base; // the whole file, mapped
    uint64_t size;
    const uint8_t *weights;
    const void *tokenizer; // NULL: none
    uint64_t tokenizer_size;
} Weights;

// Maps this program's file, or `file` when weights lie beside it (a relative name: beside the program), and checks
// that it belongs to the model with this hash and size. 0, or -1: complaint().
int weights_open(Weights *w, const char *file, uint64_t hash, uint64_t weight_bytes);
void weights_close(Weights *w);

#endif
