// Which variable a name means: Jinja2's rules of scope, as its compiler has them (idtracking.py), so that every
// odd case comes out the same: what a loop or a block sets is gone after it, a branch that may set a name takes
// the outer value first, a macro sees the variables around it as they are when it is called. In: the tree. Out: a
// slot for every name, what each frame does on entry, a function for every macro, call block, recursive loop and
// loop condition. See jinja.h.
#include "jinja.h"

#include <string.h>

typedef struct { // a variable of one frame: `l_1_name` in Jinja2's own output
    const String *name;
    int level, slot;
    Function *fn;
} Ident;

typedef struct {
    Ident *ident;
    LoadKind kind;
    Ident *from;
} SymLoad;

typedef struct Symbols Symbols;
struct Symbols {
    Symbols *parent;
    Function *fn;
    int level;
    Ident **ref; // one a name
    int n_ref, cap_ref;
    SymLoad *load; // one an ident
    int n_load, cap_load;
    const String **stores;
    int n_stores, cap_stores;
};

typedef struct {
    Jinja *t;
    Arena *a;
    bool soft; // inside an if, where an unknown filter fails only when it is reached
} Resolver;

#define FAIL(x, node_, ...)                                                                                            \
    do {                                                                                                               \
        Loc loc_ = (x)->t->loc;                                                                                        \
        loc_.pos = (node_)->pos;                                                                                       \
        fail_at(loc_, __VA_ARGS__);                                                                                    \
    } while (0)

static bool same(const String *a, const String *b) {
    return a->n == b->n && !memcmp(a->p, b->p, a->n);
}

static bool is(const String *a, const char *z) {
    return a && strlen(z) == a->n && !memcmp(a->p, z, a->n);
}

// ---- symbol tables ----
static Symbols *symbols(Resolver *x, Symbols *parent, Function *fn) {
    Symbols *s = NEW(x->a, Symbols);
    s->parent = parent;
    s->fn = fn;
    s->level = parent ? parent->level + 1 : 0;
    return s;
}

static Ident *own_ref(const Symbols *s, const String *name) {
    for (int i = 0; i < s->n_ref; i++) {
        if (same(s->ref[i]->name, name)) return s->ref[i];
    }
    return NULL;
}

static Ident *find_ref(const Symbols *s, const String *name) {
    Ident *found = NULL;
    for (; s && !found; s = s->parent) found = own_ref(s, name);
    return found;
}

static Ident *ident(Resolver *x, Function *fn, int level, const String *name) {
    for (int i = 0; i < fn->n_slots; i++) {
        if (fn->levels[i] != level || !same(fn->slots[i], name)) continue;
        Ident *again = NEW(x->a, Ident);
        *again = (Ident){name, level, i, fn};
        return again;
    }
    Ident *fresh = NEW(x->a, Ident);
    *fresh = (Ident){name, level, fn->n_slots, fn};
    int n = fn->n_slots;
    *PUSH(x->a, fn->slots, fn->n_slots, fn->cap_slots) = name;
    *PUSH(x->a, fn->levels, n, fn->cap_levels) = level;
    return fresh;
}

static void set_load(Resolver *x, Symbols *s, SymLoad load) {
    for (int i = 0; i < s->n_load; i++) {
        if (s->load[i].ident->slot == load.ident->slot) {
            s->load[i] = load;
            return;
        }
    }
    *PUSH(x->a, s->load, s->n_load, s->cap_load) = load;
}

static Ident *define(Resolver *x, Symbols *s, const String *name, LoadKind kind, Ident *from) {
    Ident *id = own_ref(s, name);
    if (!id) {
        id = ident(x, s->fn, s->level, name);
        *PUSH(x->a, s->ref, s->n_ref, s->cap_ref) = id;
    }
    set_load(x, s, (SymLoad){id, kind, from});
    return id;
}

static bool stored(const Symbols *s, const String *name) {
    for (int i = 0; i < s->n_stores; i++) {
        if (same(s->stores[i], name)) return true;
    }
    return false;
}

static void add_store(Resolver *x, Symbols *s, const String *name) {
    if (!stored(s, name)) *PUSH(x->a, s->stores, s->n_stores, s->cap_stores) = name;
}

static void store(Resolver *x, Symbols *s, const String *name) {
    add_store(x, s, name);
    if (own_ref(s, name)) return;
    Ident *outer = s->parent ? find_ref(s->parent, name) : NULL;
    define(x, s, name, outer ? LOAD_ALIAS : LOAD_UNDEFINED, outer);
}

