// Rotation profiles: rope(pairs:, dims:, base:, ..) with the file's rope.scaling group, as the numbers that angles.c
// computes with; and the check that the context asked for is one the model was made for.
#include "eval.h"

#include <math.h>
#include <string.h>

static const Expr *argument(const Expr *call, const char *label) {
    for (int i = 1; i < call->n; i++)
        if (str_is(call->label[i], label)) return call->arg[i];
    return NULL;
}

// A number of the group, or its neutral value.
static double group_num(Build *b, Scope *s, Str group, const char *name, double neutral, Loc loc) {
    b->in_or++; // it may be absent
    Value v = scalar(b, s, key_value(b, str_fmt(b->a, "%.*s.%s", FMT(group), name), loc));
    b->in_or--;
    if (v.kind == V_ABSENT) return neutral;
    double x = need_num(b, s, v, loc, "a number");
    if (!isfinite(x)) fail_at(loc, "key '%s' is not a finite number", str_show(b->a, v.key));
    return x;
}

static double mscale(double factor, double k) {
    return factor <= 1 ? 1 : 1 + 0.1 * k * log(factor);
}

// YaRN: what multiplies cos and sin before angles.c applies its own 1 + 0.1 ln(factor).
static double yarn_magnitude(double factor, double log_mul, double own) {
    double m = log_mul != 0 ? mscale(factor, own) / mscale(factor, log_mul) : mscale(factor, 1);
    return m / (1 + 0.1 * log(factor));
}

// log_mul:, mscale: what the description says of YaRN's magnitude, instead of the key yarn_log_multiplier, and of 1.
static void scaling(Build *b, Scope *s, RopeValue *profile, const Expr *call, Str group, Loc loc) {
    Rope *r = &profile->rope;
    bool factors = profile->factors != NULL;
    b->in_or++;
    Value type = key_value(b, str_fmt(b->a, "%.*s.type", FMT(group)), loc);
    Value finetuned =
        key_value(b, str_fmt(b->a, "%.*s.finetuned", FMT(group)), loc); // how the file came to be, not what it computes
    Value legacy = key_value(b, S("rope.scale_linear"), loc);
    b->in_or--;
    (void) finetuned;
    double factor = group_num(b, s, group, "factor", 0, loc);
    if (factor == 0 && legacy.kind != V_ABSENT) factor = need_num(b, s, legacy, loc, "a number");
    double orig = group_num(b, s, group, "original_context_length", (double) b->trained, loc);
    double attn_factor = group_num(b, s, group, "attn_factor", 1, loc),
           log_mul = group_num(b, s, group, "yarn_log_multiplier", 0, loc), own = 1;
    if (argument(call, "log_mul")) log_mul = eval_num(b, s, argument(call, "log_mul"), "a factor");
    if (argument(call, "mscale")) own = eval_num(b, s, argument(call, "mscale"), "a factor");
    double ext = group_num(b, s, group, "yarn_ext_factor", -1, loc),
           yarn_attn = group_num(b, s, group, "yarn_attn_factor", 1, loc);
    double fast = group_num(b, s, group, "yarn_beta_fast", 32, loc),
           slow = group_num(b, s, group, "yarn_beta_slow", 1, loc);
    r->attn = attn_factor;
    Str name = type.kind == V_TEXT ? type.text : factor != 0 ? S("linear") : S("none");
    if (type.kind != V_TEXT && type.kind != V_ABSENT)
        fail_at(loc, "key '%s' is %s; a text was expected", str_show(b->a, type.key), value_show(b, type));
    if (yarn_attn != 1) not_yet(loc, "rope.scaling.yarn_attn_factor other than 1 is");
    if (str_is(name, "none") || (str_is(name, "longrope") && factors)) return; // longrope: the factors say it all
    if (!str_is(name, "linear") && !str_is(name, "yarn"))
        fail_at(loc, "key '%s' is \"%s\"; known are none, linear, yarn and, with factors, longrope",
            str_show(b->a, type.key), str_show(b->a, name));
    if (factor == 0) factor = 1;
    if (!(factor > 0)) fail_at(loc, "the scaling factor of '%.*s' is %.9g; it must be positive", FMT(group), factor);
    r->scale = 1 / factor;
    profile->covers = factor * orig;
    if (!str_is(name, "yarn")) return;
    r->yarn = true;
    r->ext = ext < 0 ? 1 : ext;
    if (r->ext != 0) r->attn *= yarn_magnitude(factor, log_mul, own);
    if (!(orig >= 1 && orig < 1e9))
        fail_at(loc, "yarn needs a '%.*s.original_context_length' of 1 to 10^9", FMT(group));
    if (!(fast > 0 && slow > 0)) fail_at(loc, "yarn_beta_fast and yarn_beta_slow must be positive");
    r->orig = (int64_t) orig, r->beta_fast = fast, r->beta_slow = slow;
}

