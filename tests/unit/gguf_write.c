// compiler/gguf_write.c: what it writes, compiler/gguf.c reads back.
#include "check.h"
#include "gguf.h"

#include <string.h>

static void round_trip(Arena *a, uint32_t alignment) {
    const char *path = str_fmt(a, "%s/written-%u.gguf", temp_dir(), (unsigned) alignment).p;
    int32_t numbers[] = {-1, 0, 1 << 30};
    Str texts[] = {S(""), S("a\nb"), S("\xc3\xbc")};
    int64_t shape_a[] = {64, 3}, shape_b[] = {5}, shape_c[] = {1, 1, 1, 2};
    unsigned char data[204 + 20 + 16];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char) (i + 1);

    GgufWriter *w = gguf_create(path);
    gguf_put_str(w, S("general.architecture"), S("tiny"));
    gguf_put_u32(w, S("general.alignment"), alignment);
    gguf_put_f32(w, S("eps"), 1e-5f);
    gguf_put_bool(w, S("flag"), true);
    gguf_put_array(w, S("numbers"), GGUF_I32, numbers, 3);
    gguf_put_array(w, S("texts"), GGUF_STR, texts, 3);
    gguf_put_array(w, S("none"), GGUF_F64, NULL, 0);
    gguf_put_tensor(w, S("a"), type_named(S("Q8_0"))->id, 2, shape_a);
    gguf_put_tensor(w, S("b"), 0, 1, shape_b);
    gguf_put_tensor(w, S("c"), type_named(S("I64"))->id, 4, shape_c);
    gguf_begin_data(w);
    gguf_write_data(w, data, 100); // pieces that do not respect tensors
    gguf_write_data(w, data + 100, sizeof data - 100);
    gguf_finish(w);

    Gguf *g = gguf_open(path);
    CHECK(g->version == 3 && g->alignment == alignment && g->n_key == 7 && g->n_tensor == 3 && g->n_file == 1);
    int64_t whole = 0;
    double real = 0;
    CHECK(gguf_real(&gguf_key(g, S("eps"))->v, 0, &real) && real == (double) 1e-5f);
    CHECK(gguf_int(&gguf_key(g, S("flag"))->v, 0, &whole) && whole == 1);
    CHECK(gguf_int(&gguf_key(g, S("numbers"))->v, 0, &whole) && whole == -1);
    CHECK(gguf_int(&gguf_key(g, S("numbers"))->v, 2, &whole) && whole == 1 << 30);
    CHECK(!gguf_int(&gguf_key(g, S("numbers"))->v, 3, &whole) && !gguf_int(&gguf_key(g, S("eps"))->v, 0, &whole));
    CHECK_STR(gguf_key(g, S("texts"))->v.str[2], "\xc3\xbc");
    CHECK(gguf_key(g, S("none"))->v.n == 0 && !gguf_key(g, S("other")));
    const GgufTensor *ta = gguf_tensor(g, S("a")), *tb = gguf_tensor(g, S("b")), *tc = gguf_tensor(g, S("c"));
    CHECK(ta->n_bytes == 204 && tb->n_bytes == 20 && tc->n_bytes == 16 && tc->n_dims == 4 && tc->ne[3] == 2);
    CHECK(memcmp(ta->data, data, 204) == 0 && memcmp(tb->data, data + 204, 20) == 0 &&
        memcmp(tc->data, data + 224, 16) == 0);
    gguf_close(g);
}

int main(void) {
    Arena *a = arena_new();
    uint32_t alignments[] = {1, 32, 4096, 65536};
    for (int i = 0; i < COUNT(alignments); i++) round_trip(a, alignments[i]);

    const char *path = str_fmt(a, "%s/bad.gguf", temp_dir()).p, *messages[5];
    messages[0] = str_fmt(a, "%s: general.alignment is 48; a power of two up to 65536 was expected", path).p;
    messages[1] = str_fmt(a, "%s: tensor 'a' has rows of 48 elements; type Q8_0 comes in blocks of 32", path).p;
    messages[2] = str_fmt(a, "%s: tensor 'a' has size 0 in dimension 0; sizes are at least 1 and fit a file", path).p;
    messages[3] = str_fmt(a, "%s: tensor 'a' got 4 of its 16 bytes", path).p;
    messages[4] = str_fmt(a, "%s: 8 bytes follow the last tensor's data", path).p;
    GgufWriter *w = gguf_create(path);
    int64_t bad[] = {48}, none[] = {0}, four[] = {4};
    char zero[32] = {0};
    CHECK_FAILS(gguf_put_u32(w, S("general.alignment"), 48), messages[0]);
    CHECK_FAILS(gguf_put_tensor(w, S("a"), type_named(S("Q8_0"))->id, 1, bad), messages[1]);
    CHECK_FAILS(gguf_put_tensor(w, S("a"), 0, 1, none), messages[2]);
    gguf_put_tensor(w, S("a"), 0, 1, four);
    gguf_begin_data(w);
    gguf_write_data(w, zero, 4);
    CHECK_FAILS(gguf_finish(w), messages[3]);
    CHECK_FAILS(gguf_write_data(w, zero, 20), messages[4]);
    gguf_finish(w);
    CHECK(!type_info(4) && !type_info(-1) && !type_named(S("Q4_2")) && type_info(12)->block == 256);
    arena_free(a);
    return check_done();
}
