// Chat templates become C. In: the templates of a file, its tokenizer's tables. Out: chat_NAME.c for each, and
// chat_templates.c with the table, and what each template makes of the fixed conversations (runtime/chat_cases.h) by
// the evaluation of its tree here; the program's self-test renders them by the C.
#include "chat.h"
#include "jinja.h"
#include "template_commands.h"
#include "../runtime/chat_cases.h"
#include "../runtime/tokenizer.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEMPLATES = 32 };

typedef struct {
    Arena *arena;
    Tokenizer tokenizer;
    const char *bos, *eos; // texts, NULL: none
    bool stop_given;
} Chat;

static const char *token_text(const Chat *c, TokRole role) {
    int32_t id = tok_role(&c->tokenizer, role);
    if (id < 0) return NULL;
    size_t n;
    const char *p = tok_bytes(&c->tokenizer, id, &n);
    return n < 256 ? str_z(c->arena, (Str){p, n}) : NULL; // as the program has it
}

// jinja_compile, with the way out in its message.
static Jinja *compile(Arena *a, const TemplateSource *t) {
    FailGuard *guard = fail_guard();
    if (!setjmp(guard->jmp)) {
        Jinja *made = jinja_compile(a, t->where, t->source);
        fail_unguard();
        return made;
    }
    fail("%s\nthe chat template cannot be compiled; --chat-template FILE takes another, --no-chat builds without",
        guard->message);
}

// ---- the end of a turn ----

static bool ends_generation(const Chat *c, Str text) {
    const Tokenizer *t = &c->tokenizer;
    size_t cap = tokenize_max_ids(t, text.n), room = tokenize_scratch(t, text.n);
    int32_t *ids = NEWN(c->arena, int32_t, cap + 1);
    int64_t n = tokenize(t, text.p, text.n, TOK_PARSE_SPECIAL, ids, cap, arena_alloc(c->arena, room + 8), room);
    for (int64_t i = 0; i < n; i++)
        if (tok_is_eog(t, ids[i])) return true;
    return false;
}

static void check_ends(const Chat *c, const TemplateSource *t, const Jinja *j, bool rendered) {
    Str ends[4], names = S("");
    int n = jinja_turn_ends(c->arena, j, c->bos ? c->bos : "", c->eos ? c->eos : "", ends);
    if (c->stop_given) return;
    for (int i = 0; i < n; i++) {
        if (ends_generation(c, ends[i])) return;
        names = str_fmt(c->arena, "%.*s%s'%s'", FMT(names), i ? " or " : "", str_show(c->arena, ends[i]));
    }
    if (!n && !rendered) {
        note("%s: it takes no plain conversation, so where a turn ends is not known", t->where);
        return;
    }
    if (!n)
        fail("%s: the chat template writes nothing that ends an answer; --stop TEXT names a text that does, "
             "--no-chat builds without the template",
            t->where);
    fail("%s: the chat template ends an answer with %.*s, and no token in it ends generation; --stop TEXT makes a "
         "text end it, --no-chat builds without the template",
        t->where, FMT(names));
}

// ---- sources ----

static bool is_identifier(Str s) {
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(i && ((c >= '0' && c <= '9') || c == '_'))) return false;
    }
    return s.n > 0 && s.n <= 64 && !str_is(s, "templates"); // chat_templates.c is the table's
}

// What the template writes for the fixed conversations, as rows of the table. Whether it takes a plain conversation.
static bool put_checks(Out *o, const Chat *c, const Jinja *j) {
    void *memory = malloc(CHAT_CASE_MEMORY);
    if (!memory) fail("out of memory: %d MiB for a rendering", CHAT_CASE_MEMORY >> 20);
    Render *r = NEW(c->arena, Render);
    bool plain = false;
    for (int i = 0; i < CHAT_CASES; i++) {
        int status = chat_case_open(r, memory, CHAT_CASE_MEMORY, i, c->bos, c->eos);
        if (!status) status = jinja_render(j, r);
        ChatCheck got = chat_case_result(r, status);
        out(o, "    {0x%016llxu, %u, %s},\n", (unsigned long long) got.hash, got.n, got.failed ? "true" : "false");
        if (i == CHAT_CASE_PLAIN) plain = !got.failed;
    }
    free(memory);
    return plain;
}

