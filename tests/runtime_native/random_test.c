/* SPDX-License-Identifier: Apache-2.0 */
/* random_test.c: tests random numbers: the generator gives its published
 * values, each distribution has its shape, and results depend only on the seed
 * and the draw.
 */
#include "kernels.h"

enum { COUNT = 40000 };

/* Run `op` for a shape of COUNT elements, with n attributes; `number` counts
 * the draws of a run. The caller releases the result. */
static struct byi_tensor draw(enum byi_op_id op, const struct byi_attr *attrs,
                              uint32_t n, uint64_t number, uint32_t threads)
{
    const int64_t count = COUNT;
    struct byi_tensor shape = {
        .data = (void *)(uintptr_t)&count, .dtype = BYOC_I64, .rank = 1};
    shape.dims[0] = 1;
    struct eval e = prepare(op, attrs, n, &shape, 1);
    assert_true(e.typed);
    const struct byi_call call = {.op = e.op,
                                  .attrs = e.attrs,
                                  .n_in = 1,
                                  .n_out = 1,
                                  .in = e.in,
                                  .out = e.out,
                                  .threads = threads,
                                  .draw = number};
    assert_int_equal(byi_kernel_of(op)->run(&call, &err), BYOC_OK);
    check_canary(&e.out[0]);
    return e.out[0];
}

/* Set the mean and the standard deviation. */
static void moments(const struct byi_tensor *t, double *mean, double *spread)
{
    const int64_t n = byi_count(t);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += byi_tensor_float(t, i);
        squares += byi_tensor_float(t, i) * byi_tensor_float(t, i);
    }
    *mean = sum / (double)n;
    *spread = sqrt(squares / (double)n - *mean * *mean);
}

/* Philox4x32-10 of key 0 and counter 0 is 6627e8d5 e169c58d bc57ac4c 9b00dbd8
 * (kat_vectors of the authors' Random123). */
static void test_known_answer(void **state)
{
    const struct byi_attr attrs[] = {DTYPE("dtype", BYOC_F64)};
    struct byi_tensor t = draw(BYI_OP_RANDOM_UNIFORM, attrs, 1, 0, 1);
    (void)state;
    assert_true(byi_tensor_float(&t, 0) ==
                (double)(0xe169c58d6627e8d5u >> 11) * 0x1p-53);
    assert_true(byi_tensor_float(&t, 1) ==
                (double)(0x9b00dbd8bc57ac4cu >> 11) * 0x1p-53);
    release(&t);
}

/* The same seed and draw give the same numbers, with any number of threads;
 * another draw or seed gives others. */
static void test_same_again(void **state)
{
    const struct byi_attr seed_1[] = {FLOAT("seed", 1)},
                          seed_2[] = {FLOAT("seed", 2)};
    (void)state;
    struct byi_tensor a = draw(BYI_OP_RANDOM_NORMAL, seed_1, 1, 5, 1);
    struct byi_tensor b = draw(BYI_OP_RANDOM_NORMAL, seed_1, 1, 5, 4);
    struct byi_tensor c = draw(BYI_OP_RANDOM_NORMAL, seed_1, 1, 6, 1);
    struct byi_tensor d = draw(BYI_OP_RANDOM_NORMAL, seed_2, 1, 5, 1);
    int64_t n_equal[2] = {0, 0};
    assert_memory_equal(a.data, b.data, byi_tensor_bytes(&a));
    for (int64_t i = 0; i < COUNT; i++) {
        n_equal[0] += byi_tensor_float(&a, i) == byi_tensor_float(&c, i);
        n_equal[1] += byi_tensor_float(&a, i) == byi_tensor_float(&d, i);
    }
    assert_true(n_equal[0] < 10 && n_equal[1] < 10);
    release(&a);
    release(&b);
    release(&c);
    release(&d);
}

/* Each pair of normal numbers is the Box-Muller transform of the two uniform
 * ones that the same seed and draw give. */
