/* SPDX-License-Identifier: Apache-2.0 */
/* qnn.h: 8-bit integer products as their kernels see them. qnn_conv.c and
 * qnn_matmul.c compute the sums; qnn.c reads the operands and prepares the
 * epilogue.
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

/* 8-bit numbers. Xor with `flip` 0x80 makes signed ones unsigned and moves
 * their zero point accordingly. */
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
    const uint8_t *zeros; /* zero points: one, or one per channel */
    int64_t zero_step;    /* 0 or 1                              */
    bool kept_zeros;      /* weights are packed with their zero
                           * points, so each sum is too large by
                           * byi_qnn_offset times the sum of x   */
    int64_t channels;     /* of results                          */
    struct byi_qnn_range kept;
    enum byoc_dtype dtype; /* of results        */
    uint32_t size;         /* bytes of a result */
};

/* Without operand data (when memory is planned) the members that depend on data
 * are not set. sums_x: the kernel can correct sums of weights that keep their
 * zero points. */
struct byi_qnn byi_qnn_read(const struct byi_call *call, int64_t channels,
                            bool sums_x);

/* The weight at offset `at` of channel o, less its zero point. */
static inline int32_t byi_qnn_weight(const struct byi_qnn *q, int64_t o,
                                     int64_t at)
{
    return (int32_t)(q->weights[at] ^ q->flip) -
           (int32_t)(q->zeros[o * q->zero_step] ^ q->flip);
}

/* Channel o's weight zero point in words that keep zero points: their weights
 * are signed bytes, and unsigned ones are stored less 128. */
static inline int32_t byi_qnn_offset(const struct byi_qnn *q, int64_t o)
{
    return (int32_t)(q->zeros[o * q->zero_step] ^ q->flip) - 128;
}

/* Element i of a packed word, in the word's form. */
static inline uint32_t byi_qnn_put(const struct byi_qnn *q, int64_t i,
                                   int32_t value)
{
    return q->form == BYI_DOT_BYTES ? (uint32_t)(value & 0xff) << (8 * i)
                                    : (uint32_t)(value & 0xffff) << (16 * i);
}

/* The constants of the epilogue: add[o] = bias[o] - x zero * totals[o], where
 * totals[o] is the sum of the channel's weights (NULL if x is packed without
 * its zero point), and scale[o]. */
void byi_qnn_steps(const struct byi_call *call, const struct byi_qnn *q,
                   const uint32_t *totals, uint32_t *add, float *scale);

/* Scratch of byi_qnn_plain, which kernel.h declares. */
uint64_t byi_qnn_plain_scratch(const struct byi_call *call);

#endif
