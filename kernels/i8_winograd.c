/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_winograd.c: 3 x 3 convolutions of stride 1 on bytes by Winograd's
 * algorithm (Lavin and Gray, arXiv 1509.09308) with tiles of 4 x 4 outputs, in
 * integers and exact:
 *
 *     sum = A^T K [ sum over channels of (G g G^T) . (B^T d B) ] K A / 576
 *
 * The product "." is elementwise; its operands are transformed tiles of 6 x 6
 * elements, the points. K is the diagonal matrix of 6, 4, 4, 1, 1 and 24. G is
 * the usual matrix multiplied by 24, whose rows are then divided by the
 * elements of K, so that it has no fractions. The bracket consists of 36
 * products of matrices, (tiles, channels) by (channels, outputs), of 16-bit
 * numbers. Everything is computed modulo 2^32. 576 is 9 * 64: 9 has an inverse
 * modulo 2^32, and 64 times the sum is in range if the weights of an output are
 * not too large, which packing checks.
 *
 *     V[point][tile][channel]                transformed inputs, 16 bits
 *     U[panel][point][pair of channels][16]  transformed weights
 *     M[point][tile][columns of a block]     32 bits
 */
#include "kernels/i8_shape.h"

enum { POINTS = 36, INPUTS = 6, OUTPUTS = 4 };

/* Whether to use the algorithm: only for whole panels and vectors, and if the
 * saved multiplications outweigh the transforms and the larger weights. */
bool i8_suits_winograd(const struct byi_i8_conv *conv)
{
    const int64_t min_size = conv->kernels->bytes == BYI_I8_ALWAYS ? 20 : 12;
    for (int i = 0; i < BYI_I8_AXES; i++)
        if (conv->size[i] != (i ? 3 : 1) || conv->stride[i] != 1 ||
            conv->dilation[i] != 1 || (i == 0 && conv->pad[i] != 0))
            return false;
    return conv->groups == 1 && conv->centred &&
           conv->channels % BYI_I8_COLUMNS == 0 &&
           conv->outputs % BYI_I8_COLUMNS == 0 && conv->in[0] == conv->out[0] &&
           conv->out[1] >= min_size && conv->out[2] >= min_size;
}

/* Bytes of the transformed weights. */
int64_t i8_winograd_weights(const struct byi_i8_conv *conv)
{
    return POINTS * conv->channels * conv->outputs * (int64_t)sizeof(int16_t);
}

/* --- packing -------------------------------------------------------------- */

/* Transform the 9 weights of one channel of one output. Adds their absolute
 * values to *magnitude. */
static void transform_weights(const struct byi_i8_weights *w, int64_t o,
                              int64_t c, int32_t u[POINTS], int32_t *magnitude)
{
    static const int8_t g[INPUTS][3] = {{1, 0, 0}, {-1, -1, -1}, {-1, 1, -1},
                                        {1, 2, 4}, {1, -2, 4},   {0, 0, 1}};
    int32_t half[INPUTS][3] = {0};
    const uint8_t *at = w->at + o * w->strides[0] + c * w->strides[1];
    for (int h = 0; h < 3; h++)
        for (int x = 0; x < 3; x++) {
            const int32_t v = (int8_t)at[h * w->strides[3] + x * w->strides[4]];
            *magnitude += v < 0 ? -v : v;
            for (int i = 0; i < INPUTS; i++)
                half[i][x] += g[i][h] * v;
        }
    for (int i = 0; i < INPUTS; i++)
        for (int k = 0; k < INPUTS; k++)
            u[i * INPUTS + k] = g[k][0] * half[i][0] + g[k][1] * half[i][1] +
                                g[k][2] * half[i][2];
}

bool i8_winograd_pack(const struct byi_i8_conv *conv,
                      const struct byi_i8_weights *weights, uint32_t *to)
{
    /* the sum of the absolute weights of an output is below this */
    enum { MAX_SUM = (1 << 25) / 255 };
    const int64_t words = conv->channels / 2;
    for (int64_t o = 0; o < conv->outputs; o++) {
        uint32_t *column = to +
                           o / BYI_I8_PANEL * POINTS * words * BYI_I8_PANEL +
                           o % BYI_I8_PANEL;
        int32_t magnitude = 0;
        for (int64_t c = 0; c < words; c++) {
            int32_t a[POINTS], b[POINTS];
            transform_weights(weights, o, 2 * c, a, &magnitude);
            transform_weights(weights, o, 2 * c + 1, b, &magnitude);
            for (int p = 0; p < POINTS; p++)
                column[(p * words + c) * BYI_I8_PANEL] =
                    ((uint32_t)a[p] & 0xffff) | (uint32_t)b[p] << 16;
        }
        if (magnitude >= MAX_SUM)
            return false;
    }
    return true;
}

