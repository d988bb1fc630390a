/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/pool.c: pools of narrow channels-last images. */
#include "kernels/moves.h"

uint64_t byi_f32_pool_scratch(const struct byi_f32_pool *pool, int threads)
{
    return (uint64_t)(byi_f32_product_of(pool->size) * threads) *
           sizeof(uint16_t *);
}

/* Find pointers to the elements under the window of output `at`; returns their
 * number. */
static int64_t find_taps(const struct byi_f32_pool *pool, const uint16_t *image,
                         const int64_t at[BYI_F32_AXES], const uint16_t **taps)
{
    int64_t first[BYI_F32_AXES], n = 0;
    for (int i = 0; i < BYI_F32_AXES; i++)
        first[i] = at[i] * pool->stride[i] - pool->pad[i];
    for (int64_t i = 0; i < pool->size[0]; i++) {
        const int64_t d = first[0] + i * pool->dilation[0];
        for (int64_t j = 0; j < pool->size[1]; j++) {
            const int64_t h = first[1] + j * pool->dilation[1];
            if (d < 0 || d >= pool->in[0] || h < 0 || h >= pool->in[1])
                continue;
            const uint16_t *line =
                image + (d * pool->in[1] + h) * pool->in[2] * pool->channels;
            for (int64_t k = 0; k < pool->size[2]; k++) {
                const int64_t w = first[2] + k * pool->dilation[2];
                if (w >= 0 && w < pool->in[2])
                    taps[n++] = line + w * pool->channels;
            }
        }
    }
    return n;
}

static void run_line(const struct byi_f32_pool *pool, const uint16_t *x,
                     uint16_t *y, int64_t line, const uint16_t **taps)
{
    const int64_t *out = pool->out;
    const int64_t image = line / out[1] / out[0];
    int64_t at[] = {line / out[1] % out[0], line % out[1], 0};
    x += image * byi_f32_product_of(pool->in) * pool->channels;
    y += line * out[2] * pool->channels;
    for (; at[2] < out[2]; at[2]++, y += pool->channels) {
        const int64_t n = find_taps(pool, x, at, taps);
        const int64_t of = pool->padded ? byi_f32_product_of(pool->size) : n;
        pool->kernels->pool[pool->type - 1][pool->mean](taps, n, pool->channels,
                                                        1.0f / (float)of, y);
    }
}

void byi_f32_pool_run(const struct byi_f32_pool *pool, const uint16_t *x,
                      uint16_t *y, void *scratch, int threads)
{
    const int64_t lines = pool->images * pool->out[0] * pool->out[1];
    const int64_t taps = byi_f32_product_of(pool->size);
    const int64_t work = lines * pool->out[2] * taps * pool->channels;
    const int team =
        work < (int64_t)threads << 15 ? 1 : (int)byi_min(threads, lines);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < team; i++)
        for (int64_t l = lines * i / team; l < lines * (i + 1) / team; l++)
            run_line(pool, x, y, l, (const uint16_t **)scratch + i * taps);
}
