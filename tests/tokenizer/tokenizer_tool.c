// A tokenizer at the command line, for the scripts of this folder. In: a model or vocabulary file and texts. Out: ids.
//   tokenizer_tool MODEL ids FLAGS [PRE]      stdin to ids on one line; FLAGS: 1 special tokens added, 2 read
//   tokenizer_tool MODEL each FLAGS [PRE]     stdin: texts, each behind its length and a newline; a line of ids each
//   tokenizer_tool MODEL back -  [PRE]        the same texts; prints how many of them their ids do not print
//   tokenizer_tool MODEL golden FILE.inp      compares with FILE.out, and each text with what its ids print
//   tokenizer_tool MODEL text FLAGS           stdin: ids; stdout: what they print; FLAGS of detok_begin
//   tokenizer_tool MODEL split -      stdin: texts, each behind "PRE LENGTH\n"; the lengths of the pieces of each
//   tokenizer_tool MODEL eog -        ids that end generation; BOS, EOS, and whether each is added
//   tokenizer_tool MODEL time FILE [PRE]      processor seconds and MB/s, best of 3
#define _GNU_SOURCE 1 // memmem

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../compiler/tokenizer.h"
#include "../../runtime/tok_internal.h"

typedef struct {
    Arena *arena;
    Tokenizer t;
} Tool;

static int64_t encode(Tool *w, Str text, int flags, int32_t **ids) {
    size_t cap = tokenize_max_ids(&w->t, text.n), room = tokenize_scratch(&w->t, text.n);
    void *scratch = malloc(room);
    *ids = malloc(cap * sizeof **ids);
    int64_t n = tokenize(&w->t, text.p, text.n, flags, *ids, cap, scratch, room);
    free(scratch);
    if (n < 0) fail("tokenize gave %lld", (long long) n);
    return n;
}

static Str decode(Tool *w, const int32_t *ids, int64_t n, int flags) {
    Detok d;
    size_t room = detok_room(&w->t), at = 0, cap = 64;
    for (int64_t i = 0; i < n; i++) {
        size_t length;
        tok_bytes(&w->t, ids[i], &length);
        cap += length;
    }
    char *out_p = arena_alloc(w->arena, cap + room), *piece = arena_alloc(w->arena, room);
    detok_begin(&d, &w->t, flags);
    for (int64_t i = 0; i <= n; i++) {
        size_t got = i < n ? detok_put(&d, ids[i], piece) : detok_end(&d, piece);
        if (got > room || at + got > cap) fail("detok wrote %zu bytes, room is %zu", got, room);
        memcpy(out_p + at, piece, got);
        at += got;
    }
    return (Str){out_p, at};
}

static void print_ids(const int32_t *ids, int64_t n) {
    for (int64_t i = 0; i < n; i++) printf("%s%d", i ? " " : "", ids[i]);
    printf("\n");
}

static int each(Tool *w, int flags, bool back) {
    int lost = 0;
    Str all = file_read(w->arena, "-");
    for (size_t at = 0; at < all.n;) {
        size_t n = 0;
        while (all.p[at] != '\n') n = n * 10 + (size_t) (all.p[at++] - '0');
        int32_t *ids;
        Str text = {all.p + at + 1, n};
        int64_t count = encode(w, text, flags, &ids);
        if (!back) print_ids(ids, count);
        else lost += !str_eq(decode(w, ids, count, DETOK_WHOLE), text);
        free(ids);
        at += n + 1;
    }
    if (back) printf("%d\n", lost);
    return 0;
}

// The texts lie between lines __ggml_vocab_test__; the newlines around those lines are not theirs.
static int golden(Tool *w, const char *path) {
    const char *mark = "\n__ggml_vocab_test__\n";
    Str texts = file_read(w->arena, path);
    char *ids_path = (char *) str_z(w->arena, str(path));
    memcpy(ids_path + strlen(path) - 4, ".out", 4);
    char *line = (char *) str_z(w->arena, file_read(w->arena, ids_path));
    int n_text = 0, wrong = 0, lossy = 0;
    for (size_t at = 0; at < texts.n; n_text++) {
        const char *end = memmem(texts.p + at, texts.n - at, mark, strlen(mark));
        Str text = {texts.p + at, end ? (size_t) (end - texts.p) - at : texts.n - at};
        int32_t *ids;
        int64_t n = encode(w, text, 0, &ids);
        bool same = true;
        char *to = strchr(line, '\n'), *p = line;
        for (int64_t i = 0; i < n; i++) same &= p < to && strtol(p, &p, 10) == ids[i];
        while (p < to && (*p == ' ' || *p == '\r')) p++;
        if (!same || p != to) {
            printf("%s: text %d, %s\n  expected %.*s\n  got      ", path, n_text, str_show(w->arena, text),
                (int) (to - line), line);
            print_ids(ids, n);
            wrong++;
        }
        Str back = decode(w, ids, n, DETOK_WHOLE);
        if (!str_eq(back, text)) {
            printf("%s: text %d printed as %s\n", path, n_text, str_show(w->arena, back));
            lossy++;
        }
        free(ids);
        line = to + 1;
        at += text.n + strlen(mark);
    }
    printf("%s: %d texts, %d with wrong ids, %d printed otherwise\n", path, n_text, wrong, lossy);
    return wrong != 0;
}

