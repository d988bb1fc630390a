/* SPDX-License-Identifier: Apache-2.0 */
/* bad_load.c: a valid plug-in whose load() always fails. */
#include "bad.h"

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct byoc_backend backend = {GOOD_BACKEND};

PLUGIN(&backend)
