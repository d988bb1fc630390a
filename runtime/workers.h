/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/workers.h: the worker threads of this process, one set for all
 * models, native kernels and plug-ins (docs/threads.md).
 */
#ifndef BYI_WORKERS_H
#define BYI_WORKERS_H

#include "core/base/base.h"
#include "core/base/openmp.h"

#include <stdatomic.h>

/* Durations of a model's runs, which decide whether workers are worth waking.
 * All states of the model update it. */
struct byi_pace {
    _Atomic uint64_t turn_ns;   /* the last turn                            */
    _Atomic uint64_t region_ns; /* a parallel region, on average            */
    /* the time from which to use workers and measure again */
    _Atomic uint64_t probe_at;
};

/* How to run a caller's parallel regions. */
struct byi_ways {
    uint32_t threads; /* the caller's own included */
    uint64_t spin_ns; /* how long a thread spins before it sleeps */
    bool adapts;      /* sleep at once while other processes compete */
    byi_parallel_fn parallel_for; /* of the host; NULL: the workers */
    void *ctx;
    struct byi_pace *pace; /* NULL: not measured */
};

/* How long a thread spins by default (docs/threads.md has the measurement). */
#define BYI_SPIN_NS 1000000

/* The times that the kernel has accounted to a thread. */
struct byi_usage {
    uint64_t wall_ns, cpu_ns;
    long sleeps; /* voluntary context switches */
};

struct byi_worker;

/* A thread's turn to use workers: on its stack, from enter to leave. */
struct byi_turn {
    struct byi_ways ways;
    struct byi_worker *crew; /* exclusively until it leaves */
    uint32_t n;
    uint32_t epoch;         /* of the process: a forked child has no crew */
    struct byi_usage begin; /* only wall_ns unless `measured` */
    bool measured;
    uint64_t regions_ns,
        n_regions; /* of the regions in which the crew took part */
    struct byi_turn *outer;
    struct byi_omp_host host;
    const struct byi_omp_host *before;
};

/* Create workers for runs on `threads` threads. Returns how many threads there
 * are then, including the caller's: fewer if no more can be created. Threads:
 * safe. */
uint32_t byi_workers_reserve(uint32_t threads);
/* Begin a turn: take free workers, up to a fair share of all among the active
 * turns. Turns nest. */
void byi_workers_enter(struct byi_turn *turn, const struct byi_ways *ways);
void byi_workers_leave(struct byi_turn *turn);
/* The number of threads of the calling thread's turn; 0: no turn. */
uint32_t byi_workers_of_turn(void);
/* Run fn(arg, 0) ... fn(arg, n - 1) in the calling thread's turn, or in a turn
 * for this call. The caller runs a part itself, then those that no worker has
 * begun. Called inside of a part, it runs all in order on the caller's thread.
 */
void byi_parallel_for(uint32_t n, void (*fn)(void *, uint32_t), void *arg);
/* BYOC_ECANCELLED if a part of this turn forked and this is the child: regions
 * returned without the parts that other threads had. In a child that a worker
 * forked, the thread ends when its part returns. */
enum byoc_status byi_workers_whole(struct byoc_error *err);

#endif
