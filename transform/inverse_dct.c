/* SPDX-License-Identifier: Apache-2.0 */
/* InverseDct: recognise products with the basis of the 8-point discrete cosine
 * transform, as in image decoders.
 * requires: nothing; best after FoldConstant, which makes bases constant
 *
 *   nn.matmul(%x, const[C])               signal.idct8(%x, axes=[-1])
 *   nn.matmul(const[C^T], %x)      ==>    signal.idct8(%x, axes=[-2])
 *   nn.matmul(const[C^T], nn.matmul(%x, const[C]))
 *                                         signal.idct8(%x, axes=[-1, -2])
 *
 * nn.dense(%x, const[C^T]) becomes an inverse transform too. Values are
 * float32. C is the matrix of core/ops/dct.h, or is stored as its transpose;
 * its elements may differ from the table by 2^-23. The pass runs before
 * partitioning, since a backend would multiply the whole matrices.
 */
#include "transform.h"

#include <math.h>

#include "rewrite.h"

#include "core/ops/dct.h"

enum { BASIS_SIZE = BYI_DCT * BYI_DCT };

/* Whether constant `id` is the basis, or its transpose if `transposed`. Leading
 * axes must have size 1. */
static bool is_basis(const struct byi_rewrite *rw, byi_id id, bool transposed)
{
    struct byi_tensor t;
    if (!byi_rw_view(rw, id, &t) || t.dtype != BYOC_F32 || t.rank < 2 ||
        t.dims[t.rank - 1] != BYI_DCT || t.dims[t.rank - 2] != BYI_DCT ||
        byi_elements(t.rank, t.dims) != BASIS_SIZE)
        return false;
    for (int i = 0; i < BASIS_SIZE; i++) {
        const int row = i / BYI_DCT, column = i % BYI_DCT;
        const double expected =
            transposed ? byi_dct[column][row] : byi_dct[row][column];
        if (!(fabs(byi_tensor_float(&t, i) - expected) <= 0x1p-23))
            return false;
    }
    return true;
}

/* Emit the transform of x along `axis`, which is -1 or -2. If x is a transform
 * along the other axis without other readers, both become one node. */
static byi_id emit_transform(struct byi_rewrite *rw, byi_id x, int64_t axis)
{
    int64_t axes[2] = {axis};
    uint32_t n = 1;
    if (byi_rw_is(rw, x, BYI_OP_IDCT8) && byi_rw_has_one_reader(rw, x)) {
        uint32_t n_axes = 0;
        const int64_t *x_axes =
            byi_attr_ints(byi_rw_node(rw, x)->attrs, "axes", &n_axes);
        if (n_axes == 1 && x_axes[0] != axis) {
            axes[0] = -1;
            axes[n++] = -2;
            x = byi_rw_arg(rw, x, 0);
        }
    }
    const struct byi_attr attr = {
        .name = "axes", .kind = BYI_ATTR_INTS, .ints = axes, .n = n};
    return byi_rw_call(rw, BYI_OP_IDCT8, &x, 1, &attr, 1);
}

static byi_id rewrite_matmul(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    const byi_id a = node->args[0], b = node->args[1];
    const bool transposed_a = byi_attr_int(node->attrs, "transpose_a") != 0;
    const bool transposed_b = byi_attr_int(node->attrs, "transpose_b") != 0;
    if (!transposed_a && is_basis(rw, b, transposed_b))
        return emit_transform(rw, a, -1);
    if (!transposed_b && is_basis(rw, a, !transposed_a))
        return emit_transform(rw, b, -2);
    return BYI_NO_ID;
}

static byi_id rewrite_dense(struct byi_rewrite *rw, byi_id at)
{
    return is_basis(rw, byi_rw_arg(rw, at, 1), true)
               ? emit_transform(rw, byi_rw_arg(rw, at, 0), -1)
               : BYI_NO_ID;
}

BYI_RULES_PASS(inverse_dct, "InverseDct", 1,
               "replace products with the 8-point DCT's basis by inverse DCTs",
               {BYI_OP_NN_MATMUL, rewrite_matmul},
               {BYI_OP_NN_DENSE, rewrite_dense})
