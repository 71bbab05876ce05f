// A sequence in a file: the tokens of its text and the pages of its state. In: a sequence, or a file that may be
// anything. Out: the file, or the sequence as it was. Everything in the file is checked before the sequence changes.
#define _GNU_SOURCE
#include "error.h"
#include "outfile.h"
#include "state.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE_VERSION = 2 };

// Little-endian, no padding; ids, pages and the state that does not grow follow: ids are padded to 8 bytes, pages
// come by group, by position.
typedef struct {
    char magic[8];
    uint32_t version, page;
    char kv_type[8];
    uint64_t model;    // ModelInfo.hash
    uint64_t bytes;    // of the whole file
    uint64_t checksum; // of the whole file, with 0 in this place
    int32_t n_past, n_ids, n_group, zero;
    int32_t first[MAX_GROUP], held[MAX_GROUP];
    uint64_t page_bytes[MAX_GROUP], fixed_bytes;
} Header;

static const char magic[8] = {'g', 'g', 'c', 'c', 's', 't', 'a', 't'};

// A sum that notices a damaged or mixed-up file (not one made to deceive: pages are only numbers to the model).
static uint64_t sum_bytes(uint64_t sum, const void *p, size_t n) {
    for (const char *c = p; n >= 8; c += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, c, 8);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 29;
    }
    return sum;
}

static uint64_t ids_bytes(int n) {
    return ((uint64_t) n * sizeof(int32_t) + 7) / 8 * 8;
}

// The header that describes sequence `seq`, but for the sum. Pages that the last position did not see are left out, so
// the file does not depend on how the text was cut into batches.
static Header describe(const State *s, int seq) {
    const Sequence *q = &s->seq[seq];
    Header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, magic, sizeof magic);
    h.version = STATE_VERSION, h.page = PAGE;
    strncpy(h.kv_type, s->info->kv_type, sizeof h.kv_type - 1);
    h.model = s->info->hash;
    h.n_past = q->n_past, h.n_ids = q->n_ids, h.n_group = s->info->n_group;
    h.fixed_bytes = s->info->fixed_bytes;
    h.bytes = sizeof h + ids_bytes(q->n_ids) + h.fixed_bytes;
    for (int g = 0; g < s->info->n_group; g++) {
        int window = s->info->group[g].window, end = (group_records(&s->info->group[g], q->n_past) + PAGE - 1) / PAGE;
        int first = window && q->n_past > window ? (q->n_past - window) / PAGE : 0;
        h.first[g] = first < end ? first : end;
        h.held[g] = end - h.first[g];
        h.page_bytes[g] = s->info->group[g].page_bytes;
        h.bytes += (uint64_t) h.held[g] * h.page_bytes[g];
    }
    return h;
}

static const uint8_t *page_at(const State *s, int group, int seq, int i) {
    uint32_t page = s->pool[group].table[(size_t) seq * (size_t) s->n_table + (size_t) i];
    return s->pool[group].pool + page * s->info->group[group].page_bytes;
}

int state_save(const State *s, int seq, const char *path) {
    OutFile f;
    Header h = describe(s, seq);
    const int32_t *ids = state_ids(s, seq);
    int32_t last[2] = {0, 0}; // an odd last id, padded
    size_t even = (size_t) h.n_ids / 2 * 2 * sizeof *ids, odd = h.n_ids % 2 ? sizeof last : 0;
    if (odd) last[0] = ids[h.n_ids - 1];
    h.checksum = sum_bytes(sum_bytes(sum_bytes(0, &h, sizeof h), ids, even), last, odd);
    for (int g = 0; g < h.n_group; g++)
        for (int i = h.first[g]; i < h.first[g] + h.held[g]; i++)
            h.checksum = sum_bytes(h.checksum, page_at(s, g, seq, i), h.page_bytes[g]);
    const uint8_t *fixed = s->fixed + (size_t) seq * h.fixed_bytes;
    h.checksum = sum_bytes(h.checksum, fixed, h.fixed_bytes);
    if (outfile_open(&f, path, h.bytes)) return -1;
    int bad = outfile_write(&f, &h, sizeof h) || outfile_write(&f, ids, even) || outfile_write(&f, last, odd);
    for (int g = 0; g < h.n_group && !bad; g++)
        for (int i = h.first[g]; i < h.first[g] + h.held[g] && !bad; i++)
            bad = outfile_write(&f, page_at(s, g, seq, i), h.page_bytes[g]);
    if (h.fixed_bytes && !bad) bad = outfile_write(&f, fixed, h.fixed_bytes);
    if (bad) {
        outfile_abandon(&f);
        return -1;
    }
    return outfile_commit(&f);
}

