/* SPDX-License-Identifier: Apache-2.0 */
/* candidates.c: finds the candidates of placement by cost: the composites that
 * each backend alone would make; overlapping ones of several backends are one
 * candidate. Nodes outside read only the last node of a candidate, or the
 * fields of that node if it is a tuple.
 */
#include "cost.h"

#include <string.h>

/* The state of byi_candidates_find in one function. */
struct candidate_finder {
    struct byi_module *m;
    struct byi_pass_context *ctx;
    struct byi_arena *arena;
    struct byi_candidates *candidates;
    const struct byi_func *f;
    uint32_t func;
    byi_id *parent;      /* union-find: towards the candidate's first node */
    uint64_t *backends;  /* of each node: as in byi_candidate */
    uint32_t *candidate; /* of each node: 1 + its candidate; 0: none */
};

/* Returns the first node of the candidate of node `id`. */
static byi_id find_first(struct candidate_finder *d, byi_id id)
{
    while (d->parent[id] != id) {
        d->parent[id] = d->parent[d->parent[id]];
        id = d->parent[id];
    }
    return id;
}

static void unite(struct candidate_finder *d, byi_id a, byi_id b)
{
    a = find_first(d, a);
    b = find_first(d, b);
    if (a < b)
        d->parent[b] = a;
    else
        d->parent[a] = b;
}

/* Add the composites that a backend would make if it were the only backend. */
static enum byoc_status add_composites(struct candidate_finder *d,
                                       uint32_t backend, struct byoc_error *err)
{
    const uint32_t *claimed;
    BYI_TRY(byi_find_composites(d->m, d->func, d->ctx,
                                &byi_backends_of(d->ctx)->at[backend], d->arena,
                                &claimed, err));
    const uint32_t n = d->f->nodes.n;
    byi_id *last_node = byi_arena_alloc(d->arena, n * sizeof *last_node);
    /* for each composite: its last node so far, or BYI_NO_ID */
    memset(last_node, 0xff, n * sizeof *last_node);
    for (byi_id id = 0; id < n; id++) {
        if (!claimed[id])
            continue;
        d->backends[id] |= (uint64_t)1 << backend;
        byi_id *previous = &last_node[claimed[id] - 1];
        if (*previous != BYI_NO_ID)
            unite(d, *previous, id);
        *previous = id;
    }
    return BYOC_OK;
}

/* Add the fields of tuples to the candidates of the tuples. */
static void add_fields(struct candidate_finder *d)
{
    for (byi_id id = 0; id < d->f->nodes.n; id++) {
        const struct byi_node *node = &d->f->nodes.at[id];
        if (node->kind == BYI_GET && d->backends[node->args[0]]) {
            d->backends[id] |= d->backends[node->args[0]];
            unite(d, node->args[0], id);
        }
    }
}

static void list_candidates(struct candidate_finder *d)
{
    const uint32_t n = d->f->nodes.n;
    struct byi_candidates *candidates = d->candidates;
    const uint32_t n_before = candidates->list.n;
    for (byi_id id = 0; id < n; id++) {
        if (!d->backends[id])
            continue;
        const byi_id first = find_first(d, id);
        if (!d->candidate[first]) {
            const struct byi_candidate new_candidate = {.func = d->func};
            BYI_PUSH(&candidates->list, new_candidate);
            d->candidate[first] = candidates->list.n;
        }
        d->candidate[id] = d->candidate[first];
        struct byi_candidate *candidate =
            &candidates->list.at[d->candidate[id] - 1];
        candidate->n++;
        candidate->backends |= d->backends[id];
    }
    byi_id *at = byi_arena_calloc(d->arena, n, sizeof *at);
    uint32_t *n_filled = byi_arena_calloc(
        d->arena, candidates->list.n - n_before, sizeof *n_filled);
    for (uint32_t i = n_before; i < candidates->list.n; i++) {
        candidates->list.at[i].at = at;
        at += candidates->list.at[i].n;
    }
    for (byi_id id = 0; id < n; id++)
        if (d->candidate[id]) {
            struct byi_candidate *candidate =
                &candidates->list.at[d->candidate[id] - 1];
            byi_id *to = (byi_id *)(uintptr_t)candidate->at;
            to[n_filled[d->candidate[id] - 1 - n_before]++] = id;
        }
}

static enum byoc_status find_in_function(struct candidate_finder *d,
                                         struct byoc_error *err)
{
    const uint32_t n = d->f->nodes.n;
    d->parent = byi_arena_calloc(d->arena, n, sizeof *d->parent);
    d->backends = byi_arena_calloc(d->arena, n, sizeof *d->backends);
    d->candidate = byi_arena_calloc(d->arena, n, sizeof *d->candidate);
    for (byi_id id = 0; id < n; id++)
        d->parent[id] = id;
    for (uint32_t i = 0; i < byi_backends_of(d->ctx)->n; i++)
        BYI_TRY(add_composites(d, i, err));
    add_fields(d);
    list_candidates(d);
    return BYOC_OK;
}

enum byoc_status byi_candidates_find(struct byi_module *m,
                                     struct byi_pass_context *ctx,
                                     struct byi_arena *arena,
                                     struct byi_candidates *candidates,
                                     struct byoc_error *err)
{
    const uint32_t n = m->funcs.n; /* skip functions that probing adds */
    for (uint32_t i = 0; i < n; i++) {
        struct byi_func *f = m->funcs.at[i];
        if (f->dead || byi_is_closed(f))
            continue;
        struct candidate_finder d = {.m = m,
                                     .ctx = ctx,
                                     .arena = arena,
                                     .candidates = candidates,
                                     .f = f,
                                     .func = i};
        BYI_TRY(find_in_function(&d, err));
    }
    return BYOC_OK;
}

void byi_candidates_free(struct byi_candidates *candidates)
{
    byi_vec_free(candidates->list.at);
    *candidates = (struct byi_candidates){0};
}
