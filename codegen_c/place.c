/* SPDX-License-Identifier: Apache-2.0 */
/* place.c: orders the loops and values of a group. It fuses two loops if every
 * access is contiguous across both, and hoists each value out of the loops that
 * it does not depend on.
 */
#include "group.h"

#include <string.h>

/* --- loop fusion -------------------------------------------------------- */

/* Whether loops k and k + 1 are like one loop for the access `a`; loop k + 1
 * has `extent` iterations. */
static bool is_contiguous(const struct byi_affine *a, uint32_t k,
                          int64_t extent)
{
    return a->coef[k] == a->coef[k + 1] * extent;
}

/* Whether loops k and k + 1 can be fused: they have one owner, and every access
 * is contiguous across both. */
static bool can_fuse(const struct byi_group *g, uint32_t k)
{
    const int64_t extent = g->loops[k + 1].extent;
    if (g->loops[k].owner != g->loops[k + 1].owner ||
        !is_contiguous(&g->store, k, extent))
        return false;
    for (uint32_t i = 0; i < g->values.n; i++)
        if (g->values.at[i]->kind == BYI_GROUP_LOAD &&
            !is_contiguous(&g->values.at[i]->offset, k, extent))
            return false;
    return true;
}

static void drop_coef(struct byi_affine *a, uint32_t k)
{
    memmove(&a->coef[k], &a->coef[k + 1],
            (BYI_MAX_LOOPS - 1 - k) * sizeof a->coef[0]);
    a->coef[BYI_MAX_LOOPS - 1] = 0;
}

/* Remove loop k, and its coefficient from each access. */
static void drop_loop(struct byi_group *g, uint32_t k)
{
    drop_coef(&g->store, k);
    for (uint32_t i = 0; i < g->values.n; i++)
        drop_coef(&g->values.at[i]->offset, k);
    memmove(&g->loops[k], &g->loops[k + 1],
            (g->n_loops - 1 - k) * sizeof g->loops[0]);
    g->n_loops--;
}

static void fuse_loops(struct byi_group *g, uint32_t k)
{
    g->loops[k + 1].extent *= g->loops[k].extent;
    drop_loop(g, k);
}

/* Sort the loops by owner, the result's first, and then by axis. */
static void sort_loops(struct byi_group *g)
{
    for (uint32_t k = 1; k < g->n_loops; k++)
        for (uint32_t i = k; i > 0; i--) {
            const struct byi_loop a = g->loops[i - 1], b = g->loops[i];
            const bool swap = a.owner == b.owner ? a.axis > b.axis
                                                 : a.owner != BYI_NO_ID &&
                                                       (b.owner == BYI_NO_ID ||
                                                        a.owner < b.owner);
            if (!swap)
                break;
            g->loops[i - 1] = b;
            g->loops[i] = a;
            for (uint32_t v = 0; v <= g->values.n; v++) {
                int64_t *c = v < g->values.n ? g->values.at[v]->offset.coef
                                             : g->store.coef;
                const int64_t coef = c[i];
                c[i] = c[i - 1];
                c[i - 1] = coef;
            }
        }
}

/* --- placing values ----------------------------------------------------- */

uint32_t byi_group_nest(const struct byi_group *g, uint32_t nest,
                        uint32_t loops[BYI_MAX_LOOPS])
{
    const byi_id owner = nest ? g->values.at[nest - 1]->node : BYI_NO_ID;
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_loops; k++)
        if (g->loops[k].owner == owner)
            loops[n++] = k;
    return n;
}

/* The loops of a nest, as bits. */
static uint64_t nest_bits(const struct byi_group *g, uint32_t nest)
{
    uint32_t loops[BYI_MAX_LOOPS];
    uint64_t bits = 0;
    for (uint32_t n = byi_group_nest(g, nest, loops); n-- > 0;)
        bits |= UINT64_C(1) << loops[n];
    return bits;
}

/* Set the loops that each value varies with. */
static void find_loops(struct byi_group *g)
{
    for (uint32_t i = 0; i < g->values.n; i++) {
        struct byi_group_value *v = g->values.at[i];
        for (uint32_t k = 0; v->kind == BYI_GROUP_LOAD && k < g->n_loops; k++)
            v->loops |= (uint64_t)(v->offset.coef[k] != 0) << k;
        for (uint32_t k = 0; k < v->n_args; k++)
            v->loops |= g->values.at[v->args[k]]->loops;
        if (v->kind == BYI_GROUP_REDUCE)
            v->loops &= ~nest_bits(g, i + 1);
    }
}

/* Place values from the last to the first, so that a reduction is placed before
 * the values in its loops. A value that varies with the loops of two reductions
 * belongs to the inner nest, whose reduction comes first. */
static void place_values(struct byi_group *g)
{
    for (uint32_t i = g->values.n; i-- > 0;) {
        struct byi_group_value *v = g->values.at[i];
        uint32_t loops[BYI_MAX_LOOPS];
        for (uint32_t k = i + 1; k < g->values.n && !v->nest; k++)
            if (g->values.at[k]->kind == BYI_GROUP_REDUCE &&
                (v->loops & nest_bits(g, k + 1)))
                v->nest = k + 1;
        for (uint32_t n = byi_group_nest(g, v->nest, loops); n > 0; n--)
            if (v->loops >> loops[n - 1] & 1) {
                v->level = n;
                break;
            }
    }
}

void byi_group_place(struct byi_group *g)
{
    sort_loops(g);
    for (uint32_t k = g->n_loops; k-- > 0;)
        if (g->loops[k].extent == 1)
            drop_loop(g, k);
    for (uint32_t k = g->n_loops; k-- > 1;)
        if (can_fuse(g, k - 1))
            fuse_loops(g, k - 1);
    find_loops(g);
    place_values(g);
}
