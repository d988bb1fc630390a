/* SPDX-License-Identifier: Apache-2.0 */
/* ulp_test.c: bounds the errors of the float32 loops of every instruction set,
 * and of those of float64 that approximate a function, in units in the last
 * place of the result. Tests every N-th bit pattern, including denormals,
 * infinities and NaN. ULP_STRIDE=1 in the environment tests all 2^32 and prints
 * the largest errors.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_native/kernel.h"

#include <cmocka.h>

static const struct {
    enum byi_op_id op;
    double bound;
} functions[] = {
    {BYI_OP_SQRT, 0.5},    {BYI_OP_RSQRT, 1.5}, {BYI_OP_RECIPROCAL, 0.5},
    {BYI_OP_EXP, 1.1},     {BYI_OP_LOG, 2},     {BYI_OP_TANH, 2.7},
    {BYI_OP_SIGMOID, 2.5}, {BYI_OP_ERF, 3.2},   {BYI_OP_SIN, 1.5},
    {BYI_OP_COS, 1.5},     {BYI_OP_TAN, 3.2},   {BYI_OP_ASIN, 1.8},
    {BYI_OP_ACOS, 1.5},    {BYI_OP_ATAN, 1.9},  {BYI_OP_SINH, 2},
    {BYI_OP_COSH, 1.6},    {BYI_OP_ASINH, 3.2}, {BYI_OP_ACOSH, 2.9},
    {BYI_OP_ATANH, 2.2},
};

/* The distance of two neighbours of float32 at v. */
static double unit_at(double v)
{
    int exponent;
    frexp(v, &exponent);
    return ldexp(1, (v == 0 || exponent < -125 ? -125 : exponent) - 24);
}

enum { BLOCK = 4096 };

/* Arguments, and one function of them in float64. */
struct block {
    int64_t n;
    float x[BLOCK];
    double expected[BLOCK], unit[BLOCK];
};

static void compute_expected(enum byi_op_id op, struct block *b)
{
    const double no_params[4] = {0};
    for (int64_t i = 0; i < b->n; i++) {
        if (fabsf(b->x[i]) > byi_unary_bound(op))
            b->x[i] = 1; /* the loop does not compute this argument */
        b->expected[i] = byi_unary_plain(op, (double)b->x[i], no_params);
        b->unit[i] = unit_at(b->expected[i]);
    }
}

/* The largest error, in ulp. */
static double check(enum byi_op_id op, double bound, const struct block *b)
{
    static float y[BLOCK];
    const float no_params[4] = {0};
    double max_error = 0;
    byi_simd()->unary[op](b->x, y, b->n, no_params);
    for (int64_t i = 0; i < b->n; i++) {
        const double expected = b->expected[i], found = (double)y[i];
        const float nearest = (float)expected;
        const double error = fabs(found - expected) / b->unit[i];
        const bool finite = isfinite(nearest) && isfinite(y[i]);
        if (finite ? error > bound * (1 + 1e-9)
                   : !(isnan(expected) ? isnan(y[i]) : y[i] == nearest))
            fail_msg("%s of %a: found %a, expected %a within %g ulp; "
                     "instruction set %s",
                     byi_op(op)->name, (double)b->x[i], found, expected, bound,
                     byi_isa_name(byi_simd()->isa));
        if (finite && error > max_error)
            max_error = error;
    }
    return max_error;
}

static void check_all(enum byi_op_id op, double bound, struct block *b,
                      double *max_error)
{
    compute_expected(op, b);
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        if (byi_simd_use((enum byi_isa)isa))
            max_error[isa] = fmax(max_error[isa], check(op, bound, b));
}

static void sweep(enum byi_op_id op, double bound, uint64_t stride,
                  double *max_error)
{
    static struct block b;
    for (uint64_t bits = 0; bits >> 32 == 0;) {
        for (b.n = 0; b.n < BLOCK && bits >> 32 == 0; bits += stride) {
            const uint32_t low = (uint32_t)bits;
            memcpy(&b.x[b.n++], &low, sizeof low);
        }
        check_all(op, bound, &b, max_error);
    }
}

static void print_max_error(enum byi_op_id op, const double *max_error)
{
    printf("%-10s", byi_op(op)->name);
    for (int isa = 0; isa < BYI_N_ISAS; isa++)
        if (byi_simd_use((enum byi_isa)isa))
            printf("  %s %.4f", byi_isa_name((enum byi_isa)isa),
                   max_error[isa]);
    printf(" ulp\n");
    fflush(stdout);
}

