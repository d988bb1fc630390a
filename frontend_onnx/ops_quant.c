/* SPDX-License-Identifier: Apache-2.0 */
/* ops_quant.c: converts quantised operators.
 *
 * Operators on quantised numbers become floating-point operators between
 * dequantise and quantise (QDQ). Integer products subtract the zero points and
 * compute in int32, also if their results are then scaled to float32:
 *   MatMulInteger(a, b, za, zb)
 *     -> nn.matmul(cast(%a) - cast(%za), cast(%b) - cast(%zb))
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* --- quantise and dequantise ---------------------------------------------- */

/* Returns `id` as a scalar if it is a vector of one element or, as the size is
 * known only at run time, may be one. */
static byi_id one_as_scalar(struct byi_import *o, byi_id id)
{
    const int64_t n =
        byi_import_rank(o, id) == 1 ? byi_import_dim(o, id, 0) : 0;

    return n == 1 || BYI_IS_SYMBOL(n) ? byi_import_as_scalar(o, id) : id;
}

/* Emit `op`, quantize or dequantize. A scale and a zero point of one element
 * may differ in rank in the model, but not in the IR. If `axis` is not an axis
 * of x, each has one element. */
static byi_id emit_qdq(struct byi_import *o, enum byi_op_id op, byi_id x,
                       byi_id scale, byi_id zero, int64_t axis)
{
    const int64_t rank = byi_import_rank(o, x);

    if (byi_import_rank(o, scale) != byi_import_rank(o, zero) || axis >= rank ||
        axis < -rank) {
        scale = one_as_scalar(o, scale);
        zero = one_as_scalar(o, zero);
    }
    return byi_import_emit(o, op, ARGS(x, scale, zero),
                           ATTRS(AN_INT("axis", axis)));
}

/* Returns the zero point `zero`, or zeros of the scale's shape if it is
 * omitted. */
static byi_id make_zero_point(struct byi_import *o, byi_id scale, byi_id zero,
                              enum byoc_dtype dtype)
{
    if (zero != BYI_NO_ID)
        return zero;
    if (byi_import_rank(o, scale) == 0)
        return byi_import_scalar(o, dtype, 0);
    return byi_import_emit(
        o, BYI_OP_FULL, ARGS(byi_import_shape_of(o, scale)),
        ATTRS(A_FLOAT("value", 0.0), A_DTYPE("dtype", dtype)));
}

/* QuantizeLinear and DequantizeLinear with the features of opset 19 and later:
 * blocks, 8-bit floats, result types. */
static void emit_qdq_blocks(struct byi_import *o, enum byi_op_id op,
                            byi_id scale, enum byoc_dtype dtype)
{
    const byi_id args[] = {
        byi_import_in(o, 0), scale,
        make_zero_point(o, scale, byi_import_in(o, 2), dtype)};
    const int64_t axis = byi_import_int(o, "axis", 1);
    const int64_t block = byi_import_int(o, "block_size", 0);
    const bool saturate =
        op == BYI_OP_DEQUANTIZE || byi_import_int(o, "saturate", 1) != 0;
    const struct byi_attr attrs[] = {AN_INT("axis", axis),
                                     AN_INT("block_size", block),
                                     A_BOOL("saturate", saturate)};

    if (block == 0 && saturate)
        o->out[0] = emit_qdq(o, op, args[0], args[1], args[2], axis);
    else
        o->out[0] = byi_import_emit(o, op, 3, args,
                                    op == BYI_OP_QUANTIZE ? 3 : 2, attrs);
}

/* Cast a scale of int32, or of at most 8 bits, to a float type that holds all
 * its values. */
static byi_id cast_scale(struct byi_import *o, byi_id scale)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, scale);

    return dtype == BYOC_I32        ? byi_import_cast(o, scale, BYOC_F64)
           : byi_narrow_bits(dtype) ? byi_import_cast(o, scale, BYOC_F32)
                                    : scale;
}

static void convert_quantize(struct byi_import *o)
{
    const enum byoc_dtype precision =
        byi_import_dtype_attr(o, "precision", BYOC_F32);

    if (precision != BYOC_F32)
        byi_import_refuse(o, "precision is %s, expected float32",
                          byoc_dtype_name(precision));
    emit_qdq_blocks(o, BYI_OP_QUANTIZE, cast_scale(o, byi_import_in(o, 1)),
                    byi_import_dtype_attr(o, "output_dtype", BYOC_U8));
}

