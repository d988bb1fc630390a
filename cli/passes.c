/* passes.c: every pass by name, and the list that a compile runs. */
#include "passes.h"

#include "partition/partition.h"
#include "transform/transform.h"

#include <string.h>

/* clang-format off */
static const struct byi_pass *const known[] = {
    /* one way to say each thing */
    &byi_pass_fold_constant,
    &byi_pass_canonicalize_ops,
    &byi_pass_simplify_expr,
    &byi_pass_eliminate_common_subexpr,
    &byi_pass_recompose,
    &byi_pass_simplify_inference,
    &byi_pass_dead_code_elimination,
    /* who runs what */
    &byi_pass_merge_composite,
    &byi_pass_annotate_target,
    &byi_pass_merge_regions,
    &byi_pass_partition_graph,
    NULL,
};

static const struct byi_pass *const pipeline[] = {
    /* one way to say each thing */
    &byi_pass_fold_constant,      /* shapes and weights the exporter computes */
    &byi_pass_canonicalize_ops,   /* constants right, relu and clip, means    */
    &byi_pass_simplify_expr,      /* what does nothing goes                   */
    &byi_pass_eliminate_common_subexpr, /* exporters repeat shape computations */
    &byi_pass_recompose,          /* layer norm, gelu, hard-swish as one      */
    &byi_pass_simplify_inference, /* batch norm into weights                  */
    &byi_pass_canonicalize_ops,   /* what the two before left behind          */
    &byi_pass_fold_constant,
    &byi_pass_simplify_expr,
    &byi_pass_dead_code_elimination, /* no reader must block a match          */
    /* who runs what */
    &byi_pass_merge_composite,
    &byi_pass_annotate_target,
    &byi_pass_merge_regions,
    &byi_pass_partition_graph,
    &byi_pass_dead_code_elimination, /* constants that moved into regions     */
    NULL,
};
/* clang-format on */

const struct byi_pass *const *byi_passes_known(void)
{
    return known;
}

const struct byi_pass *const *byi_passes_pipeline(void)
{
    return pipeline;
}

const struct byi_pass *byi_pass_find(const char *name)
{
    for (uint32_t i = 0; known[i]; i++)
        if (strcmp(known[i]->name, name) == 0)
            return known[i];
    return NULL;
}
