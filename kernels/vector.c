/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/vector.c: the product of a vector and a large matrix, which is not
 * packed. It takes as long as reading the matrix. */
#include "kernels/conv.h"

/* Number of columns whose sums stay in the first-level cache. */
enum { COLUMNS = 2048 };

static void run_columns(const struct byi_f32_conv_run *run, int64_t begin,
                        int64_t end)
{
    const struct byi_f32_conv *conv = run->conv;
    const char *weights = (const char *)run->weights;
    const int64_t size = conv->weight_type ? sizeof(uint16_t) : sizeof(float);
    for (int64_t j = begin; j < end; j += COLUMNS) {
        const struct byi_f32_vector v = {
            .x = run->x,
            .weights = weights + j * conv->weight_strides[0] * size,
            .bias = run->bias ? run->bias + j : NULL,
            .n = conv->channels,
            .row_stride = conv->weight_strides[1],
            .column_stride = conv->weight_strides[0],
            .y = run->y + j,
            .columns = byi_min(COLUMNS, end - j)};
        conv->kernels->vector[conv->weight_type][conv->weight_strides[0] == 1](
            &v);
        byi_f32_epilogue_run(run, 0, 0, 1, j, v.columns);
    }
}

void byi_f32_vector_run(const struct byi_f32_conv_run *run)
{
    const int64_t n = run->threads;
    const int64_t panels = byi_ceil_div(run->conv->outputs, BYI_F32_PANEL);
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++)
        run_columns(
            run, panels * i / n * BYI_F32_PANEL,
            byi_min(panels * (i + 1) / n * BYI_F32_PANEL, run->conv->outputs));
}
