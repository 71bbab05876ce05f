// The file's tensors, as a description declares them. In: a declaration reached in some layer. Out: which tensors of
// the file it is (one, or one for each part of a record), checked against the declared shape, with biases; and, at the
// end, that every tensor of the file was bound or ignored and every declared one was used.
#include "eval.h"

#include <stdlib.h>
#include <string.h>

// ---- finding ----

static int find_exact(const Build *b, Str name) {
    if (!b->synth) {
        const GgufTensor *t = gguf_tensor(b->gguf, name);
        return t ? (int) (t - b->gguf->tensor) : -1;
    }
    for (int i = 0; i < b->gguf->n_tensor; i++)
        if (str_eq(b->gguf->tensor[i].name, name)) return i;
    return -1;
}

// NAME.weight, or NAME where that is what the file has.
static int find_tensor(const Build *b, const Scope *s, Str name) {
    int i = find_exact(b, str_fmt(b->a, "%.*s%.*s.weight", FMT(s->prefix), FMT(name)));
    return i >= 0 ? i : find_exact(b, str_fmt(b->a, "%.*s%.*s", FMT(s->prefix), FMT(name)));
}

static const char *file_shape(Build *b, const GgufTensor *t) {
    Out o = out_new(b->a);
    for (int i = t->n_dims; i-- > 0;) out(&o, "%s%lld", i == t->n_dims - 1 ? "" : ", ", (long long) t->ne[i]);
    return str_z(b->a, out_text(&o));
}

// ---- shapes ---- What a declaration says is a list of groups, outer to inner: each stands for one axis of the file,
// or for as many as it has.

typedef struct {
    Layout l;
    bool product_side;
} Group;

enum { MAX_GROUP = 8 };

static int declared_groups(Build *b, Scope *s, const Stmt *d, Group *group) {
    int n = 0;
    if (d->in) {
        group[n++] = (Group){eval_layout(b, s, d->out), true};
        group[n++] = (Group){eval_layout(b, s, d->in), true};
        return n;
    }
    if (d->out->n > MAX_GROUP) fail_at(LOC(d->out), "a tensor has at most 4 axes");
    for (int i = 0; i < d->out->n; i++) group[n++] = (Group){eval_layout(b, s, d->out->arg[i]), false};
    return n;
}

static int64_t group_size(Layout l, Loc loc) {
    for (int i = 0; i < l.n; i++)
        if (l.axis[i].size == 0) return 0; // fresh
    return layout_size(l, loc);
}

// A fresh size takes what the file has.
static void bind_fresh(Build *b, Scope *s, Layout l, int64_t size, Loc loc) {
    int64_t known = 1;
    Axis *fresh = NULL;
    for (int i = 0; i < l.n; i++) {
        if (l.axis[i].size) known *= l.axis[i].size;
        else if (fresh) fail_at(loc, "two fresh sizes on one axis of the file cannot be told apart");
        else fresh = &l.axis[i];
    }
    if (size % known)
        fail_at(loc, "the file's axis of %lld is not a multiple of %lld", (long long) size, (long long) known);
    fresh->size = size / known;
    scope_bind(b, s, fresh->fresh, NUM((double) fresh->size));
}

// Does the file's shape fit; binds fresh sizes on the way.
static bool shape_fits(Build *b, Scope *s, const Group *group, int n, const GgufTensor *t, Loc loc) {
    int64_t file[4];
    int n_file = 0, at = 0;
    for (int i = t->n_dims; i-- > 0;)
        if (t->ne[i] != 1) file[n_file++] = t->ne[i];
    for (int i = 0; i < n; i++) {
        Layout l = group[i].l;
        int64_t size = group_size(l, loc);
        if (size == 1) continue;
        if (size == 0) {
            int64_t found = at < n_file ? file[at++] : 1;
            bind_fresh(b, s, l, found, loc);
        } else if (at < n_file && file[at] == size) at++;
        else
            for (int j = 0; j < l.n; j++) {
                if (l.axis[j].size == 1) continue;
                if (at == n_file || file[at++] != l.axis[j].size) return false;
            }
    }
    return at == n_file;
}

