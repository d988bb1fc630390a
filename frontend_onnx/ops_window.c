/* SPDX-License-Identifier: Apache-2.0 */
/* ops_window.c: converts convolutions and pooling: a window that slides over
 * the spatial axes, all but the first two.
 *
 * Conv(x, w, b) -> add(nn.conv2d(%x, %w), b as (O, 1, 1))
 * auto_pad becomes explicit padding; the IR has no auto_pad. Padding that
 * depends on a symbolic dim becomes nn.pad.
 */
#include "frontend_onnx/import.h"

#include <math.h>
#include <string.h>

/* A window on n spatial axes. pads: n at the beginnings of the axes, then n at
 * their ends. */
struct onnx_window {
    uint32_t n;
    int64_t kernel[BYI_MAX_RANK], strides[BYI_MAX_RANK];
    int64_t dilations[BYI_MAX_RANK], pads[2 * BYI_MAX_RANK];
};

enum { MAX_WINDOW = 1 << 30 };

/* Record an error unless all n numbers are from min to MAX_WINDOW: larger ones
 * could overflow the sums below. */
static void check_range(struct byi_import *o, const char *name, uint32_t n,
                        const int64_t *list, int64_t min)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] < min || list[i] > MAX_WINDOW)
            byi_import_fail(o, BYOC_ETYPE,
                            "%s[%u] is %lld, expected %lld to %d", name, i,
                            (long long)list[i], (long long)min, MAX_WINDOW);
}

/* Divide the padding `total` of axis i between both sides; an odd element goes
 * to the end if `upper`, otherwise to the beginning. */
static void divide_padding(struct onnx_window *w, uint32_t i, int64_t total,
                           bool upper)
{
    const int64_t smaller = total / 2, larger = total - smaller;

    w->pads[i] = upper ? smaller : larger;
    w->pads[w->n + i] = upper ? larger : smaller;
}

/* Pad the spatial axes of %x as pad_same does. The last window ends behind the
 * last element by `rest`, if a window begins at it, and by less otherwise. */
#define PAD_SAME(begin, end)                                                   \
    "fn (%x, %fill) {"                                                         \
    "  %last = mod(subtract(shape_of(%x, start=2), 1i64), strides);"           \
    "  %total = maximum(subtract(rest, %last), 0i64);"                         \
    "  %smaller = divide(%total, 2i64);"                                       \
    "  %larger = subtract(%total, %smaller);"                                  \
    "  nn.pad(%x, concatenate([0, 0], " begin ", [0, 0], " end "), %fill)"     \
    "}"

/* Emit x with the padding of auto_pad SAME_UPPER (`upper`) or SAME_LOWER, whose
 * sizes depend on those of the run. */
static byi_id emit_same_padding(struct byi_import *o, byi_id x,
                                const struct onnx_window *w, bool upper,
                                double fill)
{
    int64_t rest[BYI_MAX_RANK];

    for (uint32_t i = 0; i < w->n; i++)
        rest[i] = (w->kernel[i] - 1) * w->dilations[i];
    return byi_import_template(
        o,
        upper ? PAD_SAME("%smaller", "%larger")
              : PAD_SAME("%larger", "%smaller"),
        ARGS(x, byi_import_scalar(o, byi_import_dtype(o, x), fill)),
        ATTRS(SOME_INTS("rest", w->n, rest),
              SOME_INTS("strides", w->n, w->strides)));
}

/* Set the pads of auto_pad SAME_UPPER (`upper`) or SAME_LOWER: each axis of the
 * output has ceil(dim / stride) elements. If they depend on a symbolic dim,
 * returns x padded with `fill`, or refuses the node if that is NaN; otherwise
 * returns x. */
