/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/kernels_window.c: builds convolution, transposed convolution,
 * pooling and resizing, of data (N, C, spatial...) in channels-last memory. */
#include "runtime_dnnl/build.h"

#include <byoc/graph.h>

#include <string.h>

/* Get operand 0 of step 0, whose layout is the attribute "layout". */
static enum byoc_status get_data(struct byi_build *b,
                                 struct byi_image_axes *image,
                                 struct byi_dnnl_view *view)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    BYI_TRY(byi_dn_image_read(b, "layout", value->views[0].desc.rank, image));
    return byi_dn_get_image(b, value, image, view);
}

/* Read strides, dilation and begin padding from the attributes. The caller
 * computes the end padding, which must be exact for oneDNN. */
static void read_window(const struct byoc_graph_step *step, uint32_t n,
                        const int64_t *kernel, struct byi_dnnl_window *w)
{
    uint32_t count;
    w->n = n;
    memcpy(w->kernel, kernel, n * sizeof kernel[0]);
    memcpy(w->stride, byoc_graph_list(step, "strides", &count),
           n * sizeof w->stride[0]);
    memcpy(w->begin, byoc_graph_list(step, "padding", &count),
           n * sizeof w->begin[0]);
    memcpy(w->dilation, byoc_graph_list(step, "dilation", &count),
           n * sizeof w->dilation[0]);
}

