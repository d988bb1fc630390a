/* SPDX-License-Identifier: Apache-2.0 */
/* qnn.c: 8-bit integer products: their operands, and their plain form.
 *   sum = sum over k of (x - x zero) (weights - weights zero), 32 bits
 *   int32    sum + bias
 *   float32  (sum + bias) scale
 *   8 bits   round((sum + bias) scale) + zero, clamped to a_min .. a_max
 */
#include "qnn.h"

/* True if the weights are signed and all zero points are 0, so that they can be
 * used as signed bytes directly. */
static bool is_plain(const struct byi_tensor *weights,
                     const struct byi_tensor *zeros)
{
    if (weights->dtype != BYOC_I8 || !zeros->data)
        return false;
    for (int64_t i = 0; i < byi_count(zeros); i++)
        if (((const uint8_t *)zeros->data)[i] != 0)
            return false;
    return true;
}

static uint32_t flip_of(enum byoc_dtype dtype)
{
    return dtype == BYOC_I8 ? 0x80 : 0;
}

/* The range of 8-bit results before the zero point is added. */
static struct byi_qnn_range range_of(const struct byi_call *call)
{
    const struct byi_tensor *zero = &call->in[BYI_QNN_ZERO];
    const bool is_signed = zero->dtype == BYOC_I8;
    const int64_t least = byi_attr_int(call->attrs, "a_min");
    const int64_t most = byi_attr_int(call->attrs, "a_max");
    struct byi_qnn_range k = {0};
    if (!zero->data)
        return k;
    k.zero =
        is_signed ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data;
    k.low = (float)(byi_max(least, is_signed ? INT8_MIN : 0) - k.zero);
    k.high = (float)(byi_min(most, is_signed ? INT8_MAX : UINT8_MAX) - k.zero);
    return k;
}

struct byi_qnn byi_qnn_read(const struct byi_call *call, int64_t channels,
                            bool sums_x)
{
    const struct byi_tensor *in = call->in;
    const struct byi_tensor *zeros = &in[BYI_QNN_WEIGHTS_ZERO];
    const struct byi_dot *words = byi_simd()->words;
    struct byi_qnn q = {
        .form = BYI_DOT_PAIRS,
        .x = {.at = in[BYI_QNN_X].data, .flip = flip_of(in[BYI_QNN_X].dtype)},
        .weights = in[BYI_QNN_WEIGHTS].data,
        .flip = flip_of(in[BYI_QNN_WEIGHTS].dtype),
        .zeros = zeros->data,
        .zero_step = zeros->rank && zeros->dims[0] != 1,
        .channels = channels,
        .dtype = call->out->dtype,
        .size = byoc_dtype_size(call->out->dtype),
    };
    const bool plain = is_plain(&in[BYI_QNN_WEIGHTS], zeros);
    if (words[BYI_DOT_BYTES].each && (plain || sums_x))
        q.form = BYI_DOT_BYTES;
    q.kept_zeros = q.form == BYI_DOT_BYTES && !plain;
    q.words = &words[q.form];
    if (in[BYI_QNN_X_ZERO].data)
        q.x.zero = *(const uint8_t *)in[BYI_QNN_X_ZERO].data ^ q.x.flip;
    if (call->n_in > BYI_QNN_ZERO)
        q.kept = range_of(call);
    return q;
}

void byi_qnn_steps(const struct byi_call *call, const struct byi_qnn *q,
                   const uint32_t *totals, uint32_t *add, float *scale)
{
    const bool biased = call->n_in > BYI_QNN_BIAS;
    const bool scaled = call->n_in > BYI_QNN_SCALE;
    const int32_t *bias = biased ? call->in[BYI_QNN_BIAS].data : NULL;
    const float *by = scaled ? call->in[BYI_QNN_SCALE].data : NULL;
    const bool one_bias = biased && byi_count(&call->in[BYI_QNN_BIAS]) == 1;
    const bool one_scale = scaled && byi_count(&call->in[BYI_QNN_SCALE]) == 1;
    for (int64_t o = 0; o < q->channels; o++) {
        add[o] = biased ? (uint32_t)bias[one_bias ? 0 : o] : 0;
        if (totals)
            add[o] -= q->x.zero * totals[o];
        scale[o] = scaled ? by[one_scale ? 0 : o] : 1;
    }
}

