/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/codes.h: products with weights of 4 or 8 bits:
 *   y (m, n) = x (m, k) w (n, k)^T,  w[j][i] = (code[j][i] - zero) * scale,
 * where a block of `block` codes of a row has one scale and zero point. For
 * few rows of x, codes are expanded in registers. For many rows, panels of
 * weights are expanded to the cache, from which the float32 kernels read them.
 * The caller provides all memory; nothing here allocates or fails. */
#ifndef BYI_F32_CODES_H
#define BYI_F32_CODES_H

#include "kernels/conv.h"

/* The shape of a product. The caller sets all members. */
struct byi_f32_codes {
    const struct byi_f32_kernels *kernels;
    int bits; /* 4 or 8 */
    int64_t n, k;
    int64_t block; /* a multiple of 32 / bits */
};

/* The weights to pack. `codes` is [n][blocks][block * bits / 8], where the
 * lower bits of a byte are the first of two codes; `scales` and `zeros` are
 * [n][blocks]. */
struct byi_f32_codes_from {
    const uint8_t *codes;
    const void *scales; /* elements of `type` */
    enum byi_f32_type type;
    const uint8_t *zeros; /* NULL: every zero point is `zero` */
    uint8_t zero;
};

/* Bytes of the packed weights, which the caller aligns to BYI_ALIGN: panels of
 * BYI_F32_PANEL rows of w. A panel has, for each block, the scales, the zero
 * points and the words of codes. */
uint64_t byi_f32_codes_packed(const struct byi_f32_codes *codes);
/* Pack the weights into `to`. */
void byi_f32_codes_pack(const struct byi_f32_codes *codes,
                        const struct byi_f32_codes_from *from, void *to);
/* Bytes of scratch for byi_f32_codes_run with at most `threads` threads. The
 * scratch must be aligned for pointers. */
uint64_t byi_f32_codes_scratch(const struct byi_f32_codes *codes, int threads);
/* Compute y from x, which has m dense rows. The result does not depend on
 * `threads`. */
void byi_f32_codes_run(const struct byi_f32_codes *codes, const void *packed,
                       int64_t m, const float *x, float *y, void *scratch,
                       int threads);

#endif
