// ggcc synth: a small random model that a description accepts. The description itself is evaluated, on a file that is
// made while it is read: a key that it asks for is taken from --set or invented, a tensor that it declares comes into
// being with the declared shape. The numbers invented are such that mistakes show: windows shorter than texts, heads
// wider than width / heads, several heads to a key, a large epsilon.
#include "build.h"
#include "eval.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 512, MAX_TENSORS = 20000, MAX_ELEMENTS = 1 << 28, MAX_ZERO = 4, MAX_DEMAND = 64 };

struct Synth {
    Gguf file; // in the making; only its tables are used
    const char *const *set;
    int n_set;
    uint8_t *used;  // [n_set]
    int64_t layers; // block_count, raised when kinds of layers need it; 0: not yet asked for
    int64_t least_layers;
    Str zero[MAX_ZERO]; // keys that are 0 in some layers
    int n_zero;
    struct {
        Str key;
        GgufValue v;
    } demand[MAX_DEMAND]; // what `require` and `expect` lines ask of keys
    int n_demand;
    jmp_buf again; // to evaluate once more, after a new demand
    int64_t *ids;  // [MAX_TENSORS] what the ids of a table stay below; 0: it is of numbers
};

// ---- what to invent ----

// clang-format off
static const struct {
    const char *key;
    double value;
    bool real, always; // always: also where the key is optional
} usual[] = {
    {"block_count", 4, false, true}, {"context_length", 256, false, true}, {"embedding_length", 64, false, true},
    {"feed_forward_length", 160, false, true}, {"vocab_size", 288, false, true},
    {"attention.head_count", 4, false, true}, {"attention.head_count_kv", 2, false, true},
    {"attention.key_length", 24, false, true}, {"attention.value_length", 24, false, false},
    {"attention.layer_norm_rms_epsilon", 0.01, true, true}, {"attention.layer_norm_epsilon", 0.01, true, true},
    {"attention.sliding_window", 24, false, false}, {"attention.scale", 0, true, false},
    {"rope.freq_base", 50000, true, true}, {"rope.freq_base_swa", 10000, true, true},
    {"rope.dimension_count", 8, false, false}, {"rope.scaling.factor", 0, true, false},
    {"rope.scaling.attn_factor", 0, true, false}, {"final_logit_softcapping", 5, true, false},
    {"expert_gating_func", 2, false, false}, {"attention.sliding_window_pattern", 2, false, false},
    {"expert_count", 8, false, false}, {"expert_used_count", 3, false, false}, {"experts_per_group", 2, false, false},
    {"attention.indexer.key_length", 32, false, false}, {"attention.indexer.top_k", 16, false, false},
    {"attention.kv_lora_rank", 32, false, false}, {"attention.key_length_mla", 40, false, true},
    {"attention.value_length_mla", 24, false, true}, {"attention.key_length_swa", 16, false, false},
    {"attention.value_length_swa", 16, false, false}, {"expert_feed_forward_length", 48, false, true},
    {"ssm.inner_size", 128, false, false}, {"attention.relative_buckets_count", 32, false, false},
    {"ssm.time_step_rank", 8, false, false}, {"ssm.conv_kernel", 4, false, false},
    {"shortconv.l_cache", 3, false, false},
};
static const struct { const char *key, *list; } usual_lists[] = {{"rope.dimension_sections", "4,4,4,0"}};
// clang-format on

static Str plain_name(const Build *b, Str key) {
    Str prefix = key_full(b, S(""));
    return str_starts(key, str_z(b->a, prefix)) ? (Str){key.p + prefix.n, key.n - prefix.n} : key;
}

static int usual_row(const Build *b, Str key) {
    for (int i = 0; i < COUNT(usual); i++)
        if (str_is(plain_name(b, key), usual[i].key)) return i;
    return -1;
}

// The value of --set NAME=VALUE for a key, with or without the architecture's prefix.
static bool find_set(const Build *b, Str key, Str *value) {
    Synth *y = b->synth;
    for (int i = 0; i < y->n_set; i++) {
        const char *eq = strchr(y->set[i], '=');
        Str name = {y->set[i], (size_t) (eq - y->set[i])};
        if (!str_eq(name, key) && !str_eq(name, plain_name(b, key))) continue;
        y->used[i] = 1;
        *value = str(eq + 1);
        return true;
    }
    return false;
}

