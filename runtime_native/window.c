/* SPDX-License-Identifier: Apache-2.0 */
/* window.c: describes the windows of convolution and pooling, which have one to
 * three spatial axes, as windows with three; reads the operands of
 * convolutions; and runs the float32 loops for sliding windows (window.inc)
 * over bands of planes. */
#include "conv.h"

/* Element i of a list of n numbers, or `absent` if the list is shorter. */
static int64_t at_or(const int64_t *list, uint32_t n, uint32_t i,
                     int64_t absent)
{
    return i < n ? list[i] : absent;
}

void byi_window_read(const struct byi_attrs *attrs, uint32_t n,
                     const int64_t *in, const int64_t *out, const int64_t *size,
                     struct byi_window *w)
{
    uint32_t n_strides, n_padding, n_dilation;
    const int64_t *strides = byi_attr_ints(attrs, "strides", &n_strides);
    const int64_t *padding = byi_attr_ints(attrs, "padding", &n_padding);
    const int64_t *dilation = byi_attr_ints(attrs, "dilation", &n_dilation);
    assert(n >= 1 && n <= 3);

    *w = (struct byi_window){.in_count = 1, .out_count = 1, .taps = 1};
    for (uint32_t axis = 0; axis < 3; axis++) {
        const uint32_t i = axis + n - 3; /* wraps for missing leading axes */
        w->in[axis] = at_or(in, n, i, 1);
        w->out[axis] = at_or(out, n, i, 1);
        w->size[axis] = at_or(size, n, i, 1);
        w->stride[axis] = at_or(strides, n_strides, i, 1);
        w->dilation[axis] = at_or(dilation, n_dilation, i, 1);
        w->pad[axis] = at_or(padding, n, i, 0);
        w->end[axis] = i < n ? padding[n + i] : 0;
        w->in_count *= w->in[axis];
        w->out_count *= w->out[axis];
        /* saturate: padding allows windows larger than any memory */
        if (__builtin_mul_overflow(w->taps, w->size[axis], &w->taps))
            w->taps = INT64_MAX;
    }
}

void byi_window_taps(const struct byi_window *w, int axis, int64_t at,
                     int64_t *first, int64_t *last)
{
    const int64_t begin = at * w->stride[axis] - w->pad[axis];
    const int64_t step = w->dilation[axis];
    *first = begin < 0 ? byi_ceil_div(-begin, step) : 0;
    *last = begin < w->in[axis] ? byi_ceil_div(w->in[axis] - begin, step) : 0;
    *first = byi_min(*first, w->size[axis]);
    *last = byi_max(*first, byi_min(*last, w->size[axis]));
}

void byi_window_outputs(const struct byi_window *w, int64_t tap, int64_t *first,
                        int64_t *last)
{
    /* output i reads input i * stride + from */
    const int64_t from = tap * w->dilation[2] - w->pad[2];
    const int64_t stride = w->stride[2];
    *first = from < 0 ? byi_ceil_div(-from, stride) : 0;
    *last = from < w->in[2] ? byi_ceil_div(w->in[2] - from, stride) : 0;
    *first = byi_min(*first, w->out[2]);
    *last = byi_max(*first, byi_min(*last, w->out[2]));
}

/* --- planes --------------------------------------------------------------- */

enum {
    PLANES_PER_TASK = 16,
    TILE = 4,                  /* output rows that share loaded inputs */
    MAX_BAND_FLOATS = 4096,    /* of the rows layout: fits in the L1 cache */
    MAX_INTERLEAVED_TAPS = 25, /* of the side-by-side layout */
    MAX_INTERLEAVED_FLOATS = 6144, /* of that layout: inputs and outputs */
    /* the same if the stride is above 1: the rows layout would need two phases
     */
    MAX_STRIDED_INTERLEAVED_FLOATS = 10240
};

bool byi_sliding_fits(const struct byi_window *w)
{
    if (w->in[0] != 1 || w->out[0] != 1 || w->size[0] != 1 || w->pad[0] != 0 ||
        w->stride[2] > 2 || w->size[2] > BYI_WINDOW_TAPS || w->taps > 1024)
        return false;
    for (int axis = 1; axis < 3; axis++)
        if (w->pad[axis] < 0 || w->pad[axis] > w->in[axis] + 64 ||
            w->end[axis] > w->in[axis] + 64)
            return false;
    return true;
}

