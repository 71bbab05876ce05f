// Where descriptions come from: a file the user names, folders the user names, then those inside the program. In: the
// architecture a model says it is. Out: its description with the libraries it uses; or the nearest names there are.
#include "build.h"
#include "embed.h"
#include "spec.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIBS = 64 };

typedef struct {
    const char *path; // as shown in messages
    Str text;
} Text;

typedef struct {
    Text *text;
    int n, cap;
} Library;

static bool is_arch(const char *name) {
    return str_ends(str(name), ".arch");
}

// The descriptions of one folder, in order of their names.
static void add_folder(Arena *a, Library *lib, const char *folder) {
    struct dirent **entry;
    int n = scandir(folder, &entry, NULL, alphasort);
    if (n < 0) fail("--arch-dir %s: cannot be read as a folder", folder);
    for (int i = 0; i < n; i++) {
        if (is_arch(entry[i]->d_name)) {
            const char *path = str_z(a, str_fmt(a, "%s/%s", folder, entry[i]->d_name));
            *PUSH(a, lib->text, lib->n, lib->cap) = (Text){path, file_read(a, path)};
        }
        free(entry[i]);
    }
    free(entry);
}

static Library all_texts(Arena *a, const char *const *arch_dir) {
    Library lib = {0};
    for (; arch_dir && *arch_dir; arch_dir++) add_folder(a, &lib, *arch_dir);
    for (int i = 0; i < n_embedded; i++)
        if (str_starts(str(embedded[i].path), "arch-specs/") && is_arch(embedded[i].path) &&
            !strchr(embedded[i].path + 11, '/'))
            *PUSH(a, lib.text, lib.n, lib.cap) = (Text){embedded[i].path, {embedded[i].data, embedded[i].size}};
    return lib;
}

// The names after `arch`, without parsing the rest.
static int header_names(Str text, Str *name, int most) {
    size_t i = 0;
    while (i < text.n) { // blank lines and comments before it
        while (i < text.n && (text.p[i] == ' ' || text.p[i] == '\n' || text.p[i] == '\r')) i++;
        if (i >= text.n || text.p[i] != '#') break;
        while (i < text.n && text.p[i] != '\n') i++;
    }
    if (!str_starts((Str){text.p + i, text.n - i}, "arch ")) return 0;
    int n = 0;
    for (i += 5; n < most;) {
        while (i < text.n && (text.p[i] == ' ' || text.p[i] == ',')) i++;
        size_t start = i;
        while (i < text.n && !strchr(" ,;#\r\n", text.p[i])) i++;
        if (i == start) break;
        name[n++] = (Str){text.p + start, i - start};
    }
    return n;
}

// ---- libraries ----

static bool library_text(Arena *a, Str use, const char *from, const char *const *arch_dir, Text *found) {
    Str file = str_fmt(a, "%.*s.arch", FMT(use));
    const char *slash = strrchr(from, '/');
    for (int i = -1; i < 0 || (arch_dir && arch_dir[i]); i++) { // beside the file that uses it, then in the folders
        if (i < 0 && str_starts(str(from), "arch-specs/")) continue;
        const char *path = i >= 0
            ? str_z(a, str_fmt(a, "%s/%.*s", arch_dir[i], FMT(file)))
            : str_z(a, str_fmt(a, "%.*s%.*s", slash ? (int) (slash + 1 - from) : 0, from, FMT(file)));
        FILE *f = fopen(path, "r");
        if (!f) continue;
        fclose(f);
        *found = (Text){path, file_read(a, path)};
        return true;
    }
    Str path = str_fmt(a, "arch-specs/%.*s", FMT(file));
    for (int i = 0; i < n_embedded; i++)
        if (str_is(path, embedded[i].path)) {
            *found = (Text){embedded[i].path, {embedded[i].data, embedded[i].size}};
            return true;
        }
    return false;
}

static void load_libraries(Arena *a, Spec *spec, const Spec *user, const char *const *arch_dir) {
    for (int i = 0; i < user->n_use; i++) {
        Text t;
        Loc loc = loc_at(user->src, (uint32_t) (user->use[i].p - user->src->text.p));
        if (!library_text(a, user->use[i], user->src->file, arch_dir, &t))
            fail_at(loc, "there is no library file '%.*s.arch'", FMT(user->use[i]));
        bool known = false;
        for (int j = 0; j < spec->n_lib; j++) known |= strcmp(spec->lib[j]->src->file, t.path) == 0;
        if (known) continue;
        if (spec->n_lib == MAX_LIBS) fail_at(loc, "more than %d library files", MAX_LIBS);
        Spec *lib = spec_parse(a, t.path, t.text);
        if (lib->n_arch)
            fail_at(loc, "'%s' describes an architecture; a library file has no 'arch' at its top", t.path);
        *PUSH(a, spec->lib, spec->n_lib, spec->cap_lib) = lib;
        load_libraries(a, spec, lib, arch_dir);
    }
}

