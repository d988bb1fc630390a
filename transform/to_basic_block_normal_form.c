/* SPDX-License-Identifier: Apache-2.0 */
/* ToBasicBlockNormalForm: compute a value only where it is needed.
 * requires: nothing
 * leaves:   every value in the lowest scope that holds all who read it, where
 *           scopes are function bodies and the branches of an `if`. A value
 *           read in one branch only moves there, and what only it reads moves
 *           along; one that both branches read, or the condition, stays
 *           outside. What a branch or a literal captures is a let. Values that
 *           nobody reads are dropped.
 *           A value never moves into a function literal that is no branch: it
 *           could be called many times. Constants and globals are no values:
 *           they go along with their readers, and stay where a branch
 *           captures them, as the name of a function does in its own body. An
 *           `if` does not move deeper than 64 branches.
 *
 *   %0 = exp(%x);                     if (%c) {
 *   if (%c) { abs(%0) }     ==>         %0 = exp(%x);
 *   else { %x }                         abs(%0)
 *                                     } else { %x }
 */
#include "transform.h"

#include "scope.h"

static enum byoc_status run(struct byi_module *m, struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    (void)ctx;
    (void)err;
    byi_scopes_normalize(m, scratch, BYI_LET_SHARED);
    return BYOC_OK;
}

const struct byi_pass byi_pass_to_basic_block_normal_form = {
    .name = "ToBasicBlockNormalForm",
    .summary = "compute values only in the branch that reads them",
    .opt_level = 1,
    .run_module = run,
};
