/* SPDX-License-Identifier: Apache-2.0 */
/* composites_test.c: tests the composites of TVM's table for oneDNN, as
 * frameworks export them. These are residual blocks, and products: convolutions
 * of one to three axes, transposed convolutions and dense, with or without a
 * bias. A product has an activation, which may consist of several operators:
 * gelu is x (erf(x / sqrt 2) + 1) / 2, swish is x sigmoid(x), and mish is x
 * tanh(log(e^x + 1)). After the passes of a compile each must be one composite,
 * with the results of the plain program. If a constant of the activation is
 * changed, it must not match. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "needs.h"
#include "program.inc"

/* A convolution or product, which `row` matches. */
struct base {
    const char *row, *params, *call;
    const char *bias; /* shape of the bias */
    const char *sum;  /* shape of a summand, which is that of the result */
};

/* clang-format off */
static const struct base bases[] = {
    {"dnnl.conv", "%x: (1, 4, 9)", "nn.conv1d(%x, random[(8, 4, 3), float32, seed=1], padding=[1, 1])", "8, 1", "1, 8, 9"},
    {"dnnl.conv", "%x: (1, 4, 7, 6)", "nn.conv2d(%x, random[(8, 4, 3, 3), float32, seed=1], padding=[1, 1, 1, 1])", "8, 1, 1", "1, 8, 7, 6"},
    {"dnnl.conv", "%x: (1, 4, 5, 4, 3)", "nn.conv3d(%x, random[(8, 4, 3, 3, 3), float32, seed=1], padding=[1, 1, 1, 1, 1, 1])", "8, 1, 1, 1", "1, 8, 5, 4, 3"},
    {"dnnl.conv", "%x: (1, 19, 9)", "nn.conv1d(%x, random[(19, 1, 3), float32, seed=1], padding=[2, 2], dilation=[2], groups=19)", "19, 1", "1, 19, 9"},
    {"dnnl.conv", "%x: (1, 20, 9, 8)", "nn.conv2d(%x, random[(20, 1, 5, 5), float32, seed=1], padding=[4, 4, 4, 4], dilation=[2, 2], groups=20)", "20, 1, 1", "1, 20, 9, 8"},
    {"dnnl.deconv", "%x: (2, 17, 5, 4)", "nn.conv2d_transpose(%x, random[(17, 6, 3, 4), float32, seed=1], strides=[2, 3], padding=[1, 0, 0, 1], dilation=[1, 2])", "6, 1, 1", "2, 6, 10, 15"},
    {"dnnl.deconv", "%x: (1, 4, 5, 4)", "nn.conv2d_transpose(%x, random[(4, 6, 2, 2), float32, seed=1], strides=[2, 2])", "6, 1, 1", "1, 6, 10, 8"},
    {"dnnl.deconv", "%x: (1, 4, 3, 2, 3)", "nn.conv3d_transpose(%x, random[(4, 6, 2, 2, 2), float32, seed=1])", "6, 1, 1, 1", "1, 6, 4, 3, 4"},
    {"dnnl.dense", "%x: (3, 12)", "nn.dense(%x, random[(10, 12), float32, seed=1])", "10", "3, 10"},
};

/* The statements after %0; each %s is one of the numbers, which define the
 * activation. */
static const struct {
    const char *name, *text, *numbers[3];
} activations[] = {
    {"none", NULL, {NULL}},
    {"relu", "nn.relu(%0)", {NULL}},
    {"tanh", "tanh(%0)", {NULL}},
    {"sigmoid", "sigmoid(%0)", {NULL}},
    {"clip", "clip(%0, a_min=0.0, a_max=6.0)", {NULL}},
    {"gelu", "%%1 = erf(divide(%%0, %s));\n  multiply(multiply(%%0, add(%%1, %s)), %s)", {"1.4142135f", "1.0f", "0.5f"}},
    {"swish", "multiply(%0, sigmoid(%0))", {NULL}},
    {"mish", "%%1 = log(add(exp(%%0), %s));\n  multiply(%%0, tanh(%%1))", {"1.0f"}},
};

/* The statements of residual blocks. */
static const char *const sums[] = {
    "nn.relu(add(add(%s, random[(%s), float32, seed=2]), %%s9))",
    "add(add(%s, random[(%s), float32, seed=2]), %%s9)",
};
/* clang-format on */

static uint32_t n_checked;

/* Parse the program, and match it. Returns the number of composites; *func is
 * the last one's function. */
static uint32_t composites_of(const char *text, struct byi_module **m,
                              uint32_t *func)
{
    *m = parse(text);
    merge(*m, true, text);
    return count_composites(*m, func);
}

