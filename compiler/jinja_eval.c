// A template rendered here and now: the tree walked, each construct a call into the value runtime. jinja_emit.c
// prints the same calls as C; the two differ in control flow alone, and a test compares them on every golden. See
// jinja.h.
#include "jinja.h"

#include <string.h>

typedef struct Vars Vars;
struct Vars { // the variables of one function that runs
    Vars *up;
    Value slot[];
};

typedef enum { GO_ON, GO_BREAK, GO_CONTINUE } Flow;

static Value eval(Render *r, Vars *v, const Node *n);
static Flow run(Render *r, Vars *v, const NodeList *list);

static Vars *vars_new(Render *r, Vars *up, const Function *fn) {
    Vars *v = render_take(r, sizeof *v + (size_t) fn->n_slots * sizeof(Value));
    v->up = up;
    return v;
}

static Value *slot_at(Vars *v, Place p) {
    for (; p.up; p.up--) v = v->up;
    return &v->slot[p.slot];
}

static void enter(Render *r, Vars *v, const Scope *s) {
    for (int i = 0; i < s->n_load; i++) {
        const Load *l = &s->load[i];
        if (l->kind == LOAD_RESOLVE) v->slot[l->slot] = variable(r, l->name);
        else if (l->kind == LOAD_ALIAS) v->slot[l->slot] = *slot_at(v, l->from);
        else if (l->kind == LOAD_UNDEFINED) v->slot[l->slot] = MISSING;
    }
}

static void leave(Vars *v, const Scope *s) {
    for (int i = 0; i < s->n_load; i++) v->slot[s->load[i].slot] = MISSING;
}

// ---- expressions ----
static Value *eval_list(Render *r, Vars *v, const NodeList *list) {
    Value *values = render_take_n(r, (size_t) list->n, sizeof *values);
    for (int i = 0; i < list->n; i++) values[i] = eval(r, v, list->v[i]);
    return values;
}

// Positions, names, then what * and ** unpack.
static Args eval_args(Render *r, Vars *v, const Node *n, Value caller) {
    Value *pos = eval_list(r, v, &n->list), *named = eval_list(r, v, &n->other);
    Value rest = n->b ? eval(r, v, n->b) : MISSING, more = n->c ? eval(r, v, n->c) : MISSING;
    return join_args(r, pos, (size_t) n->list.n, n->names, named, (size_t) n->other.n, rest, more, caller);
}

static Value eval_dict(Render *r, Vars *v, const Node *n) {
    Dict *d = dict_new(r, (size_t) n->list.n);
    for (int i = 0; i < n->list.n; i++) {
        Value key = eval(r, v, n->list.v[i]);
        dict_set(r, d, key, eval(r, v, n->other.v[i]));
    }
    return dict_value(d);
}

static Value eval_compare(Render *r, Vars *v, const Node *n) {
    Value left = eval(r, v, n->a);
    for (int i = 0; i < n->list.n; i++) {
        Value right = eval(r, v, n->list.v[i]);
        if (!compare(r, (Comparison) n->ops[i], left, right)) return FALSE_VALUE;
        left = right;
    }
    return TRUE_VALUE;
}

static Value eval_binary(Render *r, int op, Value a, Value b) {
    switch (op) {
    case OP_ADD: return add(r, a, b);
    case OP_SUB: return sub(r, a, b);
    case OP_MUL: return mul(r, a, b);
    case OP_DIV: return divide(r, a, b);
    case OP_FLOORDIV: return floordiv(r, a, b);
    case OP_MOD: return mod(r, a, b);
    default: return power(r, a, b);
    }
}

static Value eval_slice(Render *r, Vars *v, Value of, const Node *n, bool folded) {
    Value bound[3] = {MISSING, MISSING, MISSING};
    const Node *part[3] = {n->a, n->b, n->c};
    for (int i = 0; i < 3; i++) {
        if (part[i]) bound[i] = eval(r, v, part[i]);
    }
    return (folded ? slice_constant : slice)(r, of, bound[0], bound[1], bound[2]);
}

static Value eval_filter(Render *r, Vars *v, const Node *n, Value of) {
    if (!n->filter) no_such(r, "filter", n->name);
    Args args = eval_args(r, v, n, MISSING);
    return n->filter->fn(r, of, &args);
}

// A chain of filters on a captured text: the innermost has no operand of its own.
static Value eval_chain(Render *r, Vars *v, const Node *n, Value text_of_block) {
    return eval_filter(r, v, n, n->a ? eval_chain(r, v, n->a, text_of_block) : text_of_block);
}

