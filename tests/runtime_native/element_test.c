/* SPDX-License-Identifier: Apache-2.0 */
/* element_test.c: tests elementwise operators, casts, and the float32 loops of
 * every instruction set of the CPU. They are compared with functions of
 * doubles, with a plain broadcast, and with results computed by hand. */
#include "kernels.h"

/* --- one operand -------------------------------------------------------- */

/* Fill x with special values, then with random numbers of both signs, of 2^-20
 * to 2^8 in magnitude. */
static void fill_samples(float *x, int64_t n)
{
    static const float special[] = {
        0.0f,   -0.0f,   NAN,      INFINITY, 1e-40f, 88.7f, -87.5f,
        104.0f, 1.0f,    -1.0f,    0.5f,     2.5f,   -0.5f, 1e-6f,
        -1e-6f, 3.0e38f, -3.0e38f, -103.0f,  20.5f,  -20.5f};
    int64_t at = 0;
    for (; at < (int64_t)BYI_COUNT(special); at++)
        x[at] = special[at];
    for (; at < n; at++) {
        const double size = pow(2, (double)random_in(-2000, 800) / 100);
        x[at] = (float)(random_in(0, 1) ? size : -size);
    }
}

/* An error of 1e-6 times this number is allowed in addition to the relative
 * one: gelu and similar functions subtract numbers of the size of x. */
static double absolute_scale(enum byi_op_id op, double x)
{
    switch (op) {
    case BYI_OP_NN_GELU:
        return fabs(x);
    case BYI_OP_NN_SELU:
    case BYI_OP_NN_HARD_SWISH:
        return 1;
    case BYI_OP_LOG:
    case BYI_OP_NN_HARD_SIGMOID:
        return 0.25;
    default:
        return 1e-31; /* denormals may become 0 */
    }
}

static void test_unary_loops(void **state)
{
    enum { N = 5003 };
    static float x[N], y[N];
    static const double params[][4] = {{0.3, 0.7}, {0, 0}};
    (void)state;
    fill_samples(x, N);
    for (int isa = 0; isa < BYI_N_ISAS; isa++) {
        const struct byi_simd *simd = use(isa);
        for (int op = 0; simd && op < BYI_N_OPS * 2; op++) {
            const enum byi_op_id id = (enum byi_op_id)(op / 2);
            const double *p = params[op % 2];
            const float pf[4] = {(float)p[0], (float)p[1], 0, 0};
            if (!simd->unary[id] || (id == BYI_OP_NN_CELU && p[0] == 0))
                continue;
            simd->unary[id](x, y, N, pf);
            for (int64_t i = 0; i < N; i++) {
                if (fabsf(x[i]) > byi_unary_bound(id))
                    continue;
                const double pd[4] = {(double)pf[0], (double)pf[1], 0, 0};
                const double expected =
                    (double)(float)byi_unary_plain(id, (double)x[i], pd);
                const double found = (double)y[i];
                const double tolerance =
                    1e-6 * (fabs(expected) + absolute_scale(id, (double)x[i]));
                if (isnan(expected) ? isnan(found) : found == expected)
                    continue;
                if (isfinite(expected) && fabs(found - expected) <= tolerance)
                    continue;
                fail_msg("%s %s(%.9g) is %.9g, expected %.9g",
                         byi_isa_name(simd->isa), byi_op(id)->name,
                         (double)x[i], found, expected);
            }
        }
    }
}

/* The largest of n > 0 numbers, or the smallest; NaN if any is. */
static float extreme_of(const struct byi_simd *simd, bool smallest,
                        const float *x, int64_t n)
{
    float best = x[0];
    simd->extreme_row[smallest][BYOC_F32](x, n, &best);
    return best;
}

