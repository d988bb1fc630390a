/* SPDX-License-Identifier: Apache-2.0 */
/* bad_prefix.c: a backend with a pattern whose name has another backend's
 * prefix.
 */
#include "bad.h"

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct byoc_pattern foreign[] = {
    {.name = "dnnl.relu", .pattern = "nn.relu(%x)"},
};
static const struct byoc_backend backend = {GOOD_BACKEND, .patterns = foreign};

PLUGIN(&backend)
