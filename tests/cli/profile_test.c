/* SPDX-License-Identifier: Apache-2.0 */
/* profile_test.c: tests that the work that events report equals sums computed
 * by hand: on native kernels, in a region, with symbolic dims. Also tests the
 * output of `byoc bench --profile`: the table, and the JSON against its schema.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include <byoc/byoc.h>

#include "core/base/base.h"
#include "../schema.h"

/* A product with an epilogue, and a lookup of one row in a table. */
static const char text[] =
    "def @main(%x: Tensor[(5, 3), float32], %n: Tensor[(1), int64]) {\n"
    "  %0 = nn.dense(%x, Tensor[(2, 3), float32] {1, 2, 3, 4, 5, 6});\n"
    "  %1 = nn.relu(add(%0, Tensor[(2), float32] {1, 2}));\n"
    "  %2 = take(Tensor[(4, 2), float32] {1, 2, 3, 4, 5, 6, 7, 8}, %n, "
    "axis=0);\n"
    "  (%1, %2)\n"
    "}\n";
static const char varying[] = "def @main(%x: Tensor[(N, 3), float32]) {\n"
                              "  nn.softmax(%x)\n"
                              "}\n";

static struct byoc_error err;

/* --- events --------------------------------------------------------------- */

/* The sums of a run's events of one kind. */
struct sums {
    const char *kind;
    double flops, bytes, constant_bytes;
    uint32_t n;
};

static void add_event(void *ctx, const struct byoc_event *event)
{
    struct sums *sums = ctx;
    if (strcmp(event->kind, sums->kind) != 0)
        return;
    sums->flops += event->flops;
    sums->bytes += event->bytes;
    sums->constant_bytes += event->constant_bytes;
    sums->n++;
}

/* Compile and run a model in text form once, and set the sums of its events.
 * `backend` is NULL for native kernels; `shape`: of the first input. */
