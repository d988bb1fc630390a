/* SPDX-License-Identifier: Apache-2.0 */
/* ir_test.c: tests modules: names, sources, shared constants, builders and
 * their errors, copies and replacement of functions, uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/ir/ir.h"

#include <cmocka.h>

static struct byi_module *m;
static struct byoc_error err;

static int setup(void **state)
{
    (void)state;
    m = byi_module_new();
    err = (struct byoc_error){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    byi_module_free(&m);
    return m != NULL;
}

static const struct byi_type *type_of(enum byoc_dtype dtype, uint32_t rank,
                                      const int64_t *dims)
{
    return byi_type_tensor(m->arena, dtype, rank, dims);
}

static const struct byi_type *f32(int64_t a, int64_t b)
{
    return type_of(BYOC_F32, 2, (int64_t[]){a, b});
}

static struct byi_func *func(uint32_t index)
{
    return m->funcs.at[index];
}

static byi_id add_op(struct byi_func *f, enum byi_op_id op, byi_id a, byi_id b)
{
    byi_id id = BYI_NO_ID, args[] = {a, b};

    assert_int_equal(byi_add_op(m, f, op, args, b == BYI_NO_ID ? 1 : 2, NULL,
                                NULL, &id, &err),
                     BYOC_OK);
    return id;
}

/* A constant vector of int64. */
static byi_id add_ints(struct byi_func *f, uint32_t n, const int64_t *values)
{
    const struct byi_type *type = type_of(BYOC_I64, 1, (int64_t[]){n});

    return byi_add_const(m, f, byi_const_add(m, type, values, false), NULL);
}

static void test_symbols(void **state)
{
    int64_t n = byi_symbol(m, "N");

    (void)state;
    assert_true(BYI_IS_SYMBOL(n));
    assert_int_equal(byi_symbol(m, "N"), n);
    assert_int_not_equal(byi_symbol(m, "M"), n);
    assert_string_equal(byi_symbol_name(m, n), "N");
    byi_symbol(m, "?1");
    assert_string_equal(byi_symbol_name(m, byi_symbol_new(m)), "?0");
    assert_string_equal(byi_symbol_name(m, byi_symbol_new(m)), "?2");
}

static uint32_t backend_named(const char *name)
{
    uint32_t backend = 0;

    assert_int_equal(byi_backend_add(m, name, &backend, NULL), BYOC_OK);
    return backend;
}

static void test_backends(void **state)
{
    uint32_t backend = 0;
    char name[16];

    (void)state;
    err = (struct byoc_error){0};
    assert_int_equal(backend_named("dnnl"), 1);
    assert_int_equal(backend_named("other"), 2);
    assert_int_equal(backend_named("dnnl"), 1);
    for (uint32_t i = 2; i < BYI_MAX_BACKENDS; i++) {
        snprintf(name, sizeof name, "v%u", i);
        assert_int_equal(backend_named(name), i + 1);
    }
    assert_int_equal(byi_backend_add(m, "more", &backend, &err), BYOC_ELIMIT);
    assert_string_equal(err.text, "found backend 'more' after 2047 others, "
                                  "expected at most 2047 in a module");
    assert_int_equal(backend_named("other"), 2);
}

static void test_functions_by_name(void **state)
{
    uint32_t a = byi_func_new(m, "main"), b = byi_func_new(m, NULL);

    (void)state;
    assert_int_equal(byi_func_find(m, "main"), a);
    assert_int_equal(byi_func_find(m, "mai"), UINT32_MAX);
    assert_null(func(b)->name);
    func(a)->dead = true;
    assert_int_equal(byi_func_find(m, "main"), UINT32_MAX);
    assert_int_equal(byi_func_find(m, "main"), UINT32_MAX);
    b = byi_func_new(m, "main");
    assert_int_equal(byi_func_find(m, "main"), b);
}

