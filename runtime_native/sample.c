/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c: kernels that sample images between pixels: grid_sample (Spatial
 * Transformer Networks, arXiv:1506.02025, with PyTorch's border rules),
 * roi_align (Mask R-CNN, arXiv:1703.06870) and roi_pool (Fast R-CNN).
 */
#include "move.h"

#include "core/ops/sample.h"
#include "kernels/conv.h"

/* --- grid_sample -------------------------------------------------------- */

/* A chunk of CHUNK positions has one list of offsets and one of weights. A
 * block of up to BLOCK_CHUNKS chunks makes its lists first and then samples one
 * plane after the other. All its chunks then read a plane while it is in the
 * cache. */
enum { CHUNK = 256, BLOCK_CHUNKS = 16 };

/* With fewer channels, sampling plane by plane takes less time than copies of
 * the image and of the result between channels-first and channels-last. */
enum { MIN_CHANNELS = 8 };

/* x (N, C, H, W), grid (N, h, w, 2) of (x, y): y (N, C, h, w); or the same with
 * a depth axis. */
struct sampling {
    struct byi_sampler s;
    const struct byi_tensor *x, *grid;
    int64_t channels, n;    /* n positions per image */
    int64_t chunks, blocks; /* per image              */
    int64_t list_size;      /* elements of each list  */
    int64_t strip;          /* positions that are sampled in all channels of a
                             * channels-last copy; 0: one plane after the other */
};

static struct sampling sampling_of(const struct byi_call *call)
{
    const struct byi_tensor *x = call->in, *grid = &call->in[1];
    struct sampling g = {.s = byi_sampler_read(call->attrs, x),
                         .x = x,
                         .grid = grid,
                         .channels = x->dims[1],
                         .n = byi_span(grid, 1, grid->rank - 1)};
    g.chunks = byi_ceil_div(g.n, CHUNK);
    g.blocks = byi_max(byi_ceil_div(g.chunks, BLOCK_CHUNKS),
                       byi_min(g.chunks, call->threads));
    g.list_size = (int64_t)g.s.points * CHUNK;
    if (x->dtype == BYOC_F32 && g.s.points > 1 && g.s.plane <= INT32_MAX &&
        g.channels >= MIN_CHANNELS)
        g.strip = byi_max(16, byi_min(64, 4096 / g.channels));
    return g;
}

/* Return the image of chunk i, and set *from and *n: its positions are [*from,
 * *from + *n). */
static int64_t chunk_of(const struct sampling *g, int64_t i, int64_t *from,
                        int64_t *n)
{
    *from = i % g->chunks * CHUNK;
    *n = byi_min(CHUNK, g->n - *from);
    return i / g->chunks;
}

/* Write the lists of chunks [first, first + n) to `to`: of each chunk the
 * offsets of pixels, then the weights. */
static void list_chunks(const struct sampling *g, int64_t first, int64_t n,
                        float *to)
{
    for (int64_t i = 0; i < n; i++, to += 2 * g->list_size) {
        int64_t from, positions;
        const int64_t image = chunk_of(g, first + i, &from, &positions);
        byi_sampler_list(&g->s, g->grid, image * g->n + from, positions, CHUNK,
                         (int32_t *)(void *)to, to + g->list_size);
    }
}

/* Make the lists of a constant grid, chunk by chunk. Returns their bytes, or 0
 * if the run uses no lists, as for images that are not float32, or if the size
 * of the images is not known. */
uint64_t byi_grid_sample_pack(const struct byi_call *call, void *to)
{
    if (call->in->dtype != BYOC_F32 || !byi_dtype_is_wide(call->in[1].dtype))
        return 0;
    for (uint32_t i = 2; i < call->in->rank; i++)
        if (call->in->dims[i] <= 0)
            return 0;
    const struct sampling g = sampling_of(call);
    const int64_t chunks = call->in[1].dims[0] * g.chunks;
    if (g.s.plane > INT32_MAX)
        return 0;
    if (to) {
        memset(to, 0, (size_t)(2 * chunks * g.list_size) * sizeof(float));
        list_chunks(&g, 0, chunks, to);
    }
    return (uint64_t)(2 * chunks * g.list_size) * sizeof(float);
}

/* Bytes of the lists of a block. */
static uint64_t block_bytes(const struct sampling *g)
{
    const int64_t chunks = byi_min(g->chunks, BLOCK_CHUNKS);
    return byi_align_bytes((uint64_t)(2 * chunks * g->list_size) *
                           sizeof(float));
}

/* Bytes of scratch of a thread: the lists of a block, and a strip. */
static uint64_t thread_bytes(const struct sampling *g)
{
    return block_bytes(g) +
           byi_align_bytes((uint64_t)(g->strip * g->channels) * sizeof(float));
}

/* Floats of the copy, which has a pixel of zeros at its end. */
static int64_t copy_floats(const struct sampling *g)
{
    return g->strip ? (g->x->dims[0] * g->s.plane + 1) * g->channels : 0;
}

/* The scratch of the threads, then the copy. */
static uint64_t lists_scratch(const struct byi_call *call)
{
    const struct sampling g = sampling_of(call);
    return thread_bytes(&g) * call->threads +
           (uint64_t)copy_floats(&g) * sizeof(float);
}

/* Copy x to (N, pixels, C) at `copy`. */
static void copy_pixels(const struct byi_call *call, const struct sampling *g,
                        float *copy)
{
    enum { PIXELS = 1024 }; /* of a task; an image has `tasks` tasks */
    const int64_t images = g->x->dims[0], plane = g->s.plane;
    const int64_t tasks = byi_ceil_div(plane, PIXELS);
    const int team = byi_team(call, images * plane * g->channels);
    const struct byi_f32_kernels *kernels = byi_f32_kernels_of(byi_simd_isa());
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < images * tasks; i++) {
        const int64_t image = i / tasks, from = i % tasks * PIXELS;
        byi_f32_transpose(
            kernels,
            (const float *)g->x->data + image * g->channels * plane + from,
            plane, g->channels, byi_min(PIXELS, plane - from),
            copy + (image * plane + from) * g->channels, g->channels);
    }
    memset(copy + images * plane * g->channels, 0,
           (size_t)g->channels * sizeof *copy);
}

