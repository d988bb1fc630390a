/* SPDX-License-Identifier: Apache-2.0 */
/* bad_ext.c: a backend whose list of extensions does not end. */
#include "bad.h"

static struct byoc_ext ext = {77, sizeof ext, &ext};
static const struct byoc_backend backend = {GOOD_BACKEND, .ext = &ext};

PLUGIN(&backend)
