// Prints the model's source from the plan: support code, kernels, tables of offsets, a function for each stage, and
// model_forward. In: Plan. Out: one C file. It prints what the plan says and has no opinion.
#include "emit.h"
#include "embed.h"
#include "template.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Plan *p;
    const Graph *g;
    Arena *a;
    Out o;
    KernelText *text; // of each kernel of the plan
    Str *name;        // the function's name; kernels of equal text share one
    bool *shared;     // its text was printed under another name
    Names names;      // of the file
    Str *stage_fn, *stage_table;
    Str *param_table;
} Emit;

static void heading(Emit *e, const char *what) {
    out(&e->o, "\n// ---- %s ----\n", what);
}

// Text from files in comments: no byte that could end the comment or confuse a terminal.
static Str plain(Arena *a, Str s) {
    Out o = out_new(a);
    for (size_t i = 0; i < s.n && i < LONGEST_COMMENT; i++) {
        unsigned char c = (unsigned char) s.p[i];
        bool risky = c < 32 || c > 126 || c == '\\' || c == '?'; // what could join lines; // ends with its line
        out(&o, "%c", risky ? '.' : c);
    }
    return out_text(&o);
}

// ---- kernels ----

static KernelText (*const print_kernel[])(const Plan *p, const Kernel *k) = {
    [K_ROWS] = print_row_kernel,
    [K_MATMUL] = print_matmul,
    [K_ATTENTION] = print_attention,
    [K_EXPERTS] = print_experts,
    [K_STATE] = print_state,
};

static void print_kernels(Emit *e) {
    const Plan *p = e->p;
    e->text = NEWN(e->a, KernelText, p->n_kernel + 1), e->name = NEWN(e->a, Str, p->n_kernel + 1),
    e->shared = NEWN(e->a, bool, p->n_kernel + 1);
    for (int i = 0; i < p->n_kernel; i++) {
        const Kernel *k = &p->kernel[i];
        e->text[i] = print_kernel[k->kind](p, k);
        for (int j = 0; j < i && !e->shared[i]; j++)
            if (str_eq(e->text[i].text, e->text[j].text)) e->shared[i] = true, e->name[i] = e->name[j];
        if (!e->shared[i]) e->name[i] = name_fresh(&e->names, k->name);
    }
}

static void print_definition(Emit *e, int i) {
    const KernelText *t = &e->text[i];
    out(&e->o, "\n// %.*s\n", FMT(plain(e->a, t->comment)));
    for (Str rest = t->text; rest.n;) { // the name goes where @ stands
        const char *at = memchr(rest.p, '@', rest.n);
        size_t n = at ? (size_t) (at - rest.p) : rest.n;
        out_str(&e->o, (Str){rest.p, n});
        if (at) out_str(&e->o, e->name[i]), n++;
        rest.p += n, rest.n -= n;
    }
}

