/* SPDX-License-Identifier: Apache-2.0 */
/* work.c: creates and frees the working memory of a run of a specialisation. It
 * has the frames of main and of all functions that it may call, and the states
 * of its regions. Also finds these functions. */
#include "state.h"

#include <stdlib.h>

/* --- frames --------------------------------------------------------------- */

uint32_t byi_step_callees(const struct byi_specialisation *specialisation,
                          const struct byi_step *step, uint32_t callees[2])
{
    switch (step->kind) {
    case BYI_STEP_OP:
    case BYI_STEP_APPLY:
    case BYI_STEP_CHOOSE:
        return 0;
    case BYI_STEP_REGION:
        callees[0] = specialisation->plan->regions[step->callee].twin;
        return specialisation->regions[step->callee].plugin ? 0 : 1;
    case BYI_STEP_KERNEL:
        callees[0] = specialisation->plan->kernels[step->callee].twin;
        return specialisation->model->kernels[step->callee] ? 0 : 1;
    case BYI_STEP_CALL:
    case BYI_STEP_CLOSURE:
        callees[0] = step->callee;
        return 1;
    case BYI_STEP_IF:
        callees[0] = step->callee;
        callees[1] = step->else_func;
        return 2;
    }
    byi_unreachable();
}

void byi_work_mark_functions(const struct byi_specialisation *specialisation,
                             bool *runs, uint32_t *list)
{
    uint32_t n = 0;
    runs[0] = true;
    list[n++] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_plan_func *f = &specialisation->plan->funcs[list[i]];
        for (uint32_t k = 0; k < f->n_steps; k++) {
            uint32_t callees[2];
            const uint32_t n_callees =
                byi_step_callees(specialisation, &f->steps[k], callees);
            for (uint32_t c = 0; c < n_callees; c++) {
                if (!runs[callees[c]])
                    list[n++] = callees[c];
                runs[callees[c]] = true;
            }
        }
    }
}

/* Allocate the first frame of main and of all functions that it may call,
 * including the twins of regions that no backend runs and of kernels without
 * code. `list` has an entry for each function. */
static enum byoc_status make_frames(struct byi_work *w, uint32_t *list,
                                    struct byoc_error *err)
{
    const struct byi_plan_tables *plan = w->specialisation->plan;
    uint32_t n = 0;
    w->frames[0] = byi_frame_new(w->specialisation, 0, err);
    list[n++] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_plan_func *f = &plan->funcs[list[i]];
        if (!w->frames[list[i]])
            return BYOC_ENOMEM;
        for (uint32_t k = 0; k < f->n_steps; k++) {
            uint32_t callees[2];
            uint32_t n_callees =
                byi_step_callees(w->specialisation, &f->steps[k], callees);
            for (uint32_t c = 0; c < n_callees; c++) {
                if (w->frames[callees[c]])
                    continue;
                w->frames[callees[c]] =
                    byi_frame_new(w->specialisation, callees[c], err);
                list[n++] = callees[c];
                if (!w->frames[callees[c]])
                    return BYOC_ENOMEM;
            }
        }
    }
    return BYOC_OK;
}

static enum byoc_status init_frames(struct byi_work *w, struct byoc_error *err)
{
    uint32_t *list = byi_alloc(w->specialisation->plan->n_funcs, sizeof *list);
    if (!list)
        return byi_fail_memory(
            err, w->specialisation->plan->n_funcs * sizeof *list, "a run");
    enum byoc_status status = make_frames(w, list, err);
    free(list);
    return status;
}

/* --- scratch -------------------------------------------------------------- */

/* Bytes of scratch memory that a step needs; 0 if its shapes vary. */
static uint64_t step_scratch(const struct byi_work *w, struct byi_tensor *args,
                             uint32_t func, const struct byi_step *step)
{
    if (step->kind != BYI_STEP_OP || step->infer || step->view ||
        !step->kernel || !step->kernel->scratch)
        return 0;
    struct byi_call call = byi_exec_call(args, w->frames[func], step,
                                         w->specialisation->model->threads);
    return step->kernel->scratch(&call);
}

static void raise_scratch(struct byi_work *w, uint64_t bytes)
{
    w->scratch = bytes > w->scratch ? bytes : w->scratch;
}

/* Set w->scratch to the bytes of the largest scratch memory that a native
 * kernel needs. */
