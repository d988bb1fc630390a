/* SPDX-License-Identifier: Apache-2.0 */
/* bad_name.c: a backend whose name is not an identifier. */
#include "bad.h"

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct byoc_backend backend = {GOOD_BACKEND, .name = "Bad Name"};

PLUGIN(&backend)
