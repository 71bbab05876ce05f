// The functions that every description may call, one row each in the table at the end, and states. In: a call as
// written, since some arguments are names or stay unevaluated. Out: its value: folded when every operand is a number,
// else a node.
#include "eval.h"

#include <math.h>
#include <string.h>

// ---- arguments ----

const Expr *named(const Expr *e, const char *label) {
    for (int i = 1; i < e->n; i++)
        if (str_is(e->label[i], label)) return e->arg[i];
    return NULL;
}

// Arguments without a name stand first.
int positional(const Expr *e) {
    int n = 0;
    while (n + 1 < e->n && !e->label[n + 1].n) n++;
    return n;
}

Value value_arg(Build *b, Scope *s, const Expr *e, int i) {
    Value v = scalar(b, s, eval(b, s, e->arg[i]));
    if (v.kind == V_ABSENT && b->in_or == 0) no_value(b, s, v);
    return v;
}

static int node_arg(Build *b, Scope *s, const Expr *e, int i) {
    return node_of(b, value_arg(b, s, e, i), LOC(e->arg[i]));
}

static Value node_like(Value v, Value x) { // elementwise: the layout stays
    if (x.kind == V_NODE) v.at.record = x.at.record;
    return v;
}

// ---- elementwise ----

// clang-format off
static const struct { const char *name; double (*f)(double); } folds[] = {
    {"sqrt", sqrt}, {"exp", exp}, {"log", log}, {"floor", floor}, {"abs", fabs}, {"tanh", tanh},
};
// clang-format on

static Value map1(Build *b, Scope *s, const Expr *e, Op op) {
    Value x = value_arg(b, s, e, 1);
    if (x.kind == V_ABSENT) return x;
    if (x.kind == V_NUM) {
        for (int i = 0; i < COUNT(folds); i++)
            if (str_is(str(op_info[op].name), folds[i].name)) {
                Value r = NUM(folds[i].f(x.num));
                r.varies = x.varies;
                if (!isfinite(r.num)) fail_at(LOC(e), "%s of %.9g is not a number", folds[i].name, x.num);
                return r;
            }
    }
    int in = node_of(b, x, LOC(e->arg[1]));
    return node_like(make(b, NODE(.op = op, .n_in = 1, .in = {in}, .loc = LOC(e))), x);
}

static Value minmax(Build *b, Scope *s, const Expr *e, Op op) {
    Value x = value_arg(b, s, e, 1);
    if (positional(e) == 1) { // along the last axis
        if (op == OP_min) fail_at(LOC(e), "min takes two values");
        return make(b, NODE(.op = OP_rmax, .n_in = 1, .in = {node_of(b, x, LOC(e))}, .loc = LOC(e)));
    }
    Value y = value_arg(b, s, e, 2);
    if (x.kind == V_ABSENT) return x;
    if (y.kind == V_ABSENT) return y;
    if (x.kind == V_NUM && y.kind == V_NUM) {
        Value r = NUM(op == OP_min ? fmin(x.num, y.num) : fmax(x.num, y.num));
        r.varies = x.varies || y.varies;
        return r;
    }
    int p = node_of(b, x, LOC(e->arg[1])), q = node_of(b, y, LOC(e->arg[2]));
    return node_like(make(b, NODE(.op = op, .n_in = 2, .in = {p, q}, .loc = LOC(e))), x);
}

static Value softcap(Build *b, Scope *s, const Expr *e, Op op) {
    double cap = eval_num(b, s, e->arg[2], "the cap");
    if (!(cap > 0)) fail_at(LOC(e->arg[2]), "the cap is %.9g; it must be positive", cap);
    return make(b, NODE(.op = op, .n_in = 1, .in = {node_arg(b, s, e, 1)}, .real = {cap}, .loc = LOC(e)));
}

static Value clamp(Build *b, Scope *s, const Expr *e, Op op) {
    double low = eval_num(b, s, e->arg[2], "the lower end"), high = eval_num(b, s, e->arg[3], "the upper end");
    if (!(low <= high)) fail_at(LOC(e), "clamp from %.9g to %.9g is empty", low, high);
    return make(b, NODE(.op = op, .n_in = 1, .in = {node_arg(b, s, e, 1)}, .real = {low, high}, .loc = LOC(e)));
}

