// The end of an assistant's turn, as a template writes it: conversations are rendered with marks for contents, and what
// stands after the assistant's mark is looked at. In: a compiled template. Out: the texts. See jinja.h.
#define _GNU_SOURCE
#include "jinja.h"

#include <stdlib.h>
#include <string.h>

#define MARK "QzAnswerzQ"
static const char *const conversations[] = {
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"" MARK
    "\"}],\"add_generation_prompt\":false}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"" MARK
    "\"},{\"role\":\"user\",\"content\":\"More\"}],"
    "\"add_generation_prompt\":false}",
};

static bool render(Arena *a, const Jinja *t, const char *bos, const char *eos, const char *json, Str *after) {
    enum { size = 16 << 20 };
    char *memory = malloc(size);
    if (!memory) fail("out of memory: %d MiB for a rendering", size >> 20);
    Render *r = NEW(a, Render);
    render_open(r, memory, size, (TemplateTime){2026, 7, 26, 9, 5, 3, 0});
    bool ok = render_vars(r, json, strlen(json)) == 0 && render_set(r, "bos_token", bos) == 0 &&
        render_set(r, "eos_token", eos) == 0 && jinja_render(t, r) == 0;
    const char *at = ok && r->n_text ? memmem(r->text, r->n_text, MARK, sizeof MARK - 1) : NULL;
    if (at) *after = str_dup(a, (Str){at + sizeof MARK - 1, (size_t) (r->text + r->n_text - at) - (sizeof MARK - 1)});
    free(memory);
    return at != NULL;
}

static Str stripped(Str s) {
    while (s.n && strchr(" \n\r\t", s.p[0])) s.p++, s.n--;
    while (s.n && strchr(" \n\r\t", s.p[s.n - 1])) s.n--;
    return s;
}

// Between turns: the first `<...>` of what stands there, which ends the turn before; else all of it.
static Str first_mark(Str s) {
    const char *close = s.n && s.p[0] == '<' ? memchr(s.p, '>', s.n) : NULL;
    return close ? (Str){s.p, (size_t) (close - s.p) + 1} : s;
}

int jinja_turn_ends(Arena *a, const Jinja *t, const char *bos, const char *eos, Str ends[4]) {
    Str last = S(""), middle = S("");
    bool has_last = render(a, t, bos, eos, conversations[0], &last),
         has_middle = render(a, t, bos, eos, conversations[1], &middle);
    int n = 0;
    last = stripped(last);
    if (has_last && last.n) ends[n++] = last;
    if (!has_middle) return n;
    const char *next_content = memmem(middle.p, middle.n, "More", 4);
    Str between = stripped((Str){middle.p, next_content ? (size_t) (next_content - middle.p) : middle.n});
    bool begins_alike = n && between.n >= last.n && !memcmp(between.p, last.p, last.n);
    if (between.n && !begins_alike) ends[n++] = first_mark(between);
    return n;
}
