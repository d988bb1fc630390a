/* SPDX-License-Identifier: Apache-2.0 */
/* Recompose: recognise operators that exporters decomposed.
 * requires: nothing (CanonicalizeOps first finds more: clip by its name)
 * leaves:   nn.layer_norm, nn.gelu, nn.silu, nn.mish, nn.hard_swish,
 *           nn.hard_sigmoid, nn.softplus, sigmoid, nn.softmax and
 *           nn.log_softmax instead of their arithmetic, if the inner values
 *           have no other readers; constants match within 1e-3
 *
 *   %0 = multiply(%x, const(0.7071));
 *   %1 = erf(%0);
 *   %2 = add(%1, const(1));              ==>   nn.gelu(%x)
 *   %3 = multiply(%x, %2);
 *   multiply(%3, const(0.5))
 */
#include "transform.h"

#include "recompose.h"

/* --- softmax ------------------------------------------------------------- */

/* Match a reduction over one axis with keepdims. */
static bool match_reduce(const struct byi_rewrite *rw, byi_id id,
                         enum byi_op_id op, int64_t *axis)
{
    uint32_t n;
    if (!byi_rw_is(rw, id, op))
        return false;
    const struct byi_node *node = byi_rw_node(rw, id);
    const int64_t *axes = byi_attr_ints(node->attrs, "axis", &n);
    const struct byi_type *type = byi_rw_tensor(rw, node->args[0]);
    if (n != 1 || !type || !byi_attr_int(node->attrs, "keepdims"))
        return false;
    *axis = axes[0] < 0 ? axes[0] + type->rank : axes[0];
    return true;
}

/* If z is x - max(x) along the axis, return x, else z: softmax is the same. */
static byi_id strip_maximum(const struct byi_rewrite *rw, byi_id z,
                            int64_t axis, struct byi_inner *inner)
{
    int64_t found;
    if (!byi_rw_is(rw, z, BYI_OP_SUBTRACT))
        return z;
    const byi_id x = byi_rw_arg(rw, z, 0), max = byi_rw_arg(rw, z, 1);
    if (!match_reduce(rw, max, BYI_OP_MAX, &found) || found != axis ||
        byi_rw_arg(rw, max, 0) != x)
        return z;
    byi_inner_add(inner, z);
    byi_inner_add(inner, max);
    return x;
}

/* Emit nn.softmax or nn.log_softmax of z, if the inner values have no other
 * readers. If the maximum has, it stays and z is the operand. */
static byi_id emit_softmax(struct byi_rewrite *rw, byi_id at, enum byi_op_id op,
                           byi_id z, int64_t axis,
                           const struct byi_inner *inside)
{
    struct byi_inner all = *inside;
    byi_id x = strip_maximum(rw, z, axis, &all);
    if (!byi_rw_closed(rw, at, all.at, all.n)) {
        if (!byi_rw_closed(rw, at, inside->at, inside->n))
            return BYI_NO_ID;
        x = z;
    }
    const int64_t rank = (int64_t)byi_rw_tensor(rw, at)->rank;
    const struct byi_attr attr = {.name = "axis",
                                  .kind = BYI_ATTR_INT,
                                  .i = axis == rank - 1 ? -1 : axis};
    return byi_rw_call(rw, op, &x, 1, &attr, 1);
}

/* divide(e, sum(e)) or multiply(e, reciprocal(sum(e))), e = exp(x - max(x)) */
static byi_id softmax(struct byi_rewrite *rw, byi_id at)
{
    const bool divide = byi_rw_is(rw, at, BYI_OP_DIVIDE);
    for (uint32_t i = 0; i < (divide ? 1u : 2u); i++) {
        struct byi_inner inner = {0};
        const byi_id e = byi_rw_arg(rw, at, i);
        byi_id sum = byi_rw_arg(rw, at, 1 - i);
        int64_t axis;
        if (!divide) {
            if (!byi_rw_is(rw, sum, BYI_OP_RECIPROCAL))
                continue;
            byi_inner_add(&inner, sum);
            sum = byi_rw_arg(rw, sum, 0);
        }
        if (!byi_rw_is(rw, e, BYI_OP_EXP) ||
            !match_reduce(rw, sum, BYI_OP_SUM, &axis) ||
            byi_rw_arg(rw, sum, 0) != e)
            continue;
        byi_inner_add(&inner, e);
        byi_inner_add(&inner, sum);
        return emit_softmax(rw, at, BYI_OP_NN_SOFTMAX, byi_rw_arg(rw, e, 0),
                            axis, &inner);
    }
    return BYI_NO_ID;
}

/* log(nn.softmax(x)) */
static byi_id log_of_softmax(struct byi_rewrite *rw, byi_id at)
{
    const byi_id soft = byi_rw_arg(rw, at, 0);
    if (!byi_rw_is(rw, soft, BYI_OP_NN_SOFTMAX) || !byi_rw_once(rw, soft))
        return BYI_NO_ID;
    const byi_id x = byi_rw_arg(rw, soft, 0);
    const struct byi_attr axis = {
        .name = "axis",
        .kind = BYI_ATTR_INT,
        .i = byi_attr_int(byi_rw_node(rw, soft)->attrs, "axis")};
    return byi_rw_call(rw, BYI_OP_NN_LOG_SOFTMAX, &x, 1, &axis, 1);
}

