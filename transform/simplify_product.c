/* SPDX-License-Identifier: Apache-2.0 */
/* simplify_product.c: conditions of rows that let nn.matmul read its second
 * operand where it is, instead of a copy. See simplify.h.
 */
#include "simplify.h"

/* Whether the transpose only swaps the last two axes. Binds `a` and `b`, the
 * flags of the product without the transpose. */
bool byi_swaps_last_axes(struct byi_row_match *r)
{
    const struct byi_node *t = byi_row_node(r, "t");
    const struct byi_attrs *attrs = byi_rw_node(r->rw, r->root)->attrs;
    const uint32_t rank = t->type->rank;
    uint32_t n;
    const int64_t *axes = byi_attr_ints(t->attrs, "axes", &n);
    bool flip = n == 0 ? rank == 2 : n == rank && rank >= 2;
    for (uint32_t i = 0; n > 0 && flip && i < rank; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        flip = axis == (i + 2 < rank ? i : 2 * (int64_t)rank - 3 - i);
    }
    return flip &&
           byi_row_bind_attr(
               r, (struct byi_attr){.name = "a",
                                    .kind = BYI_ATTR_BOOL,
                                    .i = byi_attr_int(attrs, "transpose_a")}) &&
           byi_row_bind_attr(
               r, (struct byi_attr){.name = "b",
                                    .kind = BYI_ATTR_BOOL,
                                    .i = !byi_attr_int(attrs, "transpose_b")});
}

/* Whether `copied`, a reshape (b, n g, t, h) of broadcast_to(x), repeats each
 * of the n heads of x (b, n, 1, t, h) g times. */
static bool is_repeated(const struct byi_rewrite *rw, byi_id copied, byi_id x)
{
    const struct byi_type *to = byi_rw_tensor(rw, copied);
    const struct byi_type *broadcast =
        byi_rw_tensor(rw, byi_rw_arg(rw, copied, 0));
    const struct byi_type *from = byi_rw_tensor(rw, x);
    if (!to || !broadcast || !from || to->rank != 4 || broadcast->rank != 5 ||
        from->rank != 5 || from->dims[2] != 1)
        return false;
    bool same =
        !BYI_IS_SYMBOL(from->dims[1]) && !BYI_IS_SYMBOL(broadcast->dims[2]);
    for (uint32_t i = 0; i < 5; i++)
        same = same && (i == 2 || from->dims[i] == broadcast->dims[i]);
    return same && to->dims[0] == from->dims[0] &&
           to->dims[1] == from->dims[1] * broadcast->dims[2] &&
           to->dims[2] == from->dims[3] && to->dims[3] == from->dims[4];
}

/* Several query heads share a head of keys or values, which exporters copy for
 * each query head. Let the product broadcast it instead.
 *
 *   %1 = broadcast_to(%x, [1, 1, 3, 1, 1]);  %x (b, 4, 1, t, h)
 *   %2 = reshape(%1, [b, 12, t, h]);
 *   nn.matmul(%a, %2)                        %a (b, 12, s, t)
 *      ==>
 *   %1 = reshape(expand_dims(%a, axis=[2]), [0, 4, 3, 0, 0]);
 *   %2 = nn.matmul(%1, %x);
 *   squeeze(reshape(%2, [0, 12, 1, 0, 0]), axis=[2])
 *
 * All new operators but the product are views. Their shapes copy the other
 * dims, which may be symbolic. */
bool byi_repeats_heads(struct byi_row_match *r)
{
    const byi_id copied = byi_row_value(r, "copied"), x = byi_row_value(r, "x");
    const struct byi_type *a = byi_row_node(r, "a")->type;
    if (!is_repeated(r->rw, copied, x) || a->rank != 4 ||
        a->dims[1] != byi_rw_tensor(r->rw, copied)->dims[1])
        return false;
    const int64_t shared = byi_rw_tensor(r->rw, x)->dims[1];
    return byi_row_bind_int(r, "heads", a->dims[1]) &&
           byi_row_bind_int(r, "shared", shared) &&
           byi_row_bind_int(r, "copies", a->dims[1] / shared);
}