/* The loops of several operands and reductions, on n elements. */
static void check_loops(const struct byi_simd *simd, int64_t n)
{
    enum { MAX_LENGTH = 4000, SPARE = 3 * BYI_SLACK };
    static float x[MAX_LENGTH * 2 + SPARE], y[MAX_LENGTH + SPARE],
        z[MAX_LENGTH + SPARE];
    const int64_t offsets[] = {0, 1, 7, 60};
    const float weights[] = {1, -2, 0.5f, 3};
    double sum = 0, squares = 0, exps = 0, dot = 0;
    float maximum = -INFINITY, minimum = INFINITY;
    for (int64_t i = 0; i < MAX_LENGTH * 2 + SPARE; i++)
        x[i] = (float)random_in(-64, 64) / 16;
    for (int64_t i = 0; i < n; i++) {
        y[i] = (float)random_in(-64, 64) / 16;
        sum += (double)x[i];
        squares += pow((double)x[i] - 0.5, 2);
        exps += exp((double)x[i] - 4);
        dot += (double)x[i] * (double)y[i];
        maximum = fmaxf(maximum, x[i]);
        minimum = fminf(minimum, x[i]);
    }
    assert_true(extreme_of(simd, 0, x, n) == maximum &&
                extreme_of(simd, 1, x, n) == minimum);
    assert_true(is_near(simd->sum(x, n), sum, 1e-6));
    assert_true(is_near(simd->sum_squares(x, n, 0.5f), squares, 1e-6));
    assert_true(is_near(simd->exp_sum(x, z, n, 4), exps, 1e-5));
    assert_true(is_near((double)simd->dot(x, y, n), dot, 1e-4));
    memcpy(z, y, sizeof z);
    simd->axpy(0.5f, x, z, n);
    for (int64_t i = 0; i < n; i++)
        assert_true(z[i] == y[i] + 0.5f * x[i]);
    simd->affine(x, z, n, 2, 1);
    for (int64_t i = 0; i < n; i++)
        assert_true(z[i] == 2 * x[i] + 1);
    simd->taps(x, offsets, weights, 4, z, n);
    for (int64_t i = 0; i < n; i++)
        assert_true(z[i] ==
                    x[i] - 2 * x[i + 1] + 0.5f * x[i + 7] + 3 * x[i + 60]);
    for (int64_t stride = 1; stride <= 2; stride++) {
        memcpy(z, y, sizeof z);
        simd->slide_add(x, stride, z, n);
        for (int64_t i = 0; i < n; i++)
            assert_true(z[i] == y[i] + x[i * stride]);
        memcpy(z, y, sizeof z);
        simd->slide_max(x, stride, z, n);
        for (int64_t i = 0; i < n; i++)
            assert_true(z[i] == fmaxf(y[i], x[i * stride]));
    }
    x[n - 1] = NAN;
    assert_true(isnan(extreme_of(simd, 0, x, n)) &&
                isnan(extreme_of(simd, 1, x, n)));
}

/* check_loops() at lengths around those of vectors. */
static void test_loops(void **state)
{
    static const int64_t lengths[] = {1,  2,  7,  15,  16,  17,   31,
                                      33, 63, 65, 130, 511, 1025, 4000};
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++) {
        const struct byi_simd *simd = use(isa);
        for (size_t i = 0; simd && i < BYI_COUNT(lengths); i++)
            check_loops(simd, lengths[i]);
    }
}

/* Every element type that the type rule accepts has a kernel. Does not test
 * cast, strings and complex numbers. */
static void test_unary_dtypes(void **state)
{
    (void)state;
    for (int op = 1; op < BYI_N_OPS; op++) {
        const struct byi_op *row = byi_op((enum byi_op_id)op);
        if (row->kind != BYI_ELEMWISE || op == BYI_OP_CAST)
            continue;
        for (int d = 1; d < BYI_DTYPES; d++) {
            const enum byoc_dtype dtype = (enum byoc_dtype)d;
            if (dtype == BYOC_STRING || dtype == BYOC_C64 || dtype == BYOC_C128)
                continue;
            struct byi_tensor x = TENSOR(dtype, 3, 5);
            struct eval e = prepare((enum byi_op_id)op, NULL, 0, &x, 1);
            if (e.typed && run_fast(&e, 1) != BYOC_OK)
                fail_msg("%s of %s: %s", row->name, byoc_dtype_name(dtype),
                         err.text);
            finish(&e);
        }
    }
}

