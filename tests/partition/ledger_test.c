/* ledger_test.c: what a ledger says: which nodes read which, where each is and
 * why, regions kept and given back; each node of the model once.
 */
#include <byoc/byoc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "core/base.h"

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

/* "Relu_1<Conv_0 Add_2<Relu_1,Conv_0": every node and what it reads. */
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

static void a_chain(void **state)
{
    (void)state;
    check_reads("def @main(%x: " F4 ") -> " F4 " {\n"
                "  %0 = nn.relu(%x) #[\"a\": \"A\"];\n"
                "  %1 = exp(%0) #[\"b\": \"B\"];\n"
                "  add(%1, %0) #[\"c\": \"C\"]\n"
                "}\n",
                "a b<a c<a,b");
}

static void a_node_in_parts(void **state)
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

static void a_value_without_a_node(void **state)
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

static void branches(void **state)
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

static void functions(void **state)
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

static void a_loop_reads_its_last_turn(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain),
        cmocka_unit_test(a_node_in_parts),
        cmocka_unit_test(a_value_without_a_node),
        cmocka_unit_test(branches),
        cmocka_unit_test(functions),
        cmocka_unit_test(a_loop_reads_its_last_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
