/* SPDX-License-Identifier: Apache-2.0 */
/* SimplifyInference: fold batch norms, scales and shifts into weights.
 * requires: nothing; best after CanonicalizeOps, which moves constants to the
 *           right
 * leaves:   of float32 and float64 operators, no batch_norm with constant
 *           statistics that folds to finite values; of 16-bit floats, none
 *           after a convolution or matmul with constant weights, unless the
 *           folded weights would lose bits; no multiplication by a
 *           constant per channel after a convolution or matmul with constant
 *           weights, and no two consecutive additions of constants of one
 *           shape, if the value between them has no other reader
 *
 *   %0 = nn.conv2d(%x, const[w]);
 *   %1 = add(%0, const[b]);                    %0 = nn.conv2d(%x, const[w s]);
 *   nn.batch_norm(%1, const[gamma],     ==>    add(%0, const[b s + t])
 *       const[beta], const[mean], const[var])
 *
 *   with s = gamma / sqrt(var + epsilon) and t = beta - mean s; without a
 *   convolution: add(multiply(%x, const[s]), const[t]), s and t (C, 1, 1)
 */
#include "transform.h"

#include <math.h>

#include "rows.h"

#include "core/ops/layout.h"

/* Operators that are linear in their weights, with the axis of output channels
 * in the weights and in the result (negative: from the end). */
struct linear_op {
    enum byi_op_id op;
    int weight_axis, result_axis;
};

static const struct linear_op linear_ops[] = {
    {BYI_OP_NN_CONV1D, 0, 1},           {BYI_OP_NN_CONV2D, 0, 1},
    {BYI_OP_NN_CONV3D, 0, 1},           {BYI_OP_NN_CONV1D_TRANSPOSE, 1, 1},
    {BYI_OP_NN_CONV2D_TRANSPOSE, 1, 1}, {BYI_OP_NN_CONV3D_TRANSPOSE, 1, 1},
    {BYI_OP_NN_DENSE, 0, -1},           {BYI_OP_NN_MATMUL, 1, -1},
};

/* A linear operator with constant weights, and optionally a constant bias per
 * channel. */
struct linear_block {
    byi_id linear, bias; /* bias: the constant, or BYI_NO_ID */
    uint32_t weight_axis, axis;
    int64_t groups, channels;
};

/* Returns the constant's elements as one finite double per index of `axis`, in
 * scratch memory. Returns NULL if it does not broadcast that way, has another
 * dtype, is not finite, or is too large. */
static double *per_channel(struct byi_rewrite *rw, byi_id id,
                           const struct byi_type *type, uint32_t axis)
{
    struct byi_tensor t;
    if (BYI_IS_SYMBOL(type->dims[axis]) || !byi_rw_view(rw, id, &t) ||
        t.dtype != type->dtype || t.rank > type->rank)
        return NULL;
    const int64_t channels = type->dims[axis];
    const int64_t n = byi_elements(t.rank, t.dims);
    const uint32_t from_back = type->rank - axis;
    if (n != 1 && (n != channels || t.rank < from_back ||
                   t.dims[t.rank - from_back] != channels))
        return NULL;
    if (!byi_consts_can_grow(rw->m, (uint64_t)channels * sizeof(double)))
        return NULL;
    double *v = byi_arena_calloc(rw->scratch, (size_t)channels + 1, sizeof *v);
    for (int64_t i = 0; i < channels; i++) {
        v[i] = byi_tensor_float(&t, n == 1 ? 0 : i);
        if (!isfinite(v[i]))
            return NULL;
    }
    return v;
}

/* Emit a constant (C, 1, ...) that broadcasts along `axis` of `type`. Returns
 * BYI_NO_ID if it exceeds the module's budget of constants, or a number the
 * range of a 16-bit type. */
