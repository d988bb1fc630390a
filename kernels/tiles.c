/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/tiles.c: convolutions and products of bfloat16 on AMX's tiles, with
 * the blocks of i8.h, where a number counts as two channels of bytes. Products
 * of two numbers are exact in float32, and so are the weights, which the model
 * stores as bfloat16. The processor treats subnormal numbers as 0. */
#include "kernels/conv.h"
#include "kernels/i8_shape.h"

#include <string.h>

static struct byi_i8_conv describe(const struct byi_f32_conv *conv)
{
    struct byi_i8_conv c = {.images = conv->images,
                            .channels = 2 * conv->channels,
                            .outputs = conv->outputs,
                            .groups = 1,
                            .w_signed = true,
                            .centred = true,
                            .bfloat16 = true,
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

/* Products of few rows wait for weights, so these are packed as float32 and
 * other kernels used. */
bool byi_f32_tiles_suit(const struct byi_f32_conv *conv)
{
    return conv->type == BYI_F32_BF16 && conv->groups == 1 && !conv->gathers &&
           conv->channels > 0 &&
           conv->images * byi_f32_product_of(conv->out) >= BYI_I8_BLOCK &&
           byi_i8_kernels()->block;
}

uint64_t byi_f32_tiles_packed(const struct byi_f32_conv *conv)
{
    const struct byi_i8_conv c = describe(conv);
    return byi_i8_conv_packed(&c);
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
                const int64_t k = t * conv->channels + i;
                const float *from =
                    tap + o * weights->output + i * weights->channel;
                char *word = panels + ((o / BYI_I8_PANEL * words + k / 2) *
                                           BYI_I8_PANEL +
                                       o % BYI_I8_PANEL) *
                                          4;
                /* the upper half of a float is a bfloat16 number */
                memcpy(word + k % 2 * 2, (const char *)from + 2, 2);
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
