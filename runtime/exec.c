/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c: executes a plan. Runs steps in order; a step is a native or fused
 * kernel, a region, a call, a branch, or only a view. Calls use an explicit
 * stack of frames (call.c), not the C stack. If shapes vary, a step's type rule
 * is its shape function, and results are in blocks of the state's pool until
 * their last reader. */
#include "state.h"
#include "workers.h"

#include "core/base/guard.h"

#include <string.h>

/* This many inferences of types share an arena. */
enum { INFER_STEPS = 4096 };

static bool have_same_dims(const struct byi_tensor *a,
                           const struct byi_tensor *b)
{
    return byi_dims_equal(a->rank, a->dims, b->rank, b->dims);
}

/* --- memory of values whose size varies --------------------------------- */

/* Whether the step is a concatenation along the outermost axis, so that operand
 * 0 is the beginning of the result. */
static bool is_append(const struct byi_plan_func *f, const struct byi_frame *fr,
                      const struct byi_step *step)
{
    const struct byi_tensor *result = &fr->t[step->out[0]];
    if (step->op->id != BYI_OP_CONCATENATE ||
        f->values[step->out[0]].kind != BYI_V_TEMP)
        return false;
    return byi_elements(byi_attr_axis(step->attrs, result->rank),
                        result->dims) == 1;
}

/* Provide memory for a result whose first elements are operand 0. A loop
 * appends to its scan outputs in each iteration. So the result shares operand
 * 0's block if the rest of that block is free. Readers of operand 0 do not read
 * beyond operand 0's bytes. Otherwise, if operand 0 is a parameter, the new
 * block is 1.5 times as large as needed. A loop then copies each row a constant
 * number of times. */
static enum byoc_status provide_appended(struct byoc_state *s,
                                         const struct byi_plan_func *f,
                                         struct byi_frame *fr,
                                         const struct byi_step *step,
                                         struct byoc_error *err)
{
    const uint32_t v = step->out[0], root = f->values[step->in[0]].root;
    const struct byi_tensor *first = &fr->t[step->in[0]];
    const uint64_t bytes = byi_tensor_bytes(&fr->t[v]);
    uint32_t block = fr->block[root];
    if (!block || first->data != s->pool.at[block - 1].at)
        return byi_frame_block(s, fr, v, err);
    if (byi_pool_extend(&s->pool, block - 1, byi_tensor_bytes(first), bytes)) {
        fr->block[v] = block;
        fr->t[v].data = first->data;
        return BYOC_OK;
    }
    if (f->values[root].kind != BYI_V_INPUT ||
        byi_pool_take(&s->pool, bytes + bytes / 2, &block, err) != BYOC_OK)
        return byi_frame_block(s, fr, v, err);
    s->pool.at[block].filled = bytes;
    fr->block[v] = block + 1;
    fr->t[v].data = s->pool.at[block].at;
    return BYOC_OK;
}

/* --- shapes at run time --------------------------------------------- */

static enum byoc_status fail_type(const struct byi_plan_func *f,
                                  const struct byi_step *step, uint32_t i,
                                  const struct byi_type *inferred,
                                  struct byoc_error *err)
{
    char found[160], expected[160];
    const struct byi_type *declared = f->values[step->out[i]].type;
    return byi_fail(
        err, BYOC_ETYPE,
        "%s (%s): found %s as result %u, expected %s; check the inputs' shapes",
        step->name, step->sources, byi_type_text(found, sizeof found, inferred),
        i, byi_type_text(expected, sizeof expected, declared));
}

/* Set the dims of result i from its inferred type. */
static enum byoc_status set_dims(const struct byi_plan_func *f,
                                 struct byi_frame *fr,
                                 const struct byi_step *step, uint32_t i,
                                 const struct byi_type *inferred,
                                 struct byoc_error *err)
{
    const struct byi_type *declared = f->values[step->out[i]].type;
    struct byi_tensor *t = &fr->t[step->out[i]];
    if (inferred->kind != BYI_TENSOR || inferred->dtype != declared->dtype ||
        inferred->rank != declared->rank)
        return fail_type(f, step, i, inferred, err);
    for (uint32_t d = 0; d < inferred->rank; d++) {
        bool number = !BYI_IS_SYMBOL(declared->dims[d]);
        if (BYI_IS_SYMBOL(inferred->dims[d]) ||
            (number && inferred->dims[d] != declared->dims[d]))
            return fail_type(f, step, i, inferred, err);
        t->dims[d] = inferred->dims[d];
    }
    return BYOC_OK;
}

