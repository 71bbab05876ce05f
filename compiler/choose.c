// Choice and rearrangement of run-time values: the best of a list, reading by ids, the products of a stack that
// ids choose, and what moves axes about. In: evaluated operands. Out: nodes. The one idea: an id is a value like
// any other, so experts, tables and groups of experts are read in one way.
#include "eval.h"

#include <string.h>

static Shape shape_at(const Build *b, Value v) {
    return node_at(b, v)->shape;
}

static Value operand(Build *b, Scope *s, const Expr *e, int i) {
    return to_node(b, value_arg(b, s, e, i), LOC(e->arg[i]));
}

// ---- ids ----

// Ids that were computed with (i / 2) are numbers by then: rounded down they are ids again.
Value ids_of(Build *b, Value ids, Loc loc) {
    ids = to_node(b, ids, loc);
    if (node_at(b, ids)->type == I32) return ids;
    return make(b, NODE(.op = OP_id, .n_in = 1, .in = {ids.at.node}, .loc = loc));
}

// x[ids] along the last axis; of a table, its rows.
Value gather(Build *b, Value x, Value ids, Loc loc) {
    x = to_node(b, x, loc);
    ids = ids_of(b, ids, loc);
    return make(b, NODE(.op = OP_gather, .n_in = 2, .in = {x.at.node, ids.at.node}, .loc = loc));
}

// v, i = top(x, k)
Value call_top(Build *b, Scope *s, const Expr *e, Op op) {
    Value x = operand(b, s, e, 1), *result = NEWN(b->a, Value, 2);
    int64_t k = eval_size(b, s, e->arg[2], "how many are chosen"), n = shape_last(shape_at(b, x));
    if (k < 1 || k > n)
        fail_at(LOC(e->arg[2]), "the %lld largest of %lld; 1 to %lld can be chosen", (long long) k, (long long) n,
            (long long) n);
    result[1] = make(b, NODE(.op = op, .n_in = 1, .in = {x.at.node}, .num = {k}, .loc = LOC(e)));
    result[0] = gather(b, x, result[1], LOC(e));
    return (Value){.kind = V_RECORD, .list = {2, NULL, result, false}};
}

Value call_only(Build *b, Scope *s, const Expr *e, Op op) {
    Value x = operand(b, s, e, 1), ids = ids_of(b, value_arg(b, s, e, 2), LOC(e->arg[2]));
    Value r = make(b, NODE(.op = op, .n_in = 2, .in = {x.at.node, ids.at.node}, .loc = LOC(e)));
    r.at.record = x.at.record;
    return r;
}

// A key's whole numbers, once for all who use them.
static int numbers_of(Build *b, Scope *s, const Expr *call, const char *label) {
    const Expr *e = named(call, label);
    if (!e) fail_at(LOC(call), "hash needs by:, mod: and plus:; '%s:' is missing", label);
    Graph *g = b->g;
    Value v = eval(b, s, e);
    if (v.kind == V_ABSENT) no_value(b, s, v);
    if (v.kind != V_ARRAY) fail_at(LOC(e), "a key with an array was expected; this is %s", kind_show(v));
    size_t from = v.key.n;
    while (from && v.key.p[from - 1] != '.') from--;
    Numbers list = {.name = {v.key.p + from, v.key.n - from}, .n = v.array->n < 4096 ? (int) v.array->n : 0};
    if (!list.n) fail_at(LOC(e), "key '%s' has no entries, or 4096 and more", str_show(b->a, v.key));
    list.value = NEWN(b->a, int64_t, list.n);
    for (int i = 0; i < list.n; i++)
        if (!gguf_int(v.array, (uint64_t) i, &list.value[i]) || list.value[i] < 0 || list.value[i] > INT64_C(1) << 53)
            fail_at(LOC(e), "key '%s': a whole number from 0 to 2^53 was expected at %d", str_show(b->a, v.key), i);
    if (b->synth) synth_wide(b, v.key);
    for (int i = 0; i < g->n_numbers; i++)
        if (str_eq(g->numbers[i].name, list.name) && g->numbers[i].n == list.n &&
            memcmp(g->numbers[i].value, list.value, sizeof *list.value * (size_t) list.n) == 0)
            return i;
    *PUSH(b->a, g->numbers, g->n_numbers, g->cap_numbers) = list;
    return g->n_numbers - 1;
}