// Every --set was asked for; of a name given twice, only the first.
static void check_sets(const Build *b, const char *arch) {
    const Synth *y = b->synth;
    for (int i = 0; i < y->n_set; i++) {
        if (y->used[i]) continue;
        Str name = plain_name(b, (Str){y->set[i], (size_t) (strchr(y->set[i], '=') - y->set[i])});
        for (int j = 0; j < i; j++)
            if (str_eq(name, plain_name(b, (Str){y->set[j], (size_t) (strchr(y->set[j], '=') - y->set[j])})))
                fail("--set %s: this name was given before, as --set %s; one of them is to go", y->set[i], y->set[j]);
        fail("--set %s: the description of '%s' asks for nothing of that name", y->set[i], arch);
    }
}

// ---- keys ----

static int add_key(Build *b, Str key, GgufValue v) {
    Gguf *f = &b->synth->file;
    if (f->n_key == MAX_KEYS) fail("synth: the description reads more than %d keys", MAX_KEYS);
    f->key[f->n_key] = (GgufKey){key, v};
    return f->n_key++;
}

static GgufValue number(double x, bool real) {
    if (real) return (GgufValue){.kind = GGUF_F32, .f = (float) x};
    return x < 0 ? (GgufValue){.kind = GGUF_I32, .i = (int64_t) x} : (GgufValue){.kind = GGUF_U32, .u = (uint64_t) x};
}

// true, false, a number (real: written as f32), a list with commas, else a text.
static GgufValue parse_set(Build *b, Str text, bool real) {
    const char *z = str_z(b->a, text);
    char *end;
    double x = strtod(z, &end);
    if (str_is(text, "true") || str_is(text, "false")) return (GgufValue){.kind = GGUF_BOOL, .u = str_is(text, "true")};
    if (end > z && *end == 0 && isfinite(x)) {
        bool fraction = strpbrk(z, ".eE") != NULL;
        if (!real && !fraction && (x > 9007199254740992.0 || x < -2147483648.0)) fail("--set: %s is too large", z);
        if (!real && !fraction && x > 4294967295.0) return (GgufValue){.kind = GGUF_U64, .u = (uint64_t) x};
        return number(x, real || fraction);
    }
    if (!strchr(z, ',')) return (GgufValue){.kind = GGUF_STR, .s = text};
    GgufValue list = {.kind = GGUF_ARR};
    uint8_t *data = NEWN(b->a, uint8_t, text.n * 8);
    while (text.n) {
        const char *comma = memchr(text.p, ',', text.n);
        Str item = {text.p, comma ? (size_t) (comma - text.p) : text.n};
        GgufValue v = parse_set(b, item, real);
        if (v.kind == GGUF_STR || (list.n && v.kind != list.elem))
            fail("--set: '%s' is no list of numbers or flags of one kind", z);
        list.elem = v.kind;
        float f = (float) v.f;
        uint32_t u = (uint32_t) v.u;
        if (v.kind == GGUF_BOOL) data[list.n++] = (uint8_t) v.u;
        else if (v.kind == GGUF_U64) memcpy(data + 8 * list.n++, &v.u, 8);
        else memcpy(data + 4 * list.n++, v.kind == GGUF_F32 ? (const void *) &f : &u, 4);
        text = comma ? (Str){comma + 1, text.n - item.n - 1} : S("");
    }
    list.data = data;
    return list;
}

void synth_layers(Build *b, int64_t at_least) {
    if (at_least > b->synth->least_layers) b->synth->least_layers = at_least;
}

// A key that is 0 in some layers: every second one, the next such key by pairs of layers.. so that each mix occurs.
static GgufValue some_zero(Build *b, int which, GgufValue v) {
    int layers = key_find(b, key_full(b, S("block_count")));
    int64_t n = layers >= 0 ? (int64_t) b->synth->file.key[layers].v.u : b->n_layer;
    uint32_t *data = NEWN(b->a, uint32_t, n);
    for (int64_t l = 0; l < n; l++) data[l] = l >> which & 1 ? (uint32_t) v.u : 0;
    synth_layers(b, INT64_C(1) << b->synth->n_zero);
    return (GgufValue){.kind = GGUF_ARR, .elem = GGUF_U32, .n = (uint64_t) n, .data = (const uint8_t *) data};
}

