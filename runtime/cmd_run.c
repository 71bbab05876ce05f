// The command run: a prompt in, the generated text out. In: options, perhaps a saved state. Out: text (or ids) on
// standard output as it comes, perhaps the state saved, and a line about speed on a terminal's standard error.
#define _GNU_SOURCE
#include "chat.h"
#include "error.h"
#include "generate.h"
#include "io.h"
#include "options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int write_text(void *context, const char *text, size_t n) {
    (void) context;
    return out_write(text, n) || out_flush() ? -1 : 0;
}

// One JSON line a token, on standard error.
static int tell_probabilities(void *context, int32_t id, float log_p, const Candidate *best, int n) {
    (void) context;
    fprintf(stderr, "{\"id\": %d, \"logprob\": %.6g, \"top\": [", id, (double) log_p);
    for (int i = 0; i < n; i++) fprintf(stderr, "%s[%d, %.6g]", i ? ", " : "", best[i].id, (double) best[i].p);
    fprintf(stderr, "]}\n");
    return 0;
}

static void closing_line(const Generated *g) {
    static const char *const reasons[] = {
        "as many as asked for", "end of text", "stop text", "the context is full", "interrupted"};
    fprintf(stderr, "%d tokens read, %.1f a second; %d made", g->evaluated,
        g->evaluated / (g->prompt_s > 0 ? g->prompt_s : 1e-9), g->made);
    if (g->made > 1) fprintf(stderr, ", %.1f a second", (g->made - 1) / (g->generate_s > 0 ? g->generate_s : 1e-9));
    fprintf(stderr, "; %s\n", reasons[g->end]);
}

static int run(Program *p, const Options *o, const int32_t *ids, int n) {
    GenerateOptions how = {.limit = o->n,
        .ignore_eog = o->ignore_eos,
        .write = write_text,
        .logprobs = o->logprobs,
        .tell = tell_probabilities};
    Generated g;
    if (program_append(p, ids, n) || generate(p, &how, &g)) return -1;
    if (isatty(STDOUT_FILENO) && g.made && out_write("\n", 1)) return -1;
    if (out_flush()) return -1;
    if (o->verbose || isatty(STDERR_FILENO)) closing_line(&g);
    else if (g.end == END_CONTEXT)
        fprintf(stderr, "note: stopped after %d tokens: the context of %d is full\n", g.made, p->state.n_ctx);
    if (o->save && state_save(&p->state, 0, o->save)) return -1;
    return g.end == END_INTERRUPTED ? complain("interrupted after %d new tokens", g.made) : 0;
}

// The input as a user's message.
static int chat_tokens(const Program *p, const Options *o, int32_t **ids, int *n) {
    char *text = NULL;
    size_t size = o->prompt ? strlen(o->prompt) : 0;
    if (!chat) return complain("--chat: this program has no chat template; build it with --chat-template FILE");
    if (o->load || o->ids || (!o->prompt && !o->file)) {
        complain("--chat takes a message with -p TEXT or -f FILE; --ids and --load do not go with it");
        return 2;
    }
    if (o->file && read_file(o->file, &text, &size)) return -1;
    int result = chat->prompt(p, o, o->prompt ? o->prompt : text, size, ids, n);
    free(text);
    return result;
}

int cmd_run(const Options *o) {
    Program p;
    int32_t *ids = NULL;
    int n = 0;
    if (!o->chat && (o->system || o->template || o->kwargs)) {
        complain("--system, --template and --chat-template-kwargs go with --chat");
        return 2;
    }
    int result = open_to_sample(&p, o);
    if (!result && o->load) result = state_load(&p.state, 0, o->load);
    if (!result) // a text that goes on does not begin again
        result = o->chat ? chat_tokens(&p, o, &ids, &n) : input_tokens(&p, o, !o->load, o->load != NULL, &ids, &n);
    if (!result && !n && !o->load)
        result = complain("the prompt is empty: the model needs at least one token to go on from");
    if (!result) result = run(&p, o, ids, n);
    free(ids);
    if (p.info) program_close(&p);
    return result;
}