static void test_source_names_are_unique(void **state)
{
    (void)state;
    byi_source_new(m, "a", "Conv");
    byi_source_new(m, "a#1", "Conv");
    byi_source_new(m, "a", "Relu");
    byi_source_new(m, "", "Relu");
    byi_source_new(m, NULL, "Relu");
    assert_string_equal(m->sources.at[0].name, "a");
    assert_string_equal(m->sources.at[2].name, "a#2");
    assert_string_equal(m->sources.at[2].op, "Relu");
    assert_string_equal(m->sources.at[3].name, "Relu#3");
    assert_string_equal(m->sources.at[4].name, "Relu#4");
}

static void test_sources_join(void **state)
{
    const struct byi_sources *single[4], *ab, *bc, *abc;

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        byi_source_new(m, "", "Conv");
        single[i] = byi_sources_one(m, i);
    }
    ab = byi_sources_join(m, single[1], single[0]);
    bc = byi_sources_join(m, single[1], single[2]);
    abc = byi_sources_join(m, bc, ab);
    assert_int_equal(abc->n, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(abc->at[i], i);
    assert_ptr_equal(byi_sources_join(m, abc, bc), abc);
    assert_ptr_equal(byi_sources_join(m, bc, abc), abc);
    assert_ptr_equal(byi_sources_join(m, byi_sources_none(), ab), ab);
    assert_int_equal(byi_sources_join(m, ab, single[3])->at[2], 3);
}

static void test_constants_are_shared_by_content(void **state)
{
    static const float lent[4] = {1, 2, 3, 4};
    float data[4] = {1, 2, 3, 4};
    const struct byi_type *row = f32(1, 4), *column = f32(4, 1);
    uint32_t a = byi_const_add(m, row, data, false), b, c, d;

    (void)state;
    data[0] = 9; /* a copy was made */
    b = byi_const_add(m, row, data, false);
    data[0] = 1;
    assert_int_equal(byi_const_add(m, f32(1, 4), data, false), a);
    assert_int_equal(byi_const_add(m, row, lent, true), a);
    c = byi_const_add(m, column, lent, true);
    d = byi_const_add(m, type_of(BYOC_I32, 2, row->dims), data, false);
    assert_true(a != b && a != c && a != d && b != c && c != d);
    assert_ptr_equal(m->consts.at[c].data, lent);
    assert_int_equal((uintptr_t)m->consts.at[a].data % BYI_ALIGN, 0);
    assert_memory_equal(m->consts.at[a].data, lent, sizeof lent);
    assert_int_equal(m->consts.at[a].bytes, 16);
}

static void test_string_empty_and_scalar_constants(void **state)
{
    const char *words[] = {"a", "bc"}, *equal_words[2];
    char bc[] = "bc";
    const struct byi_type *strings = type_of(BYOC_STRING, 1, (int64_t[]){2});
    const struct byi_type *empty = f32(0, 3),
                          *scalar = type_of(BYOC_F32, 0, NULL);
    uint32_t s = byi_const_add(m, strings, words, false);
    float one = 1;

    (void)state;
    equal_words[0] = "a";
    equal_words[1] = bc;
    assert_int_equal(byi_const_add(m, strings, equal_words, false), s);
    equal_words[1] = "a";
    assert_int_not_equal(byi_const_add(m, strings, equal_words, false), s);
    assert_int_equal(byi_const_add(m, empty, NULL, false),
                     byi_const_add(m, empty, NULL, true));
    assert_int_equal(byi_const_add(m, scalar, &one, false),
                     byi_const_add(m, scalar, &one, false));
}

static void test_types_of_operators(void **state)
{
    struct byi_func *f = func(byi_func_new(m, "main"));
    byi_id x = byi_add_param(m, f, "x", f32(2, 3));
    byi_id b = byi_add_param(m, f, "b", f32(1, 3));
    byi_id shape = add_ints(f, 1, (int64_t[]){-1});
    byi_id y = add_op(f, BYI_OP_ADD, x, b);
    byi_id z = add_op(f, BYI_OP_RESHAPE, y, shape); /* reads the value */
    struct byi_tensor view;

    (void)state;
    assert_true(byi_type_equal(f->nodes.at[y].type, f32(2, 3)));
    assert_true(byi_type_equal(f->nodes.at[z].type,
                               type_of(BYOC_F32, 1, (int64_t[]){6})));
    assert_int_equal(f->nodes.at[z].n_args, 2);
    assert_int_equal(f->nodes.at[z].args[1], shape);
    assert_int_equal(f->nodes.at[z].sources->n, 0);
    assert_non_null(f->nodes.at[z].attrs);
    assert_true(byi_const_view(m, f, shape, &view));
    assert_int_equal(byi_tensor_int(&view, 0), -1);
    assert_false(byi_const_view(m, f, y, &view));
}

