// The conversations that every template is rendered over when a program is built. ggcc keeps the results in the
// program, whose self-test renders them again: generated C against ggcc's own evaluation of the template.
#ifndef CHAT_CASES_H
#define CHAT_CASES_H

#include "chat_template.h"

enum { CHAT_CASES = 9, CHAT_CASE_PLAIN = 2, CHAT_CASE_MEMORY = 64 << 20, CHAT_CASE_STEPS = 1000000 };

typedef struct {
    uint64_t hash; // of the text, or of the message of the error
    uint32_t n;    // its bytes
    bool failed;
} ChatCheck;

extern const char *const chat_cases[CHAT_CASES]; // JSON objects of the template's variables

// The case at a fixed time, with these special tokens (NULL: the model has none). 0 or -1: r->error.
int chat_case_open(Render *r, void *memory, size_t size, int which, const char *bos, const char *eos);
ChatCheck chat_case_result(const Render *r, int status); // after the rendering

#endif
