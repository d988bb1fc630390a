/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/workers.h: declares the worker threads of this process, one set for
 * all models, native kernels and plug-ins (docs/threads.md).
 */
#ifndef BYI_WORKERS_H
#define BYI_WORKERS_H

#include "core/base/base.h"
#include "core/base/openmp.h"

#include <stdatomic.h>

/* Measured durations of a model's runs, from which a turn decides whether
 * waking workers saves time. All states of the model update them. */
struct byi_run_times {
    _Atomic uint64_t turn_ns;   /* duration of the last turn */
    _Atomic uint64_t region_ns; /* average of a parallel region */
    /* the time from which to use workers and measure again */
    _Atomic uint64_t probe_at;
};

/* How to run a caller's parallel regions. */
struct byi_parallelism {
    uint32_t threads; /* including the caller's own */
    uint64_t spin_ns; /* how long a thread spins before it sleeps */
    bool adapts;      /* sleep at once while other processes compete for the
                       * CPUs */
    byi_parallel_fn parallel_for; /* the host's; NULL: use the workers */
    void *ctx;
    /* of the OpenMP library that a backend of the model calls, whose threads
     * then run all regions, so that they do not compete with workers; NULL:
     * use the workers */
    byi_gomp_fn openmp;
    struct byi_run_times *run_times; /* NULL: not measured */
};

/* How long a thread spins by default, in nanoseconds (docs/threads.md has the
 * measurement). */
#define BYI_SPIN_NS 1000000

/* The times that the kernel has accounted to a thread. */
struct byi_usage {
    uint64_t wall_ns, cpu_ns;
    long sleeps; /* voluntary context switches */
};

struct byi_worker;

/* A turn: the time during which workers are reserved for a thread, from
 * byi_workers_enter to byi_workers_leave. Lives on that thread's stack. */
struct byi_turn {
    struct byi_parallelism parallelism;
    struct byi_worker *workers; /* the turn's workers, until it ends */
    uint32_t n;                 /* threads besides the caller's own */
    uint32_t epoch;         /* number of forks before the turn: a forked child
                             * has no workers */
    struct byi_usage begin; /* only wall_ns unless `measured` */
    bool measured;
    /* total time and number of the parallel regions that the workers worked on
     */
    uint64_t regions_ns, n_regions;
    struct byi_turn *outer;   /* the turn in which this one began, or NULL */
    struct byi_omp_host host; /* OpenMP's host during the turn */
    const struct byi_omp_host *outer_host; /* OpenMP's host before the turn */
};

/* Create workers for runs on `threads` threads. Returns the number of threads
 * that exist then, including the caller's: fewer if the system refuses more.
 * Threads: safe. */
uint32_t byi_workers_reserve(uint32_t threads);
/* Begin a turn of the calling thread: take free workers, at most an equal share
 * among the active turns. A turn within a turn or a part takes no workers. */
void byi_workers_enter(struct byi_turn *turn,
                       const struct byi_parallelism *parallelism);
/* End the thread's current turn, which must be `turn`, and free its workers. */
void byi_workers_leave(struct byi_turn *turn);
/* The number of threads of the calling thread's turn, including itself; 0: no
 * turn. */
uint32_t byi_workers_of_turn(void);
/* Run the parts fn(arg, 0) ... fn(arg, n - 1) in the calling thread's turn, or,
 * if it has none, in a turn for this call. The caller runs one part, then those
 * that no worker has begun. If called from within a part, it runs all parts in
 * order on the calling thread. */
void byi_parallel_for(uint32_t n, void (*fn)(void *, uint32_t), void *arg);
/* Fails with BYOC_ECANCELLED if a part of this turn forked and this is the
 * child: parallel regions then returned without the parts of other threads. If
 * the fork was on a worker, the child's thread ends when its part returns. */
enum byoc_status byi_workers_check_fork(struct byoc_error *err);

#endif
