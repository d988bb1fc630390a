/* SPDX-License-Identifier: Apache-2.0 */
/* specialise.c: specialises a plan for given sizes of the inputs' symbols. The
 * type rules also serve as shape functions: they compute the sizes of all
 * values that do not depend on data. Small values that depend on sizes only are
 * computed, and their steps removed. Backends build the regions for these
 * sizes. Temporaries get offsets according to their lifetimes. The result is
 * the plan of a model compiled for these sizes, except that values whose sizes
 * depend on data stay as they are.
 *
 *   %n = shape_of(%x: (batch, 3))       %n = const [2, 3]
 *   @dnnl_0(%x): (batch, 10)      ==>   @dnnl_0(%x): (2, 10)   batch=2
 */
#include "plan.h"

#include "core/base/guard.h"

/* How far a function has been specialised. */
enum specialise_stage { NEW, BEGUN, DONE };

/* A function that is being specialised, and its next step. Its caller continues
 * when it is done. */
struct activation {
    uint32_t func, step;
};

/* The state of making one specialisation. */
struct specialiser {
    const struct byoc_model *model;
    struct byi_specialisation *specialisation;
    struct byi_plan_tables *plan;      /* the result */
    struct byi_arena *arena, *scratch; /* of the result; freed at the end */
    /* indexed by symbol; -1: unknown (see byi_specialise) */
    const int64_t *sizes;
    bool last_attempt; /* BYI_LAST_ATTEMPT: use twins if memory runs out */
    bool twins;        /* BYI_TWINS: no backend builds a region */
    /* for each function: its symbols may differ in size from the inputs'
     * symbols of the same name */
    bool *varying;
    enum specialise_stage *stage; /* indexed by function */
    uint32_t *callers; /* for each function: steps that may call it */
    uint32_t *uses;    /* for each region: steps that run it */
    bool *attempted;   /* for each region: a step has specialised it */
    const struct byi_tensor ***known;      /* indexed by function and value */
    bool **removed;                        /* indexed by function and step */
    BYI_VEC(struct activation) stack;      /* main first */
    BYI_VEC(struct byi_plan_const) consts; /* of the result */
    struct byoc_error *err;
};

/* --- values --------------------------------------------------------------- */

/* The type with known sizes in place of their symbols. */
static const struct byi_type *put_sizes(struct specialiser *m,
                                        const struct byi_type *type)
{
    int64_t dims[BYI_MAX_RANK];
    bool changed = false;
    for (uint32_t d = 0; d < type->rank; d++) {
        dims[d] = type->dims[d];
        if (BYI_IS_SYMBOL(dims[d]) && m->sizes[-1 - dims[d]] >= 0) {
            dims[d] = m->sizes[-1 - dims[d]];
            changed = true;
        }
    }
    return changed ? byi_type_tensor(m->arena, type->dtype, type->rank, dims)
                   : type;
}

static enum byoc_status check_bytes(struct specialiser *m,
                                    const struct byi_type *type)
{
    if (byi_type_bytes(type) <= UINT64_C(1) << 44)
        return BYOC_OK;
    char dims[128];
    return byi_fail(m->err, BYOC_ELIMIT,
                    "for these sizes: found a tensor of shape %s, expected at "
                    "most 16 TiB; use smaller inputs",
                    byi_dims_text(dims, sizeof dims, type->rank, type->dims));
}

/* Set the type of value v of f to a tensor type whose dims are numbers. */
static enum byoc_status set_type(struct specialiser *m, struct byi_plan_func *f,
                                 const struct byi_step *step, uint32_t v,
                                 const struct byi_type *inferred)
{
    const struct byi_type *declared = f->values[v].type;
    if (!byi_type_refines(inferred, declared)) {
        char found[160], expected[160];
        return byi_fail(m->err, BYOC_ETYPE,
                        "%s (%s): for these sizes found a result of type %s, "
                        "expected %s, for which the model was compiled",
                        step->name, step->sources,
                        byi_type_text(found, sizeof found, inferred),
                        byi_type_text(expected, sizeof expected, declared));
    }
    f->values[v].type = byi_type_tensor(m->arena, inferred->dtype,
                                        inferred->rank, inferred->dims);
    f->values[v].fixed = true;
    return check_bytes(m, inferred);
}

