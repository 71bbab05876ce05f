// Prints the operators of a row kernel that are calls of support code, not loops: rope, tables, states, choices, sums
// over axes.
// In: a node with its operands placed. Out: a statement. Operands are ranges (view.c sees to it), so each is a pointer.
#include "print_rows.h"

// ---- ids ----

// Id number j of operand k: j is an index in the generated code, or 0.
static Str id_operand(Rows *r, int node, int k, const char *j) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    const Node *b = node_at(r, view_base(r->q.stage, n->in[k]));
    if (b->op == OP_token || b->op == OP_position) {
        printer_arg(&r->q, ARG_MODEL, 0, S("m"), false);
        return str_fmt(
            a, "m->%s[%s]", b->op == OP_token ? "token" : "pos", r->q.kernel->rate == RATE_OUT ? "m->out[r]" : "r");
    }
    Str x = vector(r, node, k);
    bool plain = true;
    for (size_t i = 0; i < x.n; i++) plain &= x.p[i] != ' ';
    return str_fmt(a, plain ? "%.*s[%s]" : "(%.*s)[%s]", FMT(x), j);
}

static void print_embed(Rows *r, int node) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    const Weight *w = &r->q.stage->weight[n->weight];
    const PackedWeight *pw = &r->q.plan->weight[r->q.plan->packed[r->q.kernel->stage][n->weight]];
    const Format *f = format_of(w->type);
    int64_t ids = shape_size(node_at(r, n->in[0])->shape);
    bool token = node_at(r, view_base(r->q.stage, n->in[0]))->op == OP_token;
    Str y = target_vector(r, node), table = weight_name(r, n->weight), id = id_operand(r, node, 0, ids > 1 ? "j" : "0");
    if (!token || w->out < r->q.plan->graph->n_vocab) // tokens of the vocabulary are checked where they come from
        id = str_fmt(a, "row_id(%.*s, %lld)", FMT(id), (long long) w->out);
    if (ids > 1) {
        out(&r->body, "for (int j = 0; j < %lld; j++)\n", (long long) ids);
        y = str_fmt(a, "%.*s + j * %lld", FMT(y), (long long) w->in);
        r->body.indent++;
    }
    if (pw->layout == LAYOUT_PANELS)
        out(&r->body, "%s_packed_row(%.*s, %lld, %.*s, %.*s);\n", f->name, FMT(table), (long long) w->in, FMT(id),
            FMT(y));
    else
        out(&r->body, "%s_row(%s%.*s + (size_t) %.*s * %lld, %.*s, %lld);\n",
            pw->layout == LAYOUT_F32 ? "f32" : f->name, pw->layout == LAYOUT_F32 ? "(const uint8_t *) " : "",
            FMT(table), FMT(id), (long long) (pw->layout == LAYOUT_F32 ? w->in : w->in / f->block * f->bytes), FMT(y),
            (long long) w->in);
    if (ids > 1) r->body.indent--;
}

static void print_choice(Rows *r, int node) {
    const Node *n = node_at(r, node), *x0 = node_at(r, n->in[0]);
    long long width = shape_last(x0->shape), k = shape_last(n->shape);
    Str x = vector(r, node, 0), y = target_vector(r, node);
    if (n->op == OP_top) {
        out(&r->body, "row_top(%.*s, %lld, %lld, %.*s);\n", FMT(x), width, k, FMT(y));
        return;
    }
    Str ids = vector(r, node, 1);
    if (n->op == OP_gather) {
        out(&r->body, "row_gather(%.*s, %lld, %.*s, %lld, %.*s);\n", FMT(x), width, FMT(ids), k, FMT(y));
        return;
    }
    long long count = n->shape.d[0], part = shape_size(n->shape) / count; // only
    out(&r->body, "row_only(%.*s, %lld, %lld, %.*s, %lld, %.*s);\n", FMT(x), count, part, FMT(ids),
        (long long) shape_size(node_at(r, n->in[1])->shape), FMT(y));
}

// A list of numbers as an array of the function.
static Str print_numbers(Rows *r, int64_t list) {
    const Numbers *v = &r->q.plan->graph->numbers[list];
    Str name = name_fresh(&r->q.names, v->name);
    out(&r->decl, "static const uint64_t %.*s[%d] = {", FMT(name), v->n);
    for (int i = 0; i < v->n; i++)
        out(&r->decl, "%s%s%lld", i ? "," : "", i % 6 ? " " : "\n    ", (long long) v->value[i]);
    out(&r->decl, "};\n");
    return name;
}

static void print_hash(Rows *r, int node) {
    const Node *n = node_at(r, node);
    Str x = vector(r, node, 0), y = target_vector(r, node), by = print_numbers(r, n->num[0]),
        mod = print_numbers(r, n->num[1]), plus = print_numbers(r, n->num[2]);
    out(&r->body, "row_hash(%.*s, %.*s, %lld, %.*s, %.*s, %lld, %.*s);\n", FMT(x), FMT(by),
        (long long) shape_size(node_at(r, n->in[0])->shape), FMT(mod), FMT(plus), (long long) shape_size(n->shape),
        FMT(y));
}

