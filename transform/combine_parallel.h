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

/* Whether node `id` is an operator on args[0] with constant weights args[1] of
 * static shape. It may be combined with operators of the same kind, args[0] and
 * attributes whose weights differ in the size of one axis only. *out: the axes
 * of its channels. */
typedef bool (*byi_combine_fn)(const struct byi_module *m,
                               const struct byi_func *f, byi_id id,
                               struct byi_channels *out);

/* The data of a pass that combines operators; its run_func is
 * byi_combine_parallel. */
struct byi_combine {
    byi_combine_fn is_combinable;
    const char *min_branches; /* the name of the pass's option */
};

/* Combine the operators of `func` that is_combinable accepts, in groups of at
 * least min_branches; fewer than 2 means 2. Errors: BYOC_ELIMIT (joined
 * constants exceed the budget of byi_consts_can_grow). */
enum byoc_status byi_combine_parallel(struct byi_module *m, uint32_t func,
                                      struct byi_pass_context *ctx,
                                      struct byi_arena *scratch,
                                      struct byoc_error *err);

#endif
