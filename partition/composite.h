/* SPDX-License-Identifier: Apache-2.0 */
/* partition/composite.h: builds a match's function (composite.c) for
 * MergeComposite.
 */
#ifndef BYI_COMPOSITE_H
#define BYI_COMPOSITE_H

#include "partition.h"

/* Build the composite's function. Its parameters are the operands that are not
 * constants, in binding order; its attributes are set. On failure *func is the
 * incomplete function. `scratch` is used only during the call.
 */
enum byoc_status byi_composite_build(struct byi_module *m,
                                     const struct byi_match *match,
                                     struct byi_arena *scratch, uint32_t *func,
                                     struct byoc_error *err);
/* Whether operand `bound` of the match is a constant, and thus part of the
 * body. */
bool byi_composite_embeds(const struct byi_match *match, uint32_t bound);
/* An operator's name in attributes and messages: "nn.relu", "if". */
const char *byi_composite_op(const struct byi_node *node);

#endif
