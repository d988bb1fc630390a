/* SPDX-License-Identifier: Apache-2.0 */
/* window_test.c: tests convolution, its transpose and pooling. Every fast path
 * is compared with the plain form for random windows, and the plain forms with
 * numbers computed by hand. Also tests half precision. */
#include "kernels.h"
#include "tests/share.h"

/* The shape of a convolution or pooling: dims of data and weights, and the
 * window; `extra` is output_padding. */
struct shape {
    int64_t x[5], w[5];
    int64_t strides[3], padding[6], dilation[3], extra[3], groups;
};

/* A random window over n spatial axes that fits. */
static struct shape random_shape(uint32_t n, bool transposed)
{
    struct shape s = {.groups = random_in(1, 3)};
    const int64_t in = random_in(1, 3), out = random_in(1, 5);
    const int64_t max_extent = n == 3 ? 6 : n == 2 ? 13 : 40;
    s.x[0] = random_in(1, 2);
    s.x[1] = in * s.groups;
    s.w[0] = transposed ? s.x[1] : out * s.groups;
    s.w[1] = transposed ? out : in;
    for (uint32_t i = 0; i < n; i++) {
        s.w[2 + i] = random_in(1, 4);
        s.strides[i] = random_in(1, 3);
        s.dilation[i] = random_in(1, 2);
        const int64_t extent = (s.w[2 + i] - 1) * s.dilation[i];
        s.padding[i] = random_in(0, transposed ? extent / 2 : 3);
        s.padding[n + i] = random_in(0, transposed ? extent / 2 : 3);
        s.x[2 + i] = random_in(extent + 1, extent + max_extent);
        s.extra[i] = random_in(0, s.strides[i] - 1);
    }
    return s;
}

static const enum byi_op_id convs[] = {BYI_OP_NN_CONV1D, BYI_OP_NN_CONV2D,
                                       BYI_OP_NN_CONV3D};
static const enum byi_op_id conv_transposes[] = {BYI_OP_NN_CONV1D_TRANSPOSE,
                                                 BYI_OP_NN_CONV2D_TRANSPOSE,
                                                 BYI_OP_NN_CONV3D_TRANSPOSE};

static struct eval prepare_conv(enum byi_op_id op, uint32_t n,
                                enum byoc_dtype dtype, const struct shape *s,
                                bool transposed)
{
    const struct byi_attr attrs[] = {
        INTS("strides", n, s->strides),      INTS("padding", 2 * n, s->padding),
        INTS("dilation", n, s->dilation),    INT("groups", s->groups),
        INTS("output_padding", n, s->extra),
    };
    const struct byi_tensor in[] = {tensor(dtype, n + 2, s->x),
                                    tensor(dtype, n + 2, s->w)};
    return prepare(op, attrs, transposed ? 5 : 4, in, 2);
}

static void test_conv(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(240); round++) {
        const uint32_t n = 1 + (uint32_t)round % 3;
        const struct shape s = random_shape(n, false);
        struct eval e = prepare_conv(convs[n - 1], n, BYOC_F32, &s, false);
        expect_plain(&e, byi_conv_plain, 1e-4, "conv");
    }
}

/* Make the window square, with stride 1 or 2, for which there is special code.
 */
static void make_square(struct shape *s)
{
    const int64_t side = random_in(2, 5), stride = random_in(1, 2);
    for (uint32_t i = 0; i < 2; i++) {
        s->w[2 + i] = side;
        s->strides[i] = stride;
        s->dilation[i] = 1;
        s->x[2 + i] = random_in(1, 20) + side - 1;
    }
}

/* The algorithm of a convolution whose weights are not packed. */
static const char *algorithm_of(const struct shape *s)
{
    struct eval e = prepare_conv(BYI_OP_NN_CONV2D, 2, BYOC_F32, s, false);
    const struct byi_call call = {.op = e.op,
                                  .attrs = e.attrs,
                                  .n_in = e.n_in,
                                  .n_out = e.n_out,
                                  .in = e.in,
                                  .out = e.out,
                                  .threads = 1};
    const char *name = byi_algorithm_of(&call);
    finish(&e);
    return name;
}

/* Weights that are not packed before the run are transformed only if there are
 * many positions. */
