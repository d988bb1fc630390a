/* SPDX-License-Identifier: Apache-2.0 */
/* ForwardFoldScaleAxis: fold a multiplication before linear operators into
 * their weights.
 * requires: nothing; best after CanonicalizeOps, which moves constants to the
 *           right
 * leaves:   no multiplication or division by a constant (a scalar, or a factor
 *           per index of an axis) whose readers can all absorb the factor into
 *           constant weights or operands: through additions of constants,
 *           products, concatenations, and operators f with f(s x) = s f(x)
 *
 *   %0 = multiply(%x, const[s]);             %0 = add(%x, const[t / s]);
 *   %1 = add(%0, const[t]);           ==>    %1 = nn.relu(%0);
 *   %2 = nn.relu(%1);                        nn.conv2d(%1, const[w s])
 *   nn.conv2d(%2, const[w])
 *
 *   with s of shape (C, 1, 1) and positive elements
 */
#include "transform.h"

#include <float.h>
#include <math.h>

#include "scale_axis.h"

/* The state of the pass. */
struct forward {
    struct byi_scaling s;
    /* for each node: the scales that all its readers can absorb */
    struct byi_scale_limits *limits;
    /* for each node: old value = new value times this scale; NULL: unchanged */
    const struct byi_scale **deferred;
};

/* --- first walk, readers first: limits ------------------------------------ */

/* A sum with constant c absorbs a factor s by changing c to c / s. The quotient
 * must be finite, so s must not be 0 or too small for c. */
static struct byi_scale_limits limits_of_sum(struct forward *f, byi_id id)
{
    struct byi_scale_limits limits = byi_scale_const_limits(&f->s, id);
    if (!limits.axes)
        return limits;
    limits.least = fmax(1.0 / limits.most, DBL_MIN);
    limits.most = DBL_MAX;
    return byi_scale_limits_both(limits, f->limits[id]);
}

/* Returns the operand of a product whose factor the product passes on: the
 * first operand if it has the result's type, otherwise the second. */
static uint32_t main_arg(const struct forward *f, byi_id id)
{
    const struct byi_node *node = byi_scale_node(&f->s, id);
    return byi_type_equal(byi_scale_node(&f->s, node->args[0])->type,
                          node->type)
               ? 0
               : 1;
}

static struct byi_scale_limits limits_of_product(struct forward *f, byi_id id,
                                                 uint32_t i)
{
    const struct byi_node *node = byi_scale_node(&f->s, id);
    const int arg = byi_scale_const_arg(&f->s, id);
    if (arg >= 0)
        return byi_scale_const_limits(&f->s, id);
    if (node->args[0] == node->args[1] || i != main_arg(f, id) ||
        (i == 1 && node->op == BYI_OP_DIVIDE))
        return byi_scale_limits_none;
    return byi_scale_limits_to_arg(&f->s, id, i, f->limits[id]);
}

/* The factors of a concatenation's operands are concatenated along its axis; a
 * single factor of an operand is repeated for each of its indices. */
static struct byi_scale_limits limits_of_part(const struct forward *f,
                                              byi_id id)
{
    const struct byi_node *node = byi_scale_node(&f->s, id);
    const uint32_t axis = byi_attr_axis(node->attrs, node->type->rank);
    struct byi_scale_limits limits = f->limits[id];
    for (uint32_t i = 0; i < node->n_args; i++)
        if (BYI_IS_SYMBOL(
                byi_scale_node(&f->s, node->args[i])->type->dims[axis]))
            return byi_scale_limits_none;
    limits.axes = limits.axes >> axis & 1 ? BYI_ALL_AXES | 1u << axis : 0;
    return limits;
}

/* Returns the limits of reader `id` for a scale of its operand i. */
static struct byi_scale_limits limits_at(struct forward *f, byi_id id,
                                         uint32_t i)
{
    bool nonnegative;
    struct byi_scale_limits limits;
    switch (byi_scale_how(&f->s, id, &nonnegative)) {
    case BYI_SCALE_BLOCKS:
        return byi_scale_limits_none;
    case BYI_SCALE_WEIGHTS:
        return i == 0 ? byi_scale_weights_limits(&f->s, id, false)
                      : byi_scale_limits_none;
    case BYI_SCALE_ADDS:
        return limits_of_sum(f, id);
    case BYI_SCALE_CONCATS:
        return limits_of_part(f, id);
    case BYI_SCALE_PRODUCT:
        return limits_of_product(f, id, i);
    case BYI_SCALE_PASSES:
        if (i != 0)
            return byi_scale_limits_none;
        limits = byi_scale_limits_to_arg(&f->s, id, 0, f->limits[id]);
        limits.nonnegative = limits.nonnegative || nonnegative;
        return limits;
    }
    byi_unreachable();
}

static void find_limits(struct forward *f)
{
    const uint32_t n = f->s.f->nodes.n;
    for (byi_id id = 0; id < n; id++)
        f->limits[id] = byi_scale_limits_any;
    f->limits[f->s.f->result] = byi_scale_limits_none;
    for (byi_id id = n; id-- > 0;) {
        const struct byi_node *node = byi_scale_node(&f->s, id);
        for (uint32_t i = 0; i < node->n_args; i++) {
            struct byi_scale_limits *limits = &f->limits[node->args[i]];
            if (limits->axes &&
                byi_scale_node(&f->s, node->args[i])->kind != BYI_CONST)
                *limits = byi_scale_limits_both(*limits, limits_at(f, id, i));
        }
    }
}

