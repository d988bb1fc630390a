/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h: a convolution, or a transposed one, as its kernels see it. */
#ifndef BYI_CONV_H
#define BYI_CONV_H

#include "kernel.h"

struct byi_conv {
    struct byi_window w; /* transposed: `in` is of y, `out` of x */
    bool transposed;
    int64_t n, c, o, groups; /* c, o: channels of x, y in one group */
    const void *x, *weights;
    void *y;
    struct byi_image_layout in, out; /* layouts of x and y */
    struct byi_filter at;            /* layout of the weights */
};

/* --- window.c ------------------------------------------------------------- */

/* Read the operands; the caller sets c, o and the window. */
struct byi_conv byi_conv_operands(const struct byi_call *call);
struct byi_conv byi_conv_read(const struct byi_call *call);
/* Pointwise: a window of one tap on every position. */
bool byi_conv_is_pointwise(const struct byi_window *w);

/* --- conv.c --------------------------------------------------------------- */

/* Calls run[dtype] for every plane of the result, numbered in (n, O), on
 * call->threads threads. `positions` is the size of a plane. Returns
 * BYOC_EUNSUPPORTED if run[dtype] is NULL. */
typedef void (*byi_conv_plane)(const struct byi_conv *v, int64_t plane);

/* Define plain_TYPE, a byi_conv_plane that computes one output at a time: the
 * outputs are the window's `side`, place_of(window, output, tap) is the offset
 * of a tap's data, or -1. The filter is number `filter`, and its first channel
 * number `first`, in terms of the channel of the output, `channel`, and the
 * group's first channel of data, `c0`. */
#define BYI_CONV_PLAIN(id, type, wide, side, place_of, filter, first)          \
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
                const int64_t place = place_of(&v->w, out, t);                 \
                for (int64_t c = 0; place >= 0 && c < v->c; c++) {             \
                    const int64_t at = byi_image_at(&v->in, image, c0 + c) +   \
                                       place * v->in.block;                    \
                    const int64_t w =                                          \
                        byi_filter_at(&v->at, filter, first + c) +             \
                        t * v->at.tap;                                         \
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
enum byoc_status byi_conv_planes(const struct byi_call *call,
                                 const struct byi_conv *v, int64_t positions,
                                 const byi_conv_plane run[BYI_DTYPES],
                                 struct byoc_error *err);
/* Are x, y and the weights non-empty? */
bool byi_conv_has_products(const struct byi_conv *v);

/* --- conv_last.c: float32 on the kernels of kernels/conv.h ---------------- */

uint64_t byi_conv_last_scratch(const struct byi_call *call,
                               const struct byi_conv *v);
/* Errors: those of byi_epilogue_check(). */
enum byoc_status byi_conv_last_run(const struct byi_call *call,
                                   const struct byi_conv *v,
                                   struct byoc_error *err);
const char *byi_conv_last_algorithm(const struct byi_call *call,
                                    const struct byi_conv *v);
/* See byi_packing. Dims of x and y may be unknown. */
uint64_t byi_conv_last_pack(const struct byi_call *call,
                            const struct byi_conv *v, void *to);

#endif
