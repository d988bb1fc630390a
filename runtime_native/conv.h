/* conv.h: a convolution as its kernels see it, and those of conv_last.c. */
#ifndef BYI_CONV_H
#define BYI_CONV_H

#include "kernel.h"

struct byi_conv {
    struct byi_window w;
    int64_t n, c, o, groups; /* c, o: in one group */
    const void *x, *weights;
    void *y;
    struct byi_image in, out; /* where x, y and the weights have what */
    struct byi_filter at;
};

/* --- conv.c --------------------------------------------------------------- */

struct byi_conv byi_conv_read(const struct byi_call *call);
/* One tap on every position: the windows are the image itself. */
bool byi_conv_is_pointwise(const struct byi_window *w);

/* --- conv_frame.c: float32, in the plain layouts ---------------------------
 */

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
