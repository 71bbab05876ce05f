// The command line of a program: one table of commands, one of options; both drive parsing and --help.
#ifndef OPTIONS_H
#define OPTIONS_H

#include "sample.h"
#include <stdbool.h>
#include <stdint.h>

enum { MAX_LISTED = 64 };
typedef struct {
    const char *text[MAX_LISTED];
    int n;
} TextList;

typedef struct {
    const char *prompt, *file, *ids; // the input, one of them
    const char *output, *save, *load, *at;
    const char *system, *template, *kwargs; // of a chat
    bool chat, drop_oldest;
    int n, threads, ctx, batch;
    int pp, tg, depth, reps;
    const char *pool;        // of embed
    const char *query, *doc; // of rerank
    bool normalize;
    bool json, verbose, no_special, parse_special, ignore_eos, help;
    bool temp_given, narrowed; // --temp; an option that only works with it
    SampleOptions sample;
    const char *samplers;    // names, separated by ;: sample.order
    TextList bias, breakers; // --logit-bias, --dry-sequence-breaker, as often as given
    int logprobs;            // -1: none
} Options;

typedef struct Command Command;
struct Command {
    const char *name, *arguments, *does;
    int (*run)(const Options *o); // 0; -1: complaint(), exit 1; 2: complaint() about the usage; 3: a check failed
    unsigned bit;                 // for the option table
    bool logits;                  // it works on logits
};
extern const Command commands[]; // ends with a NULL name

const Command *command_named(const char *name);
// Arguments after the command's name. 0, or 2: complaint().
int options_parse(Options *o, const Command *c, int argc, char **argv);
int options_help(const Command *c); // on standard output
// One sampling option, by its name without the dashes. 0, or -1: complaint(), and nothing has changed.
int options_set(Options *o, const char *name, const char *value);

int parse_int(const char *text, int low, int high, int *value); // strict: 0, or -1 (no complaint)

int cmd_run(const Options *o);
int cmd_chat(const Options *o);
int cmd_tokenize(const Options *o);
int cmd_detokenize(const Options *o);
int cmd_logits(const Options *o);
int cmd_perplexity(const Options *o);
int cmd_embed(const Options *o);
int cmd_rerank(const Options *o);
int cmd_bench(const Options *o);
int cmd_selftest(const Options *o);
int cmd_info(const Options *o);

// Shared by the commands.
#include "program.h"
extern volatile sig_atomic_t interrupted; // Ctrl-C
extern double main_started;               // seconds_now() when main began
extern const char *const weights_file;    // generated: NULL, or the file beside the program
extern const char *const compiler_version;

// The tokens of -p, -f or --ids, malloc'ed. Without any of them: an error, unless `optional`. `special`: add what
// begins a text of this model.
int input_tokens(const Program *p, const Options *o, bool special, bool optional, int32_t **ids, int *n);
int text_tokens(const Program *p, const char *text, size_t size, int flags, int32_t **ids, int *n); // TOK_ flags
// A program with its settings from the options: 0, or what the command returns.
int open_model(Program *p, const Options *o);
int open_to_sample(Program *p, const Options *o); // with the breakers, and a note where options change nothing
Settings settings_of(const Options *o);
// The lists of --logit-bias and --dry-sequence-breaker. 0, or what the command returns.
int parse_bias(const Options *o, LogitBias *bias); // [MAX_LISTED]
int set_breakers(Program *p, const Options *o);

#endif
