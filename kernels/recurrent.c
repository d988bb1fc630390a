/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/recurrent.c: runs recurrent layers. The product of the input and its
 * weights is computed for all steps at once. Then each step multiplies the
 * state by the recurrent weights, one group of hidden units after the other.
 * The weights of all gates of a group are adjacent, so that the new state of a
 * group is computed directly after its sums. Every second step visits the
 * groups in reverse order: if the matrix is larger than the cache, its rows
 * that were read last are still in the cache. */
#include "kernels/recurrent.h"

#include <string.h>

/* Hidden units, padded to whole groups. */
static int64_t padded_units(const struct byi_f32_recurrent *layer)
{
    return layer->groups * layer->kernels->width;
}

/* Columns of the input's product for one direction: [group][gate][unit]. */
static int64_t columns_of(const struct byi_f32_recurrent *layer)
{
    return layer->gates * padded_units(layer);
}

void byi_f32_recurrent_plan(struct byi_f32_recurrent *layer)
{
    layer->kernels = byi_f32_kernels();
    layer->gates = layer->gru ? 3 : 4;
    layer->groups = byi_ceil_div(layer->hidden, layer->kernels->width);
    layer->product =
        (struct byi_f32_conv){.images = layer->time * layer->batch,
                              .in = {1, 1, 1},
                              .out = {1, 1, 1},
                              .channels = layer->input,
                              .outputs = layer->directions * columns_of(layer),
                              .groups = 1,
                              .size = {1, 1, 1},
                              .stride = {1, 1, 1},
                              .dilation = {1, 1, 1},
                              .bias = true,
                              .kernels = layer->kernels};
    byi_f32_conv_plan(&layer->product, true);
}

/* oneDNN is as fast for more sequences than a step computes at once, since byoc
 * would read the weights several times in each step. It is also as fast for one
 * sequence on a CPU without wide vectors. */
bool byi_f32_recurrent_pays(const struct byi_f32_recurrent *layer)
{
    return layer->batch <= layer->kernels->sequences &&
           (layer->batch > 1 || layer->kernels->width >= 8);
}

/* --- weights -------------------------------------------------------------- */

uint64_t byi_f32_recurrent_packed(const struct byi_f32_recurrent *layer,
                                  bool recurrent)
{
    if (!recurrent)
        return byi_f32_conv_packed(&layer->product);
    return (uint64_t)(layer->directions * layer->hidden * columns_of(layer)) *
           sizeof(float);
}

/* The first element of a column, numbered through all directions; NULL if the
 * column is padding. */
static const float *find_column(const struct byi_f32_recurrent *layer,
                                const float *from, const int64_t strides[4],
                                int64_t column)
{
    const int64_t width = layer->kernels->width;
    const int64_t d = column / columns_of(layer);
    const int64_t at = column % columns_of(layer) / width; /* group, gate */
    const int64_t unit = at / layer->gates * width + column % width;
    if (d >= layer->directions || unit >= layer->hidden)
        return NULL;
    return from + d * strides[0] + at % layer->gates * strides[2] +
           unit * strides[3];
}

void byi_f32_recurrent_pack(const struct byi_f32_recurrent *layer,
                            bool recurrent, const float *from,
                            const int64_t strides[4], float *to)
{
    const int64_t rows = recurrent ? layer->hidden : layer->input;
    const int64_t panel =
        recurrent ? layer->gates * layer->kernels->width : BYI_F32_PANEL;
    const int64_t columns = layer->directions * columns_of(layer);
    for (int64_t first = 0; first < columns; first += panel, to += rows * panel)
        for (int64_t j = 0; j < panel; j++) {
            const float *at = find_column(layer, from, strides, first + j);
            for (int64_t k = 0; k < rows; k++)
                to[k * panel + j] = at ? at[k * strides[1]] : 0;
        }
}

bool byi_f32_recurrent_packs_alike(const struct byi_f32_recurrent *a,
                                   const struct byi_f32_recurrent *b)
{
    return a->gru == b->gru && a->input == b->input && a->hidden == b->hidden &&
           a->directions == b->directions && a->kernels == b->kernels;
}

