/* SPDX-License-Identifier: Apache-2.0 */
/* verify_test.c: breaks each invariant of the IR once, and expects the verifier
 * to name the function, the node and the error.
 */
#include "core/ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "def @main(%x: Tensor[(4), float32], %c: Tensor[(), bool],\n"
    "          Outputs=[\"y\"]) -> Tensor[(4), float32] {\n"
    "  %0 = nn.leaky_relu(%x) @[v] #[\"a\": \"LeakyRelu\", \"b\"];\n"
    "  %1 = add(%0, 1.0f);\n"
    "  %2 = @f(%1);\n"
    "  %3 = (%2, %1);\n"
    "  %4 = if (%c) { %3.0 } else { add(%1, %x) };\n"
    "  %4\n"
    "}\n"
    "def @f(%x: Tensor[(4), float32]) -> Tensor[(4), float32] { abs(%x) }\n";

static struct byi_module *make(void)
{
    struct byi_module *m = NULL;
    struct byoc_error err;

    if (byi_parse_module(text, strlen(text), "t.ir", NULL, &m, &err))
        fail_msg("%s", err.text);
    return m;
}

static struct byi_func *func(struct byi_module *m, const char *name)
{
    return m->funcs.at[byi_func_find(m, name)];
}

/* The first node of that kind in @main. */
static struct byi_node *node(struct byi_module *m, enum byi_node_kind kind)
{
    struct byi_func *f = func(m, "main");

    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].kind == kind)
            return &f->nodes.at[id];
    fail();
    return NULL;
}

static const struct byi_type *scalar(struct byi_module *m)
{
    return byi_type_tensor(m->arena, BYOC_I8, 0, NULL);
}

static const struct byi_type *unknown_symbol(struct byi_module *m)
{
    int64_t dim = -99;

    return byi_type_tensor(m->arena, BYOC_F32, 1, &dim);
}

/* Give the node a copy of its operands, which the test may change. */
static byi_id *args_of(struct byi_module *m, struct byi_node *n)
{
    byi_id *args = byi_arena_copy(m->arena, n->args, n->n_args * sizeof *args);

    n->args = args;
    return args;
}

static const struct byi_sources *bad_sources(struct byi_module *m, uint32_t a,
                                             uint32_t b)
{
    struct byi_sources *s = byi_arena_alloc(m->arena, sizeof *s);
    uint32_t at[2] = {a, b};

    *s = (struct byi_sources){2, byi_arena_copy(m->arena, at, sizeof at)};
    return s;
}

#define BREAK(name, ...)                                                       \
    static void name(struct byi_module *m)                                     \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

BREAK(bad_result, func(m, "main")->result = 99;)
BREAK(no_result, func(m, "f")->result = BYI_NO_ID;)
BREAK(bad_kind, m->funcs.at[2]->nodes.at[1].kind = (enum byi_node_kind)12;)
BREAK(self_operand, args_of(m, node(m, BYI_MAKE_TUPLE))[0] = 98;)
BREAK(no_type, node(m, BYI_CALL)->type = NULL;)
BREAK(op_type, node(m, BYI_CALL_OP)->type = scalar(m);)
BREAK(op_symbol, node(m, BYI_CALL_OP)->type = unknown_symbol(m);)
BREAK(op_number, node(m, BYI_CALL_OP)->op = BYI_N_OPS;)
BREAK(op_none, node(m, BYI_CALL_OP)->op = BYI_OP_NONE;)
BREAK(op_arity, node(m, BYI_CALL_OP)->n_args = 0;)
BREAK(op_attrs, node(m, BYI_CALL_OP)->attrs = NULL;)
BREAK(op_other_attrs, node(m, BYI_CALL_OP)->op = BYI_OP_NN_LRN;)
BREAK(const_index, node(m, BYI_CONST)->index = 9;)
BREAK(const_type, node(m, BYI_CONST)->type = scalar(m);)
BREAK(param_index, node(m, BYI_PARAM)->index = 1;)
BREAK(global_index, node(m, BYI_GLOBAL)->index = 55;)
BREAK(global_nested, node(m, BYI_GLOBAL)->index = 2;)
BREAK(global_dead, func(m, "f")->dead = true;)
BREAK(global_type, node(m, BYI_GLOBAL)->type = scalar(m);)
BREAK(call_type, node(m, BYI_CALL)->type = scalar(m);)
BREAK(call_args, node(m, BYI_CALL)->n_args = 1;)
BREAK(fn_global, node(m, BYI_FN)->index = 0;)
BREAK(fn_captures, node(m, BYI_FN)->n_args = 0;)
BREAK(fn_capture_type, args_of(m, node(m, BYI_FN))[0] = 1;)
BREAK(tuple_type, node(m, BYI_MAKE_TUPLE)->type = scalar(m);)
BREAK(if_condition, args_of(m, node(m, BYI_IF))[0] = 0;)
BREAK(if_type, node(m, BYI_IF)->type = scalar(m);)
BREAK(backend, node(m, BYI_CALL_OP)->backend = 9;)
BREAK(no_sources, node(m, BYI_CALL_OP)->sources = NULL;)
BREAK(order_sources, node(m, BYI_CALL_OP)->sources = bad_sources(m, 1, 0);)
BREAK(far_sources, node(m, BYI_CALL_OP)->sources = bad_sources(m, 0, 7);)
BREAK(same_names, func(m, "f")->name = "main";)
BREAK(param_names, func(m, "main")->param_names.at[1] = "x";)
BREAK(lost_name, func(m, "main")->param_names.at[1] = NULL;)
BREAK(param_list, func(m, "main")->params.at[1] = 2;)
BREAK(captures, func(m, "main")->n_captures = 1;)
BREAK(outputs, BYI_PUSH(&func(m, "main")->result_names, "z");)

