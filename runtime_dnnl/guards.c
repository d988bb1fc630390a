/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/guards.c: legal descriptors that oneDNN crashes on or computes
 * wrongly, found by running random descriptors against plain loops
 * (tests/runtime_dnnl/layer_random_test.c does the same). Each guard names the
 * versions it is about; being asked at probe time, what passes here runs.
 */
#include "runtime_dnnl/layer.h"

#include <string.h>

/* All versions: matmul with an empty dimension divides by zero in 2.6, and
 * nothing is to be gained from oneDNN on empty tensors anyway. Its kernels
 * count rows in ints: matmul of 2^32 rows divides by zero as well. */
const char *byi_guard_desc(const struct byi_desc *desc)
{
    if (!byi_dnnl_has_dtype(desc->dtype))
        return "an element type that oneDNN does not have";
    if (desc->rank == 0 || desc->rank > BYI_MAX_RANK)
        return "oneDNN takes tensors of rank 1 to 12";
    for (uint32_t i = 0; i < desc->rank; i++) {
        if (desc->dims[i] <= 0)
            return "an empty tensor does not go to oneDNN";
        if (desc->dims[i] > INT32_MAX)
            return "oneDNN counts in 32 bits, and a dim is larger";
    }
    if (byi_elements(desc->rank, desc->dims) < 0)
        return "a tensor of more than 2^63 elements";
    return NULL;
}

/* 2.x: one table of constants per function, so two uses of a function with
 * different parameters share the first one's. */
const char *byi_guard_posts(int major, const struct byi_posts *posts)
{
    if (!posts)
        return NULL;
    uint32_t slopes = 0;
    for (uint32_t i = 0; i < posts->n; i++)
        slopes += posts->at[i].kind == BYI_POST_PRELU;
    if (slopes > 1 || (slopes && major < 3))
        return "oneDNN 2.x has prelu as a post-op by its reference only, and "
               "this layer one a primitive";
    /* 3.x: its reference kernels place slopes by the first five axes only */
    for (uint32_t i = 0; i < posts->n; i++)
        if (posts->at[i].kind == BYI_POST_PRELU && posts->at[i].desc.rank > 5)
            return "oneDNN 3.x misreads the slopes of a prelu as a post-op of "
                   "more than 5 axes";
    for (uint32_t i = 0; i < posts->n && major < 3; i++) {
        const struct byi_post *a = &posts->at[i];
        for (uint32_t j = i + 1; j < posts->n; j++) {
            const struct byi_post *b = &posts->at[j];
            if (a->kind == BYI_POST_ELT && b->kind == BYI_POST_ELT &&
                a->alg == b->alg &&
                (a->alpha != b->alpha || a->beta != b->beta))
                return "oneDNN 2.x confuses two post-ops of one function with "
                       "different parameters";
        }
    }
    return NULL;
}

/* Does output o of an axis see at least one element of the input? */
static bool sees_input(const struct byi_window *w, uint32_t axis, int64_t o,
                       int64_t extent)
{
    const int64_t first = o * w->stride[axis] - w->begin[axis];
    const int64_t d = w->dilation[axis];
    const int64_t skip = first >= 0 ? 0 : (-first + d - 1) / d;
    return skip < w->kernel[axis] && first + skip * d < extent;
}

/* The outputs that may miss the input are at the ends; those between see it
 * when a dilated window cannot step over the whole input, which the sweep
 * checks: outputs are few wherever padding is large against the input. */
static bool misses_input(const struct byi_window *w, const struct byi_desc *src,
                         const struct byi_desc *dst, uint32_t axis)
{
    const int64_t extent = src->dims[2 + axis];
    const int64_t n = dst->dims[2 + axis];
    for (int64_t o = 0; o < n; o++) {
        const int64_t first = o * w->stride[axis] - w->begin[axis];
        if (first >= 0 && first < extent) {
            /* inside: go on where the window's start leaves the input */
            o += (extent - 1 - first) / w->stride[axis];
            continue;
        }
        if (!sees_input(w, axis, o, extent))
            return true;
    }
    return false;
}