int synth_key(Build *b, Str key, bool optional) {
    Synth *y = b->synth;
    int row = usual_row(b, key);
    bool in_real = b->deciding && b->deciding->kind == S_REAL, in_flag = b->deciding && b->deciding->kind == S_FLAG;
    Str text;
    key = str_dup(b->a, key);
    if (find_set(b, key, &text) && optional && str_is(text, "absent")) return -1;
    if (find_set(b, key, &text)) return add_key(b, key, parse_set(b, text, row >= 0 ? usual[row].real : in_real));
    for (int i = 0; i < y->n_demand; i++)
        if (str_eq(y->demand[i].key, key)) return add_key(b, key, y->demand[i].v);
    if (optional && (row < 0 || !usual[row].always)) return -1;
    if (row >= 0) {
        double x = usual[row].value;
        if (str_is(plain_name(b, key), "block_count") && y->layers) x = (double) y->layers;
        GgufValue v = number(x, usual[row].real);
        for (int i = 0; i < y->n_zero && b->n_layer; i++)
            if (str_eq(y->zero[i], key)) v = some_zero(b, i, v);
        return add_key(b, key, v);
    }
    for (int i = 0; i < COUNT(usual_lists); i++)
        if (str_is(plain_name(b, key), usual_lists[i].key))
            return add_key(b, key, parse_set(b, str(usual_lists[i].list), false));
    if (in_flag) return add_key(b, key, (GgufValue){.kind = GGUF_BOOL});
    static const char *const factors[] = {"_scale", "_multiplier", "_bound", "_epsilon"};
    for (int i = 0; i < COUNT(factors); i++) in_real |= str_ends(key, factors[i]);
    if (in_real) return add_key(b, key, number(0.75, true));
    bool few = str_ends(key, "_count") || str_ends(key, "_cycles") || str_ends(key, "_per_stack");
    return add_key(b, key, number(few ? 2 : 16, false));
}

// Nothing here depends on the key; other engines may.
void synth_unread(Build *b, Str key) {
    Str text;
    if (key_find(b, key) >= 0 || !find_set(b, key, &text)) return;
    int row = usual_row(b, key);
    add_key(b, str_dup(b->a, key), parse_set(b, text, row >= 0 && usual[row].real));
}

// Real files carry what a description expects, and other engines may need it.
void synth_expect(Build *b, Str key, Value v) {
    Str text;
    if (key_find(b, key) >= 0) return;
    key = str_dup(b->a, key);
    if (find_set(b, key, &text)) add_key(b, key, parse_set(b, text, false));
    else if (v.kind == V_NUM && v.num > 0) {
        int row = usual_row(b, key);
        add_key(b, key, number(v.num, (row >= 0 && usual[row].real) || v.num != floor(v.num)));
    } else if (v.kind == V_FLAG) add_key(b, key, (GgufValue){.kind = GGUF_BOOL, .u = v.num != 0});
}

// Lists that need 64 bits are of 64 bits in real files, whatever stands in them.
void synth_wide(Build *b, Str key) {
    GgufValue *v = &b->synth->file.key[key_find(b, key)].v;
    if (v->elem == GGUF_U64) return;
    uint64_t *wide = NEWN(b->a, uint64_t, v->n);
    for (uint64_t i = 0; i < v->n; i++) {
        int64_t x = 0;
        if (gguf_int(v, i, &x)) wide[i] = (uint64_t) x;
    }
    v->elem = GGUF_U64, v->data = (const uint8_t *) wide;
}

// Sections of a rotation: as many pairs for each of three streams as come out even.
Value synth_sections(Build *b, Value v, int64_t dims) {
    Gguf *f = &b->synth->file;
    int i = key_find(b, v.key);
    if (i < 0) i = add_key(b, v.key, (GgufValue){0});
    uint32_t *data = NEWN(b->a, uint32_t, 4);
    for (int j = 0; j < 3; j++) data[j] = (uint32_t) ((dims / 2 + 2 - j) / 3);
    f->key[i].v = (GgufValue){.kind = GGUF_ARR, .elem = GGUF_U32, .n = 4, .data = (const uint8_t *) data};
    return key_absolute(b, v.key, v.loc);
}

