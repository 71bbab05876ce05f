// From a fused graph to a plan: kernels in order, places for values, layouts and offsets for weights, pages for states.
// In: a graph after run_passes. Out: Plan, in which nothing is left to decide. Only this file computes offsets.
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };
static uint64_t align_up(uint64_t x, uint64_t a) { return (x + a - 1) / a * a; }

static uint64_t q8_bytes(int64_t k) { return align_up((uint64_t) (k + k / 8 * 3), ALIGN); } // templates/c/q8.h

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
        if (n->op == OP_matmul) {
            const Weight *w = &s->weight[n->weight];
            const TypeInfo *t = type_info(w->type);
            k->flops += 2.0 * (double) w->in * (double) w->out;
            k->weight_bytes += (double) w->in / t->block * t->bytes * (double) w->out;
        } else if (n->op != OP_attention) {
            k->flops += (double) size;
        }
        for (int j = 0; j < n->n_in; j++)
            if (s->node[n->in[j]].kernel != k->group && s->node[n->in[j]].rate != RATE_CONST)
                k->value_bytes += 4.0 * (double) shape_size(s->node[n->in[j]].shape);
    }
}

// How a product's outputs are cut into pieces: enough of them to share, each long enough to be worth a claim.
static void cut_matmul(Plan *p, Kernel *k, const Weight *w) {
    k->strands = w->interleave > 1 ? w->interleave : 1;
    k->in = w->in, k->out = w->out / k->strands;
    const TypeInfo *t = type_info(w->type);
    int64_t panels = (k->out + 15) / 16, bytes = w->in / t->block * t->bytes * 16 * k->strands;
    int64_t least = (p->target->piece_bytes + bytes - 1) / bytes, even = panels / p->target->max_pieces;
    int64_t n = even > least ? even : least;
    if (n * bytes > (256 << 10)) n = (256 << 10) / bytes > 1 ? (256 << 10) / bytes : 1;
    k->panels = (int) (n < 1 ? 1 : n > panels ? panels : n);
    k->rows = p->max_batch;
}

static void make_kernel(Plan *p, int stage, int group, int level) {
    const Stage *s = &p->graph->stage[stage];
    Kernel k = {.stage = stage, .group = group, .name = s->kernel[group].name, .level = level, .state = -1};
    int heavy = s->kernel[group].heavy;
    for (int i = 0; i < s->n_node; i++)
        if (s->node[i].kernel == group) k.rate = s->node[i].rate;
    if (heavy >= 0 && s->node[heavy].op == OP_matmul) {
        k.kind = K_MATMUL, k.template = "matmul.c";
        cut_matmul(p, &k, &s->weight[s->node[heavy].weight]);
    } else if (heavy >= 0) {
        k.kind = K_ATTENTION, k.template = "attention.c";
        k.state = s->node[heavy].state, k.heads = 1, k.rows = 16;
    }
    cost_of(p, &k);
    p->kernel_of[stage][group] = p->n_kernel;
    *PUSH(p->graph->arena, p->kernel, p->n_kernel, p->cap_kernel) = k;
}

static int kernel_order(const void *x, const void *y) {
    const Kernel *a = x, *b = y;
    if (a->level != b->level) return a->level - b->level;
    int ka = a->kind == K_ROWS ? 0 : 1, kb = b->kind == K_ROWS ? 0 : 1;
    if (ka != kb) return ka - kb;
    if (ka == 0 && a->rate != b->rate) return (int) a->rate - (int) b->rate; // all rows before wanted rows, which may take them
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
    if (group < 0) return -1;
    for (int i = 0; i < p->n_step; i++)
        if (p->step[i].kernel == p->kernel_of[stage][group]) return i;
    return -1;
}

// The global that a node's value is given to whole, or -1.
static int set_global(const Stage *s, int node) {
    for (int i = node + 1; i < s->n_node; i++) {
        int64_t from;
        if (s->node[i].op == OP_set && behind_views(s, i, &from) == i && behind_views(s, s->node[i].in[0], &from) == node && from == 0 &&
            shape_size(s->node[s->node[i].in[0]].shape) == shape_size(s->node[node].shape))
            return (int) s->node[i].num[0];
    }
    return -1;
}

static bool computes(const Node *n) {
    OpClass c = op_info[n->op].class;
    return c != CLASS_SOURCE && c != CLASS_VIEW && n->op != OP_set && n->op != OP_put && n->rate != RATE_CONST;
}