const char *byi_guard_conv(int major, const struct byi_conv *p,
                           const struct byi_posts *posts)
{
    (void)posts;
    const struct byi_window *w = &p->window;
    /* 3.7 to 3.12.1: wrong, rarely */
    const uint32_t first = p->weights.rank > w->n + 2; /* groups before it */
    if (p->weights.dtype == BYOC_I8 && p->weights.dims[first + 1] == 1 &&
        p->weights.dims[first] > 1)
        return "oneDNN errs on integers of one input channel a group and "
               "several output channels";
    for (uint32_t i = 0; i < w->n && !p->deconv; i++) {
        /* all versions: wrong results or a crash with post-ops */
        if (misses_input(w, &p->src, &p->dst, i))
            return "a window of the convolution lies wholly in the padding";
        /* dilated, more than 3 taps, most of them outside: a crash in all
         * versions; over the whole input: wrong in 2.x */
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const bool padded = w->begin[i] > reach / 2 || w->end[i] > reach / 2;
        if (w->dilation[i] > 1 && w->kernel[i] > 3 &&
            (padded || (major < 3 && reach >= p->src.dims[2 + i])))
            return "a dilated kernel of more than 3 taps reaches far over the "
                   "input, where oneDNN errs";
    }
    return NULL;
}

/* Does a matrix lie column by column with others of its batch in between, or
 * the batch in another order than its axes? */
static bool is_scattered(const struct byi_desc *d)
{
    const int64_t row = d->strides[d->rank - 2], col = d->strides[d->rank - 1];
    const bool turned = d->dims[d->rank - 1] > 1 && col > row;
    int64_t outer = INT64_MAX;
    for (uint32_t i = 0; i + 2 < d->rank && d->kind == BYI_DESC_STRIDED; i++) {
        if (d->dims[i] == 1)
            continue;
        if (d->strides[i] > outer ||
            (turned && d->strides[i] < col * d->dims[d->rank - 1]))
            return true;
        outer = d->strides[i];
    }
    return false;
}

/* 3.x up to 3.12.1 and 2.6: weights that are broadcast over all of the batch
 * crash or give wrong results; callers fold the batch into M. */
const char *byi_guard_matmul(int major, const struct byi_matmul *p,
                             const struct byi_posts *posts)
{
    (void)posts;
    if (major >= 3 && is_scattered(&p->src))
        return "oneDNN 3.x misreads a source whose batch lies between its "
               "columns, or in another order";
    int64_t src_batch = 1, weights_batch = 1;
    for (uint32_t i = 0; i + 2 < p->dst.rank; i++) {
        src_batch *= p->src.dims[i];
        weights_batch *= p->weights.dims[i];
    }
    if (weights_batch == 1 && src_batch > 1)
        return "weights broadcast over the whole batch: fold it into M";
    return NULL;
}

/* All versions: sums and binary operands after a pooling, resampling or
 * normalisation are taken, and then left out or misread. */
const char *byi_guard_elt_only(const struct byi_posts *posts)
{
    for (uint32_t i = 0; posts && i < posts->n; i++)
        if (posts->at[i].kind != BYI_POST_ELT)
            return "oneDNN fuses only elementwise functions here";
    return NULL;
}

const char *byi_guard_pool(int major, const struct byi_pool *p)
{
    (void)major;
    const struct byi_window *w = &p->window;
    for (uint32_t i = 0; i < w->n; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (w->begin[i] >= reach || w->end[i] >= reach)
            return "padding of a pooling is not smaller than its window";
        /* all versions: the largest of none is -FLT_MAX, not -infinity */
        if (misses_input(w, &p->src, &p->dst, i))
            return "a window of the pooling lies wholly in the padding";
    }
    return NULL;
}

/* 2.x on SSE4.1: the kernel works on half a register of channels at a time;
 * when none are left for the second half, generating its post-ops crashes. */
const char *byi_guard_pool_impl(int major, const struct byi_pool *p,
                                const struct byi_posts *posts, const char *impl)
{
    const int64_t left = p->src.dims[1] % 8;
    if (major < 3 && posts && posts->n && strstr(impl, "sse41") && left > 0 &&
        left <= 4)
        return "oneDNN 2.x crashes on post-ops of a pooling over this number "
               "of channels on SSE4.1";
    return NULL;
}

