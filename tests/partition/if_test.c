/* SPDX-License-Identifier: Apache-2.0 */
/* if_test.c: tests an `if` that a backend runs, from its pattern to the run.
 * The reference plug-in executes the region's JSON, with either branch, and
 * must compute the native results.
 */
#include <byoc/byoc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char ref[] = PLUGIN_DIR "/libbyoc_backend_ref.so";
enum { N = 4 };

static struct byoc_compiled *compile(const char *text, const char *plugin)
{
    static const char *const none[] = {NULL};
    const char *path = BUILD_DIR "/if_test.ir";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    const struct byoc_compile_params params = {
        .plugins = plugin, .backends = plugin ? NULL : none, .verify = 1};
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    if (byoc_compile(path, &params, &compiled, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    return compiled;
}

/* Run on the numbers -2, -1, 0, 1 with this condition. The model's warnings
 * must contain `warning`, or be empty if it is. */
static void run(struct byoc_compiled *compiled, const char *plugin,
                const char *warning, bool cond, float out[N])
{
    const struct byoc_load_params load = {.plugins = plugin};
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    struct byoc_error err;
    float x[N] = {-2, -1, 0, 1};
    int64_t dims[] = {N};
    const DLTensor in[] = {
        {.data = &cond,
         .device = {kDLCPU, 0},
         .dtype = byoc_dtype_dlpack(BYOC_BOOL)},
        {.data = x,
         .device = {kDLCPU, 0},
         .ndim = 1,
         .dtype = byoc_dtype_dlpack(BYOC_F32),
         .shape = dims},
    };
    DLTensor result = {0};
    if (byoc_compiled_load(compiled, &load, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    if (!strstr(byoc_model_warnings(model), warning) ||
        !*byoc_model_warnings(model) != !*warning)
        fail_msg("found the warnings \"%s\", expected \"%s\"",
                 byoc_model_warnings(model), warning);
    assert_int_equal(byoc_state_new(model, &state, NULL), 0);
    if (byoc_run(state, in, 2, &result, 1, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    memcpy(out, result.data, N * sizeof *out);
    byoc_state_free(&state);
    byoc_model_free(&model);
}

/* Offload all of `text` as one region, of which a composite has the attribute
 * `operators`; both branches give the native results, which differ. */
static void check(const char *text, const char *operators)
{
    struct byoc_compiled *with = compile(text, ref);
    struct byoc_compiled *native = compile(text, NULL);
    float results[2][N];
    if (!strstr(byoc_compiled_ir(with), operators) ||
        !strstr(byoc_compiled_ledger(with), "\"native\": 0,") ||
        !strstr(byoc_compiled_ledger(with), "\"regions\": 1, "))
        fail_msg(
            "expected one region with %s and no native node, found\n%s\n%s",
            operators, byoc_compiled_ir(with), byoc_compiled_ledger(with));
    for (int cond = 0; cond < 2; cond++) {
        float expected[N];
        run(with, ref, "", cond, results[cond]);
        run(native, NULL, "", cond, expected);
        for (int i = 0; i < N; i++)
            assert_float_equal(results[cond][i], expected[i], 1e-6);
    }
    assert_memory_not_equal(results[0], results[1], sizeof *results);
    byoc_compiled_free(&native);
    byoc_compiled_free(&with);
}

#define HEAD "def @main(%c: Tensor[(), bool], %x: Tensor[(4), float32]) {\n"

static void runs_the_branch(void **state)
{
    (void)state;
    check(HEAD "  if (%c) { nn.relu(add(%x, 1.5)) #[\"r\": \"Relu\"] }\n"
               "  else { multiply(%x, -2.0) #[\"m\": \"Mul\"] }\n}\n",
          "PartitionedFromPattern=\"add_nn.relu_multiply_if\"");
}

/* An `if` between kernels of its region, which compute the branches' operands.
 */
static void runs_in_a_region(void **state)
{
    (void)state;
    check(HEAD "  %0 = multiply(%x, 3.0) #[\"m0\": \"Mul\"];\n"
               "  %1 = if (%c) { nn.relu(add(%0, %x)) #[\"r\": \"Relu\"] }\n"
               "  else { multiply(%0, %x) #[\"m1\": \"Mul\"] };\n"
               "  add(%1, %0) #[\"a\": \"Add\"]\n}\n",
          "PartitionedFromPattern=\"add_nn.relu_multiply_if\"");
}

/* Without the backend the region runs on its native twin. */
static void twin_computes_the_same(void **state)
{
    (void)state;
    struct byoc_compiled *with =
        compile(HEAD "  if (%c) { nn.relu(add(%x, 1.5)) }\n"
                     "  else { multiply(%x, -2.0) }\n}\n",
                ref);
    const float expected[2][N] = {{4, 2, 0, -2}, {0, 0.5, 1.5, 2.5}};
    for (int cond = 0; cond < 2; cond++) {
        float found[N];
        run(with, NULL, "ref", cond, found);
        for (int i = 0; i < N; i++)
            assert_float_equal(found[i], expected[cond][i], 1e-6);
    }
    byoc_compiled_free(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_the_branch),
        cmocka_unit_test(runs_in_a_region),
        cmocka_unit_test(twin_computes_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
