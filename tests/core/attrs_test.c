/* SPDX-License-Identifier: Apache-2.0 */
/* attrs_test.c: tests finding operators by name, completing and refusing
 * attributes, and counting the operations of a call.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"

#include <cmocka.h>

static struct byi_arena *arena;
static struct byoc_error err;

static int setup(void **state)
{
    (void)state;
    arena = byi_arena_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    byi_arena_free(&arena);
    return 0;
}

static enum byoc_status make(enum byi_op_id op, const struct byi_attr *list,
                             uint32_t n, const struct byi_attrs **attrs)
{
    err = (struct byoc_error){0};
    return byi_attrs_make(arena, byi_op(op), list, n, attrs, &err);
}

static void test_operators_by_name(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < BYI_N_OPS; i++) {
        const struct byi_op *op = byi_op((enum byi_op_id)i);
        assert_int_equal(op->id, i);
        assert_ptr_equal(byi_op_of_name(op->name, strlen(op->name)), op);
        assert_true(op->min_in <= op->max_in);
        assert_non_null(op->rule);
    }
    assert_null(byi_op_of_name("nn.conv2", 8));
    assert_null(byi_op_of_name("none", 4));
    assert_null(byi_op_of_name("", 0));
    assert_ptr_equal(byi_op_of_name("nn.conv2d(", 9), byi_op(BYI_OP_NN_CONV2D));
}

/* Every default in the table can be parsed as a value of its kind. */
static void test_every_default(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < BYI_N_OPS; i++) {
        const struct byi_op *op = byi_op((enum byi_op_id)i);
        const struct byi_attrs *attrs = NULL;
        bool required = false;
        for (uint32_t a = 0; a < op->n_attrs; a++)
            required = required || !op->attrs[a].default_text;
        assert_int_equal(make(op->id, NULL, 0, &attrs),
                         required ? BYOC_EINVAL : BYOC_OK);
        if (required)
            assert_non_null(strstr(err.text, "is missing"));
        for (uint32_t a = 0; !required && a < op->n_attrs; a++) {
            assert_string_equal(attrs->at[a].name, op->attrs[a].name);
            assert_int_equal(attrs->at[a].kind, op->attrs[a].kind);
        }
    }
}

static void test_given_values_replace_defaults(void **state)
{
    const int64_t strides[] = {2, 2};
    const struct byi_attr list[] = {
        {.name = "groups", .kind = BYI_ATTR_INT, .i = 4},
        {.name = "strides", .kind = BYI_ATTR_INTS, .n = 2, .ints = strides},
    };
    const struct byi_attrs *attrs = NULL;
    uint32_t n = 0;

    (void)state;
    assert_int_equal(make(BYI_OP_NN_CONV2D, list, 2, &attrs), BYOC_OK);
    assert_string_equal(attrs->at[0].name, "strides");
    assert_int_equal(byi_attr_int(attrs, "groups"), 4);
    assert_int_equal(byi_attr_ints(attrs, "strides", &n)[1], 2);
    assert_ptr_not_equal(byi_attr_ints(attrs, "strides", &n), strides);
    assert_int_equal(byi_attr_ints(attrs, "dilation", &n)[1], 1);
    assert_int_equal(n, 2);
    byi_attr_ints(attrs, "padding", &n);
    assert_int_equal(n, 4);
    assert_null(byi_attr_find(attrs, "alpha"));
}

static void test_values_of_defaults(void **state)
{
    const struct byi_attrs *attrs = NULL;
    uint32_t n = 7;

    (void)state;
    assert_int_equal(make(BYI_OP_CLIP, NULL, 0, &attrs), BYOC_OK);
    assert_true(byi_attr_float(attrs, "a_min") == -INFINITY);
    assert_int_equal(make(BYI_OP_NN_SELU, NULL, 0, &attrs), BYOC_OK);
    assert_true(byi_attr_float(attrs, "alpha") == 1.6732631921768188);
    assert_int_equal(make(BYI_OP_NN_GELU, NULL, 0, &attrs), BYOC_OK);
    assert_string_equal(byi_attr_string(attrs, "approximate"), "none");
    assert_int_equal(make(BYI_OP_RESIZE, NULL, 0, &attrs), BYOC_OK);
    byi_attr_floats(attrs, "roi", &n);
    assert_int_equal(n, 0);
    assert_int_equal(make(BYI_OP_FULL, NULL, 0, &attrs), BYOC_OK);
    assert_int_equal(byi_attr_int(attrs, "dtype"), BYOC_F32);
    assert_int_equal(make(BYI_OP_TOPK, NULL, 0, &attrs), BYOC_OK);
    assert_int_equal(byi_attr_int(attrs, "sorted"), 1);
    assert_int_equal(byi_attr_int(attrs, "axis"), -1);
}

