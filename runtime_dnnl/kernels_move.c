/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/kernels_move.c: builds kernels that only move data. Most of them
 * become another view of the same memory if the layout allows; concatenations
 * and block shuffles become one primitive each. */
#include "runtime_dnnl/build.h"
#include "runtime_dnnl/prim_fast.h"

#include <byoc/graph.h>

#include <string.h>

/* --- views --------------------------------------------------------------- */

static bool is_output(const struct byi_build *b)
{
    const struct byoc_graph *g = b->graph;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == b->kernel->outs[0])
            return true;
    return false;
}

/* Reshape every view whose layout allows it. If none does, reshape a new copy.
 * It is row-major if the result is a region output, otherwise as near to the
 * present layout as the joined axes allow. So a channel shuffle between
 * convolutions is a single reorder. */
enum byoc_status byi_dn_build_reshape(struct byi_build *b)
{
    const struct byoc_graph_value *type = byi_dn_result(b);
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    uint32_t n_defined = 0;
    if (b->values[b->kernel->outs[0]].n_views > 0)
        return BYOC_OK; /* the concatenation defined it: see is_shuffled() */
    for (uint32_t i = 0; i < value->n_views; i++) {
        struct byi_dnnl_view view = value->views[i];
        if (!byi_dn_reshape_desc(&value->views[i].desc, type->rank, type->dims,
                                 &view.desc))
            continue;
        byi_dn_define(b, 0, &view);
        n_defined++;
    }
    if (n_defined)
        return BYOC_OK;
    const struct byi_desc *main = &value->views[0].desc;
    struct byi_desc copy;
    struct byi_dnnl_view view;
    if (is_output(b) || !byi_dn_join_desc(main, type->rank, type->dims, &copy))
        copy = byi_dn_dense(main->dtype, main->rank, main->dims, NULL);
    BYI_TRY(byi_dn_get_view(b, value, &copy, &view));
    if (!byi_dn_reshape_desc(&copy, type->rank, type->dims, &view.desc))
        return byi_dn_refuse(
            b, "%s: found a result of %lld elements, expected %lld",
            byi_dn_step0(b)->name,
            (long long)byi_elements(type->rank, type->dims),
            (long long)byi_elements(main->rank, main->dims));
    byi_dn_define(b, 0, &view);
    return BYOC_OK;
}

/* Permute the axes of the operand's views; no data moves. */
static enum byoc_status permute(struct byi_build *b, const uint32_t *order)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    for (uint32_t i = 0; i < value->n_views; i++) {
        struct byi_dnnl_view view = value->views[i];
        view.desc = byi_dn_permute_desc(&value->views[i].desc, order);
        byi_dn_define(b, 0, &view);
    }
    return BYOC_OK;
}

enum byoc_status byi_dn_build_transpose(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const uint32_t rank =
        byi_dn_operand(b, byi_dn_arg0(b, 0))->views[0].desc.rank;
    uint32_t n, order[BYI_MAX_RANK];
    const int64_t *axes = byoc_graph_list(step, "axes", &n);
    for (uint32_t i = 0; i < rank; i++)
        order[i] = n == 0 ? rank - 1 - i
                          : (uint32_t)(axes[i] < 0 ? axes[i] + rank : axes[i]);
    return permute(b, order);
}

enum byoc_status byi_dn_build_layout_transform(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const char *src = byoc_graph_string(step, "src_layout", "");
    const char *dst = byoc_graph_string(step, "dst_layout", "");
    uint32_t order[BYOC_GRAPH_RANK];
    if (!byoc_graph_axes(src, dst, order))
        return byi_dn_refuse(b,
                             "layout_transform: found layouts %s and %s, "
                             "expected layouts without blocks, since oneDNN "
                             "chooses its own",
                             src, dst);
    return permute(b, order);
}

enum byoc_status byi_dn_build_split(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const struct byi_dnnl_view *main = &value->views[0];
    int64_t axis = byoc_graph_int(step, "axis", 0);
    axis += axis < 0 ? main->desc.rank : 0;
    uint32_t n;
    const int64_t *sizes = byoc_graph_list(step, "sizes", &n);
    int64_t begin = 0;
    for (uint32_t i = 0; i < n && i < b->kernel->n_outs; i++) {
        struct byi_dnnl_view view = *main;
        view.offset += begin * main->desc.strides[axis];
        view.desc.dims[axis] = sizes[i];
        byi_dn_define(b, i, &view);
        begin += sizes[i];
    }
    return BYOC_OK;
}