/* Prefix the error of a step with the model's nodes that the step came from. */
static enum byoc_status name_sources(enum byoc_status status,
                                     const struct byi_step *step,
                                     struct byoc_error *err)
{
    return step->sources[0] ? byi_prefix(err, "%s", step->sources) : status;
}

/* Infer the types of a step's results from the operands' sizes and values, and
 * provide memory for the results. */
static enum byoc_status infer_step(struct byoc_state *s,
                                   const struct byi_plan_func *f,
                                   struct byi_frame *fr,
                                   const struct byi_step *step,
                                   struct byoc_error *err)
{
    if (s->n_inferred++ % INFER_STEPS == 0)
        byi_arena_free(&s->infer);
    if (!s->infer)
        byi_keep(s->infer = byi_arena_new());
    for (uint32_t i = 0; i < step->n_in; i++) {
        const struct byi_tensor *t = &fr->t[step->in[i]];
        s->type_store[i] = (struct byi_type){.kind = BYI_TENSOR,
                                             .dtype = t->dtype,
                                             .rank = t->rank,
                                             .dims = t->dims};
        s->types[i] = &s->type_store[i];
        s->known[i] = t;
    }
    struct byi_infer infer = {.arena = s->infer,
                              .op = step->op,
                              .attrs = step->attrs,
                              .n_in = step->n_op_in,
                              .in = s->types,
                              .value = s->known,
                              .bounds = true,
                              .err = err};
    const struct byi_type *out;
    enum byoc_status status = byi_infer_type(&infer, &out);
    if (status != BYOC_OK)
        return name_sources(status, step, err);
    bool tuple = out->kind == BYI_TUPLE;
    if (step->n_out != (tuple ? out->n_fields : 1))
        return byi_fail(err, BYOC_ETYPE,
                        "%s (%s): found %u results, expected %u", step->name,
                        step->sources, tuple ? out->n_fields : 1, step->n_out);
    for (uint32_t i = 0; i < step->n_out; i++) {
        BYI_TRY(set_dims(f, fr, step, i, tuple ? out->fields[i] : out, err));
        BYI_TRY(is_append(f, fr, step)
                    ? provide_appended(s, f, fr, step, err)
                    : byi_frame_provide(s, fr, step->out[i], err));
    }
    return BYOC_OK;
}

/* --- native kernels ----------------------------------------------------- */

enum byoc_status byi_exec_provide_scratch(struct byoc_state *s, uint64_t bytes,
                                          struct byoc_error *err)
{
    if (bytes <= s->scratch_bytes)
        return BYOC_OK;
    void *memory = byi_memory_allocate(s->model->memory, bytes);
    if (!memory)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for %llu bytes of scratch",
                        (unsigned long long)bytes);
    byi_memory_release(s->model->memory, s->scratch);
    s->scratch = memory;
    s->scratch_bytes = bytes;
    return BYOC_OK;
}

/* Take the results' dims from the kernel, which may have found fewer elements
 * than the upper bound that inference gave. */
static enum byoc_status take_dims(const struct byi_plan_func *f,
                                  struct byi_frame *fr,
                                  const struct byi_step *step,
                                  const struct byi_tensor *out,
                                  struct byoc_error *err)
{
    for (uint32_t i = 0; i < step->n_out; i++) {
        struct byi_tensor *t = &fr->t[step->out[i]];
        if (have_same_dims(&out[i], t))
            continue;
        char found[128], expected[128];
        if (f->values[step->out[i]].fixed)
            return byi_fail(
                err, BYOC_ETYPE,
                "%s (%s): found shape %s of result %u, expected %s", step->name,
                step->sources,
                byi_dims_text(found, sizeof found, out[i].rank, out[i].dims), i,
                byi_dims_text(expected, sizeof expected, t->rank, t->dims));
        memcpy(t->dims, out[i].dims, sizeof t->dims);
    }
    return BYOC_OK;
}