static byi_id emit_channel_const(struct byi_rewrite *rw,
                                 const struct byi_type *type, uint32_t axis,
                                 const double *values)
{
    int64_t dims[BYI_MAX_RANK];
    struct byi_tensor t;
    for (uint32_t i = axis; i < type->rank; i++)
        dims[i - axis] = i == axis ? type->dims[axis] : 1;
    const struct byi_type *const_type =
        byi_type_tensor(rw->m->arena, type->dtype, type->rank - axis, dims);
    if (!byi_rw_alloc(rw, const_type, &t))
        return BYI_NO_ID;
    for (int64_t i = 0; i < dims[0]; i++) {
        byi_tensor_set(&t, i, values[i]);
        if (byi_dtype_is_half(t.dtype) && !isfinite(byi_tensor_float(&t, i)))
            return BYI_NO_ID;
    }
    return byi_rw_const(rw, const_type, &t);
}

/* Returns the row of `op`, which must be in the table. */
static const struct linear_op *find_linear(enum byi_op_id op)
{
    const struct linear_op *row = linear_ops;
    while (row->op != op)
        row++;
    return row;
}

/* Fill `b` from the match of a LINEAR or a BLOCK. False if it cannot be
 * scaled. */
static bool read_block(const struct byi_row_match *r, struct linear_block *b)
{
    const struct byi_node *node = byi_row_node(r, "y");
    const struct byi_type *w = byi_row_node(r, "w")->type;
    const struct linear_op *row = find_linear(node->op);
    const bool matmul = row->op == BYI_OP_NN_MATMUL;
    const uint32_t rank = node->type->rank;
    if (!byi_dtype_is_float(w->dtype) || (matmul && w->rank != 2) ||
        !byi_layout_is_default(byi_op(node->op), node->attrs))
        return false;
    b->linear = byi_row_value(r, "y");
    b->bias = byi_row_value(r, "bias");
    b->weight_axis = (uint32_t)row->weight_axis;
    if (matmul && byi_attr_int(node->attrs, "transpose_b"))
        b->weight_axis = 0;
    b->axis = row->result_axis < 0 ? rank - 1 : (uint32_t)row->result_axis;
    b->groups = byi_attr_find(node->attrs, "groups")
                    ? byi_attr_int(node->attrs, "groups")
                    : 1;
    b->channels = b->axis < rank ? node->type->dims[b->axis] : -1;
    return b->channels > 0 &&
           byi_type_equal(node->type, byi_rw_node(r->rw, r->root)->type);
}

/* Whether n scaled weights from `at` on are as precise as before: 16-bit ones
 * are finite, and the largest did not become subnormal or nearly so. Their
 * rounding is otherwise no worse than that of the result before batch_norm. */
static bool keeps_precision(const struct byi_tensor *w,
                            const struct byi_tensor *scaled, int64_t at,
                            int64_t n)
{
    const double normal = w->dtype == BYOC_F16 ? 0x1p-13 : 0x1p-125;
    double before = 0, after = 0;
    if (byi_dtype_is_wide(w->dtype))
        return true;
    for (int64_t i = at; i < at + n; i++) {
        before = fmax(before, fabs(byi_tensor_float(w, i)));
        after = fmax(after, fabs(byi_tensor_float(scaled, i)));
    }
    return isfinite(after) && (after >= before || after >= normal);
}

/* Multiply the weights by the scale of their output channel: the index along
 * weight_axis and, in grouped transposed convolutions (C, O/groups, ...), the
 * group of the input channel. False if they lose precision. */
static bool scale_weights(const struct byi_tensor *w, struct byi_tensor *out,
                          const struct linear_block *b, const double *scale)
{
    const uint32_t axis = b->weight_axis;
    const int64_t outer = byi_elements(axis, w->dims);
    const int64_t n = w->dims[axis];
    const int64_t inner = byi_elements(w->rank - axis - 1, w->dims + axis + 1);
    const int64_t group_rows =
        axis == 0 ? outer : outer / (b->groups > 0 ? b->groups : 1);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t c = 0; c < n; c++) {
            const int64_t group = group_rows > 0 ? o / group_rows : 0;
            const int64_t at = (o * n + c) * inner;
            byi_tensor_scale(w, out, at, inner, scale[group * n + c]);
            if (!keeps_precision(w, out, at, inner))
                return false;
        }
    return true;
}

