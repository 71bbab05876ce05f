// Prints heavy kernels: an instance of a template, with the epilogue that fusion gave it in the slot `store`.
// In: a matmul or attention kernel of the plan. Out: the function's text and arguments.
#include "print_heavy.h"

#include <string.h>

Str find_template(const Plan *p, const char *name) {
    Str text = template_find(p->target->folders, name);
    if (!text.n) fail("internal: no template %s for target %s", name, p->target->name);
    return text;
}

// ---- matrix product ----

static bool is_member(const Printer *q, int node) {
    return q->stage->node[node].kernel == q->kernel->group;
}

// Parts that a row of the product has, one from each product of a stack that it meets; templates count them all as
// rows.
static int64_t part_count(const Printer *q) {
    const Node *heavy = &q->stage->node[q->stage->kernel[q->kernel->group].heavy];
    return heavy->op == OP_matmul ? 1 : heavy->shape.d[0];
}

// An operand of an epilogue operator, at output n + j of row r.
static Str epilogue_operand(Printer *q, int use) {
    Arena *a = q->names.arena;
    int64_t from;
    int base = behind_views(q->stage, use, &from);
    const Node *b = &q->stage->node[base];
    int64_t size = shape_size(q->stage->node[use].shape);
    int64_t parts = part_count(q);
    if (is_member(q, base)) {
        if (op_info[b->op].class == CLASS_HEAVY) {
            behind_views_by(q->stage, use, parts, &base, &from);
            return str_fmt(a, "v%lld[j]", (long long) (from / q->kernel->out));
        }
        return q->name[base];
    }
    if (b->op == OP_const) return c_float(a, b->real[0]);
    if (b->op == OP_param)
        return printer_arg(q, ARG_PARAM, (int) b->num[0], q->plan->graph->param[b->num[0]].name, false)->name;
    bool of_part = parts > 1 && size == parts; // one number for each part; r counts parts
    const char *at = size == 1 || of_part ? "0" : "n + j";
    if (b->op == OP_weight && parts > 1 && size == parts * q->kernel->out)
        at = str_z(a, str_fmt(a, "(size_t) e * %lld + n + j", (long long) q->kernel->out));
    if (b->op == OP_weight) {
        Str name = printer_arg(
            q, ARG_WEIGHT, q->plan->packed[q->kernel->stage][b->weight], q->stage->weight[b->weight].name, false)
                       ->name;
        return from ? str_fmt(a, "%.*s[%lld + %s]", FMT(name), (long long) from, at)
                    : str_fmt(a, "%.*s[%s]", FMT(name), at);
    }
    Place place = q->place[use];
    const Buffer *buf = &q->plan->buffer[place.buffer];
    Str name = printer_arg(
        q, ARG_BUFFER, place.buffer, q->stage->node[use].name.n ? q->stage->node[use].name : buf->name, false)
                   ->name;
    Str row = str_fmt(a, "(size_t) r * %lld + ", (long long) (buf->width / parts));
    if (of_part) return str_fmt(a, "%.*s[r]", FMT(name));
    return place.from ? str_fmt(a, "%.*s[%.*s%lld + %s]", FMT(name), FMT(row), (long long) place.from, at)
                      : str_fmt(a, "%.*s[%.*s%s]", FMT(name), FMT(row), at);
}

static Str stored_element(Printer *q, int node) {
    Place place = q->place[node];
    const Buffer *buf = &q->plan->buffer[place.buffer];
    Str wanted = q->stage->node[node].name.n ? q->stage->node[node].name : buf->name;
    Str name = printer_arg(q, ARG_BUFFER, place.buffer, wanted, true)->name;
    return str_fmt(
        q->names.arena, "%.*s[(size_t) r * %lld + n + j]", FMT(name), (long long) (buf->width / part_count(q)));
}

static Str epilogue(Printer *q) {
    Arena *a = q->names.arena;
    Out lines = out_new(a);
    int count = 0;
    for (int i = 0; i < q->stage->n_node; i++) {
        const Node *n = &q->stage->node[i];
        if (!is_member(q, i)) continue;
        bool stored = node_is_stored(q->plan, q->kernel->stage, i);
        bool heavy = op_info[n->op].class == CLASS_HEAVY;
        if (heavy && !stored) continue;
        Str in[MAX_IN], e;
        for (int k = 0; k < n->n_in && !heavy; k++) in[k] = epilogue_operand(q, n->in[k]);
        e = heavy ? S("v0[j]") : c_map(q, n, in);
        bool read_here = false;
        for (int j = i + 1; j < q->stage->n_node; j++)
            for (int k = 0; is_member(q, j) && k < q->stage->node[j].n_in; k++)
                read_here |= view_base(q->stage, q->stage->node[j].in[k]) == i;
        if (!heavy && (!stored || read_here)) {
            q->name[i] = name_fresh(&q->names, n->name.n ? n->name : S("t"));
            out(&lines, "const float %.*s = %.*s;\n", FMT(q->name[i]), FMT(e)), count++;
            e = q->name[i];
        }
        if (stored) {
            Str to = stored_element(q, i);
            out(&lines, "%.*s = %.*s;\n", FMT(to), FMT(e)), count++;
        }
    }
    Out o = out_new(a);
    out(&o, count > 1 ? "for (int j = 0; j < m; j++) {\n" : "for (int j = 0; j < m; j++)\n");
    o.indent = 1;
    out_str(&o, out_text(&lines));
    o.indent = 0;
    if (count > 1) out(&o, "}\n");
    return out_text(&o);
}

