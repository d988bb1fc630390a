/* sample.c: kernels that read images between their pixels: grid_sample (Spatial
 * Transformer Networks, arXiv:1506.02025, with PyTorch's rules at borders) and
 * roi_align (Mask R-CNN, arXiv:1703.06870).
 */
#include "core/resample.h"

#include "move.h"

/* --- grid_sample -------------------------------------------------------- */

enum { MAX_POINTS = 16 };

enum padding { ZEROS, BORDER, REFLECTION };

struct sampler {
    uint32_t taps; /* along each axis: nearest 1, bilinear 2, bicubic 4 */
    enum padding padding;
    bool align;
    int64_t height, width;
};

/* Fold `at` back and forth into the axis: about its first and last pixel's
 * centres where corners are aligned, else about their outer edges. */
static double reflect(double at, int64_t size, bool align)
{
    const double low = align ? 0 : -0.5;
    const double span = align ? (double)(size - 1) : (double)size;
    if (span <= 0)
        return 0;
    double away = fmod(fabs(at - low), 2 * span);
    if (away > span)
        away = 2 * span - away;
    return away + low;
}

/* A coordinate by the padding mode, kept where an integer can hold it. What
 * is no number is far outside. */
static double settle(const struct sampler *s, double at, int64_t size)
{
    const double last = (double)(size - 1);
    if (s->padding != ZEROS && isfinite(at)) {
        if (s->padding == REFLECTION)
            at = reflect(at, size, s->align);
        at = at < 0 ? 0 : at > last ? last : at;
    } else if (s->padding != ZEROS) {
        at = at > 0 ? last : 0;
    }
    return at > -1e9 && at < 1e9 ? at : -100;
}

/* Taps of one axis: indices, -1 where nothing is read, and weights. */
static void axis_taps(const struct sampler *s, double where, int64_t size,
                      int64_t *index, double *w)
{
    /* -1 .. 1 spans the pixels' centres, or their outer edges */
    const double at = s->align ? (where + 1) / 2 * (double)(size - 1)
                               : ((where + 1) * (double)size - 1) / 2;
    const double settled = s->taps == 4 ? (at > -1e9 && at < 1e9 ? at : -100)
                                        : settle(s, at, size);
    double first = floor(settled);
    if (s->taps == 1) {
        first = nearbyint(settled);
        w[0] = 1;
    } else if (s->taps == 2) {
        w[1] = settled - first;
        w[0] = 1 - w[1];
    } else {
        first -= 1; /* Keys' kernel with a = -0.75, as PyTorch */
        for (uint32_t t = 0; t < s->taps; t++)
            w[t] = byi_cubic_weight(-0.75, first + t - settled);
    }
    for (uint32_t t = 0; t < s->taps; t++) {
        double i = first + t;
        if (s->taps == 4)
            i = settle(s, i, size);
        index[t] = i >= 0 && i < (double)size ? (int64_t)i : -1;
    }
}

/* The points that one output position reads in every channel. */
static uint32_t points_of(const struct sampler *s, double x, double y,
                          int64_t *offset, double *weight)
{
    int64_t ix[4], iy[4];
    double wx[4], wy[4];
    uint32_t n = 0;
    axis_taps(s, x, s->width, ix, wx);
    axis_taps(s, y, s->height, iy, wy);
    for (uint32_t r = 0; r < s->taps; r++)
        for (uint32_t c = 0; c < s->taps; c++)
            if (iy[r] >= 0 && ix[c] >= 0) {
                offset[n] = iy[r] * s->width + ix[c];
                weight[n++] = wy[r] * wx[c];
            }
    return n;
}

