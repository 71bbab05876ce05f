// Fusion: nodes are partitioned into kernels; nothing is moved or changed. In: a graph after run_passes' earlier
// passes.
// Out: node.kernel for every node that computes, stage.kernel with a name for each.
//
// Three rules:
//   1. A heavy operator is a kernel. It takes in the elementwise operators after it that combine its result, output by
// output,
//      with values that exist before it starts (bias, residual, gate times up): its epilogue.
//   2. Outputs that are combined from equal sections of one product (gate, up) are computed side by side: the weight's
//      sections alternate in panels of 16 (weight.interleave).
//   3. All other operators along a row that can run at the same moment (between the same heavy kernels) and for the
// same rows
//      are one row kernel: norm, rounding to 8 bits, rope and the store into the cache, in any chain.
#include "passes.h"

#include <string.h>

typedef struct {
    Graph *g;
    Stage *s;
    Report *r;
    bool *member;  // in the kernel being grown
    int *level;    // the moment a value exists: counts heavy kernels before it
    int sections;  // of the product's outputs
    int64_t width; // of a section
    int64_t parts; // equal parts of a row, each of that many sections: a product of a stack gives each
} Fuse;

static bool is_view(const Node *n) {
    return op_info[n->op].class == CLASS_VIEW;
}
static bool is_source(const Node *n) {
    return op_info[n->op].class == CLASS_SOURCE;
}

static int new_kernel(Fuse *f, Str name, int heavy) {
    *PUSH(f->g->arena, f->s->kernel, f->s->n_kernel, f->s->cap_kernel) = (KernelGroup){name, heavy};
    return f->s->n_kernel - 1;
}

// ---- rule 1 and 2 ----

static bool is_product(const Node *n) {
    return n->op == OP_matmul || n->op == OP_experts || n->op == OP_each;
}

// A member's value as a whole section: the product itself, an epilogue value, or an aligned slice of the product.
static bool member_section(const Fuse *f, int node) {
    int64_t from;
    int base;
    if (!behind_views_by(f->s, node, f->parts, &base, &from)) return false;
    if (!f->member[base] || shape_size(f->s->node[node].shape) != f->width * f->parts) return false;
    return !is_product(&f->s->node[base]) || from % f->width == 0;
}

// A value from outside, for output n of part e: one number for all, one for each part, a row of outputs for all parts,
// or for each.
static const char *cannot_read(const Fuse *f, int heavy, int node) {
    int64_t from, size = shape_size(f->s->node[node].shape);
    int base = behind_views(f->s, node, &from);
    const Node *root = &f->s->node[base];
    bool all = size == f->width * f->parts, fits_last = shape_last(f->s->node[node].shape) == f->width;
    if (root->rate == RATE_CONST)
        return size == 1 || all || (size == f->width && (f->parts == 1 || fits_last))
            ? NULL
            : "a weight is broadcast along heads";
    bool each_part = f->parts > 1 && size == f->parts && shape_last(f->s->node[node].shape) == 1;
    if (!(all || each_part) || from != 0 || shape_size(root->shape) != size) return "an operand has another width";
    if (root->type != F32) return "an operand is an id";
    bool later = base > heavy || f->level[base] > f->level[heavy];
    return root->op != OP_get && op_info[root->op].class == CLASS_SOURCE ? "an operand is no number"
        : !is_source(root) && later                                      ? "an operand is computed later"
                                                                         : NULL;
}

// May `node` join? Every operand is a section of the kernel, or something that exists before.
static const char *cannot_join(const Fuse *f, int heavy, int node) {
    const Node *n = &f->s->node[node];
    if (op_info[n->op].class != CLASS_MAP) return "it is not elementwise";
    if (shape_size(n->shape) != f->width * f->parts) return "its width differs";
    if (over_input(f->s, heavy, node)) return "it is written over what the product reads";
    for (int i = 0; i < n->n_in; i++) {
        bool inside = f->member[view_base(f->s, n->in[i])];
        if (inside && !member_section(f, n->in[i])) return "it takes a part of the product that is no equal section";
        const char *no = inside ? NULL : cannot_read(f, heavy, n->in[i]);
        if (no) return no;
    }
    return NULL;
}