bool node_is_stored(const Plan *p, int stage, int node) {
    const Stage *s = &p->graph->stage[stage];
    if (!computes(&s->node[node])) return false;
    for (int i = node + 1; i < s->n_node; i++) {
        const Node *u = &s->node[i];
        if (op_info[u->op].class == CLASS_VIEW) continue;
        for (int k = 0; k < u->n_in; k++) {
            int64_t from;
            if (behind_views(s, u->in[k], &from) == node && (u->op == OP_set || u->kernel != s->node[node].kernel)) return true;
        }
    }
    return false;
}

// May a node's value be written over the old value of its global? Not when something after it, or another kernel, reads that.
static bool old_value_is_dead(const Plan *p, int stage, int node, int global) {
    const Stage *s = &p->graph->stage[stage];
    int made = step_of(p, stage, node);
    for (int i = 0; i < s->n_node; i++) {
        const Node *u = &s->node[i];
        if (op_info[u->op].class == CLASS_VIEW) continue;
        for (int k = 0; k < u->n_in; k++) {
            int64_t from;
            const Node *root = &s->node[behind_views(s, u->in[k], &from)];
            if (root->op != OP_get || root->num[0] != global) continue;
            int at = step_of(p, stage, i);
            if (at > made || (at == made && i > node)) return false;
        }
    }
    return true;
}

static int last_use(const Plan *p, int stage, int node) {
    const Stage *s = &p->graph->stage[stage];
    int last = step_of(p, stage, node);
    for (int i = node + 1; i < s->n_node; i++) {
        const Node *u = &s->node[i];
        for (int k = 0; k < u->n_in; k++) {
            int64_t from;
            if (behind_views(s, u->in[k], &from) != node || u->op == OP_set) continue;
            int at = op_info[u->op].class == CLASS_VIEW ? -1 : step_of(p, stage, i);
            last = at > last ? at : last;
        }
    }
    return last;
}

static int new_buffer(Plan *p, Buffer b) {
    b.row_bytes = b.type == Q8 ? q8_bytes(b.width) : (uint64_t) b.width * 4;
    b.bytes = b.logits ? 0 : align_up(b.row_bytes * (uint64_t) (b.rate == RATE_OUT ? p->max_out : p->max_batch), ALIGN);
    *PUSH(p->graph->arena, p->buffer, p->n_buffer, p->cap_buffer) = b;
    return p->n_buffer - 1;
}

static void place_stage(Plan *p, int stage) {
    const Stage *s = &p->graph->stage[stage];
    Place *place = p->place[stage] = NEWN(p->graph->arena, Place, s->n_node + 1);
    for (int i = 0; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        int64_t from;
        int base = behind_views(s, i, &from);
        place[i] = (Place){-1, 0};
        if (n->op == OP_get) {
            place[i].buffer = (int) n->num[0]; // globals are the first buffers, in order
        } else if (base != i) {
            place[i] = (Place){place[base].buffer, from};
            if (from < 0 && place[base].buffer >= 0)
                fail_at(n->loc, "a slice that is not one range of its row is not supported here yet: slice the outermost axis");
        } else if (node_is_stored(p, stage, i)) {
            int global = set_global(s, i);
            if (global >= 0 && old_value_is_dead(p, stage, i, global)) {
                place[i].buffer = global;
            } else {
                const Node *named = n->op == OP_q8 && !n->name.n ? &s->node[n->in[0]] : n; // rounded values are called after their source
                Buffer b = {.name = named->name.n ? named->name : str(op_info[named->op].name), .stage = stage, .node = i, .type = n->type, .rate = n->rate,
                            .width = shape_size(n->shape), .first = step_of(p, stage, i), .last = last_use(p, stage, i)};
                place[i].buffer = new_buffer(p, b);
            }
        }
    }
    for (int i = 0; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        if (n->op == OP_set && (place[n->in[0]].buffer != n->num[0] || place[n->in[0]].from != 0))
            fail_at(n->loc, "internal: the value of %.*s is not made in its place", FMT(p->graph->global[n->num[0]].name));
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
                if (together && c->offset < b->offset + b->bytes && b->offset < c->offset + c->bytes) b->offset = c->offset + c->bytes, moved = true;
            }
        }
        if (b->offset + b->bytes > end) end = b->offset + b->bytes;
    }
    p->scratch_bytes = end;
}

// ---- states ----

