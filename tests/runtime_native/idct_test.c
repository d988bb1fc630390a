/* SPDX-License-Identifier: Apache-2.0 */
/* idct_test.c: tests the inverse DCT of 8 points against sums in double: every
 * pattern of zeros, each axis and both, every instruction set, threads.
 */
#include "kernels.h"

/* Set coefficients to zero so that of each 8, the first `n_nonzero` stay, or
 * about `n_nonzero` random ones. */
static void zero_coefficients(struct byi_tensor *t, int64_t n_nonzero,
                              bool first)
{
    for (int64_t i = 0; i < byi_count(t); i++)
        if (first ? i % 8 >= n_nonzero : random_in(0, 7) >= n_nonzero)
            byi_tensor_set(t, i, i % 3 ? 0.0 : -0.0);
}

/* Blocks with 0 to 8 coefficients a row, both axes and each alone, odd widths,
 * against the sum in double, within 20 roundings for each of 64 coefficients.
 */
static void test_idct8(void **state)
{
    static const struct {
        uint32_t rank, n;
        int64_t dims[4], axes[2];
    } cases[] = {
        {2, 2, {8, 8}, {-1, -2}},
        {1, 1, {8}, {0}},
        {4, 2, {3, 5, 8, 8}, {-2, -1}},
        {3, 1, {7, 3, 8}, {-1}},
        {3, 1, {5, 8, 8}, {-2}},
        {3, 1, {4, 8, 13}, {1}},
        {2, 1, {8, 1}, {0}},
        {2, 1, {8, 40}, {-2}},
        {3, 2, {0, 8, 8}, {-1, -2}},
        {3, 1, {2, 8, 0}, {-2}},
        {3, 2, {300, 8, 8}, {-1, -2}},
    };
    (void)state;
    for (size_t c = 0; c < BYI_COUNT(cases); c++)
        for (int64_t n_nonzero = 0; n_nonzero < 9; n_nonzero++)
            for (int first = 0; first < 2; first++) {
                const struct byi_attr attrs[] = {
                    INTS("axes", cases[c].n, cases[c].axes)};
                struct byi_tensor x =
                    tensor(BYOC_F32, cases[c].rank, cases[c].dims);
                zero_coefficients(&x, n_nonzero, first);
                struct eval e = prepare(BYI_OP_IDCT8, attrs, 1, &x, 1);
                expect_plain(&e, byi_idct8_plain, 20 * 64 * 0x1p-24, "idct8");
            }
}

/* All 256 patterns of zeros of a row, against the sums. */
static void test_idct8_patterns(void **state)
{
    const struct byi_attr attrs[] = {INTS("axes", 1, (const int64_t[]){-1})};
    struct byi_tensor x = TENSOR(BYOC_F32, 256, 8);
    (void)state;
    for (int64_t i = 0; i < 256 * 8; i++)
        byi_tensor_set(&x, i, i / 8 >> i % 8 & 1 ? (double)(i % 8) - 9 : 0);
    struct eval e = prepare(BYI_OP_IDCT8, attrs, 1, &x, 1);
    for (int isa = 0; isa < BYI_N_ISAS; isa++) {
        if (!use(isa))
            continue;
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        for (int64_t r = 0; r < 256; r++)
            for (int64_t j = 0; j < 8; j++) {
                double expected = 0;
                for (int64_t u = 0; u < 8; u++)
                    expected += byi_tensor_float(e.in, r * 8 + u) *
                                (u ? cos((double)((2 * j + 1) * u) *
                                         3.14159265358979323846 / 16) /
                                         2
                                   : sqrt(0.125));
                assert_true(is_near(byi_tensor_float(e.out, r * 8 + j),
                                    expected, 4e-6));
            }
    }
    finish(&e);
}

/* Infinities and NaN reach their whole row, as in a product, and no other row.
 */
static void test_idct8_not_finite(void **state)
{
    const struct byi_attr attrs[] = {INTS("axes", 1, (const int64_t[]){-1})};
    struct byi_tensor x = TENSOR(BYOC_F32, 4, 8);
    (void)state;
    for (int64_t i = 0; i < 32; i++)
        byi_tensor_set(&x, i, i == 3 ? NAN : i == 18 ? INFINITY : 0);
    struct eval e = prepare(BYI_OP_IDCT8, attrs, 1, &x, 1);
    expect_plain(&e, byi_idct8_plain, 0, "idct8 not finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idct8),
        cmocka_unit_test(test_idct8_patterns),
        cmocka_unit_test(test_idct8_not_finite),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
