/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_onnx/parts.h: cuts a graph into parts, so that each part can become
 * one node. A part is a region, some nodes of a region that must be split, or a
 * single node outside all regions.
 *
 *     nodes      0:A  1:B  2:native  3:A       edges 0>1, 1>3, 0>2, 2>3
 *     regions    A, A, -, A                    a path leaves A and comes back
 *     parts      {0, 1} {2} {3}
 */
#ifndef BYI_MODEL_PARTS_H
#define BYI_MODEL_PARTS_H

#include "core/base/base.h"

/* An edge: node `to` reads a value of node `from`, which comes before it. */
struct byi_node_edge {
    uint32_t from, to;
};

/* Nodes that become one node of the copied model (regions.c). */
struct byi_model_part {
    uint32_t region; /* of its nodes, from 1; 0: one node outside all regions */
    uint32_t n;
    const uint32_t *nodes; /* ascending */
};

/* Cut n nodes into parts, in topological order. region[i] is the region of node
 * i, 1 to n_regions; 0: none. The edges may be in any order. A region is one
 * part unless a path leaves it and comes back. Returns the parts, which the
 * arena owns, and sets *n_parts to their number. */
const struct byi_model_part *byi_cut_model(struct byi_arena *arena, uint32_t n,
                                           const uint32_t *region,
                                           uint32_t n_regions, uint32_t n_edges,
                                           const struct byi_node_edge *edges,
                                           uint32_t *n_parts);

#endif
