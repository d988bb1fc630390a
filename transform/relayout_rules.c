/* SPDX-License-Identifier: Apache-2.0 */
/* relayout_rules.c: the layouts of operands and results that a state of an
 * operator stands for, according to the layout column of ops.def.
 */
#include "relayout.h"

#include <string.h>

#include "core/ops/layout.h"

const struct byi_type *byi_rl_type(const struct byi_relayout *rl, byi_id id)
{
    const struct byi_type *type = byi_rl_node(rl, id)->type;
    return type->kind == BYI_TENSOR ? type : NULL;
}

/* Returns the type of operand i. */
static const struct byi_type *arg_type(const struct byi_relayout *rl, byi_id id,
                                       uint32_t i)
{
    return byi_rl_type(rl, byi_rl_node(rl, id)->args[i]);
}

/* Returns the type whose axes a state orders. */
static const struct byi_type *state_type(const struct byi_relayout *rl,
                                         byi_id id)
{
    const struct byi_site *site = &rl->sites[id];
    const enum byi_op_layout layout = byi_op(byi_rl_node(rl, id)->op)->layout;
    if (site->rule == BYI_RL_INSERT || layout == BYI_LAYOUT_BROADCAST)
        return byi_rl_type(rl, id);
    return arg_type(rl, id, 0);
}

/* --- classification ------------------------------------------------------ */

static uint32_t normal_axis(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* Returns the mask of the axes in attribute `axis`, without axes out of range;
 * 0 if the attribute is absent. */
static uint32_t axis_mask(const struct byi_attrs *attrs, uint32_t rank)
{
    const struct byi_attr *axis = byi_attr_find(attrs, "axis");
    if (!axis)
        return 0;
    const int64_t *list = axis->kind == BYI_ATTR_INT ? &axis->i : axis->ints;
    const uint32_t n = axis->kind == BYI_ATTR_INT ? 1 : axis->n;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n; i++)
        if (normal_axis(list[i], rank) < rank)
            mask |= 1u << normal_axis(list[i], rank);
    return mask;
}

static bool is_const(const struct byi_relayout *rl, byi_id id, uint32_t i)
{
    return byi_rl_node(rl, byi_rl_node(rl, id)->args[i])->kind == BYI_CONST;
}

/* Whether operand 1 is a constant vector of n numbers, one or two per axis. */
static bool lists_axes(const struct byi_relayout *rl, byi_id id, uint32_t n)
{
    const struct byi_type *type = arg_type(rl, id, 1);
    return is_const(rl, id, 1) && type->rank == 1 && type->dims[0] == n;
}

static uint32_t classify_reduce(struct byi_relayout *rl, byi_id id)
{
    struct byi_site *site = &rl->sites[id];
    const struct byi_attrs *attrs = byi_rl_node(rl, id)->attrs;
    const uint32_t rank = arg_type(rl, id, 0)->rank;
    site->mask = axis_mask(attrs, rank);
    if (site->mask == 0 && !byi_attr_find(attrs, "noop_empty"))
        return BYI_RL_FIXED;
    if (byi_attr_int(attrs, "keepdims"))
        return BYI_RL_SAME;
    if (site->mask == 0 && !byi_attr_int(attrs, "noop_empty"))
        site->mask = (1u << rank) - 1; /* all of them */
    return site->mask ? BYI_RL_DROP : BYI_RL_SAME;
}

/* squeeze without axes drops the axes that have size 1 at run time. */
static uint32_t classify_squeeze(struct byi_relayout *rl, byi_id id)
{
    rl->sites[id].mask =
        axis_mask(byi_rl_node(rl, id)->attrs, arg_type(rl, id, 0)->rank);
    return rl->sites[id].mask ? BYI_RL_DROP : BYI_RL_FIXED;
}

