/* SPDX-License-Identifier: Apache-2.0 */
/* request.c: reads requests: finds the binding of each input and output by
 * name, and the steps that the requested outputs depend on. */
#include "state.h"

#include <string.h>

/* --- names ---------------------------------------------------------------- */

/* The index of the input or output of this name, which is probably `likely`;
 * UINT32_MAX: none. */
static uint32_t index_of(const struct byoc_io *ios, uint32_t n, uint32_t likely,
                         const char *name)
{
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = (likely + k) % n;
        if (strcmp(ios[i].name, name) == 0)
            return i;
    }
    return UINT32_MAX;
}

uint32_t byoc_model_input_index(const struct byoc_model *model,
                                const char *name)
{
    return index_of(model->inputs, model->plan->funcs[0].n_inputs, 0, name);
}

uint32_t byoc_model_output_index(const struct byoc_model *model,
                                 const char *name)
{
    return index_of(model->outputs, model->plan->funcs[0].n_outputs, 0, name);
}

/* Print the names as "a, b, c", as many as fit into `text`. */
static const char *list_names(const struct byoc_io *ios, uint32_t n, char *text,
                              size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < n && at + 1 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%.60s", i ? ", " : "",
                               ios[i].name);
    return text;
}

/* The inputs or the outputs of a request. */
struct io_side {
    const char *kind; /* "input" or "output" */
    const struct byoc_io *ios;
    uint32_t n;
    const struct byoc_binding *bindings;
    uint32_t n_bindings;
    uint32_t *at; /* for each input or output: its binding; UINT32_MAX: none */
};

static enum byoc_status place_binding(const struct io_side *s, uint32_t binding,
                                      struct byoc_error *err)
{
    const char *name = s->bindings[binding].name;
    char names[512];
    uint32_t i = binding;
    if (name)
        i = s->n ? index_of(s->ios, s->n, binding % s->n, name) : UINT32_MAX;
    if (i >= s->n)
        return byi_fail(err, BYOC_EINVAL,
                        "%s %u: found \"%.100s\", expected one of the model's "
                        "%ss: %s",
                        s->kind, binding, name ? name : "", s->kind,
                        list_names(s->ios, s->n, names, sizeof names));
    if (s->at[i] != UINT32_MAX)
        return byi_fail(err, BYOC_EINVAL,
                        "%s \"%s\" is given twice, expected once", s->kind,
                        s->ios[i].name);
    s->at[i] = binding;
    return BYOC_OK;
}

static enum byoc_status place_bindings(const struct io_side *s,
                                       struct byoc_error *err)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->at[i] = UINT32_MAX;
    for (uint32_t k = 0; k < s->n_bindings; k++)
        BYI_TRY(place_binding(s, k, err));
    return BYOC_OK;
}

enum byoc_status byi_request_bind(struct byoc_state *s,
                                  const struct byoc_request *request,
                                  struct byoc_error *err)
{
    const struct io_side in = {
        "input",         s->model->inputs,  s->model->plan->funcs[0].n_inputs,
        request->inputs, request->n_inputs, s->in_at};
    const struct io_side out = {"output",
                                s->model->outputs,
                                s->model->plan->funcs[0].n_outputs,
                                request->outputs,
                                request->n_outputs,
                                s->out_at};
    BYI_TRY(place_bindings(&in, err));
    for (uint32_t i = 0; i < in.n; i++)
        if (in.at[i] == UINT32_MAX)
            return byi_fail(err, BYOC_EINVAL,
                            "input \"%s\" is missing, expected a value of each "
                            "input",
                            in.ios[i].name);
    return place_bindings(&out, err);
}

/* --- steps ---------------------------------------------------------------- */

/* Allocate n elements of `needed`: one for each step of main, then one for each
 * value. */
static enum byoc_status reserve_needed(struct byoc_state *s, size_t n,
                                       struct byoc_error *err)
{
    if (n <= s->needed_capacity)
        return BYOC_OK;
    bool *array = byi_realloc(s->needed, n, sizeof *array);
    if (!array)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory to choose the steps of a request");
    s->needed = array;
    s->needed_capacity = n;
    return BYOC_OK;
}

/* Mark value v and, if it is a view, the root whose memory it shares. */
static void mark_needed(const struct byi_plan_func *f, bool *values, uint32_t v)
{
    values[v] = values[f->values[v].root] = true;
}

/* Steps are in topological order, so one backward pass finds all steps that the
 * outputs depend on. */
enum byoc_status byi_request_find_needed(struct byoc_state *s,
                                         struct byoc_error *err)
{
    const struct byi_plan_func *f = &s->specialisation->plan->funcs[0];
    BYI_TRY(reserve_needed(s, (size_t)f->n_steps + f->n_values, err));
    bool *value = s->needed + f->n_steps;
    memset(s->needed, 0, (size_t)f->n_steps + f->n_values);
    for (uint32_t i = 0; i < f->n_outputs; i++)
        if (s->out_at[i] != UINT32_MAX)
            mark_needed(f, value, f->outputs[i]);
    for (uint32_t k = f->n_steps; k-- > 0;) {
        const struct byi_step *step = &f->steps[k];
        for (uint32_t i = 0; i < step->n_out; i++)
            s->needed[k] = s->needed[k] || value[step->out[i]];
        for (uint32_t i = 0; s->needed[k] && i < step->n_in; i++)
            mark_needed(f, value, step->in[i]);
    }
    return BYOC_OK;
}