// ---- along the last axis ----

static Value reduce(Build *b, Scope *s, const Expr *e, Op op) {
    const Expr *axis = named(e, "axis");
    if (axis && eval_size(b, s, axis, "the axis") != 0)
        fail_at(LOC(axis), "sums are along the last axis, or, with axis: 0, along the first");
    if (axis) op = OP_sum_first;
    return make(b, NODE(.op = op, .n_in = 1, .in = {node_arg(b, s, e, 1)}, .loc = LOC(e)));
}

// index(n): 0, 1, .. n - 1, for numbers that differ by head in a way that a formula says.
static Value index_of(Build *b, Scope *s, const Expr *e, Op op) {
    int64_t n = eval_size(b, s, e->arg[1], "how many numbers index gives");
    if (n < 1 || n > 1 << 16) fail_at(LOC(e->arg[1]), "index gives 1 to 65536 numbers, not %lld", (long long) n);
    return make(b, NODE(.op = op, .num = {n}, .loc = LOC(e)));
}

// pool(x, mean | first | last): what a sequence's rows are as one.
static Value pool(Build *b, Scope *s, const Expr *e, Op op) {
    Value how = eval(b, s, e->arg[2]);
    int kind = how.kind == V_FN && str_is(how.text, "mean") ? 0
        : is_text(how, "first")                                      ? 1
        : is_text(how, "last")                                       ? 2
                                                                     : -1;
    if (kind < 0) fail_at(LOC(e->arg[2]), "rows are pooled by mean, first or last");
    return make(b, NODE(.op = op, .n_in = 1, .in = {node_arg(b, s, e, 1)}, .num = {kind}, .loc = LOC(e)));
}

// norm(x [, w], eps); the weight's bias, if declared, follows.
static Value norm(Build *b, Scope *s, const Expr *e, Op op) {
    int n = positional(e);
    double eps = eval_num(b, s, e->arg[n], "epsilon, the last argument,");
    if (!(eps >= 0) || !isfinite(eps)) fail_at(LOC(e->arg[n]), "epsilon is %.9g; it must not be negative", eps);
    NodeSpec spec = NODE(.op = op, .n_in = 1, .in = {node_arg(b, s, e, 1)}, .real = {eps}, .loc = LOC(e));
    if (n == 3) {
        Value w = value_arg(b, s, e, 2);
        spec.in[spec.n_in++] = node_of(b, w, LOC(e->arg[2]));
        if (w.kind == V_TENSOR && w.tensor->source[0].bias >= 0) {
            int bias = weight_data(b, bias_of(b, w.tensor, 0), LOC(e)).at.node;
            if (op != OP_layer_norm)
                return make(b, NODE(.op = OP_add, .n_in = 2, .in = {make(b, spec).at.node, bias}, .loc = LOC(e)));
            spec.in[spec.n_in++] = bias;
        }
    }
    return make(b, spec);
}

// ---- attention and what it sees ----

static Value window(Build *b, Scope *s, const Expr *e, Op op) {
    (void) op;
    Str kind = e->arg[0]->name;
    int64_t n = eval_size(b, s, e->arg[1], "the number of rows");
    if (n < 1) fail_at(LOC(e), "%.*s(0) sees nothing; 'past' sees all that came before", FMT(kind));
    Sees sees = str_is(kind, "chunk") ? SEES_CHUNK : str_is(kind, "around") ? SEES_AROUND : SEES_WINDOW;
    return (Value){.kind = V_SEES, .sees = sees, .num = (double) n};
}