static void test_integers_widen_to_floats(void **state)
{
    const int64_t ints[] = {1, 2};
    const struct byi_attr alpha[] = {
        {.name = "alpha", .kind = BYI_ATTR_INT, .i = 3}};
    const struct byi_attr roi[] = {
        {.name = "roi", .kind = BYI_ATTR_INTS, .n = 2, .ints = ints}};
    const struct byi_attr empty[] = {{.name = "roi", .kind = BYI_ATTR_STRINGS}};
    const struct byi_attrs *attrs = NULL;
    uint32_t n = 0;

    (void)state;
    assert_int_equal(make(BYI_OP_NN_ELU, alpha, 1, &attrs), BYOC_OK);
    assert_true(byi_attr_float(attrs, "alpha") == 3);
    assert_int_equal(make(BYI_OP_RESIZE, roi, 1, &attrs), BYOC_OK);
    assert_true(byi_attr_floats(attrs, "roi", &n)[1] == 2);
    assert_int_equal(make(BYI_OP_RESIZE, empty, 1, &attrs), BYOC_OK);
}

static void refuse(enum byi_op_id op, const struct byi_attr *list, uint32_t n,
                   const char *expected)
{
    const struct byi_attrs *attrs = NULL;

    assert_int_equal(make(op, list, n, &attrs), BYOC_EINVAL);
    assert_string_equal(err.text, expected);
    assert_null(attrs);
}

static void test_refused_attributes(void **state)
{
    const struct byi_attr unknown[] = {
        {.name = "beta", .kind = BYI_ATTR_INT, .i = 1}};
    const struct byi_attr string_alpha[] = {
        {.name = "alpha", .kind = BYI_ATTR_STRING, .s = "x"}};
    const struct byi_attr float_axis[] = {
        {.name = "axis", .kind = BYI_ATTR_FLOAT, .f = 1}};
    const struct byi_attr twice[] = {
        {.name = "alpha", .kind = BYI_ATTR_FLOAT, .f = 1},
        {.name = "alpha", .kind = BYI_ATTR_FLOAT, .f = 1}};
    const struct byi_attr dtype[] = {
        {.name = "dtype", .kind = BYI_ATTR_DTYPE, .i = 99}};

    (void)state;
    refuse(BYI_OP_NN_ELU, unknown, 1,
           "nn.elu: found attribute beta, expected alpha");
    refuse(BYI_OP_ADD, unknown, 1,
           "add: found attribute beta, expected no attributes");
    refuse(BYI_OP_NN_ELU, string_alpha, 1,
           "nn.elu: attribute alpha is a string, expected a float");
    refuse(BYI_OP_NN_SOFTMAX, float_axis, 1,
           "nn.softmax: attribute axis is a float, expected an integer");
    refuse(BYI_OP_NN_ELU, twice, 2,
           "nn.elu: attribute alpha is given twice, expected it once");
    refuse(BYI_OP_CAST, dtype, 1,
           "cast: attribute dtype is 99, expected a dtype");
    refuse(BYI_OP_SPLIT, NULL, 0,
           "split: attribute sizes is missing, expected a list of integers");
}

static void test_equality(void **state)
{
    const struct byi_attr nan[] = {
        {.name = "alpha", .kind = BYI_ATTR_FLOAT, .f = NAN}};
    const struct byi_attr zero[] = {
        {.name = "alpha", .kind = BYI_ATTR_FLOAT, .f = -0.0}};
    const struct byi_attr plus[] = {
        {.name = "alpha", .kind = BYI_ATTR_FLOAT, .f = 0.0}};
    const struct byi_attrs *a = NULL, *b = NULL;

    (void)state;
    make(BYI_OP_NN_ELU, nan, 1, &a);
    make(BYI_OP_NN_ELU, nan, 1, &b);
    assert_true(byi_attrs_equal(a, b));
    make(BYI_OP_NN_ELU, zero, 1, &a);
    make(BYI_OP_NN_ELU, plus, 1, &b);
    assert_false(byi_attrs_equal(a, b));
    make(BYI_OP_RESIZE, NULL, 0, &a);
    make(BYI_OP_RESIZE, NULL, 0, &b);
    assert_true(byi_attrs_equal(a, b));
    make(BYI_OP_NN_CONV2D, NULL, 0, &a);
    make(BYI_OP_NN_CONV3D, NULL, 0, &b);
    assert_false(byi_attrs_equal(a, b));
    make(BYI_OP_ADD, NULL, 0, &a);
    assert_false(byi_attrs_equal(a, b));
}

