// Expressions. In: a tree and the scope it stands in. Out: a value: a number, a shape, a rotation, or a node of the
// graph. Absence is a value too: a missing key makes everything computed from it absent, `or` takes the first that is
// not, and whoever needs a number from one that is says which key the file lacks.
#include "eval.h"

#include <math.h>
#include <string.h>

enum { MAX_STEPS = 4000000, MAX_DEEP = 800 }; // the second: what the stack has room for
static const double WHOLE = 9007199254740992.0; // beyond 2^53 integers have gaps

_Noreturn void not_yet(Loc loc, const char *what) {
    fail_at(loc, "%s not supported yet", what);
}

// ---- showing ----

const char *kind_show(Value v) {
    static const char *const kinds[] = {"absent", "a number", "a flag", "a text", "an array", "none", "a function",
        "a rotation", "a shape", "what a cache sees", "a tensor", "a state", "an input", "a value",
        "a column of a cache", "a record"};
    return kinds[v.kind];
}

bool is_text(Value v, const char *text) {
    return v.kind == V_TEXT && str_is(v.text, text);
}

const char *value_show(Build *b, Value v) {
    if (v.kind == V_NUM)
        return str_z(b->a, str_fmt(b->a, v.num == floor(v.num) ? "%.15g" : "%.7g", v.num)); // most come from an f32
    if (v.kind == V_FLAG) return v.num != 0 ? "true" : "false";
    if (v.kind == V_TEXT) return str_z(b->a, str_fmt(b->a, "\"%s\"", str_show(b->a, v.text)));
    return kind_show(v);
}

const char *from_key(Build *b, Value v) {
    return v.key.n ? str_z(b->a, str_fmt(b->a, " (key '%s')", str_show(b->a, v.key))) : "";
}

// ---- shapes ----

int64_t layout_size(Layout l, Loc loc) {
    int64_t size = 1;
    for (int i = 0; i < l.n; i++)
        if (__builtin_mul_overflow(size, l.axis[i].size, &size) || size > INT64_C(1) << 53)
            fail_at(loc, "this shape has more than 2^53 elements");
    return size;
}

Shape layout_shape(Layout l, Loc loc) {
    Shape s = {.n = l.n};
    if (l.n > MAX_DIM) fail_at(loc, "a value has at most %d axes; this one has %d", MAX_DIM, l.n);
    for (int i = 0; i < l.n; i++) s.d[i] = l.axis[i].size;
    layout_size(l, loc);
    return s;
}

static Layout one_axis(Build *b, Axis axis) {
    Layout l = {1, NEW(b->a, Axis)};
    l.axis[0] = axis;
    return l;
}

static Layout fresh_axis(Build *b, Scope *s, const Expr *e) {
    Scope *owner;
    Binding *bind = scope_find(s, e->name, &owner);
    Axis axis = {.fresh = e->name};
    if (bind && bind->progress == DONE) axis.size = (int64_t) bind->value.num;
    return one_axis(b, axis);
}

static Layout record_axis(Build *b, Scope *s, const Expr *e) {
    Axis axis = {.n_part = e->n, .part = NEWN(b->a, Part, e->n)};
    for (int i = 0; i < e->n; i++) {
        axis.part[i] = (Part){e->label[i], eval_layout(b, s, e->arg[i])};
        if (__builtin_add_overflow(axis.size, layout_size(axis.part[i].layout, LOC(e)), &axis.size))
            fail_at(LOC(e), "this record is too large");
    }
    return one_axis(b, axis);
}

Layout eval_layout(Build *b, Scope *s, const Expr *e) {
    if (e->kind == E_FRESH) return fresh_axis(b, s, e);
    if (e->kind == E_RECORD) return record_axis(b, s, e);
    if (e->kind == E_LIST) {
        Layout l = {0, NULL};
        int cap = 0;
        for (int i = 0; i < e->n; i++) {
            Layout inner = eval_layout(b, s, e->arg[i]);
            for (int j = 0; j < inner.n; j++) *PUSH(b->a, l.axis, l.n, cap) = inner.axis[j];
        }
        return l;
    }
    Value v = eval(b, s, e);
    if (v.kind == V_LAYOUT) return v.layout;
    double num = need_num(b, s, v, LOC(e), "a size");
    Str text = span(e->src, e->pos, e->end);
    if (num != floor(num) || fabs(num) > WHOLE)
        fail_at(LOC(e), "'%.*s' is %.9g%s; a size must be a whole number below 2^53%.*s", FMT(text), num,
            from_key(b, v), FMT(hint_numbers(b, s, NULL, e)));
    if (num < 1)
        fail_at(LOC(e), "'%.*s' is %.9g%s; the axis of a shape must be at least 1%.*s", FMT(text), num,
            from_key(b, v), FMT(hint_numbers(b, s, NULL, e)));
    return one_axis(b, (Axis){.size = (int64_t) num});
}

