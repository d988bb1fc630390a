/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h: image.grid_sample as lists of the points that each position reads,
 * for the native kernel and generated code.
 */
#ifndef BYI_SAMPLE_H
#define BYI_SAMPLE_H

#include "ops.h"

/* The most points that one position reads: 4 x 4 with bicubic sampling. */
enum { BYI_SAMPLE_MAX_POINTS = 16 };

/* What a point outside the plane stands for. */
enum byi_sample_padding {
    BYI_SAMPLE_ZEROS,     /* 0 */
    BYI_SAMPLE_BORDER,    /* the nearest pixel of the border */
    BYI_SAMPLE_REFLECTION /* the pixel at its mirrored position */
};

/* How a call of image.grid_sample reads x (N, C, axes...): its attributes, and
 * the sizes of a plane, the two or three spatial axes of one channel. */
struct byi_sampler {
    uint32_t axes;
    uint32_t taps;   /* along each axis: nearest 1, bilinear 2, bicubic 4 */
    uint32_t points; /* taps^axes, at most BYI_SAMPLE_MAX_POINTS */
    enum byi_sample_padding padding;
    bool align; /* coordinates -1 and 1 are the centres of corner pixels */
    int64_t dims[3], plane; /* sizes of the axes; their product */
};
/* The sampler of a call with these attributes, which the type rule has checked.
 * Only the rank and dims of x are read. */
struct byi_sampler byi_sampler_read(const struct byi_attrs *attrs,
                                    const struct byi_tensor *x);
/* List the points that position `at` of the grid, (x, y) or (x, y, z), reads:
 * their offsets in a plane, in elements, and weights. Both arrays have room for
 * s->points. Returns the number of points; those outside the plane are left
 * out. */
uint32_t byi_sampler_points(const struct byi_sampler *s,
                            const struct byi_tensor *grid, int64_t at,
                            int64_t *offset, double *weight);
/* List the points of n positions of a float32 or float64 grid, beginning at
 * position `from`. Point p of position j has offset at[p * pitch + j] and
 * weight[p * pitch + j], with pitch >= n. The points outside the plane come
 * last, with offset -1 and weight 0. A plane must have fewer than 2^31
 * elements. */
void byi_sampler_list(const struct byi_sampler *s,
                      const struct byi_tensor *grid, int64_t from, int64_t n,
                      int64_t pitch, int32_t *at, float *weight);

#endif
