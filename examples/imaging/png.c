/* SPDX-License-Identifier: Apache-2.0 */
/* png.c: reads PNG images with libpng's simplified interface. */
#include "imaging.h"

#include <png.h>

static bool png_size(struct encoded file, int64_t *width, int64_t *height)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, file.data, file.bytes))
        return false;
    *width = image.width;
    *height = image.height;
    png_image_free(&image);
    return true;
}

static bool png_read(struct encoded file, int64_t width, int64_t height,
                     uint8_t *rgb)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    (void)width;
    (void)height;
    if (!png_image_begin_read_from_memory(&image, file.data, file.bytes))
        return false;
    const png_color black = {0, 0, 0}; /* shows through transparent pixels */
    image.format = PNG_FORMAT_RGB;
    return png_image_finish_read(&image, &black, rgb, 0, NULL) != 0;
}

const struct format format_png = {png_size, png_read};