static byi_id pad_same(struct byi_import *o, byi_id x, struct onnx_window *w,
                       bool upper, double fill)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const int64_t dim = byi_import_dim(o, x, i + 2);
        const int64_t reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
        int64_t total = reach - 1;
        if (w->strides[i] > 1 && reach > 1) {
            if (BYI_IS_SYMBOL(dim) && isnan(fill)) {
                byi_import_refuse(
                    o,
                    "found auto_pad with a symbolic axis %u, expected "
                    "a known size; fix it with --dim or --shape",
                    i + 2);
                return x;
            }
            if (BYI_IS_SYMBOL(dim)) {
                memset(w->pads, 0, sizeof w->pads);
                return emit_same_padding(o, x, w, upper, fill);
            }
            /* the end of the last of ceil(dim / stride) windows, computed in
             * an order that cannot overflow for any dim */
            const int64_t stride = w->strides[i];
            const int64_t steps = dim / stride + (dim % stride != 0);
            total = reach - (dim - (steps - 1) * stride);
        }
        divide_padding(w, i, total > 0 ? total : 0, upper);
    }
    return x;
}

/* Returns the mode named by attribute auto_pad; NULL if pads are explicit, or
 * after an error. */
static const char *read_auto_pad(struct byi_import *o)
{
    static const char *const modes[] = {"NOTSET", "VALID", "SAME_UPPER",
                                        "SAME_LOWER"};
    const char *mode = byi_import_string(o, "auto_pad", "NOTSET");

    for (uint32_t i = 0; i < BYI_COUNT(modes); i++)
        if (strcmp(mode, modes[i]) == 0)
            return i == 0 ? NULL : mode;
    byi_import_refuse(
        o, "auto_pad is '%s', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER",
        mode);
    return NULL;
}

/* Read strides, dilations and pads; w->kernel is set already. */
static void read_window(struct byi_import *o, struct onnx_window *w)
{
    byi_import_int_list(o, "strides", w->n, 1, w->strides);
    byi_import_int_list(o, "dilations", w->n, 1, w->dilations);
    byi_import_int_list(o, "pads", 2 * w->n, 0, w->pads);
    check_range(o, "kernel_shape", w->n, w->kernel, 1);
    check_range(o, "strides", w->n, w->strides, 1);
    check_range(o, "dilations", w->n, w->dilations, 1);
    check_range(o, "pads", 2 * w->n, w->pads, -MAX_WINDOW);
}

/* Replace the explicit pads by the pads of auto_pad, if the node has it.
 * Returns x, or what pad_same returns. */
static byi_id apply_auto_pad(struct byi_import *o, byi_id x,
                             struct onnx_window *w, double fill)
{
    const char *mode = read_auto_pad(o);

    if (!byi_import_ok(o) || !mode)
        return x;
    memset(w->pads, 0, sizeof w->pads);
    return strcmp(mode, "VALID") == 0
               ? x
               : pad_same(o, x, w, strcmp(mode, "SAME_UPPER") == 0, fill);
}

/* Returns the number of spatial axes of x; 0 after an error: without a spatial
 * axis, or with more than `max`. */
static uint32_t count_spatial(struct byi_import *o, byi_id x, uint32_t max)
{
    const uint32_t rank = byi_import_rank(o, x);

    if (byi_import_ok(o) && (rank < 3 || rank > max + 2))
        byi_import_refuse(o, "found an input of rank %u, expected 3 to %u",
                          rank, max + 2);
    return byi_import_ok(o) ? rank - 2 : 0;
}

/* --- convolutions --------------------------------------------------------- */

/* Read the window of a convolution. The kernel has the size of the weights; an
 * attribute kernel_shape must agree, and replaces a symbolic size. */
static void read_conv(struct byi_import *o, byi_id x, byi_id weights,
                      struct onnx_window *w)
{
    const bool has_kernel_shape = byi_import_has_attr(o, "kernel_shape");

    w->n = count_spatial(o, x, 3);
    if (byi_import_ok(o) && byi_import_rank(o, weights) != w->n + 2)
        byi_import_fail(
            o, BYOC_ETYPE,
            "the weights have rank %u, expected %u, the rank of the data",
            byi_import_rank(o, weights), w->n + 2);
    byi_import_int_list(o, "kernel_shape", w->n, 0, w->kernel);
    for (uint32_t i = 0; i < w->n; i++) {
        const int64_t dim = byi_import_dim(o, weights, i + 2);
        if (!has_kernel_shape && BYI_IS_SYMBOL(dim))
            byi_import_refuse(o, "found weights of symbolic kernel size, "
                                 "expected a known size or kernel_shape");
        if (has_kernel_shape && !BYI_IS_SYMBOL(dim) && dim != w->kernel[i])
            byi_import_fail(o, BYOC_ETYPE,
                            "kernel_shape[%u] is %lld, expected %lld as in the "
                            "weights",
                            i, (long long)w->kernel[i], (long long)dim);
        w->kernel[i] = has_kernel_shape ? w->kernel[i] : dim;
    }
    read_window(o, w);
}

