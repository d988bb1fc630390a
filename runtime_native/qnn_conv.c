/* SPDX-License-Identifier: Apache-2.0 */
/* qnn_conv.c: qnn.conv1d, qnn.conv2d, qnn.conv3d.
 *   data (N, C, d, h, w), weights (O, C/G, kd, kh, kw) -> (N, O, od, oh, ow)
 * The kernels of kernels/i8.h need channels last: images are transposed before
 * and after they run. */
#include "conv.h"
#include "move.h"
#include "qnn.h"

/* The description of a call, and the sizes of the buffers in its scratch. */
struct qnn_conv {
    struct byi_conv v;       /* the call's shapes and layouts */
    struct byi_i8_conv conv; /* describes one image */
    struct byi_i8_conv_run run;
    struct byi_i8_weights weights;
    int64_t size; /* bytes of a result element */
    uint64_t packed_bytes, scratch_bytes, x_bytes, y_bytes;
};

/* Read the operands, and set the members of q->conv that packed weights depend
 * on. */
static void describe_weights(const struct byi_call *call, int64_t groups,
                             struct qnn_conv *q)
{
    const struct byi_tensor *w = &call->in[BYI_QNN_WEIGHTS];
    const uint32_t n = w->rank - 2;
    byi_qnn_read(call, &q->conv, &q->run, &q->weights);
    q->conv.groups = groups;
    q->conv.channels = w->dims[1] * groups;
    q->conv.outputs = w->dims[0];
    int64_t stride = 1;
    for (uint32_t i = BYI_I8_AXES; i-- > 0;) {
        const bool exists = i + n >= BYI_I8_AXES;
        q->conv.size[i] = exists ? w->dims[2 + i + n - BYI_I8_AXES] : 1;
        q->weights.strides[2 + i] = stride;
        stride *= q->conv.size[i];
    }
    q->weights.strides[1] = stride;
    q->weights.strides[0] = stride * w->dims[1];
    byi_i8_conv_plan(&q->conv);
}

static struct qnn_conv describe(const struct byi_call *call)
{
    struct qnn_conv q = {.v = byi_conv_read(call),
                         .size = byoc_dtype_size(call->out->dtype)};
    const struct byi_window *w = &q.v.w;
    q.conv.images = 1;
    for (int i = 0; i < BYI_I8_AXES; i++) {
        q.conv.in[i] = w->in[i];
        q.conv.out[i] = w->out[i];
        q.conv.stride[i] = w->stride[i];
        q.conv.dilation[i] = w->dilation[i];
        q.conv.pad[i] = w->pad[i];
    }
    describe_weights(call, q.v.groups, &q);
    q.packed_bytes =
        call->packed ? 0 : byi_align_bytes(byi_i8_conv_packed(&q.conv));
    q.scratch_bytes =
        byi_align_bytes(byi_i8_conv_scratch(&q.conv, (int)call->threads));
    q.x_bytes = byi_align_bytes((uint64_t)(q.conv.channels * w->in_count));
    q.y_bytes =
        byi_align_bytes((uint64_t)(q.conv.outputs * w->out_count * q.size));
    return q;
}

uint64_t byi_qnn_conv_pack(const struct byi_call *call, void *to)
{
    struct qnn_conv q = {0};
    describe_weights(call, byi_attr_int(call->attrs, "groups"), &q);
    if (to)
        byi_i8_conv_pack(&q.conv, &q.weights, to);
    return byi_i8_conv_packed(&q.conv);
}

/* Transpose x (rows, columns) to y (columns, rows); elements have 1 or 4 bytes.
 */
static void transpose(const struct byi_call *call, const void *x, int64_t rows,
                      int64_t columns, int64_t size, void *y)
{
    const struct byi_view view = {
        .rank = 2, .dims = {columns, rows}, .strides = {1, columns}};
    if (size == 1 && rows > 1 && columns > 1)
        byi_i8_kernels_of(byi_simd_isa())->transpose(x, rows, columns, y);
    else
        byi_view_copy(call, &view, x, y, (size_t)size);
}

/* Whether the kernels apply: no tensor is empty, and the padding does not make
 * x much larger. */
static bool fits(const struct byi_conv *v)
{
    double size = 1;
    for (int i = 0; i < 3; i++)
        size *= (double)(v->w.out[i] - 1) * (double)v->w.stride[i] +
                (double)(v->w.size[i] - 1) * (double)v->w.dilation[i] + 1;
    return byi_conv_has_products(v) &&
           size <= 64.0 * (double)(v->w.in_count + v->w.out_count) + 65536;
}

static uint64_t qnn_conv_scratch(const struct byi_call *call)
{
    const struct byi_conv v = byi_conv_read(call);
    if (!fits(&v))
        return byi_qnn_plain_scratch(call);
    const struct qnn_conv q = describe(call);
    return q.packed_bytes + q.scratch_bytes + q.x_bytes + q.y_bytes;
}

static enum byoc_status qnn_conv_run(const struct byi_call *call,
                                     struct byoc_error *err)
{
    const struct byi_conv v = byi_conv_read(call);
    if (!fits(&v))
        return byi_qnn_plain(call, err);
    struct qnn_conv q = describe(call);
    const int64_t c = q.conv.channels, o = q.conv.outputs;
    const int64_t in = v.w.in_count, out = v.w.out_count;
    char *at = call->scratch, *x = at + q.packed_bytes + q.scratch_bytes;
    if (!call->packed)
        byi_i8_conv_pack(&q.conv, &q.weights, at);
    q.run.packed = call->packed ? call->packed : at;
    q.run.conv = &q.conv;
    q.run.scratch = at + q.packed_bytes;
    q.run.x = x;
    q.run.y = x + q.x_bytes;
    for (int64_t i = 0; i < v.n; i++) {
        transpose(call, (const char *)v.x + i * c * in, c, in, 1, x);
        byi_i8_conv_run(&q.run);
        transpose(call, q.run.y, out, o, q.size,
                  (char *)v.y + i * o * out * q.size);
    }
    return BYOC_OK;
}

BYI_KERNEL_ROWS(qnn_conv, {BYI_OP_QNN_CONV1D, {qnn_conv_run, qnn_conv_scratch}},
                {BYI_OP_QNN_CONV2D, {qnn_conv_run, qnn_conv_scratch}},
                {BYI_OP_QNN_CONV3D, {qnn_conv_run, qnn_conv_scratch}})
