// Prints a row kernel: everything that its nodes compute for one row, as plain loops. In: the nodes of one kernel.
// Out: a C function of one row. The idea: nodes that agree on (outer, inner) axes share an outer loop (heads),
// elementwise neighbours share an inner loop, and a value lives in the narrowest place that its uses allow: a
// variable of the loop, an array of the head, an array of the row, or the row's place in the plan.
#include "print_rows.h"

#include <string.h>

// ---- where things are computed ----

static bool is_reduction(Op op) {
    return op == OP_sum || op == OP_mean || op == OP_rmax;
}
static bool is_norm(Op op) {
    return op == OP_rms_norm || op == OP_layer_norm || op == OP_l2_norm;
}
static bool is_elementwise(const Node *n) {
    return op_info[n->op].class == CLASS_MAP || is_norm(n->op) || n->op == OP_take || n->op == OP_copy ||
        n->op == OP_id;
}
// Works along the last axis, head by head.
static bool is_headwise(Op op) {
    return is_norm(op) || is_reduction(op) || op == OP_softmax || op == OP_rope || op == OP_q8 || op == OP_top ||
        op == OP_gather;
}

// Does operand k, read where n is, have its elements in n's order, all of them or one for all?
static bool in_order(const Rows *r, const Node *n, int k) {
    View v = view_of(r->q.stage, n->in[k]);
    int64_t size = shape_size(v.shape);
    return size == 1 || (view_is_range(&v) && size == shape_size(n->shape));
}

// Needs the outer loop: works head by head on a value of several, or reads an operand along other axes.
static bool needs_outer(const Rows *r, const Node *n) {
    if (is_headwise(n->op)) return node_at(r, n->in[0])->shape.n > 1;
    if (!is_elementwise(n)) return false;
    for (int i = 0; i < n->n_in; i++)
        if (!in_order(r, n, i)) return true;
    return false;
}

static Segment segment_of(const Rows *r, const Node *n) {
    Shape shape = is_headwise(n->op) ? node_at(r, n->in[0])->shape : n->shape;
    int64_t size = shape_size(shape), inner = shape_last(shape);
    return needs_outer(r, n) ? (Segment){size / inner, inner} : (Segment){1, size};
}

// How a node reads a member: not at all; the same element, the same head, or anything.
typedef enum { READ_NONE, READ_SAME, READ_HEAD, READ_ANY } Read;

static Read read_of(const Rows *r, int reader, int k, int *member) {
    const Node *n = node_at(r, reader);
    View v = view_of(r->q.stage, n->in[k]);
    *member = v.base;
    if (!r->in[v.base]) return READ_NONE;
    const Segment *seg = segment_at(r, reader);
    int64_t size = shape_size(v.shape);
    bool whole = view_is_whole(r->q.stage, &v);
    if (is_headwise(n->op) && (k == 0 || n->op == OP_gather))
        return whole && shape_last(v.shape) * seg->outer == size ? READ_HEAD : READ_ANY;
    if (!is_elementwise(n) || !whole) return READ_ANY;
    if (size == shape_size(n->shape)) return READ_SAME;
    bool each_head = size == seg->outer && shape_last(v.shape) == 1 &&
        seg->inner == shape_last(n->shape); // one number for each head
    for (int a = 1; each_head && a < v.shape.n; a++)
        if (v.shape.d[v.shape.n - 1 - a] != n->shape.d[n->shape.n - 1 - a]) each_head = false;
    return each_head ? READ_HEAD : READ_ANY;
}

// May node i be computed where segment `now` is open? What that makes may be read head by head only, while heads are
// looped over.
static bool may_stay(const Rows *r, int i, int now) {
    const Node *n = node_at(r, i);
    for (int k = 0; k < n->n_in; k++) {
        int m;
        Read read = read_of(r, i, k, &m);
        if (read == READ_ANY && r->info[m].segment == now && r->segment[now].outer > 1) return false;
    }
    return true;
}