/* Emit the linear operator times `scale`, plus `shift` unless that is NULL. */
static byi_id emit_block(struct byi_rewrite *rw, const struct linear_block *b,
                         const double *scale, const double *shift)
{
    const struct byi_node linear = *byi_rw_node(rw, b->linear);
    const byi_id weights = linear.args[1];
    const struct byi_type *type = byi_rw_tensor(rw, weights);
    struct byi_tensor w, scaled;
    if (!byi_rw_view(rw, weights, &w) || !byi_rw_alloc(rw, type, &scaled))
        return BYI_NO_ID;
    const int64_t n_scaled =
        w.dims[b->weight_axis] * (b->weight_axis == 1 ? b->groups : 1);
    if (n_scaled != b->channels || !scale_weights(&w, &scaled, b, scale))
        return BYI_NO_ID;
    const byi_id bias =
        shift ? emit_channel_const(rw, linear.type, b->axis, shift) : BYI_NO_ID;
    if (shift && bias == BYI_NO_ID)
        return BYI_NO_ID;
    const byi_id id = byi_rw_call_like(
        rw, b->linear,
        (byi_id[]){linear.args[0], byi_rw_const(rw, type, &scaled)});
    return bias == BYI_NO_ID ? id : byi_rw_op2(rw, BYI_OP_ADD, id, bias);
}

/* Fold `scale`, and `shift` unless it is NULL, into the block's weights and
 * bias. */
static byi_id fold_block(struct byi_rewrite *rw, const struct linear_block *b,
                         const double *scale, const double *shift)
{
    const struct byi_type *type = byi_rw_tensor(rw, b->linear);
    if (b->bias == BYI_NO_ID)
        return emit_block(rw, b, scale, shift);
    const double *bias = per_channel(rw, b->bias, type, b->axis);
    if (!bias)
        return BYI_NO_ID;
    double *sum =
        byi_arena_calloc(rw->scratch, (size_t)b->channels, sizeof *sum);
    for (int64_t i = 0; i < b->channels; i++)
        sum[i] = bias[i] * scale[i] + (shift ? shift[i] : 0.0);
    return emit_block(rw, b, scale, sum);
}

static uint32_t batch_norm_axis(const struct byi_node *bn)
{
    return byi_attr_axis(bn->attrs, bn->type->rank);
}

/* Compute scale and shift of a batch_norm, one per channel, in scratch memory.
 * False if its statistics are not constant, or a result is not finite. */
static bool fold_statistics(struct byi_rewrite *rw, byi_id at, double **scale,
                            double **shift)
{
    const struct byi_node bn = *byi_rw_node(rw, at);
    struct byi_tensor p[4]; /* gamma, beta, mean, var */
    if (!byi_dtype_is_float(bn.type->dtype) || bn.type->rank < 2)
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!byi_rw_view(rw, bn.args[i + 1], &p[i]))
            return false;
    const double epsilon = byi_attr_float(bn.attrs, "epsilon");
    const int64_t n = bn.type->dims[batch_norm_axis(&bn)];
    for (uint32_t i = 0; i < 4; i++)
        if (byi_elements(p[i].rank, p[i].dims) != n)
            return false;
    *scale = byi_arena_calloc(rw->scratch, (size_t)n + 1, sizeof **scale);
    *shift = byi_arena_calloc(rw->scratch, (size_t)n + 1, sizeof **shift);
    for (int64_t i = 0; i < n; i++) {
        const double deviation = sqrt(byi_tensor_float(&p[3], i) + epsilon);
        (*scale)[i] = byi_tensor_float(&p[0], i) / deviation;
        (*shift)[i] = byi_tensor_float(&p[1], i) -
                      byi_tensor_float(&p[2], i) * (*scale)[i];
        if (!isfinite((*scale)[i]) || !isfinite((*shift)[i]))
            return false;
    }
    return true;
}

