/* SPDX-License-Identifier: Apache-2.0 */
/* qnn_test.c: tests products of 8-bit integers. The kernels of every
 * instruction set must compute the bits of the plain form, for random shapes
 * with zero points and numbers at the ends of their types. The plain form is
 * compared with loops over 64-bit integers, and with numbers computed by hand.
 */
#include "kernels.h"

enum { X, WEIGHTS, X_ZERO, WEIGHTS_ZERO, BIAS, SCALE, ZERO, OPERANDS };

/* --- operands ------------------------------------------------------------- */

static enum byoc_dtype random_byte_type(void)
{
    return random_in(0, 1) ? BYOC_I8 : BYOC_U8;
}

/* Random numbers of 8 bits; now and then only the ends of the type. */
static struct byi_tensor random_bytes(enum byoc_dtype dtype, uint32_t rank,
                                      const int64_t *dims)
{
    struct byi_tensor t = empty_tensor(dtype, rank, dims);
    const bool ends = random_in(0, 4) == 0;
    const int64_t low = dtype == BYOC_I8 ? INT8_MIN : 0;
    for (int64_t i = 0; i < byi_count(&t); i++)
        byi_tensor_set(&t, i,
                       (double)(ends ? low + 255 * random_in(0, 1)
                                     : low + random_in(0, 255)));
    return t;
}

/* One number, or one for each channel. */
static struct byi_tensor scalar_or_vector(enum byoc_dtype dtype,
                                          int64_t channels)
{
    const bool is_scalar = random_in(0, 1);
    if (dtype == BYOC_I8 || dtype == BYOC_U8)
        return random_bytes(dtype, is_scalar ? 0 : 1, &channels);
    struct byi_tensor t = empty_tensor(dtype, is_scalar ? 0 : 1, &channels);
    for (int64_t i = 0; i < byi_count(&t); i++)
        byi_tensor_set(&t, i,
                       dtype == BYOC_F32 ? (double)random_in(1, 99) / 8192
                                         : (double)random_in(-9999, 9999));
    return t;
}

/* Set the operands after x and the weights. Returns the number of operands. */
static uint32_t add_operands(struct byi_tensor *in, int64_t channels)
{
    const uint32_t n = (uint32_t)random_in(BIAS, OPERANDS);
    in[X_ZERO] = random_bytes(in[X].dtype, 0, NULL);
    in[WEIGHTS_ZERO] = scalar_or_vector(in[WEIGHTS].dtype, channels);
    if (random_in(0, 1)) /* the usual type of weights */
        memset(in[WEIGHTS_ZERO].data, 0, (size_t)byi_count(&in[WEIGHTS_ZERO]));
    if (n > BIAS)
        in[BIAS] = scalar_or_vector(BYOC_I32, channels);
    if (n > SCALE)
        in[SCALE] = scalar_or_vector(BYOC_F32, channels);
    if (n > ZERO)
        in[ZERO] = random_bytes(random_byte_type(), 0, NULL);
    return n;
}

/* Add a_min and a_max if results have 8 bits. Returns the number of attributes.
 */
static uint32_t add_bounds(uint32_t n_in, struct byi_attr *attrs)
{
    const int64_t low = random_in(-128, 127);
    if (n_in <= ZERO || random_in(0, 1))
        return 0;
    attrs[0] = (struct byi_attr)INT("a_min", low);
    attrs[1] = (struct byi_attr)INT("a_max", random_in(low, 255));
    return 2;
}

/* --- against the plain form ----------------------------------------------- */

/* The dims of data and weights, and the attributes of a window. */
struct shape {
    int64_t x[5], w[5];
    int64_t strides[3], padding[6], dilation[3], groups;
};

static struct shape random_shape(uint32_t n)
{
    struct shape s = {.groups = random_in(1, 3)};
    s.x[0] = random_in(0, 9) ? random_in(1, 2) : 0;
    s.w[1] = random_in(1, 9);
    s.x[1] = s.w[1] * s.groups;
    s.w[0] = random_in(1, 20) * s.groups;
    for (uint32_t i = 0; i < n; i++) {
        s.w[2 + i] = random_in(1, 4);
        s.strides[i] = random_in(1, 3);
        s.dilation[i] = random_in(1, 2);
        const int64_t extent = (s.w[2 + i] - 1) * s.dilation[i];
        s.padding[i] = random_in(0, 3);
        s.padding[n + i] = random_in(0, 3);
        s.x[2 + i] = random_in(extent + 1, extent + (n == 3   ? 5
                                                     : n == 2 ? 13
                                                              : 70));
    }
    return s;
}

