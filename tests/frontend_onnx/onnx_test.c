/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_test.c: tests models built here and the modules that they import to;
 * then invalid models and their errors. onnx_files_test.c tests files and
 * tensors.
 */
#include "models.h"

/* --- valid models --------------------------------------------------------- */

static void conv_with_bias(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "1 3 8 8");
    floats(&b, "w", 4, (const int64_t[]){4, 3, 3, 3});
    floats(&b, "b", 1, (const int64_t[]){4});
    Onnx__NodeProto *conv = node(&b, "Conv", "x w b", "c");
    attr_string(&b, conv, "auto_pad", "SAME_UPPER");
    attr_ints(&b, conv, "strides", 2, (const int64_t[]){2, 2});
    node(&b, "Relu", "c", "y");
    output(&b, "y");
    EXPECT(&b, "%x: Tensor[(1, 3, 8, 8), float32]", "Outputs=[\"y\"]",
           "nn.conv2d(%x, const[", "strides=[2, 2], padding=[0, 0, 1, 1])",
           "#[\"Conv_0\": \"Conv\"]",
           "add(%0, Tensor[(4, 1, 1), float32] {0.0, 1.0, 2.0, 3.0})",
           "nn.relu(%1)");
}

/* Padding that depends on symbolic sizes is computed in the run. */
static void auto_pad_of_symbolic_sizes(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "1 3 H 8");
    floats(&b, "w", 4, (const int64_t[]){4, 3, 3, 3});
    Onnx__NodeProto *nodes[] = {node(&b, "Conv", "x w", "c"),
                                node(&b, "MaxPool", "c", "m"),
                                node(&b, "AveragePool", "m", "y")};
    for (uint32_t i = 0; i < BYI_COUNT(nodes); i++) {
        attr_string(&b, nodes[i], "auto_pad", "SAME_UPPER");
        attr_ints(&b, nodes[i], "strides", 2, (const int64_t[]){2, 2});
        attr_ints(&b, nodes[i], "kernel_shape", 2, (const int64_t[]){3, 3});
    }
    output(&b, "y");
    EXPECT(&b, "shape_of(%x, start=2)", "concatenate([0, 0], ", "nn.pad(%x, ",
           "nn.conv2d(%8, const[", "strides=[2, 2])", "-inf)", "nn.max_pool2d(",
           "nn.avg_pool2d(", "full(", "nn.avg_pool2d(", "divide(");
}

static void gemm_is_dense(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 8");
    floats(&b, "w", 2, (const int64_t[]){4, 8});
    floats(&b, "b", 1, (const int64_t[]){4});
    Onnx__NodeProto *gemm = node(&b, "Gemm", "x w b", "y");
    attr_int(&b, gemm, "transB", 1);
    gemm->name = byi_arena_str(b.arena, "fc1");
    output(&b, "y");
    EXPECT(&b, "%x: Tensor[(N, 8), float32]", "-> Tensor[(N, 4), float32]",
           "nn.dense(%x, ", "#[\"fc1\": \"Gemm\"]", "add(");
}

static void gemm_scales(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "8 2");
    input(&b, "w", "8 4");
    Onnx__NodeProto *gemm = node(&b, "Gemm", "x w", "y");
    attr_int(&b, gemm, "transA", 1);
    attr_float(&b, gemm, "alpha", 0.1f);
    output(&b, "y");
    EXPECT(&b, "nn.matmul(%x, %w, transpose_a=true)", "multiply(%0, 0.1f)");
}

static void fixed_dims(void **state)
{
    const struct byi_onnx_params params = {
        .dims = (const char *const[]){"N=5", NULL},
        .shapes = (const char *const[]){"z=5x7", NULL},
    };
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 2");
    input(&b, "z", "M 2");
    node(&b, "Concat", "x z", "y");
    attr_int(&b, b.graph->node[0], "axis", -1);
    output(&b, "y");
    expect_with(
        &b, &params,
        (const char *const[]){"-> Tensor[(5, 9), float32]", "axis=1", NULL});
}

