// From a description and a file to a graph. The model block runs once: what comes before `run` is the first stage,
// what comes after it the last. The layer's body is evaluated for every l by itself; layers whose graphs are equal
// (operators, shapes, types of weights, states) become one stage with one entry for each layer in its weights and
// parameters. So kinds of layers are found, never declared.
#include "build.h"
#include "eval.h"

#include <string.h>

enum { MAX_LAYERS = 4096, DEFAULT_CONTEXT = 4096 };

// ---- values between stages ----

static Str global_name(Build *b, Str wanted) {
    Str name = wanted.n ? wanted : S("value");
    for (int tries = 2;; tries++) {
        bool taken = false;
        for (int i = 0; i < b->g->n_global; i++) taken |= str_eq(b->g->global[i].name, name);
        if (!taken) return name;
        name = str_fmt(b->a, "%.*s_%d", FMT(wanted.n ? wanted : S("value")), tries);
    }
}

static int global_of(Build *b, Str name, const Node *n) {
    return graph_global(b->g, global_name(b, name), n->shape, n->type, n->rate);
}

static Value get(Build *b, int global, Loc loc) {
    return make(b, NODE(.op = OP_get, .num = {global}, .name = b->g->global[global].name, .loc = loc));
}

static void set(Build *b, int stage, int node, int global, Loc loc) {
    Graph *g = b->g;
    Shape have = g->stage[stage].node[node].shape, want = g->global[global].shape;
    Str name = g->global[global].name;
    if (have.n != want.n || memcmp(have.d, want.d, sizeof have.d[0] * (size_t) have.n) != 0)
        fail_at(loc, "'%.*s' comes in as %s and leaves as %s; a carried value keeps its shape", FMT(name),
            shape_show(b->a, want), shape_show(b->a, have));
    node_new(g, stage, NODE(.op = OP_set, .n_in = 1, .in = {node}, .num = {global}, .name = name, .loc = loc));
}

int import_node(Build *b, int stage, int node, Loc loc) {
    if (b->g->stage[stage].layered) fail_at(loc, "this value belongs to a layer and cannot be read outside it");
    const Node *n = &b->g->stage[stage].node[node];
    if (n->op == OP_token || n->op == OP_position || n->op == OP_const) // cheaper made again
        return make(b, NODE(.op = n->op, .real = {n->real[0]}, .name = n->name, .loc = loc)).at.node;
    for (int i = 0; i < b->n_exported; i++)
        if (b->exported[i].stage == stage && b->exported[i].node == node)
            return get(b, b->exported[i].global, loc).at.node;
    if (b->n_exported == COUNT(b->exported))
        fail_at(loc, "the layers read more than %d values of the model", COUNT(b->exported));
    int global = global_of(b, n->name, n);
    b->exported[b->n_exported].stage = stage;
    b->exported[b->n_exported].node = node;
    b->exported[b->n_exported++].global = global;
    return get(b, global, loc).at.node;
}

// A stage reads its globals first.
static void gets_first(Build *b, Stage *st) {
    Node *sorted = NEWN(b->a, Node, st->n_node);
    int *place = NEWN(b->a, int, st->n_node), n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < st->n_node; i++)
            if ((st->node[i].op == OP_get) == (pass == 0)) {
                place[i] = n;
                sorted[n++] = st->node[i];
            }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < sorted[i].n_in; j++) sorted[i].in[j] = place[sorted[i].in[j]];
    memcpy(st->node, sorted, sizeof *sorted * (size_t) n);
}

// ---- kinds of layers ----

static bool same_node(const Node *x, const Node *y) {
    bool same = x->op == y->op && x->type == y->type && x->rate == y->rate && x->n_in == y->n_in &&
        x->weight == y->weight && x->state == y->state;
    same = same && x->shape.n == y->shape.n &&
        memcmp(x->shape.d, y->shape.d, sizeof x->shape.d[0] * (size_t) x->shape.n) == 0;
    same = same && memcmp(x->in, y->in, sizeof x->in[0] * (size_t) x->n_in) == 0;
    if (!same || x->op == OP_param || x->op == OP_at) return same;
    return memcmp(x->real, y->real, sizeof x->real) == 0 && memcmp(x->num, y->num, sizeof x->num) == 0;
}

