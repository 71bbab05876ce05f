// `ggcc template`: one chat template, rendered on one case, or looked at. In: the command's arguments. Out: the exit
// status.
#ifndef TEMPLATE_COMMANDS_H
#define TEMPLATE_COMMANDS_H

#include "gguf.h"
#include "util.h"

typedef struct {
    const char *file;      // FILE.gguf or FILE.jinja
    const char *case_path; // --case: a JSON object of the template's variables; "-" is stdin; NULL: none
    const char *bos, *eos; // win over the case's; NULL: of the case, or of the file's tokenizer
    const char *now;       // local time like 2026-07-26T09:05:03; NULL: the present
    const char *name;      // of several templates in one file; NULL: the default one
    bool emit;             // print the template as C instead
} TemplateArgs;
int template_command(const TemplateArgs *args);

// The templates that a GGUF file carries: tokenizer.chat_template as "default", tokenizer.chat_template.NAME as NAME.
typedef struct {
    Str name, source;
    const char *where; // for messages: FILE:KEY
} TemplateSource;
int template_sources(Arena *a, const Gguf *g, TemplateSource **out);
Str template_rerank(const Gguf *g); // the prompt around a pair of texts, with {query} and {document}; or nothing
// The text of a special token: tokenizer.ggml.KEY_token_id; NULL: the file names none.
const char *template_token(Arena *a, const Gguf *g, const char *key);

#endif
