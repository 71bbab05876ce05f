// Iteration: over every kind that has one, lazily as Python's generators are. See value.h.
#include "chat_template.h"

struct Iter {
    const char *type; // Python's name for it, where a template can hold it
    IterStep *step;
    void *self;
    bool done; // a generator that has ended stays so
    // of the kinds that need no function
    Value over;
    size_t at;
    const char *p; // in a str
};

static const char *over_type(Value v) {
    switch (v.kind) {
    case V_STR: return v.s->n == v.s->chars ? "str_ascii_iterator" : "str_iterator";
    case V_TUPLE: return "tuple_iterator";
    case V_RANGE: return "range_iterator";
    case V_DICT: return "dict_keyiterator";
    default: return "list_iterator";
    }
}

bool iterable(Value v) {
    return v.kind == V_UNDEFINED || (v.kind >= V_STR && v.kind <= V_ITER) || v.kind == V_LOOP;
}

static bool loop_pairs(Render *r, void *self, Value *out) {
    Value pair[2] = {MISSING, loop_value(self)};
    if (!loop_next(r, self, &pair[0])) return false;
    *out = tuple_of(r, pair, 2);
    return true;
}

Iter *iterate(Render *r, Value v) {
    if (v.kind == V_ITER) return v.iter;
    if (!iterable(v)) raise_error(r, "TypeError", "'%s' object is not iterable", type_name(v));
    Iter *it = render_take(r, sizeof *it);
    it->over = v;
    it->type = over_type(v);
    if (v.kind == V_STR) it->p = v.s->p;
    if (v.kind == V_LOOP) {
        it->step = loop_pairs;
        it->self = v.loop;
    }
    return it;
}

static Value entry_value(Render *r, const Entry *e, ViewKind kind) {
    if (kind == VIEW_KEYS) return e->key;
    if (kind == VIEW_VALUES) return e->value;
    Value pair[2] = {e->key, e->value};
    return tuple_of(r, pair, 2);
}

bool next(Render *r, Iter *it, Value *out) {
    Value v = it->over;
    if (it->step) {
        if (it->done) return false;
        if (it->step(r, it->self, out)) return true;
        it->done = true;
        return false;
    }
    switch (v.kind) {
    case V_STR: {
        uint32_t c;
        if (it->p == v.s->p + v.s->n) return false;
        size_t n = utf8_get(it->p, v.s->p + v.s->n, &c);
        *out = text_of(r, it->p, n); // of a Markup too: plain
        it->p += n;
        return true;
    }
    case V_LIST:
    case V_TUPLE:
        if (it->at == v.list->n) return false;
        *out = v.list->v[it->at++];
        return true;
    case V_DICT:
        if (it->at == v.dict->n) return false;
        *out = v.dict->entry[it->at++].key;
        return true;
    case V_VIEW:
        if (it->at == v.view->dict->n) return false;
        *out = entry_value(r, &v.view->dict->entry[it->at++], v.view->kind);
        return true;
    case V_RANGE:
        if (it->at == (size_t) v.range->n) return false;
        *out = integer(v.range->start + (int64_t) it->at++ * v.range->step);
        return true;
    default: return false; // undefined: nothing
    }
}

Value list_from(Render *r, Value v) {
    if (v.kind == V_LIST || v.kind == V_TUPLE) return list_of(r, v.list->v, v.list->n);
    Values all = {0};
    Iter *it = iterate(r, v);
    for (Value x; next(r, it, &x); step(r)) push(r, &all, x);
    return values_list(r, &all);
}

Value iter_value(Iter *it) {
    return (Value){.kind = V_ITER, .iter = it};
}

const char *iter_type(const Iter *it) {
    return it->type;
}

Value generator(Render *r, const char *type, IterStep *next_of, void *self) {
    Iter *it = render_take(r, sizeof *it);
    *it = (Iter){.type = type, .step = next_of, .self = self};
    return iter_value(it);
}

void unpack(Render *r, Value v, size_t n, Value *out) {
    if (!iterable(v)) raise_error(r, "TypeError", "cannot unpack non-iterable %s object", type_name(v));
    Iter *it = iterate(r, v);
    for (size_t i = 0; i < n; i++) {
        if (!next(r, it, &out[i]))
            raise_error(r, "ValueError", "not enough values to unpack (expected %zu, got %zu)", n, i);
    }
    Value more;
    if (next(r, it, &more)) raise_error(r, "ValueError", "too many values to unpack (expected %zu)", n);
}

// ---- loops ----
struct Loop {
    Value over;
    Iter *it;
    LoopBody *again;
    void *scope;
    const void *code;
    int depth0;
    int64_t index0, length;       // length -1: not known yet
    Value after, current, before; // MISSING: none
    Value changed;
};

