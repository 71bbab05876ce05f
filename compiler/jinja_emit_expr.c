// A template's expressions as C: every construct the same call into the value runtime that jinja_eval.c makes. Python's
// order of evaluation is kept: where C leaves it open, all operands but one are put into temporaries first. In: nodes.
// Out: an expression of C, and the statements before it. See jinja_emit.h.
#include "jinja_emit.h"

#include <math.h>
#include <string.h>

enum { long_expression = 90 }; // characters, past which a temporary is used

// ---- names and constants ----
static bool plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static Str identifier(Emitter *e, const String *s, const char *prefix, size_t most) {
    char *p = arena_alloc(e->a, strlen(prefix) + most + 1);
    size_t n = strlen(prefix), from = n;
    memcpy(p, prefix, n);
    for (size_t i = 0; i < s->n && n - from < most; i++) {
        if (plain(s->p[i])) p[n++] = s->p[i];
        else if (n > from && p[n - 1] != '_') p[n++] = '_';
    }
    while (n > from && p[n - 1] == '_') n--;
    return (Str){p, n};
}

const char *emit_string(Emitter *e, const String *s) { // s_role
    for (int i = 0; i < e->n_strings; i++) {
        if (e->strings[i]->n == s->n && !memcmp(e->strings[i]->p, s->p, s->n)) return e->string_names[i].p;
    }
    Str name = identifier(e, s, "s_", 28);
    bool taken = name.n == 2;
    for (int i = 0; i < e->n_strings; i++) taken |= str_eq(e->string_names[i], name);
    if (taken) name = str_fmt(e->a, "%.*s_%d", FMT(name), e->n_strings);
    int n = e->n_strings;
    *PUSH(e->a, e->strings, e->n_strings, e->cap_strings) = s;
    *PUSH(e->a, e->string_names, n, e->cap_names) = str_dup(e->a, name);
    return e->string_names[e->n_strings - 1].p;
}

const char *emit_field(Emitter *e, const Function *fn, int slot) { // message_1: a name and how deep its frame lies
    Str name = identifier(e, fn->slots[slot], "", 40);
    bool exact = name.n == fn->slots[slot]->n || fn->slots[slot]->n > 40;
    for (int i = 0; i < slot && exact; i++) { // names that print alike, `_x` and `x`
        exact = fn->levels[i] != fn->levels[slot] || !str_eq(identifier(e, fn->slots[i], "", 40), name);
    }
    if (exact && name.n && !(name.p[0] >= '0' && name.p[0] <= '9')) return F("%.*s_%d", FMT(name), fn->levels[slot]);
    return F("v%d_%.*s_%d", slot, FMT(name), fn->levels[slot]);
}

const char *emit_variable(Emitter *e, Place p) {
    const Function *fn = e->fn;
    Str path = str(e->v);
    for (; p.up; p.up--, fn = fn->parent) path = str_fmt(e->a, "%.*s->up", FMT(path));
    return F("%.*s->%s", FMT(path), emit_field(e, fn, p.slot));
}

const char *emit_temp(Emitter *e, const char *value) {
    const char *name = F("t%d", ++e->n_temp);
    out(e->o, "Value %s = %s;\n", name, value);
    return name;
}

static const char *constant(Emitter *e, Value v) {
    switch (v.kind) {
    case V_NONE: return "NONE";
    case V_BOOL: return v.b ? "TRUE_VALUE" : "FALSE_VALUE";
    case V_INT: return F("integer(%lld)", (long long) v.i);
    case V_REAL: return isinf(v.x) ? "real(__builtin_inf())" : F("real(%a)", v.x);
    default: return F("str_value(&%s)", emit_string(e, v.s));
    }
}

// ---- operands ----
// A leaf neither does anything nor changes while other operands are computed: it may stay where it is read.
static bool leaf(const Node *n) {
    return !n || n->kind == J_CONST || n->kind == J_NAME;
}

