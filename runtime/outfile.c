// Writes a file beside its target and renames it. In: a path and how many bytes will come. Out: the file, or nothing.
#define _GNU_SOURCE
#include "outfile.h"
#include "error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

// Room for `bytes` on the disk of f->beside.
static int check_room(const OutFile *f, uint64_t bytes) {
    struct statvfs fs;
    if (fstatvfs(f->fd, &fs) || !fs.f_blocks) // some file systems do not say
        return 0;
    uint64_t room = (uint64_t) fs.f_bavail * fs.f_frsize;
    if (bytes > room)
        return complain(
            "'%s' needs %.1f MB and its disk has %.1f MB left", f->target, (double) bytes / 1e6, (double) room / 1e6);
    return 0;
}

int outfile_open(OutFile *f, const char *path, uint64_t bytes) {
    struct stat st;
    f->fd = -1, f->beside[0] = '\0', f->direct = false;
    if (strlen(path) >= sizeof f->target || !*path)
        return complain("the name of the file to write is %s", *path ? "too long" : "empty");
    strcpy(f->target, path);
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) return complain("cannot write '%s': it is a folder", path);
        f->direct = !S_ISREG(st.st_mode);
        struct stat self;
        if (stat("/proc/self/exe", &self) == 0 && self.st_dev == st.st_dev && self.st_ino == st.st_ino)
            return complain("cannot write '%s': it is this program itself; give another name", path);
        char real[PATH_MAX];
        if (!f->direct && realpath(path, real)) // a link keeps its place, what it points to is replaced
            strcpy(f->target, real);
    }
    if (!f->direct) snprintf(f->beside, sizeof f->beside, "%s.%ld.part", f->target, (long) getpid());
    f->fd =
        f->direct ? open(path, O_WRONLY | O_CLOEXEC) : open(f->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->fd < 0) {
        int error = errno;
        f->beside[0] = '\0';
        return complain("cannot write '%s': %s", path, strerror(error));
    }
    if (!f->direct && check_room(f, bytes)) {
        outfile_abandon(f);
        return -1;
    }
    return 0;
}

int outfile_write(OutFile *f, const void *p, size_t n) {
    for (const char *c = p; n > 0;) {
        ssize_t got = write(f->fd, c, n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return complain("cannot write '%s': %s", f->target, strerror(errno));
        c += got, n -= (size_t) got;
    }
    return 0;
}

int outfile_write_at(OutFile *f, const void *p, size_t n, uint64_t offset) {
    for (const char *c = p; n > 0;) {
        ssize_t got = pwrite(f->fd, c, n, (off_t) offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return complain("cannot write '%s': %s", f->target, strerror(errno));
        c += got, n -= (size_t) got, offset += (uint64_t) got;
    }
    return 0;
}

int outfile_commit(OutFile *f) {
    int closed = close(f->fd);
    f->fd = -1;
    if (closed || (!f->direct && rename(f->beside, f->target))) {
        complain("cannot write '%s': %s", f->target, strerror(errno));
        outfile_abandon(f);
        return -1;
    }
    f->beside[0] = '\0';
    return 0;
}

void outfile_abandon(OutFile *f) {
    if (f->fd >= 0) close(f->fd);
    if (f->beside[0]) unlink(f->beside);
    f->fd = -1, f->beside[0] = '\0';
}
