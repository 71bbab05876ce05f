// ggcc's command line. One table of commands, one of options; both drive parsing and --help.
#define _GNU_SOURCE
#include "driver.h"
#include "interp.h"
#include "template_commands.h"
#include "text_commands.h"
#include "verify.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    CompileOptions compile;
    TemplateArgs template;
    const char *output, *prompt, *file, *ids, *at;
    bool no_special, parse_special, json, help, quiet;
    int threads;
    uint64_t seed;
    const char **set, **ignore_key, **ignore_tensor, **arch_dir;
    int n_set, cap_set, n_ignore_key, cap_ignore_key, n_ignore_tensor, cap_ignore_tensor, n_arch_dir, cap_arch_dir;
    Str *stop;
    int n_stop, cap_stop;
    const char *argument; // MODEL.gguf or ARCH
    char **rest;          // run: what the program gets
    int n_rest;
    Arena *arena;
} Options;

// ---- commands ----

static int run_build(Options *o) {
    if (!o->output) fail_usage("build needs -o PROG: the program to write");
    cmd_build(o->argument, o->output, &o->compile);
    return 0;
}

static int run_run(Options *o) {
    const char *program = cached_program(o->arena, o->argument, &o->compile);
    char **argv = NEWN(o->arena, char *, o->n_rest + 3);
    argv[0] = (char *) program, argv[1] = (char *) "run";
    for (int i = 0; i < o->n_rest; i++) argv[2 + i] = o->rest[i];
    cleanup_all();
    execv(program, argv);
    fail("cannot run %s: %s", program, strerror(errno));
}

static int run_emit(Options *o) {
    if (!o->output) fail_usage("emit needs -o DIR: the folder for the sources");
    cmd_emit(o->argument, o->output, &o->compile);
    return 0;
}

static int run_explain(Options *o) {
    o->compile.chat.none = true;
    cmd_explain(o->argument, &o->compile);
    return 0;
}

static int run_verify(Options *o) {
    o->compile.chat.none = true; // kernels alone
    return verify(o->argument, &o->compile, o->threads);
}

static int run_synth(Options *o) {
    if (!o->output) fail_usage("synth needs -o FILE: the model to write");
    synth(o->arena, o->argument, o->output, o->set, o->n_set, o->seed, &o->compile.build);
    return 0;
}

static int run_infer(Options *o) {
    Str text = infer(o->arena, gguf_open(o->argument));
    fwrite(text.p, 1, text.n, stdout);
    return 0;
}

static int run_archs(Options *o) {
    Out text = out_new(o->arena);
    list_archs(o->arena, &o->compile.build, &text);
    fwrite(text.p, 1, text.n, stdout);
    return 0;
}

static TextInput text_input(const Options *o) {
    return (TextInput){.prompt = o->prompt,
        .file = o->file,
        .ids = o->ids,
        .no_special = o->no_special,
        .parse_special = o->parse_special};
}

static int run_logits(Options *o) {
    if (!o->output) fail_usage("logits needs -o OUT: the file for the values");
    TextInput in = text_input(o);
    return text_logits(o->argument, &in, o->at, o->output, o->threads, &o->compile);
}

static int run_tokenize(Options *o) {
    TextInput in = text_input(o);
    return text_tokenize(o->argument, &in, &o->compile.tokenizer);
}

static int run_detokenize(Options *o) {
    TextInput in = text_input(o);
    return text_detokenize(o->argument, &in, &o->compile.tokenizer);
}

static int run_template(Options *o) {
    o->template.file = o->argument;
    return template_command(&o->template);
}

enum {
    BUILD = 1,
    RUN = 2,
    EMIT = 4,
    EXPLAIN = 8,
    VERIFY = 16,
    SYNTH = 32,
    ARCHS = 64,
    LOGITS = 128,
    TOKENIZE = 256,
    DETOKENIZE = 512,
    TEMPLATE = 1024,
    INFER = 2048
};
enum {
    MODEL = BUILD | RUN | EMIT | EXPLAIN | VERIFY | LOGITS,
    COMPILE = BUILD | RUN | EMIT | EXPLAIN | VERIFY,
    TEXT = LOGITS | TOKENIZE,
    ALL = 4095
};

