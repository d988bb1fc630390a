/* SPDX-License-Identifier: Apache-2.0 */
/* bad_needs.c: wants a host of a later version. */
#define BYOC_BACKEND_NEEDS BYOC_ABI(1, 999)
#include "bad.h"

static const struct byoc_backend backend = {GOOD_BACKEND};

PLUGIN(&backend)
