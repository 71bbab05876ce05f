// The values of a chat template: Python's, as Jinja2 shows them to a template. In: constants of a compiled
// template, the variables of a case (json.h). Out: new values; no value is ever changed, but for namespaces, loops
// and their kin. All memory is bumped off one block that the caller gave (chat_template.h) and goes back at once
// after the rendering. An operation that Python would answer with an exception calls raise_error(), which ends the
// rendering: it does not return.
#ifndef VALUE_H
#define VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Render Render; // the rendering in progress: memory, output, error

typedef enum {
    V_MISSING, // not a value: an argument that was not given, a variable not set yet
    V_UNDEFINED,
    V_NONE,
    V_BOOL,
    V_INT,
    V_BIG,
    V_REAL,
    V_STR,
    V_LIST,
    V_TUPLE,
    V_DICT,
    V_VIEW,
    V_RANGE,
    V_ITER,
    V_NAMESPACE,
    V_MACRO,
    V_FUNCTION,
    V_METHOD,
    V_LOOP,
    V_CYCLER,
    V_JOINER,
    V_MARKUP_TYPE
} ValueKind;

// Text is UTF-8; a surrogate that JSON's \u smuggled in is held as its three bytes. Length and index count code points.
typedef struct {
    const char *p;
    size_t n, chars;
} String;
#define STRING(text, n_chars)                                                                                          \
    { "" text, sizeof(text) - 1, n_chars }

typedef struct Big Big; // an integer beyond 64 bits
typedef struct List List;
typedef struct Dict Dict;
typedef struct Undefined Undefined;
typedef struct View View;
typedef struct Range Range;
typedef struct Iter Iter;
typedef struct Macro Macro;
typedef struct Method Method;
typedef struct Loop Loop;
typedef struct Cycler Cycler;

typedef struct {
    uint8_t kind;
    bool markup; // V_STR: marked safe (Markup); V_TUPLE: a group of groupby, with .grouper and .list
    uint16_t id; // V_FUNCTION: which
    union {
        bool b;
        int64_t i;
        double x;
        const String *s;
        const Big *big;
        const List *list;
        Dict *dict; // V_DICT, V_NAMESPACE
        const Undefined *undefined;
        const View *view;
        const Range *range;
        Iter *iter;
        const Macro *macro;
        const Method *method;
        Loop *loop;
        Cycler *cycler; // V_CYCLER, V_JOINER
    };
} Value;

struct List {
    Value *v;
    size_t n;
};

typedef struct {
    Value key, value;
    uint64_t hash;
} Entry;

struct Dict { // in order of insertion
    Entry *entry;
    size_t n, cap;
    uint32_t *index; // slot to entry + 1, n_index a power of two; NULL while small
    size_t n_index;
};

struct Undefined {
    const String *hint; // the message, or NULL: made of obj and name
    Value obj, name;    // obj V_MISSING: a variable
    bool unsafe;        // SecurityError, not UndefinedError
};

typedef enum { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS } ViewKind;
struct View {
    ViewKind kind;
    const Dict *dict;
};

struct Range {
    int64_t start, stop, step, n;
};

struct Method {
    Value self;
    int id;
    const char *name;
};

struct Cycler {
    const Value *items;
    size_t n, pos;
    bool used; // V_JOINER
    Value sep;
};

// ---- making values ----
#define MISSING ((Value){.kind = V_MISSING})
#define NONE ((Value){.kind = V_NONE})
#define TRUE_VALUE boolean(true)
#define FALSE_VALUE boolean(false)
static inline Value boolean(bool b) {
    return (Value){.kind = V_BOOL, .b = b};
}
static inline Value integer(int64_t i) {
    return (Value){.kind = V_INT, .i = i};
}
static inline Value real(double x) {
    return (Value){.kind = V_REAL, .x = x};
}
static inline Value str_value(const String *s) {
    return (Value){.kind = V_STR, .s = s};
}
static inline Value marked(Value v, bool markup) {
    v.markup = markup;
    return v;
}
static inline bool is_str(Value v) {
    return v.kind == V_STR;
}
static inline bool is_undefined(Value v) {
    return v.kind == V_UNDEFINED;
}
static inline bool is_missing(Value v) {
    return v.kind == V_MISSING;
}
static inline bool is_number(Value v) {
    return v.kind >= V_BOOL && v.kind <= V_REAL;
}

