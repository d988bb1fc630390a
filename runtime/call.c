/* SPDX-License-Identifier: Apache-2.0 */
/* call.c: runs calls: passes operands to a frame of the callee, and results
 * back to the calling step. Tensors are borrowed, or shared if they are in a
 * block, and copied only if they cannot stay in place. When many calls are
 * active, a tail call ends the caller first, so that a recursive loop runs in
 * constant memory.
 */
#include "state.h"

#include <string.h>

/* If at least this many calls are active, a tail call ends its caller early;
 * with fewer, copying the operands would cost more than it saves. */
enum { TAIL_DEPTH = 64 };

static const struct byi_plan_func *func_of(const struct byoc_state *s,
                                           const struct byi_frame *fr)
{
    return &s->specialisation->plan->funcs[fr->func];
}

static enum byoc_status fail_shape(const struct byi_step *step,
                                   const char *what, uint32_t i,
                                   const struct byi_plan_func *callee,
                                   const struct byi_type *type,
                                   const struct byi_tensor *t,
                                   struct byoc_error *err)
{
    char found[128], expected[128];
    return byi_fail(
        err, BYOC_ETYPE,
        "call of @%s (%s): found %s %s as %s %u, expected %s %s", callee->name,
        step->sources, byoc_dtype_name(t->dtype),
        byi_dims_text(found, sizeof found, t->rank, t->dims), what, i,
        byoc_dtype_name(type->dtype),
        byi_dims_text(expected, sizeof expected, type->rank, type->dims));
}

/* --- operands ------------------------------------------------------------ */

/* Set input i of `to` to tensor t, without a copy. `block` is 1 + the pool's
 * block that contains t; 0: none. */
static void set_input(struct byoc_state *s, struct byi_frame *to, uint32_t i,
                      const struct byi_tensor *t, uint32_t block)
{
    uint32_t v = func_of(s, to)->inputs[i];
    if (block)
        byi_pool_share(&s->pool, block - 1);
    to->block[v] = block;
    to->t[v].data = t->data;
    memcpy(to->t[v].dims, t->dims, sizeof t->dims);
}

/* Pass an operand that lies in the caller's frame, which is freed before the
 * callee runs: copy it to a block. */
static enum byoc_status copy_input(struct byoc_state *s, struct byi_frame *to,
                                   uint32_t i, const struct byi_tensor *t,
                                   struct byoc_error *err)
{
    uint32_t block, v = func_of(s, to)->inputs[i];
    uint64_t bytes = byi_tensor_bytes(t);
    BYI_TRY(byi_pool_take(&s->pool, bytes, &block, err));
    to->block[v] = block + 1;
    to->t[v].data = s->pool.at[block].at;
    memcpy(to->t[v].dims, t->dims, sizeof t->dims);
    memcpy(to->t[v].data, t->data, bytes);
    return BYOC_OK;
}

/* Pass value `v` of `fr`, an operand of the step, as input i of `to`. If
 * `tail`, frame `fr` is freed before the callee runs. */
static enum byoc_status pass_operand(struct byoc_state *s, struct byi_frame *fr,
                                     const struct byi_step *step, uint32_t v,
                                     struct byi_frame *to, uint32_t i,
                                     bool tail, struct byoc_error *err)
{
    const struct byi_plan_func *f = func_of(s, fr), *callee = func_of(s, to);
    const struct byi_value *root = &f->values[f->values[v].root];
    const struct byi_value *input = &callee->values[callee->inputs[i]];
    if (byi_value_is_object(input)) {
        to->obj[callee->inputs[i]] = byi_object_share(fr->obj[v]);
        return BYOC_OK;
    }
    uint32_t block = fr->block[f->values[v].root];
    if (!byi_tensor_fits(&fr->t[v], input->type))
        return fail_shape(step, "operand", i, callee, input->type, &fr->t[v],
                          err);
    bool stays = root->kind == BYI_V_CONST || root->kind == BYI_V_INPUT;
    if (tail && !block && !stays)
        return copy_input(s, to, i, &fr->t[v], err);
    set_input(s, to, i, &fr->t[v], block);
    to->planes[callee->inputs[i]] = fr->planes[v];
    to->strided = to->strided || fr->planes[v].pitch;
    return BYOC_OK;
}

/* Pass the captures of `closure` as the last inputs of `to`. */
static enum byoc_status pass_captures(struct byoc_state *s,
                                      const struct byi_step *step,
                                      struct byi_object *closure,
                                      struct byi_frame *to,
                                      struct byoc_error *err)
{
    const struct byi_plan_func *callee = func_of(s, to);
    uint32_t first = callee->n_inputs - closure->n;
    to->self = byi_object_share(closure);
    for (uint32_t i = 0; i < closure->n; i++) {
        const struct byi_item *item = &closure->at[i];
        uint32_t v = callee->inputs[first + i];
        if (item->object) {
            to->obj[v] = byi_object_share(item->object);
            continue;
        }
        if (!byi_tensor_fits(&item->t, callee->values[v].type))
            return fail_shape(step, "capture", i, callee,
                              callee->values[v].type, &item->t, err);
        set_input(s, to, first + i, &item->t, item->block);
    }
    return BYOC_OK;
}

