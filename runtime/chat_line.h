// One line from the user: edited on a terminal, just read from anything else.
#ifndef CHAT_LINE_H
#define CHAT_LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { LINE_ERROR = -1, LINE_END, LINE_TEXT, LINE_BREAK } LineResult; // BREAK: Ctrl-C

typedef struct {
    bool terminal;      // edits, and shows prompts on standard error
    bool dumb;          // a terminal too, but one that only prints: a prompt, nothing else
    const char *prompt; // without colours
    const char *colour; // escape sequence before the prompt, or ""
    char *text;         // the line: valid until the next
    size_t n, cap, at;  // at: the cursor
    size_t first;       // the first byte shown
    char **history;
    int n_history, browsing; // browsing == n_history: the line itself
    char *draft;             // what it was before browsing
} Line;

void line_open(Line *l);
LineResult line_read(Line *l, const char *prompt);
int line_remember(Line *l, const char *text, size_t n); // adds to the history; 0 or -1: complaint()
void line_close(Line *l);

#endif