static void test_unpacked(void **state)
{
    (void)state;
    for (int64_t side = 8; side <= 32; side += 24) {
        const struct shape s = {.x = {1, 32, side, side},
                                .w = {32, 32, 3, 3},
                                .strides = {1, 1},
                                .padding = {1, 1, 1, 1},
                                .dilation = {1, 1},
                                .groups = 1};
        assert_non_null(
            strstr(algorithm_of(&s), side == 8 ? "direct" : "winograd"));
    }
}

/* Depthwise convolutions of channels-first images run on planes, without copies
 * to channels last; large windows only if there are few channels. */
static void test_planes(void **state)
{
    static const struct {
        struct shape s;
        bool planes;
    } cases[] = {
        {{{1, 32, 20, 20}, {32, 1, 3, 3}, {1, 1}, {1}, {1, 1}, {0}, 32}, true},
        {{{1, 32, 20, 20}, {32, 1, 3, 3}, {2, 2}, {0}, {2, 2}, {0}, 32}, true},
        {{{1, 1, 20, 20}, {5, 1, 3, 3}, {1, 1}, {1}, {1, 1}, {0}, 1}, true},
        {{{1, 8, 20, 20}, {8, 1, 9, 9}, {1, 1}, {1}, {1, 1}, {0}, 8}, true},
        {{{1, 32, 20, 20}, {32, 1, 9, 9}, {1, 1}, {1}, {1, 1}, {0}, 32}, false},
        {{{1, 32, 20, 20}, {32, 1, 3, 3}, {3, 3}, {0}, {1, 1}, {0}, 32}, false},
        {{{1, 32, 20, 20}, {32, 2, 3, 3}, {1, 1}, {0}, {1, 1}, {0}, 16}, false},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++)
        assert_int_equal(strcmp(algorithm_of(&cases[i].s), "planes") == 0,
                         cases[i].planes);
}

/* Give the shape a larger window of any stride, on images that are wide enough
 * for several vectors. */
static void enlarge(struct shape *s)
{
    const int64_t max_sizes[] = {14, 17};
    for (uint32_t i = 0; i < 2; i++) {
        s->w[2 + i] = random_in(1, max_sizes[i]);
        s->strides[i] = random_in(1, 9);
        s->padding[i] = random_in(0, s->w[2 + i] - 1);
        s->padding[2 + i] = random_in(0, s->w[2 + i] - 1);
        const int64_t extent = (s->w[2 + i] - 1) * s->dilation[i];
        s->x[2 + i] = extent + random_in(1, i ? 90 : 25);
    }
}

static void test_large_depthwise(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(120); round++) {
        struct shape s = random_shape(2, false);
        enlarge(&s);
        s.strides[1] = random_in(1, 2);
        s.groups = s.x[1] = random_in(1, 12);
        s.w[0] = s.groups * random_in(1, 3);
        s.w[1] = 1;
        struct eval e = prepare_conv(BYI_OP_NN_CONV2D, 2, BYOC_F32, &s, false);
        expect_plain(&e, byi_conv_plain, 1e-4, "depthwise conv, large window");
    }
}

/* Groups of one input channel and one or several outputs, on images wide enough
 * for the vectors of every instruction set. */
static void test_depthwise(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(240); round++) {
        struct shape s = random_shape(2, false);
        if (round % 2)
            make_square(&s);
        s.groups = random_in(2, round % 3 ? 5 : 40);
        s.x[1] = s.groups;
        if (round % 5)
            s.x[3] += random_in(0, 60);
        s.w[0] = s.groups * (round % 4 ? random_in(1, 4) : 1);
        s.w[1] = 1;
        struct eval e = prepare_conv(BYI_OP_NN_CONV2D, 2, BYOC_F32, &s, false);
        expect_plain(&e, byi_conv_plain, 1e-4, "depthwise conv");
    }
}

/* Planes that are small enough to run side by side, and more than a vector has
 * lanes. */
static void test_small_planes(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(120); round++) {
        struct shape s = random_shape(2, false);
        if (round % 2)
            make_square(&s);
        s.groups = s.x[1] = s.w[0] = random_in(4, 50);
        s.w[1] = 1;
        for (uint32_t i = 2; i < 4 && round % 2; i++)
            s.x[i] = random_in(s.w[i], s.w[i] + 11);
        struct eval e = prepare_conv(BYI_OP_NN_CONV2D, 2, BYOC_F32, &s, false);
        expect_plain(&e, byi_conv_plain, 1e-4, "conv of small planes");
    }
}

