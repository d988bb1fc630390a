/* ops_quant.c: quantised operators.
 *
 * Those that compute on quantised numbers become floating-point operators
 * between dequantise and quantise; those with integer results subtract the
 * zero points and compute on int32:
 *   MatMulInteger(a, b, za, zb)
 *     -> nn.matmul(cast(%a) - cast(%za), cast(%b) - cast(%zb))
 */
#include "frontend_onnx/import.h"

/* --- to and from quantised numbers ---------------------------------------- */

static byi_id requantize(struct byi_import *o, enum byi_op_id op, byi_id x,
                         byi_id scale, byi_id zero, int64_t axis)
{
    return byi_o_emit(o, op, ARGS(x, scale, zero), ATTRS(AN_INT("axis", axis)));
}

/* The zero point where it is left out: zeros of the scale's shape. */
static byi_id zero_point(struct byi_import *o, enum byoc_dtype dtype)
{
    const byi_id scale = byi_o_in(o, 1), given = byi_o_in(o, 2);

    if (given != BYI_NO_ID)
        return given;
    if (byi_o_rank(o, scale) == 0)
        return byi_o_scalar(o, dtype, 0);
    return byi_o_emit(o, BYI_OP_FULL, ARGS(byi_o_shape_of(o, scale)),
                      ATTRS(A_FLOAT("value", 0.0), A_DTYPE("dtype", dtype)));
}

static void convert_quantize(struct byi_import *o)
{
    o->out[0] = requantize(o, BYI_OP_QUANTIZE, byi_o_in(o, 0), byi_o_in(o, 1),
                           zero_point(o, BYOC_U8), byi_o_int(o, "axis", 1));
}

static void convert_dequantize(struct byi_import *o)
{
    const byi_id x = byi_o_in(o, 0);

    o->out[0] =
        requantize(o, BYI_OP_DEQUANTIZE, x, byi_o_in(o, 1),
                   zero_point(o, byi_o_dtype(o, x)), byi_o_int(o, "axis", 1));
}

/* scale and zero point that spread [min(x, 0), max(x, 0)] over 0 .. 255. */
static void convert_dynamic(struct byi_import *o)
{
    const byi_id x = byi_o_in(o, 0), zero = byi_o_scalar(o, BYOC_F32, 0);
    const struct byi_attr all[] = {A_BOOL("keepdims", false)};
    const byi_id low = byi_o_binary(
        o, BYI_OP_MINIMUM, byi_o_emit(o, BYI_OP_MIN, ARGS(x), 1, all), zero);
    const byi_id high = byi_o_binary(
        o, BYI_OP_MAXIMUM, byi_o_emit(o, BYI_OP_MAX, ARGS(x), 1, all), zero);
    const byi_id scale = byi_o_binary(
        o, BYI_OP_DIVIDE, byi_o_binary(o, BYI_OP_SUBTRACT, high, low),
        byi_o_scalar(o, BYOC_F32, 255));
    const byi_id start = byi_o_binary(
        o, BYI_OP_DIVIDE, byi_o_binary(o, BYI_OP_SUBTRACT, zero, low), scale);
    const byi_id inside =
        byi_o_emit(o, BYI_OP_CLIP, ARGS(start),
                   ATTRS(A_FLOAT("a_min", 0.0), A_FLOAT("a_max", 255.0)));
    const byi_id point = byi_o_cast(
        o, byi_o_emit(o, BYI_OP_ROUND, ARGS(inside), NO_ATTRS), BYOC_U8);

    o->out[0] = requantize(o, BYI_OP_QUANTIZE, x, scale, point, 1);
    if (o->n_out > 1)
        o->out[1] = scale;
    if (o->n_out > 2)
        o->out[2] = point;
}

/* --- integer products ----------------------------------------------------- */

/* Input i as int32, without its zero point, input z: one number, or one for
 * each slice of x that leaves `inner` axes. */
