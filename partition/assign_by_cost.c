/* SPDX-License-Identifier: Apache-2.0 */
/* AssignByCost: decide by measured or estimated cost which backend may run
 * which node; no effect when partitioning is greedy.
 * requires: types                          breaks: nothing
 *
 * The module is unchanged: MergeComposite respects the assignment. The driver
 * decides (tuner/by_measurement.c), since measuring runs code, which no pass
 * may.
 */
#include "cost.h"

static enum byoc_status assign_by_cost(struct byi_module *m,
                                       struct byi_pass_context *ctx,
                                       struct byi_arena *scratch,
                                       struct byoc_error *err)
{
    (void)scratch;
    struct byi_backends *backends = byi_backends_of(ctx);
    return backends && backends->decide
               ? backends->decide(backends->decide_ctx, m, ctx, err)
               : BYOC_OK;
}

const struct byi_pass byi_pass_assign_by_cost = {
    .name = "AssignByCost",
    .summary = "choose the placement by cost",
    .run_module = assign_by_cost,
};
