// `ggcc infer`: a draft of a description for an architecture that has none, from a file's tensor names, shapes and
// keys. In: a GGUF. Out: the text of an .arch file. What names and shapes settle is stated; everything else is a
// guess and its line says so (`# GUESS`): pairs of the rotation, activations, the places of norms, the scale of scores,
// what a row sees. What it cannot tell stands at the top as a list. A draft declares only what it uses.
#include "build.h"
#include "spec.h"

#include <string.h>

typedef struct {
    Arena *a;
    const Gguf *g;
    Str arch;
    Out head, sizes, keys, tensors, layer, model, doubts; // parts of the text
    Str *read;                                            // keys that the draft reads
    int n_read, cap_read;
    Str *bound; // tensors (without blk.N. and .weight) that the draft binds
    int n_bound, cap_bound;
    bool rms;
    Str eps;        // the line that declares it, for drafts with norms
    bool plain_eps; // the file has a key for it: there are norms, whether or not they have weights
    bool norms;     // the file has weights for norms of whole rows
} Draft;

static const GgufKey *key(Draft *d, const char *name) {
    const GgufKey *k = gguf_key(d->g, str_fmt(d->a, "%.*s.%s", FMT(d->arch), name));
    if (k) *PUSH(d->a, d->read, d->n_read, d->cap_read) = k->key;
    return k;
}

static int64_t number(const GgufKey *k, int64_t otherwise) {
    int64_t v;
    return k && gguf_int(&k->v, 0, &v) ? v : otherwise;
}

// A tensor of the file by the name a description uses; in layer 0 first, then any layer (so that later kinds are seen).
static const GgufTensor *layer_tensor(Draft *d, const char *name) {
    for (int l = 0; l < 64; l++) {
        const GgufTensor *t = gguf_tensor(d->g, str_fmt(d->a, "blk.%d.%s.weight", l, name));
        if (t) return t;
    }
    return NULL;
}

static bool has(Draft *d, const char *name) {
    if (!layer_tensor(d, name)) return false;
    *PUSH(d->a, d->bound, d->n_bound, d->cap_bound) = str(name);
    return true;
}

static const GgufTensor *top_tensor(Draft *d, const char *name) {
    const GgufTensor *t = gguf_tensor(d->g, str_fmt(d->a, "%s.weight", name));
    if (t) *PUSH(d->a, d->bound, d->n_bound, d->cap_bound) = str(name);
    return t;
}

static bool biased(Draft *d, const char *name, bool in_layer) {
    return gguf_tensor(d->g, str_fmt(d->a, in_layer ? "blk.0.%s.bias" : "%s.bias", name)) != NULL;
}

static const char *norm_fn(const Draft *d) {
    return d->rms ? "rms_norm" : "layer_norm";
}

static void norm_tensor(Draft *d, Out *o, const char *name, const char *shape, bool in_layer) {
    out(o, "tensor %s : %s%s\n", name, shape, biased(d, name, in_layer) ? " + bias" : "");
}

// ---- parts ----

static void infer_sizes(Draft *d) {
    Out *o = &d->sizes;
    key(d, "block_count"), key(d, "embedding_length"), key(d, "feed_forward_length"), key(d, "attention.head_count"),
        key(d, "context_length");
    out(o,
        "size  L     = block_count\nsize  d     = embedding_length\nsize  ff    = feed_forward_length\nsize  heads = "
        "attention.head_count\n");
    if (key(d, "attention.head_count_kv")) out(o, "size  kvh   = attention.head_count_kv\n");
    else out(o, "size  kvh   = attention.head_count_kv or heads    # no key: one kv head for each head\n");
    key(d, "attention.key_length");
    out(o, "size  hd    = attention.key_length or d / heads    # no key: heads share the width\n");
    d->rms = key(d, "attention.layer_norm_rms_epsilon") != NULL;
    bool plain = key(d, "attention.layer_norm_epsilon") != NULL;
    d->plain_eps = d->rms || plain;
    d->eps = d->rms ? S("real  eps   = attention.layer_norm_rms_epsilon\n")
        : plain     ? S("real  eps   = attention.layer_norm_epsilon\n")
                    : S("real  eps   = attention.layer_norm_rms_epsilon or 1e-5    # GUESS: no key\n");
    d->rms = !plain || d->rms;
    if (biased(d, "attn_norm", true)) d->rms = false; // norms with a bias subtract the mean
}

