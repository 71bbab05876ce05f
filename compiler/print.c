// What the kernel printers share: names, literals, expressions, parameters.
#include "emit.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Words that C or its headers have, those of mathematics without the f or l behind them, in order.
static const char *const reserved[] = {"abort", "abs", "acos", "acosh", "alloca", "asin", "asinh", "asm", "atan",
    "atan2", "atanh", "atexit", "atof", "atoi", "atol", "atoll", "auto", "bcmp", "bcopy", "bool", "break", "bsearch",
    "bzero", "calloc", "case", "cbrt", "ceil", "char", "close", "const", "continue", "copysign", "cos", "cosh",
    "default", "div", "do", "double", "drem", "else", "enum", "erf", "erfc", "execl", "execv", "exit", "exp", "exp10",
    "exp2", "expm1", "extern", "fabs", "false", "fdim", "ffs", "ffsll", "finite", "float", "floor", "fma", "fmax",
    "fmin", "fmod", "for", "fork", "fprintf", "fputs", "free", "frexp", "fwrite", "gamma", "getenv", "goto", "hypot",
    "if", "ilogb", "index", "inline", "int", "isinf", "isnan", "j0", "j1", "jn", "labs", "ldexp", "ldiv", "lgamma",
    "linux", "llabs", "lldiv", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "long", "lrint", "lround",
    "main", "malloc", "mblen", "memchr", "memcmp", "memcpy", "memmove", "memset", "mktemp", "modf", "nan", "nearbyint",
    "nextafter", "nexttoward", "open", "pause", "pow", "printf", "ptrdiff_t", "putchar", "putenv", "puts", "qsort",
    "rand", "random", "read", "realloc", "register", "remainder", "remquo", "restrict", "return", "rindex", "rint",
    "round", "scalb", "scalbln", "scalbn", "scanf", "select", "setenv", "short", "signal", "signed", "signgam",
    "significand", "sin", "sincos", "sinh", "size_t", "sizeof", "snprintf", "sprintf", "sqrt", "srand", "srandom",
    "sscanf", "static", "stpcpy", "stpncpy", "strcat", "strchr", "strcmp", "strcoll", "strcpy", "strcspn", "strdup",
    "strerror", "strlen", "strncat", "strncmp", "strncpy", "strndup", "strpbrk", "strrchr", "strsep", "strsignal",
    "strspn", "strstr", "strtod", "strtof", "strtok", "strtol", "strtold", "strtoul", "struct", "strxfrm", "switch",
    "system", "tan", "tanh", "tgamma", "time", "true", "trunc", "typedef", "typeof", "union", "unix", "unsigned",
    "valloc", "vfork", "void", "volatile", "vprintf", "wchar_t", "while", "write", "y0", "y1", "yn"};

// As macros are called.
static bool only_capitals(Str name) {
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] >= 'a' && name.p[i] <= 'z') return false;
    return name.n > 1;
}

static int compare_word(const void *name, const void *word) {
    return str_cmp(*(const Str *) name, str(*(const char *const *) word));
}

static bool is_word_of_c(Str name) {
    return bsearch(&name, reserved, COUNT(reserved), sizeof *reserved, compare_word);
}

static bool is_reserved(Str name) {
    Str less = name; // sqrtf, sqrtl
    if (name.n > 1 && (name.p[name.n - 1] == 'f' || name.p[name.n - 1] == 'l')) less.n--;
    if (name.n > 2 && name.p[name.n - 1] == 't' && name.p[name.n - 2] == '_') return true; // types
    return is_word_of_c(name) || is_word_of_c(less);
}

void names_of_c(Names *t, Str text) {
    for (size_t i = 0, end; i < text.n; i = end) {
        for (end = i; end < text.n && is_c_word(text.p[end]);) end++;
        bool called = end < text.n && text.p[end] == '(';
        if (end == i) end++;
        else if (called || isupper((unsigned char) text.p[i])) {
            int *number = lookup_at(t, (Str){text.p + i, end - i});
            if (!*number) *number = 1;
        }
    }
}

// Letters, digits and _, a letter first.
static Str c_name(Arena *a, Str wanted) {
    size_t n = wanted.n < 40 ? wanted.n : 40;
    char first = n ? *wanted.p : ' ', *p = arena_alloc(a, n + 2), *q = p;
    if (!isalpha((unsigned char) first) || only_capitals(wanted)) *q++ = 'v';
    for (size_t i = 0; i < n; i++) *q++ = isalnum((unsigned char) wanted.p[i]) ? wanted.p[i] : '_';
    return (Str){p, (size_t) (q - p)};
}

