// Prints a row kernel: everything that its nodes compute for one row, as plain loops.
// In: the nodes of one kernel. Out: a C function of one row. The idea: nodes that agree on (outer, inner) axes share an outer loop (heads),
// elementwise neighbours share an inner loop, and a value lives in the narrowest place that its uses allow: a variable of the
// loop, an array of the head, an array of the row, or the row's place in the plan.
#include "emit.h"

#include <string.h>

typedef enum { V_NONE, V_LOOP, V_INNER, V_ROW, V_STORED, V_SCALAR } Home;

typedef struct {
    int segment, loop; // where it is computed; loop -1: it is a statement of its own
    Home home;
} NodeInfo;

typedef struct {
    int64_t outer, inner;
} Segment;

typedef struct {
    Printer q;
    NodeInfo *info;
    Segment *segment;
    int n_segment, n_loop;
    bool *in;      // is a member
    Out decl, body;
} Rows;

static const Node *node_at(const Rows *r, int i) { return &r->q.stage->node[i]; }

// ---- where things are computed ----

static bool is_reduction(Op op) { return op == OP_sum || op == OP_mean || op == OP_rmax; }
static bool is_norm(Op op) { return op == OP_rms_norm || op == OP_layer_norm || op == OP_l2_norm; }
static bool is_elementwise(const Node *n) { return op_info[n->op].class == CLASS_MAP || is_norm(n->op) || n->op == OP_take; }

// Works along the last axis of a value with more axes, or broadcasts an operand along some axis: needs the outer loop.
static bool needs_outer(const Rows *r, const Node *n) {
    if (n->op == OP_q8 || n->op == OP_put || n->op == OP_embed || n->op == OP_angles || n->op == OP_concat) return false;
    if (is_norm(n->op) || is_reduction(n->op) || n->op == OP_softmax || n->op == OP_rope) return n->shape.n > 1;
    for (int i = 0; i < n->n_in; i++) {
        int64_t size = shape_size(node_at(r, n->in[i])->shape);
        if (size != 1 && size != shape_size(n->shape)) return true;
    }
    return false;
}

static Segment segment_of(const Rows *r, const Node *n) {
    Shape shape = is_reduction(n->op) ? node_at(r, n->in[0])->shape : n->shape;
    int64_t size = shape_size(shape), inner = shape_last(shape);
    return needs_outer(r, n) ? (Segment){size / inner, inner} : (Segment){1, size};
}

// The member whose value an operand is (through views), or -1; *same: it is the whole value, element by element.
static int member_operand(const Rows *r, const Node *n, int k, bool *same) {
    int64_t from;
    int base = behind_views(r->q.stage, n->in[k], &from);
    *same = from == 0 && shape_size(node_at(r, n->in[k])->shape) == shape_size(node_at(r, base)->shape) &&
            shape_size(node_at(r, base)->shape) == shape_size(n->shape);
    return r->in[base] ? base : -1;
}

static void place_nodes(Rows *r) {
    int segment = -1, loop = -1; // loop: the open one, or -1
    for (int i = 0; i < r->q.stage->n_node; i++) {
        if (!r->in[i]) continue;
        const Node *n = node_at(r, i);
        Segment want = segment_of(r, n), *have = segment >= 0 ? &r->segment[segment] : NULL;
        bool flat = want.outer == 1 && is_elementwise(n) && !is_norm(n->op);
        if (!have || !((want.outer == have->outer && want.inner == have->inner) || (flat && want.inner == have->outer * have->inner))) {
            r->segment[segment = r->n_segment++] = want;
            loop = -1;
        }
        bool fits = loop >= 0 && is_elementwise(n) && !is_norm(n->op);
        for (int k = 0; k < n->n_in && fits; k++) { // what the open loop makes may be read at the same element only
            bool same;
            int m = member_operand(r, n, k, &same);
            if (m >= 0 && r->info[m].loop == loop && !same) fits = false;
        }
        if (!fits) loop = is_elementwise(n) ? r->n_loop++ : -1;
        r->info[i] = (NodeInfo){segment, loop, V_NONE};
    }
}

