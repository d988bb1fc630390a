/* SPDX-License-Identifier: Apache-2.0 */
/* FoldCodeBlocks: compute with the codes of weights that are quantised in
 * blocks, instead of dequantising the weights.
 * requires: nothing
 *
 *   %w = qnn.dequantize(const[codes], const[scales], const[zeros],
 *                       axis=0, block_size=32);
 *   nn.matmul(%x, %w)        ==>  qnn.dense_blocks(%x, const[codes], ...)
 *   take(%w, %rows, axis=0)  ==>  qnn.dequantize(take(const[codes], %rows),
 *                                                ...)
 *
 * if the blocks of a product's weights are along the axis that it sums, and
 * the blocks of take's data along an axis that take keeps. The pass also
 * rewrites nn.dense, products with transpose_b, and products with a transpose
 * of %w. It runs before FoldConstant, since FoldConstant would compute %w, and
 * %w takes 4 or 8 times the memory of its codes. Products add in another order
 * than with %w; results of take are bit-identical.
 */
#include "code_blocks.h"
#include "transform.h"

/* A matrix of codes with a scale for each block of an axis. */
struct coded_matrix {
    struct byi_tensor codes, scales, zeros; /* zeros.data NULL: all are 0 */
    int64_t block;
    uint32_t axis;    /* of the blocks */
    int bits, offset; /* offset: added to a code to make it unsigned */
};

/* Read the zero points: a constant, or a full() of 0 that is not folded yet. */
static bool read_zeros(const struct byi_rewrite *rw, byi_id id,
                       struct byi_tensor *zeros)
{
    *zeros = (struct byi_tensor){0};
    if (byi_rw_view(rw, id, zeros))
        return true;
    return byi_rw_is(rw, id, BYI_OP_FULL) &&
           byi_attr_float(byi_rw_node(rw, id)->attrs, "value") == 0;
}

/* Read a constant matrix that is dequantised in blocks. False if the node is
 * another one. */
static bool read_codes(const struct byi_rewrite *rw, byi_id id,
                       struct coded_matrix *w)
{
    if (!byi_rw_is(rw, id, BYI_OP_DEQUANTIZE))
        return false;
    const struct byi_node *node = byi_rw_node(rw, id);
    w->block = byi_attr_int(node->attrs, "block_size");
    if (w->block < 1 || !byi_rw_view(rw, node->args[0], &w->codes) ||
        !byi_rw_view(rw, node->args[1], &w->scales) ||
        !read_zeros(rw, node->args[2], &w->zeros) || w->codes.rank != 2 ||
        byi_elements(2, w->codes.dims) == 0)
        return false;
    const enum byoc_dtype dtype = w->codes.dtype;
    const bool is_4_bit = dtype == BYOC_I4 || dtype == BYOC_U4;
    w->axis = byi_attr_axis(node->attrs, 2);
    w->bits = is_4_bit ? 4 : 8;
    w->offset = dtype == BYOC_I4 ? 8 : dtype == BYOC_I8 ? 128 : 0;
    return is_4_bit || dtype == BYOC_I8 || dtype == BYOC_U8;
}

/* --- products ------------------------------------------------------------- */

/* Returns element `at` of t, codes or zero points of w, as an unsigned code. */
static int unsigned_code(const struct coded_matrix *w,
                         const struct byi_tensor *t, int64_t at)
{
    return (t->data ? (int)byi_tensor_int(t, at) : 0) + w->offset;
}

/* Copy the blocks of row n; the axis without blocks numbers the rows. Codes
 * beyond the end of the row become the zero point, so that they count as 0. */
