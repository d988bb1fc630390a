/* SPDX-License-Identifier: Apache-2.0 */
/* channels_test.c: tests operators in every layout of data and weights, with
 * random windows. They are compared with the plain channels-first
 * implementation. layout_transform is compared with index arithmetic.
 */
#include "kernels.h"
#include "tests/share.h"

/* Element `at` of a tensor with the dims `dims` in layout l, as coordinates by
 * letter. */
static void coordinates(const struct byi_layout *l, const int64_t *dims,
                        int64_t at, int64_t letters[128])
{
    int64_t inner[128] = {0};
    for (uint32_t i = l->n; i-- > 0; at /= dims[i]) {
        const unsigned char c = (unsigned char)l->at[i].letter;
        if (l->at[i].block)
            inner[c] = at % dims[i];
        else
            letters[c] = at % dims[i] * byi_layout_block(l, (char)c) + inner[c];
    }
}

static int64_t position_of(const struct byi_layout *l, const int64_t *dims,
                           const int64_t letters[128])
{
    int64_t at = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const char c = l->at[i].letter;
        const int64_t block = byi_layout_block(l, c);
        const int64_t index = letters[(unsigned char)c];
        at = at * dims[i] + (l->at[i].block ? index % block : index / block);
    }
    return at;
}

/* Convert t from layout `from` to layout `to`. Returns false if blocks do not
 * divide the channels. */
static bool convert_layout(const struct byi_tensor *t, const char *from,
                           const char *to, struct byi_tensor *out)
{
    struct byi_layout f, g;
    int64_t dims[BYI_MAX_RANK], letters[128];
    assert_null(byi_layout_parse(from, &f));
    assert_null(byi_layout_parse(to, &g));
    char why[BYI_LAYOUT_WHY];
    if (!byi_layout_dims(&f, &g, t->dims, dims, why))
        return false;
    *out = empty_tensor(t->dtype, g.n, dims);
    for (int64_t i = 0; i < byi_count(out); i++) {
        coordinates(&g, dims, i, letters);
        byi_tensor_set(out, i,
                       byi_tensor_float(t, position_of(&f, t->dims, letters)));
    }
    return true;
}

/* Check that e's result in `layout` is that of `plain` in layout `first`. */
static void expect_converted(struct eval *e, const struct byi_tensor *plain,
                             const char *first, const char *layout,
                             double bound, const char *what)
{
    struct byi_tensor back;
    assert_true(e->typed);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        memset(e->out->data, 0x33,
               (size_t)byi_count(e->out) * element_size(e->out->dtype));
        if (run_fast(e, threads) != BYOC_OK)
            fail_msg("%s: %s", what, err.text);
        assert_true(convert_layout(e->out, layout, first, &back));
        assert_near(&back, plain, bound, what);
        release(&back);
    }
    finish(e);
}

static void test_transform(void **state)
{
    static const char *const layouts[] = {"NCHW",   "NHWC",    "CHWN",
                                          "NCHW2c", "NCHW4c",  "NCHW8c",
                                          "WHCN8c", "NCHW4c2n"};
    static const enum byoc_dtype dtypes[] = {BYOC_U8, BYOC_F16, BYOC_F32,
                                             BYOC_F64};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(layouts) * BYI_COUNT(layouts); i++) {
        const char *from = layouts[i % BYI_COUNT(layouts)];
        const char *to = layouts[i / BYI_COUNT(layouts)];
        const struct byi_attr attrs[] = {STRING("src_layout", from),
                                         STRING("dst_layout", to)};
        struct byi_tensor plain = TENSOR(dtypes[i % 4], 2, 8 * random_in(0, 5),
                                         random_in(1, 9), random_in(1, 40));
        struct byi_tensor x, expected;
        assert_true(convert_layout(&plain, "NCHW", from, &x));
        assert_true(convert_layout(&plain, "NCHW", to, &expected));
        struct eval e = prepare(BYI_OP_LAYOUT_TRANSFORM, attrs, 2, &x, 1);
        assert_true(e.typed);
        assert_int_equal(run_fast(&e, 2), BYOC_OK);
        assert_near(e.out, &expected, 0, to);
        release(&plain);
        release(&expected);
        finish(&e);
    }
}

