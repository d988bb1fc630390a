/* SPDX-License-Identifier: Apache-2.0 */
/* plan_order_test.c: tests that a module that was printed and parsed has the
 * same plan. The text form does not keep the position of constants among the
 * nodes, so the plan must not depend on it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "codegen_json/codegen_json.h"

/* add(add(x, second), first), in which both constants come before x, or at
 * their readers; a third one is the other result. */
static struct byi_module *make_module(bool early)
{
    const float values[3][20] = {{1}, {2}, {3}};
    const int64_t dims[] = {20};
    struct byoc_error err;
    struct byi_module *m = byi_module_new();
    const uint32_t func = byi_func_new(m, "main");
    struct byi_func *f = m->funcs.at[func];
    const struct byi_type *type = byi_type_tensor(m->arena, BYOC_F32, 1, dims);
    uint32_t consts[3];
    byi_id at[3], sum;
    for (int i = 0; i < 3; i++)
        consts[i] = byi_const_add(m, type, values[i], false);
    for (int i = 0; i < 3 && early; i++)
        at[i] = byi_add_const(m, f, consts[i], NULL);
    sum = byi_add_param(m, f, "x", type);
    for (int i = 1; i >= 0; i--) {
        if (!early)
            at[i] = byi_add_const(m, f, consts[i], NULL);
        const byi_id args[] = {sum, at[i]};
        assert_int_equal(
            byi_add_op(m, f, BYI_OP_ADD, args, 2, NULL, NULL, &sum, &err),
            BYOC_OK);
    }
    if (!early)
        at[2] = byi_add_const(m, f, consts[2], NULL);
    const byi_id results[] = {sum, at[2]};
    f->result = byi_add_tuple(m, f, results, 2, NULL);
    return m;
}

static void plan_of(const struct byi_module *m, struct byi_plan *plan)
{
    struct byoc_error err;
    assert_int_equal(byi_plan_write(m, NULL, plan, &err), BYOC_OK);
}

static void check_same_plan(const struct byi_plan *a, const struct byi_plan *b)
{
    assert_int_equal(a->json.n, b->json.n);
    assert_memory_equal(a->json.at, b->json.at, a->json.n);
    assert_int_equal(a->consts.n, b->consts.n);
}

static void positions_of_constants_do_not_matter(void **state)
{
    struct byi_module *early = make_module(true), *late = make_module(false);
    struct byi_plan a, b;
    (void)state;
    plan_of(early, &a);
    plan_of(late, &b);
    assert_int_equal(a.consts.n, 3);
    check_same_plan(&a, &b);
    byi_plan_free(&a);
    byi_plan_free(&b);
    byi_module_free(&early);
    byi_module_free(&late);
}

/* A nested function that is called at run time has a name of its own, which no
 * dead function before it may change. */
static void dead_functions_do_not_matter(void **state)
{
    static const char text[] =
        "def @main(%n: Tensor[(), int64]) -> Tensor[(), int64] {\n"
        "  %f = fn (%k: Tensor[(), int64]) -> Tensor[(), int64] {\n"
        "    if (less(%k, 2)) { 1 } else { multiply(%k, %f(subtract(%k, 1))) "
        "}\n"
        "  };\n"
        "  %f(%n)\n"
        "}\n";
    struct byi_plan plans[2];
    struct byoc_error err;
    (void)state;
    for (int dead = 0; dead < 2; dead++) {
        struct byi_module *m;
        struct byi_text program = {0};
        byi_text_addf(&program, "%s%s", dead ? "def @unused() { 1 }\n" : "",
                      text);
        assert_int_equal(
            byi_parse_module(program.at, program.n, "test", NULL, &m, &err),
            BYOC_OK);
        if (dead)
            m->funcs.at[byi_func_find(m, "unused")]->dead = true;
        plans[dead] = (struct byi_plan){0};
        plan_of(m, &plans[dead]);
        byi_module_free(&m);
        byi_text_free(&program);
    }
    check_same_plan(&plans[0], &plans[1]);
    byi_plan_free(&plans[0]);
    byi_plan_free(&plans[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_of_constants_do_not_matter),
        cmocka_unit_test(dead_functions_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
