// Attributes, items, slices and calls, by the rules of Jinja's immutable sandbox: obj.name asks for a Python attribute
// first and an item then, obj[key] the other way round; what a sandbox hides comes back undefined. See value.h.
#define _GNU_SOURCE
#include "chat_template.h"
#include "value_unicode.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

int str_method_named(const char *p, size_t n);
const char *str_method_name(int id);
Value loop_attr(Render *r, Loop *loop, const char *name);
Value loop_call(Render *r, Loop *loop, int id, const Args *args);

static bool named(const String *s, const char *z) {
    return strlen(z) == s->n && !memcmp(s->p, z, s->n);
}

static int name_in(const String *s, const char *const *list) { // place, or -1
    for (int i = 0; list[i]; i++) {
        if (named(s, list[i])) return i;
    }
    return -1;
}

// ---- binding arguments ----
static bool next_param(const char **p, char name[32], bool *optional) {
    while (**p == ' ' || **p == ',') (*p)++;
    if (!**p) return false;
    size_t n = strcspn(*p, "=,");
    memcpy(name, *p, n);
    name[n] = 0;
    *p += n;
    *optional = **p == '=';
    if (*optional) (*p)++;
    return true;
}

void bind_args(Render *r, const char *function, const char *signature, const Args *args, Value *out) {
    bool nameless = *signature == '/', optional;
    const char *p = signature + nameless;
    char name[32];
    size_t n = 0, used_names = 0, required = 0;
    if (nameless && args->n_named) raise_error(r, "TypeError", "%s() takes no keyword arguments", function);
    for (; next_param(&p, name, &optional); n++) {
        out[n] = n < args->n ? args->v[n] : MISSING;
        for (size_t i = 0; i < args->n_named; i++) {
            if (!named(args->names[i], name)) continue;
            if (n < args->n) raise_error(r, "TypeError", "%s() got multiple values for argument '%s'", function, name);
            out[n] = args->named[i];
            used_names++;
        }
        if (!optional) {
            required++;
            if (is_missing(out[n]) && nameless && !strchr(signature, ',')) {
                raise_error(r, "TypeError", "%s() takes exactly one argument (0 given)", function);
            }
            if (is_missing(out[n]))
                raise_error(r, "TypeError", "%s() missing 1 required positional argument: '%s'", function, name);
        }
    }
    if (args->n > n && nameless && n < 2) { // as CPython says it of its own methods
        raise_error(r, "TypeError", "%s() takes %s (%zu given)", function, n ? "exactly one argument" : "no arguments",
            args->n);
    }
    if (args->n > n) {
        raise_error(r, "TypeError", "%s() takes %s%zu positional argument%s but %zu %s given", function,
            required < n ? "at most " : "", n, n == 1 ? "" : "s", args->n, args->n == 1 ? "was" : "were");
    }
    for (size_t i = 0; used_names < args->n_named; i++) {
        bool known = false;
        for (p = signature; next_param(&p, name, &optional);) known |= named(args->names[i], name);
        if (!known)
            raise_error(r, "TypeError", "%s() got an unexpected keyword argument '%.*s'", function,
                (int) args->names[i]->n, args->names[i]->p);
    }
}

// ---- attributes ----
static const char *const list_methods[] = {"count", "index", "copy", NULL};
static const char *const list_changers[] = {
    "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove", NULL};