/* --- a run ---------------------------------------------------------------- */

/* Number of tiles of outputs whose inputs are in V at a time: 1 to 4 times the
 * rows of the micro-kernel, so that V has about 256 KiB or less if possible. */
static int64_t tiles_at_once(const struct byi_i8_conv *conv)
{
    const int64_t rows = conv->kernels->rows;
    const int64_t n = (1 << 18) / (POINTS * 2 * conv->channels) / rows * rows;
    return byi_min(byi_max(n, rows), 4 * rows);
}

/* Elements from one row of V to the next: not a multiple of a page if the
 * number of channels is a power of two. */
static int64_t row_elements(const struct byi_i8_conv *conv)
{
    return conv->channels + BYI_I8_COLUMNS;
}

static int64_t v_bytes(const struct byi_i8_conv *conv)
{
    return i8_align(POINTS * tiles_at_once(conv) * row_elements(conv) * 2);
}

int64_t i8_winograd_scratch(const struct byi_i8_conv *conv)
{
    return v_bytes(conv) + POINTS * tiles_at_once(conv) * BYI_I8_COLUMNS * 4;
}

/* A run, which threads divide among themselves. */
struct winograd_job {
    const struct byi_i8_conv_run *run;
    const struct byi_i8_conv *conv;
    const uint32_t *weights;
    const struct byi_i8_epilogue *e;
    int64_t n_rows, n_columns; /* of tiles of outputs in an image */
    int64_t ldv;               /* elements of a row of V */
    int64_t point;             /* rows of V from one point to the next */
    int64_t size;              /* bytes of a result */
};

/* The first output of a tile, and its image, where each position along
 * axis 0 counts as an image. */
struct tile_place {
    int64_t image, y, x;
};

static struct tile_place place_of(const struct winograd_job *j, int64_t tile)
{
    return (struct tile_place){tile / (j->n_rows * j->n_columns),
                               tile / j->n_columns % j->n_rows * OUTPUTS,
                               tile % j->n_columns * OUTPUTS};
}

/* Transform the inputs of tiles [begin, end) to V. */
static void fill_v(const struct winograd_job *j, int64_t begin, int64_t end,
                   int16_t *v)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t line = conv->in[2] * conv->channels;
    const uint8_t flip = conv->x_signed ? 0x80 : 0;
    for (int64_t i = begin; i < end; i++, v += j->ldv) {
        const struct tile_place at = place_of(j, i);
        const int64_t y = at.y - conv->pad[1], x = at.x - conv->pad[2];
        const struct byi_i8_patch w = {
            .x = (const uint8_t *)j->run->x + at.image * conv->in[1] * line +
                 y * line + x * conv->channels,
            .line = line,
            .step = conv->channels,
            .top = byi_max(-y, 0),
            .bottom = byi_min(conv->in[1] - y, INPUTS),
            .left = byi_max(-x, 0),
            .right = byi_min(conv->in[2] - x, INPUTS),
            .channels = conv->channels,
            .zero = j->run->x_zero ^ flip,
            .flip = flip,
            .v = v,
            .point = j->point * j->ldv};
        conv->kernels->winograd_inputs(&w);
    }
}

/* Multiply n rows of V by a block of columns, for all points. */
static void multiply(const struct winograd_job *j, const int16_t *v, int64_t n,
                     int64_t block, uint32_t *m)
{
    static const int32_t zeros[BYI_I8_COLUMNS];
    static const float scales[BYI_I8_COLUMNS]; /* SUMS ignores them */
    const struct byi_i8_kernels *k = j->conv->kernels;
    const int64_t words = j->conv->channels / 2;
    const int64_t panel = POINTS * words * BYI_I8_PANEL;
    const int64_t calls = byi_ceil_div(n, k->rows); /* of the micro-kernel */
    for (int64_t p = 0; p < POINTS; p++)
        for (int64_t i = 0; i < calls; i++) {
            const int64_t row = n * i / calls, end = n * (i + 1) / calls;
            const uint8_t *x[BYI_I8_ROWS];
            for (int64_t r = row; r < end; r++)
                x[r - row] = (const uint8_t *)(v + (p * j->point + r) * j->ldv);
            struct byi_i8_tile t = {
                .tiles = 1,
                .x = x,
                .n_pieces = 1,
                .words = words,
                .weights = j->weights + block * k->panels * panel +
                           p * words * BYI_I8_PANEL,
                .next = panel,
                .e = {.result = BYI_I8_SUMS, .add = zeros, .scale = scales},
                .y = (char *)(m + (p * j->point + row) * BYI_I8_COLUMNS),
                .ldy = BYI_I8_COLUMNS * 4};
            t.fetch = (const char *)(t.weights + words * BYI_I8_PANEL);
            k->tile[BYI_I8_PAIRS][k->panels - 1][end - row](&t);
        }
}

