// A file that appears whole or not at all: written beside its target and renamed. Devices and pipes are written
// directly.
#ifndef OUTFILE_H
#define OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int fd;
    bool direct; // the target is a device or a pipe: in order only, nothing to rename
    char target[PATH_MAX], beside[PATH_MAX + 32];
} OutFile;

// bytes: what will be written; compared with the room on the disk. All return 0, or -1: complaint().
int outfile_open(OutFile *f, const char *path, uint64_t bytes);
int outfile_write(OutFile *f, const void *p, size_t n);
int outfile_write_at(OutFile *f, const void *p, size_t n, uint64_t offset); // not when direct
int outfile_commit(OutFile *f);
void outfile_abandon(OutFile *f); // after a failure; leaves nothing

#endif
