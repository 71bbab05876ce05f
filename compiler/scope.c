// Names: scopes, what a declaration is worth when it is asked for, statements, and calls of defs, which are inlined.
// Declarations may stand in any order, so they are evaluated when first asked for; those that demand something of the
// file (tensors, expects) are also evaluated where they are reached. An `if` shares the scope around it.
#include "eval.h"

#include <math.h>
#include <string.h>

enum { MAX_CALLS = 40, MAX_LOOP = 1024 };

Scope *scope_new(Build *b, Scope *parent) {
    Scope *s = NEW(b->a, Scope);
    *s = (Scope){.parent = parent, .layer = -1, .index_l = -1, .prefix = S("")};
    if (parent) s->prefix = parent->prefix, s->layer = parent->layer;
    return s;
}

static Binding *find_here(const Scope *s, Str name) {
    for (int i = 0; i < s->n; i++)
        if (str_eq(s->bind[i]->name, name)) return s->bind[i];
    return NULL;
}

Binding *scope_find(Scope *s, Str name, Scope **owner) {
    *owner = NULL;
    for (; s; s = s->parent) {
        Binding *found = find_here(s, name);
        if (found) {
            *owner = s;
            return found;
        }
    }
    return NULL;
}

static Binding *add(Build *b, Scope *s, Str name) {
    Binding *n = NEW(b->a, Binding);
    n->name = name;
    *PUSH(b->a, s->bind, s->n, s->cap) = n;
    return n;
}

void scope_bind(Build *b, Scope *s, Str name, Value v) {
    Binding *bind = find_here(s, name);
    if (!bind) bind = add(b, s, name);
    *bind = (Binding){.name = name, .progress = DONE, .value = v};
}

static void declare_one(Build *b, Scope *s, const Stmt *d, Str name, int which, uint32_t pos) {
    Binding *old = find_here(s, name);
    if (old && old->decl == d) return; // a loop comes here again
    if (old) fail_at(loc_at(d->src, pos), "'%.*s' is declared twice", FMT(name));
    Binding *n = add(b, s, name);
    n->decl = d;
    n->which = which;
}

static void declare_fresh(Build *b, Scope *s, const Stmt *d, const Expr *e) {
    if (!e) return;
    if (e->kind == E_FRESH && !find_here(s, e->name)) declare_one(b, s, d, e->name, -1, e->pos);
    for (int i = 0; i < e->n; i++) declare_fresh(b, s, d, e->arg[i]);
}

void scope_declare(Build *b, Scope *s, const Block *block) {
    for (int i = 0; i < block->n; i++) {
        const Stmt *d = block->stmt[i];
        bool names = d->kind <= S_OUTPUT || d->kind == S_DEF || d->kind == S_LAYER;
        int n = d->kind == S_DEF || d->kind == S_LAYER ? 1 : d->n_name; // the rest are parameters
        for (int j = 0; j < n && names; j++) declare_one(b, s, d, d->name[j], j, d->at[j]);
        if (d->kind == S_TENSOR) declare_fresh(b, s, d, d->in), declare_fresh(b, s, d, d->out);
    }
}

// ---- the value of a declaration ----

// A size, real or flag as it is checked, a rotation with its name.
static Value decl_value(Build *b, Scope *s, const Stmt *d, Str name) {
    const Stmt *outer = b->deciding;
    int in_or = b->in_or;
    b->deciding = d;
    b->in_or = 0; // what is declared must be there, even where it is an alternative
    Value v = eval(b, s, d->expr);
    Loc loc = LOC(d->expr);
    if (d->kind <= S_FLAG) {
        v = scalar(b, s, v);
        if (v.kind == V_ABSENT) no_value(b, s, v);
    }
    if (d->kind == S_SIZE) {
        double x = need_num(b, s, v, loc, "a size");
        if (!(x >= 0 && x <= 9007199254740992.0) || x != floor(x))
            fail_at(loc, "size '%.*s' is %.9g%s; a size is a whole number, not negative and below 2^53", FMT(name), x,
                from_key(b, v));
    } else if (d->kind == S_REAL) {
        if (!isfinite(need_num(b, s, v, loc, "a number"))) fail_at(loc, "'%.*s' is not a finite number", FMT(name));
    } else if (d->kind == S_FLAG) {
        bool is_flag = v.kind == V_FLAG || (v.kind == V_NUM && (v.num == 0 || v.num == 1)) || v.kind == V_TENSOR;
        if (!is_flag)
            fail_at(loc, "flag '%.*s' is %s%s; a flag is true or false", FMT(name), value_show(b, v), from_key(b, v));
        if (v.kind == V_TENSOR) v.tensor->used = true, v = FLAG(v.tensor->present);
        v.kind = V_FLAG;
    } else if (d->kind == S_FN && v.kind != V_FN) fail_at(loc, "fn '%.*s' is %s", FMT(name), kind_show(v));
    else if (d->kind == S_ROPE && v.kind != V_ROPE && v.kind != V_NONE)
        fail_at(loc, "rope '%.*s' is %s", FMT(name), kind_show(v));
    else if (d->kind == S_LAYOUT && v.kind != V_LAYOUT) fail_at(loc, "layout '%.*s' is %s", FMT(name), kind_show(v));
    if (d->kind == S_ROPE && v.kind == V_ROPE && !v.rope->rope.name.n) v.rope->rope.name = name;
    b->deciding = outer;
    b->in_or = in_or;
    return v;
}

