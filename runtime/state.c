// The paged state of each sequence. In: how many positions come next. Out: a page table that covers them.
//
// A group's pool is cut into pages of PAGE positions. Pages are handed out when their first position is about to be
// written. In a group with a window, a page whose positions no later row sees goes back to the pool, so the pool of a
// window of w keys stays that small however long the text grows.
#include "state.h"
#include "error.h"
#include <string.h>

void state_init(State *s, const ModelInfo *info, const Memory *m) {
    memset(s, 0, sizeof *s);
    s->info = info, s->n_ctx = m->n_ctx, s->n_seq = m->n_seq, s->n_table = m->n_table;
    s->ids = (int32_t *) (void *) (m->base + m->offset[MEM_IDS]);
    s->seq = (Sequence *) (void *) (m->base + m->sequences);
    memset(s->seq, 0, (size_t) m->n_seq * sizeof *s->seq);
    s->fixed = m->base + m->fixed;
    memset(s->fixed, 0, (size_t) m->n_seq * info->fixed_bytes);
    for (int g = 0; g < info->n_group; g++) {
        Pool *p = &s->pool[g];
        p->pool = m->base + m->pool[g];
        p->table = (uint32_t *) (void *) (m->base + m->table[g]);
        p->free_list = (uint32_t *) (void *) (m->base + m->free_list[g]);
        p->pages = p->n_free = (uint32_t) m->pages[g];
        for (uint32_t i = 0; i < p->pages; i++) p->free_list[i] = p->pages - 1 - i; // page 0 goes first
    }
}

// What nobody wrote is 0 in every page: a saved state does not depend on who had its pages before.
uint32_t state_take(State *s, int group) {
    Pool *p = &s->pool[group];
    uint32_t page = p->free_list[--p->n_free];
    uint64_t bytes = s->info->group[group].page_bytes;
    if (page < p->fresh) memset(p->pool + page * bytes, 0, bytes);
    else p->fresh = page + 1;
    return page;
}

static uint32_t *table_of(const State *s, int group, int seq) {
    return s->pool[group].table + (size_t) seq * (size_t) s->n_table;
}

static void drop_first(State *s, int group, int seq) {
    Pool *p = &s->pool[group];
    Sequence *q = &s->seq[seq];
    p->free_list[p->n_free++] = table_of(s, group, seq)[q->first[group]++];
    q->held[group]--;
}

static void drop_last(State *s, int group, int seq) {
    Pool *p = &s->pool[group];
    Sequence *q = &s->seq[seq];
    p->free_list[p->n_free++] = table_of(s, group, seq)[q->first[group] + --q->held[group]];
}

void state_reset(State *s, int seq) {
    Sequence *q = &s->seq[seq];
    for (int g = 0; g < s->info->n_group; g++) {
        while (q->held[g]) drop_last(s, g, seq);
        q->first[g] = 0;
    }
    q->n_past = q->n_ids = 0;
    memset(s->fixed + (size_t) seq * s->info->fixed_bytes, 0, s->info->fixed_bytes);
}

// The first position that a row at `pos` sees.
static int first_seen(const State *s, int group, int pos) {
    int window = s->info->group[group].window;
    return !window || pos < window ? 0 : pos - window + 1;
}

int state_reserve(State *s, int seq, int n) {
    Sequence *q = &s->seq[seq];
    if (s->info->whole && q->n_past)
        return complain(
            "this model reads a text as a whole, and one batch took %d tokens of it; raise --batch (%d at most)",
            q->n_past, s->info->max_batch);
    if (n > s->info->max_batch || q->n_past + n > s->n_ctx)
        return complain("the context holds %d tokens, %d are needed; the program's --ctx or build --ctx sets it",
            s->n_ctx, q->n_past + n);
    for (int g = 0; g < s->info->n_group; g++) {
        Pool *p = &s->pool[g];
        uint32_t *table = table_of(s, g, seq);
        int records = group_records(&s->info->group[g], q->n_past + n);
        int keep = first_seen(s, g, q->n_past) / PAGE, last = records ? (records - 1) / PAGE : -1;
        while (q->held[g] && q->first[g] < keep) drop_first(s, g, seq);
        if (!q->held[g]) q->first[g] = group_records(&s->info->group[g], q->n_past) / PAGE;
        while (n > 0 && q->first[g] + q->held[g] <= last) {
            if (!p->n_free) return complain("no page of state is left in group %s", s->info->group[g].name);
            table[q->first[g] + q->held[g]++] = state_take(s, g);
        }
    }
    return 0;
}

void state_advance(State *s, int seq, int n) {
    Sequence *q = &s->seq[seq];
    q->n_past += n;
    if (q->n_ids < q->n_past) q->n_ids = q->n_past;
}

int state_truncate(State *s, int seq, int n) {
    Sequence *q = &s->seq[seq];
    if (n < 0 || n > q->n_ids) return complain("cannot go back to token %d of %d", n, q->n_ids);
    if (n < q->n_past && (s->info->fixed_bytes || s->info->whole)) state_reset(s, seq);
    if (n < q->n_past) {
        for (int g = 0; g < s->info->n_group; g++)
            if (n > 0 && q->first[g] > first_seen(s, g, n - 1) / PAGE)
                return complain("cannot go back to token %d: a window of %d tokens has moved past it; start over", n,
                    s->info->group[g].window);
        if (!n) state_reset(s, seq);
        for (int g = 0; g < s->info->n_group; g++)
            while (q->held[g] && (q->first[g] + q->held[g] - 1) * PAGE >= group_records(&s->info->group[g], n))
                drop_last(s, g, seq);
        q->n_past = n;
    }
    q->n_ids = n;
    return 0;
}
