/* SPDX-License-Identifier: Apache-2.0 */
/* openmp.h: parallel regions of OpenMP, run by threads that byoc chooses.
 *
 * GCC turns a parallel region into a function and a call of GOMP_parallel(), a
 * symbol of GCC's OpenMP library, libgomp. openmp.c defines the symbols of that
 * interface which byoc's code and oneDNN use, so that neither needs libgomp.
 * Libgomp has three faults (docs/threads.md): its threads spin for
 * milliseconds, it ends the process when it cannot create a thread, and in a
 * forked child it waits for threads that only the parent has.
 */
#ifndef BYI_OPENMP_H
#define BYI_OPENMP_H

#include <stdbool.h>
#include <stdint.h>

/* Runs fn(arg, 0) ... fn(arg, n - 1), and returns when all have returned. */
typedef void (*byi_parallel_fn)(void *ctx, uint32_t n,
                                void (*fn)(void *, uint32_t), void *arg);

/* Runs the parallel regions that a thread enters. */
struct byi_omp_host {
    byi_parallel_fn parallel_for;
    void *ctx;
    uint32_t threads; /* the result of omp_get_max_threads() */
};

/* Let `host` run the regions of the calling thread; returns the previous host.
 * NULL: byi_omp_default_host if it is linked, otherwise the thread runs them
 * alone. */
const struct byi_omp_host *byi_omp_use(const struct byi_omp_host *host);
/* How many calls of omp_get_max_threads() this copy of openmp.c has served,
 * which shows whether a library is bound to it. Threads: safe. */
uint64_t byi_omp_max_threads_calls(void);

/* The host of threads that have not set one; runtime/workers.c defines it. */
extern const struct byi_omp_host byi_omp_default_host __attribute__((weak));

/* The number of threads that a region of the calling thread may have. */
int omp_get_max_threads(void);

/* The type of GOMP_parallel(): runs fn(data) in `n` parts and returns when all
 * have ended; n = 0: in as many as omp_get_max_threads() returns. */
typedef void (*byi_gomp_fn)(void (*fn)(void *data), void *data, unsigned n,
                            unsigned flags);
/* GOMP_parallel() of an OpenMP library that the process loaded with global
 * visibility, to which libraries loaded later are bound; NULL: there is none.
 * Threads: safe. */
byi_gomp_fn byi_omp_of_process(void);

/* The interface as a table, for code that receives it by address. */
struct byi_omp_calls {
    byi_gomp_fn parallel;
    int (*num_threads)(void);
    int (*thread_num)(void);
};
extern const struct byi_omp_calls byi_omp_calls;

#endif