/* Emit x + bias, where the bias is a vector along axis 1: n axes of size 1 are
 * appended to it. A constant bias becomes a new constant with the same data.
 * Returns x if there is no bias. */
static byi_id emit_bias(struct byi_import *o, byi_id x, byi_id bias, uint32_t n)
{
    struct byi_tensor t = {0};

    if (bias == BYI_NO_ID)
        return x;
    if (byi_import_rank(o, bias) != 1)
        byi_import_fail(o, BYOC_ETYPE, "the bias has rank %u, expected 1",
                        byi_import_rank(o, bias));
    if (byi_import_const_view(o, bias, &t)) {
        for (uint32_t i = 0; i < n; i++)
            t.dims[t.rank++] = 1;
        bias = byi_import_const(o, &t, true);
    } else {
        bias = byi_import_add_axes(o, bias, 1, n);
    }
    return byi_import_call(o, BYI_OP_ADD, x, bias);
}

byi_id byi_import_conv(struct byi_import *o, byi_id x, byi_id weights,
                       byi_id bias)
{
    static const enum byi_op_id ops[] = {BYI_OP_NONE, BYI_OP_NN_CONV1D,
                                         BYI_OP_NN_CONV2D, BYI_OP_NN_CONV3D};
    struct onnx_window w = {0};

    read_conv(o, x, weights, &w);
    x = apply_auto_pad(o, x, &w, 0);
    const byi_id y =
        byi_import_emit(o, ops[w.n], ARGS(x, weights),
                        ATTRS(SOME_INTS("strides", w.n, w.strides),
                              SOME_INTS("padding", 2 * w.n, w.pads),
                              SOME_INTS("dilation", w.n, w.dilations),
                              AN_INT("groups", byi_import_int(o, "group", 1))));
    return emit_bias(o, y, bias, w.n);
}

static void convert_conv(struct byi_import *o)
{
    o->out[0] = byi_import_conv(o, byi_import_in(o, 0), byi_import_in(o, 1),
                                byi_import_in(o, 2));
}

/* CausalConvWithState: a depthwise convolution of x (n, channels, time) after
 * the k - 1 positions of the state, or zeros if that input is omitted. The last
 * k - 1 positions are the next state. */
static void convert_causal_conv(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0), weights = byi_import_in(o, 1);
    const byi_id state = byi_import_in(o, 3);
    const char *activation = byi_import_string(o, "activation", "none");
    const bool silu =
        strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    const int64_t groups = byi_import_dim(o, weights, 0);
    const int64_t k = byi_import_dim(o, weights, 2);
    const int64_t before[] = {0, 0, k - 1, 0, 0, 0};
    byi_id padded = x;

    /* an attribute of com.microsoft's variant */
    const int64_t ndim = byi_import_int(o, "ndim", 1);
    if (ndim != 1)
        byi_import_refuse(o, "ndim is %lld, expected 1", (long long)ndim);
    if (!silu && strcmp(activation, "none") != 0)
        byi_import_refuse(o, "activation is '%s', expected none, silu or swish",
                          activation);
    if (byi_import_rank(o, x) != 3 || byi_import_rank(o, weights) != 3)
        byi_import_refuse(o,
                          "found an input of rank %u with weights of rank %u, "
                          "expected 3 and 3",
                          byi_import_rank(o, x), byi_import_rank(o, weights));
    if (BYI_IS_SYMBOL(groups) || BYI_IS_SYMBOL(k))
        byi_import_refuse(o,
                          "found weights of symbolic size, expected numbers");
    if (!byi_import_ok(o))
        return;
    if (k > 1 && state != BYI_NO_ID)
        padded = byi_import_concat(o, state, x, 2);
    else if (k > 1)
        padded = byi_import_call(
            o, BYI_OP_NN_PAD, x, byi_import_vector(o, 6, before),
            byi_import_scalar(o, byi_import_dtype(o, x), 0));
    const byi_id y =
        emit_bias(o,
                  byi_import_emit(o, BYI_OP_NN_CONV1D, ARGS(padded, weights),
                                  ATTRS(AN_INT("groups", groups))),
                  byi_import_in(o, 2), 1);
    o->out[0] = silu ? byi_import_call(o, BYI_OP_MULTIPLY, y,
                                       byi_import_call(o, BYI_OP_SIGMOID, y))
                     : y;
    o->out[1] = byi_import_slice(o, padded, k > 1 ? 1 - k : 0,
                                 k > 1 ? INT64_MAX : 0, 2);
}

