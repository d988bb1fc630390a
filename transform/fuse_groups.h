/* SPDX-License-Identifier: Apache-2.0 */
/* transform/fuse_groups.h: the groups of nodes that FuseOps fuses. */
#ifndef BYI_FUSE_GROUPS_H
#define BYI_FUSE_GROUPS_H

#include "core/ir/ir.h"

/* Bounds of the groups. */
struct byi_fuse_limits {
    uint32_t max_depth; /* largest number of nodes of a group            */
    uint32_t max_args;  /* largest number of its parameters and results  */
    bool anchors;       /* groups may have an operator of kind
                         * BYI_OUT_FUSABLE, such as a convolution */
    bool epilogues;     /* group native kernels with their epilogues first */
    /* whether a group may have call `id` of f; NULL: any call */
    bool (*is_fusable)(const struct byi_func *f, byi_id id);
};

/* Returns, by node, the number of its group; a node without a group has its own
 * id as the number. Only the last node of a group may be read by other groups
 * or be the function's result. As an exception, a BYI_GET may be in another
 * group than its tuple. The array is in `scratch`. */
const uint32_t *byi_fuse_groups(const struct byi_func *f,
                                const struct byi_uses *uses,
                                const struct byi_fuse_limits *limits,
                                struct byi_arena *scratch);

/* Whether the native kernel of node `id`, a call outside of regions, applies an
 * epilogue (core/ops/epilogue.h). */
bool byi_fuse_has_epilogue(const struct byi_func *f, byi_id id);
/* Returns the only reader of node `id`, if an epilogue of node `head` that ends
 * with `id` can continue with it; otherwise BYI_NO_ID. */
byi_id byi_fuse_next_in_epilogue(const struct byi_func *f,
                                 const struct byi_uses *uses, byi_id head,
                                 byi_id id);

/* Whether operand i of `reader` is a constant that its group embeds instead of
 * taking it as a parameter. It has one element, determines the type, or is the
 * grid of a grid_sample. */
bool byi_fuse_embeds(const struct byi_func *f, const struct byi_node *reader,
                     uint32_t i);

#endif
