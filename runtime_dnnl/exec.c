/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/exec.c: runs a program in the host's scratch memory, one run at
 * a time. The memory objects of oneDNN are created in the first run, and again
 * when the scratch memory moves. A run sets the pointers of the region's inputs
 * and outputs, then executes the steps. These are the steps that the program
 * lists or, if it has a unit of C, those that the unit requests. */
#include "core/base/clock.h"
#include "runtime_dnnl/build.h"

/* The memory of a program, which one run at a time uses. */
struct byi_exec {
    const struct byi_program *program;
    struct byi_program *list_target; /* if not NULL: append steps to it instead
                                      * of running them */
    /* The host's scratch memory that the calls refer to: the temporaries, then
     * the scratch memory that all primitives share. NULL before the first run.
     */
    char *memory;
    struct byi_bound_call **calls;    /* indexed by step */
    const struct byoc_run_args *args; /* arguments of the current run */
    struct byoc_error *err;
};

/* The data at a place; NULL for inputs and outputs, whose memory the caller
 * passes for each run. */
static void *place_data(const struct byi_exec *exec, const struct byi_place *at)
{
    switch (at->kind) {
    case BYI_BUF_CONST:
        return (char *)exec->program->consts[at->index].data + at->offset;
    case BYI_BUF_COMPUTED:
        return (char *)exec->program->computed.at[at->index].data + at->offset;
    case BYI_BUF_TEMP:
        return exec->memory + at->offset;
    case BYI_BUF_INPUT:
    case BYI_BUF_OUTPUT:
        break;
    }
    return NULL;
}

/* Bytes of the temporaries; primitives may read beyond their end. */
static uint64_t temps_end(const struct byi_program *p)
{
    return (p->temp_bytes + 2 * BYI_ALIGN - 1) / BYI_ALIGN * BYI_ALIGN;
}

uint64_t byi_dn_exec_bytes(const struct byi_program *program)
{
    return temps_end(program) + program->scratch_bytes + BYI_ALIGN;
}

static enum byoc_status bind_step(struct byi_exec *exec,
                                  const struct byi_dnnl_step *step, int *args,
                                  void **data, struct byoc_error *err)
{
    const struct byi_program *p = exec->program;
    for (uint32_t i = 0; i < step->n_slots; i++) {
        args[i] = step->slots[i].arg;
        data[i] = place_data(exec, &step->slots[i].at);
    }
    return byi_bound_new(p->lib, p->prims.at[step->index], step->n_slots, args,
                         data, exec->memory + temps_end(p),
                         &exec->calls[step->index], err);
}

static void free_calls(struct byi_exec *exec)
{
    for (uint32_t i = 0; i < exec->program->steps.n; i++)
        byi_bound_free(&exec->calls[i]);
    exec->memory = NULL;
}

/* Bind all steps to this scratch memory. */
static enum byoc_status bind_steps(struct byi_exec *exec, void *memory,
                                   struct byoc_error *err)
{
    const struct byi_program *p = exec->program;
    uint32_t most = 1;
    free_calls(exec);
    exec->memory = memory;
    for (uint32_t i = 0; i < p->steps.n; i++)
        most = p->steps.at[i].n_slots > most ? p->steps.at[i].n_slots : most;
    int *args = byi_alloc(most, sizeof *args);
    void **data = byi_alloc(most, sizeof *data);
    enum byoc_status status =
        args && data
            ? BYOC_OK
            : byi_fail(err, BYOC_ENOMEM,
                       "out of memory for the calls of %u steps", p->steps.n);
    for (uint32_t i = 0; i < p->steps.n && status == BYOC_OK; i++)
        status = bind_step(exec, &p->steps.at[i], args, data, err);
    byi_release(args);
    byi_release(data);
    if (status != BYOC_OK)
        free_calls(exec);
    return status;
}

enum byoc_status byi_dn_exec_new(const struct byi_program *program,
                                 struct byi_exec **exec, struct byoc_error *err)
{
    struct byi_exec *x = byi_alloc(1, sizeof *x);
    if (x)
        x->calls = byi_alloc(program->steps.n, sizeof *x->calls);
    if (!x || !x->calls) {
        byi_release(x);
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a state");
    }
    x->program = program;
    *exec = x;
    return BYOC_OK;
}

/* Set the pointers of those arguments of a step that are inputs or outputs of
 * the region. */
static void set_pointers(const struct byi_exec *exec,
                         const struct byi_dnnl_step *step)
{
    for (uint32_t i = 0; i < step->n_slots; i++) {
        const struct byi_place *at = &step->slots[i].at;
        const struct byoc_view *view =
            at->kind == BYI_BUF_INPUT    ? &exec->args->inputs[at->index]
            : at->kind == BYI_BUF_OUTPUT ? &exec->args->outputs[at->index]
                                         : NULL;
        if (view)
            byi_bound_set(exec->calls[step->index], i,
                          (char *)view->data + at->offset);
    }
}

