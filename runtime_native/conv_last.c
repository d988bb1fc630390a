/* SPDX-License-Identifier: Apache-2.0 */
/* conv_last.c: float32 convolution with channels last.
 *   data (N, d, h, w, C), weights (kd, kh, kw, C/G, O) -> (N, od, oh, ow, O)
 * An implicit GEMM per group: windows (positions of all images, taps C/G) by
 * weights (taps C/G, O/G). The channels under a tap are contiguous, so packing
 * copies whole runs of them. Depthwise convolution is a sum over taps, all
 * channels at a time. Weights in other layouts are converted first, and blocked
 * images are converted to channels last and back.
 */
#include "conv.h"

/* --- windows by weights --------------------------------------------------- */

/* Context of the product: its windows, and the strides of the weights. */
struct conv_last_product {
    const struct byi_conv *v;
    const float *weights;
    int64_t rs, cs, group; /* of the weights: row, column, group stride */
};

enum {
    ROWS = 32,            /* of a panel, at most               */
    RUN = BYI_GEMM_DEPTH, /* channels per gather, at most      */
};

/* An output position whose window is gathered. */
struct window_row {
    const float *image; /* first channel of the group                */
    int64_t at[3];      /* first tap's position; may be on padding   */
};

static const float zeros[RUN];

/* `run` elements of the position's window row, from element `first` of tap
 * `tap` on. Returns a pointer into the image if they are contiguous there;
 * otherwise copies them, with zeros for padding, to `room`. */
static const float *gather(const struct byi_conv *v,
                           const struct window_row *row, int64_t tap,
                           int64_t first, int64_t run, float *room)
{
    const struct byi_window *w = &v->w;
    int64_t taps[3];
    byi_unflatten(w->size, tap, taps);
    const int64_t d = row->at[0] + taps[0] * w->dilation[0];
    const int64_t h = row->at[1] + taps[1] * w->dilation[1];
    if (d < 0 || d >= w->in[0] || h < 0 || h >= w->in[1])
        return zeros;
    const int64_t all = v->in.c;
    const float *line = row->image + (d * w->in[1] + h) * w->in[2] * all;
    int64_t at = row->at[2] + taps[2] * w->dilation[2];
    if (first + run <= v->c)
        return at < 0 || at >= w->in[2] ? zeros : line + at * all + first;
    /* several taps: they are dense, and there is one group */
    const int64_t last = at + (first + run - 1) / all;
    if (at >= 0 && last < w->in[2])
        return line + at * all + first;
    for (int64_t i = 0; i < run; at++, first = 0) {
        const int64_t n = byi_min(all - first, run - i);
        if (at < 0 || at >= w->in[2])
            memset(room + i, 0, (size_t)n * sizeof *room);
        else
            memcpy(room + i, line + at * all + first, (size_t)n * sizeof *room);
        i += n;
    }
    return room;
}

/* Elements that one gather may span: a row of dense taps, or one tap. */
static int64_t span_of(const struct byi_conv *v)
{
    const bool dense = v->w.dilation[2] == 1 && v->groups == 1;
    const int64_t row = v->w.size[2] * v->c;
    return dense && v->c < RUN / 4 && row <= RUN ? row : v->c;
}

static void find_rows(const struct byi_conv *v, int64_t group, int64_t m0,
                      int64_t n, struct window_row *rows)
{
    const struct byi_window *w = &v->w;
    for (int64_t i = 0; i < n; i++) {
        const int64_t image = (m0 + i) / w->out_count;
        byi_unflatten(w->out, (m0 + i) % w->out_count, rows[i].at);
        for (int axis = 0; axis < 3; axis++)
            rows[i].at[axis] =
                rows[i].at[axis] * w->stride[axis] - w->pad[axis];
        rows[i].image =
            (const float *)v->x + image * w->in_count * v->in.c + group * v->c;
    }
}

