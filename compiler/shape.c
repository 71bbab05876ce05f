// The shape of each operator's result. In: the operator, its operands' shapes, its attributes. Out: a shape, or an
// error that shows what was found and what fits. The caller has checked how many operands there are.
#include "shape.h"

static _Noreturn void shape_error(Graph *g, NodeSpec spec, const char *what, Shape found, Shape expected) {
    fail_at(spec.loc, "%s: %s is %s, but %s is needed here", op_info[spec.op].name, what, shape_show(g->arena, found),
        shape_show(g->arena, expected));
}

static void need(Graph *g, NodeSpec spec, const char *what, Shape found, Shape expected) {
    if (!shape_eq(found, expected)) shape_error(g, spec, what, found, expected);
}

bool shape_broadcast(Shape a, Shape b, Shape *out) {
    Shape r = {.n = a.n > b.n ? a.n : b.n};
    for (int i = 1; i <= r.n; i++) {
        int64_t x = i <= a.n ? a.d[a.n - i] : 1, y = i <= b.n ? b.d[b.n - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        r.d[r.n - i] = x > y ? x : y;
    }
    *out = r;
    return true;
}

static void need_fit(Graph *g, NodeSpec spec, const char *what, Shape found, Shape into) {
    Shape r;
    if (!shape_broadcast(into, found, &r) || !shape_eq(r, into)) shape_error(g, spec, what, found, into);
}

static Shape joined(NodeSpec spec, Shape a, Shape b) {
    if (a.n + b.n > MAX_DIM) fail_at(spec.loc, "%s: a value has at most %d axes", op_info[spec.op].name, MAX_DIM);
    for (int i = 0; i < b.n; i++) a.d[a.n++] = b.d[i];
    return a;
}

static Shape without_first(Shape a) {
    for (int i = 1; i < a.n; i++) a.d[i - 1] = a.d[i];
    if (a.n) a.n--;
    return a;
}

static Shape flat(int64_t n) {
    return (Shape){.n = 1, .d = {n}};
}

// ---- elementwise ----

static Shape map_shape(Graph *g, const Stage *s, NodeSpec spec) {
    Shape r = s->node[spec.in[0]].shape;
    for (int i = 1; i < spec.n_in; i++) {
        Shape p = s->node[spec.in[i]].shape;
        if (!shape_broadcast(r, p, &r))
            fail_at(spec.loc, "%s: shapes %s and %s do not fit: axes must agree, be 1 or be missing on the outside",
                op_info[spec.op].name, shape_show(g->arena, s->node[spec.in[0]].shape), shape_show(g->arena, p));
    }
    return r;
}

// ---- moving data ----

static Shape concat_shape(Graph *g, const Stage *s, NodeSpec spec) {
    Shape r = s->node[spec.in[0]].shape;
    for (int i = 1; i < spec.n_in; i++) {
        Shape p = s->node[spec.in[i]].shape, q = r;
        if (p.n && q.n) q.d[q.n - 1] = shape_last(p);
        if (!r.n || !shape_eq(p, q)) shape_error(g, spec, "an operand", p, r);
        r.d[r.n - 1] += shape_last(p);
    }
    return r;
}

static Shape slice_shape(Graph *g, NodeSpec spec, Shape a) {
    int64_t axis = spec.num[0], from = spec.num[1];
    if (axis < 0 || axis >= a.n || spec.shape.n != a.n || from < 0 || from + spec.shape.d[axis] > a.d[axis])
        shape_error(g, spec, "the value", a, spec.shape);
    return spec.shape;
}

static Shape spread_shape(Graph *g, NodeSpec spec, Shape a) {
    if (!a.n || spec.num[0] < 1 || spec.num[0] % a.d[0])
        fail_at(
            spec.loc, "spread: %s cannot be spread evenly over %lld", shape_show(g->arena, a), (long long) spec.num[0]);
    a.d[0] = spec.num[0];
    return a;
}

// ---- ids ----

static Shape id_shape(Graph *g, NodeSpec spec, Shape a, Shape b) {
    switch (spec.op) {
    case OP_top:
        if (!a.n || spec.num[0] < 1 || spec.num[0] > shape_last(a))
            fail_at(spec.loc, "top: %lld of %s cannot be chosen", (long long) spec.num[0], shape_show(g->arena, a));
        a.d[a.n - 1] = spec.num[0];
        return a;
    case OP_gather: {
        Shape want = a;
        if (want.n && b.n) want.d[want.n - 1] = shape_last(b);
        need(g, spec, "the ids", b, want);
        return b;
    }
    case OP_only:
        if (!a.n || b.n != 1) fail_at(spec.loc, "only: a value with a first axis and a list of ids are needed");
        return a;
    default: return a; // id
    }
}

// One id for each pair of `mod` and `plus`; all are ids: below 2^31.
static Shape hash_shape(Graph *g, NodeSpec spec, Shape a) {
    const Numbers *by = &g->numbers[spec.num[0]], *mod = &g->numbers[spec.num[1]], *plus = &g->numbers[spec.num[2]];
    if (a.n != 1 || a.d[0] > by->n)
        fail_at(spec.loc, "hash: a list of at most %d ids, the factors there are, is needed, not %s", by->n,
            shape_show(g->arena, a));
    if (mod->n != plus->n || mod->n < 1)
        fail_at(spec.loc, "hash: %d numbers to divide by and %d to add do not make pairs", mod->n, plus->n);
    for (int i = 0; i < mod->n; i++)
        if (mod->value[i] < 1 || mod->value[i] + plus->value[i] > INT64_C(1) << 31)
            fail_at(spec.loc, "hash: modulo %lld plus %lld gives no ids, which are 0 to 2^31 - 1",
                (long long) mod->value[i], (long long) plus->value[i]);
    return flat(mod->n);
}

// Rows of a table by ids that were hashed: the table has them all.
static void check_hashed(Graph *g, const Node *ids, const Weight *w, NodeSpec spec) {
    if (ids->op != OP_hash) return;
    const Numbers *mod = &g->numbers[ids->num[1]], *plus = &g->numbers[ids->num[2]];
    for (int i = 0; i < mod->n; i++)
        if (mod->value[i] + plus->value[i] > w->out)
            fail_at(spec.loc, "embed: '%.*s' has %lld rows, but a hash gives ids up to %lld", FMT(w->name),
                (long long) w->out, (long long) (mod->value[i] + plus->value[i] - 1));
}

// ---- along axes ----

static Shape axis_shape(Graph *g, const Stage *s, NodeSpec spec, Shape a) {
    switch (spec.op) {
    case OP_sum:
    case OP_mean:
    case OP_rmax:
        if (a.n) a.d[a.n - 1] = 1;
        return a;
    case OP_sum_first:
    case OP_at:
        if (!a.n) fail_at(spec.loc, "%s: a single number has no axis", op_info[spec.op].name);
        return without_first(a);
    case OP_mix: {
        Shape b = s->node[spec.in[1]].shape;
        if (!a.n || !b.n || shape_last(a) != b.d[0]) shape_error(g, spec, "the weights' last axis", a, b);
        a.n--;
        return joined(spec, a, without_first(b));
    }
    case OP_conv: {
        int64_t every = spec.num[0] > 1 ? spec.num[0] : 1;
        if (a.n && (a.d[0] - 1) % every)
            fail_at(spec.loc, "conv: %lld values do not begin and end with taps that stand %lld apart",
                (long long) a.d[0], (long long) every);
        Shape w = s->node[spec.in[1]].shape,
              want = joined(spec, without_first(a), flat(a.n ? (a.d[0] - 1) / every + 1 : 1));
        need(g, spec, "the weights", w, want);
        return without_first(a);
    }
    default: // norms
        for (int i = 1; i < spec.n_in; i++) need_fit(g, spec, "the weight", s->node[spec.in[i]].shape, a);
        return a;
    }
}

static Shape rope_shape(Graph *g, const Stage *s, NodeSpec spec, Shape a) {
    need(g, spec, "the table of angles", s->node[spec.in[1]].shape, (Shape){.n = 2, .d = {spec.num[0] / 2, 2}});
    if (spec.num[0] > shape_last(a) || spec.num[0] < 2 || spec.num[0] % 2)
        fail_at(spec.loc, "rope turns %lld dims of an axis of %lld; it must be an even number of at most that",
            (long long) spec.num[0], (long long) shape_last(a));
    return a;
}

// ---- weights ----

static Shape embed_shape(Graph *g, const Weight *w, NodeSpec spec, Shape ids) {
    Shape row = flat(w->in);
    if (spec.shape.n && shape_size(spec.shape) != w->in * shape_size(ids))
        shape_error(g, spec, "a row of the table", row, spec.shape);
    return spec.shape.n ? spec.shape : joined(spec, ids, row);
}

// matmul [a] -> [b]; each [n, a] or [a] -> [n, b]; experts [k, a] or [a], ids [k] -> [k, b].
static Shape product_shape(Graph *g, const Stage *s, const Weight *w, NodeSpec spec, Shape a) {
    if ((spec.op == OP_matmul) != (w->stack == 0))
        fail_at(spec.loc, "%s: '%.*s' is %s", op_info[spec.op].name, FMT(w->name),
            w->stack ? "a stack of products" : "one product, no stack");
    int64_t count = spec.op == OP_each ? w->stack : 1;
    if (spec.op == OP_experts) {
        Shape ids = s->node[spec.in[1]].shape;
        if (ids.n != 1) fail_at(spec.loc, "experts: a list of ids is needed, not %s", shape_show(g->arena, ids));
        count = ids.d[0];
    }
    int64_t size = shape_size(a);
    if (size != w->in && !(spec.op != OP_matmul && size == count * w->in && a.d[0] == count))
        shape_error(g, spec, "the input", a, flat(w->in));
    Shape out = spec.op == OP_matmul ? flat(w->out) : (Shape){.n = 2, .d = {count, w->out}};
    if (spec.shape.n &&
        (shape_size(spec.shape) != count * w->out || (spec.op != OP_matmul && spec.shape.d[0] != count)))
        shape_error(g, spec, "the result", out, spec.shape);
    return spec.shape.n ? spec.shape : out;
}

// ---- states ----

static Shape put_shape(Graph *g, const State *st, NodeSpec spec, Shape k, const Node *v) {
    need(g, spec, "k", k, st->k);
    if (!v != (st->v.n == 0))
        fail_at(spec.loc, "put: '%.*s' keeps %s", FMT(st->name), v ? "keys only" : "keys and values");
    if (v) need(g, spec, "v", v->shape, st->v);
    return (Shape){0};
}

static const State *cache_of(const Stage *s, NodeSpec spec) {
    const Node *handle = &s->node[spec.in[1]];
    if (handle->type != HANDLE)
        fail_at(spec.loc, "%s reads a cache: its second operand must be what put gives", op_info[spec.op].name);
    return &s->state[handle->state];
}

// Biases by distance: [buckets, heads], half of them for later positions where those are seen.
static void need_buckets(Graph *g, const State *c, NodeSpec spec, Shape table, int64_t heads) {
    bool both = sees_ahead(c->sees);
    int64_t count = table.n ? table.d[0] : 0, own = both ? count / 2 : count;
    if (table.n != 2 || table.d[1] != heads)
        shape_error(g, spec, "the table of biases", table, (Shape){.n = 2, .d = {count ? count : 1, heads}});
    if (own < 4 || own > MAX_BUCKETS || (both && count % 2))
        fail_at(spec.loc, "attention: %lld buckets; %s was expected", (long long) count,
            both ? "an even number from 8 to 256" : "4 to 128");
    if (spec.num[3] <= own / 2 || spec.num[3] > 1 << 30)
        fail_at(spec.loc, "attention: a distance of %lld shares the last of %lld buckets; it must be more than %lld",
            (long long) spec.num[3], (long long) own, (long long) (own / 2));
}

static Shape attention_shape(Graph *g, const Stage *s, NodeSpec spec, Shape q) {
    const State *c = cache_of(s, spec);
    int64_t from = spec.num[0], width = spec.num[1], dv = c->v.n ? c->v.d[1] : width ? width : c->k.d[1];
    if (q.n != 2 || q.d[1] != c->k.d[1])
        shape_error(g, spec, "q", q, (Shape){.n = 2, .d = {q.n ? q.d[0] : 1, c->k.d[1]}});
    if (q.d[0] % c->k.d[0])
        fail_at(spec.loc, "attention: %lld heads cannot share %lld key/value heads evenly", (long long) q.d[0],
            (long long) c->k.d[0]);
    if (from < 0 || from + dv > (c->v.n ? c->v.d[1] : c->k.d[1]) || (c->v.n && (from || width)))
        fail_at(spec.loc, "attention: values %lld .. %lld are no part of the keys", (long long) from,
            (long long) (from + dv));
    int first = 1 + attention_caches(s, spec.in, spec.n_in);
    if (first == 3) {
        const State *d = &s->state[s->node[spec.in[2]].state];
        if (c->v.n || d->v.n || !shape_eq(c->k, d->k) || from || dv != c->k.d[1])
            fail_at(spec.loc, "attention: two caches are read together when each holds keys alone, of one shape");
    }
    for (int i = first; i < spec.n_in; i++) {
        const Node *x = &s->node[spec.in[i]];
        AttentionRole role = attention_role(s, spec.in, spec.n_in, spec.num[3] != 0, i);
        if (role == READS_PICKS) {
            if (x->shape.n != 2 || (x->shape.d[0] != 1 && x->shape.d[0] != c->k.d[0]) || i != spec.n_in - 1)
                fail_at(spec.loc, "attention: picks are [1 or kv heads, positions] and come last, not %s",
                    shape_show(g->arena, x->shape));
        } else if (role == READS_BIASES) need_buckets(g, c, spec, x->shape, q.d[0]);
        else if (i != first || shape_size(x->shape) != q.d[0])
            shape_error(g, spec, "the sinks", x->shape, flat(q.d[0]));
    }
    return (Shape){.n = 2, .d = {q.d[0], dv}};
}

static Shape pick_shape(Graph *g, const Stage *s, NodeSpec spec, Shape q) {
    const State *c = cache_of(s, spec);
    int64_t sets = spec.n_in > 2 ? 1 : q.d[0];
    if (q.n != 2 || q.d[1] != c->k.d[1] || q.d[0] % c->k.d[0]) shape_error(g, spec, "q", q, c->k);
    if (spec.n_in > 2 && shape_size(s->node[spec.in[2]].shape) != q.d[0])
        shape_error(g, spec, "the weights", s->node[spec.in[2]].shape, flat(q.d[0]));
    if (spec.num[0] < 1 || spec.num[1] < 1) fail_at(spec.loc, "pick: top and block must be at least 1");
    if (spec.num[3] && (spec.n_in < 3 || spec.num[1] > 1 || spec.num[3] != 1 || state_every(c) < 2))
        fail_at(spec.loc, "pick: rest goes with weighted scores of records of several positions");
    return (Shape){.n = 2, .d = {sets, spec.num[0] + spec.num[3]}};
}

static Shape recur_shape(Graph *g, const Stage *s, const State *st, NodeSpec spec) {
    static const char *const name[] = {
        "the decay", "the key", "the value", "what reads", "what erases", "what is written"};
    Shape keys = {.n = 2, .d = {st->k.d[0], st->k.d[1]}}, values = {.n = 2, .d = {st->k.d[0], st->k.d[2]}};
    int n = spec.n_in - (spec.num[1] != 0);
    if (n == 5 || n < 4) fail_at(spec.loc, "recur: erase and write go together");
    if (n < spec.n_in) need(g, spec, "the table of rates", s->node[spec.in[n]].shape, keys);
    for (int i = 0; i < n; i++) {
        Shape x = s->node[spec.in[i]].shape;
        if (i == 2) need(g, spec, name[i], x, values);
        else need_fit(g, spec, name[i], x, keys);
    }
    return values;
}

static Shape blend_shape(Graph *g, const Stage *s, const State *st, NodeSpec spec, Shape a) {
    need(g, spec, "the value", a, st->k);
    need(g, spec, "the score", s->node[spec.in[1]].shape, st->k);
    return without_first(a);
}

static Shape shift_shape(Graph *g, const State *st, NodeSpec spec, Shape a) {
    need(g, spec, "the value", a, st->k);
    return joined(spec, flat(st->n + 1), a);
}

// ---- all ----

static void need_state(NodeSpec spec, const State *st) {
    StateKind kind = spec.op == OP_shift ? STATE_TAIL
        : spec.op == OP_recur            ? STATE_CELL
        : spec.op == OP_blend            ? STATE_BLEND
                                         : STATE_CACHE;
    bool own = op_has_state(spec.op) && spec.op != OP_attention && spec.op != OP_pick;
    if (own && (!st || st->kind != kind))
        fail_at(spec.loc, "%s needs a %s", op_info[spec.op].name,
            kind == STATE_CACHE       ? "cache"
                : kind == STATE_TAIL  ? "tail"
                : kind == STATE_BLEND ? "blend"
                                      : "cell");
}

Shape node_shape(Graph *g, const Stage *s, NodeSpec spec) {
    if (op_info[spec.op].class == CLASS_MAP) return map_shape(g, s, spec);
    Shape a = spec.n_in > 0 ? s->node[spec.in[0]].shape : (Shape){0},
          b = spec.n_in > 1 ? s->node[spec.in[1]].shape : (Shape){0};
    const Weight *w = spec.weight >= 0 ? &s->weight[spec.weight] : NULL;
    const State *st = spec.state >= 0 ? &s->state[spec.state] : NULL;
    need_state(spec, st);
    switch (spec.op) {
    case OP_get: return g->global[spec.num[0]].shape;
    case OP_token:
    case OP_position:
    case OP_const:
    case OP_param:
    case OP_cache: return (Shape){0};
    case OP_weight: return w->shape;
    case OP_reshape:
        if (shape_size(spec.shape) != shape_size(a)) shape_error(g, spec, "the value", a, spec.shape);
        return spec.shape;
    case OP_slice: return slice_shape(g, spec, a);
    case OP_concat: return concat_shape(g, s, spec);
    case OP_index:
        if (spec.num[0] < 1) fail_at(spec.loc, "index: at least one number");
        return flat(spec.num[0]);
    case OP_spread: return spread_shape(g, spec, a);
    case OP_top:
    case OP_gather:
    case OP_only:
    case OP_id: return id_shape(g, spec, a, b);
    case OP_hash: return hash_shape(g, spec, a);
    case OP_rms_norm:
    case OP_layer_norm:
    case OP_sum:
    case OP_mean:
    case OP_rmax:
    case OP_sum_first:
    case OP_at:
    case OP_mix:
    case OP_conv: return axis_shape(g, s, spec, a);
    case OP_angles: return (Shape){.n = 2, .d = {g->rope[spec.num[0]].dims / 2, 2}};
    case OP_rope: return rope_shape(g, s, spec, a);
    case OP_embed: check_hashed(g, &s->node[spec.in[0]], w, spec); return embed_shape(g, w, spec, a);
    case OP_matmul:
    case OP_experts:
    case OP_each: return product_shape(g, s, w, spec, a);
    case OP_put: return put_shape(g, st, spec, a, spec.n_in > 1 ? &s->node[spec.in[1]] : NULL);
    case OP_attention: return attention_shape(g, s, spec, a);
    case OP_pick: return pick_shape(g, s, spec, a);
    case OP_shift: return shift_shape(g, st, spec, a);
    case OP_blend: return blend_shape(g, s, st, spec, a);
    case OP_recur: return recur_shape(g, s, st, spec);
    case OP_set: need(g, spec, "the value", a, g->global[spec.num[0]].shape); return a;
    default: return a; // softmax, l2_norm, take, q8, copy, pool
    }
}
