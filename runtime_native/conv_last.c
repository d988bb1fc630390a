/* SPDX-License-Identifier: Apache-2.0 */
/* conv_last.c: float32 convolution with channels last.
 *   data (N, d, h, w, C), weights (kd, kh, kw, C/G, O) -> (N, od, oh, ow, O)
 * A matrix product per group, windows (positions of all images, taps C/G) by
 * weights (taps C/G, O/G): the channels under a tap are next to each other, so
 * the product's packer gathers whole runs of them. Depthwise is a sum over
 * taps, all channels at a time. Weights of another layout are copied first;
 * so are blocked images, which become channels last on the way in and out.
 */
#include "conv.h"

/* --- windows by weights --------------------------------------------------- */

/* Rows of the product at `ctx`: how the weights lie, too. */
struct product {
    const struct byi_conv *v;
    const float *weights;
    int64_t rs, cs, group; /* of the weights: rows, columns, groups apart */
};

enum {
    ROWS = 32,            /* of a panel, at most                */
    RUN = BYI_GEMM_DEPTH, /* channels that are gathered at once */
};

/* A position whose window is gathered. */
struct row {
    const float *image; /* first channel of the group                */
    int64_t at[3];      /* where the window begins; maybe on padding */
};

static const float zeros[RUN];

/* The position's elements under taps (d, h, w0 .. w0 + count-1): `run` of
 * them, from `first` on. Where the window hangs over a side, or the taps are
 * not next to each other, they are put together in `room`. */
static const float *gather(const struct byi_conv *v, const struct row *row,
                           int64_t tap, int64_t first, int64_t run, float *room)
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
    /* more taps than one: they are dense and the group is all channels */
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

/* Elements of k that one gather may span: a row of dense taps, or one tap. */
static int64_t span_of(const struct byi_conv *v)
{
    const bool dense = v->w.dilation[2] == 1 && v->groups == 1;
    const int64_t row = v->w.size[2] * v->c;
    return dense && v->c < RUN / 4 && row <= RUN ? row : v->c;
}

static void find_rows(const struct byi_conv *v, int64_t group, int64_t m0,
                      int64_t n, struct row *rows)
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
    const struct byi_conv *v = ((const struct product *)ctx)->v;
    const int64_t span = span_of(v);
    struct row rows[ROWS];
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
    const struct byi_conv *v = ((const struct product *)ctx)->v;
    return (struct byi_matrix){
        .at = (const float *)v->x + group * v->c, .rs = v->in.c, .cs = 1};
}

static float *result_of(const void *ctx, int64_t group)
{
    const struct byi_conv *v = ((const struct product *)ctx)->v;
    return (float *)v->y + group * v->o;
}

static void pack_weights(const void *ctx, int64_t group, int64_t k0, int64_t kc,
                         int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    const struct product *p = ctx;
    const struct byi_matrix b = {
        .at = p->weights + group * p->group, .rs = p->rs, .cs = p->cs};
    byi_pack_matrix(&b, k0, kc, n0, nc, nr, dst);
}

static void run_product(const struct byi_call *call, const struct product *p,
                        void *scratch)
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

/* Taps on data of the window at `at` of an image: where their channels and
 * weights begin. Returns how many. */
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

/* What this file works in, by the number of spatial axes. */
static const char *const last_data[] = {"NC", "NWC", "NHWC", "NDHWC"};
static const char *const last_kernel[] = {"IO", "WIO", "HWIO", "DHWIO"};

/* Do the weights lie as (taps, I, O), or as (O, taps, I)? */
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

/* How a call is run: what is copied, and where scratch memory is. Sizes are in
 * bytes; 0: used as it is. */
struct plan {
    struct byi_conv v;
    uint64_t x, y, weights, rest;
};

static struct plan plan_of(const struct byi_call *call)
{
    struct plan p = {.v = byi_conv_read(call)};
    const struct byi_conv *v = &p.v;
    const uint64_t size = sizeof(float);
    if (!v->in.last) {
        p.x = byi_lines((uint64_t)byi_count(&call->in[0]) * size);
        p.y = byi_lines((uint64_t)byi_count(call->out) * size);
    }
    if (!is_taps_first(v) && (is_depthwise(v) || !is_taps_last(v)))
        p.weights = byi_lines((uint64_t)byi_count(&call->in[1]) * size);
    p.rest = is_depthwise(v)
                 ? 2 * sizeof(int64_t) * (uint64_t)v->w.taps * call->threads
                 : byi_gemm_scratch(v->n * v->w.out_count, v->o,
                                    v->c * v->w.taps, call->threads);
    return p;
}

uint64_t byi_conv_last_scratch(const struct byi_call *call)
{
    const struct plan p = plan_of(call);
    return p.x + p.y + p.weights + p.rest;
}

/* The result, which is channels last, as the caller has it. */
static void give_result(const struct byi_call *call, const struct byi_conv *v)
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
    struct plan p = plan_of(call);
    struct byi_conv *v = &p.v;
    char *at = call->scratch;
    struct product product = {.v = v, .weights = v->weights};
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
        give_result(call, v);
}