/* Add to the function g a literal of function `index`, which captures as many
 * values as g. */
static byi_id nest(struct byi_module *m, struct byi_func *g, uint32_t index)
{
    byi_id captures[2];

    assert_true(g->n_captures <= 2 &&
                m->funcs.at[index]->n_captures == g->n_captures);
    for (uint32_t i = 0; i < g->n_captures; i++)
        captures[i] = g->params.at[i];
    return byi_add_fn(m, g, index, captures, g->n_captures, NULL);
}

/* Add to a function a literal of the function itself with another capture. */
static void other_captures(struct byi_module *m)
{
    const struct byi_node *branch = node(m, BYI_IF);
    uint32_t b = func(m, "main")->nodes.at[branch->args[2]].index;
    struct byi_func *g = m->funcs.at[b];
    struct byi_node *self = &g->nodes.at[nest(m, g, b)];

    assert_int_equal(g->n_captures, 2);
    args_of(m, self)[0] = g->params.at[1];
}

static const struct {
    void (*break_invariant)(struct byi_module *m);
    const char *message;
} cases[] = {
    {bad_result, "@main: its result is %99"},
    {no_result, "@f: its result is"},
    {bad_kind, "function 2, %1: its kind is 12"},
    {self_operand, "operand 0 is %98, expected an earlier node"},
    {no_type, "has no type"},
    {op_type, "@main, %2: its type is Tensor[(), int8], expected "
              "Tensor[(4), float32]"},
    {op_symbol, ", expected one of the module's"},
    {op_number, "its operator is number"},
    {op_none, "its operator is number 0"},
    {op_arity, "@main, %2: nn.leaky_relu"},
    {op_attrs, "nn.leaky_relu has 0 attributes, expected 1"},
    {op_other_attrs, "nn.lrn has 1 attributes, expected 4"},
    {const_index, "it is constant number 9, expected one of the module's 1"},
    {const_type, "its type is Tensor[(), int8], expected Tensor[(), float32]"},
    {param_index, "@main, %0: it is parameter 1"},
    {global_index, "it is function number 55, expected one of the module's 4"},
    {global_nested, "it is function 2, which is nested"},
    {global_dead, "which is removed"},
    {global_type, ", expected a function of 1 parameter"},
    {call_type, "its type is Tensor[(), int8]"},
    {call_args, "call: found 0 arguments, expected 1"},
    {fn_global, "it is function 0, which is not nested"},
    {fn_captures, "it captures 0 values, expected 1"},
    {fn_capture_type, "a captured value's type is Tensor[(), bool]"},
    {tuple_type, ", expected a tuple of 2 fields"},
    {if_condition, "if: the condition is float32"},
    {if_type, "its type is Tensor[(), int8]"},
    {backend, "its backend is number 9, expected at most 1"},
    {no_sources, "no set of sources"},
    {order_sources, ", expected ascending numbers below"},
    {far_sources, ", expected ascending numbers below"},
    {same_names, "@main is the name of two functions"},
    {param_names, "@main: it has two parameters %x"},
    {lost_name, "parameter 1 has no name"},
    {param_list, "expected a parameter node"},
    {captures, "it has 1 captures, expected none"},
    {outputs, "2 names for its results, expected 1"},
    {other_captures, "it is the function itself with %1 as capture 0"},
};