// All that the plan's kernels may need; emit_model leaves out what they do not.
static void emit_support(Emit *e) {
    Support s = {.folders = e->p->target->folders};
    static const char *const always[] = {"half.h", "math.h", "row.h"};
    static const struct { // what row operators call
        Op op;
        const char *file;
    } wanted[] = {{OP_q8, "q8.h"}, {OP_rope, "rope.h"}, {OP_put, "kv.h"}, {OP_softmax, "norm.h"},
        {OP_layer_norm, "norm.h"}, {OP_top, "choose.h"}, {OP_gather, "choose.h"}, {OP_only, "choose.h"},
        {OP_embed, "choose.h"}, {OP_mix, "choose.h"}, {OP_sum_first, "choose.h"}, {OP_conv, "choose.h"},
        {OP_spread, "choose.h"}, {OP_hash, "choose.h"}, {OP_id, "choose.h"}};
    for (int i = 0; i < COUNT(always); i++) template_require(&e->o, &s, always[i]);
    for (int si = 0; si < e->g->n_stage; si++)
        for (int i = 0; i < e->g->stage[si].n_node; i++)
            for (int k = 0; k < COUNT(wanted); k++)
                if (e->g->stage[si].node[i].op == wanted[k].op) template_require(&e->o, &s, wanted[k].file);
    for (int si = 0; si < e->g->n_stage; si++)
        for (int i = 0; i < e->g->stage[si].n_node; i++)
            if (e->g->stage[si].node[i].op == OP_rope && e->g->stage[si].node[i].num[2])
                template_require(&e->o, &s, "rope_back.h");
    for (int i = 0; i < e->p->n_weight; i++) { // rows of tables
        const PackedWeight *pw = &e->p->weight[i];
        if (pw->layout == LAYOUT_F32) continue;
        const Format *f = format_of(e->g->stage[pw->stage].weight[pw->weight].type);
        template_require(
            &e->o, &s, str_z(e->a, str_fmt(e->a, "%s.%s", f->name, pw->layout == LAYOUT_PANELS ? "packed" : "decode")));
    }
    for (int i = 0; i < e->p->n_kernel; i++) {
        const Kernel *k = &e->p->kernel[i];
        if (k->kind == K_ROWS) continue;
        const Stage *st = &e->g->stage[k->stage];
        const Node *heavy = &st->node[st->kernel[k->group].heavy];
        const char *format = heavy->weight >= 0 ? format_of(st->weight[heavy->weight].type)->name : k->keys;
        template_support(&e->o, &s, template_find(e->p->target->folders, k->template), format);
    }
}

static const float *rope_factors(Emit *e, int rope) {
    for (int si = 0; si < e->g->n_stage; si++)
        for (int i = 0; i < e->g->stage[si].n_node; i++) {
            const Node *n = &e->g->stage[si].node[i];
            if (n->op != OP_angles || n->num[0] != rope || n->n_in < 2) continue;
            const Node *root = &e->g->stage[si].node[view_base(&e->g->stage[si], n->in[1])];
            const Weight *w = &e->g->stage[si].weight[root->weight];
            const GgufTensor *t = &e->p->gguf->tensor[w->tensor[0]];
            float *f = NEWN(e->a, float, t->n_elems);
            format_of(t->type)->dequant(t->data, f, (int64_t) t->n_elems);
            return f;
        }
    return NULL;
}

static void emit_floats(Emit *e, const char *name, const float *v, int64_t n) {
    out(&e->o, "    static const float %s[%lld] = {", name, (long long) n);
    for (int64_t j = 0; j < n; j++)
        out(&e->o, "%s%.*s%s", j % 8 ? " " : "\n        ", FMT(c_float(e->a, v[j])), j + 1 < n ? "," : "");
    out(&e->o, "\n    };\n");
}

// The same chain as angles_row(), with the profile's numbers in place.
static void emit_angles(Emit *e) {
    for (int i = 0; i < e->g->n_rope; i++) {
        const Rope *r = &e->g->rope[i];
        int64_t n = r->dims / 2;
        const float *factors = rope_factors(e, i);
        out(&e->o,
            "\n// Rotation %.*s: %s, %lld dims, base %g. Angles are f32; each pair's is the one before it times a "
            "constant.\n",
            FMT(plain(e->a, r->name)), r->halves ? "pairs of halves" : "adjacent pairs", (long long) r->dims, r->base);
        out(&e->o, "static void angles_%.*s(int32_t pos, float *cos_sin) {\n", FMT(r->name));
        if (factors) emit_floats(e, "factor", factors, n);
        if (angles_mixed(r)) {
            float *mix = NEWN(e->a, float, n + 1);
            for (int64_t j = 0; j < n; j++) mix[j] = angles_mix(r, j);
            emit_floats(e, "mix", mix, n);
        }
        bool rests = false;
        float *turns = NEWN(e->a, float, n + 1);
        for (int64_t j = 0; j < n; j++) turns[j] = angles_rests(r, j) ? 0 : 1, rests |= turns[j] == 0;
        if (rests) emit_floats(e, "turns", turns, n);
        // what the fourth stream of positions turns stands still
        const char *turned = rests ? "angle * turns[i]" : "angle";
        out(&e->o, "    float turn = (float) pos;\n    for (int i = 0; i < %lld; i++, turn *= %.*s) {\n", (long long) n,
            FMT(c_float(e->a, angles_step(r))));
        const char *whole = factors ? "turn / factor[i]" : "turn";
        Str scale = r->scale == 1 ? S("") : str_fmt(e->a, "%.*s * ", FMT(c_float(e->a, r->scale)));
        Str size = angles_size(r) == 1 ? S("") : str_fmt(e->a, " * %.17g", angles_size(r));
        if (angles_mixed(r))
            out(&e->o, "        const float whole = %s, angle = %.*swhole * (1 - mix[i]) + whole * mix[i];\n", whole,
                FMT(scale));
        else if (scale.n && factors) out(&e->o, "        const float angle = %.*s(%s);\n", FMT(scale), whole);
        else out(&e->o, "        const float angle = %.*s%s;\n", FMT(scale), whole);
        if (size.n)
            out(&e->o,
                "        cos_sin[2 * i] = (float) (cos(%s)%.*s);\n        cos_sin[2 * i + 1] = (float) "
                "(sin(%s)%.*s);\n    }\n}\n",
                turned, FMT(size), turned, FMT(size));
        else
            out(&e->o,
                "        cos_sin[2 * i] = (float) cos(%s);\n        cos_sin[2 * i + 1] = (float) sin(%s);\n    "
                "}\n}\n",
                turned, turned);
    }
}

