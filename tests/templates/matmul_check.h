// Checks every instance of a matrix product against double precision, and against itself: one row, many rows, any
// piece.
// In: instances[], printed by matmul_tool. Out: a line for each failure, their count as exit status.
#include "format.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    const char *format;
    int packed, k, n, s, panels, rows;
    void (*f)(const uint8_t *restrict w, const uint8_t *restrict x, int rows, int piece, float *restrict y);
} Instance;

extern const Instance instances[];
extern const int n_instances;

enum { MAX_ROWS = 70 };

static uint32_t seed = 1;
static uint32_t rnd(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static const Format *format_named(const char *name) {
    for (int i = 0; i < n_formats; i++)
        if (!strcmp(formats[i].name, name)) return &formats[i];
    return NULL;
}

// Random blocks with scales of moderate size; some rows have the extreme integers everywhere.
static void fill_row(const Format *f, uint8_t *p, int k, int row) {
    static const struct {
        const char *name;
        int at[2];
    } half[] = {{"q2_k", {80, 82}}, {"q3_k", {108, -1}}, {"q6_k", {208, -1}}, {"q4_1", {0, 2}}, {"q5_1", {0, 2}},
        {"q4_k", {0, 2}}, {"q5_k", {0, 2}}};
    const int fixed[] = {-1, 0xff, 0x00, 0x80, -1, 0x81, 0x7f, -1};
    for (int b = 0; b < k / f->block; b++, p += f->bytes) {
        for (int i = 0; i < f->bytes; i++) p[i] = (uint8_t) (fixed[row % 8] >= 0 ? fixed[row % 8] : (int) rnd());
        if (!strcmp(f->name, "f32")) {
            float v = (float) (int) (rnd() % 2001) * 1e-3f - 1;
            memcpy(p, &v, 4);
            continue;
        }
        if (!strcmp(f->name, "mxfp4")) {
            p[0] = (uint8_t) (121 + rnd() % 7);
            continue;
        }
        int at[2] = {0, -1};
        for (int i = 0; i < COUNT(half); i++)
            if (!strcmp(half[i].name, f->name)) at[0] = half[i].at[0], at[1] = half[i].at[1];
        for (int i = 0; i < 2; i++) {
            if (at[i] < 0) continue;
            uint16_t h = (uint16_t) ((rnd() & 0x83ff) | (8 + rnd() % 7) << 10);
            if (!strcmp(f->name, "bf16")) h = (uint16_t) ((rnd() & 0x807f) | (120 + rnd() % 7) << 7);
            memcpy(p + at[i], &h, 2);
        }
    }
}

static void fill_x(float *x, int k, int row) {
    for (int i = 0; i < k; i++) {
        float v = (float) (int) (rnd() % 20001) * 1e-4f - 1;
        x[i] = row % 9 == 4 ? 1.0f : row % 9 == 5 ? -1.0f : row % 9 == 6 ? 0 : v * (float) (1 + row % 3);
    }
}

typedef struct {
    const Instance *t;
    const Format *f;
    uint8_t *raw, *w, *x; // weights of the file, weights and activations as the instance wants them
    size_t x_bytes;
    float *wf, *xf; // the same as floats
    float *y, *y1;
} Case;

static uint8_t *aligned(size_t n) {
    return aligned_alloc(64, (n + 127) / 64 * 64);
}

// Lays the strands out as the templates want them.
static void place_weights(Case *c) {
    const Instance *t = c->t;
    const size_t row_bytes = (size_t) (t->k / c->f->block * c->f->bytes);
    uint8_t *to = c->w;
    for (int p = 0; p < (t->n + 15) / 16; p++)
        for (int s = 0; s < t->s; s++) {
            const uint8_t *row[16];
            for (int i = 0; i < 16; i++) {
                int n = p * 16 + i;
                row[i] = n < t->n ? c->raw + (size_t) (s * t->n + n) * row_bytes : NULL;
                if (!t->packed && row[i]) memcpy(to, row[i], row_bytes), to += row_bytes;
            }
            if (t->packed) c->f->pack(row, t->k, to), to += c->f->panel_bytes(t->k);
        }
}

static void make_case(Case *c, const Instance *t) {
    c->t = t;
    c->f = format_named(t->format);
    const int n = t->n * t->s;
    const size_t row_bytes = (size_t) (t->k / c->f->block * c->f->bytes);
    c->raw = aligned((size_t) n * row_bytes);
    c->w = aligned((size_t) ((t->n + 15) / 16 * 16 * t->s) * (row_bytes + 64));
    c->wf = malloc((size_t) n * (size_t) t->k * sizeof(float));
    for (int i = 0; i < n; i++) {
        fill_row(c->f, c->raw + (size_t) i * row_bytes, t->k, i);
        c->f->dequant(c->raw + (size_t) i * row_bytes, c->wf + (size_t) i * (size_t) t->k, t->k);
    }
    place_weights(c);
    c->x_bytes = t->packed ? q8_bytes(t->k) : (size_t) t->k * sizeof(float);
    c->x = aligned(c->x_bytes * MAX_ROWS);
    c->xf = malloc((size_t) t->k * MAX_ROWS * sizeof(float));
    for (int r = 0; r < MAX_ROWS; r++) {
        float *x = c->xf + (size_t) r * (size_t) t->k;
        uint8_t *to = c->x + (size_t) r * c->x_bytes;
        fill_x(x, t->k, r);
        if (!t->packed) memcpy(to, x, (size_t) t->k * sizeof(float));
        else {
            quantize_q8(x, to, t->k);
            const float *d = (const float *) (to + t->k);
            for (int i = 0; i < t->k; i++) x[i] = d[i / 32] * (float) (int8_t) to[i];
        }
    }
    c->y = malloc((size_t) n * MAX_ROWS * sizeof(float));
    c->y1 = malloc((size_t) n * MAX_ROWS * sizeof(float));
}

static void run(const Case *c, int first, int rows, float *y) {
    const Instance *t = c->t;
    const int groups = ((t->n + 15) / 16 + t->panels - 1) / t->panels,
              pieces = groups * ((rows + t->rows - 1) / t->rows);
    for (int p = pieces - 1; p >= 0; p--) t->f(c->w, c->x + (size_t) first * c->x_bytes, rows, p, y);
}

static int check_values(const Case *c, int rows) {
    const Instance *t = c->t;
    double worst = 0;
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < t->n * t->s; i++) {
            double sum = 0, size = 1e-30;
            const float *w = c->wf + (size_t) i * (size_t) t->k, *x = c->xf + (size_t) r * (size_t) t->k;
            for (int k = 0; k < t->k; k++) {
                sum += (double) w[k] * x[k];
                size += fabs((double) w[k] * x[k]);
            }
            double e = fabs(c->y[(size_t) r * (size_t) (t->n * t->s) + (size_t) i] - sum) / size;
            if (!(e <= worst)) worst = e;
        }
    // Equal terms round all the same way: half a unit for each term of a lane's sum.
    if (worst < 6e-8 * (8 + t->k / 8)) return 0;
    printf("%s %s K %d N %d S %d: error %g of the sum of magnitudes with %d rows\n", t->format,
        t->packed ? "panels" : "rows", t->k, t->n, t->s, worst, rows);
    return 1;
}

static int check_same(const Case *c, const float *all, int first, int rows) {
    const size_t n = (size_t) (c->t->n * c->t->s);
    run(c, first, rows, c->y1);
    if (!memcmp(c->y1, all + (size_t) first * n, (size_t) rows * n * sizeof(float))) return 0;
    printf("%s %s K %d N %d S %d: %d rows from %d have other bits than %d rows\n", c->t->format,
        c->t->packed ? "panels" : "rows", c->t->k, c->t->n, c->t->s, rows, first, MAX_ROWS);
    return 1;
}

int main(void) {
    int failures = 0;
    for (int i = 0; i < n_instances; i++) {
        Case c;
        make_case(&c, &instances[i]);
        run(&c, 0, MAX_ROWS, c.y);
        failures += check_values(&c, MAX_ROWS);
        const int counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 33, 64};
        for (int j = 0; j < COUNT(counts); j++) failures += check_same(&c, c.y, j % 5, counts[j]);
        free(c.raw), free(c.w), free(c.x), free(c.wf), free(c.xf), free(c.y), free(c.y1);
    }
    printf("matmul: %d instances, %d failures\n", n_instances, failures);
    return failures != 0 || n_instances == 0;
}
