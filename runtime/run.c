/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: runs a state: checks the caller's DLPack views against the model's
 * signature, binds them, and fills in the views of the outputs. */
#include "state.h"

#include "core/base/guard.h"

#include <string.h>

/* --- callers' views ----------------------------------------------------- */

static enum byoc_status check_strings(const struct byoc_io *io,
                                      const struct byi_tensor *t,
                                      struct byoc_error *err)
{
    const char *const *at = t->data;
    const int64_t n = byi_elements(t->rank, t->dims);
    for (int64_t i = 0; io->dtype == BYOC_STRING && i < n; i++)
        if (!at[i])
            return byi_fail(err, BYOC_EINVAL,
                            "input \"%s\": element %lld is NULL, expected a "
                            "string",
                            io->name, (long long)i);
    return BYOC_OK;
}

/* The first axis whose size is the symbol; UINT32_MAX: none. */
static uint32_t axis_of(const struct byi_type *type, int64_t symbol)
{
    for (uint32_t d = 0; type->kind == BYI_TENSOR && d < type->rank; d++)
        if (type->dims[d] == symbol)
            return d;
    return UINT32_MAX;
}

/* Report that an axis of `input` has another size than an earlier axis with the
 * same symbol. */
static enum byoc_status report_conflict(const struct byoc_state *s,
                                        uint32_t input, uint32_t axis,
                                        int64_t size, struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    const int64_t symbol = f->values[f->inputs[input]].type->dims[axis];
    uint32_t i = 0, d;
    while ((d = axis_of(f->values[f->inputs[i]].type, symbol)) == UINT32_MAX)
        i++;
    const char *name = s->model->plan->symbols[-1 - symbol];
    return byi_fail(err, BYOC_ETYPE,
                    "input \"%s\": axis %u (%.60s) is %lld, expected %lld, the "
                    "size of axis %u of input \"%s\"",
                    s->model->inputs[input].name, axis, name, (long long)size,
                    (long long)s->dims[-1 - symbol], d,
                    s->model->inputs[i].name);
}

/* Bind the symbols of an input's dims to its sizes. A symbol has one size in a
 * run. */
static enum byoc_status bind_symbols(struct byoc_state *s, uint32_t input,
                                     const struct byi_tensor *t,
                                     struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    const struct byi_type *type = f->values[f->inputs[input]].type;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!BYI_IS_SYMBOL(type->dims[d]))
            continue;
        int64_t *size = &s->dims[-1 - type->dims[d]];
        if (*size >= 0 && *size != t->dims[d])
            return report_conflict(s, input, d, t->dims[d], err);
        *size = t->dims[d];
    }
    return BYOC_OK;
}

/* The inputs and outputs of a run: tensors, values of any kind, or values that
 * a request binds. */
struct run_io {
    const DLTensor *in;
    DLTensor *out;
    const struct byoc_value *values_in; /* NULL: the caller gave tensors */
    struct byoc_value *values_out;
    const struct byoc_request *request; /* NULL: all inputs and outputs, in the
                                         * model's order */
    const uint32_t *in_at, *out_at; /* for each input and output: index in the
                                     * request */
};

/* The value given for input i; NULL: the caller gave tensors. */
static const struct byoc_value *value_in(const struct run_io *run, uint32_t i)
{
    if (run->request)
        return &run->request->inputs[run->in_at[i]].value;
    return run->values_in ? &run->values_in[i] : NULL;
}

static bool is_requested(const struct run_io *run, uint32_t i)
{
    return !run->request || run->out_at[i] != UINT32_MAX;
}

/* The value for output i; NULL if the caller gave a tensor, or did not request
 * the output. */
static struct byoc_value *value_out(const struct run_io *run, uint32_t i)
{
    if (run->request)
        return is_requested(run, i)
                   ? &run->request->outputs[run->out_at[i]].value
                   : NULL;
    return run->values_out ? &run->values_out[i] : NULL;
}

static const DLTensor *input_of(const struct run_io *run, uint32_t i)
{
    const struct byoc_value *value = value_in(run, i);
    return value ? &value->tensor : &run->in[i];
}

/* The view for output i, which the caller requested. */
static DLTensor *output_of(const struct run_io *run, uint32_t i)
{
    struct byoc_value *value = value_out(run, i);
    return value ? &value->tensor : &run->out[i];
}

