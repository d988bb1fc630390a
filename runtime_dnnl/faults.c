/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/faults.c: refuses legal descriptors on which oneDNN crashes or
 * computes wrong results. They were found by comparing oneDNN's results for
 * random descriptors with those of plain loops, as
 * tests/runtime_dnnl/layer_random_test.c does. Each check names the affected
 * versions. The checks are called when a match is probed, so that no region
 * contains such a descriptor. */
#include "runtime_dnnl/layer.h"

#include <string.h>

/* All versions: 2.6's matmul divides by zero if a dim is 0, and no version
 * gains anything from empty tensors. oneDNN's kernels count rows in int, so a
 * matmul of 2^32 rows also divides by zero. */
const char *byi_fault_desc(const struct byi_desc *desc)
{
    if (desc->rank == 0 || desc->rank > BYI_MAX_RANK)
        return "found a tensor of rank 0 or above 12, expected rank 1 to 12";
    for (uint32_t i = 0; i < desc->rank; i++) {
        if (desc->dims[i] <= 0)
            return "found an empty tensor, expected at least one element";
        if (desc->dims[i] > INT32_MAX)
            return "found a dim over 2^31 - 1, expected one that oneDNN can "
                   "count in 32 bits";
    }
    if (byi_elements(desc->rank, desc->dims) < 0)
        return "found a tensor of more than 2^63 elements, expected fewer";
    return NULL;
}

/* 2.x: whether two post-ops are one function with different parameters. A
 * primitive has one table of constants per function, so the second one would
 * read the constants of the first one. */
static bool share_constants(const struct byi_post *a, const struct byi_post *b)
{
    return a->kind == BYI_POST_ELT && b->kind == BYI_POST_ELT &&
           a->alg == b->alg && (a->alpha != b->alpha || a->beta != b->beta);
}

const char *byi_fault_posts(int major, const struct byi_posts *posts)
{
    if (!posts)
        return NULL;
    uint32_t slopes = 0;
    for (uint32_t i = 0; i < posts->n; i++)
        slopes += posts->at[i].kind == BYI_POST_PRELU;
    if (slopes && major < 3)
        return "found prelu as a post-op, expected none, since oneDNN 2.x has "
               "it only in its reference implementations";
    if (slopes > 1)
        return "found several prelu post-ops, expected at most one per "
               "primitive";
    /* 3.x: the reference kernels index slopes by the first five axes only */
    for (uint32_t i = 0; i < posts->n; i++)
        if (posts->at[i].kind == BYI_POST_PRELU && posts->at[i].desc.rank > 5)
            return "found a prelu post-op of more than 5 axes, expected at "
                   "most 5, since oneDNN 3.x misreads its slopes";
    for (uint32_t i = 0; i < posts->n && major < 3; i++)
        for (uint32_t j = i + 1; j < posts->n; j++)
            if (share_constants(&posts->at[i], &posts->at[j]))
                return "found two post-ops of one function with different "
                       "parameters, expected different functions, since "
                       "oneDNN 2.x confuses their parameters";
    return NULL;
}

/* Whether the window of output o of an axis covers an element of the input. */
static bool sees_input(const struct byi_dnnl_window *w, uint32_t axis,
                       int64_t o, int64_t extent)
{
    const int64_t first = o * w->stride[axis] - w->begin[axis];
    const int64_t d = w->dilation[axis];
    const int64_t skip = first >= 0 ? 0 : (-first + d - 1) / d;
    return skip < w->kernel[axis] && first + skip * d < extent;
}

/* Such outputs are at the ends, except where a dilated window steps over the
 * whole input. The loop checks that, and is short whenever padding is large
 * compared with the input. */
bool byi_window_misses_input(const struct byi_dnnl_window *w,
                             const struct byi_desc *src,
                             const struct byi_desc *dst, uint32_t axis)
{
    const int64_t extent = src->dims[2 + axis];
    const int64_t n = dst->dims[2 + axis];
    for (int64_t o = 0; o < n; o++) {
        const int64_t first = o * w->stride[axis] - w->begin[axis];
        if (first >= 0 && first < extent) {
            /* the window begins inside: continue where its begin leaves the
             * input */
            o += (extent - 1 - first) / w->stride[axis];
            continue;
        }
        if (!sees_input(w, axis, o, extent))
            return true;
    }
    return false;
}

