/* SPDX-License-Identifier: Apache-2.0 */
/* qnn_conv.c: qnn.conv1d, qnn.conv2d, qnn.conv3d.
 *   data (N, C, d, h, w), weights (O, C/G, kd, kh, kw) -> (N, O, od, oh, ow)
 * Uses the frames of conv_frame.c: the distance from an output to a tap is the
 * same for all outputs, so a plane of outputs is one sequence that the integer
 * micro-kernel reads in place. An element of a frame is a word of several
 * channels (dot.inc); padding is x's zero point. Depthwise frames are bytes of
 * one channel, and a word holds several taps. Except for depthwise, weights
 * with a zero point may stay signed bytes, as in qnn_matmul.c; an extra channel
 * of ones then gives the sums of x.
 */
#include "conv.h"
#include "qnn.h"

enum {
    WIDTH = 256, /* outputs of a task, roughly           */
    HEIGHT = 8   /* panels of weights of a task, at most */
};

/* How a call runs. Sizes of the parts of scratch are in bytes. */
struct qnn_conv_plan {
    struct byi_conv v;
    struct byi_qnn q;
    struct byi_conv_frame f;
    bool depthwise;
    int64_t rows;   /* words of a position in a group: channels, or 1 */
    int64_t k;      /* words of a sum                                 */
    int64_t panels; /* of weights in a group                          */
    int64_t width, height, m_tasks, n_tasks;
    uint64_t offsets, steps, frames, packed; /* shared     */
    uint64_t sums, bytes;                    /* per thread */
};

static bool is_depthwise(const struct byi_conv *v)
{
    return v->groups > 1 && v->c == 1 && v->o == 1;
}

/* Words of the panels of all groups. */
static int64_t panel_words(const struct qnn_conv_plan *p)
{
    return p->v.groups * p->panels * byi_simd()->mr * p->k;
}

/* Words of all weights, a panel with a row of ones if the weights keep their
 * zero points, and the totals of the weights. */
static int64_t packed_words(const struct qnn_conv_plan *p)
{
    const int64_t all = p->v.groups * p->v.o;
    const int64_t ones = p->q.kept_zeros ? byi_simd()->mr * p->k : 0;
    return all + (p->depthwise ? all * p->k : panel_words(p) + ones);
}

/* The members that depend on the weights alone; `taps` per channel. */
static void plan_weights(struct qnn_conv_plan *p, int64_t taps)
{
    const int64_t each = p->q.words->each;
    p->depthwise = is_depthwise(&p->v);
    p->rows = p->depthwise ? 1 : byi_ceil_div(p->v.c, each);
    p->k = p->depthwise ? byi_ceil_div(taps, each) : p->rows * taps;
    p->panels = byi_ceil_div(p->v.o, byi_simd()->mr);
}

static void plan_tasks(struct qnn_conv_plan *p, uint32_t threads)
{
    const int64_t nr = byi_simd()->nr;
    p->n_tasks = byi_max(1, byi_ceil_div(p->f.run, WIDTH + nr));
    p->width = byi_ceil_div(byi_ceil_div(p->f.run, p->n_tasks), nr) * nr;
    p->n_tasks = byi_ceil_div(p->f.run, byi_max(1, p->width));
    p->m_tasks = byi_ceil_div(p->panels, HEIGHT);
    const int64_t all = p->v.groups * p->n_tasks;
    if (threads > 1 && all * p->m_tasks < 4 * threads)
        p->m_tasks =
            byi_min(p->panels, byi_ceil_div(4 * (int64_t)threads, all));
    p->height = byi_ceil_div(p->panels, byi_max(1, p->m_tasks));
    p->m_tasks = byi_ceil_div(p->panels, byi_max(1, p->height));
}