// hash(ids, by: KEY, mod: KEY, plus: KEY): ids of any shape, in order.
Value call_hash(Build *b, Scope *s, const Expr *e, Op op) {
    Value ids = ids_of(b, value_arg(b, s, e, 1), LOC(e->arg[1]));
    ids = reshaped(b, ids, (Shape){.n = 1, .d = {shape_size(shape_at(b, ids))}}, LOC(e));
    NodeSpec spec = NODE(.op = op, .n_in = 1, .in = {ids.at.node}, .loc = LOC(e));
    static const char *const lists[] = {"by", "mod", "plus"};
    for (int i = 0; i < COUNT(lists); i++) spec.num[i] = numbers_of(b, s, e, lists[i]);
    return make(b, spec);
}

// ---- stacks of products ----

// The input of `count` products of a stack: [in], the same for all, or [count, in].
static Value stack_input(Build *b, const Tensor *t, int64_t count, Value x, Loc loc) {
    x = to_node(b, x, loc);
    int64_t in = layout_size(t->in, loc), have = shape_size(shape_at(b, x));
    if (have == in && (count > 1 || shape_at(b, x).n <= 1)) return reshaped(b, x, (Shape){.n = 1, .d = {in}}, loc);
    if (have == in * count) return reshaped(b, x, (Shape){.n = 2, .d = {count, in}}, loc);
    fail_at(loc, "'%.*s' takes %lld numbers, or %lld for each of its %lld products; its input here is %s", FMT(t->name),
        (long long) in, (long long) in, (long long) count, shape_show(b->a, shape_at(b, x)));
}

// A number or a vector for each product, of the products that ids choose (ids < 0: of all), made to fit `shape`.
static Value for_each(Build *b, int weight, int ids, Shape shape, bool one, Loc loc) {
    Value v = ids < 0 ? weight_data(b, weight, loc)
                      : make(b, NODE(.op = OP_embed, .n_in = 1, .in = {ids}, .weight = weight, .loc = loc));
    for (int i = 1; i < shape.n && one; i++) shape.d[i] = 1;
    return reshaped(b, v, shape, loc);
}

static Value stack_source(Build *b, Tensor *t, int source, Layout out, Value x, int ids, int64_t count, Loc loc) {
    Shape inner = layout_shape(out, loc), shape = {.n = inner.n + 1, .d = {count}};
    if (shape.n > MAX_DIM) fail_at(loc, "a value has at most %d axes", MAX_DIM);
    memcpy(shape.d + 1, inner.d, sizeof inner.d[0] * (size_t) inner.n);
    NodeSpec spec = NODE(.op = ids < 0 ? OP_each : OP_experts, .n_in = ids < 0 ? 1 : 2, .in = {x.at.node, ids},
        .shape = shape, .loc = loc);
    if (ids < 0) spec.in[1] = 0;
    spec.weight = weight_of(b, t, source, true);
    Value v = make(b, spec);
    if (t->source[source].scale >= 0) {
        Value scale = for_each(b, scale_of(b, t, source), ids, shape, true, loc);
        v = make(b, NODE(.op = OP_mul, .n_in = 2, .in = {v.at.node, scale.at.node}, .loc = loc));
    }
    if (t->source[source].bias >= 0) {
        Value bias = for_each(b, bias_of(b, t, source), ids, shape, false, loc);
        v = make(b, NODE(.op = OP_add, .n_in = 2, .in = {v.at.node, bias.at.node}, .loc = loc));
    }
    v.at.record = last_record(out);
    return v;
}

