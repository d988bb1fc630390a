/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/product.h: float32 products of two matrices that are not packed, such
 * as in attention: C[batch] (m, n) = A[batch] (m, k) B[batch] (k, n). A task
 * packs blocks of columns of B into its thread's scratch, unless it reads them
 * in place, and multiplies rows of A by them. */
#ifndef BYI_F32_PRODUCT_H
#define BYI_F32_PRODUCT_H

#include "kernels/conv.h"

/* The matrices of a batch. */
struct byi_f32_matrices {
    const float *a, *b;
    float *c;
};

/* Products to compute. The caller sets all members. */
struct byi_f32_product {
    const struct byi_f32_kernels *kernels;
    int64_t batches, m, n, k;
    int64_t a_rs, a_cs, b_rs, b_cs, ldc; /* elements from row to row (rs, ldc),
                                            from column to column (cs) */
    /* returns the matrices of a batch; called at any time, on any thread */
    struct byi_f32_matrices (*at)(const void *ctx, int64_t batch);
    const void *ctx;
};

/* Bytes of scratch for products of any size with at most `threads` threads. The
 * scratch must be aligned for floats. */
uint64_t byi_f32_product_scratch(int threads);
/* Compute C. The result does not depend on the number of threads. */
void byi_f32_product_run(const struct byi_f32_product *p, int threads,
                         void *scratch);

#endif
