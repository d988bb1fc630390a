/* SPDX-License-Identifier: Apache-2.0 */
/* template_test.c: tests that templates emit the graphs that their text
 * describes, and every mistake in one is an error with its place.
 */
#include "core/ir/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- an emitter ----------------------------------------------------------- */

/* A function, to which the emitter of a test adds nodes. */
struct emission {
    struct byi_module *m;
    struct byi_func *f;
    struct byi_arena *scratch;
    byi_id x, c; /* (2, 3) of float64; (2, 3) of bool */
    int n_left;  /* emissions before one fails; negative: no emission fails */
    struct byoc_error err;
};

static bool next_fails(struct emission *s)
{
    return s->n_left == 0 || (s->n_left > 0 && --s->n_left < 0);
}

static byi_id add_call(void *ctx, enum byi_op_id op, const byi_id *args,
                       uint32_t n, const struct byi_attr *attrs,
                       uint32_t n_attrs)
{
    struct emission *s = ctx;
    byi_id id = BYI_NO_ID;
    if (next_fails(s))
        return BYI_NO_ID;
    if (byi_add_call(s->m, s->f, op, args, n, attrs, n_attrs, NULL, &id,
                     &s->err))
        return BYI_NO_ID;
    return id;
}

static void open_emission(struct emission *s)
{
    static const int64_t dims[] = {2, 3};
    *s = (struct emission){
        .m = byi_module_new(), .scratch = byi_arena_new(), .n_left = -1};
    const uint32_t index = byi_func_new(s->m, "main");
    s->f = s->m->funcs.at[index];
    s->x = byi_add_param(s->m, s->f, "x",
                         byi_type_tensor(s->m->arena, BYOC_F64, 2, dims));
    s->c = byi_add_param(s->m, s->f, "c",
                         byi_type_tensor(s->m->arena, BYOC_BOOL, 2, dims));
}

static void close_emission(struct emission *s)
{
    byi_arena_free(&s->scratch);
    byi_module_free(&s->m);
}

/* Emit `text` with the values x and c, and these attributes. */
static enum byoc_status emit(struct emission *s, const char *text, uint32_t n,
                             byi_id *results)
{
    static const int64_t axes[] = {-1};
    static const struct byi_attr axis = {
        .name = "axis", .kind = BYI_ATTR_INTS, .n = 1, .ints = axes};
    static const struct byi_attrs of_sum = {.n = 1, .at = &axis};
    static const struct byi_node sum = {
        .kind = BYI_CALL_OP, .op = BYI_OP_SUM, .attrs = &of_sum};
    const byi_id values[] = {s->x, s->c};
    const struct byi_attr attrs[] = {
        {.name = "axes", .kind = BYI_ATTR_INTS, .n = 1, .ints = axes},
        {.name = "three", .kind = BYI_ATTR_INT, .i = 3},
        {.name = "half", .kind = BYI_ATTR_FLOAT, .f = 0.5},
    };
    const struct byi_template_inputs inputs = {.n_values = 2,
                                               .values = values,
                                               .n_attrs = 3,
                                               .attrs = attrs,
                                               .again = &sum};
    const struct byi_emitter to = {
        .ctx = s, .m = s->m, .f = s->f, .call = add_call};
    return byi_template(&to, text, &inputs, s->scratch, n, results, &s->err);
}

/* --- graphs --------------------------------------------------------------- */

/* The template gives the same function as the text form does. */
static void expect_same(const char *text, const char *body)
{
    struct emission s;
    struct byi_module *m = NULL;
    struct byi_text emitted = {0}, expected = {0}, module_text = {0};
    struct byoc_error err;
    byi_id result;
    open_emission(&s);
    if (emit(&s, text, 1, &result))
        fail_msg("%s", s.err.text);
    assert_int_not_equal(result, BYI_NO_ID);
    s.f->result = result;
    byi_text_addf(&module_text,
                  "def @main(%%x: Tensor[(2, 3), float64],"
                  " %%c: Tensor[(2, 3), bool]) {\n%s\n}\n",
                  body);
    if (byi_parse_module(module_text.at, module_text.n, "t.ir", NULL, &m, &err))
        fail_msg("%s", err.text);
    byi_print_module(s.m, &emitted, NULL);
    byi_print_module(m, &expected, NULL);
    assert_string_equal(emitted.at, expected.at);
    byi_text_free(&emitted);
    byi_text_free(&expected);
    byi_text_free(&module_text);
    byi_module_free(&m);
    close_emission(&s);
}

