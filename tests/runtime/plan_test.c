/* SPDX-License-Identifier: Apache-2.0 */
/* plan_test.c: tests invalid plans: each is a valid plan with one edit, and is
 * refused with the place of the error; and manifests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/plan.h"
#include "tests/fixture.h"

static const char ir[] =
    "def @r(%a: Tensor[(2, 4), float32], Compiler=\"ref\","
    " global_symbol=\"r\") {\n"
    "  %f = fn (%a: Tensor[(2, 4), float32], Composite=\"ref.relu\") {\n"
    "    nn.relu(%a)\n"
    "  };\n"
    "  %f(%a)\n"
    "}\n"
    "def @g(%a: Tensor[(2, 4), float32]) {\n  exp(%a)\n}\n"
    "def @main(%x: Tensor[(2, 4), float32], %n: Tensor[(N), float32]) {\n"
    "  %0 = add(%x, Tensor[(4), float32] {1.0, 2.0, 3.0, 4.0});\n"
    "  %1 = @r(%0);\n"
    "  %2 = @g(%1);\n"
    "  %3 = reshape(%2, Tensor[(1), int64] {8});\n"
    "  %4 = nn.softmax(%3, axis=0);\n"
    "  %5 = tanh(%n);\n"
    "  %6 = reshape(%5, Tensor[(1), int64] {-1});\n"
    "  (%4, %6)\n"
    "}\n";

static struct fixture valid; /* the model whose plan is edited */

static int open_fixture(void **state)
{
    (void)state;
    struct byoc_error err;
    if (fixture_open(&valid, ir, &err) == BYOC_OK)
        return 0;
    print_error("%s\n", err.text);
    return -1;
}

static int close_fixture(void **state)
{
    (void)state;
    fixture_close(&valid);
    return 0;
}

/* A copy of the text in which the n-th `from` is replaced by `to`; the caller
 * frees it. */
static char *edit(const char *text, const char *from, uint32_t n,
                  const char *to)
{
    const char *at = strstr(text, from);
    while (at && n-- > 0)
        at = strstr(at + 1, from);
    if (!at) {
        print_error("no \"%s\" in\n%s\n", from, text);
        return NULL;
    }
    size_t prefix_bytes = (size_t)(at - text);
    char *out = malloc(strlen(text) + strlen(to) + 1);
    memcpy(out, text, prefix_bytes);
    strcpy(out + prefix_bytes, to);
    strcat(out, at + strlen(from));
    return out;
}

static enum byoc_status open_with(const char *plan, const char *manifest,
                                  struct byoc_error *err)
{
    struct byi_image image = valid.image;
    struct byoc_model *model = NULL;
    image.plan = plan;
    image.plan_bytes = strlen(plan);
    image.manifest = manifest;
    image.manifest_bytes = strlen(manifest);
    enum byoc_status status = byoc_internal_model_open(
        &image, &(struct byoc_load_params){.native_only = 1}, &model, err);
    byoc_model_free(&model);
    return status;
}

/* An edit of a plan or manifest, and the error that it must give. */
struct fault {
    const char *from;
    uint32_t n; /* which occurrence of `from` */
    const char *to;
    enum byoc_status status;
    const char *message; /* part of it */
};

static void check(const struct fault *fault, bool manifest)
{
    struct byoc_error err = {0};
    char *text = edit(manifest ? valid.manifest.at : valid.plan.json.at,
                      fault->from, fault->n, fault->to);
    assert_non_null(text);
    enum byoc_status status =
        open_with(manifest ? valid.plan.json.at : text,
                  manifest ? text : valid.manifest.at, &err);
    if (status != fault->status || !strstr(err.text, fault->message))
        fail_msg("%s -> %s: found status %d and \"%s\", expected status %d and "
                 "\"%s\" in it\n%s",
                 fault->from, fault->to, (int)status, err.text,
                 (int)fault->status, fault->message, text);
    free(text);
}

static void test_valid_plan(void **state)
{
    (void)state;
    struct byoc_error err;
    if (open_with(valid.plan.json.at, valid.manifest.at, &err) != BYOC_OK)
        fail_msg("%s", err.text);
}

