/* regions_fuzz_test.c: MergeRegions against brute force on random graphs:
 * regions must not depend on each other, and no two of one vendor could have
 * been merged as well. BYOC_FUZZ_GRAPHS sets how many graphs (default 20000),
 * BYOC_FUZZ_SEED where to start.
 */
#include "partition/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_NODES = 24 };

static uint64_t rng;

static uint32_t draw(uint32_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)(rng >> 33) % n;
}

/* n operators; an operand is at most `far` nodes away. */
static struct byi_module *make_graph(uint32_t n, uint32_t far,
                                     uint32_t n_vendors)
{
    struct byi_module *m = byi_module_new();
    const uint32_t main_func = byi_func_new(m, "main");
    struct byi_func *f = m->funcs.at[main_func];
    const int64_t dims[] = {2};
    byi_id x =
        byi_add_param(m, f, "x", byi_type_tensor(m->arena, BYOC_F32, 1, dims));
    byi_target(m, "a");
    if (n_vendors > 1)
        byi_target(m, "b");
    const uint32_t host = 1 + draw(4);
    byi_id id = x;
    for (uint32_t i = 0; i < n; i++) {
        /* near operands make chains, far ones make branches */
        uint32_t have = f->nodes.n, reach = 1 + draw(have < far ? have : far);
        const byi_id args[] = {have - 1 - draw(reach), have - 1 - draw(reach)};
        assert_int_equal(byi_add_op(m, f, BYI_OP_ADD, args, 2,
                                    &(const struct byi_attrs){0}, NULL, &id,
                                    NULL),
                         BYOC_OK);
        if (draw(5) >= host)
            f->nodes.at[id].target = 1 + draw(n_vendors);
    }
    f->result = id;
    return m;
}

static struct byi_module *random_graph(uint32_t n_vendors)
{
    return make_graph(3 + draw(MAX_NODES - 4), MAX_NODES, n_vendors);
}

/* The condensed graph's transitive closure: units are regions, then single
 * host nodes. skip joins region b to region a. */
struct closure {
    uint32_t n;
    uint32_t unit[MAX_NODES];
    bool reach[MAX_NODES][MAX_NODES];
};

static void close_over(const struct byi_func *f, uint32_t a, uint32_t b,
                       struct closure *c)
{
    uint32_t unit_of_region[MAX_NODES + 1];
    memset(c, 0, sizeof *c);
    memset(unit_of_region, 0xff, sizeof unit_of_region);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        uint32_t region = f->nodes.at[id].region;
        region = region == b ? a : region;
        if (!region)
            c->unit[id] = c->n++;
        else if (unit_of_region[region] == UINT32_MAX)
            c->unit[id] = unit_of_region[region] = c->n++;
        else
            c->unit[id] = unit_of_region[region];
    }
    for (byi_id id = 0; id < f->nodes.n; id++)
        for (uint32_t k = 0; k < f->nodes.at[id].n_args; k++)
            if (c->unit[f->nodes.at[id].args[k]] != c->unit[id])
                c->reach[c->unit[f->nodes.at[id].args[k]]][c->unit[id]] = true;
    for (uint32_t k = 0; k < c->n; k++)
        for (uint32_t i = 0; i < c->n; i++)
            for (uint32_t j = 0; j < c->n; j++)
                c->reach[i][j] |= c->reach[i][k] && c->reach[k][j];
}

static bool is_cyclic(const struct closure *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->reach[i][i])
            return true;
    return false;
}

static void check_graph(const struct byi_module *m, uint64_t seed)
{
    const struct byi_func *f = m->funcs.at[0];
    uint32_t target[MAX_NODES + 1] = {0}, n = 0;
    struct closure c;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        assert_int_equal(node->region != 0, node->target != 0);
        if (!node->region)
            continue;
        assert_true(!target[node->region] ||
                    target[node->region] == node->target);
        target[node->region] = node->target;
        n = node->region > n ? node->region : n;
    }
    close_over(f, 0, UINT32_MAX, &c);
    if (is_cyclic(&c))
        fail_msg("seed %llu: regions depend on each other",
                 (unsigned long long)seed);
    for (uint32_t a = 1; a <= n; a++)
        for (uint32_t b = a + 1; b <= n; b++) {
            if (target[a] != target[b])
                continue;
            close_over(f, a, b, &c);
            if (!is_cyclic(&c))
                fail_msg("seed %llu: regions %u and %u could be one",
                         (unsigned long long)seed, a, b);
        }
}

