/* SPDX-License-Identifier: Apache-2.0 */
/* transform/user_pass.h: makes a user's struct byoc_pass (byoc/pass.h) a pass
 * of the pass manager.
 */
#ifndef BYI_USER_PASS_H
#define BYI_USER_PASS_H

#include "core/ir/ir.h"

/* Set *new_pass to a function pass that applies the rules of `pass`, which must
 * outlive *new_pass; the caller frees *new_pass with free(). On an error
 * *new_pass is NULL. Errors: BYOC_EINVAL (a missing or invalid name, no
 * summary, an opt level outside 0 to 3, no rules, a rule without apply(), an
 * unknown operator, a struct_size that is too small), BYOC_ENOMEM. */
enum byoc_status byi_user_pass(const struct byoc_pass *pass,
                               struct byi_pass **new_pass,
                               struct byoc_error *err);

#endif
