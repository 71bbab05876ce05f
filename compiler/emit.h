// Printing a plan as C. In: Plan. Out: text. Nothing is decided here.
#ifndef EMIT_H
#define EMIT_H

#include "plan.h"

// Identifiers of one function: what a description or a file calls things, made safe and unique.
// The number of a name: 1 when it is used; more: names with the numbers from 2 to that behind it are, too.
typedef Lookup Names;
void names_of_c(Names *t, Str text);  // functions, macros and types of a C text are used
Str name_fresh(Names *t, Str wanted); // sanitised, not a C keyword, not used before in this table

enum { LONGEST_COMMENT = 200 };

// A parameter of a printed function and what the caller passes for it.
typedef enum {
    ARG_MODEL,
    ARG_WEIGHT,
    ARG_BUFFER,
    ARG_STATE_K,
    ARG_STATE_V,
    ARG_PARAM,
    ARG_TEXT
} ArgKind; // TEXT: name, as it stands
typedef struct {
    ArgKind kind;
    int index; // packed weight, buffer, state plan or graph param
    Str name;  // inside the function
    bool written;
} Arg;

// A kernel as text: its definition with the name left out (kernels of equal text are one), and its arguments.
typedef struct {
    Str comment; // without //; as many characters as LONGEST_COMMENT says are printed
    Str head;    // "static void "
    Str text;    // the definition, `@` where the name goes
    Arg *arg;
    int n_arg, cap_arg;
    // Heavy kernels are called as name(fixed.., piece, arg..) for each of `pieces` (an expression of the batch).
    Arg *fixed;
    int n_fixed, cap_fixed;
    Str pieces;
} KernelText;

KernelText print_row_kernel(const Plan *p, const Kernel *k);
KernelText print_matmul(const Plan *p, const Kernel *k);
KernelText print_attention(const Plan *p, const Kernel *k);
KernelText print_experts(const Plan *p, const Kernel *k);
KernelText print_state(const Plan *p, const Kernel *k);

// The same C with arithmetic on constants done (fold.c).
Str fold_constants(Arena *a, Str text);

// Shared by the printers.
typedef struct {
    const Plan *plan;
    const Kernel *kernel;
    const Stage *stage;
    const Place *place;
    Names names;
    KernelText text;
    Str *name; // of each node's value inside the function; "" when it has none yet
} Printer;
Printer printer_new(const Plan *p, const Kernel *k);
const Arg *printer_arg(Printer *q, ArgKind kind, int index, Str wanted, bool written); // made when first asked for
Str print_params(const Printer *q);                                                    // ", const float *x, float *y"
Str print_equations(const Printer *q); // what the kernel computes, in the words of the description
Str c_float(Arena *a, double v);       // a literal of type float
// The C text of a MAP operator over operand texts.
Str c_map(const Printer *q, const Node *n, const Str *operand);

typedef struct {
    const char *source_name;  // base name of the model file
    const char *weights_path; // --weights, or NULL
    Str selftest;             // text of the self-test tables
    Str facts;                // what `info` prints
    Str rerank;               // the prompt around a pair of texts, or none
} EmitOptions;
// Of the support code that templates need, what is named by `code` or by what that needs.
Str used_support(Arena *a, Str support, Str code);
// The model's source: kernels, layers, model_forward, model_info. `command` stands at its top.
Str emit_model(const Plan *p, const EmitOptions *opt, const char *command);

#endif