Loop *loop_begin(Render *r, Value iterable_value, LoopBody *again, void *scope, const void *code, int depth) {
    Loop *loop = render_take(r, sizeof *loop);
    *loop = (Loop){.over = iterable_value,
        .it = iterate(r, iterable_value),
        .again = again,
        .scope = scope,
        .code = code,
        .depth0 = depth,
        .index0 = -1,
        .length = -1};
    return loop;
}

bool loop_next(Render *r, Loop *loop, Value *out) {
    step(r);
    if (!is_missing(loop->after)) {
        *out = loop->after;
        loop->after = MISSING;
    } else if (!next(r, loop->it, out)) {
        return false;
    }
    loop->index0++;
    loop->before = loop->current;
    loop->current = *out;
    return true;
}

Value loop_value(Loop *loop) {
    return (Value){.kind = V_LOOP, .loop = loop};
}

static int64_t loop_length(Render *r, Loop *loop) {
    if (loop->length >= 0) return loop->length;
    if (loop->over.kind != V_ITER && length_of(r, loop->over, &loop->length)) return loop->length;
    Value rest = list_from(r, iter_value(loop->it));
    loop->it = iterate(r, rest);
    loop->length = (int64_t) rest.list->n + loop->index0 + 1 + !is_missing(loop->after);
    return loop->length;
}

static Value loop_peek(Render *r, Loop *loop) {
    if (is_missing(loop->after) && !next(r, loop->it, &loop->after)) loop->after = MISSING;
    return loop->after;
}

enum { LOOP_CYCLE = 1000, LOOP_CHANGED };

static Value loop_method(Render *r, Value self, int id, const char *name) {
    Method *m = render_take(r, sizeof *m);
    *m = (Method){self, id, name};
    return (Value){.kind = V_METHOD, .method = m};
}

// loop.NAME; MISSING: it has no such thing.
Value loop_attr(Render *r, Loop *loop, const char *name);
Value loop_attr(Render *r, Loop *loop, const char *name) {
    static const char *names[] = {"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth",
        "depth0", "previtem", "nextitem", "cycle", "changed"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && __builtin_strcmp(names[i], name)) i++;
    switch (i) {
    case 0: return integer(loop->index0 + 1);
    case 1: return integer(loop->index0);
    case 2: return integer(loop_length(r, loop) - loop->index0);
    case 3: return integer(loop_length(r, loop) - loop->index0 - 1);
    case 4: return boolean(loop->index0 == 0);
    case 5: return boolean(is_missing(loop_peek(r, loop)));
    case 6: return integer(loop_length(r, loop));
    case 7: return integer(loop->depth0 + 1);
    case 8: return integer(loop->depth0);
    case 9: return loop->index0 == 0 ? undefined_hint(r, "there is no previous item") : loop->before;
    case 10: {
        Value v = loop_peek(r, loop);
        return is_missing(v) ? undefined_hint(r, "there is no next item") : v;
    }
    case 11: return loop_method(r, loop_value(loop), LOOP_CYCLE, "cycle");
    case 12: return loop_method(r, loop_value(loop), LOOP_CHANGED, "changed");
    default: return MISSING;
    }
}

Value loop_call(Render *r, Loop *loop, int id, const Args *args); // cycle, changed, or the loop itself (0)
Value loop_call(Render *r, Loop *loop, int id, const Args *args) {
    if (id == LOOP_CYCLE) {
        if (!args->n) raise_error(r, "TypeError", "no items for cycling given");
        int64_t n = (int64_t) args->n;
        return args->v[((loop->index0 % n) + n) % n];
    }
    if (id == LOOP_CHANGED) {
        Value now = tuple_of(r, args->v, args->n);
        bool same = !is_missing(loop->changed) && equal(r, loop->changed, now);
        if (!same) loop->changed = now;
        return boolean(!same);
    }
    Value over;
    bind_args(r, "LoopContext.__call__", "iterable", args, &over);
    if (!loop->again)
        raise_error(r, "TypeError", "The loop must have the 'recursive' marker to be called recursively.");
    enter_call(r);
    Value out = loop->again(r, loop->scope, loop->code, over, loop->depth0 + 1);
    leave_call(r);
    return out;
}

typedef struct {
    Iter *it;
    LoopTest *test;
    void *scope;
    const void *code;
} Filtered;

static bool filtered_next(Render *r, void *self, Value *out) {
    Filtered *f = self;
    while (next(r, f->it, out)) {
        step(r);
        if (f->test(r, f->scope, f->code, out)) return true;
    }
    return false;
}

Value loop_filter(Render *r, Value over, LoopTest *test, void *scope, const void *code) {
    Filtered *f = render_take(r, sizeof *f);
    *f = (Filtered){iterate(r, over), test, scope, code};
    return generator(r, "generator", filtered_next, f);
}
