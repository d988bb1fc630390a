/* SPDX-License-Identifier: Apache-2.0 */
/* openmp_test.c: tests barriers of regions whose parts begin late. The part
 * that waits starts a thread for the missing one (core/base/openmp.c) while the
 * host's thread begins it too. Threads are slow to return from a futex's wake,
 * as on a busy machine.
 */
#include "core/base/openmp.h"

#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

void GOMP_parallel(void (*fn)(void *), void *data, unsigned n, unsigned flags);
void GOMP_barrier(void);

enum { PARTS = 3, REGIONS = 100, PATIENCE_US = 2000, JITTER_US = 1000 };

/* The linker redirects the runtime's calls of syscall() to __wrap_syscall(),
 * which returns late from a wake. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, void *word, long op, long value, void *limit,
                    void *other, long mask);
long __wrap_syscall(long number, void *word, long op, long value, void *limit,
                    void *other, long mask)
{
    static const struct timespec slow = {0, 3000000};
    const long result =
        __real_syscall(number, word, op, value, limit, other, mask);
    if (number == SYS_futex && op == FUTEX_WAKE_PRIVATE && value == 1)
        nanosleep(&slow, NULL);
    return result;
}

/* A part of the host's parallel loop, whose thread begins late. */
struct part {
    void (*fn)(void *, uint32_t);
    void *arg;
    uint32_t number;
    long late_us;
};

static void *run_late(void *arg)
{
    struct part *part = arg;
    const struct timespec late = {0, part->late_us * 1000};
    nanosleep(&late, NULL);
    part->fn(part->arg, part->number);
    return NULL;
}

/* A host's parallel_for whose threads begin about when a barrier stops waiting
 * and starts a thread for a missing part. */
static void late_host(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                      void *arg)
{
    unsigned *seed = ctx;
    pthread_t threads[PARTS];
    struct part parts[PARTS];
    for (uint32_t i = 1; i < n; i++) {
        parts[i] =
            (struct part){fn, arg, i, PATIENCE_US + rand_r(seed) % JITTER_US};
        assert_int_equal(pthread_create(&threads[i], NULL, run_late, &parts[i]),
                         0);
    }
    fn(arg, 0);
    for (uint32_t i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* How many parts have reached the barrier, and have passed it. */
struct count {
    _Atomic unsigned n_reached, n_passed;
};

static void meet(void *arg)
{
    struct count *count = arg;
    count->n_reached++;
    GOMP_barrier();
    assert_int_equal(count->n_reached, PARTS);
    count->n_passed++;
}

/* Overwrite the stack that the previous region used, and wait, so that a thread
 * that still uses it reads wrong data. */
static void __attribute__((noinline)) spoil_stack(void)
{
    static const struct timespec slow = {0, 4000000};
    volatile char spoiled[16384];
    for (size_t i = 0; i < sizeof spoiled; i++)
        spoiled[i] = 0;
    nanosleep(&slow, NULL);
}

static void late_parts_run_once(void **state)
{
    (void)state;
    unsigned seed = 1;
    const struct byi_omp_host host = {late_host, &seed, PARTS};
    const struct byi_omp_host *old_host = byi_omp_use(&host);
    for (int i = 0; i < REGIONS; i++) {
        struct count count = {0, 0};
        GOMP_parallel(meet, &count, PARTS, 0);
        assert_int_equal(count.n_reached, PARTS);
        assert_int_equal(count.n_passed, PARTS);
        spoil_stack();
    }
    byi_omp_use(old_host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(late_parts_run_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
