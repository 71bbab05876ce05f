// What an error adds for whoever must mend it. In: the name that is not there, the tensor that is left over, the
// expression whose numbers do not fit. Out: text that follows the message: a name that may have been meant, the line
// that would bind a tensor, where each number comes from. The one idea: a hint is about what the description does not
// know already.
#include "eval.h"

#include <string.h>

enum { NEAR = 3, MAX_NOTE = 4 };

// ---- names ----

static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
        c == '.' || c == '$';
}

static bool has_word(Str text, Str word) {
    if (!word.n) return false;
    for (size_t i = 0; i + word.n <= text.n; i++)
        if (text.p[i] == word.p[0] && memcmp(text.p + i, word.p, word.n) == 0 && (i == 0 || !in_word(text.p[i - 1])) &&
            (i + word.n == text.n || !in_word(text.p[i + word.n])))
            return true;
    return false;
}

// The description or a part that it uses has this name, so it is nobody's misspelling.
static bool described(const Build *b, Str name) {
    bool found = has_word(b->spec->src->text, name);
    for (int i = 0; i < b->spec->n_lib && !found; i++) found = has_word(b->spec->lib[i]->src->text, name);
    return found;
}

// A few letters differ, and not most of them.
static bool is_near(Str x, Str y, int *least) {
    int far = edit_distance(x, y);
    if (far >= *least || far * 3 > (int) (x.n < y.n ? x.n : y.n)) return false;
    *least = far;
    return true;
}

static Str own_name(const Build *b, Str key) {
    Str prefix = key_full(b, S(""));
    bool own = key.n > prefix.n && memcmp(key.p, prefix.p, prefix.n) == 0;
    return own ? (Str){key.p + prefix.n, key.n - prefix.n} : S("");
}

const char *hint_key(Build *b, Str key) {
    Str name = own_name(b, key);
    const GgufKey *near = NULL;
    int least = NEAR + 1;
    for (int i = 0; i < b->gguf->n_key; i++) {
        Str other = own_name(b, b->gguf->key[i].key);
        if (other.n && !described(b, other) && is_near(name, other, &least)) near = &b->gguf->key[i];
    }
    return near ? str_z(b->a, str_fmt(b->a, "; it does have '%s'", str_show(b->a, near->key))) : "";
}

// For a key that nothing reads: one that was asked for in vain.
const char *hint_asked(Build *b, Str key) {
    Str name = own_name(b, key), near = S("");
    int least = NEAR + 1;
    for (int i = 0; i < b->n_absent; i++)
        if (is_near(name, own_name(b, b->absent[i]), &least)) near = b->absent[i];
    return near.n ? str_z(b->a,
                        str_fmt(b->a, "  the description asks for '%s', which the file does not have\n",
                            str_show(b->a, near)))
                  : "";
}

// ---- tensors ----

const char *file_shape(Build *b, const GgufTensor *t) {
    Out o = out_new(b->a);
    for (int i = t->n_dims; i-- > 0;) out(&o, "%s%lld", i == t->n_dims - 1 ? "" : ", ", (long long) t->ne[i]);
    return str_z(b->a, out_text(&o));
}

// blk.12.attn_q.bias -> attn_q and bias
static Str base_name(Str name, Str *ending) {
    *ending = S("");
    if (str_starts(name, "blk.")) {
        const char *dot = memchr(name.p + 4, '.', name.n - 4);
        if (dot) name = (Str){dot + 1, name.n - (size_t) (dot + 1 - name.p)};
    }
    static const char *const endings[] = {".weight", ".bias"};
    for (int i = 0; i < COUNT(endings); i++)
        if (str_ends(name, endings[i])) {
            *ending = str(endings[i] + 1);
            name.n -= strlen(endings[i]);
        }
    return name;
}

const char *hint_tensor(Build *b, Scope *s, Str full) {
    const GgufTensor *near = NULL;
    bool layer = false; // the file has something of this one
    int least = NEAR + 1;
    Str ending;
    for (int i = 0; i < b->gguf->n_tensor; i++) {
        Str other = b->gguf->tensor[i].name;
        if (!str_starts(other, str_z(b->a, s->prefix))) continue;
        layer = true;
        if (b->tensor_used[i] || described(b, base_name(other, &ending))) continue;
        if (is_near(full, other, &least)) near = &b->gguf->tensor[i];
    }
    if (!layer && s->layer >= 0)
        return str_z(b->a,
            str_fmt(b->a, ", and none of layer %lld; the description runs %lld layers", (long long) s->layer,
                (long long) b->n_layer));
    return near ? str_z(b->a, str_fmt(b->a, "; it does have '%s'", str_show(b->a, near->name))) : "";
}

