// A graph from its text (graph_text.c shows the form). In: text from anywhere, hostile until checked. Out: a graph that
// graph_check accepts, or an error with a caret at the place. Nodes are made by node_new, so text obeys the laws of
// code: what the text says of a node's type, rate and shape must be what follows from its operands.
#include "graph_text.h"

#include <math.h>
#include <stdlib.h>

// ---- reading: characters, words, numbers ----

typedef struct {
    Graph *g;
    Arena *arena;
    const char *file;
    Str text;
    size_t at;
} Reader;

// No count in a graph comes near this: sums of many stay within int64_t, and a double holds it.
static const int64_t largest = (int64_t) 1 << 53;

static int peek(const Reader *r) {
    return r->at < r->text.n ? (unsigned char) r->text.p[r->at] : -1;
}

static Loc here(const Reader *r) {
    return (Loc){r->file, r->text, (uint32_t) r->at};
}

static void skip_blanks(Reader *r) {
    while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\r') r->at++;
    if (peek(r) == '#')
        while (peek(r) != '\n' && peek(r) != -1) r->at++;
}

static void skip_lines(Reader *r) {
    for (skip_blanks(r); peek(r) == '\n'; skip_blanks(r)) r->at++;
}

static _Noreturn void expected(Reader *r, const char *what) {
    int c = peek(r);
    const char *found = c == -1 ? "the end of the text" : c == '\n' ? "the end of the line" : NULL;
    if (!found) found = str_show(r->arena, (Str){r->text.p + r->at, 1});
    fail_at(here(r), "%s was expected here, not %s", what, found);
}

static bool accept(Reader *r, char c) {
    skip_blanks(r);
    if (peek(r) != c) return false;
    r->at++;
    return true;
}

static void expect(Reader *r, char c) {
    if (!accept(r, c)) expected(r, (const char[]){'\'', c, '\'', 0});
}

static bool line_ends(Reader *r) {
    skip_blanks(r);
    return peek(r) == '\n' || peek(r) == -1 || peek(r) == '}';
}

static void end_line(Reader *r) {
    if (!line_ends(r)) expected(r, "the end of the statement");
}

// Letters, digits, _ and +, the first a letter; empty when there is none.
static Str read_word(Reader *r) {
    skip_blanks(r);
    size_t from = r->at;
    if (is_letter(peek(r)))
        while (is_letter(peek(r)) || is_digit(peek(r)) || peek(r) == '+') r->at++;
    return (Str){r->text.p + from, r->at - from};
}