static void decl_fact(Build *b, Scope *s, const Stmt *d, Str name, Value v) {
    if (s->layer < 0 && d->kind == S_ROPE && v.kind == V_ROPE) fact(b, name, v.rope->note);
    if (s->layer >= 0 || d->kind > S_FLAG || d->by_layer) return;
    bool chosen = d->expr->kind == E_OR;
    Str text = chosen ? b->chosen : span(d->src, d->expr->pos, d->expr->end), why = chosen ? b->reason : S("");
    fact(b, name,
        why.n ? str_fmt(b->a, "%s = %.*s (%.*s)", value_show(b, v), FMT(text), FMT(why))
              : str_fmt(b->a, "%s = %.*s", value_show(b, v), FMT(text)));
}

Value binding_value(Build *b, Scope *owner, Binding *bind, Loc loc) {
    const Stmt *d = bind->decl;
    if (bind->progress == DONE) return bind->value;
    if (bind->progress == IN_PROGRESS) fail_at(loc, "'%.*s' depends on itself", FMT(bind->name));
    if (d->by_layer)
        fail_at(loc, "'%.*s' has one value for each layer; write %.*s[l]", FMT(bind->name), FMT(bind->name));
    bind->progress = IN_PROGRESS;
    Value v = {0};
    switch (d->kind) {
    case S_TENSOR:
        if (bind->which < 0) { // a fresh size: binding its tensor gives it
            binding_value(b, owner, find_here(owner, d->name[0]), loc);
            if (bind->progress != DONE)
                fail_at(loc, "the size '%.*s' is not known: its tensor is not there", FMT(bind->name));
            return bind->value;
        }
        v = (Value){.kind = V_TENSOR, .tensor = tensor_bind(b, owner, d, bind->which)};
        break;
    case S_STATE: v = (Value){.kind = V_STATE, .state = state_bind(b, owner, d, bind->which)}; break;
    case S_DEF: {
        Function *f = NEW(b->a, Function);
        *f = (Function){d, owner};
        v = (Value){.kind = V_FN, .text = d->name[0], .fn = f};
        break;
    }
    case S_INPUT:
        if (!d->optional) not_yet(loc, "inputs that are not optional are");
        v = (Value){.kind = V_INPUT, .text = bind->name};
        break;
    case S_OUTPUT: fail_at(loc, "output '%.*s' has no value yet", FMT(bind->name));
    case S_LAYER: fail_at(loc, "'%.*s' is a layer; 'run %.*s(..)' runs it", FMT(bind->name), FMT(bind->name));
    default: v = decl_value(b, owner, d, bind->name); break;
    }
    bind->value = v;
    bind->progress = DONE;
    decl_fact(b, owner, d, bind->name, v);
    return v;
}

Value binding_at(Build *b, Scope *owner, Binding *bind, int64_t l, Loc loc) {
    if (b->n_layer == 0) fail_at(loc, "the number of layers cannot depend on a value of one layer");
    if (l >= b->n_layer)
        fail_at(loc, "there is no layer %lld; the model has %lld", (long long) l, (long long) b->n_layer);
    if (!bind->layer_value) bind->layer_value = NEWN(b->a, Value, b->n_layer);
    Value *v = &bind->layer_value[l];
    if (v->kind != V_ABSENT) return *v;
    if (v->num != 0) fail_at(loc, "'%.*s[%lld]' depends on itself", FMT(bind->name), (long long) l);
    v->num = 1; // in progress
    Scope *s = scope_new(b, owner);
    s->index_l = l;
    Value index = NUM((double) l);
    index.varies = true;
    scope_bind(b, s, S("l"), index);
    Value r = decl_value(b, s, bind->decl, bind->name);
    *v = r;
    return r;
}

