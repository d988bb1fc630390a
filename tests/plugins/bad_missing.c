/* SPDX-License-Identifier: Apache-2.0 */
/* bad_missing.c: a plug-in that needs a function that no library defines. */
#include "bad.h"

void byoc_test_undefined(void);

static const struct byoc_backend backend = {GOOD_BACKEND};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    byoc_test_undefined();
    return &backend;
}

BYOC_BACKEND_DEFINE(query)
