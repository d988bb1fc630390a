/* SPDX-License-Identifier: Apache-2.0 */
/* deconv.c: nn.conv1d_transpose, nn.conv2d_transpose, nn.conv3d_transpose.
 *   data (N, C, d, h, w), weights (C, O/G, kd, kh, kw) -> (N, O, od, oh, ow)
 * Other layouts are converted to these and back.
 * float32 runs as GEMM and col2im: weights^T (O/G taps, C/G) by data (C/G,
 * positions) gives columns, for a block of outputs at a time, and each column
 * is added to the outputs under its window.
 */
#include "conv.h"

enum { COLUMNS = 1 << 20 }; /* floats of the column buffer, at most */

/* The window slides over the result: w.in is the result's size, w.out the
 * data's. */
static struct byi_conv describe(const struct byi_call *call)
{
    struct byi_conv v = byi_conv_operands(call);
    v.c = v.at.i / v.groups;
    v.o = v.at.o;
    byi_window_read(call->attrs, v.in.spatial, v.out.space, v.in.space,
                    v.at.space, &v.w);
    return v;
}

/* --- plain: one output at a time ----------------------------------------- */

/* Offset of the data whose tap `tap` falls on output `out`; -1: none. */
static int64_t source(const struct byi_window *w, const int64_t out[3],
                      const int64_t tap[3])
{
    int64_t place = 0;
    for (int i = 0; i < 3; i++) {
        int64_t at = out[i] + w->pad[i] - tap[i] * w->dilation[i];
        if (at < 0 || at % w->stride[i] || at / w->stride[i] >= w->out[i])
            return -1;
        place = place * w->out[i] + at / w->stride[i];
    }
    return place;
}

