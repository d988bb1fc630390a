/* SPDX-License-Identifier: Apache-2.0 */
/* workers_test.c: tests the CPUs on which workers wake (runtime/workers.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <cmocka.h>

#include "core/base/futex.h"
#include "runtime/workers.h"

enum { ROUNDS = 40, WAIT_NS = 1000000000 };

/* A parallel loop of two parts, the caller's and the worker's. */
struct pair {
    _Atomic uint32_t begun; /* the worker has begun its part; it sets this */
    int cpu[2];
    cpu_set_t mask;
};

static void run_part(void *arg, uint32_t part)
{
    struct pair *pair = arg;
    pair->cpu[part] = sched_getcpu();
    if (part == 0) {
        byi_spin_while(&pair->begun, 0, WAIT_NS);
        return;
    }
    sched_getaffinity(0, sizeof pair->mask, &pair->mask);
    atomic_store(&pair->begun, 1);
}

/* A worker that slept begins on another CPU than its caller's, and may use all
 * CPUs then. Other processes may move it, so a few rounds may differ. */
static void test_wakes_elsewhere(void **state)
{
    (void)state;
    const struct byi_parallelism parallelism = {.threads = 2};
    const struct timespec pause = {0, 3000000};
    cpu_set_t all_cpus;
    assert_int_equal(sched_getaffinity(0, sizeof all_cpus, &all_cpus), 0);
    if (CPU_COUNT(&all_cpus) < 2 || byi_workers_reserve(2) < 2)
        skip();
    int n_apart = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct pair pair = {.begun = 0};
        struct byi_turn turn;
        byi_workers_enter(&turn, &parallelism);
        byi_parallel_for(2, run_part, &pair);
        byi_workers_leave(&turn);
        n_apart += pair.cpu[0] != pair.cpu[1];
        if (atomic_load(&pair.begun))
            assert_true(CPU_EQUAL(&pair.mask, &all_cpus));
        nanosleep(&pause, NULL);
    }
    assert_in_range(n_apart, ROUNDS * 3 / 4, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wakes_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
