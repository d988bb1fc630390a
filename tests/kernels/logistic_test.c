/* SPDX-License-Identifier: Apache-2.0 */
/* logistic_test.c: the kernels' logistic function and SiLU, under every
 * instruction set that the machine has, against float64: the relative error for
 * rows of any length, and special numbers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "kernels/f32.h"

#include <cmocka.h>

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

enum { ROW = 70 };

/* Compute n numbers of each of `rows` rows in place; those behind must stay. */
static void run(enum byi_op_id id, float *x, int64_t rows, int64_t n)
{
    const struct byi_f32_part part = {.y = x, .ld = ROW, .rows = rows, .n = n};
    for (int64_t r = 0; r < rows; r++)
        x[r * ROW + n] = 7.0f;
    byi_f32_kernels()->unary[id](&part, 0, 0);
    for (int64_t r = 0; r < rows; r++)
        assert_true(x[r * ROW + n] == 7.0f);
}

static void check_numbers(enum byi_op_id id)
{
    for (float from = -87.0f; from < 100.0f; from += 0.05f) {
        float x[2 * ROW], y[2 * ROW];
        const int64_t n = 1 + draw(ROW - 1);
        for (int i = 0; i < 2 * ROW; i++)
            x[i] = y[i] = from + 0.05f * (float)draw(1000) / 1000.0f;
        run(id, y, 2, n);
        for (int64_t i = 0; i < 2 * n; i++) {
            const int64_t at = i / n * ROW + i % n;
            double want = 1 / (1 + exp(-(double)x[at]));
            if (id == BYI_OP_NN_SILU)
                want *= (double)x[at];
            assert_true(fabs((double)y[at] - want) <= 4e-7 * fabs(want));
        }
    }
}

static void check_special(enum byi_op_id id)
{
    const bool silu = id == BYI_OP_NN_SILU;
    float x[ROW] = {NAN, INFINITY, -1e38f, -100.0f, 1e38f, 0.0f, -0.0f};
    run(id, x, 1, 7);
    assert_true(isnan(x[0]));
    assert_true(x[1] == (silu ? INFINITY : 1.0f));
    assert_true(fabsf(x[2]) < 2e-36f && fabsf(x[3]) < 2e-36f);
    assert_true(x[4] == (silu ? 1e38f : 1.0f));
    assert_true(x[5] == (silu ? 0.0f : 0.5f));
    assert_true(x[6] == (silu ? 0.0f : 0.5f));
}

static void test_logistic(void **state)
{
    static const char *const levels[] = {"sse2", "avx2", "avx512"};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(levels); i++) {
        setenv("BYOC_MAX_ISA", levels[i], 1);
        check_numbers(BYI_OP_SIGMOID);
        check_numbers(BYI_OP_NN_SILU);
        check_special(BYI_OP_SIGMOID);
        check_special(BYI_OP_NN_SILU);
    }
    unsetenv("BYOC_MAX_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logistic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
