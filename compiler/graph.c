// Graphs: the operator table, making nodes, their shapes, and the laws that hold between passes.
// In: what build.c and the passes ask for. Out: nodes whose shape, type and rate follow from their operands, nothing else.
#include "graph.h"

#include <string.h>

const OpInfo op_info[N_OP] = {
#define MAP(name, n_in, expr, doc) [OP_##name] = {#name, CLASS_MAP, n_in, n_in, "p q|", #expr, doc},
#define OP(name, class, min_in, max_in, attrs, doc) [OP_##name] = {#name, CLASS_##class, min_in, max_in, attrs, NULL, doc},
#include "ops.def"
};

Graph *graph_new(Arena *a) {
    Graph *g = NEW(a, Graph);
    g->arena = a;
    g->logits = -1;
    return g;
}

int graph_stage(Graph *g, Str name, bool layered) {
    *PUSH(g->arena, g->stage, g->n_stage, g->cap_stage) = (Stage){.name = name, .layered = layered};
    return g->n_stage - 1;
}

int graph_global(Graph *g, Str name, Shape shape, DType type, Rate rate) {
    *PUSH(g->arena, g->global, g->n_global, g->cap_global) = (Global){.name = name, .shape = shape, .type = type, .rate = rate};
    return g->n_global - 1;
}

const char *shape_show(Arena *a, Shape s) {
    Out o = out_new(a);
    out(&o, "[");
    for (int i = 0; i < s.n; i++) out(&o, "%s%lld", i ? ", " : "", (long long) s.d[i]);
    out(&o, "]");
    return str_z(a, out_text(&o));
}

static bool shape_eq(Shape a, Shape b) {
    return a.n == b.n && memcmp(a.d, b.d, sizeof a.d[0] * (size_t) a.n) == 0;
}

// ---- shapes ----

