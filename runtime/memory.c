// Lays out and gets the program's memory. In: the sizes the compiler fixed and the user's thread count and context.
// Out: an offset and a size for each part, and one mapping that holds them all.
//
// The mapping is anonymous and touched lazily, so a context that is never filled costs nothing; what is asked for
// is nevertheless checked against what there is before any work starts.
#define _GNU_SOURCE
#include "memory.h"
#include "error.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const char *memory_part_name(MemoryPart part) {
    static const char *const names[MEM_PARTS] = {
        "state", "page tables", "token ids", "scratch", "threads", "batch", "logits", "sampler", "tokenizer"};
    return names[part];
}

static uint64_t round_up(uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
}

static uint64_t take(Memory *m, MemoryPart part, uint64_t bytes, uint64_t align) {
    uint64_t at = round_up(m->total, align);
    if (!m->bytes[part]) m->offset[part] = at;
    m->total = at + bytes;
    m->bytes[part] = m->total - m->offset[part];
    return at;
}

// Pages a sequence holds at most. A window's pages are freed before each batch, so its rows and the keys that the
// first of them sees are all there is; they may begin and end inside a page, and one page is to spare.
static uint64_t pages_of(const ModelInfo *info, int group, int n_ctx) {
    int records = group_records(&info->group[group], n_ctx);
    uint64_t all = records ? ((uint64_t) records + PAGE - 1) / PAGE : 1;
    int window = info->group[group].window;
    if (!window) return all;
    uint64_t some = ((uint64_t) window - 1 + (uint64_t) info->max_batch + PAGE - 1) / PAGE + 2;
    return some < all ? some : all;
}

void memory_layout(Memory *m, const ModelInfo *info, int threads, int n_ctx, int n_seq, uint64_t sampler_bytes,
    uint64_t tokenizer_bytes, uint64_t team_bytes) {
    enum { MEMORY_PAGE = 4096 };
    memset(m, 0, sizeof *m);
    m->threads = threads, m->n_ctx = n_ctx, m->n_seq = n_seq;
    m->n_table = (n_ctx + PAGE - 1) / PAGE;
    uint64_t seqs = (uint64_t) n_seq, rows = (uint64_t) info->max_batch, outs = (uint64_t) info->max_out;
    for (int g = 0; g < info->n_group; g++) {
        m->pages[g] = pages_of(info, g, n_ctx) * seqs;
        m->pool[g] = take(m, MEM_STATE, m->pages[g] * info->group[g].page_bytes, MEMORY_PAGE);
    }
    m->fixed = take(m, MEM_STATE, seqs * info->fixed_bytes, MEMORY_PAGE);
    for (int g = 0; g < info->n_group; g++) {
        m->table[g] = take(m, MEM_TABLES, seqs * (uint64_t) m->n_table * sizeof(uint32_t), 64);
        m->free_list[g] = take(m, MEM_TABLES, m->pages[g] * sizeof(uint32_t), 64);
    }
    m->sequences = take(m, MEM_TABLES, seqs * sizeof(Sequence), 64);
    take(m, MEM_IDS, seqs * ((uint64_t) n_ctx + 1) * sizeof(int32_t), 64);
    take(m, MEM_SCRATCH, info->scratch_bytes, MEMORY_PAGE);
    take(m, MEM_THREADS, round_up(info->thread_bytes, 64) * (uint64_t) threads, MEMORY_PAGE);
    m->team = take(m, MEM_THREADS, team_bytes, 64);
    take(m, MEM_BATCH, 3 * (rows + outs) * sizeof(int32_t), 64);
    take(m, MEM_LOGITS, outs * (uint64_t) info->n_result * sizeof(float), MEMORY_PAGE);
    take(m, MEM_SAMPLER, sampler_bytes, 64);
    take(m, MEM_TOKENIZER, tokenizer_bytes, 64);
    m->total = round_up(m->total, MEMORY_PAGE);
}

// The number after `key` in a file of the system, in the file's own unit; `none` if there is no such thing.
static uint64_t number_in(const char *path, const char *key, uint64_t none) {
    char line[256];
    FILE *f = fopen(path, "r");
    uint64_t value = none;
    size_t n = strlen(key);
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, n)) continue;
        char *end;
        errno = 0;
        uint64_t v = strtoull(line + n, &end, 10);
        if (end != line + n && !errno) value = v;
        break;
    }
    if (f) fclose(f);
    return value;
}

// What the cgroup in `folder` still allows. Its file cache counts as used but is given up when needed.
static uint64_t cgroup_room(const char *folder, const char *limit, const char *usage, const char *cache) {
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", folder, limit);
    uint64_t max = number_in(path, "", UINT64_MAX); // "max" is no number: no limit
    if (max >= UINT64_MAX / 4) return UINT64_MAX;
    snprintf(path, sizeof path, "%s/%s", folder, usage);
    uint64_t used = number_in(path, "", 0);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    uint64_t file = number_in(path, cache, 0);
    used = used > file ? used - file : 0;
    return max > used ? max - used : 0;
}

uint64_t memory_available(void) {
    uint64_t room = number_in("/proc/meminfo", "MemAvailable:", UINT64_MAX / 1024);
    room = room >= UINT64_MAX / 1024 ? UINT64_MAX : room * 1024;
    char line[4096], folder[4300];
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::", 3)) continue;
        snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", line + 3);
        for (;;) { // a limit of any folder above holds too
            uint64_t r = cgroup_room(folder, "memory.max", "memory.current", "file ");
            room = r < room ? r : room;
            char *slash = strrchr(folder, '/');
            if (!slash || !strcmp(folder, "/sys/fs/cgroup")) break;
            *slash = '\0';
        }
    }
    if (f) fclose(f);
    uint64_t r = cgroup_room("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache ");
    return r < room ? r : room;
}

int memory_open(Memory *m) {
    uint64_t room = memory_available();
    if (m->total > room)
        return complain(
            "not enough memory: %.1f MB are needed and %.1f MB available; lower --ctx (now %d) or --threads (now %d)",
            (double) m->total / 1e6, (double) room / 1e6, m->n_ctx, m->threads);
    void *p = m->total == (size_t) m->total
        ? mmap(NULL, (size_t) m->total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        : MAP_FAILED;
    if (p == MAP_FAILED)
        return complain("the system refuses %.1f MB of memory (%s); lower --ctx (now %d)", (double) m->total / 1e6,
            strerror(errno), m->n_ctx);
    m->base = p;
    return 0;
}

void memory_close(Memory *m) {
    if (m->base) munmap(m->base, (size_t) m->total);
    m->base = NULL;
}