static int64_t whole_vectors(int64_t floats)
{
    const int64_t lanes = byi_simd()->lanes;
    return byi_ceil_div(floats, lanes) * lanes;
}

/* Number of rows or columns of inputs that n adjacent outputs read. */
static int64_t inputs_read(const struct byi_window *w, int axis, int64_t n)
{
    return (n - 1) * w->stride[axis] + (w->size[axis] - 1) * w->dilation[axis] +
           1;
}

/* Set the members of a band in the rows layout that describe a row. The gap
 * between two rows is the border of both. */
static void lay_out_rows(const struct byi_window *w, struct byi_band *b)
{
    const int64_t stride = w->stride[2], pad = w->pad[2];
    const int64_t read = inputs_read(w, 2, w->out[2]);
    int64_t first[2], most = 0, border = 0;
    b->columns = byi_max(0, byi_min(w->in[2], read - pad));
    for (int64_t p = 0; p < stride; p++) {
        first[p] = byi_ceil_div(byi_max(0, pad - p), stride);
        const int64_t from = p + first[p] * stride - pad; /* a column */
        const int64_t n = byi_ceil_div(byi_max(0, b->columns - from), stride);
        most = byi_max(most, n);
        border = byi_max(border, first[p]);
        border = byi_max(border, byi_ceil_div(read - p, stride) - first[p] - n);
    }
    b->lead = whole_vectors(border);
    b->phase = whole_vectors(most + border);
    b->pitch = b->phase * stride;
    b->even = pad % 2 * b->phase;
    b->odd = b->phase - b->even;
    for (int64_t c = 0; c < w->size[2]; c++) {
        const int64_t at = c * w->dilation[2], p = at % stride;
        b->taps[c] = p * b->phase + at / stride - first[p];
    }
}

/* Describe a band in the rows layout. */
static struct byi_band rows_of(const struct byi_window *w)
{
    const int64_t above = inputs_read(w, 1, 1);
    struct byi_band b = {
        .w = w,
        .wide = w->out[2],
        .step = 1,
    };
    lay_out_rows(w, &b);
    b.high = (MAX_BAND_FLOATS / b.pitch - above) / w->stride[1] + 1;
    if (b.high > TILE)
        b.high -= b.high % TILE;
    b.high = byi_max(1, byi_min(b.high, w->out[1]));
    b.size = inputs_read(w, 1, b.high) * b.pitch;
    b.planes = byi_max(1, byi_min(PLANES_PER_TASK, MAX_BAND_FLOATS / b.size));
    b.floats = b.lead + b.size * b.planes + BYI_SLACK;
    return b;
}

/* Describe a band in the side-by-side layout; its member `side` is set if the
 * planes are small enough for this layout. */
static struct byi_band side_of(const struct byi_window *w)
{
    const int64_t lanes = byi_simd()->lanes;
    const int64_t columns =
        byi_max(w->pad[2] + w->in[2], inputs_read(w, 2, w->out[2]));
    const int64_t rows =
        byi_max(w->pad[1] + w->in[1], inputs_read(w, 1, w->out[1]));
    struct byi_band b = {
        .w = w,
        .high = w->out[1],
        .planes = lanes,
        .pitch = columns * lanes,
        .size = rows * columns * lanes,
        .wide = w->out[2] * lanes,
        .step = w->stride[2],
    };
    b.floats = b.size + w->out_count * lanes;
    b.side = b.floats <= (w->stride[2] > 1 ? MAX_STRIDED_INTERLEAVED_FLOATS
                                           : MAX_INTERLEAVED_FLOATS) &&
             w->taps <= MAX_INTERLEAVED_TAPS && w->in[2] >= 4 &&
             w->out_count >= lanes && w->taps >= 4;
    if (!b.side)
        b.floats = 0;
    for (int64_t c = 0; c < w->size[2]; c++)
        b.taps[c] = c * w->dilation[2] * lanes;
    return b;
}

uint64_t byi_sliding_scratch(const struct byi_window *w, uint32_t threads)
{
    const int64_t floats = byi_max(rows_of(w).floats, side_of(w).floats);
    return byi_align_bytes((uint64_t)floats * sizeof(float)) * threads;
}

