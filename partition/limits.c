/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c: decides which marked regions to keep. A region that only moves data
 * costs more than it saves; the user may set a minimum size and a maximum
 * number. All regions of a module are considered together, including those that
 * are functions already. So the maximum holds for the module, and a second run
 * changes nothing.
 */
#include "partition.h"

#include <stdlib.h>

/* A region: marked nodes of a function, or a backend's function. */
struct listed_region {
    uint32_t func, number; /* number 0: already a function, kept */
    bool computes;         /* it does more than move data */
    bool dropped;
    bool recorded; /* the ledger has the reason why it was dropped */
    uint32_t n_composites;
    BYI_VEC(uint32_t) sources; /* list_marked() sorts and dedupes them */
    double flops;
    enum byi_reason reason; /* why it was dropped; `detail`: the value found */
    const char *detail;
};

/* The state of byi_limit_regions. */
struct limiter {
    struct byi_module *m;
    struct byi_pass_context *ctx;
    const struct byi_limits *limits;
    const struct byi_samples *samples; /* NULL: no input varies */
    struct byi_arena *scratch;
    BYI_VEC(struct listed_region) list;
};

/* --- the regions ---------------------------------------------------------- */

/* Revert node `id` of f, which is marked with a backend, to native kernels. */
static void revert_node(const struct byi_module *m, struct byi_func *f,
                        byi_id id, struct byi_ledger *ledger,
                        enum byi_reason reason, const char *detail)
{
    struct byi_node *node = &f->nodes.at[id];
    if (ledger && node->kind == BYI_CALL)
        byi_ledger_note(ledger, node->sources, reason,
                        m->backends.at[node->backend - 1], NULL, detail);
    node->region = 0;
    node->backend = 0;
}

/* Whether the composite does more than move data. Recurses into the branches of
 * an `if`, as deep as these nest. */
static bool composite_computes(const struct byi_module *m,
                               const struct byi_func *body)
{
    for (byi_id id = 0; id < body->nodes.n; id++) {
        const struct byi_node *node = &body->nodes.at[id];
        if (node->kind == BYI_CALL_OP &&
            byi_op(node->op)->cost != BYI_COST_NONE)
            return true;
        if (node->kind == BYI_FN &&
            composite_computes(m, m->funcs.at[node->index]))
            return true;
    }
    return false;
}

/* Add call `node` of f, whose callee is a composite, to *region. */
static void add_member(const struct limiter *l, struct listed_region *region,
                       const struct byi_func *f, const struct byi_node *node)
{
    const uint32_t body = f->nodes.at[node->args[0]].index;
    region->n_composites++;
    region->computes =
        region->computes || composite_computes(l->m, l->m->funcs.at[body]);
    region->flops += byi_func_flops(l->m, l->samples, body);
    for (uint32_t i = 0; i < node->sources->n; i++)
        BYI_PUSH(&region->sources, node->sources->at[i]);
}

static bool has_marks(const struct byi_func *f)
{
    if (f->dead || f->attr.compiler || f->attr.composite)
        return false;
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].region)
            return true;
    return false;
}

static void list_marked(struct limiter *l, uint32_t func)
{
    const struct byi_func *f = l->m->funcs.at[func];
    const uint32_t first = l->list.n;
    uint32_t n = 0;
    for (byi_id id = 0; id < f->nodes.n; id++)
        n = f->nodes.at[id].region > n ? f->nodes.at[id].region : n;
    for (uint32_t i = 1; i <= n; i++)
        BYI_PUSH(&l->list, ((struct listed_region){.func = func, .number = i}));
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->region && byi_composite_of(l->m, f, node))
            add_member(l, &l->list.at[first + node->region - 1], f, node);
    }
    for (uint32_t i = first; i < l->list.n; i++) {
        struct listed_region *region = &l->list.at[i];
        region->sources.n = byi_ids_sort(region->sources.at, region->sources.n);
    }
}

static void list_existing(struct limiter *l, uint32_t func)
{
    const struct listed_region region = {
        .func = func, .flops = byi_func_flops(l->m, l->samples, func)};
    BYI_PUSH(&l->list, region);
}

/* --- decisions ------------------------------------------------------------ */

static void drop_region(struct listed_region *region, enum byi_reason reason,
                        const char *detail)
{
    region->dropped = true;
    region->reason = reason;
    region->detail = detail;
}

/* Returns the number of the model's nodes in the region; of its composites if
 * the module has no provenance, as when it was read as text. */
static uint32_t count_nodes(const struct listed_region *region)
{
    return region->sources.n ? region->sources.n : region->n_composites;
}

