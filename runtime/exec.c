/* exec.c: the executor: steps in order, each a native kernel, a vendor's
 * region, a call, a branch, or nothing but a view. Where shapes vary, a step's
 * type rule is its shape function, and results get blocks of the state's pool
 * that go back after their last reader.
 */
#include "plan.h"

#include <string.h>

static enum byoc_status run_func(struct byoc_state *s, uint32_t func,
                                 struct byoc_error *err);

static uint64_t bytes_of(const struct byi_tensor *t)
{
    return byi_tensor_bytes(t);
}

static bool same_dims(const struct byi_tensor *a, const struct byi_tensor *b)
{
    return byi_dims_equal(a->rank, a->dims, b->rank, b->dims);
}

/* --- memory of values whose size varies --------------------------------- */

static enum byoc_status take_block(struct byoc_state *s, struct byi_frame *fr,
                                   uint32_t v, struct byoc_error *err)
{
    uint64_t bytes = bytes_of(&fr->t[v]);
    uint32_t block;
    BYI_TRY(byi_pool_take(&s->pool, bytes, &block, err));
    fr->block[v] = block + 1;
    fr->t[v].data = s->pool.at[block].at;
    return BYOC_OK;
}

static void give_block(struct byoc_state *s, struct byi_frame *fr, uint32_t v)
{
    if (fr->block[v])
        byi_pool_give(&s->pool, fr->block[v] - 1);
    fr->block[v] = 0;
}

/* Memory for result `v`, whose dims are set. */
static enum byoc_status provide(struct byoc_state *s,
                                const struct byi_plan_func *f,
                                struct byi_frame *fr, uint32_t v,
                                struct byoc_error *err)
{
    const struct byi_value *value = &f->values[v];
    if (value->kind == BYI_V_ALIAS) {
        fr->t[v].data = fr->t[value->root].data;
        return BYOC_OK;
    }
    if (value->fixed)
        return BYOC_OK;
    if (value->kind == BYI_V_OUTPUT) {
        const struct byi_tensor *dest = &fr->dest[value->index];
        if (dest->data && same_dims(dest, &fr->t[v])) {
            fr->t[v].data = dest->data;
            return BYOC_OK;
        }
    }
    return take_block(s, fr, v, err);
}

/* --- shapes as the run goes --------------------------------------------- */

static enum byoc_status type_fault(const struct byi_plan_func *f,
                                   const struct byi_step *step, uint32_t i,
                                   const struct byi_type *have,
                                   struct byoc_error *err)
{
    char found[128];
    const struct byi_type *want = f->values[step->out[i]].type;
    byi_dims_text(found, sizeof found, have->rank, have->dims);
    return byi_fail(err, BYOC_ETYPE,
                    "%s (%s): result %u has shape %s, which is not the %u "
                    "dims of %s the model was compiled for; check the "
                    "inputs' shapes",
                    step->name, step->sources, i, found, want->rank,
                    byoc_dtype_name(want->dtype));
}

/* Set the dims of result i from its inferred type. */
static enum byoc_status set_dims(const struct byi_plan_func *f,
                                 struct byi_frame *fr,
                                 const struct byi_step *step, uint32_t i,
                                 const struct byi_type *have,
                                 struct byoc_error *err)
{
    const struct byi_type *want = f->values[step->out[i]].type;
    struct byi_tensor *t = &fr->t[step->out[i]];
    if (have->kind != BYI_TENSOR || have->dtype != want->dtype ||
        have->rank != want->rank)
        return type_fault(f, step, i, have, err);
    for (uint32_t d = 0; d < have->rank; d++) {
        bool number = !BYI_IS_SYMBOL(want->dims[d]);
        if (BYI_IS_SYMBOL(have->dims[d]) ||
            (number && have->dims[d] != want->dims[d]))
            return type_fault(f, step, i, have, err);
        t->dims[d] = have->dims[d];
    }
    return BYOC_OK;
}