static struct eval prepare_conv(uint32_t n, const struct shape *s)
{
    struct byi_attr attrs[6] = {
        INTS("strides", n, s->strides),
        INTS("padding", 2 * n, s->padding),
        INTS("dilation", n, s->dilation),
        INT("groups", s->groups),
    };
    struct byi_tensor in[OPERANDS] = {
        random_bytes(random_byte_type(), n + 2, s->x),
        random_bytes(random_byte_type(), n + 2, s->w)};
    const uint32_t n_in = add_operands(in, s->w[0]);
    const uint32_t n_bounds = add_bounds(n_in, attrs + 4);
    return prepare((enum byi_op_id)(BYI_OP_QNN_CONV1D + n - 1), attrs,
                   4 + n_bounds, in, n_in);
}

static void test_conv(void **state)
{
    (void)state;
    for (int round = 0; round < 240; round++) {
        const uint32_t n = 1 + (uint32_t)round % 3;
        const struct shape s = random_shape(n);
        struct eval e = prepare_conv(n, &s);
        expect_plain(&e, byi_qnn_plain, 0, "qnn.conv");
    }
}

static void test_depthwise(void **state)
{
    (void)state;
    for (int round = 0; round < 160; round++) {
        struct shape s = random_shape(2);
        s.groups = s.x[1] = s.w[0] = random_in(2, 7);
        s.w[1] = 1;
        s.x[3] += random_in(0, 60);
        struct eval e = prepare_conv(2, &s);
        expect_plain(&e, byi_qnn_plain, 0, "depthwise qnn.conv2d");
    }
}

/* More outputs, channels and positions than a task or a tile has. */
static void test_conv_large(void **state)
{
    static const struct shape shapes[] = {
        {{1, 37, 33, 17}, {67, 37, 1, 1}, {1, 1}, {0}, {1, 1}, 1},
        {{1, 10, 31, 29}, {130, 10, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
        {{1, 3, 39, 41}, {31, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 1},
        {{1, 24, 9, 9}, {48, 12, 1, 1}, {2, 2}, {0}, {1, 1}, 2}};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(shapes); i++)
        for (int round = 0; round < 4; round++) {
            struct eval e = prepare_conv(2, &shapes[i]);
            expect_plain(&e, byi_qnn_plain, 0, "large qnn.conv2d");
        }
}

static void test_matmul(void **state)
{
    (void)state;
    for (int round = 0; round < 240; round++) {
        const bool big = round % 40 == 0;
        const int64_t m = random_in(0, big ? 60 : 20), k = random_in(0, 40);
        const int64_t n = random_in(0, big ? 600 : 40);
        const int64_t transpose_a = random_in(0, 1),
                      transpose_b = random_in(0, 1);
        const int64_t batch = random_in(1, 3), shares_b = random_in(0, 1);
        const int64_t a[] = {batch, transpose_a ? k : m, transpose_a ? m : k};
        const int64_t b[] = {batch, transpose_b ? n : k, transpose_b ? k : n};
        struct byi_attr attrs[4] = {BOOL("transpose_a", transpose_a),
                                    BOOL("transpose_b", transpose_b)};
        struct byi_tensor in[OPERANDS] = {
            random_bytes(random_byte_type(), 3, a),
            random_bytes(random_byte_type(), shares_b ? 2 : 3, b + shares_b)};
        const uint32_t n_in = add_operands(in, n);
        const uint32_t n_bounds = add_bounds(n_in, attrs + 2);
        struct eval e =
            prepare(BYI_OP_QNN_MATMUL, attrs, 2 + n_bounds, in, n_in);
        expect_plain(&e, byi_qnn_plain, 0, "qnn.matmul");
    }
}

static void test_vectors(void **state)
{
    (void)state;
    for (int round = 0; round < 24; round++) {
        const int64_t k = random_in(1, 20), n = random_in(1, 9);
        const bool left = round % 2;
        struct byi_tensor in[OPERANDS] = {
            random_bytes(random_byte_type(), left ? 1 : 2,
                         left ? &k : DIMS(n, k)),
            random_bytes(random_byte_type(), left ? 2 : 1,
                         left ? DIMS(k, n) : &k)};
        const uint32_t n_in = add_operands(in, left ? n : 1);
        struct eval e = prepare(BYI_OP_QNN_MATMUL, NULL, 0, in, n_in);
        expect_plain(&e, byi_qnn_plain, 0, "qnn.matmul of a vector");
    }
}

/* --- the plain form ------------------------------------------------------- */

static double at(const struct byi_tensor *t, int64_t i)
{
    return byi_tensor_float(t, byi_count(t) == 1 ? 0 : i);
}

/* The result for a sum, in double, except for the product with the scale, which
 * is rounded to float32. */
static double result(const struct eval *e, int64_t sum, int64_t channel)
{
    if (e->n_in > BIAS)
        sum += (int64_t)at(&e->in[BIAS], channel);
    if (e->n_in <= SCALE)
        return (double)sum;
    double v = (double)((float)sum * (float)at(&e->in[SCALE], channel));
    if (e->n_in <= ZERO)
        return v;
    const bool is_signed = e->in[ZERO].dtype == BYOC_I8;
    v = rint(v) + at(&e->in[ZERO], 0);
    v = fmax(v, fmax((double)byi_attr_int(e->attrs, "a_min"),
                     is_signed ? INT8_MIN : 0));
    return fmin(v, fmin((double)byi_attr_int(e->attrs, "a_max"),
                        is_signed ? INT8_MAX : UINT8_MAX));
}

static int64_t window_sum(const struct eval *e, const struct shape *s,
                          int64_t image, int64_t o, int64_t h, int64_t w)
{
    const struct byi_tensor *x = &e->in[X], *weights = &e->in[WEIGHTS];
    const int64_t c0 = o / (s->w[0] / s->groups) * s->w[1];
    int64_t sum = 0;
    for (int64_t c = 0; c < s->w[1]; c++)
        for (int64_t i = 0; i < s->w[2]; i++)
            for (int64_t j = 0; j < s->w[3]; j++) {
                const int64_t y =
                    h * s->strides[0] - s->padding[0] + i * s->dilation[0];
                const int64_t z =
                    w * s->strides[1] - s->padding[1] + j * s->dilation[1];
                if (y < 0 || z < 0 || y >= s->x[2] || z >= s->x[3])
                    continue;
                const int64_t from =
                    ((image * s->x[1] + c0 + c) * s->x[2] + y) * s->x[3] + z;
                const int64_t tap =
                    ((o * s->w[1] + c) * s->w[2] + i) * s->w[3] + j;
                sum +=
                    (int64_t)(at(x, from) - at(&e->in[X_ZERO], 0)) *
                    (int64_t)(at(weights, tap) - at(&e->in[WEIGHTS_ZERO], o));
            }
    return sum;
}

static void test_plain_conv(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        const struct shape s = random_shape(2);
        struct eval e = prepare_conv(2, &s);
        struct byi_tensor y;
        run_plain(&e, byi_qnn_plain, &y);
        for (int64_t i = 0; i < byi_count(&y); i++) {
            const int64_t w = i % y.dims[3], h = i / y.dims[3] % y.dims[2];
            const int64_t plane = i / (y.dims[2] * y.dims[3]);
            const int64_t o = plane % y.dims[1];
            const double expected =
                result(&e, window_sum(&e, &s, plane / y.dims[1], o, h, w), o);
            if (byi_tensor_float(&y, i) != expected)
                fail_msg("element %lld is %g, expected %g", (long long)i,
                         byi_tensor_float(&y, i), expected);
        }
        release(&y);
        finish(&e);
    }
}

static void test_plain_matmul(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        const int64_t m = random_in(1, 7), k = random_in(0, 9);
        const int64_t n = random_in(1, 7);
        struct byi_tensor in[OPERANDS] = {
            random_bytes(random_byte_type(), 2, DIMS(m, k)),
            random_bytes(random_byte_type(), 2, DIMS(k, n))};
        const uint32_t n_in = add_operands(in, n);
        struct eval e = prepare(BYI_OP_QNN_MATMUL, NULL, 0, in, n_in);
        struct byi_tensor y;
        run_plain(&e, byi_qnn_plain, &y);
        for (int64_t i = 0; i < m * n; i++) {
            int64_t sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (int64_t)(byi_tensor_float(&in[X], i / n * k + p) -
                                 at(&in[X_ZERO], 0)) *
                       (int64_t)(byi_tensor_float(&in[WEIGHTS], p * n + i % n) -
                                 at(&in[WEIGHTS_ZERO], i % n));
            assert_true(byi_tensor_float(&y, i) == result(&e, sum, i % n));
        }
        release(&y);
        finish(&e);
    }
}

