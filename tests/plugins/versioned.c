/* SPDX-License-Identifier: Apache-2.0 */
/* versioned.c: the backend of ref.c with the version $BACKEND_VERSION. It runs
 * artifacts of its own version and of the version before; for the latter,
 * check_compat() returns BYOC_FAIL_STALE. It refuses all others.
 */
#define REF_IS_A_PART
#include "ref.c"

#include <stdio.h>
#include <stdlib.h>

static struct byoc_backend versioned;

static long own_version(void)
{
    const char *text = getenv("BACKEND_VERSION");
    return text ? strtol(text, NULL, 10) : 1;
}

static struct byoc_fail *check_version(const struct byoc_host *host,
                                       const char *compat)
{
    long version = 0;
    if (sscanf(compat, "versioned-%ld", &version) == 1 &&
        version == own_version())
        return NULL;
    char text[100];
    snprintf(text, sizeof text, "made by version %ld, now it is version %ld",
             version, own_version());
    return host->fail(host->ctx,
                      version == own_version() - 1 ? BYOC_FAIL_STALE
                                                   : BYOC_FAIL_INCOMPATIBLE,
                      text);
}

static const struct byoc_backend *query_versioned(const struct byoc_host *host,
                                                  char *why, uint32_t why_bytes)
{
    static char compat[40];
    versioned = *query(host, why, why_bytes);
    snprintf(compat, sizeof compat, "versioned-%ld", own_version());
    versioned.compat = compat;
    versioned.check_compat = check_version;
    return &versioned;
}

BYOC_BACKEND_DEFINE(query_versioned)
