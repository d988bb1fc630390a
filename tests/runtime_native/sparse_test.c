/* SPDX-License-Identifier: Apache-2.0 */
/* sparse_test.c: compares products with sparse weights with the plain dense
 * ones. It has random zeros, also in blocks of outputs, odd sizes, data with
 * NaN and infinities, every instruction set, packed weights and not, one thread
 * and several.
 */
#include "kernels.h"

static enum byoc_status plain_dense(const struct byi_call *call,
                                    struct byoc_error *error)
{
    struct byi_call dense = *call;
    dense.op = byi_op(BYI_OP_NN_DENSE);
    return byi_matmul_plain(&dense, error);
}

static enum byoc_status plain_conv(const struct byi_call *call,
                                   struct byoc_error *error)
{
    struct byi_call dense = *call;
    dense.op = byi_op(BYI_OP_NN_CONV2D);
    return byi_conv_plain(&dense, error);
}

/* Set weights to zero in blocks of `block` outputs, and keep about `percent` of
 * them. */
static void prune(struct byi_tensor *w, int64_t block, int64_t percent)
{
    const int64_t k = byi_count(w) / byi_max(w->dims[0], 1);
    float *at = w->data;
    for (int64_t m = 0; m < w->dims[0]; m += block)
        for (int64_t i = 0; i < k; i++) {
            const bool is_kept = random_in(1, 100) <= percent;
            for (int64_t r = m; r < byi_min(m + block, w->dims[0]); r++)
                at[r * k + i] *= is_kept ? 1.0f : 0.0f;
        }
}

static void test_dense(void **state)
{
    static const int64_t sizes[][3] = {
        /* columns, inputs, outputs */
        {1, 1, 1},    {16, 256, 4},  {17, 257, 5},   {64, 40, 7},
        {65, 600, 3}, {200, 33, 90}, {31, 1024, 66}, {128, 255, 12},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(sizes); i++)
        for (int64_t percent = 0; percent <= 100; percent += 50)
            for (int64_t block = 1; block <= 4; block += 3) {
                struct byi_tensor in[] = {
                    TENSOR(BYOC_F32, sizes[i][0], sizes[i][1]),
                    TENSOR(BYOC_F32, sizes[i][2], sizes[i][1])};
                prune(&in[1], block, percent / 2);
                struct eval e = prepare(BYI_OP_NN_SPARSE_DENSE, NULL, 0, in, 2);
                expect_plain(&e, plain_dense, 1e-3, "sparse dense");
            }
}

static void test_ranks(void **state)
{
    (void)state;
    struct byi_tensor rank_3[] = {TENSOR(BYOC_F32, 3, 11, 20),
                                  TENSOR(BYOC_F32, 6, 20)};
    prune(&rank_3[1], 1, 30);
    struct eval e = prepare(BYI_OP_NN_SPARSE_DENSE, NULL, 0, rank_3, 2);
    assert_int_equal(e.out->rank, 3);
    expect_plain(&e, plain_dense, 1e-4, "rank 3");

    struct byi_tensor no_rows[] = {TENSOR(BYOC_F32, 0, 20),
                                   TENSOR(BYOC_F32, 6, 20)};
    e = prepare(BYI_OP_NN_SPARSE_DENSE, NULL, 0, no_rows, 2);
    expect_plain(&e, plain_dense, 0, "no rows");

    struct byi_tensor float64[] = {TENSOR(BYOC_F64, 20, 9),
                                   TENSOR(BYOC_F64, 3, 9)};
    e = prepare(BYI_OP_NN_SPARSE_DENSE, NULL, 0, float64, 2);
    assert_false(run_packed(&e, 1)); /* only float32 weights are packed */
    expect_plain(&e, plain_dense, 1e-9, "float64");
}