/* Halves round to even, then the zero point is added; numbers out of range
 * saturate. The sums here are 6, -6, 10, 600. */
static void test_by_hand(void **state)
{
    struct byi_tensor in[OPERANDS] = {
        TENSOR(BYOC_U8, 1, 2), TENSOR(BYOC_I8, 2, 4), TENSOR(BYOC_U8, 1),
        TENSOR(BYOC_I8, 1),    TENSOR(BYOC_I32, 4),   TENSOR(BYOC_F32, 1),
        TENSOR(BYOC_U8, 1),
    };
    (void)state;
    set(&in[X], (const double[]){5, 9});
    set(&in[WEIGHTS], (const double[]){1, -1, 0, 100, 0, 0, 1, 71});
    set(&in[X_ZERO], (const double[]){3});
    set(&in[WEIGHTS_ZERO], (const double[]){0});
    set(&in[BIAS], (const double[]){4, -4, 4, -26});
    set(&in[SCALE], (const double[]){0.25});
    set(&in[ZERO], (const double[]){129});
    struct eval e = prepare(BYI_OP_QNN_MATMUL, NULL, 0, in, OPERANDS);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){131, 127, 131, 255});
    finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_conv), cmocka_unit_test(test_plain_matmul),
        cmocka_unit_test(test_conv),       cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_conv_large), cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_vectors),    cmocka_unit_test(test_by_hand),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
