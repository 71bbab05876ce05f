// A regular expression becomes a deterministic automaton. In: a pattern. Out: its tables.
// The one idea: a state of the automaton is the ordered list of places in the pattern where matching may
// stand; the order is Perl's preference (first alternative, greedy), so a match cuts off all that is preferred
// less. Looking ahead by one character is decided when that character is read. The set of patterns: literals,
// classes with && and \p{}, \s \d, groups, (?i:), | ? * + {m,n}, (?=X) and (?!X) for one class X, $, and
// (*SKIP) at the end of an alternative: what it matched stays uncut, and the search goes on behind it.
#include "regex.h"

#include <stdlib.h>
#include <string.h>

#include "unicode.h"

// ---- sets of code points ----

typedef struct {
    uint32_t first, last;
} Range;
typedef struct {
    Range *range; // in order, apart
    int n, cap;
    bool end; // the end of the text belongs to it
} Set;

static void set_add(Arena *a, Set *s, uint32_t first, uint32_t last) {
    *PUSH(a, s->range, s->n, s->cap) = (Range){first, last};
}

static void set_sort(Set *s) { // orders the ranges and joins those that touch
    for (int i = 1; i < s->n; i++) {
        Range r = s->range[i];
        int j = i;
        for (; j && s->range[j - 1].first > r.first; j--) s->range[j] = s->range[j - 1];
        s->range[j] = r;
    }
    int k = 0;
    for (int i = 0; i < s->n; i++) {
        if (k && s->range[i].first <= s->range[k - 1].last + 1) {
            if (s->range[i].last > s->range[k - 1].last) s->range[k - 1].last = s->range[i].last;
        } else {
            s->range[k++] = s->range[i];
        }
    }
    s->n = k;
}

static Set set_not(Arena *a, Set s) {
    Set out = {0};
    uint32_t from = 0;
    for (int i = 0; i < s.n; i++) {
        if (s.range[i].first > from) set_add(a, &out, from, s.range[i].first - 1);
        from = s.range[i].last + 1;
    }
    if (from <= UNICODE_LAST) set_add(a, &out, from, UNICODE_LAST);
    return out;
}

static Set set_and(Arena *a, Set s, Set t) { // not (not s or not t)
    Set out = set_not(a, s), other = set_not(a, t);
    for (int i = 0; i < other.n; i++) set_add(a, &out, other.range[i].first, other.range[i].last);
    set_sort(&out);
    return set_not(a, out);
}

static bool set_has(const Set *s, uint32_t code) {
    int low = 0, high = s->n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->range[middle].last < code) low = middle + 1;
        else high = middle;
    }
    return low < s->n && s->range[low].first <= code;
}

// ---- parsing ----

typedef enum { EMPTY, SET, LOOK, CAT, ALT, REPEAT, SKIP } NodeKind;
typedef struct Node Node;
struct Node {
    NodeKind kind;
    int set;            // SET: reads a character of it; LOOK: the next character, or the end, is in it
    Node *left, *right; // CAT, ALT: both; REPEAT: left
    int min, max;       // REPEAT; max -1: any number
};

typedef struct {
    Arena *arena;
    Str text;
    size_t at;
    bool fold; // within (?i:
    Set *set;
    int n_set, cap_set;
} Parser;

static _Noreturn void bad(const Parser *p, const char *what) {
    fail_at((Loc){"pretok.def", p->text, (uint32_t) p->at}, "%s", what);
}

static bool take(Parser *p, const char *z) {
    size_t n = strlen(z);
    if (p->text.n - p->at < n || memcmp(p->text.p + p->at, z, n) != 0) return false;
    p->at += n;
    return true;
}

static char peek(const Parser *p) {
    return p->at < p->text.n ? p->text.p[p->at] : 0;
}

static Node *node(Parser *p, NodeKind kind, Node *left, Node *right) {
    Node *n = NEW(p->arena, Node);
    *n = (Node){.kind = kind, .left = left, .right = right};
    return n;
}

