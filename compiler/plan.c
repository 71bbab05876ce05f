// From a fused graph to a plan: kernels in order, places for values, layouts and offsets for weights, pages for states.
// In: a graph after run_passes. Out: Plan, in which nothing is left to decide. Only this file computes offsets.
#include "plan_in.h"

#include <stdlib.h>
#include <string.h>

// A row as templates/c/q8.h has it.
uint64_t plan_q8_bytes(int64_t k) {
    return align_up((uint64_t) (k + k / 8 * 3), PLAN_ALIGN);
}

// ---- kernels and steps ----

static int node_level(const Plan *p, int stage, const int *level, int node) {
    const Node *n = &p->graph->stage[stage].node[node];
    int l = 0;
    for (int i = 0; i < n->n_in; i++) l = level[n->in[i]] > l ? level[n->in[i]] : l;
    return l;
}

static void cost_of(Plan *p, Kernel *k) {
    const Stage *s = &p->graph->stage[k->stage];
    for (int i = 0; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        if (n->kernel != k->group) continue;
        int64_t size = shape_size(n->shape);
        if (op_info[n->op].class == CLASS_HEAVY && n->weight >= 0) {
            const Weight *w = &s->weight[n->weight];
            const TypeInfo *t = type_info(w->type);
            double products = w->stack ? (double) n->shape.d[0] : 1;
            k->flops += 2.0 * (double) w->in * (double) w->out * products;
            k->weight_bytes += (double) w->in / t->block * t->bytes * (double) w->out * products;
        } else if (op_info[n->op].class != CLASS_HEAVY) {
            k->flops += (double) size;
        }
        for (int j = 0; j < n->n_in; j++)
            if (s->node[n->in[j]].kernel != k->group && s->node[n->in[j]].rate != RATE_CONST)
                k->value_bytes += 4.0 * (double) shape_size(s->node[n->in[j]].shape);
    }
}

// How a product's outputs are cut into pieces: enough of them to share, each long enough to be worth a claim.
static void cut_matmul(Plan *p, Kernel *k, const Weight *w) {
    k->strands = (int) weight_strands(w);
    k->in = w->in, k->out = w->out / k->strands;
    const TypeInfo *t = type_info(w->type);
    int64_t panels = (k->out + 15) / 16, bytes = w->in / t->block * t->bytes * 16 * k->strands;
    int64_t least = (p->target->piece_bytes + bytes - 1) / bytes, even = panels / p->target->max_pieces;
    int64_t n = even > least ? even : least;
    if (n * bytes > (256 << 10)) n = (256 << 10) / bytes > 1 ? (256 << 10) / bytes : 1;
    k->panels = (int) (n < 1 ? 1 : n > panels ? panels : n);
    k->rows = 120; // a few tiles of rows: what the unpacked panel and their results take of the cache (measured)
}

// Query heads of a piece: as many of one kv head as leave two pieces for a single row, so that keys are read for
// several at once.
static void cut_attention(Kernel *k, const Stage *s, const Node *n) {
    int64_t heads = s->node[n->in[0]].shape.d[0], shared = heads / s->state[n->state].k.d[0], d = shared;
    while (d > 1 && (shared % d || heads / d < 2)) d--;
    k->heads = (int) d;
}

// What a heavy operator becomes: a template for the file's own rows or for values, and one for packed weights.
static const struct {
    Op op;
    KernelKind kind;
    const char *template, *packed;
} heavy_kinds[] = {
    {OP_matmul, K_MATMUL, "matmul.c", "panels.c"},
    {OP_experts, K_EXPERTS, "experts.c", "experts_panels.c"},
    {OP_each, K_EXPERTS, "experts.c", "experts_panels.c"},
    {OP_attention, K_ATTENTION, "attention.c", NULL},
    {OP_pick, K_STATE, "pick.c", NULL},
    {OP_shift, K_STATE, "shift.c", NULL},
    {OP_blend, K_STATE, "blend.c", NULL},
    {OP_recur, K_STATE, "recur.c", NULL},
    {OP_pool, K_STATE, "pool.c", NULL},
};

