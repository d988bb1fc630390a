/* SPDX-License-Identifier: Apache-2.0 */
/* qnn.h: the operands of 8-bit integer products, which qnn.c reads for
 * qnn_conv.c and qnn_matmul.c; these run the kernels of kernels/i8.h. */
#ifndef BYI_QNN_H
#define BYI_QNN_H

#include "kernels/i8.h"

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

/* Read the operands: sets the types in `conv`, the constants of the epilogue in
 * `run`, and the zero points in `weights`. Members that depend on data are set
 * only if the tensors have data, which they do not when memory is planned or
 * weights are packed. The caller adds shapes, strides and memory. */
void byi_qnn_read(const struct byi_call *call, struct byi_i8_conv *conv,
                  struct byi_i8_conv_run *run, struct byi_i8_weights *weights);

/* Bytes of scratch of byi_qnn_plain, which kernel.h declares. */
uint64_t byi_qnn_plain_scratch(const struct byi_call *call);

#endif