struct byi_call byi_exec_call(struct byi_tensor *args,
                              const struct byi_frame *fr,
                              const struct byi_step *step, uint32_t threads)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        args[i] = fr->t[step->in[i]];
    struct byi_tensor *out = args + step->n_in;
    for (uint32_t i = 0; i < step->n_out; i++)
        out[i] = fr->t[step->out[i]];
    return (struct byi_call){.op = step->op,
                             .attrs = step->attrs,
                             .n_in = step->n_in,
                             .n_out = step->n_out,
                             .in = args,
                             .out = out,
                             .packed = step->packed,
                             .n_epilogue = step->n_epilogue,
                             .epilogue = step->epilogue,
                             .exact = step->exact,
                             .threads = threads};
}

static enum byoc_status run_kernel(struct byoc_state *s, struct byi_frame *fr,
                                   const struct byi_step *step,
                                   struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[fr->func];
    if (byi_op_has(step->op->id, BYI_TRAIT_LIST))
        return byi_list_run(s, fr, step, err);
    if (step->infer)
        BYI_TRY(infer_step(s, f, fr, step, err));
    if (step->view)
        return step->infer ? BYOC_OK
                           : byi_frame_provide(s, fr, step->out[0], err);
    if (step->infer && byi_row_planes_slice(s, fr, step))
        return BYOC_OK;
    if (fr->strided) {
        bool done;
        BYI_TRY(byi_row_planes_run(s, fr, step, &done, err));
        if (done)
            return BYOC_OK;
    }
    struct byi_call call = byi_exec_call(s->args, fr, step, s->model->threads);
    if (step->infer && step->kernel->scratch)
        BYI_TRY(byi_exec_provide_scratch(s, step->kernel->scratch(&call), err));
    call.scratch = s->scratch;
    call.strings = &s->strings;
    if (byi_op_has(step->op->id, BYI_TRAIT_RANDOM))
        call.draw = s->draws++;
    enum byoc_status status = step->kernel->run(&call, err);
    if (status != BYOC_OK)
        return name_sources(status, step, err);
    return step->infer ? take_dims(f, fr, step, call.out, err) : BYOC_OK;
}

/* --- regions ------------------------------------------------------------ */

/* Receives the events of a region's run. */
struct region_trace {
    struct byi_trace *trace;
    struct byi_cost_region costs;
};

static void trace_primitive(void *ctx, const char *name, const char *impl,
                            const char *sources, uint64_t begin_ns,
                            uint64_t end_ns)
{
    struct region_trace *r = ctx;
    struct byoc_event event = {.kind = "primitive",
                               .name = name,
                               .impl = impl,
                               .sources = sources,
                               .begin_ns = begin_ns,
                               .end_ns = end_ns};
    byi_cost_primitive(&r->costs, &event);
    byi_trace_event(r->trace, &event);
}

/* Pass a region's operands to the state's callback, or NULL if there are too
 * many. */
static void show_inputs(const struct byoc_state *s, const struct byi_frame *fr,
                        const struct byi_step *step)
{
    enum { MAX_INPUTS = 512 };
    const struct byi_tensor *in[MAX_INPUTS];
    const bool fits = step->n_in <= MAX_INPUTS;
    for (uint32_t i = 0; fits && i < step->n_in; i++)
        in[i] = &fr->t[step->in[i]];
    s->on_region(s->on_region_ctx, step->callee, step->n_in, fits ? in : NULL);
}