static bool same_weight(const Weight *x, const Weight *y) {
    return str_eq(x->name, y->name) && x->in == y->in && x->out == y->out && x->type == y->type &&
        x->product == y->product && x->exact == y->exact && x->stack == y->stack && x->apart == y->apart &&
        x->shape.n == y->shape.n && memcmp(x->shape.d, y->shape.d, sizeof x->shape.d[0] * (size_t) x->shape.n) == 0;
}

static bool same_state(const State *x, const State *y) {
    return str_eq(x->name, y->name) && x->kind == y->kind && !x->source == !y->source && x->sees == y->sees &&
        x->n == y->n && x->every == y->every && memcmp(&x->k, &y->k, sizeof x->k) == 0 &&
        memcmp(&x->v, &y->v, sizeof x->v) == 0;
}

static bool same_kind(const Stage *x, const Stage *y) {
    bool same = x->n_node == y->n_node && x->n_weight == y->n_weight && x->n_state == y->n_state;
    for (int i = 0; i < x->n_node && same; i++) same = same_node(&x->node[i], &y->node[i]);
    for (int i = 0; i < x->n_weight && same; i++) same = same_weight(&x->weight[i], &y->weight[i]);
    for (int i = 0; i < x->n_state && same; i++) same = same_state(&x->state[i], &y->state[i]);
    return same;
}

// The rotation by which a stage can be told from others, or "".
static Str rotation_of(const Stage *st) {
    Str found = S("");
    for (int i = 0; i < st->n_node; i++)
        if (st->node[i].op == OP_rope) {
            Str name = st->node[st->node[i].in[1]].name;
            if (found.n && !str_eq(found, name)) return S("");
            found = name;
        }
    return found;
}

static Str kind_name(Build *b, Str layer, int first, int stage) {
    int n = stage - first + 1; // the n-th kind
    if (n == 1) return layer;
    Str rotation = rotation_of(&b->g->stage[stage]);
    bool unique = rotation.n > 0;
    for (int i = first; i < stage; i++) unique &= !str_eq(rotation, rotation_of(&b->g->stage[i]));
    return unique ? str_fmt(b->a, "%.*s_%.*s", FMT(layer), FMT(rotation)) : str_fmt(b->a, "%.*s_%d", FMT(layer), n);
}

// Room for what differs by layer, in all kinds of layers: from `had` layers to as many as there are now.
static int *more_ints(Build *b, const int *old, int64_t had, int64_t each) {
    int *now = NEWN(b->a, int, b->g->n_layer *each);
    for (int64_t i = 0; i < b->g->n_layer * each; i++) now[i] = i < had * each ? old[i] : -1;
    return now;
}

static void more_layers(Build *b, int64_t count) {
    Graph *g = b->g;
    int64_t had = g->n_layer;
    g->n_layer += count;
    for (int i = 0; i < g->n_stage; i++) {
        Stage *st = &g->stage[i];
        for (int j = 0; j < st->n_weight && st->layered; j++)
            st->weight[j].tensor = more_ints(b, st->weight[j].tensor, had, weight_tensors(&st->weight[j]));
        for (int j = 0; j < st->n_state; j++)
            if (st->state[j].source) st->state[j].source = more_ints(b, st->state[j].source, had, 1);
    }
    for (int i = 0; i < g->n_param; i++) {
        double *value = NEWN(b->a, double, g->n_layer);
        memcpy(value, g->param[i].value, sizeof *value * (size_t) had);
        g->param[i].value = value;
    }
}

// A new kind, made for layer l: room for all layers.
static void widen(Build *b, Stage *st, int first_param, int64_t l) {
    for (int i = 0; i < st->n_weight; i++) {
        int64_t each = weight_tensors(&st->weight[i]);
        int *tensor = more_ints(b, NULL, 0, each);
        memcpy(tensor + l * each, st->weight[i].tensor, sizeof *tensor * (size_t) each);
        st->weight[i].tensor = tensor;
    }
    for (int i = 0; i < st->n_state; i++)
        if (st->state[i].source) {
            int source = st->state[i].source[0];
            st->state[i].source = more_ints(b, NULL, 0, 1);
            st->state[i].source[l] = source;
        }
    for (int i = first_param; i < b->g->n_param; i++) {
        double *value = NEWN(b->a, double, b->g->n_layer);
        value[l] = b->g->param[i].value[0];
        b->g->param[i].value = value;
    }
}

