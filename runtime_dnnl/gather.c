/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/gather.c: finds values that need not be stored. The input of a
 * pointwise convolution may be a concatenation of channels, a multiplication by
 * a scale per channel, a shift and ReLU. Such a scale comes from
 * squeeze-and-excitation, or from a BatchNorm that cannot be folded. The
 * convolution computes these operators itself. It does so for a few positions
 * at a time, whose rows stay in the first-level cache:
 *
 *     a   b   scale  shift
 *      \ /     |      |
 *     concatenate * + relu      no step, no memory
 *              |
 *          nn.conv2d 1x1        reads a, b, scale and shift
 *
 * For float16 and bfloat16 data, the convolution computes only a multiplication
 * this way.
 */
#include "runtime_dnnl/build.h"

#include <string.h>

#include "kernels/f32.h"

/* Rows are gathered for tiles of at least MIN_ROWS rows, which SSE2's kernels
 * do not have. Rows of more than MAX_CHANNELS do not stay in the first-level
 * cache. */
enum { MIN_ROWS = 6, MAX_CHANNELS = 4096, MAX_STEPS = 16 };

/* Whether all numbers of the list attribute `name` equal `value`. */
static bool are_all_equal(const struct byoc_graph_step *step, const char *name,
                          int64_t value)
{
    uint32_t n;
    const int64_t *list = byoc_graph_list(step, name, &n);
    for (uint32_t i = 0; i < n; i++)
        if (list[i] != value)
            return false;
    return true;
}

/* Whether byoc's own kernels are as fast as oneDNN's for this number of
 * outputs. The kernels for AVX2 are not if there is only a part of a panel, or
 * if they have to copy the last one. */
static bool suits_kernels(int64_t outputs)
{
    const int rows = byi_f32_kernels()->rows;
    return rows > MIN_ROWS || (rows == MIN_ROWS && outputs >= BYI_F32_PANEL &&
                               outputs % byi_f32_kernels()->partial == 0);
}

/* Whether the only reader of the kernel's result is a pointwise convolution,
 * which reads every position once. */
static bool is_read_by_pointwise(const struct byi_build *b)
{
    const uint32_t value = b->kernel->outs[0], at = b->reader[value];
    const struct byoc_graph_value *type = &b->graph->values[value];
    if (b->kernel->n_outs != 1 || at == BYI_NO_INDEX || b->keeps_layouts ||
        type->rank != 4 || !byi_dn_is_float(type->dtype))
        return false;
    const struct byoc_graph_kernel *reader = &b->graph->kernels[at];
    const struct byoc_graph_step *step = &b->graph->steps[reader->first];
    if (reader->n_steps > MAX_STEPS || !byi_dn_is(step, "nn.conv2d") ||
        step->args[0] != value ||
        strcmp(byoc_graph_string(step, "data_layout", ""), "NCHW") != 0 ||
        byoc_graph_int(step, "groups", 0) != 1 ||
        !are_all_equal(step, "strides", 1) ||
        !are_all_equal(step, "padding", 0))
        return false;
    const struct byoc_graph_value *weights = &b->graph->values[step->args[1]];
    const int64_t outputs = b->graph->values[step->outs[0]].dims[1];
    return (type->dtype != BYOC_F32 || suits_kernels(outputs)) &&
           (int64_t)weights->count == outputs * type->dims[1] &&
           type->dims[1] <= MAX_CHANNELS && type->dims[2] * type->dims[3] > 1;
}

/* Whether the item is the operation `alg` with an operand (images, C, 1, 1) or
 * (1, C, 1, 1). */
static bool is_per_channel(struct byi_build *b,
                           const struct byi_chain_item *item, enum byi_bin alg,
                           int64_t images)
{
    const int64_t channels = item->type->dims[1];
    if (item->kind != BYI_ITEM_BIN || item->alg != (int)alg)
        return false;
    const struct byi_desc *desc =
        &byi_dn_operand(b, item->operand)->views[0].desc;
    if (desc->rank > 4 || desc->dtype != item->type->dtype)
        return false;
    const struct byi_desc padded = byi_dn_with_rank(desc, 4);
    return (padded.dims[0] == 1 || padded.dims[0] == images) &&
           padded.dims[1] == channels && padded.dims[2] == 1 &&
           padded.dims[3] == 1;
}

/* The items of the chain: a scale, a shift and ReLU, each of which may be
 * missing. */