static void test_many_operands(void **state)
{
    struct byi_func *f = func(byi_func_new(m, "main"));
    byi_id args[BYI_MAX_ARGS + 1], id = BYI_NO_ID;

    (void)state;
    args[0] = byi_add_param(m, f, "x", f32(2, 3));
    for (uint32_t i = 1; i <= BYI_MAX_ARGS; i++)
        args[i] = args[0];
    assert_int_equal(byi_add_op(m, f, BYI_OP_CONCATENATE, args, BYI_MAX_ARGS,
                                NULL, NULL, &id, &err),
                     BYOC_OK);
    assert_true(byi_type_equal(f->nodes.at[id].type, f32(2 * BYI_MAX_ARGS, 3)));
    assert_int_equal(byi_add_op(m, f, BYI_OP_CONCATENATE, args,
                                BYI_MAX_ARGS + 1, NULL, NULL, &id, &err),
                     BYOC_ELIMIT);
    assert_string_equal(
        err.text, "concatenate: found 4097 operands, expected at most 4096");
}

static void test_operators_refuse_operands(void **state)
{
    struct byi_func *f = func(byi_func_new(m, "main"));
    byi_id x = byi_add_param(m, f, "x", f32(2, 3));
    byi_id y = byi_add_param(m, f, "y", f32(2, 4));
    byi_id t = byi_add_tuple(m, f, &x, 1, NULL), id = 77;
    const struct byi_attr attr = {.name = "beta", .kind = BYI_ATTR_INT};
    uint32_t n = f->nodes.n;

    (void)state;
    assert_int_equal(byi_add_op(m, f, BYI_OP_ADD, (byi_id[]){x, y}, 2, NULL,
                                NULL, &id, &err),
                     BYOC_ETYPE);
    assert_memory_equal(err.text, "add: ", 5);
    assert_int_equal(byi_add_op(m, f, BYI_OP_ADD, &x, 1, NULL, NULL, &id, &err),
                     BYOC_ETYPE);
    assert_int_equal(
        byi_add_op(m, f, BYI_OP_NN_RELU, &t, 1, NULL, NULL, &id, &err),
        BYOC_ETYPE);
    assert_string_equal(
        err.text,
        "nn.relu: operand 0 is a tuple of 1 field, expected a tensor");
    assert_int_equal(
        byi_add_call(m, f, BYI_OP_NN_ELU, &x, 1, &attr, 1, NULL, &id, &err),
        BYOC_EINVAL);
    assert_int_equal(id, 77);
    assert_int_equal(f->nodes.n, n);
}

static void test_tuples(void **state)
{
    struct byi_func *f = func(byi_func_new(m, "main"));
    byi_id x = byi_add_param(m, f, "x", f32(2, 3));
    byi_id t = byi_add_tuple(m, f, (byi_id[]){x, x}, 2, NULL), id = BYI_NO_ID;

    (void)state;
    assert_int_equal(byi_add_get(m, f, t, 1, NULL, &id, &err), BYOC_OK);
    assert_ptr_equal(f->nodes.at[id].type, f->nodes.at[x].type);
    assert_int_equal(byi_add_get(m, f, t, 2, NULL, &id, &err), BYOC_ETYPE);
    assert_string_equal(err.text, "projection .2: found a tuple of 2 fields, "
                                  "expected at least 3");
    assert_int_equal(byi_add_get(m, f, t, UINT32_MAX, NULL, &id, &err),
                     BYOC_ETYPE);
    assert_string_equal(err.text,
                        "projection .4294967295: found a tuple of 2 fields, "
                        "expected at least 4294967296");
    assert_int_equal(byi_add_get(m, f, x, 0, NULL, &id, &err), BYOC_ETYPE);
    assert_string_equal(
        err.text, "projection .0: found float32 (2, 3), expected a tuple");
}