static uint32_t classify_perm(struct byi_relayout *rl, byi_id id)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    const uint32_t rank = arg_type(rl, id, 0)->rank;
    struct byi_site *site = &rl->sites[id];
    switch (node->op) {
    case BYI_OP_NN_PAD:
        return lists_axes(rl, id, 2 * rank) ? BYI_RL_SAME : BYI_RL_FIXED;
    case BYI_OP_TILE:
    case BYI_OP_RESIZE:
        return lists_axes(rl, id, rank) ? BYI_RL_SAME : BYI_RL_FIXED;
    case BYI_OP_BROADCAST_TO:
        return lists_axes(rl, id, rank) && byi_rl_type(rl, id)->rank == rank
                   ? BYI_RL_SAME
                   : BYI_RL_FIXED;
    case BYI_OP_STRIDED_SLICE:
        return is_const(rl, id, 3) ? BYI_RL_SAME : BYI_RL_FIXED;
    case BYI_OP_NN_LAYER_NORM:
        return BYI_RL_SAME;
    case BYI_OP_TAKE:
        site->mask = axis_mask(node->attrs, rank);
        return arg_type(rl, id, 1)->rank == 0   ? BYI_RL_DROP
               : arg_type(rl, id, 1)->rank == 1 ? BYI_RL_SAME
                                                : BYI_RL_FIXED;
    case BYI_OP_SQUEEZE:
        return classify_squeeze(rl, id);
    case BYI_OP_EXPAND_DIMS:
        site->mask = axis_mask(node->attrs, byi_rl_type(rl, id)->rank);
        return BYI_RL_INSERT;
    default:
        return BYI_RL_FIXED;
    }
}

/* A reshape merges and splits runs of axes. A run of the operand's axes and a
 * run of the result's with as many elements make a group. */
static uint32_t classify_reshape(struct byi_relayout *rl, byi_id id)
{
    const struct byi_type *in = arg_type(rl, id, 0), *out = byi_rl_type(rl, id);
    struct byi_site *site = &rl->sites[id];
    uint32_t i = 0, k = 0;
    if (!byi_type_is_static(in) || !byi_type_is_static(out) || in->rank == 0 ||
        out->rank == 0 || byi_elements(in->rank, in->dims) <= 0)
        return BYI_RL_FIXED;
    while (i < in->rank && k < out->rank) {
        int64_t a = in->dims[i], b = out->dims[k];
        site->mask |= 1u << i++ | 1u << (BYI_RL_RESULT + k++);
        while (a != b && i <= in->rank && k <= out->rank)
            if (a < b)
                a *= in->dims[i++];
            else
                b *= out->dims[k++];
    }
    /* two groups: axis 0, and all others */
    const uint32_t rows = 3u | 3u << BYI_RL_RESULT;
    if (site->mask == rows && out->rank == 2 && in->rank > 2 && !site->mixed)
        return BYI_RL_UNROLL;
    return __builtin_popcount(site->mask) > 2 ? BYI_RL_GROUP : BYI_RL_FIXED;
}

static uint32_t operand_groups(const struct byi_site *site)
{
    return site->mask & ((1u << BYI_RL_RESULT) - 1);
}

static uint32_t result_groups(const struct byi_site *site)
{
    return site->mask >> BYI_RL_RESULT;
}

static uint32_t classify_call(struct byi_relayout *rl, byi_id id)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    if (node->op == BYI_OP_NN_MATMUL || node->op == BYI_OP_NN_DENSE)
        return BYI_RL_MATMUL;
    if (node->op == BYI_OP_RESHAPE || node->op == BYI_OP_FLATTEN)
        return classify_reshape(rl, id);
    switch (byi_op(node->op)->layout) {
    case BYI_LAYOUT_FIXED:
        return BYI_RL_FIXED;
    case BYI_LAYOUT_SENSITIVE:
    case BYI_LAYOUT_AGNOSTIC:
    case BYI_LAYOUT_BROADCAST:
    case BYI_LAYOUT_JOIN:
    case BYI_LAYOUT_AXIS:
        return BYI_RL_SAME;
    case BYI_LAYOUT_REDUCE:
        return classify_reduce(rl, id);
    case BYI_LAYOUT_PERM:
        return classify_perm(rl, id);
    }
    byi_unreachable();
}

