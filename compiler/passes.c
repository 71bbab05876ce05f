// Passes that change what is computed where, but no value: simplify, tail_rows, merge_products, quantise_inputs,
// inline_decay; and their list. (fuse, which only partitions, is in fuse.c.) Each rebuilds a stage node by node,
// so that operands stay before their uses.
#include "passes.h"
#include "shape.h"

#include <string.h>

void report(Report *r, const Stage *s, Str what, const char *reason) {
    if (r) *PUSH(r->arena, r->line, r->n, r->cap) = (ReportLine){s->name, what, str(reason)};
}

Rebuild rebuild_begin(Graph *g, int stage) {
    Stage *s = &g->stage[stage];
    Rebuild b = {g, stage, s->node, s->n_node, NEWN(g->arena, int, s->n_node + 1)};
    s->node = NULL, s->n_node = s->cap_node = 0;
    for (int i = 0; i < b.n_old; i++) b.map[i] = -1;
    return b;
}

static NodeSpec spec_of(const Node *n) {
    NodeSpec spec = {.op = n->op,
        .n_in = n->n_in,
        .weight = n->weight,
        .state = op_has_state(n->op) ? n->state : -1,
        .shape = n->shape,
        .name = n->name,
        .loc = n->loc};
    memcpy(spec.in, n->in, sizeof spec.in);
    memcpy(spec.real, n->real, sizeof spec.real);
    memcpy(spec.num, n->num, sizeof spec.num);
    return spec;
}

int rebuild_copy(Rebuild *b, int old) {
    NodeSpec spec = spec_of(&b->old[old]);
    for (int i = 0; i < spec.n_in; i++) spec.in[i] = b->map[spec.in[i]];
    return b->map[old] = node_new(b->g, b->stage, spec);
}

// ---- simplify: equal nodes become one, unused ones go ----
// needs: nothing. keeps: every value. breaks: node numbers.

static bool same_value(const Node *a, const Node *b) {
    return a->op == b->op && a->n_in == b->n_in && a->weight == b->weight && a->state == b->state &&
        a->shape.n == b->shape.n && memcmp(a->shape.d, b->shape.d, sizeof a->shape.d) == 0 &&
        memcmp(a->in, b->in, sizeof a->in[0] * (size_t) a->n_in) == 0 &&
        memcmp(a->real, b->real, sizeof a->real) == 0 && memcmp(a->num, b->num, sizeof a->num) == 0;
}

static uint64_t value_hash(const Node *n) {
    uint64_t h = hash64(n->in, sizeof n->in[0] * (size_t) n->n_in, (uint64_t) n->op << 32 | (uint32_t) n->weight);
    return hash64(n->num, sizeof n->num, hash64(n->real, sizeof n->real, h));
}

static bool *used_nodes(Arena *a, const Node *node, int n) {
    bool *used = NEWN(a, bool, n + 1);
    for (int i = n - 1; i >= 0; i--) {
        if (node[i].op == OP_set || op_keeps(node[i].op)) used[i] = true;
        for (int j = 0; used[i] && j < node[i].n_in; j++) used[node[i].in[j]] = true;
    }
    return used;
}

void simplify(Graph *g, Report *r) {
    (void) r;
    for (int si = 0; si < g->n_stage; si++) {
        Rebuild b = rebuild_begin(g, si);
        bool *used = used_nodes(g->arena, b.old, b.n_old);
        size_t size = 16;
        while (size < 2 * (size_t) b.n_old) size *= 2;
        int *known = NEWN(g->arena, int, size); // by their hash, nodes and 1
        for (int i = 0; i < b.n_old; i++) {
            if (!used[i]) continue;
            int made = rebuild_copy(&b, i);
            Stage *s = &g->stage[si];
            if (s->node[made].op == OP_set || op_keeps(s->node[made].op)) continue;
            size_t h = value_hash(&s->node[made]) & (size - 1);
            while (known[h] && !same_value(&s->node[known[h] - 1], &s->node[made])) h = (h + 1) & (size - 1);
            if (known[h]) b.map[i] = known[h] - 1, s->n_node--;
            else known[h] = made + 1;
        }
    }
}