/* All versions: a slope for each channel is right where the data is row-major
 * or channels-last: other orders of axes are taken for one of the two. */
const char *byi_guard_prelu(const struct byi_prelu *p)
{
    const struct byi_desc *src = &p->src, *slopes = &p->weights;
    if (byi_desc_is_plain(src) || byi_desc_is_last(src) ||
        byi_elements(slopes->rank, slopes->dims) == 1 ||
        byi_dims_equal(src->rank, src->dims, slopes->rank, slopes->dims))
        return NULL;
    return "oneDNN misreads the slopes of a prelu on data that is neither "
           "row-major nor channels-last";
}

/* A second operand that is neither one number nor one per channel. */
static bool is_wide(const struct byi_desc *operand)
{
    for (uint32_t i = 0; i < operand->rank; i++)
        if (i != 1 && operand->dims[i] != 1)
            return true;
    return false;
}

/* All versions: post-ops of the binary primitive are right for one number, a
 * whole tensor, and a vector of channels; the latter not when there is one
 * position in space, where row-major and channels-last are the same and the
 * wrong one is assumed, nor when the axes lie in another order than these two;
 * 3.x gives wrong results for a vector along another axis. */
const char *byi_guard_binary(int major, const struct byi_binary *p,
                             const struct byi_posts *posts)
{
    (void)major;
    const struct byi_desc *dst = &p->dst;
    const bool usual = byi_desc_is_plain(dst) || byi_desc_is_last(dst);
    int64_t space = 1;
    for (uint32_t i = 2; i < dst->rank; i++)
        space *= dst->dims[i];
    for (uint32_t k = 0; posts && k < posts->n; k++) {
        const struct byi_desc *d = &posts->at[k].desc;
        if (posts->at[k].kind == BYI_POST_PRELU)
            return "oneDNN takes no prelu beside a binary operator";
        if (posts->at[k].kind != BYI_POST_BIN ||
            byi_elements(d->rank, d->dims) == 1 ||
            byi_dims_equal(d->rank, d->dims, dst->rank, dst->dims))
            continue;
        if (!usual || is_wide(d) || (dst->rank > 2 && space == 1))
            return "oneDNN computes a post-op operand of this shape wrongly "
                   "beside a binary operator";
    }
    return NULL;
}

/* 2.x: the im2col convolutions in channels-last misread such operands, and with
 * groups a vector of channels too: each group gets that of the first; in three
 * dimensions they shift it from plane to plane. The depthwise ones read whole
 * registers of them, past the end of the operand. */
const char *byi_guard_impl(int major, const struct byi_conv *p,
                           const struct byi_posts *posts, const char *impl)
{
    const bool groups = p->weights.rank > p->window.n + 2;
    /* 2.x: groups whose channels are no multiple of 16 come out wrong */
    if (p->weights.dtype == BYOC_I8 && strstr(impl, "gemm"))
        return "oneDNN would multiply integers by a matrix product, which is "
               "slow, and in 2.x wrong";
    if (!posts || major >= 3)
        return NULL;
    for (uint32_t i = 0; i < posts->n && strstr(impl, "dw:sse41"); i++)
        if (posts->at[i].kind == BYI_POST_SUM)
            return "oneDNN 2.x adds to what lies unaligned in a depthwise "
                   "convolution on SSE4.1, which crashes";
    const bool depthwise = strstr(impl, "dw") && p->dst.dims[1] % 16 != 0;
    for (uint32_t i = 0; i < posts->n && depthwise; i++)
        if (posts->at[i].kind == BYI_POST_BIN &&
            byi_elements(posts->at[i].desc.rank, posts->at[i].desc.dims) > 1)
            return "oneDNN 2.x would read past the end of an operand that is "
                   "fused into a depthwise convolution";
    for (uint32_t i = 0; i < posts->n && strstr(impl, "gemm"); i++) {
        const struct byi_desc *d = &posts->at[i].desc;
        if (posts->at[i].kind == BYI_POST_BIN &&
            (is_wide(d) || ((groups || p->window.n == 3) &&
                            byi_elements(d->rank, d->dims) > 1)))
            return "oneDNN 2.x would fuse this tensor operand into a "
                   "convolution by matrix product, which is wrong";
    }
    return NULL;
}