/* A dim keeps its name, whatever characters it has. */
static void dim_names(void **state)
{
    static const struct {
        const char *dims, *fixed, *expected;
    } rows[] = {
        {"a*b 2", NULL, "%x: Tensor[(\"a*b\", 2), float32]"},
        {"past+1=n 2", NULL, "%x: Tensor[(\"past+1=n\", 2), float32]"},
        {"a*b 2", "a*b=5", "-> Tensor[(5, 2), float32]"},
        {"past+1=n 2", "past+1=n=5", "-> Tensor[(5, 2), float32]"},
        {"? ?", NULL, "%x: Tensor[(?0, ?1), float32]"}, /* unknown, not equal */
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(rows); i++) {
        const struct byi_onnx_params params = {
            .dims = (const char *const[]){rows[i].fixed, NULL}};
        struct build b = begin(13);
        input(&b, "x", rows[i].dims);
        node(&b, "Relu", "x", "y");
        output(&b, "y");
        expect_with(&b, &params, (const char *const[]){rows[i].expected, NULL});
    }
}

/* A shape gives its sizes to the dims of the same names of all inputs. */
static void fixed_by_shape(void **state)
{
    static const struct {
        const char *dim, *shapes[2], *error;
    } rows[] = {
        {NULL, {"x=5x3", NULL}, NULL},
        {NULL, {"y=5x3", NULL}, NULL},
        {"N=5", {"y=5x3", NULL}, NULL},
        {"N=6",
         {"y=5x3", NULL},
         "shape of 'y': axis 0 is 5, expected 6, which another dim or shape "
         "gives 'N'"},
        {NULL,
         {"x=5x3", "y=5x4"},
         "shape of 'y': axis 1 is 4, expected 3, which another dim or shape "
         "gives 'M'"},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(rows); i++) {
        const struct byi_onnx_params params = {
            .dims = (const char *const[]){rows[i].dim, NULL},
            .shapes = (const char *const[]){rows[i].shapes[0],
                                            rows[i].shapes[1], NULL}};
        struct build b = begin(13);
        input(&b, "x", "N M");
        input(&b, "y", "N M");
        node(&b, "Add", "x y", "z");
        output(&b, "z");
        if (rows[i].error)
            refuse_with(&b, &params, BYOC_EINVAL, rows[i].error);
        else
            expect_with(
                &b, &params,
                (const char *const[]){"@main(%x: Tensor[(5, 3), float32], %y: "
                                      "Tensor[(5, 3), float32]",
                                      NULL});
    }
}

/* A weight that the file also lists as an input is not an input to the user, so
 * that a shape for it is refused, and gives no dim its size. */
static void shape_of_a_weight(void **state)
{
    const struct byi_onnx_params params = {
        .shapes = (const char *const[]){"w=5", NULL}};
    static float one = 1;
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N");
    input(&b, "w", "N");
    Onnx__TensorProto *w = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
                                  1, (int64_t[]){1});
    w->n_float_data = 1;
    w->float_data = &one;
    weight(&b, w);
    node(&b, "Add", "x w", "y");
    output(&b, "y");
    refuse_with(&b, &params, BYOC_EINVAL,
                "shape: found 'w=5', expected NAME=1x3x224x224, where NAME is "
                "an input of the model: 'x'");
}

static void fixed_value(void **state)
{
    static const char *const bad[][2] = {
        {"b=0.5x",
         "value of 'b': found '0.5x', expected a number that fits float32"},
        {"b=", "value of 'b': found ''"},
        {"c=1",
         "value: found 'c=1', expected NAME=NUMBER, where NAME is an input"},
        {"x=1", "value of 'x': found float32 elements with symbolic dims"},
        {"i=1.5",
         "value of 'i': found '1.5', expected a number that fits int64"},
    };
    (void)state;

    for (uint32_t i = 0; i <= BYI_COUNT(bad); i++) {
        const bool good = i == BYI_COUNT(bad);
        const struct byi_onnx_params params = {
            .values = (const char *const[]){good ? "b=1.5" : bad[i][0], NULL}};
        struct build b = begin(13);
        input(&b, "x", "N 2");
        input(&b, "b", "2");
        b.graph->input =
            list_add(b.arena, b.graph->input, &b.graph->n_input,
                     value(&b, "i", ONNX__TENSOR_PROTO__DATA_TYPE__INT64, ""));
        node(&b, "Add", "x b", "y");
        output(&b, "y");
        if (good)
            expect_with(
                &b, &params,
                (const char *const[]){"@main(%x: Tensor[(N, 2), float32], %i",
                                      "add(%x, [1.5, 1.5])", NULL});
        else
            refuse_with(&b, &params, BYOC_EINVAL, bad[i][1]);
    }
}

