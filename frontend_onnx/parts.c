/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c: cuts a graph into parts (parts.h) by Kahn's topological sort of
 * nodes and regions together. A region becomes a part once all outside nodes
 * that it reads are in parts. If the remaining regions wait for each other, one
 * of them is split. Those of its nodes that wait for nothing become a part, and
 * its other nodes a later one. */
#include "frontend_onnx/parts.h"

#include <assert.h>

/* The division of the graph's n nodes into parts, as far as it is done. */
struct part_cutter {
    struct byi_arena *arena;
    uint32_t n, n_regions;
    const uint32_t *region;
    const struct byi_node_edge *edges; /* sorted by from */
    uint32_t *first; /* for each node: index of its first edge */
    /* for each node: edges from unassigned nodes outside its region */
    uint32_t *waits;
    uint32_t *regions_wait;   /* for each region: the sum of waits */
    uint32_t *n_unassigned;   /* for each region: number of unassigned nodes */
    const uint32_t **members; /* for each region: its nodes, ascending */
    uint32_t *n_members;
    bool *assigned;              /* for each node: whether it is in a part */
    uint32_t *queue, head, tail; /* of nodes, and of regions as n + region */
    struct byi_model_part *parts;
    uint32_t n_parts, n_assigned;
    /* scratch of split_region, which may be called n times: whether each node
     * is blocked; the nodes of the best and of the current candidate */
    bool *blocked;
    uint32_t *best, *candidate;
};

static bool is_inner(const struct part_cutter *c, const struct byi_node_edge *e)
{
    return c->region[e->from] && c->region[e->from] == c->region[e->to];
}

static void sort_edges(struct part_cutter *c, uint32_t n_edges,
                       const struct byi_node_edge *edges)
{
    struct byi_node_edge *sorted =
        byi_arena_calloc(c->arena, n_edges, sizeof *sorted);
    uint32_t *next = byi_arena_calloc(c->arena, c->n + 1, sizeof *next);
    c->first = byi_arena_calloc(c->arena, c->n + 1, sizeof *c->first);
    for (uint32_t i = 0; i < n_edges; i++)
        c->first[edges[i].from + 1]++;
    for (uint32_t i = 0; i < c->n; i++)
        next[i + 1] = c->first[i + 1] += c->first[i];
    for (uint32_t i = 0; i < n_edges; i++)
        sorted[next[edges[i].from]++] = edges[i];
    c->edges = sorted;
}

static void list_members(struct part_cutter *c)
{
    uint32_t **at = byi_arena_calloc(c->arena, c->n_regions + 1, sizeof *at);
    for (uint32_t i = 0; i < c->n; i++)
        c->n_members[c->region[i]]++;
    for (uint32_t r = 0; r <= c->n_regions; r++) {
        c->members[r] = at[r] =
            byi_arena_calloc(c->arena, c->n_members[r], sizeof **at);
        c->n_unassigned[r] = c->n_members[r];
    }
    for (uint32_t i = 0; i < c->n; i++)
        *at[c->region[i]]++ = i;
}

/* Queue the node, or its region, if it waits for nothing more. */
static void queue_if_ready(struct part_cutter *c, uint32_t node)
{
    const uint32_t r = c->region[node];
    if (!r && !c->waits[node])
        c->queue[c->tail++] = node;
    else if (r && !c->regions_wait[r])
        c->queue[c->tail++] = c->n + r;
}

static void count_waits(struct part_cutter *c)
{
    for (uint32_t i = 0; i < c->first[c->n]; i++) {
        const struct byi_node_edge *e = &c->edges[i];
        c->waits[e->to] += !is_inner(c, e);
        c->regions_wait[c->region[e->to]] += !is_inner(c, e);
    }
    for (uint32_t i = 0; i < c->n; i++) {
        const uint32_t r = c->region[i];
        if (!r || c->members[r][0] == i)
            queue_if_ready(c, i);
    }
}

static void add_part(struct part_cutter *c, uint32_t region, uint32_t n,
                     const uint32_t *nodes)
{
    c->parts[c->n_parts++] =
        (struct byi_model_part){.region = region, .n = n, .nodes = nodes};
    c->n_unassigned[region] -= n;
    c->n_assigned += n;
    for (uint32_t i = 0; i < n; i++)
        c->assigned[nodes[i]] = true;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = c->first[nodes[i]]; k < c->first[nodes[i] + 1]; k++) {
            const struct byi_node_edge *e = &c->edges[k];
            if (is_inner(c, e))
                continue;
            c->waits[e->to]--;
            c->regions_wait[c->region[e->to]]--;
            queue_if_ready(c, e->to);
        }
}

