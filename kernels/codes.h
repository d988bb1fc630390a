/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/codes.h: products with weights of 4 or 8 bits:
 *   y (m, n) = x (m, k) w (n, k)^T,  w[j][i] = (code[j][i] - zero) scale,
 * where scale and zero point belong to a block of `block` codes of a row. The
 * codes are expanded in registers for few rows; for many a block of weights is
 * expanded to the cache, for the float32 kernels. All memory is the caller's;
 * nothing here allocates or fails.
 */
#ifndef BYI_F32_CODES_H
#define BYI_F32_CODES_H

#include "kernels/product.h"

enum { BYI_F32_FEW_ROWS = 2 }; /* rows that are multiplied one by one */

struct byi_f32_codes {
    const struct byi_f32_kernels *kernels;
    int bits; /* 4 or 8 */
    int64_t n, k;
    int64_t block; /* a multiple of 32 / bits */
};

/* A row j has blocks b: `codes` are [n][blocks][block bits / 8], the first code
 * in the lower bits; scales and zeros [n][blocks]. */
struct byi_f32_codes_from {
    const uint8_t *codes;
    const void *scales; /* of `type` */
    enum byi_f32_type type;
    const uint8_t *zeros; /* NULL: all are `zero` */
    uint8_t zero;
};

/* Bytes of the packed weights, aligned to BYI_ALIGN: panels of BYI_F32_PANEL
 * rows of w, each [blocks] of scales, zero points and words of codes. */
uint64_t byi_f32_codes_packed(const struct byi_f32_codes *codes);
void byi_f32_codes_pack(const struct byi_f32_codes *codes,
                        const struct byi_f32_codes_from *from, void *to);
uint64_t byi_f32_codes_scratch(const struct byi_f32_codes *codes, int threads);
/* Rows of x and y are dense; the result does not depend on the threads. */
void byi_f32_codes_run(const struct byi_f32_codes *codes, const void *packed,
                       int64_t m, const float *x, float *y, void *scratch,
                       int threads);

#endif