/* Planes of 7 x 7, with which many networks end and for which there is special
 * code. Every fourth time, they have another padding or size, which that code
 * does not support. */
static void test_depthwise_7x7(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(40); round++) {
        struct shape s = {
            {random_in(1, 2), 0, 7, 7},
            {0, 1, 3, 3},
            {1, 1},
            {1, 1, 1, 1},
            {1, 1},
            {0},
            random_in(4, 40),
        };
        s.x[1] = s.groups;
        s.w[0] = s.groups * (round % 5 ? 1 : 2);
        if (round % 4 == 0)
            s.padding[random_in(0, 3)] = random_in(0, 2);
        if (round % 8 == 4)
            s.x[random_in(2, 3)] = random_in(5, 9);
        struct eval e = prepare_conv(BYI_OP_NN_CONV2D, 2, BYOC_F32, &s, false);
        expect_plain(&e, byi_conv_plain, 1e-4, "conv of last planes");
    }
}

/* One output position and one tap: a product of weights and a vector, also in
 * groups. */
static void test_one_position(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(40); round++) {
        const int64_t groups = round % 2 ? 1 : random_in(2, 4);
        const int64_t in = random_in(1, 40), out = random_in(1, 300);
        const struct shape s = {
            {random_in(1, 3), in * groups, 1, 1},
            {out * groups, in, 1, 1},
            {1, 1},
            {0},
            {1, 1},
            {0},
            groups,
        };
        struct eval e = prepare_conv(BYI_OP_NN_CONV2D, 2, BYOC_F32, &s, false);
        expect_plain(&e, byi_conv_plain, 1e-4, "conv of one position");
    }
}

/* Padding and stride of 2^30: the padded copy of the direct form would exceed
 * any memory, and must not be made. */
static void test_huge_padding(void **state)
{
    const int64_t huge = 1 << 30;
    const struct shape s = {
        {1, 2, 2, 2}, {2, 1, 1, 1}, {huge, 1}, {huge, 0, huge, 0},
        {1, 1},       {0},          2};
    (void)state;
    struct eval e = prepare_conv(BYI_OP_NN_CONV2D, 2, BYOC_F32, &s, false);
    expect_plain(&e, byi_conv_plain, 1e-6, "conv with huge padding");
}

