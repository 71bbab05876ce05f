// From messages to token ids. In: a conversation. Out: the ids of what the model's template makes of it, or the
// template's own complaint.
//
// The text of a special token in a message is text: where one stands, a mark (a code point that is no character) goes
// in front of it before the rendering; the rendered text is tokenized as a whole, without the marks, and no token is
// read where one was.
#define _GNU_SOURCE // memmem
#include "chat_in.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

static const char mark[3] = {'\xEF', '\xB7', '\x90'}; // U+FDD0; messages never hold one (conversation_add)

// ---- the writer ----

static int find_template(Writer *w, const char *name) {
    for (int i = 0; i < n_chat_templates; i++)
        if (!strcmp(chat_templates[i].name, name ? name : "default")) {
            w->template = &chat_templates[i];
            return 0;
        }
    if (!name) {
        w->template = &chat_templates[0];
        return 0;
    }
    complain("--template '%s': this program has none of that name; its first is '%s', and there are %d", name,
        chat_templates[0].name, n_chat_templates);
    return 2;
}

int writer_open(Writer *w, const Program *p, const Options *o) {
    *w = (Writer){.p = p, .kwargs = o->kwargs, .parse_special = o->parse_special};
    if (!p->has_tokenizer) return complain("this model has no tokenizer: it cannot chat");
    int result = find_template(w, o->template);
    if (result) return result;
    w->memory = malloc(CHAT_CASE_MEMORY);
    if (!w->memory) return complain("no memory for the chat template: %d MiB are needed", CHAT_CASE_MEMORY >> 20);
    return 0;
}

void writer_close(Writer *w) {
    free(w->memory);
    w->memory = NULL;
}

// ---- rendering ----

typedef struct {
    const Writer *w;
    const Conversation *c;
    Value messages;
} Work;

static Value marked_text(Render *r, const Writer *w, const Message *m) {
    Buffer b = {0};
    const char *end = m->content + m->n;
    for (const char *p = m->content; p < end;) {
        size_t n = tok_special_at(&w->p->tokenizer, p, (size_t) (end - p));
        if (n) buffer_add(r, &b, mark, sizeof mark);
        else n = 1;
        buffer_add(r, &b, p, n);
        p += n;
    }
    return buffer_value(r, &b);
}

static void make_messages(Render *r, void *arg) {
    Work *work = arg;
    Values list = {0};
    for (int i = 0; i < work->c->n; i++) {
        const Message *m = &work->c->message[i];
        Dict *d = dict_new(r, 2);
        dict_set(r, d, text_z(r, "role"), text_z(r, m->role));
        dict_set(r, d, text_z(r, "content"),
            work->w->parse_special ? text(r, m->content, m->n) : marked_text(r, work->w, m));
        push(r, &list, dict_value(d));
    }
    work->messages = values_list(r, &list);
}

// The text of a special token, or NULL.
static const char *token_text(const Program *p, TokRole role, char text[256]) {
    int32_t id = p->has_tokenizer ? tok_role(&p->tokenizer, role) : -1;
    if (id < 0) return NULL;
    size_t n;
    const char *bytes = tok_bytes(&p->tokenizer, id, &n);
    if (n >= 256) return NULL;
    memcpy(text, bytes, n);
    text[n] = '\0';
    return text;
}

static int set_token(const Writer *w, Render *r, const char *name, TokRole role) {
    char room[256];
    const char *z = token_text(w->p, role, room);
    return z ? render_set(r, name, z) : 0;
}

// Variables as Transformers hands them over.
static int set_variables(const Writer *w, Render *r, Work *work) {
    if (render_guard(r, make_messages, work) || render_set_value(r, "messages", work->messages)) return -1;
    if (render_set_value(r, "tools", NONE) || render_set_value(r, "documents", NONE)) return -1;
    if (render_set_value(r, "add_generation_prompt", TRUE_VALUE)) return -1;
    if (set_token(w, r, "bos_token", TOK_BOS) || set_token(w, r, "eos_token", TOK_EOS)) return -1;
    return w->kwargs ? render_vars(r, w->kwargs, strlen(w->kwargs)) : 0;
}

int write_conversation(Writer *w, const Conversation *c, int32_t **ids, int *n) {
    static Render r;
    Work work = {.w = w, .c = c};
    *ids = NULL, *n = 0;
    render_open(&r, w->memory, CHAT_CASE_MEMORY, template_now());
    if (set_variables(w, &r, &work)) return complain("the template's variables: %s", r.error);
    if (w->template->render(&r)) return complain("%s", r.error);
    return encode_rendered(w, r.text, r.n_text, ids, n);
}