static void drop_small(struct limiter *l, struct listed_region *region)
{
    const struct byi_limits *limits = l->limits;
    struct byi_arena *arena = l->scratch;
    if (!region->number || !region->n_composites)
        return;
    if (!region->computes)
        drop_region(region, BYI_REASON_MOVES_ONLY, NULL);
    else if (count_nodes(region) < limits->min_nodes)
        drop_region(region, BYI_REASON_TOO_SMALL,
                    byi_arena_printf(
                        arena,
                        "its region has %u node%s, --min-region-nodes "
                        "requires %u",
                        count_nodes(region), byi_plural(count_nodes(region)),
                        limits->min_nodes));
    else if (region->flops < limits->min_flops)
        drop_region(
            region, BYI_REASON_FEW_FLOPS,
            byi_arena_printf(arena,
                             "its region does %.0f floating-point operations, "
                             "--min-region-flops requires %.0f",
                             region->flops, limits->min_flops));
}

/* Compare two regions: existing functions come first, then regions by
 * descending work; ties are in order of first appearance. */
static int compare_work(const void *a, const void *b)
{
    const struct listed_region *x = *(void *const *)a, *y = *(void *const *)b;
    if (!x->number != !y->number)
        return x->number ? 1 : -1;
    if (x->flops != y->flops)
        return x->flops > y->flops ? -1 : 1;
    return (x > y) - (x < y);
}

static void drop_excess(struct limiter *l)
{
    const uint32_t max_regions = l->limits->max_regions;
    uint32_t n = 0;
    struct listed_region **regions =
        byi_arena_calloc(l->scratch, l->list.n, sizeof(struct listed_region *));
    for (uint32_t i = 0; i < l->list.n; i++) {
        struct listed_region *region = &l->list.at[i];
        if (!region->dropped && (!region->number || region->n_composites))
            regions[n++] = region;
    }
    if (!max_regions || n <= max_regions)
        return;
    qsort(regions, n, sizeof(struct listed_region *), compare_work);
    for (uint32_t i = max_regions; i < n; i++)
        if (regions[i]->number)
            drop_region(
                regions[i], BYI_REASON_TOO_MANY,
                byi_arena_printf(l->scratch,
                                 "its region ranks %u of %u by floating-point "
                                 "operations, --max-regions keeps %u",
                                 i + 1, n, max_regions));
}

/* --- dropping regions ----------------------------------------------------- */

static void record_dropped_region(struct limiter *l,
                                  const struct listed_region *region,
                                  uint32_t backend)
{
    const char *name = l->m->backends.at[backend - 1];
    const struct byi_sources sources = {.n = region->sources.n,
                                        .at = region->sources.at};
    const struct byi_ledger_region entry = {
        .name = byi_arena_printf(l->scratch, "%s.%u", name, region->number),
        .backend = name,
        .reason = region->reason,
        .detail = region->detail,
        .sources = &sources,
        .flops = region->flops};
    byi_ledger_add_region(byi_ledger_of(l->ctx), &entry);
}

/* Unmark the dropped regions of a function, whose regions are in the list from
 * `first` on. */
static void unmark(struct limiter *l, uint32_t first, uint32_t func)
{
    struct byi_func *f = l->m->funcs.at[func];
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        struct listed_region *region =
            node->region ? &l->list.at[first + node->region - 1] : NULL;
        if (!region || !region->dropped)
            continue;
        if (byi_ledger_of(l->ctx) && !region->recorded)
            record_dropped_region(l, region, node->backend);
        region->recorded = true;
        revert_node(l->m, f, id, byi_ledger_of(l->ctx), region->reason,
                    region->detail);
    }
}

void byi_limit_regions(struct byi_module *m, struct byi_pass_context *ctx,
                       struct byi_arena *scratch)
{
    static const struct byi_limits none = {0};
    const struct byi_backends *backends = byi_backends_of(ctx);
    struct limiter l = {.m = m,
                        .ctx = ctx,
                        .limits = backends ? &backends->limits : &none,
                        .samples = byi_samples_new(m, ctx, scratch),
                        .scratch = scratch};
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (!m->funcs.at[i]->dead && m->funcs.at[i]->attr.compiler)
            list_existing(&l, i);
        else if (has_marks(m->funcs.at[i]))
            list_marked(&l, i);
    for (uint32_t i = 0; i < l.list.n; i++)
        drop_small(&l, &l.list.at[i]);
    drop_excess(&l);
    for (uint32_t i = 0; i < l.list.n; i++) {
        const struct listed_region *region = &l.list.at[i];
        if (region->number == 1) /* the first of its function */
            unmark(&l, i, region->func);
    }
    for (uint32_t i = 0; i < l.list.n; i++)
        byi_vec_free(l.list.at[i].sources.at);
    byi_vec_free(l.list.at);
}