// ---- tables of offsets ----

static Str field_of_weight(Emit *e, Names *fields, int pw) {
    return name_fresh(fields, e->g->stage[e->p->weight[pw].stage].weight[e->p->weight[pw].weight].name);
}

// Field names of a stage's table, in order: weights, then k and v of each state.
static Str *stage_fields(Emit *e, int stage, int *n) {
    const Stage *s = &e->g->stage[stage];
    Names fields = {.arena = e->a};
    Str *f = NEWN(e->a, Str, s->n_weight + 2 * s->n_state + 1);
    *n = 0;
    for (int j = 0; j < s->n_weight; j++)
        if (e->p->packed[stage][j] >= 0) f[(*n)++] = field_of_weight(e, &fields, e->p->packed[stage][j]);
    for (int j = 0; j < s->n_state; j++) {
        f[(*n)++] = name_fresh(&fields, str_fmt(e->a, "%.*s_k", FMT(s->state[j].name)));
        f[(*n)++] = name_fresh(&fields, str_fmt(e->a, "%.*s_v", FMT(s->state[j].name)));
    }
    return f;
}

static void emit_stage_table(Emit *e, int stage) {
    const Stage *s = &e->g->stage[stage];
    int n;
    Str *field = stage_fields(e, stage, &n);
    if (!n) return;
    Str table = e->stage_table[stage] = name_fresh(&e->names, str_fmt(e->a, "%.*s_at", FMT(s->name)));
    out(&e->o, "\n// %.*s: bytes from the start of the weights%s.\n", FMT(plain(e->a, s->name)),
        s->n_state ? "; keys and values: bytes from the start of a page" : "");
    out(&e->o, "static const struct %.*s {\n    uint64_t ", FMT(table));
    for (int i = 0; i < n; i++) out(&e->o, "%s%.*s", i ? ", " : "", FMT(field[i]));
    long long layers = s->layered ? (long long) e->g->n_layer : 1;
    out(&e->o, ";\n} %.*s[%lld] = {\n", FMT(table), layers);
    for (int r = 0; r < e->g->n_run; r++) {
        const Run *run = &e->g->run[r];
        if (run->stage != stage) continue;
        for (int l = run->first; l < run->first + run->count; l++) {
            out(&e->o, "    [%d] = {", l);
            int k = 0;
            for (int j = 0; j < s->n_weight; j++)
                if (e->p->packed[stage][j] >= 0)
                    out(&e->o, "%s%llu", k++ ? ", " : "",
                        (unsigned long long) e->p->weight[e->p->packed[stage][j]].offset[l]);
            for (int j = 0; j < s->n_state; j++) {
                const StatePlan *sp = &e->p->state[e->p->state_of[stage][j]];
                out(&e->o, "%s%llu", k++ ? ", " : "", (unsigned long long) sp->k_at[l]);
                out(&e->o, ", %llu", (unsigned long long) sp->v_at[l]);
            }
            out(&e->o, "},\n");
        }
    }
    out(&e->o, "};\n");
}