// The stage that was just made for layer l becomes a kind of its own, or one more layer of the kind it equals.
static int settle(Build *b, Str layer, int first_stage, int first_param, int64_t l) {
    Graph *g = b->g;
    int new_stage = g->n_stage - 1;
    Stage *st = &g->stage[new_stage];
    gets_first(b, st);
    for (int k = first_stage; k < new_stage; k++) {
        Stage *kind = &g->stage[k];
        if (!kind->layered || !same_kind(kind, st)) continue;
        for (int i = 0; i < st->n_weight; i++) {
            int64_t each = weight_tensors(&st->weight[i]);
            memcpy(kind->weight[i].tensor + l * each, st->weight[i].tensor, sizeof(int) * (size_t) each);
        }
        for (int i = 0; i < st->n_state; i++)
            if (st->state[i].source) kind->state[i].source[l] = st->state[i].source[0];
        for (int i = 0; i < st->n_node; i++)
            if (st->node[i].op == OP_param || st->node[i].op == OP_at)
                g->param[kind->node[i].num[0]].value[l] = g->param[st->node[i].num[0]].value[0];
        g->n_stage = new_stage;
        g->n_param = first_param;
        return k;
    }
    st->name = kind_name(b, layer, first_stage, new_stage);
    widen(b, st, first_param, l);
    return new_stage;
}

// ---- layers ----

// What a carried value is when the layer has been evaluated: kept, given its first value, or a new one.
static void carry_on(Build *b, Value v, Str name, int *global, Loc loc) {
    if (v.kind == V_NONE && *global < 0) return;
    int node = node_of(b, v, loc);
    const Node *n = &b->g->stage[b->stage].node[node];
    int64_t unit = pick_unit(b, n);
    if (*global < 0) {
        *global = global_of(b, name, n);
        if (unit > 1) {
            if (b->n_picked == COUNT(b->picked)) fail_at(loc, "more than %d picks are carried", COUNT(b->picked));
            b->picked[b->n_picked].global = *global, b->picked[b->n_picked++].unit = unit;
        }
    }
    const Node *carried = &(const Node){.op = OP_get, .num = {*global}};
    if (n->type == I32 && unit != pick_unit(b, carried))
        fail_at(loc, "what is picked here stands for %lld positions, what earlier layers picked for %lld",
            (long long) unit, (long long) pick_unit(b, carried));
    bool unchanged = n->op == OP_get && n->num[0] == *global;
    if (!unchanged) set(b, b->stage, node, *global, loc);
}

// Layer l, which is executed as the one of number `at`.
static int one_layer(Build *b, Scope *model, const Stmt *d, int *global, int first_stage, int64_t l, int64_t at) {
    Graph *g = b->g;
    int first_param = g->n_param, stage = graph_stage(g, d->name[0], true);
    b->stage = stage;
    Scope *s = scope_new(b, model);
    s->layer = l;
    s->prefix = str_fmt(b->a, "%.*s.%lld.", FMT(d->prefix), (long long) l);
    Value index = NUM((double) l), unused;
    index.varies = true;
    scope_bind(b, s, S("l"), index);
    for (int i = 1; i < d->n_name; i++)
        scope_bind(b, s, d->name[i],
            global[i - 1] < 0 ? (Value){.kind = V_NONE} : get(b, global[i - 1], loc_at(d->src, d->at[i])));
    execute(b, s, &d->body, &unused);
    Scope *owner;
    for (int i = 1; i < d->n_name; i++)
        carry_on(b, scope_find(s, d->name[i], &owner)->value, d->name[i], &global[i - 1], loc_at(d->src, d->at[i]));
    for (int i = 0; i < g->stage[stage].n_state; i++) // of the same round
        if (g->stage[stage].state[i].source) g->stage[stage].state[i].source[0] += (int) (at - l);
    return settle(b, d->name[0], first_stage, first_param, at);
}

