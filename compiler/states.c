// What outlives a row: caches with attention over them, tails with convolutions, cells with recurrences. In:
// declarations of states, and calls that write or read them. Out: states of the stage and the nodes on them. A
// handle (what `put` gives, or the bare name where another layer writes) knows the columns of its cache by name.
#include "eval.h"

#include <math.h>
#include <string.h>

// ---- declarations ----

static Layout held(Build *b, Scope *s, const Expr *e) {
    Layout l = eval_layout(b, s, e);
    if (l.n != 2) fail_at(LOC(e), "what a cache holds is [kv heads, width]; this has %d axes", l.n);
    layout_shape(l, LOC(e));
    return l;
}

static void cache_decl(Build *b, Scope *s, const Expr *e, StateDecl *st) {
    const Expr *sees = named(e, "sees");
    for (int i = 1; i < e->n; i++) {
        if (str_is(e->label[i], "sees") || str_is(e->label[i], "every")) continue;
        if (!e->label[i].n) fail_at(LOC(e->arg[i]), "what a cache holds is named: cache(k: .., v: .., sees: ..)");
        if (st->n_column == 2) not_yet(LOC(e->arg[i]), "caches of more than two columns are");
        st->column[st->n_column].name = e->label[i];
        st->column[st->n_column++].layout = held(b, s, e->arg[i]);
    }
    if (!st->n_column) fail_at(LOC(e), "a cache that holds nothing");
    if (!sees) fail_at(LOC(e), "a cache has no default for sees:; it is past, window(n) or chunk(n)");
    const Axis *k = st->column[0].layout.axis, *v = st->column[1].layout.axis;
    if (st->n_column == 2 && k->size != v->size)
        fail_at(LOC(e), "'%.*s' has %lld heads and '%.*s' %lld; they must agree", FMT(st->column[0].name),
            (long long) k->size, FMT(st->column[1].name), (long long) v->size);
    Value v_sees = eval(b, s, sees);
    if (v_sees.kind != V_SEES)
        fail_at(LOC(sees), "sees: takes past, window(n) or chunk(n); this is %s", kind_show(v_sees));
    st->sees = v_sees.sees;
    st->n = (int64_t) v_sees.num;
    const Expr *every = named(e, "every");
    if (!every) return;
    st->every = eval_size(b, s, every, "the positions of a record");
    if (st->every < 1 || st->every > 1 << 20)
        fail_at(LOC(every), "a record every %lld positions; 1 to 2^20 were expected", (long long) st->every);
    if (st->every > 1 && st->sees != SEES_PAST)
        not_yet(LOC(sees), "records of several positions that see anything but the past are");
}

// tail(n, shape), cell(heads, K, V), blend(n, [m, channels])
static void other_decl(Build *b, Scope *s, const Expr *e, StateDecl *st) {
    if (st->kind == STATE_BLEND) {
        if (positional(e) != e->n - 1 || e->n != 3) fail_at(LOC(e), "a blend is blend(n, [m, channels])");
        st->n_column = 2; // values and scores, of one shape
        st->n = eval_size(b, s, e->arg[1], "the positions of a block");
        st->column[0].layout = st->column[1].layout = eval_layout(b, s, e->arg[2]);
        if (st->n < 1 || st->n > 1 << 20)
            fail_at(LOC(e->arg[1]), "blocks of %lld positions; 1 to 2^20 were expected", (long long) st->n);
        if (st->column[0].layout.n != 2) fail_at(LOC(e->arg[2]), "a blend is of [m, channels]: m blocks go into one");
        layout_shape(st->column[0].layout, LOC(e));
        return;
    }
    bool tail = st->kind == STATE_TAIL;
    if (positional(e) != e->n - 1 || e->n != (tail ? 3 : 4))
        fail_at(LOC(e), tail ? "a tail is tail(n, shape)" : "a cell is cell(heads, K, V)");
    st->n_column = 1;
    if (tail) {
        st->n = eval_size(b, s, e->arg[1], "how many values a tail keeps");
        if (st->n < 1) fail_at(LOC(e->arg[1]), "a tail of no values");
        st->column[0].layout = eval_layout(b, s, e->arg[2]);
        return;
    }
    Layout l = {3, NEWN(b->a, Axis, 3)};
    for (int i = 0; i < 3; i++) {
        l.axis[i].size = eval_size(b, s, e->arg[i + 1], "a size of a cell");
        if (l.axis[i].size < 1) fail_at(LOC(e->arg[i + 1]), "a cell of size 0");
    }
    layout_shape(l, LOC(e));
    st->column[0].layout = l;
}

