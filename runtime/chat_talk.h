// The state of a `chat`, between its loop (chat_talk.c) and its / commands (chat_commands.c).
#ifndef CHAT_TALK_H
#define CHAT_TALK_H

#include "chat_in.h"
#include "chat_line.h"
#include "generate.h"

typedef struct {
    char *p; // malloc'ed, ends with a NUL
    size_t n, cap;
} Text;

typedef struct {
    Program *p;
    Options o;
    Writer writer;
    Conversation c;
    Line line;
    bool screen;    // answers go to a terminal
    Text answer;    // so far
    Generated last; // of the last answer
    int reused;     // tokens of its prompt that were there already
    bool quit;
    LogitBias *bias; // of /set; NULL: those of the command line
    char *breaker;
} Talk;

// The model's answer to the conversation, which ends with a user's message: shown, and added. 0; 1: none, the message
// was taken back, and a note said why; -1: the same, complaint().
int talk_answer(Talk *t);
// A line that begins with /. 0, or -1: complaint().
int talk_command(Talk *t, const char *line);
void talk_note(const Talk *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
