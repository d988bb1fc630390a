/* SPDX-License-Identifier: Apache-2.0 */
/* ops_element.c: converts elementwise operators: arithmetic, comparisons,
 * activations.
 *
 * Add(a, b) -> add(%a, %b); before opset 7 b is aligned with an axis of a:
 * Add(a, b, axis=1) -> add(%a, expand_dims(%b, axis=[1, 2])).
 */
#include "frontend_onnx/import.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void convert_identity(struct byi_import *o)
{
    o->out[0] = byi_import_in(o, 0);
}

/* Before opset 7, attribute `axis` is the axis of a that the first axis of b is
 * aligned with. */
static void convert_binary_1(struct byi_import *o)
{
    const byi_id a = byi_import_in(o, 0);
    byi_id b = byi_import_in(o, 1);
    const int64_t ra = byi_import_rank(o, a), rb = byi_import_rank(o, b);
    const bool has_axis = byi_import_has_attr(o, "axis");
    int64_t axis = byi_import_int(o, "axis", 0);

    byi_import_int(o, "broadcast", 0);
    axis = axis < 0 ? axis + ra : axis;
    if (has_axis && rb > 0 && axis < ra - rb && axis >= 0) {
        b = byi_import_add_axes(o, b, (uint32_t)rb, (uint32_t)(ra - axis - rb));
    } else if (has_axis && (axis > ra - rb || axis < 0)) {
        byi_import_fail(o, BYOC_ETYPE,
                        "b of rank %lld at axis %lld does not fit rank %lld, "
                        "expected an axis of 0 to %lld",
                        (long long)rb, (long long)axis, (long long)ra,
                        (long long)(ra - rb));
    }
    o->out[0] = byi_import_call(o, o->row->op, a, b);
}

/* Convert an operator of any number of inputs, such as Max or Sum, to a chain
 * of binary operators. */
static void convert_chain(struct byi_import *o)
{
    byi_id y = byi_import_in(o, 0);

    for (uint32_t i = 1; i < o->n_in; i++) {
        if (o->in[i] == BYI_NO_ID)
            byi_import_fail(o, BYOC_EPARSE,
                            "input %u is omitted, expected a value", i);
        y = byi_import_call(o, o->row->op, y, byi_import_in(o, i));
    }
    o->out[0] = y;
}

static void convert_mean(struct byi_import *o)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, byi_import_in(o, 0));

    convert_chain(o);
    if (o->n_in > 1)
        o->out[0] =
            byi_import_call(o, BYI_OP_DIVIDE, o->out[0],
                            byi_import_scalar(o, dtype, (double)o->n_in));
}

static void convert_shift(struct byi_import *o)
{
    const char *direction = byi_import_string(o, "direction", "");
    enum byi_op_id op = BYI_OP_LEFT_SHIFT;

    if (strcmp(direction, "RIGHT") == 0)
        op = BYI_OP_RIGHT_SHIFT;
    else if (strcmp(direction, "LEFT") != 0)
        byi_import_fail(o, BYOC_EPARSE,
                        "direction is '%s', expected LEFT or RIGHT", direction);
    o->out[0] =
        byi_import_call(o, op, byi_import_in(o, 0), byi_import_in(o, 1));
}

/* -1 - x, which flips the bits; for unsigned types, the largest value - x. */
static void convert_bitwise_not(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const enum byoc_dtype dtype = byi_import_dtype(o, x);
    const double ones = byi_dtype_is_signed(dtype) ? -1 : 0x1p64;

    o->out[0] = byi_import_call(o, BYI_OP_SUBTRACT,
                                byi_import_scalar(o, dtype, ones), x);
}

/* Before opset 7 a slope of C elements is per channel, on axis 1. */
static void convert_prelu_1(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    byi_id slope = byi_import_in(o, 1);
    const uint32_t rank = byi_import_rank(o, x);
    if (byi_import_rank(o, slope) == 1 && byi_import_dim(o, slope, 0) != 1 &&
        rank > 2)
        slope = byi_import_add_axes(o, slope, 1, rank - 2);
    o->out[0] = byi_import_call(o, BYI_OP_NN_PRELU, x, slope);
}

