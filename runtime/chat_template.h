// A chat template at work. In: a compiled template (C that ggcc printed, or ggcc's own evaluation of the same tree)
// and the variables of a case. Out: the text, or one message. The interface between generated template C and the
// runtime.
//
//   Render r;
//   render_open(&r, memory, size, now);                  // one block for all of it
//   if (render_vars(&r, json, n) < 0 ...)                 // {"messages": [...], ...}
//   render_set(&r, "bos_token", "<s>");
//   if (template_default(&r) < 0) ... r.error, r.raised   // else r.text, r.n_text
//
// Every bound is in Limits below: a hostile template ends with a message, never with the process.
#ifndef CHAT_TEMPLATE_H
#define CHAT_TEMPLATE_H

#include "value.h"

#include <setjmp.h>

enum {
    limit_depth = 200,       // macros and recursive loops within each other
    limit_nesting = 400,     // lists within lists
    limit_range = 100000,    // of range(), as Jinja's sandbox has it
    limit_steps = 50000000,  // turns of loops, calls
    limit_output = 64 << 20, // bytes of text
    limit_big_words = 2048   // 32 bits each, of an integer
};

// Local time, for strftime_now.
typedef struct {
    int year, month, day, hour, minute, second; // month and day from 1
    int micro;
} TemplateTime;
TemplateTime template_now(void);
int template_time(const char *text, TemplateTime *out); // "2026-07-26T09:05:03"; -1: not a time

struct Render {
    char *base;
    size_t size, used;
    Buffer *out; // where output goes now
    Buffer top;
    Dict *vars;
    TemplateTime now;
    int depth, nesting;
    uint64_t steps, most_steps; // most_steps: limit_steps, unless the caller lowers it
    const char *text;           // the result
    size_t n_text;
    bool raised;      // the message is the template's own, of raise_exception
    char error[4096]; // "TypeError: ..."; the bare message when raised
    jmp_buf jmp;
};

void render_open(Render *r, void *memory, size_t size, TemplateTime now);
int render_vars(Render *r, const char *json, size_t n);     // the object's members become variables; 0 or -1
int render_set(Render *r, const char *name, const char *z); // a text; 0 or -1
int render_set_value(Render *r, const char *name, Value v);
// Calls body(r, code) where failures land; what it wrote is then r->text.
typedef void TemplateBody(Render *r, const void *code);
int render_run(Render *r, TemplateBody *body, const void *code);
int render_guard(Render *r, void (*work)(Render *r, void *arg), void *arg); // any work on values; 0 or -1

// One template of a program: each is printed as `int template_NAME(Render *r)`, and a table of these.
typedef struct {
    const char *name; // "default", or NAME of tokenizer.chat_template.NAME
    int (*render)(Render *r);
} ChatTemplate;

// ---- what a template's code calls ----
void emit_text(Render *r, const char *p, size_t n); // template data
void emit(Render *r, Value v);                      // {{ v }}
Value variable(Render *r, const String *name);      // of the case, or a global; MISSING: none
Value use(Render *r, Value v, const String *name);  // a variable's value, undefined when it is missing
Buffer *capture(Render *r, Buffer *b);              // output goes to b; returns where it went before
Value captured(Render *r, Buffer *b, Buffer *before);

// Macros: arguments in `args` in the order declared (MISSING: not given), then caller, kwargs, varargs where used.
typedef struct {
    const char *name; // NULL: a call block
    const String *const *params;
    int n_params;
    bool caller, kwargs, varargs, explicit_caller;
    Value (*body)(Render *r, void *scope, const void *code, Value *args);
    const void *code;
} MacroInfo;
struct Macro {
    const MacroInfo *info;
    void *scope;
};
Value macro_value(Render *r, const MacroInfo *info, void *scope);

// Loops. A plain one is iterate() and next(); one whose body reads `loop` goes through a Loop.
typedef Value LoopBody(Render *r, void *scope, const void *code, Value iterable, int depth); // of a recursive loop
Loop *loop_begin(Render *r, Value iterable, LoopBody *again, void *scope, const void *code, int depth);
bool loop_next(Render *r, Loop *loop, Value *out);
Value loop_value(Loop *loop);
Value undefined_param(Render *r, const String *name); // a macro's parameter that was not given
Value undefined_cond(Render *r, int line);            // `a if b` where b is not so
void need_namespace(Render *r, Value v);              // of `set v.name = ...`
// Arguments of a call together: *rest and **more unpacked, and a call block's caller (each MISSING: none).
Args join_args(Render *r, const Value *pos, size_t n_pos, const String *const *names, const Value *named,
    size_t n_named, Value rest, Value more, Value caller);
Value loop_filter(Render *r, Value iterable, LoopTest *test, void *scope, const void *code);
void step(Render *r);       // one turn more; fails past the limit
void enter_call(Render *r); // one level deeper
void leave_call(Render *r);

#endif
