// Are the plans of a model sound? In: a model file. Out: exit status 0, or what lies where something else lies.
//
// Nothing of the planner's own reckoning is used: when a value lives is found here by walking the steps and the nodes
// that each computes and reads, in the order in which the program runs them, layer after layer.
#include "../../compiler/driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int stage, node;
    int born, dies; // steps, counted over the whole forward of all runs
    uint64_t from, to;
} Life;

static int errors;

#define WRONG(...) (errors++, printf(__VA_ARGS__), (void) puts(""))

static bool keeps_nothing(OpClass c) {
    return c == CLASS_VIEW || c == CLASS_SOURCE;
}

// The nodes that `node` reads, views looked through.
static int root_of(const Stage *s, int node) {
    while (op_info[s->node[node].op].class == CLASS_VIEW) node = s->node[node].in[0];
    return node;
}

static int step_of(const Plan *p, int stage, int group) {
    for (int i = 0; i < p->n_step; i++)
        if (p->step[i].stage == stage && p->kernel[p->step[i].kernel].group == group) return i;
    return -1;
}

// Values of one stage that lie in its own buffers. Globals carry values between stages: they must overlap nothing.
static int lives_of(const Plan *p, int stage, Life *life) {
    const Stage *s = &p->graph->stage[stage];
    int n = 0;
    for (int i = 0; i < s->n_node; i++) {
        int buffer = p->place[stage][i].buffer;
        if (keeps_nothing(op_info[s->node[i].op].class) || buffer < 0 || !node_is_stored(p, stage, i)) continue;
        const Buffer *b = &p->buffer[buffer];
        if (b->stage < 0) continue;
        int64_t values = 1;
        for (int k = 0; k < s->node[i].shape.n; k++) values *= s->node[i].shape.d[k];
        uint64_t row =
            s->node[i].type == Q8 ? (uint64_t) (values + values / 32 * 8 + values / 16 * 2) : (uint64_t) values * 4;
        uint64_t rows = (uint64_t) (s->node[i].rate == RATE_OUT ? p->max_out : p->max_batch);
        if (row > b->row_bytes)
            WRONG("%.*s: a row of %llu bytes where %llu are planned", FMT(b->name), (unsigned long long) row,
                (unsigned long long) b->row_bytes);
        if (b->offset % 64) WRONG("%.*s: not aligned", FMT(b->name));
        if (rows * b->row_bytes > b->bytes || b->offset + b->bytes > p->scratch_bytes)
            WRONG("%.*s: reaches beyond its place", FMT(b->name));
        Life l = {stage, i, step_of(p, stage, s->node[i].kernel), -1, b->offset, b->offset + rows * b->row_bytes};
        l.dies = l.born;
        for (int j = i + 1; j < s->n_node; j++) {
            if (op_info[s->node[j].op].class == CLASS_VIEW) continue;
            for (int k = 0; k < s->node[j].n_in; k++)
                if (root_of(s, s->node[j].in[k]) == i && s->node[j].kernel >= 0) {
                    int at = step_of(p, stage, s->node[j].kernel);
                    if (at < l.born) WRONG("%.*s: read in step %d, made in step %d", FMT(b->name), at, l.born);
                    l.dies = at > l.dies ? at : l.dies;
                }
        }
        life[n++] = l;
    }
    return n;
}

static void check_values(const Plan *p, int *n_lives) {
    uint64_t globals = 0;
    for (int i = 0; i < p->n_buffer; i++) {
        const Buffer *b = &p->buffer[i];
        if (b->stage >= 0 || b->logits) continue;
        for (int j = 0; j < p->n_buffer; j++) {
            const Buffer *c = &p->buffer[j];
            if (i != j && !c->logits && b->offset < c->offset + c->bytes && c->offset < b->offset + b->bytes)
                WRONG("%.*s and %.*s overlap", FMT(b->name), FMT(c->name));
        }
        globals++;
    }
    for (int stage = 0; stage < p->graph->n_stage; stage++) {
        const Stage *s = &p->graph->stage[stage];
        Life *life = calloc((size_t) s->n_node + 1, sizeof *life);
        int n = lives_of(p, stage, life);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                const Life *a = &life[i], *b = &life[j];
                bool same = p->place[stage][a->node].buffer == p->place[stage][b->node].buffer;
                if (same)
                    WRONG("%.*s: two values of stage %.*s share a buffer", FMT(s->node[a->node].name), FMT(s->name));
                if (a->born <= b->dies && b->born <= a->dies && a->from < b->to && b->from < a->to)
                    WRONG("stage %.*s: nodes %d (steps %d to %d) and %d (steps %d to %d) overlap", FMT(s->name),
                        a->node, a->born, a->dies, b->node, b->born, b->dies);
            }
        *n_lives += n;
        free(life);
    }
}

