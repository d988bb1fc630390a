/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_conv.c: creates primitives of convolution, transposed
 * convolution, matrix product, pooling and resampling. */
#include "runtime_dnnl/layer_dnnl.h"

/* Convert the dilation to oneDNN's, which is 0 for adjacent taps. */
static void convert_dilation(const struct byi_dnnl_window *w,
                             dnnl_dim_t dilates[BYI_MAX_RANK])
{
    for (uint32_t i = 0; i < w->n; i++)
        dilates[i] = w->dilation[i] - 1;
}

/* Convert the strides. Those of axes with a single output, which have no
 * effect, become 1: otherwise 3.12 computes convolutions of one input channel
 * wrongly. */
static void convert_strides(const struct byi_dnnl_conv *p,
                            dnnl_dim_t strides[BYI_MAX_RANK])
{
    const int64_t inputs = p->weights.dims[p->weights.rank - p->window.n - 1];
    for (uint32_t i = 0; i < p->window.n; i++) {
        const bool is_ignored =
            BYI_V3 && !p->deconv && inputs == 1 && p->dst.dims[2 + i] == 1;
        strides[i] = is_ignored ? 1 : p->window.stride[i];
    }
}

enum { CONV_SRC, CONV_WEIGHTS, CONV_BIAS, CONV_DST, N_CONV };

static dnnl_status_t create_conv(const struct byi_dnnl *lib,
                                 const struct byi_dnnl_conv *p,
                                 struct byi_pieces *s,
                                 dnnl_primitive_desc_t *pd)
{
    const struct byi_dnnl_window *w = &p->window;
    const dnnl_alg_kind_t kind =
        p->deconv ? dnnl_deconvolution_direct : dnnl_convolution_direct;
    dnnl_dim_t strides[BYI_MAX_RANK], dilates[BYI_MAX_RANK];
    convert_dilation(w, dilates);
    convert_strides(p, strides);
#if BYI_V3
    return (p->deconv ? dnnl_deconvolution_forward_primitive_desc_create
                      : dnnl_convolution_forward_primitive_desc_create)(
        pd, lib->engine, dnnl_forward_inference, kind, BYI_MD(&s->md[CONV_SRC]),
        BYI_MD(&s->md[CONV_WEIGHTS]), BYI_MD(&s->md[CONV_BIAS]),
        BYI_MD(&s->md[CONV_DST]), strides, dilates, w->begin, w->end, s->attr);
#else
    dnnl_convolution_desc_t d; /* 2.x uses this type for both */
    const dnnl_status_t status =
        (p->deconv ? dnnl_dilated_deconvolution_forward_desc_init
                   : dnnl_dilated_convolution_forward_desc_init)(
            &d, dnnl_forward_inference, kind, BYI_MD(&s->md[CONV_SRC]),
            BYI_MD(&s->md[CONV_WEIGHTS]), BYI_MD(&s->md[CONV_BIAS]),
            BYI_MD(&s->md[CONV_DST]), strides, dilates, w->begin, w->end);
    return byi_pd_make(status, &d, s, lib, pd);
#endif
}

/* If `why`, the result of a check of the implementation, is not NULL, free the
 * primitive and fail. */
static enum byoc_status check_impl(const char *why, struct byi_prim **prim,
                                   struct byoc_error *err)
{
    const enum byoc_status status = byi_fault_status(why, err);
    if (status != BYOC_OK)
        byi_prim_free(prim);
    return status;
}

/* Replace oneDNN's primitive, whose results depend on the number of threads, by
 * `fast`, or fail if byoc's own kernels cannot run it. */
static enum byoc_status replace_varying(bool can,
                                        const struct byi_dn_fast *fast,
                                        const char *what,
                                        struct byi_prim **prim,
                                        struct byoc_error *err)
{
    byi_prim_free(prim);
    if (can)
        return byi_prim_wrap_fast(fast, prim, err);
    return byi_fail(err, BYOC_EUNSUPPORTED,
                    "%s: found one whose results depend on the number of "
                    "threads in oneDNN %s, expected the same for any number",
                    what, byi_dnnl_version());
}

