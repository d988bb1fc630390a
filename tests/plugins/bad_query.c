/* SPDX-License-Identifier: Apache-2.0 */
/* bad_query.c: a plug-in whose query raises a signal. */
#include "bad.h"

#include <signal.h>

static const struct byoc_backend backend = {GOOD_BACKEND};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    raise(SIGSEGV);
    return &backend;
}
BYOC_BACKEND_DEFINE(query)