// state kv[src[l]]: the state of that layer.
static int64_t source_layer(Build *b, Scope *s, const Stmt *d) {
    if (!d->index) return -1;
    int64_t from = eval_size(b, s, d->index, "the layer whose state it is");
    if (from > s->layer)
        fail_at(LOC(d->index), "layer %lld reads the state of layer %lld, which comes later", (long long) s->layer,
            (long long) from);
    return from == s->layer ? -1 : from;
}

StateDecl *state_bind(Build *b, Scope *s, const Stmt *d, int which) {
    Loc loc = loc_at(d->src, d->at[which]);
    const Expr *e = d->expr;
    if (s->layer < 0) fail_at(loc, "a state stands in a layer, or in a def that a layer calls");
    Str kind = e->kind == E_CALL && e->arg[0]->kind == E_NAME ? e->arg[0]->name : S("");
    StateDecl *st = NEW(b->a, StateDecl);
    *st = (StateDecl){.decl = d, .name = d->name[which], .loc = loc, .index = -1};
    *PUSH(b->a, b->state, b->n_state, b->cap_state) = st;
    if (str_is(kind, "cache")) cache_decl(b, s, e, st);
    else if (str_is(kind, "tail") || str_is(kind, "cell") || str_is(kind, "blend")) {
        st->kind = str_is(kind, "tail") ? STATE_TAIL : str_is(kind, "cell") ? STATE_CELL : STATE_BLEND;
        other_decl(b, s, e, st);
    } else fail_at(LOC(e), "a state is cache(..), tail(..), cell(..) or blend(..)");
    st->source = source_layer(b, s, d);
    if (st->source >= 0 && st->kind != STATE_CACHE) fail_at(loc, "only caches are shared between layers");
    return st;
}

// ---- writing ----

static int state_add(Build *b, StateDecl *st) {
    Stage *stage = &b->g->stage[b->stage];
    State *to = PUSH(b->a, stage->state, stage->n_state, stage->cap_state);
    *to = (State){.name = st->name, .kind = st->kind, .sees = st->sees, .n = st->n, .every = st->every};
    to->k = layout_shape(st->column[0].layout, st->loc);
    if (st->n_column == 2 && st->kind == STATE_CACHE) to->v = layout_shape(st->column[1].layout, st->loc);
    if (st->source >= 0) {
        to->source = NEW(b->a, int);
        to->source[0] = (int) st->source;
    }
    return st->index = stage->n_state - 1;
}

static Value handle(const StateDecl *st, Value v) {
    v.at.state = st;
    return v;
}

// The bare name of a cache that another layer writes.
Value state_handle(Build *b, StateDecl *st, Loc loc) {
    if (st->kind != STATE_CACHE || st->source < 0)
        fail_at(loc, "'%.*s' is this layer's own state: it is written with put, whose result reads it", FMT(st->name));
    if (st->index < 0) state_add(b, st);
    NodeSpec spec = NODE(.op = OP_cache, .name = st->name, .loc = loc);
    spec.state = st->index;
    return handle(st, make(b, spec));
}

// Which argument of put is column c: by name, or in declared order.
static int put_argument(const Expr *e, const StateDecl *st, int c) {
    for (int i = 1; i < e->n; i++)
        if (st->column[c].name.n && str_eq(e->label[i], st->column[c].name)) return i;
    if (c + 1 < e->n && !e->label[c + 1].n) return c + 1;
    fail_at(LOC(e), "'%.*s' is not given its '%.*s'", FMT(st->name), FMT(st->column[c].name));
}

Value state_put(Build *b, Scope *s, const Expr *e, StateDecl *st) {
    Loc loc = LOC(e);
    if (st->source >= 0)
        fail_at(loc, "'%.*s' is the state of layer %lld here; this layer only reads it", FMT(st->name),
            (long long) st->source);
    if (st->kind == STATE_CELL) fail_at(loc, "a cell is written by recur");
    if (st->index >= 0) fail_at(loc, "'%.*s' is put to twice for one row", FMT(st->name));
    if (e->n != st->n_column + 1)
        fail_at(loc, "'%.*s' takes %d value%s", FMT(st->name), st->n_column, st->n_column > 1 ? "s" : "");
    NodeSpec spec = NODE(.n_in = st->n_column, .name = st->name, .loc = loc);
    spec.op = st->kind == STATE_TAIL ? OP_shift : st->kind == STATE_BLEND ? OP_blend : OP_put;
    for (int c = 0; c < st->n_column; c++) {
        int i = put_argument(e, st, c);
        Value v = to_node(b, value_arg(b, s, e, i), LOC(e->arg[i]));
        Shape want = layout_shape(st->column[c].layout, loc), have = node_at(b, v)->shape;
        bool rest = shape_size(want) == shape_size(have) && (st->kind != STATE_CACHE || want.d[0] == 1);
        spec.in[c] = (rest ? reshaped(b, v, want, loc) : v).at.node;
    }
    spec.state = state_add(b, st);
    Value r = make(b, spec);
    if (st->kind == STATE_CACHE) return handle(st, r);
    r.at.record = last_record(st->column[0].layout);
    return r;
}