static void check_one(const struct base *base, const char *params,
                      const char *body)
{
    char *text = program_text(params, "float32", body);
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor in[MAX_IO], expected[MAX_IO];
    struct byi_module *plain = parse(text), *m;
    struct byoc_error err;
    uint32_t func = 0, n_expected;
    const uint32_t n = composites_of(text, &m, &func);
    if (n != 1 || strcmp(m->funcs.at[func]->attr.composite, base->row) != 0 ||
        count_ops(main_of(m)) != 0)
        fail_msg("found %u composites and %u operators outside, expected one "
                 "of row %s and no operators: %s\n%s",
                 n, count_ops(main_of(m)), base->row, refusal_text, text);
    fill_inputs(main_of(plain), arena, in);
    if (byi_interp_run(plain, byi_func_find(plain, "main"), in,
                       main_of(plain)->params.n, arena, expected, MAX_IO,
                       &n_expected, &err))
        fail_msg("%s\n%s", err.text, text);
    run_composite(m, func, in, expected, n_expected, arena, text);
    n_checked++;
    byi_module_free(&plain);
    byi_module_free(&m);
    byi_arena_free(&arena);
    byi_text_free(&(struct byi_text){.at = text});
}

/* The program of an activation after `call`. If `index` is not -1, number
 * `index` of the activation is changed by one percent. The caller frees the
 * program. */
static struct byi_text activation_program(const char *call, size_t activation,
                                          int index)
{
    const char *const *numbers = activations[activation].numbers;
    char value[3][32] = {{0}};
    struct byi_text body = {0};
    if (!activations[activation].text) {
        byi_text_put(&body, call);
        return body;
    }
    for (int i = 0; i < 3 && numbers[i]; i++)
        snprintf(value[i], sizeof value[i], "%.7ff",
                 atof(numbers[i]) * (i == index ? 1.01 : 1.0));
    byi_text_addf(&body, "%%0 = %s;\n  ", call);
    if (numbers[0])
        byi_text_addf(&body, activations[activation].text, value[0], value[1],
                      value[2]);
    else
        byi_text_put(&body, activations[activation].text);
    return body;
}

static void each_is_one_composite(void **state)
{
    char call[1000], body[2000], params[300];
    (void)state;
    needs_kernels();
    open_backends(0);
    for (size_t b = 0; b < BYI_COUNT(bases); b++)
        for (int bias = 0; bias < 2; bias++)
            for (size_t a = bias ? 0 : 1; a < BYI_COUNT(activations); a++) {
                snprintf(call, sizeof call,
                         bias ? "add(%s, random[(%s), float32, seed=2])" : "%s",
                         bases[b].call, bases[b].bias);
                struct byi_text program = activation_program(call, a, -1);
                check_one(&bases[b], bases[b].params, program.at);
                byi_text_free(&program);
            }
    for (size_t b = 0; b < BYI_COUNT(bases); b++)
        for (size_t i = 0; i < BYI_COUNT(sums); i++) {
            snprintf(params, sizeof params, "%s, %%s9: (%s)", bases[b].params,
                     bases[b].sum);
            snprintf(body, sizeof body, sums[i], bases[b].call, bases[b].bias);
            check_one(&bases[b], params, body);
        }
    byi_backends_free(&backends);
    printf("%u composites, each matched, built, run and compared\n", n_checked);
}

/* With another number the activation does not match: some operators stay
 * outside of the composite, and none in it has the activation's name. */
static void other_constants_do_not_match(void **state)
{
    (void)state;
    open_backends(0);
    for (size_t b = 0; b < BYI_COUNT(bases); b++)
        for (size_t a = 0; a < BYI_COUNT(activations); a++)
            for (int i = 0; i < 3 && activations[a].numbers[i]; i++) {
                struct byi_module *m;
                uint32_t func = 0;
                struct byi_text body = activation_program(bases[b].call, a, i);
                char *text = program_text(bases[b].params, "float32", body.at);
                byi_text_free(&body);
                composites_of(text, &m, &func);
                struct byi_text printed = {0};
                byi_print_module(m, &printed, NULL);
                if (strstr(printed.at, "nn.gelu") ||
                    strstr(printed.at, "nn.mish") || count_ops(main_of(m)) == 0)
                    fail_msg("%s: found %s, expected no activation, since a "
                             "number differs",
                             text, printed.at);
                byi_text_free(&printed);
                byi_module_free(&m);
                byi_text_free(&(struct byi_text){.at = text});
            }
    byi_backends_free(&backends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_one_composite),
        cmocka_unit_test(other_constants_do_not_match),
        cmocka_unit_test(regions_as_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
