// Finds and maps the packed weights. In: the file this process runs from, or the one named at build time. Out: pointers
// into a read-only mapping; nothing is copied, the system reads pages as kernels touch them.
#define _GNU_SOURCE
#include "weights.h"
#include "error.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char self[] = "/proc/self/exe";

// The path of `file`: as it is when absolute, else beside the program.
static int beside_program(const char *file, char path[PATH_MAX]) {
    ssize_t n = readlink(self, path, PATH_MAX - 1);
    if (*file == '/' || n < 0) n = 0;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t) (slash - path) + 1 : 0;
    if (folder + strlen(file) >= PATH_MAX) return complain("the name of the weights file is too long: %s", file);
    strcpy(path + folder, file);
    return 0;
}

// Whether [at, at + n) lies before the trailer of a file of `size` bytes.
static int inside(uint64_t at, uint64_t n, uint64_t size) {
    return at <= size - sizeof(Trailer) && n <= size - sizeof(Trailer) - at;
}

static int check(const Trailer *t, const char *path, uint64_t size, uint64_t hash, uint64_t weight_bytes) {
    if (memcmp(t->magic, TRAILER_MAGIC, sizeof t->magic))
        return complain(
            "'%s' is cut off or was never finished: its last 64 bytes are no trailer of ggcc; build it again", path);
    if (t->version != TRAILER_VERSION || t->flags || t->zero)
        return complain("'%s' has a trailer of version %u, this program reads version %d; build it again", path,
            t->version, TRAILER_VERSION);
    if (t->model != hash)
        return complain("'%s' belongs to model %016llx, this program is of model %016llx; build both together", path,
            (unsigned long long) t->model, (unsigned long long) hash);
    if (t->weights_size != weight_bytes)
        return complain("'%s' has %llu bytes of weights, expected %llu; build it again", path,
            (unsigned long long) t->weights_size, (unsigned long long) weight_bytes);
    if (t->weights % WEIGHTS_ALIGN_IN_FILE || !inside(t->weights, t->weights_size, size) ||
        !inside(t->tokenizer, t->tokenizer_size, size))
        return complain(
            "'%s' is damaged: weights at %llu (%llu bytes) and tokenizer at %llu (%llu bytes) do not fit %llu bytes",
            path, (unsigned long long) t->weights, (unsigned long long) t->weights_size,
            (unsigned long long) t->tokenizer, (unsigned long long) t->tokenizer_size, (unsigned long long) size);
    return 0;
}

int weights_open(Weights *w, const char *file, uint64_t hash, uint64_t weight_bytes) {
    char path[PATH_MAX];
    struct stat st;
    memset(w, 0, sizeof *w);
    if (!file) strcpy(path, self);
    else if (beside_program(file, path)) return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        int error = errno;
        if (fd >= 0) close(fd);
        return complain("cannot open the weights in '%s': %s%s", path, strerror(error),
            file ? "; the program was built with --weights and needs that file" : "");
    }
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t) sizeof(Trailer)) {
        close(fd);
        return complain("'%s' holds no weights: it is no file of at least 64 bytes", path);
    }
    w->size = (uint64_t) st.st_size;
    void *p = mmap(NULL, (size_t) w->size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (p == MAP_FAILED)
        return complain("cannot map the %.1f MB of '%s': %s", (double) w->size / 1e6, path, strerror(error));
    w->base = p;
    Trailer t;
    memcpy(&t, w->base + w->size - sizeof t, sizeof t);
    if (check(&t, path, w->size, hash, weight_bytes)) {
        weights_close(w);
        return -1;
    }
    w->weights = w->base + t.weights;
    w->tokenizer = t.tokenizer_size ? w->base + t.tokenizer : NULL;
    w->tokenizer_size = t.tokenizer_size;
    return 0;
}

void weights_close(Weights *w) {
    if (w->base) munmap((void *) (uintptr_t) w->base, (size_t) w->size);
    memset(w, 0, sizeof *w);
}
