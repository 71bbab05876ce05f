// Prints heavy kernels: an instance of a template, with the epilogue that fusion gave it in the slot `store`.
// In: a matmul or attention kernel of the plan. Out: the function's text and arguments.
#include "emit.h"
#include "template.h"

#include <string.h>

static Binding param(const char *name, Str value) { return (Binding){.kind = BIND_PARAM, .name = name, .value = value}; }
static Binding param_int(Arena *a, const char *name, int64_t v) { return param(name, str_fmt(a, "%lld", (long long) v)); }

static Str find_template(const Plan *p, const char *name) {
    Str text = template_find(p->target->folders, name);
    if (!text.n) fail("internal: no template %s for target %s", name, p->target->name);
    return text;
}

// ---- matrix product ----

static bool is_member(const Printer *q, int node) { return q->stage->node[node].kernel == q->kernel->group; }

// An operand of an epilogue operator, at output n + j of row r.
static Str epilogue_operand(Printer *q, int use) {
    Arena *a = q->names.arena;
    int64_t from;
    int base = behind_views(q->stage, use, &from);
    const Node *b = &q->stage->node[base];
    int64_t size = shape_size(q->stage->node[use].shape);
    if (is_member(q, base)) {
        if (b->op == OP_matmul) return str_fmt(a, "v%lld[j]", (long long) (from / q->kernel->out));
        return q->name[base];
    }
    if (b->op == OP_const) return c_float(a, b->real[0]);
    if (b->op == OP_param) return printer_arg(q, ARG_PARAM, (int) b->num[0], q->plan->graph->param[b->num[0]].name, false)->name;
    const char *at = size == 1 ? "0" : "n + j";
    if (b->op == OP_weight) {
        Str name = printer_arg(q, ARG_WEIGHT, q->plan->packed[q->kernel->stage][b->weight], q->stage->weight[b->weight].name, false)->name;
        return from ? str_fmt(a, "%.*s[%lld + %s]", FMT(name), (long long) from, at) : str_fmt(a, "%.*s[%s]", FMT(name), at);
    }
    Place place = q->place[use];
    const Buffer *buf = &q->plan->buffer[place.buffer];
    Str name = printer_arg(q, ARG_BUFFER, place.buffer, q->stage->node[use].name.n ? q->stage->node[use].name : buf->name, false)->name;
    Str row = str_fmt(a, "(size_t) r * %llu + ", (unsigned long long) buf->row_bytes / 4);
    return place.from ? str_fmt(a, "%.*s[%.*s%lld + %s]", FMT(name), FMT(row), (long long) place.from, at)
                      : str_fmt(a, "%.*s[%.*s%s]", FMT(name), FMT(row), at);
}

static Str stored_element(Printer *q, int node) {
    Place place = q->place[node];
    const Buffer *buf = &q->plan->buffer[place.buffer];
    Str wanted = q->stage->node[node].name.n ? q->stage->node[node].name : buf->name;
    Str name = printer_arg(q, ARG_BUFFER, place.buffer, wanted, true)->name;
    return str_fmt(q->names.arena, "%.*s[(size_t) r * %llu + n + j]", FMT(name), (unsigned long long) buf->row_bytes / 4);
}

static Str epilogue(Printer *q) {
    Arena *a = q->names.arena;
    Out lines = out_new(a);
    int count = 0;
    for (int i = 0; i < q->stage->n_node; i++) {
        const Node *n = &q->stage->node[i];
        if (!is_member(q, i)) continue;
        bool stored = node_is_stored(q->plan, q->kernel->stage, i);
        if (n->op == OP_matmul && !stored) continue;
        Str in[MAX_IN], e;
        for (int k = 0; k < n->n_in && n->op != OP_matmul; k++) in[k] = epilogue_operand(q, n->in[k]);
        e = n->op == OP_matmul ? S("v0[j]") : c_map(q, n, in);
        bool read_here = false;
        for (int j = i + 1; j < q->stage->n_node; j++)
            for (int k = 0; is_member(q, j) && k < q->stage->node[j].n_in; k++) {
                int64_t from;
                read_here |= behind_views(q->stage, q->stage->node[j].in[k], &from) == i;
            }
        if (n->op != OP_matmul && (!stored || read_here)) {
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

KernelText print_matmul(const Plan *p, const Kernel *k) {
    Arena *a = p->graph->arena;
    Printer q = printer_new(p, k);
    const Node *heavy = &q.stage->node[q.stage->kernel[k->group].heavy];
    const Weight *w = &q.stage->weight[heavy->weight];
    const PackedWeight *pw = &p->weight[p->packed[k->stage][heavy->weight]];
    bool packed = pw->layout == LAYOUT_PANELS;
    Str store = epilogue(&q);
    Str params = print_params(&q);
    Binding b[] = {
        param_int(a, "K", k->in), param_int(a, "N", k->out), param_int(a, "S", k->strands), param_int(a, "PANELS", k->panels),
        param_int(a, "ROWS", k->rows), param("FMT", str(format_of(w->type)->name)),
        {.kind = BIND_SLOT, .name = "store", .value = store},
        {.kind = BIND_ARGS, .name = "args", .value = params.n ? str_fmt(a, ", %.*s", FMT(params)) : S("")},
    };
    q.text.text = fold_constants(a, template_instance(a, find_template(p, packed ? "panels.c" : "matmul.c"), "@", b, COUNT(b)));
    Str equations = print_equations(&q);
    q.text.comment = str_fmt(a, "%.*s: [%lld] -> [%lld], %s", FMT(equations), (long long) w->in, (long long) w->out, type_info(w->type)->name);
    return q.text;
}

// ---- attention ----

KernelText print_attention(const Plan *p, const Kernel *k) {
    Arena *a = p->graph->arena;
    Printer q = printer_new(p, k);
    const Node *n = &q.stage->node[q.stage->kernel[k->group].heavy];
    const State *st = &q.stage->state[n->state];
    const StatePlan *sp = &p->state[p->state_of[k->stage][n->state]];
    int64_t heads = q.stage->node[n->in[0]].shape.d[0];
    if (n->n_in > 2) fail_at(n->loc, "attention sinks are not supported yet");
    Binding b[] = {
        param_int(a, "H", heads), param_int(a, "G", st->k.d[0]), param_int(a, "DK", st->k.d[1]), param_int(a, "DV", st->v.d[1]),
        param("SCALE", c_float(a, n->real[0])), param("SOFTCAP", c_float(a, n->real[1])), param_int(a, "WINDOW", p->group[sp->group].window),
        param_int(a, "GROUP", sp->group), param_int(a, "PAGE_BYTES", (int64_t) p->group[sp->group].page_bytes),
        param("KV", p->kv_f32 ? S("f32") : S("f16")), param_int(a, "HEADS", k->heads), param_int(a, "ROWS", k->rows),
    };
    q.text.text = fold_constants(a, template_instance(a, find_template(p, "attention.c"), "@", b, COUNT(b)));
    q.text.comment = str_fmt(a, "attention: %lld heads over %lld of keys and values, %s", (long long) heads, (long long) st->k.d[0],
                             p->group[sp->group].window ? "a window" : "all positions");
    return q.text;
}