/* Check that input i is of the kind that the model expects. */
static enum byoc_status check_value(const struct byoc_state *s,
                                    const struct run_io *run, uint32_t i,
                                    struct byoc_error *err)
{
    const struct byoc_io *io = &s->model->inputs[i];
    if (value_in(run, i))
        return byi_value_check(value_in(run, i), io, err);
    return byi_fail(err, BYOC_EINVAL,
                    "input \"%s\": found a tensor, expected %s; run the model "
                    "with byoc_run_values",
                    io->name,
                    io->kind == BYOC_SEQUENCE ? "a sequence" : "an optional");
}

static enum byoc_status bind_inputs(struct byoc_state *s,
                                    const struct run_io *run,
                                    struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    for (uint32_t i = 0; i < s->model->plan->n_symbols; i++)
        s->dims[i] = -1;
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        struct byi_tensor *t = &s->inputs[i];
        const struct byoc_io *io = &s->model->inputs[i];
        if (io->kind != BYOC_TENSOR ||
            (value_in(run, i) && value_in(run, i)->kind != BYOC_TENSOR)) {
            BYI_TRY(check_value(s, run, i, err));
            continue;
        }
        BYI_TRY(byi_check_view(input_of(run, i), "input", io, t,
                               s->model->grow_axis[i], &s->planes[i], err));
        BYI_TRY(check_strings(&s->model->inputs[i], t, err));
        BYI_TRY(bind_symbols(s, i, t, err));
    }
    return BYOC_OK;
}

/* Set the planes of input i in main's frame. Only a specialisation in which the
 * input's length stays symbolic can read planes. */
static enum byoc_status bind_planes(const struct byoc_state *s, uint32_t i,
                                    struct byoc_error *err)
{
    struct byi_frame *fr = s->work->frames[0];
    const uint32_t v = s->model->plan->funcs[0].inputs[i];
    if (byi_row_planes_are_dense(&s->inputs[i], &s->planes[i]))
        return BYOC_OK;
    if (s->specialisation->plan->funcs[0].values[v].fixed)
        return byi_fail(err, BYOC_EINVAL,
                        "input \"%s\": found gaps between its rows, expected "
                        "dense data, since axis %u has a fixed size or the "
                        "model was loaded with require_backends; copy it first",
                        s->model->inputs[i].name, s->model->grow_axis[i]);
    fr->planes[v] = s->planes[i];
    fr->strided = true;
    return BYOC_OK;
}

/* Take a specialisation for the sizes of the inputs, and memory to run it, from
 * the cache if there is one. */
static enum byoc_status begin_run(struct byoc_state *s, struct byoc_error *err)
{
    char text[256];
    if (s->model->cache) {
        uint64_t begin = s->trace ? byi_now_ns() : 0;
        for (uint32_t i = 0; i < s->model->plan->n_symbols; i++)
            s->dims[i] = s->model->open_symbols[i] ? -1 : s->dims[i];
        BYI_TRY(byi_cache_take(s->model, s->dims, false, &s->lease, err));
        if (s->trace && s->lease.created)
            byi_trace_event(
                s->trace,
                &(struct byoc_event){.kind = "specialise",
                                     .name = byi_sizes_text(s->model, s->dims,
                                                            text, sizeof text),
                                     .begin_ns = begin});
        s->specialisation = s->lease.specialisation;
        s->work = s->lease.work;
    }
    byi_frame_begin(s, s->work->frames[0]);
    return BYOC_OK;
}

static enum byoc_status place_inputs(struct byoc_state *s,
                                     struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        struct byi_tensor *t = &s->work->frames[0]->t[f->inputs[i]];
        if (s->model->inputs[i].kind != BYOC_TENSOR)
            continue;
        t->data = s->inputs[i].data;
        memcpy(t->dims, s->inputs[i].dims, sizeof t->dims);
        BYI_TRY(bind_planes(s, i, err));
    }
    return BYOC_OK;
}

static void end_run(struct byoc_state *s)
{
    if (!s->model->cache)
        return;
    byi_exec_drop(s);
    byi_work_clear(s->work, &s->pool);
    byi_cache_put(s->model, &s->lease);
    s->specialisation = NULL;
    s->work = NULL;
}

static bool overlaps(const struct byi_tensor *a, const struct byi_row_planes *p,
                     const struct byi_tensor *b, const struct byi_row_planes *q)
{
    const char *x = a->data, *y = b->data;
    return x < y + byi_row_planes_extent(b, q) &&
           y < x + byi_row_planes_extent(a, p);
}