// ---- numbers ----

_Noreturn void no_value(Build *b, Scope *s, Value v) {
    const char *key = str_show(b->a, v.key), *near = "", *hint;
    Out also = out_new(b->a);
    for (int i = 1; v.tried && i < v.tried->n; i++)
        if (v.tried->arg[i]->kind == E_NAME) out(&also, ", nor '%.*s'", FMT(v.tried->arg[i]->name));
    hint = str_z(b->a, str_fmt(b->a, "%.*s%s", FMT(out_text(&also)), hint_key(b, v.key)));
    if (memchr(v.text.p, '.', v.text.n)) fail_at(v.loc, "the file has no key '%s'%s", key, hint);
    for (Scope *at = s; at && !*near; at = at->parent)
        for (int i = 0; i < at->n && !*near; i++)
            if (v.text.n > 2 && edit_distance(at->bind[i]->name, v.text) <= 1 + (v.text.n > 3))
                near = str_z(b->a, str_fmt(b->a, "; did you mean '%.*s'?", FMT(at->bind[i]->name)));
    fail_at(v.loc, "'%.*s' is not declared, and the file has no key '%s'%s", FMT(v.text), key, *near ? near : hint);
}

// Entry i of an array: a number, or a flag as 0 or 1.
static bool entry_of(const GgufValue *a, uint64_t i, double *x) {
    int64_t flag = 0;
    if (a->elem != GGUF_BOOL) return gguf_real(a, i, x);
    bool found = gguf_int(a, i, &flag);
    *x = (double) flag;
    return found;
}

// Array keys: one entry for each layer where NAME[l] is being evaluated, elsewhere all must be the same.
static Value array_element(Build *b, Scope *s, Value v) {
    const GgufValue *a = v.array;
    int64_t l = -1;
    for (Scope *at = s; at && l < 0; at = at->parent) l = at->index_l;
    const char *key = str_show(b->a, v.key);
    if (a->elem == GGUF_STR || a->elem == GGUF_ARR)
        fail_at(v.loc, "key '%s' is an array of %s; numbers were expected", key, gguf_kind_name(a->elem));
    double first = 0, x = 0;
    if (a->n == 0) fail_at(v.loc, "key '%s' is an empty array", key);
    if (l >= 0) {
        if (a->n < (uint64_t) b->n_layer)
            fail_at(v.loc, "key '%s' has %llu entries; one for each of %lld layers was expected", key,
                (unsigned long long) a->n, (long long) b->n_layer);
        if (!entry_of(a, (uint64_t) l, &x)) fail_at(v.loc, "key '%s', entry %lld is not a number", key, (long long) l);
    } else {
        int layers = key_find(b, key_full(b, S("block_count")));
        int64_t least = 0;
        if (layers >= 0 && gguf_int(&b->gguf->key[layers].v, 0, &least) && a->n > 1 && (int64_t) a->n < least)
            fail_at(v.loc, "key '%s' has %llu entries; one number, or one for each of %lld layers, was expected", key,
                (unsigned long long) a->n, (long long) least);
        for (uint64_t i = 0; i < a->n; i++) {
            if (!entry_of(a, i, &x))
                fail_at(v.loc, "key '%s', entry %llu is not a number", key, (unsigned long long) i);
            if (i == 0) first = x;
            if (x != first)
                fail_at(v.loc,
                    "key '%s' is an array with different entries (%.9g, .. %.9g, ..), but is read as one number; "
                    "NAME[l] reads one for each layer",
                    key, first, x);
        }
    }
    Value r = a->elem == GGUF_BOOL ? FLAG(x != 0) : NUM(x);
    r.varies = l >= 0;
    r.key = v.key;
    return r;
}

Value scalar(Build *b, Scope *s, Value v) {
    if (v.kind == V_ABSENT && b->synth && b->in_or == 0) {
        int key = key_find(b, v.key); // asked for once more
        if (key < 0) key = synth_key(b, v.key, false);
        if (key >= 0) return scalar(b, s, key_absolute(b, b->gguf->key[key].key, v.loc));
    }
    if (v.kind == V_ARRAY) return array_element(b, s, v);
    return v;
}

