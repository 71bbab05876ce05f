// Views: what values that move no data (reshape, slice) are of the value behind them, and the pass that copies
// where a reader cannot follow. In: nodes of a stage. Out: strides. The idea: a view is a walk with one step for
// each axis; only a reshape that would need two steps for one axis is none, and it gets a copy to be a view of.
#include "passes.h"

#include <string.h>

static View whole_of(const Stage *s, int node) {
    View v = {.base = node, .shape = s->node[node].shape, .ok = true};
    int64_t stride = 1;
    for (int i = v.shape.n; i-- > 0;) v.stride[i] = stride, stride *= v.shape.d[i];
    return v;
}

// The same walk over axes of another shape: runs of old axes that walk as one are split anew. Axes of 1 walk anyhow.
static bool reshape_view(View *v, Shape to) {
    int64_t d[MAX_DIM], stride[MAX_DIM], made[MAX_DIM] = {0};
    int n = 0, j = 0;
    for (int i = 0; i < v->shape.n; i++)
        if (v->shape.d[i] != 1) d[n] = v->shape.d[i], stride[n++] = v->stride[i];
    for (int i = 0; i < n;) {
        int64_t old = d[i], new = 1;
        int last = i, first = j;
        while (j < to.n && to.d[j] == 1) j++, first = j;
        for (;;) { // the fewest axes of both that hold as many
            if (new < old && j < to.n) new *= to.d[j++];
            else if (old < new &&last + 1 < n) old *= d[++last];
            else break;
        }
        if (old != new) return false;
        for (int k = i; k < last; k++)
            if (stride[k] != stride[k + 1] * d[k + 1]) return false;
        int64_t step = stride[last];
        for (int k = j; k-- > first;) made[k] = step, step *= to.d[k];
        i = last + 1;
    }
    memcpy(v->stride, made, sizeof made);
    v->shape = to;
    return true;
}

View view_of(const Stage *s, int node) {
    const Node *n = &s->node[node];
    if (n->op != OP_reshape && n->op != OP_slice) return whole_of(s, node);
    View v = view_of(s, n->in[0]);
    if (n->op == OP_reshape) v.ok = v.ok && reshape_view(&v, n->shape);
    else v.from += n->num[1] * v.stride[n->num[0]], v.shape = n->shape;
    return v;
}

int view_base(const Stage *s, int node) {
    while (s->node[node].op == OP_reshape || s->node[node].op == OP_slice) node = s->node[node].in[0];
    return node;
}

// Does a heavy operator read the global's old value as it is? Its result must not be written over that then: its pieces
// run at once, and each reads whole rows.
static bool reads_old(const Stage *s, int heavy, int64_t global) {
    for (int k = 0; k < s->node[heavy].n_in; k++) {
        const Node *root = &s->node[view_base(s, s->node[heavy].in[k])];
        if (root->op == OP_get && root->num[0] == global) return true;
    }
    return false;
}

bool over_input(const Stage *s, int heavy, int node) {
    for (int i = node + 1; i < s->n_node; i++)
        if (s->node[i].op == OP_set && view_base(s, s->node[i].in[0]) == node && reads_old(s, heavy, s->node[i].num[0]))
            return true;
    return false;
}

// Elements lie one after the other along the inner `axes` axes.
static bool inner_range(const View *v, int axes) {
    int64_t stride = 1;
    for (int i = v->shape.n; i-- > v->shape.n - axes && i >= 0;) {
        if (v->shape.d[i] != 1 && v->stride[i] != stride) return false;
        stride *= v->shape.d[i];
    }
    return v->ok;
}

bool view_is_range(const View *v) {
    return inner_range(v, v->shape.n);
}

bool view_is_whole(const Stage *s, const View *v) {
    return view_is_range(v) && v->from == 0 && shape_size(v->shape) == shape_size(s->node[v->base].shape);
}

int behind_views(const Stage *s, int node, int64_t *from) {
    View v = view_of(s, node);
    *from = view_is_range(&v) ? v.from : -1;
    return v.base;
}

