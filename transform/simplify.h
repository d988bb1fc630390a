/* SPDX-License-Identifier: Apache-2.0 */
/* transform/simplify.h: rows and rules (rows.h, rewrite.h) that several passes
 * share, and the conditions of these rows. A condition returns whether its row
 * applies, and binds the names that only the row's replacement has.
 */
#ifndef BYI_SIMPLIFY_H
#define BYI_SIMPLIFY_H

#include "rows.h"

/* clang-format off */

/* --- simplify_movement.c ------------------------------------------------- */

/* operators that leave the type of x as it is */
#define BYI_ROW_SAME_TYPE(ops) BYI_ROW(ops "(%x, %to...)", "%x")

/* reshape, squeeze, expand_dims, nn.flatten of one of these */
#define BYI_VIEWS "reshape|squeeze|expand_dims|nn.flatten"
#define BYI_VIEW_OF_VIEW(ops)                                                  \
    ops "(%y, %to...) with %y = " BYI_VIEWS "(%x, %from...)"
#define BYI_ROWS_VIEWS(ops)                                                    \
    BYI_ROW_SHARED(BYI_VIEW_OF_VIEW(ops), "%x"),                               \
    BYI_ROW_SHARED_IF(BYI_VIEW_OF_VIEW(ops), "reshape(%x, shape)",             \
                      byi_binds_shape)
bool byi_binds_shape(struct byi_row_match *match);

/* reshape of a constant or of full */
#define BYI_ROWS_RESHAPE_FULL                                                  \
    BYI_ROW_IF("reshape(const %x, %to)", "%const", byi_binds_const),           \
    BYI_ROW_SHARED_IF("reshape(%y, %to) with %y = full(%from)", "%full",       \
                      byi_binds_full)
bool byi_binds_const(struct byi_row_match *match);
bool byi_binds_full(struct byi_row_match *match);

/* transpose that moves nothing, or of a transpose */
#define BYI_ROWS_TRANSPOSES                                                    \
    BYI_ROW_IF("transpose(%x)", "%x", byi_is_identity_transpose),              \
    BYI_ROW_SHARED_IF("transpose(%y) with %y = transpose(%x)",                 \
                      "transpose(%x, axes=axes)", byi_binds_axes)
bool byi_is_identity_transpose(struct byi_row_match *match);
bool byi_binds_axes(struct byi_row_match *match);

/* cast of a cast that loses nothing */
#define BYI_ROW_CASTS                                                          \
    BYI_ROW_SHARED_IF("cast(%y) with %y = cast(%x)", "again(%x)",              \
                      byi_is_lossless_cast)
bool byi_is_lossless_cast(struct byi_row_match *match);

/* nn.pad of an nn.pad with the same constant */
#define BYI_CONST_PAD(x, pads, value)                                          \
    "nn.pad(" x ", const " pads ", const " value "){mode=\"constant\"}"
#define BYI_ROW_PADS                                                           \
    BYI_ROW_IF(BYI_CONST_PAD(BYI_CONST_PAD("%x", "%inner", "%same"),           \
                             "%outer", "%value"),                              \
               "again(%x, sum, %value)", byi_binds_sum_of_pads)
bool byi_binds_sum_of_pads(struct byi_row_match *match);

/* strided_slice of a strided_slice */
#define BYI_ROW_SLICES                                                         \
    BYI_ROW_SHARED_IF("strided_slice(%y, %at...) "                             \
                      "with %y = strided_slice(%x, %from...)",                 \
                      "%slice", byi_binds_slice)
bool byi_binds_slice(struct byi_row_match *match);

/* concatenate of all fields of one split, or of slices that touch */
byi_id byi_concat_fields(struct byi_rewrite *rw, byi_id at);
byi_id byi_concat_slices(struct byi_rewrite *rw, byi_id at);
/* strided_slice out of one operand of a concatenate */
byi_id byi_slice_concat(struct byi_rewrite *rw, byi_id at);

/* --- simplify_product.c -------------------------------------------------- */

/* nn.matmul whose second operand is a transpose; nn.matmul of one transpose with
 * itself; nn.matmul whose second operand repeats heads */
#define BYI_ROWS_PRODUCTS                                                      \
    BYI_ROW_SHARED_IF("nn.matmul(%a, %t) with %t = transpose(%b)",             \
                      "nn.matmul(%a, %b, transpose_a=a, transpose_b=b)",       \
                      byi_swaps_last_axes),                                    \
    BYI_ROW_SHARED_IF("nn.matmul(%t, %t) with %t = transpose(%b)",             \
                      "nn.matmul(%t, %b, transpose_a=a, transpose_b=b)",       \
                      byi_swaps_last_axes),                                    \
    BYI_ROW_SHARED_IF("nn.matmul(%a, %copied) with %copied = "                       \
                      "reshape(broadcast_to(%x, %dims), %to)",                 \
                      "squeeze(reshape(again(reshape(expand_dims(%a, "         \
                      "axis=[2]), [0, shared, copies, 0, 0]), %x), "           \
                      "[0, heads, 1, 0, 0]), axis=[2])",                       \
                      byi_repeats_heads)
bool byi_swaps_last_axes(struct byi_row_match *match);
bool byi_repeats_heads(struct byi_row_match *match);

/* --- simplify_einsum.c --------------------------------------------------- */

/* einsum of three and more operands */
byi_id byi_split_einsum(struct byi_rewrite *rw, byi_id at);
/* einsum of two operands that sums over a label of one of them */
byi_id byi_sum_in_einsum(struct byi_rewrite *rw, byi_id at);
/* einsum of one operand */
byi_id byi_einsum_of_one(struct byi_rewrite *rw, byi_id at);
/* einsum of two operands whose elements are multiplied and not added */
byi_id byi_einsum_of_elements(struct byi_rewrite *rw, byi_id at);

/* --- canonicalize_ops.c -------------------------------------------------- */

/* clip without bounds; clip or nn.relu of either; clip with nn.relu's bounds */
#define BYI_ROWS_CLIPS                                                         \
    BYI_ROW_IF("clip(%x)", "%x", byi_is_full_range),                          \
    BYI_ROW_IF("clip|nn.relu(%y) with %y = clip|nn.relu(%x)",                  \
               "clip(%x, a_min=lo, a_max=hi)", byi_bounds_overlap),            \
    BYI_ROW_IF("clip(%x)", "nn.relu(%x)", byi_has_relu_bounds)
bool byi_is_full_range(struct byi_row_match *match);
bool byi_bounds_overlap(struct byi_row_match *match);
bool byi_has_relu_bounds(struct byi_row_match *match);

/* a convolution or average pooling of an nn.pad with zeros */
#define BYI_ZERO_PAD BYI_CONST_PAD("%x", "%pads", "%zero")
#define BYI_ROWS_ZERO_PADS                                                     \
    BYI_ROW_SHARED_IF("nn.conv1d|nn.conv2d|nn.conv3d(" BYI_ZERO_PAD ", %w)",   \
                      "%padded", byi_binds_padded_conv),                       \
    BYI_ROW_SHARED_IF("nn.avg_pool1d|nn.avg_pool2d|nn.avg_pool3d("             \
                      BYI_ZERO_PAD "){padding=0, ceil_mode=false}",            \
                      "%padded", byi_binds_padded_pool)
bool byi_binds_padded_conv(struct byi_row_match *match);
bool byi_binds_padded_pool(struct byi_row_match *match);

/* clang-format on */

#endif
