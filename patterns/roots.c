/* SPDX-License-Identifier: Apache-2.0 */
/* roots.c: the kinds of nodes at which a pattern can match. A table of patterns
 * is indexed by them. */
#include "parse.h"

uint32_t byi_root_of(const struct byi_node *node)
{
    if (node->kind == BYI_CALL_OP)
        return node->op;
    if (node->kind == BYI_IF)
        return BYI_ROOT_IF;
    return node->kind == BYI_MAKE_TUPLE ? BYI_ROOT_TUPLE : BYI_ROOT_NONE;
}

void byi_pat_mark_ops(const struct byi_pat *pat, bool *roots)
{
    for (uint32_t i = 0; i < pat->n_ops; i++)
        roots[pat->ops[i]] = true;
    if (pat->kind == BYI_PAT_TUPLE)
        roots[BYI_ROOT_TUPLE] = true;
    if (pat->kind == BYI_PAT_IF)
        roots[BYI_ROOT_IF] = true;
    if (pat->inverse && pat->ops[0] == BYI_OP_MULTIPLY)
        roots[BYI_OP_DIVIDE] = roots[BYI_OP_RECIPROCAL] = true;
    if (pat->inverse && pat->ops[0] == BYI_OP_ADD)
        roots[BYI_OP_SUBTRACT] = roots[BYI_OP_NEGATIVE] = true;
}

bool byi_pat_mark_roots(const struct byi_pattern *p, uint32_t at, bool *roots)
{
    const struct byi_pat *pat = &p->nodes[at];
    switch (pat->kind) {
    case BYI_PAT_OP:
    case BYI_PAT_GROUP:
    case BYI_PAT_TUPLE:
    case BYI_PAT_IF:
        byi_pat_mark_ops(pat, roots);
        return true;
    case BYI_PAT_ALT:
        for (uint32_t i = 0; i < pat->n_args; i++)
            if (!byi_pat_mark_roots(p, pat->args[i], roots))
                return false;
        return true;
    case BYI_PAT_CHAIN:
        return byi_pat_mark_roots(p, pat->args[1], roots) &&
               (pat->min > 0 || byi_pat_mark_roots(p, pat->args[0], roots));
    case BYI_PAT_TYPE:
    case BYI_PAT_ONCE:
        return byi_pat_mark_roots(p, pat->args[0], roots);
    default:
        return false;
    }
}
