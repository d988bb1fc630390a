/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_test.c: tests the content of a ledger: the edges between nodes, the
 * placement of each node with its reason, and kept and reverted regions. Each
 * node of the model occurs once. */
#include <byoc/byoc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "core/base/base.h"
#include "report/ledger.h"
#include "tests/frontend_onnx/models.h"
#include "tests/ledger_check.h"
#include "tests/schema.h"

/* The ledger of a text, through these passes; NULL: a whole compile. */
static cJSON *ledger_of(const char *text, const char *const *passes,
                        const struct byoc_compile_params *given)
{
    const char *path = BUILD_DIR "/ledger_test.ir";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    struct byoc_compile_params params = {0};
    static const char *const none[] = {NULL};
    if (given)
        params = *given;
    else
        params.backends = none;
    params.passes = passes;
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    if (byoc_compile(path, &params, &compiled, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(compiled));
    byoc_compiled_free(&compiled);
    assert_non_null(ledger);
    return ledger;
}

static const cJSON *list_of(const cJSON *ledger, const char *key)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(ledger, key);
    assert_true(cJSON_IsArray(list));
    return list;
}

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* Check every node and its operands: "Relu_1<Conv_0 Add_2<Relu_1,Conv_0". */
static void check_reads(const char *text, const char *expected)
{
    static const char *const nothing[] = {NULL};
    cJSON *ledger = ledger_of(text, nothing, NULL);
    const cJSON *nodes = list_of(ledger, "nodes"), *node, *index;
    struct byi_text found = {0};
    cJSON_ArrayForEach(node, nodes)
    {
        byi_text_addf(&found, "%s%s", found.n ? " " : "",
                      text_of(node, "name"));
        const char *sign = "<";
        cJSON_ArrayForEach(index, list_of(node, "inputs"))
        {
            byi_text_addf(
                &found, "%s%s", sign,
                text_of(cJSON_GetArrayItem(nodes, index->valueint), "name"));
            sign = ",";
        }
    }
    assert_string_equal(found.at, expected);
    byi_text_free(&found);
    cJSON_Delete(ledger);
}

#define F4 "Tensor[(4,), float32]"

static void inputs_of_a_chain(void **state)
{
    (void)state;
    check_reads("def @main(%x: " F4 ") -> " F4 " {\n"
                "  %0 = nn.relu(%x) #[\"a\": \"A\"];\n"
                "  %1 = exp(%0) #[\"b\": \"B\"];\n"
                "  add(%1, %0) #[\"c\": \"C\"]\n"
                "}\n",
                "a b<a c<a,b");
}

static void inputs_of_a_node_in_parts(void **state)
{
    (void)state;
    check_reads("def @main(%x: " F4 ") -> " F4 " {\n"
                "  %0 = nn.relu(%x) #[\"a\": \"A\"];\n"
                "  %1 = exp(%0) #[\"b\": \"B\"];\n"
                "  %2 = add(%1, %x) #[\"b\"];\n"
                "  %3 = add(%2, %0) #[\"b\", \"c\": \"C\"];\n"
                "  tanh(%3) #[\"d\": \"D\"]\n"
                "}\n",
                "a b<a c<a,b d<b,c");
}

static void inputs_through_a_value_without_a_node(void **state)
{
    (void)state;
    check_reads("def @main(%x: " F4 ") -> " F4 " {\n"
                "  %0 = nn.relu(%x) #[\"a\": \"A\"];\n"
                "  %1 = exp(%x) #[\"b\": \"B\"];\n"
                "  %2 = (%0, %1);\n"
                "  %3 = tanh(%2.0) #[\"c\": \"C\"];\n"
                "  %4 = abs(%3);\n"
                "  add(%4, %2.1) #[\"d\": \"D\"]\n"
                "}\n",
                "a b c<a d<b,c");
}

