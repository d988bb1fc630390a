/* SPDX-License-Identifier: Apache-2.0 */
/* signal_test.c: compares dft with its definition and its inverse, and unique
 * with loops over all pairs.
 */
#include <math.h>

#include "trial.h"

/* --- dft ------------------------------------------------------------------ */

/* The real (part 0) or imaginary part of bin k of line (o, i), by the
 * definition.
 */
static double dft_bin(const struct byi_tensor *x, int64_t length, bool inverse,
                      int64_t o, int64_t k, int64_t i, int64_t part)
{
    const int64_t c = x->dims[3];
    double sum = 0;
    for (int64_t t = 0; t < length && t < x->dims[1]; t++) {
        const int64_t at = ((o * x->dims[1] + t) * x->dims[2] + i) * c;
        const double angle = (inverse ? 2 : -2) * 3.14159265358979323846 *
                             (double)(k * t % length) / (double)length;
        const double re = byi_tensor_float(x, at);
        const double im = c == 2 ? byi_tensor_float(x, at + 1) : 0;
        sum += part ? re * sin(angle) + im * cos(angle)
                    : re * cos(angle) - im * sin(angle);
    }
    return inverse ? sum / (double)length : sum;
}

static void expect_dft(const struct trial *t, int64_t length, bool inverse,
                       double tolerance)
{
    const struct byi_tensor *x = t->in, *y = t->out;
    int64_t at[4];
    for (int64_t i = 0; i < count(y); i++) {
        unflat(y, i, at);
        const double expected =
            dft_bin(x, length, inverse, at[0], at[1], at[2], at[3]);
        if (fabs(byi_tensor_float(y, i) - expected) > tolerance)
            fail_msg("length %lld, element %lld: found %g, expected %g",
                     (long long)length, (long long)i, byi_tensor_float(y, i),
                     expected);
    }
}

static void fill(struct byi_tensor *x)
{
    for (int64_t i = 0; i < count(x); i++)
        byi_tensor_set(x, i, (double)pick(-100, 100) / 100);
}

/* Every length to 40: primes, powers, products; shorter and longer than x. */
static void test_dft(void **state)
{
    static const char *const attrs[] = {"{}", "{\"inverse\": true}",
                                        "{\"onesided\": true}"};
    (void)state;
    for (int64_t n = 1; n <= 40; n++)
        for (int kind = 0; kind < 3; kind++) {
            const int64_t dims[] = {4, n, 3, kind == 2 ? 1 : pick(1, 2)};
            const enum byoc_dtype dtype = n % 2 ? BYOC_F64 : BYOC_F32;
            struct trial t = {.n_in = 1, .in = {make(dtype, 4, dims)}};
            fill(t.in);
            must_run(&t, BYI_OP_DFT, attrs[kind]);
            assert_int_equal(t.out[0].dims[1], kind == 2 ? n / 2 + 1 : n);
            expect_dft(&t, n, kind == 1, n % 2 ? 1e-12 : 1e-5);

            const int64_t length = pick(1, 2 * n);
            t.in[t.n_in++] = ints(0, &length);
            must_run(&t, BYI_OP_DFT, attrs[kind]);
            expect_dft(&t, length, kind == 1, n % 2 ? 1e-12 : 1e-5);
        }
}

/* The inverse of a long transform gives the data back; the second one is too
 * long for several lines side by side. */
static void test_dft_inverse(void **state)
{
    static const int64_t dims[][4] = {{1, 840, 1, 2}, {3, 4110, 1, 2}};
    (void)state;
    for (size_t n = 0; n < BYI_COUNT(dims); n++) {
        struct trial t = {.n_in = 1, .in = {make(BYOC_F64, 4, dims[n])}}, back;
        fill(t.in);
        must_run(&t, BYI_OP_DFT, "{}");
        back = (struct trial){.n_in = 1, .in = {t.out[0]}};
        must_run(&back, BYI_OP_DFT, "{\"inverse\": true}");
        for (int64_t i = 0; i < count(t.in); i++)
            assert_true(fabs(byi_tensor_float(&back.out[0], i) -
                             byi_tensor_float(t.in, i)) < 1e-12);
    }
}

