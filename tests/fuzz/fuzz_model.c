// Any bytes as a model file, as far as a graph: what the reader lets pass, the description of its architecture refuses
// with one message, or makes a graph of that obeys the laws of graph.h. Keys of every kind and value, tensors of every
// shape.
#define _GNU_SOURCE
#include "build.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        quiet = true;
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t) size) abort();
    Gguf *volatile gguf = NULL;
    Arena *a = arena_new();
    BuildOptions opt = {0};
    if (!setjmp(fail_guard()->jmp)) {
        gguf = gguf_open(path);
        Graph *g = graph_build(a, gguf, &opt);
        graph_check(g, false);
        Out o = out_new(a);
        graph_print(g, &o);
    } else if (!fail_guard()->message[0] || strstr(fail_guard()->message, "internal")) abort();
    fail_unguard();
    if (gguf) gguf_close(gguf);
    arena_free(a);
    return 0;
}