static void two_outputs(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "6 2");
    node(&b, "Split", "x", "l r");
    output(&b, "r");
    output(&b, "l");
    EXPECT(&b, "Outputs=[\"r\", \"l\"]", "split(%x, sizes=[3, 3])", "%0.0",
           "%0.1", "(%2, %1)");
}

/* Opset 18: the last part may be smaller, pads may name their axes. */
static void opset_18(void **state)
{
    struct build b = begin(18);
    (void)state;

    input(&b, "x", "7 2");
    ints(&b, "pads", 2, (const int64_t[]){1, 2});
    ints(&b, "last", 1, (const int64_t[]){-1});
    attr_int(&b, node(&b, "Split", "x", "l r"), "num_outputs", 2);
    node(&b, "Pad", "r pads - last", "p");
    node(&b, "ReduceMax", "p last", "y");
    output(&b, "y");
    EXPECT(&b, "split(%x, sizes=[4, 3])", "[0, 1, 0, 2]", "axis=[1]");
}

/* ReduceL1 over no axes is |x|, not x. */
static void no_axes_to_reduce(void **state)
{
    struct build b = begin(18);
    (void)state;

    input(&b, "x", "7 2");
    ints(&b, "none", 0, NULL);
    attr_int(&b, node(&b, "ReduceMax", "x none", "m"), "noop_with_empty_axes",
             1);
    attr_int(&b, node(&b, "ReduceL1", "m none", "y"), "noop_with_empty_axes",
             1);
    output(&b, "y");
    EXPECT(&b, "max(%x, noop_empty=true)", "reduce_l1(%0, noop_empty=true)");
}

static void equal_parts_of_symbolic_axis(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 2");
    node(&b, "Split", "x", "l r");
    output(&b, "l");
    EXPECT(&b, "shape_of(%x, end=1)", "divide(%0, 2)", "dyn.split(%x, %3)");
    b = begin(18);
    input(&b, "x", "N 2");
    attr_int(&b, node(&b, "Split", "x", "l r"), "num_outputs", 2);
    output(&b, "r");
    EXPECT(&b, "minimum(", "dyn.split(%x");
}

static void dropout_and_identity_vanish(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "6 2");
    node(&b, "Dropout", "x", "d mask");
    node(&b, "Identity", "d", "i");
    node(&b, "Tanh", "i", "y");
    output(&b, "y");
    EXPECT(&b, "tanh(%x)");
}

static void old_softmax_is_flat(void **state)
{
    struct build b = begin(11);
    (void)state;

    input(&b, "x", "2 3 4");
    node(&b, "Softmax", "x", "y");
    output(&b, "y");
    EXPECT(&b, "nn.flatten(%x)", "nn.softmax(%0, axis=1)", "[2, 3, 4]",
           "reshape(");
}

static void old_softmax_of_an_empty_tensor(void **state)
{
    struct build b = begin(11);
    (void)state;

    input(&b, "x", "1 0 7");
    node(&b, "Softmax", "x", "y");
    output(&b, "y");
    EXPECT(&b, "[1, 0, 7]", "reshape(", "allowzero=true");
}

static void old_softmax_before_axes_of_size_1(void **state)
{
    struct build b = begin(11);
    (void)state;

    input(&b, "x", "2 3 1 1");
    node(&b, "Softmax", "x", "y");
    output(&b, "y");
    EXPECT(&b, "nn.softmax(%x, axis=1)");
}

static void old_add_broadcasts_at_axis(void **state)
{
    struct build b = begin(6);
    (void)state;

    input(&b, "x", "2 3 4");
    input(&b, "b", "3");
    Onnx__NodeProto *add = node(&b, "Add", "x b", "y");
    attr_int(&b, add, "broadcast", 1);
    attr_int(&b, add, "axis", 1);
    output(&b, "y");
    EXPECT(&b, "expand_dims(%b, axis=[1])", "add(%x, %0)");
}