/* Operands x, begin, end, axes, strides as in ONNX Slice; the type rule checked
 * them and computed the result's dims. */
enum byoc_status byi_dn_build_slice(struct byi_build *b)
{
    struct byi_dnnl_view view = byi_dn_operand(b, byi_dn_arg0(b, 0))->views[0];
    int64_t begin[BYI_MAX_RANK], axes[BYI_MAX_RANK], strides[BYI_MAX_RANK];
    uint32_t n, n_axes, n_strides;
    BYI_TRY(byi_dn_read_const_ints(b, byi_dn_arg0(b, 1), begin, &n));
    BYI_TRY(byi_dn_read_const_ints(b, byi_dn_arg0(b, 3), axes, &n_axes));
    BYI_TRY(byi_dn_read_const_ints(b, byi_dn_arg0(b, 4), strides, &n_strides));
    if (n_axes != n || n_strides != n)
        return byi_dn_refuse(b,
                             "strided_slice: found %u begins, %u axes and %u "
                             "strides, expected lists of one length",
                             n, n_axes, n_strides);
    for (uint32_t i = 0; i < n; i++) {
        const int64_t axis = axes[i] + (axes[i] < 0 ? view.desc.rank : 0);
        if (axis < 0 || axis >= view.desc.rank || strides[i] <= 0)
            return byi_dn_refuse(
                b,
                "strided_slice: found stride %lld of axis %lld, expected a "
                "positive stride of an axis of rank %u",
                (long long)strides[i], (long long)axes[i], view.desc.rank);
        const int64_t extent = view.desc.dims[axis];
        const int64_t first =
            byi_clamp(begin[i] + (begin[i] < 0 ? extent : 0), 0, extent);
        const int64_t count = byi_dn_result(b)->dims[axis];
        if (first + (count - 1) * strides[i] >= extent)
            return byi_dn_refuse(
                b,
                "strided_slice: found %lld elements from %lld on by %lld of "
                "axis %lld, expected a slice within its %lld elements",
                (long long)count, (long long)first, (long long)strides[i],
                (long long)axis, (long long)extent);
        view.offset += first * view.desc.strides[axis];
        view.desc.dims[axis] = count;
        view.desc.strides[axis] *= count > 1 ? strides[i] : 1;
    }
    if (!byi_dims_equal(view.desc.rank, view.desc.dims, byi_dn_result(b)->rank,
                        byi_dn_result(b)->dims)) {
        char found[128], expected[128];
        return byi_dn_refuse(
            b, "strided_slice: found slices of shape %s, expected %s",
            byi_dims_text(found, sizeof found, view.desc.rank, view.desc.dims),
            byi_dims_text(expected, sizeof expected, byi_dn_result(b)->rank,
                          byi_dn_result(b)->dims));
    }
    byi_dn_define(b, 0, &view);
    return BYOC_OK;
}

enum byoc_status byi_dn_build_copy(struct byi_build *b)
{
    const struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    for (uint32_t i = 0; i < value->n_views; i++)
        byi_dn_define(b, 0, &value->views[i]);
    return BYOC_OK;
}

/* --- concatenation ------------------------------------------------------- */

/* The largest number of operands: a step's arguments without the result. */
enum { MAX_CONCAT = 2 * BYI_MAX_POSTS - 1 };

/* The layout of a concatenation: the layout of the first operand that is dense
 * and has no row-major view; row-major if there is no such operand. */
static struct byi_desc concat_layout(struct byi_build *b, uint32_t n)
{
    const struct byoc_graph_value *type = byi_dn_result(b);
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_dnnl_value *value =
            byi_dn_operand(b, byi_dn_arg0(b, i));
        bool has_row_major = false;
        for (uint32_t v = 0; v < value->n_views; v++)
            has_row_major |= byi_dn_is_row_major(&value->views[v].desc);
        if (!has_row_major && byi_dn_is_dense(&value->views[0].desc)) {
            const struct byi_desc like = byi_dn_regular(&value->views[0].desc);
            return byi_dn_dense_like(&like, type->dims);
        }
    }
    return byi_dn_dense(type->dtype, type->rank, type->dims, NULL);
}

