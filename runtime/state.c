/* state.c: the memory of one run at a time, and the way in: callers' DLPack
 * views are checked against the model's signature, bound, and given back.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <omp.h>

/* --- making a state ----------------------------------------------------- */

static enum byoc_status no_memory(struct byoc_error *err, uint64_t bytes)
{
    return byi_fail(err, BYOC_ENOMEM, "no memory for a state (%llu bytes)",
                    (unsigned long long)bytes);
}

/* What a step may call: up to two functions. */
static uint32_t list_callees(const struct byoc_model *model,
                             const struct byi_step *step, uint32_t callees[2])
{
    switch (step->kind) {
    case BYI_STEP_OP:
    case BYI_STEP_APPLY:
    case BYI_STEP_CHOOSE:
        return 0;
    case BYI_STEP_REGION:
        callees[0] = model->plan->parts[step->callee].twin;
        return model->regions[step->callee].plugin ? 0 : 1;
    case BYI_STEP_KERNEL:
        callees[0] = model->plan->kernels[step->callee].twin;
        return model->kernels[step->callee] ? 0 : 1;
    case BYI_STEP_CALL:
    case BYI_STEP_CLOSURE:
        callees[0] = step->callee;
        return 1;
    case BYI_STEP_IF:
        callees[0] = step->callee;
        callees[1] = step->other;
        return 2;
    }
    byi_unreachable();
}

/* Make the first frame of main and of all that it may call: functions, and
 * the twins of regions without a vendor. `list` has room for all. */
static enum byoc_status make_frames(struct byoc_state *s, uint32_t *list,
                                    struct byoc_error *err)
{
    const struct byi_plan_tables *plan = s->model->plan;
    uint32_t n = 0;
    s->frames[0] = byi_frame_new(s->model, 0);
    list[n++] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_plan_func *f = &plan->funcs[list[i]];
        if (!s->frames[list[i]])
            return no_memory(err, f->arena);
        for (uint32_t k = 0; k < f->n_steps; k++) {
            uint32_t callees[2];
            uint32_t more = list_callees(s->model, &f->steps[k], callees);
            for (uint32_t c = 0; c < more; c++) {
                if (s->frames[callees[c]])
                    continue;
                s->frames[callees[c]] = byi_frame_new(s->model, callees[c]);
                list[n++] = callees[c];
                if (!s->frames[callees[c]])
                    return no_memory(err, plan->funcs[callees[c]].arena);
            }
        }
    }
    return BYOC_OK;
}

/* Memory for outputs of callers who bring none. */
static enum byoc_status init_outputs(struct byoc_state *s,
                                     struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        const struct byi_value *v = &f->values[f->outputs[i]];
        if (!v->fixed)
            continue;
        uint64_t bytes = byi_type_bytes(v->type);
        s->out[i] = byi_acquire(bytes + BYI_ALIGN);
        if (!s->out[i])
            return no_memory(err, bytes);
    }
    return BYOC_OK;
}

/* Scratch for the neediest step of fixed shapes, and room for its operands. */
static enum byoc_status init_scratch(struct byoc_state *s,
                                     struct byoc_error *err)
{
    const struct byi_plan_tables *plan = s->model->plan;
    uint32_t args = 1;
    for (uint32_t f = 0; f < plan->n_funcs; f++)
        args = plan->funcs[f].max_args > args ? plan->funcs[f].max_args : args;
    s->args = byi_alloc(args, sizeof *s->args);
    s->buffers = byi_alloc(args, sizeof *s->buffers);
    s->types = byi_alloc(args, sizeof *s->types);
    s->type_store = byi_alloc(args, sizeof *s->type_store);
    s->known = byi_alloc(args, sizeof *s->known);
    if (!s->args || !s->buffers || !s->types || !s->type_store || !s->known)
        return no_memory(err, args);
    for (uint32_t f = 0; f < plan->n_funcs; f++) {
        for (uint32_t k = 0; s->frames[f] && k < plan->funcs[f].n_steps; k++) {
            const struct byi_step *step = &plan->funcs[f].steps[k];
            uint64_t bytes = byi_exec_scratch(s, s->frames[f], step);
            s->scratch_bytes =
                bytes > s->scratch_bytes ? bytes : s->scratch_bytes;
        }
    }
    s->scratch = byi_acquire(s->scratch_bytes + BYI_ALIGN);
    return s->scratch ? BYOC_OK : no_memory(err, s->scratch_bytes);
}