static int timed(Tool *w, const char *path) {
    Str text = file_read(w->arena, path);
    double best = 1e9;
    int64_t n = 0;
    for (int i = 0; i < 3; i++) {
        int32_t *ids;
        clock_t from = clock(); // of this process alone: machines are shared
        n = encode(w, text, 0, &ids);
        double took = (double) (clock() - from) / CLOCKS_PER_SEC;
        if (took < best) best = took;
        free(ids);
    }
    printf("%zu bytes, %lld ids, %.4f s, %.1f MB/s\n", text.n, (long long) n, best, (double) text.n / best / 1e6);
    return 0;
}

// Names of pre-tokenizers come behind the length: "PRE LENGTH\n". Prints the lengths of the pieces.
static int split(Tool *w, const Gguf *g) {
    Str all = file_read(w->arena, "-"), pre = {0};
    for (size_t at = 0; at < all.n;) {
        size_t from = at, n = 0;
        while (all.p[at] != ' ') at++;
        Str name = {all.p + from, at - from};
        for (at++; all.p[at] != '\n'; at++) n = n * 10 + (size_t) (all.p[at] - '0');
        if (!str_eq(name, pre)) {
            TokenizerOptions o = {.pre = pre = name};
            Str blob = tokenizer_build(w->arena, g, &o);
            tokenizer_open(&w->t, blob.p, blob.n);
        }
        Splitter s;
        const uint8_t *piece;
        size_t length;
        split_begin(&s, &w->t, (const uint8_t *) all.p + at + 1, n);
        for (bool begin = true; split_next(&s, &piece, &length); begin = false)
            printf("%s%zu", begin ? "" : " ", length);
        printf("\n");
        at += n + 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 4) fail_usage("tokenizer_tool MODEL ids|each|back|split|golden|text|eog|time ARG [PRE]");
    quiet = true;
    static Tool w;
    static Gguf *g;
    w.arena = arena_new();
    g = gguf_open(argv[1]);
    TokenizerOptions o = {.pre = argc > 4 ? str(argv[4]) : (Str){0}};
    double from = now_seconds();
    Str blob = tokenizer_build(w.arena, g, &o);
    if (!tokenizer_open(&w.t, blob.p, blob.n)) fail("the file has no tokenizer");
    if (getenv("TOOL_VERBOSE")) fprintf(stderr, "blob %zu bytes, built in %.3f s\n", blob.n, now_seconds() - from);
    const char *mode = argv[2];
    if (!strcmp(mode, "each")) return each(&w, atoi(argv[3]), false);
    if (!strcmp(mode, "back")) return each(&w, 0, true);
    if (!strcmp(mode, "eog")) {
        for (int i = 0; i < tok_n_vocab(&w.t); i++)
            if (tok_is_eog(&w.t, i)) printf("%d ", i);
        printf("\nbos %d eos %d", tok_role(&w.t, TOK_BOS), tok_role(&w.t, TOK_EOS));
        printf(" add %d %d\n", tok_adds_bos(&w.t), tok_adds_eos(&w.t));
        return 0;
    }
    if (!strcmp(mode, "split")) return split(&w, g);
    if (!strcmp(mode, "golden")) return golden(&w, argv[3]);
    if (!strcmp(mode, "time")) return timed(&w, argv[3]);
    static int32_t *ids;
    Str in = file_read(w.arena, "-");
    if (!strcmp(mode, "ids")) {
        int64_t got = encode(&w, in, atoi(argv[3]), &ids);
        print_ids(ids, got);
        return 0;
    }
    int64_t n = 0;
    ids = arena_alloc(w.arena, in.n * 4 + 4);
    for (char *p = (char *) str_z(w.arena, in), *end; ids[n] = (int32_t) strtol(p, &end, 10), end != p; p = end) n++;
    Str text = decode(&w, ids, n, atoi(argv[3]));
    fwrite(text.p, 1, text.n, stdout);
    return 0;
}