/* The result has the scale's type unless output_dtype names another. */
static void convert_dequantize(struct byi_import *o)
{
    const byi_id scale = cast_scale(o, byi_import_in(o, 1));
    const enum byoc_dtype dtype =
        byi_import_dtype_attr(o, "output_dtype", byi_import_dtype(o, scale));

    emit_qdq_blocks(o, BYI_OP_DEQUANTIZE, byi_import_cast(o, scale, dtype),
                    byi_import_dtype(o, byi_import_in(o, 0)));
}

/* Quantise x to uint8 with the scale and zero point that map [min(x, 0), max(x,
 * 0)] to 0 .. 255. The scale is 1 if x is all zeros. The divisor depends on x,
 * since passes replace a constant one by its rounded reciprocal. The scale
 * could then differ in its last bit, and elements halfway between two integers
 * by one. */
static byi_id quantize_dynamically(struct byi_import *o, byi_id x,
                                   byi_id *scale, byi_id *zero)
{
    static const char text[] =
        "fn (%x) {"
        "  %low = minimum(min(%x, keepdims=false), 0);"
        "  %high = maximum(max(%x, keepdims=false), 0);"
        "  %spread = subtract(%high, %low);"
        "  %zeros = equal(%spread, 0);"
        "  %size = where(%zeros, 1, %spread);"
        "  %scale = divide(%size, where(%zeros, %size, 255));"
        "  %start = divide(subtract(0, %low), %scale);"
        "  (%scale, cast(round(clip(%start, a_min=0, a_max=255)),"
        "                dtype=\"uint8\"))"
        "}";
    byi_id results[2];

    byi_import_template_results(o, text, ARGS(x), NO_ATTRS, 2, results);
    *scale = results[0];
    *zero = results[1];
    return emit_qdq(o, BYI_OP_QUANTIZE, x, results[0], results[1], 1);
}

static void convert_dynamic_quantize(struct byi_import *o)
{
    byi_id scale, zero;

    o->out[0] = quantize_dynamically(o, byi_import_in(o, 0), &scale, &zero);
    if (o->n_out > 1)
        o->out[1] = scale;
    if (o->n_out > 2)
        o->out[2] = zero;
}

/* --- integer products ----------------------------------------------------- */

/* Emit x - zero in int32. The zero point is omitted, per-tensor, or per-channel
 * with `inner` axes of x after the channel axis. */
static byi_id emit_centred(struct byi_import *o, byi_id x, byi_id zero,
                           uint32_t inner)
{
    x = byi_import_cast(o, x, BYOC_I32);
    if (zero == BYI_NO_ID)
        return x;
    zero = byi_import_cast(o, zero, BYOC_I32);
    if (byi_import_rank(o, zero) == 1 && byi_import_dim(o, zero, 0) != 1) {
        zero = byi_import_add_axes(o, zero, 1, inner);
    }
    return byi_import_call(o, BYI_OP_SUBTRACT, x, zero);
}

static void convert_matmul_integer(struct byi_import *o)
{
    const byi_id b =
        emit_centred(o, byi_import_in(o, 1), byi_import_in(o, 3), 0);
    o->out[0] = byi_import_call(
        o, BYI_OP_NN_MATMUL,
        emit_centred(o, byi_import_in(o, 0), byi_import_in(o, 2), 1), b);
}

static void convert_conv_integer(struct byi_import *o)
{
    const uint32_t rank = byi_import_rank(o, byi_import_in(o, 1));
    const byi_id weights = emit_centred(
        o, byi_import_in(o, 1), byi_import_in(o, 3), rank ? rank - 1 : 0);
    o->out[0] = byi_import_conv(
        o, emit_centred(o, byi_import_in(o, 0), byi_import_in(o, 2), 0),
        weights, BYI_NO_ID);
}

/* Scale an integer product, or its int32 bias, to float32. */
static const char scaled_product[] =
    "fn (%x, %a_scale, %b_scale) {"
    "  multiply(cast(%x, dtype=\"float32\"), multiply(%a_scale, %b_scale))"
    "}";