const char *byi_fault_conv(int major, const struct byi_dnnl_conv *p,
                           const struct byi_posts *posts)
{
    (void)posts;
    const struct byi_dnnl_window *w = &p->window;
    /* 3.7 to 3.12.1: wrong results, rarely */
    const uint32_t first = p->weights.rank > w->n + 2; /* skips the groups */
    if (p->weights.dtype == BYOC_I8 && p->weights.dims[first + 1] == 1 &&
        p->weights.dims[first] > 1)
        return "found an integer convolution of one input channel and several "
               "output channels per group, expected several input channels, "
               "since oneDNN computes wrong results";
    for (uint32_t i = 0; i < w->n && !p->deconv; i++) {
        /* all versions: wrong results or a crash with post-ops */
        if (byi_window_misses_input(w, &p->src, &p->dst, i))
            return "found a window of the convolution that lies entirely in "
                   "the padding, expected it to cover part of the input";
        /* a dilated window of more than 3 taps, most of them outside of the
         * input, crashes all versions; if it steps over the whole input, 2.x is
         * wrong */
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const bool padded = w->begin[i] > reach / 2 || w->end[i] > reach / 2;
        if (w->dilation[i] > 1 && w->kernel[i] > 3 &&
            (padded || (major < 3 && reach >= p->src.dims[2 + i])))
            return "found a dilated window of more than 3 taps that extends "
                   "far beyond the input, expected most taps inside, since "
                   "oneDNN crashes or computes wrong results";
    }
    return NULL;
}

/* Whether a matrix is stored by columns with other matrices of its batch in
 * between, or the batch axes are stored in another order. */
static bool is_scattered(const struct byi_desc *d)
{
    const int64_t row = d->strides[d->rank - 2], col = d->strides[d->rank - 1];
    const bool by_columns = d->dims[d->rank - 1] > 1 && col > row;
    int64_t outer = INT64_MAX;
    for (uint32_t i = 0; i + 2 < d->rank && d->kind == BYI_DESC_STRIDED; i++) {
        if (d->dims[i] == 1)
            continue;
        if (d->strides[i] > outer ||
            (by_columns && d->strides[i] < col * d->dims[d->rank - 1]))
            return true;
        outer = d->strides[i];
    }
    return false;
}

/* Whether the rows of the matrices of a batch with three or more axes are
 * interleaved, as in a transposed attention. */
static bool is_interleaved(const struct byi_desc *d)
{
    const int64_t rows = d->dims[d->rank - 2], row = d->strides[d->rank - 2];
    if (d->rank < 5 || d->kind != BYI_DESC_STRIDED || rows == 1)
        return false;
    for (uint32_t i = 0; i + 2 < d->rank; i++)
        if (d->dims[i] > 1 && d->strides[i] < row * rows)
            return true;
    return false;
}

bool byi_desc_permutes_batch(const struct byi_desc *d)
{
    if (d->kind != BYI_DESC_STRIDED)
        return false;
    const struct byi_desc canonical = byi_desc_canonical(d, BYI_UNITS_PLAIN);
    for (uint32_t i = 1; i + 2 < d->rank; i++)
        if (canonical.strides[i] > canonical.strides[i - 1])
            return true;
    return false;
}

const char *byi_fault_matmul(int major, const struct byi_dnnl_matmul *p,
                             const struct byi_posts *posts)
{
    (void)posts;
    if (major >= 3 && is_scattered(&p->src))
        return "found a source whose batch is stored between its columns or "
               "in another order, expected the order of its axes, since oneDNN "
               "3.x misreads it";
    /* 3.12.1 with AVX-512 */
    if (major >= 3 && is_interleaved(&p->src))
        return "found a source of rank 5 or more whose batch is stored between "
               "its rows, expected whole matrices, since oneDNN 3.x misreads "
               "it";
    if (major >= 3 && byi_desc_permutes_batch(&p->weights))
        return "found weights whose batch is stored in another order, expected "
               "the order of their axes, since oneDNN 3.x misreads them";
    /* 3.12.1, for example a result (11, 5, 5, 11) stored by its second axis */
    if (major >= 3 && byi_desc_permutes_batch(&p->dst))
        return "found a result whose batch is stored in another order, "
               "expected the order of its axes, since oneDNN 3.x writes it to "
               "wrong addresses";
    /* 2.6, and 3.x up to 3.12.1: weights that are broadcast over the whole
     * batch cause a crash or wrong results; callers fold the batch into M */
    int64_t src_batch = 1, weights_batch = 1;
    for (uint32_t i = 0; i + 2 < p->dst.rank; i++) {
        src_batch *= p->src.dims[i];
        weights_batch *= p->weights.dims[i];
    }
    if (weights_batch == 1 && src_batch > 1)
        return "found weights that broadcast over the whole batch, expected "
               "the batch folded into M";
    return NULL;
}