/* Output `out` overlaps input `in`: check that the model updates this input in
 * place, and that both have their rows at the same addresses. */
static enum byoc_status check_in_place(const struct byoc_state *s, uint32_t out,
                                       uint32_t in, struct byoc_error *err)
{
    struct byi_frame *fr = s->work->frames[0];
    const char *output = s->model->outputs[out].name;
    const char *input = s->model->inputs[in].name;
    if (s->model->in_place[out] != in)
        return byi_fail(err, BYOC_EINVAL,
                        "output \"%s\": found memory that overlaps input "
                        "\"%s\", expected separate memory, since the model "
                        "does not update this input in place",
                        output, input);
    fr->strided = true;
    if (fr->dest[out].data == s->inputs[in].data &&
        fr->dest_planes[out].pitch == s->planes[in].pitch)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "output \"%s\": found memory that overlaps input \"%s\" "
                    "but whose rows begin elsewhere, expected the same data "
                    "and strides, with room for the output's rows, or separate "
                    "memory",
                    output, input);
}

/* Check the memory of output `out` against the inputs and the outputs before
 * it. Outputs must not overlap, since a step may write one while later steps
 * read another. */
static enum byoc_status check_overlap(const struct byoc_state *s, uint32_t out,
                                      struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->model->plan->funcs[0];
    const struct byi_frame *fr = s->work->frames[0];
    for (uint32_t i = 0; i < f->n_inputs; i++)
        if (s->model->inputs[i].kind == BYOC_TENSOR &&
            overlaps(&fr->dest[out], &fr->dest_planes[out], &s->inputs[i],
                     &s->planes[i]))
            BYI_TRY(check_in_place(s, out, i, err));
    for (uint32_t i = 0; i < out; i++)
        if (fr->dest[i].data && overlaps(&fr->dest[out], &fr->dest_planes[out],
                                         &fr->dest[i], &fr->dest_planes[i]))
            return byi_fail(err, BYOC_EINVAL,
                            "output \"%s\": found memory that overlaps output "
                            "\"%s\", expected separate memory",
                            s->model->outputs[out].name,
                            s->model->outputs[i].name);
    return BYOC_OK;
}

/* Set the destination of output i, whose size is known, to memory of the state.
 */
static enum byoc_status take_output(struct byoc_state *s, uint32_t i,
                                    struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[0];
    struct byi_frame *fr = s->work->frames[0];
    fr->dest[i] = fr->t[f->outputs[i]];
    fr->dest[i].data = s->out[i];
    if (s->out[i])
        return BYOC_OK;
    uint32_t block;
    BYI_TRY(
        byi_pool_take(&s->pool, byi_tensor_bytes(&fr->dest[i]), &block, err));
    fr->dest[i].data = s->pool.at[block].at;
    return BYOC_OK;
}

/* Bind output i to the caller's memory. */
static enum byoc_status bind_caller_memory(struct byoc_state *s,
                                           const DLTensor *view, uint32_t i,
                                           struct byoc_error *err)
{
    struct byi_frame *fr = s->work->frames[0];
    const uint32_t input = s->model->in_place[i];
    struct byi_row_planes *planes = &fr->dest_planes[i];
    BYI_TRY(byi_check_view(view, "output", &s->model->outputs[i], &fr->dest[i],
                           input == UINT32_MAX ? UINT32_MAX
                                               : s->model->grow_axis[input],
                           planes, err));
    if (byi_row_planes_are_dense(&fr->dest[i], planes))
        return BYOC_OK;
    fr->strided = true;
    if (!s->specialisation->plan->funcs[0]
             .values[s->specialisation->plan->funcs[0].outputs[i]]
             .fixed)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "output \"%s\": found gaps between its rows, expected "
                    "dense memory, since the axis that grows has a fixed size "
                    "or the model was loaded with require_backends",
                    s->model->outputs[i].name);
}