/* --- windows ------------------------------------------------------------ */

/* The dims of data and weights, and the attributes of a window. */
struct shape {
    int64_t x[5], w[5];
    int64_t strides[3], padding[6], dilation[3], extra[3], groups;
};

/* How channels are divided into groups. */
enum channel_form { DENSE, GROUPED, DEPTHWISE, N_FORMS };

/* A shape whose window fits, with channels that are often multiples of 4. */
static struct shape random_shape(uint32_t n, enum channel_form channel_form,
                                 bool transposed)
{
    struct shape s = {.groups = channel_form == DENSE ? 1
                                : channel_form == GROUPED
                                    ? random_in(2, 3)
                                    : 4 * random_in(1, 9)};
    const int64_t in = channel_form == DEPTHWISE ? 1
                       : random_in(0, 1)         ? 4 * random_in(1, 5)
                                                 : random_in(1, 5);
    const int64_t out = channel_form == DEPTHWISE ? random_in(0, 3) ? 1 : 2
                        : random_in(0, 1)         ? 4 * random_in(1, 9)
                                                  : random_in(1, 5);
    const int64_t max_extent = n == 3 ? 4 : n == 2 ? 11 : 40;
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

static const char *const data_layouts[][5] = {
    {"NCW", "NWC", "NCW4c", "NCW2c", "NCW8c"},
    {"NCHW", "NHWC", "NCHW4c", "NCHW2c", "NCHW8c"},
    {"NCDHW", "NDHWC", "NCDHW4c", "NCDHW2c", "NCDHW8c"},
};
static const char *const kernel_layouts[][8] = {
    {"OIW", "WIO", "OWI", "WOI", "IOW", "OIW4i4o", "OIW1i8o", "IWO2o"},
    {"OIHW", "HWIO", "OHWI", "HWOI", "IOHW", "OIHW4i4o", "OIHW1i8o", "IHWO2o"},
    {"OIDHW", "DHWIO", "ODHWI", "DHWOI", "IODHW", "OIDHW4i4o", "OIDHW1i8o",
     "IDHWO2o"},
};

static struct eval prepare_conv(enum byi_op_id op, uint32_t n,
                                const struct shape *s, bool transposed,
                                const char *data, const char *kernel,
                                const struct byi_tensor in[2])
{
    const struct byi_attr attrs[] = {
        INTS("strides", n, s->strides),      INTS("padding", 2 * n, s->padding),
        INTS("dilation", n, s->dilation),    INT("groups", s->groups),
        STRING("data_layout", data),         STRING("kernel_layout", kernel),
        INTS("output_padding", n, s->extra),
    };
    return prepare(op, attrs, transposed ? 7 : 6, in, 2);
}

/* Check one shape in the layouts of data and weights that its channels allow,
 * or in a share of the pairs, another one in each call. Returns how many there
 * are. */
static int try_layouts(uint32_t n, const struct shape *s, bool transposed,
                       enum byi_op_id op, enum byoc_dtype dtype)
{
    static int n_calls;
    const int share = test_share();
    int n_layouts = 0;
    const char *const *data = data_layouts[n - 1];
    const char *const *kernel = kernel_layouts[n - 1];
    const char *first = kernel[transposed ? 4 : 0];
    const struct byi_tensor in[] = {tensor(dtype, n + 2, s->x),
                                    tensor(dtype, n + 2, s->w)};
    struct byi_tensor plain[MAX_OUT];
    struct eval e = prepare_conv(op, n, s, transposed, data[0], first, in);
    assert_true(e.typed);
    run_plain(&e, transposed ? byi_conv_transpose_plain : byi_conv_plain,
              plain);
    for (int i = n_calls++ % share; i < 5 * 8; i += share) {
        struct byi_tensor to[2];
        if (!convert_layout(&in[0], data[0], data[i % 5], &to[0]))
            continue;
        if (!convert_layout(&in[1], first, kernel[i / 5], &to[1])) {
            release(&to[0]);
            continue;
        }
        struct eval converted =
            prepare_conv(op, n, s, transposed, data[i % 5], kernel[i / 5], to);
        char what[64];
        snprintf(what, sizeof what, "%s, %s", data[i % 5], kernel[i / 5]);
        if (!converted.typed) { /* the result's channels do not divide */
            assert_non_null(strstr(err.text, "a multiple of the block"));
            finish(&converted);
            continue;
        }
        expect_converted(&converted, plain, data[0], data[i % 5], 1e-4, what);
        n_layouts++;
    }
    release(plain);
    finish(&e);
    return n_layouts;
}

static void test_conv(void **state)
{
    static const enum byi_op_id ops[] = {BYI_OP_NN_CONV1D, BYI_OP_NN_CONV2D,
                                         BYI_OP_NN_CONV3D};
    int n_layouts = 0;
    (void)state;
    for (int round = 0; round < 27; round++) {
        const uint32_t n = 1 + (uint32_t)round % 3;
        const enum channel_form channel_form =
            (enum channel_form)(round / 3 % N_FORMS);
        const struct shape s = random_shape(n, channel_form, false);
        n_layouts += try_layouts(n, &s, false, ops[n - 1],
                                 round % 9 == 8 ? BYOC_F64 : BYOC_F32);
    }
    assert_true(n_layouts * test_share() > 27 * 15);
}

static void test_conv_transpose(void **state)
{
    static const enum byi_op_id ops[] = {BYI_OP_NN_CONV1D_TRANSPOSE,
                                         BYI_OP_NN_CONV2D_TRANSPOSE,
                                         BYI_OP_NN_CONV3D_TRANSPOSE};
    int n_layouts = 0;
    (void)state;
    for (int round = 0; round < 27; round++) {
        const uint32_t n = 1 + (uint32_t)round % 3;
        const enum channel_form channel_form =
            (enum channel_form)(round / 3 % N_FORMS);
        const struct shape s = random_shape(n, channel_form, true);
        n_layouts += try_layouts(n, &s, true, ops[n - 1], BYOC_F32);
    }
    assert_true(n_layouts * test_share() > 27 * 15);
}

/* Shapes that fill whole tiles of the matrix product, and whose sums are
 * divided into slices between and within taps. */
static void test_conv_large(void **state)
{
    static const struct shape shapes[] = {
        {{2, 64, 12, 12}, {72, 64, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {0}, 1},
        {{1, 300, 9, 9}, {40, 300, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {0}, 1},
        {{2, 48, 17, 17}, {64, 48, 1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {0}, 1},
        {{1, 3, 40, 40}, {64, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, {0}, 1},
        {{1, 64, 10, 10}, {64, 16, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {0}, 4},
        {{1, 96, 18, 18}, {96, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {0}, 96},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(shapes); i++)
        try_layouts(2, &shapes[i], false, BYI_OP_NN_CONV2D, BYOC_F32);
}

/* With packed weights, results are near those of the plain form, and the same
 * bits with any number of threads. Winograd's algorithm may run, except with
 * `exact`, which keeps the sums of products. */
static void test_conv_packed(void **state)
{
    static const struct shape shapes[] = {
        {{2, 32, 13, 11}, {24, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {0}, 1},
        {{3, 40, 9, 9}, {48, 20, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {0}, 2},
        {{1, 3, 30, 30}, {17, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, {0}, 1},
        {{5, 24, 4, 4}, {24, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {0}, 8},
        {{2, 30, 20, 20}, {7, 30, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {0}, 1},
    };
    int n_packed = 0;
    (void)state;
    for (size_t i = 0; i < 2 * BYI_COUNT(shapes); i++) {
        const struct shape *s = &shapes[i / 2];
        const struct byi_attr attrs[] = {
            INTS("strides", 2, s->strides), INTS("padding", 4, s->padding),
            INTS("dilation", 2, s->dilation), INT("groups", s->groups)};
        const struct byi_tensor in[] = {tensor(BYOC_F32, 4, s->x),
                                        tensor(BYOC_F32, 4, s->w)};
        struct eval e = prepare(BYI_OP_NN_CONV2D, attrs, 4, in, 2);
        struct byi_tensor plain[MAX_OUT], first = {0};
        run_plain(&e, byi_conv_plain, plain);
        double maximum = 0;
        for (int64_t k = 0; k < byi_count(plain); k++)
            maximum = fmax(maximum, fabs(byi_tensor_float(plain, k)));
        for (uint32_t threads = 1; threads <= 3; threads++) {
            if (!run_packed_exact(&e, threads, i % 2))
                break; /* reads the weights as they are */
            for (int64_t k = 0; k < byi_count(plain); k++)
                assert_true(fabs(byi_tensor_float(e.out, k) -
                                 byi_tensor_float(plain, k)) <=
                            (i % 2 ? 1e-6 : 1e-5) * maximum);
            if (threads == 1) {
                first = empty_tensor(BYOC_F32, 4, e.out->dims);
                memcpy(first.data, e.out->data, byi_tensor_bytes(e.out));
            }
            assert_memory_equal(first.data, e.out->data,
                                byi_tensor_bytes(e.out));
        }
        n_packed += first.data != NULL;
        if (first.data)
            release(&first);
        release(plain);
        finish(&e);
    }
    assert_true(n_packed > 0);
}

/* --- pooling and others --------------------------------------------------- */

static void test_pool(void **state)
{
    static const enum byi_op_id ops[][2] = {
        {BYI_OP_NN_MAX_POOL1D, BYI_OP_NN_AVG_POOL1D},
        {BYI_OP_NN_MAX_POOL2D, BYI_OP_NN_AVG_POOL2D},
        {BYI_OP_NN_MAX_POOL3D, BYI_OP_NN_AVG_POOL3D},
    };
    (void)state;
    for (int round = 0; round < test_share_of(300); round++) {
        const uint32_t n = 1 + (uint32_t)round % 3;
        const struct shape s = random_shape(n, DENSE, false);
        const int mean = round / 3 % 2;
        const char *const *layouts = data_layouts[n - 1];
        struct byi_attr attrs[] = {
            INTS("pool_size", n, s.w + 2),
            INTS("strides", n, s.strides),
            INTS("padding", 2 * n, s.padding),
            INTS("dilation", n, s.dilation),
            STRING("layout", layouts[0]),
            BOOL("ceil_mode", round / 6 % 2),
            BOOL("count_include_pad", round / 12 % 2),
        };
        struct byi_tensor x = tensor(BYOC_F32, n + 2, s.x), plain[MAX_OUT];
        if (round % 5 == 0)
            byi_tensor_set(&x, random_in(0, byi_count(&x) - 1), NAN);
        struct eval e = prepare(ops[n - 1][mean], attrs, mean ? 7 : 6, &x, 1);
        run_plain(&e, byi_pool_plain, plain);
        for (int i = 1; i < 5; i++) {
            struct byi_tensor to;
            if (!convert_layout(&x, layouts[0], layouts[i], &to))
                continue;
            attrs[4].s = layouts[i];
            struct eval converted =
                prepare(ops[n - 1][mean], attrs, mean ? 7 : 6, &to, 1);
            struct byi_tensor again[MAX_OUT], back;
            run_plain(&converted, byi_pool_plain, again);
            assert_true(convert_layout(again, layouts[i], layouts[0], &back));
            assert_near(&back, plain, 0, layouts[i]);
            release(&back);
            release(again);
            expect_converted(&converted, plain, layouts[0], layouts[i], 1e-6,
                             layouts[i]);
        }
        release(plain);
        finish(&e);
    }
}

static void test_global(void **state)
{
    static const enum byi_op_id ops[] = {BYI_OP_NN_GLOBAL_MAX_POOL2D,
                                         BYI_OP_NN_GLOBAL_AVG_POOL2D};
    (void)state;
    for (int round = 0; round < test_share_of(100); round++) {
        const enum byi_op_id op = ops[round % 2];
        const char *const *layouts = data_layouts[1];
        const int64_t dims[] = {random_in(1, 3), 4 * random_in(1, 40),
                                random_in(1, 30), random_in(1, 30)};
        struct byi_tensor x = tensor(round % 7 ? BYOC_F32 : BYOC_F64, 4, dims);
        struct eval e = prepare(op, NULL, 0, &x, 1);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        for (int i = 1; i < 5; i++) {
            const struct byi_attr attrs[] = {STRING("layout", layouts[i])};
            struct byi_tensor to;
            if (!convert_layout(&x, layouts[0], layouts[i], &to))
                continue;
            struct eval converted = prepare(op, attrs, 1, &to, 1);
            expect_converted(&converted, e.out, layouts[0], layouts[i], 1e-6,
                             layouts[i]);
        }
        finish(&e);
    }
}

/* The average of float16 elements, channels last. */
static void test_float16_average(void **state)
{
    (void)state;
    const struct byi_attr attrs[] = {STRING("layout", "NHWC")};
    struct byi_tensor x = TENSOR(BYOC_F16, 1, 2, 2, 1);
    set(&x, (const double[]){1, 2, 3, 6});
    struct eval e = prepare(BYI_OP_NN_GLOBAL_AVG_POOL2D, attrs, 1, &x, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){3});
    finish(&e);
}

static void test_batch_norm(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        const enum byoc_dtype dtype = round % 4 == 3 ? BYOC_F64 : BYOC_F32;
        const int64_t c = random_in(1, 20);
        struct byi_tensor in[5] = {TENSOR(dtype, 2, c, 3, random_in(1, 9))};
        for (int i = 1; i < 5; i++)
            in[i] = tensor(dtype, 1, &c);
        for (int64_t i = 0; i < c; i++) /* a variance */
            byi_tensor_set(&in[4], i, fabs(byi_tensor_float(&in[4], i)));
        struct eval e = prepare(BYI_OP_NN_BATCH_NORM, NULL, 0, in, 5);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        for (int64_t axis = -1; axis <= 2; axis++) {
            static const char *const layouts[] = {"NHWC", "CNHW", "NCHW",
                                                  "NHCW"};
            const char *layout = layouts[axis + 1];
            const struct byi_attr attrs[] = {INT("axis", axis)};
            struct byi_tensor to[5];
            for (int i = 1; i < 5; i++)
                assert_true(convert_layout(&in[i], "C", "C", &to[i]));
            assert_true(convert_layout(&in[0], "NCHW", layout, &to[0]));
            struct eval converted =
                prepare(BYI_OP_NN_BATCH_NORM, attrs, 1, to, 5);
            expect_converted(&converted, e.out, "NCHW", layout, 1e-5, layout);
        }
        finish(&e);
    }
}

static void test_space_and_depth(void **state)
{
    static const enum byi_op_id ops[] = {BYI_OP_DEPTH_TO_SPACE,
                                         BYI_OP_SPACE_TO_DEPTH};
    (void)state;
    for (int round = 0; round < 60; round++) {
        const enum byi_op_id op = ops[round % 2];
        const int64_t b = random_in(1, 3);
        const struct byi_attr attrs[] = {
            INT("block_size", b),
            STRING("layout", "NHWC"),
            STRING("mode", round / 2 % 2 ? "CRD" : "DCR"),
        };
        struct byi_tensor to;
        struct byi_tensor x =
            TENSOR(round % 3 ? BYOC_F32 : BYOC_U8, 2, b * b * random_in(1, 4),
                   b * random_in(1, 4), b * random_in(1, 4));
        const struct byi_attr first[] = {attrs[0], attrs[2]};
        const bool depth = op == BYI_OP_DEPTH_TO_SPACE;
        struct eval e = prepare(op, first, depth ? 2 : 1, &x, 1);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        assert_true(convert_layout(&x, "NCHW", "NHWC", &to));
        struct eval converted = prepare(op, attrs, depth ? 3 : 2, &to, 1);
        expect_converted(&converted, e.out, "NCHW", "NHWC", 0, "NHWC");
        finish(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transform),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_large),
        cmocka_unit_test(test_conv_transpose),
        cmocka_unit_test(test_conv_packed),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_global),
        cmocka_unit_test(test_float16_average),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_space_and_depth),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