double need_num(Build *b, Scope *s, Value v, Loc loc, const char *what) {
    v = scalar(b, s, v);
    if (v.kind == V_ABSENT) no_value(b, s, v);
    if (v.kind == V_NUM) return v.num;
    if (is_run_time(v)) fail_at(loc, "%s was expected, known when building; this is %s of the run", what, kind_show(v));
    fail_at(loc, "%s was expected, found %s%s", what, value_show(b, v), from_key(b, v));
}

double eval_num(Build *b, Scope *s, const Expr *e, const char *what) {
    return need_num(b, s, eval(b, s, e), LOC(e), what);
}

int64_t eval_size(Build *b, Scope *s, const Expr *e, const char *what) {
    double x = eval_num(b, s, e, what);
    Str text = span(e->src, e->pos, e->end);
    if (!(x >= 0 && x <= WHOLE) || x != floor(x))
        fail_at(LOC(e), "'%.*s' is %.9g; %s must be a whole number, not negative and below 2^53", FMT(text), x, what);
    return (int64_t) x;
}

static bool truth(Build *b, Scope *s, Value v, Loc loc) {
    v = scalar(b, s, v);
    if (v.kind == V_ABSENT) no_value(b, s, v);
    if (v.kind == V_TENSOR) {
        v.tensor->used = true;
        return v.tensor->present;
    }
    if (v.kind == V_INPUT) return false;
    if (v.kind == V_FLAG || (v.kind == V_NUM && (v.num == 0 || v.num == 1))) return v.num != 0;
    if (is_run_time(v))
        fail_at(loc, "this is decided when building, so it cannot depend on %s of the run", kind_show(v));
    fail_at(loc, "a flag was expected, found %s%s", value_show(b, v), from_key(b, v));
}

bool eval_flag(Build *b, Scope *s, const Expr *e) {
    return truth(b, s, eval(b, s, e), LOC(e));
}

// ---- names ----

static Value eval_name(Build *b, Scope *s, const Expr *e) {
    Scope *owner;
    Binding *bind = scope_find(s, e->name, &owner);
    if (bind) return binding_value(b, owner, bind, LOC(e));
    for (size_t n = e->name.n; n-- > 0;) // the longest declared head, then parts of it
        if (e->name.p[n] == '.' && (bind = scope_find(s, (Str){e->name.p, n}, &owner))) {
            Value v = binding_value(b, owner, bind, LOC(e));
            Str rest = {e->name.p + n + 1, e->name.n - n - 1};
            while (rest.n) {
                const char *dot = memchr(rest.p, '.', rest.n);
                size_t len = dot ? (size_t) (dot - rest.p) : rest.n;
                v = take_part(b, v, (Str){rest.p, len}, LOC(e));
                rest = dot ? (Str){dot + 1, rest.n - len - 1} : S("");
            }
            return v;
        }
    bool found;
    Value v = builtin_value(b, e->name, LOC(e), &found);
    if (found) return v;
    if (is_builtin(e->name)) return (Value){.kind = V_FN, .text = e->name};
    return key_value(b, e->name, LOC(e));
}

// Alternatives that are not taken still count as read: keys, groups of keys, and optional tensors.
static void mark_read(Build *b, Scope *s, const Expr *e) {
    Scope *owner;
    Binding *bind = e->kind == E_NAME ? scope_find(s, e->name, &owner) : NULL;
    if (e->kind == E_STR && memchr(e->name.p, '.', e->name.n)) key_absolute(b, e->name, LOC(e));
    if (e->kind == E_NAME && !bind && !is_builtin(e->name)) { // `attention(..)` reads no key `attention.causal`
        Str key = key_full(b, e->name), group = str_fmt(b->a, "%.*s.", FMT(key));
        if (b->synth) synth_unread(b, key);
        for (int i = 0; i < b->gguf->n_key; i++)
            if (str_eq(b->gguf->key[i].key, key) || str_starts(b->gguf->key[i].key, str_z(b->a, group)))
                b->key_used[i] = 1;
    }
    if (bind && bind->decl && bind->decl->kind == S_TENSOR && bind->decl->optional && bind->which >= 0)
        binding_value(b, owner, bind, LOC(e)).tensor->used = true;
    for (int i = 0; i < e->n; i++) mark_read(b, s, e->arg[i]);
}

