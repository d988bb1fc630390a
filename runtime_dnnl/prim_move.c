/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_move.c: implements primitives that byoc's own kernels run
 * at the speed of memory. These are concatenations, pools, copies of float16
 * and bfloat16 data, and transpositions of float32 images and of images of few
 * channels of bytes.
 */
#include "core/base/openmp.h"
#include "runtime_dnnl/prim_fast.h"

#include <string.h>

/* --- pools ---------------------------------------------------------------- */

static const char *pool_name(const struct byi_dn_fast *fast)
{
    return fast->pool.kernels->pool_name;
}

static uint64_t pool_scratch(const struct byi_dn_fast *fast)
{
    return byi_f32_pool_scratch(&fast->pool, fast->threads);
}

static void run_pool(const struct byi_dn_fast *fast, uint32_t n,
                     const struct byi_dn_fast_slot *slots, void *scratch,
                     int threads)
{
    byi_f32_pool_run(&fast->pool, byi_dn_fast_find(n, slots, BYI_ARG_SRC),
                     byi_dn_fast_find(n, slots, BYI_ARG_DST), scratch, threads);
}

static const struct byi_dn_fast_kind pool_kind = {
    .name = pool_name,
    .scratch = pool_scratch,
    .run = run_pool,
};

bool byi_dn_fast_pool(const struct byi_dnnl_pool *p,
                      const struct byi_posts *posts, struct byi_dn_fast *fast)
{
    const uint32_t n = p->window.n, skip = BYI_F32_AXES - n;
    struct byi_f32_pool *pool = &fast->pool;
    const enum byoc_dtype dtype = p->src.dtype;
    const bool bytes = dtype == BYOC_U8 || dtype == BYOC_I8;
    const bool mean = p->kind != BYI_POOL_MAX;
    if ((!bytes && dtype != BYOC_F32 && !byi_dtype_is_half(dtype)) ||
        (posts && posts->n) || !byi_dn_is_dense_last(&p->src, dtype) ||
        !byi_dn_is_dense_last(&p->dst, mean && bytes ? BYOC_F32 : dtype))
        return false;
    *fast = (struct byi_dn_fast){.kind = &pool_kind};
    *pool = (struct byi_f32_pool){
        .kernels = byi_f32_kernels(),
        .type = dtype == BYOC_U8   ? (uint32_t)BYI_F32_U8
                : dtype == BYOC_I8 ? (uint32_t)BYI_F32_I8
                                   : (uint32_t)byi_f32_type_of(dtype),
        .mean = mean,
        .padded = p->kind == BYI_POOL_AVG_PAD,
        .zero = mean && bytes ? (float)p->zero : 0,
        .scale = mean && bytes ? p->scale : 1,
        .images = p->src.dims[0],
        .channels = p->src.dims[1]};
    for (uint32_t i = 0; i < BYI_F32_AXES; i++) {
        const bool exists = i >= skip;
        pool->in[i] = exists ? p->src.dims[2 + i - skip] : 1;
        pool->out[i] = exists ? p->dst.dims[2 + i - skip] : 1;
        pool->size[i] = exists ? p->window.kernel[i - skip] : 1;
        pool->stride[i] = exists ? p->window.stride[i - skip] : 1;
        pool->dilation[i] = exists ? p->window.dilation[i - skip] : 1;
        pool->pad[i] = exists ? p->window.begin[i - skip] : 0;
    }
    fast->threads = omp_get_max_threads();
    for (uint32_t i = 0; i < n; i++)
        if (byi_window_misses_input(&p->window, &p->src, &p->dst, i))
            return false;
    return !(mean && bytes &&
             byi_f32_product_of(pool->size) > BYI_F32_MAX_BYTES);
}

/* --- concatenations ------------------------------------------------------- */

static const char *move_name(const struct byi_dn_fast *fast)
{
    (void)fast;
    return "copy";
}

/* Copy bytes [at, end) of the destination `to`, whose rows have `row_bytes`
 * bytes. */
static void copy_sources(const struct byi_dn_fast *fast,
                         const char *const *from, int64_t row_bytes, char *to,
                         int64_t at, int64_t end)
{
    for (int64_t o = at / row_bytes; at < end; o++) {
        int64_t first =
            o * row_bytes; /* first byte of the source's part of row o */
        for (uint32_t i = 0; i < fast->n_sources && first < end; i++) {
            const int64_t length = fast->length[i], skip = at - first;
            const int64_t n = byi_min(first + length, end) - at;
            if (n > 0)
                memcpy(to + at, from[i] + o * fast->pitch[i] + skip, (size_t)n);
            at += byi_max(n, 0);
            first += length;
        }
    }
}