static const struct byi_type *tensor(uint32_t rank, const int64_t *dims)
{
    return byi_type_tensor(arena, BYOC_F32, rank, dims);
}

static double flops(enum byi_op_id op, const struct byi_attr *list, uint32_t n,
                    const struct byi_type *a, const struct byi_type *b,
                    const struct byi_type *out)
{
    const struct byi_type *in[] = {a, b};
    const struct byi_attrs *attrs = NULL;

    assert_int_equal(make(op, list, n, &attrs), BYOC_OK);
    return byi_op_flops(byi_op(op), attrs, in, out);
}

static void test_flops(void **state)
{
    const struct byi_type *x = tensor(4, (int64_t[]){1, 64, 56, 56});
    const struct byi_type *w = tensor(4, (int64_t[]){128, 64, 3, 3});
    const struct byi_type *y = tensor(4, (int64_t[]){1, 128, 56, 56});
    const struct byi_type *a = tensor(2, (int64_t[]){8, 5});
    const struct byi_type *b = tensor(2, (int64_t[]){8, 7});
    const struct byi_type *c = tensor(2, (int64_t[]){5, 7});
    const struct byi_type *n = tensor(2, (int64_t[]){-1, 7});
    const struct byi_attr transpose[] = {
        {.name = "transpose_a", .kind = BYI_ATTR_BOOL, .i = 1}};
    const int64_t size[] = {3, 3};
    const struct byi_attr pool[] = {
        {.name = "pool_size", .kind = BYI_ATTR_INTS, .n = 2, .ints = size}};

    (void)state;
    assert_true(flops(BYI_OP_NN_CONV2D, NULL, 0, x, w, y) ==
                2.0 * 128 * 56 * 56 * 64 * 9);
    assert_true(flops(BYI_OP_NN_MATMUL, transpose, 1, a, b, c) ==
                2.0 * 5 * 7 * 8);
    assert_true(flops(BYI_OP_NN_MAX_POOL2D, pool, 1, x, NULL, x) ==
                9.0 * 64 * 56 * 56);
    assert_true(flops(BYI_OP_ADD, NULL, 0, a, a, a) == 40);
    assert_true(flops(BYI_OP_ADD, NULL, 0, n, n, n) == 0);
    assert_true(flops(BYI_OP_FLATTEN, NULL, 0, x, NULL, x) == 0);
}

/* A convolution has the same number of operations in every layout. */
static void test_flops_of_layouts(void **state)
{
    static const struct {
        const char *data, *kernel;
        uint32_t rank[2];
        int64_t x[6], w[6], y[6];
    } cases[] = {
        {"NHWC", "HWIO", {4, 4}, {1, 8, 8, 32}, {3, 3, 32, 64}, {1, 6, 6, 64}},
        {"NCHW", "OHWI", {4, 4}, {1, 32, 8, 8}, {64, 3, 3, 32}, {1, 64, 6, 6}},
        {"NCHW16c",
         "OIHW16i16o",
         {5, 6},
         {1, 2, 8, 8, 16},
         {4, 2, 3, 3, 16, 16},
         {1, 4, 6, 6, 16}},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        const struct byi_attr layouts[] = {
            {.name = "data_layout",
             .kind = BYI_ATTR_STRING,
             .s = cases[i].data},
            {.name = "kernel_layout",
             .kind = BYI_ATTR_STRING,
             .s = cases[i].kernel},
        };
        const struct byi_type *x = tensor(cases[i].rank[0], cases[i].x);
        const struct byi_type *w = tensor(cases[i].rank[1], cases[i].w);
        const struct byi_type *y = tensor(cases[i].rank[0], cases[i].y);
        assert_true(flops(BYI_OP_NN_CONV2D, layouts, 2, x, w, y) ==
                    2.0 * 64 * 6 * 6 * 32 * 9);
    }
    const struct byi_attr first = {
        .name = "kernel_layout", .kind = BYI_ATTR_STRING, .s = "OIHW"};
    const struct byi_type *x = tensor(4, (int64_t[]){1, 8, 5, 5});
    const struct byi_type *w = tensor(4, (int64_t[]){3, 8, 2, 2});
    const struct byi_type *y = tensor(4, (int64_t[]){1, 3, 6, 6});
    assert_true(flops(BYI_OP_NN_CONV2D_TRANSPOSE, &first, 1, x, w, y) ==
                2.0 * 8 * 5 * 5 * 3 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators_by_name),
        cmocka_unit_test(test_every_default),
        cmocka_unit_test(test_given_values_replace_defaults),
        cmocka_unit_test(test_values_of_defaults),
        cmocka_unit_test(test_integers_widen_to_floats),
        cmocka_unit_test(test_refused_attributes),
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_flops_of_layouts),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
