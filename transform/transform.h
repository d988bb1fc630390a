/* SPDX-License-Identifier: Apache-2.0 */
/* transform/transform.h: the graph passes. byi_pass_NAME is defined in NAME.c,
 * except that fake_quantization_to_integer.c defines
 * byi_pass_scale_integer_products. */
#ifndef BYI_TRANSFORM_H
#define BYI_TRANSFORM_H

#include "core/ir/ir.h"

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
extern const struct byi_pass byi_pass_combine_parallel_conv2d;
extern const struct byi_pass byi_pass_combine_parallel_dense;
extern const struct byi_pass byi_pass_exact_math;
extern const struct byi_pass byi_pass_fake_quantization_to_integer;
extern const struct byi_pass byi_pass_scale_integer_products;
extern const struct byi_pass byi_pass_tabulate;
extern const struct byi_pass byi_pass_fold_code_blocks;
extern const struct byi_pass byi_pass_narrow_weights;
extern const struct byi_pass byi_pass_sparse_weights;
extern const struct byi_pass byi_pass_inverse_dct;
extern const struct byi_pass byi_pass_fuse_ops;
/* the order of axes */
extern const struct byi_pass byi_pass_eliminate_transposes;
extern const struct byi_pass byi_pass_convert_layout;
/* scopes and functions */
extern const struct byi_pass byi_pass_to_basic_block_normal_form;
extern const struct byi_pass byi_pass_check_basic_block_normal_form;
extern const struct byi_pass byi_pass_to_a_normal_form;
extern const struct byi_pass byi_pass_to_graph_normal_form;
extern const struct byi_pass byi_pass_inline;
extern const struct byi_pass byi_pass_lambda_lift;
extern const struct byi_pass byi_pass_remove_unused_functions;

#endif