/* The elements from the first to the last tap of the window along an axis. */
static int64_t reach(const struct byi_dnnl_window *w, uint32_t i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* Compute the end padding with which the window has positions[i] positions
 * along spatial axis i, whose size is sizes[i]. */
static void close_window(struct byi_dnnl_window *w, const int64_t *sizes,
                         const int64_t *positions)
{
    for (uint32_t i = 0; i < w->n; i++)
        w->end[i] = (positions[i] - 1) * w->stride[i] + reach(w, i) - sizes[i] -
                    w->begin[i];
}

/* --- convolution --------------------------------------------------------- */

bool byi_dn_is_conv(const struct byoc_graph_step *step)
{
    return strncmp(step->name, "nn.conv", 7) == 0;
}

static bool is_deconv(const struct byoc_graph_step *step)
{
    return byi_dn_is_conv(step) && strstr(step->name, "_transpose");
}

/* The parameters and arguments of a convolution or transposed convolution. */
struct conv_kernel {
    struct byi_dnnl_conv p;
    struct byi_dnnl_view src, weights, bias;
    const struct byi_gathered *gathered; /* if not NULL: replaces src */
};

/* Describe ONNX's weights, (O, I/G, k...) or, if transposed, (I, O/G, k...), as
 * oneDNN's (G, O/G, I/G, k...), without G if there is one group. */
static struct byi_desc weights_desc(const struct byi_desc *w, bool deconv,
                                    int64_t groups)
{
    struct byi_desc d = {.kind = BYI_DESC_STRIDED, .dtype = w->dtype};
    const int64_t first = w->dims[0] / groups; /* O/G, or I/G for deconv */
    uint32_t n = 0;
    if (groups > 1) {
        d.dims[n] = groups;
        d.strides[n++] = first * w->strides[0];
    }
    d.dims[n] = deconv ? w->dims[1] : first;
    d.strides[n++] = deconv ? w->strides[1] : w->strides[0];
    d.dims[n] = deconv ? first : w->dims[1];
    d.strides[n++] = deconv ? w->strides[0] : w->strides[1];
    for (uint32_t i = 2; i < w->rank; i++) {
        d.dims[n] = w->dims[i];
        d.strides[n++] = w->strides[i];
    }
    d.rank = n;
    return d;
}

/* Get the weights with axes (O, I/G, k...), or (I, O/G, k...) if transposed,
 * from any axis order in the graph. */
static enum byoc_status get_weights(struct byi_build *b, bool deconv,
                                    uint32_t rank, struct byi_dnnl_view *view)
{
    static const char *const first[][2] = {
        {"OIW", "IOW"}, {"OIHW", "IOHW"}, {"OIDHW", "IODHW"}};
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const char *name = byoc_graph_string(step, "kernel_layout", "");
    uint32_t order[BYOC_GRAPH_RANK];
    struct byi_dnnl_value *weights = byi_dn_operand(b, byi_dn_arg0(b, 1));
    const bool plain = weights->views[0].desc.rank == rank;
    if (plain)
        BYI_TRY(byi_dn_get_row_major(b, weights, view));
    if (!plain || !byoc_graph_axes(name, first[rank - 3][deconv], order))
        return byi_dn_refuse(b,
                             "%s: kernel_layout is %s, expected a layout "
                             "without blocks, since oneDNN packs weights",
                             step->name, name);
    view->desc = byi_dn_permute_desc(&view->desc, order);
    return BYOC_OK;
}

/* 2.x may read some bytes past the end of the source if a window of more than 3
 * taps spans the whole input. The source must then be a temporary, which has
 * slack. */
static enum byoc_status secure_source(struct byi_build *b,
                                      struct conv_kernel *c)
{
    if (byi_dnnl_major() >= 3)
        return BYOC_OK;
    bool overhangs = false;
    for (uint32_t i = 0; i < c->p.window.n; i++)
        overhangs |= c->p.window.kernel[i] > 3 &&
                     reach(&c->p.window, i) >= c->src.desc.dims[2 + i];
    if (!overhangs)
        return BYOC_OK;
    if (b->bufs.at[c->src.buf].kind != BYI_BUF_TEMP) {
        const struct byi_dnnl_view from = c->src;
        BYI_TRY(byi_dn_reorder(b, &from, &from.desc, &c->src));
    }
    b->bufs.at[c->src.buf].needs_slack = true;
    return BYOC_OK;
}

/* Build the convolution on integers with byoc's own kernels, if `f` reads a
 * dequantised value; otherwise BYOC_EUNSUPPORTED. `dst` is in the graph's dims.
 */
static enum byoc_status try_integers(struct byi_build *b,
                                     const struct conv_kernel *f,
                                     const struct byi_image_axes *image,
                                     const struct byi_desc *dst)
{
    struct byi_integer_kernel x;
    BYI_TRY(
        byi_dn_integer_open(b, &f->weights, false, dst, image->channel, &x));
    const struct byi_desc *main = &x.src->views[0].desc;
    struct byi_desc layout =
        byi_dn_image_desc(b, image, main->rank, main->dims);
    struct byi_dnnl_view src;
    layout.dtype = main->dtype;
    BYI_TRY(byi_dn_get_view(b, x.src, &layout, &src));
    struct byi_dnnl_qconv p = {.window = f->p.window,
                               .src = byi_dn_image_permute(image, &layout),
                               .dst = f->p.dst};
    p.weights =
        byi_dn_dense(BYOC_I8, f->weights.desc.rank, f->weights.desc.dims, NULL);
    return byi_dn_integer_emit(b, &x, &src, &p, dst);
}

/* Refuse a depthwise convolution that native kernels run faster. `weights` has
 * the model's axes. */
static enum byoc_status check_depthwise(struct byi_build *b,
                                        const struct byi_dnnl_conv *p,
                                        const struct byi_desc *weights,
                                        int64_t groups)
{
    const bool is_depthwise =
        !p->deconv && groups > 1 && groups == p->src.dims[1];
    if (!is_depthwise || (weights->rank < 5 && weights->dims[0] == groups))
        return BYOC_OK;
    return byi_dn_refuse(b,
                         "%s: found a depthwise convolution with %s, which "
                         "native kernels run faster than oneDNN",
                         byi_dn_step0(b)->name,
                         weights->rank == 5
                             ? "three spatial axes"
                             : "several outputs for each channel");
}

/* Whether byoc's own kernels read the data as they are, channels-first, faster
 * than a channels-last copy that does not exist yet. If so, sets c->src to the
 * data. */
static bool try_planes(struct byi_build *b, const struct byi_image_axes *image,
                       const struct byi_dnnl_value *value,
                       struct conv_kernel *c)
{
    const struct byi_dnnl_view *main = &value->views[0];
    struct byi_dnnl_conv p = c->p;
    const struct byi_desc last =
        byi_dn_image_desc(b, image, main->desc.rank, main->desc.dims);
    p.src = main->desc;
    if (image->last || c->p.deconv || byi_dn_find(value, &last) ||
        !byi_conv_reads_planes(&p))
        return false;
    c->src = *main;
    return true;
}

/* Get the data, or the tensors from which the data are computed. */
static enum byoc_status get_conv_data(struct byi_build *b,
                                      const struct byi_image_axes *image,
                                      struct conv_kernel *c)
{
    const uint32_t number = byi_dn_arg0(b, 0);
    const struct byoc_graph_value *type = &b->graph->values[number];
    struct byi_dnnl_value *value = byi_dn_operand(b, number);
    c->gathered = value->gathered;
    if (!c->gathered)
        return try_planes(b, image, value, c)
                   ? BYOC_OK
                   : byi_dn_get_image(b, value, image, &c->src);
    c->p.gather = c->gathered->p;
    const struct byi_desc desc =
        byi_dn_image_desc(b, image, type->rank, type->dims);
    c->src.desc = byi_dn_image_permute(image, &desc);
    b->sources =
        byi_arena_printf(b->program->arena, "%s%s%s", c->gathered->sources,
                         *c->gathered->sources ? "," : "", b->kernel->source);
    return BYOC_OK;
}

enum byoc_status byi_dn_build_conv(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const struct byoc_graph_value *x = &b->graph->values[byi_dn_arg0(b, 0)];
    struct conv_kernel c = {0};
    struct byi_image_axes image;
    c.p.deconv = is_deconv(step);
    c.p.exact = b->kernel->exact;
    c.p.banded = byi_dn_is_banded(b);
    BYI_TRY(byi_dn_image_read(b, "data_layout", x->rank, &image));
    BYI_TRY(get_weights(b, c.p.deconv, x->rank, &c.weights));
    const struct byi_desc *w = &c.weights.desc;
    read_window(step, x->rank - 2, w->dims + 2, &c.p.window);
    const int64_t groups = byoc_graph_int(step, "groups", 0);
    c.p.weights = weights_desc(w, c.p.deconv, groups);
    c.p.weights.kind = BYI_DESC_ANY;
    const struct byi_desc dst =
        byi_dn_image_desc(b, &image, x->rank, byi_dn_result(b)->dims);
    c.p.dst = byi_dn_image_permute(&image, &dst);
    BYI_TRY(get_conv_data(b, &image, &c));
    c.p.src = c.src.desc;
    if (c.p.deconv)
        close_window(&c.p.window, c.p.dst.dims + 2, c.p.src.dims + 2);
    else
        close_window(&c.p.window, c.p.src.dims + 2, c.p.dst.dims + 2);
    BYI_TRY(check_depthwise(b, &c.p, w, groups));
    if (!c.p.deconv && !c.gathered && byi_dn_is_row_major(w)) {
        const enum byoc_status status = try_integers(b, &c, &image, &dst);
        if (status != BYOC_EUNSUPPORTED)
            return status;
    }
    c.weights.desc = weights_desc(w, c.p.deconv, groups);
    if (!c.gathered)
        BYI_TRY(secure_source(b, &c));

    struct byi_chain chain;
    BYI_TRY(byi_dn_chain_read(b, 1, b->kernel->n_steps, 0, &chain));
    uint32_t next = 0;
    BYI_TRY(byi_dn_chain_bias(b, &chain, &dst, image.channel, &c.bias, &next));
    if (next)
        c.p.bias = c.bias.desc;
    struct byi_core core = {.make = byi_dn_make_conv,
                            .params = &c.p,
                            .is_fast = byi_conv_is_fast,
                            .n_args = next ? 2 : 1,
                            .args = {{BYI_ARG_WEIGHTS, &c.weights, true},
                                     {BYI_ARG_BIAS, &c.bias, false}},
                            .src = c.src,
                            .dst = dst,
                            .terms = byi_elements(w->rank, w->dims) /
                                     c.p.dst.dims[1],
                            .order = image.order,
                            .no_sum = c.p.banded,
                            .gathered = c.gathered};
    BYI_TRY(byi_dn_emit_chain(b, &core, &chain, next));
    if (c.gathered)
        byi_dn_gather_end(b, c.gathered);
    return BYOC_OK;
}

/* --- preferred layouts ---------------------------------------------------- */

static struct byi_desc any_desc(const struct byoc_graph_value *type)
{
    struct byi_desc d = byi_dn_dense(type->dtype, type->rank, type->dims, NULL);
    d.kind = BYI_DESC_ANY;
    return d;
}

enum byoc_status byi_dn_conv_layouts(const struct byi_dnnl *lib,
                                     const struct byoc_graph *graph,
                                     const struct byoc_graph_step *step,
                                     char *data, char *weights, size_t n,
                                     struct byoc_error *err)
{
    const struct byoc_graph_value *types[2];
    struct byi_dnnl_conv p = {.deconv = is_deconv(step)};
    for (uint32_t i = 0; i < 2; i++)
        types[i] = &graph->values[step->args[i]];
    const uint32_t rank = types[0]->rank;
    const struct byi_desc w =
        byi_dn_dense(types[1]->dtype, rank, types[1]->dims, NULL);
    p.src = any_desc(types[0]);
    p.dst = any_desc(&graph->values[step->outs[0]]);
    p.weights = weights_desc(&w, p.deconv, byoc_graph_int(step, "groups", 0));
    p.weights.kind = BYI_DESC_ANY;
    read_window(step, rank - 2, types[1]->dims + 2, &p.window);
    if (p.deconv)
        close_window(&p.window, p.dst.dims + 2, p.src.dims + 2);
    else
        close_window(&p.window, p.src.dims + 2, p.dst.dims + 2);
    return byi_conv_layouts(lib, &p, data, weights, n, err);
}

/* --- pooling ------------------------------------------------------------- */

/* The parameters and the source of a pooling. */
struct pool_kernel {
    struct byi_dnnl_pool p;
    struct byi_dnnl_view src;
};

/* The core of a pooling; `dst` is in the graph's dims. */
static struct byi_core pool_core(struct pool_kernel *p,
                                 const struct byi_image_axes *image,
                                 const struct byi_desc *dst)
{
    p->p.src = p->src.desc;
    p->p.dst = byi_dn_image_permute(image, dst);
    return (struct byi_core){.make = byi_dn_make_pool,
                             .params = &p->p,
                             .src = p->src,
                             .dst = *dst,
                             .order = image->order};
}

/* Choose oneDNN's kind of average. With include-padding oneDNN divides by the
 * whole window; ONNX excludes the part beyond the padding that ceil_mode adds.
 */
static enum byoc_status choose_average(struct byi_build *b,
                                       struct pool_kernel *p)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const struct byi_dnnl_window *w = &p->p.window;
    uint32_t count;
    const int64_t *padding = byoc_graph_list(step, "padding", &count);
    p->p.kind = BYI_POOL_AVG;
    if (!byoc_graph_int(step, "count_include_pad", 0))
        return BYOC_OK;
    p->p.kind = BYI_POOL_AVG_PAD;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->end[i] > padding[w->n + i])
            return byi_dn_refuse(b,
                                 "%s: found ceil_mode with count_include_pad, "
                                 "expected one of them, since oneDNN divides "
                                 "such windows differently",
                                 step->name);
    return BYOC_OK;
}