static enum byoc_status run_region(struct byoc_state *s, struct byi_frame *fr,
                                   const struct byi_step *step,
                                   struct byoc_error *err)
{
    if (s->on_region)
        show_inputs(s, fr, step);
    struct byoc_view *views = fr->views[fr->at];
    if (!views)
        return byi_call_func(s, fr, step, err); /* the twin */
    for (uint32_t i = 0; i < step->n_in; i++)
        views[i].data = fr->t[step->in[i]].data;
    for (uint32_t i = 0; i < step->n_out; i++)
        views[step->n_in + i].data = fr->t[step->out[i]].data;
    const struct byi_region *region = &s->specialisation->regions[step->callee];
    const struct byi_plugin *plugin = region->plugin;
    struct region_trace trace = {.trace = s->trace};
    struct byoc_run_args args = {
        .struct_size = sizeof args,
        .n_inputs = step->n_in,
        .n_outputs = step->n_out,
        .inputs = views,
        .outputs = views + step->n_in,
        .trace = s->trace ? trace_primitive : NULL,
        .trace_ctx = &trace,
        .cancel = &s->cancel,
        .scratch = plugin->backend->scratch_bytes ? s->scratch : NULL,
    };
    if (s->trace)
        byi_cost_begin(s->specialisation->plan, step->callee, &trace.costs);
    struct byoc_fail *fail = byi_plugin_run(
        plugin, region->compiled, s->work->region_states[step->callee], &args);
    byi_cost_end(&trace.costs);
    return byi_plugin_status(fail, plugin, step->name, err);
}

/* --- fused kernels ------------------------------------------------------ */

static enum byoc_status run_fused(struct byoc_state *s, struct byi_frame *fr,
                                  const struct byi_step *step,
                                  struct byoc_error *err)
{
    if (!s->model->kernels[step->callee])
        return byi_call_func(s, fr, step, err); /* the twin */
    for (uint32_t i = 0; i < step->n_in; i++)
        s->buffers[i] = fr->t[step->in[i]].data;
    for (uint32_t i = 0; i < step->n_out; i++)
        s->buffers[step->n_in + i] = fr->t[step->out[i]].data;
    s->model->kernels[step->callee](s->buffers, (int)s->model->threads);
    return BYOC_OK;
}

/* --- functions ---------------------------------------------------------- */

/* For each kind of step: the function that runs it, and its name in a trace. */
static const struct {
    enum byoc_status (*run)(struct byoc_state *s, struct byi_frame *fr,
                            const struct byi_step *step,
                            struct byoc_error *err);
    const char *name;
} step_kinds[] = {
    [BYI_STEP_OP] = {run_kernel, "kernel"},
    [BYI_STEP_REGION] = {run_region, "region"},
    [BYI_STEP_KERNEL] = {run_fused, "fused"},
    [BYI_STEP_CALL] = {byi_call_func, "call"},
    [BYI_STEP_IF] = {byi_call_if, "if"},
    [BYI_STEP_CLOSURE] = {byi_closure_make, "closure"},
    [BYI_STEP_APPLY] = {byi_call_apply, "call"},
    [BYI_STEP_CHOOSE] = {byi_closure_choose, "choose"},
};

static void trace_step(struct byoc_state *s, const struct byi_frame *fr,
                       const struct byi_step *step, uint64_t begin)
{
    struct byoc_event event = {.kind = step->view ? "view"
                                                  : step_kinds[step->kind].name,
                               .name = step->name,
                               .impl = "native",
                               .sources = step->sources,
                               .begin_ns = begin,
                               .end_ns = byi_now_ns()};
    if (step->kind == BYI_STEP_OP && step->kernel) {
        const struct byi_call call =
            byi_exec_call(s->args, fr, step, s->model->threads);
        const char *algorithm = byi_algorithm_of(&call);
        event.impl = algorithm ? algorithm : event.impl;
    }
    if (step->kind == BYI_STEP_REGION && fr->views[fr->at])
        event.impl = s->specialisation->plan->regions[step->callee].backend;
    if (step->kind == BYI_STEP_KERNEL && s->model->kernels[step->callee])
        event.impl = s->model->code_level;
    byi_cost_step(s->specialisation->plan, fr, step, &event);
    byi_trace_event(s->trace, &event);
}

/* Point outputs of fixed size, and aliases of these and of inputs, to the
 * caller's memory. */
static void bind_to_caller(const struct byi_plan_func *f, struct byi_frame *fr)
{
    for (uint32_t v = 0; v < f->n_values; v++) {
        const struct byi_value *value = &f->values[v];
        const struct byi_value *root = &f->values[value->root];
        if (root->kind == BYI_V_OUTPUT && root->fixed)
            fr->t[v].data = fr->dest[root->index].data;
        if (root->kind == BYI_V_INPUT && value->kind == BYI_V_ALIAS)
            fr->t[v].data = fr->t[value->root].data;
    }
}

