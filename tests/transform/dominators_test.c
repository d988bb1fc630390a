/* SPDX-License-Identifier: Apache-2.0 */
/* dominators_test.c: compares post-dominators of random graphs with their
 * definition. Every path from a node to an exit contains the node's parent, and
 * no node before the parent has that property.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "transform/dominators.h"

enum { N_GRAPHS = 2000, MAX_NODES = 40, OUTSIDE = 100 };

static uint32_t pick(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

static uint8_t edge_kind(const void *ctx, byi_id value, byi_id reader)
{
    (void)ctx;
    return (uint8_t)((value * 31 + reader * 57) % 97);
}

/* A graph of sums of earlier values. They are along one or two chains that end
 * in one sum, with a random value now and then, so that dominators are long
 * chains. Or they are sums of near values. */
static void make_graph(struct byi_module *m, uint64_t seed)
{
    const int64_t dim = 4;
    const uint32_t index = byi_func_new(m, "main");
    struct byi_func *f = m->funcs.at[index];
    const uint32_t n = 3 + pick(&seed, MAX_NODES - 3);
    const uint32_t max_distance = 1 + pick(&seed, MAX_NODES);
    const uint32_t rare = 1 + pick(&seed, 40), second_chain = pick(&seed, 2);
    byi_add_param(m, f, "x", byi_type_tensor(m->arena, BYOC_F32, 1, &dim));
    while (f->nodes.n < n) {
        byi_id args[2], id;
        for (uint32_t i = 0; i < 2; i++) {
            const bool last = f->nodes.n == n - 1;
            const uint32_t distance = last ? i
                                      : pick(&seed, rare) == 0
                                          ? pick(&seed, max_distance)
                                          : second_chain;
            args[i] = distance < f->nodes.n ? f->nodes.n - 1 - distance : 0;
        }
        assert_int_equal(
            byi_add_op(m, f, BYI_OP_ADD, args, 2, NULL, NULL, &id, NULL),
            BYOC_OK);
    }
    f->result = n - 1 - (pick(&seed, 4) == 0 ? pick(&seed, 3) : 0);
}

/* Set `is_on_path` for the nodes on paths from `from` that avoid `without`, and
 * *kind to the strongest edge on them. Returns whether one of these paths
 * leaves the function. */
static bool escapes(const struct byi_func *f, const struct byi_uses *uses,
                    byi_id from, byi_id without, bool *is_on_path,
                    uint8_t *kind)
{
    bool leaves = false;
    memset(is_on_path, 0, f->nodes.n * sizeof *is_on_path);
    is_on_path[from] = true;
    *kind = 0;
    for (byi_id id = from; id < f->nodes.n; id++) {
        if (!is_on_path[id])
            continue;
        const uint32_t first = uses->first[id], end = uses->first[id + 1];
        leaves = leaves || id == f->result || first == end;
        for (uint32_t u = first; u < end; u++) {
            const byi_id reader = uses->at[u];
            const uint8_t edge = edge_kind(NULL, id, reader);
            *kind = edge > *kind ? edge : *kind;
            is_on_path[reader] = is_on_path[reader] || reader != without;
        }
    }
    return leaves;
}

static void check_graph(uint64_t seed)
{
    struct byi_module *m = byi_module_new();
    make_graph(m, seed);
    const struct byi_func *f = m->funcs.at[0];
    const struct byi_uses uses = byi_uses_of(f, m->arena);
    const struct byi_dominator *tree =
        byi_post_dominators(f, &uses, edge_kind, NULL, OUTSIDE, m->arena);
    bool on[MAX_NODES];
    uint8_t kind;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const byi_id parent = tree[id].parent;
        const bool leaves =
            id == f->result || uses.first[id] == uses.first[id + 1];
        if (leaves)
            assert_int_equal(tree[id].kind, OUTSIDE);
        if (parent < f->nodes.n) {
            assert_false(escapes(f, &uses, id, parent, on, &kind));
            assert_int_equal(tree[id].kind, kind);
        }
        escapes(f, &uses, id, parent, on, &kind);
        bool between[MAX_NODES];
        memcpy(between, on, sizeof on);
        for (byi_id p = id + 1; p < f->nodes.n; p++)
            if (between[p])
                assert_true(leaves || escapes(f, &uses, id, p, on, &kind));
    }
    byi_module_free(&m);
}

static void parents_match_the_definition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_GRAPHS; seed++)
        check_graph(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parents_match_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