static void test_plan_faults(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"byoc-plan", 0, "byoc-graph", BYOC_EPARSE,
         "format: found \"byoc-graph\""},
        {"\"version\": 1", 0, "\"version\": 99", BYOC_EINCOMPATIBLE,
         "version: found 99, expected 1; compile"},
        {"\"arena\"", 0, "\"areas\"", BYOC_EPARSE,
         "functions[0].areas: found an unknown member"},
        {"\"functions\": [", 0, "\"functions\": [], \"f\": [", BYOC_EPARSE,
         "plan: f: found an unknown member"},
        {"float32", 0, "float33", BYOC_EPARSE, "values[0].dtype"},
        {"[2, 4]", 0, "[2, -4]", BYOC_EPARSE, "values[0].shape[1]: found -4"},
        {"[2, 4]", 0, "[2, 4.5]", BYOC_EPARSE, "values[0].shape[1]: found 4.5"},
        {"[2, 4]", 0, "[2, 5]", BYOC_ETYPE,
         "steps[0]: add: shapes (2, 5) and (4,) do not broadcast"},
        {"\"input\": 0", 0, "\"input\": 1", BYOC_EPARSE,
         "inputs[0]: found value 0"},
        {"\"input\": 0", 0, "\"input\": 9", BYOC_EPARSE,
         "values[0].input: found index 9"},
        {"\"const\": 0", 0, "\"const\": 9", BYOC_EPARSE,
         "values[2].const: found index 9"},
        {"\"kind\": \"temp\"", 0, "\"kind\": \"tmp\"", BYOC_EPARSE,
         "values[3].kind: found \"tmp\""},
        {"\"offset\": 0", 0, "\"offset\": 8", BYOC_EPARSE,
         "values[3].offset: found 32 bytes at offset 8"},
        {"\"offset\": 0", 0, "\"offset\": 6400", BYOC_EPARSE,
         "values[3].offset: found 32 bytes at offset 6400"},
        {"\"offset\": 64", 0, "\"offset\": 0", BYOC_EPARSE,
         "out[0] overlaps in[0] in the arena"},
        {"\"of\": ", 0, "\"of\": 99, \"offset\": ", BYOC_EPARSE,
         "values[7].of: found index 99"},
        {"\"op\": \"add\"", 0, "\"op\": \"no\"", BYOC_EPARSE,
         "steps[0].op: found \"no\""},
        {"\"op\": \"add\"", 0, "\"op\": \"power2\"", BYOC_EPARSE, "power2"},
        {"\"op\": \"exp\"", 0, "\"op\": \"sum\"", BYOC_EPARSE,
         "functions[1].steps[0]: out[0]: found float32 (2, 4)"},
        {"\"op\": \"nn.softmax\"", 0, "\"op\": \"nn.relu\"", BYOC_EPARSE,
         "steps[3].attrs.axis: found an attribute that nn.relu does not have"},
        {"\"axis\": 0", 0, "\"axis\": 3", BYOC_ETYPE,
         "steps[3]: nn.softmax: axis 3 is out of range"},
        {"\"in\": [", 0, "\"in\": [77, ", BYOC_EPARSE,
         "steps[0].in[0]: found index 77"},
        {"\"in\": [", 1, "\"in\": [0, ", BYOC_EPARSE,
         "steps[1]: found 2 operands, expected 1"},
        {"\"region\": 0", 0, "\"region\": 1", BYOC_EPARSE,
         "steps[1].region: found index 1"},
        {"\"op\": \"add\"", 0, "\"op\": \"add\", \"region\": 0", BYOC_EPARSE,
         "found both op and region"},
        {"\"call\": 1", 0, "\"call\": 1, \"closure\": 1", BYOC_EPARSE,
         "found both call and closure"},
        {"\"call\": 1", 0, "\"call\": 1, \"attrs\": {}", BYOC_EPARSE,
         "steps[2].attrs: found an unknown member"},
        {"\"call\": 1", 0, "\"call\": 1, \"epilogue\": []", BYOC_EPARSE,
         "steps[2].epilogue: found an unknown member"},
        {"\"call\": 1", 0, "\"call\": 0", BYOC_EPARSE,
         "steps[2]: found 1 operands and 1 results, expected 2 and 2 for "
         "function 0"},
        {"\"call\": 1", 0, "\"call\": 5", BYOC_EPARSE,
         "steps[2].call: found index 5"},
        {"\"twin\": 2", 0, "\"twin\": 0", BYOC_EPARSE,
         "steps[1]: found 1 operands and 1 results, expected 2 and 2 for "
         "function 0"},
        {"\"blob\": [0, ", 0, "\"blob\": [1, ", BYOC_EPARSE,
         "regions[0].blob: found [1, "},
        {"\"blob\": [0, ", 0, "\"blob\": [0, 4, ", BYOC_ELIMIT,
         "regions[0].blob: found too many items"},
        {"\"bytes\": 16", 0, "\"bytes\": 32", BYOC_EPARSE,
         "consts[0].bytes: found 32, expected 16"},
        {"\"bytes\": 16", 0, "\"stored\": \"float16\", \"bytes\": 16",
         BYOC_EPARSE, "consts[0].bytes: found 16, expected 8"},
        {"\"bytes\": 16", 0, "\"stored\": \"int8\", \"bytes\": 4", BYOC_EPARSE,
         "consts[0].axis: found nothing"},
        {"\"bytes\": 16", 0, "\"stored\": \"int8\", \"axis\": 2, \"bytes\": 4",
         BYOC_EPARSE, "consts[0].axis: found 2, expected"},
        {"\"bytes\": 16", 0, "\"stored\": \"int8\", \"axis\": 0, \"bytes\": 4",
         BYOC_EPARSE, "consts[0].axis: found 0 of 1 axes"},
        {"\"bytes\": 16", 0, "\"stored\": \"int16\", \"bytes\": 8", BYOC_EPARSE,
         "consts[0].stored: found \"int16\" of float32"},
        {"\"bytes\": 16", 0, "\"stored\": 2, \"bytes\": 8", BYOC_EPARSE,
         "consts[0].stored: found a number"},
        {"\"outputs\": [", 0, "\"outputs\": [0, ", BYOC_EPARSE,
         "found value 8 as output 0, expected value 0"},
        {"\"op\": \"reshape\"", 0, "\"op\": \"squeeze\"", BYOC_EPARSE,
         "attrs.allowzero: found an attribute that squeeze does not have"},
        {"{\"format\"", 0, "[{\"format\"", BYOC_EPARSE,
         "plan: malformed JSON at byte"},
    };
    for (size_t i = 0; i < BYI_COUNT(faults); i++)
        check(&faults[i], false);
}

