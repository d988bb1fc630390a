/* SPDX-License-Identifier: Apache-2.0 */
/* CombineParallelConv2D: combine convolutions of one input.
 * requires: nothing; best after EliminateCommonSubexpr, so that equal inputs
 *           are one value
 * leaves:   fewer than `min_branches` (3) convolutions of one value with the
 *           same attributes, kernel size and type, one group and constant
 *           weights. Branches that differ in one of these are not combined.
 *
 *   %0 = nn.conv2d(%x, const[a]);      %0 = nn.conv2d(%x, const[a, b, c]);
 *   %1 = nn.relu(%0);                  %1 = nn.relu(%0);
 *   %2 = nn.conv2d(%x, const[b]);      %2 = split(%1, sizes=[..], axis=1);
 *   %3 = nn.relu(%2);            ==>   (%2.0, %2.1, %2.2)
 *   %4 = nn.conv2d(%x, const[c]);
 *   %5 = nn.relu(%4);
 *   (%1, %3, %5)
 */
#include "transform.h"

#include "combine_parallel.h"

static bool is_combinable(const struct byi_module *m, const struct byi_func *f,
                          byi_id id, struct byi_channels *out)
{
    const struct byi_node *node = &f->nodes.at[id];
    struct byi_tensor w;
    if (node->kind != BYI_CALL_OP || node->op != BYI_OP_NN_CONV2D ||
        byi_attr_int(node->attrs, "groups") != 1 ||
        !byi_const_view(m, f, node->args[1], &w))
        return false;
    *out = (struct byi_channels){.weight_axis = 0, .axis = 1};
    return w.dims[0] > 0;
}

static const struct byi_combine combine = {
    is_combinable, "CombineParallelConv2D.min_branches"};

static const struct byi_pass_option options[] = {
    {"min_branches", BYI_ATTR_INT, "3", "fewest convolutions to combine"},
    {.name = NULL},
};

const struct byi_pass byi_pass_combine_parallel_conv2d = {
    .name = "CombineParallelConv2D",
    .summary = "combine convolutions of one input",
    .opt_level = 3,
    .options = options,
    .data = &combine,
    .run_func = byi_combine_parallel,
};