/* isnan and isinf of tensors that are split into chunks, whose results are
 * smaller than their elements. */
static void test_long_isnan(void **state)
{
    static const enum byoc_dtype dtypes[] = {BYOC_F32, BYOC_F64, BYOC_F16,
                                             BYOC_BF16};
    (void)state;
    for (size_t d = 0; d < 2 * BYI_COUNT(dtypes); d++) {
        const bool nan = d % 2;
        struct byi_tensor x = TENSOR(dtypes[d / 2], 20011);
        for (int64_t i = 0; i < byi_count(&x); i += 7)
            byi_tensor_set(&x, i, nan ? NAN : i % 2 ? INFINITY : -INFINITY);
        struct eval e =
            prepare(nan ? BYI_OP_ISNAN : BYI_OP_ISINF, NULL, 0, &x, 1);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        for (int64_t i = 0; i < byi_count(&x); i++)
            assert_int_equal(((const uint8_t *)e.out->data)[i], i % 7 == 0);
        finish(&e);
    }
}

static void test_unary_ints(void **state)
{
    static const struct {
        enum byi_op_id op;
        double expected[4];
    } cases[] = {
        {BYI_OP_ABS, {3, 0, 2, -128}},   {BYI_OP_NEGATIVE, {3, 0, -2, -128}},
        {BYI_OP_SIGN, {-1, 0, 1, -1}},   {BYI_OP_NN_RELU, {0, 0, 2, 0}},
        {BYI_OP_CLIP, {-3, 0, 2, -128}},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct byi_tensor x = TENSOR(BYOC_I8, 4);
        set(&x, (const double[]){-3, 0, 2, -128});
        struct eval e = prepare(cases[i].op, NULL, 0, &x, 1);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        expect(e.out, cases[i].expected);
        finish(&e);
    }
}

/* --- two operands ------------------------------------------------------- */

static double expected_binary(enum byi_op_id op, double a, double b)
{
    switch (op) {
    case BYI_OP_ADD:
        return a + b;
    case BYI_OP_SUBTRACT:
        return a - b;
    case BYI_OP_MULTIPLY:
        return a * b;
    case BYI_OP_DIVIDE:
        return a / b;
    case BYI_OP_MAXIMUM:
        return isnan(a) || a > b ? a : b;
    case BYI_OP_MINIMUM:
        return isnan(a) || a < b ? a : b;
    case BYI_OP_EQUAL:
        return a == b;
    case BYI_OP_NOT_EQUAL:
        return a != b;
    case BYI_OP_LESS:
        return a < b;
    case BYI_OP_LESS_EQUAL:
        return a <= b;
    case BYI_OP_GREATER:
        return a > b;
    case BYI_OP_GREATER_EQUAL:
        return a >= b;
    case BYI_OP_MOD:
        return a - b * floor(a / b);
    default:
        return pow(a, b);
    }
}

static const enum byi_op_id binaries[] = {
    BYI_OP_ADD,     BYI_OP_SUBTRACT,   BYI_OP_MULTIPLY, BYI_OP_DIVIDE,
    BYI_OP_MAXIMUM, BYI_OP_MINIMUM,    BYI_OP_EQUAL,    BYI_OP_NOT_EQUAL,
    BYI_OP_LESS,    BYI_OP_LESS_EQUAL, BYI_OP_GREATER,  BYI_OP_GREATER_EQUAL,
    BYI_OP_MOD,     BYI_OP_POWER,
};

