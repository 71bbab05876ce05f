// Declarations and statements of a description, and the parser's small steps. In: tokens. Out: a Spec. Nothing here
// knows a key from a declaration; only the comment that a default owes is checked, because it is a matter of text.
#include "spec_parse.h"

#include <string.h>

enum { MAX_DEPTH = 100 };

// ---- small steps ----

_Noreturn void expected(Parser *p, const char *what) {
    const char *found = p->t->kind == T_END ? "the end of the file"
        : p->t->kind == T_LINE              ? "the end of the line"
                                            : NULL;
    Loc here = loc_at(p->s, p->t->pos);
    if (found) fail_at(here, "expected %s, found %s", what, found);
    fail_at(here, "expected %s, found '%.*s'", what, FMT(token_text(p, p->t)));
}

bool is(const Parser *p, int kind) {
    return p->t->kind == kind;
}

Str token_text(const Parser *p, const Token *t) {
    return (Str){p->s->text.p + t->pos, t->len};
}

bool is_word(const Parser *p, const char *word) {
    return is(p, T_NAME) && str_is(token_text(p, p->t), word);
}

bool take(Parser *p, int kind) {
    if (!is(p, kind)) return false;
    if (kind != T_END) p->t++;
    return true;
}

bool take_word(Parser *p, const char *word) {
    if (!is_word(p, word)) return false;
    p->t++;
    return true;
}

void need(Parser *p, int kind, const char *what) {
    if (!take(p, kind)) expected(p, what);
}

Str need_name(Parser *p, const char *what) {
    if (!is(p, T_NAME)) expected(p, what);
    return token_text(p, p->t++);
}

void skip_lines(Parser *p) {
    while (take(p, T_LINE)) {}
}

void enter(Parser *p) {
    if (++p->depth > MAX_DEPTH) fail_at(loc_at(p->s, p->t->pos), "nested deeper than %d", MAX_DEPTH);
}

void leave(Parser *p) {
    p->depth--;
}

uint32_t end_of_last(const Parser *p) {
    return p->t == p->s->token ? 0 : p->t[-1].pos + p->t[-1].len;
}

Str comment_on(const Parser *p, uint32_t first_line, uint32_t last_line) {
    const Source *s = p->s;
    for (int i = 0; i < s->n_comment && s->comment[i].line <= last_line; i++)
        if (s->comment[i].line >= first_line && s->comment[i].text.n) return s->comment[i].text;
    return S("");
}

// ---- declarations ----

static void parse_block(Parser *p, Block *b);

static Stmt *stmt_new(Parser *p, StmtKind kind) {
    Stmt *s = NEW(p->a, Stmt);
    *s = (Stmt){.kind = kind, .src = p->s, .pos = p->t->pos};
    return s;
}

static void add_name(Parser *p, Stmt *s, Str name, uint32_t pos) {
    if (s->n_name == s->cap_name) {
        uint32_t *at = NEWN(p->a, uint32_t, s->cap_name ? s->cap_name * 2 : 8);
        for (int i = 0; i < s->n_name; i++) at[i] = s->at[i];
        s->at = at;
    }
    *PUSH(p->a, s->name, s->n_name, s->cap_name) = name;
    s->at[s->n_name - 1] = pos;
}

static void declare(Parser *p, Stmt *s, const char *what) {
    uint32_t pos = p->t->pos;
    Str name = need_name(p, what);
    for (int i = 0; i < s->n_name; i++)
        if (str_eq(s->name[i], name)) fail_at(loc_at(p->s, pos), "'%.*s' stands twice", FMT(name));
    add_name(p, s, name, pos);
    *PUSH(p->a, p->declared, p->n_declared, p->cap_declared) = name;
}

// A name can be a whole dotted key; in headers also with dashes (a2, b-h1).
static Str dashed_name(Parser *p, const char *what) {
    Str name = need_name(p, what);
    while (is(p, '-') && p->t->pos == end_of_last(p)) {
        const Token *t = ++p->t;
        if ((t->kind != T_NAME && t->kind != T_NUM) || t->pos != end_of_last(p))
            expected(p, "the rest of the name after '-'");
        p->t++;
        name.n = end_of_last(p) - (size_t) (name.p - p->s->text.p);
    }
    return name;
}