static const struct Command {
    const char *name, *argument, *does;
    int bit;
    int (*run)(Options *o);
} commands[] = {
    {"build", "MODEL.gguf -o PROG", "make the program", BUILD, run_build},
    {"run", "MODEL.gguf ARGS", "build, then PROG run ARGS", RUN, run_run},
    {"emit", "MODEL.gguf -o DIR", "the sources, and the one command that builds them", EMIT, run_emit},
    {"explain", "MODEL.gguf", "graph, fusions done and refused, kernels with bytes and operations, memory plan",
        EXPLAIN, run_explain},
    {"verify", "MODEL.gguf", "the interpreter beside the generated kernels; names the first operator that differs",
        VERIFY, run_verify},
    {"synth", "ARCH -o FILE --set key=value ...", "a valid random model; the same seed gives the same bytes", SYNTH,
        run_synth},
    {"infer", "MODEL.gguf", "a draft description for an unknown architecture; every guess is marked", INFER, run_infer},
    {"archs", "", "the architectures there are, with lines and what each needs", ARCHS, run_archs},
    {"logits", "MODEL.gguf (-p|-f|--ids) -o OUT", "raw float32 logits, by the interpreter", LOGITS, run_logits},
    {"tokenize", "MODEL.gguf (-p|-f)", "the ids of a text, one a line", TOKENIZE, run_tokenize},
    {"detokenize", "MODEL.gguf -f FILE", "the text of ids", DETOKENIZE, run_detokenize},
    {"template", "(FILE.gguf | FILE.jinja)", "a chat template: render a case, or look at it", TEMPLATE, run_template},
};

// ---- options ----

typedef enum {
    FLAG,
    TEXT_VALUE,
    DUMP_VALUE,
    INT_VALUE,
    SEED_VALUE,
    LIST_VALUE,
    STOP_VALUE,
    KV_VALUE,
    CTX_VALUE,
    TARGET_VALUE,
    PRE_VALUE
} ValueKind;

static const struct Option {
    const char *name, *value, *does;
    int commands;
    ValueKind kind;
    size_t at; // of a list: of its pointer, its count and capacity behind it
} options[] = {
    {"-o", "PATH", "what to write", BUILD | EMIT | SYNTH | LOGITS, TEXT_VALUE, offsetof(Options, output)},
    {"-p", "TEXT", "the text, literally", TEXT, TEXT_VALUE, offsetof(Options, prompt)},
    {"-f", "PATH", "a file with the text, or the ids for detokenize; - is stdin", TEXT | DETOKENIZE, TEXT_VALUE,
        offsetof(Options, file)},
    {"--ids", "PATH", "a file of token ids", LOGITS, TEXT_VALUE, offsetof(Options, ids)},
    {"--at", "0,5,...", "positions whose logits are wanted, in this order; all without it", LOGITS, TEXT_VALUE,
        offsetof(Options, at)},
    {"--no-special", NULL, "add no BOS, EOS", TEXT, FLAG, offsetof(Options, no_special)},
    {"--parse-special", NULL, "read the text of special tokens as tokens", TEXT, FLAG,
        offsetof(Options, parse_special)},
    {"--set", "KEY=VALUE", "a key of the model to make", SYNTH, LIST_VALUE, offsetof(Options, set)},
    {"--seed", "N", "of the random numbers; default 0", SYNTH | RUN, SEED_VALUE, offsetof(Options, seed)},
    {"--ctx", "N", "the greatest context", MODEL, CTX_VALUE, offsetof(Options, compile.build.ctx)},
    {"--kv", "f16|f32", "the cache; default f32 when all matrices are F32, else f16", COMPILE, KV_VALUE, 0},
    {"--march", "NAME", "instruction set; default native", COMPILE, TEXT_VALUE, offsetof(Options, compile.march)},
    {"--cc", "PATH", "the C compiler", COMPILE, TEXT_VALUE, offsetof(Options, compile.cc)},
    {"--target", "c", "what to generate", COMPILE, TARGET_VALUE, 0},
    {"--weights", "FILE", "put the weights in a file of their own", BUILD | EMIT, TEXT_VALUE,
        offsetof(Options, compile.weights)},
    {"--arch", "FILE", "this description, whatever the file says", MODEL | SYNTH, TEXT_VALUE,
        offsetof(Options, compile.build.arch_file)},
    {"--arch-dir", "DIR", "more descriptions", MODEL | SYNTH | ARCHS, LIST_VALUE, offsetof(Options, arch_dir)},
    {"--pre", "NAME", "the pre-tokenizer, whatever the file says", MODEL | TOKENIZE | DETOKENIZE, PRE_VALUE, 0},
    {"--no-tokenizer", NULL, "leave the tokenizer out", MODEL, FLAG, offsetof(Options, compile.tokenizer.none)},
    {"--stop", "TEXT", "one more text that ends generation", COMPILE, STOP_VALUE, 0},
    {"--chat-template", "FILE", "this chat template, in place of the model's", BUILD | RUN | EMIT, TEXT_VALUE,
        offsetof(Options, compile.chat.file)},
    {"--no-chat", NULL, "leave the chat templates out", BUILD | RUN | EMIT, FLAG, offsetof(Options, compile.chat.none)},
    {"--case", "CASE.json", "a JSON object of the template's variables: print exactly what it renders", TEMPLATE,
        TEXT_VALUE, offsetof(Options, template.case_path)},
    {"--bos", "TEXT", "the text of BOS; wins over the case", TEMPLATE, TEXT_VALUE, offsetof(Options, template.bos)},
    {"--eos", "TEXT", "the text of EOS; wins over the case", TEMPLATE, TEXT_VALUE, offsetof(Options, template.eos)},
    {"--now", "TIME", "local time, like 2026-07-26T09:05:03", TEMPLATE, TEXT_VALUE, offsetof(Options, template.now)},
    {"--name", "NAME", "which of the file's templates; default: default", TEMPLATE, TEXT_VALUE,
        offsetof(Options, template.name)},
    {"--emit", NULL, "print the template as C", TEMPLATE, FLAG, offsetof(Options, template.emit)},
    {"--ignore-key", "NAME", "a key that nothing may read; the program's info says so", MODEL, LIST_VALUE,
        offsetof(Options, ignore_key)},
    {"--ignore-tensor", "NAME", "a tensor that nothing may read; the program's info says so", MODEL, LIST_VALUE,
        offsetof(Options, ignore_tensor)},
    {"--dump", "STAGE", "print graph, fused, plan or source, and stop", COMPILE, DUMP_VALUE,
        offsetof(Options, compile.dump)},
    {"--no-fuse", NULL, "every operator a kernel of its own", COMPILE, FLAG, offsetof(Options, compile.plan.no_fuse)},
    {"--threads", "N", "default: the cores this process may use", LOGITS | VERIFY, INT_VALUE,
        offsetof(Options, threads)},
    {"--quiet", NULL, "no notes", ALL, FLAG, offsetof(Options, quiet)},
    {"--help", NULL, "this text", ALL, FLAG, offsetof(Options, help)},
};

