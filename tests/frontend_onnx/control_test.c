/* SPDX-License-Identifier: Apache-2.0 */
/* control_test.c: tests importing graphs within nodes: If, Loop, Scan,
 * FlexAttention. */
#include "models.h"

#include "interp/interp.h"
#include "tests/compare.h"

/* A graph of one node; its outputs are the node's. */
static Onnx__GraphProto *one_node(struct build *b, const char *op,
                                  const char *in, const char *out)
{
    Onnx__GraphProto *outer = enter(b);
    Onnx__NodeProto *n = node(b, op, in, out);

    for (size_t i = 0; i < n->n_output; i++)
        output(b, n->output[i]);
    return leave(b, outer);
}

enum {
    FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL
};

/* --- If ------------------------------------------------------------------- */

static void branches_capture(void **state)
{
    const int64_t four[] = {4};
    struct build b = begin(13);
    (void)state;

    typed_input(&b, "c", BOOL, "1");
    input(&b, "x", "4");
    floats(&b, "w", 1, four);
    node(&b, "Exp", "x", "e");
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    attr_graph(&b, n, "then_branch", one_node(&b, "Add", "e w", "t"));
    attr_graph(&b, n, "else_branch", one_node(&b, "Sub", "x w", "s"));
    output(&b, "y");
    EXPECT(&b, "%0 = exp(%x)", "%1 = reshape(%c, ",
           "fn () -> Tensor[(4), float32] {", "add(%0, [0.0, 1.0, 2.0, 3.0])",
           "#[\"Add_0\": \"Add\"]", "fn ()",
           "subtract(%x, [0.0, 1.0, 2.0, 3.0])", "if (%1)");
}

/* If the condition is known, the chosen branch replaces the node; the module
 * still lists the names of the other branch's nodes. */
static void known_condition(void **state)
{
    const int64_t no_dims[] = {0};
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    struct byi_text text = {0};
    bool found = false;
    (void)state;

    Onnx__TensorProto *c = tensor(&b, "c", BOOL, 0, no_dims);
    raw(&b, c, "\1", 1);
    weight(&b, c);
    input(&b, "x", "4 5");
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    attr_graph(&b, n, "then_branch", one_node(&b, "Exp", "x", "t"));
    attr_graph(&b, n, "else_branch", one_node(&b, "Squeeze", "x", "s"));
    output(&b, "y");
    save(&b);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_OK);
    byi_print_module(m, &text, NULL);
    assert_null(strstr(text.at, "if ("));
    assert_non_null(strstr(text.at, "exp(%x)"));
    assert_null(strstr(text.at, "squeeze("));
    for (uint32_t i = 0; i < m->sources.n; i++)
        found = found || strcmp(m->sources.at[i].op, "Squeeze") == 0;
    assert_true(found);
    byi_text_free(&text);
    byi_module_free(&m);
    end(&b);
}

static void nested_branches(void **state)
{
    struct build b = begin(13);
    (void)state;

    typed_input(&b, "c", BOOL, "");
    typed_input(&b, "d", BOOL, "");
    input(&b, "x", "4");
    Onnx__GraphProto *outer = enter(&b);
    node(&b, "Exp", "x", "e");
    Onnx__NodeProto *inner = node(&b, "If", "d", "i");
    attr_graph(&b, inner, "then_branch", one_node(&b, "Add", "e x", "p"));
    attr_graph(&b, inner, "else_branch", one_node(&b, "Mul", "e e", "q"));
    output(&b, "i");
    Onnx__GraphProto *then = leave(&b, outer);
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    attr_graph(&b, n, "then_branch", then);
    attr_graph(&b, n, "else_branch", one_node(&b, "Neg", "x", "s"));
    output(&b, "y");
    EXPECT(&b, "= exp(%x)", "add(", "multiply(", "if (%d)", "negative(%x)",
           "if (%c)");
}

static void several_outputs(void **state)
{
    struct build b = begin(13);
    (void)state;

    typed_input(&b, "c", BOOL, "");
    input(&b, "x", "4");
    Onnx__NodeProto *n = node(&b, "If", "c", "l r");
    attr_graph(&b, n, "then_branch", one_node(&b, "Split", "x", "a b"));
    Onnx__GraphProto *outer = enter(&b);
    node(&b, "Split", "x", "a2 b2");
    output(&b, "b2");
    output(&b, "a2");
    attr_graph(&b, n, "else_branch", leave(&b, outer));
    output(&b, "r");
    output(&b, "l");
    EXPECT(&b, "if (%c)");
}

