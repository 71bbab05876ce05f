// The last KEPT values of each sequence, and this row's: a window that moves with the rows. In: x [rows][SIZE], the
// state [KEPT][SIZE] of
// each sequence, oldest first. Out: [rows][KEPT + 1][SIZE], oldest first; the state goes on. A piece is WIDE numbers of
// all rows.
//
//@ template shift
//@ param SIZE 64
//@ param KEPT 3
//@ param WIDE 16
//@ param FIXED_BYTES 1024
#include "../../runtime/model.h"
#include <string.h>

enum { SIZE = 64, KEPT = 3, WIDE = 16, FIXED_BYTES = 1024 };
//@ begin
static void shift(const Model *m, uint64_t at, const float *restrict x, float *restrict y, int piece) {
    const int from = piece * WIDE, wide = SIZE - from < WIDE ? SIZE - from : WIDE;
    const size_t bytes = (size_t) wide * sizeof(float);
    for (int r = 0; r < m->rows; r++) {
        float *restrict state = (float *) (m->fixed + (size_t) m->seq[r] * FIXED_BYTES + at) + from;
        float *restrict out = y + (size_t) r * ((KEPT + 1) * SIZE) + from;
        for (int t = 0; t < KEPT; t++) memcpy(out + t * SIZE, state + t * SIZE, bytes);
        memcpy(out + KEPT * SIZE, x + (size_t) r * SIZE + from, bytes);
        for (int t = 0; t < KEPT; t++) memcpy(state + t * SIZE, out + (t + 1) * SIZE, bytes);
    }
}
//@ end