static void clip_bounds(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    input(&b, "high", "");
    floats(&b, "low", 0, NULL);
    node(&b, "Clip", "x low", "c");
    node(&b, "Clip", "c - high", "y");
    output(&b, "y");
    EXPECT(&b, "clip(%x, a_min=0", "minimum(%0, %high)");
}

/* Shape -> Gather gives a number although the batch varies. */
static void shapes_fold(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 3 4");
    ints(&b, "two", 1, (const int64_t[]){2});
    node(&b, "Shape", "x", "s");
    node(&b, "Gather", "s two", "n");
    node(&b, "Reshape", "c n", "y");
    floats(&b, "c", 2, (const int64_t[]){2, 2});
    output(&b, "y");
    EXPECT(&b, "[4]", "reshape(");
}

/* Reshape to [N, 3, 8] and Expand to [N, 1, 1], where Shape, and Gather or
 * Slice compute N: the results keep the dim N. */
static void batches_may_vary(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 6 4");
    ints(&b, "zero", 1, (const int64_t[]){0});
    ints(&b, "rest", 2, (const int64_t[]){3, 8});
    ints(&b, "one", 1, (const int64_t[]){1});
    node(&b, "Shape", "x", "s");
    node(&b, "Gather", "s zero", "n");
    Onnx__NodeProto *join = node(&b, "Concat", "n rest", "t");
    attr_int(&b, join, "axis", 0);
    node(&b, "Reshape", "x t", "r");
    node(&b, "Shape", "r", "s2");
    node(&b, "Slice", "s2 zero one", "n2");
    Onnx__NodeProto *again = node(&b, "Concat", "n2 one one", "t2");
    attr_int(&b, again, "axis", 0);
    node(&b, "Expand", "r t2", "y");
    output(&b, "y");
    EXPECT(&b, "-> Tensor[(N, 3, 8), float32]", "reshape(%x, [0, 3, 8])",
           "broadcast_to(", "[1, 1, 1]");
}

/* Range(0, N, 1) has the dim N, also after Gather. */
static void range_of_dim(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "2 N");
    ints(&b, "zero", 1, (const int64_t[]){0});
    ints(&b, "one", 1, (const int64_t[]){1});
    node(&b, "Shape", "x", "s");
    node(&b, "Gather", "s one", "n");
    node(&b, "Range", "zero n one", "y");
    node(&b, "Range", "one n one", "rest");
    output(&b, "y");
    output(&b, "rest");
    EXPECT(&b, "-> (Tensor[(N), int64], Tensor[(?", "arange_like(%x, axis=1)",
           "arange(%1, ");
}

/* An unnamed dim and a dim that the model calls "?0" need not be equal. */
static void names_like_new_symbols(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "? 2");
    input(&b, "y", "?0 2");
    node(&b, "Neg", "x", "a");
    node(&b, "Neg", "y", "b");
    output(&b, "a");
    output(&b, "b");
    EXPECT(&b, "%x: Tensor[(?1, 2), float32]", "%y: Tensor[(?0, 2), float32]");
}

/* The graph that PyTorch exports for x.expand(B, 2, 3, T, 16), with x (B, 2, 1,
 * T, 16): Where replaces each size that equals `absent` (PyTorch: -1) by 1. */
static struct build expanded(int64_t absent)
{
    struct build b = begin(16);

    input(&b, "x", "B 2 1 T 16");
    ints(&b, "zero", 1, (const int64_t[]){0});
    ints(&b, "three", 1, (const int64_t[]){3});
    ints(&b, "heads", 2, (const int64_t[]){2, 3});
    ints(&b, "width", 1, (const int64_t[]){16});
    ints(&b, "ones", 5, (const int64_t[]){1, 1, 1, 1, 1});
    ints(&b, "absent", 5,
         (const int64_t[]){absent, absent, absent, absent, absent});
    node(&b, "Shape", "x", "s");
    node(&b, "Gather", "s zero", "b");
    node(&b, "Gather", "s three", "t");
    attr_int(&b, node(&b, "Concat", "b heads t width", "sizes"), "axis", 0);
    node(&b, "Equal", "sizes absent", "e");
    node(&b, "Where", "e ones sizes", "target");
    node(&b, "Expand", "x target", "y");
    output(&b, "y");
    return b;
}

