/* SPDX-License-Identifier: Apache-2.0 */
/* bad_member.c: a backend without run(). */
#include "bad.h"

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct byoc_backend backend = {GOOD_BACKEND, .run = NULL};

PLUGIN(&backend)