static bool infer_rope(Draft *d) {
    key(d, "rope.freq_base");
    key(d, "rope.dimension_count");
    if (top_tensor(d, "position_embd")) return false;
    bool factors = gguf_tensor(d->g, S("rope_freqs.weight")) != NULL;
    if (factors) top_tensor(d, "rope_freqs"), out(&d->tensors, "tensor rope_freqs : turn / 2 optional\n");
    out(&d->sizes,
        "size  turn  = rope.dimension_count or hd    # no key: whole heads turn\n"
        "rope  rot   = rope(pairs: halves, dims: turn, base: rope.freq_base or 10000, scaling: rope.scaling%s)    # "
        "GUESS: pairs; no key: the usual base\n",
        factors ? ", factors: rope_freqs" : "");
    out(&d->doubts, "#   rope: which pairs turn (halves or adjacent)\n");
    return true;
}

// Norms on q and k: one for all heads, one for each, or over all of them.
static void infer_head_norms(Draft *d) {
    Out *o = &d->layer;
    static const struct {
        const char *tensor, *var, *count;
    } on_heads[] = {{"attn_q_norm", "q", "heads"}, {"attn_k_norm", "k", "kvh"}};
    for (int i = 0; i < COUNT(on_heads); i++) {
        const GgufTensor *t = layer_tensor(d, on_heads[i].tensor);
        if (!t) continue;
        has(d, on_heads[i].tensor);
        const GgufKey *kl = gguf_key(d->g, str_fmt(d->a, "%.*s.attention.key_length", FMT(d->arch)));
        int64_t hd = number(kl,
            number(gguf_key(d->g, str_fmt(d->a, "%.*s.embedding_length", FMT(d->arch))), 1) /
                number(gguf_key(d->g, str_fmt(d->a, "%.*s.attention.head_count", FMT(d->arch))), 1));
        bool each = t->n_dims == 1 && t->ne[0] == hd;
        bool stacked = t->n_dims == 2;
        out(o, "tensor %s : %s\n", on_heads[i].tensor,
            each          ? "hd"
                : stacked ? str_z(d->a, str_fmt(d->a, "%s, hd", on_heads[i].count))
                          : str_z(d->a, str_fmt(d->a, "%s * hd", on_heads[i].count)));
        const char *v = on_heads[i].var, *fn = biased(d, on_heads[i].tensor, true) ? "layer_norm" : norm_fn(d);
        const char *guess = "    # GUESS: before the rotation";
        if (each || stacked) out(o, "%s = %s(%s, %s, eps)%s\n", v, fn, v, on_heads[i].tensor, guess);
        else
            out(o, "%s = %s(%s as [%s * hd], %s, eps) as [%s, hd]%s\n", v, fn, v, on_heads[i].count,
                on_heads[i].tensor, on_heads[i].count, guess);
    }
}

static bool set(Draft *d, const char *name) {
    const GgufKey *k = key(d, name);
    double v;
    return k && gguf_real(&k->v, 0, &v) && v != 0;
}

