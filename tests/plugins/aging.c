/* SPDX-License-Identifier: Apache-2.0 */
/* aging.c: the backend of ref.c with a version, $AGE. It runs artifacts of its
 * own version and of the version before; for the latter, check_compat() returns
 * BYOC_FAIL_STALE. It refuses all others.
 */
#define REF_IS_A_PART
#include "ref.c"

#include <stdio.h>
#include <stdlib.h>

static struct byoc_backend aging;

static long my_age(void)
{
    const char *age = getenv("AGE");
    return age ? strtol(age, NULL, 10) : 1;
}

static struct byoc_fail *check_age(const struct byoc_host *host,
                                   const char *compat)
{
    long version = 0;
    if (sscanf(compat, "aging-%ld", &version) == 1 && version == my_age())
        return NULL;
    char text[100];
    snprintf(text, sizeof text, "made at the age of %ld, now it is %ld",
             version, my_age());
    return host->fail(host->ctx,
                      version == my_age() - 1 ? BYOC_FAIL_STALE
                                              : BYOC_FAIL_INCOMPATIBLE,
                      text);
}

static const struct byoc_backend *query_aging(const struct byoc_host *host,
                                              char *why, uint32_t why_bytes)
{
    static char compat[40];
    aging = *query(host, why, why_bytes);
    snprintf(compat, sizeof compat, "aging-%ld", my_age());
    aging.compat = compat;
    aging.check_compat = check_age;
    return &aging;
}

BYOC_BACKEND_DEFINE(query_aging)
