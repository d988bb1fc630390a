/* transform/transform.h: the graph passes, one a file. */
#ifndef BYI_TRANSFORM_H
#define BYI_TRANSFORM_H

#include "core/core.h"

extern const struct byi_pass byi_pass_fold_constant;      /* fold_constant.c */
extern const struct byi_pass byi_pass_dead_code;          /* dead_code.c */
extern const struct byi_pass byi_pass_simplify_inference; /* simplify_inference.c */
extern const struct byi_pass byi_pass_simplify_expr;      /* simplify_expr.c */
extern const struct byi_pass byi_pass_canonicalize_ops;   /* canonicalize_ops.c */
extern const struct byi_pass byi_pass_recompose;          /* recompose.c */
extern const struct byi_pass byi_pass_common_subexpr;     /* common_subexpr.c */

#endif