/* Write rows [row, end) of the destination, in which the elements alternate. */
static void interleave_sources(const struct byi_dn_fast *fast,
                               const char *const *from, char *to, int64_t row,
                               int64_t end)
{
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    const uint32_t n = fast->n_sources;
    const int64_t columns = fast->length[0] / fast->element;
    for (; row < end; row++) {
        const float *rows[3];
        const uint16_t *halves[3];
        void *at = to + row * n * fast->length[0];
        for (uint32_t i = 0; i < n; i++) {
            const void *source = from[i] + row * fast->pitch[i];
            rows[i] = source;
            halves[i] = source;
        }
        if (fast->element == sizeof(float))
            kernels->interleave_rows[n - 2](rows, columns, at);
        else
            byi_halves_interleave(halves, n, columns, at);
    }
}

static void run_concat(const struct byi_dn_fast *fast, uint32_t n,
                       const struct byi_dn_fast_slot *slots, void *scratch,
                       int threads)
{
    enum { PART = 1 << 16 }; /* bytes for which another thread saves time */
    const char *from[BYI_DN_SOURCES];
    int64_t row_bytes = 0;
    for (uint32_t i = 0; i < fast->n_sources; i++) {
        from[i] = byi_dn_fast_find(n, slots, BYI_ARG_MULTI + (int)i);
        row_bytes += fast->length[i];
    }
    char *to = byi_dn_fast_find(n, slots, BYI_ARG_DST);
    const int64_t bytes = fast->outer * row_bytes;
    const int team = (int)byi_min(byi_max(bytes / PART, 1), threads);
    (void)scratch;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int i = 0; i < team; i++)
        if (fast->interleaves)
            interleave_sources(fast, from, to, fast->outer * i / team,
                               fast->outer * (i + 1) / team);
        else
            copy_sources(fast, from, row_bytes, to, bytes * i / team,
                         bytes * (i + 1) / team);
}

static const struct byi_dn_fast_kind concat_kind = {
    .name = move_name,
    .run = run_concat,
};

/* Whether the elements of two or three sources alternate. Sets *row to the
 * elements of a source in a row of the destination. */
static bool sources_alternate(const struct byi_dnnl_concat *p, int64_t *row)
{
    const struct byi_desc *dst = &p->dst;
    const uint32_t bytes = byoc_dtype_size(dst->dtype);
    if (p->n < 2 || p->n > 3 || (bytes != 2 && bytes != 4) ||
        dst->dims[p->axis] != p->n || dst->strides[p->axis] != 1)
        return false;
    for (uint32_t i = 0; i < dst->rank; i++)
        if (dst->dims[i] > 1 && dst->strides[i] == p->n) {
            *row = dst->dims[i];
            return true;
        }
    return false;
}

int64_t byi_dn_row_pitch(const struct byi_desc *src,
                         const struct byi_desc *like, int64_t row)
{
    int64_t pitch = 0;
    if (src->dtype != like->dtype || src->rank != like->rank)
        return 0;
    for (uint32_t i = 0; i < src->rank; i++) {
        const int64_t stride = src->strides[i], dense = like->strides[i];
        if (src->dims[i] == 1)
            continue;
        if (dense < row ? stride != dense
                        : stride <= 0 || stride * row % dense != 0)
            return 0;
        if (dense < row)
            continue;
        if (pitch && stride * row / dense != pitch)
            return 0;
        pitch = stride * row / dense;
    }
    return pitch ? pitch : row;
}

int64_t byi_dn_concat_row(const struct byi_dnnl_concat *p, uint32_t i)
{
    int64_t row;
    if (sources_alternate(p, &row))
        return row;
    return p->src[i].dims[p->axis] * p->dst.strides[p->axis];
}

bool byi_dn_fast_concat(const struct byi_dnnl_concat *p,
                        struct byi_dn_fast *fast)
{
    const int64_t size = (int64_t)byoc_dtype_size(p->dst.dtype);
    *fast = (struct byi_dn_fast){.kind = &concat_kind, .n_sources = p->n};
    if (p->n > BYI_DN_SOURCES || p->dst.dims[p->axis] == 1 ||
        !byi_dn_is_dense(&p->dst))
        return false;
    int64_t row;
    fast->interleaves = sources_alternate(p, &row);
    fast->element = byoc_dtype_size(p->dst.dtype);
    row = fast->interleaves ? row * p->n
                            : p->dst.dims[p->axis] * p->dst.strides[p->axis];
    fast->outer = byi_elements(p->dst.rank, p->dst.dims) / row;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct byi_desc like = byi_dn_dense_like(&p->dst, p->src[i].dims);
        const int64_t length = byi_dn_concat_row(p, i);
        const int64_t pitch = byi_dn_row_pitch(&p->src[i], &like, length);
        if (pitch == 0)
            return false;
        fast->length[i] = length * size;
        fast->pitch[i] = pitch * size;
    }
    fast->threads = omp_get_max_threads();
    return true;
}

/* --- copies --------------------------------------------------------------- */

static void run_reorder(const struct byi_dn_fast *fast, uint32_t n,
                        const struct byi_dn_fast_slot *slots, void *scratch,
                        int threads)
{
    (void)scratch;
    byi_f32_move_run(&fast->move, byi_dn_fast_find(n, slots, BYI_ARG_SRC),
                     byi_dn_fast_find(n, slots, BYI_ARG_DST), threads);
}

