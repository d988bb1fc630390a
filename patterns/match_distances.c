/* SPDX-License-Identifier: Apache-2.0 */
/* match_distances.c: computes the distance from each node of a function to the
 * base of a row's chain, to prune the search for matches.
 *
 * A row such as `nn.conv2d(..) [relu(^) | add(^, %other)]*` is tried at every
 * relu and add. Walking back from each of them through up to 32 steps, and
 * through both operands of an add, takes quadratic time in a chain's length,
 * and more if the chain has no convolution at its other end. One pass over the
 * nodes in topological order, the dynamic program below, finds the distances in
 * advance:
 *
 *     distance[conv] = 0, distance[relu(x)] = 1 + distance[x],
 *     distance[input] = none
 *
 * A match never has fewer steps than the distance of its root, so no match is
 * lost.
 */
#include "patterns.h"

/* Whether the step is one operator with '^' and operands as its arguments. */
static bool is_one_operator(const struct byi_pattern *p, uint32_t at)
{
    const struct byi_pat *pat = &p->nodes[at];

    if (pat->kind == BYI_PAT_ALT) {
        for (uint32_t i = 0; i < pat->n_args; i++)
            if (!is_one_operator(p, pat->args[i]))
                return false;
        return true;
    }
    if (pat->kind != BYI_PAT_OP)
        return false;
    for (uint32_t i = 0; i < pat->n_args; i++) {
        const enum byi_pat_kind kind = p->nodes[pat->args[i]].kind;
        if (kind != BYI_PAT_HOLE && kind != BYI_PAT_ANY &&
            kind != BYI_PAT_CONST)
            return false;
    }
    return true;
}

static void mark_steps(const struct byi_pattern *p, uint32_t at, bool *steps)
{
    const struct byi_pat *pat = &p->nodes[at];

    for (uint32_t i = 0; pat->kind == BYI_PAT_ALT && i < pat->n_args; i++)
        mark_steps(p, pat->args[i], steps);
    for (uint32_t i = 0; pat->kind == BYI_PAT_OP && i < pat->n_ops; i++)
        steps[pat->ops[i]] = true;
}

static bool mark_base(const struct byi_pattern *p, uint32_t at, bool *base)
{
    const struct byi_pat *pat = &p->nodes[at];

    if (pat->kind != BYI_PAT_OP)
        return false;
    for (uint32_t i = 0; i < pat->n_ops; i++)
        base[pat->ops[i]] = true;
    return true;
}

static uint32_t distance_of(const struct byi_node *node, const bool *base,
                            const bool *steps, const uint32_t *distances)
{
    uint32_t nearest = BYI_NO_DISTANCE;

    if (node->kind != BYI_CALL_OP)
        return BYI_NO_DISTANCE;
    if (base[node->op])
        return 0;
    for (uint32_t i = 0; steps[node->op] && i < node->n_args; i++)
        if (distances[node->args[i]] < nearest)
            nearest = distances[node->args[i]];
    return nearest == BYI_NO_DISTANCE ? BYI_NO_DISTANCE : nearest + 1;
}

const uint32_t *byi_match_distances(const struct byi_func *f,
                                    const struct byi_pattern *p,
                                    struct byi_arena *arena)
{
    const struct byi_pat *chain = &p->nodes[p->root];
    bool base[BYI_N_ROOTS] = {false}, steps[BYI_N_ROOTS] = {false};

    if (chain->kind != BYI_PAT_CHAIN || chain->forks ||
        !is_one_operator(p, chain->args[1]) ||
        !mark_base(p, chain->args[0], base))
        return NULL;
    mark_steps(p, chain->args[1], steps);
    uint32_t *distances =
        byi_arena_alloc(arena, (f->nodes.n + 1) * sizeof *distances);
    for (byi_id id = 0; id < f->nodes.n; id++)
        distances[id] = distance_of(&f->nodes.at[id], base, steps, distances);
    return distances;
}
