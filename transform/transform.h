/* transform/transform.h: the graph passes, one a file: byi_pass_X is in X.c. */
#ifndef BYI_TRANSFORM_H
#define BYI_TRANSFORM_H

#include "core/core.h"

extern const struct byi_pass byi_pass_fold_constant;
extern const struct byi_pass byi_pass_dead_code_elimination;
extern const struct byi_pass byi_pass_simplify_inference;
extern const struct byi_pass byi_pass_simplify_expr;
extern const struct byi_pass byi_pass_canonicalize_ops;
extern const struct byi_pass byi_pass_recompose;
extern const struct byi_pass byi_pass_eliminate_common_subexpr;
extern const struct byi_pass byi_pass_backward_fold_scale_axis;
extern const struct byi_pass byi_pass_forward_fold_scale_axis;
extern const struct byi_pass byi_pass_fold_scale_axis;
extern const struct byi_pass byi_pass_fuse_ops;

#endif