static void show_layout(Out *o, Layout l, bool bracket) {
    if (bracket && l.n != 1) out(o, "[");
    for (int i = 0; i < l.n; i++) {
        out(o, "%s", i ? ", " : "");
        if (!l.axis[i].n_part) out(o, "%lld", (long long) l.axis[i].size);
        else {
            for (int j = 0; j < l.axis[i].n_part; j++) {
                out(o, "%s%.*s: ", j ? ", " : "{", FMT(l.axis[i].part[j].name));
                show_layout(o, l.axis[i].part[j].layout, true);
            }
            out(o, "}");
        }
    }
    if (bracket && l.n != 1) out(o, "]");
}

static _Noreturn void shape_wrong(Build *b, const Stmt *d, const GgufTensor *t, const Group *group, int n) {
    Out o = out_new(b->a);
    if (d->in) {
        show_layout(&o, group[1].l, true);
        out(&o, " -> ");
        show_layout(&o, group[0].l, true);
    } else
        for (int i = 0; i < n; i++) {
            out(&o, "%s", i ? ", " : "");
            show_layout(&o, group[i].l, true);
        }
    Str declared = span(d->src, d->in ? d->in->pos : d->out->pos, d->out->end), shown = out_text(&o);
    int64_t ne[2] = {group[n - 1].l.n ? group_size(group[n - 1].l, LOC(d->out)) : 1,
        n > 1 ? group_size(group[0].l, LOC(d->out)) : 1};
    const char *need =
        d->in ? str_z(b->a, str_fmt(b->a, ", so [%lld, %lld]", (long long) ne[1], (long long) ne[0])) : "";
    fail_at(LOC(d->out), "tensor '%s' is [%s] in the file, but '%.*s' is %.*s here%s", str_show(b->a, t->name),
        file_shape(b, t), FMT(declared), FMT(shown), need);
}

// ---- sources ----

// The tensors that one alternative stands for: NAME, or {NAME, ..} for the parts of a record.
static int source_names(Build *b, Scope *s, const Expr *e, Str *name) {
    if (e->kind == E_NAME) {
        if (e->op == '#') not_yet(LOC(e), "products stacked from one tensor each (experts) are");
        name[0] = paste(b, s, e->name, LOC(e));
        return 1;
    }
    if (e->n > MAX_SOURCE) fail_at(LOC(e), "at most %d sources", MAX_SOURCE);
    for (int i = 0; i < e->n; i++) {
        if (e->arg[i]->kind != E_NAME || e->arg[i]->op == '#') not_yet(LOC(e->arg[i]), "sources within sources are");
        name[i] = paste(b, s, e->arg[i]->name, LOC(e->arg[i]));
    }
    return e->n;
}

// Where another declaration of this name is, the source is that tensor (tied), wherever it lives.
static int find_source(Build *b, Scope *s, Str name) {
    int i = find_tensor(b, s, name);
    if (i >= 0 || s->prefix.n == 0) return i;
    Scope *owner;
    Binding *bind = scope_find(s, name, &owner);
    return bind && bind->decl && bind->decl->kind == S_TENSOR && owner->prefix.n == 0 ? find_tensor(b, owner, name)
                                                                                      : -1;
}

// Chooses the first alternative that is whole. -1: none is; then `missing` is the name to complain about.
static int choose_source(Build *b, Scope *s, const Stmt *d, Str own, Str *name, int *tensor, Str *missing) {
    int n_alternative = d->source ? d->source->n : 1, best = -1;
    for (int i = 0; i < n_alternative; i++) {
        int n = 1, have = 0;
        Str lacks = S("");
        if (d->source) n = source_names(b, s, d->source->arg[i], name);
        else name[0] = own;
        for (int j = 0; j < n; j++) {
            tensor[j] = find_source(b, s, name[j]);
            if (tensor[j] >= 0) have++;
            else if (!lacks.n) lacks = name[j];
        }
        if (have == n) return n;
        if (have > best) best = have, *missing = lacks;
    }
    return -1;
}

