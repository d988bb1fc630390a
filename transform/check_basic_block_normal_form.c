/* SPDX-License-Identifier: Apache-2.0 */
/* CheckBasicBlockNormalForm: fail where ToBasicBlockNormalForm would move a
 * value.
 * requires: nothing
 * leaves:   the module as it is
 *
 *   %0 = exp(%x);                    @main: %0 (exp) is needed only in the then
 *   if (%c) { abs(%0) }     ==>      branch of if (%c), expected it to be
 *   else { %x }                      computed there; ...
 */
#include "transform.h"

#include "scope.h"

static const char *describe_node(const struct byi_module *m,
                                 const struct byi_node *n)
{
    switch (n->kind) {
    case BYI_CALL_OP:
        return byi_op(n->op)->name;
    case BYI_CALL:
        return "a call";
    case BYI_FN:
        return m->funcs.at[n->index]->attr.composite
                   ? m->funcs.at[n->index]->attr.composite
                   : "a function";
    case BYI_MAKE_TUPLE:
        return "a tuple";
    case BYI_GET:
        return "a field";
    case BYI_IF:
        return "an if";
    case BYI_PARAM:
    case BYI_CONST:
    case BYI_GLOBAL:
        break;
    }
    byi_unreachable();
}

/* Find the `if` that has the function `branch` as a branch, and print the name
 * of its condition to `cond`. Returns "then" or "else". Each branch belongs to
 * one `if`. */
static const char *find_if(const struct byi_module *m, uint32_t branch,
                           struct byi_text *cond)
{
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (byi_id id = 0; !f->dead && id < f->nodes.n; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            for (uint32_t k = 1; node->kind == BYI_IF && k < 3; k++) {
                const struct byi_node *fn = &f->nodes.at[node->args[k]];
                if (fn->kind != BYI_FN || fn->index != branch)
                    continue;
                byi_print_name(m, i, node->args[0], cond);
                return k == 1 ? "then" : "else";
            }
        }
    }
    byi_unreachable();
}

static enum byoc_status report_misplaced(
    const struct byi_module *m, const struct byi_misplaced_value *misplaced,
    uint32_t root, struct byoc_error *err)
{
    const struct byi_node *node =
        &m->funcs.at[misplaced->func]->nodes.at[misplaced->id];
    struct byi_text name = {0}, cond = {0};
    byi_print_name(m, misplaced->func, misplaced->id, &name);
    const char *branch = find_if(m, misplaced->into, &cond);
    const enum byoc_status status = byi_fail(
        err, BYOC_EINVAL,
        "@%.80s: %.20s (%.60s) is needed only in the %s branch of if (%.80s), "
        "expected it to be computed there; ToBasicBlockNormalForm moves it",
        m->funcs.at[root]->name, name.at, describe_node(m, node), branch,
        cond.at);
    byi_text_free(&name);
    byi_text_free(&cond);
    return status;
}

static enum byoc_status run(struct byi_module *m, struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    (void)ctx;
    struct byi_scopes *s = byi_scopes_new(m, scratch);
    struct byi_misplaced_value misplaced;
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < m->funcs.n && status == BYOC_OK; i++) {
        if (!byi_scopes_is_root(s, i))
            continue;
        byi_scopes_assign(s, i);
        if (byi_scopes_find_misplaced(s, &misplaced))
            status =
                report_misplaced(m, &misplaced, byi_scopes_holder(s, i), err);
    }
    return status;
}

const struct byi_pass byi_pass_check_basic_block_normal_form = {
    .name = "CheckBasicBlockNormalForm",
    .summary = "fail where a value could move into a branch",
    .opt_level = 1,
    .run_module = run,
};