/* The view of an image's integers in which planes are contiguous, if the pool's
 * only window covers a plane; otherwise NULL. */
static const struct byi_dnnl_view *find_planes(
    const struct byi_dnnl_value *integers, const struct byi_dnnl_pool *p,
    const struct byi_image_axes *image)
{
    const struct byi_dnnl_window *w = &p->window;
    const int64_t plane = byi_elements(w->n, p->src.dims + 2);
    bool whole = plane > 0 && plane <= BYI_QMEAN_MAX && image->channel == 1;
    for (uint32_t i = 0; i < w->n; i++)
        whole = whole && w->kernel[i] == p->src.dims[2 + i] &&
                p->dst.dims[2 + i] == 1 && w->begin[i] == 0 && w->end[i] == 0;
    for (uint32_t i = 0; whole && i < integers->n_views; i++) {
        const struct byi_desc *d = &integers->views[i].desc;
        const struct byi_desc dense =
            byi_dn_dense(d->dtype, d->rank, d->dims, NULL);
        if (memcmp(d->strides, dense.strides, d->rank * sizeof d->strides[0]) ==
            0)
            return &integers->views[i];
    }
    return NULL;
}

/* Create the primitive that averages contiguous planes of the integers of
 * `value`. */
static enum byoc_status plane_means_new(struct byi_build *b,
                                        const struct byi_dnnl_value *value,
                                        const struct byi_desc *planes,
                                        struct byi_prim **prim)
{
    const int64_t all = byi_elements(planes->rank, planes->dims);
    const int64_t rows = planes->dims[0] * planes->dims[1];
    const int64_t dims[] = {rows, all / rows};
    const struct byi_dnnl_qelementwise p = {
        .kind = BYI_QELEMENTWISE_MEAN,
        .src = byi_dn_dense(planes->dtype, 2, dims, NULL),
        .dst = byi_dn_dense(BYOC_F32, 1, dims, NULL),
        .src_zero = (int64_t)value->quant.zero,
        .src_scale = value->quant.scale};
    return byi_dn_qelementwise_new(b, &p, NULL, prim);
}

