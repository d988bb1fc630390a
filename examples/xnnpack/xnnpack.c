/* SPDX-License-Identifier: Apache-2.0 */
/* xnnpack.c: the backend for XNNPACK: float32 convolutions, matrix products,
 * pooling, and the operators that are usually between those.
 */
#include "xnn.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define CLAMP " [nn.relu|clip(^)]?"
#define BIAS " [add(^, const %bias)]?"
static const struct byoc_pattern patterns[] = {
    {"xnnpack.convolution", "nn.conv2d|nn.conv2d_transpose(%src, const %weights)" BIAS CLAMP, accept_convolution},
    {"xnnpack.dense", "nn.dense|nn.matmul(%src, const %weights)" BIAS CLAMP, accept_dense},
    {"xnnpack.pool", "nn.max_pool2d|nn.avg_pool2d(%src)" CLAMP, accept_pool},
    {"xnnpack.global_pool", "nn.global_avg_pool2d(%src)" CLAMP, accept_global_pool},
    {"xnnpack.softmax", "nn.softmax(%src)", accept_axis},
    {"xnnpack.concatenate", "concatenate(%src...)", accept_axis},
    {"xnnpack.prelu", "nn.prelu(%src, const %slope)", accept_prelu},
    {"xnnpack.binary", "add|subtract|multiply|divide(%src, %with)" CLAMP, accept_float},
    {"xnnpack.min_max", "maximum|minimum(%src, %with)", accept_float},
    {"xnnpack.unary", "nn.relu|clip|sigmoid|nn.hard_swish|nn.hard_sigmoid|nn.silu|nn.leaky_relu|nn.elu|abs|negative|ceil|floor|round|sqrt(%src)", accept_float},
    /* operators that would split regions if they stayed native */
    {"xnnpack.view", "nn.flatten|squeeze|expand_dims(%src)", accept_float},
    {"xnnpack.reshape", "reshape(%src, const %shape)", accept_float},
};
/* clang-format on */

/* Load the region and create a state, as a run would. */
static struct byoc_fail *probe(const struct byoc_host *host,
                               const struct byoc_region *graph,
                               struct byoc_probe *result)
{
    void *compiled, *state;
    struct byoc_fail *fail = xnn_load(host, graph, &compiled);
    if (fail)
        return fail;
    fail = xnn_state_new(host, compiled, &state);
    if (!fail) {
        snprintf(result->impl, sizeof result->impl, "xnnpack:%s",
                 xnn_name(compiled));
        xnn_state_free(host, compiled, state);
    }
    xnn_unload(host, compiled);
    return fail;
}

/* Prefer channels-last data. The plug-in packs weights, so their layout in the
 * model does not matter. */
static struct byoc_fail *layout(const struct byoc_host *host,
                                const struct byoc_region *graph,
                                struct byoc_layout *preferred)
{
    (void)host, (void)graph;
    strcpy(preferred->data, "NHWC");
    return NULL;
}

/* `quiesce` is not set, so that the library stays mapped: XNNPACK's libcpuinfo
 * cannot be deinitialised. */
static const struct byoc_backend backend = {
    .struct_size = sizeof backend,
    .name = "xnnpack",
    .version = "20220216",
    .compat = "xnnpack 1",
    .patterns = patterns,
    .n_patterns = COUNT(patterns),
    .probe = probe,
    .load = xnn_load,
    .unload = xnn_unload,
    .state_new = xnn_state_new,
    .state_free = xnn_state_free,
    .run = xnn_run,
    .layout = layout,
};

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    (void)host, (void)why, (void)why_bytes;
    return &backend;
}
BYOC_BACKEND_DEFINE(query)
