/* SPDX-License-Identifier: Apache-2.0 */
/* webp.c: reads WebP images with libwebp. */
#include "imaging.h"

#include <webp/decode.h>

static bool webp_size(struct encoded file, int64_t *width, int64_t *height)
{
    int w, h;
    if (!WebPGetInfo(file.data, file.bytes, &w, &h))
        return false;
    *width = w;
    *height = h;
    return true;
}

static bool webp_read(struct encoded file, int64_t width, int64_t height,
                      uint8_t *rgb)
{
    return WebPDecodeRGBInto(file.data, file.bytes, rgb,
                             (size_t)(3 * width * height),
                             (int)(3 * width)) != NULL;
}

const struct format format_webp = {webp_size, webp_read};