// ---- tail_rows: in the last layer, what feeds no cache is computed for the wanted rows only ----
// needs: unfused graph. keeps: the logits. breaks: the last layer is a stage of its own; carried values leave it as
// OUT.

static int peel_last_layer(Graph *g) {
    int last = -1;
    for (int i = 0; i < g->n_run; i++)
        if (g->stage[g->run[i].stage].layered) last = i;
    if (last < 0) return -1;
    Run *run = &g->run[last];
    bool shared = run->count > 1;
    for (int i = 0; i < last; i++) shared |= g->run[i].stage == run->stage;
    if (!shared) return last;
    const Stage *old = &g->stage[run->stage];
    Stage copy = *old;
    copy.name = str_fmt(g->arena, "%.*s_last", FMT(old->name));
    copy.node = NEWN(g->arena, Node, old->n_node);
    memcpy(copy.node, old->node, sizeof *copy.node * (size_t) old->n_node);
    copy.cap_node = copy.n_node;
    copy.weight = NEWN(g->arena, Weight, old->n_weight + 1);
    memcpy(copy.weight, old->weight, sizeof *copy.weight * (size_t) old->n_weight);
    copy.cap_weight = copy.n_weight;
    *PUSH(g->arena, g->stage, g->n_stage, g->cap_stage) = copy;
    if (run->count == 1) {
        run->stage = g->n_stage - 1;
        return last;
    }
    *PUSH(g->arena, g->run, g->n_run, g->cap_run) = (Run){0};
    memmove(&g->run[last + 2], &g->run[last + 1], sizeof *g->run * (size_t) (g->n_run - last - 2));
    g->run[last].count--;
    g->run[last + 1] = (Run){g->n_stage - 1, g->run[last].first + g->run[last].count, 1};
    return last + 1;
}

// The wanted rows of a value that has all rows, made right behind it; any other value itself.
static int taken(const Rebuild *b, int old) {
    const Node n = b->g->stage[b->stage].node[b->map[old]];
    if (n.rate != RATE_ROW || n.type == HANDLE) return b->map[old];
    return node_new(b->g, b->stage, NODE(.op = OP_take, .n_in = 1, .in = {b->map[old]}, .name = n.name, .loc = n.loc));
}

static void take_in_stage(Graph *g, int stage, int *out_global) {
    Rebuild b = rebuild_begin(g, stage);
    bool *all = NEWN(g->arena, bool, b.n_old + 1);    // feeds a cache: needed for all rows
    bool *partly = NEWN(g->arena, bool, b.n_old + 1); // is read by something that is needed for the wanted rows only
    int *take = NEWN(g->arena, int, b.n_old + 1);
    for (int i = b.n_old - 1; i >= 0; i--) {
        all[i] |= op_keeps(b.old[i].op);
        for (int j = 0; j < b.old[i].n_in; j++) *(all[i] ? &all[b.old[i].in[j]] : &partly[b.old[i].in[j]]) = true;
    }
    for (int i = 0; i < b.n_old; i++) {
        NodeSpec spec = spec_of(&b.old[i]);
        bool wanted = !all[i] && op_info[spec.op].class != CLASS_SOURCE;
        if (spec.op == OP_get && out_global[spec.num[0]] >= 0) spec.num[0] = out_global[spec.num[0]];
        for (int j = 0; j < spec.n_in; j++) spec.in[j] = wanted ? take[spec.in[j]] : b.map[spec.in[j]];
        if (spec.op == OP_set) {
            Global *old = &g->global[spec.num[0]];
            if (old->rate == RATE_ROW && out_global[spec.num[0]] < 0)
                out_global[spec.num[0]] =
                    graph_global(g, str_fmt(g->arena, "%.*s_out", FMT(old->name)), old->shape, old->type, RATE_OUT);
            if (out_global[spec.num[0]] >= 0) spec.num[0] = out_global[spec.num[0]];
        }
        b.map[i] = take[i] = node_new(g, stage, spec);
        if (partly[i]) take[i] = taken(&b, i);
    }
}

