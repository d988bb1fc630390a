/* ulp_test.c: how far the float32 loops of every instruction set are from the
 * functions they approximate, in units in the last place of the result, over a
 * stride of all bit patterns: denormals, infinities and NaN are among them.
 * ULP_STRIDE=1 in the environment takes all 2^32.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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
    {BYI_OP_SIGMOID, 2.5}, {BYI_OP_ERF, 3.2},
};

/* The distance of two neighbours of float32 at v. */
static double unit_at(double v)
{
    int exponent;
    frexp(v, &exponent);
    return ldexp(1, (v == 0 || exponent < -125 ? -125 : exponent) - 24);
}

static void check(enum byi_op_id op, double bound, float x, float found)
{
    const double none[4] = {0};
    const double want = byi_unary_plain(op, (double)x, none);
    const float nearest = (float)want;
    const bool same =
        isnan(want) ? isnan(found)
        : isinf(nearest) || isinf(found)
            ? found == nearest
            : fabs((double)found - want) <= bound * unit_at(want) * (1 + 1e-9);
    if (!same)
        fail_msg("%s of %a: found %a, expected %a within %g ulp; "
                 "instruction set %s",
                 byi_op(op)->name, (double)x, (double)found, want, bound,
                 byi_isa_name(byi_simd()->isa));
}

static void sweep(enum byi_op_id op, double bound, uint64_t stride)
{
    enum { BLOCK = 4096 };
    static float x[BLOCK], y[BLOCK];
    const float none[4] = {0};
    for (uint64_t bits = 0; bits >> 32 == 0;) {
        int64_t n = 0;
        for (; n < BLOCK && bits >> 32 == 0; n++, bits += stride) {
            const uint32_t low = (uint32_t)bits;
            memcpy(&x[n], &low, sizeof low);
        }
        byi_simd()->unary[op](x, y, n, none);
        for (int64_t i = 0; i < n; i++)
            check(op, bound, x[i], y[i]);
    }
}

static void test_bounds(void **state)
{
    static const uint32_t odd[] = {0x7f800000, 0xff800000, 0x7fc00000,
                                   0x80000000, 1,          0x80000001,
                                   0x00800000, 0x7f7fffff, 0xff7fffff};
    const char *given = getenv("ULP_STRIDE");
    const uint64_t stride = given ? strtoull(given, NULL, 10) : 40961;
    const float none[4] = {0};
    (void)state;
    assert_true(stride > 0);
    for (int isa = 0; isa < BYI_N_ISAS; isa++) {
        if (!byi_simd_use((enum byi_isa)isa))
            continue;
        for (size_t f = 0; f < BYI_COUNT(functions); f++) {
            sweep(functions[f].op, functions[f].bound, stride);
            for (size_t i = 0; i < BYI_COUNT(odd); i++) {
                float x, y;
                memcpy(&x, &odd[i], sizeof x);
                byi_simd()->unary[functions[f].op](&x, &y, 1, none);
                check(functions[f].op, functions[f].bound, x, y);
            }
        }
    }
    byi_simd_use(byi_isa_widest());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