/* --- operators ------------------------------------------------------------ */

static bool are_all_fixed(const struct byi_plan_func *f, const uint32_t *list,
                          uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!f->values[list[i]].fixed)
            return false;
    return true;
}

/* The value of v if it is known, otherwise NULL. Also finds the value of an
 * alias that needs no step. */
static const struct byi_tensor *find_known(const struct specialiser *m,
                                           const struct byi_plan_func *f,
                                           uint32_t v)
{
    const struct byi_tensor **known = m->known[f - m->plan->funcs];
    const struct byi_value *value = &f->values[v];
    const struct byi_tensor *root = known[value->root];
    if (!known[v] && value->kind == BYI_V_ALIAS && value->fixed && root) {
        struct byi_tensor *t = byi_arena_calloc(m->scratch, 1, sizeof *t);
        *t = byi_tensor_of(value->type);
        t->data = root->data;
        known[v] = t;
    }
    return known[v];
}

/* Infer the sizes of a step's results from its operands. Leaves them unknown if
 * they depend on data. */
static enum byoc_status infer_results(struct specialiser *m,
                                      struct byi_plan_func *f,
                                      struct byi_step *step)
{
    const struct byi_type **types =
        byi_arena_calloc(m->scratch, step->n_in, sizeof *types);
    const struct byi_tensor **values =
        byi_arena_calloc(m->scratch, step->n_in, sizeof *values);
    for (uint32_t i = 0; i < step->n_in; i++) {
        types[i] = f->values[step->in[i]].type;
        values[i] = find_known(m, f, step->in[i]);
    }
    struct byi_infer infer = {.arena = m->scratch,
                              .op = step->op,
                              .attrs = step->attrs,
                              .n_in = step->n_op_in,
                              .in = types,
                              .value = values,
                              .err = m->err};
    const struct byi_type *out;
    if (byi_infer_type(&infer, &out) != BYOC_OK)
        return byi_prefix(m->err, "%s",
                          step->sources[0] ? step->sources : step->name);
    const bool tuple = out->kind == BYI_TUPLE;
    for (uint32_t i = 0; i < step->n_out; i++)
        if (!byi_type_is_static(tuple ? out->fields[i] : out))
            return BYOC_OK;
    for (uint32_t i = 0; i < step->n_out; i++)
        BYI_TRY(
            set_type(m, f, step, step->out[i], tuple ? out->fields[i] : out));
    step->infer = byi_op_reads_unknown(step->op->id, step->n_op_in, values);
    return BYOC_OK;
}

/* Whether the step's results are small and follow from known operands and
 * sizes. */
static bool is_computable(const struct specialiser *m,
                          const struct byi_plan_func *f,
                          const struct byi_step *step)
{
    bool computable = !step->infer;
    const struct byi_tensor **known =
        byi_arena_calloc(m->scratch, step->n_in, sizeof *known);
    for (uint32_t i = 0; i < step->n_in; i++)
        known[i] = find_known(m, f, step->in[i]);
    for (uint32_t i = 0; i < step->n_out && computable; i++)
        computable = byi_follows_from_sizes(step->op, step->n_in, known,
                                            f->values[step->out[i]].type);
    return computable;
}

/* Make value v a constant. */
static void make_const(struct specialiser *m, struct byi_plan_func *f,
                       uint32_t v, const struct byi_tensor *t)
{
    struct byi_value *value = &f->values[v];
    const struct byi_plan_const c = {.view = *t};
    m->known[f - m->plan->funcs][v] = t;
    value->kind = BYI_V_CONST;
    value->root = v;
    value->index = m->consts.n;
    BYI_PUSH(&m->consts, c);
}

/* Record the values *t[i] of the step's results; NULL if unknown. Make them
 * constants, unless one is unknown or is an output of the function. Returns
 * true if the step can be removed. */
