// Run-time values: making nodes, weights as operands, products, named parts, views. In: evaluated operands. Out: nodes
// of the present stage, with neutral operations left out.
#include "eval.h"

#include <string.h>

enum { MAX_NODES = 20000 };

bool is_run_time(Value v) {
    return v.kind == V_NODE || v.kind == V_TENSOR || v.kind == V_STATE || (v.kind == V_RECORD && v.list.n > 0);
}

Value make(Build *b, NodeSpec spec) {
    if (b->stage < 0) fail_at(spec.loc, "this is a value of the run; here everything is known when building");
    Stage *st = &b->g->stage[b->stage];
    OpClass class = op_info[spec.op].class;
    if (class == CLASS_SOURCE) // the same source twice is one node
        for (int i = 0; i < st->n_node; i++) {
            const Node *n = &st->node[i];
            bool same = n->op == spec.op && n->weight == spec.weight && n->state == spec.state &&
                n->real[0] == spec.real[0] && n->num[0] == spec.num[0];
            if (same) return (Value){.kind = V_NODE, .at = {.node = i, .stage = b->stage}};
        }
    if (st->n_node >= MAX_NODES) fail_at(spec.loc, "one layer has more than %d operations", MAX_NODES);
    return (Value){.kind = V_NODE, .at = {.node = node_new(b->g, b->stage, spec), .stage = b->stage}};
}

const Node *node_at(const Build *b, Value v) {
    return &b->g->stage[v.at.stage].node[v.at.node];
}

// A parameter of the layer: one more for each use, since the layers of a stage are matched use by use.
static Value make_param(Build *b, double value, Loc loc) {
    Graph *g = b->g;
    Param *p = PUSH(b->a, g->param, g->n_param, g->cap_param);
    *p = (Param){str_fmt(b->a, "p%d", g->n_param - 1), NEW(b->a, double)};
    p->value[0] = value;
    return make(b, NODE(.op = OP_param, .num = {g->n_param - 1}, .loc = loc));
}

const Axis *last_record(Layout l) {
    return l.n && l.axis[l.n - 1].n_part ? &l.axis[l.n - 1] : NULL;
}

Value weight_data(Build *b, int weight, Loc loc) {
    return make(
        b, NODE(.op = OP_weight, .weight = weight, .name = b->g->stage[b->stage].weight[weight].name, .loc = loc));
}

static Value tensor_data(Build *b, Tensor *t, Loc loc) {
    if (!t->present)
        fail_at(
            loc, "tensor '%.*s' is optional and the file does not have it; use it inside an 'if' on it", FMT(t->name));
    if (t->decl->in)
        fail_at(loc, "'%.*s' is a product; it is called with its input, %.*s(..)", FMT(t->name), FMT(t->name));
    if (t->n_source != 1) not_yet(loc, "data from several tensors is");
    t->used = true;
    int w = weight_of(b, t, 0, false);
    Value v = make(b, NODE(.op = OP_weight, .weight = w, .name = t->name, .loc = loc));
    v.at.record = last_record(t->out);
    return v;
}

Value reshaped(Build *b, Value v, Shape shape, Loc loc) {
    const Node *n = node_at(b, v);
    bool same = n->shape.n == shape.n && memcmp(n->shape.d, shape.d, sizeof(int64_t) * (size_t) shape.n) == 0;
    if (same) return v;
    return make(b, NODE(.op = OP_reshape, .n_in = 1, .in = {v.at.node}, .shape = shape, .loc = loc));
}