// ---- columns ----

Value state_column(Build *b, Value h, Str name, Loc loc) {
    (void) b;
    const StateDecl *st = h.at.state;
    if (!st) fail_at(loc, "'.%.*s': this is no handle of a cache", FMT(name));
    for (int c = 0; c < st->n_column; c++)
        if (str_eq(st->column[c].name, name)) {
            Layout l = st->column[c].layout;
            Value v = {.kind = V_COLUMN, .at = {.node = h.at.node, .stage = h.at.stage, .state = st, .column = c}};
            v.at.width = l.axis[l.n - 1].size;
            v.at.record = last_record(l);
            return v;
        }
    fail_at(loc, "the cache '%.*s' has no column '%.*s'", FMT(st->name), FMT(name));
}

Value column_part(Build *b, Value v, Str name, Loc loc) {
    (void) b;
    const Axis *record = v.at.record;
    for (int i = 0; record && i < record->n_part; i++) {
        int64_t size = layout_size(record->part[i].layout, loc);
        if (str_eq(record->part[i].name, name)) {
            v.at.width = size;
            v.at.record = last_record(record->part[i].layout);
            return v;
        }
        v.at.from += size;
    }
    fail_at(loc, "'.%.*s': this column has no such part", FMT(name));
}

static Value column_arg(Build *b, Scope *s, const Expr *e, const StateDecl *st) {
    Value v = eval(b, s, e);
    if (v.kind != V_COLUMN || v.at.state != st) fail_at(LOC(e), "a column of the cache that is read was expected");
    return v;
}

// ---- attention ----

// k: is the first column whole; v: the second, or a part of the first where there is no second.
static void columns(Build *b, Scope *s, const Expr *e, const StateDecl *st, NodeSpec *spec) {
    const Expr *k = named(e, "k"), *v = named(e, "v");
    if (k) {
        Value c = column_arg(b, s, k, st);
        if (c.at.column != 0 || c.at.width != st->column[0].layout.axis[1].size)
            not_yet(LOC(k), "keys other than the first column of their cache, whole, are");
    }
    if (!v) {
        if (st->n_column == 1)
            fail_at(LOC(e), "the cache '%.*s' has one column; say v:, the part that is read", FMT(st->name));
        return;
    }
    Value c = column_arg(b, s, v, st);
    if (c.at.column == 1 && c.at.width == st->column[1].layout.axis[1].size) return;
    if (c.at.column != 0 || st->n_column != 1)
        not_yet(LOC(v), "values other than the second column, or a part of the only one, are");
    spec->num[0] = c.at.from;
    spec->num[1] = c.at.width;
}

// bias: by_distance(T, most: n): what T [buckets, heads] has for a position's distance is added to its score.
static void bias_operand(Build *b, Scope *s, const Expr *e, NodeSpec *spec) {
    const Expr *most = named(e, "most");
    bool known = e->kind == E_CALL && e->arg[0]->kind == E_NAME && str_is(e->arg[0]->name, "by_distance");
    if (!known || e->n != 3 || positional(e) != 1 || !most)
        fail_at(LOC(e), "bias: is by_distance(table, most: n); from n on all distances share the last bucket");
    spec->in[spec->n_in++] = node_of(b, value_arg(b, s, e, 1), LOC(e->arg[1]));
    spec->num[3] = eval_size(b, s, most, "the distance from which on all share a bucket");
}

