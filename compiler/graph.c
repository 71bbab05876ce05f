// Graphs: the operator table, making nodes, their shapes, and the laws that hold between passes.
// In: what build.c and the passes ask for. Out: nodes whose shape, type and rate follow from their operands, nothing
// else.
#include "shape.h"

#include <string.h>

const OpInfo op_info[N_OP] = {
#define MAP(name, n_in, expr, doc) [OP_##name] = {#name, CLASS_MAP, n_in, n_in, "p q|", #expr, doc},
#define OP(name, class, min_in, max_in, attrs, doc)                                                                    \
    [OP_##name] = {#name, CLASS_##class, min_in, max_in, attrs, NULL, doc},
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
    *PUSH(g->arena, g->global, g->n_global, g->cap_global) =
        (Global){.name = name, .shape = shape, .type = type, .rate = rate};
    return g->n_global - 1;
}

const char *shape_show(Arena *a, Shape s) {
    Out o = out_new(a);
    out(&o, "[");
    for (int i = 0; i < s.n; i++) out(&o, "%s%lld", i ? ", " : "", (long long) s.d[i]);
    out(&o, "]");
    return str_z(a, out_text(&o));
}

// Values that are computed have one for each row, even when they are the same in all.
static Rate rate_of(const Graph *g, const Stage *s, NodeSpec spec) {
    OpClass class = op_info[spec.op].class;
    bool row = spec.op == OP_token || spec.op == OP_position, wanted = spec.op == OP_take || spec.op == OP_pool;
    if (spec.op == OP_get) return g->global[spec.num[0]].rate;
    if (wanted) return RATE_OUT;
    for (int i = 0; i < spec.n_in; i++) {
        const Node *in = &s->node[spec.in[i]];
        if (in->type == HANDLE) continue; // a cache serves rows of any rate
        row |= in->rate == RATE_ROW;
        wanted |= in->rate == RATE_OUT;
    }
    if (row && wanted) fail_at(spec.loc, "internal: %s mixes all rows with wanted rows", op_info[spec.op].name);
    return wanted ? RATE_OUT : row || (class != CLASS_SOURCE && class != CLASS_VIEW) ? RATE_ROW : RATE_CONST;
}

// What an operand may be: a state's handle, ids, 8-bit values or numbers.
static void check_operand(const Stage *s, NodeSpec spec, int i) {
    const OpInfo *info = &op_info[spec.op];
    DType t = s->node[spec.in[i]].type;
    bool second = spec.op == OP_attention && i == 2 && t == HANDLE; // of two caches
    bool handle = ((spec.op == OP_attention || spec.op == OP_pick) && i == 1) || second;
    if ((t == HANDLE) != handle)
        fail_at(
            spec.loc, "%s: operand %d is %s", info->name, i + 1, t == HANDLE ? "a state, not a value" : "not a state");
    if (t == Q8 && !(op_has_weight(spec.op) && i == 0))
        fail_at(spec.loc, "%s: operand %d is not a state", info->name, i + 1);
    bool ids = spec.op == OP_embed || spec.op == OP_hash || (spec.op == OP_angles && i == 0) ||
        ((spec.op == OP_gather || spec.op == OP_only || spec.op == OP_experts) && i == 1);
    bool either = info->class == CLASS_MAP || info->class == CLASS_VIEW || spec.op == OP_take || spec.op == OP_copy ||
        spec.op == OP_set || spec.op == OP_concat || spec.op == OP_spread || spec.op == OP_at ||
        (spec.op == OP_attention && i > 1);
    if (!either && ids != (t == I32))
        fail_at(spec.loc, spec.op == OP_embed ? "a table is read by an id, not by a number" : "%s: operand %d is %s",
            info->name, i + 1, ids ? "a number, not an id" : "an id, not a number");
}

static DType type_of(const Graph *g, const Stage *s, NodeSpec spec) {
    switch (spec.op) {
    case OP_get: return g->global[spec.num[0]].type;
    case OP_token:
    case OP_position:
    case OP_top:
    case OP_id:
    case OP_hash:
    case OP_pick: return I32;
    case OP_put:
    case OP_cache: return HANDLE;
    case OP_q8: return Q8;
    case OP_reshape:
    case OP_slice:
    case OP_take:
    case OP_copy:
    case OP_set:
    case OP_concat:
    case OP_spread:
    case OP_at: return s->node[spec.in[0]].type;
    default: return F32;
    }
}

bool op_has_weight(Op op) {
    return op == OP_weight || op == OP_embed || op == OP_matmul || op == OP_experts || op == OP_each;
}

bool op_has_state(Op op) {
    return op == OP_put || op == OP_cache || op == OP_attention || op == OP_pick || op == OP_shift || op == OP_blend ||
        op == OP_recur;
}

bool op_keeps(Op op) {
    return op == OP_put || op == OP_shift || op == OP_blend || op == OP_recur;
}

int attention_caches(const Stage *s, const int *in, int n_in) {
    return n_in > 2 && s->node[in[2]].type == HANDLE ? 2 : 1;
}

AttentionRole attention_role(const Stage *s, const int *in, int n_in, bool biased, int i) {
    DType type = s->node[in[i]].type;
    if (type == HANDLE) return READS_CACHE;
    if (type == I32) return READS_PICKS;
    return biased && (i == n_in - 1 || s->node[in[i + 1]].type == I32) ? READS_BIASES : READS_SINKS;
}

bool graph_whole(const Graph *g) {
    bool whole = false;
    for (int i = 0; i < g->n_stage; i++) {
        for (int j = 0; j < g->stage[i].n_state; j++) {
            const State *st = &g->stage[i].state[j];
            whole |= st->kind == STATE_CACHE && sees_ahead(st->sees);
        }
        for (int j = 0; j < g->stage[i].n_node; j++) whole |= g->stage[i].node[j].op == OP_pool;
    }
    return whole;
}

int node_new(Graph *g, int stage, NodeSpec spec) {
    Stage *s = &g->stage[stage];
    const OpInfo *info = &op_info[spec.op];
    if (spec.n_in < info->min_in || spec.n_in > info->max_in)
        fail_at(spec.loc, "%s takes %d to %d operands, not %d", info->name, info->min_in, info->max_in, spec.n_in);
    for (int i = 0; i < spec.n_in; i++) check_operand(s, spec, i);
    Node n = {.op = spec.op,
        .n_in = spec.n_in,
        .weight = spec.weight,
        .state = spec.state,
        .kernel = -1,
        .name = spec.name,
        .loc = spec.loc};
    memcpy(n.in, spec.in, sizeof n.in);
    memcpy(n.real, spec.real, sizeof n.real);
    memcpy(n.num, spec.num, sizeof n.num);
    n.shape = node_shape(g, s, spec);
    n.type = type_of(g, s, spec);
    n.rate = rate_of(g, s, spec);
    if (op_has_weight(spec.op) && spec.op != OP_weight && spec.op != OP_embed) s->weight[spec.weight].product = true;
    if (spec.op == OP_attention || spec.op == OP_pick) n.state = s->node[spec.in[1]].state;
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
    if (op_has_weight(n->op) != (n->weight >= 0) && n->op != OP_angles) broken(g, s, i, "weight");
    if (n->weight >= s->n_weight) broken(g, s, i, "no such weight");
    if (op_has_state(n->op) != (n->state >= 0) || n->state >= s->n_state) broken(g, s, i, "state");
    if ((n->op == OP_get || n->op == OP_set) && (n->num[0] < 0 || n->num[0] >= g->n_global))
        broken(g, s, i, "no such global");
    if ((n->op == OP_param || n->op == OP_at) && (n->num[0] < 0 || n->num[0] >= g->n_param || !s->layered))
        broken(g, s, i, "no such param");
    if (n->op == OP_angles && (n->num[0] < 0 || n->num[0] >= g->n_rope)) broken(g, s, i, "no such rope");
    for (int k = 0; k < 3 && n->op == OP_hash; k++)
        if (n->num[k] < 0 || n->num[k] >= g->n_numbers) broken(g, s, i, "no such numbers");
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

Str weight_file_name(const Graph *g, const Weight *w) {
    int i = 0;
    while (w->tensor[i] < 0) i++;
    return g->gguf->tensor[w->tensor[i]].name;
}