/* The only reader of a value, if the reader is a single step of this name whose
 * first argument is the value; otherwise NULL. */
static const struct byoc_graph_step *find_reader(const struct byi_build *b,
                                                 uint32_t value,
                                                 const char *name)
{
    const uint32_t at = b->reader[value];
    if (at == BYI_NO_INDEX || b->graph->kernels[at].n_steps != 1)
        return NULL;
    const struct byoc_graph_step *step =
        &b->graph->steps[b->graph->kernels[at].first];
    return byi_dn_is(step, name) && step->args[0] == value ? step : NULL;
}

/* Whether the channels of the n joined values are shuffled. Then the only
 * reader reshapes (images, n c, ...) to (images, n, c, ...), whose only reader
 * swaps axes 1 and 2. Sets *split to the result of the reshape. */
static bool is_shuffled(const struct byi_build *b, uint32_t n,
                        const struct byi_desc *dst, uint32_t *split)
{
    const struct byoc_graph_step *step =
        find_reader(b, b->kernel->outs[0], "reshape");
    if (!step || dst->rank < 3 || dst->rank + 1 > BYI_MAX_RANK ||
        dst->strides[1] != 1)
        return false;
    const struct byoc_graph_value *type = &b->graph->values[step->outs[0]];
    const struct byoc_graph_step *swap =
        find_reader(b, step->outs[0], "transpose");
    uint32_t n_axes;
    const int64_t *axes = swap ? byoc_graph_list(swap, "axes", &n_axes) : NULL;
    if (!axes || n_axes != dst->rank + 1 || type->rank != n_axes ||
        type->dims[0] != dst->dims[0] || type->dims[1] != n)
        return false;
    for (uint32_t i = 0; i < n_axes; i++)
        if (axes[i] != (i == 1 ? 2 : i == 2 ? 1 : i))
            return false;
    for (uint32_t i = 0; i < n; i++)
        if (b->values[byi_dn_arg0(b, i)].views[0].desc.dims[1] != type->dims[2])
            return false;
    *split = step->outs[0];
    return true;
}

/* Describe channels-last data (images, n c, ...) whose channels come from n
 * values in turn, as (images, n, c, ...). */
static struct byi_desc split_channels(const struct byi_desc *desc, int64_t n)
{
    struct byi_desc out = *desc;
    out.rank++;
    for (uint32_t i = out.rank - 1; i > 1; i--) {
        out.dims[i] = desc->dims[i - 1];
        out.strides[i] = desc->strides[i - 1];
    }
    out.dims[1] = n;
    out.dims[2] /= n;
    out.strides[1] = 1;
    out.strides[2] *= n;
    return out;
}

/* Get a view of source i, `value`, whose rows can be copied. It need not be
 * dense: a slice of another value has such rows. */
static enum byoc_status get_rows(struct byi_build *b,
                                 const struct byi_dnnl_concat *p, uint32_t i,
                                 struct byi_dnnl_value *value, bool shuffled,
                                 struct byi_dnnl_view *view)
{
    const struct byi_desc like = byi_dn_dense_like(&p->dst, p->src[i].dims);
    for (uint32_t v = 0; v < value->n_views; v++) {
        *view = value->views[v];
        if (shuffled)
            view->desc = split_channels(&view->desc, 1);
        if (byi_dn_row_pitch(&view->desc, &like, byi_dn_concat_row(p, i)))
            return BYOC_OK;
    }
    struct byi_desc layout = like;
    if (shuffled) { /* drop the axis again */
        layout = value->views[0].desc;
        layout = byi_dn_channels_last(layout.dtype, layout.rank, layout.dims);
    }
    BYI_TRY(byi_dn_get_view(b, value, &layout, view));
    if (shuffled)
        view->desc = split_channels(&view->desc, 1);
    return BYOC_OK;
}

/* Join n values along `axis`. If `split` is not NULL, shuffle their
 * channels: the result is a view of value *split, see is_shuffled(). */
