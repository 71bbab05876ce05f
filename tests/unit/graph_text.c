// The text form of graphs: a graph that uses every corner prints as the text below and reads back as itself; broken text gives
// an error at its place; mutated text never gets past the laws. `graph_text N`: N mutations (fuzzing) instead of a few thousand.
#include "../../compiler/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int failures;
#define CHECK(c, ...)                                                                                                  \
    ((c) ? (void) 0 : (failures++, (void) printf("line %d: ", __LINE__), (void) printf(__VA_ARGS__), (void) puts("")))

static const char whole[] =
    "graph tiny \"Tiny \\\"T\\\"\\n \\xc3\\xa9\" layers=3 vocab=32 ctx=64 embd=8\n"
    "fact \"heads 2\" \"attention.head_count\"\n"
    "ignored \"blk.*\\x00\" \"its\\\\reason\"\n"
    "global x : [8]\n"
    "global logits : out [32]\n"
    "global ids : i32 const [2, 1]\n"
    "result logits\n"
    "rope rot halves dims=4 base=10000 scale=0.25 yarn ext=1 attn=1.1 beta_fast=32 beta_slow=1 orig=4096\n"
    "rope plain dims=2 base=1000000 scale=1\n"
    "param scale values=[0.1f, 0.1, -inf]\n"
    "numbers big values=[0, 9007199254740992]\n"
    "\n"
    "stage block layered {\n"
    "    weight norm type=F32 shape=[8] out=1 in=8 tensors=[0, 7, 14]\n"
    "    weight q+kv type=Q8_0 shape=[16, 8] out=16 in=8 product exact interleave=2 parts=[8 8] tensors=[1 8, 15 22, "
    "29 36]\n"
    "    weight norm type=F16 shape=[8] out=1 in=8 tensors=[2, 9, 16]\n"
    "    state kv k=[1, 4] v=[1, 4] sees=window n=16\n"
    "    kernel block_norm\n"
    "    kernel \"block-qkv\" heavy=.4\n"
    "    kernel \"\" heavy=weight.15\n"
    "    x.0 = get global=x : [8]\n"
    "    .1 = weight weight=norm : const [8]\n"
    "    h.2 = rms_norm(x.0, .1) eps=1e-06f : [8] @block_norm\n"
    "    h.3 = q8(h.2) : q8 [8] @block_norm\n"
    "    .4 = matmul(h.3) weight=q+kv : [16] @\"block-qkv\"\n"
    "    \"a \\\"b\\\"\".5 = slice(.4) axis=0 from=8 : [8]\n"
    "    q.6 = reshape(\"a \\\"b\\\"\".5) : [2, 4]\n"
    "    .7 = slice(.4) axis=0 from=4 : [4]\n"
    "    k.8 = reshape(.7) : [1, 4]\n"
    "    .9 = position : i32 []\n"
    "    .10 = angles(.9) rope=rot : [2, 2] @.2\n"
    "    .11 = rope(q.6, .10) dims=4 halves=1 : [2, 4] @.2\n"
    "    .12 = put(k.8, k.8) state=kv : handle [] @.2\n"
    "    .13 = param param=scale : const []\n"
    "    .14 = clamp(.13) p=-0 q=0.3333333333333333 : [] @.2\n"
    "    weight.15 = attention(.11, .12) scale=0.1f softcap=50 state=kv : [2, 4] @.2\n"
    "    .16 = mul(weight.15, .14) : [2, 4] @.2\n"
    "    .17 = reshape(.16) : [8]\n"
    "    .18 = set(.17) global=x : [8] @.2\n"
    "}\n"
    "\n"
    "stage head {\n"
    "    weight output type=Q4_K shape=[32, 8] out=32 in=8 product tensors=[0]\n"
    "    kernel head\n"
    "    x.0 = get global=x : [8]\n"
    "    x.1 = take(x.0) : out [8] @head\n"
    "    .2 = matmul(x.1) weight=output : out [4, 8] @head\n"
    "    .3 = reshape(.2) : out [32]\n"
    "    .4 = set(.3) global=logits : out [32] @head\n"
    "}\n"
    "\n"
    "run block first=0 count=3\n"
    "run head first=0 count=1\n";

// ---- a graph with every noun in it, made by hand ----