static void emit_params(Emit *e) {
    for (int i = 0; i < e->g->n_param; i++) {
        e->param_table[i] = name_fresh(&e->names, e->g->param[i].name);
        out(&e->o, "\nstatic const float %.*s[%lld] = {", FMT(e->param_table[i]), (long long) e->g->n_layer);
        for (int64_t l = 0; l < e->g->n_layer; l++)
            out(&e->o, "%s%.*s", l ? ", " : "", FMT(c_float(e->a, e->g->param[i].value[l])));
        out(&e->o, "};\n");
    }
}

// ---- stages ----

typedef struct {
    Emit *e;
    int stage;
    Names names;
    Str *buffer;      // the local pointer of each buffer; "" when not declared
    Str *field;       // of each packed weight's place in the table
    Str *decl, *note; // lines that declare pointers, and what stands behind them
    int n_decl, cap_decl, n_note, cap_note;
    Out body;
    bool weights, at, layer;
} StageOut;

static Str buffer_name(StageOut *s, int b) {
    if (s->buffer[b].n) return s->buffer[b];
    const Buffer *buf = &s->e->p->buffer[b];
    if (buf->logits) return s->buffer[b] = S("m->logits");
    Str name = s->buffer[b] =
        name_fresh(&s->names, buf->type == Q8 ? str_fmt(s->e->a, "%.*s_q8", FMT(buf->name)) : buf->name);
    static const char *const forms[] = {[Q8] = "uint8_t *const %.*s = m->scratch + %llu;",
        [F32] = "float *const %.*s = (float *) (m->scratch + %llu);",
        [I32] = "int32_t *const %.*s = (int32_t *) (m->scratch + %llu);"};
    const char *form = forms[buf->type];
    *PUSH(s->e->a, s->decl, s->n_decl, s->cap_decl) =
        str_fmt(s->e->a, form, FMT(name), (unsigned long long) buf->offset);
    *PUSH(s->e->a, s->note, s->n_note, s->cap_note) = str_fmt(s->e->a, "// [%s][%lld]%s",
        buf->rate == RATE_OUT ? "outs" : "rows", (long long) buf->width, buf->type == Q8 ? ", 8 bits" : "");
    return name;
}

static Str call_arg(StageOut *s, const Arg *a) {
    Arena *ar = s->e->a;
    const Plan *p = s->e->p;
    switch (a->kind) {
    case ARG_MODEL: return S("m");
    case ARG_TEXT: return a->name;
    case ARG_BUFFER: return buffer_name(s, a->index);
    case ARG_PARAM: s->layer = true; return str_fmt(ar, "%.*s[l]", FMT(s->e->param_table[a->index]));
    case ARG_WEIGHT:
        s->weights = s->at = true;
        return str_fmt(ar,
            p->weight[a->index].layout == LAYOUT_F32 ? "(const float *) (weights + at->%.*s)" : "weights + at->%.*s",
            FMT(s->field[a->index]));
    default:
        s->at = true;
        return str_fmt(ar, "at->%.*s", FMT(s->field[p->n_weight + 2 * a->index + (a->kind == ARG_STATE_V)]));
    }
}

static Str call_args(StageOut *s, const KernelText *t) {
    Out o = out_new(s->e->a);
    for (int i = 0; i < t->n_arg; i++) out(&o, "%s%.*s", i ? ", " : "", FMT(call_arg(s, &t->arg[i])));
    return out_text(&o);
}

static void step_rows(StageOut *s, int step, const Kernel *k, const KernelText *t, Str name) {
    const char *count = k->rate == RATE_OUT ? "m->outs" : "m->rows";
    Str args = call_args(s, t);
    out(&s->body, "ROWS(w, %d, %s, %s, r)\n    %.*s(%.*s, r);\n", step, s->layer ? "l" : "0", count, FMT(name),
        FMT(args));
}

