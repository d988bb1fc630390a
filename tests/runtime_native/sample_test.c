/* SPDX-License-Identifier: Apache-2.0 */
/* sample_test.c: compares image.grid_sample, which uses tables of positions and
 * weights, with sums in double. It has every mode and padding, grids that reach
 * far outside, NaN, every instruction set, and tables made in advance and
 * during the run.
 */
#include "kernels.h"

static const char *const modes[] = {"nearest", "bilinear", "bicubic"};
static const char *const paddings[] = {"zeros", "border", "reflection"};

static struct eval prepare_sample(const int64_t *x, const int64_t *grid,
                                  enum byoc_dtype dtype, int variant)
{
    const struct byi_attr attrs[] = {
        STRING("mode", modes[variant % 3]),
        STRING("padding_mode", paddings[variant / 3 % 3]),
        BOOL("align_corners", variant / 9 % 2)};
    struct byi_tensor in[] = {tensor(BYOC_F32, 4, x), tensor(dtype, 4, grid)};
    for (int64_t i = 0; i < byi_count(&in[1]); i++) /* -4 .. 4 before */
        byi_tensor_set(&in[1], i,
                       byi_tensor_float(&in[1], i) * (i % 3 ? 0.3 : 0.6));
    return prepare(BYI_OP_GRID_SAMPLE, attrs, 3, in, 2);
}

static void test_sizes(void **state)
{
    static const struct {
        int64_t x[4], grid[4];
    } cases[] = {
        {{1, 2, 5, 7}, {1, 3, 4, 2}},    {{2, 3, 9, 4}, {2, 17, 16, 2}},
        {{1, 1, 1, 1}, {1, 2, 3, 2}},    {{1, 4, 1, 6}, {1, 40, 1, 2}},
        {{1, 0, 4, 4}, {1, 3, 3, 2}},    {{0, 2, 4, 4}, {0, 3, 3, 2}},
        {{1, 2, 4, 4}, {1, 0, 3, 2}},    {{1, 5, 33, 20}, {1, 30, 31, 2}},
        {{2, 2, 9, 12}, {2, 70, 63, 2}}, {{2, 8, 9, 12}, {2, 70, 63, 2}},
        {{1, 19, 5, 7}, {1, 30, 31, 2}}, {{1, 300, 3, 2}, {1, 3, 5, 2}},
        {{0, 9, 4, 4}, {0, 3, 3, 2}},    {{1, 9, 0, 4}, {1, 3, 3, 2}},
    };
    (void)state;
    for (size_t c = 0; c < BYI_COUNT(cases); c++)
        for (int variant = 0; variant < 18; variant++) {
            struct eval e =
                prepare_sample(cases[c].x, cases[c].grid,
                               c % 2 ? BYOC_F64 : BYOC_F32, variant);
            expect_plain(&e, byi_grid_sample_plain, 2e-5, "grid_sample");
        }
}

/* Coordinates that are NaN or far away, and pixels that are NaN. */
static void test_not_finite(void **state)
{
    static const float numbers[] = {NAN,    INFINITY, -INFINITY, 1e30f,
                                    -1e30f, 1,        -1};
    (void)state;
    for (int variant = 0; variant < 18; variant++) {
        struct eval e = prepare_sample(DIMS(1, variant % 2 ? 2 : 8, 6, 5),
                                       DIMS(1, 8, 9, 2), BYOC_F32, variant);
        float *x = e.in[0].data, *grid = e.in[1].data;
        for (size_t i = 0; i < BYI_COUNT(numbers); i++)
            grid[5 * i] = numbers[i];
        x[0] = NAN;
        x[17] = INFINITY;
        expect_plain(&e, byi_grid_sample_plain, 2e-5, "odd numbers");
    }
}

/* -1.5 is rounded to -2, then reflected to 1; the other order would give 0. */
static void test_halfway(void **state)
{
    const struct byi_attr attrs[] = {STRING("mode", "nearest"),
                                     STRING("padding_mode", "reflection"),
                                     BOOL("align_corners", 0)};
    struct byi_tensor in[] = {tensor(BYOC_F32, 4, DIMS(1, 1, 1, 4)),
                              tensor(BYOC_F32, 4, DIMS(1, 1, 1, 2))};
    (void)state;
    set(&in[0], (double[]){10, 20, 30, 40});
    set(&in[1], (double[]){-1.5, 0});
    struct eval e = prepare(BYI_OP_GRID_SAMPLE, attrs, 3, in, 2);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(&e.out[0], (double[]){20});
    finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_not_finite),
                                       cmocka_unit_test(test_halfway)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
