// ggcc's commands on text and ids: tokenize, detokenize, logits. The same words as the programs'.
#ifndef TEXT_COMMANDS_H
#define TEXT_COMMANDS_H

#include "driver.h"

typedef struct {
    const char *prompt, *file, *ids; // -p, -f, --ids: one of them
    bool no_special, parse_special;
} TextInput;

int text_tokenize(const char *model, const TextInput *in, const TokenizerOptions *opt);
int text_detokenize(const char *model, const TextInput *in, const TokenizerOptions *opt);
int text_logits(const char *model, const TextInput *in, const char *at, const char *out_path, int threads,
    const CompileOptions *opt);

#endif
