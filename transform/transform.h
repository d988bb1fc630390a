/* SPDX-License-Identifier: Apache-2.0 */
/* transform/transform.h: the graph passes, in the order in which they are
 * listed to users. byi_pass_NAME is defined in NAME.c, except that
 * fake_quantization_to_integer.c defines byi_pass_scale_integer_products. */
#ifndef BYI_TRANSFORM_H
#define BYI_TRANSFORM_H

#include "core/ir/ir.h"

/* X(NAME) for each pass. */
/* clang-format off */
#define BYI_TRANSFORM_PASSES(X)                                                \
    X(fold_constant) X(canonicalize_ops) X(simplify_expr)                      \
    X(eliminate_common_subexpr) X(recompose) X(simplify_inference)             \
    X(backward_fold_scale_axis) X(forward_fold_scale_axis) X(fold_scale_axis)  \
    X(combine_parallel_conv2d) X(combine_parallel_dense)                       \
    X(dead_code_elimination) X(eliminate_transposes) X(convert_layout)         \
    X(exact_math) X(fake_quantization_to_integer) X(scale_integer_products)    \
    X(fold_code_blocks) X(narrow_weights) X(sparse_weights) X(inverse_dct)     \
    X(delay_dequantize) X(tabulate) X(to_mixed_precision) X(fuse_attention)    \
    X(fuse_ops) X(to_basic_block_normal_form)                                  \
    X(check_basic_block_normal_form) X(to_a_normal_form)                       \
    X(to_graph_normal_form) X(inline) X(lambda_lift)                           \
    X(remove_unused_functions)
/* clang-format on */
#define BYI_TRANSFORM_PASS(name) extern const struct byi_pass byi_pass_##name;
BYI_TRANSFORM_PASSES(BYI_TRANSFORM_PASS)

#endif
