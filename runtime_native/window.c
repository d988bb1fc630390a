/* window.c: the windows of convolution and pooling, as three spatial axes
 * whatever the operator has.
 */
#include "kernel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static int64_t at_or(const int64_t *list, uint32_t n, uint32_t i,
                     int64_t fallback)
{
    return i < n ? list[i] : fallback;
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
        const uint32_t i = axis + n - 3; /* wraps, to beyond n, in front */
        w->in[axis] = at_or(in, n, i, 1);
        w->out[axis] = at_or(out, n, i, 1);
        w->size[axis] = at_or(size, n, i, 1);
        w->stride[axis] = at_or(strides, n_strides, i, 1);
        w->dilation[axis] = at_or(dilation, n_dilation, i, 1);
        w->pad[axis] = at_or(padding, n, i, 0);
        w->end[axis] = i < n ? padding[n + i] : 0;
        w->in_count *= w->in[axis];
        w->out_count *= w->out[axis];
        /* a window may be larger than any memory: padding makes it fit */
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

void byi_window_outputs(const struct byi_window *w, int axis, int64_t tap,
                        int64_t *first, int64_t *last)
{
    /* output i reads at i stride + from */
    const int64_t from = tap * w->dilation[axis] - w->pad[axis];
    const int64_t stride = w->stride[axis];
    *first = from < 0 ? byi_ceil_div(-from, stride) : 0;
    *last = from < w->in[axis] ? byi_ceil_div(w->in[axis] - from, stride) : 0;
    *first = byi_min(*first, w->out[axis]);
    *last = byi_max(*first, byi_min(*last, w->out[axis]));
}

/* --- planes ----------------------------------------------------------------
 */

enum { TOGETHER = 16 }; /* planes of a task */

/* Floats of a row with the border that all windows of its outputs lie on. */
static int64_t bordered_row(const struct byi_window *w)
{
    return byi_max(w->pad[2] + w->in[2], (w->out[2] - 1) * w->stride[2] +
                                             (w->size[2] - 1) * w->dilation[2] +
                                             1);
}

bool byi_sliding_fits(const struct byi_window *w)
{
    if (w->in[0] != 1 || w->out[0] != 1 || w->size[0] != 1 || w->pad[0] != 0 ||
        w->stride[2] > 2 || w->size[2] > BYI_WINDOW_TAPS || w->taps > 1024)
        return false;
    return w->pad[2] <= w->in[2] + 64 && w->end[2] <= w->in[2] + 64;
}

/* Of a thread. */
static uint64_t room_of(const struct byi_window *w)
{
    if (!byi_simd()->bordered)
        return 0;
    return byi_lines((uint64_t)(bordered_row(w) * w->in[1] + BYI_SLACK) *
                     sizeof(float));
}

uint64_t byi_sliding_scratch(const struct byi_window *w, uint32_t threads)
{
    return room_of(w) * threads;
}

/* A plane inside of its border. Rows may be short: no calls. */
static void copy_inside(const struct byi_window *w, const float *x, float *to,
                        int64_t wide)
{
    to += w->pad[2];
    for (int64_t row = 0; row < w->in[1]; row++, to += wide, x += w->in[2]) {
        int64_t i = 0;
        for (; i + 4 <= w->in[2]; i += 4)
            memcpy(to + i, x + i, 4 * sizeof *x);
        for (; i < w->in[2]; i++)
            memcpy(to + i, x + i, sizeof *x);
    }
}

/* n planes, each with its own inputs and weights. */
static void run_together(const struct byi_sliding *v, const float *x,
                         const float *weights, float *y, int64_t n, float *room)
{
    const struct byi_simd *simd = byi_simd();
    const struct byi_window *w = v->w;
    if (!simd->bordered) {
        simd->window[v->kind](x, weights, w, y, n);
        return;
    }
    struct byi_window inner = *w;
    inner.in[2] = bordered_row(w);
    inner.pad[2] = 0;
    for (int64_t i = 0; i < inner.in[2] * w->in[1] + BYI_SLACK; i++)
        room[i] = v->kind == BYI_WINDOW_MAX ? -INFINITY : 0;
    for (int64_t p = 0; p < n; p++) {
        copy_inside(w, x + p * w->in_count, room, inner.in[2]);
        simd->window[v->kind](room, weights ? weights + p * w->taps : NULL,
                              &inner, y + p * w->out_count, 1);
    }
}

static void run_task(const struct byi_sliding *v, int64_t image, int64_t c,
                     int64_t n, float *room)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t channels = v->groups * v->repeat, out = v->w->out_count;
    const int64_t from = image * v->groups + c / v->repeat;
    float *y = v->y + (image * channels + c) * out;
    run_together(v, v->x + from * v->w->in_count,
                 v->weights ? v->weights + c * v->w->taps : NULL, y, n, room);
    for (int64_t p = 0; p < n && v->shares; p++, y += out)
        simd->binary[BYI_OP_MULTIPLY](y, 1, v->shares, 1, y, out);
}

void byi_sliding_run(const struct byi_sliding *v, const struct byi_call *call,
                     void *scratch)
{
    const int64_t channels = v->groups * v->repeat;
    const int64_t step = v->repeat == 1 ? TOGETHER : 1;
    const int64_t tasks = byi_ceil_div(channels, step);
    const uint64_t room = room_of(v->w);
    const int team =
        byi_team(call, v->n * channels * v->w->out_count * v->w->taps);
#pragma omp parallel num_threads(team) if (team > 1)
    {
        uint64_t lane = 0;
#ifdef _OPENMP
        lane = (uint64_t)omp_get_thread_num();
#endif
        float *mine = (void *)((char *)scratch + lane * room);
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < v->n * tasks; i++) {
            const int64_t c = i % tasks * step;
            run_task(v, i / tasks, c, byi_min(step, channels - c), mine);
        }
    }
}
