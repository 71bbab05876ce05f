// What llama.cpp makes of a text: lc_embed MODEL IDS OUT HOW. In: a model, a text file of token ids. Out: float32, a
// vector for each token (HOW: none), one vector (mean, first, last), or what the file's pooling_type asks for (file):
// a vector or scores.
#include "llama.h"
#include <cstdio>
#include <map>
#include <string>
#include <vector>

static int fail(const char *what) {
    fprintf(stderr, "error: %s\n", what);
    return 1;
}

static std::vector<llama_token> read_ids(const char *path) {
    std::vector<llama_token> ids;
    FILE *f = fopen(path, "r");
    for (int id; f && fscanf(f, "%d", &id) == 1;) ids.push_back(id);
    if (f) fclose(f);
    return ids;
}

static llama_context *open_context(llama_model *model, int n, enum llama_pooling_type pooling) {
    llama_context_params p = llama_context_default_params();
    p.n_ctx = p.n_batch = p.n_ubatch = (uint32_t) n; // one batch: rows see each other
    p.embeddings = true;
    p.pooling_type = pooling;
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    p.type_k = p.type_v = GGML_TYPE_F32;
    return llama_init_from_model(model, p);
}

int main(int argc, char **argv) {
    static const std::map<std::string, enum llama_pooling_type> kinds = {
        {"none", LLAMA_POOLING_TYPE_NONE}, {"mean", LLAMA_POOLING_TYPE_MEAN}, {"first", LLAMA_POOLING_TYPE_CLS},
        {"last", LLAMA_POOLING_TYPE_LAST}, {"file", LLAMA_POOLING_TYPE_UNSPECIFIED}};
    if (argc != 5 || !kinds.count(argv[4])) return fail("usage: lc_embed MODEL IDS OUT (none|mean|first|last|file)");
    llama_log_set([](ggml_log_level level, const char *text, void *) {
        if (level >= GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
    }, nullptr);
    llama_backend_init();
    std::vector<llama_token> ids = read_ids(argv[2]);
    int n = (int) ids.size();
    llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    llama_context *c = model && n ? open_context(model, n, kinds.at(argv[4])) : nullptr;
    if (!c) return fail("the model or the ids cannot be used");
    llama_batch b = llama_batch_init(n, 0, 1);
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
        b.token[i] = ids[i], b.pos[i] = i, b.logits[i] = 1;
        b.n_seq_id[i] = 1, b.seq_id[i][0] = 0;
    }
    bool encoder = llama_model_has_encoder(model); // of two halves, too, the first alone
    if (encoder ? llama_encode(c, b) : llama_decode(c, b)) return fail("it cannot be evaluated");
    FILE *out = fopen(argv[3], "wb");
    if (!out) return fail("the output cannot be written");
    bool rows = llama_pooling_type(c) == LLAMA_POOLING_TYPE_NONE;
    bool scores = llama_pooling_type(c) == LLAMA_POOLING_TYPE_RANK;
    size_t width = scores ? llama_model_n_cls_out(model) : (size_t) llama_model_n_embd_out(model);
    for (int i = 0; i < (rows ? n : 1); i++) {
        const float *from = rows ? llama_get_embeddings_ith(c, i) : llama_get_embeddings_seq(c, 0);
        if (!from || fwrite(from, sizeof(float), width, out) != width) return fail("it gives no vector");
    }
    return fclose(out) ? fail("the output cannot be written") : 0;
}
