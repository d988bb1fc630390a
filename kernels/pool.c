/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/pool.c: pooling of channels-last images. */
#include "kernels/moves.h"

uint64_t byi_f32_pool_scratch(const struct byi_f32_pool *pool, int threads)
{
    return (uint64_t)(byi_f32_product_of(pool->size) * threads) *
           sizeof(void *);
}

/* The taps i of a window, first <= i < end, that are inside along an axis. */
struct pool_span {
    int64_t first, end;
};

static struct pool_span find_span(const struct byi_f32_pool *pool, int axis,
                                  int64_t at)
{
    const int64_t d = pool->dilation[axis];
    const int64_t begin = at * pool->stride[axis] - pool->pad[axis];
    const int64_t remaining = pool->in[axis] - begin;
    return (struct pool_span){
        begin < 0 ? byi_ceil_div(-begin, d) : 0,
        remaining <= 0 ? 0
                       : byi_min(pool->size[axis], byi_ceil_div(remaining, d))};
}

/* A line of outputs. */
struct pool_line {
    const struct byi_f32_pool *pool;
    const char *image;
    int64_t pixel; /* bytes of one position: its elements of all channels */
    int64_t at[2]; /* the line's depth and height */
    struct pool_span inside[2]; /* of these axes */
};

/* Find pointers to the elements under the window of output w of the line;
 * returns their number. */
static int64_t find_taps(const struct pool_line *l, int64_t w,
                         const char **taps)
{
    const struct byi_f32_pool *p = l->pool;
    const struct pool_span columns = find_span(p, 2, w);
    const int64_t step = p->dilation[2] * l->pixel;
    int64_t n = 0;
    for (int64_t i = l->inside[0].first; i < l->inside[0].end; i++)
        for (int64_t j = l->inside[1].first; j < l->inside[1].end; j++) {
            const int64_t d =
                l->at[0] * p->stride[0] - p->pad[0] + i * p->dilation[0];
            const int64_t h =
                l->at[1] * p->stride[1] - p->pad[1] + j * p->dilation[1];
            const int64_t first = w * p->stride[2] - p->pad[2];
            const char *tap =
                l->image + ((d * p->in[1] + h) * p->in[2] + first) * l->pixel +
                columns.first * step;
            for (int64_t k = columns.first; k < columns.end; k++, tap += step)
                taps[n++] = tap;
        }
    return n;
}

/* The outputs of a line whose windows have all columns inside. */
static struct pool_span find_whole(const struct byi_f32_pool *p)
{
    const int64_t reach = (p->size[2] - 1) * p->dilation[2] + 1;
    const int64_t last = p->in[2] + p->pad[2] - reach;
    return (struct pool_span){byi_ceil_div(p->pad[2], p->stride[2]),
                              last < 0 ? 0 : last / p->stride[2] + 1};
}

static void run_line(const struct byi_f32_pool *pool, const char *x, char *y,
                     int64_t line, const char **taps)
{
    static const int64_t sizes[BYI_F32_POOL_TYPES] = {4, 2, 2, 1, 1};
    const int64_t *out = pool->out;
    const bool widens = pool->mean && sizes[pool->type] == 1;
    const int64_t y_pixel =
        pool->channels * sizes[widens ? BYI_F32_WIDE : pool->type];
    struct pool_line l = {
        .pool = pool,
        .pixel = pool->channels * sizes[pool->type],
        .at = {line / out[1] % out[0], line % out[1]},
    };
    l.image =
        x + line / out[1] / out[0] * byi_f32_product_of(pool->in) * l.pixel;
    for (int i = 0; i < 2; i++)
        l.inside[i] = find_span(pool, i, l.at[i]);
    y += line * out[2] * y_pixel;
    const int64_t taps_of_window = byi_f32_product_of(pool->size);
    const int64_t step = pool->stride[2] * l.pixel;
    const struct pool_span whole = find_whole(pool);
    int64_t n = 0;
    for (int64_t w = 0; w < out[2]; w++, y += y_pixel) {
        if (w > whole.first && w < whole.end)
            for (int64_t i = 0; i < n; i++)
                taps[i] += step;
        else
            n = find_taps(&l, w, taps);
        pool->kernels->pool[pool->type][pool->mean](
            (const void *const *)taps, n, pool->channels,
            -pool->zero * (float)n,
            pool->scale / (float)(pool->padded ? taps_of_window : n), y);
    }
}

void byi_f32_pool_run(const struct byi_f32_pool *pool, const void *x, void *y,
                      void *scratch, int threads)
{
    const int64_t lines = pool->images * pool->out[0] * pool->out[1];
    const int64_t taps = byi_f32_product_of(pool->size);
    const int64_t work = lines * pool->out[2] * taps * pool->channels;
    const int team =
        work < (int64_t)threads << 15 ? 1 : (int)byi_min(threads, lines);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < team; i++)
        for (int64_t l = lines * i / team; l < lines * (i + 1) / team; l++)
            run_line(pool, x, y, l, (const char **)scratch + i * taps);
}
