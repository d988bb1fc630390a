/* SPDX-License-Identifier: Apache-2.0 */
/* regions_fuzz_test.c: compares MergeRegions with brute force on random graphs
 * of native nodes and one to three backends. Regions must not depend on each
 * other, and no two of one backend could still be merged. A single backend has
 * the least number of regions, and a second run changes nothing.
 * BYOC_FUZZ_GRAPHS sets how many graphs (default 20000), BYOC_FUZZ_SEED where
 * to start.
 */
#include "partition/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/share.h"
#include "tests/xorshift.h"

/* The most nodes of a graph: SMALL for the transitive closure, FEW for the
 * search by brute force, LARGE for a search from every region. */
enum { SMALL = 24, FEW = 14, LARGE = 1500 };

/* A graph of n nodes, whose operands are at most `far` nodes away; about
 * `native` of five nodes are native. */
static struct byi_module *random_graph(uint32_t n_backends, uint32_t n,
                                       uint32_t far, uint32_t native)
{
    static const char *const names[] = {"a", "b", "c"};
    struct byi_module *m = byi_module_new();
    const uint32_t main_func = byi_func_new(m, "main");
    struct byi_func *f = m->funcs.at[main_func];
    const int64_t dims[] = {2};
    byi_id id =
        byi_add_param(m, f, "x", byi_type_tensor(m->arena, BYOC_F32, 1, dims));
    for (uint32_t i = 0, backend; i < n_backends; i++)
        assert_int_equal(byi_backend_add(m, names[i], &backend, NULL), BYOC_OK);
    while (f->nodes.n < n) {
        /* near operands make chains, far ones make branches */
        const uint32_t have = f->nodes.n;
        const uint32_t reach = 1 + draw(have < far ? have : far);
        const byi_id args[] = {have - 1 - draw(reach), have - 1 - draw(reach)};
        assert_int_equal(byi_add_op(m, f, BYI_OP_ADD, args, 2,
                                    &(const struct byi_attrs){0}, NULL, &id,
                                    NULL),
                         BYOC_OK);
        if (draw(5) >= native)
            byi_node_mark(&f->nodes.at[id], 1 + draw(n_backends), 0);
    }
    f->result = id;
    return m;
}

static void merge(struct byi_module *m)
{
    struct byi_pass_context ctx = {0};
    struct byi_arena *scratch = byi_arena_new();
    assert_int_equal(byi_pass_merge_regions.run_func(m, 0, &ctx, scratch, NULL),
                     BYOC_OK);
    byi_arena_free(&scratch);
}

/* Check that every offloaded node is in a region of its backend, no other node
 * is in one, and numbers have no gaps. Returns the number of regions, and the
 * backend of each. */
static uint32_t read_regions(const struct byi_func *f, uint32_t *backend)
{
    uint32_t n = 0;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        assert_int_equal(node->region != 0, node->backend != 0);
        assert_true(node->region <= n + 1);
        if (node->region == n + 1)
            backend[++n] = node->backend;
        assert_true(!node->region || backend[node->region] == node->backend);
    }
    return n;
}

static void check_second_run(struct byi_module *m, uint64_t seed)
{
    const struct byi_func *f = m->funcs.at[0];
    uint32_t *region = calloc(f->nodes.n, sizeof *region);
    for (byi_id id = 0; id < f->nodes.n; id++)
        region[id] = f->nodes.at[id].region;
    merge(m);
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (region[id] != f->nodes.at[id].region)
            fail_msg("seed %llu: the second run moved node %u",
                     (unsigned long long)seed, id);
    free(region);
}

/* --- small graphs: Warshall ---------------------------------------------- */

/* The condensed graph's transitive closure: vertices are regions, then single
 * native nodes. */
struct closure {
    uint32_t n;
    uint32_t vertex[SMALL];
    uint32_t reach[SMALL]; /* for each vertex: those that a path leads to */
};

/* Compute the closure of f with these regions, region b joined to region a;
 * b = UINT32_MAX joins none. */
