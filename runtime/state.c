/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: creates, traces and frees states; a state is the memory of one run
 * at a time. */
#include "state.h"

#include "core/base/guard.h"

#include <stdlib.h>

/* Allocate memory for outputs of fixed size, for callers that provide none. */
static enum byoc_status init_outputs(struct byoc_state *s,
                                     struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        const struct byi_value *v = &f->values[f->outputs[i]];
        if (!v->fixed)
            continue;
        uint64_t bytes = byi_type_bytes(v->type);
        s->out[i] = byi_memory_allocate(s->model->memory, bytes + BYI_ALIGN);
        if (!s->out[i])
            return byi_fail_memory(err, bytes, "a state");
    }
    return BYOC_OK;
}

/* Allocate memory for the operands and results of any step. */
static enum byoc_status init_args(struct byoc_state *s, struct byoc_error *err)
{
    const uint32_t args = s->model->plan->max_args + 1;
    s->args = byi_alloc(args, sizeof *s->args);
    s->buffers = byi_alloc(args, sizeof *s->buffers);
    s->types = byi_alloc(args, sizeof *s->types);
    s->type_store = byi_alloc(args, sizeof *s->type_store);
    s->known = byi_alloc(args, sizeof *s->known);
    if (!s->args || !s->buffers || !s->types || !s->type_store || !s->known)
        return byi_fail_memory(
            err,
            args * (sizeof *s->args + sizeof *s->buffers + sizeof *s->types +
                    sizeof *s->type_store + sizeof *s->known),
            "a state");
    return BYOC_OK;
}

static enum byoc_status init_state(struct byoc_state *s, struct byoc_error *err)
{
    const struct byi_plan_tables *plan = s->model->plan;
    s->pool.limit = s->strings.limit = byi_memory_limit();
    s->pool.memory = s->model->memory;
    s->max_depth = BYI_PLAN_MAX_ACTIVE;
    s->max_calls = BYI_PLAN_MAX_CALLS;
    s->out = byi_alloc(plan->funcs[0].n_outputs + 1u, sizeof *s->out);
    s->dims = byi_alloc(plan->n_symbols + 1u, sizeof *s->dims);
    s->inputs = byi_alloc(plan->funcs[0].n_inputs + 1u, sizeof *s->inputs);
    s->planes = byi_alloc(plan->funcs[0].n_inputs + 1u, sizeof *s->planes);
    s->results = byi_alloc(plan->funcs[0].n_outputs + 1u, sizeof *s->results);
    s->in_at = byi_alloc(plan->funcs[0].n_inputs + 1u, sizeof *s->in_at);
    s->out_at = byi_alloc(plan->funcs[0].n_outputs + 1u, sizeof *s->out_at);
    if (!s->out || !s->dims || !s->inputs || !s->planes || !s->results ||
        !s->in_at || !s->out_at)
        return byi_fail_memory(
            err,
            plan->n_symbols * sizeof *s->dims +
                plan->funcs[0].n_inputs *
                    (sizeof *s->inputs + sizeof *s->planes + sizeof *s->in_at) +
                plan->funcs[0].n_outputs *
                    (sizeof *s->out + sizeof *s->results + sizeof *s->out_at),
            "a state");
    BYI_TRY(init_args(s, err));
    if (s->model->cache)
        return BYOC_OK; /* the first run allocates the memory */
    BYI_TRY(init_outputs(s, err));
    s->specialisation = &s->model->base;
    BYI_TRY(byi_work_new(s->specialisation, &s->work, err));
    return byi_exec_provide_scratch(s, s->work->scratch + BYI_ALIGN, err);
}

enum byoc_status byoc_state_new(const struct byoc_model *model,
                                struct byoc_state **state,
                                struct byoc_error *err)
{
    *state = NULL;
    struct byoc_state *s = byi_alloc(1, sizeof *s);
    if (!s)
        return byi_fail_memory(err, sizeof *s, "a state");
    s->model = model;
    const enum byoc_status status =
        byi_memory_explain(model->memory, init_state(s, err), err);
    if (status != BYOC_OK) {
        byoc_state_free(&s);
        return status;
    }
    *state = s;
    return BYOC_OK;
}

void byoc_state_free(struct byoc_state **state)
{
    struct byoc_state *s = *state;
    *state = NULL;
    if (!s)
        return;
    byi_runners_wait(s);
    const struct byi_plan_tables *plan = s->model->plan;
    byi_exec_begin(s); /* frees the results of the last run */
    if (!s->model->cache)
        byi_work_free(&s->work);
    byi_arena_free(&s->value_trees);
    for (uint32_t i = 0; s->out && i < plan->funcs[0].n_outputs; i++)
        byi_memory_release(s->model->memory, s->out[i]);
    byi_pool_free(&s->pool);
    byi_store_free(&s->strings);
    byi_memory_release(s->model->memory, s->scratch);
    free(s->planes);
    free(s->args);
    free(s->buffers);
    free(s->types);
    free(s->type_store);
    free(s->known);
    free(s->out);
    free(s->dims);
    free(s->inputs);
    free(s->results);
    free(s->in_at);
    free(s->out_at);
    free(s->needed);
    byi_trace_set_callback(&s->trace, NULL, NULL, NULL);
    byi_trace_file(&s->trace, NULL, NULL);
    free(s);
}

enum byoc_status byoc_state_trace(struct byoc_state *state, const char *path,
                                  struct byoc_error *err)
{
    return byi_trace_file(&state->trace, path, err);
}

enum byoc_status byoc_state_profile(struct byoc_state *state,
                                    void (*use)(void *ctx,
                                                const struct byoc_event *event),
                                    void *ctx, struct byoc_error *err)
{
    return byi_trace_set_callback(&state->trace, use, ctx, err);
}
