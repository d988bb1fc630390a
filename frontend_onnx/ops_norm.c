/* SPDX-License-Identifier: Apache-2.0 */
/* ops_norm.c: converts normalisations and softmax.
 *
 * Before opset 13, Softmax flattens its input to a matrix (rows: the axes
 * before `axis`): reshape(nn.softmax(nn.flatten(%x), axis=1), shape_of(%x)).
 * nn.softmax without the reshapes does the same if at most one axis from `axis`
 * on has a size other than 1.
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* List the axes of x from `axis` on. Returns their number. */
static uint32_t list_axes_from(const struct byi_import *o, byi_id x,
                               uint32_t axis, int64_t axes[BYI_MAX_RANK])
{
    uint32_t n = 0;

    for (uint32_t i = axis; i < byi_import_rank(o, x); i++)
        axes[n++] = i;
    return n;
}

/* Mean and variance of the batch, and the running statistics, which keep their
 * types. */
static const char batch_statistics[] =
    "fn (%x, %old_mean, %old_variance) {"
    "  %centred = subtract(%x, mean(%x, axis=axes, keepdims=true));"
    "  %mean = mean(%x, axis=axes, keepdims=false);"
    "  %variance = mean(multiply(%centred, %centred), axis=axes,"
    "                   keepdims=false);"
    "  (%mean, %variance,"
    "   add(multiply(%old_mean, momentum),"
    "       multiply(cast(%mean, dtype=%old_mean), rest)),"
    "   add(multiply(%old_variance, momentum),"
    "       multiply(cast(%variance, dtype=%old_variance), rest)))"
    "}";

/* Training mode, from opset 14 on: normalise by the statistics of the batch and
 * output the updated running statistics. */
static void train_batch_norm(struct byi_import *o, double momentum)
{
    int64_t axes[BYI_MAX_RANK];
    uint32_t n = 0;
    byi_id results[4];

    for (uint32_t i = 0; i < byi_import_rank(o, o->in[0]); i++)
        if (i != 1)
            axes[n++] = i;
    byi_import_template_results(
        o, batch_statistics, ARGS(o->in[0], o->in[3], o->in[4]),
        ATTRS(SOME_INTS("axes", n, axes), A_FLOAT("momentum", momentum),
              A_FLOAT("rest", 1 - momentum)),
        4, results);
    for (uint32_t i = 0; i < 2; i++) {
        o->in[3 + i] = results[i];
        if (byi_import_wants_output(o, 1 + i))
            o->out[1 + i] = results[2 + i];
    }
}

/* Cast the operands to x's type, or, if x has 16 bits and one of them another
 * type, all to float32. Returns the type that x had. */
static enum byoc_dtype unify_types(struct byi_import *o)
{
    const enum byoc_dtype x_dtype = byi_import_dtype(o, byi_import_in(o, 0));
    enum byoc_dtype dtype = x_dtype;

    for (uint32_t i = 1; i < 5; i++)
        if (byi_import_dtype(o, o->in[i]) != x_dtype &&
            byi_dtype_is_half(x_dtype))
            dtype = BYOC_F32;
    for (uint32_t i = 0; i < 5; i++)
        o->in[i] = byi_import_cast(o, o->in[i], dtype);
    return x_dtype;
}

/* Before opset 9, with spatial = 0, statistics are per element. */
static const char norm_by_element[] =
    "fn (%x, %scale, %bias, %mean, %variance) {"
    "  %factor = multiply(%scale, rsqrt(add(%variance, epsilon)));"
    "  add(multiply(subtract(%x, %mean), %factor), %bias)"
    "}";