/* Compute the outputs of a tile, which are activated. */
static void finish_activated(const struct winograd_job *j,
                             const struct byi_i8_outputs *outputs)
{
    _Alignas(64) float results[OUTPUTS * OUTPUTS * BYI_I8_PANEL];
    struct byi_i8_outputs o = *outputs;
    o.y = (char *)results;
    o.ldy = BYI_I8_PANEL * sizeof *results;
    o.line = OUTPUTS * o.ldy;
    j->conv->kernels->winograd_outputs(&o);
    for (int64_t i = 0; i < o.n_rows; i++)
        i8_activate(j->run, results + i * OUTPUTS * BYI_I8_PANEL, BYI_I8_PANEL,
                    o.n_columns, BYI_I8_PANEL, outputs->y + i * outputs->line,
                    outputs->ldy);
}

/* Compute the outputs of a tile in a block of columns from M. */
static void finish_tile(const struct winograd_job *j, int64_t tile,
                        int64_t block, const uint32_t *m)
{
    const struct byi_i8_conv *conv = j->conv;
    const struct tile_place at = place_of(j, tile);
    const int64_t panels = conv->kernels->panels;
    struct byi_i8_outputs o = {.point = j->point * BYI_I8_COLUMNS,
                               .ldy = conv->outputs * j->size,
                               .line = conv->out[2] * conv->outputs * j->size,
                               .n_rows = byi_min(conv->out[1] - at.y, OUTPUTS),
                               .n_columns =
                                   byi_min(conv->out[2] - at.x, OUTPUTS)};
    for (int64_t p = 0; p < panels; p++) {
        const int64_t column = (block * panels + p) * BYI_I8_PANEL;
        const int64_t to =
            ((at.image * conv->out[1] + at.y) * conv->out[2] + at.x) * o.ldy +
            column * j->size;
        o.m = m + p * BYI_I8_PANEL;
        o.y = (char *)j->run->y + to;
        o.e = *j->e;
        o.e.add += column;
        o.e.scale += column;
        if (conv->result == BYI_I8_ADDED)
            o.e.summand.at += to;
        if (conv->result == BYI_I8_ACTIVATED)
            finish_activated(j, &o);
        else
            conv->kernels->winograd_outputs(&o);
    }
}

void i8_winograd_run(const struct byi_i8_conv_run *run, const uint32_t *weights,
                     const struct byi_i8_epilogue *e, char *scratch,
                     int64_t per_thread, int threads)
{
    const struct byi_i8_conv *conv = run->conv;
    const struct winograd_job job = {
        .run = run,
        .conv = conv,
        .weights = weights,
        .e = e,
        .n_rows = byi_ceil_div(conv->out[1], OUTPUTS),
        .n_columns = byi_ceil_div(conv->out[2], OUTPUTS),
        .ldv = row_elements(conv),
        .point = tiles_at_once(conv),
        .size = conv->result >= BYI_I8_QUANTIZED ? 1 : 4};
    const struct winograd_job *j = &job;
    const int64_t tiles =
        conv->images * conv->out[0] * job.n_rows * job.n_columns;
    const int64_t columns = conv->kernels->panels * BYI_I8_PANEL;
    /* tiles of a round; all threads have equally many rounds */
    const int64_t round_tiles = byi_ceil_div(
        tiles, byi_ceil_div(byi_ceil_div(tiles, job.point), threads) * threads);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t t = 0; t < threads; t++) {
        int16_t *v = (int16_t *)(void *)(scratch + t * per_thread);
        uint32_t *m = (uint32_t *)(void *)((char *)v + v_bytes(conv));
        const int64_t last = tiles * (t + 1) / threads;
        for (int64_t begin = tiles * t / threads; begin < last;
             begin += round_tiles) {
            const int64_t n = byi_min(round_tiles, last - begin);
            fill_v(j, begin, begin + n, v);
            for (int64_t b = 0; b < conv->outputs / columns; b++) {
                multiply(j, v, n, b, m);
                for (int64_t i = 0; i < n; i++)
                    finish_tile(j, begin + i, b, m + i * BYI_I8_COLUMNS);
            }
        }
    }
}
