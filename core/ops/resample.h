/* SPDX-License-Identifier: Apache-2.0 */
/* resample.h: image.resize as lists of taps, one list per axis, for the native
 * kernel and generated code.
 */
#ifndef BYI_RESAMPLE_H
#define BYI_RESAMPLE_H

#include "ops.h"
#include "taps.h"

/* A resize of x to y, by the attributes of image.resize or dyn.resize. */
struct byi_resample {
    /* given by the caller */
    enum byi_op_id op;
    const struct byi_attrs *attrs;
    const struct byi_tensor *x, *y;  /* only their types are read */
    const struct byi_tensor *target; /* sizes or scales */
    const struct byi_tensor *roi;    /* of dyn.resize, else NULL */
    /* from byi_resample_plan */
    struct byi_taps axes[BYI_MAX_RANK];
    int32_t *first[BYI_MAX_RANK]; /* the lists of axes[i], to be filled */
    void *weight[BYI_MAX_RANK];
    bool *outside[BYI_MAX_RANK]; /* positions that get extrapolation_value */
    /* from byi_resample_fill */
    bool is_identity[BYI_MAX_RANK]; /* the axis is copied */
    bool any_outside;               /* some position lies outside the input */
};

/* The bytes that the lists need, computed from only types and attributes; at
 * least UINT64_MAX / 2 if no machine has that much memory. If `memory` is not
 * NULL, the lists are placed in it. */
uint64_t byi_resample_plan(struct byi_resample *r, void *memory);
/* Compute the lists. `target` and `roi` must have data, x must not be empty.
 * Errors: an axis of more than 2^31 - 1 positions (BYOC_EUNSUPPORTED). */
enum byoc_status byi_resample_fill(struct byi_resample *r,
                                   struct byoc_error *err);
/* Describe the steps that resize the axes that change, first axis first, up to
 * `max_axes` adjacent ones (1 or 2) in a step. Returns the number of steps; x
 * of a step is y of the previous one. */
uint32_t byi_resample_steps(const struct byi_resample *r, uint32_t max_axes,
                            struct byi_planes steps[BYI_MAX_RANK]);
/* The weight of an input at this distance; `a` is cubic_coeff_a (R. Keys,
 * "Cubic convolution interpolation for digital image processing", 1981,
 * equation 4). */
double byi_cubic_weight(double a, double distance);

#endif
