// The command chat. In: messages, line after line. Out: the model's answers as they come, on standard output.
//
// After each message the whole conversation is rendered anew and made tokens; those that the sequence has already are
// kept, the state goes back to where they end, and only what is new is evaluated.
#define _GNU_SOURCE
#include "chat_talk.h"
#include "error.h"
#include "io.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void talk_note(const Talk *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, *t->line.colour ? "\033[2m" : "note: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, *t->line.colour ? "\033[0m\n" : "\n");
    va_end(args);
}

static int text_add(Text *text, const char *p, size_t n) {
    if (text->n + n + 1 > text->cap) {
        char *more = realloc(text->p, 2 * (text->n + n + 1));
        if (!more) return complain("no memory for a message of %zu bytes", text->n + n);
        text->p = more, text->cap = 2 * (text->n + n + 1);
    }
    memcpy(text->p + text->n, p, n);
    text->n += n;
    text->p[text->n] = '\0';
    return 0;
}

// ---- an answer ----

// Characters that would move a terminal's cursor, or worse, are not the model's to write there.
static int show(const char *text, size_t n) {
    static const char other[] = "\xEF\xBF\xBD"; // U+FFFD
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char) text[i];
        bool one = (c < 32 && c != '\n' && c != '\t') || c == 127;
        bool two = c == 0xC2 && i + 1 < n && (unsigned char) text[i + 1] < 0xA0; // U+0080 on
        if (!one && !two) continue;
        if (out_write(text + from, i - from) || out_write(other, sizeof other - 1)) return -1;
        i += two;
        from = i + 1;
    }
    return out_write(text + from, n - from);
}

static int take_text(void *context, const char *text, size_t n) {
    Talk *t = context;
    if (text_add(&t->answer, text, n)) return -1;
    return (t->screen ? show(text, n) : out_write(text, n)) || out_flush() ? -1 : 0;
}

// The sequence becomes these ids, with as much of its state as they share.
static int set_ids(Talk *t, const int32_t *ids, int n) {
    State *s = &t->p->state;
    Sequence *q = &s->seq[0];
    const int32_t *have = state_ids(s, 0);
    int same = 0;
    while (same < n - 1 && same < q->n_ids && have[same] == ids[same]) same++; // the last one gives the logits
    if (state_truncate(s, 0, same)) {                                          // a window has moved past
        state_reset(s, 0);
        same = 0;
    }
    t->reused = q->n_past;
    return program_append(t->p, ids + same, n - same);
}

// How many ids are left when all turns but the last message are dropped.
static int least_ids(Talk *t, int *n) {
    Message few[2];
    Conversation c = {few, 0, 2};
    if (t->c.n > 1 && !strcmp(t->c.message[0].role, "system")) few[c.n++] = t->c.message[0];
    few[c.n++] = t->c.message[t->c.n - 1];
    int32_t *ids;
    if (write_conversation(&t->writer, &c, &ids, n)) return -1;
    free(ids);
    return 0;
}

// The ids of the conversation, where they fit; turns are dropped for that if asked to, and if it helps. 1: they do
// not, and a note says so.
static int fitting_ids(Talk *t, int32_t **ids, int *n) {
    int room = t->p->state.n_ctx, spare = t->o.drop_oldest ? (room / 8 < 256 ? room / 8 : 256) : 0, dropped = 0;
    for (;; dropped++) {
        if (write_conversation(&t->writer, &t->c, ids, n)) return -1;
        int least = 0;
        if (*n < room - spare || !t->o.drop_oldest) break;
        if (*n >= room && !dropped && least_ids(t, &least)) {
            free(*ids);
            *ids = NULL;
            return -1;
        }
        if (least >= room || !conversation_drop(&t->c)) break;
        free(*ids);
    }
    if (dropped)
        talk_note(t, "the context is full: the oldest %d turn%s dropped", dropped, dropped == 1 ? " was" : "s were");
    if (*n > 0 && *n < room) return 0;
    free(*ids);
    *ids = NULL;
    if (*n == 0) return complain("the template wrote nothing for this conversation");
    talk_note(t,
        "the context is full: the conversation would have %d tokens, there is room for %d; the message was taken back. "
        "/drop leaves out the oldest turn, /clear all, --drop-oldest does it by itself",
        *n, room);
    return 1;
}

static void tell_end(const Talk *t) {
    const Generated *g = &t->last;
    if (g->end == END_CONTEXT)
        talk_note(
            t, "the context of %d tokens is full: the answer ends here, after %d tokens", t->p->state.n_ctx, g->made);
    if (g->end == END_LIMIT) talk_note(t, "-n %d: the answer ends here", t->o.n);
    if (g->end == END_INTERRUPTED) talk_note(t, "stopped after %d tokens", g->made);
    if (t->o.verbose)
        talk_note(t, "%d tokens kept, %d read in %.2f s, %d made in %.2f s", t->reused, g->evaluated, g->prompt_s,
            g->made, g->generate_s);
}