static bool keep_results(struct specialiser *m, struct byi_plan_func *f,
                         const struct byi_step *step,
                         const struct byi_tensor *const *t)
{
    bool removable = step->n_out > 0;
    for (uint32_t i = 0; i < step->n_out; i++) {
        m->known[f - m->plan->funcs][step->out[i]] = t[i];
        removable =
            removable && t[i] && f->values[step->out[i]].kind != BYI_V_OUTPUT;
    }
    for (uint32_t i = 0; removable && i < step->n_out; i++)
        make_const(m, f, step->out[i], t[i]);
    return removable;
}

/* Compute the step; returns true if it can be removed. If its kernel fails, the
 * step stays, and the run reports the error. */
static bool compute_step(struct specialiser *m, struct byi_plan_func *f,
                         const struct byi_step *step)
{
    if (step->n_epilogue)
        return false;
    struct byi_tensor *in =
        byi_arena_calloc(m->scratch, step->n_in, sizeof *in);
    struct byi_tensor *out =
        byi_arena_calloc(m->arena, step->n_out, sizeof *out);
    for (uint32_t i = 0; i < step->n_in; i++) {
        const struct byi_tensor *known = find_known(m, f, step->in[i]);
        in[i] = known ? *known : byi_tensor_of(f->values[step->in[i]].type);
    }
    for (uint32_t i = 0; i < step->n_out; i++) {
        out[i] = byi_tensor_of(f->values[step->out[i]].type);
        out[i].data = byi_arena_alloc(m->arena, byi_tensor_bytes(&out[i]) + 1);
    }
    if (byoc_internal_kernel_eval(step->op, step->attrs, step->n_in, in,
                                  step->n_out, out, 1, NULL) != BYOC_OK)
        return false;
    const struct byi_tensor **list =
        byi_arena_calloc(m->scratch, step->n_out, sizeof *list);
    for (uint32_t i = 0; i < step->n_out; i++)
        list[i] = &out[i];
    return keep_results(m, f, step, list);
}

/* Whether the result of the step is an alias that no longer needs the step. */
static bool needs_no_step(const struct byi_plan_func *f,
                          const struct byi_step *step)
{
    const struct byi_value *v = &f->values[step->out[0]];
    return step->view && !step->infer && v->fixed && f->values[v->root].fixed;
}

static enum byoc_status specialise_op(struct specialiser *m,
                                      struct byi_plan_func *f,
                                      struct byi_step *step)
{
    bool *removed = &m->removed[f - m->plan->funcs][step - f->steps];
    if (step->infer && !byi_op_has(step->op->id, BYI_TRAIT_LIST) &&
        are_all_fixed(f, step->in, step->n_in)) {
        enum byoc_status status = infer_results(m, f, step);
        if (status != BYOC_OK && f == m->plan->funcs)
            return status;
        if (status != BYOC_OK)
            return BYOC_OK; /* if the step runs, the run reports the error */
    }
    *removed = (is_computable(m, f, step) && compute_step(m, f, step)) ||
               needs_no_step(f, step);
    return BYOC_OK;
}

/* --- regions -------------------------------------------------------------- */

/* The reason why the region cannot be specialised for any sizes, or NULL. The
 * compiler gets the same reasons through byoc_internal_region_faults. */
static const char *region_refusal(const struct specialiser *m,
                                  const struct byi_plan_func *f,
                                  const struct byi_step *step)
{
    if (m->uses[step->callee] > 1)
        return "is called in several places";
    return are_all_fixed(f, step->in, step->n_in)
               ? NULL
               : "the size of an input depends on data";
}

static enum byoc_status load_region(struct specialiser *m,
                                    const struct byi_plan_func *f,
                                    const struct byi_step *step,
                                    struct byi_region *region,
                                    struct byi_sized *sized)
{
    const struct byi_region_row *entry = &m->plan->regions[step->callee];
    const struct byi_plugin *plugin =
        m->model->base.regions[step->callee].plugin;
    const struct byi_image *image = &m->model->image;
    const struct byi_type **types =
        byi_arena_calloc(m->scratch, step->n_in, sizeof *types);
    struct byi_region_consts consts;
    const char *refusal = region_refusal(m, f, step);
    for (uint32_t i = 0; i < step->n_in; i++)
        types[i] = f->values[step->in[i]].type;
    if (refusal)
        return byi_fail(m->err, BYOC_EUNSUPPORTED, "%s: %s", entry->symbol,
                        refusal);
    BYI_TRY(byi_region_consts(m->model, entry, plugin, m->scratch, &consts,
                              m->err));
    BYI_TRY(byoc_internal_region_bind(image->blobs + entry->blob,
                                      entry->blob_bytes, &consts, step->n_in,
                                      types, m->scratch, sized, m->err));
    if (!plugin) /* the model was opened without backends */
        return BYOC_OK;
    return byi_region_load(plugin, entry->symbol, &consts, sized->json,
                           sized->json_bytes, region, m->err);
}

