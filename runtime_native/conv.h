/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h: the description of a convolution or transposed convolution that its
 * native kernels share. */
#ifndef BYI_CONV_H
#define BYI_CONV_H

#include "kernel.h"

/* A convolution; points into the tensors of its call. */
struct byi_conv {
    /* if transposed, w.in is the size of y and w.out the size of x */
    struct byi_window w;
    bool transposed;
    /* n: images; c, o: channels of x and of y in one group */
    int64_t n, c, o, groups;
    const void *x, *weights;
    void *y;
    struct byi_image_layout in, out; /* layouts of x and y */
    struct byi_filter weights_layout;
};

/* --- window.c ------------------------------------------------------------- */

/* byi_conv_operands reads the operands of any convolution, but leaves c, o and
 * the window to the caller; byi_conv_read describes a convolution that is not
 * transposed. */
struct byi_conv byi_conv_operands(const struct byi_call *call);
struct byi_conv byi_conv_read(const struct byi_call *call);
/* Whether the window has one tap and visits every position. */
bool byi_conv_is_pointwise(const struct byi_window *w);

/* --- conv.c --------------------------------------------------------------- */

/* Compute plane `plane` of the result: channel plane % C of image plane / C,
 * where C is the number of channels of y. */
typedef void (*byi_conv_plane)(const struct byi_conv *v, int64_t plane);

/* Define plain_##id(), a byi_conv_plane that computes one output at a time, for
 * elements of `type` and with sums of type `wide`. `side` is the side of the
 * window that the outputs are on: out, or in if transposed. offset_of(window,
 * output, tap) is the offset of a tap's data within a channel, or -1 if the tap
 * has no data, such as on padding. `filter` is an expression for the number of
 * the filter and `first` one for its first channel; they may use `channel`, the
 * output's channel, and `c0`, the group's first channel of data. */
#define BYI_CONV_PLAIN(id, type, wide, side, offset_of, filter, first)         \
    static void plain_##id(const struct byi_conv *v, int64_t plane)            \
    {                                                                          \
        const int64_t image = plane / (v->groups * v->o);                      \
        const int64_t channel = plane % (v->groups * v->o);                    \
        const int64_t c0 = channel / v->o * v->c;                              \
        type *y = (type *)v->y + byi_image_at(&v->out, image, channel);        \
        for (int64_t p = 0; p < v->w.side##_count; p++) {                      \
            int64_t out[3];                                                    \
            wide sum = 0;                                                      \
            byi_unflatten(v->w.side, p, out);                                  \
            for (int64_t t = 0; t < v->w.taps; t++) {                          \
                const int64_t offset = offset_of(&v->w, out, t);               \
                for (int64_t c = 0; offset >= 0 && c < v->c; c++) {            \
                    const int64_t at = byi_image_at(&v->in, image, c0 + c) +   \
                                       offset * v->in.block;                   \
                    const int64_t w =                                          \
                        byi_filter_at(&v->weights_layout, filter, first + c) + \
                        t * v->weights_layout.tap;                             \
                    sum += (wide)((const type *)v->x)[at] *                    \
                           (wide)((const type *)v->weights)[w];                \
                }                                                              \
            }                                                                  \
            y[p * v->out.block] = (type)sum;                                   \
        }                                                                      \
    }
#define BYI_CONV_PLAIN_ROW(id, type) [BYOC_##id] = plain_##id,
#define BYI_CONV_PLAIN_ROWS                                                    \
    {                                                                          \
        BYI_EACH_FLOAT(BYI_CONV_PLAIN_ROW) BYI_EACH_INT(BYI_CONV_PLAIN_ROW)    \
    }
/* Call run[dtype] for every plane of the result, each of `positions` elements,
 * on call->threads threads. Errors: BYOC_EUNSUPPORTED if run[dtype] is NULL. */
enum byoc_status byi_conv_planes(const struct byi_call *call,
                                 const struct byi_conv *v, int64_t positions,
                                 const byi_conv_plane run[BYI_DTYPES],
                                 struct byoc_error *err);
/* Whether x, y and the weights all have elements. */
bool byi_conv_has_products(const struct byi_conv *v);

/* --- conv_last.c: float32 on the kernels of kernels/conv.h ---------------- */

/* These functions require that byi_conv_has_products() is true.
 * byi_conv_last_scratch returns the bytes of scratch that byi_conv_last_run
 * needs. */
uint64_t byi_conv_last_scratch(const struct byi_call *call,
                               const struct byi_conv *v);
/* Errors: those of byi_epilogue_check(). */
enum byoc_status byi_conv_last_run(const struct byi_call *call,
                                   const struct byi_conv *v,
                                   struct byoc_error *err);
/* The name of the algorithm that byi_conv_last_run uses. */
const char *byi_conv_last_algorithm(const struct byi_call *call,
                                    const struct byi_conv *v);
/* The pack() of byi_packing for a convolution. Dims of x and y may be unknown.
 */
uint64_t byi_conv_last_pack(const struct byi_call *call,
                            const struct byi_conv *v, void *to);

#endif
