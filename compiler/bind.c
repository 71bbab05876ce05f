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

// ---- shapes ---- What a declaration says is a list of groups, outer to inner: each stands for one axis of the file,
// or for as many as it has.

enum { MAX_GROUP = 8 };

static int declared_groups(Build *b, Scope *s, const Stmt *d, Layout *group) {
    int n = 0;
    if (d->in) {
        group[n++] = eval_layout(b, s, d->out);
        group[n++] = eval_layout(b, s, d->in);
        return n;
    }
    if (d->out->n > MAX_GROUP) fail_at(LOC(d->out), "a tensor has at most 4 axes");
    for (int i = 0; i < d->out->n; i++) group[n++] = eval_layout(b, s, d->out->arg[i]);
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
    Scope *owner;
    scope_find(s, fresh->fresh, &owner)->which = -1; // it stays known for fresh
}

// Does the file's shape fit; binds fresh sizes on the way.
static bool shape_fits(Build *b, Scope *s, const Layout *group, int n, const GgufTensor *t, Loc loc) {
    int64_t file[4];
    int n_file = 0, at = 0;
    for (int i = t->n_dims; i-- > 0;)
        if (t->ne[i] != 1) file[n_file++] = t->ne[i];
    for (int i = 0; i < n; i++) {
        Layout l = group[i];
        int64_t size = group_size(l, loc);
        if (size == 1) continue;
        if (size == 0) {
            int later = 0; // axes that are left for others: a fresh size of 1 has none in the file
            for (int j = i + 1; j < n; j++) later += group_size(group[j], loc) > 1;
            int64_t found = n_file - at > later ? file[at++] : 1;
            bind_fresh(b, s, l, found, loc);
        } else if (at < n_file && file[at] == size) at++;
        else
            for (int j = 0; j < l.n; j++) {
                int64_t have = 1; // the parts of a record may be an axis of their own
                for (bool more = l.axis[j].size > 1; more; more = l.axis[j].n_part && have < l.axis[j].size) {
                    if (at == n_file || file[at] > l.axis[j].size) return false;
                    have *= file[at++];
                }
                if (have != l.axis[j].size) return false;
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

static _Noreturn void shape_wrong(Build *b, Scope *s, const Stmt *d, const GgufTensor *t, const Layout *group, int n) {
    Out o = out_new(b->a), need = out_new(b->a);
    if (d->in) {
        show_layout(&o, group[n - 1], true);
        out(&o, " -> ");
        show_layout(&o, group[n - 2], true);
    }
    for (int i = 0; i < n; i++) {
        int64_t size = group[i].n ? group_size(group[i], LOC(d->out)) : 1;
        out(&need, "%s%lld", i ? ", " : ", so [", (long long) size);
        if (d->in) continue;
        out(&o, "%s", i ? ", " : "");
        show_layout(&o, group[i], true);
    }
    Str declared = span(d->src, d->in ? d->in->pos : d->out->pos, d->out->end), shown = out_text(&o),
        sizes = out_text(&need);
    fail_at(LOC(d->out), "tensor '%s' is [%s] in the file, but '%.*s' is %.*s here%.*s%s%.*s", str_show(b->a, t->name),
        file_shape(b, t), FMT(declared), FMT(shown), d->in ? (int) sizes.n : 0, sizes.p, d->in ? "]" : "",
        FMT(hint_numbers(b, s, d->in, d->out)));
}

// ---- sources ----

// The tensors that one alternative stands for: NAME, or {NAME, ..} for the parts of a record. `#` in a name: one
// tensor for each product of the stack.
static int source_names(Build *b, Scope *s, const Expr *e, Str *name) {
    if (e->kind == E_NAME) {
        name[0] = paste(b, s, e->name, LOC(e));
        return 1;
    }
    if (e->n > MAX_SOURCE) fail_at(LOC(e), "at most %d sources", MAX_SOURCE);
    for (int i = 0; i < e->n; i++) {
        if (e->arg[i]->kind != E_NAME) not_yet(LOC(e->arg[i]), "sources within sources are");
        name[i] = paste(b, s, e->arg[i]->name, LOC(e->arg[i]));
    }
    return e->n;
}

// "enc.blk.0.attn_rel_b": the whole name, without this layer's prefix.
static bool is_quoted(Str name) {
    return name.n > 1 && name.p[0] == '"';
}

// Where another declaration of this name is, the source is that tensor (tied), wherever it lives.
static int find_source(Build *b, Scope *s, Str name) {
    if (is_quoted(name)) return find_tensor(b, b->file, (Str){name.p + 1, name.n - 2});
    int i = find_tensor(b, s, name);
    if (i >= 0 || s->prefix.n == 0) return i;
    Scope *owner;
    Binding *bind = scope_find(s, name, &owner);
    return bind && bind->decl && bind->decl->kind == S_TENSOR && owner->prefix.n == 0 ? find_tensor(b, owner, name)
                                                                                      : -1;
}

// "attn_kv_b.k", "turned attn_kv_b.k": of each group of rows of a declared product those that are a part of its record,
// a stack of products; turned over, the products the other way round. -1: it is not there.
static int find_declared_part(Build *b, Scope *s, Str name, Loc loc) {
    bool turned = str_starts(name, "turned ");
    if (turned) name = (Str){name.p + 7, name.n - 7};
    size_t dot = name.n;
    while (dot > 0 && name.p[dot - 1] != '.') dot--;
    Scope *owner;
    Binding *bind = dot > 1 ? scope_find(s, (Str){name.p, dot - 1}, &owner) : NULL;
    const Stmt *d = bind ? bind->decl : NULL;
    if (!d || d->kind != S_TENSOR || !d->in || bind->which < 0 || bind->progress == IN_PROGRESS) return -1;
    Tensor *t = binding_value(b, owner, bind, loc).tensor;
    t->used = true;
    if (!t->present) return -1;
    const Axis *record = t->out.n ? &t->out.axis[t->out.n - 1] : NULL;
    if (t->stack || t->n_source != 1 || t->source[0].bias >= 0 || t->source[0].scale >= 0)
        not_yet(loc, "parts of anything but one product without a bias are");
    int64_t first = 0;
    for (int i = 0; i < record->n_part; i++) {
        int64_t rows = layout_size(record->part[i].layout, loc);
        if (str_eq(record->part[i].name, (Str){name.p + dot, name.n - dot}))
            return gguf_make(
                b->gguf, t->source[0].tensor, layout_size(t->out, loc) / record->size, first, rows, turned);
        first += rows;
    }
    fail_at(loc, "the tensor '%.*s' has no part '%.*s'", FMT(t->name), (int) (name.n - dot), name.p + dot);
}

static bool is_numbered(Str name) {
    return memchr(name.p, '#', name.n) != NULL;
}

static Str numbered(Build *b, Str name, int64_t i) {
    size_t head = (size_t) ((const char *) memchr(name.p, '#', name.n) - name.p);
    return str_fmt(
        b->a, "%.*s%lld%.*s", (int) head, name.p, (long long) i, (int) (name.n - head - 1), name.p + head + 1);
}

// One source of t: a tensor, or one for each product of the stack. false: it is not there; `lacks` is what is missing.
static bool find_part(Build *b, Scope *s, Tensor *t, int i, Str name, Str *lacks) {
    t->source[i].name = is_quoted(name) ? t->name : name; // of another layer: a kind's layers agree in the name
    t->source[i].each = NULL;
    if (!is_numbered(name)) {
        t->source[i].tensor = find_source(b, s, name);
        if (t->source[i].tensor < 0) {
            t->source[i].tensor = find_declared_part(b, s, name, t->loc);
            if (t->source[i].tensor >= 0) t->source[i].name = t->name;
        }
        *lacks = name;
        return t->source[i].tensor >= 0;
    }
    if (!t->stack) fail_at(t->loc, "a source with '#' needs a stack: tensor NAME[n] : a -> b");
    int *each = NEWN(b->a, int, t->stack);
    for (int64_t j = 0; j < t->stack; j++) {
        *lacks = numbered(b, name, j);
        each[j] = find_source(b, s, *lacks);
        if (each[j] < 0) return false;
        bool same = b->gguf->tensor[each[j]].type == b->gguf->tensor[each[0]].type;
        if (!same) fail_at(t->loc, "'%.*s' has another type than the first of its stack; they must agree", FMT(*lacks));
    }
    t->source[i].tensor = each[0];
    t->source[i].each = each;
    return true;
}

// Chooses the first alternative that is whole. false: none is; then `missing` is the name to complain about.
static bool choose_source(Build *b, Scope *s, const Stmt *d, Tensor *t, Str *missing) {
    int n_alternative = d->source ? d->source->n : 1, best = -1;
    for (int i = 0; i < n_alternative; i++) {
        Str name[MAX_SOURCE] = {t->name}, lacks = S(""), first = S("");
        int n = d->source ? source_names(b, s, d->source->arg[i], name) : 1, have = 0;
        for (int j = 0; j < n; j++) {
            if (find_part(b, s, t, j, name[j], &lacks)) have++;
            else if (!first.n) first = lacks;
        }
        t->n_source = n;
        if (have == n) return true;
        if (have > best) best = have, *missing = first;
    }
    return false;
}

static _Noreturn void tensor_missing(Build *b, Scope *s, const Stmt *d, Str missing, Loc loc) {
    Str full = str_fmt(b->a, "%.*s%.*s.weight", FMT(s->prefix), FMT(missing));
    Str name[MAX_SOURCE];
    for (int i = 0; d->source && i < d->source->n; i++) // its other sources are not misspellings of this one
        for (int n = source_names(b, s, d->source->arg[i], name), j = 0; j < n; j++) {
            int other = find_source(b, s, name[j]);
            if (other >= 0) b->tensor_used[other] = 1;
        }
    const char *several = d->source && d->source->n > 1 ? ", nor any of the alternatives" : "";
    fail_at(loc, "the file has no tensor '%s'%s%s", str_show(b->a, full), several, hint_tensor(b, s, full));
}

// A size that a tensor brings.
static bool is_fresh(Scope *s, const Expr *e) {
    Scope *owner;
    if (e && e->kind == E_LIST && e->n == 1) e = e->arg[0];
    const Binding *bind = e && e->kind == E_NAME ? scope_find(s, e->name, &owner) : NULL;
    return bind && bind->which < 0;
}

// Synth: the last alternative that is tensors of its own, not one for each product of a stack, made as declared.
static void synth_sources(Build *b, Scope *s, const Stmt *d, const Tensor *t, const Layout *group, int n_group) {
    Str name[MAX_SOURCE] = {t->name};
    int n = 1, n_tied = 0, n_all = d->source ? d->source->n : 0;
    bool own = false; // one alternative has the declared name: what does not begin like it is another's tensor
    for (int i = 0; i < n_all; i++)
        own |= d->source->arg[i]->kind == E_NAME && str_eq(d->source->arg[i]->name, d->name[0]);
    for (int i = 0; i < n_all; i++) // made of a tensor that is there
        if (d->source->arg[i]->kind == E_NAME && find_declared_part(b, s, d->source->arg[i]->name, t->loc) >= 0) return;
    int chosen = n_all;
    for (int i = 0; i < n_all; i++)
        if (d->source->arg[i]->kind == E_NAME && synth_chosen(b, d->source->arg[i]->name)) chosen = i + 1, own = false;
    for (int i = chosen; i-- > 0;) {
        const Expr *e = d->source->arg[i];
        bool other = e->kind == E_NAME && !str_eq(e->name, d->name[0]);
        bool tied =
            other && (find_source(b, s, e->name) >= 0 || (own && !str_starts(e->name, str_z(b->a, d->name[0]))));
        n = tied ? 0 : source_names(b, s, e, name);
        if (n && !is_numbered(name[0])) break;
        n_tied += tied;
        n = 1, name[0] = t->name;
    }
    if (d->source && n_tied == d->source->n) return; // always another tensor
    for (int j = 0; j < n; j++) {
        int64_t ne[4] = {1, 1, 1, 1};
        int n_dims = 0;
        for (int i = n_group; i-- > 0;) {
            Layout l = group[i];
            if (n > 1 && i == 0 && l.n == 1 && j < l.axis[0].n_part) l = l.axis[0].part[j].layout;
            int64_t size = 1;
            for (int k = 0; k < l.n; k++)
                size *= l.axis[k].size ? l.axis[k].size : synth_fresh(b, l.axis[k].fresh, l.n == 1);
            if (n_dims < 4) ne[n_dims++] = size;
        }
        if (t->stack && n_dims < 4) ne[n_dims++] = t->stack;
        bool demanded = !d->optional || is_fresh(s, d->in); // what reads a size of another tensor's is its other half
        const char *ending = synth_bare(b, name[j]) ? "" : ".weight";
        Str full = str_fmt(b->a, "%.*s%.*s%s", FMT(s->prefix), FMT(name[j]), ending);
        synth_tensor(b, full, n_dims, ne, demanded);
        if (d->ids) synth_ids(b, full, t->ids);
        if (d->bias != BIAS_NONE)
            synth_tensor(b, str_fmt(b->a, "%.*s%.*s.bias", FMT(s->prefix), FMT(name[j])), n_dims > 1 ? n_dims - 1 : 1,
                &ne[n_dims > 1 ? 1 : 0], demanded && d->bias == BIAS_ALWAYS);
    }
}

// NAME.bias of a source: as many numbers as it has outputs; of data that is weights of a convolution, `rows`.
static int bind_bias(Build *b, Scope *s, const Stmt *d, Str name, int64_t size, int64_t rows, Loc loc) {
    if (d->bias == BIAS_NONE) return -1;
    Str full = str_fmt(b->a, "%.*s%.*s.bias", FMT(s->prefix), FMT(name));
    int i = find_exact(b, full);
    if (i < 0 && d->bias == BIAS_MAYBE) return -1;
    if (i < 0) fail_at(loc, "the file has no tensor '%s'; this line says '+ bias'", str_show(b->a, full));
    const GgufTensor *t = &b->gguf->tensor[i];
    if ((int64_t) t->n_elems != size && (int64_t) t->n_elems != rows)
        fail_at(loc, "tensor '%s' is [%s] in the file; %lld numbers were expected, one for each output of '%.*s'%.*s",
            str_show(b->a, t->name), file_shape(b, t), (long long) size, FMT(name),
            FMT(hint_numbers(b, s, NULL, d->out)));
    b->tensor_used[i] = 1;
    return i;
}

// NAME.scale of a source, where it has one number for each product; any other is a tensor of its own.
static int bind_scale(Build *b, Scope *s, const Tensor *t, Str name) {
    int i = find_exact(b, str_fmt(b->a, "%.*s%.*s.scale", FMT(s->prefix), FMT(name)));
    if (i < 0 || !t->decl->in || b->gguf->tensor[i].n_elems != (uint64_t) (t->stack ? t->stack : 1)) return -1;
    b->tensor_used[i] = 1;
    return i;
}

// NAME.input_scale: what other engines round this product's input with, before they multiply; here it is not rounded
// that way.
static void skip_input_scale(Build *b, Scope *s, Str name) {
    int i = find_exact(b, str_fmt(b->a, "%.*s%.*s.input_scale", FMT(s->prefix), FMT(name)));
    if (i < 0) return;
    b->tensor_used[i] = 1;
    ignored(b, S("*.input_scale"), S("how other engines round the input of a product"));
}

// Several sources: one for each part of the record that is made.
static Layout part_layout(const Layout *group, int n_source, int i, Loc loc) {
    Layout whole = group[0];
    if (n_source == 1) return whole;
    if (whole.n != 1 || whole.axis[0].n_part != n_source)
        fail_at(loc, "%d sources need a record of %d parts, one for each, like {a: .., b: ..}", n_source, n_source);
    return whole.axis[0].part[i].layout;
}

// A stack whose products lie behind each other on the axis of their outputs.
static bool outputs_in_one(Build *b, Scope *s, const Layout *group, int n, const GgufTensor *t, Loc loc) {
    Layout joined[MAX_GROUP];
    Axis one = {.size = group_size(group[0], loc) * group_size(group[1], loc)};
    memcpy(joined, group + 1, sizeof *group * (size_t) (n - 1));
    joined[0] = (Layout){1, &one};
    return one.size > 0 && shape_fits(b, s, joined, n - 1, t, loc);
}

// Source i against its part of the declared shape; its bias and scale.
static void bind_source(Build *b, Scope *s, const Stmt *d, Tensor *t, int i, const Layout *group, int n) {
    Layout part[MAX_GROUP + 1];
    Axis stack = {.size = t->stack};
    bool merged = t->stack && !t->source[i].each;
    part[0] = (Layout){1, &stack};
    memcpy(part + 1, group, sizeof *group * (size_t) n);
    part[1] = part_layout(group, t->n_source, i, t->loc);
    const Layout *shape = merged ? part : part + 1;
    int n_shape = merged ? n + 1 : n;
    for (int64_t j = 0; j < (t->source[i].each ? t->stack : 1); j++) {
        int tensor = t->source[i].each ? t->source[i].each[j] : t->source[i].tensor;
        const GgufTensor *file = &b->gguf->tensor[tensor];
        bool fits = shape_fits(b, s, shape, n_shape, file, LOC(d->out));
        if (!fits && merged) fits = outputs_in_one(b, s, shape, n_shape, file, LOC(d->out));
        if (!fits) shape_wrong(b, s, d, file, shape, n_shape);
        if (tensor < b->gguf->n_tensor) b->tensor_used[tensor] = 1; // else made of one that is
    }
    const GgufTensor *file = &b->gguf->tensor[t->source[i].tensor];
    int64_t outputs = d->in ? layout_size(part[1], t->loc) * (merged ? t->stack : 1) : (int64_t) file->n_elems;
    if (t->source[i].each && d->bias == BIAS_ALWAYS)
        not_yet(t->loc, "biases of products stacked from one tensor each are");
    int64_t rows = d->in ? outputs : outputs / file->ne[0];
    t->source[i].bias = t->source[i].each ? -1 : bind_bias(b, s, d, t->source[i].name, outputs, rows, t->loc);
    t->source[i].scale = t->source[i].each ? -1 : bind_scale(b, s, t, t->source[i].name);
    skip_input_scale(b, s, t->source[i].name);
}

// A table of ids: whole numbers, none of them outside of what they choose from.
static void check_ids(Build *b, const Tensor *t) {
    const GgufTensor *file = &b->gguf->tensor[t->source[0].tensor];
    if (file->type != type_named(S("I32"))->id)
        fail_at(t->loc, "tensor '%s' is of type %s in the file; ids are I32", str_show(b->a, file->name),
            type_info(file->type)->name);
    for (uint64_t i = 0; i < file->n_elems && !b->synth; i++) {
        int32_t id;
        memcpy(&id, file->data + i * 4, 4);
        if (id < 0 || id >= t->ids)
            fail_at(t->loc, "tensor '%s' holds the id %d; 0 to %lld were expected", str_show(b->a, file->name), id,
                (long long) t->ids - 1);
    }
}

Tensor *tensor_bind(Build *b, Scope *s, const Stmt *d, int which) {
    Tensor *t = NEW(b->a, Tensor);
    Loc loc = loc_at(d->src, d->at[which]);
    *t = (Tensor){.decl = d, .loc = loc, .name = paste(b, s, d->name[which], loc)};
    if (d->index) {
        t->stack = eval_size(b, s, d->index, "the number of products");
        if (!d->in) fail_at(LOC(d->index), "a stack is of products: tensor NAME[n] : a -> b");
        if (t->stack < 1 || t->stack > 65536)
            fail_at(LOC(d->index), "a stack of %lld products; 1 to 65536 were expected", (long long) t->stack);
    }
    if (d->ids) {
        t->ids = eval_size(b, s, d->ids, "what ids stay below");
        if (d->in || t->ids < 1 || t->ids > 1 << 24) fail_at(LOC(d->ids), "a table of ids holds 0 .. n - 1, n to 2^24");
    }
    Layout group[MAX_GROUP];
    int n = declared_groups(b, s, d, group);
    Str missing = S("");
    if (b->synth) synth_sources(b, s, d, t, group, n);
    t->present = choose_source(b, s, d, t, &missing);
    *PUSH(b->a, b->tensor, b->n_tensor, b->cap_tensor) = t;
    if (!t->present && !d->optional) tensor_missing(b, s, d, missing, loc);
    if (!t->present) {
        t->n_source = 0;
        return t;
    }
    for (int i = 0; i < t->n_source; i++) bind_source(b, s, d, t, i, group, n);
    if (d->ids) check_ids(b, t);
    if (d->source && d->source->n > 1 && t->n_source == 1 && s->layer < 0 && !str_eq(t->source[0].name, t->name))
        fact(b, t->name,
            d->comment.n ? str_fmt(b->a, "'%.*s' (%.*s)", FMT(t->source[0].name), FMT(d->comment))
                         : str_fmt(b->a, "'%.*s'", FMT(t->source[0].name)));
    if (d->in) t->in = group[1];
    t->out = (Layout){0, NULL};
    int cap = 0;
    for (int i = 0; i < (d->in ? 1 : n); i++)
        for (int j = 0; j < group[i].n; j++) *PUSH(b->a, t->out.axis, t->out.n, cap) = group[i].axis[j];
    return t;
}

// ---- weights of the stage ----

// The weight that is tensor `file` (of a stack: `each`, or one for all); data has the shape of `layout`.
static int weight_add(
    Build *b, Str name, int tensor, const int *each, int64_t stack, Layout layout, bool product, bool exact, Loc loc) {
    Stage *st = &b->g->stage[b->stage];
    for (int i = 0; i < st->n_weight; i++)
        if (st->weight[i].tensor[0] == tensor && st->weight[i].stack == stack) {
            st->weight[i].exact |= exact;
            return i;
        }
    const GgufTensor *file = &b->gguf->tensor[tensor];
    Weight *w = PUSH(b->a, st->weight, st->n_weight, st->cap_weight);
    int64_t in = file->ne[0], out = (int64_t) (file->n_elems / (uint64_t) in) / (stack && !each ? stack : 1);
    *w = (Weight){.name = name,
        .type = file->type,
        .exact = exact,
        .n_part = 1,
        .interleave = 1,
        .stack = stack,
        .apart = each != NULL};
    w->shape = !product ? layout_shape(layout, loc)
        : stack         ? (Shape){.n = 3, .d = {stack, out, in}}
                        : (Shape){.n = 2, .d = {out, in}};
    if (!product && file->ne[0] == (int64_t) file->n_elems)
        in = shape_last(w->shape), out = (int64_t) file->n_elems / in; // flat in the file
    w->in = in, w->out = out;
    int n = (int) (each ? stack : 1);
    w->tensor = NEWN(b->a, int, n);
    for (int i = 0; i < n; i++) w->tensor[i] = each ? each[i] : tensor;
    w->part_out = NEW(b->a, int64_t);
    w->part_out[0] = out;
    return st->n_weight - 1;
}

int weight_of(Build *b, const Tensor *t, int source, bool product) {
    return weight_add(b, t->source[source].name, t->source[source].tensor, t->source[source].each,
        product ? t->stack : 0, t->out, product, t->decl->exact, t->loc);
}

// Of a stack: a table, one row for each product.
static Layout stacked(Build *b, const Tensor *t, int64_t width) {
    Layout l = {2, NEWN(b->a, Axis, 2)};
    l.axis[0].size = t->stack;
    l.axis[1].size = width;
    return l;
}

int bias_of(Build *b, const Tensor *t, int source) {
    Layout l = t->n_source > 1 ? t->out.axis[0].part[source].layout : t->out;
    if (t->stack) l = stacked(b, t, layout_size(l, t->loc));
    else if (!t->decl->in && layout_size(l, t->loc) != (int64_t) b->gguf->tensor[t->source[source].bias].n_elems) l.n--;
    Str name = str_fmt(b->a, "%.*s.bias", FMT(t->source[source].name));
    return weight_add(b, name, t->source[source].bias, NULL, 0, l, false, false, t->loc);
}

int scale_of(Build *b, const Tensor *t, int source) {
    Axis one = {.size = 1};
    Str name = str_fmt(b->a, "%.*s.scale", FMT(t->source[source].name));
    return weight_add(b, name, t->source[source].scale, NULL, 0, t->stack ? stacked(b, t, 1) : (Layout){1, &one}, false,
        false, t->loc);
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
    const char *prefix = str_z(b->a, str_fmt(b->a, "%.*s.", FMT(st->prefix)));
    size_t skip = strlen(prefix);
    for (int i = 0; i < b->gguf->n_tensor; i++) {
        Str name = b->gguf->tensor[i].name;
        if (!str_starts(name, prefix)) continue;
        char digits[20] = {0};
        memcpy(digits, name.p + skip, name.n - skip < 18 ? name.n - skip : 18);
        char *end;
        long long l = strtoll(digits, &end, 10);
        if (end > digits && *end == '.' && l >= from && l < to) b->tensor_used[i] = 1;
    }
    const char *at = str_is(st->prefix, "blk") ? "" : str_z(b->a, str_fmt(b->a, " at %.*s", FMT(st->prefix)));
    if (to > from)
        ignored(b, str_fmt(b->a, "layers %lld .. %lld%s", (long long) from, (long long) to, at), st->comment);
}

void ignore(Build *b, Scope *s, const Stmt *st) {
    if (st->to) {
        ignore_layers(b, s, st);
        return;
    }
    for (int i = 0; i < st->n_name; i++) {
        Str name = paste(b, s, st->name[i], loc_at(st->src, st->at[i]));
        bool quoted = st->src->text.p[st->at[i]] == '"';
        Str full = quoted ? name : key_full(b, name);
        if (b->synth) synth_unread(b, full);
        int key = key_find(b, full);
        if (key >= 0 && s == b->library && b->key_used[key]) continue; // about what no other line reads
        if (key >= 0) b->key_used[key] = 1;
        Str tensor = str_fmt(b->a, "%.*s%.*s", FMT(s->prefix), FMT(name));
        if (b->synth) synth_ignored(b, tensor);
        bool there = mark_tensor(b, tensor);
        if (there || key >= 0) ignored(b, name, st->comment);
    }
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
        hint_binding(b, first), str_show(b->a, first->name));
}

// What a file may lack it lacks in all layers, mostly. Where only some have it, that is a fact; of a bias it is news.
static void partial(Build *b, const Tensor *t, int source) {
    int of = 0, have = 0;
    for (int i = 0; i < b->n_tensor; i++) {
        const Tensor *other = b->tensor[i];
        if (other->decl != t->decl || !str_eq(other->name, t->name)) continue;
        if (!of && other != t && (source < 0 || other->present)) return; // done for the first of them
        if (source >= 0 && !other->present) continue;
        of++;
        have += source < 0 ? other->present : other->source[source].bias >= 0;
    }
    if (!have || have == of) return;
    Str name = source < 0 ? t->name : str_fmt(b->a, "%.*s.bias", FMT(t->source[source].name));
    Str text = str_fmt(b->a, "in %d of %d layers", have, of);
    fact(b, name, text);
    if (source >= 0 && !b->synth) note("note: %s: '%.*s' is %.*s", b->gguf->path, FMT(name), FMT(text));
}

void used_check(Build *b) {
    for (int i = 0; i < b->n_tensor; i++) {
        const Tensor *t = b->tensor[i];
        if (t->decl->optional) partial(b, t, -1);
        for (int j = 0; t->decl->bias == BIAS_MAYBE && j < t->n_source; j++) partial(b, t, j);
    }
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
