// What a model remembers of its sequences: pages of state, and the tokens that led there.
#ifndef STATE_H
#define STATE_H

#include "memory.h"
#include "model.h"

typedef struct {
    uint8_t *pool;
    uint32_t *table;     // [n_seq][n_table]: the page that holds positions PAGE*i .., for the pages a sequence holds
    uint32_t *free_list; // [pages]: of the first n_free the last is given out next
    uint32_t n_free, pages;
    uint32_t fresh; // pages from here on were never given out: they hold zeros
} Pool;

typedef struct {
    const ModelInfo *info;
    int n_ctx, n_seq, n_table;
    Pool pool[MAX_GROUP];
    uint8_t *fixed; // [n_seq][info->fixed_bytes]: what does not grow with the text
    int32_t *ids; // [n_seq][n_ctx + 1]: the text so far, which may be longer than what was evaluated
    Sequence *seq;
} State;

void state_init(State *s, const ModelInfo *info, const Memory *m);
static inline int32_t *state_ids(const State *s, int seq) {
    return s->ids + (size_t) seq * ((size_t) s->n_ctx + 1);
}
void state_reset(State *s, int seq);
uint32_t state_take(State *s, int group); // one more page, of zeros; the caller has seen that one is free

// Before a forward: pages for the n <= max_batch positions after n_past. Frees what no row of that batch sees.
int state_reserve(State *s, int seq, int n);
// After it: these positions are part of the past.
void state_advance(State *s, int seq, int n);
// Back to the first n tokens. Fails when a window has given up what position n - 1 saw: that is held at all times,
// so the last token can be evaluated again. State that does not grow has no way back but to the start: then all n
// tokens are to be evaluated again.
int state_truncate(State *s, int seq, int n);

int state_save(const State *s, int seq, const char *path); // beside the target, then renamed
int state_load(State *s, int seq, const char *path);       // checks all of it before the sequence changes

#endif
