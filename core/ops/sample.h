/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h: image.grid_sample as lists of the points that each position reads,
 * for the native kernel and generated code.
 */
#ifndef BYI_SAMPLE_H
#define BYI_SAMPLE_H

#include "ops.h"

/* Points that a position reads; lists of byi_sampler_points have one more. */
enum { BYI_SAMPLE_MOST = 16 };

enum byi_sample_padding {
    BYI_SAMPLE_ZEROS,
    BYI_SAMPLE_BORDER,
    BYI_SAMPLE_REFLECTION
};

/* The attributes, and the planes that are read, of two or three axes. */
struct byi_sampler {
    uint32_t axes;
    uint32_t taps;   /* along each axis: nearest 1, bilinear 2, bicubic 4 */
    uint32_t points; /* taps^axes, at most BYI_SAMPLE_MOST */
    enum byi_sample_padding padding;
    bool align;
    int64_t dims[3], plane; /* sizes of the axes; their product */
};
struct byi_sampler byi_sampler_read(const struct byi_attrs *attrs,
                                    const struct byi_tensor *x);
/* The points of a plane that position `at` of the grid, (x, y) or (x, y, z),
 * reads, and their weights. Returns their number: at most s->points, without
 * points outside. */
uint32_t byi_sampler_points(const struct byi_sampler *s,
                            const struct byi_tensor *grid, int64_t at,
                            int64_t *offset, double *weight);
/* The same for n positions of a grid of float32 or float64, from position
 * `from` on, as lists: point p of position j is at[p pitch + j], or -1. A plane
 * has fewer than 2^31 elements. */
void byi_sampler_list(const struct byi_sampler *s,
                      const struct byi_tensor *grid, int64_t from, int64_t n,
                      int64_t pitch, int32_t *at, float *weight);

#endif
