// Between the files of the chat: the templates, a conversation, and its way to token ids.
#ifndef CHAT_IN_H
#define CHAT_IN_H

#include "chat.h"
#include "chat_cases.h"

// Generated.
extern const ChatTemplate chat_templates[];
extern const int n_chat_templates;
extern const ChatCheck chat_checks[]; // [n_chat_templates][CHAT_CASES]

typedef struct {
    char *role, *content; // malloc'ed; UTF-8
    size_t n;             // bytes of the content
} Message;

typedef struct {
    Message *message; // the first may be the system's; then users and assistants
    int n, cap;
} Conversation;

// All return 0, or -1: complaint().
int conversation_add(Conversation *c, const char *role, const char *content, size_t n); // mends what is no UTF-8
int conversation_system(Conversation *c, const char *text, size_t n);                   // n == 0: none any more
void conversation_cut(Conversation *c, int n);                                          // to its first n messages
void conversation_close(Conversation *c);
bool conversation_drop(Conversation *c); // the oldest turn; false: only one is left
int conversation_save(const Conversation *c, const char *path);
int conversation_load(Conversation *c, const char *path);

typedef struct {
    const Program *p;
    const ChatTemplate *template;
    const char *kwargs; // a JSON object of further variables; NULL: none
    bool parse_special; // the text of special tokens in a user's message means those tokens
    void *memory;       // for a rendering
} Writer;

int writer_open(Writer *w, const Program *p, const Options *o);
void writer_close(Writer *w);
// The conversation as the template writes it, up to where the answer begins.
int write_conversation(Writer *w, const Conversation *c, int32_t **ids, int *n);
// The ids of a rendered text, with the model's BOS in front.
int encode_rendered(const Writer *w, const char *text, size_t n, int32_t **ids, int *n_ids);

#endif
