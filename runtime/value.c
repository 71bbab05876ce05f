// Values: memory, making, failing, equality, order, truth, length, dictionaries. See value.h.
#include "value.h"
#include "chat_template.h"
#include "value_unicode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- memory ----
static char *reserve(Render *r, size_t n, size_t align) {
    size_t at = (r->used + align - 1) & ~(align - 1);
    if (at > r->size || n > r->size - at)
        raise_error(
            r, "MemoryError", "the template needs more than the %zu MiB that a rendering may take", r->size >> 20);
    r->used = at + n;
    return r->base + at;
}

void *render_take(Render *r, size_t n) {
    void *p = reserve(r, n, 16);
    memset(p, 0, n);
    return p;
}

void *render_take_n(Render *r, size_t n, size_t size) {
    if (size && n > SIZE_MAX / 2 / size)
        raise_error(r, "MemoryError", "%zu values at once are more than a rendering may take", n);
    return render_take(r, n * size);
}

char *render_take_text(Render *r, size_t n) {
    return reserve(r, n, 1);
}

Value text_of(Render *r, const char *p, size_t n) {
    String *s = render_take(r, sizeof *s);
    *s = (String){n ? p : "", n, utf8_count(p, n)};
    return str_value(s);
}

Value text(Render *r, const char *p, size_t n) {
    String *s = render_take(r, sizeof *s);
    char *copy = render_take_text(r, n);
    if (n) memcpy(copy, p, n);
    *s = (String){copy, n, utf8_count(p, n)};
    return str_value(s);
}

Value text_z(Render *r, const char *z) {
    return text(r, z, strlen(z));
}

Value text_format(Render *r, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return text_z(r, line);
}

void push(Render *r, Values *list, Value v) {
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 8;
        Value *wider = render_take_n(r, cap, sizeof *wider);
        if (list->n) memcpy(wider, list->v, list->n * sizeof *wider);
        list->v = wider;
        list->cap = cap;
    }
    list->v[list->n++] = v;
}

static Value sequence(Render *r, ValueKind kind, Value *v, size_t n) {
    List *list = render_take(r, sizeof *list);
    *list = (List){v, n};
    return (Value){.kind = (uint8_t) kind, .list = list};
}

Value values_list(Render *r, const Values *list) {
    return sequence(r, V_LIST, list->v, list->n);
}

static Value copied(Render *r, ValueKind kind, const Value *v, size_t n) {
    Value *copy = render_take_n(r, n, sizeof *copy);
    if (n) memcpy(copy, v, n * sizeof *copy);
    return sequence(r, kind, copy, n);
}

Value list_of(Render *r, const Value *v, size_t n) {
    return copied(r, V_LIST, v, n);
}

Value tuple_of(Render *r, const Value *v, size_t n) {
    return copied(r, V_TUPLE, v, n);
}

static Value undefined(Render *r, Undefined u) {
    Undefined *p = render_take(r, sizeof *p);
    *p = u;
    return (Value){.kind = V_UNDEFINED, .undefined = p};
}

Value undefined_name(Render *r, Value name) {
    return undefined(r, (Undefined){.name = name});
}

Value undefined_attr(Render *r, Value obj, Value name) {
    return undefined(r, (Undefined){.obj = obj, .name = name});
}

Value undefined_hint(Render *r, const char *hint) {
    return undefined(r, (Undefined){.hint = text_z(r, hint).s});
}

// ---- texts that grow ----
void buffer_add(Render *r, Buffer *b, const char *p, size_t n) {
    if (n > b->cap - b->n) {
        if (b->p && b->p + b->cap == r->base + r->used) { // nothing was taken since: grow in place
            size_t more = n - (b->cap - b->n);
            render_take_text(r, more);
            b->cap += more;
        } else {
            size_t cap = (b->n + n) * 2 < 64 ? 64 : (b->n + n) * 2;
            char *wider = render_take_text(r, cap);
            if (b->n) memcpy(wider, b->p, b->n);
            b->p = wider;
            b->cap = cap;
        }
    }
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}

void buffer_z(Render *r, Buffer *b, const char *z) {
    buffer_add(r, b, z, strlen(z));
}

