/* SPDX-License-Identifier: Apache-2.0 */
/* revert_test.c: tests that a region is split while compiling, or reverted, if
 * its backend cannot build it as a whole. The ledger records it, the rest of
 * the model is compiled, and the results equal those without backends.
 */
#include <byoc/byoc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <dlfcn.h>

#include <cmocka.h>

enum { MAX_OUT = 4 };

static const char refusing[] = PLUGIN_DIR "/bad_load.so";
static const char ref[] = PLUGIN_DIR "/libbyoc_backend_ref.so";
static const char choosy[] = PLUGIN_DIR "/choosy.so";
static const char choosy_compile[] = PLUGIN_DIR "/choosy_compile.so";

static struct byoc_compiled *compile(const char *text, const char *plugin)
{
    static const char *const none[] = {NULL};
    const char *path = BUILD_DIR "/revert.ir";
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

/* Run on the numbers -2, -1.5, ...; each output has n numbers. Returns the
 * number of outputs. */
static uint32_t run(struct byoc_compiled *compiled, const char *plugin, int n,
                    float out[MAX_OUT][16])
{
    const struct byoc_load_params load = {.plugins = plugin};
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    struct byoc_error err;
    float x[16];
    int64_t dims[] = {n};
    DLTensor in = {.data = x,
                   .device = {kDLCPU, 0},
                   .ndim = 1,
                   .dtype = byoc_dtype_dlpack(BYOC_F32),
                   .shape = dims};
    DLTensor results[MAX_OUT] = {0};
    for (int i = 0; i < n; i++)
        x[i] = (float)i / 2 - 2;
    if (byoc_compiled_load(compiled, &load, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_string_equal(byoc_model_warnings(model), "");
    const uint32_t n_out = byoc_model_n_outputs(model);
    assert_true(n_out <= MAX_OUT);
    assert_int_equal(byoc_state_new(model, &state, NULL), 0);
    if (byoc_run(state, &in, 1, results, n_out, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n_out; i++)
        memcpy(out[i], results[i].data, (size_t)n * sizeof(float));
    byoc_state_free(&state);
    byoc_model_free(&model);
    return n_out;
}

/* The results with the plug-in and without any backend are equal. */
static void check_numbers(struct byoc_compiled *compiled, const char *text,
                          const char *plugin, int n)
{
    float found[MAX_OUT][16], expected[MAX_OUT][16];
    struct byoc_compiled *native = compile(text, NULL);
    const uint32_t n_out = run(native, NULL, n, expected);
    assert_int_equal(run(compiled, plugin, n, found), n_out);
    for (uint32_t i = 0; i < n_out; i++)
        for (int k = 0; k < n; k++)
            assert_float_equal(found[i][k], expected[i][k], 1e-4);
    byoc_compiled_free(&native);
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    while ((text = strstr(text, what))) {
        text += strlen(what);
        n++;
    }
    return n;
}

static void expect_text(const char *ledger, const char *what)
{
    if (!strstr(ledger, what))
        fail_msg("found no %s in\n%s", what, ledger);
}

/* Compile, check the ledger's counts and texts, and check the results of a run.
 */
static void check(const char *text, const char *plugin, int n,
                  unsigned offloaded, unsigned regions,
                  const char *const *texts)
{
    char line[64];
    struct byoc_compiled *compiled = compile(text, plugin);
    const char *ledger = byoc_compiled_ledger(compiled);
    snprintf(line, sizeof line, "\"offloaded\": %u,", offloaded);
    expect_text(ledger, line);
    snprintf(line, sizeof line, "\"regions\": %u,", regions);
    expect_text(ledger, line);
    for (; *texts; texts++)
        expect_text(ledger, *texts);
    check_numbers(compiled, text, plugin, n);
    byoc_compiled_free(&compiled);
}

/* --- reverted ------------------------------------------------------------ */

static const char single[] =
    "def @main(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n"
    "  %0 = nn.relu(%x) #[\"Relu_0\": \"Relu\"];\n"
    "  exp(%0) #[\"Exp_1\": \"Exp\"]\n"
    "}\n";

static void a_region_that_fails_is_reverted(void **state)
{
    (void)state;
    check(single, refusing, 4, 0, 0,
          (const char *const[]){"\"reason\": \"region-failed\"",
                                "this backend builds nothing", NULL});
}

static void a_region_that_loads_stays(void **state)
{
    (void)state;
    float out[MAX_OUT][16];
    struct byoc_compiled *compiled = compile(single, ref);
    const char *ledger = byoc_compiled_ledger(compiled);
    expect_text(ledger, "\"regions\": 1,");
    assert_null(strstr(ledger, "region-failed"));
    run(compiled, ref, 4, out); /* takes the model that compiling loaded */
    run(compiled, ref, 4, out); /* loads another one */
    assert_float_equal(out[0][0], 1, 1e-6);
    check_numbers(compiled, single, ref, 4);
    byoc_compiled_free(&compiled);
}

/* Reverted nodes are plain operators for the passes after partitioning. */
static void reverted_operators_are_fused(void **state)
{
    (void)state;
    struct byoc_compiled *compiled = compile(single, refusing);
    const char *ir = byoc_compiled_ir(compiled);
    expect_text(ir, "Primitive=1");
    assert_null(strstr(ir, "Composite"));
    byoc_compiled_free(&compiled);
}

/* --- split --------------------------------------------------------------- */

/* Ten kernels in a row, of which at most four can be in one region. */
static const char chain[] = "def @main(%x: Tensor[(5), float32]) {\n"
                            "  %0 = multiply(%x, 1.5) #[\"m0\": \"Mul\"];\n"
                            "  %1 = multiply(%0, %x) #[\"m1\": \"Mul\"];\n"
                            "  %2 = multiply(%1, 0.5) #[\"m2\": \"Mul\"];\n"
                            "  %3 = multiply(%2, %0) #[\"m3\": \"Mul\"];\n"
                            "  %4 = multiply(%3, 2.5) #[\"m4\": \"Mul\"];\n"
                            "  %5 = multiply(%4, %x) #[\"m5\": \"Mul\"];\n"
                            "  %6 = multiply(%5, 0.25) #[\"m6\": \"Mul\"];\n"
                            "  %7 = multiply(%6, %1) #[\"m7\": \"Mul\"];\n"
                            "  %8 = multiply(%7, 1.25) #[\"m8\": \"Mul\"];\n"
                            "  %9 = multiply(%8, %5) #[\"m9\": \"Mul\"];\n"
                            "  (%9, %4)\n"
                            "}\n";

static const char *const chain_texts[] = {
    "\"reason\": \"region-split\"",
    "more than four kernels; 10 of its 10 composites stay, in 3 regions", NULL};

static void a_region_that_is_too_long_is_split(void **state)
{
    (void)state;
    check(chain, choosy, 5, 10, 3, chain_texts);
}

static void a_region_that_compile_refuses_is_split(void **state)
{
    (void)state;
    check(chain, choosy_compile, 5, 10, 3, chain_texts);
}

/* A region whose compile() succeeds without a blob is reverted. */
static void a_compile_without_a_blob_is_reverted(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(15), float32]) {\n"
          "  multiply(%x, 1.5) #[\"m0\": \"Mul\"]\n"
          "}\n",
          choosy_compile, 15, 0, 0,
          (const char *const[]){"\"reason\": \"region-failed\"",
                                "compile() returned a blob without data",
                                NULL});
    check("def @main(%x: Tensor[(16), float32]) {\n"
          "  multiply(%x, 1.5) #[\"m0\": \"Mul\"]\n"
          "}\n",
          choosy_compile, 16, 0, 0,
          (const char *const[]){"compile() returned a blob of 0 bytes", NULL});
}

/* Two kernels that cannot be in one region: the least number of regions. */
static void a_pair_that_cannot_share_a_region_is_split(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(5), float32]) {\n"
          "  %0 = multiply(%x, 1.5) #[\"m0\": \"Mul\"];\n"
          "  %1 = add(%0, %x) #[\"a1\": \"Add\"];\n"
          "  %2 = nn.relu(%1) #[\"r1\": \"Relu\"];\n"
          "  %3 = add(%2, 0.5) #[\"a2\": \"Add\"];\n"
          "  %4 = nn.relu(%3) #[\"r2\": \"Relu\"];\n"
          "  (%4, %0)\n"
          "}\n",
          choosy, 5, 5, 2,
          (const char *const[]){"two kernels ref.add_relu; 3 of "
                                "its 3 composites stay, in 2 regions",
                                NULL});
}