// windowed(period or array, l, full: last|first): is layer l a local one.
static Value windowed(Build *b, Scope *s, const Expr *e, Op op) {
    (void) op;
    const Expr *full = named(e, "full");
    Value p = eval(b, s, e->arg[1]);
    if (p.kind == V_ABSENT) return p;
    Value which = full ? eval(b, s, full) : (Value){.kind = V_NONE};
    bool last = is_text(which, "last");
    if (!last && !is_text(which, "first"))
        fail_at(LOC(e), "windowed needs full: first or full: last");
    int64_t l = eval_size(b, s, e->arg[2], "the layer");
    if (p.kind == V_ARRAY) {
        p = scalar(b, s, p);
        return FLAG(p.num != 0);
    }
    double period = need_num(b, s, p, LOC(e->arg[1]), "a period or one flag a layer");
    if (period < 1 || period != floor(period) || period > 1e9)
        fail_at(LOC(e->arg[1]), "a window pattern of period %.9g%s; at least 1 was expected", period, from_key(b, p));
    int64_t n = (int64_t) period;
    if (b->synth) synth_layers(b, n + 1);
    return FLAG(last ? l % n < n - 1 : l % n != 0);
}

static Value rope(Build *b, Scope *s, const Expr *e, Op op) {
    (void) op;
    return rope_value(b, s, e);
}

// r(x [, back: n] [, inverse: true])
static Value rotate(Build *b, Scope *s, const Expr *e, RopeValue *r) {
    for (int i = 1; i < e->n; i++)
        if (e->label[i].n && !str_is(e->label[i], "back") && !str_is(e->label[i], "inverse"))
            fail_at(LOC(e->arg[i]), "a rotation takes back: and inverse:, not '%.*s:'", FMT(e->label[i]));
    if (positional(e) != 1) fail_at(LOC(e), "a rotation takes one value");
    const Expr *back = named(e, "back"), *inverse = named(e, "inverse");
    int64_t by = back ? eval_size(b, s, back, "how far back") : 0, turned = inverse && eval_flag(b, s, inverse);
    if (by > 1 << 20) fail_at(LOC(back), "%lld positions back is too far", (long long) by);
    int x = node_arg(b, s, e, 1), angles = rope_angles(b, r, by, LOC(e));
    return make(b,
        NODE(.op = OP_rope, .n_in = 2, .in = {x, angles}, .num = {r->rope.dims, r->rope.halves, turned},
            .loc = LOC(e)));
}

// The flat width of a value; the width of the last axis for dim(x[last]).
static Value dim(Build *b, Scope *s, const Expr *e, Op op) {
    (void) op;
    const Expr *x = e->arg[1];
    bool last = x->kind == E_INDEX && x->arg[1]->kind == E_NAME && str_is(x->arg[1]->name, "last");
    Value v = eval(b, s, last ? x->arg[0] : x);
    if (v.kind == V_LAYOUT) return NUM((double) layout_size(v.layout, LOC(e)));
    int node = node_of(b, v, LOC(x));
    Shape shape = b->g->stage[b->stage].node[node].shape;
    return NUM((double) (last ? shape_last(shape) : shape_size(shape)));
}

// ---- states ----

static Value state_kind(Build *b, Scope *s, const Expr *e, Op op) {
    (void) b, (void) s, (void) op;
    fail_at(LOC(e), "'%.*s' stands in a state's declaration: state NAME : %.*s(..)", FMT(e->arg[0]->name),
        FMT(e->arg[0]->name));
}

// ---- the table ----

