// The command rerank: how well a document answers a query. In: two texts. Out: the scores of the model's head, one a
// line. The pair is written as encoders are trained on it: BOS query EOS SEP document EOS, or BOS query SEP document
// SEP where texts end with SEP. For a model that wants a prompt around the pair there is `embed`.
#define _GNU_SOURCE
#include "error.h"
#include "io.h"
#include "options.h"
#include <stdlib.h>
#include <string.h>

static int print_scores(void *context, Program *p) {
    const bool *json = context;
    int result = *json ? out_print("{\"scores\": [") : 0, n = p->info->n_result;
    const float *score = p->model.logits + (size_t) (p->model.outs - 1) * (size_t) n;
    for (int i = 0; i < n && !result; i++) {
        if (*json && i) result = out_print(", ");
        if (!result) result = *json ? out_number((double) score[i]) : out_print("%.9g\n", (double) score[i]);
    }
    return *json && !result ? out_print("]}\n") : result;
}

// One text, begun and ended as the model does.
static int read_text(const Program *p, const Options *o, const char *path, int32_t **ids, int *n) {
    Options text = *o;
    text.file = path;
    text.prompt = text.ids = NULL;
    return input_tokens(p, &text, true, false, ids, n);
}

static int append_pair(Program *p, const Options *o) {
    const Tokenizer *t = &p->tokenizer;
    int32_t *query = NULL, *doc = NULL, sep = tok_role(t, TOK_SEP);
    int n_query = 0, n_doc = 0;
    int result = read_text(p, o, o->query, &query, &n_query);
    if (!result) result = read_text(p, o, o->doc, &doc, &n_doc);
    if (!result) result = program_append(p, query, n_query);
    if (!result && tok_adds_eos(t) && sep >= 0) result = program_append(p, &sep, 1);
    if (!result) result = program_append(p, doc + 1, n_doc - 1); // without the BOS
    free(query);
    free(doc);
    return result;
}

static int rerank(Program *p, const Options *o) {
    if (p->has_tokenizer && !tok_adds_bos(&p->tokenizer))
        return complain("this model's texts have no beginning that marks a pair; write its prompt and use embed");
    int result = append_pair(p, o);
    if (result) return result;
    int n = p->state.seq[0].n_ids;
    bool json = o->json;
    uint8_t *want = calloc((size_t) n, 1);
    if (!want) return complain("no memory for %d tokens", n);
    want[n - 1] = 1;
    result = program_eval_rows(p, n, want, print_scores, &json);
    free(want);
    return result;
}

int cmd_rerank(const Options *o) {
    Program p;
    if (!o->query || !o->doc) {
        complain("rerank needs --query FILE and --doc FILE");
        return 2;
    }
    if (strcmp(model_info.result, "scores")) return complain("this model gives '%s', not scores", model_info.result);
    int result = open_model(&p, o);
    return result ? result : rerank(&p, o);
}