static void close_over(const struct byi_func *f, const uint32_t *region,
                       uint32_t a, uint32_t b, struct closure *c)
{
    uint32_t vertex_of_region[SMALL + 1];
    memset(c, 0, sizeof *c);
    memset(vertex_of_region, 0xff, sizeof vertex_of_region);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const uint32_t merged = region[id] == b ? a : region[id];
        if (!merged)
            c->vertex[id] = c->n++;
        else if (vertex_of_region[merged] == UINT32_MAX)
            c->vertex[id] = vertex_of_region[merged] = c->n++;
        else
            c->vertex[id] = vertex_of_region[merged];
    }
    for (byi_id id = 0; id < f->nodes.n; id++)
        for (uint32_t k = 0; k < f->nodes.at[id].n_args; k++) {
            const uint32_t from = c->vertex[f->nodes.at[id].args[k]];
            if (from != c->vertex[id])
                c->reach[from] |= 1u << c->vertex[id];
        }
    for (uint32_t k = 0; k < c->n; k++)
        for (uint32_t i = 0; i < c->n; i++)
            if (c->reach[i] >> k & 1)
                c->reach[i] |= c->reach[k];
}

static bool is_cyclic(const struct closure *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->reach[i] >> i & 1)
            return true;
    return false;
}

/* --- one backend: no partition into fewer regions ------------------------- */

/* A search by brute force for a partition into fewer regions. */
struct search {
    const struct byi_func *f;
    byi_id nodes[SMALL];     /* the offloaded ones */
    uint32_t n, max_regions; /* their number; at most so many regions */
    uint32_t region[SMALL];
};

/* Put node `at` and all later ones into regions, in every possible way; `used`
 * regions have nodes. Returns whether one way makes no cycle. */
static bool find_acyclic(struct search *s, uint32_t at, uint32_t used)
{
    struct closure c;
    if (at == s->n) {
        close_over(s->f, s->region, 0, UINT32_MAX, &c);
        return !is_cyclic(&c);
    }
    for (uint32_t r = 1; r <= used + 1 && r <= s->max_regions; r++) {
        s->region[s->nodes[at]] = r;
        if (find_acyclic(s, at + 1, r > used ? r : used))
            return true;
    }
    return false;
}

static void check_minimum(const struct byi_func *f, uint32_t n, uint64_t seed)
{
    struct search s = {.f = f, .max_regions = n - 1};
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].backend)
            s.nodes[s.n++] = id;
    if (n > 1 && s.n <= 8 && find_acyclic(&s, 0, 0))
        fail_msg("seed %llu: found %u regions, expected %u, which suffice",
                 (unsigned long long)seed, n, n - 1);
}

static void check_small(struct byi_module *m, uint32_t n_backends,
                        uint64_t seed)
{
    const struct byi_func *f = m->funcs.at[0];
    uint32_t backend[SMALL + 1], region[SMALL];
    const uint32_t n = read_regions(f, backend);
    struct closure c;
    for (byi_id id = 0; id < f->nodes.n; id++)
        region[id] = f->nodes.at[id].region;
    close_over(f, region, 0, UINT32_MAX, &c);
    if (is_cyclic(&c))
        fail_msg("seed %llu: regions depend on each other",
                 (unsigned long long)seed);
    for (uint32_t a = 1; a <= n; a++)
        for (uint32_t b = a + 1; b <= n; b++) {
            if (backend[a] != backend[b])
                continue;
            close_over(f, region, a, b, &c);
            if (!is_cyclic(&c))
                fail_msg("seed %llu: regions %u and %u could be one",
                         (unsigned long long)seed, a, b);
        }
    if (n_backends == 1 && f->nodes.n <= FEW)
        check_minimum(f, n, seed);
}

static void merging_is_exact(void **state)
{
    (void)state;
    const uint64_t n = number_from("BYOC_FUZZ_GRAPHS", 20000);
    const uint64_t first = number_from("BYOC_FUZZ_SEED", 1);
    for (uint64_t seed = first; seed < first + n; seed++) {
        rng = seed * 0x9e3779b97f4a7c15u;
        /* half of the graphs with two backends, and half with at most 14 nodes
         */
        const uint32_t n_backends = seed % 4 < 2 ? 2 : 1 + 2 * (seed % 4 == 3);
        const uint32_t max_nodes = seed % 8 < 4 ? FEW : SMALL;
        struct byi_module *m = random_graph(n_backends, 4 + draw(max_nodes - 3),
                                            max_nodes, draw(5));
        merge(m);
        check_small(m, n_backends, seed);
        check_second_run(m, seed);
        byi_module_free(&m);
    }
    print_message("%llu graphs: no dependent regions, no missed merge\n",
                  (unsigned long long)n);
}