// The parts of a record, one after the other in memory.
static Value join_record(Build *b, Value v, Loc loc) {
    NodeSpec spec = NODE(.op = OP_concat, .loc = loc);
    Axis *axis = NEW(b->a, Axis);
    *axis = (Axis){.n_part = v.list.n, .part = NEWN(b->a, Part, v.list.n)};
    if (!v.list.name) fail_at(loc, "several results; name each: a, b = ..");
    for (int i = 0; i < v.list.n; i++) {
        int node = node_of(b, v.list.value[i], loc);
        Shape shape = b->g->stage[b->stage].node[node].shape;
        Layout l = {shape.n, NEWN(b->a, Axis, shape.n)};
        for (int j = 0; j < shape.n; j++) l.axis[j].size = shape.d[j];
        if (v.list.flat) {
            Value part = {.kind = V_NODE, .at = {.node = node, .stage = b->stage}};
            node = reshaped(b, part, (Shape){.n = 1, .d = {shape_size(shape)}}, loc).at.node;
        } else l.axis += l.n - 1, l.n = 1;
        axis->part[i] = (Part){v.list.name[i], l};
        axis->size += layout_size(l, loc);
        if (spec.n_in == MAX_IN) fail_at(loc, "a record of more than %d parts cannot be put together", MAX_IN);
        spec.in[spec.n_in++] = node;
    }
    if (spec.n_in == 1) return v.list.value[0];
    Value r = make(b, spec);
    r.at.record = axis;
    return r;
}

Value to_node(Build *b, Value v, Loc loc) {
    switch (v.kind) {
    case V_TENSOR: return tensor_data(b, v.tensor, loc);
    case V_RECORD: return join_record(b, v, loc);
    case V_NUM:
        return v.varies && b->stage >= 0 && b->g->stage[b->stage].layered
            ? make_param(b, v.num, loc)
            : make(b, NODE(.op = OP_const, .real = {v.num}, .loc = loc));
    case V_NONE: fail_at(loc, "this is 'none' here: nothing gave it a value yet");
    case V_INPUT: fail_at(loc, "this program has no input '%.*s', and no 'or' says what to take instead", FMT(v.text));
    case V_STATE: return state_handle(b, v.state, loc);
    case V_ABSENT:
        fail_at(loc, "'%.*s' has no value here: nothing declares or assigns it, and the file has no key '%s'",
            FMT(v.text),
            str_show(b->a, v.key));
    case V_NODE: break;
    default: fail_at(loc, "a value of the run was expected, found %s", kind_show(v));
    }
    if (v.at.stage != b->stage) {
        v.at.node = import_node(b, v.at.stage, v.at.node, loc);
        v.at.stage = b->stage;
    }
    return v;
}

int node_of(Build *b, Value v, Loc loc) {
    return to_node(b, v, loc).at.node;
}

void name_value(Build *b, Value v, Str name) {
    if (v.kind != V_NODE || v.at.stage != b->stage) return;
    Node *n = &b->g->stage[b->stage].node[v.at.node];
    if (!n->name.n) n->name = name;
}

// ---- arithmetic ----

static bool is_num(Value v, double x) {
    return v.kind == V_NUM && !v.varies && v.num == x;
}

Value arithmetic(Build *b, int op, Value x, Value y, Loc loc) {
    bool sum = op == '+' || op == '-', neutral_y = is_num(y, sum ? 0 : 1),
         neutral_x = is_num(x, op == '+' ? 0 : 1) && (op == '+' || op == '*');
    if (neutral_y) return to_node(b, x, loc);
    if (neutral_x) return to_node(b, y, loc);
    Value p = to_node(b, x, loc), q = to_node(b, y, loc);
    Op which = op == '+' ? OP_add : op == '-' ? OP_sub : op == '*' ? OP_mul : OP_div;
    Value r = make(b, NODE(.op = which, .n_in = 2, .in = {p.at.node, q.at.node}, .loc = loc));
    r.at.record = p.at.record ? p.at.record : q.at.record;
    if (r.at.record && shape_last(node_at(b, r)->shape) != r.at.record->size) r.at.record = NULL;
    return r;
}

// ---- products ----

static Value product(Build *b, Tensor *t, int source, Layout out, Value x, Loc loc) {
    int w = weight_of(b, t, source, true);
    Value v = make(b,
        NODE(.op = OP_matmul, .n_in = 1, .in = {x.at.node}, .weight = w, .shape = layout_shape(out, loc), .loc = loc));
    if (t->source[source].scale >= 0) {
        Value data = weight_data(b, scale_of(b, t, source), loc);
        v = make(b, NODE(.op = OP_mul, .n_in = 2, .in = {v.at.node, data.at.node}, .loc = loc));
    }
    if (t->source[source].bias >= 0) {
        Value data = weight_data(b, bias_of(b, t, source), loc);
        v = make(b, NODE(.op = OP_add, .n_in = 2, .in = {v.at.node, data.at.node}, .loc = loc));
    }
    v.at.record = last_record(out);
    return v;
}

