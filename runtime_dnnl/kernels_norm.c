/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/kernels_norm.c: builds softmax, normalisations and reductions.
 * oneDNN is fast if the axis is innermost in memory. So the source is reordered
 * to such a layout if necessary, and described as (outer, inner). */
#include "runtime_dnnl/build.h"
#include "runtime_dnnl/prim_fast.h"

#include <math.h>
#include <string.h>

/* The parameters of one of these primitives, its source, and its other
 * arguments: scales, shifts, means or variances. */
struct norm_kernel {
    struct byi_dnnl_softmax softmax;
    struct byi_dnnl_layer_norm layer;
    struct byi_dnnl_batch_norm batch;
    struct byi_dnnl_lrn lrn;
    struct byi_dnnl_reduce reduce;
    struct byi_dnnl_view src;
    uint32_t n_extra;
    struct byi_dnnl_view extra[4];
    struct byi_core_arg args[4];
};

/* Add value `index`, of n elements, as argument `arg`. */
static enum byoc_status add_extra(struct byi_build *b, struct norm_kernel *p,
                                  int arg, uint32_t index, int64_t n)
{
    struct byi_dnnl_view *x = &p->extra[p->n_extra];
    BYI_TRY(byi_dn_get_row_major(b, byi_dn_operand(b, index), x));
    if (byi_elements(x->desc.rank, x->desc.dims) != n ||
        x->desc.dtype != p->src.desc.dtype)
        return byi_dn_refuse(
            b,
            "%s: found a parameter of %lld %s elements, expected %lld of "
            "type %s",
            byi_dn_step0(b)->name,
            (long long)byi_elements(x->desc.rank, x->desc.dims),
            byoc_dtype_name(x->desc.dtype), (long long)n,
            byoc_dtype_name(p->src.desc.dtype));
    p->args[p->n_extra++] = (struct byi_core_arg){.arg = arg, .view = x};
    return BYOC_OK;
}

static enum byoc_status check_float(struct byi_build *b, enum byoc_dtype dtype)
{
    if (byi_dn_is_float(dtype))
        return BYOC_OK;
    return byi_dn_refuse(
        b, "%s: found dtype %s, expected float32, float16 or bfloat16",
        byi_dn_step0(b)->name, byoc_dtype_name(dtype));
}

/* Get a view of the value in which the flagged axes are innermost: an existing
 * dense view if there is one, otherwise a reordered copy. */
static enum byoc_status get_inner(struct byi_build *b,
                                  struct byi_dnnl_value *value,
                                  const bool *inner, struct byi_dnnl_view *view)
{
    struct byi_desc layout = {0};
    for (uint32_t v = 0; v < value->n_views; v++) {
        const struct byi_desc *d = &value->views[v].desc;
        uint32_t old[BYI_MAX_RANK], order[BYI_MAX_RANK], n = 0;
        byi_dn_order(d, old);
        for (uint32_t i = 0; i < d->rank; i++)
            if (!inner[old[i]])
                order[n++] = old[i];
        for (uint32_t i = 0; i < d->rank; i++)
            if (inner[old[i]])
                order[n++] = old[i];
        const struct byi_desc permuted =
            byi_dn_dense(d->dtype, d->rank, d->dims, order);
        if (v == 0)
            layout = permuted;
        if (byi_dn_same_layout(d, &permuted)) {
            layout = permuted;
            break;
        }
    }
    return byi_dn_get_view(b, value, &layout, view);
}

static struct byi_desc flat_desc(enum byoc_dtype dtype, int64_t outer,
                                 int64_t inner)
{
    const int64_t dims[2] = {outer, inner};
    return byi_dn_dense(dtype, 2, dims, NULL);
}

/* Emit step 0 and its epilogue. Sets the core's source and arguments; the
 * caller has set its other members. */
static enum byoc_status emit_norm(struct byi_build *b, struct norm_kernel *p,
                                  struct byi_core core)
{
    struct byi_chain chain;
    BYI_TRY(byi_dn_chain_read(b, 1, b->kernel->n_steps, 0, &chain));
    core.src = p->src;
    core.n_args = p->n_extra;
    memcpy(core.args, p->args, sizeof core.args);
    return byi_dn_emit_chain(b, &core, &chain, 0);
}