int talk_answer(Talk *t) {
    GenerateOptions how = {
        .limit = t->o.n, .ignore_eog = t->o.ignore_eos, .logprobs = -1, .write = take_text, .context = t};
    int32_t *ids = NULL;
    int n = 0, result = fitting_ids(t, &ids, &n);
    if (result) {
        conversation_cut(&t->c, t->c.n - 1);
        return result;
    }
    t->answer.n = 0;
    interrupted = 0;
    t->last = (Generated){.end = END_INTERRUPTED};
    result = set_ids(t, ids, n);
    free(ids);
    if (!result) result = generate(t->p, &how, &t->last);
    if (result && interrupted) result = 0, t->last.end = END_INTERRUPTED; // while the message was read
    interrupted = 0;
    if (!result && (t->answer.n == 0 || t->answer.p[t->answer.n - 1] != '\n')) result = out_write("\n", 1);
    if (!result) result = out_flush();
    if (!result) tell_end(t);
    if (!result && t->last.end == END_INTERRUPTED && !t->answer.n) {
        talk_note(t, "the message was taken back");
        result = 1;
    }
    if (!result) result = conversation_add(&t->c, "assistant", t->answer.p ? t->answer.p : "", t->answer.n);
    if (result) conversation_cut(&t->c, t->c.n - 1);
    return result;
}

// ---- messages ----

static const char quotes[] = "\"\"\"";

// A message: one line; more after a \ at the end of each; or all lines between """ and """.
static LineResult read_message(Talk *t, Text *message) {
    message->n = 0;
    LineResult got = line_read(&t->line, "> ");
    if (got != LINE_TEXT) return got;
    const char *p = t->line.text;
    size_t n = t->line.n;
    bool block = n >= 3 && !memcmp(p, quotes, 3);
    if (block) p += 3, n -= 3;
    for (bool first = true;; first = false) {
        bool closes = block && n >= 3 && !memcmp(p + n - 3, quotes, 3);
        bool goes_on = block ? !closes : n && p[n - 1] == '\\';
        if (closes) n -= 3;
        if (!block && goes_on) n--;
        bool empty_edge = block && n == 0 && (first || closes); // """ on a line of its own
        if (!empty_edge && text_add(message, p, n)) return LINE_ERROR;
        if (closes && n == 0 && message->n && message->p[message->n - 1] == '\n') message->n--;
        if (!goes_on) break;
        if (!(first && empty_edge) && text_add(message, "\n", 1)) return LINE_ERROR;
        got = line_read(&t->line, ". ");
        if (got == LINE_END) break;
        if (got != LINE_TEXT) return got;
        p = t->line.text, n = t->line.n;
    }
    return text_add(message, "", 0) ? LINE_ERROR : LINE_TEXT; // ends it
}

static int say(Talk *t, const Text *message) {
    if (line_remember(&t->line, message->p, message->n)) return -1;
    if (message->p[0] == '/') return talk_command(t, message->p);
    if (conversation_add(&t->c, "user", message->p, message->n)) return -1;
    return talk_answer(t) < 0 ? -1 : 0;
}

static int talk(Talk *t) {
    Text message = {0};
    int breaks = 0, result = 0;
    if (t->line.terminal) talk_note(t, "%s; /help lists the commands, /quit or Ctrl-D leaves", t->p->info->name);
    while (!t->quit && !result) {
        LineResult got = read_message(t, &message);
        if (got == LINE_END || (got == LINE_BREAK && (++breaks == 2 || !t->line.terminal))) break;
        if (got == LINE_ERROR) result = -1;
        if (got == LINE_BREAK) talk_note(t, "Ctrl-C again, or /quit, leaves");
        if (got != LINE_TEXT) continue;
        breaks = 0;
        if (strspn(message.p, " \t\n") == message.n) continue;
        result = say(t, &message);
        if (result && t->line.terminal) { // the conversation goes on
            fprintf(stderr, "error: %s\n", complaint());
            result = 0;
        }
    }
    free(message.p);
    return result;
}

static void on_interrupt(int signal) {
    (void) signal;
    interrupted = 1; // the answer ends before the next token
}

int chat_talk(const Options *o) {
    Program p;
    Talk t = {.p = &p, .o = *o};
    int result = open_to_sample(&p, o);
    if (!result) result = writer_open(&t.writer, &p, o);
    if (!result && o->system) result = conversation_system(&t.c, o->system, strlen(o->system));
    if (!result) {
        struct sigaction action = {.sa_handler = on_interrupt};
        sigemptyset(&action.sa_mask);
        sigaction(SIGINT, &action, NULL);
        line_open(&t.line);
        t.screen = isatty(STDOUT_FILENO);
        result = talk(&t);
        line_close(&t.line);
    }
    writer_close(&t.writer);
    conversation_close(&t.c);
    free(t.answer.p);
    free(t.bias);
    free(t.breaker);
    if (p.info) program_close(&p);
    return result;
}