/* One kernel that cannot be built even alone is reverted, and the rest stays.
 */
static void a_kernel_that_fails_alone_is_reverted_alone(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(13), float32]) {\n"
          "  %0 = multiply(%x, 1.5) #[\"m0\": \"Mul\"];\n"
          "  %1 = nn.relu(%0) #[\"r1\": \"Relu\"];\n"
          "  %2 = multiply(%1, %0) #[\"m2\": \"Mul\"];\n"
          "  (%2, %1)\n"
          "}\n",
          choosy, 13, 2, 2,
          (const char *const[]){
              "\"reason\": \"region-failed\"",
              "a ref.relu of 13 numbers; 2 of its 3 composites stay, "
              "in 2 regions",
              NULL});
}

/* In a branch and after a branch: two callers with a region each. */
static void regions_of_branches_are_split(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(5), float32]) {\n"
          "  %0 = max(%x, keepdims=false);\n"
          "  %1 = if (less(%0, 1.0)) { %x } else {\n"
          "    %2 = add(%x, 1.5) #[\"a1\": \"Add\"];\n"
          "    %3 = nn.relu(%2) #[\"r1\": \"Relu\"];\n"
          "    %4 = add(%3, %3) #[\"a2\": \"Add\"];\n"
          "    nn.relu(%4) #[\"r2\": \"Relu\"]\n"
          "  };\n"
          "  %5 = add(%1, 0.5) #[\"a3\": \"Add\"];\n"
          "  %6 = nn.relu(%5) #[\"r3\": \"Relu\"];\n"
          "  %7 = add(%6, %1) #[\"a4\": \"Add\"];\n"
          "  %8 = nn.relu(%7) #[\"r4\": \"Relu\"];\n"
          "  exp(%8) #[\"e\": \"Exp\"]\n"
          "}\n",
          choosy, 5, 8, 4,
          (const char *const[]){"2 of its 2 composites stay, in 2 regions",
                                NULL});
}