/* x (N, C, H, W), grid (N, h, w, 2) of (x, y): y (N, C, h, w) */
static enum byoc_status grid_sample_float(const struct byi_call *call,
                                          struct byoc_error *err)
{
    (void)err;
    const struct byi_tensor *x = call->in, *grid = &call->in[1];
    const char *mode = byi_attr_string(call->attrs, "mode");
    const char *padding = byi_attr_string(call->attrs, "padding_mode");
    const struct sampler s = {
        .taps = mode[0] == 'n'                  ? 1
                : strcmp(mode, "bilinear") == 0 ? 2
                                                : 4,
        .padding = padding[0] == 'z'   ? ZEROS
                   : padding[0] == 'b' ? BORDER
                                       : REFLECTION,
        .align = byi_attr_int(call->attrs, "align_corners") != 0,
        .height = x->dims[2],
        .width = x->dims[3],
    };
    const int64_t channels = x->dims[1], plane = s.height * s.width;
    const int64_t n = grid->dims[1] * grid->dims[2];
    const int64_t total = grid->dims[0] * n;
    const int team = byi_team(call, total * channels * 8);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t g = 0; g < total; g++) {
        int64_t offset[MAX_POINTS];
        double weight[MAX_POINTS];
        const uint32_t points =
            points_of(&s, byi_get_real(grid, 2 * g),
                      byi_get_real(grid, 2 * g + 1), offset, weight);
        for (int64_t c = 0; c < channels; c++) {
            const int64_t image = g / n * channels + c;
            double sum = 0;
            for (uint32_t p = 0; p < points; p++)
                sum += weight[p] * byi_get_real(x, image * plane + offset[p]);
            byi_put_real(call->out, image * n + g % n, sum);
        }
    }
    return BYOC_OK;
}

/* --- roi_align ---------------------------------------------------------- */

enum { MAX_GRID = 4096 };

/* One region on the pixels of x, cut into bins of sample points. */
struct region {
    double top, left; /* first bin's corner    */
    double bin_h, bin_w;
    int64_t rows, cols; /* sample points per bin */
    int64_t batch;
};

static enum byoc_status read_region(const struct byi_call *call, int64_t i,
                                    struct region *r, struct byoc_error *err)
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
    if (!half) { /* the older behaviour: at least one pixel */
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
    if (!(rows <= MAX_GRID && cols <= MAX_GRID) || !isfinite(r->left) ||
        !isfinite(r->top) || !isfinite(width) || !isfinite(height))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: roi %lld needs %g by %g points a bin, expected "
                        "at most %d and finite corners",
                        call->op->name, (long long)i, rows, cols, MAX_GRID);
    r->rows = rows > 0 ? (int64_t)rows : 0;
    r->cols = cols > 0 ? (int64_t)cols : 0;
    return BYOC_OK;
}

/* Two neighbours and the share of the second; false: outside by a pixel. */
static bool neighbours(double at, int64_t size, int64_t *low, int64_t *high,
                       double *share)
{
    if (at < -1 || at > (double)size)
        return false;
    at = at < 0 ? 0 : at;
    *low = (int64_t)at;
    *high = *low + 1;
    *share = at - (double)*low;
    if (*low >= size - 1) {
        *low = *high = size - 1;
        *share = 0;
    }
    return true;
}

/* The plane of x at (row, col), bilinearly; outside is 0. */
static double read_between(const struct byi_tensor *x, int64_t plane,
                           double row, double col)
{
    const int64_t h = x->dims[2], w = x->dims[3];
    int64_t r0, r1, c0, c1;
    double dr, dc;
    if (!neighbours(row, h, &r0, &r1, &dr) ||
        !neighbours(col, w, &c0, &c1, &dc))
        return 0;
    const int64_t at = plane * h * w;
    return (1 - dr) * ((1 - dc) * byi_get_real(x, at + r0 * w + c0) +
                       dc * byi_get_real(x, at + r0 * w + c1)) +
           dr * ((1 - dc) * byi_get_real(x, at + r1 * w + c0) +
                 dc * byi_get_real(x, at + r1 * w + c1));
}

/* One bin: the mean or the maximum of its sample points. */
static double pool_bin(const struct byi_tensor *x, const struct region *r,
                       int64_t plane, int64_t bin_row, int64_t bin_col,
                       bool maximum)
{
    double result = maximum ? -INFINITY : 0;
    const int64_t count = r->rows * r->cols;
    for (int64_t i = 0; i < r->rows; i++) {
        const double row =
            r->top +
            ((double)bin_row + ((double)i + 0.5) / (double)r->rows) * r->bin_h;
        for (int64_t j = 0; j < r->cols; j++) {
            const double col = r->left + ((double)bin_col +
                                          ((double)j + 0.5) / (double)r->cols) *
                                             r->bin_w;
            const double value = read_between(x, plane, row, col);
            result = maximum ? fmax(result, value) : result + value;
        }
    }
    if (count == 0)
        return 0;
    return maximum ? result : result / (double)count;
}

