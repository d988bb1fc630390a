/* SPDX-License-Identifier: Apache-2.0 */
/* memory_test.c: tests the memory of random plans: values that are live at the
 * same time never share a byte, and the arena is large enough for all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codegen_json/plan.h"

enum { STEPS = 60 };

static uint32_t next(uint64_t *seed, uint32_t below)
{
    *seed =
        *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

/* Each step reads one or two earlier values and returns a new one, sometimes an
 * alias of an operand. */
static void make_plan(struct byi_planned_func *f, uint64_t seed,
                      struct byi_arena *arena)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        int64_t dim = 1 + next(&seed, 400);
        struct byi_planned_value v = {
            .kind = s ? BYI_P_TEMP : BYI_P_INPUT,
            .type = byi_type_tensor(arena, BYOC_F32, 1, &dim),
            .fixed = true};
        struct byi_planned_step step = {.in = f->flat.n, .n_out = 1};
        for (uint32_t i = 0; s && i <= next(&seed, 2); i++, step.n_in++)
            BYI_PUSH(&f->flat, s - 1 - next(&seed, s < 9 ? s : 9));
        if (s > 1 && next(&seed, 8) == 0) {
            v.kind = BYI_P_ALIAS;
            v.index = byi_planned_func_root(f, f->flat.at[step.in]);
        }
        step.out = f->flat.n;
        BYI_PUSH(&f->flat, s);
        BYI_PUSH(&f->values, v);
        if (s)
            BYI_PUSH(&f->steps, step);
    }
    BYI_PUSH(&f->outputs, (uint32_t)(STEPS - 1));
}

static void check_plan(const struct byi_planned_func *f)
{
    uint32_t first[STEPS] = {0}, last[STEPS] = {0};
    for (uint32_t s = 0; s < f->steps.n; s++) {
        const struct byi_planned_step *step = &f->steps.at[s];
        for (uint32_t i = 0; i < step->n_in; i++)
            last[byi_planned_func_root(f, f->flat.at[step->in + i])] = s;
        uint32_t out = f->flat.at[step->out];
        if (f->values.at[out].kind == BYI_P_TEMP)
            first[out] = last[out] = s;
    }
    last[byi_planned_func_root(f, f->outputs.at[0])] = UINT32_MAX;
    for (uint32_t a = 1; a < STEPS; a++) {
        const struct byi_planned_value *x = &f->values.at[a];
        if (x->kind != BYI_P_TEMP)
            continue;
        uint64_t end = x->offset + byi_type_bytes(x->type);
        assert_true(x->offset % BYI_ALIGN == 0 && end <= f->arena);
        for (uint32_t b = 1; b < a; b++) {
            const struct byi_planned_value *y = &f->values.at[b];
            if (y->kind != BYI_P_TEMP || last[a] < first[b] ||
                last[b] < first[a])
                continue;
            assert_true(end <= y->offset ||
                        y->offset + byi_type_bytes(y->type) <= x->offset);
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct byi_arena *arena = byi_arena_new();
        struct byi_planned_func f = {0};
        make_plan(&f, seed, arena);
        byi_plan_memory(&f);
        check_plan(&f);
        byi_vec_free(f.values.at);
        byi_vec_free(f.flat.at);
        byi_vec_free(f.steps.at);
        byi_vec_free(f.outputs.at);
        byi_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