static Ident *declare(Resolver *x, Symbols *s, const String *name) {
    add_store(x, s, name);
    return define(x, s, name, LOAD_PARAM, NULL);
}

static void load(Resolver *x, Symbols *s, const String *name) {
    if (!find_ref(s, name)) define(x, s, name, LOAD_RESOLVE, NULL);
}

static Symbols *copy_symbols(Resolver *x, const Symbols *s) {
    Symbols *c = NEW(x->a, Symbols);
    *c = *s;
    c->ref = NEWN(x->a, Ident *, s->cap_ref);
    c->load = NEWN(x->a, SymLoad, s->cap_load);
    c->stores = NEWN(x->a, const String *, s->cap_stores);
    if (s->n_ref) memcpy(c->ref, s->ref, (size_t) s->n_ref * sizeof *s->ref);
    if (s->n_load) memcpy(c->load, s->load, (size_t) s->n_load * sizeof *s->load);
    if (s->n_stores) memcpy(c->stores, s->stores, (size_t) s->n_stores * sizeof *s->stores);
    return c;
}

// After an if: what some branch sets begins with the outer value, since another branch may have been taken.
static void branch_update(Resolver *x, Symbols *s, Symbols *const *branch, int n) {
    const Symbols before = *copy_symbols(x, s);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < branch[i]->n_ref; k++) {
            if (!own_ref(s, branch[i]->ref[k]->name)) *PUSH(x->a, s->ref, s->n_ref, s->cap_ref) = branch[i]->ref[k];
        }
        for (int k = 0; k < branch[i]->n_load; k++) set_load(x, s, branch[i]->load[k]);
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < branch[i]->n_stores; k++) {
            const String *name = branch[i]->stores[k];
            add_store(x, s, name);
            if (stored(&before, name)) continue;
            Ident *outer = s->parent ? find_ref(s->parent, name) : NULL;
            set_load(x, s, (SymLoad){find_ref(s, name), outer ? LOAD_ALIAS : LOAD_RESOLVE, outer});
        }
    }
}

// ---- walking ----
typedef void Visit(void *state, Node *n);

static void each(const NodeList *list, Visit *visit, void *state) {
    for (int i = 0; i < list->n; i++) visit(state, list->v[i]);
}

static void maybe(Node *n, Visit *visit, void *state) {
    if (n) visit(state, n);
}

// The children of an expression, in the order in which Jinja2 has them.
static void children(Node *n, Visit *visit, void *state) {
    if (n->kind == J_COND) {
        visit(state, n->b);
        visit(state, n->a);
        maybe(n->c, visit, state);
        return;
    }
    maybe(n->a, visit, state);
    if (n->kind == J_CALL || n->kind == J_FILTER || n->kind == J_TEST) {
        each(&n->list, visit, state);
        each(&n->other, visit, state);
        maybe(n->b, visit, state);
        maybe(n->c, visit, state);
        return;
    }
    maybe(n->b, visit, state);
    maybe(n->c, visit, state);
    for (int i = 0; i < n->list.n; i++) {
        visit(state, n->list.v[i]);
        if (n->kind == J_DICT) visit(state, n->other.v[i]);
    }
}

// ---- which of some names are read before they are set, anywhere below ----
typedef struct {
    const char *const *names;
    int n;
    unsigned open, found;
} Undeclared;

static void undeclared_in(void *state, Node *n) {
    Undeclared *u = state;
    if (n->kind == J_NAME) {
        for (int i = 0; i < u->n; i++) {
            if (!is(n->name, u->names[i])) continue;
            if (n->ctx == CTX_LOAD && (u->open & 1u << i)) u->found |= 1u << i;
            else u->open &= ~(1u << i);
        }
        return;
    }
    switch (n->kind) {
    case J_FOR:
        undeclared_in(u, n->a);
        undeclared_in(u, n->b);
        each(&n->body, undeclared_in, u);
        each(&n->other, undeclared_in, u);
        maybe(n->c, undeclared_in, u);
        return;
    case J_IF:
        undeclared_in(u, n->a);
        each(&n->body, undeclared_in, u);
        each(&n->elifs, undeclared_in, u);
        each(&n->other, undeclared_in, u);
        return;
    case J_FILTER_BLOCK:
        each(&n->body, undeclared_in, u);
        undeclared_in(u, n->b);
        return;
    case J_MACRO:
    case J_CALL_BLOCK:
    case J_WITH:
    case J_SET_BLOCK:
        maybe(n->a, undeclared_in, u);
        maybe(n->b, undeclared_in, u);
        each(&n->list, undeclared_in, u);
        each(&n->other, undeclared_in, u);
        each(&n->body, undeclared_in, u);
        return;
    default: children(n, undeclared_in, u);
    }
}