// Rows of f32 are multiplied where they lie.
static Binding in_place(Arena *a, const Weight *w) {
    return param_int(a, "IN_PLACE", str_is(S("f32"), format_of(w->type)->name));
}

KernelText print_matmul(const Plan *p, const Kernel *k) {
    Arena *a = p->graph->arena;
    Printer q = printer_new(p, k);
    const Node *heavy = &q.stage->node[q.stage->kernel[k->group].heavy];
    const Weight *w = &q.stage->weight[heavy->weight];
    Str store = epilogue(&q);
    Str params = print_params(&q);
    Binding b[] = {
        param_int(a, "K", k->in),
        param_int(a, "N", k->out),
        param_int(a, "S", k->strands),
        param_int(a, "PANELS", k->panels),
        param_int(a, "ROWS", k->rows),
        param("FMT", str(format_of(w->type)->name)),
        {.kind = BIND_SLOT, .name = "store", .value = store},
        {.kind = BIND_ARGS, .name = "args", .value = params.n ? str_fmt(a, ", %.*s", FMT(params)) : S("")},
        in_place(a, w),
    };
    const int n_b = str_is(S("matmul.c"), k->template) ? COUNT(b) : COUNT(b) - 1; // packed rows are unpacked
    q.text.text = fold_constants(a, template_instance(a, find_template(p, k->template), "@", b, n_b));
    Str equations = print_equations(&q);
    q.text.comment = str_fmt(a, "%.*s: [%lld] -> [%lld], %s", FMT(equations), (long long) w->in, (long long) w->out,
        type_info(w->type)->name);
    return q.text;
}

// ---- products of a stack ----

void fixed_arg(Printer *q, ArgKind kind, int index) {
    *PUSH(q->names.arena, q->text.fixed, q->text.n_fixed, q->text.cap_fixed) = (Arg){.kind = kind, .index = index};
}

void fixed_text(Printer *q, const char *text) {
    *PUSH(q->names.arena, q->text.fixed, q->text.n_fixed, q->text.cap_fixed) =
        (Arg){.kind = ARG_TEXT, .name = str(text)};
}

void fixed_operand(Printer *q, const Node *n, int k) {
    fixed_arg(q, ARG_BUFFER, q->place[n->in[k]].buffer);
}

KernelText print_experts(const Plan *p, const Kernel *k) {
    Arena *a = p->graph->arena;
    Printer q = printer_new(p, k);
    const Node *n = &q.stage->node[q.stage->kernel[k->group].heavy], *x = &q.stage->node[n->in[0]];
    const Weight *w = &q.stage->weight[n->weight];
    int packed = p->packed[k->stage][n->weight];
    bool panels = p->weight[packed].layout == LAYOUT_PANELS, each = n->op == OP_each;
    int64_t parts = n->shape.d[0], x_bytes = panels ? (int64_t) plan_q8_bytes(w->in) : 0;
    Str store = epilogue(&q);
    Str params = print_params(&q);
    fixed_arg(&q, ARG_WEIGHT, packed);
    fixed_operand(&q, n, 0);
    if (each) fixed_text(&q, "NULL");
    else fixed_operand(&q, n, 1);
    fixed_text(&q, row_count(k));
    int64_t groups = ((k->out + 15) / 16 + k->panels - 1) / k->panels, most = (160 << 10) / (x_bytes + 1);
    Binding b[] = {
        param_int(a, "K", k->in),
        param_int(a, "N", k->out),
        param_int(a, "S", k->strands),
        param_int(a, "E", w->stack),
        param_int(a, "TOP", parts),
        param_int(a, "OWN", shape_size(x->shape) != w->in || parts == 1),
        param_int(a, "EACH", each),
        param_int(a, "PANELS", k->panels),
        param("FMT", str(format_of(w->type)->name)),
        {.kind = BIND_SLOT, .name = "store", .value = store},
        {.kind = BIND_ARGS, .name = "args", .value = params.n ? str_fmt(a, ", %.*s", FMT(params)) : S("")},
        panels ? param_int(a, "X_BYTES", x_bytes) : in_place(a, w),
        param_int(a, "MOST",
            most > 24      ? 24
                : most < 1 ? 1
                           : most),
    };
    q.text.text = fold_constants(
        a, template_instance(a, find_template(p, k->template), "@", b, panels ? COUNT(b) : COUNT(b) - 1));
    q.text.pieces = each
        ? str_fmt(a, "%lld", (long long) (parts * groups))
        : str_fmt(a, "%lld * (%s * %lld < %lld ? %s * %lld : %lld)", (long long) groups, row_count(k),
              (long long) parts, (long long) w->stack, row_count(k), (long long) parts, (long long) w->stack);
    Str equations = print_equations(&q);
    q.text.comment = str_fmt(a, "%.*s: [%lld] -> [%lld], %lld of %lld, %s", FMT(equations), (long long) w->in,
        (long long) w->out, (long long) parts, (long long) w->stack, type_info(w->type)->name);
    return q.text;
}

