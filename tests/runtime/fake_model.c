// A model for tests of the runtime: what a generated file defines, small and exact. The logits of a row are a hash of
// every token before it (group "all") and of the last WINDOW ones once more (group "near"), taken from the state's
// pages, so that a page lost, mixed up or freed too early changes them, and so does a piece run twice or not at all.
#include "../../runtime/model.h"
#include "../../runtime/chat.h"
#include "../../runtime/selftest.h"
#include <math.h>
#include <string.h>

enum { VOCAB = 260, WINDOW = 150, BATCH = 37, OUT = 5, WEIGHTS = 5000 };
#ifndef CTX
#define CTX 700
#endif
#ifndef NEEDS
#define NEEDS ""
#endif
#ifndef HASH
#define HASH 0x1234567890abcdefu
#endif

const ModelInfo model_info = {
    .name = "fake \"model\"",
    .arch = "fake",
    .source = "fake.gguf",
    .hash = HASH,
    .n_vocab = VOCAB,
    .result = "logits",
    .n_result = VOCAB,
    .n_ctx = CTX,
    .n_layer = 1,
    .n_embd = 1,
    .max_batch = BATCH,
    .max_out = OUT,
    .weight_bytes = WEIGHTS,
    .scratch_bytes = BATCH * 8,
    .thread_bytes = 64,
    .n_group = 2,
    .group = {{"all", PAGE * 8, 0, 1}, {"near", PAGE * 8, WINDOW, 1}},
    .cpu = NEEDS,
    .info = "a fake model\n",
    .kv_type = "f32",
    .param_count = WEIGHTS,
};
#ifdef WEIGHTS_FILE
const char *const weights_file = WEIGHTS_FILE;
#else
const char *const weights_file = NULL;
#endif
const char *const compiler_version = "ggcc test";

#include "selftest_values.h"
const Chat *const chat = NULL;

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static uint64_t *cell(const Model *m, int group, int seq, int pos) {
    return (uint64_t *) (void *) state_page(m, group, PAGE * 8, seq, pos) + pos % PAGE;
}

void model_forward(const Model *m, Worker *w) {
    uint64_t *sum = (uint64_t *) (void *) m->scratch;
    PIECES(w, m->rows, r) {
        uint64_t x = mix((uint64_t) m->token[r] * 1000003u + (uint64_t) m->pos[r] + m->weights[m->pos[r] % WEIGHTS]);
        *cell(m, 0, m->seq[r], m->pos[r]) = x;
        *cell(m, 1, m->seq[r], m->pos[r]) = ~x;
        sum[r] = 0;
    }
    if (m->rows > 1) { // steps that only some batches have: late threads must not miscount
        PIECES(w, 3, p) {
            for (int r = p; r < m->rows; r += 3) sum[r] += 1;
        }
        PIECES(w, 2, p) {
            for (int r = p; r < m->rows; r += 2) sum[r] ^= 5;
        }
    } else {
        PIECES(w, 1, p) {
            sum[p] = (sum[p] + 1) ^ 5;
        }
    }
    PIECES(w, m->outs, i) {
        int r = m->out[i], pos = m->out_pos[i];
        for (int j = 0; j <= pos; j++) sum[r] = mix(sum[r] + *cell(m, 0, m->out_seq[i], j));
        for (int j = pos - WINDOW + 1 < 0 ? 0 : pos - WINDOW + 1; j <= pos; j++)
            sum[r] = mix(sum[r] + *cell(m, 1, m->out_seq[i], j));
    }
    PIECES(w, m->outs * 4, p) {
        float *row = m->logits + (size_t) (p / 4) * VOCAB;
        uint64_t x = sum[m->out[p / 4]];
        for (int v = p % 4 * (VOCAB / 4); v < (p % 4 + 1) * (VOCAB / 4); v++)
            row[v] = (float) (mix(x + (uint64_t) v) >> 40) * 0x1p-20f;
#ifdef BROKEN_NAN
        row[7] = NAN;
#endif
    }
}