/* QLinearConv: x, scale, zero, w, scale, zero, scale, zero of the result, bias
 * (int32, its scale is x's times w's). com.microsoft's may have x and the
 * result with the channels last. */
static void convert_qlinear_conv(struct byi_import *o)
{
    const bool last = byi_import_int(o, "channels_last", 0) != 0;
    const byi_id bias = byi_import_in(o, 8);
    byi_id x = emit_qdq(o, BYI_OP_DEQUANTIZE, byi_import_in(o, 0),
                        byi_import_in(o, 1), byi_import_in(o, 2), 1);
    const byi_id w = emit_qdq(o, BYI_OP_DEQUANTIZE, byi_import_in(o, 3),
                              byi_import_in(o, 4), byi_import_in(o, 5), 0);
    byi_id b = BYI_NO_ID;

    if (bias != BYI_NO_ID)
        b = byi_import_template(
            o, scaled_product,
            ARGS(bias, byi_import_in(o, 1), byi_import_in(o, 4)), NO_ATTRS);
    if (last)
        x = byi_import_channels_first(o, x);
    byi_id y = byi_import_conv(o, x, w, b);
    if (last)
        y = byi_import_channels_last(o, y);
    o->out[0] = emit_qdq(o, BYI_OP_QUANTIZE, y, byi_import_in(o, 6),
                         byi_import_in(o, 7), 1);
}

/* Emit a vector of the elements of `id`, a scale or zero point, if all its axes
 * but `axis`, which is negative, have size 1. Returns `id` if not. */
static byi_id flatten_scale(struct byi_import *o, byi_id id, int64_t axis)
{
    const uint32_t rank = byi_import_rank(o, id);

    for (uint32_t i = 0; i < rank; i++)
        if (i != axis + rank && byi_import_dim(o, id, i) != 1)
            return id;
    return rank < 2 ? id : byi_import_reshape_to(o, id, INTS(-1));
}

/* Dequantise input i, a matrix or a stack of them. There is one scale, one for
 * each index of `axis` (a's rows or b's columns), or one for each index of
 * `axis` in each matrix; these have a's or b's shape with size 1 in the other
 * axis. */
static byi_id dequantize_matrix(struct byi_import *o, uint32_t i, int64_t axis)
{
    const byi_id x = byi_import_in(o, i),
                 scale = flatten_scale(o, byi_import_in(o, i + 1), axis),
                 zero = flatten_scale(o, byi_import_in(o, i + 2), axis);

    if (byi_import_rank(o, scale) < 2 && byi_import_rank(o, zero) < 2)
        return emit_qdq(o, BYI_OP_DEQUANTIZE, x, scale, zero, axis);
    const byi_id centred =
        byi_import_call(o, BYI_OP_SUBTRACT, byi_import_cast(o, x, BYOC_F32),
                        byi_import_cast(o, zero, BYOC_F32));
    return byi_import_call(
        o, BYI_OP_MULTIPLY,
        byi_import_cast(o, centred, byi_import_dtype(o, scale)), scale);
}

/* QLinearMatMul: a, scale, zero, b, scale, zero, scale, zero of the result. */
static void convert_qlinear_matmul(struct byi_import *o)
{
    const byi_id a = dequantize_matrix(o, 0, -2);
    const byi_id b = dequantize_matrix(o, 3, -1);
    const byi_id y = byi_import_call(o, BYI_OP_NN_MATMUL, a, b);
    const byi_id scale = flatten_scale(o, byi_import_in(o, 6), -2);
    const byi_id zero = flatten_scale(o, byi_import_in(o, 7), -2);

    o->out[0] = emit_qdq(o, BYI_OP_QUANTIZE, y, scale, zero, -2);
}

/* --- com.microsoft -------------------------------------------------------- */

/* Dequantise inputs i, i + 1, i + 2: numbers, scale, zero point. */
static byi_id dequantize_inputs(struct byi_import *o, uint32_t i)
{
    const byi_id x = byi_import_in(o, i), scale = byi_import_in(o, i + 1);

    return emit_qdq(o, BYI_OP_DEQUANTIZE, x, scale,
                    make_zero_point(o, scale, byi_import_in(o, i + 2),
                                    byi_import_dtype(o, x)),
                    1);
}

