/* SPDX-License-Identifier: Apache-2.0 */
/* instrument_test.c: tests the hooks of instruments: their order, vetoes,
 * failures; and the built-in instruments: the tree of times, printing, dumping.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include "core/ir/ir.h"
#include "tests/folder.h"

#include <cmocka.h>

static struct byi_module *m;
static struct byoc_error err;
static char trace[400];

static void note(const char *a, const char *b)
{
    assert_true(strlen(trace) + strlen(a) + strlen(b) + 2 < sizeof trace);
    strcat(strcat(strcat(trace, a), b), " ");
}

static int setup(void **state)
{
    struct byi_func *f = NULL;
    byi_id x;

    (void)state;
    m = byi_module_new();
    err = (struct byoc_error){0};
    trace[0] = '\0';
    uint32_t index = byi_func_new(m, "main");
    f = m->funcs.at[index];
    x = byi_add_param(m, f, "x",
                      byi_type_tensor(m->arena, BYOC_F32, 1, (int64_t[]){3}));
    return (int)byi_add_op(m, f, BYI_OP_NN_RELU, &x, 1, NULL, NULL, &f->result,
                           &err);
}

static int teardown(void **state)
{
    (void)state;
    byi_module_free(&m);
    return 0;
}

/* A pass that adds a node, and one that fails. */
static enum byoc_status run_add(struct byi_module *module,
                                struct byi_pass_context *ctx,
                                struct byi_arena *scratch, struct byoc_error *e)
{
    struct byi_func *f = module->funcs.at[0];

    (void)scratch;
    note(ctx->pass->name, "");
    return byi_add_op(module, f, BYI_OP_NN_RELU, &f->result, 1, NULL, NULL,
                      &f->result, e);
}

static enum byoc_status run_fail(struct byi_module *module,
                                 struct byi_pass_context *ctx,
                                 struct byi_arena *scratch,
                                 struct byoc_error *e)
{
    (void)module, (void)ctx, (void)scratch;
    return byi_fail(e, BYOC_ETYPE, "always fails");
}

static const struct byi_pass pass_a = {.name = "A", .run_module = run_add};
static const struct byi_pass pass_b = {
    .name = "B", .opt_level = 2, .run_module = run_add};
static const struct byi_pass fails = {.name = "Fails", .run_module = run_fail};
static const struct byi_pass pair = {
    .name = "Pair",
    .sequence = (const struct byi_pass *const[]){&pass_a, &pass_b, NULL}};

/* An instrument that records its calls, and fails at a chosen one. */
struct spy {
    const char *name, *veto, *fail; /* veto: a pass; fail: a hook */
};

static enum byoc_status fail_if_chosen(const struct spy *spy, const char *hook,
                                       struct byoc_error *e)
{
    if (spy->fail && strcmp(spy->fail, hook) == 0)
        return byi_fail(e, BYOC_EBACKEND, "%s fails in %s", spy->name, hook);
    return BYOC_OK;
}

static enum byoc_status enter(void *ctx, struct byoc_error *e)
{
    const struct spy *spy = ctx;

    note(spy->name, ":enter");
    return fail_if_chosen(spy, "enter", e);
}

static void leave(void *ctx)
{
    const struct spy *spy = ctx;

    note(spy->name, ":exit");
}

static int should_run(void *ctx, const char *pass,
                      const struct byoc_module *module)
{
    const struct spy *spy = ctx;

    assert_true(byoc_module_nodes(module) > 0);
    return !spy->veto || strcmp(spy->veto, pass) != 0;
}

static enum byoc_status before(void *ctx, const char *pass,
                               const struct byoc_module *module,
                               struct byoc_error *e)
{
    const struct spy *spy = ctx;

    (void)module;
    note(spy->name, "<");
    note(pass, "");
    return fail_if_chosen(spy, "before", e);
}

static enum byoc_status after(void *ctx, const char *pass,
                              const struct byoc_module *module,
                              struct byoc_error *e)
{
    const struct spy *spy = ctx;

