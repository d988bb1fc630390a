/* SPDX-License-Identifier: Apache-2.0 */
/* builder_test.c: tests that rows built with byoc/pattern.h compile to the same
 * nodes as the same rows as text, for every part of the language.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <byoc/pattern.h>

#include <stdio.h>
#include <string.h>

#include "patterns/patterns.h"
#include "tests/print_pattern.h"

static char memory[4096];
static struct byoc_pat t; /* builds patterns in `memory` */

static void print(const char *pattern, struct byi_text *out)
{
    const struct byoc_pattern row = {.name = "t.row", .pattern = pattern};
    struct byi_pattern_table *table = NULL;
    struct byoc_error err;
    if (byi_patterns_compile(&row, 1, &table, &err))
        fail_msg("'%s': %s", pattern, err.text);
    print_pattern(&table->at[0], out);
    byi_patterns_free(&table);
}

/* `built` and `written` compile to the same nodes. */
static void expect_same(const char *built, const char *written)
{
    struct byi_text a = {0}, b = {0};
    print(built, &a);
    print(written, &b);
    if (strcmp(a.at, b.at) != 0)
        fail_msg("found %s, expected %s as of '%s'", a.at, b.at, written);
    byi_text_free(&a);
    byi_text_free(&b);
    t.used = 0;
}

static const char *any(const char *name)
{
    return byoc_pat_any(&t, name);
}

static const char *unary(const char *op, const char *p)
{
    return byoc_pat_op(&t, op, 1, p);
}

static void operators(void **state)
{
    (void)state;
    t = (struct byoc_pat){.at = memory, .size = sizeof memory};
    expect_same(
        byoc_pat_op(&t, "nn.conv2d", 2, any("src"), byoc_pat_const(&t, "w")),
        "nn.conv2d(%src, const %w)");
    expect_same(byoc_pat_op(&t, "add|multiply", 2, any("a"), any("a")),
                "add|multiply(%a, %a)");
    expect_same(byoc_pat_op(&t, "add", 2, unary("exp", any("a")),
                            unary("exp", any("a"))),
                "add(exp(%a), exp(%a))");
    expect_same(
        byoc_pat_op(&t, "concatenate", 2, any("f"), byoc_pat_rest(&t, "r")),
        "concatenate(%f, %r...)");
    expect_same(byoc_pat_op(&t, "arange", 3, any("a"), any("b"), any("c")),
                "arange(%a, %b, %c)");
    expect_same(
        byoc_pat_op(&t, "add", 2, any("a"), byoc_pat_value(&t, NULL, 0.5)),
        "add(%a, const 0.5)");
    expect_same(
        byoc_pat_op(&t, "add", 2, any("a"), byoc_pat_value(&t, "half", 0.1)),
        "add(%a, const %half = 0.1)");
    expect_same(byoc_pat_op(&t, "add", 3, any("a"), any("b"),
                            byoc_pat_minus(&t, unary("exp", any("c")))),
                "add(%a, %b, - exp(%c))");
    expect_same(
        byoc_pat_op(&t, "multiply", 2, any("a"), byoc_pat_over(&t, any("b"))),
        "multiply(%a, / %b)");
}

static void choices_and_tuples(void **state)
{
    (void)state;
    t = (struct byoc_pat){.at = memory, .size = sizeof memory};
    expect_same(
        unary("exp", byoc_pat_alt(&t, 3, unary("abs", any("a")),
                                  unary("nn.relu", any("a")), any("b"))),
        "exp((abs(%a) | nn.relu(%a) | %b))");
    expect_same(byoc_pat_tuple(&t, 2, unary("exp", any("a")), any("b")),
                "(exp(%a), %b)");
    expect_same(byoc_pat_tuple(&t, 1, unary("exp", any("a"))), "(exp(%a),)");
    expect_same(unary("exp", byoc_pat_field(&t, unary("split", any("a")), 1)),
                "exp(split(%a).1)");
}