static void add_run(Build *b, int stage, int64_t first) {
    Graph *g = b->g;
    Run *last = g->n_run ? &g->run[g->n_run - 1] : NULL;
    if (last && last->stage == stage && g->stage[stage].layered) last->count++;
    else *PUSH(b->a, g->run, g->n_run, g->cap_run) = (Run){stage, (int) first, 1};
}

// A layer that reads the state of another must declare what that one does.
static void shared_states(Build *b, Loc loc) {
    const Graph *g = b->g;
    for (int r = 0; r < g->n_run; r++)
        for (int i = 0; i < g->stage[g->run[r].stage].n_state; i++) {
            const State *st = &g->stage[g->run[r].stage].state[i], *own = NULL;
            for (int l = g->run[r].first; st->source && l < g->run[r].first + g->run[r].count; l++) {
                for (int q = 0; q < g->n_run; q++) {
                    const Stage *at = &g->stage[g->run[q].stage];
                    bool here = at->layered && st->source[l] >= g->run[q].first &&
                        st->source[l] < g->run[q].first + g->run[q].count;
                    for (int j = 0; j < at->n_state && here; j++)
                        if (str_eq(at->state[j].name, st->name) && !at->state[j].source) own = &at->state[j];
                }
                State same = *st;
                same.source = NULL;
                if (!own || !same_state(own, &same))
                    fail_at(loc, "layer %d reads the state '%.*s' of layer %d, which %s", l, FMT(st->name),
                        st->source[l],
                        own ? "declares it otherwise (shapes and sees: must agree)" : "has none of its own");
            }
        }
}

// The globals of what a layer carries: those it had when it ran before, so that its kinds stay the same.
static int *carried_globals(Build *b, const Stmt *d, int *first_stage) {
    for (int i = 0; i < b->n_ran; i++)
        if (b->ran[i].layer == d) {
            *first_stage = b->ran[i].first_stage;
            return b->ran[i].global;
        }
    if (b->n_ran == COUNT(b->ran)) fail_at(loc_at(d->src, d->pos), "more than %d layers are described", COUNT(b->ran));
    int *global = NEWN(b->a, int, d->n_name);
    for (int i = 0; i < d->n_name; i++) global[i] = -1;
    b->ran[b->n_ran].layer = d;
    b->ran[b->n_ran].global = global;
    b->ran[b->n_ran++].first_stage = *first_stage = b->g->n_stage;
    return global;
}

// The first value of a carried one goes to its global, unless it is there already.
static void carry_in(Build *b, Value v, Str name, int *global, Loc loc) {
    Graph *g = b->g;
    int node = node_of(b, v, loc);
    const Node *n = &g->stage[b->stage].node[node];
    const Global *old = *global >= 0 ? &g->global[*global] : NULL;
    if (old && n->op == OP_get && n->num[0] == *global) return;
    bool same = old && old->shape.n == n->shape.n &&
        memcmp(old->shape.d, n->shape.d, sizeof n->shape.d[0] * (size_t) n->shape.n) == 0;
    if (!same) *global = global_of(b, name, n);
    set(b, b->stage, node, *global, loc);
}

