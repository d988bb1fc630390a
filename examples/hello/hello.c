/* SPDX-License-Identifier: Apache-2.0 */
/* Compile a model and run it: 64 images from stdin, their digits to stdout.
 *     cc hello.c $(pkg-config --cflags --libs byoc) -o hello
 *     tail -c +129 batch0.input_0.npy | ./hello digits.onnx */
#include <byoc/byoc.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static float images[64][8][8];
    int64_t shape[] = {64, 1, 8, 8};
    DLTensor in = {images, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0};
    DLTensor out = {0}; /* without data: the state's own memory */
    struct byoc_error err = {.text = "usage: hello MODEL.onnx <IMAGES"};
    struct byoc_compiled *compiled = NULL;
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    if (argc != 2 || fread(images, sizeof images, 1, stdin) != 1 ||
        byoc_compile(argv[1], NULL, &compiled, &err) ||
        byoc_compiled_load(compiled, NULL, &model, &err) ||
        byoc_state_new(model, &state, &err) ||
        byoc_run(state, &in, 1, &out, 1, &err))
        return fprintf(stderr, "%s\n", err.text), 2;
    const float *row = out.data;
    for (int64_t i = 0; i < out.shape[0]; i++, row += out.shape[1]) {
        int64_t best = 0;
        for (int64_t k = 1; k < out.shape[1]; k++)
            best = row[k] > row[best] ? k : best;
        printf("%d\n", (int)best);
    }
    byoc_state_free(&state);
    byoc_model_free(&model);
    byoc_compiled_free(&compiled);
}
