// A conversation's messages: adding, taking back, dropping the oldest, and a file of them. The file is JSON, as
// {"messages": [{"role": "user", "content": "..."}, ...]}, so other tools read it too.
#define _GNU_SOURCE
#include "chat_in.h"
#include "error.h"
#include "io.h"
#include "json.h"
#include "outfile.h"
#include "tok_internal.h" // tok_character

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Valid UTF-8 without the writer's mark: what is neither becomes U+FFFD.
static char *mended(const char *text, size_t n, size_t *size) {
    static const char replacement[3] = {'\xEF', '\xBF', '\xBD'};
    char *to = malloc(3 * n + 1);
    if (!to) return NULL;
    *size = 0;
    for (size_t i = 0; i < n;) {
        int k;
        uint32_t code = tok_character((const uint8_t *) text + i, n - i, &k);
        bool keep = code != 0xFDD0 && (code != 0xFFFD || k > 1); // the mark; a byte that begins no character
        memcpy(to + *size, keep ? text + i : replacement, keep ? (size_t) k : 3);
        *size += keep ? (size_t) k : 3;
        i += (size_t) k;
    }
    to[*size] = '\0';
    return to;
}

int conversation_add(Conversation *c, const char *role, const char *content, size_t n) {
    if (c->n == c->cap) {
        Message *more = realloc(c->message, (size_t) (2 * c->cap + 8) * sizeof *more);
        if (!more) return complain("no memory for message %d", c->n + 1);
        c->message = more, c->cap = 2 * c->cap + 8;
    }
    Message m = {.role = malloc(strlen(role) + 1)};
    m.content = mended(content, n, &m.n);
    if (!m.role || !m.content) {
        free(m.role);
        free(m.content);
        return complain("no memory for a message of %zu bytes", n);
    }
    strcpy(m.role, role);
    c->message[c->n++] = m;
    return 0;
}

static void remove_at(Conversation *c, int i) {
    free(c->message[i].role);
    free(c->message[i].content);
    memmove(c->message + i, c->message + i + 1, (size_t) (--c->n - i) * sizeof *c->message);
}

void conversation_cut(Conversation *c, int n) {
    while (c->n > n) remove_at(c, c->n - 1);
}

void conversation_close(Conversation *c) {
    conversation_cut(c, 0);
    free(c->message);
}

static bool has_role(const Conversation *c, int i, const char *role) {
    return i < c->n && !strcmp(c->message[i].role, role);
}

int conversation_system(Conversation *c, const char *text, size_t n) {
    if (n) {
        if (conversation_add(c, "system", text, n)) return -1;
        Message m = c->message[c->n - 1];
        memmove(c->message + 1, c->message, (size_t) (c->n - 1) * sizeof m);
        c->message[0] = m;
        if (has_role(c, 1, "system")) remove_at(c, 1);
    } else if (has_role(c, 0, "system")) {
        remove_at(c, 0);
    }
    return 0;
}

bool conversation_drop(Conversation *c) {
    int first = has_role(c, 0, "system"), next = first + 1;
    while (next < c->n && !has_role(c, next, "user")) next++;
    if (next >= c->n) return false;
    for (; next > first; next--) remove_at(c, first);
    return true;
}

// ---- files ----

enum { FILE_MEMORY = 256 << 20 };

typedef struct {
    const Conversation *c; // to write
    Conversation read;
    const char *text; // to read, then what was written
    size_t n;
    bool failed; // complaint() is set
} FileWork;

static void write_messages(Render *r, void *arg) {
    FileWork *work = arg;
    Values list = {0};
    for (int i = 0; i < work->c->n; i++) {
        const Message *m = &work->c->message[i];
        Dict *d = dict_new(r, 2);
        dict_set(r, d, text_z(r, "role"), text_z(r, m->role));
        dict_set(r, d, text_z(r, "content"), text_of(r, m->content, m->n));
        push(r, &list, dict_value(d));
    }
    Dict *whole = dict_new(r, 1);
    dict_set(r, whole, text_z(r, "messages"), values_list(r, &list));
    JsonStyle style = {.indent = integer(1), .item_sep = text_z(r, ","), .key_sep = text_z(r, ": ")};
    Value json = json_write(r, dict_value(whole), &style);
    work->text = json.s->p, work->n = json.s->n;
}

static void read_messages(Render *r, void *arg) {
    FileWork *work = arg;
    Value whole = json_read(r, work->text, work->n);
    const Value *list = whole.kind == V_DICT ? dict_get_z(r, whole.dict, "messages") : NULL;
    if (!list || list->kind != V_LIST) raise_error(r, NULL, "no object with a list of messages");
    for (size_t i = 0; i < list->list->n; i++) {
        Value m = list->list->v[i];
        const Value *role = m.kind == V_DICT ? dict_get_z(r, m.dict, "role") : NULL;
        const Value *content = role ? dict_get_z(r, m.dict, "content") : NULL;
        if (!content || !is_str(*role) || !is_str(*content))
            raise_error(r, NULL, "message %zu has no role and content that are texts", i);
        const String *z = to_str(r, *role).s;
        char name[32];
        if (z->n >= sizeof name) raise_error(r, NULL, "message %zu has a role of %zu bytes", i, z->n);
        memcpy(name, z->p, z->n);
        name[z->n] = '\0';
        if (conversation_add(&work->read, name, content->s->p, content->s->n)) {
            work->failed = true;
            return;
        }
    }
}

static int work_on_file(FileWork *work, void (*what)(Render *r, void *arg), const char *path, void **memory) {
    static Render r;
    *memory = malloc(FILE_MEMORY);
    if (!*memory) return complain("no memory for '%s': %d MiB are needed", path, FILE_MEMORY >> 20);
    render_open(&r, *memory, FILE_MEMORY, template_now());
    if (render_guard(&r, what, work)) return complain("'%s': %s", path, r.error);
    return work->failed ? -1 : 0;
}

int conversation_save(const Conversation *c, const char *path) {
    FileWork work = {.c = c};
    void *memory;
    OutFile f;
    int result = work_on_file(&work, write_messages, path, &memory);
    if (!result && !(result = outfile_open(&f, path, work.n + 1))) {
        result = outfile_write(&f, work.text, work.n) || outfile_write(&f, "\n", 1) || outfile_commit(&f) ? -1 : 0;
        if (result) outfile_abandon(&f);
    }
    free(memory);
    return result;
}

int conversation_load(Conversation *c, const char *path) {
    FileWork work = {0};
    char *bytes;
    void *memory;
    if (read_file(path, &bytes, &work.n)) return -1;
    work.text = bytes;
    int result = work_on_file(&work, read_messages, path, &memory);
    conversation_close(result ? &work.read : c);
    if (!result) *c = work.read;
    free(memory);
    free(bytes);
    return result;
}
