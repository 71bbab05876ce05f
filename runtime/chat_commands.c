// The / commands of a chat. In: a line. Out: a changed conversation or settings; what they show goes to standard error.
#define _GNU_SOURCE // strdup
#include "chat_talk.h"
#include "error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool last_is(const Talk *t, const char *role) {
    return t->c.n && !strcmp(t->c.message[t->c.n - 1].role, role);
}

static int system_text(Talk *t, const char *text) {
    if (conversation_system(&t->c, text, strlen(text))) return -1;
    talk_note(t, *text ? "the system's message is set" : "no system's message");
    return 0;
}

static int undo(Talk *t, const char *text) {
    (void) text;
    int n = t->c.n;
    while (n && strcmp(t->c.message[n - 1].role, "user")) n--;
    if (!n) return complain("/undo: nothing was said yet");
    conversation_cut(&t->c, n - 1);
    talk_note(t, "the last message and its answer were taken back; %d messages are left", t->c.n);
    return 0;
}

static int retry(Talk *t, const char *text) {
    (void) text;
    if (!last_is(t, "assistant") || t->c.n < 2) return complain("/retry: there is no answer to give again");
    conversation_cut(&t->c, t->c.n - 1);
    t->o.sample.seed++; // another draw
    sampler_use(&t->p->sampler, &t->o.sample);
    return talk_answer(t) < 0 ? -1 : 0;
}

static int save(Talk *t, const char *path) {
    if (!*path) return complain("/save needs the name of a file");
    if (conversation_save(&t->c, path)) return -1;
    talk_note(t, "%d messages saved in %s", t->c.n, path);
    return 0;
}

static int load(Talk *t, const char *path) {
    if (!*path) return complain("/load needs the name of a file");
    if (conversation_load(&t->c, path)) return -1;
    talk_note(t, "%d messages loaded from %s", t->c.n, path);
    return 0;
}

static void show_settings(const Talk *t) {
    const SampleOptions *s = &t->o.sample;
    if (s->greedy) talk_note(t, "the likeliest token is taken; /set temp X samples");
    else
        talk_note(t, "temp %g, top-k %d, top-p %g, min-p %g, typical %g, top-nsigma %g, seed %llu", (double) s->temp,
            s->top_k, (double) s->top_p, (double) s->min_p, (double) s->typical, (double) s->top_nsigma,
            (unsigned long long) s->seed);
    talk_note(t,
        "repeat-penalty %g, presence-penalty %g, frequency-penalty %g, repeat-last-n %d, dry-multiplier %g, "
        "mirostat %d, n-predict %d",
        (double) s->repeat_penalty, (double) s->presence_penalty, (double) s->frequency_penalty, s->repeat_last_n,
        (double) s->dry_multiplier, s->mirostat, t->o.n);
}

// ID+X in place of what that token had; tokens that the model's file forbids stay forbidden.
static int set_bias(Talk *t, const char *value) {
    Options one = {.bias = {.text = {value}, .n = 1}};
    Sampler *s = &t->p->sampler;
    LogitBias bias, *all;
    int n = 0;
    if (parse_bias(&one, &bias)) return -1;
    if (!(all = malloc((size_t) (s->n_bias + 1) * sizeof *all))) return complain("no memory for --logit-bias");
    for (int i = 0; i < s->n_bias; i++) {
        bool forbidden = t->p->has_tokenizer && s->bias[i].id < tok_n_vocab(&t->p->tokenizer) &&
            tok_is_suppressed(&t->p->tokenizer, s->bias[i].id);
        if (s->bias[i].id != bias.id || forbidden) all[n++] = s->bias[i];
    }
    all[n++] = bias;
    s->bias = all, s->n_bias = n;
    free(t->bias);
    t->bias = all;
    return 0;
}

static int set_breaker(Talk *t, const char *value) { // this one alone
    char *copy = strdup(value);
    if (!copy) return complain("no memory for a text of %zu bytes", strlen(value));
    free(t->breaker);
    t->breaker = copy;
    t->o.breakers.n = 1;
    t->o.breakers.text[0] = copy;
    return 0;
}

static int set_option(Talk *t, const char *name, const char *value) {
    if (!strcmp(name, "logit-bias")) return set_bias(t, value);
    if (!strcmp(name, "dry-sequence-breaker")) return set_breaker(t, value);
    return options_set(&t->o, name, value);
}

