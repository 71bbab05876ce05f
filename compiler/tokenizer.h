// The tokenizer of a model file, compiled to the tables that runtime/tokenizer.h reads.
#ifndef COMPILER_TOKENIZER_H
#define COMPILER_TOKENIZER_H

#include "gguf.h"

typedef struct {
    Str pre;         // --pre NAME in place of tokenizer.ggml.pre; empty: the file's
    bool none;       // --no-tokenizer
    const Str *stop; // --stop TEXT: ends generation
    int n_stop;
} TokenizerOptions;

// The blob, aligned to 64 bytes; empty when the file has no tokenizer (or the options say to leave it out).
// Fails on metadata that is broken, and on a kind or pre-tokenizer that is not known.
Str tokenizer_build(Arena *a, const Gguf *g, const TokenizerOptions *o);

#endif
