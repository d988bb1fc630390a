/* SPDX-License-Identifier: Apache-2.0 */
/* attend_test.c: tests nn.attention against the operators that it replaces. */
#include "kernels.h"
#include "tests/share.h"

/* The result of an operator. Then releases the operands whose bits are set in
 * `temporaries`. */
static struct byi_tensor apply(enum byi_op_id op, const struct byi_attr *attrs,
                               uint32_t n, const struct byi_tensor *in,
                               uint32_t n_in, unsigned temporaries)
{
    struct eval e = prepare(op, attrs, n, in, n_in);
    if (!e.typed || run_fast(&e, 1) != BYOC_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n_in; i++)
        if (temporaries >> i & 1)
            release(&e.in[i]);
    return e.out[0];
}

static struct byi_tensor scalar_tensor(double value)
{
    struct byi_tensor t = empty_tensor(BYOC_F32, 0, NULL);
    byi_tensor_set(&t, 0, value);
    return t;
}

/* softmax(scale q k + masks) v, operator by operator. If `cap` is not 0, the
 * product of q and k becomes cap tanh(scale q k). */
static struct byi_tensor compose(const struct byi_tensor *in, uint32_t n_in,
                                 double scale, bool transpose_k, double cap)
{
    const struct byi_attr transpose[] = {BOOL("transpose_b", transpose_k)};
    struct byi_tensor x[2] = {apply(BYI_OP_NN_MATMUL, transpose, 1, in, 2, 0),
                              scalar_tensor(scale)};
    x[0] = apply(BYI_OP_MULTIPLY, NULL, 0, x, 2, 3);
    if (cap != 0) {
        x[0] = apply(BYI_OP_TANH, NULL, 0, x, 1, 1);
        x[1] = scalar_tensor(cap);
        x[0] = apply(BYI_OP_MULTIPLY, NULL, 0, x, 2, 3);
    }
    for (uint32_t i = 3; i < n_in; i++) {
        x[1] = in[i];
        x[0] = apply(BYI_OP_ADD, NULL, 0, x, 2, 1);
    }
    x[0] = apply(BYI_OP_NN_SOFTMAX, NULL, 0, x, 1, 1);
    x[1] = in[2];
    return apply(BYI_OP_NN_MATMUL, NULL, 0, x, 2, 1);
}

/* Mask for each query the keys after its own. The last query's own key is the
 * last key. */
static void make_causal(struct byi_tensor *mask)
{
    const int64_t rows = mask->dims[mask->rank - 2];
    const int64_t keys = mask->dims[mask->rank - 1];
    for (int64_t i = 0; i < byi_count(mask); i++)
        byi_tensor_set(mask, i,
                       i % keys > i / keys % rows + keys - rows ? -1e9 : 0);
}

static void check_case(bool transpose, bool causal, uint32_t n_in,
                       uint32_t threads)
{
    const int64_t b = random_in(1, 2), kv = random_in(1, 3);
    const int64_t shared = random_in(1, 3), rows = random_in(1, 40);
    const int64_t keys = rows + random_in(0, 40), depth = random_in(1, 20);
    const double scale = (double)random_in(1, 8) / 16;
    const double cap = random_in(0, 1) ? 0 : (double)random_in(1, 50);
    const struct byi_attr attrs[] = {FLOAT("scale", scale),
                                     BOOL("transpose_k", transpose),
                                     FLOAT("cap", cap)};
    struct byi_tensor in[] = {
        TENSOR(BYOC_F32, b, kv, shared, rows, depth),
        TENSOR(BYOC_F32, b, kv, 1, transpose ? keys : depth,
               transpose ? depth : keys),
        TENSOR(BYOC_F32, b, kv, 1, keys, random_in(1, 20)),
        TENSOR(BYOC_F32, b, 1, 1, random_in(0, 1) || causal ? rows : 1, keys),
        TENSOR(BYOC_F32, b, kv, shared, rows, keys)};
    if (causal)
        make_causal(&in[n_in > 4 ? 4 : 3]);
    struct eval e =
        prepare(BYI_OP_NN_ATTENTION, attrs, BYI_COUNT(attrs), in, n_in);
    if (!e.typed || run_fast(&e, threads) != BYOC_OK)
        fail_msg("%s", err.text);
    struct byi_tensor expected = compose(in, n_in, scale, transpose, cap);
    /* a cap multiplies the rounding of tanh */
    const double tolerance = 2e-5 + 2e-6 * cap;
    assert_int_equal(byi_count(&expected), byi_count(&e.out[0]));
    for (int64_t i = 0; i < byi_count(&expected); i++)
        if (fabs(byi_tensor_float(&expected, i) -
                 byi_tensor_float(&e.out[0], i)) > tolerance)
            fail_msg("element %d is %g, expected %g", (int)i,
                     byi_tensor_float(&e.out[0], i),
                     byi_tensor_float(&expected, i));
    release(&expected);
    release(&e.out[0]);
    for (size_t i = 0; i < BYI_COUNT(in); i++)
        release(&in[i]);
}

static void test_equals_composition(void **state_)
{
    (void)state_;
    for (int round = 0; round < test_share_of(200); round++)
        check_case(round % 2, round % 3, 3 + (uint32_t)round % 5 % 3,
                   (uint32_t)round % 4);
}

/* A query whose mask excludes all keys gets NaN, or 0 with zero_nan. */
static void test_fully_masked_query(void **state_)
{
    (void)state_;
    for (int guard = 0; guard < 2; guard++) {
        const struct byi_attr attrs[] = {BOOL("zero_nan", guard)};
        struct byi_tensor in[] = {
            TENSOR(BYOC_F32, 3, 4), TENSOR(BYOC_F32, 5, 4),
            TENSOR(BYOC_F32, 5, 2), TENSOR(BYOC_F32, 3, 1)};
        byi_tensor_set(&in[3], 1, -INFINITY);
        struct eval e = prepare(BYI_OP_NN_ATTENTION, attrs, 1, in, 4);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        for (int i = 0; i < 6; i++) {
            const double y = byi_tensor_float(&e.out[0], i);
            assert_true(i / 2 != 1 ? isfinite(y) : guard ? y == 0 : isnan(y));
        }
        release(&e.out[0]);
        for (size_t i = 0; i < BYI_COUNT(in); i++)
            release(&in[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_composition),
        cmocka_unit_test(test_fully_masked_query)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