static void test_bounds(void **state)
{
    static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000,
                                       0x80000000, 1,          0x80000001,
                                       0x00800000, 0x7f7fffff, 0xff7fffff};
    const char *text = getenv("ULP_STRIDE");
    const uint64_t stride = text ? strtoull(text, NULL, 10) : 40961;
    static struct block edges;
    (void)state;
    assert_true(stride > 0);
    edges.n = BYI_COUNT(special);
    memcpy(edges.x, special, sizeof special);
    for (size_t f = 0; f < BYI_COUNT(functions); f++) {
        const enum byi_op_id op = functions[f].op;
        double max_error[BYI_N_ISAS] = {0};
        check_all(op, functions[f].bound, &edges, max_error);
        sweep(op, functions[f].bound, stride, max_error);
        if (text)
            print_max_error(op, max_error);
    }
    byi_simd_use(byi_isa_widest());
}

/* Compare the loop on one block of numbers with the same loop on each number.
 */
static void check_vectors(enum byi_op_id op, enum byi_isa isa, const float *x)
{
    static float y[BLOCK];
    const float no_params[4] = {0};
    if (!byi_simd_use(isa))
        return;
    byi_simd()->unary[op](x, y, BLOCK, no_params);
    for (int i = 0; i < BLOCK; i++) {
        float single;
        byi_simd()->unary[op](x + i, &single, 1, no_params);
        if (memcmp(&single, y + i, sizeof single) != 0 && !isnan(single))
            fail_msg("%s of %a: found %a in a vector, %a alone; "
                     "instruction set %s",
                     byi_op(op)->name, (double)x[i], (double)y[i],
                     (double)single, byi_isa_name(isa));
    }
}

/* A number in a vector gives the same bits as alone, since threads divide data
 * at any element. */
static void test_vectors(void **state)
{
    static const enum byi_op_id ops[] = {BYI_OP_EXP, BYI_OP_TANH,
                                         BYI_OP_SIGMOID};
    static float x[BLOCK];
    (void)state;
    for (uint64_t bits = 0; bits >> 32 == 0;) {
        for (int i = 0; i < BLOCK; i++, bits += 409601) {
            const uint32_t low = (uint32_t)bits;
            memcpy(&x[i], &low, sizeof low);
        }
        for (size_t f = 0; f < BYI_COUNT(ops); f++)
            for (int isa = 0; isa < BYI_N_ISAS; isa++)
                check_vectors(ops[f], (enum byi_isa)isa, x);
    }
    byi_simd_use(byi_isa_widest());
}

/* --- float64 -------------------------------------------------------------- */

/* The distance of two neighbours of float64 at v. */
static double unit64_at(double v)
{
    int exponent;
    frexp(v, &exponent);
    return ldexp(1, (v == 0 || exponent < -1021 ? -1021 : exponent) - 53);
}

/* Numbers of every size up to 1024, of both signs, and special ones. */
static void fill_doubles(double x[BLOCK])
{
    static const double odd[] = {0, INFINITY, NAN, 0x1p-1074, DBL_MAX, 746};
    const int special = 2 * (int)BYI_COUNT(odd);
    for (int i = 0; i < BLOCK; i++) {
        const double size =
            i < special
                ? odd[i / 2]
                : ldexp(1 + fmod(i * 0.618033988749895, 1), (i * 7) % 70 - 61);
        x[i] = i % 2 ? -size : size;
    }
}

static void check_doubles(enum byi_op_id op, double bound, const double *x)
{
    static double y[BLOCK];
    const double none[4] = {0};
    byi_simd()->unary_f64[op](x, y, BLOCK, none);
    for (int i = 0; i < BLOCK; i++) {
        const double expected = byi_unary_plain(op, x[i], none);
        double alone;
        byi_simd()->unary_f64[op](x + i, &alone, 1, none);
        const bool same = isnan(expected) ? isnan(y[i]) && isnan(alone)
                                          : memcmp(&alone, y + i, 8) == 0;
        const bool near =
            isfinite(expected)
                ? fabs(y[i] - expected) <= bound * unit64_at(expected) &&
                      !signbit(y[i]) == !signbit(expected)
                : isnan(expected) || y[i] == expected;
        if (!same || !near)
            fail_msg("%s of %a: found %a, alone %a, expected %a within %g ulp; "
                     "instruction set %s",
                     byi_op(op)->name, x[i], y[i], alone, expected, bound,
                     byi_isa_name(byi_simd()->isa));
    }
}

static void test_doubles(void **state)
{
    static const struct {
        enum byi_op_id op;
        double bound;
    } wide[] = {{BYI_OP_EXP, 3},
                {BYI_OP_TANH, 5},
                {BYI_OP_SIGMOID, 4},
                {BYI_OP_NN_SILU, 5}};
    static double x[BLOCK];
    (void)state;
    fill_doubles(x);
    for (size_t f = 0; f < BYI_COUNT(wide); f++)
        for (int isa = 0; isa < BYI_N_ISAS; isa++)
            if (byi_simd_use((enum byi_isa)isa))
                check_doubles(wide[f].op, wide[f].bound, x);
    byi_simd_use(byi_isa_widest());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds),
                                       cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_doubles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
