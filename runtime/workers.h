/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/workers.h: the worker threads of this process, one set for all
 * models, native kernels and plug-ins (docs/threads.md).
 */
#ifndef BYI_WORKERS_H
#define BYI_WORKERS_H

#include "core/base.h"
#include "core/openmp.h"

/* How a caller wants its parallel regions run. */
struct byi_ways {
    uint32_t threads; /* the caller's own included */
    uint64_t spin_ns; /* for so long a thread waits before it sleeps */
    byi_parallel_fn parallel_for; /* of the host; NULL: the workers */
    void *ctx;
};

/* How long a thread spins before it sleeps, unless it is told otherwise
 * (docs/threads.md has the measurement). */
#define BYI_SPIN_NS 50000

struct byi_worker;

/* A thread's turn to use workers: on its stack, from enter to leave. */
struct byi_turn {
    struct byi_ways ways;
    struct byi_worker *crew; /* its alone until it leaves */
    uint32_t n;
    uint32_t epoch; /* of the process: a forked child has no crew */
    struct byi_turn *outer;
    struct byi_omp_host host;
    const struct byi_omp_host *before;
};

/* Make the workers for runs on `threads` threads. Returns how many threads
 * there are then, the caller's own included: fewer where none can be made.
 * Threads: safe. */
uint32_t byi_workers_reserve(uint32_t threads);
/* Begin a turn: take workers that are free, as many as make a fair share of all
 * among the turns that go on. Turns nest. */
void byi_workers_enter(struct byi_turn *turn, const struct byi_ways *ways);
void byi_workers_leave(struct byi_turn *turn);
/* Threads that the calling thread's turn has; 0: it has no turn. */
uint32_t byi_workers_of_turn(void);
/* Run fn(arg, 0) ... fn(arg, n - 1), in the calling thread's turn or one of its
 * own for as long. Parts that no worker has begun when the caller is done with
 * its own are run by the caller. Inside of a part: in order, by the caller. */
void byi_parallel_for(uint32_t n, void (*fn)(void *, uint32_t), void *arg);
/* Workers that exist, for tests. */
uint32_t byi_workers_count(void);

#endif