#define PLAIN(id, type, wide)                                                  \
    static void plain_##id(const struct byi_conv *v, int64_t plane)            \
    {                                                                          \
        const int64_t image = plane / (v->groups * v->o);                      \
        const int64_t channel = plane % (v->groups * v->o);                    \
        const int64_t c0 = channel / v->o * v->c, o = channel % v->o;          \
        type *y = (type *)v->y + byi_image_at(&v->out, image, channel);        \
        for (int64_t p = 0; p < v->w.in_count; p++) {                          \
            int64_t out[3], tap[3];                                            \
            wide sum = 0;                                                      \
            byi_unflatten(v->w.in, p, out);                                    \
            for (int64_t t = 0; t < v->w.taps; t++) {                          \
                byi_unflatten(v->w.size, t, tap);                              \
                int64_t place = source(&v->w, out, tap);                       \
                for (int64_t c = c0; place >= 0 && c < c0 + v->c; c++) {       \
                    const int64_t at =                                         \
                        byi_image_at(&v->in, image, c) + place * v->in.block;  \
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

enum byoc_status byi_deconv_plain(const struct byi_call *call,
                                  struct byoc_error *err)
{
    const struct byi_conv v = describe(call);
    return byi_conv_planes(call, &v, v.w.in_count, plain, err);
}

/* --- float32 ------------------------------------------------------------ */

/* Outputs [o0, o0 + block) of one image and group, `batch`. */
struct deconv_block {
    const struct byi_conv *v;
    int64_t batch, o0, block;
    float *columns; /* (block, taps, positions) */
};

static struct byi_matrix weights_of(const void *ctx, int64_t unused)
{
    const struct deconv_block *part = ctx;
    const struct byi_conv *v = part->v;
    (void)unused;
    return (struct byi_matrix){
        .at = (const float *)v->weights +
              (part->batch % v->groups * v->c * v->o + part->o0) * v->w.taps,
        .rs = 1,
        .cs = v->o * v->w.taps,
    };
}

static float *columns_of(const void *ctx, int64_t unused)
{
    (void)unused;
    return ((const struct deconv_block *)ctx)->columns;
}

static void pack_data(const void *ctx, int64_t unused, int64_t k0, int64_t kc,
                      int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    const struct deconv_block *part = ctx;
    const struct byi_conv *v = part->v;
    const struct byi_matrix b = {
        .at = (const float *)v->x + part->batch * v->c * v->w.out_count,
        .rs = v->w.out_count,
        .cs = 1,
    };
    (void)unused;
    byi_pack_matrix(&b, k0, kc, n0, nc, nr, dst);
}

/* Add one tap's products (positions) to a plane of the result. */
static void add_tap(const struct byi_window *w, int64_t t, const float *from,
                    float *y)
{
    int64_t tap[3], first[3], last[3];
    byi_unflatten(w->size, t, tap);
    for (int i = 0; i < 3; i++)
        byi_window_outputs(w, i, tap[i], &first[i], &last[i]);
    for (int64_t d = first[0]; d < last[0]; d++)
        for (int64_t h = first[1]; h < last[1]; h++) {
            int64_t at = d * w->stride[0] - w->pad[0] + tap[0] * w->dilation[0];
            at = at * w->in[1] + h * w->stride[1] - w->pad[1] +
                 tap[1] * w->dilation[1];
            at = at * w->in[2] - w->pad[2] + tap[2] * w->dilation[2];
            const float *row = from + (d * w->out[1] + h) * w->out[2];
            for (int64_t i = first[2]; i < last[2]; i++)
                y[at + i * w->stride[2]] += row[i];
        }
}

static void add_columns(const struct deconv_block *part,
                        const struct byi_call *call)
{
    const struct byi_window *w = &part->v->w;
    const int team = byi_team(call, part->block * w->taps * w->out_count);
    float *result = (float *)part->v->y +
                    (part->batch * part->v->o + part->o0) * w->in_count;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t o = 0; o < part->block; o++) {
        float *y = result + o * w->in_count;
        memset(y, 0, (size_t)w->in_count * sizeof(float));
        for (int64_t t = 0; t < w->taps; t++)
            add_tap(w, t, part->columns + (o * w->taps + t) * w->out_count, y);
    }
}

/* Output channels per product: as many as the column buffer holds. */
static int64_t block_of(const struct byi_conv *v)
{
    const int64_t each = byi_max(v->w.taps * v->w.out_count, 1);
    return byi_min(byi_max(COLUMNS / each, 1), byi_max(v->o, 1));
}

static uint64_t column_bytes(const struct byi_conv *v)
{
    return byi_align_bytes(
        (uint64_t)(block_of(v) * v->w.taps * v->w.out_count) * sizeof(float));
}

static void run_product(const struct byi_call *call, const struct byi_conv *v,
                        char *scratch)
{
    const int64_t block = block_of(v);
    struct deconv_block part = {.v = v, .columns = (float *)(void *)scratch};
    for (part.batch = 0; part.batch < v->n * v->groups; part.batch++)
        for (part.o0 = 0; part.o0 < v->o; part.o0 += block) {
            part.block = byi_min(block, v->o - part.o0);
            const struct byi_gemm g = {
                .batches = 1,
                .m = part.block * v->w.taps,
                .n = v->w.out_count,
                .k = v->c,
                .a = weights_of,
                .c = columns_of,
                .pack_b = pack_data,
                .ctx = &part,
                .ldc = v->w.out_count,
            };
            byi_gemm_run(&g, call->threads, scratch + column_bytes(v));
            add_columns(&part, call);
        }
}

/* --- other layouts -------------------------------------------------------- */

static const char *const first_data[] = {"NC", "NCW", "NCHW", "NCDHW"};
static const char *const first_kernel[] = {"IO", "IOW", "IOHW", "IODHW"};

static uint64_t bytes_of(const struct byi_tensor *t)
{
    return byi_align_bytes((uint64_t)byi_count(t) * sizeof(float));
}

/* The product on copies with channels first, kept at the start of `scratch`. */
static void run_copies(const struct byi_call *call, struct byi_conv v,
                       char *scratch)
{
    const struct byi_tensor *x = &call->in[0], *weights = &call->in[1];
    const char *layout = byi_attr_string(call->attrs, "data_layout");
    const uint32_t spatial = v.in.spatial;
    struct byi_tensor y = {.dtype = BYOC_F32, .rank = spatial + 2};
    byi_relayout_named(call, x, layout, first_data[spatial], scratch);
    v.x = scratch;
    scratch += bytes_of(x);
    byi_relayout_named(call, weights,
                       byi_attr_string(call->attrs, "kernel_layout"),
                       first_kernel[spatial], scratch);
    v.weights = scratch;
    scratch += bytes_of(weights);
    v.y = y.data = scratch;
    run_product(call, &v, scratch + bytes_of(call->out));
    y.dims[0] = v.n;
    y.dims[1] = v.out.c;
    for (uint32_t i = 0; i < spatial; i++)
        y.dims[2 + i] = v.out.space[i];
    byi_relayout_named(call, &y, first_data[spatial], layout, call->out->data);
}

static uint64_t deconv_scratch_f32(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    const struct byi_conv v = describe(call);
    uint64_t copies = 0;
    if (!byi_layout_is_default(call->op, call->attrs))
        copies = bytes_of(&call->in[0]) + bytes_of(&call->in[1]) +
                 bytes_of(call->out);
    return copies + column_bytes(&v) +
           byi_gemm_scratch(block_of(&v) * v.w.taps, v.w.out_count, v.c,
                            call->threads);
}

static enum byoc_status deconv_run_f32(const struct byi_call *call,
                                       struct byoc_error *err)
{
    if (call->in->dtype != BYOC_F32)
        return byi_deconv_plain(call, err);
    const struct byi_conv v = describe(call);
    if (byi_layout_is_default(call->op, call->attrs))
        run_product(call, &v, call->scratch);
    else
        run_copies(call, v, call->scratch);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(deconv, deconv_run_f32, deconv_scratch_f32)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_NN_CONV1D_TRANSPOSE, {deconv_run, deconv_scratch}},
    {BYI_OP_NN_CONV2D_TRANSPOSE, {deconv_run, deconv_scratch}},
    {BYI_OP_NN_CONV3D_TRANSPOSE, {deconv_run, deconv_scratch}},
};
const struct byi_kernel_rows byi_rows_deconv = {rows, BYI_COUNT(rows)};