/* --- large graphs: a search from every region ---------------------------- */

/* A large graph as vertices, each a region or a native node. */
struct large {
    const struct byi_func *f;
    struct byi_uses uses;
    uint32_t n; /* vertices: regions 1..n_regions, then native nodes */
    uint32_t n_regions;
    uint32_t *vertex;
    uint32_t *first; /* members of vertex u: at[first[u]..first[u + 1]) */
    byi_id *at;
    uint32_t *stack, *seen;
};

static void list_vertices(struct large *l, struct byi_arena *arena)
{
    const uint32_t n = l->f->nodes.n;
    l->vertex = byi_arena_calloc(arena, n, sizeof *l->vertex);
    l->n = l->n_regions + 1;
    for (byi_id id = 0; id < n; id++)
        l->vertex[id] =
            l->f->nodes.at[id].region ? l->f->nodes.at[id].region : l->n++;
    l->first = byi_arena_calloc(arena, l->n + 1, sizeof *l->first);
    l->at = byi_arena_calloc(arena, n, sizeof *l->at);
    l->stack = byi_arena_calloc(arena, l->n, sizeof *l->stack);
    l->seen = byi_arena_calloc(arena, l->n, sizeof *l->seen);
    for (byi_id id = 0; id < n; id++)
        l->first[l->vertex[id] + 1]++;
    for (uint32_t u = 1; u <= l->n; u++)
        l->first[u] += l->first[u - 1];
    uint32_t *next = byi_arena_copy(arena, l->first, l->n * sizeof *next);
    for (byi_id id = 0; id < n; id++)
        l->at[next[l->vertex[id]]++] = id;
}

/* Push the vertices that read vertex `u`, except those seen before. Returns the
 * new depth of the stack. */
static uint32_t push_readers(struct large *l, uint32_t u, uint32_t mark,
                             uint32_t depth)
{
    for (uint32_t i = l->first[u]; i < l->first[u + 1]; i++)
        for (uint32_t k = l->uses.first[l->at[i]];
             k < l->uses.first[l->at[i] + 1]; k++) {
            const uint32_t reader = l->vertex[l->uses.at[k]];
            if (reader == u || l->seen[reader] == mark)
                continue;
            l->seen[reader] = mark;
            l->stack[depth++] = reader;
        }
    return depth;
}

/* Set seen[u] to `mark` for each vertex u to which a path leads from region
 * `from` through another vertex. Returns false if a path returns to the region.
 */
static bool search_around(struct large *l, uint32_t from, uint32_t mark)
{
    const uint32_t direct = push_readers(l, from, mark, 0);
    uint32_t *readers = calloc(direct + 1, sizeof *readers);
    memcpy(readers, l->stack, direct * sizeof *readers);
    for (uint32_t i = 0; i < direct; i++)
        l->seen[readers[i]] = 0;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < direct; i++) /* a reader may read another one */
        depth = push_readers(l, readers[i], mark, depth);
    free(readers);
    while (depth)
        depth = push_readers(l, l->stack[depth - 1], mark, depth - 1);
    return l->seen[from] != mark;
}

static void check_large(const struct byi_module *m, uint64_t seed)
{
    struct byi_arena *arena = byi_arena_new();
    struct large l = {.f = m->funcs.at[0]};
    uint32_t *backend = byi_arena_calloc(arena, LARGE + 2, sizeof *backend);
    l.n_regions = read_regions(l.f, backend);
    l.uses = byi_uses_of(l.f, arena);
    list_vertices(&l, arena);
    const size_t n = l.n_regions + 1;
    uint8_t *around = byi_arena_calloc(arena, n * n, 1);
    for (uint32_t a = 1; a <= l.n_regions; a++) {
        if (!search_around(&l, a, a))
            fail_msg("seed %llu: region %u depends on itself",
                     (unsigned long long)seed, a);
        for (uint32_t b = 1; b <= l.n_regions; b++)
            around[a * n + b] = l.seen[b] == a;
    }
    for (uint32_t a = 1; a <= l.n_regions; a++)
        for (uint32_t b = a + 1; b <= l.n_regions; b++)
            if (backend[a] == backend[b] && !around[a * n + b] &&
                !around[b * n + a] && l.n_regions <= BYI_JOIN_WINDOW)
                fail_msg("seed %llu: regions %u and %u could be one",
                         (unsigned long long)seed, a, b);
    byi_arena_free(&arena);
}