/* Make a part of the unassigned nodes of `region`. */
static void take_region(struct part_cutter *c, uint32_t region)
{
    uint32_t *nodes =
        byi_arena_calloc(c->arena, c->n_unassigned[region], sizeof *nodes);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_members[region]; i++)
        if (!c->assigned[c->members[region][i]])
            nodes[n++] = c->members[region][i];
    if (n)
        add_part(c, region, n, nodes);
}

/* List the unassigned nodes of a region that are not blocked. A node is blocked
 * if it waits for a node outside the region, or depends on a blocked node of
 * the region. Returns the number of nodes listed. */
static uint32_t list_free_nodes(const struct part_cutter *c, uint32_t region,
                                uint32_t *nodes)
{
    bool *blocked = c->blocked;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_members[region]; i++)
        blocked[c->members[region][i]] = false;
    for (uint32_t i = 0; i < c->n_members[region]; i++) {
        const uint32_t node = c->members[region][i];
        if (c->assigned[node])
            continue;
        blocked[node] = blocked[node] || c->waits[node];
        for (uint32_t k = c->first[node];
             blocked[node] && k < c->first[node + 1]; k++)
            if (is_inner(c, &c->edges[k]))
                blocked[c->edges[k].to] = true;
        if (!blocked[node])
            nodes[n++] = node;
    }
    return n;
}

/* All remaining regions wait for each other: make a part of the largest set of
 * free nodes of one region. There is one, since the first remaining node is
 * always free. */
static void split_region(struct part_cutter *c)
{
    uint32_t n_best = 0, region = 0;
    for (uint32_t r = 1; r <= c->n_regions; r++) {
        if (c->n_unassigned[r] <= n_best)
            continue;
        const uint32_t n = list_free_nodes(c, r, c->candidate);
        if (n <= n_best)
            continue;
        uint32_t *nodes = c->candidate;
        c->candidate = c->best;
        c->best = nodes;
        n_best = n;
        region = r;
    }
    assert(n_best);
    add_part(c, region, n_best,
             byi_arena_copy(c->arena, c->best, n_best * sizeof *c->best));
}

const struct byi_model_part *byi_cut_model(struct byi_arena *arena, uint32_t n,
                                           const uint32_t *region,
                                           uint32_t n_regions, uint32_t n_edges,
                                           const struct byi_node_edge *edges,
                                           uint32_t *n_parts)
{
    const size_t n_lists = (size_t)n_regions + 1;
    struct part_cutter c = {
        .arena = arena,
        .n = n,
        .n_regions = n_regions,
        .region = region,
        .waits = byi_arena_calloc(arena, n, sizeof *c.waits),
        .regions_wait =
            byi_arena_calloc(arena, n_lists, sizeof *c.regions_wait),
        .n_unassigned =
            byi_arena_calloc(arena, n_lists, sizeof *c.n_unassigned),
        .members = byi_arena_calloc(arena, n_lists, sizeof *c.members),
        .n_members = byi_arena_calloc(arena, n_lists, sizeof *c.n_members),
        .assigned = byi_arena_calloc(arena, n, sizeof *c.assigned),
        /* room to queue each node at the start and once for each edge */
        .queue = byi_arena_calloc(arena, (size_t)n + n_edges, sizeof *c.queue),
        .parts = byi_arena_calloc(arena, n, sizeof *c.parts),
        .blocked = byi_arena_calloc(arena, n, sizeof *c.blocked),
        .best = byi_arena_calloc(arena, n, sizeof *c.best),
        .candidate = byi_arena_calloc(arena, n, sizeof *c.candidate),
    };
    uint32_t *nodes = byi_arena_calloc(arena, n, sizeof *nodes);
    sort_edges(&c, n_edges, edges);
    list_members(&c);
    count_waits(&c);
    while (c.n_assigned < n) {
        if (c.head == c.tail)
            split_region(&c);
        while (c.head < c.tail) {
            const uint32_t next = c.queue[c.head++];
            if (next >= n)
                take_region(&c, next - n);
            else {
                nodes[next] = next;
                add_part(&c, 0, 1, &nodes[next]);
            }
        }
    }
    *n_parts = c.n_parts;
    return c.parts;
}