static bool pools(const Graph *g) {
    for (int i = 0; i < g->n_stage; i++)
        for (int j = 0; j < g->stage[i].n_node; j++)
            if (g->stage[i].node[j].op == OP_pool) return true;
    return false;
}

void tail_rows(Graph *g, Report *r) {
    if (pools(g)) { // every row counts, and what is pooled has as many rows as are wanted
        g->global[g->logits].rate = RATE_OUT;
        return;
    }
    int last = peel_last_layer(g);
    int n_global = g->n_global;
    int *out_global = NEWN(g->arena, int, n_global * 2 + 8);
    for (int i = 0; i < n_global * 2 + 8; i++) out_global[i] = -1;
    g->global[g->logits].rate = RATE_OUT;
    int first = last >= 0 ? last : 0;
    // A carried value must be given by the last layer itself before the head may read its wanted rows.
    take_in_stage(g, g->run[first].stage, out_global);
    report(r, &g->stage[g->run[first].stage],
        S("tail rows: only rows whose logits are wanted go through what feeds no cache"), "");
    for (int i = first + 1; i < g->n_run; i++) take_in_stage(g, g->run[i].stage, out_global);
    for (int i = 0; i < g->n_output; i++)
        if (out_global[g->output[i]] >= 0) g->output[i] = out_global[g->output[i]];
    simplify(g, NULL);
}

// ---- merge_products: products of one input become one ----
// needs: weights with one part. keeps: every value (slices of the merged product). breaks: weight lists of the stage.

static bool is_product(Op op) {
    return op == OP_matmul || op == OP_experts || op == OP_each;
}

static bool mergeable(const Stage *s, const Node *a, const Node *b, const char **why) {
    const Weight *x = &s->weight[a->weight], *y = &s->weight[b->weight];
    *why = x->type != y->type                          ? "their types differ"
        : x->exact != y->exact                         ? "one of them is exact"
        : x->stack != y->stack || x->apart != y->apart ? "their stacks differ"
                                                       : NULL;
    return !*why;
}

static bool same_inputs(const Node *a, const Node *b) {
    return a->op == b->op && a->n_in == b->n_in && memcmp(a->in, b->in, sizeof a->in[0] * (size_t) a->n_in) == 0;
}

static bool has_table_use(const Stage *s, int weight) {
    for (int i = 0; i < s->n_node; i++)
        if (s->node[i].weight == weight && !is_product(s->node[i].op)) return true;
    return false;
}

static Weight merge_weights(const Graph *g, const Stage *s, const int *member, int n) {
    const Weight *first = &s->weight[s->node[member[0]].weight];
    int64_t layers = s->layered ? g->n_layer : 1;
    Weight m = *first;
    m.n_part = 0, m.out = 0;
    for (int i = 0; i < n; i++) m.n_part += s->weight[s->node[member[i]].weight].n_part;
    m.part_out = NEWN(g->arena, int64_t, m.n_part);
    m.tensor = NEWN(g->arena, int, layers *weight_tensors(&m));
    int64_t each = weight_tensors(&m) / m.n_part;
    int at = 0;
    Out name = out_new(g->arena);
    for (int i = 0; i < n; i++) {
        const Weight *w = &s->weight[s->node[member[i]].weight];
        out(&name, "%s%.*s", i ? "+" : "", FMT(w->name));
        for (int p = 0; p < w->n_part; p++) m.part_out[at + p] = w->part_out[p];
        for (int64_t l = 0; l < layers; l++)
            memcpy(m.tensor + l * weight_tensors(&m) + at * each, w->tensor + l * weight_tensors(w),
                sizeof(int) * (size_t) weight_tensors(w));
        at += w->n_part, m.out += w->out;
    }
    m.name = out_text(&name);
    m.shape = m.stack ? (Shape){.n = 3, .d = {m.stack, m.out, m.in}} : (Shape){.n = 2, .d = {m.out, m.in}};
    return m;
}

