// Jinja's filters on sequences: lazy where Python's are generators, sorted as Python sorts. See value.h.
#include "chat_template.h"

#include <string.h>

static bool given(Value v) {
    return !is_missing(v) && v.kind != V_NONE;
}

static bool flag(Render *r, Value v) {
    return !is_missing(v) && truth(r, v);
}

// ---- what an attribute path gives ----
typedef struct {
    Values parts;
    bool lower;      // texts without case
    Value otherwise; // for an undefined part; MISSING: none
} Getter;

static void add_parts(Render *r, Getter *g, Value path) {
    if (!given(path)) return;
    if (!is_str(path)) {
        push(r, &g->parts, path);
        return;
    }
    Value parts = str_split(r, path, text_z(r, "."), -1, false);
    for (size_t i = 0; i < parts.list->n; i++) {
        Value p = parts.list->v[i];
        bool digits = p.s->n > 0, ok;
        for (size_t k = 0; k < p.s->n; k++) digits &= p.s->p[k] >= '0' && p.s->p[k] <= '9';
        push(r, &g->parts, digits ? int_parse(r, p.s->p, p.s->n, 10, &ok) : p);
        if (digits && !ok) { // int() takes leading zeros
            size_t zero = 0;
            while (zero + 1 < p.s->n && p.s->p[zero] == '0') zero++;
            g->parts.v[g->parts.n - 1] = int_parse(r, p.s->p + zero, p.s->n - zero, 10, &ok);
        }
    }
}

static Value lowered(Render *r, Value v) {
    return is_str(v) ? str_lower(r, v) : v;
}

static Value get(Render *r, const Getter *g, Value v) {
    for (size_t i = 0; i < g->parts.n; i++) {
        v = item(r, v, g->parts.v[i]);
        if (is_undefined(v) && given(g->otherwise)) v = g->otherwise;
    }
    return g->lower ? lowered(r, v) : v;
}

static Getter getter(Render *r, Value path, bool lower, Value otherwise) {
    Getter g = {.lower = lower, .otherwise = otherwise};
    add_parts(r, &g, path);
    return g;
}

// ---- order ----
typedef struct {
    Value key, value;
} Keyed;

// The first run, then insertion by bisection: CPython's for short lists, so that the same pair of values is found
// not to compare. Longer ones are merged.
static bool before(Render *r, Value a, Value b) {
    step(r);
    return compare(r, CMP_LT, a, b);
}

static void insert_sorted(Render *r, Keyed *k, size_t n, size_t from) {
    for (size_t i = from; i < n; i++) {
        Keyed pivot = k[i];
        size_t low = 0, high = i;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (before(r, pivot.key, k[middle].key)) high = middle;
            else low = middle + 1;
        }
        memmove(k + low + 1, k + low, (i - low) * sizeof *k);
        k[low] = pivot;
    }
}

static size_t first_run(Render *r, Keyed *k, size_t n) {
    size_t run = 2;
    if (n < 2) return n;
    bool down = before(r, k[1].key, k[0].key);
    while (run < n && before(r, k[run].key, k[run - 1].key) == down) run++;
    for (size_t i = 0; down && i < run / 2; i++) {
        Keyed swap = k[i];
        k[i] = k[run - 1 - i];
        k[run - 1 - i] = swap;
    }
    return run;
}

static void merge_sort(Render *r, Keyed *k, Keyed *spare, size_t n) {
    if (n < 64) {
        insert_sorted(r, k, n, first_run(r, k, n));
        return;
    }
    size_t half = n / 2, a = 0, b = half, at = 0;
    merge_sort(r, k, spare, half);
    merge_sort(r, k + half, spare, n - half);
    memcpy(spare, k, n * sizeof *k);
    while (a < half && b < n) k[at++] = before(r, spare[b].key, spare[a].key) ? spare[b++] : spare[a++];
    while (a < half) k[at++] = spare[a++];
    while (b < n) k[at++] = spare[b++];
}

static void turn(Keyed *k, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        Keyed swap = k[i];
        k[i] = k[n - 1 - i];
        k[n - 1 - i] = swap;
    }
}