static Value eval(Render *r, Vars *v, const Node *n) {
    switch (n->kind) {
    case J_CONST: return n->value;
    case J_NAME: return use(r, *slot_at(v, n->place), n->name);
    case J_TUPLE: return tuple_of(r, eval_list(r, v, &n->list), (size_t) n->list.n);
    case J_LIST: return list_of(r, eval_list(r, v, &n->list), (size_t) n->list.n);
    case J_DICT: return eval_dict(r, v, n);
    case J_COND:
        if (truth(r, eval(r, v, n->b))) return eval(r, v, n->a);
        return n->c ? eval(r, v, n->c) : undefined_cond(r, n->line);
    case J_OR:
    case J_AND: {
        Value a = eval(r, v, n->a);
        return truth(r, a) == (n->kind == J_OR) ? a : eval(r, v, n->b);
    }
    case J_NOT: return boolean(!truth(r, eval(r, v, n->a)));
    case J_COMPARE: return eval_compare(r, v, n);
    case J_CONCAT: return concat(r, eval_list(r, v, &n->list), n->list.n);
    case J_BINARY: {
        Value a = eval(r, v, n->a);
        return eval_binary(r, n->op, a, eval(r, v, n->b));
    }
    case J_UNARY: return n->op == OP_NEG ? negate(r, eval(r, v, n->a)) : positive(r, eval(r, v, n->a));
    case J_GETATTR: return attr(r, eval(r, v, n->a), n->name);
    case J_GETITEM: {
        Value of = eval(r, v, n->a);
        if (n->b->kind == J_SLICE) return eval_slice(r, v, of, n->b, n->folded);
        return item(r, of, eval(r, v, n->b));
    }
    case J_CALL: {
        Value f = eval(r, v, n->a);
        Args args = eval_args(r, v, n, MISSING);
        return call(r, f, &args);
    }
    case J_FILTER: return eval_filter(r, v, n, eval(r, v, n->a));
    default: { // J_TEST
        Value of = eval(r, v, n->a);
        if (!n->test) no_such(r, "test", n->name);
        Args args = eval_args(r, v, n, MISSING);
        return boolean(n->test->fn(r, of, &args));
    }
    }
}

// ---- assignment ----
static void assign(Render *r, Vars *v, const Node *target, Value value) {
    if (target->kind == J_NAME) {
        *slot_at(v, target->place) = value;
    } else if (target->kind == J_NSREF) {
        set_attr(r, *slot_at(v, target->place), target->attr, value);
    } else {
        size_t n = (size_t) target->list.n;
        Value *parts = render_take_n(r, n, sizeof *parts);
        unpack(r, value, n, parts);
        for (size_t i = 0; i < n; i++) assign(r, v, target->list.v[i], parts[i]);
    }
}

// Every attribute target must be a namespace's before the value is computed.
static void check_namespaces(Render *r, Vars *v, const Node *target) {
    if (target->kind == J_NSREF) need_namespace(r, *slot_at(v, target->place));
    for (int i = 0; target->kind == J_TUPLE && i < target->list.n; i++) check_namespaces(r, v, target->list.v[i]);
}

// The tuple that a target makes of what was assigned to it.
static Value reassembled(Render *r, Vars *v, const Node *target) {
    if (target->kind == J_NAME) return *slot_at(v, target->place);
    Value *parts = render_take_n(r, (size_t) target->list.n, sizeof *parts);
    for (int i = 0; i < target->list.n; i++) parts[i] = reassembled(r, v, target->list.v[i]);
    return tuple_of(r, parts, (size_t) target->list.n);
}

// ---- loops ----
static bool condition(Render *r, void *scope, const void *code, Value *item_value) {
    const Node *n = code;
    Vars *v = scope;
    assign(r, v, n->test_target, *item_value);
    if (!truth(r, eval(r, v, n->c))) return false;
    *item_value = reassembled(r, v, n->test_target);
    return true;
}

static Value body_again(Render *r, void *scope, const void *code, Value iterable, int depth);

// The turns of a loop, then its else part, which alone may jump further out.
static Flow loop_turns(Render *r, Vars *v, const Node *n, Value over, LoopBody *again, Vars *outer, int depth) {
    Buffer *out = r->out;
    bool empty = true;
    if (n->c) {
        Vars *cv = vars_new(r, outer, n->test_fn);
        enter(r, cv, &n->test_scope);
        over = loop_filter(r, over, condition, cv, n);
    }
    if (n->extended) v->slot[n->loop.slot] = MISSING;
    Loop *loop = n->extended ? loop_begin(r, over, again, outer, n, depth) : NULL;
    Iter *it = loop ? NULL : iterate(r, over);
    for (Value x; loop ? loop_next(r, loop, &x) : (step(r), next(r, it, &x));) {
        assign(r, v, n->a, x);
        if (loop) v->slot[n->loop.slot] = loop_value(loop);
        enter(r, v, &n->scope);
        Flow flow = run(r, v, &n->body);
        r->out = out; // a jump may have left a capture
        if (flow == GO_BREAK) break;
        if (flow == GO_ON) empty = false;
    }
    leave(v, &n->scope);
    if (!empty || !n->other.n) return GO_ON;
    enter(r, v, &n->else_scope);
    Flow flow = run(r, v, &n->other);
    leave(v, &n->else_scope);
    return flow;
}

static Value body_again(Render *r, void *scope, const void *code, Value iterable, int depth) {
    const Node *n = code;
    Buffer b, *before = capture(r, &b);
    loop_turns(r, vars_new(r, scope, n->fn), n, iterable, body_again, scope, depth);
    return captured(r, &b, before);
}