static int64_t number(const char *name, const char *text, int64_t low, int64_t high) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < low || v > high)
        fail_usage("%s %s: a whole number from %lld to %lld is needed", name, text, (long long) low, (long long) high);
    return v;
}

static void set_option(Options *o, const struct Option *opt, const char *value) {
    char *field = (char *) o + opt->at;
    switch (opt->kind) {
    case FLAG: *(bool *) field = true; break;
    case TEXT_VALUE: *(const char **) field = value; break;
    case DUMP_VALUE:
        if (strcmp(value, "graph") && strcmp(value, "fused") && strcmp(value, "plan") && strcmp(value, "source"))
            fail_usage("--dump %s: graph, fused, plan or source is needed", value);
        *(const char **) field = value;
        break;
    case INT_VALUE: *(int *) field = (int) number(opt->name, value, 1, 1024); break;
    case CTX_VALUE: *(int64_t *) field = number(opt->name, value, 1, INT_MAX / 2); break;
    case SEED_VALUE: *(uint64_t *) field = (uint64_t) number(opt->name, value, 0, INT64_MAX); break;
    case STOP_VALUE: *PUSH(o->arena, o->stop, o->n_stop, o->cap_stop) = str(value); break;
    case PRE_VALUE: o->compile.tokenizer.pre = str(value); break;
    case KV_VALUE:
        if (strcmp(value, "f16") && strcmp(value, "f32")) fail_usage("--kv %s: f16 or f32 is needed", value);
        o->compile.plan.kv_given = true, o->compile.plan.kv_f32 = !strcmp(value, "f32");
        break;
    case TARGET_VALUE:
        if (strcmp(value, "c")) fail_usage("--target %s: only c is there so far", value);
        break;
    case LIST_VALUE:
        if (opt->at == offsetof(Options, set)) *PUSH(o->arena, o->set, o->n_set, o->cap_set) = value;
        else if (opt->at == offsetof(Options, arch_dir))
            *PUSH(o->arena, o->arch_dir, o->n_arch_dir, o->cap_arch_dir) = value;
        else if (opt->at == offsetof(Options, ignore_key))
            *PUSH(o->arena, o->ignore_key, o->n_ignore_key, o->cap_ignore_key) = value;
        else *PUSH(o->arena, o->ignore_tensor, o->n_ignore_tensor, o->cap_ignore_tensor) = value;
        break;
    }
}

static const struct Option *option_named(const char *arg, size_t n, int bit) {
    for (int i = 0; i < COUNT(options); i++)
        if ((options[i].commands & bit) && strlen(options[i].name) == n && !strncmp(options[i].name, arg, n))
            return &options[i];
    return NULL;
}

