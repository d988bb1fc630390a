/* SPDX-License-Identifier: Apache-2.0 */
/* parts_test.c: tests dividing a graph into parts. Each node is in one part,
 * and each part reads only earlier parts. A region is in two parts only if
 * necessary. tests/cli/regions.py tests models that are made of parts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "frontend_onnx/parts.h"

enum { MAX_NODES = 12, MAX_EDGES = MAX_NODES * MAX_NODES };

/* A graph and its division into parts. */
struct cut {
    struct byi_arena *arena;
    uint32_t n, n_regions, n_edges, n_parts;
    uint32_t region[MAX_NODES], part_of[MAX_NODES];
    struct byi_node_edge edges[MAX_EDGES];
    const struct byi_model_part *parts;
};

static void run(struct cut *c)
{
    uint32_t n_nodes = 0;
    c->arena = byi_arena_new();
    c->parts = byi_cut_model(c->arena, c->n, c->region, c->n_regions,
                             c->n_edges, c->edges, &c->n_parts);
    for (uint32_t i = 0; i < c->n_parts; i++) {
        const struct byi_model_part *p = &c->parts[i];
        assert_true(p->n > 0 && (p->region || p->n == 1));
        for (uint32_t k = 0; k < p->n; k++) {
            assert_true(k == 0 || p->nodes[k - 1] < p->nodes[k]);
            assert_int_equal(c->region[p->nodes[k]], p->region);
            c->part_of[p->nodes[k]] = i;
            n_nodes++;
        }
    }
    assert_int_equal(n_nodes, c->n);
    for (uint32_t i = 0; i < c->n_edges; i++)
        assert_true(c->part_of[c->edges[i].from] <= c->part_of[c->edges[i].to]);
}

static void example_of_parts_h(void **state)
{
    struct cut c = {.n = 4,
                    .n_regions = 1,
                    .n_edges = 4,
                    .region = {1, 1, 0, 1},
                    .edges = {{0, 1}, {1, 3}, {0, 2}, {2, 3}}};
    (void)state;
    run(&c);
    assert_int_equal(c.n_parts, 3);
    assert_int_equal(c.parts[0].n, 2);
    assert_int_equal(c.parts[1].nodes[0], 2);
    assert_int_equal(c.parts[2].nodes[0], 3);
    byi_arena_free(&c.arena);
}

/* Of two regions that read each other, one is cut. */
static void regions_that_read_each_other(void **state)
{
    struct cut c = {.n = 4,
                    .n_regions = 2,
                    .n_edges = 2,
                    .region = {1, 2, 1, 2},
                    .edges = {{0, 3}, {1, 2}}};
    (void)state;
    run(&c);
    assert_int_equal(c.n_parts, 3);
    byi_arena_free(&c.arena);
}

static void empty_graph(void **state)
{
    struct cut c = {0};
    (void)state;
    run(&c);
    assert_int_equal(c.n_parts, 0);
    byi_arena_free(&c.arena);
}

/* Whether a path leaves region 1 and returns to it. */
static bool path_returns(const struct cut *c)
{
    /* nodes outside of the region that a path from it reaches */
    bool out[MAX_NODES] = {false};
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = 0; k < c->n_edges; k++) {
            const struct byi_node_edge *e = &c->edges[k];
            if (e->to != i || !(c->region[e->from] || out[e->from]))
                continue;
            if (!c->region[i])
                out[i] = true;
            else if (!c->region[e->from])
                return true;
        }
    return false;
}

/* A number below n (xorshift). */
static uint32_t draw(uint32_t *state, uint32_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % n;
}

static void random_graphs(void **state)
{
    uint32_t random = 20, n_divided = 0, n_undivided = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct cut c = {.n = 1 + draw(&random, MAX_NODES)};
        c.n_regions = 1 + draw(&random, 3);
        for (uint32_t i = 0; i < c.n; i++)
            c.region[i] = draw(&random, c.n_regions + 1);
        for (uint32_t to = 1; to < c.n; to++)
            for (uint32_t from = 0; from < to; from++)
                if (draw(&random, 4) == 0)
                    c.edges[c.n_edges++] = (struct byi_node_edge){from, to};
        run(&c);
        uint32_t parts = 0;
        for (uint32_t i = 0; i < c.n_parts; i++)
            parts += c.parts[i].region == 1;
        if (c.n_regions == 1 && parts) {
            assert_true((parts == 1) == !path_returns(&c));
            *(parts == 1 ? &n_undivided : &n_divided) += 1;
        }
        byi_arena_free(&c.arena);
    }
    assert_true(n_divided > 500 && n_undivided > 500);
}

/* Regions that read each other in turn are cut again and again. The memory is
 * in proportion to the nodes and edges, for any number of cuts. */
static void many_cuts(void **state)
{
    enum { REGIONS = 200, LENGTH = 10, NODES = REGIONS * LENGTH };
    uint32_t region[NODES], n_edges = 0, n_parts = 0;
    struct byi_node_edge edges[NODES];
    struct byi_arena *arena = byi_arena_new();
    (void)state;
    for (uint32_t i = 0; i < NODES; i++) {
        region[i] = 1 + i % REGIONS;
        if (i > 0)
            edges[n_edges++] = (struct byi_node_edge){i - 1, i};
    }
    const size_t before = byi_arena_bytes(arena);
    byi_cut_model(arena, NODES, region, REGIONS, n_edges, edges, &n_parts);
    assert_int_equal(n_parts, NODES);
    assert_true(byi_arena_bytes(arena) - before < 256 * NODES);
    byi_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_of_parts_h),
        cmocka_unit_test(regions_that_read_each_other),
        cmocka_unit_test(empty_graph),
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(many_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
