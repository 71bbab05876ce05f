// Parses a command's options by the table, and prints the table as help. In: argv. Out: Options, or a complaint that
// names the option, what was found and what was expected.
#include "options.h"
#include "error.h"
#include "io.h"
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUN = 1,
    TOKENIZE = 2,
    DETOKENIZE = 4,
    LOGITS = 8,
    PERPLEXITY = 16,
    BENCH = 32,
    SELFTEST = 64,
    INFO = 128,
    CHAT = 256,
    EMBED = 512,
    RERANK = 1024,
    TALK = RUN | CHAT,
    MODEL = TALK | LOGITS | PERPLEXITY | BENCH | EMBED | RERANK, // commands that evaluate
    ALL = 2047
};

const Command commands[] = {
    {"run", "(-p TEXT | -f FILE | --ids FILE) [options]", "complete a text", cmd_run, RUN, true},
    {"chat", "[options]", "a conversation, by the model's template", cmd_chat, CHAT, true},
    {"tokenize", "(-p TEXT | -f FILE) [options]", "print the ids of a text, one a line", cmd_tokenize, TOKENIZE, false},
    {"detokenize", "-f FILE", "write the bytes of ids", cmd_detokenize, DETOKENIZE, false},
    {"logits", "(-p TEXT | -f FILE | --ids FILE) -o OUT [options]", "write rows of logits as raw float32", cmd_logits,
        LOGITS, true},
    {"embed", "(-p TEXT | -f FILE | --ids FILE) -o OUT [options]",
        "write what an encoder makes of a text, as raw float32", cmd_embed, EMBED, false},
    {"rerank", "--query FILE --doc FILE [options]", "how well a document answers a query: scores", cmd_rerank, RERANK,
        false},
    {"perplexity", "(-f FILE | --ids FILE) [options]", "how well the model predicts a text", cmd_perplexity, PERPLEXITY,
        true},
    {"bench", "[options]", "measure the speed", cmd_bench, BENCH, false},
    {"selftest", "[options]", "compare with the results stored when the program was built", cmd_selftest, SELFTEST,
        false},
    {"info", "", "what was compiled, from what, and the memory it takes", cmd_info, INFO, false},
    {NULL, NULL, NULL, NULL, 0, false},
};

typedef enum { FLAG, TEXT, LIST, INT, U64, REAL } Kind; // LIST: a TEXT that may be given again and again
typedef struct {
    const char *name, *letter, *value;
    Kind kind;
    unsigned commands;
    size_t at;     // in Options
    int low, high; // INT
    const char *help;
} Option;

