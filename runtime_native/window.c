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

/* --- bands ---------------------------------------------------------------- */

enum {
    PLANES_PER_TASK = 16,
    TILE = 4, /* output rows that share loaded inputs */
    /* of the rows layout: fits in the first-level cache */
    MAX_BAND_FLOATS = 4096,
    MAX_SIDE_TAPS = 25,     /* of the side-by-side layout */
    MAX_SIDE_FLOATS = 6144, /* of that layout: inputs and outputs */
    /* the same for stride 2, for which the rows layout needs two phases, and
     * for larger strides, for which lines need more of them */
    MAX_STRIDE_2_FLOATS = 10240,
    MAX_STRIDED_FLOATS = 20480,
    MAX_TAPS = 1024, /* of maxima and sums */
    /* of a plane: their vectors stay in the first-level cache */
    MAX_WEIGHTS = 128,
    LINES = 16 /* rows of outputs of an item */
};

/* Whether bands can hold the inputs of the window: its planes have two
 * dimensions. Bands side by side support every such window. */
static bool has_bands(const struct byi_window *w)
{
    return w->in[0] == 1 && w->out[0] == 1 && w->size[0] == 1 &&
           w->pad[0] == 0 && w->size[2] <= BYI_WINDOW_TAPS;
}

/* Whether bands in rows support the window, too. */
static bool has_rows(const struct byi_window *w)
{
    return has_bands(w) && w->stride[2] <= 2;
}

bool byi_sliding_fits(enum byi_window_kind kind, const struct byi_window *w)
{
    for (int axis = 0; axis < 3; axis++)
        if (w->pad[axis] < 0 || w->pad[axis] > w->in[axis] + 64 ||
            w->end[axis] > w->in[axis] + 64)
            return false;
    return kind == BYI_WINDOW_PRODUCT ? has_rows(w) && w->taps <= MAX_WEIGHTS
                                      : w->taps <= MAX_TAPS;
}

/* Whether maxima and sums run on lines rather than on bands in rows. Lines
 * combine fewer elements unless the window is small, or bands have special code
 * for it. */
