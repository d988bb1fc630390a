/* SPDX-License-Identifier: Apache-2.0 */
/* range_test.c: tests the range that each method chooses for values whose best
 * range is known.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "quantize/model.h"

#include <cmocka.h>

enum { N = 100000 };

/* Fill `at` with values close to a normal distribution of deviation 1 (sums of
 * 12 uniform numbers), and with outliers at 100 and -50. */
static void fill(float *at)
{
    uint64_t seed = 7;
    for (int i = 0; i < N; i++) {
        double sum = -6;
        for (int k = 0; k < 12; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            sum += (double)(seed >> 40) / (1 << 24);
        }
        at[i] = (float)sum;
    }
    at[10] = 100;
    at[11] = -50;
}

/* Set *low and *high to the range that the method chooses for n values. */
static void range_of(const float *values, int n, enum byi_range_method method,
                     double percentile, float *low, float *high)
{
    const struct byi_tensor t = {.dtype = BYOC_F32,
                                 .rank = 1,
                                 .dims = {n},
                                 .data = (void *)(uintptr_t)values};
    struct quant_histogram *h = calloc(1, sizeof *h);
    byi_quant_widen(h, &t);
    byi_quant_count(h, &t);
    byi_quant_range(h, method, percentile, low, high);
    free(h);
}

/* The mean square error of rounding to 256 levels. */
static double error_of(const float *values, float low, float high)
{
    const double step = ((double)high - (double)low) / 255;
    double sum = 0;
    for (int i = 0; i < N; i++) {
        const double x =
            fmin(fmax((double)values[i], (double)low), (double)high);
        const double error = rint((x - (double)low) / step) * step +
                             (double)low - (double)values[i];
        sum += error * error;
    }
    return sum / N;
}

/* Each method finds the range that is best by its criterion. */
static void test_best_range_of_each_method(void **unused)
{
    static float values[N];
    float low, high;
    (void)unused;
    fill(values);
    range_of(values, N, BYI_RANGE_MINMAX, 0, &low, &high);
    assert_float_equal(low, -50, 0);
    assert_float_equal(high, 100, 0);
    const double full_range = error_of(values, low, high);
    /* 0.1% at each end: 3.09 deviations, and the width of a bin */
    range_of(values, N, BYI_RANGE_PERCENTILE, 99.9, &low, &high);
    assert_float_equal(low, -3.09, 0.1);
    assert_float_equal(high, 3.09, 0.1);
    /* the error of no range that is tried is smaller by more than 2 %: the
     * method computes errors from bins */
    range_of(values, N, BYI_RANGE_MSE, 0, &low, &high);
    const double best = error_of(values, low, high);
    assert_true(best < full_range);
    for (int i = 21; i <= 100; i++)
        assert_true(best <=
                    1.02 * error_of(values, -0.5f * (float)i, (float)i));
    /* all values but two are in a few bins, so that a range near the smallest
     * that is tried diverges least */
    range_of(values, N, BYI_RANGE_ENTROPY, 0, &low, &high);
    assert_true(high < 30 && high > 5 && low == -0.5f * high);
}

/* A single value, no values, and values that are not finite. */
static void test_degenerate_values(void **unused)
{
    const float same[] = {3, 3, 3}, negative[] = {-2, -1, -2},
                not_finite[] = {NAN, INFINITY, 1, -INFINITY};
    float low, high;
    (void)unused;
    for (enum byi_range_method m = BYI_RANGE_MINMAX; m <= BYI_RANGE_MSE; m++) {
        range_of(same, 3, m, 99, &low, &high);
        assert_true(low == 0 && high >= 0.6f && high <= 3);
        range_of(negative, 3, m, 99, &low, &high);
        assert_true(high == 0 && low >= -2 && low < 0);
        range_of(not_finite, 4, m, 99, &low, &high);
        assert_true(low == 0 && high >= 0.2f && high <= 1);
        range_of(not_finite, 1, m, 99, &low, &high);
        assert_true(low == 0 && high == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_range_of_each_method),
        cmocka_unit_test(test_degenerate_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
