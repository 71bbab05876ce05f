// The files that ggcc carries inside itself: templates/, runtime/ and arch-specs/, as they stood when it was built.
// Written by tools/embed.c during the build, sorted by path.
#ifndef EMBED_H
#define EMBED_H

#include <stddef.h>

typedef struct {
    const char *path; // from the root of the sources: "templates/c/matmul.c"
    const char *data; // a NUL that `size` does not count stands behind it
    size_t size;
} Embedded;

extern const Embedded embedded[];
extern const int n_embedded;

#endif
