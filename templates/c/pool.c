// One value for the sequence of each wanted row: the mean of its rows (HOW 0), its first (1) or its last (2). In: x
// [rows][SIZE]. Out:
// [outs][SIZE]. All rows of a sequence are in the batch, next to each other. A piece is one wanted row.
//
//@ template pool
//@ param SIZE 64
//@ param HOW 0
#include "../../runtime/model.h"
#include <string.h>

enum { SIZE = 64, HOW = 0 };
//@ begin
static void pool(const Model *m, const float *restrict x, float *restrict y, int piece) {
    int first = m->out[piece], last = first;
    while (first > 0 && m->seq[first - 1] == m->seq[last]) first--;
    while (last + 1 < m->rows && m->seq[last + 1] == m->seq[first]) last++;
    float *restrict o = y + (size_t) piece * SIZE;
    if (HOW) {
        memcpy(o, x + (size_t) (HOW == 1 ? first : last) * SIZE, SIZE * sizeof(float));
        return;
    }
    for (int i = 0; i < SIZE; i++) o[i] = 0;
    for (int r = first; r <= last; r++)
        for (int i = 0; i < SIZE; i++) o[i] += x[(size_t) r * SIZE + i];
    const float scale = 1.0f / (float) (last - first + 1);
    for (int i = 0; i < SIZE; i++) o[i] *= scale;
}
//@ end
