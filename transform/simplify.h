/* SPDX-License-Identifier: Apache-2.0 */
/* transform/simplify.h: rules that several passes share. Each inspects a node
 * `at` of the operator that it is named after, and returns its replacement or
 * BYI_NO_ID (see rewrite.h).
 */
#ifndef BYI_SIMPLIFY_H
#define BYI_SIMPLIFY_H

#include "rewrite.h"

/* --- simplify_movement.c ------------------------------------------------- */

/* reshape, broadcast_to, cast and others that leave the type as it is */
byi_id byi_drop_same(struct byi_rewrite *rw, byi_id at);
/* reshape, squeeze, expand_dims, nn.flatten of one of these */
byi_id byi_merge_views(struct byi_rewrite *rw, byi_id at);
/* reshape of a constant or of full */
byi_id byi_reshape_full(struct byi_rewrite *rw, byi_id at);
/* transpose of a transpose, or one that moves nothing */
byi_id byi_merge_transposes(struct byi_rewrite *rw, byi_id at);
/* cast of a cast that loses nothing */
byi_id byi_merge_casts(struct byi_rewrite *rw, byi_id at);
/* nn.pad of an nn.pad with the same constant */
byi_id byi_merge_pads(struct byi_rewrite *rw, byi_id at);
/* concatenate of all fields of one split, or of slices that touch */
byi_id byi_concat_fields(struct byi_rewrite *rw, byi_id at);
byi_id byi_concat_slices(struct byi_rewrite *rw, byi_id at);
/* strided_slice of a strided_slice, or out of one operand of a concatenate */
byi_id byi_merge_slices(struct byi_rewrite *rw, byi_id at);
byi_id byi_slice_concat(struct byi_rewrite *rw, byi_id at);

/* --- simplify_product.c -------------------------------------------------- */

/* nn.matmul by a transpose */
byi_id byi_transpose_in_product(struct byi_rewrite *rw, byi_id at);
/* nn.matmul by heads that are repeated */
byi_id byi_product_of_repeated(struct byi_rewrite *rw, byi_id at);

/* --- simplify_einsum.c --------------------------------------------------- */

/* einsum of three and more operands */
byi_id byi_split_einsum(struct byi_rewrite *rw, byi_id at);
/* einsum of two operands that sums over a label of one of them */
byi_id byi_sum_in_einsum(struct byi_rewrite *rw, byi_id at);

/* --- canonicalize_ops.c -------------------------------------------------- */

/* clip or nn.relu of clip or nn.relu */
byi_id byi_merge_clips(struct byi_rewrite *rw, byi_id at);
/* a convolution or average pooling of an nn.pad with zeros */
byi_id byi_pad_into_conv(struct byi_rewrite *rw, byi_id at);
byi_id byi_pad_into_pool(struct byi_rewrite *rw, byi_id at);

#endif
