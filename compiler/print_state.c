// Prints the heavy kernels that keep or read state other than attention: shift, recur, pick, pool. In: a kernel of
// the plan. Out: an instance of its template, its fixed arguments, how many pieces it has.
#include "emit.h"
#include "print_heavy.h"

typedef struct {
    Printer q;
    Arena *a;
    const Plan *p;
    const Kernel *k;
    const Node *n;
    int node;
    Binding b[32];
    int n_b;
} StateText;

static const Node *operand(const StateText *s, int i) {
    return &s->q.stage->node[s->n->in[i]];
}
static void bind(StateText *s, const char *name, int64_t v) {
    s->b[s->n_b++] = param_int(s->a, name, v);
}
static void result_arg(StateText *s) {
    fixed_arg(&s->q, ARG_BUFFER, s->p->place[s->k->stage][s->node].buffer);
}

// ---- recur ----

// How an operand's heads lie: as they come, one for all, or (decay) one number for all keys.
static void bind_operand(StateText *s, const char *row, const char *step, int i, int64_t heads, int64_t keys) {
    Shape x = operand(s, i)->shape;
    int64_t size = shape_size(x);
    bool one = shape_last(x) == 1 && keys > 1;
    if ((one && i > 0) || (size != keys && size != heads * keys && !(one && (size == heads || size == 1))))
        fail_at(s->n->loc, "recur: operand %d is %s; it must be [%lld] or [%lld, %lld]", i + 1, shape_show(s->a, x),
            (long long) keys, (long long) heads, (long long) keys);
    bind(s, row, size);
    bind(s, step, one ? (size == 1 ? 0 : 1) : size == keys && heads > 1 ? 0 : keys);
    if (i == 0) bind(s, "DECAY_ONE", one);
}

static void print_recur(StateText *s) {
    const State *st = &s->q.stage->state[s->n->state];
    int64_t h = st->k.d[0], keys = st->k.d[1], values = st->k.d[2], work = keys * values;
    bool rates = s->n->num[1] != 0, erase = s->n->n_in - rates > 4, thin = values == 1 && !erase;
    int64_t each = work >= 4096 ? 1 : (4096 + work - 1) / work; // heads of a piece: some thousand numbers of state
    if (each > h) each = h;
    fixed_text(&s->q, "m"), fixed_arg(&s->q, ARG_STATE_K, s->p->state_of[s->k->stage][s->n->state]);
    if (rates && !thin) fail_at(s->n->loc, "recur: rates are for cells of vectors, without erase");
    if (thin) {
        for (int i = 0; i < 4; i++) fixed_operand(&s->q, s->n, i);
        int table = view_base(s->q.stage, s->n->in[s->n->n_in - 1]); // without rates it is not read
        if (rates) fixed_arg(&s->q, ARG_WEIGHT, s->p->packed[s->k->stage][s->q.stage->node[table].weight]);
        else fixed_operand(&s->q, s->n, 0);
    } else {
        for (int i = 0; i < 6; i++) // without erase they are not read
            fixed_operand(&s->q, s->n, i < s->n->n_in ? i : 0);
    }
    result_arg(s);
    bind(s, "H", h), bind(s, "K", keys), bind(s, "HEADS", each), bind(s, "BEFORE", s->n->num[0]),
        bind(s, "FIXED_BYTES", (int64_t) s->p->fixed_bytes);
    bind_operand(s, "DECAY_ROW", "DECAY_STEP", 0, h, keys);
    bind_operand(s, "KEY_ROW", "KEY_STEP", 1, h, keys);
    bind_operand(s, "READ_ROW", "READ_STEP", 3, h, keys);
    if (thin) bind(s, "RATES", rates);
    else {
        bind(s, "V", values), bind(s, "ERASE", erase);
        if (erase)
            bind_operand(s, "ERASE_ROW", "ERASE_STEP", 4, h, keys),
                bind_operand(s, "WRITE_ROW", "WRITE_STEP", 5, h, keys);
        else bind(s, "ERASE_ROW", 0), bind(s, "ERASE_STEP", 0), bind(s, "WRITE_ROW", 0), bind(s, "WRITE_STEP", 0);
    }
    s->q.text.text = template_instance(s->a, find_template(s->p, thin ? "recur_thin.c" : "recur.c"), "@", s->b, s->n_b);
    s->q.text.pieces = str_fmt(s->a, "%lld", (long long) ((h + each - 1) / each));
    s->q.text.comment = str_fmt(s->a, "recurrence: %lld matrices [%lld, %lld]%s", (long long) h, (long long) keys,
        (long long) values, erase ? ", with what it erases" : "");
}

// ---- shift, pool ----

static void print_shift(StateText *s) {
    const State *st = &s->q.stage->state[s->n->state];
    int64_t size = shape_size(st->k), wide = size < 1024 ? size : 1024;
    fixed_text(&s->q, "m"), fixed_arg(&s->q, ARG_STATE_K, s->p->state_of[s->k->stage][s->n->state]);
    fixed_operand(&s->q, s->n, 0), result_arg(s);
    bind(s, "SIZE", size), bind(s, "KEPT", st->n), bind(s, "WIDE", wide),
        bind(s, "FIXED_BYTES", (int64_t) s->p->fixed_bytes);
    s->q.text.text = template_instance(s->a, find_template(s->p, "shift.c"), "@", s->b, s->n_b);
    s->q.text.pieces = str_fmt(s->a, "%lld", (long long) ((size + wide - 1) / wide));
    s->q.text.comment = str_fmt(s->a, "the last %lld values of %.*s, and this row's", (long long) st->n, FMT(st->name));
}

