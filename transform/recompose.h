/* SPDX-License-Identifier: Apache-2.0 */
/* transform/recompose.h: shared by the files of Recompose. */
#ifndef BYI_RECOMPOSE_H
#define BYI_RECOMPOSE_H

#include "rewrite.h"

/* The nodes between a match's operands and its root. The replacement of the
 * root removes them, so they must not have other readers. */
struct byi_inner {
    byi_id at[32];
    uint32_t n;
};

/* Add an inner node once; false if there are too many. */
static inline bool byi_inner_add(struct byi_inner *inner, byi_id id)
{
    for (uint32_t i = 0; i < inner->n; i++)
        if (inner->at[i] == id)
            return true;
    if (inner->n == BYI_COUNT(inner->at))
        return false;
    inner->at[inner->n++] = id;
    return true;
}

/* --- recompose_gate.c: gelu, silu, hard_swish: x times a gate ------------- */

byi_id byi_recompose_gate(struct byi_rewrite *rw, byi_id at);
byi_id byi_recompose_mish(struct byi_rewrite *rw, byi_id at);

/* --- recompose_norm.c: layer normalisation ------------------------------- */

byi_id byi_recompose_norm(struct byi_rewrite *rw, byi_id at);
byi_id byi_recompose_norm_affine(struct byi_rewrite *rw, byi_id at);
byi_id byi_recompose_norm_gamma(struct byi_rewrite *rw, byi_id at);
byi_id byi_recompose_norm_beta(struct byi_rewrite *rw, byi_id at);
byi_id byi_recompose_norm_complete(struct byi_rewrite *rw, byi_id at);

#endif
