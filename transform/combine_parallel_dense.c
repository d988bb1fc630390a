/* SPDX-License-Identifier: Apache-2.0 */
/* CombineParallelDense: combine matrix products of one input.
 * requires: nothing; best after EliminateCommonSubexpr, so that equal inputs
 *           are one value
 * leaves:   fewer than `min_branches` (3) nn.dense or nn.matmul of one value
 *           with the same attributes and constant matrices of one dtype and
 *           depth. Elementwise operators that follow all of them are combined
 *           too.
 *
 *   %0 = nn.dense(%x, const[q]);       %0 = nn.dense(%x, const[q, k, v]);
 *   %1 = nn.dense(%x, const[k]);       %1 = split(%0, sizes=[..], axis=1);
 *   %2 = nn.dense(%x, const[v]);  ==>  (%1.0, %1.1, %1.2)
 *   (%0, %1, %2)
 */
#include "transform.h"

#include "combine_parallel.h"

static bool is_combinable(const struct byi_module *m, const struct byi_func *f,
                          byi_id id, struct byi_channels *out)
{
    const struct byi_node *node = &f->nodes.at[id];
    struct byi_tensor w;
    if (node->kind != BYI_CALL_OP ||
        (node->op != BYI_OP_NN_DENSE && node->op != BYI_OP_NN_MATMUL) ||
        !byi_const_view(m, f, node->args[1], &w) || w.rank != 2)
        return false;
    const bool rows = node->op == BYI_OP_NN_DENSE ||
                      byi_attr_int(node->attrs, "transpose_b") != 0;
    *out = (struct byi_channels){.weight_axis = rows ? 0 : 1,
                                 .axis = node->type->rank - 1};
    return w.dims[out->weight_axis] > 0;
}

static const struct byi_combine combine = {is_combinable,
                                           "CombineParallelDense.min_branches"};

static const struct byi_pass_option options[] = {
    {"min_branches", BYI_ATTR_INT, "3", "fewest products to combine"},
    {.name = NULL},
};

const struct byi_pass byi_pass_combine_parallel_dense = {
    .name = "CombineParallelDense",
    .summary = "combine matrix products of one input",
    .opt_level = 3,
    .options = options,
    .data = &combine,
    .run_func = byi_combine_parallel,
};