static void expanded_batches_may_vary(void **state)
{
    struct build b = expanded(-1);
    (void)state;

    EXPECT(&b, "-> Tensor[(B, 2, 3, T, 16), float32]",
           "broadcast_to(%x, [1, 2, 3, 1, 16])");
    b = expanded(7); /* B and T may be 7 */
    EXPECT(&b, "-> Tensor[(?", "where(", "broadcast_to(%x, %5)");
}

static void names_are_made_unique(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Exp", "x", "a")->name = byi_arena_str(b.arena, "same");
    node(&b, "Exp", "a", "y")->name = byi_arena_str(b.arena, "same");
    output(&b, "y");
    EXPECT(&b, "#[\"same\": \"Exp\"]", "#[\"same", ": \"Exp\"]");
}

/* --- invalid models ------------------------------------------------------- */

static void unknown_operator(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Frobnicate", "x", "y")->domain = byi_arena_str(b.arena, "acme");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED,
           "node Frobnicate_0: operator Frobnicate (domain acme, opset 0) is "
           "not supported");
}

static void newer_operator(void **state)
{
    struct build b = begin(8);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Erf", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED,
           "operator Erf (domain ai.onnx, opset 8) is not supported");
}

static void refuse_weights(const char *dims, const char *why)
{
    struct build b = begin(19);

    input(&b, "x", "1 2 5 5");
    input(&b, "w", dims);
    input(&b, "offset", "1 8 4 4");
    Onnx__NodeProto *conv = node(&b, "DeformConv", "x w offset", "y");
    attr_ints(&b, conv, "kernel_shape", 2, (const int64_t[]){2, 2});
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED, why);
}

static void refuse_slice(const char *begins, const char *why)
{
    struct build b = begin(13);

    input(&b, "x", "4");
    int_input(&b, "begin", begins);
    int_input(&b, "end", begins);
    node(&b, "Slice", "x begin end", "y");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED, why);
}

static void sizes_that_must_be_known(void **state)
{
    (void)state;
    refuse_weights("3 2 2 K", "weights with a symbolic dim");
    refuse_weights("0 2 2 2", "weights with a dim of 0");
    refuse_slice("N", "a symbolic number of axes");
    refuse_slice("200", "found 200 axes, expected at most");
}

static void unknown_attribute(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    attr_int(&b, node(&b, "Exp", "x", "y"), "base", 2);
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED, "attribute 'base' is unknown");
}

static void attribute_of_another_type(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    attr_string(&b, node(&b, "Softmax", "x", "y"), "axis", "0");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE,
           "node Softmax_0 (Softmax): attribute 'axis' is a string, expected "
           "an int");
}

static void shapes_that_do_not_fit(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4 2");
    input(&b, "z", "3 5");
    node(&b, "MatMul", "x z", "y")->name = byi_arena_str(b.arena, "mm");
    output(&b, "y");
    refuse(&b, BYOC_ETYPE, "node mm (MatMul): ");
}

static void cycles(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Add", "x c", "a");
    node(&b, "Exp", "a", "c");
    output(&b, "c");
    refuse(&b, BYOC_EPARSE,
           "node Exp_1 (Exp): value 'a' is not defined, expected");
}

/* Nodes stand before the producers of their operands. */
static void unsorted(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Add", "e n", "y");
    node(&b, "Exp", "n", "e");
    node(&b, "Neg", "x", "n");
    output(&b, "y");
    EXPECT(&b, "%0 = negative(%x) #[\"Neg_2\"", "%1 = exp(%0) #[\"Exp_1\"",
           "add(%1, %0) #[\"Add_0\"");
    b = begin(13);
    input(&b, "x", "4");
    node(&b, "Add", "e absent", "y");
    node(&b, "Exp", "x", "e");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "node Add_0 (Add): value 'absent' is not defined");
}

/* Dropout that drops nothing draws no numbers. */
static void dropout_of_nothing(void **state)
{
    static const float ratios[] = {0, 0.5f};
    static const uint8_t yes = 1;
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct build b = begin(13);
        input(&b, "x", "4");
        Onnx__TensorProto *t = tensor(&b, "ratio", BYOC_F32, 0, NULL);
        raw(&b, t, &ratios[i], sizeof *ratios);
        weight(&b, t);
        t = tensor(&b, "training", BYOC_BOOL, 0, NULL);
        raw(&b, t, &yes, 1);
        weight(&b, t);
        node(&b, "Dropout", "x ratio training", "d");
        node(&b, "Exp", "d", "y");
        output(&b, "y");
        if (i)
            EXPECT(&b, "random.uniform", "exp(");
        else
            EXPECT(&b, "exp(%x)");
    }
}

