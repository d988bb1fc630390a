/* SPDX-License-Identifier: Apache-2.0 */
/* join_regions.c: joins two regions of one backend that MergeRegions' fixed
 * direction between backends separated, if no path leads from one to the other
 * through a node outside both. The result is exact within windows of WINDOW
 * consecutive regions. Numbers ascend along every path, so any region on a path
 * between two regions of a window is in the window, too. Regions of different
 * windows are not compared. Time is linear in the graph.
 *
 * Sets of regions are bitsets, one bit per region of the window.
 */
#include "partition.h"

#include <string.h>

enum { WINDOW = BYI_JOIN_WINDOW, WORDS = WINDOW / 64 };

typedef uint64_t region_set[WORDS];

/* The regions of one window that a native node reads through native nodes only.
 * It is the latest window with such regions; earlier windows do not matter,
 * since no reader of the node is in them. */
struct native_reads {
    uint32_t window;
    region_set regions;
};

/* The state of byi_join_regions. */
struct joiner {
    const struct byi_func *f;
    struct byi_arena *scratch;
    const uint32_t *backend; /* of each region, 1 .. n */
    uint32_t *into;          /* of each region: the region it was joined to */
    uint32_t n;
    region_set *direct; /* of each region: regions that it reads */
    /* of each region: regions that it reads through native nodes only */
    region_set *via_native;
    /* of the current window, by bit */
    uint32_t first, end;      /* its regions */
    region_set *predecessors; /* all regions on paths to it */
    /* of these, regions with a path through another region or a native node */
    region_set *indirect;
    /* 1 + the number of joins when `indirect` was cached */
    uint32_t *cached_at;
    uint32_t joins;
};

/* --- sets of regions ------------------------------------------------------ */

static uint32_t window_of(uint32_t region)
{
    return (region - 1) / WINDOW;
}

static uint32_t bit_of(uint32_t region)
{
    return (region - 1) % WINDOW;
}

static bool set_has(const uint64_t *r, uint32_t bit)
{
    return r[bit / 64] >> (bit % 64) & 1;
}

static void set_add(uint64_t *r, uint32_t bit)
{
    r[bit / 64] |= (uint64_t)1 << (bit % 64);
}