static struct qnn_conv_plan plan_of(const struct byi_call *call)
{
    struct qnn_conv_plan p = {.v = byi_conv_read(call)};
    const int64_t all = p.v.groups * p.v.o;
    p.q = byi_qnn_read(call, all, !is_depthwise(&p.v));
    p.f = byi_frame_of(&p.v.w);
    plan_weights(&p, p.v.w.taps);
    /* depthwise: subtracting zero points works with any form */
    const int64_t offsets = p.depthwise ? byi_ceil_div(p.v.w.taps, 4) * 4 : p.k;
    p.offsets = byi_align_bytes((uint64_t)offsets * sizeof(int64_t));
    p.steps = byi_align_bytes((uint64_t)all * 2 * sizeof(float));
    p.packed =
        call->packed ? 0 : byi_align_bytes((uint64_t)packed_words(&p) * 4);
    if (p.depthwise) {
        p.frames = byi_align_bytes((uint64_t)(p.f.channel + 2 * BYI_SLACK));
        p.width = p.f.run;
        p.sums = byi_align_bytes((uint64_t)(p.f.run + BYI_SLACK) * 4);
    } else {
        plan_tasks(&p, call->threads);
        p.frames = byi_align_bytes(
            (uint64_t)(p.v.groups * p.rows * p.f.channel + BYI_SLACK) * 4);
        const int64_t sums = byi_simd()->mr + p.q.kept_zeros;
        p.sums = byi_align_bytes((uint64_t)(sums * byi_max(0, p.width)) * 4);
    }
    p.bytes = byi_align_bytes((uint64_t)byi_max(0, p.width) * p.q.size);
    return p;
}

/* --- weights -------------------------------------------------------------- */

/* Offset among channel o's weights of element i of word w; -1 beyond the last.
 * Words hold channels, then taps; depthwise words hold taps alone. */
static int64_t weight_place(const struct qnn_conv_plan *p, int64_t taps,
                            int64_t w, int64_t i)
{
    const int64_t each = p->q.words->each;
    if (p->depthwise)
        return w * each + i < taps ? w * each + i : -1;
    const int64_t c = w / taps * each + i;
    return c < p->v.c ? c * taps + w % taps : -1;
}

/* Pack the weights of channel o as words `step` apart; returns their total. */
static uint32_t pack_channel(const struct qnn_conv_plan *p, int64_t taps,
                             int64_t o, uint32_t *to, int64_t step)
{
    const int64_t first = o * p->v.c * taps;
    const int32_t offset = p->q.kept_zeros ? byi_qnn_offset(&p->q, o) : 0;
    uint32_t total = 0;
    for (int64_t w = 0; w < p->k; w++) {
        uint32_t word = 0;
        for (int64_t i = 0; i < p->q.words->each; i++) {
            const int64_t place = weight_place(p, taps, w, i);
            if (place < 0)
                continue;
            const int32_t weight = byi_qnn_weight(&p->q, o, first + place);
            word |= byi_qnn_put(&p->q, i, weight + offset);
            total += (uint32_t)weight;
        }
        to[w * step] = word;
    }
    return total;
}

/* A channel of ones. */
static void pack_ones(const struct qnn_conv_plan *p, int64_t taps, uint32_t *to)
{
    for (int64_t w = 0; w < p->k; w++)
        for (int64_t i = 0; i < p->q.words->each; i++)
            if (weight_place(p, taps, w, i) >= 0)
                to[w * byi_simd()->mr] |= byi_qnn_put(&p->q, i, 1);
}

static void pack_weights(const struct qnn_conv_plan *p, int64_t taps,
                         uint32_t *to)
{
    const int64_t mr = byi_simd()->mr, all = p->v.groups * p->v.o;
    uint32_t *totals = to + packed_words(p) - all;
    if (!p->depthwise)
        memset(to, 0, (size_t)(totals - to) * sizeof *to);
    for (int64_t o = 0; o < all; o++) {
        const int64_t group = o / p->v.o, m = o % p->v.o;
        uint32_t *at =
            p->depthwise
                ? to + o * p->k
                : to + (group * p->panels + m / mr) * mr * p->k + m % mr;
        totals[o] = pack_channel(p, taps, o, at, p->depthwise ? 1 : mr);
    }
    if (p->q.kept_zeros)
        pack_ones(p, taps, to + panel_words(p));
}