Str name_fresh(Names *t, Str wanted) {
    Str base = c_name(t->arena, wanted), name = base;
    int *number = lookup_at(t, base), k = *number > 1 ? *number : 1;
    bool taken = *number || is_reserved(base);
    for (; taken; taken = lookup(t, name) || is_reserved(name)) name = str_fmt(t->arena, "%.*s%d", FMT(base), ++k);
    *number = k;
    if (k > 1) *lookup_at(t, name) = 1;
    return name;
}

Str c_float(Arena *a, double v) {
    if (isinf(v)) return v < 0 ? S("-INFINITY") : S("INFINITY");
    if (isnan(v)) return S("NAN");
    Str s = str_fmt(a, "%.9g", (double) (float) v);
    bool point = false;
    for (size_t i = 0; i < s.n; i++) point |= s.p[i] == '.' || s.p[i] == 'e';
    return str_fmt(a, "%.*s%sf", FMT(s), point ? "" : ".0");
}

Printer printer_new(const Plan *p, const Kernel *k) {
    Arena *a = p->graph->arena;
    const Stage *s = &p->graph->stage[k->stage];
    Printer q = {.plan = p, .kernel = k, .stage = s, .place = p->place[k->stage], .names = {.arena = a}};
    // What the templates and the printed loops call things themselves.
    static const char *const rows[] = {"m", "r", "i", "h", "j", "k"};
    static const char *const heavy[] = {"m", "r", "n", "w", "x", "i", "j", "s", "o", "p", "v", "v0", "v1", "v2", "v3",
        "rows", "piece", "xs", "four", "outs", "from", "p0", "p1", "r0", "r1", "row_bytes", "panel_bytes", "x_bytes",
        "panel_count", "groups", "t", "e", "at", "met", "list", "which", "part", "parts", "product", "ids", "together"};
    for (int i = 0; i < COUNT(rows) && k->kind == K_ROWS; i++) name_fresh(&q.names, str(rows[i]));
    for (int i = 0; i < COUNT(heavy) && k->kind != K_ROWS; i++) name_fresh(&q.names, str(heavy[i]));
    q.name = NEWN(a, Str, s->n_node + 1);
    return q;
}

const Arg *printer_arg(Printer *q, ArgKind kind, int index, Str wanted, bool written) {
    KernelText *t = &q->text;
    for (int i = 0; i < t->n_arg; i++)
        if (t->arg[i].kind == kind && t->arg[i].index == index) {
            t->arg[i].written |= written;
            return &t->arg[i];
        }
    Str name = kind == ARG_MODEL ? S("m") : name_fresh(&q->names, wanted);
    Arg *arg = PUSH(q->names.arena, t->arg, t->n_arg, t->cap_arg);
    *arg = (Arg){kind, index, name, written};
    return arg;
}

Str print_params(const Printer *q) {
    Out o = out_new(q->names.arena);
    for (int i = 0; i < q->text.n_arg; i++) {
        const Arg *a = &q->text.arg[i];
        const char *konst = a->written ? "" : "const ";
        if (i) out(&o, ", ");
        switch (a->kind) {
        case ARG_MODEL: out(&o, "const Model *m"); break;
        case ARG_WEIGHT:
            out(&o, q->plan->weight[a->index].layout == LAYOUT_F32 ? "const float *%.*s" : "const uint8_t *%.*s",
                FMT(a->name));
            break;
        case ARG_BUFFER: {
            DType type = q->plan->buffer[a->index].type;
            out(&o, "%s%s *%.*s", konst, type == Q8 ? "uint8_t" : type == I32 ? "int32_t" : "float", FMT(a->name));
            break;
        }
        case ARG_PARAM: out(&o, "float %.*s", FMT(a->name)); break;
        default: out(&o, "uint64_t %.*s", FMT(a->name)); break;
        }
    }
    return out_text(&o);
}

// ---- equations, for comments ----

// The value as the description would write it: a name where it has one (or lives outside of the kernel), else its
// formula.
// A value that is used twice stands there twice, and what it is made of four times: what is beyond the comment's length
// is dots.
enum { IN_CALL, IN_SUM, IN_PRODUCT };