static bool reorders_alike(const struct byi_dn_fast *a,
                           const struct byi_dn_fast *b)
{
    const size_t bytes = a->move.rank * sizeof *a->move.dims;
    return a->move.rank == b->move.rank &&
           memcmp(a->move.dims, b->move.dims, bytes) == 0 &&
           memcmp(a->move.from, b->move.from, bytes) == 0 &&
           memcmp(a->move.to, b->move.to, bytes) == 0;
}

static const struct byi_dn_fast_kind reorder_kind = {
    .name = move_name,
    .packs_alike = reorders_alike,
    .run = run_reorder,
};

static void run_transpose(const struct byi_dn_fast *fast, uint32_t n,
                          const struct byi_dn_fast_slot *slots, void *scratch,
                          int threads)
{
    const struct byi_f32_move *m = &fast->move;
    const struct byi_i8_kernels *k = byi_i8_kernels();
    const uint8_t *from = byi_dn_fast_find(n, slots, BYI_ARG_SRC);
    uint8_t *to = byi_dn_fast_find(n, slots, BYI_ARG_DST);
    const int64_t columns = m->dims[m->rank - 2], rows = m->dims[m->rank - 1];
    const int64_t images = m->rank == 3 ? m->dims[0] : 1;
    (void)scratch;
#pragma omp parallel for num_threads(threads) if (images > 1) schedule(static)
    for (int64_t i = 0; i < images; i++)
        k->transpose(from + i * rows * columns, rows, columns,
                     to + i * rows * columns);
}

static const struct byi_dn_fast_kind transpose_kind = {
    .name = move_name,
    .packs_alike = reorders_alike,
    .run = run_transpose,
};

/* Transpose float32 images; threads share an image. */
static void run_transpose_f32(const struct byi_dn_fast *fast, uint32_t n,
                              const struct byi_dn_fast_slot *slots,
                              void *scratch, int threads)
{
    enum { PART = 1 << 14 }; /* elements for which another thread saves time */
    const struct byi_f32_move *m = &fast->move;
    const float *from = byi_dn_fast_find(n, slots, BYI_ARG_SRC);
    float *to = byi_dn_fast_find(n, slots, BYI_ARG_DST);
    const int64_t columns = m->dims[m->rank - 2], rows = m->dims[m->rank - 1];
    const int64_t images = m->rank == 3 ? m->dims[0] : 1;
    const int64_t parts = byi_min(byi_ceil_div(columns * rows, PART),
                                  byi_ceil_div(columns, BYI_F32_PANEL));
    const int64_t total = images * parts;
    const int team = (int)byi_min(total, threads);
    (void)scratch;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < total; i++) {
        const int64_t image = i / parts * rows * columns;
        const int64_t first = columns * (i % parts) / parts;
        const int64_t end = columns * (i % parts + 1) / parts;
        byi_f32_transpose(byi_f32_kernels(), from + image + first, columns,
                          rows, end - first, to + image + first * rows, rows);
    }
}

static const struct byi_dn_fast_kind transpose_f32_kind = {
    .name = move_name,
    .packs_alike = reorders_alike,
    .run = run_transpose_f32,
};

/* Whether the move transposes images of at most `max_channels` channels. */
static bool is_transpose(const struct byi_f32_move *m, int64_t max_channels)
{
    if (m->rank < 2 || m->rank > 3)
        return false;
    const uint32_t c = m->rank - 2, r = m->rank - 1;
    const int64_t image = m->dims[c] * m->dims[r];
    return m->dims[r] <= max_channels && m->from[c] == 1 &&
           m->from[r] == m->dims[c] && m->to[r] == 1 &&
           m->to[c] == m->dims[r] &&
           (c == 0 || (m->from[0] == image && m->to[0] == image));
}

bool byi_dn_fast_reorder(const struct byi_dnnl_reorder *p,
                         const struct byi_posts *posts,
                         struct byi_dn_fast *fast)
{
    const bool bytes = p->src.dtype == BYOC_U8 || p->src.dtype == BYOC_I8;
    const bool wide = p->src.dtype == BYOC_F32;
    *fast = (struct byi_dn_fast){.kind = bytes  ? &transpose_kind
                                         : wide ? &transpose_f32_kind
                                                : &reorder_kind};
    if ((!bytes && !wide && !byi_dtype_is_half(p->src.dtype)) ||
        (posts && posts->n) || p->dst.dtype != p->src.dtype ||
        p->src.rank > BYI_MOVE_RANK ||
        byi_elements(p->src.rank, p->src.dims) == 0)
        return false;
    fast->move.rank = p->src.rank;
    memcpy(fast->move.dims, p->src.dims, p->src.rank * sizeof *p->src.dims);
    memcpy(fast->move.from, p->src.strides,
           p->src.rank * sizeof *p->src.strides);
    memcpy(fast->move.to, p->dst.strides, p->src.rank * sizeof *p->dst.strides);
    byi_f32_move_plan(&fast->move);
    fast->threads = omp_get_max_threads();
    return (!bytes && !wide) ||
           is_transpose(&fast->move, bytes ? 4 : INT64_MAX);
}