static void set_remove(uint64_t *r, uint32_t bit)
{
    r[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

static void set_union(uint64_t *into, const uint64_t *from)
{
    for (uint32_t i = 0; i < WORDS; i++)
        into[i] |= from[i];
}

/* --- dependences ---------------------------------------------------------- */

/* Returns the latest window of the regions that `node` reads, directly or
 * through native nodes; UINT32_MAX if there are none. */
static uint32_t last_window(const struct joiner *j, const struct byi_node *node,
                            const struct native_reads *const *reads)
{
    uint32_t last = UINT32_MAX;
    for (uint32_t a = 0; a < node->n_args; a++) {
        const uint32_t region = j->f->nodes.at[node->args[a]].region;
        const struct native_reads *arg = reads[node->args[a]];
        if (!region && !arg)
            continue;
        const uint32_t window = region ? window_of(region) : arg->window;
        if (last == UINT32_MAX || window > last)
            last = window;
    }
    return last;
}

/* Returns the regions that native node `id` depends on, NULL for none. The set
 * is shared with an operand if that has the same set. */
static const struct native_reads *native_reads_of(
    const struct joiner *j, byi_id id, const struct native_reads *const *reads)
{
    const struct byi_node *node = &j->f->nodes.at[id];
    const uint32_t window = last_window(j, node, reads);
    const struct native_reads *shared = NULL;
    struct native_reads *copy = NULL;
    for (uint32_t a = 0; a < node->n_args && window != UINT32_MAX; a++) {
        const uint32_t region = j->f->nodes.at[node->args[a]].region;
        const struct native_reads *arg = reads[node->args[a]];
        const bool in_window =
            region ? window_of(region) == window : arg && arg->window == window;
        if (!in_window || (!region && arg == shared))
            continue;
        if (!region && !shared) {
            shared = arg;
            continue;
        }
        if (!copy) {
            copy = byi_arena_alloc(j->scratch, sizeof *copy);
            if (shared)
                *copy = *shared;
            copy->window = window;
            shared = copy;
        }
        if (region)
            set_add(copy->regions, bit_of(region));
        else
            set_union(copy->regions, arg->regions);
    }
    return shared;
}

static void read_member(struct joiner *j, byi_id id,
                        const struct native_reads *const *reads)
{
    const struct byi_node *node = &j->f->nodes.at[id];
    const uint32_t window = window_of(node->region);
    for (uint32_t a = 0; a < node->n_args; a++) {
        const uint32_t region = j->f->nodes.at[node->args[a]].region;
        const struct native_reads *arg = reads[node->args[a]];
        if (region && region != node->region && window_of(region) == window)
            set_add(j->direct[node->region], bit_of(region));
        else if (arg && arg->window == window)
            set_union(j->via_native[node->region], arg->regions);
    }
}

static void read_graph(struct joiner *j)
{
    const uint32_t n = j->f->nodes.n;
    const struct native_reads **reads =
        byi_arena_calloc(j->scratch, n, sizeof *reads);
    j->direct = byi_arena_calloc(j->scratch, j->n + 1, sizeof *j->direct);
    j->via_native =
        byi_arena_calloc(j->scratch, j->n + 1, sizeof *j->via_native);
    for (byi_id id = 0; id < n; id++)
        if (j->f->nodes.at[id].region)
            read_member(j, id, reads);
        else
            reads[id] = native_reads_of(j, id, reads);
}

/* --- one window ----------------------------------------------------------- */

/* Whether the region was not joined to another one. */
static bool is_representative(const struct joiner *j, uint32_t region)
{
    return j->into[region] == region;
}

/* Set *out to all regions on paths to `region`; if `only_indirect`, without the
 * regions that it only reads directly. */
static void gather_predecessors(const struct joiner *j, uint32_t region,
                                bool only_indirect, uint64_t *out)
{
    memset(out, 0, sizeof(region_set));
    for (uint32_t w = 0; w < WORDS; w++) {
        uint64_t rest = j->direct[region][w] | j->via_native[region][w];
        for (; rest; rest &= rest - 1) {
            const uint32_t bit = w * 64 + (uint32_t)__builtin_ctzll(rest);
            set_union(out, j->predecessors[bit]);
            if (!only_indirect || set_has(j->via_native[region], bit))
                set_add(out, bit);
        }
    }
}

static const uint64_t *indirect_predecessors(struct joiner *j, uint32_t region)
{
    const uint32_t bit = bit_of(region);
    if (j->cached_at[bit] != j->joins + 1)
        gather_predecessors(j, region, true, j->indirect[bit]);
    j->cached_at[bit] = j->joins + 1;
    return j->indirect[bit];
}

static bool may_join(struct joiner *j, uint32_t a, uint32_t b)
{
    if (j->backend[a] != j->backend[b])
        return false;
    if (set_has(j->predecessors[bit_of(b)], bit_of(a)) &&
        set_has(indirect_predecessors(j, b), bit_of(a)))
        return false;
    return !set_has(j->predecessors[bit_of(a)], bit_of(b)) ||
           !set_has(indirect_predecessors(j, a), bit_of(b));
}

/* Replace bit b by bit a: dependences on b become dependences on a. */
static void rename_bit(uint64_t *r, uint32_t a, uint32_t b)
{
    if (!set_has(r, b))
        return;
    set_remove(r, b);
    set_add(r, a);
}

static void join_pair(struct joiner *j, uint32_t a, uint32_t b)
{
    const uint32_t x = bit_of(a), y = bit_of(b);
    uint64_t *const sets[] = {j->predecessors[x], j->direct[a],
                              j->via_native[a]};
    const uint64_t *const other_sets[] = {j->predecessors[y], j->direct[b],
                                          j->via_native[b]};
    for (uint32_t i = 0; i < BYI_COUNT(sets); i++) {
        set_union(sets[i], other_sets[i]);
        set_remove(sets[i], x);
        set_remove(sets[i], y);
    }
    j->into[b] = a;
    j->joins++;
    for (uint32_t r = j->first; r < j->end; r++) {
        uint64_t *predecessors = j->predecessors[bit_of(r)];
        if (r == a || !is_representative(j, r))
            continue;
        rename_bit(j->direct[r], x, y);
        rename_bit(j->via_native[r], x, y);
        rename_bit(predecessors, x, y);
        if (set_has(predecessors, x))
            set_union(predecessors, j->predecessors[x]);
    }
}

/* Join pairs of regions of the window until no pair can be joined: a join may
 * enable another. */
static void join_window(struct joiner *j)
{
    uint32_t joins;
    for (uint32_t r = j->first; r < j->end; r++)
        gather_predecessors(j, r, false, j->predecessors[bit_of(r)]);
    do {
        joins = j->joins;
        for (uint32_t a = j->first; a < j->end; a++)
            for (uint32_t b = a + 1; b < j->end && is_representative(j, a); b++)
                if (is_representative(j, b) && may_join(j, a, b))
                    join_pair(j, a, b);
    } while (j->joins != joins);
}

const uint32_t *byi_join_regions(const struct byi_func *f, uint32_t n,
                                 const uint32_t *backend,
                                 struct byi_arena *scratch)
{
    struct joiner j = {
        .f = f,
        .scratch = scratch,
        .backend = backend,
        .n = n,
        .into = byi_arena_calloc(scratch, n + 1, sizeof *j.into),
        .predecessors =
            byi_arena_calloc(scratch, WINDOW, sizeof *j.predecessors),
        .indirect = byi_arena_calloc(scratch, WINDOW, sizeof *j.indirect),
        .cached_at = byi_arena_calloc(scratch, WINDOW, sizeof *j.cached_at)};
    for (uint32_t r = 1; r <= n; r++)
        j.into[r] = r;
    read_graph(&j);
    for (j.first = 1; j.first <= n; j.first = j.end) {
        j.end = n - j.first < WINDOW ? n + 1 : j.first + WINDOW;
        memset(j.cached_at, 0, WINDOW * sizeof *j.cached_at);
        join_window(&j);
    }
    return j.into;
}