/* --- softmax ------------------------------------------------------------- */

enum byoc_status byi_dn_build_softmax(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const struct byi_desc *main = &value->views[0].desc;
    BYI_TRY(check_float(b, main->dtype));
    bool inner[BYI_MAX_RANK] = {false};
    const uint32_t axis = byi_axis(byoc_graph_int(step, "axis", 0), main->rank);
    inner[axis] = true;
    struct norm_kernel p = {0};
    BYI_TRY(get_inner(b, value, inner, &p.src));
    const int64_t n = main->dims[axis];
    p.softmax = (struct byi_dnnl_softmax){
        .log = byi_dn_is(step, "nn.log_softmax"),
        .axis = 1,
        .src = flat_desc(main->dtype, byi_elements(main->rank, main->dims) / n,
                         n)};
    const struct byi_core core = {.make = byi_dn_make_softmax,
                                  .params = &p.softmax,
                                  .dst = p.src.desc,
                                  .elt_only = true,
                                  .no_posts = byi_dnnl_major() < 3,
                                  .in_place = true};
    return emit_norm(b, &p, core);
}

/* --- normalisations ------------------------------------------------------ */

enum byoc_status byi_dn_build_layer_norm(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    struct norm_kernel p = {0};
    BYI_TRY(
        byi_dn_get_row_major(b, byi_dn_operand(b, byi_dn_arg0(b, 0)), &p.src));
    const struct byi_desc *d = &p.src.desc;
    BYI_TRY(check_float(b, d->dtype));
    const uint32_t axis = byi_axis(byoc_graph_int(step, "axis", 0), d->rank);
    const int64_t n = byi_elements(d->rank - axis, d->dims + axis);
    BYI_TRY(add_extra(b, &p, BYI_ARG_SCALE, byi_dn_arg0(b, 1), n));
    if (step->n_args > 2)
        BYI_TRY(add_extra(b, &p, BYI_ARG_SHIFT, byi_dn_arg0(b, 2), n));
    p.layer = (struct byi_dnnl_layer_norm){
        .epsilon = (float)byoc_graph_float(step, "epsilon", 0),
        .scale = true,
        .shift = step->n_args > 2,
        .src = flat_desc(d->dtype, byi_elements(d->rank, d->dims) / n, n)};
    const struct byi_core core = {.make = byi_dn_make_layer_norm,
                                  .params = &p.layer,
                                  .dst = *d,
                                  .folded = true,
                                  .no_posts = byi_dnnl_major() < 3 ||
                                              axis + 1 != d->rank,
                                  .in_place = true};
    return emit_norm(b, &p, core);
}

enum byoc_status byi_dn_build_batch_norm(struct byi_build *b)
{
    static const int args[] = {BYI_ARG_SCALE, BYI_ARG_SHIFT, BYI_ARG_MEAN,
                               BYI_ARG_VARIANCE};
    const struct byoc_graph_step *step = byi_dn_step0(b);
    struct norm_kernel p = {0};
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const struct byi_desc *main = &value->views[0].desc;
    BYI_TRY(check_float(b, main->dtype));
    if (main->rank < 2 || main->rank > 5)
        return byi_dn_refuse(b, "nn.batch_norm: found rank %u, expected 2 to 5",
                             main->rank);
    const uint32_t axis = byi_axis(byoc_graph_int(step, "axis", 0), main->rank);
    if (axis != 1 && axis + 1 != main->rank)
        return byi_dn_refuse(b,
                             "nn.batch_norm: found channels on axis %u, "
                             "expected axis 1 or the last one",
                             axis);
    const struct byi_image_axes image = byi_dn_image(main->rank, axis != 1);
    const struct byi_desc layout =
        byi_dn_image_desc(b, &image, main->rank, main->dims);
    BYI_TRY(byi_dn_get_view(b, value, &layout, &p.src));
    for (uint32_t i = 0; i < 4; i++)
        BYI_TRY(add_extra(b, &p, args[i], byi_dn_arg0(b, i + 1),
                          layout.dims[axis]));
    p.batch = (struct byi_dnnl_batch_norm){
        .epsilon = (float)byoc_graph_float(step, "epsilon", 0),
        .src = byi_dn_image_permute(&image, &layout)};
    const struct byi_core core = {.make = byi_dn_make_batch_norm,
                                  .params = &p.batch,
                                  .dst = layout,
                                  .order = image.order,
                                  .in_place = true};
    return emit_norm(b, &p, core);
}