/* relu(%p) of the parameter's type, as function `name`. */
static uint32_t relu_func(const char *name, const struct byi_type *type)
{
    uint32_t index = byi_func_new(m, name);
    byi_id p = byi_add_param(m, func(index), "p", type);

    func(index)->result = add_op(func(index), BYI_OP_NN_RELU, p, BYI_NO_ID);
    return index;
}

static void test_apply(void **state)
{
    int64_t n = byi_symbol(m, "N");
    uint32_t g = relu_func("g", f32(n, 3));
    struct byi_func *f = func(byi_func_new(m, "main"));
    byi_id x = byi_add_param(m, f, "x", f32(5, 3));
    byi_id y = byi_add_param(m, f, "y", f32(5, 4));
    byi_id callee = byi_add_global(m, f, g), id = BYI_NO_ID;

    (void)state;
    assert_int_equal(f->nodes.at[callee].type->kind, BYI_FUNC);
    assert_int_equal(byi_add_apply(m, f, callee, &x, 1, NULL, &id, &err),
                     BYOC_OK);
    assert_true(byi_type_equal(f->nodes.at[id].type, f32(5, 3)));
    assert_int_equal(f->nodes.at[id].n_args, 2);
    assert_int_equal(byi_add_apply(m, f, callee, &y, 1, NULL, &id, &err),
                     BYOC_ETYPE);
    assert_string_equal(err.text, "call: argument 0 is float32 (5, 4), "
                                  "expected float32 (?, 3)");
    assert_int_equal(byi_add_apply(m, f, callee, &x, 0, NULL, &id, &err),
                     BYOC_ETYPE);
    assert_string_equal(err.text, "call: found 0 arguments, expected 1");
    assert_int_equal(byi_add_apply(m, f, x, &x, 1, NULL, &id, &err),
                     BYOC_ETYPE);
    assert_string_equal(err.text,
                        "call: found float32 (5, 3), expected a function");
}

/* A call binds each symbol to one size, also if there are many symbols. */
static void test_apply_binds_symbols_once(void **state)
{
    enum { N = 200 };
    struct byi_func *g = func(byi_func_new(m, "g"));
    struct byi_func *f = func(byi_func_new(m, "main"));
    byi_id args[N], callee, id = BYI_NO_ID;

    (void)state;
    for (int64_t i = 0; i < N; i++) {
        int64_t s = byi_symbol_new(m);
        byi_add_param(m, g, "p", f32(s, s));
        args[i] = byi_add_param(m, f, "x", f32(i, i));
    }
    g->result = g->params.at[N - 1];
    callee = byi_add_global(m, f, 0);
    assert_int_equal(byi_add_apply(m, f, callee, args, N, NULL, &id, &err),
                     BYOC_OK);
    assert_true(byi_type_equal(f->nodes.at[id].type, f32(N - 1, N - 1)));
    args[7] = args[150] = byi_add_param(m, f, "odd", f32(1, 2));
    assert_int_equal(byi_add_apply(m, f, callee, args, N, NULL, &id, &err),
                     BYOC_ETYPE);
    args[7] = args[6];
    assert_int_equal(byi_add_apply(m, f, callee, args, N, NULL, &id, &err),
                     BYOC_ETYPE);
    assert_string_equal(err.text, "call: argument 150 is float32 (1, 2), "
                                  "expected float32 (?, ?)");
}

static void test_recursion_by_declared_type(void **state)
{
    uint32_t g = byi_func_new(m, "g");
    const struct byi_type *t = f32(2, 3);
    byi_id p = byi_add_param(m, func(g), "p", t), callee, id = BYI_NO_ID;

    (void)state;
    assert_null(byi_func_type(m, g));
    func(g)->type = byi_type_func(m->arena, 1, &t, t);
    callee = byi_add_global(m, func(g), g);
    assert_int_equal(byi_add_apply(m, func(g), callee, &p, 1, NULL, &id, &err),
                     BYOC_OK);
    func(g)->result = id;
    assert_ptr_equal(byi_func_type(m, g)->result, t);
}