/* Create the primitive of the mean `p` on the integers of `value`, and set *x
 * to the view of them that it reads. */
static enum byoc_status integer_mean_new(struct byi_build *b,
                                         const struct byi_dnnl_value *value,
                                         struct byi_dnnl_pool p,
                                         const struct byi_image_axes *image,
                                         struct byi_dnnl_view *x,
                                         struct byi_prim **prim)
{
    const struct byi_desc *main = &value->integers->views[0].desc;
    const struct byi_dnnl_view *planes =
        find_planes(value->integers, &p, image);
    if (planes) {
        *x = *planes;
        return plane_means_new(b, value, &planes->desc, prim);
    }
    struct byi_desc layout =
        byi_dn_image_desc(b, image, main->rank, main->dims);
    layout.dtype = main->dtype;
    p.src = byi_dn_image_permute(image, &layout);
    p.zero = (int64_t)value->quant.zero;
    p.scale = value->quant.scale;
    BYI_TRY(byi_dn_pool_new(b, &p, NULL, prim));
    const enum byoc_status status =
        byi_dn_get_view(b, value->integers, &layout, x);
    if (status != BYOC_OK)
        byi_dn_abandon(b, prim);
    return status;
}

/* If the data of a mean are dequantised, build it on their integers, whose sums
 * are exact; otherwise BYOC_EUNSUPPORTED. `f` and `core` describe the pooling
 * on floats. */