/* All versions accept sum and binary post-ops on pooling, resampling and
 * normalisation, and then ignore or misread them. */
const char *byi_fault_elt_only(const struct byi_posts *posts)
{
    for (uint32_t i = 0; posts && i < posts->n; i++)
        if (posts->at[i].kind != BYI_POST_ELT)
            return "found a post-op with an operand, expected only elementwise "
                   "post-ops, since oneDNN fuses no others here";
    return NULL;
}

/* 2.6 computes post-ops of batch normalisation other than ReLU one element at a
 * time, which is slower than a primitive of their own. */
const char *byi_fault_batch_norm(const struct byi_posts *posts)
{
    const uint32_t n = posts ? posts->n : 0;
    if (n == 0 || (n == 1 && posts->at->kind == BYI_POST_ELT &&
                   posts->at->alg == BYI_ELT_RELU && posts->at->alpha == 0))
        return NULL;
    return "found post-ops other than one ReLU, expected none, since oneDNN "
           "computes them without vectors here";
}

const char *byi_fault_pool(int major, const struct byi_dnnl_pool *p)
{
    (void)major;
    const struct byi_dnnl_window *w = &p->window;
    for (uint32_t i = 0; i < w->n; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (w->begin[i] >= reach || w->end[i] >= reach)
            return "found padding as large as the window of the pooling, "
                   "expected smaller padding";
        /* all versions: the maximum of no elements is -FLT_MAX, not -infinity
         */
        if (byi_window_misses_input(w, &p->src, &p->dst, i))
            return "found a window of the pooling that lies entirely in the "
                   "padding, expected it to cover part of the input";
    }
    return NULL;
}

/* 2.x on SSE4.1: the kernel processes channels in two halves of a vector of 8.
 * If no remaining channel is in the second half, generating the post-ops
 * crashes. */
const char *byi_fault_pool_impl(int major, const struct byi_dnnl_pool *p,
                                const struct byi_posts *posts, const char *impl)
{
    const int64_t last_block = p->src.dims[1] % 8;
    if (major < 3 && posts && posts->n && strstr(impl, "sse41") &&
        last_block > 0 && last_block <= 4)
        return "found post-ops of a pooling over a number of channels of which "
               "1 to 4 remain after multiples of 8, expected none, since "
               "oneDNN 2.x crashes on SSE4.1";
    return NULL;
}

/* All versions: per-channel slopes are correct for row-major and channels-last
 * data; oneDNN treats any other axis order as one of these. */
const char *byi_fault_prelu(const struct byi_dnnl_prelu *p)
{
    const struct byi_desc *src = &p->src, *slopes = &p->weights;
    if (byi_desc_is_row_major(src) || byi_desc_is_channels_last(src) ||
        byi_elements(slopes->rank, slopes->dims) == 1 ||
        byi_dims_equal(src->rank, src->dims, slopes->rank, slopes->dims))
        return NULL;
    return "found a prelu on data that is neither row-major nor channels-last, "
           "expected one of these, since oneDNN misreads the slopes";
}

/* Whether the operand is neither a scalar nor one value per channel. */
static bool is_wide(const struct byi_desc *operand)
{
    for (uint32_t i = 0; i < operand->rank; i++)
        if (i != 1 && operand->dims[i] != 1)
            return true;
    return false;
}

