/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/declines.c: finds regions that native kernels run faster.
 * Pooling, resizing, normalisations, reductions and depthwise convolutions are
 * bound by memory. oneDNN runs most of them well on channels-last data, the
 * layout inside a region. But a region of few such layers takes longer to
 * reorder its inputs and outputs than to compute:
 *
 *   NCHW -> reorder -> pool -> reorder -> NCHW     2.1 x the native kernel
 *   NCHW -> reorder -> conv, pool, ... -> reorder -> NCHW      pays off
 *
 * Compared with native kernels, oneDNN takes
 *
 *   three to six times as long for reductions of any axis, and for a
 *   binary operator with a broadcast binary post-op, such as a batch
 *   normalisation alone;
 *   up to ten times for a binary operator with a broadcast operand and rows
 *   that are no multiple of its vectors;
 *   up to twenty times for nn.prelu with most shapes of slopes, for which it
 *   has only a reference implementation;
 *   up to six times for a product with one column;
 *   up to three times for a recurrent layer without gates;
 *   two to four times for elementwise operators of float16 and bfloat16, and
 *   up to six times for their softmax, and up to a hundred times for their
 *   windows and normalisations with few channels;
 *   twice for softmax of rows that are shorter than vectors;
 *   up to three times for layer normalisation of rows of thousands of elements;
 *   up to one and a half times for exp, tanh and the logistic function, and
 *   four times for tanh without AVX-512.
 *
 * These operators save time only inside a larger region.
 *
 * A region is therefore declined if it has no FASTER kernel and at least one
 * SLOWER kernel, but no more SLOWER kernels than inputs and outputs together.
 * It is also declined if all its kernels are EQUAL and several are elementwise:
 * each reads and writes memory, and native kernels are fused into one loop.
 */
#include "runtime_dnnl/build.h"

#include <string.h>

/* Whether running a kernel with oneDNN is worth the reorders that it needs. */
enum rating {
    FASTER, /* even with its reorders, or not measured */
    EQUAL,  /* needs no reorder, and native kernels are as fast */
    SLOWER  /* native kernels are faster, or need no reorder */
};

/* Whether `axis` is the innermost one of a tensor of this rank. */
static bool is_innermost(int64_t axis, uint32_t rank)
{
    return (axis < 0 ? axis + (int64_t)rank : axis) + 1 == (int64_t)rank;
}

/* A layer without gates multiplies few numbers in each step. A step of the
 * native kernel takes as long as reading the weights, which is less than
 * oneDNN's overhead of a step. */
static enum rating rate_recurrent(const struct byoc_graph *g,
                                  const struct byoc_graph_kernel *k)
{
    return strcmp(g->steps[k->first].name, "nn.rnn") == 0 ? SLOWER : FASTER;
}

/* An operator along another axis than the innermost one needs a reorder. */
static enum rating rate_along_axis(const struct byoc_graph *g,
                                   const struct byoc_graph_kernel *k)
{
    const struct byoc_graph_step *step = &g->steps[k->first];
    return is_innermost(byoc_graph_int(step, "axis", -1),
                        g->values[step->args[0]].rank)
               ? EQUAL
               : SLOWER;
}

static enum byoc_dtype dtype_of(const struct byoc_graph *g,
                                const struct byoc_graph_kernel *k)
{
    return g->values[g->steps[k->first].args[0]].dtype;
}

enum { LANES = 16 }; /* of oneDNN's widest vectors */

/* The number of elements in a row of the step's result. */
static int64_t row_length(const struct byoc_graph *g,
                          const struct byoc_graph_step *step)
{
    const struct byoc_graph_value *y = &g->values[step->outs[0]];
    return y->rank ? y->dims[y->rank - 1] : 1;
}

/* SLOWER for the product of a matrix and a vector. */
static enum rating rate_product(const struct byoc_graph *g,
                                const struct byoc_graph_kernel *k)
{
    return row_length(g, &g->steps[k->first]) == 1 ? SLOWER : FASTER;
}

