/* SPDX-License-Identifier: Apache-2.0 */
/* transform/narrow_weights.h: records what NarrowWeights did to each large
 * weight, for the ledger.
 */
#ifndef BYI_NARROW_WEIGHTS_H
#define BYI_NARROW_WEIGHTS_H

#include "core/base/index.h"
#include "core/ir/ir.h"

/* A weight that several nodes read is listed once. `largest` and `rms` compare
 * the weights w with the narrowed ones w'. They are max |w - w'| / max |w|, and
 * sqrt(sum (w - w')^2 / sum w^2). */
struct byi_narrowed_weight {
    const char *to;                    /* the option NarrowWeights.to */
    const struct byi_sources *sources; /* of the first node that reads it */
    const struct byi_type *type;
    uint64_t bytes;  /* its size in float32 */
    uint64_t narrow; /* its narrowed size in bytes, with scales */
    double largest, rms;
    const char *kept;  /* why it stays float32; NULL: it was narrowed */
    uint32_t constant; /* index of the module's constant */
    uint32_t rounded;  /* index of the rounded constant, otherwise `constant` */
};

/* Owned by the caller of the passes. Texts are static or in the module's arena.
 */
struct byi_narrow_list {
    BYI_VEC(struct byi_narrowed_weight) weights;
    struct byi_index places; /* in `weights`, by `constant` and by `rounded` */
};
void byi_narrow_list_free(struct byi_narrow_list *list);
BYI_CONTEXT_ENTRY(narrow_list)

#endif
