/* samples.h: for table_test.c: what each row of oneDNN's table is shown. A
 * sample is a program of one operator; from it the test makes those with
 * post-ops, of other types, and of shapes that grow. Parameters' names say
 * what they hold: %p... positive numbers, others numbers of both signs.
 */
#ifndef BYI_TEST_SAMPLES_H
#define BYI_TEST_SAMPLES_H

struct sample {
    const char *row;
    const char *params; /* the program's: "%x: (2, 3), %y: (3)" */
    const char *call;
};

/* clang-format off */
#define R(shape, seed) "random[(" shape "), float32, seed=" #seed "]"

static const struct sample samples[] = {
    {"dnnl.conv", "%x: (2, 6, 11)", "nn.conv1d(%x, " R("8, 6, 3", 1) ", padding=[1, 1])"},
    {"dnnl.conv", "%x: (1, 8, 20)", "nn.conv1d(%x, " R("8, 1, 4", 1) ", groups=8, strides=[2], dilation=[2], padding=[1, 0])"},
    {"dnnl.conv", "%x: (1, 16, 9, 8)", "nn.conv2d(%x, " R("16, 16, 3, 3", 2) ", padding=[1, 1, 1, 1])"},
    {"dnnl.conv", "%x: (2, 8, 9, 9)", "nn.conv2d(%x, " R("12, 4, 3, 3", 3) ", groups=2, strides=[2, 1], padding=[0, 1, 2, 0])"},
    {"dnnl.conv", "%x: (1, 9, 9, 8)", "nn.conv2d(%x, " R("3, 3, 8, 16", 2) ", data_layout=\"NHWC\", kernel_layout=\"HWIO\")"},
    {"dnnl.conv", "%x: (1, 4, 5, 6, 4)", "nn.conv3d(%x, " R("8, 4, 3, 3, 3", 4) ", padding=[1, 1, 1, 1, 1, 1])"},
    {"dnnl.deconv", "%x: (1, 6, 9)", "nn.conv1d_transpose(%x, " R("6, 4, 3", 1) ", strides=[2])"},
    {"dnnl.deconv", "%x: (1, 8, 5, 6)", "nn.conv2d_transpose(%x, " R("8, 6, 3, 3", 1) ", strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1])"},
    {"dnnl.deconv", "%x: (1, 8, 5, 6)", "nn.conv2d_transpose(%x, " R("8, 3, 2, 2", 1) ", groups=2)"},
    {"dnnl.deconv", "%x: (1, 4, 3, 4, 3)", "nn.conv3d_transpose(%x, " R("4, 6, 2, 2, 2", 1) ")"},
    {"dnnl.dense", "%x: (5, 12)", "nn.dense(%x, " R("16, 12", 1) ")"},
    {"dnnl.dense", "%x: (5, 12), %w: (7, 12)", "nn.dense(%x, %w)"},
    {"dnnl.matmul", "%x: (7, 12)", "nn.matmul(%x, " R("12, 10", 1) ")"},
    {"dnnl.matmul", "%x: (12, 7), %y: (10, 12)", "nn.matmul(%x, %y, transpose_a=true, transpose_b=true)"},
    {"dnnl.matmul", "%x: (2, 3, 7, 12)", "nn.matmul(%x, " R("12, 10", 1) ")"},
    {"dnnl.matmul", "%x: (2, 3, 7, 12), %y: (2, 3, 10, 12)", "nn.matmul(%x, %y, transpose_b=true)"},
    {"dnnl.matmul", "%x: (2, 1, 7, 12), %y: (3, 12, 10)", "nn.matmul(%x, %y)"},
    {"dnnl.matmul", "%x: (2, 2, 2, 3, 5, 6), %y: (2, 1, 2, 3, 6, 4)", "nn.matmul(%x, %y)"},
    {"dnnl.matmul", "%x: (12), %y: (12, 10)", "nn.matmul(%x, %y)"},
    {"dnnl.pool", "%x: (1, 6, 12)", "nn.max_pool1d(%x, pool_size=[3], strides=[2], padding=[1, 1])"},
    {"dnnl.pool", "%x: (1, 6, 12)", "nn.avg_pool1d(%x, pool_size=[2], strides=[2])"},
    {"dnnl.pool", "%x: (1, 16, 9, 8)", "nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])"},
    {"dnnl.pool", "%x: (1, 16, 9, 8)", "nn.avg_pool2d(%x, pool_size=[3, 2], padding=[1, 0, 1, 0], count_include_pad=true)"},
    {"dnnl.pool", "%x: (1, 4, 6, 5, 6)", "nn.max_pool3d(%x, pool_size=[2, 2, 2], strides=[2, 1, 2])"},
    {"dnnl.pool", "%x: (1, 4, 6, 5, 6)", "nn.avg_pool3d(%x, pool_size=[3, 3, 3], padding=[1, 1, 1, 1, 1, 1])"},
    {"dnnl.global_pool", "%x: (2, 6, 12)", "nn.global_avg_pool1d(%x)"},
    {"dnnl.global_pool", "%x: (2, 16, 9, 8)", "nn.global_avg_pool2d(%x)"},
    {"dnnl.global_pool", "%x: (2, 4, 6, 5, 6)", "nn.global_avg_pool3d(%x)"},
    {"dnnl.global_pool", "%x: (2, 6, 12)", "nn.global_max_pool1d(%x)"},
    {"dnnl.global_pool", "%x: (2, 9, 8, 16)", "nn.global_max_pool2d(%x, layout=\"NHWC\")"},
    {"dnnl.global_pool", "%x: (2, 4, 6, 5, 6)", "nn.global_max_pool3d(%x)"},
    {"dnnl.softmax", "%x: (3, 4, 10)", "nn.softmax(%x)"},
    {"dnnl.softmax", "%x: (2, 5, 4, 3)", "nn.softmax(%x, axis=1)"},
    {"dnnl.softmax", "%x: (2, 2, 3, 2, 2, 6)", "nn.softmax(%x, axis=-2)"},
    {"dnnl.softmax", "%x: (3, 10)", "nn.log_softmax(%x)"},
    {"dnnl.softmax", "%x: (2, 5, 4, 3)", "nn.log_softmax(%x, axis=-3)"},
    {"dnnl.layer_norm", "%x: (3, 5, 16)", "nn.layer_norm(%x, " R("16", 1) ", " R("16", 2) ", epsilon=0.001)"},
    {"dnnl.layer_norm", "%x: (3, 4, 5)", "nn.layer_norm(%x, " R("4, 5", 1) ", " R("4, 5", 2) ", axis=1)"},
    {"dnnl.layer_norm_scale", "%x: (3, 5, 16)", "nn.layer_norm(%x, " R("16", 1) ")"},
    {"dnnl.batch_norm", "%x: (2, 4, 5, 6)", "nn.batch_norm(%x, " R("4", 1) ", " R("4", 2) ", " R("4", 3) ", Tensor[(4), float32] {0.5, 1.0, 1.5, 2.0})"},
    {"dnnl.batch_norm", "%x: (2, 5, 6, 4)", "nn.batch_norm(%x, " R("4", 1) ", " R("4", 2) ", " R("4", 3) ", [0.5, 1.0, 1.5, 2.0], axis=3)"},
    {"dnnl.lrn", "%x: (1, 16, 5, 6)", "nn.lrn(%x, size=5, alpha=0.0001, beta=0.75, bias=1.0)"},
    {"dnnl.resize", "%x: (1, 4, 5, 6)", "image.resize(%x, [1, 4, 10, 12], mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\")"},
    {"dnnl.resize", "%x: (1, 4, 5, 6)", "image.resize(%x, [1, 4, 8, 9], mode=\"linear\", coordinate_transformation_mode=\"half_pixel\")"},
    {"dnnl.resize", "%x: (1, 4, 7)", "image.resize(%x, [1, 4, 21], mode=\"linear\", coordinate_transformation_mode=\"half_pixel\")"},
    {"dnnl.reduce", "%x: (2, 5, 6, 4)", "mean(%x, axis=[3], keepdims=true)"},
    {"dnnl.reduce", "%x: (2, 5, 6, 4)", "mean(%x, axis=[2, 3])"},
    {"dnnl.reduce", "%x: (2, 5, 6)", "sum(%x, axis=[1])"},
    {"dnnl.reduce", "%x: (7, 9)", "sum(%x)"},
    {"dnnl.reduce", "%x: (7, 9)", "max(%x, axis=[-1])"},
    {"dnnl.reduce", "%x: (7, 9)", "min(%x, axis=[1], keepdims=true)"},
    {"dnnl.reduce", "%x: (2, 5, 4)", "prod(%x, axis=[1, 2])"},
    {"dnnl.binary", "%x: (2, 3, 4), %y: (2, 3, 4)", "add(%x, %y)"},
    {"dnnl.binary", "%x: (2, 3, 4, 5)", "subtract(%x, " R("3, 1, 1", 1) ")"},
    {"dnnl.binary", "%x: (2, 2, 3, 2, 2, 6), %y: (6)", "multiply(%x, %y)"},
    {"dnnl.binary", "%x: (2, 3, 4), %p: (2, 3, 4)", "divide(%x, %p)"},
    {"dnnl.binary", "%x: (2, 3, 4)", "maximum(%x, 0.25f)"},
    {"dnnl.binary", "%x: (4), %y: (2, 3, 4)", "minimum(%x, %y)"},
    {"dnnl.binary", "%x: (2, 3, 4, 5)", "nn.prelu(%x, " R("3, 1, 1", 1) ")"},
    {"dnnl.binary", "%x: (2, 3)", "nn.prelu(%x, 0.25f)"},
    {"dnnl.binary", "%x: (2, 3, 4)", "power(%x, Tensor[(), float32] {2.0})"},
    {"dnnl.binary", "%p: (2, 3, 4)", "power(%p, 0.5f)"},
    {"dnnl.binary", "%p: (2, 3, 4)", "power(%p, -1.0f)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.relu(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.leaky_relu(%x, alpha=0.3)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.elu(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.selu(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "clip(%x, a_min=-0.5, a_max=0.75)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "sigmoid(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "tanh(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.gelu(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.silu(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.hard_swish(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.hard_sigmoid(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.mish(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "nn.softplus(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "abs(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "negative(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "exp(%x)"},
    {"dnnl.eltwise", "%x: (2, 3, 37)", "round(%x)"},
    {"dnnl.eltwise", "%p: (2, 3, 37)", "sqrt(%p)"},
    {"dnnl.eltwise", "%p: (2, 3, 37)", "log(%p)"},
    {"dnnl.eltwise", "%p: (2, 3, 37)", "reciprocal(%p)"},
    {"dnnl.eltwise", "%x: (2, 2, 3, 2, 2, 6)", "nn.relu(%x)"},
    {"dnnl.recurrent", "%x: (5, 3, 6)", "nn.lstm(%x, " R("1, 32, 6", 1) ", " R("1, 32, 8", 2) ", " R("1, 64", 3) ")"},
    {"dnnl.recurrent", "%x: (5, 3, 6), %h: (2, 3, 8)", "nn.gru(%x, " R("2, 24, 6", 1) ", " R("2, 24, 8", 2) ", " R("2, 48", 3) ", Tensor[(0), int32] {}, %h, direction=\"bidirectional\", linear_before_reset=true)"},
    {"dnnl.recurrent", "%x: (3, 5, 6)", "nn.gru(%x, " R("1, 24, 6", 1) ", " R("1, 24, 8", 2) ", direction=\"reverse\", batch_first=true)"},
    {"dnnl.recurrent", "%x: (5, 3, 6)", "nn.rnn(%x, " R("1, 8, 6", 1) ", " R("1, 8, 8", 2) ", activations=[\"nn.relu\"])"},
    {"dnnl.concat", "%x: (2, 3, 4), %y: (2, 5, 4), %z: (2, 1, 4)", "concatenate(%x, %y, %z, axis=1)"},
    {"dnnl.concat", "%x: (2, 3), %y: (2, 3)", "concatenate(%x, %y, axis=-1)"},
    {"dnnl.reshape", "%x: (2, 3, 4)", "reshape(%x, [4, -1])"},
    {"dnnl.view", "%x: (2, 3, 4)", "nn.flatten(%x)"},
    {"dnnl.view", "%x: (2, 1, 4)", "squeeze(%x, axis=[1])"},
    {"dnnl.view", "%x: (2, 4)", "expand_dims(%x, axis=[0, 2])"},
    {"dnnl.copy", "%x: (2, 4)", "copy(%x)"},
    {"dnnl.transpose", "%x: (2, 3, 4, 5)", "transpose(%x, axes=[0, 2, 3, 1])"},
    {"dnnl.layout_transform", "%x: (2, 3, 4, 5)", "layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NHWC\")"},
    {"dnnl.blocks", "%x: (1, 8, 3, 4)", "nn.depth_to_space(%x, block_size=2)"},
    {"dnnl.blocks", "%x: (1, 8, 3, 4)", "nn.depth_to_space(%x, block_size=2, mode=\"CRD\")"},
    {"dnnl.blocks", "%x: (1, 2, 6, 4)", "nn.space_to_depth(%x, block_size=2)"},
    {"dnnl.split", "%x: (2, 6, 4)", "split(%x, axis=1, sizes=[1, 3, 2])"},
    {"dnnl.slice", "%x: (5, 8, 4)", "strided_slice(%x, [1, -6], [4, 8], [0, 1], [1, 2])"},
};

/* Programs that the row matches and oneDNN does not build, and why. */
struct refusal {
    const char *row, *params, *call, *says;
};
static const struct refusal refusals[] = {
    {"dnnl.conv", "%x: (1, 4, 5, 5)", "nn.conv2d(%x, " R("4, 4, 1, 1", 1) ", padding=[2, 2, 2, 2])", "lies wholly in the padding"},
    {"dnnl.conv", "%x: (1, 1, 5, 5, 4)", "nn.conv2d(%x, " R("4, 4, 1, 1", 1) ", data_layout=\"NCHW4c\")", "block"},
    {"dnnl.pool", "%x: (1, 4, 5, 5)", "nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2], ceil_mode=true, count_include_pad=true)", "divides otherwise"},
    {"dnnl.batch_norm", "%x: (2, 4, 5, 6)", "nn.batch_norm(%x, " R("5", 1) ", " R("5", 2) ", " R("5", 3) ", [0.5, 1.0, 1.5, 2.0, 1.0], axis=2)", "channels on axis 2"},
    {"dnnl.lrn", "%x: (1, 16, 5, 6)", "nn.lrn(%x, size=4)", "even"},
    {"dnnl.resize", "%x: (1, 4, 5, 6)", "image.resize(%x, [1, 4, 8, 9], mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\")", "is not what oneDNN computes"},
    {"dnnl.resize", "%x: (1, 4, 5, 6)", "image.resize(%x, [2, 4, 10, 6], mode=\"linear\", coordinate_transformation_mode=\"half_pixel\")", "resizes spatial axes only"},
    {"dnnl.reduce", "%x: (7, 9)", "sum(%x, noop_empty=true)", "reduces nothing"},
    {"dnnl.recurrent", "%x: (5, 3, 6)", "nn.lstm(%x, " R("1, 32, 6", 1) ", " R("1, 32, 8", 2) ", clip=3.0)", "found clip 3, oneDNN has none"},
    {"dnnl.recurrent", "%x: (5, 2, 6)", "nn.rnn(%x, " R("1, 8, 6", 1) ", " R("1, 8, 8", 2) ", " R("1, 16", 3) ", Tensor[(2), int32] {5, 4})", "found a sequence of length 4 in a time of 5"},
    {"dnnl.binary", "%x: (2, 1), %y: (1, 3)", "add(%x, %y)", "both operands are broadcast"},
    {"dnnl.binary", "%p: (2, 3)", "power(%p, 1.7f)", "exponent is 1.7"},
    {"dnnl.binary", "%p: (2, 3)", "power(%p, " R("3", 1) ")", "not one constant number"},
    {"dnnl.slice", "%x: (5, 8)", "strided_slice(%x, [4], [0], [0], [-1])", "expected a positive one"},
    {"dnnl.layout_transform", "%x: (1, 8, 4, 4)", "layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NCHW4c\")", "blocks do not go to oneDNN"},
};
/* clang-format on */

#endif
