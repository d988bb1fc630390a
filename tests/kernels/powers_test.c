/* SPDX-License-Identifier: Apache-2.0 */
/* powers_test.c: tests the kernels' logistic function, SiLU, GELU, tanh,
 * softmax, hard sigmoid and hard swish, against float64. It bounds the errors
 * for rows of any length, with special numbers, under every instruction set of
 * the machine.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/f32.h"

#include <cmocka.h>

#include "random.h"

enum { ROW = 70 };

/* Compute n numbers of each of `rows` rows in place; numbers after them must
 * not change. */
static void run_with(enum byi_op_id id, float p0, float p1, float *x,
                     int64_t rows, int64_t n)
{
    const struct byi_f32_block block = {
        .y = x, .ld = ROW, .rows = rows, .n = n};
    for (int64_t r = 0; r < rows; r++)
        x[r * ROW + n] = 7.0f;
    byi_f32_kernels()->unary[id](&block, p0, p1);
    for (int64_t r = 0; r < rows; r++)
        assert_true(x[r * ROW + n] == 7.0f);
}

static void run(enum byi_op_id id, float p0, float *x, int64_t rows, int64_t n)
{
    run_with(id, p0, 0, x, rows, n);
}

/* The function's value. Sets *error to the largest error that is allowed. */
static double expected_of(enum byi_op_id id, bool by_tanh, double x,
                          double *error)
{
    const double logistic = 1 / (1 + exp(-x));
    if (id == BYI_OP_TANH) {
        *error = 5e-7 * fabs(tanh(x));
        return tanh(x);
    }
    if (by_tanh) {
        *error = 4e-7 * fabs(x);
        return x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
    }
    if (id == BYI_OP_NN_GELU) {
        *error = 2e-7 * fabs(x);
        return x * (1 + erf(x / sqrt(2))) / 2;
    }
    const double expected = id == BYI_OP_NN_SILU ? x * logistic : logistic;
    *error = 3e-7 * fabs(expected);
    return expected;
}

static void check_numbers(enum byi_op_id id, bool by_tanh)
{
    for (float from = -87.0f; from < 100.0f; from += 0.05f) {
        float x[2 * ROW], y[2 * ROW];
        const int64_t n = 1 + draw(ROW - 1);
        for (int i = 0; i < 2 * ROW; i++)
            x[i] = y[i] = from + 0.05f * (float)draw(1000) / 1000.0f;
        run(id, by_tanh, y, 2, n);
        for (int64_t i = 0; i < 2 * n; i++) {
            const int64_t at = i / n * ROW + i % n;
            double error;
            const double expected =
                expected_of(id, by_tanh, (double)x[at], &error);
            assert_true(fabs((double)y[at] - expected) <= error);
        }
    }
}

static void check_special(enum byi_op_id id)
{
    const bool silu = id == BYI_OP_NN_SILU;
    float x[ROW] = {NAN, INFINITY, -1e38f, -100.0f, 1e38f, 0.0f, -0.0f};
    run(id, 0, x, 1, 7);
    assert_true(isnan(x[0]));
    assert_true(x[1] == (silu ? INFINITY : 1.0f));
    assert_true(fabsf(x[2]) < 2e-36f && fabsf(x[3]) < 2e-36f);
    assert_true(x[4] == (silu ? 1e38f : 1.0f));
    assert_true(x[5] == (silu ? 0.0f : 0.5f));
    assert_true(x[6] == (silu ? 0.0f : 0.5f));
}

/* tanh near zero and where it reaches 1, which it must not exceed. */
static void check_tanh(void)
{
    float x[ROW] = {NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 1e-30f, -0.0f};
    run(BYI_OP_TANH, 0, x, 1, 7);
    assert_true(isnan(x[0]));
    assert_true(x[1] == 1 && x[2] == -1 && x[3] == 1 && x[4] == -1);
    assert_true(fabsf(x[5] - 1e-30f) <= 1e-36f);
    assert_true(x[6] == 0 && signbit(x[6]));
    for (float from = -10.0f; from < 10.0f; from += 1e-4f) {
        float y = from, near_zero = from * 1e-4f;
        run(BYI_OP_TANH, 0, memcpy(x, &y, sizeof y), 1, 1);
        assert_true(fabsf(x[0]) <= 1);
        run(BYI_OP_TANH, 0, memcpy(x, &near_zero, sizeof near_zero), 1, 1);
        assert_true(fabs((double)x[0] - tanh((double)near_zero)) <=
                    5e-7 * fabs((double)near_zero));
    }
}

