/* SPDX-License-Identifier: Apache-2.0 */
/* pass_test.c: tests the pass manager: levels, needs, sequences, options, which
 * functions a pass sees, failures and the verifier. Most passes here only
 * record that they ran. Instruments are in instrument_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/ir/ir.h"

#include <cmocka.h>

static struct byi_module *m;
static struct byoc_error err;
static char trace[200];

static int setup(void **state)
{
    (void)state;
    m = byi_module_new();
    err = (struct byoc_error){0};
    trace[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    byi_module_free(&m);
    return 0;
}

static struct byi_func *new_func(const char *name)
{
    uint32_t index = byi_func_new(m, name);

    return m->funcs.at[index];
}

static void note(const char *text)
{
    assert_true(strlen(trace) + strlen(text) < sizeof trace);
    strcat(trace, text);
}

#define MODULE_PASS(id, text)                                                  \
    static enum byoc_status run_##id(                                          \
        struct byi_module *module, struct byi_pass_context *ctx,               \
        struct byi_arena *scratch, struct byoc_error *e)                       \
    {                                                                          \
        (void)ctx;                                                             \
        (void)e;                                                               \
        assert_ptr_equal(module, m);                                           \
        byi_arena_alloc(scratch, 100);                                         \
        note(text);                                                            \
        return BYOC_OK;                                                        \
    }
MODULE_PASS(a, "A ")
MODULE_PASS(b, "B ")
MODULE_PASS(c, "C ")

static const char *const needs_a[] = {"A", NULL};
static const char *const needs_b[] = {"B", NULL};
static const char *const needs_c[] = {"C", NULL};
static const struct byi_pass pass_a = {.name = "A", .run_module = run_a};
static const struct byi_pass pass_b = {
    .name = "B", .opt_level = 2, .needs = needs_a, .run_module = run_b};
static const struct byi_pass pass_c = {
    .name = "C", .opt_level = 1, .needs = needs_b, .run_module = run_c};

static enum byoc_status run(struct byi_pass_context ctx, uint32_t n,
                            const struct byi_pass *const *passes)
{
    return byi_run_passes(m, passes, n, &ctx, &err);
}

static void check_order(struct byi_pass_context ctx, uint32_t n,
                        const struct byi_pass *const *passes,
                        const char *expected)
{
    trace[0] = '\0';
    assert_int_equal(run(ctx, n, passes), BYOC_OK);
    assert_string_equal(trace, expected);
}

static const struct byi_pass *const in_order[] = {&pass_a, &pass_b, &pass_c};
static const struct byi_pass *const backwards[] = {&pass_c, &pass_b, &pass_a};
static const struct byi_pass *const again[] = {&pass_a, &pass_a, &pass_c,
                                               &pass_b, &pass_a};

static void test_opt_levels(void **state)
{
    static const char *const b[] = {"B", NULL};

    (void)state;
    check_order((struct byi_pass_context){.opt_level = 3}, 3, in_order,
                "A B C ");
    check_order((struct byi_pass_context){0}, 3, in_order, "A ");
    check_order((struct byi_pass_context){.required = b}, 2, in_order, "A B ");
    check_order((struct byi_pass_context){.required = b, .disabled = b}, 3,
                in_order, "A ");
    check_order((struct byi_pass_context){.opt_level = 3}, 0, in_order, "");
}

static void test_needs(void **state)
{
    (void)state;
    /* B is above the level, but C needs it */
    check_order((struct byi_pass_context){.opt_level = 1}, 3, in_order,
                "A B C ");
    check_order((struct byi_pass_context){.opt_level = 3}, 3, backwards,
                "A B C ");
    check_order((struct byi_pass_context){.opt_level = 3}, 5, again,
                "A A B C A ");
}

static void test_needs_refused(void **state)
{
    static const char *const a[] = {"A", NULL};
    const struct byi_pass loop_a = {
        .name = "A", .needs = needs_c, .run_module = run_a};
    const struct byi_pass *const loop[] = {&loop_a, &pass_b, &pass_c};
    const struct byi_pass *const alone[] = {&pass_c};

    (void)state;
    assert_int_equal(run((struct byi_pass_context){.opt_level = 3}, 3, loop),
                     BYOC_EINVAL);
    assert_string_equal(err.text, "B needs A, which needs it in turn");
    assert_int_equal(run((struct byi_pass_context){.opt_level = 3}, 1, alone),
                     BYOC_EINVAL);
    assert_string_equal(err.text, "C needs B, which is not in the list");
    assert_int_equal(
        run((struct byi_pass_context){.opt_level = 3, .disabled = a}, 3,
            in_order),
        BYOC_EINVAL);
    assert_string_equal(err.text,
                        "B needs A, which is disabled; disable both or none");
    assert_string_equal(trace, "");
}

