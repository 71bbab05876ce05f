// Holding a generated program against the interpreter, kernel by kernel. In: a model file. Out: for each kernel how
// far its results are from the interpreter's, and the first that is wrong.
//
// Each kernel is given the interpreter's inputs before it runs, so an error shows where it is made and nowhere after
// it.
#ifndef VERIFY_H
#define VERIFY_H

#include "driver.h"

// `ggcc verify`: prints a line for each kernel; fails (exit status 3) naming the first kernel that differs: its
// name, the line of the description, layer, row, element and both values. Also that the passes changed no value:
// the interpreter gives the same bits for the graph as built and as lowered, when rounding to 8 bits is left out.
//
// The program's code calls back into this executable (trace_before, trace_after and the team of runtime/model.h,
// one thread), so it must be linked with its symbols visible to shared objects (-rdynamic).
int verify(const char *model, const CompileOptions *opt, int threads);

#endif
