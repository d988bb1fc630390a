/* bad_refuses.c: refuses every host, with a reason. */
#include <byoc/backend.h>

#include <stdio.h>

__attribute__((visibility("default"))) const struct byoc_backend *
byoc_backend_query_v1(const struct byoc_host *host, char *why,
                      uint32_t why_bytes);

const struct byoc_backend *byoc_backend_query_v1(const struct byoc_host *host,
                                                 char *why, uint32_t why_bytes)
{
    (void)host;
    snprintf(why, why_bytes, "no licence found");
    return NULL;
}