static Value sorted_values(Render *r, Keyed *k, size_t n, bool reverse) {
    if (reverse) turn(k, n);
    merge_sort(r, k, render_take_n(r, n, sizeof *k), n);
    if (reverse) turn(k, n);
    List *list = render_take(r, sizeof *list);
    *list = (List){render_take_n(r, n, sizeof(Value)), n};
    for (size_t i = 0; i < n; i++) list->v[i] = k[i].value;
    return (Value){.kind = V_LIST, .list = list};
}

FILTER(sort) {
    Value a[3];
    bind_args(r, "do_sort", "reverse=, case_sensitive=, attribute=", args, a);
    bool lower = !flag(r, a[1]);
    Value paths = given(a[2]) && is_str(a[2]) ? str_split(r, a[2], text_z(r, ","), -1, false) : list_of(r, &a[2], 1);
    size_t n_path = paths.list->n;
    Getter *g = render_take_n(r, n_path, sizeof *g);
    for (size_t i = 0; i < n_path; i++) g[i] = getter(r, paths.list->v[i], lower, MISSING);
    Value all = list_from(r, v);
    Keyed *k = render_take_n(r, all.list->n, sizeof *k);
    for (size_t i = 0; i < all.list->n; i++) {
        Value *keys = render_take_n(r, n_path, sizeof *keys);
        for (size_t p = 0; p < n_path; p++) keys[p] = get(r, &g[p], all.list->v[i]);
        k[i] = (Keyed){list_of(r, keys, n_path), all.list->v[i]};
    }
    return sorted_values(r, k, all.list->n, flag(r, a[0]));
}