/* --- sequences ------------------------------------------------------------ */

static const struct byi_pass inner = {
    .name = "Inner",
    .opt_level = 1,
    .sequence = (const struct byi_pass *const[]){&pass_b, &pass_a, NULL}};
static const struct byi_pass outer = {
    .name = "Outer",
    .sequence =
        (const struct byi_pass *const[]){&pass_a, &inner, &pass_c, NULL}};
static const struct byi_pass *const nested[] = {&outer};
static const struct byi_pass *const known[] = {&pass_a, &pass_b, &pass_c, NULL};

static void test_sequences(void **state)
{
    static const char *const off[] = {"Inner", NULL}, *const c[] = {"C", NULL};

    (void)state;
    check_order((struct byi_pass_context){.opt_level = 3, .known = known}, 1,
                nested, "A B A C ");
    /* B is above the level and skipped in Inner, but C needs it */
    check_order((struct byi_pass_context){.opt_level = 1, .known = known}, 1,
                nested, "A A B C ");
    check_order((struct byi_pass_context){.known = known}, 1, nested, "A ");
    check_order((struct byi_pass_context){.opt_level = 3,
                                          .known = known,
                                          .disabled = off},
                1, nested, "A B C ");
    check_order((struct byi_pass_context){.known = known, .required = c}, 1,
                nested, "A B C ");
}

/* A pass that the user names runs at any level, even if it is disabled; the
 * level still applies within sequences. */
static void test_runs_all(void **state)
{
    static const struct byi_pass *const list[] = {&pass_b, &outer};
    static const char *const off[] = {"B", NULL};

    (void)state;
    check_order((struct byi_pass_context){.runs_all = true, .known = known}, 2,
                list, "A B ");
    check_order((struct byi_pass_context){.runs_all = true,
                                          .known = known,
                                          .disabled = off},
                1, list, "A B ");
}

static void test_stop_after(void **state)
{
    (void)state;
    check_order((struct byi_pass_context){.opt_level = 3,
                                          .known = known,
                                          .stop_after = "B"},
                1, nested, "A B ");
    check_order((struct byi_pass_context){.opt_level = 3, .stop_after = "A"}, 5,
                again, "A ");
}

static void test_needs_from_all_known(void **state)
{
    static const struct byi_pass *const list[] = {&pass_c};

    (void)state;
    check_order((struct byi_pass_context){.opt_level = 3, .known = known}, 1,
                list, "A B C ");
}

static void test_breaks(void **state)
{
    const struct byi_pass breaker = {
        .name = "X", .breaks = needs_a, .run_module = run_c};
    const struct byi_pass *const list[] = {&pass_a, &breaker, &pass_b};
    const struct byi_pass *const before[] = {&pass_a, &pass_b, &breaker};

    (void)state;
    check_order((struct byi_pass_context){.opt_level = 3}, 3, list, "A C A B ");
    check_order((struct byi_pass_context){.opt_level = 3}, 3, before, "A B C ");
}

/* --- options -------------------------------------------------------------- */

static int64_t depth;
static bool flag;
static char word[20];

static enum byoc_status run_options(struct byi_module *module,
                                    struct byi_pass_context *ctx,
                                    struct byi_arena *scratch,
                                    struct byoc_error *e)
{
    (void)module, (void)scratch, (void)e;
    depth = byi_option_int(ctx, "Opt.depth");
    flag = byi_option_bool(ctx, "Opt.flag");
    strncpy(word, byi_option_string(ctx, "Opt.word"), sizeof word - 1);
    return BYOC_OK;
}

static const struct byi_pass with_options = {
    .name = "Opt",
    .options =
        (const struct byi_pass_option[]){
            {"depth", BYI_ATTR_INT, "256", "how deep"},
            {"flag", BYI_ATTR_BOOL, "true", "whether"},
            {"word", BYI_ATTR_STRING, "", "which"},
            {0}},
    .run_module = run_options};

static enum byoc_status run_with(const char *const *options)
{
    const struct byi_pass *const list[] = {&pass_a, &with_options};

    return run((struct byi_pass_context){.options = options}, 2, list);
}

static void test_options(void **state)
{
    static const char *const options[] = {
        "Opt.depth=-1", "Opt.flag=0", "Opt.word=a=b,c", "Opt.depth=7", NULL};

    (void)state;
    assert_int_equal(run_with(NULL), BYOC_OK);
    assert_int_equal(depth, 256);
    assert_true(flag);
    assert_string_equal(word, "");
    assert_int_equal(run_with(options), BYOC_OK);
    assert_int_equal(depth, 7);
    assert_false(flag);
    assert_string_equal(word, "a=b,c");
}

