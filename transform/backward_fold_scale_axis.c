/* SPDX-License-Identifier: Apache-2.0 */
/* BackwardFoldScaleAxis: fold a multiplication after a linear operator into
 * the operator's weights.
 * requires: nothing; best after CanonicalizeOps, which moves constants to the
 *           right
 * leaves:   no multiplication or division by a constant (a scalar, or a factor
 *           per index of an axis) of a value computed by operators whose
 *           constant weights and operands can absorb the factor: through values
 *           with one reader, sums (each summand absorbs it), products,
 *           concatenations, and operators f with f(s x) = s f(x)
 *
 *   %0 = nn.conv2d(%x, const[w]);            %0 = nn.conv2d(%x, const[w s]);
 *   %1 = add(%0, const[b]);                  %1 = add(%0, const[b s]);
 *   %2 = nn.relu(%1);                 ==>    nn.relu(%1)
 *   multiply(%2, const[s])
 *
 *   with s of shape (C, 1, 1) and without negative elements
 */
#include "transform.h"

#include "scale_axis.h"

/* The state of the pass. */
struct backward {
    struct byi_scaling s;
    uint32_t *reads; /* for each node: how many nodes read it */
    /* for each node: the scales that its result can absorb */
    struct byi_scale_limits *limits;
    /* for each node: the scale requested of it, or NULL */
    const struct byi_scale **requested;
};

/* --- first walk, operands first: limits ----------------------------------- */

/* Returns the scales that operand i can absorb, as scales of the result. */
static struct byi_scale_limits limits_of_operand(const struct backward *b,
                                                 byi_id id, uint32_t i)
{
    const byi_id x = byi_scale_node(&b->s, id)->args[i];
    return b->reads[x] == 1
               ? byi_scale_limits_to_result(&b->s, id, i, b->limits[x])
               : byi_scale_limits_none;
}

/* Returns the operand of a product that absorbs a factor. This is a constant,
 * otherwise a division's dividend, or the first operand of a multiplication
 * that can absorb a scale. */
static uint32_t factor_arg(struct backward *b, byi_id id)
{
    const int arg = byi_scale_const_arg(&b->s, id);
    if (arg >= 0)
        return (uint32_t)arg;
    if (byi_scale_node(&b->s, id)->op == BYI_OP_DIVIDE)
        return 0;
    return limits_of_operand(b, id, 0).axes ? 0 : 1;
}

static struct byi_scale_limits limits_of_sum(struct backward *b, byi_id id)
{
    const int arg = byi_scale_const_arg(&b->s, id);
    if (arg >= 0)
        return byi_scale_limits_both(
            byi_scale_const_limits(&b->s, id),
            limits_of_operand(b, id, (uint32_t)(1 - arg)));
    return byi_scale_limits_both(limits_of_operand(b, id, 0),
                                 limits_of_operand(b, id, 1));
}

/* A scale along the concatenated axis is divided among the operands, so every
 * operand must have a static size there. */
static struct byi_scale_limits limits_of_concat(struct backward *b, byi_id id)
{
    const struct byi_node *node = byi_scale_node(&b->s, id);
    const uint32_t rank = node->type->rank;
    const uint32_t axis = byi_attr_axis(node->attrs, rank);
    struct byi_scale_limits common = byi_scale_limits_any;
    bool is_static = true;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const byi_id x = node->args[i];
        struct byi_scale_limits limits =
            b->reads[x] == 1 ? b->limits[x] : byi_scale_limits_none;
        is_static = is_static &&
                    !BYI_IS_SYMBOL(byi_scale_node(&b->s, x)->type->dims[axis]);
        common = byi_scale_limits_both(common, limits);
    }
    if (!is_static)
        common.axes &= ~(1u << axis);
    return common;
}

static struct byi_scale_limits limits_of(struct backward *b, byi_id id)
{
    bool nonnegative;
    struct byi_scale_limits limits;
    switch (byi_scale_how(&b->s, id, &nonnegative)) {
    case BYI_SCALE_BLOCKS:
        return byi_scale_limits_none;
    case BYI_SCALE_WEIGHTS:
        return byi_scale_weights_limits(&b->s, id, true);
    case BYI_SCALE_ADDS:
        return limits_of_sum(b, id);
    case BYI_SCALE_CONCATS:
        return limits_of_concat(b, id);
    case BYI_SCALE_PRODUCT:
        return byi_scale_const_arg(&b->s, id) >= 0
                   ? byi_scale_const_limits(&b->s, id)
                   : limits_of_operand(b, id, factor_arg(b, id));
    case BYI_SCALE_PASSES:
        limits = limits_of_operand(b, id, 0);
        limits.nonnegative = limits.nonnegative || nonnegative;
        return limits;
    }
    byi_unreachable();
}

