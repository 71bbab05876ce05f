// A template printed as C: one function for the template, one for each macro, call block, recursive loop and loop
// condition;
// a struct of variables for each; every construct the same call into the value runtime that jinja_eval.c makes.
// Python's
// order of evaluation is kept: where C leaves it open, all operands but one are put into temporaries first. In: the
// tree.
// Out: a translation unit that includes chat_template.h alone and defines `int template_NAME(Render *r)`. See jinja.h.
#include "jinja.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Jinja *t;
    Arena *a;
    Out *o; // the statements of the function at hand
    const Function *fn;
    Out protos, infos, bodies;
    const String **strings; // constants, each `static const String s_...`
    Str *string_names;
    int n_strings, cap_strings, cap_names;
    int n_temp;    // t1, t2, ...
    int loop;      // the number of the loop around, whose output a jump restores
    const char *v; // what the C calls the variables of `fn`
} Emitter;

enum { long_expression = 90 }; // characters, past which a temporary is used

static const char *ex(Emitter *e, const Node *n);
static const char *cond(Emitter *e, const Node *n);
static void statements(Emitter *e, const NodeList *list);

#define F(...) (str_fmt(e->a, __VA_ARGS__).p)

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

static const char *string(Emitter *e, const String *s) { // s_role
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

static const char *field(Emitter *e, const Function *fn, int slot) { // message_1: a name and how deep its frame lies
    Str name = identifier(e, fn->slots[slot], "", 40);
    bool exact = name.n == fn->slots[slot]->n || fn->slots[slot]->n > 40;
    for (int i = 0; i < slot && exact; i++) { // names that print alike, `_x` and `x`
        exact = fn->levels[i] != fn->levels[slot] || !str_eq(identifier(e, fn->slots[i], "", 40), name);
    }
    if (exact && name.n && !(name.p[0] >= '0' && name.p[0] <= '9')) return F("%.*s_%d", FMT(name), fn->levels[slot]);
    return F("v%d_%.*s_%d", slot, FMT(name), fn->levels[slot]);
}

static const char *variable_at(Emitter *e, Place p) {
    const Function *fn = e->fn;
    Str path = str(e->v);
    for (; p.up; p.up--, fn = fn->parent) path = str_fmt(e->a, "%.*s->up", FMT(path));
    return F("%.*s->%s", FMT(path), field(e, fn, p.slot));
}

static const char *temp(Emitter *e, const char *value) {
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
    default: return F("str_value(&%s)", string(e, v.s));
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
        text[i] = list->v[i] ? ex(e, list->v[i]) : "MISSING";
        if (!leaf(list->v[i]) && (i < last - 1 || strlen(text[i]) > long_expression)) text[i] = temp(e, text[i]);
    }
    return text;
}

static const char **two(Emitter *e, Node *a, Node *b) {
    Node *v[] = {a, b};
    return operands(e, &(NodeList){v, 2, 2});
}

static const char *values(Emitter *e, const char **text, int n) { // (Value[]){a, b}
    if (!n) return "NULL";
    Out o = out_new(e->a);
    out(&o, "(Value[]){");
    for (int i = 0; i < n; i++) out(&o, "%s%s", i ? ", " : "", text[i]);
    out(&o, "}");
    return str_z(e->a, out_text(&o));
}