static void step_matmul(StageOut *s, int step, const Kernel *k, const KernelText *t, Str name) {
    const char *count = k->rate == RATE_OUT ? "m->outs" : "m->rows";
    const Stage *st = &s->e->g->stage[k->stage];
    const Node *heavy = &st->node[st->kernel[k->group].heavy];
    int x = view_base(st, heavy->in[0]);
    Place place = s->e->p->place[k->stage][heavy->in[0]];
    if (place.from || shape_size(st->node[x].shape) != k->in)
        fail("internal: product %.*s reads a part of a row", FMT(k->name));
    int pw = s->e->p->packed[k->stage][heavy->weight];
    Str weight = call_arg(s, &(Arg){.kind = ARG_WEIGHT, .index = pw});
    if (s->e->p->weight[pw].layout == LAYOUT_F32) weight = str_fmt(s->e->a, "(const uint8_t *) %.*s", FMT(weight));
    Str in = buffer_name(s, place.buffer), args = call_args(s, t);
    if (s->e->p->buffer[place.buffer].type != Q8) in = str_fmt(s->e->a, "(const uint8_t *) %.*s", FMT(in));
    long long groups = ((k->out + 15) / 16 + k->panels - 1) / k->panels;
    out(&s->body, "STEP(w, %d, %s, %lld * ((%s + %d) / %d), p)\n", step, s->layer ? "l" : "0", groups, count,
        k->rows - 1, k->rows);
    out(&s->body, "    %.*s(%.*s, %.*s, %s, p%s%.*s);\n", FMT(name), FMT(weight), FMT(in), count, args.n ? ", " : "",
        FMT(args));
}

static void step_heavy(StageOut *s, int step, const KernelText *t, Str name) {
    Out o = out_new(s->e->a);
    for (int i = 0; i < t->n_fixed; i++) {
        Str arg = call_arg(s, &t->fixed[i]);
        out(&o, "%.*s, ", FMT(arg));
    }
    Str fixed = out_text(&o), args = call_args(s, t);
    out(&s->body, "STEP(w, %d, %s, %.*s, p)\n", step, s->layer ? "l" : "0", FMT(t->pieces));
    out(&s->body, "    %.*s(%.*sp%s%.*s);\n", FMT(name), FMT(fixed), args.n ? ", " : "", FMT(args));
}

static void emit_stage(Emit *e, int stage) {
    const Stage *st = &e->g->stage[stage];
    StageOut s = {.e = e, .stage = stage, .names = {.arena = e->a}, .layer = st->layered};
    static const char *const ours[] = {"m", "w", "l", "at", "weights", "p", "r"};
    for (int i = 0; i < COUNT(ours); i++) name_fresh(&s.names, str(ours[i]));
    for (int i = 0; i < e->p->n_kernel; i++) name_fresh(&s.names, e->name[i]);
    for (int i = 0; i < e->g->n_param; i++) name_fresh(&s.names, e->param_table[i]);
    s.buffer = NEWN(e->a, Str, e->p->n_buffer + 1);
    s.field = NEWN(e->a, Str, e->p->n_weight + 2 * e->p->n_state + 2);
    int n, k = 0;
    Str *field = stage_fields(e, stage, &n);
    for (int j = 0; j < st->n_weight; j++)
        if (e->p->packed[stage][j] >= 0) s.field[e->p->packed[stage][j]] = field[k++];
    for (int j = 0; j < st->n_state; j++, k += 2)
        s.field[e->p->n_weight + 2 * e->p->state_of[stage][j]] = field[k],
                                     s.field[e->p->n_weight + 2 * e->p->state_of[stage][j] + 1] = field[k + 1];
    s.body = out_new(e->a);
    s.body.indent = 1;
    for (int i = 0; i < e->p->n_step; i++) {
        if (e->p->step[i].stage != stage) continue;
        int ki = e->p->step[i].kernel;
        const Kernel *kernel = &e->p->kernel[ki];
        if (kernel->kind == K_ROWS) step_rows(&s, i, kernel, &e->text[ki], e->name[ki]);
        else if (kernel->kind == K_MATMUL) step_matmul(&s, i, kernel, &e->text[ki], e->name[ki]);
        else step_heavy(&s, i, &e->text[ki], e->name[ki]);
    }
    out(&e->o, "\nstatic void %.*s(const Model *m, Worker *w%s) {\n", FMT(e->stage_fn[stage]),
        st->layered ? ", int l" : "");
    if (s.at)
        out(&e->o, st->layered ? "    const struct %.*s *at = &%.*s[l];\n" : "    const struct %.*s *at = %.*s;\n",
            FMT(e->stage_table[stage]), FMT(e->stage_table[stage]));
    if (s.weights) out(&e->o, "    const uint8_t *const weights = m->weights;\n");
    size_t widest = 0;
    for (int i = 0; i < s.n_decl; i++) widest = s.decl[i].n > widest ? s.decl[i].n : widest;
    for (int i = 0; i < s.n_decl; i++) out(&e->o, "    %-*.*s %.*s\n", (int) widest, FMT(s.decl[i]), FMT(s.note[i]));
    out_str(&e->o, out_text(&s.body));
    out(&e->o, "}\n");
}