static _Noreturn void tensor_missing(Build *b, Scope *s, const Stmt *d, Str missing, Loc loc) {
    const GgufTensor *near = NULL;
    Str full = str_fmt(b->a, "%.*s%.*s.weight", FMT(s->prefix), FMT(missing));
    Str name[MAX_SOURCE];
    for (int i = 0; d->source && i < d->source->n; i++) // its other sources are not misspellings of this one
        for (int n = source_names(b, s, d->source->arg[i], name), j = 0; j < n; j++) {
            int other = find_source(b, s, name[j]);
            if (other >= 0) b->tensor_used[other] = 1;
        }
    int least = 4;
    for (int i = 0; i < b->gguf->n_tensor; i++) {
        Str other = b->gguf->tensor[i].name;
        int far = edit_distance(full, other);
        bool same_layer = str_starts(other, str_z(b->a, s->prefix));
        if (far < least && same_layer && !b->tensor_used[i]) least = far, near = &b->gguf->tensor[i];
    }
    const char *hint = near ? str_z(b->a, str_fmt(b->a, "; it does have '%s'", str_show(b->a, near->name))) : "";
    const char *several = d->source && d->source->n > 1 ? ", nor any of the alternatives" : "";
    fail_at(loc, "the file has no tensor '%s'%s%s", str_show(b->a, full), several, hint);
}

// Synth: the last alternative that is tensors of its own, made as declared.
static void synth_sources(Build *b, Scope *s, const Stmt *d, Str own, const Group *group, int n_group, bool demanded) {
    Str name[MAX_SOURCE] = {own};
    int n = 1;
    for (int i = d->source ? d->source->n : 0; i-- > 0;) {
        const Expr *e = d->source->arg[i];
        bool tied = e->kind == E_NAME && !str_eq(e->name, d->name[0]) && find_source(b, s, e->name) >= 0;
        if (tied || (e->kind == E_NAME && e->op == '#')) continue;
        n = source_names(b, s, e, name);
        break;
    }
    for (int j = 0; j < n; j++) {
        int64_t ne[4] = {1, 1, 1, 1};
        int n_dims = 0;
        for (int i = n_group; i-- > 0;) {
            Layout l = group[i].l;
            if (n > 1 && i == 0 && l.n == 1 && j < l.axis[0].n_part) l = l.axis[0].part[j].layout;
            for (int k = 0; k < l.n; k++)
                if (!l.axis[k].size) l.axis[k].size = 16;
            if (n_dims < 4) ne[n_dims++] = layout_size(l, LOC(d->out));
        }
        synth_tensor(b, str_fmt(b->a, "%.*s%.*s.weight", FMT(s->prefix), FMT(name[j])), n_dims, ne, demanded);
        if (d->bias != BIAS_NONE)
            synth_tensor(b, str_fmt(b->a, "%.*s%.*s.bias", FMT(s->prefix), FMT(name[j])), 1, &ne[n_dims > 1 ? 1 : 0],
                demanded && d->bias == BIAS_ALWAYS);
    }
}

// NAME.bias of a source: as many numbers as it has outputs.
static int bind_bias(Build *b, Scope *s, const Stmt *d, Str name, int64_t size, Loc loc) {
    if (d->bias == BIAS_NONE) return -1;
    Str full = str_fmt(b->a, "%.*s%.*s.bias", FMT(s->prefix), FMT(name));
    int i = find_exact(b, full);
    if (i < 0 && d->bias == BIAS_MAYBE) return -1;
    if (i < 0) fail_at(loc, "the file has no tensor '%s'; this line says '+ bias'", str_show(b->a, full));
    const GgufTensor *t = &b->gguf->tensor[i];
    if ((int64_t) t->n_elems != size)
        fail_at(loc, "tensor '%s' is [%s] in the file; %lld numbers were expected", str_show(b->a, t->name),
            file_shape(b, t), (long long) size);
    b->tensor_used[i] = 1;
    return i;
}

// Several sources: one for each part of the record that is made.
static Layout part_layout(const Group *group, int n_source, int i, Loc loc) {
    Layout whole = group[0].l;
    if (n_source == 1) return whole;
    if (whole.n != 1 || whole.axis[0].n_part != n_source)
        fail_at(loc, "%d sources need a record of %d parts, one for each, like {a: .., b: ..}", n_source, n_source);
    return whole.axis[0].part[i].layout;
}

