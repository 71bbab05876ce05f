// Checks every instance of attention against double precision, with two sequences in scattered pages, and that a row
// has the same bits however the batches were cut.
// In: instances[], printed by attention_tool. Out: a line for each failure, their count as exit status.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int h, g, dk, dv, window, heads, rows;
    float softcap;
    const char *kv;
    int page_bytes;
    void (*f)(const Model *m, uint64_t k_at, uint64_t v_at, const float *restrict q, float *restrict o,
        const int32_t *pos, const int32_t *seq, int rows, int piece);
    void (*put_k)(uint8_t *page, int64_t g, int64_t dk, int slot, const float *restrict k);
    void (*put_v)(uint8_t *page, int64_t g, int64_t dv, int slot, const float *restrict v);
} Instance;

extern const Instance instances[];
extern const int n_instances;

enum { T = 210, SEQS = 2, TABLE = (T + PAGE - 1) / PAGE };

static uint32_t seed = 7;
static uint32_t rnd(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static void fill(float *x, size_t n, float size) {
    for (size_t i = 0; i < n; i++) x[i] = ((float) (int) (rnd() % 20001) * 1e-4f - 1) * size;
}

static float *floats(size_t n) {
    return aligned_alloc(64, (n * sizeof(float) + 127) / 64 * 64);
}

typedef struct {
    const Instance *t;
    float *q, *k, *v; // [SEQS][T][..], the keys and values as the cache rounds them
    float *o, *first; // [SEQS][T][h][dv]
    Model m;
    uint32_t table[SEQS * TABLE];
} Case;

static void make_case(Case *c, const Instance *t) {
    const size_t rows = SEQS * T;
    c->t = t;
    c->q = floats(rows * (size_t) (t->h * t->dk));
    c->k = floats(rows * (size_t) (t->g * t->dk));
    c->v = floats(rows * (size_t) (t->g * t->dv));
    c->o = floats(rows * (size_t) (t->h * t->dv));
    c->first = floats(rows * (size_t) (t->h * t->dv));
    fill(c->q, rows * (size_t) (t->h * t->dk), 3);
    fill(c->k, rows * (size_t) (t->g * t->dk), 2);
    fill(c->v, rows * (size_t) (t->g * t->dv), 1);
    if (t->kv[1] == '1') {
        for (size_t i = 0; i < rows * (size_t) (t->g * t->dk); i++) c->k[i] = f16_to_f32(f32_to_f16(c->k[i]));
        for (size_t i = 0; i < rows * (size_t) (t->g * t->dv); i++) c->v[i] = f16_to_f32(f32_to_f16(c->v[i]));
    }
    c->m = (Model){.n_table = TABLE};
    c->m.table[1] = c->table;
    c->m.pool[1] = malloc((size_t) t->page_bytes * SEQS * TABLE);
    for (uint32_t i = 0; i < SEQS * TABLE; i++) c->table[i] = i * 5 % (SEQS * TABLE);
}

// One batch: some rows of sequence 0 from position p0 on, then some of sequence 1.
static void forward(Case *c, const int *p, const int *n) {
    const Instance *t = c->t;
    int32_t pos[SEQS * T], seq[SEQS * T];
    int rows = 0;
    const uint64_t v_at = (uint64_t) (64 * t->g * t->dk * (t->kv[1] == '1' ? 2 : 4)) + 64;
    float *q = floats((size_t) (SEQS * T * t->h * t->dk)), *o = floats((size_t) (SEQS * T * t->h * t->dv));
    for (int s = 0; s < SEQS; s++)
        for (int i = 0; i < n[s]; i++, rows++) {
            pos[rows] = p[s] + i, seq[rows] = s;
            const size_t at = (size_t) (s * T + p[s] + i);
            uint8_t *page = state_page(&c->m, 1, (uint64_t) t->page_bytes, s, pos[rows]);
            t->put_k(page + 64, t->g, t->dk, pos[rows] % PAGE, c->k + at * (size_t) (t->g * t->dk));
            t->put_v(page + v_at, t->g, t->dv, pos[rows] % PAGE, c->v + at * (size_t) (t->g * t->dv));
            memcpy(
                q + rows * t->h * t->dk, c->q + at * (size_t) (t->h * t->dk), (size_t) (t->h * t->dk) * sizeof(float));
        }
    const int pieces = t->h / t->heads * ((rows + t->rows - 1) / t->rows);
    for (int i = 0; i < pieces; i++) t->f(&c->m, 64, v_at, q, o, pos, seq, rows, i);
    for (int r = 0; r < rows; r++)
        memcpy(c->o + (size_t) ((seq[r] * T + pos[r]) * t->h * t->dv), o + r * t->h * t->dv,
            (size_t) (t->h * t->dv) * sizeof(float));
    free(q), free(o);
}

// All positions of both sequences, in random batches of up to `most` rows a sequence.
static void run(Case *c, int most) {
    memset(c->m.pool[1], 0xff, (size_t) c->t->page_bytes * SEQS * TABLE); // NaN: what is not written must not matter
    int p[SEQS] = {0}, n[SEQS];
    while (p[0] < T || p[1] < T) {
        for (int s = 0; s < SEQS; s++) {
            n[s] = 1 + (int) (rnd() % (unsigned) most);
            if (most > 1 && rnd() % 4 == 0) n[s] = 0;
            if (most == T || n[s] > T - p[s]) n[s] = T - p[s];
        }
        forward(c, p, n);
        for (int s = 0; s < SEQS; s++) p[s] += n[s];
    }
}

static double expected(const Case *c, int s, int i, int h, double *o) {
    const Instance *t = c->t;
    const int kvh = h / (t->h / t->g), first = t->window && i >= t->window ? i - t->window + 1 : 0;
    const float *q = c->q + (size_t) (((s * T + i) * t->h + h) * t->dk);
    double p[T], top = -1e300, sum = 0;
    for (int j = first; j <= i; j++) {
        const float *k = c->k + (size_t) (((s * T + j) * t->g + kvh) * t->dk);
        p[j] = 0;
        for (int d = 0; d < t->dk; d++) p[j] += (double) q[d] * k[d] * 0.25;
        if (t->softcap != 0) p[j] = t->softcap * tanh(p[j] / t->softcap);
        if (p[j] > top) top = p[j];
    }
    for (int d = 0; d < t->dv; d++) o[d] = 0;
    for (int j = first; j <= i; j++) {
        const double e = exp(p[j] - top);
        sum += e;
        for (int d = 0; d < t->dv; d++) o[d] += e * c->v[(size_t) (((s * T + j) * t->g + kvh) * t->dv + d)];
    }
    for (int d = 0; d < t->dv; d++) o[d] /= sum;
    return top;
}

static int check_values(const Case *c) {
    const Instance *t = c->t;
    double worst = 0, o[512];
    for (int s = 0; s < SEQS; s++)
        for (int i = 0; i < T; i++)
            for (int h = 0; h < t->h; h++) {
                const double top = fabs(expected(c, s, i, h, o)) + 1;
                for (int d = 0; d < t->dv; d++) {
                    const double e = fabs(c->o[(size_t) (((s * T + i) * t->h + h) * t->dv + d)] - o[d]) / top;
                    if (!(e <= worst)) worst = e;
                }
            }
    if (worst < 2e-6) return 0; // values are at most 1; scores carry their own rounding into the exponent
    printf("attention %d heads of %d, window %d: error %g\n", t->h, t->dk, t->window, worst);
    return 1;
}

int main(void) {
    int failures = 0;
    for (int i = 0; i < n_instances; i++) {
        const Instance *t = &instances[i];
        const size_t bytes = (size_t) (SEQS * T * t->h * t->dv) * sizeof(float);
        Case c;
        make_case(&c, t);
        const int most[] = {T, 1, 2, 7, 40, 100};
        for (int j = 0; j < 6; j++) {
            run(&c, most[j]);
            if (j == 0) {
                failures += check_values(&c);
                memcpy(c.first, c.o, bytes);
            } else if (memcmp(c.first, c.o, bytes)) {
                failures++;
                printf("attention %d heads of %d, window %d: other bits in batches of up to %d rows\n", t->h, t->dk,
                    t->window, most[j]);
            }
        }
        free(c.q), free(c.k), free(c.v), free(c.o), free(c.first), free(c.m.pool[1]);
    }
    printf("attention: %d instances, %d failures\n", n_instances, failures);
    return failures != 0 || n_instances == 0;
}
