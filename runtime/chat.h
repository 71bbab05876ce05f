// What a program with a chat template has more than one without: these functions, of files that are linked only then.
#ifndef CHAT_H
#define CHAT_H

#include "options.h"

typedef struct {
    int (*talk)(const Options *o); // the command chat
    // One message of a user as the template puts it, the ids malloc'ed. 0, or what the command returns.
    int (*prompt)(const Program *p, const Options *o, const char *message, size_t n, int32_t **ids, int *n_ids);
    int (*check)(const Program *p); // the stored renderings: how many were compared, or -1: complaint()
} Chat;
extern const Chat *const chat; // generated; NULL: no template

int chat_talk(const Options *o);
int chat_prompt(const Program *p, const Options *o, const char *message, size_t n, int32_t **ids, int *n_ids);
int chat_check(const Program *p);

#endif
