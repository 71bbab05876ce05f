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
    r->most_steps = limit_steps;
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
            raise_error(r, "UnicodeEncodeError",
                "'utf-8' codec can't encode a lone surrogate in the rendered text: surrogates not allowed");
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
    return render_guard(r, assign_text, &(Assignment){name, strlen(name), str_value(&s)});
}

static void read_vars(Render *r, void *arg) {
    Assignment *a = arg;
    Value v = json_read(r, a->p, a->n);
    if (v.kind != V_DICT)
        raise_error(
            r, NULL, "the case is a JSON %s; an object of the template's variables was expected", type_name(v));
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
    return (TemplateTime){
        tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int) now.tv_usec};
}

int template_time(const char *z, TemplateTime *out) {
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    TemplateTime t = {0};
    int n = 0;
    if (sscanf(z, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.year, &t.month, &t.day, &t.hour, &t.minute, &t.second, &n) != 6 ||
        z[n])
        return -1;
    bool leap = t.year % 4 == 0 && (t.year % 100 || t.year % 400 == 0);
    if (t.year < 1 || t.month < 1 || t.month > 12 || t.day < 1 || t.day > days[t.month - 1] ||
        (t.month == 2 && t.day == 29 && !leap))
        return -1;
    if (t.hour < 0 || t.hour > 23 || t.minute < 0 || t.minute > 59 || t.second < 0 || t.second > 59) return -1;
    *out = t;
    return 0;
}

// ---- what compiled templates call ----
void emit_text(Render *r, const char *p, size_t n) {
    if (r->out->n + n > limit_output)
        raise_error(
            r, "MemoryError", "the text is longer than the %d MiB that a template may write", limit_output >> 20);
    buffer_add(r, r->out, p, n);
}

void emit(Render *r, Value v) {
    Value s = to_str(r, v);
    emit_text(r, s.s->p, s.s->n);
}

Value variable(Render *r, const String *name) {
    const Value *v = dict_get(r, r->vars, str_value(name));
    return v ? *v : global_value(name->p, name->n);
}

Value use(Render *r, Value v, const String *name) {
    return is_missing(v) ? undefined_name(r, str_value(name)) : v;
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
    Macro *m = render_take(r, sizeof *m);
    *m = (Macro){info, scope};
    return (Value){.kind = V_MACRO, .macro = m};
}

void step(Render *r) {
    if (++r->steps > r->most_steps)
        raise_error(r, "RuntimeError", "the template takes more than %llu steps", (unsigned long long) r->most_steps);
}

void enter_call(Render *r) {
    if (++r->depth > limit_depth)
        raise_error(r, "RecursionError", "macros lie more than %d calls within each other", limit_depth);
}

void leave_call(Render *r) {
    r->depth--;
}

Value undefined_param(Render *r, const String *name) {
    Value shown = repr(r, str_value(name));
    Buffer b = {0};
    buffer_z(r, &b, "parameter ");
    buffer_str(r, &b, shown);
    buffer_z(r, &b, " was not provided");
    Undefined *u = render_take(r, sizeof *u);
    *u = (Undefined){.hint = buffer_value(r, &b).s, .name = str_value(name)};
    return (Value){.kind = V_UNDEFINED, .undefined = u};
}

Value undefined_cond(Render *r, int line) {
    Value hint =
        text_format(r, "the inline if-expression on line %d evaluated to false and no else section was defined.", line);
    Undefined *u = render_take(r, sizeof *u);
    *u = (Undefined){.hint = hint.s};
    return (Value){.kind = V_UNDEFINED, .undefined = u};
}

void need_namespace(Render *r, Value v) {
    if (v.kind != V_NAMESPACE)
        raise_error(r, "TemplateRuntimeError", "cannot assign attribute on non-namespace object");
}

Args join_args(Render *r, const Value *pos, size_t n_pos, const String *const *names, const Value *named,
    size_t n_named, Value rest, Value more, Value caller) {
    static const String caller_name = STRING("caller", 6);
    Args args = {pos, n_pos, names, named, n_named};
    if (is_missing(rest) && is_missing(more) && is_missing(caller)) return args;
    if (!is_missing(rest)) {
        if (!iterable(rest))
            raise_error(r, "TypeError", "argument after * must be an iterable, not %s", type_name(rest));
        Values all = {0};
        for (size_t i = 0; i < n_pos; i++) push(r, &all, pos[i]);
        Iter *it = iterate(r, rest);
        for (Value v; next(r, it, &v); step(r)) push(r, &all, v);
        args.v = all.v;
        args.n = all.n;
    }
    if (!is_missing(more) && more.kind != V_DICT)
        raise_error(r, "TypeError", "argument after ** must be a mapping, not %s", type_name(more));
    size_t n_more = is_missing(more) ? 0 : more.dict->n;
    Value *values = render_take_n(r, n_named + n_more + 1, sizeof *values);
    const String **keys = render_take_n(r, n_named + n_more + 1, sizeof *keys);
    if (n_named) {
        memcpy(values, named, n_named * sizeof *values);
        memcpy(keys, names, n_named * sizeof *keys);
    }
    if (!is_missing(caller)) {
        keys[n_named] = &caller_name;
        values[n_named++] = caller;
    }
    for (size_t i = 0; i < n_more; i++) {
        Value key = more.dict->entry[i].key;
        if (!is_str(key)) raise_error(r, "TypeError", "keywords must be strings");
        for (size_t k = 0; k < n_named; k++) {
            if (equal(r, str_value(keys[k]), key))
                raise_error(
                    r, "TypeError", "got multiple values for keyword argument '%.*s'", (int) key.s->n, key.s->p);
        }
        keys[n_named] = key.s;
        values[n_named++] = more.dict->entry[i].value;
    }
    args.names = keys;
    args.named = values;
    args.n_named = n_named;
    return args;
}
