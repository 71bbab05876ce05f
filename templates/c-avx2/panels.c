// Matrix product on packed panels; panel.c is what differs from one instruction set to the next.
// In: panels of 16 rows of weights, [rows] q8 activations. Out: sixteen outputs of a row at a time to `store`.
// The panels of strands alternate: panel p of strand s is number p * S + s. The last one of a strand is filled up
// with zeros.
//
//@ template panels
//@ param K 576
//@ param N 200
//@ param S 1
//@ param PANELS 4
//@ param ROWS 64
//@ param FMT q4_1
//@ slot store
//@ args args
//@ needs q8.h panel.c FMT.layout
#include "panel.c"

#include "q8.h"

enum { K = 576, N = 200, S = 1, PANELS = 4, ROWS = 64 };
#define FMT_panel panel
#define FMT_panel_bytes q4_1_panel_bytes
static float y[ROWS * N];
//@ begin
static void panels(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece /*@ args */) {
    const int panel_count = (N + 15) / 16, groups = (panel_count + PANELS - 1) / PANELS;
    const int p0 = piece % groups * PANELS, p1 = p0 + PANELS < panel_count ? p0 + PANELS : panel_count;
    const int r0 = piece / groups * ROWS, r1 = r0 + ROWS < rows ? r0 + ROWS : rows;
    const size_t panel_bytes = FMT_panel_bytes(K), x_bytes = q8_bytes(K);
    _Alignas(64) float v[S][ROWS][16];
    for (int p = p0; p < p1; p++) {
        const int n = p * 16, m = N % 16 && p == panel_count - 1 ? N % 16 : 16;
        for (int s = 0; s < S; s++)
            FMT_panel(w + (size_t) (p * S + s) * panel_bytes, K, x + (size_t) r0 * x_bytes, x_bytes, r1 - r0, v[s]);
        for (int r = r0; r < r1; r++) {
            const float *restrict v0 = v[0][r - r0];                                  //@ strand
            for (int i = 0; i < m; i++) y[(size_t) r * N + (size_t) (n + i)] = v0[i]; //@ store
        }
    }
}
//@ end
