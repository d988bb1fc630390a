/* SPDX-License-Identifier: Apache-2.0 */
/* ToANormalForm: write every value as a let.
 * requires: nothing
 * leaves:   every operator call, call, tuple, field, `if` and function
 *           literal is a let, in the lowest scope that contains all its readers
 *           (see ToBasicBlockNormalForm). Operands and results are atoms:
 *           names, constants, globals. Branches belong to their `if`.
 *
 *   %0 = exp(%x);                       let %0 = exp(%x);
 *   add(%0, nn.relu(%0))      ==>       let %1 = nn.relu(%0);
 *                                       let %2 = add(%0, %1);
 *                                       %2
 *
 * Flanagan, Sabry, Duba, Felleisen, "The essence of compiling with
 * continuations", 1993.
 */
#include "transform.h"

#include "scope.h"

const struct byi_pass byi_pass_to_a_normal_form = {
    .name = "ToANormalForm",
    .summary = "write every value as a let, where it is needed",
    .opt_level = 1,
    .data = &(const enum byi_let){BYI_LET_ALL},
    .run_module = byi_scopes_normalize,
};
