/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_pack.c: packs the weights of 8-bit convolutions and products. */
#include "kernels/i8_shape.h"

#include <string.h>

/* The form that may need the most memory. BYTES is certain only if weights are
 * signed and have no zero points, and products of bytes are always exact. */
static enum byi_i8_form largest_form(const struct byi_i8_conv *conv)
{
    return conv->kernels->bytes == BYI_I8_ALWAYS && conv->centred
               ? BYI_I8_BYTES
               : BYI_I8_PAIRS;
}

uint64_t byi_i8_conv_packed(const struct byi_i8_conv *conv)
{
    const int64_t words = i8_words_of(conv, largest_form(conv));
    const int64_t direct = i8_all_outputs(conv) * words * 4;
    return (uint64_t)((int64_t)sizeof(struct i8_header) +
                      i8_align(i8_all_outputs(conv) * 4) +
                      (conv->winograd
                           ? byi_max(direct, i8_winograd_weights(conv))
                           : direct));
}

bool byi_i8_conv_packs_alike(const struct byi_i8_conv *a,
                             const struct byi_i8_conv *b)
{
    return a->kernels == b->kernels && a->depthwise == b->depthwise &&
           a->winograd == b->winograd && a->centred == b->centred &&
           a->w_signed == b->w_signed && a->channels == b->channels &&
           a->outputs == b->outputs && a->groups == b->groups &&
           memcmp(a->size, b->size, sizeof a->size) == 0;
}

/* The weights to pack, and the form to pack them in. */
struct i8_packing {
    const struct byi_i8_conv *conv;
    const struct byi_i8_weights *w;
    enum byi_i8_form form;
    int64_t channels; /* of a group */
};

/* A walk through the weights of one output, minus their zero point, in the
 * order of its sum. */
struct i8_column {
    const struct i8_packing *p;
    uint32_t *to; /* words BYI_I8_PANEL apart, zero at first */
    uint32_t total;
    int32_t last; /* absolute value of the weight before */
    bool fits;    /* products of bytes are exact */
};

/* Put element i of word `word`. */
static inline void put_weight(struct i8_column *c, int64_t word, int i,
                              int32_t v)
{
    const bool bytes = c->p->form == BYI_I8_BYTES;
    c->to[word * BYI_I8_PANEL] |= bytes ? (uint32_t)(v & 0xff) << (8 * i)
                                        : (uint32_t)(v & 0xffff) << (16 * i);
    c->total += (uint32_t)v;
}

/* Check weight k, `v`, for form BYTES. */
static inline void check_weight(struct i8_column *c, int64_t k, int32_t v)
{
    const bool bounded = c->p->conv->kernels->bytes == BYI_I8_BOUNDED;
    const int32_t magnitude = v < 0 ? -v : v;
    c->fits &= v >= INT8_MIN && v <= INT8_MAX &&
               !(bounded && k % 2 && magnitude + c->last > 128);
    c->last = magnitude;
}

/* Put all weights of output o into words; if `to` is NULL, only check them. */
static void walk_column(struct i8_column *c, int64_t o)
{
    const struct byi_i8_conv *conv = c->p->conv;
    const struct byi_i8_weights *w = c->p->w;
    const uint8_t zero = w->zeros ? w->zeros[o * w->zero_step] : 0;
    const int shift = c->p->form == BYI_I8_BYTES ? 2 : 1;
    const int64_t mask = (1 << shift) - 1, channels = c->p->channels;
    int64_t k = 0;
    for (int64_t d = 0; d < conv->size[0]; d++)
        for (int64_t h = 0; h < conv->size[1]; h++)
            for (int64_t x = 0; x < conv->size[2]; x++) {
                const uint8_t *at = w->at + o * w->strides[0] +
                                    d * w->strides[2] + h * w->strides[3] +
                                    x * w->strides[4];
                for (int64_t i = 0; i < channels;
                     i++, k++, at += w->strides[1]) {
                    const int32_t v = conv->w_signed
                                          ? (int8_t)*at - (int8_t)zero
                                          : *at - zero;
                    if (!c->to)
                        check_weight(c, k, v);
                    else if (conv->depthwise)
                        put_weight(c, (h >> shift) * conv->size[2] + x,
                                   (int)(h & mask), v);
                    else
                        put_weight(c, k >> shift, (int)(k & mask), v);
                }
            }
}

/* Whether products of bytes are exact. The bound is for adjacent weights in a
 * word; a word of a depthwise sum has other weights than those checked here, so
 * depthwise convolutions do not use bytes then. */
static bool fits_bytes(const struct i8_packing *p)
{
    const struct byi_i8_conv *conv = p->conv;
    const enum byi_i8_bytes bytes = conv->kernels->bytes;
    struct i8_column c = {.p = p, .fits = true};
    if (bytes == BYI_I8_NEVER || (bytes == BYI_I8_BOUNDED && conv->depthwise))
        return false;
    if (bytes == BYI_I8_ALWAYS && conv->centred)
        return true;
    for (int64_t o = 0; o < conv->outputs && c.fits; o++) {
        c.last = 0;
        walk_column(&c, o);
    }
    return c.fits;
}