/* Quantise y with the scale and zero point in inputs i and i + 1. Without a
 * zero point the result has the type of input `like`. */
static byi_id quantize_result(struct byi_import *o, byi_id y, uint32_t i,
                              uint32_t like)
{
    const byi_id scale = byi_import_in(o, i);

    return emit_qdq(
        o, BYI_OP_QUANTIZE, y, scale,
        make_zero_point(o, scale, byi_import_in(o, i + 1),
                        byi_import_dtype(o, byi_import_in(o, like))),
        1);
}

/* QLinearAdd, QLinearMul: a, scale, zero, b, scale, zero, scale, zero. */
static void convert_qlinear_binary(struct byi_import *o)
{
    const byi_id b = dequantize_inputs(o, 3);
    o->out[0] = quantize_result(
        o, byi_import_call(o, o->row->op, dequantize_inputs(o, 0), b), 6, 0);
}

/* A function of one operand: x, scale, zero, scale, zero. */
static void convert_qlinear_unary(struct byi_import *o)
{
    const byi_id x = dequantize_inputs(o, 0);

    o->out[0] = quantize_result(
        o, byi_import_same(o, o->row->op, ARGS(x), NO_ATTRS), 3, 0);
}

static void convert_qlinear_pool(struct byi_import *o)
{
    const bool last = byi_import_int(o, "channels_last", 0) != 0;
    const byi_id x = last
                         ? byi_import_channels_first(o, dequantize_inputs(o, 0))
                         : dequantize_inputs(o, 0);
    const bool global = strcmp(o->row->type, "QLinearGlobalAveragePool") == 0;
    const byi_id y =
        global ? byi_import_global_avg_pool(o, x) : byi_import_avg_pool(o, x);

    o->out[0] =
        quantize_result(o, last ? byi_import_channels_last(o, y) : y, 3, 0);
}

/* QLinearSoftmax has the opset of its Softmax as an attribute: before 13, axes
 * from `axis` on are flattened. */
static void convert_qlinear_softmax(struct byi_import *o)
{
    const bool flattens = byi_import_int(o, "opset", 13) < 13;
    const int64_t axis = byi_import_int(o, "axis", flattens ? 1 : -1);
    const byi_id x = dequantize_inputs(o, 0);

    o->out[0] = quantize_result(
        o,
        flattens ? byi_import_softmax_from(o, BYI_OP_NN_SOFTMAX, x, axis)
                 : byi_import_emit(o, BYI_OP_NN_SOFTMAX, ARGS(x),
                                   ATTRS(AN_INT("axis", axis))),
        3, 0);
}

/* QLinearConcat: scale, zero point of the result, then x, scale, zero point of
 * each operand. */
static void convert_qlinear_concat(struct byi_import *o)
{
    const uint32_t n = o->n_in >= 2 ? (o->n_in - 2) / 3 : 0;
    byi_id *parts = byi_arena_calloc(o->scratch, n + 1, sizeof *parts);

    if (n == 0 || o->n_in != 3 * n + 2)
        byi_import_fail(o, BYOC_EPARSE,
                        "found %u inputs, expected 2 + 3 per operand", o->n_in);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = dequantize_inputs(o, 2 + 3 * i);
    const byi_id y = byi_import_same(o, BYI_OP_CONCATENATE, n, parts, NO_ATTRS);
    o->out[0] = quantize_result(o, y, 0, 2);
}

/* Emit the matrix product of a QGemm, with the transpositions of its
 * attributes.
 */
static byi_id emit_qgemm_product(struct byi_import *o, byi_id a, byi_id b)
{
    return byi_import_emit(
        o, BYI_OP_NN_MATMUL, ARGS(a, b),
        ATTRS(A_BOOL("transpose_a", byi_import_int(o, "transA", 0) != 0),
              A_BOOL("transpose_b", byi_import_int(o, "transB", 0) != 0)));
}

