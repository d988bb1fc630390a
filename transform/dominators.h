/* SPDX-License-Identifier: Apache-2.0 */
/* transform/dominators.h: the post-dominator tree of a function's values.
 *
 * Node p post-dominates node n if every path from n to an exit of the function
 * contains p. The graph is acyclic, so one walk from the last node to the first
 * suffices. The parent of n is the lowest common ancestor of its readers. This
 * is the algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance
 * Algorithm", 2001), which converges after one iteration here.
 */
#ifndef BYI_DOMINATORS_H
#define BYI_DOMINATORS_H

#include "core/ir/ir.h"

/* A node of the tree. */
struct byi_dominator {
    byi_id parent;     /* in the tree; f->nodes.n if the node has no parent */
    byi_id jump;       /* the parent or an ancestor further up */
    uint32_t depth;    /* nodes without a parent have depth 1 */
    uint8_t kind;      /* the strongest edge on the paths to the parent */
    uint8_t jump_kind; /* the strongest edge on the paths to `jump` */
};

/* The kind of the edge from a value to its reader; larger is stronger. `ctx` is
 * byi_post_dominators' own argument. */
typedef uint8_t (*byi_edge_fn)(const void *ctx, byi_id value, byi_id reader);

/* Returns the tree by node, in `arena`. The function's result and nodes without
 * readers have no parent, and the kind `outside`. Time: O(n log n). */
struct byi_dominator *byi_post_dominators(const struct byi_func *f,
                                          const struct byi_uses *uses,
                                          byi_edge_fn edge, const void *ctx,
                                          uint8_t outside,
                                          struct byi_arena *arena);

#endif
