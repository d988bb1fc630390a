/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/bands.h: float32 convolutions that read one another's results,
 * computed together: one that widens an image, a depthwise one and, maybe, one
 * that makes it narrow again. The last result is cut into bands of lines. Of
 * the results between, only the lines under a band exist, in memory that stays
 * in the second cache, where separate runs write and read whole images:
 *
 *     x  ->  1x1, 16 -> 96  ->  3x3 depthwise  ->  1x1, 96 -> 24  ->  y
 *                        lines of 96 channels
 *
 * A thread has bands that follow one another, and keeps the lines that the next
 * one needs as well. Each element is computed as by separate runs.
 */
#ifndef BYI_F32_BANDS_H
#define BYI_F32_BANDS_H

#include "kernels/conv.h"

enum { BYI_F32_BANDED = 3 /* convolutions, at most */ };

/* Convolutions, each of which is planned, and reads the result of the one
 * before. */
struct byi_f32_bands {
    uint32_t n; /* 2 or 3 */
    const struct byi_f32_conv *convs[BYI_F32_BANDED];
    /* byi_f32_bands_plan() sets these: lines of a band; bytes of a thread's
     * scratch, and how many of them are the kernels' */
    int64_t high;
    uint64_t lane, kernels;
};

/* Choose the height of the bands. False if the convolutions cannot be computed
 * so, or separate runs are as fast: unless the results between are larger than
 * the second cache, of which every thread has one. */
bool byi_f32_bands_plan(struct byi_f32_bands *bands);
/* Bytes of scratch of a run with at most so many threads. */
uint64_t byi_f32_bands_scratch(const struct byi_f32_bands *bands, int threads);
/* runs[i]: the arguments of convolution i, but for y, which only the last one
 * has, scratch and threads; and x, which only the first one has. y must not
 * overlap the first x, nor an operand, unless it is an operand of the last
 * convolution that is laid out as y. */
void byi_f32_bands_run(const struct byi_f32_bands *bands,
                       const struct byi_f32_conv_run *runs, void *scratch,
                       int threads);

#endif
