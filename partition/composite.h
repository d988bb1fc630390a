/* SPDX-License-Identifier: Apache-2.0 */
/* partition/composite.h: builds a match's function (composite.c) for
 * MergeComposite.
 */
#ifndef BYI_COMPOSITE_H
#define BYI_COMPOSITE_H

#include "partition.h"

/* Build the composite's function, *func, and set its attributes. Its parameters
 * are the operands that are not constants, in binding order. On an error *func
 * is the incomplete function, which the caller must mark dead. `scratch` is
 * used only during the call. Errors: those of type rules (byi_add_op). */
enum byoc_status byi_composite_build(struct byi_module *m,
                                     const struct byi_match *match,
                                     struct byi_arena *scratch, uint32_t *func,
                                     struct byoc_error *err);
/* Whether operand `bound` of the match is a constant, and thus part of the
 * body. */
bool byi_composite_embeds(const struct byi_match *match, uint32_t bound);
/* Returns the name of an operator, `if` or tuple in attributes and messages:
 * "nn.relu", "if", "tuple". */
const char *byi_composite_op_name(const struct byi_node *node);

#endif