    (void)module, (void)pass;
    note(spy->name, ">");
    return fail_if_chosen(spy, "after", e);
}

static struct byoc_instrument spy_on(struct spy *spy)
{
    return (struct byoc_instrument){.ctx = spy,
                                    .enter = enter,
                                    .exit = leave,
                                    .should_run = should_run,
                                    .before = before,
                                    .after = after};
}

static enum byoc_status run(struct spy *one, struct spy *two,
                            const struct byi_pass *pass,
                            const char *const *required)
{
    const struct byoc_instrument both[] = {spy_on(one), spy_on(two)};
    struct byi_pass_context ctx = {.opt_level = 3,
                                   .required = required,
                                   .instruments = both,
                                   .n_instruments = 2};

    trace[0] = '\0';
    return byi_run_passes(m, &pass, 1, &ctx, &err);
}

static void test_order(void **state)
{
    struct spy one = {"1", NULL, NULL}, two = {"2", NULL, NULL};

    (void)state;
    assert_int_equal(run(&one, &two, &pass_a, NULL), BYOC_OK);
    assert_string_equal(trace,
                        "1:enter 2:enter 1< A 2< A A 1> 2> 1:exit 2:exit ");
    assert_int_equal(run(&one, &two, &pair, NULL), BYOC_OK);
    assert_string_equal(trace, "1:enter 2:enter 1< Pair 2< Pair 1< A 2< A A "
                               "1> 2> 1< B 2< B B 1> 2> 1> 2> 1:exit 2:exit ");
}

/* One veto is enough; instruments are not asked about required passes. */
static void test_should_run(void **state)
{
    static const char *const b[] = {"B", NULL};
    struct spy one = {"1", NULL, NULL}, two = {"2", "B", NULL};

    (void)state;
    assert_int_equal(run(&one, &two, &pair, NULL), BYOC_OK);
    assert_null(strstr(trace, "B"));
    assert_non_null(strstr(trace, "A"));
    assert_int_equal(run(&one, &two, &pair, b), BYOC_OK);
    assert_non_null(strstr(trace, "B"));
}

static void test_failing_hooks(void **state)
{
    static const struct {
        const char *fail, *trace;
    } rows[] = {
        {"enter", "1:enter 2:enter 1:exit "},
        {"before", "1:enter 2:enter 1< A 2< A 1:exit 2:exit "},
        {"after", "1:enter 2:enter 1< A 2< A A 1> 2> 1:exit 2:exit "},
    };

    (void)state;
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        struct spy one = {"1", NULL, NULL}, two = {"2", NULL, rows[i].fail};
        char message[40];
        assert_int_equal(run(&one, &two, &pass_a, NULL), BYOC_EBACKEND);
        snprintf(message, sizeof message, "2 fails in %s", rows[i].fail);
        assert_string_equal(err.text, message);
        assert_string_equal(trace, rows[i].trace);
    }
}

static void test_failing_pass(void **state)
{
    struct spy one = {"1", NULL, NULL}, two = {"2", NULL, NULL};

    (void)state;
    assert_int_equal(run(&one, &two, &fails, NULL), BYOC_ETYPE);
    assert_string_equal(err.text, "Fails: always fails");
    assert_string_equal(trace,
                        "1:enter 2:enter 1< Fails 2< Fails 1:exit 2:exit ");
}

static enum byoc_status run_instrumented(const struct byi_pass *pass,
                                         struct byoc_instrument instrument)
{
    struct byi_pass_context ctx = {
        .opt_level = 3, .instruments = &instrument, .n_instruments = 1};

    return byi_run_passes(m, &pass, 1, &ctx, &err);
}