// Stages in the order in which they first run.
static int *stage_order(const Graph *g) {
    int *order = NEWN(g->arena, int, g->n_stage + 1), n = 0;
    bool *seen = NEWN(g->arena, bool, g->n_stage + 1);
    for (int r = 0; r < g->n_run; r++)
        if (!seen[g->run[r].stage]) seen[order[n++] = g->run[r].stage] = true;
    for (int i = 0; i < g->n_stage; i++)
        if (!seen[i]) order[n++] = i;
    return order;
}

static void emit_forward(Emit *e) {
    out(&e->o, "\nvoid model_forward(const Model *m, Worker *w) {\n");
    for (int r = 0; r < e->g->n_run; r++) {
        const Run *run = &e->g->run[r];
        Str fn = e->stage_fn[run->stage];
        if (!e->g->stage[run->stage].layered) out(&e->o, "    %.*s(m, w);\n", FMT(fn));
        else if (run->count == 1) out(&e->o, "    %.*s(m, w, %d);\n", FMT(fn), run->first);
        else
            out(&e->o, "    for (int l = %d; l < %d; l++) %.*s(m, w, l);\n", run->first, run->first + run->count,
                FMT(fn));
    }
    out(&e->o, "}\n");
}

// What a forward gives: the main result in m->logits, others in the scratch.
static void emit_results(Emit *e) {
    const Graph *g = e->g;
    const Global *main = &g->global[g->logits];
    out(&e->o, "    .result = %.*s,\n    .n_result = %lld,\n", FMT(str_c(e->a, main->name)),
        (long long) shape_size(main->shape));
    if (!g->n_output) return;
    out(&e->o, "    .n_output = %d,\n    .output = {\n", g->n_output);
    for (int i = 0; i < g->n_output; i++) {
        const Global *v = &g->global[g->output[i]];
        Str name = str_ends(v->name, "_out") && v->rate == RATE_OUT ? (Str){v->name.p, v->name.n - 4} : v->name;
        out(&e->o, "        {%.*s, %lld, %s, %llu},\n", FMT(str_c(e->a, name)), (long long) shape_size(v->shape),
            v->rate == RATE_OUT ? "true" : "false", (unsigned long long) e->p->buffer[g->output[i]].offset);
    }
    out(&e->o, "    },\n");
}