static byi_id centred(struct byi_import *o, uint32_t i, uint32_t z,
                      uint32_t inner)
{
    const byi_id x = byi_o_cast(o, byi_o_in(o, i), BYOC_I32);
    byi_id zero = byi_o_in(o, z);
    int64_t axes[BYI_MAX_RANK];

    if (zero == BYI_NO_ID)
        return x;
    zero = byi_o_cast(o, zero, BYOC_I32);
    if (byi_o_rank(o, zero) == 1 && byi_o_dim(o, zero, 0) != 1) {
        for (uint32_t k = 0; k < inner; k++)
            axes[k] = k + 1;
        zero = byi_o_expand(o, zero, inner, axes);
    }
    return byi_o_binary(o, BYI_OP_SUBTRACT, x, zero);
}

static void convert_matmul_integer(struct byi_import *o)
{
    o->out[0] = byi_o_binary(o, BYI_OP_NN_MATMUL, centred(o, 0, 2, 1),
                             centred(o, 1, 3, 0));
}

static void convert_conv_integer(struct byi_import *o)
{
    const uint32_t rank = byi_o_rank(o, byi_o_in(o, 1));

    o->out[0] = byi_o_conv(o, centred(o, 0, 2, 0),
                           centred(o, 1, 3, rank ? rank - 1 : 0), BYI_NO_ID);
}

/* QLinearConv: x, scale, zero, w, scale, zero, scale, zero of the result,
 * bias: int32, of scale x's times w's. */
static void convert_qlinear_conv(struct byi_import *o)
{
    const byi_id bias = byi_o_in(o, 8);
    const byi_id x = requantize(o, BYI_OP_DEQUANTIZE, byi_o_in(o, 0),
                                byi_o_in(o, 1), byi_o_in(o, 2), 1);
    const byi_id w = requantize(o, BYI_OP_DEQUANTIZE, byi_o_in(o, 3),
                                byi_o_in(o, 4), byi_o_in(o, 5), 0);
    byi_id b = BYI_NO_ID;

    if (bias != BYI_NO_ID)
        b = byi_o_binary(
            o, BYI_OP_MULTIPLY, byi_o_cast(o, bias, BYOC_F32),
            byi_o_binary(o, BYI_OP_MULTIPLY, byi_o_in(o, 1), byi_o_in(o, 4)));
    const byi_id y = byi_o_conv(o, x, w, b);
    o->out[0] =
        requantize(o, BYI_OP_QUANTIZE, y, byi_o_in(o, 6), byi_o_in(o, 7), 1);
}

/* QLinearMatMul: a, scale, zero, b, scale, zero, scale, zero of the result. */
static void convert_qlinear_matmul(struct byi_import *o)
{
    byi_id ab[2];

    for (uint32_t i = 0; i < 2; i++) {
        const byi_id x = byi_o_in(o, 3 * i), scale = byi_o_in(o, 3 * i + 1);
        if (byi_o_ok(o) && byi_o_rank(o, scale) > 1)
            byi_o_refuse(o, "a scale of rank %u", byi_o_rank(o, scale));
        /* scales of a are per row, of b per column */
        const int64_t axis = i == 0 ? (int64_t)byi_o_rank(o, x) - 2 : -1;
        ab[i] = requantize(o, BYI_OP_DEQUANTIZE, x, scale,
                           byi_o_in(o, 3 * i + 2), axis < 0 ? -1 : axis);
    }
    const byi_id y = byi_o_binary(o, BYI_OP_NN_MATMUL, ab[0], ab[1]);
    o->out[0] =
        requantize(o, BYI_OP_QUANTIZE, y, byi_o_in(o, 6), byi_o_in(o, 7), 1);
}

/* clang-format off */
static const struct byi_onnx_op rows[] = {
    {"ConvInteger", 10, 2, 4, convert_conv_integer, BYI_OP_NONE},
    {"DequantizeLinear", 10, 2, 3, convert_dequantize, BYI_OP_NONE},
    {"DynamicQuantizeLinear", 11, 1, 1, convert_dynamic, BYI_OP_NONE},
    {"MatMulInteger", 10, 2, 4, convert_matmul_integer, BYI_OP_NONE},
    {"QLinearConv", 10, 8, 9, convert_qlinear_conv, BYI_OP_NONE},
    {"QLinearMatMul", 10, 8, 8, convert_qlinear_matmul, BYI_OP_NONE},
    {"QuantizeLinear", 10, 2, 3, convert_quantize, BYI_OP_NONE},
};
/* clang-format on */

const struct byi_onnx_table byi_onnx_quant = {rows, BYI_COUNT(rows)};