static bool uses_lines(const struct byi_window *w)
{
    static const int64_t tiles[][2] = {{5, 1}, {5, 2}};
    if (!has_rows(w))
        return true;
    if (w->taps <= 16)
        return false;
    for (size_t i = 0; i < BYI_COUNT(tiles); i++)
        if (w->size[1] == tiles[i][0] && w->size[2] == tiles[i][0] &&
            w->stride[1] == tiles[i][1] && w->stride[2] == tiles[i][1])
            return w->dilation[1] > 1 || w->dilation[2] > 1;
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

/* Floats of vectors of a product's weights. */
static int64_t weight_floats(const struct byi_window *w)
{
    return byi_min(w->taps, MAX_WEIGHTS) * byi_simd()->lanes;
}

/* Describe a band in the rows layout. */
static struct byi_band rows_of(const struct byi_window *w)
{
    const int64_t above = inputs_read(w, 1, 1);
    struct byi_band b = {
        .w = w,
        .row_outputs = w->out[2],
        .step = 1,
    };
    lay_out_rows(w, &b);
    b.out_rows = (MAX_BAND_FLOATS / b.pitch - above) / w->stride[1] + 1;
    if (b.out_rows > TILE)
        b.out_rows -= b.out_rows % TILE;
    b.out_rows = byi_max(1, byi_min(b.out_rows, w->out[1]));
    b.size = inputs_read(w, 1, b.out_rows) * b.pitch;
    b.planes = byi_max(1, byi_min(PLANES_PER_TASK, MAX_BAND_FLOATS / b.size));
    b.weights = b.lead + b.size * b.planes + BYI_SLACK;
    b.floats = b.weights + weight_floats(w);
    return b;
}

/* The most floats of a band in the side-by-side layout. In rows with few
 * outputs, most of a vector is not used. */
static int64_t most_side_floats(const struct byi_window *w)
{
    if (w->stride[2] > 2 || 2 * w->out[2] <= byi_simd()->lanes)
        return MAX_STRIDED_FLOATS;
    return w->stride[2] == 1 ? MAX_SIDE_FLOATS : MAX_STRIDE_2_FLOATS;
}

/* Describe a band in the side-by-side layout; its member `side_by_side` is set
 * if the layout supports the window and the planes are small enough for it. */
static struct byi_band side_by_side_of(const struct byi_window *w)
{
    const int64_t lanes = byi_simd()->lanes;
    const int64_t columns =
        byi_max(w->pad[2] + w->in[2], inputs_read(w, 2, w->out[2]));
    const int64_t rows =
        byi_max(w->pad[1] + w->in[1], inputs_read(w, 1, w->out[1]));
    struct byi_band b = {
        .w = w,
        .out_rows = w->out[1],
        .planes = lanes,
        .pitch = columns * lanes,
        .size = rows * columns * lanes,
        .row_outputs = w->out[2] * lanes,
        .step = w->stride[2],
    };
    b.weights = b.size + w->out_count * lanes;
    b.floats = b.weights + weight_floats(w);
    b.side_by_side = has_bands(w) && b.weights <= most_side_floats(w) &&
                     w->taps <= (w->stride[2] > 2 ? byi_max(16, 2 * lanes)
                                                  : MAX_SIDE_TAPS) &&
                     w->in[2] >= 4 && w->taps >= 4;
    if (!b.side_by_side)
        b.floats = 0;
    for (int64_t c = 0; c < w->size[2]; c++)
        b.taps[c] = c * w->dilation[2] * lanes;
    return b;
}

/* --- lines ---------------------------------------------------------------- */

/* Whether windows at every column, in vectors, take fewer steps than copying
 * the elements of the phases one by one. For stride 2 they are copied in
 * vectors. */
static bool computes_every_column(const struct byi_line *l)
{
    const int64_t steps = l->size * (l->stride - 1);
    return l->stride > 2 && steps <= (l->phases - 1) * byi_simd()->lanes;
}

/* Set the phases of a line, and the taps. Taps share phases if there are more
 * taps than phases. */
static void split_columns(const struct byi_window *w, struct byi_line *l,
                          int64_t *starts, int64_t *taps)
{
    const int64_t reach = (w->size[2] - 1) * w->dilation[2];
    const bool shared = byi_min(l->stride, reach + 1) <= l->size;
    l->phases = shared ? byi_min(l->stride, reach + 1) : l->size;
    l->every_column = computes_every_column(l);
    if (l->every_column) {
        l->phases = 1;
        l->phase = whole_vectors((l->out - 1) * l->stride + 1);
        return;
    }
    l->used = l->out + (shared ? reach / l->stride : 0);
    l->phase = whole_vectors(l->used + byi_simd()->lanes);
    for (int64_t p = 0; starts && p < l->phases; p++)
        starts[p] = shared ? p : p * w->dilation[2];
    for (int64_t c = 0; taps && c < l->size; c++) {
        const int64_t at = c * w->dilation[2];
        taps[c] =
            shared ? at % l->stride * l->phase + at / l->stride : c * l->phase;
    }
}

/* Describe a line. starts, taps: arrays of w->size[2] elements to set, or NULL.
 */
static struct byi_line line_of(const struct byi_window *w, int64_t *starts,
                               int64_t *taps)
{
    const int64_t lanes = byi_simd()->lanes;
    const int64_t read = inputs_read(w, 2, w->out[2]);
    struct byi_line l = {
        .before = w->pad[2],
        .columns = byi_max(0, byi_min(w->in[2], read - w->pad[2])),
        .stride = w->out[2] > 1 ? w->stride[2] : 1,
        .size = w->size[2],
        .out = w->out[2],
        .starts = starts,
        .taps = taps,
    };
    for (int64_t c = 0; taps && c < l.size; c++)
        taps[c] = c * w->dilation[2];
    if (l.stride > 1)
        split_columns(w, &l, starts, taps);
    l.length = byi_max(l.before + l.columns, read + l.stride);
    if (l.stride == 2)
        l.length = byi_max(l.length, 2 * l.phase);
    l.split = whole_vectors(l.length + 2 * lanes);
    l.floats = l.split + l.phases * l.phase + BYI_SLACK;
    return l;
}

/* The first element along an axis that is data under a window, and the number
 * of its taps on data. */
struct row_span {
    int64_t first, n;
};

static void find_spans(const struct byi_window *w, int axis,
                       struct row_span *spans)
{
    for (int64_t i = 0; i < w->out[axis]; i++) {
        int64_t first, last;
        byi_window_taps(w, axis, i, &first, &last);
        spans[i] = (struct row_span){i * w->stride[axis] - w->pad[axis] +
                                         first * w->dilation[axis],
                                     last - first};
    }
}

/* --- runs ----------------------------------------------------------------- */

/* A run is divided into items, image by image. The first items are groups of
 * planes side by side. The others are bands of groups of planes in rows, or
 * chunks of LINES lines of a plane. */
struct sliding_run {
    const struct byi_sliding *v;
    struct byi_band rows, side;
    struct byi_line line;
    const struct row_span *spans[2]; /* of lines, along the first two axes */
    bool lines;                      /* the other items are lines */
    int64_t items;                   /* of an image */
    int64_t sides;                   /* number of items side by side */
    int64_t bands; /* items of a plane that is not side by side */
};

/* The parts of scratch. */
struct sliding_scratch {
    int64_t *starts, *taps;
    struct row_span *spans;
    char *threads;
    uint64_t pointers, per_thread; /* bytes of pointers to rows; all bytes */
    uint64_t bytes;                /* altogether */
};

static struct sliding_scratch open_scratch(const struct byi_window *w,
                                           uint32_t threads, char *at)
{
    const int64_t taps = byi_min(w->size[2], MAX_TAPS);
    const uint64_t lists = byi_align_bytes(
        2 * (uint64_t)taps * sizeof(int64_t) +
        (uint64_t)(w->out[0] + w->out[1]) * sizeof(struct row_span));
    int64_t floats = line_of(w, NULL, NULL).floats;
    struct sliding_scratch s = {
        .starts = (int64_t *)(void *)at,
        .taps = (int64_t *)(void *)at + taps,
        .spans = (struct row_span *)(void *)((int64_t *)(void *)at + 2 * taps),
        .threads = at + lists,
        .pointers = byi_align_bytes((uint64_t)(w->size[0] * w->size[1]) *
                                    sizeof(float *)),
    };
    if (has_rows(w))
        floats = byi_max(floats, rows_of(w).floats);
    if (has_bands(w))
        floats = byi_max(floats, side_by_side_of(w).floats);
    s.per_thread =
        s.pointers + byi_align_bytes((uint64_t)floats * sizeof(float));
    s.bytes = lists + s.per_thread * threads;
    return s;
}

uint64_t byi_sliding_scratch(const struct byi_window *w, uint32_t threads)
{
    return open_scratch(w, threads, NULL).bytes;
}

static void divide_lines(const struct byi_window *w,
                         const struct sliding_scratch *scratch,
                         struct sliding_run *r)
{
    find_spans(w, 0, scratch->spans);
    find_spans(w, 1, scratch->spans + w->out[0]);
    r->spans[0] = scratch->spans;
    r->spans[1] = scratch->spans + w->out[0];
    r->line = line_of(w, scratch->starts, scratch->taps);
    r->bands = w->out[0] * byi_ceil_div(w->out[1], LINES);
    r->rows.planes = 1;
}

static struct sliding_run divide(const struct byi_sliding *v,
                                 const struct sliding_scratch *scratch)
{
    const struct byi_window *w = v->w;
    struct sliding_run r = {.v = v};
    r.lines = v->kind != BYI_WINDOW_PRODUCT && uses_lines(w);
    if (has_bands(w) && v->repeat == 1)
        r.side = side_by_side_of(w);
    if (r.side.side_by_side)
        r.sides = v->channels / r.side.planes;
    if (r.lines) {
        divide_lines(w, scratch, &r);
    } else {
        r.rows = rows_of(w);
        r.rows.planes = v->repeat == 1 ? r.rows.planes : 1;
        r.bands = byi_ceil_div(w->out[1], r.rows.out_rows);
    }
    const int64_t rest = v->channels - r.sides * r.side.planes;
    r.items = r.sides + byi_ceil_div(rest, r.rows.planes) * r.bands;
    return r;
}

/* Compute output rows [h, h + rows) of n channels of an image, from channel c
 * on. */
static void run_band(const struct byi_sliding *v, const struct byi_band *b,
                     int64_t image, int64_t c, int64_t n, int64_t h,
                     int64_t rows, float *buffer)
{
    const struct byi_simd *simd = byi_simd();
    const struct byi_window *w = v->w;
    const float outside = v->kind == BYI_WINDOW_MAX ? -INFINITY : 0;
    const int64_t at = h * w->out[2], plane = image * v->channels + c;
    float *y = v->y + plane * v->repeat * w->out_count + at;
    simd->copy_band(b, v->x + plane * w->in_count, h, rows, n, outside, buffer);
    for (int64_t i = 0; i < v->repeat; i++)
        simd->window[v->kind](
            b, buffer,
            v->weights ? v->weights + (c * v->repeat + i) * w->taps : NULL,
            y + i * w->out_count, rows, n);
    for (int64_t p = 0; p < n && v->factors; p++, y += w->out_count)
        simd->binary[BYI_OP_MULTIPLY](y, 1, v->factors + at, 1, y,
                                      rows * w->out[2]);
}

/* Compute output rows [h, end) at depth d of a plane. */
static void run_lines(const struct sliding_run *r, int64_t plane, int64_t d,
                      int64_t h, int64_t end, const float **rows, float *buffer)
{
    const struct byi_sliding *v = r->v;
    const struct byi_window *w = v->w;
    const float *x = v->x + plane * w->in_count;
    const struct row_span depth_span = r->spans[0][d];
    const int64_t step = w->dilation[1] * w->in[2];
    const float *factors = v->factors;
    float *y = v->y + plane * w->out_count;
    for (int64_t n = 0; h < end; h++, n = 0) {
        const struct row_span high = r->spans[1][h];
        for (int64_t i = 0; i < depth_span.n; i++) {
            const int64_t at = depth_span.first + i * w->dilation[0];
            const float *row = x + (at * w->in[1] + high.first) * w->in[2];
            for (int64_t j = 0; j < high.n; j++, row += step)
                rows[n++] = row;
        }
        const int64_t at = (d * w->out[1] + h) * w->out[2];
        byi_simd()->line[v->kind](
            &r->line, rows, n, factors ? factors + at : NULL, buffer, y + at);
    }
}

static void run_item(const struct sliding_run *r, int64_t i,
                     const struct sliding_scratch *scratch)
{
    const struct byi_sliding *v = r->v;
    const struct byi_band *rows = &r->rows;
    char *memory =
        scratch->threads + (uint64_t)byi_part_number() * scratch->per_thread;
    float *buffer = (float *)(void *)(memory + scratch->pointers);
    const int64_t image = i / r->items, high = v->w->out[1];
    const int64_t side = i % r->items, rest = side - r->sides;
    if (rest < 0) {
        run_band(v, &r->side, image, side * r->side.planes, r->side.planes, 0,
                 high, buffer);
        return;
    }
    const int64_t c =
        r->sides * r->side.planes + rest / r->bands * rows->planes;
    const int64_t part = rest % r->bands;
    if (r->lines) {
        const int64_t chunks = r->bands / v->w->out[0];
        const int64_t h = part % chunks * LINES;
        run_lines(r, image * v->channels + c, part / chunks, h,
                  byi_min(h + LINES, high), (const float **)(void *)memory,
                  buffer);
        return;
    }
    const int64_t h = part * rows->out_rows;
    run_band(v, rows, image, c, byi_min(rows->planes, v->channels - c), h,
             byi_min(rows->out_rows, high - h), buffer);
}

void byi_sliding_run(const struct byi_sliding *v, const struct byi_call *call,
                     void *memory)
{
    if (v->w->out_count == 0)
        return;
    const struct sliding_scratch scratch =
        open_scratch(v->w, call->threads, memory);
    const struct sliding_run r = divide(v, &scratch);
    const int64_t planes = v->images * v->channels;
    /* about eight taps take as long as copying an input */
    const int team =
        byi_team(call, planes * (v->w->in_count +
                                 v->repeat * v->w->out_count * v->w->taps / 8));
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < v->images * r.items; i++)
        run_item(&r, i, &scratch);
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