static void merge_in_stage(Graph *g, int si, Report *r) {
    Stage *s = &g->stage[si];
    int *leader = NEWN(g->arena, int, s->n_node + 1), *list = NEWN(g->arena, int, s->n_node + 1);
    int *merged = NEWN(g->arena, int, s->n_node + 1); // leader -> weight
    int64_t *offset = NEWN(g->arena, int64_t, s->n_node + 1);
    for (int i = 0; i < s->n_node; i++) leader[i] = i, merged[i] = -1;
    for (int i = 0; i < s->n_node; i++) {
        if (!is_product(s->node[i].op) || leader[i] != i || has_table_use(s, s->node[i].weight)) continue;
        int n = 0;
        list[n++] = i;
        for (int j = i + 1; j < s->n_node; j++) {
            const char *why;
            if (leader[j] != j || !same_inputs(&s->node[i], &s->node[j]) || has_table_use(s, s->node[j].weight))
                continue;
            Str what = str_fmt(g->arena, "merge products %.*s and %.*s", FMT(s->weight[s->node[i].weight].name),
                FMT(s->weight[s->node[j].weight].name));
            if (!mergeable(s, &s->node[i], &s->node[j], &why)) {
                report(r, s, what, why);
                continue;
            }
            report(r, s, what, "");
            list[n++] = j;
        }
        if (n == 1) continue;
        Weight m = merge_weights(g, s, list, n);
        int64_t at = 0;
        for (int k = 0; k < n; k++)
            leader[list[k]] = i, offset[list[k]] = at, at += s->weight[s->node[list[k]].weight].out;
        *PUSH(g->arena, s->weight, s->n_weight, s->cap_weight) = m;
        merged[i] = s->n_weight - 1;
    }
    Rebuild b = rebuild_begin(g, si);
    int *product = NEWN(g->arena, int, b.n_old + 1); // leader -> its merged product
    for (int i = 0; i < b.n_old; i++) {
        int lead = leader[i];
        if (merged[lead] < 0) {
            rebuild_copy(&b, i);
            continue;
        }
        const Node *n = &b.old[i];
        if (lead == i) {
            NodeSpec spec = spec_of(n);
            for (int k = 0; k < spec.n_in; k++) spec.in[k] = b.map[spec.in[k]];
            spec.weight = merged[i], spec.shape.n = 0, spec.name = (Str){0};
            product[i] = node_new(g, si, spec);
        }
        Shape part = g->stage[si].node[product[lead]].shape;
        int axis = part.n - 1;
        part.d[axis] = g->stage[si].weight[n->weight].out;
        int cut = node_new(g, si,
            NODE(.op = OP_slice, .n_in = 1, .in = {product[lead]}, .num = {axis, offset[i]}, .shape = part,
                .name = n->name, .loc = n->loc));
        b.map[i] = node_new(
            g, si, NODE(.op = OP_reshape, .n_in = 1, .in = {cut}, .shape = n->shape, .name = n->name, .loc = n->loc));
    }
}

void merge_products(Graph *g, Report *r) {
    for (int i = 0; i < g->n_stage; i++) merge_in_stage(g, i, r);
    simplify(g, NULL);
}

// ---- quantise_inputs: what a kernel wants rounded to 8 bits is rounded once, where it is made ----
// needs: merged products. keeps: shapes. breaks: exactness, where the target says so.

// The input of a product, rounded: each vector that a product takes by itself.
static int rounded(Rebuild *b, const Node *n, const Weight *w, int *made) {
    int in = n->in[0];
    int64_t parts = shape_size(b->old[in].shape) / w->in;
    if (made[in] >= 0 && shape_last(b->g->stage[b->stage].node[made[in]].shape) == w->in) return made[in];
    Shape shape = {.n = parts > 1 ? 2 : 1, .d = {parts > 1 ? parts : w->in, w->in}};
    const Node from = b->old[in];
    int x = b->map[in];
    bool fits = shape.n == from.shape.n && shape_last(from.shape) == w->in;
    if (!fits)
        x = node_new(b->g, b->stage,
            NODE(.op = OP_reshape, .n_in = 1, .in = {x}, .shape = shape, .name = from.name, .loc = from.loc));
    return made[in] =
               node_new(b->g, b->stage, NODE(.op = OP_q8, .n_in = 1, .in = {x}, .name = from.name, .loc = from.loc));
}

