/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: nn.conv1d, nn.conv2d, nn.conv3d.
 *   data (N, C, d, h, w), weights (O, C/G, kd, kh, kw) -> (N, O, od, oh, ow)
 * or in other layouts; float32 in those is in conv_last.c.
 * float32 runs as an implicit GEMM per image and group: weights (O/G, C/G taps)
 * by windows (C/G taps, positions). The im2col matrix is never stored: packing
 * gathers its panels. conv_frame.c needs no gathering where it applies.
 */
#include "conv.h"

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
                    &v.at);
    return v;
}

struct byi_conv byi_conv_read(const struct byi_call *call)
{
    struct byi_conv v = byi_conv_operands(call);
    v.c = v.at.i;
    v.o = v.at.o / v.groups;
    byi_window_read(call->attrs, v.in.spatial, v.in.space, v.out.space,
                    v.at.space, &v.w);
    return v;
}

/* --- plain: one output at a time ---------------------------------------- */

/* Offset of tap `t` of the window at `out` in a channel; -1 on padding. */
static int64_t tap_offset(const struct byi_window *w, const int64_t out[3],
                          int64_t t)
{
    int64_t tap[3], place = 0;
    byi_unflatten(w->size, t, tap);
    for (int i = 0; i < 3; i++) {
        int64_t at =
            out[i] * w->stride[i] - w->pad[i] + tap[i] * w->dilation[i];
        if (at < 0 || at >= w->in[i])
            return -1;
        place = place * w->in[i] + at;
    }
    return place;
}

#define PLAIN(id, type, wide)                                                  \
    static void plain_##id(const struct byi_conv *v, int64_t plane)            \
    {                                                                          \
        const int64_t image = plane / (v->groups * v->o);                      \
        const int64_t o = plane % (v->groups * v->o), c0 = o / v->o * v->c;    \
        type *y = (type *)v->y + byi_image_at(&v->out, image, o);              \
        for (int64_t p = 0; p < v->w.out_count; p++) {                         \
            int64_t out[3];                                                    \
            wide sum = 0;                                                      \
            byi_unflatten(v->w.out, p, out);                                   \
            for (int64_t t = 0; t < v->w.taps; t++) {                          \
                int64_t place = tap_offset(&v->w, out, t);                     \
                for (int64_t c = 0; place >= 0 && c < v->c; c++) {             \
                    const int64_t at = byi_image_at(&v->in, image, c0 + c) +   \
                                       place * v->in.block;                    \
                    sum +=                                                     \
                        (wide)((const type *)v->x)[at] *                       \
                        (wide)((const type *)                                  \
                                   v->weights)[byi_filter_at(&v->at, o, c) +   \
                                               t * v->at.tap];                 \
                }                                                              \
            }                                                                  \
            y[p * v->out.block] = (type)sum;                                   \
        }                                                                      \
    }
BYI_EACH_SUM(PLAIN)

static const byi_conv_plane plain[BYI_DTYPES] = {
#define ROW(id, type) [BYOC_##id] = plain_##id,
    BYI_EACH_FLOAT(ROW) BYI_EACH_INT(ROW)
#undef ROW
};

enum byoc_status byi_conv_planes(const struct byi_call *call,
                                 const struct byi_conv *v, int64_t positions,
                                 const byi_conv_plane run[BYI_DTYPES],
                                 struct byoc_error *err)
{
    const byi_conv_plane one = run[call->in->dtype];
    if (!one)
        return byi_bad_dtype(call, call->in->dtype,
                             "a float or an integer type", err);
    const int64_t planes = v->n * v->groups * v->o;
    const int team = byi_team(call, planes * positions * v->c * v->w.taps);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t plane = 0; plane < planes; plane++)
        one(v, plane);
    return BYOC_OK;
}

enum byoc_status byi_conv_plain(const struct byi_call *call,
                                struct byoc_error *err)
{
    const struct byi_conv v = byi_conv_read(call);
    return byi_conv_planes(call, &v, v.w.out_count, plain, err);
}

/* --- float32 as a matrix product ---------------------------------------- */

static struct byi_matrix weights_of(const void *ctx, int64_t batch)
{
    const struct byi_conv *v = ctx;
    const int64_t k = v->c * v->w.taps;
    return (struct byi_matrix){
        .at = (const float *)v->weights + batch % v->groups * v->o * k,
        .rs = k,
        .cs = 1,
    };
}

static float *result_of(const void *ctx, int64_t batch)
{
    const struct byi_conv *v = ctx;
    return (float *)v->y + batch * v->o * v->w.out_count;
}

static const float *channels_of(const struct byi_conv *v, int64_t batch)
{
    return (const float *)v->x + batch * v->c * v->w.in_count;
}

/* Outputs of one row that are adjacent in a panel. */
struct output_run {
    int64_t out[3]; /* of the first one */
    int64_t n;
};

/* Cut the positions [n0, n0 + nc) into runs; returns their number. */
static int cut_runs(const struct byi_window *w, int64_t n0, int64_t nc,
                    struct output_run *runs)
{
    int count = 0;
    for (int64_t at = 0; at < nc; at += runs[count++].n) {
        struct output_run *r = &runs[count];
        byi_unflatten(w->out, n0 + at, r->out);
        r->n = byi_min(nc - at, w->out[2] - r->out[2]);
    }
    return count;
}