static int64_t refuse_fresh(void *ctx)
{
    (void)ctx;
    return -1; /* set_dims refuses what stays unknown with all values known */
}

static enum byoc_status infer_step(struct byoc_state *s,
                                   const struct byi_plan_func *f,
                                   struct byi_frame *fr,
                                   const struct byi_step *step,
                                   struct byoc_error *err)
{
    if (!s->infer)
        s->infer = byi_arena_new();
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
                              .n_in = step->n_in,
                              .in = s->types,
                              .value = s->known,
                              .fresh = refuse_fresh,
                              .err = err};
    const struct byi_type *out;
    enum byoc_status status = byi_infer_type(&infer, &out);
    if (status != BYOC_OK)
        return byi_prefix(err, "%s", step->sources);
    bool tuple = out->kind == BYI_TUPLE;
    if (step->n_out != (tuple ? out->n_fields : 1))
        return type_fault(f, step, 0, f->values[step->out[0]].type, err);
    for (uint32_t i = 0; i < step->n_out; i++) {
        BYI_TRY(set_dims(f, fr, step, i, tuple ? out->fields[i] : out, err));
        BYI_TRY(provide(s, f, fr, step->out[i], err));
    }
    return BYOC_OK;
}

/* --- native kernels ----------------------------------------------------- */

static enum byoc_status need_scratch(struct byoc_state *s, uint64_t bytes,
                                     struct byoc_error *err)
{
    if (bytes <= s->scratch_bytes)
        return BYOC_OK;
    void *fresh = byi_acquire(bytes);
    if (!fresh)
        return byi_fail(err, BYOC_ENOMEM, "no memory for %llu bytes of scratch",
                        (unsigned long long)bytes);
    byi_release(s->scratch);
    s->scratch = fresh;
    s->scratch_bytes = bytes;
    return BYOC_OK;
}

/* A kernel may have found fewer elements than the bound it was given. */
static enum byoc_status take_dims(const struct byi_plan_func *f,
                                  struct byi_frame *fr,
                                  const struct byi_step *step,
                                  const struct byi_tensor *out,
                                  struct byoc_error *err)
{
    for (uint32_t i = 0; i < step->n_out; i++) {
        struct byi_tensor *t = &fr->t[step->out[i]];
        if (same_dims(&out[i], t))
            continue;
        if (f->values[step->out[i]].fixed)
            return byi_fail(err, BYOC_ETYPE,
                            "%s (%s): result %u is smaller than the shape "
                            "the model was compiled for",
                            step->name, step->sources, i);
        memcpy(t->dims, out[i].dims, sizeof t->dims);
    }
    return BYOC_OK;
}

static struct byi_call make_call(struct byoc_state *s,
                                 const struct byi_frame *fr,
                                 const struct byi_step *step)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        s->args[i] = fr->t[step->in[i]];
    struct byi_tensor *out = s->args + step->n_in;
    for (uint32_t i = 0; i < step->n_out; i++)
        out[i] = fr->t[step->out[i]];
    return (struct byi_call){.op = step->op,
                             .attrs = step->attrs,
                             .n_in = step->n_in,
                             .n_out = step->n_out,
                             .in = s->args,
                             .out = out,
                             .threads = s->model->threads};
}

uint64_t byi_exec_scratch(struct byoc_state *s, const struct byi_frame *fr,
                          const struct byi_step *step)
{
    if (step->kind != BYI_STEP_OP || step->infer || step->view ||
        !step->kernel->scratch)
        return 0;
    struct byi_call call = make_call(s, fr, step);
    return step->kernel->scratch(&call);
}

