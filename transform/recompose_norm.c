/* SPDX-License-Identifier: Apache-2.0 */
/* recompose_norm.c: layer normalisation from its arithmetic.
 *
 *   (x - mean) / sqrt(variance + eps)   nn.layer_norm(x, const[1], const[0])
 *   ... times gamma, plus beta          nn.layer_norm(x, gamma, beta)
 *
 * with mean over the last axes, kept, and variance = mean((x - mean)^2); or,
 * as TensorFlow writes it, x s + (beta - mean s), s = gamma / sqrt(...).
 */
#include <math.h>
#include <string.h>

#include "recompose.h"

struct norm_match {
    struct byi_rewrite *rw;
    byi_id x;     /* BYI_NO_ID until found  */
    int64_t axis; /* the first; 0: not known yet, else negative */
    double epsilon;
    struct byi_inner inner;
};

/* Match inner node `id` as a call of `op`. */
static bool inside(struct norm_match *n, byi_id id, enum byi_op_id op)
{
    return byi_rw_is(n->rw, id, op) && byi_inner_add(&n->inner, id);
}

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

/* mean(operand) over the last axes: the same for every mean of a match. */
static bool match_mean(struct norm_match *n, byi_id id, byi_id *operand)
{
    if (!inside(n, id, BYI_OP_MEAN))
        return false;
    const int64_t axis = last_axes(n->rw, id);
    if (axis == 0 || (n->axis != 0 && axis != n->axis))
        return false;
    n->axis = axis;
    *operand = byi_rw_arg(n->rw, id, 0);
    return true;
}

/* Match the mean of x, which sets n->x if it is not known yet. */
static bool match_mean_of_x(struct norm_match *n, byi_id x, byi_id mean)
{
    byi_id operand;
    if (!match_mean(n, mean, &operand) || operand != x ||
        (n->x != BYI_NO_ID && n->x != x))
        return false;
    n->x = x;
    return true;
}

/* x - mean(x); either_sign: or mean(x) - x. */
static bool match_centred(struct norm_match *n, byi_id id, bool either_sign)
{
    if (inside(n, id, BYI_OP_SUBTRACT)) {
        const byi_id a = byi_rw_arg(n->rw, id, 0);
        const byi_id b = byi_rw_arg(n->rw, id, 1);
        if (byi_rw_is(n->rw, b, BYI_OP_MEAN) && byi_rw_arg(n->rw, b, 0) == a)
            return match_mean_of_x(n, a, b);
        return either_sign && match_mean_of_x(n, b, a);
    }
    if (!inside(n, id, BYI_OP_ADD))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const byi_id minus = byi_rw_arg(n->rw, id, i);
        if (inside(n, minus, BYI_OP_NEGATIVE))
            return match_mean_of_x(n, byi_rw_arg(n->rw, id, 1 - i),
                                   byi_rw_arg(n->rw, minus, 0));
    }
    return false;
}

/* mean((x - mean(x))^2) */
static bool match_variance(struct norm_match *n, byi_id id)
{
    byi_id square;
    if (!match_mean(n, id, &square))
        return false;
    if (inside(n, square, BYI_OP_POWER))
        return byi_rw_is_value(n->rw, byi_rw_arg(n->rw, square, 1), 2.0) &&
               match_centred(n, byi_rw_arg(n->rw, square, 0), true);
    if (!inside(n, square, BYI_OP_MULTIPLY))
        return false;
    const byi_id a = byi_rw_arg(n->rw, square, 0);
    const byi_id b = byi_rw_arg(n->rw, square, 1);
    return match_centred(n, a, a == b) &&
           (a == b || match_centred(n, b, false));
}

/* variance + eps */
static bool match_stabilised(struct norm_match *n, byi_id id)
{
    if (!inside(n, id, BYI_OP_ADD))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (byi_rw_splat(n->rw, byi_rw_arg(n->rw, id, i), &n->epsilon))
            return n->epsilon >= 0.0 &&
                   match_variance(n, byi_rw_arg(n->rw, id, 1 - i));
    return false;
}

/* The standard deviation. */
static bool match_deviation(struct norm_match *n, byi_id id)
{
    if (inside(n, id, BYI_OP_SQRT))
        return match_stabilised(n, byi_rw_arg(n->rw, id, 0));
    return inside(n, id, BYI_OP_POWER) &&
           byi_rw_is_value(n->rw, byi_rw_arg(n->rw, id, 1), 0.5) &&
           match_stabilised(n, byi_rw_arg(n->rw, id, 0));
}