/* Whether byoc's own kernels can run the convolution, without post-ops, on
 * channels-first data. */
static bool suits_planes(const struct byi_dnnl_conv *p,
                         struct byi_dn_fast *fast)
{
    return !byi_dn_is_dense_last(&p->src, p->src.dtype) &&
           byi_dn_fast_conv(p, NULL, fast) && fast->conv.planar;
}

bool byi_conv_reads_planes(const struct byi_dnnl_conv *p)
{
    struct byi_dn_fast fast;
    return suits_planes(p, &fast) && byi_f32_planar_pays(&fast.conv);
}

bool byi_conv_is_fast(const void *params, const struct byi_posts *posts)
{
    struct byi_dn_fast fast;
    return byi_dn_fast_conv(params, posts, &fast);
}

bool byi_matmul_is_fast(const void *params, const struct byi_posts *posts)
{
    struct byi_dn_fast fast;
    return byi_dn_fast_matmul(params, posts, &fast);
}

BYI_CREATOR(conv)
{
    const char *what = p->deconv ? "transposed convolution" : "convolution";
    struct byi_dn_fast fast;
    if (byi_dn_fast_conv(p, posts, &fast))
        return byi_prim_wrap_fast(&fast, prim, err);
    if (p->gather.n)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: found data to be gathered, expected none, since "
                        "oneDNN does not gather them",
                        what);
    if (suits_planes(p, &fast))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: found post-ops that byoc's kernels for "
                        "channels-first data lack, expected none",
                        what);
    BYI_TRY(byi_fault_status(byi_fault_conv(byi_dnnl_major(), p, posts), err));
    const struct byi_desc *const descs[N_CONV] = {
        [CONV_SRC] = &p->src,
        [CONV_WEIGHTS] = &p->weights,
        [CONV_BIAS] = &p->bias,
        [CONV_DST] = &p->dst,
    };
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, N_CONV, descs, posts, BYI_UNITS_WINDOWS, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = create_conv(lib, p, &s, &pd);
    BYI_TRY(byi_prim_wrap(status, pd, &s, what, prim, err));
    /* byoc's kernels write channels last; oneDNN keeps other layouts, and
     * windows along three axes for which byoc's kernels are not faster */
    if (p->window.n < 3 && byi_dn_is_dense_last(&p->src, BYOC_F32) &&
        byi_dn_is_dense_last(&p->dst, BYOC_F32) &&
        byi_varies_by_threads(byi_dnnl_major(), byi_prim_impl(*prim),
                              p->window.n))
        return replace_varying(byi_dn_own_conv(p, posts, &fast), &fast, what,
                               prim, err);
    return check_impl(
        byi_fault_impl(byi_dnnl_major(), p, posts, byi_prim_impl(*prim)), prim,
        err);
}

BYI_CREATOR(matmul)
{
    static const char what[] = "matrix product";
    struct byi_dn_fast fast;
    if (byi_dn_fast_matmul(p, posts, &fast))
        return byi_prim_wrap_fast(&fast, prim, err);
    BYI_TRY(
        byi_fault_status(byi_fault_matmul(byi_dnnl_major(), p, posts), err));
    const struct byi_desc *const descs[N_CONV] = {
        [CONV_SRC] = &p->src,
        [CONV_WEIGHTS] = &p->weights,
        [CONV_BIAS] = &p->bias,
        [CONV_DST] = &p->dst,
    };
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, N_CONV, descs, posts, BYI_UNITS_PLAIN, err));
    BYI_CREATE(matmul, matmul, BYI_MD(&s.md[CONV_SRC]),
               BYI_MD(&s.md[CONV_WEIGHTS]), BYI_MD(&s.md[CONV_BIAS]),
               BYI_MD(&s.md[CONV_DST]));
    BYI_TRY(byi_prim_wrap(status, pd, &s, what, prim, err));
    if (p->src.dtype == BYOC_F32 &&
        byi_varies_by_threads(byi_dnnl_major(), byi_prim_impl(*prim), 0))
        return replace_varying(byi_dn_own_product(p, posts, &fast), &fast, what,
                               prim, err);
    return BYOC_OK;
}