/* Run a step in bands together with those that join it. */
static void run_bands(const struct byi_exec *exec,
                      const struct byi_dnnl_step *step)
{
    const struct byi_program *p = exec->program;
    for (uint32_t i = step->index + 1; i < p->steps.n && p->steps.at[i].joins;
         i++)
        set_pointers(exec, &p->steps.at[i]);
    byi_bands_run(p->bands[step->index], exec->calls + step->index);
}

static enum byoc_status run_step(const struct byi_exec *exec,
                                 const struct byi_dnnl_step *step)
{
    const struct byi_program *p = exec->program;
    const struct byoc_run_args *args = exec->args;
    const uint64_t begin = args->trace ? byi_now_ns() : 0;
    if (args->cancel && __atomic_load_n(args->cancel, __ATOMIC_RELAXED))
        return byi_fail(exec->err, BYOC_ECANCELLED,
                        "cancelled after %u of %u primitives", step->index,
                        p->steps.n);
    const char *impl = byi_dn_step_impl(p, step->index);
    if (!impl)
        return BYOC_OK;
    set_pointers(exec, step);
    if (p->bands[step->index])
        run_bands(exec, step);
    else
        BYI_TRY(byi_bound_run(exec->calls[step->index], exec->err));
    if (args->trace)
        args->trace(args->trace_ctx, step->name, impl, step->sources, begin,
                    byi_now_ns());
    return BYOC_OK;
}

/* --- steps of a unit ------------------------------------------------------ */

/* Whether the place begins inside a buffer of the program. */
static bool is_in_buffer(const struct byi_program *p,
                         const struct byi_place *at)
{
    switch (at->kind) {
    case BYI_BUF_INPUT:
        return at->index < p->n_inputs &&
               at->offset < p->input_bytes[at->index];
    case BYI_BUF_OUTPUT:
        return at->index < p->n_outputs &&
               at->offset < p->output_bytes[at->index];
    case BYI_BUF_CONST:
        return at->index < p->n_consts &&
               at->offset < p->consts[at->index].bytes;
    case BYI_BUF_COMPUTED:
        return at->index < p->computed.n && p->computed.at[at->index].data &&
               at->offset < p->computed.at[at->index].bytes;
    case BYI_BUF_TEMP:
        return at->offset < p->temp_bytes;
    }
    return false;
}

static enum byoc_status list_step(struct byi_program *p,
                                  const struct byi_dnnl_step *step,
                                  struct byoc_error *err)
{
    if (p->steps.n == p->prims.n)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found another step, expected at most %u; compile "
                        "the model again",
                        p->name, p->prims.n);
    if (step->index != p->steps.n)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found step %u, expected step %u of %u; compile "
                        "the model again",
                        p->name, step->index, p->steps.n, p->prims.n);
    for (uint32_t i = 0; i < step->n_slots; i++)
        if (!is_in_buffer(p, &step->slots[i].at))
            return byi_fail(err, BYOC_EINVAL,
                            "%s: found argument %u of step %u outside of every "
                            "buffer, expected a place in one; compile the "
                            "model again",
                            p->name, i, step->index);
    BYI_PUSH(&p->steps, *step);
    return BYOC_OK;
}

/* Implements byi_operators.run. */
static int call_step(struct byi_exec *exec, const struct byi_dnnl_step *step)
{
    if (exec->list_target)
        return (int)list_step(exec->list_target, step, exec->err);
    return (int)run_step(exec, step);
}

/* The operators for a unit's run function, which calls only `run`. */
static const struct byi_operators unit_operators = {.run = call_step};

enum byoc_status byi_dn_exec_list(struct byi_program *program,
                                  struct byoc_error *err)
{
    struct byi_exec exec = {
        .program = program, .list_target = program, .err = err};
    return (enum byoc_status)program->unit->run(&unit_operators, &exec);
}

enum byoc_status byi_dn_exec_run(struct byi_exec *exec,
                                 const struct byoc_run_args *args,
                                 struct byoc_error *err)
{
    const struct byi_program *p = exec->program;
    exec->args = args;
    exec->err = err;
    if (exec->memory != args->scratch)
        BYI_TRY(bind_steps(exec, args->scratch, err));
    if (p->unit)
        return (enum byoc_status)p->unit->run(&unit_operators, exec);
    for (uint32_t i = 0; i < p->steps.n; i++)
        BYI_TRY(run_step(exec, &p->steps.at[i]));
    return BYOC_OK;
}

/* --- freeing, benchmarks -------------------------------------------------- */

void byi_dn_exec_free(struct byi_exec **exec)
{
    struct byi_exec *x = *exec;
    if (!x)
        return;
    free_calls(x);
    byi_release(x->calls);
    byi_release(x);
    *exec = NULL;
}

enum byoc_status byi_dn_exec_step(const struct byi_exec *exec, uint32_t step,
                                  struct byoc_error *err)
{
    return byi_bound_run(exec->calls[step], err);
}

void *byi_dn_exec_temps(const struct byi_exec *exec)
{
    return exec->memory;
}
