// A tokenizer for tests of the runtime: ids 0 to 255 are bytes, 256 begins a text, 257 ends it, 258 is never sampled.
// It streams as the real one does: whole UTF-8 characters. "~~" is a stop text.
#include "../../runtime/tokenizer.h"

bool tokenizer_open(Tokenizer *t, const void *blob, size_t size) {
    t->base = blob;
    return size == 100;
}
int tok_n_vocab(const Tokenizer *t) {
    return t ? 260 : 0;
}
size_t tokenize_scratch(const Tokenizer *t, size_t n) {
    return t ? n : 0;
}
size_t tokenize_max_ids(const Tokenizer *t, size_t n) {
    return t ? n + 1 : 0;
}
int64_t tokenize(
    const Tokenizer *t, const char *text, size_t n, int flags, int32_t *ids, size_t cap, void *scratch, size_t room) {
    size_t count = 0;
    if (!t || !scratch || room < n) return TOK_SCRATCH;
    if (flags & TOK_ADD_SPECIAL) ids[count++] = 256;
    for (size_t i = 0; i < n; i++) {
        if (count == cap) return TOK_FULL;
        ids[count++] = (unsigned char) text[i];
    }
    return (int64_t) count;
}
bool tok_is_eog(const Tokenizer *t, int32_t id) {
    return t && id == 257;
}
bool tok_is_suppressed(const Tokenizer *t, int32_t id) {
    return t && id == 258;
}
int tok_n_stop(const Tokenizer *t) {
    return t ? 1 : 0;
}
const char *tok_stop(const Tokenizer *t, int i, size_t *n) {
    *n = 2;
    return t && !i ? "~~" : "";
}
const char *tok_bytes(const Tokenizer *t, int32_t id, size_t *n) {
    static char byte;
    byte = (char) id;
    *n = t && id < 256;
    return &byte;
}
void detok_begin(Detok *d, const Tokenizer *t, int flags) {
    *d = (Detok){.t = t, .flags = flags};
}
size_t detok_room(const Tokenizer *t) {
    return t ? 8 : 0;
}
size_t detok_put(Detok *d, int32_t id, char *out) {
    if (id > 255) return 0;
    d->begun[d->n_begun++] = (char) id;
    unsigned char c = (unsigned char) d->begun[0];
    int need = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (d->n_begun < need) return 0;
    memcpy(out, d->begun, (size_t) d->n_begun);
    d->n_begun = 0;
    return (size_t) need;
}
size_t detok_end(Detok *d, char *out) {
    memcpy(out, d->begun, (size_t) d->n_begun);
    return (size_t) d->n_begun;
}

int32_t tok_role(const Tokenizer *t, TokRole role) {
    (void) t, (void) role;
    return -1;
}

bool tok_adds_bos(const Tokenizer *t) {
    (void) t;
    return false;
}

bool tok_adds_eos(const Tokenizer *t) {
    (void) t;
    return false;
}