/* Whether a layout-sensitive operator has weights. Such operators,
 * convolutions, keep their layout unless pinned, since another layout means
 * another algorithm. Pooling propagates layouts. */
static bool has_weights(const struct byi_node *node)
{
    return byi_attr_find(node->attrs, "kernel_layout") != NULL;
}

void byi_rl_classify(struct byi_relayout *rl, byi_id id)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    struct byi_site *site = &rl->sites[id];
    if (node->kind != BYI_CALL_OP || node->n_args == 0) {
        site->rule = BYI_RL_FIXED;
        return;
    }
    site->rule = (uint8_t)classify_call(rl, id);
    if (byi_op(node->op)->layout == BYI_LAYOUT_SENSITIVE)
        site->pinned = has_weights(node);
}

/* --- states -------------------------------------------------------------- */

/* Returns the name of the attribute that has the data's layout. */
static const char *layout_attr(const struct byi_attrs *attrs)
{
    return byi_attr_find(attrs, "layout") ? "layout" : "data_layout";
}

static bool allows_layout(const struct byi_relayout *rl, byi_id id,
                          const struct byi_rl_layout *layout)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    const char *attr = layout_attr(node->attrs);
    const char *now = byi_attr_find(node->attrs, attr)->s;
    const char *quoted = byi_op_attr(byi_op(node->op), attr)->default_text;
    char name[BYI_RL_LAYOUT_NAME], default_layout[BYI_RL_LAYOUT_NAME] = "";
    struct byi_layout parsed;
    if (strlen(now) != layout->rank) /* it is in blocks already */
        return false;
    strncpy(default_layout, quoted + 1, strlen(quoted) - 2);
    return byi_layout_parse(byi_rl_layout_name(layout, now, name), &parsed) ==
               NULL &&
           byi_layout_is_data(&parsed, default_layout);
}

/* Whether an operator would concatenate or slice inside a block. */
static bool cuts_blocks(const struct byi_relayout *rl, byi_id id,
                        const struct byi_rl_layout *layout)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    const enum byi_op_layout kind = byi_op(node->op)->layout;
    const uint32_t rank = arg_type(rl, id, 0)->rank;
    const uint32_t axes = axis_mask(node->attrs, rank);
    if (!layout->block || kind == BYI_LAYOUT_BROADCAST ||
        kind == BYI_LAYOUT_AGNOSTIC || kind == BYI_LAYOUT_SENSITIVE)
        return false;
    if (kind == BYI_LAYOUT_PERM)
        return true;
    if (kind == BYI_LAYOUT_REDUCE && axes == 0)
        return true;
    if (!(axes >> layout->block_axis & 1))
        return false;
    if (node->op != BYI_OP_CONCATENATE)
        return true;
    for (uint32_t i = 0; i < node->n_args; i++)
        if (arg_type(rl, id, i)->dims[layout->block_axis] % layout->block != 0)
            return true;
    return false;
}

static bool fits_fields(const struct byi_rl_layout *layout,
                        const struct byi_type *type)
{
    if (type->kind != BYI_TUPLE)
        return byi_rl_layout_fits(layout, type);
    for (uint32_t i = 0; i < type->n_fields; i++)
        if (!byi_rl_layout_fits(layout, type->fields[i]))
            return false;
    return true;
}

/* Whether the axes that a layer norm reduces, the last ones, stay in place. */
static bool keeps_last(const struct byi_relayout *rl, byi_id id,
                       const struct byi_rl_layout *layout)
{
    const struct byi_attrs *attrs = byi_rl_node(rl, id)->attrs;
    uint32_t axis = normal_axis(byi_attr_int(attrs, "axis"), layout->rank);
    for (; axis < layout->rank; axis++)
        if (layout->at[axis] != axis)
            return false;
    return true;
}

static bool allows_unroll(const struct byi_relayout *rl, byi_id id,
                          uint32_t state)
{
    const struct byi_type *type = arg_type(rl, id, 0);
    const struct byi_rl_layout layout =
        byi_rl_layout_at(&rl->layouts, state, type->rank);
    return layout.rank == type->rank && layout.at[0] == 0 &&
           !(layout.block && layout.block_axis == 0) &&
           byi_rl_layout_fits(&layout, type);
}