static void copy_row(const struct coded_matrix *w,
                     const struct byi_code_blocks *b, int64_t n)
{
    const int64_t k = w->codes.dims[w->axis];
    const int64_t size = byoc_dtype_size(b->dtype);
    for (int64_t i = 0; i < b->blocks; i++) {
        const int64_t to = n * b->blocks + i;
        const int64_t from = w->axis == 0 ? i * b->n + n : to;
        const int zero = unsigned_code(w, &w->zeros, from);
        memcpy((char *)b->scales.data + to * size,
               (const char *)w->scales.data + from * size, (size_t)size);
        if (!b->one_zero)
            ((uint8_t *)b->zeros.data)[to] = (uint8_t)zero;
        for (int64_t c = 0; c < b->block; c++) {
            const int64_t at = i * b->block + c;
            const int64_t code = w->axis == 0 ? at * b->n + n : n * k + at;
            byi_code_blocks_set(
                b, to, c, at < k ? unsigned_code(w, &w->codes, code) : zero);
        }
    }
}

static byi_id fold_product(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    const bool dense = node->op == BYI_OP_NN_DENSE;
    const byi_id x = node->args[0];
    bool transposed = dense || byi_attr_int(node->attrs, "transpose_b");
    byi_id weights = node->args[1];
    struct coded_matrix w;
    if (!dense && byi_attr_int(node->attrs, "transpose_a"))
        return BYI_NO_ID;
    if (byi_rw_is(rw, weights, BYI_OP_TRANSPOSE)) {
        const struct byi_node *transpose = byi_rw_node(rw, weights);
        const struct byi_attr *axes = &transpose->attrs->at[0];
        transposed = transposed != (axes->n == 0 || axes->ints[0] != 0);
        weights = transpose->args[0];
    }
    if (!read_codes(rw, weights, &w) || w.axis != (transposed ? 1 : 0) ||
        w.block > INT32_MAX || w.block * w.bits % 32)
        return BYI_NO_ID;
    struct byi_code_blocks b = {.n = w.codes.dims[!w.axis],
                                .blocks = w.scales.dims[w.axis],
                                .block = w.block,
                                .bits = w.bits,
                                .one_zero = w.zeros.data == NULL,
                                .dtype = w.scales.dtype};
    if (!byi_code_blocks_alloc(rw, &b))
        return BYI_NO_ID;
    if (b.one_zero)
        *(uint8_t *)b.zeros.data = (uint8_t)w.offset;
    for (int64_t n = 0; n < b.n; n++)
        copy_row(&w, &b, n);
    const byi_id product = byi_code_blocks_product(rw, &b, x);
    if (product != BYI_NO_ID)
        byi_rw_merge(rw, product, weights);
    return product;
}

/* --- take ----------------------------------------------------------------- */

static byi_id fold_take(struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    const byi_id weights = node->args[0], indices = node->args[1];
    const struct byi_type *index_type = byi_rw_tensor(rw, indices);
    const struct byi_attr *attrs = node->attrs->at;
    const uint32_t n = node->attrs->n;
    struct coded_matrix w;
    byi_id args[3];
    if (!index_type || !read_codes(rw, weights, &w))
        return BYI_NO_ID;
    const uint32_t axis = byi_attr_axis(node->attrs, 2);
    if (axis == w.axis)
        return BYI_NO_ID;
    for (uint32_t i = 0; i < 3; i++) {
        const byi_id take_args[] = {byi_rw_arg(rw, weights, i), indices};
        args[i] = byi_rw_call(rw, BYI_OP_TAKE, take_args, 2, attrs, n);
    }
    const int64_t shift = w.axis > axis ? (int64_t)index_type->rank - 1 : 0;
    const struct byi_attr blocks[] = {
        {.name = "axis", .kind = BYI_ATTR_INT, .i = (int64_t)w.axis + shift},
        {.name = "block_size", .kind = BYI_ATTR_INT, .i = w.block}};
    return byi_rw_call(rw, BYI_OP_DEQUANTIZE, args, 3, blocks, 2);
}

/* --- the pass ------------------------------------------------------------- */

BYI_RULES_PASS(fold_code_blocks, "FoldCodeBlocks", 0,
               "read weights that were quantised by blocks as codes",
               {BYI_OP_NN_DENSE, fold_product},
               {BYI_OP_NN_MATMUL, fold_product}, {BYI_OP_TAKE, fold_take})