static enum byoc_status init_frames(struct byoc_state *s,
                                    struct byoc_error *err)
{
    uint32_t *list = byi_alloc(s->model->plan->n_funcs, sizeof *list);
    if (!list)
        return no_memory(err, s->model->plan->n_funcs);
    enum byoc_status status = make_frames(s, list, err);
    free(list);
    return status;
}

static enum byoc_status init_regions(struct byoc_state *s,
                                     struct byoc_error *err)
{
    const struct byoc_model *model = s->model;
    for (uint32_t i = 0; i < model->plan->n_parts; i++) {
        const struct byi_plugin *plugin = model->regions[i].plugin;
        if (!plugin)
            continue;
        struct byoc_fail *fail = plugin->backend->state_new(
            &plugin->host, model->regions[i].compiled, &s->region_states[i]);
        BYI_TRY(
            byi_plugin_status(fail, plugin, model->plan->parts[i].symbol, err));
        s->region_made[i] = true;
    }
    return BYOC_OK;
}

static uint64_t memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || size <= 0)
        return UINT64_C(1) << 40;
    return (uint64_t)pages * (uint64_t)size;
}

static enum byoc_status init_state(struct byoc_state *s, struct byoc_error *err)
{
    const struct byi_plan_tables *plan = s->model->plan;
    s->pool.limit = memory_limit();
    s->max_depth = BYI_PLAN_MAX_ACTIVE;
    s->max_calls = BYI_PLAN_MAX_CALLS;
    s->frames = byi_alloc(plan->n_funcs, sizeof *s->frames);
    s->spare = byi_alloc(plan->n_funcs, sizeof *s->spare);
    s->out = byi_alloc(plan->funcs[0].n_outputs + 1u, sizeof *s->out);
    s->dims = byi_alloc(plan->n_symbols + 1u, sizeof *s->dims);
    s->region_states = byi_alloc(plan->n_parts + 1u, sizeof(void *));
    s->region_made = byi_alloc(plan->n_parts + 1u, sizeof *s->region_made);
    if (!s->frames || !s->spare || !s->out || !s->dims || !s->region_states ||
        !s->region_made)
        return no_memory(err, plan->n_funcs);
    BYI_TRY(init_frames(s, err));
    BYI_TRY(init_outputs(s, err));
    BYI_TRY(init_scratch(s, err));
    return init_regions(s, err);
}

enum byoc_status byoc_state_new(const struct byoc_model *model,
                                struct byoc_state **state,
                                struct byoc_error *err)
{
    *state = NULL;
    struct byoc_state *s = byi_alloc(1, sizeof *s);
    if (!s)
        return no_memory(err, sizeof *s);
    s->model = model;
    enum byoc_status status = init_state(s, err);
    if (status != BYOC_OK) {
        byoc_state_free(&s);
        return status;
    }
    *state = s;
    return BYOC_OK;
}

static void free_spare(struct byi_frame *fr)
{
    while (fr) {
        struct byi_frame *next = fr->next;
        byi_release(fr);
        fr = next;
    }
}

void byoc_state_free(struct byoc_state **state)
{
    struct byoc_state *s = *state;
    *state = NULL;
    if (!s)
        return;
    const struct byi_plan_tables *plan = s->model->plan;
    for (uint32_t i = 0; s->region_made && i < plan->n_parts; i++) {
        const struct byi_region *region = &s->model->regions[i];
        if (s->region_made[i])
            region->plugin->backend->state_free(
                &region->plugin->host, region->compiled, s->region_states[i]);
    }
    for (uint32_t f = 0; s->frames && s->spare && f < plan->n_funcs; f++) {
        byi_release(s->frames[f]);
        free_spare(s->spare[f]);
    }
    for (uint32_t i = 0; s->out && i < plan->funcs[0].n_outputs; i++)
        byi_release(s->out[i]);
    byi_pool_free(&s->pool);
    byi_release(s->scratch);
    free(s->args);
    free(s->buffers);
    free(s->types);
    free(s->type_store);
    free(s->known);
    free(s->frames);
    free(s->spare);
    free(s->out);
    free(s->dims);
    free(s->region_states);
    free(s->region_made);
    byi_trace_close(&s->trace, NULL);
    free(s);
}

/* --- callers' views ----------------------------------------------------- */

static bool is_dense(const DLTensor *view)
{
    int64_t step = 1;
    for (int d = view->ndim - 1; view->strides && d >= 0; d--) {
        if (view->shape[d] != 1 && view->strides[d] != step)
            return false;
        step *= view->shape[d];
    }
    return true;
}