static Value eval_or(Build *b, Scope *s, const Expr *e) {
    Value first = {0};
    for (int i = 0; i < e->n; i++) {
        bool last = i == e->n - 1;
        b->in_or += !last;
        Value v = eval(b, s, e->arg[i]);
        b->in_or -= !last;
        if (v.kind == V_ABSENT || v.kind == V_INPUT || (v.kind == V_TENSOR && !v.tensor->present)) {
            if (v.kind == V_TENSOR) v.tensor->used = true;
            if (i == 0) first = v;
            continue;
        }
        b->reason = last ? e->comment : S("");
        b->chosen = span(e->src, e->arg[i]->pos, e->arg[i]->end);
        for (int j = i + 1; j < e->n; j++) mark_read(b, s, e->arg[j]);
        return v;
    }
    if (first.kind == V_ABSENT) first.tried = e;
    return first;
}

// ---- operators ----

static bool same(Build *b, Value x, Value y, Loc loc) {
    if (x.kind == V_ABSENT && y.kind == V_ABSENT) return str_eq(x.text, y.text); // words
    if (x.kind == V_TEXT && y.kind == V_ABSENT) return str_eq(x.text, y.text);   // arch == name
    if (x.kind == V_ABSENT && y.kind == V_TEXT) return same(b, y, x, loc);
    if (x.kind == V_TEXT && y.kind == V_TEXT) return str_eq(x.text, y.text);
    if (x.kind == V_FN && y.kind == V_FN) return x.fn == y.fn && str_eq(x.text, y.text);
    bool numbers = (x.kind == V_NUM || x.kind == V_FLAG) && (y.kind == V_NUM || y.kind == V_FLAG);
    if (!numbers || x.kind != y.kind) fail_at(loc, "%s cannot be compared with %s", kind_show(x), kind_show(y));
    return x.num == y.num;
}

// A word that no key can be: it only ever equals itself.
static bool is_word(Value v) {
    return v.kind == V_ABSENT && v.text.n && !memchr(v.text.p, '.', v.text.n);
}

static Value compare(Build *b, Scope *s, const Expr *e, Value x, Value y) {
    bool words = (is_word(x) || x.kind == V_TEXT) && (is_word(y) || y.kind == V_TEXT);
    if (!words) {
        x = scalar(b, s, x), y = scalar(b, s, y);
        bool text = x.kind == V_TEXT || y.kind == V_TEXT;
        if (x.kind == V_ABSENT && !text) return x;
        if (y.kind == V_ABSENT && !text) return y;
    }
    if (e->op == T_EQ || e->op == T_NE) return FLAG(same(b, x, y, LOC(e)) == (e->op == T_EQ));
    if (x.kind != V_NUM || y.kind != V_NUM)
        fail_at(LOC(e), "numbers are compared here, not %s and %s", kind_show(x), kind_show(y));
    double p = x.num, q = y.num;
    return FLAG(e->op == '<' ? p < q : e->op == '>' ? p > q : e->op == T_LE ? p <= q : p >= q);
}

static Value eval_in(Build *b, Scope *s, const Expr *e) {
    const Expr *set = e->arg[1];
    Value x = scalar(b, s, eval(b, s, e->arg[0]));
    if (x.kind == V_ABSENT) return x;
    for (int i = 0; i < set->n; i++)
        if (same(b, x, scalar(b, s, eval(b, s, set->arg[i])), LOC(set->arg[i]))) return FLAG(true);
    return FLAG(false);
}

static Value fold(Build *b, const Expr *e, Value x, Value y) {
    double p = x.num, q = y.num;
    if ((e->op == '/' || e->op == '%') && q == 0) {
        Str text = span(e->src, e->pos, e->end);
        fail_at(LOC(e), "'%.*s' divides by zero%s", FMT(text), from_key(b, y));
    }
    Value r = NUM(e->op == '+' ? p + q
            : e->op == '-'     ? p - q
            : e->op == '*'     ? p * q
            : e->op == '/'     ? p / q
                               : fmod(p, q));
    r.varies = x.varies || y.varies;
    return r;
}