/* More than one tile of the product along each axis. */
static void test_conv_large(void **state)
{
    static const struct shape shapes[] = {
        {{1, 40, 30, 31}, {37, 40, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {0}, 1},
        {{2, 300, 5, 7}, {301, 300, 1, 1}, {1, 1}, {0}, {1, 1}, {0}, 1},
        {{1, 64, 9, 9}, {64, 32, 3, 3}, {2, 2}, {1, 0, 0, 1}, {1, 1}, {0}, 2},
        {{1, 3, 65, 65}, {33, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, {0}, 1},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(shapes); i++) {
        struct eval e =
            prepare_conv(BYI_OP_NN_CONV2D, 2, BYOC_F32, &shapes[i], false);
        expect_plain(&e, byi_conv_plain, 1e-3, "large conv");
    }
}

static void test_conv_transpose(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(240); round++) {
        const uint32_t n = 1 + (uint32_t)round % 3;
        const struct shape s = random_shape(n, true);
        struct eval e =
            prepare_conv(conv_transposes[n - 1], n, BYOC_F32, &s, true);
        expect_plain(&e, byi_conv_transpose_plain, 1e-4, "conv_transpose");
    }
}

/* Every other element type gives the results of float64, for numbers that are
 * exact in it. */
static void test_dtypes(void **state)
{
    static const enum byoc_dtype dtypes[] = {
        BYOC_F16, BYOC_BF16, BYOC_F64, BYOC_I8, BYOC_I16, BYOC_I32, BYOC_I64};
    (void)state;
    for (size_t d = 0; d < BYI_COUNT(dtypes); d++)
        for (int transposed = 0; transposed < 2; transposed++) {
            const struct shape s = {{1, 4, 6, 5},
                                    {transposed ? 4 : 2, 2, 3, 2},
                                    {2, 1},
                                    {1, 0, 0, 1},
                                    {1, 1},
                                    {0},
                                    2};
            const enum byi_op_id op =
                transposed ? BYI_OP_NN_CONV2D_TRANSPOSE : BYI_OP_NN_CONV2D;
            struct eval e = prepare_conv(op, 2, dtypes[d], &s, transposed);
            struct eval wide = prepare_conv(op, 2, BYOC_F64, &s, transposed);
            for (uint32_t o = 0; o < 2; o++)
                for (int64_t i = 0; i < byi_count(&e.in[o]); i++) {
                    const double v = (double)random_in(-2, 2);
                    byi_tensor_set(&e.in[o], i, v);
                    byi_tensor_set(&wide.in[o], i, v);
                }
            assert_int_equal(run_fast(&e, 2), BYOC_OK);
            assert_int_equal(run_fast(&wide, 1), BYOC_OK);
            for (int64_t i = 0; i < byi_count(e.out); i++)
                assert_true(byi_tensor_float(e.out, i) ==
                            byi_tensor_float(wide.out, i));
            finish(&e);
            finish(&wide);
        }
}

/* Results computed by hand: asymmetric padding, stride, dilation. */
static void test_by_hand(void **state)
{
    (void)state;
    const struct shape s = {{1, 1, 4}, {1, 1, 2}, {2}, {1, 0}, {2}, {0}, 1};
    struct eval e = prepare_conv(BYI_OP_NN_CONV1D, 1, BYOC_F32, &s, false);
    set(&e.in[0], (const double[]){1, 2, 3, 4});
    set(&e.in[1], (const double[]){10, 1});
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    assert_int_equal(e.out->dims[2], 2); /* at -1, 1 and at 1, 3 */
    expect(e.out, (const double[]){2, 24});
    finish(&e);

    const struct shape t = {{1, 1, 2}, {1, 1, 3}, {2}, {1, 0}, {1}, {1}, 1};
    e = prepare_conv(BYI_OP_NN_CONV1D_TRANSPOSE, 1, BYOC_F32, &t, true);
    set(&e.in[0], (const double[]){1, 2});
    set(&e.in[1], (const double[]){3, 4, 5});
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    /* the sum 3 4 5+6 8 10, without its first element because of the padding,
     * and with a 0 at the end because of output_padding */
    assert_int_equal(e.out->dims[2], 5);
    expect(e.out, (const double[]){4, 11, 8, 10, 0});
    finish(&e);
}

/* --- pooling ------------------------------------------------------------ */

static struct eval prepare_pool(enum byi_op_id op, uint32_t n,
                                const struct shape *s,
                                const struct byi_attr *pool_attrs,
                                uint32_t n_pool_attrs, struct byi_tensor x)
{
    struct byi_attr attrs[8] = {
        INTS("pool_size", n, s->w + 2),
        INTS("strides", n, s->strides),
        INTS("padding", 2 * n, s->padding),
        INTS("dilation", n, s->dilation),
    };
    for (uint32_t i = 0; i < n_pool_attrs; i++)
        attrs[4 + i] = pool_attrs[i];
    return prepare(op, attrs, 4 + n_pool_attrs, &x, 1);
}

static void test_pool(void **state)
{
    static const enum byi_op_id ops[][2] = {
        {BYI_OP_NN_MAX_POOL1D, BYI_OP_NN_AVG_POOL1D},
        {BYI_OP_NN_MAX_POOL2D, BYI_OP_NN_AVG_POOL2D},
        {BYI_OP_NN_MAX_POOL3D, BYI_OP_NN_AVG_POOL3D},
    };
    static const enum byoc_dtype other_dtypes[] = {
        BYOC_F64, BYOC_U8,  BYOC_I8,  BYOC_U16, BYOC_I16,
        BYOC_U32, BYOC_I32, BYOC_U64, BYOC_I64};
    (void)state;
    for (int round = 0; round < test_share_of(400); round++) {
        const uint32_t n = 1 + (uint32_t)round % 3;
        struct shape s = random_shape(n, false);
        const int mean = round / 3 % 2;
        if (n == 2 && round / 3 % 4 > 1) {
            make_square(&s);
            for (uint32_t i = 0; i < 4; i++)
                s.padding[i] = random_in(0, s.w[2] - 1);
            s.x[3] += random_in(0, 40);
        }
        const struct byi_attr pool_attrs[] = {
            BOOL("ceil_mode", round / 6 % 2),
            BOOL("count_include_pad", round / 12 % 2),
        };
        if (round % 4 == 0) /* enough channels for planes side by side */
            s.x[1] = random_in(16, 36);
        const enum byoc_dtype dtype =
            mean || round % 7 > 2
                ? BYOC_F32
                : other_dtypes[(size_t)round % BYI_COUNT(other_dtypes)];
        struct byi_tensor x = tensor(dtype, n + 2, s.x);
        if (round % 5 == 0 && byi_dtype_is_float(dtype))
            byi_tensor_set(&x, random_in(0, byi_count(&x) - 1), NAN);
        struct eval e =
            prepare_pool(ops[n - 1][mean], n, &s, pool_attrs, mean ? 2 : 1, x);
        expect_plain(&e, byi_pool_plain, 1e-6, mean ? "mean" : "maximum");
    }
}

static void test_large_pool(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(240); round++) {
        struct shape s = random_shape(2, false);
        const int mean = round % 2;
        enlarge(&s);
        s.x[1] = random_in(1, 20);
        const struct byi_attr pool_attrs[] = {
            BOOL("ceil_mode", round / 2 % 2),
            BOOL("count_include_pad", round / 4 % 2),
        };
        struct byi_tensor x = tensor(BYOC_F32, 4, s.x);
        if (round % 5 == 0)
            byi_tensor_set(&x, random_in(0, byi_count(&x) - 1), NAN);
        struct eval e =
            prepare_pool(mean ? BYI_OP_NN_AVG_POOL2D : BYI_OP_NN_MAX_POOL2D, 2,
                         &s, pool_attrs, mean ? 2 : 1, x);
        expect_plain(&e, byi_pool_plain, 2e-6, mean ? "mean" : "maximum");
    }
}

