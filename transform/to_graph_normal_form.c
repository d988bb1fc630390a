/* SPDX-License-Identifier: Apache-2.0 */
/* ToGraphNormalForm: write every value without let.
 * requires: nothing
 * breaks:   ToANormalForm
 * leaves:   no let, except in functions whose bodies must not change (regions,
 *           composites, fused groups). Values stay in their scopes.
 *
 *   let %0 = exp(%x);                   %0 = exp(%x);
 *   let %1 = nn.relu(%0);     ==>       nn.relu(%0)
 *   %1
 */
#include "transform.h"

#include "call_graph.h"

static enum byoc_status run(struct byi_module *m, struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    (void)ctx;
    (void)err;
    const struct byi_call_graph graph = byi_call_graph(m, scratch);
    for (uint32_t i = 0; i < graph.n; i++) {
        struct byi_func *f = m->funcs.at[graph.order[i]];
        if (graph.closed[graph.order[i]])
            continue;
        for (byi_id id = 0; id < f->nodes.n; id++)
            f->nodes.at[id].let = false;
    }
    return BYOC_OK;
}

static const char *const breaks[] = {"ToANormalForm", NULL};

const struct byi_pass byi_pass_to_graph_normal_form = {
    .name = "ToGraphNormalForm",
    .summary = "write every value without let",
    .opt_level = 1,
    .breaks = breaks,
    .run_module = run,
};