static byi_id emit_clip(struct byi_import *o, byi_id x, double min, double max)
{
    return byi_import_emit(o, BYI_OP_CLIP, ARGS(x),
                           ATTRS(A_FLOAT("a_min", min), A_FLOAT("a_max", max)));
}

static void convert_clip_1(struct byi_import *o)
{
    double min = byi_import_float(o, "min", -INFINITY);
    double max = byi_import_float(o, "max", INFINITY);

    /* the declared defaults, which exporters also write out */
    min = min <= -(double)FLT_MAX ? -INFINITY : min;
    max = max >= (double)FLT_MAX ? INFINITY : max;
    o->out[0] = emit_clip(o, byi_import_in(o, 0), min, max);
}

/* Whether bound i is omitted, or a constant that a float attribute holds
 * exactly. *bound: the default value, or the constant. */
static bool is_fixed_bound(struct byi_import *o, uint32_t i,
                           double default_value, double *bound)
{
    const double exact = 9007199254740992.0; /* 2^53 */
    struct byi_tensor t = {0};

    *bound = default_value;
    if (byi_import_in(o, i) == BYI_NO_ID)
        return true;
    if (!byi_import_const_view(o, byi_import_in(o, i), &t) ||
        byi_elements(t.rank, t.dims) != 1)
        return false;
    *bound = byi_tensor_float(&t, 0);
    return byi_dtype_is_float(t.dtype) || fabs(*bound) < exact;
}

static void convert_clip(struct byi_import *o)
{
    byi_id x = byi_import_in(o, 0);
    double min, max;
    const bool fixed_min = is_fixed_bound(o, 1, -INFINITY, &min);
    const bool fixed_max = is_fixed_bound(o, 2, INFINITY, &max);

    if (fixed_min && fixed_max && isinf(min) && isinf(max) && min < max) {
        o->out[0] = x;
        return;
    }
    if (fixed_min && fixed_max && !isnan(min) && !isnan(max)) {
        o->out[0] = emit_clip(o, x, min, max);
        return;
    }
    if (byi_import_in(o, 1) != BYI_NO_ID)
        x = byi_import_call(o, BYI_OP_MAXIMUM, x, byi_import_in(o, 1));
    if (byi_import_in(o, 2) != BYI_NO_ID)
        x = byi_import_call(o, BYI_OP_MINIMUM, x, byi_import_in(o, 2));
    o->out[0] = x;
}

static void emit_cast(struct byi_import *o, enum byoc_dtype dtype)
{
    if (dtype == BYOC_NONE)
        byi_import_refuse(o, "found no target type, expected a tensor type");
    /* these apply to casts to 8-bit floats and are ignored in others */
    const bool saturate = byi_import_int(o, "saturate", 1) != 0;
    const char *mode = byi_import_string(o, "round_mode", "up");
    if (!byi_narrow_bits(dtype) ||
        byi_import_dtype(o, byi_import_in(o, 0)) == dtype)
        o->out[0] = byi_import_cast(o, byi_import_in(o, 0), dtype);
    else
        o->out[0] = byi_import_emit(o, BYI_OP_CAST, ARGS(byi_import_in(o, 0)),
                                    ATTRS(A_DTYPE("dtype", dtype),
                                          A_BOOL("saturate", saturate),
                                          A_STRING("round_mode", mode)));
}

static void convert_cast(struct byi_import *o)
{
    emit_cast(o, byi_import_dtype_attr(o, "to", BYOC_NONE));
}

/* Opset 1 names the type: "FLOAT", "INT64". */
static void convert_cast_1(struct byi_import *o)
{
    const char *to = byi_import_string(o, "to", "");
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value_by_name(
            &onnx__tensor_proto__data_type__descriptor, to);

    if (!value)
        byi_import_refuse(
            o, "attribute 'to' is '%s', expected a type such as FLOAT", to);
    else
        emit_cast(o, (enum byoc_dtype)value->value);
}

/* Erf accepts integers and returns their type. */
static void convert_erf(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const enum byoc_dtype dtype = byi_import_dtype(o, x);
    const bool is_float = !byi_dtype_is_int(dtype);
    const byi_id y = byi_import_call(
        o, BYI_OP_ERF, is_float ? x : byi_import_cast(o, x, BYOC_F64));

    o->out[0] = byi_import_cast(o, y, dtype);
}

