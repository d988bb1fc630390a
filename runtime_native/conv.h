/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h: a convolution as its kernels see it, or the transpose of one. */
#ifndef BYI_CONV_H
#define BYI_CONV_H

#include "kernel.h"

struct byi_conv {
    struct byi_window w;
    int64_t n, c, o, groups; /* c, o: channels of x, y in one group */
    const void *x, *weights;
    void *y;
    struct byi_image in, out; /* where x, y and the weights have what */
    struct byi_filter at;
};

/* --- conv.c --------------------------------------------------------------- */

/* The operands; c, o and the window are still to be said. */
struct byi_conv byi_conv_operands(const struct byi_call *call);
struct byi_conv byi_conv_read(const struct byi_call *call);
/* Every plane of the result, by call->threads: run[dtype] is given its number,
 * in (n, O). A plane has `positions`. Error: BYOC_EUNSUPPORTED where
 * run[dtype] is NULL. */
typedef void (*byi_conv_plane)(const struct byi_conv *v, int64_t plane);
enum byoc_status byi_conv_planes(const struct byi_call *call,
                                 const struct byi_conv *v, int64_t positions,
                                 const byi_conv_plane run[BYI_DTYPES],
                                 struct byoc_error *err);
/* One tap on every position: the windows are the image itself. */
bool byi_conv_is_pointwise(const struct byi_window *w);
/* A packer of the windows' matrix, (C/G taps, positions), of image and group
 * `batch`; ctx: a struct byi_conv of channels first. */
void byi_conv_pack_windows(const void *ctx, int64_t batch, int64_t k0,
                           int64_t kc, int64_t n0, int64_t nc, int64_t nr,
                           float *dst);

/* --- conv_frame.c: in the plain layouts -------------------------------------
 */

/* A channel as conv_frame.c describes it, whatever its elements are. */
struct byi_frame {
    int64_t phases[3]; /* images that a channel becomes             */
    int64_t dims[3];   /* of one                                    */
    int64_t image;     /* elements of one                           */
    int64_t channel;   /* of all of a channel                       */
    int64_t run;       /* outputs of a plane, gaps included         */
    bool same;         /* the channel itself: not copied            */
    bool dense;        /* there are no gaps                         */
};

struct byi_frame byi_frame_of(const struct byi_window *w);
/* Where tap t lies in a channel's frame. */
int64_t byi_frame_tap(const struct byi_window *w, const struct byi_frame *f,
                      int64_t t);
/* Elements of a row of an image: [first, last) are row[i stride + from] of the
 * channel's, the others are zero. */
struct byi_span {
    int64_t from, stride, first, last, n;
};
struct byi_span byi_frame_span(const struct byi_window *w,
                               const struct byi_frame *f, int64_t from);

/* float32 */

/* Whether frames are small enough for what they are made of. */
bool byi_conv_fits_frame(const struct byi_conv *v);
uint64_t byi_conv_frame_scratch(const struct byi_conv *v,
                                const struct byi_call *call);
void byi_conv_frame_run(const struct byi_conv *v, const struct byi_call *call);
/* The weights as run reads them, whatever the image: see byi_packing. */
uint64_t byi_conv_frame_pack(const struct byi_call *call, float *to);

/* --- conv_last.c: float32, in every layout but the plain ones --------------
 */

uint64_t byi_conv_last_scratch(const struct byi_call *call);
void byi_conv_last_run(const struct byi_call *call);

#endif