static enum byoc_status find_scratch(struct byi_work *w, struct byoc_error *err)
{
    const struct byi_plan_tables *plan = w->specialisation->plan;
    struct byi_tensor *args = byi_alloc(plan->max_args + 1u, sizeof *args);
    if (!args)
        return byi_fail_memory(err, plan->max_args * sizeof *args, "a run");
    for (uint32_t f = 0; f < plan->n_funcs; f++) {
        for (uint32_t k = 0; w->frames[f] && k < plan->funcs[f].n_steps; k++)
            raise_scratch(w,
                          step_scratch(w, args, f, &plan->funcs[f].steps[k]));
    }
    free(args);
    return BYOC_OK;
}

/* --- regions -------------------------------------------------------------- */

static enum byoc_status init_regions(struct byi_work *w, struct byoc_error *err)
{
    for (uint32_t i = 0; i < w->specialisation->plan->n_regions; i++) {
        const struct byi_region *region = &w->specialisation->regions[i];
        const struct byi_plugin *plugin = region->plugin;
        if (!plugin)
            continue;
        struct byoc_fail *fail = byi_plugin_state_new(plugin, region->compiled,
                                                      &w->region_states[i]);
        BYI_TRY(byi_plugin_status(
            fail, plugin, w->specialisation->plan->regions[i].symbol, err));
        w->region_has_state[i] = true;
        raise_scratch(w, byi_plugin_scratch_bytes(plugin, region->compiled));
    }
    return BYOC_OK;
}

/* --- creation ------------------------------------------------------------ */

static enum byoc_status init_work(struct byi_work *w, struct byoc_error *err)
{
    const struct byi_plan_tables *plan = w->specialisation->plan;
    w->frames = byi_alloc(plan->n_funcs, sizeof *w->frames);
    w->spare = byi_alloc(plan->n_funcs, sizeof *w->spare);
    w->region_states = byi_alloc(plan->n_regions + 1u, sizeof(void *));
    w->region_has_state =
        byi_alloc(plan->n_regions + 1u, sizeof *w->region_has_state);
    if (!w->frames || !w->spare || !w->region_states || !w->region_has_state)
        return byi_fail_memory(
            err,
            plan->n_funcs * (sizeof *w->frames + sizeof *w->spare) +
                plan->n_regions *
                    (sizeof(void *) + sizeof *w->region_has_state),
            "a run");
    BYI_TRY(init_frames(w, err));
    BYI_TRY(find_scratch(w, err));
    return init_regions(w, err);
}

enum byoc_status byi_work_new(const struct byi_specialisation *specialisation,
                              struct byi_work **work, struct byoc_error *err)
{
    *work = NULL;
    struct byi_work *w = byi_alloc(1, sizeof *w);
    if (!w)
        return byi_fail_memory(err, sizeof *w, "a run");
    w->specialisation = specialisation;
    enum byoc_status status = init_work(w, err);
    for (uint32_t f = 0; status == BYOC_OK && f < specialisation->plan->n_funcs;
         f++)
        w->bytes += w->frames[f] ? w->frames[f]->bytes : 0;
    if (status == BYOC_OK)
        *work = w;
    else
        byi_work_free(&w);
    return status;
}

static void free_spare(struct byi_memory *memory, struct byi_frame *fr)
{
    while (fr) {
        struct byi_frame *next = fr->next;
        byi_memory_release(memory, fr);
        fr = next;
    }
}

void byi_work_clear(struct byi_work *w, struct byi_pool *pool)
{
    for (uint32_t f = 0;
         w->spare_bytes > 0 && f < w->specialisation->plan->n_funcs; f++) {
        free_spare(w->specialisation->model->memory, w->spare[f]);
        w->spare[f] = NULL;
    }
    byi_pool_refund(pool, w->spare_bytes);
    w->spare_bytes = 0;
}

void byi_work_free(struct byi_work **work)
{
    struct byi_work *w = *work;
    *work = NULL;
    if (!w)
        return;
    const struct byi_plan_tables *plan = w->specialisation->plan;
    for (uint32_t i = 0; w->region_has_state && i < plan->n_regions; i++) {
        const struct byi_region *region = &w->specialisation->regions[i];
        if (w->region_has_state[i])
            byi_plugin_state_free(region->plugin, region->compiled,
                                  w->region_states[i]);
    }
    for (uint32_t f = 0; w->frames && w->spare && f < plan->n_funcs; f++) {
        byi_memory_release(w->specialisation->model->memory, w->frames[f]);
        free_spare(w->specialisation->model->memory, w->spare[f]);
    }
    free(w->frames);
    free(w->spare);
    free(w->region_states);
    free(w->region_has_state);
    free(w);
}