static void check_special_gelu(float by_tanh)
{
    float x[ROW] = {NAN, INFINITY, -1e38f, -100.0f, 1e38f, 0.0f, -0.0f};
    run(BYI_OP_NN_GELU, by_tanh, x, 1, 7);
    assert_true(isnan(x[0]));
    assert_true(x[1] == INFINITY && x[4] == 1e38f);
    assert_true(fabsf(x[2]) < 2e-36f && fabsf(x[3]) < 2e-36f);
    assert_true(x[5] == 0 && x[6] == 0);
    assert_true(signbit(x[6]) && !signbit(x[5]));
}

/* Softmax of one row, in place or not, against float64. */
static void check_softmax_row(const float *x, int64_t n, bool in_place)
{
    float y[ROW];
    double sum = 0, maximum = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        maximum = fmax(maximum, (double)x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - maximum);
    memcpy(y, x, sizeof y);
    y[n] = 7.0f;
    byi_f32_kernels()->softmax[0](in_place ? y : x, y, n);
    assert_true(y[n] == 7.0f);
    for (int64_t i = 0; i < n; i++) {
        const double expected = exp((double)x[i] - maximum) / sum;
        assert_true(fabs((double)y[i] - expected) <= 3e-6 * expected + 2e-38);
    }
    memcpy(y, x, sizeof y);
    y[n] = 7.0f;
    byi_f32_kernels()->softmax[1](in_place ? y : x, y, n);
    assert_true(y[n] == 7.0f);
    for (int64_t i = 0; i < n; i++) {
        const double expected = (double)x[i] - maximum - log(sum);
        assert_true((double)y[i] == expected ||
                    fabs((double)y[i] - expected) <= 3e-6 - 3e-7 * expected);
    }
}

static void check_softmax(void)
{
    float x[ROW], y[2];
    for (int i = 0; i < 2000; i++) {
        const float spread = i % 2 ? 10.0f : 1e4f;
        for (int k = 0; k < ROW; k++)
            x[k] = ((float)draw(2001) / 1000.0f - 1) * spread;
        if (i % 3 == 0) /* masked elements */
            x[0] = -INFINITY;
        check_softmax_row(x, 2 + draw(ROW - 3), i % 4 < 2);
    }
    const float special[][2] = {{NAN, 0}, {0, NAN}, {INFINITY, 0}};
    for (size_t i = 0; i < BYI_COUNT(special); i++) {
        for (int log = 0; log < 2; log++) {
            byi_f32_kernels()->softmax[log](special[i], y, 2);
            assert_true(isnan(y[0]) && (isnan(y[1]) || i == 2));
        }
    }
}

/* Hard sigmoid with slope 0.2 and shift 0.5, and hard swish. */
static void check_hard(bool swish)
{
    const enum byi_op_id id =
        swish ? BYI_OP_NN_HARD_SWISH : BYI_OP_NN_HARD_SIGMOID;
    const double slope = swish ? 1.0 / 6 : 0.2;
    for (int64_t n = 1; n < ROW; n++) {
        float x[2 * ROW], y[2 * ROW];
        for (int i = 0; i < 2 * ROW; i++)
            x[i] = y[i] = (float)draw(1000) / 100.0f - 5.0f;
        y[n - 1] = NAN;
        run_with(id, 0.2f, 0.5f, y, 2, n);
        assert_true(isnan(y[n - 1]));
        for (int64_t i = 0; i < 2 * n; i++) {
            const int64_t at = i / n * ROW + i % n;
            const double v = fmin(fmax(slope * (double)x[at] + 0.5, 0), 1);
            const double expected = swish ? v * (double)x[at] : v;
            assert_true(at == n - 1 || fabs((double)y[at] - expected) <= 1e-6);
        }
    }
}

static void test_powers(void **state)
{
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(isas); i++) {
        setenv("BYOC_MAX_ISA", isas[i], 1);
        check_numbers(BYI_OP_SIGMOID, false);
        check_numbers(BYI_OP_NN_SILU, false);
        check_special(BYI_OP_SIGMOID);
        check_special(BYI_OP_NN_SILU);
        for (int by_tanh = 0; by_tanh < 2; by_tanh++) {
            check_numbers(BYI_OP_NN_GELU, by_tanh);
            check_special_gelu((float)by_tanh);
        }
        check_numbers(BYI_OP_TANH, false);
        check_tanh();
        check_softmax();
        check_hard(false);
        check_hard(true);
    }
    unsetenv("BYOC_MAX_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_powers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
