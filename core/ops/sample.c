/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c: lists the points that image.grid_sample reads. A grid's coordinates
 * go from -1 to 1 over an axis; the rules at borders are PyTorch's (Spatial
 * Transformer Networks, arXiv:1506.02025).
 */
#include "sample.h"

#include <math.h>
#include <string.h>

#include "resample.h"

struct byi_sampler byi_sampler_read(const struct byi_attrs *attrs,
                                    const struct byi_tensor *x)
{
    const char *mode = byi_attr_string(attrs, "mode");
    const char *padding = byi_attr_string(attrs, "padding_mode");
    struct byi_sampler s = {
        .axes = x->rank - 2,
        .taps = mode[0] == 'n'                  ? 1
                : strcmp(mode, "bilinear") == 0 ? 2
                                                : 4,
        .padding = padding[0] == 'z'   ? BYI_SAMPLE_ZEROS
                   : padding[0] == 'b' ? BYI_SAMPLE_BORDER
                                       : BYI_SAMPLE_REFLECTION,
        .align = byi_attr_int(attrs, "align_corners") != 0,
        .points = 1,
        .plane = 1,
    };
    for (uint32_t i = 0; i < s.axes; i++) {
        s.dims[i] = x->dims[i + 2];
        s.plane *= s.dims[i];
        s.points *= s.taps;
    }
    return s;
}

/* Fold `at` back and forth into the axis: about the centres of its first and
 * last pixel if corners are aligned, otherwise about their outer edges. */
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

/* Apply the padding mode to a coordinate. With zeros, NaN and coordinates that
 * may overflow an integer become -100, outside of every axis. With the other
 * modes, NaN and -infinity become 0, and infinity the last pixel. */
static double pad_coordinate(const struct byi_sampler *s, double at,
                             int64_t size)
{
    const double last = (double)(size - 1);
    if (s->padding != BYI_SAMPLE_ZEROS && isfinite(at)) {
        if (s->padding == BYI_SAMPLE_REFLECTION)
            at = reflect(at, size, s->align);
        at = at < 0 ? 0 : at > last ? last : at;
    } else if (s->padding != BYI_SAMPLE_ZEROS) {
        at = at > 0 ? last : 0;
    }
    return at > -1e9 && at < 1e9 ? at : -100;
}

/* The pixel of a coordinate. If corners are aligned, -1 .. 1 goes from the
 * centre of the first pixel to that of the last; otherwise between their outer
 * edges. */
static double pixel_of(const struct byi_sampler *s, double coordinate,
                       int64_t size)
{
    return s->align ? (coordinate + 1) / 2 * (double)(size - 1)
                    : ((coordinate + 1) * (double)size - 1) / 2;
}

/* The taps of one axis at the grid's coordinate `coordinate`: their indices, or
 * -1 outside of the axis, and weights. */
static void axis_taps(const struct byi_sampler *s, double coordinate,
                      int64_t size, int64_t *index, double *w)
{
    const double at = pixel_of(s, coordinate, size);
    /* ONNX's reference implementation rounds before it reflects, PyTorch
     * afterwards; they differ for coordinates halfway between two pixels */
    const double rounded = s->taps == 1 ? nearbyint(at) : at;
    const double padded = s->taps == 4 ? (at > -1e9 && at < 1e9 ? at : -100)
                                       : pad_coordinate(s, rounded, size);
    double first = floor(padded);
    if (s->taps == 1) {
        w[0] = 1;
    } else if (s->taps == 2) {
        w[1] = padded - first;
        w[0] = 1 - w[1];
    } else {
        first -= 1; /* Keys' kernel with a = -0.75, as in PyTorch */
        for (uint32_t t = 0; t < s->taps; t++)
            w[t] = byi_cubic_weight(-0.75, first + t - padded);
    }
    for (uint32_t t = 0; t < s->taps; t++) {
        double i = first + t;
        if (s->taps == 4)
            i = pad_coordinate(s, i, size);
        index[t] = i >= 0 && i < (double)size ? (int64_t)i : -1;
    }
}

uint32_t byi_sampler_points(const struct byi_sampler *s,
                            const struct byi_tensor *grid, int64_t at,
                            int64_t *offset, double *weight)
{
    int64_t index[3][4];
    double w[3][4];
    uint32_t n = 0, tap[3] = {0};
    /* the grid has the coordinate of the last axis first */
    for (uint32_t a = 0; a < s->axes; a++)
        axis_taps(s, byi_tensor_float(grid, at * s->axes + s->axes - 1 - a),
                  s->dims[a], index[a], w[a]);
    for (uint32_t p = 0; p < s->points; p++) {
        bool inside = true;
        offset[n] = 0;
        weight[n] = 1;
        for (uint32_t a = 0; a < s->axes; a++) {
            inside = inside && index[a][tap[a]] >= 0;
            offset[n] = offset[n] * s->dims[a] + index[a][tap[a]];
            weight[n] *= w[a][tap[a]];
        }
        n += inside;
        for (uint32_t a = s->axes; a-- > 0 && ++tap[a] == s->taps;)
            tap[a] = 0;
    }
    return n;
}

/* List the points of a position of bilinear sampling whose four pixels lie
 * inside the image: fast, with the same arithmetic as axis_taps(). Returns
 * false, and writes nothing, for other positions and modes, and for padding by
 * reflection. */
static bool list_inside(const struct byi_sampler *s,
                        const struct byi_tensor *grid, int64_t position,
                        int64_t pitch, int32_t *at, float *weight)
{
    if (s->axes != 2 || s->taps != 2 || s->padding == BYI_SAMPLE_REFLECTION)
        return false;
    const bool is_double = grid->dtype == BYOC_F64;
    const double *doubles = (const double *)grid->data + 2 * position;
    const float *floats = (const float *)grid->data + 2 * position;
    const double x =
        pixel_of(s, is_double ? doubles[0] : (double)floats[0], s->dims[1]);
    const double y =
        pixel_of(s, is_double ? doubles[1] : (double)floats[1], s->dims[0]);
    if (!(x >= 0 && y >= 0 && x < (double)(s->dims[1] - 1) &&
          y < (double)(s->dims[0] - 1)))
        return false;
    const int64_t column = (int64_t)x, row = (int64_t)y;
    const int32_t first = (int32_t)(row * s->dims[1] + column);
    const int32_t below = first + (int32_t)s->dims[1];
    const double right = x - (double)column, left = 1 - right;
    const double down = y - (double)row, up = 1 - down;
    at[0] = first;
    at[pitch] = first + 1;
    at[2 * pitch] = below;
    at[3 * pitch] = below + 1;
    weight[0] = (float)(up * left);
    weight[pitch] = (float)(up * right);
    weight[2 * pitch] = (float)(down * left);
    weight[3 * pitch] = (float)(down * right);
    return true;
}

void byi_sampler_list(const struct byi_sampler *s,
                      const struct byi_tensor *grid, int64_t from, int64_t n,
                      int64_t pitch, int32_t *at, float *weight)
{
    for (int64_t j = 0; j < n; j++) {
        if (list_inside(s, grid, from + j, pitch, at + j, weight + j))
            continue;
        int64_t offset[BYI_SAMPLE_MAX_POINTS + 1];
        double w[BYI_SAMPLE_MAX_POINTS + 1];
        const uint32_t points =
            byi_sampler_points(s, grid, from + j, offset, w);
        for (uint32_t p = 0; p < s->points; p++) {
            at[p * pitch + j] = p < points ? (int32_t)offset[p] : -1;
            weight[p * pitch + j] = p < points ? (float)w[p] : 0;
        }
    }
}
