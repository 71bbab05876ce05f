// A table from texts to numbers. In: keys, which it does not copy. Out: the number of each, 0 until it is given one.
// The idea: open addressing, at most half of the slots taken.
#include "util.h"

static LookupSlot *slot_of(const Lookup *m, Str key) {
    size_t mask = (size_t) m->cap - 1, h = (size_t) hash64(key.p, key.n, 1) & mask;
    while (m->slot[h].key.p && !str_eq(m->slot[h].key, key)) h = (h + 1) & mask;
    return &m->slot[h];
}

int lookup(const Lookup *m, Str key) {
    return m->cap ? slot_of(m, key)->value : 0;
}

int *lookup_at(Lookup *m, Str key) {
    if (2 * (m->n + 1) > m->cap) {
        Lookup more = {m->arena, NEWN(m->arena, LookupSlot, m->cap ? m->cap * 2 : 64), m->n, m->cap ? m->cap * 2 : 64};
        for (int i = 0; i < m->cap; i++)
            if (m->slot[i].key.p) *slot_of(&more, m->slot[i].key) = m->slot[i];
        *m = more;
    }
    LookupSlot *s = slot_of(m, key);
    if (!s->key.p) s->key = key.p ? key : S(""), m->n++;
    return &s->value;
}