static void convert_batch_norm(struct byi_import *o)
{
    const double momentum = byi_import_float(o, "momentum", 0.9);
    const bool is_vector = byi_import_rank(o, byi_import_in(o, 0)) == 1;

    if (is_vector) /* (N) is (N, 1): one channel */
        o->in[0] = byi_import_add_axes(o, o->in[0], 1, 1);
    if (o->opset < 7 && byi_import_int(o, "is_test", 0) == 0)
        byi_import_refuse(o, "is_test is 0 (training mode), expected 1");
    const double epsilon = byi_import_float(o, "epsilon", 1e-5);
    const bool by_channel = byi_import_int(o, "spatial", 1) != 0;
    if (byi_import_int(o, "training_mode", 0) != 0 && byi_import_ok(o))
        train_batch_norm(o, momentum);
    const enum byoc_dtype dtype = unify_types(o);
    const struct byi_attr attr[] = {A_FLOAT("epsilon", epsilon)};
    const byi_id y =
        by_channel ? byi_import_emit(o, BYI_OP_NN_BATCH_NORM, 5, o->in, 1, attr)
                   : byi_import_template(o, norm_by_element, 5, o->in, 1, attr);
    o->out[0] = byi_import_cast(o, y, dtype);
    if (is_vector)
        o->out[0] = byi_import_template(o, "fn (%y) { squeeze(%y, axis=[1]) }",
                                        ARGS(o->out[0]), NO_ATTRS);
}

byi_id byi_import_softmax_from(struct byi_import *o, enum byi_op_id op,
                               byi_id x, int64_t axis)
{
    const uint32_t rank = byi_import_rank(o, x);
    uint32_t n_wide = 0, last = rank ? rank - 1 : 0;

    if (rank == 0) {
        byi_import_fail(o, BYOC_ETYPE,
                        "found a scalar, expected rank 1 or more");
        return BYI_NO_ID;
    }
    if (axis < -(int64_t)rank || axis > (int64_t)rank) {
        byi_import_fail(
            o, BYOC_ETYPE,
            "axis %lld is out of range for rank %u, expected -%u to %u",
            (long long)axis, rank, rank, rank);
        return BYI_NO_ID;
    }
    axis = axis < 0 ? axis + rank : axis;
    for (uint32_t i = (uint32_t)axis; i < rank; i++)
        if (byi_import_dim(o, x, i) != 1) {
            n_wide++;
            last = i;
        }
    if (n_wide <= 1 && axis < (int64_t)rank)
        return byi_import_emit(o, op, ARGS(x),
                               ATTRS(AN_INT("axis", (int64_t)last)));
    const byi_id flat = byi_import_emit(o, BYI_OP_FLATTEN, ARGS(x),
                                        ATTRS(AN_INT("axis", axis)));
    const byi_id y =
        byi_import_emit(o, op, ARGS(flat), ATTRS(AN_INT("axis", 1)));
    return byi_import_reshape(o, y, byi_import_shape_of(o, x), true);
}

static void convert_softmax_1(struct byi_import *o)
{
    o->out[0] = byi_import_softmax_from(o, o->row->op, byi_import_in(o, 0),
                                        byi_import_int(o, "axis", 1));
}

static void convert_mvn(struct byi_import *o)
{
    static const int64_t default_axes[] = {0, 2, 3};
    uint32_t n = 0;
    const int64_t *axes = byi_import_ints(o, "axes", &n);

    if (!axes) {
        axes = default_axes;
        n = BYI_N(default_axes);
    }
    axes = byi_import_axes(o, axes, n, byi_import_rank(o, byi_import_in(o, 0)));
    o->out[0] = byi_import_emit(o, BYI_OP_MVN, ARGS(byi_import_in(o, 0)),
                                ATTRS(SOME_INTS("axis", n, axes)));
}

static void check_stash_type(struct byi_import *o)
{
    const int64_t type = byi_import_int(o, "stash_type", BYOC_F32);

    if (type != BYOC_F32)
        byi_import_refuse(o, "stash_type is %lld, expected 1 (float32)",
                          (long long)type);
}

/* The optional results of LayerNormalization, over the axes from `axis` on.
 * They have the type of stash_type, float32, whatever x has. */