/* Build instance normalisation as a batch normalisation with the image's own
 * statistics. Between convolutions this is faster than leaving the region;
 * alone it is slower (bench/operators). It is always slower with several
 * images, since the channels of all images would become channels, and with
 * channels that do not fill vectors. */
enum byoc_status byi_dn_build_instance_norm(struct byi_build *b)
{
    struct norm_kernel p = {0};
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const struct byi_desc *main = &value->views[0].desc;
    BYI_TRY(check_float(b, main->dtype));
    if (main->rank < 3 || main->rank > 5)
        return byi_dn_refuse(
            b, "nn.instance_norm: found rank %u, expected 3 to 5", main->rank);
    if (main->dims[0] != 1)
        return byi_dn_refuse(b,
                             "nn.instance_norm: found %lld images, expected 1: "
                             "native kernels are faster for more",
                             (long long)main->dims[0]);
    if (main->dims[1] % 4 != 0)
        return byi_dn_refuse(
            b,
            "nn.instance_norm: found %lld channels, expected a multiple of 4: "
            "native kernels are faster for others",
            (long long)main->dims[1]);
    const struct byi_image_axes image = byi_dn_image(main->rank, false);
    const struct byi_desc layout =
        byi_dn_image_desc(b, &image, main->rank, main->dims);
    BYI_TRY(byi_dn_get_view(b, value, &layout, &p.src));
    BYI_TRY(add_extra(b, &p, BYI_ARG_SCALE, byi_dn_arg0(b, 1), layout.dims[1]));
    BYI_TRY(add_extra(b, &p, BYI_ARG_SHIFT, byi_dn_arg0(b, 2), layout.dims[1]));
    p.batch = (struct byi_dnnl_batch_norm){
        .epsilon = (float)byoc_graph_float(byi_dn_step0(b), "epsilon", 0),
        .computes_mean = true,
        .src = layout};
    const struct byi_core core = {.make = byi_dn_make_batch_norm,
                                  .params = &p.batch,
                                  .dst = layout,
                                  .in_place = true};
    return emit_norm(b, &p, core);
}

enum byoc_status byi_dn_build_lrn(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    struct norm_kernel p = {0};
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const struct byi_desc *main = &value->views[0].desc;
    BYI_TRY(check_float(b, main->dtype));
    const int64_t size = byoc_graph_int(step, "size", 0);
    if (size % 2 == 0)
        return byi_dn_refuse(b,
                             "nn.lrn: found even size %lld, expected an odd "
                             "one, since oneDNN's windows are centred",
                             (long long)size);
    const struct byi_image_axes image = byi_dn_image(main->rank, false);
    const struct byi_desc layout =
        byi_dn_image_desc(b, &image, main->rank, main->dims);
    BYI_TRY(byi_dn_get_view(b, value, &layout, &p.src));
    p.lrn = (struct byi_dnnl_lrn){
        .size = size,
        .alpha = (float)byoc_graph_float(step, "alpha", 0),
        .beta = (float)byoc_graph_float(step, "beta", 0),
        .k = (float)byoc_graph_float(step, "bias", 0),
        .src = layout};
    const struct byi_core core = {.make = byi_dn_make_lrn,
                                  .params = &p.lrn,
                                  .dst = layout,
                                  .no_posts = true};
    return emit_norm(b, &p, core);
}

/* --- reductions ---------------------------------------------------------- */

/* Set the flags of the reduced axes; false if there are none. */
static bool read_axes(const struct byoc_graph_step *step, uint32_t rank,
                      bool *reduced)
{
    uint32_t n;
    const int64_t *axes = byoc_graph_list(step, "axis", &n);
    if (n == 0 && byoc_graph_int(step, "noop_empty", 0))
        return false;
    for (uint32_t i = 0; i < rank; i++)
        reduced[i] = n == 0;
    for (uint32_t i = 0; i < n; i++)
        reduced[byi_axis(axes[i], rank)] = true;
    return true;
}

