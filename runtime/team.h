// The threads that run a model: a fixed team, made once. Generated code claims pieces with the calls of model.h;
// this header is for whoever owns the team.
#ifndef TEAM_H
#define TEAM_H

#include "model.h"

enum {
    MAX_THREADS = 1024,
    TEAM_ARG = 512 // bytes of argument that team_run hands to each thread, at most
};

uint64_t team_bytes(int threads); // memory that team_open wants, aligned to 64
int team_open(
    Team *t, int threads); // starts threads - 1 threads: the caller of team_run is the first. 0, or -1: complaint()
void team_close(Team *t);
int team_threads(const Team *t);

// Runs fn(copy of arg, worker) on every thread and returns when the steps of thread 0's call are over. Each thread
// gets its own copy of the argument, because a thread may still be walking through the last run while the caller
// prepares the next one: what decides the steps (counts, branches) must come from the copy, and all else may be
// read only inside pieces. size is a multiple of 8.
void team_run(Team *t, void (*fn)(const void *arg, Worker *w), const void *arg, size_t size);

int cores_available(void); // that this process may use: affinity and the cgroup's processor quota; at least 1

#endif
