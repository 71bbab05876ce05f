// The text form of a graph. In: a graph. Out: text, which graph_read.c turns into the same graph again; it is what
// `--dump` shows and what tests of passes are written in. One idea: tables of fields (graph_text.h) drive printer and
// reader alike, and operators come from ops.def. A statement is a line; lists may go over several; # begins a comment.
//
//   graph llama "SmolLM2 135M" layers=30 vocab=49152 ctx=2048 embd=576
//   global x : [576]                                   a value: type rate [shape]; f32 and row go without saying
//   stage block layered {
//       weight attn_norm type=F32 shape=[576] out=1 in=576 tensors=[1, 10, ...]
//       kernel norm                                    or: kernel qkv heavy=q.4
//       x.0 = get global=x : [576]                     name.index; without an index, an operand is the latest so named
//       .1 = weight weight=attn_norm : const [576]     no name; and without ": ..": whatever follows from the operands
//       h.2 = rms_norm(x.0, .1) eps=1e-06f : [576] @norm      1e-06f: the float nearest to 1e-06; 0.5: a double
//   }
//   run block first=0 count=30
#include "graph_text.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static void print_quoted(Out *o, Str s) {
    out(o, "\"");
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char) s.p[i];
        if (c == '\n') out(o, "\\n");
        else if (c == '"' || c == '\\') out(o, "\\%c", c);
        else if (c < 0x20 || c >= 0x7F) out(o, "\\x%02x", c);
        else out(o, "%c", c);
    }
    out(o, "\"");
}

static void print_name(Out *o, Str s) {
    if (is_plain(s)) out_str(o, s);
    else print_quoted(o, s);
}

static void print_ref(Out *o, Table t, int64_t i) {
    Str name = i >= 0 && i < t.n ? row_name(t, (int) i) : S("");
    if (name.n && row_named(t, name) == i) print_name(o, name);
    else out(o, ".%lld", (long long) i);
}

static void print_node_ref(Out *o, const Stage *s, int i) {
    if (i >= 0 && i < s->n_node && s->node[i].name.n) print_name(o, s->node[i].name);
    out(o, ".%d", i);
}

// The fewest digits that read back exactly; a float's value as a float, with an f, where that is shorter.
static void print_real(Out *o, double v) {
    char text[40], single[40];
    if (isnan(v)) { // never "-nan"
        out(o, "nan");
        return;
    }
    if (fabs(v) < 1e7 && v == floor(v)) { // 10000, not 1e+04
        out(o, "%.0f", v);
        return;
    }
    for (int n = 1; n <= 17; n++) {
        snprintf(text, sizeof text, "%.*g", n, v);
        if (strtod(text, NULL) == v) break;
    }
    if (fabs(v) <= (double) FLT_MAX && (double) (float) v == v) {
        for (int n = 1; n <= 9; n++) {
            snprintf(single, sizeof single, "%.*gf", n, v);
            if (strtof(single, NULL) == (float) v) break;
        }
        if (strlen(single) < strlen(text)) strcpy(text, single);
    }
    out(o, "%s", text);
}

static void print_fields(Out *o, const Field *f, int n, const void *base) {
    for (; n--; f++) {
        const void *p = (const char *) base + f->at;
        const char *word = f->word;
        switch (f->kind) {
        case FLAG:
            if (*(const bool *) p) out(o, " %s", word);
            break;
        case INT:
        case SMALL: {
            int64_t v = f->kind == INT ? *(const int64_t *) p : *(const int *) p;
            if (v != f->usual) out(o, " %s=%lld", word, (long long) v);
            break;
        }
        case REAL:
            if (*(const double *) p == 0 && !signbit(*(const double *) p)) break;
            out(o, " %s=", word);
            print_real(o, *(const double *) p);
            break;
        case SHAPE:
            if (((const Shape *) p)->n) out(o, " %s=%s", word, shape_show(o->arena, *(const Shape *) p));
            break;
        case KIND:
            if (*(const StateKind *) p != STATE_CACHE) out(o, " %s=%s", word, kind_word[*(const StateKind *) p]);
            break;
        case SEES: out(o, " %s=%s", word, sees_word[*(const Sees *) p]); break;
        case TENSOR_TYPE: {
            const TypeInfo *t = type_info(*(const int *) p);
            out(o, " %s=%s", word, t ? t->name : "?");
            break;
        }
        }
    }
}
#define PRINT_FIELDS(o, table, p) print_fields(o, table, COUNT(table), p)

static void print_value(Out *o, DType type, Rate rate, Shape shape) {
    out(o, " : ");
    if (type != F32) out(o, "%s ", type_word[type]);
    if (rate != RATE_ROW) out(o, "%s ", rate_word[rate]);
    out(o, "%s", shape_show(o->arena, shape));
}

// Sixteen layers a line, so that a deep model stays within the screen.
static void print_list_gap(Out *o, int64_t layer, int64_t n) {
    if (layer > 0) out(o, ",");
    if (n > 16 && layer % 16 == 0) out(o, "\n    ");
    else if (layer > 0) out(o, " ");
}

static void print_weight(Out *o, const Graph *g, const Stage *s, const Weight *w) {
    out(o, "weight ");
    print_name(o, w->name);
    PRINT_FIELDS(o, weight_fields, w);
    if (w->n_part != 1 || w->part_out[0] != w->out) {
        out(o, " parts=[");
        for (int i = 0; i < w->n_part; i++) out(o, "%s%lld", i ? " " : "", (long long) w->part_out[i]);
        out(o, "]");
    }
    if (w->tensor) {
        int64_t layers = s->layered ? g->n_layer : 1;
        out(o, " tensors=[");
        for (int64_t l = 0; l < layers; l++) {
            print_list_gap(o, l, layers);
            for (int64_t i = 0; i < weight_tensors(w); i++)
                out(o, "%s%d", i ? " " : "", w->tensor[l * weight_tensors(w) + i]);
        }
        out(o, "]");
    }
    out(o, "\n");
}

