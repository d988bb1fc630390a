/* SPDX-License-Identifier: Apache-2.0 */
/* transform/code_blocks.h: builds the constant operands of a qnn.dense_blocks,
 * for the passes that emit this operator.
 */
#ifndef BYI_CODE_BLOCKS_H
#define BYI_CODE_BLOCKS_H

#include "rewrite.h"

/* Weights (n, blocks * block) as codes (n, blocks, block * bits / 8), scales
 * (n, blocks) and zero points (n, blocks), or one zero point. */
struct byi_code_blocks {
    /* rows of the weights, blocks of a row, weights of a block */
    int64_t n, blocks, block;
    int bits;              /* of a code: 4 or 8 */
    bool one_zero;         /* one zero point, a scalar, serves all blocks */
    enum byoc_dtype dtype; /* of the scales */
    struct byi_tensor codes, scales, zeros;
    const struct byi_type *types[3]; /* of codes, scales and zeros */
};

/* Allocate the constants in the module's arena; false if they exceed the
 * module's budget (byi_consts_can_grow). */
static inline bool byi_code_blocks_alloc(struct byi_rewrite *rw,
                                         struct byi_code_blocks *b)
{
    struct byi_arena *arena = rw->m->arena;
    const int64_t dims[] = {b->n, b->blocks, b->block * b->bits / 8};
    b->types[0] = byi_type_tensor(arena, BYOC_U8, 3, dims);
    b->types[1] = byi_type_tensor(arena, b->dtype, 2, dims);
    b->types[2] = byi_type_tensor(arena, BYOC_U8, b->one_zero ? 0 : 2, dims);
    return byi_rw_alloc(rw, b->types[0], &b->codes) &&
           byi_rw_alloc(rw, b->types[1], &b->scales) &&
           byi_rw_alloc(rw, b->types[2], &b->zeros);
}

/* Set code i of block `at`, which counts the blocks of all rows. The codes of a
 * block must be set in ascending order. */
static inline void byi_code_blocks_set(const struct byi_code_blocks *b,
                                       int64_t at, int64_t i, int code)
{
    uint8_t *codes = (uint8_t *)b->codes.data + at * (b->block * b->bits / 8);
    if (b->bits == 8)
        codes[i] = (uint8_t)code;
    else /* the first code is in the lower bits */
        codes[i / 2] = (uint8_t)(i % 2 ? codes[i / 2] | code << 4 : code);
}

/* Emit x (..., blocks * block) times the transposed weights. Returns BYI_NO_ID
 * if the types do not fit. */
static inline byi_id byi_code_blocks_product(struct byi_rewrite *rw,
                                             const struct byi_code_blocks *b,
                                             byi_id x)
{
    const byi_id args[] = {x, byi_rw_const(rw, b->types[0], &b->codes),
                           byi_rw_const(rw, b->types[1], &b->scales),
                           byi_rw_const(rw, b->types[2], &b->zeros)};
    const struct byi_attr attrs[] = {
        {.name = "bits", .kind = BYI_ATTR_INT, .i = b->bits},
        {.name = "block_size", .kind = BYI_ATTR_INT, .i = b->block}};
    return byi_rw_call(rw, BYI_OP_QNN_DENSE_BLOCKS, args, 4, attrs, 2);
}

#endif
