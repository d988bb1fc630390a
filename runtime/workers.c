/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c: runs parallel regions on worker threads, which spin briefly, then
 * sleep on a futex.
 *
 * A run takes free workers when its turn begins and frees them when it ends, so
 * a parallel region needs no lock. Part 1 goes to the first worker, part 2 to
 * the second, and the caller runs part 0. Each worker has a state:
 *
 *              caller              worker                worker
 *     IDLE   ---------->  GIVEN  ---------->  RUNNING  ---------->  IDLE
 *     ASLEEP ---------->    | caller sleeps      | caller sleeps
 *                           v                    v
 *                        AWAITED ---------->   WAITED ----> IDLE, and wake
 *                           | caller
 *                           v
 *                          IDLE
 *
 * The transitions from GIVEN and AWAITED back to IDLE matter on a busy machine.
 * If the kernel has not scheduled a worker soon after the caller has finished
 * its own part, the caller takes the worker's part back.
 *
 * When other processes compete for the CPUs, spinning takes CPU time from them
 * and uses up this process's share. Then threads sleep at once, even the caller
 * before it takes a part back. A model of short regions runs on the caller
 * alone, since waking a thread costs tens of microseconds. Threads notice
 * competition by the time that they were runnable without running: wall time
 * less CPU time, in intervals without sleep.
 *
 * Taking parts back never deadlocks, because a barrier waits only for parts
 * that have begun, and for workers of this turn that have been given one. */
#include "workers.h"
#include "internal.h"

#include "core/base/fork.h"
#include "core/base/futex.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

/* The states of a worker; see the picture above. */
enum worker_state {
    IDLE, /* has no part, and spins */
    ASLEEP,
    GIVEN,   /* has a part that it has not begun */
    AWAITED, /* as GIVEN, and the caller sleeps */
    RUNNING,
    WAITED /* as RUNNING, and the caller sleeps */
};
enum {
    MAX_WORKERS = 1023,
    JOIN_SECONDS = 2,     /* time that unloading waits for workers to end */
    PATIENCE_NS = 300000, /* time that the caller sleeps before it takes a part
                           * back */
    WINDOW_NS = 3000000,  /* wall time over which lost time is added up */
    LOST_SHARE = 4,       /* a window is bad if a quarter of it is lost */
    CLOSE_NS = 50000000,  /* two bad windows at most this far apart mean
                           * competition */
    MIN_BUSY_NS = 100000000, /* threads sleep at once for this long */
    MAX_BUSY_NS = 1000000000,
    SHORT_TURN_NS = 50000, /* in shorter turns, reading the clock is too
                            * expensive */
    LONG_REGION_NS =
        150000, /* for longer regions, waking a thread saves time */
    /* longest time of a region that counts in the average, since some regions
     * are preempted */
    MAX_REGION_NS = 1000000
};

/* A parallel loop: calls of fn for parts 0 to n - 1. */
struct job {
    void (*fn)(void *arg, uint32_t part);
    void *arg;
    uint32_t n;
    uint32_t epoch;   /* number of forks when the job began */
    bool busy;        /* other processes compete, so do not choose the CPUs on
                       * which workers wake */
    uint64_t spin_ns; /* how long threads spin before they sleep */
    uint64_t patience_ns;  /* PATIENCE_NS, or 0: take parts back at once */
    _Atomic uint32_t next; /* the next part that a thread may take */
};

/* A worker thread. */
struct byi_worker {
    _Alignas(128) _Atomic uint32_t state;
    uint32_t part;
    struct job *job;
    struct byi_worker *next; /* of the same turn or in the free list */
    pthread_t thread;
    bool avoids_cpu; /* its mask is `cpus` without the caller's */
    cpu_set_t cpus;
};