static const char layer_statistics[] =
    "fn (%x) {"
    "  %w = cast(%x, dtype=wide);"
    "  %mean = mean(%w, axis=axes, keepdims=true);"
    "  %centred = subtract(%w, %mean);"
    "  %variance = mean(multiply(%centred, %centred), axis=axes,"
    "                   keepdims=true);"
    "  (cast(%mean, dtype=\"float32\"),"
    "   cast(rsqrt(add(%variance, epsilon)), dtype=\"float32\"))"
    "}";

/* Whether a scale or bias must be broadcast to the axes of x from `axis` on. A
 * symbolic dim that differs from x's may be 1. */
static bool is_broadcast(struct byi_import *o, byi_id x, byi_id scale,
                         uint32_t axis)
{
    const uint32_t rank = byi_import_rank(o, x) - axis;

    if (!byi_import_ok(o) || scale == BYI_NO_ID)
        return false;
    if (byi_import_rank(o, scale) != rank)
        return true;
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t dim = byi_import_dim(o, scale, i);
        if ((dim == 1 || BYI_IS_SYMBOL(dim)) &&
            byi_import_dim(o, x, axis + i) != dim)
            return true;
    }
    return false;
}

/* nn.layer_norm for a scale or bias of another shape than the normalised axes.
 * It computes in float32, or in float64 if x is float64. */
static const char broadcast_norm[] =
    "fn (%x, %scale) {"
    "  %w = cast(%x, dtype=wide);"
    "  %centred = subtract(%w, mean(%w, axis=axes, keepdims=true));"
    "  %variance = mean(multiply(%centred, %centred), axis=axes,"
    "                   keepdims=true);"
    "  %y = divide(%centred, sqrt(add(%variance, epsilon)));"
    "  multiply(cast(%y, dtype=%x), %scale)"
    "}";

static byi_id emit_broadcast_norm(struct byi_import *o, uint32_t axis,
                                  double epsilon)
{
    const byi_id x = byi_import_in(o, 0), bias = byi_import_in(o, 2);
    const bool f64 = byi_import_dtype(o, x) == BYOC_F64;
    int64_t axes[BYI_MAX_RANK];
    const uint32_t n = list_axes_from(o, x, axis, axes);
    const byi_id y = byi_import_template(
        o, broadcast_norm, ARGS(x, byi_import_in(o, 1)),
        ATTRS(SOME_INTS("axes", n, axes), A_FLOAT("epsilon", epsilon),
              A_DTYPE("wide", f64 ? BYOC_F64 : BYOC_F32)));

    return bias == BYI_NO_ID ? y : byi_import_call(o, BYI_OP_ADD, y, bias);
}

static void convert_layer_norm(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const double epsilon = byi_import_float(o, "epsilon", 1e-5);
    const uint32_t axis = byi_import_axis(o, byi_import_int(o, "axis", -1),
                                          byi_import_rank(o, x));
    const bool bias = byi_import_in(o, 2) != BYI_NO_ID;

    check_stash_type(o);
    if (is_broadcast(o, x, byi_import_in(o, 1), axis) ||
        is_broadcast(o, x, byi_import_in(o, 2), axis))
        o->out[0] = emit_broadcast_norm(o, axis, epsilon);
    else
        o->out[0] = byi_import_emit(
            o, BYI_OP_NN_LAYER_NORM, bias ? 3 : 2, o->in,
            ATTRS(AN_INT("axis", (int64_t)axis), A_FLOAT("epsilon", epsilon)));
    if (byi_import_wants_output(o, 1) || byi_import_wants_output(o, 2)) {
        int64_t axes[BYI_MAX_RANK];
        const uint32_t n = list_axes_from(o, x, axis, axes);
        const bool f64 = byi_import_dtype(o, x) == BYOC_F64;
        byi_import_template_results(
            o, layer_statistics, ARGS(x),
            ATTRS(SOME_INTS("axes", n, axes), A_FLOAT("epsilon", epsilon),
                  A_DTYPE("wide", f64 ? BYOC_F64 : BYOC_F32)),
            byi_import_wants_output(o, 2) ? 2 : 1, o->out + 1);
    }
}

/* RMS norm over the axes from `axis` on, computed in float32, or in float64 if
 * x is float64. The result has gamma's type; the second result is the inverse
 * RMS. */
