// What several commands share (reading their input, opening the model), and the commands that evaluate nothing:
// tokenize, detokenize, info. In: options. Out: ids, bytes, facts.
#include "error.h"
#include "io.h"
#include "options.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Settings settings_of(const Options *o) {
    return (Settings){.threads = o->threads, .n_ctx = o->ctx, .batch = o->batch};
}

// "15043+1.5", "15043-1", "15043-inf".
int parse_bias(const Options *o, LogitBias *bias) {
    for (int i = 0; i < o->bias.n; i++) {
        const char *text = o->bias.text[i];
        char number[16], *end = "x";
        size_t n = strspn(text, "0123456789");
        int id = -1;
        double x = 0;
        if (n && n < sizeof number && (text[n] == '+' || text[n] == '-')) {
            memcpy(number, text, n);
            number[n] = '\0';
            x = strtod(text + n, &end);
            if (end == text + n || parse_int(number, 0, INT32_MAX, &id)) end = "x";
        }
        if (*end || x != x || x > 1e6) {
            complain("--logit-bias '%s': a token's id and what to add is expected, like 15043+1.5 or 15043-inf", text);
            return 2;
        }
        if (id >= model_info.n_vocab) {
            complain("--logit-bias '%s': id %d is out of range, the vocabulary has %d", text, id, model_info.n_vocab);
            return 2;
        }
        bias[i] = (LogitBias){id, (float) x};
    }
    return 0;
}

static bool contains(const char *text, size_t n, const char *part) {
    size_t length = strlen(part);
    for (size_t i = 0; length && i + length <= n; i++)
        if (!memcmp(text + i, part, length)) return true;
    return false;
}

int set_breakers(Program *p, const Options *o) {
    static const char *const usual[] = {"\n", ":", "\"", "*"};
    const char *const *list = o->breakers.n ? o->breakers.text : usual;
    int n = o->breakers.n ? o->breakers.n : 4;
    memset(p->sampler.breaks, 0, (size_t) p->info->n_vocab); // those of an earlier choice
    if (o->sample.dry_multiplier <= 0 || !p->has_tokenizer || (o->breakers.n == 1 && !strcmp(list[0], "none")))
        return 0;
    for (int id = 0; id < p->info->n_vocab && id < tok_n_vocab(&p->tokenizer); id++) {
        size_t size;
        const char *text = tok_bytes(&p->tokenizer, id, &size);
        for (int i = 0; i < n; i++) p->sampler.breaks[id] |= contains(text, size, list[i]);
    }
    return 0;
}

int open_model(Program *p, const Options *o) {
    Settings s = settings_of(o);
    LogitBias bias[MAX_LISTED];
    memset(p, 0, sizeof *p);
    if (settings_check(&s, &model_info) || parse_bias(o, bias)) return 2;
    s.bias = bias, s.n_bias = o->bias.n;
    if (program_open_file(p, &model_info, weights_file) || program_open(p, &s)) return -1;
    p->interrupted = &interrupted;
    sampler_use(&p->sampler, &o->sample);
    return 0;
}

int open_to_sample(Program *p, const Options *o) {
    if (o->narrowed && !o->temp_given)
        fprintf(stderr, "note: without --temp the likeliest token is taken; --top-k and the like change nothing\n");
    int result = open_model(p, o);
    return result ? result : set_breakers(p, o);
}

static int no_tokenizer(void) {
    return complain("this model has no tokenizer: give token ids with --ids FILE");
}

int text_tokens(const Program *p, const char *text, size_t size, int flags, int32_t **ids, int *n) {
    const Tokenizer *t = &p->tokenizer;
    size_t cap = tokenize_max_ids(t, size), room = tokenize_scratch(t, size);
    *ids = malloc((cap + 1) * sizeof **ids);
    void *scratch = malloc(room + 8);
    int64_t got = *ids && scratch ? tokenize(t, text, size, flags, *ids, cap, scratch, room) : -1;
    free(scratch);
    if (got >= 0 && got < INT32_MAX) {
        *n = (int) got;
        return 0;
    }
    free(*ids);
    *ids = NULL;
    return got == TOK_TOO_LONG
        ? complain("the text has %zu bytes, more than can be tokenized at once (1 GiB)", size)
        : complain("no memory to tokenize %zu bytes: %zu are needed", size, room + cap * sizeof **ids);
}

