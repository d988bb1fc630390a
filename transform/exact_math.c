/* SPDX-License-Identifier: Apache-2.0 */
/* ExactMath: compute functions of float32 in float64, for which native kernels
 * call the C library. Results are then correctly rounded, except in rare cases
 * near a tie.
 * requires: nothing
 * leaves:   no operator of float32 with the trait BYI_TRAIT_WIDENS
 *
 *                           %0 = cast(%x, dtype="float64");
 *   tanh(%x)        ==>     %1 = tanh(%0);
 *                           cast(%1, dtype="float32")
 *
 * Not in the default pipeline: --pass ExactMath enables it. The pass runs
 * before partitioning, so that no backend approximates the functions either.
 */
#include "transform.h"

#include "rewrite.h"

static byi_id cast(struct byi_rewrite *rw, byi_id x, enum byoc_dtype dtype)
{
    const struct byi_attr to = {
        .name = "dtype", .kind = BYI_ATTR_DTYPE, .i = dtype};
    return byi_rw_call(rw, BYI_OP_CAST, &x, 1, &to, 1);
}

static byi_id widen(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    if (node->kind != BYI_CALL_OP || !byi_op_has(node->op, BYI_TRAIT_WIDENS) ||
        node->type->dtype != BYOC_F32)
        return BYI_NO_ID;
    const byi_id x = cast(rw, byi_rw_arg(rw, at, 0), BYOC_F64);
    return cast(rw, byi_rw_call_like(rw, at, &x), BYOC_F32);
}

BYI_RULES_PASS(exact_math, "ExactMath", 3,
               "compute functions of float32 in float64", {BYI_OP_NONE, widen})
