// The command rerank: how well a document answers a query. In: two texts. Out: the scores of the model's head, one a
// line. The pair is written as encoders are trained on it: BOS query EOS SEP document EOS, or BOS query SEP document
// SEP where texts end with SEP; or, where the file has a prompt for pairs, inside that. For a model that wants a prompt
// which its file does not have there is `embed`.
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

// ---- a prompt ----

typedef struct {
    const char *name; // "{query}"
    char *text;
    size_t size;
} Slot;

// The slot that stands at `at`, or NULL.
static const Slot *slot_at(const char *at, const Slot *slot) {
    for (int i = 0; i < 2; i++)
        if (!strncmp(at, slot[i].name, strlen(slot[i].name))) return &slot[i];
    return NULL;
}

// The prompt with its slots filled into `to`, or, where that is NULL, only its size. What a text holds is no slot.
static size_t fill_prompt(const char *prompt, const Slot *slot, char *to) {
    size_t n = 0;
    while (*prompt) {
        const Slot *s = slot_at(prompt, slot);
        const char *from = s ? s->text : prompt;
        size_t size = s ? s->size : 1;
        if (to && size) memcpy(to + n, from, size);
        n += size;
        prompt += s ? strlen(s->name) : 1;
    }
    return n;
}

static int append_prompt(Program *p, const Options *o) {
    Slot slot[2] = {{"{query}", NULL, 0}, {"{document}", NULL, 0}};
    int result = read_file(o->query, &slot[0].text, &slot[0].size), n = 0;
    if (!result) result = read_file(o->doc, &slot[1].text, &slot[1].size);
    if (!result) {
        size_t size = fill_prompt(p->info->rerank, slot, NULL);
        char *text = malloc(size + 1);
        int32_t *ids = NULL;
        if (!text) result = complain("no memory for a prompt of %zu bytes", size);
        if (text) fill_prompt(p->info->rerank, slot, text);
        if (!result) result = text_tokens(p, text, size, TOK_PARSE_SPECIAL, &ids, &n);
        if (!result) result = program_append(p, ids, n);
        free(ids);
        free(text);
    }
    free(slot[0].text);
    free(slot[1].text);
    return result;
}

static int rerank(Program *p, const Options *o) {
    bool prompt = p->info->rerank && p->has_tokenizer;
    if (!prompt && p->has_tokenizer && !tok_adds_bos(&p->tokenizer))
        return complain("this model's texts have no beginning that marks a pair; write its prompt and use embed");
    int result = prompt ? append_prompt(p, o) : append_pair(p, o);
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
