/* SPDX-License-Identifier: Apache-2.0 */
/* simplify_product.c: rules that let nn.matmul read its second operand where
 * it is, instead of a copy. See simplify.h.
 */
#include "simplify.h"

/* Whether it only swaps the last two axes. */
static bool is_flip(const struct byi_rewrite *rw, byi_id id)
{
    if (!byi_rw_is(rw, id, BYI_OP_TRANSPOSE) || !byi_rw_tensor(rw, id))
        return false;
    const uint32_t rank = byi_rw_tensor(rw, id)->rank;
    uint32_t n;
    const int64_t *axes = byi_attr_ints(byi_rw_node(rw, id)->attrs, "axes", &n);
    bool flip = n == 0 ? rank == 2 : n == rank && rank >= 2;
    for (uint32_t i = 0; n > 0 && flip && i < rank; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        flip = axis == (i + 2 < rank ? i : 2 * (int64_t)rank - 3 - i);
    }
    return flip;
}

/* nn.matmul(a, transpose(b))  ==>  nn.matmul(a, b, transpose_b=true) */
byi_id byi_transpose_in_product(struct byi_rewrite *rw, byi_id at)
{
    const byi_id b = byi_rw_arg(rw, at, 1);
    if (!is_flip(rw, b))
        return BYI_NO_ID;
    const struct byi_attrs *attrs = byi_rw_node(rw, at)->attrs;
    const struct byi_attr flips[] = {
        {.name = "transpose_a",
         .kind = BYI_ATTR_BOOL,
         .i = byi_attr_int(attrs, "transpose_a")},
        {.name = "transpose_b",
         .kind = BYI_ATTR_BOOL,
         .i = !byi_attr_int(attrs, "transpose_b")}};
    const byi_id args[] = {byi_rw_arg(rw, at, 0), byi_rw_arg(rw, b, 0)};
    return byi_rw_call(rw, BYI_OP_NN_MATMUL, args, 2, flips, BYI_COUNT(flips));
}

/* Whether `all`, a reshape (b, n g, t, h) of broadcast_to(x), repeats each of
 * the n heads of x (b, n, 1, t, h) g times. */
static bool repeats_heads(const struct byi_rewrite *rw, byi_id all, byi_id x)
{
    const struct byi_type *to = byi_rw_tensor(rw, all);
    const struct byi_type *wide = byi_rw_tensor(rw, byi_rw_arg(rw, all, 0));
    const struct byi_type *from = byi_rw_tensor(rw, x);
    if (!to || !wide || !from || to->rank != 4 || wide->rank != 5 ||
        from->rank != 5 || from->dims[2] != 1)
        return false;
    bool same = !BYI_IS_SYMBOL(from->dims[1]) && !BYI_IS_SYMBOL(wide->dims[2]);
    for (uint32_t i = 0; i < 5; i++)
        same = same && (i == 2 || from->dims[i] == wide->dims[i]);
    return same && to->dims[0] == from->dims[0] &&
           to->dims[1] == from->dims[1] * wide->dims[2] &&
           to->dims[2] == from->dims[3] && to->dims[3] == from->dims[4];
}

/* Axis 1 of a tensor of rank 4 becomes `outer` and `inner`. Only views, whose
 * shapes copy the other dims, also symbolic ones. */
static byi_id split_axis(struct byi_rewrite *rw, byi_id x, int64_t outer,
                         int64_t inner)
{
    int64_t axis = 2;
    const int64_t shape[] = {0, outer, inner, 0, 0};
    const struct byi_attr at = {
        .name = "axis", .kind = BYI_ATTR_INTS, .n = 1, .ints = &axis};
    return byi_rw_op2(rw, BYI_OP_RESHAPE,
                      byi_rw_call(rw, BYI_OP_EXPAND_DIMS, &x, 1, &at, 1),
                      byi_rw_int_vector(rw, shape, 5));
}

/* Query heads that share a head of keys or values, of which exporters make a
 * copy for each: the product broadcasts it.
 *
 *   %1 = broadcast_to(%x, [1, 1, 3, 1, 1]);  %x (b, 4, 1, t, h)
 *   %2 = reshape(%1, [b, 12, t, h]);
 *   nn.matmul(%a, %2)                        %a (b, 12, s, t)
 *      ==>
 *   %1 = reshape(expand_dims(%a, axis=[2]), [0, 4, 3, 0, 0]);
 *   %2 = nn.matmul(%1, %x);
 *   squeeze(reshape(%2, [0, 12, 1, 0, 0]), axis=[2])
 */
byi_id byi_product_of_repeated(struct byi_rewrite *rw, byi_id at)
{
    const byi_id a = byi_rw_arg(rw, at, 0), all = byi_rw_arg(rw, at, 1);
    if (!byi_rw_is(rw, all, BYI_OP_RESHAPE) ||
        !byi_rw_is(rw, byi_rw_arg(rw, all, 0), BYI_OP_BROADCAST_TO))
        return BYI_NO_ID;
    const byi_id x = byi_rw_arg(rw, byi_rw_arg(rw, all, 0), 0);
    const struct byi_type *type = byi_rw_tensor(rw, a);
    if (!repeats_heads(rw, all, x) || !type || type->rank != 4 ||
        type->dims[1] != byi_rw_tensor(rw, all)->dims[1])
        return BYI_NO_ID;
    const int64_t heads = type->dims[1], shared = byi_rw_tensor(rw, x)->dims[1];
    const int64_t shape[] = {0, heads, 1, 0, 0};
    const byi_id args[] = {split_axis(rw, a, shared, heads / shared), x};
    const byi_id y = byi_rw_op2(rw, BYI_OP_RESHAPE, byi_rw_again(rw, at, args),
                                byi_rw_int_vector(rw, shape, 5));
    int64_t axis = 2;
    const struct byi_attr middle = {
        .name = "axis", .kind = BYI_ATTR_INTS, .n = 1, .ints = &axis};
    return byi_rw_call(rw, BYI_OP_SQUEEZE, &y, 1, &middle, 1);
}
