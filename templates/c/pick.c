// The best positions, or blocks of positions, for each row: of what it sees, the TOP with the largest scores, larger
// first, the lower one of equals; -1 where there are fewer. In: queries [rows][H][D], keys in pages (rows of D:
// latent.h), WEIGHTED: weights [rows][H]. Out: [rows][SETS][TOP].
// WEIGHTED: a position's score is the sum over heads of weight times max(query . key, 0), in order of heads; one set.
// Else each head of the query has a set: a block's score is its largest query . key, and the last LOCAL blocks always
// come first.
// A key may be a record of EVERY positions, which is there from the last of them on; REST: behind the best comes the
// record that is not there yet, if it has begun. A piece is one row and one set.
//
//@ template pick
//@ param H 4
//@ param G 1
//@ param D 16
//@ param SETS 1
//@ param TOP 8
//@ param BLOCK 1
//@ param LOCAL 0
//@ param WEIGHTED 1
//@ param MOST 256
//@ param EVERY 1
//@ param REST 0
//@ param WINDOW 0
//@ param CHUNK 0
//@ param GROUP 0
//@ param PAGE_BYTES 49152
//@ param KV f16
//@ needs latent.h
#include "../../runtime/model.h"
#include <string.h>

#include "half.h"

#include "simd.h"

#include "math.h"

#include "row.h"

#include "attend.h"

#include "latent.h"

enum {
    H = 4,
    G = 1,
    D = 16,
    SETS = 1,
    TOP = 8,
    BLOCK = 1,
    LOCAL = 1,
    WEIGHTED = 1,
    MOST = 256,
    EVERY = 4,
    REST = 1,
    WINDOW = 8,
    CHUNK = 8,
    GROUP = 0,
    PAGE_BYTES = 49152
};
#define bytes_KV bytes_f16
//@ begin
// Scores of the page's positions, added to or compared with what the blocks have.
static void pick_page(const uint8_t *restrict k, const float *restrict q, const float *restrict weight, int page,
    int from, int to, float *restrict score) {
    _Alignas(64) float s[WEIGHTED ? H : 1][PAGE];
    const int heads = WEIGHTED ? H : 1;
    if (WEIGHTED && G > 1)
        for (int g = 0; g < G; g++)
            latent_scores(k + (size_t) g * PAGE * D * bytes_KV, bytes_KV == 4, q + g * (H / G) * D, D, H / G, from, to,
                s + g * (H / G));
    else latent_scores(k, bytes_KV == 4, q, D, heads, from, to, s);
    for (int j = from; j <= to; j++) {
        float sum = 0, best = -__builtin_inff();
        for (int h = 0; h < heads; h++) {
            if (WEIGHTED) sum += weight[h] * max_f32(s[h][j], 0);
            best = max_f32(best, s[h][j]);
        }
        float *to_block = &score[(page + j) / BLOCK];
        *to_block = WEIGHTED ? sum : max_f32(*to_block, best);
    }
}

// Is a before b among candidates?
static inline int pick_before(const float *restrict score, int a, int b) {
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

// The first TOP of count candidates in order: a heap whose root is the last of those kept, then emptied from behind.
static void pick_best(const float *restrict score, int count, int32_t *restrict list) {
    int n = 0;
    for (int c = 0; c < count; c++) {
        if (!(score[c] > -__builtin_inff()) || (n == TOP && !pick_before(score, c, list[0]))) continue;
        int i = n < TOP ? n++ : 0;
        list[i] = c;
        for (; i > 0 && pick_before(score, list[(i - 1) / 2], list[i]); i = (i - 1) / 2) {
            const int32_t up = list[i];
            list[i] = list[(i - 1) / 2], list[(i - 1) / 2] = up;
        }
        for (int child; n == TOP && (child = 2 * i + 1) < n; i = child) {
            if (child + 1 < n && pick_before(score, list[child], list[child + 1])) child++;
            if (!pick_before(score, list[i], list[child])) break;
            const int32_t down = list[i];
            list[i] = list[child], list[child] = down;
        }
    }
    for (int i = n; i < TOP; i++) list[i] = -1;
    for (int left = n - 1; left > 0; left--) {
        const int32_t last = list[left];
        list[left] = list[0], list[0] = last;
        for (int i = 0, child; (child = 2 * i + 1) < left; i = child) {
            if (child + 1 < left && pick_before(score, list[child], list[child + 1])) child++;
            if (!pick_before(score, list[i], list[child])) break;
            const int32_t down = list[i];
            list[i] = list[child], list[child] = down;
        }
    }
}

static void pick(const Model *m, uint64_t at, const float *restrict q, const float *restrict weights,
    int32_t *restrict o, const int32_t *pos, const int32_t *seq, int rows, int piece) {
    const int r = piece / SETS, set = piece % SETS, p = pos[r];
    float score[MOST];
    int first = 0, last = p;
    last = (p + 1) / EVERY - 1;              //@ when EVERY
    if (p >= WINDOW) first = p - WINDOW + 1; //@ when WINDOW
    first = p / CHUNK * CHUNK;               //@ when CHUNK
    const int count = last / BLOCK + 1;
    for (int i = 0; i < count; i++) score[i] = -__builtin_inff();
    for (int page = first / PAGE * PAGE; page <= last; page += PAGE) {
        const uint8_t *k =
            state_page(m, GROUP, PAGE_BYTES, seq[r], page) + at +
            (size_t) (WEIGHTED ? 0 : set / (H / G)) * PAGE * D * bytes_KV;
        pick_page(k, q + ((size_t) r * H + (size_t) (WEIGHTED ? 0 : set)) * D, weights + (size_t) r * H, page,
            first > page ? first - page : 0, last - page < PAGE ? last - page : PAGE - 1, score);
    }
    for (int i = count > LOCAL ? count - LOCAL : 0; i < count; i++) score[i] = __builtin_inff();
    int32_t *list = o + (size_t) piece * (TOP + REST);
    pick_best(score, count, list);
    list[TOP] = (p + 1) % EVERY ? last + 1 : -1; //@ when REST
    (void) rows, (void) weights;
}
//@ end
