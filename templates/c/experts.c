// Products of a stack, on the file's own rows, for every format and any machine: each part of a row meets the product
// that its
// id names (experts), or the one of its own number (EACH). In: the stack, inputs of f32, ids [rows][TOP]. Out: sixteen
// outputs of a part at a time to `store`. A piece is some panels of one product, for all the parts that meet it, so
// that a
// weight is read once for a batch. A part has the same bits whoever else is there.
//
//@ template experts
//@ param K 64
//@ param N 40
//@ param S 1
//@ param E 8
//@ param TOP 2
//@ param OWN 0
//@ param EACH 0
//@ param PANELS 2
//@ param FMT f32
//@ param IN_PLACE 1
//@ slot store
//@ args args
//@ needs half.h dot.h FMT.decode
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "half.h"

#include "simd.h"

#include "dot.h"

#include "../format/f32.c"

enum { K = 64, N = 40, S = 1, E = 8, TOP = 2, OWN = 0, EACH = 0, PANELS = 2 };
#define FMT_row f32_row
#define FMT_block f32_block
#define FMT_bytes f32_bytes
static float y[64 * TOP * N];
//@ begin
enum { experts_most = 64 };

// The parts (row * TOP + number) that meet product `which`, from *at on: at most experts_most of them at once.
static int experts_meet(const int32_t *restrict ids, int parts, int which, int *restrict at, int *restrict list) {
    const int from = which ? which : INT32_MIN, to = which < E - 1 ? which : INT32_MAX; // ids outside: the nearest
    int met = 0;
    for (; *at < parts && met < experts_most; ++*at)
        if (EACH ? *at % TOP == which : ids[*at] >= from && ids[*at] <= to) list[met++] = *at;
    return met;
}

static void experts(
    const uint8_t *restrict w, const float *restrict x, const int32_t *restrict ids, int rows, int piece /*@ args */) {
    const int panel_count = (N + 15) / 16, groups = (panel_count + PANELS - 1) / PANELS, parts = rows * TOP;
    const int p0 = piece % groups * PANELS, p1 = p0 + PANELS < panel_count ? p0 + PANELS : panel_count;
    const size_t row_bytes = (size_t) K / FMT_block * FMT_bytes;
    int which = piece / groups, list[experts_most], met;
    if (!EACH && parts < E) { // few parts: pieces are theirs; the first of those that meet one product works for all
        const int part = which;
        which = ids[part] < 0 ? 0 : ids[part] < E ? ids[part] : E - 1;
        int before = 0, first[experts_most];
        if (experts_meet(ids, part, which, &before, first)) return;
    }
    if (which >= E) return;
    const uint8_t *product = w + (size_t) which * S * N * row_bytes;
    _Alignas(64) float v[S][experts_most][16];
    _Alignas(64) float four[4 * K]; //@ when !IN_PLACE
    for (int at = 0; (met = experts_meet(ids, parts, which, &at, list)) > 0;)
        for (int p = p0; p < p1; p++) {
            const int n = p * 16, m = N % 16 && p == panel_count - 1 ? N % 16 : 16;
            for (int s = 0; s < S; s++)
                for (int i = 0; i < m; i += 4) {
                    const int outs = m - i < 4 ? m - i : 4;
                    const uint8_t *from = product + (size_t) (n * S + s * m + i) * row_bytes;
                    for (int o = 0; o < outs; o++) FMT_row(from + o * row_bytes, four + o * K, K); //@ when !IN_PLACE
                    for (int t = 0; t < met; t++) {
                        const float *xt = x + (size_t) (OWN ? list[t] : list[t] / TOP) * K;
                        dot_rows(four, xt, K, outs, 1, (float(*)[16]) & v[s][t][i]); //@ when !IN_PLACE
                        dot_rows((const float *) from, xt, K, outs, 1, (float(*)[16]) & v[s][t][i]); //@ when IN_PLACE
                    }
                }
            for (int t = 0; t < met; t++) {
                const int r = list[t], e = r % TOP;
                const float *restrict v0 = v[0][t]; //@ strand
                (void) e;
                for (int i = 0; i < m; i++) y[(size_t) r * N + (size_t) (n + i)] = v0[i]; //@ store
            }
        }
}
//@ end
