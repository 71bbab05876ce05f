// Attention on two caches of one column each, keys that are values too, with one softmax over both: positions, of
// which a row sees all before it, WINDOW, or those since the last multiple of CHUNK; and records of EVERY
// positions, of which it sees those that are complete, and of these only PICKS, if any: blocks of BLOCK records, in
// SETS sets. In: queries [rows][H][DK], the batch's positions and sequences, the pages of both (rows of DK:
// latent.h). Out: [rows][H][DK]. Pieces and order are those of attention.c, positions before records.
//
//@ template attention
//@ param H 9
//@ param G 3
//@ param DK 64
//@ param SCALE 0.125f
//@ param SOFTCAP 0
//@ param WINDOW 0
//@ param CHUNK 0
//@ param SINKS 0
//@ param PICKS 0
//@ param SETS 1
//@ param BLOCK 1
//@ param EVERY 4
//@ param GROUP 0
//@ param PAGE_BYTES 49152
//@ param GROUP2 1
//@ param PAGE_BYTES2 49152
//@ param KV f16
//@ param HEADS 3
//@ param ROWS 16
//@ args args
//@ args pass
//@ needs latent.h sees.h
#include "../../runtime/model.h"
#include <string.h>

#include "half.h"

#include "simd.h"

#include "math.h"

#include "row.h"

#include "attend.h"

#include "sees.h"

#include "latent.h"

enum {
    H = 9,
    G = 3,
    DK = 64,
    WINDOW = 300,
    CHUNK = 128,
    EVERY = 4,
    GROUP = 0,
    PAGE_BYTES = 49152,
    GROUP2 = 1,
    PAGE_BYTES2 = 49152,
    HEADS = 3
};
enum { ROWS = 16, PICKS = 16, SETS = 1, BLOCK = 2 };
static float sinks[H];
static int32_t picks[ROWS * SETS * PICKS];
#define SCALE 0.125f
#define SOFTCAP 30.0f
#define bytes_KV bytes_f16
//@ begin
enum { attention_rows = HEADS < 12 ? 12 / HEADS : 1 };
enum { attention_queries = attention_rows * HEADS };

// n queries of HEADS heads, and what they know so far.
typedef struct {
    _Alignas(64) float query[attention_queries][DK], s[attention_queries][PAGE], sum[attention_queries][DK];
    Seen seen[attention_queries];
    int from[attention_rows], to[attention_rows]; // what each row sees of the cache at hand
} attention_State;

// One page of a cache; lists: of the first row, or NULL.
static void attention_page(
    attention_State *a, int n, const uint8_t *k, int page, int first, int last, const int32_t *restrict lists) {
    const int from = first > page ? first - page : 0, to = last - page < PAGE ? last - page : PAGE - 1;
    latent_scores(k, bytes_KV == 4, a->query[0], DK, n * HEADS, from, to, a->s);
    for (int t = 0; t < n * HEADS; t++) {
        const int row = t / HEADS;
        int t_from = a->from[row] > page ? a->from[row] - page : 0,
            t_to = a->to[row] - page < PAGE ? a->to[row] - page : PAGE - 1;
        float *restrict s = a->s[t];
        for (int j = 0; j < PAGE; j++) s[j] = SOFTCAP * tanh_f32(s[j] * (1 / SOFTCAP));                 //@ when SOFTCAP
        if (lists) sees_picked(lists + row * (SETS * PICKS), PICKS, BLOCK, page, &t_from, &t_to, s);   //@ when PICKS
        const float factor = attend_softmax(s, t_from, t_to, &a->seen[t]);
        if (factor != 1)
            for (int d = 0; d < DK; d++) a->sum[t][d] *= factor;
    }
    attend_values(k, bytes_KV == 4, a->s, DK, DK, n * HEADS, from, to, a->sum[0]);
    (void) lists;
}

// n rows of one sequence, in order of position, and HEADS heads from h on.
static void attention_some(const Model *m, uint64_t k_at, uint64_t records_at, const float *restrict q,
    float *restrict o, const int32_t *pos, int seq, int n, int h /*@ args */) {
    attention_State a;
    memset(a.sum, 0, sizeof a.sum), memset(a.s, 0, sizeof a.s);
    for (int t = 0; t < n * HEADS; t++) {
        const float *x = q + (size_t) (t / HEADS * H + h + t % HEADS) * DK;
        for (int d = 0; d < DK; d++) a.query[t][d] = x[d] * SCALE;
        a.seen[t] = (Seen){-__builtin_inff(), 0};
        a.seen[t] = (Seen){sinks[h + t % HEADS], 1}; //@ when SINKS
    }
    const int kv_head = h / (H / G);
    for (int t = 0; t < n; t++) {
        a.from[t] = 0, a.to[t] = pos[t];
        if (pos[t] >= WINDOW) a.from[t] = pos[t] - WINDOW + 1; //@ when WINDOW
        a.from[t] = pos[t] / CHUNK * CHUNK;                    //@ when CHUNK
    }
    for (int page = a.from[0] / PAGE * PAGE; page <= a.to[n - 1]; page += PAGE)
        attention_page(&a, n,
            state_page(m, GROUP, PAGE_BYTES, seq, page) + k_at + (size_t) kv_head * PAGE * DK * bytes_KV, page,
            a.from[0], a.to[n - 1], NULL);
    for (int t = 0; t < n; t++) a.from[t] = 0, a.to[t] = (pos[t] + 1) / EVERY - 1;
    const int32_t *lists = NULL;
    lists = picks + kv_head % SETS * PICKS; //@ when PICKS
    for (int page = 0; page <= a.to[n - 1]; page += PAGE)
        attention_page(&a, n,
            state_page(m, GROUP2, PAGE_BYTES2, seq, page) + records_at + (size_t) kv_head * PAGE * DK * bytes_KV, page,
            0, a.to[n - 1], lists);
    for (int t = 0; t < n * HEADS; t++) {
        float *y = o + (size_t) (t / HEADS * H + h + t % HEADS) * DK;
        for (int d = 0; d < DK; d++) y[d] = a.sum[t][d] / a.seen[t].sum;
    }
}

static void attention(const Model *m, uint64_t k_at, uint64_t records_at, const float *restrict q, float *restrict o,
    const int32_t *pos, const int32_t *seq, int rows, int piece /*@ args */) {
    const int groups = H / HEADS, h = piece % groups * HEADS;
    const int r0 = piece / groups * ROWS, r1 = r0 + ROWS < rows ? r0 + ROWS : rows;
    for (int r = r0, n; r < r1; r += n) {
        for (n = 1; n < attention_rows && r + n < r1 && seq[r + n] == seq[r];) n++;
        attention_some(m, k_at, records_at, q + (size_t) r * H * DK, o + (size_t) r * H * DK, pos + r, seq[r], n,
            h /*@ pass */);
    }
}
//@ end