/* Any prefix, and any byte changed: an error or a model, never a crash. */
static void test_mangled(void **state)
{
    (void)state;
    struct byoc_error err;
    size_t n = valid.plan.json.n;
    char *text = malloc(n + 1);
    for (size_t i = 0; i < n; i += 11) {
        memcpy(text, valid.plan.json.at, n + 1);
        text[i] = '\0';
        assert_int_equal(open_with(text, valid.manifest.at, &err), BYOC_EPARSE);
    }
    static const char replacements[] = "0129-\"[]{},: x";
    for (size_t i = 0; i < n; i += 3) {
        memcpy(text, valid.plan.json.at, n + 1);
        text[i] = replacements[i % (sizeof replacements - 1)];
        (void)!open_with(text, valid.manifest.at, &err);
    }
    free(text);
}

/* A step with an epilogue, of a group as FuseOps makes it. */
static const char epilogue_ir[] =
    "def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32],"
    " %b: Tensor[(3), float32], %r: Tensor[(2, 3), float32]) {\n"
    "  %f = fn (%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32],"
    " %b: Tensor[(3), float32], %r: Tensor[(2, 3), float32], Primitive=1) {\n"
    "    %0 = nn.dense(%x, %w);\n"
    "    %1 = add(%0, %b);\n"
    "    %2 = clip(%1, a_min=0.0, a_max=6.0);\n"
    "    multiply(%r, %2)\n"
    "  };\n"
    "  %f(%x, %w, %b, %r)\n"
    "}\n";