static void make_heavy(Plan *p, Kernel *k, const Stage *s, int heavy) {
    const Node *n = &s->node[heavy];
    for (int i = 0; i < COUNT(heavy_kinds); i++)
        if (heavy_kinds[i].op == n->op)
            k->kind = heavy_kinds[i].kind, k->template = heavy_kinds[i].template, k->packed = heavy_kinds[i].packed;
    if (n->weight >= 0) cut_matmul(p, k, &s->weight[n->weight]);
    if (n->op != OP_attention) return;
    k->rows = 16;
    cut_attention(k, s, n);
    k->keys = s->state[n->state].v.n ? "attend" : "latent";
    if (s->state[n->state].v.n) return;
    if (attention_caches(s, n->in, n->n_in) == 2) k->template = "latent_two.c";
    while (k->heads > 8 && k->heads % 2 == 0) k->heads /= 2; // long queries: few fit into the cache
    while (k->heads > 8) k->heads = 1;
}

static void make_kernel(Plan *p, int stage, int group, int level) {
    const Stage *s = &p->graph->stage[stage];
    Kernel k = {.stage = stage, .group = group, .name = s->kernel[group].name, .level = level};
    int heavy = s->kernel[group].heavy;
    for (int i = 0; i < s->n_node; i++)
        if (s->node[i].kernel == group) k.rate = s->node[i].rate;
    if (heavy >= 0) make_heavy(p, &k, s, heavy);
    cost_of(p, &k);
    p->kernel_of[stage][group] = p->n_kernel;
    *PUSH(p->graph->arena, p->kernel, p->n_kernel, p->cap_kernel) = k;
}

// Which of its two templates a product uses is known when its weight has a layout.
static void choose_templates(Plan *p) {
    for (int i = 0; i < p->n_kernel; i++) {
        Kernel *k = &p->kernel[i];
        const Stage *s = &p->graph->stage[k->stage];
        int heavy = s->kernel[k->group].heavy, weight = heavy >= 0 ? s->node[heavy].weight : -1;
        if (weight >= 0 && p->weight[p->packed[k->stage][weight]].layout == LAYOUT_PANELS) k->template = k->packed;
    }
}

static int kernel_order(const void *x, const void *y) {
    const Kernel *a = x, *b = y;
    if (a->level != b->level) return a->level - b->level;
    int ka = a->kind == K_ROWS ? 0 : 1, kb = b->kind == K_ROWS ? 0 : 1;
    if (ka != kb) return ka - kb;
    if (ka == 0 && a->rate != b->rate)
        return (int) a->rate - (int) b->rate; // all rows before wanted rows, which may take them
    return a->group - b->group;
}

static void plan_stage(Plan *p, int stage) {
    const Stage *s = &p->graph->stage[stage];
    int *level = NEWN(p->graph->arena, int, s->n_node + 1), *start = NEWN(p->graph->arena, int, s->n_kernel + 1);
    p->kernel_of[stage] = NEWN(p->graph->arena, int, s->n_kernel + 1);
    for (int i = 0; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        int in = node_level(p, stage, level, i);
        if (n->kernel >= 0 && s->kernel[n->kernel].heavy == i) {
            start[n->kernel] = in;
            level[i] = in + 1;
        } else if (n->kernel >= 0 && s->kernel[n->kernel].heavy >= 0) {
            level[i] = start[n->kernel] + 1;
        } else {
            level[i] = in;
            if (n->kernel >= 0) start[n->kernel] = in;
        }
    }
    int first = p->n_kernel;
    for (int k = 0; k < s->n_kernel; k++) make_kernel(p, stage, k, start[k]);
    qsort(p->kernel + first, (size_t) (p->n_kernel - first), sizeof *p->kernel, kernel_order);
    for (int k = first; k < p->n_kernel; k++) {
        p->kernel_of[stage][p->kernel[k].group] = k;
        *PUSH(p->graph->arena, p->step, p->n_step, p->cap_step) = (Step){k, stage};
    }
}

