/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/planar.c: convolution of images with few channels, whose planes (one
 * for each channel) are read in place, without a channels-last copy. The rows
 * of a tile are adjacent positions of a line of the result. So an element of a
 * row is `stride` elements after the same element of the previous row. The
 * offsets of a row's elements are the same for all tiles. */
#include "kernels/conv.h"
#include "kernels/inline.h"

#include <string.h>

/* Most channels of an image. */
enum { MAX_CHANNELS = 4 };

/* The index of the stride in byi_f32_kernels.planar; -1: there is no kernel. */
static int stride_index(int64_t stride)
{
    for (int i = 0; i < BYI_F32_STRIDES; i++)
        if (stride == 1 << i)
            return i;
    return -1;
}

bool byi_f32_planar_suits(const struct byi_f32_conv *conv)
{
    const int64_t *size = conv->size;
    return conv->channels <= MAX_CHANNELS && conv->groups == 1 &&
           !conv->transposed && !conv->gathers && size[0] == 1 && size[2] > 1 &&
           conv->stride[0] == 1 && conv->pad[0] == 0 &&
           conv->in[0] == conv->out[0] && conv->dilation[2] == 1 &&
           stride_index(conv->stride[2]) >= 0 &&
           size[1] * conv->channels <= BYI_F32_PIECES &&
           conv->out[2] >= BYI_F32_ROWS; /* with all instruction sets */
}

/* The tiles of a run. A line of a plane under a window is a segment. */
struct planar {
    const struct byi_f32_conv_run *run;
    const struct byi_f32_conv *conv;
    int64_t segments, elements; /* of a window, of all channels */
    int64_t reach;              /* elements of a segment that a tile reads */
    int64_t tiles;              /* of a line of the result */
    uint64_t per_thread;        /* bytes of scratch of a thread */
};

/* The scratch of a thread. */
struct planar_scratch {
    int64_t *inside, *copied; /* offsets of the elements of a window in the
                               * image, and in a copy of its segments */
    float *copy;
};

static struct planar describe(const struct byi_f32_conv *conv)
{
    struct planar p = {.conv = conv};
    p.segments = conv->channels * conv->size[1];
    p.elements = p.segments * conv->size[2];
    p.reach = (conv->kernels->rows - 1) * conv->stride[2] + conv->size[2];
    p.tiles = byi_ceil_div(conv->out[2], conv->kernels->rows);
    p.per_thread =
        byi_align_bytes(2 * (uint64_t)p.elements * sizeof(int64_t) +
                        (uint64_t)(p.segments * p.reach) * sizeof(float));
    return p;
}

uint64_t byi_f32_planar_scratch(const struct byi_f32_conv *conv, int threads)
{
    return describe(conv).per_thread * (uint64_t)threads;
}

/* Elements from a channel of x to the next. */
static int64_t plane_of(const struct byi_f32_conv *conv)
{
    return conv->plane ? conv->plane : conv->in[1] * conv->in[2];
}

/* The offset of a segment from the first element of the window. */
static int64_t segment_at(const struct byi_f32_conv *conv, int64_t segment)
{
    const int64_t channel = segment / conv->size[1],
                  line = segment % conv->size[1];
    return channel * plane_of(conv) + line * conv->dilation[1] * conv->in[2];
}

static struct planar_scratch open_scratch(const struct planar *p, char *scratch)
{
    int64_t *at = (int64_t *)(void *)scratch;
    const struct planar_scratch memory = {
        at, at + p->elements, (float *)(void *)(at + 2 * p->elements)};
    for (int64_t s = 0; s < p->segments; s++)
        for (int64_t k = 0; k < p->conv->size[2]; k++) {
            const int64_t i = s * p->conv->size[2] + k;
            memory.inside[i] = segment_at(p->conv, s) + k;
            memory.copied[i] = s * p->reach + k;
        }
    return memory;
}

/* Copy the segments that begin at line `top` and column `left` of an image,
 * with their padding. */
static void copy_segments(const struct planar *p, const float *image,
                          int64_t top, int64_t left, float *to)
{
    const struct byi_f32_conv *conv = p->conv;
    const int64_t from = byi_min(byi_max(-left, 0), p->reach);
    const int64_t end = byi_max(byi_min(conv->in[2] - left, p->reach), from);
    memset(to, 0, (size_t)(p->segments * p->reach) * sizeof *to);
    for (int64_t s = 0; s < p->segments; s++, to += p->reach) {
        const int64_t line = top + s % conv->size[1] * conv->dilation[1];
        if (line >= 0 && line < conv->in[1])
            memcpy(to + from,
                   image + segment_at(conv, s) + top * conv->in[2] + left +
                       from,
                   (size_t)(end - from) * sizeof *to);
    }
}

/* Find the first element of a tile that begins at position `first` of line
 * `line` of the result; lines are numbered through all images. Tiles at the
 * border are copied. */
