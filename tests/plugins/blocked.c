/* SPDX-License-Identifier: Apache-2.0 */
/* blocked.c: a backend that computes nothing and prefers blocks of 16 channels
 * for every shape. The host must ignore the preference if the shape does not
 * allow it.
 */
#include <byoc/backend.h>

#include <stdio.h>
#include <string.h>

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    (void)region, (void)compiled;
    return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                      "this plug-in computes nothing");
}

static void unload(const struct byoc_host *host, void *compiled)
{
    (void)host, (void)compiled;
}

static struct byoc_fail *state_new(const struct byoc_host *host, void *compiled,
                                   void **state)
{
    (void)compiled, (void)state;
    return host->fail(host->ctx, BYOC_FAIL_INTERNAL, "nothing was loaded");
}

static void state_free(const struct byoc_host *host, void *compiled,
                       void *state)
{
    (void)host, (void)compiled, (void)state;
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    (void)compiled, (void)state, (void)args;
    return host->fail(host->ctx, BYOC_FAIL_INTERNAL, "nothing was loaded");
}

/* Prefer blocks of 16 channels; refuse a convolution with dilation, as a
 * backend may. */
static struct byoc_fail *layout(const struct byoc_host *host,
                                const struct byoc_region *graph,
                                struct byoc_layout *preferred)
{
    if (strstr(graph->json, "\"dilation\": [2, 2]"))
        return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                          "dilated convolutions are computed as they are");
    if (strstr(graph->json, "nn.conv2d\"")) {
        snprintf(preferred->data, sizeof preferred->data, "NCHW16c");
        snprintf(preferred->kernel, sizeof preferred->kernel, "OIHW16i16o");
    }
    return NULL;
}

static const struct byoc_pattern patterns[] = {
    {"blocked.conv2d", "nn.conv2d(%x, %w)", NULL},
    {"blocked.conv1d", "nn.conv1d(%x, %w)", NULL},
};

static const struct byoc_backend backend = {
    .struct_size = sizeof(struct byoc_backend),
    .name = "blocked",
    .version = "1",
    .compat = "blocked-1",
    .patterns = patterns,
    .n_patterns = sizeof patterns / sizeof patterns[0],
    .load = load,
    .unload = unload,
    .state_new = state_new,
    .state_free = state_free,
    .run = run,
    .layout = layout,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}

BYOC_BACKEND_DEFINE(query)