uint64_t byi_qnn_conv_pack(const struct byi_call *call, void *to)
{
    const struct byi_tensor *weights = &call->in[BYI_QNN_WEIGHTS];
    struct qnn_conv_plan p = {
        .v = {.groups = byi_attr_int(call->attrs, "groups"),
              .c = weights->dims[1]}};
    p.v.o = weights->dims[0] / p.v.groups;
    p.q = byi_qnn_read(call, weights->dims[0], !is_depthwise(&p.v));
    const int64_t taps = byi_span(weights, 2, weights->rank);
    plan_weights(&p, taps);
    if (to)
        pack_weights(&p, taps, to);
    return (uint64_t)packed_words(&p) * sizeof(uint32_t);
}

/* --- frames --------------------------------------------------------------- */

/* The byte that padding is filled with: x's zero point, 0 in pairs. */
static int padding_byte(const struct qnn_conv_plan *p)
{
    return p->depthwise || p->q.form == BYI_DOT_BYTES ? (int)p->q.x.zero : 0;
}

/* Pack elements `from`, `from` + stride ... of the planes into words. */
static void weave(const struct qnn_conv_plan *p, const uint8_t *const planes[4],
                  int64_t from, int64_t stride, uint32_t *to, int64_t n)
{
    const uint8_t *rows[4];
    for (int i = 0; i < 4; i++)
        rows[i] = planes[i] + from;
    p->q.words->weave(rows, stride, p->q.x.flip, p->q.x.zero, to, n);
}

/* Pack `rows` rows of planes, at `at` and `pitch` apart, as `span` says. */
static void fill_rows(const struct qnn_conv_plan *p,
                      const struct byi_frame_row *span,
                      const uint8_t *const planes[4], int64_t at, int64_t rows,
                      char *to)
{
    const int64_t n = span->last - span->first;
    const struct byi_strip strip = {.rows = rows,
                                    .n = n,
                                    .stride = span->stride,
                                    .pitch = p->v.w.stride[1] * p->v.w.in[2],
                                    .to_pitch = span->n,
                                    .flip = p->q.x.flip};
    at += span->from + span->first * span->stride;
    if (p->depthwise) {
        byi_simd()->copy_bytes(&strip, planes[0] + at,
                               (uint8_t *)to + span->first);
        return;
    }
    uint32_t *words = (uint32_t *)(void *)to + span->first;
    for (int64_t r = 0; r < rows; r++)
        weave(p, planes, at + r * strip.pitch, span->stride,
              words + r * span->n, n);
}

/* Fill the part of a frame's image that is not padding. */
static void fill_image(const struct qnn_conv_plan *p, const int64_t phase[3],
                       const uint8_t *const planes[4], char *to)
{
    const struct byi_window *w = &p->v.w;
    const struct byi_conv_frame *f = &p->f;
    int64_t from[3]; /* channel position of the image's first element */
    for (int i = 0; i < 3; i++)
        from[i] = phase[i] * w->dilation[i] % w->stride[i] - w->pad[i];
    const struct byi_frame_row s = byi_frame_row_of(w, f, from[2]);
    const int64_t size = p->depthwise ? 1 : 4, high = w->stride[1];
    const int64_t top = from[1] < 0 ? byi_ceil_div(-from[1], high) : 0;
    const int64_t end =
        byi_min(f->dims[1], byi_ceil_div(byi_max(0, w->in[1] - from[1]), high));
    for (int64_t i = 0; s.last > s.first && i < f->dims[0]; i++) {
        const int64_t d = i * w->stride[0] + from[0];
        const int64_t row = d * w->in[1] + top * high + from[1];
        if (d >= 0 && d < w->in[0] && top < end)
            fill_rows(p, &s, planes, row * w->in[2], end - top,
                      to + (i * f->dims[1] + top) * s.n * size);
    }
}