void run_layers(Build *b, Scope *model, const Stmt *st) {
    Scope *owner;
    Loc loc = loc_at(st->src, st->pos);
    Binding *layer = scope_find(model, st->name[0], &owner);
    if (!layer || !layer->decl || layer->decl->kind != S_LAYER)
        fail_at(loc, "there is no layer '%.*s'", FMT(st->name[0]));
    const Stmt *d = layer->decl;
    if (st->expr->n != d->n_name - 1)
        fail_at(loc, "'%.*s' carries %d value%s; %d are given", FMT(d->name[0]), d->n_name - 1,
            d->n_name == 2 ? "" : "s", st->expr->n);
    int first_stage, *global = carried_globals(b, d, &first_stage);
    if (b->stage > 0) b->g->stage[b->stage].name = str_fmt(b->a, "between_%d", b->stage);
    Value *v = NEWN(b->a, Value, st->expr->n);
    for (int i = 0; i < st->expr->n; i++) v[i] = eval(b, model, st->expr->arg[i]);
    for (int i = 0; i < st->expr->n; i++)
        if (v[i].kind != V_NONE) carry_in(b, v[i], d->name[i + 1], &global[i], LOC(st->expr->arg[i]));
        else global[i] = -1;
    int64_t from = d->from ? eval_size(b, model, d->from, "the first layer") : 0,
            to = eval_size(b, model, d->to, "the end of the layers"), at = b->g->n_layer;
    if (from >= to) fail_at(loc, "layers %lld .. %lld are none", (long long) from, (long long) to);
    if (at + to - from > MAX_LAYERS) fail_at(loc, "more than %d layers are run", MAX_LAYERS);
    more_layers(b, to - from);
    for (int64_t l = from; l < to; l++, at++) add_run(b, one_layer(b, model, d, global, first_stage, l, at), at);
    shared_states(b, loc);
    b->stage = graph_stage(b->g, S("head"), false);
    add_run(b, b->stage, 0);
    for (int i = 0; i < st->expr->n; i++) // what was carried leaves with its last value
        if (st->expr->arg[i]->kind == E_NAME && v[i].kind != V_NONE)
            scope_bind(b, model, st->expr->arg[i]->name, get(b, global[i], loc));
}

// ---- the whole ----

static void count_layers(Build *b) {
    for (int i = 0; i < b->spec->body.n; i++) {
        const Stmt *d = b->spec->body.stmt[i];
        if (d->kind != S_LAYER) continue;
        int64_t n = eval_size(b, b->file, d->to, "the number of layers");
        if (n < 1) fail_at(LOC(d->to), "the model has no layers");
        int64_t most = b->synth ? MAX_LAYERS : b->gguf->n_tensor < MAX_LAYERS ? b->gguf->n_tensor : MAX_LAYERS;
        if (n > most)
            fail_at(LOC(d->to), "%lld layers, but the file has only %d tensors (and at most %d layers are built)",
                (long long) n, b->gguf->n_tensor, MAX_LAYERS);
        if (n > b->n_layer) b->n_layer = n;
    }
    if (!b->n_layer) fail("%s: has no layer", b->spec->src->file);
}

static void set_context(Build *b) {
    Value v = scalar(b, b->file, key_value(b, S("context_length"), (Loc){b->spec->src->file, b->spec->src->text, 0}));
    double n = v.kind == V_NUM ? v.num : 0;
    if (v.kind != V_ABSENT && !(n >= 1 && n < 1e9 && n == (double) (int64_t) n))
        fail("%s: key '%s' is %s; a length of 1 to 10^9 was expected", b->gguf->path, str_show(b->a, v.key),
            value_show(b, v));
    if (v.kind == V_ABSENT && !b->opt->ctx)
        fail("%s: the file has no key '%s'; ask for a context with --ctx", b->gguf->path, str_show(b->a, v.key));
    b->trained = (int64_t) n;
    b->context = b->opt->ctx ? b->opt->ctx : b->trained < DEFAULT_CONTEXT ? b->trained : DEFAULT_CONTEXT;
}

const char *const model_results[N_RESULT] = {"logits", "scores", "embedding", "rows"};

static void check_logits(Build *b, const Node *n, Loc loc) {
    bool found;
    builtin_value(b, S("vocab"), loc, &found); // known from here on
    if (shape_size(n->shape) != b->vocab)
        fail_at(n->loc, "logits are %s; one for each of %lld tokens was expected", shape_show(b->a, n->shape),
            (long long) b->vocab);
}

