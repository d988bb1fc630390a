/* SPDX-License-Identifier: Apache-2.0 */
/* assign.c: solves placement: the cheapest assignment of candidates to native
 * kernels and backends, by minimum cuts. */
#include "cost.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Costs are integers, in picoseconds, so that sums are exact and comparisons do
 * not depend on the order of summation. */
static int64_t ticks(double us)
{
    const double most = 1e15; /* of one candidate: 16 minutes */
    const double t = us * 1e6;
    return t > most ? (int64_t)most : (int64_t)llround(t);
}

static int64_t cost_of(const struct byi_choice *c, uint32_t unit,
                       uint32_t label)
{
    return ticks(c->cost[(size_t)unit * c->n_labels + label]);
}

static bool is_possible(const struct byi_choice *c, uint32_t unit,
                        uint32_t label)
{
    return isfinite(c->cost[(size_t)unit * c->n_labels + label]);
}

static int64_t total(const struct byi_choice *c, const uint32_t *label)
{
    int64_t sum = 0;
    for (uint32_t u = 0; u < c->n_units; u++)
        sum += cost_of(c, u, label[u]);
    for (uint32_t i = 0; i < c->n_bonds; i++) {
        const struct byi_bond *bond = &c->bonds[i];
        if (label[bond->a] == label[bond->b])
            sum -= ticks(bond->save[label[bond->a]]);
    }
    return sum;
}

double byi_choice_cost(const struct byi_choice *c, const uint32_t *label)
{
    return (double)total(c, label) / 1e6;
}

/* --- one expansion -------------------------------------------------------- */

struct expansion {
    const struct byi_choice *c;
    const uint32_t *label;
    uint32_t to;
    uint32_t *node;           /* of each unit: 1 + its node; 0: fixed */
    int64_t *to_cost, *stays; /* of each node */
};

/* Add a pairwise term between a unit that may change its label and a fixed one,
 * or between two that may: its saving if both keep their labels, and if both
 * change. */
static void add_bond(struct expansion *e, struct byi_network *net,
                     const struct byi_bond *bond)
{
    const uint32_t a = e->node[bond->a], b = e->node[bond->b];
    const uint32_t la = e->label[bond->a], lb = e->label[bond->b];
    const int64_t same = la == lb ? ticks(bond->save[la]) : 0;
    const int64_t both = ticks(bond->save[e->to]);
    if (a && b) {
        e->to_cost[a - 1] += same; /* -same unless one of them changes */
        e->stays[a - 1] += both;   /* -both unless one of them stays */
        byi_network_join(net, a - 1, b - 1, both, same);
        return;
    }
    if (!a && !b)
        return;
    const uint32_t node = (a ? a : b) - 1, other = a ? lb : la;
    if (other == e->to)
        e->stays[node] += both;
    else
        e->to_cost[node] += same;
}

/* One expansion move: every unit may switch to label `to`. */
static void expand(const struct byi_choice *c, uint32_t *label, uint32_t to)
{
    struct byi_arena *arena = byi_arena_new();
    struct expansion e = {.c = c, .label = label, .to = to};
    uint32_t n = 0;
    e.node = byi_arena_calloc(arena, c->n_units, sizeof *e.node);
    e.to_cost = byi_arena_calloc(arena, c->n_units, sizeof *e.to_cost);
    e.stays = byi_arena_calloc(arena, c->n_units, sizeof *e.stays);
    for (uint32_t u = 0; u < c->n_units; u++) {
        if (label[u] == to || !is_possible(c, u, to))
            continue;
        e.to_cost[n] = cost_of(c, u, to);
        e.stays[n] = cost_of(c, u, label[u]);
        e.node[u] = ++n;
    }
    struct byi_network *net = byi_network_new(arena, n);
    bool *taken = byi_arena_calloc(arena, n + 1u, sizeof *taken);
    for (uint32_t i = 0; i < c->n_bonds; i++)
        add_bond(&e, net, &c->bonds[i]);
    for (uint32_t i = 0; i < n; i++)
        byi_network_side(net, i, e.to_cost[i], e.stays[i]);
    byi_network_cut(net, taken);
    for (uint32_t u = 0; u < c->n_units; u++)
        if (e.node[u] && taken[e.node[u] - 1])
            label[u] = to;
    byi_network_free(&net);
    byi_arena_free(&arena);
}

/* --- the solver ----------------------------------------------------------- */

static void improve(const struct byi_choice *c, uint32_t *label)
{
    int64_t before, after = total(c, label);
    do {
        before = after;
        for (uint32_t l = c->n_labels; l-- > 0;)
            expand(c, label, l);
        after = total(c, label);
        assert(after <= before);
    } while (after < before && c->n_labels > 2);
}

/* Start from label `first` where it is possible, else from the cheapest. */
static void start(const struct byi_choice *c, uint32_t first, uint32_t *label)
{
    for (uint32_t u = 0; u < c->n_units; u++) {
        label[u] = 0;
        for (uint32_t l = 1; l < c->n_labels; l++)
            if (is_possible(c, u, l) &&
                (l == first || (label[u] != first &&
                                cost_of(c, u, l) < cost_of(c, u, label[u]))))
                label[u] = l;
        if (first == 0)
            label[u] = 0;
    }
}

void byi_choose(const struct byi_choice *c, uint32_t *label)
{
    struct byi_arena *arena = byi_arena_new();
    uint32_t *try = byi_arena_calloc(arena, c->n_units, sizeof *try);
    start(c, 0, label);
    improve(c, label);
    /* with one vendor a single expansion from all-native is exact */
    for (uint32_t l = 1; l < c->n_labels && c->n_labels > 2; l++) {
        start(c, l, try);
        improve(c, try);
        if (total(c, try) < total(c, label))
            memcpy(label, try, c->n_units * sizeof *label);
    }
    byi_arena_free(&arena);
}