// clang-format off
static const struct {
    const char *name;
    int min, max;       // arguments without a name
    const char *labels; // names it knows, with blanks around
    Value (*call)(Build *b, Scope *s, const Expr *e, Op op);
    Op op;
} builtins[] = {
    {"min", 2, 2, "", minmax, OP_min}, {"max", 1, 2, "", minmax, OP_max},
    {"softcap", 2, 2, "", softcap, OP_softcap}, {"clamp", 3, 3, "", clamp, OP_clamp},
    {"sum", 1, 1, " axis ", reduce, OP_sum},
    {"mean", 1, 1, "", reduce, OP_mean}, {"softmax", 1, 1, "", reduce, OP_softmax},
    {"rms_norm", 2, 3, "", norm, OP_rms_norm}, {"layer_norm", 2, 3, "", norm, OP_layer_norm},
    {"l2_norm", 2, 2, "", norm, OP_l2_norm},
    {"attention", 2, 2, " scale softcap sinks k v only alibi bias ", call_attention, OP_attention},
    {"window", 1, 1, "", window, N_OP}, {"chunk", 1, 1, "", window, N_OP},
    {"around", 1, 1, "", window, N_OP}, {"windowed", 2, 2, " full ", windowed, N_OP},
    {"rope", 0, 0, NULL, rope, N_OP}, {"dim", 1, 1, "", dim, N_OP},
    {"cache", 0, 99, NULL, state_kind, N_OP}, {"tail", 0, 99, NULL, state_kind, N_OP},
    {"cell", 0, 99, NULL, state_kind, N_OP}, {"blend", 0, 99, NULL, state_kind, N_OP},
    {"top", 2, 2, "", call_top, OP_top}, {"only", 2, 2, "", call_only, OP_only}, {"mix", 2, 2, "", call_mix, OP_mix},
    {"index", 1, 1, "", index_of, OP_index}, {"spread", 3, 3, "", call_spread, OP_spread},
    {"join", 1, 99, "", call_join, OP_concat}, {"hash", 1, 1, " by mod plus ", call_hash, OP_hash},
    {"conv", 2, 2, " every ", call_conv, OP_conv}, {"pick", 2, 2, " top score rest ", call_pick, OP_pick},
    {"recur", 1, 1, " decay key value read erase write at ", call_recur, OP_recur}, {"pool", 2, 2, "", pool, OP_pool},
};
// clang-format on

// Functions of one value are the rows of ops.def.
static Op map_op(Str name) {
    if (str_is(name, "neg") || str_is(name, "clamp") || str_is(name, "softcap")) return N_OP;
    for (int i = 0; i < N_OP; i++)
        if (op_info[i].class == CLASS_MAP && op_info[i].max_in == 1 && str_is(name, op_info[i].name)) return (Op) i;
    return N_OP;
}

static int builtin_row(Str name) {
    for (int i = 0; i < COUNT(builtins); i++)
        if (str_is(name, builtins[i].name)) return i;
    return -1;
}

bool is_builtin(Str name) {
    return builtin_row(name) >= 0 || map_op(name) != N_OP;
}

Value call_builtin(Build *b, Scope *s, const Expr *e, Str name) {
    int row = builtin_row(name), n = positional(e), min = row < 0 ? 1 : builtins[row].min,
        max = row < 0 ? 1 : builtins[row].max;
    const char *labels = row < 0 ? "" : builtins[row].labels;
    for (int i = 1; i < e->n && labels; i++) {
        const char *label = str_z(b->a, str_fmt(b->a, " %.*s ", FMT(e->label[i])));
        if (e->label[i].n && !strstr(labels, label))
            fail_at(LOC(e->arg[i]), "'%.*s' has no argument '%.*s'", FMT(name), FMT(e->label[i]));
    }
    if (n < min || n > max) {
        if (min == max) fail_at(LOC(e), "'%.*s' takes %d argument%s, not %d", FMT(name), min, min == 1 ? "" : "s", n);
        fail_at(LOC(e), "'%.*s' takes %d to %d arguments, not %d", FMT(name), min, max, n);
    }
    return row < 0 ? map1(b, s, e, map_op(name)) : builtins[row].call(b, s, e, builtins[row].op);
}

static const Expr *only_argument(const Expr *e, const char *what) {
    if (e->n != 2 || e->label[1].n) fail_at(LOC(e), "%s takes one value", what);
    return e->arg[1];
}

Value call_value(Build *b, Scope *s, const Expr *e, Value f) {
    switch (f.kind) {
    case V_FN: return f.fn ? call_def(b, s, e, f.fn) : call_builtin(b, s, e, f.text);
    case V_TENSOR: return call_tensor(b, f.tensor, eval(b, s, only_argument(e, "a product")), LOC(e));
    case V_ROPE: return rotate(b, s, e, f.rope);
    case V_NONE:
        if (positional(e) != 1) fail_at(LOC(e), "'none' takes one value");
        return eval(b, s, e->arg[1]);
    case V_ABSENT:
        fail_at(LOC(e), "'%.*s' is not a function: nothing of that name is declared or built in", FMT(f.text));
    default: fail_at(LOC(e), "this is %s, not a function", kind_show(f));
    }
}