/* The workers of this process. */
static struct {
    pthread_mutex_t lock; /* for all members that are not atomic */
    uint32_t n;           /* workers that exist */
    uint32_t requested;   /* the largest number that a model requested */
    uint32_t turns;       /* number of active turns */
    uint32_t epoch;       /* counts forks; set while only one thread exists */
    bool denied;          /* the system refused more threads */
    struct byi_worker *free;
    _Atomic uint32_t quit;
    _Atomic uint64_t busy_until; /* until then, other processes compete */
    _Atomic uint64_t busy_ns;    /* length of the busy period */
    _Atomic uint64_t bad_window; /* end of the last window in which a thread
                                  * lost much time */
    struct byi_worker workers[MAX_WORKERS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct byi_turn *current_turn;
static _Thread_local bool in_part;    /* this thread is running a part */
static _Thread_local bool lost_parts; /* this turn lost parts to a fork */

static void run_part(const struct job *job, uint32_t part)
{
    const bool was_in_part = in_part;
    in_part = true;
    job->fn(job->arg, part);
    in_part = was_in_part;
}

/* Take parts and run them until all have been taken. */
static void run_rest(struct job *job)
{
    for (;;) {
        const uint32_t part =
            atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (part >= job->n)
            return;
        run_part(job, part);
    }
}

/* Whether a part forked and this is the child, in which the workers that were
 * given parts do not exist. Parts that they had begun cannot run again, since a
 * part may change its operands. */
static bool is_in_child(const struct job *job)
{
    return job->epoch != pool.epoch;
}

enum byoc_status byi_workers_check_fork(struct byoc_error *err)
{
    if (!lost_parts)
        return BYOC_OK;
    return byi_fail(err, BYOC_ECANCELLED,
                    "this process was forked inside of a parallel region, "
                    "whose other threads exist only in the parent; end the "
                    "child without returning, or call again");
}

/* --- competition by other processes -------------------------------------- */

static struct byi_usage usage_now(void)
{
    struct timespec t;
    struct rusage thread;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    getrusage(RUSAGE_THREAD, &thread);
    return (struct byi_usage){.wall_ns = byi_now_ns(),
                              .cpu_ns = (uint64_t)t.tv_sec * 1000000000u +
                                        (uint64_t)t.tv_nsec,
                              .sleeps = thread.ru_nvcsw};
}

static bool is_busy(uint64_t now)
{
    return now < atomic_load_explicit(&pool.busy_until, memory_order_relaxed);
}

/* Two windows with much lost time, close to each other, mean that other
 * processes compete. A single window may be due to a system service that ran
 * once. */
static void note_bad_window(uint64_t now)
{
    const uint64_t last = atomic_exchange(&pool.bad_window, now);
    const uint64_t until = atomic_load(&pool.busy_until);
    if (now - last > CLOSE_NS || now < until)
        return;
    /* directly after a busy period: make the next one twice as long */
    uint64_t ns =
        now - until < CLOSE_NS ? 2 * atomic_load(&pool.busy_ns) : MIN_BUSY_NS;
    if (ns > MAX_BUSY_NS)
        ns = MAX_BUSY_NS;
    atomic_store(&pool.busy_ns, ns);
    atomic_store(&pool.busy_until, now + ns);
}

/* Add the calling thread's time since `from` to its window, unless the thread
 * slept. Returns the current usage. */
static struct byi_usage note_usage(const struct byi_usage *from)
{
    static _Thread_local uint64_t wall, cpu;
    const struct byi_usage to = usage_now();
    if (to.sleeps == from->sleeps) {
        wall += to.wall_ns - from->wall_ns;
        cpu += to.cpu_ns - from->cpu_ns;
    }
    if (wall >= WINDOW_NS) {
        if (cpu < wall - wall / LOST_SHARE)
            note_bad_window(to.wall_ns);
        wall = cpu = 0;
    }
    return to;
}

/* Note the calling thread's usage, at most once per window. Called on threads
 * of an OpenMP library, which run no code of byoc between regions. */
static void note_window(void)
{
    static _Thread_local struct byi_usage from;
    const uint64_t now = byi_now_ns();
    if (from.wall_ns == 0)
        from = usage_now();
    else if (now - from.wall_ns >= WINDOW_NS)
        from = note_usage(&from);
}

/* --- a worker ------------------------------------------------------------- */

static bool change_state(struct byi_worker *w, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&w->state, &from, to);
}

/* Run the worker's part, and set how long to spin afterwards. Returns false in
 * a child that the part forked, where this is the only thread and no caller
 * waits. */
static bool work_on(struct byi_worker *w, uint64_t *spin_ns)
{
    struct job *job = w->job;
    *spin_ns = job->spin_ns;
    run_part(job, w->part);
    if (!is_in_child(job))
        run_rest(job);
    if (is_in_child(job))
        return false;
    /* from here on the caller may return, and the job may be gone */
    if (atomic_exchange(&w->state, IDLE) == WAITED)
        byi_futex_wake(&w->state, 1);
    return true;
}

/* Sleep until a caller gives a part; then allow all CPUs again. */
static void sleep_until_given(struct byi_worker *w)
{
    while (atomic_load(&w->state) == ASLEEP && !atomic_load(&pool.quit))
        byi_futex_wait(&w->state, ASLEEP, 0);
    if (w->avoids_cpu)
        sched_setaffinity(0, sizeof w->cpus, &w->cpus);
    w->avoids_cpu = false;
}

static void *run_worker(void *arg)
{
    struct byi_worker *w = arg;
    uint64_t spin_ns = BYI_SPIN_NS;
    struct byi_usage awake = usage_now();
    pthread_setname_np(pthread_self(), "byoc-worker");
    while (!atomic_load(&pool.quit)) {
        if (change_state(w, GIVEN, RUNNING) ||
            change_state(w, AWAITED, WAITED)) {
            if (!work_on(w, &spin_ns))
                break;
            if (byi_now_ns() - awake.wall_ns >= WINDOW_NS)
                awake = note_usage(&awake);
            continue;
        }
        if (!byi_spin_while(&w->state, IDLE, spin_ns) &&
            change_state(w, IDLE, ASLEEP)) {
            sleep_until_given(w);
            awake = usage_now();
        }
    }
    return NULL;
}

/* --- the pool ------------------------------------------------------------- */

/* Create workers until there are `requested`, or the system refuses. Called
 * with the lock. */
static void make_workers(uint32_t requested)
{
    sigset_t signals, old_signals;
    if (requested > MAX_WORKERS)
        requested = MAX_WORKERS;
    if (pool.n >= requested || pool.denied)
        return;
    sigfillset(&signals);
    pthread_sigmask(
        SIG_BLOCK, &signals,
        &old_signals); /* so that signals go to the host's threads */
    while (pool.n < requested && !pool.denied) {
        struct byi_worker *w = &pool.workers[pool.n];
        atomic_store(&w->state, IDLE);
        pool.denied = pthread_create(&w->thread, NULL, run_worker, w) != 0;
        if (pool.denied)
            break;
        w->next = pool.free;
        pool.free = w;
        pool.n++;
    }
    pthread_sigmask(SIG_SETMASK, &old_signals, NULL);
}

uint32_t byi_workers_reserve(uint32_t threads)
{
    pthread_mutex_lock(&pool.lock);
    const uint32_t requested = threads ? threads - 1 : 0;
    if (requested > pool.requested)
        pool.requested = requested;
    pool.denied = false;
    make_workers(requested);
    const uint32_t n = pool.n < requested ? pool.n : requested;
    pthread_mutex_unlock(&pool.lock);
    return n + 1;
}

/* --- turns ---------------------------------------------------------------- */

/* Take free workers for the turn, as many as it requests and no more than its
 * share. Threads of another OpenMP library are only counted. Called with the
 * lock. */
static void take_workers(struct byi_turn *turn)
{
    const uint32_t requested = turn->parallelism.threads - 1;
    make_workers(requested < pool.requested ? requested : pool.requested);
    const uint32_t share = (pool.n + 1) / pool.turns;
    const uint32_t max_workers = share ? share - 1 : 0;
    if (turn->parallelism.openmp) {
        /* in a forked child, libgomp waits for the threads of its parent */
        turn->n = pool.epoch                ? 0
                  : requested < max_workers ? requested
                                            : max_workers;
        return;
    }
    while (pool.free && turn->n < requested && turn->n < max_workers) {
        struct byi_worker *w = pool.free;
        pool.free = w->next;
        w->next = turn->workers;
        turn->workers = w;
        turn->n++;
    }
}

/* Whether waking sleeping workers makes runs faster. It does for models with
 * long regions. For others it is tried from time to time, since sizes and load
 * change. */
static bool is_worth_waking(struct byi_run_times *run_times, uint64_t now)
{
    if (!run_times)
        return true;
    if (atomic_load_explicit(&run_times->region_ns, memory_order_relaxed) >=
        LONG_REGION_NS)
        return true;
    if (now < atomic_load_explicit(&run_times->probe_at, memory_order_relaxed))
        return false;
    atomic_store_explicit(&run_times->probe_at, now + MAX_BUSY_NS,
                          memory_order_relaxed);
    return true;
}

static void note_turn(const struct byi_turn *turn)
{
    struct byi_run_times *run_times = turn->parallelism.run_times;
    if (turn->measured)
        note_usage(&turn->begin);
    if (!run_times)
        return;
    atomic_store_explicit(&run_times->turn_ns,
                          byi_now_ns() - turn->begin.wall_ns,
                          memory_order_relaxed);
    if (turn->n_regions) {
        const uint64_t mean = turn->regions_ns / turn->n_regions;
        const uint64_t old_mean =
            atomic_load_explicit(&run_times->region_ns, memory_order_relaxed);
        atomic_store_explicit(&run_times->region_ns,
                              old_mean ? (3 * old_mean + mean) / 4 : mean,
                              memory_order_relaxed);
    }
}

static void run_openmp_region(void *ctx, uint32_t n,
                              void (*fn)(void *, uint32_t), void *arg)
{
    (void)ctx;
    byi_parallel_for(n, fn, arg);
}

static void begin_turn(struct byi_turn *turn)
{
    struct byi_parallelism *parallelism = &turn->parallelism;
    const bool uses_workers =
        !parallelism->parallel_for && parallelism->threads > 1;
    turn->begin.wall_ns = byi_now_ns();
    if (parallelism->adapts && is_busy(turn->begin.wall_ns))
        parallelism->spin_ns = 0;
    const bool runs_alone =
        parallelism->spin_ns == 0 &&
        (parallelism->openmp
             ? parallelism->adapts
             : !is_worth_waking(parallelism->run_times, turn->begin.wall_ns));
    turn->measured = uses_workers && parallelism->run_times &&
                     atomic_load_explicit(&parallelism->run_times->turn_ns,
                                          memory_order_relaxed) > SHORT_TURN_NS;
    if (turn->measured)
        turn->begin = usage_now();
    pthread_mutex_lock(&pool.lock);
    pool.turns++;
    turn->epoch = pool.epoch;
    lost_parts = false;
    if (uses_workers && !runs_alone)
        take_workers(turn);
    pthread_mutex_unlock(&pool.lock);
}

void byi_workers_enter(struct byi_turn *turn,
                       const struct byi_parallelism *parallelism)
{
    *turn =
        (struct byi_turn){.parallelism = *parallelism, .outer = current_turn};
    if (turn->parallelism.threads == 0)
        turn->parallelism.threads = 1;
    if (!current_turn && !in_part)
        begin_turn(turn);
    current_turn = turn;
    turn->host = (struct byi_omp_host){
        .parallel_for = run_openmp_region,
        .threads = byi_workers_of_turn(),
    };
    turn->outer_host = byi_omp_use(&turn->host);
}

void byi_workers_leave(struct byi_turn *turn)
{
    assert(current_turn == turn);
    byi_omp_use(turn->outer_host);
    current_turn = turn->outer;
    if (turn->outer || in_part)
        return;
    note_turn(turn);
    pthread_mutex_lock(&pool.lock);
    if (turn->epoch == pool.epoch) {
        pool.turns--;
        while (turn->workers) {
            struct byi_worker *w = turn->workers;
            turn->workers = w->next;
            w->next = pool.free;
            pool.free = w;
        }
    }
    pthread_mutex_unlock(&pool.lock);
}

uint32_t byi_workers_of_turn(void)
{
    if (!current_turn)
        return 0;
    return current_turn->parallelism.parallel_for
               ? current_turn->parallelism.threads
               : current_turn->n + 1;
}

/* --- a parallel region ---------------------------------------------------- */

/* Make a sleeping worker wake on another CPU than its caller's, if its mask has
 * one. Linux does not always search for an idle CPU. On a machine of few CPUs
 * it often wakes the worker on the caller's CPU, where the two then alternate.
 */
static void avoid_callers_cpu(struct byi_worker *w)
{
    const int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= CPU_SETSIZE ||
        pthread_getaffinity_np(w->thread, sizeof w->cpus, &w->cpus) != 0)
        return;
    cpu_set_t others = w->cpus;
    CPU_CLR((unsigned)cpu, &others);
    w->avoids_cpu =
        CPU_COUNT(&others) > 0 &&
        pthread_setaffinity_np(w->thread, sizeof others, &others) == 0;
}

