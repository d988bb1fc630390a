/* conv.c: nn.conv1d, nn.conv2d, nn.conv3d.
 *   data (N, C, d, h, w), weights (O, C/G, kd, kh, kw) -> (N, O, od, oh, ow)
 * or in other layouts, whose float32 is conv_last.c's.
 * float32 is a matrix product per image and group, weights (O/G, C/G taps) by
 * windows (C/G taps, positions); the windows are never stored: the product's
 * packer gathers them. Groups of few outputs (depthwise) run directly instead.
 */
#include "conv.h"

#ifdef _OPENMP
#include <omp.h>
#endif

struct byi_conv byi_conv_read(const struct byi_call *call)
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
    v.c = v.at.i;
    v.o = v.at.o / v.groups;
    byi_window_read(call->attrs, v.in.spatial, v.in.space, v.out.space,
                    v.at.space, &v.w);
    return v;
}

/* --- plain: one output at a time ---------------------------------------- */

/* Where tap `t` of the window at `out` lies in a channel; -1: on padding. */
static int64_t tap_place(const struct byi_window *w, const int64_t out[3],
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
                int64_t place = tap_place(&v->w, out, t);                      \
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

static void (*const plain[BYI_DTYPES])(const struct byi_conv *, int64_t) = {
#define ROW(id, type) [BYOC_##id] = plain_##id,
    BYI_EACH_FLOAT(ROW) BYI_EACH_INT(ROW)
#undef ROW
};

enum byoc_status byi_conv_plain(const struct byi_call *call,
                                struct byoc_error *err)
{
    const struct byi_conv v = byi_conv_read(call);
    void (*run)(const struct byi_conv *, int64_t) = plain[call->in->dtype];
    if (!run)
        return byi_bad_dtype(call, call->in->dtype,
                             "a float or an integer type", err);
    const int64_t planes = v.n * v.groups * v.o;
    const int team = byi_team(call, planes * v.w.out_count * v.c * v.w.taps);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t plane = 0; plane < planes; plane++)
        run(&v, plane);
    return BYOC_OK;
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

/* Outputs of one row that stand next to each other in a panel. */
struct run {
    int64_t out[3]; /* of the first one */
    int64_t n;
};

/* Cuts the positions [n0, n0 + nc) into runs; returns how many. */
static int cut_runs(const struct byi_window *w, int64_t n0, int64_t nc,
                    struct run *runs)
{
    int count = 0;
    for (int64_t at = 0; at < nc; at += runs[count++].n) {
        struct run *r = &runs[count];
        byi_unflatten(w->out, n0 + at, r->out);
        r->n = byi_min(nc - at, w->out[2] - r->out[2]);
    }
    return count;
}

/* The inputs under tap kw of a run of outputs in a row of w->in[2] inputs. */
static void gather_row(const struct byi_window *w, const float *row,
                       const struct run *r, int64_t kw, float *dst)
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

/* Row k = (channel, kd, kh, kw) of the windows' matrix, for these runs. */
static void gather(const struct byi_conv *v, const float *x,
                   const int64_t tap[3], const struct run *runs, int n_runs,
                   float *dst)
{
    const struct byi_window *w = &v->w;
    for (int i = 0; i < n_runs; dst += runs[i++].n) {
        const struct run *r = &runs[i];
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

static void pack_windows(const void *ctx, int64_t batch, int64_t k0, int64_t kc,
                         int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    enum { MOST = 64 };
    const struct byi_conv *v = ctx;
    struct run runs[MOST];
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

static void pack_image(const void *ctx, int64_t batch, int64_t k0, int64_t kc,
                       int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    const struct byi_conv *v = ctx;
    const struct byi_matrix b = {channels_of(v, batch), v->w.in_count, 1};
    byi_pack_matrix(&b, k0, kc, n0, nc, nr, dst);
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
        .pack_b = byi_conv_is_pointwise(&v->w) ? pack_image : pack_windows,
        .ctx = v,
        .ldc = v->w.out_count,
    };
    byi_gemm_run(&g, call->threads, call->scratch);
}

/* --- float32, few outputs a group: direct --------------------------------- */

/* The group's channels are copied into a frame of zeros. In it every tap is
 * one distance away from its output, whichever output that is, so that a
 * whole plane (with strides: a row) is one sequence; what comes out between
 * the outputs is dropped. */
struct frame {
    int64_t dims[3], plane; /* of one channel, padding included */
    int64_t run;            /* outputs of a sequence, gaps included */
    int64_t floats;         /* of scratch, per thread */
};

static bool strided(const struct byi_window *w)
{
    return w->stride[0] != 1 || w->stride[1] != 1 || w->stride[2] != 1;
}

static struct frame frame_of(const struct byi_conv *v)
{
    const struct byi_window *w = &v->w;
    struct frame f = {.plane = 1};
    for (int i = 0; i < 3; i++) {
        /* where the last window ends; what lies beyond is never read */
        const int64_t reach = (w->out[i] - 1) * w->stride[i] +
                              (w->size[i] - 1) * w->dilation[i] + 1;
        f.dims[i] = byi_max(reach, 1);
        f.plane *= f.dims[i];
    }
    f.run = (w->out[2] - 1) * w->stride[2] + 1;
    if (!strided(w))
        f.run += ((w->out[0] - 1) * f.dims[1] + w->out[1] - 1) * f.dims[2];
    f.floats = v->c * f.plane + f.run + 3 * BYI_SLACK;
    f.floats += v->c * w->taps * (int64_t)(sizeof(int64_t) / sizeof(float));
    f.floats = (int64_t)byi_lines((uint64_t)f.floats * sizeof(float)) /
               (int64_t)sizeof(float);
    return f;
}

/* Copies one channel into its frame. */
static void fill_frame(const struct byi_window *w, const struct frame *f,
                       const float *x, float *to)
{
    const int64_t rows = f->dims[0] * f->dims[1];
    const int64_t n = byi_max(0, byi_min(w->in[2], f->dims[2] - w->pad[2]));
    memset(to, 0, (size_t)f->plane * sizeof(float));
    for (int64_t row = 0; row < rows && n > 0; row++) {
        const int64_t d = row / f->dims[1] - w->pad[0];
        const int64_t h = row % f->dims[1] - w->pad[1];
        if (d < 0 || d >= w->in[0] || h < 0 || h >= w->in[1])
            continue;
        memcpy(to + row * f->dims[2] + w->pad[2],
               x + (d * w->in[1] + h) * w->in[2], (size_t)n * sizeof(float));
    }
}

static void list_offsets(const struct byi_conv *v, const struct frame *f,
                         int64_t *offsets)
{
    for (int64_t i = 0; i < v->c * v->w.taps; i++) {
        int64_t tap[3];
        byi_unflatten(v->w.size, i % v->w.taps, tap);
        for (int axis = 0; axis < 3; axis++)
            tap[axis] *= v->w.dilation[axis];
        offsets[i] = i / v->w.taps * f->plane +
                     (tap[0] * f->dims[1] + tap[1]) * f->dims[2] + tap[2];
    }
}

/* Output row (d, h) out of a sequence that has it from `from` on. */
static void take_row(const struct byi_window *w, const float *from, float *y)
{
    const int64_t stride = w->stride[2];
    for (int64_t i = 0; i < w->out[2]; i++)
        y[i] = from[i * stride];
}

/* One output channel of a filled frame. */
static void direct_plane(const struct byi_conv *v, const struct frame *f,
                         const float *frame, const int64_t *offsets,
                         const float *weights, float *run, float *y)
{
    const struct byi_window *w = &v->w;
    const int64_t taps = v->c * w->taps, rows = w->out[0] * w->out[1];
    const bool whole = !strided(w);
    if (whole)
        byi_simd()->taps(frame, offsets, weights, taps, run, f->run);
    for (int64_t row = 0; row < rows; row++, y += w->out[2]) {
        const int64_t d = row / w->out[1] * w->stride[0];
        const int64_t h = row % w->out[1] * w->stride[1];
        const int64_t at = (d * f->dims[1] + h) * f->dims[2];
        if (!whole)
            byi_simd()->taps(frame + at, offsets, weights, taps, run, f->run);
        take_row(w, whole ? run + at : run, y);
    }
}

static void run_direct(const struct byi_conv *v, const struct byi_call *call)
{
    const struct frame f = frame_of(v);
    const int64_t batches = v->n * v->groups, taps = v->c * v->w.taps;
    const int team = byi_team(call, batches * v->o * v->w.out_count * taps);
    if (v->w.out_count == 0)
        return;
#pragma omp parallel num_threads(team) if (team > 1)
    {
        int64_t lane = 0;
#ifdef _OPENMP
        lane = omp_get_thread_num();
#endif
        float *frame = (float *)call->scratch + lane * f.floats;
        float *run = frame + v->c * f.plane + BYI_SLACK;
        int64_t *offsets = (int64_t *)(void *)(frame + f.floats) - taps;
        list_offsets(v, &f, offsets);
        memset(frame + v->c * f.plane, 0, BYI_SLACK * sizeof(float));
#pragma omp for schedule(static) nowait
        for (int64_t batch = 0; batch < batches; batch++) {
            const float *x = channels_of(v, batch);
            for (int64_t c = 0; c < v->c; c++)
                fill_frame(&v->w, &f, x + c * v->w.in_count,
                           frame + c * f.plane);
            for (int64_t o = 0; o < v->o; o++)
                direct_plane(
                    v, &f, frame, offsets,
                    (const float *)v->weights +
                        (batch % v->groups * v->o + o) * taps,
                    run, (float *)v->y + (batch * v->o + o) * v->w.out_count);
        }
    }
}

/* --- rows --------------------------------------------------------------- */

/* Few outputs a group leave most of a product's tile empty. Wide strides
 * would throw most of a sequence away, and padding or dilation beyond all
 * measure would make the frame far larger than the data. */
static bool is_direct(const struct byi_conv *v)
{
    const struct byi_window *w = &v->w;
    double frame = 1;
    for (int i = 0; i < 3; i++)
        frame *= (double)(w->out[i] - 1) * (double)w->stride[i] +
                 (double)(w->size[i] - 1) * (double)w->dilation[i] + 1;
    return v->groups > 1 && v->o <= 4 && v->c <= 16 && w->stride[2] <= 4 &&
           frame <= 8.0 * (double)(w->in_count + w->out_count) + 4096;
}

static uint64_t conv_scratch_f32(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    if (!byi_layout_is_default(call->op, call->attrs))
        return byi_conv_last_scratch(call);
    const struct byi_conv v = byi_conv_read(call);
    if (is_direct(&v))
        return (uint64_t)frame_of(&v).floats * sizeof(float) * call->threads;
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
    if (is_direct(&v))
        run_direct(&v, call);
    else
        run_product(&v, call);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(conv, conv_run_f32, conv_scratch_f32)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_NN_CONV1D, {conv_run, conv_scratch}},
    {BYI_OP_NN_CONV2D, {conv_run, conv_scratch}},
    {BYI_OP_NN_CONV3D, {conv_run, conv_scratch}},
};
const struct byi_kernel_rows byi_rows_conv = {rows, BYI_COUNT(rows)};
