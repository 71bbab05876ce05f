// A template printed as C: one function for the template, one for each macro, call block, recursive loop and loop
// condition; a struct of variables for each. In: the tree. Out: a translation unit that includes chat_template.h alone
// and defines `int template_NAME(Render *r)`. Expressions are jinja_emit_expr.c's. See jinja.h.
#include "jinja_emit.h"

#include <string.h>

// ---- frames and assignment ----
static void enter(Emitter *e, const Scope *s) {
    for (int i = 0; i < s->n_load; i++) {
        const Load *l = &s->load[i];
        const char *slot = F("%s->%s", e->v, emit_field(e, e->fn, l->slot));
        if (l->kind == LOAD_RESOLVE) out(e->o, "%s = variable(r, &%s);\n", slot, emit_string(e, l->name));
        else if (l->kind == LOAD_ALIAS) out(e->o, "%s = %s;\n", slot, emit_variable(e, l->from));
        else if (l->kind == LOAD_UNDEFINED) out(e->o, "%s = MISSING;\n", slot);
    }
}

static void leave(Emitter *e, const Scope *s) {
    for (int i = 0; i < s->n_load; i++) out(e->o, "v->%s = MISSING;\n", emit_field(e, e->fn, s->load[i].slot));
}

static void statements(Emitter *e, const NodeList *list);

static void assign(Emitter *e, const Node *target, const char *value) {
    if (target->kind == J_NAME) {
        out(e->o, "%s = %s;\n", emit_variable(e, target->place), value);
    } else if (target->kind == J_NSREF) {
        out(e->o, "set_attr(r, %s, &%s, %s);\n", emit_variable(e, target->place), emit_string(e, target->attr), value);
    } else {
        const char *parts = F("t%d", ++e->n_temp);
        out(e->o, "Value %s[%d];\n", parts, target->list.n ? target->list.n : 1);
        out(e->o, "unpack(r, %s, %d, %s);\n", value, target->list.n, parts);
        for (int i = 0; i < target->list.n; i++) assign(e, target->list.v[i], F("%s[%d]", parts, i));
    }
}

static void check_namespaces(Emitter *e, const Node *target) {
    if (target->kind == J_NSREF) out(e->o, "need_namespace(r, %s);\n", emit_variable(e, target->place));
    for (int i = 0; target->kind == J_TUPLE && i < target->list.n; i++) check_namespaces(e, target->list.v[i]);
}

static const char *reassembled(Emitter *e, const Node *target) {
    if (target->kind == J_NAME) return emit_variable(e, target->place);
    const char **parts = NEWN(e->a, const char *, target->list.n + 1);
    for (int i = 0; i < target->list.n; i++) parts[i] = reassembled(e, target->list.v[i]);
    return F("tuple_of(r, %s, %d)", emit_values(e, parts, target->list.n), target->list.n);
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
    for (int i = 0; i < n->n_fixed; i++) out(e->o, "v->%s = args[%d];\n", emit_field(e, n->fn, n->param_slot[i]), i);
    enter(e, &n->scope);
    out(e->o, "Buffer b, *before = capture(r, &b);\n");
    int first = n->list.n - n->other.n;
    for (int i = 0; i < n->list.n; i++) {
        const char *slot = F("v->%s", emit_field(e, n->fn, n->param_slot[i]));
        out(e->o, "if (is_missing(%s)) {\n", slot);
        e->o->indent++;
        out(e->o, "%s = %s;\n", slot,
            i >= first ? emit_expression(e, n->other.v[i - first])
                       : F("undefined_param(r, &%s)", emit_string(e, n->list.v[i]->name)));
        e->o->indent--;
        out(e->o, "}\n");
    }
    statements(e, &n->body);
    out(e->o, "return captured(r, &b, before);\n");
    end_function(e, s);
    out(&e->infos, "static const MacroInfo info_%s = {.name = %.*s, .n_params = %d, .body = %s", name,
        FMT(n->macro.name ? str_c(e->a, str(n->macro.name)) : S("NULL")), n->list.n, name);
    if (n->list.n) out(&e->infos, ",\n    .params = (const String *const[]){");
    for (int i = 0; i < n->list.n; i++) out(&e->infos, "%s&%s", i ? ", " : "", emit_string(e, n->list.v[i]->name));
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
    out(e->o, "if (!%s) return false;\n", F("(%s)", emit_condition(e, n->c)));
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
    const char *loop_slot = n->extended ? emit_variable(e, n->loop) : NULL;
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
    const char *over = emit_expression(e, n->b);
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
        over = emit_temp(e, over);
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
    const char *c = emit_condition(e, n->a);
    out(e->o, "if (%s) { // line %d\n", c, n->line);
    block(e, &n->body);
    for (int i = 0; i < n->elifs.n; i++) {
        const Node *other = n->elifs.v[i];
        Str side = emit_aside(e, emit_condition, other->a, &c);
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
    const char *caller = emit_temp(e, macro_of(e, n)), *of;
    if (!n->a) {
        out(e->o, "emit(r, call(r, %s, &NO_ARGS));\n", caller);
        return;
    }
    const char *args = emit_args(e, n->a, n->a->a, &of, caller);
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
    if (n->b) written = emit_filter(e, n->b, written);
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
    for (int i = 0; i < n->list.n; i++) assign(e, n->list.v[i], emit_expression(e, n->other.v[i]));
    statements(e, &n->body);
    leave(e, &n->scope);
    e->o->indent--;
    out(e->o, "}\n");
}

static void statement(Emitter *e, const Node *n) {
    switch (n->kind) {
    case J_TEXT: text_statement(e, n); return;
    case J_OUTPUT:
        for (int i = 0; i < n->list.n; i++) out(e->o, "emit(r, %s);\n", emit_expression(e, n->list.v[i]));
        return;
    case J_FOR: for_statement(e, n); return;
    case J_IF: if_statement(e, n); return;
    case J_MACRO: out(e->o, "%s = %s;\n", emit_variable(e, n->place), macro_of(e, n)); return;
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
        assign(e, n->a, emit_expression(e, n->b));
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
        for (int k = 0; k < fn->n_slots; k++)
            out(o, "%s%s", k ? (k % 6 ? ", " : ",\n        ") : "", emit_field(e, fn, k));
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