// Both shapes aligned at the inner end; a missing axis or one of 1 stretches. false: they do not fit.
static bool broadcast(Shape a, Shape b, Shape *out) {
    Shape r = {.n = a.n > b.n ? a.n : b.n};
    for (int i = 1; i <= r.n; i++) {
        int64_t x = i <= a.n ? a.d[a.n - i] : 1, y = i <= b.n ? b.d[b.n - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        r.d[r.n - i] = x > y ? x : y;
    }
    *out = r;
    return true;
}

static Rate rate_of(const Stage *s, NodeSpec spec) {
    bool row = false, wanted = false;
    for (int i = 0; i < spec.n_in; i++) {
        const Node *in = &s->node[spec.in[i]];
        if (in->type == HANDLE) continue; // a cache serves rows of any rate
        row |= in->rate == RATE_ROW;
        wanted |= in->rate == RATE_OUT;
    }
    if (row && wanted) fail_at(spec.loc, "internal: %s mixes all rows with wanted rows", op_info[spec.op].name);
    return wanted ? RATE_OUT : row ? RATE_ROW : RATE_CONST;
}

static void shape_error(Graph *g, NodeSpec spec, const char *what, Shape found, Shape expected) {
    fail_at(spec.loc, "%s: %s is %s, but %s is needed here", op_info[spec.op].name, what, shape_show(g->arena, found),
            shape_show(g->arena, expected));
}

// The shape of a ROW, VIEW or HEAVY operator from its operands; the caller has checked their number.
static Shape shape_of(Graph *g, const Stage *s, NodeSpec spec) {
    const Node *a = spec.n_in > 0 ? &s->node[spec.in[0]] : NULL;
    const Node *b = spec.n_in > 1 ? &s->node[spec.in[1]] : NULL;
    const Weight *w = spec.weight >= 0 ? &s->weight[spec.weight] : NULL;
    const State *st = spec.state >= 0 ? &s->state[spec.state] : NULL;
    Shape r = a ? a->shape : (Shape){0};
    switch (spec.op) {
    case OP_get: return g->global[spec.num[0]].shape;
    case OP_token: case OP_position: case OP_const: case OP_param: return (Shape){0};
    case OP_weight: return w->shape;
    case OP_reshape:
        if (shape_size(spec.shape) != shape_size(r)) shape_error(g, spec, "the value", r, spec.shape);
        return spec.shape;
    case OP_slice: {
        int64_t axis = spec.num[0], from = spec.num[1];
        if (axis < 0 || axis >= r.n || spec.shape.n != r.n || from < 0 || from + spec.shape.d[axis] > r.d[axis])
            shape_error(g, spec, "the value", r, spec.shape);
        return spec.shape;
    }
    case OP_concat:
        for (int i = 1; i < spec.n_in; i++) {
            Shape p = s->node[spec.in[i]].shape, q = r;
            if (p.n && q.n) q.d[q.n - 1] = shape_last(p);
            if (!r.n || !shape_eq(p, q)) shape_error(g, spec, "an operand", p, r);
            r.d[r.n - 1] += shape_last(p);
        }
        return r;
    case OP_rms_norm: case OP_layer_norm:
        for (int i = 1; i < spec.n_in; i++) {
            Shape p = s->node[spec.in[i]].shape, q;
            if (!broadcast(r, p, &q) || !shape_eq(q, r)) shape_error(g, spec, "the weight", p, r);
        }
        return r;
    case OP_sum: case OP_mean: case OP_rmax:
        if (r.n) r.d[r.n - 1] = 1;
        return r;
    case OP_angles: return (Shape){.n = 2, .d = {g->rope[spec.num[0]].dims / 2, 2}};
    case OP_rope: {
        Shape want = {.n = 2, .d = {spec.num[0] / 2, 2}};
        if (!shape_eq(b->shape, want)) shape_error(g, spec, "the table of angles", b->shape, want);
        if (spec.num[0] > shape_last(r) || spec.num[0] < 2 || spec.num[0] % 2)
            fail_at(spec.loc, "rope turns %lld dims of an axis of %lld; it must be an even number of at most that", (long long) spec.num[0],
                    (long long) shape_last(r));
        return r;
    }
    case OP_embed: {
        if (a->type != I32) fail_at(spec.loc, "a table is read by an id, not by a number");
        Shape flat = {.n = 1, .d = {w->in}};
        if (spec.shape.n && shape_size(spec.shape) != w->in) shape_error(g, spec, "a row of the table", flat, spec.shape);
        return spec.shape.n ? spec.shape : flat;
    }
    case OP_matmul: {
        Shape flat = {.n = 1, .d = {w->out}}, in = {.n = 1, .d = {w->in}};
        if (shape_size(r) != w->in) shape_error(g, spec, "the input", r, in);
        if (spec.shape.n && shape_size(spec.shape) != w->out) shape_error(g, spec, "the result", flat, spec.shape);
        return spec.shape.n ? spec.shape : flat;
    }
    case OP_put:
        if (!shape_eq(r, st->k)) shape_error(g, spec, "k", r, st->k);
        if (!shape_eq(b->shape, st->v)) shape_error(g, spec, "v", b->shape, st->v);
        return (Shape){0};
    case OP_attention: {
        const State *c = &s->state[b->state];
        if (b->type != HANDLE) fail_at(spec.loc, "attention reads a cache: its second operand must be what put gives");
        if (r.n != 2 || r.d[1] != c->k.d[1]) shape_error(g, spec, "q", r, (Shape){.n = 2, .d = {r.d[0], c->k.d[1]}});
        if (r.d[0] % c->k.d[0])
            fail_at(spec.loc, "attention: %lld heads cannot share %lld key/value heads evenly", (long long) r.d[0], (long long) c->k.d[0]);
        return (Shape){.n = 2, .d = {r.d[0], c->v.d[1]}};
    }
    case OP_set:
        if (!shape_eq(r, g->global[spec.num[0]].shape)) shape_error(g, spec, "the value", r, g->global[spec.num[0]].shape);
        return r;
    default: return r; // softmax, l2_norm, take, q8
    }
}

static Shape map_shape(Graph *g, const Stage *s, NodeSpec spec) {
    Shape r = s->node[spec.in[0]].shape;
    for (int i = 1; i < spec.n_in; i++) {
        Shape p = s->node[spec.in[i]].shape;
        if (!broadcast(r, p, &r))
            fail_at(spec.loc, "%s: shapes %s and %s do not fit: axes must agree, be 1 or be missing on the outside", op_info[spec.op].name,
                    shape_show(g->arena, s->node[spec.in[0]].shape), shape_show(g->arena, p));
    }
    return r;
}

int node_new(Graph *g, int stage, NodeSpec spec) {
    Stage *s = &g->stage[stage];
    const OpInfo *info = &op_info[spec.op];
    if (spec.n_in < info->min_in || spec.n_in > info->max_in)
        fail_at(spec.loc, "%s takes %d to %d operands, not %d", info->name, info->min_in, info->max_in, spec.n_in);
    for (int i = 0; i < spec.n_in; i++) {
        DType t = s->node[spec.in[i]].type;
        bool handle = spec.op == OP_attention && i == 1, quantised = spec.op == OP_matmul;
        if ((t == HANDLE) != handle || (t == Q8 && !quantised))
            fail_at(spec.loc, "%s: operand %d is %s", info->name, i + 1, t == HANDLE ? "a state, not a value" : "not a state");
    }
    Node n = {.op = spec.op, .n_in = spec.n_in, .weight = spec.weight, .state = spec.state, .kernel = -1, .name = spec.name, .loc = spec.loc};
    memcpy(n.in, spec.in, sizeof n.in);
    memcpy(n.real, spec.real, sizeof n.real);
    memcpy(n.num, spec.num, sizeof n.num);
    n.shape = info->class == CLASS_MAP ? map_shape(g, s, spec) : shape_of(g, s, spec);
    n.type = F32;
    n.rate = rate_of(s, spec);
    switch (spec.op) {
    case OP_get: n.type = g->global[spec.num[0]].type, n.rate = g->global[spec.num[0]].rate; break;
    case OP_token: case OP_position: n.type = I32, n.rate = RATE_ROW; break;
    case OP_put: n.type = HANDLE; break;
    case OP_q8: n.type = Q8; break;
    case OP_take: n.rate = RATE_OUT; break;
    case OP_matmul: s->weight[spec.weight].product = true; break;
    default: break;
    }
    if (spec.op == OP_attention) n.state = s->node[spec.in[1]].state;
    *PUSH(g->arena, s->node, s->n_node, s->cap_node) = n;
    return s->n_node - 1;
}

// ---- laws ----

static _Noreturn void broken(const Graph *g, const Stage *s, int node, const char *law) {
    fail("internal: graph %.*s, stage %.*s, node %d (%s): %s", FMT(g->arch), FMT(s->name), node,
         node >= 0 ? op_info[s->node[node].op].name : "-", law);
}

static void check_node(const Graph *g, const Stage *s, int i, bool fused) {
    const Node *n = &s->node[i];
    const OpInfo *info = &op_info[n->op];
    if (n->n_in < info->min_in || n->n_in > info->max_in) broken(g, s, i, "number of operands");
    for (int j = 0; j < n->n_in; j++)
        if (n->in[j] < 0 || n->in[j] >= i) broken(g, s, i, "an operand is not before its use");
    bool wants_weight = n->op == OP_weight || n->op == OP_embed || n->op == OP_matmul;
    if (wants_weight != (n->weight >= 0) && n->op != OP_angles) broken(g, s, i, "weight");
    if (n->weight >= s->n_weight) broken(g, s, i, "no such weight");
    if ((n->op == OP_put || n->op == OP_attention) != (n->state >= 0) || n->state >= s->n_state) broken(g, s, i, "state");
    if ((n->op == OP_get || n->op == OP_set) && (n->num[0] < 0 || n->num[0] >= g->n_global)) broken(g, s, i, "no such global");
    if (n->op == OP_param && (n->num[0] < 0 || n->num[0] >= g->n_param || !s->layered)) broken(g, s, i, "no such param");
    if (n->op == OP_angles && (n->num[0] < 0 || n->num[0] >= g->n_rope)) broken(g, s, i, "no such rope");
    if (!fused) return;
    bool needs = info->class != CLASS_SOURCE && info->class != CLASS_VIEW && n->op != OP_set && n->rate != RATE_CONST;
    if (needs && (n->kernel < 0 || n->kernel >= s->n_kernel)) broken(g, s, i, "belongs to no kernel");
}

void graph_check(const Graph *g, bool fused) {
    for (int i = 0; i < g->n_stage; i++) {
        const Stage *s = &g->stage[i];
        for (int j = 0; j < s->n_weight; j++) {
            const Weight *w = &s->weight[j];
            int64_t out = 0;
            for (int k = 0; k < w->n_part; k++) out += w->part_out[k];
            if (out != w->out || w->in < 1 || !type_info(w->type)) fail("internal: weight %.*s: parts", FMT(w->name));
        }
        for (int j = 0; j < s->n_node; j++) check_node(g, s, j, fused);
    }
    int64_t next = 0;
    for (int i = 0; i < g->n_run; i++) {
        const Run *r = &g->run[i];
        if (r->stage < 0 || r->stage >= g->n_stage || r->count < 1) fail("internal: run %d", i);
        if (!g->stage[r->stage].layered) continue;
        if (r->first != next) fail("internal: run %d begins at layer %d, not %lld", i, r->first, (long long) next);
        next = r->first + r->count;
    }
    if (next != g->n_layer) fail("internal: runs cover %lld of %lld layers", (long long) next, (long long) g->n_layer);
    if (g->logits < 0 || g->logits >= g->n_global) fail("internal: the graph has no result");
}