static void find_tile(const struct planar *p,
                      const struct planar_scratch *memory, int64_t line,
                      int64_t first, struct byi_f32_tile *t)
{
    const struct byi_f32_conv *conv = p->conv;
    const float *image =
        p->run->x + line / conv->out[1] * conv->channels * plane_of(conv);
    const int64_t top = line % conv->out[1] * conv->stride[1] - conv->pad[1];
    const int64_t left = first * conv->stride[2] - conv->pad[2];
    const int64_t last = top + (conv->size[1] - 1) * conv->dilation[1];
    if (top >= 0 && last < conv->in[1] && left >= 0 &&
        left + p->reach <= conv->in[2]) {
        t->plane = image + top * conv->in[2] + left;
        t->offsets = memory->inside;
        return;
    }
    copy_segments(p, image, top, left, memory->copy);
    t->plane = memory->copy;
    t->offsets = memory->copied;
}

/* Compute all columns of a tile whose first row is position `row` of the
 * result. */
static void run_tile(const struct planar *p, int64_t row,
                     struct byi_f32_tile *t)
{
    const struct byi_f32_conv *conv = p->conv;
    const struct byi_f32_kernels *kernels = conv->kernels;
    const int64_t tile_columns = kernels->panels * BYI_F32_PANEL;
    const int stride = stride_index(conv->stride[2]);
    if (conv->outputs % BYI_F32_PANEL) /* cache lines that are written in part
                                        * have to be read first */
        byi_f32_prefetch(p->run->y + row * conv->outputs, 0, 1,
                         kernels->rows * conv->outputs, true);
    for (int64_t column = 0, n; column < conv->outputs; column += n) {
        float buffer[BYI_F32_COLUMNS];
        n = byi_min(tile_columns, conv->outputs - column);
        const int64_t panels = byi_ceil_div(n, BYI_F32_PANEL);
        t->bias = byi_f32_epilogue_at(p->run, row, column, n, buffer).bias;
        t->weights = p->run->weights + column * p->elements;
        t->y = p->run->y + row * conv->outputs + column;
        byi_f32_tile_run_with(kernels, kernels->planar[panels - 1][stride], t,
                              kernels->rows, n);
    }
}

/* Run tiles [begin, end), which are numbered through all lines. The last tile
 * of a line may overlap the tile before, and computes the same. So the rest of
 * the epilogue runs after the tiles of a line, whose results are in the cache.
 */
static void run_share(const struct planar *p, int64_t begin, int64_t end,
                      char *scratch)
{
    const struct byi_f32_conv *conv = p->conv;
    const struct planar_scratch memory = open_scratch(p, scratch);
    const struct byi_f32_epilogue e =
        byi_f32_epilogue_at(p->run, 0, 0, 0, NULL);
    struct byi_f32_tile t = {.length = p->elements,
                             .next = p->elements * BYI_F32_PANEL,
                             .low = e.low,
                             .high = e.high,
                             .ldy = conv->outputs};
    const int64_t rows = conv->kernels->rows;
    while (begin < end) {
        const int64_t line = begin / p->tiles, at = line * conv->out[2];
        const int64_t from = begin % p->tiles * rows;
        const int64_t line_end = byi_min(end, (line + 1) * p->tiles);
        int64_t first = from;
        for (; begin < line_end; begin++) {
            first = byi_min(begin % p->tiles * rows, conv->out[2] - rows);
            find_tile(p, &memory, line, first, &t);
            run_tile(p, at + first, &t);
        }
        const int64_t row = at + byi_min(from, first);
        byi_f32_epilogue_run(p->run, conv->next, row, at + first + rows - row,
                             0, conv->outputs);
    }
}

/* The first tile of a share that begins at about tile i. Shares do not
 * begin at the last tile of a line, which may overlap the tile before: one
 * thread computes both. */
static int64_t share_begin(const struct planar *p, int64_t i)
{
    return p->tiles > 1 && i % p->tiles == p->tiles - 1 ? i + 1 : i;
}

void byi_f32_planar_run(const struct byi_f32_conv_run *run)
{
    struct planar p = describe(run->conv);
    p.run = run;
    const int64_t n = run->threads;
    const int64_t tiles = run->conv->images * run->conv->out[1] * p.tiles;
#pragma omp parallel for num_threads(run->threads) if (run->threads > 1)       \
    schedule(static)
    for (int64_t i = 0; i < n; i++)
        run_share(&p, share_begin(&p, tiles * i / n),
                  share_begin(&p, tiles * (i + 1) / n),
                  (char *)run->scratch + (uint64_t)i * p.per_thread);
}

void byi_f32_planar_pack(const struct byi_f32_conv *conv,
                         const struct byi_f32_weights *weights, float *to)
{
    const int64_t taps = conv->size[1] * conv->size[2];
    const int64_t panel = conv->channels * taps * BYI_F32_PANEL;
    memset(to, 0,
           (size_t)(byi_ceil_div(conv->merged_outputs, BYI_F32_PANEL) * panel) *
               sizeof *to);
    for (int64_t o = 0; o < conv->merged_outputs; o++)
        for (int64_t c = 0; c < conv->channels; c++)
            for (int64_t t = 0; t < taps; t++)
                to[o / BYI_F32_PANEL * panel + (c * taps + t) * BYI_F32_PANEL +
                   o % BYI_F32_PANEL] =
                    weights->at[o * weights->output + c * weights->channel +
                                t / conv->size[2] * weights->tap[1] +
                                t % conv->size[2] * weights->tap[2]];
}
