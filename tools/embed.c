// Runs during the build: embed LIST OUT. In: a list of files, one a line, or NAME=FILE. Out: one C file that holds
// their bytes, for
// compiler/embed.h. String literals, because compilers read them far faster than lists of numbers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *path) {
    fprintf(stderr, "error: embed: %s: %s\n", path, what);
    exit(1);
}

// Returns the number of bytes.
static long embed(const char *path, int number, FILE *out) {
    FILE *in = fopen(path, "rb");
    if (!in) die("cannot be opened", path);
    fprintf(out, "static const char file%d[] =\n    \"", number);
    long size = 0;
    for (int c, col = 0; (c = getc(in)) != EOF; size++) {
        if (c == '\n') fputs("\\n", out);
        else if (c < 0x20 || c >= 0x7F || strchr("\"\\?", c)) fprintf(out, "\\%03o", c);
        else putc(c, out);
        if (c == '\n' || ++col == 4000) {
            fputs("\"\n    \"", out);
            col = 0;
        }
    }
    fputs("\";\n", out);
    if (ferror(in)) die("cannot be read", path);
    fclose(in);
    return size;
}

int main(int argc, char **argv) {
    if (argc != 3) die("usage: embed LIST OUT", "command line");
    FILE *list = fopen(argv[1], "r"), *out = fopen(argv[2], "w");
    if (!list) die("cannot be opened", argv[1]);
    if (!out) die("cannot be written", argv[2]);
    fprintf(out, "// Written by tools/embed.c during the build.\n#include \"embed.h\"\n\n");

    static char path[4096][512];
    static long size[4096];
    int n = 0;
    while (n < 4096 && fgets(path[n], sizeof path[n], list)) {
        path[n][strcspn(path[n], "\n")] = 0;
        if (!path[n][0]) continue;
        char *equals = strchr(path[n], '=');
        size[n] = embed(equals ? equals + 1 : path[n], n, out);
        if (equals) *equals = 0;
        n++;
    }
    fprintf(out, "\nconst Embedded embedded[] = {\n");
    for (int i = 0; i < n; i++) fprintf(out, "    {\"%s\", file%d, %ld},\n", path[i], i, size[i]);
    fprintf(out, "    {0, 0, 0},\n};\nconst int n_embedded = %d;\n", n);
    fclose(list);
    if (fclose(out) != 0) die("cannot be written", argv[2]);
    return 0;
}
