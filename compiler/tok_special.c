// Special tokens: their roles, types and attributes. In: the token_id keys and the tokens' texts. Out: roles,
// types and attributes of the vocabulary. The one idea: what files do not say is guessed from the texts, by the
// rows of tok_names.def and nothing else.
#include "tok_build.h"

#include <string.h>

static const struct {
    TokRole role;
    const char *key;
} role_keys[] = {
#define ROLE(role, key) {role, key},
#include "tok_names.def"
};

static const struct {
    TokRole role;
    const char *text;
} guesses[] = {
#define GUESS(role, text) {role, text},
#include "tok_names.def"
};

static const char *const eog_texts[] = {
#define EOG(text) text,
#include "tok_names.def"
};

static const struct {
    const char *text;
    TokType type;
    const char *others[2];
} not_eog[] = {
#define NOT_EOG(text, type, one, other) {text, type, {one, other}},
#include "tok_names.def"
};

static const char *const shown_texts[] = {
#define SHOWN(text) text,
#include "tok_names.def"
};

static const struct {
    const char *key, *part, *token;
    uint8_t attr;
} strips[] = {
#define STRIP(key, part, token, attr) {key, part, token, attr},
#include "tok_names.def"
};

static void read_roles(TokBuild *b) {
    int32_t *role = b->head.role;
    for (int i = 0; i < TOK_ROLES; i++)
        if (role[i] >= b->n_vocab) role[i] = -1; // a default that this vocabulary does not reach
    for (int i = 0; i < COUNT(role_keys); i++) {
        const GgufKey *k = gguf_key(b->gguf, str(role_keys[i].key));
        int64_t id;
        if (!k) continue;
        if (k->v.kind == GGUF_ARR || !gguf_int(&k->v, 0, &id))
            fail("%s is %s, expected the number of a token", role_keys[i].key, gguf_kind_name(k->v.kind));
        if (id >= 0 && id < b->n_vocab) role[role_keys[i].role] = (int32_t) id;
        else note("tokenizer: %s is %lld, which is no token, and is ignored", role_keys[i].key, (long long) id);
    }
}

static void guess_roles(TokBuild *b) {
    for (int i = 0; i < COUNT(guesses); i++) {
        int32_t id = tok_text_id(b, str(guesses[i].text));
        if (id < 0 || b->head.role[guesses[i].role] >= 0) continue;
        b->head.role[guesses[i].role] = id;
        b->type[id] = TOK_CONTROL;
    }
}

static bool is_eog(const TokBuild *b, const char *text) {
    int32_t id = tok_text_id(b, str(text));
    return id >= 0 && (b->attr[id] & TOK_A_EOG);
}

static void mark_eog(TokBuild *b) {
    static const TokRole ends[] = {TOK_EOS, TOK_EOT, TOK_EOM, TOK_FIM_PAD, TOK_FIM_REP, TOK_FIM_SEP};
    for (int i = 0; i < COUNT(ends); i++)
        if (b->head.role[ends[i]] >= 0) b->attr[b->head.role[ends[i]]] |= TOK_A_EOG;
    for (int i = 0; i < COUNT(eog_texts); i++) {
        int32_t id = tok_text_id(b, str(eog_texts[i]));
        if (id < 0) continue;
        b->attr[id] |= TOK_A_EOG;
        b->type[id] = TOK_CONTROL;
    }
    for (int i = 0; i < COUNT(shown_texts); i++) {
        int32_t id = tok_text_id(b, str(shown_texts[i]));
        if (id >= 0) b->type[id] = TOK_USER_DEFINED;
    }
    for (int i = 0; i < COUNT(not_eog); i++) {
        const char *const *others = not_eog[i].others;
        if (!is_eog(b, not_eog[i].text) || !is_eog(b, others[0]) || !is_eog(b, others[1])) continue;
        int32_t id = tok_text_id(b, str(not_eog[i].text));
        b->attr[id] &= (uint8_t) ~TOK_A_EOG;
        b->type[id] = (uint8_t) not_eog[i].type;
    }
}

static bool has_part(Str text, const char *part) { // ASCII case aside
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= text.n; i++) {
        size_t k = 0;
        while (k < n && (text.p[i + k] | (text.p[i + k] >= 'A' && text.p[i + k] <= 'Z' ? 32 : 0)) == part[k]) k++;
        if (k == n) return true;
    }
    return false;
}

static bool is_special(const TokBuild *b, int id) {
    return b->type[id] == TOK_CONTROL || b->type[id] == TOK_USER_DEFINED || b->type[id] == TOK_UNKNOWN;
}

static void mark_strips(TokBuild *b) {
    const uint8_t both = TOK_A_LSTRIP | TOK_A_RSTRIP;
    for (int i = 0; i < COUNT(strips); i++) {
        const GgufKey *k = gguf_key(b->gguf, str(strips[i].key));
        if (!k || k->v.kind != GGUF_STR || !has_part(k->v.s, strips[i].part)) continue;
        int32_t id = tok_text_id(b, str(strips[i].token));
        if (id >= 0) b->attr[id] = (uint8_t) ((b->attr[id] & ~both) | strips[i].attr);
        for (int t = 0; !strips[i].token[0] && t < b->n_vocab; t++)
            if (is_special(b, t)) b->attr[t] |= strips[i].attr;
    }
}

static void mark_suppressed(TokBuild *b) {
    const GgufValue *v = tok_array(b, TOK_KEY "suppress_tokens", GGUF_I32, 0);
    for (uint64_t i = 0; v && i < v->n; i++) {
        int64_t id;
        if (!gguf_int(v, i, &id)) fail(TOK_KEY "suppress_tokens has an element that is no integer");
        if (id >= 0 && id < b->n_vocab) b->attr[id] |= TOK_A_SUPPRESSED;
    }
}

void tok_roles(TokBuild *b) {
    read_roles(b);
    guess_roles(b);
    mark_eog(b);
    mark_strips(b);
    mark_suppressed(b);
    for (int i = 0; i < b->options->n_stop; i++) {
        int32_t id = tok_text_id(b, b->options->stop[i]);
        if (id >= 0) b->attr[id] |= TOK_A_EOG;
    }
}
