// Attention with grouped heads over paged keys and values, for any instruction set (simd.h is what differs).
// In: queries [rows][H][DK], the batch's positions and sequences, the state's pages. Out: [rows][H][DV].
// A piece is some query heads of one kv head and some rows. Rows of one sequence go through its pages together, so
// that each key and value is read once for them all. Pages lie at absolute positions and the running maximum changes
// only from page to page: a row has the same bits however the batch was cut.
//
//@ template attention
//@ param H 9
//@ param G 3
//@ param DK 64
//@ param DV 64
//@ param SCALE 0.125f
//@ param SOFTCAP 0
//@ param WINDOW 0
//@ param CHUNK 0
//@ param WHOLE 0
//@ param AROUND 0
//@ param ALIBI 0
//@ param SINKS 0
//@ param PICKS 0
//@ param SETS 1
//@ param BLOCK 1
//@ param GROUP 0
//@ param PAGE_BYTES 49152
//@ param KV f16
//@ param HEADS 3
//@ param ROWS 16
//@ args args
//@ needs attend.h
#include "../../runtime/model.h"
#include <string.h>

#include "half.h"

#include "simd.h"

#include "math.h"

#include "row.h"

#include "attend.h"

enum { H = 9, G = 3, DK = 64, DV = 64, WINDOW = 300, GROUP = 0, PAGE_BYTES = 49152, HEADS = 3, ROWS = 16 };
#define SCALE 0.125f
#define SOFTCAP 30.0f
#define bytes_KV bytes_f16
//@ begin
enum { attention_rows = HEADS < 12 ? 12 / HEADS : 1 };
enum { attention_queries = attention_rows * HEADS };

// n rows of one sequence, in order of position, and HEADS heads from h on.
static void attention_some(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q, float *restrict o,
    const int32_t *pos, int seq, int n, int h) {
    _Alignas(64) float query[attention_queries][DK], s[attention_queries][PAGE] = {{0}};
    _Alignas(64) float sum[attention_queries][DV] = {{0}};
    Seen seen[attention_queries];
    for (int t = 0; t < n * HEADS; t++) {
        const float *x = q + (size_t) (t / HEADS * H + h + t % HEADS) * DK;
        for (int d = 0; d < DK; d++) query[t][d] = x[d] * SCALE;
        seen[t] = (Seen){-__builtin_inff(), 0};
    }
    const int kv_head = h / (H / G), last = pos[n - 1];
    int first = 0;
    if (pos[0] >= WINDOW) first = pos[0] - WINDOW + 1; //@ when WINDOW
    for (int page = first / PAGE * PAGE; page <= last; page += PAGE) {
        const uint8_t *at = state_page(m, GROUP, PAGE_BYTES, seq, page);
        const uint8_t *k = at + k_at + (size_t) kv_head * PAGE * DK * bytes_KV;
        const uint8_t *v = at + v_at + (size_t) kv_head * PAGE * DV * bytes_KV;
        const int from = first > page ? first - page : 0, to = last - page < PAGE ? last - page : PAGE - 1;
        attend_scores(k, bytes_KV == 4, query[0], DK, n * HEADS, from, to, s);
        for (int t = 0; t < n * HEADS; t++) {
            const int p = pos[t / HEADS] - page, t_to = p < PAGE ? p : PAGE - 1;
            int t_from = 0;
            if (p >= WINDOW) t_from = p - WINDOW + 1;                                             //@ when WINDOW
            for (int j = 0; j < PAGE; j++) s[t][j] = SOFTCAP * tanh_f32(s[t][j] * (1 / SOFTCAP)); //@ when SOFTCAP
            const float factor = attend_softmax(s[t], t_from, t_to, &seen[t]);
            if (factor != 1)
                for (int d = 0; d < DV; d++) sum[t][d] *= factor;
        }
        attend_values(v, bytes_KV == 4, s, DV, n * HEADS, from, to, sum[0]);
    }
    for (int t = 0; t < n * HEADS; t++) {
        float *y = o + (size_t) (t / HEADS * H + h + t % HEADS) * DV;
        for (int d = 0; d < DV; d++) y[d] = sum[t][d] / seen[t].sum;
    }
}

static void attention(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q, float *restrict o,
    const int32_t *pos, const int32_t *seq, int rows, int piece) {
    const int groups = H / HEADS, h = piece % groups * HEADS;
    const int r0 = piece / groups * ROWS, r1 = r0 + ROWS < rows ? r0 + ROWS : rows;
    for (int r = r0, n; r < r1; r += n) {
        for (n = 1; n < attention_rows && r + n < r1 && seq[r + n] == seq[r];) n++;
        attention_some(m, k_at, v_at, q + (size_t) r * H * DK, o + (size_t) r * H * DV, pos + r, seq[r], n, h);
    }
}
//@ end
