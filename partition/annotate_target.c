/* SPDX-License-Identifier: Apache-2.0 */
/* AnnotateTarget: mark every call of a backend's composite, and every field of
 * its result, with the backend.
 * requires: MergeComposite                 breaks: nothing
 *
 *   %1 = %0(%x)                    ==>     %1 = %0(%x) @[dnnl]
 *
 * The backend is the composite's name up to the first '.'. Existing marks are
 * kept, so running twice, or once per backend, has the same result as running
 * once.
 */
#include "partition.h"

#include <string.h>

static enum byoc_status mark_node(struct byi_module *m, struct byi_node *node,
                                  const char *composite, struct byoc_error *err)
{
    const char *dot = strchr(composite, '.');
    size_t n = dot ? (size_t)(dot - composite) : strlen(composite);
    uint32_t backend = 0;
    BYI_TRY(byi_backend_add(m, byi_arena_strn(m->arena, composite, n), &backend,
                            err));
    byi_node_mark(node, backend, node->region);
    return BYOC_OK;
}

bool byi_has_region(const struct byi_module *m, const char *backend)
{
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        if (!f->dead && f->attr.compiler &&
            (!backend || strcmp(f->attr.compiler, backend) == 0))
            return true;
    }
    return false;
}

const struct byi_func *byi_composite_of(const struct byi_module *m,
                                        const struct byi_func *f,
                                        const struct byi_node *call)
{
    if (call->kind != BYI_CALL)
        return NULL;
    const struct byi_node *fn = &f->nodes.at[call->args[0]];
    if (fn->kind != BYI_FN || fn->n_args)
        return NULL;
    const struct byi_func *body = m->funcs.at[fn->index];
    return body->attr.composite ? body : NULL;
}

static enum byoc_status annotate_target(struct byi_module *m, uint32_t func,
                                        struct byi_pass_context *ctx,
                                        struct byi_arena *scratch,
                                        struct byoc_error *err)
{
    (void)ctx, (void)scratch;
    struct byi_func *f = m->funcs.at[func];
    for (byi_id id = 0; id < f->nodes.n; id++) {
        struct byi_node *node = &f->nodes.at[id];
        const struct byi_func *body = byi_composite_of(m, f, node);
        if (body)
            BYI_TRY(mark_node(m, node, body->attr.composite, err));
        else if (node->kind == BYI_GET)
            node->backend = f->nodes.at[node->args[0]].backend;
    }
    return BYOC_OK;
}

const struct byi_pass byi_pass_annotate_target = {
    .name = "AnnotateTarget",
    .summary = "mark the nodes that each backend runs",
    .run_func = annotate_target,
};
