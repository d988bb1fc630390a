/* window.c: the windows of convolution and pooling, as three spatial axes
 * whatever the operator has.
 */
#include "kernel.h"

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
