/* SPDX-License-Identifier: Apache-2.0 */
/* assign_test.c: minimum cuts and assignments by cost, held against every
 * assignment there is; no clock.
 */
#include "partition/cost.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { NATIVE, A, B };

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* --- cuts ----------------------------------------------------------------- */

struct arc {
    uint32_t a, b;
    int64_t there, back;
};

static int64_t cut_cost(uint32_t n, const int64_t (*side)[2],
                        const struct arc *arcs, uint32_t n_arcs,
                        const bool *source_side)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += side[i][!source_side[i]];
    for (uint32_t i = 0; i < n_arcs; i++) {
        if (source_side[arcs[i].a] && !source_side[arcs[i].b])
            sum += arcs[i].there;
        if (source_side[arcs[i].b] && !source_side[arcs[i].a])
            sum += arcs[i].back;
    }
    return sum;
}

static void a_cut_is_the_cheapest_of_all(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 3000; round++) {
        enum { MOST = 10 };
        int64_t side[MOST][2];
        struct arc arcs[3 * MOST];
        const uint32_t n = 1 + below(MOST), n_arcs = below(3 * MOST);
        bool got[MOST], try[MOST];
        struct byi_arena *arena = byi_arena_new();
        struct byi_network *net = byi_network_new(arena, n);
        for (uint32_t i = 0; i < n; i++) {
            side[i][0] = (int64_t)below(20) - 5;
            side[i][1] = (int64_t)below(20) - 5;
            byi_network_side(net, i, side[i][0], side[i][1]);
        }
        for (uint32_t i = 0; i < n_arcs; i++) {
            arcs[i] = (struct arc){below(n), below(n), below(9), below(9)};
            byi_network_join(net, arcs[i].a, arcs[i].b, arcs[i].there,
                             arcs[i].back);
        }
        const int64_t cost = byi_network_cut(net, got);
        assert_int_equal(cost, cut_cost(n, side, arcs, n_arcs, got));
        for (uint32_t set = 0; set < 1u << n; set++) {
            for (uint32_t i = 0; i < n; i++)
                try[i] = set >> i & 1;
            assert_true(cost <= cut_cost(n, side, arcs, n_arcs, try));
        }
        byi_network_free(&net);
        byi_arena_free(&arena);
    }
}

/* --- assignments ---------------------------------------------------------- */

/* As tests read it: the cheapest labels of these units. */
static void choose(uint32_t n_units, uint32_t n_labels, const double *cost,
                   uint32_t n_bonds, const struct byi_bond *bonds,
                   uint32_t *label)
{
    const struct byi_choice c = {.n_units = n_units,
                                 .n_labels = n_labels,
                                 .cost = cost,
                                 .bonds = bonds,
                                 .n_bonds = n_bonds};
    byi_choose(&c, label);
}

static void each_takes_the_cheaper_without_bonds(void **state)
{
    (void)state;
    const double cost[] = {10, 3, /**/ 4, 5, /**/ 7, INFINITY};
    uint32_t label[3];
    choose(3, 2, cost, 0, NULL, label);
    assert_int_equal(label[0], A);
    assert_int_equal(label[1], NATIVE);
    assert_int_equal(label[2], NATIVE);
}

/* conv - relu - conv: relu alone is dearer on the vendor, but leaving and
 * coming back is dearer still. */
static void a_dear_unit_stays_where_its_neighbours_are(void **state)
{
    (void)state;
    const double cost[] = {100, 20, /**/ 2, 6, /**/ 100, 20};
    const double saves[] = {0, 3};
    const struct byi_bond bonds[] = {{0, 1, saves}, {1, 2, saves}};
    uint32_t label[3];
    choose(3, 2, cost, 2, bonds, label);
    assert_int_equal(label[1], A);
    const double little[] = {0, 1};
    const struct byi_bond weak[] = {{0, 1, little}, {1, 2, little}};
    choose(3, 2, cost, 2, weak, label);
    assert_int_equal(label[0], A);
    assert_int_equal(label[1], NATIVE);
    assert_int_equal(label[2], A);
}

/* B is cheaper at the middle unit alone, and dearer for the whole graph. */
static void the_whole_graph_counts_and_not_the_unit(void **state)
{
    (void)state;
    const double cost[] = {90, 20, 40, /**/ 30, 10, 7, /**/ 90, 20, 40};
    const double saves[] = {0, 4, 4};
    const struct byi_bond bonds[] = {{0, 1, saves}, {1, 2, saves}};
    uint32_t label[3];
    choose(3, 3, cost, 2, bonds, label);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(label[i], A);
    const double nothing[] = {0, 0, 0};
    const struct byi_bond none[] = {{0, 1, nothing}, {1, 2, nothing}};
    choose(3, 3, cost, 2, none, label);
    assert_int_equal(label[0], A);
    assert_int_equal(label[1], B);
    assert_int_equal(label[2], A);
}

/* Neither of two units goes alone; both together do. */
static void units_go_together(void **state)
{
    (void)state;
    const double cost[] = {10, 11, /**/ 10, 11};
    const double saves[] = {0, 5};
    const struct byi_bond bonds[] = {{0, 1, saves}};
    uint32_t label[2];
    choose(2, 2, cost, 1, bonds, label);
    assert_int_equal(label[0], A);
    assert_int_equal(label[1], A);
}

