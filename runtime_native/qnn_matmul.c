/* SPDX-License-Identifier: Apache-2.0 */
/* qnn_matmul.c: qnn.matmul: 8-bit integer matrix products with broadcast
 * batches.
 *   (..., m, k) (..., k, n)      -> (..., m, n), as numpy.matmul
 * The kernels of kernels/i8.h compute them as convolutions of m images of one
 * position.
 */
#include "epilogue.h"
#include "matmul.h"
#include "move.h"
#include "qnn.h"

/* The description of a call, and the sizes of the buffers in its scratch. */
struct qnn_matmul {
    struct byi_product product;
    struct byi_i8_conv conv; /* describes one batch */
    struct byi_i8_conv_run run;
    struct byi_i8_weights weights;
    bool dense; /* A is contiguous; otherwise it is copied */
    uint64_t packed_bytes, scratch_bytes, a_bytes;
};

/* Read the operands, and set the members of q->conv that packed weights depend
 * on. B is (k, n) with the strides b_rs of rows and b_cs of columns. */
static void describe_weights(const struct byi_call *call, int64_t k, int64_t n,
                             int64_t b_rs, int64_t b_cs, struct qnn_matmul *q)
{
    byi_qnn_read(call, &q->conv, &q->run, &q->weights);
    q->conv.groups = 1;
    q->conv.channels = k;
    q->conv.outputs = n;
    q->weights.strides[0] = b_cs;
    q->weights.strides[1] = b_rs;
    for (int i = 0; i < BYI_I8_AXES; i++)
        q->conv.in[i] = q->conv.out[i] = q->conv.size[i] = q->conv.stride[i] =
            q->conv.dilation[i] = 1;
    byi_i8_conv_plan(&q->conv);
}

static struct qnn_matmul describe(const struct byi_call *call)
{
    struct qnn_matmul q = {.product = byi_product_read(call)};
    byi_product_fold(&q.product);
    q.conv.images = q.product.m;
    q.dense = (q.product.a_cs == 1 || q.product.k == 1) &&
              (q.product.a_rs == q.product.k || q.product.m == 1);
    describe_weights(call, q.product.k, q.product.n, q.product.b_rs,
                     q.product.b_cs, &q);
    q.packed_bytes =
        call->packed ? 0 : byi_align_bytes(byi_i8_conv_packed(&q.conv));
    q.scratch_bytes =
        byi_align_bytes(byi_i8_conv_scratch(&q.conv, (int)call->threads));
    q.a_bytes =
        q.dense ? 0 : byi_align_bytes((uint64_t)(q.product.m * q.product.k));
    return q;
}

/* Pack B if its rank is 2, since all batches then share it. Returns the bytes,
 * or 0 for other ranks. */
uint64_t byi_qnn_matmul_pack(const struct byi_call *call, void *to)
{
    const struct byi_tensor *b = &call->in[BYI_QNN_WEIGHTS];
    const bool transposed = byi_attr_int(call->attrs, "transpose_b");
    struct qnn_matmul q = {0};
    if (b->rank != 2)
        return 0;
    describe_weights(call, b->dims[transposed ? 1 : 0],
                     b->dims[transposed ? 0 : 1], transposed ? 1 : b->dims[1],
                     transposed ? b->dims[1] : 1, &q);
    if (to)
        byi_i8_conv_pack(&q.conv, &q.weights, to);
    return byi_i8_conv_packed(&q.conv);
}

/* Whether batches have different matrices B. */
static bool b_varies(const struct qnn_matmul *q)
{
    for (uint32_t i = 0; i < q->product.rank; i++)
        if (q->product.b_batch[i])
            return true;
    return false;
}

static uint64_t qnn_matmul_scratch(const struct byi_call *call)
{
    const struct qnn_matmul q = describe(call);
    return q.packed_bytes + q.scratch_bytes + q.a_bytes;
}

static enum byoc_status qnn_matmul_run(const struct byi_call *call,
                                       struct byoc_error *err)
{
    struct qnn_matmul q = describe(call);
    const struct byi_product *p = &q.product;
    const uint8_t *b = q.weights.at;
    const struct byi_view view = {
        .rank = 2, .dims = {p->m, p->k}, .strides = {p->a_rs, p->a_cs}};
    char *at = call->scratch, *copy = at + q.packed_bytes + q.scratch_bytes;
    BYI_TRY(byi_epilogue_check(call, err));
    if (p->m == 0 || p->n == 0)
        return BYOC_OK;
    q.run.packed = call->packed ? call->packed : at;
    q.run.conv = &q.conv;
    q.run.scratch = at + q.packed_bytes;
    for (int64_t i = 0; i < p->batches; i++) {
        const char *a =
            (const char *)p->a + byi_product_offset(p, p->a_batch, i);
        if (!q.dense)
            byi_view_copy(call, &view, a, copy, 1);
        q.weights.at = b + byi_product_offset(p, p->b_batch, i);
        if (!call->packed && (i == 0 || b_varies(&q)))
            byi_i8_conv_pack(&q.conv, &q.weights, at);
        q.run.x = q.dense ? a : copy;
        q.run.y =
            (char *)p->c + i * p->m * p->n * byoc_dtype_size(call->out->dtype);
        byi_i8_conv_run(&q.run);
    }
    byi_epilogue_apply(call, p->n);
    return BYOC_OK;
}

BYI_KERNEL_ROWS(qnn_matmul,
                {BYI_OP_QNN_MATMUL, {qnn_matmul_run, qnn_matmul_scratch}})