static void infer_attention(Draft *d, bool rope, const char *u) {
    Out *o = &d->layer;
    const GgufKey *scale = key(d, "attention.scale"), *cap = key(d, "attn_logit_softcapping"),
                  *win = key(d, "attention.sliding_window");
    if (scale) out(&d->sizes, "real  scale = attention.scale\n");
    if (cap) out(&d->sizes, "real  acap  = attn_logit_softcapping\n");
    bool alibi = set(d, "attention.max_alibi_bias"), clamped = set(d, "attention.clamp_kqv");
    if (alibi) out(&d->sizes, "real  slope = attention.max_alibi_bias\n");
    if (clamped) out(&d->sizes, "real  most  = attention.clamp_kqv\n");
    if (win && number(win, 0) > 0) {
        key(d, "attention.sliding_window_pattern");
        out(&d->sizes,
            "size  win   = attention.sliding_window\n"
            "flag  near[l] = windowed(attention.sliding_window_pattern or 1, l, full: last)    # GUESS: which layers "
            "see the window\n");
        out(&d->doubts, "#   windows: which layers see %lld positions only\n", (long long) number(win, 0));
    }
    bool fused = has(d, "attn_qkv"), apart = has(d, "attn_q") && has(d, "attn_k") && has(d, "attn_v");
    if (!fused && !apart) out(&d->doubts, "#   attention: no attn_qkv and no attn_q, attn_k, attn_v\n");
    has(d, "attn_output");
    out(o, "{q, k, v} = project(%s, heads, kvh, hd)%s\n", u, fused ? "    # GUESS: q, k, v in this order" : "");
    if (clamped)
        for (const char *v = "qkv"; *v; v++) out(o, "%c = clamp(%c, -most, most)    # GUESS: where\n", *v, *v);
    infer_head_norms(d);
    if (rope) out(o, "q = rot(q); k = rot(k)\n");
    out(o, "a = attend(q, k, v, heads, kvh, hd, d, %s, %s%s%s)    # GUESS: %swhat a row sees\n",
        win && number(win, 0) > 0 ? "near[l] ? window(win) : past" : "past", scale ? "scale" : "1/sqrt(hd)",
        cap ? ", softcap: acap" : "", alibi ? ", alibi: slope" : "", scale ? "" : "the scale; ");
    out(&d->doubts, "#   attention: %swhat a row sees (here: all before it)\n",
        scale ? "" : "the scale of scores (here: 1/sqrt(hd)); ");
}

static void infer_ffn(Draft *d, const char *u) {
    Out *o = &d->layer;
    const GgufTensor *up = layer_tensor(d, "ffn_up"), *down = layer_tensor(d, "ffn_down");
    bool gate = has(d, "ffn_gate");
    has(d, "ffn_up"), has(d, "ffn_down");
    bool wide = up && down && up->ne[1] == 2 * down->ne[0];
    if (layer_tensor(d, "ffn_gate_inp"))
        out(&d->doubts, "#   experts: the router and its experts are left out; see arch-specs/lib/moe.arch\n");
    if (gate) out(o, "f = glu(%s, ff, silu)    # GUESS: the activation\n", u);
    else if (wide) out(o, "f = glu_in_up(%s, ff, silu)    # GUESS: the activation; that the gate comes first\n", u);
    else out(o, "f = mlp(%s, ff, gelu)    # GUESS: the activation\n", u);
    out(&d->doubts, "#   feed-forward: the activation\n");
}

#define PLACE "    # GUESS: the norm's place, from its name"

// A norm before a part: with the weights `name`; without, where the file has none at all and yet an epsilon; else none.
static void norm_before(Draft *d, const char *to, const char *from, const char *name, const char *part) {
    Out *o = &d->layer;
    if (name) out(o, "%s = %s(%s, %s, eps)" PLACE "\n", to, norm_fn(d), from, name);
    else if (!d->norms && d->plain_eps)
        out(o, "%s = %s(%s, eps)    # GUESS: a norm without weights before %s\n", to, norm_fn(d), from, part);
    else out(o, "%s = %s    # GUESS: no norm before %s\n", to, from, part);
}

// Whether the two parts have the same input: by the norms; or, where each has its own, by a key that some files have.
static bool side_by_side(Draft *d, bool one_norm, bool own_norms, const char **guess) {
    const GgufKey *k = key(d, "use_parallel_residual");
    bool told = k && k->v.kind == GGUF_BOOL, beside = told && number(k, 0), yes = one_norm || (own_norms && beside);
    *guess = yes ? "    # GUESS: attention and feed-forward side by side" : "    # GUESS: one after the other";
    out(&d->doubts, "#   residuals: whether feed-forward follows attention or is beside it\n");
    if (told)
        out(&d->keys, "expect use_parallel_residual == %s    # GUESS: true: attention and feed-forward side by side\n",
            beside ? "true" : "false");
    return yes;
}