static void test_graphs(void **state)
{
    (void)state;
    expect_same("fn (%x, %c) { exp(%x) }", "exp(%x)");
    expect_same("fn (%a, %b) { %y = exp(%a); %y = tanh(%y); add(%y, %a) }",
                "%y = exp(%x); %z = tanh(%y); add(%z, %x)");
    expect_same("fn (%x, %c) { max(%x, axis=axes, keepdims=true) }",
                "max(%x, axis=[-1], keepdims=true)");
    expect_same("fn (%x, %c) { split(%x, sizes=[1, 2], axis=1).1 }",
                "split(%x, sizes=[1, 2], axis=1).1");
    expect_same("fn (%x, %c) { reshape(%x, [three, -1]) }",
                "reshape(%x, [3, -1])");
    expect_same("fn (%x, %c) { cast(%c, dtype=%x) }",
                "cast(%c, dtype=\"float64\")");
    expect_same("fn (%x, %c) { again(exp(%x)) }", "sum(exp(%x), axis=[-1])");
    expect_same("fn (%x, %c) { cast(%c, dtype=\"int8\") }",
                "cast(%c, dtype=\"int8\")");
}

/* Numbers have the type of the operands around them. */
static void test_numbers(void **state)
{
    (void)state;
    expect_same("fn (%x, %c) { subtract(1, %x) }", "subtract(1f64, %x)");
    expect_same("fn (%x, %c) { multiply(%x, half) }", "multiply(%x, 0.5f64)");
    expect_same("fn (%x, %c) { where(%c, -inf, %x) }",
                "where(%c, Tensor[(), float64] {-inf}, %x)");
    expect_same("fn (%x, %c) { take(%x, 1i64, axis=0) }",
                "take(%x, 1, axis=0)");
    expect_same("fn (%x, %c) { nn.pad(%x, [0, 1, 0, 0], 2) }",
                "nn.pad(%x, [0, 1, 0, 0], 2f64)");
}

static void test_results(void **state)
{
    struct emission s;
    byi_id results[2];
    (void)state;
    open_emission(&s);
    assert_int_equal(
        emit(&s, "fn (%x, %c) { %y = exp(%x); (%y, %c) }", 2, results),
        BYOC_OK);
    assert_int_equal(s.f->nodes.at[results[0]].op, BYI_OP_EXP);
    assert_int_equal(results[1], s.c);
    close_emission(&s);
}

/* After a failed emission, later ones emit nothing, and there are no results.
 */
static void test_failed_emissions(void **state)
{
    (void)state;
    for (int n_left = 0; n_left <= 3; n_left++) {
        struct emission s;
        byi_id result;
        open_emission(&s);
        s.n_left = n_left;
        assert_int_equal(
            emit(&s, "fn (%x, %c) { exp(tanh(negative(%x))) }", 1, &result),
            BYOC_OK);
        assert_int_equal(s.f->nodes.n, 2 + n_left);
        assert_int_equal(result == BYI_NO_ID, n_left < 3);
        close_emission(&s);
    }
}

/* --- mistakes ------------------------------------------------------------- */

static void test_mistakes(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "expected 'fn ('"},
        {"fn (%x) { exp(%x) }", "1 parameters, expected 2"},
        {"fn (%x, %c) { exp(%y) }", "the name of a value"},
        {"fn (%x, %c) { expo(%x) }", "expected an operator"},
        {"fn (%x, %c) { multiply(%x, wide) }", "a given attribute"},
        {"fn (%x, %c) { max(%x, axis=axis) }", "a given attribute"},
        {"fn (%x, %c) { max(%x, axis=[half]) }", "a list of integers"},
        {"fn (%x, %c) { exp(%x }", "',' or ')'"},
        {"fn (%x, %c) { %y = exp(%x) %y }", "';'"},
        {"fn (%x, %c) { exp(%x); }", "'}'"},
        {"fn (%x, %c) { exp(%x) } }", "the end of the template"},
        {"fn (%x, %c) { 3 }", "a value before this"},
        {"fn (%x, %c) { (%x, %c) }", "2 results, expected 1"},
        {"fn (%x, %c) { take(%x, 1i32) }", "a value"},
        {"fn (%x, %c) { exp(%x).1 }", "tuple"},
        {"fn (%x, %c) { add(split(%x, sizes=[1, 2], axis=1), 1) }",
         "expected numbers"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct emission s;
        byi_id result;
        open_emission(&s);
        assert_int_not_equal(emit(&s, rows[i].text, 1, &result), BYOC_OK);
        if (!strstr(s.err.text, rows[i].message))
            fail_msg("%s: found \"%s\", expected \"%s\" in it", rows[i].text,
                     s.err.text, rows[i].message);
        close_emission(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_failed_emissions),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