static void house_nodes(Rows *r) {
    const Stage *s = r->q.stage;
    for (int i = 0; i < s->n_node; i++) {
        if (!r->in[i] || node_at(r, i)->op == OP_put) continue;
        NodeInfo *x = &r->info[i];
        bool same_loop = x->loop >= 0, same_segment = true;
        for (int j = i + 1; j < s->n_node; j++) {
            if (!r->in[j]) continue;
            const Node *u = node_at(r, j);
            for (int k = 0; k < u->n_in; k++) {
                bool same;
                if (member_operand(r, u, k, &same) != i) continue;
                bool whole = is_norm(u->op) && k == 0; // a norm reads its operand before its loop
                if (r->info[j].loop != x->loop || !same || whole) same_loop = false;
                if (r->info[j].segment != x->segment) same_segment = false;
            }
        }
        bool one = is_reduction(node_at(r, i)->op) && r->segment[x->segment].outer == 1;
        x->home = node_is_stored(r->q.plan, r->q.kernel->stage, i) ? V_STORED
                  : one                                            ? V_SCALAR
                  : is_reduction(node_at(r, i)->op)                ? (same_segment ? V_SCALAR : V_ROW)
                  : same_loop                                      ? V_LOOP
                  : same_segment && r->segment[x->segment].outer > 1 ? V_INNER
                                                                     : V_ROW;
    }
}

// ---- naming places ----

static const char *row_index(const Rows *r, Rate rate) {
    return rate == RATE_ROW && r->q.kernel->rate == RATE_OUT ? "m->out[r]" : "r";
}

// The pointer to a stored value's first element of this row; declared when first asked for.
static Str pointer(Rows *r, int node, bool written) {
    if (r->q.name[node].n) {
        if (written && r->q.place[node].buffer >= 0) printer_arg(&r->q, ARG_BUFFER, r->q.place[node].buffer, (Str){0}, true);
        return r->q.name[node];
    }
    Place at = r->q.place[node];
    const Buffer *b = &r->q.plan->buffer[at.buffer];
    if (b->rate == RATE_ROW && r->q.kernel->rate == RATE_OUT) printer_arg(&r->q, ARG_MODEL, 0, S("m"), false);
    for (int i = 0; i < r->q.stage->n_node; i++) // another node at the same place has the pointer already
        if (r->q.name[i].n && r->q.place[i].buffer == at.buffer && r->q.place[i].from == at.from && i != node) {
            if (written) printer_arg(&r->q, ARG_BUFFER, at.buffer, (Str){0}, true);
            return r->q.name[node] = r->q.name[i];
        }
    Str wanted = node_at(r, node)->name.n && b->type != Q8 ? node_at(r, node)->name : b->name;
    if (b->type == Q8) wanted = str_fmt(r->q.names.arena, "%.*s_q8", FMT(wanted));
    bool whole = at.from == 0 && shape_size(node_at(r, node)->shape) == b->width;
    const Arg *arg = printer_arg(&r->q, ARG_BUFFER, at.buffer, whole ? wanted : b->name, written);
    if (whole) r->q.name[node] = arg->name;
    else r->q.name[node] = name_fresh(&r->q.names, wanted);
    return r->q.name[node];
}

static Str weight_name(Rows *r, int weight) {
    return printer_arg(&r->q, ARG_WEIGHT, r->q.plan->packed[r->q.kernel->stage][weight], r->q.stage->weight[weight].name, false)->name;
}