Tensor *tensor_bind(Build *b, Scope *s, const Stmt *d, int which) {
    Tensor *t = NEW(b->a, Tensor);
    Loc loc = loc_at(d->src, d->at[which]);
    *t = (Tensor){.decl = d, .loc = loc, .name = paste(b, s, d->name[which], loc)};
    if (d->index) not_yet(LOC(d->index), "stacks of products (experts) are");
    Group group[MAX_GROUP];
    int n = declared_groups(b, s, d, group);
    Str name[MAX_SOURCE], missing = S("");
    int tensor[MAX_SOURCE];
    if (b->synth) synth_sources(b, s, d, t->name, group, n, !d->optional);
    int n_source = choose_source(b, s, d, t->name, name, tensor, &missing);
    *PUSH(b->a, b->tensor, b->n_tensor, b->cap_tensor) = t;
    if (n_source < 0 && !d->optional) tensor_missing(b, s, d, missing, loc);
    if (n_source < 0) return t;
    t->present = true;
    t->n_source = n_source;
    for (int i = 0; i < n_source; i++) {
        const GgufTensor *file = &b->gguf->tensor[tensor[i]];
        Group part[MAX_GROUP];
        memcpy(part, group, sizeof part);
        part[0].l = part_layout(group, n_source, i, loc);
        if (!shape_fits(b, s, part, n, file, LOC(d->out))) shape_wrong(b, d, file, part, n);
        b->tensor_used[tensor[i]] = 1;
        t->source[i].name = name[i];
        t->source[i].tensor = tensor[i];
        int64_t outputs = d->in ? layout_size(part[0].l, loc) : (int64_t) file->n_elems;
        t->source[i].bias = bind_bias(b, s, d, name[i], outputs, loc);
    }
    if (d->in) t->in = group[1].l;
    t->out = (Layout){0, NULL};
    int cap = 0;
    for (int i = 0; i < (d->in ? 1 : n); i++)
        for (int j = 0; j < group[i].l.n; j++) *PUSH(b->a, t->out.axis, t->out.n, cap) = group[i].l.axis[j];
    return t;
}

// ---- weights of the stage ----

static int weight_add(Build *b, Str name, int tensor, Layout layout, bool product, bool exact, Loc loc) {
    Stage *st = &b->g->stage[b->stage];
    for (int i = 0; i < st->n_weight; i++)
        if (st->weight[i].tensor[0] == tensor) {
            st->weight[i].exact |= exact;
            return i;
        }
    const GgufTensor *file = &b->gguf->tensor[tensor];
    Weight *w = PUSH(b->a, st->weight, st->n_weight, st->cap_weight);
    int64_t in = file->ne[0], out = (int64_t) (file->n_elems / (uint64_t) in);
    *w = (Weight){.name = name, .type = file->type, .exact = exact, .n_part = 1, .interleave = 1};
    w->shape = product ? (Shape){.n = 2, .d = {out, in}} : layout_shape(layout, loc);
    if (!product && file->ne[0] == (int64_t) file->n_elems)
        in = shape_last(w->shape), out = (int64_t) file->n_elems / in; // flat in the file
    w->in = in, w->out = out;
    w->tensor = NEW(b->a, int);
    w->tensor[0] = tensor;
    w->part_out = NEW(b->a, int64_t);
    w->part_out[0] = out;
    return st->n_weight - 1;
}

int weight_of(Build *b, const Tensor *t, int source, bool product) {
    return weight_add(b, t->source[source].name, t->source[source].tensor, t->out, product, t->decl->exact, t->loc);
}

int bias_of(Build *b, const Tensor *t, int source) {
    Layout l = t->n_source > 1 ? t->out.axis[0].part[source].layout : t->out;
    Str name = str_fmt(b->a, "%.*s.bias", FMT(t->source[source].name));
    return weight_add(b, name, t->source[source].bias, l, false, false, t->loc);
}

// ---- ignored, and none left over ----

static bool mark_tensor(Build *b, Str name) {
    static const char *const endings[] = {"", ".weight", ".bias"};
    bool any = false;
    for (int i = 0; i < COUNT(endings); i++) {
        int t = find_exact(b, str_fmt(b->a, "%.*s%s", FMT(name), endings[i]));
        if (t >= 0) b->tensor_used[t] = 1, any = true;
    }
    return any;
}