/* Binds `folded` to a block with the batch_norm in its weights and bias. */
static bool folds_batch_norm(struct byi_row_match *r)
{
    double *scale, *shift;
    struct linear_block b;
    return read_block(r, &b) &&
           b.axis == batch_norm_axis(byi_rw_node(r->rw, r->root)) &&
           fold_statistics(r->rw, r->root, &scale, &shift) &&
           byi_row_bind(r, "folded", fold_block(r->rw, &b, scale, shift));
}

/* Binds the `scale` and `shift` of a batch_norm of float32 or float64: a
 * product of 16 bits would round once more. */
static bool bind_scale_shift(struct byi_row_match *r)
{
    double *scale, *shift;
    const struct byi_type *type = byi_rw_tensor(r->rw, r->root);
    const uint32_t axis = batch_norm_axis(byi_rw_node(r->rw, r->root));
    return byi_dtype_is_wide(type->dtype) &&
           fold_statistics(r->rw, r->root, &scale, &shift) &&
           byi_row_bind(r, "scale",
                        emit_channel_const(r->rw, type, axis, scale)) &&
           byi_row_bind(r, "shift",
                        emit_channel_const(r->rw, type, axis, shift));
}

/* Binds `folded` to a block whose weights and bias are multiplied by the
 * constant per channel. */
static bool folds_factor(struct byi_row_match *r)
{
    struct linear_block b;
    if (!read_block(r, &b) ||
        !byi_dtype_is_wide(byi_rw_tensor(r->rw, r->root)->dtype))
        return false;
    const double *scale = per_channel(r->rw, byi_row_value(r, "factor"),
                                      byi_rw_tensor(r->rw, b.linear), b.axis);
    return scale &&
           byi_row_bind(r, "folded", fold_block(r->rw, &b, scale, NULL));
}

/* Binds `sum` to the sum of two constants of one shape. */
static bool bind_sum(struct byi_row_match *r)
{
    struct byi_tensor a, b, sum;
    const byi_id left = byi_row_value(r, "a");
    if (!byi_rw_view(r->rw, left, &a) ||
        !byi_rw_view(r->rw, byi_row_value(r, "b"), &b) ||
        !byi_dtype_is_wide(a.dtype) ||
        !byi_dims_equal(a.rank, a.dims, b.rank, b.dims))
        return false;
    const struct byi_type *type = byi_rw_tensor(r->rw, left);
    const int64_t n = byi_elements(a.rank, a.dims);
    if (!byi_rw_alloc(r->rw, type, &sum))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const double value = byi_tensor_float(&a, i) + byi_tensor_float(&b, i);
        if (!isfinite(value))
            return false;
        byi_tensor_set(&sum, i, value);
    }
    return byi_row_bind(r, "sum", byi_rw_const(r->rw, type, &sum));
}

/* clang-format off */
#define BLOCK "(%y | add(%y, const %bias))"
#define LINEAR                                                                 \
    "nn.conv1d|nn.conv2d|nn.conv3d|nn.conv1d_transpose|nn.conv2d_transpose"    \
    "|nn.conv3d_transpose|nn.dense|nn.matmul(%x, const %w)"
#define NORM(x)                                                                \
    "nn.batch_norm(" x ", const %gamma, const %beta, const %mean, const %var)"

static const struct byi_row rows[] = {
    BYI_ROW_IF(NORM(BLOCK) " with %y = " LINEAR, "%folded", folds_batch_norm),
    BYI_ROW_IF(NORM("%x"), "add(multiply(%x, %scale), %shift)", bind_scale_shift),
    BYI_ROW_IF("multiply(" BLOCK ", const %factor) with %y = " LINEAR,
               "%folded", folds_factor),
    BYI_ROW_IF("add(add(%x, const %a), const %b)", "add(%x, %sum)", bind_sum),
};
/* clang-format on */

BYI_ROWS_PASS(simplify_inference, "SimplifyInference", 0,
              "fold batch norms, scales and shifts into weights", rows)