static struct build with_branches(const char *then_in, const char *then_op,
                                  const char *else_op, const char *out)
{
    struct build b = begin(13);

    typed_input(&b, "c", BOOL, "");
    input(&b, "x", "4 1");
    Onnx__NodeProto *n = node(&b, "If", "c", out);
    attr_graph(&b, n, "then_branch", one_node(&b, then_op, then_in, "t"));
    if (else_op)
        attr_graph(&b, n, "else_branch", one_node(&b, else_op, "x", "s"));
    output(&b, "y");
    return b;
}

static void branches_that_do_not_fit(void **state)
{
    (void)state;
    struct build b = with_branches("x", "Squeeze", "Exp", "y");
    refuse(&b, BYOC_ETYPE,
           "node If_0 (If), whose condition is not constant (try to fix "
           "dims with --dim or --shape, or an input with --const): if: the "
           "branches give");
    b = with_branches("x", "Exp", NULL, "y");
    refuse(&b, BYOC_EPARSE, "found no graph 'else_branch', expected one");
    b = with_branches("x", "Exp", "Neg", "y z");
    refuse(&b, BYOC_EPARSE, "its branches have 1 and 1 outputs, expected 2");
    b = with_branches("nowhere", "Exp", "Neg", "y");
    refuse(&b, BYOC_EPARSE,
           "a graph of node If_0 (If): value 'nowhere' is not defined");
    b = with_branches("s", "Exp", "Neg", "y"); /* the other branch's value */
    refuse(&b, BYOC_EPARSE, "value 's' is not defined");
    b = with_branches("x", "NoSuchOp", "Neg", "y");
    refuse(&b, BYOC_EUNSUPPORTED, "operator NoSuchOp");
    b = begin(13);
    typed_input(&b, "c", FLOAT, "");
    input(&b, "x", "4");
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    attr_graph(&b, n, "then_branch", one_node(&b, "Exp", "x", "t"));
    attr_graph(&b, n, "else_branch", one_node(&b, "Neg", "x", "s"));
    output(&b, "y");
    refuse(&b, BYOC_ETYPE, "the condition is float32");
}

/* Ranks that differ by leading axes of size 1: the value has the higher rank.
 */
static void branches_of_two_ranks(void **state)
{
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        struct build b = begin(13);
        typed_input(&b, "c", BOOL, "");
        input(&b, "x", "1 4");
        Onnx__NodeProto *n = node(&b, "If", "c", "y");
        attr_graph(&b, n, swap ? "else_branch" : "then_branch",
                   one_node(&b, "Squeeze", "x", "t"));
        attr_graph(&b, n, swap ? "then_branch" : "else_branch",
                   one_node(&b, "Exp", "x", "s"));
        output(&b, "y");
        EXPECT(&b, "-> Tensor[(1, 4), float32]", "expand_dims(%", "if (%c)");
    }
}

/* A branch captures the number N, not the tensor whose dim it is: Range becomes
 * arange, not arange_like. */
static void range_of_dim_in_branch(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "2 N");
    typed_input(&b, "c", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, "");
    ints(&b, "zero", 1, (const int64_t[]){0});
    ints(&b, "one", 1, (const int64_t[]){1});
    node(&b, "Shape", "x", "s");
    node(&b, "Gather", "s one", "n");
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    attr_graph(&b, n, "then_branch", one_node(&b, "Range", "zero n one", "t"));
    attr_graph(&b, n, "else_branch", one_node(&b, "Range", "zero n one", "e"));
    output(&b, "y");
    EXPECT(&b, "arange([0], ", "arange([0], ");
}

/* if (the size of `tested`'s last axis == `size`) squeeze(x, [axis]) else x, as
 * PyTorch exports squeeze of a size that varies. */
static struct build with_squeeze(const char *tested, int64_t size, int64_t axis)
{
    const int64_t last[] = {-1};
    struct build b = begin(13);

