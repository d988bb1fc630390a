/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_elementwise.c: creates primitives of elementwise and binary
 * operators, prelu, concatenations and reorders. */
#include "runtime_dnnl/layer_dnnl.h"
#include "runtime_dnnl/prim_fast.h"

BYI_CREATOR(eltwise)
{
    float alpha = p->alpha, beta = p->beta;
    int alg = p->alg;
    dnnl_alg_kind_t kind;
    byi_elt_replace_relu(&alg, alpha, &beta);
    if (!byi_elt_translate((enum byi_elt)alg, &alpha, &beta, &kind))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found an elementwise function that oneDNN %s lacks, "
                        "expected one that it has",
                        byi_dnnl_version());
    const struct byi_post first = {.kind = BYI_POST_ELT,
                                   .alg = (int)p->alg,
                                   .alpha = p->alpha,
                                   .beta = p->beta};
    struct byi_dn_fast fast;
    if (byi_dn_fast_elementwise(&first, &p->src, posts, &p->src, &fast))
        return byi_prim_wrap_fast(&fast, prim, err);
    const struct byi_desc *const descs[] = {&p->src};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 1, descs, posts, BYI_UNITS_PLAIN, err));
    BYI_CREATE(eltwise, eltwise_forward, dnnl_forward_inference, kind,
               BYI_MD(&s.md[0]) BYI_AND(BYI_MD(&s.md[0])), alpha, beta);
    return byi_prim_wrap(status, pd, &s, "elementwise function", prim, err);
}

BYI_CREATOR(binary)
{
    const struct byi_post first = {
        .kind = BYI_POST_BIN, .alg = (int)p->alg, .desc = p->src1};
    struct byi_dn_fast fast;
    if (byi_dn_fast_elementwise(&first, &p->src, posts, &p->dst, &fast))
        return byi_prim_wrap_fast(&fast, prim, err);
    BYI_TRY(
        byi_fault_status(byi_fault_binary(byi_dnnl_major(), p, posts), err));
    const dnnl_alg_kind_t kind = byi_bin_translate(p->alg);
    const struct byi_desc *const descs[] = {&p->src, &p->src1, &p->dst};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 3, descs, posts, BYI_UNITS_PLAIN, err));
    BYI_CREATE(binary, binary, kind, BYI_MD(&s.md[0]), BYI_MD(&s.md[1]),
               BYI_MD(&s.md[2]));
    return byi_prim_wrap(status, pd, &s, "binary operator", prim, err);
}

BYI_CREATOR(prelu)
{
    BYI_TRY(byi_fault_status(byi_fault_prelu(p), err));
    const struct byi_desc *const descs[] = {&p->src, &p->weights};
    struct byi_pieces s;
    BYI_TRY(byi_pieces_make(&s, 2, descs, posts, BYI_UNITS_PLAIN, err));
    BYI_CREATE(prelu, prelu_forward, dnnl_forward_inference, BYI_MD(&s.md[0]),
               BYI_MD(&s.md[1]) BYI_AND(BYI_MD(&s.md[0])));
    return byi_prim_wrap(status, pd, &s, "parametric relu", prim, err);
}

BYI_CREATOR(concat)
{
    struct byi_pieces s;
    struct byi_dn_fast fast;
    if (byi_dn_fast_concat(p, &fast))
        return byi_prim_wrap_fast(&fast, prim, err);
    const struct byi_desc *const descs[] = {&p->dst};
    BYI_TRY(byi_pieces_make(&s, 1, descs, posts, BYI_UNITS_PLAIN, err));
    struct byi_md *md = byi_alloc(p->n, sizeof *md);
#if BYI_V3
    const_dnnl_memory_desc_t *src = byi_alloc(p->n, sizeof(void *));
#else
    dnnl_memory_desc_t *src = byi_alloc(p->n, sizeof *src);
#endif
    enum byoc_status descs_status =
        md && src
            ? BYOC_OK
            : byi_fail(err, BYOC_ENOMEM, "out of memory for a concatenation");
    for (uint32_t i = 0; i < p->n && descs_status == BYOC_OK; i++) {
        descs_status = byi_md_make(&p->src[i], BYI_UNITS_PLAIN, &md[i], err);
        if (descs_status == BYOC_OK)
            src[i] = md[i].md;
    }
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_out_of_memory;
    if (descs_status == BYOC_OK)
#if BYI_V3
        status = dnnl_concat_primitive_desc_create(&pd, lib->engine,
                                                   BYI_MD(&s.md[0]), (int)p->n,
                                                   (int)p->axis, src, s.attr);
#else
        status = dnnl_concat_primitive_desc_create(&pd, BYI_MD(&s.md[0]),
                                                   (int)p->n, (int)p->axis, src,
                                                   s.attr, lib->engine);
#endif
    for (uint32_t i = 0; md && i < p->n; i++)
        byi_md_drop(&md[i]);
    byi_release(md);
    byi_release(src);
    if (descs_status != BYOC_OK) {
        byi_pieces_drop(&s);
        return descs_status;
    }
    s.narrow.sources = p->n;
    return byi_prim_wrap(status, pd, &s, "concatenation", prim, err);
}

/* The largest prime factor of n. oneDNN's reorders tile an axis by trying
 * divisors from its size down, so their creation takes time in proportion to
 * the factor. oneDNN 2.6 takes 7 seconds for a prime of 10^9, and longer with
 * more axes. */
static int64_t largest_factor(int64_t n)
{
    int64_t largest = 1;
    for (int64_t d = 2; d <= n / d; d++)
        for (; n % d == 0; n /= d)
            largest = d;
    return n > largest ? n : largest;
}

static enum byoc_status check_sizes(const struct byi_desc *desc,
                                    struct byoc_error *err)
{
    enum { MAX_FACTOR = 1 << 22 };
    for (uint32_t i = 0; i < desc->rank; i++)
        if (desc->dims[i] > MAX_FACTOR &&
            (desc->dims[i] > (int64_t)MAX_FACTOR * MAX_FACTOR ||
             largest_factor(desc->dims[i]) > MAX_FACTOR))
            return byi_fail(err, BYOC_EUNSUPPORTED,
                            "found a reorder of an axis of size %lld, expected "
                            "a size without a prime factor over %d, since "
                            "oneDNN would take seconds to prepare it",
                            (long long)desc->dims[i], MAX_FACTOR);
    return BYOC_OK;
}

BYI_CREATOR(reorder)
{
    const struct byi_desc *const descs[] = {&p->src, &p->dst};
    struct byi_pieces s;
    struct byi_dn_fast fast;
    if (byi_dn_fast_reorder(p, posts, &fast))
        return byi_prim_wrap_fast(&fast, prim, err);
    BYI_TRY(check_sizes(&p->src, err));
    BYI_TRY(byi_pieces_make(&s, 2, descs, posts, BYI_UNITS_PLAIN, err));
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &pd, BYI_MD(&s.md[0]), lib->engine, BYI_MD(&s.md[1]), lib->engine,
        s.attr);
    return byi_prim_wrap(status, pd, &s, "reorder", prim, err);
}