Value call_tensor(Build *b, Tensor *t, Value x, Loc loc) {
    if (!t->present)
        fail_at(
            loc, "tensor '%.*s' is optional and the file does not have it; call it inside an 'if' on it", FMT(t->name));
    if (!t->decl->in) fail_at(loc, "'%.*s' is data, not a product; a product is declared 'a -> b'", FMT(t->name));
    if (t->stack) return call_stack(b, t, NULL, x, loc);
    t->used = true;
    x = to_node(b, x, loc);
    int64_t in = layout_size(t->in, loc), have = shape_size(node_at(b, x)->shape);
    if (in != have)
        fail_at(loc, "'%.*s' takes %lld numbers, but its input here is %s", FMT(t->name), (long long) in,
            shape_show(b->a, node_at(b, x)->shape));
    if (t->n_source == 1) return product(b, t, 0, t->out, x, loc);
    const Axis *record = &t->out.axis[0];
    Str *name = NEWN(b->a, Str, t->n_source);
    Value *value = NEWN(b->a, Value, t->n_source);
    for (int i = 0; i < t->n_source; i++) {
        name[i] = record->part[i].name;
        value[i] = product(b, t, i, record->part[i].layout, x, loc);
    }
    return (Value){.kind = V_RECORD, .list = {t->n_source, name, value, true}};
}

// ---- parts and views ----

Value record_value(Build *b, const Expr *e, Value *part) {
    for (int i = 0; i < e->n; i++) part[i] = to_node(b, part[i], LOC(e->arg[i]));
    return (Value){.kind = V_RECORD, .list = {e->n, e->label, part, false}};
}

static _Noreturn void no_part(Build *b, Str part, int n, const Str *name, Loc loc) {
    Out o = out_new(b->a);
    for (int i = 0; i < n; i++) out(&o, "%s%.*s", i ? ", " : "", FMT(name[i]));
    Str known = out_text(&o);
    fail_at(loc, "there is no part '%.*s'; the parts are %.*s", FMT(part), FMT(known));
}

static Value node_part(Build *b, Value v, Str part, Loc loc) {
    const Axis *record = v.at.record;
    if (!record) fail_at(loc, "'.%.*s': this value has no named parts", FMT(part));
    Shape shape = node_at(b, v)->shape;
    int64_t from = 0;
    Str *names = NEWN(b->a, Str, record->n_part);
    for (int i = 0; i < record->n_part; i++) {
        Layout l = record->part[i].layout;
        int64_t size = layout_size(l, loc);
        names[i] = record->part[i].name;
        if (str_eq(names[i], part)) {
            int axis = shape.n - 1;
            shape.d[axis] = size;
            Value r = make(
                b, NODE(.op = OP_slice, .n_in = 1, .in = {v.at.node}, .num = {axis, from}, .shape = shape, .loc = loc));
            Shape inner = layout_shape(l, loc);
            if (axis + inner.n > MAX_DIM) fail_at(loc, "a value has at most %d axes", MAX_DIM);
            for (int j = 0; j < inner.n; j++) shape.d[axis + j] = inner.d[j];
            shape.n = axis + inner.n;
            r = reshaped(b, r, shape, loc);
            r.at.record = last_record(l);
            return r;
        }
        from += size;
    }
    no_part(b, part, record->n_part, names, loc);
}

Value take_part(Build *b, Value v, Str part, Loc loc) {
    if (v.kind == V_ROPE) return rope_part(v.rope, part, loc);
    if (v.kind == V_TENSOR) v = to_node(b, v, loc);
    if (v.kind == V_STATE || (v.kind == V_NODE && v.at.state)) return state_column(b, to_node(b, v, loc), part, loc);
    if (v.kind == V_COLUMN) return column_part(b, v, part, loc);
    if (v.kind == V_NODE) return node_part(b, to_node(b, v, loc), part, loc);
    if (v.kind != V_RECORD || !v.list.name) fail_at(loc, "'.%.*s': %s has no named parts", FMT(part), kind_show(v));
    for (int i = 0; i < v.list.n; i++)
        if (str_eq(v.list.name[i], part)) return v.list.value[i];
    no_part(b, part, v.list.n, v.list.name, loc);
}