static void place_nodes(Rows *r) {
    int segment = -1, loop = -1; // loop: the open one, or -1
    for (int i = 0; i < r->q.stage->n_node; i++) {
        if (!r->in[i]) continue;
        const Node *n = node_at(r, i);
        Segment want = segment_of(r, n), *have = segment >= 0 ? &r->segment[segment] : NULL;
        bool flat = want.outer == 1 && is_elementwise(n) && !is_norm(n->op);
        bool fits = have &&
            ((want.outer == have->outer && want.inner == have->inner) ||
                (flat && want.inner == have->outer * have->inner));
        r->info[i].segment = segment;
        if (!fits || !may_stay(r, i, segment)) {
            r->segment[r->info[i].segment = segment = r->n_segment++] = want;
            loop = -1;
        }
        bool joins = loop >= 0 && is_elementwise(n) && !is_norm(n->op);
        for (int k = 0; k < n->n_in && joins; k++) { // what the open loop makes may be read at the same element only
            int m;
            Read read = read_of(r, i, k, &m);
            if (read != READ_NONE && read != READ_SAME && r->info[m].loop == loop) joins = false;
        }
        if (!joins) loop = is_elementwise(n) ? r->n_loop++ : -1;
        r->info[i] = (NodeInfo){segment, loop, V_NONE};
    }
}

static void house_nodes(Rows *r) {
    const Stage *s = r->q.stage;
    Arena *a = r->q.names.arena;
    bool *same_loop = NEWN(a, bool, s->n_node + 1), *same_head = NEWN(a, bool, s->n_node + 1); // all that reads it
    for (int i = 0; i < s->n_node; i++) same_loop[i] = r->info[i].loop >= 0, same_head[i] = true;
    for (int i = 0; i < s->n_node; i++) {
        if (!r->in[i]) continue;
        const Node *u = node_at(r, i);
        for (int k = 0; k < u->n_in; k++) {
            int m;
            Read read = read_of(r, i, k, &m);
            if (read == READ_NONE) continue;
            bool before = is_norm(u->op) && k == 0; // a norm reads its operand before its loop
            if (r->info[i].loop != r->info[m].loop || read != READ_SAME || before) same_loop[m] = false;
            if (r->info[i].segment != r->info[m].segment || read == READ_ANY) same_head[m] = false;
        }
    }
    for (int i = 0; i < s->n_node; i++) {
        if (!r->in[i] || node_at(r, i)->op == OP_put) continue;
        NodeInfo *x = &r->info[i];
        bool one = is_reduction(node_at(r, i)->op) && r->segment[x->segment].outer == 1;
        x->home = node_is_stored(r->q.plan, r->q.kernel->stage, i) ? V_STORED
            : one                                                  ? V_SCALAR
            : is_reduction(node_at(r, i)->op)                      ? (same_head[i] ? V_SCALAR : V_ROW)
            : same_loop[i]                                         ? V_LOOP
            : same_head[i] && r->segment[x->segment].outer > 1     ? V_INNER
                                                                   : V_ROW;
    }
}

// ---- naming places ----

static const char *row_index(const Rows *r, Rate rate) {
    return rate == RATE_ROW && r->q.kernel->rate == RATE_OUT ? "m->out[r]" : "r";
}

