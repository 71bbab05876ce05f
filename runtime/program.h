// A model ready to work: everything the runtime has, put together once. Commands, tests and the library use this.
#ifndef PROGRAM_H
#define PROGRAM_H

#include "memory.h"
#include "model.h"
#include "sample.h"
#include "state.h"
#include "team.h"
#include "tokenizer.h"
#include "weights.h"
#include <signal.h>

typedef struct {
    const ModelInfo *info;
    Weights file;
    bool has_tokenizer;
    Tokenizer tokenizer;
    Memory memory;
    Model model;
    Team *team;
    State state;
    Sampler sampler;
    LogitBias *bias; // of this program: tokens never to be sampled; room for max_bias
    int batch;       // rows of a forward when a prompt is evaluated
    int32_t *token, *pos, *seq, *out, *out_pos, *out_seq; // the rows of the next forward, writable
    char *text; // room for the text of one token and for a held-back beginning of a stop text
    size_t text_room;
    const volatile sig_atomic_t *interrupted; // set from outside; looked at between forwards. NULL: never
} Program;

typedef struct {
    int threads;           // 0: all cores this process may use
    int n_ctx;             // 0: as built
    int batch;             // 0: as built
    int n_seq;             // 0: one
    const LogitBias *bias; // the user's
    int n_bias;
} Settings;

// All return 0, or -1: complaint().
int program_open_file(Program *p, const ModelInfo *info, const char *weights); // weights and tokenizer: enough for text
int settings_check(const Settings *s, const ModelInfo *info);                  // whether the model was built for them
int program_open(Program *p, const Settings *settings);                        // then memory, threads, state
void program_close(Program *p);

// Appends tokens to the text of sequence 0, without evaluating them.
int program_append(Program *p, const int32_t *ids, int n);
// Evaluates the text of sequence 0 up to its first `n` tokens; with `logits`, model.logits holds the last one's row.
int program_eval(Program *p, int n, bool logits);
// The same, with the logits of the positions that have want[position], in order of position: after each forward that
// gave some, rows() finds them in p->model: out_pos[0 .. outs) and logits. It returns 0, or -1: complaint().
int program_eval_rows(Program *p, int n, const uint8_t *want, int (*rows)(void *context, Program *p), void *context);

#endif