/* --- results ------------------------------------------------------------- */

/* Set the destinations of the results of `to`: the memory of the step's results
 * if their sizes are known. Otherwise the callee takes a block, which
 * pass_result shares with the caller, or copies if the caller has memory for
 * the result. */
static enum byoc_status place_results(struct byoc_state *s,
                                      struct byi_frame *fr,
                                      const struct byi_step *step,
                                      struct byi_frame *to,
                                      struct byoc_error *err)
{
    const struct byi_plan_func *f = func_of(s, fr), *callee = func_of(s, to);
    for (uint32_t i = 0; i < step->n_out; i++) {
        uint32_t v = step->out[i];
        const struct byi_value *result = &callee->values[callee->outputs[i]];
        to->dest[i].data = NULL;
        if (byi_value_is_object(result))
            continue;
        if (!f->values[v].fixed) {
            if (!result->fixed)
                continue;
            memcpy(fr->t[v].dims, to->t[callee->outputs[i]].dims,
                   sizeof fr->t[v].dims);
            BYI_TRY(byi_frame_provide(s, fr, v, err));
        }
        to->dest[i] = fr->t[v];
    }
    return BYOC_OK;
}

/* Whether callee `to` can replace its caller `fr` and write its results: the
 * same results have fixed sizes in both functions. */
static bool can_replace_caller(const struct byoc_state *s,
                               const struct byi_frame *fr,
                               const struct byi_frame *to)
{
    const struct byi_plan_func *f = func_of(s, fr), *callee = func_of(s, to);
    for (uint32_t i = 0; i < f->n_outputs; i++)
        if (f->values[f->outputs[i]].fixed !=
            callee->values[callee->outputs[i]].fixed)
            return false;
    return true;
}

/* Pass result i of `from`, the ending frame, to its caller `fr`. */
static enum byoc_status pass_result(struct byoc_state *s,
                                    struct byi_frame *from,
                                    struct byi_frame *fr, uint32_t i,
                                    struct byoc_error *err)
{
    const struct byi_plan_func *f = func_of(s, fr), *callee = func_of(s, from);
    const uint32_t w = callee->outputs[i], v = f->steps[fr->at].out[i];
    const struct byi_value *value = &f->values[v];
    uint32_t root = callee->values[w].root;
    if (byi_value_is_object(value)) {
        fr->obj[v] = byi_object_share(from->obj[w]);
        return BYOC_OK;
    }
    if (!byi_tensor_fits(&from->t[w], value->type))
        return fail_shape(&f->steps[fr->at], "result", i, callee, value->type,
                          &from->t[w], err);
    memcpy(fr->t[v].dims, from->t[w].dims, sizeof fr->t[v].dims);
    /* the result has no memory yet */
    const bool needs_memory =
        value->kind == BYI_V_TEMP ||
        (value->kind == BYI_V_OUTPUT && !fr->dest[value->index].data);
    if (from->block[root] && needs_memory) {
        byi_pool_share(&s->pool, from->block[root] - 1);
        fr->block[v] = from->block[root];
        fr->t[v].data = from->t[w].data;
        return BYOC_OK;
    }
    BYI_TRY(byi_frame_provide(s, fr, v, err));
    memcpy(fr->t[v].data, from->t[w].data, byi_tensor_bytes(&fr->t[v]));
    return BYOC_OK;
}

enum byoc_status byi_call_leave(struct byoc_state *s, struct byoc_error *err)
{
    struct byi_frame *from = s->top, *fr = from->up;
    const struct byi_step *step = &func_of(s, fr)->steps[fr->at];
    for (uint32_t i = 0; i < step->n_out; i++)
        if (!from->dest[i].data)
            BYI_TRY(pass_result(s, from, fr, i, err));
    s->top = fr;
    s->depth--;
    byi_frame_release(s, from);
    return BYOC_OK;
}

/* --- calls --------------------------------------------------------------- */

/* One call: function `func` of the plan. Its operands are the step's operands
 * from index `first` on, then the captures of `closure`. */
struct call {
    const struct byi_step *step;
    uint32_t first, func;
    struct byi_object *closure; /* or NULL */
};

static enum byoc_status bind_call(struct byoc_state *s, struct byi_frame *fr,
                                  const struct call *call, struct byi_frame *to,
                                  bool tail, struct byoc_error *err)
{
    uint32_t n_args =
        func_of(s, to)->n_inputs - (call->closure ? call->closure->n : 0);
    for (uint32_t i = 0; i < n_args; i++)
        BYI_TRY(pass_operand(s, fr, call->step, call->step->in[call->first + i],
                             to, i, tail, err));
    if (call->closure)
        BYI_TRY(pass_captures(s, call->step, call->closure, to, err));
    if (!tail)
        return place_results(s, fr, call->step, to, err);
    for (uint32_t i = 0; i < call->step->n_out; i++)
        to->dest[i] = fr->dest[i];
    return BYOC_OK;
}