// A size that only the file knows, such as a low rank: as many as there are heads. Beside other sizes 1 is what fits.
int64_t synth_fresh(Build *b, Str name, bool alone) {
    Str text;
    if (find_set(b, str_fmt(b->a, "size.%.*s", FMT(name)), &text)) return (int64_t) strtod(str_z(b->a, text), NULL);
    if (!alone) return 1;
    int heads = key_find(b, key_full(b, S("attention.head_count")));
    GgufValue v = heads >= 0 ? b->synth->file.key[heads].v : (GgufValue){0};
    return v.kind == GGUF_U32 && v.u ? (int64_t) v.u : 16;
}

// ---- what lines demand ----

// `require` or `expect` does not hold: evaluate again with the value that makes it hold, unless the user chose the key.
void synth_demand(Build *b, Str key, double value) {
    Synth *y = b->synth;
    Str text;
    if (key_find(b, key) < 0 || find_set(b, key, &text) || y->n_demand == MAX_DEMAND) return;
    for (int i = 0; i < y->n_demand; i++)
        if (str_eq(y->demand[i].key, key)) return; // two lines want different things
    y->demand[y->n_demand].key = key;
    y->demand[y->n_demand++].v = number(value, value != floor(value));
    longjmp(y->again, 1);
}

// The key that an expression is: its own name, or that of a size or real which is nothing but the key.
static Str key_of(Build *b, Scope *s, const Expr *e) {
    Scope *owner;
    if (e->kind == E_OR) e = e->arg[0];
    if (e->kind != E_NAME) return S("");
    Binding *bind = scope_find(s, e->name, &owner);
    if (!bind) return key_full(b, e->name);
    const Stmt *d = bind->decl;
    return d && d->kind <= S_FLAG && !d->by_layer && d->expr != e ? key_of(b, owner, d->expr) : S("");
}

void synth_require(Build *b, Scope *s, const Expr *e) {
    if (e->kind != E_BINARY) return;
    const Expr *x = e->arg[0], *y = e->arg[1];
    if (e->op == '&') {
        if (!eval_flag(b, s, x)) synth_require(b, s, x);
        else synth_require(b, s, y);
        return;
    }
    if (e->op == T_NAME) synth_demand(b, key_of(b, s, x), eval_num(b, s, y->arg[0], "a number"));
    if (e->op != T_EQ && e->op != T_LE && e->op != T_GE) return;
    double p = eval_num(b, s, x, "a number"), q = eval_num(b, s, y, "a number");
    synth_demand(b, key_of(b, s, x), q);
    synth_demand(b, key_of(b, s, y), p);
}

// NAME[l] compared with 0, where NAME[l] is a key: layers differ in kind by it.
static void find_zero(Build *b, const Expr *e) {
    if (!e) return;
    Synth *y = b->synth;
    bool zero = e->kind == E_BINARY && (e->op == T_EQ || e->op == T_NE || e->op == '>') && e->arg[1]->kind == E_NUM &&
        e->arg[1]->num == 0 && e->arg[0]->kind == E_INDEX && e->arg[0]->arg[0]->kind == E_NAME;
    for (int i = 0; zero && i < b->spec->body.n; i++) {
        const Stmt *d = b->spec->body.stmt[i];
        bool here = d->kind == S_SIZE && d->by_layer && str_eq(d->name[0], e->arg[0]->arg[0]->name);
        if (!here || d->expr->kind != E_NAME) continue;
        Str key = key_full(b, d->expr->name);
        bool known = false;
        for (int j = 0; j < y->n_zero; j++) known |= str_eq(y->zero[j], key);
        if (!known && y->n_zero < MAX_ZERO) y->zero[y->n_zero++] = key;
    }
    for (int i = 0; i < e->n; i++) find_zero(b, e->arg[i]);
}

static void find_zeros(Build *b, const Block *block) {
    for (int i = 0; i < block->n; i++) {
        const Stmt *st = block->stmt[i];
        find_zero(b, st->expr);
        find_zeros(b, &st->body);
        find_zeros(b, &st->other);
    }
}