static enum byoc_status run_kernel(struct byoc_state *s,
                                   const struct byi_plan_func *f,
                                   struct byi_frame *fr,
                                   const struct byi_step *step,
                                   struct byoc_error *err)
{
    if (step->infer)
        BYI_TRY(infer_step(s, f, fr, step, err));
    if (step->view)
        return step->infer ? BYOC_OK : provide(s, f, fr, step->out[0], err);
    struct byi_call call = make_call(s, fr, step);
    if (step->infer && step->kernel->scratch)
        BYI_TRY(need_scratch(s, step->kernel->scratch(&call), err));
    call.scratch = s->scratch;
    if (step->kernel->run(&call, err) != BYOC_OK)
        return byi_prefix(err, "%s", step->sources);
    return step->infer ? take_dims(f, fr, step, call.out, err) : BYOC_OK;
}

/* --- regions ------------------------------------------------------------ */

static void trace_primitive(void *ctx, const char *name, const char *impl,
                            const char *sources, uint64_t begin_ns,
                            uint64_t end_ns)
{
    byi_trace_event(ctx, "primitive", name, impl, sources, begin_ns, end_ns);
}

static enum byoc_status run_region(struct byoc_state *s, struct byi_frame *fr,
                                   const struct byi_step *step,
                                   struct byoc_view *views,
                                   struct byoc_error *err)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        views[i].data = fr->t[step->in[i]].data;
    for (uint32_t i = 0; i < step->n_out; i++)
        views[step->n_in + i].data = fr->t[step->out[i]].data;
    const struct byi_region *region = &s->model->regions[step->callee];
    const struct byi_plugin *plugin = region->plugin;
    struct byoc_run_args args = {
        .struct_size = sizeof args,
        .n_inputs = step->n_in,
        .n_outputs = step->n_out,
        .inputs = views,
        .outputs = views + step->n_in,
        .trace = s->trace ? trace_primitive : NULL,
        .trace_ctx = s->trace,
    };
    struct byoc_fail *fail = plugin->backend->run(
        &plugin->host, region->compiled, s->region_states[step->callee], &args);
    return byi_plugin_status(fail, plugin, step->name, err);
}

/* --- fused kernels ------------------------------------------------------ */

static enum byoc_status run_fused(struct byoc_state *s,
                                  const struct byi_frame *fr,
                                  const struct byi_step *step)
{
    for (uint32_t i = 0; i < step->n_in; i++)
        s->buffers[i] = fr->t[step->in[i]].data;
    for (uint32_t i = 0; i < step->n_out; i++)
        s->buffers[step->n_in + i] = fr->t[step->out[i]].data;
    s->model->kernels[step->callee](s->buffers, (int)s->model->threads);
    return BYOC_OK;
}

/* --- calls -------------------------------------------------------------- */

/* Lend operands to a function and say where its results go. */
static enum byoc_status bind_call(struct byoc_state *s,
                                  const struct byi_plan_func *f,
                                  struct byi_frame *fr,
                                  const struct byi_step *step, uint32_t first,
                                  uint32_t func, struct byoc_error *err)
{
    const struct byi_plan_func *callee = &s->model->plan->funcs[func];
    struct byi_frame *to = &s->frames[func];
    for (uint32_t i = 0; i < callee->n_inputs; i++) {
        const struct byi_value *v = &callee->values[callee->inputs[i]];
        const struct byi_tensor *arg = &fr->t[step->in[first + i]];
        struct byi_tensor *t = &to->t[callee->inputs[i]];
        if (v->fixed && !same_dims(arg, t))
            return byi_fail(err, BYOC_ETYPE,
                            "call of @%s: operand %u has not the shape it "
                            "was compiled for",
                            callee->name, i);
        t->data = arg->data;
        memcpy(t->dims, arg->dims, sizeof t->dims);
    }
    for (uint32_t i = 0; i < step->n_out; i++) {
        uint32_t v = step->out[i];
        const struct byi_value *result = &callee->values[callee->outputs[i]];
        to->dest[i].data = NULL;
        if (!f->values[v].fixed) {
            if (!result->fixed)
                continue;
            memcpy(fr->t[v].dims, to->t[callee->outputs[i]].dims,
                   sizeof fr->t[v].dims);
            BYI_TRY(provide(s, f, fr, v, err));
        }
        to->dest[i] = fr->t[v];
    }
    return BYOC_OK;
}