// Several operands, in order: all that do something, but the last, go into temporaries.
static const char **operands(Emitter *e, const NodeList *list) {
    const char **text = NEWN(e->a, const char *, list->n + 1);
    int last = list->n;
    while (last > 0 && leaf(list->v[last - 1])) last--;
    for (int i = 0; i < list->n; i++) {
        text[i] = list->v[i] ? emit_expression(e, list->v[i]) : "MISSING";
        if (!leaf(list->v[i]) && (i < last - 1 || strlen(text[i]) > long_expression)) text[i] = emit_temp(e, text[i]);
    }
    return text;
}

static const char **two(Emitter *e, Node *a, Node *b) {
    Node *v[] = {a, b};
    return operands(e, &(NodeList){v, 2, 2});
}

const char *emit_values(Emitter *e, const char **text, int n) { // (Value[]){a, b}
    if (!n) return "NULL";
    Out o = out_new(e->a);
    out(&o, "(Value[]){");
    for (int i = 0; i < n; i++) out(&o, "%s%s", i ? ", " : "", text[i]);
    out(&o, "}");
    return str_z(e->a, out_text(&o));
}

// The operand `first` (or NULL) and the arguments of a call, as `&(Args){...}`; *of gets the operand.
const char *emit_args(Emitter *e, const Node *n, const Node *first, const char **of, const char *caller) {
    NodeList all = {0};
    *PUSH(e->a, all.v, all.n, all.cap) = (Node *) first;
    for (int i = 0; i < n->list.n; i++) *PUSH(e->a, all.v, all.n, all.cap) = n->list.v[i];
    for (int i = 0; i < n->other.n; i++) *PUSH(e->a, all.v, all.n, all.cap) = n->other.v[i];
    *PUSH(e->a, all.v, all.n, all.cap) = n->b;
    *PUSH(e->a, all.v, all.n, all.cap) = n->c;
    const char **text = operands(e, &all);
    *of = text[0];
    const char *pos = emit_values(e, text + 1, n->list.n), *named = emit_values(e, text + 1 + n->list.n, n->other.n);
    Out names = out_new(e->a);
    for (int i = 0; i < n->other.n; i++) out(&names, "%s&%s", i ? ", " : "", emit_string(e, n->names[i]));
    const char *name_list = n->other.n ? F("(const String *const[]){%s}", str_z(e->a, out_text(&names))) : "NULL";
    if (n->b || n->c || caller) {
        return F("&(Args[]){join_args(r, %s, %d, %s, %s, %d, %s, %s, %s)}[0]", pos, n->list.n, name_list, named,
            n->other.n, text[all.n - 2], text[all.n - 1], caller ? caller : "MISSING");
    }
    if (!n->list.n && !n->other.n) return "&NO_ARGS";
    if (!n->other.n) return F("&(Args){%s, .n = %d}", pos, n->list.n);
    return F("&(Args){%s, %d, %s, %s, %d}", pos, n->list.n, name_list, named, n->other.n);
}

// ---- expressions ----
// Runs `print` with the statements going aside; gives them, the expression in *text.
Str emit_aside(Emitter *e, const char *(*print)(Emitter *e, const Node *n), const Node *n, const char **text) {
    Out side = out_new(e->a), *before = e->o;
    e->o = &side;
    *text = print(e, n);
    e->o = before;
    return out_text(&side);
}

static void branch_value(Emitter *e, const char *name, const Node *n) { // name = n, within braces
    e->o->indent++;
    out(e->o, "%s = %s;\n", name, emit_expression(e, n));
    e->o->indent--;
}

static const char *and_or(Emitter *e, const Node *n) {
    const char *name = emit_temp(e, emit_expression(e, n->a));
    out(e->o, "if (%struth(r, %s)) {\n", n->kind == J_OR ? "!" : "", name);
    branch_value(e, name, n->b);
    out(e->o, "}\n");
    return name;
}

