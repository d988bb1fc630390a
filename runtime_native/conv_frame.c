/* SPDX-License-Identifier: Apache-2.0 */
/* conv_frame.c: direct float32 convolution with channels first.
 *   data (N, C, d, h, w), weights (O, C/G, kd, kh, kw) -> (N, O, od, oh, ow)
 * Each channel is copied into a frame: the channel with its padding or, with a
 * stride s other than 1, split into s phase images per axis, each of which is
 * walked with stride 1. In a frame the distance from an output to a tap is the
 * same for all outputs. A plane of outputs is therefore one sequence, and the
 * rows of the im2col matrix are contiguous parts of the frames, which the
 * micro-kernel reads in place (byi_simd's gemm with offsets) without packing.
 * Results between the rows of outputs are dropped, or each row is a sequence of
 * its own. Groups of few outputs (depthwise) are sums over taps instead;
 * pointwise weights on one position are a matrix-vector product.
 */
#include "conv.h"

enum {
    DEPTH = BYI_GEMM_DEPTH, /* taps per call of the micro-kernel      */
    WIDTH = 256,            /* outputs of a task, roughly             */
    HEIGHT = 8,             /* panels of weights of a task, at most   */
    FEW_ROWS = 128,         /* rows that stay in the L1 cache         */
    FEW_PANELS = 2
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static struct byi_conv_frame frame_of(const struct byi_window *w)
{
    struct byi_conv_frame f = {.image = 1, .channel = 1};
    for (int i = 0; i < 3; i++) {
        /* tap t reads phase t dilation mod stride, which is periodic */
        const int64_t period =
            w->stride[i] / common_divisor(w->stride[i], w->dilation[i]);
        f.phases[i] = byi_min(w->size[i], period);
        f.dims[i] =
            w->out[i] + (w->size[i] - 1) * w->dilation[i] / w->stride[i];
        f.image *= f.dims[i];
        f.channel *= f.phases[i] * f.dims[i];
    }
    f.run =
        ((w->out[0] - 1) * f.dims[1] + w->out[1] - 1) * f.dims[2] + w->out[2];
    f.dense = f.run == w->out_count;
    f.same = byi_conv_is_pointwise(w);
    return f;
}

/* Offset of tap t in a channel's frame. */
static int64_t frame_tap(const struct byi_window *w,
                         const struct byi_conv_frame *f, int64_t t)
{
    int64_t tap[3], phase = 0, place = 0;
    byi_unflatten(w->size, t, tap);
    for (int i = 0; i < 3; i++) {
        phase = phase * f->phases[i] + tap[i] % f->phases[i];
        place = place * f->dims[i] + tap[i] * w->dilation[i] / w->stride[i];
    }
    return phase * f->image + place;
}

static void list_offsets(const struct byi_conv *v,
                         const struct byi_conv_frame *f, int64_t *offsets)
{
    for (int64_t t = 0; t < v->w.taps; t++)
        offsets[t] = frame_tap(&v->w, f, t);
    for (int64_t i = v->w.taps; i < v->c * v->w.taps; i++)
        offsets[i] = offsets[i - v->w.taps] + f->channel;
}

static struct byi_frame_row frame_row_of(const struct byi_window *w,
                                         const struct byi_conv_frame *f,
                                         int64_t from)
{
    struct byi_frame_row s = {
        .from = from, .stride = w->stride[2], .n = f->dims[2]};
    if (from < 0)
        s.first = byi_min(byi_ceil_div(-from, s.stride), s.n);
    if (from < w->in[2])
        s.last = byi_min(byi_ceil_div(w->in[2] - from, s.stride), s.n);
    s.last = byi_max(s.first, s.last);
    return s;
}

static void fill_row(const struct byi_frame_row *s, const float *row, float *to)
{
    const int64_t first = s->first, last = s->last, stride = s->stride;
    row += s->from + first * stride;
    for (int64_t i = 0; i < first; i++)
        to[i] = 0;
    if (stride == 1)
        for (int64_t i = 0; i < last - first; i++)
            to[first + i] = row[i];
    else if (stride == 2)
        for (int64_t i = 0; i < last - first; i++)
            to[first + i] = row[i * 2];
    else
        for (int64_t i = 0; i < last - first; i++)
            to[first + i] = row[i * stride];
    for (int64_t i = last; i < s->n; i++)
        to[i] = 0;
}

/* One phase image of a channel; `phase` is its index on each axis. */
static void fill_image(const struct byi_window *w,
                       const struct byi_conv_frame *f, const int64_t phase[3],
                       const float *x, float *to)
{
    int64_t from[3]; /* channel position of the image's first element */
    for (int i = 0; i < 3; i++)
        from[i] = phase[i] * w->dilation[i] % w->stride[i] - w->pad[i];
    const struct byi_frame_row span = frame_row_of(w, f, from[2]);
    for (int64_t i = 0; i < f->dims[0]; i++)
        for (int64_t j = 0; j < f->dims[1]; j++, to += span.n) {
            const int64_t d = i * w->stride[0] + from[0];
            const int64_t h = j * w->stride[1] + from[1];
            if (d < 0 || d >= w->in[0] || h < 0 || h >= w->in[1] ||
                span.first == span.last)
                memset(to, 0, (size_t)span.n * sizeof *to);
            else
                fill_row(&span, x + (d * w->in[1] + h) * w->in[2], to);
        }
}

static void fill_frame(const struct byi_window *w,
                       const struct byi_conv_frame *f, const float *x,
                       float *to)
{
    const int64_t count = f->channel / f->image;
    for (int64_t i = 0; i < count; i++, to += f->image) {
        int64_t phase[3];
        byi_unflatten(f->phases, i, phase);
        fill_image(w, f, phase, x, to);
    }
}

/* Copy outputs [from, to) of a plane's sequence to their places in y; run[0] is
 * output `from`. */
static void copy_outputs(const struct byi_window *w,
                         const struct byi_conv_frame *f, const float *run,
                         int64_t from, int64_t to, float *y)
{
    if (f->dense) {
        memcpy(y + from, run, (size_t)(to - from) * sizeof *y);
        return;
    }
    const int64_t width = w->out[2], dim = f->dims[2];
    int64_t d = from / dim / f->dims[1], h = from / dim % f->dims[1];
    for (int64_t at = from - from % dim; at < to; at += dim) {
        const int64_t first = byi_max(at, from);
        const int64_t last = byi_min(at + width, to);
        float *row = y + (d * w->out[1] + h) * width;
        for (int64_t i = first; i < last && h < w->out[1]; i++)
            row[i - at] = run[i - from];
        if (++h == f->dims[1]) {
            h = 0;
            d++;
        }
    }
}

/* --- many outputs per group: a matrix product ----------------------------- */

/* Tiling of a group's product: `height` outputs by `width` of the sequence. */
struct frame_tiling {
    int64_t m, k, panels;  /* outputs, taps, panels of weights */
    int64_t height, width; /* of a task                        */
    int64_t lines;         /* not 0: a task writes this many rows of
                              outputs in place */
    int64_t m_tasks, n_tasks;
    int64_t offsets, room, lane; /* scratch sizes, in floats */
    int64_t frames, weights;
};

static int64_t line_floats(int64_t n)
{
    return (int64_t)(byi_align_bytes((uint64_t)n * sizeof(float)) /
                     sizeof(float));
}

/* Should a task write rows of outputs in place? Vectors at the ends of rows are
 * partial then, but nothing is copied. */
static bool writes_in_place(const struct byi_conv *v,
                            const struct byi_conv_frame *f)
{
    const int64_t wide = v->w.out[2], half = byi_simd()->nr / 2;
    const int64_t more = byi_ceil_div(wide, half) * half - f->dims[2];
    return !f->dense && more * v->c * v->w.taps <= 8 * wide;
}

static void cut_columns(const struct byi_conv *v,
                        const struct byi_conv_frame *f, struct frame_tiling *c)
{
    const int64_t nr = byi_simd()->nr, rows = v->w.out[0] * v->w.out[1];
    if (writes_in_place(v, f)) {
        c->lines = byi_max(1, WIDTH / v->w.out[2]);
        c->n_tasks = byi_ceil_div(rows, c->lines);
        return;
    }
    c->n_tasks = byi_ceil_div(f->run, WIDTH + nr);
    c->width = byi_ceil_div(byi_ceil_div(f->run, c->n_tasks), nr) * nr;
    c->n_tasks = byi_ceil_div(f->run, c->width);
}

static struct frame_tiling tiling_of(const struct byi_conv *v,
                                     const struct byi_conv_frame *f,
                                     const struct byi_call *call)
{
    const int64_t mr = byi_simd()->mr;
    struct frame_tiling c = {.m = v->o, .k = v->c * v->w.taps};
    c.panels = byi_ceil_div(c.m, mr);
    cut_columns(v, f, &c);
    c.m_tasks = byi_ceil_div(c.panels, HEIGHT);
    const int64_t all = v->groups * c.n_tasks;
    if (call->threads > 1 && all * c.m_tasks < 4 * call->threads)
        c.m_tasks =
            byi_min(c.panels, byi_ceil_div(4 * (int64_t)call->threads, all));
    c.height = byi_ceil_div(c.panels, c.m_tasks) * mr;
    c.m_tasks = byi_ceil_div(c.m, c.height);
    c.offsets = line_floats(2 * c.k);
    c.room = f->same ? line_floats(byi_min(c.k, DEPTH) * c.width) : 0;
    c.lane =
        c.room + (f->dense || c.lines ? 0 : line_floats(c.height * c.width));
    c.frames =
        f->same ? 0 : line_floats(v->groups * v->c * f->channel) + BYI_SLACK;
    c.weights = call->packed ? 0 : v->groups * c.panels * mr * c.k;
    return c;
}

static uint64_t product_scratch(const struct byi_conv *v,
                                const struct byi_conv_frame *f,
                                const struct byi_call *call)
{
    const struct frame_tiling c = tiling_of(v, f, call);
    return (uint64_t)(c.offsets + c.lane * call->threads + c.frames +
                      c.weights) *
           sizeof(float);
}

/* The arguments that the tasks of a group share. */
struct frame_job {
    const struct byi_conv *v;
    const struct byi_conv_frame *f;
    const struct frame_tiling *c;
    const float *x, *weights; /* of a group: frames, panels */
    const int64_t *offsets;
    float *y; /* of a group */
};

/* First of the outputs [n0, n1) that need packed rows, if the frames are the
 * channels themselves: the last ones, since reading a whole vector there would
 * run past the tensor; or all, where kc is large and many panels of weights
 * would read the same distant rows again. */
static int64_t first_packed(int64_t kc, int64_t m, int64_t n0, int64_t n1)
{
    const struct byi_simd *simd = byi_simd();
    if (kc > FEW_ROWS && m > FEW_PANELS * simd->mr)
        return n0;
    return n1 - (n1 - n0) % simd->nr;
}

/* Pack rows [k0, k0 + kc) of uncopied channels, outputs [n0, n1), as panels. */
static void pack_rows(const struct frame_job *j, int64_t k0, int64_t kc,
                      int64_t n0, int64_t n1, float *to)
{
    const int64_t nr = byi_simd()->nr;
    for (int64_t k = 0; k < kc; k++) {
        const float *row = j->x + j->offsets[k0 + k];
        for (int64_t n = n0; n < n1; n += nr) {
            float *panel = to + (n - n0) * kc + k * nr;
            const int64_t count = byi_min(nr, n1 - n);
            if (count == nr) {
                for (int64_t i = 0; i < nr; i += 4)
                    memcpy(panel + i, row + n + i, 4 * sizeof *row);
                continue;
            }
            memset(panel, 0, (size_t)nr * sizeof *panel);
            memcpy(panel, row + n, (size_t)count * sizeof *panel);
        }
    }
}

/* Outputs [m0, m1) by [n0, n1) of the sequence += taps [k0, k0 + kc). */
static void run_block(const struct frame_job *j, int64_t k0, int64_t m0,
                      int64_t m1, int64_t n0, int64_t n1, float *room,
                      float *to, int64_t ldc)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t mr = simd->mr, nr = simd->nr;
    const int64_t kc = byi_min(DEPTH, j->c->k - k0);
    const float *weights = j->weights + j->c->panels * mr * k0;
    const int64_t packed = j->f->same ? first_packed(kc, m1 - m0, n0, n1) : n1;
    if (packed < n1)
        pack_rows(j, k0, kc, packed, n1, room);
    for (int64_t n = n0; n < n1; n += nr) {
        const int64_t *offsets = n < packed ? j->offsets + k0 : NULL;
        const float *b = offsets ? j->x + n : room + (n - packed) * kc;
        for (int64_t m = m0; m < m1; m += mr)
            simd->gemm(kc, weights + m * kc, b, offsets,
                       to + (m - m0) * ldc + n - n0, ldc, byi_min(mr, m1 - m),
                       byi_min(nr, n1 - n), k0 > 0);
    }
}