// ---- places ----

static int step_of(const Plan *p, int stage, int node) {
    int group = p->graph->stage[stage].node[node].kernel;
    return group < 0 ? -1 : p->kernel_of[stage][group]; // step i runs kernel i
}

static bool computes(const Node *n) {
    OpClass c = op_info[n->op].class;
    return c != CLASS_SOURCE && c != CLASS_VIEW && n->op != OP_set && n->op != OP_put;
}

// What becomes of a node's value.
typedef struct {
    bool leaves; // something outside of its kernel takes it
    int global;  // that it is given to whole, or -1
    int last;    // the last step that reads it
} Use;

static Use *uses_of(const Plan *p, int stage) {
    const Stage *s = &p->graph->stage[stage];
    Use *use = NEWN(p->graph->arena, Use, s->n_node + 1);
    for (int i = 0; i < s->n_node; i++) use[i] = (Use){.global = -1, .last = step_of(p, stage, i)};
    for (int i = 0; i < s->n_node; i++) {
        const Node *u = &s->node[i];
        if (op_info[u->op].class == CLASS_VIEW) continue;
        for (int k = 0; k < u->n_in; k++) {
            int64_t from;
            int base = behind_views(s, u->in[k], &from), at = step_of(p, stage, i);
            bool whole = from == 0 && shape_size(s->node[u->in[k]].shape) == shape_size(s->node[base].shape);
            Use *x = &use[base];
            if (u->op == OP_set && whole && x->global < 0) x->global = (int) u->num[0];
            if (u->op != OP_set && at > x->last) x->last = at;
            x->leaves |= computes(&s->node[base]) && (u->op == OP_set || u->kernel != s->node[base].kernel);
        }
    }
    return use;
}

bool node_is_stored(const Plan *p, int stage, int node) {
    return computes(&p->graph->stage[stage].node[node]) && p->place[stage][node].buffer >= 0;
}

// May a node's value be written over the old value of its global? Not when something after it, or another kernel, reads
// that.
static bool old_value_is_dead(const Plan *p, int stage, int node, int global) {
    const Stage *s = &p->graph->stage[stage];
    int made = step_of(p, stage, node);
    for (int i = 0; i < s->n_node; i++) {
        const Node *u = &s->node[i];
        if (op_info[u->op].class == CLASS_VIEW) continue;
        for (int k = 0; k < u->n_in; k++) {
            const Node *root = &s->node[view_base(s, u->in[k])];
            if (root->op != OP_get || root->num[0] != global) continue;
            int at = step_of(p, stage, i);
            if (at > made || (at == made && i > node)) return false;
        }
    }
    return true;
}

static int new_buffer(Plan *p, Buffer b) {
    b.row_bytes = b.type == Q8 ? (uint64_t) b.parts * plan_q8_bytes(b.width / b.parts) : (uint64_t) b.width * 4;
    b.bytes =
        b.logits ? 0 : align_up(b.row_bytes * (uint64_t) (b.rate == RATE_OUT ? p->max_out : p->max_batch), PLAN_ALIGN);
    *PUSH(p->graph->arena, p->buffer, p->n_buffer, p->cap_buffer) = b;
    return p->n_buffer - 1;
}