// attention(q, [a, b], ..): one softmax over what both caches hold, keys that are values too.
static void handles(Build *b, Scope *s, const Expr *list, NodeSpec *spec) {
    if (list->n != 2) not_yet(LOC(list), "attention over a list of other than two caches is");
    for (int i = 0; i < 2; i++) {
        Value h = to_node(b, eval(b, s, list->arg[i]), LOC(list->arg[i]));
        if (!h.at.state) fail_at(LOC(list->arg[i]), "a list that attention reads is of caches: what put gave");
        if (h.at.state->n_column != 1)
            fail_at(LOC(list->arg[i]), "caches that are read together hold one column each: keys that are values too");
        spec->in[spec->n_in++] = h.at.node;
    }
}

int64_t pick_unit(const Build *b, const Node *n) {
    if (n->op == OP_pick) return n->num[1] * state_every(&b->g->stage[b->stage].state[n->state]);
    for (int i = 0; n->op == OP_get && i < b->n_picked; i++)
        if (b->picked[i].global == n->num[0]) return b->picked[i].unit;
    return 1;
}

// What `only:` limits, the last cache, in units of its records.
static void limit(Build *b, Scope *s, const Expr *only, NodeSpec *spec) {
    Value picks = eval(b, s, only);
    if (picks.kind == V_NONE) return;
    picks = to_node(b, picks, LOC(only));
    const Stage *st = &b->g->stage[b->stage];
    int64_t unit = pick_unit(b, node_at(b, picks));
    int last = attention_caches(st, spec->in, spec->n_in);
    int64_t every = state_every(&st->state[st->node[spec->in[last]].state]);
    if (unit % every)
        fail_at(LOC(only), "what is picked stands for %lld positions, a record of the cache for %lld", (long long) unit,
            (long long) every);
    spec->in[spec->n_in++] = picks.at.node;
    spec->num[2] = unit / every;
}

Value call_attention(Build *b, Scope *s, const Expr *e, Op op) {
    const Expr *scale = named(e, "scale"), *cap = named(e, "softcap"), *sinks = named(e, "sinks"),
               *alibi = named(e, "alibi"), *bias = named(e, "bias"), *only = named(e, "only");
    if (!scale) fail_at(LOC(e), "attention has no default for scale:; the usual one is 1/sqrt(hd)");
    int q = node_of(b, value_arg(b, s, e, 1), LOC(e->arg[1]));
    NodeSpec spec = NODE(.op = op, .n_in = 1, .in = {q}, .loc = LOC(e));
    if (e->arg[2]->kind == E_LIST) {
        handles(b, s, e->arg[2], &spec);
        if (named(e, "k") || named(e, "v")) fail_at(LOC(e), "k: and v: are of one cache; of a list, all is read");
        if (bias) not_yet(LOC(bias), "biases by distance over two caches are");
    } else {
        Value h = to_node(b, value_arg(b, s, e, 2), LOC(e->arg[2]));
        if (!h.at.state)
            fail_at(
                LOC(e->arg[2]), "attention reads a cache: what put gave, or the name of one that another layer writes");
        if (h.at.state->every > 1)
            fail_at(LOC(e->arg[2]), "the first rows see no record of '%.*s'; list it behind a cache of positions",
                FMT(h.at.state->name));
        spec.in[spec.n_in++] = h.at.node;
        columns(b, s, e, h.at.state, &spec);
    }
    spec.real[0] = eval_num(b, s, scale, "the scale");
    if (cap) spec.real[1] = eval_num(b, s, cap, "the cap");
    if (alibi) spec.real[2] = eval_num(b, s, alibi, "the greatest ALiBi bias");
    if (!isfinite(spec.real[0]) || !(spec.real[1] >= 0) || !(spec.real[2] >= 0))
        fail_at(LOC(e), "scale %.9g, softcap %.9g, alibi %.9g: not numbers to compute with", spec.real[0], spec.real[1],
            spec.real[2]);
    if (sinks) {
        Value v = eval(b, s, sinks);
        bool absent = v.kind == V_NONE || (v.kind == V_TENSOR && !v.tensor->present);
        if (v.kind == V_TENSOR) v.tensor->used = true;
        if (!absent) spec.in[spec.n_in++] = node_of(b, v, LOC(sinks));
    }
    if (bias) bias_operand(b, s, bias, &spec);
    if (only) limit(b, s, only, &spec);
    return make(b, spec);
}