static void value_decl(Parser *p, Stmt *s) {
    declare(p, s, "a name");
    if (take(p, '[')) {
        if (!take_word(p, "l")) expected(p, "'l', the layer's index");
        need(p, ']', "']'");
        s->by_layer = true;
    }
    need(p, '=', "'=' and what it is");
    s->expr = parse_expr(p);
}

// tensor a, b[n] : out   |  : in -> out   [+ bias] [exact] [optional] [ids n] [= source] [or source]
static void tensor_decl(Parser *p, Stmt *s) {
    do {
        declare(p, s, "the name of a tensor");
        if (take(p, '[')) {
            s->index = parse_expr(p);
            need(p, ']', "']'");
        }
    } while (take(p, ','));
    need(p, ':', "':' and the shape");
    s->out = parse_axes(p);
    if (take(p, T_ARROW)) {
        s->in = s->out;
        s->out = parse_axes(p);
    }
    for (;;) {
        if (is(p, '+') && p->t[1].kind == T_NAME && str_is(token_text(p, p->t + 1), "bias")) {
            p->t += 2;
            s->bias = take(p, '?') ? BIAS_MAYBE : BIAS_ALWAYS;
        } else if (take_word(p, "exact")) s->exact = true;
        else if (take_word(p, "optional")) s->optional = true;
        else if (take_word(p, "ids")) s->ids = parse_value(p);
        else break;
    }
    uint32_t pos = p->t->pos;
    bool own = is_word(p, "or"); // no `=`: the first source is its own name
    if (own || take(p, '=')) {
        if (s->n_name > 1) fail_at(loc_at(p->s, pos), "sources belong to one tensor; %d are declared here", s->n_name);
        if (own) p->t++;
        s->source = parse_source(p);
        if (own) {
            Expr *self = NEW(p->a, Expr), *list = NEW(p->a, Expr);
            *self = (Expr){.kind = E_NAME,
                .src = p->s,
                .pos = s->at[0],
                .end = s->at[0] + (uint32_t) s->name[0].n,
                .name = s->name[0]};
            *list = *s->source;
            list->cap = list->n = s->source->n + 1;
            list->arg = NEWN(p->a, Expr *, list->n);
            list->arg[0] = self;
            for (int i = 1; i < list->n; i++) list->arg[i] = s->source->arg[i - 1];
            s->source = list;
        }
    }
}

static void state_decl(Parser *p, Stmt *s) {
    do {
        declare(p, s, "the name of a state");
        if (take(p, '[')) {
            s->index = parse_expr(p);
            need(p, ']', "']'");
        }
    } while (take(p, ','));
    need(p, ':', "':' and what it holds");
    s->expr = parse_expr(p);
}

static void port_decl(Parser *p, Stmt *s) {
    declare(p, s, "a name");
    need(p, ':', "':' and a shape");
    s->out = parse_axes(p);
    s->optional = take_word(p, "optional");
}

static void ignore_stmt(Parser *p, Stmt *s) {
    if (take_word(p, "layers")) {
        s->from = parse_value(p);
        need(p, T_DOTS, "'..' between the first layer and the end");
        s->to = parse_value(p);
        s->prefix = take_word(p, "at") ? need_name(p, "the prefix of their tensors") : S("blk");
    } else {
        do {
            uint32_t pos = p->t->pos;
            Str quoted = is(p, T_STR) ? (Str){p->s->text.p + pos + 1, p->t->len - 2} : S("");
            if (take(p, T_STR)) add_name(p, s, quoted, pos);
            else add_name(p, s, need_name(p, "the name of a key or tensor"), pos);
        } while (take(p, ','));
    }
}

static void expect_stmt(Parser *p, Stmt *s) {
    uint32_t pos = p->t->pos;
    bool quoted = is(p, T_STR);
    Str name = quoted ? (Str){p->s->text.p + pos + 1, p->t->len - 2} : S("");
    if (quoted) p->t++;
    else name = need_name(p, "a key");
    add_name(p, s, name, pos);
    need(p, T_EQ, "'==' and its neutral value");
    s->expr = parse_value(p);
}