// ---- rotation ----

static void print_rope(Rows *r, int node) {
    const Node *n = node_at(r, node);
    Str x = vector(r, node, 0), y = target_vector(r, node), cs;
    int table = n->in[1], base = view_base(r->q.stage, table);
    cs = r->in[base] && r->info[base].home != V_STORED ? r->q.name[base] : pointer(r, table, false);
    out(&r->body, "%s%s(%.*s, %.*s, %.*s, %lld, %lld);\n", n->num[1] ? "rope_halves" : "rope_adjacent",
        n->num[2] ? "_back" : "", FMT(x), FMT(cs), FMT(y), (long long) n->num[0],
        (long long) segment_at(r, node)->inner);
}

static void print_angles(Rows *r, int node) {
    const Node *n = node_at(r, node);
    Str y = target_vector(r, node), at = id_operand(r, node, 0, "0");
    if (n->num[1]) at = str_fmt(r->q.names.arena, "%.*s - %lld", FMT(at), (long long) n->num[1]);
    out(&r->body, "angles_%.*s(%.*s, %.*s);\n", FMT(r->q.plan->graph->rope[n->num[0]].name), FMT(at), FMT(y));
}

// ---- states ----

static void print_put(Rows *r, int node) {
    const Node *n = node_at(r, node);
    const State *st = &r->q.stage->state[n->state];
    int si = r->q.plan->state_of[r->q.kernel->stage][n->state];
    const StatePlan *sp = &r->q.plan->state[si];
    const char *kv = r->q.plan->kv_f32 ? "f32" : "f16";
    printer_arg(&r->q, ARG_MODEL, 0, S("m"), false);
    Str page = name_fresh(&r->q.names, S("page")), pos = S("m->pos[r]");
    long long every = state_every(st);
    if (every > 1) { // the row that completes a record stores it
        out(&r->body, "if ((m->pos[r] + 1) %% %lld == 0) {\n", every);
        r->body.indent++;
        pos = str_fmt(r->q.names.arena, "m->pos[r] / %lld", every);
    }
    for (int i = 0; i < n->n_in; i++) {
        Str at = printer_arg(&r->q, i ? ARG_STATE_V : ARG_STATE_K, si, i ? S("v_at") : S("k_at"), false)->name,
            x = vector(r, node, i);
        Shape shape = i ? st->v : st->k;
        if (!i)
            out(&r->body, "uint8_t *%.*s = state_page(m, %d, %llu, m->seq[r], %.*s);\n", FMT(page), sp->group,
                (unsigned long long) r->q.plan->group[sp->group].page_bytes, FMT(pos));
        out(&r->body, "kv_put_%s_%s(%.*s + %.*s, %lld, %lld, %.*s %% PAGE, %.*s);\n",
            i || st->v.n == 0 ? "v" : "k", kv, FMT(page), FMT(at), (long long) shape.d[0], (long long) shape.d[1],
            FMT(pos), FMT(x));
    }
    if (every > 1) r->body.indent--, out(&r->body, "}\n");
}

// ---- moving and summing ----

static void print_concat(Rows *r, int node) {
    const Node *n = node_at(r, node);
    Arena *a = r->q.names.arena;
    Str y = target_vector(r, node);
    long long width = shape_last(n->shape), outer = shape_size(n->shape) / width, at = 0;
    for (int k = 0; k < n->n_in; k++) {
        long long size = shape_last(node_at(r, n->in[k])->shape);
        const Node *b = node_at(r, view_base(r->q.stage, n->in[k]));
        Str to = outer > 1 ? str_fmt(a, "(%.*s)[h * %lld + %lld + i]", FMT(y), width, at)
                           : str_fmt(a, "(%.*s)[%lld + i]", FMT(y), at);
        Str x = b->op == OP_const ? c_float(a, b->real[0]) : vector(r, node, k);
        if (b->op != OP_const)
            x = outer > 1 ? str_fmt(a, "(%.*s)[h * %lld + i]", FMT(x), size) : str_fmt(a, "(%.*s)[i]", FMT(x));
        if (outer > 1) out(&r->body, "for (int h = 0; h < %lld; h++)\n", outer), r->body.indent++;
        out(&r->body, "for (int i = 0; i < %lld; i++) %.*s = %.*s;\n", size, FMT(to), FMT(x));
        if (outer > 1) r->body.indent--;
        at += size;
    }
}

static void print_at(Rows *r, int node) {
    const Node *n = node_at(r, node);
    long long size = shape_size(n->shape);
    Str x = vector(r, node, 0), y = target_vector(r, node);
    Str part = printer_arg(&r->q, ARG_PARAM, (int) n->num[0], r->q.plan->graph->param[n->num[0]].name, false)->name;
    out(&r->body, "for (int i = 0; i < %lld; i++) (%.*s)[i] = (%.*s)[(int) %.*s * %lld + i];\n", size, FMT(y), FMT(x),
        FMT(part), size);
}

