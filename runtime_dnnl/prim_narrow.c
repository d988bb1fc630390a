/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_narrow.c: runs oneDNN's float32 primitives on float16 and
 * bfloat16 arguments. Each argument has a float32 copy in scratch memory, with
 * the same strides. Inputs are converted before the primitive runs and results
 * after it, so that a result is rounded once. byoc's own kernels (prim_fast.c)
 * need no copies. */
#include "core/base/openmp.h"
#include "runtime_dnnl/layer_dnnl.h"

enum byoc_status byi_narrowing_read(uint32_t n,
                                    const struct byi_desc *const *desc,
                                    const struct byi_posts *posts,
                                    struct byi_narrowing *narrow,
                                    struct byoc_error *err)
{
    bool wide = false;
    *narrow = (struct byi_narrowing){.wide = -1};
    for (uint32_t i = 0; i < n; i++) {
        if (desc[i]->kind == BYI_DESC_ANY)
            narrow->wide = BYI_ARG_WEIGHTS;
        else if (desc[i]->kind == BYI_DESC_STRIDED &&
                 byi_dtype_is_half(desc[i]->dtype))
            narrow->dtype = desc[i]->dtype;
        else if (desc[i]->kind == BYI_DESC_STRIDED)
            wide = true;
    }
    for (uint32_t i = 0; posts && i < posts->n; i++) {
        const struct byi_post *post = &posts->at[i];
        narrow->adds |= post->kind == BYI_POST_SUM;
        narrow->binary |= (uint32_t)(post->kind == BYI_POST_BIN) << i;
        wide |= (post->kind == BYI_POST_BIN || post->kind == BYI_POST_PRELU) &&
                post->desc.dtype == BYOC_F32;
    }
    if (narrow->dtype && wide)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found %s beside float32, expected one type of floats",
                        byoc_dtype_name(narrow->dtype));
    return BYOC_OK;
}

bool byi_prim_is_narrow(const struct byi_prim *prim, int arg)
{
    return prim->narrow.dtype && arg != prim->narrow.wide;
}

/* Number of floats of an argument, including gaps between its elements. */
static int64_t floats_of(const struct byi_prim *prim, int arg)
{
    if (arg >= BYI_ARG_SLOPE && arg < BYI_ARG_MULTI)
        return prim->slopes;
    BYI_MD_PTR md = byi_prim_query(prim, arg);
    return md ? (int64_t)(dnnl_memory_desc_get_size(md) / sizeof(float)) : 0;
}

static uint64_t copy_bytes(const struct byi_prim *prim, int arg)
{
    return byi_prim_is_narrow(prim, arg)
               ? byi_align_bytes((uint64_t)floats_of(prim, arg) * sizeof(float))
               : 0;
}

uint64_t byi_narrow_bytes(const struct byi_prim *prim)
{
    uint64_t bytes = 0;
    if (!prim->narrow.dtype)
        return 0;
    for (int arg = 0; arg <= BYI_ARG_DST; arg++)
        bytes += copy_bytes(prim, arg);
    for (int i = 0; i < BYI_MAX_POSTS; i++)
        if (prim->narrow.binary >> i & 1)
            bytes += copy_bytes(prim, BYI_ARG_POST + i);
    for (uint32_t i = 0; i < prim->narrow.sources; i++)
        bytes += copy_bytes(prim, BYI_ARG_MULTI + (int)i);
    return bytes + (prim->slopes ? copy_bytes(prim, BYI_ARG_SLOPE) : 0);
}

enum byoc_status byi_narrow_copies(const struct byi_prim *prim, uint32_t n,
                                   const int *args, void *const *data,
                                   char *buffer,
                                   struct byi_narrow_copy **copies,
                                   uint32_t *n_copies, struct byoc_error *err)
{
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    const bool bf16 = prim->narrow.dtype == BYOC_BF16;
    *copies = NULL;
    *n_copies = 0;
    if (!prim->narrow.dtype)
        return BYOC_OK;
    *copies = byi_alloc(n, sizeof **copies);
    if (!*copies)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for the copies of %u arguments", n);
    for (uint32_t i = 0; i < n; i++) {
        if (!byi_prim_is_narrow(prim, args[i]))
            continue;
        (*copies)[(*n_copies)++] = (struct byi_narrow_copy){
            .slot = i,
            .widen = kernels->widen[bf16],
            .narrow = kernels->narrow[bf16],
            .data = data[i],
            .copy = (float *)(void *)buffer,
            .n = floats_of(prim, args[i]),
            .reads = args[i] != BYI_ARG_DST || prim->narrow.adds,
            .writes = args[i] == BYI_ARG_DST};
        buffer += copy_bytes(prim, args[i]);
    }
    return BYOC_OK;
}

/* Elements that a thread converts at a time. */
enum { PIECE = 1 << 14 };

/* The number of threads that convert n elements. */
static int team_size(int64_t n)
{
    const int64_t pieces = byi_ceil_div(n, PIECE);
    const int most = omp_get_max_threads();
    return pieces < 4 ? 1 : (int)byi_min(pieces / 2, most);
}

void byi_narrow_begin(const struct byi_narrow_copy *copies, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_narrow_copy *c = &copies[i];
        const uint16_t *from = c->data;
        const int team = team_size(c->n);
        if (!c->reads)
            continue;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t at = 0; at < c->n; at += PIECE)
            c->widen(from + at, c->copy + at, byi_min(PIECE, c->n - at));
    }
}

void byi_narrow_end(const struct byi_narrow_copy *copies, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_narrow_copy *c = &copies[i];
        uint16_t *to = c->data;
        const int team = team_size(c->n);
        if (!c->writes)
            continue;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t at = 0; at < c->n; at += PIECE)
            c->narrow(c->copy + at, to + at, byi_min(PIECE, c->n - at));
    }
}
