// Kernel templates: the embedded files under templates/, and instances of them. A template is a C file that compiles on
// its own; an instance is its body with identifiers renamed and slots filled (templates/README.md is the contract).
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include "util.h"

typedef enum {
    BIND_PARAM, // an identifier, or a part of one between underscores: FMT, K
    BIND_SLOT,  // the statement marked `//@ NAME`; value: lines of code, no indentation of their own level
    BIND_ARGS,  // the mark `/*@ NAME */`; value: text such as ", float *restrict y"
} BindingKind;

typedef struct {
    const char *name;
    Str value;
    BindingKind kind;
} Binding;

// The file of this name in the last of the folders that has one (NULL at the end). Fails when none has.
Str template_find(const char *const *folders, const char *name);
bool template_exists(const char *const *folders, const char *name);

// The text from the line after `//@ section NAME` to the line before `//@ end`; empty when there is none.
Str template_section(Str source, const char *name);

// The body of a template, renamed and filled. Every param, slot and args mark that the header declares must be bound,
// and nothing else.
Str template_instance(Arena *a, Str text, const char *new_name, const Binding *b, int n);

// What a text stands on: the files, format sections and helper templates named by its lines `//@ needs ...`, printed
// once each, in order of need.
typedef struct {
    const char *const *folders;
    Str *seen;
    int n_seen, cap_seen;
} Support;
// format: for `FMT`; may be NULL when the template has no such parameter.
void template_support(Out *o, Support *s, Str text, const char *format);
// One support file or format section by name, with what it needs itself: "math.h", "q4_1.packed".
void template_require(Out *o, Support *s, const char *name);

#endif