static bool same_rope(const RopeValue *x, const RopeValue *y) {
    const Rope *p = &x->rope, *q = &y->rope;
    bool factors = x->factors == y->factors ||
        (x->factors && y->factors && x->factors->source[0].tensor == y->factors->source[0].tensor);
    return factors && p->halves == q->halves && p->dims == q->dims && p->base == q->base && p->scale == q->scale &&
        p->yarn == q->yarn && p->ext == q->ext && p->attn == q->attn && p->beta_fast == q->beta_fast &&
        p->beta_slow == q->beta_slow && p->orig == q->orig && p->interleaved == q->interleaved &&
        memcmp(p->section, q->section, sizeof p->section) == 0;
}

// A tensor, or the first factors of a longer one: T[0..n].
static Tensor *factors_of(Build *b, Scope *s, const Expr *e, int64_t dims) {
    if (!e) return NULL;
    const Expr *slice = e->kind == E_SLICE ? e : NULL;
    Value v = eval(b, s, slice ? slice->arg[0] : e);
    if (v.kind == V_NONE) return NULL;
    if (v.kind != V_TENSOR) fail_at(LOC(e), "factors: takes a tensor; this is %s", kind_show(v));
    if (!v.tensor->present) return NULL;
    int64_t there = v.tensor->decl->in ? 0 : layout_size(v.tensor->out, LOC(e)), n = there;
    if (slice) {
        n = eval_size(b, s, slice->arg[2], "the end of the slice");
        if (eval_size(b, s, slice->arg[1], "its start") || n > there)
            fail_at(LOC(e), "factors: takes the first of a tensor's, T[0..n]; this one has %lld", (long long) there);
    }
    if (n != dims / 2) fail_at(LOC(e), "one factor for each of the %lld pairs is needed", (long long) dims / 2);
    v.tensor->used = true;
    return v.tensor;
}

static void sections(Build *b, Scope *s, const Expr *call, RopeValue *r) {
    const Expr *e = argument(call, "sections"), *order = argument(call, "order");
    if (!e) return;
    Value v = eval(b, s, e), how = order ? eval(b, s, order) : (Value){.kind = V_NONE};
    if (b->synth && v.kind == V_NUM) v = synth_sections(b, v, r->rope.dims);
    if (v.kind == V_ABSENT) no_value(b, s, v);
    if (v.kind != V_ARRAY || v.array->n < 3 || v.array->n > 4)
        fail_at(LOC(e), "sections: takes a key with 3 or 4 numbers");
    r->rope.interleaved = is_text(how, "interleaved");
    if (!r->rope.interleaved && !is_text(how, "blocks"))
        fail_at(LOC(e), "sections need order: blocks, or order: interleaved");
    int64_t *section = r->rope.section;
    double x = 0;
    for (uint64_t i = 0; i < v.array->n; i++) {
        if (!gguf_real(v.array, i, &x) || x < 0 || x > 65536 || x != floor(x))
            fail_at(LOC(e), "key '%s' is no list of pairs for each section", str_show(b->a, v.key));
        section[i] = (int64_t) x;
    }
    if (section[0] + section[1] + section[2] + section[3] < 1)
        fail_at(LOC(e), "key '%s': no section has a pair", str_show(b->a, v.key));
}

// What it does, and why that base if no key gives it.
static Str rope_note(Build *b, const Rope *r, Str why) {
    Out o = out_new(b->a);
    out(&o, "pairs %s, dims %lld, base %.9g", r->halves ? "halves" : "adjacent", (long long) r->dims, r->base);
    if (why.n) out(&o, " (%.*s)", FMT(why));
    if (r->scale != 1) out(&o, ", %s, factor %.7g", r->yarn ? "yarn" : "linear", 1 / r->scale);
    return out_text(&o);
}