// ---- statements ----

void reach(Build *b, Scope *s, const Stmt *d) {
    Scope *owner;
    switch (d->kind) {
    case S_EXPECT: key_expect(b, s, d); return;
    case S_IGNORE: ignore(b, s, d); return;
    case S_REQUIRE:
        if (!eval_flag(b, s, d->expr)) {
            if (b->synth) synth_require(b, s, d->expr);
            Str text = span(d->src, d->expr->pos, d->expr->end);
            if (d->comment.n)
                fail_at(LOC(d->expr), "this model breaks 'require %.*s' (%.*s)", FMT(text), FMT(d->comment));
            fail_at(LOC(d->expr), "this model breaks 'require %.*s'", FMT(text));
        }
        return;
    case S_DEF:
    case S_LAYER:
    case S_MODEL:
    case S_INPUT: return;
    default:
        for (int i = 0; i < d->n_name; i++) {
            Binding *bind = scope_find(s, d->name[i], &owner);
            if (!d->by_layer) binding_value(b, owner, bind, loc_at(d->src, d->at[i]));
            else
                for (int64_t l = 0; l < b->n_layer; l++) binding_at(b, owner, bind, l, loc_at(d->src, d->at[i]));
        }
    }
}

// A declared output gets its value, once.
static void give_output(Build *b, Scope *owner, Binding *bind, Value v, Loc loc) {
    const Stmt *d = bind->decl;
    int node = node_of(b, v, loc);
    Shape shape = b->g->stage[b->stage].node[node].shape,
          want = layout_shape(eval_layout(b, owner, d->out), LOC(d->out));
    if (shape_size(shape) != shape_size(want))
        fail_at(loc, "output '%.*s' is declared %s; this is %s", FMT(bind->name), shape_show(b->a, want),
            shape_show(b->a, shape));
    *bind = (Binding){.name = bind->name,
        .progress = DONE,
        .output = true,
        .value = (Value){.kind = V_NODE, .at = {node, b->stage, NULL}}};
    name_value(b, bind->value, bind->name);
}

static void assign_one(Build *b, Scope *s, const Stmt *st, int i, Value v) {
    Str name = st->name[i];
    Scope *owner;
    Binding *old = scope_find(s, name, &owner);
    Loc loc = loc_at(st->src, st->at[i]);
    if (str_is(name, "_")) return;
    if (v.kind == V_ABSENT) no_value(b, s, v);
    if (old && old->decl && old->decl->kind == S_OUTPUT) {
        give_output(b, owner, old, v, loc);
        return;
    }
    if (old && old->decl) fail_at(loc, "'%.*s' is declared as something else, so it cannot be assigned", FMT(name));
    if (old && owner != s && s->layer >= 0 && owner->layer < 0)
        fail_at(loc, "'%.*s' belongs to the model; a layer may read it, not assign it", FMT(name));
    name_value(b, v, name);
    scope_bind(b, s, name, v);
}

static void assign(Build *b, Scope *s, const Stmt *st) {
    Value v = eval(b, s, st->expr);
    if (st->unpack) {
        for (int i = 0; i < st->n_name; i++)
            assign_one(b, s, st, i, take_part(b, v, st->name[i], loc_at(st->src, st->at[i])));
        return;
    }
    if (st->n_name == 1) {
        assign_one(b, s, st, 0, v);
        return;
    }
    if (v.kind != V_RECORD || v.list.name || v.list.n != st->n_name)
        fail_at(loc_at(st->src, st->pos), "%d names for %s of %d", st->n_name, kind_show(v),
            v.kind == V_RECORD ? v.list.n : 1);
    for (int i = 0; i < st->n_name; i++) assign_one(b, s, st, i, v.list.value[i]);
}

