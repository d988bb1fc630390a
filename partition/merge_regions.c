/* SPDX-License-Identifier: Apache-2.0 */
/* MergeRegions: merge the nodes of each backend into as few regions as possible
 * without cyclic dependences between regions.
 * requires: AnnotateTarget                 breaks: nothing
 *
 *   %1 = %0(%x) @[dnnl]                    %1 = %0(%x) @[dnnl.1]
 *   %2 = exp(%1)                   ==>     %2 = exp(%1)
 *   %4 = %3(%1) @[dnnl]                    %4 = %3(%1) @[dnnl.1]
 *   %6 = %5(%2) @[dnnl]                    %6 = %5(%2) @[dnnl.2]
 *
 * Every node of a backend gets the least level that two rules allow along each
 * path. A path that leaves the backend on level L and returns to it through
 * native nodes returns on level L + 1 or a higher one. A path from backend a to
 * backend b stays on its level if a < b, and ascends at least one if a > b. The
 * nodes of one backend on one level form a region. Paths never descend to a
 * lower level, and within a level they cross between backends in one fixed
 * direction. So no two regions depend on each other. With one backend, two
 * levels can never be merged, since a path leads from the lower one through a
 * native node to the higher one. With several, the fixed direction can separate
 * regions unnecessarily: join_regions.c merges such pairs while the condensed
 * graph stays acyclic.
 */
#include "partition.h"

/* The state of the pass in one function. Backends are numbered from 1. */
struct regions {
    struct byi_func *f;
    struct byi_arena *scratch;
    uint32_t n_backends;
    /* for each level and backend: the number of its region, or 0 */
    BYI_VEC(uint32_t) numbers;
    uint32_t n;        /* regions, numbered from 1 */
    uint32_t *backend; /* of each region; set if there are several backends */
};

/* Returns the number of the region of a level and backend, a new one at first.
 */
static uint32_t region_at(struct regions *r, uint32_t level, uint32_t backend)
{
    const size_t at = (size_t)level * r->n_backends + backend - 1;
    while (r->numbers.n <= at)
        BYI_PUSH(&r->numbers, 0);
    if (!r->numbers.at[at])
        r->numbers.at[at] = ++r->n;
    return r->numbers.at[at];
}

/* Compute the level of node `id` and the least levels that it requires of its
 * readers, from the levels that its operands require. */
static void find_level(struct regions *r, byi_id id, uint32_t *required)
{
    struct byi_node *node = &r->f->nodes.at[id];
    const uint32_t n = r->n_backends, backend = node->backend;
    uint32_t *levels = &required[(size_t)id * n];
    for (uint32_t a = 0; a < node->n_args; a++) {
        const uint32_t *arg = &required[(size_t)node->args[a] * n];
        for (uint32_t t = 0; t < n; t++)
            levels[t] = arg[t] > levels[t] ? arg[t] : levels[t];
    }
    if (!backend) {
        for (uint32_t t = 0; t < n; t++)
            levels[t] += levels[t] & 1;
        node->region = 0;
        return;
    }
    const uint32_t level = levels[backend - 1] / 2;
    for (uint32_t t = 0; t < n; t++) {
        const uint32_t least = 2 * (level + (t + 1 < backend));
        levels[t] = least > levels[t] ? least : levels[t] & ~(uint32_t)1;
    }
    levels[backend - 1]++;
    node->region = region_at(r, level, backend);
}

/* Assign a level to every node in one pass over the nodes, the main cost for a
 * large graph. required[id * n_backends + t] is twice the least level of a node
 * of backend t that reads node id, plus one if id is a node of t: after a
 * foreign reader, the nodes of t are one level higher. */
static void assign_levels(struct regions *r)
{
    enum { PREFETCH = 32 };
    uint32_t *required = byi_arena_calloc(
        r->scratch, (size_t)r->f->nodes.n * r->n_backends, sizeof *required);
    for (byi_id id = 0; id < r->f->nodes.n; id++) {
        /* prefetch across the end of a page, where the hardware stops */
        if (id + PREFETCH < r->f->nodes.n)
            __builtin_prefetch(&r->f->nodes.at[id + PREFETCH], 1);
        find_level(r, id, required);
    }
}

/* Number the regions by (level, backend), so that every path ascends. */
static void order_regions(struct regions *r)
{
    uint32_t *new_number =
        byi_arena_calloc(r->scratch, r->n + 1, sizeof *new_number);
    uint32_t n = 0;
    r->backend = byi_arena_calloc(r->scratch, r->n + 1, sizeof *r->backend);
    for (uint32_t i = 0; i < r->numbers.n; i++) {
        if (!r->numbers.at[i])
            continue;
        new_number[r->numbers.at[i]] = ++n;
        r->backend[n] = i % r->n_backends + 1;
    }
    for (byi_id id = 0; id < r->f->nodes.n; id++)
        r->f->nodes.at[id].region = new_number[r->f->nodes.at[id].region];
}

/* --- topological order --------------------------------------------------- */

/* Kahn's topological sort of the condensed graph. Vertices are regions 1..n,
 * then nodes, of which only native nodes are used. */