    input(&b, "x", "4 N");
    input(&b, "w", "4 M");
    ints(&b, "last", 1, last);
    ints(&b, "size", 1, &size);
    ints(&b, "axis", 1, &axis);
    node(&b, "Shape", tested, "s");
    node(&b, "Gather", "s last", "d");
    node(&b, "Equal", "d size", "c");
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    attr_graph(&b, n, "then_branch", one_node(&b, "Squeeze", "x axis", "t"));
    attr_graph(&b, n, "else_branch", one_node(&b, "Identity", "x", "s"));
    output(&b, "y");
    return b;
}

static void squeeze_where_one(void **state)
{
    (void)state;
    struct build b = with_squeeze("x", 1, -1);
    EXPECT(&b, "-> Tensor[(4), float32]", "squeeze(%x, axis=[1])");
    b = with_squeeze("x", 1, 1);
    EXPECT(&b, "squeeze(%x, axis=[1])");
    b = with_squeeze("x", 2, -1); /* another size */
    refuse(&b, BYOC_ETYPE, "the branches give");
    b = with_squeeze("w", 1, -1); /* the size of another value */
    refuse(&b, BYOC_ETYPE, "the branches give");
}

/* --- Loop, Scan ----------------------------------------------------------- */

/* Import and run, and compare output `i` with the expected one. The model has
 * no inputs. Does not end `b`. */
static void expect_floats(struct build *b, uint32_t i, uint32_t rank,
                          const int64_t *dims, const float *expected)
{
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor found[4], wanted = {.data = (void *)(uintptr_t)expected,
                                          .dtype = BYOC_F32,
                                          .rank = rank};
    uint32_t n = 0;

    memcpy(wanted.dims, dims, rank * sizeof *dims);
    save(b);
    if (byi_onnx_import(b->path, NULL, &m, &err) != BYOC_OK ||
        byi_verify(m, &err) != BYOC_OK ||
        byi_interp_run(m, byi_module_entry(m), NULL, 0, arena, found, 4, &n,
                       &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_true(i < n);
    if (compare_tensors(&found[i], &wanted, 0, 0, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byi_module_free(&m);
    byi_arena_free(&arena);
}

static void bool_weight(struct build *b, const char *name, bool v)
{
    Onnx__TensorProto *t = tensor(b, name, BOOL, 0, (int64_t[]){0});

    raw(b, t, &v, 1);
    weight(b, t);
}

static void int_weight(struct build *b, const char *name, int64_t v)
{
    Onnx__TensorProto *t = tensor(b, name, INT64, 0, (int64_t[]){0});

    raw(b, t, &v, sizeof v);
    weight(b, t);
}

/* A Loop with the inputs `in`, whose state doubles in each iteration: x, xx,
 * xxxx. The row of an iteration is its number plus w, a weight of the outer
 * graph, which is 0. */
static struct build doubling(const char *in)
{
    struct build b = begin(13);

    int_weight(&b, "trips", 3);
    bool_weight(&b, "go", true);
    floats(&b, "x", 1, (int64_t[]){2});
    floats(&b, "w", 1, (int64_t[]){1});
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "i", INT64, "");
    typed_input(&b, "c", BOOL, "");
    input(&b, "s", "2");
    attr_int(&b, node(&b, "Concat", "s s", "s2"), "axis", 0);
    node(&b, "Identity", "c", "c2");
    attr_int(&b, node(&b, "Cast", "i", "f"), "to", FLOAT);
    node(&b, "Add", "f w", "row");
    output(&b, "c2");
    output(&b, "s2");
    output(&b, "row");
    Onnx__GraphProto *body = leave(&b, outer);
    attr_graph(&b, node(&b, "Loop", in, "last rows"), "body", body);
    output(&b, "last");
    output(&b, "rows");
    return b;
}

static void states_grow(void **state)
{
    static const float last[16] = {0, 1, 0, 1, 0, 1, 0, 1,
                                   0, 1, 0, 1, 0, 1, 0, 1};
    static const float rows[3] = {0, 1, 2};
    static const char *const in[] = {"trips go x", "trips - x"};
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(in); i++) {
        struct build b = doubling(in[i]);
        expect_floats(&b, 0, 1, (int64_t[]){16}, last);
        expect_floats(&b, 1, 2, (int64_t[]){3, 1}, rows);
        end(&b);
    }
}

/* The body declares the iteration number and the condition as vectors of one
 * element, as exporters do that slice with them. */
static void counts_in_vectors(void **state)
{
    const float expected[] = {0, 0, 1, 2};
    struct build b = begin(13);
    (void)state;

    int_weight(&b, "trips", 3);
    bool_weight(&b, "go", true);
    floats(&b, "x", 1, (int64_t[]){1});
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "i", INT64, "1");
    typed_input(&b, "c", BOOL, "1");
    input(&b, "s", "1");
    attr_int(&b, node(&b, "Cast", "i", "f"), "to", FLOAT);
    attr_int(&b, node(&b, "Concat", "s f", "s2"), "axis", 0);
    node(&b, "Identity", "c", "c2");
    output(&b, "c2");
    output(&b, "s2");
    Onnx__GraphProto *body = leave(&b, outer);
    attr_graph(&b, node(&b, "Loop", "trips go x", "last"), "body", body);
    output(&b, "last");
    expect_floats(&b, 0, 1, (int64_t[]){4}, expected);
    end(&b);
}

/* The condition ends the loop: 1, 2, 4, 8, until the state is not below 6. */
static void condition_ends(void **state)
{
    static const float last[1] = {8}, one = 1, six = 6;
    struct build b = begin(13);
    (void)state;

    bool_weight(&b, "go", true);
    Onnx__TensorProto *t = tensor(&b, "x", FLOAT, 1, (int64_t[]){1});
    raw(&b, t, &one, sizeof one);
    weight(&b, t);
    t = tensor(&b, "end", FLOAT, 1, (int64_t[]){1});
    raw(&b, t, &six, sizeof six);
    weight(&b, t);
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "i", INT64, "");
    typed_input(&b, "c", BOOL, "");
    input(&b, "s", "1");
    node(&b, "Add", "s s", "s2");
    node(&b, "Less", "s2 end", "c2"); /* a vector of one element */
    output(&b, "c2");
    output(&b, "s2");
    Onnx__GraphProto *body = leave(&b, outer);
    attr_graph(&b, node(&b, "Loop", "- go x", "last"), "body", body);
    output(&b, "last");
    expect_floats(&b, 0, 1, (int64_t[]){1}, last);
    end(&b);
}