void buffer_str(Render *r, Buffer *b, Value s) {
    buffer_add(r, b, s.s->p, s.s->n);
}

void buffer_format(Render *r, Buffer *b, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    buffer_z(r, b, line);
}

Value buffer_value(Render *r, const Buffer *b) {
    return text_of(r, b->p, b->n);
}

// ---- failing ----
_Noreturn void raise_error(Render *r, const char *type, const char *format, ...) {
    int n = type ? snprintf(r->error, sizeof r->error, "%s: ", type) : 0;
    va_list args;
    va_start(args, format);
    vsnprintf(r->error + n, sizeof r->error - (size_t) n, format, args);
    va_end(args);
    longjmp(r->jmp, 1);
}

// As Jinja2's object_type_repr: the class, with its module unless it is built in.
static void put_object_type(Render *r, Buffer *b, Value v) {
    static const char *module[] = {[V_UNDEFINED] = "jinja2.runtime",
        [V_NAMESPACE] = "jinja2.utils",
        [V_MACRO] = "jinja2.runtime",
        [V_LOOP] = "jinja2.runtime",
        [V_CYCLER] = "jinja2.utils",
        [V_JOINER] = "jinja2.utils",
        [V_MARKUP_TYPE] = NULL};
    if (v.kind == V_NONE) {
        buffer_z(r, b, "None");
        return;
    }
    const char *where = v.kind == V_STR && v.markup ? "markupsafe"
        : v.kind == V_TUPLE && v.markup             ? "jinja2.filters"
                                                    : module[v.kind];
    buffer_format(r, b, "%s%s%s object", where ? where : "", where ? "." : "", type_name(v));
}

_Noreturn void raise_undefined(Render *r, Value v) {
    const Undefined *u = v.undefined;
    Buffer b = {0};
    if (u->hint) buffer_add(r, &b, u->hint->p, u->hint->n);
    else if (is_missing(u->obj)) {
        put_repr(r, &b, u->name);
        buffer_z(r, &b, " is undefined");
    } else if (!is_str(u->name)) {
        put_object_type(r, &b, u->obj);
        buffer_z(r, &b, " has no element ");
        put_repr(r, &b, u->name);
    } else {
        Buffer t = {0};
        put_object_type(r, &t, u->obj);
        put_repr(r, &b, text_of(r, t.p, t.n));
        buffer_z(r, &b, " has no attribute ");
        put_repr(r, &b, u->name);
    }
    raise_error(r, u->unsafe ? "SecurityError" : "UndefinedError", "%.*s", (int) b.n, b.p);
}

const char *type_name(Value v) {
    static const char *names[] = {[V_MISSING] = "missing",
        [V_UNDEFINED] = "Undefined",
        [V_NONE] = "NoneType",
        [V_BOOL] = "bool",
        [V_INT] = "int",
        [V_BIG] = "int",
        [V_REAL] = "float",
        [V_STR] = "str",
        [V_LIST] = "list",
        [V_TUPLE] = "tuple",
        [V_DICT] = "dict",
        [V_RANGE] = "range",
        [V_NAMESPACE] = "Namespace",
        [V_MACRO] = "Macro",
        [V_FUNCTION] = "function",
        [V_METHOD] = "builtin_function_or_method",
        [V_LOOP] = "LoopContext",
        [V_CYCLER] = "Cycler",
        [V_JOINER] = "Joiner",
        [V_MARKUP_TYPE] = "type"};
    static const char *views[] = {"dict_keys", "dict_values", "dict_items"};
    if (v.kind == V_STR && v.markup) return "Markup";
    if (v.kind == V_TUPLE && v.markup) return "_GroupTuple";
    if (v.kind == V_VIEW) return views[v.view->kind];
    if (v.kind == V_ITER) return iter_type(v.iter);
    return names[v.kind];
}

// ---- code points ----
size_t utf8_get(const char *p, const char *end, uint32_t *c) {
    const unsigned char *s = (const unsigned char *) p;
    size_t room = (size_t) (end - p), n = s[0] < 0x80 ? 1 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (n > room) n = room; // only of text that nobody checked
    *c = n == 1 ? s[0] : n == 2 ? s[0] & 0x1Fu : n == 3 ? s[0] & 0xFu : s[0] & 7u;
    for (size_t i = 1; i < n; i++) *c = *c << 6 | (s[i] & 0x3Fu);
    return n;
}