static void parse(Options *o, const struct Command *c, int argc, char **argv) {
    bool wants = c->argument[0] != 0;
    for (int i = 0; i < argc; i++) {
        char *arg = argv[i], *equals = arg[0] == '-' && arg[1] == '-' ? strchr(arg, '=') : NULL;
        if (!strcmp(arg, "--") && wants && !o->argument && i + 1 < argc) { // a file whose name begins with a dash
            o->argument = argv[++i];
            continue;
        }
        if (arg[0] != '-' || !arg[1]) {
            if (!wants || o->argument) {
                if (c->bit == RUN && o->argument) goto rest;
                fail_usage("%s: unexpected argument %s; see ggcc %s --help", c->name, arg, c->name);
            }
            o->argument = arg;
            continue;
        }
        const struct Option *opt = option_named(arg, equals ? (size_t) (equals - arg) : strlen(arg), c->bit);
        if (!opt && c->bit == RUN && o->argument) goto rest;
        if (!opt) fail_usage("%s: unknown option %s; see ggcc %s --help", c->name, arg, c->name);
        if (c->bit == RUN && o->argument && opt->kind == SEED_VALUE) goto rest;
        if (!opt->value) {
            if (equals) fail_usage("%s takes no value", opt->name);
            set_option(o, opt, NULL);
        } else if (equals) {
            set_option(o, opt, equals + 1);
        } else {
            if (i + 1 == argc) fail_usage("%s needs a value: %s", opt->name, opt->value);
            set_option(o, opt, argv[++i]);
        }
        continue;
    rest: // of `run`: the program's own
        o->rest = argv + i, o->n_rest = argc - i;
        break;
    }
    if (wants && !o->argument && !o->help) fail_usage("%s needs %s", c->name, c->argument);
    if (o->compile.chat.none && o->compile.chat.file)
        fail_usage("--no-chat leaves the chat templates out and --chat-template puts one in: give one of them");
}

static int help(const struct Command *c) {
    if (c) {
        printf("usage: ggcc %s %s\n%s\n\n", c->name, c->argument, c->does);
        for (int i = 0; i < COUNT(options); i++)
            if (options[i].commands & c->bit) {
                char left[64];
                snprintf(left, sizeof left, "%s%s%s", options[i].name, options[i].value ? " " : "",
                    options[i].value ? options[i].value : "");
                printf("  %-22s %s\n", left, options[i].does);
            }
    } else {
        printf("usage: ggcc COMMAND ...    compiles a model file to a program\n\n");
        for (int i = 0; i < COUNT(commands); i++)
            printf("  %-11s%-34s %s\n", commands[i].name, commands[i].argument, commands[i].does);
        printf("  --version                                    version\n\nggcc COMMAND --help lists the command's "
               "options.\n");
    }
    if (fflush(stdout) || ferror(stdout)) fail("cannot write to standard output: %s", strerror(errno));
    return 0;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); // a closed pipe is an error of the write,
    signal(SIGXFSZ, SIG_IGN); // and so is a file that may not grow further
    if (argc < 2) fail_usage("no command; ggcc --help lists them");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) return help(NULL);
    if (!strcmp(argv[1], "--version")) {
        printf("ggcc %s\n", GGCC_VERSION);
        Arena *a = arena_new();
        Toolchain t = toolchain_find(NULL, NULL);
        const Target *target = target_for(a, t.cc, t.march);
        printf("compiler %s, target %s: %s\n", t.cc, target->name, target->cpu);
        return fflush(stdout) ? 1 : 0;
    }
    const struct Command *c = NULL;
    for (int i = 0; i < COUNT(commands); i++)
        if (!strcmp(commands[i].name, argv[1])) c = &commands[i];
    if (!c) fail_usage("unknown command %s; ggcc --help lists them", argv[1]);
    Options o = {.arena = arena_new()};
    parse(&o, c, argc - 2, argv + 2);
    if (o.help) return help(c);
    quiet = o.quiet;
    *PUSH(o.arena, o.ignore_key, o.n_ignore_key, o.cap_ignore_key) = NULL; // the lists end with NULL
    *PUSH(o.arena, o.ignore_tensor, o.n_ignore_tensor, o.cap_ignore_tensor) = NULL;
    *PUSH(o.arena, o.arch_dir, o.n_arch_dir, o.cap_arch_dir) = NULL;
    o.compile.build.ignore_key = o.ignore_key, o.compile.build.ignore_tensor = o.ignore_tensor,
    o.compile.build.arch_dir = o.arch_dir;
    o.compile.tokenizer.stop = o.stop, o.compile.tokenizer.n_stop = o.n_stop;
    int status = c->run(&o);
    if (fflush(stdout) || ferror(stdout)) fail("cannot write to standard output: %s", strerror(errno));
    return status;
}