/* Sums the columns of x from the last to the first; rows are put in front. */
static void scan_backward(void **state)
{
    static const float last[2] = {3, 12}; /* of 0 1 2 / 3 4 5 */
    static const float rows[6] = {3, 3, 2, 12, 9, 5};
    struct build b = begin(13);
    (void)state;

    floats(&b, "x", 2, (int64_t[]){2, 3});
    node(&b, "ReduceMin", "x", "m");
    attr_ints(&b, b.graph->node[0], "axes", 1, (int64_t[]){1});
    attr_int(&b, b.graph->node[0], "keepdims", 0);
    node(&b, "Sub", "m m", "zero");
    Onnx__GraphProto *outer = enter(&b);
    input(&b, "s", "2");
    input(&b, "column", "2");
    node(&b, "Add", "s column", "s2");
    node(&b, "Identity", "s2", "row");
    output(&b, "s2");
    output(&b, "row");
    Onnx__GraphProto *body = leave(&b, outer);
    Onnx__NodeProto *n = node(&b, "Scan", "zero x", "last rows");
    attr_graph(&b, n, "body", body);
    attr_int(&b, n, "num_scan_inputs", 1);
    attr_ints(&b, n, "scan_input_axes", 1, (int64_t[]){-1});
    attr_ints(&b, n, "scan_input_directions", 1, (int64_t[]){1});
    attr_ints(&b, n, "scan_output_axes", 1, (int64_t[]){-1});
    attr_ints(&b, n, "scan_output_directions", 1, (int64_t[]){1});
    output(&b, "last");
    output(&b, "rows");
    expect_floats(&b, 0, 1, (int64_t[]){2}, last);
    expect_floats(&b, 1, 2, (int64_t[]){2, 3}, rows);
    end(&b);
}

/* Scan inputs whose numbers of slices have different symbols: a run fails if
 * the numbers differ, in either direction. */
