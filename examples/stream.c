/* SPDX-License-Identifier: Apache-2.0 */
/* Run a model with a recurrent state on a stream: read float32 chunks of input
 * 0 from stdin, and write output 0 of each chunk to stdout. Input 1, the state,
 * is zeros for the first chunk; later it is output 1 of the previous chunk.
 * Other inputs are constants of the model (byoc compile --const).
 *     cc stream.c $(pkg-config --cflags --libs byoc-runtime)
 *     byoc compile vad.onnx --shape input=1x576 --shape state=2x1x128 \
 *         --const sr=16000 -o vad.so && ./stream vad.so <chunks >probabilities
 */
#include <byoc/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of elements. A negative dim counts as 0. */
static size_t count(const int64_t *dims, uint32_t rank)
{
    size_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        n *= dims[i] > 0 ? (size_t)dims[i] : 0;
    return n;
}

/* A tensor of zeros for an input. The caller frees its data. */
static DLTensor zeros(const struct byoc_io *io)
{
    return (DLTensor){.data = calloc(count(io->dims, io->rank) + 1,
                                     byoc_dtype_size(io->dtype)),
                      .device = {kDLCPU, 0},
                      .ndim = (int)io->rank,
                      .dtype = byoc_dtype_dlpack(io->dtype),
                      .shape = (int64_t *)io->dims};
}

/* Run the model on each chunk of stdin. Returns the exit code. */
static int stream(struct byoc_model *model, struct byoc_state *state,
                  struct byoc_error *err)
{
    const struct byoc_io *io[] = {byoc_model_input(model, 0),
                                  byoc_model_input(model, 1)};
    DLTensor in[] = {zeros(io[0]), zeros(io[1])};
    const size_t n = count(io[0]->dims, io[0]->rank);
    const size_t bytes =
        count(io[1]->dims, io[1]->rank) * byoc_dtype_size(io[1]->dtype);
    int code = 0;
    while (n > 0 && fread(in[0].data, sizeof(float), n, stdin) == n) {
        DLTensor out[2] = {0}; /* without data: the state's own memory */
        if (byoc_run(state, in, 2, out, 2, err)) {
            code = 2;
            break;
        }
        fwrite(out[0].data, sizeof(float),
               count(out[0].shape, (uint32_t)out[0].ndim), stdout);
        memcpy(in[1].data, out[1].data, bytes);
    }
    free(in[0].data);
    free(in[1].data);
    return code;
}

int main(int argc, char **argv)
{
    struct byoc_error err = {.text = "usage: stream MODEL.so <CHUNKS >RESULTS"};
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    int code = 2;
    if (argc == 2 && !byoc_model_load(argv[1], NULL, &model, &err) &&
        !byoc_state_new(model, &state, &err)) {
        if (byoc_model_n_inputs(model) == 2 && byoc_model_n_outputs(model) == 2)
            code = stream(model, state, &err);
        else
            snprintf(err.text, sizeof err.text,
                     "%s: found %u inputs and %u outputs, expected a chunk "
                     "and a state as inputs, a result and a state as outputs",
                     argv[1], byoc_model_n_inputs(model),
                     byoc_model_n_outputs(model));
    }
    if (code)
        fprintf(stderr, "%s\n", err.text);
    byoc_state_free(&state);
    byoc_model_free(&model);
    return code;
}