static int add_weight(Graph *g, int stage, Str name, const char *type, Shape shape, int64_t p0, int64_t p1) {
    Stage *s = &g->stage[stage];
    int64_t layers = s->layered ? g->n_layer : 1;
    Weight w = {.name = name,
        .shape = shape,
        .in = shape_last(shape),
        .type = type_named(str(type))->id,
        .n_part = p1 ? 2 : 1,
        .interleave = 1};
    w.out = shape_size(shape) / w.in;
    w.part_out = NEWN(g->arena, int64_t, 2);
    w.part_out[0] = p0, w.part_out[1] = p1;
    w.tensor = NEWN(g->arena, int, layers *w.n_part);
    for (int64_t i = 0; i < layers * w.n_part; i++) w.tensor[i] = (int) (i * 7 + s->n_weight);
    *PUSH(g->arena, s->weight, s->n_weight, s->cap_weight) = w;
    return s->n_weight - 1;
}

static Shape dims(int n, int64_t a, int64_t b) {
    return (Shape){.n = n, .d = {a, b}};
}

static void add_block(Graph *g, int x) {
    int b = graph_stage(g, S("block"), true);
    Stage *s = &g->stage[b];
    int norm = add_weight(g, b, S("norm"), "F32", dims(1, 8, 0), 1, 0);
    int qkv = add_weight(g, b, S("q+kv"), "Q8_0", dims(2, 16, 8), 8, 8);
    add_weight(g, b, S("norm"), "F16", dims(1, 8, 0), 1, 0); // a second one of that name
    s->weight[qkv].exact = true, s->weight[qkv].interleave = 2;
    State kv = {.name = S("kv"), .k = dims(2, 1, 4), .v = dims(2, 1, 4), .sees = SEES_WINDOW, .n = 16};
    *PUSH(g->arena, s->state, s->n_state, s->cap_state) = kv;
    *PUSH(g->arena, s->kernel, s->n_kernel, s->cap_kernel) = (KernelGroup){S("block_norm"), -1};
    *PUSH(g->arena, s->kernel, s->n_kernel, s->cap_kernel) = (KernelGroup){S("block-qkv"), 4};
    *PUSH(g->arena, s->kernel, s->n_kernel, s->cap_kernel) = (KernelGroup){S(""), 15};
    int v = node_new(g, b, NODE(.op = OP_get, .num = {x}, .name = S("x")));
    int w = node_new(g, b, NODE(.op = OP_weight, .weight = norm));
    int h = node_new(g, b, NODE(.op = OP_rms_norm, .n_in = 2, .in = {v, w}, .real = {(double) 1e-6f}, .name = S("h")));
    h = node_new(g, b, NODE(.op = OP_q8, .n_in = 1, .in = {h}, .name = S("h")));
    int p = node_new(g, b, NODE(.op = OP_matmul, .n_in = 1, .in = {h}, .weight = qkv));
    int q = node_new(
        g, b, NODE(.op = OP_slice, .n_in = 1, .in = {p}, .num = {0, 8}, .shape = dims(1, 8, 0), .name = S("a \"b\"")));
    q = node_new(g, b, NODE(.op = OP_reshape, .n_in = 1, .in = {q}, .shape = dims(2, 2, 4), .name = S("q")));
    int k = node_new(g, b, NODE(.op = OP_slice, .n_in = 1, .in = {p}, .num = {0, 4}, .shape = dims(1, 4, 0)));
    k = node_new(g, b, NODE(.op = OP_reshape, .n_in = 1, .in = {k}, .shape = dims(2, 1, 4), .name = S("k")));
    int pos = node_new(g, b, NODE(.op = OP_position));
    int angles = node_new(g, b, NODE(.op = OP_angles, .n_in = 1, .in = {pos}, .num = {0}));
    q = node_new(g, b, NODE(.op = OP_rope, .n_in = 2, .in = {q, angles}, .num = {4, 1}));
    int put = node_new(g, b, NODE(.op = OP_put, .n_in = 2, .in = {k, k}, .state = 0));
    int scale = node_new(g, b, NODE(.op = OP_param, .num = {0}));
    int low = node_new(g, b, NODE(.op = OP_clamp, .n_in = 1, .in = {scale}, .real = {-0.0, 1.0 / 3}));
    int att = node_new(
        g, b, NODE(.op = OP_attention, .n_in = 2, .in = {q, put}, .real = {(double) 0.1f, 50}, .name = S("weight")));
    att = node_new(g, b, NODE(.op = OP_mul, .n_in = 2, .in = {att, low}));
    att = node_new(g, b, NODE(.op = OP_reshape, .n_in = 1, .in = {att}, .shape = dims(1, 8, 0)));
    node_new(g, b, NODE(.op = OP_set, .n_in = 1, .in = {att}, .num = {x}));
    for (int i = 0; i < s->n_node; i++)
        if (op_info[s->node[i].op].class >= CLASS_ROW || op_info[s->node[i].op].class == CLASS_MAP)
            s->node[i].kernel = i < 4 ? 0 : i == 4 ? 1 : 2;
}