/* x (N, C, H, W), rois (n, 4) of x1 y1 x2 y2, batch (n): y (n, C, h, w) */
static enum byoc_status roi_align_float(const struct byi_call *call,
                                        struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    const bool maximum = byi_attr_string(call->attrs, "mode")[0] == 'm';
    const int64_t channels = y->dims[1], h = y->dims[2], w = y->dims[3];
    if (x->dims[2] == 0 || x->dims[3] == 0)
        return byi_fail(err, BYOC_EINVAL, "%s: x has no pixels, expected some",
                        call->op->name);
    for (int64_t i = 0; i < y->dims[0]; i++) {
        struct region r;
        BYI_TRY(read_region(call, i, &r, err));
        const int team =
            byi_team(call, channels * h * w * (r.rows * r.cols * 8 + 1));
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t b = 0; b < channels * h * w; b++)
            byi_put_real(y, i * channels * h * w + b,
                         pool_bin(x, &r, r.batch * channels + b / (h * w),
                                  b % (h * w) / w, b % w, maximum));
    }
    return BYOC_OK;
}

/* --- roi_pool ------------------------------------------------------------ */

/* Pixels [*first, *end) of bin `bin` of an axis: the region is `size` pixels
 * from `begin` on, cut into `bins` parts that share the pixels between. */
static void bin_pixels(double begin, double size, int64_t bins, int64_t bin,
                       int64_t pixels, int64_t *first, int64_t *end)
{
    const double part = size / (double)bins;
    const double low = floor((double)bin * part) + begin;
    const double high = ceil((double)(bin + 1) * part) + begin;
    *first = (int64_t)fmin(fmax(low, 0), (double)pixels);
    *end = (int64_t)fmin(fmax(high, 0), (double)pixels);
}

static double max_of_bin(const struct byi_tensor *x, int64_t plane,
                         const int64_t row[2], const int64_t col[2])
{
    const int64_t at = plane * x->dims[2] * x->dims[3];
    double most = -INFINITY;
    for (int64_t i = row[0]; i < row[1]; i++)
        for (int64_t j = col[0]; j < col[1]; j++)
            most = fmax(most, byi_get_real(x, at + i * x->dims[3] + j));
    return row[0] < row[1] && col[0] < col[1] ? most : 0;
}

/* x (N, C, H, W), rois (n, 5) of batch x1 y1 x2 y2, whose corners are rounded
 * to pixels, the last of which belong to the region: y (n, C, h, w) (Girshick:
 * "Fast R-CNN", 2015, 2.1) */
static enum byoc_status roi_pool_float(const struct byi_call *call,
                                       struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *rois = x + 1, *y = call->out;
    const double scale = byi_attr_float(call->attrs, "spatial_scale");
    const int64_t channels = y->dims[1], h = y->dims[2], w = y->dims[3];
    for (int64_t i = 0; i < y->dims[0]; i++) {
        double roi[5];
        for (int k = 0; k < 5; k++)
            roi[k] = k ? round(byi_get_real(rois, i * 5 + k) * scale)
                       : byi_get_real(rois, i * 5);
        if (!(roi[0] >= 0 && roi[0] < (double)x->dims[0]) ||
            !isfinite(roi[1] + roi[2] + roi[3] + roi[4]))
            return byi_fail(err, BYOC_EINVAL,
                            "%s: roi %lld has batch index %g, expected 0 to "
                            "%lld, and finite corners",
                            call->op->name, (long long)i, roi[0],
                            (long long)x->dims[0] - 1);
        const double rows = fmax(roi[4] - roi[2] + 1, 1);
        const double cols = fmax(roi[3] - roi[1] + 1, 1);
        const int64_t first = (int64_t)roi[0] * channels;
        const int team =
            byi_team(call, channels * byi_span(x, 2, 4) + channels * h * w);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t b = 0; b < channels * h * w; b++) {
            int64_t row[2], col[2];
            bin_pixels(roi[2], rows, h, b % (h * w) / w, x->dims[2], &row[0],
                       &row[1]);
            bin_pixels(roi[1], cols, w, b % w, x->dims[3], &col[0], &col[1]);
            byi_put_real(y, i * channels * h * w + b,
                         max_of_bin(x, first + b / (h * w), row, col));
        }
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(roi_pool, roi_pool_float, NULL)
BYI_FLOAT_KERNEL(grid_sample, grid_sample_float, NULL)
BYI_FLOAT_KERNEL(roi_align, roi_align_float, NULL)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_GRID_SAMPLE, {grid_sample_run, grid_sample_scratch}},
    {BYI_OP_ROI_ALIGN, {roi_align_run, roi_align_scratch}},
    {BYI_OP_ROI_POOL, {roi_pool_run, roi_pool_scratch}},
};
const struct byi_kernel_rows byi_rows_sample = {rows, BYI_COUNT(rows)};