/* --- second walk, operands first: assign scales -------------------------- */

static void scale_product(struct forward *f, byi_id id)
{
    const struct byi_node *node = byi_scale_node(&f->s, id);
    byi_id x = BYI_NO_ID;
    const struct byi_scale *factor = byi_scale_of(&f->s, id, &x);
    const struct byi_scale *product =
        factor ? byi_scale_times(&f->s, factor, f->deferred[x]) : NULL;
    if (product && byi_scale_limits_fit(&f->limits[id], product)) {
        f->deferred[id] = product;
        byi_scale_edit(&f->s, id, BYI_EDIT_REMOVE, x, NULL);
        return;
    }
    const int arg = byi_scale_const_arg(&f->s, id);
    const uint32_t i = arg >= 0 ? (uint32_t)(1 - arg) : main_arg(f, id);
    const struct byi_scale *deferred = f->deferred[node->args[i]];
    if (!deferred)
        return;
    if (arg < 0)
        f->deferred[id] = byi_scale_to_result(&f->s, id, i, deferred);
    else if (node->op == BYI_OP_DIVIDE)
        byi_scale_edit(&f->s, id, BYI_EDIT_UNDER, BYI_NO_ID, deferred);
    else
        byi_scale_edit(&f->s, id, BYI_EDIT_TIMES, BYI_NO_ID, deferred);
}

static void scale_sum(struct forward *f, byi_id id)
{
    const struct byi_node *node = byi_scale_node(&f->s, id);
    const int arg = byi_scale_const_arg(&f->s, id);
    if (arg < 0 || !f->deferred[node->args[1 - arg]])
        return;
    f->deferred[id] = f->deferred[node->args[1 - arg]];
    byi_scale_edit(&f->s, id, BYI_EDIT_OVER, BYI_NO_ID, f->deferred[id]);
}

/* Join the factors of all operands along the axis of concatenation; an operand
 * without factors has 1. */
static void scale_concat(struct forward *f, byi_id id)
{
    const struct byi_node *node = byi_scale_node(&f->s, id);
    const uint32_t axis = byi_attr_axis(node->attrs, node->type->rank);
    int64_t at = 0;
    bool has_factors = false;
    for (uint32_t i = 0; i < node->n_args; i++)
        has_factors = has_factors || f->deferred[node->args[i]];
    if (!has_factors)
        return;
    const int64_t n_factors = node->type->dims[axis];
    double *v =
        byi_arena_calloc(f->s.scratch, (size_t)n_factors + 1, sizeof *v);
    struct byi_scale_sources *sources = NULL;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_scale *deferred = f->deferred[node->args[i]];
        const int64_t n =
            byi_scale_node(&f->s, node->args[i])->type->dims[axis];
        for (int64_t k = 0; k < n; k++)
            v[at++] =
                deferred ? deferred->values[deferred->n == 1 ? 0 : k] : 1.0;
        if (deferred)
            sources = byi_scale_sources_join(&f->s, byi_sources_none(), sources,
                                             deferred->sources);
    }
    f->deferred[id] = byi_scale_make(&f->s, (int)axis, n_factors, v, sources);
}

static void scale_node(struct forward *f, byi_id id)
{
    const struct byi_node *node = byi_scale_node(&f->s, id);
    bool nonnegative;
    const enum byi_scale_how how = byi_scale_how(&f->s, id, &nonnegative);
    if (how == BYI_SCALE_PRODUCT) {
        scale_product(f, id);
    } else if (how == BYI_SCALE_ADDS) {
        scale_sum(f, id);
    } else if (how == BYI_SCALE_CONCATS) {
        scale_concat(f, id);
    } else if (how != BYI_SCALE_BLOCKS && f->deferred[node->args[0]]) {
        const struct byi_scale *deferred = f->deferred[node->args[0]];
        if (how == BYI_SCALE_WEIGHTS)
            byi_scale_edit(&f->s, id, BYI_EDIT_WEIGHTS_IN, BYI_NO_ID, deferred);
        else
            f->deferred[id] = byi_scale_to_result(&f->s, id, 0, deferred);
    }
}

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    (void)ctx;
    struct forward f = {.s = byi_scaling_begin(m, func, scratch)};
    const uint32_t n = f.s.f->nodes.n;
    if (!byi_scaling_is_needed(&f.s))
        return BYOC_OK;
    f.limits = byi_arena_calloc(scratch, n + 1, sizeof *f.limits);
    f.deferred = byi_arena_calloc(scratch, n + 1, sizeof *f.deferred);
    find_limits(&f);
    for (byi_id id = 0; id < n; id++)
        scale_node(&f, id);
    return byi_scaling_end(&f.s, func, err);
}

const struct byi_pass byi_pass_forward_fold_scale_axis = {
    .name = "ForwardFoldScaleAxis",
    .summary = "fold multiplications into the weights after them",
    .opt_level = 3,
    .run_func = run,
};