/* com.microsoft's FusedConv: activation(conv(x, w, b) + z) */
static void convert_fused_conv(struct byi_import *o)
{
    const byi_id z = byi_import_in(o, 3);
    const char *name = byi_import_string(o, "activation", "");
    uint32_t n = 0;
    const double *numbers = byi_import_floats(o, "activation_params", &n);
    byi_id y = byi_import_conv(o, byi_import_in(o, 0), byi_import_in(o, 1),
                               byi_import_in(o, 2));

    if (z != BYI_NO_ID)
        y = byi_import_call(o, BYI_OP_ADD, y, z);
    o->out[0] = byi_import_activation(o, y, name, numbers, n);
}

/* Compute the pads for output_shape or, without it, for outputs of dim * stride
 * elements, by ONNX's formula. If the total is negative, output_padding grows
 * instead. */
static void pad_to_shape(struct byi_import *o, struct onnx_window *w,
                         int64_t *output_padding, const char *mode)
{
    const bool has_output_shape = byi_import_has_attr(o, "output_shape");
    const bool upper = mode && strcmp(mode, "SAME_UPPER") == 0;
    int64_t shape[BYI_MAX_RANK];

    byi_import_int_list(o, "output_shape", w->n, 0, shape);
    for (uint32_t i = 0; byi_import_ok(o) && i < w->n; i++) {
        const int64_t dim = byi_import_dim(o, byi_import_in(o, 0), i + 2);
        const int64_t reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
        int64_t total = output_padding[i] + reach - w->strides[i];
        if (has_output_shape && BYI_IS_SYMBOL(dim))
            byi_import_refuse(
                o,
                "found output_shape with a symbolic axis %u, expected "
                "a known size; fix it with --dim or --shape",
                i + 2);
        if (has_output_shape && dim > MAX_WINDOW)
            byi_import_fail(o, BYOC_ETYPE,
                            "found size %lld on axis %u of data, expected at "
                            "most %d, since the node has output_shape",
                            (long long)dim, i + 2, MAX_WINDOW);
        if (has_output_shape && (shape[i] < 0 || shape[i] > MAX_WINDOW))
            byi_import_fail(o, BYOC_ETYPE,
                            "output_shape[%u] is %lld, expected 0 to %d", i,
                            (long long)shape[i], MAX_WINDOW);
        if (has_output_shape && byi_import_ok(o))
            total += dim * w->strides[i] - shape[i];
        if (total < 0) {
            output_padding[i] -= total;
            total = 0;
        }
        divide_padding(w, i, total, upper);
    }
}

static void convert_conv_transpose(struct byi_import *o)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_NONE, BYI_OP_NN_CONV1D_TRANSPOSE, BYI_OP_NN_CONV2D_TRANSPOSE,
        BYI_OP_NN_CONV3D_TRANSPOSE};
    int64_t output_padding[BYI_MAX_RANK];
    struct onnx_window w = {0};

    const char *mode = read_auto_pad(o);
    read_conv(o, byi_import_in(o, 0), byi_import_in(o, 1), &w);
    byi_import_int_list(o, "output_padding", w.n, 0, output_padding);
    check_range(o, "output_padding", w.n, output_padding, 0);
    if (mode)
        memset(w.pads, 0, sizeof w.pads);
    if ((mode && strcmp(mode, "VALID") != 0) ||
        byi_import_has_attr(o, "output_shape"))
        pad_to_shape(o, &w, output_padding, mode);
    const byi_id y = byi_import_emit(
        o, ops[w.n], ARGS(byi_import_in(o, 0), byi_import_in(o, 1)),
        ATTRS(SOME_INTS("strides", w.n, w.strides),
              SOME_INTS("padding", 2 * w.n, w.pads),
              SOME_INTS("output_padding", w.n, output_padding),
              SOME_INTS("dilation", w.n, w.dilations),
              AN_INT("groups", byi_import_int(o, "group", 1))));
    o->out[0] = emit_bias(o, y, byi_import_in(o, 2), w.n);
}