void *render_take(Render *r, size_t n); // 16-byte aligned, zeroed; ends the rendering when the block is used up
void *render_take_n(Render *r, size_t n, size_t size);
char *render_take_text(Render *r, size_t n);    // n bytes, at the end of the block if nothing is taken after
Value text(Render *r, const char *p, size_t n); // copied
Value text_z(Render *r, const char *z);
Value text_of(Render *r, const char *p, size_t n); // not copied
Value text_format(Render *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
Value list_of(Render *r, const Value *v, size_t n); // copied
Value tuple_of(Render *r, const Value *v, size_t n);
Value undefined_name(Render *r, Value name);
Value undefined_attr(Render *r, Value obj, Value name);
Value undefined_hint(Render *r, const char *hint);
Dict *dict_new(Render *r, size_t room);
Value dict_value(Dict *d);
void dict_set(Render *r, Dict *d, Value key, Value value);
const Value *dict_get(Render *r, const Dict *d, Value key); // NULL: none
const Value *dict_get_z(Render *r, const Dict *d, const char *key);

// A growing array on the block.
typedef struct {
    Value *v;
    size_t n, cap;
} Values;
void push(Render *r, Values *list, Value v);
Value values_list(Render *r, const Values *list); // takes the array over

// A growing text on the block; grows in place while nothing else is taken.
typedef struct {
    char *p;
    size_t n, cap;
} Buffer;
void buffer_add(Render *r, Buffer *b, const char *p, size_t n);
void buffer_z(Render *r, Buffer *b, const char *z);
void buffer_str(Render *r, Buffer *b, Value s);
void buffer_format(Render *r, Buffer *b, const char *format, ...) __attribute__((format(printf, 3, 4)));
Value buffer_value(Render *r, const Buffer *b); // takes the text over

// ---- failing ----
_Noreturn void raise_error(Render *r, const char *type, const char *format, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void raise_undefined(Render *r, Value v);
const char *type_name(Value v);

// ---- code points ----
size_t utf8_get(const char *p, const char *end, uint32_t *c); // bytes read, at least 1
size_t utf8_write(char *p, uint32_t c);                       // at most 4
size_t utf8_count(const char *p, size_t n);
const char *utf8_at(const String *s, size_t i); // the byte where code point i begins, i <= chars
unsigned uc_flags_of(uint32_t c);               // UC_* of value_unicode.h

// ---- what every kind can be asked ----
bool truth(Render *r, Value v);
bool equal(Render *r, Value a, Value b);
bool contains(Render *r, Value item, Value container);
typedef enum { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_IN, CMP_NOT_IN } Comparison;
bool compare(Render *r, Comparison op, Value a, Value b);
uint64_t hash_value(Render *r, Value v);
bool length_of(Render *r, Value v, int64_t *n); // false: it has none
int64_t length(Render *r, Value v);
Value to_str(Render *r, Value v);   // str(v); a Markup becomes plain
Value soft_str(Render *r, Value v); // a str as it is, else str(v)
Value repr(Render *r, Value v);
void put_repr(Render *r, Buffer *b, Value v);
Value escape(Render *r, Value v); // Markup
bool is_markup(Value v);

// ---- numbers ----
Value add(Render *r, Value a, Value b);
Value sub(Render *r, Value a, Value b);
Value mul(Render *r, Value a, Value b);
Value divide(Render *r, Value a, Value b);
Value floordiv(Render *r, Value a, Value b);
Value mod(Render *r, Value a, Value b);
Value power(Render *r, Value a, Value b);
Value negate(Render *r, Value a);
Value positive(Render *r, Value a);
int compare_numbers(Value a, Value b); // -1, 0, 1; 2: not comparable (NaN)
double to_real(Render *r, Value v);    // of a number
uint64_t hash_number(Value v);
Value int_parse(Render *r, const char *p, size_t n, int base, bool *ok); // Python's int(text, base)
bool real_parse(const char *p, size_t n, double *x);                     // Python's float(text)
Value int_from_real(Render *r, double x);
Value number_abs(Render *r, Value v);
Value number_round(Render *r, Value v, int64_t digits);
int64_t index_of(Render *r, Value v);      // an int as a size; else TypeError, OverflowError
int64_t index_clamped(Render *r, Value v); // as an index: any integer, clamped to 64 bits
void put_number(Render *r, Buffer *b, Value v);
void put_real(char out[40], double x);                           // as repr: shortest that reads back
void put_int_base(Render *r, Buffer *b, Value v, unsigned base); // no sign handling lost: "-ff"

// ---- text ----
Value concat(Render *r, const Value *v, int n); // a ~ b ~ c
Value str_add(Render *r, Value a, Value b);
Value str_repeat(Render *r, Value s, int64_t n);
Value str_slice(Render *r, Value s, int64_t start, int64_t stop, int64_t step, int64_t n);
Value str_percent(Render *r, Value format, Value args); // format % args
Value str_lower(Render *r, Value s);
Value str_upper(Render *r, Value s);
Value str_strip(Render *r, Value s, Value chars, bool left, bool right);
Value str_split_lines(Render *r, Value s, bool keep_ends);
Value str_replace(Render *r, Value s, Value from, Value to, int64_t count);
Value str_join(Render *r, Value sep, Value items);
Value str_split(Render *r, Value s, Value sep, int64_t max, bool from_right);
bool str_all(Value s, unsigned flags); // not empty, and each code point has one of the flags
bool str_is_lower(Value s);
bool str_is_upper(Value s);
Value str_capitalize(Render *r, Value s);
Value str_title_word(Render *r, Value s);                                  // first upper, others lower
Value str_center(Render *r, Value s, int64_t width, Value fill, int how);  // -1 ljust, 0 center, 1 rjust
int64_t str_find(Value s, Value sub, int64_t from, int64_t to, bool last); // in code points; -1: not there

// ---- calls ----
typedef struct {
    const Value *v;
    size_t n;
    const String *const *names; // of named[i]
    const Value *named;
    size_t n_named;
} Args;
#define NO_ARGS ((Args){0})
// Arguments by position or name, as "value, default=, boolean=": those with = may be MISSING, one "/" ends those that
// have no name. The function's name is for the messages.
void bind_args(Render *r, const char *function, const char *signature, const Args *args, Value *out);
Value call(Render *r, Value f, const Args *args);
Value call_method(Render *r, const Method *m, const Args *args);
Value call_str_method(Render *r, int id, Value self, const Args *args);
Value str_format_call(Render *r, Value self, const Args *args);
Value format_field(Render *r, Value v, Value spec);   // format(v, spec)
Value attr(Render *r, Value obj, const String *name); // obj.name
Value attr_value(Render *r, Value obj, Value name);
Value item(Render *r, Value obj, Value key);                            // obj[key]
Value slice(Render *r, Value obj, Value start, Value stop, Value step); // MISSING where there is none
// Of constants, as Jinja2 folds them: what cannot be sliced is undefined, not an error.
Value slice_constant(Render *r, Value obj, Value start, Value stop, Value step);
void set_attr(Render *r, Value obj, const String *name, Value v); // of a namespace
void slice_range(Render *r, int64_t n, Value start, Value stop, Value step, int64_t *from, int64_t *by, int64_t *count);

// ---- iteration ----
Iter *iterate(Render *r, Value v); // TypeError for what cannot be
bool iterable(Value v);
bool next(Render *r, Iter *it, Value *out);
Value list_from(Render *r, Value v); // list(v)
Value iter_value(Iter *it);
const char *iter_type(const Iter *it);
void unpack(Render *r, Value v, size_t n, Value *out); // a, b = v
// An iterator of a filter: `step` gives the next value or false, with its state behind `self`.
typedef bool IterStep(Render *r, void *self, Value *out);
Value generator(Render *r, const char *type, IterStep *step, void *self);
// Those values of `it` that `test` says yes to (`for x in y if z`).
typedef bool LoopTest(Render *r, void *scope, const void *code, Value *v); // may give another value for it

// ---- filters and tests by name ----
typedef Value FilterFn(Render *r, Value v, const Args *args);
typedef bool TestFn(Render *r, Value v, const Args *args);
typedef struct {
    const char *name, *c_name; // of the template, of the C function
    FilterFn *fn;
} FilterInfo;
typedef struct {
    const char *name, *c_name;
    TestFn *fn;
} TestInfo;
extern const FilterInfo filters[];
extern const TestInfo tests[];
const FilterInfo *filter_named(const char *p, size_t n); // NULL: none
const TestInfo *test_named(const char *p, size_t n);
bool filter_of_jinja(const char *p, size_t n);                           // Jinja2 has it, we may not
_Noreturn void no_such(Render *r, const char *what, const String *name); // an unknown filter or test, reached
Value global_value(const char *p, size_t n);                             // range, namespace, ...; MISSING: none
const char *method_missing(const char *p, size_t n); // a method of Python's that is not implemented; NULL: none such

#define FILTER(name) Value filter_##name(Render *r, Value v, const Args *args)
#define TEST(name) bool test_##name(Render *r, Value v, const Args *args)
#define FILTERS(X)                                                                                                     \
    X(abs)                                                                                                             \
    X(attr) X(batch) X(capitalize) X(center) X(default) X(dictsort) X(escape) X(filesizeformat) X(first) X(float)      \
        X(forceescape) X(format) X(groupby) X(indent) X(int) X(items) X(join) X(last) X(length) X(list) X(lower)       \
            X(map) X(max) X(min) X(reject) X(rejectattr) X(replace) X(reverse) X(round) X(safe) X(select)              \
                X(selectattr) X(slice) X(sort) X(string) X(sum) X(title) X(tojson) X(trim) X(truncate) X(unique)       \
                    X(upper) X(urlencode) X(wordcount) X(wordwrap) X(pprint) X(xmlattr)
#define TESTS(X)                                                                                                       \
    X(odd)                                                                                                             \
    X(even) X(divisibleby) X(defined) X(undefined) X(filter) X(test) X(none) X(boolean) X(false) X(true) X(integer)    \
        X(float) X(lower) X(upper) X(string) X(mapping) X(number) X(sequence) X(iterable) X(callable) X(sameas)        \
            X(escaped) X(in) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)
#define DECLARE_FILTER(name) Value filter_##name(Render *r, Value v, const Args *args);
#define DECLARE_TEST(name) bool test_##name(Render *r, Value v, const Args *args);
FILTERS(DECLARE_FILTER)
TESTS(DECLARE_TEST)

#endif