static void plan_states(Plan *p) {
    const Graph *g = p->graph;
    p->state_of = NEWN(g->arena, int *, g->n_stage + 1);
    uint64_t elem = p->kv_f32 ? 4 : 2;
    for (int si = 0; si < g->n_stage; si++) {
        const Stage *s = &g->stage[si];
        p->state_of[si] = NEWN(g->arena, int, s->n_state + 1);
        for (int j = 0; j < s->n_state; j++) {
            const State *st = &s->state[j];
            if (st->sees == SEES_CHUNK) fail("state %.*s: chunked attention is not supported yet", FMT(st->name));
            int64_t window = st->sees == SEES_WINDOW ? st->n : 0;
            if (window >= g->n_ctx) window = 0; // never leaves the window: the same as seeing all
            int group = 0;
            while (group < p->n_group && p->group[group].window != window) group++;
            if (group == COUNT(p->group)) fail("state %.*s: more than %d kinds of windows in one model", FMT(st->name), COUNT(p->group));
            if (group == p->n_group) {
                Str name = window ? str_fmt(g->arena, "window of %lld", (long long) window) : S("all positions");
                p->group[p->n_group++] = (GroupPlan){name, window, 0};
            }
            StatePlan sp = {.stage = si, .state = j, .group = group};
            sp.k_bytes = align_up((uint64_t) (shape_size(st->k) * p->page) * elem, ALIGN);
            sp.v_bytes = align_up((uint64_t) (shape_size(st->v) * p->page) * elem, ALIGN);
            sp.k_at = NEWN(g->arena, uint64_t, g->n_layer + 1), sp.v_at = NEWN(g->arena, uint64_t, g->n_layer + 1);
            p->state_of[si][j] = p->n_state;
            *PUSH(g->arena, p->state, p->n_state, p->cap_state) = sp;
        }
    }
    for (int r = 0; r < g->n_run; r++) {
        const Run *run = &g->run[r];
        for (int l = run->first; l < run->first + run->count; l++)
            for (int j = 0; j < g->stage[run->stage].n_state; j++) {
                StatePlan *sp = &p->state[p->state_of[run->stage][j]];
                GroupPlan *gp = &p->group[sp->group];
                sp->k_at[l] = gp->page_bytes, sp->v_at[l] = gp->page_bytes + sp->k_bytes;
                gp->page_bytes += sp->k_bytes + sp->v_bytes;
            }
    }
}

// ---- weights ----

typedef struct {
    bool product, table, vector; // how a tensor of the file is used, over all stages
} Use;

static void note_uses(const Plan *p, Use *use) {
    const Graph *g = p->graph;
    for (int si = 0; si < g->n_stage; si++) {
        const Stage *s = &g->stage[si];
        int64_t layers = s->layered ? g->n_layer : 1;
        for (int i = 0; i < s->n_node; i++) {
            if (s->node[i].weight < 0) continue;
            const Weight *w = &s->weight[s->node[i].weight];
            for (int64_t t = 0; t < layers * w->n_part; t++) {
                if (w->tensor[t] < 0) continue;
                Use *u = &use[w->tensor[t]];
                Op op = s->node[i].op;
                u->product |= op == OP_matmul, u->table |= op == OP_embed, u->vector |= op == OP_weight;
            }
        }
    }
}

static int64_t strands(const Weight *w) { return w->interleave > 1 ? w->interleave : 1; }

static uint64_t layer_bytes(const Plan *p, const Weight *w, Layout layout) {
    (void) p;
    const TypeInfo *t = type_info(w->type);
    if (layout == LAYOUT_F32) return (uint64_t) (w->in * w->out) * 4;
    if (layout == LAYOUT_RAW) return (uint64_t) (w->in / t->block * t->bytes * w->out);
    int64_t panels = (w->out / strands(w) + 15) / 16 * strands(w);
    return (uint64_t) panels * format_of(w->type)->panel_bytes(w->in);
}

static bool weight_used(const Stage *s, int weight) {
    for (int i = 0; i < s->n_node; i++)
        if (s->node[i].weight == weight && s->node[i].op != OP_angles && s->node[i].kernel >= 0) return true;
    for (int i = 0; i < s->n_node; i++) { // data: read by some kernel through views
        if (op_info[s->node[i].op].class == CLASS_VIEW || s->node[i].op == OP_angles) continue;
        for (int k = 0; k < s->node[i].n_in; k++) {
            int64_t from;
            const Node *root = &s->node[behind_views(s, s->node[i].in[k], &from)];
            if (root->op == OP_weight && root->weight == weight) return true;
        }
    }
    return false;
}

// One that was packed already with the same tensors in the same layout is used again (tied tables).
static uint64_t place_layer(Plan *p, const Weight *w, PackedWeight *pw, int64_t l) {
    for (int i = 0; i < p->n_weight; i++) {
        const PackedWeight *o = &p->weight[i];
        const Stage *os = &p->graph->stage[o->stage];
        const Weight *ow = &os->weight[o->weight];
        if (o == pw || o->layout != pw->layout || ow->n_part != w->n_part || strands(ow) != strands(w) || ow->in != w->in) continue;
        int64_t layers = os->layered ? p->graph->n_layer : 1;
        for (int64_t m = 0; m < layers; m++)
            if (o->offset[m] != UINT64_MAX && !memcmp(&ow->tensor[m * w->n_part], &w->tensor[l * w->n_part], sizeof(int) * (size_t) w->n_part))
                return o->offset[m];
    }
    uint64_t at = p->weight_bytes;
    p->weight_bytes = align_up(at + pw->bytes, ALIGN);
    return at;
}

