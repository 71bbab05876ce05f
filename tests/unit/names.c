// compiler/lookup.c, and the names of compiler/print.c that stand on it.
#include "check.h"
#include "emit.h"

static void numbers(Arena *a) {
    Lookup t = {.arena = a};
    CHECK(lookup(&t, S("x")) == 0);
    for (int i = 1; i <= 5000; i++) *lookup_at(&t, str_fmt(a, "key %d", i)) = i;
    int right = 0;
    for (int i = 1; i <= 5000; i++) right += lookup(&t, str_fmt(a, "key %d", i)) == i;
    CHECK(right == 5000 && t.n == 5000 && lookup(&t, S("key 0")) == 0 && lookup(&t, S("")) == 0);
    *lookup_at(&t, S("key 7")) += 1;
    CHECK(lookup(&t, S("key 7")) == 8 && t.n == 5000);
    *lookup_at(&t, (Str){0}) = 3;
    CHECK(lookup(&t, S("")) == 3 && *lookup_at(&t, S("")) == 3 && t.n == 5001);
}

static void fresh(Arena *a) {
    Names t = {.arena = a};
    CHECK_STR(name_fresh(&t, S("q")), "q");
    CHECK_STR(name_fresh(&t, S("q")), "q2");
    CHECK_STR(name_fresh(&t, S("q3")), "q3");
    CHECK_STR(name_fresh(&t, S("t")), "t");
    CHECK_STR(name_fresh(&t, S("q")), "q4"); // q3 is another's
    CHECK_STR(name_fresh(&t, S("q2")), "q22");
    CHECK_STR(name_fresh(&t, S("t")), "t2");
    CHECK_STR(name_fresh(&t, S("a.b-c")), "a_b_c");
    CHECK_STR(name_fresh(&t, S("7_x")), "v7_x");
    CHECK_STR(name_fresh(&t, S("_x")), "v_x");
    CHECK_STR(name_fresh(&t, S("EOF")), "vEOF");
    CHECK_STR(name_fresh(&t, S("K")), "K");
    CHECK_STR(name_fresh(&t, S("")), "v");
    CHECK_STR(name_fresh(&t, S("abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz")),
        "abcdefghijklmnopqrstuvwxyz_abcdefghijklm");
    // Words of C, as floats and long doubles too, and types; numbers may lead to one.
    CHECK_STR(name_fresh(&t, S("while")), "while2");
    CHECK_STR(name_fresh(&t, S("while")), "while3");
    CHECK_STR(name_fresh(&t, S("abort")), "abort2");
    CHECK_STR(name_fresh(&t, S("yn")), "yn2");
    CHECK_STR(name_fresh(&t, S("sqrtf")), "sqrtf2");
    CHECK_STR(name_fresh(&t, S("expl")), "expl2");
    CHECK_STR(name_fresh(&t, S("my_t")), "my_t2");
    CHECK_STR(name_fresh(&t, S("log")), "log3");
}

static void of_c(Arena *a) {
    Names t = {.arena = a};
    name_fresh(&t, S("row")), name_fresh(&t, S("row"));
    names_of_c(&t, S("static float row_sum(const Model *m) { return row(m->x) + dot3(LIMIT); }"));
    CHECK_STR(name_fresh(&t, S("row_sum")), "row_sum2");
    CHECK_STR(name_fresh(&t, S("dot")), "dot");
    CHECK_STR(name_fresh(&t, S("dot")), "dot2");
    CHECK_STR(name_fresh(&t, S("dot")), "dot4");
    CHECK_STR(name_fresh(&t, S("Model")), "Model2");
    CHECK_STR(name_fresh(&t, S("m")), "m"); // neither called nor a type
    CHECK_STR(name_fresh(&t, S("row")), "row3");
}

int main(void) {
    Arena *a = arena_new();
    numbers(a);
    fresh(a);
    of_c(a);
    arena_free(a);
    return check_done();
}
