// The command embed: what an encoder makes of a text. In: tokens. Out: raw float32, one vector, or (--pool none) one
// for each token.
// How rows become one vector is compiled in when the model's file says it; --pool chooses otherwise, from the rows.
#define _GNU_SOURCE
#include "error.h"
#include "io.h"
#include "options.h"
#include "outfile.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { AS_COMPILED, NONE, MEAN, FIRST, LAST } PoolKind;

typedef struct {
    float *rows; // [n][width]
    int width;
    const ModelOutput *output; // where rows lie; NULL: they are the main result
} Collected;

static int keep_rows(void *context, Program *p) {
    Collected *c = context;
    size_t bytes = (size_t) c->width * sizeof(float);
    for (int i = 0; i < p->model.outs; i++) {
        const float *from = p->model.logits;
        if (c->output) from = (const float *) (const void *) (p->model.scratch + c->output->offset);
        int row = c->output && !c->output->wanted ? p->out[i] : i;
        memcpy(c->rows + (size_t) p->out_pos[i] * (size_t) c->width, from + (size_t) row * (size_t) c->width, bytes);
    }
    return 0;
}

static int pool_named(const char *name, PoolKind *pool) {
    static const char *const names[] = {[NONE] = "none", [MEAN] = "mean", [FIRST] = "first", [LAST] = "last"};
    *pool = AS_COMPILED;
    for (int i = NONE; name && i <= LAST; i++)
        if (!strcmp(name, names[i]) || (i == FIRST && !strcmp(name, "cls"))) *pool = (PoolKind) i;
    if (name && *pool == AS_COMPILED) {
        complain("--pool '%s': none, mean, first (or cls) or last is expected", name);
        return 2;
    }
    return 0;
}

// Where the rows are, one for each token. 0, or -1: this program gives none.
static int find_rows(const ModelInfo *info, Collected *c) {
    if (!strcmp(info->result, "rows")) {
        c->width = info->n_result;
        return 0;
    }
    for (int i = 0; i < info->n_output; i++)
        if (!strcmp(info->output[i].name, "rows")) {
            c->output = &info->output[i];
            c->width = c->output->width;
            return 0;
        }
    return complain("this program gives no rows to pool: its result is '%s'", info->result);
}

// One vector of the rows of n tokens, in place of the first.
static void pool_rows(Collected *c, int n, PoolKind pool) {
    float *to = c->rows;
    size_t width = (size_t) c->width;
    if (pool == LAST) memmove(to, c->rows + (size_t) (n - 1) * width, width * sizeof *to);
    if (pool != MEAN) return;
    for (size_t i = 0; i < width; i++) {
        double sum = 0;
        for (size_t r = 0; r < (size_t) n; r++) sum += c->rows[r * width + i];
        to[i] = (float) (sum / n);
    }
}

static void normalize(float *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double) x[i] * x[i];
    for (int i = 0; i < n && sum > 0; i++) x[i] = (float) (x[i] / sqrt(sum));
}

static int embed(Program *p, const Options *o, const int32_t *ids, int n, PoolKind pool) {
    Collected c = {.width = p->info->n_result};
    bool rows = pool != AS_COMPILED || !strcmp(p->info->result, "rows");
    int vectors = pool == NONE || (rows && pool == AS_COMPILED) ? n : 1;
    if (rows && find_rows(p->info, &c)) return -1;
    c.rows = calloc((size_t) n, (size_t) c.width * sizeof(float));
    uint8_t *want = calloc((size_t) n, 1);
    int result = c.rows && want ? program_append(p, ids, n) : complain("no memory for %d rows of %d", n, c.width);
    if (!result) memset(want, rows, (size_t) n), want[n - 1] = 1;
    if (!result) result = program_eval_rows(p, n, want, keep_rows, &c);
    if (!result) pool_rows(&c, n, rows ? pool : LAST);
    for (int i = 0; !result && o->normalize && i < vectors; i++)
        normalize(c.rows + (size_t) i * (size_t) c.width, c.width);
    OutFile f;
    size_t bytes = (size_t) vectors * (size_t) c.width * sizeof(float);
    if (!result) result = outfile_open(&f, o->output, bytes);
    if (!result && outfile_write(&f, c.rows, bytes)) outfile_abandon(&f), result = -1;
    else if (!result) result = outfile_commit(&f);
    free(c.rows);
    free(want);
    return result;
}

int cmd_embed(const Options *o) {
    Program p;
    PoolKind pool;
    int32_t *ids = NULL;
    int n = 0, result = pool_named(o->pool, &pool);
    if (result) return result;
    if (!o->output) {
        complain("embed needs -o OUT: the file to write");
        return 2;
    }
    if (!strcmp(model_info.result, "logits") && !model_info.n_output)
        return complain("this model gives logits, not embeddings; its file names no pooling");
    result = open_model(&p, o);
    if (!result) result = input_tokens(&p, o, true, false, &ids, &n);
    if (!result && !n) result = complain("the input is empty: at least one token is needed");
    if (!result) result = embed(&p, o, ids, n, pool);
    free(ids);
    return result;
}