bool library_tells(Arena *a, const char *use, Str key) {
    Text t;
    if (!library_text(a, str(use), "arch-specs/", NULL, &t)) return false;
    const Spec *lib = spec_parse(a, t.path, t.text);
    for (int i = 0; i < lib->body.n; i++) {
        const Stmt *s = lib->body.stmt[i];
        for (int j = 0; (s->kind == S_EXPECT || s->kind == S_IGNORE) && j < s->n_name; j++)
            if (str_eq(s->name[j], key)) return true;
    }
    return false;
}

static Spec *load(Arena *a, Text t, const char *const *arch_dir) {
    Spec *spec = spec_parse(a, t.path, t.text);
    if (!spec->n_arch) fail("%s: does not say which architecture it describes; its first line is 'arch NAME'", t.path);
    load_libraries(a, spec, spec, arch_dir);
    return spec;
}

// ---- finding ----

static _Noreturn void unknown_arch(Arena *a, Str arch, const Library *lib) {
    Str near[3] = {{0}};
    int far[3] = {99, 99, 99};
    for (int i = 0; i < lib->n; i++) {
        Str name[32];
        int n = header_names(lib->text[i].text, name, COUNT(name));
        for (int j = 0; j < n; j++) {
            int d = edit_distance(arch, name[j]), k = 2;
            bool prefix = name[j].n >= 3 && str_starts(arch, str_z(a, name[j]));
            if (prefix && d > 1) d = 1;
            if (d >= far[2]) continue;
            for (; k > 0 && far[k - 1] > d; k--) far[k] = far[k - 1], near[k] = near[k - 1];
            far[k] = d, near[k] = name[j];
        }
    }
    Out o = out_new(a);
    for (int k = 0; k < 3 && near[k].n; k++) out(&o, "%s%.*s", k ? ", " : "", FMT(near[k]));
    Str names = out_text(&o);
    fail("no description for the architecture '%s'; the nearest known are %.*s\n"
         "  'ggcc archs' lists all; a description of your own goes in with --arch FILE or --arch-dir DIR",
        str_show(a, arch), FMT(names));
}

Spec *spec_find(Arena *a, Str arch, const char *arch_file, const char *const *arch_dir) {
    if (arch_file) return load(a, (Text){arch_file, file_read(a, arch_file)}, arch_dir);
    Library lib = all_texts(a, arch_dir);
    for (int i = 0; i < lib.n; i++) {
        Str name[32];
        int n = header_names(lib.text[i].text, name, COUNT(name));
        for (int j = 0; j < n; j++)
            if (str_eq(name[j], arch)) return load(a, lib.text[i], arch_dir);
    }
    unknown_arch(a, arch, &lib);
}

// ---- ggcc archs ----

static void needs(const Block *block, Out *o, int *n) {
    for (int i = 0; i < block->n; i++) {
        const Stmt *d = block->stmt[i];
        bool key = (d->kind == S_SIZE || d->kind == S_REAL) && d->expr->kind == E_NAME;
        if (key) out(o, "%s%.*s", (*n)++ ? ", " : "", FMT(d->expr->name));
    }
}

void list_archs(Arena *a, const BuildOptions *opt, Out *o) {
    Library lib = all_texts(a, opt->arch_dir);
    for (int i = 0; i < lib.n; i++) {
        Spec *spec = load(a, lib.text[i], opt->arch_dir);
        for (int j = 0; j < spec->n_arch; j++) out(o, "%s%.*s", j ? ", " : "", FMT(spec->arch[j]));
        int lines = 0, n = 0;
        for (size_t k = 0; k < spec->src->text.n; k++) lines += spec->src->text.p[k] == '\n';
        out(o, ": %.*s\n    %s, %d lines", FMT(spec->about), lib.text[i].path, lines);
        for (int j = 0; j < spec->n_lib; j++) out(o, ", %s", spec->lib[j]->src->file);
        out(o, "\n    needs ");
        needs(&spec->body, o, &n);
        out(o, "\n");
    }
}
