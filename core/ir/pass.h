/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h: the check of pass options, for pass.c and pass_options.c. */
#ifndef BYI_PASS_H
#define BYI_PASS_H

#include "ir.h"

/* Check that every option belongs to a pass of ctx->known (or, if ctx->known is
 * NULL, of `passes`), and that its value has the right kind. Errors:
 * BYOC_EINVAL. */
enum byoc_status byi_options_check(const struct byi_pass *const *passes,
                                   uint32_t n,
                                   const struct byi_pass_context *ctx,
                                   struct byoc_error *err);

#endif