// Norms before and after the two parts, by the names that the converters use.
static void infer_layer(Draft *d, bool rope) {
    Out *o = &d->layer;
    static const char *const norms[] = {"attn_norm", "attn_norm_2", "ffn_norm", "post_attention_norm", "post_ffw_norm",
        "attn_output_norm", "layer_output_norm"};
    bool have[COUNT(norms)];
    for (int i = 0; i < COUNT(norms); i++) {
        have[i] = has(d, norms[i]);
        if (have[i]) norm_tensor(d, o, norms[i], "d", true), d->norms = true;
    }
    bool pre = have[0], second = have[1], mid = have[2], post_a = have[3], post_f = have[4], out_a = have[5],
         out_f = have[6];
    const char *fn = norm_fn(d), *guess;
    bool residual = key(d, "residual_scale"), bare = !d->norms && d->plain_eps;
    if (residual) out(&d->sizes, "real  rscale = residual_scale    # GUESS: of what is added to the row\n");
    const char *times = residual ? "rscale * " : "";
    bool late = post_a && !post_f && !mid; // then it is the norm of the feed-forward part
    out(&d->doubts, "#   norms: %s\n",
        d->norms   ? "their places follow from their names only"
            : bare ? "no weights, but an epsilon: taken for norms without weights"
                   : "no weights and no epsilon: taken for none");
    norm_before(d, "u", "x", pre ? "attn_norm" : NULL, "attention");
    infer_attention(d, rope, "u");
    bool apart = mid || post_a || out_a || bare, plain = !post_a && !out_a && !out_f && !post_f;
    if (side_by_side(d, !apart, plain, &guess)) {
        const char *own = mid ? "ffn_norm" : second ? "attn_norm_2" : NULL;
        if (own) norm_before(d, "w", "x", own, "feed-forward");
        infer_ffn(d, own ? "w" : "u");
        out(o, "x = x + %s(a + f)%s\n", times, guess);
        return;
    }
    if (out_a) out(o, "x = %s(x + %sa, attn_output_norm, eps)" PLACE "\n", fn, times);
    else if (post_a && !late) out(o, "x = x + %s%s(a, post_attention_norm, eps)" PLACE "\n", times, fn);
    else out(o, "x = x + %sa%s\n", times, guess);
    const char *own = mid ? "ffn_norm" : late ? "post_attention_norm" : NULL;
    norm_before(d, "w", "x", own, "feed-forward");
    infer_ffn(d, "w");
    if (out_f) out(o, "x = %s(x + %sf, layer_output_norm, eps)" PLACE "\n", fn, times);
    else if (post_f) out(o, "x = x + %s%s(f, post_ffw_norm, eps)" PLACE "\n", times, fn);
    else out(o, "x = x + %sf\n", times);
}

static void infer_model(Draft *d) {
    Out *o = &d->model;
    const char *fn = norm_fn(d);
    bool learned = gguf_tensor(d->g, S("position_embd.weight")) != NULL, types = top_tensor(d, "token_types") != NULL;
    top_tensor(d, "token_embd"), top_tensor(d, "output");
    out(&d->tensors, "tensor token_embd : vocab, d\n");
    bool scaled = key(d, "embedding_scale");
    if (scaled) out(&d->sizes, "real  escale = embedding_scale\n");
    out(o, "x = token_embd[token]%s%s%s\n", scaled ? " * escale" : "", learned ? " + position_embd[position]" : "",
        scaled ? "    # GUESS: multiplied by" : "");
    if (learned) out(&d->tensors, "tensor position_embd : context_length, d\n");
    if (types) out(&d->doubts, "#   token_types: left out\n");
    if (top_tensor(d, "token_embd_norm")) {
        norm_tensor(d, &d->tensors, "token_embd_norm", "d", false);
        out(o, "x = %s(x, token_embd_norm, eps)\n", fn);
    }
    out(o, "run block(x)\n");
    const char *last = "x", *guess = "    # GUESS: no norm before the head";
    if (top_tensor(d, "output_norm")) {
        norm_tensor(d, &d->tensors, "output_norm", "d", false);
        last = str_z(d->a, str_fmt(d->a, "%s(x, output_norm, eps)", fn)), guess = "";
    } else if (!d->norms && d->plain_eps) {
        last = str_z(d->a, str_fmt(d->a, "%s(x, eps)", fn));
        guess = "    # GUESS: a norm without weights before the head";
    }
    if (*guess) out(&d->doubts, "#   the last norm: no output_norm\n");
    const GgufKey *scale = key(d, "logit_scale"), *cap = key(d, "final_logit_softcapping");
    if (scale)
        out(&d->sizes, "real  lscale = logit_scale\n"),
            out(&d->doubts, "#   logit_scale: multiplied by, not divided by\n");
    if (cap) out(&d->sizes, "real  cap   = final_logit_softcapping\n");
    if (scale) guess = str_z(d->a, str_fmt(d->a, "    # GUESS: multiplied by%s%s", *guess ? "; " : "",
        *guess ? guess + strlen("    # GUESS: ") : ""));
    out(o, "z = head(%s)%s%s\n", last, scale ? " * lscale" : "", guess);
    out(o, cap ? "logits = softcap(z, cap)\n" : "logits = z\n");
}

