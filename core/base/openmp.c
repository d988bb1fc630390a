/* SPDX-License-Identifier: Apache-2.0 */
/* openmp.c: the part of GCC's OpenMP interface (libgomp's ABI, GOMP_4.0 and
 * OMP_1.0) that byoc's own code and oneDNN use: parallel regions, static loops,
 * one dynamic loop per region, barriers.
 *
 *     GOMP_parallel(fn, data, n)
 *       -> host->parallel_for(n, run_part, team)   byoc's workers, or threads
 *                                                  of the application
 *            part i of n: fn(data), which calls omp_get_thread_num()
 *
 * A region has exactly as many parts as the caller requests, up to MAX_PARTS.
 * If fewer threads are free, a thread runs several parts, one after the other.
 * Only a barrier needs all parts at the same time. If a part waits at a
 * barrier, each part that has not begun after a while gets an extra thread.
 */
#include "openmp.h"

#include "futex.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

enum {
    MAX_PARTS = 4096,
    WORD = 64,            /* bits */
    SPIN_NS = 20000,      /* at a barrier, before sleeping   */
    PATIENCE_NS = 2000000 /* at a barrier, for parts to begin */
};

/* Distinguishes this from an OpenMP library that creates its own threads. */
EXPORTED extern const char byoc_openmp_shim;
const char byoc_openmp_shim = 1;

/* A parallel region that is running: fn(data) runs in n parts. */
struct team {
    void (*fn)(void *data);
    void *data;
    const struct byi_omp_host *host; /* NULL: the caller runs all parts */
    uint32_t n;
    _Atomic uint32_t arrived; /* parts that wait at the barrier */
    _Atomic uint32_t passed;  /* barriers that all parts have passed */
    _Atomic uint32_t done;    /* parts that have ended */
    _Atomic int64_t at;       /* the dynamic loop's next iteration */
    _Atomic uint64_t begun[MAX_PARTS / WORD]; /* a bit for each part */
};

/* The part that a thread is running. */
struct omp_part {
    struct team *team; /* NULL: outside of any region */
    uint32_t number;
    bool has_loop;           /* the part has begun the region's dynamic loop */
    long start, incr, chunk; /* of that loop */
    int64_t trips;           /* its iterations */
};

static _Thread_local struct omp_part part;
static _Thread_local const struct byi_omp_host *current_host;
static _Atomic uint64_t max_threads_calls; /* of omp_get_max_threads() */

const struct byi_omp_host *byi_omp_use(const struct byi_omp_host *host)
{
    const struct byi_omp_host *before = current_host;
    current_host = host;
    return before;
}

uint64_t byi_omp_max_threads_calls(void)
{
    return atomic_load_explicit(&max_threads_calls, memory_order_relaxed);
}

static const struct byi_omp_host *host_here(void)
{
    return current_host ? current_host : &byi_omp_default_host;
}

/* --- regions -------------------------------------------------------------- */

/* Mark part `i` as begun. Returns whether it had not begun. */
static bool claim_part(struct team *team, uint32_t i)
{
    const uint64_t bit = UINT64_C(1) << i % WORD;
    return !(atomic_fetch_or(&team->begun[i / WORD], bit) & bit);
}

static void run_claimed(struct team *team, uint32_t i)
{
    const struct omp_part before = part;
    const struct byi_omp_host *const host = byi_omp_use(team->host);
    part = (struct omp_part){.team = team, .number = i};
    team->fn(team->data);
    part = before;
    byi_omp_use(host);
    atomic_fetch_add(&team->done, 1);
}

/* Run part `i`, unless another thread has begun it. */
static void run_part(void *arg, uint32_t i)
{
    if (claim_part(arg, i))
        run_claimed(arg, i);
}

EXPORTED void GOMP_parallel(void (*fn)(void *), void *data, unsigned n,
                            unsigned flags);
void GOMP_parallel(void (*fn)(void *), void *data, unsigned n, unsigned flags)
{
    const struct byi_omp_host *host = host_here();
    struct team team;
    (void)flags; /* a binding of threads to CPUs, which hosts ignore         */
    if (n == 0)
        n = host && !part.team ? host->threads : 1;
    team.fn = fn;
    team.data = data;
    team.host = host;
    team.n = n > MAX_PARTS ? MAX_PARTS : n;
    atomic_init(&team.arrived, 0);
    atomic_init(&team.passed, 0);
    atomic_init(&team.done, 0);
    atomic_init(&team.at, 0);
    for (uint32_t i = 0; i <= (team.n - 1) / WORD; i++)
        atomic_init(&team.begun[i], 0);
    if (team.n > 1 && host && !part.team)
        host->parallel_for(host->ctx, team.n, run_part, &team);
    else
        for (uint32_t i = 0; i < team.n; i++)
            run_part(&team, i);
    while (atomic_load(&team.done) != team.n)
        sched_yield(); /* wait for parts that run on extra threads */
}

