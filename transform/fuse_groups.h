/* SPDX-License-Identifier: Apache-2.0 */
/* transform/fuse_groups.h: which nodes of a function FuseOps makes one. */
#ifndef BYI_FUSE_GROUPS_H
#define BYI_FUSE_GROUPS_H

#include "core/ir/ir.h"

struct byi_fuse_limits {
    uint32_t max_depth; /* nodes of a group                              */
    uint32_t max_args;  /* its parameters and results together           */
    bool anchors;       /* may operators of kind OUT_FUSABLE head groups? */
    /* Whether a group may hold that operator; NULL: any may. */
    bool (*takes)(const struct byi_func *f, byi_id id);
};

/* By node: a number that all nodes of its group share, its own when it is
 * alone. In every group one node comes after all others, and is the only one
 * that other nodes or the function's result read; but for a BYI_GET, which may
 * be in another group than its tuple. In `scratch`. */
const uint32_t *byi_fuse_groups(const struct byi_func *f,
                                const struct byi_uses *uses,
                                const struct byi_fuse_limits *limits,
                                struct byi_arena *scratch);

/* Operand i of `reader` is a constant that its group holds, and not one that
 * is handed in: one element, or what the operator's type depends on. */
bool byi_fuse_embeds(const struct byi_func *f, const struct byi_node *reader,
                     uint32_t i);

#endif