static void attributes_and_types(void **state)
{
    (void)state;
    const int64_t ones[] = {1, INT64_C(-2)};
    t = (struct byoc_pat){.at = memory, .size = sizeof memory};
    expect_same(
        byoc_pat_int(&t, unary("nn.softmax", any("a")), "axis", ">=", -1),
        "nn.softmax(%a){axis>=-1}");
    expect_same(
        byoc_pat_float(&t,
                       byoc_pat_float(&t, unary("nn.leaky_relu", any("a")),
                                      "alpha", ">", 0.1),
                       "alpha", "<=", 1e-7),
        "nn.leaky_relu(%a){alpha>0.1, alpha<=1e-7}");
    expect_same(byoc_pat_string(&t, unary("nn.gelu", any("a")), "approximate",
                                "!=", "tanh"),
                "nn.gelu(%a){approximate!=\"tanh\"}");
    expect_same(
        byoc_pat_ints(&t, unary("split", any("a")), "sizes", "=", 2, ones),
        "split(%a){sizes=[1, -2]}");
    expect_same(
        byoc_pat_ints(&t, unary("split", any("a")), "sizes", "=", 0, NULL),
        "split(%a){sizes=[]}");
    expect_same(byoc_pat_attr(&t, unary("nn.softmax", any("a")), "axis=-1|3"),
                "nn.softmax(%a){axis=-1|3}");
    expect_same(unary("exp", byoc_pat_type(
                                 &t, any("a"),
                                 "Tensor[(1, _, >=2, ...), float32|float16]")),
                "exp(%a: Tensor[(1, _, >=2, ...), float32|float16])");
    expect_same(byoc_pat_type(&t, unary("exp", any("a")), "float32"),
                "exp(%a): float32");
}

static void ifs(void **state)
{
    (void)state;
    t = (struct byoc_pat){.at = memory, .size = sizeof memory};
    expect_same(byoc_pat_if(&t, any("c"), unary("nn.relu", any("a")),
                            byoc_pat_op(&t, "add", 2, any("a"),
                                        byoc_pat_const(&t, "k"))),
                "if (%c) { nn.relu(%a) } else { add(%a, const %k) }");
    expect_same(
        unary("exp",
              byoc_pat_if(
                  &t, unary("logical_not", any("c")), any("a"),
                  byoc_pat_if(&t, any("d"), unary("exp", any("a")), any("b")))),
        "exp(if (logical_not(%c)) { %a } else { if (%d) { exp(%a) } else "
        "{ %b } })");
}

static void steps_and_names(void **state)
{
    (void)state;
    t = (struct byoc_pat){.at = memory, .size = sizeof memory};
    expect_same(
        byoc_pat_step(&t, unary("exp", any("a")), unary("nn.relu", "^"), ""),
        "exp(%a) [nn.relu(^)]");
    expect_same(
        byoc_pat_step(&t, unary("exp", any("a")),
                      byoc_pat_alt(&t, 2, unary("nn.relu", "^"),
                                   byoc_pat_op(&t, "add", 2, "^", any("o"))),
                      "*"),
        "exp(%a) [nn.relu(^) | add(^, %o)]*");
    expect_same(
        byoc_pat_step(&t, unary("exp", any("a")), unary("abs", "^"), "{2, 4}"),
        "exp(%a) [abs(^)]{2, 4}");
    expect_same(byoc_pat_step(&t,
                              byoc_pat_step(&t, unary("exp", any("a")),
                                            unary("nn.relu|abs", "^"), "~"),
                              byoc_pat_op(&t, "add", 2, "^", "^"), "?"),
                "exp(%a) [nn.relu|abs(^)]~ [add(^, ^)]?");
    expect_same(
        byoc_pat_with(
            &t,
            byoc_pat_with(&t,
                          byoc_pat_op(&t, "add", 2, unary("tanh", any("e")),
                                      unary("sigmoid", any("e"))),
                          "e", unary("exp", any("f"))),
            "f", unary("abs", any("x"))),
        "add(tanh(%e), sigmoid(%e)) with %e = exp(%f), %f = abs(%x)");
}

/* Buffers of every length up to the required one: no byte after them is
 * written, and buffers that are too short give no pattern. */
static void never_writes_past_its_buffer(void **state)
{
    (void)state;
    static const char expected[] = "add(exp(%a), (abs(%b) | %c)) [nn.relu(^)]?";
    for (size_t size = 0; size < sizeof memory; size++) {
        memset(memory, '#', sizeof memory);
        t = (struct byoc_pat){.at = memory, .size = size};
        const char *p =
            byoc_pat_op(&t, "add", 2, unary("exp", any("a")),
                        byoc_pat_alt(&t, 2, unary("abs", any("b")), any("c")));
        p = byoc_pat_step(&t, p, unary("nn.relu", "^"), "?");
        assert_true(memory[size] == '#');
        assert_true(t.used <= size);
        if (t.used < size) {
            assert_string_equal(p, expected);
            return;
        }
        assert_string_equal(p, "");
    }
    fail_msg("found no pattern in %zu bytes, expected %s", sizeof memory,
             expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators),
        cmocka_unit_test(choices_and_tuples),
        cmocka_unit_test(attributes_and_types),
        cmocka_unit_test(ifs),
        cmocka_unit_test(steps_and_names),
        cmocka_unit_test(never_writes_past_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
