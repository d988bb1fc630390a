/* SPDX-License-Identifier: Apache-2.0 */
/* Continue a text with a decoder of bytes, and print it byte by byte. The
 * caches are in buffers of this program, bound as inputs and outputs. A run
 * appends the rows of its bytes, and copies no other rows.
 *     cc generate.c $(pkg-config --cflags --libs byoc-runtime) -lm
 *     byoc compile examples/generate/text.onnx -o text.so
 *     ./generate text.so "The backend" 200 0.7
 */
#include <byoc/runtime.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_INPUTS = 64 };
enum { MAX_RANK = 8 }; /* of a cache */

/* A cache: an input with the rows of earlier runs, and an output that shares
 * its memory and also has the rows of this run. */
struct cache {
    uint32_t axis;                             /* of the rows */
    int64_t past[MAX_RANK], present[MAX_RANK]; /* shapes of input and output */
    int64_t strides[MAX_RANK];                 /* of both, in elements */
    int64_t bytes;
};

static struct byoc_error err;

static _Noreturn void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("generate: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    exit(2);
}

/* Allocate a cache for `capacity` rows, and bind it as an output and as the
 * input that this output extends. The caller frees the input's data. */
static void open_cache(const struct byoc_model *model, uint32_t output,
                       int64_t capacity, struct cache *c, DLTensor *in,
                       DLTensor *out)
{
    const uint32_t input = byoc_model_in_place(model, output, &c->axis);
    if (input == UINT32_MAX)
        fail("output %u: found an output that extends no input, expected a "
             "cache",
             output);
    const struct byoc_io *io = byoc_model_input(model, input);
    int64_t n = 1;
    for (uint32_t d = io->rank; d-- > 0; n *= c->present[d]) {
        if (d >= MAX_RANK)
            fail("input %u: found %u axes, expected at most %d", input,
                 io->rank, MAX_RANK);
        if (io->dims[d] < 0 && d != c->axis)
            fail("input %u: found a symbolic axis %u, expected only axis %u; "
                 "compile with --dim",
                 input, d, c->axis);
        c->past[d] = d == c->axis ? 0 : io->dims[d];
        c->present[d] = d == c->axis ? capacity : io->dims[d];
        c->strides[d] = n;
    }
    c->bytes = n * (int64_t)sizeof(float);
    in[input] = (DLTensor){.data = calloc((size_t)n, sizeof(float)),
                           .device = {kDLCPU, 0},
                           .ndim = (int)io->rank,
                           .dtype = byoc_dtype_dlpack(io->dtype),
                           .shape = c->past,
                           .strides = c->strides};
    out[output] = in[input];
    out[output].shape = c->present;
    if (io->dtype != BYOC_F32)
        fail("input %u: found %s, expected float32", input,
             byoc_dtype_name(io->dtype));
    if (!in[input].data)
        fail("input %u: out of memory", input);
}

/* The index of the largest logit if `temperature` is 0; otherwise a random
 * index with the probabilities softmax(logits / temperature). */
static int64_t choose(const float *logits, int64_t n, double temperature)
{
    static unsigned seed = 7;
    int64_t best = 0;
    double sum = 0;
    for (int64_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    if (temperature <= 0)
        return best;
    for (int64_t i = 0; i < n; i++)
        sum += exp((logits[i] - logits[best]) / temperature);
    seed = seed * 1103515245u + 12345u;
    double remaining = sum * (seed >> 8) / (1 << 24);
    for (int64_t i = 0; i < n; i++) {
        remaining -= exp((logits[i] - logits[best]) / temperature);
        if (remaining < 0)
            return i;
    }
    return best;
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Print the time of a step after the first one, which reads the whole text, and
 * the memory of the model and of the caches. */
static void report(const struct byoc_model *model, const struct cache *caches,
                   uint32_t n, int64_t steps, double seconds)
{
    uint64_t peak;
    int64_t bytes = 0;
    for (uint32_t i = 1; i < n; i++)
        bytes += caches[i].bytes;
    byoc_model_memory(model, &peak);
    fprintf(stderr,
            "%.1f us a byte; memory: model and state %.0f kB at most, "
            "caches %.0f kB\n",
            1e6 * seconds / (double)(steps > 1 ? steps - 1 : 1),
            1e-3 * (double)peak, 1e-3 * (double)bytes);
}

int main(int argc, char **argv)
{
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    if (argc < 3 || !argv[2][0])
        fail("usage: generate MODEL.so TEXT [BYTES [TEMPERATURE]]");
    if (byoc_model_load(argv[1], NULL, &model, &err) ||
        byoc_state_new(model, &state, &err))
        fail("%s", err.text);
    const uint32_t n = byoc_model_n_inputs(model);
    const int64_t bytes = argc > 3 ? atol(argv[3]) : 200;
    const double temperature = argc > 4 ? atof(argv[4]) : 0.7;
    if (n > MAX_INPUTS || byoc_model_n_outputs(model) != n)
        fail("found %u inputs and %u outputs, expected ids and caches, and as "
             "many outputs, at most %d",
             n, byoc_model_n_outputs(model), MAX_INPUTS);
    int64_t length = (int64_t)strlen(argv[2]); /* of the text so far */
    int64_t shape[] = {1, length};
    int64_t *ids = calloc((size_t)length, sizeof *ids);
    struct cache caches[MAX_INPUTS];
    DLTensor in[MAX_INPUTS] = {{.data = ids,
                                .device = {kDLCPU, 0},
                                .ndim = 2,
                                .dtype = byoc_dtype_dlpack(BYOC_I64),
                                .shape = shape}};
    DLTensor out[MAX_INPUTS] = {{0}}; /* logits: in the state's memory */
    for (uint32_t i = 1; i < n; i++)
        open_cache(model, i, length + bytes, &caches[i], in, out);
    for (int64_t i = 0; ids && i < length; i++)
        ids[i] = argv[2][i] & 127;
    fputs(argv[2], stdout);
    double began = now();
    for (int64_t step = 0; ids && step < bytes; step++) {
        if (step == 1)
            began = now();
        for (uint32_t i = 1; i < n; i++)
            caches[i].present[caches[i].axis] = length;
        if (byoc_run(state, in, n, out, n, &err))
            fail("%s", err.text);
        const int64_t vocabulary = out[0].shape[2];
        const float *last = (float *)out[0].data + (shape[1] - 1) * vocabulary;
        ids[0] = choose(last, vocabulary, temperature);
        putchar((int)ids[0]);
        fflush(stdout);
        for (uint32_t i = 1; i < n; i++)
            caches[i].past[caches[i].axis] = length;
        shape[1] = 1;
        length++;
    }
    putchar('\n');
    fflush(stdout);
    report(model, caches, n, bytes, now() - began);
    for (uint32_t i = 0; i < n; i++)
        free(in[i].data);
    byoc_state_free(&state);
    byoc_model_free(&model);
}
