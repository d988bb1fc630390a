/* SPDX-License-Identifier: Apache-2.0 */
/* steps_test.c: tests that byi_compare_tensors() allows quantisation steps only
 * in values that were quantised to 8 bits.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "driver/feed.h"

#include <cmocka.h>

enum { N = 100 };

static const struct byi_tolerance no_steps = {.rtol = 1e-3},
                                  two_steps = {.rtol = 1e-3, .steps = 2};

static struct byi_difference difference(float *found, float *expected,
                                        const struct byi_tolerance *tolerance)
{
    const struct byi_tensor f = {
        .dtype = BYOC_F32, .rank = 1, .dims = {N}, .data = found};
    const struct byi_tensor e = {
        .dtype = BYOC_F32, .rank = 1, .dims = {N}, .data = expected};
    struct byi_difference d;
    struct byoc_error err;
    assert_int_equal(byi_compare_tensors(&f, &e, tolerance, &d, &err), BYOC_OK);
    return d;
}

/* Fill `at` with multiples of `step`, `values` different ones. */
static void fill(float *at, float step, int values)
{
    for (int i = 0; i < N; i++)
        at[i] = (float)(i % values - 20) * step;
}

static void steps_of_dequantised_values(void **unused)
{
    float found[N], expected[N];
    (void)unused;
    fill(expected, 0.0371f, N);
    fill(found, 0.0371f, N);
    found[7] += 0.0371f;
    found[8] -= 2 * 0.0371f;
    struct byi_difference d = difference(found, expected, &two_steps);
    assert_int_equal(d.n_bad, 0);
    assert_int_equal(d.n_steps, 2);
    assert_float_equal(d.step, 0.0371, 1e-6);
    assert_int_equal(difference(found, expected, &no_steps).n_bad, 2);
    found[9] += 3 * 0.0371f;
    d = difference(found, expected, &two_steps);
    assert_int_equal(d.n_bad, 1);
    assert_int_equal(d.n_steps, 2);
    found[9] = NAN;
    assert_int_equal(difference(found, expected, &two_steps).n_bad, 1);
}

/* No steps are allowed in numbers that are not multiples of a step, nor in
 * integers, few values, values over more than 255 steps, and infinities. */
static void no_steps_in_other_values(void **unused)
{
    static const struct {
        float step, off;
        int values;
    } cases[] = {
        {0.0371f, 1e-3f, N},   /* one value is between two steps   */
        {1, 0, N},             /* integers                         */
        {0.25f, 0, 8},         /* too few values                   */
        {0.0371f, 20.0f, N},   /* more than 255 steps              */
        {0.0371f, INFINITY, N} /* not finite                       */
    };
    float found[N], expected[N];
    (void)unused;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        fill(expected, cases[i].step, cases[i].values);
        expected[50] += cases[i].off;
        memcpy(found, expected, sizeof found);
        found[7] += cases[i].step;
        const struct byi_difference d = difference(found, expected, &two_steps);
        assert_int_equal(d.n_bad, 1);
        assert_int_equal(d.n_steps, 0);
    }
}

/* 8-bit integers count as quantised only if `integer_steps` says so, and if
 * there are enough different ones. */
static void integer_steps(void **unused)
{
    static const struct byi_tolerance with_integers = {
        .rtol = 1e-3, .steps = 2, .integer_steps = true};
    static const struct {
        const struct byi_tolerance *tolerance;
        int values, bad;
    } cases[] = {
        {&with_integers, N, 1}, {&two_steps, N, 3}, {&with_integers, 15, 3}};
    (void)unused;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        uint8_t found[N], expected[N];
        struct byi_difference d;
        struct byoc_error err;
        for (int k = 0; k < N; k++)
            found[k] = expected[k] = (uint8_t)(k % cases[i].values);
        found[7] += 1;
        found[8] += 2;
        found[9] += 3;
        const struct byi_tensor f = {
            .dtype = BYOC_U8, .rank = 1, .dims = {N}, .data = found};
        const struct byi_tensor e = {
            .dtype = BYOC_U8, .rank = 1, .dims = {N}, .data = expected};
        assert_int_equal(
            byi_compare_tensors(&f, &e, cases[i].tolerance, &d, &err), BYOC_OK);
        assert_int_equal(d.n_bad, cases[i].bad);
        assert_float_equal(d.largest, cases[i].values - 1, 0);
    }
}

/* Only an infinity of the same sign matches an infinity. */
static void infinities_match_only_themselves(void **unused)
{
    static const struct {
        float found, expected;
        int bad;
    } cases[] = {{INFINITY, INFINITY, 0},  {-INFINITY, -INFINITY, 0},
                 {1, INFINITY, 1},         {NAN, INFINITY, 1},
                 {-INFINITY, INFINITY, 1}, {INFINITY, 1, 1},
                 {FLT_MAX, INFINITY, 1},   {INFINITY, NAN, 1}};
    float found[N], expected[N];
    (void)unused;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        fill(expected, 1, N);
        memcpy(found, expected, sizeof found);
        found[3] = cases[i].found;
        expected[3] = cases[i].expected;
        assert_int_equal(difference(found, expected, &two_steps).n_bad,
                         cases[i].bad);
        /* and the other elements are compared as strictly as without it */
        found[60] += 1;
        assert_int_equal(difference(found, expected, &two_steps).n_bad,
                         cases[i].bad + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_dequantised_values),
        cmocka_unit_test(no_steps_in_other_values),
        cmocka_unit_test(integer_steps),
        cmocka_unit_test(infinities_match_only_themselves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