/* Fusion on the native side is worth as much as a region. */
static void native_bonds_keep_units_native(void **state)
{
    (void)state;
    const double cost[] = {10, 9, /**/ 10, 9};
    const double saves[] = {6, 1};
    const struct byi_bond bonds[] = {{0, 1, saves}};
    uint32_t label[2];
    choose(2, 2, cost, 1, bonds, label);
    assert_int_equal(label[0], NATIVE);
    assert_int_equal(label[1], NATIVE);
}

enum { MOST_UNITS = 9, MOST_LABELS = 4, MOST_BONDS = 24 };

struct problem {
    double cost[MOST_UNITS * MOST_LABELS];
    double save[MOST_BONDS][MOST_LABELS];
    struct byi_bond bonds[MOST_BONDS];
    struct byi_choice c;
};

static void make_problem(struct problem *p, uint32_t n_units, uint32_t n_labels)
{
    *p = (struct problem){.c = {.n_units = n_units,
                                .n_labels = n_labels,
                                .cost = p->cost,
                                .bonds = p->bonds}};
    for (uint32_t u = 0; u < n_units; u++)
        for (uint32_t l = 0; l < n_labels; l++)
            p->cost[u * n_labels + l] =
                l && below(4) == 0 ? INFINITY : 1 + below(40) / 4.0;
    p->c.n_bonds = n_units < 2 ? 0 : below(2 * n_units);
    for (uint32_t i = 0; i < p->c.n_bonds; i++) {
        const uint32_t a = below(n_units - 1);
        p->bonds[i] =
            (struct byi_bond){a, a + 1 + below(n_units - a - 1), p->save[i]};
        for (uint32_t l = 0; l < n_labels; l++)
            p->save[i][l] = below(3) ? below(20) / 4.0 : 0;
    }
}

static double cheapest(const struct problem *p)
{
    uint32_t label[MOST_UNITS] = {0};
    double best = INFINITY;
    for (;;) {
        const double cost = byi_choice_cost(&p->c, label);
        bool possible = true;
        for (uint32_t u = 0; u < p->c.n_units; u++)
            possible =
                possible && isfinite(p->cost[u * p->c.n_labels + label[u]]);
        best = possible && cost < best ? cost : best;
        uint32_t u = 0;
        while (u < p->c.n_units && ++label[u] == p->c.n_labels)
            label[u++] = 0;
        if (u == p->c.n_units)
            return best;
    }
}

static void with_one_vendor_nothing_is_cheaper(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 4000; round++) {
        struct problem p;
        uint32_t label[MOST_UNITS];
        make_problem(&p, 1 + below(MOST_UNITS), 2);
        byi_choose(&p.c, label);
        assert_float_equal(byi_choice_cost(&p.c, label), cheapest(&p), 1e-9);
    }
}

/* Several vendors: at most twice the cheapest, by theory on costs that are not
 * negative; in fact almost always the cheapest. */
static void with_several_vendors_hardly_anything_is(void **state)
{
    (void)state;
    const uint32_t rounds = 1500;
    uint32_t exact = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        struct problem p;
        uint32_t label[MOST_UNITS];
        make_problem(&p, 1 + below(6), 3 + below(2));
        byi_choose(&p.c, label);
        for (uint32_t u = 0; u < p.c.n_units; u++)
            assert_true(isfinite(p.cost[u * p.c.n_labels + label[u]]));
        const double cost = byi_choice_cost(&p.c, label);
        exact += cost <= cheapest(&p) + 1e-9;
        uint32_t native[MOST_UNITS] = {0};
        assert_true(cost <= byi_choice_cost(&p.c, native));
    }
    assert_true(exact >= rounds / 100 * 98);
}

static void a_long_chain_is_no_trouble(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct byi_arena *arena = byi_arena_new();
    double *cost = byi_arena_calloc(arena, 2 * N, sizeof *cost);
    struct byi_bond *bonds = byi_arena_calloc(arena, N, sizeof *bonds);
    uint32_t *label = byi_arena_calloc(arena, N, sizeof *label);
    static const double saves[] = {0.5, 3};
    for (uint32_t u = 0; u < N; u++) {
        cost[2 * u] = 1 + below(40) / 4.0;
        cost[2 * u + 1] = 1 + below(40) / 4.0;
        bonds[u] = (struct byi_bond){u, u + 1, saves};
    }
    const struct byi_choice c = {.n_units = N,
                                 .n_labels = 2,
                                 .cost = cost,
                                 .bonds = bonds,
                                 .n_bonds = N - 1};
    byi_choose(&c, label);
    /* a chain's cheapest, by dynamic programming */
    double best[2] = {cost[0], cost[1]};
    for (uint32_t u = 1; u < N; u++) {
        const double was[2] = {best[0], best[1]};
        for (uint32_t l = 0; l < 2; l++)
            best[l] = cost[2 * u + l] + fmin(was[l] - saves[l], was[!l]);
    }
    assert_float_equal(byi_choice_cost(&c, label), fmin(best[0], best[1]),
                       1e-3);
    byi_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_is_the_cheapest_of_all),
        cmocka_unit_test(each_takes_the_cheaper_without_bonds),
        cmocka_unit_test(a_dear_unit_stays_where_its_neighbours_are),
        cmocka_unit_test(the_whole_graph_counts_and_not_the_unit),
        cmocka_unit_test(units_go_together),
        cmocka_unit_test(native_bonds_keep_units_native),
        cmocka_unit_test(with_one_vendor_nothing_is_cheaper),
        cmocka_unit_test(with_several_vendors_hardly_anything_is),
        cmocka_unit_test(a_long_chain_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