static int hex_digit(int c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static Str read_quoted(Reader *r) {
    expect(r, '"');
    size_t room = 0, n = 0;
    while (r->at + room < r->text.n && r->text.p[r->at + room] != '\n') room++; // no string is longer than its line
    char *p = arena_alloc(r->arena, room);
    for (;; r->at++) {
        int c = peek(r);
        if (c == '"') break;
        if (c == -1 || c == '\n') expected(r, "'\"'");
        if (c == '\\') {
            r->at++;
            c = peek(r);
            if (c == 'x' && r->at + 2 < r->text.n) {
                int high = hex_digit(r->text.p[r->at + 1]), low = hex_digit(r->text.p[r->at + 2]);
                if (high < 0 || low < 0) fail_at(here(r), "\\x takes two digits of 0-9 and a-f");
                c = high * 16 + low;
                r->at += 2;
            } else if (c == 'n') c = '\n';
            else if (c != '"' && c != '\\') fail_at(here(r), "unknown escape; known: \\n \\\\ \\\" \\x00 to \\xff");
        }
        p[n++] = (char) c;
    }
    r->at++;
    return (Str){p, n};
}

static Str read_name(Reader *r) {
    skip_blanks(r);
    if (peek(r) == '"') return read_quoted(r);
    Str word = read_word(r);
    if (!word.n) expected(r, "a name");
    return word;
}

// The characters of a number, whatever they are; the caller judges them.
static Str read_number(Reader *r) {
    skip_blanks(r);
    size_t from = r->at;
    while (is_letter(peek(r)) || is_digit(peek(r)) || peek(r) == '.' || peek(r) == '-' || peek(r) == '+') r->at++;
    if (r->at == from) expected(r, "a number");
    return (Str){r->text.p + from, r->at - from};
}

static int64_t read_int(Reader *r, int64_t min, int64_t max) {
    skip_blanks(r);
    Loc loc = here(r);
    Str s = read_number(r);
    bool minus = s.p[0] == '-';
    int64_t v = 0;
    for (size_t i = minus; i < s.n || i == minus; i++) {
        if (i == s.n || !is_digit(s.p[i]))
            fail_at(loc, "bad number '%s': an integer was expected", str_show(r->arena, s));
        if (v <= largest) v = v * 10 + (s.p[i] - '0'); // else it is out of range already
    }
    if (minus) v = -v;
    if (v < min || v > max)
        fail_at(loc, "%s is out of range: %lld to %lld", str_show(r->arena, s), (long long) min, (long long) max);
    return v;
}

static double read_real(Reader *r) {
    skip_blanks(r);
    Loc loc = here(r);
    Str s = read_number(r);
    if (str_is(s, "inf")) return HUGE_VAL;
    if (str_is(s, "-inf")) return -HUGE_VAL;
    if (str_is(s, "nan")) return (double) NAN;
    bool single = s.p[s.n - 1] == 'f';
    Str digits = {s.p, s.n - single};
    bool decimal = digits.n > 0;
    for (size_t i = 0; i < digits.n; i++) decimal &= is_digit(s.p[i]) || strchr("+-.eE", s.p[i]) != NULL; // no hex
    const char *z = str_z(r->arena, digits);
    char *end;
    double v = single ? (double) strtof(z, &end) : strtod(z, &end);
    if (!decimal || *end || !isfinite(v))
        fail_at(loc, "bad number '%s': a real was expected, like 0.5 or 1e-05f", str_show(r->arena, s));
    return v;
}

static Shape read_shape(Reader *r) {
    Shape s = {0};
    skip_blanks(r);
    Loc loc = here(r);
    expect(r, '[');
    int64_t size = 1;
    while (!accept(r, ']')) {
        if (s.n) expect(r, ',');
        if (s.n == MAX_DIM) fail_at(here(r), "a shape has at most %d axes", MAX_DIM);
        s.d[s.n] = read_int(r, 1, largest);
        if (__builtin_mul_overflow(size, s.d[s.n++], &size) || size > largest) fail_at(loc, "more than 2^53 values");
    }
    return s;
}

static int word_in(Str word, const char *const *list, int n) {
    for (int i = 0; i < n; i++)
        if (str_is(word, list[i])) return i;
    return -1;
}

// ---- reading: references ----

typedef struct {
    Str name;      // "" when there is none
    int64_t index; // -1 when there is none
    Loc loc;
} Ref;

static Ref read_ref(Reader *r) {
    skip_blanks(r);
    Ref ref = {.index = -1, .loc = here(r)};
    if (peek(r) != '.') ref.name = read_name(r);
    if (peek(r) == '.') {
        r->at++;
        ref.index = read_int(r, 0, INT32_MAX);
    }
    return ref;
}

static int read_row(Reader *r, Table t) {
    Ref ref = read_ref(r);
    int i = ref.index >= 0 ? (ref.index < t.n ? (int) ref.index : -1) : row_named(t, ref.name);
    if (i < 0) fail_at(ref.loc, "no such %s; %d of them have been declared so far", t.what, t.n);
    if (ref.name.n && !str_eq(ref.name, row_name(t, i))) fail_at(ref.loc, "%s %d has another name", t.what, i);
    return i;
}

static int read_operand(Reader *r, const Stage *s) {
    Ref ref = read_ref(r);
    int i = s->n_node - 1;
    if (ref.index < 0)
        while (i >= 0 && !str_eq(s->node[i].name, ref.name)) i--;
    else i = ref.index < s->n_node ? (int) ref.index : -1;
    if (i < 0) fail_at(ref.loc, "no such node before this place; an operand stands before its use");
    if (ref.name.n && !str_eq(ref.name, s->node[i].name))
        fail_at(ref.loc, "node %d is called '%s' where it is made", i, str_show(r->arena, s->node[i].name));
    return i;
}

// ---- reading: statements ----

static void read_field(Reader *r, const Field *f, void *base) {
    void *p = (char *) base + f->at;
    if (f->kind == FLAG) {
        *(bool *) p = true;
        return;
    }
    expect(r, '=');
    skip_blanks(r);
    Loc loc = here(r);
    switch (f->kind) {
    case INT: *(int64_t *) p = read_int(r, 0, largest); break;
    case SMALL: *(int *) p = (int) read_int(r, 0, 1 << 24); break;
    case REAL: *(double *) p = read_real(r); break;
    case SHAPE: *(Shape *) p = read_shape(r); break;
    case SEES: {
        int i = word_in(read_word(r), sees_word, COUNT(sees_word));
        if (i < 0) fail_at(loc, "past, window, chunk, all or around was expected");
        *(Sees *) p = (Sees) i;
        break;
    }
    case KIND: {
        int i = word_in(read_word(r), kind_word, COUNT(kind_word));
        if (i < 0) fail_at(loc, "cache, tail or cell was expected");
        *(StateKind *) p = (StateKind) i;
        break;
    }
    case TENSOR_TYPE: {
        const TypeInfo *t = type_named(read_name(r));
        if (!t) fail_at(loc, "no such tensor type");
        *(int *) p = t->id;
        break;
    }
    case FLAG: break;
    }
}

// One field, when the next word is one of the table; else the word stays unread.
static bool read_one_field(Reader *r, const Field *f, int n, void *base) {
    size_t start = r->at;
    Str word = read_word(r);
    for (; n--; f++)
        if (str_is(word, f->word)) {
            read_field(r, f, base);
            return true;
        }
    r->at = start;
    return false;
}

static void read_fields(Reader *r, const Field *f, int n, void *base) {
    while (!line_ends(r) && peek(r) != '{')
        if (!read_one_field(r, f, n, base)) fail_at(here(r), "no such field here; the first there is is '%s'", f->word);
}
#define READ_FIELDS(r, table, p) read_fields(r, table, COUNT(table), p)

// "[1 2, 3 4]": groups of `each` values (0: one group of any size), integers up to max, or reals when max is 0.
// Returns how many.
static int read_list(Reader *r, int each, int64_t max, double **list) {
    int n = 0, cap = 0;
    *list = NULL;
    expect(r, '[');
    for (;;) {
        skip_lines(r);
        if (accept(r, ']')) return n;
        if (each > 0 && n > 0 && n % each == 0) {
            expect(r, ',');
            skip_lines(r);
        }
        double v = max ? (double) read_int(r, 0, max) : read_real(r);
        *PUSH(r->arena, *list, n, cap) = v;
    }
}

// What follows from the rest of a weight's line, and whether it all agrees.
static void finish_weight(Reader *r, const Stage *s, Weight *w, int n_tensor, Loc loc) {
    int64_t layers = s->layered ? r->g->n_layer : 1, sum = 0, products = weight_stack(w);
    if (w->type < 0 || !w->shape.n) fail_at(loc, "a weight needs type= and shape=");
    if (!w->in) w->in = shape_last(w->shape);
    if (!w->out) w->out = shape_size(w->shape) / shape_last(w->shape) / products;
    if (!w->part_out) *(w->part_out = NEW(r->arena, int64_t)) = w->out;
    if (w->stack && __builtin_mul_overflow(w->stack, w->out, &products)) fail_at(loc, "more than 2^53 outputs");
    if (w->apart && !w->stack) fail_at(loc, "only a stack has its products apart");
    if (w->tensor && (w->n_part == 0 || n_tensor / weight_tensors(w) != layers || n_tensor % weight_tensors(w)))
        fail_at(loc, "%d tensors do not make %lld layers of %lld", n_tensor, (long long) layers,
            (long long) weight_tensors(w));
    for (int i = 0; i < w->n_part && sum <= largest; i++) sum += w->part_out[i];
    if (sum != w->out)
        fail_at(loc, "the parts have %lld outputs together, the weight %lld", (long long) sum, (long long) w->out);
}

static void read_weight(Reader *r, Stage *s) {
    Weight w = {.type = -1, .interleave = 1, .n_part = 1, .name = read_name(r)};
    Loc loc = here(r);
    double *list = NULL, *tensors = NULL;
    int n_tensor = 0;
    while (!line_ends(r)) {
        if (read_one_field(r, weight_fields, COUNT(weight_fields), &w)) continue;
        skip_blanks(r);
        Loc at = here(r);
        Str word = read_word(r);
        if (str_is(word, "parts")) {
            expect(r, '=');
            w.n_part = read_list(r, 0, largest, &list);
            w.part_out = NEWN(r->arena, int64_t, w.n_part);
            for (int i = 0; i < w.n_part; i++) w.part_out[i] = (int64_t) list[i];
        } else if (str_is(word, "tensors")) {
            expect(r, '=');
            loc = here(r);
            if (w.n_part < 1 || weight_stack(&w) > INT32_MAX / w.n_part) fail_at(loc, "too many tensors, or none");
            n_tensor = read_list(r, (int) weight_tensors(&w), INT32_MAX, &tensors);
            w.tensor = NEWN(r->arena, int, n_tensor);
            for (int i = 0; i < n_tensor; i++) w.tensor[i] = (int) tensors[i];
        } else
            fail_at(
                at, "a weight has type, shape, out, in, stack, apart, product, exact, interleave, parts and tensors");
    }
    finish_weight(r, s, &w, n_tensor, loc);
    *PUSH(r->arena, s->weight, s->n_weight, s->cap_weight) = w;
}

static void check_state(const State *st, Loc loc) {
    if (st->kind == STATE_CACHE && (st->k.n != 2 || (st->v.n != 2 && st->v.n != 0)))
        fail_at(loc, "a cache needs k= and v=, each [heads, width], or k= alone");
    if (st->kind == STATE_TAIL && (st->k.n < 1 || st->k.n == MAX_DIM || st->v.n || st->n < 1))
        fail_at(loc, "a tail needs k= and n=");
    if (st->kind == STATE_CELL && (st->k.n != 3 || st->v.n)) fail_at(loc, "a cell needs k=[heads, keys, values]");
    if (st->kind == STATE_BLEND && (st->k.n != 2 || st->v.n || st->n < 1))
        fail_at(loc, "a blend needs k=[blocks, channels] and n=");
    if (st->every < 0 || (st->every > 1 && (st->kind != STATE_CACHE || st->sees != SEES_PAST)))
        fail_at(loc, "only a cache that sees the past has a record every so many positions");
}

static void read_state(Reader *r, Stage *s) {
    Loc loc = here(r);
    State st = {.name = read_name(r)};
    double *list = NULL;
    while (!line_ends(r)) {
        if (read_one_field(r, state_fields, COUNT(state_fields), &st)) continue;
        if (!str_is(read_word(r), "sources")) fail_at(loc, "a state has kind, k, v, sees, n, every and sources");
        expect(r, '=');
        int n = read_list(r, 1, INT32_MAX, &list);
        if (n != r->g->n_layer) fail_at(loc, "%d sources for %lld layers", n, (long long) r->g->n_layer);
        st.source = NEWN(r->arena, int, n + 1);
        for (int i = 0; i < n; i++) st.source[i] = (int) list[i];
    }
    check_state(&st, loc);
    *PUSH(r->arena, s->state, s->n_state, s->cap_state) = st;
}

// A name or number of the operator, weight= or state=. `seen`: bit i for num[i].
static void read_attr(Reader *r, const Stage *s, NodeSpec *spec, unsigned *seen) {
    skip_blanks(r);
    Loc loc = here(r);
    Str word = read_word(r);
    if (!word.n) expected(r, "an attribute, ':' or '@'");
    AttrWalk w = attrs_of(spec->op);
    Table t;
    while (attr_next(&w) && !str_eq(w.name, word)) {}
    bool weight = str_is(word, "weight"), state = str_is(word, "state");
    if (!w.name.n && !weight && !state)
        fail_at(loc, "%s has no attribute '%s'", op_info[spec->op].name, str_show(r->arena, word));
    expect(r, '=');
    if (weight) spec->weight = read_row(r, TABLE("weight", s->weight, s->n_weight));
    else if (state) spec->state = read_row(r, TABLE("state", s->state, s->n_state));
    else if (!w.num) spec->real[w.index] = read_real(r);
    else {
        spec->num[w.index] = attr_table(r->g, word, &t) ? read_row(r, t) : read_int(r, -largest, largest);
        *seen |= 1u << w.index;
    }
}

// What node_new takes for granted: everything that the operator points at is there.
static void check_spec(const Graph *g, const NodeSpec *spec, unsigned seen, bool has_value) {
    const char *name = op_info[spec->op].name;
    Table t;
    for (AttrWalk w = attrs_of(spec->op); attr_next(&w);)
        if (w.num && attr_table(g, w.name, &t) && !(seen & 1u << w.index))
            fail_at(spec->loc, "%s needs %s=", name, t.what);
    bool weight = op_has_weight(spec->op),
         own_state = op_has_state(spec->op) && spec->op != OP_attention && spec->op != OP_pick;
    if (weight && spec->weight < 0) fail_at(spec->loc, "%s needs weight=", name);
    if (!weight && spec->weight >= 0 && spec->op != OP_angles) fail_at(spec->loc, "%s has no weight", name);
    if (own_state && spec->state < 0) fail_at(spec->loc, "%s needs state=", name);
    if (!op_has_state(spec->op) && spec->state >= 0) fail_at(spec->loc, "%s has no state", name);
    if ((spec->op == OP_reshape || spec->op == OP_slice) && !has_value)
        fail_at(spec->loc, "%s needs the resulting shape: ' : [..]'", name);
}

// " : type rate [shape]", after the colon.
static void read_value(Reader *r, DType *type, Rate *rate, Shape *shape) {
    *type = F32;
    *rate = RATE_ROW;
    for (;;) {
        skip_blanks(r);
        Loc loc = here(r);
        Str word = read_word(r);
        int t = word_in(word, type_word, COUNT(type_word)), e = word_in(word, rate_word, COUNT(rate_word));
        if (!word.n) break;
        if (t >= 0) *type = (DType) t;
        else if (e >= 0) *rate = (Rate) e;
        else fail_at(loc, "no such type or rate; types: f32, i32, q8, handle; rates: const, row, out");
    }
    *shape = read_shape(r);
}

static Op read_op(Reader *r) {
    skip_blanks(r);
    Loc loc = here(r);
    Str word = read_word(r);
    int best = 0, least = 1000;
    if (!word.n) expected(r, "an operator");
    for (int i = 0; i < N_OP; i++) {
        int d = edit_distance(word, str(op_info[i].name));
        if (str_is(word, op_info[i].name)) return (Op) i;
        if (d < least) least = d, best = i;
    }
    fail_at(loc, "no such operator: '%s'; did you mean %s?", str_show(r->arena, word), op_info[best].name);
}

static void check_made(Reader *r, const Node *n, bool has_value, DType type, Rate rate, Shape shape, int state) {
    int64_t size = 1;
    bool fits = true, same = type == n->type && rate == n->rate && shape.n == n->shape.n;
    for (int i = 0; i < n->shape.n; i++) {
        fits &= n->shape.d[i] >= 1 && !__builtin_mul_overflow(size, n->shape.d[i], &size) && size <= largest;
        same &= shape.d[i] == n->shape.d[i];
    }
    if (!fits) fail_at(n->loc, "%s has no values, or more than 2^53", op_info[n->op].name);
    if (has_value && !same)
        fail_at(n->loc, "the text says %s %s %s, but %s %s %s follows from the operands", type_word[type],
            rate_word[rate], shape_show(r->arena, shape), type_word[n->type], rate_word[n->rate],
            shape_show(r->arena, n->shape));
    if (state >= 0 && state != n->state) fail_at(n->loc, "the text names another state than the operands");
}

static void read_node(Reader *r, int stage, Ref ref) {
    Stage *s = &r->g->stage[stage];
    if (ref.index >= 0 && ref.index != s->n_node)
        fail_at(ref.loc, "this is node %d of the stage; the number may be left out", s->n_node);
    skip_blanks(r);
    NodeSpec spec = NODE(.name = ref.name, .loc = here(r));
    unsigned seen = 0;
    DType type = F32;
    Rate rate = RATE_ROW;
    Shape shape = {0};
    spec.op = read_op(r);
    if (accept(r, '(') && !accept(r, ')')) {
        do {
            if (spec.n_in == MAX_IN) fail_at(here(r), "an operator has at most %d operands", MAX_IN);
            spec.in[spec.n_in] = read_operand(r, s);
            spec.n_in++;
        } while (accept(r, ','));
        expect(r, ')');
    }
    while (!line_ends(r) && peek(r) != ':' && peek(r) != '@') read_attr(r, s, &spec, &seen);
    bool has_value = accept(r, ':');
    if (has_value) read_value(r, &type, &rate, &shape);
    int kernel = accept(r, '@') ? read_row(r, TABLE("kernel", s->kernel, s->n_kernel)) : -1;
    check_spec(r->g, &spec, seen, has_value);
    if (spec.op == OP_reshape || spec.op == OP_slice || (op_has_weight(spec.op) && spec.op != OP_weight))
        spec.shape = shape;
    int made = node_new(r->g, stage, spec);
    Node *n = &s->node[made];
    n->kernel = kernel;
    check_made(r, n, has_value, type, rate, shape, spec.state);
}

static void read_stage(Reader *r) {
    int stage = graph_stage(r->g, read_name(r), false), n_at = 0, cap_at = 0;
    Stage *s = &r->g->stage[stage];
    size_t *heavy_at = NULL; // where each kernel names its heavy node, which comes later; 0: nowhere
    READ_FIELDS(r, stage_fields, s);
    expect(r, '{');
    for (skip_lines(r); !accept(r, '}'); end_line(r), skip_lines(r)) {
        Ref ref = read_ref(r);
        if (accept(r, '=')) read_node(r, stage, ref);
        else if (str_is(ref.name, "weight")) read_weight(r, s);
        else if (str_is(ref.name, "state")) read_state(r, s);
        else if (str_is(ref.name, "kernel")) {
            *PUSH(r->arena, s->kernel, s->n_kernel, s->cap_kernel) = (KernelGroup){.name = read_name(r), .heavy = -1};
            bool heavy = !line_ends(r);
            if (heavy && !str_is(read_word(r), "heavy")) expected(r, "heavy=");
            if (heavy) expect(r, '=');
            *PUSH(r->arena, heavy_at, n_at, cap_at) = heavy ? r->at : 0;
            if (heavy) read_ref(r);
        } else fail_at(ref.loc, "a weight, a state, a kernel or a node ('name = operator(..)') was expected");
    }
    size_t end = r->at;
    for (int i = 0; i < s->n_kernel; i++)
        if ((r->at = heavy_at[i]) > 0) s->kernel[i].heavy = read_operand(r, s);
    r->at = end;
}

static void read_param(Reader *r) {
    Graph *g = r->g;
    Param p = {.name = read_name(r)};
    if (!str_is(read_word(r), "values")) expected(r, "values=");
    expect(r, '=');
    Loc loc = here(r);
    int n = read_list(r, 1, 0, &p.value);
    if (n != g->n_layer)
        fail_at(loc, "a param has a value for each of the %lld layers, not %d", (long long) g->n_layer, n);
    *PUSH(r->arena, g->param, g->n_param, g->cap_param) = p;
}

static void read_numbers(Reader *r) {
    Graph *g = r->g;
    Numbers v = {.name = read_name(r)};
    double *list;
    if (!str_is(read_word(r), "values")) expected(r, "values=");
    expect(r, '=');
    v.n = read_list(r, 1, largest, &list);
    v.value = NEWN(r->arena, int64_t, v.n);
    for (int i = 0; i < v.n; i++) v.value[i] = (int64_t) list[i];
    *PUSH(r->arena, g->numbers, g->n_numbers, g->cap_numbers) = v;
}

static void read_statement(Reader *r, Loc loc, Str word) {
    Graph *g = r->g;
    if (str_is(word, "stage")) read_stage(r);
    else if (str_is(word, "param")) read_param(r);
    else if (str_is(word, "numbers")) read_numbers(r);
    else if (str_is(word, "result")) g->logits = read_row(r, TABLE("global", g->global, g->n_global));
    else if (str_is(word, "output"))
        *PUSH(r->arena, g->output, g->n_output, g->cap_output) = read_row(r, TABLE("global", g->global, g->n_global));
    else if (str_is(word, "fact")) {
        Fact *f = PUSH(r->arena, g->fact, g->n_fact, g->cap_fact);
        f->name = read_quoted(r);
        f->note = read_quoted(r);
    } else if (str_is(word, "ignored")) {
        Fact *f = PUSH(r->arena, g->ignored, g->n_ignored, g->cap_ignored);
        f->name = read_quoted(r);
        f->note = read_quoted(r);
    } else if (str_is(word, "global")) {
        Global v = {.name = read_name(r)};
        expect(r, ':');
        read_value(r, &v.type, &v.rate, &v.shape);
        if (v.type == HANDLE) fail_at(loc, "a state is no global");
        graph_global(g, v.name, v.shape, v.type, v.rate);
    } else if (str_is(word, "rope")) {
        Rope v = {.name = read_name(r)};
        READ_FIELDS(r, rope_fields, &v);
        *PUSH(r->arena, g->rope, g->n_rope, g->cap_rope) = v;
    } else if (str_is(word, "run")) {
        Run v = {.stage = read_row(r, TABLE("stage", g->stage, g->n_stage)), .count = 1};
        READ_FIELDS(r, run_fields, &v);
        *PUSH(r->arena, g->run, g->n_run, g->cap_run) = v;
    } else fail_at(loc, "fact, ignored, global, result, rope, param, numbers, stage or run was expected");
}

Graph *graph_read(Arena *a, const char *file, Str text) {
    if (text.n > UINT32_MAX) fail("%s: %zu bytes are too much for a graph's text; 4 GiB are the limit", file, text.n);
    Graph *g = graph_new(a);
    Reader r = {.g = g, .arena = a, .file = file, .text = text};
    skip_lines(&r);
    Loc loc = here(&r);
    if (!str_is(read_word(&r), "graph")) fail_at(loc, "a graph begins with: graph ARCH \"NAME\" layers=..");
    g->arch = read_name(&r);
    g->name = read_name(&r);
    READ_FIELDS(&r, graph_fields, g);
    end_line(&r);
    bool fused = false;
    for (skip_lines(&r); peek(&r) != -1; skip_lines(&r)) {
        loc = here(&r);
        read_statement(&r, loc, read_word(&r));
        end_line(&r);
    }
    for (int i = 0; i < g->n_stage; i++) fused |= g->stage[i].n_kernel > 0;
    graph_check(g, fused);
    return g;
}
