/* SPDX-License-Identifier: Apache-2.0 */
/* qnn.h: a product of 8-bit integers as its kernels see it: qnn_conv.c and
 * qnn_matmul.c find the sums, qnn.c what they are times and what comes of them.
 */
#ifndef BYI_QNN_H
#define BYI_QNN_H

#include "kernel.h"

enum {
    BYI_QNN_X,
    BYI_QNN_WEIGHTS,
    BYI_QNN_X_ZERO,
    BYI_QNN_WEIGHTS_ZERO,
    BYI_QNN_BIAS,
    BYI_QNN_SCALE,
    BYI_QNN_ZERO
};

/* Numbers of 8 bits. Signed ones become unsigned with `flip` 0x80, which moves
 * their zero point as well. */
struct byi_octets {
    const uint8_t *at;
    uint32_t flip, zero;
};

struct byi_qnn {
    enum byi_dot_form form;
    const struct byi_dot *words;
    struct byi_octets x;
    const uint8_t *weights;
    uint32_t flip;        /* of the weights                      */
    const uint8_t *zeros; /* theirs: one, or one of each channel */
    int64_t zero_step;    /* 0 or 1                              */
    bool kept_zeros;      /* words have weights with them; each
                           * sum is its offset times that of x
                           * too much                            */
    int64_t channels;     /* of results                          */
    struct byi_kept kept;
    enum byoc_dtype dtype; /* of results */
    uint32_t size;         /* of one     */
};

/* Operands without data (where memory is planned) give what depends on none.
 * sums_x: the kernel can make up for weights that keep their zero points. */
struct byi_qnn byi_qnn_read(const struct byi_call *call, int64_t channels,
                            bool sums_x);

/* The weight at `at` of channel o, less its zero point. */
static inline int32_t byi_qnn_weight(const struct byi_qnn *q, int64_t o,
                                     int64_t at)
{
    return (int32_t)(q->weights[at] ^ q->flip) -
           (int32_t)(q->zeros[o * q->zero_step] ^ q->flip);
}

/* What a weight of channel o is less in words that keep zero points: weights
 * are signed bytes there, as they are, or 128 less. */
static inline int32_t byi_qnn_offset(const struct byi_qnn *q, int64_t o)
{
    return (int32_t)(q->zeros[o * q->zero_step] ^ q->flip) - 128;
}

/* Number i of a word: as its form has them. */
static inline uint32_t byi_qnn_put(const struct byi_qnn *q, int64_t i,
                                   int32_t value)
{
    return q->form == BYI_DOT_BYTES ? (uint32_t)(value & 0xff) << (8 * i)
                                    : (uint32_t)(value & 0xffff) << (16 * i);
}

/* What each sum is added, and times: add[o] = bias[o], less x's zero point
 * times totals[o], the sum of the channel's weights, which is NULL where x came
 * without its zero point. */
void byi_qnn_steps(const struct byi_call *call, const struct byi_qnn *q,
                   const uint32_t *totals, uint32_t *add, float *scale);

/* Scratch of byi_qnn_plain, which kernel.h has. */
uint64_t byi_qnn_plain_scratch(const struct byi_call *call);

#endif