// def name(a, b: preset) = expr   |  { .. return a, b }
static void def_decl(Parser *p, Stmt *s) {
    declare(p, s, "the name of the function");
    s->preset = NEWN(p->a, Expr *, 64);
    need(p, '(', "'(' and the parameters");
    while (!is(p, ')')) {
        if (s->n_name == 64) expected(p, "at most 63 parameters");
        declare(p, s, "a parameter");
        if (take(p, ':')) s->preset[s->n_name - 1] = parse_expr(p);
        if (!take(p, ',')) break;
    }
    need(p, ')', "',' or ')'");
    if (take(p, '=')) {
        Stmt *r = stmt_new(p, S_RETURN);
        r->expr = NEW(p->a, Expr);
        *r->expr =
            (Expr){.kind = E_LIST, .src = p->s, .pos = p->t->pos, .n = 1, .cap = 1, .arg = NEWN(p->a, Expr *, 1)};
        r->expr->arg[0] = parse_expr(p);
        r->end = r->expr->end = end_of_last(p);
        *PUSH(p->a, s->body.stmt, s->body.n, s->body.cap) = r;
    } else parse_block(p, &s->body);
}

// layer block[l < L] | [l in a .. b]  [at prefix] (x, y) { .. }
static void layer_decl(Parser *p, Stmt *s) {
    declare(p, s, "the layer's name");
    need(p, '[', "'[l < COUNT]'");
    if (!take_word(p, "l")) expected(p, "'l', the layer's index");
    if (take(p, '<')) s->to = parse_value(p);
    else if (take_word(p, "in")) {
        s->from = parse_value(p);
        need(p, T_DOTS, "'..' between the first layer and the end");
        s->to = parse_value(p);
    } else expected(p, "'< COUNT' or 'in FIRST .. END'");
    need(p, ']', "']'");
    s->prefix = take_word(p, "at") ? need_name(p, "the prefix of its tensors") : S("blk");
    need(p, '(', "'(' and what the layers carry");
    do declare(p, s, "the name of a carried value");
    while (take(p, ','));
    need(p, ')', "',' or ')'");
    parse_block(p, &s->body);
}

// ---- statements ----

static void if_stmt(Parser *p, Stmt *s) {
    s->expr = parse_value(p);
    parse_block(p, &s->body);
    Token *after = p->t;
    skip_lines(p);
    if (!take_word(p, "else")) {
        p->t = after;
        return;
    }
    if (!is_word(p, "if")) {
        parse_block(p, &s->other);
        return;
    }
    enter(p);
    Stmt *nested = stmt_new(p, S_IF);
    p->t++;
    if_stmt(p, nested);
    nested->end = end_of_last(p);
    *PUSH(p->a, s->other.stmt, s->other.n, s->other.cap) = nested;
    leave(p);
}

static void run_stmt(Parser *p, Stmt *s) {
    uint32_t pos = p->t->pos;
    add_name(p, s, need_name(p, "the name of a layer"), pos);
    need(p, '(', "'(' and the values it carries");
    s->expr = NEW(p->a, Expr);
    *s->expr = (Expr){.kind = E_LIST, .src = p->s, .pos = p->t->pos};
    do *PUSH(p->a, s->expr->arg, s->expr->n, s->expr->cap) = parse_value(p);
    while (take(p, ','));
    need(p, ')', "',' or ')'");
    s->expr->end = end_of_last(p);
}

static void return_stmt(Parser *p, Stmt *s) {
    s->expr = NEW(p->a, Expr);
    *s->expr = (Expr){.kind = E_LIST, .src = p->s, .pos = p->t->pos};
    do *PUSH(p->a, s->expr->arg, s->expr->n, s->expr->cap) = parse_expr(p);
    while (take(p, ','));
    s->expr->end = end_of_last(p);
}