typedef struct {
    uint64_t from, to;
    int packed, layer;
} Range;

static int by_place(const void *a, const void *b) {
    const Range *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

// Weights that are not the same tensors in the same layout do not touch, and every layer that runs has its own.
static int check_weights(const Plan *p) {
    Range *r = calloc((size_t) (p->n_weight * (p->graph->n_layer + 1)) + 1, sizeof *r);
    int n = 0;
    for (int k = 0; k < p->graph->n_run; k++) {
        const Run *run = &p->graph->run[k];
        for (int i = 0; i < p->n_weight; i++) {
            const PackedWeight *w = &p->weight[i];
            if (w->stage != run->stage) continue;
            for (int l = run->first; l < run->first + run->count; l++) {
                if (w->offset[l] % 64) WRONG("weight %d of layer %d is not aligned", i, l);
                if (w->offset[l] > p->weight_bytes || w->bytes > p->weight_bytes - w->offset[l])
                    WRONG("weight %d of layer %d lies beyond the end", i, l);
                r[n++] = (Range){w->offset[l], w->offset[l] + w->bytes, i, l};
            }
        }
    }
    qsort(r, (size_t) n, sizeof *r, by_place);
    for (int i = 1; i < n; i++) {
        const PackedWeight *a = &p->weight[r[i - 1].packed], *b = &p->weight[r[i].packed];
        if (r[i].from >= r[i - 1].to) continue;
        const Weight *x = &p->graph->stage[a->stage].weight[a->weight],
                     *y = &p->graph->stage[b->stage].weight[b->weight];
        bool tied =
            r[i].from == r[i - 1].from && r[i].to == r[i - 1].to && a->layout == b->layout && x->n_part == y->n_part;
        for (int k = 0; tied && k < x->n_part; k++)
            tied = x->tensor[r[i - 1].layer * x->n_part + k] == y->tensor[r[i].layer * y->n_part + k];
        if (!tied)
            WRONG("weights %.*s of layer %d and %.*s of layer %d overlap", FMT(x->name), r[i - 1].layer, FMT(y->name),
                r[i].layer);
    }
    free(r);
    return n;
}

// Keys and values of every layer have a place of their own in the pages of their group.
static int check_states(const Plan *p) {
    Range *r = calloc((size_t) (p->n_state * p->graph->n_layer * 2) + 1, sizeof *r);
    int n = 0;
    for (int g = 0; g < p->n_group; g++) {
        int first = n;
        for (int k = 0; k < p->graph->n_run; k++) {
            const Run *run = &p->graph->run[k];
            for (int i = 0; i < p->n_state; i++) {
                const StatePlan *s = &p->state[i];
                if (s->stage != run->stage || s->group != g) continue;
                for (int l = run->first; l < run->first + run->count; l++) {
                    r[n++] = (Range){s->k_at[l], s->k_at[l] + s->k_bytes, i, l};
                    r[n++] = (Range){s->v_at[l], s->v_at[l] + s->v_bytes, i, l};
                }
            }
        }
        qsort(r + first, (size_t) (n - first), sizeof *r, by_place);
        for (int i = first; i < n; i++) {
            if (i > first && r[i].from < r[i - 1].to)
                WRONG("states of layers %d and %d overlap", r[i - 1].layer, r[i].layer);
            if (r[i].to > p->group[g].page_bytes) WRONG("a state of layer %d lies beyond its page", r[i].layer);
        }
    }
    free(r);
    return n;
}

int main(int argc, char **argv) {
    if (argc != 2) fail_usage("plan_tool MODEL.gguf");
    static const char *const march[] = {"native", "x86-64"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        CompileOptions opt = {.march = i % 2 ? march[1] : march[0], .plan.no_fuse = i / 2};
#ifndef __x86_64__
        opt.march = "native";
#endif
        quiet = true;
        const Plan *p = compile_plan(a, argv[1], &opt).plan;
        int values = 0, weights = check_weights(p), states = check_states(p);
        check_values(p, &values);
        if (!values || !weights) WRONG("nothing was checked");
        printf("%s%s: %d values, %d weights, %d keys and values\n", opt.march, opt.plan.no_fuse ? ", not fused" : "",
            values, weights, states);
        arena_free(a);
    }
    return errors != 0;
}