// ---- tokens ----

typedef struct {
    char *text; // without the marks
    size_t n, n_plain;
    TokSpan *plain; // where the text of a special token is text
} Unmarked;

static int unmark(const Writer *w, const char *text, size_t n, Unmarked *u) {
    const char *end = text + n;
    size_t marks = 0;
    for (const char *p = text; (p = memmem(p, (size_t) (end - p), mark, sizeof mark)); p += sizeof mark) marks++;
    *u = (Unmarked){.text = malloc(n + 1), .plain = malloc((marks + 1) * sizeof *u->plain)};
    if (!u->text || !u->plain) return complain("no memory for a conversation of %zu bytes", n);
    for (const char *p = text; p < end;) {
        const char *next = memmem(p, (size_t) (end - p), mark, sizeof mark), *to = next ? next : end;
        memcpy(u->text + u->n, p, (size_t) (to - p));
        u->n += (size_t) (to - p);
        p = next ? next + sizeof mark : end;
        size_t length = tok_special_at(&w->p->tokenizer, p, (size_t) (end - p)); // none: the template cut it short
        if (length) u->plain[u->n_plain++] = (TokSpan){u->n, u->n + length};
    }
    return 0;
}

static int encode_unmarked(const Writer *w, const Unmarked *u, int32_t **ids, int *n_ids) {
    const Tokenizer *t = &w->p->tokenizer;
    int32_t bos = tok_adds_bos(t) ? tok_role(t, TOK_BOS) : -1;
    size_t cap = tokenize_max_ids(t, u->n) + 1, room = tokenize_scratch(t, u->n), begin = bos >= 0;
    void *scratch = malloc(room);
    *ids = malloc(cap * sizeof **ids);
    if (!*ids || !scratch) {
        free(scratch);
        return complain("no memory to tokenize %zu bytes: %zu are needed", u->n, room + cap * sizeof **ids);
    }
    int64_t got = tokenize_but(
        t, u->text, u->n, TOK_PARSE_SPECIAL, u->plain, u->n_plain, *ids + begin, cap - begin, scratch, room);
    free(scratch);
    if (got < 0 || got >= INT32_MAX)
        return complain("the conversation has %zu bytes, more than can be tokenized at once", u->n);
    if (begin) **ids = bos;
    *n_ids = (int) got + (int) begin;
    if (begin && got && (*ids)[1] == bos) // the template wrote it
        memmove(*ids, *ids + 1, (size_t) --*n_ids * sizeof **ids);
    return 0;
}

int encode_rendered(const Writer *w, const char *text, size_t n, int32_t **ids, int *n_ids) {
    Unmarked u;
    *ids = NULL;
    int result = unmark(w, text, n, &u);
    if (!result) result = encode_unmarked(w, &u, ids, n_ids);
    if (result) free(*ids), *ids = NULL;
    free(u.text);
    free(u.plain);
    return result;
}

int chat_prompt(const Program *p, const Options *o, const char *message, size_t n, int32_t **ids, int *n_ids) {
    Writer w;
    Conversation c = {0};
    int result = writer_open(&w, p, o);
    if (result) return result;
    if (o->system) result = conversation_system(&c, o->system, strlen(o->system));
    if (!result) result = conversation_add(&c, "user", message, n);
    if (!result) result = write_conversation(&w, &c, ids, n_ids);
    conversation_close(&c);
    writer_close(&w);
    return result;
}

// ---- the self-test ----

int chat_check(const Program *p) {
    static Render r;
    char bos[256], eos[256];
    void *memory = malloc(CHAT_CASE_MEMORY);
    int failed = 0;
    if (!memory) return complain("no memory for the chat template: %d MiB are needed", CHAT_CASE_MEMORY >> 20);
    for (int i = 0; i < n_chat_templates * CHAT_CASES && !failed; i++) {
        const ChatTemplate *t = &chat_templates[i / CHAT_CASES];
        const ChatCheck *want = &chat_checks[i];
        int status = chat_case_open(
            &r, memory, CHAT_CASE_MEMORY, i % CHAT_CASES, token_text(p, TOK_BOS, bos), token_text(p, TOK_EOS, eos));
        if (!status) status = t->render(&r);
        ChatCheck got = chat_case_result(&r, status);
        failed = got.hash != want->hash || got.n != want->n || got.failed != want->failed;
        if (failed)
            complain("selftest: the chat template '%s' writes other %u bytes for conversation %d than the %u stored",
                t->name, got.n, i % CHAT_CASES, want->n);
    }
    free(memory);
    return failed ? -1 : n_chat_templates * CHAT_CASES;
}