/* The lists of a chunk, and the positions that they are for. */
struct sample_chunk {
    const int32_t *at;
    const float *weight;
    int64_t image, from, n;
};

/* Sample a chunk from the channels-last copy, strip by strip. */
static void sample_strips(const struct byi_call *call, const struct sampling *g,
                          const struct sample_chunk *c, const float *copy,
                          float *strip)
{
    const int64_t channels = g->channels;
    const float *x = copy + c->image * g->s.plane * channels;
    const float *zeros = copy + g->x->dims[0] * g->s.plane * channels;
    float *y = (float *)call->out->data + c->image * channels * g->n + c->from;
    for (int64_t j = 0; j < c->n; j += g->strip) {
        const int64_t n = byi_min(g->strip, c->n - j);
        byi_simd()->sample_pixels(g->s.points, c->at + j, c->weight + j, CHUNK,
                                  x, zeros, channels, strip, n);
        byi_f32_transpose(byi_f32_kernels_of(byi_simd_isa()), strip, channels,
                          n, channels, y + j, g->n);
    }
}

/* Sample a chunk in one channel. */
static void sample_plane(const struct byi_call *call, const struct sampling *g,
                         const struct sample_chunk *c, int64_t channel)
{
    const int64_t plane = c->image * g->channels + channel;
    byi_simd()->sample(g->s.points, c->at, c->weight, CHUNK,
                       (const float *)g->x->data + plane * g->s.plane,
                       (float *)call->out->data + plane * g->n + c->from, c->n);
}

/* Sample a block; `scratch` is the thread's, and `copy` the channels-last copy,
 * if g->strip. */