static const char rms_text[] =
    "fn (%x, %gamma) {"
    "  %w = cast(%x, dtype=wide);"
    "  %mean = mean(multiply(%w, %w), axis=axes, keepdims=true);"
    "  %inverse = rsqrt(add(%mean, epsilon));"
    "  (multiply(cast(multiply(%w, %inverse), dtype=%gamma), %gamma),"
    "   %inverse)"
    "}";

static void emit_rms_norm(struct byi_import *o, byi_id x, byi_id gamma,
                          uint32_t axis, double epsilon, byi_id results[2])
{
    const enum byoc_dtype dtype = byi_import_dtype(o, x);
    int64_t axes[BYI_MAX_RANK];
    const uint32_t n = list_axes_from(o, x, axis, axes);

    byi_import_template_results(
        o, rms_text, ARGS(x, gamma),
        ATTRS(SOME_INTS("axes", n, axes), A_FLOAT("epsilon", epsilon),
              A_DTYPE("wide", dtype == BYOC_F64 ? dtype : BYOC_F32)),
        2, results);
}

/* Emit the value of each group for each of its channels: (groups) ->
 * (channels of x) */
static byi_id emit_per_channel(struct byi_import *o, byi_id x, byi_id values,
                               int64_t groups)
{
    static const char text[] =
        "fn (%values, %channels) {"
        "  %shape = concatenate([groups], divide(%channels, groups), axis=0);"
        "  reshape(broadcast_to(expand_dims(%values, axis=[1]), %shape), [-1])"
        "}";
    const byi_id channels =
        byi_import_emit(o, BYI_OP_SHAPE_OF, ARGS(x),
                        ATTRS(AN_INT("start", 1), AN_INT("end", 2)));

    return byi_import_template(o, text, ARGS(values, channels),
                               ATTRS(AN_INT("groups", groups)));
}

static void convert_group_norm(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const int64_t groups = byi_import_int(o, "num_groups", 0);
    const int64_t channels = byi_import_dim(o, x, 1);

    check_stash_type(o);
    if (groups < 1 || (!BYI_IS_SYMBOL(channels) && channels % groups))
        byi_import_fail(
            o, BYOC_ETYPE,
            "%lld channels do not split into %lld groups, expected a divisor",
            (long long)channels, (long long)groups);
    o->out[0] = byi_import_same(
        o, BYI_OP_NN_GROUP_NORM,
        ARGS(x, byi_import_in(o, 1), byi_import_in(o, 2)), NO_ATTRS);
}

/* Before opset 21, scale and bias have one element for each group. */
static void convert_group_norm_18(struct byi_import *o)
{
    const int64_t groups = byi_import_int(o, "num_groups", 0);

    for (uint32_t i = 1; i < 3 && groups > 0; i++)
        o->in[i] = emit_per_channel(o, o->in[0], o->in[i], groups);
    convert_group_norm(o);
}

/* RMSNormalization, and SimplifiedLayerNormalization, ONNX Runtime's older name
 * for it, whose second result is the inverse RMS. */
static void convert_simplified_norm(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const uint32_t axis = byi_import_axis(o, byi_import_int(o, "axis", -1),
                                          byi_import_rank(o, x));
    const double epsilon = byi_import_float(o, "epsilon", 1e-5);
    byi_id results[2];

    check_stash_type(o);
    emit_rms_norm(o, x, byi_import_in(o, 1), axis, epsilon, results);
    o->out[0] = results[0];
    if (byi_import_wants_output(o, 1))
        o->out[1] = results[1];
}

/* --- com.microsoft -------------------------------------------------------- */

/* The type in which sums are computed that a norm follows. A sum that is
 * rounded to 16 bits may lose most digits of its distance from the mean. */
static enum byoc_dtype sum_dtype(enum byoc_dtype dtype)
{
    return byi_dtype_is_half(dtype) ? BYOC_F32 : dtype;
}

/* Emit nn.layer_norm over the last axis, with the type of x; beta may be
 * BYI_NO_ID. The result has gamma's type. */