static bool allows_matmul(const struct byi_relayout *rl, byi_id id,
                          uint32_t state)
{
    for (uint32_t i = 0; i < 2; i++) {
        const byi_id origin = rl->sites[byi_rl_node(rl, id)->args[i]].origin;
        if (state >> i & 1 && (arg_type(rl, id, i)->rank < 2 ||
                               byi_rl_node(rl, origin)->kind == BYI_CONST))
            return false; /* constants can be stored as needed instead */
    }
    return state < 4;
}

bool byi_rl_allows(const struct byi_relayout *rl, byi_id id, uint32_t state)
{
    const struct byi_site *site = &rl->sites[id];
    const struct byi_node *node = byi_rl_node(rl, id);
    if (site->rule == BYI_RL_FIXED)
        return state == 0;
    if (site->rule == BYI_RL_MATMUL)
        return allows_matmul(rl, id, state);
    if (state == 0)
        return true;
    if (state == BYI_RL_NO_LAYOUT)
        return false;
    if (site->rule == BYI_RL_UNROLL)
        return allows_unroll(rl, id, state);
    if (site->rule == BYI_RL_GROUP)
        return byi_rl_layout_at(&rl->layouts, state, 0).rank ==
               __builtin_popcount(operand_groups(site));
    const struct byi_type *type = state_type(rl, id);
    const struct byi_rl_layout layout =
        byi_rl_layout_at(&rl->layouts, state, type->rank);
    if (layout.rank != type->rank || !byi_rl_layout_fits(&layout, type) ||
        cuts_blocks(rl, id, &layout))
        return false;
    if (site->rule == BYI_RL_SAME && !fits_fields(&layout, node->type))
        return false;
    if (site->rule != BYI_RL_SAME && layout.block &&
        site->mask >> layout.block_axis & 1)
        return false;
    if (byi_op(node->op)->layout == BYI_LAYOUT_SENSITIVE)
        return allows_layout(rl, id, &layout);
    if (node->op == BYI_OP_NN_LAYER_NORM)
        return keeps_last(rl, id, &layout);
    for (uint32_t i = 0; layout.block && i < node->n_args; i++)
        if (byi_rl_need((struct byi_relayout *)rl, id, state, i) &&
            !byi_rl_layout_fits(&layout, arg_type(rl, id, i)))
            return false;
    return true;
}

byi_rl_layout_id byi_rl_out(struct byi_relayout *rl, byi_id id, uint32_t state)
{
    const struct byi_site *site = &rl->sites[id];
    if (site->rule == BYI_RL_MATMUL || site->rule == BYI_RL_UNROLL)
        return 0;
    if (site->rule == BYI_RL_GROUP)
        return byi_rl_layout_change(&rl->layouts, BYI_RL_UNGROUP, state,
                                    byi_rl_type(rl, id)->rank,
                                    result_groups(site));
    if (site->rule == BYI_RL_DROP)
        return byi_rl_layout_change(&rl->layouts, BYI_RL_DROP_AXES, state,
                                    arg_type(rl, id, 0)->rank, site->mask);
    return state;
}

bool byi_rl_has_lower_rank(const struct byi_relayout *rl, byi_id id, uint32_t i)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    return node->kind == BYI_CALL_OP &&
           byi_op(node->op)->layout == BYI_LAYOUT_BROADCAST &&
           arg_type(rl, id, i)->rank != byi_rl_type(rl, id)->rank;
}

/* Whether operand i of a SAME operator has the axes of its state. */
static bool has_axes(const struct byi_relayout *rl, byi_id id, uint32_t i)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    switch (byi_op(node->op)->layout) {
    case BYI_LAYOUT_BROADCAST:
        return !byi_rl_has_lower_rank(rl, id, i);
    case BYI_LAYOUT_JOIN:
        return true;
    default:
        return i == 0;
    }
}