static Node *set_node(Parser *p, NodeKind kind, Set s) {
    Node *n = node(p, kind, NULL, NULL);
    n->set = p->n_set;
    *PUSH(p->arena, p->set, p->n_set, p->cap_set) = s;
    return n;
}

static uint32_t next_code(Parser *p) {
    int len;
    int32_t code = utf8_next(p->text.p + p->at, p->text.n - p->at, &len);
    if (code < 0) bad(p, p->at == p->text.n ? "the pattern ends too early" : "the pattern is not UTF-8");
    p->at += (size_t) len;
    return (uint32_t) code;
}

static Set property_set(Parser *p) { // behind \p
    size_t from = p->at + 1;
    if (!take(p, "{")) bad(p, "expected { after \\p");
    while (peek(p) && peek(p) != '}') p->at++;
    uint32_t mask = unicode_mask((Str){p->text.p + from, p->at - from}), first, last;
    if (!mask || !take(p, "}")) bad(p, "unknown property");
    Set s = {0};
    for (int i = 0, category; (category = unicode_range(i, &first, &last)) >= 0; i++)
        if (mask >> category & 1) set_add(p->arena, &s, first, last);
    set_sort(&s);
    return s;
}

static Set space_set(Arena *a) {
    Set s = {0};
    uint32_t first, last;
    for (int i = 0; unicode_space_range(i, &first, &last); i++) set_add(a, &s, first, last);
    return s;
}

// Behind a backslash: a set of several characters, or one character in *code and false.
static bool escape(Parser *p, Set *s, uint32_t *code) {
    uint32_t c = next_code(p);
    switch (c) {
    case 'p': *s = property_set(p); return true;
    case 's': *s = space_set(p->arena); return true;
    case 'S': *s = set_not(p->arena, space_set(p->arena)); return true;
    case 'd':
        *s = (Set){0};
        set_add(p->arena, s, '0', '9');
        return true;
    case 'r': *code = '\r'; return false;
    case 'n': *code = '\n'; return false;
    case 't': *code = '\t'; return false;
    default:
        if ((c | 32) >= 'a' && (c | 32) <= 'z') bad(p, "unknown escape");
        *code = c;
        return false;
    }
}

static void add_folded(Parser *p, Set *s, uint32_t first, uint32_t last) {
    set_add(p->arena, s, first, last);
    for (uint32_t c = first; p->fold && c <= last && c < 128; c++)
        if ((c | 32) >= 'a' && (c | 32) <= 'z') set_add(p->arena, s, c ^ 32, c ^ 32);
}

static Set class_set(Parser *p) { // behind [
    Set s = {0}, part;
    bool negated = take(p, "^");
    for (bool begin = true; begin || peek(p) != ']'; begin = false) {
        uint32_t first, last;
        if (take(p, "&&[")) {
            set_sort(&s);
            s = set_and(p->arena, s, class_set(p));
            continue;
        }
        if (take(p, "\\")) {
            if (escape(p, &part, &first)) {
                for (int i = 0; i < part.n; i++) set_add(p->arena, &s, part.range[i].first, part.range[i].last);
                continue;
            }
        } else {
            first = next_code(p);
        }
        last = first;
        if (peek(p) == '-' && p->at + 1 < p->text.n && p->text.p[p->at + 1] != ']') {
            p->at++;
            if (take(p, "\\")) {
                if (escape(p, &part, &last)) bad(p, "a range cannot end with a class");
            } else {
                last = next_code(p);
            }
        }
        if (last < first) bad(p, "a range runs backwards");
        add_folded(p, &s, first, last);
    }
    p->at++;
    set_sort(&s);
    return negated ? set_not(p->arena, s) : s;
}

static Node *parse_alternatives(Parser *p);

static Node *parse_look(Parser *p, bool negative) {
    Node *n = parse_alternatives(p);
    if (n->kind != SET) bad(p, "only one character can be looked ahead at");
    Set s = p->set[n->set];
    if (negative) s = set_not(p->arena, s);
    s.end = negative;
    return set_node(p, LOOK, s);
}