static void test_options_refused(void **state)
{
    static const struct {
        const char *option, *message;
    } rows[] = {
        {"Opt.dept=1", "option 'Opt.dept': found no pass that has it, expected "
                       "one of Opt.depth, Opt.flag, Opt.word"},
        {"A.depth=1", "option 'A.depth': found no pass that has it, expected "
                      "one of Opt.depth, Opt.flag, Opt.word"},
        {"Opt.depth",
         "option 'Opt.depth': found no value, expected PASS.NAME=VALUE"},
        {"", "option '': found no value, expected PASS.NAME=VALUE"},
        {"Opt.depth=seven",
         "option 'Opt.depth': found 'seven', expected an integer"},
        {"Opt.depth=99999999999999999999",
         "option 'Opt.depth': found '99999999999999999999', expected an "
         "integer"},
        {"Opt.depth=", "option 'Opt.depth': found '', expected an integer"},
        {"Opt.flag=yes",
         "option 'Opt.flag': found 'yes', expected true or false"},
    };

    (void)state;
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        const char *const options[] = {rows[i].option, NULL};
        assert_int_equal(run_with(options), BYOC_EINVAL);
        assert_string_equal(err.text, rows[i].message);
    }
    assert_string_equal(trace, ""); /* no pass had run yet */
}

/* --- functions, failures -------------------------------------------------- */

static enum byoc_status run_named(struct byi_module *module, uint32_t func,
                                  struct byi_pass_context *ctx,
                                  struct byi_arena *scratch,
                                  struct byoc_error *e)
{
    const struct byi_func *f = module->funcs.at[func];

    (void)ctx;
    byi_arena_alloc(scratch, 10);
    note(f->name ? f->name : "fn ");
    if (f->name && strcmp(f->name, "bad") == 0)
        return byi_fail(e, BYOC_ETYPE, "found bad");
    byi_func_new(module, "added");
    return BYOC_OK;
}

static void test_function_passes(void **state)
{
    const struct byi_pass named = {.name = "Named", .run_func = run_named};
    const struct byi_pass *const list[] = {&named};

    (void)state;
    byi_func_new(m, "one ");
    new_func("dead ")->dead = true;
    new_func("backend ")->attr.compiler = "dnnl";
    new_func("match ")->attr.composite = "dnnl.conv";
    new_func("fused ")->attr.primitive = true;
    byi_func_new(m, NULL);
    check_order((struct byi_pass_context){0}, 1, list, "one fn ");
}

static void test_failure_stops(void **state)
{
    const struct byi_pass named = {.name = "Named", .run_func = run_named};
    const struct byi_pass *const list[] = {&named, &pass_a};
    struct byi_pass_context ctx = {0};

    (void)state;
    byi_func_new(m, "bad");
    assert_int_equal(byi_run_passes(m, list, 2, &ctx, &err), BYOC_ETYPE);
    assert_string_equal(err.text, "Named: found bad");
    assert_string_equal(trace, "bad");
    assert_int_equal(byi_run_passes(m, list, 2, &ctx, NULL), BYOC_ETYPE);
}

/* Give a node a type that its operator does not compute. */
static enum byoc_status run_breaker(struct byi_module *module, uint32_t func,
                                    struct byi_pass_context *ctx,
                                    struct byi_arena *scratch,
                                    struct byoc_error *e)
{
    struct byi_func *f = module->funcs.at[func];

    (void)ctx;
    (void)scratch;
    (void)e;
    f->nodes.at[f->result].type =
        byi_type_tensor(module->arena, BYOC_I8, 0, NULL);
    return BYOC_OK;
}

static void test_verifier_runs_after_each(void **state)
{
    const struct byi_pass breaker = {.name = "Breaker",
                                     .run_func = run_breaker};
    const struct byi_pass *const list[] = {&pass_a, &breaker, &pass_a};
    struct byi_func *f = new_func("main");
    struct byi_pass_context ctx = {.verify = true};
    byi_id x = byi_add_param(
        m, f, "x", byi_type_tensor(m->arena, BYOC_F32, 1, (int64_t[]){3}));

    (void)state;
    assert_int_equal(
        byi_add_op(m, f, BYI_OP_NN_RELU, &x, 1, NULL, NULL, &f->result, &err),
        BYOC_OK);
    assert_int_equal(byi_run_passes(m, list, 3, &ctx, &err), BYOC_EINTERNAL);
    assert_memory_equal(err.text, "Breaker left a broken module: ", 30);
    assert_string_equal(trace, "A ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_opt_levels),
        TEST(test_needs),
        TEST(test_needs_refused),
        TEST(test_sequences),
        TEST(test_runs_all),
        TEST(test_stop_after),
        TEST(test_needs_from_all_known),
        TEST(test_breaks),
        TEST(test_options),
        TEST(test_options_refused),
        TEST(test_function_passes),
        TEST(test_failure_stops),
        TEST(test_verifier_runs_after_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