/* The element of `t` that broadcasts to position `flat` of `out`. */
static double broadcast_at(const struct byi_tensor *t,
                           const struct byi_tensor *out, int64_t flat)
{
    int64_t at = 0, stride = 1;
    for (uint32_t i = 0; i < out->rank; i++) {
        const int64_t dim = out->dims[out->rank - 1 - i];
        if (i < t->rank) {
            const int64_t size = t->dims[t->rank - 1 - i];
            at += size == 1 ? 0 : flat % dim * stride;
            stride *= size;
        }
        flat /= dim;
    }
    return byi_tensor_float(t, at);
}

/* The shapes of pairs of operands that broadcast. */
static const struct {
    uint32_t ra, rb;
    int64_t a[5], b[5];
} pairs[] = {
    {1, 1, {7}, {7}},
    {0, 2, {0}, {3, 5}},
    {3, 0, {2, 3, 5}, {0}},
    {4, 1, {2, 3, 4, 5}, {5}},
    {4, 3, {2, 3, 4, 5}, {3, 1, 1}},
    {2, 2, {3, 1}, {1, 4}},
    {5, 5, {2, 1, 3, 1, 5}, {1, 4, 3, 2, 1}},
    {3, 3, {2, 0, 3}, {1, 1, 3}},
    {2, 2, {1, 300}, {150, 1}},
    {1, 1, {40000}, {40000}},
    {2, 1, {3, 20000}, {1}},
    {2, 2, {1100, 17}, {1100, 1}},
    {2, 1, {130, 17}, {17}},
    {3, 3, {40, 1, 9}, {1, 50, 9}},
    {3, 2, {30, 20, 64}, {20, 1}},
};

static void test_binary(void **state)
{
    static const enum byoc_dtype dtypes[] = {
        BYOC_F32, BYOC_F64, BYOC_F16, BYOC_BF16, BYOC_I8,  BYOC_I16,
        BYOC_I32, BYOC_I64, BYOC_U8,  BYOC_U16,  BYOC_U32, BYOC_U64,
    };
    (void)state;
    for (size_t o = 0; o < BYI_COUNT(binaries); o++)
        for (size_t d = 0; d < BYI_COUNT(dtypes); d++)
            for (size_t p = 0; p < BYI_COUNT(pairs); p++) {
                const enum byi_op_id op = binaries[o];
                const enum byoc_dtype dtype = dtypes[d];
                struct byi_tensor in[] = {
                    tensor(dtype, pairs[p].ra, pairs[p].a),
                    tensor(dtype, pairs[p].rb, pairs[p].b)};
                /* small powers of two: exact in every type */
                for (int64_t i = 0; i < byi_count(&in[0]); i++)
                    byi_tensor_set(&in[0], i, (double)(2 << random_in(1, 2)));
                for (int64_t i = 0; i < byi_count(&in[1]); i++)
                    byi_tensor_set(&in[1], i, (double)random_in(1, 2));
                struct eval e = prepare(op, NULL, 0, in, 2);
                assert_true(e.typed);
                if (run_fast(&e, 1 + (uint32_t)p % 3) != BYOC_OK)
                    fail_msg("%s", err.text);
                for (int64_t i = 0; i < byi_count(e.out); i++) {
                    const double a = broadcast_at(&e.in[0], e.out, i);
                    const double b = broadcast_at(&e.in[1], e.out, i);
                    const double expected = expected_binary(op, a, b);
                    if (byi_tensor_float(e.out, i) != expected)
                        fail_msg("%s %s, pairs[%zu], of %g and %g: found %g, "
                                 "expected %g",
                                 e.op->name, byoc_dtype_name(dtype), p, a, b,
                                 byi_tensor_float(e.out, i), expected);
                }
                finish(&e);
            }
}

static bool has_fast_loop(enum byi_op_id op)
{
    const struct byi_simd *simd = byi_simd();
    return simd->binary[op] ||
           (simd->typed_binary && simd->typed_binary(op, BYOC_F32));
}