// Element `i` of head `h` of a value of `size` elements used where (outer, inner) is computed.
static Str element(Rows *r, const Segment *seg, Shape shape, Str name) {
    Arena *a = r->q.names.arena;
    int64_t size = shape_size(shape);
    if (size == 1) return str_fmt(a, "%.*s[0]", FMT(name));
    if (size == seg->outer * seg->inner) return seg->outer == 1 ? str_fmt(a, "%.*s[i]", FMT(name)) : str_fmt(a, "%.*s[h * %lld + i]", FMT(name), (long long) seg->inner);
    if (size == seg->inner && shape_last(shape) == seg->inner) return str_fmt(a, "%.*s[i]", FMT(name));
    if (size == seg->outer && shape_last(shape) == 1) return str_fmt(a, "%.*s[h]", FMT(name));
    fail("internal: kernel %.*s broadcasts %s over %lld x %lld, which the row printer cannot do yet", FMT(r->q.kernel->name), shape_show(a, shape),
         (long long) seg->outer, (long long) seg->inner);
}

// Operand k of node n as a C expression inside n's loop.
static Str operand(Rows *r, int node, int k) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    const Segment *seg = &r->segment[r->info[node].segment];
    int64_t from;
    int use = n->in[k], base = behind_views(r->q.stage, use, &from);
    const Node *b = node_at(r, base);
    if (b->op == OP_const) return c_float(a, b->real[0]);
    if (b->op == OP_param) return printer_arg(&r->q, ARG_PARAM, (int) b->num[0], r->q.plan->graph->param[b->num[0]].name, false)->name;
    if (b->op == OP_position || b->op == OP_token) {
        printer_arg(&r->q, ARG_MODEL, 0, S("m"), false);
        return str_fmt(a, n->op == OP_take ? "(float) m->%s[m->out[r]]" : "(float) m->%s[r]", b->op == OP_position ? "pos" : "token");
    }
    Shape shape = node_at(r, use)->shape;
    if (b->op == OP_weight) {
        Str name = weight_name(r, b->weight);
        if (from) name = str_fmt(a, "(%.*s + %lld)", FMT(name), (long long) from);
        return element(r, seg, shape, name);
    }
    if (!r->in[base] || r->info[base].home == V_STORED) return element(r, seg, shape, pointer(r, use, false));
    Home home = r->info[base].home;
    if (home == V_LOOP || (home == V_SCALAR && r->segment[r->info[base].segment].outer == 1)) return r->q.name[base];
    if (home == V_SCALAR) return r->q.name[base];
    if (home == V_INNER) {
        if (from) fail("internal: kernel %.*s slices a value of a head", FMT(r->q.kernel->name));
        return str_fmt(a, "%.*s[i]", FMT(r->q.name[base]));
    }
    Str name = r->q.name[base];
    if (from) name = str_fmt(a, "(%.*s + %lld)", FMT(name), (long long) from);
    return element(r, seg, shape, name);
}

// A pointer to the inner axis of operand k, for functions that work along it.
static Str vector(Rows *r, int node, int k) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    const Segment *seg = &r->segment[r->info[node].segment];
    int64_t from;
    int use = n->in[k], base = behind_views(r->q.stage, use, &from);
    const Node *b = node_at(r, base);
    Str name;
    if (b->op == OP_weight) name = weight_name(r, b->weight);
    else if (!r->in[base] || r->info[base].home == V_STORED) name = pointer(r, use, false), from = 0;
    else name = r->q.name[base];
    if (r->in[base] && r->info[base].home == V_INNER) return name;
    if (from) name = str_fmt(a, "%.*s + %lld", FMT(name), (long long) from);
    bool per_head = seg->outer > 1 && shape_size(node_at(r, use)->shape) == seg->outer * seg->inner;
    return per_head ? str_fmt(a, "%.*s + h * %lld", FMT(name), (long long) seg->inner) : name;
}

// ---- printing ----

static Str fresh_value(Rows *r, int node, const char *fallback) {
    const Node *n = node_at(r, node);
    return r->q.name[node] = name_fresh(&r->q.names, n->name.n ? n->name : str(fallback));
}

