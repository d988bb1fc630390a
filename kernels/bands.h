/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/bands.h: computes a chain of float32 convolutions together, in bands
 * of lines of the last result. A thread has memory for the lines of
 * intermediate results that one band needs. This memory stays in the
 * second-level cache, whereas separate runs write and read whole images. A
 * block of a mobile network increases the channels of an image, filters them,
 * and reduces them again:
 *
 *     x  ->  1x1, 16 -> 96  ->  3x3 depthwise  ->  1x1, 96 -> 24  ->  y
 *                        lines of 96 channels
 *
 * A thread computes adjacent bands, and keeps the lines that the next band
 * needs, too. Every element is computed as in separate runs. */
#ifndef BYI_F32_BANDS_H
#define BYI_F32_BANDS_H

#include "kernels/conv.h"

enum { BYI_F32_MAX_BAND_CONVS = 3 };

/* Planned convolutions, each of which reads the result of the one before. The
 * caller sets `n` and `convs`; the convolutions must live as long as this. */
struct byi_f32_bands {
    uint32_t n; /* 2 or 3 */
    const struct byi_f32_conv *convs[BYI_F32_MAX_BAND_CONVS];
    /* byi_f32_bands_plan() sets these: the lines of a band; the bytes of a
     * thread's scratch, and how many of them are for the kernels */
    int64_t band_lines;
    uint64_t per_thread, kernel_scratch;
};

/* Choose the number of lines of a band: at least two, and otherwise so many
 * that the intermediate lines fill at most a quarter of a core's second-level
 * cache. Returns false if the convolutions cannot be computed in bands: only
 * direct and depthwise ones can, and as the first one a planar one. One of them
 * must be depthwise. Also returns false if separate runs are as fast. They are
 * as fast if all results fit that cache. They are also as fast if the weights
 * fill more than a quarter of it, or the intermediate lines of a band of two
 * lines more than a quarter, or of three convolutions more than half. */
bool byi_f32_bands_plan(struct byi_f32_bands *bands);
/* Bytes of scratch for a run with at most `threads` threads. */
uint64_t byi_f32_bands_scratch(const struct byi_f32_bands *bands, int threads);
/* Run the convolutions. runs[i] has the arguments of convolution i, except for
 * scratch and threads; only the first one has x, and only the last one has y. y
 * must not overlap x or an operand, with one exception: an operand of the last
 * convolution that has the layout of y may be y itself. `scratch` needs no
 * alignment. */
void byi_f32_bands_run(const struct byi_f32_bands *bands,
                       const struct byi_f32_conv_run *runs, void *scratch,
                       int threads);

#endif