/* The float32 loops against the plain ones, NaN and infinities included. */
static void test_binary_fast(void **state)
{
    (void)state;
    for (int op = 1; op < BYI_N_OPS; op++) {
        if (!has_fast_loop((enum byi_op_id)op))
            continue;
        for (size_t p = 0; p < BYI_COUNT(pairs); p++) {
            /* PRelu's slope must broadcast to x; test three such pairs */
            if (op == BYI_OP_NN_PRELU && p != 0 && p != 3 && p != 4)
                continue;
            struct byi_tensor in[] = {
                tensor(BYOC_F32, pairs[p].ra, pairs[p].a),
                tensor(BYOC_F32, pairs[p].rb, pairs[p].b)};
            for (int i = 0; i < 2; i++)
                if (byi_count(&in[i]) > 2) {
                    byi_tensor_set(&in[i], i, NAN);
                    byi_tensor_set(&in[i], i + 1, -INFINITY);
                }
            struct eval e = prepare((enum byi_op_id)op, NULL, 0, in, 2);
            expect_plain(&e, byi_binary_plain, 0,
                         byi_op((enum byi_op_id)op)->name);
        }
    }
}

/* Integers at their edges: nothing traps, quotients truncate, remainders
 * have the divisor's sign or, with fmod, the dividend's. */
static void test_integer_edges(void **state)
{
    static const struct {
        enum byi_op_id op;
        int fmod;
        double expected[6];
    } cases[] = {
        {BYI_OP_DIVIDE, -1, {0, -128, -3, 3, -3, 0}},
        {BYI_OP_MOD, 0, {0, 0, 1, -1, -1, 1}},
        {BYI_OP_MOD, 1, {0, 0, -1, -1, 1, 1}},
        {BYI_OP_LEFT_SHIFT, -1, {7, 0, -28, 0, 0, 8}},
        {BYI_OP_RIGHT_SHIFT, -1, {7, -1, -2, -1, 0, 0}},
        {BYI_OP_BITWISE_AND, -1, {0, -128, 0, -8, 6, 1}},
        {BYI_OP_BITWISE_OR, -1, {7, -1, -5, -1, -1, 3}},
        {BYI_OP_BITWISE_XOR, -1, {7, 127, -5, 7, -7, 2}},
        {BYI_OP_POWER, -1, {1, 0, 49, 0, 0, 1}},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct byi_tensor in[] = {TENSOR(BYOC_I8, 6), TENSOR(BYOC_I8, 6)};
        set(&in[0], (const double[]){7, -128, -7, -7, 7, 1});
        set(&in[1], (const double[]){0, -1, 2, -2, -2, 3});
        const struct byi_attr attrs = BOOL("fmod", cases[i].fmod);
        struct eval e = prepare(cases[i].op, &attrs, cases[i].fmod >= 0, in, 2);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        expect(e.out, cases[i].expected);
        finish(&e);
    }
}

/* A scalar exponent of 2 to 7 or -1, for which the kernel computes products or
 * a division instead of pow(). */
static void test_small_powers(void **state)
{
    static const enum byoc_dtype bases[] = {BYOC_F32, BYOC_F64, BYOC_F16,
                                            BYOC_BF16};
    static const enum byoc_dtype exponents[] = {BYOC_F32, BYOC_F64, BYOC_I64};
    static const struct {
        double exponent, expected[4];
    } cases[] = {{2, {1, 4, 16, 0.25}},
                 {3, {1, 8, -64, 0.125}},
                 {4, {1, 16, 256, 0.0625}},
                 {7, {1, 128, -16384, 0.0078125}},
                 {-1, {1, 0.5, -0.25, 2}}};
    (void)state;
    for (size_t i = 0; i < 12 * BYI_COUNT(cases); i++) {
        struct byi_tensor in[] = {TENSOR(bases[i % 4], 4),
                                  TENSOR(exponents[i / 4 % 3], 1)};
        set(&in[0], (const double[]){1, 2, -4, 0.5});
        set(&in[1], &cases[i / 12].exponent);
        struct eval e = prepare(BYI_OP_POWER, NULL, 0, in, 2);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        expect(e.out, cases[i / 12].expected);
        finish(&e);
    }
}