/* --- plain ---------------------------------------------------------------- */

/* The plain epilogue of a sum of channel o: writes result i. */
static void put_plain(const struct byi_call *call, const struct byi_qnn *q,
                      int64_t i, int64_t o, int32_t sum)
{
    const struct byi_tensor *bias = &call->in[BYI_QNN_BIAS];
    const struct byi_tensor *scale = &call->in[BYI_QNN_SCALE];
    void *y = (char *)call->out->data + i * q->size;
    if (call->n_in > BYI_QNN_BIAS) {
        const int64_t at = byi_count(bias) == 1 ? 0 : o;
        sum = (int32_t)((uint32_t)sum +
                        (uint32_t)((const int32_t *)bias->data)[at]);
    }
    if (call->n_in <= BYI_QNN_SCALE) {
        *(int32_t *)y = sum;
        return;
    }
    const int64_t at = byi_count(scale) == 1 ? 0 : o;
    float v = (float)sum * ((const float *)scale->data)[at];
    if (call->n_in <= BYI_QNN_ZERO) {
        *(float *)y = v;
        return;
    }
    v = v > q->kept.low ? v : q->kept.low;
    v = v < q->kept.high ? v : q->kept.high;
    *(uint8_t *)y = (uint8_t)((int32_t)rintf(v) + q->kept.zero);
}

/* Scratch: x, the weights and the sums as int32. */
struct plain_operands {
    struct byi_tensor in[2], sums;
};

static struct plain_operands plain_of(const struct byi_call *call)
{
    struct plain_operands p = {.in = {call->in[0], call->in[1]},
                               .sums = *call->out};
    char *at = call->scratch;
    struct byi_tensor *all[] = {&p.in[0], &p.in[1], &p.sums};
    for (uint32_t i = 0; i < BYI_COUNT(all); i++) {
        all[i]->dtype = BYOC_I32;
        all[i]->data = at;
        at = at ? at + byi_align_bytes((uint64_t)byi_count(all[i]) * 4) : NULL;
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
    /* number of contiguous results of a channel */
    const int64_t inner = conv ? byi_span(call->out, 2, rank) : 1;
    const int64_t channels = conv          ? w->dims[0]
                             : w->rank > 1 ? call->out->dims[rank - 1]
                                           : 1;
    const struct byi_qnn q = byi_qnn_read(call, channels, false);
    const int64_t turned =
        !conv && w->rank > 1 && !byi_attr_int(call->attrs, "transpose_b");
    const int64_t row = turned        ? 1
                        : conv        ? byi_span(w, 1, w->rank)
                        : w->rank > 1 ? w->dims[w->rank - 1]
                                      : byi_count(w);
    struct plain_operands p = plain_of(call);
    const struct byi_call product = {.op = call->op,
                                     .attrs = call->attrs,
                                     .n_in = 2,
                                     .n_out = 1,
                                     .in = p.in,
                                     .out = &p.sums,
                                     .threads = call->threads};
    for (int64_t i = 0; i < byi_count(&p.in[0]); i++)
        ((int32_t *)p.in[0].data)[i] =
            (int32_t)(q.x.at[i] ^ q.x.flip) - (int32_t)q.x.zero;
    for (int64_t i = 0; i < byi_count(w); i++)
        ((int32_t *)p.in[1].data)[i] =
            byi_qnn_weight(&q, i / row % channels, i);
    BYI_TRY(conv ? byi_conv_plain(&product, err)
                 : byi_matmul_plain(&product, err));
    for (int64_t i = 0; i < byi_count(call->out); i++)
        put_plain(call, &q, i, i / inner % channels,
                  ((const int32_t *)p.sums.data)[i]);
    return BYOC_OK;
}
