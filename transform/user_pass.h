/* SPDX-License-Identifier: Apache-2.0 */
/* transform/user_pass.h: makes a user's struct byoc_pass a pass of the pass
 * manager.
 */
#ifndef BYI_USER_PASS_H
#define BYI_USER_PASS_H

#include "core/ir/ir.h"

/* A function pass that applies the rules of `pass`, which must outlive it; free
 * it with free(). Errors: BYOC_EINVAL (an empty or invalid name, no rules, an
 * unknown operator, a struct of another size), BYOC_ENOMEM. */
enum byoc_status byi_user_pass(const struct byoc_pass *pass,
                               struct byi_pass **made, struct byoc_error *err);

#endif