// x = ..   |  a, b = ..   |  {a, b} = ..
static void assignment(Parser *p, Stmt *s) {
    s->unpack = take(p, '{');
    do {
        if (s->unpack) skip_lines(p);
        if (is_word(p, "_")) add_name(p, s, need_name(p, ""), p->t[-1].pos);
        else declare(p, s, "a statement");
        if (memchr(s->name[s->n_name - 1].p, '.', s->name[s->n_name - 1].n))
            fail_at(loc_at(p->s, s->at[s->n_name - 1]), "a value's name has no dots");
    } while (take(p, ','));
    if (s->unpack) need(p, '}', "',' or '}'");
    if (is(p, '(') || is(p, '['))
        fail_at(loc_at(p->s, s->pos), "a value that nothing takes; a statement is NAME = VALUE");
    need(p, '=', "'='");
    s->expr = parse_expr(p);
}

// clang-format off
static const struct { const char *word; StmtKind kind; void (*parse)(Parser *p, Stmt *s); } forms[] = {
    {"size", S_SIZE, value_decl}, {"real", S_REAL, value_decl}, {"flag", S_FLAG, value_decl}, {"fn", S_FN, value_decl},
    {"rope", S_ROPE, value_decl}, {"layout", S_LAYOUT, value_decl}, {"tensor", S_TENSOR, tensor_decl},
    {"state", S_STATE, state_decl}, {"input", S_INPUT, port_decl}, {"output", S_OUTPUT, port_decl},
    {"expect", S_EXPECT, expect_stmt}, {"ignore", S_IGNORE, ignore_stmt}, {"def", S_DEF, def_decl},
    {"layer", S_LAYER, layer_decl}, {"run", S_RUN, run_stmt},
};
// clang-format on

static Stmt *statement(Parser *p) {
    Stmt *s = stmt_new(p, S_ASSIGN);
    uint32_t line = p->t->line;
    bool word = p->t[1].kind == T_NAME || p->t[1].kind == T_STR; // `output = ..` would be an assignment
    void (*parse)(Parser *, Stmt *) = assignment;
    for (int i = 0; i < COUNT(forms) && word; i++)
        if (take_word(p, forms[i].word)) {
            s->kind = forms[i].kind;
            parse = forms[i].parse;
            break;
        }
    if (parse == assignment) {
        if (take_word(p, "if")) s->kind = S_IF, if_stmt(p, s);
        else if (take_word(p, "return")) s->kind = S_RETURN, return_stmt(p, s);
        else if (take_word(p, "require")) s->kind = S_REQUIRE, s->expr = parse_value(p);
        else if (take_word(p, "model")) s->kind = S_MODEL, parse_block(p, &s->body);
        else if (take_word(p, "for")) {
            s->kind = S_FOR;
            declare(p, s, "the name that counts");
            need(p, '<', "'<' and the count");
            s->expr = parse_value(p);
            parse_block(p, &s->body);
        } else assignment(p, s);
    } else parse(p, s);
    s->end = end_of_last(p);
    s->comment = comment_on(p, line, p->t[-1].line);
    if (s->kind == S_IGNORE && !s->comment.n)
        fail_at(loc_at(p->s, s->pos), "'ignore' needs a comment on its line that says why");
    return s;
}

// Statements end at a line's end or `;`; one that ends with `}` may be followed by another at once.
static void end_statement(Parser *p, bool closes) {
    if (take(p, ';') || take(p, T_LINE) || is(p, '}') || is(p, T_END)) return;
    if (closes && p->t[-1].kind == '}') return;
    expected(p, "';' or the end of the line");
}

static void parse_block(Parser *p, Block *b) {
    enter(p);
    uint32_t pos = p->t->pos;
    need(p, '{', "'{'");
    for (;;) {
        while (take(p, T_LINE) || take(p, ';')) {}
        if (is(p, T_END)) fail_at(loc_at(p->s, pos), "this '{' is never closed");
        if (take(p, '}')) break;
        Stmt *s = statement(p);
        if (s->kind == S_LAYER || s->kind == S_MODEL)
            fail_at(loc_at(p->s, s->pos), "layers and the model stand at the top of the file");
        *PUSH(p->a, b->stmt, b->n, b->cap) = s;
        if (s->kind == S_RETURN) {
            while (take(p, T_LINE) || take(p, ';')) {}
            if (!is(p, '}')) expected(p, "'}' after 'return'");
        } else end_statement(p, s->kind == S_IF || s->kind == S_FOR || s->kind == S_DEF);
    }
    leave(p);
}

// ---- the file ----