/* What holds of inputs and of outputs that bring memory: dtype, rank, fixed
 * dims, layout, alignment. *t gets data and dims. */
static enum byoc_status check_view(const DLTensor *view, const char *what,
                                   const struct byoc_io *io,
                                   struct byi_tensor *t, struct byoc_error *err)
{
    DLDataType want = byoc_dtype_dlpack(io->dtype);
    const char *given = byoc_dtype_name(byi_dtype_of_dlpack(view->dtype));
    if (view->device.device_type != kDLCPU)
        return byi_fail(err, BYOC_EINVAL,
                        "%s \"%s\" is on DLPack device %d, expected CPU memory",
                        what, io->name, (int)view->device.device_type);
    if (view->dtype.code != want.code || view->dtype.bits != want.bits ||
        view->dtype.lanes != 1)
        return byi_fail(err, BYOC_ETYPE,
                        "%s \"%s\": found %s, expected %s; as DLPack {%u, "
                        "%u, %u} and {%u, %u, 1}",
                        what, io->name, given ? given : "an unknown type",
                        byoc_dtype_name(io->dtype), view->dtype.code,
                        view->dtype.bits, view->dtype.lanes, want.code,
                        want.bits);
    bool fits = view->ndim >= 0 && (uint32_t)view->ndim == io->rank;
    for (uint32_t d = 0; fits && d < io->rank; d++) {
        fits = io->dims[d] < 0 ? view->shape[d] >= 0
                               : view->shape[d] == io->dims[d];
        t->dims[d] = view->shape[d];
    }
    if (!fits) {
        char found[128], expected[128];
        uint32_t rank = view->ndim < 0 || view->ndim > BYI_MAX_RANK
                            ? 0
                            : (uint32_t)view->ndim;
        return byi_fail(
            err, BYOC_ETYPE,
            "%s \"%s\" has shape %s of rank %d, expected %s (-1: any size)",
            what, io->name,
            byi_dims_text(found, sizeof found, rank, view->shape), view->ndim,
            byi_dims_text(expected, sizeof expected, io->rank, io->dims));
    }
    t->dtype = io->dtype;
    t->rank = io->rank;
    if (byi_tensor_bytes(t) > (UINT64_C(1) << 44))
        return byi_fail(err, BYOC_ELIMIT, "%s \"%s\" has more than 16 TiB",
                        what, io->name);
    if (!is_dense(view))
        return byi_fail(err, BYOC_EINVAL,
                        "%s \"%s\" is not dense and row-major; copy it first",
                        what, io->name);
    t->data = view->data ? (char *)view->data + view->byte_offset : NULL;
    if (!t->data && byi_tensor_bytes(t) > 0)
        return byi_fail(err, BYOC_EINVAL, "%s \"%s\" has no data", what,
                        io->name);
    if ((uintptr_t)t->data % byoc_dtype_size(io->dtype) != 0)
        return byi_fail(err, BYOC_EINVAL,
                        "%s \"%s\" is not aligned to its elements' %u bytes",
                        what, io->name, byoc_dtype_size(io->dtype));
    return BYOC_OK;
}

/* A symbol has one value in a run. */
static enum byoc_status bind_symbols(struct byoc_state *s, uint32_t input,
                                     const struct byi_tensor *t,
                                     struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    const struct byi_type *type = f->values[f->inputs[input]].type;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!BYI_IS_SYMBOL(type->dims[d]))
            continue;
        int64_t *bound = &s->dims[-1 - type->dims[d]];
        if (*bound >= 0 && *bound != t->dims[d])
            return byi_fail(
                err, BYOC_ETYPE,
                "input \"%s\": dim %u is %lld, but %s is %lld in "
                "an input before it",
                s->model->inputs[input].name, d, (long long)t->dims[d],
                s->model->plan->symbols[-1 - type->dims[d]], (long long)*bound);
        *bound = t->dims[d];
    }
    return BYOC_OK;
}

static enum byoc_status bind_inputs(struct byoc_state *s,
                                    const DLTensor *inputs,
                                    struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    for (uint32_t i = 0; i < s->model->plan->n_symbols; i++)
        s->dims[i] = -1;
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        struct byi_tensor *t = &s->frames[0]->t[f->inputs[i]];
        BYI_TRY(check_view(&inputs[i], "input", &s->model->inputs[i], t, err));
        BYI_TRY(bind_symbols(s, i, t, err));
    }
    return BYOC_OK;
}