// pick(q, column, top: n, score: weighted_relu(w) | best_block(size, local: m) [, rest: true]): the positions (or
// blocks) that score best, and the positions behind the last record.
Value call_pick(Build *b, Scope *s, const Expr *e, Op op) {
    const Expr *top = named(e, "top"), *score = named(e, "score");
    Value q = to_node(b, value_arg(b, s, e, 1), LOC(e->arg[1])), keys = eval(b, s, e->arg[2]);
    if (keys.kind != V_COLUMN || keys.at.column != 0 || keys.at.from)
        fail_at(LOC(e->arg[2]), "pick scores the keys of a cache: its first column");
    Str how = score && score->kind == E_CALL && score->arg[0]->kind == E_NAME ? score->arg[0]->name : S("");
    if (!top || !(str_is(how, "weighted_relu") || str_is(how, "best_block")))
        fail_at(LOC(e), "pick needs top: and score:, which is weighted_relu(w) or best_block(size, local: m)");
    NodeSpec spec = NODE(.op = op, .n_in = 2, .in = {q.at.node, keys.at.node}, .num = {0, 1, 0}, .loc = LOC(e));
    spec.num[0] = eval_size(b, s, top, "how many are picked");
    int64_t most = b->context / (keys.at.state->every > 1 ? keys.at.state->every : 1);
    if (most < 1) most = 1;
    if (spec.num[0] > most) spec.num[0] = most; // more than there can be: all
    const Expr *rest = named(e, "rest");
    spec.num[3] = rest && eval_flag(b, s, rest) && keys.at.state->every > 1;
    if (str_is(how, "weighted_relu")) {
        if (score->n != 2) fail_at(LOC(score), "weighted_relu takes one weight for each head of q");
        spec.in[spec.n_in++] = node_of(b, eval(b, s, score->arg[1]), LOC(score->arg[1]));
    } else {
        const Expr *local = named(score, "local");
        if (positional(score) != 1) fail_at(LOC(score), "best_block takes the size of a block");
        spec.num[1] = eval_size(b, s, score->arg[1], "the size of a block");
        if (local) spec.num[2] = eval_size(b, s, local, "how many blocks are always seen");
    }
    return make(b, spec);
}

// ---- tails and cells ----

// conv(w, t [, every: m]): w [c, n] over n values of a tail, all or each m-th up to the last, with w's bias.
Value call_conv(Build *b, Scope *s, const Expr *e, Op op) {
    Value w = value_arg(b, s, e, 1), t = to_node(b, value_arg(b, s, e, 2), LOC(e->arg[2]));
    int weight = node_of(b, w, LOC(e->arg[1]));
    const Expr *every = named(e, "every");
    int64_t step = every ? eval_size(b, s, every, "how far values stand apart") : 1;
    if (step < 1) fail_at(LOC(every), "values that stand 0 apart are one");
    Value r =
        make(b, NODE(.op = op, .n_in = 2, .in = {t.at.node, weight}, .num = {step > 1 ? step : 0}, .loc = LOC(e)));
    if (w.kind == V_TENSOR && w.tensor->source[0].bias >= 0) {
        int data = weight_data(b, bias_of(b, w.tensor, 0), LOC(e)).at.node;
        r = make(b, NODE(.op = OP_add, .n_in = 2, .in = {r.at.node, data}, .loc = LOC(e)));
    }
    r.at.record = t.at.record;
    return r;
}

// recur(M, decay:, key:, value:, read: [, erase:, write:] [, at: before])
Value call_recur(Build *b, Scope *s, const Expr *e, Op op) {
    static const char *const operand[] = {"decay", "key", "value", "read", "erase", "write"};
    Value cell = eval(b, s, e->arg[1]);
    if (cell.kind != V_STATE || cell.state->kind != STATE_CELL)
        fail_at(LOC(e->arg[1]), "recur works on a cell; this is %s", kind_show(cell));
    if (cell.state->index >= 0) fail_at(LOC(e), "'%.*s' is written twice for one row", FMT(cell.state->name));
    NodeSpec spec = NODE(.op = op, .name = cell.state->name, .loc = LOC(e));
    for (int i = 0; i < COUNT(operand); i++) {
        const Expr *x = named(e, operand[i]);
        if (!x && i < 4) fail_at(LOC(e), "recur needs decay:, key:, value: and read:; '%s:' is missing", operand[i]);
        if (x) spec.in[spec.n_in++] = node_of(b, eval(b, s, x), LOC(x));
    }
    if (!named(e, "erase") != !named(e, "write")) fail_at(LOC(e), "erase: and write: go together");
    const Expr *at = named(e, "at");
    if (at) {
        Value v = eval(b, s, at);
        if (!is_text(v, "before")) fail_at(LOC(at), "at: is 'before', or not said: after the row's own update");
        spec.num[0] = 1;
    }
    spec.state = state_add(b, cell.state);
    return make(b, spec);
}
