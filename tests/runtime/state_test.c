// Paged state against a plain model of it: every position that a row may see lies in a page of its own sequence and
// keeps what was written there, through random batches, going back, starting over, saving and loading. Then files that
// are damaged in every byte of their header, or cut off, must be refused and leave the sequence as it was.
// Argument: a file to work with.
#include "../../runtime/error.h"
#include "../../runtime/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQS = 3, CTX = 1000, BATCH = 70 };
static const ModelInfo info = {.hash = 77,
    .n_vocab = 50,
    .n_result = 50,
    .n_ctx = CTX,
    .max_batch = BATCH,
    .max_out = 1,
    .n_group = 4,
    .group = {{"all", PAGE * 8, 0, 1}, {"near", PAGE * 8, 130, 1}, {"one", PAGE * 16, 1, 1}, {"some", PAGE * 8, 0, 3}},
    .kv_type = "f32"};
static State state;
static uint64_t want[SEQS][CTX]; // what was written at each position
static uint64_t seed = 1;

static unsigned below(unsigned n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned) (seed >> 33) % n;
}

#define CHECK(c, ...)                                                                                                  \
    do {                                                                                                               \
        if (!(c)) {                                                                                                    \
            printf("line %d: ", __LINE__);                                                                             \
            printf(__VA_ARGS__);                                                                                       \
            printf(" (%s)\n", complaint());                                                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint64_t *cell(int g, int seq, int pos) {
    Pool *p = &state.pool[g];
    uint32_t page = p->table[(size_t) seq * (size_t) state.n_table + (size_t) (pos / PAGE)];
    CHECK(page < p->pages, "group %d seq %d pos %d: page %u of %u", g, seq, pos, page, p->pages);
    return (uint64_t *) (void *) (p->pool + page * info.group[g].page_bytes) + pos % PAGE;
}

static void see(int seq, int pos) { // what a row at pos sees
    for (int i = 0; i < (pos + 1) / 3; i++)
        CHECK(*cell(3, seq, i) == want[seq][3 * i + 2], "seq %d: row %d sees a wrong record %d", seq, pos, i);
    for (int g = 0; g < 3; g++) {
        int window = info.group[g].window, first = window && pos >= window ? pos - window + 1 : 0;
        for (int i = first; i <= pos; i++)
            CHECK(*cell(g, seq, i) == want[seq][i] + (uint64_t) g, "group %d seq %d: row %d sees a wrong position %d",
                g, seq, pos, i);
    }
}

static void write_rows(int seq, int n) {
    int past = state.seq[seq].n_past;
    CHECK(state_reserve(&state, seq, n) == 0, "no pages");
    for (int i = past; i < past + n; i++) {
        want[seq][i] = ((uint64_t) below(1 << 30) << 8) + 1;
        state_ids(&state, seq)[i] = (int32_t) below(50);
        for (int g = 0; g < 3; g++) *cell(g, seq, i) = want[seq][i] + (uint64_t) g;
        if (i % 3 == 2) *cell(3, seq, i / 3) = want[seq][i];
    }
    for (int i = past; i < past + n; i++) see(seq, i);
    state_advance(&state, seq, n);
}

static void step(const char *path) {
    int seq = (int) below(SEQS), past = state.seq[seq].n_past;
    switch (below(8)) {
    case 0:
        if (below(5) == 0) state_reset(&state, seq);
        break;
    case 1: {
        int n = past ? (int) below((unsigned) past + 1) : 0;
        if (below(2) && past > 3) n = past - (int) below(3); // likely still held
        if (state_truncate(&state, seq, n) == 0) CHECK(state.seq[seq].n_past == n, "%d", n);
        break;
    }
    case 2: {
        int to = (int) below(SEQS);
        CHECK(state_save(&state, seq, path) == 0, "save");
        CHECK(state_load(&state, to, path) == 0, "load");
        CHECK(state.seq[to].n_past == past, "%d", past);
        CHECK(!memcmp(state_ids(&state, to), state_ids(&state, seq), (size_t) past * 4), "ids");
        memcpy(want[to], want[seq], sizeof want[to]);
        break;
    }
    default:
        if (past < CTX) {
            int n = 1 + (int) below(below(3) ? 5 : BATCH);
            write_rows(seq, n < CTX - past ? n : CTX - past);
        } else {
            CHECK(state_reserve(&state, seq, 1) == -1, "the context is full");
            state_reset(&state, seq);
        }
    }
    if (state.seq[seq].n_past)
        for (int g = 0; g < info.n_group; g++) { // the last row could be evaluated again
            int p = state.seq[seq].n_past - 1, w = info.group[g].window;
            CHECK(!w || state.seq[seq].first[g] * PAGE <= (p >= w ? p - w + 1 : 0), "group %d", g);
        }
}

static void spoil(const char *path) {
    static unsigned char file[1 << 20];
    while (state.seq[0].n_past < 333) write_rows(0, 9);
    CHECK(state_save(&state, 0, path) == 0, "save");
    FILE *f = fopen(path, "rb");
    size_t size = f ? fread(file, 1, sizeof file, f) : 0;
    CHECK(f && size < sizeof file, "read");
    fclose(f);
    Sequence before = state.seq[1];
    unsigned refused = 0;
    for (size_t i = 0; i < size; i += i < 256 ? 1 : 997) { // one bit of each byte of the header, then samples
        file[i] ^= (unsigned char) (1 << i % 8);
        f = fopen(path, "wb");
        CHECK(f && fwrite(file, 1, size, f) == size && fclose(f) == 0, "write");
        refused += state_load(&state, 1, path) == -1;
        file[i] ^= (unsigned char) (1 << i % 8);
        CHECK(!memcmp(&before, &state.seq[1], sizeof before), "byte %zu: a refused file changed the sequence", i);
    }
    CHECK(refused == 256 + (size - 256 + 996) / 997, "only %u damaged files were refused", refused);
    for (size_t n = 0; n < size; n += 1 + n / 3) {
        f = fopen(path, "wb");
        CHECK(f && fwrite(file, 1, n, f) == n && fclose(f) == 0, "write");
        CHECK(state_load(&state, 1, path) == -1, "cut to %zu bytes", n);
    }
}

int main(int argc, char **argv) {
    Memory m;
    if (argc < 2) return 1;
    memory_layout(&m, &info, 1, CTX, SEQS, 16, 16, 64);
    CHECK(memory_open(&m) == 0, "memory");
    state_init(&state, &info, &m);
    for (int i = 0; i < 4000; i++) step(argv[1]);
    for (int s = 0; s < SEQS; s++) state_reset(&state, s);
    for (int g = 0; g < info.n_group; g++) CHECK(state.pool[g].n_free == state.pool[g].pages, "group %d lost pages", g);
    spoil(argv[1]);
    memory_close(&m);
    remove(argv[1]);
    return 0;
}