// Where a node's value goes inside its inner loop, with the array declared before if it needs one.
static Str target_element(Rows *r, int node) {
    const Segment *seg = &r->segment[r->info[node].segment];
    Arena *a = r->q.names.arena;
    switch (r->info[node].home) {
    case V_STORED: return element(r, seg, node_at(r, node)->shape, pointer(r, node, true));
    case V_INNER: return str_fmt(a, "%.*s[i]", FMT(r->q.name[node]));
    case V_ROW: return element(r, seg, node_at(r, node)->shape, r->q.name[node]);
    default: {
        Str name = fresh_value(r, node, "t");
        return str_fmt(a, "const float %.*s", FMT(name));
    }
    }
}

static Str target_vector(Rows *r, int node) {
    const Segment *seg = &r->segment[r->info[node].segment];
    Str name = r->info[node].home == V_STORED ? pointer(r, node, true) : r->q.name[node];
    bool per_head = seg->outer > 1 && r->info[node].home != V_INNER && shape_size(node_at(r, node)->shape) > 1;
    return per_head ? str_fmt(r->q.names.arena, "%.*s + h * %lld", FMT(name), (long long) seg->inner) : name;
}

static void declare_array(Rows *r, int node) {
    Home home = r->info[node].home;
    if (home != V_INNER && home != V_ROW) return;
    int64_t n = home == V_INNER ? r->segment[r->info[node].segment].inner : shape_size(node_at(r, node)->shape);
    if (n > (1 << 18)) fail_at(node_at(r, node)->loc, "a value of %lld numbers inside one row kernel is too large", (long long) n);
    Str name = fresh_value(r, node, "t");
    out(home == V_INNER ? &r->body : &r->decl, "float %.*s[%lld];\n", FMT(name), (long long) n);
}

// What a norm needs before its loop, and the expression of one element.
static Str norm_element(Rows *r, int node, bool before) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    const Segment *seg = &r->segment[r->info[node].segment];
    Str eps = c_float(a, n->real[0]);
    if (before) {
        Str x = vector(r, node, 0), scale = name_fresh(&r->q.names, S("scale"));
        long long len = (long long) seg->inner;
        if (n->op == OP_layer_norm) {
            Str mean = name_fresh(&r->q.names, S("mean"));
            out(&r->body, "const float %.*s = row_sum(%.*s, %lld) / %lld;\n", FMT(mean), FMT(x), len, len);
            out(&r->body, "const float %.*s = 1.0f / sqrtf(row_sum_sq_from(%.*s, %.*s, %lld) / %lld + %.*s);\n", FMT(scale), FMT(x), FMT(mean), len, len, FMT(eps));
            return str_fmt(a, "%.*s %.*s", FMT(scale), FMT(mean));
        }
        if (n->op == OP_l2_norm)
            out(&r->body, "const float %.*s = 1.0f / max_f32(sqrtf(row_sum_sq(%.*s, %lld)), %.*s);\n", FMT(scale), FMT(x), len, FMT(eps));
        else
            out(&r->body, "const float %.*s = 1.0f / sqrtf(row_sum_sq(%.*s, %lld) / %lld + %.*s);\n", FMT(scale), FMT(x), len, len, FMT(eps));
        return scale;
    }
    return eps;
}

static Str map_expression(Rows *r, int node, Str norm) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    Str in[MAX_IN];
    for (int k = 0; k < n->n_in; k++) in[k] = operand(r, node, k);
    if (n->op == OP_take) return in[0];
    if (!is_norm(n->op)) return c_map(&r->q, n, in);
    Str e;
    if (n->op == OP_layer_norm) {
        size_t cut = 0;
        while (norm.p[cut] != ' ') cut++;
        e = str_fmt(a, "(%.*s - %.*s) * %.*s", FMT(in[0]), FMT(((Str){norm.p + cut + 1, norm.n - cut - 1})), (int) cut, norm.p);
    } else {
        e = str_fmt(a, "%.*s * %.*s", FMT(in[0]), FMT(norm));
    }
    if (n->n_in > 1) e = str_fmt(a, "%.*s * %.*s", FMT(e), FMT(in[1]));
    if (n->n_in > 2) e = str_fmt(a, "%.*s + %.*s", FMT(e), FMT(in[2]));
    return e;
}

