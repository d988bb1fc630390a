/* SPDX-License-Identifier: Apache-2.0 */
/* bad.h: a minimal valid plug-in; each tests/plugins/bad_*.c breaks one rule
 * with it.
 */
#ifndef BYI_TESTS_BAD_H
#define BYI_TESTS_BAD_H

#include <byoc/backend.h>

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    (void)region, (void)compiled;
    return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                      "this backend builds nothing");
}

static void unload(const struct byoc_host *host, void *compiled)
{
    (void)host, (void)compiled;
}

static struct byoc_fail *state_new(const struct byoc_host *host, void *compiled,
                                   void **state)
{
    (void)host, (void)compiled, (void)state;
    return NULL;
}

static void state_free(const struct byoc_host *host, void *compiled,
                       void *state)
{
    (void)host, (void)compiled, (void)state;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    (void)host, (void)compiled, (void)state, (void)args;
    return NULL;
}

static const struct byoc_pattern patterns[] = {
    {.name = "bad.relu", .pattern = "nn.relu(%x)"},
};

#define GOOD_BACKEND                                                           \
    .struct_size = sizeof(struct byoc_backend), .name = "bad", .version = "1", \
    .compat = "bad-1", .patterns = patterns, .n_patterns = 1, .load = load,    \
    .unload = unload, .state_new = state_new, .state_free = state_free,        \
    .run = run

/* Define a plug-in whose query returns `table`. */
#define PLUGIN(table)                                                          \
    static const struct byoc_backend *query(const struct byoc_host *host,      \
                                            char *why, uint32_t why_bytes)     \
    {                                                                          \
        (void)host, (void)why, (void)why_bytes;                                \
        return table;                                                          \
    }                                                                          \
    BYOC_BACKEND_DEFINE(query)

#endif
