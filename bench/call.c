/* SPDX-License-Identifier: Apache-2.0 */
/* call.c: prints how many nanoseconds one call of byoc_run takes, for
 * bench/python-overhead.
 *     call MODEL.so RUNS
 * The model has one input and one output, whose memory the caller provides.
 * Exits with 2 for wrong arguments, or if the model cannot be loaded or run.
 */
#include <byoc/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static DLTensor new_tensor(const struct byoc_io *io)
{
    size_t n = 1;
    for (uint32_t d = 0; d < io->rank; d++)
        n *= (size_t)io->dims[d];
    return (DLTensor){.data = calloc(n, byoc_dtype_size(io->dtype)),
                      .device = {kDLCPU, 0},
                      .ndim = (int)io->rank,
                      .dtype = byoc_dtype_dlpack(io->dtype),
                      .shape = (int64_t *)io->dims};
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    struct byoc_error err;
    struct byoc_load_params params = {.struct_size = sizeof params,
                                      .threads = 1};
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    if (argc != 3)
        return fprintf(stderr, "usage: call MODEL.so RUNS\n"), 2;
    if (byoc_model_load(argv[1], &params, &model, &err) ||
        byoc_state_new(model, &state, &err))
        return fprintf(stderr, "call: %s\n", err.text), 2;
    DLTensor in = new_tensor(byoc_model_input(model, 0));
    DLTensor out = new_tensor(byoc_model_output(model, 0));
    const int runs = atoi(argv[2]);
    const double start = now();
    for (int i = 0; i < runs; i++)
        if (byoc_run(state, &in, 1, &out, 1, &err))
            return fprintf(stderr, "call: %s\n", err.text), 2;
    printf("%.1f\n", (now() - start) / runs);
    free(in.data);
    free(out.data);
    byoc_state_free(&state);
    byoc_model_free(&model);
    return 0;
}
