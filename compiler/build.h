// From a description and a file to a graph. Everything the description says is checked against the file here;
// after this nobody reads a key. See spec.h for the description itself.
#ifndef BUILD_H
#define BUILD_H

#include "graph.h"

typedef struct {
    int64_t ctx;                 // greatest context asked for; 0: the smaller of the file's context_length and 4096
    const char *arch_file;       // --arch FILE: this description, whatever the file says; NULL
    const char *const *arch_dir; // --arch-dir DIR ...: looked at before the library; NULL-terminated, or NULL
    const char *const *ignore_key, *const *ignore_tensor; // NULL-terminated lists, or NULL
} BuildOptions;

// Finds the description for the file's general.architecture, evaluates it, checks operand and key closure, derives
// the kinds of layers and gives the unfused graph: the specification that the interpreter runs.
Graph *graph_build(Arena *a, Gguf *gguf, const BuildOptions *opt);

// ggcc synth ARCH -o FILE --set key=value ...: a random model that the description accepts. Same seed, same bytes.
void synth(Arena *a, const char *arch, const char *path, const char *const *set, int n_set, uint64_t seed,
    const BuildOptions *opt);

// ggcc infer MODEL.gguf: the text of a draft description for a file whose architecture has none.
Str infer(Arena *a, const Gguf *gguf);

// ggcc archs: one line for each description there is: names, lines, sizes it needs, what it uses.
void list_archs(Arena *a, const BuildOptions *opt, Out *o);

#endif