static void run_sequence(const struct frame_job *j, int64_t m0, int64_t m1,
                         int64_t n0, float *lane)
{
    const struct frame_tiling *c = j->c;
    const int64_t n1 = byi_min(n0 + c->width, j->f->run);
    const int64_t count = j->v->w.out_count;
    const bool dense = j->f->dense;
    float *run = dense ? j->y + m0 * count + n0 : lane + c->room;
    const int64_t ldc = dense ? count : c->width;
    for (int64_t k0 = 0; k0 < c->k; k0 += DEPTH)
        run_block(j, k0, m0, m1, n0, n1, lane, run, ldc);
    for (int64_t m = m0; m < m1 && !dense; m++)
        copy_outputs(&j->v->w, j->f, run + (m - m0) * ldc, n0, n1,
                     j->y + m * count);
}

/* The rows of outputs of a task, from `line` on. */
static void run_lines(const struct frame_job *j, int64_t m0, int64_t m1,
                      int64_t line)
{
    const struct byi_window *w = &j->v->w;
    const struct byi_conv_frame *f = j->f;
    const int64_t last = byi_min(line + j->c->lines, w->out[0] * w->out[1]);
    for (int64_t k0 = 0; k0 < j->c->k; k0 += DEPTH)
        for (int64_t i = line; i < last; i++) {
            const int64_t d = i / w->out[1], h = i % w->out[1];
            const int64_t n0 = (d * f->dims[1] + h) * f->dims[2];
            run_block(j, k0, m0, m1, n0, n0 + w->out[2], NULL,
                      j->y + m0 * w->out_count + i * w->out[2], w->out_count);
        }
}

