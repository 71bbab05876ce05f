// Ids to text, as a stream. In: ids, one by one. Out: bytes, whole UTF-8 characters at a time.
// The one idea: each byte goes through two small filters, one that drops spaces where the model's tokenizer
// cleans up, one that keeps a begun character back until its last byte is there.
#include "tok_internal.h"

// Encoding puts a space in front of a text (words of WordPiece bring their own).
static bool leads_with_space(const Tokenizer *t) {
    return (t->head->flags & TOK_F_SPACE_PREFIX) || t->head->kind == TOK_KIND_WORDS;
}

void detok_begin(Detok *d, const Tokenizer *t, int flags) {
    memset(d, 0, sizeof *d);
    d->t = t;
    d->flags = flags;
    if (!(t->head->flags & TOK_F_CLEAN)) d->flags &= ~DETOK_CLEAN;
    d->strip = (flags & DETOK_WHOLE) && leads_with_space(t);
}

size_t detok_room(const Tokenizer *t) {
    return 2 * (size_t) t->head->max_piece + sizeof(Detok);
}

// Bytes that the begun character still lacks; 0 when it is complete, or no character.
static int lacks(const char *p, int n) {
    int want = tok_lead_length((uint8_t) p[0]);
    for (int i = 1; i < n; i++)
        if (((uint8_t) p[i] & 0xC0) != 0x80) return 0;
    return (uint8_t) p[0] > 0xF4 ? 0 : want - n;
}

static char *write_byte(Detok *d, char *out, char b) {
    bool continues = ((uint8_t) b & 0xC0) == 0x80;
    if (d->n_begun && !continues) { // what was begun is no character: it passes as it is
        memcpy(out, d->begun, (size_t) d->n_begun);
        out += d->n_begun;
        d->n_begun = 0;
    }
    d->begun[d->n_begun++] = b;
    if (lacks(d->begun, d->n_begun) > 0) return out;
    memcpy(out, d->begun, (size_t) d->n_begun);
    out += d->n_begun;
    d->n_begun = 0;
    return out;
}

static char *write_open(Detok *d, char *out, int from) {
    for (int i = from; i < d->n_open; i++) out = write_byte(d, out, d->open[i]);
    d->n_open = 0;
    return out;
}

// Drops the space of " ?", " !", " .", " ,", " 's", " 'm", " 're", " 've", and both of " ' ".
static char *clean_byte(Detok *d, char *out, char b) {
    char mark = d->n_open > 1 ? d->open[d->n_open - 1] : d->n_open ? ' ' : 0;
    if (mark == ' ' && (b == '?' || b == '!' || b == '.' || b == ',')) return d->n_open = 0, write_byte(d, out, b);
    if ((mark == ' ' && b == '\'') || (mark == '\'' && (b == 'r' || b == 'v'))) {
        d->open[d->n_open++] = b;
        return out;
    }
    if (mark == '\'' && b == ' ') return write_open(d, out, 1);
    if ((mark == '\'' && (b == 's' || b == 'm')) || ((mark == 'r' || mark == 'v') && b == 'e'))
        return out = write_open(d, out, 1), write_byte(d, out, b);
    out = write_open(d, out, 0);
    if (b != ' ') return write_byte(d, out, b);
    d->open[d->n_open++] = b;
    return out;
}

static char *write_token(Detok *d, char *out, int32_t id) {
    size_t n;
    TokType type = tok_type(d->t, id);
    const char *p = tok_bytes(d->t, id, &n);
    bool special = type == TOK_CONTROL || type == TOK_UNKNOWN;
    if (special && !(d->flags & DETOK_SPECIAL)) n = 0;
    if (special || type == TOK_USER_DEFINED) { // encoding puts a space after these too
        d->strip = (d->flags & DETOK_WHOLE) && (d->t->head->flags & TOK_F_SPACE_PREFIX);
    } else if (n) {
        if (d->strip && *p == ' ') p++, n--;
        d->strip = false;
    }
    for (size_t i = 0; i < n; i++) out = d->flags & DETOK_CLEAN ? clean_byte(d, out, p[i]) : write_byte(d, out, p[i]);
    return out;
}

size_t detok_put(Detok *d, int32_t id, char *out) {
    const TokHeader *h = d->t->head;
    char *begin = out;
    if (id < 0 || id >= (int32_t) h->n_vocab) return 0;
    if (d->held_end) out = write_token(d, out, h->role[TOK_EOS]);
    d->held_end = (d->flags & DETOK_WHOLE) && (h->flags & TOK_F_ADD_EOS) && id == h->role[TOK_EOS];
    bool begins = !d->started && (d->flags & DETOK_WHOLE) && (h->flags & TOK_F_ADD_BOS) && id == h->role[TOK_BOS];
    d->started = true;
    if (!begins && !d->held_end) out = write_token(d, out, id);
    return (size_t) (out - begin);
}

size_t detok_end(Detok *d, char *out) {
    char *begin = out;
    out = write_open(d, out, 0);
    memcpy(out, d->begun, (size_t) d->n_begun);
    out += d->n_begun;
    d->n_begun = 0;
    return (size_t) (out - begin);
}
