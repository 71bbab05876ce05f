// Names for values that the description left unnamed, so that generated code and reports can speak of them. In: a
// graph after the passes. Out: node.name for every value that may be stored. Only names change.
#include "passes.h"

// Names of the slices that cut a merged product, one behind the other: "qkv", or "gate_up" when they are words.
static Str joined_slices(const Graph *g, const Stage *s, int product) {
    Out o = out_new(g->arena);
    bool letters = true;
    for (int i = product + 1; i < s->n_node; i++)
        if (s->node[i].op == OP_slice && s->node[i].in[0] == product) letters &= s->node[i].name.n == 1;
    for (int i = product + 1; i < s->n_node; i++) {
        const Node *n = &s->node[i];
        if (n->op != OP_slice || n->in[0] != product) continue;
        if (!n->name.n) return (Str){0};
        out(&o, "%s%.*s", o.n && !letters ? "_" : "", FMT(n->name));
    }
    return out_text(&o);
}

static Str given_name(const Graph *g, const Stage *s, int node) {
    const Node *n = &s->node[node];
    switch (n->op) {
    case OP_rms_norm:
    case OP_layer_norm:
    case OP_l2_norm: return S("normed");
    case OP_attention: return S("attended");
    case OP_embed: return S("embedded");
    case OP_rope: return S("turned");
    case OP_matmul: {
        Str name = joined_slices(g, s, node);
        return name.n ? name : s->weight[n->weight].name;
    }
    case OP_q8:
    case OP_take: { // of a view that has no name, what is behind it
        Str name = s->node[n->in[0]].name;
        return name.n ? name : s->node[view_base(s, n->in[0])].name;
    }
    default:
        return op_info[n->op].class == CLASS_MAP && n->kernel >= 0 && s->kernel[n->kernel].heavy >= 0 ? S("gated")
                                                                                                      : S("value");
    }
}

void name_values(Graph *g) {
    for (int i = 0; i < g->n_stage; i++) {
        Stage *s = &g->stage[i];
        for (int j = 0; j < s->n_node; j++) {
            OpClass c = op_info[s->node[j].op].class;
            if (c != CLASS_SOURCE && c != CLASS_VIEW && s->node[j].op != OP_set && !s->node[j].name.n)
                s->node[j].name = given_name(g, s, j);
        }
    }
}