static void run_model(const char *model_text, const char *backend,
                      const int64_t *shape, struct sums *sums)
{
    const char *const backends[] = {backend, NULL};
    const struct byoc_compile_params params = {.struct_size = sizeof params,
                                               .plugins = BUILD_DIR
                                               "/libbyoc_backend_dnnl.so",
                                               .backends = backends};
    const struct byoc_load_params load = {.struct_size = sizeof load,
                                          .plugins = BUILD_DIR
                                          "/libbyoc_backend_dnnl.so",
                                          .threads = 1};
    struct byoc_compiled *compiled = NULL;
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    float x[64] = {0};
    int64_t row = 3, one = 1;
    DLTensor in[] = {
        {.data = x, .ndim = 2, .shape = (int64_t *)(uintptr_t)shape},
        {.data = &row, .ndim = 1, .shape = &one},
    };
    DLTensor out[2] = {{.data = NULL}, {.data = NULL}};
    in[0].dtype = byoc_dtype_dlpack(BYOC_F32);
    in[1].dtype = byoc_dtype_dlpack(BYOC_I64);
    in[0].device.device_type = in[1].device.device_type = kDLCPU;
    if (byoc_compile_memory(model_text, strlen(model_text), "model.ir", &params,
                            &compiled, &err) != BYOC_OK ||
        byoc_compiled_load(compiled, &load, &model, &err) != BYOC_OK ||
        byoc_state_new(model, &state, &err) != BYOC_OK ||
        byoc_state_profile(state, add_event, sums, &err) != BYOC_OK ||
        byoc_run(state, in, byoc_model_n_inputs(model), out,
                 byoc_model_n_outputs(model), &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byoc_state_free(&state);
    byoc_model_free(&model);
    byoc_compiled_free(&compiled);
}

/* Check that there were events, and that their sums have these values. */
static void expect(const struct sums *sums, double flops, double bytes,
                   double constant_bytes)
{
    assert_true(sums->n > 0);
    if (sums->flops != flops)
        fail_msg("%s: %g operations, expected %g", sums->kind, sums->flops,
                 flops);
    assert_true(sums->bytes == bytes);
    assert_true(sums->constant_bytes == constant_bytes);
}

/* nn.dense: 60 operations, its epilogue 10 and 10; 60 + 24 + 8 + 40 bytes.
 * take: a row of 8 bytes, which it reads and writes, and the index. */
static void test_native_steps(void **state)
{
    static const int64_t shape[] = {5, 3};
    struct sums sums = {.kind = "kernel"};
    (void)state;
    run_model(text, NULL, shape, &sums);
    assert_int_equal(sums.n, 2);
    expect(&sums, 80, 60 + 24 + 8 + 40 + 24, 24 + 8 + 8);
}

/* One primitive computes the operators; the values between them stay in
 * registers and count no bytes. */
static void test_primitives(void **state)
{
    static const int64_t shape[] = {5, 3};
    struct sums primitive = {.kind = "primitive"}, region = {.kind = "region"};
    (void)state;
    run_model(text, "dnnl", shape, &primitive);
    run_model(text, "dnnl", shape, &region);
    expect(&primitive, 80, 60 + 24 + 8 + 40, 24 + 8);
    assert_true(region.n == 1 && region.flops == 80);
}

/* If sizes are known only when the model runs, events of regions report bytes,
 * but no operations. */
static void test_varying(void **state)
{
    static const int64_t shape[] = {7, 3};
    struct sums sums = {.kind = "kernel"};
    (void)state;
    run_model(varying, NULL, shape, &sums);
    expect(&sums, 21, 2 * 84, 0);
    sums = (struct sums){.kind = "primitive"};
    run_model(varying, "dnnl", shape, &sums);
    expect(&sums, 0, 0, 0);
    sums = (struct sums){.kind = "region"};
    run_model(varying, "dnnl", shape, &sums);
    expect(&sums, 0, 2 * 84, 0);
}

/* --- the command ---------------------------------------------------------- */

/* The output of `byoc bench` on the model, to be freed. */
static struct byi_text bench(const char *options, int *code)
{
    const char *path = BUILD_DIR "/profile_test.ir";
    struct byi_text output = {0};
    FILE *f = fopen(path, "w");
    char line[4096];
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    snprintf(line, sizeof line,
             BUILD_DIR "/byoc bench %s --native --seconds 0 --iterations 3 %s "
                       "2>&1",
             path, options);
    f = popen(line, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        byi_text_addf(&output, "%s", line);
    *code = pclose(f);
    remove(path);
    return output;
}

/* Replace each number by '#', and each run of spaces by one; omit the
 * instruction set after an algorithm. */
static void mask(char *at)
{
    char *to = at;
    for (const char *from = at; *from;) {
        if (*from >= '0' && *from <= '9') {
            from += strspn(from, "0123456789.");
            *to++ = '#';
        } else if (*from == ' ') {
            from += strspn(from, " ");
            *to++ = ' ';
        } else if (*from == ':' && from[1] != ' ') {
            from += strcspn(from, " \n");
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static void test_table(void **state)
{
    static const char expected[] =
        "\n median us share GFLOP/s of peak MB GB/s implementation operators "
        "nodes\n"
        " # #% # #% # # direct nn.dense+add+nn.relu main/nn.dense, main/add, "
        "main/nn.relu\n"
        " # #% - - # # native take main/take\n"
        "\n median us share GFLOP/s of peak MB GB/s steps operator\n";
    int code;
    (void)state;
    struct byi_text output = bench("--profile", &code);
    mask(output.at);
    if (code || !strstr(output.at, expected) ||
        !strstr(output.at, "\npeak # GFLOP/s of multiply-adds (") ||
        !strstr(output.at, " # #% # #% # # # all, over # runs\n"))
        fail_msg("found exit code %d and the output:\n%s\nexpected 0 and:\n%s",
                 code, output.at, expected);
    byi_text_free(&output);
}

static void test_json(void **state)
{
    int code;
    char why[256] = "";
    (void)state;
    struct byi_text output = bench("--profile --json", &code);
    cJSON *root = cJSON_Parse(output.at),
          *schema = schema_read("byoc-profile.schema.json");
    cJSON *profile = cJSON_GetObjectItemCaseSensitive(root, "profile");
    assert_non_null(schema);
    if (!profile || !schema_fits(schema, profile, why, sizeof why))
        fail_msg("%s: %s", why, output.at);
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(profile, "steps");
    const cJSON *dense = cJSON_GetArrayItem(steps, 0);
    const cJSON *take = cJSON_GetArrayItem(steps, 1);
    assert_true(cJSON_GetObjectItemCaseSensitive(dense, "flops")->valuedouble ==
                80);
    assert_true(!cJSON_HasObjectItem(take, "flops") &&
                !cJSON_HasObjectItem(take, "of_peak"));
    assert_true(cJSON_GetObjectItemCaseSensitive(take, "bytes")->valuedouble ==
                24);
    cJSON_Delete(root);
    cJSON_Delete(schema);
    byi_text_free(&output);
}

/* Without --profile the JSON has no profile; --profile=1 is an error, since the
 * option takes no value. */
static void test_without_profile(void **state)
{
    int code;
    (void)state;
    struct byi_text output = bench("--json", &code);
    assert_true(code == 0 && !strstr(output.at, "profile"));
    byi_text_free(&output);
    output = bench("--profile=1", &code);
    assert_true(code != 0 && strstr(output.at, "--profile"));
    byi_text_free(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_steps),
        cmocka_unit_test(test_primitives),
        cmocka_unit_test(test_varying),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_without_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
