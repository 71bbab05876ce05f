// A rendering: its memory, its output, where failures land; and what compiled templates call. See chat_template.h.
#define _GNU_SOURCE
#include "chat_template.h"
#include "json.h"

#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

void render_open(Render *r, void *memory, size_t size, TemplateTime now) {
    memset(r, 0, sizeof *r);
    size_t skip = (16 - (uintptr_t) memory % 16) % 16;
    if (skip > size) skip = size;
    r->base = (char *) memory + skip;
    r->size = size - skip;
    r->now = now;
}

int render_guard(Render *r, void (*work)(Render *r, void *arg), void *arg) {
    if (setjmp(r->jmp)) return -1;
    work(r, arg);
    return 0;
}

typedef struct {
    TemplateBody *body;
    const void *code;
} Run;

static void run_body(Render *r, void *arg) {
    Run *run = arg;
    if (!r->vars) r->vars = dict_new(r, 0);
    r->top = (Buffer){0};
    r->out = &r->top;
    run->body(r, run->code);
    r->text = r->top.n ? r->top.p : "";
    r->n_text = r->top.n;
    for (size_t i = 0; i + 2 < r->n_text; i++) { // as Python's text is refused when it is written
        if ((unsigned char) r->text[i] == 0xED && (unsigned char) r->text[i + 1] >= 0xA0) {
            raise(r, "UnicodeEncodeError", "'utf-8' codec can't encode a lone surrogate in the rendered text: surrogates not allowed");
        }
    }
}

int render_run(Render *r, TemplateBody *body, const void *code) {
    Run run = {body, code};
    r->raised = false;
    r->depth = r->nesting = 0;
    r->steps = 0;
    return render_guard(r, run_body, &run);
}

typedef struct {
    const char *p;
    size_t n;
    Value v;
} Assignment;

static void assign(Render *r, void *arg) {
    Assignment *a = arg;
    if (!r->vars) r->vars = dict_new(r, 16);
    dict_set(r, r->vars, text(r, a->p, a->n), a->v);
}

int render_set_value(Render *r, const char *name, Value v) {
    return render_guard(r, assign, &(Assignment){name, strlen(name), v});
}

static void assign_text(Render *r, void *arg) {
    Assignment *a = arg;
    a->v = text_z(r, a->v.s->p);
    assign(r, a);
}

int render_set(Render *r, const char *name, const char *z) {
    String s = {z, 0, 0};
    return render_guard(r, assign_text, &(Assignment){name, strlen(name), str(&s)});
}

static void read_vars(Render *r, void *arg) {
    Assignment *a = arg;
    Value v = json_read(r, a->p, a->n);
    if (v.kind != V_DICT) raise(r, "ValueError", "the case is a JSON %s; an object of the template's variables was expected", type_name(v));
    if (!r->vars) r->vars = dict_new(r, v.dict->n + 8);
    for (size_t i = 0; i < v.dict->n; i++) dict_set(r, r->vars, v.dict->entry[i].key, v.dict->entry[i].value);
}

int render_vars(Render *r, const char *json, size_t n) {
    return render_guard(r, read_vars, &(Assignment){json, n, MISSING});
}

// ---- time ----
TemplateTime template_now(void) {
    struct timeval now;
    struct tm tm;
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &tm);
    return (TemplateTime){tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int) now.tv_usec};
}

int template_time(const char *z, TemplateTime *out) {
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    TemplateTime t = {0};
    int n = 0;
    if (sscanf(z, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.year, &t.month, &t.day, &t.hour, &t.minute, &t.second, &n) != 6 || z[n]) return -1;
    bool leap = t.year % 4 == 0 && (t.year % 100 || t.year % 400 == 0);
    if (t.year < 1 || t.month < 1 || t.month > 12 || t.day < 1 || t.day > days[t.month - 1] || (t.month == 2 && t.day == 29 && !leap)) return -1;
    if (t.hour < 0 || t.hour > 23 || t.minute < 0 || t.minute > 59 || t.second < 0 || t.second > 59) return -1;
    *out = t;
    return 0;
}

// ---- what compiled templates call ----
void emit_text(Render *r, const char *p, size_t n) {
    if (r->out->n + n > limit_output) raise(r, "MemoryError", "the text is longer than the %d MiB that a template may write", limit_output >> 20);
    buffer_add(r, r->out, p, n);
}

void emit(Render *r, Value v) {
    Value s = to_str(r, v);
    emit_text(r, s.s->p, s.s->n);
}

Value variable(Render *r, const String *name) {
    const Value *v = dict_get(r, r->vars, str(name));
    return v ? *v : global_value(name->p, name->n);
}

Value use(Render *r, Value v, const String *name) {
    return is_missing(v) ? undefined_name(r, str(name)) : v;
}

Buffer *capture(Render *r, Buffer *b) {
    Buffer *before = r->out;
    *b = (Buffer){0};
    r->out = b;
    return before;
}

Value captured(Render *r, Buffer *b, Buffer *before) {
    r->out = before;
    return buffer_value(r, b);
}

Value macro_value(Render *r, const MacroInfo *info, void *scope) {
    Macro *m = take(r, sizeof *m);
    *m = (Macro){info, scope};
    return (Value){.kind = V_MACRO, .macro = m};
}

void step(Render *r) {
    if (++r->steps > limit_steps) raise(r, "RuntimeError", "the template takes more than %d steps", limit_steps);
}

void enter_call(Render *r) {
    if (++r->depth > limit_depth) raise(r, "RecursionError", "macros lie more than %d calls within each other", limit_depth);
}

void leave_call(Render *r) {
    r->depth--;
}