static void sample_block(const struct byi_call *call, const struct sampling *g,
                         int64_t block, char *scratch, const float *copy)
{
    const int64_t image = block / g->blocks, index = block % g->blocks;
    const int64_t begin = g->chunks * index / g->blocks;
    const int64_t end = g->chunks * (index + 1) / g->blocks;
    const int64_t first = image * g->chunks;
    float *lists = (float *)(void *)scratch;
    float *strip = (float *)(void *)(scratch + block_bytes(g));
    if (call->packed)
        lists = (float *)(uintptr_t)call->packed +
                2 * (first + begin) * g->list_size;
    else
        list_chunks(g, first + begin, end - begin, lists);
    for (int64_t k = 0; k < (g->strip ? 1 : g->channels); k++)
        for (int64_t i = begin; i < end; i++) {
            const float *list = lists + 2 * (i - begin) * g->list_size;
            struct sample_chunk c = {.at = (const int32_t *)(const void *)list,
                                     .weight = list + g->list_size};
            c.image = chunk_of(g, first + i, &c.from, &c.n);
            if (g->strip)
                sample_strips(call, g, &c, copy, strip);
            else
                sample_plane(call, g, &c, k);
        }
}

/* Sample one position in every channel, in float64. */
static void sample_double(const struct byi_call *call, const struct sampling *g,
                          int64_t i)
{
    int64_t offset[BYI_SAMPLE_MAX_POINTS + 1];
    double weight[BYI_SAMPLE_MAX_POINTS + 1];
    const uint32_t points =
        byi_sampler_points(&g->s, g->grid, i, offset, weight);
    for (int64_t c = 0; c < g->channels; c++) {
        const int64_t plane = i / g->n * g->channels + c;
        double sum = 0;
        for (uint32_t p = 0; p < points; p++)
            sum +=
                weight[p] * byi_get_real(g->x, plane * g->s.plane + offset[p]);
        byi_put_real(call->out, plane * g->n + i % g->n, sum);
    }
}

enum byoc_status byi_grid_sample_plain(const struct byi_call *call,
                                       struct byoc_error *err)
{
    const struct sampling g = sampling_of(call);
    const int64_t total = g.grid->dims[0] * g.n;
    const int team = byi_team(call, total * g.channels * 8);
    (void)err;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < total; i++)
        sample_double(call, &g, i);
    return BYOC_OK;
}

static enum byoc_status grid_sample_float(const struct byi_call *call,
                                          struct byoc_error *err)
{
    const struct sampling g = sampling_of(call);
    const int64_t blocks = g.grid->dims[0] * g.blocks;
    const bool lists =
        call->in->dtype == BYOC_F32 && g.s.plane > 0 && g.s.plane <= INT32_MAX;
    if (!lists)
        return byi_grid_sample_plain(call, err);
    const int64_t team =
        byi_min(byi_team(call, g.grid->dims[0] * g.n * g.channels * g.s.points),
                blocks);
    float *copy = (float *)(void *)((char *)call->scratch +
                                    thread_bytes(&g) * call->threads);
    if (g.strip)
        copy_pixels(call, &g, copy);
#pragma omp parallel for num_threads((int)team) if (team > 1) schedule(static)
    for (int64_t p = 0; p < team; p++) {
        char *scratch = (char *)call->scratch + (uint64_t)p * thread_bytes(&g);
        for (int64_t i = blocks * p / team; i < blocks * (p + 1) / team; i++)
            sample_block(call, &g, i, scratch, copy);
    }
    return BYOC_OK;
}

/* --- roi_align ---------------------------------------------------------- */

enum { MAX_GRID = 4096 }; /* sample points of a bin along an axis */

/* One region of interest (roi), in pixels, divided into bins of sample points.
 */
struct roi_grid {
    double top, left; /* first bin's corner    */
    double bin_h, bin_w;
    int64_t rows, cols; /* sample points per bin */
    int64_t batch;
};