static enum rating rate_softmax(const struct byoc_graph *g,
                                const struct byoc_graph_kernel *k)
{
    return dtype_of(g, k) != BYOC_F32 ||
                   row_length(g, &g->steps[k->first]) < LANES
               ? SLOWER
               : rate_along_axis(g, k);
}

/* SLOWER for long rows: from about 1,000 elements on, native kernels are as
 * fast, and with 8,000 they take two thirds of the time. */
static enum rating rate_layer_norm(const struct byoc_graph *g,
                                   const struct byoc_graph_kernel *k)
{
    enum { LONG_ROW = 4096 };
    const struct byoc_graph_step *step = &g->steps[k->first];
    const struct byoc_graph_value *x = &g->values[step->args[0]];
    const uint32_t axis = byi_axis(byoc_graph_int(step, "axis", -1), x->rank);
    return byi_elements(x->rank - axis, x->dims + axis) < LONG_ROW ? FASTER
                                                                   : SLOWER;
}

/* Windows on float16 and bfloat16 are worth the reorders if the channels fill
 * vectors; otherwise oneDNN runs its reference implementation. */
static enum rating rate_image(const struct byoc_graph *g,
                              const struct byoc_graph_kernel *k)
{
    const struct byoc_graph_step *step = &g->steps[k->first];
    const char *layout = byoc_graph_string(step, "layout", "NC");
    if (byoc_graph_axis(layout, 'C') != 1)
        return EQUAL;
    return dtype_of(g, k) != BYOC_F32 && strstr(step->name, "global") == NULL &&
                   g->values[step->args[0]].dims[1] % LANES == 0
               ? FASTER
               : SLOWER;
}

/* SLOWER for float16 and bfloat16. */
static enum rating rate_lrn(const struct byoc_graph *g,
                            const struct byoc_graph_kernel *k)
{
    return dtype_of(g, k) == BYOC_F32 ? FASTER : SLOWER;
}

/* SLOWER if the convolution is depthwise on channels-first data: each output
 * channel has one of several input channels. */
static enum rating rate_conv(const struct byoc_graph *g,
                             const struct byoc_graph_kernel *k)
{
    const struct byoc_graph_step *step = &g->steps[k->first];
    const char *layout = byoc_graph_string(step, "data_layout", "NC");
    const int channel = byoc_graph_axis(layout, 'C');
    if (channel != 1 || strstr(step->name, "_transpose"))
        return FASTER;
    const int64_t groups = byoc_graph_int(step, "groups", 1);
    return groups > 1 && groups == g->values[step->args[0]].dims[channel]
               ? SLOWER
               : FASTER;
}

/* Whether the kernel is one of the functions that contain a power of e, alone.
 */
static bool is_lone_power(const struct byoc_graph *g,
                          const struct byoc_graph_kernel *k)
{
    static const char *const powers[] = {"exp", "tanh", "sigmoid"};
    for (uint32_t i = 0; k->n_steps == 1 && i < BYI_COUNT(powers); i++)
        if (strcmp(g->steps[k->first].name, powers[i]) == 0)
            return true;
    return false;
}

/* SLOWER for float16 and bfloat16, which take two to four times as long as
 * native kernels, and for lone powers. */
static enum rating rate_eltwise(const struct byoc_graph *g,
                                const struct byoc_graph_kernel *k)
{
    return dtype_of(g, k) == BYOC_F32 && !is_lone_power(g, k) ? EQUAL : SLOWER;
}

/* Whether the step reads an operand that is broadcast to its result. */
static bool broadcasts(const struct byoc_graph *g,
                       const struct byoc_graph_step *step)
{
    const struct byoc_graph_value *y = &g->values[step->outs[0]];
    for (uint32_t i = 0; i < step->n_args; i++) {
        const struct byoc_graph_value *x = &g->values[step->args[i]];
        if (byi_elements(x->rank, x->dims) != byi_elements(y->rank, y->dims))
            return true;
    }
    return false;
}