/* --- running -------------------------------------------------------------- */

/* Offsets of the parts of the scratch memory, each of which begins at a cache
 * line. */
struct recurrent_scratch {
    int64_t x;    /* the input's product, (time, batch, direction, columns) */
    int64_t bias; /* bias of the product, in the order of its columns */
    int64_t last; /* GRU: the last bias, (direction, unit) */
    int64_t c;    /* LSTM: the cell state, (direction, batch, unit) */
    int64_t product; /* scratch of the product */
};

static int64_t whole_lines(int64_t floats)
{
    return byi_ceil_div(floats, BYI_F32_PANEL) * BYI_F32_PANEL;
}

static struct recurrent_scratch divide_scratch(
    const struct byi_f32_recurrent *layer)
{
    const int64_t columns = layer->product.outputs;
    const int64_t units = layer->directions * padded_units(layer);
    struct recurrent_scratch s = {0};
    s.bias = whole_lines(layer->time * layer->batch * columns);
    s.last = s.bias + whole_lines(columns);
    s.c = s.last + whole_lines(units);
    s.product = s.c + whole_lines(layer->batch * units);
    return s;
}

uint64_t byi_f32_recurrent_scratch(const struct byi_f32_recurrent *layer,
                                   int threads)
{
    return (uint64_t)divide_scratch(layer).product * sizeof(float) +
           byi_f32_conv_scratch(&layer->product, threads);
}

/* A run and its scratch memory. */
struct recurrent_task {
    const struct byi_f32_recurrent_run *run;
    float *x, *bias, *last, *c;
};

/* Copy the biases in the order of the sums, and the initial cell state. */
static void set_state(const struct recurrent_task *task)
{
    const struct byi_f32_recurrent *layer = task->run->layer;
    const int64_t h = layer->hidden, units = padded_units(layer);
    const int64_t biases = layer->gates + layer->gru;
    const int64_t strides[4] = {biases * h, 0, h, 1};
    for (int64_t i = 0; i < layer->product.outputs; i++) {
        const float *at = find_column(layer, task->run->bias, strides, i);
        task->bias[i] = at ? *at : 0;
    }
    memset(task->last, 0, (size_t)(layer->directions * units) * sizeof(float));
    memset(task->c, 0,
           (size_t)(layer->directions * layer->batch * units) * sizeof(float));
    for (int64_t d = 0; layer->gru && d < layer->directions; d++)
        memcpy(task->last + d * units,
               task->run->bias + (d * biases + layer->gates) * h,
               (size_t)h * sizeof(float));
    for (int64_t i = 0; task->run->c && i < layer->directions * layer->batch;
         i++)
        memcpy(task->c + i * units, task->run->c + i * h,
               (size_t)h * sizeof(float));
}

static void multiply_input(const struct recurrent_task *task, float *scratch)
{
    const struct byi_f32_conv_run run = {.conv = &task->run->layer->product,
                                         .x = task->run->x,
                                         .weights = task->run->weights,
                                         .bias = task->bias,
                                         .y = task->x,
                                         .scratch = scratch,
                                         .threads = task->run->threads};
    byi_f32_conv_run(&run);
}

/* The time of step `step` of a direction. */
static int64_t time_of(const struct byi_f32_recurrent *layer, int64_t d,
                       int64_t step)
{
    return d == 1 || layer->reverse ? layer->time - 1 - step : step;
}