static enum byoc_status average_integers(struct byi_build *b,
                                         const struct pool_kernel *f,
                                         const struct byi_image_axes *image,
                                         const struct byi_core *core,
                                         const struct byi_chain *chain)
{
    const struct byi_dnnl_value *src = byi_dn_operand(b, byi_dn_arg0(b, 0));
    struct byi_emit e = {.name = byi_dn_step0(b)->name};
    struct byi_dnnl_view x, y = {.desc = core->dst};
    if (!src->integers || src->integers->n_views == 0 ||
        f->p.kind == BYI_POOL_MAX || b->program->purpose == BYI_TO_PROBE ||
        byi_dn_result(b)->dtype != BYOC_F32)
        return BYOC_EUNSUPPORTED;
    BYI_TRY(integer_mean_new(b, src, f->p, image, &x, &e.prim));
    y.buf = byi_dn_temp(b, byi_dn_desc_bytes(&y.desc));
    byi_dn_use(&e, BYI_ARG_SRC, &x);
    byi_dn_use(&e, BYI_ARG_DST, &y);
    BYI_TRY(byi_dn_emit(b, &e));
    return byi_dn_emit_items(b, chain, 0, y);
}

/* Build the pooling `p` and the operators behind it. */
static enum byoc_status build_pool(struct byi_build *b, struct pool_kernel *p,
                                   const struct byi_image_axes *image,
                                   struct byi_core *core)
{
    struct byi_chain chain;
    BYI_TRY(byi_dn_chain_read(b, 1, b->kernel->n_steps, 0, &chain));
    const enum byoc_status status = average_integers(b, p, image, core, &chain);
    return status == BYOC_EUNSUPPORTED ? byi_dn_emit_chain(b, core, &chain, 0)
                                       : status;
}