/* Fill a frame, with its padding, from word row `row` of the group whose first
 * channel is at x. */
static void fill_frame(const struct qnn_conv_plan *p, const uint8_t *x,
                       int64_t row, void *to)
{
    const int64_t each = p->depthwise ? 1 : p->q.words->each;
    const int64_t count = p->f.channel / p->f.image;
    const uint8_t *planes[4];
    for (int64_t i = 0; i < 4; i++) /* beyond the last plane weights are 0 */
        planes[i] = x + byi_min(row * each + i, p->v.c - 1) * p->v.w.in_count;
    if (p->f.same && !p->depthwise) {
        weave(p, planes, 0, 1, to, p->v.w.in_count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t phase[3];
        byi_unflatten(p->f.phases, i, phase);
        fill_image(p, phase, planes,
                   (char *)to + i * p->f.image * (p->depthwise ? 1 : 4));
    }
}

/* --- results -------------------------------------------------------------- */

/* A thread's buffers. */
struct qnn_conv_lane {
    uint32_t *sums;
    char *bytes;      /* results with gaps between rows */
    uint8_t *channel; /* a depthwise frame              */
};

/* Copy outputs [from, to) of a plane's sequence to their places in y; run[0] is
 * output `from`. */
static void copy_outputs(const struct qnn_conv_plan *p, const char *run,
                         int64_t from, int64_t to, char *y)
{
    const struct byi_window *w = &p->v.w;
    const int64_t dim = p->f.dims[2], size = p->q.size, width = w->out[2];
    int64_t d = from / dim / p->f.dims[1], h = from / dim % p->f.dims[1];
    for (int64_t at = from - from % dim; at < to; at += dim) {
        const int64_t first = byi_max(at, from);
        const int64_t last = byi_min(at + width, to);
        char *row = y + (d * w->out[1] + h) * width * size;
        if (h < w->out[1] && first < last)
            memcpy(row + (first - at) * size, run + (first - from) * size,
                   (size_t)((last - first) * size));
        if (++h == p->f.dims[1]) {
            h = 0;
            d++;
        }
    }
}

struct qnn_epilogue {
    uint32_t *add;
    float *scale;
};

/* Epilogue of outputs [from, to) of channel o; y is the image's result. */
static void finish(const struct qnn_conv_plan *p, const struct qnn_epilogue *s,
                   int64_t o, const uint32_t *sums, int64_t from, int64_t to,
                   char *bytes, char *y)
{
    const int64_t size = p->q.size;
    y += o * p->v.w.out_count * size;
    byi_simd()->finish[p->q.dtype](
        sums, s->add + o, s->scale + o, 0, &p->q.kept,
        p->f.dense ? y + from * size : bytes, to - from);
    if (!p->f.dense)
        copy_outputs(p, bytes, from, to, y);
}

/* Correct n sums of channel o, whose weights kept their zero point; totals are
 * the sums of x. */
static void subtract_zero(const struct qnn_conv_plan *p, int64_t o,
                          const uint32_t *totals, uint32_t *sums, int64_t n)
{
    const uint32_t offset = (uint32_t)byi_qnn_offset(&p->q, o);
    for (int64_t i = 0; i < n; i++)
        sums[i] -= offset * totals[i];
}

/* A tile of panels by positions of a group, whose frames are at x. */
static void run_task(const struct qnn_conv_plan *p,
                     const struct qnn_epilogue *s, int64_t group, int64_t task,
                     const int64_t *offsets, const uint32_t *weights,
                     const uint32_t *x, const struct qnn_conv_lane *lane,
                     char *y)
{
    const int64_t mr = byi_simd()->mr, nr = byi_simd()->nr;
    const int64_t first = task % p->m_tasks * p->height;
    const int64_t last = byi_min(first + p->height, p->panels);
    const int64_t n0 = task / p->m_tasks * p->width;
    const int64_t n1 = byi_min(n0 + p->width, p->f.run);
    uint32_t *totals = lane->sums + mr * p->width;
    for (int64_t n = n0; n < n1 && p->q.kept_zeros; n += nr)
        p->q.words->left_signed(p->k, weights + panel_words(p), x + n, offsets,
                                totals + n - n0, p->width, 1);
    weights += group * p->panels * mr * p->k;
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t m = byi_min(mr, p->v.o - panel * mr);
        for (int64_t n = n0; n < n1; n += nr)
            p->q.words->left_signed(p->k, weights + panel * mr * p->k, x + n,
                                    offsets, lane->sums + n - n0, p->width, m);
        for (int64_t i = 0; i < m; i++) {
            const int64_t o = group * p->v.o + panel * mr + i;
            uint32_t *sums = lane->sums + i * p->width;
            if (p->q.kept_zeros)
                subtract_zero(p, o, totals, sums, n1 - n0);
            finish(p, s, o, sums, n0, n1, lane->bytes, y);
        }
    }
}