/* Let the backend build the region for these sizes. If it cannot, the twin
 * runs, and the reason is stored in the specialisation. */
static enum byoc_status specialise_region(struct specialiser *m,
                                          struct byi_plan_func *f,
                                          struct byi_step *step)
{
    struct byi_region *region = &m->specialisation->regions[step->callee];
    const bool has_backend = m->model->base.regions[step->callee].plugin;
    struct byi_sized sized;
    if (m->attempted[step->callee] || !m->plan->regions[step->callee].varies)
        return BYOC_OK;
    m->attempted[step->callee] = true;
    if (m->twins && has_backend) {
        region->fault = "its sizes are new, and recent sizes did not recur";
        return BYOC_OK;
    }
    struct byoc_error *err = m->err, why;
    m->err = &why;
    enum byoc_status status = load_region(m, f, step, region, &sized);
    m->err = err;
    if (status != BYOC_OK) {
        if (status == BYOC_ENOMEM && !m->last_attempt)
            return byi_fail(err, status, "%s", why.text);
        if (m->model->require_backends && has_backend)
            return byi_fail(err, BYOC_EBACKEND, "%s", why.text);
        region->fault = byi_arena_str(m->arena, why.text);
        m->specialisation->starved |= status == BYOC_ENOMEM;
        return BYOC_OK;
    }
    for (uint32_t i = 0; i < step->n_out && has_backend; i++)
        BYI_TRY(set_type(m, f, step, step->out[i], sized.outputs[i]));
    return BYOC_OK;
}

/* --- calls ---------------------------------------------------------------- */

/* The type of result i if it is the same in all functions that the step may
 * call; NULL if one is unknown or they differ. */
static const struct byi_type *result_type(const struct specialiser *m,
                                          const struct byi_plan_func *f,
                                          const struct byi_step *step,
                                          uint32_t i)
{
    uint32_t callees[2];
    uint32_t n = byi_step_callees(m->specialisation, step, callees);
    const struct byi_type *type = NULL;
    const struct byi_tensor *condition =
        step->kind == BYI_STEP_IF ? find_known(m, f, step->in[0]) : NULL;
    if (condition && byi_elements(condition->rank, condition->dims) == 1) {
        callees[0] = callees[!byi_tensor_int(condition, 0)];
        n = 1; /* only this branch will run */
    }
    for (uint32_t c = 0; c < n; c++) {
        const struct byi_plan_func *g = &m->plan->funcs[callees[c]];
        const struct byi_value *v = &g->values[g->outputs[i]];
        if (m->stage[callees[c]] != DONE || !v->fixed ||
            (type && !byi_type_equal(type, v->type)))
            return NULL;
        type = v->type;
    }
    return type;
}

/* Give results whose sizes are unknown the types that they have in the callees.
 */
static enum byoc_status take_callee_types(struct specialiser *m,
                                          struct byi_plan_func *f,
                                          const struct byi_step *step)
{
    for (uint32_t i = 0; i < step->n_out && step->kind != BYI_STEP_CLOSURE;
         i++) {
        const struct byi_type *type = result_type(m, f, step, i);
        if (type && !f->values[step->out[i]].fixed)
            BYI_TRY(set_type(m, f, step, step->out[i], type));
    }
    return BYOC_OK;
}

/* The only function that a step may call; UINT32_MAX if it calls none or one of
 * several. */
static uint32_t only_callee(const struct specialiser *m,
                            const struct byi_step *step)
{
    if (step->kind == BYI_STEP_KERNEL)
        return m->plan->kernels[step->callee].twin;
    return step->kind == BYI_STEP_CALL ? step->callee : UINT32_MAX;
}