static void inputs_through_branches(void **state)
{
    (void)state;
    check_reads("def @main(%p: Tensor[(), bool], %x: " F4 ") -> " F4 " {\n"
                "  %0 = nn.relu(%x) #[\"a\": \"A\"];\n"
                "  %1 = logical_not(%p) #[\"not\": \"Not\"];\n"
                "  %2 = if (%1) {\n"
                "    exp(%0) #[\"then\": \"Exp\"]\n"
                "  } else {\n"
                "    %3 = tanh(%0) #[\"else\": \"Tanh\"];\n"
                "    %3\n"
                "  } #[\"if\": \"If\"];\n"
                "  abs(%2) #[\"b\": \"Abs\"]\n"
                "}\n",
                "a not then<a else<a if<not,then,else b<if");
}

static void inputs_through_functions(void **state)
{
    (void)state;
    check_reads("def @f(%y: " F4 ") -> " F4 " {\n"
                "  exp(%y) #[\"inner\": \"Exp\"]\n"
                "}\n"
                "def @main(%x: " F4 ") -> " F4 " {\n"
                "  %0 = nn.relu(%x) #[\"a\": \"A\"];\n"
                "  %1 = @f(%0);\n"
                "  %2 = tanh(%1) #[\"b\": \"B\"];\n"
                "  @f(%2) #[\"call\": \"F\"]\n"
                "}\n",
                "inner<a,b a b<inner call<inner,b");
}

static void inputs_through_a_loop(void **state)
{
    (void)state;
    check_reads("def @main(%n: Tensor[(), int64], %x: " F4 ") -> " F4 " {\n"
                "  %0 = nn.relu(%x) #[\"a\": \"A\"];\n"
                "  %f = fn (%i: Tensor[(), int64], %y: " F4 ") -> " F4 " {\n"
                "    %9 = less(%i, 1) #[\"less\": \"Less\"];\n"
                "    if (%9) { %y } else {\n"
                "      %1 = exp(%y) #[\"body\": \"Exp\"];\n"
                "      %8 = subtract(%i, 1) #[\"dec\": \"Sub\"];\n"
                "      %f(%8, %1)\n"
                "    }\n"
                "  };\n"
                "  %2 = %f(%n, %0);\n"
                "  abs(%2) #[\"b\": \"Abs\"]\n"
                "}\n",
                "a less<dec body<a dec b<a,less,body");
}

/* --- the schema ----------------------------------------------------------- */

#define NODES                                                                  \
    "def @main(%p: Tensor[(), bool], %x: " F4 ", %n: Tensor[(N,), float32])"   \
    " {\n"                                                                     \
    "  %0 = nn.relu(%x) #[\"same\": \"Relu\"];\n"                              \
    "  %1 = exp(%0) #[\"exp\": \"Exp\"];\n"                                    \
    "  %2 = if (%p) {\n"                                                       \
    "    nn.relu(%1) #[\"then\": \"Relu\"]\n"                                  \
    "  } else {\n"                                                             \
    "    %3 = tanh(%1) #[\"else\": \"Tanh\"];\n"                               \
    "    nn.relu(%3) #[\"a \\\"quoted\\\" name\": \"Relu\"]\n"                 \
    "  } #[\"if\": \"If\"];\n"                                                 \
    "  %4 = nn.relu(%n) #[\"dynamic\": \"Relu\"];\n"                           \
    "  %5 = add(1.0f, 2.0f) #[\"folded\": \"Add\"];\n"                         \
    "  %6 = exp(%x) #[\"removed\": \"Exp\"];\n"                                \
    "  (%2, %4, %5)\n"                                                         \
    "}\n"

static void check_ledger(const cJSON *ledger)
{
    char why[512], *json = cJSON_Print(ledger);
    const char *fault = ledger_check(json, why, sizeof why);
    free(json);
    if (fault)
        fail_msg("%s", fault);
}