static void run_task(const struct frame_job *j, int64_t task, float *lane)
{
    const struct frame_tiling *c = j->c;
    const int64_t m0 = task % c->m_tasks * c->height;
    const int64_t m1 = byi_min(m0 + c->height, c->m);
    const int64_t n = task / c->m_tasks;
    if (c->lines)
        run_lines(j, m0, m1, n * c->lines);
    else
        run_sequence(j, m0, m1, n * c->width, lane);
}

/* Pack panel `i` of the weights of all groups. */
static void pack_panel(const struct byi_conv *v, const struct frame_tiling *c,
                       int64_t i, float *to)
{
    const int64_t mr = byi_simd()->mr;
    const int64_t group = i / c->panels, m = i % c->panels * mr;
    const struct byi_matrix rows = {
        (const float *)v->weights + (group * c->m + m) * c->k, 1, c->k};
    to += group * c->panels * mr * c->k;
    for (int64_t k0 = 0; k0 < c->k; k0 += DEPTH) {
        const int64_t kc = byi_min(DEPTH, c->k - k0);
        byi_pack_matrix(&rows, k0, kc, 0, byi_min(mr, c->m - m), mr,
                        to + c->panels * mr * k0 + m * kc);
    }
}

static void run_product(const struct byi_conv *v,
                        const struct byi_conv_frame *f,
                        const struct byi_call *call)
{
    const struct frame_tiling c = tiling_of(v, f, call);
    const int64_t mr = byi_simd()->mr, channels = v->groups * v->c;
    const int64_t tasks = c.m_tasks * c.n_tasks, size = v->o * v->w.out_count;
    int64_t *offsets = call->scratch;
    float *lanes = (float *)call->scratch + c.offsets;
    float *frames = lanes + c.lane * call->threads, *packed = frames + c.frames;
    const float *weights = call->packed ? call->packed : packed;
    const int team = byi_team_of_products(call, v->n * v->groups * size * c.k);
    list_offsets(v, f, offsets);
    if (!call->packed) {
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t i = 0; i < v->groups * c.panels; i++)
            pack_panel(v, &c, i, packed);
    }
    for (int64_t n = 0; n < v->n; n++) {
        const float *x = (const float *)v->x + n * channels * v->w.in_count;
        if (!f->same) {
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
            for (int64_t i = 0; i < channels; i++)
                fill_frame(&v->w, f, x + i * v->w.in_count,
                           frames + i * f->channel);
        }
#pragma omp parallel for num_threads(team) if (team > 1) schedule(dynamic, 1)
        for (int64_t i = 0; i < v->groups * tasks; i++) {
            const int64_t group = i / tasks;
            const struct frame_job j = {
                .v = v,
                .f = f,
                .c = &c,
                .x = (f->same ? x : frames) + group * v->c * f->channel,
                .weights = weights + group * c.panels * mr * c.k,
                .offsets = offsets,
                .y = (float *)v->y + (n * v->groups + group) * size,
            };
            run_task(&j, i % tasks, lanes + byi_lane() * c.lane);
        }
    }
}

