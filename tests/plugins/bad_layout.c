/* SPDX-License-Identifier: Apache-2.0 */
/* bad_layout.c: a backend for nn.conv2d that prefers invalid layouts; the
 * number of filters selects which.
 */
#include "bad.h"

#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Woverride-init"

static struct byoc_fail *layout(const struct byoc_host *host,
                                const struct byoc_region *graph,
                                struct byoc_layout *preferred)
{
    const int64_t filters = graph->consts[0].dims[0];
    (void)host;
    if (filters % 2)
        snprintf(preferred->data, sizeof preferred->data, "NHCX");
    else
        memset(preferred->data, 'N', sizeof preferred->data);
    return NULL;
}

static const struct byoc_pattern conv_patterns[] = {
    {.name = "bad.conv2d", .pattern = "nn.conv2d(%x, const %w)"},
};

static const struct byoc_backend backend = {
    GOOD_BACKEND, .patterns = conv_patterns, .layout = layout};

PLUGIN(&backend)
