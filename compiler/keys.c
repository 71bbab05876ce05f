// The file's keys, as a description sees them: read without the architecture's prefix, expected to be neutral, ignored
// with a reason, and none left over. Also the built-in names, since vocab and context come from keys.
#include "eval.h"

#include <string.h>

void fact(Build *b, Str name, Str note) {
    Graph *g = b->g;
    for (int i = 0; i < g->n_fact; i++)
        if (str_eq(g->fact[i].name, name)) return;
    *PUSH(b->a, g->fact, g->n_fact, g->cap_fact) = (Fact){name, note};
}

void ignored(Build *b, Str name, Str why) {
    Graph *g = b->g;
    for (int i = 0; i < g->n_ignored; i++)
        if (str_eq(g->ignored[i].name, name)) return;
    *PUSH(b->a, g->ignored, g->n_ignored, g->cap_ignored) = (Fact){name, why};
}

int key_find(const Build *b, Str key) {
    if (!b->synth) {
        const GgufKey *k = gguf_key(b->gguf, key);
        return k ? (int) (k - b->gguf->key) : -1;
    }
    for (int i = 0; i < b->gguf->n_key; i++)
        if (str_eq(b->gguf->key[i].key, key)) return i;
    return -1;
}

Str key_full(const Build *b, Str name) {
    return str_fmt(b->a, "%.*s.%.*s", FMT(b->arch), FMT(name));
}

static Value gguf_value(Str key, const GgufValue *v, Loc loc) {
    Value r = {.key = key, .loc = loc};
    double x = 0;
    switch (v->kind) {
    case GGUF_STR: r.kind = V_TEXT, r.text = v->s; break;
    case GGUF_ARR: r.kind = V_ARRAY, r.array = v; break;
    case GGUF_BOOL: r.kind = V_FLAG, r.num = v->u != 0; break;
    default: gguf_real(v, 0, &x), r.kind = V_NUM, r.num = x; break;
    }
    return r;
}

static Value read_key(Build *b, Str key, Str name, Loc loc, bool synth_may_add) {
    int i = key_find(b, key);
    if (i < 0 && b->synth && synth_may_add) i = synth_key(b, key, b->in_or > 0);
    if (i < 0) {
        *PUSH(b->a, b->absent, b->n_absent, b->cap_absent) = key;
        return (Value){.kind = V_ABSENT, .text = name, .key = key, .loc = loc};
    }
    b->key_used[i] = 1;
    return gguf_value(b->gguf->key[i].key, &b->gguf->key[i].v, loc);
}

// A word without a dot may be no key at all (`tag: _shexp`): synth invents it only once a number is asked of it.
Value key_value(Build *b, Str name, Loc loc) {
    bool dotted = memchr(name.p, '.', name.n) != NULL;
    return read_key(b, key_full(b, name), name, loc, dotted || b->in_or > 0);
}

Value key_absolute(Build *b, Str key, Loc loc) {
    return read_key(b, key, key, loc, true);
}

static bool user_ignores(const Build *b, Str key) { // --ignore-key: keys_check() notes it
    for (const char *const *p = b->opt->ignore_key; p && *p; p++)
        if (str_is(key, *p)) return true;
    return false;
}

// expect KEY == value: absent, or exactly this.
void key_expect(Build *b, Scope *s, const Stmt *st) {
    Str name = st->name[0];
    Loc loc = loc_at(st->src, st->at[0]);
    Str key = st->src->text.p[st->at[0]] == '"' ? name : key_full(b, name);
    Value want = scalar(b, s, eval(b, s, st->expr));
    if (want.kind == V_ABSENT) no_value(b, s, want);
    if (b->synth) synth_expect(b, key, want);
    int i = key_find(b, key);
    bool read = i >= 0 && s == b->library && b->key_used[i]; // a library's line is about what no other line reads
    if (i < 0 || read || user_ignores(b, key)) return;
    b->key_used[i] = 1;
    Value have = scalar(b, s, gguf_value(key, &b->gguf->key[i].v, loc));
    bool equal = have.kind == want.kind && (have.kind == V_TEXT ? str_eq(have.text, want.text) : have.num == want.num);
    if (equal) return;
    if (b->synth && want.kind == V_NUM) synth_demand(b, key, want.num);
    Str text = span(st->src, st->expr->pos, st->expr->end);
    const char *wanted = value_show(b, want);
    const char *here = str_is(text, wanted) ? "" : str_z(b->a, str_fmt(b->a, ", %s here", wanted));
    fail_at(loc, "key '%s' is %s; this description covers only %.*s%s%.*s", str_show(b->a, key), value_show(b, have),
        FMT(text), here, FMT(hint_numbers(b, s, NULL, st->expr)));
}