// Whether the file of `size` bytes at `file` is a state of this model that fits this context.
static int check(const State *s, const uint8_t *file, uint64_t size, const char *path, Header *h) {
    const ModelInfo *info = s->info;
    if (size < sizeof *h || memcmp(file, magic, sizeof magic))
        return complain("'%s' is not a saved state: it does not begin with \"ggccstat\"", path);
    memcpy(h, file, sizeof *h);
    if (h->version != STATE_VERSION || h->page != PAGE)
        return complain(
            "'%s' is a saved state of version %u, this program reads version %d", path, h->version, STATE_VERSION);
    if (h->model != info->hash)
        return complain("'%s' was saved by another program: its model is %016llx, this one %016llx", path,
            (unsigned long long) h->model, (unsigned long long) info->hash);
    if (memcmp(h->kv_type, describe(s, 0).kv_type, sizeof h->kv_type))
        return complain("'%s' holds a cache of another type, this program's is %s", path, info->kv_type);
    if (h->bytes != size)
        return complain("'%s' is cut off or has been added to: %llu bytes, %llu were saved", path,
            (unsigned long long) size, (unsigned long long) h->bytes);
    if (h->n_past > s->n_ctx || h->n_ids > s->n_ctx + 1)
        return complain("'%s' holds %d tokens and the context %d; raise --ctx", path, h->n_ids, s->n_ctx);
    State expected = *s; // a sequence of that length, to compare the page counts with
    Sequence q = {.n_past = h->n_past, .n_ids = h->n_ids};
    expected.seq = &q;
    uint64_t checksum = h->checksum;
    h->checksum = 0;
    bool bad = h->n_past < 0 || h->n_ids < h->n_past || h->n_group != info->n_group || h->zero;
    if (!bad) {
        Header e = describe(&expected, 0);
        bad = memcmp(&e, h, sizeof e) != 0;
    }
    if (bad || sum_bytes(sum_bytes(0, h, sizeof *h), file + sizeof *h, size - sizeof *h) != checksum)
        return complain("'%s' is damaged: its contents do not match its header", path);
    for (int i = 0; i < h->n_ids; i++) {
        int32_t id;
        memcpy(&id, file + sizeof *h + (size_t) i * sizeof id, sizeof id);
        if (id < 0 || id >= info->n_vocab)
            return complain(
                "'%s' is damaged: token %d at position %d, the vocabulary has %d", path, id, i, info->n_vocab);
    }
    return 0;
}

static int restore(State *s, int seq, const uint8_t *file, const Header *h) {
    Sequence *q = &s->seq[seq];
    const uint8_t *from = file + sizeof *h + ids_bytes(h->n_ids);
    state_reset(s, seq);
    for (int g = 0; g < h->n_group; g++) {
        Pool *p = &s->pool[g];
        if ((uint32_t) h->held[g] > p->n_free)
            return complain("no page of state is left in group %s", s->info->group[g].name);
        q->first[g] = h->first[g];
        for (; q->held[g] < h->held[g]; from += h->page_bytes[g]) {
            uint32_t page = state_take(s, g);
            p->table[(size_t) seq * (size_t) s->n_table + (size_t) (q->first[g] + q->held[g]++)] = page;
            memcpy(p->pool + page * h->page_bytes[g], from, h->page_bytes[g]);
        }
    }
    memcpy(s->fixed + (size_t) seq * h->fixed_bytes, from, h->fixed_bytes);
    memcpy(state_ids(s, seq), file + sizeof *h, (size_t) h->n_ids * sizeof(int32_t));
    q->n_past = h->n_past, q->n_ids = h->n_ids;
    return 0;
}

int state_load(State *s, int seq, const char *path) {
    struct stat st;
    Header h;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return complain("cannot read '%s': %s", path, strerror(errno));
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t) sizeof h) {
        close(fd);
        return complain("'%s' is not a saved state: it is no file of at least %zu bytes", path, sizeof h);
    }
    size_t size = (size_t) st.st_size;
    uint8_t *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (file == MAP_FAILED) return complain("cannot read '%s': %s", path, strerror(errno));
    int result = check(s, file, size, path, &h);
    if (!result) result = restore(s, seq, file, &h);
    munmap(file, size);
    return result;
}
