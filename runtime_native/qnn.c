/* SPDX-License-Identifier: Apache-2.0 */
/* qnn.c: 8-bit integer products (qnn.conv1d to qnn.conv3d, qnn.matmul): reads
 * their operands, and computes them plainly, for tests and for convolutions
 * that the fast kernels do not support.
 *   sum = sum over k of (x - x_zero) (weights - weights_zero), 32 bits
 * The result, by type:
 *   int32    sum + bias
 *   float32  (sum + bias) * scale
 *   8 bits   round((sum + bias) * scale) + zero, clamped to a_min .. a_max
 */
#include "epilogue.h"
#include "qnn.h"

/* Whether the weights are signed and all their zero points are 0, so that they
 * can be used as signed bytes directly. */
static bool is_centred(const struct byi_tensor *weights,
                       const struct byi_tensor *zeros)
{
    if (weights->dtype != BYOC_I8 || !zeros->data)
        return false;
    for (int64_t i = 0; i < byi_count(zeros); i++)
        if (((const uint8_t *)zeros->data)[i] != 0)
            return false;
    return true;
}

/* Set the zero point of an 8-bit result, and the range of the result before the
 * zero point is added. */
static void read_range(const struct byi_call *call, struct byi_i8_conv_run *run)
{
    const struct byi_tensor *zero = &call->in[BYI_QNN_ZERO];
    const bool is_signed = zero->dtype == BYOC_I8;
    const int64_t first = is_signed ? INT8_MIN : 0;
    const int64_t last = is_signed ? INT8_MAX : UINT8_MAX;
    const int64_t least = byi_attr_int(call->attrs, "a_min");
    const int64_t most = byi_attr_int(call->attrs, "a_max");
    if (!zero->data)
        return;
    run->zero =
        is_signed ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data;
    run->low = (float)(byi_min(byi_max(least, first), last) - run->zero);
    run->high = (float)(byi_max(byi_min(most, last), first) - run->zero);
}

void byi_qnn_read(const struct byi_call *call, struct byi_i8_conv *conv,
                  struct byi_i8_conv_run *run, struct byi_i8_weights *weights)
{
    const struct byi_tensor *in = call->in;
    const struct byi_tensor *zeros = &in[BYI_QNN_WEIGHTS_ZERO];
    const uint32_t n = call->n_in - byi_epilogue_operands(call);
    const bool biased = n > BYI_QNN_BIAS;
    const bool scaled = n > BYI_QNN_SCALE;
    conv->kernels = byi_i8_kernels_of(byi_simd_isa());
    conv->x_signed = in[BYI_QNN_X].dtype == BYOC_I8;
    conv->w_signed = in[BYI_QNN_WEIGHTS].dtype == BYOC_I8;
    conv->centred = is_centred(&in[BYI_QNN_WEIGHTS], zeros);
    conv->result = !scaled             ? BYI_I8_SUMS
                   : n <= BYI_QNN_ZERO ? BYI_I8_FLOATS
                                       : BYI_I8_QUANTIZED;
    weights->at = in[BYI_QNN_WEIGHTS].data;
    weights->zeros = conv->centred ? NULL : zeros->data;
    weights->zero_step = zeros->rank && zeros->dims[0] != 1;
    run->threads = (int)call->threads;
    if (in[BYI_QNN_X_ZERO].data)
        run->x_zero = *(const uint8_t *)in[BYI_QNN_X_ZERO].data;
    if (biased) {
        run->bias = in[BYI_QNN_BIAS].data;
        run->bias_step = byi_count(&in[BYI_QNN_BIAS]) != 1;
    }
    if (scaled) {
        run->scale = in[BYI_QNN_SCALE].data;
        run->scale_step = byi_count(&in[BYI_QNN_SCALE]) != 1;
    }
    if (n > BYI_QNN_ZERO)
        read_range(call, run);
}

/* --- plain ---------------------------------------------------------------- */

