// From messages to token ids. In: a conversation. Out: the ids of what the model's template makes of it, or the
// template's own complaint.
//
// The text of a special token in a user's message is text: where one stands, a mark (a code point that is no character)
// goes in front of it before the rendering; what follows a mark in the rendered text is tokenized as text.
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
    const Tokenizer *t = &p->tokenizer;
    if (!p->has_tokenizer) return complain("this model has no tokenizer: it cannot chat");
    int result = find_template(w, o->template);
    if (result) return result;
    int n = tok_n_vocab(t), count = 0;
    for (int id = 0; id < n; id++) count += tok_type(t, id) == TOK_CONTROL;
    w->memory = malloc(CHAT_CASE_MEMORY);
    w->special = malloc(((size_t) count + 1) * sizeof *w->special);
    if (!w->memory || !w->special) {
        writer_close(w);
        return complain("no memory for the chat template: %d MiB are needed", CHAT_CASE_MEMORY >> 20);
    }
    for (int id = 0; id < n; id++) {
        size_t size;
        tok_bytes(t, id, &size);
        if (tok_type(t, id) == TOK_CONTROL && size) w->special[w->n_special++] = id;
    }
    return 0;
}

void writer_close(Writer *w) {
    free(w->memory);
    free(w->special);
    w->memory = NULL, w->special = NULL;
}

// Bytes of the longest special token whose text stands at p; 0: none.
static size_t special_at(const Writer *w, const char *p, const char *end) {
    size_t longest = 0;
    for (int i = 0; i < w->n_special; i++) {
        size_t n;
        const char *z = tok_bytes(&w->p->tokenizer, w->special[i], &n);
        if (*z == *p && n > longest && n <= (size_t) (end - p) && !memcmp(z, p, n)) longest = n;
    }
    return longest;
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
        size_t n = special_at(w, p, end);
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
        bool marks = !work->w->parse_special && !strcmp(m->role, "user");
        Dict *d = dict_new(r, 2);
        dict_set(r, d, text_z(r, "role"), text_z(r, m->role));
        dict_set(r, d, text_z(r, "content"), marks ? marked_text(r, work->w, m) : text(r, m->content, m->n));
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
    const char *p;
    size_t n;
    bool plain; // the text of a special token, meant as text
} Piece;

static bool next_piece(const Writer *w, const char **p, const char *end, Piece *piece) {
    const char *at = *p;
    if (at == end) return false;
    bool begins = end - at >= 3 && !memcmp(at, mark, 3);
    if (begins) at += 3;
    size_t n = begins ? special_at(w, at, end) : 0;
    *piece = (Piece){at, n, begins};
    if (!n) // up to the next mark
        while (at + piece->n < end && !(end - at - (ptrdiff_t) piece->n >= 3 && !memcmp(at + piece->n, mark, 3)))
            piece->n++, piece->plain = false;
    *p = at + piece->n;
    return true;
}

int encode_rendered(const Writer *w, const char *text, size_t n, int32_t **ids, int *n_ids) {
    const Tokenizer *t = &w->p->tokenizer;
    size_t cap = 1, room = tokenize_scratch(t, n), count = 0;
    Piece piece;
    for (const char *p = text; next_piece(w, &p, text + n, &piece);) cap += tokenize_max_ids(t, piece.n);
    *ids = malloc(cap * sizeof **ids);
    void *scratch = malloc(room + 8);
    int32_t bos = tok_adds_bos(t) ? tok_role(t, TOK_BOS) : -1;
    if (*ids && bos >= 0) (*ids)[count++] = bos;
    for (const char *p = text; *ids && scratch && next_piece(w, &p, text + n, &piece);) {
        int64_t got = tokenize(
            t, piece.p, piece.n, piece.plain ? 0 : TOK_PARSE_SPECIAL, *ids + count, cap - count, scratch, room + 8);
        if (got < 0 || count + (size_t) got > INT32_MAX) {
            free(scratch);
            free(*ids);
            *ids = NULL;
            return complain("the conversation has %zu bytes, more than can be tokenized at once", n);
        }
        count += (size_t) got;
    }
    free(scratch);
    if (!*ids || !scratch) {
        free(*ids);
        *ids = NULL;
        return complain("no memory to tokenize %zu bytes: %zu are needed", n, room + cap * sizeof **ids);
    }
    if (bos >= 0 && count > 1 && (*ids)[1] == bos) // the template wrote it
        memmove(*ids, *ids + 1, --count * sizeof **ids);
    *n_ids = (int) count;
    return 0;
}

int chat_prompt(const Program *p, const Options *o, const char *message, size_t n, int32_t **ids, int *n_ids) {
    Writer w;
    Conversation c = {0};
    int result = writer_open(&w, p, o);
    if (result) return result;
    if (o->system) result = conversation_system(&c, o->system, strlen(o->system));
    if (!result) result = conversation_add(&c, "user", message, n);
    if (!result) result = write_conversation(&w, &c, ids, n_ids);
    conversation_cut(&c, 0);
    free(c.message);
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
