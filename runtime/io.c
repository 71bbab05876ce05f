// Input and output of the commands. In: paths. Out: bytes, ids; and standard output with its failures noticed.
#define _GNU_SOURCE
#include "io.h"
#include "error.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int read_file(const char *path, char **bytes, size_t *n) {
    bool std = !strcmp(path, "-");
    FILE *f = std ? stdin : fopen(path, "rb");
    struct stat st;
    size_t cap = 0, size = 0;
    char *p = NULL;
    *bytes = NULL, *n = 0;
    if (!f) return complain("cannot read '%s': %s", path, strerror(errno));
    if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        cap = (size_t) st.st_size + 1; // one more, to see the end without growing
    for (;;) {
        if (size == cap || !p) {
            cap = p ? 2 * cap : cap ? cap : 65536;
            char *more = realloc(p, cap);
            if (!more) {
                free(p);
                if (!std) fclose(f);
                return complain("no memory for '%s': %zu bytes are needed", path, cap);
            }
            p = more;
        }
        size_t got = fread(p + size, 1, cap - size, f);
        size += got;
        if (!got) break;
    }
    int error = ferror(f) ? errno : 0;
    if (!std) fclose(f);
    if (error) {
        free(p);
        return complain("cannot read '%s': %s", path, strerror(error));
    }
    *bytes = p, *n = size;
    return 0;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int parse_ids(const char *name, const char *text, size_t size, int n_vocab, int32_t **ids, int *n) {
    size_t count = 0, line = 1;
    for (size_t i = 0; i < size; i++) count += !is_space(text[i]) && (i == 0 || is_space(text[i - 1]));
    if (count > 0x7fffffff) return complain("'%s' holds %zu ids, more than any context", name, count);
    *n = 0;
    *ids = malloc((count + 1) * sizeof **ids);
    if (!*ids) return complain("no memory for the %zu ids of '%s'", count, name);
    for (size_t i = 0; i < size; i++) {
        line += text[i] == '\n';
        if (is_space(text[i])) continue;
        size_t begin = i;
        int64_t value = 0;
        for (; i < size && text[i] >= '0' && text[i] <= '9'; i++)
            if (value < INT32_MAX) value = 10 * value + (text[i] - '0'); // more digits change nothing: out of range
        if (i == begin || (i < size && !is_space(text[i]))) {
            free(*ids), *ids = NULL;
            return complain(
                "'%s' line %zu: an id file holds decimal numbers separated by white space, found byte 0x%02x", name,
                line, (unsigned char) text[i]);
        }
        if (value >= n_vocab) {
            free(*ids), *ids = NULL;
            return complain("'%s' line %zu: id %.*s is out of range, the vocabulary has %d", name, line,
                i - begin < 24 ? (int) (i - begin) : 24, text + begin, n_vocab);
        }
        (*ids)[(*n)++] = (int32_t) value;
        i--;
    }
    return 0;
}

int read_ids(const char *path, int n_vocab, int32_t **ids, int *n) {
    char *text;
    size_t size;
    *ids = NULL, *n = 0;
    if (read_file(path, &text, &size)) return -1;
    int result = parse_ids(path, text, size, n_vocab, ids, n);
    free(text);
    return result;
}

// ---- standard output ----

static int out_failed(void) {
    if (errno == EPIPE) return complain("whoever read the output has closed it");
    return complain("cannot write to standard output: %s", strerror(errno));
}

int out_write(const void *p, size_t n) {
    return fwrite(p, 1, n, stdout) == n ? 0 : out_failed();
}

int out_print(const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vprintf(format, args);
    va_end(args);
    return n >= 0 ? 0 : out_failed();
}

int out_flush(void) {
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : out_failed();
}

// Bytes of a well-formed UTF-8 character at p, 0: none.
static int utf8_length(const unsigned char *p) {
    static const unsigned least[5] = {0, 0, 0x80, 0x800, 0x10000};
    int n = *p < 0x80 ? 1 : *p >= 0xF0 ? 4 : *p >= 0xE0 ? 3 : 2;
    if (n == 1) return 1;
    if (*p < 0xC2 || *p > 0xF4) return 0;
    unsigned c = *p & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    return c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? 0 : n;
}

int out_string(const char *z) {
    int bad = out_write("\"", 1);
    for (const unsigned char *p = (const unsigned char *) z; *p && !bad;) {
        int n = utf8_length(p);
        if (!n) bad = out_print("\\ufffd"), n = 1;
        else if (*p == '"' || *p == '\\') bad = out_print("\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f) bad = out_print("\\u%04x", *p);
        else bad = out_write(p, (size_t) n);
        p += n;
    }
    return bad ? bad : out_write("\"", 1);
}

int out_number(double x) {
    return isfinite(x) ? out_print("%.9g", x) : out_print("null");
}