static unsigned find_undeclared(const NodeList *body, const char *const *names, int n) {
    Undeclared u = {names, n, (1u << n) - 1, 0};
    each(body, undeclared_in, &u);
    return u.found;
}

// ---- what a frame's statements load and store ----
typedef struct {
    Resolver *x;
    Symbols *s;
} Analysis;

static void analyse(void *state, Node *n);

static Symbols *branch(Analysis *y, const NodeList *list) {
    Symbols *before = y->s, *own = copy_symbols(y->x, before);
    y->s = own;
    each(list, analyse, y);
    y->s = before;
    return own;
}

static void analyse(void *state, Node *n) {
    Analysis *y = state;
    switch (n->kind) {
    case J_NAME:
        if (n->ctx == CTX_PARAM) declare(y->x, y->s, n->name);
        else if (n->ctx == CTX_STORE) store(y->x, y->s, n->name);
        else load(y->x, y->s, n->name);
        return;
    case J_NSREF: load(y->x, y->s, n->name); return;
    case J_IF: {
        analyse(y, n->a);
        Symbols *three[3] = {branch(y, &n->body), NULL, NULL};
        three[1] = branch(y, &n->elifs);
        three[2] = branch(y, &n->other);
        branch_update(y->x, y->s, three, 3);
        return;
    }
    case J_MACRO: store(y->x, y->s, n->name); return;
    case J_SET:
        analyse(y, n->b);
        analyse(y, n->a);
        return;
    case J_FOR: analyse(y, n->b); return;
    case J_CALL_BLOCK: maybe(n->a, analyse, y); return;
    case J_FILTER_BLOCK: analyse(y, n->b); return;
    case J_WITH: each(&n->other, analyse, y); return;
    case J_SET_BLOCK: analyse(y, n->a); return;
    default: children(n, analyse, y);
    }
}

static void analyse_list(Resolver *x, Symbols *s, const NodeList *list) {
    Analysis y = {x, s};
    each(list, analyse, &y);
}

static void declare_target(Resolver *x, Symbols *s, Node *n) {
    if (n->kind == J_NAME) declare(x, s, n->name);
    for (int i = 0; n->kind == J_TUPLE && i < n->list.n; i++) declare_target(x, s, n->list.v[i]);
}

// ---- giving places ----
static Place place_from(const Symbols *s, const Ident *id) {
    Place p = {0, id->slot};
    for (const Function *fn = s->fn; fn != id->fn; fn = fn->parent) p.up++;
    return p;
}

static Place place(Resolver *x, Symbols *s, const String *name) {
    load(x, s, name);
    return place_from(s, find_ref(s, name));
}

static Scope scope_of(Resolver *x, Symbols *s) {
    Scope scope = {NEWN(x->a, Load, s->n_load + 1), s->n_load};
    for (int i = 0; i < s->n_load; i++) {
        SymLoad *l = &s->load[i];
        scope.load[i] = (Load){.kind = l->kind, .slot = l->ident->slot, .name = l->ident->name};
        if (l->kind == LOAD_ALIAS) scope.load[i].from = place_from(s, l->from);
        if (l->kind != LOAD_RESOLVE || !is_missing(global_value(l->ident->name->p, l->ident->name->n))) continue;
        bool known = false;
        for (int k = 0; k < x->t->n_reads; k++) known |= same(x->t->reads[k], l->ident->name);
        if (!known) *PUSH(x->a, x->t->reads, x->t->n_reads, x->t->cap_reads) = l->ident->name;
    }
    return scope;
}

static Function *function(Resolver *x, Function *parent, const char *name) {
    Function *fn = NEW(x->a, Function);
    fn->parent = parent;
    fn->name = name;
    fn->id = x->t->n_functions;
    *PUSH(x->a, x->t->functions, x->t->n_functions, x->t->cap_functions) = fn;
    return fn;
}

typedef struct {
    Resolver *x;
    Symbols *s;
    const Node *folded, *output; // the constant expression around, and the output statement
} Placing;

static void expression(void *state, Node *n);
static void statement(Resolver *x, Symbols *s, Node *n);