/* Averages do not count positions that only ceil_mode adds; they count padding
 * if count_include_pad is set. */
static void test_mean_by_hand(void **state)
{
    static const double expected[2][3] = {{1, 2.5, 4}, {0.5, 2.5, 4}};
    (void)state;
    for (int include = 0; include < 2; include++) {
        const struct shape s = {{1, 1, 4}, {1, 1, 2}, {2}, {1, 0}, {1}, {0}, 1};
        const struct byi_attr pool_attrs[] = {
            BOOL("ceil_mode", 1), BOOL("count_include_pad", include)};
        struct byi_tensor x = TENSOR(BYOC_F32, 1, 1, 4);
        set(&x, (const double[]){1, 2, 3, 4});
        struct eval e =
            prepare_pool(BYI_OP_NN_AVG_POOL1D, 1, &s, pool_attrs, 2, x);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        assert_int_equal(e.out->dims[2], 3);
        expect(e.out, expected[include]);
        finish(&e);
    }
}

/* In ceil_mode the only window may be larger than the data; otherwise such a
 * window gives an empty result. */
static void test_window_larger_than_data(void **state)
{
    static const double means[] = {1.5};
    (void)state;
    for (int ceil_mode = 0; ceil_mode < 2; ceil_mode++) {
        const struct shape s = {{1, 1, 2}, {1, 1, 3}, {2}, {0, 0}, {1}, {0}, 1};
        const struct byi_attr pool_attrs[] = {BOOL("ceil_mode", ceil_mode),
                                              BOOL("count_include_pad", 1)};
        struct byi_tensor x = TENSOR(BYOC_F32, 1, 1, 2);
        set(&x, (const double[]){1, 2});
        struct eval e =
            prepare_pool(BYI_OP_NN_AVG_POOL1D, 1, &s, pool_attrs, 2, x);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        assert_int_equal(e.out->dims[2], ceil_mode);
        expect(e.out, means);
        finish(&e);
    }
}

/* Indices with ties, NaN, and rows of more outputs than run at a time. */
static void test_fast_indices(void **state)
{
    (void)state;
    for (int round = 0; round < test_share_of(240); round++) {
        const uint32_t n = 1 + (uint32_t)round % 3;
        struct shape s = random_shape(n, false);
        s.x[1 + n] += round % 6 ? random_in(0, 40) : 600;
        struct byi_tensor x = tensor(BYOC_F32, n + 2, s.x);
        for (int64_t i = 0; i < byi_count(&x); i++)
            byi_tensor_set(&x, i, (double)random_in(0, 5));
        for (int i = 0; i < round % 4; i++)
            byi_tensor_set(&x, random_in(0, byi_count(&x) - 1), NAN);
        struct eval e =
            prepare_pool(BYI_OP_NN_MAX_POOL_INDICES, n, &s, NULL, 0, x);
        expect_plain(&e, byi_pool_plain, 0, "indices of maxima");
    }
}

