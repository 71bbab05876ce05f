// What the printers of heavy kernels share: parameters of templates, and the arguments that come before the piece.
#ifndef PRINT_HEAVY_H
#define PRINT_HEAVY_H

#include "emit.h"
#include "template.h"

Str find_template(const Plan *p, const char *name);
void fixed_arg(Printer *q, ArgKind kind, int index);
void fixed_text(Printer *q, const char *text);
// the buffer of an operand, which the pass copy_pieces has made whole
void fixed_operand(Printer *q, const Node *n, int k);

static inline Binding param(const char *name, Str value) {
    return (Binding){.kind = BIND_PARAM, .name = name, .value = value};
}
static inline Binding param_int(Arena *a, const char *name, int64_t v) {
    return param(name, str_fmt(a, "%lld", (long long) v));
}
static inline const char *row_count(const Kernel *k) {
    return k->rate == RATE_OUT ? "m->outs" : "m->rows";
}

#endif
