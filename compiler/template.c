// Instances of kernel templates.
// In: the text of a template and bindings. Out: C text. The one idea: identifiers are replaced, marked lines are
// replaced, nothing else happens; so what was tested as a file is what runs.
#include "template.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "embed.h"

// ---- lines and marks ----

// Takes the next line, newline included, off the text.
static Str trim(Str s) {
    while (s.n && isspace((unsigned char) s.p[0])) s.p++, s.n--;
    while (s.n && isspace((unsigned char) s.p[s.n - 1])) s.n--;
    return s;
}

static Str take_word(Str *s) {
    *s = trim(*s);
    Str w = {s->p, 0};
    while (w.n < s->n && !isspace((unsigned char) s->p[w.n])) w.n++;
    s->p += w.n;
    s->n -= w.n;
    return w;
}

// The words after `//@` on a line; false when it has no such mark.
static bool mark_of(Str line, Str *words, size_t *at) {
    for (size_t i = 0; i + 3 <= line.n; i++)
        if (!memcmp(line.p + i, "//@", 3)) {
            *words = trim((Str){line.p + i + 3, line.n - i - 3});
            if (at) *at = i;
            return true;
        }
    return false;
}

// ---- finding ----

static const Embedded *find_file(const char *const *folders, const char *name) {
    const Embedded *found = NULL;
    for (; *folders; folders++) {
        char path[256];
        snprintf(path, sizeof path, "templates/%s/%s", *folders, name);
        for (int i = 0; i < n_embedded; i++)
            if (!strcmp(embedded[i].path, path)) found = &embedded[i];
    }
    return found;
}

bool template_exists(const char *const *folders, const char *name) {
    return find_file(folders, name) != NULL;
}

Str template_find(const char *const *folders, const char *name) {
    const Embedded *e = find_file(folders, name);
    if (!e) fail("no template %s in templates/%s: this target has no kernel for it", name, *folders ? *folders : "?");
    return (Str){e->data, e->size};
}

Str template_section(Str source, const char *name) {
    Str section = {source.p, 0}, words;
    bool inside = false;
    while (source.n) {
        Str line = str_line(&source);
        if (mark_of(line, &words, NULL)) {
            Str verb = take_word(&words);
            if (inside && str_is(verb, "end")) return section;
            if (!inside && str_is(verb, "section") && str_is(trim(words), name)) {
                inside = true;
                section = (Str){source.p, 0};
                continue;
            }
        }
        if (inside) section.n += line.n;
    }
    return section;
}

// ---- instances ----

typedef struct {
    Str name; // of the template's function
    const char *new_name;
    const Binding *b;
    int n;
    int strand; // number put for 0 in lines marked `//@ strand`; -1: none
} Job;

static const Binding *binding(const Job *j, Str name, BindingKind kind) {
    for (int i = 0; i < j->n; i++)
        if (name.n && *name.p == *j->b[i].name && j->b[i].kind == kind && str_is(name, j->b[i].name)) return &j->b[i];
    return NULL;
}

// A part of an identifier is replaced by names only: FMT_row becomes q4_1_row, but K_rest stays when K is 576.
static bool part_value(const Job *j, Str part, bool whole, Str *value) {
    if (str_eq(part, j->name)) return *value = str(j->new_name), true;
    const Binding *b = binding(j, part, BIND_PARAM);
    if (!b || (!whole && (!b->value.n || !(isalpha((unsigned char) b->value.p[0]) || b->value.p[0] == '_'))))
        return false;
    return *value = b->value, true;
}

static void put_word(Out *o, const Job *j, Str word) {
    Str value;
    if (part_value(j, word, true, &value)) {
        out_str(o, value);
        return;
    }
    if (j->strand >= 0 && word.n == 2 && word.p[0] == 'v' && word.p[1] == '0') {
        out(o, "v%d", j->strand);
        return;
    }
    for (size_t i = 0; i < word.n;) {
        Str part = {word.p + i, 0};
        while (i + part.n < word.n && part.p[part.n] != '_') part.n++;
        out_str(o, part_value(j, part, false, &value) ? value : part);
        i += part.n;
        if (i < word.n) out(o, "_"), i++;
    }
}