Value call_stack(Build *b, Tensor *t, const Value *chosen, Value x, Loc loc) {
    if (!t->present)
        fail_at(
            loc, "tensor '%.*s' is optional and the file does not have it; call it inside an 'if' on it", FMT(t->name));
    t->used = true;
    int ids = -1;
    int64_t count = t->stack;
    if (chosen) {
        Value v = ids_of(b, *chosen, loc);
        Shape shape = shape_at(b, v);
        if (shape.n != 1)
            fail_at(loc, "'%.*s' is chosen from by a list of ids, not by %s", FMT(t->name), shape_show(b->a, shape));
        ids = v.at.node, count = shape.d[0];
    }
    x = stack_input(b, t, count, x, loc);
    if (t->n_source == 1) return stack_source(b, t, 0, t->out, x, ids, count, loc);
    const Axis *record = &t->out.axis[0];
    Str *name = NEWN(b->a, Str, t->n_source);
    Value *value = NEWN(b->a, Value, t->n_source);
    for (int i = 0; i < t->n_source; i++) {
        name[i] = record->part[i].name;
        value[i] = stack_source(b, t, i, record->part[i].layout, x, ids, count, loc);
    }
    return (Value){.kind = V_RECORD, .list = {t->n_source, name, value, false}};
}

// ---- rearranging ----

// mix(w, y): [.., n] x [n, ..] -> [.., ..]
Value call_mix(Build *b, Scope *s, const Expr *e, Op op) {
    Value w = operand(b, s, e, 1), y = operand(b, s, e, 2);
    Value r = make(b, NODE(.op = op, .n_in = 2, .in = {w.at.node, y.at.node}, .loc = LOC(e)));
    r.at.record = y.at.record;
    return r;
}

// spread(x, n, grouped | tiled): the first axis made n long.
Value call_spread(Build *b, Scope *s, const Expr *e, Op op) {
    Value x = operand(b, s, e, 1), order = eval(b, s, e->arg[3]);
    int64_t n = eval_size(b, s, e->arg[2], "the new length");
    Shape shape = shape_at(b, x);
    bool tiled = is_text(order, "tiled");
    if (!tiled && !is_text(order, "grouped"))
        fail_at(LOC(e->arg[3]), "spread is 'grouped' (0 0 1 1) or 'tiled' (0 1 0 1); it has no default");
    if (shape.n < 1 || n < shape.d[0] || n % shape.d[0])
        fail_at(LOC(e), "the first axis of %s cannot be spread to %lld", shape_show(b->a, shape), (long long) n);
    if (n == shape.d[0]) return x;
    Value r = make(b, NODE(.op = op, .n_in = 1, .in = {x.at.node}, .num = {n, tiled}, .loc = LOC(e)));
    r.at.record = x.at.record;
    return r;
}

// join(a, b, ..): behind each other on the first axis.
Value call_join(Build *b, Scope *s, const Expr *e, Op op) {
    NodeSpec spec = NODE(.op = op, .loc = LOC(e));
    Shape whole = {0};
    const Axis *record = NULL;
    for (int i = 1; i < e->n; i++) {
        Value x = operand(b, s, e, i);
        Shape shape = shape_at(b, x);
        if (i == 1) whole = shape, record = x.at.record;
        bool fits = shape.n == whole.n && shape.n > 0;
        for (int j = 1; j < shape.n && fits; j++) fits = shape.d[j] == whole.d[j];
        if (!fits)
            fail_at(LOC(e->arg[i]), "%s and %s cannot be joined: all axes but the first must agree",
                shape_show(b->a, whole), shape_show(b->a, shape));
        if (spec.n_in == MAX_IN) fail_at(LOC(e), "more than %d values to join", MAX_IN);
        if (i > 1) whole.d[0] += shape.d[0];
        spec.in[spec.n_in++] = reshaped(b, x, (Shape){.n = 1, .d = {shape_size(shape)}}, LOC(e)).at.node;
    }
    Value r = reshaped(b, make(b, spec), whole, LOC(e));
    r.at.record = whole.n > 1 ? record : NULL;
    return r;
}