enum byoc_status byi_dn_build_pool(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    struct pool_kernel p = {0};
    struct byi_image_axes image;
    BYI_TRY(get_data(b, &image, &p.src));
    const uint32_t rank = p.src.desc.rank;
    uint32_t n;
    const int64_t *kernel = byoc_graph_list(step, "pool_size", &n);
    read_window(step, rank - 2, kernel, &p.p.window);
    const struct byi_desc dst =
        byi_dn_image_desc(b, &image, rank, byi_dn_result(b)->dims);
    struct byi_core core = pool_core(&p, &image, &dst);
    close_window(&p.p.window, p.src.desc.dims + 2, p.p.dst.dims + 2);
    p.p.kind = BYI_POOL_MAX;
    if (byoc_graph_attr(step, "count_include_pad"))
        BYI_TRY(choose_average(b, &p));
    return build_pool(b, &p, &image, &core);
}

/* The dims of the result may lack the spatial axes, or have them with size 1.
 */
enum byoc_status byi_dn_global_pool(struct byi_build *b, bool average)
{
    const struct byoc_graph_value *type = byi_dn_result(b);
    struct pool_kernel p = {.p.kind = average ? BYI_POOL_AVG : BYI_POOL_MAX};
    struct byi_image_axes image;
    BYI_TRY(get_data(b, &image, &p.src));
    const uint32_t rank = p.src.desc.rank;
    int64_t dims[BYI_MAX_RANK] = {p.src.desc.dims[0]};
    p.p.window.n = rank - 2;
    for (uint32_t i = 1; i < rank; i++)
        dims[i] = 1;
    dims[image.channel] = p.src.desc.dims[1];
    for (uint32_t i = 0; i + 2 < rank; i++) {
        p.p.window.kernel[i] = p.src.desc.dims[2 + i];
        p.p.window.stride[i] = p.p.window.dilation[i] = 1;
    }
    const struct byi_desc dst = byi_dn_image_desc(b, &image, rank, dims);
    struct byi_core core = pool_core(&p, &image, &dst);
    if (type->rank != rank) {
        core.dst = byi_dn_dense(type->dtype, type->rank, type->dims, NULL);
        core.elt_only = true;
    }
    return build_pool(b, &p, &image, &core);
}

enum byoc_status byi_dn_build_global_pool(struct byi_build *b)
{
    return byi_dn_global_pool(
        b, strncmp(byi_dn_step0(b)->name, "nn.global_avg", 13) == 0);
}

/* --- resizing ------------------------------------------------------------ */

/* Check that the given scales, with which ONNX computes, equal the quotients of
 * the sizes, with which oneDNN computes. */