static void plan_weights(Plan *p) {
    const Graph *g = p->graph;
    Use *use = NEWN(g->arena, Use, p->gguf->n_tensor + 1);
    note_uses(p, use);
    p->packed = NEWN(g->arena, int *, g->n_stage + 1);
    for (int si = 0; si < g->n_stage; si++) {
        const Stage *s = &g->stage[si];
        int64_t layers = s->layered ? g->n_layer : 1;
        p->packed[si] = NEWN(g->arena, int, s->n_weight + 1);
        for (int j = 0; j < s->n_weight; j++) {
            const Weight *w = &s->weight[j];
            p->packed[si][j] = -1;
            if (!weight_used(s, j)) continue;
            if (!format_of(w->type))
                fail("tensor of type %s: this type is not supported yet; convert the file to another type", type_info(w->type)->name);
            Use all = {0};
            for (int64_t t = 0; t < layers * w->n_part; t++) {
                if (w->tensor[t] < 0) continue;
                all.product |= use[w->tensor[t]].product, all.table |= use[w->tensor[t]].table, all.vector |= use[w->tensor[t]].vector;
            }
            bool here = false; // as a product or table in this stage, not as a vector
            for (int i = 0; i < s->n_node; i++) here |= s->node[i].weight == j && s->node[i].op != OP_weight;
            PackedWeight pw = {.stage = si, .weight = j, .offset = NEWN(g->arena, uint64_t, layers)};
            pw.layout = !here ? LAYOUT_F32 : all.product && !w->exact && target_packs(p->target, w->type, w->in) ? LAYOUT_PANELS : LAYOUT_RAW;
            pw.bytes = layer_bytes(p, w, pw.layout);
            for (int64_t l = 0; l < layers; l++) pw.offset[l] = UINT64_MAX;
            p->packed[si][j] = p->n_weight;
            *PUSH(g->arena, p->weight, p->n_weight, p->cap_weight) = pw;
        }
    }
    for (int r = 0; r < g->n_run; r++) { // in the order in which they are read
        const Stage *s = &g->stage[g->run[r].stage];
        for (int l = g->run[r].first; l < g->run[r].first + g->run[r].count; l++)
            for (int j = 0; j < s->n_weight; j++) {
                int pi = p->packed[g->run[r].stage][j];
                if (pi >= 0) p->weight[pi].offset[l] = place_layer(p, &s->weight[j], &p->weight[pi], l);
            }
    }
}

// ---- the plan ----

static bool wants_q8(const void *target, const Weight *w) { return target_packs(target, w->type, w->in); }

static bool all_f32(const Graph *g) {
    for (int i = 0; i < g->n_stage; i++)
        for (int j = 0; j < g->stage[i].n_weight; j++)
            if (g->stage[i].weight[j].product && g->stage[i].weight[j].type != type_named(S("F32"))->id) return false;
    return true;
}

Plan *plan_make(Graph *g, const Target *t, const PlanOptions *opt) {
    Arena *a = g->arena;
    Plan *p = NEW(a, Plan);
    *p = (Plan){.graph = g, .gguf = g->gguf, .target = t, .max_batch = opt->max_batch ? opt->max_batch : 512,
                .max_out = opt->max_out ? opt->max_out : 32, .page = 64};
    if (p->max_batch > g->n_ctx) p->max_batch = (int) g->n_ctx;
    if (p->max_out > p->max_batch) p->max_out = p->max_batch;
    p->report = NEW(a, Report);
    p->report->arena = a;
    p->kv_f32 = opt->kv_given ? opt->kv_f32 : all_f32(g);
    run_passes(g, p->report, &(PassOptions){.wants_q8 = wants_q8, .target = t, .no_fuse = opt->no_fuse});
    p->kernel_of = NEWN(a, int *, g->n_stage + 1);
    p->place = NEWN(a, Place *, g->n_stage + 1);
    for (int i = 0; i < g->n_global; i++) {
        const Global *gl = &g->global[i];
        new_buffer(p, (Buffer){.name = gl->name, .stage = -1, .node = i, .type = gl->type, .rate = gl->rate, .width = shape_size(gl->shape),
                               .logits = i == g->logits});
    }
    for (int i = 0; i < g->n_stage; i++) plan_stage(p, i);
    for (int i = 0; i < g->n_stage; i++) place_stage(p, i);
    offset_buffers(p);
    plan_states(p);
    plan_weights(p);
    return p;
}
