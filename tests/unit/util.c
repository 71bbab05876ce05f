// compiler/util.c: memory, strings, output, files, failing.
#define _GNU_SOURCE
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void memory(void) {
    Arena *a = arena_new();
    size_t sizes[] = {0, 1, 15, 16, 17, 4000, 70000, 9 << 20};
    bool zero = true, aligned = true;
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < COUNT(sizes) - (round > 0); i++) {
            unsigned char *p = arena_alloc(a, sizes[i]);
            aligned &= (uintptr_t) p % 16 == 0;
            for (size_t b = 0; b < sizes[i]; b++) zero &= p[b] == 0;
            memset(p, 0xFF, sizes[i]);
        }
    CHECK(zero);
    CHECK(aligned);
    int *list = NULL, n = 0, cap = 0, right = 0;
    for (int i = 0; i < 1000; i++) *PUSH(a, list, n, cap) = i;
    for (int i = 0; i < n; i++) right += list[i] == i;
    CHECK(n == 1000 && right == 1000 && cap >= 1000);
    CHECK_FAILS(
        arena_alloc_n(a, SIZE_MAX / 2, 8), "out of memory: 9223372036854775807 elements of 8 bytes were asked for");
    arena_free(a);
}

static void strings(Arena *a) {
    CHECK(str(NULL).n == 0 && str_eq(str(NULL), S("")));
    CHECK(str_eq(S("a\0b"), S("a\0b")) && !str_eq(S("a\0b"), S("a\0c")));
    CHECK(str_starts(S("split.no"), "split.") && !str_starts(S("spl"), "split.") && str_ends(S("x.gguf"), ".gguf") &&
        !str_ends(S("f"), "gf"));
    CHECK(str_cmp(S("a"), S("b")) < 0 && str_cmp(S("ab"), S("a")) > 0 && str_cmp(S("x"), S("x")) == 0 &&
        str_cmp(S("\xff"), S("a")) > 0);
    CHECK(str_dup(a, S("abc")).p[3] == 0);
    CHECK_STR(str_fmt(a, "%d-%s", 7, "x"), "7-x");
    CHECK(edit_distance(S("kitten"), S("sitting")) == 3 && edit_distance(S(""), S("abc")) == 3 &&
        edit_distance(S("same"), S("same")) == 0);
    CHECK(hash64("abc", 3, 1) != hash64("abd", 3, 1) && hash64("abc", 3, 1) != hash64("abc", 3, 2) &&
        hash64("a\0", 2, 1) != hash64("a", 1, 1));
}

static void utf8(void) {
    static const char *good[] = {"", "plain ascii, long enough for words", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
        "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
        "1234567\xc3\xa9 1234567\xc3\xa9"};
    static const char *bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xe2\x82",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff", "12345678\xe2\x82", "1234567812345678\x80"};
    for (int i = 0; i < COUNT(good); i++) CHECK(utf8_valid(good[i], strlen(good[i])));
    for (int i = 0; i < COUNT(bad); i++) CHECK(!utf8_valid(bad[i], strlen(bad[i])));
}

static void escapes(Arena *a) {
    CHECK_STR(str(str_show(a, S("a'b\"\\\n\t\x01\x7f\xff"))), "a\\'b\\\"\\\\\\n\\t\\x01\\x7f\\xff");
    char many[500];
    for (int fill = 0; fill < 2; fill++) {
        memset(many, fill ? '\n' : 'x', sizeof many);
        for (size_t n = 0; n < sizeof many; n++) CHECK(strlen(str_show(a, (Str){many, n})) <= 80);
    }
    CHECK_STR(str_c(a,
                  S("a\"b\\c?\?/*'\n\xff\0"
                    "9")),
        "\"a\\042b\\134c\\077\\077\\057\\052'\\n\\377\\0009\"");
}

static void output(Arena *a) {
    Out o = out_new(a);
    out(&o, "if (%s) {\n", "x");
    o.indent++;
    out(&o, "a;\n\n");
    out_str(&o, S("b"));
    out(&o, ";\n");
    o.indent--;
    out(&o, "}\n");
    CHECK_STR(out_text(&o), "if (x) {\n    a;\n\n    b;\n}\n");
    char *large = arena_alloc(a, 100001);
    memset(large, 'y', 100000);
    out(&o, "%s", large);
    CHECK(out_text(&o).n == 100000 + strlen("if (x) {\n    a;\n\n    b;\n}\n"));
    Out none = out_new(a);
    CHECK(out_text(&none).n == 0);
}