static void assign_part(struct byi_worker *w, struct job *job, uint32_t part)
{
    w->job = job;
    w->part = part;
    if (!job->busy && atomic_load(&w->state) == ASLEEP)
        avoid_callers_cpu(w);
    if (atomic_exchange(&w->state, GIVEN) == ASLEEP)
        byi_futex_wake(&w->state, 1);
}

/* Take the part back if the worker has not begun it, at once or after sleeping
 * for the job's patience_ns. Otherwise wait until the worker has finished. */
static void finish_part(struct byi_worker *w, struct job *job)
{
    if (job->patience_ns && change_state(w, GIVEN, AWAITED))
        byi_futex_wait(&w->state, AWAITED, job->patience_ns);
    if (change_state(w, GIVEN, IDLE) || change_state(w, AWAITED, IDLE)) {
        run_part(job, w->part);
        return;
    }
    byi_spin_while(&w->state, RUNNING, job->spin_ns);
    change_state(w, RUNNING, WAITED);
    while (atomic_load(&w->state) == WAITED)
        byi_futex_wait(&w->state, WAITED, 0);
}

static void run_on_workers(struct job *job, struct byi_worker *workers)
{
    uint32_t n_parts = 1;
    for (struct byi_worker *w = workers; w && n_parts < job->n; w = w->next)
        n_parts++;
    atomic_init(&job->next, n_parts);
    struct byi_worker *w = workers;
    for (uint32_t part = 1; part < n_parts; part++, w = w->next)
        assign_part(w, job, part);
    run_part(job, 0);
    run_rest(job);
    w = workers;
    for (uint32_t part = 1; part < n_parts && !is_in_child(job); part++) {
        finish_part(w, job);
        w = w->next;
    }
    lost_parts |= n_parts > 1 && is_in_child(job);
}