static enum byoc_status bind_outputs(struct byoc_state *s,
                                     const struct run_io *run,
                                     struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[0];
    struct byi_frame *fr = s->work->frames[0];
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        const struct byoc_io *io = &s->model->outputs[i];
        fr->dest[i].data = NULL;
        fr->dest_planes[i] = (struct byi_row_planes){0};
        if (!is_requested(run, i)) { /* another output may need its step */
            const struct byi_value *v = &f->values[f->outputs[i]];
            if (v->kind == BYI_V_OUTPUT && v->fixed)
                BYI_TRY(take_output(s, i, err));
            continue;
        }
        if (io->kind != BYOC_TENSOR) {
            if (!value_out(run, i))
                return byi_fail(err, BYOC_EINVAL,
                                "output \"%s\": found a tensor, expected %s; "
                                "run the model with byoc_run_values",
                                io->name,
                                io->kind == BYOC_SEQUENCE ? "a sequence"
                                                          : "an optional");
            continue;
        }
        if (output_of(run, i)->data) {
            BYI_TRY(bind_caller_memory(s, output_of(run, i), i, err));
            if (f->values[f->outputs[i]].fixed)
                BYI_TRY(byi_exec_check_dest(f, i, &fr->t[f->outputs[i]],
                                            &fr->dest[i], err));
            BYI_TRY(check_overlap(s, i, err));
        } else if (f->values[f->outputs[i]].fixed) {
            BYI_TRY(take_output(s, i, err));
        }
    }
    return BYOC_OK;
}

/* Fill in the views of outputs for which the caller gave no memory. A result
 * that lives in an input or a constant is copied, since it must stay valid
 * until the next run. */
static enum byoc_status set_outputs(struct byoc_state *s,
                                    const struct run_io *run,
                                    struct byoc_error *err)
{
    BYI_BORDER(err);
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[0];
    struct byi_frame *fr = s->work->frames[0];
    for (uint32_t i = 0; i < f->n_outputs; i++) {
        uint32_t v = f->outputs[i], root = f->values[v].root;
        struct byi_tensor *t = &fr->t[v];
        void *data = fr->dest[i].data;
        if (!is_requested(run, i))
            continue;
        if (s->model->outputs[i].kind != BYOC_TENSOR) {
            BYI_TRY(byi_value_write(s, fr->obj[v], &s->model->outputs[i],
                                    value_out(run, i), err));
            continue;
        }
        if (value_out(run, i))
            value_out(run, i)->kind = BYOC_TENSOR;
        if (output_of(run, i)->data) {
            BYI_TRY(byi_copy_strings(s, t, data, err));
            continue;
        }
        if (!data && fr->block[root])
            data = t->data;
        if (!data) {
            uint32_t block;
            BYI_TRY(byi_pool_take(&s->pool, byi_tensor_bytes(t), &block, err));
            data = s->pool.at[block].at;
            memcpy(data, t->data, byi_tensor_bytes(t));
        }
        s->results[i] = *t;
        s->results[i].data = data;
        BYI_TRY(byi_copy_strings(s, t, data, err));
        *output_of(run, i) = byi_tensor_dlpack(&s->results[i]);
    }
    return BYOC_OK;
}

/* Bind the sequences and optionals among the inputs to main's frame. */
static enum byoc_status read_values(struct byoc_state *s,
                                    const struct run_io *run,
                                    struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[0];
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        const struct byoc_io *io = &s->model->inputs[i];
        if (io->kind != BYOC_TENSOR)
            BYI_TRY(byi_value_read(s, value_in(run, i), io,
                                   &s->work->frames[0]->obj[f->inputs[i]],
                                   err));
    }
    return BYOC_OK;
}

static enum byoc_status run_bound(struct byoc_state *s,
                                  const struct run_io *run,
                                  struct byoc_error *err)
{
    if (s->skips_unneeded)
        BYI_TRY(byi_request_find_needed(s, err));
    BYI_TRY(place_inputs(s, err));
    BYI_TRY(read_values(s, run, err));
    BYI_TRY(bind_outputs(s, run, err));
    BYI_TRY(byi_exec_provide_scratch(s, s->work->scratch, err));
    BYI_TRY(byi_exec_main(s, err));
    return set_outputs(s, run, err);
}

static enum byoc_status run_inputs(struct byoc_state *s,
                                   const struct run_io *run,
                                   struct byoc_error *err)
{
    struct byi_turn turn;
    enum byoc_status status = begin_run(s, err);
    if (status == BYOC_OK) {
        byi_workers_enter(&turn, &s->model->parallelism);
        status = run_bound(s, run, err);
        byi_workers_leave(&turn);
        end_run(s);
    }
    return status;
}

/* Whether an earlier run set `data` in the view for output i. A request may
 * pass the view of another output of that run. */
static bool is_result(const struct byoc_state *s, const struct run_io *run,
                      uint32_t i, const void *data)
{
    const uint32_t n = s->model->plan->funcs[0].n_outputs;
    bool found = s->results[i].data == data;
    for (uint32_t k = 0; run->request && !found && k < n; k++)
        found = s->results[k].data == data;
    return found;
}