/* Read roi i. Errors: BYOC_EINVAL. */
static enum byoc_status read_roi(const struct byi_call *call, int64_t i,
                                 struct roi_grid *r, struct byoc_error *err)
{
    const struct byi_attrs *attrs = call->attrs;
    const struct byi_tensor *x = call->in, *rois = &call->in[1];
    const bool half =
        strcmp(byi_attr_string(attrs, "coordinate_transformation_mode"),
               "half_pixel") == 0;
    const double scale = byi_attr_float(attrs, "spatial_scale");
    const double shift = half ? 0.5 : 0;
    const int64_t ratio = byi_attr_int(attrs, "sampling_ratio");
    r->left = byi_get_real(rois, 4 * i) * scale - shift;
    r->top = byi_get_real(rois, 4 * i + 1) * scale - shift;
    double width = byi_get_real(rois, 4 * i + 2) * scale - shift - r->left;
    double height = byi_get_real(rois, 4 * i + 3) * scale - shift - r->top;
    if (!half) { /* legacy mode: at least one pixel */
        width = fmax(width, 1);
        height = fmax(height, 1);
    }
    r->bin_w = width / (double)call->out->dims[3];
    r->bin_h = height / (double)call->out->dims[2];
    const double rows = ratio > 0 ? (double)ratio : ceil(r->bin_h);
    const double cols = ratio > 0 ? (double)ratio : ceil(r->bin_w);
    r->batch = byi_index_at(&call->in[2], i);
    if (r->batch < 0 || r->batch >= x->dims[0])
        return byi_fail(err, BYOC_EINVAL,
                        "%s: batch index %lld of roi %lld is out of range, "
                        "expected 0 to %lld",
                        call->op->name, (long long)r->batch, (long long)i,
                        (long long)x->dims[0] - 1);
    if (!isfinite(r->left) || !isfinite(r->top) || !isfinite(width) ||
        !isfinite(height))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: roi %lld is at (%s, %s) and %s by %s, expected "
                        "finite numbers",
                        call->op->name, (long long)i, BYI_FLOAT_TEXT(r->left),
                        BYI_FLOAT_TEXT(r->top), BYI_FLOAT_TEXT(width),
                        BYI_FLOAT_TEXT(height));
    if (!(rows <= MAX_GRID && cols <= MAX_GRID))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: roi %lld needs %s by %s sample points per bin, "
                        "expected at most %d on each side",
                        call->op->name, (long long)i, BYI_FLOAT_TEXT(rows),
                        BYI_FLOAT_TEXT(cols), MAX_GRID);
    r->rows = rows > 0 ? (int64_t)rows : 0;
    r->cols = cols > 0 ? (int64_t)cols : 0;
    return BYOC_OK;
}

/* Find the two pixels next to `at` and the weight of the second one; false if
 * `at` is more than a pixel outside of the image. */
static bool find_neighbours(double at, int64_t size, int64_t *low,
                            int64_t *high, double *weight)
{
    if (at < -1 || at > (double)size)
        return false;
    at = at < 0 ? 0 : at;
    *low = (int64_t)at;
    *high = *low + 1;
    *weight = at - (double)*low;
    if (*low >= size - 1) {
        *low = *high = size - 1;
        *weight = 0;
    }
    return true;
}

/* The four pixels around a sample point, and the weights of bilinear
 * interpolation. */
struct roi_point {
    int64_t at[4];
    double weight[4];
};

/* Find the pixels of a sample point; false if the point is more than a pixel
 * outside of the image, where x counts as 0. */
static bool find_point(const struct byi_tensor *x, double row, double col,
                       struct roi_point *p)
{
    const int64_t h = x->dims[2], w = x->dims[3];
    int64_t r[2], c[2];
    double dr, dc;
    if (!find_neighbours(row, h, &r[0], &r[1], &dr) ||
        !find_neighbours(col, w, &c[0], &c[1], &dc))
        return false;
    const double rows[2] = {1 - dr, dr}, cols[2] = {1 - dc, dc};
    for (int i = 0; i < 4; i++) {
        p->at[i] = r[i / 2] * w + c[i % 2];
        p->weight[i] = rows[i / 2] * cols[i % 2];
    }
    return true;
}