static void put_args(Out *o, const Job *j, Str *text) {
    const char *end = strstr(text->p, "*/");
    Str name = trim((Str){text->p + 3, (size_t) (end - text->p) - 3});
    const Binding *b = binding(j, name, BIND_ARGS);
    if (!b) fail("template %.*s: no text for the mark /*@ %.*s */", FMT(j->name), FMT(name));
    if (o->n && o->p[o->n - 1] == ' ') o->n--; // value brings its own
    out_str(o, b->value);
    size_t used = (size_t) (end + 2 - text->p);
    text->p += used;
    text->n -= used;
}

static void put_text(Out *o, const Job *j, Str text) {
    while (text.n) {
        char c = text.p[0];
        if (is_c_word(c)) {
            Str word = {text.p, 0};
            while (word.n < text.n && is_c_word(text.p[word.n])) word.n++;
            bool index = j->strand >= 0 && str_is(word, "0") && word.p[-1] == '[' && word.p[1] == ']';
            if (index) out(o, "%d", j->strand);
            else if (isdigit((unsigned char) c)) out_str(o, word);
            else put_word(o, j, word);
            text.p += word.n;
            text.n -= word.n;
        } else if (str_starts(text, "/*@")) put_args(o, j, &text);
        else {
            size_t n = 1;
            while (n < text.n && !is_c_word(text.p[n]) && text.p[n] != '/') n++;
            out_str(o, (Str){text.p, n});
            text.p += n;
            text.n -= n;
        }
    }
}

// `//@ when P`: the line stays when P is not a number equal to 0; `//@ when !P`: when it is.
static bool holds(const Job *j, Str condition) {
    bool negated = str_starts(condition, "!");
    if (negated) condition.p++, condition.n--;
    const Binding *b = binding(j, condition, BIND_PARAM);
    if (!b) fail("template %.*s: `when` names no parameter: %.*s", FMT(j->name), FMT(condition));
    char *end;
    const char *z = b->value.n ? b->value.p : "1";
    bool zero = strtod(z, &end) == 0 && end != z;
    return zero == negated;
}

static void put_code(Out *o, const Job *j, Str line, size_t at) {
    while (at && (line.p[at - 1] == ' ' || line.p[at - 1] == '\t')) at--;
    put_text(o, j, (Str){line.p, at});
    out(o, "\n");
}

static void put_slot(Out *o, Str line, Str value) {
    size_t indent = 0;
    while (indent < line.n && line.p[indent] == ' ') indent++;
    while (value.n) {
        Str l = str_line(&value);
        if (trim(l).n) out_str(o, (Str){line.p, indent});
        out_str(o, l);
        if (l.p[l.n - 1] != '\n') out(o, "\n");
    }
}

// A marked line of the body.
static void put_marked(Out *o, Job *j, Str line, Str words, size_t at) {
    Str verb = take_word(&words);
    const Binding *slot = binding(j, verb, BIND_SLOT);
    if (slot) put_slot(o, line, slot->value);
    else if (str_is(verb, "when")) {
        if (holds(j, trim(words))) put_code(o, j, line, at);
    } else if (str_is(verb, "strand")) {
        const Binding *s = binding(j, S("S"), BIND_PARAM);
        int n = s ? (int) strtol(str_z(o->arena, s->value), NULL, 10) : 1;
        for (j->strand = 0; j->strand < n; j->strand++) put_code(o, j, line, at);
        j->strand = -1;
    } else fail("template %.*s: nothing for the mark //@ %.*s", FMT(j->name), FMT(verb));
}

// Header and bindings must name the same things.
static void check_header(const Job *j, Str header) {
    int declared = 0;
    Str words;
    while (header.n) {
        Str line = str_line(&header);
        if (!mark_of(line, &words, NULL)) continue;
        Str verb = take_word(&words), name = take_word(&words);
        bool param = str_is(verb, "param"), slot = str_is(verb, "slot"), args = str_is(verb, "args");
        if (!param && !slot && !args) continue;
        declared++;
        if (!binding(j, args ? S("args") : name, param ? BIND_PARAM : slot ? BIND_SLOT : BIND_ARGS))
            fail("template %.*s: no value for its %.*s %.*s", FMT(j->name), FMT(verb), FMT(name));
    }
    if (declared != j->n) fail("template %.*s declares %d names, %d are bound", FMT(j->name), declared, j->n);
}

