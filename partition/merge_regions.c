/* MergeRegions: nodes of one vendor become as few regions as there can be
 * without two regions depending on each other.
 * requires: AnnotateTarget                 breaks: nothing
 *
 *   %1 = %0(%x) @[dnnl]                    %1 = %0(%x) @[dnnl.1]
 *   %2 = exp(%1)                   ==>     %2 = exp(%1)
 *   %4 = %3(%1) @[dnnl]                    %4 = %3(%1) @[dnnl.1]
 *   %6 = %5(%2) @[dnnl]                    %6 = %5(%2) @[dnnl.2]
 *
 * Every node gets a level: how often the best path to it must leave a vendor
 * and come back. A vendor's node is as deep as its deepest operand, one more
 * where that operand is somebody else's. All nodes of one vendor on one level
 * are a region. Paths never go back to a lower level, and within a level they
 * cross from vendor to vendor in one fixed direction only, so no two regions
 * depend on each other; and for one vendor two levels can never be merged,
 * since a node of the higher one hangs by a foreign node on the lower one. With
 * several vendors the fixed direction can separate what could stay together:
 * join_regions.c merges such pairs while the condensed graph stays acyclic.
 */
#include "partition.h"

#include <string.h>

struct regions {
    struct byi_func *f;
    struct byi_arena *scratch;
    uint32_t n_targets;
    uint32_t *level;  /* of each node of a vendor */
    uint32_t n;       /* regions, numbered from 1 */
    uint32_t *target; /* of each region */
};

/* What reading `arg` asks of a later node of vendor t. A foreign reader breaks
 * the region: its own readers of arg's vendor come one level later. */
static uint32_t level_after(const struct byi_node *arg, const uint32_t *below,
                            uint32_t level, uint32_t t, bool foreign)
{
    uint32_t least = below[t];
    if (foreign && arg->target == t + 1 && level + 1 > least)
        least = level + 1;
    return least;
}

/* below[id * n_targets + t]: the least level on which a node of vendor t may
 * stand that reads node id. */
static void assign_levels(struct regions *r)
{
    const struct byi_func *f = r->f;
    const uint32_t n = r->n_targets;
    uint32_t *below =
        byi_arena_calloc(r->scratch, (size_t)f->nodes.n * n, sizeof *below);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        uint32_t *own = &below[(size_t)id * n];
        for (uint32_t a = 0; a < node->n_args; a++) {
            const byi_id arg = node->args[a];
            for (uint32_t t = 0; t < n; t++) {
                uint32_t least =
                    level_after(&f->nodes.at[arg], &below[(size_t)arg * n],
                                r->level[arg], t, node->target == 0);
                own[t] = least > own[t] ? least : own[t];
            }
        }
        if (!node->target)
            continue;
        r->level[id] = own[node->target - 1];
        for (uint32_t t = 0; t < n; t++) {
            uint32_t least = r->level[id] + (t + 1 < node->target);
            own[t] = least > own[t] ? least : own[t];
        }
    }
}

/* Regions in the order of (level, vendor), found by counting. */
static void number_regions(struct regions *r)
{
    struct byi_func *f = r->f;
    uint32_t n_levels = 0;
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].target && r->level[id] >= n_levels)
            n_levels = r->level[id] + 1;
    uint32_t *number = byi_arena_calloc(
        r->scratch, (size_t)n_levels * r->n_targets + 1, sizeof *number);
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].target)
            number[r->level[id] * r->n_targets + f->nodes.at[id].target - 1] =
                1;
    for (uint32_t i = 0; i < n_levels * r->n_targets; i++)
        if (number[i])
            number[i] = ++r->n;
    r->target = byi_arena_calloc(r->scratch, r->n + 1, sizeof *r->target);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        struct byi_node *node = &f->nodes.at[id];
        node->region =
            node->target
                ? number[r->level[id] * r->n_targets + node->target - 1]
                : 0;
        r->target[node->region] = node->target;
    }
}

/* Numbers without gaps, in the order of first appearance. into: what region
 * each is part of now, NULL: all are what they were. */
static void renumber(struct regions *r, const uint32_t *into)
{
    uint32_t *fresh = byi_arena_calloc(r->scratch, r->n + 1, sizeof *fresh);
    uint32_t n = 0;
    for (byi_id id = 0; id < r->f->nodes.n; id++) {
        struct byi_node *node = &r->f->nodes.at[id];
        if (!node->region)
            continue;
        const uint32_t now = into ? into[node->region] : node->region;
        if (!fresh[now])
            fresh[now] = ++n;
        node->region = fresh[now];
    }
}

static enum byoc_status merge_regions(struct byi_module *m, uint32_t func,
                                      struct byi_pass_context *ctx,
                                      struct byi_arena *scratch,
                                      struct byoc_error *err)
{
    (void)ctx, (void)err;
    struct byi_func *f = m->funcs.at[func];
    struct regions r = {.f = f, .scratch = scratch, .n_targets = m->targets.n};
    if (!r.n_targets)
        return BYOC_OK;
    r.level = byi_arena_calloc(scratch, f->nodes.n, sizeof *r.level);
    assign_levels(&r);
    number_regions(&r);
    renumber(&r, r.n_targets > 1 ? byi_join_regions(f, r.n, r.target, scratch)
                                 : NULL);
    return BYOC_OK;
}

const struct byi_pass byi_pass_merge_regions = {
    .name = "MergeRegions",
    .summary = "join neighbours and siblings of one vendor, without cycles",
    .run_func = merge_regions,
};