Value view_as(Build *b, Value v, Layout l, Loc loc) {
    v = to_node(b, v, loc);
    int64_t want = layout_size(l, loc), have = shape_size(node_at(b, v)->shape);
    if (want != have)
        fail_at(loc, "a value of shape %s cannot be seen as %lld numbers", shape_show(b->a, node_at(b, v)->shape),
            (long long) want);
    Value r = reshaped(b, v, layout_shape(l, loc), loc);
    r.at.record = last_record(l);
    return r;
}

// T[id]: a row of a table, or one for each of several ids.
static Value table_row(Build *b, Tensor *t, Value id, Loc loc) {
    if (!t->present)
        fail_at(
            loc, "tensor '%.*s' is optional and the file does not have it; use it inside an 'if' on it", FMT(t->name));
    if (t->decl->in || t->decl->out->n < 2)
        fail_at(loc, "'%.*s' is not a table; a table is declared 'rows, width'", FMT(t->name));
    t->used = true;
    int w = weight_of(b, t, 0, false);
    Layout row = {t->out.n - 1, t->out.axis + 1};
    Shape shape = node_at(b, id)->shape, one = layout_shape(row, loc);
    if (shape.n + one.n > MAX_DIM) fail_at(loc, "a value has at most %d axes", MAX_DIM);
    for (int i = 0; i < one.n; i++) shape.d[shape.n++] = one.d[i];
    Value v = make(b, NODE(.op = OP_embed, .n_in = 1, .in = {id.at.node}, .weight = w, .shape = shape, .loc = loc));
    v.at.record = last_record(row);
    return v;
}

// x[i] with an i that differs by layer: a parameter, so that the layers stay of one kind.
static Value part_of_layer(Build *b, Value v, Value i, Loc loc) {
    Shape shape = node_at(b, v)->shape;
    if (i.num < 0 || i.num >= (double) shape.d[0] || i.num != (double) (int64_t) i.num)
        fail_at(loc, "part %.9g is outside the first axis of %s", i.num, shape_show(b->a, shape));
    int param = (int) node_at(b, make_param(b, i.num, loc))->num[0];
    Value r = make(b, NODE(.op = OP_at, .n_in = 1, .in = {v.at.node}, .num = {param}, .loc = loc));
    r.at.record = v.at.record;
    return r;
}

// x[i], x[a..b] on the first axis, indices known when building.
Value index_value(Build *b, Scope *s, const Expr *e, Value base) {
    Loc loc = LOC(e);
    Value i = scalar(b, s, eval(b, s, e->arg[1]));
    if (base.kind == V_TENSOR && i.kind == V_NODE && base.tensor->decl->out->n > 1)
        return table_row(b, base.tensor, ids_of(b, i, loc), loc);
    if (base.kind == V_INPUT) return base;
    if (i.kind == V_NODE) return gather(b, base, i, loc);
    Value v = to_node(b, base, loc);
    Shape shape = node_at(b, v)->shape;
    if (shape.n == 0) fail_at(loc, "a single number has no axis to index");
    if (i.kind == V_NUM && i.varies && e->kind == E_INDEX && shape.n > 1 && b->stage > 0)
        return part_of_layer(b, v, i, loc);
    int64_t from = eval_size(b, s, e->arg[1], "an index"),
            to = e->kind == E_SLICE ? eval_size(b, s, e->arg[2], "an index") : from + 1;
    if (from >= to || to > shape.d[0])
        fail_at(loc, "%lld .. %lld is outside the first axis of %s", (long long) from, (long long) to,
            shape_show(b->a, shape));
    shape.d[0] = to - from;
    Value r = make(b, NODE(.op = OP_slice, .n_in = 1, .in = {v.at.node}, .num = {0, from}, .shape = shape, .loc = loc));
    if (e->kind == E_INDEX && shape.n > 1) { // the axis is gone
        for (int j = 1; j < shape.n; j++) shape.d[j - 1] = shape.d[j];
        shape.n--;
        r = reshaped(b, r, shape, loc);
    }
    r.at.record = shape.n > 1 || e->kind == E_INDEX ? v.at.record : NULL;
    return r;
}