// Splits a template at `//@ begin` and `//@ end`, and finds its name.
static void split(Str text, Str *name, Str *header, Str *body) {
    Str words;
    *name = (Str){text.p, 0};
    *header = (Str){text.p, 0};
    *body = (Str){text.p, 0};
    bool inside = false;
    while (text.n) {
        Str line = str_line(&text);
        if (mark_of(line, &words, NULL)) {
            Str verb = take_word(&words);
            if (str_is(verb, "template")) *name = trim(words);
            if (inside && str_is(verb, "end")) break;
            if (!inside && str_is(verb, "begin")) {
                inside = true;
                *body = (Str){text.p, 0};
                continue;
            }
        }
        if (inside) body->n += line.n;
        else header->n += line.n;
    }
    if (!name->n || !inside)
        fail("a template has no name or no body: %.*s", (int) (header->n < 60 ? header->n : 60), header->p);
}

Str template_instance(Arena *a, Str text, const char *new_name, const Binding *b, int n) {
    Str header, body, words;
    Job j = {.new_name = new_name, .b = b, .n = n, .strand = -1};
    split(text, &j.name, &header, &body);
    check_header(&j, header);
    Out o = out_new(a);
    while (body.n) {
        Str line = str_line(&body);
        size_t at;
        if (mark_of(line, &words, &at)) put_marked(&o, &j, line, words, at);
        else put_text(&o, &j, line);
    }
    return out_text(&o);
}

// ---- support ----

static void require(Out *o, Support *s, Str name, const char *format);

void template_support(Out *o, Support *s, Str text, const char *format) {
    Str words;
    while (text.n) {
        Str line = str_line(&text);
        if (!mark_of(line, &words, NULL)) continue;
        if (!str_is(take_word(&words), "needs")) continue;
        while (trim(words).n) require(o, s, take_word(&words), format);
    }
}

void template_require(Out *o, Support *s, const char *name) {
    require(o, s, str(name), NULL);
}

// Text without its lines of marks.
static void put_plain(Out *o, Str text) {
    Str words;
    while (text.n) {
        Str line = str_line(&text);
        if (!mark_of(line, &words, NULL)) out_str(o, line);
    }
    out(o, "\n\n"); // one more than between functions: the file ends
}

static void require_section(Out *o, Support *s, Str file, Str section) {
    static const char *const folder[] = {"format", NULL};
    Str source = template_find(folder, str_z(o->arena, str_fmt(o->arena, "%.*s.c", FMT(file))));
    Str text = template_section(source, str_z(o->arena, section));
    if (!text.n) fail("templates/format/%.*s.c has no section %.*s", FMT(file), FMT(section));
    require(o, s, S("half.h"), NULL);
    template_support(o, s, text, NULL);
    put_plain(o, text);
}

static void require(Out *o, Support *s, Str name, const char *format) {
    if (str_starts(name, "FMT")) {
        if (!format) fail("a template needs %.*s, but no format is given", FMT(name));
        name = str_fmt(o->arena, "%s%.*s", format, (int) name.n - 3, name.p + 3);
    }
    Str key =
        str_ends(name, ".c") && format ? str_fmt(o->arena, "%s of %.*s", format, FMT(name)) : str_dup(o->arena, name);
    for (int i = 0; i < s->n_seen; i++)
        if (str_eq(s->seen[i], key)) return;
    *PUSH(o->arena, s->seen, s->n_seen, s->cap_seen) = key;
    const char *z = str_z(o->arena, name), *dot = strrchr(z, '.');
    if (!dot) fail("a template needs %s: no file and no section", z);
    if (str_is(str(dot), ".h")) {
        Str text = template_find(s->folders, z);
        template_support(o, s, text, format);
        put_plain(o, text);
    } else if (str_is(str(dot), ".c")) {
        Str text = template_find(s->folders, z);
        template_support(o, s, text, format);
        Binding b = {"FMT", str(format ? format : ""), BIND_PARAM};
        Str as = str_fmt(o->arena, "%s_%.*s", format ? format : "", (int) (dot - z), z);
        out_str(o, template_instance(o->arena, text, str_z(o->arena, as), &b, format ? 1 : 0));
        out(o, "\n\n");
    } else require_section(o, s, (Str){z, (size_t) (dot - z)}, str(dot + 1));
}