enum byoc_status byi_exec_check_dest(const struct byi_plan_func *f,
                                     uint32_t output,
                                     const struct byi_tensor *t,
                                     const struct byi_tensor *dest,
                                     struct byoc_error *err)
{
    char found[128], expected[128];
    if (have_same_dims(t, dest))
        return BYOC_OK;
    return byi_fail(err, BYOC_ETYPE,
                    "output %u of @%s: found memory of shape %s, expected %s",
                    output, f->name,
                    byi_dims_text(found, sizeof found, dest->rank, dest->dims),
                    byi_dims_text(expected, sizeof expected, t->rank, t->dims));
}

/* Copy the results that were not computed in place. */
static enum byoc_status copy_results(struct byoc_state *s,
                                     const struct byi_plan_func *f,
                                     struct byi_frame *fr,
                                     struct byoc_error *err)
{
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        const struct byi_tensor *t = &fr->t[f->outputs[i]];
        const struct byi_tensor *dest = &fr->dest[i];
        const uint32_t root = f->values[f->outputs[i]].root;
        if (f->values[root].kind != BYI_V_OUTPUT && fr->strided)
            BYI_TRY(byi_row_planes_make_dense(s, fr, f->outputs[i], err));
        if (!dest->data || t->data == dest->data || fr->planes[root].placed)
            continue;
        BYI_TRY(byi_exec_check_dest(f, i, t, dest, err));
        uint64_t begin = s->trace ? byi_now_ns() : 0;
        memcpy(dest->data, t->data, byi_tensor_bytes(t));
        if (s->trace)
            byi_trace_event(s->trace,
                            &(struct byoc_event){
                                .kind = "copy",
                                .name = "copy",
                                .impl = "native",
                                .sources = f->name,
                                .begin_ns = begin,
                                .bytes = 2.0 * (double)byi_tensor_bytes(t)});
    }
    return BYOC_OK;
}

/* End a step: call `watch` for its results, and drop the
 * values that no later step reads. */
static void end_step(struct byoc_state *s, const struct byi_plan_func *f,
                     struct byi_frame *fr)
{
    const struct byi_step *step = &f->steps[fr->at++];
    const struct byi_watched watched = {.step = step->name,
                                        .sources = step->sources,
                                        .in_main = !fr->up,
                                        .owns = !step->view &&
                                                step->kind <= BYI_STEP_KERNEL};
    for (uint32_t i = 0; s->watch && !s->skips_unneeded && i < step->n_out; i++)
        if (!byi_value_is_object(&f->values[step->out[i]]))
            s->watch(s->watch_ctx, &watched, &fr->t[step->out[i]]);
    for (uint32_t i = 0; i < step->n_dead; i++)
        byi_frame_drop(s, fr, step->dead[i]);
}

/* Whether the step accepts operands in planes: it runs an operator, for which
 * byi_row_planes_run makes them dense if necessary, or calls a function. */
static bool reads_planes(const struct byi_frame *fr,
                         const struct byi_step *step)
{
    switch (step->kind) {
    case BYI_STEP_OP:
        return !byi_op_has(step->op->id, BYI_TRAIT_LIST);
    case BYI_STEP_REGION:
        return !fr->views[fr->at];
    case BYI_STEP_CALL:
        return true;
    default:
        return false;
    }
}

/* Run the next step of `fr`, the top activation, or enter the function that the
 * step calls. */
static enum byoc_status run_step(struct byoc_state *s,
                                 const struct byi_plan_func *f,
                                 struct byi_frame *fr, struct byoc_error *err)
{
    const struct byi_step *step = &f->steps[fr->at];
    uint64_t begin = s->trace ? byi_now_ns() : 0;
    if (fr->strided && !reads_planes(fr, step))
        BYI_TRY(byi_row_planes_make_all_dense(s, fr, step, err));
    BYI_TRY(step_kinds[step->kind].run(s, fr, step, err));
    BYI_TRY(byi_workers_check_fork(err));
    if (s->top == fr) {
        if (s->trace)
            trace_step(s, fr, step, begin);
        end_step(s, f, fr);
        return BYOC_OK;
    }
    if (s->top->up == fr)
        s->top->began = begin;
    bind_to_caller(&s->specialisation->plan->funcs[s->top->func], s->top);
    return BYOC_OK;
}