/* Inputs under tap kw of a run of outputs; `row` has w->in[2] inputs. */
static void gather_row(const struct byi_window *w, const float *row,
                       const struct output_run *r, int64_t kw, float *dst)
{
    const int64_t stride = w->stride[2];
    const int64_t from = r->out[2] * stride - w->pad[2] + kw * w->dilation[2];
    int64_t first = from < 0 ? byi_ceil_div(-from, stride) : 0;
    int64_t last = from < w->in[2] ? byi_ceil_div(w->in[2] - from, stride) : 0;
    first = byi_min(first, r->n);
    last = byi_max(first, byi_min(last, r->n));

    for (int64_t i = 0; i < first; i++)
        dst[i] = 0;
    if (stride == 1)
        for (int64_t i = first; i < last; i++)
            dst[i] = row[from + i];
    else
        for (int64_t i = first; i < last; i++)
            dst[i] = row[from + i * stride];
    for (int64_t i = last; i < r->n; i++)
        dst[i] = 0;
}

/* Row k = (channel, kd, kh, kw) of the im2col matrix, for these runs. */
static void gather(const struct byi_conv *v, const float *x,
                   const int64_t tap[3], const struct output_run *runs,
                   int n_runs, float *dst)
{
    const struct byi_window *w = &v->w;
    for (int i = 0; i < n_runs; dst += runs[i++].n) {
        const struct output_run *r = &runs[i];
        int64_t d =
            r->out[0] * w->stride[0] - w->pad[0] + tap[0] * w->dilation[0];
        int64_t h =
            r->out[1] * w->stride[1] - w->pad[1] + tap[1] * w->dilation[1];
        if (d < 0 || d >= w->in[0] || h < 0 || h >= w->in[1])
            memset(dst, 0, (size_t)r->n * sizeof(float));
        else
            gather_row(w, x + (d * w->in[1] + h) * w->in[2], r, tap[2], dst);
    }
}

void byi_conv_pack_windows(const void *ctx, int64_t batch, int64_t k0,
                           int64_t kc, int64_t n0, int64_t nc, int64_t nr,
                           float *dst)
{
    enum { MOST = 64 };
    const struct byi_conv *v = ctx;
    struct output_run runs[MOST];
    assert(nr <= MOST);
    const int n_runs = cut_runs(&v->w, n0, nc, runs);
    const float *x = channels_of(v, batch) + k0 / v->w.taps * v->w.in_count;
    int64_t tap[3];
    byi_unflatten(v->w.size, k0 % v->w.taps, tap);
    for (int64_t k = 0; k < kc; k++, dst += nr) {
        gather(v, x, tap, runs, n_runs, dst);
        for (int64_t i = nc; i < nr; i++)
            dst[i] = 0;
        int axis = 2;
        while (axis >= 0 && ++tap[axis] == v->w.size[axis])
            tap[axis--] = 0;
        if (axis < 0)
            x += v->w.in_count;
    }
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

static void run_product(const struct byi_conv *v, const struct byi_call *call)
{
    const struct byi_gemm g = {
        .batches = v->n * v->groups,
        .m = v->o,
        .n = v->w.out_count,
        .k = v->c * v->w.taps,
        .a = weights_of,
        .c = result_of,
        .pack_b = byi_conv_pack_windows,
        .ctx = v,
        .ldc = v->w.out_count,
    };
    byi_gemm_run(&g, call->threads, call->scratch);
}

/* --- choosing the algorithm ---------------------------------------------- */

static uint64_t conv_scratch_f32(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    if (!byi_layout_is_default(call->op, call->attrs))
        return byi_conv_last_scratch(call);
    const struct byi_conv v = byi_conv_read(call);
    if (byi_conv_fits_frame(&v))
        return byi_conv_frame_scratch(&v, call);
    return byi_gemm_scratch(v.o, v.w.out_count, v.c * v.w.taps, call->threads);
}

static enum byoc_status conv_run_f32(const struct byi_call *call,
                                     struct byoc_error *err)
{
    if (call->in->dtype != BYOC_F32)
        return byi_conv_plain(call, err);
    if (!byi_layout_is_default(call->op, call->attrs)) {
        byi_conv_last_run(call);
        return BYOC_OK;
    }
    const struct byi_conv v = byi_conv_read(call);
    if (byi_conv_fits_frame(&v))
        byi_conv_frame_run(&v, call);
    else
        run_product(&v, call);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(conv, conv_run_f32, conv_scratch_f32)

uint64_t byi_conv_pack(const struct byi_call *call, void *to)
{
    if (call->in->dtype != BYOC_F32 ||
        !byi_layout_is_default(call->op, call->attrs))
        return 0;
    return byi_conv_frame_pack(call, to);
}

static const struct byi_kernel_row rows[] = {
    {BYI_OP_NN_CONV1D, {conv_run, conv_scratch}},
    {BYI_OP_NN_CONV2D, {conv_run, conv_scratch}},
    {BYI_OP_NN_CONV3D, {conv_run, conv_scratch}},
};
const struct byi_kernel_rows byi_rows_conv = {rows, BYI_COUNT(rows)};