static void run_openmp_thread(void *job)
{
    run_rest(job);
    note_window();
}

/* Run the job on all of the turn's threads, even if it has fewer parts, since
 * libgomp ends threads that a smaller region leaves idle. Under competition the
 * rest of the turn runs on the caller alone. libgomp's threads spin for
 * milliseconds while they wait for one that another process has displaced. */
static void run_on_openmp(struct job *job, struct byi_turn *turn, uint64_t now)
{
    if (turn->parallelism.adapts && is_busy(now))
        turn->n = 0;
    atomic_init(&job->next, 0);
    if (turn->n)
        turn->parallelism.openmp(run_openmp_thread, job, turn->n + 1, 0);
    else
        run_rest(job);
}

static void run_host_part(void *arg, uint32_t part)
{
    run_part(arg, part);
}

static void run_in_turn(struct job *job, struct byi_turn *turn)
{
    if (turn->parallelism.parallel_for) {
        turn->parallelism.parallel_for(turn->parallelism.ctx, job->n,
                                       run_host_part, job);
        return;
    }
    const uint64_t since = byi_now_ns();
    if (turn->parallelism.openmp)
        run_on_openmp(job, turn, since);
    else
        run_on_workers(job, turn->workers);
    const uint64_t ns = byi_now_ns() - since;
    if (turn->n) {
        turn->n_regions++;
        turn->regions_ns += ns < MAX_REGION_NS ? ns : MAX_REGION_NS;
    }
}