// ---- attention ----

// How many positions a state of this kind shows; 0: it is of another kind, or shows all that there can be.
static int64_t sees_limit(const State *st, Sees sees, int64_t n_ctx) {
    return st->sees == sees && st->n < n_ctx ? st->n : 0;
}

static const char *sees_show(Arena *a, const State *st) {
    switch (st->sees) {
    case SEES_WINDOW: return "a window";
    case SEES_CHUNK: return str_z(a, str_fmt(a, "chunks of %lld", (long long) st->n));
    case SEES_ALL: return "the whole sequence";
    case SEES_AROUND: return str_z(a, str_fmt(a, "%lld positions around", (long long) st->n));
    default: return "all positions";
    }
}

// Biases by distance, as the template's parameters.
static int bias_params(Arena *a, const Node *n, const Node *biases, const State *st, Binding *b) {
    Buckets by = {0};
    if (biases) by = buckets_of(biases->shape.d[0], n->num[3], sees_ahead(st->sees));
    Str bounds = S("");
    for (int i = 0; i < by.n; i++)
        bounds = str_fmt(a, "%.*s%s%lld", FMT(bounds), i ? ", " : "", (long long) by.bound[i]);
    b[0] = param_int(a, "EXACT", by.exact), b[1] = param_int(a, "LATER", by.later);
    b[2] = param("BOUNDS", bounds), b[3] = param_int(a, "BIASES", biases ? by.n : 0);
    return 4;
}

// What attention on one cache and on two have in common, as the templates' parameters.
static int common_params(const Printer *q, const Node *n, const Node *sinks, const Node *picks, Str args, Str pass,
    Binding *b) {
    Arena *a = q->names.arena;
    const Plan *p = q->plan;
    const State *st = &q->stage->state[n->state];
    int group = p->state[p->state_of[q->kernel->stage][n->state]].group, count = 0;
    const Binding common[] = {
        param_int(a, "H", n->shape.d[0]),
        param_int(a, "G", st->k.d[0]),
        param_int(a, "DK", st->k.d[1]),
        param("SCALE", c_float(a, n->real[0])),
        param("SOFTCAP", c_float(a, n->real[1])),
        param_int(a, "SINKS", sinks != NULL),
        param_int(a, "PICKS", picks ? picks->shape.d[1] : 0),
        param_int(a, "SETS", picks ? picks->shape.d[0] : 1),
        param_int(a, "BLOCK", n->num[2] > 1 ? n->num[2] : 1),
        param_int(a, "GROUP", group),
        param_int(a, "PAGE_BYTES", (int64_t) p->group[group].page_bytes),
        param("KV", p->kv_f32 ? S("f32") : S("f16")),
        param_int(a, "HEADS", q->kernel->heads),
        param_int(a, "ROWS", q->kernel->rows),
        param_int(a, "WINDOW", sees_limit(st, SEES_WINDOW, p->graph->n_ctx)),
        param_int(a, "CHUNK", sees_limit(st, SEES_CHUNK, p->graph->n_ctx)),
        {.kind = BIND_ARGS, .name = "args", .value = args},
        {.kind = BIND_ARGS, .name = "pass", .value = pass},
    };
    for (; count < COUNT(common); count++) b[count] = common[count];
    return count;
}

// One cache: what rows see of later ones, where values lie, what distance does.
static int one_params(const Printer *q, const Node *n, const Node *biases, Binding *b) {
    Arena *a = q->names.arena;
    const State *st = &q->stage->state[n->state];
    bool all = st->sees == SEES_ALL, around = st->sees == SEES_AROUND, columns = !st->v.n;
    int count = bias_params(a, n, biases, st, b);
    b[count++] = param_int(a, "ALL", all), b[count++] = param_int(a, "AROUND", around ? st->n : 0);
    b[count++] = param_int(a, "AHEAD", all || around);
    b[count++] = param("ALIBI", c_float(a, n->real[2])), b[count++] = param_int(a, "DV", n->shape.d[1]);
    b[count++] = param("FMT", str(q->kernel->keys));
    b[count++] = param_int(a, "V_ROW", columns ? st->k.d[1] : n->shape.d[1]);
    b[count++] = param_int(a, "V_FROM", columns ? n->num[0] : 0);
    return count;
}