static void formula(const Printer *q, int node, bool top, int where, Out *o) {
    if (o->n > LONGEST_COMMENT) {
        out(o, "..");
        return;
    }
    int64_t from;
    int base = behind_views(q->stage, node, &from);
    const Node *n = &q->stage->node[base];
    static const char *const infix[N_OP] = {[OP_add] = " + ", [OP_sub] = " - ", [OP_mul] = " * ", [OP_div] = " / "};
    bool inside = n->kernel == q->kernel->group && n->kernel >= 0, sum = n->op == OP_add || n->op == OP_sub;
    Str name = q->stage->node[node].name.n ? q->stage->node[node].name : n->name;
    if (n->op == OP_const) out(o, "%g", n->real[0]);
    else if (n->op == OP_weight) out(o, "%.*s", FMT(q->stage->weight[n->weight].name));
    else if (n->op == OP_get) out(o, "%.*s", FMT(q->plan->graph->global[n->num[0]].name));
    else if (n->op == OP_token || n->op == OP_position || (!inside && !name.n)) out(o, "%s", op_info[n->op].name);
    else if (base != node && !top && q->stage->node[node].name.n)
        out(o, "%.*s", FMT(q->stage->node[node].name)); // a part
    else if (!inside || (!top && name.n && node_is_stored(q->plan, q->kernel->stage, base))) out(o, "%.*s", FMT(name));
    else if (infix[n->op]) {
        bool parens = sum && where == IN_PRODUCT;
        out(o, "%s", parens ? "(" : "");
        formula(q, n->in[0], false, sum ? IN_SUM : IN_PRODUCT, o);
        out(o, "%s", infix[n->op]);
        formula(q, n->in[1], false, sum && n->op == OP_add ? IN_SUM : IN_PRODUCT, o);
        out(o, "%s", parens ? ")" : "");
    } else {
        if (n->op == OP_embed) out(o, "%.*s[", FMT(q->stage->weight[n->weight].name));
        else if (n->weight >= 0 && n->op != OP_angles) out(o, "%.*s(", FMT(q->stage->weight[n->weight].name));
        else out(o, "%s(", n->op == OP_take ? "wanted" : op_info[n->op].name);
        if (n->op == OP_index) out(o, "%lld", (long long) n->num[0]);
        for (int i = 0; i < n->n_in; i++) {
            if (i) out(o, ", ");
            formula(q, n->in[i], false, IN_CALL, o);
        }
        out(o, n->op == OP_embed ? "]" : ")");
    }
}

Str print_equations(const Printer *q) {
    Out o = out_new(q->names.arena);
    for (int i = 0; i < q->stage->n_node && o.n <= LONGEST_COMMENT; i++) {
        const Node *n = &q->stage->node[i];
        if (n->kernel != q->kernel->group) continue;
        bool stored = node_is_stored(q->plan, q->kernel->stage, i);
        if (!stored && n->op != OP_put) continue; // stands inside another formula
        if (o.n) out(&o, "; ");
        if (n->op != OP_put) out(&o, "%.*s = ", FMT(n->name));
        formula(q, i, true, IN_CALL, &o);
    }
    return out_text(&o);
}

Str c_map(const Printer *q, const Node *n, const Str *operand) {
    Arena *a = q->names.arena;
    Out o = out_new(a);
    for (const char *p = op_info[n->op].expr; *p;) {
        size_t len = strspn(p, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.");
        if (!len) {
            out(&o, "%c", *p++);
            continue;
        }
        Str word = {p, len};
        p += len;
        if (len == 1 && word.p[0] >= 'a' && word.p[0] <= 'c') {
            Str x = operand[word.p[0] - 'a'];
            out(&o, x.n && x.p[0] == '-' ? "(%.*s)" : "%.*s", FMT(x));
        } else if (str_is(word, "p") || str_is(word, "q")) {
            Str x = c_float(a, n->real[word.p[0] - 'p']);
            out(&o, x.p[0] == '-' ? "(%.*s)" : "%.*s", FMT(x));
        } else {
            const char *renamed = NULL;
            for (const char *const(*f)[2] = q->plan->target->functions; (*f)[0]; f++)
                if (str_is(word, (*f)[0])) renamed = (*f)[1];
            renamed ? out(&o, "%s", renamed) : out(&o, "%.*s", FMT(word));
        }
    }
    return out_text(&o);
}