/* Reserve as many workers as a model would, for parallel regions that run
 * before the first model is loaded. */
static void reserve_default(void)
{
    static _Atomic bool reserved;
    uint32_t threads;
    if (atomic_exchange(&reserved, true))
        return;
    if (byoc_internal_threads(0, &threads, NULL) == BYOC_OK)
        byi_workers_reserve(threads);
}

void byi_parallel_for(uint32_t n, void (*fn)(void *, uint32_t), void *arg)
{
    struct job job = {.fn = fn,
                      .arg = arg,
                      .n = n,
                      .epoch = pool.epoch,
                      .spin_ns = BYI_SPIN_NS};
    if (n <= 1 || in_part) {
        for (uint32_t i = 0; i < n; i++)
            run_part(&job, i);
        return;
    }
    if (current_turn) {
        job.spin_ns = current_turn->parallelism.spin_ns;
        job.patience_ns = job.spin_ns ? 0 : PATIENCE_NS;
        job.busy = current_turn->parallelism.adapts && job.spin_ns == 0;
        run_in_turn(&job, current_turn);
        return;
    }
    struct byi_turn turn;
    const struct byi_parallelism parallelism = {
        .threads = n, .spin_ns = BYI_SPIN_NS, .adapts = true};
    reserve_default();
    byi_workers_enter(&turn, &parallelism);
    run_in_turn(&job, &turn);
    byi_workers_leave(&turn);
}