static void print_loop(Rows *r, int first) {
    int loop = r->info[first].loop, count = 0;
    const Segment *seg = &r->segment[r->info[first].segment];
    Str norm = {0};
    for (int i = first; i < r->q.stage->n_node; i++) {
        if (!r->in[i] || r->info[i].loop != loop) continue;
        declare_array(r, i);
        if (is_norm(node_at(r, i)->op)) norm = norm_element(r, i, true);
        count++;
    }
    out(&r->body, "for (int i = 0; i < %lld; i++)%s", (long long) seg->inner, count > 1 ? " {\n" : "\n");
    r->body.indent++;
    for (int i = first; i < r->q.stage->n_node; i++) {
        if (!r->in[i] || r->info[i].loop != loop) continue;
        Str e = map_expression(r, i, norm), t = target_element(r, i);
        out(&r->body, "%.*s = %.*s;\n", FMT(t), FMT(e));
    }
    r->body.indent--;
    if (count > 1) out(&r->body, "}\n");
}

static void print_rope(Rows *r, int node) {
    const Node *n = node_at(r, node);
    const Segment *seg = &r->segment[r->info[node].segment];
    declare_array(r, node);
    Str x = vector(r, node, 0), y = target_vector(r, node), cs;
    int64_t from;
    int table = n->in[1], base = behind_views(r->q.stage, table, &from);
    cs = r->in[base] && r->info[base].home != V_STORED ? r->q.name[base] : pointer(r, table, false);
    out(&r->body, "%s(%.*s, %.*s, %.*s, %lld, %lld);\n", n->num[1] ? "rope_halves" : "rope_adjacent", FMT(x), FMT(cs), FMT(y), (long long) n->num[0],
        (long long) seg->inner);
}

static void print_embed(Rows *r, int node) {
    const Node *n = node_at(r, node);
    const Weight *w = &r->q.stage->weight[n->weight];
    const PackedWeight *pw = &r->q.plan->weight[r->q.plan->packed[r->q.kernel->stage][n->weight]];
    int64_t from;
    const Node *id = node_at(r, behind_views(r->q.stage, n->in[0], &from));
    if (id->op != OP_token && !(id->op == OP_take)) fail_at(n->loc, "a table can be read by `token` only, so far");
    printer_arg(&r->q, ARG_MODEL, 0, S("m"), false);
    declare_array(r, node);
    Str y = target_vector(r, node), table = weight_name(r, n->weight);
    const char *token = id->op == OP_take ? "m->token[m->out[r]]" : "m->token[r]";
    const Format *f = format_of(w->type);
    if (pw->layout == LAYOUT_PANELS)
        out(&r->body, "%s_packed_row(%.*s, %lld, %s, %.*s);\n", f->name, FMT(table), (long long) w->in, token, FMT(y));
    else
        out(&r->body, "%s_row(%.*s + (size_t) %s * %lld, %.*s, %lld);\n", f->name, FMT(table), token,
            (long long) (w->in / f->block * f->bytes), FMT(y), (long long) w->in);
}

static void print_angles(Rows *r, int node) {
    const Node *n = node_at(r, node);
    int64_t from;
    bool wanted = node_at(r, behind_views(r->q.stage, n->in[0], &from))->op == OP_take;
    printer_arg(&r->q, ARG_MODEL, 0, S("m"), false);
    declare_array(r, node);
    Str y = target_vector(r, node);
    out(&r->body, "angles_%.*s(m->%s[r], %.*s);\n", FMT(r->q.plan->graph->rope[n->num[0]].name), wanted ? "out_pos" : "pos", FMT(y));
}

