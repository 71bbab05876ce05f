// What a unit test stands on: CHECK counts and names what is not so; main ends with `return check_done();`.
#ifndef CHECK_H
#define CHECK_H

#include "util.h"

static int check_failed, check_count;

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        check_count++;                                                                                                 \
        if (!(cond)) {                                                                                                 \
            check_failed++;                                                                                            \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);                                                  \
        }                                                                                                              \
    } while (0)

#define CHECK_STR(got, want)                                                                                           \
    do {                                                                                                               \
        Str got_ = (got), want_ = str(want);                                                                           \
        check_count++;                                                                                                 \
        if (!str_eq(got_, want_)) {                                                                                    \
            check_failed++;                                                                                            \
            printf("%s:%d: %s is\n  '%.*s', not\n  '%.*s'\n", __FILE__, __LINE__, #got, FMT(got_), FMT(want_));        \
        }                                                                                                              \
    } while (0)

// The statement must fail with exactly this message.
#define CHECK_FAILS(statement, want)                                                                                   \
    do {                                                                                                               \
        if (!setjmp(fail_guard()->jmp)) {                                                                              \
            statement;                                                                                                 \
            fail_unguard();                                                                                            \
            check_count++;                                                                                             \
            check_failed++;                                                                                            \
            printf("%s:%d: did not fail: %s\n", __FILE__, __LINE__, #statement);                                       \
        } else {                                                                                                       \
            fail_unguard();                                                                                            \
            CHECK_STR(str(fail_guard()->message), want);                                                               \
            fail_unguard();                                                                                            \
        }                                                                                                              \
    } while (0)

static inline int check_done(void) {
    printf("%d of %d checks failed\n", check_failed, check_count);
    return check_failed != 0 || check_count == 0;
}

#endif
