/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/tiles.c: convolutions and products of bfloat16 and float16 on AMX's
 * tiles, by the blocks of i8.h: a number of bfloat16 is two channels of bytes
 * there. Products of two numbers are exact in float32. Weights lose nothing
 * either, since the model has them in the type of x. The processor treats
 * subnormal numbers as 0.
 *
 * A number of float16 is the sum of two of bfloat16, which have its upper and
 * its lower bits. Both are normal. The four products of the parts take half to
 * a third of the time that the product in float32 takes.
 */
#include "kernels/conv.h"
#include "kernels/i8_shape.h"

#include <string.h>

/* Channels of a part of split numbers: whole tiles. Rows of x that are read in
 * place should not map to the same sets of the first-level cache. */
static int64_t part_channels(const struct byi_f32_conv *conv)
{
    enum { TILE = 32, SETS = 512 };
    const int64_t n = byi_ceil_div(conv->channels, TILE) * TILE;
    const bool in_place = byi_f32_product_of(conv->size) == 1;
    return n % SETS == 0 && in_place ? n + TILE : n;
}

static bool splits(const struct byi_f32_conv *conv)
{
    return conv->type == BYI_F32_F16 || conv->x_type == BYI_F32_F16;
}

int64_t byi_f32_tiles_floats(const struct byi_f32_conv *conv)
{
    return splits(conv) ? part_channels(conv) : 0;
}

void byi_f32_tiles_split(const struct byi_f32_conv *conv, const uint16_t *from,
                         int64_t positions, float *to)
{
    byi_i8_kernels()->split(from, positions, conv->channels,
                            part_channels(conv), (uint16_t *)(void *)to);
}

/* Bytes of a position of x. */
static int64_t position_bytes(const struct byi_f32_conv *conv)
{
    return splits(conv) ? 4 * part_channels(conv) : 2 * conv->channels;
}

static struct byi_i8_conv describe(const struct byi_f32_conv *conv)
{
    struct byi_i8_conv c = {.images = conv->images,
                            .channels = position_bytes(conv),
                            .outputs = conv->outputs,
                            .groups = 1,
                            .w_signed = true,
                            .centred = true,
                            .bfloat16 = true,
                            .split = splits(conv),
                            .result = BYI_I8_FLOATS,
                            .kernels = byi_i8_kernels()};
    memcpy(c.in, conv->in, sizeof c.in);
    memcpy(c.out, conv->out, sizeof c.out);
    memcpy(c.size, conv->size, sizeof c.size);
    memcpy(c.stride, conv->stride, sizeof c.stride);
    memcpy(c.dilation, conv->dilation, sizeof c.dilation);
    memcpy(c.pad, conv->pad, sizeof c.pad);
    byi_i8_conv_plan(&c);
    return c;
}

/* Not for few rows, whose products wait for weights: those use float32 kernels.
 * Not for split numbers with few channels, whose tiles are mostly padding. */
bool byi_f32_tiles_suit(const struct byi_f32_conv *conv)
{
    const int64_t least = conv->type == BYI_F32_F16 ? 24 : 1;
    return conv->type != BYI_F32_WIDE && conv->groups == 1 && !conv->gathers &&
           conv->channels >= least &&
           conv->images * byi_f32_product_of(conv->out) >= BYI_I8_BLOCK &&
           byi_i8_kernels()->block;
}

uint64_t byi_f32_tiles_packed(const struct byi_f32_conv *conv)
{
    const struct byi_i8_conv c = describe(conv);
    return byi_i8_conv_packed(&c);
}

/* The upper half of a float is a number of bfloat16. */
static void put_upper(float x, void *to)
{
    memcpy(to, (const char *)&x + 2, 2);
}

/* The low part of a weight, as the kernels split x (kernels/i8_amx.inc). */
static float low_part(float x)
{
    uint32_t bits;
    float high;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t upper = bits & 0xffff0000;
    const uint32_t tiny = (bits & 0x80000000) | (uint32_t)BYI_I8_TINY << 16;
    memcpy(&high, &upper, sizeof high);
    float low = x - high;
    if (!(low < 0 || low > 0) && x != 0)
        memcpy(&low, &tiny, sizeof low);
    return low;
}

void byi_f32_tiles_pack(const struct byi_f32_conv *conv,
                        const struct byi_f32_weights *weights, float *to)
{
    const struct byi_i8_conv c = describe(conv);
    const int64_t words = i8_words_of(&c, BYI_I8_BYTES);
    struct i8_head *head = (struct i8_head *)(void *)to;
    memset(to, 0, (size_t)byi_i8_conv_packed(&c));
    head->form = BYI_I8_BYTES;
    char *panels = (char *)(head + 1) + i8_align(i8_all_outputs(&c) * 4);
    const int64_t taps = i8_taps_of(&c);
    for (int64_t t = 0; t < taps; t++) {
        const float *tap = weights->at +
                           t / conv->size[2] / conv->size[1] * weights->tap[0] +
                           t / conv->size[2] % conv->size[1] * weights->tap[1] +
                           t % conv->size[2] * weights->tap[2];
        for (int64_t o = 0; o < conv->outputs; o++)
            for (int64_t i = 0; i < conv->channels; i++) {
                const int64_t k = t * c.channels / 2 + i;
                const float x = tap[o * weights->output + i * weights->channel];
                char *to_high =
                    panels +
                    ((o / BYI_I8_PANEL * words + k / 2) * BYI_I8_PANEL +
                     o % BYI_I8_PANEL) *
                        4 +
                    k % 2 * 2;
                put_upper(x, to_high);
                if (c.split)
                    put_upper(low_part(x), to_high + part_channels(conv) / 2 *
                                                         BYI_I8_PANEL * 4);
            }
    }
}

uint64_t byi_f32_tiles_scratch(const struct byi_f32_conv *conv, int threads)
{
    const struct byi_i8_conv c = describe(conv);
    return byi_i8_conv_scratch(&c, threads) + BYI_ALIGN;
}

void byi_f32_tiles_run(const struct byi_f32_conv_run *run)
{
    const struct byi_f32_conv *conv = run->conv;
    const struct byi_i8_conv c = describe(conv);
    const int64_t rows = conv->images * byi_f32_product_of(conv->out);
    const struct byi_i8_conv_run blocks = {
        .conv = &c,
        .x = run->x,
        .packed = run->weights,
        .bias = (const int32_t *)(const void *)run->bias, /* floats */
        .bias_step = 1,
        .y = run->y,
        .scratch = (void *)(uintptr_t)byi_align_bytes((uintptr_t)run->scratch),
        .threads = run->threads};
    byi_i8_conv_run(&blocks);
    byi_f32_posts_run(run, 0, 0, rows, 0, conv->outputs);
}
