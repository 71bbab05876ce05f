// What was decided, for people: the plan as text, and the report of `ggcc explain`. In: Plan. Out: text.
#include "plan.h"

static double mb(uint64_t bytes) {
    return (double) bytes / 1e6;
}

static const char *layout_name(Layout l) {
    return l == LAYOUT_F32 ? "f32" : l == LAYOUT_RAW ? "rows" : "panels of 16 rows";
}

static const char *kind_name(const Stage *s, const Kernel *k) {
    return k->kind == K_ROWS  ? "row"
        : k->kind == K_MATMUL ? "product"
                              : op_info[s->node[s->kernel[k->group].heavy].op].name;
}

static void print_kernel(const Plan *p, const Kernel *k, Out *o) {
    const Stage *s = &p->graph->stage[k->stage];
    out(o, "%-44.*s %-9s", FMT(k->name), kind_name(s, k));
    out(o, " %10.3f Mop %10.3f MB", k->flops / 1e6, k->weight_bytes / 1e6);
    int heavy = s->kernel[k->group].heavy;
    if (k->kind == K_MATMUL || k->kind == K_EXPERTS) {
        const Weight *w = &s->weight[s->node[heavy].weight];
        const PackedWeight *pw = &p->weight[p->packed[k->stage][s->node[heavy].weight]];
        out(o, "  %s [%lld] -> [%lld]%s, %s, %d panels a piece", type_info(w->type)->name, (long long) k->in,
            (long long) w->out, k->strands > 1 ? " in strands" : "", layout_name(pw->layout), k->panels);
    }
    out(o, "\n");
    for (int i = 0; i < s->n_node; i++)
        if (s->node[i].kernel == k->group)
            out(o, "    %-12s %.*s\n", op_info[s->node[i].op].name, FMT(s->node[i].name));
}

void plan_print(const Plan *p, Out *o) {
    const Graph *g = p->graph;
    out(o, "plan %.*s target %s batch %d out %d\n", FMT(g->arch), p->target->name, p->max_batch, p->max_out);
    for (int i = 0; i < p->n_step; i++) {
        const Kernel *k = &p->kernel[p->step[i].kernel];
        out(o, "step %d stage %.*s kernel %.*s %s\n", i, FMT(g->stage[p->step[i].stage].name), FMT(k->name),
            k->rate == RATE_OUT ? "outs" : "rows");
    }
    for (int i = 0; i < p->n_buffer; i++) {
        const Buffer *b = &p->buffer[i];
        out(o, "buffer %.*s stage %.*s offset %llu bytes %llu width %lld", FMT(b->name),
            FMT(b->stage < 0 ? S("-") : g->stage[b->stage].name), (unsigned long long) b->offset,
            (unsigned long long) b->bytes, (long long) b->width);
        b->stage < 0 ? out(o, "\n") : out(o, " steps %d..%d\n", b->first, b->last);
    }
    for (int i = 0; i < p->n_weight; i++) {
        const PackedWeight *w = &p->weight[i];
        const Stage *s = &g->stage[w->stage];
        out(o, "weight %.*s stage %.*s %s bytes %llu\n", FMT(s->weight[w->weight].name), FMT(s->name),
            layout_name(w->layout), (unsigned long long) w->bytes);
    }
    for (int i = 0; i < p->n_group; i++)
        out(o, p->group[i].every > 1 ? "state group %d window %lld page %llu bytes every %lld\n"
                                      : "state group %d window %lld page %llu bytes\n",
            i, (long long) p->group[i].window, (unsigned long long) p->group[i].page_bytes,
            (long long) p->group[i].every);
}

