// A target: numbers, strings and a few functions. What the plan asks before it decides, and what the emitter and
// the tool chain print. No model knowledge. The only place besides templates/ that knows instruction sets.
#ifndef TARGET_H
#define TARGET_H

#include "../format.h"

typedef struct {
    const char *name;                  // "x86-64-v3": what `info` and `--version` call it
    const char *const *folders;        // of templates, a later one replaces files of the same name; NULL-terminated
    const char *cpu;                   // instruction sets as /proc/cpuinfo spells them, those the code needs
    bool packs;                        // has kernels on packed panels
    const char *const *flags;          // for the compiler of the model's code, beside -march; NULL-terminated
    const char *includes;              // lines at the head of the source
    const char *const (*functions)[2]; // the dialect's names for the functions of ops.def; ends with NULL
    // Costs that decide how work is cut (measured; see docs/DESIGN.md).
    int64_t piece_bytes; // weight bytes of a piece, at least
    int max_pieces;      // pieces of one product, about
} Target;

// Whether kernels read this format from packed panels with inputs rounded to 8 bits (else: the file's rows, f32
// inputs).
bool target_packs(const Target *t, int type, int64_t in);

// The target for `-march=NAME` of this compiler ("native": this machine); fails when the compiler is not there, naming
// the package.
const Target *target_for(Arena *a, const char *cc, const char *march);

#endif