static void test_box_muller(void **state)
{
    const double two_pi = 2 * acos(-1);
    const struct byi_attr uniform[] = {DTYPE("dtype", BYOC_F64)};
    const struct byi_attr normal[] = {FLOAT("mean", 2), FLOAT("scale", 0.5),
                                      DTYPE("dtype", BYOC_F64)};
    (void)state;
    struct byi_tensor u = draw(BYI_OP_RANDOM_UNIFORM, uniform, 1, 7, 2);
    struct byi_tensor t = draw(BYI_OP_RANDOM_NORMAL, normal, 3, 7, 2);
    for (int64_t i = 0; i < COUNT; i += 2) {
        const double radius =
            0.5 * sqrt(-2 * log(byi_tensor_float(&u, i) + 0x1p-53));
        const double angle = two_pi * byi_tensor_float(&u, i + 1);
        const double x = byi_tensor_float(&t, i) - 2 - radius * cos(angle),
                     y = byi_tensor_float(&t, i + 1) - 2 - radius * sin(angle);
        assert_true(fabs(x) < 1e-14 && fabs(y) < 1e-14);
    }
    release(&u);
    release(&t);
}

/* Mean and spread within five standard errors, every value in range. */
static void test_moments(void **state)
{
    static const enum byoc_dtype types[] = {BYOC_F16, BYOC_BF16, BYOC_F32,
                                            BYOC_F64};
    (void)state;
    for (size_t k = 0; k < BYI_COUNT(types); k++) {
        const double bound = 5 / sqrt(COUNT) + (k < 2 ? 0.01 : 0);
        const struct byi_attr uniform[] = {FLOAT("low", -1), FLOAT("high", 3),
                                           DTYPE("dtype", types[k])};
        const struct byi_attr normal[] = {FLOAT("mean", 2), FLOAT("scale", 0.5),
                                          DTYPE("dtype", types[k])};
        double mean, spread, n_central = 0;
        struct byi_tensor t = draw(BYI_OP_RANDOM_UNIFORM, uniform, 3, k, 2);
        moments(&t, &mean, &spread);
        for (int64_t i = 0; i < COUNT; i++)
            assert_true(byi_tensor_float(&t, i) >= -1 &&
                        byi_tensor_float(&t, i) < 3);
        assert_true(fabs(mean - 1) < 2 * bound);
        assert_true(fabs(spread - 4 / sqrt(12)) < 2 * bound);
        release(&t);
        t = draw(BYI_OP_RANDOM_NORMAL, normal, 3, k, 2);
        moments(&t, &mean, &spread);
        for (int64_t i = 0; i < COUNT; i++)
            n_central += fabs(byi_tensor_float(&t, i) - 2) < 0.5;
        assert_true(fabs(mean - 2) < bound && fabs(spread - 0.5) < bound);
        assert_true(fabs(n_central / COUNT - 0.6827) < bound);
        release(&t);
    }
}

/* Classes occur in proportion to e^x; one of -infinity never does. */
static void test_multinomial(void **state)
{
    const double logits[] = {0, log(2), -INFINITY, log(5), 7, 7, 7, 7};
    const double expected[] = {1. / 8, 2. / 8, 0, 5. / 8, .25, .25, .25, .25};
    const struct byi_attr attrs[] = {INT("sample_size", COUNT),
                                     DTYPE("dtype", BYOC_I64)};
    struct byi_tensor x = TENSOR(BYOC_F32, 2, 4);
    double found[8] = {0};
    (void)state;
    set(&x, logits);
    struct eval e = prepare(BYI_OP_RANDOM_MULTINOMIAL, attrs, 2, &x, 1);
    assert_true(e.typed);
    assert_int_equal(run_fast(&e, 2), BYOC_OK);
    for (int64_t i = 0; i < 2 * COUNT; i++) {
        const int64_t c = byi_tensor_int(&e.out[0], i);
        assert_in_range(c, 0, 3);
        found[i / COUNT * 4 + c] += 1. / COUNT;
    }
    for (int i = 0; i < 8; i++)
        assert_true(fabs(found[i] - expected[i]) < 5 / sqrt(COUNT));
    assert_true(found[2] == 0);
    finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_known_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_box_muller, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_multinomial, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