static void pack_windows(const void *ctx, int64_t group, int64_t k0, int64_t kc,
                         int64_t m0, int64_t mc, int64_t mr, float *dst)
{
    const struct byi_conv *v = ((const struct conv_last_product *)ctx)->v;
    const int64_t span = span_of(v);
    struct window_row rows[ROWS];
    const float *from[ROWS];
    float room[ROWS][RUN];
    assert(mr <= ROWS);
    find_rows(v, group, m0, mc, rows);
    for (int64_t i = mc; i < mr; i++)
        from[i] = zeros;
    for (int64_t k = k0, run; k < k0 + kc; k += run, dst += run * mr) {
        run = byi_min(byi_min(span - k % span, k0 + kc - k), RUN);
        for (int64_t i = 0; i < mc; i++)
            from[i] = gather(v, &rows[i], k / v->c, k % v->c, run, room[i]);
        byi_pack_rows(from, mr, run, dst);
    }
}

static struct byi_matrix image_of(const void *ctx, int64_t group)
{
    const struct byi_conv *v = ((const struct conv_last_product *)ctx)->v;
    return (struct byi_matrix){
        .at = (const float *)v->x + group * v->c, .rs = v->in.c, .cs = 1};
}

static float *result_of(const void *ctx, int64_t group)
{
    const struct byi_conv *v = ((const struct conv_last_product *)ctx)->v;
    return (float *)v->y + group * v->o;
}

static void pack_weights(const void *ctx, int64_t group, int64_t k0, int64_t kc,
                         int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    const struct conv_last_product *p = ctx;
    const struct byi_matrix b = {
        .at = p->weights + group * p->group, .rs = p->rs, .cs = p->cs};
    byi_pack_matrix(&b, k0, kc, n0, nc, nr, dst);
}

static void run_product(const struct byi_call *call,
                        const struct conv_last_product *p, void *scratch)
{
    const struct byi_conv *v = p->v;
    const struct byi_gemm g = {
        .batches = v->groups,
        .m = v->n * v->w.out_count,
        .n = v->o,
        .k = v->c * v->w.taps,
        .a = image_of,
        .c = result_of,
        .pack_a = byi_conv_is_pointwise(&v->w) ? NULL : pack_windows,
        .pack_b = pack_weights,
        .ctx = p,
        .ldc = v->out.c,
    };
    byi_gemm_run(&g, call->threads, scratch);
}

/* --- depthwise ------------------------------------------------------------ */

/* List the taps on data of the window at `at`: the offsets of their channels
 * and of their weights. Returns their number. */
static int64_t list_taps(const struct byi_conv *v, const int64_t at[3],
                         int64_t *x, int64_t *weights)
{
    const struct byi_window *w = &v->w;
    int64_t first[3], last[3], n = 0;
    for (int i = 0; i < 3; i++)
        byi_window_taps(w, i, at[i], &first[i], &last[i]);
    for (int64_t d = first[0]; d < last[0]; d++)
        for (int64_t h = first[1]; h < last[1]; h++)
            for (int64_t k = first[2]; k < last[2]; k++) {
                const int64_t tap[3] = {d, h, k};
                int64_t place = 0;
                for (int i = 0; i < 3; i++)
                    place = place * w->in[i] + at[i] * w->stride[i] -
                            w->pad[i] + tap[i] * w->dilation[i];
                x[n] = place * v->in.c;
                weights[n++] =
                    ((d * w->size[1] + h) * w->size[2] + k) * v->in.c;
            }
    return n;
}

/* weights (taps, C) */
static void run_depthwise(const struct byi_call *call, const struct byi_conv *v,
                          const float *weights, int64_t *lists)
{
    const struct byi_window *w = &v->w;
    const int64_t rows = v->n * w->out[0] * w->out[1], c = v->in.c;
    const int team = byi_team(call, v->n * w->out_count * w->taps * c);
#pragma omp parallel num_threads(team) if (team > 1)
    {
        const int64_t lane = byi_lane();
        int64_t *x = lists + lane * 2 * w->taps, *from = x + w->taps;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < rows; row++) {
            const int64_t image = row / (w->out[0] * w->out[1]);
            const float *data = (const float *)v->x + image * w->in_count * c;
            float *y = (float *)v->y + row * w->out[2] * c;
            int64_t at[3] = {row / w->out[1] % w->out[0], row % w->out[1], 0};
            for (; at[2] < w->out[2]; at[2]++, y += c) {
                const int64_t n = list_taps(v, at, x, from);
                byi_simd()->channels(data, x, weights, from, n, y, c);
            }
        }
    }
}

/* --- layouts ------------------------------------------------------------- */

