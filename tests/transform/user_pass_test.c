/* SPDX-License-Identifier: Apache-2.0 */
/* user_pass_test.c: tests user passes, registered by name and from a library:
 * the rewriter's input and output, failures of passes, and refused
 * registrations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <byoc/byoc.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/passes.h"
#include "tests/folder.h"

static struct byoc_error err;

/* Run passes on `text`. Returns the result as text, which the caller frees, or
 * NULL with the reason in `err`. */
static char *opt(const char *text, const char *passes,
                 const char *const *plugins)
{
    const char *const list[] = {passes, NULL};
    const struct byoc_compile_params params = {.passes = list,
                                               .backends = &list[1],
                                               .pass_plugins = plugins,
                                               .verify = 1};
    char path[TEST_PATH + 8], *result = NULL;
    struct byoc_compiled *c = NULL;
    struct byi_file file;

    snprintf(path, sizeof path, "%s/m.ir", make_test_folder(NULL));
    assert_int_equal(byi_file_create(path, &file, &err), BYOC_OK);
    fputs(text, file.stream);
    assert_int_equal(byi_file_commit(&file, &err), BYOC_OK);
    if (byoc_compile(path, &params, &c, &err) == BYOC_OK)
        result = strdup(byoc_compiled_ir(c));
    byoc_compiled_free(&c);
    return result;
}

static void expect(const char *text, const char *passes, const char *part)
{
    char *found = opt(text, passes, NULL);
    if (!found)
        fail_msg("%s", err.text);
    if (!strstr(found, part))
        fail_msg("found\n%s\nexpected %s in it", found, part);
    free(found);
}

static const char gelu[] =
    "def @main(%x: Tensor[(2, 3), float32]) { nn.gelu(%x) }";

static void test_library(void **state)
{
    static const char *const plugins[] = {PLUGIN_DIR "/tanh_gelu.so", NULL};

    (void)state;
    for (int i = 0; i < 2; i++) { /* a second load changes nothing */
        char *found = opt(gelu, "TanhGelu", plugins);
        assert_non_null(found);
        assert_non_null(strstr(found, "nn.gelu(%x, approximate=\"tanh\")"));
        free(found);
    }
    expect(gelu, "[FoldConstant,TanhGelu]", "approximate=\"tanh\"");
    const struct byi_pass *pass = byi_pass_find("TanhGelu");
    assert_non_null(pass);
    assert_int_equal(pass->opt_level, 1);
}

static void test_library_refused(void **state)
{
    static const struct {
        const char *path, *message;
    } rows[] = {
        {PLUGIN_DIR "/ref.so", "No such file or directory"},
        {PLUGIN_DIR "/bad_abi.so", "it exports no 'byoc_passes'"},
        {"tanh_gelu.so", "a relative path"},
    };

    (void)state;
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        const char *const plugins[] = {rows[i].path, NULL};
        assert_null(opt(gelu, "FoldConstant", plugins));
        if (!strstr(err.text, rows[i].message))
            fail_msg("found '%s', expected '%s' in it", err.text,
                     rows[i].message);
    }
}

/* Scale an added constant by ten: add(x, constant) -> add(x, 10 constant). */
static byoc_node scale(void *ctx, struct byoc_rewriter *rw, byoc_node at)
{
    float values[8];
    struct byoc_view view;
    const byoc_node x = rw->arg(rw, at, 0), c = rw->arg(rw, at, 1);

    assert_string_equal(rw->op(rw, at), "add");
    assert_int_equal(rw->n_args(rw, at), 2);
    assert_int_equal(rw->arg(rw, at, 2), BYOC_NO_NODE);
    if (*(int *)ctx || !rw->tensor(rw, c, &view) || !view.data)
        return BYOC_NO_NODE;
    assert_true(view.bytes <= sizeof values);
    for (size_t i = 0; i < view.bytes / sizeof(float); i++)
        values[i] = 10 * ((const float *)view.data)[i];
    view.data = values;
    *(int *)ctx = 1;
    return rw->call(rw, "add", (byoc_node[]){x, rw->constant(rw, &view)}, 2,
                    NULL, 0);
}

/* Remove a transpose that keeps the order of the axes, if it has one reader. */
static byoc_node drop_identity_transpose(void *ctx, struct byoc_rewriter *rw,
                                         byoc_node at)
{
    int64_t axes[4] = {0};

    (void)ctx;
    assert_int_equal(rw->ints(rw, at, "axes", axes, 4), 2);
    assert_int_equal(rw->ints(rw, at, "axis", axes, 4), -1);
    return axes[0] == 0 && axes[1] == 1 && rw->read_once(rw, at)
               ? rw->arg(rw, at, 0)
               : BYOC_NO_NODE;
}

static int has_scaled; /* scale() changes one addition only, and sets this */
static const struct byoc_rule rules[] = {
    {"add", scale}, {"transpose", drop_identity_transpose}};
static const struct byoc_pass scaling = {
    .struct_size = sizeof scaling,
    .name = "TestScaling",
    .summary = "for this test",
    .rules = rules,
    .n_rules = BYI_COUNT(rules),
    .ctx = &has_scaled,
};

static void test_registered(void **state)
{
    (void)state;
    assert_int_equal(byoc_pass_register(&scaling, &err), BYOC_OK);
    expect("def @main(%x: Tensor[(2, 3), float32]) {"
           " add(%x, Tensor[(3), float32] {1, 2, 3}) }",
           "TestScaling", "[10.0, 20.0, 30.0]");
    expect("def @main(%x: Tensor[(2, 3), float32]) {"
           " nn.relu(transpose(%x, axes=[0, 1])) }",
           "TestScaling", "{\n  nn.relu(%x)\n}");
    expect("def @main(%x: Tensor[(2, 2), float32]) {"
           " nn.relu(transpose(%x, axes=[1, 0])) }",
           "TestScaling", "transpose(%x, axes=[1, 0])");
}

