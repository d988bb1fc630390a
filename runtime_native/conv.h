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
