/* SPDX-License-Identifier: Apache-2.0 */
/* bad_sanitizer.c: a plug-in that claims to be built with the memory sanitizer.
 */
#include "bad.h"

#undef BYOC_TAGS
#define BYOC_TAGS BYOC_TAG_MEMORY

static const struct byoc_backend backend = {GOOD_BACKEND};

PLUGIN(&backend)
