/* SPDX-License-Identifier: Apache-2.0 */
/* bad_abi.c: a plug-in for another version of the header. */
#include "bad.h"

#undef BYOC_BACKEND_ABI
#define BYOC_BACKEND_ABI BYOC_ABI(77, 0)

static const struct byoc_backend backend = {GOOD_BACKEND};

PLUGIN(&backend)
