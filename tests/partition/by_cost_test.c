/* SPDX-License-Identifier: Apache-2.0 */
/* by_cost_test.c: tests --partition-by=measured and =estimated: the placement,
 * the ledger, and that nothing is measured twice. The backends are so slow or
 * so fast that measurements are unambiguous. */
#include "tuner/measure.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#define SLOW PLUGIN_DIR "/slow.so"
#define FAST PLUGIN_DIR "/fast.so"
#define REF PLUGIN_DIR "/libbyoc_backend_ref.so" /* its cost() is NULL */
#define TABLE BUILD_DIR "/by_cost_test.json"

/* Almost no work, and no operators to fuse. */
static const char small[] =
    "def @main(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n"
    "  %0 = nn.relu(%x) #[\"Relu_0\": \"Relu\"];\n"
    "  nn.softmax(%0, axis=0) #[\"Softmax_1\": \"Softmax\"]\n"
    "}\n";
/* 16 MB through a native kernel: milliseconds. */
static const char large[] = "def @main(%x: Tensor[(4, 1024, 1024), float32])"
                            " -> Tensor[(4, 1024, 1024), float32] {\n"
                            "  %0 = nn.relu(%x) #[\"Relu_0\": \"Relu\"];\n"
                            "  add(%0, %x) #[\"Add_1\": \"Add\"]\n"
                            "}\n";

static enum byoc_status try(const char *text, const char *name,
                            struct byoc_compile_params params,
                            struct byoc_compiled **compiled,
                            struct byoc_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, BUILD_DIR "/by_cost_%s.ir", name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    params.partition_by =
        params.partition_by ? params.partition_by : BYOC_PARTITION_MEASURED;
    params.cost_table = params.cost_table ? params.cost_table : TABLE;
    params.threads = params.threads ? params.threads : 1;
    return byoc_compile(path, &params, compiled, err);
}

/* Compile, and repeat that if the machine was too busy to decide. */
static struct byoc_compiled *compile(const char *text,
                                     struct byoc_compile_params params)
{
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    for (int i = 0; i < 50; i++) {
        if (try(text, "model", params, &compiled, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        if (!strstr(byoc_compiled_warnings(compiled), "too busy"))
            break;
        byoc_compiled_free(&compiled);
    }
    assert_non_null(compiled);
    return compiled;
}

/* --- reading the ledger --------------------------------------------------- */

static const cJSON *node_of(const cJSON *ledger, const char *name)
{
    const cJSON *node;
    cJSON_ArrayForEach(
        node,
        cJSON_GetObjectItem(
            ledger,
            "nodes")) if (strcmp(cJSON_GetObjectItem(node, "name")->valuestring,
                                 name) == 0) return node;
    fail_msg("found no node %s in the ledger, expected one", name);
    return NULL;
}

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* --- placement ------------------------------------------------------------ */

static void a_slow_backend_runs_nothing(void **state)
{
    (void)state;
    unlink(TABLE);
    struct byoc_compiled *c =
        compile(small, (struct byoc_compile_params){.plugins = SLOW});
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(c));
    const cJSON *relu = node_of(ledger, "Relu_0");
    assert_string_equal(text_of(relu, "where"), "native");
    assert_string_equal(text_of(relu, "reason"), "cheaper-elsewhere");
    assert_true(number_of(relu, "backend_us") >= 10000);
    assert_true(number_of(relu, "native_us") < number_of(relu, "backend_us"));
    const cJSON *attempt =
        cJSON_GetArrayItem(cJSON_GetObjectItem(relu, "tried"), 0);
    assert_non_null(strstr(text_of(attempt, "detail"), "native "));
    assert_non_null(strstr(text_of(attempt, "detail"), "slow "));
    const cJSON *measured = cJSON_GetObjectItem(ledger, "measured");
    assert_string_equal(text_of(measured, "chosen"), "native");
    assert_true(number_of(measured, "greedy_us") >= 10000);
    assert_true(number_of(measured, "measured_us") <
                number_of(measured, "greedy_us"));
    assert_string_equal(byoc_compiled_warnings(c), "");
    char *report = NULL;
    assert_int_equal(
        byoc_ledger_text(byoc_compiled_ledger(c), 0, &report, NULL), BYOC_OK);
    assert_non_null(strstr(report, "chosen: native"));
    byoc_string_free(report);
    cJSON_Delete(ledger);
    byoc_compiled_free(&c);
}

static void a_fast_backend_keeps_its_region(void **state)
{
    (void)state;
    struct byoc_compiled *c =
        compile(large, (struct byoc_compile_params){.plugins = FAST});
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(c));
    const cJSON *regions = cJSON_GetObjectItem(ledger, "regions");
    assert_int_equal(cJSON_GetArraySize(regions), 1);
    const cJSON *region = cJSON_GetArrayItem(regions, 0);
    assert_string_equal(text_of(region, "backend"), "fast");
    assert_true(number_of(region, "backend_us") <
                number_of(region, "native_us"));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(region, "nodes")),
                     2);
    cJSON_Delete(ledger);
    byoc_compiled_free(&c);
}

