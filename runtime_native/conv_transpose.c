/* SPDX-License-Identifier: Apache-2.0 */
/* conv_transpose.c: nn.conv1d_transpose, nn.conv2d_transpose,
 * nn.conv3d_transpose. data (N, C, d, h, w), weights (C, O/G, kd, kh, kw) ->
 * (N, O, od, oh, ow) or in other layouts. float32 runs on the kernels of
 * kernels/conv.h (conv_last.c); other types run on plain loops. */
#include "conv.h"

#include "epilogue.h"

enum { MAX_PHASES = 4096 }; /* of outputs in kernels/transposed.c */

/* Describe the call. The window slides over the result: w.in is the size of the
 * result, w.out the size of the data. */
static struct byi_conv describe(const struct byi_call *call)
{
    struct byi_conv v = byi_conv_operands(call);
    v.c = v.weights_layout.i / v.groups;
    v.o = v.weights_layout.o;
    v.transposed = true;
    byi_window_read(call->attrs, v.in.spatial, v.out.space, v.in.space,
                    v.weights_layout.space, &v.w);
    return v;
}

/* --- plain: one output at a time ----------------------------------------- */

/* Offset of the data element whose tap `t` falls on output `out`; -1 if there
 * is none. */
static int64_t source_offset(const struct byi_window *w, const int64_t out[3],
                             int64_t t)
{
    int64_t tap[3], offset = 0;
    byi_unflatten(w->size, t, tap);
    for (int i = 0; i < 3; i++) {
        int64_t at = out[i] + w->pad[i] - tap[i] * w->dilation[i];
        if (at < 0 || at % w->stride[i] || at / w->stride[i] >= w->out[i])
            return -1;
        offset = offset * w->out[i] + at / w->stride[i];
    }
    return offset;
}

/* The weights are (C, O/G): indexed by the channel of x, then by the output's
 * channel within its group. */
#define PLAIN(id, type, wide)                                                  \
    BYI_CONV_PLAIN(id, type, wide, in, source_offset, channel % v->o, c0)
BYI_EACH_SUM(PLAIN)

static const byi_conv_plane plain[BYI_DTYPES] = BYI_CONV_PLAIN_ROWS;

enum byoc_status byi_conv_transpose_plain(const struct byi_call *call,
                                          struct byoc_error *err)
{
    const struct byi_conv v = describe(call);
    return byi_conv_planes(call, &v, v.w.in_count, plain, err);
}

/* --- float32 ------------------------------------------------------------ */

/* Whether the plain loops run the call: there are no products, or too many
 * phases, whose number is the product of the strides. */
static bool runs_plain(const struct byi_conv *v)
{
    return !byi_conv_has_products(v) || (double)v->w.stride[0] *
                                                (double)v->w.stride[1] *
                                                (double)v->w.stride[2] >
                                            MAX_PHASES;
}

static uint64_t conv_transpose_scratch_f32(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    const struct byi_conv v = describe(call);
    return runs_plain(&v) ? 0 : byi_conv_last_scratch(call, &v);
}

static enum byoc_status conv_transpose_run_f32(const struct byi_call *call,
                                               struct byoc_error *err)
{
    if (call->in->dtype != BYOC_F32)
        return byi_conv_transpose_plain(call, err);
    const struct byi_conv v = describe(call);
    if (!runs_plain(&v))
        return byi_conv_last_run(call, &v, err);
    BYI_TRY(byi_epilogue_check(call, err));
    BYI_TRY(byi_conv_transpose_plain(call, err));
    byi_epilogue_apply(call, v.groups * v.o);
    return BYOC_OK;
}

uint64_t byi_conv_transpose_pack(const struct byi_call *call, void *to)
{
    if (call->in->dtype != BYOC_F32)
        return 0;
    const struct byi_conv v = describe(call);
    return runs_plain(&v) ? 0 : byi_conv_last_pack(call, &v, to);
}

BYI_FLOAT_KERNEL(conv_transpose, conv_transpose_run_f32,
                 conv_transpose_scratch_f32)

const char *byi_conv_transpose_algorithm(const struct byi_call *call)
{
    if (call->in->dtype != BYOC_F32)
        return NULL;
    const struct byi_conv v = describe(call);
    return runs_plain(&v) ? NULL : byi_conv_last_algorithm(call, &v);
}

BYI_KERNEL_ROWS(
    conv_transpose,
    {BYI_OP_NN_CONV1D_TRANSPOSE, {conv_transpose_run, conv_transpose_scratch}},
    {BYI_OP_NN_CONV2D_TRANSPOSE, {conv_transpose_run, conv_transpose_scratch}},
    {BYI_OP_NN_CONV3D_TRANSPOSE, {conv_transpose_run, conv_transpose_scratch}})