// The operand `first` (or NULL) and the arguments of a call, as `&(Args){...}`; *of gets the operand.
static const char *call_args(Emitter *e, const Node *n, const Node *first, const char **of, const char *caller) {
    NodeList all = {0};
    *PUSH(e->a, all.v, all.n, all.cap) = (Node *) first;
    for (int i = 0; i < n->list.n; i++) *PUSH(e->a, all.v, all.n, all.cap) = n->list.v[i];
    for (int i = 0; i < n->other.n; i++) *PUSH(e->a, all.v, all.n, all.cap) = n->other.v[i];
    *PUSH(e->a, all.v, all.n, all.cap) = n->b;
    *PUSH(e->a, all.v, all.n, all.cap) = n->c;
    const char **text = operands(e, &all);
    *of = text[0];
    const char *pos = values(e, text + 1, n->list.n), *named = values(e, text + 1 + n->list.n, n->other.n);
    Out names = out_new(e->a);
    for (int i = 0; i < n->other.n; i++) out(&names, "%s&%s", i ? ", " : "", string(e, n->names[i]));
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
static Str aside(Emitter *e, const char *(*print)(Emitter *e, const Node *n), const Node *n, const char **text) {
    Out side = out_new(e->a), *before = e->o;
    e->o = &side;
    *text = print(e, n);
    e->o = before;
    return out_text(&side);
}

static void branch_value(Emitter *e, const char *name, const Node *n) { // name = n, within braces
    e->o->indent++;
    out(e->o, "%s = %s;\n", name, ex(e, n));
    e->o->indent--;
}

static const char *and_or(Emitter *e, const Node *n) {
    const char *name = temp(e, ex(e, n->a));
    out(e->o, "if (%struth(r, %s)) {\n", n->kind == J_OR ? "!" : "", name);
    branch_value(e, name, n->b);
    out(e->o, "}\n");
    return name;
}

static const char *conditional(Emitter *e, const Node *n) {
    const char *name = F("t%d", ++e->n_temp), *c = cond(e, n->b);
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
    const char *name = F("t%d", ++e->n_temp), *left = temp(e, ex(e, n->a));
    out(e->o, "bool %s;\n", name);
    for (int i = 0; i < n->list.n; i++) {
        const char *right = ex(e, n->list.v[i]);
        if (!leaf(n->list.v[i])) right = temp(e, right);
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
static const char *cond(Emitter *e, const Node *n) {
    const char *of, *args;
    switch (n->kind) {
    case J_CONST:
        if (n->value.kind == V_BOOL) return n->value.b ? "true" : "false";
        break;
    case J_NOT: {
        const char *inner = cond(e, n->a);
        return F(*inner == '!' || strchr(inner, '&') == NULL || strchr(inner, ' ') == NULL || inner[0] == '(' ? "!%s"
                                                                                                              : "!(%s)",
            *inner == '!' ? F("(%s)", inner) : inner);
    }
    case J_AND:
    case J_OR: {
        const char *a = cond(e, n->a), *b;
        Str side = aside(e, cond, n->b, &b);
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
        args = call_args(e, n, n->a, &of, NULL);
        return F("%s(r, %s, %s)", n->test->c_name, of, args);
    default: break;
    }
    return F("truth(r, %s)", ex(e, n));
}

static const char *filter(
    Emitter *e, const Node *n, const char *block) { // block: the text of a block, where there is no operand
    const char *of, *args;
    if (!n->a || block) {
        const char *inner = n->a ? filter(e, n->a, block) : block;
        inner = temp(e, inner);
        args = call_args(e, n, NULL, &of, NULL);
        of = inner;
    } else {
        args = call_args(e, n, n->a, &of, NULL);
    }
    if (!n->filter) {
        out(e->o, "(void) %s;\n", temp(e, of));
        return F("(no_such(r, \"filter\", &%s), NONE)", string(e, n->name));
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
    return strlen(text) > long_expression && !leaf(n) ? temp(e, text) : text;
}

static const char *ex(Emitter *e, const Node *n) {
    static const char *const binary[] = {
        "add", "sub", "mul", "divide", "floordiv", "mod", "power", "negate", "positive"};
    const char *of, *args, **pair;
    switch (n->kind) {
    case J_CONST: return constant(e, n->value);
    case J_NAME: return F("use(r, %s, &%s)", variable_at(e, n->place), string(e, n->name));
    case J_TUPLE:
    case J_LIST:
        return F("%s(r, %s, %d)", n->kind == J_LIST ? "list_of" : "tuple_of",
            values(e, operands(e, &n->list), n->list.n), n->list.n);
    case J_DICT: return dict(e, n);
    case J_COND: return conditional(e, n);
    case J_OR:
    case J_AND: return and_or(e, n);
    case J_CONCAT: return F("concat(r, %s, %d)", values(e, operands(e, &n->list), n->list.n), n->list.n);
    case J_BINARY: pair = two(e, n->a, n->b); return F("%s(r, %s, %s)", binary[n->op], pair[0], pair[1]);
    case J_UNARY: return F("%s(r, %s)", binary[n->op], short_one(e, n->a, ex(e, n->a)));
    case J_GETATTR: return F("attr(r, %s, &%s)", short_one(e, n->a, ex(e, n->a)), string(e, n->name));
    case J_GETITEM: return get_item(e, n);
    case J_CALL: args = call_args(e, n, n->a, &of, NULL); return F("call(r, %s, %s)", of, args);
    case J_FILTER: return filter(e, n, NULL);
    case J_TEST:
        if (n->test) return F("boolean(%s)", cond(e, n));
        out(e->o, "(void) %s;\n", temp(e, ex(e, n->a)));
        return F("(no_such(r, \"test\", &%s), NONE)", string(e, n->name));
    default: return F("boolean(%s)", cond(e, n)); // J_NOT, J_COMPARE
    }
}

// ---- frames and assignment ----
static void enter(Emitter *e, const Scope *s) {
    for (int i = 0; i < s->n_load; i++) {
        const Load *l = &s->load[i];
        const char *slot = F("%s->%s", e->v, field(e, e->fn, l->slot));
        if (l->kind == LOAD_RESOLVE) out(e->o, "%s = variable(r, &%s);\n", slot, string(e, l->name));
        else if (l->kind == LOAD_ALIAS) out(e->o, "%s = %s;\n", slot, variable_at(e, l->from));
        else if (l->kind == LOAD_UNDEFINED) out(e->o, "%s = MISSING;\n", slot);
    }
}

static void leave(Emitter *e, const Scope *s) {
    for (int i = 0; i < s->n_load; i++) out(e->o, "v->%s = MISSING;\n", field(e, e->fn, s->load[i].slot));
}

static void assign(Emitter *e, const Node *target, const char *value) {
    if (target->kind == J_NAME) {
        out(e->o, "%s = %s;\n", variable_at(e, target->place), value);
    } else if (target->kind == J_NSREF) {
        out(e->o, "set_attr(r, %s, &%s, %s);\n", variable_at(e, target->place), string(e, target->attr), value);
    } else {
        const char *parts = F("t%d", ++e->n_temp);
        out(e->o, "Value %s[%d];\n", parts, target->list.n ? target->list.n : 1);
        out(e->o, "unpack(r, %s, %d, %s);\n", value, target->list.n, parts);
        for (int i = 0; i < target->list.n; i++) assign(e, target->list.v[i], F("%s[%d]", parts, i));
    }
}

static void check_namespaces(Emitter *e, const Node *target) {
    if (target->kind == J_NSREF) out(e->o, "need_namespace(r, %s);\n", variable_at(e, target->place));
    for (int i = 0; target->kind == J_TUPLE && i < target->list.n; i++) check_namespaces(e, target->list.v[i]);
}

static const char *reassembled(Emitter *e, const Node *target) {
    if (target->kind == J_NAME) return variable_at(e, target->place);
    const char **parts = NEWN(e->a, const char *, target->list.n + 1);
    for (int i = 0; i < target->list.n; i++) parts[i] = reassembled(e, target->list.v[i]);
    return F("tuple_of(r, %s, %d)", values(e, parts, target->list.n), target->list.n);
}

// ---- functions ----
typedef struct {
    Out *o;
    const Function *fn;
    int n_temp, loop;
    Out body;
} Saved;

static const char *c_function(Emitter *e, const Function *fn) {
    return F("%s_%d", fn->name, fn->id);
}

// From here on statements go into a function of their own, which `head` declares.
static Saved *begin_function(Emitter *e, const Function *fn, const char *head) {
    Saved *s = NEW(e->a, Saved);
    *s = (Saved){e->o, e->fn, e->n_temp, e->loop, out_new(e->a)};
    e->o = &s->body;
    e->fn = fn;
    e->n_temp = 0;
    out(&e->protos, "static %s;\n", head);
    out(e->o, "static %s {\n", head);
    e->o->indent++;
    return s;
}

static void new_vars(Emitter *e, const Function *fn, const char *scope) {
    out(e->o, "struct vars_%d *v = render_take(r, sizeof *v);\n", fn->id);
    if (fn->parent && scope) out(e->o, "v->up = %s;\n", scope);
}

static void end_function(Emitter *e, Saved *s) {
    e->o->indent--;
    out(e->o, "}\n\n");
    out_str(&e->bodies, out_text(e->o));
    e->o = s->o;
    e->fn = s->fn;
    e->n_temp = s->n_temp;
    e->loop = s->loop;
}

static void macro_function(Emitter *e, const Node *n) {
    const char *name = c_function(e, n->fn);
    Saved *s = begin_function(e, n->fn, F("Value %s(Render *r, void *scope, const void *code, Value *args)", name));
    out(e->o, "(void) code;\n%s", n->n_fixed ? "" : "(void) args;\n");
    new_vars(e, n->fn, "scope");
    for (int i = 0; i < n->n_fixed; i++) out(e->o, "v->%s = args[%d];\n", field(e, n->fn, n->param_slot[i]), i);
    enter(e, &n->scope);
    out(e->o, "Buffer b, *before = capture(r, &b);\n");
    int first = n->list.n - n->other.n;
    for (int i = 0; i < n->list.n; i++) {
        const char *slot = F("v->%s", field(e, n->fn, n->param_slot[i]));
        out(e->o, "if (is_missing(%s)) {\n", slot);
        e->o->indent++;
        out(e->o, "%s = %s;\n", slot,
            i >= first ? ex(e, n->other.v[i - first]) : F("undefined_param(r, &%s)", string(e, n->list.v[i]->name)));
        e->o->indent--;
        out(e->o, "}\n");
    }
    statements(e, &n->body);
    out(e->o, "return captured(r, &b, before);\n");
    end_function(e, s);
    out(&e->infos, "static const MacroInfo info_%s = {.name = %.*s, .n_params = %d, .body = %s", name,
        FMT(n->macro.name ? str_c(e->a, str(n->macro.name)) : S("NULL")), n->list.n, name);
    if (n->list.n) out(&e->infos, ",\n    .params = (const String *const[]){");
    for (int i = 0; i < n->list.n; i++) out(&e->infos, "%s&%s", i ? ", " : "", string(e, n->list.v[i]->name));
    out(&e->infos, "%s%s%s%s%s};\n", n->list.n ? "}" : "", n->macro.caller ? ", .caller = true" : "",
        n->macro.kwargs ? ", .kwargs = true" : "", n->macro.varargs ? ", .varargs = true" : "",
        n->macro.explicit_caller ? ", .explicit_caller = true" : "");
}

static const char *macro_of(Emitter *e, const Node *n) {
    macro_function(e, n);
    return F("macro_value(r, &info_%s, v)", c_function(e, n->fn));
}

static void condition_function(Emitter *e, const Node *n) {
    Saved *s = begin_function(
        e, n->test_fn, F("bool %s(Render *r, void *scope, const void *code, Value *item)", c_function(e, n->test_fn)));
    out(e->o, "struct vars_%d *v = scope;\n(void) code;\n", n->test_fn->id);
    assign(e, n->test_target, "*item");
    out(e->o, "if (!%s) return false;\n", F("(%s)", cond(e, n->c)));
    out(e->o, "*item = %s;\nreturn true;\n", reassembled(e, n->test_target));
    end_function(e, s);
}

// ---- loops ----
static const char *filtered(Emitter *e, const Node *n, const char *over, const char *outer) {
    condition_function(e, n);
    const char *cv = F("c%d", ++e->n_temp);
    const Function *before = e->fn;
    out(e->o, "struct vars_%d *%s = render_take(r, sizeof *%s);\n%s->up = %s;\n", n->test_fn->id, cv, cv, cv, outer);
    e->fn = n->test_fn;
    e->v = cv;
    enter(e, &n->test_scope);
    e->fn = before;
    e->v = "v";
    return F("loop_filter(r, %s, %s, %s, NULL)", over, c_function(e, n->test_fn), cv);
}

static bool has_capture_jump(const NodeList *list) {
    for (int i = 0; i < list->n; i++) {
        const Node *n = list->v[i];
        if ((n->kind == J_BREAK || n->kind == J_CONTINUE) && n->in_capture) return true;
        if (n->kind == J_MACRO || n->kind == J_CALL_BLOCK) continue;
        if (n->kind != J_FOR && has_capture_jump(&n->body)) return true;
        if ((n->kind == J_IF || n->kind == J_FOR) && has_capture_jump(&n->other)) return true;
        if (n->kind == J_IF && has_capture_jump(&n->elifs)) return true;
    }
    return false;
}

static void loop_turns(
    Emitter *e, const Node *n, const char *over, const char *again, const char *outer, const char *depth) {
    int id = ++e->n_temp, before = e->loop;
    if (n->c) over = filtered(e, n, over, outer);
    const char *loop_slot = n->extended ? variable_at(e, n->loop) : NULL;
    if (loop_slot) out(e->o, "%s = MISSING;\n", loop_slot);
    if (loop_slot)
        out(e->o, "Loop *loop%d = loop_begin(r, %s, %s, %s, NULL, %s);\n", id, over, again,
            *again == 'N' ? "NULL" : outer, depth);
    else out(e->o, "Iter *it%d = iterate(r, %s);\n", id, over);
    if (n->other.n) out(e->o, "bool empty%d = true;\n", id);
    if (has_capture_jump(&n->body)) out(e->o, "Buffer *out%d = r->out;\n", id);
    if (loop_slot) out(e->o, "for (Value x%d; loop_next(r, loop%d, &x%d);) {\n", id, id, id);
    else out(e->o, "for (Value x%d; next(r, it%d, &x%d);) {\n", id, id, id);
    e->o->indent++;
    e->loop = id;
    if (!loop_slot) out(e->o, "step(r);\n");
    assign(e, n->a, F("x%d", id));
    if (loop_slot) out(e->o, "%s = loop_value(loop%d);\n", loop_slot, id);
    enter(e, &n->scope);
    statements(e, &n->body);
    e->loop = before;
    if (n->other.n) out(e->o, "empty%d = false;\n", id);
    e->o->indent--;
    out(e->o, "}\n");
    leave(e, &n->scope);
    if (!n->other.n) return;
    out(e->o, "if (empty%d) {\n", id);
    e->o->indent++;
    enter(e, &n->else_scope);
    statements(e, &n->other);
    leave(e, &n->else_scope);
    e->o->indent--;
    out(e->o, "}\n");
}

static void for_statement(Emitter *e, const Node *n) {
    out(e->o, "{ // line %d: for\n", n->line);
    e->o->indent++;
    const char *over = ex(e, n->b);
    if (n->recursive) {
        const char *name = c_function(e, n->fn);
        Saved *s = begin_function(
            e, n->fn, F("Value %s(Render *r, void *scope, const void *code, Value iterable, int depth)", name));
        out(e->o, "(void) code;\n");
        new_vars(e, n->fn, "scope");
        out(e->o, "Buffer b, *before = capture(r, &b);\n");
        loop_turns(e, n, "iterable", name, "v->up", "depth");
        out(e->o, "return captured(r, &b, before);\n");
        end_function(e, s);
        over = temp(e, over);
        out(e->o, "enter_call(r);\nemit(r, %s(r, v, NULL, %s, 0));\nleave_call(r);\n", name, over);
    } else {
        loop_turns(e, n, over, "NULL", "v", "0");
    }
    e->o->indent--;
    out(e->o, "}\n");
}

// ---- statements ----
static void text_statement(Emitter *e, const Node *n) {
    const String *s = n->value.s;
    out(e->o, "emit_text(r, ");
    for (size_t from = 0, lines = 0; from < s->n; lines++) {
        const char *newline = memchr(s->p + from, '\n', s->n - from);
        size_t to = newline ? (size_t) (newline - s->p) + 1 : s->n;
        if (lines) out(e->o, "\n    ");
        out(e->o, "%.*s", FMT(str_c(e->a, (Str){s->p + from, to - from})));
        from = to;
    }
    out(e->o, ", %zu);\n", s->n);
}

static void block(Emitter *e, const NodeList *list) {
    e->o->indent++;
    statements(e, list);
    e->o->indent--;
}

static void if_statement(Emitter *e, const Node *n) {
    int open = 0;
    const char *c = cond(e, n->a);
    out(e->o, "if (%s) { // line %d\n", c, n->line);
    block(e, &n->body);
    for (int i = 0; i < n->elifs.n; i++) {
        const Node *other = n->elifs.v[i];
        Str side = aside(e, cond, other->a, &c);
        if (side.n) {
            out(e->o, "} else {\n");
            e->o->indent++;
            open++;
            out_str(e->o, side);
            out(e->o, "if (%s) { // line %d\n", c, other->line);
        } else {
            out(e->o, "} else if (%s) { // line %d\n", c, other->line);
        }
        block(e, &other->body);
    }
    if (n->other.n) {
        out(e->o, "} else {\n");
        block(e, &n->other);
    }
    for (; open; open--) {
        out(e->o, "}\n");
        e->o->indent--;
    }
    out(e->o, "}\n");
}

static void call_block(Emitter *e, const Node *n) {
    const char *caller = temp(e, macro_of(e, n)), *of;
    if (!n->a) {
        out(e->o, "emit(r, call(r, %s, &NO_ARGS));\n", caller);
        return;
    }
    const char *args = call_args(e, n->a, n->a->a, &of, caller);
    out(e->o, "emit(r, call(r, %s, %s));\n", of, args);
}

static void capture_block(Emitter *e, const Node *n) { // SET_BLOCK, FILTER_BLOCK
    int id = ++e->n_temp;
    out(e->o, "{ // line %d\n", n->line);
    e->o->indent++;
    enter(e, &n->scope);
    out(e->o, "Buffer b%d, *before%d = capture(r, &b%d);\n", id, id, id);
    statements(e, &n->body);
    out(e->o, "Value written%d = captured(r, &b%d, before%d);\n", id, id, id);
    const char *written = F("written%d", id);
    if (n->b) written = filter(e, n->b, written);
    if (n->kind == J_SET_BLOCK) assign(e, n->a, written);
    else out(e->o, "emit(r, %s);\n", written);
    leave(e, &n->scope);
    e->o->indent--;
    out(e->o, "}\n");
}

static void with_statement(Emitter *e, const Node *n) {
    out(e->o, "{ // line %d: with\n", n->line);
    e->o->indent++;
    enter(e, &n->scope);
    for (int i = 0; i < n->list.n; i++) assign(e, n->list.v[i], ex(e, n->other.v[i]));
    statements(e, &n->body);
    leave(e, &n->scope);
    e->o->indent--;
    out(e->o, "}\n");
}

static void statement(Emitter *e, const Node *n) {
    switch (n->kind) {
    case J_TEXT: text_statement(e, n); return;
    case J_OUTPUT:
        for (int i = 0; i < n->list.n; i++) out(e->o, "emit(r, %s);\n", ex(e, n->list.v[i]));
        return;
    case J_FOR: for_statement(e, n); return;
    case J_IF: if_statement(e, n); return;
    case J_MACRO: out(e->o, "%s = %s;\n", variable_at(e, n->place), macro_of(e, n)); return;
    case J_CALL_BLOCK: call_block(e, n); return;
    case J_SET_BLOCK:
    case J_FILTER_BLOCK: capture_block(e, n); return;
    case J_WITH: with_statement(e, n); return;
    case J_BREAK:
    case J_CONTINUE:
        if (n->in_capture) out(e->o, "r->out = out%d;\n", e->loop);
        out(e->o, n->kind == J_BREAK ? "break;\n" : "continue;\n");
        return;
    default: { // J_SET
        check_namespaces(e, n->a);
        assign(e, n->a, ex(e, n->b));
    }
    }
}

static void statements(Emitter *e, const NodeList *list) {
    for (int i = 0; i < list->n; i++) {
        statement(e, list->v[i]);
        bool jump = list->v[i]->kind == J_BREAK || list->v[i]->kind == J_CONTINUE;
        if (jump) return; // what follows is never reached
    }
}

// ---- the whole ----
static void structs(Emitter *e, Out *o) {
    for (int i = 0; i < e->t->n_functions; i++) {
        const Function *fn = e->t->functions[i];
        out(o, "struct vars_%d { // of %s\n", i, fn->name);
        if (fn->parent) out(o, "    struct vars_%d *up;\n", fn->parent->id);
        out(o, "    Value ");
        for (int k = 0; k < fn->n_slots; k++) out(o, "%s%s", k ? (k % 6 ? ", " : ",\n        ") : "", field(e, fn, k));
        out(o, "%s;\n};\n\n", fn->n_slots ? "" : "none");
    }
}

void jinja_emit(Out *o, const Jinja *t, const char *name) {
    Emitter e = {.t = t,
        .a = t->arena,
        .v = "v",
        .protos = out_new(t->arena),
        .infos = out_new(t->arena),
        .bodies = out_new(t->arena)};
    Saved *s =
        begin_function(&e, t->functions[0], str_fmt(t->arena, "void root_%s(Render *r, const void *code)", name).p);
    out(e.o, "(void) code;\n");
    new_vars(&e, t->functions[0], NULL);
    enter(&e, &t->scope);
    statements(&e, &t->body);
    end_function(&e, s);
    out(o,
        "// The chat template '%s', compiled from the model's own Jinja. Names end in the depth of the frame they "
        "belong to.\n",
        name);
    out(o, "#include \"chat_template.h\"\n\n");
    out(o, "int template_%s(Render *r);\n\n", name);
    for (int i = 0; i < e.n_strings; i++) {
        out(o, "static const String %s = STRING(%.*s, %zu);\n", e.string_names[i].p,
            FMT(str_c(t->arena, (Str){e.strings[i]->p, e.strings[i]->n})), e.strings[i]->chars);
    }
    out(o, "\n");
    structs(&e, o);
    out_str(o, out_text(&e.protos));
    out(o, "\n");
    out_str(o, out_text(&e.infos));
    out(o, "\n");
    out_str(o, out_text(&e.bodies));
    out(o, "int template_%s(Render *r) {\n    return render_run(r, root_%s, NULL);\n}\n", name, name);
}
