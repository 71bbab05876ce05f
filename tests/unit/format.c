// Formats: unpacking against the golden of the Python package gguf, and packing: unpacked panels equal unpacked rows.
#include "format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 512 };

static const struct {
    const char *name;
    uint64_t digest;
    int block;
    float at[3]; // elements 0, 7 and 30 of the block
} golden[] = {
#include "format_golden.h"
};

static int failures;

static uint32_t bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return isnan(f) ? 0x7fc00000 : u;
}

static uint8_t *random_blocks(uint32_t seed, int n, int size) {
    static const uint16_t special[] = {0x0001, 0x03ff, 0x8001, 0x7c00, 0xfc00, 0x8000, 0x7bff, 0x0400};
    uint8_t *p = malloc((size_t) n * (size_t) size);
    for (int i = 0; i < n * size; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t) (seed >> 24);
    }
    const int place[] = {0, 2, size - 4, size - 2};
    for (int i = 0; i < COUNT(special); i++)
        for (int j = 0; j < COUNT(place); j++)
            if (place[j] >= 0 && place[j] <= size - 2) memcpy(p + i * size + place[j], &special[i], 2);
    return p;
}

static void check_golden(const Format *f) {
    const int n = BLOCKS * f->block;
    uint8_t *p = random_blocks((uint32_t) f->type + 1, BLOCKS, f->bytes);
    float *y = malloc((size_t) n * sizeof *y);
    f->dequant(p, y, n);
    uint64_t h = 0xcbf29ce484222325;
    for (int i = 0; i < n; i++) h = (h ^ bits(y[i])) * 0x100000001b3;
    int found = 0;
    for (int g = 0; g < COUNT(golden); g++) {
        if (strcmp(golden[g].name, f->name)) continue;
        found = 1;
        for (int i = 0; i < 3; i++) {
            float v = y[golden[g].block * f->block + (f->block > 1 ? (int[]){0, 7, 30}[i] : 0)];
            if (bits(v) != bits(golden[g].at[i]))
                failures++, printf("%s: value %d is %.9g, expected %.9g\n", f->name, i, v, golden[g].at[i]);
        }
        if (h != golden[g].digest) failures++, printf("%s: digest %016llx\n", f->name, (unsigned long long) h);
    }
    if (!found) failures++, printf("%s: no golden\n", f->name);
    free(p);
    free(y);
}

// A panel with `rows` real rows of k elements: every lane reads back as its row, missing ones as zeros.
static void check_panel(const Format *f, int64_t k, int rows) {
    const int blocks = (int) (k / f->block);
    uint8_t *p = random_blocks((uint32_t) (k + rows), 16 * blocks, f->bytes);
    size_t bytes = f->panel_bytes(k);
    uint8_t *panel = malloc(bytes + 64);
    memset(panel, 0xa5, bytes + 64);
    const uint8_t *row[16];
    for (int i = 0; i < 16; i++) row[i] = i < rows ? p + (size_t) i * (size_t) blocks * (size_t) f->bytes : NULL;
    f->pack(row, k, panel);
    if (bytes % 64) failures++, printf("%s: panel of %zu bytes\n", f->name, bytes);
    double over = (double) bytes / (16.0 * (double) blocks * (double) f->bytes);
    if (over > 1.18 || (k >= 1024 && over > 1.01))
        failures++, printf("%s: packed %.3f of the file's size\n", f->name, over);
    for (int i = 0; i < 64; i++)
        if (panel[bytes + (size_t) i] != 0xa5) failures++, printf("%s: written past the panel\n", f->name);
    float *a = malloc((size_t) k * sizeof *a), *b = malloc((size_t) k * sizeof *b);
    for (int i = 0; i < 16; i++) {
        for (int64_t j = 0; j < k; j++) a[j] = 0;
        if (row[i]) f->dequant(row[i], a, k);
        f->unpack(panel, k, i, b);
        for (int64_t j = 0; j < k; j++)
            if (row[i] ? bits(a[j]) != bits(b[j]) : b[j] != 0) {
                failures++;
                printf("%s: k %lld lane %d element %lld: %g, expected %g\n", f->name, (long long) k, i, (long long) j,
                    b[j], a[j]);
                break;
            }
    }
    free(p);
    free(panel);
    free(a);
    free(b);
}

int main(void) {
    if (COUNT(golden) != n_formats) failures++, printf("%d formats, %d goldens\n", n_formats, COUNT(golden));
    for (int i = 0; i < n_formats; i++) {
        const Format *f = &formats[i];
        check_golden(f);
        if (format_of(f->type) != f) failures++, printf("%s: format_of\n", f->name);
        if (!format_section(f, "decode").n) failures++, printf("%s: no section decode\n", f->name);
        if (!f->pack) continue;
        if (!format_section(f, "packed").n) failures++, printf("%s: no section packed\n", f->name);
        for (int blocks = 1; blocks <= 5; blocks++)
            for (int rows = 1; rows <= 16; rows += 5) check_panel(f, (int64_t) blocks * f->block, rows);
        check_panel(f, 2048, 16);
    }
    if (format_of(9)) failures++, printf("format_of(9) is not NULL\n");
    printf("format: %d failures\n", failures);
    return failures != 0;
}
