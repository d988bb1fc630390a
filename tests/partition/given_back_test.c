/* given_back_test.c: a region that its vendor cannot build as a whole is given
 * back while compiling: the ledger says so, and the model runs natively
 * without a warning.
 */
#include <byoc/byoc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "def @main(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n"
    "  %0 = nn.relu(%x) #[\"Relu_0\": \"Relu\"];\n"
    "  exp(%0) #[\"Exp_1\": \"Exp\"]\n"
    "}\n";

static struct byoc_compiled *compile(const char *plugin)
{
    const char *path = BUILD_DIR "/given_back.ir";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    const struct byoc_compile_params params = {.plugins = plugin};
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    if (byoc_compile(path, &params, &compiled, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    return compiled;
}

static void check_run(struct byoc_compiled *compiled, const char *plugin)
{
    const struct byoc_load_params load = {.plugins = plugin};
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    float x[4] = {-1, 0, 1, 2};
    int64_t dims[] = {4};
    DLTensor in = {.data = x,
                   .device = {kDLCPU, 0},
                   .ndim = 1,
                   .dtype = byoc_dtype_dlpack(BYOC_F32),
                   .shape = dims};
    DLTensor out = {0};
    assert_int_equal(byoc_compiled_load(compiled, &load, &model, NULL), 0);
    assert_string_equal(byoc_model_warnings(model), "");
    assert_int_equal(byoc_state_new(model, &state, NULL), 0);
    assert_int_equal(byoc_run(state, &in, 1, &out, 1, NULL), 0);
    const float *y = out.data;
    assert_float_equal(y[0], 1, 1e-6);
    assert_float_equal(y[3], 7.3890561, 1e-5);
    byoc_state_free(&state);
    byoc_model_free(&model);
}

static void a_region_that_fails_is_given_back(void **state)
{
    (void)state;
    const char *plugin = PLUGIN_DIR "/bad_load.so";
    struct byoc_compiled *compiled = compile(plugin);
    const char *ledger = byoc_compiled_ledger(compiled);
    assert_non_null(strstr(ledger, "\"offloaded\": 0"));
    assert_non_null(strstr(ledger, "\"regions\": 0"));
    assert_non_null(strstr(ledger, "\"reason\": \"region-failed\""));
    assert_non_null(strstr(ledger, "this backend builds nothing"));
    check_run(compiled, plugin);
    byoc_compiled_free(&compiled);
}

static void a_region_that_loads_stays(void **state)
{
    (void)state;
    const char *plugin = PLUGIN_DIR "/libbyoc_backend_ref.so";
    struct byoc_compiled *compiled = compile(plugin);
    const char *ledger = byoc_compiled_ledger(compiled);
    assert_non_null(strstr(ledger, "\"regions\": 1"));
    assert_null(strstr(ledger, "region-failed"));
    check_run(compiled, plugin); /* the model that compiling tried */
    check_run(compiled, plugin); /* one of its own */
    byoc_compiled_free(&compiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_that_fails_is_given_back),
        cmocka_unit_test(a_region_that_loads_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
