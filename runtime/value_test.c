// Jinja's tests (`x is NAME`). In: a value and arguments. Out: yes or no. See value.h.
#include "chat_template.h"

#include <string.h>

static const Value *one(Render *r, const char *name, const char *signature, const Args *args, Value *a) {
    bind_args(r, name, signature, args, a);
    return a;
}

#define PLAIN(name, expression)                                                                                        \
    TEST(name) {                                                                                                       \
        Value none[1];                                                                                                 \
        one(r, "test_" #name, "", args, none);                                                                         \
        return expression;                                                                                             \
    }

PLAIN(odd, compare(r, CMP_EQ, mod(r, v, integer(2)), integer(1)))
PLAIN(even, compare(r, CMP_EQ, mod(r, v, integer(2)), integer(0)))
PLAIN(defined, v.kind != V_UNDEFINED)
PLAIN(undefined, v.kind == V_UNDEFINED)
PLAIN(none, v.kind == V_NONE)
PLAIN(boolean, v.kind == V_BOOL)
PLAIN(integer, v.kind == V_INT || v.kind == V_BIG)
PLAIN(float, v.kind == V_REAL)
PLAIN(lower, str_is_lower(to_str(r, v)))
PLAIN(upper, str_is_upper(to_str(r, v)))
PLAIN(string, v.kind == V_STR)
PLAIN(mapping, v.kind == V_DICT)
PLAIN(number, is_number(v))
PLAIN(iterable, iterable(v))
PLAIN(escaped, is_markup(v))
PLAIN(callable,
    v.kind == V_MACRO || v.kind == V_FUNCTION || v.kind == V_METHOD || v.kind == V_LOOP || v.kind == V_JOINER ||
        v.kind == V_UNDEFINED)
PLAIN(sequence,
    v.kind == V_UNDEFINED || v.kind == V_STR || v.kind == V_LIST || v.kind == V_TUPLE || v.kind == V_DICT ||
        v.kind == V_RANGE)

// Not by PLAIN: `true` and `false` are macros of C's.
bool test_true(Render *r, Value v, const Args *args) {
    Value none[1];
    one(r, "test_true", "", args, none);
    return v.kind == V_BOOL && v.b;
}

bool test_false(Render *r, Value v, const Args *args) {
    Value none[1];
    one(r, "test_false", "", args, none);
    return v.kind == V_BOOL && !v.b;
}

TEST(divisibleby) {
    Value by;
    one(r, "test_divisibleby", "num", args, &by);
    return compare(r, CMP_EQ, mod(r, v, by), integer(0));
}

TEST(filter) {
    Value none[1];
    one(r, "test_filter", "", args, none);
    hash_value(r, v);
    return is_str(v) && (filter_named(v.s->p, v.s->n) || filter_of_jinja(v.s->p, v.s->n));
}

TEST(test) {
    Value none[1];
    one(r, "test_test", "", args, none);
    hash_value(r, v);
    return is_str(v) && test_named(v.s->p, v.s->n);
}

TEST(sameas) {
    Value other;
    one(r, "test_sameas", "other", args, &other);
    if (v.kind != other.kind) return false;
    switch (v.kind) {
    case V_NONE: return true;
    case V_BOOL: return v.b == other.b;
    case V_INT: return v.i == other.i && v.i >= -5 && v.i <= 256; // the ones that Python keeps
    case V_REAL: return false;
    default: return v.iter == other.iter;
    }
}

TEST(in) {
    Value seq;
    one(r, "test_in", "seq", args, &seq);
    return contains(r, v, seq);
}

#define COMPARES(name, op)                                                                                             \
    TEST(name) {                                                                                                       \
        Value other;                                                                                                   \
        one(r, #name, "/ other", args, &other);                                                                        \
        return compare(r, op, v, other);                                                                               \
    }

COMPARES(eq, CMP_EQ)
COMPARES(ne, CMP_NE)
COMPARES(lt, CMP_LT)
COMPARES(le, CMP_LE)
COMPARES(gt, CMP_GT)
COMPARES(ge, CMP_GE)

#define ROW(name) {#name, "test_" #name, test_##name},
#define ALIAS(name, of)                                                                                                \
    { name, "test_" #of, test_##of }
const TestInfo tests[] = {TESTS(ROW) ALIAS("equalto", eq), ALIAS("==", eq), ALIAS("!=", ne), ALIAS("greaterthan", gt),
    ALIAS(">", gt), ALIAS(">=", ge), ALIAS("lessthan", lt), ALIAS("<", lt), ALIAS("<=", le), {NULL, NULL, NULL}};

const TestInfo *test_named(const char *p, size_t n) {
    for (const TestInfo *t = tests; t->name; t++) {
        if (strlen(t->name) == n && !memcmp(t->name, p, n)) return t;
    }
    return NULL;
}