/* Powers of 16-bit floats are those of pow(), rounded to float32 and then to
 * the type. */
static void test_half_powers(void **state)
{
    static const double special[] = {0,   -0.0,     INFINITY, -INFINITY,
                                     NAN, 5.96e-08, 65504,    -2,
                                     1,   -3,       0.5,      2.5};
    enum { N = 3001 };
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        for (int k = 0; k < 4 && use(isa); k++) {
            const enum byoc_dtype dtype = k % 2 ? BYOC_BF16 : BYOC_F16;
            struct byi_tensor in[] = {TENSOR(dtype, N),
                                      TENSOR(dtype, k < 2 ? N : 1)};
            for (int64_t i = 0; i < 2 * N; i++)
                if (i % 2 == 0 || i / 2 < byi_count(&in[1]))
                    byi_tensor_set(&in[i % 2], i / 2,
                                   random_in(0, 9)
                                       ? random_in(0, 3)
                                             ? (double)random_in(-2000, 9000) /
                                                   999
                                             : (double)random_in(-9, 9)
                                       : special[random_in(0, 11)]);
            if (k >= 2)
                byi_tensor_set(&in[1], 0, 1.7);
            struct eval e = prepare(BYI_OP_POWER, NULL, 0, in, 2);
            assert_int_equal(run_fast(&e, 1), BYOC_OK);
            for (int64_t i = 0; i < N; i++) {
                const double y = pow(byi_tensor_float(&in[0], i),
                                     byi_tensor_float(&in[1], k < 2 ? i : 0));
                const float found =
                    byi_half_to_f32(((const uint16_t *)e.out->data)[i], dtype);
                const float expected =
                    byi_half_to_f32(byi_f32_to_half((float)y, dtype), dtype);
                assert_true(isnan(expected) ? isnan(found) : found == expected);
            }
            finish(&e);
        }
}

/* Quotients and remainders of integers of at most 32 bits, which are computed
 * with floats, against the plain loops; many quotients are close to a whole
 * number. */
static void test_integer_quotients(void **state)
{
    static const enum byoc_dtype dtypes[] = {BYOC_I8, BYOC_I16, BYOC_I32,
                                             BYOC_U8, BYOC_U16, BYOC_U32};
    (void)state;
    for (int round = 0; round < 240; round++) {
        const enum byoc_dtype dtype = dtypes[round % 6];
        const int64_t bits = 8 * (int64_t)byi_dtype_bytes(dtype);
        const int64_t low = round % 6 < 3 ? -(1LL << (bits - 1)) : 0;
        const int64_t high = low + (1LL << bits) - 1;
        struct byi_tensor in[] = {TENSOR(dtype, 300), TENSOR(dtype, 300)};
        for (int64_t i = 0; i < 300; i++) {
            const int64_t b = round % 2 ? random_in(low, high)
                                        : random_in(low < 0 ? -9 : 0, 9);
            const int64_t times = b ? random_in(low, high) / b : 0;
            const int64_t a = times * b + random_in(-1, 1);
            byi_tensor_set(&in[0], i, (double)byi_min(byi_max(a, low), high));
            byi_tensor_set(&in[1], i, (double)b);
        }
        struct eval e =
            prepare(round / 6 % 2 ? BYI_OP_MOD : BYI_OP_DIVIDE, NULL, 0, in, 2);
        expect_plain(&e, byi_binary_plain, 0, "quotient");
    }
}