#define AT(field) offsetof(Options, field)
enum { MAX = 0x7fffffff };
static const Option options[] = {
    {"prompt", "p", "TEXT", TEXT, RUN | TOKENIZE | LOGITS | PERPLEXITY | EMBED, AT(prompt), 0, 0, "the text itself"},
    {"file", "f", "PATH", TEXT, ALL & ~(BENCH | SELFTEST | INFO | CHAT | RERANK), AT(file), 0, 0,
        "a file with the text (detokenize: ids); - is standard input"},
    {"ids", NULL, "PATH", TEXT, RUN | LOGITS | PERPLEXITY | EMBED, AT(ids), 0, 0,
        "a file with token ids; nothing is added to them"},
    {"n-predict", "n", "N", INT, TALK, AT(n), -1, MAX, "tokens to make; -1, the default: until the context is full"},
    {"at", NULL, "LIST", TEXT, LOGITS, AT(at), 0, 0, "positions, like 0,5,7; default: all"},
    {"output", "o", "PATH", TEXT, LOGITS | EMBED, AT(output), 0, 0, "the file to write"},
    {"pool", NULL, "KIND", TEXT, EMBED, AT(pool), 0, 0,
        "how the rows of a text become one: none, mean, first or last; default: as the model's file says"},
    {"query", NULL, "FILE", TEXT, RERANK, AT(query), 0, 0, "the question"},
    {"doc", NULL, "FILE", TEXT, RERANK, AT(doc), 0, 0, "what may answer it"},
    {"normalize", NULL, NULL, FLAG, EMBED, AT(normalize), 0, 0, "divide each vector by its length"},
    {"load", NULL, "PATH", TEXT, RUN, AT(load), 0, 0, "a saved state to go on from"},
    {"save", NULL, "PATH", TEXT, RUN, AT(save), 0, 0, "where to save the state afterwards"},
    {"chat", NULL, NULL, FLAG, RUN, AT(chat), 0, 0, "answer the text as a user's message, by the model's template"},
    {"system", NULL, "TEXT", TEXT, TALK, AT(system), 0, 0, "the system's message of a chat"},
    {"template", NULL, "NAME", TEXT, TALK, AT(template), 0, 0,
        "which of the program's chat templates; default: default"},
    {"chat-template-kwargs", NULL, "JSON", TEXT, TALK, AT(kwargs), 0, 0,
        "variables for the template, like {\"enable_thinking\": false}"},
    {"drop-oldest", NULL, NULL, FLAG, CHAT, AT(drop_oldest), 0, 0, "drop the oldest turns when the context is full"},
    {"pp", NULL, "N", INT, BENCH, AT(pp), 0, MAX, "tokens of the prompt that is measured; default 512"},
    {"tg", NULL, "N", INT, BENCH, AT(tg), 0, MAX, "single tokens measured; default 128"},
    {"depth", NULL, "N", INT, BENCH, AT(depth), 0, MAX, "tokens in the context before; default 0"},
    {"reps", NULL, "N", INT, BENCH, AT(reps), 1, 10000, "repetitions; default 5"},
    {"threads", "t", "N", INT, MODEL | SELFTEST, AT(threads), 1, MAX_THREADS,
        "default: the cores this process may use"},
    {"ctx", "c", "N", INT, MODEL, AT(ctx), 1, MAX, "tokens of context; default and most: as built"},
    {"batch", "b", "N", INT, MODEL, AT(batch), 1, MAX, "tokens of a prompt evaluated at once; changes no bit"},
    {"seed", "s", "N", U64, ALL & ~(DETOKENIZE | INFO), AT(sample.seed), 0, 0, "of the random numbers; default 0"},
    {"no-special", NULL, NULL, FLAG, RUN | TOKENIZE | LOGITS | PERPLEXITY | EMBED, AT(no_special), 0, 0,
        "add no BOS, EOS, CLS or SEP"},
    {"parse-special", NULL, NULL, FLAG, TALK | TOKENIZE | LOGITS | PERPLEXITY | EMBED, AT(parse_special), 0, 0,
        "read the text of special tokens as those tokens"},
    {"ignore-eos", NULL, NULL, FLAG, TALK, AT(ignore_eos), 0, 0, "go on after a token that ends the text"},
    {"temp", NULL, "X", REAL, TALK, AT(sample.temp), 0, 0, "temperature; without it the likeliest token is taken"},
    {"top-k", NULL, "N", INT, TALK, AT(sample.top_k), 0, MAX, "of the N likeliest; default 40, 0: all"},
    {"top-p", NULL, "X", REAL, TALK, AT(sample.top_p), 0, 0, "of the likeliest that add up to X; default 0.95, 1: all"},
    {"min-p", NULL, "X", REAL, TALK, AT(sample.min_p), 0, 0,
        "of those at least X times as likely as the likeliest; default 0.05"},
    {"typical", NULL, "X", REAL, TALK, AT(sample.typical), 0, 0,
        "of the most typical that add up to X; default 1: all"},
    {"top-nsigma", NULL, "X", REAL, TALK, AT(sample.top_nsigma), 0, 0,
        "of those within X standard deviations of the greatest logit; default 0: all"},
    {"xtc-probability", NULL, "X", REAL, TALK, AT(sample.xtc_probability), 0, 0,
        "how often to leave out the top choices; default 0"},
    {"xtc-threshold", NULL, "X", REAL, TALK, AT(sample.xtc_threshold), 0, 0,
        "from which probability a choice is a top choice; default 0.1"},
    {"dynatemp-range", NULL, "X", REAL, TALK, AT(sample.dynatemp_range), 0, 0,
        "let the temperature vary by X with the entropy; default 0"},
    {"dynatemp-exp", NULL, "X", REAL, TALK, AT(sample.dynatemp_exponent), 0, 0, "exponent of that; default 1"},
    {"repeat-last-n", NULL, "N", INT, TALK, AT(sample.repeat_last_n), -1, MAX,
        "tokens the penalties look at; default 64, -1: all"},
    {"repeat-penalty", NULL, "X", REAL, TALK, AT(sample.repeat_penalty), 0, 0,
        "factor against repetition; default 1: off"},
    {"presence-penalty", NULL, "X", REAL, TALK, AT(sample.presence_penalty), 0, 0,
        "taken from the logits of tokens that occurred; default 0"},
    {"frequency-penalty", NULL, "X", REAL, TALK, AT(sample.frequency_penalty), 0, 0,
        "the same for each time they did; default 0"},
    {"dry-multiplier", NULL, "X", REAL, TALK, AT(sample.dry_multiplier), 0, 0,
        "DRY: what continues a repetition loses X, and more the longer it is; default 0: off"},
    {"dry-base", NULL, "X", REAL, TALK, AT(sample.dry_base), 0, 0, "how fast that grows; default 1.75"},
    {"dry-allowed-length", NULL, "N", INT, TALK, AT(sample.dry_allowed_length), 1, MAX,
        "repetitions up to N - 1 tokens are free; default 2"},
    {"dry-penalty-last-n", NULL, "N", INT, TALK, AT(sample.dry_last_n), -1, MAX, "tokens it looks at; default -1: all"},
    {"dry-sequence-breaker", NULL, "TEXT", LIST, TALK, AT(breakers), 0, 0,
        "a token with TEXT ends a repetition; may be repeated; default \\n : \" *; none: no such token"},
    {"mirostat", NULL, "N", INT, TALK, AT(sample.mirostat), 0, 2,
        "steer the surprise, version 1 or 2, instead of the samplers above; default 0: off"},
    {"mirostat-ent", NULL, "X", REAL, TALK, AT(sample.mirostat_ent), 0, 0, "the surprise in bits; default 5"},
    {"mirostat-lr", NULL, "X", REAL, TALK, AT(sample.mirostat_lr), 0, 0, "how fast to correct it; default 0.1"},
    {"logit-bias", NULL, "ID+X", LIST, TALK, AT(bias), 0, 0,
        "add X to the logit of token ID (ID-X, ID-inf too); may be repeated"},
    {"samplers", NULL, "NAMES", TEXT, TALK, AT(samplers), 0, 0, "the samplers in this order, separated by ;"},
    {"logprobs", NULL, "N", INT, RUN, AT(logprobs), 0, 100,
        "on standard error, each token's log-probability and the N likeliest, as JSON lines"},
    {"json", NULL, NULL, FLAG, ALL, AT(json), 0, 0, "print figures as one JSON object"},
    {"verbose", "v", NULL, FLAG, ALL, AT(verbose), 0, 0, "notes about time and memory on standard error"},
    {"help", "h", NULL, FLAG, ALL, AT(help), 0, 0, "this text"},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

const Command *command_named(const char *name) {
    for (const Command *c = commands; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    return NULL;
}

// The option that `text` spells, with "-" or "--" in front; its "=value" in *value.
static const Option *find(const char *text, const char **value) {
    *value = NULL;
    for (int i = 0; i < (int) N_OPTIONS; i++) {
        const Option *o = &options[i];
        size_t n = strlen(o->name);
        if (o->letter && text[0] == '-' && !strcmp(text + 1, o->letter)) return o;
        if (strncmp(text, "--", 2) || strncmp(text + 2, o->name, n)) continue;
        if (text[2 + n] == '=') *value = text + 3 + n;
        if (!text[2 + n] || *value) return o;
    }
    return NULL;
}

int parse_int(const char *text, int low, int high, int *value) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || strchr(" \t\n\v\f\r+", *text) || v < low || v > high) return -1;
    *value = (int) v;
    return 0;
}