/* Compute step `step` for a group of hidden units. */
static void run_group(const struct recurrent_task *task, int64_t d,
                      int64_t step, int64_t group)
{
    static const float zeros[BYI_F32_PANEL];
    const struct byi_f32_recurrent_run *run = task->run;
    const struct byi_f32_recurrent *layer = run->layer;
    const struct byi_f32_kernels *kernels = layer->kernels;
    const int64_t hidden = layer->hidden, row = layer->directions * hidden;
    const int64_t columns = layer->product.outputs;
    const int64_t unit = group * kernels->width;
    const int64_t t = time_of(layer, d, step) * layer->batch;
    struct byi_f32_step s = {
        .hidden = hidden,
        .weights = run->recurrent + (d * layer->groups + group) * hidden *
                                        layer->gates * kernels->width,
        .bias = task->last + d * padded_units(layer) + unit,
        .ldx = columns,
        .ldc = padded_units(layer),
        .ldy = row,
        .units = (int)byi_min(kernels->width, hidden - unit),
    };
    const float *h = zeros;
    if (step > 0) {
        h = run->y + time_of(layer, d, step - 1) * layer->batch * row +
            d * hidden;
        s.ldh = row;
    } else if (run->h) {
        h = run->h + d * layer->batch * hidden;
        s.ldh = hidden;
    } else {
        s.hidden = 0;
    }
    const int64_t tiles = byi_ceil_div(layer->batch, kernels->sequences);
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t n = layer->batch * i / tiles;
        s.h = h + n * s.ldh;
        s.old = h == zeros ? zeros : s.h + unit;
        s.x = task->x + (t + n) * columns + d * columns_of(layer) +
              unit * layer->gates;
        s.c = task->c + (d * layer->batch + n) * s.ldc + unit;
        s.y = run->y + (t + n) * row + d * hidden + unit;
        kernels->step[layer->gru][layer->batch * (i + 1) / tiles - n](&s);
    }
}

/* Compute step `step` for one of several parts of the groups. */
static void run_step(const struct recurrent_task *task, int64_t d, int64_t step,
                     int64_t part, int64_t parts)
{
    const int64_t groups = task->run->layer->groups;
    const int64_t first = groups * part / parts;
    const int64_t end = groups * (part + 1) / parts;
    for (int64_t i = first; i < end; i++)
        run_group(task, d, step, step % 2 ? first + end - 1 - i : i);
}

/* Copy the last states to y_h and y_c. */
static void write_states(const struct recurrent_task *task)
{
    const struct byi_f32_recurrent_run *run = task->run;
    const struct byi_f32_recurrent *layer = run->layer;
    const int64_t h = layer->hidden;
    const size_t bytes = (size_t)h * sizeof(float);
    for (int64_t d = 0; d < layer->directions; d++) {
        const int64_t t = time_of(layer, d, layer->time - 1);
        for (int64_t n = 0; n < layer->batch; n++) {
            const int64_t at = d * layer->batch + n;
            if (run->y_h)
                memcpy(run->y_h + at * h,
                       run->y +
                           ((t * layer->batch + n) * layer->directions + d) * h,
                       bytes);
            if (run->y_c)
                memcpy(run->y_c + at * h, task->c + at * padded_units(layer),
                       bytes);
        }
    }
}

/* Number of threads for a direction. With several, every step ends with a
 * barrier, so each thread should have about 2^16 multiplications. */
static int64_t parts_of(const struct byi_f32_recurrent *layer, int threads)
{
    const int64_t products = layer->batch * layer->hidden * columns_of(layer);
    const int64_t parts = byi_min(threads / layer->directions,
                                  byi_min(products >> 16, layer->groups));
    return parts < 1 ? 1 : parts;
}

void byi_f32_recurrent_run(const struct byi_f32_recurrent_run *run)
{
    const struct byi_f32_recurrent *layer = run->layer;
    const struct recurrent_scratch s = divide_scratch(layer);
    float *scratch = run->scratch;
    const struct recurrent_task task = {.run = run,
                                        .x = scratch + s.x,
                                        .bias = scratch + s.bias,
                                        .last = scratch + s.last,
                                        .c = scratch + s.c};
    const int64_t parts = parts_of(layer, run->threads);
    const int64_t n = layer->directions * parts;
    const int team = (int)byi_min(run->threads, n);
    set_state(&task);
    multiply_input(&task, scratch + s.product);
    if (parts == 1) {
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
        for (int64_t d = 0; d < n; d++)
            for (int64_t step = 0; step < layer->time; step++)
                run_step(&task, d, step, 0, 1);
    } else {
#pragma omp parallel num_threads(team)
        for (int64_t step = 0; step < layer->time; step++) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++)
                run_step(&task, i / parts, step, i % parts, parts);
        }
    }
    write_states(&task);
}