static bool overlaps(const struct byi_tensor *a, const struct byi_tensor *b)
{
    const char *x = a->data, *y = b->data;
    return x < y + byi_tensor_bytes(b) && y < x + byi_tensor_bytes(a);
}

/* Results are written while operands are still read. */
static enum byoc_status check_overlap(const struct byoc_state *s, uint32_t out,
                                      struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    const struct byi_frame *fr = s->frames[0];
    for (uint32_t i = 0; i < f->n_inputs; i++)
        if (overlaps(&fr->dest[out], &fr->t[f->inputs[i]]))
            return byi_fail(err, BYOC_EINVAL,
                            "output \"%s\" overlaps input \"%s\" in memory",
                            s->model->outputs[out].name,
                            s->model->inputs[i].name);
    for (uint32_t i = 0; i < out; i++)
        if (fr->dest[i].data && overlaps(&fr->dest[out], &fr->dest[i]))
            return byi_fail(err, BYOC_EINVAL,
                            "output \"%s\" overlaps output \"%s\" in memory",
                            s->model->outputs[out].name,
                            s->model->outputs[i].name);
    return BYOC_OK;
}

static enum byoc_status bind_outputs(struct byoc_state *s,
                                     const DLTensor *outputs,
                                     struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    struct byi_frame *fr = s->frames[0];
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        fr->dest[i].data = NULL;
        if (outputs[i].data) {
            BYI_TRY(check_view(&outputs[i], "output", &s->model->outputs[i],
                               &fr->dest[i], err));
            BYI_TRY(check_overlap(s, i, err));
        } else if (s->out[i]) {
            fr->dest[i] = fr->t[f->outputs[i]];
            fr->dest[i].data = s->out[i];
        }
    }
    return BYOC_OK;
}

/* Fill in the views of callers who brought no memory. A result that lives in
 * an input or a constant is copied: it must stay until the next run. */
static enum byoc_status hand_over(struct byoc_state *s, DLTensor *outputs,
                                  struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    struct byi_frame *fr = s->frames[0];
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        uint32_t v = f->outputs[i], root = f->values[v].root;
        struct byi_tensor *t = &fr->t[v];
        if (outputs[i].data)
            continue;
        void *data = fr->dest[i].data;
        if (!data && fr->block[root])
            data = t->data;
        if (!data) {
            uint32_t block;
            BYI_TRY(byi_pool_take(&s->pool, byi_tensor_bytes(t), &block, err));
            data = s->pool.at[block].at;
            memcpy(data, t->data, byi_tensor_bytes(t));
        }
        outputs[i] = (DLTensor){.data = data,
                                .device = {kDLCPU, 0},
                                .ndim = (int)t->rank,
                                .dtype = byoc_dtype_dlpack(t->dtype),
                                .shape = t->dims};
    }
    return BYOC_OK;
}

static enum byoc_status run_bound(struct byoc_state *s, DLTensor *outputs,
                                  struct byoc_error *err)
{
    int before = omp_get_max_threads();
    omp_set_num_threads((int)s->model->threads);
    enum byoc_status status = byi_exec_main(s, err);
    omp_set_num_threads(before);
    return status == BYOC_OK ? hand_over(s, outputs, err) : status;
}

enum byoc_status byoc_run(struct byoc_state *state, const DLTensor *inputs,
                          uint32_t n_inputs, DLTensor *outputs,
                          uint32_t n_outputs, struct byoc_error *err)
{
    const struct byi_plan_func *f = &state->model->plan->funcs[0];
    if (n_inputs != f->n_inputs || n_outputs != f->n_outputs)
        return byi_fail(err, BYOC_EINVAL,
                        "%u inputs and %u outputs were given, but the model "
                        "has %u and %u",
                        n_inputs, n_outputs, f->n_inputs, f->n_outputs);
    BYI_TRY(bind_inputs(state, inputs, err));
    BYI_TRY(bind_outputs(state, outputs, err));
    uint64_t begin = state->trace ? byi_trace_now() : 0;
    enum byoc_status status = run_bound(state, outputs, err);
    if (state->trace)
        byi_trace_event(state->trace, "run", f->name, "", "", begin,
                        byi_trace_now());
    return status;
}

enum byoc_status byoc_state_trace(struct byoc_state *state, const char *path,
                                  struct byoc_error *err)
{
    BYI_TRY(byi_trace_close(&state->trace, err));
    return path ? byi_trace_open(path, &state->trace, err) : BYOC_OK;
}
