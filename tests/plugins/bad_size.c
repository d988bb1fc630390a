/* SPDX-License-Identifier: Apache-2.0 */
/* bad_size.c: a backend whose struct_size does not cover the required members.
 */
#include "bad.h"

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct byoc_backend backend = {GOOD_BACKEND, .struct_size = 24};

PLUGIN(&backend)