// A number as the description writes it: the one size that has this value, or digits.
static Str size_named(Build *b, int64_t n) {
    Str found = S("");
    for (int i = 0; i < b->file->n && n > 1; i++) {
        const Binding *bind = b->file->bind[i];
        if (!bind->decl || bind->decl->kind != S_SIZE || bind->decl->by_layer || bind->progress != DONE) continue;
        if (bind->value.num != (double) n) continue;
        if (found.n) return str_fmt(b->a, "%lld", (long long) n); // two have it
        found = bind->name;
    }
    return found.n ? found : n == b->vocab ? S("vocab") : str_fmt(b->a, "%lld", (long long) n);
}

// The line that would bind a tensor which nothing binds.
const char *hint_binding(Build *b, const GgufTensor *t) {
    Str ending, base = base_name(t->name, &ending);
    for (int i = 0; i < b->n_tensor; i++)
        for (int j = 0; j < b->tensor[i]->n_source; j++)
            if (str_is(ending, "bias") && str_eq(b->tensor[i]->source[j].name, base)) {
                const Stmt *d = b->tensor[i]->decl;
                Str text = span(d->src, d->pos, d->end);
                return str_z(b->a, str_fmt(b->a, "'+ bias' on the line '%.*s' would bind it", FMT(text)));
            }
    Out shape = out_new(b->a);
    if (t->n_dims == 2 && str_is(ending, "weight")) {
        Str in = size_named(b, t->ne[0]), result = size_named(b, t->ne[1]);
        out(&shape, "%.*s -> %.*s", FMT(in), FMT(result));
    } else
        for (int i = t->n_dims; i-- > 0;) {
            Str n = size_named(b, t->ne[i]);
            out(&shape, "%s%.*s", i == t->n_dims - 1 ? "" : ", ", FMT(n));
        }
    Str text = out_text(&shape);
    return str_z(b->a,
        str_fmt(b->a, "a line 'tensor %s : %.*s' %s the description would bind it", str_show(b->a, base), FMT(text),
            str_starts(t->name, "blk.") ? "in the layer of" : "at the top of"));
}

// ---- numbers ----

// Where a name of a declaration gets its number: its fact, its text, or the key it was read from.
static Str origin(Build *b, Scope *s, Str name) {
    Scope *owner;
    const Binding *bind = scope_find(s, name, &owner);
    if (!bind || bind->which < 0) return S("");
    const Stmt *d = bind->decl;
    if (d && d->by_layer)
        return s->layer >= 0 && bind->layer_value && bind->layer_value[s->layer].kind == V_NUM
            ? str_fmt(b->a, "%s = %.*s", value_show(b, bind->layer_value[s->layer]),
                  FMT(span(d->src, d->expr->pos, d->expr->end)))
            : S("");
    for (int i = 0; d && d->kind <= S_FLAG && i < b->g->n_fact; i++)
        if (owner == b->file && str_eq(b->g->fact[i].name, name)) {
            const Expr *first = d->expr->kind == E_OR ? d->expr->arg[0] : NULL;
            bool absent = first && first->kind == E_NAME && key_find(b, key_full(b, first->name)) < 0;
            Str note = b->g->fact[i].note;
            return absent ? str_fmt(b->a, "%.*s; the file has no '%.*s'", FMT(note), FMT(first->name)) : note;
        }
    if (bind->progress != DONE || bind->value.kind != V_NUM) return S("");
    return str_fmt(b->a, "%s%s", value_show(b, bind->value), from_key(b, bind->value));
}

static void note_names(Build *b, Scope *s, const Expr *e, Out *o, Str *had, int *n) {
    if (!e || *n == MAX_NOTE) return;
    if (e->kind == E_NAME) {
        for (int i = 0; i < *n; i++)
            if (str_eq(had[i], e->name)) return;
        Str from = origin(b, s, e->name);
        if (!from.n) return;
        had[(*n)++] = e->name;
        out(o, "\n  %.*s: %.*s", FMT(e->name), FMT(from));
    }
    for (int i = 0; i < e->n; i++) note_names(b, s, e->arg[i], o, had, n);
}

Str hint_numbers(Build *b, Scope *s, const Expr *in, const Expr *result) {
    Out o = out_new(b->a);
    Str had[MAX_NOTE];
    int n = 0;
    note_names(b, s, in, &o, had, &n);
    note_names(b, s, result, &o, had, &n);
    return out_text(&o);
}