static const char *conditional(Emitter *e, const Node *n) {
    const char *name = F("t%d", ++e->n_temp), *c = emit_condition(e, n->b);
    out(e->o, "Value %s;\n", name);
    out(e->o, "if (%s) {\n", c);
    branch_value(e, name, n->a);
    out(e->o, "} else {\n");
    if (n->c) branch_value(e, name, n->c);
    else out(e->o, "    %s = undefined_cond(r, %d);\n", name, n->line);
    out(e->o, "}\n");
    return name;
}

static const char *dict(Emitter *e, const Node *n) {
    const char *name = F("t%d", ++e->n_temp);
    out(e->o, "Dict *%s = dict_new(r, %d);\n", name, n->list.n);
    for (int i = 0; i < n->list.n; i++) {
        const char **pair = two(e, n->list.v[i], n->other.v[i]);
        out(e->o, "dict_set(r, %s, %s, %s);\n", name, pair[0], pair[1]);
    }
    return F("dict_value(%s)", name);
}

static const char *comparison(Emitter *e, int op, const char *a, const char *b) {
    static const char *const names[] = {
        "CMP_EQ", "CMP_NE", "CMP_LT", "CMP_LE", "CMP_GT", "CMP_GE", "CMP_IN", "CMP_NOT_IN"};
    if (op == CMP_EQ || op == CMP_NE) return F("%sequal(r, %s, %s)", op == CMP_NE ? "!" : "", a, b);
    if (op == CMP_IN || op == CMP_NOT_IN) return F("%scontains(r, %s, %s)", op == CMP_NOT_IN ? "!" : "", a, b);
    return F("compare(r, %s, %s, %s)", names[op], a, b);
}

static const char *chain(Emitter *e, const Node *n) { // a < b < c
    const char *name = F("t%d", ++e->n_temp), *left = emit_temp(e, emit_expression(e, n->a));
    out(e->o, "bool %s;\n", name);
    for (int i = 0; i < n->list.n; i++) {
        const char *right = emit_expression(e, n->list.v[i]);
        if (!leaf(n->list.v[i])) right = emit_temp(e, right);
        out(e->o, "%s = %s;\n", name, comparison(e, n->ops[i], left, right));
        if (i + 1 < n->list.n) {
            out(e->o, "if (%s) {\n", name);
            e->o->indent++;
        }
        left = right;
    }
    for (int i = 1; i < n->list.n; i++) {
        e->o->indent--;
        out(e->o, "}\n");
    }
    return name;
}

// An expression's truth, as a C condition.
const char *emit_condition(Emitter *e, const Node *n) {
    const char *of, *args;
    switch (n->kind) {
    case J_CONST:
        if (n->value.kind == V_BOOL) return n->value.b ? "true" : "false";
        break;
    case J_NOT: {
        const char *inner = emit_condition(e, n->a);
        return F(*inner == '!' || strchr(inner, '&') == NULL || strchr(inner, ' ') == NULL || inner[0] == '(' ? "!%s"
                                                                                                              : "!(%s)",
            *inner == '!' ? F("(%s)", inner) : inner);
    }
    case J_AND:
    case J_OR: {
        const char *a = emit_condition(e, n->a), *b;
        Str side = emit_aside(e, emit_condition, n->b, &b);
        if (!side.n && strlen(a) + strlen(b) < 110) return F("(%s %s %s)", a, n->kind == J_AND ? "&&" : "||", b);
        const char *name = F("t%d", ++e->n_temp);
        out(e->o, "bool %s = %s;\n", name, a);
        out(e->o, "if (%s%s) {\n", n->kind == J_OR ? "!" : "", name);
        e->o->indent++;
        out_str(e->o, side);
        out(e->o, "%s = %s;\n", name, b);
        e->o->indent--;
        out(e->o, "}\n");
        return name;
    }
    case J_COMPARE: {
        if (n->list.n > 1) return chain(e, n);
        const char **pair = two(e, n->a, n->list.v[0]);
        return comparison(e, n->ops[0], pair[0], pair[1]);
    }
    case J_TEST:
        if (!n->test) break;
        args = emit_args(e, n, n->a, &of, NULL);
        return F("%s(r, %s, %s)", n->test->c_name, of, args);
    default: break;
    }
    return F("truth(r, %s)", emit_expression(e, n));
}