size_t utf8_write(char *p, uint32_t c) {
    if (c < 0x80) {
        p[0] = (char) c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) p[i] = (char) (0x80 | (c & 0x3F));
    p[0] = (char) ((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | c);
    return n;
}

size_t utf8_count(const char *p, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char) p[i] & 0xC0) != 0x80;
    return count;
}

const char *utf8_at(const String *s, size_t i) {
    if (s->chars == s->n) return s->p + i;
    if (i >= s->chars) return s->p + s->n;
    const char *p = s->p;
    for (;; p++) {
        if (((unsigned char) *p & 0xC0) != 0x80 && i-- == 0) return p;
    }
}

unsigned uc_flags_of(uint32_t c) {
    size_t low = 0, high = sizeof uc_start / sizeof *uc_start;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (uc_start[middle] <= c) low = middle;
        else high = middle;
    }
    return uc_flags[low];
}

// ---- truth, length ----
bool length_of(Render *r, Value v, int64_t *n) {
    switch (v.kind) {
    case V_UNDEFINED: *n = 0; return true;
    case V_STR: *n = (int64_t) v.s->chars; return true;
    case V_LIST:
    case V_TUPLE: *n = (int64_t) v.list->n; return true;
    case V_DICT: *n = (int64_t) v.dict->n; return true;
    case V_VIEW: *n = (int64_t) v.view->dict->n; return true;
    case V_RANGE: *n = v.range->n; return true;
    case V_LOOP: {
        static const String name = STRING("length", 6);
        *n = attr(r, v, &name).i;
        return true;
    }
    default: return false;
    }
}

int64_t length(Render *r, Value v) {
    int64_t n;
    if (!length_of(r, v, &n)) raise_error(r, "TypeError", "object of type '%s' has no len()", type_name(v));
    return n;
}

bool truth(Render *r, Value v) {
    int64_t n;
    switch (v.kind) {
    case V_UNDEFINED:
    case V_NONE:
    case V_MISSING: return false;
    case V_BOOL: return v.b;
    case V_INT: return v.i != 0;
    case V_REAL: return v.x != 0;
    default: return !length_of(r, v, &n) || n > 0;
    }
}

// ---- equality and order ----
static void deeper(Render *r) {
    if (++r->nesting > limit_nesting)
        raise_error(r, "RecursionError", "values lie more than %d levels within each other", limit_nesting);
}

static bool same_items(Render *r, const List *a, const List *b) {
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        if (!equal(r, a->v[i], b->v[i])) return false;
    }
    return true;
}

static bool same_dicts(Render *r, const Dict *a, const Dict *b) {
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        const Value *other = dict_get(r, b, a->entry[i].key);
        if (!other || !equal(r, a->entry[i].value, *other)) return false;
    }
    return true;
}

static bool equal_inside(Render *r, Value a, Value b) {
    if (is_number(a) && is_number(b)) return compare_numbers(a, b) == 0;
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case V_UNDEFINED:
    case V_NONE:
    case V_MISSING: return true;
    case V_STR: return a.s->n == b.s->n && !memcmp(a.s->p, b.s->p, a.s->n);
    case V_LIST:
    case V_TUPLE: return a.list == b.list || same_items(r, a.list, b.list);
    case V_DICT: return a.dict == b.dict || same_dicts(r, a.dict, b.dict);
    case V_RANGE:
        return a.range->n == b.range->n &&
            (!a.range->n || (a.range->start == b.range->start && (a.range->n == 1 || a.range->step == b.range->step)));
    case V_VIEW: {
        if (a.view->kind == VIEW_VALUES || b.view->kind == VIEW_VALUES) return a.view == b.view;
        if (a.view->dict->n != b.view->dict->n) return false;
        Iter *it = iterate(r, a);
        for (Value v; next(r, it, &v);) {
            if (!contains(r, v, b)) return false;
        }
        return true;
    }
    case V_METHOD: return a.method == b.method;
    case V_FUNCTION: return a.id == b.id;
    default: return a.iter == b.iter; // identity, whatever the kind
    }
}

