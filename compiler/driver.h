// From a file's name to a program: the stages of the compiler, one after the other.
#ifndef DRIVER_H
#define DRIVER_H

#include "build.h"
#include "chat.h"
#include "plan.h"
#include "tokenizer.h"
#include "toolchain.h"

typedef struct {
    BuildOptions build;
    PlanOptions plan;
    TokenizerOptions tokenizer;
    ChatOptions chat;
    const char *cc, *march, *target;
    const char *weights; // --weights FILE
    const char *dump;    // --dump=STAGE
} CompileOptions;

typedef struct {
    Arena *arena;
    Gguf *gguf;
    Graph *graph;
    Plan *plan;
    Toolchain tools;
    Str tokenizer; // the blob
    ChatCode chat; // its templates
    Str source;    // model.c
    double code_seconds; // of the processor: graph, passes, plan and printing, without tables, self-test and hashes
} Compilation;

// Stages up to the graph (the interpreter's), the plan, the source. Each runs the ones before it.
Compilation compile_graph(Arena *a, const char *model, const CompileOptions *opt);
Compilation compile_plan(Arena *a, const char *model, const CompileOptions *opt);
Compilation compile_source(Arena *a, const char *model, const CompileOptions *opt);

// For verify: the generated code as a shared object with -DTRACE, and the packed weights alone in a file (of this
// run, removed at its end).
typedef struct {
    Compilation c;
    const Graph *spec; // the graph before the passes: what the interpreter takes as the model's meaning
    const char *object, *weights;
} Traced;
Traced compile_for_verify(Arena *a, const char *model, const CompileOptions *opt);

// Fails when an output is the file `other`, by name or by link: an input would be gone. Either may be NULL. what: "the
// model".
void refuse_same_file(const char *output, const char *other, const char *what);

void cmd_build(const char *model, const char *path, const CompileOptions *opt);
void cmd_emit(const char *model, const char *dir, const CompileOptions *opt);
void cmd_explain(const char *model, const CompileOptions *opt);

// The folder for programs that `ggcc run` keeps: $XDG_CACHE_HOME/ggcc or ~/.cache/ggcc.
const char *cached_program(Arena *a, const char *model, const CompileOptions *opt);

#endif