static void test_where(void **state)
{
    static const enum byoc_dtype dtypes[] = {BYOC_U8, BYOC_F16, BYOC_F32,
                                             BYOC_I64};
    /* one block of short rows, several blocks, long rows */
    static const struct {
        int64_t rows, columns;
    } sizes[] = {{3, 37}, {300, 3}, {3, 100}};
    (void)state;
    /* mask: the operands that vary along rows; the others vary across them */
    for (size_t d = 0; d < 8 * BYI_COUNT(dtypes) * BYI_COUNT(sizes); d++) {
        const enum byoc_dtype dtype = dtypes[d / 8 % BYI_COUNT(dtypes)];
        const size_t mask = d % 8;
        const int64_t m = sizes[d / 8 / BYI_COUNT(dtypes)].rows;
        const int64_t n = sizes[d / 8 / BYI_COUNT(dtypes)].columns;
        struct byi_tensor in[] = {
            mask & 1 ? TENSOR(BYOC_BOOL, n) : TENSOR(BYOC_BOOL, m, 1),
            mask & 2 ? TENSOR(dtype, n) : TENSOR(dtype, m, 1),
            mask & 4 ? TENSOR(dtype, n) : TENSOR(dtype, 2, 1, 1)};
        struct eval e = prepare(BYI_OP_WHERE, NULL, 0, in, 3);
        assert_int_equal(run_fast(&e, 1), BYOC_OK);
        for (int64_t i = 0; i < byi_count(e.out); i++) {
            const bool c = broadcast_at(&e.in[0], e.out, i) != 0;
            assert_true(byi_tensor_float(e.out, i) ==
                        broadcast_at(&e.in[c ? 1 : 2], e.out, i));
        }
        finish(&e);
    }
}

/* --- cast --------------------------------------------------------------- */

static void test_cast(void **state)
{
    (void)state;
    for (int from = 1; from < BYI_DTYPES; from++)
        for (int to = 1; to < BYI_DTYPES; to++) {
            const enum byoc_dtype a = (enum byoc_dtype)from;
            const enum byoc_dtype b = (enum byoc_dtype)to;
            const bool is_integer =
                !byi_dtype_is_float(b) && !byi_narrow_is_float(b);
            const int bits = byi_narrow_bits(b) ? (int)byi_narrow_bits(b)
                                                : 8 * (int)byoc_dtype_size(b);
            if (byoc_dtype_size(a) == 0 || byoc_dtype_size(a) > 8 ||
                byoc_dtype_size(b) == 0 || byoc_dtype_size(b) > 8 ||
                a == BYOC_C64 || b == BYOC_C64 ||
                b == BYOC_F8E8M0 /* rounds up, arena_test */)
                continue;
            const struct byi_attr attrs = DTYPE("dtype", b);
            struct byi_tensor x = TENSOR(a, 1300);
            struct eval e = prepare(BYI_OP_CAST, &attrs, 1, &x, 1);
            assert_int_equal(run_fast(&e, 2), BYOC_OK);
            for (int64_t i = 0; i < 1300; i++) {
                double v = byi_tensor_float(&e.in[0], i);
                if (b == BYOC_BOOL)
                    v = v != 0;
                else if (is_integer)
                    v = trunc(v);
                struct byi_tensor element = TENSOR(b, 1);
                byi_tensor_set(&element, 0, v);
                if (is_integer && byi_narrow_bits(b)) { /* wraps, as below */
                    v -= ldexp(floor(ldexp(v, -bits)), bits);
                    const bool high = v >= ldexp(1, bits - 1);
                    const bool is_signed = b == BYOC_I4 || b == BYOC_I2;
                    v -= high && is_signed ? ldexp(1, bits) : 0;
                    byi_tensor_set(&element, 0, v);
                } else if (is_integer && v < 0 && !byi_dtype_is_signed(b)) {
                    byi_tensor_set(&element, 0, v + ldexp(1, bits));
                }
                const double expected = byi_tensor_float(&element, 0);
                const double found = byi_tensor_float(e.out, i);
                if (b != BYOC_U64 && found != expected &&
                    !(isnan(found) && isnan(expected)))
                    fail_msg("%s to %s of %g: found %g, expected %g",
                             byoc_dtype_name(a), byoc_dtype_name(b), v, found,
                             expected);
                release(&element);
            }
            finish(&e);
        }
}

