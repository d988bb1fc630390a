/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_shape.h: sizes that packing and running 8-bit convolutions share.
 * Packed weights:
 *
 *   struct i8_header, 64 bytes
 *   int32 totals[groups][padded outputs]       sums of a column's weights
 *   words [groups][panels][words][16]          or, depthwise,
 *         [blocks of channels][rows of words][columns of the window][16]
 *         or the words of i8_winograd.c
 */
#ifndef BYI_I8_SHAPE_H
#define BYI_I8_SHAPE_H

#include "core/base/base.h"
#include "kernels/i8.h"

enum { I8_WINOGRAD = BYI_I8_FORMS };

/* The header of packed weights. */
struct i8_header {
    int64_t form; /* enum byi_i8_form of the words, or I8_WINOGRAD */
    int64_t reserved[7];
};

/* n, rounded up to a multiple of 64. */
static inline int64_t i8_align(int64_t n)
{
    return (n + 63) & ~(int64_t)63;
}

static inline int64_t i8_taps_of(const struct byi_i8_conv *conv)
{
    return conv->size[0] * conv->size[1] * conv->size[2];
}

static inline int64_t i8_positions_of(const struct byi_i8_conv *conv)
{
    return conv->out[0] * conv->out[1] * conv->out[2];
}

static inline bool i8_is_pointwise(const struct byi_i8_conv *conv)
{
    for (int i = 0; i < BYI_I8_AXES; i++)
        if (conv->size[i] != 1 || conv->pad[i] != 0 || conv->stride[i] != 1 ||
            conv->in[i] != conv->out[i])
            return false;
    return true;
}

/* Outputs of a group, padded to whole panels; if depthwise, all channels. */
static inline int64_t i8_padded_outputs(const struct byi_i8_conv *conv)
{
    const int64_t n =
        conv->depthwise ? conv->channels : conv->outputs / conv->groups;
    return byi_ceil_div(n, BYI_I8_PANEL) * BYI_I8_PANEL;
}

/* Padded outputs of all groups. */
static inline int64_t i8_all_outputs(const struct byi_i8_conv *conv)
{
    return i8_padded_outputs(conv) * (conv->depthwise ? 1 : conv->groups);
}

/* Elements of a word. */
static inline int64_t i8_word_elements(enum byi_i8_form form)
{
    return form == BYI_I8_BYTES ? 4 : 2;
}

/* Bytes of a row of x, in all taps. */
static inline int64_t i8_bytes_of(const struct byi_i8_conv *conv)
{
    return i8_taps_of(conv) * (conv->channels / conv->groups);
}

/* Words of a sum. If depthwise, a word has taps of one column of the window. */
static inline int64_t i8_words_of(const struct byi_i8_conv *conv,
                                  enum byi_i8_form form)
{
    if (conv->depthwise)
        return byi_ceil_div(conv->size[1], i8_word_elements(form)) *
               conv->size[2];
    if (conv->splits_rows) /* both parts, of 32 numbers in 16 words */
        return byi_ceil_div(i8_bytes_of(conv), 64) * 32;
    return byi_ceil_div(i8_bytes_of(conv), i8_word_elements(form));
}

/* Bytes from one gathered row to the next. */
static inline int64_t i8_row_bytes(const struct byi_i8_conv *conv,
                                   enum byi_i8_form form)
{
    /* not a multiple of 1024, so that rows map to different cache sets */
    const int64_t n = i8_words_of(conv, form) * 4 + 2 * BYI_I8_COLUMNS;
    return i8_align(n) % 1024 ? i8_align(n) : i8_align(n) + 64;
}

/* --- i8_winograd.c -------------------------------------------------------- */
/* Whether Winograd's algorithm is possible and pays. */
bool i8_suits_winograd(const struct byi_i8_conv *conv);
/* Bytes of the packed words, and of a thread's scratch. */
int64_t i8_winograd_weights(const struct byi_i8_conv *conv);
int64_t i8_winograd_scratch(const struct byi_i8_conv *conv);
/* Pack the weights to zeroed memory. Returns false if sums might exceed the
 * range of 32 bits. */
bool i8_winograd_pack(const struct byi_i8_conv *conv,
                      const struct byi_i8_weights *weights, uint32_t *to);
/* Compute y by `threads` threads, each with `per_thread` bytes of `scratch`. */
void i8_winograd_run(const struct byi_i8_conv_run *run, const uint32_t *weights,
                     const struct byi_i8_epilogue *e, char *scratch,
                     int64_t per_thread, int threads);

/* --- i8_results.c --------------------------------------------------------- */
/* Copy rows of n bytes; ldto and ld are the bytes between rows. */
void i8_copy_rows(char *to, int64_t ldto, const char *from, int64_t ld,
                  int64_t n, int64_t rows);
enum { I8_ACTIVATED = 1 << 12 }; /* most floats of i8_activate() */
/* Compute the bytes of ACTIVATED from n floats of each row at `x`. Rows of x
 * are `ld` floats apart, all of which are overwritten; rows of y are `ldy`
 * bytes apart. rows * ld is at most I8_ACTIVATED. */
void i8_activate(const struct byi_i8_conv_run *run, float *x, int64_t ld,
                 int64_t rows, int64_t n, char *y, int64_t ldy);

#endif
