/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/scaled.c: products whose rows are multiplied by a scale, as products
 * by scaled weights. */
#include "kernels/conv.h"

bool byi_f32_scales_weights(const struct byi_f32_conv *conv)
{
    return conv->scales && (conv->images == 1 || conv->scale_image == 0) &&
           byi_f32_product_of(conv->out) > conv->outputs;
}

struct byi_f32_conv byi_f32_scaled_conv(const struct byi_f32_conv *conv)
{
    struct byi_f32_conv scaled = *conv;
    scaled.gathers = scaled.scales = false;
    return scaled;
}

void byi_f32_scale_weights(const struct byi_f32_conv_run *run, int64_t first,
                           int64_t end, float *to)
{
    const struct byi_f32_conv *conv = run->conv;
    const int64_t floats = conv->channels * BYI_F32_PANEL;
    for (int64_t i = first; i < end; i++)
        conv->kernels->scale_panel(run->weights + i * floats, run->scale,
                                   conv->channels, to + i * floats);
}