/* --- barriers ------------------------------------------------------------- */

/* The part that an extra thread is to run. */
struct extra_thread {
    struct team *team;
    uint32_t number;
    _Atomic uint32_t was_read; /* 1: the thread has read this struct */
};

/* Run the part unless it has begun. Claims it before it sets `was_read`, for
 * which the creator of this thread waits at the barrier. Afterwards another
 * thread may run the part and end the region, which frees `team`. */
static void *run_extra(void *arg)
{
    struct extra_thread *extra = arg;
    struct team *team = extra->team;
    const uint32_t number = extra->number;
    const bool claimed = claim_part(team, number);
    atomic_store(&extra->was_read, 1);
    byi_futex_wake(&extra->was_read, 1);
    if (claimed)
        run_claimed(team, number);
    return NULL;
}

/* Start a thread for each part that has not begun. */
static void start_missing(struct team *team)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (uint32_t i = 0; i < team->n; i++) {
        struct extra_thread extra = {team, i, 0};
        pthread_t thread;
        if (atomic_load(&team->begun[i / WORD]) >> i % WORD & 1 ||
            pthread_create(&thread, NULL, run_extra, &extra) != 0)
            continue;
        pthread_detach(thread);
        while (!atomic_load(&extra.was_read))
            byi_futex_wait(&extra.was_read, 0, 0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

EXPORTED void GOMP_barrier(void);
void GOMP_barrier(void)
{
    struct team *team = part.team;
    if (!team || team->n == 1)
        return;
    const uint32_t passed = atomic_load(&team->passed);
    if (atomic_fetch_add(&team->arrived, 1) + 1 == team->n) {
        atomic_store(&team->arrived, 0);
        atomic_fetch_add(&team->passed, 1);
        byi_futex_wake(&team->passed, INT_MAX);
        return;
    }
    byi_spin_while(&team->passed, passed, SPIN_NS);
    while (atomic_load(&team->passed) == passed) {
        const uint64_t since = byi_now_ns();
        byi_futex_wait(&team->passed, passed, PATIENCE_NS);
        if (byi_now_ns() - since >= PATIENCE_NS)
            start_missing(team);
    }
}

/* --- queries -------------------------------------------------------------- */

EXPORTED int omp_get_num_threads(void);
int omp_get_num_threads(void)
{
    return part.team ? (int)part.team->n : 1;
}

EXPORTED int omp_get_thread_num(void);
int omp_get_thread_num(void)
{
    return (int)part.number;
}

EXPORTED int omp_get_max_threads(void);
int omp_get_max_threads(void)
{
    const struct byi_omp_host *host = host_here();
    atomic_fetch_add_explicit(&max_threads_calls, 1, memory_order_relaxed);
    return host ? (int)host->threads : 1;
}

EXPORTED int omp_in_parallel(void);
int omp_in_parallel(void)
{
    return part.team && part.team->n > 1;
}

byi_gomp_fn byi_omp_of_process(void)
{
    void *found = dlsym(RTLD_DEFAULT, "GOMP_parallel");
    const byi_gomp_fn parallel = (byi_gomp_fn)(uintptr_t)found;
    return parallel == GOMP_parallel ? NULL : parallel;
}

const struct byi_omp_calls byi_omp_calls = {GOMP_parallel, omp_get_num_threads,
                                            omp_get_thread_num};

/* --- the dynamic loop of a region ----------------------------------------- */

EXPORTED bool GOMP_loop_nonmonotonic_dynamic_next(long *from, long *to);
bool GOMP_loop_nonmonotonic_dynamic_next(long *from, long *to)
{
    const int64_t at = atomic_fetch_add_explicit(&part.team->at, part.chunk,
                                                 memory_order_relaxed);
    if (at >= part.trips)
        return false;
    const int64_t end = at + part.chunk;
    *from = part.start + at * part.incr;
    *to = part.start + (end < part.trips ? end : part.trips) * part.incr;
    return true;
}

EXPORTED bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end,
                                                   long incr, long chunk,
                                                   long *from, long *to);
bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long incr,
                                          long chunk, long *from, long *to)
{
    /* a second loop would share `at` */
    assert(part.team && !part.has_loop);
    part.has_loop = true;
    part.start = start;
    part.incr = incr;
    part.chunk = chunk;
    part.trips = incr > 0 ? (end - start + incr - 1) / incr
                          : (start - end - incr - 1) / -incr;
    return GOMP_loop_nonmonotonic_dynamic_next(from, to);
}

EXPORTED void GOMP_loop_end_nowait(void);
void GOMP_loop_end_nowait(void)
{
}