struct affine {
    const struct byi_chain_item *scale, *shift;
    bool relu;
};

/* Read the chain as an affine function; false if it has other items. */
static bool read_affine(struct byi_build *b, const struct byi_chain *chain,
                        struct affine *a)
{
    const int64_t images = byi_dn_result(b)->dims[0];
    uint32_t i = 0;
    *a = (struct affine){0};
    if (i < chain->n && is_per_channel(b, &chain->at[i], BYI_BIN_MUL, images))
        a->scale = &chain->at[i++];
    if (i < chain->n && is_per_channel(b, &chain->at[i], BYI_BIN_ADD, 1))
        a->shift = &chain->at[i++];
    a->relu = i < chain->n && chain->at[i].kind == BYI_ITEM_ELT &&
              chain->at[i].alg == BYI_ELT_RELU && chain->at[i].alpha == 0;
    return i + a->relu == chain->n;
}

/* Get a dense view of an item's operand, and keep its buffer until the reader
 * is built. */
static enum byoc_status keep_operand(struct byi_build *b,
                                     const struct byi_chain_item *item,
                                     struct byi_dnnl_view *view)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, item->operand);
    BYI_TRY(byi_dn_get_row_major(b, value, view));
    view->desc = byi_dn_with_rank(&view->desc, 4);
    b->bufs.at[view->buf].uses++;
    return BYOC_OK;
}

/* Set the views and parameters of *g, and keep their buffers until the reader
 * is built. */
static enum byoc_status keep_views(struct byi_build *b, uint32_t n,
                                   const uint32_t *values,
                                   const struct affine *a,
                                   struct byi_gathered *g)
{
    for (uint32_t i = 0; i < n; i++) {
        struct byi_dnnl_value *value = byi_dn_operand(b, values[i]);
        const struct byi_desc *desc = &value->views[0].desc;
        const struct byi_desc layout =
            byi_dn_channels_last(desc->dtype, desc->rank, desc->dims);
        g->p.channels[i] = desc->dims[1];
        BYI_TRY(byi_dn_get_view(b, value, &layout, &g->views[i]));
        b->bufs.at[g->views[i].buf].uses++;
    }
    if (a->scale)
        BYI_TRY(keep_operand(b, a->scale, &g->scale));
    if (a->shift)
        BYI_TRY(keep_operand(b, a->shift, &g->shift));
    g->p.n = n;
    g->p.scale = g->scale.desc;
    g->p.shift = g->shift.desc;
    g->p.relu = a->relu;
    return BYOC_OK;
}

bool byi_dn_gather(struct byi_build *b, uint32_t n, const uint32_t *values,
                   const struct byi_chain *chain, enum byoc_status *status)
{
    struct affine a;
    if (n > BYI_MAX_GATHERED || !is_read_by_pointwise(b) ||
        !read_affine(b, chain, &a))
        return false;
    const enum byoc_dtype dtype = byi_dn_result(b)->dtype;
    if (dtype != BYOC_F32 && (n > 1 || !a.scale || a.shift || a.relu))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (byi_dn_operand(b, values[i])->views[0].desc.dtype != dtype)
            return false;
    struct byi_gathered *g = byi_arena_calloc(b->arena, 1, sizeof *g);
    g->name = byi_dn_joined_name(b);
    g->sources = b->kernel->source;
    *status = keep_views(b, n, values, &a, g);
    b->values[b->kernel->outs[0]].gathered = g;
    return true;
}

void byi_dn_gather_use(struct byi_emit *e, const struct byi_gathered *g)
{
    for (uint32_t i = 0; i < g->p.n; i++)
        byi_dn_use(e, BYI_ARG_MULTI + (int)i, &g->views[i]);
    if (g->p.scale.kind != BYI_DESC_ABSENT)
        byi_dn_use(e, BYI_ARG_SCALE, &g->scale);
    if (g->p.shift.kind != BYI_DESC_ABSENT)
        byi_dn_use(e, BYI_ARG_SHIFT, &g->shift);
}

void byi_dn_gather_end(struct byi_build *b, const struct byi_gathered *g)
{
    for (uint32_t i = 0; i < g->p.n; i++)
        b->bufs.at[g->views[i].buf].uses--;
    if (g->p.scale.kind != BYI_DESC_ABSENT)
        b->bufs.at[g->scale.buf].uses--;
    if (g->p.shift.kind != BYI_DESC_ABSENT)
        b->bufs.at[g->shift.buf].uses--;
}