// Two caches: the second is of records.
static int two_params(const Printer *q, const Node *n, Binding *b) {
    Arena *a = q->names.arena;
    const Plan *p = q->plan;
    int second = q->stage->node[n->in[2]].state, group = p->state[p->state_of[q->kernel->stage][second]].group;
    const State *st = &q->stage->state[n->state], *records = &q->stage->state[second];
    if (st->every > 1 || sees_ahead(st->sees) || n->real[2] != 0 || n->num[3] || records->sees != SEES_PAST)
        fail_at(n->loc, "attention on two caches is on positions, then on records of the past, without biases");
    b[0] = param_int(a, "EVERY", state_every(records)), b[1] = param_int(a, "GROUP2", group);
    b[2] = param_int(a, "PAGE_BYTES2", (int64_t) p->group[group].page_bytes);
    return 3;
}

KernelText print_attention(const Plan *p, const Kernel *k) {
    Arena *a = p->graph->arena;
    Printer q = printer_new(p, k);
    int heavy = q.stage->kernel[k->group].heavy;
    const Node *n = &q.stage->node[heavy];
    const State *st = &q.stage->state[n->state];
    int si = p->state_of[k->stage][n->state];
    int64_t heads = n->shape.d[0];
    static const char *const names[] = {[READS_SINKS] = "sinks", [READS_BIASES] = "biases", [READS_PICKS] = "picks"};
    const Node *read[COUNT(names)] = {NULL}; // in each of the roles
    bool two = attention_caches(q.stage, n->in, n->n_in) == 2;
    fixed_text(&q, "m"), fixed_arg(&q, ARG_STATE_K, si);
    if (!two) fixed_arg(&q, st->v.n ? ARG_STATE_V : ARG_STATE_K, si);
    if (two) fixed_arg(&q, ARG_STATE_K, p->state_of[k->stage][q.stage->node[n->in[2]].state]);
    fixed_operand(&q, n, 0), fixed_arg(&q, ARG_BUFFER, p->place[k->stage][heavy].buffer);
    fixed_text(&q, k->rate == RATE_OUT ? "m->out_pos, m->out_seq, m->outs" : "m->pos, m->seq, m->rows");
    Str args = S(""), pass = S("");
    for (int i = two ? 3 : 2; i < n->n_in; i++) {
        AttentionRole role = attention_role(q.stage, n->in, n->n_in, n->num[3] != 0, i);
        const Node *x = read[role] = &q.stage->node[n->in[i]];
        int base = view_base(q.stage, n->in[i]);
        bool weight = q.stage->node[base].op == OP_weight;
        const Arg *arg = printer_arg(&q, weight ? ARG_WEIGHT : ARG_BUFFER,
            weight ? p->packed[k->stage][q.stage->node[base].weight] : q.place[n->in[i]].buffer, str(names[role]),
            false);
        bool ids = role == READS_PICKS;
        args = str_fmt(a, "%.*s, const %s *restrict %.*s", FMT(args), ids ? "int32_t" : "float", FMT(arg->name));
        pass = ids ? str_fmt(a, "%.*s, picks + (size_t) r * %lld", FMT(pass), (long long) shape_size(x->shape))
                   : str_fmt(a, "%.*s, %s", FMT(pass), names[role]);
    }
    Binding b[40];
    int count = common_params(&q, n, read[READS_SINKS], read[READS_PICKS], args, pass, b);
    count += two ? two_params(&q, n, b + count) : one_params(&q, n, read[READS_BIASES], b + count);
    q.text.text = fold_constants(a, template_instance(a, find_template(p, k->template), "@", b, count));
    q.text.pieces = str_fmt(a, "%lld * ((%s + %d) / %d)", (long long) (heads + k->heads - 1) / k->heads, row_count(k),
        k->rows - 1, k->rows);
    Str on = two ? str_fmt(a, "%s and records of %lld positions", sees_show(a, st),
                       (long long) state_every(&q.stage->state[q.stage->node[n->in[2]].state]))
                 : str_fmt(a, "of keys and values, %s", sees_show(a, st));
    q.text.comment = str_fmt(a, "attention: %lld heads over %lld%s%.*s", (long long) heads, (long long) st->k.d[0],
        two ? ", " : " ", FMT(on));
    return q.text;
}