/* The layouts of this file, by number of spatial axes. */
static const char *const last_data[] = {"NC", "NWC", "NHWC", "NDHWC"};
static const char *const last_kernel[] = {"IO", "WIO", "HWIO", "DHWIO"};

/* Are the weights in the order (taps, I, O)? And in (O, taps, I)? */
static bool is_taps_first(const struct byi_conv *v)
{
    const struct byi_filter *at = &v->at;
    return at->at_o.block == 1 && at->at_i.block == 1 && at->at_o.outer == 1 &&
           (v->c == 1 || at->at_i.outer == at->o) &&
           (v->w.taps == 1 || at->tap == at->o * v->c);
}

static bool is_taps_last(const struct byi_conv *v)
{
    const struct byi_filter *at = &v->at;
    return at->at_o.block == 1 && at->at_i.block == 1 && at->at_i.outer == 1 &&
           (v->w.taps == 1 || at->tap == v->c) &&
           at->at_o.outer == v->c * v->w.taps;
}

static bool is_depthwise(const struct byi_conv *v)
{
    return v->c == 1 && v->o == 1 && v->groups > 1 && v->w.taps <= 4096;
}

/* The convolution, and the sizes in bytes of the parts of scratch; 0 if an
 * operand needs no copy. */
struct conv_last_plan {
    struct byi_conv v;
    uint64_t x, y, weights, rest;
};

static struct conv_last_plan plan_of(const struct byi_call *call)
{
    struct conv_last_plan p = {.v = byi_conv_read(call)};
    const struct byi_conv *v = &p.v;
    const uint64_t size = sizeof(float);
    if (!v->in.last) {
        p.x = byi_align_bytes((uint64_t)byi_count(&call->in[0]) * size);
        p.y = byi_align_bytes((uint64_t)byi_count(call->out) * size);
    }
    if (!is_taps_first(v) && (is_depthwise(v) || !is_taps_last(v)))
        p.weights = byi_align_bytes((uint64_t)byi_count(&call->in[1]) * size);
    p.rest = is_depthwise(v)
                 ? 2 * sizeof(int64_t) * (uint64_t)v->w.taps * call->threads
                 : byi_gemm_scratch(v->n * v->w.out_count, v->o,
                                    v->c * v->w.taps, call->threads);
    return p;
}

uint64_t byi_conv_last_scratch(const struct byi_call *call)
{
    const struct conv_last_plan p = plan_of(call);
    return p.x + p.y + p.weights + p.rest;
}

/* Convert the result from channels last to the caller's layout. */
static void convert_result(const struct byi_call *call,
                           const struct byi_conv *v)
{
    const uint32_t spatial = v->out.spatial;
    struct byi_tensor t = {
        .data = v->y, .dtype = BYOC_F32, .rank = spatial + 2};
    t.dims[0] = v->n;
    for (uint32_t i = 0; i < spatial; i++)
        t.dims[1 + i] = v->out.space[i];
    t.dims[1 + spatial] = v->out.c;
    byi_relayout_named(call, &t, last_data[spatial],
                       byi_attr_string(call->attrs, "data_layout"),
                       call->out->data);
}

void byi_conv_last_run(const struct byi_call *call)
{
    struct conv_last_plan p = plan_of(call);
    struct byi_conv *v = &p.v;
    char *at = call->scratch;
    struct conv_last_product product = {.v = v, .weights = v->weights};
    if (p.x) {
        byi_relayout_named(call, &call->in[0],
                           byi_attr_string(call->attrs, "data_layout"),
                           last_data[v->in.spatial], at);
        v->x = at;
        v->y = at + p.x;
    }
    at += p.x + p.y;
    if (p.weights) {
        byi_relayout_named(call, &call->in[1],
                           byi_attr_string(call->attrs, "kernel_layout"),
                           last_kernel[v->in.spatial], at);
        product.weights = (const float *)(const void *)at;
    }
    at += p.weights;
    const int64_t k = v->c * v->w.taps, o = v->at.o;
    const bool first = p.weights || is_taps_first(v);
    product.rs = first ? o : 1;
    product.cs = first ? 1 : k;
    product.group = first ? v->o : v->o * k;
    if (is_depthwise(v))
        run_depthwise(call, v, product.weights, (int64_t *)(void *)at);
    else
        run_product(call, &product, at);
    if (p.y)
        convert_result(call, v);
}
