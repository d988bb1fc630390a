/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.c: recognises fused groups that consist of a convolution or a
 * product and its epilogue. The plan runs such a group as one step, a call of
 * one native kernel.
 */
#include "plan.h"

#include "core/ops/epilogue.h"

byi_id byi_epilogue_next(const struct byi_func *group, byi_id head, byi_id from,
                         byi_id *operand)
{
    const struct byi_node *first = &group->nodes.at[head];
    const struct byi_node *previous = &group->nodes.at[from];
    for (byi_id id = from + 1; id < group->nodes.n; id++) {
        const struct byi_node *node = &group->nodes.at[id];
        if (node->kind != BYI_CALL_OP)
            continue;
        *operand = BYI_NO_ID;
        if (node->n_args == 2)
            *operand = node->args[node->args[0] == from];
        const struct byi_type *type =
            node->n_args == 2 ? group->nodes.at[*operand].type : NULL;
        const bool reads = node->args[0] == from ||
                           (node->n_args == 2 && node->args[1] == from &&
                            byi_op_has(node->op, BYI_TRAIT_COMMUTES));
        return reads && *operand != from && node->n_args <= 2 &&
                       byi_type_equal(node->type, previous->type) &&
                       byi_epilogue_allows(node->op, previous->type,
                                           byi_epilogue_axis(first->op,
                                                             first->attrs,
                                                             first->type->rank),
                                           type)
                   ? id
                   : BYI_NO_ID;
    }
    return BYI_NO_ID;
}

byi_id byi_epilogue_head(const struct byi_func *group)
{
    byi_id head = 0, last, operand;
    uint32_t ops = 0, n = 0;
    if (!group->attr.primitive || group->n_captures)
        return BYI_NO_ID;
    for (byi_id id = group->nodes.n; id-- > 0;) {
        const struct byi_node *node = &group->nodes.at[id];
        if (node->kind != BYI_CALL_OP)
            continue;
        head = id;
        ops++;
    }
    if (ops < 2 || ops > 1 + BYI_EPILOGUE_OPS)
        return BYI_NO_ID;
    const struct byi_node *node = &group->nodes.at[head];
    if (node->n_args < 2 ||
        !byi_epilogue_is_supported(node->op, node->attrs, node->n_args,
                                   group->nodes.at[node->args[1]].type,
                                   node->type))
        return BYI_NO_ID;
    for (last = head; last != BYI_NO_ID && last != group->result; n++)
        last = byi_epilogue_next(group, head, last, &operand);
    return last == group->result && n + 1 == ops ? head : BYI_NO_ID;
}