// ---- what is left over ----

static bool listed(const Str *list, int n, Str s) {
    for (int i = 0; i < n; i++)
        if (str_eq(list[i], s)) return true;
    return false;
}

static void ignore_rest(Draft *d) {
    Str prefix = str_fmt(d->a, "%.*s.", FMT(d->arch));
    for (int i = 0; i < d->g->n_key; i++) {
        Str k = d->g->key[i].key;
        if (!str_starts(k, str_z(d->a, prefix)) || listed(d->read, d->n_read, k)) continue;
        Str own = {k.p + prefix.n, k.n - prefix.n};
        if (str_starts(own, "rope.scaling") || str_is(own, "context_length") || str_is(own, "attention.value_length"))
            continue;
        if (str_is(own, "vocab_size") || library_tells(d->a, "lib/decoder", own)) continue;
        out(&d->keys, "ignore %.*s    # GUESS: the draft does not know what it is for\n", FMT(own));
        out(&d->doubts, "#   key %.*s\n", FMT(own));
    }
    for (int i = 0; i < d->g->n_tensor; i++) {
        Str t = d->g->tensor[i].name;
        if (!str_starts(t, "blk.0.") || str_ends(t, ".bias")) continue;
        Str own = {t.p + 6, t.n - 6 - (str_ends(t, ".weight") ? 7 : 0)};
        if (!listed(d->bound, d->n_bound, own))
            out(&d->doubts, "#   tensor %.*s is not used; the build will say so\n", FMT(own));
    }
}

static void indented(Out *o, Str text) {
    o->indent = 1;
    out_str(o, text);
    o->indent = 0;
}

Str infer(Arena *a, const Gguf *g) {
    const GgufKey *arch = gguf_key(g, S("general.architecture"));
    if (!arch || arch->v.kind != GGUF_STR)
        fail("%s: no general.architecture: what the file is cannot be told", g->path);
    for (size_t i = 0; i < arch->v.s.n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", arch->v.s.p[i]) ||
            !arch->v.s.p[i])
            fail("%s: general.architecture is '%s': no name for a description", g->path, str_show(a, arch->v.s));
    Draft d = {.a = a, .g = g, .arch = arch->v.s};
    Out *parts[] = {&d.head, &d.sizes, &d.keys, &d.tensors, &d.layer, &d.model, &d.doubts};
    for (int i = 0; i < COUNT(parts); i++) *parts[i] = out_new(a);
    infer_sizes(&d);
    bool rope = infer_rope(&d);
    infer_layer(&d, rope);
    infer_model(&d);
    ignore_rest(&d);
    Out o = out_new(a);
    out(&o,
        "# A draft from the names, shapes and keys of one file. Every line with GUESS is to be checked against the "
        "paper or the code.\n");
    if (d.doubts.n) out(&o, "# What a file does not tell:\n%.*s", FMT(out_text(&d.doubts)));
    out(&o, "arch %.*s\nuse lib/attention, lib/ffn, lib/model, lib/decoder\n\n", FMT(d.arch));
    out_str(&o, out_text(&d.sizes));
    bool norms = strstr(str_z(a, out_text(&d.layer)), ", eps)") || strstr(str_z(a, out_text(&d.model)), ", eps)");
    if (norms) out_str(&o, d.eps);
    out(&o, "\nexpect attention.value_length == hd    # v as wide as k\n");
    out_str(&o, out_text(&d.keys));
    out(&o, "\n");
    out_str(&o, out_text(&d.tensors));
    out(&o, "\nlayer block[l < L](x) {\n");
    indented(&o, out_text(&d.layer));
    out(&o, "}\n\nmodel {\n");
    indented(&o, out_text(&d.model));
    out(&o, "}\n");
    return out_text(&o);
}