static void emit_info(Emit *e, const EmitOptions *opt) {
    const Plan *p = e->p;
    const Graph *g = e->g;
    Arena *a = e->a;
    uint64_t params = 0;
    for (int i = 0; i < p->gguf->n_tensor; i++) params += p->gguf->tensor[i].n_elems;
    heading(e, "what was compiled");
    out(&e->o, "\nstatic const char info[] =\n");
    Str facts = opt->facts;
    if (!facts.n) out(&e->o, "    \"\"");
    while (facts.n) {
        const char *nl = memchr(facts.p, '\n', facts.n);
        size_t len = nl ? (size_t) (nl - facts.p) + 1 : facts.n;
        out(&e->o, "    %.*s%s", FMT(str_c(a, (Str){facts.p, len})), len < facts.n ? "\n" : "");
        facts.p += len, facts.n -= len;
    }
    out(&e->o, ";\n\nconst ModelInfo model_info = {\n    .name = %.*s,\n    .arch = %.*s,\n    .source = %.*s,\n",
        FMT(str_c(a, str_plain(a, g->name))), FMT(str_c(a, str_plain(a, g->arch))),
        FMT(str_c(a, str_plain(a, str(opt->source_name)))));
    out(&e->o, "    .hash = 0x%016llxu,\n", (unsigned long long) p->hash);
    out(&e->o,
        "    .n_vocab = %lld,\n    .n_ctx = %lld,\n    .n_layer = %lld,\n    .n_embd = %lld,\n    .max_batch = %d,\n   "
        " .max_out = %d,\n",
        (long long) g->n_vocab, (long long) g->n_ctx, (long long) g->n_layer, (long long) g->n_embd, p->max_batch,
        p->max_out);
    emit_results(e);
    if (p->fixed_bytes) out(&e->o, "    .fixed_bytes = %llu,\n", (unsigned long long) p->fixed_bytes);
    if (graph_whole(g)) out(&e->o, "    .whole = true,\n");
    out(&e->o,
        "    .weight_bytes = %llu,\n    .scratch_bytes = %llu,\n    .thread_bytes = %llu,\n    .n_group = %d,\n    "
        ".group = {\n",
        (unsigned long long) p->weight_bytes, (unsigned long long) p->scratch_bytes,
        (unsigned long long) p->thread_bytes, p->n_group);
    for (int i = 0; i < p->n_group; i++)
        out(&e->o, "        {%.*s, %llu, %lld, %lld},\n", FMT(str_c(a, p->group[i].name)),
            (unsigned long long) p->group[i].page_bytes, (long long) p->group[i].window, (long long) p->group[i].every);
    out(&e->o, "    },\n    .cpu = %.*s,\n    .kv_type = \"%s\",\n    .param_count = %llu,\n    .info = info,\n",
        FMT(str_c(a, str(p->target->cpu))), p->kv_f32 ? "f32" : "f16", (unsigned long long) params);
    if (opt->rerank.n) out(&e->o, "    .rerank = %.*s,\n", FMT(str_c(a, opt->rerank)));
    out(&e->o, "};\n");
    out(&e->o, "const char *const compiler_version = \"ggcc " GGCC_VERSION "\";\n");
    if (opt->weights_path)
        out(&e->o, "const char *const weights_file = %.*s;\n", FMT(str_c(a, str(opt->weights_path))));
    else out(&e->o, "const char *const weights_file = NULL;\n");
    out_str(&e->o, opt->selftest);
}

// The next line, if it goes on as far in as the rest of a broken list and there is room for both; taken off the text.
static Str joinable(Str rest, size_t indent, size_t room, Str *text) {
    const char *nl = memchr(text->p, '\n', text->n);
    size_t n = nl ? (size_t) (nl - text->p) : text->n;
    if (rest.p[rest.n - 1] != ',' || n <= indent || strspn(text->p, " ") != indent || rest.n + 1 + n - indent > room)
        return S("");
    Str next = {text->p + indent, n - indent};
    text->p += nl ? n + 1 : n, text->n -= nl ? n + 1 : n;
    return next;
}

