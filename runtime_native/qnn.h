/* SPDX-License-Identifier: Apache-2.0 */
/* qnn.h: the operands of 8-bit integer products, shared by qnn.c, which reads
 * them, and by qnn_conv.c and qnn_matmul.c, which run the kernels of
 * kernels/i8.h. */
#ifndef BYI_QNN_H
#define BYI_QNN_H

#include "kernels/i8.h"

#include "kernel.h"

/* The operands of a call, as indices of in[]. Without BYI_QNN_SCALE the result
 * is int32, without BYI_QNN_ZERO float32, otherwise 8 bits. */
enum {
    BYI_QNN_X,
    BYI_QNN_WEIGHTS,
    BYI_QNN_X_ZERO,
    BYI_QNN_WEIGHTS_ZERO, /* one, or one per output channel */
    BYI_QNN_BIAS,         /* int32; one, or one per output channel   */
    BYI_QNN_SCALE,        /* float32; one, or one per output channel */
    BYI_QNN_ZERO          /* of the result */
};

/* Read the operands: sets the types in `conv`, the number of threads and the
 * constants of the epilogue in `run`, and the data and zero points in
 * `weights`; the results borrow the operands' data. Members that depend on data
 * are set only if the tensors have data, which they do not when memory is
 * planned or weights are packed. The caller zero-initialises all three and adds
 * shapes, strides and memory. */
void byi_qnn_read(const struct byi_call *call, struct byi_i8_conv *conv,
                  struct byi_i8_conv_run *run, struct byi_i8_weights *weights);

/* Bytes of scratch for byi_qnn_plain, which kernel.h declares. */
uint64_t byi_qnn_plain_scratch(const struct byi_call *call);

#endif