// ---- tensors ----

bool synth_chosen(Build *b, Str name) {
    Str text;
    return find_set(b, str_fmt(b->a, "tensor.%.*s", FMT(name)), &text) && str_is(text, "1");
}

// Names that say all of what they are, names that files have so, and tensor.NAME=bare.
bool synth_bare(Build *b, Str name) {
    static const char *const usual_bare[] = {"ssm_a", "ssm_d"};
    Str text;
    for (int i = 0; i < COUNT(usual_bare); i++)
        if (str_is(name, usual_bare[i])) return true;
    if (str_ends(name, ".bias") || str_ends(name, ".scale")) return true;
    return find_set(b, str_fmt(b->a, "tensor.%.*s", FMT(name)), &text) && str_is(text, "bare");
}

// blk.3.attn_q, enc.blk.3.attn_q -> attn_q
static Str in_layer(Str name) {
    for (size_t i = 0; i + 4 < name.n; i++) {
        if (memcmp(name.p + i, "blk.", 4) != 0 || (i > 0 && name.p[i - 1] != '.')) continue;
        const char *dot = memchr(name.p + i + 4, '.', name.n - i - 4);
        return dot ? (Str){dot + 1, name.n - (size_t) (dot + 1 - name.p)} : name;
    }
    return name;
}

// ne.NAME=64,1,1,5: the axes of a tensor in the file, where another engine counts them; NAME as for tensor.NAME. 0: not
// set.
static int wanted_axes(Build *b, Str name, int64_t *ne) {
    if (str_ends(name, ".weight")) name.n -= 7;
    Str text, base = in_layer(name);
    if (!find_set(b, str_fmt(b->a, "ne.%.*s", FMT(name)), &text) &&
        !find_set(b, str_fmt(b->a, "ne.%.*s", FMT(base)), &text))
        return 0;
    const char *p = str_z(b->a, text);
    for (int n = 0; n < 4; p++) {
        char *end;
        long long size = strtoll(p, &end, 10);
        if (end == p || size < 1 || (*end && *end != ',')) break;
        ne[n++] = size, p = end;
        if (!*p) return n;
    }
    fail("--set ne.%.*s=%.*s: one to four sizes were expected", FMT(base), FMT(text));
}

// tensor.NAME=0 leaves a demanded one out, =1 puts an optional one in; NAME is attn_q, attn_q.bias, output.., or, for
// one layer alone, blk.0.attn_q; biases=1: all biases.
static bool wanted(Build *b, Str name, bool demanded) {
    Str text, base = in_layer(name);
    if (str_ends(name, ".weight")) name.n -= 7, base.n -= 7;
    if (find_set(b, str_fmt(b->a, "tensor.%.*s", FMT(name)), &text)) return !str_is(text, "0");
    if (find_set(b, str_fmt(b->a, "tensor.%.*s", FMT(base)), &text)) return !str_is(text, "0");
    return demanded || (str_ends(base, ".bias") && find_set(b, S("biases"), &text) && str_is(text, "1"));
}

void synth_tensor(Build *b, Str name, int n, const int64_t *ne, bool demanded) {
    Gguf *f = &b->synth->file;
    for (int i = 0; i < f->n_tensor; i++)
        if (str_eq(f->tensor[i].name, name)) return;
    if (!wanted(b, name, demanded)) return;
    if (f->n_tensor == MAX_TENSORS / 2) fail("synth: more than %d tensors", MAX_TENSORS / 2);
    GgufTensor *t = &f->tensor[f->n_tensor];
    *t = (GgufTensor){.name = name, .type = type_named(S("F32"))->id, .n_dims = n, .ne = {1, 1, 1, 1}, .n_elems = 1};
    int64_t axes[4], size = 1;
    int n_axes = wanted_axes(b, name, axes);
    for (int i = 0; i < n; i++) size *= ne[i];
    for (int i = 0; i < n_axes; i++) size = size % axes[i] ? 0 : size / axes[i];
    if (n_axes && size != 1) fail("synth: --set ne.%.*s has not as many elements", FMT(in_layer(name)));
    if (n_axes) t->n_dims = n = n_axes, ne = axes;
    for (int i = 0; i < n; i++) {
        t->ne[i] = ne[i];
        if (ne[i] > MAX_ELEMENTS || (t->n_elems *= (uint64_t) ne[i]) > MAX_ELEMENTS)
            fail("synth: tensor '%.*s' would have more than %d elements; set smaller sizes", FMT(name), MAX_ELEMENTS);
    }
    b->synth->ids[f->n_tensor++] = 0;
}