static Flow run_for(Render *r, Vars *v, const Node *n) {
    Value over = eval(r, v, n->b);
    if (n->recursive) {
        enter_call(r);
        emit(r, body_again(r, v, n, over, 0));
        leave_call(r);
        return GO_ON;
    }
    return loop_turns(r, v, n, over, NULL, v, 0);
}

// ---- macros and blocks ----
static Value macro_body(Render *r, void *scope, const void *code, Value *args) {
    const Node *n = code;
    Vars *v = vars_new(r, scope, n->fn);
    Buffer b, *before = capture(r, &b);
    for (int i = 0; i < n->n_fixed; i++) v->slot[n->param_slot[i]] = args[i];
    enter(r, v, &n->scope);
    int first_default = n->list.n - n->other.n;
    for (int i = 0; i < n->list.n; i++) {
        Value *slot = &v->slot[n->param_slot[i]];
        if (!is_missing(*slot)) continue;
        *slot = i >= first_default ? eval(r, v, n->other.v[i - first_default]) : undefined_param(r, n->list.v[i]->name);
    }
    run(r, v, &n->body);
    return captured(r, &b, before);
}

static Value macro_of(Render *r, Vars *v, const Node *n) {
    return macro_value(r, &n->macro, v);
}

static Flow run_call_block(Render *r, Vars *v, const Node *n) {
    Value caller = macro_of(r, v, n);
    if (!n->a) { // generation
        emit(r, call(r, caller, &NO_ARGS));
        return GO_ON;
    }
    Value f = eval(r, v, n->a->a);
    Args args = eval_args(r, v, n->a, caller);
    emit(r, call(r, f, &args));
    return GO_ON;
}

static Flow run_set_block(Render *r, Vars *v, const Node *n) {
    Buffer b;
    enter(r, v, &n->scope);
    Buffer *before = capture(r, &b);
    Flow flow = run(r, v, &n->body);
    Value written = captured(r, &b, before);
    if (flow != GO_ON) return flow;
    if (n->kind == J_SET_BLOCK) assign(r, v, n->a, n->b ? eval_chain(r, v, n->b, written) : written);
    else emit(r, eval_chain(r, v, n->b, written));
    leave(v, &n->scope);
    return GO_ON;
}

static Flow run_with(Render *r, Vars *v, const Node *n) {
    enter(r, v, &n->scope);
    for (int i = 0; i < n->list.n; i++) assign(r, v, n->list.v[i], eval(r, v, n->other.v[i]));
    Flow flow = run(r, v, &n->body);
    if (flow == GO_ON) leave(v, &n->scope);
    return flow;
}

static Flow run_if(Render *r, Vars *v, const Node *n) {
    if (truth(r, eval(r, v, n->a))) return run(r, v, &n->body);
    for (int i = 0; i < n->elifs.n; i++) {
        if (truth(r, eval(r, v, n->elifs.v[i]->a))) return run(r, v, &n->elifs.v[i]->body);
    }
    return run(r, v, &n->other);
}

static Flow run_one(Render *r, Vars *v, const Node *n) {
    switch (n->kind) {
    case J_TEXT: emit_text(r, n->value.s->p, n->value.s->n); return GO_ON;
    case J_OUTPUT:
        for (int i = 0; i < n->list.n; i++) emit(r, eval(r, v, n->list.v[i]));
        return GO_ON;
    case J_FOR: return run_for(r, v, n);
    case J_IF: return run_if(r, v, n);
    case J_MACRO: *slot_at(v, n->place) = macro_of(r, v, n); return GO_ON;
    case J_CALL_BLOCK: return run_call_block(r, v, n);
    case J_SET_BLOCK:
    case J_FILTER_BLOCK: return run_set_block(r, v, n);
    case J_WITH: return run_with(r, v, n);
    case J_BREAK: return GO_BREAK;
    case J_CONTINUE: return GO_CONTINUE;
    default: // J_SET
        check_namespaces(r, v, n->a);
        assign(r, v, n->a, eval(r, v, n->b));
        return GO_ON;
    }
}

static Flow run(Render *r, Vars *v, const NodeList *list) {
    for (int i = 0; i < list->n; i++) {
        Flow flow = run_one(r, v, list->v[i]);
        if (flow != GO_ON) return flow;
    }
    return GO_ON;
}

// ---- the template ----
static void root(Render *r, const void *code) {
    const Jinja *t = code;
    Vars *v = vars_new(r, NULL, t->functions[0]);
    enter(r, v, &t->scope);
    run(r, v, &t->body);
}

static void give_bodies(NodeList *list);

static void give_body(Node *n) {
    if (n->kind == J_MACRO || n->kind == J_CALL_BLOCK) {
        n->macro.body = macro_body;
        n->macro.code = n;
    }
    give_bodies(&n->body);
    if (n->kind == J_FOR || n->kind == J_IF) {
        give_bodies(&n->other);
        give_bodies(&n->elifs);
    }
}

static void give_bodies(NodeList *list) {
    for (int i = 0; i < list->n; i++) give_body(list->v[i]);
}

int jinja_render(const Jinja *t, Render *r) {
    give_bodies((NodeList *) &t->body);
    return render_run(r, root, t);
}
