/* SPDX-License-Identifier: Apache-2.0 */
/* seed_test.c: tests that runs of conform with different seeds share no
 * samples, however close the seeds are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conform/kit.h"

enum { SEEDS = 10, NUMBERS = 20000 };

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The seed of a sample also depends on the kind of sample, such as "chain",
 * since the samples of each kind are numbered from 0. */
static void test_sample_seeds_are_distinct(void **state)
{
    static uint64_t seeds[2 * SEEDS * NUMBERS];
    size_t n = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct byi_kit kit = {.seed = seed};
        for (uint64_t number = 0; number < NUMBERS; number++) {
            seeds[n++] = byi_kit_seed(&kit, "chain", number);
            seeds[n++] = byi_kit_seed(&kit, "region", number);
        }
    }
    qsort(seeds, n, sizeof *seeds, compare);
    for (size_t i = 1; i < n; i++)
        assert_true(seeds[i - 1] != seeds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample_seeds_are_distinct)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