static int parse_u64(const char *text, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text < '0' || *text > '9' || *end || errno ? -1 : 0;
}

static int parse_real(const char *text, float *value) {
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    *value = (float) v;
    return end == text || *end || strchr(" \t\n\v\f\r", *text) || !isfinite(v) || !isfinite(*value) ? -1 : 0;
}

static int store(Options *o, const Option *option, const char *value) {
    void *at = (char *) o + option->at;
    switch (option->kind) {
    case FLAG: *(bool *) at = true; break;
    case TEXT: *(const char **) at = value; break;
    case LIST: {
        TextList *list = at;
        if (list->n == MAX_LISTED) {
            complain("--%s is given more than %d times", option->name, MAX_LISTED);
            return 2;
        }
        list->text[list->n++] = value;
        break;
    }
    case INT:
        if (parse_int(value, option->low, option->high, at)) {
            complain(
                "--%s '%s': a whole number from %d to %d is expected", option->name, value, option->low, option->high);
            return 2;
        }
        break;
    case U64:
        if (parse_u64(value, at)) {
            complain("--%s '%s': a whole number from 0 to 18446744073709551615 is expected", option->name, value);
            return 2;
        }
        break;
    case REAL:
        if (parse_real(value, at)) {
            complain("--%s '%s': a number is expected", option->name, value);
            return 2;
        }
        break;
    }
    o->temp_given |= option->at == AT(sample.temp);
    o->narrowed |=
        (option->at > AT(sample.temp) && option->at < AT(sample.repeat_last_n)) || option->at == AT(sample.mirostat);
    return 0;
}