/* All versions: in binary primitives, operands of post-ops are read correctly
 * if they are scalars, whole tensors or vectors of channels. Vectors of
 * channels are misread if there is a single spatial position, since oneDNN then
 * confuses row-major with channels-last. They are also misread if the axes are
 * in any other order. 3.x misreads vectors along other axes. */
const char *byi_fault_binary(int major, const struct byi_dnnl_binary *p,
                             const struct byi_posts *posts)
{
    (void)major;
    const struct byi_desc *dst = &p->dst;
    const bool known_order =
        byi_desc_is_row_major(dst) || byi_desc_is_channels_last(dst);
    const int64_t space =
        dst->rank > 2 ? byi_elements(dst->rank - 2, dst->dims + 2) : 1;
    for (uint32_t k = 0; posts && k < posts->n; k++) {
        const struct byi_desc *d = &posts->at[k].desc;
        if (posts->at[k].kind == BYI_POST_PRELU)
            return "found prelu as a post-op of a binary operator, expected "
                   "none, since oneDNN refuses it";
        if (posts->at[k].kind != BYI_POST_BIN ||
            byi_elements(d->rank, d->dims) == 1 ||
            byi_dims_equal(d->rank, d->dims, dst->rank, dst->dims))
            continue;
        if (!known_order || is_wide(d) || (dst->rank > 2 && space == 1))
            return "found a post-op operand of a binary operator that is "
                   "neither one value, nor a whole tensor, nor one value per "
                   "channel, expected one of these, since oneDNN misreads it";
    }
    return NULL;
}

bool byi_varies_by_threads(int major, const char *impl, uint32_t axes)
{
    /* all versions: the general matrix product, also of im2col convolutions,
     * divides long sums among the threads, and chooses its blocks by their
     * number; 3.12: convolutions along one axis, and transposed convolutions,
     * split their sums where the part of a thread begins */
    return strstr(impl, "gemm:jit") ||
           (major >= 3 && ((axes == 1 && strstr(impl, "brg_conv_fwd:avx2")) ||
                           strstr(impl, "brgconv_strided:avx2")));
}

/* 2.x: channels-last im2col convolutions misread wide operands of post-ops.
 * With groups they also misread vectors of channels, since they use those of
 * the first group for every group. In three dimensions they shift them from
 * plane to plane. Depthwise convolutions read whole registers, past the end of
 * the operand. */
const char *byi_fault_impl(int major, const struct byi_dnnl_conv *p,
                           const struct byi_posts *posts, const char *impl)
{
    const bool groups = p->weights.rank > p->window.n + 2;
    /* all versions: slow; 2.x: also wrong unless the channels of a group are a
     * multiple of 16 */
    if (p->weights.dtype == BYOC_I8 && strstr(impl, "gemm"))
        return "found an integer convolution that oneDNN runs as a matrix "
               "product, expected another implementation, since this is slow, "
               "and wrong in 2.x";
    if (!posts || major >= 3)
        return NULL;
    for (uint32_t i = 0; i < posts->n && strstr(impl, "dw:sse41"); i++)
        if (posts->at[i].kind == BYI_POST_SUM)
            return "found a sum post-op of a depthwise convolution, expected "
                   "none, since oneDNN 2.x crashes on unaligned data on SSE4.1";
    const bool depthwise = strstr(impl, "dw") && p->dst.dims[1] % 16 != 0;
    for (uint32_t i = 0; i < posts->n && depthwise; i++)
        if (posts->at[i].kind == BYI_POST_BIN &&
            byi_elements(posts->at[i].desc.rank, posts->at[i].desc.dims) > 1)
            return "found a post-op operand of a depthwise convolution whose "
                   "channels are no multiple of 16, expected one value, since "
                   "oneDNN 2.x reads past the operand's end";
    for (uint32_t i = 0; i < posts->n && strstr(impl, "gemm"); i++) {
        const struct byi_desc *d = &posts->at[i].desc;
        if (posts->at[i].kind == BYI_POST_BIN &&
            (is_wide(d) || ((groups || p->window.n == 3) &&
                            byi_elements(d->rank, d->dims) > 1)))
            return "found a post-op operand of a convolution by matrix "
                   "product, expected one value or, without groups and on at "
                   "most two axes, one value per channel, since oneDNN 2.x "
                   "misreads others";
    }
    return NULL;
}
