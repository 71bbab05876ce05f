// All the memory of a program: how much, what for, where; and the one allocation that gets it.
// memory_layout() only computes, so the compiler prints with it the very plan that the program asserts.
#ifndef MEMORY_H
#define MEMORY_H

#include "model.h"

typedef enum {
    MEM_STATE,   // pools of pages, all groups
    MEM_TABLES,  // page tables, free lists
    MEM_IDS,     // the tokens of each sequence
    MEM_SCRATCH, // of one forward
    MEM_THREADS, // scratch of each thread, and the team
    MEM_BATCH,   // rows and wanted rows
    MEM_LOGITS,
    MEM_SAMPLER,
    MEM_TOKENIZER,
    MEM_PARTS
} MemoryPart;

// One sequence: a text and how far it was evaluated.
typedef struct {
    int n_past;           // positions evaluated: their state is held, as far as a window sees
    int n_ids;            // tokens of the text: n_past, and those not evaluated yet
    int first[MAX_GROUP]; // pages of each group that it holds: first .. first + held - 1
    int held[MAX_GROUP];
} Sequence;

typedef struct {
    int threads, n_ctx, n_seq, n_table; // n_table: pages that n_ctx positions need
    uint64_t pages[MAX_GROUP];          // in the pool of each group
    uint64_t pool[MAX_GROUP];           // offset of each pool
    uint64_t table[MAX_GROUP];          // offset of each page table, [n_seq][n_table]
    uint64_t free_list[MAX_GROUP];      // offset of each free list, [pages]
    uint64_t fixed;                     // offset of what each sequence has that does not grow, [n_seq][fixed_bytes]
    uint64_t sequences;                 // offset of the Sequence array
    uint64_t team;                      // offset of the Team, behind the threads' scratch
    uint64_t offset[MEM_PARTS], bytes[MEM_PARTS];
    uint64_t total;
    uint8_t *base; // NULL until memory_open
} Memory;

const char *memory_part_name(MemoryPart part);
void memory_layout(Memory *m, const ModelInfo *info, int threads, int n_ctx, int n_seq, uint64_t sampler_bytes,
    uint64_t tokenizer_bytes, uint64_t team_bytes);
int memory_open(Memory *m); // checks what is available first; 0, or -1: complaint()
void memory_close(Memory *m);
uint64_t memory_available(
    void); // what this process may still take: the machine's and its cgroup's; UINT64_MAX: unknown

#endif