// The pointer to a stored value's first element of this row; declared when first asked for.
Str pointer(Rows *r, int node, bool written) {
    if (r->q.name[node].n) {
        if (written && r->q.place[node].buffer >= 0)
            printer_arg(&r->q, ARG_BUFFER, r->q.place[node].buffer, (Str){0}, true);
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

Str weight_name(Rows *r, int weight) {
    return printer_arg(
        &r->q, ARG_WEIGHT, r->q.plan->packed[r->q.kernel->stage][weight], r->q.stage->weight[weight].name, false)
        ->name;
}

const char *c_type(const Node *n) {
    return n->type == I32 ? "int32_t" : "float";
}

static void term(Out *o, Str index, int64_t stride) {
    if (o->n) out(o, " + ");
    stride == 1 ? out_str(o, index) : out(o, "%.*s * %lld", FMT(index), (long long) stride);
}

// Steps along the axes of `shape` (aligned at the inner end) that a walk takes; axes it lacks, or has one of, are not
// walked.
static void strides_over(Shape shape, const View *v, int64_t *stride) {
    for (int a = 0; a < shape.n; a++) {
        int i = v->shape.n - shape.n + a;
        stride[a] = i < 0 || v->shape.d[i] == 1 ? 0 : v->stride[i];
    }
}

// Where head h begins: the outer axes of `shape`, all in one counter h.
static void head_terms(Out *o, Arena *a, Shape shape, const int64_t *stride) {
    for (int first = 0, last; first < shape.n - 1; first = last + 1) {
        int64_t size = shape.d[first], inside = 1;
        for (last = first; last + 1 < shape.n - 1 && stride[last] == stride[last + 1] * shape.d[last + 1]; last++)
            size *= shape.d[last + 1];
        for (int k = last + 1; k < shape.n - 1; k++) inside *= shape.d[k];
        if (stride[last] == 0 || size == 1) continue;
        Str h = inside == 1 ? S("h") : str_fmt(a, "h / %lld", (long long) inside);
        if (first > 0) h = str_fmt(a, "%.*s %% %lld", FMT(h), (long long) size);
        if (h.n > 1 && stride[last] != 1) h = str_fmt(a, "(%.*s)", FMT(h));
        term(o, h, stride[last]);
    }
}

// Element (h, i) of a walk, read or written where `shape` is computed in segment seg.
static Str element_at(Arena *a, const Segment *seg, Shape shape, const View *v, Str name, int64_t from) {
    Out o = out_new(a);
    int64_t stride[MAX_DIM], size = shape_size(v->shape);
    if (view_is_range(v) && size > 1 && size == shape_size(shape)) {
        if (seg->outer > 1) term(&o, S("h"), seg->inner);
        term(&o, S("i"), 1);
    } else if (size > 1) {
        strides_over(shape, v, stride);
        if (seg->outer > 1) head_terms(&o, a, shape, stride);
        if (stride[shape.n - 1]) term(&o, S("i"), stride[shape.n - 1]);
    }
    if (from) o.n ? out(&o, " + %lld", (long long) from) : out(&o, "%lld", (long long) from);
    if (!o.n) out(&o, "0");
    return str_fmt(a, "%.*s[%.*s]", FMT(name), FMT(out_text(&o)));
}

static Str element(Rows *r, int node, const View *v, Str name, int64_t from) {
    const Node *n = node_at(r, node);
    const Segment *seg = segment_at(r, node);
    return element_at(r->q.names.arena, seg, n->shape, v, name, from);
}

static Str source_value(Rows *r, const Node *source, const Node *reader) {
    if (source->op == OP_const) return c_float(r->q.names.arena, source->real[0]);
    if (source->op == OP_param)
        return printer_arg(&r->q, ARG_PARAM, (int) source->num[0], r->q.plan->graph->param[source->num[0]].name, false)
            ->name;
    printer_arg(&r->q, ARG_MODEL, 0, S("m"), false);
    bool number = reader->type != I32 && reader->op != OP_embed && reader->op != OP_angles;
    const char *at = r->q.kernel->rate == RATE_OUT ? "m->out[r]" : "r";
    return str_fmt(
        r->q.names.arena, "%sm->%s[%s]", number ? "(float) " : "", source->op == OP_position ? "pos" : "token", at);
}

static bool is_plain_source(Op op) {
    return op == OP_const || op == OP_param || op == OP_position || op == OP_token;
}

// Operand k of node n as a C expression inside n's loop.
static Str operand(Rows *r, int node, int k) {
    const Node *n = node_at(r, node);
    View v = view_of(r->q.stage, n->in[k]);
    const Node *b = node_at(r, v.base);
    if (is_plain_source(b->op)) return source_value(r, b, n);
    Str e;
    Home home = r->in[v.base] ? r->info[v.base].home : V_STORED;
    if (b->op == OP_weight) e = element(r, node, &v, weight_name(r, b->weight), v.from);
    else if (home == V_STORED && view_is_range(&v)) e = element(r, node, &v, pointer(r, n->in[k], false), 0);
    else if (home == V_STORED) e = element(r, node, &v, pointer(r, v.base, false), v.from);
    else if (home == V_LOOP || home == V_SCALAR) e = r->q.name[v.base];
    else if (home == V_INNER) e = str_fmt(r->q.names.arena, "%.*s[i]", FMT(r->q.name[v.base]));
    else e = element(r, node, &v, r->q.name[v.base], v.from);
    return b->type == I32 && n->type != I32 ? str_fmt(r->q.names.arena, "(float) %.*s", FMT(e)) : e;
}

// The first element of operand k: of this head where heads are looped over.
Str vector(Rows *r, int node, int k) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    const Segment *seg = segment_at(r, node);
    View v = view_of(r->q.stage, n->in[k]);
    const Node *b = node_at(r, v.base);
    Home home = r->in[v.base] ? r->info[v.base].home : V_STORED;
    Out o = out_new(a);
    int64_t from = v.from;
    if (b->op == OP_weight) out_str(&o, weight_name(r, b->weight));
    else if (home == V_STORED && view_is_range(&v)) out_str(&o, pointer(r, n->in[k], false)), from = 0;
    else if (home == V_STORED) out_str(&o, pointer(r, v.base, false));
    else out_str(&o, r->q.name[v.base]);
    if (home == V_SCALAR) return str_fmt(a, "&%.*s", FMT(out_text(&o)));
    if (home == V_INNER) return out_text(&o);
    if (from) out(&o, " + %lld", (long long) from);
    int64_t stride[MAX_DIM], size = shape_size(v.shape);
    if (seg->outer > 1 && size % seg->outer == 0 && view_is_range(&v) && size > 1)
        out(&o, " + h * %lld", (long long) (size / seg->outer));
    else if (seg->outer > 1 && size > 1) {
        strides_over(v.shape, &v, stride);
        head_terms(&o, a, v.shape, stride);
    }
    return out_text(&o);
}

// ---- printing ----

Str fresh_value(Rows *r, int node, const char *fallback) {
    const Node *n = node_at(r, node);
    return r->q.name[node] = name_fresh(&r->q.names, n->name.n ? n->name : str(fallback));
}

// Where a node's value goes inside its inner loop, with the array declared before if it needs one.
static Str target_element(Rows *r, int node) {
    Arena *a = r->q.names.arena;
    View own = view_of(r->q.stage, node);
    switch (r->info[node].home) {
    case V_STORED: return element(r, node, &own, pointer(r, node, true), 0);
    case V_INNER: return str_fmt(a, "%.*s[i]", FMT(r->q.name[node]));
    case V_ROW: return element(r, node, &own, r->q.name[node], 0);
    default: {
        Str name = fresh_value(r, node, "t");
        return str_fmt(a, "const %s %.*s", c_type(node_at(r, node)), FMT(name));
    }
    }
}

Str target_vector(Rows *r, int node) {
    const Segment *seg = segment_at(r, node);
    const Node *n = node_at(r, node);
    Str name = r->info[node].home == V_STORED ? pointer(r, node, true) : r->q.name[node];
    bool per_head = seg->outer > 1 && r->info[node].home != V_INNER && shape_size(n->shape) > 1;
    return per_head
        ? str_fmt(r->q.names.arena, "%.*s + h * %lld", FMT(name), (long long) (shape_size(n->shape) / seg->outer))
        : name;
}

void declare_array(Rows *r, int node) {
    Home home = r->info[node].home;
    if (home != V_INNER && home != V_ROW) return;
    const Node *n = node_at(r, node);
    int64_t size = shape_size(n->shape);
    if (home == V_INNER) size /= segment_at(r, node)->outer;
    if (size > (1 << 18))
        fail_at(n->loc, "a value of %lld numbers inside one row kernel is too large", (long long) size);
    Str name = fresh_value(r, node, "t");
    out(home == V_INNER ? &r->body : &r->decl, "%s %.*s[%lld];\n", c_type(n), FMT(name), (long long) size);
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
            out(&r->body, "const float %.*s = 1.0f / sqrtf(row_sum_sq_from(%.*s, %.*s, %lld) / %lld + %.*s);\n",
                FMT(scale), FMT(x), FMT(mean), len, len, FMT(eps));
            return str_fmt(a, "%.*s %.*s", FMT(scale), FMT(mean));
        }
        if (n->op == OP_l2_norm)
            out(&r->body, "const float %.*s = 1.0f / max_f32(sqrtf(row_sum_sq(%.*s, %lld)), %.*s);\n", FMT(scale),
                FMT(x), len, FMT(eps));
        else
            out(&r->body, "const float %.*s = 1.0f / sqrtf(row_sum_sq(%.*s, %lld) / %lld + %.*s);\n", FMT(scale),
                FMT(x), len, len, FMT(eps));
        return scale;
    }
    return eps;
}