static void duplicate_names(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Exp", "x", "x");
    output(&b, "x");
    refuse(&b, BYOC_EPARSE, "output 'x' is defined twice");
    b = begin(13);
    input(&b, "x", "4");
    input(&b, "x", "4");
    output(&b, "x");
    refuse(&b, BYOC_EPARSE, "input 'x': the name is already defined");
    b = begin(13);
    input(&b, "", "4");
    node(&b, "Exp", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "found an input without a name");
}

static void axes_known_at_run_time(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4 1 6");
    int_input(&b, "axes", "1");
    int_input(&b, "sizes", "2");
    int_input(&b, "k", "");
    node(&b, "Squeeze", "x axes", "a");
    node(&b, "Unsqueeze", "x axes", "b");
    attr_int(&b, node(&b, "ReduceSum", "x axes", "c"), "keepdims", 0);
    node(&b, "Split", "x sizes", "d e");
    node(&b, "CumSum", "x k", "f");
    for (const char *name = "abcdef"; *name; name++)
        output(&b, (const char[]){*name, 0});
    EXPECT(&b, "dyn.squeeze(%x, %axes)", "dyn.expand_dims(%x, %axes)",
           "dyn.reduce(%x, %axes, function=\"sum\", keepdims=false)",
           "dyn.split(%x, %sizes)", "dyn.cumsum(%x, %k)");
    b = begin(14);
    input(&b, "x", "4 6");
    int_input(&b, "k", "");
    attr_int(&b, node(&b, "Trilu", "x k", "y"), "upper", 0);
    output(&b, "y");
    EXPECT(&b, "dyn.trilu(%x, %k, upper=false)");
}

static void unknown_number_of_axes(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4 1");
    int_input(&b, "axes", "N");
    node(&b, "Squeeze", "x axes", "y");
    output(&b, "y");
    refuse(&b, BYOC_ETYPE,
           "node Squeeze_0 (Squeeze): dyn.squeeze: the number of axes is not "
           "known");
}

static void unsupported_optional_output(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "1 2 3");
    floats(&b, "s", 1, (const int64_t[]){2});
    node(&b, "BatchNormalization", "x s s s s", "y mean");
    node(&b, "Exp", "mean", "z");
    output(&b, "z");
    refuse(
        &b, BYOC_EUNSUPPORTED,
        "node BatchNormalization_0 (operator BatchNormalization, domain "
        "ai.onnx, opset 13): output 'mean' is not supported, expected no node");
}

static void wrong_arity(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Add", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "found 1 inputs, expected 2 to 2");
}

static void wrong_params(void **state)
{
    const struct byi_onnx_params no_dim = {
        .dims = (const char *const[]){"M=5", NULL}};
    const struct byi_onnx_params bad_dim = {
        .dims = (const char *const[]){"N=-5", NULL}};
    const struct byi_onnx_params bad_shape = {
        .shapes = (const char *const[]){"x=1x", NULL}};
    const struct byi_onnx_params *const all[] = {&no_dim, &bad_dim, &bad_shape};
    static const char *const messages[] = {"dim of the model's inputs: 'N'",
                                           "dim 'N': found '-5'",
                                           "shape of 'x': found '1x'"};
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(all); i++) {
        struct build b = begin(13);
        input(&b, "x", "N");
        output(&b, "x");
        refuse_with(&b, all[i], BYOC_EINVAL, messages[i]);
    }
}

static void add_metadata(struct build *b, char *key, char *text)
{
    static const Onnx__StringStringEntryProto proto =
        ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    Onnx__StringStringEntryProto *e =
        byi_arena_copy(b->arena, &proto, sizeof proto);

    e->key = key;
    e->value = text;
    b->model->metadata_props = list_add(b->arena, b->model->metadata_props,
                                        &b->model->n_metadata_props, e);
}