/* --- one position: a matrix-vector product -------------------------------- */

/* Typical of squeeze-and-excitation blocks. */
static bool is_vector(const struct byi_conv *v)
{
    return byi_conv_is_pointwise(&v->w) && v->w.out_count == 1;
}

static void run_vector(const struct byi_conv *v, const struct byi_call *call)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t channels = v->groups * v->o;
    const int team = byi_team(call, v->n * channels * v->c);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < v->n * channels; i++) {
        const int64_t image = i / channels, o = i % channels;
        const float *x =
            (const float *)v->x + (image * v->groups + o / v->o) * v->c;
        ((float *)v->y)[i] =
            simd->dot((const float *)v->weights + o * v->c, x, v->c);
    }
}

/* --- few outputs per group: sums over taps -------------------------------- */

/* Scratch per thread: the group's frames, a sequence, the tap offsets. */
static int64_t direct_floats(const struct byi_conv *v,
                             const struct byi_conv_frame *f)
{
    return line_floats(v->c * f->channel + BYI_SLACK) +
           line_floats(f->run + BYI_SLACK) + line_floats(2 * v->c * v->w.taps);
}

/* One input channel per group and no depth: planes without frames. */
static bool is_planes(const struct byi_conv *v)
{
    return v->c == 1 && byi_sliding_fits(&v->w);
}

