// Tokenize, detokenize and logits from the model file itself. In: text or ids. Out: ids, text, values.
// The tokenizer is the program's own code (runtime/tokenizer.h) on tables made in memory.
#include "text_commands.h"
#include "interp.h"
#include "../runtime/tokenizer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static Tokenizer open_tokenizer(Arena *a, const char *model, const Gguf *g, const TokenizerOptions *opt) {
    Str blob = tokenizer_build(a, g, opt);
    Tokenizer t;
    if (!blob.n) fail("%s has no tokenizer (tokenizer.ggml.model is absent or none); use --ids with token ids", model);
    if (!tokenizer_open(&t, blob.p, blob.n)) fail("internal: the tokenizer's tables do not open");
    return t;
}

static Str read_text(Arena *a, const TextInput *in) {
    int given = !!in->prompt + !!in->file + !!in->ids;
    if (given != 1) fail_usage("give one of -p TEXT, -f PATH%s", in->ids ? ", --ids PATH" : "");
    return in->prompt ? str(in->prompt) : file_read(a, in->file);
}

// Decimal numbers separated by white space.
static int32_t *read_ids(Arena *a, const char *path, int *n) {
    Str text = file_read(a, path);
    int32_t *ids = NULL;
    int cap = 0;
    *n = 0;
    for (size_t i = 0; i < text.n;) {
        if (strchr(" \t\r\n\v\f", text.p[i]) && text.p[i]) {
            i++;
            continue;
        }
        int64_t v = 0;
        size_t start = i;
        while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9' && v <= INT32_MAX) v = v * 10 + (text.p[i++] - '0');
        bool ends = i == text.n || (text.p[i] && strchr(" \t\r\n\v\f", text.p[i]));
        if (i == start || !ends || v > INT32_MAX)
            fail("%s: byte %zu begins no token id: decimal numbers separated by white space are needed", path, start);
        if (*n == INT_MAX - 1) fail("%s: too many ids", path);
        *PUSH(a, ids, *n, cap) = (int32_t) v;
    }
    return ids;
}

static int32_t *encode(Arena *a, const Tokenizer *t, Str text, const TextInput *in, int *n) {
    int flags = (in->no_special ? 0 : TOK_ADD_SPECIAL) | (in->parse_special ? TOK_PARSE_SPECIAL : 0);
    size_t cap = tokenize_max_ids(t, text.n), scratch = tokenize_scratch(t, text.n);
    int32_t *ids = NEWN(a, int32_t, cap + 1);
    int64_t got = tokenize(t, text.p, text.n, flags, ids, cap, arena_alloc(a, scratch), scratch);
    if (got < 0) fail("the text has %zu bytes, more than the tokenizer takes at once", text.n);
    *n = (int) got;
    return ids;
}

int text_tokenize(const char *model, const TextInput *in, const TokenizerOptions *opt) {
    Arena *a = arena_new();
    Str text = read_text(a, in);
    Tokenizer t = open_tokenizer(a, model, gguf_open(model), opt);
    int n;
    int32_t *ids = encode(a, &t, text, in, &n);
    for (int i = 0; i < n; i++) printf("%d\n", ids[i]);
    return 0;
}

int text_detokenize(const char *model, const TextInput *in, const TokenizerOptions *opt) {
    Arena *a = arena_new();
    if (!in->file) fail_usage("detokenize needs -f PATH: a file of ids");
    int n;
    int32_t *ids = read_ids(a, in->file, &n);
    Tokenizer t = open_tokenizer(a, model, gguf_open(model), opt);
    char *buf = arena_alloc(a, detok_room(&t) + 1);
    Detok d;
    detok_begin(&d, &t, DETOK_WHOLE | DETOK_SPECIAL);
    for (int i = 0; i < n; i++) {
        if (ids[i] >= tok_n_vocab(&t)) fail("id %d: the vocabulary has %d tokens", ids[i], tok_n_vocab(&t));
        fwrite(buf, 1, detok_put(&d, ids[i], buf), stdout);
    }
    fwrite(buf, 1, detok_end(&d, buf), stdout);
    return 0;
}

static int *read_at(Arena *a, const char *at, int n_ids, int *n) {
    int *list = NULL, cap = 0;
    *n = 0;
    for (const char *p = at; *p;) {
        char *end;
        errno = 0;
        long v = strtol(p, &end, 10);
        if (end == p || errno || v < 0 || v >= n_ids || (*end && *end != ','))
            fail("--at %s: positions from 0 to %d, separated by commas, are needed", at, n_ids - 1);
        *PUSH(a, list, *n, cap) = (int) v;
        p = *end ? end + 1 : end;
    }
    return list;
}

int text_logits(const char *model, const TextInput *in, const char *at, const char *out_path, int threads,
    const CompileOptions *opt) {
    Arena *a = arena_new();
    int n, n_at = -1;
    int32_t *ids;
    refuse_same_file(out_path, model, "the model");
    Compilation c = compile_graph(a, model, opt);
    if (in->ids && !in->prompt && !in->file) {
        ids = read_ids(a, in->ids, &n);
    } else {
        Tokenizer t = open_tokenizer(a, model, c.gguf, &opt->tokenizer);
        ids = encode(a, &t, read_text(a, in), in, &n);
    }
    if (n == 0) fail("the input is empty: at least one token is needed");
    if (n > c.graph->n_ctx)
        fail("%d tokens are more than the context of %lld; --ctx N makes it longer", n, (long long) c.graph->n_ctx);
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= c.graph->n_vocab)
            fail("id %d: the vocabulary has %lld tokens", ids[i], (long long) c.graph->n_vocab);
    int *list = at ? read_at(a, at, n, &n_at) : NULL;
    interp_logits(a, c.graph, ids, n, list, n_at, out_path, threads);
    return 0;
}
