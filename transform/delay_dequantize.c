/* SPDX-License-Identifier: Apache-2.0 */
/* DelayDequantize: move dequantize behind operators that only move elements.
 * requires: nothing
 *
 *   %0 = qnn.dequantize(%x, const, const);       %0 = transpose(%x);
 *   %1 = transpose(%0);                    ==>   %1 = qnn.dequantize(%0, const,
 *   nn.conv2d(%1, const)                             const);
 *                                                nn.conv2d(%1, const)
 *
 * The operators then move bytes, and a product, a sum or a quantize that
 * follows reads dequantised integers, which integer kernels need. A quantize of
 * a dequantize with the same scale and zero point goes away. Each element of
 * the result is computed as before, so the results are the same bit for bit.
 * Concatenations need operands with one scale and zero point. A maximum selects
 * an element, too, since scales are positive. A compile runs this before
 * backends match products with their dequantize.
 */
#include "transform.h"

#include <float.h>
#include <math.h>

#include "quantized.h"

/* Whether both are integers of one type, scale and zero point. */
static bool is_same_quantized(const struct byi_rewrite *rw,
                              const struct byi_quantized *a,
                              const struct byi_quantized *b)
{
    return a->scale == b->scale && a->zero == b->zero &&
           byi_rw_tensor(rw, a->integers)->dtype ==
               byi_rw_tensor(rw, b->integers)->dtype;
}

/* --- padding -------------------------------------------------------------- */

static bool pads_constant(const struct byi_rewrite *rw, byi_id pad)
{
    return strcmp(byi_attr_string(byi_rw_node(rw, pad)->attrs, "mode"),
                  "constant") == 0;
}

/* The integer to which `value` is quantised. */
static double quantize_value(const struct byi_rewrite *rw,
                             const struct byi_quantized *q, double value)
{
    const bool is_signed = byi_rw_tensor(rw, q->integers)->dtype == BYOC_I8;
    const double low = is_signed ? INT8_MIN : 0;
    const float units = rintf((float)value / (float)q->scale);
    return fmin(fmax((double)units + q->zero, low), low + UINT8_MAX);
}

/* Emit the value with which nn.pad `at` pads the integers q. Returns
 * BYI_NO_ID if the value is not a constant, if `rounds` is false and no integer
 * represents the value exactly, or if passes may make no more constants. */
static byi_id pad_integer(struct byi_rewrite *rw, byi_id at,
                          const struct byi_quantized *q, bool rounds)
{
    double value = 0, integer = q->zero;
    struct byi_tensor t;
    if (pads_constant(rw, at)) {
        if (!byi_read_number(rw, byi_rw_arg(rw, at, 2), &value))
            return BYI_NO_ID;
        integer = quantize_value(rw, q, value);
        const bool is_negative_zero = value == 0 && signbit(value);
        if (!rounds &&
            (is_negative_zero ||
             (float)(integer - q->zero) * (float)q->scale != (float)value))
            return BYI_NO_ID;
    }
    const struct byi_type *type = byi_type_tensor(
        rw->m->arena, byi_rw_tensor(rw, q->integers)->dtype, 0, NULL);
    if (!byi_rw_alloc(rw, type, &t))
        return BYI_NO_ID;
    byi_tensor_set(&t, 0, integer);
    return byi_rw_const(rw, type, &t);
}

/* --- moving dequantize ---------------------------------------------------- */

/* Whether every window of a pool covers an element of the data, for any size of
 * the data; the maximum of an empty window depends on the type. This holds if
 * the extent of the window exceeds the sum of the padding on both sides. If its
 * taps have gaps, the window must also start on data. */
static bool covers_data(const struct byi_node *pool)
{
    uint32_t n, n_padding;
    const int64_t *size = byi_attr_ints(pool->attrs, "pool_size", &n);
    const int64_t *dilation = byi_attr_ints(pool->attrs, "dilation", &n);
    const int64_t *padding = byi_attr_ints(pool->attrs, "padding", &n_padding);
    for (uint32_t i = 0; i < n; i++)
        if (padding[i] + padding[n + i] > (size[i] - 1) * dilation[i] ||
            (dilation[i] > 1 && padding[i] > 0))
            return false;
    return true;
}

/* Returns n if every element of `node` is an element of one of its first n
 * operands, or padding; otherwise 0. */
static uint32_t n_moved_operands(const struct byi_node *node)
{
    if (node->kind != BYI_CALL_OP || node->type->kind != BYI_TENSOR)
        return 0;
    switch (node->op) {
    case BYI_OP_RESHAPE:
    case BYI_OP_FLATTEN:
    case BYI_OP_SQUEEZE:
    case BYI_OP_EXPAND_DIMS:
    case BYI_OP_TRANSPOSE:
    case BYI_OP_STRIDED_SLICE:
    case BYI_OP_TAKE:
    case BYI_OP_TILE:
    case BYI_OP_DEPTH_TO_SPACE:
    case BYI_OP_SPACE_TO_DEPTH:
    case BYI_OP_NN_PAD:
        return 1;
    case BYI_OP_RESIZE: /* tf_crop_and_resize also writes a value of its own */
        return strcmp(byi_attr_string(node->attrs, "mode"), "nearest") == 0 &&
               strcmp(byi_attr_string(node->attrs,
                                      "coordinate_transformation_mode"),
                      "tf_crop_and_resize") != 0;
    case BYI_OP_NN_MAX_POOL1D:
    case BYI_OP_NN_MAX_POOL2D:
    case BYI_OP_NN_MAX_POOL3D:
        return covers_data(node);
    case BYI_OP_CONCATENATE:
        return node->n_args;
    default:
        return 0;
    }
}