/* Emit a QGemm as a product of dequantised operands, which backends match. */
static byi_id emit_qgemm_floats(struct byi_import *o, byi_id a_scale)
{
    const byi_id a = byi_import_in(o, 0), b = byi_import_in(o, 3),
                 c = byi_import_in(o, 6), scale = byi_import_in(o, 4);
    const byi_id a_zero = make_zero_point(o, a_scale, byi_import_in(o, 2),
                                          byi_import_dtype(o, a));
    const byi_id left = emit_qdq(o, BYI_OP_DEQUANTIZE, a, a_scale, a_zero, 1);
    const byi_id b_zero =
        make_zero_point(o, scale, byi_import_in(o, 5), byi_import_dtype(o, b));
    const byi_id right = emit_qdq(o, BYI_OP_DEQUANTIZE, b, scale, b_zero,
                                  byi_import_int(o, "transB", 0) != 0 ? 0 : 1);
    const byi_id y = emit_qgemm_product(o, left, right);

    if (c == BYI_NO_ID)
        return y;
    return byi_import_call(o, BYI_OP_ADD, y,
                           byi_import_template(o, scaled_product,
                                               ARGS(c, a_scale, scale),
                                               NO_ATTRS));
}

/* Emit a QGemm as ONNX Runtime computes it: the sums are exact, and one factor
 * scales each sum: (alpha a_scale b_scale) / y_scale. Sums of floats round each
 * term, so a sum halfway between two results may round the other way. */
static byi_id emit_qgemm_integers(struct byi_import *o, byi_id a_scale)
{
    static const char scaled[] =
        "fn (%sums, %scale) {"
        "  multiply(cast(%sums, dtype=\"float32\"), %scale)"
        "}";
    const byi_id c = byi_import_in(o, 6), y_scale = byi_import_in(o, 7);
    const bool transpose_b = byi_import_int(o, "transB", 0) != 0;
    const byi_id a =
        emit_centred(o, byi_import_in(o, 0), byi_import_in(o, 2), 0);
    const byi_id b =
        emit_centred(o, byi_import_in(o, 3), byi_import_in(o, 5), transpose_b);
    byi_id sums = emit_qgemm_product(o, a, b);
    byi_id scale =
        byi_import_call(o, BYI_OP_MULTIPLY, a_scale, byi_import_in(o, 4));

    if (c != BYI_NO_ID)
        sums = byi_import_call(o, BYI_OP_ADD, sums, c);
    if (y_scale != BYI_NO_ID)
        scale = byi_import_call(o, BYI_OP_DIVIDE, scale, y_scale);
    return byi_import_template(o, scaled, ARGS(sums, scale), NO_ATTRS);
}

/* QGemm: a, scale, zero, b, scale, zero, c (int32, its scale is the product's),
 * scale, zero of the result, which is float32 without a scale. b's scale and
 * zero point may be one for each column. */
static void convert_qgemm(struct byi_import *o)
{
    const double alpha = byi_import_float(o, "alpha", 1.0);
    const byi_id a_scale = byi_import_scale(o, byi_import_in(o, 1), alpha);
    const byi_id y_scale = byi_import_in(o, 7);

    /* backends match products of operands with constant, positive scales */
    if (alpha > 0 && byi_import_is_const(o, 1) && byi_import_is_const(o, 4)) {
        const byi_id y = emit_qgemm_floats(o, a_scale);
        o->out[0] = y_scale == BYI_NO_ID ? y : quantize_result(o, y, 7, 0);
        return;
    }
    o->out[0] = emit_qgemm_integers(o, a_scale);
    if (y_scale == BYI_NO_ID)
        return;
    const byi_id one = byi_import_scalar(o, BYOC_F32, 1);
    const byi_id zero =
        make_zero_point(o, y_scale, byi_import_in(o, 8),
                        byi_import_dtype(o, byi_import_in(o, 0)));
    o->out[0] = emit_qdq(o, BYI_OP_QUANTIZE, o->out[0], one, zero, 1);
}

/* QLinearWhere: condition, x, scale, zero, y, scale, zero, scale, zero of the
 * result. */
static void convert_qlinear_where(struct byi_import *o)
{
    const byi_id y =
        byi_import_call(o, BYI_OP_WHERE, byi_import_in(o, 0),
                        dequantize_inputs(o, 1), dequantize_inputs(o, 4));

    o->out[0] = quantize_result(o, y, 7, 1);
}