static void add_file(Arena *a, ChatCode *code, Str name, Str text) {
    *PUSH(a, code->file, code->n, code->cap) = (SourceFile){str_z(a, name), text};
}

static ChatCode no_templates(Arena *a) {
    ChatCode code = {0};
    add_file(a, &code, S("chat_templates.c"),
        S("// This program has no chat template.\n#include \"chat.h\"\n\nconst Chat *const chat = NULL;\n"));
    return code;
}

static int collect(Arena *a, const Gguf *g, const ChatOptions *opt, TemplateSource **list) {
    int n = template_sources(a, g, list);
    if (!opt->file) return n;
    TemplateSource given = {S("default"), file_read(a, opt->file), opt->file};
    TemplateSource *all = NEWN(a, TemplateSource, n + 1);
    int count = 0;
    all[count++] = given;
    for (int i = 0; i < n; i++)
        if (!str_is((*list)[i].name, "default")) all[count++] = (*list)[i];
    *list = all;
    return count;
}

ChatCode chat_code(Arena *a, const Gguf *g, const ChatOptions *opt, Str tokenizer, bool stop_given) {
    Chat c = {.arena = a, .stop_given = stop_given};
    TemplateSource *list;
    if (opt->none) return no_templates(a);
    int n = collect(a, g, opt, &list);
    if (!n) return no_templates(a);
    if (n > MAX_TEMPLATES)
        fail("%s: %d chat templates, more than the %d that a program takes; --no-chat builds without", g->path, n,
            MAX_TEMPLATES);
    if (!tokenizer.n) {
        if (opt->file) fail("--chat-template %s: the program has no tokenizer, and a chat needs one", opt->file);
        note("the chat template is left out with the tokenizer");
        return no_templates(a);
    }
    if (!tokenizer_open(&c.tokenizer, tokenizer.p, tokenizer.n)) fail("internal: the tokenizer's tables do not open");
    c.bos = token_text(&c, TOK_BOS), c.eos = token_text(&c, TOK_EOS);
    ChatCode code = {.templates = true, .names = S("")};
    Out table = out_new(a), protos = out_new(a), checks = out_new(a);
    for (int i = 0; i < n; i++) {
        Str name = is_identifier(list[i].name) ? list[i].name : str_fmt(a, "_%d", i);
        Jinja *j = compile(a, &list[i]);
        bool rendered = put_checks(&checks, &c, j);
        check_ends(&c, &list[i], j, rendered);
        Out text = out_new(a);
        jinja_emit(&text, j, str_z(a, name));
        add_file(a, &code, str_fmt(a, "chat_%.*s.c", FMT(name)), out_text(&text));
        out(&protos, "int template_%.*s(Render *r);\n", FMT(name));
        out(&table, "    {%.*s, template_%.*s},\n", FMT(str_c(a, list[i].name)), FMT(name));
        code.names = str_fmt(a, "%.*s%s%.*s", FMT(code.names), i ? ", " : "", FMT(str_plain(a, list[i].name)));
    }
    Out o = out_new(a);
    out(&o,
        "// The chat templates of this program, and what they write for the fixed conversations of chat_cases.c: hash, "
        "bytes, "
        "whether it is an error.\n#include \"chat_in.h\"\n\n%.*s\nconst ChatTemplate chat_templates[] = {\n%.*s};\n"
        "const int n_chat_templates = %d;\n\nconst ChatCheck chat_checks[] = {\n%.*s};\n\n"
        "static const Chat talking = {chat_talk, chat_prompt, chat_check};\nconst Chat *const chat = &talking;\n",
        FMT(out_text(&protos)), FMT(out_text(&table)), n, FMT(out_text(&checks)));
    add_file(a, &code, S("chat_templates.c"), out_text(&o));
    return code;
}