bool equal(Render *r, Value a, Value b) {
    deeper(r);
    bool same = equal_inside(r, a, b);
    r->nesting--;
    return same;
}

static int order_text(const String *a, const String *b) {
    int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
    return c ? (c < 0 ? -1 : 1) : a->n < b->n ? -1 : a->n > b->n;
}

static bool ordered(Comparison op, int order) {
    if (order == 2) return false;
    return op == CMP_LT ? order < 0 : op == CMP_LE ? order <= 0 : op == CMP_GT ? order > 0 : order >= 0;
}

// Views of keys and of items are ordered as sets are: by what contains what.
static bool subset(Render *r, Value a, Value b, bool proper) {
    size_t n = a.view->dict->n, m = b.view->dict->n;
    if (proper ? n >= m : n > m) return false;
    Iter *it = iterate(r, a);
    for (Value v; next(r, it, &v);) {
        if (!contains(r, v, b)) return false;
    }
    return true;
}

static bool compare_order(Render *r, Comparison op, Value a, Value b) {
    static const char *sign[] = {[CMP_LT] = "<", [CMP_LE] = "<=", [CMP_GT] = ">", [CMP_GE] = ">="};
    if (is_number(a) && is_number(b)) return ordered(op, compare_numbers(a, b));
    if (is_undefined(a)) raise_undefined(r, a);
    if (is_undefined(b)) raise_undefined(r, b);
    if (a.kind == V_STR && b.kind == V_STR) return ordered(op, order_text(a.s, b.s));
    if (a.kind == b.kind && (a.kind == V_LIST || a.kind == V_TUPLE)) {
        size_t n = a.list->n < b.list->n ? a.list->n : b.list->n;
        for (size_t i = 0; i < n; i++) {
            if (equal(r, a.list->v[i], b.list->v[i])) continue;
            deeper(r);
            bool is = compare_order(r, op, a.list->v[i], b.list->v[i]);
            r->nesting--;
            return is;
        }
        return ordered(op, a.list->n < b.list->n ? -1 : a.list->n > b.list->n);
    }
    if (a.kind == V_VIEW && b.kind == V_VIEW && a.view->kind != VIEW_VALUES && b.view->kind != VIEW_VALUES) {
        return op == CMP_LT || op == CMP_LE ? subset(r, a, b, op == CMP_LT) : subset(r, b, a, op == CMP_GT);
    }
    raise_error(
        r, "TypeError", "'%s' not supported between instances of '%s' and '%s'", sign[op], type_name(a), type_name(b));
}

bool compare(Render *r, Comparison op, Value a, Value b) {
    switch (op) {
    case CMP_EQ: return equal(r, a, b);
    case CMP_NE: return !equal(r, a, b);
    case CMP_IN: return contains(r, a, b);
    case CMP_NOT_IN: return !contains(r, a, b);
    default: return compare_order(r, op, a, b);
    }
}

static bool range_contains(Value v, const Range *range) {
    if (v.kind == V_BOOL) v = integer(v.b);
    if (v.kind == V_REAL && v.x >= -9e18 && v.x <= 9e18 && v.x == (double) (int64_t) v.x) v = integer((int64_t) v.x);
    if (v.kind != V_INT || !range->n) return false;
    int64_t last = range->start + (range->n - 1) * range->step;
    int64_t low = range->step > 0 ? range->start : last, high = range->step > 0 ? last : range->start;
    return v.i >= low && v.i <= high && (v.i - range->start) % range->step == 0;
}

bool contains(Render *r, Value v, Value in) {
    if (in.kind == V_STR) {
        if (v.kind != V_STR) {
            raise_error(r, "TypeError", "'in <string>' requires string as left operand, not %s", type_name(v));
        }
        return v.s->n == 0 || (v.s->n <= in.s->n && str_find(in, v, 0, (int64_t) in.s->chars, false) >= 0);
    }
    if (in.kind == V_DICT) return dict_get(r, in.dict, v) != NULL;
    if (in.kind == V_VIEW && in.view->kind == VIEW_KEYS) return dict_get(r, in.view->dict, v) != NULL;
    if (in.kind == V_RANGE) return range_contains(v, in.range);
    if (!iterable(in)) raise_error(r, "TypeError", "argument of type '%s' is not iterable", type_name(in));
    Iter *it = iterate(r, in);
    for (Value x; next(r, it, &x);) {
        if (equal(r, x, v)) return true;
    }
    return false;
}