static void print_put(Rows *r, int node) {
    const Node *n = node_at(r, node);
    const State *st = &r->q.stage->state[n->state];
    int si = r->q.plan->state_of[r->q.kernel->stage][n->state];
    const StatePlan *sp = &r->q.plan->state[si];
    const char *kv = r->q.plan->kv_f32 ? "f32" : "f16";
    printer_arg(&r->q, ARG_MODEL, 0, S("m"), false);
    Str k_at = printer_arg(&r->q, ARG_STATE_K, si, S("k_at"), false)->name, v_at = printer_arg(&r->q, ARG_STATE_V, si, S("v_at"), false)->name;
    Str k = vector(r, node, 0), v = vector(r, node, 1);
    Str page = name_fresh(&r->q.names, S("page"));
    out(&r->body, "uint8_t *%.*s = state_page(m, %d, %llu, m->seq[r], m->pos[r]);\n", FMT(page), sp->group,
        (unsigned long long) r->q.plan->group[sp->group].page_bytes);
    out(&r->body, "kv_put_k_%s(%.*s + %.*s, %lld, %lld, m->pos[r] %% PAGE, %.*s);\n", kv, FMT(page), FMT(k_at), (long long) st->k.d[0], (long long) st->k.d[1], FMT(k));
    out(&r->body, "kv_put_v_%s(%.*s + %.*s, %lld, %lld, m->pos[r] %% PAGE, %.*s);\n", kv, FMT(page), FMT(v_at), (long long) st->v.d[0], (long long) st->v.d[1], FMT(v));
}

static void print_statement(Rows *r, int node) {
    const Node *n = node_at(r, node);
    const Segment *seg = &r->segment[r->info[node].segment];
    long long len = (long long) seg->inner;
    switch (n->op) {
    case OP_rope: print_rope(r, node); return;
    case OP_embed: print_embed(r, node); return;
    case OP_angles: print_angles(r, node); return;
    case OP_put: print_put(r, node); return;
    case OP_q8: {
        if (r->info[node].home != V_STORED) fail("internal: a rounded value stays inside kernel %.*s", FMT(r->q.kernel->name));
        Str x = vector(r, node, 0), y = pointer(r, node, true);
        out(&r->body, "quantize_q8(%.*s, %.*s, %lld);\n", FMT(x), FMT(y), len);
        return;
    }
    case OP_softmax: {
        declare_array(r, node);
        Str x = vector(r, node, 0), y = target_vector(r, node);
        out(&r->body, "row_softmax(%.*s, %.*s, %lld);\n", FMT(x), FMT(y), len);
        return;
    }
    case OP_concat: {
        declare_array(r, node);
        Str y = target_vector(r, node);
        int64_t outer = shape_size(n->shape) / shape_last(n->shape), at = 0;
        if (outer != 1) fail_at(n->loc, "joining values along an inner axis is not supported yet");
        for (int k = 0; k < n->n_in; k++) {
            Str x = vector(r, node, k);
            int64_t size = shape_size(node_at(r, n->in[k])->shape);
            out(&r->body, "for (int i = 0; i < %lld; i++) (%.*s)[%lld + i] = (%.*s)[i];\n", (long long) size, FMT(y), (long long) at, FMT(x));
            at += size;
        }
        return;
    }
    default: break;
    }
    const char *f = n->op == OP_rmax ? "row_max" : "row_sum"; // reductions
    Str x = vector(r, node, 0), t;
    Home home = r->info[node].home;
    if (home == V_ROW) declare_array(r, node);
    if (home == V_STORED || home == V_ROW) {
        Str name = home == V_STORED ? pointer(r, node, true) : r->q.name[node];
        t = str_fmt(r->q.names.arena, seg->outer > 1 ? "%.*s[h]" : "%.*s[0]", FMT(name));
    } else {
        Str name = fresh_value(r, node, "t");
        t = str_fmt(r->q.names.arena, "const float %.*s", FMT(name));
    }
    out(&r->body, "%.*s = %s(%.*s, %lld)", FMT(t), f, FMT(x), len);
    n->op == OP_mean ? out(&r->body, " / %lld;\n", len) : out(&r->body, ";\n");
}