/* Take over results of varying size; whatever else the callee holds goes. */
static enum byoc_status take_results(struct byoc_state *s,
                                     const struct byi_plan_func *f,
                                     struct byi_frame *fr,
                                     const struct byi_step *step, uint32_t func,
                                     struct byoc_error *err)
{
    const struct byi_plan_func *callee = &s->model->plan->funcs[func];
    struct byi_frame *from = &s->frames[func];
    for (uint32_t i = 0; i < step->n_out; i++) {
        if (from->dest[i].data)
            continue;
        uint32_t v = step->out[i], w = callee->outputs[i];
        uint32_t root = callee->values[w].root;
        memcpy(fr->t[v].dims, from->t[w].dims, sizeof fr->t[v].dims);
        if (from->block[root] && f->values[v].kind == BYI_V_TEMP) {
            fr->block[v] = from->block[root];
            fr->t[v].data = from->t[root].data;
            from->block[root] = 0;
            continue;
        }
        BYI_TRY(provide(s, f, fr, v, err));
        memcpy(fr->t[v].data, from->t[w].data, bytes_of(&fr->t[v]));
    }
    for (uint32_t v = 0; v < callee->n_values; v++)
        give_block(s, from, v);
    return BYOC_OK;
}

static enum byoc_status run_call(struct byoc_state *s,
                                 const struct byi_plan_func *f,
                                 struct byi_frame *fr,
                                 const struct byi_step *step, uint32_t first,
                                 uint32_t func, struct byoc_error *err)
{
    BYI_TRY(bind_call(s, f, fr, step, first, func, err));
    BYI_TRY(run_func(s, func, err));
    return take_results(s, f, fr, step, func, err);
}

static enum byoc_status run_if(struct byoc_state *s,
                               const struct byi_plan_func *f,
                               struct byi_frame *fr,
                               const struct byi_step *step,
                               struct byoc_error *err)
{
    const struct byi_tensor *cond = &fr->t[step->in[0]];
    if (bytes_of(cond) != 1)
        return byi_fail(err, BYOC_ETYPE,
                        "if (%s): the condition has %llu elements, expected 1",
                        step->sources, (unsigned long long)bytes_of(cond));
    if (*(const uint8_t *)cond->data)
        return run_call(s, f, fr, step, 1, step->callee, err);
    uint32_t first = 1 + s->model->plan->funcs[step->callee].n_inputs;
    return run_call(s, f, fr, step, first, step->other, err);
}

/* --- functions ---------------------------------------------------------- */

static enum byoc_status run_step(struct byoc_state *s,
                                 const struct byi_plan_func *f,
                                 struct byi_frame *fr, uint32_t at,
                                 struct byoc_error *err)
{
    const struct byi_step *step = &f->steps[at];
    switch (step->kind) {
    case BYI_STEP_OP:
        return run_kernel(s, f, fr, step, err);
    case BYI_STEP_CALL:
        return run_call(s, f, fr, step, 0, step->callee, err);
    case BYI_STEP_IF:
        return run_if(s, f, fr, step, err);
    case BYI_STEP_REGION:
        if (fr->views[at])
            return run_region(s, fr, step, fr->views[at], err);
        return run_call(s, f, fr, step, 0,
                        s->model->plan->parts[step->callee].twin, err);
    case BYI_STEP_KERNEL:
        if (s->model->kernels[step->callee])
            return run_fused(s, fr, step);
        return run_call(s, f, fr, step, 0,
                        s->model->plan->kernels[step->callee].twin, err);
    }
    byi_unreachable();
}