/* If the pool computes the mean of each channel of float32 images, describe it
 * as a reduction and return true. oneDNN would run it on one thread. */
static bool describe_mean(const struct byi_dnnl_pool *p,
                          struct byi_dnnl_reduce *r)
{
    const struct byi_dnnl_window *w = &p->window;
    int64_t positions = 1;
    if (p->kind == BYI_POOL_MAX || !byi_dn_is_dense_last(&p->src, BYOC_F32) ||
        !byi_dn_is_dense_last(&p->dst, BYOC_F32))
        return false;
    for (uint32_t i = 0; i < w->n; i++) {
        positions *= w->kernel[i];
        if (w->kernel[i] != p->src.dims[2 + i] || p->dst.dims[2 + i] != 1 ||
            w->begin[i] != 0 || w->end[i] != 0 || w->dilation[i] != 1)
            return false;
    }
    int64_t dims[] = {p->src.dims[0], positions, p->src.dims[1]};
    r->kind = BYI_REDUCE_MEAN;
    r->src = byi_dn_dense(BYOC_F32, 3, dims, NULL);
    dims[1] = 1;
    r->dst = byi_dn_dense(BYOC_F32, 3, dims, NULL);
    return true;
}

BYI_CREATOR(pool)
{
    static const dnnl_alg_kind_t kinds[] = {
        [BYI_POOL_MAX] = dnnl_pooling_max,
        [BYI_POOL_AVG] = dnnl_pooling_avg_exclude_padding,
        [BYI_POOL_AVG_PAD] = dnnl_pooling_avg_include_padding,
    };
    struct byi_dn_fast fast;
    struct byi_dnnl_reduce mean;
    if (((!posts || !posts->n) && describe_mean(p, &mean) &&
         byi_dn_fast_reduce(&mean, &fast)) ||
        byi_dn_fast_pool(p, posts, &fast))
        return byi_prim_wrap_fast(&fast, prim, err);
    if (p->src.dtype != p->dst.dtype)
        return BYOC_EUNSUPPORTED;
    BYI_TRY(byi_fault_status(byi_fault_pool(byi_dnnl_major(), p), err));
    BYI_TRY(byi_fault_status(byi_fault_elt_only(posts), err));
    const struct byi_desc *const descs[] = {&p->src, &p->dst};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 2, descs, posts, BYI_UNITS_WINDOWS, err));
    const struct byi_dnnl_window *w = &p->window;
    dnnl_dim_t dilates[BYI_MAX_RANK];
    convert_dilation(w, dilates);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status;
#if BYI_V3
    status = dnnl_pooling_forward_primitive_desc_create(
        &pd, lib->engine, dnnl_forward_inference, kinds[p->kind],
        BYI_MD(&s.md[0]), BYI_MD(&s.md[1]), w->stride, w->kernel, dilates,
        w->begin, w->end, s.attr);
#else
    dnnl_pooling_v2_desc_t d;
    status = dnnl_pooling_v2_forward_desc_init(
        &d, dnnl_forward_inference, kinds[p->kind], BYI_MD(&s.md[0]),
        BYI_MD(&s.md[1]), w->stride, w->kernel, dilates, w->begin, w->end);
    status = byi_pd_make(status, &d, &s, lib, &pd);
#endif
    BYI_TRY(byi_prim_wrap(status, pd, &s, "pooling", prim, err));
    return check_impl(
        byi_fault_pool_impl(byi_dnnl_major(), p, posts, byi_prim_impl(*prim)),
        prim, err);
}

BYI_CREATOR(resample)
{
    BYI_TRY(byi_fault_status(byi_fault_elt_only(posts), err));
    const dnnl_alg_kind_t kind =
        p->linear ? dnnl_resampling_linear : dnnl_resampling_nearest;
    const struct byi_desc *const descs[] = {&p->src, &p->dst};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 2, descs, posts, BYI_UNITS_WINDOWS, err));
    BYI_CREATE(resampling, resampling_forward, dnnl_forward_inference, kind,
               NULL, BYI_MD(&s.md[0]), BYI_MD(&s.md[1]));
    return byi_prim_wrap(status, pd, &s, "resampling", prim, err);
}