static int parse_samplers(const char *names, SampleOptions *o) {
    int n = 0;
    for (const char *p = names; *p; p += *p == ';') {
        size_t length = strcspn(p, ";");
        int k = sampler_named(p, length);
        if (k < 0 || n == MAX_SAMPLERS) {
            complain("--samplers '%s': '%.*s' is %s; there are penalties, dry, top_n_sigma, top_k, typ_p, top_p, "
                     "min_p, xtc and "
                     "temperature",
                names, (int) length, p, k < 0 ? "no sampler" : "one too many");
            return 2;
        }
        o->order[n++] = (uint8_t) k;
        p += length;
    }
    o->n_order = n;
    return 0;
}

int options_parse(Options *o, const Command *c, int argc, char **argv) {
    *o = (Options){.n = -1, .pp = -1, .tg = -1, .reps = 5, .logprobs = -1};
    sample_defaults(&o->sample);
    for (int i = 0; i < argc; i++) {
        const char *value;
        const Option *option = find(argv[i], &value);
        if (!option || !(option->commands & c->bit)) {
            complain("%s has no %s '%s'; see %s --help", c->name, argv[i][0] == '-' ? "option" : "argument", argv[i],
                c->name);
            return 2;
        }
        if (option->kind == FLAG && value) {
            complain("--%s takes no value, found '%s'", option->name, value);
            return 2;
        }
        if (option->kind != FLAG && !value) {
            if (i + 1 == argc) {
                complain("%s needs a value: %s", argv[i], option->value);
                return 2;
            }
            value = argv[++i];
        }
        if (store(o, option, value)) return 2;
    }
    o->sample.greedy = !o->temp_given || o->sample.temp == 0;
    if (sample_check(&o->sample) || (o->samplers && parse_samplers(o->samplers, &o->sample))) return 2;
    if ((o->prompt != NULL) + (o->file != NULL) + (o->ids != NULL) > 1) {
        complain("-p, -f and --ids exclude each other: give one");
        return 2;
    }
    return 0;
}

int options_set(Options *o, const char *name, const char *value) {
    Options changed = *o;
    if (!strcmp(name, "samplers")) {
        if (parse_samplers(value, &changed.sample)) return -1;
        *o = changed;
        return 0;
    }
    for (int i = 0; i < (int) N_OPTIONS; i++) {
        const Option *option = &options[i];
        bool sampling = option->kind == INT || option->kind == U64 || option->kind == REAL;
        sampling = sampling && ((option->at >= AT(sample) && option->at < AT(samplers)) || option->at == AT(n));
        if (strcmp(option->name, name) || !sampling) continue;
        if (store(&changed, option, value)) return -1;
        changed.sample.greedy = !changed.temp_given || changed.sample.temp == 0;
        if (sample_check(&changed.sample)) return -1;
        *o = changed;
        return 0;
    }
    return complain("there is no sampling option '%s'", name);
}

int options_help(const Command *c) {
    int bad = out_print("usage: PROGRAM %s %s\n%s\n\n", c->name, c->arguments, c->does);
    for (int i = 0; i < (int) N_OPTIONS && !bad; i++) {
        const Option *o = &options[i];
        char text[64];
        if (!(o->commands & c->bit)) continue;
        snprintf(text, sizeof text, "%s%s%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : "",
            o->letter ? ", " : "", o->name, o->value ? " " : "", o->value ? o->value : "");
        bad = out_print("  %-26s %s\n", text, o->help);
    }
    return bad;
}