static byi_id emit_last_axis_norm(struct byi_import *o, byi_id x, byi_id gamma,
                                  byi_id beta, double epsilon)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, x);
    const uint32_t n = beta == BYI_NO_ID ? 2 : 3;
    const byi_id args[] = {x, byi_import_cast(o, gamma, dtype),
                           n < 3 ? beta : byi_import_cast(o, beta, dtype)};
    const byi_id y = byi_import_emit(o, BYI_OP_NN_LAYER_NORM, n, args,
                                     ATTRS(A_FLOAT("epsilon", epsilon)));

    return byi_import_cast(o, y, byi_import_dtype(o, gamma));
}

/* SkipLayerNormalization: the norm of x + skip + bias; output 3 is the sum. */
static void convert_skip_norm(struct byi_import *o)
{
    const bool simplified = strstr(o->row->type, "Simplified");
    const byi_id terms[] = {byi_import_in(o, 0), byi_import_in(o, 1),
                            byi_import_in(o, simplified ? 3 : 4)};
    const double epsilon = byi_import_float(o, "epsilon", 1e-12);
    const enum byoc_dtype dtype = byi_import_dtype(o, terms[0]);
    byi_id x = byi_import_cast(o, terms[0], sum_dtype(dtype));

    for (uint32_t i = 1; i < BYI_COUNT(terms) && terms[i] != BYI_NO_ID; i++)
        x = byi_import_call(o, BYI_OP_ADD, x,
                            byi_import_cast(o, terms[i], sum_dtype(dtype)));
    byi_id results[2];
    if (simplified)
        emit_rms_norm(o, x, byi_import_in(o, 2),
                      byi_import_axis(o, -1, byi_import_rank(o, x)), epsilon,
                      results);
    else
        results[0] = emit_last_axis_norm(o, x, byi_import_in(o, 2),
                                         byi_import_in(o, 3), epsilon);
    o->out[0] = results[0];
    if (byi_import_wants_output(o, 3))
        o->out[3] = byi_import_cast(o, x, dtype);
}

/* The first rows of the table; their number is the size of axis 1 of ids. */
static const char first_rows[] =
    "fn (%table, %ids) {"
    "  strided_slice(%table, [0], shape_of(%ids, start=1, end=2), [0], [1])"
    "}";

/* Emit the number of ones in each row of the mask; 0 without a mask. */
static byi_id emit_mask_index(struct byi_import *o, byi_id ids, byi_id mask)
{
    static const char none[] =
        "fn (%ids) { full(shape_of(%ids, end=1), dtype=\"int32\") }";
    static const char ones[] =
        "fn (%mask) {"
        "  sum(cast(equal(%mask, 1), dtype=\"int32\"), axis=[1],"
        "      keepdims=false)"
        "}";

    return mask == BYI_NO_ID
               ? byi_import_template(o, none, ARGS(ids), NO_ATTRS)
               : byi_import_template(o, ones, ARGS(mask), NO_ATTRS);
}

/* Dequantise x, rows of input i of a QEmbedLayerNormalization, whose inputs 8
 * to 12 are the scales of inputs 2 to 6, and whose inputs 13 to 17 are their
 * zero points. Inputs of an EmbedLayerNormalization are floats. */
static byi_id dequantize_rows(struct byi_import *o, byi_id x, uint32_t i)
{
    if (o->row->type[0] != 'Q')
        return x;
    return byi_import_call(o, BYI_OP_DEQUANTIZE, x,
                           byi_import_as_scalar(o, byi_import_in(o, i + 6)),
                           byi_import_as_scalar(o, byi_import_in(o, i + 11)));
}

/* EmbedLayerNormalization: word ids, segment ids; tables of words, positions
 * and segments; gamma, beta, mask, position ids. In QEmbedLayerNormalization
 * the tables, gamma and beta have 8 bits, and there are no position ids. */