static void test_epilogue_faults(void **state)
{
    static const struct fault faults[] = {
        {"\"epilogue\"", 0, "\"epilog\"", BYOC_EPARSE,
         "steps[0].epilog: found an unknown member"},
        {"[{\"op\": \"add\"}, ", 0, "[", BYOC_ETYPE,
         "steps[0]: nn.dense: found 3 operands"},
        {"[{\"op\": \"add\"}, ", 0,
         "[{\"op\": \"add\"}, {\"op\": \"add\"}, {\"op\": \"add\"}, "
         "{\"op\": \"add\"}, {\"op\": \"add\"}, ",
         BYOC_EPARSE, "binary operator of the epilogue"},
        {"[{\"op\": \"add\"}", 0, "[{\"op\": \"plus\"}", BYOC_EPARSE,
         "found \"plus\""},
        {"[{\"op\": \"add\"}", 0, "[{\"op\": \"maximum\"}", BYOC_ETYPE,
         "steps[0]: nn.dense: found 3 operands"},
        {"[{\"op\": \"add\"}", 0, "[{\"op\": \"sum\"}", BYOC_ETYPE,
         "steps[0]: nn.dense: found 3 operands"},
        {"{\"op\": \"multiply\"}]", 0, "{\"op\": \"multiply\"}, 7]",
         BYOC_EPARSE, "epilogue[3]: found a number"},
        {"\"a_min\"", 0, "\"a_least\"", BYOC_EPARSE,
         "attrs.a_least: found an attribute that clip does not have"},
        {"\"in\": [0, 1, 2, 3]", 0, "\"in\": [0, 1, 3, 2]", BYOC_OK, ""},
        {"\"in\": [0, 1, 2, 3]", 0, "\"in\": [0, 1, 0, 3]", BYOC_EPARSE,
         "epilogue[0]: found add, expected an operator that can follow "
         "nn.dense"},
    };
    struct byoc_error err;
    fixture_close(&valid);
    if (fixture_open(&valid, epilogue_ir, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    test_valid_plan(state);
    assert_null(strstr(valid.plan.json.at, "\"call\""));
    for (size_t i = 0; i < BYI_COUNT(faults); i++)
        check(&faults[i], false);
    test_mangled(state);
    fixture_close(&valid);
    assert_int_equal(open_fixture(NULL), 0);
}

/* A plan without the step of a view, whose value is then never written. */
static void test_missing_step(void **state)
{
    (void)state;
    static const struct fault fault = {
        ",\n{\"op\": \"reshape\", \"in\": [9, 10], \"out\": [11],"
        " \"attrs\": {\"allowzero\": false}\n, \"source\": []}",
        0, "", BYOC_EPARSE, "outputs[1]: value 11 is never written"};
    check(&fault, false);
}

static void test_manifest_faults(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"byoc-model", 0, "byoc-plan", BYOC_EPARSE,
         "format: found \"byoc-plan\""},
        {"\"version\": 2", 0, "\"version\": 7", BYOC_EINCOMPATIBLE,
         "version: found 7"},
        {"byoc_model_", 0, "model_", BYOC_EPARSE, "symbol: found \"model_"},
        {"\"isa\"", 0, "\"isb\"", BYOC_EPARSE, "isb: found an unknown member"},
        {"[2, 4]", 0, "[2, 5]", BYOC_EPARSE,
         "found another type of input \"x\""},
        {"[\"N\"]", 0, "[\"M\"]", BYOC_EPARSE,
         "found another type of input \"n\""},
        {"float32", 0, "float64", BYOC_EPARSE,
         "found another type of input \"x\""},
    };
    for (size_t i = 0; i < BYI_COUNT(faults); i++)
        check(&faults[i], true);
}

/* A call of a function value, whose result @f converts. */
static const char apply_ir[] =
    "def @f(%g: fn (Tensor[(2), float32]) -> Tensor[(2), float32],"
    " %x: Tensor[(2), float32]) -> Tensor[(2), float64] {\n"
    "  cast(%g(%x), dtype=\"float64\")\n"
    "}\n"
    "def @main(%x: Tensor[(2), float32]) {\n"
    "  @f(fn (%a: Tensor[(2), float32]) { exp(%a) }, %x)\n"
    "}\n";

/* The callee of a function value is known only when the step runs: the function
 * returns float32, and the edited plan expects int32. */
static void test_apply_fault(void **state)
{
    (void)state;
    struct byoc_error err;
    fixture_close(&valid);
    if (fixture_open(&valid, apply_ir, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    char *plan = edit(valid.plan.json.at,
                      "\"float32\", \"shape\": [2], \"kind\": \"temp\"", 0,
                      "\"int32\", \"shape\": [2], \"kind\": \"temp\"");
    assert_non_null(plan);
    struct byi_image image = valid.image;
    image.plan = plan;
    image.plan_bytes = strlen(plan);
    struct byoc_model *model = NULL;
    if (byoc_internal_model_open(&image,
                                 &(struct byoc_load_params){.native_only = 1},
                                 &model, &err) != BYOC_OK)
        fail_msg("%s in\n%s", err.text, plan);
    struct byoc_state *run = NULL;
    assert_int_equal(byoc_state_new(model, &run, &err), BYOC_OK);
    assert_int_equal(fixture_run(&valid, run, 1, true, &err), BYOC_ETYPE);
    if (!strstr(err.text, "found float32 (2,) as result 0, expected int32"))
        fail_msg("found \"%s\", expected an error about the result 0",
                 err.text);
    byoc_state_free(&run);
    byoc_model_free(&model);
    free(plan);
    fixture_close(&valid);
    assert_int_equal(open_fixture(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_plan),
        cmocka_unit_test(test_plan_faults),
        cmocka_unit_test(test_missing_step),
        cmocka_unit_test(test_manifest_faults),
        cmocka_unit_test(test_mangled),
        cmocka_unit_test(test_epilogue_faults),
        cmocka_unit_test(test_apply_fault),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