/* Infer the call's results from this call's operands, independently of other
 * calls of the function. */
static enum byoc_status evaluate_site(struct specialiser *m,
                                      struct byi_plan_func *f,
                                      const struct byi_step *step)
{
    const uint32_t func = only_callee(m, step);
    const struct byi_type **types =
        byi_arena_calloc(m->scratch, step->n_in, sizeof *types);
    const struct byi_tensor **values =
        byi_arena_calloc(m->scratch, step->n_in, sizeof *values);
    const struct byi_type **out =
        byi_arena_calloc(m->scratch, step->n_out, sizeof *out);
    const struct byi_tensor **known =
        byi_arena_calloc(m->scratch, step->n_out, sizeof *known);
    bool may_help = false;
    for (uint32_t i = 0; i < step->n_in; i++) {
        types[i] =
            f->values[step->in[i]].fixed ? f->values[step->in[i]].type : NULL;
        values[i] = find_known(m, f, step->in[i]);
        may_help = may_help || values[i];
    }
    for (uint32_t i = 0; i < step->n_out; i++)
        may_help = may_help || !f->values[step->out[i]].fixed;
    if (!may_help || func == UINT32_MAX)
        return BYOC_OK;
    byi_site_eval(m->model->plan, func, types, values, m->arena, out, known);
    for (uint32_t i = 0; i < step->n_out; i++)
        if (out[i] && !f->values[step->out[i]].fixed)
            BYI_TRY(set_type(m, f, step, step->out[i], out[i]));
    m->removed[f - m->plan->funcs][step - f->steps] =
        keep_results(m, f, step, known);
    return BYOC_OK;
}

static enum byoc_status take_results(struct specialiser *m,
                                     struct byi_plan_func *f,
                                     const struct byi_step *step)
{
    BYI_TRY(evaluate_site(m, f, step));
    return take_callee_types(m, f, step);
}

/* Begin function `func`: set the known sizes of its values. */
static enum byoc_status begin_func(struct specialiser *m, uint32_t func)
{
    struct byi_plan_func *f = &m->plan->funcs[func];
    f->values = byi_arena_copy(m->arena, f->values,
                               (f->n_values + 1u) * sizeof *f->values);
    f->steps = byi_arena_copy(m->arena, f->steps,
                              (f->n_steps + 1u) * sizeof *f->steps);
    m->known[func] =
        byi_arena_calloc(m->scratch, f->n_values + 1u, sizeof **m->known);
    m->removed[func] =
        byi_arena_calloc(m->scratch, f->n_steps + 1u, sizeof **m->removed);
    for (uint32_t v = 0; v < f->n_values; v++) {
        struct byi_value *value = &f->values[v];
        if (value->kind == BYI_V_CONST &&
            m->model->plan->consts[value->index].view.data)
            m->known[func][v] = &m->model->plan->consts[value->index].view;
        if (value->fixed || value->type->kind != BYI_TENSOR || m->varying[func])
            continue;
        value->type = put_sizes(m, value->type);
        value->fixed = byi_type_is_static(value->type);
        if (value->fixed)
            BYI_TRY(check_bytes(m, value->type));
    }
    m->stage[func] = BEGUN;
    const struct activation a = {.func = func};
    BYI_PUSH(&m->stack, a);
    return BYOC_OK;
}

/* If this step is the only caller of the function, pass the sizes and values of
 * its operands to the function's inputs. */
static void pass_sizes(struct specialiser *m, const struct byi_plan_func *f,
                       const struct byi_step *step, uint32_t first,
                       uint32_t func)
{
    struct byi_plan_func *g = &m->plan->funcs[func];
    if (m->callers[func] != 1 || step->kind == BYI_STEP_CLOSURE)
        return;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const struct byi_value *from = &f->values[step->in[first + i]];
        struct byi_value *to = &g->values[g->inputs[i]];
        m->known[func][g->inputs[i]] = find_known(m, f, step->in[first + i]);
        if (!from->fixed || to->fixed || to->type->kind != BYI_TENSOR ||
            to->type->dtype != from->type->dtype ||
            to->type->rank != from->type->rank)
            continue;
        to->type = from->type;
        to->fixed = true;
    }
}