static void print_state(Out *o, const Graph *g, const State *st) {
    out(o, "state ");
    print_name(o, st->name);
    PRINT_FIELDS(o, state_fields, st);
    if (st->source) {
        out(o, " sources=[");
        for (int64_t l = 0; l < g->n_layer; l++) {
            print_list_gap(o, l, g->n_layer);
            out(o, "%d", st->source[l]);
        }
        out(o, "]");
    }
    out(o, "\n");
}

static void print_node(Out *o, const Graph *g, const Stage *s, int i) {
    const Node *n = &s->node[i];
    print_node_ref(o, s, i);
    out(o, " = %s", op_info[n->op].name);
    for (int j = 0; j < n->n_in; j++) {
        out(o, "%s", j ? ", " : "(");
        print_node_ref(o, s, n->in[j]);
    }
    if (n->n_in) out(o, ")");
    for (AttrWalk w = attrs_of(n->op); attr_next(&w);) {
        double real = w.num ? 0 : n->real[w.index];
        int64_t num = w.num ? n->num[w.index] : 0;
        Table t;
        if (attr_rare(n->op, w.name) && real == 0 && num == 0 && !signbit(real)) continue;
        out(o, " %.*s=", FMT(w.name));
        if (!w.num) print_real(o, real);
        else if (attr_table(g, w.name, &t)) print_ref(o, t, num);
        else out(o, "%lld", (long long) num);
    }
    if (n->weight >= 0) {
        out(o, " weight=");
        print_ref(o, TABLE("weight", s->weight, s->n_weight), n->weight);
    }
    if (n->state >= 0) {
        out(o, " state=");
        print_ref(o, TABLE("state", s->state, s->n_state), n->state);
    }
    print_value(o, n->type, n->rate, n->shape);
    if (n->kernel >= 0) {
        out(o, " @");
        print_ref(o, TABLE("kernel", s->kernel, s->n_kernel), n->kernel);
    }
    out(o, "\n");
}

static void print_stage(Out *o, const Graph *g, const Stage *s) {
    out(o, "\nstage ");
    print_name(o, s->name);
    PRINT_FIELDS(o, stage_fields, s);
    out(o, " {\n");
    o->indent++;
    for (int i = 0; i < s->n_weight; i++) print_weight(o, g, s, &s->weight[i]);
    for (int i = 0; i < s->n_state; i++) print_state(o, g, &s->state[i]);
    for (int i = 0; i < s->n_kernel; i++) {
        out(o, "kernel ");
        print_name(o, s->kernel[i].name);
        if (s->kernel[i].heavy >= 0) {
            out(o, " heavy=");
            print_node_ref(o, s, s->kernel[i].heavy);
        }
        out(o, "\n");
    }
    for (int i = 0; i < s->n_node; i++) print_node(o, g, s, i);
    o->indent--;
    out(o, "}\n");
}

static void print_facts(Out *o, const char *word, const Fact *f, int n) {
    for (; n--; f++) {
        out(o, "%s ", word);
        print_quoted(o, f->name);
        out(o, " ");
        print_quoted(o, f->note);
        out(o, "\n");
    }
}

void graph_print(const Graph *g, Out *o) {
    out(o, "graph ");
    print_name(o, g->arch);
    out(o, " ");
    print_quoted(o, g->name);
    PRINT_FIELDS(o, graph_fields, g);
    out(o, "\n");
    print_facts(o, "fact", g->fact, g->n_fact);
    print_facts(o, "ignored", g->ignored, g->n_ignored);
    for (int i = 0; i < g->n_global; i++) {
        const Global *v = &g->global[i];
        out(o, "global ");
        print_name(o, v->name);
        print_value(o, v->type, v->rate, v->shape);
        out(o, "\n");
    }
    if (g->logits >= 0) {
        out(o, "result ");
        print_ref(o, TABLE("global", g->global, g->n_global), g->logits);
        out(o, "\n");
    }
    for (int i = 0; i < g->n_output; i++) {
        out(o, "output ");
        print_ref(o, TABLE("global", g->global, g->n_global), g->output[i]);
        out(o, "\n");
    }
    for (int i = 0; i < g->n_rope; i++) {
        out(o, "rope ");
        print_name(o, g->rope[i].name);
        PRINT_FIELDS(o, rope_fields, &g->rope[i]);
        out(o, "\n");
    }
    for (int i = 0; i < g->n_param; i++) {
        out(o, "param ");
        print_name(o, g->param[i].name);
        out(o, " values=[");
        for (int64_t l = 0; l < g->n_layer; l++) {
            print_list_gap(o, l, g->n_layer);
            print_real(o, g->param[i].value[l]);
        }
        out(o, "]\n");
    }
    for (int i = 0; i < g->n_numbers; i++) {
        out(o, "numbers ");
        print_name(o, g->numbers[i].name);
        out(o, " values=[");
        for (int j = 0; j < g->numbers[i].n; j++) {
            print_list_gap(o, j, g->numbers[i].n);
            out(o, "%lld", (long long) g->numbers[i].value[j]);
        }
        out(o, "]\n");
    }
    for (int i = 0; i < g->n_stage; i++) print_stage(o, g, &g->stage[i]);
    if (g->n_run) out(o, "\n");
    for (int i = 0; i < g->n_run; i++) {
        out(o, "run ");
        print_ref(o, TABLE("stage", g->stage, g->n_stage), g->run[i].stage);
        PRINT_FIELDS(o, run_fields, &g->run[i]);
        out(o, "\n");
    }
}