static void check_where_of(struct byoc_compile_params params, const char *where)
{
    struct byoc_compiled *c = compile(large, params);
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(c));
    assert_string_equal(text_of(node_of(ledger, "Relu_0"), "where"), where);
    assert_string_equal(text_of(node_of(ledger, "Add_1"), "where"), where);
    cJSON_Delete(ledger);
    byoc_compiled_free(&c);
}

static void check_where(enum byoc_partition partition_by, const char *where)
{
    check_where_of((struct byoc_compile_params){.plugins = SLOW ":" FAST,
                                                .partition_by = partition_by},
                   where);
}

static void the_faster_backend_is_chosen(void **state)
{
    (void)state;
    check_where(BYOC_PARTITION_GREEDY, "slow"); /* by order of preference */
    check_where(BYOC_PARTITION_MEASURED, "fast");
}

/* Costs are the backends' own estimates, so nothing is timed; also with
 * isolation. */
static void the_lower_estimate_is_chosen(void **state)
{
    (void)state;
    for (int isolate = 0; isolate < 2; isolate++) {
        const struct byoc_compile_params params = {.plugins = SLOW ":" FAST,
                                                   .partition_by =
                                                       BYOC_PARTITION_ESTIMATED,
                                                   .isolate = isolate};
        check_where_of(params, "fast");
        struct byoc_compiled *c = compile(large, params);
        assert_int_equal(byoc_compiled_timed(c), 0);
        cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(c));
        const cJSON *attempt = cJSON_GetArrayItem(
            cJSON_GetObjectItem(node_of(ledger, "Relu_0"), "tried"), 0);
        assert_string_equal(text_of(attempt, "backend"), "slow");
        assert_string_equal(text_of(attempt, "reason"), "cheaper-elsewhere");
        assert_string_equal(text_of(attempt, "detail"),
                            "estimated: slow 10000.0 us, fast 0.0 us");
        cJSON_Delete(ledger);
        byoc_compiled_free(&c);
    }
}

/* A backend without cost() keeps its place in the order of preference. */
static void a_backend_without_cost_keeps_its_place(void **state)
{
    (void)state;
    check_where_of(
        (struct byoc_compile_params){.plugins = REF ":" FAST,
                                     .partition_by = BYOC_PARTITION_ESTIMATED},
        "ref");
    check_where_of(
        (struct byoc_compile_params){.plugins = SLOW ":" REF,
                                     .partition_by = BYOC_PARTITION_ESTIMATED},
        "slow");
    check_where_of(
        (struct byoc_compile_params){.plugins = REF,
                                     .partition_by = BYOC_PARTITION_ESTIMATED},
        "ref");
}

/* Measuring does not put an excluded node into a region. */
static void excluded_nodes_stay_native(void **state)
{
    (void)state;
    const char *exclude[] = {"Add_1", NULL};
    struct byoc_compiled *c =
        compile(large, (struct byoc_compile_params){.plugins = FAST,
                                                    .exclude = exclude});
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(c));
    assert_string_equal(text_of(node_of(ledger, "Add_1"), "where"), "native");
    assert_string_equal(text_of(node_of(ledger, "Add_1"), "reason"),
                        "excluded");
    cJSON_Delete(ledger);
    byoc_compiled_free(&c);
}

/* Operators of function literals and branches are measured like those of main.
 */
static void branches_are_measured_as_well(void **state)
{
    (void)state;
    static const char branches[] =
        "def @main(%c: Tensor[(), bool], %x: Tensor[(4,), float32])"
        " -> Tensor[(4,), float32] {\n"
        "  if (%c) { nn.relu(%x) #[\"Relu_0\": \"Relu\"] }"
        " else { add(%x, %x) #[\"Add_1\": \"Add\"] }\n"
        "}\n";
    struct byoc_compiled *c =
        compile(branches, (struct byoc_compile_params){.plugins = SLOW});
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(c));
    assert_string_equal(text_of(node_of(ledger, "Relu_0"), "reason"),
                        "cheaper-elsewhere");
    assert_string_equal(text_of(node_of(ledger, "Add_1"), "reason"),
                        "cheaper-elsewhere");
    cJSON_Delete(ledger);
    byoc_compiled_free(&c);
}

