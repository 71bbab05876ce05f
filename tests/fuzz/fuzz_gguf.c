// Any bytes as a GGUF file: it is refused with one message, or everything that gguf.h promises of it is true.
#define _GNU_SOURCE
#include "gguf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; // keeps every read

static void require(bool ok) {
    if (!ok) abort();
}

static void read_value(const GgufValue *v, int depth) {
    int64_t whole;
    double real;
    require(depth <= 4);
    if (v->kind == GGUF_STR) require(utf8_valid(v->s.p, v->s.n));
    if (v->kind != GGUF_ARR) {
        sink += gguf_int(v, 0, &whole) + gguf_real(v, 0, &real);
        return;
    }
    for (uint64_t i = 0; i < v->n; i++) {
        if (v->elem == GGUF_STR) require(utf8_valid(v->str[i].p, v->str[i].n));
        else if (v->elem == GGUF_ARR) read_value(&v->arr[i], depth + 1);
        else require(gguf_int(v, i, &whole) || gguf_real(v, i, &real) || v->elem == GGUF_U64);
    }
    require(!gguf_int(v, v->n, &whole) && !gguf_real(v, v->n, &real));
}

static void read_tensor(const GgufTensor *t) {
    const TypeInfo *type = type_info(t->type);
    uint64_t n = 1;
    require(type && t->n_dims >= 1 && t->n_dims <= 4 && t->name.n > 0 && utf8_valid(t->name.p, t->name.n));
    for (int d = 0; d < 4; d++) {
        require(t->ne[d] >= 1);
        n *= (uint64_t) t->ne[d];
    }
    require(n == t->n_elems && n / (uint64_t) type->block * (uint64_t) type->bytes == t->n_bytes);
    for (uint64_t i = 0; i < t->n_bytes; i++) sink += t->data[i];
}

static void read_all(const char *path) {
    Gguf *g = gguf_open(path);
    for (int i = 0; i < g->n_key; i++) {
        require(gguf_key(g, g->key[i].key) == &g->key[i]);
        read_value(&g->key[i].v, 1);
    }
    for (int i = 0; i < g->n_tensor; i++) {
        require(gguf_tensor(g, g->tensor[i].name) == &g->tensor[i]);
        read_tensor(&g->tensor[i]);
    }
    gguf_close(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        require(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    require(ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t) size) == 0 && pwrite(fd, data, size, 0) == (ssize_t) size);
    if (!setjmp(fail_guard()->jmp)) read_all(path);
    else require(strstr(fail_guard()->message, "; ") != NULL || strstr(fail_guard()->message, "out of memory"));
    fail_unguard();
    return 0;
}