// Lines of more than 120 columns are broken behind a comma, outside of literals and comments; the rest goes on one
// step further in, with the next line behind it where that goes on there, too.
static Str wrapped(Arena *a, Str text) {
    enum { COLUMNS = 120 };
    Out o = out_new(a);
    while (text.n) {
        const char *nl = memchr(text.p, '\n', text.n);
        size_t n = nl ? (size_t) (nl - text.p) : text.n, indent = strspn(text.p, " ");
        Str line = {text.p, n};
        text.p += nl ? n + 1 : n, text.n -= nl ? n + 1 : n;
        for (bool first = true; line.n;) {
            size_t room = COLUMNS - (first ? 0 : indent + 4), cut = 0;
            bool quoted = false;
            for (size_t i = 0; line.n > room && i < room; i++) {
                if (line.p[i] == '"' && (i == 0 || line.p[i - 1] != '\\')) quoted = !quoted;
                if (!quoted && line.p[i] == '/' && i + 1 < line.n && line.p[i + 1] == '/') break;
                if (!quoted && line.p[i] == ' ' && i > indent && line.p[i - 1] == ',') cut = i;
            }
            if (!cut) cut = line.n;
            if (!first) out(&o, "%*s", (int) indent + 4, "");
            out(&o, "%.*s", (int) cut, line.p);
            Str next = !first && cut == line.n ? joinable(line, indent + 4, room, &text) : S("");
            out(&o, "%s%.*s\n", next.n ? " " : "", FMT(next));
            if (cut < line.n) cut++; // the space
            line.p += cut, line.n -= cut, first = false;
        }
        if (!n) out(&o, "\n");
    }
    return out_text(&o);
}

Str emit_model(const Plan *p, const EmitOptions *opt, const char *command) {
    Arena *a = p->graph->arena;
    Emit e = {.p = p, .g = p->graph, .a = a, .o = out_new(a), .names = {.arena = a}};
    static const char *const ours[] = {
        "model_forward", "model_info", "weights_file", "compiler_version", "selftest", "rope_halves", "rope_adjacent"};
    for (int i = 0; i < COUNT(ours); i++) name_fresh(&e.names, str(ours[i]));
    e.stage_fn = NEWN(a, Str, p->graph->n_stage + 1), e.stage_table = NEWN(a, Str, p->graph->n_stage + 1);
    e.param_table = NEWN(a, Str, p->graph->n_param + 1);
    out(&e.o, "// %.*s (%.*s), compiled by ggcc %s from %.*s.\n//\n// Build it with\n//     %s\n//\n",
        FMT(plain(a, p->graph->name)), FMT(plain(a, p->graph->arch)), GGCC_VERSION,
        FMT(plain(a, str(opt->source_name))), command);
    out(&e.o,
        "// In: rows of (token, position, sequence). Out: the logits of the rows that are wanted. Every step is cut "
        "into pieces\n"
        "// that threads claim; a kernel computes one piece. Values lie in m->scratch at planned places, weights "
        "packed in\n"
        "// m->weights, keys and values in pages.\n"
        "// Begin at `the model`, far below; its kernels stand before it, and before them the arithmetic that they "
        "stand on.\n");
    out(&e.o,
        "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n%s\n#include "
        "\"model.h\"\n#include \"selftest.h\"\n",
        p->target->includes);
    heading(&e, "arithmetic, formats and activations: what every model has that needs it");
    out(&e.o, "// This part was laid out in the templates, where names are shorter.\n// clang-format off\n\n");
    Out head = e.o;
    e.o = out_new(a);
    emit_support(&e);
    Str support = out_text(&e.o);
    for (int i = 0; i < n_embedded; i++)
        if (!strcmp(embedded[i].path, "runtime/model.h") || !strcmp(embedded[i].path, "runtime/selftest.h"))
            names_of_c(&e.names, (Str){embedded[i].data, embedded[i].size});
    names_of_c(&e.names, out_text(&head)), names_of_c(&e.names, support);
    for (int i = 0; i < p->graph->n_stage; i++) e.stage_fn[i] = name_fresh(&e.names, p->graph->stage[i].name);
    e.o = out_new(a);
    print_kernels(&e);
    heading(&e, "kernels");
    emit_angles(&e);
    for (int i = 0; i < p->n_kernel; i++)
        if (!e.shared[i]) print_definition(&e, i);
    heading(&e, "where things stand");
    emit_params(&e);
    int *order = stage_order(p->graph), n = p->graph->n_stage;
    for (int i = 0; i < n; i++) emit_stage_table(&e, order[i]);
    heading(&e, "the model");
    for (int i = 0; i < n; i++) emit_stage(&e, order[i]);
    emit_forward(&e);
    emit_info(&e, opt);
    Str code = wrapped(a, out_text(&e.o));
    out_str(&head, used_support(a, support, code));
    out(&head, "// clang-format on\n");
    out_str(&head, code);
    return out_text(&head);
}
