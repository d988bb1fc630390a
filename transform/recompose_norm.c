/* SPDX-License-Identifier: Apache-2.0 */
/* recompose_norm.c: layer normalisation from its arithmetic.
 *
 *   (x - mean) / sqrt(variance + eps)   nn.layer_norm(x, const[1], const[0])
 *   ... times gamma, plus beta          nn.layer_norm(x, gamma, beta)
 *
 * with mean over the last axes, kept, and variance = mean((x - mean)^2). The
 * patterns are in recompose.h.
 */
#include <math.h>
#include <string.h>

#include "recompose.h"

/* The first axis, counted from the end, of a reduction over the last axes with
 * keepdims; else 0. */
static int64_t last_axes(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    const struct byi_type *type = byi_rw_tensor(rw, node->args[0]);
    uint32_t n, seen = 0;
    const int64_t *axes = byi_attr_ints(node->attrs, "axis", &n);
    if (!type || n == 0 || n > type->rank ||
        !byi_attr_int(node->attrs, "keepdims"))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + type->rank : axes[i];
        if (axis < 0 || axis >= (int64_t)type->rank)
            return 0;
        seen |= 1u << ((int64_t)type->rank - 1 - axis);
    }
    return seen == (1u << n) - 1 ? -(int64_t)n : 0;
}

/* `id` as a vector over the normalised axes of x: itself, or a constant that
 * has the same elements in another shape. */
static byi_id as_parameter(struct byi_rewrite *rw, byi_id id,
                           const struct byi_type *x, int64_t axis)
{
    const uint32_t rank = (uint32_t)-axis;
    const int64_t *dims = x->dims + (x->rank - rank);
    const struct byi_type *type = byi_rw_tensor(rw, id);
    if (!type || type->dtype != x->dtype || type->rank > x->rank)
        return BYI_NO_ID;
    if (byi_dims_equal(type->rank, type->dims, rank, dims))
        return id;
    /* (1, 1, D): the normalised axes must be equal */
    if (type->rank < rank ||
        !byi_dims_equal(rank, type->dims + (type->rank - rank), rank, dims))
        return BYI_NO_ID;
    return byi_rw_const_as(rw, id, rank, dims);
}

/* A constant over the normalised axes of x, all `value`. */
static byi_id filled_parameter(struct byi_rewrite *rw, const struct byi_type *x,
                               int64_t axis, double value)
{
    const uint32_t rank = (uint32_t)-axis;
    const struct byi_type *type = byi_type_tensor(rw->m->arena, x->dtype, rank,
                                                  x->dims + (x->rank - rank));
    struct byi_tensor t;
    if (!byi_type_static(type) || !byi_rw_alloc(rw, type, &t))
        return BYI_NO_ID;
    const int64_t n = byi_elements(t.rank, t.dims);
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(&t, i, value);
    return byi_rw_const(rw, type, &t);
}

/* Backends expect all three operands: a missing gamma (BYI_NO_ID) is 1, a
 * missing beta 0. */
static byi_id emit_norm(struct byi_rewrite *rw, byi_id x, byi_id gamma,
                        byi_id beta, int64_t axis, double epsilon)
{
    const struct byi_type *type = byi_rw_tensor(rw, x);
    if (gamma == BYI_NO_ID)
        gamma = filled_parameter(rw, type, axis, 1.0);
    if (beta == BYI_NO_ID)
        beta = filled_parameter(rw, type, axis, 0.0);
    const byi_id args[] = {x, gamma, beta};
    const struct byi_attr attrs[] = {
        {.name = "axis", .kind = BYI_ATTR_INT, .i = axis},
        {.name = "epsilon", .kind = BYI_ATTR_FLOAT, .f = epsilon},
    };
    return byi_rw_call(rw, BYI_OP_NN_LAYER_NORM, args, 3, attrs, 2);
}