int input_tokens(const Program *p, const Options *o, bool special, bool optional, int32_t **ids, int *n) {
    *ids = NULL, *n = 0;
    if (o->ids) return read_ids(o->ids, p->info->n_vocab, ids, n);
    if (!o->prompt && !o->file) {
        if (optional) return 0;
        complain("no input: give -p TEXT, -f FILE or --ids FILE");
        return 2;
    }
    if (!p->has_tokenizer) return no_tokenizer();
    int flags = (special && !o->no_special ? TOK_ADD_SPECIAL : 0) | (o->parse_special ? TOK_PARSE_SPECIAL : 0);
    if (o->prompt) return text_tokens(p, o->prompt, strlen(o->prompt), flags, ids, n);
    char *text;
    size_t size;
    if (read_file(o->file, &text, &size)) return -1;
    int result = text_tokens(p, text, size, flags, ids, n);
    free(text);
    return result;
}

int cmd_tokenize(const Options *o) {
    Program p;
    int32_t *ids;
    int n;
    if (!o->prompt && !o->file) {
        complain("no input: give -p TEXT or -f FILE");
        return 2;
    }
    int result = program_open_file(&p, &model_info, weights_file);
    if (!result) result = input_tokens(&p, o, true, false, &ids, &n);
    if (result) return result;
    if (o->json) result = out_write("[", 1);
    for (int i = 0; i < n && !result; i++)
        result = o->json ? out_print("%s%d", i ? ", " : "", ids[i]) : out_print("%d\n", ids[i]);
    if (o->json && !result) result = out_write("]\n", 2);
    free(ids);
    program_close(&p);
    return result;
}

int cmd_detokenize(const Options *o) {
    Program p;
    Detok d;
    int32_t *ids;
    int n;
    if (!o->file) {
        complain("no input: give -f FILE with token ids");
        return 2;
    }
    if (program_open_file(&p, &model_info, weights_file)) return -1;
    if (!p.has_tokenizer) return complain("this model has no tokenizer: its ids stand for no text");
    if (read_ids(o->file, tok_n_vocab(&p.tokenizer), &ids, &n)) return -1;
    size_t room = detok_room(&p.tokenizer);
    char *text = malloc(room);
    if (!text) return complain("no memory for %zu bytes", room);
    detok_begin(&d, &p.tokenizer, DETOK_WHOLE | DETOK_SPECIAL); // the text that gave these ids
    int result = 0;
    for (int i = 0; i < n && !result; i++) result = out_write(text, detok_put(&d, ids[i], text));
    if (!result) result = out_write(text, detok_end(&d, text));
    free(text);
    free(ids);
    program_close(&p);
    return result;
}

int cmd_info(const Options *o) {
    Memory m;
    const ModelInfo *i = &model_info;
    int threads = cores_available();
    memory_layout(&m, i, threads, i->n_ctx, 1, sampler_bytes(i->n_vocab, i->n_ctx), 0, team_bytes(threads));
    if (o->json) {
        int bad = out_print("{\"model\": ") || out_string(i->name) || out_print(", \"arch\": ") ||
            out_string(i->arch) || out_print(", \"source\": ") || out_string(i->source);
        return bad
            ? -1
            : out_print(", \"hash\": \"%016llx\", \"vocab\": %d, \"ctx\": %d, \"layers\": %d, \"embd\": %d, "
                        "\"params\": %llu, "
                        "\"weight_bytes\": %llu, \"kv_type\": \"%s\", \"kv_bytes\": %llu, \"memory_bytes\": %llu}\n",
                  (unsigned long long) i->hash, i->n_vocab, i->n_ctx, i->n_layer, i->n_embd,
                  (unsigned long long) i->param_count, (unsigned long long) i->weight_bytes, i->kv_type,
                  (unsigned long long) m.bytes[MEM_STATE], (unsigned long long) m.total);
    }
    int bad = out_print("%s\nmemory with %d thread%s and a context of %d, besides the mapped weights\n", i->info,
        threads, threads == 1 ? "" : "s", i->n_ctx);
    for (int part = 0; part < MEM_PARTS && !bad; part++)
        bad = out_print("  %-12s %14llu bytes\n", memory_part_name(part), (unsigned long long) m.bytes[part]);
    return bad ? bad : out_print("  %-12s %14llu bytes\n", "total", (unsigned long long) m.total);
}