static void test_timing_is_a_tree(void **state)
{
    const struct byi_pass outer = {
        .name = "Outer",
        .sequence = (const struct byi_pass *const[]){&pair, &pass_a, NULL}};
    static const char *const names[] = {"Outer", "Pair", "A", "B", "A"};
    static const uint32_t depths[] = {0, 1, 2, 2, 1};
    struct byi_timing timing = {0};
    struct byi_text text = {0};

    (void)state;
    assert_int_equal(run_instrumented(&outer, byi_timing_instrument(&timing)),
                     BYOC_OK);
    assert_int_equal(timing.passes.n, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_string_equal(timing.passes.at[i].name, names[i]);
        assert_int_equal(timing.passes.at[i].depth, depths[i]);
    }
    const struct byi_pass_time *t = timing.passes.at;
    assert_int_equal(t[0].inner, t[1].total + t[4].total);
    assert_int_equal(t[1].inner, t[2].total + t[3].total);
    assert_true(t[0].total >= t[0].inner);
    assert_int_equal(t[0].nodes_before, 1);
    assert_int_equal(t[0].nodes_after, 4);
    assert_int_equal(t[3].nodes_before, 2);
    assert_int_equal(t[3].nodes_after, 3);
    byi_timing_print(&timing, &text);
    assert_non_null(strstr(text.at, "\n  Pair "));
    assert_non_null(strstr(text.at, "\n    B "));
    byi_text_free(&text);
    byi_timing_free(&timing);
}

static void keep(void *ctx, const char *when, const char *pass, const char *ir)
{
    (void)ctx;
    note(when, pass);
    assert_non_null(strstr(ir, "def @main("));
}

static void test_printing(void **state)
{
    struct byi_printing one = {.before = "B", .after = "A", .print = keep};
    struct byi_printing after_all = {.after = "all", .print = keep};

    (void)state;
    assert_int_equal(run_instrumented(&pair, byi_printing_instrument(&one)),
                     BYOC_OK);
    assert_string_equal(trace, "A afterA beforeB B ");
    trace[0] = '\0';
    assert_int_equal(
        run_instrumented(&pair, byi_printing_instrument(&after_all)), BYOC_OK);
    assert_string_equal(trace, "A afterA B afterB afterPair ");
}

static void check_file(const char *folder, const char *name, const char *text)
{
    char path[200];
    const void *data = NULL;
    size_t n = 0;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(byi_map_file(path, &data, &n, &err), BYOC_OK);
    assert_true(n >= strlen(text));
    assert_non_null(memmem(data, n, text, strlen(text)));
    byi_unmap(data, n);
    unlink(path);
}

static void test_dump(void **state)
{
    char folder[TEST_PATH], inside[TEST_PATH + 8];

    (void)state;
    assert_non_null(make_inner_folder(folder));
    snprintf(inside, sizeof inside, "%s/made", folder);
    struct byi_dump dump = {.folder = inside};
    assert_int_equal(run_instrumented(&pair, byi_dump_instrument(&dump)),
                     BYOC_OK);
    check_file(inside, "000-input.ir", "nn.relu(%x)");
    check_file(inside, "001-A.ir", "nn.relu(%0)");
    check_file(inside, "002-B.ir", "nn.relu(%1)");
    check_file(inside, "003-Pair.ir", "nn.relu(%1)");
    check_file(inside, "003-Pair.consts", "byoc-consts 1");
    check_file(inside, "002-B.consts", "byoc-consts 1");
    check_file(inside, "001-A.consts", "byoc-consts 1");
    check_file(inside, "000-input.consts", "byoc-consts 1");
    assert_int_equal(rmdir(inside), 0); /* nothing else was left there */
    assert_int_equal(rmdir(folder), 0);
}

static void test_dump_refused(void **state)
{
    struct byi_dump dump = {.folder = "/proc/no/such"};

    (void)state;
    assert_int_equal(run_instrumented(&pair, byi_dump_instrument(&dump)),
                     BYOC_EIO);
    assert_non_null(strstr(err.text, "/proc/no/such: cannot create the folder: "
                                     "No such file or directory"));
    assert_string_equal(trace, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_order),
        TEST(test_should_run),
        TEST(test_failing_hooks),
        TEST(test_failing_pass),
        TEST(test_timing_is_a_tree),
        TEST(test_printing),
        TEST(test_dump),
        TEST(test_dump_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