/* 1 / standard deviation */
static bool match_inverse(struct norm_match *n, byi_id id)
{
    if (inside(n, id, BYI_OP_RSQRT))
        return match_stabilised(n, byi_rw_arg(n->rw, id, 0));
    if (inside(n, id, BYI_OP_RECIPROCAL))
        return match_deviation(n, byi_rw_arg(n->rw, id, 0));
    if (inside(n, id, BYI_OP_DIVIDE))
        return byi_rw_is_value(n->rw, byi_rw_arg(n->rw, id, 0), 1.0) &&
               match_deviation(n, byi_rw_arg(n->rw, id, 1));
    return inside(n, id, BYI_OP_POWER) &&
           byi_rw_is_value(n->rw, byi_rw_arg(n->rw, id, 1), -0.5) &&
           match_stabilised(n, byi_rw_arg(n->rw, id, 0));
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

/* divide(x - mean, deviation), multiply(x - mean, inverse deviation) */
byi_id byi_recompose_norm(struct byi_rewrite *rw, byi_id at)
{
    const bool divide = byi_rw_is(rw, at, BYI_OP_DIVIDE);
    for (uint32_t i = 0; i < (divide ? 1u : 2u); i++) {
        struct norm_match n = {.rw = rw, .x = BYI_NO_ID};
        const byi_id centred = byi_rw_arg(rw, at, i);
        const byi_id scale = byi_rw_arg(rw, at, 1 - i);
        if (!match_centred(&n, centred, false) ||
            !(divide ? match_deviation(&n, scale) : match_inverse(&n, scale)) ||
            !byi_rw_closed(rw, at, n.inner.at, n.inner.n))
            continue;
        return emit_norm(rw, n.x, BYI_NO_ID, BYI_NO_ID, n.axis, n.epsilon);
    }
    return BYI_NO_ID;
}

/* beta - mean s */
static bool match_shift(struct norm_match *n, byi_id id, byi_id x, byi_id s,
                        byi_id *beta)
{
    if (!inside(n, id, BYI_OP_SUBTRACT) ||
        !inside(n, byi_rw_arg(n->rw, id, 1), BYI_OP_MULTIPLY))
        return false;
    const byi_id *args = byi_rw_node(n->rw, byi_rw_arg(n->rw, id, 1))->args;
    *beta = byi_rw_arg(n->rw, id, 0);
    return (args[1] == s && match_mean_of_x(n, x, args[0])) ||
           (args[0] == s && match_mean_of_x(n, x, args[1]));
}

/* s = inverse deviation, times gamma or not */
static bool match_scale(struct norm_match *n, byi_id s, byi_id *gamma)
{
    *gamma = BYI_NO_ID;
    if (!byi_rw_is(n->rw, s, BYI_OP_MULTIPLY))
        return match_inverse(n, s);
    if (!inside(n, s, BYI_OP_MULTIPLY))
        return false;
    const struct byi_inner before = n->inner;
    for (uint32_t i = 0; i < 2; i++) {
        *gamma = byi_rw_arg(n->rw, s, 1 - i);
        if (match_inverse(n, byi_rw_arg(n->rw, s, i)))
            return true;
        n->inner = before;
    }
    return false;
}

/* add(multiply(x, s), subtract(beta, multiply(mean, s))) */
byi_id byi_recompose_norm_affine(struct byi_rewrite *rw, byi_id at)
{
    for (uint32_t i = 0; i < 4; i++) {
        struct norm_match n = {.rw = rw, .x = BYI_NO_ID};
        byi_id gamma, beta;
        const byi_id scaled = byi_rw_arg(rw, at, i & 1);
        if (!inside(&n, scaled, BYI_OP_MULTIPLY))
            continue;
        const byi_id x = byi_rw_arg(rw, scaled, i >> 1);
        const byi_id s = byi_rw_arg(rw, scaled, 1 - (i >> 1));
        if (!match_shift(&n, byi_rw_arg(rw, at, 1 - (i & 1)), x, s, &beta) ||
            !match_scale(&n, s, &gamma) ||
            !byi_rw_closed(rw, at, n.inner.at, n.inner.n))
            continue;
        const struct byi_type *type = byi_rw_tensor(rw, x);
        const bool scales = gamma != BYI_NO_ID;
        beta = as_parameter(rw, beta, type, n.axis);
        if (scales)
            gamma = as_parameter(rw, gamma, type, n.axis);
        if (beta == BYI_NO_ID || (scales && gamma == BYI_NO_ID))
            return BYI_NO_ID;
        return emit_norm(rw, x, gamma, beta, n.axis, n.epsilon);
    }
    return BYI_NO_ID;
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
