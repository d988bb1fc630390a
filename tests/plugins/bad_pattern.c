/* SPDX-License-Identifier: Apache-2.0 */
/* bad_pattern.c: a backend whose table has a row without a pattern. */
#include "bad.h"

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct byoc_pattern empty[] = {{.name = "bad.relu"}};
static const struct byoc_backend backend = {GOOD_BACKEND, .patterns = empty};

PLUGIN(&backend)