static bool exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

static void files(Arena *a) {
    const char *dir = temp_dir(), *path = str_fmt(a, "%s/file", dir).p;
    CHECK(exists(dir));
    char *data = arena_alloc(a, 1 << 20);
    for (int i = 0; i < 1 << 20; i++) data[i] = (char) (i * 7 + i / 256);
    FileOut *f = file_create(path);
    size_t n = 0;
    for (size_t piece = 1; n < 1 << 20; n += piece, piece = piece * 3 % 300007) {
        if (piece > (1 << 20) - n) piece = (1 << 20) - n;
        file_write(f, data + n, piece);
    }
    const char *temp = str_z(a, str(file_temp_path(f)));
    CHECK(file_pos(f) == 1 << 20 && !exists(path) && exists(temp));
    file_commit(f, true);
    CHECK(exists(path) && !exists(temp) && access(path, X_OK) == 0);
    Str map = file_map(path), copy = file_read(a, path);
    CHECK(map.n == 1 << 20 && memcmp(map.p, data, map.n) == 0 && str_eq(map, copy));
    file_unmap(map);
    file_commit(file_create(path), false);
    CHECK(file_map(path).n == 0 && file_read(a, path).n == 0 && access(path, X_OK) != 0);
    FileOut *device = file_create("/dev/null");
    file_write(device, "nothing", 7);
    file_commit(device, true);
    struct stat st;
    CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    CHECK_FAILS(file_map("/no/such/file"), "/no/such/file: cannot be opened: No such file or directory");
    CHECK_FAILS(
        file_map("/dev/null"), "/dev/null: is not a regular file; it is mapped, so a pipe or device will not do");
    CHECK_FAILS(file_create("/no/such/file"), "/no/such/file: cannot be written: No such file or directory");
}

// A child that fails, or that a signal ends, leaves nothing behind.
static void leftovers(Arena *a) {
    for (int how = 0; how < 3; how++) {
        const char *path = str_fmt(a, "%s/half-%d", temp_dir(), how).p;
        int pipe_fd[2];
        char told[1024] = "";
        CHECK(pipe(pipe_fd) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            if (!freopen("/dev/null", "w", stderr)) _exit(9);
            FileOut *f = file_create(path);
            file_write(f, "half", 4);
            if (write(pipe_fd[1], file_temp_path(f), strlen(file_temp_path(f))) < 0) _exit(9);
            if (how == 0) fail("on purpose");
            if (how == 1) fail_usage("on purpose");
            raise(SIGTERM);
        }
        int status = 0;
        close(pipe_fd[1]);
        waitpid(pid, &status, 0);
        CHECK(read(pipe_fd[0], told, sizeof told - 1) > 0);
        close(pipe_fd[0]);
        CHECK(strncmp(told, path, strlen(path)) == 0 && !exists(told) && !exists(path));
        CHECK(how == 2 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM
                       : WIFEXITED(status) && WEXITSTATUS(status) == how + 1);
        CHECK(exists(temp_dir())); // the parent's own
    }
}

static void failing(void) {
    Loc loc = {"x.arch", S("one\ntwo = three\nfour\n"), 10};
    CHECK_FAILS(fail_at(loc, "no %s", "three"), "x.arch:2:7: no three\n  two = three\n        ^");
    loc.pos = 1000;
    CHECK_FAILS(fail_at(loc, "end"), "x.arch:4:1: end\n  \n  ^");
    Loc wide = {"w",
        S("\t\x1b[2J..................................................................................................."
          ".........X......"),
        113};
    CHECK_FAILS(fail_at(wide, "here"),
        "w:1:114: here\n  ............................................................X......\n"
        "                                                              ^");
    if (!setjmp(fail_guard()->jmp)) fail_check("status");
    CHECK(fail_guard()->status == 3);
    fail_unguard();
}

int main(void) {
    Arena *a = arena_new();
    memory();
    strings(a);
    utf8();
    escapes(a);
    output(a);
    files(a);
    leftovers(a);
    failing();
    arena_free(a);
    return check_done();
}