/* --- pooling -------------------------------------------------------------- */

/* The attributes that all pools have, from the window `w`. */
#define POOL_ATTRS                                                             \
    SOME_INTS("pool_size", w.n, w.kernel),                                     \
        SOME_INTS("strides", w.n, w.strides),                                  \
        SOME_INTS("padding", 2 * w.n, w.pads),                                 \
        SOME_INTS("dilation", w.n, w.dilations)

/* Read the window of a pool. Returns x, or what apply_auto_pad returns. */
static byi_id read_pool(struct byi_import *o, byi_id x, struct onnx_window *w,
                        uint32_t max, double fill)
{
    w->n = count_spatial(o, x, max);
    if (!byi_import_has_attr(o, "kernel_shape"))
        byi_import_fail(
            o, BYOC_EPARSE,
            "attribute 'kernel_shape' is missing, expected %u numbers", w->n);
    byi_import_int_list(o, "kernel_shape", w->n, 1, w->kernel);
    read_window(o, w);
    return apply_auto_pad(o, x, w, fill);
}

static void convert_max_pool(struct byi_import *o)
{
    static const enum byi_op_id ops[] = {BYI_OP_NONE, BYI_OP_NN_MAX_POOL1D,
                                         BYI_OP_NN_MAX_POOL2D,
                                         BYI_OP_NN_MAX_POOL3D};
    const bool indices = byi_import_wants_output(o, 1);
    struct onnx_window w = {0};

    const enum byoc_dtype dtype = byi_import_dtype(o, byi_import_in(o, 0));
    const double low = dtype == BYOC_I8   ? INT8_MIN
                       : dtype == BYOC_U8 ? 0
                                          : -INFINITY;
    const byi_id x =
        read_pool(o, byi_import_in(o, 0), &w, indices ? BYI_MAX_RANK - 2 : 3,
                  indices ? NAN : low);
    const struct byi_attr attrs[] = {
        POOL_ATTRS,
        A_BOOL("column_major", byi_import_int(o, "storage_order", 0) != 0),
    };
    if (!indices) { /* storage_order matters for the indices only */
        o->out[0] =
            byi_import_same(o, ops[w.n], ARGS(x), BYI_N(attrs) - 1, attrs);
        return;
    }
    const byi_id results = byi_import_same(o, BYI_OP_NN_MAX_POOL_INDICES,
                                           ARGS(x), BYI_N(attrs), attrs);
    byi_import_get_outputs(o, results, 2);
}

/* Emit the input shape of a pool with this window and output x: (dim - 1)
 * stride + kernel - pads on each spatial axis. */
static byi_id emit_unpooled_shape(struct byi_import *o, byi_id x,
                                  const struct onnx_window *w)
{
    int64_t scale[BYI_MAX_RANK], offset[BYI_MAX_RANK];

    for (uint32_t i = 0; i < w->n + 2; i++) {
        scale[i] = 1;
        offset[i] = 0;
        if (i < 2)
            continue;
        scale[i] = w->strides[i - 2];
        if (__builtin_sub_overflow(w->kernel[i - 2], w->strides[i - 2],
                                   &offset[i]) ||
            __builtin_sub_overflow(offset[i], w->pads[i - 2], &offset[i]) ||
            __builtin_sub_overflow(offset[i], w->pads[i - 2 + w->n],
                                   &offset[i]))
            byi_import_fail(o, BYOC_ETYPE,
                            "the window of axis %u is larger than any tensor, "
                            "expected smaller pads",
                            i);
    }
    const byi_id factors = byi_import_vector(o, w->n + 2, scale);
    const byi_id scaled =
        byi_import_call(o, BYI_OP_MULTIPLY, byi_import_shape_of(o, x), factors);
    return byi_import_call(o, BYI_OP_ADD, scaled,
                           byi_import_vector(o, w->n + 2, offset));
}