/* A run is divided into items: first groups of planes side by side, then bands
 * of groups of planes in rows. */
struct sliding_run {
    const struct byi_sliding *v;
    struct byi_band rows, side;
    int64_t sides;         /* number of items side by side */
    int64_t bands, groups; /* of planes in rows */
};

static struct sliding_run divide(const struct byi_sliding *v)
{
    struct sliding_run r = {
        .v = v, .rows = rows_of(v->w), .side = side_of(v->w)};
    r.sides = r.side.side ? v->planes / r.side.planes : 0;
    r.bands = byi_ceil_div(v->w->out[1], r.rows.high);
    r.groups = byi_ceil_div(v->planes - r.sides * r.side.planes, r.rows.planes);
    return r;
}

/* Compute output rows [h, h + rows) of n planes from `plane` on. */
static void run_band(const struct byi_sliding *v, const struct byi_band *b,
                     int64_t plane, int64_t n, int64_t h, int64_t rows,
                     float *buffer)
{
    const struct byi_simd *simd = byi_simd();
    const struct byi_window *w = v->w;
    const float outside = v->kind == BYI_WINDOW_MAX ? -INFINITY : 0;
    const int64_t at = h * w->out[2];
    float *y = v->y + plane * w->out_count + at;
    simd->copy_band(b, v->x + plane * w->in_count, h, rows, n, outside, buffer);
    simd->window[v->kind](b, buffer, y, rows, n);
    for (int64_t p = 0; p < n && v->factors; p++, y += w->out_count)
        simd->binary[BYI_OP_MULTIPLY](y, 1, v->factors + at, 1, y,
                                      rows * w->out[2]);
}

static void run_item(const struct sliding_run *r, int64_t i, float *buffer)
{
    const struct byi_band *rows = &r->rows;
    const int64_t high = r->v->w->out[1];
    if (i < r->sides) {
        run_band(r->v, &r->side, i * r->side.planes, r->side.planes, 0, high,
                 buffer);
        return;
    }
    i -= r->sides;
    const int64_t plane =
        r->sides * r->side.planes + i / r->bands * rows->planes;
    const int64_t h = i % r->bands * rows->high;
    run_band(r->v, rows, plane, byi_min(rows->planes, r->v->planes - plane), h,
             byi_min(rows->high, high - h), buffer);
}

void byi_sliding_run(const struct byi_sliding *v, const struct byi_call *call,
                     void *scratch)
{
    const struct sliding_run r = divide(v);
    const int64_t items = r.sides + r.groups * r.bands;
    const uint64_t bytes = byi_sliding_scratch(v->w, 1);
    /* about eight taps take as long as copying an input */
    const int team = byi_team(
        call, v->planes * (v->w->in_count + v->w->out_count * v->w->taps / 8));
#pragma omp parallel num_threads(team) if (team > 1)
    {
        const uint64_t part = (uint64_t)byi_part_number();
        float *buffer = (void *)((char *)scratch + part * bytes);
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < items; i++)
            run_item(&r, i, buffer);
    }
}

struct byi_conv byi_conv_operands(const struct byi_call *call)
{
    const struct byi_tensor *x = &call->in[0], *weights = &call->in[1];
    const char *layout = byi_attr_string(call->attrs, "data_layout");
    struct byi_conv v = {
        .n = x->dims[0],
        .groups = byi_attr_int(call->attrs, "groups"),
        .x = x->data,
        .weights = weights->data,
        .y = call->out->data,
    };
    byi_image_read(x, layout, &v.in);
    byi_image_read(call->out, layout, &v.out);
    byi_filter_read(weights, byi_attr_string(call->attrs, "kernel_layout"),
                    &v.weights_layout);
    return v;
}

struct byi_conv byi_conv_read(const struct byi_call *call)
{
    struct byi_conv v = byi_conv_operands(call);
    v.c = v.weights_layout.i;
    v.o = v.weights_layout.o / v.groups;
    byi_window_read(call->attrs, v.in.spatial, v.in.space, v.out.space,
                    v.weights_layout.space, &v.w);
    return v;
}

bool byi_conv_is_pointwise(const struct byi_window *w)
{
    if (w->taps != 1)
        return false;
    for (int i = 0; i < 3; i++)
        if (w->stride[i] != 1 || w->pad[i] || w->end[i])
            return false;
    return true;
}