// ---- dictionaries ----
static uint64_t mix(uint64_t h) {
    h ^= h >> 32;
    h *= 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

uint64_t hash_value(Render *r, Value v) {
    uint64_t h = 0xCBF29CE484222325u;
    switch (v.kind) {
    case V_STR:
        for (size_t i = 0; i < v.s->n; i++) h = (h ^ (unsigned char) v.s->p[i]) * 0x100000001B3u;
        return mix(h);
    case V_TUPLE:
        deeper(r);
        for (size_t i = 0; i < v.list->n; i++) h = mix(h ^ hash_value(r, v.list->v[i])) + i;
        r->nesting--;
        return h;
    case V_VIEW: // keys and items are sets; values are hashed as objects are
        if (v.view->kind == VIEW_VALUES) return mix((uint64_t) (uintptr_t) v.view);
        raise_error(r, "TypeError", "unhashable type: '%s'", type_name(v));
    case V_LIST:
    case V_DICT: raise_error(r, "TypeError", "unhashable type: '%s'", type_name(v));
    case V_BOOL:
    case V_INT:
    case V_BIG:
    case V_REAL: return mix(hash_number(v));
    case V_UNDEFINED:
    case V_NONE: return mix(v.kind);
    default: return mix((uint64_t) (uintptr_t) v.iter);
    }
}

Dict *dict_new(Render *r, size_t room) {
    Dict *d = render_take(r, sizeof *d);
    d->cap = room;
    d->entry = render_take_n(r, room, sizeof *d->entry);
    return d;
}

Value dict_value(Dict *d) {
    return (Value){.kind = V_DICT, .dict = d};
}

static Entry *find(Render *r, const Dict *d, Value key, uint64_t hash) {
    if (!d->index) {
        for (size_t i = 0; i < d->n; i++) {
            if (d->entry[i].hash == hash && equal(r, d->entry[i].key, key)) return &d->entry[i];
        }
        return NULL;
    }
    for (size_t at = hash & (d->n_index - 1); d->index[at]; at = (at + 1) & (d->n_index - 1)) {
        Entry *e = &d->entry[d->index[at] - 1];
        if (e->hash == hash && equal(r, e->key, key)) return e;
    }
    return NULL;
}

static void index_entry(Dict *d, size_t i) {
    size_t at = d->entry[i].hash & (d->n_index - 1);
    while (d->index[at]) at = (at + 1) & (d->n_index - 1);
    d->index[at] = (uint32_t) (i + 1);
}

void dict_set(Render *r, Dict *d, Value key, Value value) {
    uint64_t hash = hash_value(r, key);
    Entry *e = find(r, d, key, hash);
    if (e) {
        e->value = value;
        return;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 8;
        Entry *wider = render_take_n(r, cap, sizeof *wider);
        if (d->n) memcpy(wider, d->entry, d->n * sizeof *wider);
        d->entry = wider;
        d->cap = cap;
    }
    d->entry[d->n++] = (Entry){key, value, hash};
    if (d->n > 8 && d->n * 2 > d->n_index) {
        d->n_index = d->n_index ? d->n_index * 2 : 32;
        d->index = render_take_n(r, d->n_index, sizeof *d->index);
        for (size_t i = 0; i < d->n; i++) index_entry(d, i);
    } else if (d->index) {
        index_entry(d, d->n - 1);
    }
}

const Value *dict_get(Render *r, const Dict *d, Value key) {
    uint64_t hash = hash_value(r, key); // an unhashable key fails even where there is nothing
    const Entry *e = find(r, d, key, hash);
    return e ? &e->value : NULL;
}

const Value *dict_get_z(Render *r, const Dict *d, const char *key) {
    String s = {key, strlen(key), utf8_count(key, strlen(key))};
    return dict_get(r, d, str_value(&s));
}