static void add_head(Graph *g, int x, int logits) {
    int b = graph_stage(g, S("head"), false);
    Stage *s = &g->stage[b];
    int w = add_weight(g, b, S("output"), "Q4_K", dims(2, 32, 8), 32, 0);
    *PUSH(g->arena, s->kernel, s->n_kernel, s->cap_kernel) = (KernelGroup){S("head"), -1};
    int v = node_new(g, b, NODE(.op = OP_get, .num = {x}, .name = S("x")));
    v = node_new(g, b, NODE(.op = OP_take, .n_in = 1, .in = {v}, .name = S("x")));
    v = node_new(g, b, NODE(.op = OP_matmul, .n_in = 1, .in = {v}, .weight = w, .shape = dims(2, 4, 8)));
    v = node_new(g, b, NODE(.op = OP_reshape, .n_in = 1, .in = {v}, .shape = dims(1, 32, 0)));
    node_new(g, b, NODE(.op = OP_set, .n_in = 1, .in = {v}, .num = {logits}));
    for (int i = 0; i < s->n_node; i++) s->node[i].kernel = i == 0 || i == 3 ? -1 : 0;
}

static Graph *make(Arena *a) {
    Graph *g = graph_new(a);
    g->arch = S("tiny"), g->name = S("Tiny \"T\"\n \xc3\xa9");
    g->n_layer = 3, g->n_vocab = 32, g->n_ctx = 64, g->n_embd = 8;
    *PUSH(a, g->fact, g->n_fact, g->cap_fact) = (Fact){S("heads 2"), S("attention.head_count")};
    *PUSH(a, g->ignored, g->n_ignored, g->cap_ignored) = (Fact){S("blk.*\0"), S("its\\reason")};
    int x = graph_global(g, S("x"), dims(1, 8, 0), F32, RATE_ROW);
    g->logits = graph_global(g, S("logits"), dims(1, 32, 0), F32, RATE_OUT);
    graph_global(g, S("ids"), dims(2, 2, 1), I32, RATE_CONST);
    Rope rope = {.name = S("rot"),
        .halves = true,
        .dims = 4,
        .base = 1e4,
        .scale = 0.25,
        .yarn = true,
        .ext = 1,
        .attn = 1.1,
        .beta_fast = 32,
        .beta_slow = 1,
        .orig = 4096};
    *PUSH(a, g->rope, g->n_rope, g->cap_rope) = rope;
    *PUSH(a, g->rope, g->n_rope, g->cap_rope) = (Rope){.name = S("plain"), .dims = 2, .base = 1e6, .scale = 1};
    Param p = {.name = S("scale"), .value = NEWN(a, double, 3)};
    p.value[0] = (double) 0.1f, p.value[1] = 0.1, p.value[2] = -HUGE_VAL;
    *PUSH(a, g->param, g->n_param, g->cap_param) = p;
    Numbers big = {.name = S("big"), .n = 2, .value = NEWN(a, int64_t, 2)};
    big.value[1] = INT64_C(1) << 53;
    *PUSH(a, g->numbers, g->n_numbers, g->cap_numbers) = big;
    add_block(g, x);
    add_head(g, x, g->logits);
    *PUSH(a, g->run, g->n_run, g->cap_run) = (Run){0, 0, 3};
    *PUSH(a, g->run, g->n_run, g->cap_run) = (Run){1, 0, 1};
    return g;
}

static Str print(Arena *a, const Graph *g) {
    Out o = out_new(a);
    graph_print(g, &o);
    return out_text(&o);
}

// ---- round trip ----

