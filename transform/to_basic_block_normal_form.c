/* SPDX-License-Identifier: Apache-2.0 */
/* ToBasicBlockNormalForm: compute a value only where it is needed.
 * requires: nothing
 * leaves:   every value in the lowest scope that contains all its readers;
 *           scopes are function bodies and the branches of an `if`. A value
 *           that only one branch reads moves there, with the operands that
 *           only it reads; a value that both branches or the condition read
 *           stays outside. Captures of branches and literals are lets. Values
 *           without readers are dropped.
 *           A value never moves into a function literal that is not a branch,
 *           since the literal may be called many times. Constants and globals
 *           are not values: they move with their readers, and stay where a
 *           branch captures them, as do references of a function to itself. An
 *           `if` does not move deeper than 64 branches.
 *
 *   %0 = exp(%x);                     if (%c) {
 *   if (%c) { abs(%0) }     ==>         %0 = exp(%x);
 *   else { %x }                         abs(%0)
 *                                     } else { %x }
 */
#include "transform.h"

#include "scope.h"

const struct byi_pass byi_pass_to_basic_block_normal_form = {
    .name = "ToBasicBlockNormalForm",
    .summary = "compute values only in the branch that reads them",
    .opt_level = 1,
    .data = &(const enum byi_let){BYI_LET_SHARED},
    .run_module = byi_scopes_normalize,
};