enum { ROI_PLANES = 64 }; /* channels of a bin that are pooled together */

/* Add a sample point to the sums or maxima of n planes of x, from `plane` on.
 * `p` is NULL for a point outside of the image, which counts as 0. */
static void add_point(const struct byi_tensor *x, const struct roi_point *p,
                      int64_t plane, int64_t n, bool maximum, double *sums)
{
    const int64_t size = x->dims[2] * x->dims[3];
    for (int64_t k = 0; k < n; k++) {
        double v[4] = {0};
        for (int i = 0; p && i < 4; i++)
            v[i] =
                p->weight[i] * byi_get_real(x, (plane + k) * size + p->at[i]);
        sums[k] = maximum
                      ? fmax(sums[k], fmax(fmax(v[0], v[1]), fmax(v[2], v[3])))
                      : sums[k] + (v[0] + v[1] + v[2] + v[3]);
    }
}

/* The row or the column of sample point `i` of `n` in a bin. */
static double sample_at(double first, int64_t bin, double size, int64_t i,
                        int64_t n)
{
    return first + ((double)bin + ((double)i + 0.5) / (double)n) * size;
}

/* Compute one bin of n planes: the means or the maxima of its sample points. */
static void pool_bin(const struct byi_tensor *x, const struct roi_grid *r,
                     int64_t plane, int64_t n, int64_t bin_row, int64_t bin_col,
                     bool maximum, double *results)
{
    const int64_t count = r->rows * r->cols;
    for (int64_t k = 0; k < n; k++)
        results[k] = maximum && count ? -INFINITY : 0;
    for (int64_t i = 0; i < r->rows; i++) {
        const double row = sample_at(r->top, bin_row, r->bin_h, i, r->rows);
        for (int64_t j = 0; j < r->cols; j++) {
            const double col =
                sample_at(r->left, bin_col, r->bin_w, j, r->cols);
            struct roi_point p;
            add_point(x, find_point(x, row, col, &p) ? &p : NULL, plane, n,
                      maximum, results);
        }
    }
    for (int64_t k = 0; !maximum && count && k < n; k++)
        results[k] /= (double)count;
}

/* Compute bin `bin` of roi i in all channels. */
static void align_bin(const struct byi_call *call, const struct roi_grid *r,
                      int64_t i, int64_t bin, bool maximum)
{
    const struct byi_tensor *y = call->out;
    const int64_t channels = y->dims[1], w = y->dims[3];
    const int64_t bins = y->dims[2] * w;
    double results[ROI_PLANES];
    for (int64_t c = 0; c < channels; c += ROI_PLANES) {
        const int64_t n = byi_min(ROI_PLANES, channels - c);
        pool_bin(call->in, r, r->batch * channels + c, n, bin / w, bin % w,
                 maximum, results);
        for (int64_t k = 0; k < n; k++)
            byi_put_real(y, (i * channels + c + k) * bins + bin, results[k]);
    }
}

enum { ROI_POINTS = 512 }; /* sample points that are listed together */

/* The sample points of some bins, without those outside of the image. */
struct roi_list {
    int32_t at[ROI_POINTS][4];
    float weight[ROI_POINTS][4];
    int64_t end[ROI_POINTS]; /* of each bin: 1 + its last point */
};

/* Whether the roi's bins are computed plane by plane. */
static bool uses_list(const struct byi_call *call, const struct roi_grid *r)
{
    const struct byi_tensor *x = call->in;
    return x->dtype == BYOC_F32 && r->rows * r->cols > 0 &&
           r->rows * r->cols <= ROI_POINTS &&
           x->dims[2] <= INT32_MAX / x->dims[3];
}