static void convert_cast_like(struct byi_import *o)
{
    emit_cast(o, byi_import_dtype(o, byi_import_in(o, 1)));
}

/* IsInf and IsNaN. 8-bit floats are cast to float32, which is exact. */
static void convert_is_special(struct byi_import *o)
{
    if (byi_narrow_is_float(byi_import_dtype(o, o->in[0])))
        o->in[0] = byi_import_cast(o, o->in[0], BYOC_F32);
    byi_import_convert_same(o);
}

/* Emit the mask of a Dropout in inference mode: all true or, before opset
 * 10, 1.
 */
static byi_id emit_ones(struct byi_import *o, enum byoc_dtype dtype)
{
    return byi_import_emit(
        o, BYI_OP_FULL, ARGS(byi_import_shape_of(o, byi_import_in(o, 0))),
        ATTRS(A_FLOAT("value", 1.0), A_DTYPE("dtype", dtype)));
}

static void emit_dropout_inference(struct byi_import *o)
{
    o->out[0] = byi_import_in(o, 0);
    if (byi_import_wants_output(o, 1))
        o->out[1] = emit_ones(o, o->opset < 10 ? byi_import_dtype(o, o->out[0])
                                               : BYOC_BOOL);
}

/* In training mode each element is kept with probability 1 - ratio, and scaled
 * to preserve the mean:
 *   mask = not training_mode or random.uniform(shape of x) >= ratio
 *   y = mask ? x * (training_mode ? 1 / (1 - ratio) : 1) : 0
 * 8-bit floats are scaled in float32. */
static void emit_dropout_training(struct byi_import *o, byi_id training,
                                  byi_id ratio)
{
    static const char text[] =
        "fn (%x, %random, %rate, %training) {"
        "  %keeps = greater_equal(%random, %rate);"
        "  %mask = logical_or(logical_not(%training), %keeps);"
        "  %scale = divide(1, subtract(1, %rate));"
        "  %factor = cast(where(%training, %scale, 1), dtype=%x);"
        "  (where(%mask, multiply(%x, %factor), 0), %mask)"
        "}";
    const enum byoc_dtype x_dtype = byi_import_dtype(o, byi_import_in(o, 0));
    const enum byoc_dtype dtype =
        byi_narrow_is_float(x_dtype) ? BYOC_F32 : x_dtype;
    const byi_id x = byi_import_cast(o, byi_import_in(o, 0), dtype);
    const byi_id rate =
        byi_import_cast(o, byi_import_as_scalar(o, ratio), BYOC_F32);
    const byi_id is_training = byi_import_as_scalar(o, training);
    const byi_id random =
        byi_import_random_uniform(o, byi_import_shape_of(o, x));
    byi_id results[2];

    byi_import_template_results(o, text, ARGS(x, random, rate, is_training),
                                NO_ATTRS, 2, results);
    o->out[0] = byi_import_cast(o, results[0], x_dtype);
    if (byi_import_wants_output(o, 1))
        o->out[1] = results[1];
}

static void convert_dropout(struct byi_import *o)
{
    const double default_ratio = byi_import_float(o, "ratio", 0.5);
    const byi_id ratio = byi_import_in(o, 1), training = byi_import_in(o, 2);

    byi_import_int(o, "seed", 0);
    if (o->opset < 7 && byi_import_int(o, "is_test", 0) == 0)
        byi_import_refuse(o, "is_test is 0 (training mode), expected 1");
    struct byi_tensor rate = {0};
    const bool drops_nothing = ratio != BYI_NO_ID &&
                               byi_import_const_view(o, ratio, &rate) &&
                               byi_tensor_float(&rate, 0) == 0;

    if (training == BYI_NO_ID || drops_nothing ||
        (byi_import_is_const(o, 2) &&
         byi_import_const_int(o, 2, "training_mode") == 0))
        emit_dropout_inference(o);
    else
        emit_dropout_training(
            o, training,
            ratio != BYI_NO_ID ? ratio
                               : byi_import_scalar(o, BYOC_F32, default_ratio));
}