static void statements(Resolver *x, Symbols *s, const NodeList *list) {
    for (int i = 0; i < list->n; i++) statement(x, s, list->v[i]);
}

static void check_filter_name(Resolver *x, Node *at, const String *name) {
    if (filter_named(name->p, name->n)) return;
    if (filter_of_jinja(name->p, name->n)) FAIL(x, at, "the filter '%s' is outside what ggcc implements", name->p);
    if (!x->soft) FAIL(x, at, "no filter named %s", str_show(x->a, (Str){name->p, name->n}));
}

// `map('upper')` names a filter, `select('string')` a test.
static void check_named_argument(Resolver *x, Node *n) {
    bool map = is(n->name, "map");
    if (!map || !n->list.n || n->list.v[0]->kind != J_CONST || n->list.v[0]->value.kind != V_STR) return;
    const String *name = n->list.v[0]->value.s;
    if (!filter_named(name->p, name->n) && filter_of_jinja(name->p, name->n))
        FAIL(x, n, "the filter '%s' is outside what ggcc implements", name->p);
}

static void check_call(Resolver *x, Node *n) {
    if (n->a->kind == J_GETATTR && method_missing(n->a->name->p, n->a->name->n)) {
        FAIL(x, n->a, "the method '%s' is outside what ggcc implements", n->a->name->p);
    }
    if (n->a->kind == J_NAME && is(n->a->name, "lipsum"))
        FAIL(x, n->a, "the function 'lipsum' is outside what ggcc implements");
}

// What Jinja2 computes while it compiles: no names, no calls, no filter that asks for the context.
static void find_unfoldable(void *state, Node *n) {
    static const char *const lazy[] = {"map", "select", "reject", "selectattr", "rejectattr"};
    bool *found = state;
    *found |= n->kind == J_NAME || n->kind == J_CALL ||
        (n->kind == J_FILTER && !filter_named(n->name->p, n->name->n)) ||
        (n->kind == J_TEST && !test_named(n->name->p, n->name->n));
    for (int i = 0; n->kind == J_FILTER && i < COUNT(lazy); i++) *found |= is(n->name, lazy[i]);
    children(n, find_unfoldable, found);
}

static bool never_set(const Symbols *s, const String *name) {
    for (; s; s = s->parent) {
        if (stored(s, name)) return false;
    }
    return true;
}

static void expression(void *state, Node *n) {
    Placing *p = state;
    bool soft = p->x->soft, constant = false;
    if (n->kind == J_OUTPUT) p->output = n;
    if (!p->folded && n->kind != J_OUTPUT && n->kind != J_TEXT) {
        find_unfoldable(&constant, n);
        constant = !constant;
        if (constant) p->folded = n;
    }
    // What Jinja2 computes as a whole comes out of it; a slice that is undefined by itself, or of which something
    // is asked that an undefined value has not, is computed again, and fails.
    bool asks = n->kind == J_GETATTR || n->kind == J_GETITEM || n->kind == J_BINARY || n->kind == J_UNARY;
    if (asks && n->a->kind == J_GETITEM) n->a->op = 1;
    if (asks && n->b && n->b->kind == J_GETITEM) n->b->op = 1;
    if (n->kind == J_GETITEM && n->b->kind == J_SLICE && p->folded && !n->op) {
        bool shown = false;
        for (int i = 0; p->output && i < p->output->list.n; i++) shown |= p->output->list.v[i] == n;
        n->folded = p->folded != n || shown;
    }
    switch (n->kind) {
    case J_NAME:
        if (n->ctx == CTX_LOAD && is(n->name, "self") && never_set(p->s, n->name))
            FAIL(p->x, n, "'self' is outside what ggcc implements: there are no blocks");
        n->place = place(p->x, p->s, n->name);
        return;
    case J_NSREF: n->place = place(p->x, p->s, n->name); return;
    case J_FILTER:
        check_filter_name(p->x, n, n->name);
        check_named_argument(p->x, n);
        n->filter = filter_named(n->name->p, n->name->n);
        break;
    case J_TEST:
        n->test = test_named(n->name->p, n->name->n);
        if (!n->test && !soft) FAIL(p->x, n, "no test named %s", str_show(p->x->a, (Str){n->name->p, n->name->n}));
        break;
    case J_CALL: check_call(p->x, n); break;
    case J_COND: p->x->soft = true; break;
    default: break;
    }
    children(n, expression, p);
    if (constant) p->folded = NULL;
    p->x->soft = soft;
}