/* Zero weights matter if the data is not finite, since 0 NaN is NaN. */
static void test_not_finite(void **state)
{
    static const float numbers[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (size_t i = 0; i < 4 * BYI_COUNT(numbers); i++) {
        struct byi_tensor in[] = {TENSOR(BYOC_F32, 130, 300),
                                  TENSOR(BYOC_F32, 10, 300)};
        prune(&in[1], 1, 10);
        float *x = in[0].data;
        x[random_in(0, 130 * 300 - 1)] = numbers[i % 3];
        x[random_in(0, 130 * 300 - 1)] = numbers[i / 4];
        struct eval e = prepare(BYI_OP_NN_SPARSE_DENSE, NULL, 0, in, 2);
        expect_plain(&e, plain_dense, 1e-3, "not finite");
    }
}

/* The sparse product gives the same bits as the dense one if the 4 outputs of
 * each block have their zeros in the same places, and the dense product adds
 * all inputs in one slice: both then add in the same order. */
static void test_same_bits(void **state)
{
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++) {
        if (!use(isa))
            continue;
        struct byi_tensor in[] = {TENSOR(BYOC_F32, 70, 256),
                                  TENSOR(BYOC_F32, 16, 256)};
        for (int64_t i = 0; i < byi_count(&in[1]); i++)
            ((float *)in[1].data)[i] += 5;
        prune(&in[1], 4, 15);
        struct eval sparse = prepare(BYI_OP_NN_SPARSE_DENSE, NULL, 0, in, 2);
        struct eval dense = prepare(BYI_OP_NN_DENSE, NULL, 0, in, 2);
        assert_true(run_packed(&sparse, 2));
        assert_true(run_packed(&dense, 2));
        assert_memory_equal(sparse.out->data, dense.out->data,
                            (size_t)byi_count(dense.out) * sizeof(float));
        release(dense.out);
        finish(&sparse);
    }
}

static void test_conv(void **state)
{
    static const struct {
        int64_t x[4], w[4], strides[2], padding[4], dilation[2];
    } cases[] = {
        {{1, 20, 9, 9}, {13, 20, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
        {{3, 300, 5, 7}, {8, 300, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
        {{2, 7, 16, 16}, {9, 7, 1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
        {{1, 11, 12, 15}, {6, 11, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {{2, 5, 17, 13}, {5, 5, 3, 2}, {2, 1}, {1, 0, 2, 1}, {1, 2}},
        {{1, 3, 3, 3}, {4, 3, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
        {{0, 3, 5, 5}, {4, 3, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    };
    (void)state;
    for (size_t i = 0; i < 3 * BYI_COUNT(cases); i++) {
        const size_t c = i / 3;
        const struct byi_attr attrs[] = {
            INTS("strides", 2, cases[c].strides),
            INTS("padding", 4, cases[c].padding),
            INTS("dilation", 2, cases[c].dilation)};
        struct byi_tensor in[] = {tensor(BYOC_F32, 4, cases[c].x),
                                  tensor(BYOC_F32, 4, cases[c].w)};
        prune(&in[1], (int64_t)(i % 3) + 1, 25);
        if (i % 3 == 2 && byi_count(&in[0]))
            ((float *)in[0].data)[byi_count(&in[0]) / 2] = NAN;
        struct eval e = prepare(BYI_OP_NN_SPARSE_CONV2D, attrs, 3, in, 2);
        expect_plain(&e, plain_conv, 1e-3, "sparse conv");
    }
}

/* Groups and other layouts run on the dense kernel. */
static void test_conv_groups(void **state)
{
    const struct byi_attr attrs[] = {INT("groups", 2)};
    struct byi_tensor in[] = {TENSOR(BYOC_F32, 1, 8, 6, 6),
                              TENSOR(BYOC_F32, 4, 4, 3, 3)};
    (void)state;
    prune(&in[1], 1, 25);
    struct eval e = prepare(BYI_OP_NN_SPARSE_CONV2D, attrs, 1, in, 2);
    assert_false(run_packed(&e, 1));
    expect_plain(&e, plain_conv, 1e-3, "groups");
}

/* Packed weights of which 95% are zero take less than a sixth of the memory of
 * dense ones. */
static void test_packed_size(void **state)
{
    (void)state;
    struct byi_tensor in[] = {TENSOR(BYOC_F32, 64, 1024),
                              TENSOR(BYOC_F32, 512, 1024)};
    prune(&in[1], 1, 5);
    struct eval e = prepare(BYI_OP_NN_SPARSE_DENSE, NULL, 0, in, 2);
    const struct byi_call call = {.op = e.op,
                                  .attrs = e.attrs,
                                  .n_in = 2,
                                  .n_out = 1,
                                  .in = e.in,
                                  .out = e.out,
                                  .threads = 1};
    const uint64_t bytes = byi_packing_of(e.op->id)->pack(&call, NULL);
    assert_in_range(bytes, 512 * 1024 / 20, 512 * 1024 * 4 / 6);
    finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),       cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_not_finite),  cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_conv),        cmocka_unit_test(test_conv_groups),
        cmocka_unit_test(test_packed_size),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