/* Affine, an experimental operator of opset 1: alpha x + beta */
static void convert_affine(struct byi_import *o)
{
    const double alpha = byi_import_float(o, "alpha", 1.0);

    o->out[0] = byi_import_call_scalar(
        o, BYI_OP_ADD, byi_import_scale(o, byi_import_in(o, 0), alpha),
        byi_import_float(o, "beta", 0.0));
}

/* Experimental operators of opset 1 with numbers alpha and beta:
 * ScaledTanh: alpha tanh(beta x); ParametricSoftplus: alpha softplus(beta x) */
static void convert_scaled(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const double alpha = byi_import_float(o, "alpha", 1.0);
    const byi_id scaled =
        byi_import_scale(o, x, byi_import_float(o, "beta", 1.0));

    o->out[0] =
        byi_import_scale(o, byi_import_call(o, o->row->op, scaled), alpha);
}

/* Opset 1 declares rounded defaults. */
static void convert_selu_1(struct byi_import *o)
{
    const double alpha = byi_import_float(o, "alpha", 1.6732);
    const double gamma = byi_import_float(o, "gamma", 1.0507);

    o->out[0] = byi_import_emit(
        o, BYI_OP_NN_SELU, ARGS(byi_import_in(o, 0)),
        ATTRS(A_FLOAT("alpha", alpha), A_FLOAT("gamma", gamma)));
}

/* x sigmoid(alpha x): Swish, QuickGelu */
static void convert_swish(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const bool quick = strcmp(o->row->type, "QuickGelu") == 0;
    const double alpha = byi_import_float(o, "alpha", quick ? 1.702 : 1.0);

    if (alpha == 1.0) {
        o->out[0] = byi_import_call(o, BYI_OP_NN_SILU, x);
        return;
    }
    const byi_id gate =
        byi_import_call(o, BYI_OP_SIGMOID, byi_import_scale(o, x, alpha));
    o->out[0] = byi_import_call(o, BYI_OP_MULTIPLY, x, gate);
}

/* --- com.microsoft -------------------------------------------------------- */

byi_id byi_import_activation(struct byi_import *o, byi_id x, const char *name,
                             const double *numbers, uint32_t n)
{
    static const struct {
        const char *name;
        enum byi_op_id op;
    } activations[] = {
        {"Relu", BYI_OP_NN_RELU},
        {"Sigmoid", BYI_OP_SIGMOID},
        {"Tanh", BYI_OP_TANH},
        {"LeakyRelu", BYI_OP_NN_LEAKY_RELU},
        {"Clip", BYI_OP_CLIP},
        {"HardSigmoid", BYI_OP_NN_HARD_SIGMOID},
        {"Elu", BYI_OP_NN_ELU},
        {"Softplus", BYI_OP_NN_SOFTPLUS},
        {"Softsign", BYI_OP_NN_SOFTSIGN},
        {"HardSwish", BYI_OP_NN_HARD_SWISH},
    };
    struct byi_attr attrs[2];

    if (*name == '\0')
        return x;
    for (uint32_t i = 0; i < BYI_COUNT(activations); i++) {
        const struct byi_op *op = byi_op(activations[i].op);
        if (strcmp(activations[i].name, name) != 0)
            continue;
        const uint32_t n_used = n < op->n_attrs ? n : op->n_attrs;
        for (uint32_t k = 0; k < n_used; k++)
            attrs[k] = (struct byi_attr)A_FLOAT(op->attrs[k].name, numbers[k]);
        return byi_import_emit(o, op->id, ARGS(x), n_used, attrs);
    }
    byi_import_refuse(
        o,
        "activation is '%s', expected Relu, Sigmoid, Tanh, LeakyRelu, "
        "Clip, HardSigmoid, Elu, Softplus, Softsign or HardSwish",
        name);
    return BYI_NO_ID;
}

