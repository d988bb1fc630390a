/* SPDX-License-Identifier: Apache-2.0 */
/* bounds_test.c: tests that conform does not compare results for operands for
 * which implementations may differ, nor results that depend on rounding.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conform/kit.h"
#include "interp/interp.h"

static const struct {
    const char *call;
    double x; /* all elements of the operand */
    bool undefined;
} cases[] = {
    {"nn.lrn(%x, size=3)", 1e5, false},
    {"nn.lrn(%x, size=3)", 1e8, false}, /* 1 + 1e-4 x^2 is 1e12 */
    {"nn.lrn(%x, size=3)", 1e9, true},  /* 1e14: its cube overflows */
    {"nn.lrn(%x, size=3, alpha=1e-8)", 1e9, false},
    {"nn.lrn(%x, size=3, alpha=1e-30)", 1e19, true}, /* the sum overflows */
    {"nn.instance_norm(%x, %w, %w)", 1e17, false},
    {"nn.instance_norm(%x, %w, %w)", 1e19, true},
    {"nn.relu(%x)", 1e30, false},
    {"nn.gelu(%x)", 1e30, false},
    {"nn.gelu(exp(%x))", 88, false},
    {"nn.gelu(exp(%x))", 1000, true},
    {"nn.relu(exp(%x))", 1000, false},
    {"nn.prelu(%x, %x)", 1e30, false},
    {"nn.prelu(%x, exp(%x))", 1000, true},
    {"nn.prelu(exp(%x), %x)", 1000, false},
    {"nn.prelu(%x, sqrt(negative(%x)))", 2, true}, /* NaN */
};

static void run_case(size_t i)
{
    struct byi_module *m = NULL;
    struct byi_arena *arena = byi_arena_new();
    struct byoc_error err;
    struct byi_perturbation perturbation = {.state = 1};
    struct byi_tensor in[2], out;
    uint32_t n_out;
    char text[300];
    const int n = snprintf(text, sizeof text,
                           "def @main(%%x: Tensor[(1, 3, 2, 2), float32], "
                           "%%w: Tensor[(3), float32]) {\n  %s\n}\n",
                           cases[i].call);
    if (byi_parse_module(text, (size_t)n, "case", NULL, &m, &err) != BYOC_OK)
        fail_msg("%s: %s", cases[i].call, err.text);
    const struct byi_func *f = m->funcs.at[0];
    for (uint32_t k = 0; k < 2; k++) {
        assert_true(byi_interp_random(f->nodes.at[f->params.at[k]].type, 1,
                                      arena, &in[k]));
        byi_domain_fill(&in[k], (struct byi_domain){cases[i].x, cases[i].x}, 1);
    }
    if (byi_interp_perturbed(m, 0, in, 2, arena, byi_kit_perturb, &perturbation,
                             &out, 1, &n_out, &err) != BYOC_OK)
        fail_msg("%s: %s", cases[i].call, err.text);
    if (perturbation.undefined != cases[i].undefined)
        fail_msg("%s of %g: found undefined=%d, expected %d", cases[i].call,
                 cases[i].x, perturbation.undefined, cases[i].undefined);
    byi_arena_free(&arena);
    byi_module_free(&m);
}

static void test_undefined(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++)
        run_case(i);
}

/* x - 1.0000005 x has the opposite sign of x, or is zero, or has the same: its
 * reciprocal is huge, and the ReLU of that is zero or huge. */
static const char pole[] =
    "def @main(%x: Tensor[(64), float32]) {\n"
    "  nn.relu(divide(1f, subtract(%x, multiply(%x, 1.0000005f))))\n}\n";

/* A number that is close to a pole, on either side, is not compared. */
static void test_pole(void **state)
{
    struct byi_module *m = NULL;
    struct byi_arena *arena = byi_arena_new();
    struct byi_kit kit = {.seed = 1};
    struct byi_expected e;
    struct byoc_error err;
    bool has_zero = false, has_huge = false;
    (void)state;
    if (byi_parse_module(pole, sizeof pole - 1, "pole", NULL, &m, &err) !=
        BYOC_OK)
        fail_msg("%s", err.text);
    const struct byi_func *f = m->funcs.at[0];
    const struct byi_sample sample = {.m = m,
                                      .n_in = 1,
                                      .n_out = 1,
                                      .in = {f->nodes.at[f->params.at[0]].type},
                                      .out = {f->nodes.at[f->result].type}};
    byi_kit_expect(&kit, &sample, 1, arena, &e);
    for (int64_t i = 0; i < 64; i++) {
        const double found = byi_tensor_float(&e.out[0], i);
        has_zero |= found == 0;
        has_huge |= found > 1e4;
        if (!isinf(e.slack[0][i]))
            fail_msg("element %d is %g, and compared with a slack of %g",
                     (int)i, found, e.slack[0][i]);
    }
    assert_true(has_zero && has_huge);
    byi_arena_free(&arena);
    byi_module_free(&m);
}

/* Rows of nearly equal numbers, which differ by the errors of earlier
 * operators: with `zeros`, the expected results of layer norm are zeros of both
 * signs. */
static void test_level_rows(void **state)
{
    static const char program[] =
        "def @main(%x: Tensor[(64, 1), float32]) {\n"
        "  %row = nn.mish(multiply(%x, [1.0, 1.0, 1.0, 1.0, 1.0]));\n"
        "  nn.layer_norm(%row, [1.0, 2.0, 3.0, 4.0, 5.0])\n}\n";
    struct byi_module *m = NULL;
    struct byi_arena *arena = byi_arena_new();
    struct byoc_error err;
    struct byi_perturbation perturbation = {.state = 1, .zeros = true};
    struct byi_tensor in, out;
    uint32_t n_out, negative = 0;
    (void)state;
    assert_int_equal(
        byi_parse_module(program, sizeof program - 1, "rows", NULL, &m, &err),
        BYOC_OK);
    const struct byi_func *f = m->funcs.at[0];
    assert_true(
        byi_interp_random(f->nodes.at[f->params.at[0]].type, 1, arena, &in));
    assert_int_equal(byi_interp_perturbed(m, 0, &in, 1, arena, byi_kit_perturb,
                                          &perturbation, &out, 1, &n_out, &err),
                     BYOC_OK);
    for (int64_t i = 0; i < 64 * 5; i++) {
        assert_true(byi_tensor_float(&out, i) == 0);
        negative += signbit(byi_tensor_float(&out, i)) != 0;
    }
    assert_in_range(negative, 100, 220);
    byi_arena_free(&arena);
    byi_module_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_undefined),
                                       cmocka_unit_test(test_pole),
                                       cmocka_unit_test(test_level_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
