// The commands logits and perplexity: one pass over a text from an empty state. In: tokens. Out: a file of chosen rows
// of logits, written as they are computed; or how well each token was predicted.
#define _GNU_SOURCE
#include "error.h"
#include "io.h"
#include "options.h"
#include "outfile.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- logits ----

typedef struct {
    int pos, row; // row of the file
} Wanted;

typedef struct {
    OutFile file;
    Wanted *wanted; // by position, then by row
    int n, done;
} Rows;

static int by_position(const void *a, const void *b) {
    const Wanted *x = a, *y = b;
    return x->pos != y->pos ? (x->pos < y->pos ? -1 : 1) : (x->row > y->row) - (x->row < y->row);
}

// The positions in `list` ("0,5,5,2"), or all n.
static int parse_positions(Rows *r, const char *list, int n) {
    size_t count = (size_t) n;
    if (list) {
        count = 1;
        for (const char *p = list; *p; p++) count += *p == ',';
    }
    r->wanted = malloc(count * sizeof *r->wanted);
    if (!r->wanted) return complain("no memory for %zu positions", count);
    r->n = 0;
    for (const char *p = list; list; p++) {
        char number[16];
        size_t length = strcspn(p, ",");
        int pos = -1;
        if (length && length < sizeof number) {
            memcpy(number, p, length);
            number[length] = '\0';
            if (parse_int(number, 0, INT32_MAX, &pos)) pos = -1;
        }
        if (pos < 0) {
            complain("--at '%s': positions separated by commas are expected, like 0,5,7", list);
            return 2;
        }
        if (pos >= n)
            return complain("--at: position %d is out of range, the text has %d tokens (0 to %d)", pos, n, n - 1);
        r->wanted[r->n] = (Wanted){pos, r->n};
        r->n++;
        p += length;
        if (!*p) break;
    }
    for (; !list && r->n < n; r->n++) r->wanted[r->n] = (Wanted){r->n, r->n};
    qsort(r->wanted, (size_t) r->n, sizeof *r->wanted, by_position);
    return 0;
}

static int write_rows(void *context, Program *p) {
    Rows *r = context;
    size_t row_bytes = (size_t) p->info->n_vocab * sizeof(float);
    for (int i = 0; i < p->model.outs; i++) {
        const float *logits = p->model.logits + (size_t) i * (size_t) p->info->n_vocab;
        for (; r->done < r->n && r->wanted[r->done].pos == p->out_pos[i]; r->done++) {
            uint64_t at = (uint64_t) r->wanted[r->done].row * row_bytes;
            if (r->file.direct ? outfile_write(&r->file, logits, row_bytes)
                               : outfile_write_at(&r->file, logits, row_bytes, at))
                return -1;
        }
    }
    return 0;
}

static int logits(Program *p, const Options *o, Rows *r, const int32_t *ids, int n) {
    uint8_t *want = calloc((size_t) n, 1);
    int result = want ? program_append(p, ids, n) : complain("no memory for %d positions", n);
    if (!result) result = parse_positions(r, o->at, n);
    if (!result)
        result = outfile_open(&r->file, o->output, (uint64_t) r->n * (uint64_t) p->info->n_vocab * sizeof(float));
    if (!result) {
        int end = 0; // what lies behind the last wanted position changes nothing, unless a text is read as a whole
        for (int i = 0; i < r->n; i++) {
            want[r->wanted[i].pos] = 1;
            end = r->wanted[i].pos + 1;
        }
        if (p->info->whole) end = n;
        for (int i = 1; r->file.direct && i < r->n && !result; i++)
            if (r->wanted[i].row < r->wanted[i - 1].row)
                result =
                    complain("'%s' is no file: rows can only be written there in order of position", r->file.target);
        if (!result) result = program_eval_rows(p, end, want, write_rows, r);
        if (!result) result = outfile_commit(&r->file);
        else outfile_abandon(&r->file);
    }
    free(want);
    return result;
}

int cmd_logits(const Options *o) {
    Program p;
    Rows rows = {.file.fd = -1};
    int32_t *ids = NULL;
    int n = 0;
    if (!o->output) {
        complain("logits needs -o OUT: the file to write");
        return 2;
    }
    int result = open_model(&p, o);
    if (!result) result = input_tokens(&p, o, true, false, &ids, &n);
    if (!result && !n) result = complain("the input is empty: at least one token is needed");
    if (!result) result = logits(&p, o, &rows, ids, n);
    free(rows.wanted);
    free(ids);
    return result;
}

// ---- perplexity ----

typedef struct {
    double *nll; // of the token after each position
    const int32_t *ids;
} Predicted;

// -log of the probability that softmax(x) gives to `id`, in double.
static double surprise(const float *x, int n, int32_t id) {
    float max = -INFINITY;
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double) x[i] - max);
    return log(sum) + max - x[id];
}

typedef struct {
    const Model *model;
    const Predicted *predicted;
    int64_t outs;
} PredictedArg;

static void predict(const void *arg, Worker *w) {
    const PredictedArg *a = arg;
    const Model *m = a->model;
    int n_vocab = model_info.n_vocab, outs = (int) a->outs;
    PIECES(w, outs, i) {
        int pos = m->out_pos[i];
        a->predicted->nll[pos] =
            surprise(m->logits + (size_t) i * (size_t) n_vocab, n_vocab, a->predicted->ids[pos + 1]);
    }
}

static int take_rows(void *context, Program *p) {
    PredictedArg arg = {&p->model, context, p->model.outs};
    team_run(p->team, predict, &arg, sizeof arg);
    return 0;
}

static int perplexity(Program *p, const int32_t *ids, int n) {
    Predicted predicted = {malloc((size_t) n * sizeof(double)), ids};
    uint8_t *want = malloc((size_t) n);
    if (!want || !predicted.nll) {
        free(want), free(predicted.nll);
        return complain("no memory for %d positions", n);
    }
    memset(want, 1, (size_t) n);
    int result = program_append(p, ids, n) ? -1 : program_eval_rows(p, n - 1, want, take_rows, &predicted);
    double sum = 0;
    for (int i = 0; i < n - 1 && !result; i++) // in order of position: the same sum for any batch and threads
        sum += predicted.nll[i];
    double mean = sum / (n - 1);
    if (!result)
        result = out_print("{\"tokens\": %d, \"nll\": ", n) || out_number(mean) || out_print(", \"ppl\": ") ||
                out_number(exp(mean)) || out_print("}\n")
            ? -1
            : 0;
    free(want);
    free(predicted.nll);
    return result;
}

int cmd_perplexity(const Options *o) {
    Program p;
    int32_t *ids = NULL;
    int n = 0;
    int result = open_model(&p, o);
    if (!result) result = input_tokens(&p, o, true, false, &ids, &n);
    if (!result && n < 2)
        result = complain("the text has %d token%s: at least 2 are needed, each is predicted from those before it", n,
            n == 1 ? "" : "s");
    if (!result) result = perplexity(&p, ids, n);
    free(ids);
    return result;
}