bool behind_views_by(const Stage *s, int node, int64_t parts, int *base, int64_t *from) {
    View v = view_of(s, node);
    Shape split = {.n = 2, .d = {parts, shape_size(v.shape) / parts}};
    *base = v.base;
    int64_t width = shape_size(s->node[v.base].shape) / parts;
    if (!v.ok || shape_size(v.shape) % parts || shape_size(s->node[v.base].shape) % parts || !reshape_view(&v, split))
        return false;
    *from = v.from;
    bool steps = parts == 1 || v.stride[0] == width, inner = split.d[1] == 1 || v.stride[1] == 1;
    return steps && inner && v.from + split.d[1] <= width;
}

// ---- the pass: copies for readers that take no strides ----
// needs: nothing. keeps: every value. breaks: node numbers.

typedef enum {
    ANY,
    HEADS,
    RANGE,
    WHOLE
} Need; // any walk; inner axis one range; all one range; all of a value, as it was stored

static Need need_of(const Node *n, int operand) {
    switch (n->op) {
    case OP_reshape:
    case OP_slice:
    case OP_take:
    case OP_copy:
    case OP_id: return ANY;
    case OP_rms_norm:
    case OP_layer_norm: return operand ? ANY : HEADS;
    case OP_l2_norm:
    case OP_softmax:
    case OP_sum:
    case OP_mean:
    case OP_rmax:
    case OP_q8: return HEADS;
    case OP_rope: return operand ? RANGE : HEADS;
    case OP_set: return WHOLE;
    default: break;
    }
    OpClass class = op_info[n->op].class;
    return class == CLASS_MAP ? ANY : class == CLASS_HEAVY ? WHOLE : RANGE;
}

static bool given_already(
    const Stage *s, int base, int global) { // its place is another global's, or this one's from before
    if (s->node[base].op == OP_get) return true;
    for (int i = 0; i < s->n_node; i++) {
        if (s->node[i].op != OP_set || s->node[i].num[0] == global) continue;
        if (view_base(s, s->node[i].in[0]) == base) return true;
    }
    return false;
}

static bool follows(const Stage *s, const Node *n, int operand, int in) {
    if (s->node[in].type == HANDLE) return true;
    View v = view_of(s, in);
    Need need = need_of(n, operand);
    OpClass class = op_info[s->node[v.base].op].class;
    if (!v.ok) return false;
    if (n->op == OP_reshape) {
        View to = v;
        return reshape_view(&to, n->shape);
    }
    if (need == ANY) return true;
    bool number =
        class == CLASS_SOURCE && s->node[v.base].op != OP_get && s->node[v.base].op != OP_weight; // lies nowhere
    if (number && !((n->op == OP_embed || n->op == OP_angles) && s->node[v.base].type == I32)) return false;
    bool table = n->op == OP_attention || (n->op == OP_recur && n->num[1] && operand == n->n_in - 1);
    if (table && s->node[v.base].op == OP_weight) return view_is_whole(s, &v); // sinks, biases, rates
    if (need == HEADS) return inner_range(&v, 1);
    if (need == RANGE) return view_is_range(&v);
    if (!view_is_whole(s, &v) || (class == CLASS_SOURCE && s->node[v.base].op != OP_get)) return false;
    if (n->op != OP_set) return true;
    return !given_already(s, v.base, (int) n->num[0]) && !(class == CLASS_HEAVY && reads_old(s, v.base, n->num[0]));
}

void copy_pieces(Graph *g, Report *r) {
    for (int si = 0; si < g->n_stage; si++) {
        Rebuild b = rebuild_begin(g, si);
        for (int i = 0; i < b.n_old; i++) {
            int kept[MAX_IN];
            const Node n = b.old[i];
            for (int k = 0; k < n.n_in; k++) {
                int in = kept[k] = b.map[n.in[k]];
                if (follows(&g->stage[si], &n, k, in)) continue;
                const Node from = g->stage[si].node[in];
                b.map[n.in[k]] =
                    node_new(g, si, NODE(.op = OP_copy, .n_in = 1, .in = {in}, .name = from.name, .loc = from.loc));
                const Node *base = &g->stage[si].node[view_base(&g->stage[si], in)];
                Str what = from.name.n ? from.name : base->name;
                if (!what.n) what = str_fmt(g->arena, "a result of %s", op_info[base->op].name);
                report(r, &g->stage[si], str_fmt(g->arena, "a copy of %.*s for %s", FMT(what), op_info[n.op].name), "");
            }
            rebuild_copy(&b, i);
            for (int k = 0; k < n.n_in; k++) b.map[n.in[k]] = kept[k];
        }
    }
    simplify(g, NULL);
}