static void test_whole(void) {
    Arena *a = arena_new();
    Graph *made = make(a);
    graph_check(made, true);
    Str text = print(a, made);
    CHECK(str_is(text, whole), "the printed graph is not as expected:\n%.*s", FMT(text));
    Graph *g = graph_read(a, "whole", str(whole));
    CHECK(str_is(print(a, g), whole), "read and printed again it differs:\n%.*s", FMT(print(a, g)));
    // What the text cannot vouch for: that reader and printer agree on where a thing lives.
    const Stage *s = &g->stage[0], *m = &made->stage[0];
    CHECK(g->n_layer == 3 && g->n_vocab == 32 && g->n_ctx == 64 && g->n_embd == 8 && g->logits == 1 && g->n_run == 2,
        "header");
    CHECK(str_eq(g->name, made->name) && str_eq(g->ignored[0].name, made->ignored[0].name), "escaped names");
    CHECK(g->param[0].value[0] == (double) 0.1f && g->param[0].value[1] == 0.1 && g->param[0].value[2] == -HUGE_VAL,
        "param");
    CHECK(s->n_node == m->n_node && s->n_weight == 3 && s->n_state == 1 && s->kernel[2].heavy == 15, "stage");
    CHECK(memcmp(s->weight[1].tensor, m->weight[1].tensor, 6 * sizeof(int)) == 0 && s->weight[1].part_out[1] == 8,
        "parts");
    CHECK(s->weight[1].product && s->weight[1].exact && s->weight[1].interleave == 2 && !s->weight[0].product,
        "weight flags");
    CHECK(s->state[0].sees == SEES_WINDOW && s->state[0].n == 16 && s->layered && !g->stage[1].layered, "state");
    for (int i = 0; i < s->n_node; i++) {
        const Node *x = &s->node[i], *y = &m->node[i];
        CHECK(x->op == y->op && x->type == y->type && x->rate == y->rate && x->weight == y->weight &&
                x->state == y->state && x->kernel == y->kernel && x->n_in == y->n_in && str_eq(x->name, y->name) &&
                memcmp(x->in, y->in, sizeof x->in) == 0 && memcmp(x->real, y->real, sizeof x->real) == 0 &&
                memcmp(x->num, y->num, sizeof x->num) == 0 && memcmp(&x->shape, &y->shape, sizeof x->shape) == 0,
            "node %d differs", i);
    }
    arena_free(a);
}

// As a person writes it: no numbers, no shapes where they follow, comments, lists over lines; and more than 16 layers.
static void test_by_hand(void) {
    static const char text[] =
        "# a test\n\n graph t \"\" layers=18\nglobal x : [4]\nglobal y : out [4]\nresult y\n"
        "param s values=[1, 2, 3, 4, 5, 6, 7, 8, 9,\n  10, 11, 12, 13, 14, 15, 16, 17, 1e-05f] # all of them\n"
        "stage b layered { weight w type=F32 shape=[4, 4]\r\n"
        "  h = get global=x\n  h = mul(h, h)\n p = param param=s\n h = mul(h, p)\n m = matmul(h) weight=w\n n = set(m) "
        "global=x }\n"
        "stage e {\n h = get global=x\n t = take(h)\n set = set(t) global=y\n}\n"
        "run b first=0 count=18\nrun e first=0";
    Arena *a = arena_new();
    Graph *g = graph_read(a, "t", str(text));
    const Stage *s = &g->stage[0];
    CHECK(
        s->n_node == 6 && s->node[3].in[0] == 1 && s->node[1].in[1] == 0 && s->node[5].in[0] == 4, "latest of a name");
    CHECK(
        s->weight[0].in == 4 && s->weight[0].out == 4 && s->weight[0].product && !s->weight[0].tensor, "derived sizes");
    CHECK(g->stage[1].node[2].rate == RATE_OUT && g->param[0].value[17] == (double) 1e-05f, "derived rate");
    Str once = print(a, g);
    CHECK(str_eq(print(a, graph_read(a, "once", once)), once), "printed, read, printed");
    arena_free(a);
}