/* BiasGelu, FastGelu: gelu(x + bias); FastGelu uses the tanh approximation. */
static void convert_bias_gelu(struct byi_import *o)
{
    const bool fast = strcmp(o->row->type, "FastGelu") == 0;
    const byi_id bias = byi_import_in(o, 1);
    byi_id x = byi_import_in(o, 0);

    if (bias != BYI_NO_ID)
        x = byi_import_call(o, BYI_OP_ADD, x, bias);
    o->out[0] =
        byi_import_emit(o, BYI_OP_NN_GELU, ARGS(x),
                        ATTRS(A_STRING("approximate", fast ? "tanh" : "none")));
}

/* MurmurHash3 of each element (Appleby's MurmurHash3_x86_32): a number of 4 or
 * 8 bytes is one or two blocks of 32 bits, the lower one first. */
static void convert_murmur_hash(struct byi_import *o)
{
    static const char mix[] =
        "fn (%h, %block) {"
        "  %k = multiply(%block, 3432918353);"
        "  %turned = bitwise_or(left_shift(%k, 15), right_shift(%k, 17));"
        "  %x = bitwise_xor(%h, multiply(%turned, 461845907));"
        "  %y = bitwise_or(left_shift(%x, 13), right_shift(%x, 19));"
        "  add(multiply(%y, 5), 3864292196)"
        "}";
    static const char finish[] =
        "fn (%h) {"
        "  %a = bitwise_xor(%h, bytes);"
        "  %b = multiply(bitwise_xor(%a, right_shift(%a, 16)), 2246822507);"
        "  %c = multiply(bitwise_xor(%b, right_shift(%b, 13)), 3266489909);"
        "  bitwise_xor(%c, right_shift(%c, 16))"
        "}";
    static const char upper[] =
        "fn (%x) { cast(right_shift(%x, 32), dtype=\"uint32\") }";
    const byi_id x = byi_import_in(o, 0);
    const int64_t bytes = byoc_dtype_size(byi_import_dtype(o, x));
    const bool positive = byi_import_int(o, "positive", 1) != 0;
    const uint32_t seed = (uint32_t)byi_import_int(o, "seed", 0);

    if (byi_import_ok(o) &&
        (byi_import_dtype(o, x) == BYOC_STRING || (bytes != 4 && bytes != 8)))
        byi_import_refuse(o, "found %s, expected numbers of 32 or 64 bits",
                          byoc_dtype_name(byi_import_dtype(o, x)));
    const enum byoc_dtype whole = bytes == 4 ? BYOC_U32 : BYOC_U64;
    const byi_id bits = byi_import_emit(o, BYI_OP_BITCAST, ARGS(x),
                                        ATTRS(A_DTYPE("dtype", whole)));
    byi_id h = byi_import_template(o, mix,
                                   ARGS(byi_import_scalar(o, BYOC_U32, seed),
                                        byi_import_cast(o, bits, BYOC_U32)),
                                   NO_ATTRS);
    if (bytes == 8)
        h = byi_import_template(
            o, mix,
            ARGS(h, byi_import_template(o, upper, ARGS(bits), NO_ATTRS)),
            NO_ATTRS);
    h = byi_import_template(o, finish, ARGS(h), ATTRS(AN_INT("bytes", bytes)));
    o->out[0] = positive ? h
                         : byi_import_emit(o, BYI_OP_BITCAST, ARGS(h),
                                           ATTRS(A_DTYPE("dtype", BYOC_I32)));
}

#define SAME byi_import_convert_same