static uint64_t env_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : fallback;
}

static void merging_is_exact(void **state)
{
    (void)state;
    uint64_t n = env_number("BYOC_FUZZ_GRAPHS", 20000);
    uint64_t first = env_number("BYOC_FUZZ_SEED", 1);
    struct byi_pass_context ctx = {0};
    for (uint64_t seed = first; seed < first + n; seed++) {
        rng = seed * 0x9e3779b97f4a7c15u;
        struct byi_module *m = random_graph(1 + (uint32_t)(seed & 1));
        struct byi_arena *scratch = byi_arena_new();
        assert_int_equal(
            byi_pass_merge_regions.run_func(m, 0, &ctx, scratch, NULL),
            BYOC_OK);
        check_graph(m, seed);
        byi_arena_free(&scratch);
        byi_module_free(&m);
    }
    print_message("%llu graphs, no cyclic result, no missed merge\n",
                  (unsigned long long)n);
}

/* How many regions and host nodes can be placed one after the other: all of
 * them, `n_units`, where none depend on each other. */
static uint32_t count_placed(const struct byi_func *f, uint32_t *n_units)
{
    const uint32_t n = f->nodes.n;
    struct byi_arena *arena = byi_arena_new();
    const struct byi_uses uses = byi_uses_of(f, arena);
    uint32_t *waiting = byi_arena_calloc(arena, 2 * n + 1, sizeof *waiting);
    byi_id *ready = byi_arena_calloc(arena, n, sizeof *ready);
    uint32_t *unit = byi_arena_calloc(arena, n, sizeof *unit);
    bool *counted = byi_arena_calloc(arena, 2 * n + 1, sizeof *counted);
    uint32_t placed = 0, n_ready = 0;
    *n_units = 0;
    for (byi_id id = 0; id < n; id++) {
        const uint32_t region = f->nodes.at[id].region;
        unit[id] = region ? n + region : id;
        *n_units += !counted[unit[id]];
        counted[unit[id]] = true;
        for (uint32_t a = 0; a < f->nodes.at[id].n_args; a++)
            waiting[unit[id]] += unit[f->nodes.at[id].args[a]] != unit[id];
    }
    for (uint32_t u = 0; u <= 2 * n; u++)
        if (counted[u] && !waiting[u])
            ready[n_ready++] = u;
    byi_id *first = byi_arena_calloc(arena, 2 * n + 2, sizeof *first);
    byi_id *next = byi_arena_calloc(arena, n, sizeof *next);
    for (byi_id id = n; id-- > 0;) { /* members as lists */
        next[id] = first[unit[id]];
        first[unit[id]] = id + 1;
    }
    for (; placed < n_ready; placed++)
        for (byi_id id = first[ready[placed]]; id; id = next[id - 1])
            for (uint32_t u = uses.first[id - 1]; u < uses.first[id]; u++) {
                const uint32_t reader = unit[uses.at[u]];
                if (reader != unit[id - 1] && --waiting[reader] == 0)
                    ready[n_ready++] = reader;
            }
    byi_arena_free(&arena);
    return placed;
}

/* More regions than are looked at together. */
static void large_graphs_stay_acyclic(void **state)
{
    (void)state;
    struct byi_pass_context ctx = {0};
    for (uint32_t i = 0; i < 40; i++) {
        rng = (i + 1) * 0x9e3779b97f4a7c15u;
        struct byi_module *m = make_graph(20000, 1u << i % 10, 2);
        struct byi_arena *scratch = byi_arena_new();
        uint32_t n_units;
        assert_int_equal(
            byi_pass_merge_regions.run_func(m, 0, &ctx, scratch, NULL),
            BYOC_OK);
        const uint32_t placed = count_placed(m->funcs.at[0], &n_units);
        assert_int_equal(placed, n_units);
        byi_arena_free(&scratch);
        byi_module_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_is_exact),
        cmocka_unit_test(large_graphs_stay_acyclic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