static const char *const dict_methods[] = {"get", "items", "keys", "values", "copy", NULL};
static const char *const dict_changers[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
static const char *const number_methods[] = {"conjugate", "bit_length", "bit_count", "is_integer", NULL};
static const char *const cycler_methods[] = {"next", "reset", NULL};
// Attributes of every Python object, which a sandbox hides.
static const char *const hidden[] = {"__class__", "__init__", "__doc__", "__dir__", "__eq__", "__format__", "__ge__",
    "__getattribute__", "__gt__", "__hash__", "__init_subclass__", "__le__", "__lt__", "__ne__", "__new__",
    "__reduce__", "__reduce_ex__", "__repr__", "__setattr__", "__sizeof__", "__str__", "__subclasshook__",
    "__delattr__", NULL};
static const char *const hidden_containers[] = {"__len__", "__getitem__", "__contains__", "__iter__", NULL};

enum { METHOD_DICT = 100, METHOD_LIST = 200, METHOD_NUMBER = 300, METHOD_CYCLER = 400 };

static Value method(Render *r, Value self, int id, const char *name) {
    Method *m = render_take(r, sizeof *m);
    *m = (Method){self, id, name};
    return (Value){.kind = V_METHOD, .method = m};
}

static Value hide(Render *r, Value obj, Value name) {
    Undefined *u = render_take(r, sizeof *u);
    Value shown = repr(r, name);
    Buffer b = {0};
    buffer_z(r, &b, "access to attribute ");
    buffer_str(r, &b, shown);
    buffer_format(r, &b, " of '%s' object is unsafe.", type_name(obj));
    *u = (Undefined){.hint = buffer_value(r, &b).s, .obj = obj, .name = name, .unsafe = true};
    return (Value){.kind = V_UNDEFINED, .undefined = u};
}

static Value number_attr(Render *r, Value obj, const String *name) {
    if (named(name, "real")) return positive(r, obj);
    if (named(name, "imag")) return obj.kind == V_REAL ? real(0) : integer(0);
    if (obj.kind != V_REAL && named(name, "numerator")) return positive(r, obj);
    if (obj.kind != V_REAL && named(name, "denominator")) return integer(1);
    int at = name_in(name, number_methods);
    bool has = at == 0 || (at == 3 ? obj.kind == V_REAL : at > 0 && obj.kind != V_REAL);
    return has ? method(r, obj, METHOD_NUMBER + at, number_methods[at]) : MISSING;
}

static Value macro_attr(Render *r, Value obj, const String *name) {
    const MacroInfo *info = obj.macro->info;
    if (named(name, "name")) return info->name ? text_z(r, info->name) : NONE;
    if (named(name, "catch_kwargs")) return boolean(info->kwargs);
    if (named(name, "catch_varargs")) return boolean(info->varargs);
    if (named(name, "caller")) return boolean(info->caller);
    if (!named(name, "arguments")) return MISSING;
    Values names = {0};
    for (int i = 0; i < info->n_params; i++) push(r, &names, str_value(info->params[i]));
    return tuple_of(r, names.v, names.n);
}

// getattr(obj, name) as far as a template may see; MISSING: AttributeError.
static Value python_attr(Render *r, Value obj, const String *name) {
    int at;
    if (name->n && *name->p == '_' && obj.kind != V_NAMESPACE) {
        bool container =
            obj.kind == V_STR || obj.kind == V_LIST || obj.kind == V_TUPLE || obj.kind == V_DICT || obj.kind == V_RANGE;
        if (name_in(name, hidden) >= 0 || (container && name_in(name, hidden_containers) >= 0))
            return hide(r, obj, str_value(name));
        return MISSING;
    }
    switch (obj.kind) {
    case V_STR: {
        int id = str_method_named(name->p, name->n);
        return id >= 0 ? method(r, obj, id, str_method_name(id)) : MISSING;
    }
    case V_LIST:
        if (name_in(name, list_changers) >= 0) return hide(r, obj, str_value(name));
        return (at = name_in(name, list_methods)) >= 0 ? method(r, obj, METHOD_LIST + at, list_methods[at]) : MISSING;
    case V_TUPLE:
        if (obj.markup && named(name, "grouper")) return obj.list->v[0];
        if (obj.markup && named(name, "list")) return obj.list->v[1];
        return (at = name_in(name, list_methods)) >= 0 && at < 2 ? method(r, obj, METHOD_LIST + at, list_methods[at])
                                                                 : MISSING;
    case V_DICT:
        if (name_in(name, dict_changers) >= 0) return hide(r, obj, str_value(name));
        return (at = name_in(name, dict_methods)) >= 0 ? method(r, obj, METHOD_DICT + at, dict_methods[at]) : MISSING;
    case V_NAMESPACE: {
        const Value *v = dict_get(r, obj.dict, str_value(name));
        if (!v) return named(name, "__class__") ? hide(r, obj, str_value(name)) : MISSING;
        return *name->p == '_' ? hide(r, obj, str_value(name)) : *v;
    }
    case V_BOOL:
    case V_INT:
    case V_BIG:
    case V_REAL: return number_attr(r, obj, name);
    case V_RANGE:
        if (named(name, "start")) return integer(obj.range->start);
        if (named(name, "stop")) return integer(obj.range->stop);
        if (named(name, "step")) return integer(obj.range->step);
        return (at = name_in(name, list_methods)) >= 0 && at < 2 ? method(r, obj, METHOD_LIST + at, list_methods[at])
                                                                 : MISSING;
    case V_LOOP: {
        char z[16];
        if (name->n >= sizeof z) return MISSING;
        memcpy(z, name->p, name->n);
        z[name->n] = 0;
        return loop_attr(r, obj.loop, z);
    }
    case V_MACRO: return macro_attr(r, obj, name);
    case V_CYCLER:
        if (named(name, "current")) return obj.cycler->items[obj.cycler->pos];
        return (at = name_in(name, cycler_methods)) >= 0 ? method(r, obj, METHOD_CYCLER + at, cycler_methods[at])
                                                         : MISSING;
    case V_JOINER:
        return named(name, "sep") ? obj.cycler->sep : named(name, "used") ? boolean(obj.cycler->used) : MISSING;
    default: return MISSING;
    }
}

// obj[key]; MISSING: TypeError or LookupError.
static Value python_item(Render *r, Value obj, Value key) {
    if (obj.kind == V_DICT) {
        if (key.kind == V_LIST || key.kind == V_DICT || key.kind == V_VIEW) return MISSING;
        const Value *v = dict_get(r, obj.dict, key);
        return v ? *v : MISSING;
    }
    if ((key.kind != V_INT && key.kind != V_BOOL) ||
        (obj.kind != V_LIST && obj.kind != V_TUPLE && obj.kind != V_STR && obj.kind != V_RANGE))
        return MISSING;
    int64_t n = length(r, obj), i = key.kind == V_BOOL ? key.b : key.i;
    if (i < 0) i += n;
    if (i < 0 || i >= n) return MISSING;
    if (obj.kind == V_RANGE) return integer(obj.range->start + i * obj.range->step);
    return obj.kind == V_STR ? str_slice(r, obj, i, i + 1, 1, 1) : obj.list->v[i];
}

Value attr(Render *r, Value obj, const String *name) {
    if (is_undefined(obj)) {
        if (name->n && *name->p == '_' && (name_in(name, hidden) >= 0 || name_in(name, hidden_containers) >= 0))
            return hide(r, obj, str_value(name));
        raise_undefined(r, obj);
    }
    Value v = python_attr(r, obj, name);
    if (is_missing(v)) v = python_item(r, obj, str_value(name));
    return is_missing(v) ? undefined_attr(r, obj, str_value(name)) : v;
}

Value attr_value(Render *r, Value obj, Value name) { // the filter `attr`: no items
    if (!is_str(name)) raise_error(r, "TypeError", "attribute name must be string, not '%s'", type_name(name));
    if (is_undefined(obj)) return attr(r, obj, name.s);
    Value v = python_attr(r, obj, name.s);
    return is_missing(v) ? undefined_attr(r, obj, name) : v;
}

Value item(Render *r, Value obj, Value key) {
    if (is_undefined(obj)) raise_undefined(r, obj);
    Value v = python_item(r, obj, key);
    if (is_missing(v) && is_str(key)) v = python_attr(r, obj, key.s);
    return is_missing(v) ? undefined_attr(r, obj, key) : v;
}

void set_attr(Render *r, Value obj, const String *name, Value v) {
    if (obj.kind != V_NAMESPACE)
        raise_error(r, "TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    dict_set(r, obj.dict, str_value(name), v);
}

// ---- slices ----
static int64_t slice_bound(Render *r, Value v, int64_t otherwise) {
    if (is_missing(v) || v.kind == V_NONE) return otherwise;
    if (v.kind != V_INT && v.kind != V_BOOL && v.kind != V_BIG) {
        raise_error(r, "TypeError", "slice indices must be integers or None or have an __index__ method");
    }
    return index_clamped(r, v);
}

void slice_range(
    Render *r, int64_t n, Value start, Value stop, Value step_value, int64_t *from, int64_t *by, int64_t *count) {
    *by = slice_bound(r, step_value, 1);
    if (*by == 0) raise_error(r, "ValueError", "slice step cannot be zero");
    if (*by < -INT64_MAX) *by = -INT64_MAX;
    int64_t low = *by < 0 ? -1 : 0, high = *by < 0 ? n - 1 : n;
    int64_t a = slice_bound(r, start, *by < 0 ? INT64_MAX : 0),
            b = slice_bound(r, stop, *by < 0 ? INT64_MIN : INT64_MAX);
    bool stop_given = !(is_missing(stop) || stop.kind == V_NONE);
    if (a < 0) a = a + n < low ? low : a + n;
    if (a > high) a = high;
    if (!stop_given) b = *by < 0 ? -1 : n;
    else if (b < 0) b = b + n < low ? low : b + n;
    if (b > high) b = high;
    *from = a;
    if (*by > 0) *count = a < b ? (b - a - 1) / *by + 1 : 0;
    else *count = b < a ? (a - b - 1) / -*by + 1 : 0;
}

Value slice(Render *r, Value obj, Value start, Value stop, Value step_value) {
    int64_t from, by, count;
    if (is_undefined(obj)) raise_undefined(r, obj);
    if (obj.kind == V_DICT) raise_error(r, "TypeError", "unhashable type: 'slice'");
    if (obj.kind != V_STR && obj.kind != V_LIST && obj.kind != V_TUPLE && obj.kind != V_RANGE) {
        raise_error(r, "TypeError", "'%s' object is not subscriptable", type_name(obj));
    }
    int64_t n = length(r, obj);
    slice_range(r, n, start, stop, step_value, &from, &by, &count);
    if (obj.kind == V_STR) return str_slice(r, obj, from, 0, by, count);
    if (obj.kind == V_RANGE) {
        Range *range = render_take(r, sizeof *range);
        int64_t first = obj.range->start + from * obj.range->step,
                move = by > limit_range ? limit_range
            : by < -limit_range         ? -limit_range
                                        : by;
        *range = (Range){first, 0, obj.range->step * move, count};
        int64_t b = from + count * by; // the bound that Python prints is the clipped one
        int64_t clipped = slice_bound(r, stop, by < 0 ? -1 : n);
        if (!(is_missing(stop) || stop.kind == V_NONE))
            clipped = clipped < 0 ? (clipped + n < (by < 0 ? -1 : 0) ? (by < 0 ? -1 : 0) : clipped + n) : clipped;
        if (clipped > (by < 0 ? n - 1 : n)) clipped = by < 0 ? n - 1 : n;
        (void) b;
        range->stop = obj.range->start + clipped * obj.range->step;
        return (Value){.kind = V_RANGE, .range = range};
    }
    List *list = render_take(r, sizeof *list);
    list->n = (size_t) count;
    list->v = render_take_n(r, list->n, sizeof *list->v);
    for (int64_t i = 0; i < count; i++) list->v[i] = obj.list->v[from + i * by];
    return (Value){.kind = obj.kind, .list = list};
}

static bool slice_index(Value v) {
    return is_missing(v) || v.kind == V_NONE || v.kind == V_INT || v.kind == V_BOOL || v.kind == V_BIG;
}

Value slice_constant(Render *r, Value obj, Value start, Value stop, Value step_value) {
    bool sliced = obj.kind == V_STR || obj.kind == V_LIST || obj.kind == V_TUPLE || obj.kind == V_RANGE ||
        obj.kind == V_UNDEFINED;
    if (sliced && slice_index(start) && slice_index(stop) && slice_index(step_value))
        return slice(r, obj, start, stop, step_value);
    Value bound[3] = {start, stop, step_value};
    Buffer b = {0};
    buffer_format(r, &b, "%s%s has no element slice(", obj.kind == V_NONE ? "None" : type_name(obj),
        obj.kind == V_NONE ? "" : " object");
    for (int i = 0; i < 3; i++) {
        if (i) buffer_z(r, &b, ", ");
        put_repr(r, &b, is_missing(bound[i]) ? NONE : bound[i]);
    }
    buffer_z(r, &b, ")");
    Undefined *u = render_take(r, sizeof *u);
    *u = (Undefined){.hint = buffer_value(r, &b).s, .obj = obj};
    return (Value){.kind = V_UNDEFINED, .undefined = u};
}

// ---- methods ----
static Value dict_method(Render *r, const Method *m, const Args *args) {
    Value a[2] = {MISSING, MISSING};
    const Dict *d = m->self.dict;
    switch (m->id - METHOD_DICT) {
    case 0: {
        if (args->n_named) raise_error(r, "TypeError", "dict.get() takes no keyword arguments");
        if (!args->n || args->n > 2)
            raise_error(r, "TypeError", "get expected at %s %d argument%s, got %zu", args->n ? "most" : "least",
                args->n ? 2 : 1, args->n ? "s" : "", args->n);
        bind_args(r, "dict.get", "/ key, default=", args, a);
        const Value *v = dict_get(r, d, a[0]);
        return v ? *v : is_missing(a[1]) ? NONE : a[1];
    }
    case 4: {
        bind_args(r, "dict.copy", "/", args, a);
        Dict *copy = dict_new(r, d->n);
        for (size_t i = 0; i < d->n; i++) dict_set(r, copy, d->entry[i].key, d->entry[i].value);
        return dict_value(copy);
    }
    default: {
        bind_args(r,
            m->id == METHOD_DICT + 1       ? "dict.items"
                : m->id == METHOD_DICT + 2 ? "dict.keys"
                                           : "dict.values",
            "/", args, a);
        View *view = render_take(r, sizeof *view);
        *view = (View){m->id == METHOD_DICT + 1 ? VIEW_ITEMS : m->id == METHOD_DICT + 2 ? VIEW_KEYS : VIEW_VALUES, d};
        return (Value){.kind = V_VIEW, .view = view};
    }
    }
}

static Value list_method(Render *r, const Method *m, const Args *args) {
    Value a[3] = {MISSING, MISSING, MISSING};
    Value self = m->self.kind == V_RANGE ? list_from(r, m->self) : m->self;
    const List *list = self.list;
    if (m->id == METHOD_LIST + 2) {
        bind_args(r, "list.copy", "/", args, a);
        return list_of(r, list->v, list->n);
    }
    bool count = m->id == METHOD_LIST;
    char name[32];
    snprintf(name, sizeof name, "%s.%s", type_name(m->self), m->name);
    bind_args(r, name, count ? "/ value" : "/ value, start=, stop=", args, a);
    int64_t n = (int64_t) list->n, found = 0, from = is_missing(a[1]) ? 0 : index_clamped(r, a[1]),
            to = is_missing(a[2]) ? n : index_clamped(r, a[2]);
    from = from < 0 ? (from + n < 0 ? 0 : from + n) : from;
    to = to < 0 ? to + n : to > n ? n : to;
    for (int64_t i = count ? 0 : from; i < (count ? n : to); i++) {
        if (!equal(r, list->v[i], a[0])) continue;
        if (!count) return integer(i);
        found++;
    }
    if (count) return integer(found);
    if (m->self.kind == V_TUPLE) raise_error(r, "ValueError", "tuple.index(x): x not in tuple");
    Value shown = repr(r, a[0]);
    raise_error(
        r, "ValueError", "%.*s is not in %s", (int) shown.s->n, shown.s->p, m->self.kind == V_RANGE ? "range" : "list");
}

static Value number_method(Render *r, const Method *m, const Args *args) {
    Value none[1];
    bind_args(r, m->name, "/", args, none);
    if (m->id == METHOD_NUMBER) return positive(r, m->self);
    if (m->id == METHOD_NUMBER + 3)
        return boolean(m->self.x == (double) (int64_t) m->self.x || m->self.x > 1e18 || m->self.x < -1e18);
    Buffer bits = {0};
    put_int_base(r, &bits, number_abs(r, m->self), 2);
    int64_t ones = 0;
    for (size_t i = 0; i < bits.n; i++) ones += bits.p[i] == '1';
    return integer(m->id == METHOD_NUMBER + 2 ? ones : ones ? (int64_t) bits.n : 0);
}

static Value cycler_method(Render *r, const Method *m, const Args *args) {
    Value none[1];
    Cycler *c = m->self.cycler;
    bind_args(r, m->name, "/", args, none);
    if (m->id == METHOD_CYCLER + 1) {
        c->pos = 0;
        return NONE;
    }
    Value v = c->items[c->pos];
    c->pos = (c->pos + 1) % c->n;
    return v;
}

Value call_method(Render *r, const Method *m, const Args *args) {
    switch (m->self.kind) {
    case V_STR: return call_str_method(r, m->id, m->self, args);
    case V_DICT: return dict_method(r, m, args);
    case V_LOOP: return loop_call(r, m->self.loop, m->id, args);
    case V_CYCLER: return cycler_method(r, m, args);
    case V_LIST:
    case V_TUPLE:
    case V_RANGE: return list_method(r, m, args);
    default: return number_method(r, m, args);
    }
}

// ---- the globals ----
enum { G_RANGE, G_DICT, G_CYCLER, G_JOINER, G_NAMESPACE, G_RAISE, G_STRFTIME };
static const char *const globals[] = {
    "range", "dict", "cycler", "joiner", "namespace", "raise_exception", "strftime_now", NULL};

Value global_value(const char *p, size_t n) {
    int at = name_in(&(String){p, n, n}, globals);
    return at < 0 ? MISSING : (Value){.kind = V_FUNCTION, .id = (uint16_t) at};
}

static Value make_range(Render *r, const Args *args) {
    if (args->n_named)
        raise_error(r, "TypeError", "safe_range() got an unexpected keyword argument '%.*s'", (int) args->names[0]->n,
            args->names[0]->p);
    if (!args->n || args->n > 3)
        raise_error(r, "TypeError", "range expected at %s 3 arguments, got %zu",
            args->n ? "most" : "least 1 argument, at most", args->n);
    int64_t a[3] = {0, 0, 1};
    for (size_t i = 0; i < args->n; i++) a[args->n == 1 ? 1 : i] = index_of(r, args->v[i]);
    if (a[2] == 0) raise_error(r, "ValueError", "range() arg 3 must not be zero");
    __int128 span = a[2] > 0 ? (__int128) a[1] - a[0] : (__int128) a[0] - a[1], by = a[2] > 0 ? a[2] : -(__int128) a[2];
    __int128 count = span > 0 ? (span - 1) / by + 1 : 0;
    if (count > limit_range)
        raise_error(
            r, "OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", limit_range);
    Range *range = render_take(r, sizeof *range);
    *range = (Range){a[0], a[1], a[2], (int64_t) count};
    return (Value){.kind = V_RANGE, .range = range};
}

static Dict *make_dict(Render *r, const Args *args) {
    Dict *d = dict_new(r, args->n_named);
    if (args->n > 1) raise_error(r, "TypeError", "dict expected at most 1 argument, got %zu", args->n);
    if (args->n && args->v[0].kind == V_DICT) {
        const Dict *from = args->v[0].dict;
        for (size_t i = 0; i < from->n; i++) dict_set(r, d, from->entry[i].key, from->entry[i].value);
    } else if (args->n) {
        if (!iterable(args->v[0])) raise_error(r, "TypeError", "'%s' object is not iterable", type_name(args->v[0]));
        Iter *it = iterate(r, args->v[0]);
        Value pair;
        for (size_t i = 0; next(r, it, &pair); i++) {
            if (!iterable(pair))
                raise_error(r, "TypeError", "cannot convert dictionary update sequence element #%zu to a sequence", i);
            Value two = list_from(r, pair);
            if (two.list->n != 2)
                raise_error(r, "ValueError", "dictionary update sequence element #%zu has length %zu; 2 is required", i,
                    two.list->n);
            dict_set(r, d, two.list->v[0], two.list->v[1]);
        }
    }
    for (size_t i = 0; i < args->n_named; i++) dict_set(r, d, str_value(args->names[i]), args->named[i]);
    return d;
}

static Value make_cycler(Render *r, uint16_t id, const Args *args) {
    Cycler *c = render_take(r, sizeof *c);
    if (id == G_JOINER) {
        bind_args(r, "Joiner.__init__", "sep=", args, &c->sep);
        if (is_missing(c->sep)) c->sep = text_z(r, ", ");
        return (Value){.kind = V_JOINER, .cycler = c};
    }
    if (args->n_named)
        raise_error(r, "TypeError", "Cycler.__init__() got an unexpected keyword argument '%.*s'",
            (int) args->names[0]->n, args->names[0]->p);
    if (!args->n) raise_error(r, "RuntimeError", "at least one item has to be provided");
    *c = (Cycler){.items = list_of(r, args->v, args->n).list->v, .n = args->n};
    return (Value){.kind = V_CYCLER, .cycler = c};
}

static Value strftime_now(Render *r, const Args *args) {
    Value format;
    bind_args(r, "strftime_now", "format", args, &format);
    if (!is_str(format)) raise_error(r, "TypeError", "strftime() argument 1 must be str, not %s", type_name(format));
    TemplateTime *t = &r->now;
    Buffer b = {0};
    for (size_t i = 0; i < format.s->n; i++) { // of a time without a zone, as datetime.now() is
        const char *p = format.s->p + i;
        bool two = i + 1 < format.s->n && *p == '%';
        if (two && p[1] == 'f') buffer_format(r, &b, "%06d", t->micro);
        else if (two && p[1] != 'z' && p[1] != 'Z') buffer_add(r, &b, p, 2);
        else if (!two) buffer_add(r, &b, p, 1);
        i += two;
    }
    if (!b.n) return text_of(r, "", 0);
    buffer_add(r, &b, "|", 2); // never an empty result, and a NUL
    struct tm tm = {.tm_year = t->year - 1900,
        .tm_mon = t->month - 1,
        .tm_mday = t->day,
        .tm_hour = t->hour,
        .tm_min = t->minute,
        .tm_sec = t->second,
        .tm_isdst = -1};
    struct tm day = tm;
    time_t noon = timegm(&day);
    gmtime_r(&noon, &day);
    tm.tm_wday = day.tm_wday;
    tm.tm_yday = day.tm_yday;
    size_t room = 256 + b.n * 64;
    char *out = render_take_text(r, room);
    size_t n = strftime(out, room, b.p, &tm);
    return text_of(r, out, n ? n - 1 : 0);
}

static Value call_global(Render *r, uint16_t id, const Args *args) {
    Value v;
    switch (id) {
    case G_RANGE: return make_range(r, args);
    case G_DICT: return dict_value(make_dict(r, args));
    case G_NAMESPACE: return (Value){.kind = V_NAMESPACE, .dict = make_dict(r, args)};
    case G_RAISE:
        bind_args(r, "raise_exception", "message", args, &v);
        v = to_str(r, v);
        r->raised = true;
        raise_error(r, NULL, "%.*s", (int) v.s->n, v.s->p);
    case G_STRFTIME: return strftime_now(r, args);
    default: return make_cycler(r, id, args);
    }
}

// ---- calls ----
static const Value *take_named(const Args *args, const String *name, bool *used) {
    for (size_t i = 0; i < args->n_named; i++) {
        if (used[i] || args->names[i]->n != name->n || memcmp(args->names[i]->p, name->p, name->n)) continue;
        used[i] = true;
        return &args->named[i];
    }
    return NULL;
}

static void macro_rest(
    Render *r, const MacroInfo *info, const Args *args, const bool *used, size_t n_params, Value **at) {
    Value shown = info->name ? repr(r, text_z(r, info->name)) : text_z(r, "None");
    size_t left = args->n_named;
    for (size_t i = 0; i < args->n_named; i++) left -= used[i];
    if (info->kwargs) {
        Dict *d = dict_new(r, left);
        for (size_t i = 0; i < args->n_named; i++) {
            if (!used[i]) dict_set(r, d, str_value(args->names[i]), args->named[i]);
        }
        *(*at)++ = dict_value(d);
    } else if (left) {
        size_t i = 0;
        for (size_t k = 0; k < args->n_named; k++) {
            if (!used[k] && named(args->names[k], "caller")) {
                raise_error(r, "TypeError",
                    "macro %.*s was invoked with two values for the special caller argument. This is most likely a "
                    "bug.",
                    (int) shown.s->n, shown.s->p);
            }
        }
        while (used[i]) i++;
        Value name = repr(r, str_value(args->names[i]));
        raise_error(r, "TypeError", "macro %.*s takes no keyword argument %.*s", (int) shown.s->n, shown.s->p,
            (int) name.s->n, name.s->p);
    }
    if (info->varargs)
        *(*at)++ = args->n > n_params ? tuple_of(r, args->v + n_params, args->n - n_params) : tuple_of(r, NULL, 0);
    else if (args->n > n_params)
        raise_error(
            r, "TypeError", "macro %.*s takes not more than %zu argument(s)", (int) shown.s->n, shown.s->p, n_params);
}

static Value call_macro(Render *r, const Macro *m, const Args *args) {
    static const String caller = STRING("caller", 6);
    const MacroInfo *info = m->info;
    size_t n = (size_t) info->n_params;
    Value *v = render_take_n(r, n + 3, sizeof *v), *at = v;
    bool *used = render_take_n(r, args->n_named, sizeof *used),
         found_caller = n == (args->n < n ? args->n : n) && info->explicit_caller;
    for (size_t i = 0; i < n; i++) {
        const Value *given = i < args->n ? &args->v[i] : take_named(args, info->params[i], used);
        if (i >= args->n && named(info->params[i], "caller")) found_caller = true;
        *at++ = given ? *given : MISSING;
    }
    if (info->caller && !found_caller) {
        const Value *given = take_named(args, &caller, used);
        Undefined *none = render_take(r, sizeof *none);
        *none = (Undefined){.hint = text_z(r, "No caller defined").s, .name = str_value(&caller)};
        *at++ = given && given->kind != V_NONE ? *given : (Value){.kind = V_UNDEFINED, .undefined = none};
    }
    macro_rest(r, info, args, used, n, &at);
    enter_call(r);
    Value out = info->body(r, m->scope, info->code, v);
    leave_call(r);
    return out;
}

Value call(Render *r, Value f, const Args *args) {
    step(r);
    switch (f.kind) {
    case V_MACRO: return call_macro(r, f.macro, args);
    case V_METHOD: return call_method(r, f.method, args);
    case V_FUNCTION: return call_global(r, f.id, args);
    case V_LOOP: return loop_call(r, f.loop, 0, args);
    case V_JOINER: {
        Value none[1];
        bind_args(r, "Joiner.__call__", "/", args, none);
        if (f.cycler->used) return f.cycler->sep;
        f.cycler->used = true;
        return text_of(r, "", 0);
    }
    case V_UNDEFINED: raise_undefined(r, f);
    default: raise_error(r, "TypeError", "'%s' object is not callable", type_name(f));
    }
}

const char *method_missing(const char *p, size_t n) {
    static const char *const known[] = {"encode", "translate", "maketrans", "format_map", "to_bytes", "from_bytes",
        "as_integer_ratio", "hex", "fromhex", "fromkeys", "isdisjoint", "unescape", "striptags", NULL};
    int at = name_in(&(String){p, n, n}, known);
    return at < 0 ? NULL : known[at];
}
