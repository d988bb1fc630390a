/* SPDX-License-Identifier: Apache-2.0 */
/* dominators.c: see dominators.h. Skew-binary jump pointers find lowest common
 * ancestors in logarithmic time at any depth (Myers, "An Applicative
 * Random-Access Stack", 1983). Besides its parent every node has a pointer to
 * one higher ancestor, at a distance that depends on its depth. It stores the
 * strongest kind on the path there.
 */
#include "dominators.h"

static uint8_t stronger(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/* Insert `id` below `parent`. Two jumps of equal length merge to one. */
static void insert_below(struct byi_dominator *tree, byi_id id, byi_id parent,
                         uint8_t kind)
{
    const struct byi_dominator *p = &tree[parent], *j = &tree[p->jump];
    struct byi_dominator *d = &tree[id];
    const bool join = p->depth - j->depth == j->depth - tree[j->jump].depth;
    *d = (struct byi_dominator){.parent = parent,
                                .jump = join ? j->jump : parent,
                                .depth = p->depth + 1,
                                .kind = kind,
                                .jump_kind = kind};
    if (join)
        d->jump_kind = stronger(kind, stronger(p->jump_kind, j->jump_kind));
}

/* Returns the ancestor of `at` at that depth; *kind becomes the strongest of
 * *kind and the kinds on the path. */
static byi_id ancestor_at(const struct byi_dominator *tree, byi_id at,
                          uint32_t depth, uint8_t *kind)
{
    while (tree[at].depth > depth) {
        const struct byi_dominator *d = &tree[at];
        const bool can_jump = tree[d->jump].depth >= depth;
        *kind = stronger(*kind, can_jump ? d->jump_kind : d->kind);
        at = can_jump ? d->jump : d->parent;
    }
    return at;
}

/* Returns the lowest common ancestor; *kind becomes the strongest of *kind and
 * the kinds on both paths. Nodes of equal depth have jumps of equal length. */
static byi_id common_ancestor(const struct byi_dominator *tree, byi_id a,
                              byi_id b, uint8_t *kind)
{
    a = ancestor_at(tree, a, tree[b].depth, kind);
    b = ancestor_at(tree, b, tree[a].depth, kind);
    while (a != b) {
        const struct byi_dominator *x = &tree[a], *y = &tree[b];
        const bool can_jump = x->jump != y->jump;
        *kind = stronger(*kind, can_jump ? x->jump_kind : x->kind);
        *kind = stronger(*kind, can_jump ? y->jump_kind : y->kind);
        a = can_jump ? x->jump : x->parent;
        b = can_jump ? y->jump : y->parent;
    }
    return a;
}

struct byi_dominator *byi_post_dominators(const struct byi_func *f,
                                          const struct byi_uses *uses,
                                          byi_edge_fn edge, const void *ctx,
                                          uint8_t outside,
                                          struct byi_arena *arena)
{
    const byi_id top = f->nodes.n; /* the parent of nodes without one */
    struct byi_dominator *tree =
        byi_arena_calloc(arena, (size_t)top + 1, sizeof *tree);
    tree[top] = (struct byi_dominator){.parent = top, .jump = top};
    for (byi_id id = top; id-- > 0;) {
        const uint32_t first = uses->first[id], end = uses->first[id + 1];
        if (id == f->result || first == end) {
            insert_below(tree, id, top, outside);
            continue;
        }
        byi_id parent = uses->at[first];
        uint8_t kind = 0;
        for (uint32_t u = first; u < end; u++) {
            kind = stronger(kind, edge(ctx, id, uses->at[u]));
            parent = common_ancestor(tree, parent, uses->at[u], &kind);
        }
        insert_below(tree, id, parent, kind);
    }
    return tree;
}
