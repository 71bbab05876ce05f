// Token after token: evaluate, sample, print, until something ends it.
#ifndef GENERATE_H
#define GENERATE_H

#include "program.h"

enum { MAX_LOGPROBS = 100 };
typedef enum { END_LIMIT, END_TOKEN, END_TEXT, END_CONTEXT, END_INTERRUPTED } EndReason;

typedef struct {
    int limit; // tokens at most; -1: as many as the context holds
    bool ids;  // print ids, one a line, not text
    bool ignore_eog;
    int logprobs; // tell() gets so many of the likeliest tokens; -1: it is not called
    int (*tell)(void *context, int32_t id, float log_p, const Candidate *best, int n);
    int (*write)(void *context, const char *text, size_t n); // whole characters; not 0: failed, complaint()
    void *context;
} GenerateOptions;

typedef struct {
    EndReason end;
    int evaluated, made;         // tokens of the prompt, and new ones
    double prompt_s, generate_s; // time to the first token, and for the others
} Generated;

// Goes on with the text of sequence 0, whose last token is not evaluated yet. Its new tokens are appended.
int generate(Program *p, const GenerateOptions *o, Generated *g);

double seconds_now(void); // monotonic

#endif
