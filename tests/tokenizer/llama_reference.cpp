// Ids as llama.cpp gives them, for differential.py and tools/bench/tokenizers.py. Not part of the build:
//   c++ -O2 -I LLAMA/include -I LLAMA/ggml/include llama_reference.cpp BUILD/.../libllama.a ... -o llama_reference
//   llama_reference MODEL each FLAGS [PRE]    stdin: texts, each behind its length and a newline; a line of ids each
//   llama_reference MODEL time FILE [PRE]     MB/s of processor time, best of 3
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "llama.h"

static std::string all_of(std::istream &in) {
    return std::string((std::istreambuf_iterator<char>(in)), {});
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "llama_reference MODEL each|time ARG [PRE]\n"), 2;
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_model_params params = llama_model_default_params();
    llama_model_kv_override overrides[2] = {};
    params.vocab_only = true;
    if (argc > 4) {
        overrides[0].tag = LLAMA_KV_OVERRIDE_TYPE_STR;
        snprintf(overrides[0].key, sizeof overrides[0].key, "tokenizer.ggml.pre");
        snprintf(overrides[0].val_str, sizeof overrides[0].val_str, "%s", argv[4]);
        params.kv_overrides = overrides;
    }
    llama_model *model = llama_model_load_from_file(argv[1], params);
    if (!model) return fprintf(stderr, "%s: not loaded\n", argv[1]), 1;
    const llama_vocab *vocab = llama_model_get_vocab(model);
    std::vector<llama_token> ids;
    auto tokenize = [&](const char *p, size_t n, int flags) {
        ids.resize(6 * n + 64);
        int count = llama_tokenize(vocab, p, (int) n, ids.data(), (int) ids.size(), flags & 1, flags & 2);
        ids.resize(count < 0 ? 0 : (size_t) count);
    };
    if (!strcmp(argv[2], "time")) {
        std::ifstream file(argv[3], std::ios::binary);
        std::string text = all_of(file);
        double best = 1e9;
        for (int i = 0; i < 3; i++) {
            std::clock_t from = std::clock();
            tokenize(text.data(), text.size(), 0);
            double took = (double) (std::clock() - from) / CLOCKS_PER_SEC;
            if (took < best) best = took;
        }
        printf("%zu bytes, %zu ids, %.4f s, %.1f MB/s\n", text.size(), ids.size(), best, text.size() / best / 1e6);
        return 0;
    }
    std::string all = all_of(std::cin);
    for (size_t at = 0; at < all.size();) {
        size_t n = 0;
        while (all[at] != '\n') n = n * 10 + (size_t) (all[at++] - '0');
        tokenize(all.data() + at + 1, n, atoi(argv[3]));
        for (size_t i = 0; i < ids.size(); i++) printf("%s%d", i ? " " : "", ids[i]);
        printf("\n");
        at += n + 1;
    }
}