static Value eval_binary(Build *b, Scope *s, const Expr *e) {
    if (e->op == T_NAME) return eval_in(b, s, e);
    Value x = eval(b, s, e->arg[0]);
    if (e->op == '&' || e->op == '|') { // the second only where it matters
        if (x.kind == V_ABSENT && b->in_or) return x;
        bool p = truth(b, s, x, LOC(e->arg[0]));
        if (p == (e->op == '|')) return FLAG(p);
        return FLAG(eval_flag(b, s, e->arg[1]));
    }
    Value y = eval(b, s, e->arg[1]);
    if (e->op == T_EQ || e->op == T_NE || e->op == '<' || e->op == '>' || e->op == T_LE || e->op == T_GE)
        return compare(b, s, e, x, y);
    x = scalar(b, s, x), y = scalar(b, s, y);
    if (is_run_time(x) || is_run_time(y)) {
        if (x.kind == V_ABSENT) no_value(b, s, x);
        if (y.kind == V_ABSENT) no_value(b, s, y);
        if (e->op == '%') fail_at(LOC(e), "'%%' takes numbers known when building");
        return arithmetic(b, e->op, x, y, LOC(e));
    }
    if (x.kind == V_ABSENT) return x;
    if (y.kind == V_ABSENT) return y;
    need_num(b, s, x, LOC(e->arg[0]), "a number");
    need_num(b, s, y, LOC(e->arg[1]), "a number");
    return fold(b, e, x, y);
}

static Value eval_unary(Build *b, Scope *s, const Expr *e) {
    Value x = eval(b, s, e->arg[0]);
    if (e->op == '!') {
        if (x.kind == V_ABSENT && b->in_or) return x;
        return FLAG(!truth(b, s, x, LOC(e->arg[0])));
    }
    x = scalar(b, s, x);
    if (x.kind == V_ABSENT) return x;
    if (is_run_time(x)) return make(b, NODE(.op = OP_neg, .n_in = 1, .in = {node_of(b, x, LOC(e))}, .loc = LOC(e)));
    Value r = NUM(-need_num(b, s, x, LOC(e->arg[0]), "a number"));
    r.varies = x.varies;
    return r;
}

static Value eval_cond(Build *b, Scope *s, const Expr *e) {
    Value c = eval(b, s, e->arg[0]);
    if (c.kind == V_ABSENT && b->in_or) return c;
    int taken = truth(b, s, c, LOC(e->arg[0])) ? 1 : 2;
    mark_read(b, s, e->arg[3 - taken]);
    return eval(b, s, e->arg[taken]);
}

static Value eval_match(Build *b, Scope *s, const Expr *e) {
    Value x = scalar(b, s, eval(b, s, e->arg[0]));
    if (x.kind == V_ABSENT) return x;
    Out cases = out_new(b->a);
    for (int i = 1; i < e->n; i += 2) {
        if (same(b, x, scalar(b, s, eval(b, s, e->arg[i])), LOC(e->arg[i]))) return eval(b, s, e->arg[i + 1]);
        Str text = span(e->src, e->arg[i]->pos, e->arg[i]->end);
        out(&cases, "%s%.*s", i > 1 ? ", " : "", FMT(text));
    }
    Str cases_text = out_text(&cases), what = span(e->src, e->arg[0]->pos, e->arg[0]->end);
    fail_at(LOC(e->arg[0]), "'%.*s' is %s%s; this description knows %.*s", FMT(what), value_show(b, x), from_key(b, x),
        FMT(cases_text));
}

static Value eval_record(Build *b, Scope *s, const Expr *e) {
    Value *part = NEWN(b->a, Value, e->n);
    bool run_time = false;
    for (int i = 0; i < e->n; i++)
        if (e->arg[i]->kind != E_FRESH) {
            part[i] = eval(b, s, e->arg[i]);
            run_time |= is_run_time(part[i]);
        }
    if (run_time) return record_value(b, e, part);
    return (Value){.kind = V_LAYOUT, .layout = eval_layout(b, s, e)};
}

// KEY[i]: one entry of a key with an array.
static Value array_entry(Build *b, Scope *s, const Expr *e, Value v) {
    if (v.kind == V_ABSENT) return v;
    int64_t i = eval_size(b, s, e->arg[1], "an index");
    double x = 0;
    if ((uint64_t) i >= v.array->n || !entry_of(v.array, (uint64_t) i, &x))
        fail_at(LOC(e), "key '%s' has no number at %lld; it has %llu entries", str_show(b->a, v.key), (long long) i,
            (unsigned long long) v.array->n);
    Value r = v.array->elem == GGUF_BOOL ? FLAG(x != 0) : NUM(x);
    r.key = v.key;
    return r;
}