void synth_ids(Build *b, Str name, int64_t below) {
    Gguf *f = &b->synth->file;
    for (int i = 0; i < f->n_tensor; i++)
        if (str_eq(f->tensor[i].name, name)) f->tensor[i].type = type_named(S("I32"))->id, b->synth->ids[i] = below;
}

// One that nothing here reads, and its bias, are there if their axes are set.
void synth_ignored(Build *b, Str name) {
    int64_t ne[4];
    Str bias = str_fmt(b->a, "%.*s.bias", FMT(name));
    int n = wanted_axes(b, name, ne);
    Str full = synth_bare(b, in_layer(name)) ? name : str_fmt(b->a, "%.*s.weight", FMT(name));
    if (n) synth_tensor(b, full, n, ne, true);
    n = wanted_axes(b, bias, ne);
    if (n) synth_tensor(b, bias, n, ne, true);
}

// ---- numbers ----

typedef struct {
    uint64_t state;
} Random;

static uint64_t bits(Random *r) {
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

// Nearly normal, mean 0, deviation 1; integers and two exact steps, so every machine draws the same.
static float draw(Random *r) {
    uint64_t z = bits(r);
    int32_t sum = 0;
    for (int i = 0; i < 4; i++) sum += (int32_t) (z >> (16 * i) & 0xFFFF);
    return (float) (sum - 131070) * (1.7320508f / 65536);
}

typedef struct {
    float mean, spread;
    bool matrix;
    int side; // 1, -1: only |x| is added to the mean, or taken away
} Recipe;

// Norms around 1, matrices so that a row of unit size stays near unit size, the head so that logits spread by about 2.
static Recipe recipe(const Graph *g, int tensor, const GgufTensor *t) {
    bool product = false, head = false;
    for (int i = 0; i < g->n_stage; i++)
        for (int j = 0; j < g->stage[i].n_weight; j++) {
            const Weight *w = &g->stage[i].weight[j];
            bool here = false;
            for (int64_t l = 0; l < (g->stage[i].layered ? g->n_layer : 1); l++) here |= w->tensor[l] == tensor;
            product |= here && w->product;
            head |= here && w->product && i == g->n_stage - 1;
        }
    float in = sqrtf((float) t->ne[0]);
    if (head) return (Recipe){0, 2 / in, true, 0};
    if (product) return (Recipe){0, 1.4f / in, true, 0};
    if (str_ends(t->name, ".bias")) return (Recipe){0, 0.1f, false, 0};
    const char *name = t->name.p;
    bool norm = false, factor = false;
    for (size_t i = 0; i + 4 <= t->name.n; i++) {
        norm |= memcmp(name + i, "norm", 4) == 0;
        factor |= memcmp(name + i, "freq", 4) == 0 || memcmp(name + i, "fact", 4) == 0;
    }
    if (factor) return (Recipe){1, 1, false, 1};
    if (str_ends(t->name, "ssm_a")) return (Recipe){-0.1f, 0.7f, false, -1}; // the exponent of a decay
    if (norm) return (Recipe){1, 0.2f, false, 0};
    return (Recipe){0, 0.7f, t->n_dims > 1, 0};
}

// ---- types ----

static uint16_t half(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    uint32_t sign = u >> 16 & 0x8000, e = u >> 23 & 0xFF, m = u & 0x7FFFFF;
    if (e < 102) return (uint16_t) sign;
    if (e > 142) return (uint16_t) (sign | 0x7C00);
    uint32_t shift = e < 113 ? 126 - e : 13, base = e < 113 ? 0 : (e - 112) << 10;
    uint32_t full = e < 113 ? m | 0x800000 : m, cut = full & ((1u << shift) - 1), mid = 1u << (shift - 1);
    uint32_t h = base + (full >> shift);
    h += cut > mid || (cut == mid && (h & 1));
    return (uint16_t) (sign | h);
}

static size_t encode(const char *type, const float *x, size_t n, uint8_t *to) {
    uint8_t *start = to;
    if (strcmp(type, "Q8_0") == 0) {
        for (size_t i = 0; i < n; i += 32, to += 34) {
            float most = 0;
            for (int j = 0; j < 32; j++) most = fmaxf(most, fabsf(x[i + (size_t) j]));
            uint16_t d = half(most / 127);
            memcpy(to, &d, 2);
            for (int j = 0; j < 32; j++)
                to[2 + j] = (uint8_t) (int8_t) (most > 0 ? lrintf(x[i + (size_t) j] * 127 / most) : 0);
        }
        return (size_t) (to - start);
    }
    for (size_t i = 0; i < n; i++, to += 2) {
        uint32_t u;
        memcpy(&u, &x[i], 4);
        uint16_t h = strcmp(type, "F16") == 0 ? half(x[i]) : (uint16_t) ((u + 0x7FFF + (u >> 16 & 1)) >> 16);
        memcpy(to, &h, 2);
    }
    return (size_t) (to - start);
}

// --set type=F16 | BF16 | Q8_0: what matrices are stored as, where their rows allow it.
static const char *wanted_type(Build *b) {
    static const char *const types[] = {"F32", "F16", "BF16", "Q8_0"};
    Str text;
    if (!find_set(b, S("type"), &text)) return "F32";
    for (int i = 0; i < COUNT(types); i++)
        if (text.n == strlen(types[i]) && edit_distance(text, str(types[i])) <= (int) text.n) {
            size_t same = 0;
            while (same < text.n && (text.p[same] == types[i][same] || text.p[same] == types[i][same] + ('a' - 'A')))
                same++;
            if (same == text.n) return types[i];
        }
    fail("--set type=%.*s: synth writes F32, F16, BF16 and Q8_0", FMT(text));
}

// ---- the file ----

static void write_key(GgufWriter *w, const GgufKey *k) {
    const GgufValue *v = &k->v;
    switch (v->kind) {
    case GGUF_F32: gguf_put_f32(w, k->key, (float) v->f); break;
    case GGUF_BOOL: gguf_put_bool(w, k->key, v->u != 0); break;
    case GGUF_STR: gguf_put_str(w, k->key, v->s); break;
    case GGUF_U64: fail("synth: key '%.*s' does not fit in 32 bits", FMT(k->key));
    case GGUF_ARR: gguf_put_array(w, k->key, v->elem, v->data, v->n); break;
    default: gguf_put_u32(w, k->key, (uint32_t) v->u); break;
    }
}

static void write_tensor(Arena *a, GgufWriter *w, const GgufTensor *t, Recipe how, const char *type, Random *r) {
    enum { rows = 64 };
    size_t n = (size_t) t->ne[0], left = (size_t) t->n_elems / n;
    float *x = NEWN(a, float, n *rows);
    uint8_t *bytes = NEWN(a, uint8_t, n * rows * 4);
    while (left) {
        size_t k = (left < rows ? left : rows) * n;
        for (size_t i = 0; i < k; i++) {
            float d = draw(r) * how.spread;
            x[i] = how.mean + (how.side ? (float) how.side * fabsf(d) : d);
        }
        if (strcmp(type, "F32") == 0) gguf_write_data(w, x, k * 4);
        else gguf_write_data(w, bytes, encode(type, x, k, bytes));
        left -= k / n;
    }
}

// Ids of a row follow each other, so none is there twice.
static void write_ids(Arena *a, GgufWriter *w, const GgufTensor *t, int64_t below, Random *r) {
    int32_t *row = NEWN(a, int32_t, t->ne[0]);
    for (uint64_t left = t->n_elems / (uint64_t) t->ne[0]; left--;) {
        int64_t first = (int64_t) (bits(r) % (uint64_t) below);
        for (int64_t i = 0; i < t->ne[0]; i++) row[i] = (int32_t) ((first + i) % below);
        gguf_write_data(w, row, (size_t) t->ne[0] * sizeof *row);
    }
}

static void write_file(Build *b, const char *path, uint64_t seed, const char *type) {
    const Gguf *f = &b->synth->file;
    GgufWriter *w = gguf_create(path);
    for (int i = 0; i < f->n_key; i++) write_key(w, &f->key[i]);
    const char **stored = NEWN(b->a, const char *, f->n_tensor);
    Recipe *how = NEWN(b->a, Recipe, f->n_tensor);
    for (int i = 0; i < f->n_tensor; i++) {
        const GgufTensor *t = &f->tensor[i];
        how[i] = recipe(b->g, i, t);
        bool blocks = how[i].matrix && t->ne[0] % type_named(str(type))->block == 0;
        stored[i] = b->synth->ids[i] ? "I32" : blocks ? type : "F32";
        gguf_put_tensor(w, t->name, type_named(str(stored[i]))->id, t->n_dims, t->ne);
    }
    gguf_begin_data(w);
    for (int i = 0; i < f->n_tensor; i++) {
        Random r = {hash64(f->tensor[i].name.p, f->tensor[i].name.n, seed)};
        if (b->synth->ids[i]) write_ids(b->a, w, &f->tensor[i], b->synth->ids[i], &r);
        else write_tensor(b->a, w, &f->tensor[i], how[i], stored[i], &r);
    }
    gguf_finish(w);
}

static void start(Arena *a, Synth *y, Build *b, const char *path) {
    y->file = (Gguf){.path = path, .version = 3, .alignment = 32, .n_file = 1, .arena = a};
    y->file.key = NEWN(a, GgufKey, MAX_KEYS);
    y->file.tensor = NEWN(a, GgufTensor, MAX_TENSORS);
    y->file.first_made = MAX_TENSORS / 2; // the other half
    y->ids = NEWN(a, int64_t, MAX_TENSORS);
    b->g = graph_new(a);
    b->gguf = &y->file;
    b->key_used = NEWN(a, uint8_t, MAX_KEYS);
    b->tensor_used = NEWN(a, uint8_t, MAX_TENSORS);
    add_key(b, S("general.architecture"), (GgufValue){.kind = GGUF_STR, .s = b->arch});
    Str text;
    for (int i = 0; i < y->n_set; i++) { // keys that no description reads
        Str name = {y->set[i], (size_t) (strchr(y->set[i], '=') - y->set[i])};
        bool outside = str_starts(name, "general.") || str_starts(name, "tokenizer.");
        if (outside && key_find(b, name) < 0 && find_set(b, name, &text)) add_key(b, name, parse_set(b, text, false));
    }
    const struct {
        Str key, value;
    } usual_text[] = {
        {S("general.name"), str_fmt(a, "synthetic %.*s", FMT(b->arch))},
        {S("tokenizer.ggml.model"), S("none")},
    };
    for (int i = 0; i < COUNT(usual_text); i++)
        if (key_find(b, usual_text[i].key) < 0)
            add_key(b, usual_text[i].key, (GgufValue){.kind = GGUF_STR, .s = usual_text[i].value});
}

void synth(Arena *a, const char *arch, const char *path, const char *const *set, int n_set, uint64_t seed,
    const BuildOptions *opt) {
    for (int i = 0; i < n_set; i++)
        if (!strchr(set[i], '=') || set[i][0] == '=') fail_usage("--set %s: NAME=VALUE was expected", set[i]);
    Synth *y = NEW(a, Synth);
    y->set = set, y->n_set = n_set, y->used = NEWN(a, uint8_t, n_set);
    Build *b = NEW(a, Build);
    const Spec *spec = spec_find(a, str(arch), opt->arch_file, opt->arch_dir);
    *b = (Build){.a = a, .spec = spec, .arch = str(arch), .synth = y};
    find_zeros(b, &spec->body);
    (void) setjmp(y->again); // synth_demand() comes back here
    for (;;) {
        *b = (Build){.a = a, .opt = opt, .spec = b->spec, .arch = str(arch), .synth = y};
        start(a, y, b, path);
        evaluate(b);
        Str text;
        if (y->least_layers <= b->n_layer || y->layers || find_set(b, S("block_count"), &text)) break;
        y->layers = y->least_layers; // once more, with layers of every kind
    }
    const char *type = wanted_type(b);
    check_sets(b, arch);
    write_file(b, path, seed, type);
}