/* --- rules that are wrong ------------------------------------------------- */

static byoc_node no_operator(void *ctx, struct byoc_rewriter *rw, byoc_node at)
{
    (void)ctx;
    return rw->call(rw, "nn.rleu", &at, 1, NULL, 0);
}

static byoc_node no_attribute(void *ctx, struct byoc_rewriter *rw, byoc_node at)
{
    const struct byoc_attr attr = {.name = "aproximate", .string = "tanh"};

    (void)ctx;
    return rw->call(rw, "nn.gelu", &at, 1, &attr, 1);
}

static byoc_node wrong_kind(void *ctx, struct byoc_rewriter *rw, byoc_node at)
{
    const double one = 1;
    const struct byoc_attr attr = {
        .name = "approximate", .n = 1, .floats = &one};

    (void)ctx;
    return rw->call(rw, "nn.gelu", &at, 1, &attr, 1);
}

static byoc_node no_node(void *ctx, struct byoc_rewriter *rw, byoc_node at)
{
    (void)ctx, (void)rw;
    return at + 1000;
}

static byoc_node short_constant(void *ctx, struct byoc_rewriter *rw,
                                byoc_node at)
{
    const int64_t dims[] = {1 << 30};
    float data[2] = {0};
    const struct byoc_view view = {.dtype = BYOC_F32,
                                   .rank = 1,
                                   .dims = dims,
                                   .data = data,
                                   .bytes = sizeof data};

    (void)ctx, (void)at;
    return rw->constant(rw, &view);
}

/* A valid replacement of another type, which the rewriter does not accept. */
static byoc_node other_type(void *ctx, struct byoc_rewriter *rw, byoc_node at)
{
    const int64_t axes[] = {1, 0};
    const struct byoc_attr attr = {.name = "axes", .n = 2, .ints = axes};

    (void)ctx;
    return rw->call(rw, "transpose", &at, 1, &attr, 1);
}

static const struct {
    struct byoc_rule rule;
    const char *message;
} wrong[] = {
    {{"nn.gelu", no_operator},
     "Wrong0: a rule emits 'nn.rleu', expected an operator of "
     "docs/operators.md"},
    {{"nn.gelu", no_attribute},
     "Wrong1: a rule gives 'nn.gelu' the attribute 'aproximate', expected an "
     "attribute of this operator"},
    {{"nn.gelu", wrong_kind},
     "Wrong2: a rule gives a float to the attribute 'approximate' of "
     "'nn.gelu', expected a string"},
    {{"nn.gelu", no_node},
     "Wrong3: a rule for 'nn.gelu' returns a node that does not exist, "
     "expected a "
     "node of the function or BYOC_NO_NODE"},
    {{NULL, no_node},
     "Wrong4: a rule for 'any node' returns a node that does not exist, "
     "expected a "
     "node of the function or BYOC_NO_NODE"},
    {{"nn.gelu", short_constant},
     "Wrong5: a rule emits a constant of 8 bytes at an address, expected "
     "4294967296, "
     "as its dtype and dims need"},
    {{"nn.gelu", other_type}, NULL},
};

static void test_wrong_rules(void **state)
{
    static struct byoc_pass passes[BYI_COUNT(wrong)];
    static char names[BYI_COUNT(wrong)][16];

    (void)state;
    for (size_t i = 0; i < BYI_COUNT(wrong); i++) {
        snprintf(names[i], sizeof names[i], "Wrong%zu", i);
        passes[i] = (struct byoc_pass){.struct_size = sizeof passes[i],
                                       .name = names[i],
                                       .summary = "wrong",
                                       .rules = &wrong[i].rule,
                                       .n_rules = 1};
        assert_int_equal(byoc_pass_register(&passes[i], &err), BYOC_OK);
        if (!wrong[i].message) {
            expect(gelu, names[i], "{\n  nn.gelu(%x)\n}");
            continue;
        }
        assert_null(opt(gelu, names[i], NULL));
        assert_string_equal(err.text, wrong[i].message);
    }
}

/* Check that a pass is refused with this message. */
static void refuse(const struct byoc_pass *pass, const char *message)
{
    assert_int_equal(byoc_pass_register(pass, &err), BYOC_EINVAL);
    assert_string_equal(err.text, message);
}

static void test_register_refused(void **state)
{
    static const struct byoc_rule unknown = {"nn.rleu", no_node};
    struct byoc_pass pass = scaling;

    (void)state;
    refuse(&pass, "pass 'TestScaling': found another pass of this name, "
                  "expected a new name");
    pass.name = "FoldConstant";
    refuse(&pass, "pass 'FoldConstant': found another pass of this name, "
                  "expected a new name");
    pass.name = "A,B";
    refuse(&pass, "found the pass 'A,B', expected a name of letters, digits "
                  "and '_'");
    pass.name = "Unknown";
    pass.rules = &unknown;
    refuse(&pass, "the pass 'Unknown' has a rule for 'nn.rleu', expected an "
                  "operator of docs/operators.md");
    pass.n_rules = 0;
    refuse(&pass, "the pass 'Unknown' has no rules, expected at least one");
    pass = scaling;
    pass.name = "Unknown";
    pass.struct_size = 4;
    refuse(&pass, "the pass '?' has struct_size 4, expected sizeof(struct "
                  "byoc_pass)");
    pass = scaling;
    pass.name = "Unknown";
    pass.opt_level = 4;
    refuse(&pass, "the pass 'Unknown' has opt level 4, expected 0 to 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_library_refused),
        cmocka_unit_test(test_registered),
        cmocka_unit_test(test_wrong_rules),
        cmocka_unit_test(test_register_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
