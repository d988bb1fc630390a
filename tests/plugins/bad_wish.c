/* SPDX-License-Identifier: Apache-2.0 */
/* bad_wish.c: takes convolutions of two dimensions, and wishes them in layouts
 * that there are not: which one, the number of filters says.
 */
#include "bad.h"

#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Woverride-init"

static struct byoc_fail *layout(const struct byoc_host *host,
                                const struct byoc_region *graph,
                                struct byoc_layout *wish)
{
    const int64_t filters = graph->consts[0].dims[0];
    (void)host;
    if (filters % 2)
        snprintf(wish->data, sizeof wish->data, "NHCX");
    else
        memset(wish->data, 'N', sizeof wish->data);
    return NULL;
}

static const struct byoc_pattern wishes[] = {
    {.name = "bad.conv2d", .pattern = "nn.conv2d(%x, const %w)"},
};

static const struct byoc_backend backend = {GOOD_BACKEND, .patterns = wishes,
                                            .layout = layout};

PLUGIN(&backend)