/* List the sample points of bin `bin`, from number n on; returns their end. */
static int64_t list_points(const struct byi_call *call,
                           const struct roi_grid *r, int64_t bin, int64_t n,
                           struct roi_list *list)
{
    const int64_t w = call->out->dims[3];
    for (int64_t i = 0; i < r->rows * r->cols; i++) {
        struct roi_point p;
        const double row =
            sample_at(r->top, bin / w, r->bin_h, i / r->cols, r->rows);
        const double col =
            sample_at(r->left, bin % w, r->bin_w, i % r->cols, r->cols);
        if (!find_point(call->in, row, col, &p))
            continue;
        for (int k = 0; k < 4; k++) {
            list->at[n][k] = (int32_t)p.at[k];
            list->weight[n][k] = (float)p.weight[k];
        }
        n++;
    }
    return n;
}

/* The sum of sample points [n, end) of a plane. */
static float sum_points(const struct roi_list *list, int64_t n, int64_t end,
                        const float *plane)
{
    float sum[4] = {0};
    for (; n < end; n++)
        for (int k = 0; k < 4; k++)
            sum[k] += list->weight[n][k] * plane[list->at[n][k]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The maximum of `least` and the weighted pixels of sample points [n, end) of a
 * plane, without NaN. */
static float max_points(const struct roi_list *list, int64_t n, int64_t end,
                        const float *plane, float least)
{
    float most[4] = {least, least, least, least};
    for (; n < end; n++)
        for (int k = 0; k < 4; k++) {
            const float v = list->weight[n][k] * plane[list->at[n][k]];
            most[k] = v > most[k] ? v : most[k];
        }
    return fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
}

/* Compute bins [first, first + n) of roi i in all channels. Plane by plane,
 * since pixels of several planes may share few sets of a cache. A point outside
 * of the image, which counts as 0, is not listed. */
static void pool_listed_bins(const struct byi_call *call,
                             const struct roi_grid *r, int64_t i, int64_t first,
                             int64_t n, bool maximum)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    const int64_t channels = y->dims[1], bins = y->dims[2] * y->dims[3];
    const int64_t size = x->dims[2] * x->dims[3];
    const int64_t count = r->rows * r->cols;
    struct roi_list list;
    for (int64_t b = 0, end = 0; b < n; b++)
        list.end[b] = end = list_points(call, r, first + b, end, &list);
    const float *plane = (const float *)x->data + r->batch * channels * size;
    float *to = (float *)y->data + i * channels * bins + first;
    for (int64_t c = 0; c < channels; c++, plane += size, to += bins)
        for (int64_t b = 0, at = 0; b < n; at = list.end[b++])
            to[b] =
                maximum
                    ? max_points(&list, at, list.end[b], plane,
                                 list.end[b] - at < count ? 0 : -INFINITY)
                    : sum_points(&list, at, list.end[b], plane) / (float)count;
}

/* Compute bins [begin, end) of roi i. */
static void align_bins(const struct byi_call *call, const struct roi_grid *r,
                       int64_t i, int64_t begin, int64_t end, bool maximum)
{
    if (!uses_list(call, r)) {
        for (int64_t b = begin; b < end; b++)
            align_bin(call, r, i, b, maximum);
        return;
    }
    const int64_t most = ROI_POINTS / (r->rows * r->cols);
    for (int64_t b = begin; b < end; b += most)
        pool_listed_bins(call, r, i, b, byi_min(most, end - b), maximum);
}

/* x (N, C, H, W), rois (n, 4) of x1 y1 x2 y2, batch (n): y (n, C, h, w) */
static enum byoc_status roi_align_float(const struct byi_call *call,
                                        struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    const bool maximum = byi_attr_string(call->attrs, "mode")[0] == 'm';
    const int64_t bins = y->dims[2] * y->dims[3];
    if (x->dims[2] == 0 || x->dims[3] == 0)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: x has height %lld and width %lld, expected at "
                        "least 1",
                        call->op->name, (long long)x->dims[2],
                        (long long)x->dims[3]);
    const int64_t n = y->dims[0];
    int64_t work = 0;
    for (int64_t i = 0; i < n; i++) { /* reports rois that are not valid */
        struct roi_grid r;
        BYI_TRY(read_roi(call, i, &r, err));
        work += y->dims[1] * bins * (r.rows * r.cols * 8 + 1);
    }
    const int team = byi_team(call, work);
    const int64_t parts = n < team ? team : 1; /* tasks of a roi */
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t task = 0; task < n * parts; task++) {
        const int64_t i = task / parts, part = task % parts;
        struct roi_grid r;
        if (read_roi(call, i, &r, NULL) != BYOC_OK)
            continue;
        align_bins(call, &r, i, bins * part / parts, bins * (part + 1) / parts,
                   maximum);
    }
    return BYOC_OK;
}