static enum byoc_status join(struct byi_build *b,
                             struct byi_dnnl_value *const *sources, uint32_t n,
                             uint32_t axis, const struct byi_desc *joined,
                             struct byi_emit *e, const uint32_t *split,
                             struct byi_dnnl_view *result)
{
    struct byi_desc *descs =
        byi_arena_calloc(b->program->arena, n, sizeof *descs);
    const struct byi_dnnl_concat p = {.axis = axis,
                                      .n = n,
                                      .src = descs,
                                      .dst = split ? split_channels(joined, n)
                                                   : *joined};
    for (uint32_t i = 0; i < n; i++) {
        descs[i] = sources[i]->views[0].desc;
        if (split)
            descs[i] = split_channels(&descs[i], 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct byi_dnnl_view view;
        BYI_TRY(get_rows(b, &p, i, sources[i], split, &view));
        descs[i] = view.desc;
        byi_dn_use(e, BYI_ARG_MULTI + (int)i, &view);
    }
    BYI_TRY(byi_dn_concat_new(b, &p, NULL, &e->prim));
    BYI_TRY(byi_prim_check(&e->prim, e->name,
                           byi_elements(p.dst.rank, p.dst.dims), b->err));
    *result = (struct byi_dnnl_view){
        .buf = byi_dn_temp(b, byi_dn_desc_bytes(&p.dst)), .desc = p.dst};
    byi_dn_use(e, BYI_ARG_DST, result);
    BYI_TRY(byi_dn_emit(b, e));
    if (split)
        byi_dn_add_view(b, &b->values[*split], result);
    return BYOC_OK;
}

/* If all n operands are dequantised, set *q to the quantisation of their joined
 * integers and return true: that of the result if its only reader quantises it,
 * otherwise the one that all operands have. */
static bool joined_quant(const struct byi_build *b, uint32_t n,
                         struct byi_dnnl_value *const *operands,
                         struct byi_quant *q)
{
    bool are_equal = true;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_dnnl_value *value = operands[i];
        if (!value->integers || value->integers->n_views == 0)
            return false;
        are_equal &= byi_dn_is_same_quant(&value->quant, &operands[0]->quant);
    }
    if (byi_dn_is_quantized_after(b, q))
        return true;
    *q = operands[0]->quant;
    return are_equal;
}

/* Also join the integers of dequantised operands, if possible; a step whose
 * result is not read is dropped later. `dst` describes the joined floats. */
static enum byoc_status join_integers(struct byi_build *b, uint32_t n,
                                      struct byi_dnnl_value *const *operands,
                                      uint32_t axis, const struct byi_desc *dst)
{
    struct byi_dnnl_value *result = &b->values[b->kernel->outs[0]];
    struct byi_dnnl_value *sources[MAX_CONCAT];
    struct byi_emit e = {.name = byi_dn_step0(b)->name};
    struct byi_desc joined = *dst;
    struct byi_quant q;
    if (!joined_quant(b, n, operands, &q))
        return BYOC_OK;
    for (uint32_t i = 0; i < n; i++)
        BYI_TRY(byi_dn_requantize(b, operands[i], &q, &sources[i]));
    joined.dtype = q.dtype;
    struct byi_dnnl_view *y = byi_arena_alloc(b->arena, sizeof *y);
    BYI_TRY(join(b, sources, n, axis, &joined, &e, NULL, y));
    result->integers = byi_arena_alloc(b->arena, sizeof *result->integers);
    *result->integers =
        (struct byi_dnnl_value){.n_views = 1, .cap_views = 1, .views = y};
    result->quant = q;
    return BYOC_OK;
}

