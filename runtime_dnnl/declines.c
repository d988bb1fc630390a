/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/declines.c: regions that native kernels run faster. Pooling,
 * normalisations, reductions and depthwise convolutions read and write memory
 * and do little else. oneDNN runs them well on data that is channels last, or
 * whose reduced axis is innermost. Inside a region data stays so, but a region
 * of few such layers takes longer to reorder its inputs and outputs than to
 * compute:
 *
 *   NCHW -> reorder -> pool -> reorder -> NCHW     2.1 x the native kernel
 *   NCHW -> reorder -> conv, pool, ... -> reorder -> NCHW      pays off
 *
 * So a region is declined if it has no HEAVY kernel, and has at most as many
 * REORDERS kernels as inputs and outputs together.
 */
#include "runtime_dnnl/build.h"

#include <string.h>

/* How much a kernel computes, compared with the reorders that it causes. */
enum weight {
    HEAVY,   /* worth the reorders of a region                          */
    LIGHT,   /* needs no reorder; as fast in native kernels             */
    REORDERS /* computes little, and its data changes layout for oneDNN */
};

/* Is axis `axis` of a tensor of this rank the innermost one? */
static bool is_innermost(int64_t axis, uint32_t rank)
{
    return (axis < 0 ? axis + (int64_t)rank : axis) + 1 == (int64_t)rank;
}

static enum weight weigh_reduction(const struct byoc_graph *g,
                                   const struct byoc_graph_step *step)
{
    uint32_t n;
    const int64_t *axes = byoc_graph_list(step, "axis", &n);
    for (uint32_t i = 0; i < n; i++)
        if (is_innermost(axes[i], g->values[step->args[0]].rank))
            return LIGHT;
    return n ? REORDERS : LIGHT;
}

static enum weight weigh_along_axis(const struct byoc_graph *g,
                                    const struct byoc_graph_step *step)
{
    return is_innermost(byoc_graph_int(step, "axis", -1),
                        g->values[step->args[0]].rank)
               ? LIGHT
               : REORDERS;
}

static enum weight weigh_image(const struct byoc_graph *g,
                               const struct byoc_graph_step *step)
{
    const char *layout = byoc_graph_string(step, "layout", "NC");
    (void)g;
    return byoc_graph_axis(layout, 'C') == 1 ? REORDERS : LIGHT;
}

/* Depthwise: each output channel has one input channel. */
static enum weight weigh_conv(const struct byoc_graph *g,
                              const struct byoc_graph_step *step)
{
    const char *layout = byoc_graph_string(step, "data_layout", "NC");
    const int channel = byoc_graph_axis(layout, 'C');
    if (channel != 1 || strstr(step->name, "_transpose"))
        return HEAVY;
    return byoc_graph_int(step, "groups", 1) ==
                   g->values[step->args[0]].dims[channel]
               ? REORDERS
               : HEAVY;
}

static enum weight weigh_light(const struct byoc_graph *g,
                               const struct byoc_graph_step *step)
{
    (void)g, (void)step;
    return LIGHT;
}

static enum weight weigh(const struct byoc_graph *g,
                         const struct byoc_graph_kernel *k)
{
    static const struct {
        const char *pattern;
        enum weight (*weigh)(const struct byoc_graph *g,
                             const struct byoc_graph_step *step);
    } rows[] = {
        {"dnnl.conv", weigh_conv},
        {"dnnl.pool", weigh_image},
        {"dnnl.global_pool", weigh_image},
        {"dnnl.batch_norm", weigh_along_axis},
        {"dnnl.instance_norm", weigh_image},
        {"dnnl.softmax", weigh_along_axis},
        {"dnnl.reduce", weigh_reduction},
        {"dnnl.binary", weigh_light},
        {"dnnl.eltwise", weigh_light},
        {"dnnl.reshape", weigh_light},
        {"dnnl.view", weigh_light},
        {"dnnl.copy", weigh_light},
    };
    for (uint32_t i = 0; i < BYI_COUNT(rows); i++)
        if (strcmp(rows[i].pattern, k->pattern) == 0)
            return rows[i].weigh(g, &g->steps[k->first]);
    return HEAVY;
}

bool byi_dn_declines(const struct byoc_graph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_kernels; i++) {
        const struct byoc_graph_kernel *k = &g->kernels[i];
        const enum weight weight = k->n_steps ? weigh(g, k) : HEAVY;
        if (weight == HEAVY ||
            g->values[g->steps[k->first].args[0]].dtype != BYOC_F32)
            return false;
        n += weight == REORDERS;
    }
    return n > 0 && n <= g->n_inputs + g->n_outputs;
}
