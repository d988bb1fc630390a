/* SPDX-License-Identifier: Apache-2.0 */
/* EliminateTransposes: cancel, fold and sink transposes.
 * requires: nothing; best after SimplifyInference, which leaves fewer operators
 * leaves:   no two consecutive transposes, no transpose of a constant, and no
 *           pair that cancels across operators that propagate layouts. A
 *           remaining transpose is where it moves the fewest bytes, or became
 *           a flag of a matmul, a new order of constant weights after a
 *           flatten, or a reshape if only axes of size 1 move
 *
 *   %0 = transpose(%x, axes=[0, 2, 3, 1]);
 *   %1 = nn.relu(%0);                        ==>   nn.relu(%x)
 *   transpose(%1, axes=[0, 3, 1, 2])
 *
 * relayout.h finds the layouts. A plan that is not cheaper changes nothing.
 */
#include "transform.h"

#include "relayout.h"

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    struct byi_relayout rl;
    byi_relayout_init(&rl, m, func, ctx, scratch);
    const enum byoc_status status = byi_relayout_run(&rl, func, err);
    byi_relayout_free(&rl);
    return status;
}

const struct byi_pass byi_pass_eliminate_transposes = {
    .name = "EliminateTransposes",
    .summary = "cancel, fold and absorb transposes, or move fewer bytes",
    .opt_level = 2,
    .run_func = run,
};