// ---- built-in names ----

static int64_t vocab_size(Build *b, Loc loc) {
    int tokens = key_find(b, S("tokenizer.ggml.tokens"));
    if (tokens >= 0 && b->gguf->key[tokens].v.kind == GGUF_ARR && b->gguf->key[tokens].v.n > 0)
        return (int64_t) b->gguf->key[tokens].v.n;
    Value v = key_value(b, S("vocab_size"), loc);
    if (v.kind == V_ABSENT && b->synth) v = scalar(b, b->file, v);
    if (v.kind == V_ABSENT)
        fail_at(loc, "the size of the vocabulary is not known: the file has neither 'tokenizer.ggml.tokens' nor '%s'",
            str_show(b->a, v.key));
    double n = need_num(b, b->file, v, loc, "a size");
    if (!(n >= 1 && n < 2147483648.0) || n != (double) (int64_t) n)
        fail_at(loc, "key '%s' is %.9g; a vocabulary has 1 to 2^31 tokens", str_show(b->a, v.key), n);
    return (int64_t) n;
}

Value builtin_value(Build *b, Str name, Loc loc, bool *found) {
    *found = true;
    if (str_is(name, "vocab")) {
        if (!b->vocab) b->vocab = vocab_size(b, loc);
        return NUM((double) b->vocab);
    }
    if (str_is(name, "context")) return NUM((double) b->context);
    if (str_is(name, "arch")) return (Value){.kind = V_TEXT, .text = b->arch};
    if (str_is(name, "past")) return (Value){.kind = V_SEES, .sees = SEES_PAST};
    if (str_is(name, "all")) return (Value){.kind = V_SEES, .sees = SEES_ALL};
    if (str_is(name, "none")) return (Value){.kind = V_NONE};
    if (str_is(name, "true") || str_is(name, "false")) return FLAG(str_is(name, "true"));
    if (str_is(name, "token") || str_is(name, "position")) {
        if (b->stage < 0)
            fail_at(loc, "'%.*s' is a value of the run; here everything is known when building", FMT(name));
        return make(b, NODE(.op = str_is(name, "token") ? OP_token : OP_position, .name = name, .loc = loc));
    }
    *found = is_option_word(name);
    return *found ? (Value){.kind = V_TEXT, .text = name} : (Value){0};
}

// ---- none left over ----

static bool exempt(Str key) {
    return str_starts(key, "general.") || str_starts(key, "tokenizer.") || str_starts(key, "split.") ||
        str_starts(key, "quantize.");
}

void keys_check(Build *b) {
    for (const char *const *p = b->opt->ignore_key; p && *p; p++) {
        int i = key_find(b, str(*p));
        if (i < 0) fail("--ignore-key %s: %s has no such key", *p, b->gguf->path);
        if (b->key_used[i])
            fail("--ignore-key %s: the description uses this key, so ignoring it would change nothing", *p);
        b->key_used[i] = 1;
        ignored(b, b->gguf->key[i].key, S("--ignore-key"));
    }
    Out names = out_new(b->a);
    int left = 0;
    Str first = S("");
    for (int i = 0; i < b->gguf->n_key; i++) {
        const GgufKey *k = &b->gguf->key[i];
        if (b->key_used[i] || exempt(k->key)) continue;
        if (++left == 1) first = k->key;
        if (left > 4) continue;
        Value v = gguf_value(k->key, &k->v, (Loc){0});
        out(&names, "%s'%s' = %s", left > 1 ? ", " : "", str_show(b->a, k->key), value_show(b, v));
    }
    if (!left) return;
    Str list = out_text(&names);
    const char *shown = str_show(b->a, first), *file = b->spec->src->file;
    Str prefix = key_full(b, S(""));
    bool own = first.n > prefix.n && memcmp(first.p, prefix.p, prefix.n) == 0;
    const char *line = own ? shown + prefix.n : str_z(b->a, str_fmt(b->a, "\"%s\"", shown));
    fail("%s: %d key%s that %s neither reads, expects nor ignores: %.*s%s\n"
         "%s  if it cannot change the result, say so in %s with 'ignore %s  # why', or pass --ignore-key %s",
        b->gguf->path, left, left > 1 ? "s" : "", file, FMT(list), left > 4 ? ", .." : "",
        hint_asked(b, first), file, line, shown);
}
