/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/moves.h: copies of float16 and bfloat16 tensors, and pooling. The
 * caller provides all memory; nothing here allocates or fails. */
#ifndef BYI_F32_MOVES_H
#define BYI_F32_MOVES_H

#include "kernels/conv.h"

enum { BYI_MOVE_RANK = 12 };

/* A copy from one layout to another, of elements of any size. `from` and `to`
 * are the strides of the layouts, in elements; no two elements of the result
 * may have the same address. */
struct byi_f32_move {
    uint32_t rank;
    int64_t dims[BYI_MOVE_RANK], from[BYI_MOVE_RANK], to[BYI_MOVE_RANK];
};

/* Drop axes of size 1, sort the others by the result's strides, and join axes
 * that are adjacent in both layouts. */
void byi_f32_move_plan(struct byi_f32_move *move);
/* Copy elements of 16 bits on at most `threads` threads. Every dim must be at
 * least 1. `from` and `to` must not overlap. Needs no byi_f32_move_plan(), but
 * is faster after it. */
void byi_f32_move_run(const struct byi_f32_move *move, const uint16_t *from,
                      uint16_t *to, int threads);

/* Pooling of dense channels-last images x to dense y: the maximum of a window's
 * elements, NaN if one is NaN, or their mean, summed in float32. The mean of
 * bytes is that of (x - zero) * scale, in float32; sums are exact up to
 * BYI_F32_MAX_BYTES taps. The caller sets all members. */
enum { BYI_F32_MAX_BYTES = 1 << 16 };
struct byi_f32_pool {
    const struct byi_f32_kernels *kernels;
    uint32_t type;     /* of the elements of x and y: enum byi_f32_type, or
                        * BYI_F32_U8, BYI_F32_I8 */
    bool mean, padded; /* `padded`: a mean divides by the number of all
                        * taps, also of those in the padding */
    float zero, scale; /* of bytes; otherwise 0 and 1 */
    int64_t images, channels, in[BYI_F32_AXES], out[BYI_F32_AXES];
    int64_t size[BYI_F32_AXES], stride[BYI_F32_AXES], dilation[BYI_F32_AXES];
    int64_t pad[BYI_F32_AXES]; /* padding at the beginning */
};
/* Bytes of scratch for a run with at most `threads` threads. The scratch must
 * be aligned for pointers. */
uint64_t byi_f32_pool_scratch(const struct byi_f32_pool *pool, int threads);
/* Compute y. Every window must contain an element of x. */
void byi_f32_pool_run(const struct byi_f32_pool *pool, const void *x, void *y,
                      void *scratch, int threads);

/* Elements of 16 bits: to[c * pitch + r] = from[r * stride + c] for r, c < 8.
 * Interleaves row i with row i + 4 three times. */
void byi_halves_transpose_8(const uint16_t *from, int64_t stride, uint16_t *to,
                            int64_t pitch);
/* Elements of 16 bits: to[c n + r] = rows[r][c] for n = 2 or 3 rows and
 * c < columns. */
void byi_halves_interleave(const uint16_t *const *rows, uint32_t n,
                           int64_t columns, uint16_t *to);

#endif
