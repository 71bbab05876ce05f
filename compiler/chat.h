// The chat templates of a model as sources of its program.
#ifndef COMPILER_CHAT_H
#define COMPILER_CHAT_H

#include "gguf.h"
#include "toolchain.h"

typedef struct {
    const char *file; // --chat-template FILE: in place of the model's own default one
    bool none;        // --no-chat
} ChatOptions;

// Sources: a translation unit for each template, and the one with the table of them, which every program has. Fails
// where a template cannot be compiled, or ends its turns with what no token or stop text of the tokenizer (its
// tables; may be empty) ends; `stop_given`: the user named a stop text.
ChatCode chat_code(Arena *a, const Gguf *g, const ChatOptions *o, Str tokenizer, bool stop_given);

#endif
