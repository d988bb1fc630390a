/* SPDX-License-Identifier: Apache-2.0 */
/* Recompose: recognise operators that exporters decomposed.
 * requires: nothing; best after CanonicalizeOps, which makes clip of minimum
 *           and maximum
 * leaves:   nn.layer_norm, nn.gelu, nn.silu, nn.mish, nn.hard_swish,
 *           nn.hard_sigmoid, nn.softplus, sigmoid, nn.softmax and
 *           nn.log_softmax instead of their arithmetic, and masks of a softmax
 *           as sums, if the inner values have no other readers; the constants
 *           of gates match within 1e-3
 *
 *   %0 = multiply(%x, const(0.7071));
 *   %1 = erf(%0);
 *   %2 = add(%1, const(1));              ==>   nn.gelu(%x)
 *   %3 = multiply(%x, %2);
 *   multiply(%3, const(0.5))
 */
#include "transform.h"

#include "recompose.h"

/* Whether all reductions and softmaxes of the match are over the same single
 * axis. Binds `axis` to that axis, -1 for the last one. */
static bool has_same_axis(struct byi_row_match *r)
{
    const int64_t rank = byi_rw_node(r->rw, r->match->root)->type->rank;
    int64_t found = -1;
    for (uint32_t i = 0; i < r->match->n_ops; i++) {
        const struct byi_attr *attr =
            byi_attr_find(byi_rw_node(r->rw, r->match->ops[i])->attrs, "axis");
        if (!attr)
            continue;
        if (attr->kind == BYI_ATTR_INTS && attr->n != 1)
            return false;
        int64_t axis = attr->kind == BYI_ATTR_INTS ? attr->ints[0] : attr->i;
        axis += axis < 0 ? rank : 0;
        if (found >= 0 && axis != found)
            return false;
        found = axis;
    }
    return byi_row_bind_int(r, "axis", found == rank - 1 ? -1 : found);
}

/* Whether float32 scores are masked by a number so low that its sum with a
 * score is the number itself. Several matrices, such as those of all heads,
 * must share the mask. FuseAttention recognises a sum with such a mask, but not
 * a `where`. Masked scores that are not finite become NaN. */
static bool is_low_mask(struct byi_row_match *r)
{
    const struct byi_type *x = byi_row_node(r, "x")->type;
    const struct byi_type *mask = byi_row_node(r, "mask")->type;
    double low;
    if (x->dtype != BYOC_F32 ||
        !byi_rw_splat(r->rw, byi_row_value(r, "low"), &low) || !(low < -1e30))
        return false;
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        const int64_t at = (int64_t)i + mask->rank - x->rank;
        if (x->dims[i] != 1 && (at < 0 || mask->dims[at] == 1))
            return true;
    }
    return false;
}

/* x - max(x), which has the same softmax as x. If the maximum has other
 * readers, the row without SHIFTED matches, with the difference as x. */
#define SHIFTED "subtract(%x, max(%x){keepdims=true})"
#define SUM(e) "sum(" e "){keepdims=true}"
#define LOG_SUM(z)                                                             \
    "(log(" SUM("exp(" z ")") ") | reduce_log_sum_exp(" z "){keepdims=true})"
#define MASKED_ROWS(scores, numbers)                                           \
    BYI_ROW_IF("nn.softmax(" scores ")",                                       \
               "again(add(%x, where(%mask, " numbers ")))", is_low_mask),      \
        BYI_ROW_IF("nn.softmax(add(" scores ", %more))",                       \
                   "again(add(add(%x, where(%mask, " numbers ")), %more))",    \
                   is_low_mask)
#define EXP_PLUS_ONE(x) "add(exp(" x "), const %one)"

/* clang-format off */
static const struct byi_row rows[] = {
    BYI_NORM_ROWS,
    /* softmax, as a quotient or a product with the reciprocal */
    BYI_ROW_IF("multiply(%e, / " SUM("%e") ") with %e = exp(" SHIFTED ")",
     "nn.softmax(%x, axis=axis)", has_same_axis),
    BYI_ROW_IF("multiply(%e, / " SUM("%e") ") with %e = exp(%x)",
     "nn.softmax(%x, axis=axis)", has_same_axis),
    BYI_ROW_IF("nn.softmax(" SHIFTED ")", "nn.softmax(%x, axis=axis)", has_same_axis),
    MASKED_ROWS("where(%mask, %x, const %low)", "0.0, %low"),
    MASKED_ROWS("where(%mask, const %low, %x)", "%low, 0.0"),
    BYI_ROW_IF("log(nn.softmax(%x))", "nn.log_softmax(%x, axis=axis)", has_same_axis),
    BYI_ROW_IF("subtract(%z, " LOG_SUM("%z") ") with %z = " SHIFTED,
     "nn.log_softmax(%x, axis=axis)", has_same_axis),
    BYI_ROW_IF("subtract(%x, " LOG_SUM("%x") ")", "nn.log_softmax(%x, axis=axis)", has_same_axis),
    /* functions of 1 + e^x */
    BYI_ROW("log(" EXP_PLUS_ONE("%x") ")", "nn.softplus(%x)"),
    BYI_ROW("divide(const %one1, " EXP_PLUS_ONE("negative(%x)") ")", "sigmoid(%x)"),
    BYI_ROW("reciprocal(" EXP_PLUS_ONE("negative(%x)") ")", "sigmoid(%x)"),
    BYI_ROW("multiply(%x, tanh(nn.softplus(%x)))", "nn.mish(%x)"),
    /* x times a gate */
    BYI_ROW_RULE(BYI_OP_MULTIPLY, byi_recompose_gate),
    BYI_ROW_RULE(BYI_OP_DIVIDE, byi_recompose_gate),
};
/* clang-format on */

BYI_ROWS_PASS(recompose, "Recompose", 1,
              "recognise operators that exporters decomposed", rows)