/* Casts of float32 and float64 to integers, with each instruction set, equal
 * those of `longer`. It holds the same numbers and 1e300, for which vectors are
 * not used, so that its numbers are cast one by one. All numbers but one have
 * at most 31 bits. */
static void test_cast_floats(void **state)
{
    static const enum byoc_dtype dtypes[] = {BYOC_U8,  BYOC_I8,  BYOC_U16,
                                             BYOC_I16, BYOC_U32, BYOC_I32,
                                             BYOC_I64, BYOC_BOOL};
    static const double large[] = {0x1p31, -0x1p33, NAN, INFINITY, 7};
    (void)state;
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        for (int round = 0; use(isa) && round < 8 * 5; round++) {
            const enum byoc_dtype dtype = dtypes[round % 8];
            const struct byi_attr attrs = DTYPE("dtype", dtype);
            struct byi_tensor x = TENSOR(BYOC_F32, 1300);
            struct byi_tensor wide = TENSOR(BYOC_F64, 1300);
            struct byi_tensor longer = TENSOR(BYOC_F64, 1301);
            for (int64_t i = 0; i < 1300; i++) {
                const float v = (float)ldexp((double)random_in(-999, 999) / 1e3,
                                             (int)random_in(-2, 31));
                byi_tensor_set(&x, i, i == 700 ? large[round / 8] : (double)v);
                byi_tensor_set(&wide, i, byi_tensor_float(&x, i));
                byi_tensor_set(&longer, i, byi_tensor_float(&x, i));
            }
            byi_tensor_set(&longer, 1300, 1e300);
            const struct byi_tensor in[] = {x, wide, longer};
            struct eval e[3];
            for (int i = 0; i < 3; i++) {
                e[i] = prepare(BYI_OP_CAST, &attrs, 1, &in[i], 1);
                assert_int_equal(run_fast(&e[i], 1), BYOC_OK);
            }
            for (int i = 0; i < 2; i++)
                assert_memory_equal(e[i].out->data, e[2].out->data,
                                    1300 * byoc_dtype_size(dtype));
            for (int i = 0; i < 3; i++)
                finish(&e[i]);
        }
    byi_simd_use(byi_isa_widest());
}

static void test_cast_strings(void **state)
{
    static const char *const numbers[] = {"3.5", "-1e2", "INF", "NaN", "7"};
    static const char *const no_numbers[] = {"", "3x", "x", "1 "};
    (void)state;
    const struct byi_attr attrs = DTYPE("dtype", BYOC_F32);
    struct byi_tensor x = empty_tensor(BYOC_STRING, 1, DIMS(5));
    memcpy(x.data, numbers, sizeof numbers);
    struct eval e = prepare(BYI_OP_CAST, &attrs, 1, &x, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_OK);
    expect(e.out, (const double[]){3.5, -100, INFINITY, NAN, 7});
    for (size_t i = 0; i < BYI_COUNT(no_numbers); i++) {
        ((const char **)e.in[0].data)[2] = no_numbers[i];
        assert_int_equal(run_fast(&e, 1), BYOC_EINVAL);
        assert_non_null(strstr(err.text, "expected a number"));
    }
    finish(&e);

    const struct byi_attr text = DTYPE("dtype", BYOC_STRING);
    struct byi_tensor y = TENSOR(BYOC_F32, 2);
    e = prepare(BYI_OP_CAST, &text, 1, &y, 1);
    assert_int_equal(run_fast(&e, 1), BYOC_EUNSUPPORTED);
    finish(&e);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary_loops),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_unary_dtypes),
        cmocka_unit_test(test_long_isnan),
        cmocka_unit_test(test_unary_ints),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_binary_fast),
        cmocka_unit_test(test_small_powers),
        cmocka_unit_test(test_half_powers),
        cmocka_unit_test(test_integer_quotients),
        cmocka_unit_test(test_integer_edges),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_cast),
        cmocka_unit_test(test_cast_floats),
        cmocka_unit_test(test_cast_strings),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