/* --- second walk, results first: assign scales --------------------------- */

/* Request of operand i the scale that makes the result absorb `requested`. */
static void request_of_operand(struct backward *b, byi_id id, uint32_t i,
                               const struct byi_scale *requested)
{
    b->requested[byi_scale_node(&b->s, id)->args[i]] =
        byi_scale_to_arg(&b->s, id, i, requested);
}

/* Request of every operand of a concatenation its part of the scale. */
static void request_of_parts(struct backward *b, byi_id id,
                             const struct byi_scale *requested)
{
    const struct byi_node *node = byi_scale_node(&b->s, id);
    const uint32_t axis = byi_attr_axis(node->attrs, node->type->rank);
    int64_t first = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const int64_t n =
            byi_scale_node(&b->s, node->args[i])->type->dims[axis];
        b->requested[node->args[i]] =
            requested->axis == (int)axis
                ? byi_scale_part(&b->s, requested, first, n)
                : requested;
        first += n;
    }
}

/* A product is removed if its operand can absorb both its own factor and the
 * requested one. Otherwise the product's constant, or its operand factor_arg(),
 * absorbs the requested factor. */
static void scale_product(struct backward *b, byi_id id,
                          const struct byi_scale *requested)
{
    byi_id x = BYI_NO_ID;
    const struct byi_scale *factor = byi_scale_of(&b->s, id, &x);
    const struct byi_scale *product =
        factor ? byi_scale_times(&b->s, factor, requested) : NULL;
    if (product && b->reads[x] == 1 &&
        byi_scale_limits_fit(&b->limits[x], product)) {
        b->requested[x] = product;
        byi_scale_edit(&b->s, id, BYI_EDIT_REMOVE, x, NULL);
        return;
    }
    if (!requested)
        return;
    if (byi_scale_const_arg(&b->s, id) < 0)
        request_of_operand(b, id, factor_arg(b, id), requested);
    else if (byi_scale_node(&b->s, id)->op == BYI_OP_DIVIDE)
        byi_scale_edit(&b->s, id, BYI_EDIT_UNDER, BYI_NO_ID, requested);
    else
        byi_scale_edit(&b->s, id, BYI_EDIT_TIMES, BYI_NO_ID, requested);
}

static void scale_sum(struct backward *b, byi_id id,
                      const struct byi_scale *requested)
{
    const int arg = byi_scale_const_arg(&b->s, id);
    for (int i = 0; i < 2; i++)
        if (i != arg)
            request_of_operand(b, id, (uint32_t)i, requested);
    if (arg >= 0)
        byi_scale_edit(&b->s, id, BYI_EDIT_TIMES, BYI_NO_ID, requested);
}

static void scale_node(struct backward *b, byi_id id)
{
    const struct byi_scale *requested = b->requested[id];
    bool nonnegative;
    const enum byi_scale_how how = byi_scale_how(&b->s, id, &nonnegative);
    if (how == BYI_SCALE_PRODUCT)
        scale_product(b, id, requested);
    else if (!requested)
        return;
    else if (how == BYI_SCALE_WEIGHTS)
        byi_scale_edit(&b->s, id, BYI_EDIT_WEIGHTS_OUT, BYI_NO_ID, requested);
    else if (how == BYI_SCALE_ADDS)
        scale_sum(b, id, requested);
    else if (how == BYI_SCALE_CONCATS)
        request_of_parts(b, id, requested);
    else
        request_of_operand(b, id, 0, requested);
}

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    (void)ctx;
    struct backward b = {.s = byi_scaling_begin(m, func, scratch)};
    const uint32_t n = b.s.f->nodes.n;
    if (!byi_scaling_is_needed(&b.s))
        return BYOC_OK;
    b.reads = byi_arena_calloc(scratch, n + 1, sizeof *b.reads);
    b.limits = byi_arena_calloc(scratch, n + 1, sizeof *b.limits);
    b.requested = byi_arena_calloc(scratch, n + 1, sizeof *b.requested);
    b.reads[b.s.f->result] = 1;
    for (byi_id id = 0; id < n; id++)
        for (uint32_t i = 0; i < byi_scale_node(&b.s, id)->n_args; i++)
            b.reads[byi_scale_node(&b.s, id)->args[i]]++;
    for (byi_id id = 0; id < n; id++)
        b.limits[id] = limits_of(&b, id);
    for (byi_id id = n; id-- > 0;)
        scale_node(&b, id);
    return byi_scaling_end(&b.s, func, err);
}

const struct byi_pass byi_pass_backward_fold_scale_axis = {
    .name = "BackwardFoldScaleAxis",
    .summary = "fold multiplications into the weights before them",
    .opt_level = 3,
    .run_func = run,
};
