// Where what lasts lies: states in pages or in a block of each sequence, weights in the packed file. In: a graph with
// its kernels.
// Out: layouts and offsets. Only these two functions give any.
#include "plan_in.h"

#include <string.h>

// ---- states ----

// States that give up the same positions share pages.
static int group_of(Plan *p, const State *st) {
    int64_t window =
        st->sees == SEES_WINDOW || st->sees == SEES_CHUNK ? st->n : 0; // what a row may see, itself included
    if (window >= p->graph->n_ctx) window = 0; // never leaves the window: the same as seeing all
    int64_t every = state_every(st);
    int group = 0;
    while (group < p->n_group && (p->group[group].window != window || p->group[group].every != every)) group++;
    if (group == COUNT(p->group))
        fail("state %.*s: more than %d kinds of windows in one model", FMT(st->name), COUNT(p->group));
    if (group == p->n_group) {
        Str name = window ? str_fmt(p->graph->arena, "window of %lld", (long long) window)
            : every > 1   ? str_fmt(p->graph->arena, "one for %lld positions", (long long) every)
                          : S("all positions");
        p->group[p->n_group++] = (GroupPlan){name, window, every, 0};
    }
    return group;
}

static StatePlan state_plan(Plan *p, int stage, int state) {
    const Graph *g = p->graph;
    const State *st = &g->stage[stage].state[state];
    StatePlan sp = {.stage = stage, .state = state, .group = -1};
    uint64_t elem = p->kv_f32 ? 4 : 2;
    if (st->kind == STATE_CACHE) {
        sp.group = group_of(p, st);
        sp.k_bytes = align_up((uint64_t) (shape_size(st->k) * p->page) * elem, PLAN_ALIGN);
        sp.v_bytes = st->v.n ? align_up((uint64_t) (shape_size(st->v) * p->page) * elem, PLAN_ALIGN) : 0;
    } else {
        int64_t copies = st->kind == STATE_TAIL ? st->n : st->kind == STATE_BLEND ? st->k.d[0] * st->n * 2 : 1;
        sp.k_bytes = align_up((uint64_t) (shape_size(st->k) * copies) * 4, PLAN_ALIGN);
    }
    sp.k_at = NEWN(g->arena, uint64_t, g->n_layer + 1), sp.v_at = NEWN(g->arena, uint64_t, g->n_layer + 1);
    return sp;
}

// The state of this name that a layer owns.
static const StatePlan *owner_of(const Plan *p, Str name, int layer) {
    const Graph *g = p->graph;
    for (int r = 0; r < g->n_run; r++) {
        const Run *run = &g->run[r];
        const Stage *s = &g->stage[run->stage];
        if (!s->layered || layer < run->first || layer >= run->first + run->count) continue;
        for (int j = 0; j < s->n_state; j++)
            if (str_eq(s->state[j].name, name) && !s->state[j].source) return &p->state[p->state_of[run->stage][j]];
    }
    fail("internal: layer %d has no state %.*s to share", layer, FMT(name));
}

static void place_state(Plan *p, StatePlan *sp, const State *st, int l) {
    if (st->source) {
        const StatePlan *own = owner_of(p, st->name, st->source[l]);
        if (own->group != sp->group || own->k_bytes != sp->k_bytes || own->v_bytes != sp->v_bytes)
            fail("state %.*s of layer %d is not what layer %d shares: sizes and 'sees' must agree", FMT(st->name), l,
                st->source[l]);
        sp->k_at[l] = own->k_at[st->source[l]], sp->v_at[l] = own->v_at[st->source[l]];
        return;
    }
    uint64_t *bytes = sp->group >= 0 ? &p->group[sp->group].page_bytes : &p->fixed_bytes;
    sp->k_at[l] = *bytes, sp->v_at[l] = *bytes + sp->k_bytes;
    *bytes += sp->k_bytes + sp->v_bytes;
}

