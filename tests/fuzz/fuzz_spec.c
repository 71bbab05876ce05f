// Any text as a description of a small model: it is refused with one message, or gives a graph that obeys the laws of
// graph.h and whose text form can be printed. The model is one that synth makes of a description inside the program.
#define _GNU_SOURCE
#include "build.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *memory_file(int *fd) {
    static char paths[4][64];
    static int n;
    *fd = memfd_create("fuzz", 0);
    if (*fd < 0) abort();
    snprintf(paths[n], sizeof paths[n], "/proc/self/fd/%d", *fd);
    return paths[n++];
}

// Once: the models that descriptions are tried on.
static int make_models(Gguf **model) {
    static const char *const archs[] = {"llama", "gemma3"};
    for (int i = 0; i < COUNT(archs); i++) {
        Arena *a = arena_new();
        BuildOptions opt = {0};
        const char *path = str_z(a, str_fmt(a, "%s/%s.gguf", temp_dir(), archs[i]));
        synth(a, archs[i], path, NULL, 0, 1, &opt);
        model[i] = gguf_open(path);
        arena_free(a);
    }
    return COUNT(archs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static Gguf *model[4];
    static const char *path;
    static int n_model, fd;
    if (!n_model) {
        quiet = true;
        n_model = make_models(model);
        path = memory_file(&fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t) size) abort();
    for (int i = 0; i < n_model; i++) {
        Arena *a = arena_new();
        BuildOptions opt = {.arch_file = path};
        if (!setjmp(fail_guard()->jmp)) {
            Graph *g = graph_build(a, model[i], &opt);
            graph_check(g, false);
            Out o = out_new(a);
            graph_print(g, &o);
            if (!o.n) abort();
        } else if (!fail_guard()->message[0] || strstr(fail_guard()->message, "internal")) abort();
        fail_unguard();
        arena_free(a);
    }
    return 0;
}