static Str map_expression(Rows *r, int node, Str norm) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    Str in[MAX_IN];
    for (int k = 0; k < n->n_in; k++) in[k] = operand(r, node, k);
    if (n->op == OP_take || n->op == OP_copy) return in[0];
    if (n->op == OP_id) return str_fmt(a, "id_of(%.*s)", FMT(in[0]));
    if (!is_norm(n->op)) return c_map(&r->q, n, in);
    Str e;
    if (n->op == OP_layer_norm) {
        size_t cut = 0;
        while (norm.p[cut] != ' ') cut++;
        e = str_fmt(
            a, "(%.*s - %.*s) * %.*s", FMT(in[0]), FMT(((Str){norm.p + cut + 1, norm.n - cut - 1})), (int) cut, norm.p);
    } else {
        e = str_fmt(a, "%.*s * %.*s", FMT(in[0]), FMT(norm));
    }
    if (n->n_in > 1) e = str_fmt(a, "%.*s * %.*s", FMT(e), FMT(in[1]));
    if (n->n_in > 2) e = str_fmt(a, "%.*s + %.*s", FMT(e), FMT(in[2]));
    return e;
}

static void print_loop(Rows *r, int first) {
    int end = first, count = 0; // a loop's members follow each other
    while (end < r->q.stage->n_node && (!r->in[end] || r->info[end].loop == r->info[first].loop)) end++;
    const Segment *seg = &r->segment[r->info[first].segment];
    Str norm = {0};
    for (int i = first; i < end; i++) {
        if (!r->in[i]) continue;
        declare_array(r, i);
        if (is_norm(node_at(r, i)->op)) norm = norm_element(r, i, true);
        count++;
    }
    out(&r->body, "for (int i = 0; i < %lld; i++)%s", (long long) seg->inner, count > 1 ? " {\n" : "\n");
    r->body.indent++;
    for (int i = first; i < end; i++) {
        if (!r->in[i]) continue;
        Str e = map_expression(r, i, norm), t = target_element(r, i);
        out(&r->body, "%.*s = %.*s;\n", FMT(t), FMT(e));
    }
    r->body.indent--;
    if (count > 1) out(&r->body, "}\n");
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
            out(&o, a->written ? "%s *%.*s = %.*s" : "const %s *%.*s = %.*s", b->type == I32 ? "int32_t" : "float",
                FMT(name), FMT(a->name));
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
