/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: plans the memory of temporaries: computes when each one is live,
 * and calls byi_assign_offsets (core/base/place.c) to choose its offset. Skips
 * temporaries whose size varies.
 */
#include "plan.h"

/* Set last[v] to the last step that reads v or an alias of it. If there is
 * none, it is the step that writes v; for an output, UINT32_MAX. */
static void find_last(const struct byi_planned_func *f, uint32_t *last)
{
    for (uint32_t s = 0; s < f->steps.n; s++) {
        const struct byi_planned_step *step = &f->steps.at[s];
        for (uint32_t i = 0; i < step->n_out; i++)
            last[byi_planned_func_root(f, f->flat.at[step->out + i])] = s;
        for (uint32_t i = 0; i < step->n_in; i++)
            last[byi_planned_func_root(f, f->flat.at[step->in + i])] = s;
    }
    for (uint32_t i = 0; i < f->outputs.n; i++)
        last[byi_planned_func_root(f, f->outputs.at[i])] = UINT32_MAX;
}

/* List the fixed temporaries in the order in which steps write them: their
 * lifetimes and, in values[], their indices. Returns their number. */
static uint32_t list_lifetimes(const struct byi_planned_func *f,
                               const uint32_t *last,
                               struct byi_lifetime *lifetimes, uint32_t *values)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < f->steps.n; s++) {
        const struct byi_planned_step *step = &f->steps.at[s];
        for (uint32_t i = 0; i < step->n_out; i++) {
            uint32_t v = f->flat.at[step->out + i];
            const struct byi_planned_value *value = &f->values.at[v];
            if (value->kind != BYI_P_TEMP || !value->fixed)
                continue;
            lifetimes[n] =
                (struct byi_lifetime){.first = s,
                                      .last = last[v],
                                      .bytes = byi_type_bytes(value->type)};
            values[n++] = v;
        }
    }
    return n;
}

void byi_plan_memory(struct byi_planned_func *f)
{
    struct byi_arena *arena = byi_arena_new();
    const uint32_t n = f->values.n + 1;
    uint32_t *last = byi_arena_calloc(arena, n, sizeof *last);
    uint32_t *values = byi_arena_calloc(arena, n, sizeof *values);
    struct byi_lifetime *lifetimes =
        byi_arena_calloc(arena, n, sizeof *lifetimes);
    find_last(f, last);
    const uint32_t n_lifetimes = list_lifetimes(f, last, lifetimes, values);
    f->arena = byi_assign_offsets(lifetimes, n_lifetimes);
    for (uint32_t i = 0; i < n_lifetimes; i++)
        f->values.at[values[i]].offset = lifetimes[i].at;
    byi_arena_free(&arena);
}
