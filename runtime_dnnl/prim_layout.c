/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_layout.c: names the blocked layouts that oneDNN chooses for
 * a convolution with format `any`. */
#include "runtime_dnnl/layer_dnnl.h"

#include <string.h>

/* The blocking of a memory descriptor, for either major version. */
struct blocking {
    int rank;
    const dnnl_dim_t *strides;       /* of the outer axes */
    int n;                           /* number of inner blocks */
    const dnnl_dim_t *blocks, *axes; /* their sizes, and the blocked axes */
};

#if BYI_V3
static bool read_blocking(BYI_MD_PTR md, struct blocking *b)
{
    dnnl_format_kind_t kind;
    const dnnl_dims_t *strides, *blocks, *axes;
    if (dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) ||
        kind != dnnl_blocked ||
        dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &b->rank) ||
        dnnl_memory_desc_query(md, dnnl_query_strides, &strides) ||
        dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &b->n) ||
        dnnl_memory_desc_query(md, dnnl_query_inner_blks, &blocks) ||
        dnnl_memory_desc_query(md, dnnl_query_inner_idxs, &axes))
        return false;
    b->strides = *strides;
    b->blocks = *blocks;
    b->axes = *axes;
    return true;
}
#else
static bool read_blocking(BYI_MD_PTR md, struct blocking *b)
{
    const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    *b = (struct blocking){.rank = md->ndims,
                           .strides = blocking->strides,
                           .n = blocking->inner_nblks,
                           .blocks = blocking->inner_blks,
                           .axes = blocking->inner_idxs};
    return md->format_kind == dnnl_blocked;
}
#endif

/* Set `name` to the name of the layout of `md`, whose axes have these letters;
 * to "" if the layout has no name, or a name of n characters or more. */
static void name_layout(BYI_MD_PTR md, const char *letters, char *name,
                        size_t n)
{
    struct blocking b;
    uint32_t order[BYI_MAX_RANK];
    size_t at = 0;
    name[0] = '\0';
    if (!md || !read_blocking(md, &b) || b.rank != (int)strlen(letters) ||
        (size_t)b.rank >= n)
        return;
    byi_axes_sort((uint32_t)b.rank, b.strides, order);
    for (int i = 0; i < b.rank; i++)
        name[at++] = letters[order[i]];
    name[at] = '\0';
    for (int i = 0; i < b.n && at < n; i++)
        at += (size_t)snprintf(name + at, n - at, "%d%c", (int)b.blocks[i],
                               letters[b.axes[i]] - 'A' + 'a');
    if (at >= n)
        name[0] = '\0';
}

enum byoc_status byi_conv_layouts(const struct byi_dnnl *lib,
                                  const struct byi_dnnl_conv *p, char *data,
                                  char *kernel, size_t n,
                                  struct byoc_error *err)
{
    static const char *const images[] = {"NCW", "NCHW", "NCDHW"};
    static const char *const weights[] = {"OIW", "OIHW", "OIDHW"};
    const struct byi_posts no_posts = {0};
    struct byi_prim *prim = NULL;
    BYI_TRY(byi_prim_new_conv(lib, p, &no_posts, &prim, err));
    const uint32_t spatial = p->src.rank - 3;
    data[0] = kernel[0] = '\0';
    if (spatial < BYI_COUNT(images) && !byi_prim_is_ref(prim)) {
        name_layout(
            dnnl_primitive_desc_query_md(prim->pd, dnnl_query_src_md, 0),
            images[spatial], data, n);
        name_layout(
            dnnl_primitive_desc_query_md(prim->pd, dnnl_query_weights_md, 0),
            weights[spatial], kernel, n);
    }
    byi_prim_free(&prim);
    return BYOC_OK;
}