static const char *const step_kinds[] = {
    [BYI_STEP_OP] = "kernel",
    [BYI_STEP_REGION] = "region",
    [BYI_STEP_KERNEL] = "fused",
    [BYI_STEP_CALL] = "call",
    [BYI_STEP_IF] = "if",
};

static enum byoc_status trace_step(struct byoc_state *s,
                                   const struct byi_plan_func *f,
                                   struct byi_frame *fr, uint32_t at,
                                   struct byoc_error *err)
{
    const struct byi_step *step = &f->steps[at];
    uint64_t begin = byi_trace_now();
    enum byoc_status status = run_step(s, f, fr, at, err);
    const char *impl = "native";
    if (step->kind == BYI_STEP_REGION && fr->views[at])
        impl = s->model->plan->parts[step->callee].backend;
    if (step->kind == BYI_STEP_KERNEL && s->model->kernels[step->callee])
        impl = s->model->code_level;
    byi_trace_event(s->trace, step->view ? "view" : step_kinds[step->kind],
                    step->name, impl, step->sources, begin, byi_trace_now());
    return status;
}

/* Values that live in memory the caller brought. */
static void bind_lent(const struct byi_plan_func *f, struct byi_frame *fr)
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

/* Copy the results that were not computed in place. */
static enum byoc_status copy_results(struct byoc_state *s,
                                     const struct byi_plan_func *f,
                                     struct byi_frame *fr,
                                     struct byoc_error *err)
{
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        const struct byi_tensor *t = &fr->t[f->outputs[i]];
        const struct byi_tensor *dest = &fr->dest[i];
        if (!dest->data || t->data == dest->data)
            continue;
        char found[128], want[128];
        if (!same_dims(t, dest))
            return byi_fail(
                err, BYOC_ETYPE,
                "output %u of @%s has shape %s, but the memory "
                "given for it has %s",
                i, f->name,
                byi_dims_text(found, sizeof found, t->rank, t->dims),
                byi_dims_text(want, sizeof want, dest->rank, dest->dims));
        uint64_t begin = s->trace ? byi_trace_now() : 0;
        memcpy(dest->data, t->data, bytes_of(t));
        if (s->trace)
            byi_trace_event(s->trace, "copy", "copy", "native", f->name, begin,
                            byi_trace_now());
    }
    return BYOC_OK;
}

/* Recursion is bounded by BYI_PLAN_MAX_DEPTH, which the reader enforces. */
static enum byoc_status run_func(struct byoc_state *s, uint32_t func,
                                 struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[func];
    struct byi_frame *fr = &s->frames[func];
    bind_lent(f, fr);
    for (uint32_t at = 0; at < f->n_steps; at++) {
        BYI_TRY(s->trace ? trace_step(s, f, fr, at, err)
                         : run_step(s, f, fr, at, err));
        for (uint32_t i = 0; s->watch && !func && i < f->steps[at].n_out; i++)
            s->watch(s->watch_ctx, f->steps[at].name, f->steps[at].sources,
                     &fr->t[f->steps[at].out[i]]);
        for (uint32_t i = 0; i < f->steps[at].n_dead; i++)
            give_block(s, fr, f->steps[at].dead[i]);
    }
    return copy_results(s, f, fr, err);
}

enum byoc_status byi_exec_main(struct byoc_state *s, struct byoc_error *err)
{
    byi_pool_reset(&s->pool);
    for (uint32_t f = 0; f < s->model->plan->n_funcs; f++)
        if (s->frames[f].t)
            memset(s->frames[f].block, 0,
                   s->model->plan->funcs[f].n_values * sizeof(uint32_t));
    enum byoc_status status = run_func(s, 0, err);
    byi_arena_free(&s->infer);
    return status;
}

void byoc_internal_state_watch(struct byoc_state *state, byi_watch_fn watch,
                               void *ctx)
{
    state->watch = watch;
    state->watch_ctx = ctx;
}