/* MaxUnpool scatters the elements of x into a tensor of zeros that has the
 * shape of emit_unpooled_shape; the indices count its elements in row-major
 * order. If input output_shape is larger, the result is padded at the end. */
static void convert_max_unpool(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0), target = byi_import_in(o, 2);
    const enum byoc_dtype dtype = byi_import_dtype(o, x);
    struct onnx_window w = {0};

    read_pool(o, byi_import_in(o, 0), &w, BYI_MAX_RANK - 2, NAN);
    const byi_id shape = emit_unpooled_shape(o, x, &w);
    const byi_id size = byi_import_call(o, BYI_OP_PROD, shape);
    const byi_id zeros = byi_import_emit(o, BYI_OP_FULL, ARGS(size),
                                         ATTRS(A_DTYPE("dtype", dtype)));
    const byi_id flat = byi_import_vector(o, INTS(-1));
    const byi_id y = byi_import_reshape(
        o,
        byi_import_call(o, BYI_OP_SCATTER_ELEMENTS, zeros,
                        byi_import_reshape(o, byi_import_in(o, 1), flat, false),
                        byi_import_reshape(o, x, flat, false)),
        shape, true);
    o->out[0] = y;
    if (target == BYI_NO_ID)
        return;
    const byi_id end_pads = byi_import_call(
        o, BYI_OP_SUBTRACT, byi_import_cast(o, target, BYOC_I64), shape);
    const byi_id pads = byi_import_call(
        o, BYI_OP_CONCATENATE, byi_import_series(o, w.n + 2, 0, 0), end_pads);
    o->out[0] = byi_import_call(o, BYI_OP_NN_PAD, y, pads,
                                byi_import_scalar(o, dtype, 0));
}

byi_id byi_import_channels_first(struct byi_import *o, byi_id x)
{
    const uint32_t rank = byi_import_rank(o, x);

    return rank < 3 ? x : byi_import_move_axis(o, x, rank - 1, 1);
}

byi_id byi_import_channels_last(struct byi_import *o, byi_id x)
{
    const uint32_t rank = byi_import_rank(o, x);

    return rank < 3 ? x : byi_import_move_axis(o, x, 1, rank - 1);
}

byi_id byi_import_avg_pool(struct byi_import *o, byi_id x)
{
    static const enum byi_op_id ops[] = {BYI_OP_NONE, BYI_OP_NN_AVG_POOL1D,
                                         BYI_OP_NN_AVG_POOL2D,
                                         BYI_OP_NN_AVG_POOL3D};
    struct onnx_window w = {0};

    const byi_id padded = read_pool(o, x, &w, 3, 0);
    const byi_id y =
        byi_import_same(o, ops[w.n], ARGS(padded), ATTRS(POOL_ATTRS));
    if (padded == x || byi_import_int(o, "count_include_pad", 0) != 0)
        return y;
    /* Divide by the share of each window that is not padding. */
    const byi_id ones = byi_import_template(
        o, "fn (%x) { full(shape_of(%x), value=1, dtype=%x) }", ARGS(x),
        NO_ATTRS);
    const byi_id padded_ones = apply_auto_pad(o, ones, &w, 0);
    const byi_id shares =
        byi_import_same(o, ops[w.n], ARGS(padded_ones), ATTRS(POOL_ATTRS));
    return byi_import_call(o, BYI_OP_DIVIDE, y, shares);
}

static void convert_avg_pool(struct byi_import *o)
{
    o->out[0] = byi_import_avg_pool(o, byi_import_in(o, 0));
}

/* Returns attribute p, which is a float in opset 1; 2 without it. */
static int64_t read_p(struct byi_import *o)
{
    if (o->opset > 1)
        return byi_import_int(o, "p", 2);
    const double p = byi_import_float(o, "p", 2);
    if (p != (double)(int32_t)p)
        byi_import_refuse(o, "p is %s, expected an integer", BYI_FLOAT_TEXT(p));
    return byi_import_ok(o) ? (int64_t)p : 2;
}