static void run_planes(const struct byi_conv *v, const struct byi_call *call)
{
    const struct byi_sliding planes = {
        .kind = BYI_WINDOW_PRODUCT,
        .w = &v->w,
        .n = v->n,
        .groups = v->groups,
        .repeat = v->o,
        .x = v->x,
        .weights = v->weights,
        .y = v->y,
    };
    byi_sliding_run(&planes, call, call->scratch);
}

static void run_direct(const struct byi_conv *v, const struct byi_conv_frame *f,
                       const struct byi_call *call)
{
    const struct byi_window *w = &v->w;
    const int64_t batches = v->n * v->groups, taps = v->c * w->taps;
    const int64_t floats = direct_floats(v, f);
    const int team = byi_team(call, batches * v->o * w->out_count * taps);
#pragma omp parallel num_threads(team) if (team > 1)
    {
        const int64_t lane = byi_lane();
        float *frame = (float *)call->scratch + lane * floats;
        float *run = frame + line_floats(v->c * f->channel + BYI_SLACK);
        int64_t *offsets =
            (int64_t *)(void *)(run + line_floats(f->run + BYI_SLACK));
        list_offsets(v, f, offsets);
        memset(frame + v->c * f->channel, 0, BYI_SLACK * sizeof *frame);
#pragma omp for schedule(static) nowait
        for (int64_t batch = 0; batch < batches; batch++) {
            const float *x = (const float *)v->x + batch * v->c * w->in_count;
            for (int64_t c = 0; c < v->c; c++)
                fill_frame(w, f, x + c * w->in_count, frame + c * f->channel);
            for (int64_t o = 0; o < v->o; o++) {
                const int64_t row = batch % v->groups * v->o + o;
                byi_simd()->taps(frame, offsets,
                                 (const float *)v->weights + row * taps, taps,
                                 run, f->run);
                copy_outputs(w, f, run, 0, f->run,
                             (float *)v->y + (batch * v->o + o) * w->out_count);
            }
        }
    }
}

