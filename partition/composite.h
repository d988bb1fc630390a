/* SPDX-License-Identifier: Apache-2.0 */
/* partition/composite.h: a match as a function of its own (composite.c), for
 * MergeComposite.
 */
#ifndef BYI_COMPOSITE_H
#define BYI_COMPOSITE_H

#include "partition.h"

/* The composite's function: its parameters are the operands that are no
 * constants, in the order they are bound; its attributes are set. On failure
 * *func names what there is of it. `scratch` is for the duration of the call.
 */
enum byoc_status byi_composite_build(struct byi_module *m,
                                     const struct byi_match *match,
                                     struct byi_arena *scratch, uint32_t *func,
                                     struct byoc_error *err);
/* Whether operand `bound` of the match is a constant, which the body holds. */
bool byi_composite_embeds(const struct byi_match *match, uint32_t bound);
/* An operator as attributes and messages call it: "nn.relu", "if". */
const char *byi_composite_op(const struct byi_node *node);

#endif