/* --- roi_pool ------------------------------------------------------------ */

/* Find the pixels [*first, *end) of bin `bin` along an axis of a roi, which has
 * `size` pixels from `begin` on; the image has `pixels`. Adjacent bins may
 * share a pixel. */
static void bin_pixels(double begin, double size, int64_t bins, int64_t bin,
                       int64_t pixels, int64_t *first, int64_t *end)
{
    const double part = size / (double)bins;
    const double low = floor((double)bin * part) + begin;
    const double high = ceil((double)(bin + 1) * part) + begin;
    *first = low <= 0 ? 0 : low < (double)pixels ? (int64_t)low : pixels;
    *end = high <= 0 ? 0 : high < (double)pixels ? (int64_t)high : pixels;
}

/* The pixels of the bins of a roi, as pairs of the first and the end: of each
 * row of bins, then of each column of bins. */
static int64_t (*bins_of(const struct byi_call *call))[2]
{
    return call->scratch;
}

/* The bins, then a row of maxima for each thread. */
static uint64_t roi_pool_bytes(const struct byi_call *call)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    return (uint64_t)(y->dims[2] + y->dims[3]) * 2 * sizeof(int64_t) +
           (uint64_t)x->dims[3] * sizeof(double) * call->threads;
}

/* The maximum of two elements, or NaN. */
#define MAX_OR_NAN(most, at) (((at) > (most)) | isnan(at) ? (at) : (most))

/* Compute a row of bins of one plane: the maxima of columns of pixels, whose
 * loop can be vectorised, then those of bins. An empty bin has the result 0. */
#define POOL_ROW(id, type)                                                     \
    static void pool_row_##id(const struct byi_tensor *x, int64_t plane,       \
                              const int64_t row[2], const int64_t(*cols)[2],   \
                              int64_t w, type *most, type *y)                  \
    {                                                                          \
        const int64_t pitch = x->dims[3], begin = cols[0][0];                  \
        const int64_t n = cols[w - 1][1] - begin;                              \
        const type *at = (const type *)x->data +                               \
                         (plane * x->dims[2] + row[0]) * pitch + begin;        \
        if (row[0] < row[1] && n > 0)                                          \
            memcpy(most, at, (size_t)n * sizeof *at);                          \
        for (int64_t i = row[0] + 1; i < row[1]; i++) {                        \
            at += pitch;                                                       \
            for (int64_t j = 0; j < n; j++)                                    \
                most[j] = MAX_OR_NAN(most[j], at[j]);                          \
        }                                                                      \
        for (int64_t b = 0; b < w; b++) {                                      \
            const bool empty = row[0] >= row[1] || cols[b][0] >= cols[b][1];   \
            type v = empty ? 0 : most[cols[b][0] - begin];                     \
            for (int64_t j = cols[b][0] + 1; !empty && j < cols[b][1]; j++)    \
                v = MAX_OR_NAN(v, most[j - begin]);                            \
            y[b] = v;                                                          \
        }                                                                      \
    }
BYI_EACH_FLOAT(POOL_ROW)

