/* SPDX-License-Identifier: Apache-2.0 */
/* assignment.c: records which backend may run a node, as decided by cost. */
#include "cost.h"

#include <assert.h>
#include <string.h>

/* The decision about a node. */
struct node_assignment {
    const char *backend; /* NULL: native only */
    const char *why;     /* NULL: nothing was decided */
};

/* The decisions about the nodes of a function. */
struct func_assignments {
    uint32_t n;
    struct node_assignment *at; /* indexed by node */
};

/* The decisions about all functions that the module had at first. */
struct byi_assignment {
    struct byi_arena *arena;
    uint32_t n_funcs;
    struct func_assignments *funcs; /* indexed by module function */
};

struct byi_assignment *byi_assignment_new(const struct byi_module *m,
                                          struct byi_arena *arena)
{
    struct byi_assignment *a = byi_arena_alloc(arena, sizeof *a);
    a->arena = arena;
    a->n_funcs = m->funcs.n;
    a->funcs = byi_arena_calloc(arena, a->n_funcs, sizeof *a->funcs);
    for (uint32_t i = 0; i < a->n_funcs; i++) {
        struct func_assignments *p = &a->funcs[i];
        p->n = m->funcs.at[i]->nodes.n;
        p->at = byi_arena_calloc(arena, p->n, sizeof *p->at);
    }
    return a;
}

struct byi_assignment *byi_assignment_copy(const struct byi_assignment *a,
                                           struct byi_arena *arena)
{
    struct byi_assignment *copy = byi_arena_copy(arena, a, sizeof *a);
    copy->arena = arena;
    copy->funcs =
        byi_arena_copy(arena, a->funcs, a->n_funcs * sizeof *a->funcs);
    for (uint32_t i = 0; i < a->n_funcs; i++)
        copy->funcs[i].at = byi_arena_copy(
            arena, a->funcs[i].at, a->funcs[i].n * sizeof *a->funcs[i].at);
    return copy;
}

void byi_assign(struct byi_assignment *a, uint32_t func, byi_id id,
                const char *backend, const char *why)
{
    assert(func < a->n_funcs && id < a->funcs[func].n && why);
    a->funcs[func].at[id] = (struct node_assignment){backend, why};
}

const char *byi_assignment_refusal(const struct byi_assignment *a,
                                   uint32_t func, byi_id id,
                                   const char *backend)
{
    if (!a || func >= a->n_funcs)
        return NULL;
    assert(id < a->funcs[func].n);
    const struct node_assignment *p = &a->funcs[func].at[id];
    return p->backend && strcmp(p->backend, backend) == 0 ? NULL : p->why;
}

void byi_assignment_move(struct byi_assignment *a, uint32_t func,
                         uint32_t n_old, const byi_id *map, uint32_t n)
{
    if (!a || func >= a->n_funcs)
        return;
    struct func_assignments *p = &a->funcs[func];
    struct node_assignment *new_at =
        byi_arena_calloc(a->arena, n, sizeof *new_at);
    for (byi_id id = 0; id < n_old; id++)
        /* a removed node maps to 0 */
        if (p->at[id].why && (map[id] || id == 0))
            new_at[map[id]] = p->at[id];
    p->at = new_at;
    p->n = n;
}
