// What a description computes or declares and nothing reads: a forgotten `x +`, a key that only looks read.
// In: a parsed description with its libraries. Out: nothing, or the first such name as an error. The idea: a name is
// read if it stands in an expression of the body that assigns it, whichever branches a file takes.
#include "spec.h"

#include <string.h>

// Names that stand in expressions, each 1.
typedef struct {
    Lookup plain, part; // by themselves, and behind a dot
} Names;

// In a name with dots any beginning may be a name, the rest its parts; `hc_$fn` reads fn.
static void add_name(Names *read, Str name) {
    *lookup_at(&read->plain, name) = 1;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == '.') {
            *lookup_at(&read->plain, (Str){name.p, i}) = 1;
            *lookup_at(&read->part, (Str){name.p + i + 1, name.n - i - 1}) = 1;
        } else if (name.p[i] == '$') {
            size_t n = i + 1;
            while (n < name.n && is_c_word(name.p[n])) n++;
            *lookup_at(&read->plain, (Str){name.p + i + 1, n - i - 1}) = 1;
        }
}

static void add_expr(Names *read, const Expr *e) {
    if (!e) return;
    if (e->kind == E_NAME) add_name(read, e->name);
    if (e->kind == E_PART) *lookup_at(&read->part, e->name) = 1;
    for (int i = 0; i < e->n; i++) add_expr(read, e->arg[i]);
}

// What a body binds: values, functions, tensors, in its branches and loops, too.
static void add_bound(Lookup *bound, const Block *block) {
    for (int i = 0; i < block->n; i++) {
        const Stmt *s = block->stmt[i];
        bool binds = s->kind == S_ASSIGN || s->kind == S_TENSOR || s->kind == S_STATE || s->kind == S_FOR;
        for (int j = 0; j < (binds ? s->n_name : s->kind == S_DEF ? 1 : 0); j++) *lookup_at(bound, s->name[j]) = 1;
        if (s->kind != S_DEF) add_bound(bound, &s->body), add_bound(bound, &s->other);
    }
}

static void add_block(Names *read, const Block *block);

// Of a body with its own names (a def, a layer) only what it reads of those around it.
static void add_free(Names *read, const Stmt *s) {
    Names inside = {{.arena = read->plain.arena}, read->part};
    Lookup bound = {.arena = read->plain.arena};
    add_block(&inside, &s->body);
    read->part = inside.part;
    add_bound(&bound, &s->body);
    for (int j = 0; j < s->n_name; j++) *lookup_at(&bound, s->name[j]) = 1; // itself and its parameters
    for (int j = 0; j < inside.plain.cap; j++) {
        Str name = inside.plain.slot[j].key;
        if (name.p && !lookup(&bound, name)) *lookup_at(&read->plain, name) = 1;
    }
}

static void add_block(Names *read, const Block *block) {
    for (int i = 0; i < block->n; i++) {
        const Stmt *s = block->stmt[i];
        const Expr *const parts[] = {s->expr, s->index, s->in, s->out, s->ids, s->source, s->from, s->to};
        for (int j = 0; j < COUNT(parts); j++) add_expr(read, parts[j]);
        for (int j = 0; s->kind == S_DEF && s->preset && j < s->n_name; j++) add_expr(read, s->preset[j]);
        for (int j = 0; s->kind == S_TENSOR && j < s->n_name; j++)
            if (memchr(s->name[j].p, '$', s->name[j].n)) add_name(read, s->name[j]);
        if (s->kind == S_DEF || s->kind == S_LAYER) add_free(read, s);
        else add_block(read, &s->body), add_block(read, &s->other);
    }
}

static _Noreturn void unread(const Stmt *s, int i, const char *what) {
    fail_at(loc_at(s->src, s->at[i]), "'%.*s' is %s here, but nothing reads it; leave it out, or use it",
        FMT(s->name[i]), what);
}

static void check_inner(const Stmt *s, const Names *all);

// Values and functions of a body. given: what the body hands on.
static void check_body(const Block *block, const Names *read, const Names *all, const Stmt *given) {
    for (int i = 0; i < block->n; i++) {
        const Stmt *s = block->stmt[i];
        int n = s->kind == S_ASSIGN ? s->n_name : s->kind == S_DEF ? 1 : 0;
        for (int j = 0; j < n; j++) {
            bool known =
                str_is(s->name[j], "_") || lookup(&read->plain, s->name[j]) || lookup(&all->part, s->name[j]);
            for (int k = 1; given && k < given->n_name; k++) known |= str_eq(given->name[k], s->name[j]);
            if (!known) unread(s, j, s->kind == S_DEF ? "defined" : "computed");
        }
        if (s->kind == S_DEF) check_inner(s, all);
        else check_body(&s->body, read, all, given), check_body(&s->other, read, all, given);
    }
}

// A def, or a layer, which hands on what it carries.
static void check_inner(const Stmt *s, const Names *all) {
    Names read = {{.arena = all->plain.arena}, {.arena = all->plain.arena}};
    add_block(&read, &s->body);
    check_body(&s->body, &read, all, s->kind == S_LAYER ? s : NULL);
}

static void check_bodies(const Spec *spec, const Names *all) {
    for (int i = 0; i < spec->body.n; i++) {
        const Stmt *s = spec->body.stmt[i];
        if (s->kind == S_DEF || s->kind == S_LAYER) check_inner(s, all);
        if (s->kind == S_MODEL) check_body(&s->body, all, all, NULL);
    }
}

// Numbers, functions and caches that the description declares.
static void check_declared(const Spec *spec, const Names *all) {
    for (int i = 0; i < spec->body.n; i++) {
        const Stmt *s = spec->body.stmt[i];
        bool value = s->kind <= S_LAYOUT || s->kind == S_DEF;
        for (int j = 0; value && j < (s->kind == S_DEF ? 1 : s->n_name); j++)
            if (!lookup(&all->plain, s->name[j])) unread(s, j, "declared");
    }
}

void spec_check_read(Arena *a, const Spec *spec) {
    Names all = {{.arena = a}, {.arena = a}};
    add_block(&all, &spec->body);
    for (int i = 0; i < spec->n_lib; i++) add_block(&all, &spec->lib[i]->body);
    for (int i = 0; i < N_RESULT; i++) *lookup_at(&all.plain, str(model_results[i])) = 1;
    check_declared(spec, &all);
    check_bodies(spec, &all);
    for (int i = 0; i < spec->n_lib; i++) check_bodies(spec->lib[i], &all);
}