static Node *parse_group(Parser *p) { // behind (
    bool fold = p->fold;
    Node *n;
    if (take(p, "*SKIP")) {
        n = node(p, SKIP, NULL, NULL);
    } else if (take(p, "?=")) {
        n = parse_look(p, false);
    } else if (take(p, "?!")) {
        n = parse_look(p, true);
    } else {
        if (take(p, "?i:")) p->fold = true;
        else if (!take(p, "?:") && peek(p) == '?') bad(p, "unknown kind of group");
        n = parse_alternatives(p);
    }
    if (!take(p, ")")) bad(p, "expected )");
    p->fold = fold;
    return n;
}

static Node *parse_atom(Parser *p) {
    Set s = {0};
    uint32_t code;
    if (take(p, "(")) return parse_group(p);
    if (take(p, "[")) return set_node(p, SET, class_set(p));
    if (take(p, "$")) return s.end = true, set_node(p, LOOK, s);
    if (peek(p) && strchr("*+?{.^", peek(p))) bad(p, "not implemented here");
    if (take(p, "\\")) {
        if (escape(p, &s, &code)) return set_node(p, SET, s);
    } else {
        code = next_code(p);
    }
    add_folded(p, &s, code, code);
    set_sort(&s);
    return set_node(p, SET, s);
}

static int parse_number(Parser *p) {
    int n = 0;
    if (peek(p) < '0' || peek(p) > '9') bad(p, "expected a number");
    while (peek(p) >= '0' && peek(p) <= '9' && n < 10000) n = n * 10 + p->text.p[p->at++] - '0';
    if (n > 1000) bad(p, "more than 1000 repetitions");
    return n;
}

static Node *parse_repeat(Parser *p) {
    Node *n = parse_atom(p);
    for (;;) {
        int min = 0, max = -1;
        if (take(p, "?")) {
            max = 1;
        } else if (take(p, "+")) {
            min = 1;
        } else if (take(p, "{")) {
            min = max = parse_number(p);
            if (take(p, ",")) max = peek(p) == '}' ? -1 : parse_number(p);
            if (!take(p, "}") || (max >= 0 && max < min)) bad(p, "expected {m}, {m,} or {m,n}");
        } else if (!take(p, "*")) {
            return n;
        }
        if (peek(p) == '?' || peek(p) == '+') bad(p, "lazy and possessive repetition are not implemented");
        n = node(p, REPEAT, n, NULL);
        n->min = min;
        n->max = max;
    }
}

static Node *parse_alternatives(Parser *p) {
    Node *all = NULL;
    do {
        Node *one = NULL;
        while (p->at < p->text.n && peek(p) != '|' && peek(p) != ')') {
            Node *next = parse_repeat(p);
            one = one ? node(p, CAT, one, next) : next;
        }
        if (!one) one = node(p, EMPTY, NULL, NULL);
        all = all ? node(p, ALT, all, one) : one;
    } while (take(p, "|"));
    return all;
}

// ---- places: a program whose steps prefer `x` to `y` ----

typedef enum { READ, CHECK, FORK, MATCH } Op;
typedef struct {
    Op op;
    int set;  // READ, CHECK
    int x, y; // next; FORK: both; MATCH: x is 1 or 2
} Place;

typedef struct {
    Arena *arena;
    Place *place;
    int n, cap;
} Program;

static int place(Program *g, Op op, int set, int x, int y) {
    *PUSH(g->arena, g->place, g->n, g->cap) = (Place){op, set, x, y};
    return g->n - 1;
}