static int set(Talk *t, const char *text) {
    char name[64];
    size_t n = strcspn(text, " ");
    if (!n) {
        show_settings(t);
        return 0;
    }
    const char *value = text + n + strspn(text + n, " ");
    if (n >= sizeof name || !*value)
        return complain("/set %s: a name and a value are expected, like /set temp 0.7", text);
    memcpy(name, text, n);
    name[n] = '\0';
    if (set_option(t, name, value)) return -1;
    sampler_use(&t->p->sampler, &t->o.sample);
    if (set_breakers(t->p, &t->o)) return -1;
    talk_note(t, "%s is %s", name, value);
    return 0;
}

static int tokens(Talk *t, const char *text) {
    int32_t *ids;
    int n;
    if (*text) {
        if (encode_rendered(&t->writer, text, strlen(text), &ids, &n)) return -1;
        fprintf(stderr, "%d:", n);
        for (int i = 0; i < n; i++) fprintf(stderr, " %d", ids[i]);
        fprintf(stderr, "\n");
        free(ids);
        return 0;
    }
    const Generated *g = &t->last;
    talk_note(t, "the last answer: %d tokens kept, %d read, %.1f a second; %d made, %.1f a second", t->reused,
        g->evaluated, g->prompt_s > 0 ? g->evaluated / g->prompt_s : 0, g->made,
        g->made > 1 && g->generate_s > 0 ? (g->made - 1) / g->generate_s : 0);
    return 0;
}

static int context(Talk *t, const char *text) {
    (void) text;
    int32_t *ids = NULL;
    int n = 0, room = t->p->state.n_ctx;
    bool any = t->c.n > 0 && !(t->c.n == 1 && last_is(t, "system"));
    if (any && write_conversation(&t->writer, &t->c, &ids, &n)) return -1;
    free(ids);
    talk_note(t, "%d messages, %d tokens of %d (%.0f %%); %d of them are evaluated", t->c.n, n, room, 100.0 * n / room,
        t->p->state.seq[0].n_past);
    return 0;
}

static int drop(Talk *t, const char *text) {
    (void) text;
    if (!conversation_drop(&t->c))
        return complain("/drop: there is no older turn than the last one; /clear takes that too");
    talk_note(t, "the oldest turn is dropped; %d messages are left", t->c.n);
    return 0;
}

static int clear(Talk *t, const char *text) {
    (void) text;
    conversation_cut(&t->c, t->c.n && !strcmp(t->c.message[0].role, "system"));
    talk_note(t, "a new conversation%s", t->c.n ? "; the system's message stays" : "");
    return 0;
}

static int quit(Talk *t, const char *text) {
    (void) text;
    t->quit = true;
    return 0;
}

static int help(Talk *t, const char *text);
static const struct {
    const char *name, *argument, *does;
    int (*run)(Talk *t, const char *text);
} commands_of_chat[] = {
    {"system", "TEXT", "the system's message; without TEXT: none", system_text},
    {"undo", "", "take back the last message and its answer", undo},
    {"retry", "", "answer again", retry},
    {"save", "FILE", "write the conversation to a file, as JSON", save},
    {"load", "FILE", "go on with the conversation of a file", load},
    {"set", "[NAME VALUE]", "show or change the sampling: temp, top-k, top-p, min-p, seed, n-predict ...", set},
    {"tokens", "[TEXT]", "figures of the last answer; the ids of a text", tokens},
    {"context", "", "how full the context is", context},
    {"drop", "", "leave out the oldest turn", drop},
    {"clear", "", "begin anew", clear},
    {"help", "", "this list", help},
    {"quit", "", "leave; Ctrl-D too", quit},
};
enum { N_COMMANDS = sizeof commands_of_chat / sizeof *commands_of_chat };

static int help(Talk *t, const char *text) {
    (void) t, (void) text;
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(stderr, "  /%-8s%-14s%s\n", commands_of_chat[i].name, commands_of_chat[i].argument,
            commands_of_chat[i].does);
    fprintf(stderr,
        "A line that ends with \\ goes on in the next; \"\"\" begins and ends a message of many lines.\n"
        "Ctrl-C stops an answer; twice at the prompt it leaves.\n");
    return 0;
}

int talk_command(Talk *t, const char *line) {
    size_t n = strcspn(line + 1, " ");
    const char *text = line + 1 + n;
    text += strspn(text, " ");
    for (int i = 0; i < N_COMMANDS; i++)
        if (strlen(commands_of_chat[i].name) == n && !memcmp(commands_of_chat[i].name, line + 1, n))
            return commands_of_chat[i].run(t, text);
    return complain("'/%.*s' is no command; /help lists them", (int) n, line + 1);
}