/* subtract(z, log(sum(exp(z)))), subtract(z, reduce_log_sum_exp(z)) */
static byi_id log_softmax(struct byi_rewrite *rw, byi_id at)
{
    const byi_id z = byi_rw_arg(rw, at, 0), log = byi_rw_arg(rw, at, 1);
    struct byi_inner inner = {0};
    int64_t axis;
    byi_inner_add(&inner, log);
    if (match_reduce(rw, log, BYI_OP_LOG_SUM_EXP, &axis) &&
        byi_rw_arg(rw, log, 0) == z)
        return emit_softmax(rw, at, BYI_OP_NN_LOG_SOFTMAX, z, axis, &inner);
    if (!byi_rw_is(rw, log, BYI_OP_LOG))
        return BYI_NO_ID;
    const byi_id sum = byi_rw_arg(rw, log, 0);
    if (!match_reduce(rw, sum, BYI_OP_SUM, &axis))
        return BYI_NO_ID;
    const byi_id e = byi_rw_arg(rw, sum, 0);
    if (!byi_rw_is(rw, e, BYI_OP_EXP) || byi_rw_arg(rw, e, 0) != z)
        return BYI_NO_ID;
    byi_inner_add(&inner, sum);
    byi_inner_add(&inner, e);
    return emit_softmax(rw, at, BYI_OP_NN_LOG_SOFTMAX, z, axis, &inner);
}

/* --- 1 + e^x ------------------------------------------------------------- */

/* add(exp(x), 1) with one reader each: x, else BYI_NO_ID. */
static byi_id match_exp_plus_one(const struct byi_rewrite *rw, byi_id id)
{
    if (!byi_rw_is(rw, id, BYI_OP_ADD) || !byi_rw_once(rw, id))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < 2; i++) {
        const byi_id e = byi_rw_arg(rw, id, i);
        if (byi_rw_is(rw, e, BYI_OP_EXP) && byi_rw_once(rw, e) &&
            byi_rw_is_value(rw, byi_rw_arg(rw, id, 1 - i), 1.0))
            return byi_rw_arg(rw, e, 0);
    }
    return BYI_NO_ID;
}

/* log(1 + e^x) */
static byi_id softplus(struct byi_rewrite *rw, byi_id at)
{
    return byi_rw_op1(rw, BYI_OP_NN_SOFTPLUS,
                      match_exp_plus_one(rw, byi_rw_arg(rw, at, 0)));
}

/* divide(1, 1 + e^-x), reciprocal(1 + e^-x) */
static byi_id sigmoid(struct byi_rewrite *rw, byi_id at)
{
    const bool divide = byi_rw_is(rw, at, BYI_OP_DIVIDE);
    if (divide && !byi_rw_is_value(rw, byi_rw_arg(rw, at, 0), 1.0))
        return BYI_NO_ID;
    const byi_id minus = match_exp_plus_one(rw, byi_rw_arg(rw, at, divide));
    if (minus == BYI_NO_ID || !byi_rw_is(rw, minus, BYI_OP_NEGATIVE) ||
        !byi_rw_once(rw, minus))
        return BYI_NO_ID;
    return byi_rw_op1(rw, BYI_OP_SIGMOID, byi_rw_arg(rw, minus, 0));
}

static const struct byi_rule rules[] = {
    {BYI_OP_DIVIDE, byi_recompose_norm},
    {BYI_OP_MULTIPLY, byi_recompose_norm},
    {BYI_OP_MULTIPLY, byi_recompose_norm_gamma},
    {BYI_OP_ADD, byi_recompose_norm_beta},
    {BYI_OP_ADD, byi_recompose_norm_affine},
    {BYI_OP_NN_LAYER_NORM, byi_recompose_norm_complete},
    {BYI_OP_DIVIDE, softmax},
    {BYI_OP_MULTIPLY, softmax},
    {BYI_OP_LOG, log_of_softmax},
    {BYI_OP_SUBTRACT, log_softmax},
    {BYI_OP_LOG, softplus},
    {BYI_OP_DIVIDE, sigmoid},
    {BYI_OP_RECIPROCAL, sigmoid},
    {BYI_OP_MULTIPLY, byi_recompose_mish},
    {BYI_OP_MULTIPLY, byi_recompose_gate},
    {BYI_OP_DIVIDE, byi_recompose_gate},
};

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    return byi_rewrite(m, func, rules, BYI_COUNT(rules), ctx, scratch, NULL,
                       err);
}

const struct byi_pass byi_pass_recompose = {
    .name = "Recompose",
    .summary = "recognise operators that exporters decomposed",
    .opt_level = 1,
    .run_func = run,
};
