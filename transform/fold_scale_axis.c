/* SPDX-License-Identifier: Apache-2.0 */
/* FoldScaleAxis: fold scales into weights in both directions, backward first. A
 * scale between two convolutions is folded into the first if possible,
 * otherwise into the second.
 */
#include "transform.h"

static const struct byi_pass *const directions[] = {
    &byi_pass_backward_fold_scale_axis,
    &byi_pass_forward_fold_scale_axis,
    NULL,
};

const struct byi_pass byi_pass_fold_scale_axis = {
    .name = "FoldScaleAxis",
    .summary = "fold multiplications into weights on either side",
    .opt_level = 3,
    .sequence = directions,
};