static void place_stage(Plan *p, int stage) {
    const Stage *s = &p->graph->stage[stage];
    Place *place = p->place[stage] = NEWN(p->graph->arena, Place, s->n_node + 1);
    const Use *use = uses_of(p, stage);
    for (int i = 0; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        int64_t from;
        int base = behind_views(s, i, &from);
        place[i] = (Place){-1, 0};
        if (n->op == OP_get) {
            place[i].buffer = (int) n->num[0]; // globals are the first buffers, in order
        } else if (base != i) {
            place[i] = (Place){place[base].buffer, from}; // from < 0: it is no range; its reader walks the base
        } else if (use[i].leaves) {
            int global = use[i].global;
            if (global >= 0 && old_value_is_dead(p, stage, i, global)) {
                place[i].buffer = global;
            } else {
                const Node *named = n->op == OP_q8 && !n->name.n ? &s->node[n->in[0]]
                                                                 : n; // rounded values are called after their source
                Buffer b = {.name = named->name.n ? named->name : str(op_info[named->op].name),
                    .stage = stage,
                    .node = i,
                    .type = n->type,
                    .rate = n->rate,
                    .width = shape_size(n->shape),
                    .parts = shape_size(n->shape) / shape_last(n->shape),
                    .first = step_of(p, stage, i),
                    .last = use[i].last};
                place[i].buffer = new_buffer(p, b);
            }
        }
    }
    for (int i = 0; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        if (n->op == OP_set && (place[n->in[0]].buffer != n->num[0] || place[n->in[0]].from != 0))
            fail_at(
                n->loc, "internal: the value of %.*s is not made in its place", FMT(p->graph->global[n->num[0]].name));
    }
}

// First fit: a buffer takes the lowest offset at which nothing lies that lives at the same time.
static void offset_buffers(Plan *p) {
    uint64_t top = 0;
    for (int i = 0; i < p->graph->n_global; i++) p->buffer[i].offset = top, top += p->buffer[i].bytes;
    uint64_t end = top;
    for (int i = p->graph->n_global; i < p->n_buffer; i++) {
        Buffer *b = &p->buffer[i];
        b->offset = top;
        for (bool moved = true; moved;) {
            moved = false;
            for (int j = p->graph->n_global; j < i; j++) {
                const Buffer *c = &p->buffer[j];
                bool together = c->stage == b->stage && c->first <= b->last && b->first <= c->last;
                if (together && c->offset < b->offset + b->bytes && b->offset < c->offset + c->bytes)
                    b->offset = c->offset + c->bytes, moved = true;
            }
        }
        if (b->offset + b->bytes > end) end = b->offset + b->bytes;
    }
    p->scratch_bytes = end;
}

// ---- the plan ----

static bool wants_q8(const void *target, const Weight *w) {
    return target_packs(target, w->type, w->in);
}

static bool all_f32(const Graph *g) {
    for (int i = 0; i < g->n_stage; i++)
        for (int j = 0; j < g->stage[i].n_weight; j++)
            if (g->stage[i].weight[j].product && g->stage[i].weight[j].type != type_named(S("F32"))->id) return false;
    return true;
}

Plan *plan_make(Graph *g, const Target *t, const PlanOptions *opt) {
    Arena *a = g->arena;
    Plan *p = NEW(a, Plan);
    *p = (Plan){.graph = g,
        .gguf = g->gguf,
        .target = t,
        .max_batch = opt->max_batch ? opt->max_batch : 512,
        .max_out = opt->max_out ? opt->max_out : 32,
        .page = 64};
    if (p->max_batch > g->n_ctx) p->max_batch = (int) g->n_ctx;
    if (p->max_out > p->max_batch || graph_whole(g)) p->max_out = p->max_batch; // a text in one batch: any rows of it
    p->report = NEW(a, Report);
    p->report->arena = a;
    p->kv_f32 = opt->kv_given ? opt->kv_f32 : all_f32(g);
    run_passes(g, p->report, &(PassOptions){.wants_q8 = wants_q8, .target = t, .no_fuse = opt->no_fuse});
    p->kernel_of = NEWN(a, int *, g->n_stage + 1);
    p->place = NEWN(a, Place *, g->n_stage + 1);
    for (int i = 0; i < g->n_global; i++) {
        const Global *gl = &g->global[i];
        new_buffer(p,
            (Buffer){.name = gl->name,
                .stage = -1,
                .node = i,
                .type = gl->type,
                .rate = gl->rate,
                .width = shape_size(gl->shape),
                .logits = i == g->logits});
    }
    for (int i = 0; i < g->n_stage; i++) plan_stage(p, i);
    for (int i = 0; i < g->n_stage; i++) place_stage(p, i);
    offset_buffers(p);
    plan_states(p);
    plan_weights(p);
    choose_templates(p);
    return p;
}