/* Emit the integer product in float32: times both scales, plus the bias. */
static byi_id emit_integer_product(struct byi_import *o, byi_id a, byi_id b,
                                   byi_id a_scale, byi_id b_scale, byi_id bias)
{
    const byi_id scaled = byi_import_template(
        o, scaled_product,
        ARGS(byi_import_call(o, BYI_OP_NN_MATMUL, a, b), a_scale, b_scale),
        NO_ATTRS);

    return bias == BYI_NO_ID ? scaled
                             : byi_import_call(o, BYI_OP_ADD, scaled, bias);
}

/* MatMulIntegerToFloat: a, b, their scales, their zero points, bias. */
static void convert_matmul_to_float(struct byi_import *o)
{
    const byi_id b =
        emit_centred(o, byi_import_in(o, 1), byi_import_in(o, 5), 0);
    o->out[0] = emit_integer_product(
        o, emit_centred(o, byi_import_in(o, 0), byi_import_in(o, 4), 1), b,
        byi_import_in(o, 2), byi_import_in(o, 3), byi_import_in(o, 6));
}

/* DynamicQuantizeMatMul: a in float32, b, its scale and zero point, bias. */
static void convert_dynamic_matmul(struct byi_import *o)
{
    byi_id scale, zero;
    const byi_id a =
        quantize_dynamically(o, byi_import_in(o, 0), &scale, &zero);
    const byi_id b =
        emit_centred(o, byi_import_in(o, 1), byi_import_in(o, 3), 0);

    o->out[0] = emit_integer_product(o, emit_centred(o, a, zero, 1), b, scale,
                                     byi_import_in(o, 2), byi_import_in(o, 4));
}

/* clang-format off */
BYI_ONNX_ROWS(microsoft_quant, BYI_MICROSOFT,
    {"DequantizeLinear", 1, 2, 3, convert_dequantize, BYI_OP_NONE},
    {"DynamicQuantizeMatMul", 1, 3, 5, convert_dynamic_matmul, BYI_OP_NONE},
    {"MatMulIntegerToFloat", 1, 4, 7, convert_matmul_to_float, BYI_OP_NONE},
    {"QGemm", 1, 6, 9, convert_qgemm, BYI_OP_NONE},
    {"QLinearAdd", 1, 2, 8, convert_qlinear_binary, BYI_OP_ADD},
    {"QLinearAveragePool", 1, 2, 5, convert_qlinear_pool, BYI_OP_NONE},
    {"QLinearConcat", 1, 2, BYI_MAX_ARGS, convert_qlinear_concat, BYI_OP_NONE},
    {"QLinearConv", 1, 8, 9, convert_qlinear_conv, BYI_OP_NONE},
    {"QLinearGlobalAveragePool", 1, 2, 5, convert_qlinear_pool, BYI_OP_NONE},
    {"QLinearLeakyRelu", 1, 2, 5, convert_qlinear_unary, BYI_OP_NN_LEAKY_RELU},
    {"QLinearMul", 1, 2, 8, convert_qlinear_binary, BYI_OP_MULTIPLY},
    {"QLinearSigmoid", 1, 2, 5, convert_qlinear_unary, BYI_OP_SIGMOID},
    {"QLinearSoftmax", 1, 2, 5, convert_qlinear_softmax, BYI_OP_NONE},
    {"QLinearWhere", 1, 9, 9, convert_qlinear_where, BYI_OP_NONE},
    {"QuantizeLinear", 1, 2, 3, convert_quantize, BYI_OP_NONE})

BYI_ONNX_ROWS(onnx_quant, BYI_ONNX,
    {"ConvInteger", 10, 2, 4, convert_conv_integer, BYI_OP_NONE},
    {"DequantizeLinear", 10, 2, 3, convert_dequantize, BYI_OP_NONE},
    {"DynamicQuantizeLinear", 11, 1, 1, convert_dynamic_quantize, BYI_OP_NONE},
    {"MatMulInteger", 10, 2, 4, convert_matmul_integer, BYI_OP_NONE},
    {"QLinearConv", 10, 8, 9, convert_qlinear_conv, BYI_OP_NONE},
    {"QLinearMatMul", 10, 8, 8, convert_qlinear_matmul, BYI_OP_NONE},
    {"QuantizeLinear", 10, 2, 3, convert_quantize, BYI_OP_NONE})
/* clang-format on */