static void scan_of_different_lengths(void **state)
{
    static const int64_t lengths[][2] = {{3, 3}, {3, 2}, {2, 3}};
    static float zeros[6];
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 2");
    input(&b, "y", "2 M");
    Onnx__GraphProto *outer = enter(&b);
    input(&b, "row", "2");
    input(&b, "column", "2");
    node(&b, "Add", "row column", "sum");
    output(&b, "sum");
    Onnx__GraphProto *body = leave(&b, outer);
    Onnx__NodeProto *n = node(&b, "Scan", "x y", "sums");
    attr_graph(&b, n, "body", body);
    attr_int(&b, n, "num_scan_inputs", 2);
    attr_ints(&b, n, "scan_input_axes", 2, (int64_t[]){0, 1});
    output(&b, "sums");
    save(&b);
    for (uint32_t i = 0; i < BYI_COUNT(lengths); i++) {
        struct byi_module *m = NULL;
        struct byoc_error err = {0};
        struct byi_arena *arena = byi_arena_new();
        const struct byi_tensor inputs[2] = {{.data = zeros,
                                              .dtype = BYOC_F32,
                                              .rank = 2,
                                              .dims = {lengths[i][0], 2}},
                                             {.data = zeros,
                                              .dtype = BYOC_F32,
                                              .rank = 2,
                                              .dims = {2, lengths[i][1]}}};
        struct byi_tensor found[1];
        uint32_t n_found = 0;
        assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_OK);
        assert_int_equal(byi_interp_run(m, byi_module_entry(m), inputs, 2,
                                        arena, found, 1, &n_found,
                                        &err) == BYOC_OK,
                         lengths[i][0] == lengths[i][1]);
        if (lengths[i][0] != lengths[i][1])
            assert_non_null(strstr(err.text, "does not fit shape"));
        byi_module_free(&m);
        byi_arena_free(&arena);
    }
    end(&b);
}

/* A Scan of opset 8: sums of the rows of each entry of the batch. */
static struct build batched_scan(const char *inputs, const char *dims)
{
    struct build b = begin(8);

    floats(&b, "start", 2, (int64_t[]){2, 2});
    floats(&b, "given", 3, (int64_t[]){2, 3, 2});
    ints(&b, "lengths", 2, (const int64_t[]){3, 2});
    input(&b, "x", dims);
    Onnx__GraphProto *outer = enter(&b);
    input(&b, "s", "2");
    input(&b, "row", "2");
    node(&b, "Add", "s row", "s2");
    node(&b, "Identity", "s2", "out");
    output(&b, "s2");
    output(&b, "out");
    Onnx__GraphProto *body = leave(&b, outer);
    Onnx__NodeProto *n = node(&b, "Scan", inputs, "last rows");
    attr_graph(&b, n, "body", body);
    attr_int(&b, n, "num_scan_inputs", 1);
    output(&b, "last");
    output(&b, "rows");
    return b;
}

static void scan_of_a_batch(void **state)
{
    static const float last[4] = {6, 10, 26, 30};
    static const float rows[12] = {0, 2, 2, 5, 6, 10, 8, 10, 16, 19, 26, 30};
    /* after 3 and 2 iterations */
    static const float cut_last[4] = {6, 10, 16, 19};
    static const float cut_rows[12] = {0, 2, 2, 5, 6, 10, 8, 10, 16, 19, 0, 0};
    struct build b = batched_scan("- start given", "2 3 2");
    (void)state;

    b.graph->n_input = 0;
    expect_floats(&b, 0, 2, (int64_t[]){2, 2}, last);
    expect_floats(&b, 1, 3, (int64_t[]){2, 3, 2}, rows);
    end(&b);
    b = batched_scan("lengths start given", "2 3 2");
    b.graph->n_input = 0;
    expect_floats(&b, 0, 2, (int64_t[]){2, 2}, cut_last);
    expect_floats(&b, 1, 3, (int64_t[]){2, 3, 2}, cut_rows);
    end(&b);
    b = batched_scan("- x x", "N 3 2");
    refuse(&b, BYOC_EUNSUPPORTED, "found a symbolic batch, expected 1 to 64");
    b = batched_scan("- start", "2 3 2");
    refuse(&b, BYOC_EPARSE,
           "its body has 2 inputs, expected 1, one for each input of the node");
    b = batched_scan("- start x", "2 3 2");
    b.graph->node[0]->attribute[1]->i = 3;
    refuse(&b, BYOC_EPARSE, "num_scan_inputs is 3, expected 1 to 2");
}