static void ignore_layers(Build *b, Scope *s, const Stmt *st) {
    int64_t from = eval_size(b, s, st->from, "the first layer"), to = eval_size(b, s, st->to, "the end of the layers");
    for (int i = 0; i < b->gguf->n_tensor; i++) {
        Str name = b->gguf->tensor[i].name;
        if (!str_starts(name, "blk.")) continue;
        char digits[20] = {0};
        memcpy(digits, name.p + 4, name.n - 4 < 18 ? name.n - 4 : 18);
        char *end;
        long long l = strtoll(digits, &end, 10);
        if (end > digits && *end == '.' && l >= from && l < to) b->tensor_used[i] = 1;
    }
    if (to > from) ignored(b, str_fmt(b->a, "layers %lld .. %lld", (long long) from, (long long) to), st->comment);
}

void ignore(Build *b, Scope *s, const Stmt *st) {
    if (st->to) {
        ignore_layers(b, s, st);
        return;
    }
    for (int i = 0; i < st->n_name; i++) {
        Str name = paste(b, s, st->name[i], loc_at(st->src, st->at[i]));
        bool quoted = st->src->text.p[st->at[i]] == '"';
        int key = key_find(b, quoted ? name : key_full(b, name));
        if (key >= 0) b->key_used[key] = 1;
        bool there = mark_tensor(b, str_fmt(b->a, "%.*s%.*s", FMT(s->prefix), FMT(name)));
        if (there || key >= 0) ignored(b, name, st->comment);
    }
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

// The line that would bind a tensor which nothing binds.
static const char *would_bind(Build *b, const GgufTensor *t) {
    Str ending, base = base_name(t->name, &ending);
    for (int i = 0; i < b->n_tensor; i++)
        for (int j = 0; j < b->tensor[i]->n_source; j++)
            if (str_is(ending, "bias") && str_eq(b->tensor[i]->source[j].name, base)) {
                const Stmt *d = b->tensor[i]->decl;
                Str text = span(d->src, d->pos, d->end);
                return str_z(b->a, str_fmt(b->a, "'+ bias' on the line '%.*s' would bind it", FMT(text)));
            }
    const char *where = str_starts(t->name, "blk.") ? "the layer" : "the file";
    if (t->n_dims == 2 && str_is(ending, "weight"))
        return str_z(b->a,
            str_fmt(b->a, "a line 'tensor %s : %lld -> %lld' in %s of the description would bind it",
                str_show(b->a, base), (long long) t->ne[0], (long long) t->ne[1], where));
    return str_z(b->a,
        str_fmt(b->a, "a line 'tensor %s : %s' in %s of the description would bind it", str_show(b->a, base),
            file_shape(b, t), where));
}

void tensors_check(Build *b) {
    for (const char *const *p = b->opt->ignore_tensor; p && *p; p++) {
        int i = find_exact(b, str(*p));
        if (i < 0) fail("--ignore-tensor %s: %s has no such tensor", *p, b->gguf->path);
        if (b->tensor_used[i])
            fail("--ignore-tensor %s: the description uses this tensor, so ignoring it would change nothing", *p);
        b->tensor_used[i] = 1;
        ignored(b, b->gguf->tensor[i].name, S("--ignore-tensor"));
    }
    Out names = out_new(b->a);
    int left = 0;
    const GgufTensor *first = NULL;
    for (int i = 0; i < b->gguf->n_tensor; i++) {
        if (b->tensor_used[i]) continue;
        if (++left == 1) first = &b->gguf->tensor[i];
        if (left <= 4) out(&names, "%s'%s'", left > 1 ? ", " : "", str_show(b->a, b->gguf->tensor[i].name));
    }
    if (!left) return;
    Str list = out_text(&names);
    fail("%s: %d tensor%s that %s neither binds nor ignores: %.*s%s\n  %s; if it cannot change the result, 'ignore' it "
         "there, or pass --ignore-tensor %s",
        b->gguf->path, left, left > 1 ? "s" : "", b->spec->src->file, FMT(list), left > 4 ? ", .." : "",
        would_bind(b, first), str_show(b->a, first->name));
}

void used_check(Build *b) {
    for (int i = 0; i < b->n_tensor; i++) {
        const Tensor *t = b->tensor[i];
        if (t->present && !t->used)
            fail_at(t->loc, "tensor '%.*s' is declared here, but nothing uses it", FMT(t->name));
    }
    for (int i = 0; i < b->n_state; i++)
        if (b->state[i]->index < 0)
            fail_at(
                b->state[i]->loc, "state '%.*s' is declared here, but nothing is put to it", FMT(b->state[i]->name));
}