Value rope_value(Build *b, Scope *s, const Expr *call) {
    static const char *const known[] = {
        "pairs", "dims", "base", "scaling", "factors", "log_mul", "mscale", "sections", "order"};
    Loc loc = LOC(call);
    for (int i = 1; i < call->n; i++) {
        bool found = false;
        for (int j = 0; j < COUNT(known); j++) found |= str_is(call->label[i], known[j]);
        if (!call->label[i].n)
            fail_at(LOC(call->arg[i]), "every argument of rope is named: pairs:, dims:, base:, scaling:, factors:");
        if (!found) not_yet(LOC(call->arg[i]), str_z(b->a, str_fmt(b->a, "rope's '%.*s:' is", FMT(call->label[i]))));
    }
    const Expr *pairs = argument(call, "pairs"), *dims = argument(call, "dims"), *base = argument(call, "base");
    const Expr *group = argument(call, "scaling"), *factors = argument(call, "factors");
    if (!pairs || !dims || !base)
        fail_at(loc, "rope has no default for %s; state it",
            !pairs      ? "pairs: (halves or adjacent)"
                : !dims ? "dims:"
                        : "base:");
    RopeValue *r = NEW(b->a, RopeValue);
    r->index = -1;
    Value p = eval(b, s, pairs);
    if (!is_text(p, "halves") && !is_text(p, "adjacent"))
        fail_at(LOC(pairs), "pairs are 'halves' or 'adjacent'");
    r->rope = (Rope){.halves = is_text(p, "halves"), .scale = 1, .attn = 1};
    r->rope.dims = eval_size(b, s, dims, "dims");
    b->reason = S("");
    r->rope.base = eval_num(b, s, base, "the base");
    Str why = base->kind == E_OR ? b->reason : S("");
    if (r->rope.dims < 2 || r->rope.dims % 2)
        fail_at(LOC(dims), "dims is %lld; pairs need an even number of at least 2", (long long) r->rope.dims);
    if (!(r->rope.base > 1) || !isfinite(r->rope.base))
        fail_at(LOC(base), "the base is %.9g; it must be above 1", r->rope.base);
    r->factors = factors_of(b, s, factors, r->rope.dims);
    sections(b, s, call, r);
    if (group && group->kind != E_NAME) fail_at(LOC(group), "scaling: takes a group of keys, rope.scaling");
    if (group) scaling(b, s, r, call, group->name, LOC(group));
    r->note = rope_note(b, &r->rope, why);
    for (int i = 0; i < b->n_rope; i++)
        if (same_rope(b->rope[i], r)) return (Value){.kind = V_ROPE, .rope = b->rope[i]};
    *PUSH(b->a, b->rope, b->n_rope, b->cap_rope) = r;
    return (Value){.kind = V_ROPE, .rope = r};
}

Value rope_part(const RopeValue *r, Str part, Loc loc) {
    if (str_is(part, "factor")) return NUM(1 / r->rope.scale);
    if (str_is(part, "gain"))
        return NUM(r->rope.attn * (r->rope.yarn && r->rope.ext != 0 ? 1 + 0.1 * log(1 / r->rope.scale) : 1));
    fail_at(loc, "a rotation has the parts 'factor' and 'gain', not '%.*s'", FMT(part));
}

// Angles are computed once a row, in the first stage, and read by the layers: of its position, or so many before it.
int rope_angles(Build *b, RopeValue *r, int64_t back, Loc loc) {
    Graph *g = b->g;
    int stage = b->stage, known = 0;
    while (known < r->n_angles && r->angles[known].back != back) known++;
    if (known == COUNT(r->angles))
        not_yet(loc, "a rotation by more than four distances back is");
    if (known == r->n_angles) {
        b->stage = 0;
        if (r->index < 0) {
            *PUSH(b->a, g->rope, g->n_rope, g->cap_rope) = r->rope;
            r->index = g->n_rope - 1;
        }
        int in[2] = {node_of(b, make(b, NODE(.op = OP_position, .name = S("position"), .loc = loc)), loc), 0};
        if (r->factors) in[1] = node_of(b, (Value){.kind = V_TENSOR, .tensor = r->factors}, loc);
        Value v = make(b,
            NODE(.op = OP_angles, .n_in = r->factors ? 2 : 1, .in = {in[0], in[1]}, .num = {r->index, back},
                .name = r->rope.name, .loc = loc));
        r->angles[r->n_angles].back = back;
        r->angles[r->n_angles++].node = v.at.node;
        b->stage = stage;
    }
    int node = r->angles[known].node;
    return stage == 0 ? node : import_node(b, 0, node, loc);
}

// Positions past what the model was trained for need a scaling that stretches it.
void context_check(Build *b) {
    int64_t covered = b->trained;
    for (int i = 0; i < b->n_rope; i++) {
        double covers = fmin(b->rope[i]->covers, 1e9);
        if (covers > (double) covered) covered = (int64_t) covers;
    }
    if (b->trained && b->context > covered)
        fail("%s: a context of %lld was asked for, but the model was trained for %lld and no rope scaling in the file "
             "covers more than %lld; ask for --ctx %lld or less",
            b->gguf->path, (long long) b->context, (long long) b->trained, (long long) covered, (long long) covered);
}