static void loops_that_do_not_fit(void **state)
{
    struct build b = doubling("- - x");
    (void)state;

    refuse(&b, BYOC_EUNSUPPORTED, "never ends");
    b = doubling("trips go x x");
    refuse(&b, BYOC_EPARSE, "its body has 3 inputs, expected 4");
    b = doubling("trips go -");
    refuse(&b, BYOC_EPARSE, "state 0 has no initial value");
    b = doubling("trips x x");
    refuse(&b, BYOC_ETYPE, "reshape: x of shape (2,) does not fit shape ()");
}

/* Rows of unknown sizes are collected in a sequence, and stacked at the end. */
static void rows_of_any_size(void **state)
{
    struct build b = begin(13);
    (void)state;

    int_weight(&b, "trips", 3);
    floats(&b, "x", 1, (int64_t[]){2});
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "i", INT64, "");
    typed_input(&b, "c", BOOL, "");
    input(&b, "s", "2");
    attr_int(&b, node(&b, "Concat", "s s", "s2"), "axis", 0);
    node(&b, "Identity", "c", "c2");
    node(&b, "Exp", "s2", "row");
    output(&b, "c2");
    output(&b, "s2");
    output(&b, "row");
    Onnx__GraphProto *body = leave(&b, outer);
    attr_graph(&b, node(&b, "Loop", "trips - x", "last rows"), "body", body);
    output(&b, "rows");
    EXPECT(&b, "sequence.insert(", "sequence.concatenate(%");
}

/* --- inputs that are left out ------------------------------------------- */

/* SequenceMap(s, x) whose body computes relu(e) and, if `reads`, e + g; the
 * body's input g is the node's second operand. */
static struct build map_of(const char *operands, bool reads)
{
    struct build b = begin(17);

    input(&b, "x", "4");
    node(&b, "SequenceConstruct", "x x", "s");
    Onnx__NodeProto *n = node(&b, "SequenceMap", operands, "t");
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "e", FLOAT, "4");
    typed_input(&b, "g", FLOAT, "4");
    node(&b, reads ? "Add" : "Relu", reads ? "e g" : "e", "f");
    output(&b, "f");
    attr_graph(&b, n, "body", leave(&b, outer));
    node(&b, "ConcatFromSequence", "t", "y");
    output(&b, "y");
    return b;
}

static void map_without_operand(void **state)
{
    (void)state;
    struct build b = map_of("s x", true);
    EXPECT(&b, "add(");
    b = map_of("s -", false);
    EXPECT(&b, "nn.relu(");
    b = map_of("s -", true);
    refuse(&b, BYOC_EPARSE, "input 1 is omitted by the call");
}

/* The default of a body's input, an initializer by its name, stands in for the
 * operand that is left out. */
static void map_with_default(void **state)
{
    const int64_t four[] = {4};
    struct build b = begin(17);
    (void)state;

    input(&b, "x", "4");
    node(&b, "SequenceConstruct", "x x", "s");
    Onnx__NodeProto *n = node(&b, "SequenceMap", "s -", "t");
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "e", FLOAT, "4");
    typed_input(&b, "g", FLOAT, "4");
    floats(&b, "g", 1, four);
    node(&b, "Add", "e g", "f");
    output(&b, "f");
    attr_graph(&b, n, "body", leave(&b, outer));
    node(&b, "ConcatFromSequence", "t", "y");
    output(&b, "y");
    EXPECT(&b, "[0.0, 1.0, 2.0, 3.0]");
}

/* A body with more outputs than a function may have parameters. */
static void map_of_many_outputs(void **state)
{
    struct build b = begin(17);
    char name[16];
    (void)state;

    input(&b, "x", "4");
    node(&b, "SequenceConstruct", "x x", "s");
    Onnx__NodeProto *n = node(&b, "SequenceMap", "s", "t");
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "e", FLOAT, "4");
    for (int i = 0; i < 4200; i++) {
        snprintf(name, sizeof name, "f%d", i);
        node(&b, "Relu", "e", name);
        output(&b, byi_arena_str(b.arena, name));
    }
    attr_graph(&b, n, "body", leave(&b, outer));
    node(&b, "ConcatFromSequence", "t", "y");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED,
           "found a body with 4203 inputs, states and "
           "outputs, expected at most 4096");
}

