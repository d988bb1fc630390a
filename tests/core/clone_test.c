/* SPDX-License-Identifier: Apache-2.0 */
/* clone_test.c: tests that a cloned module equals the original, and is
 * independent of it.
 */
#include "core/ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "def @twice(%x: Tensor[(N, 3), float32]) -> Tensor[(N, 3), float32] {\n"
    "  let %f = fn (%y: Tensor[(N, 3), float32]) "
    "-> Tensor[(N, 3), float32] { add(%y, %x) };\n"
    "  %f(%x) #[\"Call_0\": \"Call\"]\n"
    "}\n"
    "def @main(%x: Tensor[(N, 3), float32], %c: Tensor[(), bool]) "
    "-> Tensor[(N, 3), float32] {\n"
    "  %0 = multiply(%x, Tensor[(3), float32] {1.0, 2.0, 3.0}) "
    "#[\"Mul_1\": \"Mul\"];\n"
    "  if (%c) { @twice(%0) } else { nn.relu(%0) }\n"
    "}\n";

static struct byi_module *parse(void)
{
    struct byi_module *m = NULL;
    struct byoc_error err;
    if (byi_parse_module(text, strlen(text), "text", NULL, &m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    return m;
}

static void print(const struct byi_module *m, struct byi_text *out)
{
    struct byoc_error err;
    if (byi_verify(m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byi_text_free(out);
    byi_print_module(m, out, NULL);
}

static void a_clone_is_the_same(void **state)
{
    (void)state;
    struct byi_module *m = parse(), *clone = byi_module_clone(m);
    struct byi_text a = {0}, b = {0};
    print(m, &a);
    print(clone, &b);
    assert_string_equal(a.at, b.at);
    assert_int_equal(byi_func_find(clone, "twice"), byi_func_find(m, "twice"));
    assert_int_equal(byi_module_entry(clone), byi_module_entry(m));
    assert_int_equal(clone->sources.n, m->sources.n);
    assert_ptr_equal(clone->consts.at[0].data, m->consts.at[0].data);
    byi_text_free(&a);
    byi_text_free(&b);
    byi_module_free(&clone);
    byi_module_free(&m);
}

/* Changes of a clone do not change the original, and the reverse. */
static void a_clone_is_independent(void **state)
{
    (void)state;
    struct byi_module *m = parse(), *clone = byi_module_clone(m);
    struct byi_text a = {0}, b = {0};
    print(m, &a);
    const uint32_t entry = byi_module_entry(clone);
    byi_id map[16] = {0}, id = 0;
    struct byi_func *new_func =
        byi_func_like(clone, clone->funcs.at[entry], map);
    assert_int_equal(byi_add_op(clone, new_func, BYI_OP_NN_RELU, &map[0], 1,
                                NULL, NULL, &id, NULL),
                     BYOC_OK);
    new_func->result = id;
    byi_func_replace(clone, entry, new_func);
    clone->funcs.at[byi_func_find(clone, "twice")]->dead = true;
    byi_func_new(clone, "another");
    byi_source_new(clone, "Another_2", "Another");
    print(m, &b);
    assert_string_equal(a.at, b.at);
    assert_true(byi_func_find(m, "another") == UINT32_MAX);
    byi_module_free(&clone);
    clone = byi_module_clone(m);
    m->funcs.at[byi_module_entry(m)]->result = 0;
    byi_func_new(m, "third");
    print(clone, &b);
    assert_string_equal(a.at, b.at);
    assert_true(byi_func_find(clone, "third") == UINT32_MAX);
    byi_text_free(&a);
    byi_text_free(&b);
    byi_module_free(&clone);
    byi_module_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clone_is_the_same),
        cmocka_unit_test(a_clone_is_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