static enum byoc_status check_limits(struct byoc_state *s,
                                     const struct call *call,
                                     struct byoc_error *err)
{
    bool deep = s->depth >= s->max_depth;
    if (!deep && s->calls++ < s->max_calls)
        return BYOC_OK;
    return byi_fail(err, BYOC_ELIMIT,
                    "@%s: found too many %s, expected at most %llu; look for a "
                    "recursion that does not end",
                    s->specialisation->plan->funcs[call->func].name,
                    deep ? "nested calls" : "calls in one run",
                    (unsigned long long)(deep ? s->max_depth : s->max_calls));
}

static enum byoc_status enter_call(struct byoc_state *s, struct byi_frame *fr,
                                   const struct call *call,
                                   struct byoc_error *err)
{
    struct byi_frame *to;
    BYI_TRY(check_limits(s, call, err));
    BYI_TRY(byi_frame_take(s, call->func, &to, err));
    bool tail = call->step->tail && s->depth >= TAIL_DEPTH && fr->up &&
                can_replace_caller(s, fr, to);
    enum byoc_status status = bind_call(s, fr, call, to, tail, err);
    if (status != BYOC_OK) {
        byi_frame_release(s, to);
        return status;
    }
    to->began = fr->began;
    to->up = tail ? fr->up : fr;
    s->top = to;
    if (tail)
        byi_frame_release(s, fr);
    else
        s->depth++;
    return BYOC_OK;
}

enum byoc_status byi_call_func(struct byoc_state *s, struct byi_frame *fr,
                               const struct byi_step *step,
                               struct byoc_error *err)
{
    struct call call = {.step = step, .func = step->callee};
    if (step->kind == BYI_STEP_REGION)
        call.func = s->specialisation->plan->regions[step->callee].twin;
    else if (step->kind == BYI_STEP_KERNEL)
        call.func = s->specialisation->plan->kernels[step->callee].twin;
    return enter_call(s, fr, &call, err);
}

enum byoc_status byi_call_if(struct byoc_state *s, struct byi_frame *fr,
                             const struct byi_step *step,
                             struct byoc_error *err)
{
    struct call call = {.step = step, .first = 1, .func = step->callee};
    bool holds = false;
    BYI_TRY(byi_read_condition(fr, step, &holds, err));
    if (!holds) {
        call.first += s->specialisation->plan->funcs[step->callee].n_inputs;
        call.func = step->else_func;
    }
    return enter_call(s, fr, &call, err);
}

/* --- function values ------------------------------------------------------ */

/* Check the type of an operand or result of a call whose callee is known only
 * at run time. `required` is the type that its reader needs: the callee for an
 * operand, the calling step for a result. */
static enum byoc_status check_arg_type(const struct byi_step *step,
                                       const char *what, uint32_t i,
                                       const struct byi_plan_func *callee,
                                       const struct byi_type *required,
                                       const struct byi_type *actual,
                                       struct byoc_error *err)
{
    char found[160], expected[160];
    const bool fits =
        required->kind == BYI_TENSOR ? byi_type_may_equal(required, actual)
        : byi_type_is_list(required) ? byi_type_accepts(required, actual)
                                     : required->kind == actual->kind;
    if (fits)
        return BYOC_OK;
    return byi_fail(
        err, BYOC_ETYPE, "call of @%s (%s): found %s as %s %u, expected %s",
        callee->name, step->sources, byi_type_text(found, sizeof found, actual),
        what, i, byi_type_text(expected, sizeof expected, required));
}

static enum byoc_status check_apply(const struct byoc_state *s,
                                    const struct byi_plan_func *f,
                                    const struct byi_step *step,
                                    const struct byi_object *closure,
                                    struct byoc_error *err)
{
    const struct byi_plan_func *callee =
        &s->specialisation->plan->funcs[closure->func];
    uint32_t n_args = callee->n_inputs - closure->n;
    if (step->n_in != n_args + 1 || step->n_out != callee->n_outputs)
        return byi_fail(err, BYOC_ETYPE,
                        "call of @%s (%s): found %u operands and %u results, "
                        "expected %u and %u",
                        callee->name, step->sources, step->n_in - 1,
                        step->n_out, n_args, callee->n_outputs);
    for (uint32_t i = 0; i < n_args; i++)
        BYI_TRY(check_arg_type(step, "operand", i, callee,
                               callee->values[callee->inputs[i]].type,
                               f->values[step->in[1 + i]].type, err));
    for (uint32_t i = 0; i < step->n_out; i++)
        BYI_TRY(check_arg_type(step, "result", i, callee,
                               f->values[step->out[i]].type,
                               callee->values[callee->outputs[i]].type, err));
    return BYOC_OK;
}

enum byoc_status byi_call_apply(struct byoc_state *s, struct byi_frame *fr,
                                const struct byi_step *step,
                                struct byoc_error *err)
{
    struct byi_object *closure = fr->obj[step->in[0]];
    BYI_TRY(check_apply(s, func_of(s, fr), step, closure, err));
    const struct call call = {
        .step = step, .first = 1, .func = closure->func, .closure = closure};
    return enter_call(s, fr, &call, err);
}
