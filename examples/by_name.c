/* SPDX-License-Identifier: Apache-2.0 */
/* Run a model with inputs by name, for some of its outputs, and print the time
 * of each node. Inputs are all ones.
 *     by_name MODEL.so [OUTPUT...]        (no OUTPUT: all of them)
 *     cc by_name.c $(pkg-config --cflags --libs byoc-runtime) */
#include <byoc/runtime.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_VALUES = 16 }; /* limit on the number of inputs, and of outputs */

/* The number of elements. A negative dim counts as 0. */
static size_t count(const int64_t *dims, uint32_t rank)
{
    size_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        n *= dims[i] > 0 ? (size_t)dims[i] : 0;
    return n;
}

/* An input whose elements are ones and whose symbolic dims are 1. The caller
 * frees data and shape. */
static struct byoc_binding ones(const struct byoc_io *io)
{
    int64_t *dims = calloc(io->rank + 1u, sizeof *dims);
    for (uint32_t i = 0; dims && i < io->rank; i++)
        dims[i] = io->dims[i] < 0 ? 1 : io->dims[i];
    const size_t n = dims ? count(dims, io->rank) : 0;
    float *data = calloc(n + 1, sizeof *data);
    for (size_t i = 0; data && i < n; i++)
        data[i] = 1;
    return (struct byoc_binding){
        .name = io->name,
        .value.tensor = {.data = data,
                         .device = {kDLCPU, 0},
                         .ndim = (int)io->rank,
                         .dtype = byoc_dtype_dlpack(io->dtype),
                         .shape = dims}};
}

/* Print "tag kind name (nodes): microseconds". */
static void print_event(void *ctx, const struct byoc_event *e)
{
    (void)ctx;
    printf("%s %s %s (%s): %.1f us\n", e->tag, e->kind, e->name, e->sources,
           (double)(e->end_ns - e->begin_ns) / 1e3);
}

/* Run the request with inputs of ones, and print its outputs. Returns the exit
 * code. */
static int run(const struct byoc_model *model, struct byoc_state *state,
               struct byoc_request *request, struct byoc_error *err)
{
    struct byoc_binding in[MAX_VALUES];
    for (uint32_t i = 0; i < request->n_inputs; i++) {
        in[i] = ones(byoc_model_input(model, i));
        if (byoc_model_input(model, i)->dtype != BYOC_F32)
            return fprintf(stderr, "input %s: found %s, expected float32\n",
                           in[i].name,
                           byoc_dtype_name(byoc_model_input(model, i)->dtype)),
                   2;
    }
    request->inputs = in;
    const int failed = byoc_state_profile(state, print_event, NULL, err) ||
                       byoc_run_request(state, request, err);
    for (uint32_t i = 0; !failed && i < request->n_outputs; i++) {
        const DLTensor *t = &request->outputs[i].value.tensor;
        printf("%s: %zu elements, the first is %g\n", request->outputs[i].name,
               count(t->shape, (uint32_t)t->ndim), *(const float *)t->data);
    }
    for (uint32_t i = 0; i < request->n_inputs; i++) {
        free(in[i].value.tensor.data);
        free(in[i].value.tensor.shape);
    }
    return failed ? (fprintf(stderr, "%s\n", err->text), 2) : 0;
}

int main(int argc, char **argv)
{
    struct byoc_error err = {.text = "usage: by_name MODEL.so [OUTPUT...]"};
    struct byoc_load_params params = {.struct_size = sizeof params};
    struct byoc_binding out[MAX_VALUES] = {0};
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    if (argc < 2 || argc > 2 + MAX_VALUES ||
        byoc_model_load(argv[1], &params, &model, &err) ||
        byoc_state_new(model, &state, &err))
        return fprintf(stderr, "%s\n", err.text), 2;
    struct byoc_request request = {.struct_size = sizeof request,
                                   .n_inputs = byoc_model_n_inputs(model),
                                   .n_outputs = (uint32_t)argc - 2,
                                   .outputs = out,
                                   .tag = "first"};
    if (request.n_outputs == 0)
        request.n_outputs = byoc_model_n_outputs(model);
    if (request.n_inputs > MAX_VALUES || request.n_outputs > MAX_VALUES)
        return fprintf(stderr,
                       "found %u inputs and %u outputs, expected at most %d\n",
                       request.n_inputs, request.n_outputs, MAX_VALUES),
               2;
    for (uint32_t i = 0; i < request.n_outputs; i++)
        out[i].name =
            argc > 2 ? argv[2 + i] : byoc_model_output(model, i)->name;
    const int code = run(model, state, &request, &err);
    byoc_state_free(&state);
    byoc_model_free(&model);
    return code;
}