void byoc_internal_parallel_for(uint32_t n, void (*fn)(void *, uint32_t),
                                void *arg)
{
    byi_parallel_for(n, fn, arg);
}

const struct byi_omp_host byi_omp_default_host = {run_openmp_region, NULL, 1};

/* --- fork, unloading ------------------------------------------------------ */

/* Forget the workers, which a forked child does not have; it creates its own
 * when it needs them. */
static void reset_in_child(void)
{
    pool.n = 0;
    pool.turns = 0;
    pool.free = NULL;
    pool.denied = false;
    pool.epoch++;
    pthread_mutex_init(&pool.lock, NULL);
    for (struct byi_turn *turn = current_turn; turn; turn = turn->outer) {
        turn->workers = NULL;
        turn->n = 0;
        turn->host.threads = byi_workers_of_turn();
    }
}

BYI_HOLD_AT_FORK(pool.lock, reset_in_child)

/* Before the library is unloaded or the process exits, end all workers. */
static __attribute__((destructor)) void end_workers(void)
{
    struct timespec limit;
    atomic_store(&pool.quit, 1);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += JOIN_SECONDS; /* a part might never end */
    for (uint32_t i = 0; i < pool.n; i++) {
        struct byi_worker *w = &pool.workers[i];
        change_state(w, ASLEEP, IDLE);
        byi_futex_wake(&w->state, 1);
        if (!pthread_equal(w->thread, pthread_self()))
            pthread_timedjoin_np(w->thread, NULL, &limit);
    }
}