// The sections that all slices of a product cut each of its parts into, or 1.
static int sections_of(const Stage *s, int heavy, int64_t parts) {
    int64_t out = shape_size(s->node[heavy].shape) / parts, width = 0, from;
    int base;
    for (int i = heavy + 1; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        if (n->op != OP_slice || view_base(s, i) != heavy) continue;
        int64_t size = shape_size(n->shape) / parts;
        if (!behind_views_by(s, i, parts, &base, &from) || (width && size != width) || out % size || from % size)
            return 1;
        width = size;
    }
    return width ? (int) (out / width) : 1;
}

// Values of the kernel that something outside of it reads, directly or through views.
static int live_outs(const Fuse *f, int *last) {
    int n = 0;
    for (int i = 0; i < f->s->n_node; i++) {
        if (!f->member[i]) continue;
        bool live = false;
        for (int j = i + 1; j < f->s->n_node && !live; j++) {
            const Node *u = &f->s->node[j];
            if (f->member[j] || is_view(u)) continue;
            for (int k = 0; k < u->n_in; k++) live |= view_base(f->s, u->in[k]) == i;
        }
        if (live) n++, *last = i;
    }
    return n;
}

static bool reads_member(const Fuse *f, int node) {
    for (int k = 0; k < f->s->node[node].n_in; k++)
        if (f->member[view_base(f->s, f->s->node[node].in[k])]) return true;
    return false;
}

static void grow_epilogue(Fuse *f, int heavy, const PassOptions *opt) {
    Stage *s = f->s;
    memset(f->member, 0, sizeof *f->member * (size_t) s->n_node);
    f->member[heavy] = true;
    f->parts = s->node[heavy].op == OP_matmul ? 1 : s->node[heavy].shape.d[0];
    f->sections = sections_of(s, heavy, f->parts);
    f->width = shape_size(s->node[heavy].shape) / f->sections / f->parts;
    const char *why = opt->no_fuse ? "fusion is off" : NULL;
    const char *first_no = NULL; // why the first reader of the product stays outside
    for (int i = heavy + 1; i < s->n_node && !why; i++) {
        if (is_view(&s->node[i]) || s->node[i].op == OP_set || !reads_member(f, i)) continue;
        const char *no = cannot_join(f, heavy, i);
        if (!no) f->member[i] = true;
        else if (!first_no) first_no = no;
    }
    Weight *w = &s->weight[s->node[heavy].weight];
    int last = heavy, outs = live_outs(f, &last), joined = 0;
    w->interleave = 1;
    for (int i = 0; i < s->n_node; i++) joined += f->member[i];
    if (!why && joined == 1) why = first_no ? first_no : "nothing follows it";
    if (!why && outs != 1) why = "more than one of its values is read elsewhere";
    if (!why && f->sections > 1 && last == heavy) why = "its sections are read apart";
    if (!why && f->sections > 1 && f->width % 16) why = "a section is no multiple of 16 outputs";
    Str what = str_fmt(f->g->arena, "epilogue of %.*s", FMT(w->name));
    if (why) {
        memset(f->member, 0, sizeof *f->member * (size_t) s->n_node);
        f->member[heavy] = true;
        report(f->r, s, what, why);
    } else if (joined > 1) {
        w->interleave = f->sections;
        report(f->r, s, str_fmt(f->g->arena, "%.*s: %d operators", FMT(what), joined - 1), "");
    }
}

static Str heavy_name(Fuse *f, int heavy) {
    const Node *n = &f->s->node[heavy];
    Str what = n->weight >= 0 ? f->s->weight[n->weight].name : str(op_info[n->op].name);
    Out o = out_new(f->g->arena);
    out(&o, "%.*s_", FMT(f->s->name));
    for (size_t i = 0; i < what.n; i++) // "attn_q+attn_k+attn_v" -> "attn_q_attn_k_attn_v"
        out(&o, "%c",
            (what.p[i] >= 'a' && what.p[i] <= 'z') || (what.p[i] >= '0' && what.p[i] <= '9') ? what.p[i] : '_');
    return out_text(&o);
}