/* End the top activation, which has no steps left, and continue in its caller.
 */
static enum byoc_status leave_call(struct byoc_state *s,
                                   const struct byi_plan_func *f,
                                   struct byoc_error *err)
{
    struct byi_frame *fr = s->top->up;
    uint64_t began = s->top->began;
    BYI_TRY(copy_results(s, f, s->top, err));
    BYI_TRY(byi_call_leave(s, err));
    f = &s->specialisation->plan->funcs[fr->func];
    if (s->trace)
        trace_step(s, fr, &f->steps[fr->at], began);
    end_step(s, f, fr);
    return BYOC_OK;
}

/* Run the steps of main and of the functions that it calls. byi_guarded
 * calls this. */
static enum byoc_status run_steps(void *arg, struct byoc_error *err)
{
    struct byoc_state *s = arg;
    for (;;) {
        struct byi_frame *fr = s->top;
        const struct byi_plan_func *f =
            &s->specialisation->plan->funcs[fr->func];
        if (__atomic_load_n(&s->cancel, __ATOMIC_RELAXED))
            return byi_fail(err, BYOC_ECANCELLED,
                            "cancelled in @%s, after %u of %u steps", f->name,
                            fr->at, f->n_steps);
        if (fr->at < f->n_steps && s->skips_unneeded && !fr->up &&
            !s->needed[fr->at])
            end_step(s, f, fr);
        else if (fr->at < f->n_steps)
            BYI_TRY(run_step(s, f, fr, err));
        else if (fr->up)
            BYI_TRY(leave_call(s, f, err));
        else
            return copy_results(s, f, fr, err);
    }
}

/* End all activations, at the end of a run that succeeded or failed. main's
 * outputs stay for the caller, in blocks that main keeps until the next run. */
static void unwind(struct byoc_state *s)
{
    struct byi_frame *fr = s->top;
    while (fr->up) {
        struct byi_frame *up = fr->up;
        byi_frame_release(s, fr);
        fr = up;
    }
    fr->active = false;
    s->top = NULL;
}

void byi_exec_drop(struct byoc_state *s)
{
    struct byi_frame *fr = s->work->frames[0];
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[0];
    for (uint32_t v = 0; v < f->n_values; v++) {
        byi_object_release(s, fr->obj[v]);
        fr->obj[v] = NULL;
    }
}

void byi_exec_begin(struct byoc_state *s)
{
    if (s->work)
        byi_exec_drop(s);
    byi_pool_reset(&s->pool);
    byi_store_reset(&s->strings);
    byi_arena_free(&s->value_trees);
}

enum byoc_status byi_exec_main(struct byoc_state *s, struct byoc_error *err)
{
    struct byi_frame *fr = s->work->frames[0];
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[0];
    memset(fr->block, 0, f->n_values * sizeof *fr->block);
    fr->active = true;
    fr->at = 0;
    fr->up = NULL;
    s->top = fr;
    s->depth = 1;
    s->calls = 0;
    s->n_inferred = 0;
    bind_to_caller(f, fr);
    struct byi_guard guard;
    const enum byoc_status status = byi_guarded(&guard, run_steps, s, err);
    __atomic_store_n(&s->cancel, 0, __ATOMIC_RELAXED);
    unwind(s);
    byi_arena_free(&s->infer);
    byi_guard_leave(&guard);
    return status;
}

void byoc_state_cancel(struct byoc_state *state)
{
    __atomic_store_n(&state->cancel, 1, __ATOMIC_RELAXED);
}

void byoc_internal_state_watch_regions(struct byoc_state *state,
                                       byi_region_fn on_region, void *ctx)
{
    state->on_region = on_region;
    state->on_region_ctx = ctx;
}

void byoc_internal_state_watch(struct byoc_state *state, byi_watch_fn watch,
                               void *ctx)
{
    state->watch = watch;
    state->watch_ctx = ctx;
}
