/* SPDX-License-Identifier: Apache-2.0 */
/* bad_refuses.c: a plug-in that refuses every host, with a reason. */
#include <byoc/backend.h>

#include <stdio.h>

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host;
    snprintf(why, why_bytes, "no licence found");
    return NULL;
}

BYOC_BACKEND_DEFINE(query)