// Every value comes back bit for bit, in few digits.
static void test_reals(void) {
    static const struct {
        double v;
        const char *text;
    } list[] = {
        {0.1, "0.1"},
        {(double) 0.1f, "0.1f"},
        {0.5, "0.5"},
        {-0.0, "-0"},
        {1e-6, "1e-06"},
        {500000, "500000"},
        {1e22, "1e+22"},
        {1.0 / 3, "0.3333333333333333"},
        {(double) (1.0f / 3), "0.33333334f"},
        {5e-324, "5e-324"},
        {HUGE_VAL, "inf"},
        {(double) NAN, "nan"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {(double) 1e-45f, "1e-45f"},
        {0.1 + 0.2, "0.30000000000000004"},
    };
    for (int i = 0; i < COUNT(list); i++) {
        Arena *a = arena_new();
        Graph *g = graph_new(a);
        double v = list[i].v;
        g->n_layer = 1, g->logits = graph_global(g, S("x"), dims(0, 0, 0), F32, RATE_ROW);
        graph_stage(g, S("s"), true);
        *PUSH(a, g->run, g->n_run, g->cap_run) = (Run){0, 0, 1};
        *PUSH(a, g->param, g->n_param, g->cap_param) = (Param){S("p"), &v};
        Str text = print(a, g), want = str_fmt(a, "values=[%s]", list[i].text);
        bool found = false;
        for (size_t k = 0; k + want.n <= text.n; k++) found |= memcmp(text.p + k, want.p, want.n) == 0;
        CHECK(found, "%s is printed in\n%.*s", list[i].text, FMT(text));
        double back = graph_read(a, "t", text)->param[0].value[0];
        CHECK(memcmp(&back, &v, sizeof v) == 0, "%s came back as %.17g", list[i].text, back);
        arena_free(a);
    }
}

// ---- broken text ----

// Reads under a guard: NULL when it is refused, with the message in *why.
static Graph *try_read(Arena *a, Str text, const char **why) {
    FailGuard *guard = fail_guard();
    if (setjmp(guard->jmp)) {
        *why = guard->message;
        return NULL;
    }
    Graph *g = graph_read(a, "t", text);
    fail_unguard();
    return g;
}

static void test_errors(void) {
#define HEAD                                                                                                           \
    "graph t \"\" layers=1\nglobal x : [4]\nresult x\nrope r dims=4\nparam p values=[1]\nstage s layered {\n" // 6 lines
#define BODY HEAD "weight w type=F32 shape=[8, 4]\nstate kv k=[1, 4] v=[1, 4] sees=past\nh = get global=x\n"  // 9 lines
    static const struct {
        const char *text, *at, *message;
    } list[] = {
        {"", "t:1:1:", "a graph begins with"},
        {BODY "y = rms_nrm(h)", "t:10:5:", "did you mean rms_norm?"},
        {BODY "y = add(h, h.1)", "t:10:12:", "no such node before this place"},
        {BODY "y.1 = neg(y.1)", "t:10:11:", "no such node before this place"},
        {BODY "y = neg(q.0)", "t:10:9:", "called 'h'"},
        {BODY "y.7 = neg(h)", "t:10:1:", "this is node 1"},
        {BODY "y = add(h)", "t:10:5:", "add takes 2 to 2 operands, not 1"},
        {BODY "y = concat(h,h,h,h,h,h,h,h,h)", "t:10:28:", "at most 8 operands"},
        {BODY "y = l2_norm(h) eps=1e-6x", "t:10:20:", "bad number '1e-6x'"},
        {BODY "y = l2_norm(h) eps=0x1p3", "t:10:20:", "bad number"},
        {BODY "y = l2_norm(h) eps=1e999", "t:10:20:", "bad number"},
        {BODY "y = slice(h) axis=- : [4]", "t:10:19:", "bad number '-'"},
        {BODY "y = slice(h) axis=0 from=99999999999999999999 : [4]", "t:10:26:", "out of range"},
        {BODY "y = slice(h) axis=0 from=2 : [4]", "t:10:5:", "is needed here"},
        {BODY "y = slice(h) axis=0", "t:10:5:", "needs the resulting shape"},
        {BODY "y = neg(h) eps=1", "t:10:12:", "neg has no attribute 'eps'"},
        {BODY "y = neg(h) : [5]", "t:10:5:", "the text says f32 row [5], but f32 row [4] follows"},
        {BODY "y = neg(h) : out [4]", "t:10:5:", "the text says f32 out [4]"},
        {BODY "y = neg(h) : wide [4]", "t:10:14:", "no such type or rate"},
        {BODY "y = neg(h) : [4] @k", "t:10:19:", "no such kernel"},
        {BODY "y = matmul(h)", "t:10:5:", "matmul needs weight="},
        {BODY "y = matmul(h) weight=v", "t:10:22:", "no such weight"},
        {BODY "y = matmul(h) weight=.1", "t:10:22:", "no such weight"},
        {BODY "y = put(h, h)", "t:10:5:", "put needs state="},
        {BODY "y = get", "t:10:5:", "get needs global="},
        {BODY "y = neg(h) weight=w", "t:10:5:", "neg has no weight"},
        {BODY "y = neg(h", "t:10:10:", "')' was expected here, not the end of the text"},
        {BODY "y = neg(h) ]", "t:10:12:", "was expected here, not ]"},
        {BODY "\"y = neg(h)\n", "t:10:12:", "'\"' was expected here, not the end of the line"},
        {BODY "\"\\q\" = neg(h)\n", "t:10:3:", "unknown escape"},
        {BODY "weight v type=Q9 shape=[4]", "t:10:15:", "no such tensor type"},
        {BODY "weight v type=F32 shape=[4, 0]", "t:10:29:", "out of range"},
        {BODY "weight v type=F32 shape=[9000000000, 9000000000]", "t:10:25:", "more than"},
        {BODY "weight v type=F32 shape=[4, 4] parts=[2 1]", "t:10:", "3 outputs together, the weight 4"},
        {BODY "weight v type=F32 shape=[4, 4] tensors=[2, 1]", "t:10:40:", "do not make 1 layers"},
        {BODY "weight v type=F32 shape=[4, 4] parts=[2 2] tensors=[2, 1]", "t:10:54:", "a number was expected here"},
        {BODY "kernel k heavy=q.1\n}", "t:10:16:", "no such node"},
        {BODY "state v k=[4] v=[1, 4] sees=past", "t:10:", "each [heads, width]"},
        {BODY "state v k=[4, 4] v=[1, 4] sees=never", "t:10:32:", "past, window, chunk, all or around"},
        {BODY "hello", "t:10:1:", "a weight, a state, a kernel or a node"},
        {BODY "}\nrun s count=2", "", "runs cover 2 of 1 layers"},
        {BODY "}\nhello", "t:11:1:", "stage or run was expected"},
        {BODY "}\nparam q values=[1, 2]", "t:11:16:", "a value for each of the 1 layers, not 2"},
        {BODY "}\nglobal q : handle []", "t:11:1:", "a state is no global"},
    };
    for (int i = 0; i < COUNT(list); i++) {
        Arena *a = arena_new();
        const char *why = "nothing, it was accepted";
        try_read(a, str(list[i].text), &why);
        CHECK(strncmp(why, list[i].at, strlen(list[i].at)) == 0 && strstr(why, list[i].message),
            "expected %s ... %s\nfound %s", list[i].at, list[i].message, why);
        arena_free(a);
    }
}

// Deterministic mutations of the whole text: bytes, spans copied from elsewhere, numbers swapped for nasty ones. What is accepted
// prints to something that reads back as itself.
static void test_mutations(int n) {
    static const char *const nasty[] = {"0", "-1", "99999999", "9007199254740992", ".0", ".99", "[]", "[1]", "\"\"",
        " ", "\n", "nan", "const", "handle", "q8", "out", "weight=.0", "state=kv", "@.0", "h", "x.0", "}", "{",
        "attention", "concat"};
    uint64_t seed = 1;
    int accepted = 0;
    for (int i = 0; i < n; i++) {
        char text[sizeof whole + 1024];
        size_t len = sizeof whole - 1;
        memcpy(text, whole, len);
        int edits = 1 + i % 3;
        for (int e = 0; e < edits; e++) {
#define RANDOM(m) ((size_t) ((seed = hash64(&seed, sizeof seed, (uint64_t) i)) >> 20) % (size_t) (m))
            size_t at = RANDOM(len), cut = RANDOM(12), from = RANDOM(len), put = RANDOM(30);
            const char *with = whole + from % (sizeof whole - 40);
            switch (RANDOM(4)) {
            case 0: text[at] = (char) RANDOM(256); continue;
            case 1: with = nasty[RANDOM(COUNT(nasty))], put = strlen(with); break;
            case 2: put = 0; break;
            default: break;
            }
            if (cut > len - at) cut = len - at;
            memmove(text + at + put, text + at + cut, len - at - cut);
            memcpy(text + at, with, put);
            len += put - cut;
        }
        Arena *a = arena_new();
        const char *why = "";
        char *exact = malloc(len); // so that a sanitizer sees a read past the end
        memcpy(exact, text, len);
        Graph *g = try_read(a, (Str){exact, len}, &why);
        if (g) {
            Str once = print(a, g);
            Graph *again = try_read(a, once, &why);
            accepted++;
            CHECK(again && str_eq(print(a, again), once),
                "mutation %d is accepted, printed as\n%.*sand then not the same: %s", i, FMT(once), why);
        }
        free(exact);
        arena_free(a);
    }
    CHECK(accepted > n / 50 && accepted < n, "%d of %d mutations were accepted: the test tests nothing", accepted, n);
}

int main(int argc, char **argv) {
    test_whole();
    test_by_hand();
    test_reals();
    test_errors();
    test_mutations(argc > 1 ? atoi(argv[1]) : 3000);
    if (failures) printf("%d failed\n", failures);
    return failures != 0;
}
