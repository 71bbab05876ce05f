// From sources to machine code: the system's C compiler, called without a shell.
#ifndef TOOLCHAIN_H
#define TOOLCHAIN_H

#include "target/target.h"

typedef struct {
    const char *cc;    // "gcc", or what --cc says
    const char *march; // "native", or what --march says
} Toolchain;

// The compiler that is there: --cc, $CC, cc, gcc, clang; fails naming the package to install.
Toolchain toolchain_find(const char *cc, const char *march);
// Writes the runtime's sources (and headers) into dir/runtime.
void write_runtime(const char *dir);
// Compiles dir/model.c for the target and dir/runtime for any processor, side by side, and links dir/program.
void compile_program(Arena *a, const Toolchain *t, const Target *target, const char *dir);
// Compiles dir/model.c with -DTRACE into dir/model.so; threads and callbacks are the loading program's.
void compile_traced(Arena *a, const Toolchain *t, const Target *target, const char *dir);
// The one command that does the same from the folder of the sources, for the head of the main one.
Str build_command(Arena *a, const Toolchain *t, const Target *target, const char *program);

#endif