static void run_channel(const struct qnn_conv_plan *p,
                        const struct qnn_epilogue *s, int64_t o,
                        const int64_t *offsets, const uint32_t *weights,
                        const uint8_t *x, const struct qnn_conv_lane *lane,
                        char *y)
{
    fill_frame(p, x + o * p->v.w.in_count, 0, lane->channel);
    p->q.words->taps(lane->channel, offsets, weights + o * p->k, p->k,
                     lane->sums, p->f.run);
    finish(p, s, o, lane->sums, 0, p->f.run, lane->bytes, y);
}

/* --- running a call ------------------------------------------------------- */

static void list_offsets(const struct qnn_conv_plan *p, int64_t *offsets)
{
    const int64_t taps = p->v.w.taps;
    const int64_t all = p->depthwise ? p->k * p->q.words->each : p->k;
    for (int64_t i = 0; i < all; i++)
        offsets[i] = p->depthwise
                         ? byi_frame_tap(&p->v.w, &p->f, byi_min(i, taps - 1))
                         : i / taps * p->f.channel +
                               byi_frame_tap(&p->v.w, &p->f, i % taps);
}

/* The parts of scratch. */
struct memory {
    int64_t *offsets;
    struct qnn_epilogue steps;
    uint32_t *frames, *packed;
    char *lanes;
    uint64_t lane; /* bytes of one */
};

static struct memory memory_of(const struct qnn_conv_plan *p,
                               const struct byi_call *call)
{
    char *at = call->scratch;
    struct memory m = {.offsets = (int64_t *)(void *)at};
    at += p->offsets;
    m.steps.add = (uint32_t *)(void *)at;
    m.steps.scale = (float *)(void *)at + p->q.channels;
    at += p->steps;
    m.packed = (uint32_t *)(void *)at;
    at += p->packed;
    m.lane = p->sums + p->bytes + (p->depthwise ? p->frames : 0);
    m.lanes = at;
    m.frames = (uint32_t *)(void *)(at + m.lane * call->threads);
    return m;
}

static struct qnn_conv_lane lane_of(const struct qnn_conv_plan *p,
                                    const struct memory *m)
{
    char *at = m->lanes + (uint64_t)byi_lane() * m->lane;
    return (struct qnn_conv_lane){.sums = (uint32_t *)(void *)at,
                                  .bytes = at + p->sums,
                                  .channel =
                                      (uint8_t *)at + p->sums + p->bytes};
}