static void scan_without_state(void **state)
{
    struct build b = begin(16);
    (void)state;

    input(&b, "x", "3 4");
    Onnx__NodeProto *n = node(&b, "Scan", "- x", "y");
    attr_int(&b, n, "num_scan_inputs", 1);
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "a", FLOAT, "4");
    typed_input(&b, "r", FLOAT, "4");
    node(&b, "Add", "a r", "z");
    output(&b, "z");
    attr_graph(&b, n, "body", leave(&b, outer));
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "is omitted, expected a value");
}

/* --- FlexAttention -------------------------------------------------------- */

/* Queries of 4 heads, and the attribute score_mod: a graph of one node, `op`,
 * with input `in` and output `out`. */
static struct build with_flex(const char *dims, const char *op, const char *in,
                              const char *out)
{
    static char domain[] = "ai.onnx.preview";
    struct build b = begin(24);

    import_opset(&b, domain, 1);
    input(&b, "q", "N 4 S 8");
    input(&b, "k", dims);
    Onnx__NodeProto *n = node(&b, "FlexAttention", "q k k", "y");
    n->domain = domain;
    Onnx__GraphProto *outer = enter(&b);
    typed_input(&b, "x", FLOAT, "N 4 S T");
    Onnx__NodeProto *inner = node(&b, op, in, out);
    for (size_t i = 0; i < inner->n_output; i++)
        output(&b, inner->output[i]);
    attr_graph(&b, n, "score_mod", leave(&b, outer));
    output(&b, "y");
    return b;
}

static void flex_attention(void **state)
{
    (void)state;
    struct build b = with_flex("N 4 T 8", "Tanh", "x", "z");
    EXPECT(&b, "-> Tensor[(N, 4, S, 8), float32]", "nn.matmul(%q, %k, ",
           "= tanh(", "nn.softmax(", "FlexAttention");
    b = with_flex("N 2 T 8", "Tanh", "x", "z");
    EXPECT(&b, "= tanh(", "nn.softmax(");
}

static void bad_flex_attention(void **state)
{
    (void)state;
    struct build b = with_flex("N 3 T 8", "Tanh", "x", "z");
    refuse(&b, BYOC_ETYPE, "found 4 heads of queries, 3 of keys and 3 of ");
    b = with_flex("N T 8", "Tanh", "x", "z");
    refuse(&b, BYOC_ETYPE, "input 1 has rank 3, expected 4");
    b = with_flex("N 4 T 8", "TopK", "x x", "z w");
    refuse(&b, BYOC_EPARSE,
           "score_mod has 1 inputs and 2 outputs, expected 1 and 1");
    b = with_flex("N 4 T 8", "Shape", "x", "z");
    refuse(&b, BYOC_ETYPE,
           "score_mod gives int64 (4,), expected the type of its input, "
           "float32 (?, 4, ?, ?); change the graph");
    b = with_flex("N 4 T 8", "Tanh", "nowhere", "z");
    refuse(&b, BYOC_EPARSE, "value 'nowhere' is not defined");
    b = with_flex("N 4 T 8", "Tanh", "x", "z");
    attr_int(&b, b.graph->node[0], "softmax_precision", 7);
    refuse(&b, BYOC_EPARSE, "softmax_precision is 7, expected 1 (float32), ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_capture),
        cmocka_unit_test(known_condition),
        cmocka_unit_test(nested_branches),
        cmocka_unit_test(several_outputs),
        cmocka_unit_test(branches_that_do_not_fit),
        cmocka_unit_test(branches_of_two_ranks),
        cmocka_unit_test(map_of_many_outputs),
        cmocka_unit_test(range_of_dim_in_branch),
        cmocka_unit_test(squeeze_where_one),
        cmocka_unit_test(states_grow),
        cmocka_unit_test(counts_in_vectors),
        cmocka_unit_test(condition_ends),
        cmocka_unit_test(scan_backward),
        cmocka_unit_test(scan_of_different_lengths),
        cmocka_unit_test(scan_of_a_batch),
        cmocka_unit_test(loops_that_do_not_fit),
        cmocka_unit_test(map_without_operand),
        cmocka_unit_test(map_with_default),
        cmocka_unit_test(scan_without_state),
        cmocka_unit_test(rows_of_any_size),
        cmocka_unit_test(flex_attention),
        cmocka_unit_test(bad_flex_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