/* A region of the maximum length is split with few attempts. */
static void long_regions_take_few_tries(void **state)
{
    (void)state;
    static char text[32768];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "def @main(%%x: Tensor[(5), float32]) {\n"
                                "  %%0 = multiply(%%x, 0.5);\n");
    for (int i = 1; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "  %%%d = add(%%%d, %%x) "
                              "#[\"a%d\": \"Add\"];\n",
                              i, i - 1, i);
    snprintf(text + n, sizeof text - n, "  %%99\n}\n");
    void *library = dlopen(choosy, RTLD_NOW);
    unsigned (*loads)(void), (*probes)(void);
    assert_non_null(library);
    *(void **)&loads = dlsym(library, "choosy_loads");
    *(void **)&probes = dlsym(library, "choosy_probes");
    const unsigned loads_before = loads(), probes_before = probes();
    struct byoc_compiled *compiled = compile(text, choosy);
    expect_text(byoc_compiled_ledger(compiled), "\"regions\": 25,");
    assert_true(loads() - loads_before <= 1 + 128 + 25);
    /* equal signatures are probed once: %0 and the rest */
    assert_int_equal(probes() - probes_before, 2);
    const char *ledger = byoc_compiled_ledger(compiled);
    /* the region's, and each node's */
    assert_int_equal(count(ledger, "\"reason\": \"region-split\""), 1 + 99);
    assert_int_equal(count(ledger, "\"outcome\": \"split\""), 1);
    assert_int_equal(count(ledger, "\"outcome\": \"kept\""), 25);
    check_numbers(compiled, text, choosy, 5);
    byoc_compiled_free(&compiled);
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_that_fails_is_reverted),
        cmocka_unit_test(a_region_that_loads_stays),
        cmocka_unit_test(reverted_operators_are_fused),
        cmocka_unit_test(a_region_that_is_too_long_is_split),
        cmocka_unit_test(a_region_that_compile_refuses_is_split),
        cmocka_unit_test(a_compile_without_a_blob_is_reverted),
        cmocka_unit_test(a_pair_that_cannot_share_a_region_is_split),
        cmocka_unit_test(a_kernel_that_fails_alone_is_reverted_alone),
        cmocka_unit_test(regions_of_branches_are_split),
        cmocka_unit_test(long_regions_take_few_tries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