/* --- the table ------------------------------------------------------------ */

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*n + 1);
    assert_int_equal(fread(data, 1, *n, f), *n);
    data[*n] = '\0';
    fclose(f);
    return data;
}

static void a_second_compile_measures_nothing(void **state)
{
    (void)state;
    const struct byoc_compile_params params = {.plugins = FAST ":" SLOW};
    const char *const paths[] = {BUILD_DIR "/by_cost_1.so",
                                 BUILD_DIR "/by_cost_2.so"};
    char *bytes[2];
    size_t n[2];
    unlink(TABLE);
    for (uint32_t i = 0; i < 2; i++) {
        struct byoc_error err;
        struct byoc_compiled *c = compile(small, params);
        if (i == 0)
            assert_true(byoc_compiled_timed(c) > 0);
        else
            assert_int_equal(byoc_compiled_timed(c), 0);
        if (byoc_compiled_write(c, paths[i], &err) != BYOC_OK)
            fail_msg("%s", err.text);
        byoc_compiled_free(&c);
        bytes[i] = read_file(paths[i], &n[i]);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static void other_thread_counts_are_timed_again(void **state)
{
    (void)state;
    struct byoc_compile_params params = {.plugins = SLOW};
    struct byoc_compiled *c = compile(small, params);
    byoc_compiled_free(&c);
    params.threads = 2;
    c = compile(small, params);
    assert_true(byoc_compiled_timed(c) > 0);
    byoc_compiled_free(&c);
}

static void a_damaged_table_gives_a_warning(void **state)
{
    (void)state;
    const struct byoc_compile_params params = {.plugins = SLOW};
    FILE *f = fopen(TABLE, "w");
    fputs("{\"format\": \"byoc-costs\", \"version\": 99}", f);
    fclose(f);
    struct byoc_compiled *c = compile(small, params);
    assert_non_null(strstr(byoc_compiled_warnings(c), TABLE " is not used"));
    assert_non_null(strstr(byoc_compiled_warnings(c), "version"));
    assert_true(byoc_compiled_timed(c) > 0);
    byoc_compiled_free(&c);
    c = compile(small, params);
    assert_string_equal(byoc_compiled_warnings(c), "");
    assert_int_equal(byoc_compiled_timed(c), 0);
    byoc_compiled_free(&c);
}

static void a_table_that_cannot_be_kept_gives_a_warning(void **state)
{
    (void)state;
    struct byoc_compiled *c = compile(
        small, (struct byoc_compile_params){
                   .plugins = SLOW, .cost_table = "/dev/null/costs.json"});
    assert_non_null(strstr(byoc_compiled_warnings(c), "is not kept"));
    byoc_compiled_free(&c);
}

static void *compile_once(void *name)
{
    struct byoc_compiled *c = NULL;
    struct byoc_error err;
    const enum byoc_status status = try(
        small, name, (struct byoc_compile_params){.plugins = SLOW}, &c, &err);
    byoc_compiled_free(&c);
    return status == BYOC_OK ? NULL : name;
}

static void concurrent_compiles_leave_a_valid_table(void **state)
{
    (void)state;
    static char names[3][16] = {"thread0", "thread1", "thread2"};
    pthread_t threads[3];
    unlink(TABLE);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, compile_once, names[i]), 0);
    for (uint32_t i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    struct byoc_compiled *c =
        compile(small, (struct byoc_compile_params){.plugins = SLOW});
    assert_string_equal(byoc_compiled_warnings(c), "");
    assert_int_equal(byoc_compiled_timed(c), 0);
    byoc_compiled_free(&c);
}

/* --- failures ------------------------------------------------------------- */

static void without_a_compiler_nothing_is_kept(void **state)
{
    (void)state;
    static const char fused[] =
        "def @main(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n"
        "  tanh(exp(nn.relu(%x)))\n"
        "}\n";
    unlink(TABLE);
    struct byoc_compiled *c =
        compile(fused, (struct byoc_compile_params){.plugins = SLOW,
                                                    .cc = "/no/compiler"});
    assert_non_null(strstr(byoc_compiled_warnings(c), "/no/compiler"));
    assert_int_not_equal(access(TABLE, F_OK), 0);
    byoc_compiled_free(&c);
}

static void invalid_options_are_refused(void **state)
{
    (void)state;
    const char *patterns[] = {"me.relu=nn.relu(%x)", NULL};
    struct byoc_compiled *c = NULL;
    struct byoc_error err;
    assert_int_equal(try(small, "model",
                         (struct byoc_compile_params){
                             .partition_by = (enum byoc_partition)4},
                         &c, &err),
                     BYOC_EINVAL);
    assert_non_null(strstr(err.text, "partition_by: found 4, expected 0 to 3"));
    assert_int_equal(
        try(small, "model",
            (struct byoc_compile_params){.patterns = patterns, .plugins = SLOW},
            &c, &err),
        BYOC_EINVAL);
    assert_non_null(strstr(err.text, "'me' consists of patterns only"));
}

/* The model refuses 1 as the size of its symbolic dim, so 2 is measured. */
static void a_size_that_is_refused_is_replaced(void **state)
{
    static const char pairs[] =
        "def @main(%x: Tensor[(N, 3), float32]) {\n"
        "  %0 = nn.relu(%x) #[\"Relu_0\": \"Relu\"];\n"
        "  reshape(%0, [-1, 2, 3]) #[\"Reshape_1\": \"Reshape\"]\n"
        "}\n";
    (void)state;
    unlink(TABLE);
    struct byoc_compiled *c =
        compile(pairs, (struct byoc_compile_params){.plugins = SLOW});
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(c));
    const cJSON *measured = cJSON_GetObjectItem(ledger, "measured");
    assert_string_equal(byoc_compiled_warnings(c), "");
    assert_true(number_of(measured, "native_us") > 0);
    cJSON_Delete(ledger);
    byoc_compiled_free(&c);
}

