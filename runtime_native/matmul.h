/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.h: a matrix product as its kernels see it. */
#ifndef BYI_MATMUL_H
#define BYI_MATMUL_H

#include "kernel.h"

/* A matrix product with element strides: A (m, k), B (k, n), C dense. */
struct byi_product {
    int64_t m, n, k;
    int64_t a_rs, a_cs, b_rs, b_cs;
    uint32_t rank; /* of the batch */
    int64_t dims[BYI_MAX_RANK], a_batch[BYI_MAX_RANK], b_batch[BYI_MAX_RANK];
    int64_t batches;
    const void *a, *b;
    void *c;
};

struct byi_product byi_product_read(const struct byi_call *call);
/* If A is row-major, fold the last batch axes that share B into rows. */
void byi_product_fold(struct byi_product *p);
/* Offset of `batch` in the operand that has these strides, in elements. */
int64_t byi_product_offset(const struct byi_product *p, const int64_t *strides,
                           int64_t batch);

#endif
