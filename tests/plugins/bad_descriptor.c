/* SPDX-License-Identifier: Apache-2.0 */
/* bad_descriptor.c: a plug-in with a query but without a descriptor. */
#include "bad.h"

static const struct byoc_backend backend = {GOOD_BACKEND};

BYOC_VISIBLE const struct byoc_backend *byoc_backend_query_v1(
    const struct byoc_host *host, char *why, uint32_t why_bytes);

const struct byoc_backend *byoc_backend_query_v1(const struct byoc_host *host,
                                                 char *why, uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}