void plan_states(Plan *p) {
    const Graph *g = p->graph;
    p->state_of = NEWN(g->arena, int *, g->n_stage + 1);
    for (int si = 0; si < g->n_stage; si++) {
        p->state_of[si] = NEWN(g->arena, int, g->stage[si].n_state + 1);
        for (int j = 0; j < g->stage[si].n_state; j++) {
            p->state_of[si][j] = p->n_state;
            StatePlan sp = state_plan(p, si, j);
            *PUSH(g->arena, p->state, p->n_state, p->cap_state) = sp;
        }
    }
    for (int shared = 0; shared < 2; shared++) // owned ones first
        for (int r = 0; r < g->n_run; r++) {
            const Run *run = &g->run[r];
            for (int l = run->first; l < run->first + run->count; l++)
                for (int j = 0; j < g->stage[run->stage].n_state; j++) {
                    const State *st = &g->stage[run->stage].state[j];
                    if ((st->source != NULL) == shared) place_state(p, &p->state[p->state_of[run->stage][j]], st, l);
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
            for (int64_t t = 0; t < layers * weight_tensors(w); t++) {
                if (w->tensor[t] < 0) continue;
                Use *u = &use[w->tensor[t]];
                Op op = s->node[i].op;
                u->product |= op == OP_matmul || op == OP_experts || op == OP_each, u->table |= op == OP_embed,
                    u->vector |= op == OP_weight;
            }
        }
    }
}

static uint64_t layer_bytes(const Plan *p, const Weight *w, Layout layout) {
    (void) p;
    const TypeInfo *t = type_info(w->type);
    int64_t rows = w->out * weight_stack(w);
    if (layout == LAYOUT_F32) return (uint64_t) (w->in * rows) * 4;
    if (layout == LAYOUT_RAW) return (uint64_t) (w->in / t->block * t->bytes * rows);
    int64_t panels = (w->out / weight_strands(w) + 15) / 16 * weight_strands(w) * weight_stack(w);
    return (uint64_t) panels * format_of(w->type)->panel_bytes(w->in);
}

static bool weight_used(const Stage *s, int weight) {
    for (int i = 0; i < s->n_node; i++)
        if (s->node[i].weight == weight && s->node[i].op != OP_angles && s->node[i].kernel >= 0) return true;
    for (int i = 0; i < s->n_node; i++) { // data: read by some kernel through views
        if (op_info[s->node[i].op].class == CLASS_VIEW || s->node[i].op == OP_angles) continue;
        for (int k = 0; k < s->node[i].n_in; k++) {
            const Node *root = &s->node[view_base(s, s->node[i].in[k])];
            if (root->op == OP_weight && root->weight == weight) return true;
        }
    }
    return false;
}

// One that was packed already with the same tensors in the same layout is used again (tied tables, layers that run
// twice).
static uint64_t place_layer(Plan *p, const Weight *w, PackedWeight *pw, int64_t l) {
    for (int i = 0; i < p->n_weight; i++) {
        const PackedWeight *o = &p->weight[i];
        const Stage *os = &p->graph->stage[o->stage];
        const Weight *ow = &os->weight[o->weight];
        if (o->layout != pw->layout || weight_tensors(ow) != weight_tensors(w) || ow->n_part != w->n_part ||
            weight_strands(ow) != weight_strands(w) || ow->in != w->in)
            continue;
        int64_t layers = os->layered ? p->graph->n_layer : 1;
        for (int64_t m = 0; m < layers; m++)
            if (o->offset[m] != UINT64_MAX &&
                !memcmp(&ow->tensor[m * weight_tensors(w)], &w->tensor[l * weight_tensors(w)],
                    sizeof(int) * (size_t) weight_tensors(w)))
                return o->offset[m];
    }
    uint64_t at = p->weight_bytes;
    p->weight_bytes = align_up(at + pw->bytes, PLAN_ALIGN);
    return at;
}

void plan_weights(Plan *p) {
    const Graph *g = p->graph;
    Use *use = NEWN(g->arena, Use, p->gguf->n_tensor + p->gguf->first_made + p->gguf->n_made + 1);
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
            if (!format_of(w->type)) format_refuse(weight_file_name(g, w), type_info(w->type)->name);
            Use all = {0};
            for (int64_t t = 0; t < layers * weight_tensors(w); t++) {
                if (w->tensor[t] < 0) continue;
                all.product |= use[w->tensor[t]].product, all.table |= use[w->tensor[t]].table,
                    all.vector |= use[w->tensor[t]].vector;
            }
            bool here = false; // as a product or table in this stage, not as a vector
            for (int i = 0; i < s->n_node; i++) here |= s->node[i].weight == j && s->node[i].op != OP_weight;
            PackedWeight pw = {.stage = si, .weight = j, .offset = NEWN(g->arena, uint64_t, layers)};
            pw.layout = !here                                                         ? LAYOUT_F32
                : all.product && !w->exact && target_packs(p->target, w->type, w->in) ? LAYOUT_PANELS
                                                                                      : LAYOUT_RAW;
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
