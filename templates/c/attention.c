// Attention with grouped heads over paged keys and values, for any instruction set (simd.h is what differs).
// In: queries [rows][H][DK], the batch's positions and sequences, the state's pages. Out: [rows][H][DV].
// A row sees the positions up to its own: all, WINDOW, or those since the last multiple of CHUNK; or all that its
// sequence has (ALL), or AROUND / 2 to each side. Of these PICKS, if any, are the only ones: blocks of BLOCK positions,
// in SETS sets.
// Keys lie in blocks of positions (FMT attend) and values apart from them; or (FMT latent) a position has one
// column of V_ROW numbers, the key, and its values are those from V_FROM on: v_at is k_at then.
// A piece is some query heads of one kv head and some rows. Rows of one sequence go through its pages together, so
// that each key and value is read once for them all. Pages lie at absolute positions and the running maximum changes
// only from page to page: a row has the same bits however the batch was cut.
//
//@ template attention
//@ param H 9
//@ param G 3
//@ param DK 64
//@ param DV 64
//@ param FMT attend
//@ param V_ROW 64
//@ param V_FROM 0
//@ param SCALE 0.125f
//@ param SOFTCAP 0
//@ param WINDOW 0
//@ param CHUNK 0
//@ param ALL 0
//@ param AROUND 0
//@ param ALIBI 0
//@ param SINKS 0
//@ param BIASES 0
//@ param EXACT 0
//@ param LATER 0
//@ param BOUNDS 12, 16
//@ param AHEAD 0
//@ param PICKS 0
//@ param SETS 1
//@ param BLOCK 1
//@ param GROUP 0
//@ param PAGE_BYTES 49152
//@ param KV f16
//@ param HEADS 3
//@ param ROWS 16
//@ args args
//@ args pass
//@ needs FMT.h sees.h
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
    DV = 64,
    V_ROW = 64,
    V_FROM = 8,
    WINDOW = 300,
    CHUNK = 128,
    AROUND = 24,
    GROUP = 0,
    PAGE_BYTES = 49152,
    HEADS = 3
};
enum { ROWS = 16, PICKS = 16, SETS = 1, BLOCK = 2 };
#define ALIBI 8.0f
enum { BIASES = 2, EXACT = 8, LATER = 11 };
#define BOUNDS 12, 16
static float biases[2 * LATER * H];
static float sinks[H];
static int32_t picks[ROWS * SETS * PICKS];
#define SCALE 0.125f
#define SOFTCAP 30.0f
#define bytes_KV bytes_f16
#define FMT_scores attend_scores
//@ begin
enum { attention_rows = HEADS < 12 ? 12 / HEADS : 1 };
enum { attention_queries = attention_rows * HEADS };
static const int attention_bounds[] = {BOUNDS}; //@ when BIASES

// The positions that a row at p sees, of a sequence that ends at `end`. Later rows see no earlier ones.
static inline void attention_sees(int p, int end, int *from, int *to) {
    *from = 0, *to = p;
    if (p >= WINDOW) *from = p - WINDOW + 1;           //@ when WINDOW
    *from = p / CHUNK * CHUNK;                         //@ when CHUNK
    *to = end;                                         //@ when ALL
    if (p > AROUND / 2) *from = p - AROUND / 2;        //@ when AROUND
    *to = p + AROUND / 2 < end ? p + AROUND / 2 : end; //@ when AROUND
    (void) end;
}

// n rows of one sequence, in order of position, and HEADS heads from h on.
static void attention_some(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q, float *restrict o,
    const int32_t *pos, int seq, int n, int h /*@ args */) {
    _Alignas(64) float query[attention_queries][DK], s[attention_queries][PAGE] = {{0}};
    _Alignas(64) float sum[attention_queries][DV] = {{0}};
    Seen seen[attention_queries];
    for (int t = 0; t < n * HEADS; t++) {
        const float *x = q + (size_t) (t / HEADS * H + h + t % HEADS) * DK;
        for (int d = 0; d < DK; d++) query[t][d] = x[d] * SCALE;
        seen[t] = (Seen){-__builtin_inff(), 0};
        seen[t] = (Seen){sinks[h + t % HEADS], 1}; //@ when SINKS
    }
    const int kv_head = h / (H / G);
    int first, last, end = 0;
    end = sees_end(m, seq); //@ when AHEAD
    attention_sees(pos[n - 1], end, &first, &last);
    int seen_from, seen_to;
    attention_sees(pos[0], end, &first, &seen_to);
    for (int page = first / PAGE * PAGE; page <= last; page += PAGE) {
        const uint8_t *at = state_page(m, GROUP, PAGE_BYTES, seq, page);
        const uint8_t *k = at + k_at + (size_t) kv_head * PAGE * DK * bytes_KV;
        const uint8_t *v = at + v_at + (size_t) kv_head * PAGE * V_ROW * bytes_KV;
        v += (size_t) V_FROM * bytes_KV; //@ when V_FROM
        const int from = first > page ? first - page : 0, to = last - page < PAGE ? last - page : PAGE - 1;
        FMT_scores(k, bytes_KV == 4, query[0], DK, n * HEADS, from, to, s);
        for (int t = 0; t < n * HEADS; t++) {
            attention_sees(pos[t / HEADS], end, &seen_from, &seen_to);
            int t_from = seen_from > page ? seen_from - page : 0,
                t_to = seen_to - page < PAGE ? seen_to - page : PAGE - 1;
            for (int j = 0; j < PAGE; j++) s[t][j] = SOFTCAP * tanh_f32(s[t][j] * (1 / SOFTCAP)); //@ when SOFTCAP
            const float slope = sees_slope(h + t % HEADS, H, ALIBI);                              //@ when ALIBI
            sees_distance(s[t], slope, pos[t / HEADS] - page);                                    //@ when ALIBI
            const float *bias = biases + h + t % HEADS;                                           //@ when BIASES
            const int row = pos[t / HEADS] - page;                                                //@ when BIASES
            sees_near(s[t], bias, H, attention_bounds, BIASES, EXACT, LATER, row);                //@ when BIASES
            const int32_t *list = picks + (size_t) (t / HEADS * SETS + kv_head % SETS) * PICKS;   //@ when PICKS
            sees_picked(list, PICKS, BLOCK, page, &t_from, &t_to, s[t]);                          //@ when PICKS
            const float factor = attend_softmax(s[t], t_from, t_to, &seen[t]);
            if (factor != 1)
                for (int d = 0; d < DV; d++) sum[t][d] *= factor;
        }
        attend_values(v, bytes_KV == 4, s, V_ROW, DV, n * HEADS, from, to, sum[0]);
    }
    for (int t = 0; t < n * HEADS; t++) {
        float *y = o + (size_t) (t / HEADS * H + h + t % HEADS) * DV;
        for (int d = 0; d < DV; d++) y[d] = sum[t][d] / seen[t].sum;
    }
}

static void attention(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q, float *restrict o,
    const int32_t *pos, const int32_t *seq, int rows, int piece /*@ args */) {
    const int groups = H / HEADS, h = piece % groups * HEADS;
    const int r0 = piece / groups * ROWS, r1 = r0 + ROWS < rows ? r0 + ROWS : rows;
    for (int r = r0, n; r < r1; r += n) {
        for (n = 1; n < attention_rows && r + n < r1 && seq[r + n] == seq[r];) n++;
        attention_some(
            m, k_at, v_at, q + (size_t) r * H * DK, o + (size_t) r * H * DV, pos + r, seq[r], n, h /*@ pass */);
    }
}
//@ end
