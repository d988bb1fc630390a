/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.h: the description of a matrix product that its native kernels share.
 */
#ifndef BYI_MATMUL_H
#define BYI_MATMUL_H

#include "kernel.h"

/* A product of batches of matrices A (m, k) and B (k, n), with strides in
 * elements: rs from one row to the next, cs from one column to the next, and of
 * each batch axis. The rows of C (m, n) are dense. */
struct byi_product {
    int64_t m, n, k;
    int64_t a_rs, a_cs, b_rs, b_cs, c_rs;
    uint32_t rank; /* number of batch axes */
    int64_t dims[BYI_MAX_RANK], a_batch[BYI_MAX_RANK], b_batch[BYI_MAX_RANK],
        c_batch[BYI_MAX_RANK];
    int64_t batches;
    const void *a, *b;
    void *c;
};

/* Describe a call of nn.dense or nn.matmul. The result points into the call's
 * tensors. */
struct byi_product byi_product_read(const struct byi_call *call);
/* If A is row-major, turn the last batch axes for which B is broadcast into
 * rows of A. */
void byi_product_fold(struct byi_product *p);
/* Offset, in elements, of `batch` in the operand with these strides. */
int64_t byi_product_offset(const struct byi_product *p, const int64_t *strides,
                           int64_t batch);
/* Compute C without packed weights. Its elements have the type of the call's
 * operands, floats of 32 or 64 bits or integers. `scratch` has
 * byi_product_scratch bytes. */
void byi_product_run(const struct byi_product *p, const struct byi_call *call,
                     void *scratch);
uint64_t byi_product_scratch(const struct byi_call *call);

#endif