static void place_expression(Resolver *x, Symbols *s, Node *n) {
    Placing p = {x, s, NULL, NULL};
    if (n) expression(&p, n);
}

static const char *c_name(Resolver *x, const char *kind, const String *name) {
    Str s = str_fmt(x->a, "%s_", kind);
    char *p = arena_alloc(x->a, s.n + 41);
    memcpy(p, s.p, s.n);
    size_t n = 0;
    for (size_t i = 0; name && i < name->n && n < 40; i++) {
        char c = name->p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (plain) p[s.n + n++] = c;
    }
    return p;
}

static void function_statement(Resolver *x, Symbols *outer, Node *n) { // MACRO, CALL_BLOCK
    static const char *const specials[] = {"caller", "kwargs", "varargs"};
    Function *fn = function(x, outer->fn, c_name(x, n->kind == J_MACRO ? "macro" : "call", n->name));
    Symbols *s = symbols(x, outer, fn);
    bool soft = x->soft;
    x->soft = false;
    NodeList parts[3] = {n->list, n->other, n->body};
    int explicit_caller = -1;
    bool own[3] = {false};
    unsigned found = find_undeclared(&n->body, specials, 3);
    for (int i = 0; i < n->list.n; i++) {
        if (is(n->list.v[i]->name, "caller")) explicit_caller = i;
        for (int k = 1; k < 3; k++) own[k] |= is(n->list.v[i]->name, specials[k]);
    }
    if ((found & 1) && explicit_caller >= 0 && explicit_caller < n->list.n - n->other.n) {
        FAIL(x, n, "the special argument 'caller' must be left out or be given a default value");
    }
    own[0] = explicit_caller >= 0;
    for (int i = 0; i < 3; i++) analyse_list(x, s, &parts[i]);
    n->fn = fn;
    n->param_slot = NEWN(x->a, int, n->list.n + 3);
    for (int i = 0; i < n->list.n; i++) n->param_slot[n->n_fixed++] = find_ref(s, n->list.v[i]->name)->slot;
    for (int k = 0; k < 3; k++) {
        if (!(found & 1u << k) || own[k]) continue;
        n->param_slot[n->n_fixed++] = declare(x, s, jinja_string(x->a, str(specials[k])))->slot;
    }
    const String **params = NEWN(x->a, const String *, n->list.n + 1);
    for (int i = 0; i < n->list.n; i++) params[i] = n->list.v[i]->name;
    n->macro = (MacroInfo){.name = n->kind == J_MACRO ? n->name->p : NULL,
        .params = params,
        .n_params = n->list.n,
        .caller = found & 1,
        .kwargs = (found & 2) && !own[1],
        .varargs = (found & 4) && !own[2],
        .explicit_caller = explicit_caller >= 0};
    for (int i = 0; i < 3; i++) analyse_list(x, s, &parts[i]);
    for (int i = 0; i < n->list.n; i++) n->list.v[i]->place = place(x, s, n->list.v[i]->name);
    for (int i = 0; i < n->other.n; i++) place_expression(x, s, n->other.v[i]);
    statements(x, s, &n->body);
    n->scope = scope_of(x, s);
    x->soft = soft;
}

static void no_loop_store(void *state, Node *n) {
    Resolver *x = state;
    if (n->kind == J_NAME && n->ctx == CTX_STORE && is(n->name, "loop"))
        FAIL(x, n, "the loop's own variable 'loop' cannot be assigned");
    children(n, no_loop_store, x);
    each(&n->body, no_loop_store, x);
    if (n->kind == J_FOR || n->kind == J_IF || n->kind == J_MACRO || n->kind == J_CALL_BLOCK || n->kind == J_WITH) {
        each(&n->other, no_loop_store, x);
        each(&n->elifs, no_loop_store, x);
    }
}

static Node *copy_target(Resolver *x, const Node *n) {
    Node *c = NEW(x->a, Node);
    *c = *n;
    c->list = (NodeList){0};
    for (int i = 0; i < n->list.n; i++) *PUSH(x->a, c->list.v, c->list.n, c->list.cap) = copy_target(x, n->list.v[i]);
    return c;
}