struct sorter {
    const struct regions *r;
    struct byi_uses uses;
    uint32_t *waiting; /* for each vertex: operands not yet reached */
    uint32_t *queue, n_queued;
    struct byi_members members;
};

static uint32_t vertex_of(const struct regions *r, byi_id id)
{
    const uint32_t region = r->f->nodes.at[id].region;
    return region ? region : r->n + 1 + id;
}

static void count_waiting(struct sorter *s)
{
    const struct byi_func *f = s->r->f;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        const uint32_t vertex = vertex_of(s->r, id);
        for (uint32_t a = 0; a < node->n_args; a++)
            s->waiting[vertex] += vertex_of(s->r, node->args[a]) != vertex;
        if (!node->region && !s->waiting[vertex])
            s->queue[s->n_queued++] = vertex;
    }
    for (uint32_t i = 1; i <= s->r->n; i++)
        if (s->members.first[i] < s->members.first[i + 1] && !s->waiting[i])
            s->queue[s->n_queued++] = i;
}

static void release_readers(struct sorter *s, uint32_t vertex, byi_id id)
{
    for (uint32_t u = s->uses.first[id]; u < s->uses.first[id + 1]; u++) {
        const uint32_t reader = vertex_of(s->r, s->uses.at[u]);
        if (reader != vertex && --s->waiting[reader] == 0)
            s->queue[s->n_queued++] = reader;
    }
}

/* Renumber the regions so that every path ascends. */
static void sort_regions(struct regions *r)
{
    const size_t n_vertices = (size_t)r->n + 1 + r->f->nodes.n;
    struct sorter s = {
        .r = r,
        .uses = byi_uses_of(r->f, r->scratch),
        .waiting = byi_arena_calloc(r->scratch, n_vertices, sizeof *s.waiting),
        .queue = byi_arena_calloc(r->scratch, n_vertices, sizeof *s.queue)};
    uint32_t *new_number =
        byi_arena_calloc(r->scratch, r->n + 1, sizeof *new_number);
    uint32_t n = 0;
    s.members = byi_members_of(r->f, r->n, r->scratch);
    count_waiting(&s);
    for (uint32_t i = 0; i < s.n_queued; i++) {
        const uint32_t vertex = s.queue[i];
        if (vertex > r->n) {
            release_readers(&s, vertex, vertex - r->n - 1);
            continue;
        }
        new_number[vertex] = ++n;
        for (uint32_t k = s.members.first[vertex];
             k < s.members.first[vertex + 1]; k++)
            release_readers(&s, vertex, s.members.at[k]);
    }
    r->n = n;
    for (byi_id id = 0; id < r->f->nodes.n; id++) {
        struct byi_node *node = &r->f->nodes.at[id];
        node->region = new_number[node->region];
        r->backend[node->region] = node->backend;
    }
}

/* Join regions that the fixed direction separated. If there are more regions
 * than one window holds, sort and repeat until one window holds all or few were
 * joined. */
static void join_all(struct regions *r)
{
    enum { MAX_ROUNDS = 4 }; /* repetitions, to stay linear */
    bool repeat = true;
    for (uint32_t i = 0; repeat && i < MAX_ROUNDS; i++) {
        const uint32_t n = r->n;
        const uint32_t *into =
            byi_join_regions(r->f, n, r->backend, r->scratch);
        for (byi_id id = 0; id < r->f->nodes.n; id++)
            if (r->f->nodes.at[id].region)
                r->f->nodes.at[id].region = into[r->f->nodes.at[id].region];
        repeat = n > BYI_JOIN_WINDOW;
        if (repeat) {
            sort_regions(r);
            repeat = r->n <= BYI_JOIN_WINDOW || r->n < n - n / 8;
        }
    }
}

/* Renumber the regions without gaps, in the order of first appearance. */
static void renumber_regions(struct regions *r)
{
    uint32_t *new_number =
        byi_arena_calloc(r->scratch, r->n + 1, sizeof *new_number);
    uint32_t n = 0;
    for (byi_id id = 0; id < r->f->nodes.n; id++) {
        struct byi_node *node = &r->f->nodes.at[id];
        if (!node->region)
            continue;
        if (!new_number[node->region])
            new_number[node->region] = ++n;
        node->region = new_number[node->region];
    }
}

static enum byoc_status merge_regions(struct byi_module *m, uint32_t func,
                                      struct byi_pass_context *ctx,
                                      struct byi_arena *scratch,
                                      struct byoc_error *err)
{
    (void)ctx, (void)err;
    struct byi_func *f = m->funcs.at[func];
    struct regions r = {
        .f = f, .scratch = scratch, .n_backends = m->backends.n};
    if (!r.n_backends)
        return BYOC_OK;
    assign_levels(&r);
    if (r.n_backends > 1) {
        order_regions(&r);
        join_all(&r);
        renumber_regions(&r);
    }
    byi_vec_free(r.numbers.at);
    return BYOC_OK;
}

const struct byi_pass byi_pass_merge_regions = {
    .name = "MergeRegions",
    .summary = "join composites of one backend into regions, without cycles",
    .run_func = merge_regions,
};
