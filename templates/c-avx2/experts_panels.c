// Products of a stack on packed panels: each part of a row meets the product that its id names (experts), or the one of
// its own
// number (EACH). c/experts.c is the same on the file's rows. In: the stack's panels, product after product, q8 inputs,
// ids
// [rows][TOP]. Out: sixteen outputs of a part at a time to `store`. The inputs of the parts that meet a product are
// gathered,
// so that a panel is unpacked once for many.
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
//@ param MOST 24
//@ param X_BYTES 128
//@ param FMT q4_1
//@ slot store
//@ args args
//@ needs q8.h panel.c FMT.layout
#include "panel.c"

#include "q8.h"

enum { K = 64, N = 40, S = 1, E = 8, TOP = 2, OWN = 0, EACH = 0, PANELS = 2, MOST = 24, X_BYTES = 128 };
#define FMT_panel panel
#define FMT_panel_bytes q4_1_panel_bytes
static float y[64 * TOP * N];
//@ begin
// The parts (row * TOP + number) that meet product `which`, from *at on: at most MOST of them at once.
static int experts_meet(const int32_t *restrict ids, int parts, int which, int *restrict at, int *restrict list) {
    const int from = which ? which : INT32_MIN, to = which < E - 1 ? which : INT32_MAX; // ids outside: the nearest
    int met = 0;
    for (; *at < parts && met < MOST; ++*at)
        if (EACH ? *at % TOP == which : ids[*at] >= from && ids[*at] <= to) list[met++] = *at;
    return met;
}

static void experts(const uint8_t *restrict w, const uint8_t *restrict x, const int32_t *restrict ids, int rows,
    int piece /*@ args */) {
    const int panel_count = (N + 15) / 16, groups = (panel_count + PANELS - 1) / PANELS, parts = rows * TOP;
    const int p0 = piece % groups * PANELS, p1 = p0 + PANELS < panel_count ? p0 + PANELS : panel_count;
    const size_t panel_bytes = FMT_panel_bytes(K);
    int which = piece / groups, list[MOST], met;
    if (!EACH && parts < E) { // few parts: pieces are theirs; the first of those that meet one product works for all
        const int part = which;
        which = ids[part] < 0 ? 0 : ids[part] < E ? ids[part] : E - 1;
        int before = 0, first[MOST];
        if (experts_meet(ids, part, which, &before, first)) return;
    }
    if (which >= E) return;
    const uint8_t *product = w + (size_t) which * S * panel_count * panel_bytes;
    _Alignas(64) float v[S][MOST][16];
    _Alignas(64) uint8_t together[MOST * X_BYTES];
    for (int at = 0; (met = experts_meet(ids, parts, which, &at, list)) > 0;) {
        const uint8_t *xs = x + (size_t) (OWN ? list[0] : list[0] / TOP) * X_BYTES;
        if (met > 1) {
            for (int t = 0; t < met; t++)
                memcpy(together + t * X_BYTES, x + (size_t) (OWN ? list[t] : list[t] / TOP) * X_BYTES, X_BYTES);
            xs = together;
        }
        for (int p = p0; p < p1; p++) {
            const int n = p * 16, m = N % 16 && p == panel_count - 1 ? N % 16 : 16;
            for (int s = 0; s < S; s++)
                FMT_panel(product + (size_t) (p * S + s) * panel_bytes, K, xs, X_BYTES, met, v[s]);
            for (int t = 0; t < met; t++) {
                const int r = list[t], e = r % TOP;
                const float *restrict v0 = v[0][t]; //@ strand
                (void) e;
                for (int i = 0; i < m; i++) y[(size_t) r * N + (size_t) (n + i)] = v0[i]; //@ store
            }
        }
    }
}
//@ end