const char *emit_filter(Emitter *e, const Node *n, const char *block) {
    const char *of, *args;
    if (!n->a || block) {
        const char *inner = n->a ? emit_filter(e, n->a, block) : block;
        inner = emit_temp(e, inner);
        args = emit_args(e, n, NULL, &of, NULL);
        of = inner;
    } else {
        args = emit_args(e, n, n->a, &of, NULL);
    }
    if (!n->filter) {
        out(e->o, "(void) %s;\n", emit_temp(e, of));
        return F("(no_such(r, \"filter\", &%s), NONE)", emit_string(e, n->name));
    }
    return F("%s(r, %s, %s)", n->filter->c_name, of, args);
}

static const char *get_item(Emitter *e, const Node *n) {
    if (n->b->kind != J_SLICE) {
        const char **pair = two(e, n->a, n->b);
        return F("item(r, %s, %s)", pair[0], pair[1]);
    }
    Node *four[] = {n->a, n->b->a, n->b->b, n->b->c};
    const char **part = operands(e, &(NodeList){four, 4, 4});
    return F("%s(r, %s, %s, %s, %s)", n->folded ? "slice_constant" : "slice", part[0], part[1], part[2], part[3]);
}

static const char *short_one(Emitter *e, const Node *n, const char *text) {
    return strlen(text) > long_expression && !leaf(n) ? emit_temp(e, text) : text;
}

const char *emit_expression(Emitter *e, const Node *n) {
    static const char *const binary[] = {
        "add", "sub", "mul", "divide", "floordiv", "mod", "power", "negate", "positive"};
    const char *of, *args, **pair;
    switch (n->kind) {
    case J_CONST: return constant(e, n->value);
    case J_NAME: return F("use(r, %s, &%s)", emit_variable(e, n->place), emit_string(e, n->name));
    case J_TUPLE:
    case J_LIST:
        return F("%s(r, %s, %d)", n->kind == J_LIST ? "list_of" : "tuple_of",
            emit_values(e, operands(e, &n->list), n->list.n), n->list.n);
    case J_DICT: return dict(e, n);
    case J_COND: return conditional(e, n);
    case J_OR:
    case J_AND: return and_or(e, n);
    case J_CONCAT: return F("concat(r, %s, %d)", emit_values(e, operands(e, &n->list), n->list.n), n->list.n);
    case J_BINARY: pair = two(e, n->a, n->b); return F("%s(r, %s, %s)", binary[n->op], pair[0], pair[1]);
    case J_UNARY: return F("%s(r, %s)", binary[n->op], short_one(e, n->a, emit_expression(e, n->a)));
    case J_GETATTR: return F("attr(r, %s, &%s)", short_one(e, n->a, emit_expression(e, n->a)), emit_string(e, n->name));
    case J_GETITEM: return get_item(e, n);
    case J_CALL: args = emit_args(e, n, n->a, &of, NULL); return F("call(r, %s, %s)", of, args);
    case J_FILTER: return emit_filter(e, n, NULL);
    case J_TEST:
        if (n->test) return F("boolean(%s)", emit_condition(e, n));
        out(e->o, "(void) %s;\n", emit_temp(e, emit_expression(e, n->a)));
        return F("(no_such(r, \"test\", &%s), NONE)", emit_string(e, n->name));
    default: return F("boolean(%s)", emit_condition(e, n)); // J_NOT, J_COMPARE
    }
}
