/* SPDX-License-Identifier: Apache-2.0 */
/* Classify with a compiled model. Float32 values of its first input come from
 * stdin. The best class of each row of the first output goes to stdout.
 *     cc classify.c $(pkg-config --cflags --libs byoc-runtime) */
#include <byoc/runtime.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Print the best class of each row. */
static void print_classes(const DLTensor *out)
{
    const float *row = out->data;
    for (int64_t r = 0; r < out->shape[0]; r++, row += out->shape[1]) {
        int64_t best = 0;
        for (int64_t c = 1; c < out->shape[1]; c++)
            best = row[c] > row[best] ? c : best;
        printf("%lld\n", (long long)best);
    }
}

/* Classify the inputs on stdin. Returns the status of the last run. */
static enum byoc_status classify(struct byoc_model *model,
                                 struct byoc_state *state,
                                 struct byoc_error *err)
{
    const struct byoc_io *io = byoc_model_input(model, 0);
    size_t n = 1;
    for (uint32_t i = 0; i < io->rank; i++)
        n *= (size_t)io->dims[i];
    float *values = malloc(n * sizeof *values);
    DLTensor in = {.data = values,
                   .device = {kDLCPU, 0},
                   .ndim = (int)io->rank,
                   .dtype = byoc_dtype_dlpack(BYOC_F32),
                   .shape = (int64_t *)io->dims};
    enum byoc_status status = BYOC_OK;
    while (!status && fread(values, sizeof *values, n, stdin) == n) {
        DLTensor out = {0}; /* without data: the state's own memory */
        status = byoc_run(state, &in, 1, &out, 1, err);
        if (!status)
            print_classes(&out);
    }
    free(values);
    return status;
}

int main(int argc, char **argv)
{
    struct byoc_error err = {.text = "usage: classify MODEL.so <VALUES"};
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    const bool failed =
        argc != 2 || byoc_model_load(argv[1], NULL, &model, &err) ||
        byoc_state_new(model, &state, &err) || classify(model, state, &err);
    if (failed)
        fprintf(stderr, "%s\n", err.text);
    byoc_state_free(&state);
    byoc_model_free(&model);
    return failed ? 2 : 0;
}