byi_id byi_recompose_norm(struct byi_row_match *r)
{
    struct byi_rewrite *rw = r->rw;
    const byi_id x = byi_row_value(r, "x");
    const struct byi_type *type = byi_rw_tensor(rw, x);
    byi_id parameters[] = {byi_row_value(r, "gamma"), byi_row_value(r, "beta")};
    int64_t axis = 0;
    double epsilon;
    for (uint32_t i = 0; i < r->match->n_ops; i++) {
        const byi_id id = r->match->ops[i];
        const int64_t own =
            byi_rw_is(rw, id, BYI_OP_MEAN) ? last_axes(rw, id) : axis;
        if ((axis != 0 && own != axis) ||
            (own == 0 && byi_rw_is(rw, id, BYI_OP_MEAN)))
            return BYI_NO_ID;
        axis = own;
    }
    if (!byi_rw_splat(rw, byi_row_value(r, "epsilon"), &epsilon) ||
        !(epsilon >= 0.0))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < 2; i++) {
        if (parameters[i] == BYI_NO_ID)
            continue;
        parameters[i] = as_parameter(rw, parameters[i], type, axis);
        if (parameters[i] == BYI_NO_ID)
            return BYI_NO_ID;
    }
    return emit_norm(rw, x, parameters[0], parameters[1], axis, epsilon);
}

/* Operand `i` as a layer_norm whose only reader is `at` and whose beta is 0, so
 * that `at` can be merged into it. */
static const struct byi_node *norm_operand(const struct byi_rewrite *rw,
                                           byi_id at, uint32_t i)
{
    const byi_id id = byi_rw_arg(rw, at, i);
    if (!byi_rw_is(rw, id, BYI_OP_NN_LAYER_NORM) || !byi_rw_once(rw, id))
        return NULL;
    const struct byi_node *norm = byi_rw_node(rw, id);
    return norm->n_args == 2 || byi_rw_is_value(rw, norm->args[2], 0.0) ? norm
                                                                        : NULL;
}

/* The first normalised axis, counted from the back. */
static int64_t norm_axis(const struct byi_node *norm)
{
    const int64_t axis = byi_attr_int(norm->attrs, "axis");
    return axis < 0 ? axis : axis - (int64_t)norm->type->rank;
}

/* multiply(nn.layer_norm(x, const[1 ...], const[0 ...]), gamma) */
byi_id byi_recompose_norm_gamma(struct byi_rewrite *rw, byi_id at)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct byi_node *norm = norm_operand(rw, at, i);
        if (!norm || !byi_rw_is_value(rw, norm->args[1], 1.0))
            continue;
        const int64_t axis = norm_axis(norm);
        const double epsilon = byi_attr_float(norm->attrs, "epsilon");
        const byi_id x = norm->args[0];
        const byi_id gamma = as_parameter(rw, byi_rw_arg(rw, at, 1 - i),
                                          byi_rw_tensor(rw, x), axis);
        return gamma == BYI_NO_ID
                   ? BYI_NO_ID
                   : emit_norm(rw, x, gamma, BYI_NO_ID, axis, epsilon);
    }
    return BYI_NO_ID;
}

/* add(nn.layer_norm(x, gamma, const[0 ...]), beta) */
byi_id byi_recompose_norm_beta(struct byi_rewrite *rw, byi_id at)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct byi_node *norm = norm_operand(rw, at, i);
        if (!norm)
            continue;
        const int64_t axis = norm_axis(norm);
        const double epsilon = byi_attr_float(norm->attrs, "epsilon");
        const byi_id x = norm->args[0], gamma = norm->args[1];
        const byi_id beta = as_parameter(rw, byi_rw_arg(rw, at, 1 - i),
                                         byi_rw_tensor(rw, x), axis);
        return beta == BYI_NO_ID ? BYI_NO_ID
                                 : emit_norm(rw, x, gamma, beta, axis, epsilon);
    }
    return BYI_NO_ID;
}

/* nn.layer_norm(x, gamma)  ==>  nn.layer_norm(x, gamma, const[0 ...]) */
byi_id byi_recompose_norm_complete(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *norm = byi_rw_node(rw, at);
    return norm->n_args == 3
               ? BYI_NO_ID
               : emit_norm(rw, norm->args[0], norm->args[1], BYI_NO_ID,
                           norm_axis(norm),
                           byi_attr_float(norm->attrs, "epsilon"));
}
