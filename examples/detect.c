/* SPDX-License-Identifier: Apache-2.0 */
/* Detect objects with a model that ends in NonMaxSuppression: read float32
 * images from stdin, and print the boxes found in each. The number of boxes is
 * known only after a run, so the outputs are in the state's memory.
 *     cc detect.c $(pkg-config --cflags --libs byoc-runtime)
 */
#include <byoc/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS, SCORES, BOXES, OUTPUTS };

/* Whether the model has one input, and the outputs are classes (n, int64),
 * scores (n) and boxes (n, 4). If not, err has a message. */
static int is_detector(const struct byoc_model *model, const char *path,
                       struct byoc_error *err)
{
    static const uint32_t ranks[] = {1, 1, 2};
    const uint32_t n_in = byoc_model_n_inputs(model);
    const uint32_t n_out = byoc_model_n_outputs(model);
    int good = n_in == 1 && n_out == OUTPUTS;
    if (!good)
        snprintf(err->text, sizeof err->text,
                 "%s: found %u inputs and %u outputs, expected 1 and %d", path,
                 n_in, n_out, OUTPUTS);
    for (uint32_t i = 0; good && i < OUTPUTS; i++) {
        const struct byoc_io *io = byoc_model_output(model, i);
        good = io->rank == ranks[i] && (i != BOXES || io->dims[1] == 4) &&
               io->dtype == (i == DIGITS ? BYOC_I64 : BYOC_F32);
        if (!good)
            snprintf(err->text, sizeof err->text,
                     "%s: output %u: found another type, expected classes (n) "
                     "of int64, then float32 scores (n) and boxes (n, 4)",
                     path, i);
    }
    return good;
}

static void print_boxes(int image, const DLTensor out[OUTPUTS])
{
    const int64_t *digits = out[DIGITS].data;
    const float *scores = out[SCORES].data, *box = out[BOXES].data;
    for (int64_t i = 0; i < out[DIGITS].shape[0]; i++, box += 4)
        printf("scene %d: digit %lld, score %.2f, rows %.0f to %.0f, columns "
               "%.0f to %.0f\n",
               image, (long long)digits[i], (double)scores[i], (double)box[0],
               (double)box[2], (double)box[1], (double)box[3]);
}

/* Print the digits found in each image on stdin. Returns the exit code. */
static int detect(struct byoc_model *model, struct byoc_state *state,
                  struct byoc_error *err)
{
    const struct byoc_io *io = byoc_model_input(model, 0);
    size_t n = 1;
    for (uint32_t i = 0; i < io->rank; i++)
        n *= io->dims[i] > 0 ? (size_t)io->dims[i] : 0;
    float *pixels = malloc((n + 1) * sizeof *pixels);
    DLTensor in = {.data = pixels,
                   .device = {kDLCPU, 0},
                   .ndim = (int)io->rank,
                   .dtype = byoc_dtype_dlpack(BYOC_F32),
                   .shape = (int64_t *)io->dims};
    int code = 0, image = 0;
    while (pixels && n > 0 && code == 0 &&
           fread(pixels, sizeof *pixels, n, stdin) == n) {
        DLTensor out[OUTPUTS] = {0};
        if (byoc_run(state, &in, 1, out, OUTPUTS, err))
            code = 2;
        else
            print_boxes(image++, out);
    }
    free(pixels);
    return code;
}

int main(int argc, char **argv)
{
    struct byoc_error err = {.text = "usage: detect MODEL.so <IMAGES"};
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    int code = 2;
    if (argc == 2 && !byoc_model_load(argv[1], NULL, &model, &err) &&
        !byoc_state_new(model, &state, &err)) {
        if (is_detector(model, argv[1], &err))
            code = detect(model, state, &err);
    }
    if (code)
        fprintf(stderr, "%s\n", err.text);
    byoc_state_free(&state);
    byoc_model_free(&model);
    return code;
}