static void loop(Build *b, Scope *s, const Stmt *st) {
    int64_t n = eval_size(b, s, st->expr, "the count of a loop");
    if (n > MAX_LOOP)
        fail_at(LOC(st->expr), "%lld rounds; a loop is unrolled, at most %d times", (long long) n, MAX_LOOP);
    for (int64_t i = 0; i < n; i++) {
        scope_bind(b, s, st->name[0], NUM((double) i));
        Value unused;
        execute(b, s, &st->body, &unused);
    }
}

static Value returned(Build *b, Scope *s, const Expr *list) {
    if (list->n == 1) return eval(b, s, list->arg[0]);
    Value *v = NEWN(b->a, Value, list->n);
    for (int i = 0; i < list->n; i++) v[i] = eval(b, s, list->arg[i]);
    return (Value){.kind = V_RECORD, .list = {list->n, NULL, v, false}};
}

bool execute(Build *b, Scope *s, const Block *block, Value *result) {
    scope_declare(b, s, block);
    for (int i = 0; i < block->n; i++) {
        const Stmt *st = block->stmt[i];
        switch (st->kind) {
        case S_ASSIGN: assign(b, s, st); break;
        case S_IF:
            if (execute(b, s, eval_flag(b, s, st->expr) ? &st->body : &st->other, result)) return true;
            break;
        case S_FOR: loop(b, s, st); break;
        case S_OUTPUT: break; // given its value by an assignment
        case S_RUN: run_layers(b, s, st); break;
        case S_RETURN: *result = returned(b, s, st->expr); return true;
        default: reach(b, s, st); break;
        }
    }
    return false;
}

// ---- defs ----

Value call_def(Build *b, Scope *s, const Expr *e, const Function *f) {
    const Stmt *d = f->stmt;
    Loc loc = LOC(e);
    if (++b->depth > MAX_CALLS)
        fail_at(loc, "calls are nested deeper than %d; does '%.*s' call itself?", MAX_CALLS, FMT(d->name[0]));
    Scope *in = scope_new(b, f->scope);
    in->prefix = s->prefix;
    in->layer = s->layer;
    int next = 1;
    for (int i = 1; i < e->n; i++) {
        int param = next;
        if (e->label[i].n)
            for (param = 1; param < d->n_name && !str_eq(d->name[param], e->label[i]);) param++;
        else next++;
        if (param >= d->n_name && e->label[i].n)
            fail_at(LOC(e->arg[i]), "'%.*s' has no parameter '%.*s'", FMT(d->name[0]), FMT(e->label[i]));
        if (param >= d->n_name) fail_at(LOC(e->arg[i]), "'%.*s' takes %d arguments", FMT(d->name[0]), d->n_name - 1);
        if (find_here(in, d->name[param])) fail_at(LOC(e->arg[i]), "'%.*s' is given twice", FMT(d->name[param]));
        scope_bind(b, in, d->name[param], eval(b, s, e->arg[i]));
    }
    for (int i = 1; i < d->n_name; i++)
        if (!find_here(in, d->name[i])) {
            if (!d->preset[i]) fail_at(loc, "'%.*s' needs its argument '%.*s'", FMT(d->name[0]), FMT(d->name[i]));
            scope_bind(b, in, d->name[i], eval(b, in, d->preset[i]));
        }
    Value result = {0};
    fail_called_at(loc);
    if (!execute(b, in, &d->body, &result)) fail_at(loc_at(d->src, d->pos), "'%.*s' returns nothing", FMT(d->name[0]));
    fail_returned();
    b->depth--;
    return result;
}

// ffn_gate$tag: the word that the parameter was given, pasted in.
Str paste(Build *b, Scope *s, Str name, Loc loc) {
    const char *at = memchr(name.p, '$', name.n);
    if (!at) return name;
    size_t head = (size_t) (at - name.p);
    Scope *owner;
    Str param = {at + 1, name.n - head - 1};
    Binding *bind = scope_find(s, param, &owner);
    if (!bind) fail_at(loc, "'$%.*s': there is no parameter of that name", FMT(param));
    Value v = binding_value(b, owner, bind, loc);
    if (v.kind != V_TEXT && v.kind != V_ABSENT)
        fail_at(loc, "'$%.*s' pastes a name; this is %s", FMT(param), kind_show(v));
    Str whole = str_fmt(b->a, "%.*s%.*s", (int) head, name.p, FMT(v.text));
    if (whole.n > 100) fail_at(loc, "the name '%.*s' is too long", FMT(whole));
    return whole;
}