enum byoc_status byi_dn_build_concat(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const uint32_t n = step->n_args;
    if (n > MAX_CONCAT)
        return byi_dn_refuse(
            b, "concatenate: found %u operands, expected at most %u", n,
            MAX_CONCAT);
    int64_t axis = byoc_graph_int(step, "axis", 0);
    axis += axis < 0 ? byi_dn_result(b)->rank : 0;
    const struct byi_desc dst = concat_layout(b, n);
    struct byi_emit e = {.name = step->name};
    struct byi_chain chain;
    BYI_TRY(byi_dn_chain_read(b, 1, b->kernel->n_steps, 0, &chain));
    enum byoc_status status = BYOC_OK;
    if (axis == 1 && byi_dn_gather(b, n, step->args, &chain, &status))
        return status;
    uint32_t split;
    struct byi_dnnl_view view;
    struct byi_dnnl_value *operands[MAX_CONCAT];
    for (uint32_t i = 0; i < n; i++)
        operands[i] = byi_dn_operand(b, step->args[i]);
    /* shuffling single bytes is slower than a copy of rows and a reorder */
    if (axis == 1 && chain.n == 0 && byi_dn_is_float(dst.dtype) &&
        is_shuffled(b, n, &dst, &split))
        return join(b, operands, n, 1, &dst, &e, &split, &view);
    BYI_TRY(join(b, operands, n, (uint32_t)axis, &dst, &e, NULL, &view));
    BYI_TRY(byi_dn_emit_items(b, &chain, 0, view));
    return chain.n == 0 ? join_integers(b, n, operands, (uint32_t)axis, &dst)
                        : BYOC_OK;
}

/* --- one reorder --------------------------------------------------------- */

/* depth_to_space or space_to_depth as a permutation of six axes, which are then
 * joined to the result's four. */
struct block_shuffle {
    int64_t dims[6];
    uint32_t order[6];
};

static void read_blocks(const struct byoc_graph_step *step, const int64_t *d,
                        struct block_shuffle *s)
{
    const int64_t k = byoc_graph_int(step, "block_size", 0);
    struct block_shuffle dcr = {{d[0], k, k, d[1] / (k * k), d[2], d[3]},
                                {0, 3, 4, 1, 5, 2}};
    struct block_shuffle crd = {{d[0], d[1] / (k * k), k, k, d[2], d[3]},
                                {0, 1, 4, 2, 5, 3}};
    struct block_shuffle s2d = {{d[0], d[1], d[2] / k, k, d[3] / k, k},
                                {0, 3, 5, 1, 2, 4}};
    if (byi_dn_is(step, "nn.space_to_depth"))
        *s = s2d;
    else
        *s =
            strcmp(byoc_graph_string(step, "mode", ""), "CRD") == 0 ? crd : dcr;
}

enum byoc_status byi_dn_build_blocks(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const struct byoc_graph_value *type = byi_dn_result(b);
    const struct byi_dnnl_view *main =
        &byi_dn_operand(b, byi_dn_arg0(b, 0))->views[0];
    if (main->desc.rank != 4)
        return byi_dn_refuse(b, "%s: found rank %u, expected 4", step->name,
                             main->desc.rank);
    struct byi_image_axes image;
    struct block_shuffle s;
    BYI_TRY(byi_dn_image_read(b, "layout", 4, &image));
    const struct byi_desc src_image = byi_dn_image_permute(&image, &main->desc);
    read_blocks(step, src_image.dims, &s);
    const struct byi_desc result =
        image.last || is_output(b)
            ? byi_dn_dense(type->dtype, 4, type->dims, NULL)
            : byi_dn_channels_last(type->dtype, 4, type->dims);
    const struct byi_desc result_image = byi_dn_image_permute(&image, &result);
    struct byi_dnnl_view src = *main, dst;
    struct byi_desc split, six;
    int64_t dims[6];
    for (uint32_t i = 0; i < 6; i++)
        dims[i] = s.dims[s.order[i]];
    if (!byi_dn_reshape_desc(&src_image, 6, s.dims, &split) ||
        !byi_dn_reshape_desc(&result_image, 6, dims, &six)) {
        char shape[128];
        return byi_dn_refuse(
            b,
            "%s: found block size %lld and shape %s, expected a size that "
            "divides the dims",
            step->name, (long long)byoc_graph_int(step, "block_size", 0),
            byi_dims_text(shape, sizeof shape, 4, main->desc.dims));
    }
    src.desc = byi_dn_permute_desc(&split, s.order);
    BYI_TRY(byi_dn_reorder(b, &src, &six, &dst));
    dst.desc = result;
    byi_dn_define(b, 0, &dst);
    return BYOC_OK;
}