/* Describe the reduction of a dense view as (outer, n, inner); false if the
 * reduced axes are not adjacent in memory. */
static bool read_adjacent(const struct byi_desc *d, const bool *reduced,
                          struct byi_dnnl_reduce *p)
{
    uint32_t order[BYI_MAX_RANK], group = 0;
    int64_t dims[3] = {1, 1, 1};
    if (!byi_dn_is_dense(d))
        return false;
    byi_dn_order(d, order);
    for (uint32_t i = 0; i < d->rank; i++) {
        if (d->dims[order[i]] == 1)
            continue;
        if (reduced[order[i]] != (group == 1))
            group++;
        if (group > 2)
            return false;
        dims[group] *= d->dims[order[i]];
    }
    const int64_t dst_dims[3] = {dims[0], 1, dims[2]};
    const uint32_t rank = dims[2] == 1 ? 2 : 3;
    p->src = byi_dn_dense(d->dtype, rank, dims, NULL);
    p->dst = byi_dn_dense(d->dtype, rank, dst_dims, NULL);
    return true;
}

/* Find a view that byoc's kernels can reduce; if `inner`, one with the reduced
 * axes innermost. Sets p->src and p->reduce if it returns true. */
static bool find_fast_view(const struct byi_dnnl_value *value,
                           const bool *reduced, bool inner,
                           struct norm_kernel *p)
{
    struct byi_dn_fast fast;
    for (uint32_t v = 0; v < value->n_views; v++) {
        p->src = value->views[v];
        if (read_adjacent(&p->src.desc, reduced, &p->reduce) &&
            byi_dn_fast_reduce(&p->reduce, &fast) &&
            (!inner || fast.sum.inner == 1))
            return true;
    }
    return false;
}

/* Whether exactly the spatial axes are reduced. */
static bool is_spatial(const bool *reduced, uint32_t rank)
{
    if (rank < 3 || rank > 5 || reduced[0] || reduced[1])
        return false;
    for (uint32_t i = 2; i < rank; i++)
        if (!reduced[i])
            return false;
    return true;
}

enum byoc_status byi_dn_build_reduce(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const struct byi_desc *main = &value->views[0].desc;
    BYI_TRY(check_float(b, main->dtype));
    bool reduced[BYI_MAX_RANK] = {false};
    if (!read_axes(step, main->rank, reduced))
        return byi_dn_refuse(
            b, "%s: found no axes to reduce, expected at least one",
            step->name);
    struct norm_kernel p = {0};
    const bool mean = byi_dn_is(step, "mean");
    p.reduce.kind = mean ? BYI_REDUCE_MEAN : BYI_REDUCE_SUM;
    const bool pools = is_spatial(reduced, main->rank) && mean;
    if (!find_fast_view(value, reduced, pools, &p)) {
        if (pools)
            return byi_dn_global_pool(b, true);
        BYI_TRY(get_inner(b, value, reduced, &p.src));
        if (!read_adjacent(&p.src.desc, reduced, &p.reduce))
            return byi_dn_refuse(
                b, "%s: found an empty operand, expected at least one element",
                step->name);
    }
    int64_t dst_dims[BYI_MAX_RANK];
    for (uint32_t i = 0; i < main->rank; i++)
        dst_dims[i] = reduced[i] ? 1 : p.src.desc.dims[i];
    const struct byi_desc dst = byi_dn_dense_like(&p.src.desc, dst_dims);
    struct byi_core core = {
        .make = byi_dn_make_reduce, .params = &p.reduce, .elt_only = true};
    if (!byi_dn_reshape_desc(&dst, byi_dn_result(b)->rank,
                             byi_dn_result(b)->dims, &core.dst)) {
        char found[128], expected[128];
        return byi_dn_refuse(
            b, "%s: found a result of shape %s, expected the kept axes of %s",
            step->name,
            byi_dims_text(found, sizeof found, byi_dn_result(b)->rank,
                          byi_dn_result(b)->dims),
            byi_dims_text(expected, sizeof expected, dst.rank, dst.dims));
    }
    return emit_norm(b, &p, core);
}