static void test_if(void **state)
{
    const struct byi_type *yes = type_of(BYOC_BOOL, 0, NULL);
    struct byi_func *f = func(byi_func_new(m, "main"));
    byi_id c = byi_add_param(m, f, "c", yes), id = BYI_NO_ID;
    byi_id x = byi_add_param(m, f, "x", f32(2, 3));
    byi_id y = byi_add_param(m, f, "y", f32(4, 3));
    byi_id i =
        byi_add_param(m, f, "i", type_of(BYOC_I32, 2, (int64_t[]){2, 3}));
    byi_id fn[3], captured[] = {x, y, i};

    (void)state;
    for (uint32_t b = 0; b < 3; b++) {
        uint32_t g = byi_func_new(m, NULL);
        func(g)->result =
            byi_add_param(m, func(g), "v", f->nodes.at[captured[b]].type);
        func(g)->n_captures = 1;
        fn[b] = byi_add_fn(m, f, g, &captured[b], 1, NULL);
        assert_int_equal(f->nodes.at[fn[b]].type->n_fields, 0);
    }
    assert_int_equal(byi_add_if(m, f, c, fn[0], fn[0], NULL, &id, &err),
                     BYOC_OK);
    assert_true(byi_type_equal(f->nodes.at[id].type, f32(2, 3)));
    assert_int_equal(byi_add_if(m, f, c, fn[0], fn[1], NULL, &id, &err),
                     BYOC_OK);
    assert_true(BYI_IS_SYMBOL(f->nodes.at[id].type->dims[0]));
    assert_int_equal(f->nodes.at[id].type->dims[1], 3);
    assert_int_equal(byi_add_if(m, f, c, fn[0], fn[2], NULL, &id, &err),
                     BYOC_ETYPE);
    assert_string_equal(err.text,
                        "if: the branches give float32 (2, 3) and int32 (2, "
                        "3), expected the same dtype and rank");
    assert_int_equal(byi_add_if(m, f, x, fn[0], fn[0], NULL, &id, &err),
                     BYOC_ETYPE);
    assert_int_equal(byi_add_if(m, f, c, fn[0], x, NULL, &id, &err),
                     BYOC_ETYPE);
}

/* Rebuild a function node by node. map[i] becomes the new index of node i. */
static struct byi_func *rebuild(uint32_t index, byi_id *map)
{
    const struct byi_func *old = func(index);
    struct byi_func *f = byi_func_like(m, old, map);

    for (byi_id id = 0; id < old->nodes.n; id++)
        if (old->nodes.at[id].kind != BYI_PARAM)
            assert_int_equal(byi_add_copy(m, f, old, id, map, &map[id], &err),
                             BYOC_OK);
    f->result = map[old->result];
    return f;
}

static void test_rebuild_keeps_everything(void **state)
{
    uint32_t index = byi_func_new(m, "main");
    struct byi_func *f = func(index), *g = NULL;
    byi_id x = byi_add_param(m, f, "x", f32(2, 3)), map[8], r, y, z;
    const struct byi_type *before = NULL;

    (void)state;
    byi_source_new(m, "n", "Relu");
    r = add_op(f, BYI_OP_NN_RELU, x, BYI_NO_ID);
    f->nodes.at[r].sources = byi_sources_one(m, 0);
    f->nodes.at[r].backend = 1;
    f->nodes.at[r].region = 5;
    y = byi_add_param(m, f, "y", f32(2, 3)); /* after other nodes */
    z = add_op(f, BYI_OP_NONZERO, r, BYI_NO_ID);
    f->result = byi_add_tuple(m, f, (byi_id[]){z, y}, 2, NULL);
    BYI_PUSH(&f->result_names, "out");
    f->attr.global_symbol = "sym";
    before = f->nodes.at[z].type;
    g = rebuild(index, map);
    assert_ptr_equal(func(index), f);
    byi_func_replace(m, index, g);
    assert_ptr_equal(func(index), g);
    assert_string_equal(g->name, "main");
    assert_string_equal(g->attr.global_symbol, "sym");
    assert_string_equal(g->result_names.at[0], "out");
    assert_string_equal(g->param_names.at[1], "y");
    assert_int_equal(g->nodes.at[map[r]].sources->n, 1);
    assert_int_equal(g->nodes.at[map[r]].backend, 1);
    assert_int_equal(g->nodes.at[map[r]].region, 5);
    assert_int_equal(map[y], 1);
    /* the size that depends on data keeps its name */
    assert_ptr_equal(g->nodes.at[map[z]].type, before);
    assert_int_equal(byi_func_find(m, "main"), index);
    assert_int_equal(byi_func_type(m, index)->n_fields, 2);
}