static void test_indices(void **state)
{
    (void)state;
    for (int column = 0; column < 2; column++) {
        const struct shape s = {{1, 2, 2, 2}, {1, 1, 2, 1}, {1, 1}, {0},
                                {1, 1},       {0},          1};
        const struct byi_attr pool_attrs[] = {BOOL("column_major", column)};
        struct byi_tensor x = TENSOR(BYOC_F32, 1, 2, 2, 2);
        set(&x, (const double[]){9, 8, 1, 2, 7, 7, 7, 3});
        struct eval e =
            prepare_pool(BYI_OP_NN_MAX_POOL_INDICES, 2, &s, pool_attrs, 1, x);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        expect(&e.out[0], (const double[]){9, 8, 7, 7});
        const int64_t *at = e.out[1].data;
        const int64_t row[] = {0, 1, 4, 5}, col[] = {0, 2, 4, 6};
        for (int i = 0; i < 4; i++)
            assert_int_equal(at[i], column ? col[i] : row[i]);
        finish(&e);
    }
}

static void test_global(void **state)
{
    static const struct {
        enum byi_op_id op;
        double expected[2];
    } cases[] = {
        {BYI_OP_NN_GLOBAL_MAX_POOL1D, {2, 4}},
        {BYI_OP_NN_GLOBAL_AVG_POOL1D, {0, 1}},
        {BYI_OP_NN_GLOBAL_LP_POOL, {2.8284271, 5.0990195}},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct byi_tensor x = TENSOR(BYOC_F32, 1, 2, 3);
        set(&x, (const double[]){-2, 0, 2, 4, -3, 1});
        if (cases[i].op == BYI_OP_NN_GLOBAL_AVG_POOL1D)
            byi_tensor_set(&x, 5, 2);
        struct eval e = prepare(cases[i].op, NULL, 0, &x, 1);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        expect(e.out, cases[i].expected);
        finish(&e);
    }
}

/* A window of 2^31 taps over little data takes time in proportion to the data.
 */
static void test_huge_window(void **state)
{
    (void)state;
    const int64_t huge = INT32_MAX;
    const struct shape s = {{1, 1, 2, 2},
                            {1, 1, huge, huge},
                            {huge, huge},
                            {huge, huge, huge, huge},
                            {1, 1},
                            {0},
                            1};
    struct byi_tensor x = TENSOR(BYOC_F32, 1, 1, 2, 2);
    set(&x, (const double[]){1, 2, 3, 4});
    struct eval e = prepare_pool(BYI_OP_NN_AVG_POOL2D, 2, &s, NULL, 0, x);
    assert_true(e.typed);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    finish(&e);
}

static void test_unsupported(void **state)
{
    (void)state;
    const struct shape s = {{1, 1, 4}, {1, 1, 2}, {1}, {0}, {1}, {0}, 1};
    struct eval e = prepare_pool(BYI_OP_NN_AVG_POOL1D, 1, &s, NULL, 0,
                                 TENSOR(BYOC_I32, 1, 1, 4));
    assert_true(e.typed);
    assert_int_equal(run_fast(&e, 1), BYOC_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "int32"));
    finish(&e);

    e = prepare_conv(BYI_OP_NN_CONV1D, 1, BYOC_F32, &s, false);
    e.in[0].dtype = e.in[1].dtype = e.out->dtype = BYOC_BOOL;
    assert_int_equal(run_fast(&e, 1), BYOC_EUNSUPPORTED);
    e.in[0].dtype = e.in[1].dtype = e.out->dtype = BYOC_F32;
    finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_large_depthwise),
        cmocka_unit_test(test_unpacked),
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_small_planes),
        cmocka_unit_test(test_depthwise_7x7),
        cmocka_unit_test(test_one_position),
        cmocka_unit_test(test_huge_padding),
        cmocka_unit_test(test_conv_large),
        cmocka_unit_test(test_conv_transpose),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_large_pool),
        cmocka_unit_test(test_mean_by_hand),
        cmocka_unit_test(test_window_larger_than_data),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_fast_indices),
        cmocka_unit_test(test_global),
        cmocka_unit_test(test_huge_window),
        cmocka_unit_test(test_unsupported),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