/* clang-format off */
BYI_ONNX_ROWS(onnx_element, BYI_ONNX,
    {"Abs", 1, 1, 1, SAME, BYI_OP_ABS},
    {"Acos", 7, 1, 1, SAME, BYI_OP_ACOS},
    {"Acosh", 9, 1, 1, SAME, BYI_OP_ACOSH},
    {"Add", 1, 2, 2, convert_binary_1, BYI_OP_ADD},
    {"Add", 7, 2, 2, SAME, BYI_OP_ADD},
    {"Affine", 1, 1, 1, convert_affine, BYI_OP_NONE},
    {"And", 1, 2, 2, convert_binary_1, BYI_OP_LOGICAL_AND},
    {"And", 7, 2, 2, SAME, BYI_OP_LOGICAL_AND},
    {"Asin", 7, 1, 1, SAME, BYI_OP_ASIN},
    {"Asinh", 9, 1, 1, SAME, BYI_OP_ASINH},
    {"Atan", 7, 1, 1, SAME, BYI_OP_ATAN},
    {"Atanh", 9, 1, 1, SAME, BYI_OP_ATANH},
    {"BitShift", 11, 2, 2, convert_shift, BYI_OP_LEFT_SHIFT},
    {"BitwiseAnd", 18, 2, 2, SAME, BYI_OP_BITWISE_AND},
    {"BitwiseNot", 18, 1, 1, convert_bitwise_not, BYI_OP_NONE},
    {"BitwiseOr", 18, 2, 2, SAME, BYI_OP_BITWISE_OR},
    {"BitwiseXor", 18, 2, 2, SAME, BYI_OP_BITWISE_XOR},
    {"BitCast", 26, 1, 1, SAME, BYI_OP_BITCAST},
    {"Cast", 1, 1, 1, convert_cast_1, BYI_OP_CAST},
    {"Cast", 6, 1, 1, convert_cast, BYI_OP_CAST},
    {"CastLike", 15, 2, 2, convert_cast_like, BYI_OP_CAST},
    {"Ceil", 1, 1, 1, SAME, BYI_OP_CEIL},
    {"Celu", 12, 1, 1, SAME, BYI_OP_NN_CELU},
    {"Clip", 1, 1, 1, convert_clip_1, BYI_OP_CLIP},
    {"Clip", 11, 1, 3, convert_clip, BYI_OP_CLIP},
    {"Cos", 7, 1, 1, SAME, BYI_OP_COS},
    {"Cosh", 9, 1, 1, SAME, BYI_OP_COSH},
    {"Div", 1, 2, 2, convert_binary_1, BYI_OP_DIVIDE},
    {"Div", 7, 2, 2, SAME, BYI_OP_DIVIDE},
    {"Dropout", 1, 1, 3, convert_dropout, BYI_OP_NONE},
    {"Elu", 1, 1, 1, SAME, BYI_OP_NN_ELU},
    {"Equal", 1, 2, 2, convert_binary_1, BYI_OP_EQUAL},
    {"Equal", 7, 2, 2, SAME, BYI_OP_EQUAL},
    {"Erf", 9, 1, 1, convert_erf, BYI_OP_NONE},
    {"Exp", 1, 1, 1, SAME, BYI_OP_EXP},
    {"Floor", 1, 1, 1, SAME, BYI_OP_FLOOR},
    {"Gelu", 20, 1, 1, SAME, BYI_OP_NN_GELU},
    {"Greater", 1, 2, 2, convert_binary_1, BYI_OP_GREATER},
    {"Greater", 7, 2, 2, SAME, BYI_OP_GREATER},
    {"GreaterOrEqual", 12, 2, 2, SAME, BYI_OP_GREATER_EQUAL},
    {"HardSigmoid", 1, 1, 1, SAME, BYI_OP_NN_HARD_SIGMOID},
    {"HardSwish", 14, 1, 1, SAME, BYI_OP_NN_HARD_SWISH},
    {"Identity", 1, 1, 1, convert_identity, BYI_OP_NONE},
    {"IsInf", 10, 1, 1, convert_is_special, BYI_OP_ISINF},
    {"IsNaN", 9, 1, 1, convert_is_special, BYI_OP_ISNAN},
    {"LeakyRelu", 1, 1, 1, SAME, BYI_OP_NN_LEAKY_RELU},
    {"Less", 1, 2, 2, convert_binary_1, BYI_OP_LESS},
    {"Less", 7, 2, 2, SAME, BYI_OP_LESS},
    {"LessOrEqual", 12, 2, 2, SAME, BYI_OP_LESS_EQUAL},
    {"Log", 1, 1, 1, SAME, BYI_OP_LOG},
    {"Max", 1, 1, BYI_MAX_ARGS, convert_chain, BYI_OP_MAXIMUM},
    {"Mean", 1, 1, BYI_MAX_ARGS, convert_mean, BYI_OP_ADD},
    {"Min", 1, 1, BYI_MAX_ARGS, convert_chain, BYI_OP_MINIMUM},
    {"Mish", 18, 1, 1, SAME, BYI_OP_NN_MISH},
    {"Mod", 10, 2, 2, SAME, BYI_OP_MOD},
    {"Mul", 1, 2, 2, convert_binary_1, BYI_OP_MULTIPLY},
    {"Mul", 7, 2, 2, SAME, BYI_OP_MULTIPLY},
    {"Neg", 1, 1, 1, SAME, BYI_OP_NEGATIVE},
    {"Not", 1, 1, 1, SAME, BYI_OP_LOGICAL_NOT},
    {"Or", 1, 2, 2, convert_binary_1, BYI_OP_LOGICAL_OR},
    {"Or", 7, 2, 2, SAME, BYI_OP_LOGICAL_OR},
    {"PRelu", 1, 2, 2, convert_prelu_1, BYI_OP_NN_PRELU},
    {"PRelu", 7, 2, 2, SAME, BYI_OP_NN_PRELU},
    {"ParametricSoftplus", 1, 1, 1, convert_scaled, BYI_OP_NN_SOFTPLUS},
    {"Pow", 1, 2, 2, convert_binary_1, BYI_OP_POWER},
    {"Pow", 7, 2, 2, SAME, BYI_OP_POWER},
    {"Reciprocal", 1, 1, 1, SAME, BYI_OP_RECIPROCAL},
    {"Relu", 1, 1, 1, SAME, BYI_OP_NN_RELU},
    {"Round", 11, 1, 1, SAME, BYI_OP_ROUND},
    {"ScaledTanh", 1, 1, 1, convert_scaled, BYI_OP_TANH},
    {"Selu", 1, 1, 1, convert_selu_1, BYI_OP_NN_SELU},
    {"Selu", 6, 1, 1, SAME, BYI_OP_NN_SELU},
    {"Shrink", 9, 1, 1, SAME, BYI_OP_NN_SHRINK},
    {"Sigmoid", 1, 1, 1, SAME, BYI_OP_SIGMOID},
    {"Sign", 9, 1, 1, SAME, BYI_OP_SIGN},
    {"Sin", 7, 1, 1, SAME, BYI_OP_SIN},
    {"Sinh", 9, 1, 1, SAME, BYI_OP_SINH},
    {"Softplus", 1, 1, 1, SAME, BYI_OP_NN_SOFTPLUS},
    {"Softsign", 1, 1, 1, SAME, BYI_OP_NN_SOFTSIGN},
    {"Sqrt", 1, 1, 1, SAME, BYI_OP_SQRT},
    {"Sub", 1, 2, 2, convert_binary_1, BYI_OP_SUBTRACT},
    {"Sub", 7, 2, 2, SAME, BYI_OP_SUBTRACT},
    {"Sum", 1, 1, BYI_MAX_ARGS, convert_chain, BYI_OP_ADD},
    {"Swish", 24, 1, 1, convert_swish, BYI_OP_NONE},
    {"Tan", 7, 1, 1, SAME, BYI_OP_TAN},
    {"Tanh", 1, 1, 1, SAME, BYI_OP_TANH},
    {"ThresholdedRelu", 10, 1, 1, SAME, BYI_OP_NN_THRESHOLDED_RELU},
    {"Where", 9, 3, 3, SAME, BYI_OP_WHERE},
    {"Xor", 1, 2, 2, convert_binary_1, BYI_OP_LOGICAL_XOR},
    {"Xor", 7, 2, 2, SAME, BYI_OP_LOGICAL_XOR})

BYI_ONNX_ROWS(microsoft_element, BYI_MICROSOFT,
    {"BiasAdd", 1, 3, 3, convert_chain, BYI_OP_ADD},
    {"BiasGelu", 1, 2, 2, convert_bias_gelu, BYI_OP_NN_GELU},
    {"FastGelu", 1, 1, 2, convert_bias_gelu, BYI_OP_NN_GELU},
    {"Gelu", 1, 1, 1, SAME, BYI_OP_NN_GELU},
    {"MurmurHash3", 1, 1, 1, convert_murmur_hash, BYI_OP_NONE},
    {"QuickGelu", 1, 1, 1, convert_swish, BYI_OP_NONE})
/* clang-format on */