static struct byi_alternative alternative(double us, double noise)
{
    return (struct byi_alternative){.us = us, .noise = noise};
}

/* Differences within the noise decide nothing, unless the noise is small. */
static void a_busy_machine_decides_nothing(void **state)
{
    static const struct {
        double us[2], noise[2];
        bool decided;
    } rows[] = {
        {{100, 200}, {0.01, 0.01}, true},  {{100, 102}, {0.01, 0.05}, true},
        {{100, 120}, {0.30, 0.01}, false}, {{120, 100}, {0.30, 0.01}, false},
        {{100, 120}, {0.01, 0.30}, false}, {{100, 200}, {0.30, 0.50}, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct byi_alternative a = alternative(rows[i].us[0], rows[i].noise[0]);
        struct byi_alternative b = alternative(rows[i].us[1], rows[i].noise[1]);
        struct byi_alternative *const at[] = {&a, &b};
        assert_true(byi_alternatives_are_decided(at, 1));
        assert_int_equal(byi_alternatives_are_decided(at, 2), rows[i].decided);
    }
}

/* If the whole model cannot run, the times of its candidates and regions
 * decide. It cannot run because random integers are 0 or 1, and 1 is out of
 * range. */
static void a_model_that_cannot_be_timed_gives_a_warning(void **state)
{
    (void)state;
    static const char out_of_range[] =
        "def @main(%i: Tensor[(64,), int64], %x: Tensor[(1,), float32])"
        " -> Tensor[(64,), float32] {\n"
        "  %0 = nn.relu(%x) #[\"Relu_0\": \"Relu\"];\n"
        "  take(%0, %i)\n"
        "}\n";
    struct byoc_compiled *c =
        compile(out_of_range, (struct byoc_compile_params){.plugins = SLOW});
    assert_non_null(strstr(byoc_compiled_warnings(c),
                           "its candidates and regions decide: "));
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(c));
    assert_string_equal(text_of(node_of(ledger, "Relu_0"), "where"), "native");
    assert_null(cJSON_GetObjectItem(ledger, "measured"));
    cJSON_Delete(ledger);
    byoc_compiled_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_backend_runs_nothing),
        cmocka_unit_test(a_fast_backend_keeps_its_region),
        cmocka_unit_test(the_faster_backend_is_chosen),
        cmocka_unit_test(the_lower_estimate_is_chosen),
        cmocka_unit_test(a_backend_without_cost_keeps_its_place),
        cmocka_unit_test(excluded_nodes_stay_native),
        cmocka_unit_test(branches_are_measured_as_well),
        cmocka_unit_test(a_second_compile_measures_nothing),
        cmocka_unit_test(other_thread_counts_are_timed_again),
        cmocka_unit_test(a_damaged_table_gives_a_warning),
        cmocka_unit_test(a_table_that_cannot_be_kept_gives_a_warning),
        cmocka_unit_test(concurrent_compiles_leave_a_valid_table),
        cmocka_unit_test(without_a_compiler_nothing_is_kept),
        cmocka_unit_test(invalid_options_are_refused),
        cmocka_unit_test(a_model_that_cannot_be_timed_gives_a_warning),
        cmocka_unit_test(a_size_that_is_refused_is_replaced),
        cmocka_unit_test(a_busy_machine_decides_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