static void test_copy_infers_what_changed(void **state)
{
    uint32_t index = byi_func_new(m, "main");
    struct byi_func *f = func(index), *g = NULL;
    byi_id x = byi_add_param(m, f, "x", f32(2, 3)), map[4], s, r, z;
    byi_id shape =
        byi_add_param(m, f, "s", type_of(BYOC_I64, 1, (int64_t[]){1}));

    (void)state;
    r = add_op(f, BYI_OP_RESHAPE, x, shape);
    assert_true(BYI_IS_SYMBOL(f->nodes.at[r].type->dims[0]));
    z = add_op(f, BYI_OP_NONZERO, x, BYI_NO_ID);
    g = byi_func_like(m, f, map);
    s = add_ints(g, 1, (int64_t[]){6});
    map[shape] = s;
    assert_int_equal(byi_add_copy(m, g, f, r, map, &map[r], &err), BYOC_OK);
    assert_int_equal(g->nodes.at[map[r]].type->dims[0], 6);
    /* into another function: a new size */
    g = func(byi_func_new(m, "other"));
    map[x] = byi_add_param(m, g, "x", f32(2, 3));
    assert_int_equal(byi_add_copy(m, g, f, z, map, &map[z], &err), BYOC_OK);
    assert_false(byi_type_equal(g->nodes.at[map[z]].type, f->nodes.at[z].type));
}

static void test_copies_of_all_kinds(void **state)
{
    uint32_t g = relu_func("g", f32(2, 3)), index = byi_func_new(m, "main");
    struct byi_func *f = func(index), *h = NULL;
    byi_id x = byi_add_param(m, f, "x", f32(2, 3)), map[16], id, callee, t;
    uint32_t nested = relu_func(NULL, f32(2, 3));

    (void)state;
    func(nested)->n_captures = 1;
    callee = byi_add_global(m, f, g);
    assert_int_equal(byi_add_apply(m, f, callee, &x, 1, NULL, &id, &err), 0);
    callee = byi_add_fn(m, f, nested, &id, 1, NULL);
    assert_int_equal(byi_add_apply(m, f, callee, NULL, 0, NULL, &id, &err), 0);
    t = byi_add_tuple(m, f, (byi_id[]){id, x}, 2, NULL);
    assert_int_equal(byi_add_get(m, f, t, 0, NULL, &id, &err), 0);
    f->result = id;
    h = rebuild(index, map);
    assert_int_equal(h->nodes.n, f->nodes.n);
    for (byi_id i = 0; i < f->nodes.n; i++) {
        const struct byi_node *a = &f->nodes.at[i], *b = &h->nodes.at[i];
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->index, b->index);
        assert_int_equal(a->n_args, b->n_args);
        for (uint32_t k = 0; k < a->n_args; k++)
            assert_int_equal(a->args[k], b->args[k]);
        assert_true(byi_type_equal(a->type, b->type));
    }
    byi_func_replace(m, index, h);
}

static void test_replace_renames(void **state)
{
    uint32_t index = relu_func("old", f32(1, 1));
    byi_id map[2];
    struct byi_func *f = rebuild(index, map);

    (void)state;
    f->name = "new";
    byi_func_replace(m, index, f);
    assert_int_equal(byi_func_find(m, "new"), index);
    assert_int_equal(byi_func_find(m, "old"), UINT32_MAX);
}