FILTER(dictsort) {
    static const String names[] = {STRING("key", 3), STRING("value", 5)};
    Value a[3];
    bind_args(r, "do_dictsort", "case_sensitive=, by=, reverse=", args, a);
    bool by_value = !is_missing(a[1]) && equal(r, a[1], str_value(&names[1]));
    if (!is_missing(a[1]) && !by_value && !equal(r, a[1], str_value(&names[0]))) {
        raise_error(r, "FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
    }
    if (is_undefined(v)) raise_undefined(r, v);
    if (v.kind != V_DICT) raise_error(r, "AttributeError", "'%s' object has no attribute 'items'", type_name(v));
    Keyed *k = render_take_n(r, v.dict->n, sizeof *k);
    for (size_t i = 0; i < v.dict->n; i++) {
        Value pair[2] = {v.dict->entry[i].key, v.dict->entry[i].value};
        k[i] = (Keyed){flag(r, a[0]) ? pair[by_value] : lowered(r, pair[by_value]), tuple_of(r, pair, 2)};
    }
    return sorted_values(r, k, v.dict->n, flag(r, a[2]));
}

FILTER(groupby) {
    Value a[3];
    bind_args(r, "sync_do_groupby", "attribute, default=, case_sensitive=", args, a);
    Getter key = getter(r, a[0], !flag(r, a[2]), a[1]), shown = getter(r, a[0], false, a[1]);
    Value all = list_from(r, v);
    size_t n = all.list->n;
    Keyed *k = render_take_n(r, n, sizeof *k);
    for (size_t i = 0; i < n; i++) k[i] = (Keyed){get(r, &key, all.list->v[i]), all.list->v[i]};
    sorted_values(r, k, n, false);
    Values groups = {0};
    for (size_t from = 0, to; from < n; from = to) {
        Values members = {0};
        for (to = from; to < n && equal(r, k[to].key, k[from].key); to++) push(r, &members, k[to].value);
        if (to == from) push(r, &members, k[to++].value); // a NaN is not its own equal
        Value pair[2] = {key.lower ? get(r, &shown, k[from].value) : k[from].key, values_list(r, &members)};
        push(r, &groups, marked(tuple_of(r, pair, 2), true));
    }
    return values_list(r, &groups);
}

static Value extreme(Render *r, Value v, const Args *args, const char *name, Comparison better) {
    Value a[2], best, x;
    bind_args(r, name, "case_sensitive=, attribute=", args, a);
    Iter *it = iterate(r, v);
    if (!next(r, it, &best)) return undefined_hint(r, "No aggregated item, sequence was empty.");
    Getter key = getter(r, a[1], !flag(r, a[0]), MISSING);
    Value best_key = get(r, &key, best);
    while (next(r, it, &x)) {
        step(r);
        Value k = get(r, &key, x);
        if (!compare(r, better, k, best_key)) continue;
        best = x;
        best_key = k;
    }
    return best;
}

FILTER(min) {
    return extreme(r, v, args, "do_min", CMP_LT);
}
FILTER(max) {
    return extreme(r, v, args, "do_max", CMP_GT);
}

// ---- whole sequences ----
FILTER(list) {
    bind_args(r, "sync_do_list", "", args, NULL);
    return list_from(r, v);
}

FILTER(first) {
    Value x;
    bind_args(r, "sync_do_first", "", args, NULL);
    return next(r, iterate(r, v), &x) ? x : undefined_hint(r, "No first item, sequence was empty.");
}

static Value reversed_list(Render *r, Value v) {
    Value all = list_from(r, v);
    for (size_t i = 0; i < all.list->n / 2; i++) {
        Value swap = all.list->v[i];
        all.list->v[i] = all.list->v[all.list->n - 1 - i];
        all.list->v[all.list->n - 1 - i] = swap;
    }
    return all;
}

static bool reversible(Value v) {
    return v.kind == V_UNDEFINED || (v.kind >= V_STR && v.kind <= V_RANGE);
}

FILTER(last) {
    bind_args(r, "do_last", "", args, NULL);
    if (!reversible(v)) raise_error(r, "TypeError", "'%s' object is not reversible", type_name(v));
    if (is_str(v) && v.s->n) return item(r, v, integer(-1));
    Value all = list_from(r, v);
    return all.list->n ? all.list->v[all.list->n - 1] : undefined_hint(r, "No last item, sequence was empty.");
}

static bool reversed_next(Render *r, void *self, Value *out) {
    return next(r, self, out);
}

FILTER(reverse) {
    bind_args(r, "do_reverse", "", args, NULL);
    if (is_str(v)) return slice(r, v, MISSING, MISSING, integer(-1));
    if (!iterable(v)) raise_error(r, "FilterArgumentError", "argument must be iterable");
    Value all = reversed_list(r, v);
    if (!reversible(v)) return all;
    static const char *const views[] = {
        "dict_reversekeyiterator", "dict_reversevalueiterator", "dict_reverseitemiterator"};
    const char *type = v.kind == V_LIST ? "list_reverseiterator"
        : v.kind == V_DICT              ? views[0]
        : v.kind == V_VIEW              ? views[v.view->kind]
        : v.kind == V_RANGE             ? "range_iterator"
                                        : "reversed";
    return generator(r, type, reversed_next, iterate(r, all));
}

typedef struct {
    Iter *it;
    Getter get;
} Mapped;

FILTER(join) {
    Value a[2], x;
    bind_args(r, "sync_do_join", "d=, attribute=", args, a);
    Getter g = getter(r, a[1], false, MISSING);
    if (!iterable(v)) {
        if (given(a[1])) raise_error(r, "TypeError", "'%s' object is not iterable", type_name(v));
        raise_error(r, "TypeError", "'%s' object is not iterable", type_name(v));
    }
    Buffer out = {0};
    Value sep = is_missing(a[0]) ? text_of(r, "", 0) : to_str(r, a[0]);
    Iter *it = iterate(r, v);
    for (bool first = true; next(r, it, &x); first = false) {
        step(r);
        if (!first) buffer_str(r, &out, sep);
        buffer_str(r, &out, to_str(r, get(r, &g, x)));
    }
    return buffer_value(r, &out);
}

FILTER(sum) {
    Value a[2], x;
    bind_args(r, "sync_do_sum", "attribute=, start=", args, a);
    Getter g = getter(r, a[0], false, MISSING);
    Value sum = is_missing(a[1]) ? integer(0) : a[1];
    Iter *it = iterate(r, v);
    if (is_str(sum)) raise_error(r, "TypeError", "sum() can't sum strings [use ''.join(seq) instead]");
    while (next(r, it, &x)) {
        step(r);
        sum = add(r, sum, get(r, &g, x));
    }
    return sum;
}

// ---- lazy ones ----
typedef struct {
    Value over, name;
    Iter *it; // NULL until the first value is asked for
    Args args;
    bool by_attr, negate, ready;
    Getter get;
    const FilterInfo *filter;
    const TestInfo *test;
    bool map;
} Lazy;

static Args copy_args(Render *r, const Args *args, size_t skip) {
    Args copy = *args;
    copy.v = list_of(r, args->v + skip, args->n - skip).list->v;
    copy.n -= skip;
    copy.named = list_of(r, args->named, args->n_named).list->v;
    const String **names = render_take_n(r, args->n_named, sizeof *names);
    for (size_t i = 0; i < args->n_named; i++) names[i] = args->names[i];
    copy.names = names;
    return copy;
}

_Noreturn static void unknown(Render *r, const char *what, Value name) {
    Value shown = repr(r, name);
    raise_error(r, "TemplateRuntimeError", "No %s named %.*s.", what, (int) shown.s->n, shown.s->p);
}

static void prepare_map(Render *r, Lazy *l) {
    static const char *const keys[] = {"attribute", "default"};
    Value found[2] = {MISSING, MISSING};
    if (!l->args.n) {
        for (size_t i = 0; i < l->args.n_named; i++) {
            for (int k = 0; k < 2; k++) {
                const String *name = l->args.names[i];
                if (strlen(keys[k]) == name->n && !memcmp(keys[k], name->p, name->n)) found[k] = l->args.named[i];
            }
        }
        if (is_missing(found[0])) raise_error(r, "FilterArgumentError", "map requires a filter argument");
        for (size_t i = 0; i < l->args.n_named; i++) {
            const String *name = l->args.names[i];
            if (name->n == 9 && !memcmp(name->p, keys[0], 9)) continue;
            if (name->n == 7 && !memcmp(name->p, keys[1], 7)) continue;
            Value shown = repr(r, str_value(name));
            raise_error(r, "FilterArgumentError", "Unexpected keyword argument %.*s", (int) shown.s->n, shown.s->p);
        }
        l->get = getter(r, found[0], false, found[1]);
        l->by_attr = true;
        return;
    }
    l->name = l->args.v[0];
    l->args = copy_args(r, &l->args, 1);
    l->filter = is_str(l->name) ? filter_named(l->name.s->p, l->name.s->n) : NULL;
}

static void prepare_select(Render *r, Lazy *l) {
    size_t skip = l->by_attr;
    if (l->by_attr) {
        if (!l->args.n) raise_error(r, "FilterArgumentError", "Missing parameter for attribute name");
        l->get = getter(r, l->args.v[0], false, MISSING);
    }
    if (l->args.n > skip) {
        l->name = l->args.v[skip++];
        l->test = is_str(l->name) ? test_named(l->name.s->p, l->name.s->n) : NULL;
    }
    l->args = copy_args(r, &l->args, skip);
}

static bool lazy_next(Render *r, void *self, Value *out) {
    Lazy *l = self;
    if (!l->ready) {
        l->ready = true;
        if (!truth(r, l->over)) return false;
        if (l->map) prepare_map(r, l);
        else prepare_select(r, l);
        l->it = iterate(r, l->over);
    }
    if (!l->it) return false;
    for (Value v; next(r, l->it, &v);) {
        step(r);
        if (l->map) {
            if (l->by_attr) *out = get(r, &l->get, v);
            else if (!l->filter) unknown(r, "filter", l->name);
            else *out = l->filter->fn(r, v, &l->args);
            return true;
        }
        Value asked = l->by_attr ? get(r, &l->get, v) : v;
        if (!is_missing(l->name) && !l->test) unknown(r, "test", l->name);
        bool yes = l->test ? l->test->fn(r, asked, &l->args) : truth(r, asked);
        if (yes == l->negate) continue;
        *out = v;
        return true;
    }
    return false;
}

static Value lazy(Render *r, Value v, const Args *args, bool map, bool by_attr, bool negate) {
    Lazy *l = render_take(r, sizeof *l);
    *l = (Lazy){.over = v, .args = copy_args(r, args, 0), .map = map, .by_attr = by_attr, .negate = negate};
    return generator(r, "generator", lazy_next, l);
}

FILTER(map) {
    return lazy(r, v, args, true, false, false);
}
FILTER(select) {
    return lazy(r, v, args, false, false, false);
}
FILTER(reject) {
    return lazy(r, v, args, false, false, true);
}
FILTER(selectattr) {
    return lazy(r, v, args, false, true, false);
}
FILTER(rejectattr) {
    return lazy(r, v, args, false, true, true);
}

typedef struct {
    Value over, fill;
    Iter *it;
    int64_t size, at;
    Value items;
    Getter get;
    Dict *seen;
} Chunks;

static bool items_next(Render *r, void *self, Value *out) {
    Chunks *c = self;
    if (!c->it) {
        if (is_undefined(c->over)) return false;
        if (c->over.kind != V_DICT) raise_error(r, "TypeError", "Can only get item pairs from a mapping.");
        View *view = render_take(r, sizeof *view);
        *view = (View){VIEW_ITEMS, c->over.dict};
        c->it = iterate(r, (Value){.kind = V_VIEW, .view = view});
    }
    return next(r, c->it, out);
}

static Value chunks(Render *r, IterStep *step_of, Chunks c) {
    Chunks *p = render_take(r, sizeof *p);
    *p = c;
    return generator(r, "generator", step_of, p);
}

FILTER(items) {
    bind_args(r, "do_items", "", args, NULL);
    return chunks(r, items_next, (Chunks){.over = v});
}

static bool unique_next(Render *r, void *self, Value *out) {
    Chunks *c = self;
    if (!c->it) {
        c->it = iterate(r, c->over);
        c->seen = dict_new(r, 0);
    }
    while (next(r, c->it, out)) {
        step(r);
        Value key = get(r, &c->get, *out);
        if (dict_get(r, c->seen, key)) continue;
        dict_set(r, c->seen, key, NONE);
        return true;
    }
    return false;
}

FILTER(unique) {
    Value a[2];
    bind_args(r, "sync_do_unique", "case_sensitive=, attribute=", args, a);
    return chunks(r, unique_next, (Chunks){.over = v, .get = getter(r, a[1], !flag(r, a[0]), MISSING)});
}

static bool batch_next(Render *r, void *self, Value *out) {
    Chunks *c = self;
    Values row = {0};
    Value v;
    if (!c->it) c->it = iterate(r, c->over);
    if (is_missing(c->items)) {
        if (!next(r, c->it, &v)) return false;
        push(r, &row, v);
    } else { // the one that began this row
        push(r, &row, c->items);
    }
    c->items = MISSING;
    while (next(r, c->it, &v)) {
        step(r);
        if ((int64_t) row.n == c->size) {
            c->items = v;
            *out = values_list(r, &row);
            return true;
        }
        push(r, &row, v);
    }
    while (given(c->fill) && (int64_t) row.n < c->size) push(r, &row, c->fill);
    *out = values_list(r, &row);
    return true;
}

static bool batch_first(Render *r, void *self, Value *out) {
    Chunks *c = self;
    if (c->size == 0 && c->at++ == 0) { // the empty row is full at once
        if (!c->it) c->it = iterate(r, c->over);
        if (!next(r, c->it, &c->items)) return false;
        *out = list_of(r, NULL, 0);
        return true;
    }
    if (c->size != 0) return batch_next(r, self, out);
    if (is_missing(c->items)) return false;
    Values rest = {0}; // of rows of none, each further value makes a row of the one before
    push(r, &rest, c->items);
    Value v;
    while (next(r, c->it, &v)) push(r, &rest, v);
    c->items = MISSING;
    *out = values_list(r, &rest);
    return true;
}

FILTER(batch) {
    Value a[2];
    bind_args(r, "do_batch", "linecount, fill_with=", args, a);
    int64_t size = a[0].kind == V_INT || a[0].kind == V_BOOL ? index_of(r, a[0]) : INT64_MIN;
    return chunks(r, batch_first, (Chunks){.over = v, .fill = a[1], .size = size});
}

static bool slice_next(Render *r, void *self, Value *out) {
    Chunks *c = self;
    if (!c->at) {
        c->items = list_from(r, c->over);
        if (c->size == 0) raise_error(r, "ZeroDivisionError", "integer division or modulo by zero");
    }
    if (c->at >= c->size) return false;
    int64_t n = (int64_t) c->items.list->n, each = n / c->size, extra = n % c->size, i = c->at++;
    int64_t from = i * each + (i < extra ? i : extra), to = (i + 1) * each + (i + 1 < extra ? i + 1 : extra);
    Values row = {0};
    for (int64_t k = from; k < to; k++) push(r, &row, c->items.list->v[k]);
    if (given(c->fill) && i >= extra) push(r, &row, c->fill);
    *out = values_list(r, &row);
    return true;
}

FILTER(slice) {
    Value a[2];
    bind_args(r, "sync_do_slice", "slices, fill_with=", args, a);
    return chunks(r, slice_next, (Chunks){.over = v, .fill = a[1], .size = index_of(r, a[0])});
}
