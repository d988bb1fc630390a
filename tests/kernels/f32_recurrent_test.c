/* SPDX-License-Identifier: Apache-2.0 */
/* f32_recurrent_test.c: tests the layers of kernels/recurrent.h, under every
 * instruction set of the machine, against loops in float64. Uses random sizes,
 * initial states, both directions, any number of threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/recurrent.h"

#include <cmocka.h>

#include "isas.h"
#include "random.h"

static float *random_floats(int64_t n, double scale)
{
    float *at = malloc((size_t)n * sizeof *at + 1);
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)(scale * ((double)draw(20001) / 10000 - 1));
    return at;
}

/* A layer with all its arguments. The axes of the weights are direction, gate,
 * unit and row. */
struct layer_case {
    struct byi_f32_recurrent layer;
    float *x, *weights[2], *packed[2], *bias, *h, *c, *y, *y_h, *y_c;
    int64_t results, states; /* elements of y, and of each state */
};

static void open_case(struct layer_case *l, bool states)
{
    struct byi_f32_recurrent *layer = &l->layer;
    byi_f32_recurrent_plan(layer);
    const int64_t units = layer->directions * layer->hidden;
    l->results = layer->time * layer->batch * units;
    l->states = layer->batch * units;
    l->x = random_floats(layer->time * layer->batch * layer->input, 1);
    for (int i = 0; i < 2; i++) {
        const int64_t rows = i ? layer->hidden : layer->input;
        const int64_t strides[] = {layer->gates * layer->hidden * rows, 1,
                                   layer->hidden * rows, rows};
        l->weights[i] = random_floats(layer->directions * strides[0],
                                      1 / sqrt((double)rows));
        l->packed[i] =
            malloc(byi_f32_recurrent_packed(layer, i) + sizeof(float));
        byi_f32_recurrent_pack(layer, i, l->weights[i], strides, l->packed[i]);
    }
    l->bias = random_floats(units * (layer->gates + layer->gru), 1);
    l->h = states ? random_floats(l->states, 1) : NULL;
    l->c = states && !layer->gru ? random_floats(l->states, 1) : NULL;
    l->y = random_floats(l->results, 1);
    l->y_h = random_floats(l->states, 1);
    l->y_c = layer->gru ? NULL : random_floats(l->states, 1);
}

static void close_case(struct layer_case *l)
{
    float *buffers[] = {
        l->x, l->weights[0], l->weights[1], l->packed[0], l->packed[1], l->bias,
        l->h, l->c,          l->y,          l->y_h,       l->y_c};
    for (size_t i = 0; i < BYI_COUNT(buffers); i++)
        free(buffers[i]);
}

static void run_case(const struct layer_case *l, int threads)
{
    float *scratch = malloc(byi_f32_recurrent_scratch(&l->layer, threads));
    const struct byi_f32_recurrent_run run = {.layer = &l->layer,
                                              .x = l->x,
                                              .weights = l->packed[0],
                                              .recurrent = l->packed[1],
                                              .bias = l->bias,
                                              .h = l->h,
                                              .c = l->c,
                                              .y = l->y,
                                              .y_h = l->y_h,
                                              .y_c = l->y_c,
                                              .scratch = scratch,
                                              .threads = threads};
    byi_f32_recurrent_run(&run);
    free(scratch);
}