/* SLOWER for float16 and bfloat16. With a broadcast operand of float32, oneDNN
 * takes up to ten times as long if rows end with a part of a vector. */
static enum rating rate_binary(const struct byoc_graph *g,
                               const struct byoc_graph_kernel *k)
{
    if (dtype_of(g, k) != BYOC_F32 ||
        strcmp(g->steps[k->first].name, "nn.prelu") == 0)
        return SLOWER;
    for (uint32_t i = 0; i < k->n_steps; i++) {
        const struct byoc_graph_step *step = &g->steps[k->first + i];
        if (broadcasts(g, step) && (i > 0 || row_length(g, step) % LANES))
            return SLOWER;
    }
    return EQUAL;
}

/* The kernels of a pattern. */
static const struct rated_pattern {
    const char *pattern;
    bool narrow; /* float16 and bfloat16 were measured, too */
    enum rating rating;
    enum rating (*rate)(const struct byoc_graph *g,
                        const struct byoc_graph_kernel *k); /* or NULL */
} rated_patterns[] = {
    {"dnnl.conv", false, FASTER, rate_conv},
    {"dnnl.matmul", false, FASTER, rate_product},
    {"dnnl.dense", false, FASTER, rate_product},
    {"dnnl.pool", true, FASTER, rate_image},
    {"dnnl.global_pool", true, FASTER, rate_image},
    {"dnnl.resize", true, FASTER, rate_image},
    {"dnnl.batch_norm", true, FASTER, rate_along_axis},
    {"dnnl.lrn", true, FASTER, rate_lrn},
    {"dnnl.layer_norm", false, FASTER, rate_layer_norm},
    {"dnnl.layer_norm_scale", false, FASTER, rate_layer_norm},
    {"dnnl.instance_norm", true, FASTER, rate_image},
    {"dnnl.softmax", true, FASTER, rate_softmax},
    {"dnnl.reduce", true, SLOWER, NULL},
    {"dnnl.recurrent", false, FASTER, rate_recurrent},
    {"dnnl.binary", true, FASTER, rate_binary},
    {"dnnl.eltwise", true, FASTER, rate_eltwise},
    {"dnnl.reshape", false, EQUAL, NULL},
    {"dnnl.view", false, EQUAL, NULL},
    {"dnnl.copy", false, EQUAL, NULL},
    {"dnnl.concat", false, EQUAL, NULL},
    {"dnnl.split", false, EQUAL, NULL},
    {"dnnl.slice", false, EQUAL, NULL},
    {"dnnl.transpose", false, EQUAL, NULL},
    {"dnnl.lookup", false, EQUAL, NULL},
};

/* Rates a kernel; FASTER if it was not measured. */
static enum rating rate(const struct byoc_graph *g,
                        const struct byoc_graph_kernel *k)
{
    const struct rated_pattern *row = rated_patterns;
    while (row < rated_patterns + BYI_COUNT(rated_patterns) &&
           strcmp(row->pattern, k->pattern) != 0)
        row++;
    if (row == rated_patterns + BYI_COUNT(rated_patterns) || !k->n_steps ||
        (!row->narrow && dtype_of(g, k) != BYOC_F32))
        return FASTER;
    return row->rate ? row->rate(g, k) : row->rating;
}

static bool is_elementwise(const struct byoc_graph_kernel *k)
{
    return strcmp(k->pattern, "dnnl.binary") == 0 ||
           strcmp(k->pattern, "dnnl.eltwise") == 0;
}

bool byi_dn_declines(const struct byoc_graph *g)
{
    uint32_t slower = 0, elementwise = 0;
    for (uint32_t i = 0; i < g->n_kernels; i++) {
        const struct byoc_graph_kernel *k = &g->kernels[i];
        const enum rating rating = rate(g, k);
        if (rating == FASTER)
            return false;
        slower += rating == SLOWER;
        elementwise += is_elementwise(k);
    }
    return slower ? slower <= g->n_inputs + g->n_outputs : elementwise > 1;
}