/* The bins of an impulse, in bfloat16, are 1. */
static void test_dft_bfloat16(void **state)
{
    const int64_t dims[] = {1, 6, 1, 1};
    struct trial t = {.n_in = 1, .in = {make(BYOC_BF16, 4, dims)}};
    (void)state;
    for (int64_t i = 0; i < 6; i++)
        byi_tensor_set(t.in, i, i == 0);
    must_run(&t, BYI_OP_DFT, "{\"axis\": -3}");
    for (int64_t i = 0; i < count(t.out); i++)
        assert_true(byi_tensor_float(t.out, i) == (i % 2 == 0));
}

/* --- unique --------------------------------------------------------------- */

/* Compare slices a and b of x (2, n, 2) along axis 1. */
static int compare(const struct byi_tensor *x, int64_t a, int64_t b)
{
    const int64_t n = x->dims[1];
    for (int64_t i = 0; i < 4; i++) {
        const double va = byi_tensor_float(x, (i / 2 * n + a) * 2 + i % 2);
        const double vb = byi_tensor_float(x, (i / 2 * n + b) * 2 + i % 2);
        if (va != vb)
            return va < vb ? -1 : 1;
    }
    return 0;
}

static void expect_unique(const struct trial *t, bool sorted)
{
    const struct byi_tensor *x = t->in, *y = t->out;
    const int64_t *indices = t->out[1].data, *inverse = t->out[2].data;
    const int64_t *counts = t->out[3].data, n = x->dims[1];
    const int64_t n_unique = y->dims[1];
    assert_int_equal(t->out[1].dims[0], n_unique);
    assert_int_equal(t->out[2].dims[0], n);
    assert_int_equal(t->out[3].dims[0], n_unique);
    for (int64_t u = 0; u < n_unique; u++) {
        int64_t n_equal = 0;
        for (int64_t i = 0; i < n; i++)
            if (compare(x, indices[u], i) == 0) {
                assert_true(i >= indices[u]); /* the first place */
                assert_int_equal(inverse[i], u);
                n_equal++;
            }
        assert_int_equal(counts[u], n_equal);
        for (int64_t i = 0; i < 4; i++)
            assert_true(
                byi_tensor_float(y, (i / 2 * n_unique + u) * 2 + i % 2) ==
                byi_tensor_float(x, (i / 2 * n + indices[u]) * 2 + i % 2));
        if (u > 0 && sorted)
            assert_true(compare(x, indices[u - 1], indices[u]) < 0);
        else if (u > 0)
            assert_true(indices[u - 1] < indices[u]);
    }
}

static void test_unique(void **state)
{
    static const enum byoc_dtype dtypes[] = {BYOC_F32, BYOC_I8, BYOC_U64,
                                             BYOC_F16, BYOC_BOOL};
    (void)state;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        const enum byoc_dtype dtype = dtypes[round % 5];
        const int64_t dims[] = {2, pick(0, 30), 2};
        const int64_t low = byi_dtype_is_signed(dtype) ? -1 : 0;
        struct trial t = {.n_in = 1, .in = {make(dtype, 3, dims)}};
        for (int64_t i = 0; i < count(t.in); i++)
            byi_tensor_set(t.in, i, (double)pick(low, 1));
        must_run(&t, BYI_OP_UNIQUE, "{\"axis\": 1}");
        expect_unique(&t, true);
        must_run(&t, BYI_OP_UNIQUE, "{\"axis\": -2, \"sorted\": false}");
        expect_unique(&t, false);
    }
}

/* All NaNs are one value, the last one; zeros of both signs are one value. */
static void test_unique_flat(void **state)
{
    const int64_t dims[] = {2, 3}, indices[] = {2, 1, 0}, counts[] = {1, 3, 2};
    const double values[] = {NAN, 0.0, -5, -0.0, NAN, 0.0};
    struct trial t = {.n_in = 1, .in = {make(BYOC_F32, 2, dims)}};
    (void)state;
    for (int64_t i = 0; i < 6; i++)
        byi_tensor_set(t.in, i, values[i]);
    must_run(&t, BYI_OP_UNIQUE, "{\"flat\": true}");
    assert_int_equal(t.out[0].dims[0], 3);
    assert_memory_equal(t.out[1].data, indices, sizeof indices);
    assert_memory_equal(t.out[3].data, counts, sizeof counts);
    assert_true(isnan(byi_tensor_float(&t.out[0], 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dft),          cmocka_unit_test(test_dft_inverse),
        cmocka_unit_test(test_dft_bfloat16), cmocka_unit_test(test_unique),
        cmocka_unit_test(test_unique_flat),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