/* Set the data of views that an earlier run filled in to NULL: they point into
 * the state's memory, which this run may reuse. A later request may pass the
 * views of outputs that this request omits. Their memory stays reserved, so
 * that no other value gets the same address. */
static void forget_results(struct byoc_state *s, const struct run_io *run)
{
    const uint32_t n = s->model->plan->funcs[0].n_outputs;
    for (uint32_t i = 0; i < n; i++) {
        DLTensor *view = is_requested(run, i) ? output_of(run, i) : NULL;
        if (view && view->data && is_result(s, run, i, view->data))
            view->data = NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (is_requested(run, i))
            s->results[i].data = NULL;
        else if (s->results[i].data)
            byi_pool_keep(&s->pool, s->results[i].data);
    }
}

/* Run main with the inputs and outputs of `run`. */
static enum byoc_status run_main(struct byoc_state *state,
                                 const struct run_io *run,
                                 struct byoc_error *err)
{
    forget_results(state, run);
    byi_exec_begin(state);
    BYI_TRY(bind_inputs(state, run, err));
    uint64_t begin = state->trace ? byi_now_ns() : 0;
    enum byoc_status status = run_inputs(state, run, err);
    if (state->trace)
        byi_trace_event(
            state->trace,
            &(struct byoc_event){.kind = "run",
                                 .name = state->model->plan->funcs[0].name,
                                 .begin_ns = begin});
    return byi_memory_explain(state->model->memory, status, err);
}

static enum byoc_status check_counts_and_run(struct byoc_state *state,
                                             const struct run_io *run,
                                             uint32_t n_inputs,
                                             uint32_t n_outputs,
                                             struct byoc_error *err)
{
    const struct byi_plan_func *f = &state->model->plan->funcs[0];
    if (n_inputs != f->n_inputs || n_outputs != f->n_outputs)
        return byi_fail(err, BYOC_EINVAL,
                        "found %u inputs and %u outputs, expected the model's "
                        "%u and %u",
                        n_inputs, n_outputs, f->n_inputs, f->n_outputs);
    return run_main(state, run, err);
}

enum byoc_status byoc_run(struct byoc_state *state, const DLTensor *inputs,
                          uint32_t n_inputs, DLTensor *outputs,
                          uint32_t n_outputs, struct byoc_error *err)
{
    const struct run_io run = {.in = inputs, .out = outputs};
    return check_counts_and_run(state, &run, n_inputs, n_outputs, err);
}

enum byoc_status byoc_run_values(struct byoc_state *state,
                                 const struct byoc_value *inputs,
                                 uint32_t n_inputs, struct byoc_value *outputs,
                                 uint32_t n_outputs, struct byoc_error *err)
{
    static const struct byoc_value none;
    const struct run_io run = {.values_in = inputs ? inputs : &none,
                               .values_out = outputs};
    return check_counts_and_run(state, &run, n_inputs, n_outputs, err);
}

/* The tag of the run that this thread executes. */
static _Thread_local const char *current_tag;

const char *byoc_log_tag(void)
{
    return current_tag;
}

static bool requests_all_outputs(const struct byoc_state *s)
{
    bool all = true;
    for (uint32_t i = 0; i < s->model->plan->funcs[0].n_outputs; i++)
        all = all && s->out_at[i] != UINT32_MAX;
    return all;
}

enum byoc_status byoc_run_request(struct byoc_state *state,
                                  const struct byoc_request *caller_request,
                                  struct byoc_error *err)
{
    const char *previous_tag = current_tag;
    struct byoc_request request;
    BYI_TRY(byi_params_read(&request, BYI_PARAMS_SIZE(byoc_request, tag),
                            caller_request, err));
    BYI_TRY(byi_reserved_check(request.reserved, err));
    const struct run_io run = {
        .request = &request, .in_at = state->in_at, .out_at = state->out_at};
    BYI_TRY(byi_request_bind(state, &request, err));
    state->skips_unneeded = !requests_all_outputs(state);
    if (state->trace)
        byi_trace_tag(state->trace, request.tag);
    current_tag = request.tag;
    const enum byoc_status status = run_main(state, &run, err);
    current_tag = previous_tag;
    if (state->trace)
        byi_trace_tag(state->trace, NULL);
    state->skips_unneeded = false;
    return status;
}