/* An entry without a value counts; a field without text does not. */
static void metadata(void **state)
{
    static const struct byoc_metadata expected[] = {{"ir_version", "8"},
                                                    {"opset.", "13"},
                                                    {"custom.flag", ""},
                                                    {"custom.none", ""},
                                                    {"custom.author", "me"}};
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byoc_error err;
    (void)state;

    input(&b, "x", "4");
    output(&b, "x");
    b.model->producer_name = "";
    add_metadata(&b, "flag", "");
    add_metadata(&b, "none", NULL);
    add_metadata(&b, "author", "me");
    save(&b);
    if (byi_onnx_import(b.path, NULL, &m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(m->n_metadata, BYI_COUNT(expected));
    for (uint32_t i = 0; i < BYI_COUNT(expected); i++) {
        assert_string_equal(m->metadata[i].key, expected[i].key);
        assert_string_equal(m->metadata[i].value, expected[i].value);
    }
    byi_module_free(&m);
    end(&b);
}

static void unknown_opset(void **state)
{
    struct build b = begin(99);
    (void)state;

    input(&b, "x", "4");
    output(&b, "x");
    refuse(&b, BYOC_EUNSUPPORTED, "opset 99 of ai.onnx");
}

/* A string attribute of 60 bytes is shown whole, a longer one is cut off. */
static void long_strings_are_cut(void **state)
{
    static const char spaces[] = "                                             "
                                 "                              ";
    (void)state;
    for (int n = 60; n <= 61; n++) {
        struct build b = begin(13);
        struct byi_module *m = NULL;
        struct byoc_error err = {0};
        char equation[128];
        snprintf(equation, sizeof equation, "ij->ji%.*s", n - 6, spaces);
        input(&b, "x", "2 3");
        Onnx__NodeProto *einsum = node(&b, "Einsum", "x", "y");
        attr_string(&b, einsum, "equation", equation);
        output(&b, "y");
        save(&b);
        assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_OK);
        const char *attributes = m->sources.at[0].attributes;
        assert_non_null(attributes);
        assert_int_equal(strstr(attributes, "...") != NULL, n > 60);
        byi_module_free(&m);
        end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_with_bias),
        cmocka_unit_test(auto_pad_of_symbolic_sizes),
        cmocka_unit_test(gemm_is_dense),
        cmocka_unit_test(gemm_scales),
        cmocka_unit_test(fixed_dims),
        cmocka_unit_test(dim_names),
        cmocka_unit_test(fixed_by_shape),
        cmocka_unit_test(shape_of_a_weight),
        cmocka_unit_test(fixed_value),
        cmocka_unit_test(two_outputs),
        cmocka_unit_test(opset_18),
        cmocka_unit_test(no_axes_to_reduce),
        cmocka_unit_test(range_of_dim),
        cmocka_unit_test(names_like_new_symbols),
        cmocka_unit_test(equal_parts_of_symbolic_axis),
        cmocka_unit_test(dropout_and_identity_vanish),
        cmocka_unit_test(old_softmax_is_flat),
        cmocka_unit_test(old_softmax_of_an_empty_tensor),
        cmocka_unit_test(old_softmax_before_axes_of_size_1),
        cmocka_unit_test(old_add_broadcasts_at_axis),
        cmocka_unit_test(clip_bounds),
        cmocka_unit_test(shapes_fold),
        cmocka_unit_test(batches_may_vary),
        cmocka_unit_test(expanded_batches_may_vary),
        cmocka_unit_test(names_are_made_unique),
        cmocka_unit_test(unknown_operator),
        cmocka_unit_test(newer_operator),
        cmocka_unit_test(sizes_that_must_be_known),
        cmocka_unit_test(unknown_attribute),
        cmocka_unit_test(attribute_of_another_type),
        cmocka_unit_test(shapes_that_do_not_fit),
        cmocka_unit_test(cycles),
        cmocka_unit_test(unsorted),
        cmocka_unit_test(dropout_of_nothing),
        cmocka_unit_test(duplicate_names),
        cmocka_unit_test(axes_known_at_run_time),
        cmocka_unit_test(unknown_number_of_axes),
        cmocka_unit_test(unsupported_optional_output),
        cmocka_unit_test(wrong_arity),
        cmocka_unit_test(wrong_params),
        cmocka_unit_test(metadata),
        cmocka_unit_test(unknown_opset),
        cmocka_unit_test(long_strings_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