void quantise_inputs(Graph *g, Report *r, const PassOptions *opt) {
    for (int si = 0; si < g->n_stage; si++) {
        Rebuild b = rebuild_begin(g, si);
        int *q8 = NEWN(g->arena, int, b.n_old + 1); // old input -> its rounded form
        for (int i = 0; i < b.n_old; i++) q8[i] = -1;
        for (int i = 0; i < b.n_old; i++) {
            const Node *n = &b.old[i];
            const Weight *w = is_product(n->op) ? &g->stage[si].weight[n->weight] : NULL;
            if (w && !w->exact && opt->wants_q8(opt->target, w)) {
                int in = n->in[0], keep = b.map[in];
                int x = rounded(&b, n, w, q8);
                b.map[in] = x;
                rebuild_copy(&b, i);
                b.map[in] = keep;
            } else {
                if (w)
                    report(r, &g->stage[si], str_fmt(g->arena, "8-bit input of %.*s", FMT(w->name)),
                        w->exact ? "the description calls it exact" : "its kernel works in f32");
                rebuild_copy(&b, i);
            }
        }
    }
}

// ---- inline_decay: a decay exp(a T), a a number for each head, T a weight, is computed where it is used ----
// needs: nothing. keeps: every value. breaks: node numbers.
// For cells of vectors: there it is as large as the state, for each row of a batch.

static bool has_rates(const Rebuild *b, const Node *n, int *a, int *table) {
    if (n->op != OP_recur || n->n_in != 4 || b->old[n->in[0]].op != OP_exp) return false;
    const Shape cell = b->g->stage[b->stage].state[n->state].k;
    const Node *product = &b->old[b->old[n->in[0]].in[0]];
    if (cell.d[1] == 1 || cell.d[2] != 1 || product->op != OP_mul) return false;
    for (int i = 0; i < 2; i++) {
        *a = product->in[i], *table = product->in[1 - i];
        const Node *x = &b->old[*a], *t = &b->old[*table];
        Shape one = {.n = 2, .d = {cell.d[0], 1}}, each = {.n = 2, .d = {cell.d[0], cell.d[1]}};
        if (t->op == OP_weight && shape_eq(x->shape, one) && shape_eq(t->shape, each)) return true;
    }
    return false;
}

void inline_decay(Graph *g, Report *r) {
    for (int si = 0; si < g->n_stage; si++) {
        Rebuild b = rebuild_begin(g, si);
        for (int i = 0, a, table; i < b.n_old; i++) {
            if (!has_rates(&b, &b.old[i], &a, &table)) {
                rebuild_copy(&b, i);
                continue;
            }
            NodeSpec spec = spec_of(&b.old[i]);
            for (int j = 0; j < spec.n_in; j++) spec.in[j] = b.map[spec.in[j]];
            spec.in[0] = b.map[a], spec.in[spec.n_in++] = b.map[table], spec.num[1] = 1;
            b.map[i] = node_new(g, si, spec);
            report(r, &g->stage[si], S("decay of recur: computed where it is used"), "");
        }
    }
    simplify(g, NULL);
}

// ---- the list ----

void run_passes(Graph *g, Report *r, const PassOptions *opt) {
    graph_check(g, false);
    simplify(g, r);
    tail_rows(g, r);
    merge_products(g, r);
    quantise_inputs(g, r, opt);
    inline_decay(g, r);
    copy_pieces(g, r);
    graph_check(g, false);
    fuse(g, r, opt);
    name_values(g);
    graph_check(g, true);
}