/* Begin a function that the step calls and that has not been specialised;
 * *entered is false if there is none. */
static enum byoc_status enter_callee(struct specialiser *m,
                                     const struct byi_plan_func *f,
                                     const struct byi_step *step, bool *entered)
{
    uint32_t callees[2];
    uint32_t n = byi_step_callees(m->specialisation, step, callees);
    *entered = false;
    for (uint32_t c = 0; c < n; c++) {
        if (m->stage[callees[c]] != NEW)
            continue;
        uint32_t first = step->kind == BYI_STEP_IF;
        if (c == 1)
            first += m->plan->funcs[callees[0]].n_inputs;
        BYI_TRY(begin_func(m, callees[c]));
        pass_sizes(m, f, step, first, callees[c]);
        *entered = true;
        return BYOC_OK;
    }
    return BYOC_OK;
}

/* --- a function ----------------------------------------------------------- */

/* Choose offsets for temporaries of known sizes, and delete the removed steps.
 */
static enum byoc_status finish_func(struct specialiser *m, uint32_t func)
{
    struct byi_plan_func *f = &m->plan->funcs[func];
    const uint32_t n = f->n_values + 1;
    uint32_t *last = byi_arena_calloc(m->scratch, n, sizeof *last);
    uint32_t *values = byi_arena_calloc(m->scratch, n, sizeof *values);
    struct byi_lifetime *lifetimes =
        byi_arena_calloc(m->scratch, n, sizeof *lifetimes);
    uint32_t n_steps = 0, n_lifetimes = 0;
    for (uint32_t s = 0; s < f->n_steps; s++)
        if (!m->removed[func][s])
            f->steps[n_steps++] = f->steps[s];
    f->n_steps = n_steps;
    for (uint32_t s = 0; s < n_steps; s++) {
        const struct byi_step *step = &f->steps[s];
        for (uint32_t i = 0; i < step->n_in; i++)
            last[f->values[step->in[i]].root] = s;
        for (uint32_t i = 0; i < step->n_out; i++)
            last[f->values[step->out[i]].root] = s;
    }
    for (uint32_t i = 0; i < f->n_outputs; i++)
        last[f->values[f->outputs[i]].root] = UINT32_MAX;
    for (uint32_t s = 0; s < n_steps; s++) {
        const struct byi_step *step = &f->steps[s];
        for (uint32_t i = 0; i < step->n_out; i++) {
            const uint32_t v = step->out[i];
            if (f->values[v].kind != BYI_V_TEMP || !f->values[v].fixed)
                continue;
            lifetimes[n_lifetimes] = (struct byi_lifetime){
                .first = s,
                .last = last[v],
                .bytes = byi_type_bytes(f->values[v].type)};
            values[n_lifetimes++] = v;
        }
    }
    f->arena = byi_assign_offsets(lifetimes, n_lifetimes);
    for (uint32_t i = 0; i < n_lifetimes; i++)
        f->values[values[i]].offset = lifetimes[i].at;
    m->stage[func] = DONE;
    m->stack.n--;
    if (f->arena > byi_memory_limit())
        return byi_fail(m->err, BYOC_ELIMIT,
                        "@%s: for these sizes found values of %llu bytes, "
                        "expected at most the memory that this process may "
                        "use, %llu bytes; use smaller inputs",
                        f->name, (unsigned long long)f->arena,
                        (unsigned long long)byi_memory_limit());
    return BYOC_OK;
}

/* Specialise one step of the top function, after the functions that it calls.
 */
static enum byoc_status specialise_step(struct specialiser *m)
{
    struct activation *top = &m->stack.at[m->stack.n - 1];
    struct byi_plan_func *f = &m->plan->funcs[top->func];
    if (top->step == f->n_steps)
        return finish_func(m, top->func);
    struct byi_step *step = &f->steps[top->step];
    bool entered;
    if (step->kind == BYI_STEP_REGION)
        BYI_TRY(specialise_region(m, f, step));
    BYI_TRY(enter_callee(m, f, step, &entered));
    if (entered)
        return BYOC_OK;
    top->step++;
    return step->kind == BYI_STEP_OP ? specialise_op(m, f, step)
                                     : take_results(m, f, step);
}

