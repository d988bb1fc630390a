/* SPDX-License-Identifier: Apache-2.0 */
/* resample.h: image.resize as lists of taps, one list an axis: what the
 * native kernel and generated code have in common.
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
    const struct byi_tensor *x, *y; /* types */
    const struct byi_tensor *given; /* sizes or scales */
    const struct byi_tensor *roi;   /* of dyn.resize, else NULL */
    /* from byi_resample_plan */
    struct byi_taps axes[BYI_MAX_RANK];
    int32_t *first[BYI_MAX_RANK];
    void *weight[BYI_MAX_RANK];
    bool *outside[BYI_MAX_RANK]; /* positions that get extrapolation_value */
    /* from byi_resample_fill */
    bool stays[BYI_MAX_RANK]; /* an axis that is copied */
    bool reaches_out;         /* some position is outside */
};

/* Bytes of memory that the lists need, from types and attributes alone; where
 * `memory` is not NULL they are placed in it. */
uint64_t byi_resample_plan(struct byi_resample *r, void *memory);
/* Compute the lists: `given` and `roi` have data by now. x has elements.
 * Errors: an axis of more than 2^31 - 1 positions (BYOC_EUNSUPPORTED). */
enum byoc_status byi_resample_fill(struct byi_resample *r,
                                   struct byoc_error *err);
/* The axes that do not stay, from the first on, `most` neighbours (1 or 2) in
 * a step. Gives how many steps there are; x of one is y of the one before. */
uint32_t byi_resample_steps(const struct byi_resample *r, uint32_t most,
                            struct byi_planes steps[BYI_MAX_RANK]);
/* What an input counts at this distance (R. Keys, "Cubic convolution
 * interpolation for digital image processing", 1981, equation 4). */
double byi_cubic_weight(double a, double distance);

#endif