// ---- rule 3 ----

static int level_of(const Fuse *f, int node) {
    const Node *n = &f->s->node[node];
    int level = 0;
    for (int i = 0; i < n->n_in; i++)
        if (f->level[n->in[i]] > level) level = f->level[n->in[i]];
    return level;
}

static Str row_name(Fuse *f, int first, int last) {
    const Stage *s = f->s;
    Str name = {0};
    bool puts = false, rounds = false, norms = false;
    for (int i = first; i <= last; i++) {
        if (s->node[i].kernel != s->n_kernel - 1) continue;
        Op op = s->node[i].op;
        puts |= op == OP_put, rounds |= op == OP_q8, norms |= op == OP_rms_norm || op == OP_layer_norm;
        if (s->node[i].name.n) name = s->node[i].name;
    }
    const char *verb = puts ? "store" : norms ? "norm" : rounds ? "round" : "rows";
    return name.n ? str_fmt(f->g->arena, "%.*s_%s_%.*s", FMT(s->name), verb, FMT(name))
                  : str_fmt(f->g->arena, "%.*s_%s", FMT(s->name), verb);
}

static void row_kernels(Fuse *f, const PassOptions *opt) {
    Stage *s = f->s;
    for (int i = 0; i < s->n_node; i++) {
        Node *n = &s->node[i];
        if (n->kernel >= 0 || is_view(n) || is_source(n) || n->op == OP_set || n->rate == RATE_CONST) continue;
        int k = new_kernel(f, S(""), -1), last = i;
        n->kernel = k;
        for (int j = i + 1; j < s->n_node && !opt->no_fuse; j++) {
            Node *m = &s->node[j];
            if (m->kernel >= 0 || is_view(m) || is_source(m) || m->op == OP_set || m->rate != n->rate) continue;
            if (f->level[j] == f->level[i]) m->kernel = k, last = j;
        }
        s->kernel[k].name = row_name(f, i, last);
    }
}

// Two kernels never share a name.
static void unique_names(Graph *g) {
    for (int a = 0; a < g->n_stage; a++)
        for (int i = 0; i < g->stage[a].n_kernel; i++) {
            int same = 0;
            for (int b = 0; b <= a; b++)
                for (int j = 0; j < (b < a ? g->stage[b].n_kernel : i); j++)
                    same += str_eq(g->stage[b].kernel[j].name, g->stage[a].kernel[i].name);
            if (same)
                g->stage[a].kernel[i].name = str_fmt(g->arena, "%.*s_%d", FMT(g->stage[a].kernel[i].name), same + 1);
        }
}

// needs: operands before uses. keeps: nodes and their order. breaks: nothing; a second run gives the same partition.
void fuse(Graph *g, Report *r, const PassOptions *opt) {
    for (int si = 0; si < g->n_stage; si++) {
        Stage *s = &g->stage[si];
        s->n_kernel = 0;
        Fuse f = {.g = g,
            .s = s,
            .r = r,
            .member = NEWN(g->arena, bool, s->n_node + 1),
            .level = NEWN(g->arena, int, s->n_node + 1)};
        for (int i = 0; i < s->n_node; i++) s->node[i].kernel = -1;
        for (int i = 0; i < s->n_node; i++) {
            Node *n = &s->node[i];
            if (n->kernel < 0) f.level[i] = level_of(&f, i);
            if (op_info[n->op].class != CLASS_HEAVY) continue;
            int done = f.level[i] + 1;
            if (is_product(n)) grow_epilogue(&f, i, opt);
            else memset(f.member, 0, sizeof *f.member * (size_t) s->n_node), f.member[i] = true;
            int k = new_kernel(&f, heavy_name(&f, i), i);
            for (int j = 0; j < s->n_node; j++)
                if (f.member[j]) s->node[j].kernel = k, f.level[j] = done;
        }
        row_kernels(&f, opt);
    }
    unique_names(g);
}