/* Emit the dequantize of `integers` with the scale and zero point of the
 * dequantize `like`. */
static byi_id dequantize_like(struct byi_rewrite *rw, byi_id integers,
                              byi_id like)
{
    const byi_id args[] = {
        integers, byi_rw_const_as(rw, byi_rw_arg(rw, like, 1), 0, NULL),
        byi_rw_const_as(rw, byi_rw_arg(rw, like, 2), 0, NULL)};
    return byi_rw_call(rw, BYI_OP_DEQUANTIZE, args, 3, NULL, 0);
}

/* move(dequantize(x), ...)  ==>  dequantize(move(x, ...)) */
static byi_id delay_dequantize(struct byi_rewrite *rw, byi_id at)
{
    enum { MAX_OPERANDS = 64 };
    const struct byi_node node = *byi_rw_node(rw, at);
    const uint32_t n = n_moved_operands(&node);
    struct byi_quantized x, first;
    byi_id args[MAX_OPERANDS];
    if (n == 0 || node.n_args > MAX_OPERANDS)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < node.n_args; i++) {
        args[i] = node.args[i];
        if (i >= n)
            continue;
        if (!byi_read_quantized(rw, args[i], BYI_OP_DEQUANTIZE, &x))
            return BYI_NO_ID;
        if (i == 0)
            first = x;
        if (!is_same_quantized(rw, &x, &first))
            return BYI_NO_ID;
        args[i] = x.integers;
    }
    if (node.op == BYI_OP_NN_PAD)
        args[2] = pad_integer(rw, at, &first, false);
    return dequantize_like(rw, byi_rw_call_like(rw, at, args), node.args[0]);
}

/* Field i of split(dequantize(x))  ==>  dequantize of a slice of x */
static byi_id delay_split(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node get = *byi_rw_node(rw, at);
    struct byi_quantized x;
    if (get.kind != BYI_GET || !byi_rw_is(rw, get.args[0], BYI_OP_SPLIT))
        return BYI_NO_ID;
    const struct byi_node split = *byi_rw_node(rw, get.args[0]);
    const struct byi_attr *sizes = byi_attr_find(split.attrs, "sizes");
    if (!sizes || get.index >= sizes->n ||
        !byi_read_quantized(rw, split.args[0], BYI_OP_DEQUANTIZE, &x))
        return BYI_NO_ID;
    int64_t axis = byi_attr_int(split.attrs, "axis"), begin = 0, step = 1;
    axis += axis < 0 ? byi_rw_tensor(rw, x.integers)->rank : 0;
    for (uint32_t i = 0; i < get.index; i++)
        begin += sizes->ints[i];
    const int64_t end = begin + sizes->ints[get.index];
    const byi_id args[] = {x.integers, byi_rw_int_vector(rw, &begin, 1),
                           byi_rw_int_vector(rw, &end, 1),
                           byi_rw_int_vector(rw, &axis, 1),
                           byi_rw_int_vector(rw, &step, 1)};
    return dequantize_like(
        rw, byi_rw_call(rw, BYI_OP_STRIDED_SLICE, args, 5, NULL, 0),
        split.args[0]);
}

/* --- removing quantize ---------------------------------------------------- */

/* quantize(dequantize(x))  ==>  x, and quantize(pad(dequantize(x)))  ==>
 * pad(x), with one scale and zero point. The scale must be far from the ends of
 * float32's range, so that products with it are precise. */
static byi_id remove_quantize(struct byi_rewrite *rw, byi_id at)
{
    struct byi_quantized x, y;
    byi_id from = byi_rw_arg(rw, at, 0);
    const bool pads = byi_rw_is(rw, from, BYI_OP_NN_PAD);
    const byi_id pad = from;
    if (pads)
        from = byi_rw_arg(rw, pad, 0);
    if (!byi_read_quantized(rw, at, BYI_OP_QUANTIZE, &y) ||
        !byi_read_quantized(rw, from, BYI_OP_DEQUANTIZE, &x) ||
        !is_same_quantized(rw, &x, &y) || x.scale < 0x1p-100 ||
        x.scale > 0x1p100)
        return BYI_NO_ID;
    if (!pads)
        return x.integers;
    const byi_id args[] = {x.integers, byi_rw_arg(rw, pad, 1),
                           pad_integer(rw, pad, &x, true)};
    return byi_rw_call_like(rw, pad, args);
}

static const struct byi_rule rules[] = {
    {BYI_OP_NONE, delay_dequantize},
    {BYI_OP_NONE, delay_split},
    {BYI_OP_QUANTIZE, remove_quantize},
    {0},
};

const struct byi_pass byi_pass_delay_dequantize = {
    .name = "DelayDequantize",
    .summary = "move dequantize behind operators that only move elements",
    .opt_level = 1,
    .data = rules,
    .run_func = byi_rules_run,
};
