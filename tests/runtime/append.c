// Ends a test program as the linker of ggcc does: weights at a page boundary, the tokenizer's bytes, the trailer.
// usage: append IN OUT HASH WEIGHT_BYTES TOKENIZER_BYTES
#include "../../runtime/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    FILE *in = argc == 6 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[2], "wb") : NULL;
    if (!out) return 1;
    Trailer t = {.version = TRAILER_VERSION};
    memcpy(t.magic, TRAILER_MAGIC, sizeof t.magic);
    uint64_t at = 0;
    for (int c; (c = getc(in)) != EOF; at++) putc(c, out);
    for (; at % WEIGHTS_ALIGN_IN_FILE; at++) putc(0, out);
    t.model = strtoull(argv[3], NULL, 0);
    t.weights = at, t.weights_size = strtoull(argv[4], NULL, 0);
    for (uint64_t i = 0; i < t.weights_size; i++) putc((int) (i * i % 251), out);
    t.tokenizer = at + t.weights_size, t.tokenizer_size = strtoull(argv[5], NULL, 0);
    for (uint64_t i = 0; i < t.tokenizer_size; i++) putc('t', out);
    fwrite(&t, sizeof t, 1, out);
    return fclose(out) != 0;
}
