/* SPDX-License-Identifier: Apache-2.0 */
/* transform/narrow_weights.h: records what NarrowWeights did to each large
 * weight, for the ledger.
 */
#ifndef BYI_NARROW_WEIGHTS_H
#define BYI_NARROW_WEIGHTS_H

#include "core/ir/ir.h"

/* A weight that several nodes read is listed once. Errors compare the weights w
 * with the narrowed ones w': max |w - w'| / max |w|, and
 * sqrt(sum (w - w')^2 / sum w^2). */
struct byi_narrowed_weight {
    const char *to;                    /* "int8" */
    const struct byi_sources *sources; /* of the first node that reads it */
    const struct byi_type *type;
    uint64_t bytes, narrow; /* its size in float32; narrowed, with scales */
    double largest, rms;
    const char *kept;        /* why it stays float32; NULL: it was narrowed */
    uint32_t constant, made; /* indices of module constants, before and after */
};

/* Owned by the caller of the passes, who frees `all.at`; texts are in the
 * module's arena. */
struct byi_narrow_list {
    BYI_VEC(struct byi_narrowed_weight) all;
};
BYI_CONTEXT_ENTRY(narrow_list)

#endif