static void ledgers_fit_the_schema(void **state)
{
    (void)state;
    const char *const patterns[] = {"a.relu=nn.relu(%x)", "b.exp=exp(%x)",
                                    NULL};
    const char *const only[] = {"Relu", NULL}, *const none[] = {NULL};
    const struct byoc_compile_params given[] = {
        {.backends = none},
        {.backends = none, .patterns = patterns},
        {.backends = none, .patterns = patterns, .only = only},
        {.backends = none, .patterns = patterns, .min_region_nodes = 2},
        {.backends = none, .patterns = patterns, .max_regions = 1},
        {.backends = none, .patterns = patterns, .require_offload = 50},
        {.backends = none, .patterns = patterns, .require_offload_nodes = 99},
        {.plugins = BUILD_DIR "/libbyoc_backend_dnnl.so"},
        {.plugins = PLUGIN_DIR "/bad_load.so"}, /* refuses to load regions */
    };
    for (size_t i = 0; i < BYI_COUNT(given); i++) {
        cJSON *ledger = ledger_of(NODES, NULL, &given[i]);
        check_ledger(ledger);
        assert_int_equal(cJSON_GetArraySize(list_of(ledger, "nodes")), 9);
        cJSON_Delete(ledger);
    }
}

static void a_trained_model_has_a_valid_ledger(void **state)
{
    (void)state;
    const char *path = TEST_DIR "/../examples/digits/digits.onnx";
    const struct byoc_compile_params params = {.plugins = BUILD_DIR
                                               "/libbyoc_backend_dnnl.so"};
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    if (byoc_compile(path, &params, &compiled, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(compiled));
    check_ledger(ledger);
    assert_int_equal(cJSON_GetArraySize(list_of(ledger, "nodes")), 15);
    assert_null(byoc_compiled_verdict(compiled));
    cJSON_Delete(ledger);
    byoc_compiled_free(&compiled);
}

/* Names that ONNX allows: an empty one, and the same for two nodes. */
static void names_of_onnx(void **state)
{
    (void)state;
    struct build b = begin(13);
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    static const char *const expected[] = {"same", "", "same", ""};
    input(&b, "x", "4");
    for (int i = 0; i < 4; i++) {
        char in[2] = {"xabc"[i], 0}, out[2] = {"abcy"[i], 0};
        node(&b, i % 2 ? "Exp" : "Relu", in, out)->name =
            byi_arena_str(b.arena, expected[i]);
    }
    output(&b, "y");
    save(&b);
    if (byoc_compile(b.path, NULL, &compiled, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    cJSON *ledger = cJSON_Parse(byoc_compiled_ledger(compiled));
    check_ledger(ledger); /* each name is there once */
    const cJSON *nodes = list_of(ledger, "nodes");
    assert_int_equal(cJSON_GetArraySize(nodes), 4);
    assert_string_equal(text_of(cJSON_GetArrayItem(nodes, 0), "name"), "same");
    for (int i = 0; i < 4; i++)
        assert_string_equal(text_of(cJSON_GetArrayItem(nodes, i), "op"),
                            i % 2 ? "Exp" : "Relu");
    cJSON_Delete(ledger);
    byoc_compiled_free(&compiled);
    end(&b);
}

static void set(cJSON *object, const char *key, cJSON *item)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (item)
        cJSON_AddItemToObject(object, key, item);
}

/* The schema refuses documents with one fault each. */
static void documents_with_a_fault_do_not_fit(void **state)
{
    (void)state;
    enum { N = 12 };
    for (int i = 0; i <= N; i++) {
        char why[512];
        cJSON *ledger = ledger_of(NODES, NULL, NULL);
        cJSON *node = cJSON_GetArrayItem(list_of(ledger, "nodes"), 0);
        cJSON *backend = cJSON_GetArrayItem(list_of(ledger, "backends"), 0);
        cJSON *number = cJSON_CreateNumber(-1);
        switch (i) {
        case 0:
            set(ledger, "version", cJSON_CreateNumber(1));
            break;
        case 1:
            set(ledger, "format", NULL);
            break;
        case 2:
            set(ledger, "more", cJSON_CreateTrue());
            break;
        case 3:
            set(ledger, "threads", cJSON_CreateNumber(0.5));
            break;
        case 4:
            set(node, "name", NULL);
            break;
        case 5:
            set(node, "reason", cJSON_CreateString("because"));
            break;
        case 6:
            set(node, "flops", cJSON_Duplicate(number, true));
            break;
        case 7:
            set(node, "inputs", cJSON_CreateNull());
            break;
        case 8:
            set(node, "note", cJSON_CreateString(""));
            break;
        case 9:
            set(backend, "nodes", cJSON_CreateString("1"));
            break;
        case 10:
            set(ledger, "nodes", cJSON_CreateObject());
            break;
        case 11:
            set(ledger, "regions", NULL);
            break;
        default:
            break;
        }
        cJSON_Delete(number);
        cJSON *schema = schema_read("byoc-ledger.schema.json");
        assert_non_null(schema);
        assert_int_equal(schema_fits(schema, ledger, why, sizeof why), i == N);
        assert_int_equal(*why == '\0', i == N);
        cJSON_Delete(schema);
        cJSON_Delete(ledger);
    }
}

static void the_schema_has_every_reason(void **state)
{
    (void)state;
    cJSON *schema = schema_read("byoc-ledger.schema.json");
    const cJSON *defs = cJSON_GetObjectItemCaseSensitive(schema, "$defs");
    const cJSON *reason = cJSON_GetObjectItemCaseSensitive(defs, "reason");
    const cJSON *codes = list_of(reason, "enum"), *code;
    int n = 0;
    cJSON_ArrayForEach(code, codes)
    {
        int i = 0;
        while (i < BYI_N_REASONS && strcmp(byi_reason_code((enum byi_reason)i),
                                           code->valuestring) != 0)
            i++;
        if (i == BYI_N_REASONS)
            fail_msg("found the code '%s', expected that of a reason",
                     code->valuestring);
        n++;
    }
    assert_int_equal(n, BYI_N_REASONS);
    cJSON_Delete(schema);
}

/* --- notes without a compile ---------------------------------------------- */

static void a_ledger_has_times_and_regions(void **state)
{
    (void)state;
    struct byi_module *m = NULL;
    struct byoc_error err;
    static const char text[] =
        "def @main(%x: " F4 ") -> " F4 " {\n"
        "  @v_0(%x) \n"
        "}\n"
        "def @v_0(%x: " F4 ", Compiler=\"v\") -> " F4 " {\n"
        "  %0 = fn (%a: " F4 ", Composite=\"v.exp\") -> " F4 " {\n"
        "    %1 = exp(%a) #[\"a\": \"Exp\"];\n"
        "    exp(%1) #[\"b\": \"Exp\"]\n"
        "  };\n"
        "  %0(%x) #[\"a\", \"b\"]\n"
        "}\n";
    if (byi_parse_module(text, strlen(text), "text", NULL, &m, &err))
        fail_msg("%s", err.text);
    const uint32_t at[] = {0, 1};
    const struct byi_sources both = {.n = 2, .at = at};
    struct byi_text json = {0};
    struct byi_ledger *l = byi_ledger_new();
    const struct byi_ledger_facts facts = {
        .model = "m", .cpu = "c", .threads = 1};
    byi_ledger_set_facts(l, &facts);
    byi_ledger_open(l, m);
    byi_ledger_revert(l, m, NULL, byi_func_find(m, "v_0"), BYI_REASON_NOT_BUILT,
                      "too big");
    byi_ledger_set_region_times(l, "v_0", 12.5, 25);
    byi_ledger_set_node_times(l, &both, 10, -1);
    byi_ledger_close(l, m, NULL);
    byi_ledger_write_json(l, &json);
    cJSON *ledger = cJSON_Parse(json.at);
    check_ledger(ledger);
    const cJSON *regions = list_of(ledger, "regions");
    const cJSON *reverted_region = cJSON_GetArrayItem(regions, 0);
    const cJSON *kept_region = cJSON_GetArrayItem(regions, 1);
    const cJSON *node = cJSON_GetArrayItem(list_of(ledger, "nodes"), 1);
    assert_string_equal(text_of(reverted_region, "outcome"), "reverted");
    assert_string_equal(text_of(reverted_region, "detail"), "too big");
    assert_int_equal(cJSON_GetArraySize(list_of(reverted_region, "nodes")), 2);
    assert_string_equal(text_of(kept_region, "outcome"), "kept");
    assert_float_equal(
        cJSON_GetObjectItem(kept_region, "backend_us")->valuedouble, 12.5, 0);
    assert_float_equal(
        cJSON_GetObjectItem(kept_region, "native_us")->valuedouble, 25, 0);
    assert_float_equal(cJSON_GetObjectItem(node, "backend_us")->valuedouble, 5,
                       0);
    assert_null(cJSON_GetObjectItem(node, "native_us"));
    assert_string_equal(text_of(node, "where"), "v");
    cJSON_Delete(ledger);
    byi_text_free(&json);
    byi_ledger_free(&l);
    byi_module_free(&m);
}

/* The reason is that of the attempt that got furthest; of several that passed
 * all stages, such as TOO_SMALL and NOT_BUILT, it is that of the last. An
 * attempt that repeats an earlier one is not listed. */
static void the_reason_of_the_furthest_attempt(void **state)
{
    (void)state;
    static const struct {
        enum byi_reason attempts[3];
        const char *reason;
    } rows[] = {
        {{BYI_REASON_PROBE, BYI_REASON_PREDICATE, BYI_REASON_NO_PATTERN},
         "probe-refused"},
        {{BYI_REASON_NO_PATTERN, BYI_REASON_PATTERN_MISMATCH,
          BYI_REASON_NO_PATTERN},
         "pattern-mismatch"},
        {{BYI_REASON_PREDICATE, BYI_REASON_DYNAMIC, BYI_REASON_PREDICATE},
         "predicate"},
        {{BYI_REASON_EXCLUDED, BYI_REASON_PROBE, BYI_REASON_PREDICATE},
         "excluded"},
        {{BYI_REASON_TOO_SMALL, BYI_REASON_REFERENCE, BYI_REASON_PROBE},
         "region-too-small"},
        {{BYI_REASON_TOO_SMALL, BYI_REASON_NOT_BUILT, BYI_REASON_PROBE},
         "region-failed"},
        {{BYI_REASON_REFERENCE, BYI_REASON_PROBE, BYI_REASON_DYNAMIC},
         "reference-kernel"},
    };
    static const char text[] = "def @main(%x: " F4 ") -> " F4 " {\n"
                               "  exp(%x) #[\"a\": \"Exp\"]\n"
                               "}\n";
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        struct byi_module *m = NULL;
        struct byoc_error err;
        struct byi_text json = {0};
        const uint32_t zero = 0;
        const struct byi_sources one = {.n = 1, .at = &zero};
        assert_int_equal(
            byi_parse_module(text, strlen(text), "text", NULL, &m, &err), 0);
        struct byi_ledger *l = byi_ledger_new();
        byi_ledger_open(l, m);
        for (int k = 0; k < 3; k++)
            byi_ledger_note(l, &one, rows[i].attempts[k], "v", NULL, NULL);
        byi_ledger_note(l, &one, rows[i].attempts[1], "v", NULL,
                        NULL); /* again */
        byi_ledger_close(l, m, NULL);
        byi_ledger_write_json(l, &json);
        cJSON *ledger = cJSON_Parse(json.at);
        const cJSON *node = cJSON_GetArrayItem(list_of(ledger, "nodes"), 0);
        assert_string_equal(text_of(node, "reason"), rows[i].reason);
        const bool twice = rows[i].attempts[0] == rows[i].attempts[2];
        assert_int_equal(cJSON_GetArraySize(list_of(node, "tried")),
                         twice ? 2 : 3);
        cJSON_Delete(ledger);
        byi_text_free(&json);
        byi_ledger_free(&l);
        byi_module_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_of_a_chain),
        cmocka_unit_test(inputs_of_a_node_in_parts),
        cmocka_unit_test(inputs_through_a_value_without_a_node),
        cmocka_unit_test(inputs_through_branches),
        cmocka_unit_test(inputs_through_functions),
        cmocka_unit_test(inputs_through_a_loop),
        cmocka_unit_test(ledgers_fit_the_schema),
        cmocka_unit_test(a_trained_model_has_a_valid_ledger),
        cmocka_unit_test(names_of_onnx),
        cmocka_unit_test(documents_with_a_fault_do_not_fit),
        cmocka_unit_test(the_schema_has_every_reason),
        cmocka_unit_test(a_ledger_has_times_and_regions),
        cmocka_unit_test(the_reason_of_the_furthest_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