static void check_near(const struct layer_case *l, const char *what,
                       double expected, float found)
{
    const struct byi_f32_recurrent *layer = &l->layer;
    if (!(fabs(expected - (double)found) <= 1e-5))
        fail_msg("%s, %s, time %lld, batch %lld, input %lld, hidden %lld: %s "
                 "is %g, expected %g",
                 layer->kernels->recurrent_name, layer->gru ? "GRU" : "LSTM",
                 (long long)layer->time, (long long)layer->batch,
                 (long long)layer->input, (long long)layer->hidden, what,
                 (double)found, expected);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The product of row `row` of matrix i and the vector v. */
static double multiply(const struct layer_case *l, int i, int64_t row,
                       const double *v)
{
    const int64_t n = i ? l->layer.hidden : l->layer.input;
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += (double)l->weights[i][row * n + k] * v[k];
    return sum;
}

/* Compute one step of one sequence: replaces the state h and, for LSTM, c by
 * the state after the step. */
static void step(const struct layer_case *l, int64_t d, const double *x,
                 double *h, double *c)
{
    const struct byi_f32_recurrent *layer = &l->layer;
    const int64_t n = layer->hidden;
    const float *bias = l->bias + d * (layer->gates + layer->gru) * n;
    double *next = calloc((size_t)n, sizeof *next);
    for (int64_t u = 0; u < n; u++) {
        double in[4], hidden[4];
        for (int64_t g = 0; g < layer->gates; g++) {
            const int64_t row = (d * layer->gates + g) * n + u;
            in[g] = multiply(l, 0, row, x) + (double)bias[g * n + u];
            hidden[g] = multiply(l, 1, row, h);
        }
        if (layer->gru) {
            const double z = sigmoid(in[0] + hidden[0]);
            const double r = sigmoid(in[1] + hidden[1]);
            const double last = (double)bias[3 * n + u];
            next[u] = (1 - z) * tanh(in[2] + r * (hidden[2] + last)) + z * h[u];
        } else {
            c[u] = sigmoid(in[1] + hidden[1]) * c[u] +
                   sigmoid(in[0] + hidden[0]) * tanh(in[2] + hidden[2]);
            next[u] = sigmoid(in[3] + hidden[3]) * tanh(c[u]);
        }
    }
    memcpy(h, next, (size_t)n * sizeof *h);
    free(next);
}

static void check_sequence(const struct layer_case *l, int64_t d, int64_t b)
{
    const struct byi_f32_recurrent *layer = &l->layer;
    const int64_t n = layer->hidden, state = (d * layer->batch + b) * n;
    double *h = calloc((size_t)n, sizeof *h), *c = calloc((size_t)n, sizeof *c);
    double *x = calloc((size_t)layer->input + 1, sizeof *x);
    for (int64_t u = 0; u < n; u++) {
        h[u] = l->h ? (double)l->h[state + u] : 0;
        c[u] = l->c ? (double)l->c[state + u] : 0;
    }
    for (int64_t s = 0; s < layer->time; s++) {
        const bool backward = d == 1 || layer->reverse;
        const int64_t at =
            (backward ? layer->time - 1 - s : s) * layer->batch + b;
        for (int64_t k = 0; k < layer->input; k++)
            x[k] = (double)l->x[at * layer->input + k];
        step(l, d, x, h, c);
        for (int64_t u = 0; u < n; u++)
            check_near(l, "y", h[u],
                       l->y[(at * layer->directions + d) * n + u]);
    }
    for (int64_t u = 0; u < n; u++) {
        check_near(l, "y_h", h[u], l->y_h[state + u]);
        if (l->y_c)
            check_near(l, "y_c", c[u], l->y_c[state + u]);
    }
    free(h);
    free(c);
    free(x);
}

static void random_sizes(void)
{
    for (int i = 0; i < 150; i++) {
        struct layer_case l = {.layer = {.gru = draw(2),
                                         .time = 1 + draw(6),
                                         .batch = 1 + draw(draw(4) ? 5 : 14),
                                         .input = 1 + draw(40),
                                         .hidden = 1 + draw(70),
                                         .directions = 1 + draw(2)}};
        l.layer.reverse = l.layer.directions == 1 && draw(2);
        open_case(&l, draw(2));
        run_case(&l, 1 + (int)draw(5));
        for (int64_t d = 0; d < l.layer.directions; d++)
            for (int64_t b = 0; b < l.layer.batch; b++)
                check_sequence(&l, d, b);
        close_case(&l);
    }
}

static void test_random(void **state)
{
    (void)state;
    seed = 1;
    with_each_f32_kernels(random_sizes);
}

/* The results do not depend on the number of threads, also if several threads
 * compute one direction. Final states without a buffer are not written. */
static void threads(void)
{
    for (int i = 0; i < 4; i++) {
        struct layer_case l = {.layer = {.gru = i % 2,
                                         .time = 5,
                                         .batch = 3,
                                         .input = 33,
                                         .hidden = 331,
                                         .directions = 1 + i / 2}};
        open_case(&l, true);
        const size_t bytes = (size_t)l.results * sizeof(float);
        float *first = malloc(bytes);
        run_case(&l, 1);
        memcpy(first, l.y, bytes);
        free(l.y_h);
        free(l.y_c);
        l.y_h = l.y_c = NULL;
        for (int n = 2; n <= 9; n++) {
            memset(l.y, 0, bytes);
            run_case(&l, n);
            assert_memory_equal(first, l.y, bytes);
        }
        free(first);
        close_case(&l);
    }
}

static void test_threads(void **state)
{
    (void)state;
    with_each_f32_kernels(threads);
}

/* A NaN in one sequence reaches its later steps and no other sequence. */
static void keeps_nan(void)
{
    for (int gru = 0; gru < 2; gru++) {
        struct layer_case l = {.layer = {.gru = gru,
                                         .time = 4,
                                         .batch = 3,
                                         .input = 7,
                                         .hidden = 19,
                                         .directions = 1}};
        open_case(&l, false);
        l.x[(2 * 3 + 1) * 7] = NAN;
        run_case(&l, 1);
        for (int t = 0; t < 4; t++)
            for (int b = 0; b < 3; b++)
                for (int u = 0; u < 19; u++)
                    assert_int_equal(isnan(l.y[(t * 3 + b) * 19 + u]) != 0,
                                     t >= 2 && b == 1);
        close_case(&l);
    }
}

static void test_nan(void **state)
{
    (void)state;
    with_each_f32_kernels(keeps_nan);
}

/* Layers whose packed weights differ in any way do not share them. */
static void test_packs_alike(void **state)
{
    (void)state;
    const struct byi_f32_recurrent base = {
        .time = 3, .batch = 2, .input = 8, .hidden = 16, .directions = 1};
    struct byi_f32_recurrent layers[] = {base, base, base, base, base};
    layers[1].time = layers[1].batch = 7;
    layers[2].hidden = 17;
    layers[3].gru = true;
    layers[4].directions = 2;
    for (int i = 0; i < 5; i++)
        byi_f32_recurrent_plan(&layers[i]);
    for (int i = 1; i < 5; i++)
        assert_int_equal(byi_f32_recurrent_packs_alike(&layers[0], &layers[i]),
                         i == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_packs_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
