/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/product.h: float32 products of two matrices that are not packed, such
 * as in attention: C[batch] (m, n) = A[batch] (m, k) B[batch] (k, n). A task
 * packs blocks of columns of B into its thread's scratch, unless it reads them
 * in place, and multiplies rows of A by them. Few rows are multiplied by
 * columns of B that are not packed. */
#ifndef BYI_F32_PRODUCT_H
#define BYI_F32_PRODUCT_H

#include "kernels/conv.h"

/* The matrices of a batch. */
struct byi_f32_matrices {
    const float *a, *b;
    float *c;
};

/* A block of a batch's C: its first row and column, and its size. */
struct byi_f32_part {
    int64_t batch, row, column, rows, columns;
};

/* Products to compute. The caller sets all members but `finish`, which may be
 * NULL. */
struct byi_f32_product {
    const struct byi_f32_kernels *kernels;
    int64_t batches, m, n, k;
    int64_t a_rs, a_cs, b_rs, b_cs, ldc; /* elements from row to row (rs, ldc),
                                            from column to column (cs) */
    /* the caller does not divide the rows by the number of threads, so their
     * number may decide in which order the sums are computed */
    bool whole;
    /* returns the matrices of a batch; called at any time, on any thread */
    struct byi_f32_matrices (*at)(const void *ctx, int64_t batch);
    /* called once for each block of C, after its last sum, on the thread that
     * computed it */
    void (*finish)(const void *ctx, const struct byi_f32_part *part);
    const void *ctx;
};

/* Bytes of scratch for products of any size with at most `threads` threads. The
 * scratch must be aligned for floats. */
uint64_t byi_f32_product_scratch(int threads);
/* Compute C. The result does not depend on the number of threads. */
void byi_f32_product_run(const struct byi_f32_product *p, int threads,
                         void *scratch);

#endif