/* --- the whole plan ------------------------------------------------------- */

static void count_callers(struct specialiser *m)
{
    const struct byi_plan_tables *plan = m->model->plan;
    m->callers[0] = 2; /* main has unknown callers */
    for (uint32_t f = 0; f < plan->n_funcs; f++)
        for (uint32_t s = 0; s < plan->funcs[f].n_steps; s++) {
            const struct byi_step *step = &plan->funcs[f].steps[s];
            switch (step->kind) {
            case BYI_STEP_REGION:
                m->uses[step->callee]++;
                m->callers[plan->regions[step->callee].twin]++;
                break;
            case BYI_STEP_KERNEL:
                m->callers[plan->kernels[step->callee].twin]++;
                break;
            case BYI_STEP_IF:
                m->callers[step->else_func]++;
                m->callers[step->callee]++;
                break;
            case BYI_STEP_CALL:
                m->callers[step->callee]++;
                break;
            case BYI_STEP_CLOSURE:
                m->callers[step->callee] += 2; /* unknown callers */
                break;
            case BYI_STEP_OP:
            case BYI_STEP_APPLY:
            case BYI_STEP_CHOOSE:
                break;
            }
        }
}

/* Whether operand `from` of a call (NULL: unknown) may have other sizes than
 * input i of function `func` was specialised for. */
static bool may_differ(const struct specialiser *m,
                       const struct byi_value *from, uint32_t func, uint32_t i)
{
    const uint32_t v = m->plan->funcs[func].inputs[i];
    const struct byi_value *to = &m->plan->funcs[func].values[v];
    if (m->model->plan->funcs[func].values[v].fixed || !to->fixed)
        return false;
    return !from || !from->fixed || !byi_type_equal(from->type, to->type);
}

/* Whether a step of f may call function `func` with sizes that differ from
 * those of the function's symbols. The operands of the call are those of the
 * step from index `at` on. For a closure they are the callee's last inputs; its
 * first inputs come from the step that applies it. */
static bool calls_with_other_sizes(const struct specialiser *m,
                                   const struct byi_plan_func *f,
                                   const struct byi_step *step, uint32_t at,
                                   uint32_t func)
{
    const uint32_t n_in = m->plan->funcs[func].n_inputs;
    const uint32_t n_applied =
        step->kind == BYI_STEP_CLOSURE ? n_in - step->n_in : 0;
    bool differ = false;
    for (uint32_t i = 0; i < n_in && !differ; i++)
        differ = may_differ(
            m, i < n_applied ? NULL : &f->values[step->in[at + i - n_applied]],
            func, i);
    return differ;
}

/* Mark functions in m->varying that are called with varying sizes, such as a
 * function that calls itself with growing operands. A symbol then has another
 * size in each call. Returns whether it marked any. */
static bool find_varying(const struct specialiser *m)
{
    bool found = false;
    for (uint32_t k = 0; k < m->plan->n_funcs; k++) {
        const struct byi_plan_func *f = &m->plan->funcs[k];
        for (uint32_t s = 0; m->stage[k] == DONE && s < f->n_steps; s++) {
            uint32_t callees[2];
            const uint32_t n =
                byi_step_callees(m->specialisation, &f->steps[s], callees);
            uint32_t at = f->steps[s].kind == BYI_STEP_IF;
            for (uint32_t c = 0; c < n; c++) {
                bool *varying = &m->varying[callees[c]];
                if (!*varying &&
                    calls_with_other_sizes(m, f, &f->steps[s], at, callees[c]))
                    found = *varying = true;
                at += m->plan->funcs[callees[c]].n_inputs;
            }
        }
    }
    return found;
}