static void convert_embed_norm(struct byi_import *o)
{
    const byi_id ids = byi_import_in(o, 0), segments = byi_import_in(o, 1);
    const byi_id positions = byi_import_in(o, 3),
                 position_ids =
                     o->row->type[0] == 'Q' ? BYI_NO_ID : byi_import_in(o, 8);
    const double epsilon = byi_import_float(o, "epsilon", 1e-12);

    byi_import_int(o, "mask_index_type", 0);
    /* separate statements, since C leaves the evaluation order of arguments
     * open */
    const byi_id rows =
        position_ids == BYI_NO_ID
            ? byi_import_template(o, first_rows, ARGS(positions, ids), NO_ATTRS)
            : byi_import_take(o, positions, position_ids, 0);
    const byi_id words =
        dequantize_rows(o, byi_import_take(o, byi_import_in(o, 2), ids, 0), 2);
    byi_id x =
        byi_import_call(o, BYI_OP_ADD, words, dequantize_rows(o, rows, 3));
    if (segments != BYI_NO_ID) {
        const byi_id taken =
            byi_import_take(o, byi_import_in(o, 4), segments, 0);
        x = byi_import_call(o, BYI_OP_ADD, x, dequantize_rows(o, taken, 4));
    }
    const byi_id gamma = dequantize_rows(o, byi_import_in(o, 5), 5);
    o->out[0] = emit_last_axis_norm(
        o, x, gamma, dequantize_rows(o, byi_import_in(o, 6), 6), epsilon);
    if (byi_import_wants_output(o, 1))
        o->out[1] = emit_mask_index(o, ids, byi_import_in(o, 7));
    if (byi_import_wants_output(o, 2))
        o->out[2] = x;
}

#define SAME byi_import_convert_same
/* clang-format off */
BYI_ONNX_ROWS(onnx_norm, BYI_ONNX,
    {"BatchNormalization", 1, 5, 5, convert_batch_norm, BYI_OP_NONE},
    {"GroupNormalization", 18, 3, 3, convert_group_norm_18, BYI_OP_NONE},
    {"GroupNormalization", 21, 3, 3, convert_group_norm, BYI_OP_NONE},
    {"Hardmax", 1, 1, 1, convert_softmax_1, BYI_OP_NN_HARDMAX},
    {"Hardmax", 13, 1, 1, SAME, BYI_OP_NN_HARDMAX},
    {"InstanceNormalization", 1, 3, 3, SAME, BYI_OP_NN_INSTANCE_NORM},
    {"LRN", 1, 1, 1, SAME, BYI_OP_NN_LRN},
    {"LayerNormalization", 1, 2, 3, convert_layer_norm, BYI_OP_NONE},
    {"LogSoftmax", 1, 1, 1, convert_softmax_1, BYI_OP_NN_LOG_SOFTMAX},
    {"LogSoftmax", 13, 1, 1, SAME, BYI_OP_NN_LOG_SOFTMAX},
    {"LpNormalization", 1, 1, 1, SAME, BYI_OP_LP_NORMALIZE},
    {"MeanVarianceNormalization", 9, 1, 1, convert_mvn, BYI_OP_MVN},
    {"RMSNormalization", 23, 2, 2, convert_simplified_norm, BYI_OP_NONE},
    {"SimplifiedLayerNormalization", 1, 2, 2, convert_simplified_norm, BYI_OP_NONE},
    {"Softmax", 1, 1, 1, convert_softmax_1, BYI_OP_NN_SOFTMAX},
    {"Softmax", 13, 1, 1, SAME, BYI_OP_NN_SOFTMAX})

BYI_ONNX_ROWS(microsoft_norm, BYI_MICROSOFT,
    {"EmbedLayerNormalization", 1, 1, 9, convert_embed_norm, BYI_OP_NONE},
    {"QEmbedLayerNormalization", 1, 7, 18, convert_embed_norm, BYI_OP_NONE},
    {"SkipLayerNormalization", 1, 3, 5, convert_skip_norm, BYI_OP_NONE},
    {"SkipSimplifiedLayerNormalization", 1, 3, 4, convert_skip_norm, BYI_OP_NONE})
/* clang-format on */
