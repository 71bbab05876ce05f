// Arithmetic of the templates against the C library in double precision, rows of every length, and the quantiser of
// activations against its definition. Compiled once for each instruction set: -iquote names the folders of the
// templates.
#include "isa.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "half.h"

#include "simd.h"

#include "math.h"

#include "row.h"

#include "q8.h"

#include "norm.h"

static int failures;

static void fail(const char *what, double x, double got, double wanted) {
    if (failures++ < 20) printf("%s: at %a got %.9g, expected %.9g\n", what, x, got, wanted);
}

// Distance in units of the last place of the true value.
static double ulps(double got, double wanted) {
    if (isnan(wanted)) return isnan(got) ? 0 : 1e9;
    if (isinf(wanted) || fabs(wanted) > 3.40282356e38) return isinf(got) && (got > 0) == (wanted > 0) ? 0 : 1e9;
    return fabs(got - wanted) / (fabs(wanted) < 0x1p-126 ? 0x1p-149 : ldexp(1, ilogb(wanted) - 23));
}

static void check_functions(void) {
    for (uint64_t u = 0; u < 0x100000000; u += 7919) {
        const float x = float_of_bits((uint32_t) u);
        if (ulps(exp_f32(x), exp(x)) > 2) fail("exp", x, exp_f32(x), exp(x));
        if (ulps(log_f32(x), log(x)) > 2) fail("log", x, log_f32(x), log(x));
        if (isnan(x) ? !isnan(tanh_f32(x)) : fabs(tanh_f32(x) - tanh(x)) > 1e-6 * fabs(tanh(x)) + 1e-37)
            fail("tanh", x, tanh_f32(x), tanh(x));
        if (isnan(x) ? !isnan(erf_f32(x)) : fabs(erf_f32(x) - erf(x)) > 1e-6 * fabs(erf(x)) + 1e-37)
            fail("erf", x, erf_f32(x), erf(x));
    }
    if (exp_f32(-INFINITY) != 0 || log_f32(0) != -INFINITY || !isnan(log_f32(-1)) || log_f32(1) != 0)
        fail("limits", 0, 0, 0);
}

static void check_half(void) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint32_t e = h >> 10 & 31, m = h & 1023;
        double v = e == 0 ? ldexp(m, -24) : e == 31 ? (m ? NAN : INFINITY) : ldexp(1024 + m, (int) e - 25);
        if (h & 0x8000) v = -v;
        const float f = f16_to_f32((uint16_t) h);
        if (isnan(v) ? !isnan(f) : f != (float) v) fail("f16_to_f32", h, f, v);
        if (!isnan(v) && f32_to_f16(f) != h) fail("f32_to_f16", f, f32_to_f16(f), h);
        if (isnan(v) || e == 31) continue;
        // Halfway to the next value: to the even one; a little off: to the nearer one.
        const double next = h == 0x7bff ? 65536
            : h == 0xfbff               ? -65536
                                        : f16_to_f32((uint16_t) (h + 1)),
                     half = (v + next) / 2;
        if (f32_to_f16((float) half) != (h & 1 ? h + 1 : h))
            fail("f32_to_f16 halfway", half, f32_to_f16((float) half), h);
        if (f32_to_f16(nextafterf((float) half, (float) next)) != h + 1) fail("f32_to_f16 above", half, 0, h + 1);
        if (f32_to_f16(nextafterf((float) half, (float) v)) != h) fail("f32_to_f16 below", half, 0, h);
    }
}

static float row[600], other[600];

static void check_rows(void) {
    for (int n = 1; n <= 600; n = n < 100 ? n + 1 : n + 83) {
        double sum = 0, squares = 0, dot = 0, top = -INFINITY, size = 0;
        for (int i = 0; i < n; i++) {
            row[i] = (float) (rand() % 2001 - 1000) * 1e-3f;
            other[i] = (float) (rand() % 2001 - 1000) * 1e-3f;
            sum += row[i], squares += (double) row[i] * row[i], dot += (double) row[i] * other[i], size += fabs(row[i]);
            if (row[i] > top) top = row[i];
        }
        if (fabs(row_sum(row, n) - sum) > 1e-6 * size) fail("row_sum", n, row_sum(row, n), sum);
        if (fabs(row_sum_sq(row, n) - squares) > 1e-6 * size) fail("row_sum_sq", n, row_sum_sq(row, n), squares);
        if (fabs(row_dot(row, other, n) - dot) > 1e-6 * size) fail("row_dot", n, row_dot(row, other, n), dot);
        if (row_max(row, n) != (float) top) fail("row_max", n, row_max(row, n), top);
        double spread = 0, all = 0, worst = 0;
        for (int i = 0; i < n; i++) spread += (row[i] - 0.25) * (row[i] - 0.25), all += exp(row[i]);
        if (fabs(row_sum_sq_from(row, 0.25f, n) - spread) > 1e-6 * (spread + 1)) fail("row_sum_sq_from", n, 0, spread);
        float p[600];
        row_softmax(row, p, n);
        for (int i = 0; i < n; i++) worst = fmax(worst, fabs(p[i] - exp(row[i]) / all));
        if (worst > 1e-6) fail("row_softmax", n, worst, 0);
    }
}

static void check_q8(void) {
    enum { K = 544 };
    _Alignas(64) static uint8_t q[K * 2];
    if (q8_bytes(K) != (K + K / 8 * 3 + 63) / 64 * 64) fail("q8_bytes", K, (double) q8_bytes(K), 0);
    for (int round = 0; round < 200; round++) {
        float x[K];
        for (int i = 0; i < K; i++) x[i] = (float) (rand() % 2001 - 1000) * ldexpf(1e-3f, round / 4 % 40 - 20);
        for (int i = 32; i < 64; i++) x[i] = 0;
        for (int i = 64; i < 96; i++) x[i] = (float) (i - 80); // halves: to even
        x[64] = 127 * 0.5f, x[65] = 127;
        quantize_q8(x, q, K);
        for (int b = 0; b < K / 32; b++) {
            float top = 0, d, ds;
            for (int i = 0; i < 32; i++) top = fabsf(x[32 * b + i]) > top ? fabsf(x[32 * b + i]) : top;
            memcpy(&d, q + K + 4 * b, 4);
            memcpy(&ds, q + K + K / 8 + 4 * b, 4);
            int sum[2] = {0, 0};
            for (int i = 0; i < 32; i++) {
                const int v = (int8_t) q[32 * b + i];
                const int wanted = top > 0 ? (int) rint((double) (x[32 * b + i] * (127.0f / top))) : 0;
                if (v != wanted) fail("q8", x[32 * b + i], v, wanted);
                sum[i / 16] += v;
            }
            int16_t s[2];
            memcpy(s, q + K + K / 4 + 4 * b, 4);
            if (d != top / 127.0f) fail("q8 scale", top, d, top / 127.0f);
            if (s[0] != sum[0] || s[1] != sum[1]) fail("q8 sums", b, s[0] + s[1], sum[0] + sum[1]);
            if (ds != d * (float) (sum[0] + sum[1])) fail("q8 d sum", b, ds, d * (float) (sum[0] + sum[1]));
        }
    }
}

int main(void) {
    check_functions();
    check_half();
    check_rows();
    check_q8();
    printf("arithmetic: %d failures\n", failures);
    return failures != 0;
}