static void run_depthwise(const struct qnn_conv_plan *p, const struct memory *m,
                          const uint32_t *weights, int team)
{
    const int64_t all = p->v.groups * p->v.o, image = p->v.groups * p->v.c;
#pragma omp parallel num_threads(team) if (team > 1)
    {
        const struct qnn_conv_lane lane = lane_of(p, m);
        memset(lane.channel, padding_byte(p), p->frames);
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < p->v.n * all; i++) {
            const int64_t n = i / all;
            const uint8_t *x = p->q.x.at + n * image * p->v.w.in_count;
            char *y = (char *)p->v.y + n * all * p->v.w.out_count * p->q.size;
            run_channel(p, &m->steps, i % all, m->offsets, weights, x, &lane,
                        y);
        }
    }
}

static void run_products(const struct qnn_conv_plan *p, const struct memory *m,
                         const uint32_t *weights, int team)
{
    const int64_t all = p->v.groups * p->v.o, image = p->v.groups * p->v.c;
    const int64_t rows = p->v.groups * p->rows, tasks = p->m_tasks * p->n_tasks;
    if (!p->f.same) {
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t i = 0; i < rows; i++)
            memset(m->frames + i * p->f.channel, padding_byte(p),
                   (size_t)p->f.channel * 4);
    }
    for (int64_t n = 0; n < p->v.n; n++) {
        const uint8_t *x = p->q.x.at + n * image * p->v.w.in_count;
        char *y = (char *)p->v.y + n * all * p->v.w.out_count * p->q.size;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t i = 0; i < rows; i++)
            fill_frame(p, x + i / p->rows * p->v.c * p->v.w.in_count,
                       i % p->rows, m->frames + i * p->f.channel);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(dynamic, 1)
        for (int64_t i = 0; i < p->v.groups * tasks; i++) {
            const struct qnn_conv_lane lane = lane_of(p, m);
            run_task(p, &m->steps, i / tasks, i % tasks, m->offsets, weights,
                     m->frames + i / tasks * p->rows * p->f.channel, &lane, y);
        }
    }
}

static void run(const struct qnn_conv_plan *p, const struct byi_call *call)
{
    const struct memory m = memory_of(p, call);
    const uint32_t *weights = call->packed ? call->packed : m.packed;
    const int64_t all = p->v.groups * p->v.o;
    const int team = byi_team(call, p->v.n * all * p->v.w.out_count * p->v.c *
                                        p->v.w.taps / 4);
    if (!call->packed)
        pack_weights(p, p->v.w.taps, m.packed);
    list_offsets(p, m.offsets);
    byi_qnn_steps(call, &p->q,
                  p->depthwise || p->q.form == BYI_DOT_BYTES
                      ? weights + packed_words(p) - all
                      : NULL,
                  m.steps.add, m.steps.scale);
    (p->depthwise ? run_depthwise : run_products)(p, &m, weights, team);
}

static uint64_t qnn_conv_scratch(const struct byi_call *call)
{
    const struct byi_conv v = byi_conv_read(call);
    if (!byi_conv_fits_frame(&v))
        return byi_qnn_plain_scratch(call);
    const struct qnn_conv_plan p = plan_of(call);
    return p.offsets + p.steps + p.packed +
           (p.sums + p.bytes + (p.depthwise ? p.frames : 0)) * call->threads +
           (p.depthwise ? 0 : p.frames);
}

static enum byoc_status qnn_conv_run(const struct byi_call *call,
                                     struct byoc_error *err)
{
    const struct byi_conv v = byi_conv_read(call);
    if (!byi_conv_fits_frame(&v))
        return byi_qnn_plain(call, err);
    const struct qnn_conv_plan p = plan_of(call);
    run(&p, call);
    return BYOC_OK;
}

static const struct byi_kernel_row rows[] = {
    {BYI_OP_QNN_CONV1D, {qnn_conv_run, qnn_conv_scratch}},
    {BYI_OP_QNN_CONV2D, {qnn_conv_run, qnn_conv_scratch}},
    {BYI_OP_QNN_CONV3D, {qnn_conv_run, qnn_conv_scratch}},
};
const struct byi_kernel_rows byi_rows_qnn_conv = {rows, BYI_COUNT(rows)};