static void test_uses(void **state)
{
    struct byi_func *f = func(byi_func_new(m, "main"));
    byi_id x = byi_add_param(m, f, "x", f32(2, 3));
    byi_id a = add_op(f, BYI_OP_ADD, x, x);
    byi_id b = add_op(f, BYI_OP_ADD, a, x);
    struct byi_uses uses = byi_uses_of(f, m->arena);

    (void)state;
    assert_int_equal(uses.first[x], 0);
    assert_int_equal(uses.first[a], 3);
    assert_int_equal(uses.at[0], a);
    assert_int_equal(uses.at[1], a);
    assert_int_equal(uses.at[2], b);
    assert_int_equal(uses.at[uses.first[a]], b);
    assert_int_equal(uses.first[b], 4);
    assert_int_equal(uses.first[b + 1], 4);
    f = func(byi_func_new(m, "empty"));
    assert_int_equal(byi_uses_of(f, m->arena).first[0], 0);
}

/* Many nodes, constants, sources of one name: tables grow, nothing is lost. */
static void test_tables_grow(void **state)
{
    enum { N = 50000 };
    struct byi_func *f = func(byi_func_new(m, "main"));
    const struct byi_type *scalar = type_of(BYOC_I32, 0, NULL);
    byi_id x = byi_add_param(m, f, "x", scalar);

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t value = i / 2;
        uint32_t c = byi_const_add(m, scalar, &value, false);
        assert_int_equal(c, i / 2);
        x = add_op(f, BYI_OP_ADD, x, byi_add_const(m, f, c, NULL));
        assert_int_equal(byi_source_new(m, "a", "Add"), i);
        byi_symbol_new(m);
    }
    assert_int_equal(f->nodes.n, 2 * N + 1);
    assert_int_equal(m->consts.n, N / 2);
    assert_string_equal(m->sources.at[N - 1].name, "a#49999");
    assert_int_equal(byi_uses_of(f, m->arena).first[2 * N + 1], 2 * N);
}

/* Constants that are made from declared sizes have a budget: a fixed number of
 * bytes, and more for a model whose own constants are large. */
static void test_pass_constants_have_a_budget(void **state)
{
    static char model_data[16 << 20];
    struct byi_module *mod = byi_module_new();
    const int64_t too_large = (int64_t)(BYI_CONST_BUDGET_FREE / 4) + 1,
                  model_dim = 4 << 20;
    const struct byi_type *type =
        byi_type_tensor(mod->arena, BYOC_F32, 1, &too_large);
    struct byi_tensor t;
    (void)state;

    assert_false(byi_const_alloc(mod, type, &t));
    byi_const_add_model(mod,
                        byi_type_tensor(mod->arena, BYOC_F32, 1, &model_dim),
                        model_data, true);
    assert_true(byi_const_alloc(mod, type, &t));
    assert_false(byi_const_alloc(mod, type, &t));
    assert_true(byi_consts_can_grow(mod, 1 << 20));
    assert_false(byi_consts_can_grow(mod, BYI_CONST_BUDGET_FREE));
    assert_false(byi_consts_can_grow(mod, UINT64_MAX));
    assert_true(byi_consts_can_grow(mod, byi_consts_left(mod)));
    assert_false(byi_consts_can_grow(mod, byi_consts_left(mod) + 1));
    assert_int_equal(byi_const_refuse(mod, BYI_OP_NN_DENSE, "scaled", &err),
                     BYOC_ELIMIT);
    assert_non_null(strstr(err.text, "nn.dense: found a scaled constant beyond "
                                     "the limit on constants"));
    byi_module_free(&mod);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_symbols),
        TEST(test_backends),
        TEST(test_functions_by_name),
        TEST(test_source_names_are_unique),
        TEST(test_sources_join),
        TEST(test_constants_are_shared_by_content),
        TEST(test_string_empty_and_scalar_constants),
        TEST(test_types_of_operators),
        TEST(test_many_operands),
        TEST(test_operators_refuse_operands),
        TEST(test_tuples),
        TEST(test_apply),
        TEST(test_apply_binds_symbols_once),
        TEST(test_recursion_by_declared_type),
        TEST(test_if),
        TEST(test_rebuild_keeps_everything),
        TEST(test_copy_infers_what_changed),
        TEST(test_copies_of_all_kinds),
        TEST(test_replace_renames),
        TEST(test_uses),
        TEST(test_tables_grow),
        TEST(test_pass_constants_have_a_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