static void print_index(Rows *r, int node) {
    Str y = target_vector(r, node);
    out(&r->body, "for (int i = 0; i < %lld; i++) (%.*s)[i] = (float) i;\n", (long long) node_at(r, node)->num[0],
        FMT(y));
}

static void print_spread(Rows *r, int node) {
    const Node *n = node_at(r, node);
    long long from = node_at(r, n->in[0])->shape.d[0], to = n->shape.d[0];
    Str x = vector(r, node, 0), y = target_vector(r, node);
    out(&r->body, "row_spread(%.*s, %.*s, %lld, %lld, %lld, %d);\n", FMT(x), FMT(y), from, to,
        (long long) shape_size(n->shape) / to, (int) n->num[1]);
}

static void print_sums(Rows *r, int node) {
    const Node *n = node_at(r, node);
    Shape a = node_at(r, n->in[0])->shape;
    long long size = shape_size(n->shape);
    Str x = vector(r, node, 0), y = target_vector(r, node);
    if (n->op == OP_sum_first) {
        out(&r->body, "row_sum_first(%.*s, %.*s, %lld, %lld);\n", FMT(x), FMT(y), (long long) a.d[0], size);
        return;
    }
    Str b = vector(r, node, 1);
    if (n->op == OP_conv) {
        long long taps = shape_last(node_at(r, n->in[1])->shape), every = n->num[0] > 1 ? n->num[0] : 1;
        out(&r->body, "row_conv(%.*s, %.*s, %.*s, %lld, %lld, %lld);\n", FMT(x), FMT(b), FMT(y), taps, every * size,
            size);
        return;
    }
    long long outer = shape_size(a) / shape_last(a); // mix
    out(&r->body, "row_mix(%.*s, %.*s, %.*s, %lld, %lld, %lld);\n", FMT(x), FMT(b), FMT(y), outer,
        (long long) shape_last(a), size / outer);
}

static void print_q8(Rows *r, int node) {
    const Segment *seg = segment_at(r, node);
    if (r->info[node].home != V_STORED)
        fail("internal: a rounded value stays inside kernel %.*s", FMT(r->q.kernel->name));
    Str x = vector(r, node, 0), y = pointer(r, node, true);
    out(&r->body, "quantize_q8(%.*s, %.*s", FMT(x), FMT(y));
    if (seg->outer > 1)
        out(&r->body, " + h * %lld",
            (long long) (r->q.plan->buffer[r->q.place[node].buffer].row_bytes / (uint64_t) seg->outer));
    out(&r->body, ", %lld);\n", (long long) seg->inner);
}

static void print_reduction(Rows *r, int node) {
    const Node *n = node_at(r, node);
    const Segment *seg = segment_at(r, node);
    const char *f = n->op == OP_rmax ? "row_max" : "row_sum";
    Str x = vector(r, node, 0), t;
    Home home = r->info[node].home;
    if (home == V_STORED || home == V_ROW) {
        Str name = home == V_STORED ? pointer(r, node, true) : r->q.name[node];
        t = str_fmt(r->q.names.arena, seg->outer > 1 ? "%.*s[h]" : "%.*s[0]", FMT(name));
    } else {
        Str name = fresh_value(r, node, "t");
        t = str_fmt(r->q.names.arena, "const float %.*s", FMT(name));
    }
    out(&r->body, "%.*s = %s(%.*s, %lld)", FMT(t), f, FMT(x), (long long) seg->inner);
    n->op == OP_mean ? out(&r->body, " / %lld;\n", (long long) seg->inner) : out(&r->body, ";\n");
}

void print_statement(Rows *r, int node) {
    const Node *n = node_at(r, node);
    if (n->op != OP_q8 && n->op != OP_put) declare_array(r, node);
    switch (n->op) {
    case OP_rope: print_rope(r, node); break;
    case OP_embed: print_embed(r, node); break;
    case OP_angles: print_angles(r, node); break;
    case OP_put: print_put(r, node); break;
    case OP_q8: print_q8(r, node); break;
    case OP_top:
    case OP_gather:
    case OP_only: print_choice(r, node); break;
    case OP_hash: print_hash(r, node); break;
    case OP_concat: print_concat(r, node); break;
    case OP_index: print_index(r, node); break;
    case OP_spread: print_spread(r, node); break;
    case OP_at: print_at(r, node); break;
    case OP_sum_first:
    case OP_mix:
    case OP_conv: print_sums(r, node); break;
    case OP_softmax: {
        Str x = vector(r, node, 0), y = target_vector(r, node);
        out(&r->body, "row_softmax(%.*s, %.*s, %lld);\n", FMT(x), FMT(y), (long long) segment_at(r, node)->inner);
        break;
    }
    default: print_reduction(r, node); break;
    }
}