static void convert_lp_pool(struct byi_import *o)
{
    struct onnx_window w = {0};

    const byi_id x = read_pool(o, byi_import_in(o, 0), &w, BYI_MAX_RANK - 2, 0);
    o->out[0] = byi_import_same(o, BYI_OP_NN_LP_POOL, ARGS(x),
                                ATTRS(POOL_ATTRS, AN_INT("p", read_p(o))));
}

static void convert_global_lp_pool_1(struct byi_import *o)
{
    o->out[0] =
        byi_import_emit(o, BYI_OP_NN_GLOBAL_LP_POOL, ARGS(byi_import_in(o, 0)),
                        ATTRS(AN_INT("p", read_p(o))));
}

/* com.microsoft's NhwcMaxPool: channels are the last axis. */
static void convert_nhwc_max_pool(struct byi_import *o)
{
    o->in[0] = byi_import_channels_first(o, byi_import_in(o, 0));
    convert_max_pool(o);
    o->out[0] = byi_import_channels_last(o, o->out[0]);
}

/* Emit a global pool of x. `op` is the operator for one spatial axis; in
 * ops.def the operators for two and three axes follow it. */
static byi_id emit_global_pool(struct byi_import *o, enum byi_op_id op,
                               byi_id x)
{
    const uint32_t n = count_spatial(o, x, 3);

    return byi_import_call(o, (enum byi_op_id)(op + n - 1), x);
}

byi_id byi_import_global_avg_pool(struct byi_import *o, byi_id x)
{
    return emit_global_pool(o, BYI_OP_NN_GLOBAL_AVG_POOL1D, x);
}

static void convert_global_pool(struct byi_import *o)
{
    o->out[0] = emit_global_pool(o, o->row->op, byi_import_in(o, 0));
}

_Static_assert(BYI_OP_NN_GLOBAL_MAX_POOL3D == BYI_OP_NN_GLOBAL_MAX_POOL1D + 2,
               "emit_global_pool relies on the order of ops.def");
_Static_assert(BYI_OP_NN_GLOBAL_AVG_POOL3D == BYI_OP_NN_GLOBAL_AVG_POOL1D + 2,
               "emit_global_pool relies on the order of ops.def");

/* clang-format off */
BYI_ONNX_ROWS(onnx_window, BYI_ONNX,
    {"AveragePool", 1, 1, 1, convert_avg_pool, BYI_OP_NONE},
    {"CausalConvWithState", 27, 2, 4, convert_causal_conv, BYI_OP_NONE},
    {"Conv", 1, 2, 3, convert_conv, BYI_OP_NONE},
    {"ConvTranspose", 1, 2, 3, convert_conv_transpose, BYI_OP_NONE},
    {"GlobalAveragePool", 1, 1, 1, convert_global_pool, BYI_OP_NN_GLOBAL_AVG_POOL1D},
    {"GlobalLpPool", 1, 1, 1, convert_global_lp_pool_1, BYI_OP_NONE},
    {"GlobalLpPool", 2, 1, 1, byi_import_convert_same, BYI_OP_NN_GLOBAL_LP_POOL},
    {"GlobalMaxPool", 1, 1, 1, convert_global_pool, BYI_OP_NN_GLOBAL_MAX_POOL1D},
    {"LpPool", 1, 1, 1, convert_lp_pool, BYI_OP_NONE},
    {"LpPool", 2, 1, 1, convert_lp_pool, BYI_OP_NONE},
    {"MaxPool", 1, 1, 1, convert_max_pool, BYI_OP_NONE},
    {"MaxUnpool", 9, 2, 3, convert_max_unpool, BYI_OP_NONE})

BYI_ONNX_ROWS(microsoft_window, BYI_MICROSOFT,
    {"CausalConvWithState", 1, 2, 4, convert_causal_conv, BYI_OP_NONE},
    {"FusedConv", 1, 2, 4, convert_fused_conv, BYI_OP_NONE},
    {"NhwcMaxPool", 1, 1, 1, convert_nhwc_max_pool, BYI_OP_NONE})
/* clang-format on */