static enum byoc_status check_scales(struct byi_build *b,
                                     const struct byi_dnnl_resample *p,
                                     const struct byi_image_axes *image)
{
    enum byoc_dtype dtype;
    int64_t n;
    const void *data = byi_dn_const_data(b, byi_dn_arg0(b, 1), &dtype, &n);
    if (!data)
        return byi_dn_refuse(b, "image.resize: found sizes that are not "
                                "constant, expected constants");
    for (uint32_t i = 0; i < p->src.rank; i++) {
        if (i < 2 && p->src.dims[i] != p->dst.dims[i])
            return byi_dn_refuse(b,
                                 "image.resize: found a resized axis %u, "
                                 "expected only spatial axes, which oneDNN "
                                 "resizes",
                                 image->order[i]);
        const uint32_t at = image->order[i];
        if (dtype == BYOC_F32 && at < n &&
            ((const float *)data)[at] * (float)p->src.dims[i] !=
                (float)p->dst.dims[i])
            return byi_dn_refuse(
                b,
                "image.resize: found scale %s of axis %u, expected one that "
                "gives an integral size",
                BYI_FLOAT_TEXT((double)((const float *)data)[at]), at);
    }
    return BYOC_OK;
}

static bool attribute_is(const struct byoc_graph_step *step, const char *attr,
                         const char *word)
{
    return strcmp(byoc_graph_string(step, attr, ""), word) == 0;
}

/* oneDNN uses half_pixel coordinates, rounded for nearest. They are equal to
 * pytorch_half_pixel coordinates, except on an axis that is resized to one
 * element. For an integral factor, mode asymmetric with floor selects the same
 * elements. */
static enum byoc_status check_resize(struct byi_build *b,
                                     struct byi_dnnl_resample *p)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const char *coordinates = "coordinate_transformation_mode";
    p->linear = attribute_is(step, "mode", "linear");
    bool integral = true, equal = true;
    for (uint32_t i = 2; i < p->src.rank; i++) {
        integral &= p->dst.dims[i] % p->src.dims[i] == 0;
        equal &= p->dst.dims[i] > 1 || p->src.dims[i] == 1;
    }
    bool half =
        attribute_is(step, coordinates, "half_pixel") ||
        (equal && attribute_is(step, coordinates, "pytorch_half_pixel"));
    const bool bytes = p->src.dtype == BYOC_I8 || p->src.dtype == BYOC_U8;
    if (p->linear && half && !bytes)
        return BYOC_OK;
    const bool nearest = attribute_is(step, "mode", "nearest") && integral;
    half = half && (attribute_is(step, "nearest_mode", "round_prefer_floor") ||
                    attribute_is(step, "nearest_mode", "round_prefer_ceil"));
    const bool floors = attribute_is(step, coordinates, "asymmetric") &&
                        attribute_is(step, "nearest_mode", "floor");
    if (nearest && (half || floors))
        return BYOC_OK;
    return byi_dn_refuse(b,
                         "image.resize: found %s with %s of %s, expected "
                         "linear half_pixel of floats, or nearest by an "
                         "integral factor, which oneDNN computes",
                         byoc_graph_string(step, "mode", ""),
                         byoc_graph_string(step, coordinates, ""),
                         byoc_dtype_name(p->src.dtype));
}

enum byoc_status byi_dn_build_resize(struct byi_build *b)
{
    const int64_t *to = byi_dn_result(b)->dims;
    struct byi_dnnl_resample p = {0};
    struct byi_dnnl_view src;
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const struct byi_desc *main = &value->views[0].desc;
    struct byi_image_axes image;
    BYI_TRY(byi_dn_image_read(b, "layout", main->rank, &image));
    /* the axis that is not resized has the channels */
    if (main->dims[1] != to[1] &&
        main->dims[main->rank - 1] == to[main->rank - 1])
        image = byi_dn_image(main->rank, true);
    BYI_TRY(byi_dn_get_image(b, value, &image, &src));
    const struct byi_desc dst = byi_dn_image_desc(b, &image, src.desc.rank, to);
    p.src = src.desc;
    p.dst = byi_dn_image_permute(&image, &dst);
    BYI_TRY(check_scales(b, &p, &image));
    BYI_TRY(check_resize(b, &p));
    struct byi_chain chain;
    BYI_TRY(byi_dn_chain_read(b, 1, b->kernel->n_steps, 0, &chain));
    struct byi_core core = {.make = byi_dn_make_resample,
                            .params = &p,
                            .src = src,
                            .dst = dst,
                            .order = image.order};
    return byi_dn_emit_chain(b, &core, &chain, 0);
}