static enum byoc_status specialise_plan(struct specialiser *m)
{
    const struct byi_plan_tables *plan = m->model->plan;
    m->stage = byi_arena_calloc(m->scratch, plan->n_funcs, sizeof *m->stage);
    m->callers =
        byi_arena_calloc(m->scratch, plan->n_funcs, sizeof *m->callers);
    m->uses = byi_arena_calloc(m->scratch, plan->n_regions, sizeof *m->uses);
    m->attempted =
        byi_arena_calloc(m->scratch, plan->n_regions, sizeof *m->attempted);
    m->known = byi_arena_calloc(m->scratch, plan->n_funcs, sizeof *m->known);
    m->removed =
        byi_arena_calloc(m->scratch, plan->n_funcs, sizeof *m->removed);
    count_callers(m);
    for (uint32_t i = 0; i < plan->n_consts; i++)
        BYI_PUSH(&m->consts, plan->consts[i]);
    BYI_TRY(begin_func(m, 0));
    while (m->stack.n > 0)
        BYI_TRY(specialise_step(m));
    m->plan->n_consts = m->consts.n;
    m->plan->consts = byi_arena_copy(m->arena, m->consts.at,
                                     m->consts.n * sizeof *m->consts.at);
    return byi_consts_read(m->specialisation, m->plan->consts, m->err);
}

/* Specialise the plan once. Sets *repeat if functions were specialised for
 * wrong sizes; m->varying now marks these functions. */
static enum byoc_status specialise_once(struct specialiser *m, bool *repeat)
{
    const struct byoc_model *model = m->model;
    struct byi_arena *arena = m->arena = byi_arena_new();
    struct byi_plan_tables *plan = byi_arena_alloc(arena, sizeof *plan);
    *plan = *model->plan;
    plan->arena = arena;
    plan->funcs =
        byi_arena_copy(arena, plan->funcs, plan->n_funcs * sizeof *plan->funcs);
    m->plan = plan;
    *m->specialisation = (struct byi_specialisation){
        .model = model, .plan = plan, .twins = m->twins};
    m->specialisation->regions = byi_arena_calloc(
        arena, plan->n_regions + 1u, sizeof *m->specialisation->regions);
    for (uint32_t i = 0; i < plan->n_regions; i++)
        if (!plan->regions[i].varies) {
            m->specialisation->regions[i] = model->base.regions[i];
            m->specialisation->regions[i].lent = true;
        }
    m->stack.n = m->consts.n = 0;
    enum byoc_status status = specialise_plan(m);
    *repeat = status == BYOC_OK && find_varying(m);
    if (*repeat)
        byi_specialisation_end(m->specialisation);
    return status;
}

/* Specialise the plan until no function was specialised for wrong sizes.
 * byi_guarded calls this. */
static enum byoc_status specialise_until_stable(void *arg,
                                                struct byoc_error *err)
{
    struct specialiser *m = arg;
    enum byoc_status status;
    bool repeat;
    m->err = err;
    m->scratch = byi_arena_new();
    m->varying = byi_arena_calloc(m->scratch, m->model->plan->n_funcs,
                                  sizeof *m->varying);
    do
        status = specialise_once(m, &repeat);
    while (repeat);
    return status;
}

enum byoc_status byi_specialise(const struct byoc_model *model,
                                const int64_t *sizes, unsigned flags,
                                struct byi_specialisation *specialisation,
                                struct byoc_error *err)
{
    struct specialiser m = {.model = model,
                            .specialisation = specialisation,
                            .sizes = sizes,
                            .last_attempt = flags & BYI_LAST_ATTEMPT,
                            .twins = flags & BYI_TWINS};
    struct byi_guard guard;
    *specialisation = (struct byi_specialisation){0};
    byi_memory_set_packing(model->memory, true);
    const enum byoc_status status =
        byi_guarded(&guard, specialise_until_stable, &m, err);
    byi_memory_set_packing(model->memory, false);
    if (status == BYOC_OK)
        byi_backends_drop_consts(specialisation);
    else if (specialisation->plan)
        byi_specialisation_end(specialisation);
    byi_vec_free(m.stack.at);
    byi_vec_free(m.consts.at);
    byi_arena_free(&m.scratch);
    byi_guard_leave(&guard);
    return status;
}

void byi_specialisation_end(struct byi_specialisation *specialisation)
{
    for (uint32_t i = 0;
         specialisation->regions && i < specialisation->plan->n_regions; i++) {
        const struct byi_region *region = &specialisation->regions[i];
        if (region->plugin && !region->lent)
            byi_plugin_unload(region->plugin, region->compiled);
    }
    struct byi_arena *arena = specialisation->plan->arena;
    byi_arena_free(&arena);
    specialisation->plan = NULL;
}