static byi_rl_layout_id swap_last(struct byi_relayout *rl, uint32_t rank)
{
    struct byi_rl_layout layout = byi_rl_layout_at(&rl->layouts, 0, rank);
    layout.at[rank - 1] = (uint8_t)(rank - 2);
    layout.at[rank - 2] = (uint8_t)(rank - 1);
    return byi_rl_layout_intern(&rl->layouts, &layout);
}

byi_rl_layout_id byi_rl_need(struct byi_relayout *rl, byi_id id, uint32_t state,
                             uint32_t i)
{
    const struct byi_site *site = &rl->sites[id];
    switch ((enum byi_relayout_rule)site->rule) {
    case BYI_RL_FIXED:
        return 0;
    case BYI_RL_SAME:
        if (i == 1 && site->kernel_layout)
            return site->kernel_layout;
        return state && has_axes(rl, id, i) ? state : 0;
    case BYI_RL_DROP:
    case BYI_RL_UNROLL:
        return i == 0 ? state : 0;
    case BYI_RL_INSERT:
        return i == 0
                   ? byi_rl_layout_change(&rl->layouts, BYI_RL_DROP_AXES, state,
                                          byi_rl_type(rl, id)->rank, site->mask)
                   : 0;
    case BYI_RL_GROUP:
        return i == 0 ? byi_rl_layout_change(&rl->layouts, BYI_RL_UNGROUP,
                                             state, arg_type(rl, id, 0)->rank,
                                             operand_groups(site))
                      : 0;
    case BYI_RL_MATMUL:
        return state >> i & 1 ? swap_last(rl, arg_type(rl, id, i)->rank) : 0;
    }
    byi_unreachable();
}

uint32_t byi_rl_from_operand(struct byi_relayout *rl, byi_id id, uint32_t i,
                             byi_rl_layout_id layout)
{
    const struct byi_site *site = &rl->sites[id];
    switch ((enum byi_relayout_rule)site->rule) {
    case BYI_RL_FIXED:
        return 0;
    case BYI_RL_SAME:
        return has_axes(rl, id, i) ? layout : site->state;
    case BYI_RL_DROP:
    case BYI_RL_UNROLL:
        return i == 0 ? layout : site->state;
    case BYI_RL_INSERT:
        if (i != 0 || byi_rl_need(rl, id, site->state, 0) == layout)
            return site->state;
        return byi_rl_layout_change(&rl->layouts, BYI_RL_INSERT_AXES, layout,
                                    byi_rl_type(rl, id)->rank, site->mask);
    case BYI_RL_GROUP:
        return i == 0 ? byi_rl_layout_change(&rl->layouts, BYI_RL_MAKE_GROUPS,
                                             layout, arg_type(rl, id, 0)->rank,
                                             operand_groups(site))
                      : site->state;
    case BYI_RL_MATMUL:
        return site->state;
    }
    byi_unreachable();
}

uint32_t byi_rl_from_result(struct byi_relayout *rl, byi_id id,
                            byi_rl_layout_id layout)
{
    const struct byi_site *site = &rl->sites[id];
    if (site->rule == BYI_RL_FIXED || site->rule == BYI_RL_MATMUL ||
        site->rule == BYI_RL_UNROLL)
        return site->state;
    if (site->rule == BYI_RL_GROUP)
        return byi_rl_layout_change(&rl->layouts, BYI_RL_MAKE_GROUPS, layout,
                                    byi_rl_type(rl, id)->rank,
                                    result_groups(site));
    if (site->rule != BYI_RL_DROP)
        return layout;
    if (byi_rl_out(rl, id, site->state) == layout)
        return site->state;
    return byi_rl_layout_change(&rl->layouts, BYI_RL_INSERT_AXES, layout,
                                arg_type(rl, id, 0)->rank, site->mask);
}

byi_rl_layout_id byi_rl_at_origin(struct byi_relayout *rl, byi_id id,
                                  byi_rl_layout_id need)
{
    const struct byi_site *site = &rl->sites[id];
    if (!site->rel || !need)
        return site->rel ? site->rel : need;
    return byi_rl_layout_compose(&rl->layouts, site->rel, need,
                                 byi_rl_type(rl, site->origin)->rank);
}