/* Read roi i: its batch index and its corners, in pixels. */
static enum byoc_status read_pool_roi(const struct byi_call *call, int64_t i,
                                      double roi[5], struct byoc_error *err)
{
    const double scale = byi_attr_float(call->attrs, "spatial_scale");
    const struct byi_tensor *x = call->in;
    for (int k = 0; k < 5; k++)
        roi[k] = k ? round(byi_get_real(x + 1, i * 5 + k) * scale)
                   : byi_get_real(x + 1, i * 5);
    if (!(roi[0] >= 0 && roi[0] < (double)x->dims[0]))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: batch index %s of roi %lld is out of range, "
                        "expected 0 to %lld",
                        call->op->name, BYI_FLOAT_TEXT(roi[0]), (long long)i,
                        (long long)x->dims[0] - 1);
    if (!isfinite(roi[1] + roi[2] + roi[3] + roi[4]))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: roi %lld has corners (%s, %s) and (%s, %s), "
                        "expected finite ones",
                        call->op->name, (long long)i, BYI_FLOAT_TEXT(roi[1]),
                        BYI_FLOAT_TEXT(roi[2]), BYI_FLOAT_TEXT(roi[3]),
                        BYI_FLOAT_TEXT(roi[4]));
    return BYOC_OK;
}

/* Compute the bins of roi i of plane `plane` of the result. */
static void pool_plane(const struct byi_call *call, int64_t i, int64_t batch,
                       int64_t plane, double *most)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    const int64_t channels = y->dims[1], h = y->dims[2], w = y->dims[3];
    const int64_t(*bins)[2] = (const int64_t(*)[2])bins_of(call);
    for (int64_t row = 0; row < h; row++) {
        const int64_t at = ((i * channels + plane) * h + row) * w;
        if (x->dtype == BYOC_F32)
            pool_row_F32(x, batch * channels + plane, bins[row], bins + h, w,
                         (float *)(void *)most, (float *)y->data + at);
        else
            pool_row_F64(x, batch * channels + plane, bins[row], bins + h, w,
                         most, (double *)y->data + at);
    }
}

/* x (N, C, H, W), rois (n, 5) of batch x1 y1 x2 y2, with corners rounded to
 * pixels, inclusive: y (n, C, h, w) (Girshick: "Fast R-CNN", 2015, 2.1) */
static enum byoc_status roi_pool_float(const struct byi_call *call,
                                       struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    const int64_t channels = y->dims[1], h = y->dims[2], w = y->dims[3];
    int64_t(*bins)[2] = bins_of(call);
    double *most = (double *)(void *)(bins + h + w);
    for (int64_t i = 0; i < y->dims[0] && h && w; i++) {
        double roi[5];
        BYI_TRY(read_pool_roi(call, i, roi, err));
        const double rows = fmax(roi[4] - roi[2] + 1, 1);
        const double cols = fmax(roi[3] - roi[1] + 1, 1);
        for (int64_t b = 0; b < h; b++)
            bin_pixels(roi[2], rows, h, b, x->dims[2], &bins[b][0],
                       &bins[b][1]);
        for (int64_t b = 0; b < w; b++)
            bin_pixels(roi[1], cols, w, b, x->dims[3], &bins[h + b][0],
                       &bins[h + b][1]);
        const int team =
            byi_team(call, channels * byi_span(x, 2, 4) + channels * h * w);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t c = 0; c < channels; c++)
            pool_plane(call, i, (int64_t)roi[0], c,
                       most + byi_part_number() * x->dims[3]);
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(roi_pool, roi_pool_float, roi_pool_bytes)
BYI_FLOAT_KERNEL(grid_sample, grid_sample_float, lists_scratch)
BYI_FLOAT_KERNEL(roi_align, roi_align_float, NULL)

BYI_KERNEL_ROWS(sample,
                {BYI_OP_GRID_SAMPLE, {grid_sample_run, grid_sample_scratch}},
                {BYI_OP_ROI_ALIGN, {roi_align_run, roi_align_scratch}},
                {BYI_OP_ROI_POOL, {roi_pool_run, roi_pool_scratch}})
