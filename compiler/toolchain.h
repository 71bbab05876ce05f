// From sources to machine code: the system's C compiler, called without a shell.
#ifndef TOOLCHAIN_H
#define TOOLCHAIN_H

#include "target/target.h"

typedef struct {
    const char *cc;    // "gcc", or what --cc says
    const char *march; // "native", or what --march says
} Toolchain;

// The sources of a program besides model.c: its chat templates (compiler/chat.h).
typedef struct {
    const char *name;
    Str text;
} SourceFile;
typedef struct {
    SourceFile *file;
    int n, cap;
    bool templates; // some: the part of the runtime that renders and talks is needed
    Str names;      // of the templates
} ChatCode;

// The compiler that is there: --cc, $CC, cc, gcc, clang; fails naming the package to install.
Toolchain toolchain_find(const char *cc, const char *march);
// Writes the runtime's sources and headers into dir/runtime; with `chat` those of the chat too.
void write_runtime(const char *dir, bool chat);
// Compiles dir/model.c for the target, dir/runtime and dir/chat_*.c for any processor, side by side, and links
// dir/program.
void compile_program(Arena *a, const Toolchain *t, const Target *target, const char *dir, const ChatCode *chat);
// Compiles dir/model.c with -DTRACE into dir/model.so; threads and callbacks are the loading program's.
void compile_traced(Arena *a, const Toolchain *t, const Target *target, const char *dir);
// The one command that does the same from the folder of the sources, for the head of the main one.
Str build_command(Arena *a, const Toolchain *t, const Target *target, const char *program);

#endif