/* Apply the plain epilogue to a sum of channel o, and write result i. */
static void put_plain(const struct byi_call *call,
                      const struct byi_i8_conv_run *run, int64_t i, int64_t o,
                      int32_t sum)
{
    void *y = (char *)call->out->data + i * byoc_dtype_size(call->out->dtype);
    if (run->bias)
        sum =
            (int32_t)((uint32_t)sum + (uint32_t)run->bias[o * run->bias_step]);
    if (!run->scale) {
        *(int32_t *)y = sum;
        return;
    }
    float v = (float)sum * run->scale[o * run->scale_step];
    if (call->n_in <= BYI_QNN_ZERO) {
        *(float *)y = v;
        return;
    }
    v = v > run->low ? v : run->low;
    v = v < run->high ? v : run->high;
    *(uint8_t *)y = (uint8_t)((int32_t)rintf(v) + run->zero);
}

/* An 8-bit number minus its zero point. */
static int32_t centre(bool is_signed, uint8_t x, uint8_t zero)
{
    return is_signed ? (int8_t)x - (int8_t)zero : x - zero;
}

/* x, the weights and the sums as int32 tensors in the call's scratch. */
struct plain_operands {
    struct byi_tensor in[2], sums;
};

static struct plain_operands plain_operands_of(const struct byi_call *call)
{
    struct plain_operands p = {.in = {call->in[0], call->in[1]},
                               .sums = *call->out};
    char *at = call->scratch;
    struct byi_tensor *tensors[] = {&p.in[0], &p.in[1], &p.sums};
    for (uint32_t i = 0; i < BYI_COUNT(tensors); i++) {
        tensors[i]->dtype = BYOC_I32;
        tensors[i]->data = at;
        at = at ? at + byi_align_bytes((uint64_t)byi_count(tensors[i]) * 4)
                : NULL;
    }
    return p;
}

uint64_t byi_qnn_plain_scratch(const struct byi_call *call)
{
    return byi_align_bytes((uint64_t)byi_count(&call->in[0]) * 4) +
           byi_align_bytes((uint64_t)byi_count(&call->in[1]) * 4) +
           byi_align_bytes((uint64_t)byi_count(call->out) * 4);
}

enum byoc_status byi_qnn_plain(const struct byi_call *call,
                               struct byoc_error *err)
{
    const bool conv = call->op->id != BYI_OP_QNN_MATMUL;
    const struct byi_tensor *w = &call->in[BYI_QNN_WEIGHTS];
    const uint32_t rank = call->out->rank;
    /* number of contiguous results of one channel */
    const int64_t inner = conv ? byi_span(call->out, 2, rank) : 1;
    const int64_t channels = conv          ? w->dims[0]
                             : w->rank > 1 ? call->out->dims[rank - 1]
                                           : 1;
    struct byi_i8_conv types = {0};
    struct byi_i8_conv_run run = {0};
    struct byi_i8_weights weights = {0};
    byi_qnn_read(call, &types, &run, &weights);
    const bool transposed =
        !conv && w->rank > 1 && !byi_attr_int(call->attrs, "transpose_b");
    const int64_t row = transposed    ? 1
                        : conv        ? byi_span(w, 1, w->rank)
                        : w->rank > 1 ? w->dims[w->rank - 1]
                                      : byi_count(w);
    struct plain_operands p = plain_operands_of(call);
    const struct byi_call product = {.op = call->op,
                                     .attrs = call->attrs,
                                     .n_in = 2,
                                     .n_out = 1,
                                     .in = p.in,
                                     .out = &p.sums,
                                     .threads = call->threads};
    const uint8_t *x = call->in[0].data;
    for (int64_t i = 0; i < byi_count(&p.in[0]); i++)
        ((int32_t *)p.in[0].data)[i] = centre(types.x_signed, x[i], run.x_zero);
    for (int64_t i = 0; i < byi_count(w); i++) {
        const int64_t o = i / row % channels;
        const uint8_t zero =
            weights.zeros ? weights.zeros[o * weights.zero_step] : 0;
        ((int32_t *)p.in[1].data)[i] =
            centre(types.w_signed, weights.at[i], zero);
    }
    BYI_TRY(conv ? byi_conv_plain(&product, err)
                 : byi_matmul_plain(&product, err));
    for (int64_t i = 0; i < byi_count(call->out); i++)
        put_plain(call, &run, i, i / inner % channels,
                  ((const int32_t *)p.sums.data)[i]);
    return BYOC_OK;
}
