/* SPDX-License-Identifier: Apache-2.0 */
/* source_test.c: tests a model for which a backend generates C, as an artifact
 * and in memory. Its results equal those of native kernels, for every number of
 * threads and instruction set. It is loaded and unloaded repeatedly. Two models
 * at once, and runs in several threads, do not disturb each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <byoc/byoc.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/open_files.h"

#define PLUGIN PLUGIN_DIR "/source.so"

enum { N = 2 * 3 * 40 * 50 };

static const char model[] =
    "def @main(%x: Tensor[(2, 3, 40, 50), float32],\n"
    "          %y: Tensor[(40, 1), float32]) {\n"
    "  %0 = add(%x, Tensor[(3, 1, 1), float32] {0.5, -1.0, 2.0});\n"
    "  %1 = maximum(%0, %y);\n"
    "  %2 = tanh(%1);\n"
    "  %3 = multiply(%2, %0);\n"
    "  nn.relu(%3) #[\"last\": \"Relu\"]\n"
    "}\n";

static char text[TEST_PATH + 8], artifact[TEST_PATH + 8];

static int make_files(void **state)
{
    (void)state;
    const char *folder = make_test_folder(NULL);
    assert_non_null(folder);
    snprintf(text, sizeof text, "%s/m.ir", folder);
    snprintf(artifact, sizeof artifact, "%s/m.so", folder);
    FILE *f = fopen(text, "w");
    assert_non_null(f);
    fputs(model, f);
    fclose(f);
    return 0;
}

static struct byoc_compiled *compile(enum byoc_codegen codegen)
{
    const char *const backends[] = {"source", NULL};
    const struct byoc_compile_params params = {.backends = backends,
                                               .plugins = PLUGIN,
                                               .codegen = codegen,
                                               .threads = 2};
    struct byoc_compiled *c;
    struct byoc_error err;
    if (byoc_compile(text, &params, &c, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    return c;
}

static float inputs[N], column[40], expected[N];

/* Run once; `y` has N elements. */
static void run(struct byoc_model *m, float *y)
{
    struct byoc_error err;
    struct byoc_state *state;
    int64_t shape[] = {2, 3, 40, 50}, short_shape[] = {40, 1};
    const DLTensor in[] = {{.data = inputs,
                            .device = {kDLCPU, 0},
                            .ndim = 4,
                            .dtype = byoc_dtype_dlpack(BYOC_F32),
                            .shape = shape},
                           {.data = column,
                            .device = {kDLCPU, 0},
                            .ndim = 2,
                            .dtype = byoc_dtype_dlpack(BYOC_F32),
                            .shape = short_shape}};
    DLTensor out = in[0];
    out.data = y;
    if (byoc_state_new(m, &state, &err) != BYOC_OK ||
        byoc_run(state, in, 2, &out, 1, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byoc_state_free(&state);
}

static struct byoc_model *load(uint32_t threads, int native)
{
    const struct byoc_load_params params = {.plugins = PLUGIN,
                                            .threads = threads,
                                            .native_only = native,
                                            .require_backends = !native};
    struct byoc_model *m;
    struct byoc_error err;
    if (byoc_model_load(artifact, &params, &m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    return m;
}

static void check(const float *y)
{
    for (int i = 0; i < N; i++)
        if (!(y[i] - expected[i] < 2e-6f && expected[i] - y[i] < 2e-6f))
            fail_msg("element %d: found %g, expected %g", i, (double)y[i],
                     (double)expected[i]);
}

/* --- tests ---------------------------------------------------------------- */

static void test_results_equal_native(void **state)
{
    (void)state;
    static float y[N];
    struct byoc_error err;
    for (int i = 0; i < N; i++)
        inputs[i] = (float)((i * 7919) % 1000) / 250 - 2;
    for (int i = 0; i < 40; i++)
        column[i] = (float)(i % 7) / 3 - 1;
    struct byoc_compiled *c = compile(BYOC_CODEGEN_DEFAULT);
    assert_non_null(strstr(byoc_compiled_ir(c), "Compiler=\"source\""));
    assert_int_equal(byoc_compiled_write(c, artifact, &err), BYOC_OK);
    struct byoc_model *m = load(1, 1);
    run(m, expected);
    byoc_model_free(&m);
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        m = load(threads, 0);
        assert_string_equal(byoc_model_warnings(m), "");
        memset(y, 0x7f, sizeof y);
        run(m, y);
        check(y);
        byoc_model_free(&m);
    }
    const struct byoc_load_params params = {.plugins = PLUGIN,
                                            .require_backends = 1};
    if (byoc_compiled_load(c, &params, &m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    memset(y, 0x7f, sizeof y);
    run(m, y);
    check(y);
    byoc_model_free(&m);
    byoc_compiled_free(&c);
}

/* The results are equal under each limit of the instruction set. No C is
 * generated for SSE2, so native kernels run there. */
static void test_instruction_sets(void **state)
{
    (void)state;
    static const char *const levels[] = {"sse2", "sse4.2", "avx2", "avx512"};
    static float y[N];
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        setenv("BYOC_MAX_ISA", levels[i], 1);
        const struct byoc_load_params params = {.plugins = PLUGIN};
        struct byoc_model *m;
        struct byoc_error err;
        if (byoc_model_load(artifact, &params, &m, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        memset(y, 0x7f, sizeof y);
        run(m, y);
        check(y);
#if defined(__x86_64__)
        assert_true(!strstr(byoc_model_warnings(m), "instruction sets") ==
                    (i > 0));
#endif
        byoc_model_free(&m);
    }
    unsetenv("BYOC_MAX_ISA");
}

static void test_reloads(void **state)
{
    (void)state;
    static float y[N];
    const int n_open = count_open_files();
    for (int i = 0; i < 200; i++) {
        struct byoc_model *a = load(1, 0), *b = load(1, 0);
        byoc_model_free(&a);
        memset(y, 0x7f, sizeof y);
        run(b, y);
        check(y);
        byoc_model_free(&b);
    }
    assert_int_equal(count_open_files(), n_open);
}

static void *run_repeatedly(void *m)
{
    static _Thread_local float y[N];
    for (int i = 0; i < 50; i++) {
        memset(y, 0x7f, sizeof y);
        run(m, y);
        if (memcmp(y, expected, sizeof y) != 0)
            for (int k = 0; k < N; k++)
                if (y[k] - expected[k] > 2e-6f || expected[k] - y[k] > 2e-6f)
                    return m;
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct byoc_model *m = load(1, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_repeatedly, m),
                         0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    byoc_model_free(&m);
}

/* Without a request for C, the backend compiles nothing, and the model runs
 * natively. */
static void test_json_only(void **state)
{
    (void)state;
    struct byoc_compiled *c = compile(BYOC_CODEGEN_JSON);
    assert_null(strstr(byoc_compiled_ir(c), "Compiler="));
    assert_non_null(strstr(byoc_compiled_ledger(c), "backend-writes-c"));
    byoc_compiled_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_equal_native),
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_reloads),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_json_only),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