/* Near operands make hundreds of regions, far ones few. */
static void merging_is_exact_in_large_graphs(void **state)
{
    (void)state;
    const uint64_t n = 20 + number_from("BYOC_FUZZ_GRAPHS", 20000) / 500;
    const uint64_t first = number_from("BYOC_FUZZ_SEED", 1);
    for (uint64_t seed = first; seed < first + n; seed++) {
        rng = seed * 0x9e3779b97f4a7c15u;
        const uint32_t far = 1u << draw(10);
        struct byi_module *m =
            random_graph(1 + draw(3), LARGE - draw(LARGE - 30), far, draw(4));
        merge(m);
        check_large(m, seed);
        check_second_run(m, seed);
        byi_module_free(&m);
    }
}

/* How many regions and native nodes can be placed one after the other: all of
 * them, `n_vertices`, where none depend on each other. */
static uint32_t count_placed(const struct byi_func *f, uint32_t *n_vertices)
{
    const uint32_t n = f->nodes.n;
    struct byi_arena *arena = byi_arena_new();
    const struct byi_uses uses = byi_uses_of(f, arena);
    uint32_t *waiting = byi_arena_calloc(arena, 2 * n + 1, sizeof *waiting);
    byi_id *ready = byi_arena_calloc(arena, n, sizeof *ready);
    uint32_t *vertex = byi_arena_calloc(arena, n, sizeof *vertex);
    bool *counted = byi_arena_calloc(arena, 2 * n + 1, sizeof *counted);
    uint32_t placed = 0, n_ready = 0;
    *n_vertices = 0;
    for (byi_id id = 0; id < n; id++) {
        const uint32_t region = f->nodes.at[id].region;
        vertex[id] = region ? n + region : id;
        *n_vertices += !counted[vertex[id]];
        counted[vertex[id]] = true;
        for (uint32_t a = 0; a < f->nodes.at[id].n_args; a++)
            waiting[vertex[id]] +=
                vertex[f->nodes.at[id].args[a]] != vertex[id];
    }
    for (uint32_t u = 0; u <= 2 * n; u++)
        if (counted[u] && !waiting[u])
            ready[n_ready++] = u;
    byi_id *first = byi_arena_calloc(arena, 2 * n + 2, sizeof *first);
    byi_id *next = byi_arena_calloc(arena, n, sizeof *next);
    for (byi_id id = n; id-- > 0;) { /* members as lists */
        next[id] = first[vertex[id]];
        first[vertex[id]] = id + 1;
    }
    for (; placed < n_ready; placed++)
        for (byi_id id = first[ready[placed]]; id; id = next[id - 1])
            for (uint32_t u = uses.first[id - 1]; u < uses.first[id]; u++) {
                const uint32_t reader = vertex[uses.at[u]];
                if (reader != vertex[id - 1] && --waiting[reader] == 0)
                    ready[n_ready++] = reader;
            }
    byi_arena_free(&arena);
    return placed;
}

/* Graphs with more regions than MergeRegions considers together
 * (BYI_JOIN_WINDOW). */
static void huge_graphs_stay_acyclic(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        rng = (i + 1) * 0x9e3779b97f4a7c15u;
        struct byi_module *m = random_graph(2, 20000, 1u << i % 10, draw(5));
        uint32_t n_vertices;
        merge(m);
        const uint32_t placed = count_placed(m->funcs.at[0], &n_vertices);
        assert_int_equal(placed, n_vertices);
        byi_module_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_is_exact),
        cmocka_unit_test(merging_is_exact_in_large_graphs),
        cmocka_unit_test(huge_graphs_stay_acyclic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