/* --- whole words of signed weights ---------------------------------------- */

enum { LINE = 64 }; /* most elements of a line */

/* Copy n channels of one tap, from `at` on, for each of `columns` outputs, and
 * add them to the totals of the columns. */
static void read_lines(const struct i8_packing *p, const uint8_t *at,
                       int columns, int n, int8_t lines[BYI_I8_PANEL][LINE],
                       int32_t *totals)
{
    const int64_t step = p->w->strides[1];
    for (int o = 0; o < columns; o++, at += p->w->strides[0]) {
        int32_t total = 0;
        for (int i = 0; i < n; i++)
            lines[o][i] = (int8_t)at[i * step];
        for (int i = 0; i < n; i++)
            total += lines[o][i];
        totals[o] += total;
    }
}

/* Interleave the lines as words. */
static void put_lines(enum byi_i8_form form, int columns, int n,
                      int8_t lines[BYI_I8_PANEL][LINE], uint32_t *to)
{
    if (form == BYI_I8_BYTES) {
        for (int i = 0; i < n; i += 4, to += BYI_I8_PANEL)
            for (int o = 0; o < columns; o++)
                memcpy(to + o, &lines[o][i], 4);
        return;
    }
    for (int i = 0; i < n; i += 2, to += BYI_I8_PANEL)
        for (int o = 0; o < columns; o++)
            to[o] = (uint32_t)(uint16_t)lines[o][i] |
                    (uint32_t)(uint16_t)lines[o][i + 1] << 16;
}

/* Pack a panel of `columns` outputs from output o on. A word has channels of
 * one tap, since the number of channels is a multiple of 4. */
static void pack_panel(const struct i8_packing *p, int64_t o, int columns,
                       uint32_t *panel, int32_t *totals)
{
    const struct byi_i8_conv *conv = p->conv;
    const int64_t *strides = p->w->strides, *size = conv->size;
    const int64_t word_elements = i8_word_elements(p->form),
                  taps = i8_taps_of(conv);
    int8_t lines[BYI_I8_PANEL][LINE];
    for (int64_t c = 0; c < p->channels; c += LINE)
        for (int64_t tap = 0; tap < taps; tap++) {
            const int n = (int)byi_min(LINE, p->channels - c);
            const uint8_t *at = p->w->at + o * strides[0] + c * strides[1] +
                                tap / (size[1] * size[2]) * strides[2] +
                                tap / size[2] % size[1] * strides[3] +
                                tap % size[2] * strides[4];
            read_lines(p, at, columns, n, lines, totals);
            put_lines(p->form, columns, n, lines,
                      panel + (tap * p->channels + c) / word_elements *
                                  BYI_I8_PANEL);
        }
}

/* --- all weights ---------------------------------------------------------- */

void byi_i8_conv_pack(const struct byi_i8_conv *conv,
                      const struct byi_i8_weights *weights, void *to)
{
    struct i8_packing p = {.conv = conv,
                           .w = weights,
                           .form = BYI_I8_BYTES,
                           .channels = conv->channels / conv->groups};
    if (!fits_bytes(&p))
        p.form = BYI_I8_PAIRS;
    const int64_t words = i8_words_of(conv, p.form),
                  padded = i8_padded_outputs(conv);
    const int64_t group_outputs =
        conv->depthwise ? conv->channels : conv->outputs / conv->groups;
    struct i8_header *header = to;
    int32_t *totals = (int32_t *)(void *)(header + 1);
    uint32_t *panels = (uint32_t *)(void *)((char *)totals +
                                            i8_align(i8_all_outputs(conv) * 4));
    memset(to, 0, (size_t)byi_i8_conv_packed(conv));
    if (conv->winograd && i8_winograd_pack(conv, weights, panels)) {
        header->form = I8_WINOGRAD;
        return;
    }
    if (conv->winograd)
        memset(to, 0, (size_t)byi_i8_conv_packed(conv));
    header->form = p.form;
    const bool whole = conv->centred && !conv->depthwise && p.channels % 4 == 0;
    for (int64_t i = 0; whole && i < i8_all_outputs(conv); i += BYI_I8_PANEL)
        pack_panel(&p, i / padded * group_outputs + i % padded,
                   (int)byi_min(BYI_I8_PANEL, group_outputs - i % padded),
                   panels + i * words, totals + i);
    if (whole)
        return;
    for (int64_t i = 0; i < i8_all_outputs(conv); i++) {
        if (i % padded >= group_outputs)
            continue;
        struct i8_column c = {.p = &p,
                              .to = panels +
                                    i / BYI_I8_PANEL * words * BYI_I8_PANEL +
                                    i % BYI_I8_PANEL};
        walk_column(&c, i / padded * group_outputs + i % padded);
        totals[i] = (int32_t)c.total;
    }
}