static void test_broken_invariants(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct byi_module *m = make();
        struct byoc_error err = {0};
        cases[i].break_invariant(m);
        if (byi_verify(m, &err) == BYOC_OK)
            fail_msg("case %zu passes, expected: %s", i, cases[i].message);
        if (!strstr(err.text, cases[i].message))
            fail_msg("case %zu: found %s, expected %s", i, err.text,
                     cases[i].message);
        byi_module_free(&m);
    }
}

static void test_valid_module(void **state)
{
    struct byi_module *m = make();
    struct byi_func *g = m->funcs.at[node(m, BYI_FN)->index];

    (void)state;
    assert_int_equal(byi_verify(m, NULL), BYOC_OK);
    nest(m, g,
         node(m, BYI_FN)->index); /* a function may contain its own literal */
    assert_int_equal(byi_verify(m, NULL), BYOC_OK);
    byi_module_free(&m);
}

/* A function may contain a literal of itself, but not of a function that
 * contains it. */
static void test_nesting(void **state)
{
    static const char two[] =
        "def @main(%x: Tensor[(4), float32]) {\n"
        "  %p = fn (%a: Tensor[(4), float32]) { abs(%a) };\n"
        "  %q = fn (%a: Tensor[(4), float32]) { exp(%a) };\n"
        "  %p(%q(%x))\n"
        "}\n";
    struct byi_module *m = NULL;
    struct byoc_error err;

    (void)state;
    if (byi_parse_module(two, strlen(two), "t.ir", NULL, &m, &err))
        fail_msg("%s", err.text);
    nest(m, m->funcs.at[1], 1);
    nest(m, m->funcs.at[1], 2);
    assert_int_equal(byi_verify(m, &err), BYOC_OK);
    nest(m, m->funcs.at[2], 1);
    assert_int_equal(byi_verify(m, &err), BYOC_ETYPE);
    assert_non_null(
        strstr(err.text, "found function 1 inside itself, in a literal"));
    byi_module_free(&m);
}

/* Sizes that depend on data get their symbols when they are first inferred; the
 * verifier accepts any symbol, but the same one everywhere. */
static void test_sizes_that_depend_on_data(void **state)
{
    static const char sizes[] =
        "def @main(%x: Tensor[(N, 3), float32]) {\n"
        "  %0: Tensor[(2, rows), int64] = nonzero(%x);\n"
        "  %1 = nonzero(%x);\n"
        "  %2 = @f(%0);\n"
        "  (%0, %1, %2)\n"
        "}\n"
        "def @f(%x: Tensor[(2, M), int64]) -> Tensor[(2, M), int64] { "
        "abs(%x) }\n";
    struct byi_module *m = NULL;
    struct byoc_error err;
    struct byi_func *f = NULL;

    (void)state;
    if (byi_parse_module(sizes, strlen(sizes), "t.ir", NULL, &m, &err))
        fail_msg("%s", err.text);
    f = func(m, "main");
    assert_string_equal(byi_symbol_name(m, f->nodes.at[1].type->dims[1]),
                        "rows");
    assert_string_equal(byi_symbol_name(m, f->nodes.at[4].type->dims[1]),
                        "rows");
    assert_int_equal(byi_symbol_name(m, f->nodes.at[2].type->dims[1])[0], '?');
    assert_int_equal(byi_verify(m, &err), BYOC_OK);
    f->nodes.at[4].type = f->nodes.at[2].type;
    assert_int_equal(byi_verify(m, &err), BYOC_ETYPE);
    byi_module_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_module),
        cmocka_unit_test(test_broken_invariants),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_sizes_that_depend_on_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