static void set_result(Build *b, Scope *model, const Stmt *d) {
    Scope *owner;
    Graph *g = b->g;
    Loc loc = loc_at(d->src, d->pos);
    if (g->n_run < 2) fail_at(loc, "the model runs no layer; 'run NAME(x)' does");
    for (int i = 0; i < N_RESULT; i++) {
        Binding *result = scope_find(model, str(model_results[i]), &owner);
        if (result && result->decl && result->decl->kind == S_OUTPUT)
            fail_at(loc, "output '%s' is declared, and nothing gives it a value", model_results[i]);
        if (!result || result->decl || owner != model || (i > 0 && !result->output)) continue;
        int node = node_of(b, result->value, loc);
        const Node *n = &g->stage[b->stage].node[node];
        if (i == 0) check_logits(b, n, loc);
        int global = graph_global(g, str(model_results[i]), n->shape, n->type, n->rate);
        if (g->logits < 0) g->logits = global;
        else *PUSH(b->a, g->output, g->n_output, g->cap_output) = global;
        set(b, b->stage, node, global, loc);
    }
    if (g->logits < 0) fail_at(loc, "the model gives no 'logits' (nor 'scores', 'embedding' or 'rows')");
    for (int i = 0; i < b->n_exported; i++)
        set(b, b->exported[i].stage, b->exported[i].node, b->exported[i].global, loc);
    for (int i = 1; i < g->n_stage; i++)
        if (!g->stage[i].layered) gets_first(b, &g->stage[i]);
}

void evaluate(Build *b) {
    const Spec *spec = b->spec;
    const Stmt *model = NULL;
    b->stage = -1;
    fail_no_callers(); // synth comes here again from anywhere
    b->library = scope_new(b, NULL);
    for (int i = 0; i < spec->n_lib; i++) scope_declare(b, b->library, &spec->lib[i]->body);
    b->file = scope_new(b, b->library);
    scope_declare(b, b->file, &spec->body);
    set_context(b);
    count_layers(b);
    for (int i = 0; i < spec->body.n; i++) {
        if (spec->body.stmt[i]->kind == S_MODEL) {
            if (model) fail_at(loc_at(spec->src, spec->body.stmt[i]->pos), "a second model block");
            model = spec->body.stmt[i];
        } else reach(b, b->file, spec->body.stmt[i]);
    }
    if (!model) fail("%s: has no model block", spec->src->file);
    b->stage = graph_stage(b->g, S("embed"), false);
    add_run(b, 0, 0);
    Scope *s = scope_new(b, b->file);
    Value unused;
    execute(b, s, &model->body, &unused);
    set_result(b, s, model);
    for (int i = 0; i < spec->n_lib; i++) // last, since they are about what the description itself does not read
        for (int j = 0; j < spec->lib[i]->body.n; j++)
            if (spec->lib[i]->body.stmt[j]->kind != S_DEF) reach(b, b->library, spec->lib[i]->body.stmt[j]);
    used_check(b);
    context_check(b);
}

static void name_graph(Build *b) {
    Graph *g = b->g;
    const GgufKey *name = gguf_key(b->gguf, S("general.name"));
    g->gguf = b->gguf;
    g->arch = b->arch;
    g->name = name && name->v.kind == GGUF_STR ? name->v.s : S("");
    g->n_vocab = b->vocab;
    g->n_ctx = b->context;
    g->n_embd = shape_size(g->global[0].shape);
    for (int i = 0; i < g->n_global; i++)
        if (str_is(g->global[i].name, "x")) g->n_embd = shape_size(g->global[i].shape);
}

static Str file_arch(const Gguf *gguf) {
    const GgufKey *k = gguf_key(gguf, S("general.architecture"));
    if (!k || k->v.kind != GGUF_STR || !k->v.s.n)
        fail("%s: has no text under 'general.architecture'; this is no model file", gguf->path);
    if (k->v.s.n > 64) fail("%s: 'general.architecture' is %zu bytes long", gguf->path, k->v.s.n);
    return k->v.s;
}

Graph *graph_build(Arena *a, Gguf *gguf, const BuildOptions *opt) {
    Build b = {.a = a, .gguf = gguf, .opt = opt, .g = graph_new(a), .arch = file_arch(gguf)};
    b.spec = spec_find(a, b.arch, opt->arch_file, opt->arch_dir);
    b.key_used = NEWN(a, uint8_t, gguf->n_key);
    b.tensor_used = NEWN(a, uint8_t, gguf->n_tensor);
    evaluate(&b);
    spec_check_read(a, b.spec);
    keys_check(&b);
    tensors_check(&b);
    name_graph(&b);
    graph_check(b.g, false);
    return b.g;
}
