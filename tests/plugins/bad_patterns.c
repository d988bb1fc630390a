/* SPDX-License-Identifier: Apache-2.0 */
/* bad_patterns.c: a backend with a number of patterns but no table. */
#include "bad.h"

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct byoc_backend backend = {GOOD_BACKEND, .patterns = NULL};

PLUGIN(&backend)
