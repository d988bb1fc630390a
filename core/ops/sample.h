/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h: image.grid_sample as lists of what every position reads: what
 * the native kernel and generated code have in common.
 */
#ifndef BYI_SAMPLE_H
#define BYI_SAMPLE_H

#include "ops.h"

enum { BYI_SAMPLE_MOST = 16 }; /* points of a position */

enum byi_sample_padding {
    BYI_SAMPLE_ZEROS,
    BYI_SAMPLE_BORDER,
    BYI_SAMPLE_REFLECTION
};

/* The attributes, and the planes that are read. */
struct byi_sampler {
    uint32_t taps; /* along each axis: nearest 1, bilinear 2, bicubic 4 */
    enum byi_sample_padding padding;
    bool align;
    int64_t height, width;
};
struct byi_sampler byi_sampler_read(const struct byi_attrs *attrs,
                                    const struct byi_tensor *x);
/* The points of a plane that the grid's (x, y) reads, and how much of each
 * counts; gives how many: taps^2 at most, without those outside. */
uint32_t byi_sampler_points(const struct byi_sampler *s, double x, double y,
                            int64_t *offset, double *weight);
/* The same of n positions of a grid of float32 or float64, from `from` on, in
 * lists: point p of position j at at[p pitch + j], -1 where there is none. A
 * plane has fewer than 2^31 elements. */
void byi_sampler_list(const struct byi_sampler *s,
                      const struct byi_tensor *grid, int64_t from, int64_t n,
                      int64_t pitch, int32_t *at, float *weight);

#endif