// Words that say which of several ways: values of their own, so that no 'or' takes one for a key that is absent.
bool is_option_word(Str name) {
    static const char *const words[] = {
        "first", "last", "halves", "adjacent", "grouped", "tiled", "blocks", "interleaved", "before"};
    for (int i = 0; i < COUNT(words); i++)
        if (str_is(name, words[i])) return true;
    return false;
}

bool is_builtin_word(Str name) {
    static const char *const words[] = {
        "vocab", "context", "arch", "l", "token", "position", "past", "all", "none", "true", "false", "inf"};
    for (int i = 0; i < COUNT(words); i++)
        if (str_is(name, words[i])) return true;
    return is_option_word(name);
}

// Does an expression read a key, as far as the text tells: a name that nothing declares.
static bool reads_key(const Parser *p, const Expr *e) {
    if (e->kind == E_STR) return memchr(e->name.p, '.', e->name.n) != NULL;
    if (e->kind == E_NAME) {
        const char *dot = memchr(e->name.p, '.', e->name.n);
        Str head = dot ? (Str){e->name.p, (size_t) (dot - e->name.p)} : e->name;
        for (int i = 0; i < p->n_declared; i++)
            if (str_eq(p->declared[i], e->name) || str_eq(p->declared[i], head)) return false;
        return !is_builtin_word(e->name);
    }
    for (int i = e->kind == E_CALL; i < e->n; i++)
        if (reads_key(p, e->arg[i])) return true;
    return false;
}

static void check_defaults(const Parser *p) {
    for (int i = 0; i < p->n_or; i++) {
        const Expr *e = p->or_list[i], *last = e->arg[e->n - 1];
        if (e->comment.n == 0 && reads_key(p, e->arg[0]) && !reads_key(p, last))
            fail_at(
                LOC(last), "a default that no key carries needs a comment on its line that says where it comes from");
    }
}

static void header(Parser *p, Spec *spec) {
    skip_lines(p);
    if (take_word(p, "arch")) {
        do *PUSH(p->a, spec->arch, spec->n_arch, spec->cap_arch) = dashed_name(p, "the name of an architecture");
        while (take(p, ','));
        end_statement(p, false);
    }
    for (;;) {
        while (take(p, T_LINE) || take(p, ';')) {}
        if (!is_word(p, "use") || p->t[1].kind == '=') return;
        p->t++;
        do {
            uint32_t pos = p->t->pos;
            need_name(p, "the path of a library file, like lib/ffn");
            while (is(p, '/') && p->t[1].kind == T_NAME) p->t += 2;
            *PUSH(p->a, spec->use, spec->n_use, spec->cap_use) = span(p->s, pos, end_of_last(p));
        } while (take(p, ','));
        end_statement(p, false);
    }
}

Spec *spec_parse(Arena *a, const char *file, Str text) {
    Spec *spec = NEW(a, Spec);
    spec->src = spec_lex(a, file, text);
    Parser p = {.a = a, .s = spec->src, .t = spec->src->token};
    if (spec->src->n_comment && spec->src->comment[0].line == 1) spec->about = spec->src->comment[0].text;
    header(&p, spec);
    while (!is(&p, T_END)) {
        if (take(&p, T_LINE) || take(&p, ';')) continue;
        Stmt *s = statement(&p);
        if (s->kind == S_ASSIGN || s->kind == S_RUN || s->kind == S_RETURN || s->kind == S_IF || s->kind == S_FOR)
            fail_at(loc_at(p.s, s->pos), "statements stand in a def, a layer or the model; here only declarations do");
        if (spec->n_arch == 0 && s->kind != S_DEF && s->kind != S_EXPECT && s->kind != S_IGNORE)
            fail_at(loc_at(p.s, s->pos),
                "a file without 'arch NAME' at its top is a library, and holds only 'def', 'expect' and 'ignore'");
        *PUSH(a, spec->body.stmt, spec->body.n, spec->body.cap) = s;
        if (is(&p, '}')) expected(&p, "a declaration");
        end_statement(&p, s->kind == S_DEF || s->kind == S_LAYER || s->kind == S_MODEL);
    }
    check_defaults(&p);
    return spec;
}