static void print_blend(StateText *s) {
    const State *st = &s->q.stage->state[s->n->state];
    int64_t channels = st->k.d[1], wide = channels < 128 ? channels : 128;
    fixed_text(&s->q, "m"), fixed_arg(&s->q, ARG_STATE_K, s->p->state_of[s->k->stage][s->n->state]);
    fixed_operand(&s->q, s->n, 0), fixed_operand(&s->q, s->n, 1), result_arg(s);
    bind(s, "M", st->k.d[0]), bind(s, "N", st->n), bind(s, "C", channels), bind(s, "WIDE", wide),
        bind(s, "FIXED_BYTES", (int64_t) s->p->fixed_bytes);
    s->q.text.text = template_instance(s->a, find_template(s->p, "blend.c"), "@", s->b, s->n_b);
    s->q.text.pieces = str_fmt(s->a, "%lld", (long long) ((channels + wide - 1) / wide));
    s->q.text.comment = str_fmt(s->a, "what %lld positions are as one, of %lld blocks", (long long) st->n,
        (long long) st->k.d[0]);
}

static void print_pool(StateText *s) {
    static const char *const how[] = {"the mean of", "the first of", "the last of"};
    fixed_text(&s->q, "m"), fixed_operand(&s->q, s->n, 0), result_arg(s);
    bind(s, "SIZE", shape_size(s->n->shape)), bind(s, "HOW", s->n->num[0]);
    s->q.text.text = template_instance(s->a, find_template(s->p, "pool.c"), "@", s->b, s->n_b);
    s->q.text.pieces = S("m->outs");
    s->q.text.comment = str_fmt(s->a, "%s a sequence's rows", how[s->n->num[0]]);
}

// ---- pick ----

static void print_pick(StateText *s) {
    const State *st = &s->q.stage->state[s->n->state];
    int si = s->p->state_of[s->k->stage][s->n->state], group = s->p->state[si].group;
    bool weighted = s->n->n_in > 2;
    if (st->v.n || sees_ahead(st->sees))
        fail_at(s->n->loc, "pick reads a cache of keys alone, of earlier positions");
    int64_t block = s->n->num[1], n_ctx = s->p->graph->n_ctx / state_every(st);
    if (n_ctx < 1) n_ctx = 1;
    fixed_text(&s->q, "m"), fixed_arg(&s->q, ARG_STATE_K, si);
    fixed_operand(&s->q, s->n, 0), fixed_operand(&s->q, s->n, weighted ? 2 : 0), result_arg(s);
    fixed_text(&s->q, s->k->rate == RATE_OUT ? "m->out_pos, m->out_seq, m->outs" : "m->pos, m->seq, m->rows");
    bind(s, "H", operand(s, 0)->shape.d[0]), bind(s, "G", st->k.d[0]), bind(s, "D", st->k.d[1]),
        bind(s, "SETS", s->n->shape.d[0]), bind(s, "TOP", s->n->num[0]);
    bind(s, "BLOCK", block), bind(s, "LOCAL", s->n->num[2]), bind(s, "WEIGHTED", weighted),
        bind(s, "MOST", (n_ctx + block - 1) / block), bind(s, "EVERY", st->every > 1 ? st->every : 0),
        bind(s, "REST", s->n->num[3]);
    bind(s, "WINDOW", st->sees == SEES_WINDOW ? st->n : 0), bind(s, "CHUNK", st->sees == SEES_CHUNK ? st->n : 0);
    bind(s, "GROUP", group), bind(s, "PAGE_BYTES", (int64_t) s->p->group[group].page_bytes);
    s->b[s->n_b++] = param("KV", s->p->kv_f32 ? S("f32") : S("f16"));
    s->q.text.text = template_instance(s->a, find_template(s->p, "pick.c"), "@", s->b, s->n_b);
    s->q.text.pieces = str_fmt(s->a, "%s * %lld", row_count(s->k), (long long) s->n->shape.d[0]);
    s->q.text.comment =
        str_fmt(s->a, "the best %lld %s", (long long) s->n->num[0],
            block > 1 ? "blocks of positions" : state_every(st) > 1 ? "records" : "positions");
}

KernelText print_state(const Plan *p, const Kernel *k) {
    StateText s = {.q = printer_new(p, k), .a = p->graph->arena, .p = p, .k = k};
    s.node = s.q.stage->kernel[k->group].heavy;
    s.n = &s.q.stage->node[s.node];
    switch (s.n->op) {
    case OP_recur: print_recur(&s); break;
    case OP_shift: print_shift(&s); break;
    case OP_blend: print_blend(&s); break;
    case OP_pool: print_pool(&s); break;
    default: print_pick(&s); break;
    }
    s.q.text.text = fold_constants(s.a, s.q.text.text);
    return s.q.text;
}