static void explain_memory(const Plan *p, Out *o) {
    const Graph *g = p->graph;
    out(o, "\nMemory\n");
    out(o, "  weights, mapped              %12llu bytes (%.1f MB)\n", (unsigned long long) p->weight_bytes,
        mb(p->weight_bytes));
    uint64_t state = 0;
    for (int i = 0; i < p->n_group; i++) {
        const GroupPlan *gp = &p->group[i];
        uint64_t pages = (uint64_t) (g->n_ctx / gp->every + p->page - 1) / (uint64_t) p->page;
        if (!pages) pages = 1;
        if (gp->window) {
            uint64_t held = (uint64_t) (gp->window - 1 + p->max_batch + p->page - 1) / (uint64_t) p->page + 2;
            pages = held < pages ? held : pages;
        }
        state += pages * gp->page_bytes;
        out(o, "  state, %-21.*s %12llu bytes: %llu pages of %d %s, %llu bytes a %s\n", FMT(gp->name),
            (unsigned long long) (pages * gp->page_bytes), (unsigned long long) pages, p->page,
            gp->every > 1 ? "records" : "positions", (unsigned long long) (gp->page_bytes / (uint64_t) p->page),
            gp->every > 1 ? "record" : "position");
    }
    state += p->fixed_bytes;
    if (p->fixed_bytes)
        out(o, "  state that does not grow     %12llu bytes a sequence\n", (unsigned long long) p->fixed_bytes);
    uint64_t logits = (uint64_t) p->max_out * (uint64_t) g->n_vocab * 4;
    out(o, "  values of one forward        %12llu bytes: %d rows\n", (unsigned long long) p->scratch_bytes,
        p->max_batch);
    out(o, "  logits                       %12llu bytes: %d rows of %lld\n", (unsigned long long) logits, p->max_out,
        (long long) g->n_vocab);
    out(o, "  planned, without weights     %12llu bytes (%.1f MB); pages that are never touched take none\n",
        (unsigned long long) (state + p->scratch_bytes + logits), mb(state + p->scratch_bytes + logits));
}

void explain(const Plan *p, Out *o) {
    const Graph *g = p->graph;
    out(o, "%.*s, architecture %.*s: %lld layers, width %lld, vocabulary %lld, context %lld, target %s, cache %s\n",
        FMT(g->name.n ? str_plain(o->arena, g->name) : S("model")), FMT(g->arch), (long long) g->n_layer,
        (long long) g->n_embd, (long long) g->n_vocab, (long long) g->n_ctx, p->target->name,
        p->kv_f32 ? "f32" : "f16");
    out(o, "\nFacts\n");
    for (int i = 0; i < g->n_fact; i++)
        out(o, "  %.*s: %.*s\n", FMT(str_plain(o->arena, g->fact[i].name)), FMT(str_plain(o->arena, g->fact[i].note)));
    for (int i = 0; i < g->n_ignored; i++)
        out(o, "  ignored %.*s: %.*s\n", FMT(str_plain(o->arena, g->ignored[i].name)),
            FMT(str_plain(o->arena, g->ignored[i].note)));
    out(o, "\nLayers\n");
    for (int i = 0; i < g->n_run; i++) {
        const Run *r = &g->run[i];
        const Stage *s = &g->stage[r->stage];
        if (s->layered) out(o, "  %d..%d %.*s\n", r->first, r->first + r->count - 1, FMT(s->name));
        else out(o, "  %.*s\n", FMT(s->name));
    }
    out(o, "\nFusions\n");
    for (int done = 1; done >= 0; done--)
        for (int i = 0; i < p->report->n; i++) {
            const ReportLine *l = &p->report->line[i];
            if ((l->reason.n == 0) != (done == 1)) continue;
            out(o, done ? "  done     %.*s: %.*s\n" : "  refused  %.*s: %.*s", FMT(l->stage), FMT(l->what));
            if (!done) out(o, ": %.*s\n", FMT(l->reason));
        }
    out(o, "\nKernels, for one row\n");
    double flops = 0, bytes = 0;
    for (int i = 0; i < p->n_step; i++) {
        const Kernel *k = &p->kernel[p->step[i].kernel];
        print_kernel(p, k, o);
        int64_t times = 0;
        for (int r = 0; r < g->n_run; r++) times += g->run[r].stage == k->stage ? g->run[r].count : 0;
        flops += k->flops * (double) times, bytes += k->weight_bytes * (double) times;
    }
    out(o, "  a token: %.1f Mop, %.1f MB of weights\n", flops / 1e6, bytes / 1e6);
    explain_memory(p, o);
    out(o, "\nGraph\n");
    graph_print(g, o);
}