static void for_statement(Resolver *x, Symbols *outer, Node *n) {
    static const char *const loop_name[] = {"loop"};
    bool soft = x->soft;
    n->extended = n->recursive || find_undeclared(&n->body, loop_name, 1);
    Function *fn = outer->fn;
    place_expression(x, outer, n->b);
    x->soft = false;
    if (n->c) {
        n->test_fn = function(x, outer->fn, "condition");
        Symbols *s = symbols(x, outer, n->test_fn);
        declare_target(x, s, n->a);
        analyse_list(x, s, &(NodeList){&n->c, 1, 1});
        n->test_target = copy_target(x, n->a);
        place_expression(x, s, n->test_target);
        place_expression(x, s, n->c);
        n->test_scope = scope_of(x, s);
    }
    if (n->recursive) fn = n->fn = function(x, outer->fn, "loop");
    Symbols *s = symbols(x, outer, fn);
    if (n->extended) n->loop = place_from(s, declare(x, s, jinja_string(x->a, S("loop"))));
    declare_target(x, s, n->a);
    analyse_list(x, s, &n->body);
    no_loop_store(x, n);
    place_expression(x, s, n->a);
    statements(x, s, &n->body);
    n->scope = scope_of(x, s);
    if (n->other.n) {
        Symbols *e = symbols(x, outer, fn);
        analyse_list(x, e, &n->other);
        statements(x, e, &n->other);
        n->else_scope = scope_of(x, e);
    }
    x->soft = soft;
}

static void inner_statement(Resolver *x, Symbols *outer, Node *n) { // WITH, SET_BLOCK, FILTER_BLOCK
    Symbols *s = symbols(x, outer, outer->fn);
    bool soft = x->soft;
    if (n->kind == J_WITH) {
        for (int i = 0; i < n->other.n; i++) place_expression(x, outer, n->other.v[i]);
        analyse_list(x, s, &n->list);
    }
    x->soft = false;
    analyse_list(x, s, &n->body);
    if (n->kind == J_FILTER_BLOCK) analyse_list(x, s, &(NodeList){&n->b, 1, 1});
    if (n->kind == J_WITH) {
        for (int i = 0; i < n->list.n; i++) place_expression(x, s, n->list.v[i]);
    }
    statements(x, s, &n->body);
    place_expression(x, s, n->b);
    if (n->kind == J_SET_BLOCK) place_expression(x, outer, n->a);
    n->scope = scope_of(x, s);
    x->soft = soft;
}

static void statement(Resolver *x, Symbols *s, Node *n) {
    bool soft = x->soft;
    switch (n->kind) {
    case J_FOR: for_statement(x, s, n); return;
    case J_IF:
        x->soft = true;
        place_expression(x, s, n->a);
        statements(x, s, &n->body);
        for (int i = 0; i < n->elifs.n; i++) statement(x, s, n->elifs.v[i]);
        statements(x, s, &n->other);
        x->soft = soft;
        return;
    case J_MACRO:
        function_statement(x, s, n);
        n->place = place(x, s, n->name);
        return;
    case J_CALL_BLOCK:
        function_statement(x, s, n);
        place_expression(x, s, n->a);
        return;
    case J_WITH:
    case J_SET_BLOCK:
    case J_FILTER_BLOCK: inner_statement(x, s, n); return;
    case J_SET:
        place_expression(x, s, n->b);
        place_expression(x, s, n->a);
        return;
    default: place_expression(x, s, n);
    }
}

void jinja_resolve(Jinja *t) {
    Resolver x = {t, t->arena, false};
    Symbols *s = symbols(&x, NULL, function(&x, NULL, "root"));
    analyse_list(&x, s, &t->body);
    statements(&x, s, &t->body);
    t->scope = scope_of(&x, s);
}

Jinja *jinja_compile(Arena *a, const char *file, Str source) {
    Jinja *t = NEW(a, Jinja);
    t->arena = a;
    t->loc = (Loc){file, source, 0};
    if (source.n > 16u << 20) fail("%s: the template has %zu bytes; at most 16 MiB are read", file, source.n);
    for (size_t i = 0; i < source.n;) {
        size_t n = (unsigned char) source.p[i] < 0x80 ? 1
            : (unsigned char) source.p[i] < 0xE0      ? 2
            : (unsigned char) source.p[i] < 0xF0      ? 3
                                                      : 4;
        if (i + n > source.n || !utf8_valid(source.p + i, n)) {
            t->loc.pos = (uint32_t) i;
            fail_at(t->loc, "the template is not UTF-8 here");
        }
        i += n;
    }
    t->loc.text = jinja_source(a, source);
    jinja_parse(t, jinja_lex(a, &t->loc));
    jinja_resolve(t);
    return t;
}
