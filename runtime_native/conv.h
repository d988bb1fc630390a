/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h: a convolution, or a transposed one, as its kernels see it. */
#ifndef BYI_CONV_H
#define BYI_CONV_H

#include "kernel.h"

struct byi_conv {
    struct byi_window w;
    int64_t n, c, o, groups; /* c, o: channels of x, y in one group */
    const void *x, *weights;
    void *y;
    struct byi_image_layout in, out; /* layouts of x and y */
    struct byi_filter at;            /* layout of the weights */
};

/* --- conv.c --------------------------------------------------------------- */

/* Read the operands; the caller sets c, o and the window. */
struct byi_conv byi_conv_operands(const struct byi_call *call);
struct byi_conv byi_conv_read(const struct byi_call *call);
/* Calls run[dtype] for every plane of the result, numbered in (n, O), on
 * call->threads threads. `positions` is the size of a plane. Returns
 * BYOC_EUNSUPPORTED if run[dtype] is NULL. */
typedef void (*byi_conv_plane)(const struct byi_conv *v, int64_t plane);
enum byoc_status byi_conv_planes(const struct byi_call *call,
                                 const struct byi_conv *v, int64_t positions,
                                 const byi_conv_plane run[BYI_DTYPES],
                                 struct byoc_error *err);
/* Pointwise: a window of one tap, so that the im2col matrix is the image. */
bool byi_conv_is_pointwise(const struct byi_window *w);
/* Packs a panel of the im2col matrix (C/G taps, positions) of image and group
 * `batch`; ctx is a struct byi_conv with channels first. */
void byi_conv_pack_windows(const void *ctx, int64_t batch, int64_t k0,
                           int64_t kc, int64_t n0, int64_t nc, int64_t nr,
                           float *dst);

/* --- conv_frame.c: channels first ----------------------------------------- */

/* A channel's frame (see conv_frame.c), for elements of any type. */
struct byi_conv_frame {
    int64_t phases[3]; /* images per channel, by axis               */
    int64_t dims[3];   /* of an image                               */
    int64_t image;     /* elements of an image                      */
    int64_t channel;   /* elements of all images of a channel       */
    int64_t run;       /* outputs of a plane, gaps included         */
    bool same;         /* the frame is the channel: no copy         */
    bool dense;        /* the sequence of outputs has no gaps       */
};

/* A row of a frame's image: elements [first, last) are row[i stride + from] of
 * the channel's row, all others are zero. */
struct byi_frame_row {
    int64_t from, stride, first, last, n;
};

/* float32 */

/* True if the frames are not much larger than the channels. */
bool byi_conv_fits_frame(const struct byi_conv *v);
uint64_t byi_conv_frame_scratch(const struct byi_conv *v,
                                const struct byi_call *call);
void byi_conv_frame_run(const struct byi_conv *v, const struct byi_call *call);
/* The weights as byi_conv_frame_run reads them, for any image size: see
 * byi_packing. */
uint64_t byi_conv_frame_pack(const struct byi_call *call, float *to);

/* --- conv_last.c: float32, all layouts but channels first ----------------- */

uint64_t byi_conv_last_scratch(const struct byi_call *call);
void byi_conv_last_run(const struct byi_call *call);

#endif
