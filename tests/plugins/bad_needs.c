/* SPDX-License-Identifier: Apache-2.0 */
/* bad_needs.c: a plug-in that requires a later version of the backend ABI
 * than any host has.
 */
#define BYOC_BACKEND_NEEDS BYOC_ABI(1, 999)
#include "bad.h"

static const struct byoc_backend backend = {GOOD_BACKEND};

PLUGIN(&backend)