static void print_body(Rows *r) {
    int segment = -1, loop_done = -1;
    for (int i = 0; i < r->q.stage->n_node; i++) {
        if (!r->in[i]) continue;
        NodeInfo *x = &r->info[i];
        if (x->segment != segment) {
            if (segment >= 0 && r->segment[segment].outer > 1) r->body.indent--, out(&r->body, "}\n");
            segment = x->segment;
            if (r->segment[segment].outer > 1) {
                out(&r->body, "for (int h = 0; h < %lld; h++) {\n", (long long) r->segment[segment].outer);
                r->body.indent++;
            }
        }
        if (x->loop >= 0 && x->loop > loop_done) print_loop(r, i), loop_done = x->loop;
        else if (x->loop < 0) print_statement(r, i);
    }
    if (segment >= 0 && r->segment[segment].outer > 1) r->body.indent--, out(&r->body, "}\n");
}

// The lines that move each parameter to this row, and name the parts of a row.
static Str print_pointers(Rows *r) {
    Out o = out_new(r->q.names.arena);
    o.indent = 1;
    for (int i = 0; i < r->q.text.n_arg; i++) {
        const Arg *a = &r->q.text.arg[i];
        if (a->kind != ARG_BUFFER) continue;
        const Buffer *b = &r->q.plan->buffer[a->index];
        long long stride = (long long) (b->type == Q8 ? b->row_bytes : b->row_bytes / 4);
        out(&o, "%.*s += (size_t) %s * %lld;\n", FMT(a->name), row_index(r, b->rate), stride);
        for (int j = 0; j < r->q.stage->n_node; j++) {
            Str name = r->q.name[j];
            if (!name.n || r->q.place[j].buffer != a->index || str_eq(name, a->name)) continue;
            if (r->in[j] && r->info[j].home != V_STORED) continue;
            bool first = true;
            for (int k = 0; k < j; k++) first &= !str_eq(r->q.name[k], name);
            if (!first) continue;
            out(&o, a->written ? "float *%.*s = %.*s" : "const float *%.*s = %.*s", FMT(name), FMT(a->name));
            r->q.place[j].from ? out(&o, " + %lld;\n", (long long) r->q.place[j].from) : out(&o, ";\n");
        }
    }
    return out_text(&o);
}

KernelText print_row_kernel(const Plan *p, const Kernel *k) {
    Arena *a = p->graph->arena;
    Rows r = {.q = printer_new(p, k)};
    int n = r.q.stage->n_node;
    r.info = NEWN(a, NodeInfo, n + 1), r.segment = NEWN(a, Segment, n + 1), r.in = NEWN(a, bool, n + 1);
    for (int i = 0; i < n; i++) r.in[i] = r.q.stage->node[i].kernel == k->group, r.info[i].loop = -1;
    place_nodes(&r);
    house_nodes(&r);
    r.decl = out_new(a), r.body = out_new(a);
    r.decl.indent = r.body.indent = 1;
    print_body(&r);
    Str pointers = print_pointers(&r);
    Out o = out_new(a);
    Str params = print_params(&r.q);
    out(&o, "static void @(%.*s, int r) {\n", FMT(params));
    out_str(&o, pointers);
    out_str(&o, out_text(&r.decl));
    out_str(&o, out_text(&r.body));
    out(&o, "}\n");
    r.q.text.comment = print_equations(&r.q);
    r.q.text.text = out_text(&o);
    return r.q.text;
}