static int lay(Program *g, const Node *n, int next) { // the place where n begins, when `next` follows it
    switch (n->kind) {
    case EMPTY: return next;
    case SET: return place(g, READ, n->set, next, -1);
    case LOOK: return place(g, CHECK, n->set, next, -1);
    case SKIP: return place(g, MATCH, -1, 2, -1);
    case CAT: return lay(g, n->left, lay(g, n->right, next));
    case ALT: {
        int x = lay(g, n->left, next);
        return place(g, FORK, -1, x, lay(g, n->right, next));
    }
    case REPEAT: break;
    }
    int at = next;
    if (n->max < 0) {
        at = place(g, FORK, -1, -1, next);
        int body = lay(g, n->left, at);
        g->place[at].x = body;
    }
    for (int i = n->min; i < n->max; i++) at = place(g, FORK, -1, lay(g, n->left, at), next);
    for (int i = 0; i < n->min; i++) at = lay(g, n->left, at);
    return at;
}

// ---- classes: code points that no set tells apart ----

typedef struct {
    Regex *regex;
    uint8_t *member; // [set][class]
    uint8_t *of;     // [code point]
} Classes;

static int compare_codes(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

static void number_classes(Parser *p, Classes *c) {
    uint32_t *cut = NULL;
    int n_cut = 0, cap_cut = 0, n = 0, max = 254;
    *PUSH(p->arena, cut, n_cut, cap_cut) = 0;
    for (int i = 0; i < p->n_set; i++)
        for (int k = 0; k < p->set[i].n; k++) {
            *PUSH(p->arena, cut, n_cut, cap_cut) = p->set[i].range[k].first;
            *PUSH(p->arena, cut, n_cut, cap_cut) = p->set[i].range[k].last + 1;
        }
    *PUSH(p->arena, cut, n_cut, cap_cut) = UNICODE_LAST + 1;
    qsort(cut, (size_t) n_cut, sizeof *cut, compare_codes);
    c->of = arena_alloc(p->arena, UNICODE_LAST + 1);
    c->member = arena_alloc_n(p->arena, (size_t) p->n_set, 256);
    uint8_t *in = arena_alloc(p->arena, (size_t) p->n_set + 1);
    for (int i = 0; i + 1 < n_cut && cut[i] <= UNICODE_LAST; i++) {
        if (cut[i] == cut[i + 1]) continue;
        for (int k = 0; k < p->n_set; k++) in[k] = set_has(&p->set[k], cut[i]);
        int class = 0;
        for (; class < n; class ++) {
            int k = 0;
            while (k < p->n_set && c->member[k * 256 + class] == in[k]) k++;
            if (k == p->n_set) break;
        }
        if (class == max) bad(p, "the pattern tells too many classes of characters apart");
        if (class == n) n++;
        for (int k = 0; k < p->n_set; k++) c->member[k * 256 + class] = in[k];
        memset(c->of + cut[i], class, cut[i + 1] - cut[i]);
    }
    for (int k = 0; k < p->n_set; k++) c->member[k * 256 + n] = p->set[k].end;
    c->regex->n_class = n + 1;
}

static void make_pages(Arena *a, Classes *c) {
    Regex *r = c->regex;
    r->page = NEWN(a, uint16_t, REGEX_PAGES);
    r->classes = arena_alloc(a, UNICODE_LAST + 1);
    uint64_t *hash = NEWN(a, uint64_t, REGEX_PAGES);
    for (int i = 0; i < REGEX_PAGES; i++) {
        const uint8_t *from = c->of + (size_t) i * 128;
        uint64_t h = hash64(from, 128, 0);
        int k = 0;
        while (k < r->n_page && (hash[k] != h || memcmp(r->classes + (size_t) k * 128, from, 128) != 0)) k++;
        if (k == r->n_page) {
            hash[r->n_page++] = h;
            memcpy(r->classes + (size_t) k * 128, from, 128);
        }
        r->page[i] = (uint16_t) k;
    }
}

// ---- states: ordered lists of places ----

typedef struct {
    int *at;
    int n;
} State;

typedef struct {
    Arena *arena;
    const Program *program;
    const Classes *classes;
    State *state;
    int n_state, cap_state;
    int *list, *stamp, n_list, now; // the list being made; when each place was put on it or passed
    int matched;
} Machine;

// Puts place `at`, and what can follow it without reading, on the list.
static void follow(Machine *m, int at) {
    if (m->stamp[at] == m->now) return;
    m->stamp[at] = m->now;
    const Place *p = &m->program->place[at];
    if (p->op != FORK) {
        m->list[m->n_list++] = at;
        return;
    }
    follow(m, p->x);
    follow(m, p->y);
}

// Reads a character of class c from place `at`: a check is decided now, a match ends here. true: a match, which
// ends all that is preferred less.
static bool read_class(Machine *m, int at, int c, int *passed) {
    const Place *p = &m->program->place[at];
    bool end = c == m->classes->regex->n_class - 1;
    switch (p->op) {
    case MATCH: m->matched = p->x; return true;
    case READ:
        if (!end && m->classes->member[p->set * 256 + c]) follow(m, p->x);
        return false;
    case CHECK:
        if (passed[at] == m->now) return false;
        passed[at] = m->now;
        return m->classes->member[p->set * 256 + c] && read_class(m, p->x, c, passed);
    case FORK:
        if (passed[at] == m->now) return false;
        passed[at] = m->now;
        return read_class(m, p->x, c, passed) || read_class(m, p->y, c, passed);
    }
    return false;
}

static int state_of_list(Machine *m) {
    size_t size = (size_t) m->n_list * sizeof *m->list;
    for (int i = 0; i < m->n_state; i++)
        if (m->state[i].n == m->n_list && !memcmp(m->state[i].at, m->list, size)) return i;
    if (m->n_state == 20000) fail("a pre-tokenizer's pattern needs more than 20000 states");
    int *at = NEWN(m->arena, int, m->n_list ? m->n_list : 1);
    memcpy(at, m->list, size);
    *PUSH(m->arena, m->state, m->n_state, m->cap_state) = (State){at, m->n_list};
    return m->n_state - 1;
}

static void make_states(Arena *a, const Program *g, int start, const Classes *c) {
    Regex *r = c->regex;
    Machine m = {.arena = a, .program = g, .classes = c};
    int *passed = NEWN(a, int, g->n);
    m.list = NEWN(a, int, g->n);
    m.stamp = NEWN(a, int, g->n);
    state_of_list(&m); // the empty list: dead
    m.now = 1;
    follow(&m, start);
    state_of_list(&m);
    int cap = 0, n = 0;
    for (int s = 0; s < m.n_state; s++)
        for (int class = 0; class < r->n_class; class ++) {
            m.now++;
            m.n_list = m.matched = 0;
            for (int i = 0; i < m.state[s].n; i++)
                if (read_class(&m, m.state[s].at[i], class, passed)) break;
            uint32_t to = (uint32_t) (state_of_list(&m) * r->n_class);
            *PUSH(a, r->next, n, cap) = to << 2 | (uint32_t) m.matched;
        }
    r->n_state = m.n_state;
}

Regex *regex_compile(Arena *a, Str pattern) {
    Parser p = {.arena = a, .text = pattern};
    Node *tree = parse_alternatives(&p);
    if (p.at < pattern.n) bad(&p, "unexpected )");
    Program g = {.arena = a};
    int match = place(&g, MATCH, -1, 1, -1), start = lay(&g, tree, match);
    Classes c = {.regex = NEW(a, Regex)};
    number_classes(&p, &c);
    make_pages(a, &c);
    make_states(a, &g, start, &c);
    return c.regex;
}

int64_t regex_match(const Regex *r, Str text, size_t at, bool *uncut) {
    int64_t best = -1;
    uint32_t state = (uint32_t) r->n_class;
    *uncut = false;
    while (state) {
        int len = 1;
        uint32_t class = (uint32_t) r->n_class - 1;
        if (at < text.n) {
            int32_t code = utf8_next(text.p + at, text.n - at, &len);
            if (code < 0) code = 0xFFFD;
            class = r->classes[r->page[code >> 7] * 128 + (code & 127)];
        }
        uint32_t entry = r->next[state + class];
        if (entry & 3) best = (int64_t) at, *uncut = (entry & 3) == 2;
        state = entry >> 2;
        at += (size_t) len;
    }
    return best;
}