// KEY[a..b]: some entries of a key with an array.
static Value array_part(Build *b, Scope *s, const Expr *e, Value v) {
    int64_t from = eval_size(b, s, e->arg[1], "an index"), to = eval_size(b, s, e->arg[2], "an index");
    if (from >= to || (uint64_t) to > v.array->n)
        fail_at(LOC(e), "%lld .. %lld is outside of key '%s', which has %llu entries", (long long) from, (long long) to,
            str_show(b->a, v.key), (unsigned long long) v.array->n);
    GgufValue *part = NEW(b->a, GgufValue);
    *part = gguf_part(v.array, (uint64_t) from, (uint64_t) (to - from));
    v.array = part;
    return v;
}

static Value eval_index(Build *b, Scope *s, const Expr *e) {
    const Expr *base = e->arg[0];
    Scope *owner;
    Binding *bind = base->kind == E_NAME ? scope_find(s, base->name, &owner) : NULL;
    bool by_layer = bind && bind->decl && bind->decl->by_layer;
    if (!by_layer) {
        Value v = eval(b, s, base);
        if (e->kind == E_INDEX && (v.kind == V_ARRAY || v.kind == V_ABSENT)) return array_entry(b, s, e, v);
        if (e->kind == E_SLICE && v.kind == V_ABSENT) return v;
        if (e->kind == E_SLICE && v.kind == V_ARRAY) return array_part(b, s, e, v);
        return index_value(b, s, e, v);
    }
    if (e->kind == E_SLICE)
        fail_at(LOC(e), "'%.*s' is one value for each layer; it is asked for one at a time", FMT(base->name));
    return binding_at(b, owner, bind, eval_size(b, s, e->arg[1], "the layer"), LOC(e));
}

static Value eval_call(Build *b, Scope *s, const Expr *e) {
    const Expr *f = e->arg[0];
    Scope *owner;
    if (f->kind == E_NAME && str_ends(f->name, ".put") && !scope_find(s, f->name, &owner)) {
        Expr state = *f;
        state.name.n -= 4;
        Value v = eval(b, s, &state);
        if (v.kind != V_STATE) fail_at(LOC(f), "'%.*s' is %s; only a state is put to", FMT(state.name), kind_show(v));
        return state_put(b, s, e, v.state);
    }
    if (f->kind == E_INDEX) { // T[ids](x): of a stack, the products that were chosen
        Value t = eval(b, s, f->arg[0]);
        if (t.kind == V_TENSOR && t.tensor->stack) {
            if (e->n != 2 || e->label[1].n) fail_at(LOC(e), "a product takes one value");
            Value ids = eval(b, s, f->arg[1]), x = eval(b, s, e->arg[1]);
            return call_stack(b, t.tensor, &ids, x, LOC(e));
        }
    }
    return call_value(b, s, e, eval(b, s, f));
}

static Value eval_kind(Build *b, Scope *s, const Expr *e) {
    switch (e->kind) {
    case E_NUM: return NUM(e->num);
    case E_STR:
        return memchr(e->name.p, '.', e->name.n) ? key_absolute(b, e->name, LOC(e))
                                                 : (Value){.kind = V_TEXT, .text = e->name};
    case E_NAME: return eval_name(b, s, e);
    case E_LIST: return (Value){.kind = V_LAYOUT, .layout = eval_layout(b, s, e)};
    case E_RECORD: return eval_record(b, s, e);
    case E_CALL: return eval_call(b, s, e);
    case E_INDEX:
    case E_SLICE: return eval_index(b, s, e);
    case E_PART: return take_part(b, eval(b, s, e->arg[0]), e->name, LOC(e));
    case E_UNARY: return eval_unary(b, s, e);
    case E_BINARY: return eval_binary(b, s, e);
    case E_COND: return eval_cond(b, s, e);
    case E_OR: return eval_or(b, s, e);
    case E_MATCH: return eval_match(b, s, e);
    case E_AS: return view_as(b, eval(b, s, e->arg[0]), eval_layout(b, s, e->arg[1]), LOC(e));
    case E_FRESH: break;
    }
    fail_at(LOC(e), "'?%.*s' names a size in the shape of a tensor", FMT(e->name));
}

Value eval(Build *b, Scope *s, const Expr *e) {
    if (++b->steps > MAX_STEPS) fail_at(LOC(e), "the description does not come to an end (%d steps)", MAX_STEPS);
    if (++b->deep > MAX_DEEP) fail_at(LOC(e), "more than %d expressions wait for each other here", MAX_DEEP);
    Value v = eval_kind(b, s, e);
    b->deep--;
    return v;
}