/* --- choosing the algorithm ----------------------------------------------- */

static bool is_direct(const struct byi_conv *v)
{
    return v->groups > 1 && v->o <= 4 && v->c <= 16;
}

/* Do the types alone prove that this is a matrix-vector product, which reads
 * unpacked weights? */
static bool is_known_vector(const struct byi_call *call)
{
    for (uint32_t i = 0; i < call->in->rank; i++)
        if (call->in->dims[i] < 0 || call->out->dims[i] < 0)
            return false;
    const struct byi_conv v = byi_conv_read(call);
    return is_vector(&v);
}

uint64_t byi_conv_frame_pack(const struct byi_call *call, float *to)
{
    const struct byi_tensor *weights = &call->in[1];
    const int64_t mr = byi_simd()->mr;
    struct byi_conv v = {
        .groups = byi_attr_int(call->attrs, "groups"),
        .weights = weights->data,
        .c = weights->dims[1],
    };
    v.o = weights->dims[0] / v.groups;
    struct frame_tiling c = {.m = v.o,
                             .k = byi_span(weights, 1, weights->rank)};
    c.panels = byi_ceil_div(c.m, mr);
    if (is_direct(&v) || is_known_vector(call))
        return 0;
    for (int64_t i = 0; to && i < v.groups * c.panels; i++)
        pack_panel(&v, &c, i, to);
    return (uint64_t)(v.groups * c.panels * mr * c.k) * sizeof(float);
}

/* Frames must not be much larger than their channels. */
bool byi_conv_fits_frame(const struct byi_conv *v)
{
    const struct byi_window *w = &v->w;
    double channel = 1, run = 1;
    for (int i = 0; i < 3; i++) {
        const double reach = (double)(w->size[i] - 1) * (double)w->dilation[i];
        const double dim = (double)w->out[i] + reach / (double)w->stride[i];
        channel *= dim * (double)byi_min(w->size[i], w->stride[i]);
        run *= i ? dim : (double)w->out[i];
    }
    const double most = 1.5 * (double)w->out_count + 256;
    return w->out_count > 0 && v->o > 0 && v->c > 0 && w->taps > 0 &&
           channel <= 8.0 * (double)(w->in_count + w->out_count) + 4096 &&
           (is_direct(v) || run <= most);
}

uint64_t byi_conv_frame_scratch(const struct byi_conv *v,
                                const struct byi_call *call)
{
    const struct byi_conv_frame f = frame_of(&v->w);
    if (is_vector(v))
        return 0;
    if (is_direct(v) && is_planes(v))
        return byi_sliding_scratch(&v->w, call->threads);
    if (is_direct(v))
        return (uint64_t)direct_floats(v, &f) * sizeof(float) * call->threads;
    return product_scratch(v, &f, call);
}

void byi_conv_frame_run(const struct byi_conv *v, const struct byi_call *call)
{
    const struct byi_conv_frame f = frame_of(&v->w);
    if (is_vector(v))
        run_vector(v, call);
    else if (is_direct(v) && is_planes(v))
        run_planes(v, call);
    else if (is_direct(v))
        run_direct(v, &f, call);
    else
        run_product(v, &f, call);
}
