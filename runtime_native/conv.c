/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: nn.conv1d, nn.conv2d, nn.conv3d.
 *   data (N, C, d, h, w), weights (O, C/G, kd, kh, kw) -> (N, O, od, oh, ow)
 * or in other layouts. float32 runs on the channels-last kernels of
 * kernels/conv.h (conv_last.c). Depthwise convolutions with channels first may
 * run on sliding windows instead (window.c), without a conversion of layouts.
 * Other types run on plain loops. */
#include "conv.h"

#include "epilogue.h"

/* --- plain: one output at a time ---------------------------------------- */

/* Offset, within a channel, of tap `t` of the window at output `out`; -1 if the
 * tap lies on padding. */
static int64_t tap_offset(const struct byi_window *w, const int64_t out[3],
                          int64_t t)
{
    int64_t tap[3], offset = 0;
    byi_unflatten(w->size, t, tap);
    for (int i = 0; i < 3; i++) {
        int64_t at =
            out[i] * w->stride[i] - w->pad[i] + tap[i] * w->dilation[i];
        if (at < 0 || at >= w->in[i])
            return -1;
        offset = offset * w->in[i] + at;
    }
    return offset;
}

#define PLAIN(id, type, wide)                                                  \
    BYI_CONV_PLAIN(id, type, wide, out, tap_offset, channel, 0)
BYI_EACH_SUM(PLAIN)

static const byi_conv_plane plain[BYI_DTYPES] = BYI_CONV_PLAIN_ROWS;

enum byoc_status byi_conv_planes(const struct byi_call *call,
                                 const struct byi_conv *v, int64_t positions,
                                 const byi_conv_plane run[BYI_DTYPES],
                                 struct byoc_error *err)
{
    const byi_conv_plane run_plane = run[call->in->dtype];
    if (!run_plane)
        return byi_bad_dtype(call, call->in->dtype,
                             "a float or an integer type", err);
    const int64_t planes = v->n * v->groups * v->o;
    const int team = byi_team(call, planes * positions * v->c * v->w.taps);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t plane = 0; plane < planes; plane++)
        run_plane(v, plane);
    return BYOC_OK;
}

enum byoc_status byi_conv_plain(const struct byi_call *call,
                                struct byoc_error *err)
{
    const struct byi_conv v = byi_conv_read(call);
    return byi_conv_planes(call, &v, v.w.out_count, plain, err);
}

bool byi_conv_has_products(const struct byi_conv *v)
{
    return v->n != 0 && v->c > 0 && v->o > 0 && v->w.taps > 0 &&
           v->w.in_count != 0 && v->w.out_count != 0;
}

/* --- float32 -------------------------------------------------------------- */

/* Whether the convolution is depthwise with channels first, and sliding windows
 * support it and are faster. For large windows, and for results of one row,
 * they are faster only if there are few channels, which are slow for the
 * channels-last kernels. Packed weights are for those kernels. */
static bool uses_planes(const struct byi_call *call, const struct byi_conv *v)
{
    enum { FEW_CHANNELS = 16, FEW_TAPS = 25 };
    const struct byi_filter *weights = &v->weights_layout;
    for (int i = 0; i < 3; i++)
        if (v->w.in[i] < 0 || v->w.out[i] < 0) /* unknown while packing */
            return false;
    return v->c == 1 && v->in.block == 1 && v->out.block == 1 &&
           weights->at_o.block == 1 && weights->at_o.outer == v->w.taps &&
           weights->tap == 1 &&
           (v->groups * v->o < FEW_CHANNELS ||
            (v->w.out[1] > 1 && v->w.taps <= FEW_TAPS)) &&
           !call->packed && byi_sliding_fits(BYI_WINDOW_PRODUCT, &v->w);
}

static enum byoc_status run_planes(const struct byi_call *call,
                                   const struct byi_conv *v,
                                   struct byoc_error *err)
{
    BYI_TRY(byi_epilogue_check(call, err));
    const struct byi_sliding planes = {.kind = BYI_WINDOW_PRODUCT,
                                       .w = &v->w,
                                       .images = v->n,
                                       .channels = v->groups,
                                       .repeat = v->o,
                                       .x = v->x,
                                       .weights = v->weights,
                                       .y = v->y};
    byi_sliding_run(&planes, call, call->scratch);
    byi_epilogue_apply(call, v->groups * v->o);
    return BYOC_OK;
}

static uint64_t conv_scratch_f32(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    const struct byi_conv v = byi_conv_read(call);
    if (!byi_conv_has_products(&v))
        return 0;
    const uint64_t last = byi_conv_last_scratch(call, &v);
    if (!uses_planes(call, &v))
        return last;
    const uint64_t planes = byi_sliding_scratch(&v.w, call->threads);
    return planes > last ? planes : last;
}

/* Compute the result of a convolution over no data: zeros, with the epilogue
 * applied to them. */
static enum byoc_status conv_without_products(const struct byi_call *call,
                                              const struct byi_conv *v,
                                              struct byoc_error *err)
{
    BYI_TRY(byi_epilogue_check(call, err));
    BYI_TRY(byi_conv_plain(call, err));
    byi_epilogue_apply(call, v->groups * v->o);
    return BYOC_OK;
}

static enum byoc_status conv_run_f32(const struct byi_call *call,
                                     struct byoc_error *err)
{
    if (call->in->dtype != BYOC_F32)
        return byi_conv_plain(call, err);
    const struct byi_conv v = byi_conv_read(call);
    if (!byi_conv_has_products(&v))
        return conv_without_products(call, &v, err);
    if (uses_planes(call, &v))
        return run_planes(call, &v, err);
    return byi_conv_last_run(call, &v, err);
}

BYI_FLOAT_KERNEL(conv, conv_run_f32, conv_scratch_f32)

const char *byi_conv_algorithm(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return NULL;
    const struct byi_conv v = byi_conv_read(call);
    if (!byi_conv_has_products(&v))
        return NULL;
    return uses_planes(call, &v) ? "planes" : byi_conv_last_algorithm(call, &v);
}

uint64_t byi_conv_pack(const struct byi_call *call, void *to)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    const struct byi_conv v = byi_conv_read(call);
    if (!byi_conv_has_products(&v) || uses_planes(call, &v))
        return 0;
    return byi_conv_last_pack(call, &v, to);
}

BYI_KERNEL_ROWS(conv, {BYI_OP_NN_CONV1D, {conv_run, conv_scratch}},
                {BYI_OP_NN_CONV2D, {conv_run, conv_scratch}},
                {BYI_OP_NN_CONV3D, {conv_run, conv_scratch}})
