/* SPDX-License-Identifier: Apache-2.0 */
/* transform/combine_parallel.h: shared by CombineParallelConv2D and
 * CombineParallelDense: linear operators on one input become one operator with
 * concatenated weights, followed by a split.
 */
#ifndef BYI_COMBINE_PARALLEL_H
#define BYI_COMBINE_PARALLEL_H

#include "core/ir/ir.h"

/* The axis of output channels in the weights and in the result. */
struct byi_channels {
    uint32_t weight_axis, axis;
};

struct byi_combine {
    /* Is node `id` an operator on args[0] and constant weights args[1] (a
     * tensor of known size) that may be combined with those that have the same
     * args[0], operator, attributes, and weights but for the size of one axis?
     * Then where its channels are. */
    bool (*takes)(const struct byi_module *m, const struct byi_func *f,
                  byi_id id, struct byi_channels *out);
    int64_t min_branches; /* below 2 means 2 */
};

enum byoc_status byi_combine_parallel(struct byi_module *m, uint32_t func,
                                      const struct byi_combine *combine,
                                      struct byi_arena *scratch,
                                      struct byoc_error *err);

#endif
